package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// foreignCommand is a command for GitHub Actions that is not one of our annotations.
var foreignCommand = regexp.MustCompile(`(?m)^\s*::(?:error|warning|notice) title=|(^\s*::|##\[)`)

// A target cannot give commands to GitHub Actions, wherever the command prints what it said.
func TestTargetsGiveNoCommands(t *testing.T) {
	manyRuns(t)
	dir := t.TempDir()
	const wild = "::add-mask::x\n::error::owned ##[error]owned"
	run := result.Run{
		Verdict: result.NotConformant, Target: result.Target{Name: wild, Command: []string{wild}}, Notes: []string{wild},
		Requirements: []result.Requirement{{
			ID: "x", Level: "MUST", Page: "server/tools", Observable: true, Verdict: result.Fail,
			Findings: []result.Finding{{Message: wild, Evidence: []result.Event{{Text: wild, Kind: wild, Stream: wild}}}},
		}},
	}
	file := resultsFile(t, dir, "results.json", run, nil)
	for _, tt := range []struct {
		args   []string
		errors int
		rows   int
	}{
		{[]string{file}, 1, 1},
		{[]string{file, "--verbose"}, 1, 1},
		{[]string{file, "--quiet"}, 0, 1},
		{[]string{file, "--github=false"}, 0, 0},
		{[]string{file, file}, 2, 2},
		{[]string{file, "--json", "-"}, 1, 1},
		{[]string{file, "--junit", "-"}, 1, 1},
		{[]string{filepath.Join(dir, "::error::none")}, 0, 0},
	} {
		summary := filepath.Join(t.TempDir(), "summary.md")
		got := command(t, dir, []string{"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + summary}, append([]string{"report"}, tt.args...)...)
		for _, text := range []string{got.stdout, got.stderr} {
			for _, match := range foreignCommand.FindAllStringSubmatch(text, -1) {
				if match[1] != "" {
					t.Errorf("%q: a command of the target in\n%s", tt.args, text)
				}
			}
		}
		if n := strings.Count(got.stdout+got.stderr, "::error title="); n != tt.errors {
			t.Errorf("%q: %d errors, want %d:\n%s%s", tt.args, n, tt.errors, got.stdout, got.stderr)
		}
		text, _ := os.ReadFile(summary)
		if n := strings.Count(string(text), "### "); n != tt.rows {
			t.Errorf("%q: the summary has %d parts, want %d:\n%s", tt.args, n, tt.rows, text)
		}
	}
}
