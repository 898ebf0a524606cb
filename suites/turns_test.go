package suites_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A server may refuse requests while it serves others. No check may blame it for the requests of another check,
// except the check of exactly that.
func TestServersThatTakeTurns(t *testing.T) {
	brief.WholeRuns(t)
	// busy refuses what comes while a request of the same kind is being served.
	busy := func(kind func(*server.Request) any) server.Middleware {
		var mu sync.Mutex
		under := make(map[any]bool)
		return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			k := kind(r)
			mu.Lock()
			refused := under[k] && r.Method != "initialize"
			under[k] = under[k] || !refused
			mu.Unlock()
			if refused {
				return nil, &wire.Error{Code: -32000, HasCode: true, Message: "Another request is being served"}
			}
			time.Sleep(time.Millisecond) // what serving takes elsewhere
			result, problem := next(ctx, r)
			mu.Lock()
			delete(under, k)
			mu.Unlock()
			return result, problem
		}
	}
	perSession := func(r *server.Request) any { return r.Session }
	for _, tt := range []struct {
		name, transport string
		kind            func(*server.Request) any
	}{
		{"in a session over stdio", transport.NameStdio, perSession},
		{"in a session over HTTP", transport.NameHTTP, perSession},
		{"in a session over SSE", transport.NameSSE, perSession},
		{"of one method over HTTP", transport.NameHTTP, func(r *server.Request) any { return r.Method }},
		{"at all over HTTP", transport.NameHTTP, func(*server.Request) any { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := serverOptions()
			o.Behaviour.Methods = map[string]server.Middleware{"*": busy(tt.kind)}
			run := conducted(t, tt.transport, o)
			passed := exonerated(t, run, "http.server.multiple-streams")
			if passed < 200 {
				t.Errorf("only %d requirements passed", passed)
			}
		})
	}
}

// exonerated returns how many requirements passed, and fails the test for what
// was found, but for the exceptions.
func exonerated(t *testing.T, run *result.Run, except ...string) int {
	t.Helper()
	passed := 0
	for _, q := range run.Requirements {
		switch q.Verdict {
		case result.Pass:
			passed++
		case result.Fail, result.Warn, result.Error:
			if !slices.Contains(except, q.ID) {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
			}
		}
	}
	for _, h := range run.Harness {
		t.Errorf("a message of mcpconform is at fault: %s: %s %v", h.Check, h.Message, h.Evidence)
	}
	return passed
}

// A server that does one thing after the other never reads the answer that a tool
// of it awaits. That it has got stuck is for those to blame that are about answers,
// or about such a tool.
func TestToolThatGetsStuck(t *testing.T) {
	var mu sync.Mutex
	stuck := make(map[*server.Session]bool)
	o := serverOptions()
	o.Behaviour.Methods = map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		name, _ := wire.At(r.Params, "name").(string)
		mu.Lock()
		lost := stuck[r.Session]
		asks := r.Method == "tools/call" && slices.Contains([]string{"test_sampling", "test_elicitation"}, name)
		stuck[r.Session] = lost || asks
		mu.Unlock()
		if !lost {
			result, problem := next(ctx, r)
			if !asks {
				return result, problem
			}
		}
		<-ctx.Done()
		return nil, &wire.Error{Code: -32603, HasCode: true, Message: "Stuck"}
	}}
	run := conducted(t, transport.NameStdio, o)
	exonerated(t, run, "base.response.present", "lifecycle.error.missing-capability", "cancellation.late-response", "progress.none",
		"sampling.security.validate-content", "sampling.result.stop-reason-optional",
		"elicitation.server.handle-accept", "elicitation.server.handle-decline", "elicitation.security.validate-content")
}

// A server that refuses one request in so many does not do so for the sake of
// others.
func TestRefusalsNowAndThen(t *testing.T) {
	brief.WholeRuns(t)
	for _, over := range []string{transport.NameStdio, transport.NameHTTP} {
		var n atomic.Int64
		o := serverOptions()
		o.Behaviour.Methods = map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Method != "initialize" && n.Add(1)%7 == 0 {
				return nil, &wire.Error{Code: -32603, HasCode: true, Message: "Internal error"}
			}
			return next(ctx, r)
		}}
		run := conducted(t, over, o)
		if !slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool { return q.Verdict == result.Fail }) {
			t.Errorf("over %s no requirement fails", over)
		}
	}
}

// A server may serve a few requests at a time and tell the others when to come back.
func TestBusyServer(t *testing.T) {
	brief.WholeRuns(t)
	const most = 4
	var mu sync.Mutex
	open := 0
	run := conductBehind(t, transport.NameHTTP, serverOptions(), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				h.ServeHTTP(w, r)
				return
			}
			mu.Lock()
			open++
			refused := open > most
			mu.Unlock()
			defer func() {
				mu.Lock()
				open--
				mu.Unlock()
			}()
			if refused {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			time.Sleep(time.Millisecond) // what serving takes elsewhere
			h.ServeHTTP(w, r)
		})
	})
	if passed := exonerated(t, run); passed < 200 {
		t.Errorf("only %d requirements passed", passed)
	}
}
