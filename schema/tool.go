package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits on the schemas of tools, which come from a peer. Compiling takes time
// in the square of the nodes, validation up to the product of schema and value.
const (
	maxSchemaNodes  = 20_000
	maxSchemaDepth  = 500
	maxValueDepth   = 2_000
	maxPatternSize  = 2_000   // instructions of a compiled pattern
	maxPatternsSize = 100_000 // instructions of all patterns of a schema
	workPerJudgment = 400_000
)

// A Tool is a compiled inputSchema or outputSchema. It may be used by several
// goroutines at once; their validations take turns.
type Tool struct {
	// Unchecked lists the regular expressions that were taken as matching
	// everything: valid perhaps in ECMA-262, as JSON Schema has them, but with
	// lookaround or back references, or too large, to be evaluated here.
	Unchecked []string

	schema *jsonschema.Schema

	mu   sync.Mutex
	work int
}

// A ToolSchemaError says why a tool's schema cannot be used.
type ToolSchemaError struct {
	// Violations are the places at which the schema breaks the rules of its own
	// dialect. It is empty when the schema was refused for another reason.
	Violations []Violation
	// Unsupported is set if the schema may be valid, but needs what this
	// program does not offer: another document, another dialect, a dynamic
	// reference, or more size than its bounds allow.
	Unsupported bool

	reason string
}

func (e *ToolSchemaError) Error() string { return e.reason }

func unsupported(format string, args ...any) error {
	return &ToolSchemaError{Unsupported: true, reason: fmt.Sprintf(format, args...)}
}

// toolLocation is the base of relative references. It is hierarchical so that a
// reference to another file is told from one to the schema itself.
const (
	toolBase     = "mcpconform:///"
	toolLocation = toolBase + "tool"
)

// A refuser loads nothing and remembers what it was asked for first.
type refuser struct{ url string }

func (r *refuser) Load(url string) (any, error) {
	if r.url == "" {
		r.url = url
	}
	return nil, errors.New("nothing is loaded")
}

// CompileTool compiles a JSON Schema as found in a tool's inputSchema or
// outputSchema, decoded from JSON. Without "$schema" its dialect is draft
// 2020-12. Nothing is ever loaded from elsewhere. Formats are not asserted: in
// the default dialect they are annotations. Every error is a *[ToolSchemaError].
func CompileTool(document any) (tool *Tool, err error) {
	defer func() {
		// The library guards its invariants with panics; a schema from a peer
		// must not end the program.
		if p := recover(); p != nil {
			tool, err = nil, unsupported("the schema could not be compiled: %v", p)
		}
	}()
	_, ok := document.(map[string]any)
	if _, isBool := document.(bool); !ok && !isBool {
		return nil, &ToolSchemaError{
			Violations: []Violation{{Message: "the schema is " + show(document) + ", not an object", Keyword: "type"}},
			reason:     "the schema is " + show(document) + ", not an object",
		}
	}
	if err := checkSize(document); err != nil {
		return nil, err
	}
	if document, ok = tame(document); !ok {
		return nil, unsupported("the schema holds a value that is not JSON")
	}

	tool = &Tool{}
	patterns := patternCompiler{known: map[string]jsonschema.Regexp{}, left: maxPatternsSize}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	loader := &refuser{}
	c.UseLoader(loader)
	c.UseRegexpEngine(patterns.compile)
	if err := c.AddResource(toolLocation, document); err != nil {
		return nil, unsupported("%v", err)
	}
	tool.schema, err = c.Compile(toolLocation)
	if loader.url != "" {
		return nil, unsupported("the schema refers to %s; nothing is loaded from elsewhere, only the schema itself and the dialects of JSON Schema are at hand",
			quote(strings.TrimPrefix(loader.url, toolBase)))
	}
	if err != nil {
		return nil, toolSchemaError(err, document)
	}
	for _, re := range patterns.known {
		if unchecked, ok := re.(anything); ok {
			tool.Unchecked = append(tool.Unchecked, string(unchecked))
		}
	}
	slices.Sort(tool.Unchecked)
	tool.meter(tool.schema, map[*jsonschema.Schema]bool{})
	return tool, nil
}

func toolSchemaError(err error, document any) error {
	var invalid *jsonschema.SchemaValidationError
	var details *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &details) {
		list := violations(toolLeaves(details, document))
		if len(list) > 0 {
			return &ToolSchemaError{Violations: list, reason: "the schema is not valid in its dialect: " + list[0].String()}
		}
	}
	// What is left are references that lead nowhere, ids that clash and the like.
	message := strings.ReplaceAll(err.Error(), toolLocation, "")
	message = cut(message, 4*maxShown)
	return &ToolSchemaError{
		Violations: []Violation{{Message: message, Keyword: "$ref"}},
		reason:     "the schema is not valid: " + message,
	}
}

// Validate judges a decoded JSON value, such as a call's arguments or its
// structuredContent. It returns nothing for a valid value and at most 20
// violations otherwise. When a schema asks for too much work the only violation
// has the keyword [Undecided] and says nothing about the value.
func (t *Tool) Validate(value any) (list []Violation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	undecided := func(reason string) []Violation {
		return []Violation{{Message: "the value was not judged: " + reason, Keyword: Undecided}}
	}
	value, ok := tame(value)
	if !ok {
		return undecided("it is nested too deeply or is not JSON")
	}
	t.work = workPerJudgment
	defer func() {
		switch p := recover(); p.(type) {
		case nil:
		case outOfWork:
			list = undecided("its schema asks for too much work")
		default:
			list = undecided(fmt.Sprint("its schema could not be evaluated: ", p))
		}
	}()
	var failure *jsonschema.ValidationError
	if err := t.schema.Validate(value); errors.As(err, &failure) {
		list = violations(toolLeaves(failure, value))
		if slices.ContainsFunc(list, func(v Violation) bool { return v.Keyword == circle }) {
			// What such a schema means is undefined.
			return undecided("the references of its schema go in a circle")
		}
	}
	return list
}

// circle is the keyword of what only references that go in a circle say.
const circle = "$ref"

// checkSize refuses schemas beyond the limits, and dynamic references, whose
// targets cannot be known before validation and so escape the meter.
func checkSize(document any) error {
	nodes := 0
	var walk func(value any, depth int) error
	walk = func(value any, depth int) error {
		if nodes++; nodes > maxSchemaNodes {
			return unsupported("the schema has more than %d parts", maxSchemaNodes)
		}
		if depth > maxSchemaDepth {
			return unsupported("the schema is nested more than %d levels deep", maxSchemaDepth)
		}
		switch v := value.(type) {
		case map[string]any:
			for name, value := range v {
				if _, isText := value.(string); isText && (name == "$dynamicRef" || name == "$recursiveRef") {
					return unsupported("%s is not supported", name)
				}
				if err := walk(value, depth+1); err != nil {
					return err
				}
			}
		case []any:
			for _, value := range v {
				if err := walk(value, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(document, 0)
}

// tame returns the value with numbers of extreme length or exponent replaced by
// the nearest float64: exact arithmetic on them would take minutes. It copies what
// it changes and what holds that. It reports false for values too deep or of no
// JSON type.
func tame(value any) (any, bool) {
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
	switch v := value.(type) {
	case nil, bool, string, int, int64:
		return nil, false, true
	case float64:
		return nil, false, !math.IsNaN(v) && !math.IsInf(v, 0)
	case json.Number:
		return tameNumber(v)
	case []any:
		for i, item := range v {
			tamed, itemChanged, ok := tameAt(item, depth+1)
			if !ok {
				return nil, false, false
			}
			if itemChanged {
				if !changed {
					v, changed = slices.Clone(v), true
				}
				v[i] = tamed
			}
		}
		return v, changed, true
	case map[string]any:
		// The range goes on over the map that it started with.
		for name, item := range v {
			tamed, itemChanged, ok := tameAt(item, depth+1)
			if !ok {
				return nil, false, false
			}
			if itemChanged {
				if !changed {
					v, changed = maps.Clone(v), true
				}
				v[name] = tamed
			}
		}
		return v, changed, true
	}
	return nil, false, false
}

func tameNumber(n json.Number) (tamed any, changed, ok bool) {
	text := string(n)
	if numberTypes(text) == 0 {
		return nil, false, false
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
	return f, true, true
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

// A patternCompiler compiles the patterns of one schema, each once.
type patternCompiler struct {
	known map[string]jsonschema.Regexp
	left  int // instructions that may still be spent
}

// compile never fails: a pattern that cannot be evaluated matches everything.
func (c *patternCompiler) compile(text string) (jsonschema.Regexp, error) {
	re, ok := c.known[text]
	if !ok {
		re = c.build(text)
		c.known[text] = re
	}
	return re, nil
}

func (c *patternCompiler) build(text string) jsonschema.Regexp {
	if len(text) > 4*maxPatternSize || c.left <= 0 {
		return anything(text)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return anything(text)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return anything(text)
	}
	size := len(program.Inst)
	c.left -= size
	if size > maxPatternSize {
		return anything(text)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return anything(text)
	}
	return pattern{re, size}
}

// outOfWork ends a validation from within the library, which has no other way out.
type outOfWork struct{}

// meter makes every schema reachable from s charge its work to t. Formats are
// not asserted, so the hook that would check them serves as the counter: the
// library calls it once for each pair of schema and value, before it descends.
func (t *Tool) meter(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) {
	queue := []*jsonschema.Schema{s}
	for len(queue) > 0 {
		s, queue = queue[len(queue)-1], queue[:len(queue)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		same, below, patterns := subschemas(s)
		queue = append(append(queue, same...), below...)

		self := 1
		for _, c := range same {
			self += enumCost(c)
		}
		each := 1
		for _, c := range below {
			each = max(each, enumCost(c))
		}
		for _, p := range patterns {
			each += 1 + p.size/64
		}
		stringCost := 0
		if p, ok := s.Pattern.(pattern); ok {
			stringCost = p.size
		}
		s.Format = &jsonschema.Format{Name: "meter", Validate: func(value any) error {
			cost := self
			switch v := value.(type) {
			case map[string]any:
				cost += len(v) * each
			case []any:
				cost += len(v) * each
			case string:
				cost += len(v) * (stringCost + 1) / 512
			}
			if t.work -= cost; t.work < 0 {
				panic(outOfWork{})
			}
			return nil
		}}
	}
}

// enumCost is the work of a visit that the hook does not see, as it fails first.
func enumCost(s *jsonschema.Schema) int {
	switch {
	case s == nil:
		return 0
	case s.Enum == nil:
		return 1
	}
	return 1 + len(s.Enum.Values)
}

// subschemas returns what s applies to the value itself, what it applies to
// members or items, and the patterns it matches member names with.
func subschemas(s *jsonschema.Schema) (same, below []*jsonschema.Schema, patterns []pattern) {
	same = append(same, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		same = append(same, s.DynamicRef.Ref)
	}
	same = append(same, s.AllOf...)
	same = append(same, s.AnyOf...)
	same = append(same, s.OneOf...)
	for _, c := range s.DependentSchemas {
		same = append(same, c)
	}
	for _, c := range s.Dependencies {
		if c, ok := c.(*jsonschema.Schema); ok {
			same = append(same, c)
		}
	}
	for _, c := range s.Properties {
		below = append(below, c)
	}
	for re, c := range s.PatternProperties {
		below = append(below, c)
		if p, ok := re.(pattern); ok {
			patterns = append(patterns, p)
		}
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
	below = append(below, s.Items2020, s.Contains, s.PropertyNames, s.UnevaluatedItems, s.UnevaluatedProperties, s.ContentSchema)
	return same, below, patterns
}
