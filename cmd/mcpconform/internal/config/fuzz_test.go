package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad reads files that nobody would write. A fault in one is an error that names the file.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		full, "", "target: {command: [a]}", "target:\n  url: http://x/mcp\n  start: serve\n", "a: &a [*a]", "<<: *x", "- ? : -\n", "--- |\n", "{[]: 1}", "!!binary x",
		"expectedFailures: known.yaml", "expectedFailures: bad.yaml", "expectedFailures: A", "toolRoles: {slow: {tool: a, arguments: {x: .nan, 1: 2, y: !!timestamp 2001-01-01}}}",
		"limits: {timeout: 99999999999999h, message: 0x10, total: 1e3}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dir, c, err := load(t, text)
		switch {
		case err != nil && !strings.Contains(err.Error(), filepath.Join(dir, "mcpconform.yaml")):
			t.Errorf("the error does not name the file: %v", err)
		case err == nil && c == nil:
			t.Error("neither a configuration nor an error")
		}
	})
}
