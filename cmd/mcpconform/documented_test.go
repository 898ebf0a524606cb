package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	invocation = regexp.MustCompile(`(?:^|[\s/"'])mcpconform ([a-z].*)`)
	expansion  = regexp.MustCompile(`\$\(\(.*?\)\)|\$\{\{.*?\}\}`) // what a shell or a workflow puts there
	// invocationEnds are the words with which the arguments that mcpconform reads itself end.
	invocationEnds = []string{"--", "|", "||", "&&", "&", ">", ";", "#"}
)

// TestDocumentedCommands is about commands that the documents show without output. TestDocuments does not run them.
// Each has to exist and to have the flags that it is given.
func TestDocumentedCommands(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for _, b := range fencedBlocks(lines) {
			if !slices.Contains([]string{"sh", "yaml"}, b.language) {
				continue
			}
			for i, line := range lines[b.from:b.to] {
				m := invocation.FindStringSubmatch(expansion.ReplaceAllString(line, "1"))
				if m == nil {
					continue
				}
				found++
				words := strings.Fields(m[1])
				if n := slices.IndexFunc(words, func(w string) bool { return slices.Contains(invocationEnds, w) }); n >= 0 {
					words = words[:n]
				}
				root := newRoot()
				c, rest, err := root.Find(words)
				if err == nil && c != root {
					err = c.ParseFlags(rest)
				}
				if err != nil || c == root {
					t.Errorf("%s, line %d: %s: %v", filepath.Base(file), b.from+i+1, strings.Join(words, " "), err)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}
