package suites

import (
	"github.com/mcpconform/mcpconform/suites/server"
)

// Served returns, by requirement, the names of the checks and rules that serve it.
func Served() map[string][]string {
	served := ruleNames()
	for _, c := range server.Checks() {
		for _, id := range c.Requirements {
			served[id] = append(served[id], c.Name)
		}
	}
	return served
}
