package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Every tool that is left alone is named with the reason, and no other one.
func TestUncalled(t *testing.T) {
	readOnly := map[string]any{"readOnlyHint": true}
	items := []map[string]any{
		{"name": "list_files", "annotations": readOnly},
		{"name": "get-env", "annotations": readOnly},
		{"name": "write_file"},
		{"name": "named"},
		{"title": "without a name"},
	}
	const unmarked, secret, off = "not annotated readOnlyHint: true", "named as if it showed secrets", "calls of tools are turned off"
	for mode, want := range map[check.CallMode][]result.Uncalled{
		check.CallSafe: {{Tool: "get-env", Reason: secret}, {Tool: "write_file", Reason: unmarked}},
		check.CallNone: {{Tool: "list_files", Reason: off}, {Tool: "get-env", Reason: off}, {Tool: "write_file", Reason: off}, {Tool: "named", Reason: off}},
		check.CallAll:  nil,
	} {
		target := &check.Target{
			Settings: check.Settings{CallTools: mode, ToolRoles: map[string]check.Call{"error": {Tool: "named"}}},
			Lists:    map[string]*check.List{"tools/list": {Method: "tools/list", Items: items}},
		}
		if diff := cmp.Diff(want, target.Uncalled()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
		for _, tool := range target.Callable() {
			for _, u := range want {
				if u.Tool == tool["name"] {
					t.Errorf("%s: %s may be called, and is said not to have been", mode, u.Tool)
				}
			}
		}
	}
}
