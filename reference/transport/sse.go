package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// SSE dials a server over HTTP+SSE, the transport of revision 2024-11-05. Its
// URL is that of the event stream.
type SSE struct {
	Endpoint

	unkept atomic.Bool // see roundTrip
}

// Transport returns "sse".
func (d *SSE) Transport() string { return NameSSE }

// Older finds out whether a server speaks HTTP+SSE that has refused the POST of an
// initialize with a status 4xx, as the specification tells clients to: it answers
// a GET with a stream that names an endpoint (basic/transports#backwards-compatibility).
// The GET is recorded on the connection of the POST, which is of no use afterwards.
func (d *HTTP) Older(ctx context.Context, refused Conn, head *wire.Event) (*SSE, bool) {
	c, ok := refused.(*HTTPConn)
	if !ok || !d.OrOlder || head == nil || head.HTTP.Status/100 != 4 {
		return nil, false
	}
	if newSSEConn(c.httpLink).connect(ctx) != nil {
		return nil, false
	}
	return &SSE{Endpoint: d.Endpoint}, true
}

// StreamError reports a server over HTTP+SSE that was reached, but did not open
// a stream with an endpoint event that can be used.
type StreamError struct {
	Target string
	Err    error
}

func (e *StreamError) Error() string { return "no session with " + e.Target + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StreamError) Unwrap() error { return e.Err }

// Dial opens the event stream and waits for the endpoint event. Its error is a
// *StartError or a *StreamError.
func (d *SSE) Dial(ctx context.Context, log *wire.Log) (Conn, error) {
	s, err := d.open(log, &d.unkept)
	if err != nil {
		return nil, err
	}
	c := newSSEConn(newHTTPLink(s, log))
	if err := c.connect(ctx); err != nil {
		c.shut(nil)
		var start *StartError
		if errors.As(err, &start) {
			return nil, err
		}
		return nil, &StreamError{Target: s.name, Err: err}
	}
	return c, nil
}

// SSEConn is the client's end of an HTTP+SSE connection. All messages of the server
// arrive on the stream get:1. A POST that the server
// accepts leaves no wire.KindStreamEnd, as its end says nothing about the
// answer; the end of get:1 is also a wire.KindClose of the server's, as it ends
// the connection.
type SSEConn struct {
	*httpLink
	events  *roundTrip // the GET stream
	version atomic.Pointer[string]

	initialize atomic.Pointer[wire.Message] // the request whose answer is due

	once  sync.Once
	named chan struct{} // closed when the endpoint event has come
	// Set before named is closed.
	endpoint    *url.URL
	endpointErr error
}

func newSSEConn(l *httpLink) *SSEConn {
	return &SSEConn{httpLink: l, named: make(chan struct{})}
}

// connect opens the stream and waits until the server has named the endpoint
// for messages.
func (c *SSEConn) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.site.timeout,
		&TimeoutError{Missed: "no endpoint event came", After: c.site.timeout})
	defer cancel()
	x, err := c.start(&outbound{
		method: http.MethodGet, url: c.site.url, header: c.header(http.MethodGet), patience: c.site.timeout,
		onEvent: c.onEvent, onMessage: c.onMessage, onEnd: c.onEnd,
	})
	if err != nil {
		return err
	}
	c.events = x
	if err := x.awaitHead(ctx); err != nil {
		return err
	}
	if status := x.head.HTTP.Status; status != http.StatusOK {
		// The body may say why.
		select {
		case <-x.done:
		case <-ctx.Done():
			x.cancel(context.Cause(ctx))
		}
		return fmt.Errorf("the GET was answered with HTTP status %d, not with an event stream", status)
	}
	if t := x.head.HTTP.Header.Get("Content-Type"); !strings.HasPrefix(strings.ToLower(t), typeEvents) {
		x.cancel(errDropped)
		return fmt.Errorf("the GET was answered with content type %s, not with an event stream", wire.Quote(t, 60))
	}
	select {
	case <-c.named:
		// Nothing is sent before the event is in the log.
		_, _ = c.log.Await(ctx, 0, func(e *wire.Event) bool { return e.SSE != nil && e.SSE.Event == "endpoint" })
		return c.endpointErr
	case <-x.done:
	case <-ctx.Done():
		x.cancel(context.Cause(ctx))
		<-x.done
		return context.Cause(ctx)
	}
	// The endpoint event may have been the last that the stream held.
	select {
	case <-c.named:
		if c.endpointErr != nil {
			return c.endpointErr
		}
	default:
	}
	const ended = "the event stream ended before the endpoint event"
	if x.ended != "" {
		return errors.New(ended + ": " + x.ended)
	}
	return errors.New(ended)
}

// onEvent takes the endpoint event; only the first one counts.
func (c *SSEConn) onEvent(item wire.SSEItem) bool {
	if item.SSE.Event != "endpoint" || item.Incomplete {
		return false
	}
	c.once.Do(func() {
		c.endpoint, c.endpointErr = endpointURL(c.site.url, string(item.Data))
		if c.endpointErr != nil {
			c.log.Note(c.site.redact.String(c.endpointErr.Error()))
		}
		close(c.named)
	})
	return true
}

// endpointURL resolves the URI of an endpoint event. One of another origin is
// refused: our headers and messages are meant for this server.
func endpointURL(base *url.URL, ref string) (*url.URL, error) {
	if ref == "" {
		return nil, errors.New("the endpoint event is empty, not a URI")
	}
	u, err := base.Parse(ref)
	if err != nil {
		return nil, errors.New("the data of the endpoint event is not a URI: " + wire.Quote(ref, 80))
	}
	if origin(u) != origin(base) {
		return nil, fmt.Errorf("the endpoint event names another origin, %s, to which mcpconform sends nothing",
			wire.Quote(origin(u), 120))
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return u, nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}

func (c *SSEConn) onMessage(m *wire.Message) {
	request := c.initialize.Load()
	if request == nil {
		return
	}
	if version := negotiated(request, m); version != "" {
		c.version.Store(&version)
		c.initialize.Store(nil)
	}
}

func (c *SSEConn) onEnd(_ *roundTrip, dropped bool) {
	if !dropped {
		_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: "get:1"})
	}
}

func (c *SSEConn) header(method string) http.Header {
	version := ""
	if v := c.version.Load(); v != nil {
		version = *v
	}
	return c.httpLink.header(method, version)
}

// Send posts one message and waits for the head of the response, which only
// says whether it was accepted; a status that refuses it is an event, not an
// error. The answer arrives on the stream get:1.
func (c *SSEConn) Send(ctx context.Context, m Outgoing) (*wire.Event, error) {
	c.site.admit(ctx)
	o, msg := c.httpLink.post(c.endpoint, c.header(http.MethodPost), m)
	o.omitEnd = true
	if msg.Kind == wire.Request && msg.Method == "initialize" {
		c.initialize.Store(msg)
	}
	x, err := c.start(o)
	if err != nil {
		return nil, err
	}
	// Some servers accept a request only once they have answered it.
	if acknowledged(msg) && !m.Unawaited {
		return x.sent, x.awaitHead(ctx)
	}
	return x.sent, x.awaitWritten(ctx)
}

// Close ends the event stream and waits until every exchange has ended.
func (c *SSEConn) Close(context.Context) error {
	c.shut(nil)
	return nil
}
