package check

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

func object(properties map[string]any, required ...any) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// fixtureTools is enough for a server to be recognised.
var fixtureTools = []map[string]any{
	{"name": "test_simple_text", "inputSchema": object(nil)},
	{"name": "test_error_handling", "inputSchema": object(nil)},
	{"name": "test_sampling", "inputSchema": object(map[string]any{"prompt": map[string]any{"type": "string", "const": "generated"}}, "prompt")},
	{"name": "other", "inputSchema": object(map[string]any{"n": map[string]any{"const": "generated"}}, "n")},
}

// withTools is the handshake of a server that declares tools.
func withTools() *client.Exchange {
	return &client.Exchange{Response: &wire.Event{Msg: wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}}}}`))}}
}

func target(mode CallMode, roles map[string]Call) *Target {
	return &Target{
		Init:     withTools(),
		Settings: Settings{CallTools: mode, ToolRoles: roles},
		Lists:    map[string]*List{"tools/list": {Items: append([]map[string]any{{"name": 7}}, fixtureTools...)}},
	}
}

func TestComplete(t *testing.T) {
	known := map[string]Call{
		"error":    {Tool: "test_error_handling"},
		"sampling": {Tool: "test_sampling", Arguments: map[string]any{"prompt": "Say hello."}},
	}
	for _, tt := range []struct {
		name    string
		target  *Target
		want    map[string]Call
		profile bool
	}{
		{"recognised", target(CallSafe, nil), known, true},
		{
			"the user wins", target(CallSafe, map[string]Call{"error": {Tool: "other"}, "slow": {Tool: "mine"}}),
			map[string]Call{"error": {Tool: "other"}, "slow": {Tool: "mine"}, "sampling": known["sampling"]}, true,
		},
		{"nothing may be called", target(CallNone, map[string]Call{"error": {Tool: "other"}}), map[string]Call{}, false},
		{"unknown", &Target{Init: withTools(), Settings: Settings{ToolRoles: map[string]Call{"slow": {Tool: "x"}}}}, map[string]Call{"slow": {Tool: "x"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.target.complete(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.target.Settings.ToolRoles); diff != "" {
				t.Error(diff)
			}
			if (tt.target.Profile != "") != tt.profile {
				t.Errorf("the profile is %q", tt.target.Profile)
			}
		})
	}
}

// TestCompleteLeavesTheSettings tests that discovery does not write to the roles of the user.
func TestCompleteLeavesTheSettings(t *testing.T) {
	mine := map[string]Call{"slow": {Tool: "other"}}
	if err := target(CallSafe, mine).complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Call{"slow": {Tool: "other"}}, mine); diff != "" {
		t.Error(diff)
	}
}

func TestProfiledToolsAreSafe(t *testing.T) {
	for mode, want := range map[CallMode][]string{
		CallNone: nil,
		CallSafe: {"test_error_handling", "test_sampling"},
		CallAll:  {"test_simple_text", "test_error_handling", "test_sampling", "other"},
	} {
		target := target(mode, nil)
		if err := target.complete(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range target.Callable() {
			if name, ok := tool["name"].(string); ok {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

func TestArguments(t *testing.T) {
	roles := map[string]Call{
		"error": {Tool: "other", Arguments: map[string]any{"n": "bad"}},
		"slow":  {Tool: "test_sampling", Arguments: map[string]any{"prompt": "the user's"}},
		"log":   {Tool: "test_simple_text"},
	}
	for _, tt := range []struct {
		name  string
		roles map[string]Call
		tool  map[string]any
		want  map[string]any
		ok    bool
	}{
		{"generated", nil, fixtureTools[3], map[string]any{"n": "generated"}, true},
		{"the profile's", nil, fixtureTools[2], map[string]any{"prompt": "Say hello."}, true},
		{"the user's before the profile's", roles, fixtureTools[2], map[string]any{"prompt": "the user's"}, true},
		{"not those of a failure", roles, fixtureTools[3], map[string]any{"n": "generated"}, true},
		{"named without arguments", roles, fixtureTools[0], map[string]any{}, true},
		{"a schema that nothing fits", nil, map[string]any{"name": "x", "inputSchema": false}, nil, false},
		{"a schema of no object", nil, map[string]any{"name": "x", "inputSchema": map[string]any{"const": json.Number("1")}}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := target(CallSafe, tt.roles)
			if err := target.complete(); err != nil {
				t.Fatal(err)
			}
			got, ok := target.Arguments(tt.tool)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("%t\n%s", ok, diff)
			}
		})
	}
}
