package values

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// maxOfKind bounds the mutations of one name, maxJudged the values that are tried for all.
const (
	maxOfKind = 64
	maxJudged = 2_000
)

// A Mutation is a value that breaks one rule of a schema and follows the others.
type Mutation struct {
	// Name says in kebab-case how the value was made: missing-required,
	// wrong-type, not-in-enum, below-minimum, above-maximum, not-a-multiple,
	// too-short, too-long, too-few-items, too-many-items, pattern-mismatch,
	// additional-property, fraction, null-for-required or not-an-object.
	Name string
	// Pointer is the JSON pointer of the place that breaks the rule. For a member that
	// is missing or must not be there it is that of the object.
	Pointer string
	// Keyword is the keyword of JSON Schema that is broken.
	Keyword string
	// Detail says in plain words what is wrong, as in `member "a" is missing`.
	Detail string
	// Value is the whole value. Mutations share parts of their values, so it
	// must not be modified.
	Value any
}

// Invalid returns values that are like a valid one but for one broken rule each.
// Every one has been judged: the schema finds exactly one fault in it, at Pointer. They come
// in the order in which servers tend to enforce the rules: missing members, wrong types,
// enumerations, bounds, patterns, additional members, fractions in place of whole
// numbers, null in place of required members, and last, values that are not objects.
// Within each of these, places nearer to the root come first.
//
// The list is empty if the schema rejects nothing and if it asks for too much work.
// Formats are not asserted and so never broken on purpose.
func Invalid(schema any) []Mutation {
	g, err := newGenerator(schema)
	if err != nil {
		return nil
	}
	b := &breaker{generator: g, taken: map[string]int{}, left: maxJudged}
	if minimal := g.find(size{probe: true}); minimal != nil {
		b.collect(minimal, cmp.Or(g.find(size{full: true, probe: true}), minimal))
	}
	for _, rule := range rules {
		for _, s := range b.sites {
			for _, part := range rule.parts(s) {
				if b.replace(rule, s, part) && !rule.all {
					break
				}
			}
		}
	}
	for _, value := range []any{[]any{}, "not-an-object"} {
		b.try(wholeRule, "", "", value)
	}
	if g.work < 0 {
		return nil
	}
	return b.list
}

// A breaker derives mutations from valid values.
type breaker struct {
	*generator
	sites []site
	list  []Mutation
	taken map[string]int // mutations by their names
	left  int            // values that may still be judged
}

// A site is a place to break, with the whole values that have it, the one to
// prefer first.
type site struct {
	place
	bases []any
}

// A rule is one way to break a schema: parts proposes what to put in a place, or a [member] of
// it. It is taken if the only fault that the schema finds in it is in one of the keywords.
type rule struct {
	name     string
	keywords []string
	parts    func(site) []any
	all      bool // take all of the parts, and not the first that will do
}

// rules are in the order of their mutations.
var rules = []rule{
	{"missing-required", []string{"required"}, members(absent{}), true},
	{"wrong-type", []string{"type", "enum", "const"}, otherTypes, false},
	{"not-in-enum", []string{"enum", "const"}, otherConstants, false},
	{"below-minimum", []string{"minimum", "exclusiveMinimum"}, otherNumbers, false},
	{"above-maximum", []string{"maximum", "exclusiveMaximum"}, otherNumbers, false},
	{"not-a-multiple", []string{"multipleOf"}, otherMultiples, false},
	{"too-short", []string{"minLength"}, func(s site) []any { return ofLength(s, textOf(s.variant).min-1) }, false},
	{"too-long", []string{"maxLength"}, func(s site) []any { return ofLength(s, textOf(s.variant).max+1) }, false},
	{"too-few-items", []string{"minItems"}, shorterLists, false},
	{"too-many-items", []string{"maxItems"}, longerLists, false},
	{"pattern-mismatch", []string{"pattern"}, otherTexts, false},
	{"additional-property", []string{"additionalProperties", "false"}, furtherMembers, false},
	{"fraction", []string{"type"}, fractions, false},
	// An optional member that is null may be taken to be left out.
	{"null-for-required", []string{"type", "enum", "const"}, members(nil), true},
}

var wholeRule = rule{"not-an-object", []string{"type"}, nil, false}

// collect finds the places of the minimal value and then those that only the full one has.
func (b *breaker) collect(minimal, full *proposal) {
	known, fully := map[string]bool{}, map[string]bool{}
	for _, at := range full.places {
		fully[at.pointer] = true
	}
	for _, p := range []*proposal{minimal, full} {
		slices.SortStableFunc(p.places, func(x, y place) int {
			return slices.Compare(strings.Split(x.pointer, "/"), strings.Split(y.pointer, "/"))
		})
		for _, at := range p.places {
			if known[at.pointer] || at.again {
				continue
			}
			known[at.pointer] = true
			s := site{at, []any{p.value}}
			if p != minimal {
				if grafted, ok := put(minimal.value, at.path, at.value); ok && b.fits(grafted) {
					s.bases = []any{grafted, p.value}
				}
			} else if fully[at.pointer] {
				s.bases = append(s.bases, full.value)
			}
			b.sites = append(b.sites, s)
		}
	}
	slices.SortStableFunc(b.sites, func(x, y site) int { return len(x.path) - len(y.path) })
}

// replace puts a part in the place of a site, and adds a mutation if the whole
// breaks just the rule.
func (b *breaker) replace(r rule, s site, part any) bool {
	if b.taken[r.name] >= maxOfKind {
		return true
	}
	at := s.spot
	if m, ok := part.(member); ok {
		at, part = at.below(m.name, nil), m.value
	}
	return slices.ContainsFunc(s.bases, func(base any) bool {
		broken, ok := put(base, at.path, part)
		return ok && b.try(r, s.pointer, at.pointer, broken)
	})
}

// try adds a mutation if the only fault of a value is at one of two places, a member that was
// changed and the object that has it, and in a keyword of the rule.
func (b *breaker) try(r rule, object, changed string, value any) bool {
	if b.left--; b.left < 0 || b.work < 0 {
		return false
	}
	list := b.tool.ValidateWithin(value, &b.work)
	if len(list) != 1 || list[0].Pointer != object && list[0].Pointer != changed ||
		!slices.Contains(r.keywords, list[0].Keyword) {
		return false
	}
	m := Mutation{r.name, list[0].Pointer, list[0].Keyword, list[0].Message, value}
	if m.Keyword == "false" { // which is reported at the member itself
		m.Pointer = object
	}
	b.taken[r.name]++
	b.list = append(b.list, m)
	return true
}

// A member is a part that is put in an object, or out of it if the value is absent.
type member struct {
	name  string
	value any
}

type absent struct{}

// members puts a value in place of required members.
func members(value any) func(site) []any {
	return func(s site) (parts []any) {
		if kindOf(s.value) == "object" {
			for _, name := range required(s.parts) {
				parts = append(parts, member{name, value})
			}
		}
		return parts
	}
}

// otherTypes proposes values of types from which the value is not converted by
// accident: a string is not replaced by a number, nor a number by digits.
func otherTypes(s site) []any {
	if len(s.path) == 0 {
		return nil
	}
	object, list := map[string]any{"not": "expected"}, []any{"not-expected"}
	return map[string][]any{
		"string": {object, list}, "number": {"not-a-number", object, list}, "boolean": {"maybe", object, list},
		"array": {"not-an-array", json.Number("1"), object}, "object": {"not-an-object", json.Number("1"), list},
		"null": {"not-null", object, list},
	}[kindOf(s.value)]
}

func otherConstants(s site) []any {
	found, greatest := false, big.NewRat(987_654, 1)
	for _, part := range s.parts {
		_, fixed := part["const"]
		listed := wire.Items(part, "enum")
		found = found || fixed || len(listed) > 0
		for _, value := range listed {
			if x := rational(value); x != nil && x.Cmp(greatest) > 0 {
				greatest = x
			}
		}
	}
	if !found || len(s.path) == 0 {
		return nil
	}
	switch v := s.value.(type) {
	case bool:
		return []any{!v}
	case json.Number:
		return []any{decimal((&numberRange{step: big.NewRat(1, 1)}).from(greatest, 1))}
	}
	work := maxWork
	return append([]any{"not-one-of-the-choices"}, textOf(s.variant).words(0, &work)...)
}

// numbersOf returns the range of a number, with whole steps if the type is integer, or nil
// if the value is not a number.
func numbersOf(s site) (*numberRange, *big.Rat) {
	kinds, _ := kindsOf(s.variant)
	kind := "number"
	if slices.Contains(kinds, "integer") {
		kind = "integer"
	}
	return rangeOf(s.variant, kind), rational(s.value)
}

// otherNumbers proposes the numbers next to bounds.
func otherNumbers(s site) (parts []any) {
	n, old := numbersOf(s)
	for _, b := range n.bounds {
		for k := 0; k <= 1 && old != nil; k++ {
			if x := n.from(b.at, -k*b.side); !n.contains(x) {
				parts = append(parts, decimal(x))
			}
			if x := n.from(b.at, -(k+1)*b.side); !n.contains(x) {
				parts = append(parts, decimal(x))
			}
		}
	}
	return parts
}

func otherMultiples(s site) (parts []any) {
	n, old := numbersOf(s)
	if old == nil || !n.multiple {
		return nil
	}
	return around(old, big.NewRat(1, 1), new(big.Rat).Mul(n.step, big.NewRat(1, 2)))
}

func fractions(s site) []any {
	if old := rational(s.value); old != nil {
		return around(old, big.NewRat(1, 2))
	}
	return nil
}

// around returns the numbers at some distances above and below x.
func around(x *big.Rat, distances ...*big.Rat) (numbers []any) {
	for _, d := range distances {
		numbers = append(numbers, decimal(new(big.Rat).Add(x, d)), decimal(new(big.Rat).Sub(x, d)))
	}
	return numbers
}

// ofLength proposes words of n characters that the other rules let pass.
func ofLength(s site, n int) []any {
	old, ok := s.value.(string)
	t := textOf(s.variant)
	if !ok || n < 0 || n > maxText {
		return nil
	}
	work := maxWork
	t.min, t.max = n, n
	words := t.words(0, &work)
	if r := []rune(old); len(r) > n {
		words = append(words, string(r[:n]))
	}
	return words
}

func otherTexts(s site) (parts []any) {
	old, ok := s.value.(string)
	t := textOf(s.variant)
	if !ok || len(t.patterns) == 0 {
		return nil
	}
	for _, word := range []string{"!", "~", " ", "example", "0", "A", "-", "@", "", "\n", old + "!", "!" + old} {
		if len(word) > 0 && len(word) < t.min && t.min <= maxText {
			word += strings.Repeat(word[:1], t.min-len(word))
		}
		parts = append(parts, word)
	}
	return parts
}

func shorterLists(s site) []any {
	list, ok := s.value.([]any)
	if low, _ := limits(s.parts, "minItems", "maxItems"); ok && low > 0 && low <= len(list) {
		return []any{list[: low-1 : low-1]}
	}
	return nil
}

// longerLists proposes one more item than there may be: all like the last one, and
// with different ones.
func longerLists(s site) []any {
	list, ok := s.value.([]any)
	_, high := limits(s.parts, "minItems", "maxItems")
	if !ok || high >= maxItems {
		return nil
	}
	same, different := slices.Clone(list), slices.Clone(list)
	for i := len(list); i <= high; i++ {
		var last, other any = "example" + counted(i), "example" + counted(i)
		if len(list) > 0 {
			last, other = list[len(list)-1], list[len(list)-1]
		}
		switch v := other.(type) {
		case string:
			other = v + counted(i)
		case json.Number:
			other = json.Number(strconv.Itoa(1000 + i))
		}
		same, different = append(same, last), append(different, other)
	}
	return []any{same, different}
}

func furtherMembers(s site) (parts []any) {
	object, ok := s.value.(map[string]any)
	for _, name := range []string{"unexpectedMember", "unexpected_member", "0"} {
		if _, known := object[name]; ok && !known {
			parts = append(parts, member{name, "unexpected"})
		}
	}
	return parts
}

// put returns a value with another part at a path, whose parent has to exist. It
// shares with the old value what it does not change. An item may be put behind the last.
func put(value any, path []any, part any) (any, bool) {
	if len(path) == 0 {
		return part, true
	}
	switch t := path[0].(type) {
	case string:
		object, ok := value.(map[string]any)
		if _, known := object[t]; !ok || !known && len(path) > 1 {
			return nil, false
		}
		changed, ok := put(object[t], path[1:], part)
		if !ok {
			return nil, false
		}
		object = maps.Clone(object)
		if object[t] = changed; changed == (absent{}) {
			delete(object, t)
		}
		return object, true
	case int:
		list, ok := value.([]any)
		if !ok || t > len(list) || t == len(list) && len(path) > 1 {
			return nil, false
		}
		list = slices.Clone(list)
		if t == len(list) {
			list = append(list, nil)
		}
		changed, ok := put(list[t], path[1:], part)
		list[t] = changed
		return list, ok
	}
	return nil, false
}
