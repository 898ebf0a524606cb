package schema

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Violation is one place where a value breaks its schema.
type Violation struct {
	// Pointer is the JSON pointer (RFC 6901) of the offending place, "" for the
	// whole value. A missing member is reported at the object that lacks it. A
	// pointer longer than 1000 bytes is cut and ends in "…".
	Pointer string `json:"pointer"`
	// Message says in plain words what is wrong; values in it are shortened.
	Message string `json:"message"`
	// Keyword is the JSON Schema keyword that failed, or [Undecided].
	Keyword string `json:"keyword"`
}

// String returns the pointer, if any, and the message.
func (v Violation) String() string {
	if v.Pointer == "" {
		return v.Message
	}
	return v.Pointer + ": " + v.Message
}

// Undecided is the Keyword of the single violation by which [Tool.Validate]
// says that it gave up: the schema asks for more work than the value is worth.
const Undecided = "undecided"

const (
	maxViolations = 20
	maxPointer    = 1000
	maxShown      = 80 // runes of a value within a message
	maxListed     = 12 // alternatives within a message
)

// A segment is one step into a value: the name of a member or the index of an item.
type segment struct {
	name  string
	index int // valid if name is empty and item is set
	item  bool
}

func pointer(path []segment) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteByte('/')
		if s.item {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		name := cut(s.name, maxPointer)
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"))
		if b.Len() > maxPointer {
			break
		}
	}
	return cut(b.String(), maxPointer)
}

// subject names the end of the path as a message calls it.
func subject(path []segment) string {
	if len(path) == 0 {
		return "the value"
	}
	last := path[len(path)-1]
	if !last.item {
		return quote(last.name)
	}
	name := "item " + strconv.Itoa(last.index)
	if len(path) > 1 && !path[len(path)-2].item {
		name += " of " + quote(path[len(path)-2].name)
	}
	return name
}

// cut shortens s to at most n bytes plus an ellipsis, at a rune's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// quote shows a string in quotes, shortened and without control characters.
func quote(s string) string {
	const bytes = 4 * maxShown
	if len(s) > bytes {
		s = s[:bytes]
	} else if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	if r := []rune(s); len(r) > maxShown {
		return strconv.Quote(string(r[:maxShown])) + "…"
	}
	return strconv.Quote(s)
}

// show names a JSON value: scalars as they are, the rest by their type.
func show(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return quote(v)
	case json.Number:
		return cut(string(v), maxShown)
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return "no JSON value"
}

// list joins alternatives: "a", "b" or "c".
func list(items []string, last string) string {
	if len(items) > maxListed {
		items = append(slices.Clone(items[:maxListed]), "…")
	}
	switch len(items) {
	case 0:
		return "nothing"
	case 1:
		return items[0]
	}
	n := len(items) - 1
	return strings.Join(items[:n], ", ") + " " + last + " " + items[n]
}

// A leaf is a violation before the alternatives of a union are reduced. Its
// parts are kept apart so that the leaves of several branches can be merged.
type leaf struct {
	Violation
	depth  int      // length of the path to the value that was judged
	prefix string   // subject and value, as in `"type" is "x"`
	want   []string // what was allowed: types, constants or the missing member
}

func newLeaf(path []segment, keyword, message string) leaf {
	return leaf{Violation: Violation{pointer(path), message, keyword}, depth: len(path)}
}

func missing(path []segment, name string) leaf {
	l := newLeaf(path, "required", "member "+quote(name)+" is missing")
	l.want = []string{quote(name)}
	return l
}

func notAllowed(path []segment, keyword string, value any, want []string) leaf {
	l := newLeaf(path, keyword, "")
	l.prefix = subject(path) + " is " + show(value)
	l.want = want
	l.Message = l.prefix + ", not " + oneOf(keyword, want)
	return l
}

func oneOf(keyword string, want []string) string {
	if len(want) > 1 && keyword != "type" {
		return "one of " + list(want, "or")
	}
	return list(want, "or")
}

// reduce picks, from the leaves of the failed branches of a union judged at the
// given depth, those that tell what is wrong. A branch whose type does not fit or
// whose constant differs in a direct member was not meant. Of the others the one that
// misses the fewest members and then has the fewest leaves is closest; what
// several equally close ones agree on is kept and where they differ in one
// point each, this point becomes one leaf that names all alternatives.
func reduce(branches [][]leaf, depth int) []leaf {
	branches = slices.DeleteFunc(branches, func(b []leaf) bool { return len(b) == 0 })
	if len(branches) == 0 {
		return nil
	}
	excluded := func(b []leaf) int {
		return slices.IndexFunc(b, func(l leaf) bool {
			switch l.Keyword {
			case "type", "enum":
				return l.depth == depth
			case "const":
				return l.depth == depth || l.depth == depth+1
			}
			return false
		})
	}
	meant := slices.DeleteFunc(slices.Clone(branches), func(b []leaf) bool { return excluded(b) >= 0 })
	if len(meant) > 0 {
		branches = meant
	} else {
		// None was meant. What else is wrong with a branch says nothing then, and
		// a branch whose type does not fit is further away than one whose constant differs.
		deepest := depth
		for i, b := range branches {
			j := excluded(b)
			branches[i] = b[j : j+1]
			deepest = max(deepest, b[j].depth)
		}
		branches = slices.DeleteFunc(branches, func(b []leaf) bool { return b[0].depth < deepest })
	}
	type rank struct{ missing, leaves int }
	rankOf := func(b []leaf) (r rank) {
		for _, l := range b {
			if l.Keyword == "required" {
				r.missing++
			}
		}
		r.leaves = len(b)
		return r
	}
	less := func(a, b rank) bool {
		return a.missing < b.missing || a.missing == b.missing && a.leaves < b.leaves
	}
	best := rankOf(branches[0])
	for _, b := range branches[1:] {
		if r := rankOf(b); less(r, best) {
			best = r
		}
	}
	branches = slices.DeleteFunc(branches, func(b []leaf) bool { return rankOf(b) != best })
	return merge(branches)
}

func merge(branches [][]leaf) []leaf {
	first := branches[0]
	if len(branches) == 1 {
		return first
	}
	inAll := func(l leaf) bool {
		for _, b := range branches {
			if !slices.ContainsFunc(b, func(o leaf) bool { return o.Violation == l.Violation }) {
				return false
			}
		}
		return true
	}
	var common []leaf
	for _, l := range first {
		if inAll(l) {
			common = append(common, l)
		}
	}
	var merged leaf
	for i, b := range branches {
		rest := slices.DeleteFunc(slices.Clone(b), inAll)
		if len(rest) != 1 || len(rest[0].want) == 0 {
			return first
		}
		l := rest[0]
		if i == 0 {
			merged = l
			merged.want = slices.Clone(l.want)
			continue
		}
		sameKind := l.Keyword == merged.Keyword || isValue(l.Keyword) && isValue(merged.Keyword)
		if !sameKind || l.Pointer != merged.Pointer || l.prefix != merged.prefix {
			return first
		}
		for _, w := range l.want {
			if !slices.Contains(merged.want, w) {
				merged.want = append(merged.want, w)
			}
		}
	}
	switch {
	case merged.Keyword == "required" && len(merged.want) == 2:
		merged.Message = "neither " + merged.want[0] + " nor " + merged.want[1] + " is present; one of them is needed"
	case merged.Keyword == "required":
		merged.Message = "one of " + list(merged.want, "or") + " is needed; none is present"
	default:
		if isValue(merged.Keyword) && len(merged.want) > 1 {
			merged.Keyword = "enum"
		}
		merged.Message = merged.prefix + ", not " + oneOf(merged.Keyword, merged.want)
	}
	return append(common, merged)
}

func isValue(keyword string) bool { return keyword == "const" || keyword == "enum" }
