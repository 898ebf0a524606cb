package reporters

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// JUnitOptions say how JUnit renders.
type JUnitOptions struct {
	// Hostname of the machine that ran the suite; empty means "localhost".
	Hostname string
	// CaseProperties puts a requirement's facts into <properties> of its
	// <testcase>, where pytest puts them and Testmo, Xray and Jenkins's JUnit
	// plugin read them. No published schema allows that place, and Jenkins's
	// xUnit plugin rejects a file with it; without this option they are lines
	// [[PROPERTY|name=value]] of <system-out>, which the same tools read.
	CaseProperties bool
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string           `xml:"name,attr"`
	ID         int              `xml:"id,attr"`
	Package    string           `xml:"package,attr"`
	Tests      int              `xml:"tests,attr"`
	Failures   int              `xml:"failures,attr"`
	Errors     int              `xml:"errors,attr"`
	Skipped    int              `xml:"skipped,attr"`
	Time       string           `xml:"time,attr"`
	Timestamp  string           `xml:"timestamp,attr"`
	Hostname   string           `xml:"hostname,attr"`
	Properties *junitProperties `xml:"properties"`
	Cases      []junitCase      `xml:"testcase"`
	Out        junitText        `xml:"system-out"`
	Err        junitText        `xml:"system-err"`
}

type junitProperties struct {
	Properties []junitProperty `xml:"property"`
}

func (p *junitProperties) add(name, value string) {
	if value != "" {
		p.Properties = append(p.Properties, junitProperty{name, value})
	}
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name       string           `xml:"name,attr"`
	Class      string           `xml:"classname,attr"`
	Time       string           `xml:"time,attr"`
	Properties *junitProperties `xml:"properties"`
	Skipped    *junitSkipped    `xml:"skipped"`
	Error      *junitProblem    `xml:"error"`
	Failure    *junitProblem    `xml:"failure"`
	Out        *junitText       `xml:"system-out"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",innerxml"`
}

// junitText is text between tags, as xmlText returns it. encoding/xml would
// write every quote and line end of it as a character reference, and people do
// read these files.
type junitText struct {
	Text string `xml:",innerxml"`
}

// xmlText escapes s for a place between two tags, and takes the meaning from
// what looks like [[PROPERTY|…]] or [[ATTACHMENT|…]]: Jenkins would attach the
// file that a target names.
func xmlText(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '[' && strings.HasPrefix(s[i+1:], "[") && len(s) > i+2 && (s[i+2]|0x20) >= 'a' &&
			(s[i+2]|0x20) <= 'z':
			b.WriteString("[ ")
		case r == '\n' || printable(r):
			b.WriteRune(r)
		default:
			b.WriteRune('\uFFFD')
		}
	}
	return b.String()
}

// JUnit writes JUnit XML for CI systems: a test suite for each page of the
// specification, a test case for each observable requirement.
//
// A broken MUST is a failure, and so is a broken SHOULD if the run is strict; otherwise a broken SHOULD is a passed
// test with the finding in its output. Requirements that do not apply or were not exercised are skipped. So are
// failures that are expected, disputed, or not new since the compared run. Two suites exist only when they have
// something to say: "run" has an error if the run is incomplete, and whether something is new, and
// "expected-failures" a failure for each stale entry, so that CI does not read such a run as good.
//
// The file is valid against the schemas that Jenkins's xUnit plugin uses; Ant's has neither the
// attributes of the root nor system-out in a test case, which CI systems show. A
// requirement has no duration of its own: only the root's time is measured.
func JUnit(w io.Writer, run *result.Run, opts JUnitOptions) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	host := strings.Join(strings.Fields(line(opts.Hostname, limitName)), " ")
	if host == "" {
		host = "localhost"
	}
	doc := junitSuites{
		Name: fmt.Sprintf("%s: MCP %s %s", token(v.Tool.Name, "mcpconform"), token(v.Revision, "unknown"),
			token(v.Role, "unknown")),
		Time: fmt.Sprintf("%.3f", seconds(v.Seconds)),
	}
	for _, p := range v.pages {
		s := junitSuite{Name: token(p.name, "unknown")}
		for _, q := range p.requirements {
			s.Cases = append(s.Cases, v.junitCase(q, opts))
		}
		doc.add(v, s, host)
	}
	if s, ok := v.junitRun(); ok {
		doc.add(v, s, host)
	}
	if s, ok := v.junitExpected(); ok {
		doc.add(v, s, host)
	}
	b := bufio.NewWriter(w)
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	b.WriteByte('\n')
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}

// add adds a suite, with what all suites say and the counts of its cases.
func (doc *junitSuites) add(v *view, s junitSuite, host string) {
	s.ID = len(doc.Suites)
	s.Package = token(v.Tool.Name, "mcpconform")
	s.Time = "0.000"
	// The schemas want a timestamp without zone.
	s.Timestamp = timestamp(v.Started, "2006-01-02T15:04:05")
	s.Hostname = host
	if s.Properties == nil {
		s.Properties = v.junitRunProperties()
	}
	s.Tests = len(s.Cases)
	for i := range s.Cases {
		c := &s.Cases[i]
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	doc.Tests += s.Tests
	doc.Failures += s.Failures
	doc.Errors += s.Errors
	doc.Suites = append(doc.Suites, s)
}

// token is a name in an attribute of type xs:token: not empty, no space at
// either end and no two in a row.
func token(s, otherwise string) string {
	s = strings.Join(strings.Fields(line(s, limitName)), " ")
	if s == "" {
		return otherwise
	}
	return s
}

func (v *view) junitRunProperties() *junitProperties {
	p := new(junitProperties)
	p.add("tool", token(v.Tool.Name+" "+v.Tool.Version, ""))
	p.add("revision", line(v.Revision, limitName))
	p.add("role", line(v.Role, limitName))
	p.add("transport", line(v.Transport, limitName))
	p.add("target", v.targetName())
	p.add("address", v.targetAddress())
	p.add("verdict", line(string(v.Verdict), limitName))
	if v.Target.SDK != nil {
		p.add("sdk", v.sdkName())
	}
	if v.Verdict == result.Incomplete {
		p.add("reason", Incomplete(v.Run))
	}
	if v.Strict {
		p.add("strict", "true")
	}
	if b := v.Budget(); b != result.Default {
		p.add("budget", b.String())
	}
	if v.Against != nil {
		exit, because := v.decision()
		p.add("against", v.compared())
		p.add("decision", exit+": "+because)
		p.add("new", line(strings.Join(v.Against.New, " "), limitMessage))
		p.add("mended", line(strings.Join(v.Against.Mended, " "), limitMessage))
	}
	return p
}

// junitCaseProperties returns what a case says of its requirement beside the verdict.
func (v *view) junitCaseProperties(q *result.Requirement) *junitProperties {
	p := new(junitProperties)
	p.add("level", line(q.Level, limitName))
	p.add("basis", basis(q))
	p.add("party", line(q.Party, limitName))
	p.add("url", v.link(q))
	p.add("exercised", fmt.Sprint(q.Exercised))
	p.add("verdict", line(string(q.Verdict), limitName))
	p.add("unexercised", line(string(q.Unexercised), limitName))
	p.add("notUsed", line(q.NotUsed, limitName))
	if q.SDK != nil {
		p.add("sdk", line(q.SDK.ID, limitName))
	}
	return p
}

func (v *view) junitCase(q *result.Requirement, opts JUnitOptions) junitCase {
	c := junitCase{
		Name:  token(q.ID, "unknown"),
		Class: token(q.Page, "unknown"),
		Time:  "0.000",
	}
	p := v.junitCaseProperties(q)
	var facts, out strings.Builder
	if opts.CaseProperties {
		c.Properties = p
	} else {
		for _, x := range p.Properties {
			fmt.Fprintf(&facts, "[[PROPERTY|%s=%s]]\n", x.Name, xmlText(strings.ReplaceAll(x.Value, "]]", "] ]")))
		}
	}

	why := v.reason(q)
	switch o := v.outcome(q); o {
	case outFail, outWarn:
		switch {
		case o == outWarn && !v.Strict:
			out.WriteString(v.junitBody(q))
		case v.isNew(q):
			c.Failure = &junitProblem{Message: why, Type: token(q.Level, "unknown"), Text: xmlText(v.junitBody(q))}
		default:
			c.Skipped = &junitSkipped{Message: "broken, but not new since " + v.base() + ", so it does not count: " +
				why}
			out.WriteString(v.junitBody(q))
		}
	case outError:
		c.Error = &junitProblem{Message: why, Type: "harness", Text: xmlText(v.junitBody(q))}
	case outExpected:
		reason, _ := v.expectation(q)
		c.Skipped = &junitSkipped{Message: "expected failure: " + line(reason, limitMessage)}
		out.WriteString(v.junitBody(q))
	case outDisputed:
		c.Skipped = &junitSkipped{Message: "disputed: " + line(q.Disputed.Title, limitMessage)}
		out.WriteString(v.junitBody(q))
	case outInconclusive, outNotUsed, outSkip:
		if why != "" {
			why = ": " + why
		}
		c.Skipped = &junitSkipped{Message: told[o].label + why}
	}
	for _, note := range q.Notes {
		fmt.Fprintf(&out, "note: %s\n", line(note, limitMessage))
	}
	if text := facts.String() + xmlText(out.String()); text != "" {
		c.Out = &junitText{text}
	}
	return c
}

// junitBody is the body of a failure: what was required and what was found.
func (v *view) junitBody(q *result.Requirement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", strings.Join(grade(q), ", "), line(q.Summary, limitMessage))
	for i := range q.Findings {
		if i == limitFindings {
			fmt.Fprintf(&b, "and %d more findings in results.json\n", len(q.Findings)-i)
			break
		}
		v.junitFinding(&b, &q.Findings[i])
	}
	if q.Omitted > 0 {
		fmt.Fprintf(&b, "and %d more of the same kind\n", q.Omitted)
	}
	if len(q.Findings) == 0 && q.Reason != "" {
		fmt.Fprintf(&b, "%s\n", line(q.Reason, limitMessage))
	}
	if advice := v.advice(q); advice != "" {
		fmt.Fprintf(&b, "to do: %s\n", line(advice, limitMessage))
	}
	for _, k := range v.known(q, true) {
		fmt.Fprintf(&b, "SDK: %s %s\n", line(k.words, limitMessage), k.thread)
	}
	if cause := v.reading.cause[q.ID]; cause != nil {
		fmt.Fprintf(&b, "follows from %s\n", line(cause.ID, limitName))
	}
	for _, words := range dispute(q) {
		fmt.Fprintf(&b, "disputed: %s\n", words)
	}
	if link := v.link(q); link != "" {
		fmt.Fprintf(&b, "see %s\n", link)
	}
	return b.String()
}

func (v *view) junitFinding(b *strings.Builder, f *result.Finding) {
	fmt.Fprintf(b, "- %s\n", line(f.Message, limitMessage))
	for i := range f.Evidence {
		if i == limitEvents {
			fmt.Fprintf(b, "  … %d more events\n", len(f.Evidence)-i)
			break
		}
		fmt.Fprintf(b, "  %s\n", eventLine(v.Role, &f.Evidence[i]))
	}
}

// junitRun reports on the run as a whole.
func (v *view) junitRun() (junitSuite, bool) {
	s := junitSuite{Name: "run"}
	if v.Verdict == result.Incomplete {
		reason := Incomplete(v.Run)
		s.Cases = append(s.Cases, junitCase{Name: "complete", Class: "run", Time: "0.000",
			Error: &junitProblem{Message: reason, Type: "incomplete", Text: xmlText(reason)}})
	}
	if exit, because := v.decision(); exit != "" {
		c := junitCase{Name: "against", Class: "run", Time: "0.000", Out: &junitText{xmlText(exit + ": " + because)}}
		switch v.Against.Verdict(v.Run) {
		case result.NotConformant:
			c.Failure = &junitProblem{Message: because, Type: "against", Text: xmlText(because)}
		case result.Incomplete:
			c.Error = &junitProblem{Message: because, Type: "against", Text: xmlText(because)}
		}
		s.Cases = append(s.Cases, c)
	}
	// Violations by mcpconform say nothing about the target, so they are output
	// and no test case.
	var b strings.Builder
	for i := range v.Harness {
		if i == limitFindings {
			fmt.Fprintf(&b, "and %d more in results.json\n", len(v.Harness)-i)
			break
		}
		v.junitFinding(&b, &v.Harness[i])
	}
	if b.Len() > 0 {
		s.Err.Text = "mcpconform broke the protocol itself:\n" + xmlText(b.String())
	}
	var notes strings.Builder
	for _, note := range v.Notes {
		fmt.Fprintf(&notes, "note: %s\n", line(note, limitMessage))
	}
	s.Out.Text = xmlText(notes.String())
	return s, len(s.Cases) > 0 || s.Err.Text != "" || s.Out.Text != ""
}

func (v *view) junitExpected() (junitSuite, bool) {
	s := junitSuite{Name: "expected-failures"}
	for i := range v.ExpectedFailures {
		x := &v.ExpectedFailures[i]
		if !x.Stale() {
			continue
		}
		words, c := staleWords(x), junitCase{Name: token(x.ID, "unknown"), Class: s.Name, Time: "0.000"}
		if v.isStale(x) {
			c.Failure = &junitProblem{Message: words, Type: "stale", Text: xmlText(words)}
		} else {
			c.Skipped = &junitSkipped{Message: words + "; it was stale in " + v.base() + " too, so it does not count"}
		}
		s.Cases = append(s.Cases, c)
	}
	return s, len(s.Cases) > 0
}
