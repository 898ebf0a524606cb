package reporters

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/suites/result"
)

var (
	//go:embed site.html.tmpl
	siteSource string

	siteTemplate = sync.OnceValue(func() *template.Template {
		return template.Must(template.New("site").Parse(siteSource))
	})

	//go:embed site.css
	siteOwnStyle string

	siteStyle  = htmlStyle + siteOwnStyle
	sitePolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; base-uri 'none'; form-action 'none'",
		cspDigest(siteStyle))
)

// SiteRun is a run that a site shows.
type SiteRun struct {
	Run *result.Run
	// Core and Extended are the verdicts on the conformance classes of its role and transport.
	Core, Extended SiteVerdict
	// Verified says that the run comes from a bundle that was verified.
	Verified bool
}

// SiteVerdict is a verdict on a conformance class, and the counts behind it in words. Without
// a verdict, the run says nothing of the class.
type SiteVerdict struct {
	Verdict result.Overall
	Counts  string
}

// SiteFile is a file of a site. Its name is a path with slashes.
type SiteFile struct {
	Name    string
	Content []byte
}

type sitePage struct {
	Policy, Title, Up string
	Style             template.CSS
	Groups            []siteGroup
	Tables            []siteTable
}

// siteTable compares runs. The folded parts are of less interest.
type siteTable struct {
	Title  string
	Folded bool
	Names  []string // of what is compared
	Rows   []siteRequirement
}

// siteGroup holds what is of one role and transport.
type siteGroup struct {
	Name, Compared string
	Rows           []siteRow
	Changed        *siteTable // by the last run
}

type siteRow struct {
	Name, Version, Tool, Page, Report, Date string
	Core, Extended                          siteWord
	Runs                                    int
	Verified                                bool
}

type siteWord struct{ Word, Class, Counts string }

type siteRequirement struct {
	ID, Level, URL string
	Cells          []siteCell
}

type siteCell struct{ Of, Class, Mark, Label string }

// siteTarget is an implementation and its runs, oldest first, by role and transport.
type siteTarget struct {
	name, slug string
	runs       map[string][]siteEntry
}

// siteEntry is a run and the page of its report.
type siteEntry struct {
	SiteRun
	view   *view
	report string
}

// Site renders runs as a static site that needs no script: an index of all implementations by role and transport, a
// page with the history of each, pages on their differences, and the report on each run. The bytes depend on the runs
// alone.
func Site(runs []SiteRun) ([]SiteFile, error) {
	targets, files, err := siteTargets(runs)
	if err != nil {
		return nil, err
	}
	index := sitePage{Title: "MCP conformance of implementations"}
	for _, group := range siteGroups(targets) {
		g := siteGroup{Name: groupName(group)}
		var names []string
		var last []*result.Run
		for _, t := range targets {
			entries := t.runs[group]
			if len(entries) == 0 {
				continue
			}
			newest := entries[len(entries)-1]
			row := newest.row("")
			row.Name, row.Page, row.Runs = t.name, t.page(), len(entries)
			g.Rows = append(g.Rows, row)
			names, last = append(names, strings.TrimSpace(t.name+" "+row.Version)), append(last, newest.Run)
		}
		if len(last) > 1 {
			g.Compared = "compared/" + strings.ReplaceAll(group, "/", "-") + ".html"
			page := sitePage{Title: g.Name + ": where implementations differ", Up: "../index.html"}
			if page.Tables, err = siteComparison(last, names); err != nil {
				return nil, err
			}
			if files, err = page.add(files, "compared", g.Compared); err != nil {
				return nil, err
			}
		}
		index.Groups = append(index.Groups, g)
	}
	for _, t := range targets {
		page := sitePage{Title: t.name, Up: "../index.html"}
		for _, group := range siteGroups([]*siteTarget{t}) {
			g := siteGroup{Name: groupName(group)}
			entries := t.runs[group]
			for _, e := range slices.Backward(entries) {
				g.Rows = append(g.Rows, e.row("../"))
			}
			if n := len(entries); n > 1 {
				m, err := newMatrix([]*result.Run{entries[n-2].Run, entries[n-1].Run})
				if err != nil {
					return nil, err
				}
				if t := m.table("Changes of the last run", []string{"Before", "Last"}, m.differs); len(t.Rows) > 0 {
					g.Changed = &t
				}
			}
			page.Groups = append(page.Groups, g)
		}
		if files, err = page.add(files, "implementation", t.page()); err != nil {
			return nil, err
		}
	}
	return index.add(files, "index", "index.html")
}

// siteTargets groups runs by implementation, in the order of names, and renders the
// report on each.
func siteTargets(runs []SiteRun) (targets []*siteTarget, files []SiteFile, err error) {
	if len(runs) == 0 || slices.ContainsFunc(runs, func(r SiteRun) bool { return r.Run == nil }) {
		return nil, nil, errNoRun
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b SiteRun) int { return a.Run.Started.Compare(b.Run.Started) })
	byName := make(map[string]*siteTarget)
	for _, r := range runs {
		v, err := newView(r.Run)
		if err != nil {
			return nil, nil, err
		}
		name := line(cmp.Or(r.Run.Target.Name, v.targetAddress(), "unnamed"), limitName)
		t := byName[name]
		if t == nil {
			t = &siteTarget{name: name, runs: make(map[string][]siteEntry)}
			byName[name] = t
			targets = append(targets, t)
		}
		group := line(r.Run.Role, limitName) + "/" + line(r.Run.Transport, limitName)
		t.runs[group] = append(t.runs[group], siteEntry{SiteRun: r, view: v})
	}
	slices.SortFunc(targets, func(a, b *siteTarget) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)),
			strings.Compare(a.name, b.name))
	})
	taken := make(map[string]bool)
	for _, t := range targets {
		t.slug = slug(t.name)
		for n := 2; taken[t.slug]; n++ {
			t.slug = fmt.Sprintf("%s-%d", slug(t.name), n)
		}
		taken[t.slug] = true
		n := 0
		for _, group := range siteGroups([]*siteTarget{t}) {
			for i := range t.runs[group] {
				n++
				e := &t.runs[group][i]
				e.report = fmt.Sprintf("runs/%s-%d.html", t.slug, n)
				var b bytes.Buffer
				if err := HTML(&b, e.Run); err != nil {
					return nil, nil, err
				}
				files = append(files, SiteFile{e.report, b.Bytes()})
			}
		}
	}
	return targets, files, nil
}

// slug makes the name of a file from the name of a target, whatever that holds.
func slug(name string) string {
	const most = 60
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case b.Len() == most:
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return cmp.Or(strings.TrimSuffix(b.String(), "-"), "unnamed")
}

func (t *siteTarget) page() string { return "implementations/" + t.slug + ".html" }

// siteGroups returns the roles and transports that there are: servers first.
func siteGroups(targets []*siteTarget) []string {
	var groups []string
	for _, t := range targets {
		for g := range t.runs {
			if !slices.Contains(groups, g) {
				groups = append(groups, g)
			}
		}
	}
	slices.SortFunc(groups, func(a, b string) int { return strings.Compare(b, a) })
	return groups
}

func groupName(group string) string {
	role, transport, _ := strings.Cut(group, "/")
	if role != "" {
		role = strings.ToUpper(role[:1]) + role[1:]
	}
	return role + "s over " + transportName(transport)
}

// row shows a run; up leads from the page to the folder of the site.
func (e siteEntry) row(up string) siteRow {
	word := func(v SiteVerdict) siteWord {
		if v.Verdict == "" {
			return siteWord{}
		}
		return siteWord{Word: verdictName(v.Verdict), Class: verdictClass(v.Verdict), Counts: line(v.Counts, limitName)}
	}
	return siteRow{
		Version: line(e.Run.Target.Version, limitName), Tool: line(e.Run.Tool.Version, limitName),
		Report: up + e.report, Date: timestamp(e.Run.Started, "2006-01-02 15:04"),
		Core: word(e.Core), Extended: word(e.Extended), Verified: e.Verified,
	}
}

// verdictClass is the class of style of a verdict.
func verdictClass(v result.Overall) string {
	switch v {
	case result.Conformant, result.Incomplete:
		return string(v)
	}
	return string(result.NotConformant)
}

// differs tells whether the outcomes of a row differ.
func (m *matrix) differs(row matrixRow) bool {
	var seen []outcome
	for i, q := range row.cells {
		o := outcome("")
		if q != nil {
			o = m.views[i].outcome(q)
		}
		seen = append(seen, o)
	}
	return len(slices.Compact(seen)) > 1
}

// siteComparison compares runs: first what one of them breaks, then where they differ else.
func siteComparison(runs []*result.Run, names []string) ([]siteTable, error) {
	m, err := newMatrix(runs)
	if err != nil {
		return nil, err
	}
	rest := m.table("Other differences", names, func(row matrixRow) bool { return !m.broken(row) && m.remarkable(row) })
	rest.Folded = true
	return []siteTable{m.table("Broken or not followed by one of them", names, m.broken), rest}, nil
}

// table shows some rows.
func (m *matrix) table(title string, names []string, show func(matrixRow) bool) siteTable {
	t := siteTable{Title: title, Names: names}
	for _, row := range m.rows {
		if !show(row) {
			continue
		}
		q := siteRequirement{ID: line(row.any.ID, limitName), Level: strings.Join(grade(row.any), ", "),
			URL: row.of.link(row.any)}
		for i, r := range row.cells {
			c := siteCell{Of: names[i]}
			if r != nil {
				o := m.views[i].outcome(r)
				c = siteCell{names[i], string(o), told[o].mark, told[o].label}
			}
			q.Cells = append(q.Cells, c)
		}
		t.Rows = append(t.Rows, q)
	}
	return t
}

// add renders the page by a template and adds it to the files.
func (p sitePage) add(files []SiteFile, name, file string) ([]SiteFile, error) {
	p.Policy, p.Style = sitePolicy, template.CSS(siteStyle)
	var b bytes.Buffer
	if err := siteTemplate().ExecuteTemplate(&b, name, p); err != nil {
		return nil, fmt.Errorf("write %s: %w", path.Base(file), err)
	}
	return append(files, SiteFile{file, b.Bytes()}), nil
}
