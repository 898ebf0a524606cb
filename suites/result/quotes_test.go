package result_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A report quotes an event in full or by parts that are in it, in their order.
func TestQuotes(t *testing.T) {
	short := &wire.Event{Conn: "c1", Seq: 3, Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}
	long := *short
	long.Raw = []byte("begin " + strings.Repeat("long ", 1000) + "end")
	excerpt := func(text string) result.Event {
		e := result.NewEvent(short, "")
		e.Text, e.Truncated = text, true
		return e
	}
	change := func(f func(e *result.Event)) result.Event {
		e := result.NewEvent(short, "")
		f(&e)
		return e
	}
	for name, tt := range map[string]struct {
		quoted result.Event
		of     *wire.Event
		want   bool
	}{
		"in full":            {result.NewEvent(short, ""), short, true},
		"shortened":          {result.NewEvent(&long, ""), &long, true},
		"a part":             {excerpt(`[17 bytes left out] … "id":1 … [13 bytes left out]`), short, true},
		"two parts":          {excerpt(`[1 bytes left out] … jsonrpc … [9 bytes left out] … "result":{}}`), short, true},
		"wrong order":        {excerpt(`[1 bytes left out] … result … [9 bytes left out] … jsonrpc … [1 bytes left out]`), short, false},
		"not in it":          {excerpt(`[17 bytes left out] … "id":2 … [13 bytes left out]`), short, false},
		"not the beginning":  {excerpt(`"id":1 … [13 bytes left out]`), short, false},
		"not the end":        {excerpt(`[17 bytes left out] … "id":1`), short, false},
		"nothing":            {excerpt(`[35 bytes left out]`), short, false},
		"cut without a mark": {excerpt(`{"jsonrpc":"2.0"`), short, false},
		"other text":         {change(func(e *result.Event) { e.Text += " " }), short, false},
		"other connection":   {change(func(e *result.Event) { e.Connection = "c2" }), short, false},
		"other sender":       {change(func(e *result.Event) { e.From = "client" }), short, false},
		"other time":         {change(func(e *result.Event) { e.Seconds = 1 }), short, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.quoted.Quotes(tt.of); got != tt.want {
				t.Errorf("Quotes is %v, want %v, for %+v", got, tt.want, tt.quoted)
			}
		})
	}
}
