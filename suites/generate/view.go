package generate

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A view is a conjunction of schemas that one value has to follow, spread out:
// with the targets of references, the parts of allOf, and the alternatives that
// have been chosen so far.
type view struct {
	conj    []*jsonschema.Schema // as asked for; a value is judged by these
	all     []*jsonschema.Schema // spread out, the outermost first
	seen    map[*jsonschema.Schema]bool
	choices []choice // alternatives met on the way, decided in this order
	never   int      // how many of all are the schema false
}

// A choice is a list of alternatives, each a conjunction. Its schemas may be nil.
type choice struct {
	options [][]*jsonschema.Schema
	// condition is set for if, then and else: the first option holds when the
	// value follows it.
	condition *jsonschema.Schema
}

func (g *generator) viewOf(conj []*jsonschema.Schema) *view {
	v := &view{conj: conj, seen: map[*jsonschema.Schema]bool{}}
	for _, s := range conj {
		g.expand(v, s)
	}
	return v
}

func (g *generator) expand(v *view, s *jsonschema.Schema) {
	if s == nil || v.seen[s] {
		return
	}
	g.step(1)
	v.seen[s] = true
	v.all = append(v.all, s)
	if s.Bool != nil && !*s.Bool {
		v.never++
	}
	for _, c := range references(s) {
		g.expand(v, c)
	}
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(list) == 0 {
			continue
		}
		c := choice{}
		for _, option := range list {
			c.options = append(c.options, []*jsonschema.Schema{option})
		}
		v.choices = append(v.choices, c)
	}
	if s.If != nil {
		v.choices = append(v.choices, choice{[][]*jsonschema.Schema{{s.If, s.Then}, {s.Else}}, s.If})
	}
}

// references returns what a schema simply adds to itself.
func references(s *jsonschema.Schema) []*jsonschema.Schema {
	list := s.AllOf
	if s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil {
		list = append([]*jsonschema.Schema{s.Ref, s.RecursiveRef}, list...)
		if s.DynamicRef != nil {
			list = append(list, s.DynamicRef.Ref)
		}
	}
	return list
}

type mark struct{ all, choices, never int }

func (v *view) mark() mark { return mark{len(v.all), len(v.choices), v.never} }

func (v *view) undo(m mark) {
	for _, s := range v.all[m.all:] {
		delete(v.seen, s)
	}
	v.all, v.choices, v.never = v.all[:m.all], v.choices[:m.choices], m.never
}

// generate makes a value that follows all the schemas.
func (g *generator) generate(conj []*jsonschema.Schema, at place, r request) (any, error) {
	if at.depth > maxDepth {
		return nil, at.problem("the value would be nested more than %d levels deep", maxDepth)
	}
	return g.solve(g.viewOf(conj), 0, at, r)
}

// solve decides the choices from number i on, by trying, and makes the value.
func (g *generator) solve(v *view, i int, at place, r request) (any, error) {
	if v.never > 0 {
		return nil, at.problem("nothing is allowed here")
	}
	if i == len(v.choices) {
		return g.build(v, at, r)
	}
	// An alternative that leads back to where the search comes from is put
	// off, so that a list ends as soon as it may.
	options := v.choices[i].options
	var order, later [][]*jsonschema.Schema
	for _, option := range options {
		if slices.ContainsFunc(option, g.isActive) {
			later = append(later, option)
		} else {
			order = append(order, option)
		}
	}
	var first error
	for _, option := range append(order, later...) {
		g.step(1)
		m := v.mark()
		for _, s := range option {
			g.expand(v, s)
		}
		value, err := g.solve(v, i+1, at, r)
		v.undo(m)
		if err == nil {
			return value, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// isActive reports whether a value is under construction for the schema or for what it adds to itself.
func (g *generator) isActive(s *jsonschema.Schema) bool {
	var find func(s *jsonschema.Schema, depth int) bool
	find = func(s *jsonschema.Schema, depth int) bool {
		if s == nil || depth > 8 {
			return false
		}
		g.step(1)
		if g.active[s] > 0 {
			return true
		}
		for _, c := range references(s) {
			if find(c, depth+1) {
				return true
			}
		}
		return false
	}
	return find(s, 0)
}

// enter marks the schemas of a view as active until the function it returns is called.
func (g *generator) enter(v *view) (leave func()) {
	all := slices.Clone(v.all)
	for _, s := range all {
		g.active[s]++
	}
	return func() {
		for _, s := range all {
			g.active[s]--
		}
	}
}

// build makes a value once all choices are decided.
func (g *generator) build(v *view, at place, r request) (any, error) {
	var constants, defaults, listed []any
	allowed, hint, fixed := kinds(kindAny), kinds(0), false
	for _, s := range v.all {
		g.step(1)
		if s.Const != nil {
			constants = append(constants, *s.Const)
			fixed = true
		}
		if s.Default != nil {
			defaults = append(defaults, *s.Default)
		}
		if s.Enum != nil {
			listed = append(listed, s.Enum.Values...)
			fixed = true
		}
		allowed &= g.facts[s].types
		hint |= g.facts[s].hint
	}
	for _, s := range v.all {
		defaults = append(defaults, s.Examples...)
	}
	if allowed == 0 {
		return nil, at.problem("its types exclude each other")
	}
	var rest []any
	for _, list := range [][]any{constants, defaults, listed} {
		for i := range list {
			value := list[(i+r.vary)%len(list)]
			if !fixed && !g.isFormatted(v, value) {
				rest = append(rest, value)
				continue
			}
			if r.probe && !fixed && kindOf(value)&(kindObject|kindArray|kindNull) != 0 {
				continue
			}
			if g.accept(v, value, r) {
				return g.copied(value), nil
			}
		}
	}
	if fixed {
		return nil, at.problem("no value of its const or enum follows its other rules")
	}
	var first error
	for _, kind := range order(allowed, hint, at) {
		value, err := g.make(kind, v, allowed, at, r)
		if err == nil {
			return value, nil
		}
		if first == nil {
			first = err
		}
	}
	for _, value := range rest {
		if g.accept(v, value, r) {
			return g.copied(value), nil
		}
	}
	return nil, first
}

// order returns the allowed types, those that the keywords are about first. A
// whole value that may be anything is an object, as arguments are.
func order(allowed, hint kinds, at place) []kinds {
	list := []kinds{kindString, kindNumber, kindBoolean, kindObject, kindArray, kindNull}
	if at.depth == 0 {
		list = []kinds{kindObject, kindString, kindNumber, kindBoolean, kindArray, kindNull}
	}
	list = slices.DeleteFunc(list, func(k kinds) bool { return k&allowed == 0 })
	other := slices.DeleteFunc(slices.Clone(list), func(k kinds) bool { return k&hint != 0 })
	list = slices.DeleteFunc(list, func(k kinds) bool { return k&hint == 0 })
	return append(list, other...)
}

func (g *generator) make(kind kinds, v *view, allowed kinds, at place, r request) (any, error) {
	switch kind {
	case kindObject:
		return g.object(v, at, r)
	case kindArray:
		return g.array(v, at, r)
	case kindString:
		return g.text(v, at, r)
	case kindNumber:
		return g.number(v, allowed, at, r)
	case kindBoolean:
		for i := range 2 {
			if value := (i+r.vary)%2 == 1; g.accept(v, value, r) {
				return value, nil
			}
		}
	default:
		if g.accept(v, nil, r) {
			return nil, nil
		}
	}
	return nil, at.problem("no value was found that follows its rules")
}

// accept reports whether a value is wanted and follows the schemas of a view.
func (g *generator) accept(v *view, value any, r request) bool {
	g.step(1)
	if len(r.avoid) > 0 && r.avoid[g.key(value)] {
		return false
	}
	return g.follows(v.conj, value)
}

func (g *generator) follows(conj []*jsonschema.Schema, value any) bool {
	for _, s := range conj {
		g.charge(g.costs[s])
		if s.Validate(value) != nil {
			return false
		}
	}
	return true
}

// key returns a text that equal values share.
func (g *generator) key(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	g.charge(len(text) / 64)
	return string(text)
}

// copied copies a value of the schema, so that the parts of a result are its own.
func (g *generator) copied(value any) any {
	g.step(1)
	switch v := value.(type) {
	case string:
		g.spend(len(v))
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = g.copied(item)
		}
		return list
	case map[string]any:
		object := maps.Clone(v)
		for name, member := range v {
			g.spend(len(name))
			object[name] = g.copied(member)
		}
		return object
	}
	return value
}
