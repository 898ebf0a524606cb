// Package spell writes JSON in one of the ways in which the same value can be written.
package spell

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

type (
	object = map[string]any
	list   = []any
)

// Speller writes JSON in one of the ways in which the same value can be written.
type Speller struct {
	Order  func(a, b string) int   // of members; nil sorts them
	Gap    string                  // between any two tokens
	Text   func(s string) string   // a string with its quotes; nil is the plain form
	Number func(n json.Number) any // another spelling of a number; nil leaves it
}

// Spell returns the JSON text of a value.
func (s Speller) Spell(v any) []byte {
	var b strings.Builder
	s.write(&b, v)
	return []byte(b.String())
}

func (s Speller) write(b *strings.Builder, v any) {
	put := func(token string) { b.WriteString(s.Gap + token) }
	switch v := v.(type) {
	case object:
		put("{")
		names := slices.Sorted(maps.Keys(v))
		if s.Order != nil {
			slices.SortStableFunc(names, s.Order)
		}
		for i, name := range names {
			if i > 0 {
				put(",")
			}
			put(s.quote(name))
			put(":")
			s.write(b, v[name])
		}
		put("}")
	case list:
		put("[")
		for i, item := range v {
			if i > 0 {
				put(",")
			}
			s.write(b, item)
		}
		put("]")
	case string:
		put(s.quote(v))
	case json.Number:
		if s.Number != nil {
			put(fmt.Sprint(s.Number(v)))
		} else {
			put(string(v))
		}
	default:
		put(Plain(v))
	}
}

func (s Speller) quote(text string) string {
	if s.Text == nil {
		return Plain(text)
	}
	return s.Text(text)
}

// Reversed is the order of members that begins with the last.
func Reversed(a, b string) int { return strings.Compare(b, a) }

// Solidus is a string with \/ for /.
func Solidus(text string) string { return strings.ReplaceAll(Plain(text), "/", `\/`) }

// Plain returns the JSON text of a value as the reference server writes it.
func Plain(v any) string {
	text, err := wire.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// Escaping writes those characters of a string that fit as \u escapes.
func Escaping(format string, fits func(r rune) bool) func(string) string {
	return func(text string) string {
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range text {
			switch {
			case r > 0xFFFF && fits(r):
				r -= 0x10000
				fmt.Fprintf(&b, format+format, 0xD800+r>>10, 0xDC00+r&0x3FF)
			case r < ' ' || r == '"' || r == '\\' || fits(r):
				fmt.Fprintf(&b, format, r)
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
		return b.String()
	}
}
