package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
)

func compile(t testing.TB, text string) *schema.Tool {
	t.Helper()
	tool, err := schema.CompileTool(parse(t, text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return tool
}

func TestTool(t *testing.T) {
	const union = `{"anyOf": [
		{"type": "null"},
		{"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"], "type": "object"},
		{"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"], "type": "object"}]}`
	tests := []struct {
		schema, value string
		want          []string
	}{
		{`{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"], "additionalProperties": false}`, `{"a": 1.5, "y": 1, "x": 2}`, []string{
			`member "b" is missing`, `member "x" is not allowed`, `member "y" is not allowed`, `/a: "a" is 1.5, not an integer`,
		}},
		{union, `{"kind": "square", "side": "x"}`, []string{`/side: "side" is "x", not a number`}},
		{union, `{"kind": "line"}`, []string{`/kind: "kind" is "line", not one of "circle" or "square"`}},
		{union, `5`, []string{`the value is 5, not null or an object`}},
		{union, `null`, nil},
		{`{"properties": {"a": {"type": ["string", "null"]}}}`, `{"a": 5}`, []string{`/a: "a" is 5, not a string or null`}},
		{`{"oneOf": [{"minimum": 1}, {"maximum": 2}]}`, `1.5`, []string{`the value fits two alternatives of which exactly one may fit`}},
		{`{"items": {"enum": ["a", 1, null]}, "minItems": 3, "uniqueItems": true}`, `["b", "b"]`, []string{
			`items 0 and 1 of the value are equal`, `the value has 2 items, fewer than 3`,
			`/0: item 0 is "b", not one of "a", 1 or null`, `/1: item 1 is "b", not one of "a", 1 or null`,
		}},
		{`{"not": {"type": "null"}}`, `null`, []string{`the value is null, which is excluded`}},
		{`{"pattern": "^a+$", "maxLength": 1}`, `"bb"`, []string{`the value has 2 characters, more than 1`, `the value is "bb", which does not match the pattern "^a+$"`}},
		{`{"dependentRequired": {"a": ["b"]}, "propertyNames": {"maxLength": 1}}`, `{"a": 1, "cc": 2}`, []string{
			`member "b" is missing, which "a" requires`, `the name of member "cc" is not allowed`,
		}},
		{`{"properties": {"n": {"exclusiveMinimum": 0, "multipleOf": 2}}, "unevaluatedProperties": false}`, `{"n": -1, "x": 1}`, []string{
			`/n: "n" is -1, not a multiple of 2`, `/n: "n" is -1, not larger than 0`, `/x: "x" is not allowed`,
		}},
		{`{"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "string"}}}}, "$ref": "#/$defs/node"}`, `{"next": {"next": {"v": 1}}}`, []string{`/next/next/v: "v" is 1, not a string`}},
		{`{"prefixItems": [{"type": "string"}], "items": {"type": "null"}, "unevaluatedItems": false}`, `["a", null, 2]`, []string{`/2: item 2 is 2, not null`}},
		{`{"allOf": [{"additionalProperties": {"type": "string"}}, {"items": {}}], "unevaluatedProperties": false, "unevaluatedItems": false}`, `{"b": "y", "a": "x"}`, nil},
		{`{"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": {"type": "null"}}`, `{"a": 1, "xy": 2, "c": 3, "d": null}`, []string{`/c: "c" is 3, not null`}},
		{union, `{}`, []string{`member "kind" is missing; it is one of "circle" or "square"`}},
		{`{"prefixItems": [{"type": "string"}]}`, `[1]`, []string{`/0: item 0 is 1, not a string`}},
		// The same keyword in two dialects: only draft-07 has lists of items.
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": false}`, `[1, 2]`, []string{`the value has 1 items too many`, `/0: item 0 is 1, not a string`}},
		{`{"items": [{"type": "string"}], "additionalItems": false}`, `[1, 2]`, []string{`the value has 1 items too many`, `/0: item 0 is 1, not a string`}},
		{`{"minimum": 5, "exclusiveMinimum": true}`, `5`, []string{`the value is 5, not larger than 5`}},
		{`{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 5, "exclusiveMinimum": true}`, `5`, []string{`the value is 5, not larger than 5`}},
		// In draft-07 a reference hides its neighbours.
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"s": {}}, "$ref": "#/definitions/s", "type": "null"}`, `5`, nil},
		{`{"$id": "https://example.org/tool.json", "$defs": {"s": {"$id": "part.json", "type": "string"}}, "$ref": "part.json"}`, `5`, []string{`the value is 5, not a string`}},
		{`{"format": "date", "contentEncoding": "base64"}`, `"no date"`, nil},
		{`{"$ref": "#"}`, `5`, []string{`the value was not judged: the references of its schema go in a circle`}},
		{`false`, `5`, []string{`the value is not allowed`}},
		{`true`, `5`, nil},
		{`{"minimum": 1e999999999, "enum": [1e999999999, 2]}`, `2`, []string{`the value is 2, smaller than 1.7976931348623157e+308`}},
	}
	for _, test := range tests {
		var got []string
		for _, v := range compile(t, test.schema).Validate(parse(t, test.value)) {
			got = append(got, v.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s\n%s (-want +got):\n%s", test.schema, test.value, diff)
		}
	}
}

func TestToolUncheckedPatterns(t *testing.T) {
	tool := compile(t, `{"properties": {"a": {"pattern": "^(?=.*x)y"}, "b": {"pattern": "(a)\\1"}, "c": {"pattern": "^c"}, "d": {"pattern": "(((a{1,99}){1,9}){9}){9}"}},
		"patternProperties": {"(?!z)": {"type": "integer"}}}`)
	if diff := cmp.Diff([]string{"(((a{1,99}){1,9}){9}){9}", "(?!z)", `(a)\1`, "^(?=.*x)y"}, tool.Unchecked); diff != "" {
		t.Errorf("unchecked (-want +got):\n%s", diff)
	}
	if got := tool.Validate(map[string]any{"a": 1, "b": 2, "c": 3, "d": 4}); got != nil {
		t.Errorf("an unchecked pattern fails: %v", got)
	}
	if got := tool.Validate(map[string]any{"c": "x"}); len(got) != 2 {
		t.Errorf("got %v, want a failed pattern and a failed type", got)
	}
}

// The patterns of a schema may together be only so large.
func TestToolManyPatterns(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `{"pattern": "(?:a?){600}%d"}, `, i)
	}
	tool := compile(t, `{"anyOf": [`+b.String()+`{"pattern": "z"}]}`)
	if n := len(tool.Unchecked); n < 50 || n > 150 {
		t.Errorf("%d of 201 patterns are unchecked", n)
	}
}

func TestToolRefused(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 600) + `{}` + strings.Repeat(`}`, 600)
	huge := `{"enum": [` + strings.Repeat(`1,`, 30_000) + `2]}`
	tests := []struct {
		schema, want string
		unsupported  bool
	}{
		{`{"$ref": "https://example.org/x.json"}`, `refers to "https://example.org/x.json"`, true},
		{`{"$ref": "file:///etc/passwd"}`, `refers to "file:///etc/passwd"`, true},
		{`{"$ref": "other.json#/a"}`, `refers to "other.json"`, true},
		{`{"$schema": "https://example.org/dialect", "type": "object"}`, `refers to "https://example.org/dialect"`, true},
		{`{"pattern": 1e5}`, `/pattern: "pattern" is 1e5, not a string`, false},
		{`{"$dynamicRef": "#x"}`, `$dynamicRef`, true},
		{deep, `nested`, true},
		{huge, `more than 20000 parts`, true},
		{`{"$ref": "#/$defs/none"}`, `#/$defs/none`, false},
		{`{"type": "objekt"}`, `/type: "type" is "objekt"`, false},
		{`{"properties": []}`, `/properties: "properties" is an array, not an object`, false},
		{`{"required": "a"}`, `"required" is "a", not an array`, false},
		{`{"multipleOf": 0}`, `"multipleOf" is 0, not larger than 0`, false},
		{`5`, `the schema is 5, not an object`, false},
		{`null`, `the schema is null, not an object`, false},
	}
	for _, test := range tests {
		_, err := schema.CompileTool(parse(t, test.schema))
		var refused *schema.ToolSchemaError
		if !errors.As(err, &refused) {
			t.Errorf("%.80s: got %v, want a ToolSchemaError", test.schema, err)
			continue
		}
		if !strings.Contains(err.Error(), test.want) || refused.Unsupported != test.unsupported || (len(refused.Violations) == 0) != test.unsupported {
			t.Errorf("%.80s: got %q with %v, unsupported %v; want %q", test.schema, err, refused.Violations, refused.Unsupported, test.want)
		}
	}
}

// Schemas of a hostile peer that ask for endless work are given up on.
func TestToolOutOfWork(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: work without end")
	}
	nested := strings.Repeat(`{"a":`, 60) + `{}` + strings.Repeat(`}`, 60)
	many := `[` + strings.Repeat(`1,`, 300_000) + `2]`
	for name, test := range map[string]struct{ schema, value string }{
		"two to the power of depth": {`{"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["a"]}`, nested},
		"references doubled":        {`{"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/b"}]}, "b": {"properties": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}}}, "$ref": "#/$defs/a"}`, nested},
		"many items":                {`{"items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}`, many},
		"long lists of constants":   {`{"items": {"enum": [` + strings.Repeat(`"x",`, 10_000) + `"y"]}}`, `[` + strings.Repeat(`"z",`, 1_000) + `0]`},
		"large pattern":             {`{"allOf": [` + strings.Repeat(`{"pattern": "(a?){200}b"},`, 50) + `{}]}`, `"` + strings.Repeat("a", 1_000_000) + `"`},
		"deep value":                {`{"items": {"$ref": "#"}}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
	} {
		got := compile(t, test.schema).Validate(parse(t, test.value))
		if len(got) != 1 || got[0].Keyword != schema.Undecided {
			t.Errorf("%s: got %d violations, first %v; want one that is undecided", name, len(got), got[:min(1, len(got))])
		}
	}
	// Only the first of a long list of errors are looked for.
	for _, text := range []string{
		`{"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}`,
		`{"items": {"type": "string"}, "unevaluatedItems": false}`,
	} {
		if got := compile(t, text).Validate(parse(t, many)); len(got) != 20 || got[19].Pointer != "/19" {
			t.Errorf("%s: got %v, want the first 20", text, got)
		}
	}
	// The meter starts anew with each value.
	tool := compile(t, `{"items": {"type": "integer"}}`)
	value := parse(t, `[`+strings.Repeat(`1,`, 100_000)+`2]`)
	for range 10 {
		if got := tool.Validate(value); got != nil {
			t.Fatalf("a plain value is not judged: %v", got)
		}
	}
}

func TestToolLeavesValuesAlone(t *testing.T) {
	value := map[string]any{"a": []any{json.Number("1e5000"), json.Number("1")}}
	if got := compile(t, `{"properties": {"a": {"items": {"type": "number"}}}}`).Validate(value); got != nil {
		t.Errorf("got %v", got)
	}
	if diff := cmp.Diff(map[string]any{"a": []any{json.Number("1e5000"), json.Number("1")}}, value); diff != "" {
		t.Errorf("the value was changed:\n%s", diff)
	}
	for _, v := range []any{math.NaN(), struct{}{}, []any{math.Inf(1)}, json.Number("abc")} {
		if got := compile(t, `true`).Validate(v); len(got) != 1 || got[0].Keyword != schema.Undecided {
			t.Errorf("%v: got %v, want undecided", v, got)
		}
	}
}

func TestToolConcurrentUse(t *testing.T) {
	tool := compile(t, `{"items": {"type": "string"}}`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got := tool.Validate([]any{"a", 5}); len(got) != 1 || got[0].Pointer != "/1" {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	wg.Wait()
}
