package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// A report is what a comparison found.
type report struct {
	gaps  []string
	pages map[string]*pageCount
}

type pageCount struct {
	occurrences, covered, excused, requirements, observable int
}

func (r *report) gap(format string, args ...any) {
	r.gaps = append(r.gaps, fmt.Sprintf(format, args...))
}

func (r *report) page(name string) *pageCount {
	if r.pages[name] == nil {
		r.pages[name] = &pageCount{}
	}
	return r.pages[name]
}

func reconcile(spec *specification, dir string) (*report, error) {
	requirements, err := source.Requirements(dir)
	if err != nil {
		return nil, err
	}
	coverages, err := source.Coverages(dir)
	if err != nil {
		return nil, err
	}
	r := &report{pages: map[string]*pageCount{}}
	r.coverage(spec, requirements, coverages)
	r.places(spec, requirements)
	r.texts(spec, requirements)
	r.wording(spec, requirements)
	return r, nil
}

// coverage matches the occurrences of keywords with the lines that cover them.
func (r *report) coverage(spec *specification, requirements []schema.Requirement, coverages []source.Coverage) {
	levels := map[string]schema.Level{}
	for _, req := range requirements {
		if _, twice := levels[req.ID]; twice {
			r.gap("%s occurs twice in the catalogue", req.ID)
		}
		levels[req.ID] = req.Level
	}
	lines := map[source.Keyword]source.Coverage{}
	seen := map[string][]schema.Level{} // levels of the occurrences that cover an id
	for _, c := range coverages {
		if _, twice := lines[c.Key()]; twice {
			r.gap("%s is covered by two lines", c.Key())
		}
		lines[c.Key()] = c
		switch {
		case len(c.IDs) == 0 && strings.TrimSpace(c.Reason) == "":
			r.gap("%s: its line names neither ids nor a reason", c.Key())
		case len(c.IDs) > 0 && c.Reason != "":
			r.gap("%s: its line names both ids and a reason", c.Key())
		}
		for _, id := range c.IDs {
			if _, ok := levels[id]; !ok {
				r.gap("%s: the catalogue has no %s", c.Key(), id)
			}
			seen[id] = append(seen[id], level(c.Keyword))
		}
	}
	for _, occurrence := range spec.occurrences {
		count := r.page(occurrence.Page)
		count.occurrences++
		line, ok := lines[occurrence]
		switch {
		case !ok:
			r.gap("%s is not covered", occurrence)
		case len(line.IDs) > 0:
			count.covered++
		default:
			count.excused++
		}
		delete(lines, occurrence)
	}
	for _, c := range coverages {
		if _, left := lines[c.Key()]; left {
			r.gap("%s: the specification has no such keyword", c.Key())
		}
	}
	for _, req := range requirements {
		count := r.page(req.Page)
		count.requirements++
		if req.Observable {
			count.observable++
		}
		if s := seen[req.ID]; req.Basis == schema.ByKeyword && !slices.ContainsFunc(s, req.Level.AsStrongAs) {
			r.gap("%s rests on a keyword as %s, but the keywords that it covers say %v", req.ID, req.Level,
				slices.Compact(slices.Sorted(slices.Values(s))))
		}
	}
}

// places checks that every page and anchor of the catalogue exists.
func (r *report) places(spec *specification, requirements []schema.Requirement) {
	for _, req := range requirements {
		for _, place := range append([]schema.Source{{Page: req.Page, Anchor: req.Anchor}}, req.Sources...) {
			anchors, ok := spec.anchors[place.Page]
			switch {
			case !ok:
				r.gap("%s: there is no page %s", req.ID, place.Page)
			case !anchors[place.Anchor]:
				r.gap("%s: page %s has no heading with the anchor %q", req.ID, place.Page, place.Anchor)
			}
		}
	}
}

// texts checks that the words of an entry lead to a sentence in its section. If that sentence has a keyword, it has
// to be the entry's level.
func (r *report) texts(spec *specification, requirements []schema.Requirement) {
	seen := map[string][]block{}
	for _, p := range spec.pages {
		seen[p.name] = blocks(p.text)
	}
	for _, req := range requirements {
		for i, place := range append([]schema.Source{req.Place()}, req.Sources...) {
			if place.Text == "" || !spec.anchors[place.Page][place.Anchor] {
				continue
			}
			found, missing := find(seen[place.Page], place.Lead, place.Text)
			switch {
			case missing != "":
				r.gap("%s: its text on page %s %s", req.ID, place.Page, missing)
			case found.anchor != place.Anchor:
				r.gap("%s: its text %q leads to the section %q of page %s, not to %q", req.ID, place.Text, found.anchor,
					place.Page, place.Anchor)
			case i == 0 && req.Basis == schema.ByKeyword && !says(found.sentences, req.Level):
				r.gap("%s: the sentence does not have the keyword %s: %q", req.ID, req.Level, found.sentences)
			}
		}
	}
}

// says reports whether a text has a keyword as strong as a level: what a list under MUST
// forbids is a MUST NOT.
func says(text string, l schema.Level) bool {
	return slices.ContainsFunc(keywords.FindAllString(text, -1), func(k string) bool { return l.AsStrongAs(level(k)) })
}

// wording checks that the catalogue is in words of its own.
func (r *report) wording(spec *specification, requirements []schema.Requirement) {
	phrases := spec.phrases()
	for _, req := range requirements {
		for _, text := range []string{req.Summary, req.How, req.Violation} {
			if i := slices.IndexFunc(runs(text), func(run string) bool { return phrases[run] }); i >= 0 {
				r.gap("%s shares the words %q with the specification", req.ID, runs(text)[i])
			}
		}
	}
}

func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "%-32s %8s %8s %8s %8s %10s\n", "page", "keywords", "covered", "excused", "entries", "observable")
	line := func(name string, c pageCount) {
		fmt.Fprintf(out, "%-32s %8d %8d %8d %8d %10d\n", name, c.occurrences, c.covered, c.excused, c.requirements,
			c.observable)
	}
	var total pageCount
	for _, name := range slices.Sorted(maps.Keys(r.pages)) {
		c := *r.pages[name]
		line(name, c)
		total.occurrences += c.occurrences
		total.covered += c.covered
		total.excused += c.excused
		total.requirements += c.requirements
		total.observable += c.observable
	}
	line("total", total)
	for _, g := range r.gaps {
		fmt.Fprintln(out, "gap:", g)
	}
	fmt.Fprintf(out, "%d gaps\n", len(r.gaps))
}

// writeHeadings writes the anchors of each page, in the order of the text.
func writeHeadings(dir string, pages []page) error {
	var b strings.Builder
	b.WriteString("# The headings of each page of the specification, as the addresses of the site name them.\n" +
		"# Written by: go run ./schema/reconcile -write CHECKOUT\n")
	for _, p := range pages {
		fmt.Fprintf(&b, "- page: %s\n  anchors: [", p.name)
		for i, section := range sections(p.text)[1:] { // the first one has no heading
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", section.anchor)
		}
		b.WriteString("]\n")
	}
	return os.WriteFile(filepath.Join(dir, source.HeadingsFile), []byte(b.String()), 0o644)
}

// writeCounts writes how often each keyword occurs in each section, in the
// order of the text.
func writeCounts(dir string, occurrences []source.Keyword) error {
	var order []source.Keyword
	counts := map[source.Keyword]int{}
	for _, o := range occurrences {
		o.N = 0
		if counts[o] == 0 {
			order = append(order, o)
		}
		counts[o]++
	}
	var b strings.Builder
	b.WriteString("# Capital keywords of RFC 2119 in each section of the specification.\n" +
		"# Written by: go run ./schema/reconcile -write CHECKOUT\n")
	for _, o := range order {
		fmt.Fprintf(&b, "- {page: %s, anchor: %q, keyword: %s, count: %d}\n", o.Page, o.Anchor, o.Keyword, counts[o])
	}
	return os.WriteFile(filepath.Join(dir, source.OccurrencesFile), []byte(b.String()), 0o644)
}
