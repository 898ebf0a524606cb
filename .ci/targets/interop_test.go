package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// TestInteropDocument tests that the document shows the latest run on each target, with the arguments for and against
// its findings.
func TestInteropDocument(t *testing.T) {
	dir := t.TempDir()
	write := func(file string, started time.Time, verdict result.Verdict) {
		t.Helper()
		raw, err := json.Marshal(result.Run{
			Revision: "2025-06-18", Started: started, Verdict: result.NotConformant,
			Requirements: []result.Requirement{
				{ID: "ping.response-prompt", Level: "MUST", Basis: "keyword", Page: "basic/utilities/ping", Observable: true, Verdict: verdict},
			},
		})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	write("s-stdio-2.json", now.Add(-time.Hour), result.Pass)
	write("s-stdio-1.json", now, result.Fail)
	write("s-http-1.json", now, result.Fail)
	write("s-2-http-1.json", now, result.Warn)
	data := &Data{Targets: []*Target{
		{Name: "s", Kind: "server", Package: "p", Version: "1.2", Transports: map[string]*Transport{"http": {}, "stdio": {}}},
		{Name: "s-2", Kind: "server", Transports: map[string]*Transport{"http": {}}},
		{Name: "never-run", Kind: "server", Transports: map[string]*Transport{"http": {}}},
	}}
	outcomes, err := data.outcomes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := counts(outcomes), "| s | p 1.2 | stdio | not-conformant | 0 | 1 | 0 | 0 | 0 |\n"; !strings.Contains(got, want) {
		t.Errorf("got %q, want in it %q", got, want)
	}
	got := findings(outcomes, argued{Reasons: map[string]string{"ping.response-prompt": "It was refused."}})
	for _, want := range []string{
		"MUST, keyword. Fail: s (stdio, http). Warn: s-2 (http).\n", "- Why: It was refused.\n", "the answer: This finding is not explained yet.\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want in it %q", got, want)
		}
	}
	if _, err := data.outcomes(t.TempDir()); err == nil {
		t.Error("a directory without results is accepted")
	}
}
