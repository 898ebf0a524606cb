package suites

import (
	"testing"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
)

// A selection leaves the checks of the selected requirements. For a requirement that rules judge, it leaves the
// checks of its page as well. If levels are selected, it leaves all checks that are not skipped.
func TestSelectionIsAFilter(t *testing.T) {
	catalogue := schema.Default().Catalogue()
	const ruled, unruled, other = "tools.name.unique", "resources.error.not-found-code", "base.error.method-not-found"
	const unknown = "tools.error.unknown-tool-code"
	for _, id := range []string{unruled, other} {
		if len(ruleNames(schema.Default())[id]) > 0 {
			t.Fatalf("a rule serves %s", id)
		}
	}
	for _, tt := range []struct {
		name      string
		selection Selection
		check     []string // its requirements
		session   string
		want      bool
	}{
		{"all", Selection{}, []string{other}, "fresh", true},
		{"what a check serves, by that check", Selection{Select: []string{unruled}}, []string{other, unruled}, "fresh", true},
		{"what a check serves, by another", Selection{Select: []string{unruled}}, []string{other}, "shared", false},
		{"what a rule serves, by another check", Selection{Select: []string{ruled}}, []string{other}, "fresh", false},
		{"what a rule serves, where a session is shared", Selection{Select: []string{ruled}}, []string{other}, "shared", true},
		{"what a rule serves, by a check of its page", Selection{Select: []string{ruled}}, []string{unknown}, "fresh", true},
		{"a level", Selection{Select: []string{"must"}}, []string{"tools.structured-content.text-copy"}, "fresh", true},
		{"what a rule serves, by a skipped check", Selection{Select: []string{ruled}, Skip: []string{unknown}}, []string{unknown}, "fresh", false},
		{"what a rule serves, by a check skipped in part", Selection{Select: []string{ruled}, Skip: []string{unknown}}, []string{other, unknown}, "fresh", true},
		{"a label", Selection{LabelFilter: "level: containsAny MUST"}, []string{other}, "fresh", true},
		{"another label", Selection{LabelFilter: "level: containsAny MAY"}, []string{other}, "fresh", false},
		{"a page", Selection{LabelFilter: "page: containsAny server-tools"}, []string{"tools.error.unknown-tool-code"}, "fresh", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &run{Options: Options{Revision: schema.Default(), Selection: tt.selection}, index: index{catalogue: catalogue}}
			r.stimulus = ServerChecks{}.begin(r)
			specs, err := r.stimulus.specs()
			if err != nil {
				t.Fatal(err)
			}
			filter, err := tree.ParseFilter(r.filter(specs))
			if err != nil {
				t.Fatal(err)
			}
			spec := r.spec("a check", tt.check, tree.Label(tree.KeySession, tt.session))
			if got := filter(spec.Labels); got != tt.want {
				t.Errorf("got %t, want %t: %s", got, tt.want, r.filter(specs))
			}
		})
	}
}
