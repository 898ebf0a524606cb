package reporters

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/suites/result"
	"golang.org/x/net/html"
)

// parseHTML parses strictly enough for what we write: it returns the elements
// in document order.
func parseHTML(t *testing.T, text string) []*html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var elements []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	return elements
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func skeleton(elements []*html.Node) string {
	var b strings.Builder
	for _, n := range elements {
		b.WriteString("<" + n.Data)
		for _, a := range n.Attr {
			b.WriteString(" " + a.Key)
		}
		b.WriteString(">\n")
	}
	return b.String()
}

// checkHTML fails if the page could run, load or send anything that is not ours.
func checkHTML(t *testing.T, text string) {
	t.Helper()
	if err := wellformed.HTML(text); err != nil {
		t.Fatal(err)
	}
	for _, n := range parseHTML(t, text) {
		switch {
		case n.Data == "script" && n.FirstChild.Data != htmlScript:
			t.Fatalf("script %q", n.FirstChild.Data)
		case n.Data == "style" && n.FirstChild.Data != htmlStyle:
			t.Fatal("the style is not ours, so the policy blocks it")
		case n.Data == "meta" && attribute(n, "http-equiv") != "" && attribute(n, "content") != htmlPolicy:
			t.Fatalf("policy %q", attribute(n, "content"))
		}
	}
}

func TestHTML(t *testing.T) {
	calm, wild, worst := sampleRun(), sampleRun(), sampleRun()
	plant(calm, "calm")
	plant(wild, hostile)
	plantAll(worst, hostile)
	for _, run := range []*result.Run{calm, wild, worst, fixedRun()} {
		checkHTML(t, render(t, HTML, run))
	}
	got := skeleton(parseHTML(t, render(t, HTML, wild)))
	if want := skeleton(parseHTML(t, render(t, HTML, calm))); got != want {
		t.Error("hostile text changes the elements of the page")
	}
}

// A target's address becomes a link only if it is one for a browser.
func TestHTMLAddress(t *testing.T) {
	for address, want := range map[string]bool{"https://mcp.example/mcp": true, "javascript:alert(1)": false, "https:": false,
		"file:///etc/passwd": false, "\u202ehttps://x.example": false} {
		run := sampleRun()
		run.Target.URL = address
		if got := strings.Contains(render(t, HTML, run), `<dd><a href=`); got != want {
			t.Errorf("%q is linked: %v", address, got)
		}
	}
}

// borders counts the cell borders of a row as GitHub does.
func borders(row string) int {
	n := 0
	for i := 0; i < len(row); i++ {
		switch row[i] {
		case '\\':
			i++
		case '|':
			n++
		}
	}
	return n
}

// outline is the structure of a Markdown document: what each line begins with,
// and the borders of table rows.
func outline(text string) string {
	var b strings.Builder
	fence := ""
	for _, s := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(s)
		ticks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "":
			b.WriteString("code\n")
			if trimmed == fence {
				fence = ""
			}
		case len(ticks) >= 3:
			b.WriteString("fence\n")
			fence = ticks
		case strings.HasPrefix(s, "|"):
			b.WriteString(strings.Repeat("|", borders(s)) + "\n")
		default:
			word, _, _ := strings.Cut(s, " ")
			if strings.Trim(word, "#-<>/details") != "" {
				word = "text"
			}
			b.WriteString(word + "\n")
		}
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	matrix := func(w io.Writer, run *result.Run) error {
		return MatrixMarkdown(w, []*result.Run{run, fixedRun(), run})
	}
	for name, report := range map[string]func(io.Writer, *result.Run) error{"checklist": Checklist, "matrix": matrix} {
		calm := sampleRun()
		plant(calm, "calm")
		want := outline(render(t, report, calm))
		for _, text := range []string{hostile, "|", "`", "``` |", "- x", "1. x", "\\", "\\|", "<b>", "[a](b)", "\n\n# x\n"} {
			wild := sampleRun()
			plant(wild, text)
			if got := outline(render(t, report, wild)); got != want {
				t.Errorf("%s: %q changes the structure to:\n%s", name, text, got)
			}
		}
	}
}

func TestMarkdownEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, 1 (one).":  "plain text, 1 (one).",
		"a|b":                   `a\|b`,
		`a\|b`:                  `a\\\|b`,
		"<img>":                 `\<img\>`,
		"*a* _b_ ~c~ `d` $e$":   "\\*a\\* \\_b\\_ \\~c\\~ \\`d\\` \\$e\\$",
		"https://x.example":     `https\://x.example`,
		"www.x.example":         `www\.x.example`,
		"@user :tada: &amp; #1": `\@user \:tada\: \&amp; \#1`,
		"- a":                   `\- a`,
		"12. a":                 `12\. a`,
		"12) a":                 `12\) a`,
		"12 a":                  `12 a`,
	} {
		if got := mdText(in); got != want {
			t.Errorf("mdText(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a": "`a`", "a`b": "``a`b``", "`a": "`` `a ``", "a|b*": "<code>a&#124;b&#42;</code>", " ": "–"} {
		if got := mdCode(in, true); got != want {
			t.Errorf("mdCode(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSafeURL(t *testing.T) {
	q := &result.Requirement{Page: `a)b"c`, Anchor: "<d> é|"}
	v := &view{Run: &result.Run{Revision: "2025-06-18"}}
	if got, want := v.link(q), "https://modelcontextprotocol.io/specification/2025-06-18/a%29b%22c#%3Cd%3E%20%C3%A9%7C"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzHTML(f *testing.F) {
	f.Add(hostile)
	f.Add("filter")
	f.Add("{{.}}")
	f.Fuzz(func(t *testing.T, text string) {
		run := sampleRun()
		plantAll(run, text)
		checkHTML(t, render(t, HTML, run))
	})
}

func FuzzMarkdown(f *testing.F) {
	calm := sampleRun()
	plant(calm, "calm")
	want := outline(render(f, Checklist, calm))
	f.Add(hostile)
	f.Add("`\\|`")
	f.Fuzz(func(t *testing.T, text string) {
		if line(text, limitName) == "" || strings.TrimSpace(line(text, limitName)) == "" {
			t.Skip("optional rows are left out")
		}
		run := sampleRun()
		plant(run, text)
		var b bytes.Buffer
		if err := Checklist(&b, run); err != nil {
			t.Fatal(err)
		}
		if got := outline(b.String()); got != want {
			t.Fatalf("%q changes the structure to:\n%s", text, got)
		}
	})
}
