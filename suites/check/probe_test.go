package check_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// nameless is an engine for the reference server with tools whose names tell
// nothing, and with one that takes its time. The names that they had are
// returned by those that they have.
func nameless() (*check.Engine, map[string]string) {
	catalogue, had := server.DefaultCatalogue(), make(map[string]string)
	for i, tool := range catalogue.Tools {
		name := fmt.Sprintf("tool%d", i)
		had[name] = tool.Name()
		tool.Definition["name"] = name
		if annotations, ok := tool.Definition["annotations"].(map[string]any); ok && had[name] == "slow" {
			annotations["readOnlyHint"] = false // it would take two seconds
		} else if had[name] == "update_resource" {
			annotations["readOnlyHint"] = true
		}
	}
	had["nap"] = "nap"
	catalogue.Tools = append(catalogue.Tools, &server.Tool{
		Definition: map[string]any{
			"name": "nap", "annotations": map[string]any{"readOnlyHint": true}, "inputSchema": map[string]any{"type": "object"},
		},
		Call: func(ctx context.Context, _ *server.Request, _ map[string]any) (any, *wire.Error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return map[string]any{"content": []any{}}, nil
		},
	})
	return offering(server.Options{Catalogue: catalogue}), had
}

// offering is an engine for a reference server whose safe tools may be called.
func offering(o server.Options) *check.Engine {
	e := engine(time.Minute)
	e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "tools", Run: server.New(o).RunStdio}}
	e.Settings = check.Settings{CallTools: check.CallSafe}
	return e
}

// updating returns a catalogue with few safe tools. The name of the tool that updates a resource tells nothing.
func updating() *server.Catalogue {
	catalogue := server.DefaultCatalogue()
	for i, tool := range catalogue.Tools {
		quick := slices.Contains([]string{"echo", "update_resource", "log_levels", "resource_links", "toggle_prompt"}, tool.Name())
		tool.Definition["annotations"] = map[string]any{"readOnlyHint": quick}
		if tool.Name() == "update_resource" {
			tool.Definition["name"] = fmt.Sprintf("tool%d", i)
		}
	}
	return catalogue
}

// probed runs a check with the needs, and returns what is known of the target after that.
func probed(t *testing.T, e *check.Engine, needs check.Needs) *check.Target {
	t.Helper()
	target, err := e.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Needs: needs, Body: func(*check.T) {}}
	e.Start(t.Context(), []*check.Check{c}, nil)[0].Await()
	e.Finish(t.Context())
	return target
}

// TestProbeTools tests that the effects of tools are learned by calls, only of tools that may be called, and only if
// a check needs to know.
func TestProbeTools(t *testing.T) {
	roles := []string{"sampling", "elicitation", "roots", "progress", "slow", "log", "log-levels", "resource-link", "tools-change", "resource-update"}
	for _, c := range []struct {
		name  string
		needs check.Needs
		mode  check.CallMode
		want  map[string]string // names that the tools had, by role
	}{
		{"safe", check.Needs{ToolRoles: roles}, check.CallSafe, map[string]string{
			"sampling": "test_sampling", "elicitation": "test_elicitation", "roots": "test_roots", "progress": "test_tool_with_progress",
			"slow": "nap", "log": "log_levels", "log-levels": "log_levels", "resource-link": "resource_links",
			"resource-update": "update_resource",
		}},
		{"some", check.Needs{ToolRoles: []string{"roots"}}, check.CallSafe, map[string]string{"roots": "test_roots"}},
		{"none wanted", check.Needs{}, check.CallSafe, nil},
		{"none that applies", check.Needs{ToolRoles: roles, Transports: []string{"http"}}, check.CallSafe, nil},
		{"none allowed", check.Needs{ToolRoles: roles}, check.CallNone, nil},
	} {
		e, had := nameless()
		e.Settings.CallTools = c.mode
		target := probed(t, e, c.needs)
		for _, role := range roles {
			call, _ := target.ToolFor(role)
			if got := had[call.Tool]; got != c.want[role] {
				t.Errorf("%s: %s is served by %q, not %q", c.name, role, got, c.want[role])
			}
		}
	}
	goleak.VerifyNone(t)
}

// An update may come after the answer, when the next tools are being called.
func TestProbeToolsLateUpdate(t *testing.T) {
	for _, late := range []time.Duration{0, 15 * time.Millisecond, 150 * time.Millisecond} {
		o := server.Options{Catalogue: updating()}
		o.Behaviour.Send = server.OnMessage("notifications/resources/updated", func(out *server.Outgoing) []*server.Outgoing {
			out.Delay = late
			return []*server.Outgoing{out}
		})
		target := probed(t, offering(o), check.Needs{ToolRoles: []string{"resource-update"}})
		if call, _ := target.ToolFor("resource-update"); !strings.HasPrefix(call.Tool, "tool") {
			t.Errorf("updates that come %v late are said to be caused by %q", late, call.Tool)
		}
	}
	goleak.VerifyNone(t)
}

// TestProbeToolsNamed tests that the search skips a role for which the user has named a tool.
func TestProbeToolsNamed(t *testing.T) {
	e, had := nameless()
	e.Settings.ToolRoles = map[string]check.Call{"roots": {Tool: "tool0"}}
	target := probed(t, e, check.Needs{ToolRoles: []string{"roots"}})
	if call, _ := target.ToolFor("roots"); call.Tool != "tool0" || len(target.Observed) > 0 {
		t.Errorf("roots is served by %q; observed: %v", had[call.Tool], target.Observed)
	}
	goleak.VerifyNone(t)
}

// A tool that changes lists is found even if the server does not tell of it, and if the next call undoes it.
func TestProbeToolsChangeUnannounced(t *testing.T) {
	catalogue := server.DefaultCatalogue()
	var change *server.Tool // of the resources
	for _, tool := range catalogue.Tools {
		if tool.Name() == "toggle_resource" {
			change = tool
		}
	}
	for _, tool := range catalogue.Tools {
		if annotations, ok := tool.Definition["annotations"].(map[string]any); ok {
			annotations["readOnlyHint"] = tool.Name() == "echo" || tool.Name() == "toggle_prompt"
		}
		if tool.Name() == "toggle_prompt" {
			tool.Definition["name"] = "tool"
			prompts := tool.Call
			tool.Call = func(ctx context.Context, r *server.Request, arguments map[string]any) (any, *wire.Error) {
				if _, err := change.Call(ctx, r, arguments); err != nil {
					return nil, err
				}
				return prompts(ctx, r, arguments)
			}
		}
	}
	o := server.Options{Catalogue: catalogue}
	o.Behaviour.Send = func(out *server.Outgoing) []*server.Outgoing {
		if strings.HasSuffix(out.Method, "/list_changed") {
			return nil
		}
		return []*server.Outgoing{out}
	}
	roles := []string{"prompts-change", "resources-change", "tools-change"}
	target := probed(t, offering(o), check.Needs{ToolRoles: roles})
	for _, role := range roles[:2] {
		if call, _ := target.ToolFor(role); call.Tool != "tool" {
			t.Errorf("%s is served by %q, not by tool", role, call.Tool)
		}
	}
	if call, ok := target.ToolFor("tools-change"); ok {
		t.Errorf("the tools are changed by %q", call.Tool)
	}
	goleak.VerifyNone(t)
}

// A tool that changes a resource is found even if the server does not tell of it.
func TestProbeToolsUpdateUnannounced(t *testing.T) {
	for _, changes := range []bool{true, false} {
		o := server.Options{Catalogue: updating()}
		o.Behaviour.Send = server.OnMessage("notifications/resources/updated", func(*server.Outgoing) []*server.Outgoing { return nil })
		if !changes {
			o.Behaviour.Wrap("resources/read", server.Edit(func(_ *server.Request, result map[string]any) { result["contents"] = []any{} }))
		}
		target := probed(t, offering(o), check.Needs{ToolRoles: []string{"resource-update"}})
		if call, ok := target.ToolFor("resource-update"); ok != changes || ok && !strings.HasPrefix(call.Tool, "tool") {
			t.Errorf("a resource that changes (%v) without an update is changed by %q", changes, call.Tool)
		}
	}
	goleak.VerifyNone(t)
}
