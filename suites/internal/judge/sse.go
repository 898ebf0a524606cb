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
	"github.com/mcpconform/mcpconform/schema/ids"
)

var sseRules = []Rule{{
	Name: "HTTP+SSE",
	Requirements: []string{ids.SSEServerSSEEndpoint, ids.SSEServerPostEndpoint, ids.SSEServerEndpointEvent,
		ids.SSEServerEndpointEventFirst, ids.SSEServerEndpointEventURI, ids.SSEServerMessageEvents,
		ids.SSEServerMessageJSON, ids.SSEServerResponsesOnStream, ids.SSEClientPostToEndpoint,
		ids.SSEClientMessageEvents},
	Judge: judgeSSE,
}}

// The transport of revision 2024-11-05 (basic/transports#backwards-compatibility).
func judgeSSE(c *Conversation, rec *Recorder) {
	if c.Transport != transport.NameSSE {
		return
	}
	var stream *wire.HTTPExchange
	for _, x := range c.HTTP {
		// A GET of a foreign origin has to be refused, and a GET for something
		// else, such as JSON, does not ask for a stream.
		h := x.Request.HTTP.Header
		if x.Method() == http.MethodGet && !deliberate(x) && h.Get("Origin") == "" &&
			(h.Get("Accept") == "" || names(h, typeEvents) || names(h, "*/*")) {
			stream = x
			break
		}
	}
	if stream == nil || stream.Head == nil {
		return
	}
	if !stream.OK() || stream.MediaType() != typeEvents {
		// If nothing is there, the stream is elsewhere.
		if stream.Status() != http.StatusUnauthorized && stream.Status() != http.StatusNotFound &&
			!rec.trace.listens(stream) {
			rec.Fail(ids.SSEServerSSEEndpoint, wire.Server,
				fmt.Sprintf("the GET was answered with HTTP status %d and the Content-Type %s, not with 200 and an "+
					"event stream", stream.Status(), wire.Quote(stream.MediaType(), 60)), stream.Events()...)
		}
		return
	}
	rec.Pass(ids.SSEServerSSEEndpoint, wire.Server)
	announced := judgeEndpointEvent(c, stream, rec)
	for _, e := range stream.Messages {
		judgeMessageEvent(e, rec)
	}
	for _, x := range c.HTTP {
		if len(x.Sent) > 0 && x.Sent[0].Kind == wire.KindMessage && !streamable(x, stream) {
			c.judgeLegacyPost(x, stream, announced, rec)
		}
	}
}

// listening is the time for which the stream of a connection was open.
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
		for _, x := range l.Conversation().HTTP {
			if x.Method() != http.MethodGet || x.Status() != http.StatusOK {
				continue
			}
			open := listening{url: x.Request.HTTP.URL, from: x.Head.At, to: math.MaxInt64}
			if x.End != nil {
				open.to = x.End.At
			}
			all = append(all, open)
		}
	}
	return all
}

// listens reports whether the stream was open for another client when the GET
// for it was answered: a server may serve one at a time (docs/positions.md,
// several-clients).
func (t traceFacts) listens(x *wire.HTTPExchange) bool {
	return slices.ContainsFunc(t.listening, func(l listening) bool {
		return l.url == x.Request.HTTP.URL && l.from < x.Head.At && x.Head.At < l.to
	})
}

// judgeEndpointEvent judges the first event and returns it.
func judgeEndpointEvent(c *Conversation, stream *wire.HTTPExchange, rec *Recorder) *wire.Event {
	var first, endpoint *wire.Event
	for _, e := range c.Events {
		if e.Stream != stream.Stream || e.From != wire.Server || e.SSE == nil || e.Raw == nil {
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
		// The check that opened the stream decides how long to wait for it. A client
		// that goes first has not waited, and a limit may have kept the event out of
		// the record.
		if stream.End != nil && stream.End.From == wire.Server && !stream.Cut() {
			rec.Fail(ids.SSEServerEndpointEvent, wire.Server, "the stream ended without an endpoint event",
				stream.Events(stream.End)...)
		}
		return nil
	}
	rec.Pass(ids.SSEServerEndpointEvent, wire.Server)
	rec.Check(first == endpoint, ids.SSEServerEndpointEventFirst, wire.Server,
		"another event came before the endpoint event", first, endpoint)
	text := string(endpoint.Raw)
	_, err := url.Parse(text)
	switch {
	case text == "":
		rec.Fail(ids.SSEServerEndpointEventURI, wire.Server, "the endpoint event is empty", endpoint)
	case err != nil || strings.ContainsAny(text, " \t\r\n\"{}<>"):
		rec.Fail(ids.SSEServerEndpointEventURI, wire.Server, "the data of the endpoint event is not a URI", endpoint)
	}
	return endpoint
}

func judgeMessageEvent(e *wire.Event, rec *Recorder) {
	if e.Member || e.SSE == nil {
		return
	}
	name := e.SSE.Event
	rec.Check(name == "" || name == "message", ids.SSEServerMessageEvents, wire.Server,
		"a message came as an event of type "+wire.Quote(name, 60)+", not message", e)
	switch {
	case e.Msg.Has(wire.TooDeep), e.Msg.Has(wire.TooLarge), e.Dropped > 0:
	case e.Msg.Kind == wire.Invalid, e.Msg.Kind == wire.Batch:
		rec.Fail(ids.SSEServerMessageJSON, wire.Server,
			"the data of a message event is not one JSON-RPC message: "+faults(e.Msg), e)
	default:
		rec.Pass(ids.SSEServerMessageJSON, wire.Server)
	}
}

// streamable reports whether a message was posted to the URL of the stream as in
// Streamable HTTP: such a client opened the stream to listen, and has not noticed
// that the server speaks only the older transport.
func streamable(x, stream *wire.HTTPExchange) bool {
	h := x.Request.HTTP.Header
	return location(x.Request.HTTP.URL) == location(stream.Request.HTTP.URL) && names(h, typeJSON) &&
		names(h, typeEvents)
}

// judgeLegacyPost judges a message of the client and what became of it.
func (c *Conversation) judgeLegacyPost(x, stream *wire.HTTPExchange, announced *wire.Event, rec *Recorder) {
	if announced == nil {
		return
	}
	target, err := url.Parse(stream.Request.HTTP.URL)
	if err == nil {
		target, err = target.Parse(string(announced.Raw))
	}
	if err == nil {
		rec.Check(x.Method() == http.MethodPost && leadsTo(x.Request.HTTP.URL, target) && x.Request.Seq > announced.Seq,
			ids.SSEClientPostToEndpoint, wire.Client, "a message was not posted to the announced URI",
			append([]*wire.Event{announced}, x.Events()...)...)
	}
	m := x.Message()
	if m == nil || m.Msg.Kind == wire.Invalid || len(m.Msg.Issues) > 0 || deliberate(x) || x.Head == nil ||
		stream.End != nil && stream.End.Seq < x.Head.Seq {
		return // the session ends with its stream
	}
	if err == nil && !leadsTo(x.Request.HTTP.URL, target) {
		return // another URI than the announced one
	}
	if unauthorized(x) {
		return
	}
	rec.Check(x.OK(), ids.SSEServerPostEndpoint, wire.Server,
		fmt.Sprintf("a message was answered with HTTP status %d, not with 2xx", x.Status()), x.Events()...)
	if x.OK() {
		rec.Pass(ids.SSEServerEndpointEventURI, wire.Server)
	}
	if m.Msg.Kind != wire.Request {
		return
	}
	onStream, inBody := false, (*wire.Event)(nil)
	if r := c.Of(m); r != nil {
		for _, e := range r.Responses() {
			onStream = onStream || e.Stream == stream.Stream
			if e.Stream == x.Stream {
				inBody = e
			}
		}
	}
	switch {
	case onStream:
		rec.Pass(ids.SSEServerResponsesOnStream, wire.Server)
		if c.Init != nil && m == c.Init.Request && c.Initialized != nil {
			rec.Pass(ids.SSEClientMessageEvents, wire.Client)
		}
	case inBody != nil:
		rec.Fail(ids.SSEServerResponsesOnStream, wire.Server,
			"the response came in the answer to the POST, not on the stream", x.Events(inBody)...)
	}
}

// leadsTo reports whether a URL is the one that was announced. The trace has the query without its secrets, so only
// its presence is compared.
func leadsTo(raw string, announced *url.URL) bool {
	u, err := url.Parse(raw)
	return err == nil && location(raw) == location(announced.String()) && (announced.RawQuery == "" || u.RawQuery != "")
}
