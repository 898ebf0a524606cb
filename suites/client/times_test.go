package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/oddclient"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A client may ask for two things at the same time and have more patience than the scenario. It uses the one result
// and still waits for the other.
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

// A client may send nothing before it has the head of the response to its last message. It can still cancel a request
// without an answer.
func TestClientThatSendsInTurn(t *testing.T) {
	odd := slices.DeleteFunc(oddclient.Oddities(), func(o oddclient.Oddity) bool { return o.ID != "http.posts-in-turn" })
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

// The time of a client without progress decides how long it may wait with progress, if the user has not stated that.
func TestMaximumAsSeen(t *testing.T) {
	const id = "lifecycle.timeout.maximum"
	for _, v := range []struct {
		maximum time.Duration
		want    result.Verdict
	}{{3 * time.Second, result.Pass}, {time.Hour, result.Warn}} {
		run := conducted(t, suites.ClientScenarios{
			Scenarios: []string{client.Baseline, "time/silent-tool", "time/endless-progress"},
			Launch:    inProcess(func(ctx context.Context, p client.Endpoint) error { return renewsByProgress(ctx, p, v.maximum) }),
		}, suites.Options{Timeout: 8 * time.Second})
		if q := requirement(t, run, id); q.Verdict != v.want {
			t.Errorf("%s is %s with a maximum of %s: %s %+v", id, q.Verdict, v.maximum, q.Reason, q.Findings)
		}
	}
}

// renewsByProgress is a client that gives a tool call up after a second without progress, or after a maximum.
func renewsByProgress(ctx context.Context, p client.Endpoint, maximum time.Duration) error {
	s, err := begin(ctx, p, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
	call, err := s.Start(ctx, "tools/call", map[string]any{
		"name": "echo", "arguments": map[string]any{"text": "a"}, "_meta": map[string]any{"progressToken": "steps"},
	})
	if err != nil {
		return err
	}
	whole, stop := context.WithTimeout(ctx, maximum)
	defer stop()
	for from := 0; ; {
		e, err := s.AwaitEvent(whole, from, "progress or answer", func(e *wire.Event) bool {
			return call.Answers(e) || e.Kind == wire.KindMessage && e.Msg.Method == "notifications/progress"
		})
		if err != nil {
			break
		}
		if call.Answers(e) {
			return nil
		}
		from = e.Seq + 1
	}
	id := json.RawMessage(call.Request.Msg.ID.String())
	if err := s.Notify(ctx, "notifications/cancelled", map[string]any{"requestId": id}); err != nil {
		return err
	}
	_, err = s.Call(ctx, "tools/list", nil)
	return err
}

// TestKnownTimesAreNotAskedFor runs a client that gives a request up by its end: nobody is asked for a time that the
// run has seen.
func TestKnownTimesAreNotAskedFor(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{
		Scenarios: []string{client.Baseline, "time/silence"},
		Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
			s, err := begin(ctx, p, time.Second)
			if err != nil {
				return err
			}
			defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
			call, err := s.Start(ctx, "tools/list", nil)
			if err != nil {
				return err
			}
			soon, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			_, _ = s.AwaitEvent(soon, 0, "answer", call.Answers)
			return nil
		}),
	}, suites.Options{Timeout: 8 * time.Second})
	q := requirement(t, run, "lifecycle.timeout.cancel")
	asked := strings.Contains(q.Reason, result.Helps)
	if q.Verdict != result.Inconclusive || !strings.Contains(q.Reason, "ended instead of cancelling") || asked {
		t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
	}
}
