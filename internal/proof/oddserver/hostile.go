package oddserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// HostileText is a message that no honest peer sends, for either role and over any transport.
type HostileText struct {
	Name string
	Text func() string // in one line; %ID% stands for the id of a request
}

const (
	megabyte   = 1 << 20
	idMark     = "%ID%"
	noteBegins = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":`
)

// noted is a log message with JSON text as its data.
func noted(data string) func() string { return func() string { return noteBegins + data + "}}" } }

// many repeats a text when it is needed.
func many(before, text string, n int, after string) func() string {
	return func() string { return before + strings.Repeat(text, n) + after }
}

// Mischief is text that wants out of its place in a terminal, a page, XML, Markdown, the log of
// GitHub Actions or a spreadsheet.
const Mischief = "\\u001b[2J\\u001b]0;owned\\u0007\\u009b31m\\r\\n::error::owned ##[error]owned\\n# " +
	"heading\\n```\\n| a | b |\\n]]> --> </script><script>alert(1)</script>" +
	"<img src=x onerror=alert(1)> [x](javascript:alert(1)) =cmd|' /C calc'!A0 " +
	"\\u202Egnp.exe\\u2066\\u2028\\uFFFE\\u0000\\u0008 \\u007f \\udb40\\udc41"

// HostileTexts returns the messages of the corpus.
func HostileTexts() []HostileText { return slices.Concat(hostileJSON(), hostileMessages()) }

// hostileJSON are texts that are hard to read as JSON.
func hostileJSON() []HostileText {
	return []HostileText{
		{"nothing", noted(`null`)},
		{"not JSON", many("", "Welcome! ", 3, "")},
		{"cut", func() string { return noteBegins + `"a` }},
		{"nested arrays", many(noteBegins, "[", 100_000, strings.Repeat("]", 100_000)+"}}")},
		{"nested objects", many(noteBegins, `{"a":`, 100_000, "1"+strings.Repeat("}", 100_000)+"}}")},
		{"nested without end", many(noteBegins, "[", 500_000, "")},
		{"many small values", many(noteBegins+"[", "0,", 400_000, "0]}}")},
		{"many small objects", many(noteBegins+"[", `{"a":{}},`, 90_000, "0]}}")},
		{"many members", func() string {
			var b strings.Builder
			for i := range 60_000 {
				fmt.Fprintf(&b, `"m%d":0,`, i)
			}
			return noteBegins + "{" + b.String() + `"a":0}}}`
		}},
		{"long number", many(noteBegins, "9", 900_000, "}}")},
		{"long fraction", many(noteBegins+"0.", "3", 900_000, "}}")},
		{"far exponents", noted(`[1e999999999,-1e999999999,1e-999999999,1E+99999999999999999999,1e400,-0,-0.0,` +
			`9223372036854775808,-9223372036854775809,18446744073709551616,9007199254740993]`)},
		{"long text", many(noteBegins+`"`, "x", 900_000, `"}}`)},
		{"escapes alone", many(noteBegins+`"`, `\u0000`, 150_000, `"}}`)},
		{"lone surrogates", many(noteBegins+`"`, `\ud800`, 100_000, `"}}`)},
		{"not UTF-8", noted("\"\xff\xfe \xc3( \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \xe2\x82\"")},
		{"byte order mark", func() string { return "\ufeff" + noteBegins + `"marked"}}` }},
		{"member twice", func() string {
			return `{"jsonrpc":"2.0","method":"ping","method":"notifications/message","id":1,"id":2}`
		}},
		{"member many times", many(`{"jsonrpc":"2.0","method":"notifications/message","params":{`, `"a":1,`, 100_000,
			`"a":2}}`)},
	}
}

// hostileMessages are texts that hold messages, which are hard to bear.
func hostileMessages() []HostileText {
	return []HostileText{
		{"mischief", noted(`"` + Mischief + `"`)},
		{"mischievous method",
			func() string { return `{"jsonrpc":"2.0","id":"` + Mischief + `","method":"` + Mischief + `"}` }},
		{"mischievous error", func() string {
			return `{"jsonrpc":"2.0","id":` + idMark + `,"error":{"code":-32603,"message":"` + Mischief + `","data":"` +
				Mischief + `"}}`
		}},
		{"bytes for a terminal", noted("\"\x1b[2J\x9b31m\x07\"")},
		{"id of a megabyte", many(`{"jsonrpc":"2.0","id":"`, "i", 900_000, `","method":"ping"}`)},
		{"id beyond every type", func() string { return `{"jsonrpc":"2.0","id":1e400,"method":"ping"}` }},
		{"id that is an object", func() string { return `{"jsonrpc":"2.0","id":{"a":[]},"method":"ping"}` }},
		{"method of a megabyte", many(`{"jsonrpc":"2.0","id":7,"method":"`, "m", 900_000, `"}`)},
		{"large batch", many("[", `{"jsonrpc":"2.0","id":1,"method":"ping"},`, 15_000,
			`{"jsonrpc":"2.0","id":2,"method":"ping"}]`)},
		{"batch in batches", many("", "[", 400, strings.Repeat("]", 400))},
		{"answer to nobody", many(`{"jsonrpc":"2.0","id":"nobody","result":{"a":"`, "x", 300_000, `"}}`)},
		{"wrong result", func() string { return `{"jsonrpc":"2.0","id":` + idMark + `,"result":[]}` }},
		{"both outcomes", func() string {
			return `{"jsonrpc":"2.0","id":` + idMark + `,"result":{},"error":{"code":1e400,"message":7}}`
		}},
		{"list of everything", func() string {
			return `{"jsonrpc":"2.0","id":` + idMark +
				`,"result":{"tools":[42,null,"text",[],{},{"name":7,"inputSchema":[]}],` +
				`"resources":7,"prompts":{},"nextCursor":[]}}`
		}},
		{"progress of nobody", many(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"`,
			"p", 300_000, `","progress":1e400}}`)},
		{"names of prototypes", noted(`{"__proto__":{"a":1},"constructor":{"prototype":{}},"":"","toString":null}`)},
	}
}

// With returns the text with the id of a request, as JSON.
func (h HostileText) With(id string) string { return strings.ReplaceAll(h.Text(), idMark, id) }

// HostilePeer is a server with which no honest run is made. The run has to withstand it: it must end in time, bound
// its memory, and not pass if a limit was reached.
type HostilePeer struct {
	Name       string
	Transports []string // none means all
	// Legal says that the specification allows all of it.
	Legal bool
	Apply func(o *server.Options)
}

// Hostile returns the hostile servers, with one for each text of the corpus.
func Hostile() []HostilePeer {
	peers := slices.Clone(hostilePeers)
	for _, text := range HostileTexts() {
		peers = append(peers, HostilePeer{Name: "text: " + text.Name, Apply: saysTo(text)})
	}
	return peers
}

const hostileNote = "notifications/com.example/hostile"

// saysTo says a text unasked and then in the place of each second answer to a list.
func saysTo(text HostileText) apply {
	return func(o *server.Options) {
		o.Behaviour.Breaks = []string{"*"}
		o.Behaviour.Initialized = func(_ context.Context, s *server.Session) { s.Notify(hostileNote, nil) }
		var answers atomic.Int32
		o.Behaviour.Frame = func(out *server.Outgoing, frame []byte) []byte {
			id := `"unasked"`
			switch {
			case out.Method == hostileNote:
			case out.Answers != nil && strings.HasSuffix(out.Answers.Method, "/list") && answers.Add(1)%2 == 0:
				id = out.Answers.ID.String()
			default:
				return frame
			}
			return reframed(frame, text.With(id))
		}
	}
}

// reframed puts a text in the place of the message in a line, an event or a body.
func reframed(frame []byte, text string) []byte {
	switch {
	case !bytes.HasPrefix(frame, []byte{'{'}):
		return []byte("event: message\ndata: " + text + "\n\n")
	case bytes.HasSuffix(frame, []byte{'\n'}):
		return []byte(text + "\n")
	}
	return []byte(text)
}

// most messages that a flood brings in all sessions together: more than any limit of a run lets by.
const mostOfFlood = 60_000

// flooding says the same after each handshake, until the session ends.
func flooding(say func(s *server.Session, n int)) apply {
	return func(o *server.Options) {
		var said atomic.Int64
		o.Behaviour.Initialized = func(ctx context.Context, s *server.Session) {
			for n := 0; ctx.Err() == nil && said.Add(1) < mostOfFlood; n++ {
				if n%100 == 99 {
					time.Sleep(time.Millisecond) //nolint:forbidigo // it is the fault: the others have their turn
				}
				say(s, n)
			}
		}
	}
}

// inHeads changes the head of each answer.
func inHeads(change func(r *server.Reply)) apply {
	return func(o *server.Options) { o.Behaviour.HTTP.Reply = change }
}

// eventful changes each event with a message.
func eventful(change func(e *server.Event)) apply {
	return func(o *server.Options) {
		o.HTTP.AlwaysSSE = true
		o.Behaviour.HTTP.Event = func(e *server.Event) []*server.Event {
			if e.Out != nil {
				change(e)
			}
			return []*server.Event{e}
		}
	}
}

// leaving changes how bytes leave the server, over whatever they leave.
func leaving(wrap func(io.Writer) io.Writer) apply {
	return func(o *server.Options) {
		o.Behaviour.Stdio.Stdout = wrap
		o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(&wrappedResponse{ResponseWriter: w, to: wrap(flushing{w})}, r)
			})
		}
	}
}

type wrappedResponse struct {
	http.ResponseWriter
	to io.Writer
}

func (w *wrappedResponse) Write(p []byte) (int, error) { return w.to.Write(p) }

// Unwrap is for [http.ResponseController].
func (w *wrappedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// flushing sends what is written at once.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

// bytewise writes each byte on its own, with a wait before it.
type bytewise struct {
	to   io.Writer
	wait time.Duration
}

func (b bytewise) Write(p []byte) (int, error) {
	for i := range p {
		if b.wait > 0 {
			time.Sleep(b.wait) //nolint:forbidigo // it is the fault, in virtual time
		}
		if _, err := b.to.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

var overEither = []string{transport.NameHTTP, transport.NameSSE}

var hostilePeers = []HostilePeer{
	{Name: "every byte on its own", Legal: true, Transports: append([]string{transport.NameStdio}, overEither...),
		Apply: leaving(func(w io.Writer) io.Writer { return bytewise{to: w} })},
	{Name: "one byte a second", Transports: append([]string{transport.NameStdio}, overEither...),
		Apply: leaving(func(w io.Writer) io.Writer { return bytewise{w, time.Second} })},
	{Name: "flood of notifications", Apply: flooding(func(s *server.Session, _ int) {
		s.Notify("notifications/message", map[string]any{"level": "info", "data": "more"})
	})},
	{Name: "flood of long notifications", Apply: flooding(func(s *server.Session, n int) {
		s.Notify("notifications/message", map[string]any{"level": "info",
			"data": fmt.Sprint(n, strings.Repeat("x", 100_000))})
	})},
	{Name: "flood of requests", Apply: flooding(func(s *server.Session, n int) {
		s.Send(&server.Outgoing{Kind: wire.Request, Method: "ping",
			Message: map[string]any{"jsonrpc": "2.0", "id": n, "method": "ping"}})
	})},
	{Name: "flood of answers", Apply: flooding(func(s *server.Session, n int) {
		s.Send(&server.Outgoing{Kind: wire.Result,
			Message: map[string]any{"jsonrpc": "2.0", "id": n, "result": map[string]any{}}})
	})},
	{Name: "flood of progress", Apply: flooding(func(s *server.Session, n int) {
		s.Notify("notifications/progress", map[string]any{"progressToken": n, "progress": n})
	})},
	{Name: "cursors without end", Apply: Wrapping("*",
		endlessPages(func(n int64) string { return fmt.Sprint("page ", n) }))},
	{Name: "cursors of a megabyte", Apply: Wrapping("*",
		endlessPages(func(n int64) string { return fmt.Sprint(n, strings.Repeat("c", megabyte*9/10)) }))},
	{Name: "cursor in a circle", Apply: Wrapping("*", endlessPages(func(int64) string { return "again" }))},
	{Name: "empty cursor", Apply: Wrapping("*", endlessPages(func(int64) string { return "" }))},
	{Name: "URIs that explode", Apply: All(
		Items("resources/list", "resources", Having("uri", "a:"+strings.Repeat("%2", 50_000)+"//[::1%25")),
		Items("resources/templates/list", "resourceTemplates",
			Having("uriTemplate", "x://"+strings.Repeat("{+a*,b:9999}{", 20_000))),
	)},
	{Name: "schemas that explode", Apply: Items("tools/list", "tools", Having("inputSchema", object{
		"type": "object", "$ref": "#/$defs/a", "$defs": object{
			"a": object{"allOf": list{object{"$ref": "#/$defs/b"}, object{"$ref": "#/$defs/b"}}},
			"b": object{"anyOf": list{object{"$ref": "#/$defs/a"}, true}},
		},
		"required": list{"s", "l", "n", "o"}, "properties": object{
			"s": object{"type": "string", "minLength": 1_000_000_000,
				"pattern": "^(((((a{100}){100}){100}){100})+)+$"},
			"l": object{"type": "array", "minItems": 1_000_000_000, "uniqueItems": true},
			"n": object{"type": "integer", "minimum": 1e300, "multipleOf": 1e-300},
			"o": object{"type": "object", "minProperties": 1_000_000_000,
				"patternProperties": object{"(": object{}}},
		},
	}))},
	{Name: "schemas elsewhere", Apply: Items("tools/list", "tools",
		Having("inputSchema", object{"type": "object", "$ref": "file:///etc/passwd",
			"allOf": list{object{"$ref": "http://169.254.169.254/"}}, "$schema": "http://127.0.0.1:1/"}))},
	{Name: "names of mischief", Apply: All(
		Items("tools/list", "tools", func(item object) {
			item["title"], item["description"] = unescaped(), unescaped()
		}),
		func(o *server.Options) {
			o.Info = map[string]any{"name": unescaped(), "title": unescaped(), "version": unescaped()}
			o.Instructions = unescaped()
		},
	)},

	{Name: "retry of years", Legal: true, Transports: overEither,
		Apply: eventful(func(e *server.Event) { e.Retry = "99999999999999" })},
	{Name: "retry beyond every type", Legal: true, Transports: overEither,
		Apply: eventful(func(e *server.Event) { e.Retry = strings.Repeat("9", 1000) })},
	{Name: "event ids of a megabyte", Transports: overEither, Apply: func(o *server.Options) {
		var n atomic.Int64
		eventful(func(e *server.Event) { e.ID = fmt.Sprint(n.Add(1), strings.Repeat("i", megabyte)) })(o)
	}},
	{Name: "event names of a megabyte", Transports: overEither,
		Apply: eventful(func(e *server.Event) {
			e.Raw = []byte("event: " + strings.Repeat("e", megabyte) + "\ndata: {}\n\n")
		})},
	{Name: "comments of a megabyte", Transports: overEither,
		Apply: eventful(func(e *server.Event) { e.Comment = strings.Repeat("c", megabyte) })},
	{Name: "fields without end", Transports: overEither,
		Apply: eventful(func(e *server.Event) { e.Raw = []byte(strings.Repeat("field: x\n", megabyte/4)) })},
	{Name: "many lines of data", Transports: overEither,
		Apply: eventful(func(e *server.Event) { e.Raw = []byte(strings.Repeat("data\n", megabyte/2) + "\n") })},
	{Name: "headers, ten thousand", Transports: overEither, Apply: inHeads(func(r *server.Reply) {
		for i := range 10_000 {
			r.Header.Set(fmt.Sprint("X-", i), strings.Repeat("h", 80))
		}
	})},
	{Name: "session id of half a megabyte", Transports: OverHTTP, Apply: inHeads(func(r *server.Reply) {
		r.Header.Set("Mcp-Session-Id", strings.Repeat("s", megabyte/2))
	})},
	{Name: "challenge of half a megabyte", Transports: overEither, Apply: inHeads(func(r *server.Reply) {
		r.Status = http.StatusUnauthorized
		r.Header.Set("WWW-Authenticate", "Bearer "+strings.Repeat(`a="\"\\",`, megabyte/16))
		r.Body = []byte{}
	})},
	{Name: "retry-after of years", Transports: overEither, Apply: inHeads(func(r *server.Reply) {
		r.Status, r.Body = http.StatusServiceUnavailable, []byte{}
		r.Header.Set("Retry-After", strings.Repeat("9", 30))
	})},
	{Name: "redirects that grow", Transports: overEither, Apply: func(o *server.Options) {
		o.Behaviour.HTTP.Middleware = func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, r.URL.Path+"/"+strings.Repeat("r", 1000), http.StatusTemporaryRedirect)
			})
		}
	}},
	{Name: "session ids that change", Transports: OverHTTP, Apply: func(o *server.Options) {
		var n atomic.Int64
		inHeads(func(r *server.Reply) { r.Header.Set("Mcp-Session-Id", fmt.Sprint("s", n.Add(1))) })(o)
	}},
	{Name: "404 to everything in a session", Transports: OverHTTP, Apply: func(o *server.Options) {
		o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Session-Id") != "" {
					http.NotFound(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}},
}

// endlessPages makes every list one without end.
func endlessPages(cursor func(n int64) string) server.Middleware {
	var pages atomic.Int64
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if !strings.HasSuffix(r.Method, "/list") {
			return next(ctx, r)
		}
		delete(r.Params, "cursor")
		result, rpcErr := next(ctx, r)
		if object, ok := result.(map[string]any); ok {
			object["nextCursor"] = cursor(pages.Add(1))
		}
		return result, rpcErr
	}
}

// unescaped is mischief as it is meant.
func unescaped() string {
	v, _, err := wire.Decode([]byte(`"` + Mischief + `"`))
	if err != nil {
		panic(err)
	}
	return v.(string)
}
