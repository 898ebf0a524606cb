package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// conductAsks runs the checks of what servers ask, and of the utilities, against
// the reference server with a behaviour.
func conductAsks(t *testing.T, b server.Behaviour, ids ...string) map[string]result.Requirement {
	t.Helper()
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(server.Options{Behaviour: b}).RunStdio}}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: map[string]check.Call{
		"slow":        {Tool: "slow", Arguments: map[string]any{"seconds": 0.5}},
		"progress":    {Tool: "test_tool_with_progress"},
		"sampling":    {Tool: "test_sampling", Arguments: map[string]any{"prompt": "Say hello."}},
		"elicitation": {Tool: "test_elicitation", Arguments: map[string]any{"message": "Who are you?"}},
		"roots":       {Tool: "test_roots"},
		"ping":        {Tool: "test_ping"},
	}}}, suites.Options{Selection: suites.Selection{Select: ids}, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range run.Harness {
		t.Errorf("mcpconform itself: %s", h.Message)
	}
	found := make(map[string]result.Requirement)
	for _, q := range run.Requirements {
		found[q.ID] = q
	}
	return found
}

var topics = []string{
	"progress.*", "cancellation.*", "sampling.*", "roots.*", "elicitation.*", "ping.*", "meta.attach.*",
	"lifecycle.operation.*", "lifecycle.capability.*",
}

func TestAsksOfReference(t *testing.T) {
	for id, q := range conductAsks(t, server.Behaviour{}, topics...) {
		emits := strings.HasPrefix(id, "lifecycle.capability.server-emits-")
		switch {
		case q.Verdict == result.Pass, q.Verdict == result.Skip, emits:
		default:
			t.Errorf("%s is %s: %s %+v", id, q.Verdict, q.Reason, q.Findings)
		}
	}
}

// failWhen takes an answer of the client for an error when it has a trait.
func failWhen(odd func(result any) bool) server.Behaviour {
	return server.Behaviour{Receive: func(s *server.Session, m *wire.Message, next func()) {
		if m.IsResponse() && odd(m.Result) {
			m.Kind, m.Error = wire.ErrorResponse, &wire.Error{Code: -32603, HasCode: true, Message: "odd"}
		}
		next()
	}}
}

func TestAsksFaults(t *testing.T) {
	refuses := func(path string, bad func(v any) bool) server.Behaviour {
		return failWhen(func(result any) bool {
			_, sampled := wire.At(result, "model").(string)
			return sampled && bad(wire.At(result, strings.Split(path, ".")...))
		})
	}
	token := func(bad func(v any) bool) server.Behaviour {
		return server.Behaviour{Methods: map[string]server.Middleware{
			"*": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if v := wire.At(r.Params, "_meta", "progressToken"); v != nil && bad(v) {
					return nil, &wire.Error{Code: -32602, HasCode: true, Message: "no"}
				}
				return next(ctx, r)
			},
		}}
	}
	onCancel := func(answer func(s *server.Session, m *wire.Message) bool) server.Behaviour {
		return server.Behaviour{Receive: func(s *server.Session, m *wire.Message, next func()) {
			if m.Method == "notifications/cancelled" && answer(s, m) {
				s.Send(&server.Outgoing{Session: s, Kind: wire.ErrorResponse, Message: map[string]any{
					"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32602, "message": "cannot cancel"},
				}})
			}
			next()
		}}
	}
	requestID := func(m *wire.Message) wire.ID { return wire.ReadID(wire.At(m.Params, "requestId")) }
	cases := []struct {
		id        string
		behaviour server.Behaviour
	}{
		{"cancellation.no-response", server.Behaviour{AnswerCancelled: true, Methods: map[string]server.Middleware{
			"tools/call": server.Named("slow", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				r.Detach()
				return next(context.WithoutCancel(ctx), r)
			}),
		}}},
		{"cancellation.ignore-unknown", onCancel(func(_ *server.Session, m *wire.Message) bool { return requestID(m).Key() == "987654321" })},
		{"cancellation.ignore-malformed", onCancel(func(_ *server.Session, m *wire.Message) bool { return !requestID(m).Usable() })},
		{"progress.request", token(func(v any) bool { return v == "mcpconform-any" })},
		{"progress.token.any-means", token(func(v any) bool { return v == "" })},
		{"sampling.result.stop-reason-optional", refuses("stopReason", func(v any) bool { return v == nil })},
		{"sampling.result.stop-reason-open", refuses("stopReason", func(v any) bool { return v != nil && v != "endTurn" })},
		{"sampling.max-tokens.fewer", refuses("content.text", func(v any) bool { text, ok := v.(string); return ok && len(text) < 2 })},
		{"sampling.preferences.advisory", refuses("model", func(v any) bool { return v != "mcpconform" })},
		{"meta.attach.result", refuses("_meta", func(v any) bool { return v != nil })},
		{"lifecycle.capability.server-uses-sampling", server.Behaviour{IgnoreCapabilities: true}},
		{"lifecycle.capability.server-uses-elicitation", server.Behaviour{IgnoreCapabilities: true}},
		{"lifecycle.capability.server-uses-roots", server.Behaviour{IgnoreCapabilities: true}},
		{"lifecycle.operation.version", server.Behaviour{IgnoreCapabilities: true}},
		{"elicitation.server.content-absent", failWhen(func(result any) bool {
			return wire.At(result, "action") == "decline" && wire.At(result, "content") == nil
		})},
		{"elicitation.security.validate-content", server.Behaviour{Methods: map[string]server.Middleware{
			"tools/call": server.Named("test_elicitation", func(ctx context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
				v, err := r.Call(ctx, "elicitation/create", map[string]any{"message": "Who?", "requestedSchema": map[string]any{
					"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
				}})
				if err != nil {
					return nil, &wire.Error{Code: -32603, HasCode: true, Message: err.Error()}
				}
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": "hello " + wire.Show(wire.At(v, "content", "name"))}}}, nil
			}),
		}}},
		{"sampling.security.validate-content", server.Behaviour{Methods: map[string]server.Middleware{
			"tools/call": server.Named("test_sampling", func(ctx context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
				v, err := r.Call(ctx, "sampling/createMessage", map[string]any{"messages": []any{}, "maxTokens": 9})
				if err != nil {
					return nil, &wire.Error{Code: -32603, HasCode: true, Message: err.Error()}
				}
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": "got " + wire.Show(wire.At(v, "content"))}}}, nil
			}),
		}}},
	}
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			q := conductAsks(t, c.behaviour, c.id)[c.id]
			if q.Verdict != result.Fail && q.Verdict != result.Warn {
				t.Errorf("the fault was not found: %s %s", q.Verdict, q.Reason)
			}
		})
	}
}
