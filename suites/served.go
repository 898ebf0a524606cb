package suites

import (
	"slices"

	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/server"
)

// Served returns, by requirement, the names of the checks, scenarios and rules
// that serve it.
func Served() map[string][]string {
	served := ruleNames()
	add := func(name string, ids []string) {
		for _, id := range ids {
			if !slices.Contains(served[id], name) {
				served[id] = append(served[id], name)
			}
		}
	}
	for _, c := range server.Checks() {
		add(c.Name, c.Requirements)
	}
	for _, s := range client.Scenarios() {
		add("scenario: "+s.Name, s.Requirements)
	}
	return served
}
