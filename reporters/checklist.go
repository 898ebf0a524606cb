package reporters

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// levels in the order of RFC 2119.
var levels = []string{"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"}

// mdSpecial is the punctuation that starts a construct within a line.
const mdSpecial = "\\`*_{}[]<>#+!|~&$@:^="

// mdText escapes one line of text for Markdown, in and out of tables. All
// punctuation that starts a construct in CommonMark or GitHub's dialect is
// escaped, so that text stays text: no link, no image, no HTML, no emoji, no
// formula, no cell border.
func mdText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(mdSpecial, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	// GitHub links www. without a scheme.
	escaped := strings.ReplaceAll(b.String(), "www.", `www\.`)
	// The text may open a list item, where a dash or a number would open another.
	escaped = strings.TrimSpace(escaped)
	if strings.HasPrefix(escaped, "-") {
		return `\` + escaped
	}
	if rest := strings.TrimLeft(escaped, "0123456789"); rest != escaped &&
		(strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ")")) {
		return escaped[:len(escaped)-len(rest)] + `\` + rest
	}
	return escaped
}

// mdCell is mdText for a table cell: an empty one would render ragged.
func mdCell(s string) string {
	if s == "" {
		return "–"
	}
	return mdText(s)
}

// mdCode makes a code span of one line of text. In a table, a border counts
// before code does, and an escape of it is not undone everywhere; there the
// span is written in HTML, with a reference for each character that could count.
func mdCode(s string, table bool) string {
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	if table && strings.Contains(s, "|") {
		var b strings.Builder
		b.WriteString("<code>")
		for _, r := range s {
			if r < 0x80 && strings.ContainsRune(mdSpecial, r) {
				fmt.Fprintf(&b, "&#%d;", r)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String() + "</code>"
	}
	fence := strings.Repeat("`", backticks(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// backticks is the length of the longest run of backticks in s.
func backticks(s string) int {
	most := 0
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r != '`' }) {
		most = max(most, len(run))
	}
	return most
}

type checklist struct {
	*view
	w *bufio.Writer
}

// Checklist writes the certification checklist in Markdown (GitHub's dialect, readable as plain text): the target and
// the tool, the verdict, a table of requirements for each page with the findings below it, and at the end the
// requirements that no peer can observe.
func Checklist(w io.Writer, run *result.Run) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	c := &checklist{view: v, w: bufio.NewWriter(w)}
	c.heading()
	c.features()
	c.counts()
	c.ofTheSDK()
	for _, p := range v.pages {
		c.page(p)
	}
	c.expectedFailures()
	c.remarks()
	c.closing()
	return c.w.Flush()
}

func (c *checklist) printf(format string, args ...any) {
	fmt.Fprintf(c.w, format, args...)
}

func (c *checklist) heading() {
	c.printf("# MCP conformance checklist\n\n")
	word, detail := c.verdictWords()
	c.printf("**%s**: %s.\n\n", mdText(strings.ToUpper(word)), mdText(detail))
	c.printf("%s", c.mdComparison())
	c.printf("| | |\n| --- | --- |\n")
	row := func(name, cell string) {
		if cell != "" && cell != "–" {
			c.printf("| %s | %s |\n", name, cell)
		}
	}
	t := &c.Target
	row("Target", mdCell(c.targetName()))
	row("Target name", mdCode(line(t.Name, limitName), true))
	row("Target version", mdCode(line(t.Version, limitName), true))
	row(c.addressName(), mdCode(c.targetAddress(), true))
	row("Role", mdCell(line(c.Role, limitName)))
	row("Transport", mdCell(transportName(c.Transport)))
	row("Protocol revision", mdCode(line(c.Revision, limitName), true))
	if t.ProtocolVersion != "" && t.ProtocolVersion != c.Revision {
		row("Negotiated revision", mdCode(line(t.ProtocolVersion, limitName), true))
	}
	if t.SDK != nil {
		row("SDK", mdCell(c.sdkName()))
	}
	row("Date", timestamp(c.Started, "2006-01-02 15:04:05 UTC"))
	row("Duration", fmt.Sprintf("%.1f s", seconds(c.Seconds)))
	row("Tool", mdCell(line(c.Tool.Name+" "+c.Tool.Version, limitName)))
	if c.Strict {
		row("Strict", "yes: recommendations count")
	}
	row("Budget", c.budget())
	c.printf("\n")
}

// counts writes the table of levels and outcomes.
func (c *checklist) counts() {
	names, table := c.levelCounts()
	if len(names) == 0 {
		return
	}
	c.printf("| Level |")
	for _, o := range outcomes {
		c.printf(" %s %s |", told[o].mark, told[o].label)
	}
	c.printf("\n| --- |%s\n", strings.Repeat(" --: |", len(outcomes)))
	for _, name := range names {
		c.printf("| %s |", mdCell(name))
		for _, o := range outcomes {
			c.printf(" %d |", table[name][o])
		}
		c.printf("\n")
	}
	c.printf("| **Total** |")
	for _, o := range outcomes {
		c.printf(" **%d** |", c.view.counts[o])
	}
	c.printf("\n\n")
}

// ofTheSDK lists what the SDK of the target is known to cause.
func (c *checklist) ofTheSDK() {
	title, ok := c.sdkTitle()
	if !ok {
		return
	}
	by := mdText(line(c.Target.SDK.Evidence, limitMessage))
	c.printf("## %s\n\nThe SDK was recognised: %s. %s\n\n", mdText(title), by, mdText(sdkHelp))
	c.printf("| Requirement | Versions | What to do | Thread |\n| --- | --- | --- | --- |\n")
	for _, g := range c.sdkGroups() {
		todo := mdCell(line(g.Advice, limitMessage))
		for _, q := range g.requirements {
			c.printf("| %s | %s | %s | <%s> |\n", c.mdLink(q), mdCell(mended(g.SDKFault)), todo, safeURL(g.Thread))
		}
	}
	c.printf("\n")
}

// levelCounts counts outcomes by level: the known levels in their order, then
// what else occurs.
func (v *view) levelCounts() ([]string, map[string]map[outcome]int) {
	table := make(map[string]map[outcome]int)
	var names []string
	for _, p := range v.pages {
		for _, q := range p.requirements {
			name := line(q.Level, limitName)
			if table[name] == nil {
				table[name] = make(map[outcome]int)
				names = append(names, name)
			}
			table[name][v.outcome(q)]++
		}
	}
	rank := func(name string) int { return slices.Index(append(slices.Clone(levels), name), name) }
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names, table
}

func (c *checklist) page(p page) {
	c.printf("## %s\n\n", mdCell(line(p.name, limitName)))
	c.printf("| Verdict | Requirement | Level | Basis | What it asks | Exercised | Remark |\n")
	c.printf("| --- | --- | --- | --- | --- | --: | --- |\n")
	for _, q := range p.requirements {
		o := c.outcome(q)
		label := o.marked()
		if o == outFail || o == outError {
			label = told[o].mark + " **" + told[o].label + "**"
		}
		remark := ""
		if o != outPass {
			remark = c.reason(q)
		}
		c.printf("| %s | %s | %s | %s | %s | %d | %s |\n", label,
			c.mdLink(q), mdCell(line(q.Level, limitName)), mdCell(basis(q)),
			mdCell(line(q.Summary, limitMessage)), q.Exercised, mdText(remark))
	}
	c.printf("\n")
	for _, q := range p.requirements {
		if len(q.Findings) > 0 || len(q.Notes) > 0 {
			c.details(q)
		}
	}
}

// details writes what was found about a requirement. The evidence is a code
// block: nothing in it is Markdown, and no line of it can end the block, as
// each starts with an arrow or a dot of ours.
func (c *checklist) details(q *result.Requirement) {
	o := c.outcome(q)
	// The summary's line is HTML, in which Markdown does not count.
	c.printf("<details><summary>%s <code>%s</code>: %s</summary>\n\n", html.EscapeString(o.marked()),
		html.EscapeString(line(q.ID, limitName)), html.EscapeString(line(q.Summary, limitMessage)))
	c.findings(q.Findings)
	if q.Omitted > 0 {
		c.printf("- and %d more of the same kind\n", q.Omitted)
	}
	if advice := c.advice(q); advice != "" {
		c.printf("- To do: %s\n", mdText(line(advice, limitMessage)))
	}
	for _, k := range c.known(q, false) {
		c.printf("- SDK: %s <%s>\n", mdText(line(k.words, limitMessage)), safeURL(k.thread))
	}
	if cause := c.reading.cause[q.ID]; cause != nil {
		c.printf("- Follows from: %s\n", mdCode(line(cause.ID, limitName), false))
	}
	if also := c.alsoBreaks(q); len(also) > 0 {
		c.printf("- Also breaks: %s\n", mdText(strings.Join(also, ", ")))
	}
	for _, words := range dispute(q) {
		c.printf("- Disputed: %s\n", mdText(words))
	}
	for _, note := range q.Notes {
		c.printf("- Note: %s\n", mdText(line(note, limitMessage)))
	}
	c.printf("\n</details>\n\n")
}

func (c *checklist) findings(findings []result.Finding) {
	for i := range findings {
		if i == limitFindings {
			c.printf("- and %d more in results.json\n", len(findings)-i)
			return
		}
		f := &findings[i]
		c.printf("- %s", mdText(line(f.Message, limitMessage)))
		if f.Check != "" {
			c.printf(" (%s)", mdCode(line(f.Check, limitName), false))
		}
		c.printf("\n")
		if len(f.Evidence) == 0 {
			continue
		}
		var lines []string
		for j := range f.Evidence {
			if j == limitEvents {
				lines = append(lines, fmt.Sprintf("… %d more events", len(f.Evidence)-j))
				break
			}
			lines = append(lines, eventLine(c.Role, &f.Evidence[j]))
		}
		text := strings.Join(lines, "\n  ")
		fence := strings.Repeat("`", max(3, backticks(text)+1))
		c.printf("\n  %stext\n  %s\n  %s\n\n", fence, text, fence)
	}
}

func (c *checklist) expectedFailures() {
	if len(c.ExpectedFailures) == 0 {
		return
	}
	c.printf("## Expected failures\n\n| Requirement | Reason | Expires | State |\n| --- | --- | --- | --- |\n")
	for i := range c.ExpectedFailures {
		x := &c.ExpectedFailures[i]
		c.printf("| %s | %s | %s | %s |\n", mdCode(line(x.ID, limitName), true),
			mdCell(line(x.Reason, limitMessage)), mdCell(line(x.Expires, limitName)), mdText(stateOf(x)))
	}
	c.printf("\n")
}

func (c *checklist) remarks() {
	if len(c.Harness) > 0 {
		c.printf("## Violations by mcpconform itself\n\nThese are bugs of mcpconform, not of the target.\n\n")
		c.findings(c.Harness)
		c.printf("\n")
	}
	if groups := c.uncalled(); len(groups) > 0 {
		c.printf("## Tools that were not called\n\n")
		for _, g := range groups {
			c.printf("- %s\n", mdText(g.words(len(g.tools))))
		}
		c.printf("\n%s\n\n", mdText(uncalledHelp))
	}
	if len(c.Notes) > 0 {
		c.printf("## Notes\n\n")
		for _, note := range c.Notes {
			c.printf("- %s\n", mdText(line(note, limitMessage)))
		}
		c.printf("\n")
	}
}

func (c *checklist) closing() {
	if len(c.unobservable) == 0 {
		return
	}
	c.printf("## Not observed\n\nNothing is observed of these, and each says why: they need another kind of " +
		"review.\n\n")
	c.printf("| Requirement | Level | What it asks | Why nothing is observed |\n| --- | --- | --- | --- |\n")
	for _, q := range c.unobservable {
		c.printf("| %s | %s | %s | %s |\n", c.mdLink(q),
			mdCell(line(q.Level, limitName)), mdCell(line(q.Summary, limitMessage)),
			mdCell(line(q.Reason, limitMessage)))
	}
}

// Reproduction says how a run is repeated.
type Reproduction struct {
	Tool      result.Tool
	Class     string   // of the certificate, with its version
	Platform  string   // on which the run took place
	Arguments []string // of mcpconform, without secrets
	Seed      uint64
}

// Reproduce writes in Markdown how a run is repeated.
func Reproduce(w io.Writer, r Reproduction) error {
	words := []string{"mcpconform"}
	for _, word := range r.Arguments {
		words = append(words, shellWord(word))
	}
	command := line(strings.Join(words, " "), limitEvent)
	fence := strings.Repeat("`", max(3, backticks(command)+1))
	_, err := fmt.Fprintf(w,
		"# How to repeat the run\n\n%ssh\n%s\n%s\n\nWhere %s stands, put the secret that was there.\n\n"+
			"- Version: %s\n- Conformance class: %s\n- Platform: %s\n- Seed: %d\n",
		fence, command, fence, transport.Redacted, mdText(line(r.Tool.Name+" "+r.Tool.Version, limitName)),
		mdCode(line(r.Class, limitName), false), mdText(line(r.Platform, limitName)), r.Seed)
	return err
}
