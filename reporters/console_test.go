package reporters

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/mcpconform/mcpconform/suites/result"
)

// checkPlain fails if text holds anything but printable characters and line
// ends, or a line that is wider than the terminal and no address.
func checkPlain(t *testing.T, text string, width int) {
	t.Helper()
	for _, s := range strings.Split(text, "\n") {
		for _, r := range s {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q in line %q", r, s)
			}
		}
		if columns(s) > width && !strings.Contains(s, "https://modelcontextprotocol.io/") {
			t.Fatalf("%d columns in line %q", columns(s), s)
		}
	}
}

func TestConsoleIsPlain(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		for _, verbose := range []bool{false, true} {
			run := sampleRun()
			plant(run, hostile)
			var b bytes.Buffer
			if err := Console(&b, run, ConsoleOptions{Width: width, Verbose: verbose}); err != nil {
				t.Fatal(err)
			}
			checkPlain(t, b.String(), width)
		}
	}
}

// Taking our colours away leaves exactly the report without colours.
func TestConsoleColor(t *testing.T) {
	plain := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{}) }, sampleRun())
	colored := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Color: true}) }, sampleRun())
	if colored == plain {
		t.Error("no colour")
	}
	if got := stripSGR(colored); got != plain {
		t.Errorf("got:\n%s\nwant:\n%s", got, plain)
	}
}

// An author with a few failures sees everything on one screen.
func TestConsoleIsCompact(t *testing.T) {
	run := sampleRun()
	run.Harness, run.Notes, run.Uncalled, run.ExpectedFailures = nil, nil, nil, nil
	run.Target.Title = ""
	var few []result.Requirement
	for _, q := range run.Requirements {
		if q.ID != "stdio.stdout.only-messages" && q.ID != "tools.list-changed.sent" && q.Disputed == nil {
			few = append(few, q)
		}
	}
	run.Requirements = few
	text := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: 120}) }, run)
	if n := strings.Count(text, "\n"); n > 36 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestConsoleVerdictIsLast(t *testing.T) {
	for verdict, want := range map[result.Overall]string{
		result.Conformant: "\nCONFORMANT: ", result.NotConformant: "\nNOT CONFORMANT: ", result.Incomplete: "\nINCOMPLETE: ",
	} {
		run := sampleRun()
		run.Verdict = verdict
		if verdict == result.Incomplete {
			run.Reason = "the target died."
		}
		text := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: 300}) }, run)
		at := strings.LastIndex(text, want)
		if at < 0 || strings.Count(text[at:], "\n") > 4 {
			t.Errorf("%s is not at the end of:\n%s", want, text)
		}
	}
}

func TestColorEnabled(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false}, // a buffer is not a terminal
		{map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
	} {
		if got := ColorEnabled(new(bytes.Buffer), func(k string) string { return test.env[k] }); got != test.want {
			t.Errorf("%v: %v", test.env, got)
		}
	}
}

func FuzzConsole(f *testing.F) {
	f.Add(hostile, 80)
	f.Add("`\x1b`世界"+strings.Repeat("\u0301", 100), 40)
	f.Add(strings.Repeat("\"a\":", 100), 41)
	f.Fuzz(func(t *testing.T, text string, width int) {
		width = min(max(width, 40), 300)
		run := sampleRun()
		plantAll(run, text)
		for _, verbose := range []bool{false, true} {
			var b bytes.Buffer
			if err := Console(&b, run, ConsoleOptions{Width: width, Verbose: verbose}); err != nil {
				t.Fatal(err)
			}
			for _, r := range b.String() {
				if r != '\n' && !unicode.IsPrint(r) {
					t.Fatalf("%q in the output", r)
				}
			}
		}
	})
}

// The reason why a run is incomplete comes before all else of the summary, and the
// kinds of reasons of requirements are told apart.
func TestConsoleIncomplete(t *testing.T) {
	run := &result.Run{Role: "client", Verdict: result.Incomplete, Reason: "the client hung.", Requirements: []result.Requirement{
		{ID: "a.b", Page: "p", Observable: true, Verdict: result.Pass, Exercised: 1},
		{ID: "a.c", Page: "p", Observable: true, Verdict: result.Inconclusive, Unexercised: result.NeverDone, Reason: "it was quiet"},
		{ID: "a.d", Page: "p", Observable: true, Verdict: result.Inconclusive, Unexercised: result.NotProvoked, Reason: "no tool does it"},
	}}
	var b strings.Builder
	if err := Console(&b, run, ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	last := 0
	for _, want := range []string{
		"they could not be provoked (1):", "no tool does it", "the client did nothing that they are about (1):", "it was quiet",
		"\nIncomplete because: the client hung.\n", "2 inconclusive", "\nINCOMPLETE: ",
	} {
		at := strings.Index(text[last:], want)
		if at < 0 {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", want, text)
		}
		last += at
	}
}
