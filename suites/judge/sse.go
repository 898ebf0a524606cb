package judge

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

var sseRules = []Rule{{
	Name: "HTTP+SSE",
	Requirements: []string{
		"sse.server.sse-endpoint", "sse.server.post-endpoint", "sse.server.endpoint-event", "sse.server.endpoint-event-first",
		"sse.server.endpoint-event-uri", "sse.server.message-events", "sse.server.message-json", "sse.server.responses-on-stream",
		"sse.client.post-to-endpoint", "sse.client.message-events",
	},
	Judge: judgeSSE,
}}

// The transport of revision 2024-11-05 (basic/transports#backwards-compatibility).
func judgeSSE(c *Conversation, o *Observer) {
	if c.Transport != transport.NameSSE {
		return
	}
	exchanges := c.httpExchanges()
	var stream *httpExchange
	for _, x := range exchanges {
		// One that a foreign origin asks for has to be refused, and one that
		// asks for something else, such as JSON, is no attempt at a stream.
		h := x.request.HTTP.Header
		if x.method() == http.MethodGet && !x.deliberate() && h.Get("Origin") == "" && (h.Get("Accept") == "" || names(h, typeEvents) || names(h, "*/*")) {
			stream = x
			break
		}
	}
	if stream == nil || stream.head == nil {
		return
	}
	if !stream.ok() || stream.mediaType() != typeEvents {
		if stream.status() != http.StatusUnauthorized && !o.known.listens(stream) {
			o.Violation("sse.server.sse-endpoint", wire.Server,
				fmt.Sprintf("the GET was answered with HTTP status %d and the Content-Type %s, not with an event stream",
					stream.status(), wire.Quote(stream.mediaType(), 60)), stream.evidence()...)
		}
		return
	}
	o.Exercised("sse.server.sse-endpoint", wire.Server)
	announced := judgeEndpointEvent(c, stream, o)
	for _, e := range stream.messages {
		judgeMessageEvent(e, o)
	}
	for _, x := range exchanges {
		if len(x.sent) > 0 && x.sent[0].Kind == wire.KindMessage && !streamable(x, stream) {
			c.judgeLegacyPost(x, stream, announced, o)
		}
	}
}

// A listening is the time for which the stream of a connection was open.
type listening struct {
	url      string
	from, to time.Duration
}

// listeningTimes returns when which streams of HTTP+SSE were open.
func listeningTimes(logs []*wire.Log) []listening {
	var all []listening
	for _, l := range logs {
		if l.Transport != transport.NameSSE {
			continue
		}
		open := make(map[string]*listening)
		for _, e := range l.Events() {
			switch {
			case e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodGet:
				open[e.Stream] = &listening{url: e.HTTP.URL}
			case open[e.Stream] == nil:
			case e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusOK:
				open[e.Stream].from, open[e.Stream].to = e.At, math.MaxInt64
			case e.Kind == wire.KindStreamEnd && open[e.Stream].to > 0:
				open[e.Stream].to = e.At
			}
		}
		for _, o := range open {
			if o.to > 0 {
				all = append(all, *o)
			}
		}
	}
	return all
}

// listens reports whether the stream was open for another client when the GET
// for it was answered: a server may serve one at a time (docs/positions.md,
// several-clients).
func (k Known) listens(x *httpExchange) bool {
	return slices.ContainsFunc(k.listening, func(l listening) bool {
		return l.url == x.request.HTTP.URL && l.from < x.head.At && x.head.At < l.to
	})
}

// judgeEndpointEvent judges the first event and returns it.
func judgeEndpointEvent(c *Conversation, stream *httpExchange, o *Observer) *wire.Event {
	var first, endpoint *wire.Event
	for _, e := range c.Events {
		if e.Stream != stream.name || e.From != wire.Server || e.SSE == nil || e.Raw == nil {
			continue // comments, and events without data, which are not dispatched
		}
		if first == nil {
			first = e
		}
		if e.SSE.Event == "endpoint" {
			endpoint = e
			break
		}
	}
	if endpoint == nil {
		// How long to wait for it is for whoever opened the stream.
		if stream.end != nil {
			o.Violation("sse.server.endpoint-event", wire.Server, "no endpoint event came", stream.evidence(stream.end)...)
		}
		return nil
	}
	o.Exercised("sse.server.endpoint-event", wire.Server)
	o.Check(first == endpoint, "sse.server.endpoint-event-first", wire.Server, "another event came before the endpoint event", first, endpoint)
	text := string(endpoint.Raw)
	_, err := url.Parse(text)
	switch {
	case text == "":
		o.Violation("sse.server.endpoint-event-uri", wire.Server, "the endpoint event is empty", endpoint)
	case err != nil || strings.ContainsAny(text, " \t\r\n\"{}<>"):
		o.Violation("sse.server.endpoint-event-uri", wire.Server, "the endpoint event holds no URI", endpoint)
	}
	return endpoint
}

func judgeMessageEvent(e *wire.Event, o *Observer) {
	if e.Member || e.SSE == nil {
		return
	}
	name := e.SSE.Event
	o.Check(name == "" || name == "message", "sse.server.message-events", wire.Server,
		"a message came as an event of type "+wire.Quote(name, 60), e)
	switch {
	case e.Msg.Has(wire.TooDeep), e.Msg.Has(wire.TooLarge), e.Dropped > 0:
	case e.Msg.Kind == wire.Invalid, e.Msg.Kind == wire.Batch:
		o.Violation("sse.server.message-json", wire.Server, "the data of a message event is not one JSON-RPC message: "+faults(e.Msg), e)
	default:
		o.Exercised("sse.server.message-json", wire.Server)
	}
}

// streamable reports whether a message was posted to the URL of the stream in
// the way of Streamable HTTP: such a client has opened the stream to listen, and
// not understood that the server speaks the older transport alone.
func streamable(x, stream *httpExchange) bool {
	h := x.request.HTTP.Header
	return location(x.request.HTTP.URL) == location(stream.request.HTTP.URL) && names(h, typeJSON) && names(h, typeEvents)
}

// judgeLegacyPost judges a message of the client and what became of it.
func (c *Conversation) judgeLegacyPost(x, stream *httpExchange, announced *wire.Event, o *Observer) {
	if announced == nil {
		return
	}
	target, err := resolve(stream.request.HTTP.URL, string(announced.Raw))
	if err == nil {
		o.Check(x.method() == http.MethodPost && location(x.request.HTTP.URL) == target && x.request.Seq > announced.Seq,
			"sse.client.post-to-endpoint", wire.Client, "a message was not posted to the announced URI", append([]*wire.Event{announced}, x.evidence()...)...)
	}
	m := x.message()
	if m == nil || m.Msg.Kind == wire.Invalid || len(m.Msg.Issues) > 0 || x.deliberate() || x.head == nil ||
		stream.end != nil && stream.end.Seq < x.head.Seq {
		return // the session ends with its stream
	}
	if err == nil && location(x.request.HTTP.URL) != target {
		return // not what the server has asked for
	}
	if x.refusesEntry() {
		return
	}
	o.Check(x.ok(), "sse.server.post-endpoint", wire.Server,
		fmt.Sprintf("a message was answered with HTTP status %d", x.status()), x.evidence()...)
	if x.ok() {
		o.Exercised("sse.server.endpoint-event-uri", wire.Server)
	}
	if m.Msg.Kind != wire.Request {
		return
	}
	onStream, inBody := false, (*wire.Event)(nil)
	if r := c.Of(m); r != nil {
		for _, e := range r.Responses {
			onStream = onStream || e.Stream == stream.name
			if e.Stream == x.name {
				inBody = e
			}
		}
	}
	switch {
	case onStream:
		o.Exercised("sse.server.responses-on-stream", wire.Server)
		if m == c.Init.requestOrNil() && c.Initialized != nil {
			o.Exercised("sse.client.message-events", wire.Client)
		}
	case inBody != nil:
		o.Violation("sse.server.responses-on-stream", wire.Server, "the response came in the answer to the POST, not on the stream", x.evidence(inBody)...)
	}
}

func (x *Exchange) requestOrNil() *wire.Event {
	if x == nil {
		return nil
	}
	return x.Request
}

// resolve returns where an endpoint event points.
func resolve(base, ref string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u, err := b.Parse(ref)
	if err != nil {
		return "", err
	}
	return location(u.String()), nil
}
