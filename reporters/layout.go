package reporters

import (
	"encoding/json"
	"strings"
)

// jsonLine is a part of a JSON text that is shown on a line of its own. All parts
// in a row are the text, byte for byte.
type jsonLine struct {
	Depth int
	Text  string
}

const (
	shortJSON = 80 // bytes of an object or array that is not broken into lines
	deepJSON  = 8  // levels that are told apart by how far they are indented
)

// splitJSON parts what precedes a JSON object or array at the end of an event, such as
// the head of an HTTP message, from it. body is "" if there is none, or if it has lines
// already. A text that was shortened need not be well-formed.
func splitJSON(s string, shortened bool) (head, body string) {
	at := 0
	for rest := s; ; {
		if strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "[") {
			break
		}
		next := strings.IndexByte(rest, '\n') + 1
		if next == 0 {
			return s, ""
		}
		at += next
		rest = rest[next:]
	}
	body = s[at:]
	if strings.Contains(strings.TrimRight(body, "\r\n"), "\n") || !shortened && !json.Valid([]byte(body)) {
		return s, ""
	}
	return s[:at], body
}

// layOut breaks a JSON text into lines: each member or element of what is not short
// gets one.
func layOut(s string) []jsonLine {
	ends := extents(s)
	var lines []jsonLine
	depth, start := 0, 0
	cut := func(at int) {
		if at > start {
			lines = append(lines, jsonLine{min(depth, deepJSON), s[start:at]})
			start = at
		}
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = closing(s, i)
		case '{', '[':
			if end := ends[i]; end > 0 && end-i < shortJSON {
				i = end
				continue
			}
			cut(i + 1)
			depth++
		case '}', ']':
			cut(i)
			depth = max(depth-1, 0)
		case ',':
			cut(i + 1)
		}
	}
	cut(len(s))
	return lines
}

// extents maps where an object or array begins to where it ends.
func extents(s string) map[int]int {
	ends := make(map[int]int)
	var open []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = closing(s, i)
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			if n := len(open); n > 0 {
				ends[open[n-1]] = i
				open = open[:n-1]
			}
		}
	}
	return ends
}

// closing returns where the string that begins at i ends.
func closing(s string, i int) int {
	for i++; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i
}
