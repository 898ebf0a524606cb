package transport

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// needles are texts that are looked for in other texts, however those write
// them: as they are, or with JSON escapes, percent-encoded, HTML-escaped, or
// all of these in turn. Each character may be written in its own way.
//
// A search takes time in proportion to the text and to the needles that begin
// with the same character, and only the memory of the result.
type needles struct {
	byFirst [256][]string
	// begins has the first characters of needles and of escapes; all others are
	// skipped.
	begins [256]bool
	// torn says that texts break off: at their ends the beginning of a needle is enough.
	torn bool
}

// ofTorn returns the needles for texts that break off.
func (n *needles) ofTorn() *needles {
	torn := *n
	torn.torn = true
	return &torn
}

// maxEscapes is how often text is taken to be escaped, one time within the other:
// JSON in a string of JSON twice.
const maxEscapes = 2

// shortestCut is how much of a needle has to stand before an ellipsis to be
// taken for its beginning. At the end of a text that breaks off, it is shortestSecret.
const shortestCut = 4

func newNeedles(texts []string) *needles {
	n := new(needles)
	for _, t := range texts {
		n.byFirst[t[0]] = append(n.byFirst[t[0]], t)
		n.begins[t[0]] = true
	}
	for _, c := range escapes {
		n.begins[c] = true
	}
	return n
}

// escapes are the characters with which an escape begins.
var escapes = []byte{'\\', '%', '&'}

func isEscape(c byte) bool { return c == '\\' || c == '%' || c == '&' }

// replaceAll returns text with each occurrence of a needle replaced, or false if
// there is none.
func replaceAll[T string | []byte](n *needles, text T, with string) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i < len(text); i++ {
		if !n.begins[text[i]] {
			continue
		}
		end := find(n, text, i)
		if end < 0 {
			continue
		}
		// Escapes are not cut in two: what is JSON stays JSON.
		begin := i
		for begin > done && text[begin-1] == '\\' {
			begin--
		}
		begin = i - (i-begin)%2
		if begin < i && strings.IndexByte(shortEscapes, text[i]) < 0 {
			begin = i
		}
		out = append(append(out, text[done:begin]...), with...)
		done, i = end, end-1
	}
	if done == 0 {
		return nil, false
	}
	return append(out, text[done:]...), true
}

// find returns where the longest needle ends that begins at i, or -1.
func find[T string | []byte](n *needles, text T, i int) int {
	end := -1
	if !isEscape(text[i]) {
		for _, needle := range n.byFirst[text[i]] {
			end = max(end, match(text, i, needle, n.torn))
		}
		return end
	}
	if text[i] == '\\' && i+1 < len(text) {
		// By far the most escapes are simple ones.
		if meaning := shortMeanings[text[i+1]]; meaning != 0 && meaning != '\\' && len(n.byFirst['\\'])+
			len(n.byFirst[meaning]) == 0 {
			return -1
		}
	}
	var tried [maxEscapes + 1]byte
	for level := range maxEscapes + 1 {
		first := decode(text, i, level).bytes[0]
		if slices.Contains(tried[:level], first) {
			tried[level] = first
			continue
		}
		tried[level] = first
		for _, needle := range n.byFirst[first] {
			end = max(end, match(text, i, needle, n.torn))
		}
	}
	return end
}

// state is how far a comparison has come.
type state struct{ text, needle int }

// match returns where the needle ends that begins at i, or -1. If the text breaks off with an ellipsis, the beginning
// of the needle is enough.
func match[T string | []byte](text T, i int, needle string, torn bool) int {
	var open []state // other ways to read what was passed
	var seen map[state]bool
	at := state{text: i}
	for {
		end, forks := compare(text, &at, needle, torn)
		if end >= 0 {
			return end
		}
		for _, f := range forks {
			if !seen[f] {
				if seen == nil {
					seen = make(map[state]bool)
				}
				seen[f] = true
				open = append(open, f)
			}
		}
		if len(open) == 0 {
			return -1
		}
		at, open = open[len(open)-1], open[:len(open)-1]
	}
}

// compare goes on from a state up to the end, or to where there are several ways
// to go on, or none. The last of the ways is the one to try first.
func compare[T string | []byte](text T, at *state, needle string, torn bool) (end int, forks []state) {
	for at.needle < len(needle) {
		if at.text >= len(text) {
			if torn && at.needle >= shortestSecret {
				return len(text), nil
			}
			return -1, nil
		}
		c := text[at.text]
		if !isEscape(c) {
			if c != needle[at.needle] {
				return cut(text, *at, torn), nil
			}
			at.text++
			at.needle++
			continue
		}
		rest := needle[at.needle:]
		var ways [maxEscapes + 1]state
		n := 0
		for level := range maxEscapes + 1 {
			t := decode(text, at.text, level)
			if next := (state{at.text + t.width, at.needle + t.size}); strings.HasPrefix(rest,
				string(t.bytes[:t.size])) && !slices.Contains(ways[:n], next) {
				ways[n] = next
				n++
			}
		}
		switch n {
		case 0:
			return cut(text, *at, torn), nil
		case 1:
			*at = ways[0]
		default:
			return -1, slices.Clone(ways[:n])
		}
	}
	// A backslash that was taken for itself may be half of an escape.
	end = at.text
	if end < len(text) && needle[len(needle)-1] == '\\' && text[end-1] == '\\' && unpaired(text, end-1) &&
		strings.IndexByte(shortEscapes, text[end]) >= 0 {
		end++
	}
	return end, nil
}

// unpaired reports whether the backslash at i is the first one of a pair.
func unpaired[T string | []byte](text T, i int) bool {
	n := 0
	for i > n && text[i-n-1] == '\\' {
		n++
	}
	return n%2 == 0
}

var (
	// halfEscape is what is left at the end of a text that breaks off within an escape.
	halfEscape = regexp.MustCompile(
		`^(?:\\+(?:u[0-9A-Fa-f]{0,4})?|[%&])[#;0-9A-Za-z]{0,12}`) // of one within another, as well
	// brokenOff is what follows the beginning of a text that a message has cut: half
	// an escape, quotation marks and the ellipsis.
	brokenOff = regexp.MustCompile(`^((?:\\+u[0-9A-Fa-f]{0,3}|(?:\\\\)+|%[0-9A-Fa-f]?|&#?[0-9A-Za-z]{0,8})?)(?:\\?")?…`)
)

// cut returns where the text was cut, as messages that quote a long text are:
// after the beginning of a needle an ellipsis follows. Else it returns -1.
func cut[T string | []byte](text T, at state, torn bool) int {
	const longest = 20
	if at.needle < shortestCut {
		return -1
	}
	rest := string(text[at.text:min(len(text), at.text+longest)])
	if c := rest[0]; !isEscape(c) && c != '"' && c != "…"[0] {
		return -1
	}
	if torn && at.needle >= shortestSecret && at.text+len(halfEscape.FindString(rest)) == len(text) {
		return len(text)
	}
	half := brokenOff.FindStringSubmatch(rest)
	if half == nil {
		return -1
	}
	return at.text + len(half[1])
}

// token is a character as some text writes it: its bytes in UTF-8, or one byte
// of them, and how many bytes of the text it takes.
type token struct {
	bytes       [utf8.UTFMax]byte
	size, width int
}

func (t token) ascii() (byte, bool) { return t.bytes[0], t.size == 1 && t.bytes[0] < utf8.RuneSelf }

// shortEscapes are the characters that may follow a backslash in JSON.
const shortEscapes = `"\/bfnrtu`

var shortMeanings = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decode reads the character at i of a text that was escaped so many times. Any other character stands for itself.
func decode[T string | []byte](text T, i, level int) token {
	if level == 0 {
		return token{bytes: [utf8.UTFMax]byte{text[i]}, size: 1, width: 1}
	}
	first := decode(text, i, level-1)
	c, ok := first.ascii()
	if !ok || !isEscape(c) {
		return first
	}
	r := reader[T]{text: text, at: i + first.width, level: level - 1}
	var value rune
	switch c {
	case '\\':
		value, ok = r.backslash()
	case '%':
		value, ok = r.hex(2)
		value |= oneByte
	case '&':
		value, ok = r.entity()
	}
	if !ok {
		return first
	}
	t := token{width: r.at - i}
	if value&oneByte != 0 {
		t.bytes[0], t.size = byte(value), 1
	} else {
		t.size = utf8.EncodeRune(t.bytes[:], value)
	}
	return t
}

// oneByte marks a value that is a byte, not a character.
const oneByte = 1 << 24

// reader reads the rest of an escape.
type reader[T string | []byte] struct {
	text      T
	at, level int
}

func (r *reader[T]) next() (byte, bool) {
	if r.at >= len(r.text) {
		return 0, false
	}
	t := decode(r.text, r.at, r.level)
	r.at += t.width
	return t.ascii()
}

func (r *reader[T]) hex(digits int) (value rune, ok bool) {
	for range digits {
		c, ok := r.next()
		switch {
		case !ok:
			return 0, false
		case '0' <= c && c <= '9':
			value = value<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			value = value<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			value = value<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return value, true
}

// backslash reads what follows one: JSON's escapes, and \xHH, as reports write
// bytes that are not UTF-8.
func (r *reader[T]) backslash() (rune, bool) {
	c, ok := r.next()
	switch {
	case !ok:
		return 0, false
	case c == 'x':
		value, ok := r.hex(2)
		return value | oneByte, ok
	case c != 'u':
		return rune(shortMeanings[c]), shortMeanings[c] != 0
	}
	value, ok := r.hex(4)
	if !ok || value < 0xd800 || value > 0xdbff {
		return value, ok
	}
	if c, ok := r.next(); !ok || c != '\\' {
		return 0, false
	}
	if c, ok := r.next(); !ok || c != 'u' {
		return 0, false
	}
	low, ok := r.hex(4)
	return (value-0xd800)<<10 + low - 0xdc00 + 0x10000, ok && low >= 0xdc00 && low <= 0xdfff
}

var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// entity reads a character reference of HTML, such as lt; or #x3c; behind its
// ampersand.
func (r *reader[T]) entity() (rune, bool) {
	const longest = 10 // &#x0010ffff; is the longest that anybody writes
	var name [longest]byte
	for n := range name {
		c, ok := r.next()
		switch {
		case !ok:
			return 0, false
		case c == ';':
			return character(string(name[:n]))
		case c != '#' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z'):
			return 0, false
		}
		name[n] = c
	}
	return 0, false
}

// character returns what a character reference stands for.
func character(name string) (rune, bool) {
	number, numeric := strings.CutPrefix(name, "#")
	if !numeric {
		value, ok := entities[name]
		return value, ok
	}
	base := 10
	if len(number) > 0 && (number[0] == 'x' || number[0] == 'X') {
		number, base = number[1:], 16
	}
	value, err := strconv.ParseUint(number, base, 21)
	return rune(value), err == nil && value <= utf8.MaxRune
}
