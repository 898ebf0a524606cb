package suites

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
)

// Selection says which requirements a run is about. The zero value is all.
type Selection struct {
	// Select and Skip hold patterns: a requirement id or a glob of ids, a page
	// or a level. Skip wins.
	Select, Skip []string
	// LabelFilter is an expression of Ginkgo's language of label filters. The
	// labels are id, level, page, party and transport: docs/servers.md.
	LabelFilter string

	matches func(labels []string) bool // of the filter; see compile
}

// Validate reports the first pattern that matches nothing, and a selection that
// leaves no requirement on a party. own are the requirements beside those of the
// catalogue.
func (s Selection) Validate(revision *schema.Revision, p wire.Party, own ...schema.Requirement) error {
	if err := s.compile(); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(s.Select, s.Skip) {
		err := revision.CheckPattern(pattern)
		if err != nil && !slices.ContainsFunc(own, func(r schema.Requirement) bool { return r.Matches(pattern) }) {
			return err
		}
	}
	catalogue := append(revision.Catalogue(), own...)
	if !slices.ContainsFunc(catalogue, func(r schema.Requirement) bool {
		return ledger.Binds(r, p) && s.Includes(r, p)
	}) {
		filter := ""
		if s.LabelFilter != "" {
			filter = fmt.Sprintf("; label filter: %q", s.LabelFilter)
		}
		return fmt.Errorf("no requirement on a %s is left to judge: selected: %s; skipped: %s%s",
			p, listed(s.Select, "everything"), listed(s.Skip, "nothing"), filter)
	}
	return nil
}

func listed(patterns []string, none string) string {
	if len(patterns) == 0 {
		return none
	}
	return strings.Join(patterns, ", ")
}

// Includes reports whether a requirement is selected as it binds a party.
func (s Selection) Includes(r schema.Requirement, p wire.Party) bool {
	return s.named(r) && (s.LabelFilter == "" ||
		(s.matches != nil || s.compile() == nil) && s.matches(tree.Labels(r, string(p))))
}

// named reports whether a requirement is selected by its names.
func (s Selection) named(r schema.Requirement) bool {
	return (len(s.Select) == 0 || slices.ContainsFunc(s.Select, r.Matches)) && !s.Excludes(r)
}

// compile reads the filter.
func (s *Selection) compile() (err error) {
	s.matches, err = tree.ParseFilter(s.LabelFilter)
	return err
}

// Excludes reports whether a requirement is skipped by name.
func (s Selection) Excludes(r schema.Requirement) bool { return slices.ContainsFunc(s.Skip, r.Matches) }

// broad reports whether the selection may be about anything: it names a level, or nothing.
func (s Selection) broad() bool {
	return len(s.Select) == 0 || slices.ContainsFunc(s.Select, schema.IsLevel)
}
