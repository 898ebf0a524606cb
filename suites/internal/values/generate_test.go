package values

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpconform/mcpconform/schema"
)

// judge reports the faults of a value by a compilation of the schema of its own.
func judge(tb testing.TB, document, value any) []schema.Violation {
	tb.Helper()
	tool, err := schema.CompileTool(document)
	if err != nil {
		tb.Fatal(err)
	}
	return tool.Validate(value)
}

func TestRealistic(t *testing.T) {
	for _, test := range realistic {
		t.Run(test.name, func(t *testing.T) {
			document := parse(t, test.schema)
			for _, want := range []struct {
				text string
				make func(any) (any, bool)
			}{{test.valid, Valid}, {test.full, Full}} {
				value, ok := want.make(document)
				if !ok {
					t.Fatal("no value was found")
				}
				if diff := cmp.Diff(parse(t, want.text), value); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			mutations := Invalid(document)
			checkMutations(t, document, mutations)
			var got []string
			for _, m := range mutations {
				got = append(got, m.Name+": "+m.Detail)
			}
			if test.invalid == nil {
				t.Fatalf("%s", strings.Join(got, "\n"))
			}
			if diff := cmp.Diff(test.invalid, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// checkMutations tests what holds for the mutations of any schema.
func checkMutations(tb testing.TB, document any, mutations []Mutation) {
	tb.Helper()
	if len(mutations) == 0 {
		return
	}
	tool, err := schema.CompileTool(document)
	if err != nil {
		tb.Fatal(err)
	}
	seen := map[string]bool{}
	for i, m := range mutations {
		list := tool.Validate(m.Value)
		if len(list) != 1 || list[0].Keyword == schema.Undecided || list[0].Message != m.Detail {
			tb.Errorf("%s at %q: the schema finds %v, not %q alone", m.Name, m.Pointer, list, m.Detail)
		}
		if !strings.HasPrefix(list[0].Pointer, m.Pointer) {
			tb.Errorf("%s: the fault is at %q, not at %q", m.Name, list[0].Pointer, m.Pointer)
		}
		text := encode(tb, m.Value)
		if seen[text] {
			tb.Errorf("%s at %q repeats the value %.200s", m.Name, m.Pointer, text)
		}
		seen[text] = true
		if i > 0 && rank(m) < rank(mutations[i-1]) {
			tb.Errorf("%s comes after %s", m.Name, mutations[i-1].Name)
		}
	}
}

func rank(m Mutation) int {
	for i, r := range append(slices.Clone(rules), wholeRule) {
		if r.name == m.Name {
			return i
		}
	}
	return -1
}

// Every schema must have the value of want, or none where that is empty.
var keywords = []struct{ name, schema, want string }{
	{"true", `true`, `{}`},
	{"empty", `{}`, `{}`},
	{"false", `false`, ``},
	{"no schema", `42`, ``},
	{"null", `null`, ``},
	{"not a schema", `{"type":"strnig"}`, ``},
	{"untyped member", `{"required":["a"],"properties":{"a":{"description":"x"}}}`, `{"a":"example"}`},

	{"const before all", `{"const":7,"default":8,"examples":[9],"enum":[6,7,8,9]}`, `7`},
	{"default before examples", `{"type":"integer","default":8,"examples":[9],"enum":[6,8,9]}`, `8`},
	{"examples before enum", `{"type":"integer","examples":[9],"enum":[6,9]}`, `9`},
	{"enum", `{"enum":[null,"b"]}`, `null`},
	{"enum with other rules", `{"type":"string","minLength":2,"enum":["a",1,"bb"]}`, `"bb"`},
	{"invalid default", `{"type":"string","default":5}`, `"example"`},
	{"default that is ill-formed", `{"type":"string","format":"uri","default":""}`, `"https://example.com/"`},
	{"default behind an unknown format", `{"type":"string","format":"date","pattern":"^soon$","default":"soon"}`, `"soon"`},
	{"constants exclude each other", `{"allOf":[{"const":1},{"const":2}]}`, ``},
	{"large constant", `{"const":123456789012345678901234567890}`, `123456789012345678901234567890`},

	{"string", `{"type":"string"}`, `"example"`},
	{"minLength", `{"type":"string","minLength":10}`, `"exampleaaa"`},
	{"maxLength", `{"type":"string","maxLength":3}`, `"exa"`},
	{"empty string", `{"type":"string","maxLength":0}`, `""`},
	{"lengths exclude each other", `{"type":"string","minLength":5,"maxLength":3}`, ``},
	{"long e-mail", `{"type":"string","format":"email","minLength":18}`, `"aauser@example.com"`},
	{"long URI", `{"type":"string","format":"uri","minLength":22,"maxLength":22}`, `"https://example.com/aa"`},
	{"format and pattern", `{"type":"string","format":"email","pattern":"^\\S+@\\S+\\.\\S+$"}`, `"user@example.com"`},
	{"unknown format", `{"type":"string","format":"colour-of-magic"}`, `"example"`},
	{"pattern", `{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`, `"AA-0"`},
	{"pattern that must be long", `{"type":"string","pattern":"^[A-Z]{2}(-\\d+)*$","minLength":7}`, `"AA-000-000"`},
	{"nested stars", `{"type":"string","pattern":"^((ab)*)*$","minLength":5}`, `"abababab"`},
	{"unanchored pattern", `{"type":"string","pattern":"v[0-9]","minLength":5}`, `"v0aaa"`},
	{"second alternative", `{"type":"string","pattern":"^(a|bcd)$","minLength":3}`, `"bcd"`},
	{"two patterns", `{"type":"string","allOf":[{"pattern":"^[a-z]+$"},{"pattern":"^x"}]}`, `"x"`},
	{"lookahead", `{"type":"string","pattern":"^(?!x[)])(?=.*a)\\u0041[bc]$"}`, `"Ab"`},
	{"pattern that nothing matches", `{"type":"string","pattern":"a^"}`, ``},
	{"not a string", `{"type":"string","not":{"const":"example"}}`, `"example1"`},

	{"number", `{"type":"number"}`, `1`},
	{"integer", `{"type":"integer"}`, `1`},
	{"minimum", `{"type":"integer","minimum":5}`, `5`},
	{"fractional minimum", `{"type":"integer","minimum":4.2}`, `5`},
	{"exclusiveMinimum", `{"type":"integer","exclusiveMinimum":5}`, `6`},
	{"maximum", `{"type":"integer","maximum":-3.5}`, `-4`},
	{"exclusiveMaximum", `{"type":"integer","exclusiveMaximum":-3}`, `-4`},
	{"open interval", `{"type":"number","exclusiveMinimum":2,"exclusiveMaximum":2.5}`, `2.25`},
	{"multipleOf", `{"type":"number","multipleOf":0.1}`, `1`},
	{"multipleOf with bounds", `{"type":"number","multipleOf":0.3,"minimum":0.4,"maximum":0.7}`, `0.6`},
	{"no integer between", `{"type":"integer","exclusiveMinimum":5,"exclusiveMaximum":6}`, ``},
	{"number but no integer", `{"type":"number","not":{"type":"integer"}}`, `1.5`},
	{"draft-04 bounds", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","minimum":5,"exclusiveMinimum":true}`, `6`},
	{"number of extreme size", `{"type":"number","minimum":1e999999999}`, ``},

	{"boolean", `{"type":"boolean"}`, `false`},
	{"type null", `{"type":"null"}`, `null`},
	{"type list", `{"type":["null","string"]}`, `"example"`},
	{"keywords hint at the type", `{"required":["a"],"properties":{"a":{"minimum":3}}}`, `{"a":3}`},
	{"types exclude each other", `{"allOf":[{"type":"string"},{"type":"null"}]}`, ``},
	{"integer is a number", `{"allOf":[{"type":"integer"},{"type":["number","string"]}]}`, `1`},

	{"array", `{"type":"array","items":{"type":"string"}}`, `[]`},
	{"minItems", `{"type":"array","items":{"type":"boolean"},"minItems":2}`, `[false,false]`},
	{"prefixItems", `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,"minItems":2}`, `["example",1]`},
	{"too many for the prefix", `{"type":"array","prefixItems":[{}],"items":false,"minItems":2}`, ``},
	{"draft-07 tuple", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"null"}],"additionalItems":{"type":"integer"},"minItems":2}`, `[null,1]`},
	{"unique strings", `{"type":"array","items":{"type":"string"},"minItems":3,"uniqueItems":true}`, `["example","example1","example2"]`},
	{"unique integers", `{"type":"array","items":{"type":"integer","maximum":2},"minItems":3,"uniqueItems":true}`, `[1,2,0]`},
	{"unique enum", `{"type":"array","items":{"enum":["a","b"]},"minItems":2,"uniqueItems":true}`, `["a","b"]`},
	{"unique booleans", `{"type":"array","items":{"type":"boolean"},"minItems":3,"uniqueItems":true}`, ``},
	{"unique dates", `{"type":"array","items":{"type":"string","format":"date"},"minItems":2,"uniqueItems":true}`, `["2025-01-01","2025-01-02"]`},
	{"unique objects", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},"minItems":2,"uniqueItems":true}`, `[{"a":1},{"a":2}]`},
	{"unique arrays", `{"type":"array","items":{"type":"array","items":{"type":"null"}},"minItems":3,"uniqueItems":true}`, ``},
	{"rules that are not followed", `{"type":"object","required":["a"],"dependentRequired":{"a":["b"]},"properties":{"c":{"contains":{"const":"x"}}}}`, ``},

	{"required", `{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"]}`, `{"a":"example"}`},
	{"required, but not declared", `{"type":"object","required":["a"]}`, `{"a":"example"}`},
	{"required, but not allowed", `{"type":"object","required":["a"],"additionalProperties":false}`, ``},
	{"required, but false", `{"type":"object","required":["a"],"properties":{"a":false}}`, ``},
	{"a problem further below", `{"type":"object","required":["a/b"],"properties":{"a/b":{"type":"array","minItems":1,"items":{"type":"integer","minimum":2,"maximum":1}}}}`, ``},
	{"additionalProperties", `{"type":"object","required":["a"],"additionalProperties":{"type":"null"}}`, `{"a":null}`},
	{"patternProperties", `{"type":"object","required":["x-a"],"patternProperties":{"^x-":{"type":"null"}},"additionalProperties":false}`, `{"x-a":null}`},
	{"minProperties", `{"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":{"type":"integer"},"minProperties":2}`, `{"a":null,"member1":1}`},
	{"maxProperties", `{"type":"object","required":["a","b"],"maxProperties":1}`, ``},
	{"an optional member is needed", `{"type":"object","properties":{"a":{"type":"null"}},"not":{"maxProperties":0}}`, `{"a":null}`},
	{"unevaluatedProperties", `{"type":"object","allOf":[{"properties":{"a":{"type":"null"}}}],"required":["a"],"unevaluatedProperties":false}`, `{"a":null}`},

	{"allOf", `{"allOf":[{"type":"integer","minimum":3},{"maximum":4},{"multipleOf":4}]}`, `4`},
	{"allOf of objects", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"a":{"minLength":9}},"required":["b"]}]}`, `{"a":"exampleaa","b":"example"}`},
	{"anyOf", `{"anyOf":[{"type":"null"},{"type":"string"}]}`, `null`},
	{"anyOf whose first part is impossible", `{"type":"string","anyOf":[{"type":"null"},{"minLength":8}]}`, `"examplea"`},
	{"anyOf of required", `{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":null}`},
	{"oneOf", `{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1.5`},
	{"oneOf of objects", `{"oneOf":[{"properties":{"a":{"type":"null"}},"additionalProperties":false},{"properties":{"b":{"type":"null"}},"additionalProperties":false}]}`, `{"a":null}`},
	{"two choices", `{"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"anyOf":[{"const":3},{"const":2}]}]}`, `2`},
	{"no choice", `{"anyOf":[{"type":"integer","minimum":2,"maximum":1},false]}`, ``},
	{"if and then", `{"type":"object","required":["k"],"properties":{"k":{"enum":["x","y"]}},"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["z"]}}`, `{"k":"x","z":"example"}`},
	{"if and else", `{"type":"object","required":["k"],"properties":{"k":{"const":"y"}},"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["z"]},"else":{"required":["w"]}}`, `{"k":"y","w":"example"}`},
	{"not", `{"type":"object","not":{"required":["a"]}}`, `{}`},

	{"$ref", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`, `null`},
	{"$ref with siblings", `{"$ref":"#/$defs/a","minimum":3,"$defs":{"a":{"type":"integer"}}}`, `3`},
	{"$id", `{"$id":"https://example.com/s","$ref":"part","$defs":{"a":{"$id":"part","type":"null"}}}`, ``},
	{"escaped $ref", `{"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"type":"null"}}}`, `null`},
	{"recursion through anyOf", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["next"],"properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}}}`, `{"next":null}`},
	{"endless recursion", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","required":["next"],"properties":{"next":{"$ref":"#/$defs/n"}}}}}`, ``},
	{"references in a circle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, ``},
	{"reference to nowhere", `{"$ref":"#/$defs/a"}`, ``},
	{"remote reference", `{"$ref":"https://example.com/other.json"}`, ``},
	{"file", `{"$ref":"file:///etc/passwd"}`, ``},
	{"$dynamicRef", `{"$dynamicRef":"#x"}`, ``},
}

func TestKeywords(t *testing.T) {
	for _, test := range keywords {
		t.Run(test.name, func(t *testing.T) {
			document := parse(t, test.schema)
			value, ok := Valid(document)
			if test.want == "" {
				if ok {
					t.Fatalf("got %s; want no value", encode(t, value))
				}
				return
			}
			if !ok {
				t.Fatal("no value was found")
			}
			if diff := cmp.Diff(parse(t, test.want), value); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if list := judge(t, document, value); len(list) > 0 {
				t.Errorf("not valid: %v", list)
			}
			if full, ok := Full(document); !ok {
				t.Error("no full value was found")
			} else if list := judge(t, document, full); len(list) > 0 {
				t.Errorf("full value %s is not valid: %v", encode(t, full), list)
			}
			checkMutations(t, document, Invalid(document))
		})
	}
}

func TestFull(t *testing.T) {
	for _, test := range []struct{ name, schema, want string }{
		{"members of members", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"boolean"}}}}}`, `{"a":{"b":false}}`},
		{"an item", `{"type":"array","items":{"type":"null"}}`, `[null]`},
		{"no room for an item", `{"type":"array","items":{"type":"null"},"maxItems":0}`, `[]`},
		{"prefix", `{"type":"array","prefixItems":[{"type":"null"},{"type":"integer"}]}`, `[null,1]`},
		{"maxProperties", `{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"required":["c"],"maxProperties":2}`, `{"a":null,"c":null}`},
		{"impossible member", `{"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":1},"b":{"type":"null"}}}`, `{"b":null}`},
		{"members that exclude each other", `{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"c":{"type":"null"}},"not":{"required":["a","b"]}}`, `{"a":null,"c":null}`},
		{"recursion", `{"type":"object","properties":{"self":{"$ref":"#"},"list":{"type":"array","items":{"$ref":"#"}},"by":{"type":"object","additionalProperties":{"$ref":"#"}},"x":{"type":"null"}}}`, `{"by":{},"list":[],"x":null}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, ok := Full(parse(t, test.schema))
			if !ok {
				t.Fatal("no value was found")
			}
			if diff := cmp.Diff(parse(t, test.want), value); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNumbersOfAnyGoType(t *testing.T) {
	for _, minimum := range []any{3, int64(3), 3.0} {
		if value, ok := Valid(map[string]any{"type": "integer", "minimum": minimum}); !ok || value != json.Number("3") {
			t.Errorf("minimum %T: got %v (%T)", minimum, value, value)
		}
	}
	for _, bad := range []any{math.NaN(), math.Inf(1), json.Number("x"), json.Number(""), json.Number(`"1"`), struct{}{}, []string{"a"}} {
		if value, ok := Valid(map[string]any{"enum": []any{bad}}); ok {
			t.Errorf("%T %v: got %v", bad, bad, value)
		}
	}
}

// The caller's schema stays as it is, and what is returned is not part of it.
func TestSchemaIsNotShared(t *testing.T) {
	document := parse(t, `{"type":"object","properties":{"a":{"default":{"x":[1]}},"b":{"const":{"y":2}}},"required":["a","b"]}`)
	before := encode(t, document)
	value, ok := Valid(document)
	if !ok {
		t.Fatal("no value was found")
	}
	members := value.(map[string]any)
	members["a"].(map[string]any)["x"].([]any)[0] = "changed"
	members["b"].(map[string]any)["y"] = "changed"
	Invalid(document)
	if after := encode(t, document); after != before {
		t.Errorf("the schema became %s", after)
	}
}

func TestDeterministic(t *testing.T) {
	for _, test := range realistic {
		document := parse(t, test.schema)
		first := encode(t, Invalid(document))
		for range 5 {
			if again := encode(t, Invalid(document)); again != first {
				t.Errorf("%s: %s, then %s", test.name, first, again)
			}
		}
	}
}

// Samples are of their format, as far as the library can tell, and differ.
func TestFormats(t *testing.T) {
	known := 0
	for name, pattern := range formats {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		if err := c.AddResource("test:///format", map[string]any{"format": name}); err != nil {
			t.Fatal(err)
		}
		format := c.MustCompile("test:///format")
		seen := map[string]bool{}
		for k := range 20 {
			text := sample(name, k, 0)
			if err := format.Validate(text); err != nil {
				t.Error(err)
			}
			if seen[text] {
				t.Errorf("%s: %q comes twice", name, text)
			}
			seen[text] = true
		}
		long := sample(name, 1, 60)
		if strings.Contains(pattern, "%[1]s") && len(long) != 60 {
			t.Errorf("%s: %q has %d characters", name, long, len(long))
		}
		if err := format.Validate(long); err != nil {
			t.Error(err)
		}
		if format.Validate("{ \x00 not of any format") != nil {
			known++
		}
	}
	if known < 14 {
		t.Errorf("only %d formats are checked", known)
	}
}
