package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// A page is one page of the specification.
type page struct {
	name string // path below the revision's folder without extension
	text string
}

// A specification is what the command needs of a checkout.
type specification struct {
	pages       []page
	types       string // schema.ts
	occurrences []source.Keyword
	anchors     map[string]map[string]bool // by page
}

// legacy is the one page of another revision that binds: the HTTP+SSE transport.
const legacy = "2024-11-05/basic/transports"

func readSpecification(checkout string) (*specification, error) {
	s := &specification{anchors: map[string]map[string]bool{}}
	root := filepath.Join(checkout, "docs", "specification", schema.DefaultVersion)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".mdx") {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return s.add(strings.TrimSuffix(filepath.ToSlash(name), ".mdx"), file)
	})
	if err != nil {
		return nil, err
	}
	if err := s.add(legacy, filepath.Join(checkout, "docs", "specification",
		filepath.FromSlash(legacy)+".mdx")); err != nil {
		return nil, err
	}
	types, err := os.ReadFile(filepath.Join(checkout, "schema", schema.DefaultVersion, "schema.ts"))
	if err != nil {
		return nil, err
	}
	s.types = string(types)

	slices.SortFunc(s.pages, func(a, b page) int { return strings.Compare(a.name, b.name) })
	for _, p := range s.pages {
		// The page "schema" renders schema.ts, whose comments are counted at
		// their source; the legacy page stands outside the revision.
		if p.name != "schema" && p.name != legacy {
			s.occurrences = append(s.occurrences, pageOccurrences(p)...)
		}
	}
	s.occurrences = append(s.occurrences, typeOccurrences(s.types)...)
	if len(s.occurrences) == 0 {
		return nil, fmt.Errorf("no keyword found below %s", root)
	}
	return s, nil
}

func (s *specification) add(name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p := page{name, string(text)}
	s.pages = append(s.pages, p)
	anchors := map[string]bool{"": true}
	for _, section := range sections(p.text) {
		anchors[section.anchor] = true
	}
	s.anchors[name] = anchors
	return nil
}

// The keywords of RFC 2119, longer ones first.
var keywords = regexp.MustCompile(
	`\b(MUST NOT|MUST|SHALL NOT|SHALL|REQUIRED|SHOULD NOT|SHOULD|NOT RECOMMENDED|RECOMMENDED|MAY|OPTIONAL)\b`)

// level returns the level that a keyword stands for.
func level(keyword string) schema.Level {
	switch keyword {
	case "MUST", "SHALL", "REQUIRED":
		return schema.Must
	case "MUST NOT", "SHALL NOT":
		return schema.MustNot
	case "SHOULD", "RECOMMENDED":
		return schema.Should
	case "SHOULD NOT", "NOT RECOMMENDED":
		return schema.ShouldNot
	}
	return schema.May
}

type section struct{ anchor, text string }

var heading = regexp.MustCompile(`^#{1,6}\s+(.*)`)

// sections splits a page at its headings, leaving out those within code fences.
func sections(text string) []section {
	var list []section
	var body strings.Builder
	anchor, fence, seen := "", false, slugs{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if m := heading.FindStringSubmatch(line); m != nil && !fence {
			list = append(list, section{anchor, body.String()})
			body.Reset()
			anchor = seen.next(m[1])
			continue
		}
		body.WriteString(line)
		body.WriteByte('\n')
	}
	return append(list, section{anchor, body.String()})
}

var (
	markup    = regexp.MustCompile("[`*]")
	link      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	separator = regexp.MustCompile(`[^a-z0-9:/&-]+`)
	dashes    = regexp.MustCompile(`-+`)
)

// slugs counts the headings of a page that have the same words.
type slugs map[string]int

// next returns the anchor that the documentation site gives to the next heading: a second
// one of the same words has a number.
func (s slugs) next(title string) string {
	title = markup.ReplaceAllString(strings.TrimSpace(title), "")
	title = link.ReplaceAllString(title, "$1")
	title = separator.ReplaceAllString(strings.ToLower(title), "-")
	anchor := strings.Trim(dashes.ReplaceAllString(title, "-"), "-")
	s[anchor]++
	if n := s[anchor]; n > 1 {
		anchor += "-" + strconv.Itoa(n)
	}
	return anchor
}

// A counter numbers keywords within their sections.
type counter map[source.Keyword]int

func (c counter) next(page, anchor, keyword string) source.Keyword {
	key := source.Keyword{Page: page, Anchor: anchor, Keyword: keyword}
	c[key]++
	key.N = c[key]
	return key
}

func pageOccurrences(p page) []source.Keyword {
	var list []source.Keyword
	count := counter{}
	for _, section := range sections(p.text) {
		for _, keyword := range keywords.FindAllString(section.text, -1) {
			list = append(list, count.next(p.name, section.anchor, keyword))
		}
	}
	return list
}

var declaration = regexp.MustCompile(`(?m)^export (interface|type|const) (\w+)`)

// typeOccurrences finds the keywords in the comments of schema.ts. A comment
// belongs to the declaration that encloses it or else follows it.
func typeOccurrences(text string) []source.Keyword {
	declarations := declaration.FindAllStringSubmatchIndex(text, -1)
	name := func(d []int) string { return strings.ToLower(text[d[4]:d[5]]) }
	var list []source.Keyword
	count := counter{}
	for _, at := range keywords.FindAllStringIndex(text, -1) {
		next := 0
		for next < len(declarations) && declarations[next][0] < at[0] {
			next++
		}
		anchor := ""
		if next > 0 {
			d := declarations[next-1]
			end := ";"
			if text[d[2]:d[3]] == "interface" {
				end = "\n}"
			}
			if length := strings.Index(text[d[0]:], end); length >= 0 && d[0]+length > at[0] {
				anchor = name(d)
			}
		}
		if anchor == "" && next < len(declarations) {
			anchor = name(declarations[next])
		}
		list = append(list, count.next("schema", anchor, text[at[0]:at[1]]))
	}
	return list
}

// phraseLength is the number of words from which on a common run counts as copied.
const phraseLength = 8

var (
	word = regexp.MustCompile(`[\pL\pN]+`)
	// A path or address is a name, not wording: it parts what is around it.
	path = regexp.MustCompile(`\S*/\S*`)
)

// phrases returns all runs of phraseLength words in the specification.
func (s *specification) phrases() map[string]bool {
	set := map[string]bool{}
	add := func(text string) {
		for _, phrase := range runs(text) {
			set[phrase] = true
		}
	}
	for _, p := range s.pages {
		add(p.text)
	}
	add(s.types)
	return set
}

func runs(text string) []string {
	var list []string
	for _, part := range path.Split(strings.ToLower(text), -1) {
		words := word.FindAllString(part, -1)
		for i := 0; i+phraseLength <= len(words); i++ {
			list = append(list, strings.Join(words[i:i+phraseLength], " "))
		}
	}
	return list
}
