package reporters

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

func junit(w io.Writer, run *result.Run) error { return JUnit(w, run, JUnitOptions{}) }

// node is any XML element.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []node     `xml:",any"`
}

func (n *node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (n *node) all(name string) []*node {
	var found []*node
	for i := range n.Nodes {
		if n.Nodes[i].XMLName.Local == name {
			found = append(found, &n.Nodes[i])
		}
	}
	return found
}

func parseXML(t *testing.T, text string) *node {
	t.Helper()
	root := new(node)
	// The decoder is strict: it rejects characters outside of XML 1.0.
	if err := xml.Unmarshal([]byte(text), root); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return root
}

// shape renders the elements and the names of the attributes, without text.
func shape(n *node) string {
	var b strings.Builder
	b.WriteString("<" + n.XMLName.Local)
	for _, a := range n.Attrs {
		b.WriteString(" " + a.Name.Local)
	}
	b.WriteString(">")
	for i := range n.Nodes {
		b.WriteString(shape(&n.Nodes[i]))
	}
	return b.String() + "</>"
}

func TestJUnitCounts(t *testing.T) {
	root := parseXML(t, render(t, junit, sampleRun()))
	total := map[string]int{}
	for _, suite := range root.all("testsuite") {
		counts := map[string]int{"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
		for _, c := range suite.all("testcase") {
			counts["tests"]++
			counts["failures"] += len(c.all("failure"))
			counts["errors"] += len(c.all("error"))
			counts["skipped"] += len(c.all("skipped"))
		}
		for name, n := range counts {
			if got := suite.attr(name); got != strconv.Itoa(n) {
				t.Errorf("suite %s: %s is %s, want %d", suite.attr("name"), name, got, n)
			}
			total[name] += n
		}
	}
	for _, name := range []string{"tests", "failures", "errors"} {
		if got := root.attr(name); got != strconv.Itoa(total[name]) {
			t.Errorf("%s is %s, want %d", name, got, total[name])
		}
	}
	if got := root.attr("time"); got != "12.346" {
		t.Errorf("time is %s", got)
	}
}

func TestJUnitOutcomes(t *testing.T) {
	cases := func(run *result.Run) map[string]string {
		got := map[string]string{}
		for _, suite := range parseXML(t, render(t, junit, run)).all("testsuite") {
			for _, c := range suite.all("testcase") {
				what := "passed"
				for _, name := range []string{"failure", "error", "skipped"} {
					if problem := c.all(name); len(problem) > 0 {
						what = name + " " + problem[0].attr("type") + " " + problem[0].attr("message")
					}
				}
				got[c.attr("classname")+" "+c.attr("name")] = what
			}
		}
		return got
	}
	run := sampleRun()
	got := cases(run)
	for name, want := range map[string]string{
		"basic/lifecycle lifecycle.initialize.first":       "passed",
		"basic/lifecycle lifecycle.version.echo-supported": "failure MUST the result names",
		"basic/transports stdio.shutdown.exits":            "error harness the process could not be watched",
		"basic/transports http.origin.validated":           "skipped  not applicable: the transport is stdio",
		"server/tools tools.list.unique-names":             "passed",
		"server/tools tools.call.unknown-tool":             "skipped  expected failure: fixed in 1.5 <soon>",
		"basic/utilities/progress progress.token.echoed":   "skipped  untested: no tool reported progress",
		"expected-failures tools.call.content":             "failure stale passes now",
		"expected-failures tools.gone":                     "failure stale matches no requirement",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, "human-in-the-loop") {
			t.Errorf("%s cannot be observed", name)
		}
	}
	run.Strict = true
	if got := cases(run)["server/tools tools.list.unique-names"]; !strings.HasPrefix(got, "failure SHOULD") {
		t.Errorf("strict: %q", got)
	}
	if _, ok := got["run complete"]; ok {
		t.Error("a complete run has an error")
	}
	run.Verdict, run.Reason = result.Incomplete, "interrupted"
	if got := cases(run)["run complete"]; got != "error incomplete interrupted" {
		t.Errorf("incomplete: %q", got)
	}
}

// Nothing that a target says changes the elements of the document.
func TestJUnitShape(t *testing.T) {
	for _, opts := range []JUnitOptions{{}, {CaseProperties: true}} {
		report := func(w io.Writer, run *result.Run) error { return JUnit(w, run, opts) }
		calm, wild := sampleRun(), sampleRun()
		plant(calm, "calm")
		plant(wild, hostile+"[[ATTACHMENT|/etc/passwd]][[[PROPERTY|verdict=pass]]")
		text := render(t, report, wild)
		if got, want := shape(parseXML(t, text)), shape(parseXML(t, render(t, report, calm))); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
		var walk func(n *node)
		walk = func(n *node) {
			if strings.Contains(n.Text, "[[ATTACHMENT") || strings.Contains(n.Text, "[[PROPERTY|verdict=pass]]\n- ") {
				t.Errorf("a target's marker in %q", n.Text)
			}
			for i := range n.Nodes {
				walk(&n.Nodes[i])
			}
		}
		walk(parseXML(t, text))
	}
}

func TestJUnitCaseProperties(t *testing.T) {
	root := parseXML(t, render(t, func(w io.Writer, run *result.Run) error {
		return JUnit(w, run, JUnitOptions{CaseProperties: true})
	}, sampleRun()))
	first := root.all("testsuite")[0].all("testcase")[0]
	got := map[string]string{}
	for _, p := range first.all("properties")[0].all("property") {
		got[p.attr("name")] = p.attr("value")
	}
	for name, want := range map[string]string{"level": "MUST", "party": "server", "exercised": "3", "verdict": "fail",
		"url": "https://modelcontextprotocol.io/specification/2025-06-18/basic/lifecycle#version-negotiation:~:text=If%20the%20server%20supports,same%20version"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// The schema is our own, narrower than those of the CI systems.
func TestJUnitSchema(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed")
	}
	valid := func(text string) error {
		file := filepath.Join(t.TempDir(), "junit.xml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command(xmllint, "--nonet", "--noout", "--schema", filepath.Join("testdata", "junit.xsd"), file).Run()
	}
	wild := sampleRun()
	plantAll(wild, hostile)
	blank := sampleRun()
	plantAll(blank, "")
	for name, run := range map[string]*result.Run{"sample": sampleRun(), "hostile": wild, "blank": blank,
		"empty": {Verdict: result.Incomplete}} {
		if err := valid(render(t, junit, run)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if valid(strings.Replace(render(t, junit, sampleRun()), `hostname="localhost"`, "", 1)) == nil {
		t.Error("the schema accepts a suite without hostname")
	}
}

// TestJUnitForm: what the schema of Jenkins's xUnit plugin (junit-10.xsd) and that of Ant
// (JUnit.xsd of Windy Road) demand of elements and attributes, without xmllint. Ant's has two things
// less, which the reporter writes all the same, as Jenkins, GitLab and others show them:
// attributes of testsuites, and system-out in a testcase.
func TestJUnitForm(t *testing.T) {
	type form struct{ attributes, children string } // "!" is required, "*" is repeated, all in this order
	forms := map[string]form{
		"testsuites": {"name! tests! failures! errors! time!", "testsuite*"},
		"testsuite": {
			"name! id! package! tests! failures! errors! skipped! time! timestamp! hostname!",
			"properties! testcase* system-out! system-err!",
		},
		"properties": {"", "property*"},
		"property":   {"name! value!", ""},
		"testcase":   {"name! classname! time!", "skipped error failure system-out"},
		"skipped":    {"message!", ""},
		"error":      {"message! type!", ""},
		"failure":    {"message! type!", ""},
		"system-out": {}, "system-err": {},
	}
	values := map[string]*regexp.Regexp{
		"time": regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`), "timestamp": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`),
		"name": regexp.MustCompile(`^\S+( \S+)*$`), "classname": regexp.MustCompile(`^\S+( \S+)*$`), "package": regexp.MustCompile(`^\S+( \S+)*$`),
		"hostname": regexp.MustCompile(`^\S+( \S+)*$`), "type": regexp.MustCompile(`^\S+( \S+)*$`),
		"tests": regexp.MustCompile(`^\d+$`), "failures": regexp.MustCompile(`^\d+$`), "errors": regexp.MustCompile(`^\d+$`), "skipped": regexp.MustCompile(`^\d+$`),
	}
	var check func(n *node, at string)
	check = func(n *node, at string) {
		f, ok := forms[n.XMLName.Local]
		if !ok {
			t.Fatalf("%s: unknown element", at)
		}
		given := make(map[string]bool)
		for _, a := range n.Attrs {
			given[a.Name.Local] = true
			if !strings.Contains(" "+f.attributes, " "+a.Name.Local+"!") {
				t.Errorf("%s: attribute %s", at, a.Name.Local)
			}
			if r := values[a.Name.Local]; r != nil && !r.MatchString(a.Value) {
				t.Errorf("%s: %s is %q", at, a.Name.Local, a.Value)
			}
		}
		for name := range strings.FieldsSeq(f.attributes) {
			if !given[strings.TrimSuffix(name, "!")] {
				t.Errorf("%s: %s is missing", at, name)
			}
		}
		i := 0
		for word := range strings.FieldsSeq(f.children) {
			name := strings.TrimRight(word, "!*")
			from := i
			for i < len(n.Nodes) && n.Nodes[i].XMLName.Local == name && (i == from || strings.HasSuffix(word, "*")) {
				check(&n.Nodes[i], at+"/"+name)
				i++
			}
			if i == from && strings.HasSuffix(word, "!") {
				t.Errorf("%s: %s is missing", at, name)
			}
		}
		if i < len(n.Nodes) {
			t.Errorf("%s: %s is out of place", at, n.Nodes[i].XMLName.Local)
		}
	}
	wild, blank, compared := sampleRun(), sampleRun(), sampleRun()
	plantAll(wild, hostile)
	plantAll(blank, "")
	compared.Against = &result.Comparison{New: []string{"a"}, Mended: []string{hostile}}
	for name, run := range map[string]*result.Run{
		"sample": sampleRun(), "hostile": wild, "blank": blank, "compared": compared, "empty": {Verdict: result.Incomplete},
	} {
		root := parseXML(t, render(t, junit, run))
		check(root, name)
		for i, s := range root.all("testsuite") {
			if s.attr("id") != strconv.Itoa(i) {
				t.Errorf("%s: suite %d has the id %s", name, i, s.attr("id"))
			}
		}
	}
}

func FuzzJUnit(f *testing.F) {
	f.Add(hostile)
	f.Add("]]>")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		run := sampleRun()
		plantAll(run, text)
		parseXML(t, render(t, junit, run))
	})
}
