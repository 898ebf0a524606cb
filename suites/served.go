package suites

import (
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/server"
)

// Served returns, by requirement, the names of the checks, scenarios and rules
// that serve it for one of the parties: rules first.
func Served(revision *schema.Revision, parties ...wire.Party) map[string][]string {
	served := make(map[string][]string)
	add := func(name string, p wire.Party, ids ...string) {
		for _, id := range ids {
			q, known := revision.Lookup(id)
			if slices.Contains(parties, p) && (!known || ledger.Binds(q, p)) && !slices.Contains(served[id], name) {
				served[id] = append(served[id], name)
			}
		}
	}
	rules := ruleNames(revision)
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		for _, name := range rules[id] {
			add(name, wire.Server, id)
			add(name, wire.Client, id)
		}
	}
	for _, c := range server.Checks() {
		add(c.Name, wire.Server, c.Requirements...)
	}
	for _, s := range clients.Scenarios() {
		add(client.SourcePrefix+s.Name, wire.Client, s.Requirements...)
	}
	return served
}
