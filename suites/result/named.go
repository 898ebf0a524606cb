package result

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Named finds the part of an event's text that the message of a finding is about. A shortened text keeps that part.
// It looks for the targets of JSON pointers, for error codes, and for the quotes of the message.
func Named(text, message string) (from, to int, ok bool) {
	const most = 2 << 10 // a message holds text of the target
	message = message[:min(len(message), most)]
	if at := strings.IndexByte(text, '{'); at >= 0 {
		for _, pointer := range pointers(message) {
			for _, root := range [][]string{nil, {"result"}, {"params"}, {"error"}} {
				if from, to, ok := pointed(text[at:], append(root, pointer...)); ok {
					return at + from, at + to, true
				}
			}
		}
	}
	for _, code := range errorCode.FindAllStringSubmatch(message, 4) {
		for _, member := range []string{`"code":` + code[1], `"code": ` + code[1]} {
			if at := strings.Index(text, member); at >= 0 {
				return at, at + len(member), true
			}
		}
	}
	var words []string
	names := quoted(message)
	for _, pointer := range pointers(message) {
		if n := len(pointer); pointer[n-1] != "" {
			names = append(names, pointer[n-1])
		}
	}
	for _, name := range names {
		words = append(words, `"`+name+`"`)
		if len(name) > 1 {
			words = append(words, name)
		}
	}
	for _, word := range words {
		at := strings.Index(text, word)
		if at < 0 {
			continue
		}
		if !ok {
			from, to, ok = at, at+len(word), true
		} else if first, last := min(from, at), max(to, at+len(word)); last-first <= nearby {
			from, to = first, last
		}
	}
	return from, to, ok
}

// nearby is how many bytes apart the names of a message may be so that they are kept together.
const nearby = 120

// errorCode fits the codes of JSON-RPC errors in a message.
var errorCode = regexp.MustCompile(`(?:error|code) (-?\d{1,9})`)

// quoted returns what stands in quotation marks or backticks in a message.
func quoted(message string) []string {
	const most = 8
	var found []string
	for len(found) < most {
		at := strings.IndexAny(message, "\"`")
		if at < 0 {
			break
		}
		end := strings.IndexByte(message[at+1:], message[at])
		if end < 0 {
			break
		}
		if end > 0 {
			found = append(found, message[at+1:at+1+end])
		}
		message = message[at+end+2:]
	}
	return found
}

// pointers returns the JSON pointers (RFC 6901) in a message, in segments.
func pointers(message string) [][]string {
	const most = 8
	var found [][]string
	for _, word := range strings.FieldsFunc(message, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`,;:()", r)
	}) {
		if !strings.HasPrefix(word, "/") || len(found) == most {
			continue
		}
		segments := strings.Split(strings.TrimRight(word, ".")[1:], "/")
		for i, s := range segments {
			segments[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
		}
		found = append(found, segments)
	}
	return found
}

// pointed finds the value that a pointer leads to in a text that begins with a JSON value,
// as much of it as there is: with its name if it is a member.
func pointed(text string, pointer []string) (from, to int, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	for _, segment := range pointer {
		open, err := d.Token()
		if err != nil {
			return 0, 0, false
		}
		index := 0
		for {
			if !d.More() {
				return 0, 0, false
			}
			from = int(d.InputOffset())
			name := strconv.Itoa(index)
			if open == json.Delim('{') {
				key, err := d.Token()
				if err != nil {
					return 0, 0, false
				}
				name, _ = key.(string)
			} else if open != json.Delim('[') {
				return 0, 0, false
			}
			if name == segment {
				break
			}
			var skipped json.RawMessage
			if d.Decode(&skipped) != nil {
				return 0, 0, false
			}
			index++
		}
	}
	if len(pointer) == 0 {
		return 0, 0, false
	}
	from += len(text[from:]) - len(strings.TrimLeft(text[from:], ", \t\r\n"))
	var value json.RawMessage
	if d.Decode(&value) != nil {
		return from, min(from+1, len(text)), true
	}
	return from, int(d.InputOffset()), true
}
