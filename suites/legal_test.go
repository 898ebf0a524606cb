package suites_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// wrap puts a middleware around a method of the server under test.
func wrap(method string, m server.Middleware) func(*server.Options) {
	return func(o *server.Options) { o.Behaviour.Wrap(method, m) }
}

// refusing answers the requests that fit with an error.
func refusing(method string, code int64, message string, fits func(r *server.Request) bool) func(*server.Options) {
	return wrap(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if fits(r) {
			return nil, &wire.Error{Code: code, HasCode: true, Message: message}
		}
		return next(ctx, r)
	})
}

// declining ends calls of the eliciting tool in an error unless the user accepts.
func declining(code int64, message string) func(*server.Options) {
	return wrap("tools/call", server.Named("test_elicitation", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if problem != nil || strings.Contains(string(client.Marshal(result)), "accept") {
			return result, problem
		}
		return nil, &wire.Error{Code: code, HasCode: true, Message: message}
	}))
}

// Servers that the text allows, and that refuse something or leave something out. A
// check that needs what they lack is inconclusive, and none finds anything.
func TestLegalServers(t *testing.T) {
	brief.WholeRuns(t)
	named := func(name string) func(*server.Request) bool {
		return func(r *server.Request) bool { return r.Params["uri"] == name }
	}
	for _, tt := range []struct {
		name, transport string
		change          func(*server.Options)
	}{
		{"a declined call is an error", transport.NameStdio, declining(-32602, "The user has not given the data")},
		{"a declined call is the user's error", transport.NameStdio, declining(-32603, "User declined")},
		{"accepted data is of no use", transport.NameStdio, wrap("tools/call", server.Named("test_elicitation", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			result, problem := next(ctx, r)
			if o, ok := result.(map[string]any); ok && strings.Contains(string(client.Marshal(o)), "accept") {
				o["isError"] = true
			}
			return result, problem
		}))},
		{"the first resource cannot be subscribed to", transport.NameStdio, refusing("resources/subscribe", -32602, "This resource never changes", named("test://static-text"))},
		{"no resource of the list can be subscribed to", transport.NameStdio, refusing("resources/subscribe", -32602, "This resource never changes", func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return !strings.HasPrefix(uri, "test://drafts/")
		})},
		{"a resource differs at each reading", transport.NameStdio, func(o *server.Options) {
			o.Behaviour.Wrap("resources/read", server.Named("test://watched-resource", server.EditItems("contents", func(item map[string]any) {
				item["text"] = time.Now().Format(time.DateTime) // which does not differ at once
			})))
			o.Behaviour.Wrap("tools/call", server.Named("update_resource", server.Always(map[string]any{"content": []any{}})))
		}},
		{"DELETE is not implemented", transport.NameHTTP, func(o *server.Options) {
			o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodDelete {
						w.WriteHeader(http.StatusNotImplemented)
						return
					}
					next.ServeHTTP(w, r)
				})
			}
		}},
		{"a list that is not declared is empty", transport.NameStdio, func(o *server.Options) {
			o.Without = []string{"prompts", "resources.subscribe"}
			o.Behaviour.Wrap("prompts/list", server.Always(map[string]any{"prompts": []any{}}))
			o.Behaviour.Wrap("resources/unsubscribe", server.Always(map[string]any{}))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := serverOptions()
			tt.change(&o)
			if passed := exonerated(t, conducted(t, tt.transport, o)); passed < 200 {
				t.Errorf("only %d requirements passed", passed)
			}
		})
	}
}
