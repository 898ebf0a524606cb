package schema

import (
	"strconv"
	"strings"
)

// The formats that the revision uses. A check returns "" or why the text is not
// of the format, as in `not a URI: the scheme is missing`. All run in linear time.
var formats = map[string]func(string) string{
	"uri":          checkURI,
	"uri-template": checkURITemplate,
	"byte":         checkBase64,
}

// malformed is the error of a format's check: what the check returns.
type malformed string

func (m malformed) Error() string { return string(m) }

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// isPercent reports whether a percent-encoded octet starts at s[i].
func isPercent(s string, i int) bool {
	return i+2 < len(s) && s[i] == '%' && isHex(s[i+1]) && isHex(s[i+2])
}

// checkURI follows the grammar of RFC 3986, section 3, without the details of
// IP literals. Neither a relative reference nor text with characters
// outside ASCII is a URI, which carries those percent-encoded.
func checkURI(s string) string {
	const not = "not a URI: "
	scheme, rest, found := strings.Cut(s, ":")
	if !found || scheme == "" || strings.ContainsAny(scheme, "/?#") {
		return not + "the scheme is missing"
	}
	for i := range len(scheme) {
		c := scheme[i]
		if !isAlpha(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return not + "the scheme is malformed"
		}
	}
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		end := strings.IndexAny(authority, "/?#")
		if end < 0 {
			end = len(authority)
		}
		if reason := checkAuthority(authority[:end]); reason != "" {
			return not + reason
		}
		rest = authority[end:]
	}
	path, fragment, _ := strings.Cut(rest, "#")
	for _, part := range []string{path, fragment} {
		if reason := checkURICharacters(part, ":@/?"); reason != "" {
			return not + reason
		}
	}
	return ""
}

func checkAuthority(s string) string {
	user, host, found := strings.Cut(s, "@")
	if !found {
		user, host = "", s
	}
	if reason := checkURICharacters(user, ":"); reason != "" {
		return reason
	}
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return "the bracket of the host is not closed"
		}
		if reason := checkURICharacters(host[1:end], ":"); reason != "" {
			return reason
		}
		if end == 1 {
			return "the host in brackets is empty"
		}
		if end+1 < len(host) && host[end+1] != ':' {
			return "the host goes on after its bracket"
		}
		host = host[end+1:]
	}
	host, port, _ := strings.Cut(host, ":")
	if strings.Trim(port, "0123456789") != "" {
		return "the port is not a number"
	}
	return checkURICharacters(host, "")
}

// checkURICharacters accepts unreserved characters, sub-delims, percent-encoded
// octets and the extra ones.
func checkURICharacters(s, extra string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case isAlpha(c) || isDigit(c) || strings.IndexByte("-._~!$&'()*+,;=", c) >= 0 ||
			strings.IndexByte(extra, c) >= 0:
		case isPercent(s, i):
			i += 2
		default:
			return badCharacter(s, i)
		}
	}
	return ""
}

func badCharacter(s string, i int) string {
	if s[i] == '%' {
		return "a percent sign is not followed by two hexadecimal digits"
	}
	for _, r := range s[i:] {
		return "the character " + strconv.QuoteRune(r) + " is not allowed"
	}
	return ""
}

// checkURITemplate follows the grammar of RFC 6570, section 2. The single quote
// is accepted among the literals, as URIs may contain it.
func checkURITemplate(s string) string {
	const not = "not a URI template: "
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '{':
			end := strings.IndexAny(s[i+1:], "{}")
			if end < 0 || s[i+1+end] == '{' {
				return not + "a brace is not closed"
			}
			if expression := s[i+1 : i+1+end]; !isExpression(expression) {
				return not + "the expression {" + strings.Trim(quote(expression), `"`) + "} is malformed"
			}
			i += end + 1
		case c == '}':
			return not + "a brace is closed that was not opened"
		case isPercent(s, i):
			i += 2
		case c <= ' ' || c == 0x7F || strings.IndexByte("\"%<>\\^`|", c) >= 0:
			return not + badCharacter(s, i)
		}
	}
	return ""
}

func isExpression(s string) bool {
	// The operators of level 2 and 3 and those reserved for extensions.
	if s != "" && strings.IndexByte("+#./;?&=,!@|", s[0]) >= 0 {
		s = s[1:]
	}
	for variable := range strings.SplitSeq(s, ",") {
		name, prefix, found := strings.Cut(variable, ":")
		if found {
			if !digits(prefix) || len(prefix) > 4 || prefix[0] == '0' {
				return false
			}
		} else {
			name = strings.TrimSuffix(name, "*")
		}
		if !isVariable(name) {
			return false
		}
	}
	return true
}

func isVariable(s string) bool {
	dot := true // a dot may neither start nor follow a dot
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '.':
			if dot {
				return false
			}
			dot = true
			continue
		case isPercent(s, i):
			i += 2
		case !isAlpha(c) && !isDigit(c) && c != '_':
			return false
		}
		dot = false
	}
	return !dot
}

// checkBase64 follows RFC 4648: the standard alphabet (section 4), padding
// because no one said otherwise (section 3.2), no line feeds (section 3.1).
// Pad bits that are not zero are accepted, as decoders may (section 3.5).
func checkBase64(s string) string {
	const not = "not base64: "
	text := strings.TrimRight(s, "=")
	for i := range len(text) {
		c := text[i]
		if isAlpha(c) || isDigit(c) || c == '+' || c == '/' {
			continue
		}
		if c == '-' || c == '_' {
			return not + "the character '" + string(c) + "' belongs to the URL-safe alphabet"
		}
		if c == '%' || c == '=' {
			return not + "the character '" + string(c) + "' is not allowed there"
		}
		return not + badCharacter(text, i)
	}
	if padding := len(s) - len(text); len(s)%4 != 0 || padding > 2 {
		return not + "the padding is wrong"
	}
	return ""
}

// CheckFormat judges a text against one of the formats of the revision's
// schema: uri (RFC 3986), uri-template (RFC 6570) or byte (base64, RFC 4648). It
// returns "" or why the text is not of the format, as in "not a URI: the scheme is
// missing". Other formats accept everything.
func CheckFormat(format, text string) string {
	if check, ok := formats[format]; ok {
		return check(text)
	}
	return ""
}
