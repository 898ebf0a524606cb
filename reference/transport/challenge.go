package transport

import "strings"

// Challenge is one challenge of a WWW-Authenticate header (RFC 9110, section 11.6.1).
type Challenge struct {
	Scheme string
	// Parameters by lower-case name.
	Parameters map[string]string
	// Repeated holds the lower-case names that came more than once.
	Repeated []string
}

// ChallengeList holds the challenges of a response.
type ChallengeList []Challenge

// Parameters returns the parameters of all challenges, the first of each name.
func (l ChallengeList) Parameters() map[string]string {
	all := make(map[string]string)
	for _, c := range l {
		for name, value := range c.Parameters {
			if _, ok := all[name]; !ok {
				all[name] = value
			}
		}
	}
	return all
}

// Challenges reads the values of WWW-Authenticate headers, as far as they can
// be understood.
func Challenges(values []string) ChallengeList {
	var all ChallengeList
	for _, v := range values {
		all = append(all, challenges(v)...)
	}
	return all
}

// challenges reads one value: schemes, each followed by parameters, all set
// apart by commas. A token68 is taken for a scheme without any.
func challenges(text string) ChallengeList {
	var all ChallengeList
	for text != "" {
		text = strings.TrimLeft(text, " \t,")
		word := leading(text)
		if word == "" {
			_, text, _ = strings.Cut(text, ",")
			continue
		}
		rest := strings.TrimLeft(text[len(word):], " \t")
		if value, after, ok := parameter(rest); ok && len(all) > 0 {
			all[len(all)-1].add(strings.ToLower(word), value)
			text = after
			continue
		}
		all = append(all, Challenge{Scheme: word, Parameters: make(map[string]string)})
		text = rest
	}
	return all
}

// add keeps the first value of a parameter that is not empty.
func (c *Challenge) add(name, value string) {
	old, had := c.Parameters[name]
	if had {
		c.Repeated = append(c.Repeated, name)
	}
	if old == "" {
		c.Parameters[name] = value
	}
}

// leading returns the token with which a text begins.
func leading(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// parameter reads = and a value, which may be quoted.
func parameter(text string) (value, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "=")
	if !ok || strings.HasPrefix(text, "=") {
		return "", "", false
	}
	text = strings.TrimLeft(text, " \t")
	if !strings.HasPrefix(text, `"`) {
		// A URL without quotes is not a token, but it is clear what is meant.
		end := strings.IndexAny(text, ", \t")
		if end < 0 {
			return text, "", true
		}
		return text[:end], text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) {
				b.WriteByte(text[i])
			}
		case '"':
			return b.String(), text[i+1:], true
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), "", true
}
