package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
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
	costOfFault     = 16 // for putting it into words
)

// A Tool is a compiled inputSchema or outputSchema. It may be used by several
// goroutines at once; their validations run one after another.
type Tool struct {
	// Unchecked lists the regular expressions that were taken as matching
	// everything: valid perhaps in ECMA-262, as JSON Schema has them, but with
	// lookaround or back references, or too large, to be evaluated here.
	Unchecked []string

	schema *jsonschema.Schema
	known  schemas

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

// CompileTool compiles a JSON Schema as found in a tool's inputSchema or outputSchema, decoded from JSON. Without
// "$schema" its dialect is draft 2020-12, or else the newest older dialect in which it is valid. Nothing is ever
// loaded from elsewhere. Formats are not asserted: in the default dialect they are annotations. Every error is a
// *[ToolSchemaError]. Equal schemas share a Tool, as a peer lists its tools in every session.
func CompileTool(document any) (*Tool, error) {
	text, err := json.Marshal(document)
	if err != nil || len(text) > maxSharedText {
		return compileTool(document)
	}
	if tool := sharedTools.get(string(text)); tool != nil {
		return tool, nil
	}
	tool, err := compileTool(document)
	if err == nil {
		sharedTools.put(string(text), tool)
	}
	return tool, err
}

// Bounds of the schemas that are kept for the next time: as JSON text, and in number.
const (
	maxSharedText  = 8 << 10
	maxSharedTools = 256
)

var sharedTools toolCache

type toolCache struct {
	mu    sync.Mutex
	tools map[string]*Tool
}

func (c *toolCache) get(text string) *Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools[text]
}

func (c *toolCache) put(text string, tool *Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools == nil || len(c.tools) >= maxSharedTools {
		c.tools = make(map[string]*Tool)
	}
	c.tools[text] = tool
}

func compileTool(document any) (tool *Tool, err error) {
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

	tool, err = compileIn(jsonschema.Draft2020, document)
	// The revision names no dialect, so that each of them may be meant.
	for _, older := range []*jsonschema.Draft{jsonschema.Draft7, jsonschema.Draft4} {
		var invalid *ToolSchemaError
		if !errors.As(err, &invalid) || len(invalid.Violations) == 0 {
			break
		}
		if other, otherErr := compileIn(older, document); otherErr == nil {
			return other, nil
		}
	}
	return tool, err
}

// compileIn compiles a schema in the dialect that it names or else in the given one.
func compileIn(dialect *jsonschema.Draft, document any) (tool *Tool, err error) {
	tool = &Tool{}
	patterns := patternCompiler{known: map[string]jsonschema.Regexp{}, left: maxPatternsSize}
	loader := &refuser{}
	c := newCompiler(loader)
	c.DefaultDraft(dialect)
	c.UseRegexpEngine(patterns.compile)
	const location = baseLocation + "tool"
	if err := c.AddResource(location, document); err != nil {
		return nil, unsupported("%v", err)
	}
	tool.schema, err = c.Compile(location)
	if loader.url != "" {
		return nil,
			unsupported("the schema refers to %s; nothing is loaded from elsewhere, only the schema itself and "+
				"the dialects of JSON Schema are at hand",
				quote(strings.TrimPrefix(loader.url, baseLocation)))
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
	tool.known.add(tool.schema, tool.meter)
	return tool, nil
}

func toolSchemaError(err error, document any) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		if list, _ := new(schemas).explain(invalid.Err, document); len(list) > 0 {
			return &ToolSchemaError{Violations: list,
				reason: "the schema is not valid in its dialect: " + list[0].String()}
		}
	}
	// The remaining errors are references that lead nowhere, clashing ids and the like.
	message := cut(strings.ReplaceAll(err.Error(), baseLocation+"tool", ""), 4*maxShown)
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
	work := workPerJudgment
	return t.ValidateWithin(value, &work)
}

// ValidateWithin is like [Tool.Validate] for a caller that judges many values: it
// takes the work from what is left of a bound, in visits of a value by a part of the schema.
func (t *Tool) ValidateWithin(value any, work *int) (list []Violation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	undecided := func(reason string) []Violation {
		return []Violation{{Message: "the value was not judged: " + reason, Keyword: Undecided}}
	}
	tamed, ok := tame(value)
	if !ok {
		return undecided("it is nested too deeply or is not JSON")
	}
	bound := min(*work, workPerJudgment)
	t.work = bound
	defer func() {
		*work -= bound - t.work
		switch p := recover(); p.(type) {
		case nil:
		case outOfWork:
			list = undecided("its schema asks for too much work")
		default:
			list = undecided(fmt.Sprint("its schema could not be evaluated: ", p))
		}
	}()
	list, faults := t.known.explain(t.schema.Validate(tamed), value)
	t.work -= costOfFault * faults
	if slices.ContainsFunc(list, func(v Violation) bool { return v.Keyword == circle }) {
		// Such a schema has no defined meaning.
		return undecided("the references of its schema go in a circle")
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

// meter makes a schema charge its work to t. Formats are not asserted, so the
// hook that would check them serves as the counter: the library calls it once for
// each pair of schema and value, before it descends.
func (t *Tool) meter(s *jsonschema.Schema, a applied) {
	self := 1
	for _, c := range a.same {
		self += enumCost(c)
	}
	each := 1
	for _, c := range a.below {
		each = max(each, enumCost(c))
	}
	for _, re := range a.names {
		each += 1 + patternSize(re)/64
	}
	stringCost := patternSize(s.Pattern)
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

func patternSize(re jsonschema.Regexp) int {
	if p, ok := re.(pattern); ok {
		return p.size
	}
	return 0
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
