// Package schema holds revision 2025-06-18 of the Model Context Protocol as
// data: the JSON Schema of its messages and the catalogue of its requirements.
//
// A message is judged against the one definition that its method and its
// direction call for ([Request], [Notification], [Result]), never against a
// union of definitions: the unions of the revision accept messages that none of
// their methods allows, and their errors name no field.
package schema

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Version names the revision that this package describes.
const Version = "2025-06-18"

//go:embed 2025-06-18/schema.json
var schemaJSON []byte

// A Revision is the set of definitions of one protocol revision. It is
// immutable and may be used by several goroutines at once.
type Revision struct {
	definitions map[string]*node
	names       []string
}

var load = sync.OnceValues(func() (*Revision, error) {
	r, err := Parse(schemaJSON)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", Version, err)
	}
	return r, nil
})

// Load returns the definitions of the revision named by [Version]. They are
// parsed at the first call.
func Load() (*Revision, error) { return load() }

// Parse reads a JSON Schema document (draft-07) with all its definitions below
// "definitions". It knows the keywords that the revision's schema uses and
// fails on any other, so that no keyword is silently left unchecked.
func Parse(document []byte) (*Revision, error) {
	value, err := decode(document)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is no object")
	}
	raw, ok := object["definitions"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf(`the document has no "definitions"`)
	}
	r := &Revision{definitions: make(map[string]*node, len(raw))}
	for name := range raw {
		r.names = append(r.names, name)
		r.definitions[name] = new(node)
	}
	slices.Sort(r.names)
	for _, name := range r.names {
		if err := r.definitions[name].parse(r, raw[name]); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
	}
	for _, name := range r.names {
		if r.definitions[name].resolve() == nil {
			return nil, fmt.Errorf("definition %s refers to itself", name)
		}
	}
	for _, name := range r.names {
		r.definitions[name].link()
	}
	return r, nil
}

// Definitions lists the names of all definitions in alphabetical order.
func (r *Revision) Definitions() []string { return slices.Clone(r.names) }

// decode reads exactly one JSON value and keeps numbers as they are written.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return value, nil
}
