package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema/internal/source"
)

const pageText = "The client **MUST** read.\n\n## `First` [part](x.mdx), *of* two!\n\nIt MUST NOT, MUST and MUST.\n" +
	"See a/b/c/d/e/f/g/h/i.\n```json\n# no heading MAY\n```\nNOT RECOMMENDED, OPTIONAL, MAYBE, MUSTARD.\n# Last_one\nSHALL REQUIRED\n"

const typesText = `// MUST before
export const X = "MUST";

/** A comment that SHOULD belong to the next. */
export interface Foo extends Bar {
  /** It MAY be inside. */
  a: string;
}

/* MAY belong to the next as well. */
export type Baz =
  | "a" // MAY inside
  | "b";

export interface Last {
  b: string; // SHALL
}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	docs := filepath.Join(root, "docs", "specification")
	write(t, filepath.Join(docs, "2025-06-18", "basic", "index.mdx"), pageText)
	write(t, filepath.Join(docs, "2025-06-18", "schema.mdx"), "# Foo\nMUST\n")
	write(t, filepath.Join(docs, "2024-11-05", "basic", "transports.mdx"), "# Old\nMUST\n")
	write(t, filepath.Join(root, "schema", "2025-06-18", "schema.ts"), typesText)
	return root
}

func TestOccurrences(t *testing.T) {
	spec, err := readSpecification(checkout(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range spec.occurrences {
		got = append(got, o.String())
	}
	want := []string{
		"basic/index# MUST 1",
		"basic/index#first-part-of-two MUST NOT 1",
		"basic/index#first-part-of-two MUST 1",
		"basic/index#first-part-of-two MUST 2",
		"basic/index#first-part-of-two MAY 1",
		"basic/index#first-part-of-two NOT RECOMMENDED 1",
		"basic/index#first-part-of-two OPTIONAL 1",
		"basic/index#last-one SHALL 1",
		"basic/index#last-one REQUIRED 1",
		"schema#x MUST 1",
		"schema#x MUST 2",
		"schema#foo SHOULD 1",
		"schema#foo MAY 1",
		"schema#baz MAY 1",
		"schema#baz MAY 2",
		"schema#last SHALL 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("occurrences (-want +got):\n%s", diff)
	}
}

const entry = "- {id: base.read, level: MUST, basis: keyword, party: client, page: basic/index, anchor: last-one, text: SHALL REQUIRED, summary: Clients look at it., observable: false, how: It is inside.}\n"

// covered returns a coverage file for all occurrences of the checkout.
func covered(t *testing.T, root string) string {
	t.Helper()
	spec, err := readSpecification(root)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range spec.occurrences {
		b.WriteString(line(o))
	}
	return b.String()
}

func line(o source.Keyword) string {
	return "- {page: " + o.Page + ", anchor: " + o.Anchor + `, keyword: ` + o.Keyword + ", n: " + string(rune('0'+o.N)) + ", ids: [base.read]}\n"
}

func TestReconcile(t *testing.T) {
	root := checkout(t)
	full := covered(t, root)
	firstLine, rest, _ := strings.Cut(full, "\n")
	for name, test := range map[string]struct {
		requirements, coverage string
		want                   string
		gaps                   int
	}{
		"complete":        {entry, full, "0 gaps", 0},
		"excused":         {entry, strings.Replace(firstLine, "ids: [base.read]", "reason: boilerplate", 1) + "\n" + rest, "0 gaps", 0},
		"uncovered":       {entry, rest, "basic/index# MUST 1 is not covered", 1},
		"covered twice":   {entry, full + firstLine + "\n", "is covered by two lines", 1},
		"no such keyword": {entry, full + line(source.Keyword{Page: "basic/index", Anchor: "x", Keyword: "MAY", N: 1}), "has no such keyword", 1},
		"unknown id":      {entry, strings.Replace(firstLine, "base.read", "'?base.write'", 1) + "\n" + rest, "the catalogue has no ?base.write", 1},
		"neither":         {entry, strings.Replace(firstLine, "ids: [base.read]", "ids: []", 1) + "\n" + rest, "neither ids nor a reason", 1},
		"both":            {entry, strings.Replace(firstLine, "}", ", reason: x}", 1) + "\n" + rest, "both ids and a reason", 1},
		"id twice":        {entry + entry, full, "base.read occurs twice", 1},
		"no such page":    {strings.Replace(entry, "page: basic/index", "page: basic/none", 1), full, "there is no page basic/none", 1},
		"no such anchor":  {strings.Replace(entry, "last-one", "first", 1), full, `no heading with the anchor "first"`, 1},
		"no such source":  {strings.Replace(entry, "observable", "sources: [{page: schema, anchor: bar}], observable", 1), full, `page schema has no heading with the anchor "bar"`, 1},
		"legacy source":   {strings.Replace(entry, "observable", "sources: [{page: 2024-11-05/basic/transports, anchor: old}], observable", 1), full, "0 gaps", 0},
		"copied words":    {strings.Replace(entry, "Clients look at it.", "A comment that should belong to the Next.", 1), full, "shares the words", 1},
		"seven words":     {strings.Replace(entry, "Clients look at it.", "Comment that should belong to the Next.", 1), full, "0 gaps", 0},
		"a shared path":   {strings.Replace(entry, "Clients look at it.", "See a/b/c/d/e/f/g/h/i.", 1), full, "0 gaps", 0},
		"uncovered level": {strings.Replace(strings.Replace(entry, "text: SHALL REQUIRED, ", "", 1), "MUST", "SHOULD", 1), regexp.MustCompile(`((?:SHOULD|RECOMMENDED), n: 1), ids: \[base.read\]`).ReplaceAllString(full, "$1, reason: x"), "rests on a keyword as SHOULD", 1},
		"other keyword":   {strings.Replace(entry, "SHALL REQUIRED", "Last_one", 1), full, `does not have the keyword MUST: "Last_one"`, 1},
		"other section":   {strings.Replace(entry, "SHALL REQUIRED", "See … i", 1), full, `leads to the section "first-part-of-two"`, 1},
		"statement":       {strings.Replace(strings.Replace(entry, "SHALL REQUIRED", "Last_one", 1), "keyword", "statement", 1), full, "0 gaps", 0},
		"no such words":   {strings.Replace(entry, "SHALL", "SHALL be", 1), full, "begins with words that the page does not have", 1},
		"no such end":     {strings.Replace(entry, "SHALL REQUIRED", "SHALL … the client", 1), full, "ends with words that do not follow", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, source.RequirementsFile), test.requirements)
			write(t, filepath.Join(dir, source.CoverageFile), test.coverage)
			var out bytes.Buffer
			gaps, err := run([]string{"-dir", dir, root}, &out)
			if err != nil {
				t.Fatal(err)
			}
			if gaps != test.gaps || !strings.Contains(out.String(), test.want) {
				t.Errorf("got %d gaps, want %d and %q in:\n%s", gaps, test.gaps, test.want, out.String())
			}
		})
	}
}

func TestWrite(t *testing.T) {
	root, dir := checkout(t), t.TempDir()
	write(t, filepath.Join(dir, source.RequirementsFile), entry)
	write(t, filepath.Join(dir, source.CoverageFile), "[]\n")
	var out bytes.Buffer
	if _, err := run([]string{"-dir", dir, "-write", root}, &out); err != nil {
		t.Fatal(err)
	}
	counts, err := source.Counts(dir)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, c := range counts {
		total += c.Count
	}
	want := source.Count{Page: "basic/index", Anchor: "first-part-of-two", Keyword: "MUST", Count: 2}
	if total != 16 || len(counts) < 3 || counts[2] != want {
		t.Errorf("got %d keywords in %v", total, counts)
	}
	headings, err := source.AllHeadings(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages := []source.Headings{
		{Page: "2024-11-05/basic/transports", Anchors: []string{"old"}},
		{Page: "basic/index", Anchors: []string{"first-part-of-two", "last-one"}},
		{Page: "schema", Anchors: []string{"foo"}},
	}
	if diff := cmp.Diff(pages, headings); diff != "" {
		t.Errorf("headings (-want +got):\n%s", diff)
	}
}

func TestAnchors(t *testing.T) {
	seen := slugs{}
	for _, tt := range []struct{ title, want string }{
		{"`_meta`", "meta"}, {"Trust & Safety", "trust-&-safety"}, {"file://", "file://"}, {"Mitigation", "mitigation"}, {"Mitigation", "mitigation-2"},
	} {
		if got := seen.next(tt.title); got != tt.want {
			t.Errorf("%s has the anchor %q, want %q", tt.title, got, tt.want)
		}
	}
}

func TestBlocks(t *testing.T) {
	page := "---\ntitle: x\n---\nAll **MUST** see [this](y) `a_b`,\nand <b>that</b> &amp; _more_.\n\n<Note>\n\nNoted.\n\n</Note>\n\n## One\n\n" +
		"- Item\n  goes on\n  1. Nested\n\n| A | `B` |\n| --- | :-: |\n| 1 | 2 |\n\n```json\n{ \"a\": 1 }\n```\n```mermaid\nx->>y\n```\n<p>Said.</p> <p>Again.</p>\n"
	want := []block{
		{"", "All MUST see this a_b, and that & more.", false}, {"", "Noted.", false}, {"one", "One", false},
		{"one", "Item goes on", false}, {"one", "Nested", false}, {"one", "A", false}, {"one", "B", false}, {"one", "1", false}, {"one", "2", false},
		{"one", `{ "a": 1 }`, true}, {"one", "Said.", false}, {"one", "Again.", false},
	}
	if diff := cmp.Diff(want, blocks(page), cmp.AllowUnexported(block{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	page := blocks("# One\nServers SHOULD:\n- be kind. Or quick (e.g. soon).\n\n# Two\nServers SHOULD:\n- rest\n- be kind\n")
	for _, tt := range []struct{ lead, text, want string }{
		{"", "Servers SHOULD … be kind", "Servers SHOULD: be kind. "},
		{"Two", "Servers SHOULD … be kind", "Servers SHOULD: rest be kind"},
		{"", "or quick", "Or quick (e.g. "},
		{"", "servers should … quick", "Servers SHOULD: be kind. Or quick (e.g. "},
		{"Three", "Servers SHOULD … be kind", ""},
		{"", "Server", ""},
		{"", "Servers SHOULD … kin", ""},
		{"", "a … b … c", ""},
	} {
		found, missing := find(page, tt.lead, tt.text)
		if found == nil != (missing != "") || found == nil != (tt.want == "") || found != nil && found.sentences != tt.want {
			t.Errorf("%s: got %+v, %q, want %q", tt.text, found, missing, tt.want)
		}
	}
}

func TestRunFails(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{{}, {t.TempDir()}, {"a", "b"}, {"-dir", t.TempDir(), checkout(t)}} {
		if _, err := run(args, &out); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
