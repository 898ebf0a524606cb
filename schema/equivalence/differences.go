package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A difference is a place at which the structures differ.
type difference struct {
	pointer      string
	ours, theirs string // as JSON, "" where there is nothing
}

func (d difference) String() string {
	show := func(s string) string {
		if s == "" {
			return "nothing"
		}
		return s
	}
	return fmt.Sprintf("%s is %s here and %s in the published schema", d.pointer, show(d.ours), show(d.theirs))
}

// meant lists the differences that are deliberate, each with its reason.
var meant = []struct {
	difference
	reason string
}{
	{
		difference{
			"/definitions/ElicitResult/properties/content/additionalProperties/type",
			`["boolean","number","string"]`, `["boolean","integer","string"]`,
		},
		"schema.ts says number, and it is the source of truth (basic/index, schema). A form may ask " +
			"for a number (NumberSchema, client/elicitation); as an integer most answers could not be given.",
	},
}

// compareStructure returns the differences that are not meant, the meant ones that
// are gone and the number of definitions.
func compareStructure(ours, theirs []byte) (found []string, definitions int, err error) {
	a, err := normalized(ours)
	if err != nil {
		return nil, 0, err
	}
	b, err := normalized(theirs)
	if err != nil {
		return nil, 0, fmt.Errorf("published schema: %w", err)
	}
	var differences []difference
	compare(a, b, "", &differences)
	for _, m := range meant {
		if !slices.Contains(differences, m.difference) {
			found = append(found, fmt.Sprintf("the difference that is meant at %s is gone", m.pointer))
		}
	}
	for _, d := range differences {
		if !slices.ContainsFunc(meant, func(m struct {
			difference
			reason string
		}) bool {
			return m.difference == d
		}) {
			found = append(found, d.String())
		}
	}
	return found, len(b["definitions"].(map[string]any)), nil
}

func compare(a, b any, pointer string, found *[]difference) {
	ma, isA := a.(map[string]any)
	mb, isB := b.(map[string]any)
	if isA && isB {
		keys := maps.Clone(ma)
		maps.Copy(keys, mb)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			at := pointer + "/" + key
			va, inA := ma[key]
			vb, inB := mb[key]
			switch {
			case !inA:
				*found = append(*found, difference{at, "", text(vb)})
			case !inB:
				*found = append(*found, difference{at, text(va), ""})
			default:
				compare(va, vb, at, found)
			}
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*found = append(*found, difference{pointer, text(a), text(b)})
	}
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// normalized decodes a schema and removes what has no meaning: descriptions,
// "properties" without any, "additionalProperties" that allow everything, the order
// of sets, and references to a definition that is only a name for another or
// for a type.
func normalized(document []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	definitions, ok := root["definitions"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf(`there are no "definitions"`)
	}
	n := normalizer{definitions}
	return n.schema(root).(map[string]any), nil
}

type normalizer struct{ definitions map[string]any }

func (n normalizer) schema(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}
	if target, ok := n.alias(object); ok {
		return n.schema(target)
	}
	result := map[string]any{}
	for keyword, value := range object {
		switch keyword {
		case "description":
			continue
		case "properties", "definitions":
			members, ok := value.(map[string]any)
			if ok && len(members) == 0 {
				continue
			}
			normal := map[string]any{}
			for name, member := range members {
				normal[name] = n.schema(member)
			}
			result[keyword] = normal
		case "additionalProperties":
			normal := n.schema(value)
			if normal == true || reflect.DeepEqual(normal, map[string]any{}) {
				continue
			}
			result[keyword] = normal
		case "anyOf":
			result[keyword] = n.set(value)
		case "required", "enum", "type":
			result[keyword] = n.set(value)
		default:
			result[keyword] = n.schema(value)
		}
	}
	return result
}

// set sorts the items of an array.
func (n normalizer) set(value any) any {
	items, ok := value.([]any)
	if !ok {
		return value
	}
	var normal []any
	for _, item := range items {
		normal = append(normal, n.schema(item))
	}
	slices.SortFunc(normal, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	return normal
}

// alias returns what a reference stands for if its target is only a name.
func (n normalizer) alias(object map[string]any) (any, bool) {
	ref, ok := object["$ref"].(string)
	if !ok {
		return nil, false
	}
	target, ok := n.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	if !ok {
		return nil, false
	}
	for keyword := range target {
		if keyword != "description" && keyword != "$ref" && keyword != "type" {
			return nil, false
		}
	}
	return target, true
}
