package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Bindings are the values of what was captured, by name.
type Bindings map[string]any

// Mismatch says where a value differs from a pattern.
type Mismatch struct {
	Path   string // JSON pointer
	Reason string
}

func (m *Mismatch) String() string {
	if m.Path == "" {
		return "the message " + m.Reason
	}
	return m.Path + " " + m.Reason
}

// A placeholder is a string that is ${…} as a whole.
var (
	placeholder = regexp.MustCompile(`(?s)^\$\{(.+)\}$`)
	captures    = regexp.MustCompile(`(?s)^([A-Za-z][A-Za-z0-9_]*)=(.*)$`)
	embedded    = regexp.MustCompile(`\$?\$\{[^{}]*\}`)
	name        = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// kinds are the placeholders that stand for any value of a kind.
var kinds = map[string]func(v any) bool{
	"any":     func(any) bool { return true },
	"string":  func(v any) bool { _, ok := v.(string); return ok },
	"boolean": func(v any) bool { _, ok := v.(bool); return ok },
	"object":  func(v any) bool { _, ok := v.(map[string]any); return ok },
	"array":   func(v any) bool { _, ok := v.([]any); return ok },
	"number":  func(v any) bool { _, ok := v.(json.Number); return ok },
	"integer": func(v any) bool { n, ok := rational(v); return ok && n.IsInt() },
}

// absent stands for a member that is not there, rest for further items.
const (
	absent = "${absent}"
	rest   = "${...}"
)

// The names of members that make an object a condition.
const (
	contains = "${contains}"
	oneOf    = "${oneof}"
	not      = "${not}"
)

// condition returns the condition that an object stands for.
func condition(pattern map[string]any) (kind string, operand any, ok bool) {
	if len(pattern) != 1 {
		return "", nil, false
	}
	for kind, operand := range pattern {
		return kind, operand, kind == contains || kind == oneOf || kind == not
	}
	return "", nil, false
}

// checkPattern returns what is wrong with the placeholders of a message or pattern.
func checkPattern(v any) error {
	switch v := v.(type) {
	case string:
		if v == absent || v == rest {
			return nil
		}
		m := placeholder.FindStringSubmatch(v)
		if m == nil {
			return nil
		}
		return checkPlaceholder(m[1])
	case []any:
		for i, item := range v {
			if item == rest && i != len(v)-1 {
				return fmt.Errorf("%s must be the last item of a list", rest)
			}
			if err := checkPattern(item); err != nil {
				return err
			}
		}
	case map[string]any:
		kind, operand, ok := condition(v)
		if _, list := operand.([]any); ok && kind != not && !list {
			return fmt.Errorf("%s takes a list", kind)
		}
		for _, member := range slices.Sorted(maps.Keys(v)) {
			if err := checkPattern(v[member]); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPlaceholder(text string) error {
	if m := captures.FindStringSubmatch(text); m != nil {
		if _, taken := kinds[m[1]]; taken || m[1] == "absent" {
			return fmt.Errorf("${%s}: %s names a kind of value, so that nothing can be captured under this name", text,
				m[1])
		}
		if text = m[2]; text == "" {
			return nil
		}
	}
	if expression, ok := between(text, "/"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return fmt.Errorf("${%s}: %w", text, err)
		}
		return nil
	}
	if !name.MatchString(text) {
		return fmt.Errorf("${%s} is not a kind of value, a name or a regular expression between slashes", text)
	}
	return nil
}

func between(text, mark string) (string, bool) {
	if len(text) < 2 || !strings.HasPrefix(text, mark) || !strings.HasSuffix(text, mark) {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// Match compares a value with a pattern. If the value fits, what the pattern
// captures is bound, and the mismatch is nil.
func (b Bindings) Match(pattern, v any) *Mismatch {
	trial := maps.Clone(b)
	if trial == nil {
		trial = make(Bindings)
	}
	if m := trial.match("", pattern, v); m != nil {
		return m
	}
	if b != nil {
		maps.Copy(b, trial)
	}
	return nil
}

func (b Bindings) match(at string, pattern, v any) *Mismatch {
	switch pattern := pattern.(type) {
	case string:
		return b.matchText(at, pattern, v)
	case json.Number:
		want, _ := rational(pattern)
		if n, ok := rational(v); !ok || want == nil || n.Cmp(want) != 0 {
			return &Mismatch{at, "is " + wire.Show(v) + ", not " + string(pattern)}
		}
		return nil
	case []any:
		return b.matchList(at, pattern, v)
	case map[string]any:
		if kind, operand, ok := condition(pattern); ok {
			return b.matchCondition(at, kind, operand, v)
		}
		object, ok := v.(map[string]any)
		if !ok {
			return &Mismatch{at, "is " + wire.TypeName(v) + ", not an object"}
		}
		for _, name := range slices.Sorted(maps.Keys(pattern)) {
			place := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			member, there := object[name]
			switch {
			case pattern[name] == absent && there:
				return &Mismatch{place, "is " + wire.Show(member) + ", but should be absent"}
			case pattern[name] == absent:
			case !there:
				return &Mismatch{place, "is missing"}
			default:
				if m := b.match(place, pattern[name], member); m != nil {
					return m
				}
			}
		}
		return nil
	}
	if pattern != v { // true, false and null
		return &Mismatch{at, "is " + wire.Show(v) + ", not " + wire.Show(pattern)}
	}
	return nil
}

func (b Bindings) matchText(at, pattern string, v any) *Mismatch {
	m := placeholder.FindStringSubmatch(pattern)
	if m == nil {
		want, err := b.Expand(pattern)
		if err != nil {
			return &Mismatch{at, "cannot be compared: " + err.Error()}
		}
		if v != want {
			return &Mismatch{at, "is " + wire.Show(v) + ", not " + wire.Show(want)}
		}
		return nil
	}
	text := m[1]
	if c := captures.FindStringSubmatch(text); c != nil {
		if c[2] != "" {
			if m := b.matchText(at, "${"+c[2]+"}", v); m != nil {
				return m
			}
		}
		b[c[1]] = v
		return nil
	}
	if is, ok := kinds[text]; ok {
		if !is(v) {
			return &Mismatch{at, "is " + wire.Show(v) + ", which is not of the kind " + text}
		}
		return nil
	}
	if expression, ok := between(text, "/"); ok {
		s, isText := v.(string)
		// Checked when the file was read; the expressions of Go take linear time.
		if !isText || !regexp.MustCompile(expression).MatchString(s) {
			return &Mismatch{at, "is " + wire.Show(v) + ", which does not match " + text}
		}
		return nil
	}
	want, ok := b[text]
	if !ok {
		return &Mismatch{at, "cannot be compared: nothing was captured as " + text}
	}
	if exact(want, v) {
		return nil
	}
	return &Mismatch{at, "is " + wire.Show(v) + ", not the captured " + wire.Show(want)}
}

func (b Bindings) matchList(at string, pattern []any, v any) *Mismatch {
	list, ok := v.([]any)
	if !ok {
		return &Mismatch{at, "is " + wire.TypeName(v) + ", not an array"}
	}
	open := len(pattern) > 0 && pattern[len(pattern)-1] == rest
	if open {
		pattern = pattern[:len(pattern)-1]
	}
	if len(list) < len(pattern) || len(list) > len(pattern) && !open {
		return &Mismatch{at, fmt.Sprintf("has %d items, not %d", len(list), len(pattern))}
	}
	for i, item := range pattern {
		if m := b.match(at+"/"+strconv.Itoa(i), item, list[i]); m != nil {
			return m
		}
	}
	return nil
}

func (b Bindings) matchCondition(at, kind string, operand, v any) *Mismatch {
	if kind == not {
		if maps.Clone(b).match(at, operand, v) == nil {
			return &Mismatch{at, "is " + wire.Show(v) + ", which the pattern excludes"}
		}
		return nil
	}
	patterns := operand.([]any) // checked when the file was read
	if kind == oneOf {
		var problems []string
		for _, p := range patterns {
			m := b.Match(p, v)
			if m == nil {
				return nil
			}
			problems = append(problems, m.String())
		}
		return &Mismatch{at, "does not fit any of the alternatives: " + strings.Join(problems, "; ")}
	}
	list, ok := v.([]any)
	if !ok {
		return &Mismatch{at, "is " + wire.TypeName(v) + ", not an array"}
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(list, func(item any) bool { return b.Match(p, item) == nil }) {
			return &Mismatch{at, "has no item like " + wire.Show(p)}
		}
	}
	return nil
}

// Expand returns a value with its placeholders replaced by what was captured.
func (b Bindings) Expand(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return b.expandText(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = b.Expand(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if object[name], err = b.Expand(member); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return v, nil
}

func (b Bindings) expandText(s string) (any, error) {
	if s == absent {
		return s, nil // for Complete
	}
	if m := placeholder.FindStringSubmatch(s); m != nil && name.MatchString(m[1]) {
		if v, ok := b[m[1]]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("nothing was captured as %s", m[1])
	}
	var missing error
	expanded := embedded.ReplaceAllStringFunc(s, func(part string) string {
		if strings.HasPrefix(part, "$$") {
			return part[1:] // written for ${…} itself
		}
		v, ok := b[part[2:len(part)-1]]
		if !ok {
			missing = fmt.Errorf("nothing was captured as %s", part[2:len(part)-1])
			return ""
		}
		if text, isText := v.(string); isText {
			return text
		}
		raw, _ := json.Marshal(v) // it was decoded from JSON
		return string(raw)
	})
	return expanded, missing
}

// rational reads a number exactly, unless it is of absurd size.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 64 {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(string(n)), "e"); ok && len(exponent) > 4 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// exact compares decoded JSON values, numbers by their value.
func exact(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		x, ok := rational(a)
		y, too := rational(b)
		return ok && too && x.Cmp(y) == 0
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, exact)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, exact)
	case string:
		other, ok := b.(string)
		return ok && a == other
	case bool:
		other, ok := b.(bool)
		return ok && a == other
	}
	return a == nil && b == nil
}
