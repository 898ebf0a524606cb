package reporters

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/mcpconform/mcpconform/suites/result"
)

// Bounds, in bytes of the original, on what a report repeats of one text. The
// whole is in results.json and in the trace.
const (
	limitName    = 200      // names, identifiers
	limitMessage = 2 << 10  // messages, reasons
	limitEvent   = 8 << 10  // one event in a document
	limitBrief   = 320      // messages, reasons at the console
	limitScan    = 64 << 10 // one event that is searched for its telling part
)

// Bounds on how much a document shows of one requirement.
const (
	limitFindings = 20
	limitEvents   = 40
)

// line returns s as one line of printable characters. Bytes that are not UTF-8 and characters that are not printed as
// themselves (controls, formats, bidirectional overrides, separators, noncharacters) are written as escapes. The
// middle is left out if s is longer than limit bytes.
func line(s string, limit int) string {
	head, tail := middle(s, limit)
	if head == tail {
		return clean(s)
	}
	return fmt.Sprintf(cutMark, clean(s[:head]), tail-head, clean(s[tail:]))
}

const cutMark = "%s …[%d bytes]… %s"

// middle returns where the part of s begins and ends that is left out, since s is longer than limit
// bytes, between words if there are any near. Both are the same if nothing is: what is left out is
// longer than the mark in its place.
func middle(s string, limit int) (head, tail int) {
	if len(s) <= limit+min(limit/4, 2*len(cutMark)) {
		return 0, 0
	}
	const near = 16
	head, tail = boundary(s, limit*3/4), boundary(s, len(s)-limit/4)
	if i := strings.LastIndexByte(s[:head], ' '); i > head-near && i > 0 {
		head = i
	}
	if i := strings.IndexByte(s[tail:], ' '); i >= 0 && i < near && tail+i+1 < len(s) {
		tail += i + 1
	}
	return head, tail
}

// text is line for what may have several lines: line feeds are kept.
func text(s string) string {
	if head, tail := middle(s, limitEvent); head < tail {
		s = fmt.Sprintf(cutMark, s[:head], tail-head, s[tail:])
	}
	lines := strings.Split(s, "\n")
	for i, one := range lines {
		lines[i] = clean(one)
	}
	return strings.Join(lines, "\n")
}

// boundary returns the start of the character of s that byte at belongs to.
func boundary(s string, at int) int {
	for i := 0; i < utf8.UTFMax && at > 0 && at < len(s) && !utf8.RuneStart(s[at]); i++ {
		at--
	}
	return at
}

// maxStacked bounds the combining marks on one character: no writing system
// needs more, and thousands of them paint over the lines above.
const maxStacked = 4

func clean(s string) string {
	clear := true
	for i := 0; i < len(s) && clear; i++ {
		clear = ' ' <= s[i] && s[i] <= '~'
	}
	if clear {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	stacked := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if cells(r) == 0 {
			stacked++
		} else {
			stacked = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case printable(r) && stacked <= maxStacked:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// printable tells whether r may be shown as itself. unicode.IsPrint leaves out
// every control (Cc), format (Cf, with the bidirectional controls), surrogate,
// private and unassigned character and every space but the ASCII one. The
// fillers below are letters or marks that nevertheless show nothing.
func printable(r rune) bool {
	switch r {
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0:
		return false
	}
	return unicode.IsPrint(r)
}

// columns is the number of terminal cells that a line of printable characters takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// first returns the start of s that fits into n columns.
func first(s string, n int) string {
	for i, r := range s {
		if n -= cells(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// last returns the end of s that fits into n columns.
func last(s string, n int) string {
	at := len(s)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		if n -= cells(r); n < 0 {
			break
		}
		at -= size
	}
	return s[at:]
}

// excerpt fits a text into n columns, as one line of printable characters. It keeps the beginning, which names the
// kind of the message, and the part that the finding names, or else the end.
func excerpt(text string, n int, message string) string {
	before, named, after := line(text, limitScan), "", ""
	if len(text) <= limitScan {
		if from, to, ok := result.Named(text, message); ok {
			before, named, after = clean(text[:from]), clean(text[from:to]), clean(text[to:])
		}
	}
	s := before + named + after
	if columns(s) <= n {
		return s
	}
	if n < 8 {
		return first(s, n)
	}
	// Every message begins with the same member. A message with another first member shows it.
	const usual = `{"jsonrpc":"2.0",`
	if rest, ok := strings.CutPrefix(before, usual); ok {
		before = "{…" + rest
	} else if rest, ok := strings.CutPrefix(s, usual); ok && named == "" {
		before = "{…" + rest
	}
	s = before + named + after
	if columns(s) <= n {
		return s
	}
	head := first(s, n*2/3)
	tail := last(s, n-1-columns(head))
	at := len(before)
	if named == "" || at+len(named) <= len(head) || at >= len(s)-len(tail) {
		return head + "…" + tail
	}
	short := first(s, n*2/5)
	room := n - columns(short) - 2
	// The text before the name tells its place, and the text after it is the value.
	at = max(at, len(short))
	lead := last(s[len(short):at], room/4)
	if len(lead) == at-len(short) {
		return first(s, n-1) + "…"
	}
	return short + "…" + first(s[at-len(lead):], room) + "…"
}

// wrap breaks a line of printable characters into lines of at most n columns,
// of which the first has used columns less.
func wrap(s string, n, used int) []string {
	n = max(n, 8)
	room := max(n-used, 0)
	var lines []string
	var current strings.Builder
	left := room
	for _, word := range strings.Fields(s) {
		size := columns(word)
		if left < room && size+1 <= left {
			current.WriteString(" " + word)
			left -= size + 1
			continue
		}
		if left < room || size > room && room < n {
			lines = append(lines, current.String())
			current.Reset()
			room = n
		}
		for size > room {
			part := first(word, room)
			lines = append(lines, part)
			word = word[len(part):]
			size = columns(word)
			room = n
		}
		current.WriteString(word)
		left = room - size
	}
	if current.Len() > 0 || len(lines) == 0 {
		lines = append(lines, current.String())
	}
	return lines
}

// Line returns a text of a target or a file as one line of printable characters, of
// which a long one loses its middle.
func Line(s string) string { return line(s, limitMessage) }
