package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// effect is what a change of a schema does to the values that it allows.
type effect int

const (
	narrows effect = 1 << iota // some values are no longer allowed: breaks who sends them
	widens                     // other values are allowed: breaks who receives them
)

// schemaChange is one difference of two schemas.
type schemaChange struct {
	what   string
	effect effect
}

// Bounds on the comparison of two schemas, which may be recursive.
const (
	maxSchemaDepth = 16
	maxSchemaNodes = 5000
)

// mayBreak ends what is said of a change whose effect is not known.
const mayBreak = " changed, which may be breaking"

// schemaComparer compares two schemas.
type schemaComparer struct {
	side   string // input or output
	roots  [2]map[string]any
	nodes  int
	given  bool            // whether the bounds were met
	seen   map[string]bool // pairs of references
	change []schemaChange
}

// compareSchemas returns how a schema of a tool changed. Keywords that combine schemas, and
// whatever else is not known here, are compared as they are written.
func compareSchemas(side string, before, after json.RawMessage) []schemaChange {
	b, a := object(before), object(after)
	c := &schemaComparer{side: side, roots: [2]map[string]any{b, a}, seen: make(map[string]bool)}
	switch {
	case b == nil && a == nil:
		return nil
	case b == nil || a == nil:
		c.say("the "+side+" schema"+mayBreak, 0)
		return c.change
	}
	c.schemas("", b, a, 0)
	definitions := func(s map[string]any) string { return canonical([]any{s["$defs"], s["definitions"]}) }
	if c.given || len(c.change) == 0 && definitions(b) != definitions(a) {
		c.say("the "+side+" schema"+mayBreak, 0)
	}
	return c.change
}

func (c *schemaComparer) say(what string, e effect) {
	if !slices.Contains(c.change, schemaChange{what, e}) {
		c.change = append(c.change, schemaChange{what, e})
	}
}

// place names a part of the schema.
func (c *schemaComparer) place(path string) string {
	if path == "" {
		return "the " + c.side
	}
	return "the " + c.side + " property " + inQuotes(path)
}

// compared are the keywords with rules of their own, and those that say nothing about values.
var compared = []string{
	"type", "enum", "const", "properties", "required", "additionalProperties", "items", "uniqueItems", "pattern",
	"$schema", "$id", "$comment", "$ref", "$defs", "definitions", "title", "description", "default", "examples",
	"deprecated", "readOnly", "writeOnly",
}

// bounds are keywords with a number: true for those that narrow where it rises.
var bounds = map[string]bool{
	"minimum": true, "exclusiveMinimum": true, "minLength": true, "minItems": true, "minProperties": true,
	"maximum": false, "exclusiveMaximum": false, "maxLength": false, "maxItems": false, "maxProperties": false,
}

func (c *schemaComparer) schemas(path string, before, after any, depth int) {
	b, isObject := before.(map[string]any)
	a, areObjects := after.(map[string]any)
	if !isObject || !areObjects {
		if canonical(before) != canonical(after) {
			c.say("the schema of "+c.place(path)+mayBreak, 0)
		}
		return
	}
	if c.nodes++; depth > maxSchemaDepth || c.nodes > maxSchemaNodes {
		c.given = c.given || canonical(c.roots[0]) != canonical(c.roots[1])
		return
	}
	if from, to := b["$ref"], a["$ref"]; from != nil && to != nil {
		pair := canonical([]any{b, a})
		if c.seen[pair] {
			return // a recursive schema, or one that stands in several places
		}
		c.seen[pair] = true
	}
	b, a = c.plain(0, b), c.plain(1, a)
	c.types(path, b, a)
	c.values(path, b, a)
	c.properties(path, b, a, depth)
	was, is := b["items"], a["items"]
	switch {
	case was == nil && is != nil:
		c.say("the items of "+c.place(path)+" have a schema now", narrows)
	case was != nil && is == nil:
		c.say("the items of "+c.place(path)+" have no schema any more", widens)
	case was != nil:
		c.schemas(path+"[]", was, is, depth+1)
	}
	for _, k := range union(b, a) {
		if canonical(b[k]) != canonical(a[k]) {
			c.keyword(path, k, b, a)
		}
	}
}

// limit says that a keyword allows less than before, or more.
func (c *schemaComparer) limit(path, k string, b, a map[string]any, less bool) {
	e := widens
	if less {
		e = narrows
	}
	c.say(fmt.Sprintf("%s of %s %s", k, c.place(path), wasIs(b[k], a[k])), e)
}

// keyword says how a keyword of a schema changed.
func (c *schemaComparer) keyword(path, k string, b, a map[string]any) {
	rises, isBound := bounds[k]
	was, wasNumber := b[k].(float64)
	is, isNumber := a[k].(float64)
	switch {
	case isBound && (wasNumber || b[k] == nil) && (isNumber || a[k] == nil):
		c.limit(path, k, b, a, a[k] != nil && (b[k] == nil || is > was == rises))
	case k == "pattern" && (b[k] == nil || a[k] == nil):
		c.limit(path, k, b, a, b[k] == nil)
	case k == "uniqueItems":
		c.limit(path, k, b, a, a[k] == true)
	case k == "title" || k == "description" || k == "default":
		c.say(fmt.Sprintf("the %s of %s changed", k, c.place(path)), 0)
	case k == "pattern" || k == "$ref" || !slices.Contains(compared, k):
		c.say(fmt.Sprintf("%s of %s%s", wordOf(k), c.place(path), mayBreak), 0)
	}
}

// wordOf is a keyword as it stands in a sentence: the target may have made it up.
func wordOf(keyword string) string {
	if _, ok := bounds[keyword]; ok {
		return keyword
	}
	return inQuotes(keyword)
}

// plain follows references into the schema itself, and writes a choice between mere types
// as a type.
func (c *schemaComparer) plain(side int, schema map[string]any) map[string]any {
	for range maxSchemaDepth {
		ref, _ := schema["$ref"].(string)
		target, ok := c.find(side, ref)
		if !ok {
			break
		}
		merged := maps.Clone(target)
		for k, v := range schema {
			if k != "$ref" {
				merged[k] = v
			}
		}
		schema = merged
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		choice, _ := schema[k].([]any)
		var types []any
		for _, x := range choice {
			if o, _ := x.(map[string]any); len(o) == 1 {
				if name, ok := o["type"].(string); ok {
					types = append(types, name)
				}
			}
		}
		if _, typed := schema["type"]; !typed && len(types) > 0 && len(types) == len(choice) {
			schema = maps.Clone(schema)
			delete(schema, k)
			schema["type"] = types
		}
	}
	return schema
}

// find returns what a reference such as #/$defs/Place leads to.
func (c *schemaComparer) find(side int, ref string) (map[string]any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	at := c.roots[side]
	for _, name := range strings.Split(pointer, "/") {
		next, ok := at[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)].(map[string]any)
		if !ok {
			return nil, false
		}
		at = next
	}
	return at, true
}

// types compares the types that a schema allows.
func (c *schemaComparer) types(path string, before, after map[string]any) {
	if canonical(before["type"]) == canonical(after["type"]) {
		return
	}
	b, a := typesOf(before), typesOf(after)
	var e effect
	if !covers(a, b) {
		e |= narrows
	}
	if !covers(b, a) {
		e |= widens
	}
	if e == 0 {
		return // written in another way
	}
	c.say(fmt.Sprintf("the type of %s was %s and is %s", c.place(path), typeWords(b), typeWords(a)), e)
}

// typesOf returns the types that a schema allows, nil for all.
func typesOf(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		types := make([]string, 0, len(t))
		for _, x := range t {
			if s, ok := x.(string); ok && !slices.Contains(types, s) {
				types = append(types, s)
			}
		}
		slices.Sort(types)
		return types
	}
	return nil
}

// covers reports whether all of some types are among others.
func covers(types, some []string) bool {
	if types == nil || some == nil {
		return types == nil
	}
	return !slices.ContainsFunc(some, func(t string) bool {
		return !slices.Contains(types, t) && (t != "integer" || !slices.Contains(types, "number"))
	})
}

func typeWords(types []string) string {
	if types == nil {
		return "not limited"
	}
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = inQuotes(t)
	}
	return strings.Join(words, " or ")
}

// values compares enum, of which const is one with a single value.
func (c *schemaComparer) values(path string, before, after map[string]any) {
	b, a := valuesOf(before), valuesOf(after)
	switch {
	case b == nil && a != nil:
		c.say(fmt.Sprintf("%s is now limited to %s", c.place(path), list(a)), narrows)
	case b != nil && a == nil:
		c.say(fmt.Sprintf("%s is no longer limited to %s", c.place(path), list(b)), widens)
	default:
		if gone := without(b, a); len(gone) > 0 {
			c.say(fmt.Sprintf("%s can no longer be %s", c.place(path), list(gone)), narrows)
		}
		if more := without(a, b); len(more) > 0 {
			c.say(fmt.Sprintf("%s can now be %s", c.place(path), list(more)), widens)
		}
	}
}

func valuesOf(schema map[string]any) []string {
	values, ok := schema["enum"].([]any)
	if v, is := schema["const"]; is {
		values, ok = []any{v}, true
	}
	if !ok {
		return nil
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = canonical(v)
	}
	return texts
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

// list joins values for a sentence.
func list(values []string) string {
	const most = 5
	more := ""
	if n := len(values) - most; n > 0 {
		values, more = values[:most], fmt.Sprintf(" or %d more", n)
	}
	short := make([]string, len(values))
	for i, v := range values {
		short[i] = shown(v)
	}
	return strings.Join(short, ", ") + more
}

// properties compares the members of an object.
func (c *schemaComparer) properties(path string, before, after map[string]any, depth int) {
	then, _ := before["properties"].(map[string]any)
	now, _ := after["properties"].(map[string]any)
	needed, needs := required(before), required(after)
	names := union(then, now)
	for _, n := range union(needed, needs) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	closed := after["additionalProperties"] == false
	for _, name := range names {
		at := name
		if path != "" {
			at = path + "." + name
		}
		b, was := then[name]
		a, is := now[name]
		was, is = was || needed[name], is || needs[name]
		switch {
		case !was && needs[name]:
			c.say(c.place(at)+" is new and required", narrows)
		case !was:
			c.say(c.place(at)+" is new and optional", 0)
		case !is && needed[name]:
			c.say(c.place(at)+" was removed, and was required", narrows|widens)
		case !is && closed:
			c.say(c.place(at)+" was removed, and no others are allowed", narrows)
		case !is:
			c.say(c.place(at)+" was removed, and was optional", 0)
		case needs[name] && !needed[name]:
			c.say(c.place(at)+" is now required", narrows)
		case needed[name] && !needs[name]:
			c.say(c.place(at)+" is now optional", widens)
		}
		if b != nil && a != nil {
			c.schemas(at, b, a, depth+1)
		}
	}
	was, is := before["additionalProperties"], after["additionalProperties"]
	open := func(v any) bool { return v == nil || v == true }
	switch {
	case open(was) && open(is) || canonical(was) == canonical(is):
	case open(was):
		c.say(c.place(path)+" no longer takes just any other property", narrows)
	case open(is):
		c.say(c.place(path)+" takes any other property now", widens)
	case is == false:
		c.say(c.place(path)+" no longer takes other properties", narrows)
	case was == false:
		c.say(c.place(path)+" takes other properties now", widens)
	default:
		c.schemas(path+".*", was, is, depth+1)
	}
}

func required(schema map[string]any) map[string]bool {
	set := make(map[string]bool)
	for _, name := range wire.Strings(schema, "required") {
		set[name] = true
	}
	return set
}

// wasIs says how a value changed that need not be there.
func wasIs(before, after any) string {
	switch {
	case before == nil:
		return "is new: " + shown(canonical(after))
	case after == nil:
		return "was removed"
	}
	return "was " + shown(canonical(before)) + " and is " + shown(canonical(after))
}

// canonical is JSON with sorted members.
func canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
