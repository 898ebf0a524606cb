package result

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// maxText is how many bytes of one event a report shows.
const maxText = 2000

// NewEvent returns a wire event as a report shows it. A shortened text keeps the part that the message of the finding
// names.
func NewEvent(e *wire.Event, message string) Event {
	out := Event{
		Connection: e.Conn, Seq: e.Seq, Seconds: e.At.Seconds(), Kind: string(e.Kind),
		From: string(e.From), Stream: e.Stream,
	}
	out.Text, out.Truncated = shorten(text(e), message)
	out.Truncated = out.Truncated || e.Dropped > 0
	return out
}

// leftOut stands in an excerpt for what it leaves out: shorten writes it, and so do checks
// that quote the telling part of a long message.
var leftOut = regexp.MustCompile(`(?: … )?\[\d+ bytes left out\](?: … )?`)

// Quotes reports whether a report shows the event as it is, in full or as an excerpt.
func (e Event) Quotes(full *wire.Event) bool {
	whole := NewEvent(full, "")
	if e == whole {
		return true
	}
	rest := text(full)
	whole.Text, whole.Truncated = e.Text, true
	if e != whole {
		return false
	}
	shown := false
	parts := leftOut.Split(e.Text, -1)
	for i, part := range parts {
		at := strings.Index(rest, part)
		if last := i == len(parts)-1; last && part != "" {
			at = strings.LastIndex(rest, part)
			if at >= 0 && at+len(part) != len(rest) {
				return false
			}
		}
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		rest = rest[at+len(part):]
		shown = shown || part != ""
	}
	return shown && len(parts) > 1
}

// NewEvents converts the events of a finding, in the order in which they happened.
func NewEvents(events []*wire.Event, message string) []Event {
	var out []Event
	seen := make(map[*wire.Event]bool)
	for _, e := range events {
		if e != nil && !seen[e] {
			seen[e] = true
			out = append(out, NewEvent(e, message))
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(a.Seq, b.Seq))
	})
	return out
}

func text(e *wire.Event) string {
	var parts []string
	if h := e.HTTP; h != nil {
		parts = append(parts, head(h))
	}
	if s := e.SSE; s != nil && (s.Event != "" || s.HasID || s.Retry != "" || s.Comment != "") {
		parts = append(parts, sse(s))
	}
	if e.Raw != nil {
		parts = append(parts, printable(e.Raw))
	}
	if e.Exit != nil {
		parts = append(parts, e.Exit.String())
	}
	if e.Kind == wire.KindClose && e.Note == "" {
		parts = append(parts, "closed "+e.Stream)
	}
	if e.Note != "" {
		parts = append(parts, e.Note)
	}
	return strings.Join(parts, "\n")
}

func head(h *wire.Head) string {
	var b strings.Builder
	if h.Method != "" {
		b.WriteString(h.Method + " " + h.URL)
	} else {
		fmt.Fprintf(&b, "%d %s", h.Status, http.StatusText(h.Status))
	}
	for _, name := range slices.Sorted(maps.Keys(h.Header)) {
		for _, v := range h.Header[name] {
			b.WriteString("\n" + name + ": " + v)
		}
	}
	return b.String()
}

func sse(s *wire.SSE) string {
	var fields []string
	if s.Event != "" {
		fields = append(fields, "event: "+s.Event)
	}
	if s.HasID {
		fields = append(fields, "id: "+s.ID)
	}
	if s.Retry != "" {
		fields = append(fields, "retry: "+s.Retry)
	}
	if s.Comment != "" {
		fields = append(fields, ": "+s.Comment)
	}
	return strings.Join(fields, "\n")
}

// printable returns bytes as UTF-8; those that are not are written as \xHH.
func printable(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02X`, raw[0])
		} else {
			b.WriteRune(r)
		}
		raw = raw[size:]
	}
	return b.String()
}

// shorten cuts out of a long text what is neither its beginning, its end nor what a
// finding's message names.
func shorten(s, message string) (string, bool) {
	if len(s) <= maxText {
		return s, false
	}
	var b strings.Builder
	kept := 0
	keep := func(from, to int) {
		from, to = max(forward(s, from), kept), forward(s, min(to, len(s)))
		if from >= to {
			return
		}
		if from > kept {
			fmt.Fprintf(&b, " … [%d bytes left out] … ", from-kept)
		}
		b.WriteString(s[from:to])
		kept = to
	}
	front, back := maxText*3/4, len(s)-maxText/4
	if from, to, ok := Named(s, message); ok && to > front && from < back {
		front = maxText / 2
		keep(0, front)
		keep(from-maxText/16, min(to, from+maxText/8)+maxText/16)
	} else {
		keep(0, front)
	}
	keep(back, len(s))
	return b.String(), true
}

// forward returns the start of the first character of s that begins at or after a byte.
func forward(s string, at int) int {
	at = max(at, 0)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}
