package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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
