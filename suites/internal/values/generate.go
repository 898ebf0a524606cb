// Package values makes values from JSON Schemas as a peer declares them, in a
// tool's inputSchema or an elicitation's requestedSchema. The dialect is draft 2020-12
// unless "$schema" says otherwise, the formats are not asserted, and nothing is
// loaded from elsewhere.
//
// It proposes values from the keywords that are easy to follow, and has each judged by the
// compiled schema: what that finds wrong says which part to propose otherwise. A
// keyword that it does not understand may cost a value, but never gives a wrong one.
//
// A schema comes from a peer and may be hostile. All work is counted, never
// timed: a schema beyond the bounds yields no value, and the reason.
//
// Schemas are given and values are returned as decoded JSON: map[string]any,
// []any, string, bool, nil, and for numbers [encoding/json.Number]; in a schema
// float64, int and int64 are welcome too. The same schema always gives the same
// values.
package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/schema"
)

// Bounds on one value and on one call.
const (
	maxDepth    = 40        // levels of a value
	maxItems    = 1000      // items of an array, members of an object
	maxText     = 1 << 17   // characters of one string
	maxBytes    = 1 << 20   // text of one value
	maxSteps    = 20_000    // decisions for one value
	maxVariants = 32        // combinations of alternatives at one place
	maxTries    = 100       // values that are proposed
	maxWork     = 2_000_000 // work of judging all values of a call
)

// Valid returns an instance of the schema that is as small as the schema lets it
// be: an object has its required members and no other unless that makes it
// invalid. A value is taken from const, default, examples or enum, in this order, and
// else made to fit the type and its bounds. A default or example that is empty
// in spite of a format comes last.
//
// If no value was found, ok is false and why says the reason in plain words,
// preceded by the JSON pointer of the place within the value unless it is the whole.
// This does not prove that there is none: the search is bounded, and patterns, for
// example, are not always understood.
func Valid(schema any) (value any, ok bool, why string) { return answer(schema, size{}) }

// Full is like [Valid] but gives objects their optional members and arrays an item
// where the schema lets it, except where that would never end.
func Full(schema any) (value any, ok bool, why string) { return answer(schema, size{full: true}) }

func answer(document any, s size) (value any, ok bool, why string) {
	g, err := newGenerator(document)
	if err != nil {
		return nil, false, err.Error()
	}
	found, err := g.find(s)
	if err != nil {
		return nil, false, err.Error()
	}
	return found.value, true, ""
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

	patterns map[string]*regexp.Regexp // compiled; nil if they cannot be
	listed   map[*any]map[string]bool  // the keys of the values of an enum, by its first
}

func newGenerator(document any) (*generator, error) {
	tool, err := schema.CompileTool(document)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	g := &generator{tool: tool, work: maxWork, patterns: map[string]*regexp.Regexp{}, listed: map[*any]map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return g, d.Decode(&g.root)
}

var errWork = errors.New("the schema takes too much work")

// find makes a value of a size or, failing that, of the other.
func (g *generator) find(s size) (*proposal, error) {
	found, err := g.search(s)
	if err == nil || errors.Is(err, errWork) {
		return found, err
	}
	other := s
	other.full = !s.full
	if found, otherErr := g.search(other); otherErr == nil {
		if s.full {
			g.grow(found, s)
		}
		return found, nil
	}
	return nil, err
}

// search proposes values until the schema accepts one. The error is that of the first.
func (g *generator) search(s size) (*proposal, error) {
	var first error
	choices := map[string]int{}
	for range maxTries {
		p := &proposal{generator: g, size: s, choices: choices, counts: map[string]int{}, bytes: maxBytes, steps: maxSteps}
		err := p.make()
		if err == nil {
			list := g.tool.ValidateWithin(p.value, &g.work)
			if len(list) == 0 {
				return p, nil
			}
			if list[0].Keyword == schema.Undecided {
				return nil, errWork
			}
			err = &problem{list[0].Pointer, "the value that was made is not valid: " + list[0].Message}
		}
		if first == nil {
			first = err
		}
		var at *problem
		if !errors.As(err, &at) || !p.advance(at.pointer) {
			break
		}
	}
	return nil, first
}

// grow adds the optional members of the outermost object that the schema bears,
// one after the other.
func (g *generator) grow(found *proposal, s size) {
	object, ok := found.value.(map[string]any)
	if !ok {
		return
	}
	root := found.places[len(found.places)-1]
	for _, name := range optional(root.parts) {
		if _, has := object[name]; has {
			continue
		}
		p := &proposal{generator: g, size: s, choices: map[string]int{}, counts: map[string]int{}, bytes: maxBytes, steps: maxSteps}
		parts, allowed := g.memberParts(root.parts, name)
		member, err := p.build(parts, spot{pointer: "/" + escape(name), path: []any{name}, depth: 1, within: root.refs})
		if !allowed || err != nil {
			continue
		}
		object[name] = member
		if len(g.tool.ValidateWithin(object, &g.work)) > 0 {
			delete(object, name)
			continue
		}
		found.places = append(p.places, found.places...)
	}
}

// A problem is why no value was found at a place.
type problem struct{ pointer, reason string }

func (p *problem) Error() string {
	if p.pointer == "" {
		return p.reason
	}
	return short(p.pointer, 200) + ": " + p.reason
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// short cuts a text from a peer to about n bytes and makes it printable.
func short(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func quote(s string) string { return strconv.Quote(short(s, 80)) }
