package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// TestShardsAreMerged goes from the flag to the merged reports.
func TestShardsAreMerged(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mcpconform := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), asCommand+"=1")
		out, _ := cmd.CombinedOutput() // the exit code tells
		return string(out), cmd.ProcessState.ExitCode()
	}
	url := start(t, served(t, nil)).URL + "/mcp"
	for _, n := range []string{"1", "2", "3"} {
		if out, code := mcpconform("server", "--url", url, few, "--shard", n+"/3", "--json", n+".json"); code != exitConformant {
			t.Errorf("shard %s: exit code %d: %s", n, code, out)
		}
	}
	out, code := mcpconform("report", "3.json", "1.json", "2.json", "--json", "all.json", "--junit", "all.xml", "--html", "all.html", "--markdown", "all.md")
	if code != exitConformant || !strings.Contains(out, "3 requirements exercised, none broken; only a selection was judged") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if run, err := readResults(filepath.Join(dir, "all.json")); err != nil || run.Verdict != result.Conformant || run.Shard != nil {
		t.Errorf("the merged results: %v", err)
	}
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"report", "2.json"}, exitIncomplete, "shards 1 and 3 of 3 are missing"},
		{[]string{"report", "2.json", "1.json"}, exitIncomplete, "shard 3 of 3 is missing"},
		{[]string{"report", "2.json", "2.json"}, exitUsage, "shard 2 of 3 is there twice"},
		{[]string{"report", "2.json", "all.json"}, exitUsage, "stand among those of shards"},
		{[]string{"server", "--shard", "0/3"}, exitUsage, "there is no shard 0 of 3"},
		{[]string{"server", "--shard", "4/3"}, exitUsage, "there is no shard 4 of 3"},
		{[]string{"client", "--shard", "1"}, exitUsage, "such as 1/4"},
	} {
		if out, code := mcpconform(tt.args...); code != tt.code || !strings.Contains(strings.Join(strings.Fields(out), " "), tt.says) {
			t.Errorf("%q: exit code %d: %s", tt.args, code, out)
		}
	}
}
