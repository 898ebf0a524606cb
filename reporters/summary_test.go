package reporters

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestSummary(t *testing.T) {
	run := func(v result.Overall, reason string, verdicts ...result.Verdict) *result.Run {
		r := &result.Run{Verdict: v, Reason: reason, Seconds: 1.25}
		for i, v := range verdicts {
			r.Requirements = append(r.Requirements, result.Requirement{ID: "a." + string(rune('a'+i)), Level: "MUST", Verdict: v, Observable: true})
		}
		return r
	}
	var b bytes.Buffer
	err := Summary(&b, []Member{
		{Name: "good", Run: run(result.Conformant, "", result.Pass, result.Pass)},
		{Name: "bad\x1b[31m\nserver", Run: run(result.NotConformant, "", result.Fail, result.Fail, result.Fail, result.Fail, result.Pass)},
		{Name: "cut", Run: run(result.Incomplete, "the run was interrupted", result.Inconclusive)},
		{Name: "none", Err: errors.New("it is disabled in the file")},
		{Name: strings.Repeat("long", 100)},
	}, ConsoleOptions{Width: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"CONFORMANT      2 passed (1.2 s)", "NOT CONFORMANT  4 failed · 1 passed (1.2 s)", "a.a, a.b, a.c and 1 more", "the run was interrupted",
		"NOT TESTED      it is disabled in the file",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table does not say %q", want)
		}
	}
	if strings.ContainsRune(got, '\x1b') || strings.Count(got, "\n") != 7 {
		t.Error("a name changes the table")
	}
	if t.Failed() {
		t.Log(got)
	}
}
