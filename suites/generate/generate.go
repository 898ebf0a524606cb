// Package generate makes values from JSON Schemas as a peer declares them: in a
// tool's inputSchema, in an elicitation's requestedSchema, or, by way of
// [PromptSchema], in the arguments of a prompt. The dialect is draft 2020-12
// unless "$schema" says otherwise, the formats are not asserted, and nothing is
// loaded from elsewhere.
//
// A schema comes from a peer and may be hostile. All work is counted in steps,
// never by the clock: a schema beyond the bounds yields no value, and the reason.
//
// Schemas are given and values are returned as decoded JSON: map[string]any,
// []any, string, bool, nil, and for numbers [encoding/json.Number]; in a schema
// float64, int and int64 are welcome too. The same schema always gives the same
// values.
package generate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds on one call. A single judgement of a value has a bound of its own in
// package schema.
const (
	maxDepth = 100       // levels of a value
	maxText  = 1 << 20   // bytes of one string
	maxBytes = 4 << 20   // text produced, with what was discarded
	maxSteps = 200_000   // decisions
	maxWork  = 2_000_000 // pairs of schema and value that are judged
)

// Valid returns an instance of the schema that is as small as the schema lets it
// be: an object has its required members and no other unless that makes it
// invalid. A value is taken from const, default, examples or enum, in this order, and
// else made to fit the type and its bounds. A default or example that is not of
// the schema's format comes last.
//
// If no value was found, ok is false and why says the reason in plain words,
// preceded by the JSON pointer of the place within the value unless it is the whole.
// This does not prove that there is none: the search is bounded and patterns, for
// one, are not always understood.
func Valid(schema any) (value any, ok bool, why string) {
	return answer(produce(schema, request{}))
}

// Full is like [Valid] but gives objects their optional members and arrays an item
// where the schema lets it, except where that would never end.
func Full(schema any) (value any, ok bool, why string) {
	return answer(produce(schema, request{full: true}))
}

func answer(value any, err error) (any, bool, string) {
	if err != nil {
		return nil, false, err.Error()
	}
	return value, true, ""
}

func produce(document any, r request) (any, error) {
	g, err := newGenerator(document)
	if err != nil {
		return nil, err
	}
	return g.first(r)
}

var errWork = errors.New("the schema asks for too much work")

// first makes a value as requested or, failing that, of the other size.
func (g *generator) first(r request) (any, error) {
	value, err := g.run(r)
	if err == nil || !r.full && errors.Is(err, errWork) {
		return value, err
	}
	r.full = !r.full
	if value, other := g.run(r); other == nil {
		return value, nil
	}
	return nil, err
}

// run makes one value with fresh bounds and has it judged.
func (g *generator) run(r request) (value any, err error) {
	defer func() {
		if e := g.stopped(recover()); e != nil {
			value, err = nil, e
		}
	}()
	g.refill()
	value, err = g.generate(g.conj(), place{}, r)
	if err != nil {
		return nil, err
	}
	if list := g.tool.Validate(value); len(list) > 0 {
		return nil, fmt.Errorf("the value that was made is not valid: %s", list[0])
	}
	return value, nil
}

// stopped turns what ended a search from within into an error.
func (g *generator) stopped(p any) error {
	switch p := p.(type) {
	case nil:
		return nil
	case outOfWork:
		return errWork
	default:
		return fmt.Errorf("the schema could not be evaluated: %v", p)
	}
}

// A request says which value is wanted.
type request struct {
	full bool // with optional members
	// probe asks for a value with as many places to break as possible: a default
	// that hides the places below it is not used.
	probe bool
	// vary is the number of the value within a series of different ones.
	vary  int
	avoid map[string]bool // keys (see key) of values not wanted
}

// below is the request for a member or an item.
func (r request) below() request { return request{full: r.full, probe: r.probe} }

// A place is where a value belongs. It is a chain because names may be long and
// few places are ever written out.
type place struct {
	up    *place
	name  string
	depth int
}

func (p place) member(name string) place { return place{&p, name, p.depth + 1} }

func (p place) item(i int) place { return p.member(strconv.Itoa(i)) }

// pointer returns the place as a JSON pointer.
func (p place) pointer() string {
	tokens := make([]string, p.depth)
	for at := &p; at.up != nil; at = at.up {
		tokens[at.depth-1] = "/" + strings.ReplaceAll(strings.ReplaceAll(at.name, "~", "~0"), "/", "~1")
	}
	return strings.Join(tokens, "")
}

// A problem is why no value was found at a place.
type problem struct {
	at     place
	reason string
}

func (p *problem) Error() string {
	if p.at.depth == 0 {
		return p.reason
	}
	return short(p.at.pointer(), 200) + ": " + p.reason
}

func (p place) problem(format string, args ...any) error {
	return &problem{p, fmt.Sprintf(format, args...)}
}

// short cuts a text from a peer to about n bytes and makes it printable.
func short(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func quote(s string) string { return strconv.Quote(short(s, 80)) }
