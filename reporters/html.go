package reporters

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	//go:embed report.html.tmpl
	htmlSource string
	//go:embed report.css
	htmlStyle string
	//go:embed report.js
	htmlScript string

	htmlTemplate = template.Must(template.New("report").Parse(htmlSource))

	// htmlPolicy lets the page run its own style and script, by their digests,
	// and load or send nothing at all.
	htmlPolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		cspDigest(htmlStyle), cspDigest(htmlScript))
)

func cspDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

type htmlPage struct {
	Policy                                      string
	Style                                       template.CSS
	Script                                      template.JS
	Target, Revision, Tool, Word, Detail, Class string
	Facts                                       []htmlFact
	Tiles                                       []htmlTile
	Total                                       int
	Broken                                      []htmlRow
	Columns                                     []string
	Levels                                      []htmlLevel
	Pages                                       []htmlSection
	Expected                                    []htmlExpected
	Harness                                     []htmlFinding
	Notes                                       []string
	Unobservable                                []htmlRow
}

type htmlFact struct {
	Name, Value string
	Code, Link  bool
}

type htmlTile struct {
	Class, Label  string
	Count, Offset int
}

type htmlLevel struct {
	Name   string
	Counts []int
}

type htmlSection struct {
	Name, Summary string
	Rows          []htmlRow
}

type htmlRow struct {
	ID, Anchor, Level, Grade, Party, Summary, Class, Mark, Label, Reason, Remark, Exercised, URL string
	Open                                                                                         bool
	Omitted                                                                                      int
	Checks, Notes, Disputed                                                                      []string
	Findings                                                                                     []htmlFinding
}

type htmlFinding struct {
	Message string
	Lines   []string
}

type htmlExpected struct {
	ID, Reason, Expires, State string
}

// HTML writes the report as one page that needs nothing else: no network, no
// other file, and no script but a filter, without which it is complete too.
func HTML(w io.Writer, run *result.Run) error {
	v, err := newView(run)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := htmlTemplate.Execute(b, v.html()); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func (v *view) html() *htmlPage {
	p := &htmlPage{
		Policy:   htmlPolicy,
		Style:    template.CSS(htmlStyle),
		Script:   template.JS(htmlScript),
		Target:   v.targetName(),
		Revision: line(v.Revision, limitName),
		Tool:     line(v.Tool.Name+" "+v.Tool.Version, limitName),
		Class:    "not-conformant",
		Total:    v.total(),
		Facts:    v.htmlFacts(),
		Harness:  v.htmlFindings(v.Harness),
	}
	switch v.Run.Verdict {
	case result.Conformant, result.Incomplete:
		p.Class = string(v.Run.Verdict)
	}
	p.Word, p.Detail = v.verdictWords()
	offset := 0
	for _, o := range outcomes {
		n := v.counts[o]
		p.Columns = append(p.Columns, o.label())
		if n > 0 || o == outPass || o == outFail || o == outWarn || o == outInconclusive {
			p.Tiles = append(p.Tiles, htmlTile{Class: string(o), Label: o.label(), Count: n, Offset: offset})
		}
		offset += n
	}
	names, table := v.levelCounts()
	for _, name := range names {
		level := htmlLevel{Name: name}
		for _, o := range outcomes {
			level.Counts = append(level.Counts, table[name][o])
		}
		p.Levels = append(p.Levels, level)
	}
	anchors := 0
	for _, page := range v.pages {
		s := htmlSection{Name: line(page.name, limitName)}
		counts := make(map[outcome]int)
		for _, q := range page.requirements {
			row := v.htmlRow(q)
			anchors++
			row.Anchor = anchor(q.ID, anchors)
			counts[v.outcome(q)]++
			s.Rows = append(s.Rows, row)
			if o := v.outcome(q); o == outFail || o == outError || o == outWarn || o == outDisputed {
				p.Broken = append(p.Broken, row)
			}
		}
		var parts []string
		for _, o := range outcomes {
			if counts[o] > 0 {
				parts = append(parts, o.counted(counts[o]))
			}
		}
		s.Summary = strings.Join(parts, ", ")
		p.Pages = append(p.Pages, s)
	}
	p.Broken = worstFirst(p.Broken)
	for i := range v.ExpectedFailures {
		x := &v.ExpectedFailures[i]
		state := staleWords(x)
		if state == "" {
			state = "failed as expected"
		}
		p.Expected = append(p.Expected, htmlExpected{line(x.ID, limitName), line(x.Reason, limitMessage), line(x.Expires, limitName), state})
	}
	for _, note := range v.Notes {
		p.Notes = append(p.Notes, line(note, limitMessage))
	}
	for _, q := range v.unobservable {
		p.Unobservable = append(p.Unobservable, v.htmlRow(q))
	}
	return p
}

// worstFirst sorts the rows by outcome, and keeps the order within each.
func worstFirst(rows []htmlRow) []htmlRow {
	var sorted []htmlRow
	for _, o := range outcomes {
		for _, row := range rows {
			if row.Class == string(o) {
				sorted = append(sorted, row)
			}
		}
	}
	return sorted
}

// anchor is the id of the n-th requirement's element: its own id, which people
// put into links, if that can stand in an address; else one that cannot clash.
func anchor(id string, n int) string {
	if id == "" || len(id) > limitName || !strings.Contains(id, ".") || strings.IndexFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-')
	}) >= 0 {
		return fmt.Sprintf("requirement_%d", n)
	}
	return id
}

func (v *view) htmlFacts() []htmlFact {
	t := &v.Target
	var facts []htmlFact
	add := func(f htmlFact) {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	address := v.targetAddress()
	add(htmlFact{Name: "Protocol revision", Value: line(v.Revision, limitName)})
	if t.ProtocolVersion != v.Revision {
		add(htmlFact{Name: "Negotiated revision", Value: line(t.ProtocolVersion, limitName)})
	}
	add(htmlFact{Name: "Role and transport", Value: line(v.Role, limitName) + ", " + transportName(v.Transport)})
	add(htmlFact{Name: v.addressName(), Value: address, Code: true, Link: t.URL != "" && isLinkable(address)})
	if t.Title != "" {
		add(htmlFact{Name: "Target name", Value: line(t.Name, limitName), Code: true})
	}
	add(htmlFact{Name: "Date", Value: fmt.Sprintf("%s, took %.1f s", timestamp(v.Started, "2006-01-02 15:04 UTC"), seconds(v.Seconds))})
	add(htmlFact{Name: "Tool", Value: line(v.Tool.Name+" "+v.Tool.Version, limitName)})
	if v.Strict {
		add(htmlFact{Name: "Strict", Value: "yes: recommendations count"})
	}
	return facts
}

func (v *view) htmlRow(q *result.Requirement) htmlRow {
	o := v.outcome(q)
	row := htmlRow{
		ID: line(q.ID, limitName), Level: line(q.Level, limitName), Grade: strings.Join(grade(q), " · "), Party: line(q.Party, limitName),
		Summary: line(q.Summary, limitMessage), Class: string(o), Mark: o.mark(), Label: o.label(),
		Reason: line(q.Reason, limitMessage), Remark: v.reason(q), URL: v.link(q),
		Open: o == outFail || o == outError, Omitted: max(q.Omitted, 0),
		Findings: v.htmlFindings(q.Findings), Disputed: dispute(q),
	}
	if row.Remark == "" {
		row.Remark = row.Summary
	}
	if o == outExpected {
		row.Reason = v.reason(q)
	}
	switch q.Exercised {
	case 0:
		row.Exercised = "not exercised"
	case 1:
		row.Exercised = "exercised once"
	default:
		row.Exercised = fmt.Sprintf("exercised %d times", q.Exercised)
	}
	for _, name := range q.Checks {
		row.Checks = append(row.Checks, line(name, limitName))
	}
	for _, note := range q.Notes {
		row.Notes = append(row.Notes, line(note, limitMessage))
	}
	return row
}

func (v *view) htmlFindings(findings []result.Finding) []htmlFinding {
	var out []htmlFinding
	for i := range findings {
		if i == limitFindings {
			out = append(out, htmlFinding{Message: fmt.Sprintf("and %d more in results.json", len(findings)-i)})
			break
		}
		f := htmlFinding{Message: line(findings[i].Message, limitMessage)}
		for j := range findings[i].Evidence {
			if j == limitEvents {
				f.Lines = append(f.Lines, fmt.Sprintf("… %d more events", len(findings[i].Evidence)-j))
				break
			}
			f.Lines = append(f.Lines, eventLine(v.Role, &findings[i].Evidence[j], limitEvent))
		}
		out = append(out, f)
	}
	return out
}
