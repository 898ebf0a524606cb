// Package wording keeps English out of what users read that they would stumble over.
package wording

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// root of the repository, seen from here.
const root = "../../.."

// Directories whose string literals are looked at, without those below them.
var directories = []string{"suites/server", "suites/check", "suites/check/match"}

// pattern is what literals must not have, with what to write in its place.
type pattern struct {
	*regexp.Regexp
	instead string
	// except reports whether a match, with its groups, is as it should be; it may be nil.
	except func(groups []string) bool
}

var patterns = []pattern{
	{regexp.MustCompile(`(?i)(?:(\w+) )?\b(?:is|are|was|were) no (\w+)`), `"is not a …"`, func(groups []string) bool {
		return strings.EqualFold(groups[1], "there") || groups[2] == "longer" || groups[2] == "more"
	}},
	{regexp.MustCompile(`, no \pL+$`), `"…, not a …"`, nil},
	{regexp.MustCompile(`(?i)less than nothing`), `"nothing"`, nil},
	{regexp.MustCompile(`^[Oo]f |[.;:?!] [Oo]f `), `the subject first`, nil},
	{regexp.MustCompile(`(?i)\bthat (?:it|he|she|they|one) (?:does|do|did) not (?:is|was)\b`), `the fact as a sentence`, nil},
}

// problem returns what to write in place of a pattern that a text has, or "".
func problem(text string) string {
	for _, p := range patterns {
		for _, groups := range p.FindAllStringSubmatch(text, -1) {
			if p.except == nil || !p.except(groups) {
				return p.instead
			}
		}
	}
	return ""
}

func TestLiterals(t *testing.T) {
	for _, directory := range directories {
		files, err := filepath.Glob(filepath.Join(root, directory, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", directory, len(files), err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				literals(t, file)
			}
		}
	}
}

func literals(t *testing.T, file string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatalf("%s: %v", set.Position(literal.Pos()), err)
		}
		if instead := problem(text); instead != "" {
			t.Errorf("%s: %s: write %s", set.Position(literal.Pos()), literal.Value, instead)
		}
		return true
	})
}

func TestPatterns(t *testing.T) {
	for _, bad := range []string{
		"x is no URI", "is no URI", "%s, which is no object", "the items are no strings", "42, no array", "less than nothing",
		"Of two requests, one", "of an unknown type", "It ended. Of these, none", "that it does not is held against it",
	} {
		if problem(bad) == "" {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, good := range []string{
		"there is no answer", "There are no metadata", "it is no longer listed", "it is no more than a hint", "is not a URI",
		"the answer of the server", "no answer, no result came", "the cause of it; the answer of another",
	} {
		if instead := problem(good); instead != "" {
			t.Errorf("%q is refused: write %s", good, instead)
		}
	}
}
