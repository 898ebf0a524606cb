package result

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func requirements(verdicts map[string]Verdict, edit ...func(*Requirement)) []Requirement {
	var list []Requirement
	for _, id := range []string{"a", "b", "c", "d"} {
		v, ok := verdicts[id]
		if !ok {
			continue
		}
		q := Requirement{ID: id, Observable: true, Verdict: v}
		for _, e := range edit {
			e(&q)
		}
		list = append(list, q)
	}
	return list
}

func TestCompare(t *testing.T) {
	expect := func(q *Requirement) { q.Expected = "known" }
	dispute := func(q *Requirement) { q.Disputed = &Dispute{} }
	unrun := func(q *Requirement) { q.Unexercised = NotRun }
	for name, tt := range map[string]struct {
		base, run Run
		want      Comparison
		verdict   Overall
	}{
		"nothing changed": {
			Run{Requirements: requirements(map[string]Verdict{"a": Fail, "b": Pass})},
			Run{Requirements: requirements(map[string]Verdict{"a": Fail, "b": Pass}), Verdict: NotConformant},
			Comparison{}, Conformant,
		},
		"new": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Inconclusive, "c": Skip, "d": Warn})},
			Run{Requirements: requirements(map[string]Verdict{"a": Fail, "b": Fail, "c": Fail, "d": Fail}), Verdict: NotConformant},
			Comparison{New: []string{"a", "b", "c", "d"}}, NotConformant,
		},
		"mended": {
			Run{Requirements: requirements(map[string]Verdict{"a": Fail, "b": Fail, "c": Warn})},
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Skip, "c": Pass}), Verdict: Conformant},
			Comparison{Mended: []string{"a", "b"}}, Conformant,
		},
		"a quick run": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Fail, "c": Pass, "d": Fail})},
			Run{Quick: true, Requirements: requirements(map[string]Verdict{"a": Inconclusive, "b": Pass, "c": Fail, "d": Inconclusive}, func(q *Requirement) {
				if q.Verdict == Inconclusive {
					q.Unexercised, q.Reason = NotRun, QuickOnly
				}
			}), Verdict: NotConformant},
			Comparison{New: []string{"c"}, Left: 3}, NotConformant,
		},
		"two quick runs": {
			Run{Quick: true, Requirements: requirements(map[string]Verdict{"a": Fail})},
			Run{Quick: true, Requirements: requirements(map[string]Verdict{"a": Pass}), Verdict: Conformant},
			Comparison{Mended: []string{"a"}}, Conformant,
		},
		"strict": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Warn, "c": Warn})},
			Run{Strict: true, Requirements: requirements(map[string]Verdict{"a": Warn, "b": Warn, "c": Pass}), Verdict: NotConformant},
			Comparison{New: []string{"a"}, Mended: []string{"c"}}, NotConformant,
		},
		"warnings count only if strict": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass})},
			Run{Requirements: requirements(map[string]Verdict{"a": Warn}), Verdict: Conformant},
			Comparison{}, Conformant,
		},
		"expected": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass})},
			Run{Requirements: requirements(map[string]Verdict{"a": Fail}, expect), Verdict: Conformant},
			Comparison{}, Conformant,
		},
		"disputed": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass})},
			Run{Requirements: requirements(map[string]Verdict{"a": Fail}, dispute), Verdict: Conformant},
			Comparison{}, Conformant,
		},
		"stale": {
			Run{ExpectedFailures: []ExpectedFailure{{ID: "old", Status: "unmatched"}}},
			Run{ExpectedFailures: []ExpectedFailure{{ID: "old", Status: "unmatched"}, {ID: "a", Status: "passed"}}, Verdict: NotConformant},
			Comparison{Stale: []string{"a"}}, NotConformant,
		},
		"unsettled": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Fail, "c": Skip})},
			Run{Requirements: requirements(map[string]Verdict{"a": Inconclusive, "b": Inconclusive, "c": Inconclusive}), Verdict: Conformant},
			Comparison{Unsettled: []string{"a", "b"}}, Conformant,
		},
		"what was not run is not conformant": {
			Run{Requirements: requirements(map[string]Verdict{"a": Pass, "b": Fail})},
			Run{Requirements: requirements(map[string]Verdict{"a": Inconclusive, "b": Error}, unrun), Verdict: NotConformant},
			Comparison{Unsettled: []string{"a"}, Unjudged: []string{"a", "b"}}, Incomplete,
		},
		"incomplete": {Run{}, Run{Verdict: Incomplete}, Comparison{}, Incomplete},
		"new in the catalogue": {
			Run{},
			Run{Requirements: requirements(map[string]Verdict{"a": Fail}), Verdict: NotConformant},
			Comparison{Added: []string{"a"}}, Conformant,
		},
		"partial": {
			Run{Partial: true, Requirements: requirements(map[string]Verdict{"a": Pass, "b": Pass})},
			Run{Partial: true, Requirements: requirements(map[string]Verdict{"b": Fail, "c": Fail}), Verdict: NotConformant},
			Comparison{New: []string{"b"}, Left: 2}, NotConformant,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compare(&tt.base, &tt.run)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
			if v := got.Verdict(&tt.run); v != tt.verdict {
				t.Errorf("the verdict is %s, want %s", v, tt.verdict)
			}
		})
	}
}

func TestIncomparable(t *testing.T) {
	base := Run{Role: "server", Revision: "2025-06-18", Transport: "stdio"}
	for what, run := range map[string]Run{
		"role":      {Role: "client", Revision: "2025-06-18", Transport: "stdio"},
		"revision":  {Role: "server", Revision: "2025-11-25", Transport: "stdio"},
		"transport": {Role: "server", Revision: "2025-06-18", Transport: "http"},
	} {
		_, err := Compare(&base, &run)
		var incomparable *ComparisonError
		if !errors.As(err, &incomparable) || incomparable.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}
