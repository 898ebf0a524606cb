package generate

import (
	"encoding/json"
	"iter"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

const tries = 4 // variants of each way to make a scalar

// textRules is what a view says about a string. Lengths are in characters.
type textRules struct {
	min, max int
	formats  []string
	patterns []string
}

func (g *generator) textRules(v *view) textRules {
	t := textRules{max: unlimited}
	for _, s := range v.all {
		if s.MinLength != nil {
			t.min = max(t.min, *s.MinLength)
		}
		if s.MaxLength != nil {
			t.max = min(t.max, *s.MaxLength)
		}
		if f := g.facts[s].format; f != "" {
			t.formats = append(t.formats, f)
		}
		if s.Pattern != nil {
			t.patterns = append(t.patterns, s.Pattern.String())
		}
	}
	return t
}

func (g *generator) text(v *view, at place, r request) (any, error) {
	t := g.textRules(v)
	if t.min > t.max {
		return nil, at.problem("no string has at least %d and at most %d characters", t.min, t.max)
	}
	if t.min > maxText {
		return nil, at.problem("a string of %d characters would be too large", t.min)
	}
	for text := range g.texts(t, r.vary) {
		if g.accept(v, text, r) {
			return text, nil
		}
	}
	if len(t.patterns) > 0 {
		return nil, at.problem("no string was found that matches the pattern %s", quote(t.patterns[0]))
	}
	return nil, at.problem("no string was found that follows its rules")
}

// texts returns strings that have a good chance to follow the rules, the best first.
func (g *generator) texts(t textRules, vary int) iter.Seq[string] {
	return func(yield func(string) bool) {
		emit := func(text string) bool {
			n := utf8.RuneCountInString(text)
			if len(text) > maxText || n < t.min || n > t.max {
				return true
			}
			g.spend(len(text))
			return yield(text)
		}
		for k := vary; k < vary+tries; k++ {
			for _, name := range t.formats {
				if f, ok := formats[name]; ok && !emit(f.sample(k, t.min, t.max)) {
					return
				}
			}
		}
		for k := vary; k < vary+tries; k++ {
			for _, p := range t.patterns {
				for pick := range tries {
					if text, ok := g.match(p, t.min, k, pick); ok && !emit(text) {
						return
					}
				}
			}
		}
		for k := vary; k < vary+tries; k++ {
			if !emit(fit("example", k, t.min, t.max)) {
				return
			}
		}
		for _, c := range []string{"a", "A", "0", "1", "/", " "} {
			if t.min <= maxText && !emit(strings.Repeat(c, max(t.min, min(1, t.max)))) {
				return
			}
		}
	}
}

// fit makes word number k as long as it has to be. Different k make different
// words as long as the length lets them.
func fit(word string, k, least, most int) string {
	suffix := ""
	if k > 0 {
		suffix = strconv.FormatInt(int64(k), 36)
	}
	if len(suffix) > most {
		suffix = suffix[len(suffix)-most:]
	}
	word = word[:min(len(word), most-len(suffix))]
	if n := min(least, maxText) - len(word) - len(suffix); n > 0 {
		word += strings.Repeat("a", n)
	}
	return word + suffix
}

// A numberRange is what a view says about a number.
type numberRange struct {
	min, max         *big.Rat // nil if there is none
	minOpen, maxOpen bool     // the bound itself is excluded
	step             *big.Rat // nil if any number will do
	hasMultiple      bool     // step comes from multipleOf, not from the type alone
}

// maxStepBits bounds the least common multiple of what the parts of a schema ask for.
const maxStepBits = 4096

func (g *generator) rangeOf(v *view, allowed kinds) (n numberRange, ok bool) {
	for _, s := range v.all {
		g.step(1)
		n.lower(s.Minimum, false)
		n.lower(s.ExclusiveMinimum, true)
		n.upper(s.Maximum, false)
		n.upper(s.ExclusiveMaximum, true)
		if s.MultipleOf != nil && s.MultipleOf.Sign() > 0 {
			n.hasMultiple = true
			if !n.every(s.MultipleOf) {
				return n, false
			}
		}
	}
	if allowed&kindFraction == 0 && !n.every(big.NewRat(1, 1)) {
		return n, false
	}
	return n, true
}

func (n *numberRange) lower(bound *big.Rat, open bool) {
	if bound == nil {
		return
	}
	if n.min == nil || bound.Cmp(n.min) > 0 || open && bound.Cmp(n.min) == 0 {
		n.min, n.minOpen = bound, open
	}
}

func (n *numberRange) upper(bound *big.Rat, open bool) {
	if bound == nil {
		return
	}
	if n.max == nil || bound.Cmp(n.max) < 0 || open && bound.Cmp(n.max) == 0 {
		n.max, n.maxOpen = bound, open
	}
}

// every narrows the step to multiples of m too: of the least common multiple,
// which for fractions is that of the numerators over the greatest common
// divisor of the denominators.
func (n *numberRange) every(m *big.Rat) bool {
	if n.step == nil {
		n.step = m
		return true
	}
	gcd := new(big.Int).GCD(nil, nil, n.step.Num(), m.Num())
	num := new(big.Int).Mul(n.step.Num(), new(big.Int).Quo(m.Num(), gcd))
	den := new(big.Int).GCD(nil, nil, n.step.Denom(), m.Denom())
	if num.BitLen() > maxStepBits {
		return false
	}
	n.step = new(big.Rat).SetFrac(num, den)
	return true
}

func (n *numberRange) contains(x *big.Rat) bool {
	if n.min != nil {
		if c := x.Cmp(n.min); c < 0 || c == 0 && n.minOpen {
			return false
		}
	}
	if n.max != nil {
		if c := x.Cmp(n.max); c > 0 || c == 0 && n.maxOpen {
			return false
		}
	}
	return n.step == nil || new(big.Rat).Quo(x, n.step).IsInt()
}

// above returns the least multiple of the step that is not below x, and below the
// greatest that is not above it; without a step both are x.
func (n *numberRange) above(x *big.Rat) *big.Rat {
	return new(big.Rat).Neg(n.below(new(big.Rat).Neg(x)))
}

func (n *numberRange) below(x *big.Rat) *big.Rat {
	if n.step == nil {
		return x
	}
	q := new(big.Rat).Quo(x, n.step)
	floor := new(big.Int).Div(q.Num(), q.Denom()) // the denominator is positive
	return new(big.Rat).Mul(new(big.Rat).SetInt(floor), n.step)
}

// unit is a natural distance between two numbers.
func (n *numberRange) unit() *big.Rat {
	if n.step == nil {
		return big.NewRat(1, 1)
	}
	return n.step
}

func (g *generator) number(v *view, allowed kinds, at place, r request) (any, error) {
	n, ok := g.rangeOf(v, allowed)
	if !ok {
		return nil, at.problem("its number would be too large")
	}
	found := false
	for x := range n.numbers(r.vary) {
		g.step(1)
		if !n.contains(x) {
			continue
		}
		found = true
		text := decimal(x)
		g.spend(len(text))
		if value := json.Number(text); g.accept(v, value, r) {
			return value, nil
		}
	}
	if !found && n.min != nil && n.max != nil {
		return nil, at.problem("no such number lies between %s and %s", short(decimal(n.min), 40), short(decimal(n.max), 40))
	}
	return nil, at.problem("no number was found that follows its rules")
}

// numbers returns numbers of which some lie in the range, if any does, the most natural first.
func (n *numberRange) numbers(vary int) iter.Seq[*big.Rat] {
	return func(yield func(*big.Rat) bool) {
		one, half := big.NewRat(1, 1), big.NewRat(1, 2)
		offset := func(x *big.Rat, k int) *big.Rat {
			return new(big.Rat).Add(x, new(big.Rat).Mul(n.unit(), big.NewRat(int64(k), 1)))
		}
		var starts []*big.Rat
		for _, x := range []*big.Rat{one, new(big.Rat), n.min} {
			if x == nil {
				continue
			}
			if x = n.above(x); n.contains(x) || x != one && n.min != nil {
				starts = append(starts, x)
			}
		}
		for k := vary; k < vary+tries; k++ {
			for _, x := range starts {
				if !yield(offset(x, k)) {
					return
				}
			}
			if n.max != nil && !yield(offset(n.below(n.max), -k)) {
				return
			}
		}
		if n.step == nil {
			// Between the bounds, ever closer to the lower one.
			if n.min != nil && n.max != nil {
				width := new(big.Rat).Sub(n.max, n.min)
				for range min(vary, 40) {
					width.Mul(width, half)
				}
				for range tries {
					width.Mul(width, half)
					if !yield(new(big.Rat).Add(n.min, width)) {
						return
					}
				}
			}
			// For a rule that excludes whole numbers.
			for _, x := range append(starts, n.max) {
				if x != nil && (!yield(new(big.Rat).Add(x, half)) || !yield(new(big.Rat).Sub(x, half))) {
					return
				}
			}
		}
		for _, x := range starts {
			for k := range tries {
				if !yield(offset(x, -k)) {
					return
				}
			}
		}
	}
}

// decimal writes a number with a finite decimal expansion, as all are that come
// from decimals by sums, products and halving.
func decimal(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	digits, exact := x.FloatPrec()
	if !exact {
		digits = 20
	}
	return x.FloatString(digits)
}

// isFormatted reports whether a string is of the formats that a view names, as far as they are known.
func (g *generator) isFormatted(v *view, value any) bool {
	text, ok := value.(string)
	if !ok {
		return true
	}
	for _, s := range v.all {
		if name := g.facts[s].format; name != "" && !hasFormat(name, text) {
			return false
		}
	}
	return true
}
