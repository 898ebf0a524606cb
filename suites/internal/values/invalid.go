package values

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
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
	b := &breaker{generator: g, left: maxJudged}
	if minimal, err := g.find(size{probe: true}); err == nil {
		full, err := g.find(size{full: true, probe: true})
		if err != nil {
			full = minimal
		}
		b.collect(minimal, full)
	}
	for _, rule := range rules {
		for _, s := range b.sites {
			rule.values(s, func(part any) bool { return b.replace(rule, s, part) })
		}
	}
	for _, value := range []any{[]any{}, "not-an-object"} {
		b.try(wholeRule, "", value)
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
	left  int // values that may still be judged
}

// A site is a place to break, with the whole values that have it, the one to
// prefer first.
type site struct {
	place
	bases []any
}

// A rule is one way to break a schema: values proposes parts to put in a place until
// one is taken: the only fault that the schema finds in it is in one of the keywords.
type rule struct {
	name     string
	keywords []string
	values   func(s site, try func(part any) bool)
}

// rules are in the order of their mutations.
var rules = []rule{
	{"missing-required", []string{"required"}, missingMembers},
	{"wrong-type", []string{"type", "enum", "const"}, otherTypes},
	{"not-in-enum", []string{"enum", "const"}, otherConstants},
	{"below-minimum", []string{"minimum", "exclusiveMinimum"}, smallerNumbers},
	{"above-maximum", []string{"maximum", "exclusiveMaximum"}, largerNumbers},
	{"not-a-multiple", []string{"multipleOf"}, otherMultiples},
	{"too-short", []string{"minLength"}, shorterTexts},
	{"too-long", []string{"maxLength"}, longerTexts},
	{"too-few-items", []string{"minItems"}, shorterLists},
	{"too-many-items", []string{"maxItems"}, longerLists},
	{"pattern-mismatch", []string{"pattern"}, otherTexts},
	{"additional-property", []string{"additionalProperties", "false"}, furtherMembers},
	{"fraction", []string{"type"}, fractions},
	{"null-for-required", []string{"type", "enum", "const"}, nulls},
}

var wholeRule = rule{"not-an-object", []string{"type"}, nil}

// collect finds the places of the minimal value and then those that only the full one has.
func (b *breaker) collect(minimal, full *proposal) {
	known := map[string]bool{}
	for _, p := range []*proposal{minimal, full} {
		places := slices.Clone(p.places)
		slices.SortStableFunc(places, func(x, y place) int {
			return slices.CompareFunc(x.path, y.path, func(a, b any) int { return strings.Compare(token(a), token(b)) })
		})
		for _, at := range places {
			if known[at.pointer] || underItem(at, b.sites) {
				continue
			}
			known[at.pointer] = true
			s := site{place: at}
			if p == full && minimal != full {
				if grafted, ok := put(minimal.value, at.path, at.value); ok && len(b.tool.ValidateWithin(grafted, &b.work)) == 0 {
					s.bases = append(s.bases, grafted)
				}
			}
			s.bases = append(s.bases, p.value)
			if _, ok := lookup(full.value, at.path); ok && p != full {
				s.bases = append(s.bases, full.value)
			}
			b.sites = append(b.sites, s)
		}
	}
	slices.SortStableFunc(b.sites, func(x, y site) int { return len(x.path) - len(y.path) })
}

func token(t any) string {
	if i, ok := t.(int); ok {
		return strconv.Itoa(i)
	}
	return t.(string)
}

// underItem reports whether a place is in an item of a list like one that is broken already.
func underItem(at place, sites []site) bool {
	for i, t := range at.path {
		if index, ok := t.(int); ok && index > 0 {
			for _, s := range sites {
				if len(s.path) == i && slices.Equal(s.path, at.path[:i]) && index >= max(1, prefixOf(s.parts)) {
					return true
				}
			}
		}
	}
	return false
}

// replace puts a part in the place of a site, and adds a mutation if the whole
// breaks just the rule.
func (b *breaker) replace(r rule, s site, part any) bool {
	n := 0
	for _, m := range b.list {
		if m.Name == r.name {
			n++
		}
	}
	if n >= maxOfKind {
		return true
	}
	for _, base := range s.bases {
		changed := part
		if change, ok := part.(func(base any) any); ok {
			old, _ := lookup(base, s.path)
			changed = change(old)
		}
		if broken, ok := put(base, s.path, changed); ok && b.try(r, s.pointer, broken) {
			return true
		}
	}
	return false
}

func (b *breaker) try(r rule, pointer string, value any) bool {
	if b.left--; b.left < 0 || b.work < 0 {
		return false
	}
	list := b.tool.ValidateWithin(value, &b.work)
	if len(list) != 1 || !slices.Contains(r.keywords, list[0].Keyword) {
		return false
	}
	switch at := list[0].Pointer; {
	case at == pointer:
	case r.name == "null-for-required" && at[:max(0, strings.LastIndexByte(at, '/'))] == pointer:
		pointer = at
	case list[0].Keyword == "false" && at[:max(0, strings.LastIndexByte(at, '/'))] == pointer:
		// The schema false reports at the member itself.
	default:
		return false
	}
	b.list = append(b.list, Mutation{Name: r.name, Pointer: pointer, Keyword: list[0].Keyword, Detail: list[0].Message, Value: value})
	return true
}

// each tries values until one is taken.
func each(try func(any) bool, values ...any) bool { return slices.ContainsFunc(values, try) }

func missingMembers(s site, try func(any) bool) {
	if _, ok := s.value.(map[string]any); !ok {
		return
	}
	for _, name := range required(s.parts) {
		try(func(old any) any {
			object, _ := old.(map[string]any)
			without := maps.Clone(object)
			delete(without, name)
			return without
		})
	}
}

// otherTypes proposes values of types from which the value is not converted by
// accident: a string is not replaced by a number, nor a number by digits.
func otherTypes(s site, try func(any) bool) {
	if len(s.path) == 0 {
		return
	}
	object, list := map[string]any{"not": "expected"}, []any{"not-expected"}
	switch kindOf(s.value) {
	case "string":
		each(try, object, list)
	case "number":
		each(try, "not-a-number", object, list)
	case "boolean":
		each(try, "maybe", object, list)
	case "array":
		each(try, "not-an-array", json.Number("1"), object)
	case "object":
		each(try, "not-an-object", json.Number("1"), list)
	default:
		each(try, "not-null", object, list)
	}
}

func otherConstants(s site, try func(any) bool) {
	found, greatest := false, big.NewRat(987_654, 1)
	for _, part := range s.parts {
		_, fixed := part["const"]
		listed := items(part["enum"])
		found = found || fixed || len(listed) > 0
		for _, value := range listed {
			if x := rational(value); x != nil && x.Cmp(greatest) > 0 {
				greatest = x
			}
		}
	}
	if !found || len(s.path) == 0 {
		return
	}
	switch v := s.value.(type) {
	case bool:
		try(!v)
	case json.Number:
		whole := new(big.Int).Quo(greatest.Num(), greatest.Denom())
		try(json.Number(whole.Add(whole, big.NewInt(1)).String()))
	default:
		words, _ := textOf(s.variant).words(0)
		each(try, append([]any{"not-one-of-the-choices"}, words...)...)
	}
}

// numbersOf returns the range of a number, with whole steps if the type is integer.
func numbersOf(s site) (*numberRange, *big.Rat) {
	kinds, _ := kindsOf(s.variant)
	kind := "number"
	if slices.Contains(kinds, "integer") {
		kind = "integer"
	}
	return rangeOf(s.variant, kind), rational(s.value)
}

func smallerNumbers(s site, try func(any) bool) {
	n, old := numbersOf(s)
	if old == nil || n.min == nil {
		return
	}
	x := n.below(n.min)
	if n.contains(x) || !n.minOpen && x.Cmp(n.min) == 0 {
		x = n.plus(x, -1)
	}
	try(decimal(x))
}

func largerNumbers(s site, try func(any) bool) {
	n, old := numbersOf(s)
	if old == nil || n.max == nil {
		return
	}
	x := n.above(n.max)
	if n.contains(x) || !n.maxOpen && x.Cmp(n.max) == 0 {
		x = n.plus(x, 1)
	}
	try(decimal(x))
}

func otherMultiples(s site, try func(any) bool) {
	n, old := numbersOf(s)
	if old == nil || !n.multiple {
		return
	}
	half := new(big.Rat).Mul(n.step, big.NewRat(1, 2))
	for _, d := range []*big.Rat{big.NewRat(1, 1), big.NewRat(-1, 1), half, new(big.Rat).Neg(half)} {
		if try(decimal(new(big.Rat).Add(old, d))) {
			return
		}
	}
}

// lengthen proposes words of n characters that the other rules let pass.
func lengthen(s site, n int, try func(any) bool) {
	old, ok := s.value.(string)
	if !ok || n < 0 || n > maxText {
		return
	}
	t := textOf(s.variant)
	t.min, t.max = n, n
	words, _ := t.words(0)
	if r := []rune(old); len(r) > n {
		words = append(words, string(r[:n]))
	}
	each(try, words...)
}

func shorterTexts(s site, try func(any) bool) { lengthen(s, textOf(s.variant).min-1, try) }

func longerTexts(s site, try func(any) bool) { lengthen(s, textOf(s.variant).max+1, try) }

func otherTexts(s site, try func(any) bool) {
	old, ok := s.value.(string)
	t := textOf(s.variant)
	if !ok || len(t.patterns) == 0 {
		return
	}
	for _, word := range []string{"!", "~", " ", "example", "0", "A", "-", "@", "", "\n", old + "!", "!" + old} {
		if len(word) > 0 && len(word) < t.min && t.min <= maxText {
			word += strings.Repeat(word[:1], t.min-len(word))
		}
		if try(word) {
			return
		}
	}
}

func shorterLists(s site, try func(any) bool) {
	list, ok := s.value.([]any)
	if low, _ := limits(s.parts, "minItems", "maxItems"); ok && low > 0 && low <= len(list) {
		try(list[: low-1 : low-1])
	}
}

func longerLists(s site, try func(any) bool) {
	list, ok := s.value.([]any)
	_, high := limits(s.parts, "minItems", "maxItems")
	if !ok || high >= maxItems {
		return
	}
	longer := slices.Clone(list)
	for i := len(list); i <= high; i++ {
		switch {
		case len(list) > 0:
			longer = append(longer, list[len(list)-1])
		default:
			longer = append(longer, "example"+counted(i))
		}
	}
	if try(longer) || len(list) == 0 {
		return
	}
	// Items that have to differ.
	for i := len(list); i <= high; i++ {
		switch v := list[len(list)-1].(type) {
		case string:
			longer[i] = v + counted(i)
		case json.Number:
			longer[i] = json.Number(strconv.Itoa(1000 + i))
		}
	}
	try(longer)
}

func furtherMembers(s site, try func(any) bool) {
	object, ok := s.value.(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"unexpectedMember", "unexpected_member", "0"} {
		if _, known := object[name]; !known && try(withMember(name, "unexpected")) {
			return
		}
	}
}

func withMember(name string, value any) func(any) any {
	return func(old any) any {
		object, _ := old.(map[string]any)
		changed := maps.Clone(object)
		changed[name] = value
		return changed
	}
}

func fractions(s site, try func(any) bool) {
	if old := rational(s.value); old != nil {
		half := big.NewRat(1, 2)
		each(try, decimal(new(big.Rat).Add(old, half)), decimal(new(big.Rat).Sub(old, half)))
	}
}

// nulls puts null in place of required members. An optional one may be taken to
// be left out.
func nulls(s site, try func(any) bool) {
	if _, ok := s.value.(map[string]any); !ok {
		return
	}
	for _, name := range required(s.parts) {
		try(withMember(name, nil))
	}
}

// lookup returns the part of a value at a path.
func lookup(value any, path []any) (any, bool) {
	for _, token := range path {
		switch t := token.(type) {
		case string:
			object, _ := value.(map[string]any)
			member, ok := object[t]
			if !ok {
				return nil, false
			}
			value = member
		case int:
			list, _ := value.([]any)
			if t >= len(list) {
				return nil, false
			}
			value = list[t]
		}
	}
	return value, true
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
		object[t] = changed
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
