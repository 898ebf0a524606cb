package schema

import (
	"cmp"
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
	// Property is the one member that is missing at the place, if the keyword is
	// "required" and no other would do instead.
	Property string `json:"property,omitempty"`
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

func (s segment) compare(o segment) int {
	return cmp.Or(strings.Compare(s.name, o.name), cmp.Compare(s.index, o.index))
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
	return "not a JSON value"
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
