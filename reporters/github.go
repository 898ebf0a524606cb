package reporters

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// Bounds of GitHub Actions, and ours below them.
const (
	// maxAnnotations is how many annotations of a kind GitHub shows of one step.
	maxAnnotations = 10
	// MaxStepSummary is how many bytes the summary of a step may have.
	MaxStepSummary = 1 << 20
	// summaryRows is how many failures, and how many warnings, a summary lists.
	summaryRows, summaryWarnings = 50, 10
)

// annotation is a workflow command that GitHub shows beside the step.
type annotation struct{ kind, title, text string }

// annotations of a run, what is most important first.
func (v *view) annotations(name string) []annotation {
	var list []annotation
	add := func(kind, title, text string) {
		if name != "" {
			title = name + ": " + title
		}
		list = append(list, annotation{kind, title, text})
	}
	about := func(kind string, q *result.Requirement, word string) {
		add(kind, line(q.Level, limitName)+" "+word+": "+line(q.ID, limitName), v.annotationText(q))
	}
	if v.Verdict == result.Incomplete {
		add("error", "The run is incomplete", Incomplete(v.Run))
	}
	broken := v.having(outFail)
	if v.Strict {
		broken = append(broken, v.having(outWarn)...)
	}
	for _, q := range broken {
		if v.isNew(q) {
			about("error", q, "broken")
		}
	}
	v.annotateChanges(add)
	for _, q := range broken {
		if !v.isNew(q) {
			about("warning", q, "broken, as in the earlier results")
		}
	}
	for _, q := range v.having(outError) {
		about("warning", q, "not judged")
	}
	if !v.Strict {
		for _, q := range v.having(outWarn) {
			about("warning", q, "not followed")
		}
	}
	word, detail := v.verdictWords()
	if exit, _ := v.decision(); exit != "" {
		word += ", " + exit
	}
	add("notice", "MCP "+line(v.Revision, limitName)+" "+line(v.Role, limitName)+": "+word, detail+v.decided())
	return list
}

// annotationText says why a requirement has its verdict, whether its SDK is known for it, and where it stands.
func (v *view) annotationText(q *result.Requirement) string {
	text := v.reason(q)
	if text == "" {
		text = line(q.Summary, limitMessage)
	}
	if q.SDK != nil {
		text += "\n" + v.knownUpstream(q)
	}
	if link := v.link(q); link != "" {
		text += "\n" + link
	}
	return text
}

// annotateChanges adds expected failures that are stale and breaking changes of the offer.
func (v *view) annotateChanges(add func(kind, title, text string)) {
	for i := range v.ExpectedFailures {
		if x := &v.ExpectedFailures[i]; x.Stale() {
			kind := "warning"
			if v.isStale(x) {
				kind = "error"
			}
			add(kind, "Expected failure: "+line(x.ID, limitName), staleWords(x))
		}
	}
	if v.Against != nil {
		kind := "warning"
		if v.Against.FailOnBreaking {
			kind = "error"
		}
		breaking, _ := v.offerChanges(maxAnnotations)
		for _, text := range breaking {
			add(kind, "Breaking change of the offer", text)
		}
	}
}

// GitHub writes what is wrong as workflow commands, which GitHub Actions shows as
// annotations: errors for what decides the exit code, warnings for the rest. GitHub shows ten of
// a kind; the tenth says how many more there are.
func GitHub(w io.Writer, members []Member) error {
	byKind := make(map[string][]annotation)
	for _, m := range members {
		var list []annotation
		switch {
		case m.Run != nil:
			v, err := newView(m.Run)
			if err != nil {
				return err
			}
			list = v.annotations(line(m.Name, limitName))
		case m.Err != nil:
			list = []annotation{{"error", line(m.Name, limitName) + ": not tested", line(m.Err.Error(), limitMessage)}}
		}
		for _, a := range list {
			byKind[a.kind] = append(byKind[a.kind], a)
		}
	}
	var b strings.Builder
	for _, kind := range []string{"error", "warning", "notice"} {
		list := byKind[kind]
		if more := len(list) - maxAnnotations + 1; more > 1 {
			list = append(slices.Clone(list[:maxAnnotations-1]),
				annotation{kind, fmt.Sprintf("%d more", more), "The log and the reports of this step list them all."})
		}
		for _, a := range list {
			fmt.Fprintf(&b, "::%s title=%s::%s\n", kind, escapeProperty.Replace(a.title), escapeData.Replace(a.text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// They escape the text of a workflow command, and a property of one.
var (
	escapeData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", "##[", "## [")
	escapeProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C", "##[", "## [")
)

// StepSummary writes a summary in Markdown for the page of a workflow run: the verdict,
// the counts, the failures with links to what they break, and the first warnings. It is
// at most limit bytes long: what does not fit is left out as a whole.
func StepSummary(w io.Writer, members []Member, limit int) error {
	var b strings.Builder
	for i, m := range members {
		part := ""
		switch {
		case m.Run != nil:
			v, err := newView(m.Run)
			if err != nil {
				return err
			}
			part = v.stepSummary(line(m.Name, limitName))
		case m.Err != nil:
			part = fmt.Sprintf("### %s: not tested\n\n%s\n\n", mdText(line(m.Name, limitName)),
				mdText(line(m.Err.Error(), limitMessage)))
		}
		const reserve = 100 // for the last line
		if b.Len()+len(part)+reserve > limit {
			if b.Len()+reserve <= limit {
				fmt.Fprintf(&b, "%d more %s left out: the summary would be too long.\n", len(members)-i,
					plural(len(members)-i, "target is", "targets are"))
			}
			break
		}
		b.WriteString(part)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *view) stepSummary(name string) string {
	var b strings.Builder
	word, detail := v.verdictWords()
	if name == "" {
		name = v.targetName()
	}
	fmt.Fprintf(&b, "### %s: %s\n\nMCP %s %s over %s: %s.\n\n", mdText(name), mdText(word),
		mdText(line(v.Revision, limitName)), mdText(line(v.Role, limitName)), mdText(transportName(v.Transport)),
		mdText(detail))
	var counts []string
	for _, o := range outcomes {
		if n := v.counts[o]; n > 0 {
			counts = append(counts, o.counted(n))
		}
	}
	if len(counts) > 0 {
		fmt.Fprintf(&b, "%s\n\n", mdText(strings.Join(counts, " · ")))
	}
	b.WriteString(v.mdComparison())
	v.summaryTable(&b, "Broken", v.having(outFail), summaryRows)
	v.summaryTable(&b, "Not followed", v.having(outWarn), summaryWarnings)
	return b.String()
}

// summaryTable writes some requirements with what was found.
func (v *view) summaryTable(b *strings.Builder, title string, list []*result.Requirement, most int) {
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(p, q *result.Requirement) int {
		switch {
		case v.isNew(p) == v.isNew(q):
			return 0
		case v.isNew(p):
			return -1
		}
		return 1
	})
	fmt.Fprintf(b, "| %s | Level | Found |\n| --- | --- | --- |\n", title)
	for _, q := range list[:min(len(list), most)] {
		mark := ""
		if v.Against != nil && v.isNew(q) {
			mark = " (new)"
		}
		fmt.Fprintf(b, "| %s%s | %s | %s |\n", v.mdLink(q), mark, mdCell(line(q.Level, limitName)),
			mdCell(line(v.reason(q), limitBrief)))
	}
	b.WriteString("\n")
	if more := len(list) - most; more > 0 {
		fmt.Fprintf(b, "and %d more in the log and the reports of this step\n\n", more)
	}
}

// Guard returns a writer for what GitHub Actions reads: no text that passes it is taken
// for a workflow command. A line that begins with two colons gets a space between them,
// and so does "##[" after its second character.
func Guard(w io.Writer) io.Writer { return &guard{to: w, start: true} }

type guard struct {
	to     io.Writer
	start  bool // nothing but blanks stands in this line yet
	colon  bool // the first that stands there is one colon
	hashes int  // in a row, at most two
}

func (g *guard) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p)+8)
	for _, c := range p {
		switch {
		case c == ':' && g.colon, c == '[' && g.hashes == 2:
			out = append(out, ' ')
		}
		g.colon = c == ':' && g.start
		g.hashes = min(g.hashes+1, 2)
		if c != '#' {
			g.hashes = 0
		}
		switch {
		case c == '\n' || c == '\r':
			g.start = true
		case c > ' ':
			g.start = false
		}
		out = append(out, c)
	}
	if _, err := g.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
