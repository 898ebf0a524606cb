package suites

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/result"
)

// OwnRequirements returns the requirements on a party that scripts state
// themselves: those of scripts that name no requirement of the catalogue.
func OwnRequirements(scripts []*script.Script, p wire.Party) []schema.Requirement {
	var own []schema.Requirement
	for _, s := range scripts {
		if len(s.Requirements) == 0 {
			own = append(own, schema.Requirement{
				ID: scriptID(s), Level: schema.Level(cmp.Or(s.Level, string(schema.Must))), Party: schema.Party(p),
				Page: path.Dir(path.Join(result.ScriptPages, s.Name)), Summary: s.Title, Transports: s.Transports,
				Observable: true, How: "Run " + s.File + ".", Violation: "The " + string(p) + " does something else.",
			})
		}
	}
	return own
}

// CheckScripts returns the first mistake of a set of scripts for a party:
// requirements that the catalogue does not have or that are not judged on the
// party, or two scripts of the same name.
func CheckScripts(revision *schema.Revision, scripts []*script.Script, p wire.Party) error {
	files := make(map[string]string)
	for _, s := range scripts {
		if other, taken := files[scriptID(s)]; taken {
			return fmt.Errorf("%s: %s has the same id %s", s.File, other, scriptID(s))
		}
		files[scriptID(s)] = s.File
		for _, id := range s.Requirements {
			q, ok := revision.Lookup(id)
			switch {
			case !ok:
				return fmt.Errorf("%s: there is no requirement %s; the nearest are %s", s.File, id,
					strings.Join(revision.Nearest(id, 3), ", "))
			case !q.Observable:
				return fmt.Errorf("%s: the requirement %s cannot be observed", s.File, id)
			case !ledger.Binds(q, p):
				return fmt.Errorf("%s: the requirement %s is not judged on %ss", s.File, id, p)
			}
		}
	}
	return nil
}

// scriptID returns the id of a script as a requirement: its path, with dots
// between the segments.
func scriptID(s *script.Script) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '/':
			return '.'
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, s.Name)
	return "script." + clean
}

// serves returns the requirements that a script serves.
func serves(s *script.Script) []string {
	if len(s.Requirements) == 0 {
		return []string{scriptID(s)}
	}
	return s.Requirements
}

// OrdinaryScenarios returns the scenarios of an ordinary run, the baseline first, and those of scripts.
// The error is that of a script that cannot run against them.
func OrdinaryScenarios(scripts []*script.Script) ([]*client.Scenario, error) {
	scenarios := clients.Scenarios()
	for _, s := range scripts {
		scenario, err := clients.ScriptScenario(s, serves(s)...)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, scenario)
	}
	return scenarios, nil
}

// FaultScenarios returns the scenarios of servers with a single fault. They run only if a user names them.
func FaultScenarios() []*client.Scenario { return clients.Faulty() }
