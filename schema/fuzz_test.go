package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/mcpconform/mcpconform/schema"
)

func decodeAny(data []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	return value, d.Decode(&value) == nil
}

func checkBounds(t *testing.T, got []schema.Violation) {
	if len(got) > 20 {
		t.Errorf("got %d violations", len(got))
	}
	for _, v := range got {
		if v.Message == "" || v.Keyword == "" || len(v.Message) > 10_000 || len(v.Pointer) > 1100 {
			t.Errorf("malformed violation: %+v", v)
		}
	}
}

func FuzzValidate(f *testing.F) {
	for _, cases := range corpus(f) {
		for _, value := range cases.Valid {
			data, err := json.Marshal(value)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(cases.Definition, data)
		}
	}
	f.Add("CallToolResult", []byte(`{"content": [{"type": "text"}, 1e999, [[]]]}`))
	f.Fuzz(func(t *testing.T, def string, data []byte) {
		if value, ok := decodeAny(data); ok {
			checkBounds(t, load(t).Validate(def, value))
		}
	})
}

func FuzzCompileTool(f *testing.F) {
	f.Add([]byte(`{"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}`), []byte(`{"a": 1}`))
	f.Add([]byte(`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {}}}`), []byte(`null`))
	f.Add([]byte(`{"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["a"]}`), []byte(`{"a": {"a": {}}}`))
	f.Add([]byte(`{"$id": "a", "$anchor": "b", "if": {"const": 1}, "then": false, "unevaluatedItems": false}`), []byte(`[1e999, "x"]`))
	f.Add([]byte(`{"dependentSchemas": {"a": {"minProperties": 2}}, "contains": {}, "uniqueItems": true}`), []byte(`{"a": {}}`))
	f.Fuzz(func(t *testing.T, document, data []byte) {
		value, ok := decodeAny(document)
		if !ok {
			return
		}
		tool, err := schema.CompileTool(value)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if value, ok := decodeAny(data); ok {
			checkBounds(t, tool.Validate(value))
		}
	})
}
