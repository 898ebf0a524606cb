package values

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show writes mutations as `name pointer value`, those at the root last left out.
func show(tb testing.TB, list []Mutation) []string {
	var lines []string
	for _, m := range list {
		if m.Name != "not-an-object" {
			lines = append(lines, strings.Join([]string{m.Name, m.Pointer, encode(tb, m.Value)}, " "))
		}
	}
	return lines
}

func TestInvalid(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		want         []string
	}{
		{"nothing is rejected", `{}`, nil},
		{"true", `true`, nil},
		{"no such schema", `{"type":"strnig"}`, nil},
		{"no valid value", `{"type":"object","properties":{"a":{"type":"integer","minimum":2,"maximum":1}},"required":["a"]}`, nil},
		{"a format is no rule", `{"type":"object","properties":{"a":{"format":"email"}}}`, nil},
		{
			"a missing member that two rules want", `{"type":"object","required":["a"],"minProperties":1,"properties":{"a":{},"b":{}}}`,
			[]string{`missing-required  {"b":"example"}`},
		},
		{
			"a type that other branches have", `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"object"}]}}}`,
			[]string{`wrong-type /a {"a":["not-expected"]}`, `fraction /a {"a":1.5}`},
		},
		{"a type list of all", `{"type":"object","properties":{"a":{"type":["string","number","boolean","object","array","null"]}}}`, nil},
		{
			"escaped names", `{"type":"object","properties":{"a/b~":{"type":"null"}}}`,
			[]string{`wrong-type /a~1b~0 {"a/b~":"not-null"}`},
		},
		{
			"enumerated numbers and booleans", `{"type":"object","properties":{"a":{"enum":[1,987655.5]},"b":{"const":true},"c":{"enum":[true,false]}}}`,
			[]string{
				`wrong-type /a {"a":"not-a-number"}`, `wrong-type /b {"b":"maybe"}`, `wrong-type /c {"c":"maybe"}`,
				`not-in-enum /a {"a":987656}`, `not-in-enum /b {"b":false}`,
			},
		},
		{
			"bounds with a step", `{"type":"object","properties":{"a":{"type":"integer","minimum":10,"maximum":20,"multipleOf":5}}}`,
			[]string{
				`wrong-type /a {"a":"not-a-number"}`, `below-minimum /a {"a":5}`,
				`above-maximum /a {"a":25}`, `not-a-multiple /a {"a":11}`, `fraction /a {"a":10.5}`,
			},
		},
		{
			"excluded bounds", `{"type":"object","properties":{"a":{"exclusiveMinimum":0,"exclusiveMaximum":0.5}}}`,
			[]string{`below-minimum /a {"a":0}`, `above-maximum /a {"a":0.5}`},
		},
		{
			"fractional bounds of an integer", `{"type":"object","properties":{"a":{"type":"integer","minimum":0.5,"maximum":1.5}}}`,
			[]string{
				`wrong-type /a {"a":"not-a-number"}`, `below-minimum /a {"a":0}`, `above-maximum /a {"a":2}`,
				`fraction /a {"a":1.5}`,
			},
		},
		{
			"lengths keep the format", `{"type":"object","properties":{"a":{"type":"string","format":"uri","minLength":1,"maxLength":22}}}`,
			[]string{
				`wrong-type /a {"a":{"not":"expected"}}`, `too-short /a {"a":""}`,
				`too-long /a {"a":"https://example.com/aaa"}`,
			},
		},
		{
			"lengths keep the pattern", `{"type":"object","properties":{"a":{"type":"string","pattern":"^x[0-9]*$","minLength":3,"maxLength":4}}}`,
			[]string{
				`wrong-type /a {"a":{"not":"expected"}}`, `too-short /a {"a":"x0"}`,
				`too-long /a {"a":"x0000"}`, `pattern-mismatch /a {"a":"!!!"}`,
			},
		},
		{
			"a pattern that sets the length", `{"type":"object","properties":{"a":{"pattern":"^[0-9]{3}$","minLength":3,"maxLength":3}}}`,
			[]string{`pattern-mismatch /a {"a":"!!!"}`},
		},
		{"a pattern that is not judged", `{"type":"object","properties":{"a":{"pattern":"^(?=a)"}}}`, nil},
		{
			"items", `{"type":"object","properties":{"a":{"minItems":1,"maxItems":2,"uniqueItems":true}}}`,
			[]string{`too-few-items /a {"a":[]}`, `too-many-items /a {"a":["example","example1","example2"]}`},
		},
		{
			"additional members below", `{"type":"object","properties":{"a":{"type":"object","patternProperties":{"^u":{}},"additionalProperties":false}}}`,
			[]string{`wrong-type /a {"a":"not-an-object"}`, `additional-property /a {"a":{"0":"unexpected"}}`},
		},
		{
			"unevaluated members", `{"type":"object","allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`,
			[]string{`additional-property  {"unexpectedMember":"unexpected"}`},
		},
		{
			"a member that needs another", `{"type":"object","properties":{"a":{"type":"null"},"b":{}},"dependentRequired":{"a":["b"]}}`,
			[]string{`wrong-type /a {"a":"not-null","b":"example"}`},
		},
		{
			"conditions", `{"type":"object","properties":{"k":{"const":"x"}},"required":["k"],"if":{"properties":{"k":{"const":"x"}}},"then":{"required":["z"],"properties":{"z":{"type":"boolean"}}}}`,
			[]string{
				`missing-required  {"z":false}`, `missing-required  {"k":"x"}`,
				`wrong-type /k {"k":{"not":"expected"},"z":false}`, `wrong-type /z {"k":"x","z":"maybe"}`, `not-in-enum /k {"k":"not-one-of-the-choices","z":false}`,
				`null-for-required /k {"k":null,"z":false}`, `null-for-required /z {"k":"x","z":null}`,
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			document := parse(t, test.schema)
			list := Invalid(document)
			checkMutations(t, document, list)
			if diff := cmp.Diff(test.want, show(t, list)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNotAnObject(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`:            `[[],"not-an-object"]`,
		`{"type":["object","string"]}`: `[[]]`,
		`{}`:                           `[]`,
		`true`:                         `[]`,
		`false`:                        `[]`,
		// Even without a valid value it is known that these are not.
		`{"type":"object","required":["a"],"additionalProperties":false}`: `[[],"not-an-object"]`,
	} {
		values := []any{}
		for _, m := range Invalid(parse(t, schema)) {
			if m.Name == "not-an-object" {
				values = append(values, m.Value)
				if m.Pointer != "" {
					t.Errorf("%s: %+v", schema, m)
				}
			}
		}
		if got := encode(t, values); got != want {
			t.Errorf("%s: %s, not %s", schema, got, want)
		}
	}
}

func TestTooLongIsBounded(t *testing.T) {
	for limit, want := range map[string]int{"131071": 1, "131072": 0, "1000000000": 0} {
		got := 0
		for _, m := range Invalid(parse(t, `{"type":"object","properties":{"a":{"type":"string","maxLength":`+limit+`}}}`)) {
			if m.Name == "too-long" {
				got++
			}
		}
		if got != want {
			t.Errorf("maxLength %s: %d values that are too long, not %d", limit, got, want)
		}
	}
}

// One kind of mutation must not leave room for no other.
func TestManyOfAKind(t *testing.T) {
	names := many(200, func(i int) string { return `"p` + strings.Repeat("x", i) + `"` })
	members := many(200, func(i int) string { return `"p` + strings.Repeat("x", i) + `":{"type":"integer","minimum":0}` })
	count := map[string]int{}
	for _, m := range Invalid(parse(t, `{"type":"object","required":[`+names+`],"properties":{`+members+`},"additionalProperties":false}`)) {
		count[m.Name]++
	}
	want := map[string]int{
		"missing-required": maxOfKind, "wrong-type": maxOfKind, "below-minimum": maxOfKind, "additional-property": 1,
		"fraction": maxOfKind, "null-for-required": maxOfKind, "not-an-object": 2,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
