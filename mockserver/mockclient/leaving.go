package mockclient

import (
	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// leavingFaults are those of clients that end in order when they meet something legal: they end the session, and report
// nothing. Clients that die of the like end in order in a derived form; here stands what none dies of.
func leavingFaults() []Fault {
	var faults []Fault
	add := func(id, requirement, scenario, what string, at func(e *wire.Event) bool, collateral ...string) {
		faults = append(faults, Fault{
			ID: "leaves." + id, Requirement: requirement, Scenario: scenario, Form: mockserver.InOrder,
			Summary: what + " has the client end in order.", Apply: All(Dying(at), InOrder), Collateral: collateral,
		})
	}
	says := func(text string) func(*wire.Event) bool {
		return func(e *wire.Event) bool { return e.Kind == wire.KindMessage && ContainsText(e, text) }
	}
	add("cancellation", "cancellation.ignore-completed", Notifications, "A cancellation of a finished request",
		says(`"requestId":"after-unknown"`), "cancellation.ignore-unknown", "cancellation.ignore-malformed")
	add("unknown-cancellation", "cancellation.ignore-unknown", Notifications, "A cancellation of no request",
		says(`"requestId":"never-used"`), "cancellation.ignore-completed", "cancellation.ignore-malformed")
	add("tools-changed", "tools.list-changed.unsolicited", Notifications, "News of changed tools",
		says("notifications/tools/list_changed"), "prompts.list-changed.unsolicited",
		"resources.list-changed.unsolicited")
	add("prompts-changed", "prompts.list-changed.unsolicited", Notifications, "News of changed prompts",
		says("notifications/prompts/list_changed"), "tools.list-changed.unsolicited",
		"resources.list-changed.unsolicited")
	add("resources-changed", "resources.list-changed.unsolicited", Notifications, "News of changed resources",
		says("notifications/resources/list_changed"), "tools.list-changed.unsolicited",
		"prompts.list-changed.unsolicited")
	add("notification-meta", "meta.attach.notification", Notifications, "A notification with _meta",
		says(`"com.example/x":1`))
	return faults
}
