package client

import (
	"slices"

	"github.com/mcpconform/mcpconform/suites/client"
)

// combinedLaunches lists the combined launches. Answers to a request that is broken on purpose are not judged.
// Scenarios with such requests are therefore not combined with scenarios that ask the client.
var combinedLaunches = []client.Combined{
	{Name: "additions", Scenarios: []string{"lifecycle/early-ping", "lifecycle/additions", "exchange/open-results",
		"exchange/requests", "lists/changed", "http/sse-fields", "lifecycle/slow-answer", "features/completions",
		"content/failed-tool", "lists/sub-resource", "lists/directory", schemas, "hostile/large", "content/dates"}},
	{Name: "bare", Scenarios: []string{"exchange/bare", framed, "lists/whole", "http/sse-crlf", "http/delete",
		sequenced}},
	{Name: "pages", Scenarios: []string{"lists/pages", "features/roots", "exchange/beside", "features/progress",
		"http/sse-answers", "http/sse-marked", "http/listening", "acts/elicitation", "acts/sampling",
		"acts/root-folder"}},
	{Name: "features", Scenarios: []string{"features/sampling", "features/elicitation", "content/plain",
		"content/described", "capabilities/bare-resources", "lists/cut-characters", "http/sse-idle",
		"http/no-session", brokenEnd, "lists/tool-names", "lists/prompt-names", "lists/uris", "lists/types"}},
	{Name: "plain", Scenarios: []string{"capabilities/only-tools", "exchange/metadata", "features/errors",
		"http/json-answers", "http/plain", "sse/absolute-endpoint", "stdio/shutdown"}},
	{Name: "resources", Scenarios: []string{"capabilities/only-resources", "lists/virtual-files", "http/sse-torn",
		"http/lower-field", "sse/session", "stdio/stderr"}},
	// Many clients read only the first page of a list, or do not read on when the connection is cut.
	{Name: "first-page", Scenarios: []string{"lists/empty-first-page", "acts/roots", "http/upper-field",
		"capabilities/only-features"}},
	{Name: "endless", Scenarios: []string{"lists/endless", "time/slow", "stdio/framing"}},
	// An unreadable message excuses errors without an id. No scenario of the next launch does.
	{Name: "unreadable", Scenarios: []string{"hostile/not-json", "faults/requests", "faults/lines", "faults/answers",
		"faults/streams", "faults/events"}},
	{Name: "responses", Scenarios: []string{"faults/responses", "faults/ids", "faults/results", "faults/endless-list"}},
	{Name: "prompts", Scenarios: []string{"capabilities/only-prompts", "http/refused-message", "sse/spelling"}},
	// Clients use nothing of empty lists. The other scenarios of this launch are about other moments.
	{Name: "empty", Scenarios: []string{"content/empty", told, "stdio/stubborn"}},
	{Name: "older", Scenarios: []string{"lifecycle/older-version", "faults/lists"}},
	{Name: "undeclared", Scenarios: []string{"faults/undeclared", "faults/circular-list"}},
	// Clients of the official tool go through the ordinary flow for a method of client authentication.
	{Name: "tenant", Scenarios: []string{"auth/token-basic", "auth/challenges", "auth/issuer-path", "auth/refresh",
		"auth/well-known-401"}},
	{Name: "origin", Scenarios: []string{"auth/token-post", "auth/challenge-list", "auth/same-origin", "auth/lapsed",
		"auth/well-known-page"}},
	{Name: "registered", Scenarios: []string{"auth/no-registration", "auth/root"}},
	{Name: "documents", Scenarios: []string{"auth/token-none", "auth/metadata-url", "auth/two-servers", "auth/redirect",
		"auth/odd-url", "auth/well-known-redirect"}},
}

// CombinedLaunches returns the combined launches.
func CombinedLaunches() []client.Combined { return slices.Clone(combinedLaunches) }
