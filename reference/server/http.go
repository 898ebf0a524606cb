package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Paths at which [HTTPServer] serves.
const (
	PathMCP      = "/mcp"      // Streamable HTTP
	PathSSE      = "/sse"      // stream of the legacy HTTP+SSE transport
	PathMessages = "/messages" // POST endpoint of the legacy transport
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerLast    = "Last-Event-Id"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
)

const (
	maxSessions  = 1000
	readTimeout  = 30 * time.Second // for one body
	writeTimeout = 30 * time.Second // for one event or body
	stopTimeout  = 5 * time.Second  // for what runs when the server stops
)

// Situation is what causes a response over HTTP.
type Situation string

// The situations. Those from ForeignHost to Forbidden are refusals.
const (
	ForeignHost          Situation = "foreign-host"
	ForeignOrigin        Situation = "foreign-origin"
	MethodNotAllowed     Situation = "method-not-allowed"
	BadVersionHeader     Situation = "bad-version-header"
	UnsupportedMediaType Situation = "unsupported-media-type"
	NotAcceptable        Situation = "not-acceptable"
	TooLarge             Situation = "too-large"
	BadMessage           Situation = "bad-message" // not JSON, a batch, or not a valid message
	MissingSession       Situation = "missing-session"
	UnknownSession       Situation = "unknown-session" // never given or ended
	Stopping             Situation = "stopping"
	NotFound             Situation = "not-found"    // another path
	Unauthorized         Situation = "unauthorized" // no access token, or one that is not valid
	MalformedToken       Situation = "malformed-token"
	Forbidden            Situation = "forbidden" // a token whose scope does not suffice

	ResourceMetadata Situation = "resource-metadata" // GET of the protected resource metadata

	Accepted       Situation = "accepted"      // a notification or a response
	AnsweredJSON   Situation = "json"          // a request, with its response
	AnsweredSSE    Situation = "sse"           // a request, with a stream
	ListeningSSE   Situation = "listening"     // GET, with a stream
	DeletedSession Situation = "deleted"       // DELETE
	LegacySSE      Situation = "legacy-sse"    // GET of the legacy transport
	LegacyAccepted Situation = "legacy-posted" // POST of the legacy transport
)

func (s Situation) refusal() bool {
	switch s {
	case ResourceMetadata, Accepted, AnsweredJSON, AnsweredSSE, ListeningSSE, DeletedSession, LegacySSE, LegacyAccepted:
		return false
	}
	return true
}

// Reply is a response over HTTP before its head is written. A hook may change
// Status, Header and Body. A response that is about to be a stream becomes an
// ordinary one when the hook gives it a Body or a status other than 200.
type Reply struct {
	Situation Situation
	Request   *http.Request
	Session   *Session // nil when the request belongs to none
	Status    int
	Header    http.Header
	Body      []byte
	// Pass serves a refused request as if it were valid, as far as that is
	// possible.
	Pass bool
}

// HTTPServer serves a [Server] over Streamable HTTP at PathMCP and over the legacy
// HTTP+SSE transport at PathSSE and PathMessages. Close it when it is no longer
// needed.
type HTTPServer struct {
	server  *Server
	handler http.Handler

	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup
	sessions map[*Session]struct{} // all that have not ended
	links    map[string]*httpLink  // initialized sessions by id
	order    []string              // ids of links, oldest first
	current  *httpLink             // the one without an id
	legacy   map[string]*legacyLink
	newest   *recorder
	oauth    *recorder // of the authorization flow and metadata; nil before there is any
	// With a trace only: all recorders, and those of sessions by id.
	recorders []*recorder
	logs      map[string]*recorder
	stop      chan struct{} // closed by Close
}

// HTTP returns a handler for the HTTP transports.
func (s *Server) HTTP() *HTTPServer {
	h := &HTTPServer{
		server: s, sessions: make(map[*Session]struct{}), links: make(map[string]*httpLink),
		legacy: make(map[string]*legacyLink), logs: make(map[string]*recorder), stop: make(chan struct{}),
	}
	h.handler = http.HandlerFunc(h.serve)
	if wrap := s.behaviour.HTTP.Middleware; wrap != nil {
		h.handler = wrap(h.handler)
	}
	return h
}

// ServeHTTP serves one request.
func (h *HTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
		return
	}
	h.handlers.Add(1)
	h.mu.Unlock()
	defer h.handlers.Done()
	h.handler.ServeHTTP(w, r)
}

// Close ends all sessions and streams and waits for what runs in them.
// Requests that come later are refused with status 503.
func (h *HTTPServer) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.stop)
	}
	h.mu.Unlock()
	h.endAll()
	h.handlers.Wait()
	h.endAll() // those that the last handlers began
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.recorders {
		r.log.End()
	}
}

func (h *HTTPServer) endAll() {
	h.mu.Lock()
	sessions := slices.Collect(maps.Keys(h.sessions))
	h.mu.Unlock()
	for _, s := range sessions {
		h.end(s)
	}
}

// begin opens a session.
func (h *HTTPServer) begin(name, id string, r *recorder, l link) *Session {
	s := h.server.newSession(name, r.log, l)
	s.ID = id
	h.mu.Lock()
	h.sessions[s] = struct{}{}
	if r.log != nil {
		h.logs[id] = r
	}
	h.mu.Unlock()
	return s
}

// end ends a session and waits for what runs in it.
func (h *HTTPServer) end(s *Session) {
	s.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s)
}

// Listen opens a TCP listener. A port alone, as in ":8080" or "8080", is bound
// on the loopback interface only (basic/transports#security-warning).
func Listen(addr string) (net.Listener, error) {
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// listener wraps the connections that come.
type listener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

// Accept returns the next connection.
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil || l.wrap == nil {
		return conn, err
	}
	return l.wrap(conn), nil
}

// Serve serves connections of a listener until the context ends, and then stops
// in an orderly way. It closes the listener.
func (h *HTTPServer) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener{l, h.server.options.Behaviour.HTTP.Connection}) }()
	select {
	case err := <-served:
		h.Close()
		return fmt.Errorf("serve %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.Close()
	}()
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := server.Shutdown(patient)
	if err != nil {
		err = server.Close() // for clients that do not read and do not leave
	}
	if why := <-served; err == nil && !errors.Is(why, http.ErrServerClosed) {
		err = why
	}
	<-closed
	return err
}

// recorder names the exchanges of one log, which is nil without a trace.
type recorder struct {
	server *Server
	log    *wire.Log
	ahead  bool // it holds a notification that overtook an initialize, and waits for that; guarded by the HTTPServer

	mu     sync.Mutex
	counts map[string]int
}

func (h *HTTPServer) newRecorder(name string, ahead bool) *recorder {
	r := &recorder{server: h.server, log: h.server.connect(name), ahead: ahead, counts: make(map[string]int)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if name != transport.NameOAuth {
		h.newest = r
	}
	if r.log != nil {
		h.recorders = append(h.recorders, r)
	}
	return r
}

// name returns the name of the next exchange of a kind: post:1, get:1 …
func (r *recorder) name(method string) string {
	kind := strings.ToLower(method)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind]++
	return kind + ":" + strconv.Itoa(r.counts[kind])
}

// httpCall is one HTTP request while it is served.
type httpCall struct {
	http     *HTTPServer
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	body     []byte
	bodyErr  error
	session  *Session
	recorder *recorder
	name     string
	id       wire.ID // of the request in the body, for refusals
	link     *httpLink
	user     string // who sends the request, if that is known
	starting bool   // the body holds an initialize, and its session is not settled
	isNew    bool   // the response is to carry the id of a new session
	abrupt   bool   // the connection is to break off
	breaks   []string
}

func (h *HTTPServer) serve(w http.ResponseWriter, r *http.Request) {
	x := &httpCall{http: h, w: w, r: r, control: http.NewResponseController(w)}
	if x.serveElsewhere() {
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions:
	default:
		_ = x.control.SetReadDeadline(time.Now().Add(readTimeout))
		x.body, x.bodyErr = io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.server.options.MaxMessage)))
		_ = x.control.SetReadDeadline(time.Time{})
	}
	if (r.URL.Path == PathSSE || r.URL.Path == PathMessages) && !h.server.options.HTTP.NoLegacy {
		x.serveLegacy()
		return
	}
	m := x.find()
	x.begin()
	if x.refuseForeign() || x.unauthorized(m) {
		return
	}
	if x.session != nil && x.session.user != x.user {
		x.session, x.link = nil, nil // that of another user, which this one must not even know of
	}
	if r.URL.Path != PathMCP || h.server.options.HTTP.NoStreamable {
		x.breaks = []string{ids.HTTPServerEndpointPost} // the endpoint is elsewhere
		if x.refuse(NotFound, http.StatusNotFound, "no such path") {
			return
		}
		x.breaks = nil
	}
	switch r.Method {
	case http.MethodPost:
		x.post(m)
	case http.MethodGet:
		x.get()
	case http.MethodDelete:
		x.delete()
	default:
		x.notAllowed()
	}
	if x.abrupt {
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// find finds out to which session and log the request belongs.
func (x *httpCall) find() *wire.Message {
	h := x.http
	var m *wire.Message
	if x.r.Method == http.MethodPost && x.bodyErr == nil {
		m = x.message()
	}
	id, given := x.sessionID()
	h.mu.Lock()
	if given {
		x.link = h.links[id]
	} else {
		x.link = h.current
	}
	x.recorder = h.newest
	if r := h.logs[id]; given && r != nil {
		x.recorder = r // that of a session that has ended
	}
	x.starting = m != nil && initializes(m) && !given
	if x.starting {
		x.link = nil
		// A notification travels by itself, and may overtake the initialize that was sent before it.
		if x.recorder != nil && x.recorder.ahead {
			x.recorder.ahead = false
		} else {
			x.recorder = nil
		}
	}
	h.mu.Unlock()
	switch {
	case x.link != nil:
		x.session, x.recorder = x.link.session, x.link.recorder
	case x.recorder == nil:
		x.recorder = h.newRecorder(transport.NameHTTP, m != nil && m.Kind == wire.Notification && !given)
	}
	return m
}

// message reads the body, and returns nil if the behaviour drops it.
func (x *httpCall) message() *wire.Message {
	raw := x.body
	if hook := x.http.server.behaviour.Inbound; hook != nil {
		raw = hook(raw)
	}
	if raw == nil {
		return nil
	}
	m := wire.Parse(raw)
	if !m.IsResponse() {
		x.id = m.ID
	}
	return m
}

func (x *httpCall) sessionID() (id string, given bool) {
	values := x.r.Header.Values(headerSession)
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// begin records the request, as the client's end of the transport does.
func (x *httpCall) begin() {
	x.name = x.recorder.name(x.r.Method)
	if x.bodyErr != nil {
		x.record(wire.Event{Kind: wire.KindBody, From: wire.Client, Raw: x.body, Note: x.bodyErr.Error()})
	} else if x.r.Method == http.MethodPost || len(x.body) > 0 {
		x.record(wire.Event{Kind: wire.KindMessage, From: wire.Client, Raw: x.body})
	}
	x.record(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, HTTP: transport.ReceivedHead(x.r)})
}

func (x *httpCall) record(e wire.Event) {
	if e.Stream == "" {
		e.Stream = x.name
	}
	if x.http.server.record(x.recorder.log, e) != nil && x.session != nil {
		x.session.cancel(wire.ErrFlood) // a client that floods is no longer served
	}
}

// refuseForeign refuses what a web page could send (basic/transports#security-warning).
func (x *httpCall) refuseForeign() (done bool) {
	options := x.http.server.options.HTTP
	local, _ := x.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && isLoopback(local.String()) && !isLoopback(x.r.Host) &&
		!slices.Contains(options.Hosts, x.r.Host) {
		if x.refuse(ForeignHost, http.StatusForbidden, "the Host header does not name a trusted host") {
			return true
		}
	}
	for _, origin := range x.r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		trusted := err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Host)
		if !trusted && !slices.Contains(options.Origins, origin) {
			return x.refuse(ForeignOrigin, http.StatusForbidden, "the Origin header does not name a trusted origin")
		}
	}
	return false
}

// isLoopback reports whether a host, with or without a port, is this machine's
// loopback interface.
func isLoopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return transport.Loopback(host)
}

// reply sends an ordinary response. It returns false when the behaviour lets a
// refused request pass.
func (x *httpCall) reply(situation Situation, status int, header http.Header, body []byte) bool {
	reply := x.proposed(situation, status, header, body)
	if reply.Pass && situation.refusal() {
		return false
	}
	x.write(reply)
	return true
}

// proposed returns a response as the behaviour leaves it. That to the initialize of a new session has its id.
func (x *httpCall) proposed(situation Situation, status int, header http.Header, body []byte) *Reply {
	reply := &Reply{Situation: situation, Request: x.r, Session: x.session, Status: status, Header: header, Body: body}
	if x.isNew && x.session.ID != "" {
		header.Set(headerSession, x.session.ID)
	}
	if hook := x.http.server.behaviour.HTTP.Reply; hook != nil {
		hook(reply)
	}
	return reply
}

func (x *httpCall) write(reply *Reply) {
	x.head(reply)
	if len(reply.Body) > 0 {
		e := wire.Event{Kind: wire.KindBody, From: wire.Server, Raw: reply.Body}
		if mediaType(reply.Header.Get("Content-Type")) == typeJSON && reply.Situation != ResourceMetadata {
			e.Kind = wire.KindMessage
		}
		e.Deliberate = x.breaks
		x.record(e)
		_ = x.send(reply.Body) // the client may be gone
	}
	x.record(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server})
}

func (x *httpCall) head(reply *Reply) {
	for name, values := range reply.Header {
		x.w.Header()[name] = values
	}
	if reply.Status != http.StatusNoContent && reply.Body != nil {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(reply.Body)))
	}
	x.record(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Deliberate: x.breaks,
		HTTP: transport.SentHead(reply.Status, x.w.Header())})
	x.w.WriteHeader(reply.Status)
}

// refuse sends an error status, with a JSON-RPC error as body. It returns
// false when the behaviour lets the request pass.
func (x *httpCall) refuse(situation Situation, status int, text string) bool {
	return x.refuseWith(situation, status, &wire.Error{Code: InvalidRequest, Message: text}, nil)
}

func (x *httpCall) refuseWith(situation Situation, status int, rpcErr *wire.Error, header http.Header) bool {
	message := map[string]any{"jsonrpc": "2.0", "error": errorObject(rpcErr)}
	// An error that is not about a request has no id (basic/transports#sending-messages-to-the-server).
	if x.id.Usable() {
		message["id"] = rawID(x.id)
	}
	body := jsonOf(message)
	out := &Outgoing{Session: x.session, Kind: wire.ErrorResponse, Message: message}
	if hook := x.http.server.behaviour.Send; hook != nil && x.session != nil {
		body = nil
		for _, o := range hook(out) {
			if text, err := o.text(); err == nil {
				body = append(body, text...)
			}
		}
	}
	if hook := x.http.server.behaviour.Frame; hook != nil {
		body = hook(out, body)
	}
	if header == nil {
		header = make(http.Header)
	}
	header.Set("Content-Type", typeJSON)
	return x.reply(situation, status, header, body)
}

func (x *httpCall) notAllowed() {
	allowed := []string{http.MethodPost}
	if !x.http.server.options.HTTP.NoGet {
		allowed = append(allowed, http.MethodGet)
	}
	if !x.http.server.options.HTTP.NoDelete {
		allowed = append(allowed, http.MethodDelete)
	}
	x.refuseWith(MethodNotAllowed, http.StatusMethodNotAllowed,
		&wire.Error{Code: InvalidRequest, Message: "the method is not allowed here"},
		http.Header{"Allow": {strings.Join(allowed, ", ")}})
}

// badVersion checks MCP-Protocol-Version (basic/transports#protocol-version-header).
func (x *httpCall) badVersion() (done bool) {
	for _, version := range x.r.Header.Values(headerVersion) {
		if !slices.Contains(x.http.server.options.Versions, version) {
			return x.refuse(BadVersionHeader, http.StatusBadRequest,
				"the MCP-Protocol-Version header does not name a supported version")
		}
	}
	return false
}

// noSession checks Mcp-Session-Id (basic/transports#session-management).
func (x *httpCall) noSession() (done bool) {
	if x.session != nil {
		return false
	}
	situation, status, text := MissingSession, http.StatusBadRequest, "the Mcp-Session-Id header is missing"
	if _, given := x.sessionID(); given {
		situation, status, text = UnknownSession, http.StatusNotFound, "the session does not exist"
	}
	if x.refuse(situation, status, text) {
		return true
	}
	// The behaviour lets it pass: it is served in the newest session, or a new one.
	if sessions := x.http.server.Sessions(); len(sessions) > 0 {
		x.session = sessions[len(sessions)-1]
		if link, ok := x.session.link.(*httpLink); ok {
			x.link = link
			return false
		}
	}
	x.start()
	return false
}

// start opens a session.
func (x *httpCall) start() {
	x.link = &httpLink{http: x.http, recorder: x.recorder}
	x.session = x.http.begin(transport.NameHTTP, x.http.newID(), x.recorder, x.link)
	x.link.session, x.session.user = x.session, x.user
	x.session.begin()
}

func (h *HTTPServer) newID() string {
	switch {
	case h.server.behaviour.HTTP.SessionID != nil:
		return h.server.behaviour.HTTP.SessionID()
	case h.server.options.HTTP.NoSessionID:
		return ""
	}
	return rand.Text()
}

// register makes a session known to later requests. A session that it replaces is
// ended.
func (h *HTTPServer) register(l *httpLink) {
	h.mu.Lock()
	var evicted *httpLink
	id := l.session.ID
	switch {
	case id == "":
		evicted, h.current = h.current, l
	case h.links[id] != nil:
		// Only a behaviour gives the same id twice: the older session stays.
		h.mu.Unlock()
		return
	default:
		h.links[id] = l
		h.order = append(h.order, id)
		if len(h.order) > maxSessions {
			evicted = h.links[h.order[0]]
			delete(h.links, h.order[0])
			h.order = h.order[1:]
		}
	}
	h.mu.Unlock()
	if evicted != nil && evicted != l {
		h.end(evicted.session)
	}
}

func (h *HTTPServer) unregister(l *httpLink) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == l {
		h.current = nil
	}
	if h.links[l.session.ID] == l {
		delete(h.links, l.session.ID)
		h.order = slices.DeleteFunc(h.order, func(id string) bool { return id == l.session.ID })
	}
}

func (x *httpCall) delete() {
	if x.http.server.options.HTTP.NoDelete {
		x.notAllowed()
		return
	}
	if x.badVersion() || x.noSession() {
		return
	}
	if !x.http.server.behaviour.HTTP.KeepSession {
		x.http.unregister(x.link)
		x.http.end(x.session)
	}
	x.reply(DeletedSession, http.StatusNoContent, make(http.Header), nil)
}

// accepts reports whether the Accept headers name a media type, or leave it open.
func (x *httpCall) accepts(want string) bool {
	values := x.r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, err := mime.ParseMediaType(item)
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue
		}
		if name == want || name == family+"/*" || name == "*/*" {
			return true
		}
	}
	return false
}

func mediaType(value string) string {
	name, _, err := mime.ParseMediaType(value)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return name
}

func (x *httpCall) get() {
	if x.http.server.options.HTTP.NoGet {
		x.notAllowed()
		return
	}
	if x.badVersion() {
		return
	}
	if !x.accepts(typeSSE) && x.refuse(NotAcceptable, http.StatusNotAcceptable,
		"the Accept header does not name "+typeSSE) {
		return
	}
	if x.noSession() {
		return
	}
	var st *stream
	position := 0
	var replay []*Event
	if last := x.r.Header.Get(headerLast); last != "" {
		if st, position = x.link.resume(last); st != nil {
			s := st.from(position, 0)
			position += len(s.events)
			// An event without an id leaves the reader at the one before: it would get it again and again. A response
			// has to come.
			replay = slices.DeleteFunc(slices.Clone(s.events),
				func(e *Event) bool { return e.ID == "" && e.Out != nil && e.Out.Method != "" })
		}
		if hook := x.http.server.behaviour.HTTP.Replay; hook != nil {
			replay = hook(x.session, last, replay, x.link.all())
		}
	}
	if st == nil {
		st = x.link.open(x.name, true)
	}
	var reader int
	if st.listening {
		reader = x.link.listen(st)
		defer func() { x.link.unlisten(st, reader, position) }()
	} else {
		reader = st.attach()
	}
	if !x.openStream(ListeningSSE) {
		return
	}
	for _, e := range replay {
		if !x.event(e) || e.Cut {
			x.record(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server})
			return
		}
	}
	position = x.follow(st, reader, position)
}

// openStream sends the head of an SSE stream. It returns false when the
// behaviour replaced the stream.
func (x *httpCall) openStream(situation Situation) bool {
	header := http.Header{"Content-Type": {typeSSE}, "Cache-Control": {"no-cache"}}
	reply := x.proposed(situation, http.StatusOK, header, nil)
	if reply.Status != http.StatusOK || reply.Body != nil {
		x.write(reply)
		return false
	}
	x.head(reply)
	_ = x.control.Flush()
	return true
}

// follow writes the events of a stream from a position on, until the stream,
// the connection or the session ends. It returns the position after the last
// event that was written.
func (x *httpCall) follow(st *stream, reader, position int) int {
	end := wire.Event{Kind: wire.KindStreamEnd, From: wire.Server}
	defer func() { x.record(end) }()
	requests, _ := st.answers()
	for {
		s := st.from(position, reader)
		if s.lost || s.displaced {
			return position
		}
		for _, e := range s.events {
			if !x.event(e) {
				end.From, end.Note = wire.Client, "the client is gone"
				return position
			}
			position++
			if e.Cut {
				return position
			}
		}
		if s.finished && !x.keepsOpen(requests) {
			return position
		}
		select {
		case <-s.changed:
		case <-x.r.Context().Done():
			end.From, end.Note = wire.Client, "the client closed the connection"
			return position
		case <-x.session.ctx.Done():
			return position
		case <-x.http.stop:
			return position
		}
	}
}

func (x *httpCall) keepsOpen(requests []*Request) bool {
	keep := x.http.server.behaviour.HTTP.KeepOpen
	return keep != nil && slices.ContainsFunc(requests, keep)
}

// event writes one event. It returns false when that was not possible.
func (x *httpCall) event(e *Event) bool {
	text := e.text()
	x.abrupt = e.Cut && e.Abrupt
	if len(text) == 0 && e.Out == nil {
		return true // it only cuts the stream
	}
	record := wire.Event{
		Kind: wire.KindMessage, From: wire.Server, Raw: e.Data,
		SSE: &wire.SSE{Event: e.Name, ID: e.ID, HasID: e.ID != "", Retry: e.Retry, Comment: e.Comment},
	}
	if e.Out == nil {
		record.Kind = wire.KindSSE
		if e.Raw != nil && !bytes.HasSuffix(e.Raw, []byte("\n\n")) {
			record.Raw = e.Raw // a part of an event, which no reader dispatches
		}
	} else {
		record.Deliberate = e.Out.Deliberate
	}
	if hook := x.http.server.behaviour.Frame; hook != nil && e.Out != nil {
		meant := bytes.Clone(text)
		if text = hook(e.Out, text); text == nil {
			return true
		}
		if !bytes.Equal(text, meant) {
			asRead(&record, text)
		}
	}
	x.record(record)
	done := 0
	for _, at := range e.Pieces {
		if at <= done || at >= len(text) {
			continue
		}
		if x.send(text[done:at]) != nil || sleep(x.r.Context(), pieceTime) != nil {
			return false
		}
		done = at
	}
	return x.send(text[done:]) == nil
}

// asRead gives the record of an event what a reader takes from a text that is written in its place.
func asRead(record *wire.Event, text []byte) {
	r := wire.NewSSEReader(bytes.NewReader(text), len(text))
	item, err := r.Next()
	for item.IsComment {
		item, err = r.Next()
	}
	if err != nil || item.Incomplete {
		record.Kind, record.Raw, record.SSE = wire.KindSSE, text, new(wire.SSE) // which no reader dispatches
		return
	}
	if len(item.Data) == 0 {
		record.Kind = wire.KindSSE
	}
	item.SSE.Comment = record.SSE.Comment
	record.Raw, record.SSE = item.Data, &item.SSE
}

// pieceTime is how long a client has to read a piece of an event by itself.
const pieceTime = 5 * time.Millisecond

// send writes a part of the body at once.
func (x *httpCall) send(text []byte) error {
	// The recorder of a test may lack it.
	_ = x.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	defer func() { _ = x.control.SetWriteDeadline(time.Time{}) }()
	if _, err := x.w.Write(text); err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	if err := x.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}
