package mockclient

import (
	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// leavingFaults are those of clients that end in order when they meet something legal: they end the session, and report
// nothing. Clients that die of the like end in order in a derived form; here stands what none dies of.
func leavingFaults() []Fault {
	var faults []Fault
	add := func(id, requirement, scenario, what string, at func(e *wire.Event) bool, collateral ...string) {
		faults = append(faults, fault("leaves."+id, requirement, what+" has the client end in order.",
			All(Dying(at), InOrder)).Seen(mockserver.InOrder).In(scenario).Also(collateral...))
	}
	says := func(text string) func(*wire.Event) bool {
		return func(e *wire.Event) bool { return e.Kind == wire.KindMessage && ContainsText(e, text) }
	}
	add("cancellation", ids.CancellationIgnoreCompleted, Notifications, "A cancellation of a finished request",
		says(`"requestId":"after-unknown"`), ids.CancellationIgnoreUnknown, ids.CancellationIgnoreMalformed)
	add("unknown-cancellation", ids.CancellationIgnoreUnknown, Notifications, "A cancellation of no request",
		says(`"requestId":"never-used"`), ids.CancellationIgnoreCompleted, ids.CancellationIgnoreMalformed)
	add("tools-changed", ids.ToolsListChangedUnsolicited, Notifications, "News of changed tools",
		says("notifications/tools/list_changed"), ids.PromptsListChangedUnsolicited,
		ids.ResourcesListChangedUnsolicited)
	add("prompts-changed", ids.PromptsListChangedUnsolicited, Notifications, "News of changed prompts",
		says("notifications/prompts/list_changed"), ids.ToolsListChangedUnsolicited,
		ids.ResourcesListChangedUnsolicited)
	add("resources-changed", ids.ResourcesListChangedUnsolicited, Notifications, "News of changed resources",
		says("notifications/resources/list_changed"), ids.ToolsListChangedUnsolicited,
		ids.PromptsListChangedUnsolicited)
	add("notification-meta", ids.MetaAttachNotification, Notifications, "A notification with _meta",
		says(`"com.example/x":1`))
	return faults
}
