package judge

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// httpScript writes the log of a conversation over HTTP, one exchange after the
// other unless told otherwise.
type httpScript struct {
	t     testing.TB
	log   *wire.Log
	n     int
	later time.Duration // by how much what follows comes later
}

const (
	both      = "application/json, text/event-stream"
	askInit   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	gotInit   = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	ready     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	pingFive  = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
	pongFive  = `{"jsonrpc":"2.0","id":5,"result":{}}`
	callSix   = `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"six"}}}`
	doneSix   = `{"jsonrpc":"2.0","id":6,"result":{"content":[]}}`
	progSix   = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"six","progress":1}}`
	serverAsk = `{"jsonrpc":"2.0","id":"s1","method":"ping"}`
	hasNews   = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	clientSay = `{"jsonrpc":"2.0","id":"s1","result":{}}`
)

func newHTTPScript(t testing.TB, transport string) *httpScript {
	return &httpScript{t: t, log: wire.NewTrace(wire.DefaultLimits).Connect(transport, "t")}
}

func (s *httpScript) add(e wire.Event) *wire.Event {
	s.t.Helper()
	added, err := s.log.Append(e)
	if err != nil {
		s.t.Fatal(err)
	}
	added.At += s.later
	return added
}

// wait lets time pass.
func (s *httpScript) wait(d time.Duration) *httpScript {
	s.later += d
	return s
}

// headers are given as name, value, name, value …
func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// ask sends a request and returns its stream.
func (s *httpScript) ask(method, url, body string, h http.Header) string {
	s.n++
	stream := s.newest()
	if body != "" || method == http.MethodPost {
		s.add(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: stream, Raw: []byte(body)})
	}
	s.add(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: stream, HTTP: &wire.Head{Method: method, URL: url, Header: h}})
	return stream
}

func (s *httpScript) head(stream string, status int, h http.Header) {
	s.add(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: stream, HTTP: &wire.Head{Status: status, Header: h}})
}

func (s *httpScript) body(stream, raw string) {
	s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: stream, Raw: []byte(raw)})
}

func (s *httpScript) event(stream, id, raw string) {
	s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: stream, Raw: []byte(raw), SSE: &wire.SSE{ID: id, HasID: id != ""}})
}

// cursor is the field id by itself, and empty an event whose data is empty.
func (s *httpScript) cursor(stream, id string) {
	s.add(wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: stream, SSE: &wire.SSE{ID: id, HasID: true}})
}

func (s *httpScript) empty(stream, id string) {
	s.add(wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: stream, Raw: []byte{}, SSE: &wire.SSE{ID: id, HasID: true}})
}

func (s *httpScript) end(stream string) {
	s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server, Stream: stream})
}

// newest is the name of the stream that was opened last.
func (s *httpScript) newest() string { return fmt.Sprintf("x:%d", s.n) }

func (s *httpScript) endLast() { s.end(s.newest()) }

const mcp = "http://localhost/mcp"

// later are the headers of requests after the initialization.
func later(more ...string) http.Header {
	h := headers("Accept", both, headerSession, "abc", headerVersion, "2025-06-18")
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

func without(h http.Header, name string) http.Header {
	h.Del(name)
	return h
}

// handshake opens a session with the id abc.
func (s *httpScript) handshake() *httpScript { return s.handshakeWith(headers("Accept", both), "abc") }

func (s *httpScript) handshakeWith(h http.Header, id string) *httpScript {
	return s.initialize(h, id).post(ready, later(), 202, "", "")
}

// initialize is the first half of a handshake.
func (s *httpScript) initialize(h http.Header, id string) *httpScript {
	x := s.ask(http.MethodPost, mcp, askInit, h)
	s.head(x, 200, headers("Content-Type", "application/json", headerSession, id))
	s.body(x, gotInit)
	s.end(x)
	return s
}

// post is a whole exchange.
func (s *httpScript) post(raw string, h http.Header, status int, kind, answer string) *httpScript {
	x := s.ask(http.MethodPost, mcp, raw, h)
	head := http.Header{}
	if kind != "" {
		head.Set("Content-Type", kind)
	}
	s.head(x, status, head)
	if answer != "" {
		s.body(x, answer)
	}
	s.end(x)
	return s
}

func (s *httpScript) ping() *httpScript {
	return s.post(pingFive, later(), 200, "application/json; charset=utf-8", pongFive)
}

// stream posts a request that is answered by a stream, with its events given
// as id, data, id, data … and an end unless open is set.
func (s *httpScript) stream(raw string, open bool, events ...string) *httpScript {
	x := s.ask(http.MethodPost, mcp, raw, later())
	s.head(x, 200, headers("Content-Type", "text/event-stream"))
	for i := 0; i < len(events); i += 2 {
		s.event(x, events[i], events[i+1])
	}
	if !open {
		s.end(x)
	}
	return s
}

func (s *httpScript) get(h http.Header, status int, kind string) string {
	x := s.ask(http.MethodGet, mcp, "", h)
	s.head(x, status, headers("Content-Type", kind))
	if kind != "text/event-stream" {
		s.end(x)
	}
	return x
}

func TestHTTPRules(t *testing.T) {
	const good = "" // exercised and met
	type conversation struct {
		broken string // requirement, or good
		play   func(s *httpScript)
	}
	for _, tt := range []struct {
		id    string
		party wire.Party
		good  func(s *httpScript)
		bad   func(s *httpScript)
	}{
		{
			"http.server.endpoint-post", wire.Server, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.post(askInit, headers("Accept", both), 405, "", "") },
		},
		{"http.server.initialize-without-session", wire.Server, func(s *httpScript) { s.handshake() }, nil},
		{
			"http.server.notification-202", wire.Server, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().post(ready, later(), 200, "", "") },
		},
		{
			"http.server.response-202", wire.Server, func(s *httpScript) { s.handshake().post(clientSay, later(), 202, "", "") },
			func(s *httpScript) { s.handshake().post(clientSay, later(), 204, "", "") },
		},
		{
			"http.server.accepted-no-body", wire.Server, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().post(ready, later(), 202, "application/json", "null") },
		},
		{
			"http.server.unacceptable-error-status", wire.Server,
			func(s *httpScript) {
				s.handshake().post(ready, later(), 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`)
			},
			func(s *httpScript) {
				s.handshake().post(ready, later(), 200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`)
			},
		},
		{
			"http.server.unacceptable-error-status", wire.Server, func(s *httpScript) { s.handshake().post(ready, later(), 404, "", "") },
			func(s *httpScript) { s.handshake().post(ready, later(), 302, "", "") },
		},
		{
			"http.server.request-answer-type", wire.Server, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 200, "text/plain", "") },
		},
		{
			"http.server.request-answer-type", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 202, "", "") },
		},
		{
			"http.server.request-answer-type", wire.Server, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 200, "application/json", "data: {}") },
		},
		{
			"http.server.json-one-object", wire.Server, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 200, "application/json", "["+pongFive+"]") },
		},
		{
			"http.server.json-one-object", wire.Server, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 200, "application/json", "") },
		},
		{
			"http.server.json-one-object", wire.Server, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(pingFive, later(), 200, "application/json", ready) },
		},
		{
			"http.server.get-stream-or-405", wire.Server, func(s *httpScript) { s.handshake().get(later(), 405, "") },
			func(s *httpScript) { s.handshake().get(later(), 404, ""); s.ping() },
		},
		{
			"http.server.get-stream-or-405", wire.Server,
			func(s *httpScript) { // too many requests: a remark
				s.handshake().get(later(), 429, "")
				s.get(later(), 405, "")
			},
			func(s *httpScript) { s.handshake().get(later(), 403, "") },
		},
		{
			"http.server.get-stream-or-405", wire.Server,
			func(s *httpScript) { // too early: a remark
				s.initialize(headers("Accept", both), "abc").get(later(), 400, "")
				s.post(ready, later(), 202, "", "").get(later(), 405, "")
			},
			func(s *httpScript) { s.handshake().get(later(), 400, ""); s.ping() },
		},
		{
			"http.server.get-stream-or-405", wire.Server,
			func(s *httpScript) { // a second one is refused: a remark
				s.handshake().get(later(), 200, "text/event-stream")
				s.get(later(), 409, "")
			},
			func(s *httpScript) { s.handshake().get(later(), 200, "application/json") },
		},
		{
			"http.server.get-stream-or-405", wire.Server,
			func(s *httpScript) { // the session has ended when the stream is opened anew: a remark
				s.handshake().get(later(), 200, "text/event-stream")
				s.get(later(), 404, "")
			},
			func(s *httpScript) {
				s.handshake().get(later(), 200, "text/event-stream")
				s.get(later(), 200, "text/html")
			},
		},
		{
			"http.server.sse-event-data", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) { s.handshake().stream(pingFive, false, "", "hello", "", pongFive) },
		},
		{
			"http.server.sse-event-data", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) { s.handshake().stream(pingFive, false, "", "["+pongFive+"]") },
		},
		{
			"http.server.sse-response-sent", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) { s.handshake().stream(pingFive, false) },
		},
		{
			// The response comes on a stream that goes on with it.
			"http.server.sse-response-sent", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "1", progSix)
				x := s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.end(x)
			},
		},
		{
			"http.server.sse-no-early-close", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) { s.handshake().stream(callSix, false, "", progSix) },
		},
		{
			// The client resumes a stream that is open, and the server goes on in the new one.
			"http.server.sse-no-early-close", wire.Server,
			func(s *httpScript) {
				x := s.handshake().ask(http.MethodPost, mcp, callSix, later())
				s.head(x, 200, headers("Content-Type", "text/event-stream"))
				s.event(x, "1", progSix)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.end(x)
				s.stream(pingFive, false, "", pongFive)
			},
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "1", progSix)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
		},
		{
			"http.server.sse-close-after-response", wire.Server,
			func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) }, nil,
		},
		{
			"http.server.sse-own-response", wire.Server, func(s *httpScript) { s.handshake().stream(pingFive, false, "", pongFive) },
			func(s *httpScript) {
				s.handshake().ask(http.MethodPost, mcp, callSix, later())
				s.stream(pingFive, false, "", doneSix)
			},
		},
		{
			"http.server.sse-related-messages", wire.Server,
			func(s *httpScript) { s.handshake().stream(callSix, false, "", progSix, "", doneSix) },
			func(s *httpScript) {
				s.handshake().ask(http.MethodPost, mcp, callSix, later())
				s.stream(pingFive, false, "", progSix, "", pongFive)
			},
		},
		{
			"http.server.get-no-response", wire.Server,
			func(s *httpScript) { s.handshake().get(later(), 200, "text/event-stream"); s.ping() },
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.ask(http.MethodPost, mcp, pingFive, later())
				s.event(x, "", pongFive)
			},
		},
		{
			"http.server.get-unrelated", wire.Server,
			func(s *httpScript) {
				s.handshake().get(later(), 200, "text/event-stream")
				s.stream(callSix, false, "", progSix, "", doneSix)
			},
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.ask(http.MethodPost, mcp, callSix, later())
				s.event(x, "", progSix)
			},
		},
		{
			"http.server.no-broadcast", wire.Server,
			func(s *httpScript) {
				s.handshake().get(later(), 200, "text/event-stream")
				s.stream(callSix, false, "", serverAsk, "", doneSix)
			},
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "", serverAsk)
				s.stream(callSix, false, "", serverAsk, "", doneSix)
			},
		},
		{
			"http.server.no-broadcast", wire.Server,
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "", progSix, "", doneSix)
				// The token again, for another request.
				x := s.get(later(), 200, "text/event-stream")
				s.stream(strings.Replace(callSix, `"id":6`, `"id":8`, 1), false, "", progSix, "", strings.Replace(doneSix, `"id":6`, `"id":8`, 1))
				s.end(x)
			},
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				y := s.ask(http.MethodPost, mcp, callSix, later())
				s.head(y, 200, headers("Content-Type", "text/event-stream"))
				s.event(y, "", progSix)
				s.event(x, "", progSix)
				s.event(y, "", doneSix)
			},
		},
		{
			"http.server.event-id-unique", wire.Server,
			func(s *httpScript) { s.handshake().stream(callSix, false, "1", progSix, "2", doneSix) },
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "1", progSix, "2", doneSix)
				s.stream(pingFive, false, "1", pongFive)
			},
		},
		{
			"http.server.event-id-unique", wire.Server,
			func(s *httpScript) { // the id of a stream, again without data
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.cursor(x, "1")
				s.event(x, "1", hasNews)
				s.event(x, "2", hasNews)
				s.cursor(x, "2")
				s.end(x)
				y := s.get(later(headerLast, "2"), 200, "text/event-stream")
				s.cursor(y, "2")
				s.event(y, "3", hasNews)
			},
			func(s *httpScript) { // and that of another one
				s.handshake().stream(callSix, false, "1", progSix, "2", doneSix)
				s.cursor(s.get(later(), 200, "text/event-stream"), "2")
			},
		},
		{
			"http.server.event-id-unique", wire.Server,
			func(s *httpScript) { // events with data that is empty
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.empty(x, "0")
				s.event(x, "1", hasNews)
			},
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.empty(x, "0")
				s.empty(x, "0")
			},
		},
		{
			"http.server.event-id-unique", wire.Server,
			func(s *httpScript) { overtaken(s, doneSix) },
			func(s *httpScript) { overtaken(s, progSix) },
		},
		{
			"http.server.event-id-unique", wire.Server,
			func(s *httpScript) { astray(s, progSix, progSix) },
			func(s *httpScript) { astray(s, hasNews, progSix) },
		},
		{
			"http.server.replay-same-stream", wire.Server, func(s *httpScript) { replay(s, "2", doneSix) },
			func(s *httpScript) { astray(s, hasNews, hasNews) },
		},
		{
			"http.server.replay-same-stream", wire.Server, func(s *httpScript) { replay(s, "2", doneSix) },
			func(s *httpScript) { replay(s, "9", pongFive) },
		},
		{
			"http.server.replay-same-stream", wire.Server,
			func(s *httpScript) { // what came while the stream was broken off
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "1", serverAsk)
				s.end(x)
				s.event(s.get(later(), 200, "text/event-stream"), "2", hasNews)
				again := s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.event(again, "2", hasNews)
				s.event(again, "3", hasNews)
			},
			func(s *httpScript) { // and while it was not
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "1", serverAsk)
				s.event(s.get(later(), 200, "text/event-stream"), "2", hasNews)
				s.event(s.get(later(headerLast, "1"), 200, "text/event-stream"), "2", hasNews)
			},
		},
		{
			"http.server.event-id-cursor", wire.Server, func(s *httpScript) { replay(s, "2", doneSix) },
			func(s *httpScript) { replay(s, "1", progSix) },
		},
		{
			"http.server.event-id-cursor", wire.Server,
			func(s *httpScript) { // what is new may come without what was missed
				s.handshake().stream(callSix, false, "1", progSix, "2", doneSix)
				x := s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.event(x, "3", hasNews)
				s.event(x, "2", doneSix)
			},
			func(s *httpScript) { // but what is replayed has no gap
				s.handshake().stream(callSix, false, "1", progSix, "2", progSix, "3", doneSix)
				x := s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.event(x, "4", hasNews)
				s.event(x, "3", doneSix)
			},
		},
		{
			"http.client.last-event-id", wire.Client, func(s *httpScript) { replay(s, "2", doneSix) },
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "1", progSix)
				s.get(later(headerLast, "nonsense"), 200, "text/event-stream")
			},
		},
		{
			"http.client.last-event-id", wire.Client,
			func(s *httpScript) { // as on the second of two streams
				s.handshake().stream(callSix, false, "1", progSix, "2", doneSix).stream(pingFive, false, "1", pongFive)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
			func(s *httpScript) {
				s.handshake().stream(callSix, true, "1", progSix, "2", doneSix).wait(time.Second).endLast()
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
		},
		{
			"http.client.last-event-id", wire.Client,
			func(s *httpScript) { // which left before the second event could arrive, and the server saw nothing of that
				s.handshake().stream(callSix, false, "1", progSix, "2", doneSix)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
			func(s *httpScript) { // although it has answered the second event
				s.handshake().stream(callSix, true, "1", progSix, "2", serverAsk)
				stream := s.newest()
				s.post(clientSay, later(), 202, "", "").end(stream)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
		},
		{
			"http.client.last-event-id", wire.Client,
			func(s *httpScript) { // which left before the second event could arrive
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "1", serverAsk)
				s.event(x, "2", serverAsk)
				s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: x})
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
			func(s *httpScript) { // and came back, to all of it
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "1", serverAsk)
				s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: x})
				y := s.get(later(headerLast, "1"), 200, "text/event-stream")
				s.event(y, "2", serverAsk)
				s.wait(time.Second).end(y)
				s.get(later(headerLast, "1"), 200, "text/event-stream")
			},
		},
		{
			"http.client.resume-get", wire.Client, func(s *httpScript) { replay(s, "2", doneSix) },
			func(s *httpScript) {
				s.handshake().post(pingFive, later(headerLast, "1"), 200, "application/json", pongFive)
			},
		},
		{
			"http.server.session-id-charset", wire.Server, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshakeWith(headers("Accept", both), "a b") },
		},
		{
			"http.server.session-id-at-initialization", wire.Server, func(s *httpScript) {
				// Without a session id it may be taken for the request of a new client.
				x := s.handshake().ask(http.MethodPost, mcp, pingFive, headers("Accept", both))
				s.head(x, 200, headers("Content-Type", "application/json", headerSession, "other"))
				s.body(x, pongFive)
				s.end(x)
			},
			func(s *httpScript) {
				x := s.handshake().ask(http.MethodPost, mcp, pingFive, later())
				s.head(x, 200, headers("Content-Type", "application/json", headerSession, "other"))
				s.body(x, pongFive)
				s.end(x)
			},
		},
		{
			"http.client.post-per-message", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().post("["+pingFive+"]", later(), 400, "", "") },
		},
		{
			"http.client.body-single-message", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().post("", later(), 400, "", "") },
		},
		{
			"http.client.post-method", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().ask(http.MethodPut, mcp, pingFive, later()) },
		},
		{
			"http.client.post-to-endpoint", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshake().ask(http.MethodPost, "http://localhost/other", pingFive, later()) },
		},
		{
			"http.client.post-accept-json", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshakeWith(headers("Accept", "*/*"), "abc") },
		},
		{
			"http.client.post-accept-sse", wire.Client, func(s *httpScript) { s.handshake() },
			func(s *httpScript) { s.handshakeWith(headers("Accept", "application/json"), "abc") },
		},
		{
			"http.client.post-accept-sse", wire.Client,
			func(s *httpScript) {
				s.handshakeWith(headers("Accept", "application/json;q=0.1, text/event-stream;Q=0.001"), "abc")
			},
			func(s *httpScript) {
				s.handshakeWith(headers("Accept", "application/json, text/event-stream; q=0.000"), "abc")
			},
		},
		{
			"http.client.get-accept", wire.Client, func(s *httpScript) { s.handshake().get(later(), 405, "") },
			func(s *httpScript) { s.handshake().get(without(later(), "Accept"), 405, "") },
		},
		{
			"http.client.get-405-tolerated", wire.Client, func(s *httpScript) { s.handshake().get(later(), 405, ""); s.ping() },
			func(s *httpScript) {
				s.handshake()
				for range 12 {
					s.wait(pause/2).get(later(), 405, "")
				}
			},
		},
		{
			"http.client.json-answer", wire.Client, func(s *httpScript) { s.handshake() }, nil,
		},
		{
			"http.client.session-header", wire.Client, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) { s.handshake().post(callSix, without(later(), headerSession), 400, "", "") },
		},
		{
			"http.client.version-header", wire.Client, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) {
				s.handshake().post(pingFive, without(later(), headerVersion), 200, "application/json", pongFive)
			},
		},
		{
			"http.client.version-header-negotiated", wire.Client, func(s *httpScript) { s.handshake().ping() },
			func(s *httpScript) {
				s.handshake().post(pingFive, later(headerVersion, "2025-03-26"), 200, "application/json", pongFive)
			},
		},
		{
			"http.client.reinitialize-on-404", wire.Client,
			func(s *httpScript) { s.handshake().post(pingFive, later(), 404, "", ""); s.handshake() },
			func(s *httpScript) {
				s.handshake()
				for range 2 {
					s.post(pingFive, later(), 404, "", "").wait(overtaking)
				}
			},
		},
		{
			"http.client.reinitialize-without-session-id", wire.Client,
			func(s *httpScript) { s.handshake().post(pingFive, later(), 404, "", ""); s.handshake() },
			func(s *httpScript) {
				s.handshake().post(pingFive, later(), 404, "", "")
				s.handshakeWith(headers("Accept", both, headerSession, "abc"), "def")
			},
		},
		{
			"http.client.delete-session", wire.Client,
			func(s *httpScript) { s.handshake().ask(http.MethodDelete, mcp, "", later()) },
			func(s *httpScript) {
				s.handshake().ask(http.MethodDelete, mcp, "", without(later(), headerSession))
			},
		},
		{
			"http.client.delete-session", wire.Client,
			func(s *httpScript) { s.handshake().ping().ask(http.MethodDelete, mcp, "", later()) },
			func(s *httpScript) { s.handshake().ping().ask(http.MethodDelete, mcp+"/abc", "", later()) },
		},
		{
			"http.client.delete-405-tolerated", wire.Client,
			func(s *httpScript) { x := s.handshake().ask(http.MethodDelete, mcp, "", later()); s.head(x, 405, nil) },
			func(s *httpScript) {
				s.handshake()
				for range 12 {
					s.wait(pause/2).head(s.ask(http.MethodDelete, mcp, "", later()), 405, nil)
				}
			},
		},
		{
			"http.client.messages-before-response", wire.Client,
			func(s *httpScript) {
				s.handshake().stream(callSix, false, "", serverAsk, "", doneSix).post(clientSay, later(), 202, "", "")
			}, nil,
		},
		{
			"http.client.get-stream-messages", wire.Client,
			func(s *httpScript) {
				x := s.handshake().get(later(), 200, "text/event-stream")
				s.event(x, "", serverAsk)
				s.post(clientSay, later(), 202, "", "")
			}, nil,
		},
	} {
		t.Run(tt.id, func(t *testing.T) {
			for _, c := range []conversation{{good, tt.good}, {tt.id, tt.bad}} {
				if c.play == nil {
					continue
				}
				s := newHTTPScript(t, "http")
				c.play(s)
				expectSeen(t, s.log, tt.id, tt.party, c.broken != good)
			}
		})
	}
}

// replay breaks the stream of a call after its first event and resumes it with
// one event. Beside it another stream brings the event 9.
func replay(s *httpScript, id, raw string) {
	s.handshake().stream(pingFive, false, "9", pongFive)
	s.stream(callSix, false, "1", progSix)
	x := s.get(later(headerLast, "1"), 200, "text/event-stream")
	s.event(x, id, raw)
}

// overtaken replays an event before it is read, with what it says, from the stream that it is of.
func overtaken(s *httpScript, raw string) {
	s.handshake()
	x := s.ask(http.MethodPost, mcp, callSix, later())
	s.head(x, 200, headers("Content-Type", "text/event-stream"))
	s.event(x, "1", progSix)
	s.event(s.get(later(headerLast, "1"), 200, "text/event-stream"), "2", doneSix)
	s.event(x, "2", raw)
}

// astray replays an event of the stream of another request before it is read, with what it says, from that one.
func astray(s *httpScript, replayed, raw string) {
	s.handshake().stream(pingFive, false, "9", pongFive)
	x := s.ask(http.MethodPost, mcp, callSix, later())
	s.head(x, 200, headers("Content-Type", "text/event-stream"))
	s.event(x, "1", serverAsk)
	s.event(s.get(later(headerLast, "9"), 200, "text/event-stream"), "2", replayed)
	s.event(x, "2", raw)
}

// expectSeen wants a requirement to be met, or to be broken.
func expectSeen(t *testing.T, l *wire.Log, id string, p wire.Party, broken bool) {
	t.Helper()
	seen := Judge(schema.Default(), []*wire.Log{l}, Options{})[Key{Requirement: id, Party: p}]
	switch {
	case seen == nil || seen.Exercised == 0:
		t.Errorf("%s is not exercised", id)
	case broken && len(seen.Findings) == 0:
		t.Errorf("%s: the violation is not seen", id)
	case !broken && len(seen.Findings) > 0:
		t.Errorf("%s is found broken: %s", id, seen.Findings[0].Message)
	}
}

// TestVersionHeaderNotDue judges requests without MCP-Protocol-Version in
// sessions whose version the client has refused or not read, or does not have the header.
func TestVersionHeaderNotDue(t *testing.T) {
	for _, test := range []struct {
		name, version    string
		accepts, listens bool
		resumed          string
		violations       int
	}{
		{"of another age, refused", "2031-01-01", false, false, "", 0},
		{"of another age, taken", "2031-01-01", true, false, "", 2},
		{"older than the header", "2024-11-05", true, false, "", 0},
		{"with the header", "2025-06-18", true, false, "", 2},
		{"not read", "2025-06-18", false, true, "1-2", 0},
		{"not read, and nothing to resume", "2025-06-18", false, true, "", 0},
		{"read", "2025-06-18", true, true, "1-2", 3},
		{"read, and nothing to resume", "2025-06-18", true, true, "", 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newHTTPScript(t, "http")
			s.post(askInit, headers("Accept", both), 200, "application/json", strings.Replace(gotInit, "2025-06-18", test.version, 1))
			if test.accepts {
				s.post(ready, without(later(), headerVersion), 202, "", "")
			}
			if test.listens {
				h := without(later("Accept", "text/event-stream"), headerVersion)
				if test.resumed != "" {
					h.Set("Last-Event-ID", test.resumed)
				}
				s.end(s.get(h, 200, "text/event-stream"))
			}
			s.head(s.ask(http.MethodDelete, mcp, "", without(later(), headerVersion)), 204, nil)
			n := 0
			if seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "http.client.version-header", Party: wire.Client}]; seen != nil {
				n = len(seen.Findings) + seen.Omitted
			}
			if n != test.violations {
				t.Errorf("%d violations, want %d", n, test.violations)
			}
		})
	}
}

// A client names the session and the version only while it has them: not the session behind its own DELETE, and no
// version that it has not accepted.
func TestHeadersOfNoSession(t *testing.T) {
	bare := headers("Accept", "text/event-stream", headerVersion, "2025-06-18")
	for name, play := range map[string]func(*httpScript){
		"refused": func(s *httpScript) {
			s.post(askInit, headers("Accept", both), 200, "application/json", strings.Replace(gotInit, "2025-06-18", "1.0.0", 1))
			s.head(s.ask(http.MethodGet, mcp, "", later("Accept", "text/event-stream")), 400, nil)
			s.head(s.ask(http.MethodDelete, mcp, "", later()), 400, nil)
		},
		"ended": func(s *httpScript) {
			s.handshake().ping()
			s.head(s.ask(http.MethodDelete, mcp, "", later()), 400, nil)
			s.head(s.ask(http.MethodGet, mcp, "", bare), 400, nil)
		},
	} {
		s := newHTTPScript(t, "http")
		play(s)
		for key, k := range Judge(schema.Default(), []*wire.Log{s.log}, Options{}) {
			if key.Party == wire.Client && len(k.Findings) > 0 {
				t.Errorf("%s: %s is found broken: %s", name, key.Requirement, k.Findings[0].Message)
			}
		}
	}
}

// Two errors with one id may be for a request and for a message that is none.
func TestErrorsWithTheSameID(t *testing.T) {
	const (
		unnamed   = `{"id":2,"method":"ping"}`
		malformed = `{"jsonrpc":"2.0","id":2,"method":{}}`
		refused   = `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"no"}}`
	)
	for _, again := range []bool{false, true} {
		s := newHTTPScript(t, "http").handshake()
		s.post(unnamed, later(), 400, "application/json", refused)
		s.post(malformed, later(), 400, "application/json", refused)
		if again {
			s.post(pingFive, later(), 200, "application/json", refused)
		}
		expectSeen(t, s.log, "base.response.once", wire.Server, again)
	}
}

// TestReplayedMessageCountsOnce: what a resumed stream brings again is no
// second response.
func TestReplayedMessageCountsOnce(t *testing.T) {
	s := newHTTPScript(t, "http").handshake()
	s.stream(callSix, false, "1", progSix, "2", doneSix)
	x := s.get(later(headerLast, "1"), 200, "text/event-stream")
	s.event(x, "2", doneSix)
	expectSeen(t, s.log, "base.response.once", wire.Server, false)
	s.event(x, "3", doneSix)
	expectSeen(t, s.log, "base.response.once", wire.Server, true)
}

// TestRefusedAnswer: a server that refuses the answer to its own request is warned of,
// unless it has no use for the answer any more.
func TestRefusedAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		open  bool // the stream on which the server has asked
		after []string
		want  int
	}{
		{"while it waits", true, nil, 1},
		{"after the end of its stream", false, nil, 0},
		{"after it has cancelled", true, []string{"", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}}`}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newHTTPScript(t, "http").handshake()
			s.stream(callSix, c.open, append([]string{"", serverAsk}, c.after...)...).post(clientSay, later(), 400, "", "")
			warned := 0
			if seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "http.server.response-202", Party: wire.Server}]; seen != nil {
				warned = len(seen.Findings)
			}
			if warned != c.want {
				t.Errorf("%d warnings, not %d", warned, c.want)
			}
		})
	}
	t.Run("without its session id", func(t *testing.T) {
		s := newHTTPScript(t, "http").handshake()
		s.stream(callSix, true, "", serverAsk).post(clientSay, without(later(), headerSession), 400, "", "")
		if seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "http.server.response-202", Party: wire.Server}]; seen != nil && len(seen.Findings) > 0 {
			t.Errorf("it is warned of: %v", seen.Findings)
		}
	})
	t.Run("after the call in which it has asked was cancelled", func(t *testing.T) {
		s := newHTTPScript(t, "http").handshake()
		get := s.get(later(), 200, "text/event-stream")
		s.stream(callSix, true)
		s.event(get, "", serverAsk)
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`, later(), 202, "", "")
		s.post(clientSay, later(), 400, "", "")
		if seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "http.server.response-202", Party: wire.Server}]; seen != nil && len(seen.Findings) > 0 {
			t.Errorf("it is warned of: %v", seen.Findings)
		}
	})
}

// TestCancelledPost: the POST of a cancelled request is answered all the same,
// with one JSON object; a stream can end without a response.
func TestCancelledPost(t *testing.T) {
	const told = `{"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"Request cancelled"}}`
	for _, kind := range []string{"application/json", "text/event-stream"} {
		s := newHTTPScript(t, "http").handshake()
		x := s.ask(http.MethodPost, mcp, callSix, later())
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`, later(), 202, "", "")
		s.head(x, 200, headers("Content-Type", kind))
		stream := kind == "text/event-stream"
		if stream {
			s.event(x, "", told)
		} else {
			s.body(x, told)
		}
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "cancellation.no-response", Party: wire.Server}]
		if found := seen != nil && len(seen.Findings) > 0; found != stream {
			t.Errorf("%s: %+v", kind, seen)
		}
	}
}

// TestCancelledPostWithoutBody: a server that sends no response to a cancelled
// request ends the exchange with nothing; one that was not cancelled is owed one.
func TestCancelledPostWithoutBody(t *testing.T) {
	for _, status := range []int{200, 202, 204} {
		for _, cancelled := range []bool{true, false} {
			s := newHTTPScript(t, "http").handshake()
			x := s.ask(http.MethodPost, mcp, callSix, later())
			if cancelled {
				s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`, later(), 202, "", "")
			}
			s.head(x, status, http.Header{})
			s.end(x)
			expectSeen(t, s.log, "http.server.request-answer-type", wire.Server, !cancelled)
		}
	}
}

// TestSameRequestAgain: what was turned away before anybody read it, for want of
// a token or as one too many, is sent again as it is.
func TestSameRequestAgain(t *testing.T) {
	for status, broken := range map[int]bool{401: false, 403: false, 429: false, 503: false, 400: true, 500: true} {
		s := newHTTPScript(t, "http").handshake().post(pingFive, later(), status, "", "").ping()
		expectSeen(t, s.log, "base.request.id-unique", wire.Client, broken)
		s.ping()
		expectSeen(t, s.log, "base.request.id-unique", wire.Client, true)
	}
}

// TestSessionsWithoutID: nothing tells two clients apart where the server assigns no session id.
func TestSessionsWithoutID(t *testing.T) {
	for session, broken := range map[string]bool{"abc": true, "": false} {
		s := newHTTPScript(t, "http").handshakeWith(headers("Accept", both), session).ping().ping()
		expectSeen(t, s.log, "base.request.id-unique", wire.Client, broken)
	}
}

// TestTokenOfRefusedRequest: what the transport refused is not under way, and its
// progress token is free for the request that comes in its place.
func TestTokenOfRefusedRequest(t *testing.T) {
	again := strings.Replace(callSix, `"id":6`, `"id":8`, 1)
	for status, broken := range map[int]bool{401: false, 404: false, 500: false, 200: true} {
		s := newHTTPScript(t, "http").handshake()
		s.head(s.ask(http.MethodPost, mcp, callSix, later()), status, headers("Content-Type", typeEvents))
		s.ask(http.MethodPost, mcp, again, later())
		expectSeen(t, s.log, "progress.token.unique", wire.Client, broken)
	}
}

// TestChallengedGet: a server asks for a token before it says whether it has a
// stream.
func TestChallengedGet(t *testing.T) {
	for challenge, broken := range map[string]bool{"Bearer": false, "": true} {
		s := newHTTPScript(t, "http").handshake()
		x := s.ask(http.MethodGet, mcp, "", later())
		h := http.Header{}
		if challenge != "" {
			h.Set("WWW-Authenticate", challenge)
		}
		s.head(x, http.StatusUnauthorized, h)
		s.end(x)
		s.get(later(), 405, "")
		expectSeen(t, s.log, "http.server.get-stream-or-405", wire.Server, broken)
	}
}

// TestMessagesOvertakeEachOtherOverHTTP: each of them is a request of its own.
func TestMessagesOvertakeEachOtherOverHTTP(t *testing.T) {
	const cancelSix = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`
	bare := headers("Accept", both)
	for _, tt := range []struct {
		name, id string
		play     func(s *httpScript)
		broken   bool
	}{
		{"cancelled before it arrived", "cancellation.same-direction", func(s *httpScript) {
			s.handshake().post(cancelSix, later(), 202, "", "").stream(callSix, false, "", doneSix).post(cancelSix, later(), 202, "", "")
		}, false},
		{"cancelled and never sent", "cancellation.same-direction", func(s *httpScript) {
			s.handshake().stream(callSix, false, "", doneSix).post(cancelSix, later(), 202, "", "")
			s.post(strings.ReplaceAll(cancelSix, "6", "7"), later(), 202, "", "")
		}, true},
		{"cancelled while others are answered", "cancellation.in-progress", func(s *httpScript) {
			s.handshake().stream(callSix, false, "", doneSix).ping().post(cancelSix, later(), 202, "", "")
		}, false},
		{"progress that does not grow", "progress.value-increases", func(s *httpScript) {
			x := s.handshake().ask(http.MethodPost, mcp, pingFive, later())
			s.head(x, 200, headers("Content-Type", "text/event-stream"))
			s.event(x, "", `{"jsonrpc":"2.0","id":"s9","method":"ping","params":{"_meta":{"progressToken":"s9"}}}`)
			for range 2 {
				s.post(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"s9","progress":1}}`, later(), 202, "", "")
			}
		}, true},
		{"early ping answered late", "http.client.version-header", func(s *httpScript) {
			x := s.ask(http.MethodPost, mcp, askInit, headers("Accept", both))
			s.head(x, 200, headers("Content-Type", "text/event-stream", headerSession, "abc"))
			s.event(x, "", `{"jsonrpc":"2.0","id":"early","method":"ping"}`)
			s.event(x, "", gotInit)
			s.end(x)
			s.post(`{"jsonrpc":"2.0","id":"early","result":{}}`, headers("Accept", both), 202, "", "").post(ready, later(), 202, "", "")
		}, false},
		{"pings before the session is known", "http.client.session-header", func(s *httpScript) {
			s.handshake()
			for range 20 {
				s.post(pingFive, bare, 400, "", "")
			}
		}, false},
		{"ping without the session", "http.client.session-header", func(s *httpScript) {
			s.handshake().wait(overtaking).post(pingFive, bare, 400, "", "")
		}, true},
		{"requests before the session is known", "http.client.version-header", func(s *httpScript) {
			s.initialize(bare, "abc").post(callSix, bare, 400, "", "").post(ready, later(), 202, "", "")
		}, false},
		{"listening stream without the version", "http.client.version-header", func(s *httpScript) {
			s.initialize(bare, "abc").wait(overtaking).get(headers("Accept", typeEvents, headerSession, "abc"), 200, typeEvents)
			s.post(ready, later(), 202, "", "")
		}, true},
		{"requests without the session", "http.client.session-header", func(s *httpScript) {
			s.initialize(bare, "abc").wait(overtaking).post(callSix, bare, 400, "", "").post(ready, later(), 202, "", "")
		}, true},
		{"initialized without the session", "http.client.session-header", func(s *httpScript) {
			s.initialize(bare, "abc").wait(Crossing).post(ready, bare, 202, "", "").ping()
		}, true},
		{"initialized right behind initialize", "http.client.session-header", func(s *httpScript) {
			s.initialize(bare, "abc").post(ready, bare, 202, "", "").ping()
		}, false},
		{"initialized right behind initialize, with a version", "http.client.version-header", func(s *httpScript) {
			s.initialize(bare, "abc").post(ready, headers(headerVersion, "2025-06-18"), 202, "", "").ping()
		}, false},
		{"requests of the session before", "http.client.session-header", func(s *httpScript) {
			s.handshake().ping().initialize(bare, "def").post(pingFive, later(), 404, "", "")
		}, false},
		{"requests of a session long past", "http.client.session-header", func(s *httpScript) {
			s.handshake().ping().initialize(bare, "def").wait(overtaking).post(pingFive, later(), 404, "", "")
		}, true},
		{"requests on their way when a session is lost", "http.client.reinitialize-on-404", func(s *httpScript) {
			s.handshake()
			var streams []string
			for range 20 {
				streams = append(streams, s.ask(http.MethodPost, mcp, pingFive, later()))
			}
			s.post(pingFive, later(), 404, "", "")
			for _, x := range streams {
				s.head(x, 404, nil)
				s.post(pingFive, later(), 404, "", "")
			}
			s.initialize(bare, "def")
		}, false},
		{"requests beside the end of the session", "http.client.reinitialize-on-404", func(s *httpScript) {
			x := s.handshake().ask(http.MethodPost, mcp, pingFive, later())
			s.head(s.ask(http.MethodDelete, mcp, "", later()), 200, nil)
			s.head(x, 404, nil)
			s.wait(overtaking).post(pingFive, later(), 404, "", "").wait(overtaking).post(pingFive, later(), 404, "", "")
			s.initialize(bare, "def").post(pingFive, later(headerSession, "def"), 404, "", "").initialize(bare, "ghi")
		}, false},
		{"streams asked for at once", "http.client.get-405-tolerated", func(s *httpScript) {
			s.handshake()
			for range 20 {
				s.get(later(), 405, "")
			}
			s.ping()
		}, false},
		{"streams asked for each minute", "http.client.get-405-tolerated", func(s *httpScript) {
			s.handshake()
			for range 20 {
				s.wait(time.Minute).get(later(), 405, "")
			}
			s.ping()
		}, false},
		{"cancelled long after the answer", "cancellation.in-progress", func(s *httpScript) {
			s.handshake().stream(callSix, false, "", doneSix).wait(time.Minute).post(cancelSix, later(), 202, "", "")
		}, false},
		{"page cancelled long after the next was asked for", "cancellation.in-progress", func(s *httpScript) {
			page := `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`
			next := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"2"}}`
			s.handshake().stream(page, false, "", `{"jsonrpc":"2.0","id":6,"result":{"tools":[],"nextCursor":"2"}}`)
			s.stream(next, false, "", `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`).wait(overtaking).post(cancelSix, later(), 202, "", "")
		}, true},
		{"notification that notifications/initialized has overtaken", "http.client.version-header", func(s *httpScript) {
			s.handshake().post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, bare, 400, "", "")
		}, false},
		{"notification long after notifications/initialized", "http.client.version-header", func(s *httpScript) {
			x := s.handshake().ask(http.MethodPost, mcp, callSix, later())
			s.ping().wait(overtaking).post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, bare, 400, "", "")
			s.head(x, 400, nil)
		}, true},
		{"notification between the second initialize and its answer", "http.client.version-header", func(s *httpScript) {
			s.handshake().post(callSix, later(), 404, "", "")
			x := s.ask(http.MethodPost, mcp, askInit, bare)
			s.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, bare, 400, "", "")
			s.head(x, 200, headers("Content-Type", "application/json", headerSession, "def"))
			s.body(x, gotInit)
			s.end(x)
		}, false},
		{"pings between two sessions", "http.client.session-header", func(s *httpScript) {
			s.handshake().post(callSix, later(), 404, "", "").post(pingFive, bare, 400, "", "").post(pingFive, bare, 400, "", "")
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newHTTPScript(t, "http")
			tt.play(s)
			expectSeen(t, s.log, tt.id, wire.Client, tt.broken)
		})
	}
}

// TestSampledTextUsed: a server knows a sampled text once the client has answered, the server has taken the answer, and
// no other answer says the same.
func TestSampledTextUsed(t *testing.T) {
	const (
		id     = "cancellation.in-progress"
		sample = `{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}}`
		answer = `{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant","model":"m","content":{"type":"text","text":"a sampled text"}}}`
		result = `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"a sampled text"}]}}`
		cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}}`
	)
	second := func(text string) string { return strings.ReplaceAll(text, "s1", "s2") }
	for _, tt := range []struct {
		name    string
		status  int  // of the POST with the answer
		another bool // request is answered with the same text
		broken  bool
	}{
		{"used", 202, false, true},
		{"refused", 503, false, false},
		{"known from another answer", 202, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newHTTPScript(t, "http").handshake()
			asks := s.ask(http.MethodPost, mcp, strings.ReplaceAll(callSix, "6", "8"), later())
			s.head(asks, 200, headers("Content-Type", "text/event-stream"))
			s.event(asks, "", sample)
			s.post(answer, later(), tt.status, "", "")
			if tt.another {
				s.event(asks, "", second(sample))
				s.post(second(answer), later(), 202, "", "")
			}
			s.stream(callSix, false, "", result).wait(overtaking).ping()
			s.event(asks, "", cancel)
			expectSeen(t, s.log, id, wire.Server, tt.broken)
		})
	}
}

// TestErrorInAnswerToReadableRequest: over HTTP, the answer to a request is no answer to an unreadable message before.
func TestErrorInAnswerToReadableRequest(t *testing.T) {
	const foreign = `{"jsonrpc":"2.0","id":"Gr??e","error":{"code":-32601,"message":"no"}}`
	s := newHTTPScript(t, "http").handshake().post("no JSON", later(), 400, "", "")
	s.post(`{"jsonrpc":"2.0","id":"Grüße","method":"x"}`, later(), 200, "application/json", foreign)
	expectSeen(t, s.log, "base.response.only-to-requests", wire.Server, true)
}

// A server may have sent a request before the client listened.
func TestCancelledRequestNeverCame(t *testing.T) {
	const id = "cancellation.same-direction"
	for cancelled, broken := range map[string]bool{`"s1"`: false, `6`: true, `"6"`: true} {
		s := newHTTPScript(t, "http").handshake()
		s.stream(callSix, false, "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+cancelled+`}}`, "", doneSix)
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: id, Party: wire.Server}]
		if found := seen != nil && len(seen.Findings) > 0; found != broken || !broken && len(seen.Notes) == 0 {
			t.Errorf("a server cancels %s: %+v", cancelled, seen)
		}
	}
}

// A server of one client at a time may refuse the stream of a second one.
func TestSSESecondClient(t *testing.T) {
	for _, gone := range []bool{false, true} {
		first, second := newHTTPScript(t, "sse"), newHTTPScript(t, "sse")
		for i, s := range []*httpScript{first, second} {
			x := s.ask(http.MethodGet, "http://localhost/sse", "", headers("Accept", "text/event-stream"))
			if i == 0 {
				s.head(x, 200, headers("Content-Type", "text/event-stream"))
			} else {
				s.head(x, 500, headers("Content-Type", "text/html"))
			}
			if i == 1 || gone {
				s.end(x)
			}
			for n, e := range s.log.Events() {
				e.At = time.Duration(10*i+n) * time.Second
			}
		}
		seen := Judge(schema.Default(), []*wire.Log{first.log, second.log}, Options{})[Key{Requirement: "sse.server.sse-endpoint", Party: wire.Server}]
		if found := seen != nil && len(seen.Findings) > 0; found != gone {
			t.Errorf("the first client gone: %v; found: %+v", gone, seen)
		}
	}
}

func TestSSERules(t *testing.T) {
	const (
		stream = "http://localhost/sse"
		posts  = "/messages?session=1"
		target = "http://localhost/messages?session=REDACTED"
	)
	type options struct {
		status     int
		kind       string
		early      string // event before the endpoint event
		noEndpoint bool
		endpoint   string
		postTo     string
		postStatus int
		name       string // of message events
		answer     string
		inBody     bool
	}
	play := func(t *testing.T, o options) *wire.Log {
		s := newHTTPScript(t, "sse")
		x := s.ask(http.MethodGet, stream, "", headers("Accept", "text/event-stream"))
		s.head(x, o.status, headers("Content-Type", o.kind))
		if o.early != "" {
			s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: x, Raw: []byte(o.early), SSE: &wire.SSE{Event: "message"}})
		}
		if o.noEndpoint {
			s.end(x)
			return s.log
		}
		s.add(wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: x, Raw: []byte(o.endpoint), SSE: &wire.SSE{Event: "endpoint"}})
		y := s.ask(http.MethodPost, o.postTo, askInit, headers("Content-Type", "application/json"))
		s.head(y, o.postStatus, nil)
		if o.inBody {
			s.body(y, o.answer)
		} else {
			s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: x, Raw: []byte(o.answer), SSE: &wire.SSE{Event: o.name}})
		}
		z := s.ask(http.MethodPost, o.postTo, ready, nil)
		s.head(z, o.postStatus, nil)
		return s.log
	}
	fine := options{status: 200, kind: "text/event-stream", endpoint: posts, postTo: target, postStatus: 202, name: "message", answer: gotInit}
	for _, tt := range []struct {
		id     string
		party  wire.Party
		change func(*options)
	}{
		{"sse.server.sse-endpoint", wire.Server, func(o *options) { o.status = 500 }},
		{"sse.server.sse-endpoint", wire.Server, func(o *options) { o.kind = "text/plain" }},
		{"sse.server.endpoint-event", wire.Server, func(o *options) { o.noEndpoint = true }},
		{"sse.server.endpoint-event-first", wire.Server, func(o *options) { o.early = serverAsk }},
		{"sse.server.endpoint-event-uri", wire.Server, func(o *options) { o.endpoint = `{"uri":"/messages"}` }},
		{"sse.server.endpoint-event-uri", wire.Server, func(o *options) { o.endpoint = "" }},
		{"sse.server.post-endpoint", wire.Server, func(o *options) { o.postStatus = 404 }},
		{"sse.server.message-events", wire.Server, func(o *options) { o.name = "reply" }},
		{"sse.server.message-json", wire.Server, func(o *options) { o.answer = "hello" }},
		{"sse.server.responses-on-stream", wire.Server, func(o *options) { o.inBody = true }},
		{"sse.client.post-to-endpoint", wire.Client, func(o *options) { o.postTo = "http://localhost/sse" }},
		{"sse.client.message-events", wire.Client, nil},
	} {
		t.Run(tt.id, func(t *testing.T) {
			expectSeen(t, play(t, fine), tt.id, tt.party, false)
			if tt.change != nil {
				o := fine
				tt.change(&o)
				expectSeen(t, play(t, o), tt.id, tt.party, true)
			}
		})
	}
}

// TestStreamsWithoutEndpoint blames a server for no stream that a client closed or a
// limit cut before the endpoint event.
func TestStreamsWithoutEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		end    wire.Event
		blamed bool
	}{
		"ended":              {wire.Event{From: wire.Server}, true},
		"left by the client": {wire.Event{From: wire.Client}, false},
		"broken off":         {wire.Event{From: wire.Server, Note: "the connection was reset"}, true},
		"cut":                {wire.Event{From: wire.Server, Note: "what it held may not have been recorded"}, false},
	} {
		s := newHTTPScript(t, "sse")
		x := s.ask(http.MethodGet, "http://localhost/sse", "", headers("Accept", "text/event-stream"))
		s.head(x, http.StatusOK, headers("Content-Type", "text/event-stream"))
		test.end.Kind, test.end.Stream = wire.KindStreamEnd, x
		s.add(test.end)
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "sse.server.endpoint-event", Party: wire.Server}]
		if blamed := seen != nil && len(seen.Findings) > 0; blamed != test.blamed {
			t.Errorf("%s: the server is blamed: %t", name, blamed)
		}
	}
}

// TestClientsThatMay pairs legal behaviour of clients with illegal behaviour that differs from it in one thing.
func TestClientsThatMay(t *testing.T) {
	const discover = `{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{}}`
	ahead := func(version string) http.Header { return headers("Accept", both, headerVersion, version) }
	probe := func(version string, session bool) func(*httpScript) {
		return func(s *httpScript) {
			s.post(discover, ahead(version), 400, "", "")
			if session {
				s.handshake().ping()
			}
		}
	}
	pinged := func(before string, end wire.Party) func(*httpScript) {
		return func(s *httpScript) {
			s.handshake()
			x := s.ask(http.MethodPost, mcp, callSix, later())
			s.head(x, 200, headers("Content-Type", "text/event-stream"))
			s.event(x, "", before)
			s.event(x, "", `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			s.add(wire.Event{Kind: wire.KindStreamEnd, From: end, Stream: x})
			s.add(wire.Event{Kind: wire.KindTimeout, From: wire.Client, Note: "answer to ping"})
		}
	}
	// The client answers a ping, or none, cancels its request soon after another one or later, and closes the stream.
	left := func(answers, soon bool) func(*httpScript) {
		return func(s *httpScript) {
			s.handshake()
			x := s.ask(http.MethodPost, mcp, callSix, later())
			s.head(x, 200, headers("Content-Type", "text/event-stream"))
			s.event(x, "", `{"jsonrpc":"2.0","id":"o","method":"ping"}`)
			if answers {
				s.post(`{"jsonrpc":"2.0","id":"o","result":{}}`, later(), 202, "", "")
			}
			if soon {
				s.later += time.Minute
			}
			s.event(x, "", `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			if !soon {
				s.later += time.Minute
			}
			s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`, later(), 202, "", "")
			s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: x})
			s.add(wire.Event{Kind: wire.KindTimeout, From: wire.Client, Note: "answer to ping"})
		}
	}
	answered := func(early bool) func(*httpScript) {
		return func(s *httpScript) {
			x := s.ask(http.MethodPost, mcp, askInit, headers("Accept", both))
			s.head(x, 200, headers("Content-Type", "text/event-stream", headerSession, "abc"))
			ask := func() { s.event(x, "", `{"jsonrpc":"2.0","id":"p","method":"ping"}`) }
			if early {
				ask()
			}
			s.event(x, "", gotInit)
			if !early {
				ask()
			}
			s.end(x)
			s.post(`{"jsonrpc":"2.0","id":"p","result":{}}`, headers("Accept", both), 202, "", "")
			s.post(ready, later(), 202, "", "")
		}
	}
	over := func(version string) func(*httpScript) {
		return func(s *httpScript) {
			s.add(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: transport.Stdin, Raw: []byte(
				`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"}}}`)})
			s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: transport.Stdout, Raw: []byte(
				`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"none"}}`)})
		}
	}
	again := func(h http.Header) func(*httpScript) {
		return func(s *httpScript) { s.handshake().post(discover, h, 400, "", "").post(discover, h, 400, "", "") }
	}
	legacyOnly := func(accept string) func(*httpScript) {
		return func(s *httpScript) {
			x := s.ask(http.MethodGet, mcp, "", headers("Accept", "text/event-stream"))
			s.head(x, 200, headers("Content-Type", "text/event-stream"))
			s.add(wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: x, Raw: []byte("/messages"), SSE: &wire.SSE{Event: "endpoint"}})
			s.post(askInit, headers("Accept", accept), 405, "", "")
		}
	}
	for _, tt := range []struct {
		name, transport string
		ids             []string
		good, bad       func(*httpScript)
	}{
		{
			"asks for a later revision first", "http",
			[]string{"lifecycle.init.first"},
			probe("2026-07-28", true), probe("2025-06-18", true),
		},
		{
			"asks a server of the older transport for a later revision", "sse", []string{"lifecycle.init.first"},
			func(s *httpScript) {
				s.post(discover, ahead("2026-07-28"), 405, "", "").post(askInit, headers("Accept", both), 405, "", "")
			},
			func(s *httpScript) {
				s.post(discover, headers("Accept", both), 405, "", "").post(askInit, headers("Accept", both), 405, "", "")
			},
		},
		{
			"asks for a later revision alone", "http", []string{"lifecycle.init.client-initiates"},
			probe("2026-07-28", false), probe("next", false),
		},
		{
			"leaves a stream at what is no message", "http", []string{"base.response.present"},
			pinged("not JSON", wire.Client), pinged("not JSON", wire.Server),
		},
		{
			"leaves a stream when it gives up its own request", "http", []string{"base.response.present"},
			left(true, true), left(true, false),
		},
		{
			"leaves no stream on which it answers nothing", "http", []string{"base.response.present"},
			left(true, true), left(false, true),
		},
		{
			"leaves no other stream before it answers", "http", []string{"base.response.present"},
			pinged("not JSON", wire.Client), pinged(progSix, wire.Client),
		},
		{
			"asks for a later revision once more", "http",
			[]string{"http.client.session-header", "base.request.id-unique", "lifecycle.capability.experimental-gated"},
			again(ahead("2026-07-28")), again(ahead("2025-06-18")),
		},
		{
			"asks for a later revision in a process of its own", "stdio", []string{"lifecycle.init.client-initiates"},
			over("2026-07-28"), over("2025-06-18"),
		},
		{
			"opens its stream beside initialize", "http",
			[]string{"http.client.session-header", "http.client.version-header-negotiated"},
			func(s *httpScript) {
				s.initialize(headers("Accept", both), "abc").get(ahead("2025-11-25"), 400, "")
				s.post(ready, later(), 202, "", "")
			},
			func(s *httpScript) { s.handshake().get(ahead("2025-11-25"), 400, "") },
		},
		{
			"answers what came before the answer to initialize", "http",
			[]string{"http.client.session-header", "http.client.version-header"}, answered(true), answered(false),
		},
		{
			"does not know the older transport", "sse", []string{"sse.client.post-to-endpoint"},
			legacyOnly(both), legacyOnly("text/event-stream"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for broken, play := range map[bool]func(*httpScript){false: tt.good, true: tt.bad} {
				s := newHTTPScript(t, tt.transport)
				play(s)
				report := Judge(schema.Default(), []*wire.Log{s.log}, Options{})
				if k := report[Key{Requirement: "http.server.get-stream-or-405", Party: wire.Server}]; k != nil && len(k.Findings) > 0 {
					t.Errorf("the server is blamed: %s", k.Findings[0].Message)
				}
				for _, id := range tt.ids {
					if k := report[Key{Requirement: id, Party: wire.Client}]; broken != (k != nil && len(k.Findings) > 0) {
						t.Errorf("%s is broken: %t, want %t", id, !broken, broken)
					}
				}
			}
		})
	}
}

// TestGetOfJSON: some clients ask the URL for JSON before all else.
func TestGetOfJSON(t *testing.T) {
	s := newHTTPScript(t, "sse")
	x := s.ask(http.MethodGet, mcp, "", headers("Accept", "application/json"))
	s.head(x, http.StatusNotAcceptable, headers("Content-Type", "application/json"))
	s.body(x, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`)
	s.end(x)
	s.post(askInit, headers("Accept", both), http.StatusMethodNotAllowed, "", "")
	report := Judge(schema.Default(), []*wire.Log{s.log}, Options{})
	for _, id := range []string{"lifecycle.init.first", "sse.server.sse-endpoint"} {
		if k := report[Key{Requirement: id, Party: wire.Server}]; k != nil && len(k.Findings) > 0 {
			t.Errorf("%s: %s", id, k.Findings[0].Message)
		}
	}
}

// TestPreflight tests the question that a browser asks before the request of a page. It carries no headers of the
// page, so it is not a request of the client, and no header is missing.
func TestPreflight(t *testing.T) {
	s := newHTTPScript(t, "http").initialize(headers("Accept", both, "Authorization", "Bearer x"), "abc").post(ready, later("Authorization", "Bearer x"), 202, "", "")
	preflight := func(more ...string) {
		x := s.ask(http.MethodOptions, mcp, "", headers(append(more, "Origin", "http://localhost:6274")...))
		s.head(x, http.StatusNoContent, headers("Access-Control-Allow-Origin", "*"))
		s.end(x)
	}
	found := func() (ids []string) {
		for key, k := range Judge(schema.Default(), []*wire.Log{s.log}, Options{}) {
			if key.Party == wire.Client && len(k.Findings) > 0 {
				ids = append(ids, key.Requirement)
			}
		}
		slices.Sort(ids)
		return ids
	}
	preflight("Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-session-id")
	if ids := found(); len(ids) > 0 {
		t.Errorf("the preflight is held against the client: %v", ids)
	}
	preflight()
	if want := []string{"auth.client.every-request", "http.client.session-header", "http.client.version-header"}; !slices.Equal(found(), want) {
		t.Errorf("a request with OPTIONS that is no preflight breaks %v, want %v", found(), want)
	}
}

// A request that a server redirects and the client makes again is one request, though it crosses
// twice; without the redirect it is made twice.
func TestRedirectedRequests(t *testing.T) {
	const moved = mcp + "/"
	play := func(status int) []string {
		s := newHTTPScript(t, "http")
		again := func(method, raw string, h http.Header) string {
			x := s.ask(method, mcp, raw, h)
			s.head(x, status, headers("Location", "/mcp/"))
			s.end(x)
			return s.ask(method, moved, raw, h)
		}
		x := again(http.MethodPost, askInit, headers("Accept", both))
		s.head(x, 200, headers("Content-Type", "application/json", headerSession, "abc"))
		s.body(x, gotInit)
		s.end(x)
		x = again(http.MethodPost, ready, later())
		s.head(x, 202, http.Header{})
		s.end(x)
		x = again(http.MethodGet, "", later())
		s.head(x, 200, headers("Content-Type", "text/event-stream"))
		x = again(http.MethodPost, `{"jsonrpc":"2.0","id":6,"method":"ping"}`, later())
		s.head(x, 200, headers("Content-Type", "application/json"))
		s.body(x, `{"jsonrpc":"2.0","id":6,"result":{}}`)
		s.end(x)
		var found []string
		for key, k := range Judge(schema.Default(), []*wire.Log{s.log}, Options{}) {
			if len(k.Findings) > 0 {
				found = append(found, key.Requirement)
			}
		}
		slices.Sort(found)
		return found
	}
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		if found := play(status); len(found) > 0 {
			t.Errorf("%d breaks %v", status, found)
		}
	}
	if found := play(http.StatusServiceUnavailable); !slices.Contains(found, "http.client.post-to-endpoint") {
		t.Errorf("requests that are made twice break %v", found)
	}
}

// A message that was refused before it was read may be sent again as it is.
func TestSentAgain(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":6,"method":"ping"}`
	for status, allowed := range map[int]bool{
		401: true, 403: true, 408: true, 421: true, 425: true, 429: true, 503: true, 400: false, 409: false, 500: false, 502: false,
	} {
		s := newHTTPScript(t, "http").handshake()
		s.post(ping, later(), status, "", "").post(ping, later(), 200, "application/json", `{"jsonrpc":"2.0","id":6,"result":{}}`)
		k := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "base.request.id-unique", Party: wire.Client}]
		if found := k != nil && len(k.Findings) > 0; found == allowed {
			t.Errorf("a ping sent again after %d is found broken: %v", status, found)
		}
	}
}

// Over HTTP as well, work grows no faster than the log.
func BenchmarkHTTPFlood(b *testing.B) {
	l := httpFlood(b)
	for b.Loop() {
		Judge(schema.Default(), []*wire.Log{l}, Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.Len()), "ns/event")
}

func TestHTTPFloodIsJudged(t *testing.T) {
	Judge(schema.Default(), []*wire.Log{httpFlood(t)}, Options{})
}

func httpFlood(t testing.TB) *wire.Log {
	s := newHTTPScript(t, "http").handshake()
	for range 12_000 {
		s.get(later(headerLast, "1"), 404, "")
		s.get(later(), 200, "text/event-stream")
		s.stream(callSix, false, "1", progSix)
		s.post(askInit, headers("Accept", both), 404, "", "")
	}
	return s.log
}

// Over HTTP a cancellation can overtake its request, and outside of a session
// nobody knows whose request it names.
func TestCancellationOverHTTP(t *testing.T) {
	const id = "cancellation.no-response"
	for _, c := range []struct {
		name   string
		begun  bool // it reports progress before it is cancelled
		header http.Header
		status int // with which the cancellation is taken
		broken bool
	}{
		{"under way", true, later(), 202, true},
		{"overtaken", false, later(), 202, false},
		{"without session", true, without(later(), headerSession), 202, false},
		{"refused", true, later(), 429, false},
	} {
		s := newHTTPScript(t, "http").handshake()
		call := s.ask(http.MethodPost, mcp, callSix, c.header)
		s.head(call, 200, headers("Content-Type", typeEvents))
		if c.begun {
			s.event(call, "", progSix)
		}
		s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`, c.header, c.status, "", "")
		for n := range 2 {
			ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 20+n)
			s.post(ping, c.header, 200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, 20+n))
		}
		s.add(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: call, Raw: []byte(doneSix), SSE: &wire.SSE{}}).At += time.Minute
		s.end(call)
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: id, Party: wire.Server}]
		if broken := seen != nil && len(seen.Findings) > 0; broken != c.broken {
			t.Errorf("%s: broken is %v, not %v", c.name, broken, c.broken)
		}
	}
}

// TestStreamLeftIsNoMissingResponse tests requests whose stream has ended. The response may wait until the client
// resumes the stream, also if the resumed stream ends again.
func TestStreamLeftIsNoMissingResponse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		play   func(s *httpScript)
		broken bool
	}{
		{"left at once", func(s *httpScript) { s.stream(callSix, false, "1", progSix) }, false},
		{"no events to go on from", func(s *httpScript) { s.stream(callSix, false, "", progSix) }, true},
		{"another stream goes on", func(s *httpScript) {
			s.stream(callSix, false, "1", progSix)
			s.end(s.get(later(headerLast, "2"), 200, "text/event-stream"))
		}, false},
		{"left the second time", func(s *httpScript) {
			s.stream(callSix, false, "1", progSix)
			x := s.get(later(headerLast, "1"), 200, "text/event-stream")
			s.event(x, "2", progSix)
			s.end(x)
		}, false},
		{"hung up on the second time", func(s *httpScript) {
			s.stream(callSix, false, "1", progSix)
			x := s.get(later(headerLast, "1"), 200, "text/event-stream")
			s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: x})
		}, false},
		{"nothing more comes", func(s *httpScript) {
			s.stream(callSix, false, "1", progSix)
			x := s.get(later(headerLast, "1"), 200, "text/event-stream")
			s.event(x, "2", progSix)
			s.end(x)
			s.end(s.get(later(headerLast, "2"), 200, "text/event-stream"))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newHTTPScript(t, "http")
			tt.play(s.handshake())
			seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})
			early := seen[Key{Requirement: "http.server.sse-no-early-close", Party: wire.Server}]
			if early == nil || len(early.Findings) == 0 {
				t.Error("that the stream ended before the response is not told")
			}
			missing := seen[Key{Requirement: "http.server.sse-response-sent", Party: wire.Server}]
			if got := missing != nil && len(missing.Findings) > 0; got != tt.broken {
				t.Errorf("a missing response is told: %t, want %t", got, tt.broken)
			}
		})
	}
}

// TestEndedSession: a server may end a session at any time, before it opens a
// stream in it and before it answers. It may not do the one and serve on.
func TestEndedSession(t *testing.T) {
	for _, serves := range []bool{false, true} {
		s := newHTTPScript(t, "http").handshake().stream(callSix, false)
		s.get(later(), 404, "")
		if serves {
			s.ping()
		} else {
			s.post(pingFive, later(), 404, "", "")
		}
		for _, id := range []string{"http.server.get-stream-or-405", "http.server.sse-no-early-close", "http.server.sse-response-sent"} {
			k := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: id, Party: wire.Server}]
			if broken := k != nil && len(k.Findings) > 0; broken != serves {
				t.Errorf("%s is broken: %v, and the session is served: %v", id, broken, serves)
			}
		}
	}
}

// A response that an author sees leave does not count without the empty line behind it. The finding says so.
func TestResponseInUnendedEvent(t *testing.T) {
	s := newHTTPScript(t, "http").handshake()
	stream := s.ask(http.MethodPost, mcp, pingFive, later("Accept", both))
	s.head(stream, 200, headers("Content-Type", "text/event-stream"))
	s.add(wire.Event{Kind: wire.KindSSE, From: wire.Server, Stream: stream, Raw: []byte(pongFive), SSE: &wire.SSE{}, Note: wire.InsideEvent})
	s.end(stream)
	report := Judge(schema.Default(), []*wire.Log{s.log}, Options{})
	seen := report[Key{Requirement: "http.server.sse-response-sent", Party: wire.Server}]
	if seen == nil || len(seen.Findings) != 1 || !strings.Contains(seen.Findings[0].Message, "inside an event") {
		t.Errorf("%+v", seen)
	}
	if also := report[Key{Requirement: "http.server.sse-no-early-close", Party: wire.Server}]; also != nil && len(also.Findings) > 0 {
		t.Errorf("the same fault is found twice: %+v", also)
	}
}

// TestTooManyRequests: a request that was refused because there were too many
// was not made. It may be made again, and so may the response to one.
func TestTooManyRequests(t *testing.T) {
	s := newHTTPScript(t, "http")
	s.post(strings.Replace(askInit, `"id":1`, `"id":0`, 1), headers("Accept", both), 429, "", "")
	s.handshake()
	s.post(strings.Replace(pingFive, `"id":5`, `"id":4`, 1), later(), 429, "", "").ping()
	report := Judge(schema.Default(), []*wire.Log{s.log}, Options{})
	for key, k := range report {
		for _, v := range k.Findings {
			t.Errorf("%s of the %s: %s", key.Requirement, key.Party, v.Message)
		}
	}
}

// An answer to a request of the server that was refused for want of a token
// comes again with one; another answer than that is a second one.
func TestAnswerAgainWithToken(t *testing.T) {
	const id = "base.response.once"
	for again, broken := range map[string]bool{clientSay: false, strings.Replace(clientSay, "{}", `{"x":1}`, 1): true} {
		s := newHTTPScript(t, "http").handshake()
		call := s.ask(http.MethodPost, mcp, callSix, later())
		s.head(call, 200, headers("Content-Type", typeEvents))
		s.event(call, "", serverAsk)
		s.post(clientSay, later(), 401, "", "").post(again, later("Authorization", "Bearer x"), 202, "", "")
		s.event(call, "", doneSix)
		s.end(call)
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: id, Party: wire.Client}]
		if seen == nil || seen.Exercised == 0 || (len(seen.Findings) > 0) != broken {
			t.Errorf("with %s: %+v", again, seen)
		}
	}
}

// A challenge of another scheme than those of OAuth belongs to a strategy that the parties
// have agreed on.
func TestChallengeOfAnotherScheme(t *testing.T) {
	for challenge, broken := range map[string]bool{`Basic realm="x"`: false, `Bearer realm="x"`: true, ``: true, `Basic realm="x", Bearer`: true} {
		s := newHTTPScript(t, "http")
		x := s.ask(http.MethodPost, mcp, askInit, headers("Accept", both))
		s.head(x, 401, headers("Www-Authenticate", challenge))
		s.end(x)
		seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "auth.server.www-authenticate-metadata-url", Party: wire.Server}]
		if found := seen != nil && len(seen.Findings) > 0; found != broken {
			t.Errorf("a 401 with %q: broken is %t, not %t", challenge, found, broken)
		}
	}
}

// Progress that comes on another stream seconds after the response, when the server has
// answered what was asked since, was sent after it.
func TestProgressOnAnotherStream(t *testing.T) {
	for gap, broken := range map[time.Duration]bool{0: false, 2 * overtaking: true} {
		s := newHTTPScript(t, "http").handshake()
		x := s.get(later(), 200, "text/event-stream")
		s.stream(callSix, false, "", progSix, "", doneSix).ping().wait(gap)
		s.event(x, "", strings.Replace(progSix, `"progress":1`, `"progress":2`, 1))
		expectSeen(t, s.log, "progress.stop", wire.Server, broken)
	}
}

// A client that answers a request of the server after its cancellation has read that if it has since answered a ping
// on the same stream, and one more: then a few hundred milliseconds are late. On two streams the cancellation may come
// after the pings.
func TestAnswerAfterCancellation(t *testing.T) {
	const cancels = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}}`
	ask := strings.Replace(serverAsk, `"ping"`, `"sampling/createMessage"`, 1)
	for _, v := range []struct {
		name   string
		pings  int
		same   bool
		gap    time.Duration
		broken bool
	}{
		{"after two pings", 2, true, 2 * Crossing, true},
		{"at once after two pings", 2, true, Crossing / 2, false},
		{"after one ping", 1, true, 2 * Crossing, false},
		{"after two pings on another stream", 2, false, 2 * Crossing, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := newHTTPScript(t, "http").handshake()
			listening := s.get(later(), 200, typeEvents)
			call := s.ask(http.MethodPost, mcp, callSix, later())
			s.head(call, 200, headers("Content-Type", typeEvents))
			s.event(call, "", ask)
			s.event(call, "", cancels)
			for n := range v.pings {
				on := listening
				if v.same {
					on = call
				}
				id := strconv.Itoa(n)
				s.event(on, "", `{"jsonrpc":"2.0","id":"p`+id+`","method":"ping"}`)
				s.post(`{"jsonrpc":"2.0","id":"p`+id+`","result":{}}`, later(), 202, "", "")
			}
			s.wait(v.gap)
			s.post(clientSay, later(), 202, "", "")
			seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "cancellation.no-response", Party: wire.Client}]
			if found := seen != nil && len(seen.Findings) > 0; found != v.broken {
				t.Errorf("it is found: %t", found)
			}
		})
	}
}

// TestInitializedAfterRequest tests POSTs that may overtake each other. A request certainly precedes
// notifications/initialized if the latter comes long after it, and after its answer.
func TestInitializedAfterRequest(t *testing.T) {
	for _, v := range []struct {
		name             string
		held, since      time.Duration // before the answer, and between it and the notification
		answered, broken bool
	}{
		{"at once", 0, 0, true, false},
		{"answered late", Apart, 0, true, true},
		{"long after", 0, Apart, true, true},
		{"not answered yet", Apart, Apart, false, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := newHTTPScript(t, "http").initialize(headers("Accept", both), "abc")
			x := s.ask(http.MethodPost, mcp, callSix, later())
			answer := func() {
				s.wait(v.held).head(x, 200, headers("Content-Type", "application/json"))
				s.body(x, doneSix)
				s.end(x)
			}
			if v.answered {
				answer()
			}
			s.wait(v.since).post(ready, later(), 202, "", "")
			if !v.answered {
				answer()
			}
			seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: "lifecycle.init.initialized-before-operation", Party: wire.Client}]
			if found := seen != nil && len(seen.Findings) > 0; found != v.broken {
				t.Errorf("broken is %t, not %t", found, v.broken)
			}
			if !v.broken && seen != nil && seen.Exercised > 0 {
				t.Error("the order is taken for certain")
			}
		})
	}
}

// A client that gives one token to two requests gets the same progress twice, each time on the
// stream of a request of its own.
func TestOneTokenForTwoRequests(t *testing.T) {
	const broadcast, related = "http.server.no-broadcast", "http.server.sse-related-messages"
	for _, v := range []struct {
		token, progress string
		seen            []string
	}{
		{"of both", progSix, []string{broadcast, related}},
		{"of neither", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":null,"progress":0}}`, []string{broadcast}},
	} {
		t.Run(v.token, func(t *testing.T) {
			s := newHTTPScript(t, "http").handshake()
			other := strings.NewReplacer(`"id":6`, `"id":8`)
			x, y := s.ask(http.MethodPost, mcp, callSix, later()), s.ask(http.MethodPost, mcp, other.Replace(callSix), later())
			for _, stream := range []string{x, y} {
				s.head(stream, 200, headers("Content-Type", "text/event-stream"))
			}
			for _, stream := range []string{x, y} {
				s.event(stream, "", v.progress)
			}
			s.event(x, "", doneSix)
			s.event(y, "", other.Replace(doneSix))
			for _, id := range v.seen {
				expectSeen(t, s.log, id, wire.Server, false)
			}
		})
	}
}

// A server may refuse a second listening stream beside one whose head has not come, or that the client has just left.
func TestSecondListeningStream(t *testing.T) {
	left := func(after time.Duration) func(s *httpScript, first string) {
		return func(s *httpScript, first string) {
			s.add(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Stream: first})
			s.wait(after)
		}
	}
	for _, test := range []struct {
		name    string
		between func(s *httpScript, first string)
		broken  bool
	}{
		{"the first waits for its head", func(*httpScript, string) {}, false},
		{"the client has just left the first", left(Crossing / 2), false},
		{"the client has left the first", left(2 * Crossing), true},
		{"the server has ended the first", func(s *httpScript, first string) { s.end(first) }, true},
	} {
		s := newHTTPScript(t, "http").handshake()
		test.between(s, s.ask(http.MethodGet, mcp, "", later()))
		s.get(later(), http.StatusConflict, "")
		s.get(later(), http.StatusMethodNotAllowed, "")
		expectSeen(t, s.log, "http.server.get-stream-or-405", wire.Server, test.broken)
	}
}

// A client may look for metadata below the path of the endpoint, which no event stream answers.
func TestMetadataBelowEndpoint(t *testing.T) {
	for path, broken := range map[string]bool{"/.well-known/openid-configuration": false, "": true} {
		s := newHTTPScript(t, "http")
		x := s.ask(http.MethodGet, mcp+path, "", headers("Accept", "application/json"))
		s.head(x, http.StatusNotFound, nil)
		s.end(x)
		s.handshake()
		s.get(later(), http.StatusMethodNotAllowed, "")
		expectSeen(t, s.log, "http.client.get-accept", wire.Client, broken)
	}
}
