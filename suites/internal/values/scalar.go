package values

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tries is how many variants of each way to make a scalar are proposed.
const tries = 4

// maxPattern is how long a regular expression may be that is looked into.
const maxPattern = 1000

// textRules are what a variant says about a string. Lengths are in characters.
type textRules struct {
	min, max int
	format   string
	patterns []string
}

func textOf(v variant) textRules {
	var t textRules
	t.min, t.max = limits(v.parts, "minLength", "maxLength")
	for _, s := range v.parts {
		if f, ok := s["format"].(string); ok && formats[f] != "" {
			t.format = f
		}
		if p, ok := s["pattern"].(string); ok {
			t.patterns = append(t.patterns, p)
		}
	}
	return t
}

// words proposes strings that have the length and a good chance to follow the
// other rules, the best first, or says why there are none.
func (t textRules) words(vary int) (words []any, why string) {
	switch {
	case t.min > t.max:
		return nil, fmt.Sprintf("no string has at least %d and at most %d characters", t.min, t.max)
	case t.min > maxText:
		return nil, fmt.Sprintf("a string of %d characters would be too large", t.min)
	}
	add := func(word string) {
		if n := utf8.RuneCountInString(word); n >= t.min && n <= t.max && n <= maxText {
			words = append(words, word)
		}
	}
	for k := vary; k < vary+tries && t.format != ""; k++ {
		add(sample(t.format, k, t.min))
	}
	for k := vary; k < vary+tries; k++ {
		for _, p := range t.patterns {
			if word, ok := match(p, t.min, k); ok {
				add(word)
			}
		}
	}
	for k := vary; k < vary+tries; k++ {
		add(fit("example", k, t.min, t.max))
	}
	for _, c := range []string{"a", "A", "0", "1", "/"} {
		add(strings.Repeat(c, max(t.min, min(1, t.max))))
	}
	if len(words) == 0 || len(t.patterns) > 0 {
		why = "no string was found that follows its rules"
	}
	return words, why
}

// fit makes word number k as long as it has to be. Different k make different
// words as long as the length lets them.
func fit(word string, k, least, most int) string {
	suffix := counted(k)
	suffix = suffix[max(0, len(suffix)-most):]
	word = word[:min(len(word), most-len(suffix))]
	return word + strings.Repeat("a", max(0, least-len(word)-len(suffix))) + suffix
}

func counted(k int) string {
	if k == 0 {
		return ""
	}
	return strconv.FormatInt(int64(k), 36)
}

// formats are those of draft 2020-12 and what the common generators of schemas
// write besides: %[1]s stands for text that may be of any length, %[2]d for a number
// from 1 to 28.
var formats = map[string]string{
	"email": "%[1]suser@example.com", "idn-email": "%[1]suser@example.com",
	"uri": "https://example.com/%[1]s", "url": "https://example.com/%[1]s", "iri": "https://example.com/%[1]s",
	"uri-reference": "https://example.com/%[1]s", "iri-reference": "https://example.com/%[1]s",
	"uri-template": "https://example.com/%[1]s{id}",
	"date":         "2025-01-%02[2]d", "date-time": "2025-01-%02[2]dT12:00:00Z", "time": "12:00:%02[2]dZ", "duration": "P%[2]dD",
	"uuid": "123e4567-e89b-42d3-a456-4266141740%02[2]d", "uuid4": "123e4567-e89b-42d3-a456-4266141740%02[2]d",
	"guid": "123e4567-e89b-42d3-a456-4266141740%02[2]d",
	"ipv4": "192.0.2.%[2]d", "ipv6": "2001:db8::%[2]d", "hostname": "host%[1]s.example.com", "idn-hostname": "host%[1]s.example.com",
	"cidrv4": "192.0.%[2]d.0/24", "cidrv6": "2001:db8:%[2]d::/48", "ipv4network": "192.0.%[2]d.0/24", "ipv6network": "2001:db8:%[2]d::/48",
	"json-pointer": "/a%[1]s", "relative-json-pointer": "1/a%[1]s", "regex": "a%[1]s",
	"byte": "MD%02[2]d", "base64": "MD%02[2]d", "base64url": "MD%02[2]d", "json-string": "%[2]d",
	"path": "/tmp/example%[1]s", "file-path": "/tmp/example%[1]s", "directory-path": "/tmp/example%[1]s",
	"e164": "+12025550%03[2]d", "semver": "1.0.%[2]d", "color": "#%06[2]d",
	"cuid": "c%024[2]d", "cuid2": "c%023[2]d", "ulid": "01ARZ3NDEKTSV4RR%010[2]d", "nanoid": "%021[2]d",
}

// sample returns string number k of a format, made as long as least if it can be.
func sample(format string, k, least int) string {
	free := counted(k)
	text := fmt.Sprintf(formats[format], free, k%28+1)
	if n := least - len(text); n > 0 && n <= maxText {
		text = fmt.Sprintf(formats[format], free+strings.Repeat("a", n), k%28+1)
	}
	return text
}

// What ECMA-262 has and RE2 has not: lookaround, which is left out, and \uXXXX.
var (
	lookaround = regexp.MustCompile(`\(\?<?[=!](\[[^\]]*\]|\\.|[^()\\\[])*\)`)
	unicode    = regexp.MustCompile(`\\u\{?([0-9A-Fa-f]{4,6})\}?`)
)

// match makes string number k that a pattern should match, with at least least
// characters if its repetitions let it. It reports false if the pattern is not
// understood or too large; what it returns may still not match.
func match(pattern string, least, k int) (string, bool) {
	if len(pattern) > maxPattern {
		return "", false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		parsed, err = syntax.Parse(lookaround.ReplaceAllString(unicode.ReplaceAllString(pattern, `\x{$1}`), ""), syntax.Perl)
	}
	if err != nil {
		return "", false
	}
	m := matcher{vary: k, left: 4 * maxItems}
	m.write(parsed)
	if missing := least - m.out.Len(); missing > 0 && m.left > 0 {
		m = matcher{vary: k, more: missing, left: 4 * (maxItems + least)}
		m.write(parsed)
		// What is not anchored may go on.
		m.out.WriteString(strings.Repeat("a", max(0, least-m.out.Len())))
	}
	return m.out.String(), m.left > 0
}

type matcher struct {
	out  strings.Builder
	more int // how many characters are missing to the wanted length
	vary int
	left int // decisions that may still be made; 0 if it gave up
}

func (m *matcher) write(re *syntax.Regexp) {
	if m.left--; m.left <= 0 {
		m.left = 0
		return
	}
	switch re.Op {
	case syntax.OpNoMatch:
		m.left = 0
	case syntax.OpLiteral:
		m.out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.class([]rune{' ', '~'})
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			m.write(sub)
		}
	case syntax.OpAlternate:
		m.write(re.Sub[m.vary%len(re.Sub)])
	case syntax.OpQuest:
		m.repeat(re.Sub[0], 0, 1)
	case syntax.OpStar:
		m.repeat(re.Sub[0], 0, math.MaxInt)
	case syntax.OpPlus:
		m.repeat(re.Sub[0], 1, math.MaxInt)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = math.MaxInt
		}
		m.repeat(re.Sub[0], re.Min, most)
	}
}

// repeat writes what is repeated as often as it must be, and more often as long
// as characters are missing.
func (m *matcher) repeat(re *syntax.Regexp, least, most int) {
	for i := 0; i < most && m.left > 0 && (i < least || m.more > 0); i++ {
		before := m.out.Len()
		m.write(re)
		if i >= least {
			if m.out.Len() == before {
				return
			}
			m.more -= m.out.Len() - before
		}
	}
}

// plain are the characters that are taken from a class if it has them.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func (m *matcher) class(ranges []rune) {
	var within []rune
	for _, r := range plain {
		for i := 0; i+1 < len(ranges); i += 2 {
			if r >= ranges[i] && r <= ranges[i+1] {
				within = append(within, r)
			}
		}
	}
	switch {
	case len(within) > 0:
		m.out.WriteRune(within[m.vary%len(within)])
		m.vary /= len(within)
	case len(ranges) > 0 && ranges[1] >= ' ':
		m.out.WriteRune(max(ranges[0], ' '))
	case len(ranges) > 0:
		m.out.WriteRune(ranges[0])
	default:
		m.left = 0
	}
}

// A numberRange is what a variant says about a number.
type numberRange struct {
	min, max         *big.Rat // nil if there is none
	minOpen, maxOpen bool     // the bound itself is excluded
	step             *big.Rat // nil if any number will do
	multiple         bool     // step comes from multipleOf, not from the type alone
}

func rangeOf(v variant, kind string) *numberRange {
	n := &numberRange{}
	if kind == "integer" {
		n.step = big.NewRat(1, 1)
	}
	for _, s := range v.parts {
		// In draft-04 the exclusion is a flag of the bound.
		n.lower(rational(s["minimum"]), s["exclusiveMinimum"] == true)
		n.lower(rational(s["exclusiveMinimum"]), true)
		n.upper(rational(s["maximum"]), s["exclusiveMaximum"] == true)
		n.upper(rational(s["exclusiveMaximum"]), true)
		if step := rational(s["multipleOf"]); step != nil && step.Sign() > 0 {
			n.every(step)
			n.multiple = true
		}
	}
	return n
}

// rational returns a number of moderate length and exponent, or nil.
func rational(value any) *big.Rat {
	text, ok := value.(json.Number)
	if !ok || len(text) > 64 {
		return nil
	}
	if f, err := text.Float64(); err != nil || math.Abs(f) > 1e100 || f != 0 && math.Abs(f) < 1e-100 {
		return nil
	}
	if _, exponent, found := strings.Cut(strings.ToLower(string(text)), "e"); found && len(exponent) > 4 {
		return nil
	}
	x, _ := new(big.Rat).SetString(string(text))
	return x
}

func (n *numberRange) lower(x *big.Rat, open bool) {
	if x != nil && (n.min == nil || x.Cmp(n.min) > 0 || x.Cmp(n.min) == 0 && open) {
		n.min, n.minOpen = x, open
	}
}

func (n *numberRange) upper(x *big.Rat, open bool) {
	if x != nil && (n.max == nil || x.Cmp(n.max) < 0 || x.Cmp(n.max) == 0 && open) {
		n.max, n.maxOpen = x, open
	}
}

// every makes the step the least common multiple with another one, as long as
// that is not too large.
func (n *numberRange) every(m *big.Rat) {
	if n.step == nil {
		n.step = m
		return
	}
	gcd := new(big.Int).GCD(nil, nil, n.step.Num(), m.Num())
	num := new(big.Int).Mul(n.step.Num(), new(big.Int).Quo(m.Num(), gcd))
	if num.BitLen() <= 1024 {
		n.step = new(big.Rat).SetFrac(num, new(big.Int).GCD(nil, nil, n.step.Denom(), m.Denom()))
	}
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

// below returns the greatest multiple of the step that is not above x, and above
// the least that is not below it; without a step both are x.
func (n *numberRange) below(x *big.Rat) *big.Rat {
	if n.step == nil {
		return x
	}
	q := new(big.Rat).Quo(x, n.step)
	floor := new(big.Int).Div(q.Num(), q.Denom()) // the denominator is positive
	return new(big.Rat).Mul(new(big.Rat).SetInt(floor), n.step)
}

func (n *numberRange) above(x *big.Rat) *big.Rat {
	return new(big.Rat).Neg(n.below(new(big.Rat).Neg(x)))
}

// plus returns x moved by a natural distance between two numbers, k times.
func (n *numberRange) plus(x *big.Rat, k int) *big.Rat {
	unit := n.step
	if unit == nil {
		unit = big.NewRat(1, 1)
	}
	return new(big.Rat).Add(x, new(big.Rat).Mul(unit, big.NewRat(int64(k), 1)))
}

// numbers proposes numbers of the range, the most natural first, or says that there are none.
func (n *numberRange) numbers(vary int) (numbers []any, why string) {
	add := func(x *big.Rat) {
		if n.contains(x) {
			numbers = append(numbers, decimal(x))
		}
	}
	for k := vary; k < vary+tries; k++ {
		add(n.plus(n.above(big.NewRat(1, 1)), k))
		add(n.plus(n.above(new(big.Rat)), k))
		if n.min != nil {
			add(n.plus(n.above(n.min), k))
		}
		if n.max != nil {
			add(n.plus(n.below(n.max), -k))
		}
	}
	if n.step == nil {
		half := big.NewRat(1, 2)
		if n.min != nil && n.max != nil {
			width := new(big.Rat).Sub(n.max, n.min)
			for range min(vary, 40) + tries {
				width = new(big.Rat).Mul(width, half)
				add(new(big.Rat).Add(n.min, width))
			}
		}
		// For a rule that excludes whole numbers.
		for _, x := range []*big.Rat{big.NewRat(1, 1), n.min, n.max} {
			if x != nil {
				add(new(big.Rat).Add(x, half))
				add(new(big.Rat).Sub(x, half))
			}
		}
	}
	switch {
	case len(numbers) > 0:
	case n.min != nil && n.max != nil:
		why = fmt.Sprintf("no such number lies between %s and %s", short(string(decimal(n.min)), 40), short(string(decimal(n.max)), 40))
	default:
		why = "no number was found that follows its rules"
	}
	return numbers, why
}

// decimal writes a number with a finite decimal expansion, as all are that come
// from decimals by sums, products and halving.
func decimal(x *big.Rat) json.Number {
	if x.IsInt() {
		return json.Number(x.Num().String())
	}
	digits, exact := x.FloatPrec()
	if !exact {
		digits = 20
	}
	return json.Number(x.FloatString(digits))
}
