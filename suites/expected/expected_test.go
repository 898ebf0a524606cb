package expected

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestApply(t *testing.T) {
	verdicts := map[string]result.Verdict{
		"fail.one": result.Fail, "fail.two": result.Fail, "warn.one": result.Warn, "pass.one": result.Pass, "pass.two": result.Pass,
		"skip.one": result.Skip, "open.one": result.Inconclusive, "open.pass": result.Pass, "error.one": result.Error,
		"pass.skip": result.Skip, "mixed.fail": result.Fail, "mixed.pass": result.Pass,
	}
	for _, tt := range []struct {
		name    string
		entries []Entry
		status  []string
		covered map[string]string
	}{
		{"none", nil, nil, nil},
		{"fails", []Entry{{ID: "fail.one", Reason: "r"}}, []string{Failed}, map[string]string{"fail.one": "r"}},
		{"warns", []Entry{{ID: "warn.one", Reason: "r"}}, []string{Failed}, map[string]string{"warn.one": "r"}},
		{"glob", []Entry{{ID: "fail.*", Reason: "r"}}, []string{Failed}, map[string]string{"fail.one": "r", "fail.two": "r"}},
		{"fails in part", []Entry{{ID: "mixed.*", Reason: "r"}}, []string{Failed}, map[string]string{"mixed.fail": "r"}},
		{"passes", []Entry{{ID: "pass.one", Reason: "r"}}, []string{Passed}, nil},
		{"passes or does not apply", []Entry{{ID: "pass.*", Reason: "r"}}, []string{Passed}, nil},
		{"passes in part", []Entry{{ID: "open.*", Reason: "r"}}, []string{Untested}, nil},
		{"does not apply", []Entry{{ID: "skip.one", Reason: "r"}}, []string{Untested}, nil},
		{"harness error", []Entry{{ID: "error.one", Reason: "r"}}, []string{Untested}, nil},
		{"of the catalogue, not of the run", []Entry{{ID: "tools.*", Reason: "r"}}, []string{Untested}, nil},
		{"unknown", []Entry{{ID: "fail", Reason: "r"}}, []string{Unmatched}, nil},
		{"last day", []Entry{{"fail.one", "r", "2026-03-05"}}, []string{Failed}, map[string]string{"fail.one": "r"}},
		{"the day after", []Entry{{"fail.one", "r", "2026-03-04"}}, []string{Expired}, nil},
		{"expired and passing", []Entry{{"pass.one", "r", "2026-03-04"}}, []string{Passed}, nil},
		{
			"expired for one, not for another", []Entry{{"fail.one", "old", "2026-03-04"}, {ID: "fail.*", Reason: "new"}},
			[]string{Expired, Failed}, map[string]string{"fail.one": "new", "fail.two": "new"},
		},
		{
			"the first reason stays", []Entry{{ID: "fail.one", Reason: "first"}, {ID: "fail.one", Reason: "second"}},
			[]string{Failed, Failed}, map[string]string{"fail.one": "first"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &result.Run{Revision: "2025-06-18"}
			for id, v := range verdicts {
				run.Requirements = append(run.Requirements, result.Requirement{ID: id, Verdict: v})
			}
			Apply(run, tt.entries, time.Date(2026, 3, 5, 23, 0, 0, 0, time.UTC))
			var status []string
			stale := false
			for i, x := range run.ExpectedFailures {
				status = append(status, x.Status)
				stale = stale || x.Status == Passed || x.Status == Unmatched
				if e := tt.entries[i]; x.ID != e.ID || x.Reason != e.Reason || x.Expires != e.Expires {
					t.Errorf("entry %d is told of as %+v", i, x)
				}
			}
			if diff := cmp.Diff(tt.status, status); diff != "" {
				t.Error(diff)
			}
			if Stale(run) != stale {
				t.Errorf("Stale is %t", !stale)
			}
			var covered map[string]string
			for _, q := range run.Requirements {
				if q.Expected != "" {
					if covered == nil {
						covered = make(map[string]string)
					}
					covered[q.ID] = q.Expected
				}
			}
			if diff := cmp.Diff(tt.covered, covered); diff != "" {
				t.Error(diff)
			}
		})
	}
}
