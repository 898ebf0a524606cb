package judge

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var httpRules = []Rule{
	{
		Name: "HTTP requests",
		Requirements: []string{ids.HTTPClientPostPerMessage, ids.HTTPClientPostToEndpoint, ids.HTTPClientPostMethod,
			ids.HTTPClientPostAcceptJSON, ids.HTTPClientPostAcceptSSE, ids.HTTPClientBodySingleMessage,
			ids.HTTPClientGetAccept, ids.HTTPClientGet405Tolerated, ids.HTTPClientResumeGet,
			ids.HTTPClientDeleteSession},
		Judge: over(judgeHTTPRequests, transport.NameHTTP),
	},
	{
		Name: "HTTP answers",
		Requirements: []string{ids.HTTPServerEndpointPost, ids.HTTPServerNotification202, ids.HTTPServerResponse202,
			ids.HTTPServerAcceptedNoBody, ids.HTTPServerUnacceptableErrorStatus, ids.HTTPServerRequestAnswerType,
			ids.HTTPServerJSONOneObject, ids.HTTPServerGetStreamOr405, ids.HTTPClientJSONAnswer,
			ids.HTTPClientSSEAnswer},
		Judge: over(judgeHTTPAnswers, transport.NameHTTP),
	},
	{
		Name: "HTTP sessions",
		Requirements: []string{ids.HTTPServerSessionIDCharset, ids.HTTPServerSessionIDAtInitialization,
			ids.HTTPServerInitializeWithoutSession, ids.HTTPClientSessionHeader, ids.HTTPClientVersionHeader,
			ids.HTTPClientVersionHeaderNegotiated, ids.HTTPClientReinitializeOn404,
			ids.HTTPClientReinitializeWithoutSessionID, ids.HTTPClientDeleteSession,
			ids.HTTPClientDelete405Tolerated},
		Judge: over(judgeHTTPSessions, transport.NameHTTP),
	},
}

// Names of headers as net/http spells them.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerLast    = "Last-Event-Id"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// deliberate reports whether something about a request is broken on purpose.
func deliberate(x *wire.HTTPExchange) bool {
	broken := func(e *wire.Event) bool { return len(e.Deliberate) > 0 }
	return broken(x.Request) || slices.ContainsFunc(x.Sent, broken)
}

// unauthorized reports whether a request was refused because it lacks authorization. Such a refusal says nothing
// about the request itself (basic/authorization#error-handling).
func unauthorized(x *wire.HTTPExchange) bool {
	return x.Status() == http.StatusUnauthorized ||
		x.Status() == http.StatusForbidden && x.Head.HTTP.Header.Get(headerChallenge) != ""
}

// names reports whether an Accept header names a media type as supported. A wildcard names
// none (docs/positions.md, accept-wildcard), and the weight 0 says that a type is not acceptable
// (RFC 9110, section 12.4.2).
func names(h http.Header, want string) bool {
	for item := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		name, params, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), want) && !refused(params) {
			return true
		}
	}
	return false
}

// refused reports whether the parameters of an element of Accept have the weight 0.
func refused(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return err == nil && weight == 0
	}
	return false
}

// location returns the path of a recorded URL, without its query.
func location(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// wellKnown reports whether a URL is one of metadata and not the MCP endpoint. Clients also look for metadata below the
// path of the endpoint (OpenID Connect Discovery 1.0, section 4).
func wellKnown(raw string) bool { return strings.Contains(location(raw), "/.well-known/") }

// basic/transports#sending-messages-to-the-server, #listening-for-messages-from-the-server
func judgeHTTPRequests(c *Conversation, rec *Recorder) {
	endpoint := ""
	var declined repeats
	for _, x := range c.HTTP {
		if len(x.Sent) > 0 && x.Sent[0].Kind == wire.KindMessage {
			if endpoint == "" {
				endpoint = location(x.Request.HTTP.URL)
			}
			c.judgePost(x, endpoint, rec)
		}
		if last := x.Request.HTTP.Header.Get(headerLast); last != "" {
			rec.Check(x.Method() == http.MethodGet && (endpoint == "" || location(x.Request.HTTP.URL) == endpoint),
				ids.HTTPClientResumeGet, wire.Client,
				"a stream was resumed with something other than a GET at the MCP endpoint", x.Events()...)
		}
		if x.Method() == http.MethodDelete && x.Request.HTTP.Header.Get(headerSession) != "" && endpoint != "" {
			rec.Check(location(x.Request.HTTP.URL) == endpoint, ids.HTTPClientDeleteSession, wire.Client,
				"the DELETE for the session goes to another path than the messages", x.Events()...)
		}
		if x.Method() != http.MethodGet || wellKnown(x.Request.HTTP.URL) {
			continue
		}
		rec.Check(names(x.Request.HTTP.Header, typeEvents), ids.HTTPClientGetAccept, wire.Client,
			"the Accept header of the GET does not name "+typeEvents, x.Request)
		if x.Status() == http.StatusMethodNotAllowed {
			c.judgeDeclined(x, declined.hurried(x), rec)
		}
	}
}

func (c *Conversation) judgePost(x *wire.HTTPExchange, endpoint string, rec *Recorder) {
	h := x.Request.HTTP.Header
	array := x.Sent[0].Msg.Kind == wire.Batch
	batch := len(x.Sent) > 1 || array
	if !array || !c.Older() {
		rec.Check(!batch, ids.HTTPClientPostPerMessage, wire.Client, "several messages came in one request",
			x.Events()...)
		valid := !batch && x.Sent[0].Msg.Kind != wire.Invalid && x.Sent[0].Dropped == 0
		problem := "the body is not a single message"
		if !batch && !valid {
			problem += ": " + faults(x.Sent[0].Msg)
		}
		rec.Check(valid || x.Sent[0].Msg.Has(wire.TooDeep) || x.Sent[0].Msg.Has(wire.TooLarge),
			ids.HTTPClientBodySingleMessage, wire.Client, problem, x.Events()...)
	}
	rec.Check(x.Method() == http.MethodPost, ids.HTTPClientPostMethod, wire.Client,
		"a message was sent with the method "+wire.Quote(x.Method(), 40), x.Events()...)
	rec.Check(location(x.Request.HTTP.URL) == endpoint, ids.HTTPClientPostToEndpoint, wire.Client,
		"a message was sent to another path than the first message", x.Events()...)
	rec.Check(names(h, typeJSON), ids.HTTPClientPostAcceptJSON, wire.Client,
		"the Accept header of the POST does not name "+typeJSON, x.Request)
	rec.Check(names(h, typeEvents), ids.HTTPClientPostAcceptSSE, wire.Client,
		"the Accept header of the POST does not name "+typeEvents, x.Request)
}

// repeats are requests of one kind that the server declines.
type repeats struct{ first, last *wire.HTTPExchange }

// A client repeats a request without pause if less than pause lies between the requests, for at least sustained. By
// then the client has read that its request was declined.
const (
	pause     = time.Second
	sustained = 5 * time.Second
)

// hurried adds a declined request, and reports whether the client repeats it without pause. The number of requests
// says nothing: they may have been made at once, or be years apart.
func (r *repeats) hurried(x *wire.HTTPExchange) bool {
	if r.last == nil || x.Request.At-r.last.Request.At >= pause {
		r.first = x
	}
	r.last = x
	return x.Request.At-r.first.Head.At >= sustained
}

func (c *Conversation) judgeDeclined(x *wire.HTTPExchange, hurried bool, rec *Recorder) {
	const id = ids.HTTPClientGet405Tolerated
	if hurried {
		rec.Fail(id, wire.Client, "the client repeated the GET at once although it had been answered with 405",
			x.Events()...)
		return
	}
	for _, later := range c.HTTP {
		if m := later.Message(); m != nil && m.Seq > x.Head.Seq && m.Msg.Kind == wire.Request {
			rec.Pass(id, wire.Client)
			return
		}
	}
}

func judgeHTTPAnswers(c *Conversation, rec *Recorder) {
	for _, x := range c.HTTP {
		m := x.Message()
		if m == nil || x.Method() != http.MethodPost || x.Head == nil {
			continue
		}
		switch {
		case m.Msg.Kind == wire.Request && len(m.Msg.Issues) == 0:
			c.judgeRequestAnswer(x, m, rec)
		case m.Msg.Kind == wire.Notification && len(m.Msg.Issues) == 0:
			judgeAcknowledged(x, ids.HTTPServerNotification202, "notification", rec)
		case m.Msg.IsResponse() && len(m.Msg.Issues) == 0:
			judgeAcknowledged(x, ids.HTTPServerResponse202, "response", rec)
			c.judgeRefusedAnswer(x, m, rec)
		}
	}
	c.judgeGets(rec)
}

// judgeAcknowledged judges the answer to a notification or a response.
func judgeAcknowledged(x *wire.HTTPExchange, id, what string, rec *Recorder) {
	const refused = ids.HTTPServerUnacceptableErrorStatus
	problem := slices.IndexFunc(x.Messages, func(e *wire.Event) bool { return e.Msg.Kind == wire.ErrorResponse })
	switch status := x.Status(); {
	case x.OK() && problem >= 0:
		rec.Fail(refused, wire.Server,
			fmt.Sprintf("a %s was refused with an error in the body, but with HTTP status %d, not with an error status",
				what, status), x.Events(x.Messages[problem])...)
	case x.OK():
		rec.Check(status == http.StatusAccepted, id, wire.Server,
			fmt.Sprintf("an accepted %s was answered with HTTP status %d, not with 202", what, status), x.Events()...)
	case status >= 400:
		rec.Pass(refused, wire.Server)
	default:
		rec.Fail(refused, wire.Server,
			fmt.Sprintf("a %s was answered with HTTP status %d, not with 202 or an error status", what, status),
			x.Events()...)
	}
	if x.Status() != http.StatusAccepted || x.End == nil {
		return
	}
	if body := append(x.Messages[:len(x.Messages):len(x.Messages)], x.Others...); len(body) > 0 {
		rec.Fail(ids.HTTPServerAcceptedNoBody, wire.Server, "the answer 202 to a "+what+" has a body",
			x.Events(body[0])...)
	} else {
		rec.Pass(ids.HTTPServerAcceptedNoBody, wire.Server)
	}
}

// judgeRefusedAnswer warns of a server that refuses the response to its own
// request while it still waits for it. A server may refuse any message, but then
// its request was pointless.
func (c *Conversation) judgeRefusedAnswer(x *wire.HTTPExchange, m *wire.Event, rec *Recorder) {
	asked := c.Of(m)
	if wire.TooMany(x.Head) {
		return
	}
	if asked == nil || asked.Cancelled != nil && asked.Cancelled.Seq < x.Head.Seq || asked.Response != m ||
		x.Status()/100 != 4 || x.Status() == http.StatusNotFound ||
		deliberate(x) || unauthorized(x) {
		return
	}
	if h := x.Request.HTTP.Header; h.Get(headerSession) != c.sessionID() ||
		len(h.Values(headerVersion)) > 0 && h.Get(headerVersion) != c.Version {
		return // the server may have refused the header
	}
	if asking := c.Carrier(asked.Request); asking != nil && asking.End != nil && asking.End.Seq < x.Head.Seq {
		return
	}
	for _, y := range c.Exchanges {
		if y.From() != wire.Client || y.Request.Seq > asked.Request.Seq {
			continue
		}
		// The server may have asked on behalf of this request, and no longer waits.
		for _, over := range []*wire.Event{y.Cancelled, y.Response} {
			if over != nil && over.Seq > asked.Request.Seq && over.Seq < x.Head.Seq {
				return
			}
		}
	}
	rec.Warn(ids.HTTPServerResponse202, wire.Server,
		fmt.Sprintf("the response to a request of the server's own was refused with HTTP status %d", x.Status()),
		x.Events(asked.Request)...)
}

// judgeRequestAnswer judges the answer to a valid request. An error status is
// judged where it is provoked.
func (c *Conversation) judgeRequestAnswer(x *wire.HTTPExchange, m *wire.Event, rec *Recorder) {
	const id = ids.HTTPServerRequestAnswerType
	if m.Msg.Method == "initialize" && len(x.Request.HTTP.Header.Values(headerSession)) == 0 {
		c.judgeFirstPost(x, rec)
	}
	if !x.OK() {
		return
	}
	if r := c.Of(m); r != nil && r.Cancelled != nil && r.Cancelled.Seq < x.Head.Seq && len(x.Messages) == 0 {
		return // a cancelled request needs no response (docs/positions.md, cancelled-post)
	}
	switch kind := x.MediaType(); {
	case x.Status() == http.StatusAccepted && len(x.Messages) == 0 && kind != typeEvents:
		rec.Fail(id, wire.Server, "a request was answered with 202 and no body, not with JSON or an event stream",
			x.Events()...)
	case kind == typeJSON:
		c.judgeJSON(x, m, rec)
		if len(x.Messages) == 1 && looksLikeEvents(x.Messages[0].Raw) {
			rec.Fail(id, wire.Server, "the body is an event stream, although its Content-Type says "+typeJSON,
				x.Events(x.Messages...)...)
			return
		}
		rec.Pass(id, wire.Server)
		c.judgeUnderstood(x, m, ids.HTTPClientJSONAnswer, rec)
	case kind == typeEvents:
		rec.Pass(id, wire.Server)
		c.judgeUnderstood(x, m, ids.HTTPClientSSEAnswer, rec)
	case kind == "":
		rec.Fail(id, wire.Server, "the answer to a request has no Content-Type, or one that cannot be read",
			x.Events(x.Others...)...)
	default:
		rec.Fail(id, wire.Server, "the answer to a request has the Content-Type "+wire.Quote(kind, 60)+", not "+
			typeJSON+" or "+typeEvents, x.Events(first(x.Others)...)...)
	}
}

func first(events []*wire.Event) []*wire.Event { return events[:min(1, len(events))] }

func looksLikeEvents(raw []byte) bool {
	text := string(raw[:min(len(raw), 16)])
	return strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "event:") || strings.HasPrefix(text, "id:")
}

// judgeFirstPost judges the answer to an initialize that carries no session id.
func (c *Conversation) judgeFirstPost(x *wire.HTTPExchange, rec *Recorder) {
	switch x.Status() {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		// Any status may refuse a foreign Origin (basic/transports#security-warning).
		if !deliberate(x) && !c.legacy() && x.Request.HTTP.Header.Get("Origin") == "" {
			rec.Fail(ids.HTTPServerEndpointPost, wire.Server,
				fmt.Sprintf("the POST of initialize was answered with HTTP status %d", x.Status()), x.Events()...)
		}
	default:
		if x.OK() {
			rec.Pass(ids.HTTPServerEndpointPost, wire.Server)
			rec.Pass(ids.HTTPServerInitializeWithoutSession, wire.Server)
		}
		if x.Status() == http.StatusBadRequest || x.Status() == http.StatusConflict {
			c.judgeFurtherSession(x, rec)
		}
	}
}

// judgeFurtherSession judges that initialize was refused. A server may serve one client at
// a time (docs/positions.md, several-clients), but once a session has ended, its client MUST start
// a new one (basic/transports#session-management).
func (c *Conversation) judgeFurtherSession(x *wire.HTTPExchange, rec *Recorder) {
	asked := wire.At(x.Message().Msg.Params, "protocolVersion")
	served := false
	for _, l := range rec.trace.lives {
		if l.ended >= x.Request.At || l.begun > x.Request.At {
			return
		}
		served = served || l.asked == asked
	}
	if served && !deliberate(x) && x.Request.HTTP.Header.Get("Origin") == "" {
		rec.Fail(ids.HTTPServerInitializeWithoutSession, wire.Server,
			fmt.Sprintf("an initialize was refused with HTTP status %d although the session before it had ended",
				x.Status()), x.Events()...)
	}
}

// sessionLife is when a session of Streamable HTTP was begun, and when its DELETE was
// answered with success, if it was. 202 leaves open when the session ends (RFC 9110, section 15.3.3).
type sessionLife struct {
	asked        any // the version
	begun, ended time.Duration
	left         time.Duration // when its DELETE was sent
}

func sessionLives(logs []*wire.Log) []sessionLife {
	var all []sessionLife
	for _, l := range logs {
		if l.Transport != transport.NameHTTP {
			continue
		}
		c := l.Conversation()
		if !c.Handshaken() {
			continue
		}
		life := sessionLife{asked: wire.At(c.Init.Request.Msg.Params, "protocolVersion"), begun: c.Init.Response.At,
			ended: math.MaxInt64, left: math.MaxInt64}
		for _, x := range c.HTTP {
			if x.Method() == http.MethodDelete {
				life.left = min(life.left, x.Request.At)
			}
			if x.Method() == http.MethodDelete && x.OK() && x.Status() != http.StatusAccepted {
				life.ended = min(life.ended, x.Head.At)
			}
		}
		all = append(all, life)
	}
	return all
}

// oneAtATime reports whether an initialize was left waiting, until an event, by a server that opened each session
// only when no other one was open, while another one was (docs/positions.md, sessions-in-turn).
func (t traceFacts) oneAtATime(x *Exchange, until *wire.Event) bool {
	beside := func(from, to time.Duration) bool {
		return slices.ContainsFunc(t.lives, func(l sessionLife) bool { return l.begun < from && to < l.left })
	}
	return x.Method() == "initialize" && x.From() == wire.Client && beside(x.Request.At, until.At) &&
		!slices.ContainsFunc(t.lives, func(l sessionLife) bool { return beside(l.begun, l.begun) })
}

// legacy reports whether the server announced an endpoint of HTTP+SSE.
func (c *Conversation) legacy() bool {
	return once(c, "legacy", func() bool {
		return slices.ContainsFunc(c.Events, func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.Event == "endpoint"
		})
	})
}

// judgeUnderstood counts an answer that the client has obviously read: the answer
// to initialize, if the client went on after it.
func (c *Conversation) judgeUnderstood(x *wire.HTTPExchange, m *wire.Event, id string, rec *Recorder) {
	if c.Init != nil && c.Init.Request == m && c.Handshaken() && c.Initialized != nil &&
		c.Initialized.Seq > x.Head.Seq {
		rec.Pass(id, wire.Client)
	}
}

// judgeJSON judges a body that is labelled as JSON.
func (c *Conversation) judgeJSON(x *wire.HTTPExchange, m *wire.Event, rec *Recorder) {
	const id = ids.HTTPServerJSONOneObject
	if !x.Complete() {
		return // the client gave up, or the connection broke
	}
	if len(x.Messages) == 0 {
		rec.Fail(id, wire.Server, "the JSON answer to a request has an empty body", x.Events(x.Others...)...)
		return
	}
	answer := x.Messages[0]
	switch {
	case answer.Msg.Has(wire.TooDeep), answer.Msg.Has(wire.TooLarge), answer.Dropped > 0:
	case answer.Msg.IsResponse():
		if r := c.Of(answer); answer.Msg.ID.Usable() && r != nil && r.Request != m {
			rec.Fail(id, wire.Server, "the JSON answer is the response to another request", x.Events(answer)...)
			return
		}
		rec.Pass(id, wire.Server)
	case answer.Msg.Kind == wire.Batch:
		rec.Fail(id, wire.Server, "the JSON answer to a request is an array", x.Events(answer)...)
	case answer.Msg.Kind == wire.Invalid:
		rec.Fail(id, wire.Server, "the JSON answer to a request is not a JSON-RPC message: "+faults(answer.Msg),
			x.Events(answer)...)
	default:
		rec.Fail(id, wire.Server, "the JSON answer to a request is a "+answer.Msg.Kind.String(), x.Events(answer)...)
	}
}

// judgeGets judges the answers to well-formed GETs of a live session.
func (c *Conversation) judgeGets(rec *Recorder) {
	const id = ids.HTTPServerGetStreamOr405
	if !c.Handshaken() {
		return
	}
	session := c.sessionID()
	var open []*wire.HTTPExchange
	offered := false
	for i, x := range c.HTTP {
		if x.Method() == http.MethodDelete && x.OK() {
			return // the session has ended
		}
		if !c.asksToListen(x, session) {
			continue
		}
		if x.Resumes() {
			// A server may refuse to resume a stream, or answer 204, which ends the attempts (SSE standard). A
			// successful answer has to be a stream.
			if x.Status() == http.StatusOK && x.MediaType() != typeEvents {
				rec.Fail(id, wire.Server, "the GET with Last-Event-ID was answered with the Content-Type "+
					wire.Quote(x.MediaType(), 60)+", not with an event stream", x.Events()...)
			}
			continue
		}
		open = slices.DeleteFunc(open, func(other *wire.HTTPExchange) bool {
			return closedBefore(other.End, x.Request)
		})
		if x.Head == nil { // it may come with the first event
			open = append(open, x)
			continue
		}
		why := c.mayRefuse(x, c.HTTP[i+1:], len(open) > 0, offered)
		switch status := x.Status(); {
		case x.OK() && x.MediaType() == typeEvents:
			open, offered = append(open, x), true
			rec.Pass(id, wire.Server)
		case status == http.StatusMethodNotAllowed:
			rec.Pass(id, wire.Server)
		case status == http.StatusUnauthorized && x.Head.HTTP.Header.Get("WWW-Authenticate") != "":
			// Authorization comes first (basic/authorization#authorization-flow-steps).
		case why != "":
			rec.Note(id, wire.Server, fmt.Sprintf("%s: HTTP status %d", why, status))
		case x.OK():
			rec.Fail(id, wire.Server, "the GET was answered with the Content-Type "+wire.Quote(x.MediaType(), 60)+
				", not with an event stream", x.Events()...)
		default:
			rec.Fail(id, wire.Server,
				fmt.Sprintf("the GET was answered with HTTP status %d, not with an event stream or 405", status),
				x.Events()...)
		}
	}
}

// closedBefore reports whether the server knew that a stream had ended when it got a request. It learns a little later
// that the client has left.
func closedBefore(end, request *wire.Event) bool {
	return end != nil && end.Seq < request.Seq && (end.From == wire.Server || request.At-end.At > Crossing)
}

// asksToListen reports whether an exchange is a GET that asks for a listening stream of the session, as an ordinary
// client does.
func (c *Conversation) asksToListen(x *wire.HTTPExchange, session string) bool {
	h := x.Request.HTTP.Header
	version := h.Get(headerVersion) // another one may have to be refused
	return x.Method() == http.MethodGet && (!deliberate(x) || x.Resumes()) &&
		x.Request.Seq >= c.Init.Response.Seq && h.Get(headerSession) == session && h.Get("Origin") == "" &&
		names(h, typeEvents) && (version == "" || version == c.Version) &&
		location(x.Request.HTTP.URL) == location(c.HTTP[0].Request.HTTP.URL)
}

// mayRefuse returns why a server may refuse a listening stream, or "". busy says that another one is open, offered that
// one was opened before.
func (c *Conversation) mayRefuse(x *wire.HTTPExchange, later []*wire.HTTPExchange, busy, offered bool) string {
	status := x.Status()
	switch {
	case wire.TooMany(x.Head):
		return "a listening stream was refused because there were too many requests"
	case status < 400:
		return ""
	case busy:
		return "a second listening stream was refused"
	case wire.Unreached(x.Head) && slices.ContainsFunc(later, func(other *wire.HTTPExchange) bool {
		return other.Method() == http.MethodGet && !wire.Unreached(other.Head)
	}):
		return "a listening stream was refused and opened again later"
	case status == http.StatusNotFound && c.sessionID() != "" && (offered || c.ended(x.Head)):
		// How a client learns that the session has ended (#session-management).
		return "a listening stream could not be opened, or not be opened again"
	case !c.Ready(x.Request):
		return "before notifications/initialized the GET was refused"
	case !c.accepts():
		return "the server refused every request of the session, and the GET"
	}
	return ""
}

// sessionID returns the session id that came with the initialize result, or "".
func (c *Conversation) sessionID() string {
	if head := c.initHead(); head != nil {
		return head.HTTP.Header.Get(headerSession)
	}
	return ""
}

// initHead returns the head of the response that carries the initialize result.
func (c *Conversation) initHead() *wire.Event {
	if !c.Handshaken() {
		return nil
	}
	return c.Head(c.Init.Response)
}

// basic/transports#session-management, #protocol-version-header
func judgeHTTPSessions(c *Conversation, rec *Recorder) {
	c.judgeGivenIDs(rec)
	if c.Handshaken() {
		c.judgeLaterHeaders(rec)
	}
}

// judgeGivenIDs judges which session ids the server gives, and when.
func (c *Conversation) judgeGivenIDs(rec *Recorder) {
	const at, charset = ids.HTTPServerSessionIDAtInitialization, ids.HTTPServerSessionIDCharset
	head := c.initHead()
	if head != nil {
		rec.Pass(at, wire.Server)
	}
	for _, x := range c.HTTP {
		if x.Head == nil {
			continue
		}
		values, given := x.Head.HTTP.Header[headerSession]
		if !given {
			continue
		}
		for _, v := range values {
			rec.Check(visible(v), charset, wire.Server,
				"the session id "+wire.Quote(v, 80)+" has characters that are not visible ASCII", x.Head)
		}
		m := x.Message()
		initializes := m != nil && m.Msg.Method == "initialize"
		if initializes && len(values) > 1 {
			rec.Fail(at, wire.Server, "the answer to initialize gives several session ids", x.Head)
		}
		if head == nil || x.Head == head || initializes || !x.OK() || x.Request.Seq < head.Seq {
			continue
		}
		// A server may take a client that names no session for a new one.
		if own := x.Request.HTTP.Header.Get(headerSession); own != "" && len(values) > 0 &&
			values[0] != head.HTTP.Header.Get(headerSession) && values[0] != own {
			rec.Fail(at, wire.Server, "an answer after the initialization gives another session id", head, x.Request,
				x.Head)
		}
	}
}

// visible reports whether a session id is made of visible ASCII characters.
func visible(id string) bool {
	return id != "" && each(id, func(b byte) bool { return b > 0x20 && b < 0x7F })
}

// judgeLaterHeaders judges the headers that each request after the
// initialization has to carry.
func (c *Conversation) judgeLaterHeaders(rec *Recorder) {
	head := c.initHead()
	if head == nil {
		return
	}
	s := &sessionHeaders{Conversation: c, rec: rec, id: head.HTTP.Header.Get(headerSession), version: c.Version,
		opened: c.Init.Response, former: make(map[string]bool)}
	for _, x := range c.HTTP {
		m := x.Message()
		initializes := m != nil && m.Msg.Method == "initialize"
		switch {
		case x.Request.Seq < c.Init.Response.Seq || c.foreign[x.Stream] || !initializes && x.Request.Seq < s.opened.Seq:
			// There is no session until initialize is answered.
		case initializes:
			s.initialize(x)
		case c.answersEarly(m) || c.early(x, m, s.opened, s.told) || s.lost != nil && m != nil &&
			m.Msg.Kind == wire.Request && m.Msg.Method == "ping" && bare(x):
			// It may have been sent before the answer was read, or once the session was lost: a ping without session
			// and version may come before initialize is answered (basic/lifecycle#initialization).
		case s.names(x):
			s.request(x)
		}
	}
	if s.stuck != nil {
		rec.Fail(ids.HTTPClientReinitializeOn404, wire.Client,
			"requests still name a session that was answered with 404",
			append(s.lost.Events(), s.stuck.Events()...)...)
	}
}

// sessionHeaders judges the headers of requests by the session that counts at the time.
type sessionHeaders struct {
	*Conversation
	rec         *Recorder
	id, version string             // of the session
	opened      *wire.Event        // what gave the session
	former      map[string]bool    // ids of earlier sessions
	lost        *wire.HTTPExchange // the first request that was answered with 404
	stuck       *wire.HTTPExchange // the first that names the session after that
	told        *wire.HTTPExchange // the first that shows that the client read the answer
	deletes     repeats            // that were declined
	ending      bool               // the client has ended the session
}

// initialize judges a further initialize. If the server takes it, a new session counts from then on.
func (s *sessionHeaders) initialize(x *wire.HTTPExchange) {
	if s.lost != nil {
		s.rec.Pass(ids.HTTPClientReinitializeOn404, wire.Client)
		s.rec.Check(len(x.Request.HTTP.Header.Values(headerSession)) == 0, ids.HTTPClientReinitializeWithoutSessionID,
			wire.Client, "the initialize after 404 carries a session id", x.Events()...)
		s.lost, s.stuck = nil, nil
	}
	if x.OK() {
		s.former[s.id] = true
		s.id, s.version = x.Head.HTTP.Header.Get(headerSession), s.versionOf(x)
		s.opened, s.ending = x.Head, false
	}
}

// names judges the headers of a request that name session and version. It reports false if the request says no more
// of the session.
func (s *sessionHeaders) names(x *wire.HTTPExchange) bool {
	if x.Method() == http.MethodGet && (x.Resumes() || s.Initialized == nil) && s.told == nil &&
		len(x.Request.HTTP.Header.Values(headerVersion)) == 0 {
		judgeSessionHeader(x, s.id, s.rec)
		return false // it asks for the rest of the stream whose body has the version, or never read that
	}
	if s.told == nil {
		s.told = x
	}
	named := x.Request.HTTP.Header.Get(headerSession)
	if named != s.id && s.former[named] && !s.knew(x.Request, s.opened) {
		return false // on its way when the next session began
	}
	if s.ending && named == "" {
		return false // the client has ended its session
	}
	judgeSessionHeader(x, s.id, s.rec)
	// A client that refused the version has none to name when it ends the session, or listens until then.
	if x.Method() == http.MethodPost || s.Initialized != nil {
		judgeVersionHeader(x, s.version, s.rec)
	}
	return true
}

// request judges whether the client goes on with a session that is lost.
func (s *sessionHeaders) request(x *wire.HTTPExchange) {
	if x.Method() == http.MethodDelete {
		judgeDelete(x, s.id, &s.deletes, s.rec)
		s.ending = s.ending || x.Status() != http.StatusMethodNotAllowed
		if s.lost != nil && x.Request.Seq < s.lost.Head.Seq {
			s.lost = nil // it crossed this DELETE
		}
		return
	}
	if s.id == "" || x.Request.HTTP.Header.Get(headerSession) != s.id || deliberate(x) || s.ending {
		return // requests that cross the client's own DELETE find no session
	}
	switch {
	case s.lost != nil && s.stuck == nil && s.knew(x.Request, s.lost.Head):
		s.stuck = x
	case s.lost == nil && x.Status() == http.StatusNotFound && x.Method() == http.MethodPost:
		s.lost = x // without a route for GET, servers answer 404 as well
	}
}

// accepts reports whether the server took any message after initialize.
func (c *Conversation) accepts() bool {
	return slices.ContainsFunc(c.HTTP, func(x *wire.HTTPExchange) bool {
		return x.Method() == http.MethodPost && x.Request.Seq > c.Init.Response.Seq && x.OK()
	})
}

// bare reports whether a request names neither session nor version.
func bare(x *wire.HTTPExchange) bool {
	h := x.Request.HTTP.Header
	return len(h.Values(headerSession)) == 0 && len(h.Values(headerVersion)) == 0
}

// early reports whether a request may have been on its way when initialize was answered, so that its sender did not
// know the session: a ping at any time, and notifications as well, anything else only before the client has shown that
// it read the answer. A notifications/initialized shows it, unless it came right behind initialize. A response to a
// later request shows it as well. A request that comes long after that was sent after it.
func (c *Conversation) early(x *wire.HTTPExchange, m, opened *wire.Event, told *wire.HTTPExchange) bool {
	if c.knew(x.Request, opened) || told != nil && x.Request.At-told.Request.At >= overtaking {
		return false
	}
	switch {
	case x.Method() == http.MethodGet:
		return told == nil && len(x.Request.HTTP.Header.Values(headerSession)) == 0 // whichever version it hopes for
	case m != nil && told == nil && m.Msg.Method == "ping" && len(x.Request.HTTP.Header.Values(headerVersion)) == 0:
		return true // the head of the answer has the session id, and only its body the version
	case m != nil && m.Msg.Method == "notifications/initialized":
		return m == c.Initialized && len(x.Request.HTTP.Header.Values(headerSession)) == 0 &&
			m.At-c.Init.Request.At < Crossing
	case m == nil || !bare(x):
		return false
	case m.Msg.Method == "ping":
		return true
	case m.Msg.IsResponse():
		asked := c.Of(m)
		return told == nil && (asked == nil || asked.Request.Stream != opened.Stream || asked.Request.Seq < opened.Seq)
	}
	return told == nil || m.Msg.Kind == wire.Notification
}

// answersEarly reports whether a message responds to a request that the server
// made before it answered initialize: its sender may not have read the answer,
// which has the session id and the version.
func (c *Conversation) answersEarly(m *wire.Event) bool {
	return m != nil && m.Msg.IsResponse() && c.Of(m) != nil && c.Of(m).Request.Seq < c.Init.Response.Seq
}

// versionOf returns the version that an initialize settled on.
func (c *Conversation) versionOf(x *wire.HTTPExchange) string {
	for _, e := range x.Messages {
		if r := c.Of(e); r != nil && e.Msg.Kind == wire.Result {
			v, _ := wire.At(e.Msg.Result, "protocolVersion").(string)
			return v
		}
	}
	return ""
}

func judgeSessionHeader(x *wire.HTTPExchange, id string, rec *Recorder) {
	const session = ids.HTTPClientSessionHeader
	if id == "" || !visible(id) {
		return
	}
	switch values := x.Request.HTTP.Header.Values(headerSession); {
	case len(values) == 0:
		rec.Fail(session, wire.Client, "a request after the initialization lacks the session id", x.Events()...)
	case len(values) > 1 || values[0] != id:
		rec.Fail(session, wire.Client, "a request after the initialization carries another session id", x.Events()...)
	default:
		rec.Pass(session, wire.Client)
	}
}

func judgeVersionHeader(x *wire.HTTPExchange, version string, rec *Recorder) {
	values := x.Request.HTTP.Header.Values(headerVersion)
	if len(values) == 0 {
		if slices.Contains([]string{"2024-11-05", "2025-03-26"}, version) {
			return // these revisions do not have the header
		}
		rec.Fail(ids.HTTPClientVersionHeader, wire.Client,
			"a request after the initialization lacks MCP-Protocol-Version", x.Events()...)
		return
	}
	named := len(values) == 1 && (values[0] == version || revisionName.MatchString(values[0]))
	rec.Check(named, ids.HTTPClientVersionHeader, wire.Client,
		"MCP-Protocol-Version is "+wire.Quote(strings.Join(values, ", "), 60)+", which is not a protocol version",
		x.Events()...)
	if version == "" || !named {
		return
	}
	rec.Check(len(values) == 1 && values[0] == version, ids.HTTPClientVersionHeaderNegotiated, wire.Client,
		"MCP-Protocol-Version is "+wire.Quote(strings.Join(values, ", "), 60)+", not the negotiated version "+
			wire.Quote(version, 40), x.Events()...)
}

func judgeDelete(x *wire.HTTPExchange, id string, declined *repeats, rec *Recorder) {
	if id == "" {
		return
	}
	rec.Check(x.Request.HTTP.Header.Get(headerSession) == id, ids.HTTPClientDeleteSession, wire.Client,
		"the DELETE does not name the session", x.Events()...)
	if x.Status() == http.StatusMethodNotAllowed {
		rec.Check(!declined.hurried(x), ids.HTTPClientDelete405Tolerated, wire.Client,
			"the client repeated the DELETE at once although it had been answered with 405", x.Events()...)
	}
}
