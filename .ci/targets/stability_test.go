package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

func TestTally(t *testing.T) {
	for _, c := range []struct {
		name       string
		tally      tally
		idle, busy bool
	}{
		{"the same", tally{result.Pass: 3}, false, false},
		{"two verdicts", tally{result.Pass: 2, result.Fail: 1}, true, true},
		{"known less once", tally{result.Pass: 2, result.Inconclusive: 1}, true, false},
		{"known less, and two verdicts", tally{result.Pass: 1, result.Warn: 1, result.Inconclusive: 1}, true, true},
		{"a run that is incomplete", tally{result.Verdict(result.Conformant): 2, result.Verdict(result.Incomplete): 1}, true, false},
	} {
		if got := c.tally.differs(false); got != c.idle {
			t.Errorf("%s: differs on an idle machine = %v", c.name, got)
		}
		if got := c.tally.differs(true); got != c.busy {
			t.Errorf("%s: differs on a busy machine = %v", c.name, got)
		}
	}
	if got, want := (tally{result.Pass: 1, result.Fail: 2}).String(), "fail 2, pass 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A difference counts unless it is known to be a race of the target; what a target does in
// some runs only excuses that others know less, and no more.
func TestDifferences(t *testing.T) {
	r := row{
		known: argued{Timing: map[string]string{"raced": "why"}, Seldom: map[string]string{"seldom": "why", "both": "why"}},
		verdicts: map[string]tally{
			"same": {result.Pass: 2}, "raced": {result.Pass: 1, result.Fail: 1}, "odd": {result.Pass: 1, result.Inconclusive: 1},
			"seldom": {result.Pass: 1, result.Inconclusive: 1}, "both": {result.Pass: 1, result.Fail: 1},
		},
	}
	unexplained, races := r.differences(false)
	if got, want := strings.Join(unexplained, "; "), "both: fail 1, pass 1; odd: inconclusive 1, pass 1"; got != want {
		t.Errorf("unexplained are %q, want %q", got, want)
	}
	if got, want := strings.Join(races, "; "), "raced: fail 1, pass 1; seldom: inconclusive 1, pass 1"; got != want {
		t.Errorf("races are %q, want %q", got, want)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]time.Duration{5, 1, 3}); got != 3 {
		t.Errorf("median of 5, 1, 3 is %d", got)
	}
	if got := median[int64](nil); got != 0 {
		t.Errorf("median of nothing is %d", got)
	}
}

func TestReplaceBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("a\n<!-- idle -->\nold\n<!-- end of idle -->\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceBetween(path, "idle", "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "a\n<!-- idle -->\n\nnew\n\n<!-- end of idle -->\nb\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := replaceBetween(path, "busy", "new\n"); err == nil || !strings.Contains(err.Error(), "<!-- busy -->") {
		t.Errorf("the error about missing marks is %v", err)
	}
}

// TestDocuments sees that the pages have the places that the commands write to.
func TestDocuments(t *testing.T) {
	for path, names := range map[string][]string{
		"../../docs/stability.md": {"idle", "busy"}, "../../docs/authorization.md": {"beside"}, "../../docs/performance.md": {"race"},
		"../../docs/interop.md": {
			"servers", "clients", "authorization servers", "findings on servers", "findings on clients",
			"findings on authorization servers",
		},
	} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			_, rest, ok := strings.Cut(string(raw), "<!-- "+name+" -->\n")
			if !ok || !strings.Contains(rest, "<!-- end of "+name+" -->") {
				t.Errorf("%s has no place for the table %q", path, name)
			}
		}
	}
}

func TestShellWords(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("left out: no POSIX shell")
	}
	words := []string{"printf", "%s|", "a b", "it's", `"$HOME"`, ""}
	out, err := exec.Command(sh, "-c", shellWords(words)).Output()
	if got, want := string(out), `a b|it's|"$HOME"||`; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestSubjects(t *testing.T) {
	data := &Data{Targets: []*Target{
		{Name: "s", Kind: "server", Transports: map[string]*Transport{"http": {}, "stdio": {}}},
		{Name: "t", Kind: "tool", Transports: map[string]*Transport{"http": {}}},
		{Name: "a", Kind: authorizationServer, Transports: map[string]*Transport{"http": {}}},
	}}
	all, err := data.subjects(nil)
	if err != nil || len(all) != 3 || all[0].String() != "s stdio" || all[1].String() != "s http" ||
		all[2].String() != "a http" {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := data.subjects([]string{"x"}); err == nil {
		t.Error("an unknown target is accepted")
	}
}

func TestArguments(t *testing.T) {
	run := &Run{Command: []string{"x", "1"}, URL: "http://127.0.0.1:1/mcp"}
	for _, c := range []struct {
		kind, over string
		run        Run
		want       string
	}{
		{"server", "stdio", *run, "server"},
		{"server", "http", *run, "server --transport http --url http://127.0.0.1:1/mcp --start exec 'x' '1'"},
		{"client", "http", Run{Authorizes: true}, "client --transport http --authorizes"},
		{
			authorizationServer, "http", Run{URL: "http://127.0.0.1:1", Client: "c"},
			"authorization --url http://127.0.0.1:1 --resource https://mcp.example/mcp --client-id c",
		},
	} {
		got := strings.Join(subject{&Target{Kind: c.kind}, c.over}.arguments(&c.run), " ")
		if got != c.want {
			t.Errorf("%s over %s: got %q, want %q", c.kind, c.over, got, c.want)
		}
	}
}
