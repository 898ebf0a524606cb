package main

import (
	"html"
	"regexp"
	"strings"
)

// A block is a stretch of a page as its readers see it: a heading, a paragraph, an
// item of a list, a cell of a table, or the lines of a code fence.
type block struct {
	anchor string // of the heading that it is, or that it stands below
	text   string // with single spaces, without markup
	code   bool
}

var (
	fenceLine = regexp.MustCompile("^\\s*```(\\w*)")
	itemLine  = regexp.MustCompile(`^\s*(?:[-*:]|\d+\.)\s+`)
	blockTag  = regexp.MustCompile(`</?(?:p|div|section|ul|ol|li|br|[A-Z]\w*)\b[^>]*>`)
	inlineTag = regexp.MustCompile(`</?[a-z]\w*\b[^>]*>`)
	emphasis  = regexp.MustCompile(`\*+|\b_|_\b`)
	tableRule = regexp.MustCompile(`^\|[\s|:-]*\|$`)
)

// blocks returns what the readers of a page see, without diagrams.
func blocks(text string) []block {
	if _, rest, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n"); ok &&
		strings.HasPrefix(text, "---\n") {
		text = rest
	}
	var b blockReader
	fence, seen := false, slugs{}
	for line := range strings.SplitSeq(text, "\n") {
		if m := fenceLine.FindStringSubmatch(line); m != nil {
			b.end(fence)
			if fence = !fence; fence {
				b.language = m[1]
			}
			continue
		}
		if fence {
			b.open = append(b.open, line)
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			b.end(false)
			b.anchor = seen.next(m[1])
			b.single(m[1])
			continue
		}
		for i, part := range strings.Split(blockTag.ReplaceAllString(line, "\n"), "\n") {
			if i > 0 || strings.TrimSpace(part) == "" {
				b.end(false)
			}
			b.read(part)
		}
	}
	b.end(fence)
	return b.list
}

// blockReader collects the blocks of a page.
type blockReader struct {
	list             []block
	open             []string // lines of the block that is read
	anchor, language string
}

// end ends the block that is read, which may be code. Diagrams are left out.
func (b *blockReader) end(code bool) {
	content := strings.Join(b.open, " ")
	if !code {
		content = plain(content)
	}
	if content = strings.Join(strings.Fields(content), " "); content != "" && !(code && b.language == "mermaid") {
		b.list = append(b.list, block{b.anchor, content, code})
	}
	b.open = nil
}

// single adds a block of one text.
func (b *blockReader) single(text string) {
	b.open = []string{text}
	b.end(false)
}

// read takes in a part of a line outside code.
func (b *blockReader) read(part string) {
	switch {
	case strings.TrimSpace(part) == "", tableRule.MatchString(part):
	case strings.HasPrefix(part, "|"):
		for cell := range strings.SplitSeq(strings.Trim(part, "| "), " | ") {
			b.single(cell)
		}
	case itemLine.MatchString(part):
		b.end(false)
		b.open = []string{itemLine.ReplaceAllString(part, "")}
	default:
		b.open = append(b.open, part)
	}
}

// plain takes the markup out of a text. Text in backticks stays as it is.
func plain(text string) string {
	text = link.ReplaceAllString(text, "$1")
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		part := inlineTag.ReplaceAllString(parts[i], "")
		parts[i] = strings.ReplaceAll(emphasis.ReplaceAllString(part, ""), `\`, "")
	}
	return html.UnescapeString(strings.Join(parts, ""))
}

// A position is a place in the blocks of a page.
type position struct{ block, offset int }

// A passage is what a text fragment finds on a page.
type passage struct {
	start, end position
	anchor     string // of the heading above its start
	sentences  string // that it is in, in full
}

// find looks for a text as a browser does that follows it as a text fragment: for
// the first occurrence of the first words, and the next one of the last. It says
// what is missing.
func find(blocks []block, before, text string) (*passage, string) {
	terms := strings.Split(text, " … ")
	if len(terms) > 2 {
		return nil, "has more than a beginning and an end"
	}
	start, ok := search(blocks, position{}, terms[0], before)
	if !ok {
		return nil, `begins with words that the page does not have: "` + terms[0] + `"`
	}
	end := position{start.block, start.offset + len(terms[0])}
	if len(terms) == 2 {
		last, ok := search(blocks, end, terms[1], "")
		if !ok {
			return nil, `ends with words that do not follow: "` + terms[1] + `"`
		}
		end = position{last.block, last.offset + len(terms[1])}
	}
	return &passage{start, end, blocks[start.block].anchor, sentences(blocks, start, end)}, ""
}

// search returns where whole words first occur within one block at or after a place, behind
// other words if before is not "".
func search(blocks []block, from position, words, before string) (position, bool) {
	pattern := regexp.MustCompile(`(?i)` + boundary(words, true) + regexp.QuoteMeta(words) + boundary(words, false))
	for i := from.block; i < len(blocks); i++ {
		for _, at := range pattern.FindAllStringIndex(blocks[i].text, -1) {
			if i == from.block && at[0] < from.offset {
				continue
			}
			lead := strings.TrimSpace(blocks[i].text[:at[0]])
			if lead == "" && i > 0 {
				lead = blocks[i-1].text
			}
			if strings.HasSuffix(strings.ToLower(lead), strings.ToLower(before)) {
				return position{i, at[0]}, true
			}
		}
	}
	return position{}, false
}

// boundary is the pattern of a word's end where words begin or end with a letter or a digit.
func boundary(words string, first bool) string {
	edge := words[:1]
	if !first {
		edge = words[len(words)-1:]
	}
	if word.MatchString(edge) {
		return `\b`
	}
	return ""
}

var sentenceEnd = regexp.MustCompile(`[.!?]["')]*\s+`)

// sentences returns a passage, extended to the sentences that it begins and ends in.
func sentences(blocks []block, start, end position) string {
	first, last := 0, len(blocks[end.block].text)
	for _, at := range sentenceEnd.FindAllStringIndex(blocks[start.block].text, -1) {
		if at[1] <= start.offset {
			first = at[1]
		}
	}
	for _, at := range sentenceEnd.FindAllStringIndex(blocks[end.block].text, -1) {
		if at[0] >= end.offset {
			last = at[1]
			break
		}
	}
	if start.block == end.block {
		return blocks[start.block].text[first:last]
	}
	parts := []string{blocks[start.block].text[first:]}
	for _, b := range blocks[start.block+1 : end.block] {
		parts = append(parts, b.text)
	}
	return strings.Join(append(parts, blocks[end.block].text[:last]), " ")
}
