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
// other rules, the best first.
func (t textRules) words(vary int, work *int) (words []any) {
	if t.min > min(t.max, maxText) {
		return nil
	}
	add := func(word string) bool {
		n := utf8.RuneCountInString(word)
		if n < t.min || n > min(t.max, maxText) {
			return false
		}
		words = append(words, word)
		return true
	}
	for k := vary; k < vary+tries && t.format != ""; k++ {
		add(sample(t.format, k, t.min))
	}
	for k := vary; k < vary+tries; k++ {
		for _, p := range t.patterns {
			for more := 0; more <= t.min; more++ {
				if more == near && more < t.min-near {
					more = t.min - near
				}
				word, ok := match(p, more, k, work)
				if !ok || add(word) {
					break
				}
			}
			// A pattern without an anchor may go on.
			if word, ok := match(p, 0, k, work); ok {
				add(word + strings.Repeat("a", max(0, t.min-len(word))))
			}
		}
	}
	for k := vary; k < vary+tries; k++ {
		add(fit("example", k, t.min, t.max))
	}
	for _, c := range []string{"a", "A", "0", "1", "/"} {
		add(strings.Repeat(c, max(t.min, min(1, t.max))))
	}
	return words
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
	"date":         "2025-01-%02[2]d", "date-time": "2025-01-%02[2]dT12:00:00Z", "time": "12:00:%02[2]dZ",
	"duration": "P%[2]dD",
	"uuid":     "123e4567-e89b-42d3-a456-4266141740%02[2]d", "uuid4": "123e4567-e89b-42d3-a456-4266141740%02[2]d",
	"guid": "123e4567-e89b-42d3-a456-4266141740%02[2]d",
	"ipv4": "192.0.2.%[2]d", "ipv6": "2001:db8::%[2]d", "hostname": "host%[1]s.example.com",
	"idn-hostname": "host%[1]s.example.com",
	"cidrv4":       "192.0.%[2]d.0/24", "cidrv6": "2001:db8:%[2]d::/48", "ipv4network": "192.0.%[2]d.0/24",
	"ipv6network":  "2001:db8:%[2]d::/48",
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

// Bounds of the work on patterns.
const (
	maxPattern = 1000 // characters of a pattern that is looked into
	maxWritten = 4 * maxItems
	near       = 8 // repetitions that are tried near none and near the least length
)

// RE2 lacks two features of ECMA-262: lookaround, which is left out, and \uXXXX.
var (
	lookaround = regexp.MustCompile(`\(\?<?[=!](\[[^\]]*\]|\\.|[^()\\\[])*\)`)
	unicode    = regexp.MustCompile(`\\u\{?([0-9A-Fa-f]{4,6})\}?`)
)

// match makes string number k that a pattern should match, with so many more repetitions than it
// must have, where it may. It reports false if the pattern is not understood or too large; what
// it returns may still not match.
func match(pattern string, more, k int, work *int) (string, bool) {
	if len(pattern) > maxPattern || *work < 0 {
		return "", false
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		parsed, err = syntax.Parse(lookaround.ReplaceAllString(unicode.ReplaceAllString(pattern, `\x{$1}`), ""),
			syntax.Perl)
	}
	if err != nil {
		return "", false
	}
	m := matcher{vary: k, more: more, left: maxWritten + more}
	m.write(parsed)
	*work -= maxWritten + more - m.left
	return m.out.String(), m.left > 0
}

type matcher struct {
	out        strings.Builder
	more, vary int
	left       int // decisions that may still be made; 0 if it gave up
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
		m.repeat(re.Sub[0], 0, -1)
	case syntax.OpPlus:
		m.repeat(re.Sub[0], 1, -1)
	case syntax.OpRepeat:
		m.repeat(re.Sub[0], re.Min, re.Max)
	}
}

func (m *matcher) repeat(re *syntax.Regexp, least, most int) {
	for i := 0; i < least+m.more && (i < most || most < 0) && m.left > 0; i++ {
		m.write(re)
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
	case len(ranges) > 0:
		m.out.WriteRune(max(ranges[0], min(' ', ranges[1])))
	default:
		m.left = 0
	}
}

// A numberRange is what a variant says about a number.
type numberRange struct {
	bounds   []bound
	step     *big.Rat // nil if any number will do
	multiple bool     // step comes from multipleOf, not from the type alone
}

type bound struct {
	at   *big.Rat
	side int  // 1 for a lower bound, -1 for an upper one
	open bool // the bound itself is excluded
}

func rangeOf(v variant, kind string) *numberRange {
	n := &numberRange{}
	if kind == "integer" {
		n.step = big.NewRat(1, 1)
	}
	for _, s := range v.parts {
		for _, b := range []struct {
			keyword string
			side    int
			open    bool
		}{
			// In draft-04 the exclusion is a flag of the bound.
			{"minimum", 1, s["exclusiveMinimum"] == true}, {"exclusiveMinimum", 1, true},
			{"maximum", -1, s["exclusiveMaximum"] == true}, {"exclusiveMaximum", -1, true},
		} {
			if x := rational(s[b.keyword]); x != nil {
				n.bounds = append(n.bounds, bound{x, b.side, b.open})
			}
		}
		if step := rational(s["multipleOf"]); step != nil && step.Sign() > 0 {
			n.step, n.multiple = step, true
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

func (n *numberRange) contains(x *big.Rat) bool {
	for _, b := range n.bounds {
		if c := x.Cmp(b.at) * b.side; c < 0 || c == 0 && b.open {
			return false
		}
	}
	return n.step == nil || new(big.Rat).Quo(x, n.step).IsInt()
}

// from returns the number that is k steps above the greatest one that is not above x; without a
// step, x is a number itself, and a step is 1.
func (n *numberRange) from(x *big.Rat, k int) *big.Rat {
	step, steps := big.NewRat(1, 1), big.NewRat(int64(k), 1)
	if n.step != nil {
		step = n.step
		q := new(big.Rat).Quo(x, step)
		x = new(big.Rat).Mul(step, new(big.Rat).SetInt(new(big.Int).Div(q.Num(),
			q.Denom()))) // the denominator is positive
	}
	return new(big.Rat).Add(x, steps.Mul(steps, step))
}

// numbers proposes numbers of the range, the most natural first.
func (n *numberRange) numbers(vary int) (numbers []any) {
	add := func(x *big.Rat) {
		if n.contains(x) {
			numbers = append(numbers, decimal(x))
		}
	}
	one, half := big.NewRat(1, 1), big.NewRat(1, 2)
	for k := vary; k <= vary+tries; k++ {
		add(n.from(one, k))
		add(n.from(new(big.Rat), k))
		for _, b := range n.bounds {
			add(n.from(b.at, k*b.side))
		}
	}
	// Between bounds that no whole number is between, and for a rule that excludes whole numbers.
	for _, low := range n.bounds {
		for _, high := range n.bounds {
			width := new(big.Rat).Sub(high.at, low.at)
			for range min(vary, 40) + tries {
				width.Mul(width, half)
				add(new(big.Rat).Add(low.at, width))
			}
		}
	}
	add(new(big.Rat).Add(one, half))
	for _, b := range n.bounds {
		add(new(big.Rat).Add(b.at, half))
		add(new(big.Rat).Sub(b.at, half))
	}
	return numbers
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
