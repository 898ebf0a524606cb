package judge

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

var httpRules = []Rule{
	{
		Name: "HTTP requests",
		Requirements: []string{
			"http.client.post-per-message", "http.client.post-to-endpoint", "http.client.post-method",
			"http.client.post-accept-json", "http.client.post-accept-sse", "http.client.body-single-message",
			"http.client.get-accept", "http.client.get-405-tolerated", "http.client.resume-get",
		},
		Judge: judgeHTTPRequests,
	},
	{
		Name: "HTTP answers",
		Requirements: []string{
			"http.server.single-endpoint", "http.server.endpoint-post", "http.server.notification-202",
			"http.server.response-202", "http.server.accepted-no-body", "http.server.unacceptable-error-status",
			"http.server.request-answer-type", "http.server.json-one-object", "http.server.get-stream-or-405",
			"http.client.json-answer", "http.client.sse-answer",
		},
		Judge: judgeHTTPAnswers,
	},
	{
		Name: "HTTP sessions",
		Requirements: []string{
			"http.server.session-id-charset", "http.server.session-id-at-initialization",
			"http.server.initialize-without-session", "http.client.session-header", "http.client.version-header",
			"http.client.version-header-negotiated", "http.client.reinitialize-on-404",
			"http.client.reinitialize-without-session-id", "http.client.delete-session", "http.client.delete-405-tolerated",
		},
		Judge: judgeHTTPSessions,
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

// httpExchange is one HTTP request with its response, as a log holds it under
// the name of a stream.
type httpExchange struct {
	name     string
	request  *wire.Event   // its head; nil in a damaged trace
	sent     []*wire.Event // messages and bodies of the client, without members of batches
	head     *wire.Event   // of the response; nil when none came
	messages []*wire.Event // of the server
	others   []*wire.Event // further events and bodies of the server
	end      *wire.Event   // nil when it was not awaited
}

func (x *httpExchange) method() string { return x.request.HTTP.Method }

func (x *httpExchange) status() int {
	if x.head == nil {
		return 0
	}
	return x.head.HTTP.Status
}

func (x *httpExchange) ok() bool { return x.status()/100 == 2 }

func (x *httpExchange) mediaType() string {
	if x.head == nil {
		return ""
	}
	name, _, err := mime.ParseMediaType(x.head.HTTP.Header.Get("Content-Type"))
	if err != nil {
		name, _, _ = strings.Cut(x.head.HTTP.Header.Get("Content-Type"), ";")
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// message returns the one message that the client posted, or nil.
func (x *httpExchange) message() *wire.Event {
	if len(x.sent) == 1 && x.sent[0].Kind == wire.KindMessage {
		return x.sent[0]
	}
	return nil
}

// deliberate reports whether something about the request is broken on purpose.
func (x *httpExchange) deliberate() bool {
	if x.request != nil && len(x.request.Deliberate) > 0 {
		return true
	}
	for _, e := range x.sent {
		if len(e.Deliberate) > 0 {
			return true
		}
	}
	return false
}

// refusesEntry reports whether the request was refused for want of
// authorization, which says nothing about what was asked for
// (basic/authorization#error-handling).
func (x *httpExchange) refusesEntry() bool {
	return x.status() == http.StatusUnauthorized || x.status() == http.StatusForbidden && x.head.HTTP.Header.Get(headerChallenge) != ""
}

// complete reports whether the body of the response ended by itself.
func (x *httpExchange) complete() bool {
	return x.end != nil && x.end.From == wire.Server && x.end.Note == ""
}

func (x *httpExchange) resumes() bool { return x.request.HTTP.Header.Get(headerLast) != "" }

// evidence returns the events that show request and answer.
func (x *httpExchange) evidence(more ...*wire.Event) []*wire.Event {
	var events []*wire.Event
	for _, e := range append(append([]*wire.Event{x.request}, x.sent...), x.head) {
		if e != nil {
			events = append(events, e)
		}
	}
	return append(events, more...)
}

// httpExchanges returns the HTTP exchanges of the conversation in the order in
// which they began.
func (c *Conversation) httpExchanges() []*httpExchange {
	if c.http != nil {
		return c.http
	}
	byName := make(map[string]*httpExchange)
	var all []*httpExchange
	for _, e := range c.Events {
		if e.Stream == "" {
			continue
		}
		x := byName[e.Stream]
		if x == nil {
			x = &httpExchange{name: e.Stream}
			byName[e.Stream] = x
			all = append(all, x)
		}
		x.add(e)
	}
	c.http = all[:0]
	for _, x := range all {
		if x.request != nil {
			c.http = append(c.http, x)
		}
	}
	return c.http
}

func (x *httpExchange) add(e *wire.Event) {
	switch {
	case e.Kind == wire.KindHTTPRequest && x.request == nil && e.HTTP != nil:
		x.request = e
	case e.Kind == wire.KindHTTPResponse && x.head == nil && e.HTTP != nil:
		x.head = e
	case e.Kind == wire.KindStreamEnd:
		x.end = e
	case e.Member:
	case e.From == wire.Client && (e.Kind == wire.KindMessage || e.Kind == wire.KindBody):
		x.sent = append(x.sent, e)
	case e.From == wire.Server && e.Kind == wire.KindMessage:
		x.messages = append(x.messages, e)
	case e.From == wire.Server && (e.Kind == wire.KindSSE || e.Kind == wire.KindBody):
		x.others = append(x.others, e)
	}
}

// names reports whether an Accept header names a media type. A wildcard names
// none (docs/positions.md, accept-wildcard).
func names(h http.Header, want string) bool {
	for item := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		name, _, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), want) {
			return true
		}
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

// basic/transports#sending-messages-to-the-server, #listening-for-messages-from-the-server
func judgeHTTPRequests(c *Conversation, o *Observer) {
	if c.Transport != transport.NameHTTP {
		return
	}
	endpoint, declined := "", 0
	for _, x := range c.httpExchanges() {
		if len(x.sent) > 0 && x.sent[0].Kind == wire.KindMessage {
			if endpoint == "" {
				endpoint = location(x.request.HTTP.URL)
			}
			c.judgePost(x, endpoint, o)
		}
		if last := x.request.HTTP.Header.Get(headerLast); last != "" {
			o.Check(x.method() == http.MethodGet && (endpoint == "" || location(x.request.HTTP.URL) == endpoint),
				"http.client.resume-get", wire.Client, "a stream is resumed with something else than a GET at the endpoint", x.evidence()...)
		}
		if x.method() != http.MethodGet {
			continue
		}
		o.Check(names(x.request.HTTP.Header, typeEvents), "http.client.get-accept", wire.Client,
			"the Accept header of the GET does not name "+typeEvents, x.request)
		if x.status() == http.StatusMethodNotAllowed {
			declined++
			c.judgeDeclined(x, declined, o)
		}
	}
}

func (c *Conversation) judgePost(x *httpExchange, endpoint string, o *Observer) {
	h := x.request.HTTP.Header
	array := x.sent[0].Msg.Kind == wire.Batch
	batch := len(x.sent) > 1 || array
	if !array || !c.Older() {
		o.Check(!batch, "http.client.post-per-message", wire.Client, "several messages came in one request", x.evidence()...)
		valid := !batch && x.sent[0].Msg.Kind != wire.Invalid && x.sent[0].Dropped == 0
		problem := "the body is no single message"
		if !batch && !valid {
			problem += ": " + faults(x.sent[0].Msg)
		}
		o.Check(valid || x.sent[0].Msg.Has(wire.TooDeep) || x.sent[0].Msg.Has(wire.TooLarge),
			"http.client.body-single-message", wire.Client, problem, x.evidence()...)
	}
	o.Check(x.method() == http.MethodPost, "http.client.post-method", wire.Client,
		"a message was sent with the method "+wire.Quote(x.method(), 40), x.evidence()...)
	o.Check(location(x.request.HTTP.URL) == endpoint, "http.client.post-to-endpoint", wire.Client,
		"a message was sent to another path than the first one", x.evidence()...)
	o.Check(names(h, typeJSON), "http.client.post-accept-json", wire.Client,
		"the Accept header of the POST does not name "+typeJSON, x.request)
	o.Check(names(h, typeEvents), "http.client.post-accept-sse", wire.Client,
		"the Accept header of the POST does not name "+typeEvents, x.request)
}

// maxDeclined is how often a GET may be repeated that was answered with 405.
const maxDeclined = 5

func (c *Conversation) judgeDeclined(x *httpExchange, times int, o *Observer) {
	const id = "http.client.get-405-tolerated"
	if times > maxDeclined {
		o.Violation(id, wire.Client, fmt.Sprintf("the GET was repeated %d times although it is answered with 405", times-1), x.evidence()...)
		return
	}
	for _, later := range c.httpExchanges() {
		if m := later.message(); m != nil && m.Seq > x.head.Seq && m.Msg.Kind == wire.Request {
			o.Exercised(id, wire.Client)
			return
		}
	}
}

func judgeHTTPAnswers(c *Conversation, o *Observer) {
	if c.Transport != transport.NameHTTP {
		return
	}
	places := make(map[string]bool)
	served := false
	ends := make(map[string]*wire.Event)
	for _, x := range c.httpExchanges() {
		ends[x.name] = x.end
	}
	for _, x := range c.httpExchanges() {
		places[location(x.request.HTTP.URL)] = true
		m := x.message()
		if m == nil || x.method() != http.MethodPost || x.head == nil {
			continue
		}
		switch {
		case m.Msg.Kind == wire.Request && len(m.Msg.Issues) == 0:
			c.judgeRequestAnswer(x, m, o)
			served = served || x.ok() && m.Msg.Method != "initialize"
		case m.Msg.Kind == wire.Notification && len(m.Msg.Issues) == 0:
			judgeAcknowledged(x, "http.server.notification-202", "notification", o)
		case m.Msg.IsResponse() && len(m.Msg.Issues) == 0:
			judgeAcknowledged(x, "http.server.response-202", "response", o)
			c.judgeRefusedAnswer(x, m, ends, o)
		}
	}
	if served && c.Handshaken() && len(places) == 1 {
		o.Exercised("http.server.single-endpoint", wire.Server)
	}
	c.judgeGets(o)
}

// judgeAcknowledged judges the answer to a notification or a response.
func judgeAcknowledged(x *httpExchange, id, what string, o *Observer) {
	const refused = "http.server.unacceptable-error-status"
	problem := errorIn(x.messages)
	switch status := x.status(); {
	case x.ok() && problem != nil:
		o.Violation(refused, wire.Server, fmt.Sprintf("a %s was refused with an error and the HTTP status %d", what, status), x.evidence(problem)...)
	case x.ok():
		o.Check(status == http.StatusAccepted, id, wire.Server,
			fmt.Sprintf("an accepted %s was answered with HTTP status %d, not with 202", what, status), x.evidence()...)
	case status >= 400:
		o.Exercised(refused, wire.Server)
	default:
		o.Violation(refused, wire.Server, fmt.Sprintf("a %s was answered with HTTP status %d, which is neither 202 nor an error", what, status), x.evidence()...)
	}
	if x.status() != http.StatusAccepted || x.end == nil {
		return
	}
	if body := append(x.messages[:len(x.messages):len(x.messages)], x.others...); len(body) > 0 {
		o.Violation("http.server.accepted-no-body", wire.Server, "the answer 202 to a "+what+" has a body", x.evidence(body[0])...)
	} else {
		o.Exercised("http.server.accepted-no-body", wire.Server)
	}
}

// judgeRefusedAnswer warns of a server that refuses what it has asked for and
// still waits for. What a server accepts is left to it, but then it is no use to
// have asked. ends holds the ends of all streams.
func (c *Conversation) judgeRefusedAnswer(x *httpExchange, m *wire.Event, ends map[string]*wire.Event, o *Observer) {
	asked := c.all[m]
	if x.status() == http.StatusTooManyRequests {
		return
	}
	if asked == nil || asked.Cancelled != nil && asked.Cancelled.Seq < x.head.Seq || asked.Response() != m || x.status()/100 != 4 || x.status() == http.StatusNotFound ||
		x.deliberate() || x.refusesEntry() {
		return
	}
	if h := x.request.HTTP.Header; h.Get(headerSession) != c.sessionID() || len(h.Values(headerVersion)) > 0 && h.Get(headerVersion) != c.Version {
		return // it had something else to refuse
	}
	if end := ends[asked.Request.Stream]; end != nil && end.Seq < x.head.Seq {
		return
	}
	for _, y := range c.Exchanges {
		if y.From() != wire.Client || y.Request.Seq > asked.Request.Seq {
			continue
		}
		// The server may have asked on behalf of this one, and waits no more.
		for _, over := range []*wire.Event{y.Cancelled, y.Response()} {
			if over != nil && over.Seq > asked.Request.Seq && over.Seq < x.head.Seq {
				return
			}
		}
	}
	o.Warning("http.server.response-202", wire.Server,
		fmt.Sprintf("the response to a request of the server's own was refused with HTTP status %d", x.status()), x.evidence(asked.Request)...)
}

func errorIn(messages []*wire.Event) *wire.Event {
	for _, e := range messages {
		if e.Msg.Kind == wire.ErrorResponse {
			return e
		}
	}
	return nil
}

// judgeRequestAnswer judges the answer to a valid request. An error status is
// judged where it is provoked.
func (c *Conversation) judgeRequestAnswer(x *httpExchange, m *wire.Event, o *Observer) {
	const id = "http.server.request-answer-type"
	if m.Msg.Method == "initialize" && len(x.request.HTTP.Header.Values(headerSession)) == 0 {
		c.judgeFirstPost(x, o)
	}
	if !x.ok() {
		return
	}
	if r := c.Of(m); r != nil && r.Cancelled != nil && r.Cancelled.Seq < x.head.Seq && len(x.messages) == 0 {
		return // nothing is a response that should not be sent (docs/positions.md, cancelled-post)
	}
	switch kind := x.mediaType(); {
	case x.status() == http.StatusAccepted && len(x.messages) == 0 && kind != typeEvents:
		o.Violation(id, wire.Server, "a request was only accepted with 202, without an answer", x.evidence()...)
	case kind == typeJSON:
		c.judgeJSON(x, m, o)
		if len(x.messages) == 1 && looksLikeEvents(x.messages[0].Raw) {
			o.Violation(id, wire.Server, "the body is an event stream, although its Content-Type says "+typeJSON, x.evidence(x.messages...)...)
			return
		}
		o.Exercised(id, wire.Server)
		c.judgeUnderstood(x, m, "http.client.json-answer", o)
	case kind == typeEvents:
		o.Exercised(id, wire.Server)
		c.judgeUnderstood(x, m, "http.client.sse-answer", o)
	case kind == "":
		o.Violation(id, wire.Server, "the answer to a request has no usable Content-Type", x.evidence(x.others...)...)
	default:
		o.Violation(id, wire.Server, "the answer to a request has the Content-Type "+wire.Quote(kind, 60), x.evidence(first(x.others)...)...)
	}
}

func first(events []*wire.Event) []*wire.Event { return events[:min(1, len(events))] }

func looksLikeEvents(raw []byte) bool {
	text := string(raw[:min(len(raw), 16)])
	return strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "event:") || strings.HasPrefix(text, "id:")
}

// judgeFirstPost judges how an initialize is taken that carries no session id.
func (c *Conversation) judgeFirstPost(x *httpExchange, o *Observer) {
	switch x.status() {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		if !x.deliberate() && !c.legacy() {
			o.Violation("http.server.endpoint-post", wire.Server,
				fmt.Sprintf("the POST of initialize was answered with HTTP status %d", x.status()), x.evidence()...)
		}
	default:
		if x.ok() {
			o.Exercised("http.server.endpoint-post", wire.Server)
			o.Exercised("http.server.initialize-without-session", wire.Server)
		}
	}
}

// legacy reports whether the server announced an endpoint of HTTP+SSE.
func (c *Conversation) legacy() bool {
	if c.hasLegacy == nil {
		found := slices.ContainsFunc(c.Events, func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.Event == "endpoint"
		})
		c.hasLegacy = &found
	}
	return *c.hasLegacy
}

// judgeUnderstood counts an answer that the client has obviously read: one to
// initialize after which it went on.
func (c *Conversation) judgeUnderstood(x *httpExchange, m *wire.Event, id string, o *Observer) {
	if c.Init != nil && c.Init.Request == m && c.Handshaken() && c.Initialized != nil && c.Initialized.Seq > x.head.Seq {
		o.Exercised(id, wire.Client)
	}
}

// judgeJSON judges a body that is labelled as JSON.
func (c *Conversation) judgeJSON(x *httpExchange, m *wire.Event, o *Observer) {
	const id = "http.server.json-one-object"
	if !x.complete() {
		return // the client gave up, or the connection broke
	}
	if len(x.messages) == 0 {
		o.Violation(id, wire.Server, "the JSON answer to a request has an empty body", x.evidence(x.others...)...)
		return
	}
	answer := x.messages[0]
	switch {
	case answer.Msg.Has(wire.TooDeep), answer.Msg.Has(wire.TooLarge), answer.Dropped > 0:
	case answer.Msg.IsResponse():
		if r := c.Of(answer); answer.Msg.ID.Usable() && r != nil && r.Request != m {
			o.Violation(id, wire.Server, "the JSON answer is the response to another request", x.evidence(answer)...)
			return
		}
		o.Exercised(id, wire.Server)
	case answer.Msg.Kind == wire.Batch:
		o.Violation(id, wire.Server, "the JSON answer to a request is an array", x.evidence(answer)...)
	case answer.Msg.Kind == wire.Invalid:
		o.Violation(id, wire.Server, "the JSON answer to a request is no JSON-RPC message: "+faults(answer.Msg), x.evidence(answer)...)
	default:
		o.Violation(id, wire.Server, "the JSON answer to a request is a "+answer.Msg.Kind.String(), x.evidence(answer)...)
	}
}

// judgeGets judges the answers to well-formed GETs of a live session.
func (c *Conversation) judgeGets(o *Observer) {
	const id = "http.server.get-stream-or-405"
	if !c.Handshaken() {
		return
	}
	session := c.sessionID()
	var open []*httpExchange
	offered := false
	for _, x := range c.httpExchanges() {
		if x.method() == http.MethodDelete && x.ok() {
			return // whatever comes now belongs to no session
		}
		h := x.request.HTTP.Header
		if x.method() != http.MethodGet || x.head == nil || x.deliberate() || x.request.Seq < c.Init.Response().Seq || x.resumes() ||
			h.Get(headerSession) != session || h.Get("Origin") != "" || !names(h, typeEvents) ||
			h.Get(headerVersion) != "" && h.Get(headerVersion) != c.Version || // may be one that has to be refused
			location(x.request.HTTP.URL) != location(c.httpExchanges()[0].request.HTTP.URL) {
			continue
		}
		open = slices.DeleteFunc(open, func(other *httpExchange) bool { return other.end != nil && other.end.Seq < x.request.Seq })
		busy := len(open) > 0
		switch status := x.status(); {
		case x.ok() && x.mediaType() == typeEvents:
			open, offered = append(open, x), true
			o.Exercised(id, wire.Server)
		case status == http.StatusMethodNotAllowed:
			o.Exercised(id, wire.Server)
		case status == http.StatusUnauthorized && x.head.HTTP.Header.Get("WWW-Authenticate") != "":
			// Who may open it is decided first (basic/authorization#authorization-flow-steps).
		case status == http.StatusTooManyRequests:
			o.Note(id, wire.Server, "a listening stream was refused because there were too many requests: HTTP status 429")
		case busy && status >= 400:
			o.Note(id, wire.Server, fmt.Sprintf("a second listening stream was refused with HTTP status %d", status))
		case status == http.StatusNotFound && session != "" && (offered || c.gone(x.head)):
			// How a client learns that the session has ended (#session-management).
			o.Note(id, wire.Server, "a listening stream could not be opened, or not anew: HTTP status 404")
		case x.ok():
			o.Violation(id, wire.Server, "the GET was answered with the Content-Type "+wire.Quote(x.mediaType(), 60)+", not with an event stream", x.evidence()...)
		default:
			o.Violation(id, wire.Server, fmt.Sprintf("the GET was answered with HTTP status %d, neither with an event stream nor with 405", status), x.evidence()...)
		}
	}
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
	for _, x := range c.httpExchanges() {
		if x.name == c.Init.Response().Stream {
			return x.head
		}
	}
	return nil
}

// basic/transports#session-management, #protocol-version-header
func judgeHTTPSessions(c *Conversation, o *Observer) {
	if c.Transport != transport.NameHTTP {
		return
	}
	c.judgeGivenIDs(o)
	if c.Handshaken() {
		c.judgeLaterHeaders(o)
	}
}

// judgeGivenIDs judges where session ids are given, and which.
func (c *Conversation) judgeGivenIDs(o *Observer) {
	const at, charset = "http.server.session-id-at-initialization", "http.server.session-id-charset"
	head := c.initHead()
	if head != nil {
		o.Exercised(at, wire.Server)
	}
	for _, x := range c.httpExchanges() {
		if x.head == nil {
			continue
		}
		values, given := x.head.HTTP.Header[headerSession]
		if !given {
			continue
		}
		for _, v := range values {
			o.Check(visible(v), charset, wire.Server, "the session id "+wire.Quote(v, 80)+" has characters that are not visible ASCII", x.head)
		}
		m := x.message()
		initializes := m != nil && m.Msg.Method == "initialize"
		if initializes && len(values) > 1 {
			o.Violation(at, wire.Server, "the answer to initialize gives several session ids", x.head)
		}
		if head == nil || x.head == head || initializes || !x.ok() || x.request.Seq < head.Seq {
			continue
		}
		// Who names no session may be taken for a new client.
		if own := x.request.HTTP.Header.Get(headerSession); own != "" && len(values) > 0 && values[0] != head.HTTP.Header.Get(headerSession) && values[0] != own {
			o.Violation(at, wire.Server, "an answer after the initialization gives another session id", head, x.request, x.head)
		}
	}
}

// visible reports whether a session id is made of visible ASCII characters.
func visible(id string) bool {
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7E {
			return false
		}
	}
	return id != ""
}

// judgeLaterHeaders judges the headers that each request after the
// initialization has to carry.
func (c *Conversation) judgeLaterHeaders(o *Observer) {
	head := c.initHead()
	if head == nil {
		return
	}
	id, version := head.HTTP.Header.Get(headerSession), c.Version
	var lost *httpExchange // the first request that was answered with 404
	reused := 0
	deletes := 0
	early, told := false, false // whether the client shows that it has read the answer
	for _, x := range c.httpExchanges() {
		if x.request.Seq < c.Init.Response().Seq || c.aside[x.name] {
			continue
		}
		m := x.message()
		if m != nil && m.Msg.Method == "initialize" {
			if lost != nil {
				o.Exercised("http.client.reinitialize-on-404", wire.Client)
				o.Check(len(x.request.HTTP.Header.Values(headerSession)) == 0, "http.client.reinitialize-without-session-id", wire.Client,
					"the initialize after 404 carries a session id", x.evidence()...)
				lost, reused = nil, 0
			}
			if x.ok() {
				// A new session: its id counts from now on.
				id = x.head.HTTP.Header.Get(headerSession)
				version = c.versionOf(x)
			}
			continue
		}
		if pingsBare(x, m) {
			if !early && m.At-c.Init.Response().At < overtaking {
				early = true
				continue
			}
			if lost != nil {
				continue // there is no session until the next initialize is answered
			}
		}
		if c.answersEarly(m) || !told && c.crosses(x) {
			continue
		}
		told = true
		judgeSessionHeader(x, id, o)
		// A client that has refused the version, and only takes its leave, has
		// none to name.
		if x.method() != http.MethodDelete || c.Initialized != nil {
			judgeVersionHeader(x, version, o)
		}
		if x.method() == http.MethodDelete {
			deletes++
			judgeDelete(x, id, deletes, o)
			continue
		}
		if lost != nil && x.request.Seq > lost.head.Seq && x.request.HTTP.Header.Get(headerSession) == id && len(x.request.Deliberate) == 0 {
			if reused++; reused == maxReused {
				o.Violation("http.client.reinitialize-on-404", wire.Client,
					"requests keep naming a session that was answered with 404", append(lost.evidence(), x.evidence()...)...)
			}
		}
		if id != "" && x.status() == http.StatusNotFound && x.request.HTTP.Header.Get(headerSession) == id && lost == nil && !x.deliberate() &&
			x.method() == http.MethodPost { // without a route for GET, servers answer 404 as well
			lost = x
		}
	}
}

// pingsBare reports whether a request without session and version is a ping,
// which may be sent before initialize is answered (basic/lifecycle#initialization).
func pingsBare(x *httpExchange, m *wire.Event) bool {
	h := x.request.HTTP.Header
	return m != nil && m.Msg.Kind == wire.Request && m.Msg.Method == "ping" &&
		len(h.Values(headerSession)) == 0 && len(h.Values(headerVersion)) == 0
}

// crosses reports whether a GET without session may have been on its way when
// initialize was answered: some clients open their stream beside it.
func (c *Conversation) crosses(x *httpExchange) bool {
	return x.method() == http.MethodGet && len(x.request.HTTP.Header.Values(headerSession)) == 0 &&
		x.request.At-c.Init.Response().At < overtaking
}

// answersEarly reports whether a message responds to a request that the server
// made before it answered initialize: its sender may not have read the answer,
// which has the session id and the version.
func (c *Conversation) answersEarly(m *wire.Event) bool {
	return m != nil && m.Msg.IsResponse() && c.Of(m) != nil && c.Of(m).Request.Seq < c.Init.Response().Seq
}

// maxReused is how many requests may still name a lost session: those under way.
const maxReused = 4

// versionOf returns the version that an initialize settled on.
func (c *Conversation) versionOf(x *httpExchange) string {
	for _, e := range x.messages {
		if r := c.Of(e); r != nil && e.Msg.Kind == wire.Result {
			v, _ := wire.At(e.Msg.Result, "protocolVersion").(string)
			return v
		}
	}
	return ""
}

func judgeSessionHeader(x *httpExchange, id string, o *Observer) {
	const session = "http.client.session-header"
	if id == "" || !visible(id) {
		return
	}
	switch values := x.request.HTTP.Header.Values(headerSession); {
	case len(values) == 0:
		o.Violation(session, wire.Client, "a request after the initialization lacks the session id", x.evidence()...)
	case len(values) > 1 || values[0] != id:
		o.Violation(session, wire.Client, "a request after the initialization carries another session id", x.evidence()...)
	default:
		o.Exercised(session, wire.Client)
	}
}

func judgeVersionHeader(x *httpExchange, version string, o *Observer) {
	values := x.request.HTTP.Header.Values(headerVersion)
	if len(values) == 0 {
		if slices.Contains([]string{"2024-11-05", "2025-03-26"}, version) {
			return // the revisions that do not know the header
		}
		o.Violation("http.client.version-header", wire.Client, "a request after the initialization lacks MCP-Protocol-Version", x.evidence()...)
		return
	}
	o.Exercised("http.client.version-header", wire.Client)
	if version == "" {
		return
	}
	o.Check(len(values) == 1 && values[0] == version, "http.client.version-header-negotiated", wire.Client,
		"MCP-Protocol-Version is "+wire.Quote(strings.Join(values, ", "), 60)+", and "+wire.Quote(version, 40)+" was agreed on", x.evidence()...)
}

// maxDeletes is how often a DELETE may be tried that is answered with 405.
const maxDeletes = 3

func judgeDelete(x *httpExchange, id string, times int, o *Observer) {
	if id == "" {
		return
	}
	o.Check(x.request.HTTP.Header.Get(headerSession) == id, "http.client.delete-session", wire.Client,
		"the DELETE does not name the session", x.evidence()...)
	if x.status() == http.StatusMethodNotAllowed {
		o.Check(times <= maxDeletes, "http.client.delete-405-tolerated", wire.Client,
			"the DELETE is repeated although it is answered with 405", x.evidence()...)
	}
}
