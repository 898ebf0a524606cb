package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A proposal is one value. Where a place has alternatives, choices has the number
// of the one to take; counts gets how many there are.
type proposal struct {
	*generator
	size
	choices, counts map[string]int
	bytes, steps    int // what is left

	value  any
	places []place // the outermost last
}

// A spot is where a value belongs.
type spot struct {
	pointer string
	path    []any // names (string) and indices (int)
	depth   int
	vary    int      // number of the value within a series of different ones
	within  []string // references that values around it come from
}

func (s spot) below(token any, vary int, refs []string) spot {
	return spot{s.pointer + "/" + escape(fmt.Sprint(token)), append(slices.Clip(s.path), token), s.depth + 1, vary, refs}
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

func (p *proposal) make() (err error) {
	p.value, err = p.build([]any{p.root}, spot{within: []string{"#"}})
	return err
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

func (p *proposal) spend(bytes int) error {
	if p.bytes -= bytes; p.bytes < 0 {
		return fmt.Errorf("its value would be too large")
	}
	return nil
}

func (p *proposal) step() error {
	if p.steps--; p.steps < 0 || p.work < 0 {
		return errWork
	}
	return nil
}

// build makes a value that should follow all the schemas.
func (p *proposal) build(schemas []any, at spot) (any, error) {
	if at.depth > maxDepth {
		return nil, &problem{at.pointer, fmt.Sprintf("the value would be nested more than %d levels deep", maxDepth)}
	}
	variants, err := p.expand(schemas, at)
	if err != nil {
		return nil, err
	}
	var all []alternative
	reason := ""
	for _, v := range variants {
		if err := p.step(); err != nil {
			return nil, err
		}
		p.work -= 50 * len(v.parts)
		found, why := p.alternatives(v, at)
		all = append(all, found...)
		if reason == "" {
			reason = why
		}
	}
	if len(all) == 0 {
		return nil, &problem{at.pointer, reason}
	}
	slices.SortStableFunc(all, func(a, b alternative) int {
		switch {
		case a.given == b.given:
			return 0
		case a.given:
			return -1
		}
		return 1
	})
	p.counts[at.pointer] = len(all)
	chosen := all[min(p.choices[at.pointer], len(all)-1)]
	value := chosen.value
	refs := slices.Concat(at.within, chosen.refs)
	switch chosen.kind {
	case "object":
		value, err = p.object(chosen.variant, at, refs)
	case "array":
		value, err = p.array(chosen.variant, at, refs)
	default:
		err = p.spend(weight(value))
	}
	if err != nil {
		return nil, err
	}
	p.places = append(p.places, place{at, chosen.variant, value})
	return value, nil
}

// weight is about how many bytes a value has when it is written.
func weight(value any) int {
	n := 8
	switch v := value.(type) {
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	case []any:
		for _, item := range v {
			n += weight(item)
		}
	case map[string]any:
		for name, member := range v {
			n += len(name) + weight(member)
		}
	}
	return n
}

// expand lists the conjunctions that follow from schemas that all have to
// hold. Those that lead back to where the value comes from are put last, so that
// a list ends as soon as it may.
func (p *proposal) expand(schemas []any, at spot) ([]variant, error) {
	list := []variant{{}}
	for _, s := range schemas {
		var err error
		if list, err = p.spread(list, s, at); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, &problem{at.pointer, "nothing is allowed here"}
	}
	slices.SortStableFunc(list, func(a, b variant) int { return recursive(a, at) - recursive(b, at) })
	return list, nil
}

// recursive returns 1 if a variant leads back to where the value comes from.
func recursive(v variant, at spot) int {
	if slices.ContainsFunc(v.refs, func(ref string) bool { return slices.Contains(at.within, ref) }) {
		return 1
	}
	return 0
}

// spread adds a schema to each variant.
func (p *proposal) spread(list []variant, schema any, at spot) (spread []variant, err error) {
	if len(list) == 0 || schema == nil || schema == true {
		return list, nil
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return nil, nil // the schema false
	}
	if err := p.step(); err != nil {
		return nil, err
	}
	if ref, ok := s["$ref"].(string); ok {
		target, ok := p.resolve(ref)
		if !ok {
			return nil, &problem{at.pointer, "the reference " + quote(ref) + " is not followed"}
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
		if list, err = p.spread(fresh, target, at); err != nil {
			return nil, err
		}
		if list = append(list, known...); p.isOld() {
			return list, nil // before 2019-09 a reference hides its neighbours
		}
	}
	for i := range list {
		list[i].parts = append(slices.Clip(list[i].parts), s)
	}
	for _, part := range items(s["allOf"]) {
		if list, err = p.spread(list, part, at); err != nil {
			return nil, err
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options := items(s[keyword]); len(options) > 0 {
			if list, err = p.choose(list, at, wrap(options)...); err != nil {
				return nil, err
			}
		}
	}
	if s["if"] != nil {
		return p.choose(list, at, []any{s["if"], s["then"]}, []any{s["else"]})
	}
	return list, nil
}

func wrap(options []any) [][]any {
	var list [][]any
	for _, o := range options {
		list = append(list, []any{o})
	}
	return list
}

// choose spreads each variant once for every option, a conjunction.
func (p *proposal) choose(list []variant, at spot, options ...[]any) ([]variant, error) {
	var all []variant
	for _, v := range list {
		for _, option := range options {
			if len(all) >= maxVariants {
				return all, nil
			}
			some, err := []variant{v}, error(nil)
			for _, s := range option {
				if some, err = p.spread(some, s, at); err != nil {
					return nil, err
				}
			}
			for _, v := range some {
				if kinds, _ := kindsOf(v); len(kinds) > 0 {
					all = append(all, v)
				}
			}
		}
	}
	return all, nil
}

// isOld reports whether the schema names a dialect before 2019-09.
func (p *proposal) isOld() bool {
	root, _ := p.root.(map[string]any)
	dialect, _ := root["$schema"].(string)
	return strings.Contains(dialect, "/draft-0")
}

// resolve follows a reference within the document.
func (g *generator) resolve(ref string) (target any, ok bool) {
	fragment, ok := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !ok || err != nil {
		return nil, false
	}
	if fragment == "" {
		return g.root, true
	}
	if fragment[0] != '/' {
		return anchored(g.root, fragment)
	}
	target = g.root
	for token := range strings.SplitSeq(fragment[1:], "/") {
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

// anchored finds the definition with an anchor.
func anchored(root any, anchor string) (any, bool) {
	object, _ := root.(map[string]any)
	for _, holder := range []string{"$defs", "definitions"} {
		definitions, _ := object[holder].(map[string]any)
		for _, definition := range definitions {
			if d, _ := definition.(map[string]any); d["$anchor"] == anchor {
				return d, true
			}
		}
	}
	return nil, false
}

// An alternative is one way to make a value: a scalar or a constant, or of the kind
// object or array, which has to be built.
type alternative struct {
	variant
	kind  string
	value any
	given bool // by the schema, as a constant or default
}

var kindOrder = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// about tells which types keywords are about.
var about = map[string]string{
	"properties": "object", "required": "object", "additionalProperties": "object", "patternProperties": "object",
	"minProperties": "object", "maxProperties": "object", "propertyNames": "object", "dependentRequired": "object",
	"items": "array", "prefixItems": "array", "minItems": "array", "maxItems": "array", "uniqueItems": "array", "contains": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
}

// kindsOf returns the types that all parts of a variant allow, those first that
// their keywords are about.
func kindsOf(v variant) (kinds []string, hinted bool) {
	allowed, hints := slices.Clone(kindOrder), map[string]bool{}
	for _, s := range v.parts {
		for keyword := range s {
			hints[about[keyword]] = true
		}
		names := items(s["type"])
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

// alternatives lists ways to make a value, the best first, or says why there are none.
func (p *proposal) alternatives(v variant, at spot) (list []alternative, why string) {
	kinds, hinted := kindsOf(v)
	if len(kinds) == 0 {
		return nil, "its types exclude each other"
	}
	var constants, preferred, listed []any
	fixed := false
	for _, s := range v.parts {
		if c, ok := s["const"]; ok {
			constants, fixed = append(constants, c), true
		}
		if d, ok := s["default"]; ok {
			preferred = append(preferred, d)
		}
		if e, ok := s["enum"].([]any); ok {
			listed, fixed = append(listed, e...), true
		}
	}
	for _, s := range v.parts {
		preferred = append(preferred, items(s["examples"])...)
	}
	add := func(value any) { list = append(list, alternative{variant: v, value: value}) }
	t := textOf(v)
	var last []any
	for _, values := range [][]any{constants, preferred, listed} {
		for i := range values {
			value := values[(i+at.vary)%len(values)]
			switch kind := kindOf(value); {
			case len(list) >= maxTries || p.step() != nil:
			case !p.admits(v, kinds, value):
			case !fixed && p.probe && (kind == "object" || kind == "array" || kind == "null"):
			case !fixed && value == "" && t.format != "":
				last = append(last, value)
			default:
				add(value)
			}
		}
	}
	for i := range list {
		list[i].given = true
	}
	if fixed {
		return list, "no value of its const or enum follows its other rules"
	}
	if at.depth == 0 && len(kinds) == len(kindOrder)-1 && !hinted {
		// A whole value that may be anything is an object, as arguments are.
		kinds = []string{"object"}
	}
	for _, kind := range kinds {
		switch kind {
		case "object", "array":
			list = append(list, alternative{variant: v, kind: kind})
		case "string":
			words, reason := t.words(at.vary)
			for _, word := range words {
				add(word)
			}
			why = reason
		case "number", "integer":
			numbers, reason := rangeOf(v, kind).numbers(at.vary)
			for _, n := range numbers {
				add(n)
			}
			why = reason
		case "boolean":
			add(at.vary%2 == 1)
			add(at.vary%2 == 0)
		case "null":
			add(nil)
		}
	}
	for _, value := range last {
		add(value)
	}
	return list, why
}

// admits reports whether a value has one of the types, and is among the constants
// that each part lists.
func (g *generator) admits(v variant, kinds []string, value any) bool {
	kind := kindOf(value)
	if !slices.Contains(kinds, kind) && (kind != "number" || !slices.Contains(kinds, "integer")) {
		return false
	}
	for _, s := range v.parts {
		if c, ok := s["const"]; ok && !reflect.DeepEqual(c, value) {
			return false
		}
		if e, ok := s["enum"].([]any); ok && !g.isListed(e, value) {
			return false
		}
	}
	return true
}

func (g *generator) isListed(enum []any, value any) bool {
	if len(enum) == 0 {
		return false
	}
	keys, known := g.listed[&enum[0]]
	if !known {
		keys = make(map[string]bool, len(enum))
		for _, c := range enum {
			keys[keyOf(c)] = true
		}
		g.listed[&enum[0]] = keys
	}
	return keys[keyOf(value)]
}

func items(value any) []any {
	list, _ := value.([]any)
	return list
}

// number returns the count that a keyword has, or a default.
func number(s map[string]any, keyword string, otherwise int) int {
	if n, ok := s[keyword].(json.Number); ok {
		if f, err := n.Float64(); err == nil && f >= 0 {
			return int(min(f, 1<<53))
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

// required returns the members that must be there, and those that they depend on.
func required(parts []map[string]any) []string {
	names := map[string]bool{}
	for _, s := range parts {
		for _, name := range items(s["required"]) {
			if name, ok := name.(string); ok {
				names[name] = true
			}
		}
	}
	queue := slices.Collect(maps.Keys(names))
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		for _, s := range parts {
			for _, keyword := range []string{"dependentRequired", "dependencies"} {
				dependencies, _ := s[keyword].(map[string]any)
				for _, other := range items(dependencies[name]) {
					if other, ok := other.(string); ok && !names[other] {
						names[other] = true
						queue = append(queue, other)
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// optional returns the declared members, sorted.
func optional(parts []map[string]any) []string {
	names := map[string]bool{}
	for _, s := range parts {
		properties, _ := s["properties"].(map[string]any)
		for name := range properties {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// memberParts returns the schemas for a member, or false if it may not be there.
func (g *generator) memberParts(parts []map[string]any, name string) (schemas []any, allowed bool) {
	covered := false
	for _, s := range parts {
		hit := false
		properties, _ := s["properties"].(map[string]any)
		if c, ok := properties[name]; ok {
			schemas, hit = append(schemas, c), true
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			if g.matches(pattern, name) {
				schemas, hit = append(schemas, patterns[pattern]), true
			}
		}
		if additional, ok := s["additionalProperties"]; ok && !hit {
			schemas, hit = append(schemas, additional), true
		}
		covered = covered || hit
	}
	for _, s := range parts {
		if unevaluated, ok := s["unevaluatedProperties"]; ok && !covered {
			schemas = append(schemas, unevaluated)
		}
	}
	return schemas, !slices.Contains(schemas, any(false))
}

func (g *generator) matches(pattern, name string) bool {
	g.work -= 10 + len(name)
	re, known := g.patterns[pattern]
	if !known {
		if len(pattern) <= maxPattern {
			re, _ = regexp.Compile(pattern)
		}
		g.patterns[pattern] = re
	}
	return re != nil && g.work > 0 && re.MatchString(name)
}

func (p *proposal) object(v variant, at spot, refs []string) (any, error) {
	// What the presence of a member brings with it may bring more.
	for range 8 {
		names := required(v.parts)
		if p.full {
			names = append(names, optional(v.parts)...)
		}
		v = p.withDependencies(v, names, at)
	}
	low, high := limits(v.parts, "minProperties", "maxProperties")
	names := required(v.parts)
	if len(names) > high || low > high {
		return nil, &problem{at.pointer, fmt.Sprintf("no object can have all its required members and at most %d", high)}
	}
	if low > maxItems || len(names) > maxItems {
		return nil, &problem{at.pointer, fmt.Sprintf("an object of %d members would be too large", max(low, len(names)))}
	}
	object := map[string]any{}
	add := func(name string, must bool) error {
		if _, has := object[name]; has {
			return nil
		}
		schemas, allowed := p.memberParts(v.parts, name)
		if !allowed {
			if must {
				return &problem{at.pointer, "member " + quote(name) + " is required, but not allowed"}
			}
			return nil
		}
		child := at.below(name, at.vary, refs)
		if !must {
			if found, err := p.expand(schemas, child); err != nil || recursive(found[0], child) == 1 {
				return nil
			}
		}
		made := len(p.places)
		member, err := p.build(schemas, child)
		if err == nil {
			object[name] = member
			return p.spend(len(name))
		}
		var impossible *problem
		if !must && errors.As(err, &impossible) {
			p.places = p.places[:made]
			return nil
		}
		return err
	}
	for _, name := range names {
		if err := add(name, true); err != nil {
			return nil, err
		}
	}
	for _, name := range optional(v.parts) {
		if len(object) < high && (p.full || len(object) < low) {
			if err := add(name, false); err != nil {
				return nil, err
			}
		}
	}
	for i, free := 0, freeNames(v.parts, low); len(object) < low && i < len(free); i++ {
		if err := add(free[i], false); err != nil {
			return nil, err
		}
	}
	if len(object) < low {
		return nil, &problem{at.pointer, fmt.Sprintf("no further members were found for an object of at least %d", low)}
	}
	return object, nil
}

// withDependencies adds the schemas that depend on members that are there.
func (p *proposal) withDependencies(v variant, names []string, at spot) variant {
	for _, s := range v.parts {
		for _, keyword := range []string{"dependentSchemas", "dependencies"} {
			dependencies, _ := s[keyword].(map[string]any)
			for _, name := range names {
				more, ok := dependencies[name].(map[string]any)
				if !ok || slices.ContainsFunc(v.parts, func(s map[string]any) bool { return reflect.DeepEqual(s, more) }) {
					continue
				}
				if found, err := p.spread([]variant{v}, more, at); err == nil && len(found) > 0 {
					v = found[0]
				}
			}
		}
	}
	return v
}

// freeNames proposes members that are not declared.
func freeNames(parts []map[string]any, n int) []string {
	var names []string
	for _, s := range parts {
		propertyNames, _ := s["propertyNames"].(map[string]any)
		for _, name := range items(propertyNames["enum"]) {
			if name, ok := name.(string); ok {
				names = append(names, name)
			}
		}
		patterns, _ := s["patternProperties"].(map[string]any)
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			for k := range min(n, 16) {
				if name, ok := match(pattern, 0, k); ok {
					names = append(names, name)
				}
			}
		}
	}
	for i := range n {
		names = append(names, "member"+strconv.Itoa(i+1))
	}
	return names
}

// itemParts returns the schemas for the item at an index, or false if none may be there.
func itemParts(parts []map[string]any, i int) (schemas []any, allowed bool) {
	for _, s := range parts {
		rest := s["items"]
		prefix := items(s["prefixItems"])
		if tuple, ok := rest.([]any); ok {
			prefix, rest = tuple, s["additionalItems"]
		}
		switch {
		case i < len(prefix):
			schemas = append(schemas, prefix[i])
		case rest != nil:
			schemas = append(schemas, rest)
		}
	}
	return schemas, !slices.Contains(schemas, any(false))
}

// prefixOf is the number of items that have a schema of their own.
func prefixOf(parts []map[string]any) int {
	n := 0
	for _, s := range parts {
		n = max(n, len(items(s["prefixItems"])), len(items(s["items"])))
	}
	return n
}

func (p *proposal) array(v variant, at spot, refs []string) (any, error) {
	low, high := limits(v.parts, "minItems", "maxItems")
	if low > high {
		return nil, &problem{at.pointer, fmt.Sprintf("no array has at least %d and at most %d items", low, high)}
	}
	first, unique, typed := prefixOf(v.parts), false, false
	next := first
	contained := map[int]any{} // by index
	for _, s := range v.parts {
		unique = unique || s["uniqueItems"] == true
		typed = typed || s["items"] != nil
		if s["contains"] == nil {
			continue
		}
		for range min(number(s, "minContains", 1), maxItems+1) {
			contained[next] = s["contains"]
			next++
		}
	}
	if len(contained) > 0 {
		low = max(low, next)
	}
	if low > high {
		return nil, &problem{at.pointer, fmt.Sprintf("an array of at most %d items cannot contain what it must", high)}
	}
	if low > maxItems {
		return nil, &problem{at.pointer, fmt.Sprintf("an array of %d items would be too large", low)}
	}
	wanted := low
	if p.full && (typed || first > 0) {
		wanted = min(max(low, first, 1), high, maxItems)
	}
	list := []any{}
	seen := map[string]bool{}
	for i := range wanted {
		schemas, allowed := itemParts(v.parts, i)
		if c, ok := contained[i]; ok {
			schemas = append(schemas, c)
		}
		vary := at.vary
		if unique {
			vary = i
		}
		child := at.below(i, vary, refs)
		if i >= low {
			if found, err := p.expand(schemas, child); !allowed || err != nil || recursive(found[0], child) == 1 {
				break
			}
		}
		if !allowed {
			return nil, &problem{at.pointer, fmt.Sprintf("item %d is needed, but not allowed", i)}
		}
		for {
			made := len(p.places)
			item, err := p.build(schemas, child)
			if err != nil {
				return nil, err
			}
			key := ""
			if unique {
				key = keyOf(item)
			}
			if seen[key] && p.choices[child.pointer]+1 < p.counts[child.pointer] {
				p.places = p.places[:made]
				p.choices[child.pointer]++
				continue
			}
			seen[key] = unique
			list = append(list, item)
			break
		}
	}
	return list, nil
}

// keyOf returns a text that equal values share.
func keyOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
