package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// MaxDepth is how deep arrays and objects may nest. RFC 8259 section 9 lets a
// reader set such a limit.
const MaxDepth = 512

// MaxValues is how many values one text may hold. Decoded, a small value takes
// many times the bytes that it took on the wire.
const MaxValues = 1 << 20

// MaxDecoded is how many bytes the values of one text may take in memory.
const MaxDecoded = 128 << 20

// maxIssues bounds the issues kept for one text.
const maxIssues = 32

// ErrDepth reports a text that nests deeper than MaxDepth: legal JSON that this
// reader declines.
var ErrDepth = errors.New("nested deeper than " + strconv.Itoa(MaxDepth) + " levels")

// ErrValues reports a text with more than MaxValues values: legal JSON that this
// reader declines.
var ErrValues = errors.New("more than " + strconv.Itoa(MaxValues) + " values in one text")

// ErrDecoded reports a text whose values take more than MaxDecoded bytes: legal JSON that
// this reader declines.
var ErrDecoded = errors.New("decoded, more than " + strconv.Itoa(MaxDecoded>>20) + " MiB in one text")

// SyntaxError reports a text that is not JSON as RFC 8259 defines it.
type SyntaxError struct {
	Offset int // bytes before the offending one
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON: %s at byte %d", e.Reason, e.Offset)
}

// Decode reads one JSON text. Objects become map[string]any, arrays []any and
// numbers json.Number with their spelling kept.
//
// Faults that do not prevent reading are returned as issues: duplicate member
// names (the last one counts), bytes that are not UTF-8 and escaped surrogates
// without their other half (both read as U+FFFD), a byte order mark. Anything
// else that is not JSON is a *SyntaxError; too deep nesting is ErrDepth, too
// many values are ErrValues or ErrDecoded.
func Decode(raw []byte) (any, []Issue, error) {
	d := decoder{raw: string(raw)}
	v, err := d.decode()
	return v, d.issues, err
}

// spelling is room for strings with escapes, for the next text.
var spelling = sync.Pool{New: func() any {
	b := make([]byte, 0, 512)
	return &b
}}

// maxSpelling is how much room is kept.
const maxSpelling = 64 << 10

func (d *decoder) decode() (any, error) {
	defer func() {
		if d.spelt != nil && cap(d.spelt) <= maxSpelling {
			b := d.spelt[:0]
			spelling.Put(&b)
		}
	}()
	if strings.HasPrefix(d.raw, "\xEF\xBB\xBF") {
		d.issue(ByteOrderMark, "the text starts with a byte order mark")
		d.pos = 3
	}
	d.space()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	d.space()
	if d.pos < len(d.raw) {
		return nil, d.fail("there is more after the end of the value")
	}
	return v, nil
}

type decoder struct {
	raw    string // strings and numbers of the value are parts of it
	pos    int
	values int       // read so far
	weight int       // of them in memory, beside the text
	spelt  []byte    // room for a string with escapes
	path   []segment // down to the value being read
	issues []Issue

	// Of a message:
	members map[string]any // room for the members of the whole text; nil makes it
	said    *said          // objects that were decoded before; nil for none
	shared  int            // the part of the weight that such objects have
	payload string         // the spelling of its params or result, if that is an object without a fault
}

// These are the sizes of decoded values in memory, beside the text that strings and numbers share. A map has groups
// of eight places and fills seven of them before it grows.
const (
	mapWeight   = 48
	groupWeight = 288
	groupFill   = 7
	sliceWeight = 24
	itemWeight  = 16
	textWeight  = 16

	sharedWeight = 48 // what a trace holds of an object to find it again
)

// mostShared is how long an object may be to be looked for among those of a trace. Each byte is looked at once for
// each object around it. The params and the result of a message may have any length.
const mostShared = 4 << 10

// segment is one step down into a value.
type segment struct {
	name  string
	index int // in an array; -1 for a member
}

func (d *decoder) fail(reason string) error {
	return &SyntaxError{Offset: d.pos, Reason: reason}
}

func (d *decoder) issue(code IssueCode, detail string) {
	if len(d.issues) < maxIssues {
		d.issues = append(d.issues, Issue{Code: code, Pointer: pointer(d.path), Detail: detail})
	}
}

// maxPointerName is how many characters of a member name a pointer shows.
const maxPointerName = 100

func pointer(path []segment) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		if p.index >= 0 {
			b.WriteString(strconv.Itoa(p.index))
		} else if name, shortened := firstRunes(p.name, maxPointerName); shortened {
			b.WriteString(pointerEscaper.Replace(name) + "…")
		} else {
			b.WriteString(pointerEscaper.Replace(name))
		}
	}
	return b.String()
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func (d *decoder) space() {
	for d.pos < len(d.raw) {
		switch d.raw[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *decoder) value(depth int) (any, error) {
	if d.pos == len(d.raw) {
		return nil, d.fail("the text ends where a value is due")
	}
	if d.values++; d.values > MaxValues {
		return nil, ErrValues
	}
	if d.weight > MaxDecoded {
		return nil, ErrDecoded
	}
	switch c := d.raw[d.pos]; c {
	case '{':
		return d.object(depth + 1)
	case '[':
		return d.array(depth + 1)
	case '"':
		d.weight += textWeight
		return d.str()
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			d.weight += textWeight
			return d.number()
		}
		return nil, d.fail(fmt.Sprintf("unexpected %q", d.peekRune()))
	}
}

func (d *decoder) peekRune() rune {
	r, _ := utf8.DecodeRuneInString(d.raw[d.pos:])
	return r
}

func (d *decoder) literal(word string) error {
	if !strings.HasPrefix(d.raw[d.pos:], word) {
		return d.fail("unknown word")
	}
	d.pos += len(word)
	return nil
}

func (d *decoder) object(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrDepth
	}
	from, faults, weight, shared := d.pos, len(d.issues), d.weight, d.shared
	members := d.members
	if depth > 1 || members == nil {
		members = make(map[string]any)
	}
	if err := d.readMembers(members, depth); err != nil {
		return nil, err
	}
	d.weight += mapWeight + (len(members)+groupFill-1)/groupFill*groupWeight
	if d.said == nil || depth == 1 || depth > 2 && d.pos-from > mostShared || len(d.issues) > faults {
		return members, nil
	}
	known := d.said.share(d.raw[from:d.pos], members)
	if known == nil {
		d.weight += sharedWeight
		return members, nil
	}
	d.shared = shared + d.weight - weight
	return known, nil
}

// readMembers reads an object from its opening bracket on.
func (d *decoder) readMembers(members map[string]any, depth int) error {
	d.pos++
	d.space()
	if d.eat('}') {
		return nil
	}
	for {
		d.space()
		if d.pos == len(d.raw) || d.raw[d.pos] != '"' {
			return d.fail("a member name is due")
		}
		name, err := d.str()
		if err != nil {
			return err
		}
		d.space()
		if !d.eat(':') {
			return d.fail("a colon is due")
		}
		d.path = append(d.path, segment{name, -1})
		if _, seen := members[name]; seen {
			d.issue(DuplicateMember, fmt.Sprintf("member %s occurs more than once", Quote(name, 60)))
		}
		d.space()
		if depth == 1 && (name == "params" || name == "result") {
			members[name], err = d.content()
		} else {
			members[name], err = d.value(depth)
		}
		if err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
		d.space()
		if d.eat('}') {
			return nil
		}
		if !d.eat(',') {
			return d.fail("a comma or } is due")
		}
	}
}

// content reads the params or the result of a message. Equal bytes are not decoded again.
func (d *decoder) content() (any, error) {
	if d.said == nil || d.pos == len(d.raw) || d.raw[d.pos] != '{' {
		return d.value(1)
	}
	from, faults := d.pos, len(d.issues)
	end := d.objectEnd()
	if v := d.said.find(d.raw[from:end]); v != nil {
		d.pos, d.payload = end, d.raw[from:end]
		return v, nil
	}
	v, err := d.value(1)
	if err == nil && len(d.issues) == faults {
		d.payload = d.raw[from:d.pos]
	}
	return v, err
}

// objectEnd returns where the object ends that begins at d.pos, as far as its brackets tell.
func (d *decoder) objectEnd() int {
	open := 0
	for at := d.pos; at < len(d.raw); at++ {
		switch d.raw[at] {
		case '{':
			open++
		case '}':
			open--
		case '"':
			at = d.closing(at + 1)
		}
		if open == 0 {
			return at + 1
		}
	}
	return len(d.raw)
}

func (d *decoder) array(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrDepth
	}
	d.pos++
	items := []any{}
	defer func() { d.weight += sliceWeight + cap(items)*itemWeight }()
	d.space()
	if d.eat(']') {
		return items, nil
	}
	for {
		d.space()
		d.path = append(d.path, segment{index: len(items)})
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		items = append(items, v)
		d.space()
		if d.eat(']') {
			return items, nil
		}
		if !d.eat(',') {
			return nil, d.fail("a comma or ] is due")
		}
	}
}

func (d *decoder) eat(c byte) bool {
	if d.pos < len(d.raw) && d.raw[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) number() (any, error) {
	start := d.pos
	d.eat('-')
	if !d.eat('0') && !d.digits() {
		return nil, d.fail("a digit is due")
	}
	if d.eat('.') && !d.digits() {
		return nil, d.fail("a digit is due after the point")
	}
	if d.eat('e') || d.eat('E') {
		if !d.eat('+') {
			d.eat('-')
		}
		if !d.digits() {
			return nil, d.fail("a digit is due in the exponent")
		}
	}
	return json.Number(d.raw[start:d.pos]), nil
}

func (d *decoder) digits() bool {
	start := d.pos
	for d.pos < len(d.raw) && d.raw[d.pos] >= '0' && d.raw[d.pos] <= '9' {
		d.pos++
	}
	return d.pos > start
}

func (d *decoder) str() (string, error) {
	d.pos++
	start := d.pos
	ascii := true
	for d.pos < len(d.raw) {
		switch c := d.raw[d.pos]; {
		case c == '"':
			s := d.text(start, d.pos, ascii)
			d.pos++
			return s, nil
		case c == '\\':
			return d.escaped(start)
		case c < 0x20:
			return "", d.fail(fmt.Sprintf("unescaped control character 0x%02X in a string", c))
		case c >= utf8.RuneSelf:
			ascii = false
		}
		d.pos++
	}
	return "", d.fail("the text ends inside a string")
}

// text returns the bytes from start to end as UTF-8.
func (d *decoder) text(start, end int, ascii bool) string {
	s := d.raw[start:end]
	if ascii || utf8.ValidString(s) {
		return s
	}
	d.issue(InvalidUTF8, fmt.Sprintf("bytes %d to %d are not UTF-8", start, end))
	return strings.ToValidUTF8(s, "\uFFFD")
}

// escaped reads on in a string whose first escape stands at d.pos.
func (d *decoder) escaped(start int) (string, error) {
	long := d.closing(d.pos) - start // at least as long as what it spells
	b := d.spelt[:0]
	switch {
	case long > maxSpelling:
		b = make([]byte, 0, long)
	case b == nil:
		b = *spelling.Get().(*[]byte)
	}
	for d.pos < len(d.raw) {
		switch c := d.raw[d.pos]; {
		case c == '"':
			b = append(b, d.text(start, d.pos, false)...)
			d.pos++
			if long > maxSpelling && cap(b)-len(b) < long/4 {
				d.weight += cap(b)
				return unsafe.String(unsafe.SliceData(b), len(b)), nil // it is not written to again
			}
			if long <= maxSpelling {
				d.spelt = b
			}
			d.weight += len(b)
			return string(b), nil
		case c == '\\':
			b = append(b, d.text(start, d.pos, false)...)
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
			start = d.pos
		case c < 0x20:
			return "", d.fail(fmt.Sprintf("unescaped control character 0x%02X in a string", c))
		default:
			d.pos++
		}
	}
	return "", d.fail("the text ends inside a string")
}

// closing returns where a string ends of which the rest begins at a position.
func (d *decoder) closing(at int) int {
	for ; at < len(d.raw); at++ {
		switch d.raw[at] {
		case '"':
			return at
		case '\\':
			at++
		}
	}
	return len(d.raw)
}

var simpleEscapes = [256]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

func (d *decoder) escape() (rune, error) {
	d.pos++
	if d.pos == len(d.raw) {
		return 0, d.fail("the text ends inside an escape")
	}
	c := d.raw[d.pos]
	if r := simpleEscapes[c]; r != 0 {
		d.pos++
		return r, nil
	}
	if c != 'u' {
		return 0, d.fail(fmt.Sprintf("unknown escape \\%c", d.peekRune()))
	}
	d.pos++
	r, err := d.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if d.pos+1 < len(d.raw) && d.raw[d.pos] == '\\' && d.raw[d.pos+1] == 'u' {
		mark := d.pos
		d.pos += 2
		low, err := d.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
		d.pos = mark
	}
	d.issue(LoneSurrogate, fmt.Sprintf("\\u%04X lacks its other half", r))
	return utf8.RuneError, nil
}

func (d *decoder) hex4() (rune, error) {
	if d.pos+4 > len(d.raw) {
		return 0, d.fail("the text ends inside an escape")
	}
	n, err := strconv.ParseUint(d.raw[d.pos:d.pos+4], 16, 16)
	if err != nil {
		return 0, d.fail("four hexadecimal digits are due")
	}
	d.pos += 4
	return rune(n), nil
}

// Quote returns s in double quotes for a message, at most max characters of it.
func Quote(s string, max int) string {
	if cut, shortened := firstRunes(s, max); shortened {
		return strconv.Quote(cut) + "…"
	}
	return strconv.Quote(s)
}

// firstRunes returns the first n characters of s and whether there are more.
func firstRunes(s string, n int) (string, bool) {
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}
