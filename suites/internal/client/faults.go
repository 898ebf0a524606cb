package client

import (
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
)

// Faulty returns, for each fault of servers, the scenario of a server with this fault. There are too many of them for
// every run.
func Faulty() []*client.Scenario {
	var all []*client.Scenario
	for _, f := range mockserver.Catalogue() {
		// Protected servers have scenarios of their own.
		if !strings.HasPrefix(f.ID, "auth.") && !slices.Contains(unjudgeable, f.ID) {
			all = append(all, faulty(client.FaultPrefix+f.ID, f.ID))
		}
	}
	return all
}

// unjudgeable lists the faults of servers that lose or change their input before the harness can judge it.
var unjudgeable = []string{"stdio.first-line-only", "stdio.chunk-is-message", "http.history-on-get",
	"http.listening-history", "http.log-history-on-get"}

// faultScenarios have servers with faults of one kind, several if they do not hide one another. A client may react to
// them as it likes. Its messages are judged like all others.
var faultScenarios = []*client.Scenario{
	faulty("faults/responses", "base.response-twice", "base.invented-response", "base.error-stack-trace",
		"progress.after-response", "progress.not-growing", "cancellation.unknown-answered"),
	faulty("faults/ids", "base.id-as-string", "base.request-id-reused"),
	faulty("faults/results", "tools.content-block", "tools.structured-wrong-type", "resources.text-and-blob",
		"prompts.role-system", "completion.too-many-values", "logging.message-for-data"),
	faulty("faults/lists", "tools.duplicate-over-pages", "tools.name-missing", "resources.name-missing",
		"prompts.name-missing", "resources.uri-relative", "pagination.next-cursor-number"),
	faulty("faults/endless-list", "pagination.cursor-never-ends"),
	faulty("faults/circular-list", "pagination.cursor-loops"),
	faulty("faults/requests", "sampling.messages-string", "elicitation.nested-object", "roots.params-array",
		"base.request-id-null"),
	faulty("faults/undeclared", "lifecycle.sampling-undeclared", "tools.undeclared", "logging.undeclared",
		"lifecycle.updates-undeclared"),
	faulty("faults/handshake", "lifecycle.no-server-info", "schema.capability-boolean"),
	faulty("faults/lines", "stdio.banner", "stdio.log-on-stdout", "stdio.blank-lines"),
	faulty("faults/answers", "http.json-array"),
	faulty("faults/streams", "http.event-not-json", "http.stream-kept-open"),
	faulty("faults/events", "sse.event-type", "sse.event-not-json"),
}

// faulty returns the scenario of a server with faults, over the transports of the first of them.
func faulty(name string, requirements ...string) *client.Scenario {
	first, _ := mockserver.Find(requirements[0])
	return &client.Scenario{
		Name: name, Transports: first.Transports,
		Requirements: []string{ids.BaseJSONWellFormed, ids.BaseJSONObject, ids.BaseResponseIDEcho},
		Shows:        []string{ids.BaseResponseOnlyToRequests},
		Needs:        "the client sent nothing",
		Faults:       requirements,
	}
}
