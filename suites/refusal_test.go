package suites_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A server that wants a session id which it has not given serves nothing. That is
// told once, and not by each check that meets the refusal.
func TestServerThatServesNothing(t *testing.T) {
	o := serverOptions()
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(withoutID{w}, r) })
	}
	run := conducted(t, transport.NameHTTP, o)
	served := []string{"ping.response-prompt", "tools.list.answered", "resources.list.answered", "prompts.list.answered"}
	exonerated(t, run, served...)
	for _, id := range served {
		for _, q := range run.Requirements {
			if q.ID == id && q.Verdict != result.Fail {
				t.Errorf("%s is %s", id, q.Verdict)
			}
		}
	}
}

// withoutID loses the session id.
type withoutID struct{ http.ResponseWriter }

func (w withoutID) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w withoutID) WriteHeader(status int) {
	w.Header().Del("Mcp-Session-Id")
	w.ResponseWriter.WriteHeader(status)
}

// A server of a revision without initialize names its versions in answer to server/discover.
func TestServerWithoutHandshake(t *testing.T) {
	for version, verdict := range map[string]result.Overall{
		"2026-07-28": result.Incomplete, "2025-06-18": result.NotConformant, "mcpconform": result.NotConformant,
	} {
		for _, over := range []string{transport.NameStdio, transport.NameHTTP} {
			o := serverOptions()
			unknown := &wire.Error{Code: -32601, HasCode: true, Message: "Method not found"}
			o.Behaviour.Methods = map[string]server.Middleware{
				"initialize": func(context.Context, *server.Request, server.Handler) (any, *wire.Error) { return nil, unknown },
				"server/discover": func(context.Context, *server.Request, server.Handler) (any, *wire.Error) {
					return map[string]any{"resultType": "complete", "supportedVersions": []string{version}}, nil
				},
			}
			o.Behaviour.Lifecycle.Early = true
			o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Mcp-Method") != "server/discover" {
						next.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":[%q]}}}`, version)
				})
			}
			if run := conducted(t, over, o); run.Verdict != verdict {
				t.Errorf("%s %s: the verdict is %s: %s", over, version, run.Verdict, run.Reason)
			}
		}
	}
}

// A server that refuses the revision and names those that it supports is not tested
// here, and not broken either.
func TestServerOfAnotherRevision(t *testing.T) {
	for name, refusal := range map[string]wire.Error{
		"in the data":    {Code: -32602, HasCode: true, Message: "Unsupported protocol version", Data: map[string]any{"supported": []any{"2024-11-05"}, "requested": "2025-06-18"}},
		"in the message": {Code: -32000, HasCode: true, Message: "Unsupported protocol version 2025-06-18 (supported: 2024-11-05, 2025-03-26)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := serverOptions()
			o.Behaviour.Methods = map[string]server.Middleware{"initialize": func(context.Context, *server.Request, server.Handler) (any, *wire.Error) {
				return nil, &refusal
			}}
			run := conducted(t, transport.NameHTTP, o)
			exonerated(t, run, "lifecycle.version.offer-other")
			if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "speaks another revision") {
				t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
			}
		})
	}
}
