package reporters

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/suites/result"
)

// checkPlain fails if text holds anything but printable characters and line
// ends, or a line that is wider than the terminal and no address.
func checkPlain(t *testing.T, text string, width int) {
	t.Helper()
	if err := wellformed.Plain(text); err != nil {
		t.Fatal(err)
	}
	for _, s := range strings.Split(text, "\n") {
		if columns(s) > width && !strings.Contains(s, "https://modelcontextprotocol.io/") && !strings.Contains(s, "https://github.com/") {
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
		if q.ID != "stdio.stdout.only-messages" && q.ID != "tools.list-changed.sent" && q.Disputed == nil && q.SDK == nil {
			few = append(few, q)
		}
	}
	run.Requirements = few
	text := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: 120}) }, run)
	if n := strings.Count(text, "\n"); n > 48 {
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
	text := strings.Join(strings.Fields(b.String()), " ")
	last := 0
	for _, want := range []string{
		"1 could not be provoked, 1 did not come up", "1 of them: no tool does it", " Incomplete because: the client hung. ", "2 untested", " INCOMPLETE: ",
	} {
		at := strings.Index(text[last:], want)
		if at < 0 {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", want, text)
		}
		last += at
	}
}

// The end of the report has, in this order: why things are untested in three lines,
// the ids of all that was broken, where the reports are, the verdict.
func TestConsoleEnd(t *testing.T) {
	run := &result.Run{Role: "server", Verdict: result.NotConformant}
	add := func(id string, verdict result.Verdict, why string) {
		run.Requirements = append(run.Requirements, result.Requirement{ID: id, Level: "MUST", Page: "p", Observable: true, Verdict: verdict, Reason: why})
	}
	for i := range 30 {
		add(fmt.Sprintf("a.failed-%d", i), result.Fail, "")
		add(fmt.Sprintf("b.warned-%d", i), result.Warn, "")
		q := &run.Requirements
		add(fmt.Sprintf("c.unseen-%d", i), result.Inconclusive, fmt.Sprintf("reason %d, %s", i/4, strings.Repeat("which is long ", 20)))
		(*q)[len(*q)-1].Unexercised = []result.Unexercised{result.NotProvoked, result.NeverDone, result.NotRun}[i%3]
	}
	for _, width := range []int{0, 60, 80, 120} {
		text := render(t, func(w io.Writer, run *result.Run) error {
			return Console(w, run, ConsoleOptions{Width: width, Files: []File{{"Results", "out/results.json"}, {"JUnit report", "j\x1b.xml"}}})
		}, run)
		words, last := strings.Join(strings.Fields(text), " "), 0
		for _, want := range []string{"Untested (30 apply", "10 could not be provoked", "Failed a.failed-0, a.failed-1", "a.failed-29",
			"Warned b.warned-0", "and 18 more", "Results out/results.json", `JUnit report j\x1b.xml`, "NOT CONFORMANT:"} {
			at := strings.Index(words[last:], want)
			if at < 0 {
				t.Fatalf("width %d: %q is missing, or not in its place, in:\n%s", width, want, text)
			}
			last += at
		}
		block := text[strings.Index(text, "\nUntested")+1:]
		block = block[:strings.Index(block, "\n\n")]
		if n := strings.Count(block, "\n") + 1; n > 3 && width != 60 {
			t.Errorf("width %d: %d lines say why things are untested:\n%s", width, n, block)
		}
	}
}

// One finding is shown with its evidence, and the others by what differs: nobody learns
// anything from "and 145 more".
func TestConsoleGroupsFindings(t *testing.T) {
	q := result.Requirement{ID: "a.b", Level: "MUST", Page: "p", Observable: true, Verdict: result.Fail, Exercised: 9, Omitted: 11}
	for _, message := range []string{`with "a" as the name, error -1 came`, `with "b" as the name, error -2 came`, "nothing came", `with {"c":1} as the name, error -1 came`} {
		q.Findings = append(q.Findings, result.Finding{Message: message, Evidence: []result.Event{{Kind: "message", From: "server", Text: "evidence of " + message}}})
	}
	q.Findings[2].Repeated = 7
	run := &result.Run{Role: "server", Requirements: []result.Requirement{q}}
	brief := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: 200}) }, run)
	for want, n := range map[string]int{
		`evidence of with "a"`: 1, `evidence of with "b"`: 0, "evidence of nothing": 0,
		`And          7 more: with "b" as the name, error -2 came, nothing came, {"c":1} (-v)`: 1,
	} {
		if got := strings.Count(brief, want); got != n {
			t.Errorf("%q stands there %d times, not %d, in:\n%s", want, got, n, brief)
		}
	}
	verbose := render(t, func(w io.Writer, run *result.Run) error {
		return Console(w, run, ConsoleOptions{Width: 200, Verbose: true})
	}, run)
	if n := strings.Count(verbose, "evidence of"); n != 4 {
		t.Errorf("%d of 4 findings have their evidence in the verbose report:\n%s", n, verbose)
	}
}

// The deciding part stands in the evidence at every width, and whole without a terminal.
func TestConsoleKeepsWhatDecides(t *testing.T) {
	answer := `{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"` + strings.Repeat(`[\n {\"expected\": \"string\" `, 5) + `"}}`
	late := `{"jsonrpc":"2.0","id":4,"error":{"message":"` + strings.Repeat(`[\n {\"expected\": \"string\" `, 20) + `","code":-32603}}`
	for _, width := range []int{0, 60, 80, 120} {
		for _, text := range []string{answer, late} {
			run := &result.Run{Role: "server", Requirements: []result.Requirement{{ID: "a.b", Level: "MUST", Page: "p", Observable: true, Verdict: result.Fail,
				Findings: []result.Finding{{Message: `answered with error -32603: "[ { \"expected\": \"string\"", not with error -32602`,
					Evidence: []result.Event{{Kind: "message", From: "server", Text: text}}}}}}}
			got := render(t, func(w io.Writer, run *result.Run) error { return Console(w, run, ConsoleOptions{Width: width}) }, run)
			if !strings.Contains(got, `"code":-32603`) {
				t.Errorf("width %d: the code is not in the evidence:\n%s", width, got)
			}
			if whole := strings.Contains(got, "← "+unescaped(text)); whole != (width == 0 && text == answer) {
				t.Errorf("width %d: the evidence is whole: %t", width, whole)
			}
		}
	}
}
