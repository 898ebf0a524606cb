package main

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	span = regexp.MustCompile("`[^`]*`")
	// notInAnchors is left out of the anchor that GitHub makes of a heading.
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks is about the links of the documents to each other and to files of the repository.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		for i, line := range proseLines(t, file) {
			for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(line, ""), -1) {
				to, err := url.Parse(m[1])
				if err != nil {
					t.Errorf("%s, line %d: %v", filepath.Base(file), i+1, err)
					continue
				}
				if to.Scheme != "" {
					continue
				}
				found++
				target := file
				if to.Path != "" {
					target = filepath.Join(filepath.Dir(file), filepath.FromSlash(to.Path))
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s, line %d: %v", filepath.Base(file), i+1, err)
				} else if to.Fragment != "" && !slices.Contains(anchors(t, target), to.Fragment) {
					t.Errorf("%s, line %d: %s has no heading for #%s", filepath.Base(file), i+1, filepath.Base(target), to.Fragment)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d links were found", found)
	}
}

// proseLines returns the lines of a document. Those of blocks of code are empty.
func proseLines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, b := range fencedBlocks(lines) {
		clear(lines[b.from:b.to])
	}
	return lines
}

// anchors returns the anchors that GitHub gives the headings of a document. It numbers equal ones.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	var all []string
	times := make(map[string]int)
	for _, line := range proseLines(t, file) {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		heading = link.ReplaceAllString(heading, "")
		a := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
		if n := times[a]; n > 0 {
			all = append(all, a+"-"+strconv.Itoa(n))
		} else {
			all = append(all, a)
		}
		times[a]++
	}
	return all
}
