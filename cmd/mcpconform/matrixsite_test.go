package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A site shows what bundles and results say, leaves out what cannot be shown, and says so.
func TestMatrix(t *testing.T) {
	manyRuns(t)
	dir, site := t.TempDir(), filepath.Join(t.TempDir(), "site")
	file := func(name string) string { return filepath.Join(dir, "below", name) }
	for _, args := range [][]string{
		{"certify", "server", "--out", file("good.zip")},
		{"server", "--json", file("part.json"), few},
		{"server", "--json", file("shard.json"), few, "--shard", "1/2"},
	} {
		if out, code := invoke(t, nil, append(args, "--quiet")...); code != exitConformant {
			t.Fatalf("%v: exit code %d: %s", args, code, out)
		}
	}
	bundle, err := os.ReadFile(file("good.zip"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"forged.zip": string(bundle[1:]), "other.json": "{}", "notes.txt": "nothing"} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, code := invoke(t, nil, "matrix", dir, "--out", site)
	for _, want := range []string{
		"forged.zip is refused and left out", "other.json is left out", "no results of mcpconform", "shard.json is left out: it is a shard", "2 runs on",
	} {
		if code != exitNotConformant || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %d and %q: %s", code, exitNotConformant, want, out)
		}
	}
	index, err := os.ReadFile(filepath.Join(site, "index.html"))
	if err != nil || !strings.Contains(string(index), "mcpconform-reference-server") {
		t.Errorf("%v: %s", err, index)
	}
	page, err := os.ReadFile(filepath.Join(site, "implementations", "mcpconform-reference-server.html"))
	// The run of a part says nothing of a class.
	if err != nil || strings.Count(string(page), `<span class="badge conformant">`) != 2 || strings.Count(string(page), "verified</small>") != 1 {
		t.Errorf("%v: %s", err, page)
	}
}
