package values

import (
	"encoding/json"
	"strings"
	"testing"
)

// parse decodes a JSON text as a peer's message is decoded.
func parse(tb testing.TB, text string) any {
	tb.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return value
}

func encode(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// realistic are schemas in the style of the common generators.
var realistic = []struct {
	name, schema string
	valid, full  string   // as JSON
	invalid      []string // names and details of the mutations, in order
}{
	{
		name:   "no arguments",
		schema: `{"type":"object"}`,
		valid:  `{}`, full: `{}`,
		invalid: []string{
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "zod through zod-to-json-schema",
		schema: `{"type":"object","properties":{"a":{"type":"number","description":"First number"},"b":{"type":"number"}},
			"required":["a","b"],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`,
		valid: `{"a":1,"b":1}`, full: `{"a":1,"b":1}`,
		invalid: []string{
			`missing-required: member "a" is missing`,
			`missing-required: member "b" is missing`,
			`wrong-type: "a" is "not-a-number", not a number`,
			`wrong-type: "b" is "not-a-number", not a number`,
			`additional-property: member "unexpectedMember" is not allowed`,
			`null-for-required: "a" is null, not a number`,
			`null-for-required: "b" is null, not a number`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "zod with enums, unions, bounds and tuples",
		schema: `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
			"level":{"type":"string","enum":["debug","info","warning"],"default":"info"},
			"limit":{"type":"integer","exclusiveMinimum":0,"maximum":100},
			"id":{"anyOf":[{"type":"string","format":"uuid"},{"type":"number"}]},
			"mode":{"type":"string","const":"fast"},
			"tags":{"type":"array","items":{"type":"string","minLength":2,"maxLength":4},"minItems":1,"maxItems":2},
			"pair":{"type":"array","minItems":2,"maxItems":2,"items":[{"type":"string"},{"type":"boolean"}]},
			"email":{"type":["string","null"],"format":"email"}},
			"required":["limit","id","tags"],"additionalProperties":false}`,
		valid: `{"id":"123e4567-e89b-42d3-a456-426614174001","limit":1,"tags":["exam"]}`,
		full: `{"email":"user@example.com","id":"123e4567-e89b-42d3-a456-426614174001","level":"info","limit":1,
			"mode":"fast","pair":["example",false],"tags":["exam"]}`,
		invalid: []string{
			`missing-required: member "id" is missing`,
			`missing-required: member "limit" is missing`,
			`missing-required: member "tags" is missing`,
			`wrong-type: "id" is an object, not a string or a number`,
			`wrong-type: "limit" is "not-a-number", not an integer`,
			`wrong-type: "tags" is "not-an-array", not an array`,
			`wrong-type: "email" is an object, not a string or null`,
			`wrong-type: "level" is an object, not one of "debug", "info" or "warning"`,
			`wrong-type: "mode" is an object, not "fast"`,
			`wrong-type: "pair" is "not-an-array", not an array`,
			`wrong-type: item 0 of "tags" is an object, not a string`,
			`wrong-type: item 0 of "pair" is an object, not a string`,
			`wrong-type: item 1 of "pair" is "maybe", not a boolean`,
			`not-in-enum: "level" is "not-one-of-the-choices", not one of "debug", "info" or "warning"`,
			`not-in-enum: "mode" is "not-one-of-the-choices", not "fast"`,
			`below-minimum: "limit" is 0, not larger than 0`,
			`above-maximum: "limit" is 101, larger than 100`,
			`too-short: item 0 of "tags" has 1 characters, fewer than 2`,
			`too-long: item 0 of "tags" has 5 characters, more than 4`,
			`too-few-items: "tags" has 0 items, fewer than 1`,
			`too-few-items: "pair" has 1 items, fewer than 2`,
			`too-many-items: "tags" has 3 items, more than 2`,
			`too-many-items: "pair" has 3 items, more than 2`,
			`additional-property: member "unexpectedMember" is not allowed`,
			`fraction: "limit" is 1.5, not an integer`,
			`null-for-required: "id" is null, not a string or a number`,
			`null-for-required: "limit" is null, not an integer`,
			`null-for-required: "tags" is null, not an array`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "pydantic with $defs and optional members",
		schema: `{"$defs":{"Color":{"enum":["red","green"],"title":"Color","type":"string"},
			"Point":{"properties":{"x":{"title":"X","type":"integer","minimum":0},"label":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Label"}},"required":["x"],"title":"Point","type":"object"}},
			"properties":{"query":{"title":"Query","type":"string","pattern":"^[a-z]{3,8}$"},
			"limit":{"anyOf":[{"type":"integer","minimum":1,"maximum":50},{"type":"null"}],"default":null,"title":"Limit"},
			"color":{"$ref":"#/$defs/Color","default":"red"},
			"points":{"items":{"$ref":"#/$defs/Point"},"title":"Points","type":"array"}},
			"required":["query","points"],"title":"searchArguments","type":"object"}`,
		valid: `{"points":[],"query":"aaa"}`,
		full:  `{"color":"red","limit":null,"points":[{"label":null,"x":1}],"query":"aaa"}`,
		invalid: []string{
			`missing-required: member "points" is missing`,
			`missing-required: member "query" is missing`,
			`missing-required: member "x" is missing`,
			`wrong-type: "points" is "not-an-array", not an array`,
			`wrong-type: "query" is an object, not a string`,
			`wrong-type: "color" is an object, not one of "red" or "green"`,
			`wrong-type: "limit" is "not-a-number", not an integer or null`,
			`wrong-type: item 0 of "points" is "not-an-object", not an object`,
			`wrong-type: "label" is an object, not a string or null`,
			`wrong-type: "x" is "not-a-number", not an integer`,
			`not-in-enum: "color" is "not-one-of-the-choices", not one of "red" or "green"`,
			`below-minimum: "limit" is 0, smaller than 1`,
			`below-minimum: "x" is -1, smaller than 0`,
			`above-maximum: "limit" is 51, larger than 50`,
			`pattern-mismatch: "query" is "!", which does not match the pattern "^[a-z]{3,8}$"`,
			`fraction: "limit" is 1.5, not an integer or null`,
			`fraction: "x" is 1.5, not an integer`,
			`null-for-required: "points" is null, not an array`,
			`null-for-required: "query" is null, not a string`,
			`null-for-required: "x" is null, not an integer`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "pydantic with a discriminated union",
		schema: `{"$defs":{"Cat":{"properties":{"kind":{"const":"cat","type":"string"},"lives":{"type":"integer"}},"required":["kind","lives"],"type":"object"},
			"Dog":{"properties":{"kind":{"const":"dog","type":"string"},"bark":{"type":"boolean"}},"required":["kind","bark"],"type":"object"}},
			"properties":{"pet":{"discriminator":{"mapping":{"cat":"#/$defs/Cat","dog":"#/$defs/Dog"},"propertyName":"kind"},"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]}},
			"required":["pet"],"type":"object"}`,
		valid: `{"pet":{"kind":"cat","lives":1}}`, full: `{"pet":{"kind":"cat","lives":1}}`,
		invalid: []string{
			`missing-required: member "pet" is missing`,
			`missing-required: member "kind" is missing; it is one of "cat" or "dog"`,
			`missing-required: member "lives" is missing`,
			`wrong-type: "pet" is "not-an-object", not an object`,
			`wrong-type: "kind" is an object, not one of "cat" or "dog"`,
			`wrong-type: "lives" is "not-a-number", not an integer`,
			`not-in-enum: "kind" is "not-one-of-the-choices", not one of "cat" or "dog"`,
			`fraction: "lives" is 1.5, not an integer`,
			`null-for-required: "pet" is null, not an object`,
			`null-for-required: "kind" is null, not one of "cat" or "dog"`,
			`null-for-required: "lives" is null, not an integer`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "Go reflection",
		schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
			"name":{"type":"string"},"labels":{"type":["null","object"],"additionalProperties":{"type":"string"}},
			"list":{"type":["null","array"],"items":{"type":"integer"}},"when":{"type":"string"}},
			"required":["name","list"],"additionalProperties":false}`,
		valid: `{"list":[],"name":"example"}`,
		full:  `{"labels":{},"list":[1],"name":"example","when":"example"}`,
		invalid: []string{
			`missing-required: member "list" is missing`,
			`missing-required: member "name" is missing`,
			`wrong-type: "list" is "not-an-array", not an array or null`,
			`wrong-type: "name" is an object, not a string`,
			`wrong-type: "labels" is "not-an-object", not an object or null`,
			`wrong-type: "when" is an object, not a string`,
			`wrong-type: item 0 of "list" is "not-a-number", not an integer`,
			`additional-property: member "unexpectedMember" is not allowed`,
			`fraction: item 0 of "list" is 1.5, not an integer`,
			`null-for-required: "name" is null, not a string`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "Go reflection with references",
		schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/tree","$ref":"#/$defs/Tree","$defs":{"Tree":{
			"properties":{"value":{"type":"integer"},"left":{"$ref":"#/$defs/Tree"},"children":{"items":{"$ref":"#/$defs/Tree"},"type":"array"}},
			"additionalProperties":false,"type":"object","required":["value"]}}}`,
		valid: `{"value":1}`, full: `{"children":[],"value":1}`,
		invalid: []string{
			`missing-required: member "value" is missing`,
			`wrong-type: "value" is "not-a-number", not an integer`,
			`wrong-type: "children" is "not-an-array", not an array`,
			`additional-property: member "unexpectedMember" is not allowed`,
			`fraction: "value" is 1.5, not an integer`,
			`null-for-required: "value" is null, not an integer`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "schemars",
		schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Request","type":"object","properties":{
			"a":{"type":"integer","format":"int32"},"size":{"type":"integer","format":"uint8","minimum":0,"maximum":255},
			"unit":{"oneOf":[{"type":"string","enum":["metric"]},{"description":"feet","type":"string","const":"imperial"}]},
			"shape":{"oneOf":[{"type":"object","properties":{"Circle":{"type":"number","format":"double"}},"required":["Circle"],"additionalProperties":false},
				{"type":"object","properties":{"Square":{"type":"number","format":"double"}},"required":["Square"],"additionalProperties":false}]},
			"note":{"type":["string","null"]}},"required":["a","size","unit","shape"]}`,
		valid: `{"a":1,"shape":{"Circle":1},"size":1,"unit":"metric"}`,
		full:  `{"a":1,"note":"example","shape":{"Circle":1},"size":1,"unit":"metric"}`,
		invalid: []string{
			`missing-required: member "a" is missing`,
			`missing-required: member "shape" is missing`,
			`missing-required: member "size" is missing`,
			`missing-required: member "unit" is missing`,
			`missing-required: neither "Circle" nor "Square" is present; one of them is needed`,
			`wrong-type: "a" is "not-a-number", not an integer`,
			`wrong-type: "shape" is "not-an-object", not an object`,
			`wrong-type: "size" is "not-a-number", not an integer`,
			`wrong-type: "unit" is an object, not one of "metric" or "imperial"`,
			`wrong-type: "note" is an object, not a string or null`,
			`wrong-type: "Circle" is "not-a-number", not a number`,
			`not-in-enum: "unit" is "not-one-of-the-choices", not one of "metric" or "imperial"`,
			`below-minimum: "size" is -1, smaller than 0`,
			`above-maximum: "size" is 256, larger than 255`,
			`additional-property: member "unexpectedMember" is not allowed`,
			`fraction: "a" is 1.5, not an integer`,
			`fraction: "size" is 1.5, not an integer`,
			`null-for-required: "a" is null, not an integer`,
			`null-for-required: "shape" is null, not an object`,
			`null-for-required: "size" is null, not an integer`,
			`null-for-required: "unit" is null, not one of "metric" or "imperial"`,
			`null-for-required: "Circle" is null, not a number`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
	{
		name: "elicitation",
		schema: `{"type":"object","properties":{"name":{"type":"string","minLength":3,"maxLength":20},"email":{"type":"string","format":"email"},
			"site":{"type":"string","format":"uri"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
			"age":{"type":"number","minimum":0.5,"maximum":1},"ok":{"type":"boolean","default":true},
			"size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"]}},"required":["name","email","age"]}`,
		valid: `{"age":1,"email":"user@example.com","name":"example"}`,
		full: `{"age":1,"at":"2025-01-01T12:00:00Z","day":"2025-01-01","email":"user@example.com","name":"example","ok":true,
			"site":"https://example.com/","size":"s"}`,
		invalid: []string{
			`missing-required: member "age" is missing`,
			`missing-required: member "email" is missing`,
			`missing-required: member "name" is missing`,
			`wrong-type: "age" is "not-a-number", not a number`,
			`wrong-type: "email" is an object, not a string`,
			`wrong-type: "name" is an object, not a string`,
			`wrong-type: "at" is an object, not a string`,
			`wrong-type: "day" is an object, not a string`,
			`wrong-type: "ok" is "maybe", not a boolean`,
			`wrong-type: "site" is an object, not a string`,
			`wrong-type: "size" is an object, not one of "s" or "m"`,
			`not-in-enum: "size" is "not-one-of-the-choices", not one of "s" or "m"`,
			`below-minimum: "age" is -0.5, smaller than 0.5`,
			`above-maximum: "age" is 2, larger than 1`,
			`too-short: "name" has 2 characters, fewer than 3`,
			`too-long: "name" has 21 characters, more than 20`,
			`null-for-required: "age" is null, not a number`,
			`null-for-required: "email" is null, not a string`,
			`null-for-required: "name" is null, not a string`,
			`not-an-object: the value is an array, not an object`,
			`not-an-object: the value is "not-an-object", not an object`,
		},
	},
}
