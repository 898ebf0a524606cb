package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// A proposal is one value. For a place with alternatives, choices has the number of the chosen one, and counts gets
// their number.
type proposal struct {
	*generator
	size
	choices, counts map[string]int
	bytes           int    // what is left
	failed          string // the pointer of the place for which no value was found

	value  any
	places []place // the outermost last
}

// A spot is where a value belongs.
type spot struct {
	pointer string
	path    []any    // names (string) and indices (int)
	vary    int      // number of the value within a series of different ones
	again   bool     // within an item of a list like one before it
	within  []string // references that values around it come from
}

func (s spot) below(token any, refs []string) spot {
	s.pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(token))
	s.path, s.within = append(slices.Clip(s.path), token), refs
	return s
}

// A place is a part of a value and what the schema says of it.
type place struct {
	spot
	variant
	value any
}

// A variant is a conjunction of schemas, spread out: with the targets of
// references, the parts of allOf and one alternative of each choice.
type variant struct {
	parts []map[string]any
	refs  []string // the references that were followed
}

// advance takes the next alternative at a place or, if there is none, at the next
// place around it that has one.
func (p *proposal) advance(at string) bool {
	for {
		if p.choices[at]+1 < p.counts[at] {
			p.choices[at]++
			maps.DeleteFunc(p.choices, func(pointer string, _ int) bool { return strings.HasPrefix(pointer, at+"/") })
			return true
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return false
		}
		at = at[:i]
	}
}

// fail says where no value was found.
func (p *proposal) fail(at spot) (any, bool) {
	p.failed = at.pointer
	return nil, false
}

// spend takes the bytes of a part from what is left of the value.
func (p *proposal) spend(part any) bool {
	p.bytes -= len(keyOf(part))
	return p.bytes >= 0
}

// step takes a number of decisions from what is left of the work.
func (g *generator) step(n int) bool {
	g.work -= costOfStep * n
	return g.work >= 0
}

// build makes a value that should follow all the schemas.
func (p *proposal) build(schemas []any, at spot) (value any, ok bool) {
	if len(at.path) > maxDepth {
		return p.fail(at)
	}
	var all []alternative
	for _, v := range p.expand(schemas, at) {
		if !p.step(1 + len(v.parts)) {
			return p.fail(at)
		}
		all = append(all, p.alternatives(v, at)...)
	}
	if len(all) == 0 {
		return p.fail(at)
	}
	slices.SortStableFunc(all, func(a, b alternative) int { return b.given - a.given })
	p.counts[at.pointer] = len(all)
	chosen := all[min(p.choices[at.pointer], len(all)-1)]
	refs := slices.Concat(at.within, chosen.refs)
	switch chosen.kind {
	case "object":
		value, ok = p.object(chosen.variant, at, refs)
	case "array":
		value, ok = p.array(chosen.variant, at, refs)
	default:
		value, ok = chosen.value, p.spend(chosen.value)
	}
	p.places = append(p.places, place{at, chosen.variant, value})
	return value, ok
}

// expand lists the conjunctions of schemas that have to hold together. Recursive ones come last, so that a list ends
// early.
func (p *proposal) expand(schemas []any, at spot) []variant {
	list := []variant{{}}
	for _, s := range schemas {
		list = p.spread(list, s)
	}
	slices.SortStableFunc(list, func(a, b variant) int { return recursive(a, at) - recursive(b, at) })
	return list
}

// recursive returns 1 if a variant leads back to where the value comes from.
func recursive(v variant, at spot) int {
	if slices.ContainsFunc(v.refs, func(ref string) bool { return slices.Contains(at.within, ref) }) {
		return 1
	}
	return 0
}

// ends reports whether the schemas allow a value without recursion.
func (p *proposal) ends(schemas []any, at spot) bool {
	found := p.expand(schemas, at)
	return len(found) > 0 && recursive(found[0], at) == 0
}

// spread adds a schema to each variant.
func (p *proposal) spread(list []variant, schema any) []variant {
	if schema == nil || schema == true {
		return list
	}
	s, ok := schema.(map[string]any)
	if !ok || len(list) == 0 || !p.step(1) {
		return nil // the schema false, among others
	}
	if ref, ok := s["$ref"].(string); ok {
		target, ok := p.resolve(ref)
		if !ok {
			return nil
		}
		var fresh, known []variant
		for _, v := range list {
			if slices.Contains(v.refs, ref) {
				known = append(known, v)
				continue
			}
			v.refs = append(slices.Clip(v.refs), ref)
			fresh = append(fresh, v)
		}
		list = append(p.spread(fresh, target), known...)
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].parts = append(slices.Clip(list[i].parts), s)
	}
	for _, part := range wire.Items(s, "allOf") {
		list = p.spread(list, part)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options := wire.Items(s, keyword); len(options) > 0 {
			list = p.choose(list, slices.Collect(slices.Chunk(options, 1))...)
		}
	}
	if s["if"] != nil {
		list = p.choose(list, []any{s["if"], s["then"]}, []any{s["else"]})
	}
	return list
}

// choose spreads each variant once for every option, a conjunction.
func (p *proposal) choose(list []variant, options ...[]any) (all []variant) {
	for _, v := range list {
		for _, option := range options {
			if len(all) >= maxVariants {
				return all
			}
			some := []variant{v}
			for _, s := range option {
				some = p.spread(some, s)
			}
			for _, v := range some {
				if kinds, _ := kindsOf(v); len(kinds) > 0 {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

// resolve follows a reference within the document.
func (g *generator) resolve(ref string) (target any, ok bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !ok || err != nil || fragment != "" && fragment[0] != '/' {
		return nil, false
	}
	target = g.root
	for _, token := range strings.Split(fragment, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch t := target.(type) {
		case map[string]any:
			target, ok = t[token]
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(t); ok {
				target = t[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return target, true
}

// An alternative is one way to make a value: a scalar or a constant, or of the kind
// object or array, which has to be built.
type alternative struct {
	variant
	kind  string
	value any
	given int // 1 if the schema gives it, as a constant or default
}

var kindOrder = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// about tells which types keywords are about.
var about = map[string]string{
	"properties": "object", "required": "object", "additionalProperties": "object", "patternProperties": "object",
	"minProperties": "object", "maxProperties": "object", "propertyNames": "object", "dependentRequired": "object",
	"items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array",
	"contains":  "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
	"multipleOf": "number",
}

// kindsOf returns the types that all parts of a variant allow, those first that
// their keywords are about.
func kindsOf(v variant) (kinds []string, hinted bool) {
	allowed, hints := slices.Clone(kindOrder), map[string]bool{}
	for _, s := range v.parts {
		for keyword := range s {
			hints[about[keyword]] = true
		}
		names := wire.Items(s, "type")
		if name, ok := s["type"].(string); ok {
			names = []any{name}
		}
		if len(names) > 0 {
			allowed = slices.DeleteFunc(allowed, func(kind string) bool {
				return !slices.Contains(names, any(kind)) && (kind != "integer" || !slices.Contains(names, "number"))
			})
		}
	}
	if slices.Contains(allowed, "number") {
		allowed = slices.DeleteFunc(allowed, func(kind string) bool { return kind == "integer" })
	}
	hint := func(kind string) int {
		if hints[kind] || kind == "integer" && hints["number"] {
			hinted = true
			return 0
		}
		return 1
	}
	slices.SortStableFunc(allowed, func(a, b string) int { return hint(a) - hint(b) })
	return allowed, hinted
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "null"
}

// alternatives lists ways to make a value, the best first.
func (p *proposal) alternatives(v variant, at spot) (list []alternative) {
	kinds, hinted := kindsOf(v)
	given := givenIn(v)
	lists := given.lists
	var last []any
	add := func(values ...any) {
		for _, value := range values {
			list = append(list, alternative{variant: v, value: value})
		}
	}
	text := textOf(v)
	for _, values := range [][]any{given.constants, given.preferred, given.listed} {
		for i := range values {
			value := values[(i+at.vary)%len(values)]
			switch kind := kindOf(value); {
			case !slices.Contains(kinds, kind) && (kind != "number" || !slices.Contains(kinds, "integer")):
			case len(list) >= maxTries:
			case lists > 1 && given.in[keyOf(value)] < lists:
			case lists == 0 && p.probe && (kind == "object" || kind == "array" || kind == "null"):
			case lists == 0 && value == "" && text.format != "":
				last = append(last, value)
			default:
				add(value)
			}
		}
	}
	for i := range list {
		list[i].given = 1
	}
	if lists > 0 {
		return list
	}
	if len(at.path) == 0 && len(kinds) == len(kindOrder)-1 && !hinted {
		// A whole value that may be anything is an object, as arguments are.
		kinds = []string{"object"}
	}
	for _, kind := range kinds {
		switch kind {
		case "object", "array":
			list = append(list, alternative{variant: v, kind: kind})
		case "string":
			add(text.words(at.vary, &p.work)...)
		case "number", "integer":
			add(rangeOf(v, kind).numbers(at.vary)...)
		case "boolean":
			add(at.vary%2 == 1, at.vary%2 == 0)
		case "null":
			add(nil)
		}
	}
	add(last...)
	return list
}

// given are the values that a schema names.
type given struct {
	constants, preferred, listed []any
	lists                        int            // that exclude all other values
	in                           map[string]int // in how many lists a value is, if there are several
}

// givenIn returns the values that the parts of a variant name.
func givenIn(v variant) (g given) {
	var examples []any
	for _, s := range v.parts {
		if c, ok := s["const"]; ok {
			g.constants = append(g.constants, c)
			g.lists++
		}
		if d, ok := s["default"]; ok {
			g.preferred = append(g.preferred, d)
		}
		if list := wire.Items(s, "enum"); len(list) > 0 {
			g.listed = append(g.listed, list...)
			g.lists++
		}
		examples = append(examples, wire.Items(s, "examples")...)
	}
	g.preferred = append(g.preferred, examples...)
	if g.lists > 1 {
		g.in = make(map[string]int)
		for _, value := range slices.Concat(g.constants, g.listed) {
			g.in[keyOf(value)]++
		}
	}
	return g
}

// number returns the count that a keyword has, or a default.
func number(s map[string]any, keyword string, otherwise int) int {
	if n, ok := s[keyword].(json.Number); ok {
		if f, err := n.Float64(); err == nil && f >= 0 {
			return int(min(f, unlimited))
		}
	}
	return otherwise
}

const unlimited = 1 << 53

// limits returns the greatest lower and the least upper bound of a count.
func limits(parts []map[string]any, least, most string) (low, high int) {
	high = unlimited
	for _, s := range parts {
		low = max(low, number(s, least, 0))
		high = min(high, number(s, most, unlimited))
	}
	return low, high
}

// required returns the members that must be there, sorted.
func required(parts []map[string]any) []string {
	var names []string
	for _, s := range parts {
		names = append(names, wire.Strings(s, "required")...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// optional returns the declared members, sorted.
func optional(parts []map[string]any) []string {
	var names []string
	for _, s := range parts {
		properties, _ := s["properties"].(map[string]any)
		names = slices.AppendSeq(names, maps.Keys(properties))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// memberParts returns the schemas for a member, or false if it may not be there.
func (g *generator) memberParts(parts []map[string]any, name string) (schemas []any, allowed bool) {
	for _, s := range parts {
		properties, _ := s["properties"].(map[string]any)
		if member, ok := properties[name]; ok {
			schemas = append(schemas, member)
			continue
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		if g.work -= len(patterns) * len(name); len(patterns) == 0 { // else only the judge knows
			schemas = append(schemas, s["additionalProperties"])
		}
	}
	return schemas, !slices.Contains(schemas, any(false))
}

func (p *proposal) object(v variant, at spot, refs []string) (any, bool) {
	low, high := limits(v.parts, "minProperties", "maxProperties")
	names := required(v.parts)
	if low > high || max(low, len(names)) > maxItems {
		return p.fail(at)
	}
	object := map[string]any{}
	add := func(name string, must bool) bool {
		schemas, allowed := p.memberParts(v.parts, name)
		child := at.below(name, refs)
		if _, has := object[name]; has || !must && (!allowed || !p.ends(schemas, child)) {
			return true
		}
		if !allowed {
			p.fail(at)
			return false
		}
		made := len(p.places)
		member, ok := p.build(schemas, child)
		switch {
		case ok:
			object[name] = member
			return p.spend(name)
		case !must:
			p.places = p.places[:made]
			return p.bytes >= 0 && p.work >= 0
		}
		return false
	}
	for _, name := range names {
		if !add(name, true) {
			return nil, false
		}
	}
	others := optional(v.parts)
	for i := range low {
		others = append(others, "member"+strconv.Itoa(i+1))
	}
	for i, name := range others {
		wanted := low
		if p.full && i < len(others)-low {
			wanted = high
		}
		if len(object) < wanted && !add(name, false) {
			return nil, false
		}
	}
	if len(object) < low {
		return p.fail(at)
	}
	return object, true
}

// itemParts returns the schemas for the item at an index, or false if none may be there.
func itemParts(parts []map[string]any, i int) (schemas []any, allowed bool) {
	for _, s := range parts {
		rest := s["items"]
		prefix := wire.Items(s, "prefixItems")
		if tuple, ok := rest.([]any); ok {
			prefix, rest = tuple, s["additionalItems"]
		}
		if i < len(prefix) {
			rest = prefix[i]
		}
		schemas = append(schemas, rest)
	}
	return schemas, !slices.Contains(schemas, any(false))
}

func (p *proposal) array(v variant, at spot, refs []string) (any, bool) {
	low, high := limits(v.parts, "minItems", "maxItems")
	first, unique, typed := 0, false, false // first is the number of items that have a schema of their own
	for _, s := range v.parts {
		first = max(first, len(wire.Items(s, "prefixItems")), len(wire.Items(s, "items")))
		unique = unique || s["uniqueItems"] == true
		typed = typed || s["items"] != nil
	}
	if low > high || low > maxItems {
		return p.fail(at)
	}
	wanted := low
	if p.full && (typed || first > 0) {
		wanted = min(max(low, first, 1), high, maxItems)
	}
	list, seen := []any{}, map[string]bool{}
	for i := range wanted {
		schemas, allowed := itemParts(v.parts, i)
		child := at.below(i, refs)
		child.again = at.again || i >= max(1, first)
		if unique {
			child.vary = i
		}
		if i >= low && (!allowed || !p.ends(schemas, child)) {
			break
		}
		if !allowed {
			return p.fail(at)
		}
		made := len(p.places)
		item, ok := p.build(schemas, child)
		for ok && unique && seen[keyOf(item)] && p.choices[child.pointer]+1 < p.counts[child.pointer] {
			p.places = p.places[:made]
			p.choices[child.pointer]++
			item, ok = p.build(schemas, child)
		}
		if !ok {
			return nil, false
		}
		seen[keyOf(item)] = unique
		list = append(list, item)
	}
	return list, true
}

// keyOf returns a text that equal values share.
func keyOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
