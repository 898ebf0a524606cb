package suites

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Selection says which requirements a run is about. The zero value is all.
type Selection struct {
	// Select and Skip hold patterns: a requirement id or a glob of ids, a page
	// or a level. Skip wins.
	Select, Skip []string
}

// Validate reports the first pattern that matches nothing, and a selection that
// leaves nothing of what is judged on a party. Own are the requirements beside
// those of the catalogue.
func (s Selection) Validate(p wire.Party, own ...schema.Requirement) error {
	for _, pattern := range slices.Concat(s.Select, s.Skip) {
		err := schema.CheckPattern(pattern)
		if err != nil && !slices.ContainsFunc(own, func(r schema.Requirement) bool { return r.Matches(pattern) }) {
			return err
		}
	}
	catalogue, err := schema.Catalogue()
	if err != nil {
		return err
	}
	catalogue = append(catalogue, own...)
	if !slices.ContainsFunc(catalogue, func(r schema.Requirement) bool { return binds(r, p) && s.Includes(r) }) {
		return fmt.Errorf("no requirement on a %s is left to judge: selected is %s, skipped %s",
			p, listed(s.Select, "everything"), listed(s.Skip, "nothing"))
	}
	return nil
}

func listed(patterns []string, none string) string {
	if len(patterns) == 0 {
		return none
	}
	return strings.Join(patterns, ", ")
}

// Includes reports whether a requirement is selected.
func (s Selection) Includes(r schema.Requirement) bool {
	return (len(s.Select) == 0 || slices.ContainsFunc(s.Select, r.Matches)) && !s.Excludes(r)
}

// Excludes reports whether a requirement is skipped by name.
func (s Selection) Excludes(r schema.Requirement) bool { return slices.ContainsFunc(s.Skip, r.Matches) }

// serves returns whether a check or scenario with certain requirements serves
// the selection: it has one that is selected or, if a rule judges something
// that is selected, any that is not skipped by name. A rule may see what it
// judges in whatever is exchanged.
func (s Selection) serves(catalogue []schema.Requirement, p wire.Party) func(requirements []string) bool {
	rules := ruleNames()
	chosen, excluded := make(map[string]bool), make(map[string]bool)
	ruled := false
	for _, q := range catalogue {
		chosen[q.ID], excluded[q.ID] = binds(q, p) && s.Includes(q), s.Excludes(q)
		ruled = ruled || chosen[q.ID] && len(rules[q.ID]) > 0
	}
	return func(requirements []string) bool {
		return slices.ContainsFunc(requirements, func(id string) bool { return chosen[id] || ruled && !excluded[id] })
	}
}
