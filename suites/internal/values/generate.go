// Package values makes values from JSON Schemas as a peer declares them, in a
// tool's inputSchema or an elicitation's requestedSchema. The dialect is draft 2020-12
// unless "$schema" says otherwise, the formats are not asserted, and nothing is
// loaded from elsewhere.
//
// It proposes values from the keywords that generators of schemas write. The compiled schema judges each proposal,
// and its errors say which part to change. A keyword that it does not understand may cost a value, but never gives a
// wrong one.
//
// A schema comes from a peer and may be hostile. All work is counted, never
// timed: a schema beyond the bounds yields no value.
//
// Schemas are given and values are returned as decoded JSON: map[string]any,
// []any, string, bool, nil, and for numbers [encoding/json.Number]; in a schema
// float64, int and int64 are welcome too. The same schema always gives the same
// values.
package values

import (
	"bytes"
	"encoding/json"

	"github.com/mcpconform/mcpconform/schema"
)

// Bounds on one value and on one call.
const (
	maxDepth    = 40        // levels of a value
	maxItems    = 1000      // items of an array, members of an object
	maxText     = 1 << 17   // characters of one string
	maxBytes    = 1 << 20   // text of one value
	maxVariants = 32        // combinations of alternatives at one place
	maxTries    = 100       // values that are proposed
	maxWork     = 2_000_000 // work of making and judging all values of a call
	costOfStep  = 50        // work of one decision
)

// Valid returns an instance of the schema that is as small as the schema lets it
// be: an object has its required members and no other unless that makes it
// invalid. A value is taken from const, default, examples or enum, in this order, and
// else made to fit the type and its bounds. A default or example that is empty
// in spite of a format comes last.
//
// That ok is false does not prove that there is none: the search is bounded, and patterns, for
// example, are not always understood.
func Valid(schema any) (value any, ok bool) { return answer(schema, size{}) }

// Full is like [Valid], with all optional members in objects and an item in each array, as far as the schema allows.
// It stops at endless recursion.
func Full(schema any) (value any, ok bool) { return answer(schema, size{full: true}) }

func answer(document any, s size) (value any, ok bool) {
	g, err := newGenerator(document)
	if err != nil {
		return nil, false
	}
	if found := g.find(s); found != nil {
		return found.value, true
	}
	return nil, false
}

// A size says how much of a value is wanted.
type size struct {
	full bool // with optional members
	// probe asks for a value with as many places to break as possible: a default
	// that hides the places below it is not used.
	probe bool
}

// A generator holds one schema and the bound on the work of one call.
type generator struct {
	root any          // a copy, with every number as a json.Number
	tool *schema.Tool // has the last word
	work int          // what is left
}

func newGenerator(document any) (*generator, error) {
	tool, err := schema.CompileTool(document)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	g := &generator{tool: tool, work: maxWork}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return g, d.Decode(&g.root)
}

// fits reports whether the schema accepts a value.
func (g *generator) fits(value any) bool { return len(g.tool.ValidateWithin(value, &g.work)) == 0 }

// find makes a value of a size or, failing that, of the other. It returns nil if it found none.
func (g *generator) find(s size) *proposal {
	if found := g.search(s); found != nil || g.work < 0 {
		return found
	}
	found := g.search(size{!s.full, s.probe})
	if found != nil && s.full {
		g.grow(found)
	}
	return found
}

// search proposes values until the schema accepts one.
func (g *generator) search(s size) *proposal {
	choices := map[string]int{}
	for range maxTries {
		p := g.propose(s, choices)
		value, ok := p.build([]any{g.root}, spot{within: []string{"#"}})
		if p.value = value; ok {
			faults := g.tool.ValidateWithin(value, &g.work)
			if len(faults) == 0 {
				return p
			}
			p.failed = faults[0].Pointer
		}
		if g.work < 0 || !p.advance(p.failed) {
			break
		}
	}
	return nil
}

func (g *generator) propose(s size, choices map[string]int) *proposal {
	return &proposal{generator: g, size: s, choices: choices, counts: map[string]int{}, bytes: maxBytes}
}

// grow adds the optional members of the outermost object that the schema bears,
// one after the other.
func (g *generator) grow(found *proposal) {
	object, ok := found.value.(map[string]any)
	if !ok {
		return
	}
	root := found.places[len(found.places)-1]
	for _, name := range optional(root.parts) {
		if _, has := object[name]; has {
			continue
		}
		p := g.propose(size{full: true, probe: found.probe}, map[string]int{})
		schemas, allowed := g.memberParts(root.parts, name)
		member, ok := p.build(schemas, root.below(name, root.refs))
		if !allowed || !ok {
			continue
		}
		object[name] = member
		if !g.fits(object) {
			delete(object, name)
			continue
		}
		found.places = append(p.places, found.places...)
	}
}
