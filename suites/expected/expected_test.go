package expected

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []Entry
		err        string
	}{
		{"empty", "", nil, ""},
		{
			"good", "- id: tools.*\n  reason: known\n  expires: 2026-01-31\n- {id: ping.answered, reason: too}\n",
			[]Entry{{"tools.*", "known", "2026-01-31"}, {ID: "ping.answered", Reason: "too"}}, "",
		},
		{"no list", "id: a\nreason: b\n", nil, ":1:3: "},
		{"unknown member", "- id: a\n  reason: b\n  expire: 2026-01-31\n", nil, `:3:3: unknown field "expire"`},
		{"no id", "- reason: b\n", nil, ":1:3: the entry names no requirement: its id is missing"},
		{"no pattern", "- id: 'a['\n  reason: b\n", nil, `:1:7: "a[" is no pattern: syntax error in pattern`},
		{"no reason", "- id: a\n  reason: b\n- id: c\n", nil, ":3:3: the entry for c gives no reason"},
		{"blank reason", "- id: a\n  reason: ' '\n", nil, ":2:11: the entry for a gives no reason"},
		{"no date", "- id: a\n  reason: b\n  expires: soon\n", nil, `:3:12: "soon" is no date: it is written YYYY-MM-DD`},
		{"no such day", "- id: a\n  reason: b\n  expires: 2026-02-30\n", nil, `:3:12: "2026-02-30" is no date: it is written YYYY-MM-DD`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "f.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(file)
			switch {
			case tt.err == "" && err != nil:
				t.Fatal(err)
			case tt.err == "":
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			case err == nil || !strings.Contains(err.Error(), file+tt.err):
				t.Errorf("got error %v, want %s", err, tt.err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

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
			run := &result.Run{}
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
