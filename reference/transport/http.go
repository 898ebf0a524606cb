package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// HTTP dials a server over Streamable HTTP.
type HTTP struct {
	Endpoint
	// NoListen keeps connections from opening the GET stream by themselves.
	NoListen bool
	// OrOlder says that the server may speak the older HTTP+SSE instead: see Older.
	OrOlder bool

	// lateHead is set while a server does not send the head of a GET stream in
	// time: later connections do not wait for long.
	lateHead atomic.Bool
	unkept   atomic.Bool // see roundTrip
}

const (
	// listenGrace is how long an initialised connection waits for the head of
	// its GET stream, so that nothing sent right after gets lost. Some servers
	// send the head with the first event only.
	listenGrace = 250 * time.Millisecond
	// lateGrace is how long the others wait for it that follow one that got none.
	lateGrace = 25 * time.Millisecond
	// turns is how many limits the head of a response may take whose request waits for others. How long
	// the answer is awaited, the sender decides.
	turns = 4
	// closeWait bounds the DELETE with which a connection closes.
	closeWait = 2 * time.Second
)

// Transport returns "http".
func (d *HTTP) Transport() string { return NameHTTP }

// Dial makes a connection ready. It does no I/O: a server that cannot be
// reached shows with the first message, as a *StartError.
func (d *HTTP) Dial(_ context.Context, log *wire.Log) (Conn, error) {
	s, err := d.open(log, &d.unkept)
	if err != nil {
		return nil, err
	}
	return &HTTPConn{httpLink: newHTTPLink(s, log), dialer: d}, nil
}

// HTTPConn is the client's end of a Streamable HTTP connection. Each exchange
// is a stream of its own in the log: post:1, get:1, delete:1 and so on, of
// which each ends with a wire.KindStreamEnd. Its methods are safe for
// concurrent use.
type HTTPConn struct {
	*httpLink
	dialer    *HTTP
	session   atomic.Pointer[sessionState]
	deleted   atomic.Bool               // a DELETE was sent for the session
	leaving   atomic.Bool               // a DELETE was sent, by Delete or as a raw request
	listening atomic.Bool               // the connection has opened its GET stream
	latest    atomic.Pointer[roundTrip] // of those that the connection has opened by itself
	listeners atomic.Int32
	recording sync.RWMutex // of requests; see begin
}

// sessionState is what initialize has brought, and whether the server still
// knows the session.
type sessionState struct {
	id, version string
	lost        bool
}

// lostSession says that a request is made on purpose in a session that the server no
// longer knows.
const lostSession = ids.HTTPClientReinitializeOn404

func (c *HTTPConn) state() sessionState {
	if s := c.session.Load(); s != nil {
		return *s
	}
	return sessionState{}
}

func (c *HTTPConn) update(change func(*sessionState)) {
	for {
		before := c.session.Load()
		after := sessionState{}
		if before != nil {
			after = *before
		}
		change(&after)
		if c.session.CompareAndSwap(before, &after) {
			return
		}
	}
}

// Session returns the session id that the server assigned and the negotiated
// protocol version; each is "" before it is known.
func (c *HTTPConn) Session() (id, version string) {
	s := c.state()
	return s.id, s.version
}

// SessionID returns the session id that the server assigned, or "".
func (c *HTTPConn) SessionID() string { return c.state().id }

// SetSession sets what is sent as Mcp-Session-Id and MCP-Protocol-Version;
// an empty one is left out.
func (c *HTTPConn) SetSession(id, version string) {
	c.session.Store(&sessionState{id: id, version: version})
	c.deleted.Store(false)
	c.leaving.Store(false)
}

// header returns the header of a request as the specification wants it.
func (c *HTTPConn) header(method string) http.Header {
	s := c.state()
	h := c.httpLink.header(method, s.version)
	if method == http.MethodPost {
		fill(h, "Accept", acceptBoth)
	}
	// An id that a header cannot carry cannot be sent back; the rules judge it.
	if s.id != "" && httpguts.ValidHeaderFieldValue(s.id) {
		h.Set(headerSession, s.id)
	}
	return h
}

// override sets the headers of over in h, in their spelling, and removes those
// without a value.
func override(h, over http.Header) {
	for name := range over {
		for old := range h {
			if strings.EqualFold(old, name) {
				delete(h, old)
			}
		}
	}
	for name, values := range over {
		if len(values) > 0 {
			h[name] = values
		}
	}
}

// Send posts one message. For a request it returns once the request has left:
// the answer arrives on the event's stream. For anything else that is a
// message it waits for the head of the response; an HTTP error status is an
// event, not an error. After an initialized notification that the server
// accepted, the connection opens its GET stream.
func (c *HTTPConn) Send(ctx context.Context, m Outgoing) (*wire.Event, error) {
	c.site.admit(ctx)
	o, msg := c.post(c.site.url, c.header(http.MethodPost), m)
	o.ordinary = o.ordinary && c.listens()
	if msg.Kind == wire.Request && msg.Method == "initialize" {
		c.learn(o, msg)
	}
	x, err := c.begin(o)
	if err != nil {
		return nil, err
	}
	if !acknowledged(msg) || m.Unawaited {
		return x.sent, x.awaitWritten(ctx)
	}
	if err := x.awaitHead(ctx); err != nil {
		return x.sent, err
	}
	if msg.Method == "notifications/initialized" && x.head.HTTP.Status/100 == 2 {
		c.StartListening(ctx)
	}
	return x.sent, nil
}

// StartListening opens the GET stream of the connection, which Send does after the
// initialized notification, and gives the server a moment to accept it. It does nothing if
// the stream was opened before or the connection is not to listen.
func (c *HTTPConn) StartListening(ctx context.Context) {
	if !c.dialer.NoListen && c.listening.CompareAndSwap(false, true) {
		c.listen(ctx)
	}
}

// acknowledged reports whether the response to a message's POST only says
// whether it was accepted (basic/transports#sending-messages-to-the-server).
func acknowledged(m *wire.Message) bool { return m.Kind == wire.Notification || m.IsResponse() }

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// learn takes session id and version from the answer to initialize, before
// anybody can read the answer in the log.
func (c *HTTPConn) learn(o *outbound, request *wire.Message) {
	o.onHead = func(resp *http.Response) {
		if id := resp.Header.Get(headerSession); id != "" && resp.StatusCode/100 == 2 {
			c.update(func(s *sessionState) { s.id, s.lost = id, false })
			c.deleted.Store(false)
		}
	}
	o.onMessage = func(answer *wire.Message) {
		if version := negotiated(request, answer); version != "" {
			c.update(func(s *sessionState) { s.version = version })
		}
	}
}

// begin starts an exchange, and learns from it whether the server still knows the
// session (basic/transports#session-management). A request in a session that the
// server does not know is declared as deliberate.
func (c *HTTPConn) begin(o *outbound) (*roundTrip, error) {
	// Events after the head that tells of the loss take it into account.
	c.recording.RLock()
	defer c.recording.RUnlock()
	s := c.state()
	if s.id == "" || o.header.Get(headerSession) != s.id {
		return c.start(o)
	}
	plain := len(o.deliberate) == 0
	if s.lost {
		o.deliberate = append(slices.Clone(o.deliberate), lostSession)
	}
	if o.method == http.MethodPost && o.onHead == nil {
		o.onHead = func(resp *http.Response) {
			switch {
			case resp.StatusCode/100 == 2 && s.lost:
				c.setLost(s.id, false)
			case resp.StatusCode == http.StatusNotFound && plain:
				c.setLost(s.id, true)
			}
		}
	}
	return c.start(o)
}

func (c *HTTPConn) setLost(id string, lost bool) {
	if s := c.state(); s.id != id || s.lost == lost {
		return
	}
	c.recording.Lock()
	defer c.recording.Unlock()
	c.update(func(s *sessionState) { s.lost = lost && s.id == id })
}

// Lost reports whether the server has last said that it does not know the
// session.
func (c *HTTPConn) Lost() bool { return c.state().lost }

// Left reports whether a DELETE was sent for the session.
func (c *HTTPConn) Left() bool { return c.leaving.Load() }

// negotiated returns the version that an answer to initialize settles on: the
// one that was asked for if the result names none. It returns "" for anything
// that is not such an answer.
func negotiated(request, answer *wire.Message) string {
	if answer.Kind == wire.Batch {
		for _, member := range answer.Batch {
			if v := negotiated(request, member); v != "" {
				return v
			}
		}
		return ""
	}
	if answer.Kind != wire.Result || answer.ID.Usable() && !answer.ID.Resembles(request.ID) {
		return ""
	}
	if v, _ := wire.At(answer.Result, "protocolVersion").(string); v != "" {
		return v
	}
	v, _ := wire.At(request.Params, "protocolVersion").(string)
	return v
}

func (c *HTTPConn) listen(ctx context.Context) {
	grace := listenGrace
	if c.dialer.lateHead.Load() {
		grace = lateGrace
	}
	x := c.openListener(ctx, nil, 0, time.After(grace))
	if x == nil || ctx.Err() != nil || c.leaving.Load() {
		return
	}
	select {
	case <-x.headed:
	default:
		c.dialer.lateHead.Store(true)
		return
	}
	c.dialer.lateHead.Store(false)
	if x.head == nil {
		return // the server has gone
	}
	if status := x.head.HTTP.Status; status >= http.StatusBadRequest && status != http.StatusMethodNotAllowed {
		c.listening.Store(false) // it may be too early
	}
}

// openListener begins the GET of a listening stream, again if a gateway did not reach the
// server, and returns the last one when its head has come or the grace is over; nil if the
// connection was closed meanwhile.
func (c *HTTPConn) openListener(ctx context.Context, over http.Header, barren int, grace <-chan time.Time) *roundTrip {
	for tries := 1; ; tries++ {
		c.site.admit(ctx)
		x, err := c.begin(c.listener(over, barren))
		if err != nil {
			return nil
		}
		c.latest.Store(x)
		select {
		case <-x.headed:
		case <-grace:
			return x
		case <-ctx.Done():
			return x
		case <-c.shutting:
			return x
		}
		if !wire.Unreached(x.head) || tries == maxBarren || !c.pause(ctx, time.Duration(tries)*listenBackoff) {
			return x
		}
	}
}

// pause waits, and reports whether the connection is still meant to be used after that.
func (c *HTTPConn) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return !c.leaving.Load()
	case <-ctx.Done():
	case <-c.shutting:
	}
	return false
}

// listens reports whether the server is known to have got the GET of the latest listening
// stream, if there was one: a message on a connection that is open already could overtake it.
func (c *HTTPConn) listens() bool {
	x := c.latest.Load()
	if x == nil {
		return true
	}
	select {
	case <-x.headed:
		return true
	default:
		return false
	}
}

const (
	// maxBarren is how many listening streams in a row may end without an event
	// before the connection stops opening them.
	maxBarren = 3
	// maxListeners bounds the listening streams that a connection opens by itself.
	maxListeners = 50
	// listenBackoff is added to the wait before each further one.
	listenBackoff = 20 * time.Millisecond
	// maxRetry bounds for how long a server may ask to wait before the stream is
	// opened again. If a server asks for more, the stream is not opened again.
	maxRetry = 5 * time.Second
)

// listener returns the GET of a listening stream. The stream is opened again if
// the server ends it, which it may do at any time
// (basic/transports#listening-for-messages-from-the-server).
func (c *HTTPConn) listener(over http.Header, barren int) *outbound {
	o := c.get(over)
	o.onEnd = func(x *roundTrip, dropped bool) {
		switch {
		case dropped || c.leaving.Load() || c.ctx.Err() != nil:
		case errors.Is(x.err, syscall.ECONNREFUSED):
			// Nobody is left to answer.
			_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: x.stream,
				Note: x.err.Error()})
		case x.head != nil && x.head.HTTP.Status == http.StatusOK && x.events:
			c.running.Go(func() { c.listenAgain(x, barren) })
		}
	}
	return o
}

// listenAgain opens the listening stream again, after its last event if that has
// an id (basic/transports#resumability-and-redelivery).
func (c *HTTPConn) listenAgain(ended *roundTrip, barren int) {
	if ended.brought {
		barren = 0
	} else {
		barren++
	}
	n := c.listeners.Add(1)
	if barren >= maxBarren || n >= maxListeners || ended.retry > maxRetry {
		return
	}
	if !c.pause(c.ctx, max(ended.retry, time.Duration(n-1)*listenBackoff)) {
		return
	}
	var over http.Header
	if id := ended.lastID.Load(); id != nil && *id != "" {
		over = http.Header{headerLastEvent: {*id}}
	}
	c.openListener(c.ctx, over, barren, nil)
}

// ListenAnew closes the listening stream that the connection has opened by itself, and opens
// another one in its place. It returns the name of the stream that it has closed; "" without such a stream.
func (c *HTTPConn) ListenAnew(ctx context.Context) (closed string) {
	x := c.latest.Load()
	if x == nil {
		return ""
	}
	x.cancel(errDropped)
	select {
	case <-x.done:
		c.listen(ctx)
	case <-ctx.Done():
	}
	return x.stream
}

// Drop closes a stream, as a client may at any time, and waits until its end is recorded. It does nothing if the
// stream has ended.
func (c *HTTPConn) Drop(stream string) {
	c.mu.Lock()
	var open *roundTrip
	for x := range c.open {
		if x.stream == stream {
			open = x
		}
	}
	c.mu.Unlock()
	if open != nil {
		open.cancel(errDropped)
		<-open.done
	}
}

// get returns a GET that opens a stream. A server may hold back its head until
// there is something to send.
func (c *HTTPConn) get(over http.Header) *outbound {
	h := c.header(http.MethodGet)
	override(h, over)
	return &outbound{method: http.MethodGet, url: c.site.url, header: h}
}

// Listen opens a further GET stream, waits for the head of the response and
// returns the stream's name. It is not an error if the server declines with 405.
func (c *HTTPConn) Listen(ctx context.Context) (stream string, err error) {
	c.site.admit(ctx)
	x, err := c.begin(c.get(nil))
	if err != nil {
		return "", err
	}
	return x.stream, x.awaitHead(ctx)
}

// Resume opens a GET stream that continues after an event
// (basic/transports#resumability-and-redelivery).
func (c *HTTPConn) Resume(ctx context.Context, lastEventID string, deliberate ...string) (*Stream, error) {
	return c.Open(ctx, Request{
		Method: http.MethodGet, Defaults: true, Deliberate: deliberate,
		Header: http.Header{headerLastEvent: {lastEventID}},
	})
}

// Delete ends the session (basic/transports#session-management).
func (c *HTTPConn) Delete(ctx context.Context) (*Response, error) {
	c.deleted.Store(true)
	return c.Do(ctx, Request{Method: http.MethodDelete, Defaults: true})
}

// Request is a raw HTTP request.
type Request struct {
	Method string // empty: POST
	// Path replaces path and query of the server's URL unless it is empty.
	Path string
	// Header is sent as it is. Unless Defaults is set, HTTP adds only what it
	// needs: Host, which Header may override, and Content-Length.
	Header http.Header
	// Defaults sends what Send would, as Header changes it: see Outgoing.Header.
	Defaults bool
	// Body is recorded as a message when Method is POST.
	Body       []byte
	Deliberate []string
}

// Response is the outcome of a raw HTTP request. The log holds the same, under Stream.
type Response struct {
	Stream string
	Status int
	Header http.Header // secrets redacted
	// Body is empty when the response was an event stream.
	Body []byte
	// Messages that the response carried, in their order.
	Messages []*wire.Event
	// Events of an event stream, with those that are messages.
	Events []*wire.Event
	Head   *wire.Event
	// End of the exchange; nil when it was not awaited.
	End *wire.Event
}

// Do sends a raw HTTP request and waits until the response has ended. When the
// context ends before, it drops the connection and returns what has come, with
// the context's error.
func (c *HTTPConn) Do(ctx context.Context, r Request) (*Response, error) {
	s, err := c.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.x.done:
		return s.Response(), nil
	case <-ctx.Done():
		s.Close()
		return s.Response(), context.Cause(ctx)
	}
}

// Open sends a raw HTTP request and returns once the head of the response has
// come. The error is a *StartError when the server was never reached.
func (c *HTTPConn) Open(ctx context.Context, r Request) (*Stream, error) {
	c.site.admit(ctx)
	if r.Method == "" {
		r.Method = http.MethodPost
	}
	u, err := c.resolve(r.Path)
	if err != nil {
		return nil, err
	}
	o := &outbound{
		method: r.Method, url: u, header: make(http.Header), body: r.Body,
		message: r.Method == http.MethodPost && r.Body != nil, deliberate: r.Deliberate, patience: c.site.timeout,
	}
	if r.Defaults {
		o.header = c.header(r.Method)
	}
	override(o.header, r.Header)
	if r.Method == http.MethodDelete {
		c.leaving.Store(true)
	}
	if o.message && r.Defaults {
		o.parsed = c.log.Parse(r.Body)
		if o.parsed.Kind == wire.Request && o.parsed.Method == "initialize" {
			c.learn(o, o.parsed)
		}
	}
	x, err := c.begin(o)
	if err != nil {
		return nil, err
	}
	if err := x.awaitHead(ctx); err != nil {
		return nil, err
	}
	return &Stream{Name: x.stream, Head: x.head, x: x, next: x.head.Seq + 1}, nil
}

func (c *HTTPConn) resolve(path string) (*url.URL, error) {
	if path == "" {
		return c.site.url, nil
	}
	ref, err := url.Parse(path)
	if err != nil || ref.Host != "" || ref.Scheme != "" {
		return nil, errors.New("the path of a request must be a path of the server, with or without a query")
	}
	return c.site.url.ResolveReference(ref), nil
}

// Stream is a response whose head has come and whose body is being recorded.
type Stream struct {
	Name string
	Head *wire.Event

	x    *roundTrip
	next int
}

// Next returns the next event that the server has sent on the stream: a
// message, another event or comment, a body. At the end it returns io.EOF;
// Response then tells how it ended. It is not safe for concurrent use.
func (s *Stream) Next(ctx context.Context) (*wire.Event, error) {
	e, err := s.x.link.log.Await(ctx, s.next, func(e *wire.Event) bool { return e.Stream == s.Name })
	if errors.Is(err, wire.ErrEnded) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	if e.Kind == wire.KindStreamEnd {
		s.next = e.Seq // again io.EOF
		return nil, io.EOF
	}
	s.next = e.Seq + 1
	return e, nil
}

// Request returns the first event of the exchange: the message that was sent,
// or the head of the request.
func (s *Stream) Request() *wire.Event { return s.x.sent }

// LastEventID returns the id of the last event that had one, or "".
func (s *Stream) LastEventID() string {
	if id := s.x.lastID.Load(); id != nil {
		return *id
	}
	return ""
}

// Close drops the connection of the stream unless it has ended, and waits
// until its end is recorded.
func (s *Stream) Close() {
	s.x.cancel(errDropped)
	<-s.x.done
}

// Response returns what has come so far.
func (s *Stream) Response() *Response {
	r := &Response{Stream: s.Name, Status: s.Head.HTTP.Status, Header: s.Head.HTTP.Header, Head: s.Head}
	for _, e := range s.x.link.log.Events()[s.Head.Seq+1:] {
		switch {
		case e.Stream == s.Name && e.Kind == wire.KindStreamEnd:
			r.End = e
			return r
		case e.Stream != s.Name:
			continue
		case e.SSE != nil:
			r.Events = append(r.Events, e)
		case !e.Member:
			r.Body = e.Raw
		}
		if e.Kind == wire.KindMessage {
			r.Messages = append(r.Messages, e)
		}
	}
	return r
}

// Close drops what is open, ends the session with a DELETE if there is one,
// and waits until every exchange has ended. The DELETE is bounded by the
// context and by two seconds; how it ends is in the log.
func (c *HTTPConn) Close(ctx context.Context) error {
	c.shut(func() { c.endSession(ctx) })
	return nil
}

func (c *HTTPConn) endSession(ctx context.Context) {
	if c.state().id == "" || c.deleted.Swap(true) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	x, err := c.start(&outbound{
		method: http.MethodDelete, url: c.site.url, header: c.header(http.MethodDelete), last: true, ordinary: true,
	})
	if err != nil {
		return
	}
	select {
	case <-x.done:
	case <-ctx.Done():
		x.cancel(context.Cause(ctx))
	}
}
