// Package wording keeps English out of what users read that they would stumble over.
package wording

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
	yamltoken "github.com/goccy/go-yaml/token"
)

// root of the repository, seen from here.
const root = "../../.."

// pattern is what texts must not have, with what to write in its place.
type pattern struct {
	*regexp.Regexp
	instead string
	// except reports whether a match, with its groups, is as it should be; it may be nil.
	except func(groups []string) bool
}

var patterns = []pattern{
	{regexp.MustCompile(`(?i)(?:(\w+) )?\b(?:is|are|was|were|be|being|been) no (\w+|%)`), `"is not a …"`, func(groups []string) bool {
		return strings.EqualFold(groups[1], "there") || groups[2] == "longer" || groups[2] == "more"
	}},
	{regexp.MustCompile(`, no \pL+$`), `"…, not a …"`, nil},
	{regexp.MustCompile(`(?i)\b(?:less|more|longer|other) than nothing\b`), `"nothing", "at all" or the number`, nil},
	{regexp.MustCompile(`(?m:^Of )|^of |[.;:?!]\s+[Oo]f `), `the subject first`, nil},
	{regexp.MustCompile(`(?i)\bthat (?:it|he|she|they|one|none|nobody) (?:does|do|did) not (?:is|was)\b`), `the fact as a sentence`, nil},
	{regexp.MustCompile(`(?i)\b(?:held|holds?) against\b`), `what the verdict is`, nil},
	{regexp.MustCompile(`(?i)\bfor want of\b`), `"without" or "because there is no"`, nil},
	{regexp.MustCompile(`(?i)\bin vain\b`), `what was tried, and that it failed`, nil},
	{regexp.MustCompile(`(?i)(?:^|[,;(] )be (?:it|they)\b`), `"whether … or …"`, nil},
	{regexp.MustCompile(`(?:^|[.;:?!] )Who [a-z]+s\b[^?]*$`), `"a client that …", "if you …"`, nil},
	{regexp.MustCompile(`(?i)\bby itself that\b|\bnothing but that\b`), `what it is`, nil},
	{regexp.MustCompile(`(?i)\bafter what time\b`), `"how long … waits"`, nil},
	{regexp.MustCompile(`(?i)\bas one (?:may|might|does) that\b`), `"it may …", in a clause of its own`, nil},
	{regexp.MustCompile(`(?i)\b(?:although|while) it does so\b`), `"…; with an ordinary server it does"`, nil},
	{regexp.MustCompile(`(?i)\bargument of what\b`), `what the thing is called`, nil},
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

// A text is what stands at a line of a file.
type text struct {
	line int
	text string
}

// readers return the texts that users read from a file, by the ending of its name.
var readers = map[string]func(*testing.T, []byte) []text{
	".go":   literals,
	".yaml": scalars,
	".md":   paragraphs,
}

func TestTexts(t *testing.T) {
	count := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && name != "." && name != ".ci"
			if hidden || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		read := readers[path.Ext(name)]
		if read == nil || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(os.DirFS(root), name)
		if err != nil {
			return err
		}
		for _, x := range read(t, source) {
			count++
			if instead := problem(x.text); instead != "" {
				t.Errorf("%s:%d: %q: write %s", name, x.line, x.text, instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 10000 {
		t.Errorf("only %d texts were found", count)
	}
}

// literals returns the string literals of a Go file.
func literals(t *testing.T, source []byte) []text {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []text
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		joined, ok := constant(e)
		if ok {
			texts = append(texts, text{set.Position(e.Pos()).Line, joined})
		}
		return !ok
	})
	return texts
}

// constant returns the text of a string literal, or of several that are joined.
func constant(e ast.Expr) (joined string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		unquoted, err := strconv.Unquote(e.Value)
		return unquoted, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, also := constant(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// scalars returns the strings and comments of a YAML file, each on one line.
func scalars(_ *testing.T, source []byte) []text {
	var texts []text
	for _, x := range lexer.Tokenize(string(source)) {
		switch x.Type {
		case yamltoken.StringType, yamltoken.SingleQuoteType, yamltoken.DoubleQuoteType, yamltoken.CommentType:
			texts = append(texts, text{x.Position.Line, strings.Join(strings.Fields(x.Value), " ")})
		}
	}
	return texts
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	// A line that begins a paragraph of its own: an item, a heading, a row of a table.
	begins = regexp.MustCompile(`^\s*(?:[-*] |\d+\. |#+ |\|)`)
)

// paragraphs returns the paragraphs, headings, items and cells of a Markdown file, each on one line, without code.
func paragraphs(_ *testing.T, source []byte) []text {
	var texts []text
	code, open := false, false
	for i, line := range bytes.Split(source, []byte("\n")) {
		s := string(line)
		if strings.HasPrefix(strings.TrimSpace(s), "```") {
			code, open = !code, false
			continue
		}
		switch {
		case code:
		case strings.TrimSpace(s) == "":
			open = false
		case strings.HasPrefix(s, "|"):
			for cell := range strings.SplitSeq(s, "|") {
				texts = append(texts, text{i + 1, strings.TrimSpace(cell)})
			}
			open = false
		case open && !begins.MatchString(s):
			texts[len(texts)-1].text += " " + strings.TrimSpace(s)
		default:
			texts = append(texts, text{i + 1, strings.TrimLeft(s, " -*#")})
			open = !strings.HasPrefix(s, "#")
		}
	}
	for i := range texts {
		texts[i].text = codeSpan.ReplaceAllString(texts[i].text, "`…`")
	}
	return texts
}

func TestReaders(t *testing.T) {
	for _, c := range []struct {
		ending, source string
		want           []text
	}{
		{".go", "package x\nconst y = `a` + \"b\\n\"\n", []text{{2, "ab\n"}}},
		{".yaml", "# c\na: b\n  c\n'd': \"e\"\n", []text{{1, "c"}, {2, "a"}, {2, "b c"}, {4, "d"}, {4, "e"}}},
		{".md", "# A\nb\n\nc `d`\ne\n- f\n  g\n```\nh\n```\ni\n| j | k |\n", []text{
			{1, "A"}, {2, "b"}, {4, "c `…` e"}, {6, "f g"}, {11, "i"}, {12, ""}, {12, "j"}, {12, "k"}, {12, ""},
		}},
	} {
		if got := readers[c.ending](t, []byte(c.source)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", c.ending, got, c.want)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, bad := range []string{
		"x is no URI", "is no URI", "%s, which is no object", "the items are no strings", "42, no array", "less than nothing",
		"Of two requests, one", "of an unknown type", "It ended. Of these, none", "that it does not is held against it",
		"longer than nothing", "inconclusive for want of tools", "it was asked in vain", "it may be no object",
		"each message, be it a request or not", "Who reads a place differently is welcome",
		"it says after what time it gives up", "it logs nothing, as one may that limits its rate", "it sends none, although it does so elsewhere",
		"x is not an argument of what the ref names",
	} {
		if problem(bad) == "" {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, good := range []string{
		"there is no answer", "There are no metadata", "it is no longer listed", "it is no more than a hint", "is not a URI",
		"the answer of the server", "no answer, no result came", "the cause of it; the answer of another", "Who sent it?",
		"there must be an answer", "say how long it waits", "it does so once",
	} {
		if instead := problem(good); instead != "" {
			t.Errorf("%q is refused: write %s", good, instead)
		}
	}
}
