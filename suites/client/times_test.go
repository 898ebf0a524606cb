package client_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/virtual"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A client that asks for two things at the same time, and has more patience than
// the scenario, uses what it gets of the one and still waits for the other.
func TestClientThatAsksForTwoThings(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{Scenarios: []string{"time/silence"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		s, err := begin(ctx, p, calmTime)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
		var both sync.WaitGroup
		var failed [2]error
		for i := range failed {
			both.Go(func() {
				for range 3 {
					if _, err := s.Call(ctx, "tools/list", nil); err != nil {
						failed[i] = err
						return
					}
				}
			})
		}
		both.Wait()
		return errors.Join(failed[:]...)
	})}, suites.Options{Timeout: 4 * time.Second})
	for _, id := range []string{"lifecycle.timeout.established", "lifecycle.timeout.cancel", "lifecycle.timeout.stop-waiting"} {
		if q := requirement(t, run, id); q.Verdict != result.Inconclusive {
			t.Errorf("%s is %s: %s %+v", id, q.Verdict, q.Reason, q.Findings)
		}
	}
}

// A client that sends nothing before it has the head of the response to what it sent last can cancel a request that
// gets no answer.
func TestClientThatSendsInTurn(t *testing.T) {
	odd := slices.DeleteFunc(mockclient.Oddities(), func(o mockclient.Oddity) bool { return o.ID != "http.posts-in-turn" })
	for _, scenario := range []string{"time/silence", "time/silent-tool"} {
		var run *result.Run
		virtual.Test(t, func(t *testing.T) {
			var err error
			if run, err = calmRun(t.Context(), 1, transport.NameHTTP, []string{scenario}, odd); err != nil {
				t.Fatal(err)
			}
		})
		for _, id := range []string{"lifecycle.timeout.cancel", "http.client.cancel-explicit", "cancellation.late-response"} {
			if q := requirement(t, run, id); q.Verdict != result.Pass {
				t.Errorf("%s: %s is %s: %s %+v", scenario, id, q.Verdict, q.Reason, q.Findings)
			}
		}
	}
}
