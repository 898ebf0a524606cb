package wire

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Exchange is a request with everything that refers to it.
type Exchange struct {
	Request *Event
	// Response is the first response; nil if there is none.
	Response *Event
	// Further holds the responses after the first one.
	Further []*Event
	// Head is the head of the HTTP response on the stream of the request, and Body
	// what the peer sent there instead of a message. Both are nil over stdio.
	Head, Body *Event
	// Cancelled is the cancellation that the requester sent, or nil.
	Cancelled *Event
	// Progress holds the progress notifications for the request's token.
	Progress []*Event
	// Token is the request's progress token; nil when it has none.
	Token any
	// Resembling is set when the first response carries an id of another type.
	Resembling bool
	// Shared is set when another request with the same id was open at the same time: which
	// of the responses is meant for which cannot be told.
	Shared bool

	later   *Exchange // the next request with the same id, or nil
	oldest  *Exchange // in the newest request with an id: the first unanswered one with that id, or nil
	settled bool      // no response without an id can mean this request
}

// From returns who made the request.
func (x *Exchange) From() Party { return x.Request.From }

// Method returns the method of the request.
func (x *Exchange) Method() string { return x.Request.Msg.Method }

// Result returns the result object of the first response, or nil.
func (x *Exchange) Result() map[string]any {
	if x.Response == nil {
		return nil
	}
	result, _ := x.Response.Msg.Result.(map[string]any)
	return result
}

// Capabilities returns those that the answer to an initialize declares, or nil.
func (x *Exchange) Capabilities() map[string]any {
	capabilities, _ := x.Result()["capabilities"].(map[string]any)
	return capabilities
}

// Error returns the error of the first response, or nil when that is a result or
// there is none.
func (x *Exchange) Error() *Error {
	if x.Response == nil || x.Response.Msg.Kind != ErrorResponse {
		return nil
	}
	return x.Response.Msg.Error
}

// Responses returns all responses, oldest first.
func (x *Exchange) Responses() []*Event {
	if x.Response == nil {
		return nil
	}
	return append([]*Event{x.Response}, x.Further...)
}

// Events returns the request, the head and the body of the HTTP response, and the
// responses.
func (x *Exchange) Events() []*Event {
	events := make([]*Event, 0, 4+len(x.Further))
	if x.Request != nil {
		events = append(events, x.Request)
	}
	for _, e := range []*Event{x.Head, x.Body} {
		// The stream that brings a request of the server began before it.
		if e != nil && (x.Request == nil || e.Seq > x.Request.Seq) {
			events = append(events, e)
		}
	}
	return append(events, x.Responses()...)
}

// HTTPExchange is an HTTP request with its response: everything that a log holds
// of one stream.
type HTTPExchange struct {
	Stream   string
	Request  *Event   // its head; nil in a damaged trace
	Sent     []*Event // messages and bodies of the client, without members of batches
	Head     *Event   // of the response; nil when none came
	Messages []*Event // of the server, without members of batches
	Others   []*Event // further SSE events and bodies of the server
	End      *Event   // nil if it is not in the log
	// Last is the last SSE event that has an id, or nil.
	Last *Event
	// Retry is the pause that the server last asked for; negative if it did not.
	Retry time.Duration

	carried []*Exchange // whose requests travelled on the stream
}

// Method returns the method of the HTTP request.
func (x *HTTPExchange) Method() string { return x.Request.HTTP.Method }

// preflight reports whether a browser asks whether a page may make a request: it carries
// nothing of what the page sends (Fetch Standard, section 3.3.2).
func (x *HTTPExchange) preflight() bool {
	return x.Method() == http.MethodOptions && x.Request.HTTP.Header.Get("Access-Control-Request-Method") != ""
}

// Status returns the HTTP status, or zero when no response came.
func (x *HTTPExchange) Status() int {
	if x.Head == nil {
		return 0
	}
	return x.Head.HTTP.Status
}

// OK reports whether the status is one of success.
func (x *HTTPExchange) OK() bool { return x.Status()/100 == 2 }

// MediaType returns the media type of the response in lower case, without its
// parameters; "" when there is none.
func (x *HTTPExchange) MediaType() string {
	if x.Head == nil {
		return ""
	}
	name, _, err := mime.ParseMediaType(x.Head.HTTP.Header.Get("Content-Type"))
	if err != nil {
		name, _, _ = strings.Cut(x.Head.HTTP.Header.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// Message returns the one message that the client posted, or nil.
func (x *HTTPExchange) Message() *Event {
	if len(x.Sent) == 1 && x.Sent[0].Kind == KindMessage {
		return x.Sent[0]
	}
	return nil
}

// Body returns the last body that the server sent instead of a message, or nil.
func (x *HTTPExchange) Body() *Event {
	for _, e := range slices.Backward(x.Others) {
		if e.Kind == KindBody {
			return e
		}
	}
	return nil
}

// CutEvent returns the SSE event inside which the server ended its answer to messages, or nil: an event counts only
// with the empty line behind it (HTML Standard, section 9.2.6). A connection that broke may break anywhere.
func (x *HTTPExchange) CutEvent() *Event {
	if len(x.Sent) == 0 || !x.Complete() {
		return nil
	}
	i := slices.IndexFunc(x.Others, func(e *Event) bool {
		return e.Kind == KindSSE && strings.Contains(e.Note, InsideEvent)
	})
	if i < 0 {
		return nil
	}
	return x.Others[i]
}

// Complete reports whether the body of the response ended by itself.
func (x *HTTPExchange) Complete() bool {
	return x.End != nil && x.End.From == Server && x.End.Note == ""
}

// Why a stream ends in the record before it does so on the wire.
const (
	// Stopped begins what is said of a stream or connection of which too much came.
	Stopped    = "reading was stopped: "
	unrecorded = "what it held may not have been recorded"
)

// Cut reports whether a limit ended the record before the response ended.
func (x *HTTPExchange) Cut() bool {
	return x.End != nil && (x.End.Note == unrecorded || strings.HasPrefix(x.End.Note, Stopped))
}

// Resumes reports whether the request asks to go on with an earlier stream
// (basic/transports#resumability-and-redelivery).
func (x *HTTPExchange) Resumes() bool { return x.Request.HTTP.Header.Get(headerLast) != "" }

// Events returns the request, what the client sent with it and the head of the
// response, followed by more events.
func (x *HTTPExchange) Events(more ...*Event) []*Event {
	events := make([]*Event, 0, 2+len(x.Sent)+len(more))
	for _, e := range append(append([]*Event{x.Request}, x.Sent...), x.Head) {
		if e != nil {
			events = append(events, e)
		}
	}
	return append(events, more...)
}

func (x *HTTPExchange) add(e *Event) {
	if e.SSE != nil && e.SSE.HasID {
		x.Last = e
	}
	if e.SSE != nil && e.SSE.Retry != "" {
		if ms, err := strconv.ParseInt(e.SSE.Retry, 10, 32); err == nil && ms >= 0 {
			x.Retry = time.Duration(ms) * time.Millisecond
		}
	}
	switch {
	case e.Kind == KindHTTPRequest && x.Request == nil && e.HTTP != nil:
		x.Request = e
	case e.Kind == KindHTTPResponse && x.Head == nil && e.HTTP != nil:
		x.Head = e
		for _, asked := range x.carried {
			asked.Head = e
		}
	case e.Kind == KindStreamEnd:
		x.End = e
	case e.Member:
	case e.From == Client && (e.Kind == KindMessage || e.Kind == KindBody):
		x.Sent = append(x.Sent, e)
	case e.From == Server && e.Kind == KindMessage:
		x.Messages = append(x.Messages, e)
	case e.From == Server && (e.Kind == KindSSE || e.Kind == KindBody):
		x.Others = append(x.Others, e)
		if e.Kind == KindBody {
			x.gotBody(e)
		}
	}
}

func (x *HTTPExchange) gotBody(e *Event) {
	for _, asked := range x.carried {
		if asked.From() != e.From {
			asked.Body = e
		}
	}
}

// Stray is a response that belongs to no request.
type Stray struct {
	Event *Event
	// Cause is the newest message of the peer before it, or nil.
	Cause *Event
	// Awaited says that a request of the peer was open then.
	Awaited bool
}

// TooMany reports whether the head of a response refuses a request because of the load: too many requests, or a busy
// server that says when to come back (RFC 9110, section 15.6.4). The request then counts as not made.
func TooMany(head *Event) bool {
	if head == nil || head.Kind != KindHTTPResponse {
		return false
	}
	busy := head.HTTP.Status == http.StatusServiceUnavailable && head.HTTP.Header.Get("Retry-After") != ""
	return busy || head.HTTP.Status == http.StatusTooManyRequests
}

// Deferred reports whether a request was refused for a transient reason; it then counts as not made. An answered
// request did reach the server.
func (x *Exchange) Deferred() bool {
	return TooMany(x.Head) || x.Response == nil && Unreached(x.Head)
}

// Momentary reports whether a message was refused for a reason of the moment, so that it may be sent again.
func Momentary(head *Event) bool { return TooMany(head) || Unreached(head) }

// Unreached reports whether the head of a response says that a gateway got no answer for the moment (RFC 9110,
// sections 15.6.3 to 15.6.5).
func Unreached(head *Event) bool {
	if head == nil || head.Kind != KindHTTPResponse {
		return false
	}
	switch head.HTTP.Status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
