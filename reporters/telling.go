package reporters

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// fewEvents is how many events of a finding are shown whatever they are.
const fewEvents = 3

// telling returns the events that decide a finding: a request and its answer, what came instead of an
// answer, or what else the message of the finding names. All evidence is in other reports.
func (v *view) telling(f *result.Finding) []*result.Event {
	events := make([]*result.Event, len(f.Evidence))
	for i := range f.Evidence {
		events[i] = &f.Evidence[i]
	}
	if len(events) <= 2 {
		return events
	}
	if !answers(v.Role, events[len(events)-1]) {
		if len(events) <= fewEvents {
			return events
		}
		return append(events[:1:1], events[len(events)-2:]...)
	}
	words := telltales(f.Message)
	var exchanges []*exchange
	for _, e := range events {
		key := exchangeOf(e)
		i := slices.IndexFunc(exchanges, func(x *exchange) bool { return x.key == key })
		if i < 0 {
			i = len(exchanges)
			exchanges = append(exchanges, &exchange{key: key})
		}
		exchanges[i].add(e, e.From == v.Role, words)
	}
	best := exchanges[0]
	for _, x := range exchanges[1:] {
		// If the message names nothing from the exchanges, the last one decides.
		if x.answer != nil && (best.answer == nil || len(best.named) == 0 || len(x.named) > len(best.named)) {
			best = x
		}
	}
	kept := []*result.Event{best.request, best.answer}
	for _, x := range exchanges {
		if x.request != nil && slices.ContainsFunc(x.named,
			func(w string) bool { return !slices.Contains(best.named, w) }) {
			kept = append(kept, x.request)
			break
		}
	}
	return slices.DeleteFunc(events, func(e *result.Event) bool { return !slices.Contains(kept, e) })
}

// exchange is a request in the evidence of a finding, with what came back.
type exchange struct {
	key             string
	request, answer *result.Event // of each side, the one that shows most of what the message names
	named           []string      // all that they show of it
	most            [2]int
}

func (x *exchange) add(e *result.Event, peer bool, words []string) {
	n := 1
	if e.Kind == "message" {
		n++ // it says more than the head of an HTTP message
	}
	for _, w := range words {
		if !strings.Contains(e.Text, w) {
			continue
		}
		n += 2
		if !slices.Contains(x.named, w) {
			x.named = append(x.named, w)
		}
	}
	side, at := 0, &x.request
	if peer {
		side, at = 1, &x.answer
	}
	if n > x.most[side] {
		x.most[side], *at = n, e
	}
}

// exchangeOf names the exchange to which an event belongs: over HTTP that of its stream, else the
// one of the request that has the same id.
func exchangeOf(e *result.Event) string {
	if strings.Contains(e.Stream, ":") {
		return e.Connection + " " + e.Stream
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	from := e.From
	if json.Unmarshal([]byte(e.Text), &message) != nil || message.ID == nil {
		message.ID = json.RawMessage(idInside.FindString(e.Text))
	}
	if message.Method == "" && !strings.Contains(e.Text, `"method":`) { // an answer to the other side
		from = map[string]string{"client": "server", "server": "client"}[from]
	}
	return e.Connection + " " + from + " " + string(bytes.TrimPrefix(message.ID, []byte(`"id":`)))
}

// idInside finds the id in a message that was shortened.
var idInside = regexp.MustCompile(`"id":(?:\d+|"[^"]*")`)

// answers reports whether an event is an answer of the party in a role.
func answers(role string, e *result.Event) bool {
	return e.From == role && (e.Kind == "http-response" || e.Kind == "http-body" ||
		e.Kind == "message" && !strings.Contains(e.Text, `"method":`))
}

// telltales are the words of a finding's message by which the events that it is about are known.
func telltales(message string) []string {
	var words []string
	for _, w := range telltale.FindAllString(message[:min(len(message), limitMessage)], 40) {
		if w = strings.Trim(w, `"`); len(w) > 1 && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

var telltale = regexp.MustCompile(
	`"[^"\\]+"|\{[^{}]*\}|-?\d{3,}|\b[a-z]+(?:/[A-Za-z_]+)+|\w+://[^\s,]+|\b(?:GET|POST|DELETE)\b|\bisError\b`)

// unescaped writes JSON that stands in a string as it is, between single quotes: a reader is not to
// look through two layers of escapes.
func unescaped(s string) string {
	return quotedText.ReplaceAllStringFunc(s, func(q string) string {
		if !strings.Contains(q, `\`) {
			return q
		}
		inner, err := strconv.Unquote(q)
		if err != nil {
			return q
		}
		inner = strings.TrimSpace(inner)
		if !strings.Contains(inner, `"`) {
			return q
		}
		var b bytes.Buffer
		if json.Compact(&b, []byte(inner)) == nil {
			return "'" + b.String() + "'"
		}
		return "'" + tight.Replace(strings.Join(strings.Fields(inner), " ")) + "'"
	})
}

// tight takes the blanks out of JSON that is not whole.
var tight = strings.NewReplacer("[ ", "[", " ]", "]", "{ ", "{", " }", "}")

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// gist is an event's text on one line: of the head of an HTTP message the first line and the headers
// that a finding's message names, of an SSE event its data.
func gist(e *result.Event, message string) string {
	lines := strings.Split(e.Text, "\n")
	head := e.Kind == "http-request" || e.Kind == "http-response"
	if len(lines) == 1 || !head && e.Kind != "message" {
		return unescaped(e.Text)
	}
	words := telltales(message)
	var kept []string
	for i, l := range lines {
		name, _, field := strings.Cut(l, ": ")
		named := head && len(name) > 2 && strings.Contains(strings.ToLower(message), strings.ToLower(name))
		telling := slices.ContainsFunc(words, func(w string) bool { return strings.Contains(l, w) })
		if head && i == 0 || named || telling || !field || strings.HasPrefix(l, "{") || strings.HasPrefix(l, "[") {
			kept = append(kept, unescaped(l))
		}
	}
	return strings.Join(kept, " · ")
}
