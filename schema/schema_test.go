package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/internal/source"
)

func load(t testing.TB) *schema.Revision {
	t.Helper()
	r := schema.Default()
	return r
}

func parse(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

func corpus(t testing.TB) []source.Cases {
	t.Helper()
	cases, err := source.Corpus("../fixtures/messages")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// Every definition has examples of both kinds, and each invalid one is reported
// as the one violation that it is, at its place.
func TestCorpus(t *testing.T) {
	r := load(t)
	missing := r.Names()
	for _, cases := range corpus(t) {
		missing = slices.DeleteFunc(missing, func(def string) bool { return def == cases.Definition })
		if len(cases.Valid) < 2 || len(cases.Invalid) < 2 {
			t.Errorf("%s has %d valid and %d invalid examples, want two of each", cases.Definition, len(cases.Valid), len(cases.Invalid))
		}
		for i, value := range append(slices.Clone(cases.Valid), cases.Wider...) {
			if got := r.Validate(cases.Definition, value); got != nil {
				t.Errorf("%s: valid example %d is refused: %v", cases.Definition, i, got)
			}
		}
		for _, c := range cases.Invalid {
			got := r.Validate(cases.Definition, c.Value)
			if len(got) != 1 || got[0].Pointer != c.Pointer || got[0].Keyword != c.Keyword {
				t.Errorf("%s, %s: got %v, want one %s at %q", cases.Definition, c.Why, got, c.Keyword, c.Pointer)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no examples of %v", missing)
	}
}

// The missing member is reported as Property, apart from the words.
func TestMissingProperty(t *testing.T) {
	r := load(t)
	for def, want := range map[string]string{
		`Tool {"name": "x"}`: "inputSchema",
		`ContentBlock {}`:    "type",
		`ReadResourceResult {"contents": [{"uri": "a:"}]}`:    "",
		`Tool {"name": 5, "inputSchema": {"type": "object"}}`: "",
	} {
		def, value, _ := strings.Cut(def, " ")
		got := r.Validate(def, parse(t, value))
		if len(got) != 1 || got[0].Property != want {
			t.Errorf("%s %s: got %+v, want the property %q", def, value, got, want)
		}
	}
}

func TestMessages(t *testing.T) {
	const allTypes = `"text", "image", "audio", "resource_link" or "resource"`
	tests := []struct {
		def, value string
		want       []string
	}{
		{"Tool", `{"name": "x"}`, []string{`member "inputSchema" is missing`}},
		{"Annotations", `{"priority": 1.5}`, []string{`/priority: "priority" is 1.5, larger than 1`}},
		{"Annotations", `{"priority": -1e-3, "audience": ["system"]}`, []string{
			`/audience/0: item 0 of "audience" is "system", not one of "user" or "assistant"`,
			`/priority: "priority" is -1e-3, smaller than 0`,
		}},
		{"ContentBlock", `{"type": "video"}`, []string{`/type: "type" is "video", not one of ` + allTypes}},
		{"ContentBlock", `{}`, []string{`member "type" is missing; it is one of ` + allTypes}},
		{"ContentBlock", `{"type": "text", "text": null}`, []string{`/text: "text" is null, not a string`}},
		{"ContentBlock", `"hello"`, []string{`the value is "hello", not an object`}},
		{"ReadResourceResult", `{"contents": [{"uri": "a:b"}]}`, []string{
			`/contents/0: neither "text" nor "blob" is present; one of them is needed`,
		}},
		{"ReadResourceResult", `{"contents": [{"uri": "b"}]}`, []string{
			`/contents/0: neither "text" nor "blob" is present; one of them is needed`,
			`/contents/0/uri: "uri" is "b", not a URI: the scheme is missing`,
		}},
		{"ReadResourceResult", `{"contents": [{"blob": 5}]}`, []string{
			`/contents/0: member "uri" is missing`,
			`/contents/0/blob: "blob" is 5, not a string`,
		}},
		{"PrimitiveSchemaDefinition", `{"type": "string", "format": "phone", "minLength": "x"}`, []string{
			`/format: "format" is "phone", not one of "email", "uri", "date" or "date-time"`,
			`/minLength: "minLength" is "x", not an integer`,
		}},
		{"PrimitiveSchemaDefinition", `{"type": "array"}`, []string{
			`/type: "type" is "array", not one of "string", "number", "integer" or "boolean"`,
		}},
		{"RequestId", `null`, []string{`the value is null, not a string or an integer`}},
		{"ElicitResult", `{"action": "accept", "content": {"b": [], "a": {}}}`, []string{
			`/content/a: "a" is an object, not a string, a number or a boolean`,
			`/content/b: "b" is an array, not a string, a number or a boolean`,
		}},
		{"GetPromptRequest", `{"method": "prompts/get", "params": {"name": "x", "arguments": {"a/b~c": 1}}}`, []string{
			`/params/arguments/a~1b~0c: "a/b~c" is 1, not a string`,
		}},
		{"Nonsense", `{}`, []string{`the revision has no definition "Nonsense"`}},
	}
	r := load(t)
	for _, test := range tests {
		var got []string
		for _, v := range r.Validate(test.def, parse(t, test.value)) {
			got = append(got, v.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.def, test.value, diff)
		}
	}
}

func TestNumbers(t *testing.T) {
	r := load(t)
	integers := []any{
		json.Number("1"), json.Number("-0"), json.Number("1.0"), json.Number("1.50e1"), json.Number("100e-2"),
		json.Number("0.0"), json.Number("0e-999999999999"), json.Number("1e999999999999999999999"), json.Number("12345678901234567890"), 3.0, 4, int64(5),
	}
	for _, n := range integers {
		if got := r.Validate("RequestId", n); got != nil {
			t.Errorf("%v is refused: %v", n, got)
		}
	}
	for _, n := range []any{json.Number("1.5"), json.Number("1e-1"), json.Number("105e-2"), json.Number("1e-999999999999999999999"), 0.5, math.NaN(), math.Inf(1), json.Number("x"), json.Number("")} {
		if got := r.Validate("RequestId", n); len(got) != 1 || got[0].Keyword != "type" {
			t.Errorf("%v: got %v, want one violation of type", n, got)
		}
	}
	for _, n := range []any{json.Number("1e999999"), json.Number("-1e999999"), json.Number("1.0001"), 2, -0.1} {
		if got := r.Validate("Annotations", map[string]any{"priority": n}); len(got) != 1 {
			t.Errorf("priority %v: got %v, want one violation", n, got)
		}
	}
}

// Input of a hostile peer floods neither the report nor the messages.
func TestLimits(t *testing.T) {
	r := load(t)
	long := strings.Repeat("é\x00", 500_000)
	content := make([]any, 100_000)
	for i := range content {
		content[i] = map[string]any{"type": long}
	}
	got := r.Validate("CallToolResult", map[string]any{"content": content})
	if len(got) != 20 {
		t.Errorf("got %d violations, want 20", len(got))
	}
	arguments := map[string]any{}
	for i := range 200 {
		arguments[strings.Repeat("/", 5000+i)] = nil
	}
	request := map[string]any{"method": "prompts/get", "params": map[string]any{"name": "x", "arguments": arguments}}
	first := r.Validate("GetPromptRequest", request)
	if len(first) != 20 {
		t.Errorf("got %d violations, want 20", len(first))
	}
	if diff := cmp.Diff(first, r.Validate("GetPromptRequest", request)); diff != "" {
		t.Errorf("the order changes:\n%s", diff)
	}
	got = append(got, first...)
	contents := make([]any, 30_000)
	for i := range contents {
		contents[i] = json.Number("1e999999999")
	}
	broken := r.Validate("CompleteResult", map[string]any{"completion": map[string]any{"values": contents}})
	if len(broken) != 20 || broken[19].Pointer != "/completion/values/19" {
		t.Errorf("got %d violations, want the first 20: %v", len(broken), broken)
	}
	got = append(got, broken...)
	for _, format := range []string{"uri", "uri-template", "byte"} {
		for _, text := range []string{long, "a:" + strings.Repeat("{", 1e6), "a:" + strings.Repeat("{a", 5e5) + strings.Repeat("}", 5e5), "{" + strings.Repeat("=", 1e6), "a:{" + strings.Repeat("a.,", 3e5) + "}"} {
			reason := schema.CheckFormat(format, text)
			if reason == "" {
				t.Errorf("%s accepts %.20q…", format, text)
			}
			got = append(got, schema.Violation{Message: reason})
		}
	}
	for _, v := range got {
		if len(v.Message) > 700 || len(v.Pointer) > 1100 || strings.ContainsAny(v.Message, "\x00\n") {
			t.Errorf("unbounded or raw violation: %d and %d bytes, %.100q", len(v.Pointer), len(v.Message), v.Message)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	cases := corpus(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := schema.Default()
			for _, c := range cases {
				for _, value := range c.Valid {
					if got := r.Validate(c.Definition, value); got != nil {
						t.Errorf("%s: %v", c.Definition, got)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestParseRefuses(t *testing.T) {
	for _, document := range []string{
		``, `[]`, `{}`, `{} {}`, `{"definitions": []}`, `{"definitions": {}}`,
	} {
		if _, err := schema.Parse([]byte(document)); err == nil {
			t.Errorf("accepted: %s", document)
		}
	}
	for _, definition := range []string{
		`{"type": "text"}`,
		`{"type": []}`,
		`{"$ref": "#/definitions/B"}`,
		`{"$ref": "https://example.org/b.json"}`,
		`{"$ref": "file:///etc/hostname"}`,
		`{"anyOf": []}`,
		`{"minimum": "0"}`,
		`{"properties": {"a": 5}}`,
		`5`,
	} {
		for _, holder := range []string{"definitions", "$defs"} {
			r, err := schema.Parse([]byte(`{"` + holder + `": {"A": ` + definition + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Warm(t.Context()); err == nil {
				t.Errorf("accepted below %s: %s", holder, definition)
			}
			if got := r.Validate("A", nil); len(got) != 1 || got[0].Keyword != "definition" {
				t.Errorf("%s: got %v, want one violation", definition, got)
			}
		}
	}
}

// A definition is compiled by whoever needs it first, and once.
func TestWarm(t *testing.T) {
	data, err := os.ReadFile(dir + "/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := schema.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := r.Warm(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that the context ended", err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Warm(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		wg.Go(func() {
			for _, c := range corpus(t) {
				for _, invalid := range c.Invalid {
					if got := r.Validate(c.Definition, invalid.Value); len(got) != 1 || got[0].Pointer != invalid.Pointer {
						t.Errorf("%s, %s: got %v", c.Definition, invalid.Why, got)
					}
				}
			}
		})
	}
	wg.Wait()
}

// The library passes over keywords and formats that it does not know: the
// revision's schema has none of them.
func TestKeywordsAreKnown(t *testing.T) {
	known := []string{
		"$schema", "definitions", "description", "$ref", "type", "properties", "required", "additionalProperties", "items",
		"anyOf", "const", "enum", "format", "minimum", "maximum",
	}
	var walk func(pointer string, value any)
	walk = func(pointer string, value any) {
		object, _ := value.(map[string]any)
		for keyword, value := range object {
			at := pointer + "/" + keyword
			if !slices.Contains(known, keyword) {
				t.Errorf("%s is not a known keyword", at)
			}
			switch keyword {
			case "properties", "definitions":
				for name, member := range value.(map[string]any) {
					walk(at+"/"+name, member)
				}
			case "items", "additionalProperties":
				walk(at, value)
			case "anyOf":
				for i, branch := range value.([]any) {
					walk(fmt.Sprint(at, "/", i), branch)
				}
			case "format":
				if schema.CheckFormat(value.(string), "{ }") == "" {
					t.Errorf("%s: nothing checks the format %v", at, value)
				}
			case "$ref":
				if len(object) > 1 {
					t.Errorf("%s hides its neighbours", at)
				}
			}
		}
	}
	data, err := os.ReadFile(dir + "/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	walk("", parse(t, string(data)))
}
