package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
)

// Wrong usage is refused before anything runs, by a message that names it.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const never = "./no-such-program"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"reference", "frob"}, `"frob"`},
		{[]string{"judge"}, "one TRACE"},
		{[]string{"explain"}, "the IDs of requirements"},
		{[]string{"explain", "tools.*.none"}, `no requirement matches "tools.*.none"`},
		{[]string{"explain", "tools.[a"}, "is not a glob"},
		{[]string{"explain", "ping.response-promt"}, "ping.response-prompt"},
		{[]string{"server", "--quick", "--thorough"}, "--quick and --thorough cannot be given together"},
		{[]string{"client", "--thorough", "--quick", "--", never}, "--quick and --thorough cannot be given together"},
		{[]string{"certify", "client", "--out", "b.zip", "--quick"}, "--quick cannot be given"},
		{[]string{"server", "--timout", "3s"}, "did you mean --timeout? mcpconform server --help"},
		{[]string{"mock", "--fault", "ping.silnt"}, "the nearest are ping.silent, "},
		{[]string{"mock", "client", "--fault", "ping.onse", never}, "ping.once"},
		{[]string{"client", "--scenario", "http/cut-steam", "--", never}, "the nearest are http/cut-stream, "},
		{[]string{"report"}, "RESULTS.json"},
		{[]string{"reference", "client"}, "COMMAND"},
		{[]string{"server", "--parallel=-1"}, "--parallel"},
		{[]string{"client", "--parallel=-1"}, "--parallel"},
		{[]string{"server", "--select", ""}, "--select is empty"},
		{[]string{"client", "--skip", ""}, "--skip is empty"},
		{[]string{"proxy", "--select", "", "--", never}, "--select is empty"},
		{[]string{"judge", "--skip", "", "file"}, "--skip is empty"},
		{[]string{"server", "--header", "A: b", "--", never}, "--header"},
		{[]string{"server", "--config", "none"}, "--config: open none"},
		{[]string{"server", "--expected-failures", "none"}, "--expected-failures: open none"},
		{[]string{"client", "--expected-failures", "none"}, "--expected-failures: open none"},
		{[]string{"mock", "--script", "none"}, "--script: open none"},
		{[]string{"server", "--json", "."}, "--json: . is a folder"},
		{[]string{"client", "--html", "file/report.html"}, "--html: "},
		{[]string{"judge", "--junit", ".", "file"}, "--junit: . is a folder"},
		{[]string{"proxy", "--markdown", "file/x.md", "--", never}, "--markdown: "},
		{[]string{"matrix"}, "one DIR"},
		{[]string{"matrix", "."}, "--out is missing"},
		{[]string{"matrix", ".", "--out", "site"}, "neither a bundle nor results"},
		{[]string{"verify"}, "one BUNDLE"},
		{[]string{"verify", "none"}, "open none"},
		{[]string{"verify", "."}, "is not a file"},
		{[]string{"certify", "server"}, "--out is missing"},
		{[]string{"certify", "server", "--out", "."}, "--out: . is a folder"},
		{[]string{"certify", "server", "--out", "b.zip", "--class", "easy"}, "--class is"},
		{[]string{"certify", "server", "--out", "b.zip", "--select", "ping"}, "--select cannot be given"},
		{[]string{"certify", "server", "--out", "b.zip", "--skip", "ping"}, "--skip cannot be given"},
		{[]string{"certify", "server", "--out", "b.zip", "--label-filter", "id: isEmpty"}, "--label-filter cannot be given"},
		{[]string{"certify", "server", "--out", "b.zip", "--shard", "1/2"}, "--shard cannot be given"},
		{[]string{"certify", "server", "--out", "b.zip", "--expected-failures", "file"}, "--expected-failures cannot be given"},
		{[]string{"certify", "server", "--out", "b.zip", "--all"}, "--all cannot be given"},
		{[]string{"certify", "client", "--out", "b.zip", "--scenario", "baseline"}, "--scenario cannot be given"},
		{[]string{"certify", "client", "--out", "b.zip", "--strict"}, "--strict cannot be given"},
		{[]string{"certify", "client", "--out", "b.zip", "--serve"}, "--serve cannot be given"},
		{[]string{"report", "file", "--fail-on-breaking"}, "--fail-on-breaking needs --against"},
		{[]string{"server", "--attestation", "a"}, "--attestation needs --json"},
		{[]string{"client", "--json", "same", "--html", "same"}, "--json and --html name the same file, same"},
		// None is on a server, or on a client.
		{[]string{"proxy", "--select", "ping.periodic", "--skip", "ping", "--", never}, "left to judge"},
	} {
		cmd := newRoot()
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		var code exitError
		if err == nil || errors.As(err, &code) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

// A proxy judges the parties that a selection concerns.
func TestSelectedParties(t *testing.T) {
	both := []wire.Party{wire.Server, wire.Client}
	for pattern, want := range map[string]int{"tools.name.unique": 1, "http.client.delete-session": 1, "base.json.well-formed": 2} {
		if got, err := (&selectionFlags{suites.Selection{Select: []string{pattern}}}).parties(both); err != nil || len(got) != want {
			t.Errorf("%s: %v, %v, want %d parties", pattern, got, err, want)
		}
	}
}

func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "-", kept, filepath.Join(dir, "new"), filepath.Join(dir, "folder", "new"), os.DevNull} {
		if err := checkFile(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(kept); string(text) != "old" {
		t.Errorf("the old report is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("an empty report was left")
	}
}
