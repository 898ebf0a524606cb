package suites_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// TestServed wants a check, a scenario or a proved rule for every observable requirement and each party that it
// binds. A fault of the party proves the rule.
func TestServed(t *testing.T) {
	catalogue := schema.Default().Catalogue()
	for _, p := range []wire.Party{wire.Server, wire.Client} {
		served, proved := suites.Served(schema.Default(), p), provedRules(p)
		for _, r := range catalogue {
			if judged := r.JudgedParty(); !r.Observable || judged != schema.Both && judged != schema.Party(p) {
				continue
			}
			has := slices.ContainsFunc(served[r.ID], func(name string) bool { return !strings.HasPrefix(name, ledger.RulePrefix) }) ||
				len(served[r.ID]) > 0 && proved[r.ID]
			if !has {
				t.Errorf("%s %s is observable, but no check or scenario serves it, and no fault proves that a rule does (%s)", p, r.ID, served[r.ID])
			}
		}
	}
}

// provedRules returns the requirements that a fault of a party breaks.
func provedRules(p wire.Party) map[string]bool {
	proved := make(map[string]bool)
	for _, f := range mockserver.Catalogue() {
		proved[f.Requirement] = proved[f.Requirement] || p == wire.Server
	}
	for _, f := range mockclient.Catalogue() {
		proved[f.Requirement] = proved[f.Requirement] || p == wire.Client
	}
	return proved
}

// TestServedExist holds every check, scenario and rule to requirements that exist.
func TestServedExist(t *testing.T) {
	for id, names := range suites.Served(schema.Default(), wire.Server, wire.Client) {
		if _, ok := schema.Default().Lookup(id); !ok {
			t.Errorf("%s serve %s, which is not a requirement", strings.Join(names, ", "), id)
		}
		if slices.Contains(names, "") {
			t.Errorf("something without a name serves %s", id)
		}
	}
}
