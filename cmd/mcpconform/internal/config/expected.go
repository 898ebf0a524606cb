package config

import (
	"path"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/internal/yamlfile"
	"github.com/mcpconform/mcpconform/suites/expected"
)

// LoadExpected reads a file of expected failures: a YAML list. Errors name the line
// and column of a fault.
func LoadExpected(name string) ([]expected.Entry, error) {
	f, err := yamlfile.Read(name)
	if err != nil {
		return nil, err
	}
	var entries []expected.Entry
	if err := f.Decode(&entries); err != nil {
		return nil, err
	}
	return entries, checkExpected(entries, f)
}

// checkExpected returns the first fault of entries that stand in a file at a path.
func checkExpected(entries []expected.Entry, f *yamlfile.File, at ...any) error {
	for i, e := range entries {
		place := func(member string) []any { return append(append([]any{}, at...), i, member) }
		if e.ID == "" {
			return f.Errorf(place("id"), "the entry does not name a requirement; its id is missing")
		}
		if _, err := path.Match(e.ID, ""); err != nil {
			return f.Errorf(place("id"), "%q is not a pattern: %s", e.ID, err)
		}
		if strings.TrimSpace(e.Reason) == "" {
			return f.Errorf(place("reason"), "the entry for %s does not give a reason", e.ID)
		}
		if _, err := time.Parse(time.DateOnly, e.Expires); e.Expires != "" && err != nil {
			return f.Errorf(place("expires"), "%q is not a date; dates are written YYYY-MM-DD", e.Expires)
		}
	}
	return nil
}
