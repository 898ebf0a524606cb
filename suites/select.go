package suites

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
)

// Selection says which requirements a run is about. The zero value is all.
type Selection struct {
	// Select and Skip hold patterns: a requirement id or a glob of ids, a page,
	// a level, or the name of a check. Skip wins.
	Select, Skip []string
}

var levels = []string{"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"}

// Validate reports the first pattern that matches nothing in the catalogue.
func (s Selection) Validate(catalogue []schema.Requirement) error {
	for _, p := range slices.Concat(s.Select, s.Skip) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
		known := slices.ContainsFunc(catalogue, func(r schema.Requirement) bool { return matches(p, r) })
		if !known {
			hint := ""
			if near := schema.Nearest(p, 3); len(near) > 0 {
				hint = "; the nearest ids are " + strings.Join(near, ", ")
			}
			return fmt.Errorf("%q is no requirement id, page or level%s", p, hint)
		}
	}
	return nil
}

// Includes reports whether a requirement is selected.
func (s Selection) Includes(r schema.Requirement) bool {
	in := func(p string) bool { return matches(p, r) }
	return (len(s.Select) == 0 || slices.ContainsFunc(s.Select, in)) && !slices.ContainsFunc(s.Skip, in)
}

func matches(pattern string, r schema.Requirement) bool {
	if level := strings.ToUpper(pattern); slices.Contains(levels, level) {
		return string(r.Level) == level || string(r.Level) == level+" NOT"
	}
	if r.Page == strings.Trim(pattern, "/") || strings.HasPrefix(r.Page, strings.Trim(pattern, "/")+"/") {
		return true
	}
	ok, err := path.Match(pattern, r.ID)
	// A whole topic can be named by its first segments.
	return err == nil && ok || strings.HasPrefix(r.ID, pattern+".")
}
