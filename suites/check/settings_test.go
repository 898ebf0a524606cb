package check

import "testing"

func TestAllowed(t *testing.T) {
	tool := func(name string, readOnly any) map[string]any {
		return map[string]any{"name": name, "annotations": map[string]any{"readOnlyHint": readOnly, "destructiveHint": false}}
	}
	for _, tt := range []struct {
		name string
		tool map[string]any
		mode CallMode
		want bool
	}{
		{"annotated", tool("search", true), CallSafe, true},
		{"annotated otherwise", tool("search", false), CallSafe, false},
		{"annotated wrongly", tool("search", "true"), CallSafe, false},
		{"not annotated", map[string]any{"name": "search"}, CallSafe, false},
		{"named", tool("delete", false), CallSafe, false},
		{"named for a role", tool("known_secrets", false), CallSafe, true},
		{"shows the environment", tool("get-env", true), CallSafe, false},
		{"shows the environment, in words", tool("PrintEnv", true), CallSafe, false},
		{"shows the environment, in camel case", tool("getEnvironment", true), CallSafe, false},
		{"shows secrets", tool("list_secrets", true), CallSafe, false},
		{"shows nothing of the kind", tool("envelope_count_passwordless", true), CallSafe, true},
		{"all", tool("get-env", false), CallAll, true},
		{"none", tool("known_secrets", true), CallNone, false},
	} {
		s := Settings{CallTools: tt.mode, ToolRoles: map[string]Call{"slow": {Tool: "known_secrets"}}}
		if got := s.Allowed(tt.tool); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
