package suites_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// timeLimits runs only what is about the time limits of a server over a transport, and
// returns the requirements by id, with the time that it took.
func timeLimits(t *testing.T, over string, o server.Options, givesUpAfter time.Duration) (map[string]result.Requirement, time.Duration) {
	t.Helper()
	found := make(map[string]result.Requirement)
	var took time.Duration
	virtual.Test(t, func(t *testing.T) {
		dialer, stop, err := serve(t.Context(), over, o)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		began := time.Now()
		run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{
			CallTools: check.CallAll, ToolRoles: rolesOn(o), GivesUpAfter: givesUpAfter,
		}}, suites.Options{Selection: suites.Selection{Select: []string{"lifecycle.timeout.*", "lifecycle.error.request-timeout"}}})
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
		for _, q := range run.Requirements {
			found[q.ID] = q
		}
	})
	return found, took
}

var aboutTimeLimits = []string{
	"lifecycle.timeout.established", "lifecycle.timeout.cancel", "lifecycle.timeout.stop-waiting", "lifecycle.timeout.maximum", "lifecycle.error.request-timeout",
}

// TestGivesUpNotStated: without a time nothing waits, and the reason names the flag.
func TestGivesUpNotStated(t *testing.T) {
	found, took := timeLimits(t, transport.NameStdio, serverOptions(), 0)
	for _, id := range aboutTimeLimits {
		if q := found[id]; q.Verdict != result.Inconclusive || !strings.Contains(q.Reason, "--gives-up-after") {
			t.Errorf("%s is %s: %s", id, q.Verdict, q.Reason)
		}
	}
	if took > 10*time.Second {
		t.Errorf("the run took %s", took)
	}
}

// TestGivesUpFaults holds the checks to the same findings over each transport.
func TestGivesUpFaults(t *testing.T) {
	for _, fault := range []string{"lifecycle.timeout-none", "lifecycle.timeout-renewed", "lifecycle.timeout-uncancelled", "lifecycle.timeout-hangs", "lifecycle.timeout-deafens"} {
		for _, over := range transports {
			t.Run(fault+"/"+over, func(t *testing.T) {
				f, _ := mockserver.Find(fault)
				o := serverOptions()
				f.Apply(&o)
				found, _ := timeLimits(t, over, o, time.Minute)
				for _, id := range aboutTimeLimits {
					if warned := found[id].Verdict == result.Warn; warned != (id == f.Requirement || slices.Contains(f.Collateral, id)) {
						t.Errorf("%s is %s: %s %v", id, found[id].Verdict, found[id].Reason, found[id].Findings)
					}
				}
			})
		}
	}
}

// TestGivesUpLegal has servers that do not wait, or not only for the answer.
func TestGivesUpLegal(t *testing.T) {
	ask := map[string]any{"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": "Hello"}}}, "maxTokens": 10}
	for name, call := range map[string]func(ctx context.Context, r *server.Request){
		"ends at once, and does not want the answer": func(_ context.Context, r *server.Request) {
			go func() { _, _ = r.Session.Call(r.Session.Context(), "sampling/createMessage", ask) }()
			_ = r.Sleep(r.Session.Context(), 100*time.Millisecond)
		},
		"works for three seconds, and does not want the answer": func(_ context.Context, r *server.Request) {
			go func() { _, _ = r.Session.Call(r.Session.Context(), "sampling/createMessage", ask) }()
			_ = r.Sleep(r.Session.Context(), 3*time.Second)
		},
		"asks again and again": func(ctx context.Context, r *server.Request) {
			for range 4 {
				limit, stop := context.WithTimeout(ctx, 20*time.Second)
				_, err := r.Call(limit, "sampling/createMessage", ask)
				stop()
				if err == nil {
					return
				}
			}
		},
		"asks twice at once": func(ctx context.Context, r *server.Request) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = r.Call(ctx, "sampling/createMessage", ask)
			}()
			_, _ = r.Call(ctx, "sampling/createMessage", ask)
			<-done
		},
	} {
		for _, over := range transports {
			t.Run(name+"/"+over, func(t *testing.T) {
				o := serverOptions()
				for _, tool := range o.Catalogue.Tools {
					if tool.Name() == "test_sampling" {
						tool.Call = func(ctx context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
							call(ctx, r)
							return map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}}, nil
						}
					}
				}
				found, _ := timeLimits(t, over, o, time.Minute)
				for _, id := range aboutTimeLimits {
					if q := found[id]; len(q.Findings) > 0 {
						t.Errorf("%s is %s: %v", id, q.Verdict, q.Findings)
					}
				}
			})
		}
	}
}
