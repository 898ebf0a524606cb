package reporters

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/mcpconform/mcpconform/suites/result"
)

// within returns the nearest element of the name around n, or nil.
func within(n *html.Node, name string) *html.Node {
	for at := range n.Ancestors() {
		if at.Type == html.ElementNode && at.Data == name {
			return at
		}
	}
	return nil
}

func words(n *html.Node) string {
	var b strings.Builder
	for at := range n.Descendants() {
		if at.Type == html.TextNode {
			b.WriteString(at.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

// The page has everything that keyboards and screen readers need.
func TestHTMLStructure(t *testing.T) {
	worst := sampleRun()
	plantAll(worst, hostile)
	empty := &result.Run{Verdict: result.Incomplete, Reason: "the target could not be started", Role: "server"}
	for name, run := range map[string]*result.Run{"sample": sampleRun(), "hostile": worst, "empty": empty} {
		t.Run(name, func(t *testing.T) {
			elements := parseHTML(t, render(t, HTML, run))
			count := make(map[string]int)
			labelled := make(map[string]bool)
			for _, n := range elements {
				count[n.Data]++
				if n.Data == "label" {
					labelled[attribute(n, "for")] = true
				}
			}
			for _, landmark := range []string{"header", "main", "footer", "form", "h1", "output"} {
				if count[landmark] != 1 {
					t.Errorf("%d elements %s, want 1", count[landmark], landmark)
				}
			}
			level := 0
			for _, n := range elements {
				switch n.Data {
				case "h1", "h2", "h3", "h4":
					next := int(n.Data[1] - '0')
					if next > level+1 {
						t.Errorf("%s %q follows h%d", n.Data, words(n), level)
					}
					level = next
					if words(n) == "" {
						t.Errorf("an empty %s", n.Data)
					}
				case "input", "select":
					if within(n, "label") == nil && !labelled[attribute(n, "id")] {
						t.Errorf("%s %s has no label", n.Data, attribute(n, "name"))
					}
				case "button":
					if words(n) == "" || attribute(n, "type") == "" {
						t.Error("a button without text or type")
					}
				case "a":
					if words(n) == "" {
						t.Errorf("a link to %s without text", attribute(n, "href"))
					}
				case "details":
					first := n.FirstChild
					for first.Type != html.ElementNode {
						first = first.NextSibling
					}
					if first.Data != "summary" || words(first) == "" {
						t.Error("what is folded begins without a summary")
					}
				case "th":
					if attribute(n, "scope") == "" {
						t.Error("a table's header without scope")
					}
				case "li":
					if p := n.Parent.Data; p != "ul" && p != "ol" {
						t.Errorf("li in %s", p)
					}
				}
			}
		})
	}
}

// A link to a requirement leads into the folded part: only such a link unfolds it in a browser without scripts.
func TestHTMLLinkUnfolds(t *testing.T) {
	run := sampleRun()
	want := make(map[string]bool)
	for i := range run.Requirements {
		want[run.Requirements[i].ID] = true
	}
	for _, n := range parseHTML(t, render(t, HTML, run)) {
		id := attribute(n, "id")
		if !want[id] {
			continue
		}
		delete(want, id)
		if n.Parent.Data != "details" || n.Data == "summary" {
			t.Errorf("%s is not in the folded part", id)
		}
	}
	if len(want) > 0 {
		t.Errorf("no element has the ids %v", want)
	}
}

func TestHTMLSameIDs(t *testing.T) {
	run := sampleRun()
	for i := range run.Requirements {
		run.Requirements[i].ID = "tools.call"
	}
	checkHTML(t, render(t, HTML, run))
}

func TestHTMLFolds(t *testing.T) {
	run := sampleRun()
	folded := make(map[string]bool)
	for _, n := range parseHTML(t, render(t, HTML, run)) {
		if verdict := attribute(n, "data-verdict"); n.Data == "details" {
			if outer := within(n, "details"); verdict != "" && outer != nil {
				folded[verdict] = true
			}
		}
	}
	for _, verdict := range []string{"pass", "skip", "inconclusive", "not-used", "unobservable", "fail", "error", "warn", "expected", "disputed"} {
		if want := slices.Contains([]string{"pass", "skip", "inconclusive", "not-used", "unobservable"}, verdict); folded[verdict] != want {
			t.Errorf("%s is folded: %v", verdict, folded[verdict])
		}
	}
}

func TestAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		of   func(run *result.Run)
		want string
	}{
		{"stdio", func(*result.Run) {}, `mcpconform server --select tools.list.answered -- node dist/server.js --mode 'it'\''s'`},
		{"seed", func(run *result.Run) { run.Seed = 7 }, `mcpconform server --select tools.list.answered --seed 7 -- node dist/server.js --mode 'it'\''s'`},
		{"http", func(run *result.Run) {
			run.Transport, run.Target = "http", result.Target{URL: "https://mcp.example/mcp?key=[redacted]"}
		}, `mcpconform server --select tools.list.answered --url 'https://mcp.example/mcp?key=[redacted]'`},
		{"sse", func(run *result.Run) {
			run.Transport, run.Target = "sse", result.Target{URL: "https://mcp.example/sse"}
		},
			`mcpconform server --select tools.list.answered --transport sse --url https://mcp.example/sse`},
		{"started", func(run *result.Run) {
			run.Transport, run.Target = "http", result.Target{Command: []string{"./server --port {port}"}, URL: "http://localhost:4711/mcp"}
		}, `mcpconform server --select tools.list.answered --start './server --port {port}' --url http://localhost:{port}/mcp`},
		{"embedded", func(run *result.Run) { run.Target.Command = []string{"(embedded reference server)"} },
			`mcpconform server --select tools.list.answered`},
		{"client", func(run *result.Run) { run.Role, run.Target.Command = "client", []string{"my-client", "{command}"} },
			`mcpconform client --select tools.list.answered --transport stdio -- my-client {command}`},
		{"WebSocket", func(run *result.Run) {
			run.Transport, run.Target = "custom", result.Target{URL: "ws://mcp.example/mcp"}
		},
			`mcpconform server --select tools.list.answered --url ws://mcp.example/mcp`},
		{"bridge", func(run *result.Run) {
			run.Transport, run.Target = "custom", result.Target{Command: []string{"nc localhost 9000"}}
		}, `mcpconform server --select tools.list.answered --transport-command 'nc localhost 9000'`},
		{"bridge to an address", func(run *result.Run) {
			run.Transport, run.Target = "custom", result.Target{Command: []string{"bridge tcp://a:1"}, URL: "tcp://a:1"}
		}, `mcpconform server --select tools.list.answered --transport-command 'bridge tcp://a:1'`},
		{"client of a custom transport", func(run *result.Run) { run.Role, run.Transport = "client", "custom" }, ""},
		{"trace", func(run *result.Run) { run.Target.Command = []string{"(trace run.jsonl)"} }, ""},
		{"by hand", func(run *result.Run) { run.Target = result.Target{} }, ""},
		{"odd role", func(run *result.Run) { run.Role = "--help" }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := sampleRun()
			test.of(run)
			v, err := newView(run)
			if err != nil {
				t.Fatal(err)
			}
			for i := range run.Requirements {
				if q := &run.Requirements[i]; q.ID == "tools.list.answered" {
					if got := v.again(q); got != test.want {
						t.Errorf("got  %s\nwant %s", got, test.want)
					}
				}
			}
		})
	}
}

func TestLayOut(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for _, test := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `0 {"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{
			`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a, {b","title":"Ask for it","inputSchema":{"type":"object"}}],"nextCursor":"x\"]"}}`,
			`0 {
1 "jsonrpc":"2.0",
1 "id":1,
1 "result":{
2 "tools":[{"name":"a, {b","title":"Ask for it","inputSchema":{"type":"object"}}],
2 "nextCursor":"x\"]"
1 }
0 }`,
		},
		{`{"cut":"` + strings.Repeat("x", 60) + ` … [9 bytes left out] … x"}]}`, ""},
		{`}}]]"`, ""},
		{`{"open`, ""},
		{`"\`, ""},
		{deep, ""},
		{"", ""},
	} {
		var shown []string
		whole := ""
		for _, l := range layOut(test.in) {
			shown = append(shown, string(rune('0'+l.Depth))+" "+l.Text)
			whole += l.Text
		}
		if whole != test.in {
			t.Errorf("%.100q became %.100q", test.in, whole)
		}
		if got := strings.Join(shown, "\n"); test.want != "" && got != test.want {
			t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
		}
	}
}

func TestSplitJSON(t *testing.T) {
	for _, test := range []struct {
		in        string
		shortened bool
		body      string
	}{
		{`{"a":1}`, false, `{"a":1}`},
		{"200 OK\nContent-Type: application/json\n{\"a\":1}", false, `{"a":1}`},
		{"[1]\n", false, "[1]\n"},
		{"{\n \"a\": 1\n}", false, ""},
		{"[info] started", false, ""},
		{`{"a":"x … [9 bytes left out] … y`, true, `{"a":"x … [9 bytes left out] … y`},
		{`{"a":`, false, ""},
		{"exit status 1", false, ""},
		{"", false, ""},
	} {
		head, body := splitJSON(test.in, test.shortened)
		if body != test.body || head+body != test.in {
			t.Errorf("%q: head %q, body %q, want body %q", test.in, head, body, test.body)
		}
	}
}

// Changes since an earlier run are linked, and marked in their place.
func TestHTMLComparison(t *testing.T) {
	run := sampleRun()
	run.Against = &result.Comparison{New: []string{"stdio.stdout.only-messages"}, Mended: []string{"tools.list.answered"}, Stale: []string{"tools.gone"}}
	text := render(t, HTML, run)
	checkHTML(t, text)
	marked := make(map[string]string)
	for _, n := range parseHTML(t, text) {
		if change := attribute(n, "data-change"); change != "" {
			for at := range n.Descendants() {
				if id := attribute(at, "id"); id != "" {
					marked[id] = change
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"stdio.stdout.only-messages": "new", "tools.list.answered": "mended"}, marked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []string{`<h2 id="changes">`, `<option value="mended">mended (1)</option>`, `<code>tools.gone</code></p>`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(render(t, HTML, sampleRun()), "data-change") {
		t.Error("a run that was compared with nothing shows changes")
	}
}
