package values

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// For every schema, nothing panics, the results are as they claim to be, and the same call gives the same answer.
func FuzzSchema(f *testing.F) {
	for _, test := range realistic {
		f.Add(test.schema)
	}
	for _, test := range keywords {
		f.Add(test.schema)
	}
	for _, test := range hostile {
		// The others take longer than a fuzzing process may.
		if strings.HasPrefix(test.name, "circle") || strings.HasPrefix(test.name, "numbers of") {
			f.Add(test.schema)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var document any
		if len(text) > 10_000 || d.Decode(&document) != nil {
			t.Skip()
		}
		checkDocument(t, document)
	})
}

func FuzzPattern(f *testing.F) {
	for _, text := range []string{`^[a-z]+$`, `(?=x)y|\u0041{2,}`, `((a*)*)*b`, `[^\x00-\x7f]`, `(?<!a)[)(?=]`, `\`, `(?`} {
		f.Add(text, 3, 2)
	}
	f.Fuzz(func(t *testing.T, text string, more, vary int) {
		if len(text) > 1000 || more < 0 || more > 1000 || vary < 0 {
			t.Skip()
		}
		work := maxWork
		first, _ := match(text, more, vary, &work)
		if again, _ := match(text, more, vary, &work); again != first {
			t.Errorf("%q, then %q", first, again)
		}
	})
}

// randomSchema builds a schema from any mixture of keywords.
func randomSchema(r *rand.Rand, depth int) any {
	sub := func() any { return randomSchema(r, depth-1) }
	list := func(n int) []any {
		var l []any
		for range 1 + r.IntN(n) {
			l = append(l, sub())
		}
		return l
	}
	name := func() string { return string("abc"[r.IntN(3)]) }
	object := func() map[string]any {
		o := map[string]any{}
		for range 1 + r.IntN(3) {
			o[name()] = sub()
		}
		return o
	}
	names := func() []any {
		l := []any{name()}
		if other := name(); other != l[0] {
			l = append(l, other)
		}
		return l
	}
	size := func() any { return float64(r.IntN(4)) }
	number := func() any { return float64(r.IntN(21)-10) / 2 }
	scalars := []any{nil, true, false, 1.0, -0.5, "a", "bb", "", []any{}, []any{1.0}, map[string]any{}, map[string]any{"a": "b"}}
	scalar := func() any { return scalars[r.IntN(len(scalars))] }
	types := []string{"string", "number", "integer", "boolean", "object", "array", "null"}
	patterns := []string{"^a", "b+$", "^[a-c]{2}$", "^(?=x)", "[0-9]", "^$"}
	refs := []any{"#", "#/$defs/a", "#/$defs/b", "#/$defs/c"}

	s := map[string]any{}
	if r.IntN(12) == 0 {
		return r.IntN(4) > 0
	}
	if r.IntN(4) > 0 {
		s["type"] = types[r.IntN(len(types))]
	} else if r.IntN(2) == 0 {
		s["type"] = []any{"null", types[r.IntN(6)]}
	}
	for range r.IntN(4) {
		k := r.IntN(36)
		if depth <= 0 {
			k = r.IntN(18)
		}
		switch k {
		case 0:
			s["const"] = scalar()
		case 1:
			s["enum"] = []any{scalar(), "x", 2.0}
		case 2:
			s["default"] = scalar()
		case 3:
			s["minLength"] = size()
		case 4:
			s["maxLength"] = size()
		case 5:
			s["pattern"] = patterns[r.IntN(len(patterns))]
		case 6:
			s["format"] = []string{"email", "date", "none"}[r.IntN(3)]
		case 7:
			s["minimum"] = number()
		case 8:
			s["maximum"] = number()
		case 9:
			s["exclusiveMinimum"] = number()
		case 10:
			s["exclusiveMaximum"] = number()
		case 11:
			s["multipleOf"] = float64(1+r.IntN(6)) / 4
		case 12:
			s["minItems"] = size()
		case 13:
			s["maxItems"] = size()
		case 14:
			s["uniqueItems"] = true
		case 15:
			s["required"] = names()
		case 16:
			s["minProperties"] = size()
		case 17:
			s["$ref"] = refs[r.IntN(len(refs))]
		case 18, 19, 20:
			s["properties"] = object()
		case 21:
			s["additionalProperties"] = sub()
		case 22:
			s["patternProperties"] = map[string]any{patterns[r.IntN(len(patterns))]: sub()}
		case 23:
			s["propertyNames"] = sub()
		case 24:
			s["dependentRequired"] = map[string]any{name(): names()}
		case 25:
			s["dependentSchemas"] = map[string]any{name(): sub()}
		case 26:
			s["unevaluatedProperties"] = sub()
		case 27:
			s["items"] = sub()
		case 28:
			s["prefixItems"] = list(2)
		case 29:
			s["contains"], s["minContains"] = sub(), size()
		case 30:
			s["unevaluatedItems"] = sub()
		case 31:
			s["allOf"] = list(3)
		case 32:
			s["anyOf"] = list(3)
		case 33:
			s["oneOf"] = list(3)
		case 34:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 35:
			s["not"] = sub()
		}
	}
	return s
}

func randomDocument(seed uint64) map[string]any {
	r := rand.New(rand.NewPCG(seed, 1))
	document, _ := randomSchema(r, 3).(map[string]any)
	if document == nil {
		document = map[string]any{}
	}
	document["$defs"] = map[string]any{"a": randomSchema(r, 2), "b": randomSchema(r, 2), "c": randomSchema(r, 1)}
	if r.IntN(3) > 0 {
		document["type"] = "object"
		document["properties"] = map[string]any{"a": randomSchema(r, 3), "b": randomSchema(r, 3), "c": randomSchema(r, 2)}
	}
	return document
}

func checkDocument(t *testing.T, document any) (found bool) {
	for _, make := range []func(any) (any, bool){Valid, Full} {
		value, ok := make(document)
		found = found || ok
		if again, _ := make(document); encode(t, again) != encode(t, value) {
			t.Errorf("%s, then %s", encode(t, value), encode(t, again))
		}
		if ok {
			if list := judge(t, document, value); len(list) > 0 {
				t.Errorf("%s is not valid: %v", encode(t, value), list)
			}
		}
	}
	mutations := Invalid(document)
	checkMutations(t, document, mutations)
	if again := Invalid(document); encode(t, again) != encode(t, mutations) {
		t.Errorf("%s, then %s", encode(t, mutations), encode(t, again))
	}
	return found
}

func TestRandomSchemas(t *testing.T) {
	const schemas = 300
	found := 0
	for seed := range uint64(schemas) {
		document := randomDocument(seed)
		if checkDocument(t, document) {
			found++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, encode(t, document))
		}
	}
	// Some of them have no instance at all.
	if found < schemas*7/10 {
		t.Errorf("only %d of %d have a value", found, schemas)
	}
	t.Logf("%d of %d have a value", found, schemas)
}

func FuzzStructure(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		document := randomDocument(seed)
		checkDocument(t, document)
		if t.Failed() {
			t.Log(encode(t, document))
		}
	})
}
