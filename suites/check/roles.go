package check

import (
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/internal/profile"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/values"
)

// complete adds the tool roles of a built-in profile to the roles that the user named. The user's roles win. There
// are none if nothing may be called, or if the server declares no tools.
func (t *Target) complete() error {
	t.given = t.Settings.ToolRoles
	t.Settings.ToolRoles = make(map[string]Call)
	if t.Settings.CallTools == CallNone || !t.Declares("tools") {
		t.given = nil
		return nil
	}
	defer maps.Copy(t.Settings.ToolRoles, t.given)
	profiles, err := profile.All()
	if err != nil {
		return err
	}
	server, _ := wire.At(t.Init.Result(), "serverInfo", "name").(string)
	var tools []string
	for _, tool := range t.Tools() {
		if name, ok := tool["name"].(string); ok {
			tools = append(tools, name)
		}
	}
	known, ok := profile.Recognise(profiles, server, tools)
	if !ok {
		return nil
	}
	t.Profile = known.Name
	t.Settings.Secrets = slices.Concat(t.Settings.Secrets, known.Secrets)
	t.Settings.Personal = slices.Concat(t.Settings.Personal, known.Personal)
	t.told = make(map[string]bool)
	for role, call := range known.ToolRoles {
		t.Settings.ToolRoles[role] = Call(call)
		t.told[call.Tool] = true
	}
	return nil
}

// Arguments returns arguments for a tool that the server lists: those that the user
// or a profile names for one of its roles, else some that fit its inputSchema. ok is
// false if there are none.
func (t *Target) Arguments(tool map[string]any) (arguments map[string]any, ok bool) {
	name, _ := tool["name"].(string)
	for _, roles := range []map[string]Call{t.given, t.Settings.ToolRoles} {
		for _, p := range profile.Roles() {
			// A call that is meant to fail says little about the tool.
			if c, named := roles[p.Name]; named && c.Tool == name && p.Name != "error" {
				return c.Params()["arguments"].(map[string]any), true
			}
		}
	}
	value, ok := values.Valid(tool["inputSchema"])
	arguments, isObject := value.(map[string]any)
	return arguments, ok && isObject
}

// Known reports whether the user or a profile gives a tool a role.
func (t *Target) Known(tool map[string]any) bool { return t.Settings.named(tool) }
