package schema

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// baseLocation is the base of relative references. It is hierarchical so that a
// reference to another file is told from one to the schema itself.
const baseLocation = "mcpconform:///"

// newCompiler returns a compiler that reads neither files nor the network.
func newCompiler(loader *refuser) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(loader)
	return c
}

// A refuser loads nothing and remembers what it was asked for first.
type refuser struct{ url string }

func (r *refuser) Load(url string) (any, error) {
	if r.url == "" {
		r.url = url
	}
	return nil, errors.New("nothing is loaded")
}

// schemas finds compiled schemas by their locations, as the library's errors name
// them. It may be used by several goroutines at once.
type schemas struct {
	mu sync.RWMutex
	at map[string]*jsonschema.Schema
}

func (s *schemas) find(location string) *jsonschema.Schema {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.at[location]
}

// add takes in every schema that is reachable from one and not known yet: it calls
// prepare for it, unless that is nil, and bounds its lists. Nobody may validate with
// those schemas before add returns.
func (s *schemas) add(from *jsonschema.Schema, prepare func(*jsonschema.Schema, applied)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]*jsonschema.Schema{}
	}
	queue := []*jsonschema.Schema{from}
	for len(queue) > 0 {
		c := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if c == nil || s.at[c.Location] == c {
			continue
		}
		s.at[c.Location] = c
		a := appliedBy(c)
		queue = append(append(queue, a.same...), a.below...)
		if prepare != nil {
			prepare(c, a)
		}
		boundLists(c)
	}
}

// applied is what a schema applies to the value itself, to members or items,
// and to the names of members.
type applied struct {
	same, below []*jsonschema.Schema
	names       []jsonschema.Regexp
}

func appliedBy(s *jsonschema.Schema) applied {
	var a applied
	a.same = append(a.same, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		a.same = append(a.same, s.DynamicRef.Ref)
	}
	a.same = append(a.same, s.AllOf...)
	a.same = append(a.same, s.AnyOf...)
	a.same = append(a.same, s.OneOf...)
	for _, c := range s.DependentSchemas {
		a.same = append(a.same, c)
	}
	for _, c := range s.Dependencies {
		if c, ok := c.(*jsonschema.Schema); ok {
			a.same = append(a.same, c)
		}
	}
	for _, c := range s.Properties {
		a.below = append(a.below, c)
	}
	for re, c := range s.PatternProperties {
		a.below = append(a.below, c)
		a.names = append(a.names, re)
	}
	for _, c := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch c := c.(type) {
		case *jsonschema.Schema:
			a.below = append(a.below, c)
		case []*jsonschema.Schema:
			a.below = append(a.below, c...)
		}
	}
	a.below = append(a.below, s.PrefixItems...)
	a.below = append(a.below, s.Items2020, s.Contains, s.PropertyNames, s.UnevaluatedItems, s.UnevaluatedProperties,
		s.ContentSchema)
	return a
}

// bounded applies one schema to all items of a list, or to all undeclared members, and reports the first errors only.
// The library would keep an error for each of them.
type bounded struct {
	items, members *jsonschema.Schema
	from           int // the first item
	declared       map[string]*jsonschema.Schema
	patterns       map[jsonschema.Regexp]*jsonschema.Schema
}

func boundLists(s *jsonschema.Schema) {
	b := &bounded{declared: s.Properties, patterns: s.PatternProperties, from: len(s.PrefixItems)}
	if items, ok := s.Items.(*jsonschema.Schema); ok {
		b.items, s.Items = items, nil
	}
	if s.Items2020 != nil {
		b.items, s.Items2020 = s.Items2020, nil
	}
	if members, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		b.members, s.AdditionalProperties = members, nil
	}
	if b.items != nil || b.members != nil {
		s.Extensions = append(s.Extensions, b)
	}
}

// Validate is called by the library for each value of the schema.
func (b *bounded) Validate(c *jsonschema.ValidatorContext, value any) {
	switch v := value.(type) {
	case []any:
		if b.items == nil || len(v) < b.from {
			return
		}
		broken := 0
		for i, item := range v[b.from:] {
			if err := c.Validate(b.items, item, []string{strconv.Itoa(b.from + i)}); err != nil {
				c.AddErr(err)
				if broken++; broken == maxViolations {
					return
				}
			}
		}
	case map[string]any:
		if b.members == nil {
			return
		}
		// The names come in random order: find all that are broken, to report the
		// first of them.
		var broken []string
		for name, member := range v {
			if !b.isDeclared(name) && c.Validate(b.members, member, []string{name}) != nil {
				broken = append(broken, name)
			}
		}
		slices.Sort(broken)
		for _, name := range firstFew(broken) {
			c.AddErr(c.Validate(b.members, v[name], []string{name}))
		}
	}
}

func (b *bounded) isDeclared(name string) bool {
	if b.declared[name] != nil {
		return true
	}
	for re := range b.patterns {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// tame replaces numbers of extreme length or exponent by a float64 nearby, a whole one for a whole number: exact
// arithmetic on them would take minutes. It copies the values that it changes, and their parents. It reports false
// for values too deep or of no JSON type, and leaves what is too deep as it is.
func tame(value any) (tamed any, ok bool) {
	tamed, changed, ok := tameAt(value, 0)
	if !changed {
		tamed = value
	}
	return tamed, ok
}

func tameAt(value any, depth int) (tamed any, changed, ok bool) {
	if depth > maxValueDepth {
		return nil, false, false
	}
	ok = true
	switch v := value.(type) {
	case nil, bool, string, int, int64:
		return nil, false, true
	case float64:
		return nil, false, !math.IsNaN(v) && !math.IsInf(v, 0)
	case json.Number:
		return tameNumber(v)
	case []any:
		for i, item := range v {
			tamed, itemChanged, itemOK := tameAt(item, depth+1)
			ok = ok && itemOK
			if itemChanged {
				if !changed {
					v, changed = slices.Clone(v), true
				}
				v[i] = tamed
			}
		}
		return v, changed, ok
	case map[string]any:
		// The range goes on over the map that it started with.
		for name, item := range v {
			tamed, itemChanged, itemOK := tameAt(item, depth+1)
			ok = ok && itemOK
			if itemChanged {
				if !changed {
					v, changed = maps.Clone(v), true
				}
				v[name] = tamed
			}
		}
		return v, changed, ok
	}
	return nil, false, false
}

func tameNumber(n json.Number) (tamed any, changed, ok bool) {
	text := string(n)
	whole, ok := isWhole(text)
	if !ok {
		return math.NaN(), true, false
	}
	if len(text) <= 64 {
		i := strings.IndexAny(text, "eE")
		if i < 0 {
			return nil, false, true
		}
		if e, err := strconv.Atoi(text[i+1:]); err == nil && e >= -400 && e <= 400 {
			return nil, false, true
		}
	}
	f, err := n.Float64()
	if err != nil {
		f = math.Copysign(math.MaxFloat64, f)
	}
	if !whole && f == math.Trunc(f) {
		const largest = 1<<52 - 0.5 // that is not whole
		switch {
		case f == 0:
			f = math.Copysign(math.SmallestNonzeroFloat64, f)
		case math.Abs(f) > largest:
			f = math.Copysign(largest, f)
		default:
			f = math.Nextafter(f, 0)
		}
	}
	return f, true, true
}

// isWhole tells whether a JSON number is written so that its value is a whole
// number, without computing it: the exponent may be anything. It reports false if
// the text is not a number.
func isWhole(text string) (whole, ok bool) {
	s := strings.TrimPrefix(text, "-")
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		e, err := strconv.Atoi(s[i+1:])
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return false, false
		}
		exponent = max(min(e, math.MaxInt32), math.MinInt32)
	}
	integer, fraction, point := strings.Cut(mantissa, ".")
	if !digits(integer) || point && !digits(fraction) {
		return false, false
	}
	significant := strings.TrimRight(integer+fraction, "0")
	return strings.TrimLeft(significant, "0") == "" || len(integer)+exponent >= len(significant), true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
