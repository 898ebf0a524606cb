package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpconform/mcpconform/reference/wire"
)

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
	// acceptBoth is what every POST must accept
	// (basic/transports#sending-messages-to-the-server).
	acceptBoth = typeJSON + ", " + typeEvents

	headerSession   = "Mcp-Session-Id"
	headerVersion   = "Mcp-Protocol-Version"
	headerLastEvent = "Last-Event-Id"
)

// Causes for which we end an exchange ourselves.
var (
	errDropped = errors.New("the client dropped the connection")
	errFlooded = errors.New(wire.Stopped + wire.ErrFlood.Error())
)

// httpLink runs the HTTP exchanges of one connection and owns their
// goroutines.
type httpLink struct {
	log  *wire.Log
	site *site

	ctx     context.Context // of every exchange
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	reached atomic.Bool // a connection to the server was established once
	flood   sync.Once
	closing atomic.Bool
	// shutting is closed once no further exchanges are wanted, and shutDown once
	// there are none.
	shutting, shutDown chan struct{}

	mu     sync.Mutex
	closed bool
	counts map[string]int // exchanges so far, by method
	open   map[*roundTrip]struct{}
}

func newHTTPLink(s *site, log *wire.Log) *httpLink {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &httpLink{
		log: log, site: s, ctx: ctx, cancel: cancel, shutting: make(chan struct{}), shutDown: make(chan struct{}),
		counts: make(map[string]int), open: make(map[*roundTrip]struct{}),
	}
}

// Log of the connection.
func (l *httpLink) Log() *wire.Log { return l.log }

// header returns the header of a request, in which the version is left out that a header cannot carry.
func (l *httpLink) header(method, version string) http.Header {
	h := l.site.common(l.ctx)
	fill(h, "User-Agent", "mcpconform")
	switch method {
	case http.MethodPost:
		fill(h, "Content-Type", typeJSON)
	case http.MethodGet:
		fill(h, "Accept", typeEvents)
	}
	if version != "" && httpguts.ValidHeaderFieldValue(version) {
		h.Set(headerVersion, version)
	}
	return h
}

func fill(h http.Header, name, value string) {
	if _, ok := h[name]; !ok {
		h.Set(name, value)
	}
}

// post returns the POST of a message with a header, which the message may override.
func (l *httpLink) post(to *url.URL, header http.Header, m Outgoing) (*outbound, *wire.Message) {
	msg := l.log.Parse(m.Raw)
	o := &outbound{
		method: http.MethodPost, url: to, header: header, body: nonNil(m.Raw), message: true, parsed: msg,
		deliberate: m.Deliberate, patience: l.site.timeout, ordinary: m.ordinary(msg),
	}
	if !acknowledged(msg) {
		o.patience *= turns
	}
	override(header, m.Header)
	return o, msg
}

// shut refuses further exchanges, drops those that are open, calls last, waits for
// all goroutines and completes the log.
func (l *httpLink) shut(last func()) {
	if l.closing.Swap(true) {
		<-l.shutDown
		return
	}
	defer close(l.shutDown)
	l.mu.Lock()
	l.closed = true
	close(l.shutting)
	for x := range l.open {
		x.cancel(errDropped)
	}
	l.mu.Unlock()
	if last != nil {
		last()
	}
	l.cancel(errDropped)
	l.running.Wait()
	l.site.endKept()
	l.log.End()
}

// flooded ends everything: the log does not take more of what the peer sends.
func (l *httpLink) flooded() error {
	l.flood.Do(func() {
		l.cancel(errFlooded)
		l.log.Note(errFlooded.Error())
	})
	return errFlooded
}

// outbound is a request to be sent.
type outbound struct {
	method     string
	url        *url.URL
	header     http.Header   // complete; not changed any more
	body       []byte        // nil for none
	message    bool          // the body stands for a message
	parsed     *wire.Message // the message, once it was parsed
	deliberate []string
	// patience bounds the time to the head of the response; zero sets no bound.
	patience time.Duration
	last     bool // sent although the connection is being closed
	ordinary bool // a message as any client sends it
	// omitEnd does not record the end of an exchange that was accepted.
	omitEnd bool
	// confidential leaves out both bodies from the record.
	confidential bool
	// relay gets the response once it is recorded; it may be nil.
	relay http.ResponseWriter

	// Called before the head, or a message, is recorded, so that whoever reads
	// the record finds the connection ready for the next step.
	onHead    func(*http.Response)
	onMessage func(*wire.Message)
	// onEvent may claim an event of the stream that holds no message.
	onEvent func(wire.SSEItem) (claimed bool)
	onEnd   func(x *roundTrip, dropped bool)
}

// roundTrip is one HTTP request while it is under way: it records an HTTP exchange.
type roundTrip struct {
	*outbound
	link   *httpLink
	stream string
	sent   *wire.Event // the first event of the exchange
	ctx    context.Context
	cancel context.CancelCauseFunc

	connected atomic.Bool
	reused    atomic.Bool // the connection had an exchange before
	lastID    atomic.Pointer[string]

	// State of an event stream, set by the goroutine that reads it.
	events  bool          // it is one
	brought bool          // anything came on it, if only a comment
	retry   time.Duration // that the server last asked for

	wroteOnce sync.Once
	wrote     chan struct{} // closed when the request left as a whole
	headed    chan struct{} // closed when the head was recorded, or will not come
	done      chan struct{} // closed when the end was recorded

	ended string // how, or "" for a clean end; set before done is closed

	// Set before headed is closed.
	head *wire.Event // nil when none came
	err  error       // why none came
}

// start records a request and sends it in a goroutine of its own.
func (l *httpLink) start(o *outbound) (*roundTrip, error) {
	x := &roundTrip{
		outbound: o, link: l,
		wrote: make(chan struct{}), headed: make(chan struct{}), done: make(chan struct{}),
	}
	var body io.Reader
	if o.body != nil {
		body = bytes.NewReader(o.body)
	}
	x.ctx, x.cancel = context.WithCancelCause(l.ctx)
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(x.ctx, x.trace()), o.method, o.url.String(), body)
	if err != nil {
		x.cancel(nil)
		return nil, fmt.Errorf("%s cannot be sent: %w", o.method, err)
	}
	setHeader(req, o.header)
	if err := l.admit(x); err != nil {
		x.cancel(nil)
		return nil, err
	}
	if err := x.recordRequest(req); err != nil {
		x.cancel(nil)
		l.release(x)
		l.running.Done()
		return nil, err
	}
	go x.run(req)
	return x, nil
}

// admit counts the exchange among the running ones and names its stream.
func (l *httpLink) admit(x *roundTrip) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed && !x.last {
		return ErrClosed
	}
	l.counts[x.method]++
	x.stream = strings.ToLower(x.method) + ":" + strconv.Itoa(l.counts[x.method])
	l.open[x] = struct{}{}
	l.running.Add(1)
	return nil
}

func (l *httpLink) release(x *roundTrip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, x)
}

// setHeader gives the request exactly the header h, in its spelling, except for
// what net/http writes itself.
func setHeader(req *http.Request, h http.Header) {
	for name, values := range h {
		switch key := http.CanonicalHeaderKey(name); key {
		case "Host":
			if len(values) > 0 {
				req.Host = values[0]
			}
		case "User-Agent":
			req.Header[key] = values
		case "Content-Length", "Transfer-Encoding", "Trailer":
			// net/http frames the body; it would not send these.
		default:
			req.Header[name] = values
		}
	}
	if _, ok := req.Header["User-Agent"]; !ok {
		req.Header["User-Agent"] = nil // keeps net/http from adding its own
	}
}

// recordRequest appends the message, or body, and the head.
func (x *roundTrip) recordRequest(req *http.Request) error {
	log := x.link.log
	if !x.confidential && (x.message || len(x.body) > 0) {
		kind := wire.KindBody
		if x.message {
			kind = wire.KindMessage
		}
		sent, err := log.Append(wire.Event{
			Kind: kind, From: wire.Client, Stream: x.stream, Raw: x.body, Msg: x.parsed, Deliberate: x.deliberate,
		})
		if err != nil {
			return err
		}
		x.sent = sent
	}
	redact := x.link.site.redact
	header := redact.Header(req.Header)
	header.Set("Host", req.Host)
	if x.body != nil {
		header.Set("Content-Length", strconv.Itoa(len(x.body)))
	}
	head, err := log.Append(wire.Event{
		Kind: wire.KindHTTPRequest, From: wire.Client, Stream: x.stream, Deliberate: x.deliberate,
		HTTP: &wire.Head{Method: x.method, URL: redact.URL(x.url), Header: header},
	})
	if x.sent == nil {
		x.sent = head
	}
	return err
}

func (x *roundTrip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			x.connected.Store(true)
			x.reused.Store(info.Reused)
			x.link.reached.Store(true)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				x.wroteOnce.Do(func() { close(x.wrote) })
			}
		},
	}
}

func (x *roundTrip) run(req *http.Request) {
	defer x.link.running.Done()
	note := x.perform(req)
	x.ended = note
	dropped := errors.Is(context.Cause(x.ctx), errDropped)
	x.cancel(nil)
	x.link.release(x)
	accepted := note == "" && x.head != nil && x.head.HTTP.Status/100 == 2
	if !x.omitEnd || !accepted {
		from := wire.Server
		if dropped {
			from = wire.Client
		}
		_, _ = x.link.log.Append(wire.Event{Kind: wire.KindStreamEnd, From: from, Stream: x.stream, Note: note})
	}
	if x.onEnd != nil {
		x.onEnd(x, dropped)
	}
	if x.head == nil {
		close(x.headed)
	}
	close(x.done)
}

// perform sends the request and records the response. It returns how the exchange
// ended, or "" for a clean end.
func (x *roundTrip) perform(req *http.Request) string {
	var limit *time.Timer
	if x.patience > 0 {
		limit = time.AfterFunc(x.patience, func() { x.cancel(x.timeoutError()) })
		defer limit.Stop()
	}
	resp, err := x.authorized(req)
	if limit != nil {
		limit.Stop()
	}
	if err != nil {
		note := x.describe(err)
		if cause := context.Cause(x.ctx); cause != nil {
			err = cause
		}
		x.err = &endError{note: note, cause: err}
		return note
	}
	defer func() { _ = resp.Body.Close() }()
	if x.onHead != nil {
		x.onHead(resp)
	}
	x.head, err = x.link.log.Append(wire.Event{
		Kind: wire.KindHTTPResponse, From: wire.Server, Stream: x.stream,
		HTTP: &wire.Head{Status: resp.StatusCode, Header: x.link.site.redact.Header(resp.Header)},
	})
	if err != nil {
		x.err = err
		return x.link.flooded().Error()
	}
	if x.link.site.limits != nil && wire.TooMany(x.head) {
		x.link.site.limits.Refused(x.head)
	}
	if x.relay != nil {
		passHead(x.relay, resp)
		body := newRelayBody(resp, x.relay)
		defer body.rest(func() { x.link.log.Stop("a body or event is longer than the limit") })
		resp.Body = body
	}
	close(x.headed)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The bare connection follows, and no deadline of the request reaches it (RFC 9110, section 15.2.2: the
		// client asks for the upgrade).
		return "the server switched to another protocol (101), which the request did not ask for"
	}
	encoding := resp.Header.Get("Content-Encoding")
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	resp.Header = nil // a copy is in the record, and this one may be large
	if mediaType == typeEvents && unencoded(encoding) {
		return x.readEvents(resp)
	}
	return x.readBody(resp, mediaType, encoding)
}

func unencoded(encoding string) bool {
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// timeoutError says what did not happen in time.
func (x *roundTrip) timeoutError() error {
	missed := "the server accepted the connection and sent no response head"
	if !x.connected.Load() {
		missed = "there was no connection to " + x.link.site.name
	}
	return &TimeoutError{Missed: missed, After: x.patience}
}

// endError says how an exchange ended without a head.
type endError struct {
	note  string
	cause error
}

func (e *endError) Error() string { return e.note }

// Unwrap returns the cause.
func (e *endError) Unwrap() error { return e.cause }

// maxNote bounds what an error repeats of the peer's words.
const maxNote = 300

// describe says how an exchange failed, in one clause.
func (x *roundTrip) describe(err error) string {
	if cause := context.Cause(x.ctx); cause != nil {
		return cause.Error()
	}
	var lookup *net.DNSError
	switch {
	case failedAt(err, "proxyconnect"):
		return "the proxy cannot be reached: " + x.link.site.redact.String(err.Error())
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused + x.link.site.name
	case errors.As(err, &lookup):
		return "the host " + wire.Quote(lookup.Name, 80) + " cannot be found: " + lookup.Err
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection before the head of its response was complete"
	}
	text := []rune(x.link.site.redact.String(err.Error()))
	if len(text) > maxNote {
		text = append(text[:maxNote], '…')
	}
	return string(text)
}

const refused = "connection refused: nothing listens at "

// Gone reports whether an event says that the server no longer listens.
func Gone(e *wire.Event) bool {
	return (e.Kind == wire.KindStreamEnd || e.Kind == wire.KindClose) && strings.HasPrefix(e.Note, refused)
}

// failedAt reports whether an error is one of a step on the way to the server.
func failedAt(err error, step string) bool {
	var opErr *net.OpError
	return errors.As(err, &opErr) && opErr.Op == step
}

// bodyEnd says how a body ended after n bytes, or "" for a clean end.
func (x *roundTrip) bodyEnd(resp *http.Response, n int64, err error) string {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return ""
	case context.Cause(x.ctx) != nil:
		return context.Cause(x.ctx).Error()
	case errors.Is(err, io.ErrUnexpectedEOF) && resp.ContentLength >= 0:
		return fmt.Sprintf("the body ended after %d bytes, but its head declares %d", n, resp.ContentLength)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended inside a chunked body"
	}
	return x.describe(err)
}

// readBody records a body that is not an event stream: as a message if it is or
// should be one.
func (x *roundTrip) readBody(resp *http.Response, mediaType, encoding string) string {
	limit := x.link.log.Limits().Message
	body := x.reader(resp)
	defer body.recorded()
	raw, err := body.all(resp.ContentLength, int64(limit)+1)
	end := x.bodyEnd(resp, int64(len(raw)), err)
	if len(raw) == 0 || x.confidential {
		return end
	}
	e := wire.Event{Kind: wire.KindBody, Raw: raw}
	if over := len(raw) - limit; over > 0 {
		e.Raw, e.Dropped = raw[:limit], int64(over)
		end = fmt.Sprintf(wire.Stopped+"the body is longer than %d bytes", limit)
	}
	if x.link.log.Transport == NameOAuth {
		// No message, whatever it holds.
	} else if !unencoded(encoding) {
		e.Note = "the body is encoded as " + wire.Quote(encoding, 40) + ", which the request did not ask for"
	} else if msg := x.link.log.Parse(e.Raw); speaksRPC(msg) ||
		x.dueMessage() && mediaType == typeJSON && resp.StatusCode/100 == 2 && (end == "" || e.Dropped > 0) {
		e.Kind, e.Msg = wire.KindMessage, msg
	}
	if x.emit(e) != nil {
		return errFlooded.Error()
	}
	return end
}

// messageReader reads the body of a response for a log. It reads on in a large message when few others are being read.
type messageReader struct {
	ctx  context.Context
	log  *wire.Log // nil takes no turns
	r    io.Reader
	n    int64  // bytes so far
	from int64  // where the message begins that is being read
	done func() // ends the turn of a large message; nil before it
}

// reader returns the reader of a body. A body that is passed on has no turns, since whom it is for may read slowly.
func (x *roundTrip) reader(resp *http.Response) *messageReader {
	m := &messageReader{ctx: x.ctx, r: resp.Body}
	if x.relay == nil {
		m.log = x.link.log
	}
	return m
}

func (m *messageReader) Read(p []byte) (int, error) {
	if err := m.turn(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	return n, err
}

// turn waits for the turn of the message, if it is large.
func (m *messageReader) turn() (err error) {
	if m.log != nil && m.done == nil && m.n-m.from >= wire.LargeMessage {
		m.done, err = m.log.ReadLarge(m.ctx)
	}
	return err
}

// recorded says that what was read is in the record, or is thrown away.
func (m *messageReader) recorded() {
	m.from = m.n
	if m.done != nil {
		m.done()
		m.done = nil
	}
}

// all reads up to a limit. The declared length, -1 for none, spares a large body from being held twice.
func (m *messageReader) all(declared, limit int64) ([]byte, error) {
	if min(declared, limit) <= wire.LargeMessage {
		raw, err := io.ReadAll(io.LimitReader(m, limit))
		if cap(raw) > 2*len(raw) {
			raw = bytes.Clone(raw) // ReadAll leaves much room after a short body
		}
		return raw, err
	}
	head, err := io.ReadAll(io.LimitReader(m, wire.LargeMessage))
	if err != nil || len(head) < wire.LargeMessage {
		return head, err
	}
	if err := m.turn(); err != nil {
		return head, err
	}
	raw := append(make([]byte, 0, min(declared, limit)), head...)
	n, err := io.ReadFull(m, raw[len(raw):cap(raw)])
	return raw[:len(raw)+n], err
}

// dueMessage reports whether the body of a response must be a message: over
// Streamable HTTP the answer to a request must, other answers may hold anything
// (basic/transports#sending-messages-to-the-server).
func (x *roundTrip) dueMessage() bool {
	return x.link.log.Transport == NameHTTP && x.sent != nil && x.sent.Msg != nil &&
		(x.sent.Msg.Kind == wire.Request || x.sent.Msg.Kind == wire.Batch)
}

// speaksRPC reports whether a message declares itself as JSON-RPC. An {"error": …} of another kind does not.
func speaksRPC(m *wire.Message) bool {
	if m.Kind == wire.Batch {
		return slices.ContainsFunc(m.Batch, speaksRPC)
	}
	return m.Kind != wire.Invalid && !m.Has(wire.JSONRPCMissing)
}

// emit records an event of the server's on the exchange's stream.
func (x *roundTrip) emit(e wire.Event) error {
	e.From, e.Stream = wire.Server, x.stream
	if e.Msg != nil && x.onMessage != nil {
		x.onMessage(e.Msg)
	}
	if _, err := x.link.log.Append(e); err != nil {
		return x.link.flooded()
	}
	return nil
}

// readEvents records an event stream: messages, and whatever else it holds.
func (x *roundTrip) readEvents(resp *http.Response) string {
	x.events = true
	limit := x.link.log.Limits().Message
	body := x.reader(resp)
	defer body.recorded()
	events := wire.NewSSEReader(body, limit)
	for {
		item, err := events.Next()
		switch {
		case errors.Is(err, wire.ErrSSETooLong):
			return fmt.Sprintf(wire.Stopped+"an event is longer than %d bytes", limit)
		case err != nil:
			return x.bodyEnd(resp, body.n, err)
		}
		x.brought = true
		if ms, err := strconv.Atoi(item.SSE.Retry); err == nil && !item.Incomplete {
			x.retry = time.Duration(min(ms, 1<<30)) * time.Millisecond
		}
		if item.SSE.HasID && !item.Incomplete {
			x.lastID.Store(&item.SSE.ID)
		}
		if x.emit(x.event(item)) != nil {
			return errFlooded.Error()
		}
		body.recorded()
	}
}

// event turns an item of the stream into an event of the log.
func (x *roundTrip) event(item wire.SSEItem) wire.Event {
	e := wire.Event{Kind: wire.KindSSE, Raw: item.Data, SSE: &item.SSE, Dropped: item.Dropped, Note: item.Fault()}
	switch {
	case x.onEvent != nil && x.onEvent(item):
	case item.Dropped > 0:
		// It is too long: what is kept is judged as on stdio.
		if item.Data != nil {
			e.Kind, e.Msg = wire.KindMessage, x.link.log.Parse(item.Data)
		}
	case item.Incomplete:
		e.Note = join(e.Note, wire.InsideEvent)
		// The last event id is that of the last event that was dispatched (HTML Standard, section 9.2.6).
		if item.SSE.HasID {
			e.Note += ", whose id " + wire.Quote(item.SSE.ID, maxNote) + " does not count"
			e.SSE.ID, e.SSE.HasID = "", false
		}
	case item.Data != nil && len(item.Data) == 0:
		e.Note = join(e.Note, "the event's data is empty")
	case item.Data != nil:
		// A stream may also carry events of other types.
		msg := x.link.log.Parse(item.Data)
		if name := item.SSE.Event; name == "" || name == "message" || speaksRPC(msg) {
			e.Kind, e.Msg = wire.KindMessage, msg
		}
	}
	return e
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// awaitWritten waits until the request has left. It ends the exchange when the
// context ends before.
func (x *roundTrip) awaitWritten(ctx context.Context) error {
	select {
	case <-x.wrote:
		return nil
	case <-x.headed: // answered, or failed, before it was read as a whole
	case <-ctx.Done():
		x.cancel(context.Cause(ctx))
		<-x.headed
	}
	select {
	case <-x.wrote:
		return nil
	default:
		return x.failure()
	}
}

// awaitHead waits for the head of the response. It ends the exchange when the
// context ends before.
func (x *roundTrip) awaitHead(ctx context.Context) error {
	select {
	case <-x.headed:
	case <-ctx.Done():
		x.cancel(context.Cause(ctx))
		<-x.headed
	}
	return x.failure()
}

// failure returns why no head came: a *StartError when the server was never
// reached.
func (x *roundTrip) failure() error {
	switch {
	case x.err == nil:
		return nil
	case errors.Is(x.err, errDropped):
		return ErrClosed
	case errors.Is(x.err, syscall.ECONNRESET), errors.Is(x.err, syscall.EPIPE):
		// A server was reached, however early the end came.
	case !x.link.reached.Load(), failedAt(x.err, "remote error"): // an alert of TLS: the server was not reached
		return &StartError{Target: x.link.site.name, Err: x.err}
	}
	return fmt.Errorf("%s without a response: %w", x.method, x.err)
}
