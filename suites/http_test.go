package suites_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestReferenceServerIsCleanOverHTTP runs the suite against the reference
// server over both HTTP transports and in its ways to serve them: nothing is
// found, neither in the server nor in what mcpconform itself sends.
func TestReferenceServerIsCleanOverHTTP(t *testing.T) {
	type way struct {
		name, transport string
		options         server.HTTPOptions
		want            []string // requirements that have to pass
	}
	for _, tt := range brief.Part(t, []way{
		{"http", transport.NameHTTP, server.HTTPOptions{}, []string{
			"http.server.endpoint-post", "http.server.origin-foreign", "http.server.origin-null",
			"http.server.origin-every-request", "http.server.accept-forms", "http.server.notification-202",
			"http.server.response-202", "http.server.accepted-no-body", "http.server.unacceptable-error-status",
			"http.server.request-answer-type", "http.server.json-one-object", "http.server.sse-event-data",
			"http.server.sse-response-sent", "http.server.sse-own-response", "http.server.sse-related-messages",
			"http.server.sse-no-early-close", "http.server.sse-close-after-response", "http.disconnect.survived",
			"http.server.survives-bad-body", "http.message.large", "http.server.get-stream-or-405", "http.server.get-unrelated",
			"http.server.get-no-response", "http.server.get-close-tolerated", "http.server.multiple-streams",
			"http.server.no-broadcast", "http.server.event-id-unique", "http.server.replay-same-stream",
			"http.server.event-id-cursor", "http.server.disconnect-not-cancel", "http.server.session-isolation", "http.server.session-id-at-initialization",
			"http.server.session-id-unique", "http.server.session-id-charset", "http.server.session-missing-400",
			"http.server.initialize-without-session", "http.server.session-ended-404", "http.server.delete-session",
			"http.server.version-header-missing", "http.server.version-header-invalid-400",
			"http.server.version-header-unsupported-400",
		}},
		{"streams", transport.NameHTTP, server.HTTPOptions{AlwaysSSE: true}, nil},
		{"plain", transport.NameHTTP, server.HTTPOptions{NoGet: true, NoDelete: true, NoEventID: true}, []string{
			"http.server.get-stream-or-405", "http.server.delete-session",
		}},
		{"sse", transport.NameSSE, server.HTTPOptions{}, []string{
			"sse.server.sse-endpoint", "sse.server.post-endpoint", "sse.server.endpoint-event", "sse.server.endpoint-event-first",
			"sse.server.endpoint-event-uri", "sse.server.message-events", "sse.server.message-json",
			"sse.server.responses-on-stream", "sse.server.session-isolation", "sse.server.origin-foreign", "sse.server.origin-null",
		}},
	}, 1) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run := conductHTTP(t, tt.transport, func(o *server.Options) { o.HTTP = tt.options })
			exonerated(t, run)
			for _, id := range tt.want {
				if q := verdictOn(t, run, id); q.Verdict != result.Pass {
					t.Errorf("%s is %q, not pass", id, q.Verdict)
				}
			}
		})
	}
}

func conductHTTP(t *testing.T, name string, change func(*server.Options)) *result.Run {
	t.Helper()
	o := serverOptions()
	change(&o)
	return conductBehind(t, name, o, func(h http.Handler) http.Handler { return h })
}

// conductBehind runs the suite, or a selection, against a reference server with something in front.
func conductBehind(t *testing.T, name string, o server.Options, front func(http.Handler) http.Handler, ids ...string) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		handler := server.New(o).HTTP()
		at := listen(t, front(handler))
		t.Cleanup(handler.Close)
		var dialer transport.Dialer = &transport.HTTP{Endpoint: below(at, server.PathMCP)}
		if name == transport.NameSSE {
			dialer = &transport.SSE{Endpoint: below(at, server.PathSSE)}
		}
		var err error
		run, _, err = suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{Selection: suites.Selection{Select: ids}})
		if err != nil {
			t.Fatal(err)
		}
	})
	return run
}

// below returns an endpoint with a path added.
func below(at transport.Endpoint, path string) transport.Endpoint {
	at.URL += path
	return at
}

// One log level for all clients of a server breaks nothing (docs/positions.md, shared-log-level).
func TestSharedLogLevel(t *testing.T) {
	brief.WholeRuns(t)
	for _, name := range []string{transport.NameHTTP, transport.NameSSE} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var all []func(level any)
			run := conductHTTP(t, name, func(o *server.Options) {
				o.Behaviour.Methods = map[string]server.Middleware{
					"logging/setLevel": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
						mu.Lock()
						defer mu.Unlock()
						answer, problem := next(ctx, r)
						if problem == nil {
							all = append(all, func(level any) {
								r.Params["level"] = level
								_, _ = next(ctx, r)
							})
							for _, set := range all {
								set(r.Params["level"])
							}
						}
						return answer, problem
					},
				}
			})
			for _, id := range []string{"logging.filter.none-below", "logging.filter.all-above"} {
				if q := verdictOn(t, run, id); q.Verdict != result.Pass {
					t.Errorf("%s is %q", id, q.Verdict)
				}
			}
		})
	}
}

// The loss of a session in the middle of the run concerns only the requirements that lose it. The acts of mcpconform
// in a lost session are on purpose.
func TestLostSessions(t *testing.T) {
	brief.WholeRuns(t)
	const deadly = `"params":{"argument":` // of completion/complete
	run := conductBehind(t, transport.NameHTTP, serverOptions(), func(h http.Handler) http.Handler {
		var gone sync.Map // by session id
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Mcp-Session-Id")
			if _, lost := gone.Load(id); lost {
				http.Error(w, "Session not found", http.StatusNotFound)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if id != "" && bytes.Contains(body, []byte(deadly)) {
				gone.Store(id, true)
			}
			h.ServeHTTP(w, r)
		})
	})
	failed := 0
	for _, q := range run.Requirements {
		if q.Verdict != result.Fail && q.Verdict != result.Warn && q.Verdict != result.Error {
			continue
		}
		failed++
		// Wrong params are tried on completions as well.
		if !strings.HasPrefix(q.ID, "completion.") && q.ID != "base.error.invalid-params" {
			t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
		}
	}
	if failed == 0 {
		t.Error("no requirement suffered")
	}
	for _, h := range run.Harness {
		t.Errorf("a message of mcpconform is at fault: %s: %s %v", h.Check, h.Message, h.Evidence)
	}
}

// A server may let its clients come back for the answer: that it ends the stream
// before is one recommendation not followed, and no request stays without response.
func TestResumedResponses(t *testing.T) {
	brief.WholeRuns(t)
	run := conductHTTP(t, transport.NameHTTP, func(o *server.Options) {
		o.Behaviour.HTTP.Event = func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.To != nil {
				e.Cut = true
			}
			return []*server.Event{e}
		}
	})
	for _, q := range run.Requirements {
		want := result.Pass
		if q.ID == "http.server.sse-no-early-close" {
			want = result.Warn
		} else if q.Verdict == result.Skip || q.Verdict == result.Inconclusive {
			continue
		}
		if q.Verdict != want {
			t.Errorf("%s is %s, want %s: %s", q.ID, q.Verdict, want, killmatrix.Why(q))
		}
	}
	for _, h := range run.Harness {
		t.Errorf("a message of mcpconform is at fault: %s: %s %v", h.Check, h.Message, h.Evidence)
	}
}

// A server without sessions has to assume 2025-03-26 where the version header
// is missing, and to refuse that revision if it does not speak it.
func TestMissingVersionHeader(t *testing.T) {
	for _, versions := range [][]string{{server.Version}, {server.Version, "2025-03-26"}} {
		o := serverOptions()
		o.HTTP.NoSessionID, o.Versions = true, versions
		run := conductBehind(t, transport.NameHTTP, o, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				if r.Method == http.MethodPost && r.Header.Get("Mcp-Protocol-Version") == "" && !bytes.Contains(body, []byte(`"initialize"`)) {
					http.Error(w, "unsupported protocol version", http.StatusBadRequest)
					return
				}
				h.ServeHTTP(w, r)
			})
		}, "http.server.version-header-missing")
		want := result.Inconclusive
		if len(versions) > 1 {
			want = result.Warn
		}
		for _, q := range run.Requirements {
			if q.ID == "http.server.version-header-missing" && q.Verdict != want {
				t.Errorf("a server of %q: %s is %s, not %s: %s", versions, q.ID, q.Verdict, want, q.Reason)
			}
		}
	}
}

// The answer to a DELETE, or to a POST of HTTP+SSE, may hold any document.
func TestDocumentsInAnswers(t *testing.T) {
	brief.WholeRuns(t)
	for name, method := range map[string]string{transport.NameHTTP: http.MethodDelete, transport.NameSSE: http.MethodPost} {
		run := conductBehind(t, name, serverOptions(), func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != method {
					h.ServeHTTP(w, r)
					return
				}
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, r)
				if answer.Code < 300 {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"status":"ok"}`)
					return
				}
				maps.Copy(w.Header(), answer.Header())
				w.WriteHeader(answer.Code)
				_, _ = answer.Body.WriteTo(w)
			})
		}, "base", "http", "sse", "schema")
		for _, q := range run.Requirements {
			if q.Verdict == result.Fail || q.Verdict == result.Warn {
				t.Errorf("over %s %s is %s: %s", name, q.ID, q.Verdict, killmatrix.Why(q))
			}
		}
	}
}

// A tool may fail with -32601 because it is the client that lacks something.
func TestMethodMissingAtTheClient(t *testing.T) {
	const id = "tools.list.callable"
	for message, want := range map[string]result.Verdict{
		"Elicitation not supported by client": result.Pass,
		"Method not found":                    result.Fail,
	} {
		o := serverOptions()
		o.Behaviour.Methods = map[string]server.Middleware{
			"tools/call": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if r.Params["name"] == "test_elicitation" {
					return nil, &wire.Error{Code: server.MethodNotFound, HasCode: true, Message: message}
				}
				return next(ctx, r)
			},
		}
		run := conductBehind(t, transport.NameHTTP, o, func(h http.Handler) http.Handler { return h }, id)
		for _, q := range run.Requirements {
			if q.ID == id && q.Verdict != want {
				t.Errorf("%q: %s is %s, not %s: %s", message, q.ID, q.Verdict, want, killmatrix.Why(q))
			}
		}
	}
}

// A server may at any time refuse too many requests, and end a session because another begins or because it is full.
// None of that is a finding, nor is the reaction of mcpconform.
func TestLimitedServers(t *testing.T) {
	brief.WholeRuns(t)
	isInitialize := func(r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && bytes.Contains(body, []byte(`"initialize"`))
	}
	tooMany := func(refused func(nth int64) bool, retryAfter string) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if refused(n.Add(1)) {
					w.Header().Set("Retry-After", retryAfter)
					http.Error(w, "too many requests", http.StatusTooManyRequests)
					return
				}
				h.ServeHTTP(w, r)
			})
		}
	}
	for _, tt := range []struct {
		name  string
		front func(http.Handler) http.Handler
	}{
		{"one request in thirty is too much", tooMany(func(n int64) bool { return n%30 == 0 }, "0")},
		{"all requests from some time on are too much", tooMany(func(n int64) bool { return n > 150 }, "3600")},
		{"one session at a time", func(h http.Handler) http.Handler {
			var mu sync.Mutex
			var live string
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if isInitialize(r) {
					mu.Lock()
					defer mu.Unlock()
					h.ServeHTTP(w, r)
					live = w.Header().Get("Mcp-Session-Id")
					return
				}
				mu.Lock()
				gone := r.Header.Get("Mcp-Session-Id") != "" && r.Header.Get("Mcp-Session-Id") != live
				mu.Unlock()
				if gone {
					http.Error(w, "the session has ended", http.StatusNotFound)
					return
				}
				h.ServeHTTP(w, r)
			})
		}},
		{"two sessions at a time", func(h http.Handler) http.Handler {
			var mu sync.Mutex
			live := make(map[string]bool)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				opens := isInitialize(r)
				mu.Lock()
				defer mu.Unlock()
				if opens && len(live) >= 2 {
					http.Error(w, "too many sessions", http.StatusServiceUnavailable)
					return
				}
				if !opens {
					if r.Method == http.MethodDelete {
						delete(live, r.Header.Get("Mcp-Session-Id"))
					}
					mu.Unlock()
					defer mu.Lock()
				}
				h.ServeHTTP(w, r)
				if id := w.Header().Get("Mcp-Session-Id"); opens && id != "" {
					live[id] = true
				}
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run := conductBehind(t, transport.NameHTTP, serverOptions(), tt.front)
			passed := exonerated(t, run)
			t.Logf("%d requirements passed", passed)
			if passed == 0 {
				t.Error("nothing was exercised")
			}
		})
	}
}

// A server may give a GET without session id the answer of one that offers no stream.
func TestStreamOfSessionsAlone(t *testing.T) {
	const id = "http.server.session-missing-400"
	run := conductBehind(t, transport.NameHTTP, serverOptions(), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			h.ServeHTTP(w, r)
		})
	}, id)
	if q := run.Requirements[0]; q.Verdict != result.Pass {
		t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
	}
}

// The URL of a server may lead to another path of it, as that of many does where
// the slash at the end is missing.
func TestMovedEndpoint(t *testing.T) {
	brief.WholeRuns(t)
	const id = "lifecycle.init.answered"
	for _, target := range []string{server.PathMCP, server.PathMCP + "/../../", "http://elsewhere.example/"} {
		run := conductBehind(t, transport.NameHTTP, serverOptions(), func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/moved" {
					w.Header().Set("Location", cmp.Or(strings.TrimSuffix(target, server.PathMCP), "/moved"))
					w.WriteHeader(http.StatusTemporaryRedirect)
					return
				}
				r.URL.Path = server.PathMCP
				h.ServeHTTP(w, r)
			})
		}, id, "http.server.*")
		for _, q := range run.Requirements {
			bad := q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error
			if target == server.PathMCP && (bad || q.ID == id && q.Verdict != result.Pass) || target != server.PathMCP && q.ID == id && !bad {
				t.Errorf("moved to %q: %s is %s: %s", target, q.ID, q.Verdict, killmatrix.Why(q))
			}
		}
	}
}
