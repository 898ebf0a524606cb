package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/schema"
)

const (
	maxSchemaDepth = 500
	maxPatternSize = 2_000 // instructions of a compiled pattern
)

// A generator holds one compiled schema and the bounds of one search. The
// search walks the compiled form, in which references are resolved whatever
// their dialect, and judges parts of a value by parts of the schema.
type generator struct {
	tool  *schema.Tool // has the last word
	root  *jsonschema.Schema
	facts map[*jsonschema.Schema]*facts
	// costs has what comparing with the constants of a schema costs. The library
	// does so before it calls the meter, so who leads to the schema is charged.
	costs map[*jsonschema.Schema]int

	// active counts the schemas that values under construction come from.
	active map[*jsonschema.Schema]int

	steps, work, bytes int
}

// outOfWork ends a search from anywhere within it, the library included, which
// offers no other way out. It is recovered where the search began.
type outOfWork struct{}

func (g *generator) refill() {
	g.steps, g.work, g.bytes = maxSteps, maxWork, maxBytes
	clear(g.active)
}

func (g *generator) step(n int) {
	if g.steps -= n; g.steps < 0 {
		panic(outOfWork{})
	}
}

func (g *generator) charge(n int) {
	if g.work -= n; g.work < 0 {
		panic(outOfWork{})
	}
}

func (g *generator) spend(bytes int) {
	if g.bytes -= bytes; g.bytes < 0 {
		panic(outOfWork{})
	}
}

func (g *generator) conj() []*jsonschema.Schema { return []*jsonschema.Schema{g.root} }

// facts is what a schema says in the form that the search needs it.
type facts struct {
	types    kinds // allowed by "type"
	hint     kinds // what its keywords are about
	format   string
	names    []string // declared members, sorted
	patterns []patternMember
	triggers []trigger
}

type patternMember struct {
	pattern jsonschema.Regexp
	schema  *jsonschema.Schema
}

// A trigger is what the presence of a member brings with it.
type trigger struct {
	name   string
	names  []string
	schema *jsonschema.Schema // nil if only members are required
}

// kinds is a set of JSON types in which whole numbers and others are distinct.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindWhole
	kindFraction
	kindBoolean
	kindObject
	kindArray
	kindNull

	kindNumber = kindWhole | kindFraction
	kindAny    = 1<<7 - 1
)

var kindNames = map[string]kinds{
	"string": kindString, "integer": kindWhole, "number": kindNumber, "boolean": kindBoolean,
	"object": kindObject, "array": kindArray, "null": kindNull,
}

func kindOf(value any) kinds {
	switch value.(type) {
	case string:
		return kindString
	case json.Number:
		return kindNumber
	case bool:
		return kindBoolean
	case map[string]any:
		return kindObject
	case []any:
		return kindArray
	}
	return kindNull
}

type refuser struct{}

func (refuser) Load(string) (any, error) { return nil, errors.New("nothing is loaded") }

// newGenerator compiles a schema. Its error says why the schema cannot be used.
func newGenerator(document any) (g *generator, err error) {
	defer func() {
		// The library guards its invariants with panics; a schema from a peer
		// must not end the program.
		if p := recover(); p != nil {
			g, err = nil, fmt.Errorf("the schema could not be compiled: %v", p)
		}
	}()
	document, err = normalise(document, 0)
	if err != nil {
		return nil, err
	}
	g = &generator{
		facts:  map[*jsonschema.Schema]*facts{},
		costs:  map[*jsonschema.Schema]int{},
		active: map[*jsonschema.Schema]int{},
	}
	if g.tool, err = schema.CompileTool(document); err != nil {
		return nil, err
	}
	const location = "mcpconform:///tool"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuser{})
	c.UseRegexpEngine(compilePattern)
	// The library tells the name of a format only if it is to check it.
	c.AssertFormat()
	for name := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(location, document); err != nil {
		return nil, err
	}
	if g.root, err = c.Compile(location); err != nil {
		return nil, err
	}
	g.survey()
	return g, nil
}

// normalise copies a schema so that no value shares memory with the caller's, with
// every number as a json.Number of moderate length and exponent: exact arithmetic on
// others would take minutes.
func normalise(value any, depth int) (any, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("the schema is nested more than %d levels deep", maxSchemaDepth)
	}
	switch v := value.(type) {
	case nil, bool, string:
		return v, nil
	case int:
		return json.Number(strconv.Itoa(v)), nil
	case int64:
		return json.Number(strconv.FormatInt(v, 10)), nil
	case float64:
		return normaliseFloat(v)
	case json.Number:
		text := string(v)
		if !json.Valid([]byte(text)) || kindOfText(text) != kindNumber {
			return nil, fmt.Errorf("%s in the schema is no number", quote(text))
		}
		if len(text) <= 64 {
			_, exponent, found := strings.Cut(strings.ToLower(text), "e")
			if e, err := strconv.Atoi(exponent); !found || err == nil && e >= -400 && e <= 400 {
				return v, nil
			}
		}
		f, err := v.Float64()
		if err != nil {
			f = math.Copysign(math.MaxFloat64, f)
		}
		return normaliseFloat(f)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = normalise(item, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			var err error
			if object[name], err = normalise(member, depth+1); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return nil, fmt.Errorf("the schema has a %T, which is no decoded JSON", value)
}

func kindOfText(text string) kinds {
	if text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		return kindNumber
	}
	return 0
}

func normaliseFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("the schema has a number that is not finite")
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
}

// anything is a pattern that is not evaluated.
type anything string

func (a anything) String() string        { return string(a) }
func (anything) MatchString(string) bool { return true }

// pattern is a regular expression with its size, the cost of each character.
type pattern struct {
	*regexp.Regexp
	size int
}

func compilePattern(text string) (jsonschema.Regexp, error) {
	if len(text) > 4*maxPatternSize {
		return anything(text), nil
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return anything(text), nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPatternSize {
		return anything(text), nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return anything(text), nil
	}
	return pattern{re, len(program.Inst)}, nil
}

func patternSize(re jsonschema.Regexp) int {
	if p, ok := re.(pattern); ok {
		return p.size
	}
	return 0
}

// survey gathers the facts of every schema within reach and makes the library
// charge for its work: it calls the check of the format once for each pair of
// schema and value, before it descends.
func (g *generator) survey() {
	cost := func(s *jsonschema.Schema) int {
		if _, known := g.costs[s]; !known {
			g.costs[s] = comparison(s)
		}
		return g.costs[s]
	}
	cost(g.root)
	queue := []*jsonschema.Schema{g.root}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if s == nil || g.facts[s] != nil {
			continue
		}
		f := factsOf(s)
		g.facts[s] = f
		beside, below := children(s, f)
		queue = append(append(queue, beside...), below...)

		self, each, patterns := 1, 1+len(f.patterns), 0
		for _, c := range beside {
			self += cost(c)
		}
		for _, c := range below {
			each = max(each, len(f.patterns)+cost(c))
		}
		for _, p := range f.patterns {
			patterns += patternSize(p.pattern)
		}
		s.Format = &jsonschema.Format{Name: "meter", Validate: func(value any) error {
			switch v := value.(type) {
			case map[string]any:
				g.charge(self + len(v)*each)
				if patterns > 0 {
					for name := range v {
						g.charge(matching(name, patterns))
					}
				}
			case []any:
				g.charge(self + len(v)*each)
			case string:
				g.charge(self + len(v)/4096 + matching(v, patternSize(s.Pattern)))
			default:
				g.charge(self)
			}
			return nil
		}}
	}
}

// matching is what it costs to match a text with patterns of a total size.
func matching(text string, size int) int { return len(text) * size / 16 }

// comparison is what comparing a value with the constants of a schema costs.
func comparison(s *jsonschema.Schema) int {
	if s == nil {
		return 1
	}
	n := 0
	if s.Enum != nil {
		n += weight(s.Enum.Values)
	}
	if s.Const != nil {
		n += weight(*s.Const)
	}
	return 1 + n/16
}

// weight is what comparing with a constant costs at most, in sixteenths: the
// library does exact arithmetic on numbers, but strings are compared at once.
func weight(value any) int {
	switch v := value.(type) {
	case json.Number:
		return 64
	case []any:
		n := 2
		for _, item := range v {
			n += weight(item)
		}
		return n
	case map[string]any:
		n := 2
		for _, member := range v {
			n += 4 + weight(member)
		}
		return n
	}
	return 2
}

func factsOf(s *jsonschema.Schema) *facts {
	f := &facts{types: kindAny}
	if s.Types != nil && !s.Types.IsEmpty() {
		f.types = 0
		for _, name := range s.Types.ToStrings() {
			f.types |= kindNames[name]
		}
	}
	if s.Format != nil {
		f.format = s.Format.Name
	}
	for name := range s.Properties {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	for re, c := range s.PatternProperties {
		f.patterns = append(f.patterns, patternMember{re, c})
	}
	slices.SortFunc(f.patterns, func(a, b patternMember) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	for name, names := range s.DependentRequired {
		f.triggers = append(f.triggers, trigger{name: name, names: names})
	}
	for name, c := range s.DependentSchemas {
		f.triggers = append(f.triggers, trigger{name: name, schema: c})
	}
	for name, d := range s.Dependencies {
		switch d := d.(type) {
		case []string:
			f.triggers = append(f.triggers, trigger{name: name, names: d})
		case *jsonschema.Schema:
			f.triggers = append(f.triggers, trigger{name: name, schema: d})
		}
	}
	slices.SortFunc(f.triggers, func(a, b trigger) int {
		if c := strings.Compare(a.name, b.name); c != 0 || (a.schema == nil) == (b.schema == nil) {
			return c
		}
		if a.schema == nil {
			return -1
		}
		return 1
	})
	if len(f.names)+len(f.patterns)+len(f.triggers)+len(s.Required) > 0 || s.AdditionalProperties != nil ||
		s.PropertyNames != nil || s.MinProperties != nil || s.MaxProperties != nil || s.UnevaluatedProperties != nil {
		f.hint |= kindObject
	}
	if s.Items != nil || s.Items2020 != nil || len(s.PrefixItems) > 0 || s.Contains != nil || s.MinItems != nil ||
		s.MaxItems != nil || s.UniqueItems || s.UnevaluatedItems != nil {
		f.hint |= kindArray
	}
	if s.MinLength != nil || s.MaxLength != nil || s.Pattern != nil || f.format != "" {
		f.hint |= kindString
	}
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil {
		f.hint |= kindNumber
	}
	return f
}

// children returns what a schema applies to the value itself and what it applies
// to members, their names or items.
func children(s *jsonschema.Schema, f *facts) (beside, below []*jsonschema.Schema) {
	beside = append(beside, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		beside = append(beside, s.DynamicRef.Ref)
	}
	beside = append(append(append(beside, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, t := range f.triggers {
		beside = append(beside, t.schema)
	}
	for _, name := range f.names {
		below = append(below, s.Properties[name])
	}
	for _, p := range f.patterns {
		below = append(below, p.schema)
	}
	for _, c := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch c := c.(type) {
		case *jsonschema.Schema:
			below = append(below, c)
		case []*jsonschema.Schema:
			below = append(below, c...)
		}
	}
	below = append(below, s.PrefixItems...)
	below = append(below, s.Items2020, s.Contains, s.PropertyNames, s.UnevaluatedItems, s.UnevaluatedProperties)
	return beside, below
}
