package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The JSON types as a set. An integer is a number without a fractional part:
// 1.0 counts, as JSON Schema has it since draft-06.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
)

var typeNames = []struct {
	bit  types
	name string
	text string
}{
	{typeString, "string", "a string"},
	{typeNumber, "number", "a number"},
	{typeInteger, "integer", "an integer"},
	{typeBoolean, "boolean", "a boolean"},
	{typeArray, "array", "an array"},
	{typeObject, "object", "an object"},
	{typeNull, "null", "null"},
}

func (t types) words() []string {
	var words []string
	for _, n := range typeNames {
		if t&n.bit != 0 {
			words = append(words, n.text)
		}
	}
	return words
}

// A node is one compiled schema. A node with a target stands for another.
type node struct {
	target     *node
	types      types
	members    []member // sorted by name
	required   []string
	additional *node
	items      *node
	anyOf      []*node
	allowed    []string // const or enum; the revision has only strings there
	isConst    bool
	format     string
	check      func(string) string
	min, max   *float64

	// The member whose constant tells the branches of anyOf apart, if there is
	// one that every branch requires, and the branches by its values.
	discriminator string
	branches      map[string][]*node
	values        []string
}

type member struct {
	name string
	node *node
}

func (n *node) member(name string) *node {
	i, ok := slices.BinarySearchFunc(n.members, name, func(m member, name string) int { return strings.Compare(m.name, name) })
	if !ok {
		return nil
	}
	return n.members[i].node
}

func (n *node) parse(r *Revision, value any) error {
	object, ok := value.(map[string]any)
	if !ok {
		if value == true {
			return nil
		}
		return fmt.Errorf("%s is no schema", show(value))
	}
	child := func(value any) (*node, error) {
		c := new(node)
		return c, c.parse(r, value)
	}
	for keyword, value := range object {
		var err error
		ok := true
		switch keyword {
		case "description":
		case "$ref":
			ref, _ := value.(string)
			name, found := strings.CutPrefix(ref, "#/definitions/")
			n.target = r.definitions[name]
			ok = found && n.target != nil && len(object) == 1
		case "type":
			n.types, err = parseTypes(value)
		case "properties":
			var properties map[string]any
			properties, ok = value.(map[string]any)
			for name, value := range properties {
				c, err := child(value)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				n.members = append(n.members, member{name, c})
			}
			slices.SortFunc(n.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
		case "required":
			n.required, ok = texts(value)
		case "additionalProperties":
			n.additional, err = child(value)
		case "items":
			n.items, err = child(value)
		case "anyOf":
			var branches []any
			branches, ok = value.([]any)
			for _, value := range branches {
				c, err := child(value)
				if err != nil {
					return err
				}
				n.anyOf = append(n.anyOf, c)
			}
			ok = ok && len(branches) > 0
		case "const":
			var text string
			text, ok = value.(string)
			n.allowed, n.isConst = []string{text}, true
		case "enum":
			n.allowed, ok = texts(value)
		case "format":
			n.format, _ = value.(string)
			n.check, ok = formats[n.format]
		case "minimum":
			n.min, ok = bound(value)
		case "maximum":
			n.max, ok = bound(value)
		default:
			return fmt.Errorf("keyword %q is not known", keyword)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", keyword, err)
		}
		if !ok {
			return fmt.Errorf("keyword %q has a value that is not understood", keyword)
		}
	}
	return nil
}

func parseTypes(value any) (types, error) {
	names, ok := texts(value)
	if text, single := value.(string); single {
		names, ok = []string{text}, true
	}
	if !ok || len(names) == 0 {
		return 0, fmt.Errorf("%s names no type", show(value))
	}
	var set types
next:
	for _, name := range names {
		for _, n := range typeNames {
			if n.name == name {
				set |= n.bit
				continue next
			}
		}
		return 0, fmt.Errorf("%q is no type", name)
	}
	return set, nil
}

func texts(value any) ([]string, bool) {
	items, ok := value.([]any)
	if !ok {
		return nil, false
	}
	var list []string
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, false
		}
		list = append(list, text)
	}
	return list, true
}

func bound(value any) (*float64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return nil, false
	}
	f, err := number.Float64()
	return &f, err == nil
}

// resolve follows references to the node that says something. It returns nil
// if they go in a circle.
func (n *node) resolve() *node {
	for range 16 {
		if n.target == nil {
			return n
		}
		n = n.target
	}
	return nil
}

// link prepares the unions below n.
func (n *node) link() {
	for _, m := range n.members {
		m.node.link()
	}
	for _, c := range []*node{n.additional, n.items} {
		if c != nil {
			c.link()
		}
	}
	for _, c := range n.anyOf {
		c.link()
	}
	if len(n.anyOf) == 0 {
		return
	}
	for _, m := range n.anyOf[0].resolve().members {
		branches := map[string][]*node{}
		var values []string
		for _, branch := range n.anyOf {
			b := branch.resolve()
			c := b.member(m.name)
			if c == nil || len(c.allowed) == 0 || !slices.Contains(b.required, m.name) {
				branches = nil
				break
			}
			for _, value := range c.allowed {
				if branches[value] == nil {
					values = append(values, value)
				}
				branches[value] = append(branches[value], b)
			}
		}
		if len(branches) > len(n.branches) {
			n.discriminator, n.branches, n.values = m.name, branches, values
		}
	}
}

// Validate judges a decoded JSON value (map[string]any, []any, string,
// json.Number, float64, int, int64, bool, nil) against a definition. It returns
// nothing for a valid value and at most 20 violations otherwise, in the same order
// each time. The work is bounded by the size of the value. An unknown definition is a
// violation of the whole value.
func (r *Revision) Validate(def string, value any) []Violation {
	n := r.definitions[def]
	if n == nil {
		return []Violation{{Message: "the revision has no definition " + quote(def), Keyword: "definition"}}
	}
	c := collector{}
	c.judge(n, value)
	return violations(c.leaves)
}

func violations(leaves []leaf) []Violation {
	var list []Violation
	for _, l := range leaves {
		if len(list) == maxViolations {
			break
		}
		list = append(list, l.Violation)
	}
	return list
}

// A collector walks a value along a schema and gathers leaves until it is full.
type collector struct {
	path   []segment
	leaves []leaf
}

func (c *collector) full() bool { return len(c.leaves) >= maxViolations }

func (c *collector) add(l leaf) { c.leaves = append(c.leaves, l) }

func (c *collector) judge(n *node, value any) {
	n = n.resolve()
	if len(n.allowed) > 0 {
		text, ok := value.(string)
		if !ok || !slices.Contains(n.allowed, text) {
			c.add(notAllowed(c.path, n.valueKeyword(), value, quoteAll(n.allowed)))
			return
		}
	}
	if n.types != 0 && typesOf(value)&n.types == 0 {
		c.add(notAllowed(c.path, "type", value, n.types.words()))
		return
	}
	switch v := value.(type) {
	case map[string]any:
		c.object(n, v)
	case []any:
		if n.items == nil {
			break
		}
		for i, item := range v {
			if c.full() {
				return
			}
			c.path = append(c.path, segment{index: i, item: true})
			c.judge(n.items, item)
			c.path = c.path[:len(c.path)-1]
		}
	case string:
		if n.check == nil {
			break
		}
		if reason := n.check(v); reason != "" {
			c.add(newLeaf(c.path, "format", fmt.Sprintf("%s is %s, %s", subject(c.path), show(v), reason)))
		}
	default:
		c.bounds(n, value)
	}
	if len(n.anyOf) > 0 {
		c.union(n, value)
	}
}

func (n *node) valueKeyword() string {
	if n.isConst {
		return "const"
	}
	return "enum"
}

func quoteAll(texts []string) []string {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = quote(t)
	}
	return list
}

func (c *collector) object(n *node, object map[string]any) {
	for _, name := range n.required {
		if _, ok := object[name]; !ok && !c.full() {
			c.add(missing(c.path, name))
		}
	}
	for _, m := range n.members {
		if value, ok := object[m.name]; ok && !c.full() {
			c.member(m.node, m.name, value)
		}
	}
	if n.additional == nil || n.additional.resolve().trivial() {
		return
	}
	// The names come from the peer and their order is random: find the broken
	// ones first, so that only those need sorting.
	var broken []string
	for name, value := range object {
		if n.member(name) != nil {
			continue
		}
		probe := collector{}
		probe.judge(n.additional, value)
		if len(probe.leaves) > 0 {
			broken = append(broken, name)
		}
	}
	slices.Sort(broken)
	for _, name := range broken {
		if c.full() {
			return
		}
		c.member(n.additional, name, object[name])
	}
}

func (c *collector) member(n *node, name string, value any) {
	c.path = append(c.path, segment{name: name})
	c.judge(n, value)
	c.path = c.path[:len(c.path)-1]
}

// trivial reports whether the node accepts everything.
func (n *node) trivial() bool {
	return n.types == 0 && n.allowed == nil && n.members == nil && n.required == nil &&
		n.additional == nil && n.items == nil && n.anyOf == nil && n.check == nil && n.min == nil && n.max == nil
}

func (c *collector) bounds(n *node, value any) {
	if n.min == nil && n.max == nil {
		return
	}
	f, ok := float(value)
	if !ok {
		return
	}
	if n.min != nil && f < *n.min {
		c.add(newLeaf(c.path, "minimum", fmt.Sprintf("%s is %s, smaller than %s", subject(c.path), show(value), show(*n.min))))
	}
	if n.max != nil && f > *n.max {
		c.add(newLeaf(c.path, "maximum", fmt.Sprintf("%s is %s, larger than %s", subject(c.path), show(value), show(*n.max))))
	}
}

func (c *collector) union(n *node, value any) {
	candidates := n.anyOf
	object, isObject := value.(map[string]any)
	if n.discriminator != "" && isObject {
		tag, ok := object[n.discriminator]
		if !ok {
			l := missing(c.path, n.discriminator)
			if len(n.values) > 1 {
				l.Message += "; it is " + oneOf("enum", quoteAll(n.values))
			}
			c.add(l)
			return
		}
		text, _ := tag.(string)
		candidates = n.branches[text]
		if len(candidates) == 0 {
			keyword := "enum"
			if len(n.values) == 1 {
				keyword = "const"
			}
			c.add(notAllowed(append(c.path, segment{name: n.discriminator}), keyword, tag, quoteAll(n.values)))
			return
		}
	}
	failed := make([][]leaf, 0, len(candidates))
	for _, branch := range candidates {
		probe := collector{path: c.path}
		probe.judge(branch, value)
		if len(probe.leaves) == 0 {
			return
		}
		failed = append(failed, probe.leaves)
	}
	c.leaves = append(c.leaves, reduce(failed, len(c.path))...)
}

func typesOf(value any) types {
	switch v := value.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case string:
		return typeString
	case []any:
		return typeArray
	case map[string]any:
		return typeObject
	case int, int64:
		return typeNumber | typeInteger
	case float64:
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return 0
		case v == math.Trunc(v):
			return typeNumber | typeInteger
		}
		return typeNumber
	case json.Number:
		return numberTypes(string(v))
	}
	return 0
}

// numberTypes tells whether a JSON number is written so that its value is a
// whole number, without computing it: the exponent may be anything.
func numberTypes(text string) types {
	s := strings.TrimPrefix(text, "-")
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e, err := strconv.Atoi(s[i+1:])
		if err != nil && !isRangeError(err) {
			return 0
		}
		exponent = max(min(e, math.MaxInt32), math.MinInt32)
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0
	}
	significant := strings.TrimRight(whole+fraction, "0")
	if strings.TrimLeft(significant, "0") == "" || len(whole)+exponent >= len(significant) {
		return typeNumber | typeInteger
	}
	return typeNumber
}

func isRangeError(err error) bool {
	return errors.Is(err, strconv.ErrRange)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func float(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case json.Number:
		// Beyond the range of float64 the nearest infinity compares rightly.
		f, err := v.Float64()
		return f, err == nil || isRangeError(err)
	}
	return 0, false
}
