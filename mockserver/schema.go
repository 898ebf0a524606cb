package mockserver

import (
	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// These faults break statements of the type definitions alone.
var schemaFaults = []Fault{
	fault("schema.server-version-missing", ids.SchemaImplementation, "serverInfo has no version.",
		Results("initialize", At("serverInfo", Lacking("version")))),
	fault("schema.server-name-null", ids.SchemaImplementation, "The name in serverInfo is null.",
		Results("initialize", At("serverInfo", Having("name", nil)))),
	fault("schema.capability-boolean", ids.SchemaServerCapabilities,
		"The capability logging is true in place of an object.",
		Results("initialize", At("capabilities", Having("logging", true)))),
	fault("schema.capability-flag-string", ids.SchemaServerCapabilities, "tools.listChanged is a string.",
		Capability("tools", Having("listChanged", "true"))).Also(ids.LifecycleCapabilityServerEmitsToolsListChanged),
	fault("schema.capabilities-array", ids.SchemaServerCapabilities, "The capabilities are an array of names.",
		Results("initialize", Having("capabilities", list{"tools"}))).Also(undeclaredAll...),
	fault("schema.instructions-array", ids.SchemaInitializeResult, "The instructions are an array of lines.",
		Results("initialize", Having("instructions", list{"Be kind."}))),
	fault("schema.client-notification", ids.SchemaServerNotification, "The server sends notifications/initialized.",
		Ready(func(s *server.Session) { s.Notify("notifications/initialized", nil) })),
	fault("schema.client-request", ids.SchemaServerRequest, "The server sends tools/list.",
		Ready(func(s *server.Session) { _, _ = s.Call(s.Context(), "tools/list", nil) })),
}
