// Package schema holds revisions of the Model Context Protocol as data: the JSON
// Schema of their messages and the catalogue of their requirements. [For] gives a
// [Revision], which a run passes to all that depends on it.
//
// A message is judged against the one definition that its method and its
// direction call for ([Revision.Request], [Revision.Notification], [Revision.Result]), never against a
// union of definitions: the unions of the revision accept messages that none of
// their methods allows, and their errors name no field.
//
// # The catalogue
//
// The folder of a revision holds these files beside the schema:
//
//   - methods.yaml: the methods, with the definitions of their messages.
//   - requirements.yaml: the requirements, in the order of the pages. [Requirement] documents the members.
//   - coverage.yaml: the keywords of the text in capitals, with the ids of the requirements that cover them.
//   - positions.yaml: how an ambiguous sentence is read, and why.
//   - disputed.yaml: findings that maintainers contest, with the public threads.
//   - advice.yaml: what the author of a target can do about classes of requirements that say nothing of their own.
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
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Definitions are those of the JSON Schema of a revision. They may be used by several goroutines at once.
type Definitions struct {
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

// Parse reads a JSON Schema document with its definitions below "definitions" or "$defs". A broken definition shows
// when it is compiled, at the latest by [Definitions.Warm].
func Parse(document []byte) (*Definitions, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the document is not an object")
	}
	defs := &Definitions{definitions: map[string]*definition{}}
	const location = baseLocation + "revision"
	for _, holder := range []string{"definitions", "$defs"} {
		named, _ := object[holder].(map[string]any)
		for name := range named {
			defs.definitions[name] = &definition{location: location + "#/" + holder + "/" + name}
		}
	}
	if len(defs.definitions) == 0 {
		return nil, errors.New(`the document has no "definitions"`)
	}
	defs.compiler = newCompiler(&refuser{})
	defs.compiler.AssertFormat()
	for name, check := range formats {
		defs.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, ok := value.(string); ok {
				if reason := check(text); reason != "" {
					return malformed(reason)
				}
			}
			return nil
		}})
	}
	if err := defs.compiler.AddResource(location, value); err != nil {
		return nil, err
	}
	return defs, nil
}

// Names lists the names of all definitions in alphabetical order.
func (defs *Definitions) Names() []string { return slices.Sorted(maps.Keys(defs.definitions)) }

// Warm compiles definitions, all of them if none is named, for a caller that has
// something to wait for anyway. It returns at once when the context ends; what is
// left is compiled when it is needed. The error names the first definition that is
// not valid.
func (defs *Definitions) Warm(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		names = defs.Names()
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := defs.compile(name); err != nil {
			return err
		}
	}
	return nil
}

func (defs *Definitions) compile(name string) (*jsonschema.Schema, error) {
	d := defs.definitions[name]
	if d == nil {
		return nil, fmt.Errorf("the revision has no definition %s", quote(name))
	}
	d.once.Do(func() {
		defs.compiling.Lock()
		defer defs.compiling.Unlock()
		if d.compiled, d.err = defs.compiler.Compile(d.location); d.err != nil {
			d.err = fmt.Errorf("definition %s: %w", quote(name), d.err)
			return
		}
		defs.known.add(d.compiled, nil)
	})
	return d.compiled, d.err
}

// Validate judges a decoded JSON value (map[string]any, []any, string,
// json.Number, float64, int, int64, bool, nil) against a definition. It returns
// nothing for a valid value and at most 20 violations otherwise, in the order of
// their places. The work is bounded by the size of the value. An unknown definition is a
// violation of the whole value.
func (defs *Definitions) Validate(def string, value any) []Violation {
	compiled, err := defs.compile(def)
	if err != nil {
		return []Violation{{Message: err.Error(), Keyword: "definition"}}
	}
	tamed, _ := tame(value)
	list, _ := defs.known.explain(compiled.Validate(tamed), value)
	return list
}
