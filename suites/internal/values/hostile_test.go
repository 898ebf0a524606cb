package values

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// many returns n parts made from their numbers, separated by commas.
func many(n int, part func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = part(i)
	}
	return strings.Join(list, ",")
}

// hostile are schemas meant to exhaust who works with them.
var hostile = []struct{ name, schema string }{
	{"long string", `{"type":"string","minLength":1000000000}`},
	{"largest string", `{"type":"string","minLength":1048576,"maxLength":1048576}`},
	{"just too long", `{"type":"string","maxLength":1048575}`},
	{"many long strings", `{"type":"array","minItems":1000,"items":{"type":"string","minLength":100000}}`},
	{"many optional long strings", `{"type":"object","properties":{` + many(100, func(i int) string {
		return fmt.Sprintf(`"p%d":{"type":"string","minLength":500000,"maxLength":900000}`, i)
	}) + `}}`},
	{"endless array", `{"type":"array","minItems":1000000000000}`},
	{"long array", `{"type":"array","minItems":8000,"uniqueItems":true,"items":{"type":"integer"}}`},
	{"many items to contain", `{"type":"array","contains":{"const":1},"minContains":1000000000000}`},
	{"long object", `{"type":"object","minProperties":1000000000000}`},
	{"object that must grow", `{"type":"object","minProperties":5000}`},
	{"doubling at each level", `{"$ref":"#/$defs/d0","$defs":{` + many(30, func(i int) string {
		return fmt.Sprintf(`"d%d":{"type":"object","required":["a","b"],"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1)
	}) + `,"d30":{}}}`},
	{"doubling of judgement", `{"$ref":"#/$defs/d0","$defs":{` + many(30, func(i int) string {
		return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}) + `,"d30":{"type":"string","minLength":2,"maxLength":1}}}`},
	{"doubling of references", `{"$ref":"#/$defs/d0","$defs":{` + many(30, func(i int) string {
		return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1)
	}) + `,"d30":{"type":"string"}}}`},
	{"many choices without a solution", `{"type":"integer","allOf":[` + many(40, func(i int) string {
		return fmt.Sprintf(`{"oneOf":[{"multipleOf":%d},{"multipleOf":%d}]}`, 2*i+3, 2*i+4)
	}) + `],"maximum":7,"minimum":6}`},
	{"large common multiple", `{"type":"integer","minimum":1,"allOf":[` + many(3000, func(i int) string {
		return fmt.Sprintf(`{"multipleOf":%d}`, 1_000_003+2*i)
	}) + `]}`},
	{"numbers of extreme size", `{"enum":[1e-999999999,1e999999999,-1E+99999999999999999999],"minimum":1e-999999999,"multipleOf":1e-999999}`},
	{"number of many digits", `{"const":1` + strings.Repeat("0", 100_000) + `}`},
	{"many branches", `{"anyOf":[` + many(4000, func(i int) string {
		return fmt.Sprintf(`{"type":"object","properties":{"a":{"const":%d}},"required":["a","b%d"]}`, i, i)
	}) + `]}`},
	{"huge enum", `{"type":"object","properties":{"a":{"type":"string","enum":[` + many(15000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}},"required":["a"]}`},
	{"huge enum that does not fit", `{"type":"string","maxLength":3,"enum":[` + many(15000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}`},
	{"huge enums side by side", `{"allOf":[{"enum":[` + many(7000, func(i int) string { return fmt.Sprint(i) }) + `]},{"enum":[` + many(7000, func(i int) string { return fmt.Sprint(i + 6999) }) + `]}]}`},
	{"many members", `{"type":"object","properties":{` + many(1500, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) +
		`},"required":[` + many(1500, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}`},
	{"a chain of dependencies", `{"type":"object","required":["p0999"],"dependentRequired":{` + many(1000, func(i int) string { return fmt.Sprintf(`"p%04d":["p%04d"]`, i, max(0, i-1)) }) + `}}`},
	{"one megabyte", `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `","properties":{"a":{"default":"` + strings.Repeat("y", 1<<20) + `"}},"required":["a"]}`},
	{"one large constant, often", `{"type":"array","minItems":5000,"items":{"const":"` + strings.Repeat("y", 1<<20) + `"}}`},
	{"too many parts", `{"enum":[` + strings.Repeat("1,", 500_000) + `1]}`},
	{"deep schema", strings.Repeat(`{"not":`, 5000) + `true` + strings.Repeat(`}`, 5000)},
	{"deep value", strings.Repeat(`{"type":"array","minItems":1,"items":`, 200) + `true` + strings.Repeat(`}`, 200)},
	{"long names", strings.Repeat(`{"type":"object","required":["`+strings.Repeat("n", 9000)+`"],"additionalProperties":`, 90) + `true` + strings.Repeat(`}`, 90)},
	{"patterns that backtrack", `{"type":"string","pattern":"^(a+)+$","minLength":100000}`},
	{"pattern of nested repetitions", `{"type":"string","pattern":"^(((a{1,30}){1,30}){1,30}){1,30}b$","minLength":1000}`},
	{"pattern of nothing", `{"type":"string","pattern":"^(((){1000}){1000}){1000}$"}`},
	{"pattern of many characters", `{"type":"string","pattern":"^(((a{10}){10}){10}){1000}$"}`},
	{"pattern that is long", `{"type":"string","pattern":"` + strings.Repeat("(a|b)?", 100_000) + `"}`},
	{"pattern with open groups", `{"type":"string","pattern":"` + strings.Repeat("(?=", 10_000) + `"}`},
	{"patterns by the thousand", `{"type":"object","patternProperties":{` + many(700, func(i int) string { return fmt.Sprintf(`"(x|y)*%d":{"type":"string"}`, i) }) +
		`},"required":[` + many(300, func(i int) string { return fmt.Sprintf(`"%s%d"`, strings.Repeat("x", 100), i) }) + `]}`},
	{"circle", `{"allOf":[{"$ref":"#"}]}`},
	{"circle through choices", `{"anyOf":[{"$ref":"#"},{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}]}`},
	{"circle through not", `{"not":{"$ref":"#"}}`},
	{"circle through if", `{"if":{"$ref":"#"},"then":{"$ref":"#"},"else":{"$ref":"#"}}`},
	{"circle through names", `{"type":"object","minProperties":2,"propertyNames":{"$ref":"#"}}`},
	{"a tree that must be wide", `{"type":"array","minItems":3,"maxItems":3,"items":{"anyOf":[{"$ref":"#"},{"type":"string","minLength":2,"maxLength":1}]}}`},
	{"a large tree", `{"type":"object","properties":{` + many(8, func(i int) string {
		return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/a%d"}`, i, i)
	}) + `},"$defs":{` + many(8, func(i int) string {
		return fmt.Sprintf(`"a%d":{"type":"object","properties":{%s}}`, i, many(8, func(j int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/$defs/a%d"}`, j, j) }))
	}) + `}}`},
	{"names that are not text", "{\"type\":\"object\",\"required\":[\"\xff\xfe\"],\"properties\":{\"\xff\xfe\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":1}}}"},
	{"the dialect itself", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`},
	{"the dialect draft-07 itself", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"http://json-schema.org/draft-07/schema#"}`},
	{"a dialect of its own", `{"$schema":"https://example.com/dialect"}`},
	{"keywords of wrong types", `{"type":7,"properties":[],"required":"a"}`},
}

// For every schema, the functions return, the values are valid and bounded, and the mutations are as they claim to
// be.
func TestHostile(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var document any
			d := json.NewDecoder(strings.NewReader(test.schema))
			d.UseNumber()
			if err := d.Decode(&document); err != nil {
				t.Fatal(err)
			}
			for _, make := range []func(any) (any, bool){Valid, Full} {
				if value, ok := make(document); ok {
					if size := len(encode(t, value)); size > 3*maxBytes {
						t.Errorf("a value of %d bytes", size)
					}
					if list := judge(t, document, value); len(list) > 0 {
						t.Errorf("not valid: %v", list)
					}
				}
			}
			mutations := Invalid(document)
			checkMutations(t, document, mutations)
		})
	}
}
