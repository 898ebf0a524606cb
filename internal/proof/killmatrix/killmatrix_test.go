package killmatrix

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcpconform/mcpconform/suites/result"
)

const required = "base.json.object" // a MUST

// The entries of a matrix on the checks that catch a fault are read back unchanged.
func TestCaughtBy(t *testing.T) {
	m := Matrix{Head: "# Matrix\n", Faults: []Fault{
		{ID: "base.a", Requirement: required, Summary: "One | the other.", Scenario: "baseline"},
		{ID: "base.b", Requirement: required, Summary: "Nothing."},
	}}
	kills := []*kill{{by: []string{"rule: envelope", "stdio/a|b"}}, {by: []string{"base/b"}}}
	want := map[string][]string{"base.a": kills[0].by, "base.b": kills[1].by}
	for _, m.Scenarios = range []bool{false, true} {
		if diff := cmp.Diff(want, caughtBy(string(m.text(kills)))); diff != "" {
			t.Errorf("with scenarios %t (-want +got):\n%s", m.Scenarios, diff)
		}
	}
}

// An accidental find of a sequence is written down only if nothing else catches the fault.
func TestBound(t *testing.T) {
	for _, c := range [][2][]string{
		{{"cancellation/race", "sequences/session"}, {"cancellation/race"}},
		{{"rule: roots", "scenario: sequences/session"}, {"rule: roots"}},
		{{"sequences/session"}, {"sequences/session"}},
		{{"a", "b"}, {"a", "b"}},
	} {
		if diff := cmp.Diff(c[1], bound(c[0])); diff != "" {
			t.Errorf("of %q (-want +got):\n%s", c[0], diff)
		}
	}
}

// The checks in the file have to have caught the fault; more may have.
func TestWithout(t *testing.T) {
	seen := []string{"rule: responses", "sequences/session"}
	if missing := without([]string{"rule: responses"}, seen); len(missing) > 0 {
		t.Errorf("missing %q", missing)
	}
	if missing := without([]string{"base/b", "rule: responses"}, seen); cmp.Diff([]string{"base/b"}, missing) != "" {
		t.Errorf("missing %q", missing)
	}
}

func TestJudged(t *testing.T) {
	caught := result.Requirement{ID: required, Verdict: result.Fail, Findings: []result.Finding{{Check: "rule: envelope"}, {Check: "rule: envelope"}}}
	beside := result.Requirement{ID: "base.json.unique-names", Verdict: result.Warn, Reason: "of itself"}
	for _, c := range []struct {
		name     string
		fault    Fault
		found    []result.Requirement
		harness  []result.Finding
		problems int
	}{
		{"caught", Fault{Requirement: required}, []result.Requirement{caught}, nil, 0},
		{"caught too severely", Fault{Requirement: required, WarnOnly: true}, []result.Requirement{caught}, nil, 1},
		{"not caught", Fault{Requirement: required}, []result.Requirement{{ID: required, Verdict: result.Pass}}, nil, 1},
		{"something else", Fault{Requirement: required}, []result.Requirement{caught, beside}, nil, 1},
		{"collateral", Fault{Requirement: required, Collateral: []string{beside.ID}}, []result.Requirement{caught, beside}, nil, 0},
		{"our own fault", Fault{Requirement: required}, []result.Requirement{caught}, []result.Finding{{Message: "ours"}}, 1},
	} {
		k := judged(c.fault, &result.Run{Requirements: c.found, Harness: c.harness})
		if k.missed != "" {
			k.problems = append(k.problems, k.missed)
		}
		if len(k.problems) != c.problems {
			t.Errorf("%s: problems %q, want %d", c.name, k.problems, c.problems)
		}
		if c.found[0].Verdict == result.Fail && cmp.Diff([]string{"rule: envelope"}, k.by) != "" {
			t.Errorf("%s: by %q", c.name, k.by)
		}
	}
}

// Each fault is counted under one form.
func TestCountForms(t *testing.T) {
	m := Matrix{Faults: []Fault{{}, {}, {Form: "value"}, {Form: "session"}, {Form: "concurrent"}, {Form: "sequence"}, {Form: "sequence"}}}
	var b bytes.Buffer
	m.countForms(&b)
	want := map[string]int{"plain": 2, "value": 1, "session": 1, "concurrent": 1, "sequence": 2}
	for form, n := range want {
		if row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \|.*\| %d \|$`, form, n)); !row.Match(b.Bytes()) {
			t.Errorf("no row says that %d faults are of the form %s:\n%s", n, form, b.String())
		}
	}
}
