package server

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// legacyLink carries a session over HTTP+SSE, the transport of revision
// 2024-11-05: everything to the client travels on one stream.
type legacyLink struct {
	http     *HTTPServer
	session  *Session
	recorder *recorder
	stream   *stream
}

func (l *legacyLink) deliver(out *Outgoing) {
	text, err := out.text()
	if err != nil {
		return // it cannot be written as JSON; only a behaviour makes such a message
	}
	l.put(&Event{Session: l.session, Out: out, Name: "message", Data: text})
}

func (l *legacyLink) put(e *Event) {
	e.Stream = l.stream.name
	l.stream.putAs(l.http.server.behaviour, e)
}

// legacyParam is the query parameter that names the session.
const legacyParam = "sessionId"

// probesAgain reports whether a client that had a session probes the transport of the server again, before it begins
// another session (basic/transports#backwards-compatibility).
func (x *httpCall) probesAgain() bool {
	if x.r.Method != http.MethodPost || x.r.URL.Path != PathSSE || x.recorder.log == nil ||
		!initializes(wire.Parse(x.body)) {
		return false
	}
	return slices.ContainsFunc(x.recorder.log.Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Client && initializes(e.Msg)
	})
}

func initializes(m *wire.Message) bool { return m.Kind == wire.Request && m.Method == "initialize" }

func (x *httpCall) serveLegacy() {
	h := x.http
	h.mu.Lock()
	link := h.legacy[x.r.URL.Query().Get(legacyParam)]
	x.recorder = h.newest
	h.mu.Unlock()
	opens := x.r.Method == http.MethodGet && x.r.URL.Path == PathSSE
	switch {
	case link != nil:
		x.session, x.recorder = link.session, link.recorder
	case opens || x.recorder == nil || x.probesAgain():
		x.recorder = h.newRecorder(transport.NameSSE, false)
	}
	x.begin()
	if x.refuseForeign() || x.unauthorized(nil) {
		return
	}
	switch {
	case opens:
		x.legacyStream()
	case x.r.Method == http.MethodPost && x.r.URL.Path == PathMessages:
		x.legacyPost()
	default:
		allow := http.MethodGet
		if x.r.URL.Path == PathMessages {
			allow = http.MethodPost
		}
		x.refuseWith(MethodNotAllowed, http.StatusMethodNotAllowed,
			&wire.Error{Code: InvalidRequest, Message: "the method is not allowed here"}, http.Header{"Allow": {allow}})
	}
}

// legacyStream opens a session that lives as long as the stream.
func (x *httpCall) legacyStream() {
	h := x.http
	if !x.accepts(typeSSE) && x.refuse(NotAcceptable, http.StatusNotAcceptable,
		"the Accept header does not name "+typeSSE) {
		return
	}
	id := rand.Text()
	if choose := h.server.behaviour.HTTP.SessionID; choose != nil {
		id = choose()
	}
	link := &legacyLink{http: h, recorder: x.recorder, stream: newStream(x.name, 1, true)}
	x.session = h.begin(transport.NameSSE, id, x.recorder, link)
	link.session = x.session
	defer h.end(x.session)
	h.mu.Lock()
	full := len(h.legacy) >= maxSessions
	if !full {
		h.legacy[id] = link
	}
	h.mu.Unlock()
	if full {
		x.refuse(Stopping, http.StatusServiceUnavailable, "too many sessions")
		return
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.legacy[id] == link {
			delete(h.legacy, id)
		}
	}()
	uri := PathMessages + "?" + url.Values{legacyParam: {id}}.Encode()
	if hook := h.server.behaviour.HTTP.Endpoint; hook != nil {
		uri = hook(uri)
	}
	reader := link.stream.attach()
	link.put(&Event{Session: x.session, Name: "endpoint", Data: []byte(uri)})
	x.session.begin()
	if x.openStream(LegacySSE) {
		x.follow(link.stream, reader, 0)
	}
}

func (x *httpCall) legacyPost() {
	if mediaType(x.r.Header.Get("Content-Type")) != typeJSON &&
		x.refuse(UnsupportedMediaType, http.StatusUnsupportedMediaType, "the Content-Type is not "+typeJSON) {
		return
	}
	if x.bodyErr != nil {
		x.refuseBody()
		return
	}
	if x.session == nil {
		situation, status, text := MissingSession, http.StatusBadRequest, "the query does not name a session"
		if x.r.URL.Query().Has(legacyParam) {
			situation, status, text = UnknownSession, http.StatusNotFound, "the session does not exist"
		}
		if !x.refuse(situation, status, text) {
			x.reply(LegacyAccepted, http.StatusAccepted, make(http.Header), nil)
		}
		return
	}
	m := x.message()
	if m != nil {
		if f := x.http.server.behaviour.refuse(m); f != nil &&
			x.refuseWith(BadMessage, http.StatusBadRequest, &f.rpcErr, nil) {
			return
		}
	}
	// A notification or response takes effect before its POST is answered. The
	// response to a request travels on the stream, and may take longer.
	isRequest := m != nil && !m.IsResponse() && m.Kind != wire.Notification
	if m != nil && !isRequest {
		x.session.receive(m, nil)
	}
	x.reply(LegacyAccepted, http.StatusAccepted, make(http.Header), nil)
	if isRequest {
		_ = x.control.Flush()
		x.session.receive(m, nil)
	}
}
