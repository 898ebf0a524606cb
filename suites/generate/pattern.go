package generate

import (
	"math"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// match makes a string that a pattern should match, with at least least
// characters if the pattern lets it. vary changes the characters within their classes, pick the
// alternatives. It reports false if the pattern is not understood; what it
// returns may still not match, as boundaries and lookaround are ignored.
func (g *generator) match(text string, least, vary, pick int) (string, bool) {
	if len(text) > 4*maxPatternSize {
		return "", false
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		if parsed, err = syntax.Parse(loosen(text), syntax.Perl); err != nil {
			return "", false
		}
	}
	m := matcher{g: g, vary: vary, pick: pick}
	m.write(parsed)
	if short := least - m.length; short > 0 && !m.failed && least <= maxText {
		m = matcher{g: g, vary: vary, pick: pick, more: short}
		m.write(parsed)
		// What is not anchored may go on.
		if short := least - m.length; short > 0 {
			m.out.WriteString(strings.Repeat("a", short))
		}
	}
	return m.out.String(), !m.failed
}

type matcher struct {
	g      *generator
	out    strings.Builder
	length int // characters written
	more   int // how many are missing to the wanted length
	vary   int
	pick   int
	failed bool
}

func (m *matcher) write(re *syntax.Regexp) {
	m.g.step(1)
	if m.failed {
		return
	}
	switch re.Op {
	case syntax.OpNoMatch:
		m.failed = true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			m.rune(r)
		}
	case syntax.OpCharClass:
		m.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.class([]rune{' ', '~'})
	case syntax.OpCapture:
		m.write(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			m.write(sub)
		}
	case syntax.OpAlternate:
		m.write(re.Sub[m.pick%len(re.Sub)])
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
	for i := 0; i < most && !m.failed; i++ {
		before := m.length
		if i < least {
			m.write(re)
			continue
		}
		if m.more <= 0 {
			return
		}
		missing := m.more
		m.more = 0
		m.write(re)
		if m.length == before {
			// Only what is inside can grow.
			m.more = missing
			m.write(re)
			return
		}
		m.more = missing - (m.length - before)
	}
}

func (m *matcher) rune(r rune) {
	if m.out.Len() > maxText {
		m.failed = true
		return
	}
	m.out.WriteRune(r)
	m.length++
	if m.length%64 == 0 {
		m.g.charge(1)
	}
}

// plain are the characters that are taken from a class if it has them.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func (m *matcher) class(ranges []rune) {
	var within []rune
	if m.vary == 0 {
		for _, r := range plain {
			if inRanges(ranges, r) {
				m.rune(r)
				return
			}
		}
	} else {
		for _, r := range plain {
			if inRanges(ranges, r) {
				within = append(within, r)
			}
		}
	}
	if len(within) > 0 {
		m.rune(within[m.vary%len(within)])
		m.vary /= len(within)
		return
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		for _, r := range []rune{max(ranges[i], ' '), ranges[i]} {
			if r <= ranges[i+1] && utf8.ValidRune(r) && r != utf8.RuneError {
				m.rune(r)
				return
			}
		}
	}
	m.failed = true
}

func inRanges(ranges []rune, r rune) bool {
	for i := 0; i+1 < len(ranges); i += 2 {
		if r >= ranges[i] && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// loosen rewrites what ECMA-262 has and RE2 has not: it drops lookaround and
// spells \uXXXX otherwise. The result serves to make strings, not to judge them.
func loosen(text string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, `\u{`):
			b.WriteString(`\x{`)
			i += 2
		case strings.HasPrefix(rest, `\u`) && len(rest) >= 6:
			b.WriteString(`\x{` + rest[2:6] + `}`)
			i += 5
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
		case inClass:
			inClass = rest[0] != ']'
			b.WriteByte(rest[0])
		case rest[0] == '[':
			inClass = true
			b.WriteByte('[')
		case isLookaround(rest):
			i += groupEnd(rest) - 1
		default:
			b.WriteByte(rest[0])
		}
	}
	return b.String()
}

func isLookaround(s string) bool {
	for _, p := range []string{"(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// groupEnd returns the length of the group that s starts with.
func groupEnd(s string) int {
	depth, inClass := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}
