package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

// compareVerdicts judges all examples by both schemas. The published one is
// evaluated by a general JSON Schema library, ours as the program does it.
func compareVerdicts(ours, theirs []byte, dir string) (found []string, examples int, err error) {
	corpus, err := source.Corpus(dir)
	if err != nil {
		return nil, 0, err
	}
	own, err := schema.Parse(ours)
	if err != nil {
		return nil, 0, err
	}
	published, err := newLibrary(theirs)
	if err != nil {
		return nil, 0, err
	}
	covered := map[string]bool{}
	for _, cases := range corpus {
		covered[cases.Definition] = true
		judge := func(value any, example string, oursAccept, theirsAccept bool) error {
			examples++
			violations := own.Validate(cases.Definition, value)
			if (len(violations) == 0) != oursAccept {
				found = append(found, fmt.Sprintf("%s, %s: own verdict is %v", cases.Definition, example, violations))
			}
			refusal, err := published.refusal(cases.Definition, value)
			if err != nil {
				return err
			}
			if (refusal == "") != theirsAccept {
				found = append(found, fmt.Sprintf("%s, %s: published verdict is %q", cases.Definition, example, refusal))
			}
			return nil
		}
		for i, value := range cases.Valid {
			if err := judge(value, fmt.Sprintf("valid example %d", i), true, true); err != nil {
				return nil, 0, err
			}
		}
		for _, c := range cases.Invalid {
			if err := judge(c.Value, c.Why, false, false); err != nil {
				return nil, 0, err
			}
		}
		for i, value := range cases.Wider {
			if !touched(cases.Definition) {
				found = append(found, fmt.Sprintf("%s has a wider example, but no difference that is meant", cases.Definition))
			}
			if err := judge(value, fmt.Sprintf("wider example %d", i), true, false); err != nil {
				return nil, 0, err
			}
		}
	}
	for _, name := range own.Definitions() {
		if !covered[name] {
			found = append(found, name+" has no examples")
		}
	}
	return found, examples, nil
}

func touched(definition string) bool {
	for _, m := range meant {
		if strings.HasPrefix(m.pointer, "/definitions/"+definition+"/") {
			return true
		}
	}
	return false
}

// A library evaluates definitions by a general implementation of JSON Schema.
type library struct {
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

const location = "mcpconform:///published"

func newLibrary(document []byte) (*library, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, name := range []string{"uri", "uri-template", "byte"} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if s, ok := value.(string); ok {
				if reason := schema.CheckFormat(name, s); reason != "" {
					return errors.New(reason)
				}
			}
			return nil
		}})
	}
	if err := c.AddResource(location, value); err != nil {
		return nil, err
	}
	return &library{c, map[string]*jsonschema.Schema{}}, nil
}

// refusal returns why the value does not follow the definition, or "".
func (l *library) refusal(definition string, value any) (string, error) {
	compiled := l.compiled[definition]
	if compiled == nil {
		var err error
		if compiled, err = l.compiler.Compile(location + "#/definitions/" + definition); err != nil {
			return "", err
		}
		l.compiled[definition] = compiled
	}
	if err := compiled.Validate(value); err != nil {
		return err.Error(), nil
	}
	return "", nil
}
