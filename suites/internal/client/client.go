package client

import (
	"slices"
	"sync/atomic"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/client"
)

// Scenarios returns the scenarios of an ordinary run, the baseline first.
func Scenarios() []*client.Scenario {
	return slices.Concat(lifecycleScenarios, exchangeScenarios, sequenceScenarios, featureScenarios, listScenarios,
		shownScenarios, contentScenarios, timeScenarios, userActionScenarios, hostileScenarios, faultScenarios,
		httpScenarios, authScenarios, authShapes, stdioScenarios)
}

func overHTTP() []string { return []string{transport.NameHTTP} }

// standardTransports returns the transports that the specification defines and requirements are about.
func standardTransports() []string {
	return []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio}
}

func overStdio() []string { return []string{transport.NameStdio} }

// handling returns the options of a server that answers a method in another way; "*" stands for all methods.
func handling(method string, m server.Middleware) func(*client.ScenarioRun) server.Options {
	return func(*client.ScenarioRun) server.Options {
		return server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{method: m}}}
	}
}

// onLists returns a change of each list operation.
func onLists(change func(method, member string) server.Middleware) map[string]server.Middleware {
	methods := make(map[string]server.Middleware)
	for method, member := range client.Listed {
		methods[method] = change(method, member)
	}
	return methods
}

// goesOn judges the requirements of a scenario, all of which a client satisfies by continuing.
func goesOn(after string) func(t *client.T) {
	return func(t *client.T) { t.JudgeContinued(after, t.Scenario.Requirements...) }
}

// count counts events, such as the requests of a session.
type count struct{ n atomic.Int64 }

// next returns 0, 1, 2 …
func (c *count) next() int { return int(c.n.Add(1) - 1) }

// counter returns the counter of something in a session.
func counter(s *server.Session, of string) *count {
	return s.Value(of, func() any { return new(count) }).(*count)
}

// Many scenarios need a client that waits for the answer to a request.
const (
	needsToAsk  = client.NeedsRequest + ", so the server could not ask it anything while it waits"
	needsToTell = client.NeedsRequest + ", so the server could not send anything while it waits"
)
