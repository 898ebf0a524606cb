package server_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// featureRoles are the tools of the reference server.
func featureRoles() map[string]check.Call {
	roles := make(map[string]check.Call)
	for role, tool := range map[string]string{
		"error": "test_error_handling", "structured": "sum", "image": "test_image_content", "audio": "test_audio_content",
		"resource-link": "resource_links", "embedded-resource": "test_embedded_resource",
		"mixed-content": "test_multiple_content_types", "log": "test_tool_with_logging", "log-levels": "log_levels",
		"tools-change": "toggle_tool", "resources-change": "toggle_resource", "prompts-change": "toggle_prompt",
		"resource-update": "update_resource",
	} {
		roles[role] = check.Call{Tool: tool}
	}
	roles["structured"] = check.Call{Tool: "sum", Arguments: map[string]any{"a": 1, "b": 2}}
	return roles
}

// runFeatures runs the checks of the server's features against a server and
// returns the requirements with a verdict.
func runFeatures(t *testing.T, o server.Options, timeout time.Duration, ids ...string) map[string]result.Requirement {
	t.Helper()
	reference := server.New(o)
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: reference.RunStdio}}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: featureRoles()}}, suites.Options{Selection: suites.Selection{Select: ids}, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]result.Requirement)
	for _, q := range run.Requirements {
		all[q.ID] = q
	}
	for _, f := range run.Harness {
		t.Errorf("a message of mcpconform: %s", f.Message)
	}
	return all
}

func TestFeaturesOfReferenceServer(t *testing.T) {
	// No configuration of these tests makes these requirements observable.
	open := []string{
		"logging.security.no-credentials", "logging.security.no-personal-data",
		// The reference server declares completions.
		"completion.error.unsupported-code",
	}
	for id, q := range runFeatures(t, server.Options{}, 0, "resources.*", "prompts.*", "completion.*", "logging.*", "content.*", "tools.*", "pagination.*") {
		switch {
		case q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error:
			t.Errorf("%s: %s: %+v", id, q.Verdict, q.Findings)
		case q.Observable && q.Verdict != result.Pass && !slices.Contains(open, id):
			t.Errorf("%s is %s: %s (%s)", id, q.Verdict, q.Reason, strings.Join(q.Checks, ", "))
		}
	}
}

// careless answers with a result where next refuses.
func careless(result map[string]any) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		answer, problem := next(ctx, r)
		if problem != nil {
			return result, nil
		}
		return answer, nil
	}
}

// mute drops the notifications of a method.
func mute(method string) func(*server.Outgoing) []*server.Outgoing {
	return server.OnMessage(method, func(*server.Outgoing) []*server.Outgoing { return nil })
}

// brokenTimeout is how long is waited for what does not come.
const brokenTimeout = 2 * time.Second

// Each broken server must be found out by the check, or by the rule that the
// check provokes.
func TestFeaturesOfBrokenServers(t *testing.T) {
	type middleware = map[string]server.Middleware
	notFound := server.Fail(-32002, "Resource not found")
	contents := map[string]any{"contents": []any{map[string]any{"uri": "test://x", "text": "root:x:0:0"}}}
	message := map[string]any{"messages": []any{}}
	suggestion := map[string]any{"completion": map[string]any{"values": []any{}}}
	asLast := func(ctx context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
		return map[string]any{}, nil // says yes and does nothing
	}
	for _, c := range []struct {
		id        string
		behaviour server.Behaviour
	}{
		{"resources.list.answered", server.Behaviour{Methods: middleware{"resources/list": server.Fail(-32603, "no")}}},
		{"resources.templates.answered", server.Behaviour{Methods: middleware{"resources/templates/list": server.Fail(-32601, "no")}}},
		{"resources.read.answered", server.Behaviour{Methods: middleware{"resources/read": notFound}}},
		{"resources.template.constructs-uris", server.Behaviour{Methods: middleware{
			"resources/templates/list": server.EditItems("resourceTemplates", func(item map[string]any) { item["uriTemplate"] = "/{id}" }),
		}}},
		{"resources.template.mime-type-uniform", server.Behaviour{Methods: middleware{
			"resources/read": server.EditItems("contents", func(item map[string]any) { item["mimeType"] = "image/png" }),
		}}},
		{"resources.error.not-found-code", server.Behaviour{Methods: middleware{"resources/read": server.Recode(-32002, -32602)}}},
		{"resources.security.validate-uris", server.Behaviour{Methods: middleware{"resources/read": careless(contents)}}},
		{"resources.subscribe.accepted", server.Behaviour{Methods: middleware{"resources/subscribe": server.Fail(-32603, "no")}}},
		{"resources.unsubscribe.accepted", server.Behaviour{Methods: middleware{"resources/unsubscribe": server.Fail(-32603, "no")}}},
		{"resources.updated.sent", server.Behaviour{Send: mute("notifications/resources/updated")}},
		{"resources.updated.ends-with-unsubscribe", server.Behaviour{Methods: middleware{"resources/unsubscribe": asLast}}},
		{"resources.list-changed.sent", server.Behaviour{Send: mute("notifications/resources/list_changed")}},
		{"prompts.list.answered", server.Behaviour{Methods: middleware{"prompts/list": server.Fail(-32603, "no")}}},
		{"prompts.get.answered", server.Behaviour{Methods: middleware{"prompts/get": server.Fail(-32601, "no")}}},
		{"prompts.error.invalid-name-code", server.Behaviour{Methods: middleware{"prompts/get": server.Recode(-32602, -32002)}}},
		{"prompts.error.missing-argument-code", server.Behaviour{Methods: middleware{"prompts/get": server.Recode(-32602, -32603)}}},
		{"prompts.arguments.validated", server.Behaviour{Methods: middleware{"prompts/get": careless(message)}}},
		{"prompts.get.arguments-omitted", server.Behaviour{Methods: middleware{"prompts/get": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Params["arguments"] == nil {
				return nil, &wire.Error{Code: -32602, Message: "arguments are missing"}
			}
			return next(ctx, r)
		}}}},
		{"prompts.list-changed.sent", server.Behaviour{Send: mute("notifications/prompts/list_changed")}},
		{"tools.list-changed.sent", server.Behaviour{Send: mute("notifications/tools/list_changed")}},
		{"tools.resource-link.resolvable", server.Behaviour{Methods: middleware{"resources/read": notFound, "resources/subscribe": notFound}}},
		{"completion.answered", server.Behaviour{Methods: middleware{"completion/complete": server.Fail(-32602, "no")}}},
		{"completion.context.accepted", server.Behaviour{Methods: middleware{"completion/complete": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Params["context"] != nil {
				return nil, &wire.Error{Code: -32602, Message: "context is unknown"}
			}
			return next(ctx, r)
		}}}},
		{"completion.error.invalid-prompt-code", server.Behaviour{Methods: middleware{"completion/complete": careless(suggestion)}}},
		{"completion.error.missing-argument-code", server.Behaviour{Methods: middleware{"completion/complete": server.Recode(-32602, -32603)}}},
		{"completion.security.validate-inputs", server.Behaviour{Methods: middleware{"completion/complete": careless(suggestion)}}},
		{"logging.set-level.all-levels", server.Behaviour{Methods: middleware{"logging/setLevel": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Params["level"] == "notice" {
				return nil, &wire.Error{Code: -32602, Message: "unknown level"}
			}
			return next(ctx, r)
		}}}},
		{"logging.error.invalid-level-code", server.Behaviour{Methods: middleware{"logging/setLevel": careless(map[string]any{})}}},
		{"logging.filter.none-below", server.Behaviour{Methods: middleware{"logging/setLevel": asLast}}},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			q := runFeatures(t, server.Options{Behaviour: c.behaviour}, brokenTimeout, c.id)[c.id]
			if q.Verdict != result.Fail && q.Verdict != result.Warn {
				t.Errorf("the verdict is %s: %s", q.Verdict, q.Reason)
			}
		})
	}
}

// A server that keeps messages back after the level was changed for the n-th
// time: to a higher one, and back to debug.
func TestLogMessagesKeptBack(t *testing.T) {
	for id, change := range map[string]int64{"logging.filter.all-above": 2, "logging.set-level.replaces": 3} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			type key struct{}
			q := runFeatures(t, server.Options{Behaviour: server.Behaviour{
				Send: func(out *server.Outgoing) []*server.Outgoing {
					n := out.Session.Value(key{}, func() any { return new(atomic.Int64) }).(*atomic.Int64)
					if out.Answers != nil && out.Answers.Method == "logging/setLevel" {
						n.Add(1)
					}
					if out.Method == "notifications/message" && n.Load() == change {
						return nil
					}
					return []*server.Outgoing{out}
				},
			}}, brokenTimeout, id)[id]
			if q.Verdict != result.Fail && q.Verdict != result.Warn {
				t.Errorf("the verdict is %s: %s", q.Verdict, q.Reason)
			}
		})
	}
}

func TestUndeclaredCompletion(t *testing.T) {
	o := server.Options{Without: []string{"completions"}}
	const code, declared = "completion.error.unsupported-code", "completion.capability.declared"
	for id, q := range runFeatures(t, o, 0, code, declared) {
		if q.Verdict != result.Pass {
			t.Errorf("%s: %s: %s", id, q.Verdict, q.Reason)
		}
	}
	// An empty list of suggestions offers nothing; it is what offers something that has to be declared.
	for want, values := range map[result.Verdict][]any{result.Pass: {}, result.Fail: {"red", "green"}} {
		o.Behaviour.Methods = map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Method == "completion/complete" {
				return map[string]any{"completion": map[string]any{"values": values}}, nil
			}
			return next(ctx, r)
		}}
		if q := runFeatures(t, o, 0, declared)[declared]; q.Verdict != want {
			t.Errorf("%s with the suggestions %v: %s: %s", declared, values, q.Verdict, q.Reason)
		}
	}
}

// TestShortLivedItems tests lists that change at any time: a server may refuse an item that is gone as unknown, and
// must not refuse an item that is still listed.
func TestShortLivedItems(t *testing.T) {
	for _, stays := range []bool{false, true} {
		var n atomic.Int64
		short := func(member, identity, prefix string) server.Middleware {
			return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				answer, problem := next(ctx, r)
				page, _ := answer.(map[string]any)
				items, ok := page[member].([]any)
				if !ok {
					return answer, problem
				}
				name := prefix + "stays"
				if !stays {
					name = prefix + strconv.FormatInt(n.Add(1), 10)
				}
				page[member] = append(slices.Clone(items), map[string]any{
					"name": name, identity: name, "inputSchema": map[string]any{"type": "object"},
				})
				return page, problem
			}
		}
		found := runFeatures(t, server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
			"tools/list":     short("tools", "name", "short_lived_"),
			"resources/list": short("resources", "uri", "short:lived-"),
			"prompts/list":   short("prompts", "name", "short_lived_"),
		}}}, 0, "tools.list.callable", "resources.read.answered", "prompts.get.answered")
		want := result.Pass
		if stays {
			want = result.Fail
		}
		for _, id := range []string{"tools.list.callable", "resources.read.answered", "prompts.get.answered"} {
			if q := found[id]; q.Verdict != want {
				t.Errorf("items stay: %v: %s is %s: %s %+v", stays, id, q.Verdict, q.Reason, q.Findings)
			}
		}
	}
}

// An argument may be completed only after the others of the same.
func TestCompletionInOrder(t *testing.T) {
	inOrder := func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		settled, _ := wire.At(r.Params, "context", "arguments").(map[string]any)
		if wire.At(r.Params, "ref", "name") == "test_prompt_with_arguments" && len(settled) == 0 {
			return nil, &wire.Error{Code: -32602, Message: "Invalid params: the other argument comes first"}
		}
		return next(ctx, r)
	}
	found := runFeatures(t, server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{"completion/complete": inOrder}}},
		0, "completion.answered", "completion.context.accepted")
	for id, q := range found {
		if strings.HasPrefix(id, "completion.") && (q.Verdict == result.Fail || q.Verdict == result.Warn) {
			t.Errorf("%s is %s: %+v", id, q.Verdict, q.Findings)
		}
	}
}
