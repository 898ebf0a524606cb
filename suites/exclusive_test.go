package suites_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A server may run once at a time, as where it locks a file: a process that is started beside another one ends at
// once. It is tried one process after the other, and not accused of those that ended.
func TestProcessesThatExcludeEachOther(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var running sync.Mutex
		s := server.New(server.Options{})
		dialer := &transport.Stdio{Launcher: transport.Func{Name: "exclusive", Run: func(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
			if !running.TryLock() {
				return nil
			}
			defer running.Unlock()
			return s.RunStdio(ctx, in, out, stderr)
		}}}
		run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
		passesUnaccused(t, run, "lifecycle.version.offer-other", "lifecycle.capability.client-experimental", "ping.response-prompt", "lifecycle.shutdown.stdio-server-exits")
	})
}

// passesUnaccused fails the test if anything was found in a run, or one of some requirements has not passed.
func passesUnaccused(t *testing.T, run *result.Run, wants ...string) {
	t.Helper()
	passed := make(map[string]bool)
	for _, q := range run.Requirements {
		passed[q.ID] = q.Verdict == result.Pass
		if len(q.Findings) > 0 {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
		}
		if slices.Contains(wants, q.ID) && !passed[q.ID] {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
		}
	}
	for _, id := range wants {
		if _, ok := passed[id]; !ok {
			t.Errorf("no %s", id)
		}
	}
}

// A server may open one session at a time and leave other clients waiting. It costs about two time limits, is tried
// one session after the other, and is not accused of those that waited.
func TestSessionsInTurn(t *testing.T) {
	run, took := handshakes(t, func(o *server.Options) { applyOddity(o, "http.sessions-in-turn") })
	passed := make(map[string]bool)
	noted := false
	for _, q := range run.Requirements {
		passed[q.ID] = q.Verdict == result.Pass
		noted = noted || q.ID == "base.response.present" && len(q.Notes) > 0
		if len(q.Findings) > 0 {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
		}
	}
	for _, id := range []string{"base.response.present", "lifecycle.version.offer-other", "lifecycle.capability.client-experimental", "ping.response-prompt", "http.server.session-ended-404"} {
		if !passed[id] {
			t.Errorf("%s has not passed", id)
		}
	}
	if !noted {
		t.Error("the wait is not noted")
	}
	if took > 5*client.DefaultTimeout/2 {
		t.Errorf("it takes %v", took)
	}
	if run.Verdict != result.Conformant {
		t.Errorf("%s: %s", run.Verdict, run.Reason)
	}
}

// A server that answers no initialize but the first one, whatever has ended, breaks what it says of requests, once.
func TestFirstSessionOnly(t *testing.T) {
	run, took := handshakes(t, func(o *server.Options) {
		var first atomic.Bool
		o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && first.Swap(true) {
					_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client goes
					<-r.Context().Done()
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	})
	var broken []string
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail {
			broken = append(broken, q.ID)
		}
	}
	if !slices.Equal(broken, []string{"base.response.present"}) {
		t.Errorf("%q are broken", broken)
	}
	if took > 3*client.DefaultTimeout {
		t.Errorf("it takes %v", took)
	}
}

// applyOddity adds an oddity to the options of a server.
func applyOddity(o *server.Options, id string) {
	i := slices.IndexFunc(oddserver.Oddities(), func(o oddserver.Oddity) bool { return o.ID == id })
	oddserver.Oddities()[i].Apply(o)
}

// handshakes runs all checks against a server over Streamable HTTP, and returns how long that takes.
func handshakes(t *testing.T, apply func(*server.Options)) (run *result.Run, took time.Duration) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		o := serverOptions()
		apply(&o)
		dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		began := time.Now()
		run, _, err = suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(began)
	})
	return run, took
}
