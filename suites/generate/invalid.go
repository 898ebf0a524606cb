package generate

import (
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxOfKind bounds the mutations of one name.
const maxOfKind = 64

// maxItems bounds the arrays that are made too long.
const maxItems = 1000

// maxMutated bounds the text produced for all mutations, in bytes.
const maxMutated = 32 << 20

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
	// Rule is the keyword that is broken.
	Rule string
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
// numbers, null in place of required members, and last, values that are no object.
// Within each of these, places nearer to the root come first.
//
// The list is empty if the schema rejects nothing and if it asks for too much work.
// Formats are not asserted and so never broken on purpose.
func Invalid(schema any) []Mutation {
	g, err := newGenerator(schema)
	if err != nil {
		return nil
	}
	minimal, err := g.first(request{probe: true})
	b := &breaker{g: g, hasBase: err == nil}
	full := minimal
	if value, err := g.run(request{full: true, probe: true}); err == nil {
		full = value
	}
	if b.run(minimal, full) != nil {
		return nil
	}
	return b.list
}

// A breaker derives mutations from valid values.
type breaker struct {
	g       *generator
	hasBase bool
	spots   []spot
	list    []Mutation
}

// A spot is a place in a valid value.
type spot struct {
	path  []any // names (string) and indices (int)
	at    place
	view  *view // with the choices decided as the value has them
	value any
	// bases are the whole values that have this place, the one to prefer first.
	bases []any
}

func (b *breaker) run(minimal, full any) (err error) {
	defer func() {
		if e := b.g.stopped(recover()); e != nil {
			err = e
		}
	}()
	b.g.refill()
	b.g.steps, b.g.work, b.g.bytes = 2*maxSteps, 2*maxWork, maxMutated
	if b.hasBase {
		b.collect(minimal, full)
		for _, rule := range []func(spot){b.missing, b.types, b.listed, b.numbers, b.lengths, b.items, b.patterns, b.additional, b.fractions, b.nulls} {
			for _, s := range b.spots {
				rule(s)
			}
		}
		// The rules about bounds run one after the other over all places.
		rank := func(m Mutation) int { return slices.Index(nameOrder, m.Name) }
		slices.SortStableFunc(b.list, func(x, y Mutation) int { return rank(x) - rank(y) })
	}
	for _, value := range []any{[]any{}, "not-an-object"} {
		if b.g.root.Bool == nil {
			b.try("not-an-object", place{}, value, "type")
		}
	}
	return nil
}

var nameOrder = []string{
	"missing-required", "wrong-type", "not-in-enum", "below-minimum", "above-maximum", "not-a-multiple",
	"too-short", "too-long", "too-few-items", "too-many-items", "pattern-mismatch", "additional-property",
	"fraction", "null-for-required", "not-an-object",
}

// collect finds the places of the minimal value and then those that only the full one has.
func (b *breaker) collect(minimal, full any) {
	known := map[string]bool{}
	for _, value := range []any{minimal, full} {
		queue := []spot{{view: b.decided(b.g.conj(), value), value: value, bases: []any{minimal, full}}}
		for len(queue) > 0 {
			s := queue[0]
			queue = queue[1:]
			pointer := s.at.pointer()
			b.g.spend(len(pointer))
			if !known[pointer] {
				known[pointer] = true
				b.spots = append(b.spots, s)
			}
			switch v := s.value.(type) {
			case map[string]any:
				for _, name := range slices.Sorted(maps.Keys(v)) {
					if conj, ok := b.g.member(s.view, name); ok {
						queue = append(queue, b.child(s, name, s.at.member(name), conj, v[name]))
					}
				}
			case []any:
				for i := range min(len(v), max(1, prefix(s.view)), maxOfKind) {
					if conj, ok := b.g.item(s.view, i); ok {
						queue = append(queue, b.child(s, i, s.at.item(i), conj, v[i]))
					}
				}
			}
		}
	}
	slices.SortStableFunc(b.spots, func(x, y spot) int { return len(x.path) - len(y.path) })
}

func (b *breaker) child(parent spot, token any, at place, conj []*jsonschema.Schema, value any) spot {
	b.g.step(1)
	s := spot{path: append(slices.Clip(parent.path), token), at: at, view: b.decided(conj, value), value: value}
	for _, base := range parent.bases {
		if _, ok := lookup(base, s.path); ok {
			s.bases = append(s.bases, base)
		} else if grafted, ok := put(base, s.path, value); ok && b.g.follows(b.g.conj(), grafted) {
			s.bases = append(s.bases, grafted)
		}
	}
	return s
}

// decided returns the view of a valid value: of each choice it has the first
// alternative that the value follows.
func (b *breaker) decided(conj []*jsonschema.Schema, value any) *view {
	v := b.g.viewOf(conj)
	object, _ := value.(map[string]any)
	names := slices.Sorted(maps.Keys(object))
	for i := 0; ; {
		for ; i < len(v.choices); i++ {
			c := v.choices[i]
			for _, option := range c.options {
				// Of a condition, the second option is what is left.
				if test := option[0]; test == nil || c.condition != nil && test != c.condition || b.g.follows(option[:1], value) {
					for _, s := range option {
						b.g.expand(v, s)
					}
					break
				}
			}
		}
		more := b.g.triggered(v, names)
		if len(more) == 0 {
			return v
		}
		for _, s := range more {
			b.g.expand(v, s)
		}
	}
}

// try adds a mutation if the value breaks exactly one rule, one of those named,
// at the place.
func (b *breaker) try(name string, at place, value any, rules ...string) bool {
	b.g.step(1)
	b.g.charge(b.g.costs[b.g.root])
	var failure *jsonschema.ValidationError
	if err := b.g.root.Validate(value); !errors.As(err, &failure) {
		return false
	}
	// Putting the faults of a union into words takes up to the square of their number.
	faults := leaves(failure)
	b.g.charge(faults + faults*faults/16)
	list, pointer := b.g.tool.Validate(value), at.pointer()
	if len(list) != 1 || list[0].Pointer != pointer || !slices.Contains(rules, list[0].Keyword) {
		return false
	}
	b.list = append(b.list, Mutation{Name: name, Pointer: pointer, Rule: list[0].Keyword, Detail: list[0].Message, Value: value})
	return true
}

func leaves(e *jsonschema.ValidationError) int {
	n := 1
	if k, ok := e.ErrorKind.(*kind.Required); ok {
		n = len(k.Missing)
	}
	for _, c := range e.Causes {
		n += leaves(c)
	}
	return n
}

// full reports whether there are enough mutations of a name.
func (b *breaker) full(name string) bool {
	n := 0
	for _, m := range b.list {
		if m.Name == name {
			n++
		}
	}
	return n >= maxOfKind
}

// affords reports whether a few texts of n characters may still be made.
func (b *breaker) affords(n int) bool { return n <= maxText && 16*n <= b.g.bytes }

// replace puts values in a place until one is found that breaks just the rule.
func (b *breaker) replace(name string, s spot, values iter.Seq[any], rules ...string) {
	if b.full(name) {
		return
	}
	for value := range values {
		for _, base := range s.bases {
			if broken, ok := put(base, s.path, value); ok && b.try(name, s.at, broken, rules...) {
				return
			}
		}
	}
}

func (b *breaker) missing(s spot) {
	object, ok := s.value.(map[string]any)
	if !ok {
		return
	}
	for _, name := range b.g.shapeOf(s.view).required {
		if b.full("missing-required") {
			return
		}
		if _, ok := object[name]; !ok {
			continue
		}
		for _, base := range s.bases {
			holder, _ := lookup(base, s.path)
			members, _ := holder.(map[string]any)
			without := maps.Clone(members)
			delete(without, name)
			if broken, ok := put(base, s.path, without); ok && b.try("missing-required", s.at, broken, "required") {
				break
			}
		}
	}
}

// types replaces the value by one of a type from which it is not converted by
// accident: a string is not replaced by a number, nor a number by digits.
func (b *breaker) types(s spot) {
	if len(s.path) == 0 {
		return
	}
	object, list := map[string]any{"not": "expected"}, []any{"not-expected"}
	var values []any
	switch kindOf(s.value) {
	case kindString:
		values = []any{object, list}
	case kindNumber:
		values = []any{"not-a-number", object, list}
	case kindBoolean:
		values = []any{"maybe", object, list}
	case kindArray:
		values = []any{"not-an-array", json.Number("1"), object}
	case kindObject:
		values = []any{"not-an-object", json.Number("1"), list}
	default:
		values = []any{"not-null", object, list}
	}
	b.replace("wrong-type", s, slices.Values(values), "type", "enum", "const")
}

func (b *breaker) listed(s spot) {
	found := false
	greatest := big.NewRat(987_654, 1)
	text := b.g.textRules(s.view)
	for _, c := range s.view.all {
		found = found || c.Const != nil || c.Enum != nil
		if c.Enum == nil {
			continue
		}
		b.g.step(len(c.Enum.Values) / 16)
		for _, value := range c.Enum.Values {
			if number, ok := value.(json.Number); ok {
				if x, ok := new(big.Rat).SetString(string(number)); ok && x.Cmp(greatest) > 0 {
					greatest = x
				}
			}
		}
	}
	if !found || len(s.path) == 0 {
		return
	}
	b.replace("not-in-enum", s, func(yield func(any) bool) {
		switch v := s.value.(type) {
		case bool:
			yield(!v)
		case json.Number:
			yield(json.Number(new(big.Int).Add(new(big.Int).Quo(greatest.Num(), greatest.Denom()), big.NewInt(1)).String()))
		default:
			if !yield("not-one-of-the-choices") || !b.affords(text.min) {
				return
			}
			for word := range b.g.texts(text, 0) {
				if !yield(word) {
					return
				}
			}
		}
	}, "enum", "const")
}

func (b *breaker) numbers(s spot) {
	if _, ok := s.value.(json.Number); !ok {
		return
	}
	allowed := kinds(kindAny)
	for _, c := range s.view.all {
		allowed &= b.g.facts[c].types
	}
	n, ok := b.g.rangeOf(s.view, allowed)
	if !ok {
		return
	}
	number := func(x *big.Rat) any { return json.Number(decimal(x)) }
	less, more := new(big.Rat).Neg(n.unit()), n.unit()
	if n.min != nil {
		x := n.below(n.min)
		if n.contains(x) || !n.minOpen && x.Cmp(n.min) == 0 {
			x = new(big.Rat).Add(x, less)
		}
		b.replace("below-minimum", s, slices.Values([]any{number(x)}), "minimum", "exclusiveMinimum")
	}
	if n.max != nil {
		x := n.above(n.max)
		if n.contains(x) || !n.maxOpen && x.Cmp(n.max) == 0 {
			x = new(big.Rat).Add(x, more)
		}
		b.replace("above-maximum", s, slices.Values([]any{number(x)}), "maximum", "exclusiveMaximum")
	}
	if !n.hasMultiple {
		return
	}
	if x, ok := new(big.Rat).SetString(string(s.value.(json.Number))); ok {
		half := new(big.Rat).Mul(n.step, big.NewRat(1, 2))
		var values []any
		for _, d := range []*big.Rat{big.NewRat(1, 1), big.NewRat(-1, 1), half, new(big.Rat).Neg(half)} {
			values = append(values, number(new(big.Rat).Add(x, d)))
		}
		b.replace("not-a-multiple", s, slices.Values(values), "multipleOf")
	}
}

func (b *breaker) lengths(s spot) {
	old, ok := s.value.(string)
	if !ok {
		return
	}
	t := b.g.textRules(s.view)
	// Words of n characters that the other rules let pass, those of the format first.
	words := func(n int) iter.Seq[any] {
		t := t
		t.min, t.max = n, n
		return func(yield func(any) bool) {
			var rest []string
			for word := range b.g.texts(t, 0) {
				if !b.g.isFormatted(s.view, word) {
					rest = append(rest, word)
				} else if !yield(word) {
					return
				}
			}
			if r := []rune(old); len(r) > n {
				rest = append(rest, string(r[:n]))
			}
			for _, word := range rest {
				if !yield(word) {
					return
				}
			}
		}
	}
	if t.min > 0 && b.affords(t.min) {
		b.replace("too-short", s, words(t.min-1), "minLength")
	}
	if t.max < maxText && b.affords(t.max) {
		b.replace("too-long", s, words(t.max+1), "maxLength")
	}
}

func (b *breaker) items(s spot) {
	list, ok := s.value.([]any)
	if !ok {
		return
	}
	least, most, unique := 0, unlimited, false
	for _, c := range s.view.all {
		unique = unique || c.UniqueItems
		if c.MinItems != nil {
			least = max(least, *c.MinItems)
		}
		if c.MaxItems != nil {
			most = min(most, *c.MaxItems)
		}
	}
	if least > 0 && least <= len(list) {
		b.replace("too-few-items", s, slices.Values([]any{list[: least-1 : least-1]}), "minItems")
	}
	if most >= maxItems || b.full("too-many-items") {
		return
	}
	longer := slices.Clone(list)
	if len(longer) == 0 || unique {
		made, err := b.g.arrayOf(s.view, 0, true, nil, most+1, most+1, unique, s.at, request{probe: true})
		if err != nil {
			return
		}
		longer = made.([]any)
	}
	for len(longer) <= most {
		longer = append(longer, longer[len(longer)-1])
	}
	b.replace("too-many-items", s, slices.Values([]any{longer}), "maxItems")
}

func (b *breaker) patterns(s spot) {
	old, ok := s.value.(string)
	t := b.g.textRules(s.view)
	if !ok || len(t.patterns) == 0 || !b.affords(t.min) {
		return
	}
	b.replace("pattern-mismatch", s, func(yield func(any) bool) {
		for _, word := range []string{"!", "~", " ", "example", "0", "A", "-", "@", "", "\n", old + "!", "!" + old} {
			if r := []rune(word); len(r) > 0 && len(r) < t.min {
				word += strings.Repeat(string(r[:1]), t.min-len(r))
			}
			b.g.spend(len(word))
			if !yield(word) {
				return
			}
		}
	}, "pattern")
}

func (b *breaker) additional(s spot) {
	object, ok := s.value.(map[string]any)
	if !ok || b.full("additional-property") {
		return
	}
	for _, name := range []string{"unexpectedMember", "unexpected_member", "0"} {
		if _, known := object[name]; known {
			continue
		}
		for _, base := range s.bases {
			broken, ok := put(base, append(slices.Clip(s.path), name), "unexpected")
			if ok && b.try("additional-property", s.at, broken, "additionalProperties") {
				return
			}
			// The schema false reports at the member itself.
			if ok && b.try("additional-property", s.at.member(name), broken, "false") {
				last := &b.list[len(b.list)-1]
				last.Pointer, last.Rule = s.at.pointer(), "unevaluatedProperties"
				return
			}
		}
	}
}

func (b *breaker) fractions(s spot) {
	old, ok := s.value.(json.Number)
	if !ok {
		return
	}
	x, ok := new(big.Rat).SetString(string(old))
	if !ok {
		return
	}
	half := big.NewRat(1, 2)
	b.replace("fraction", s, slices.Values([]any{
		json.Number(decimal(new(big.Rat).Add(x, half))), json.Number(decimal(new(big.Rat).Sub(x, half))),
	}), "type")
}

// nulls puts null in place of required members. An optional one may be taken to
// be left out.
func (b *breaker) nulls(s spot) {
	if _, ok := s.value.(map[string]any); !ok {
		return
	}
	for _, name := range b.g.shapeOf(s.view).required {
		if b.full("null-for-required") {
			return
		}
		for _, base := range s.bases {
			if broken, ok := put(base, append(slices.Clip(s.path), name), nil); ok && b.try("null-for-required", s.at.member(name), broken, "type", "enum", "const") {
				break
			}
		}
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
		if !ok {
			return nil, false
		}
		if _, known := object[t]; !known && len(path) > 1 {
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
