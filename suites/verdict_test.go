package suites

import (
	"errors"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestVerdictWithExpectedFailures(t *testing.T) {
	entry := func(id string) []expected.Entry { return []expected.Entry{{ID: id, Reason: "known"}} }
	for _, tt := range []struct {
		name     string
		verdicts []result.Verdict // of a, b, …
		entries  []expected.Entry
		strict   bool
		cause    error
		want     result.Overall
	}{
		{"fails", []result.Verdict{result.Fail, result.Pass}, nil, false, nil, result.NotConformant},
		{"fails as expected", []result.Verdict{result.Fail, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"fails otherwise", []result.Verdict{result.Fail, result.Fail, result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"warns, strictly", []result.Verdict{result.Warn, result.Pass}, nil, true, nil, result.NotConformant},
		{"warns as expected, strictly", []result.Verdict{result.Warn, result.Pass}, entry("a"), true, nil, result.Conformant},
		{"warns as expected", []result.Verdict{result.Warn, result.Pass}, entry("a"), false, nil, result.Conformant},
		{"passes unexpectedly", []result.Verdict{result.Pass}, entry("a"), false, nil, result.NotConformant},
		{"matches nothing", []result.Verdict{result.Pass}, entry("none"), false, nil, result.NotConformant},
		{"untested", []result.Verdict{result.Inconclusive, result.Pass}, entry("a"), false, nil, result.Conformant},
		{
			"expired", []result.Verdict{result.Fail, result.Pass}, []expected.Entry{{ID: "a", Reason: "known", Expires: "2026-01-01"}},
			false, nil, result.NotConformant,
		},
		{"cut short", []result.Verdict{result.Inconclusive}, entry("none"), false, errors.New("cut short"), result.Incomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &result.Run{Strict: tt.strict}
			for i, v := range tt.verdicts {
				run.Requirements = append(run.Requirements, result.Requirement{ID: string(rune('a' + i)), Observable: true, Verdict: v})
			}
			expected.Apply(run, tt.entries, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
			if got, _ := verdict(run, tt.cause); got != tt.want {
				t.Errorf("got %s, want %s: %+v", got, tt.want, run.ExpectedFailures)
			}
		})
	}
}

// A selection is served by the checks of what is selected; of what rules judge,
// by all checks that are not skipped.
func TestSelectionServes(t *testing.T) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	const ruled, unruled, other = "tools.name.unique", "resources.error.not-found-code", "base.error.method-not-found"
	for _, id := range []string{unruled, other} {
		if len(ruleNames()[id]) > 0 {
			t.Fatalf("a rule serves %s", id)
		}
	}
	for _, tt := range []struct {
		name      string
		selection Selection
		check     []string // its requirements
		want      bool
	}{
		{"all", Selection{}, []string{other}, true},
		{"what a check serves, by that check", Selection{Select: []string{unruled}}, []string{other, unruled}, true},
		{"what a check serves, by another", Selection{Select: []string{unruled}}, []string{other}, false},
		{"what a rule serves", Selection{Select: []string{ruled}}, []string{other}, true},
		{"what a rule serves, by a skipped check", Selection{Select: []string{ruled}, Skip: []string{other}}, []string{other}, false},
		{"what a rule serves, by a check skipped in part", Selection{Select: []string{ruled}, Skip: []string{other}}, []string{other, unruled}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.selection.serves(catalogue, wire.Server)(tt.check); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
