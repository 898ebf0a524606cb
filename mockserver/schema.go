package mockserver

import (
	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// These faults break statements of the type definitions alone.
var schemaFaults = []Fault{
	{ID: "schema.server-version-missing", Requirement: ids.SchemaImplementation, Summary: "serverInfo has no version.",
		Apply: Results("initialize", At("serverInfo", Lacking("version")))},
	{ID: "schema.server-name-null", Requirement: ids.SchemaImplementation, Summary: "The name in serverInfo is null.",
		Apply: Results("initialize", At("serverInfo", Having("name", nil)))},
	{ID: "schema.capability-boolean", Requirement: ids.SchemaServerCapabilities,
		Summary: "The capability logging is true in place of an object.",
		Apply:   Results("initialize", At("capabilities", Having("logging", true)))},
	{ID: "schema.capability-flag-string", Requirement: ids.SchemaServerCapabilities,
		Summary:    "tools.listChanged is a string.",
		Collateral: []string{ids.LifecycleCapabilityServerEmitsToolsListChanged},
		Apply:      Capability("tools", Having("listChanged", "true"))},
	{ID: "schema.capabilities-array", Requirement: ids.SchemaServerCapabilities,
		Summary: "The capabilities are an array of names.", Collateral: undeclaredAll,
		Apply: Results("initialize", Having("capabilities", list{"tools"}))},
	{ID: "schema.instructions-array", Requirement: ids.SchemaInitializeResult,
		Summary: "The instructions are an array of lines.",
		Apply:   Results("initialize", Having("instructions", list{"Be kind."}))},
	{ID: "schema.client-notification", Requirement: ids.SchemaServerNotification,
		Summary: "The server sends notifications/initialized.",
		Apply:   Ready(func(s *server.Session) { s.Notify("notifications/initialized", nil) })},
	{ID: "schema.client-request", Requirement: ids.SchemaServerRequest, Summary: "The server sends tools/list.",
		Apply: Ready(func(s *server.Session) { _, _ = s.Call(s.Context(), "tools/list", nil) })},
}
