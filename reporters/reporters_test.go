package reporters

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/suites/result"
)

var update = flag.Bool("update", false, "write the golden files")

// reporters under their golden file's name.
var reports = map[string]func(w io.Writer, run *result.Run) error{
	"console.txt": func(w io.Writer, run *result.Run) error {
		return Console(w, run, ConsoleOptions{Width: 100})
	},
	"console-verbose.ansi": func(w io.Writer, run *result.Run) error {
		return Console(w, run, ConsoleOptions{Width: 80, Color: true, Verbose: true})
	},
	"junit.xml": func(w io.Writer, run *result.Run) error {
		return JUnit(w, run, JUnitOptions{Hostname: "ci-7"})
	},
	"junit-properties.xml": func(w io.Writer, run *result.Run) error {
		return JUnit(w, run, JUnitOptions{CaseProperties: true})
	},
	"results.json":  JSON,
	"results.sarif": sarif,
	"checklist.md":  Checklist,
	"report.html":   HTML,
	"attestation.json": func(w io.Writer, run *result.Run) error {
		return Attestation(w, run, Attested{Subjects: []Descriptor{SHA256("results.json", strings.Repeat("ab", 32))}, Verdict: result.NotConformant})
	},
	"matrix.md": func(w io.Writer, run *result.Run) error {
		return MatrixMarkdown(w, []*result.Run{run, fixedRun()})
	},
	"matrix.txt": func(w io.Writer, run *result.Run) error {
		return MatrixConsole(w, []*result.Run{run, fixedRun()}, ConsoleOptions{})
	},
}

// fixedRun is the sample after its author fixed one failure, over another transport.
func fixedRun() *result.Run {
	run := sampleRun()
	run.Transport = "http"
	run.Target = result.Target{URL: "https://mcp.example/mcp", Name: "weather", Version: "1.5.0"}
	run.Requirements[0].Verdict, run.Requirements[0].Findings = result.Pass, nil
	run.Requirements = append(run.Requirements[:5:5], run.Requirements[6:]...)
	return run
}

func render(t testing.TB, report func(io.Writer, *result.Run) error, run *result.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := report(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			got := render(t, report, sampleRun())
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got), rewrite with -update:\n%s", diff)
			}
		})
	}
}

// Every format tells a reader these things, whatever else changes.
func TestEveryReportTells(t *testing.T) {
	for name, report := range reports {
		if name == "attestation.json" || name == "results.sarif" || strings.HasPrefix(name, "matrix") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := render(t, report, sampleRun())
			if link := "/basic/lifecycle#version-negotiation"; name != "results.json" && !strings.Contains(got, link) {
				t.Errorf("the report does not link to %s", link)
			}
			// The console names what was not exercised only if it is verbose.
			if name != "console.txt" && !strings.Contains(got, "progress.token.echoed") {
				t.Error("the report does not name what was not exercised")
			}
			for _, want := range []string{"lifecycle.version.echo-supported", "2024-11-05 although 2025-06-18 was requested",
				"tools.list.unique-names", "no tool reported progress",
				"permission denied", "a request repeated an id", "tools.gone", "Traceback", "exit status 1"} {
				if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
					t.Errorf("the report does not contain %q", want)
				}
			}
		})
	}
}

func TestNoRun(t *testing.T) {
	for name, report := range reports {
		if err := report(io.Discard, nil); err == nil {
			t.Errorf("%s: a nil run was reported", name)
		}
	}
}

func TestEmptyRun(t *testing.T) {
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			run := &result.Run{Verdict: result.Incomplete, Reason: "the target could not be started", Role: "server"}
			if got := render(t, report, run); strings.Contains(got, "%!") {
				t.Errorf("bad format:\n%s", got)
			}
		})
	}
}

// Numbers that a run can hold when something went very wrong.
func TestOddNumbers(t *testing.T) {
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			run := sampleRun()
			run.Seconds = math.NaN()
			run.Started = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)
			if name == "results.json" {
				run.Started = time.Time{}
			}
			if got := render(t, report, run); strings.Contains(got, "NaN") || strings.Contains(got, "-0005") {
				t.Errorf("odd number in:\n%s", got)
			}
		})
	}
}

type brokenWriter struct{ left int }

var errBroken = errors.New("disk full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	for name, report := range reports {
		for _, left := range []int{0, 200} {
			if err := report(&brokenWriter{left}, sampleRun()); !errors.Is(err, errBroken) {
				t.Errorf("%s after %d bytes: error %v, want %v", name, left, err, errBroken)
			}
		}
	}
}

// A target can send megabytes; a report for people stays readable.
func TestLongTextIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: long reports")
	}
	long := strings.Repeat("<\x1b|\u202e`", 1<<18)
	for name, report := range reports {
		if name == "results.json" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			short, grown := sampleRun(), sampleRun()
			plant(grown, long)
			if extra := len(render(t, report, grown)) - len(render(t, report, short)); extra > 4<<20 {
				t.Errorf("%d bytes more for text of %d bytes", extra, len(long))
			}
		})
	}
}

// plant puts text into every place of run that a target's bytes can reach.
func plant(run *result.Run, text string) {
	run.Target.Name, run.Target.Title, run.Target.Version, run.Target.ProtocolVersion = text, text, text, text
	run.Target.Command = []string{text}
	run.Target.Capabilities = json.RawMessage(text)
	run.Reason = text
	run.Notes = []string{text}
	for i := range run.Uncalled {
		run.Uncalled[i].Tool = text
	}
	findings := func(list []result.Finding) {
		for i := range list {
			list[i].Message = text
			for j := range list[i].Evidence {
				e := &list[i].Evidence[j]
				e.Text, e.Kind, e.Stream, e.Connection = text, text, text, text
			}
		}
	}
	findings(run.Harness)
	for i := range run.Requirements {
		q := &run.Requirements[i]
		q.Reason = text
		q.Notes = []string{text}
		findings(q.Findings)
	}
	for i := range run.ExpectedFailures {
		run.ExpectedFailures[i].Reason = text
	}
}

// plantAll also fills what only a doctored results.json can hold.
func plantAll(run *result.Run, text string) {
	plant(run, text)
	run.Tool = result.Tool{Name: text, Version: text}
	run.Revision, run.Transport = text, text
	for i := range run.Requirements {
		q := &run.Requirements[i]
		q.Summary, q.Anchor, q.Party, q.Level, q.Page, q.Expected = text, text, text, text, text, text
		q.ID += text
		q.Checks = []string{text}
	}
	for i := range run.Uncalled {
		run.Uncalled[i].Reason = text
	}
	for i := range run.ExpectedFailures {
		x := &run.ExpectedFailures[i]
		x.ID, x.Expires = text, text
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain", "plain"},
		{"", ""},
		{"Grüße, 世界 🎉", "Grüße, 世界 🎉"},
		{"\x1b[31m", `\x1b[31m`},
		{"\u009b31m", `\u009b31m`},
		{"a\r\n\tb", `a\r\n\tb`},
		{"\xff\xc3(", `\xff\xc3(`},
		{"\u202e\u2066\u200b\ufeff\u2028", `\u202e\u2066\u200b\ufeff\u2028`},
		{"\ufffe\ufffd", "\\ufffe\ufffd"},
		{"\U000E0041", `\U000e0041`},
		{"\u3164", `\u3164`},
		{"e" + strings.Repeat("\u0301", 6), "e" + strings.Repeat("\u0301", 4) + `\u0301\u0301`},
	} {
		if got := line(test.in, 100); got != test.want {
			t.Errorf("line(%q) = %q, want %q", test.in, got, test.want)
		}
	}
	if got, want := line(strings.Repeat("é", 100), 40), strings.Repeat("é", 15)+" …[160 bytes]… "+strings.Repeat("é", 5); got != want {
		t.Errorf("shortened to %q, want %q", got, want)
	}
	if got, want := line("a"+strings.Repeat(" word", 20), 40), "a"+strings.Repeat(" word", 5)+" …[66 bytes]… word word"; got != want {
		t.Errorf("shortened to %q, want %q", got, want)
	}
	if s := strings.Repeat("word ", 10); line(s, 40) != s {
		t.Errorf("%q is shortened to %q, which is longer", s, line(s, 40))
	}
	if got := line(strings.Repeat("\x80", 100), 40); !utf8.ValidString(got) {
		t.Errorf("not UTF-8: %q", got)
	}
}

func TestExcerpt(t *testing.T) {
	message := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","description":"` + strings.Repeat("long ", 40) +
		`","inputSchema":{"type":"array"}}],"filler":"` + strings.Repeat("x", 200) + `"}}`
	for _, test := range []struct {
		name, message string
		has           string
	}{
		{"quoted", `member "inputSchema" has the wrong type`, `"inputSchema":{"type":"array"}`},
		{"pointer", "at /result/tools/0/inputSchema: type is array", `"inputSchema":{"type":"array"}`},
		{"nothing to look for", "wrong", `xxx"}}`},
	} {
		got := excerpt(message, 100, test.message)
		if columns(got) > 100 {
			t.Errorf("%s: %d columns", test.name, columns(got))
		}
		if !strings.Contains(got, test.has) || !strings.HasPrefix(got, `{…"id":1,"result"`) {
			t.Errorf("%s: %s", test.name, got)
		}
	}
	if got := excerpt(strings.Repeat("世", 50), 21, ""); columns(got) > 21 || utf8.RuneCountInString(got) < 9 {
		t.Errorf("wide characters: %q", got)
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		in      string
		n, used int
		want    []string
	}{
		{"", 10, 0, []string{""}},
		{"one two three", 10, 0, []string{"one two", "three"}},
		{"one two three", 10, 5, []string{"one", "two three"}},
		{"onetwothree", 10, 8, []string{"", "onetwothre", "e"}},
		{"世界世界世界", 8, 0, []string{"世界世界", "世界"}},
	} {
		if diff := cmp.Diff(test.want, wrap(test.in, test.n, test.used)); diff != "" {
			t.Errorf("wrap(%q, %d, %d) (-want +got):\n%s", test.in, test.n, test.used, diff)
		}
	}
}

func TestOutcome(t *testing.T) {
	run := &result.Run{
		Requirements: []result.Requirement{
			{ID: "a", Observable: true, Verdict: result.Fail},
			{ID: "b", Observable: true, Verdict: result.Fail},
			{ID: "c", Observable: true, Verdict: result.Fail, Expected: "known"},
			{ID: "d", Observable: true, Verdict: result.Pass, Expected: "known"},
			{ID: "e", Observable: true, Verdict: "splendid"},
			{ID: "f", Verdict: result.Skip},
		},
		ExpectedFailures: []result.ExpectedFailure{{ID: "b", Status: "failed"}, {ID: "a", Status: "expired"}},
	}
	v, err := newView(run)
	if err != nil {
		t.Fatal(err)
	}
	want := map[outcome]int{outFail: 1, outExpected: 2, outPass: 1, outError: 1}
	if diff := cmp.Diff(want, v.counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"a-b": "a-b", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

// The basis of a run is named once, even if it is the reason why the run is incomplete.
func TestIncompleteInOneLine(t *testing.T) {
	warned := result.Requirement{ID: "a", Level: "SHOULD", Page: "p", Observable: true, Verdict: result.Warn, Exercised: 1}
	for _, tt := range []struct {
		run  result.Run
		want string
	}{
		{result.Run{Verdict: result.Incomplete, Reason: "nothing was exercised", Partial: true}, "INCOMPLETE: nothing was exercised; only a selection was judged."},
		{result.Run{Verdict: result.Incomplete, Reason: "it was cut short."}, "INCOMPLETE: it was cut short; nothing was exercised."},
		{result.Run{Verdict: result.Conformant, Requirements: []result.Requirement{warned}}, "CONFORMANT: 1 requirement exercised, 1 recommendation not followed."},
	} {
		if got, err := VerdictLine(&tt.run); got != tt.want || err != nil {
			t.Errorf("%q, error %v, want %q", got, err, tt.want)
		}
	}
}
