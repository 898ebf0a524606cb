// Package schema holds revision 2025-06-18 of the Model Context Protocol as
// data: the JSON Schema of its messages and the catalogue of its requirements.
//
// A message is judged against the one definition that its method and its
// direction call for ([Request], [Notification], [Result]), never against a
// union of definitions: the unions of the revision accept messages that none of
// their methods allows, and their errors name no field.
//
// # The catalogue
//
// The folder of the revision holds these files beside the schema:
//
//   - requirements.yaml: the requirements, in the order of the pages. [Requirement] documents the members.
//   - coverage.yaml: the keywords of the text in capitals, with the ids of the requirements that cover them.
//   - positions.yaml: how an ambiguous sentence is read, and why.
//   - disputed.yaml: findings that maintainers contest, with the public threads.
//   - advice.yaml: what the author of a target can do, for each MUST and for classes of the others.
//   - consequences.yaml: requirements that break with another one.
//   - sdks.yaml: findings that an SDK is known to cause, with the text that tells it and a public thread.
//   - uses.yaml: what a party does of its own accord, such as asking for sampling, with the requirements about it. A
//     run that offered it and saw none calls these "not used".
//   - hints.yaml: what a user can configure so that a requirement can be tried, with role, transports and option. The
//     "config" of a requirement names them, and a run shows only those that fit it.
//   - sdk-signs.yaml: how an SDK is recognised.
//   - classes.json: the frozen conformance classes. "go test ./schema -run TestClasses -freeze" adds new versions.
//
// A statement of the type definitions has the page "schema" and the name of the type as its anchor, in small letters.
// A MAY cannot be broken. It binds the other side by a SHOULD: to cope with the permitted behaviour. An implication
// follows of necessity from a sentence and is SHOULD at most. A finding on an example is a note. A requirement that
// only sums others up is not observable, and names them under "through".
//
// "go generate ./schema" renders the pages. "go run ./schema/reconcile CHECKOUT" compares the catalogue with a
// checkout of the specification from before 2026-03-25: every keyword is covered, every anchor exists, and each text
// leads to its sentence. With -write it records the headings of the pages.
package schema

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Version names the revision that this package describes.
const Version = "2025-06-18"

//go:embed 2025-06-18/schema.json
var schemaJSON []byte

// A Revision is the set of definitions of one protocol revision. It may be used
// by several goroutines at once.
type Revision struct {
	definitions map[string]*definition
	known       schemas

	compiling sync.Mutex
	compiler  *jsonschema.Compiler
}

// A definition is compiled when it is first needed.
type definition struct {
	location string
	once     sync.Once
	compiled *jsonschema.Schema
	err      error
}

var load = sync.OnceValues(func() (*Revision, error) {
	r, err := Parse(schemaJSON)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", Version, err)
	}
	return r, nil
})

// Load returns the definitions of the revision named by [Version]. They are
// read at the first call, and each is compiled when it is first needed.
func Load() (*Revision, error) { return load() }

// Parse reads a JSON Schema document with its definitions below "definitions" or "$defs". A broken definition shows
// when it is compiled, at the latest by [Revision.Warm].
func Parse(document []byte) (*Revision, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	r := &Revision{definitions: map[string]*definition{}}
	const location = baseLocation + "revision"
	for _, holder := range []string{"definitions", "$defs"} {
		named, _ := object[holder].(map[string]any)
		for name := range named {
			r.definitions[name] = &definition{location: location + "#/" + holder + "/" + name}
		}
	}
	if len(r.definitions) == 0 {
		return nil, errors.New(`the document has no "definitions"`)
	}
	r.compiler = newCompiler(&refuser{})
	r.compiler.AssertFormat()
	for name, check := range formats {
		r.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, ok := value.(string); ok {
				if reason := check(text); reason != "" {
					return malformed(reason)
				}
			}
			return nil
		}})
	}
	if err := r.compiler.AddResource(location, value); err != nil {
		return nil, err
	}
	return r, nil
}

// Definitions lists the names of all definitions in alphabetical order.
func (r *Revision) Definitions() []string { return slices.Sorted(maps.Keys(r.definitions)) }

// Warm compiles definitions, all of them if none is named, for a caller that has
// something to wait for anyway. It returns at once when the context ends; what is
// left is compiled when it is needed. The error names the first definition that is
// not valid.
func (r *Revision) Warm(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		names = r.Definitions()
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := r.compile(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Revision) compile(name string) (*jsonschema.Schema, error) {
	d := r.definitions[name]
	if d == nil {
		return nil, fmt.Errorf("the revision has no definition %s", quote(name))
	}
	d.once.Do(func() {
		r.compiling.Lock()
		defer r.compiling.Unlock()
		if d.compiled, d.err = r.compiler.Compile(d.location); d.err != nil {
			d.err = fmt.Errorf("definition %s: %w", quote(name), d.err)
			return
		}
		r.known.add(d.compiled, nil)
	})
	return d.compiled, d.err
}

// Validate judges a decoded JSON value (map[string]any, []any, string,
// json.Number, float64, int, int64, bool, nil) against a definition. It returns
// nothing for a valid value and at most 20 violations otherwise, in the order of
// their places. The work is bounded by the size of the value. An unknown definition is a
// violation of the whole value.
func (r *Revision) Validate(def string, value any) []Violation {
	compiled, err := r.compile(def)
	if err != nil {
		return []Violation{{Message: err.Error(), Keyword: "definition"}}
	}
	tamed, _ := tame(value)
	list, _ := r.known.explain(compiled.Validate(tamed), value)
	return list
}
