package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func appendAll(t *testing.T, l *wire.Log, events ...wire.Event) {
	t.Helper()
	for _, e := range events {
		if _, err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// everything is a trace with an event of each kind.
func everything(t *testing.T) *wire.Trace {
	trace := wire.NewTrace(wire.DefaultLimits)
	stdio := trace.Connect("stdio", "shared session <1>")
	exit, killed := wire.Exit{Code: 3}, wire.Exit{Code: -1, Signal: "killed"}
	appendAll(t, stdio,
		wire.Event{Kind: wire.KindStart, From: wire.Server, Note: "./server"},
		wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: "stdin", Raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), Deliberate: []string{"a.b", "*"}},
		wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(`{"jsonrpc":"2.0","id":1,"result":{ "<": "é\u2028` + "\u2028" + `"}}`)},
		wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte("binary \x00\xff\xfe"), Dropped: 7, Note: "cut"},
		wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte{}},
		wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(` [{"jsonrpc":"2.0","method":"<m>"},{"id":2}]`)},
		wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: "stderr", Raw: []byte("warning\r")},
		wire.Event{Kind: wire.KindTimeout, From: wire.Server, Note: "answer to ping"},
		wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: "stdin"},
		wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: "SIGTERM"},
		wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &exit},
		wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &killed},
	)
	http1 := trace.Connect("http", "")
	appendAll(t, http1,
		wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: "post:1", HTTP: &wire.Head{Method: "POST", URL: "http://h/mcp", Header: http.Header{"Accept": {"a", "b"}}}},
		wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: "post:1", HTTP: &wire.Head{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}}},
		wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: "post:1", SSE: &wire.SSE{Comment: "hi", Retry: "100", Event: "e", HasID: true}},
		wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "post:1", Raw: []byte(`{}`), SSE: &wire.SSE{ID: "7", HasID: true}},
		wire.Event{Kind: wire.KindBody, From: wire.Server, Stream: "post:1", Raw: []byte("<html>\xff")},
		wire.Event{Kind: wire.KindStreamEnd, From: wire.Server, Stream: "post:1", Note: "reset"},
	)
	// Written one after the other, whatever the order in which they happened.
	appendAll(t, stdio, wire.Event{Kind: wire.KindNote, Note: "late"})
	return trace
}

func TestTraceRoundTrip(t *testing.T) {
	trace := everything(t)
	var first bytes.Buffer
	n, err := trace.WriteTo(&first)
	if err != nil || n != int64(first.Len()) {
		t.Fatalf("WriteTo = %d, %v; wrote %d", n, err, first.Len())
	}
	if lines, want := strings.Count(first.String(), "\n"), 19; lines != want {
		t.Errorf("%d lines, want %d: one for each event but the members of the batch", lines, want)
	}
	back, err := wire.ReadTrace(bytes.NewReader(first.Bytes()), wire.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Logs()) != len(trace.Logs()) {
		t.Fatalf("%d connections became %d", len(trace.Logs()), len(back.Logs()))
	}
	exporter := cmp.Exporter(func(reflect.Type) bool { return true })
	for i, l := range trace.Logs() {
		b := back.Logs()[i]
		if l.ID != b.ID || l.Transport != b.Transport || l.Label != b.Label {
			t.Errorf("connection %s %s %q became %s %s %q", l.ID, l.Transport, l.Label, b.ID, b.Transport, b.Label)
		}
		want := l.Events()
		for _, e := range want {
			if e.Member {
				e.At = want[e.Seq-1].At // a file holds the time of the batch only
			}
		}
		if diff := cmp.Diff(want, b.Events(), exporter); diff != "" {
			t.Errorf("events of %s (-written +read):\n%s", l.ID, diff)
		}
		// A log that was read is complete.
		if _, err := b.Await(t.Context(), b.Len(), func(*wire.Event) bool { return true }); !errors.Is(err, wire.ErrEnded) {
			t.Errorf("awaiting an event of %s: %v", l.ID, err)
		}
	}
	var second bytes.Buffer
	if _, err := back.WriteTo(&second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Errorf("written again (-first +second):\n%s", diff)
	}
}

func TestWriteToFails(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(errors.New("disk full"))
	if n, err := everything(t).WriteTo(w); err == nil || !strings.Contains(err.Error(), "disk full") || n != 0 {
		t.Errorf("WriteTo = %d, %v", n, err)
	}
}

func TestReadTraceRefuses(t *testing.T) {
	const start = `{"conn":"c1","seq":0,"t":0,"kind":"process-start","from":"server","transport":"stdio"}` + "\n"
	limits := wire.Limits{Message: 100, Total: 5500, Events: 10}
	message := func(raw string) string {
		return `{"conn":"c1","kind":"message","from":"server","raw":"` + raw + `"}` + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", start + "\nhello\n", "line 3: invalid character 'h'"},
		{"half a line", start + `{"conn":"c1","ki`, "line 2: unexpected end"},
		{"two values in a line", start + start[:len(start)-1] + start, "line 2: invalid character '{'"},
		{"other JSON", `{"jsonrpc":"2.0"}`, "line 1: the line is not an event"},
		{"wrong type", `{"conn":7}`, "line 1: json: cannot unmarshal number"},
		{"array", `[]`, "line 1: json: cannot unmarshal array"},
		{"no connection", `{"kind":"note"}`, "line 1: the event belongs to no connection"},
		{"no transport", `{"conn":"c9","kind":"note"}`, `line 1: connection "c9" begins without its transport`},
		{"bad base64", start + `{"conn":"c1","kind":"message","from":"server","base64":"%"}`, "line 2: member base64"},
		{"unknown party", start + `{"conn":"c1","kind":"message","from":"evil"}`, `line 2: member from is "evil"`},
		{"nobody's message", start + `{"conn":"c1","kind":"message","raw":"{}"}`, "line 2: the message has no sender"},
		{"exit without status", start + `{"conn":"c1","kind":"process-exit"}`, "line 2: the process exit lacks"},
		{"head without status", start + `{"conn":"c1","kind":"http-response"}`, "line 2: the head of an HTTP message"},
		{"SSE without fields", start + `{"conn":"c1","kind":"sse"}`, "line 2: the SSE event lacks"},
		{"time before the run", start + `{"conn":"c1","kind":"note","t":-1}`, "line 2: member t is -1"},
		{"time after all", start + `{"conn":"c1","kind":"note","t":1e300}`, "line 2: member t is 1e+300"},
		{"more bytes than the limit", start + strings.Repeat(message(strings.Repeat("x", 99)), 12), "line 10: " + wire.ErrFlood.Error()},
		{"more events than the limit", start + strings.Repeat(message(""), 12), "line 11: " + wire.ErrFlood.Error()},
		{"endless line", start + `{"conn":"` + strings.Repeat("x", 2<<20), "line 2: it is longer than"},
		{"endless blank", strings.Repeat(" ", 2<<20), "line 1: it is longer than"},
	} {
		_, err := wire.ReadTrace(strings.NewReader(c.text), limits)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := wire.ReadTrace(io.MultiReader(strings.NewReader(start), broken{}), limits); err == nil ||
		!strings.Contains(err.Error(), "line 2: broken") {
		t.Errorf("a broken file: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// An endless line must not be read to its end.
func TestReadTraceStopsEarly(t *testing.T) {
	endless := &counting{r: zeros{}}
	_, err := wire.ReadTrace(endless, wire.Limits{Message: 1 << 10, Total: 1 << 20, Events: 10})
	if !errors.Is(err, wire.ErrFlood) {
		t.Errorf("error %v", err)
	}
	if endless.n > 4<<20 {
		t.Errorf("%d bytes were read", endless.n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func TestReadTraceOfNothing(t *testing.T) {
	trace, err := wire.ReadTrace(strings.NewReader("\n \n"), wire.DefaultLimits)
	if err != nil || len(trace.Logs()) != 0 {
		t.Errorf("ReadTrace = %v, %v", trace, err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(`{"conn":"c1","seq":0,"t":0.5,"kind":"message","from":"server","transport":"stdio","base64":"/w=="}`))
	f.Add([]byte(`{"conn":"c1","seq":0,"t":0,"kind":"process-exit","transport":"http","exit":{"code":1}}` + "\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		trace, err := wire.ReadTrace(bytes.NewReader(text), wire.Limits{Message: 1 << 10, Total: 1 << 12, Events: 100})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "read trace: line ") {
				t.Errorf("the error names no line: %v", err)
			}
			return
		}
		// An accepted trace is accepted again once it is written, with the same meaning.
		var first, second bytes.Buffer
		_, _ = trace.WriteTo(&first)
		again, err := wire.ReadTrace(bytes.NewReader(first.Bytes()), wire.DefaultLimits)
		if err != nil {
			t.Fatalf("%q, written anew as %q: %v", text, &first, err)
		}
		_, _ = again.WriteTo(&second)
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%q\nwritten as %q\nand then  %q", text, &first, &second)
		}
	})
}

func TestLogLimits(t *testing.T) {
	line := func(n int) wire.Event {
		return wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: bytes.Repeat([]byte("x"), n)}
	}
	for _, c := range []struct {
		name   string
		limits wire.Limits
		event  wire.Event
		want   int // events that fit
	}{
		{"bytes", wire.Limits{Total: 4300, Events: 1000}, line(100), 7}, // what stands in a line counts as a value,
		{"events", wire.Limits{Total: 1 << 20, Events: 5}, line(0), 5},
		{"values", wire.Limits{Total: 100_000, Events: 1000}, wire.Event{
			Kind: wire.KindMessage, From: wire.Server, Raw: []byte("[" + strings.Repeat("0,", 99) + "0]"),
		}, 2}, // and not the hundred that its 200 bytes would allow
		{"header", wire.Limits{Total: 1700, Events: 1000}, wire.Event{
			Kind: wire.KindHTTPResponse, HTTP: &wire.Head{Header: http.Header{"X": {strings.Repeat("v", 499)}}},
		}, 2}, // the second one is the same, and only its text counts
		{"fields", wire.Limits{Total: 1600, Events: 1000}, wire.Event{
			Kind: wire.KindSSE, SSE: &wire.SSE{Comment: strings.Repeat("v", 500)},
		}, 2},
	} {
		l := wire.NewTrace(c.limits).Connect("stdio", "")
		kept := 0
		var err error
		for err == nil && kept < 2000 {
			if _, err = l.Append(c.event); err == nil {
				kept++
			}
		}
		if !errors.Is(err, wire.ErrFlood) || kept != c.want {
			t.Errorf("%s: %d events were kept, want %d; then %v", c.name, kept, c.want, err)
		}
		before := l.Len()
		// Nothing more of either side, however small.
		if _, err := l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Raw: []byte("7")}); !errors.Is(err, wire.ErrFlood) {
			t.Errorf("%s: a later message: %v", c.name, err)
		}
		// How it ended is kept all the same.
		appendAll(t, l, wire.Event{Kind: wire.KindNote, Note: "stopped"}, wire.Event{Kind: wire.KindExit, Exit: &wire.Exit{}})
		if l.Len() != before+2 {
			t.Errorf("%s: %d events, want %d", c.name, l.Len(), before+2)
		}
	}
}

// TestStreamsEndBehindTheLimits tests that the end of a stream behind the limits does not make it look empty.
func TestStreamsEndBehindTheLimits(t *testing.T) {
	l := wire.NewTrace(wire.Limits{Total: 1 << 20, Events: 1}).Connect("http", "")
	note := func(kind wire.EventKind) string {
		e, err := l.Append(wire.Event{Kind: kind, From: wire.Server, Stream: "post:1"})
		if err != nil {
			t.Fatal(err)
		}
		return e.Note
	}
	if got := note(wire.KindStreamEnd); got != "" {
		t.Errorf("the first end says %q", got)
	}
	if _, err := l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "post:2", Raw: []byte("{}")}); !errors.Is(err, wire.ErrFlood) {
		t.Error(err)
	}
	if got := note(wire.KindStreamEnd); got == "" {
		t.Error("the end of a stream behind the limits says nothing")
	}
}

func TestRunLimit(t *testing.T) {
	trace := wire.NewTrace(wire.Limits{Total: 1 << 20, Events: 1000, Run: 2*4096 + 3600}) // two connections, and two of the events
	event := wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: bytes.Repeat([]byte("x"), 1000)}
	appendAll(t, trace.Connect("stdio", "first"), event)
	second := trace.Connect("stdio", "second")
	appendAll(t, second, event)
	if _, err := second.Append(event); !errors.Is(err, wire.ErrFlood) {
		t.Errorf("the third event of the run: %v", err)
	}
}

// TestUnaskedLimit tests that messages which answer no request get a third of the room, and a flood no more.
func TestUnaskedLimit(t *testing.T) {
	const run = 100_000
	kept := func(events ...wire.Event) (n int) {
		l := wire.NewTrace(wire.Limits{Total: 1 << 20, Events: 1000, Run: run}).Connect("stdio", "")
		for {
			for _, e := range events {
				if _, err := l.Append(e); err != nil {
					return n
				}
				n++
			}
		}
	}
	message := func(from wire.Party, raw string) wire.Event {
		return wire.Event{Kind: wire.KindMessage, From: from, Raw: []byte(raw)}
	}
	ask, answer := message(wire.Client, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), message(wire.Server, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	told, output := message(wire.Server, `{"jsonrpc":"2.0","method":"notifications/x"}`), wire.Event{Kind: wire.KindStderr, From: wire.Server, Raw: []byte("text")}
	notes, answers, outputs, both := kept(told), kept(answer), kept(output), kept(ask, answer, answer)
	if notes > 60 || answers > 60 || outputs > 150 || notes < 10 || outputs < 50 {
		t.Errorf("%d notifications, %d answers to nobody and %d lines of stderr were kept", notes, answers, outputs)
	}
	if both < notes+notes/8 {
		t.Errorf("of requests with two answers each %d were kept, of notifications %d", both, notes)
	}
}

func TestLogAwait(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	l := trace.Connect("stdio", "")
	note := func(text string) wire.Event { return wire.Event{Kind: wire.KindNote, Note: text} }
	is := func(text string) func(*wire.Event) bool {
		return func(e *wire.Event) bool { return e.Note == text }
	}
	appendAll(t, l, note("a"), note("b"), note("a"))
	if e, err := l.Await(t.Context(), 1, is("a")); err != nil || e.Seq != 2 {
		t.Errorf("Await = %v, %v; want the third event", e, err)
	}
	found := make(chan error)
	go func() {
		e, err := l.Await(t.Context(), 0, is("later"))
		if err == nil && (e.Note != "later" || e.Conn != l.ID || e.Seq != 4) {
			err = fmt.Errorf("found %+v", e)
		}
		found <- err
	}()
	appendAll(t, l, note("other"), note("later"))
	if err := <-found; err != nil {
		t.Error(err)
	}
	cause := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := l.Await(ctx, 0, is("never")); !errors.Is(err, cause) {
		t.Errorf("a cancelled wait: %v", err)
	}
	go l.End()
	if _, err := l.Await(t.Context(), 0, is("never")); !errors.Is(err, wire.ErrEnded) {
		t.Errorf("the wait for an event after the end: %v", err)
	}
	l.End()
	if e, err := l.Await(t.Context(), 0, is("b")); err != nil || e.Seq != 1 {
		t.Errorf("Await after the end = %v, %v", e, err)
	}
}

func TestLogIsConcurrent(t *testing.T) {
	const writers, each = 8, 100
	trace := wire.NewTrace(wire.DefaultLimits)
	l := trace.Connect("stdio", "")
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				_, _ = l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: []byte(`[{"id":1},{}]`)})
			}
		})
		all.Go(func() {
			_, _ = l.Await(t.Context(), 0, func(e *wire.Event) bool { return e.Seq == 3*writers*each-1 })
			_ = l.Events()
		})
	}
	all.Wait()
	last := time.Duration(-1)
	for i, e := range l.Events() {
		if e.Seq != i || e.At < last {
			t.Fatalf("event %d has the position %d and the time %v after %v", i, e.Seq, e.At, last)
		}
		// The members follow their batch at once.
		if e.Member != (i%3 != 0) {
			t.Fatalf("event %d: member %t", i, e.Member)
		}
		last = e.At
	}
	if l.Len() != 3*writers*each {
		t.Errorf("%d events", l.Len())
	}
}

func TestConnections(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	a, b := trace.Connect("stdio", "first"), trace.Connect("http", "second")
	if a.ID == b.ID || a.Limits() != wire.DefaultLimits {
		t.Errorf("connections %+v and %+v", a, b)
	}
	if logs := trace.Logs(); len(logs) != 2 || logs[0] != a || logs[1] != b {
		t.Errorf("Logs = %v", logs)
	}
	if wire.Client.Peer() != wire.Server || wire.Server.Peer() != wire.Client {
		t.Error("a party is its own peer")
	}
	for exit, want := range map[wire.Exit]string{
		{}: "exited with status 0", {Code: 3}: "exited with status 3", {Code: -1, Signal: "killed"}: "ended by signal killed",
	} {
		if got := exit.String(); got != want {
			t.Errorf("%+v is described as %q", exit, got)
		}
	}
}

// TestTraceSharesWhatIsSaidAgain tests that the trace holds the same text once, however often it was sent. Each
// message keeps its other parts.
func TestTraceSharesWhatIsSaidAgain(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	text := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	var results []map[string]any
	var heads []http.Header
	for _, id := range []string{"1", `"two"`} {
		l := trace.Connect("http", "test")
		e, err := l.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":` + text + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		if e.Msg.ID.String() != id || wire.At(e.Msg.Value(), "result", "text") != wire.At(e.Msg.Result, "text") {
			t.Errorf("the message %s was read as %v", id, e.Msg.Value())
		}
		results = append(results, e.Msg.Result.(map[string]any))
	}
	results[0]["mark"] = true // nobody else may do this
	if results[1]["mark"] != true {
		t.Error("two equal results are held twice")
	}
	l := trace.Connect("http", "test")
	for _, name := range []string{"X-One", "X-One", "X-Two"} {
		e, err := l.Append(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, HTTP: &wire.Head{Status: 200, Header: http.Header{name: {"1"}}}})
		if err != nil || e.HTTP.Header.Get(name) != "1" {
			t.Fatal(e, err)
		}
		heads = append(heads, e.HTTP.Header)
	}
	heads[0]["Mark"] = nil
	if len(heads[1]) != 2 || len(heads[2]) != 1 {
		t.Error("equal headers are held twice, or different ones once")
	}
}

// TestDecodedIsBounded tests that the decoded size of a message counts, not its size on the wire.
func TestDecodedIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: a large message")
	}
	m := wire.Parse([]byte(`{"jsonrpc":"2.0","method":"m","params":{"a":[` + strings.Repeat(`{"a":0},`, 500_000) + `0]}}`))
	if !m.Has(wire.TooLarge) || m.Value() != nil {
		t.Errorf("half a million objects are read: %v", m.Issues)
	}
}
