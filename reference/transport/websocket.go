package transport

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Subprotocol is what SDKs that offer WebSocket name in its handshake.
const Subprotocol = "mcp"

// StreamWebSocket is the stream of all messages over a WebSocket, in both directions.
const StreamWebSocket = "websocket"

const (
	schemeWS  = "ws"
	schemeWSS = "wss"
)

// IsWebSocket reports whether a URL is that of a WebSocket.
func IsWebSocket(rawURL string) bool {
	scheme, _, found := strings.Cut(rawURL, "://")
	return found && (strings.EqualFold(scheme, schemeWS) || strings.EqualFold(scheme, schemeWSS))
}

// Bounds on what a peer may do with a WebSocket.
const (
	// closeFrameWait is how long the peer may take to answer a close frame.
	closeFrameWait = 2 * time.Second
	// mostPings is how many ping frames may come between two messages.
	mostPings = 1000
	// mostOfFrames is how many bytes of a message each byte that arrived pays for: the longest head of a
	// frame that brings one byte, and that byte.
	mostOfFrames = 15
	// mostIdle bounds the bytes that may come without any part of a message: pings, pongs and empty fragments. They
	// are legal, but something else has to come as well. A single read is shorter.
	mostIdle, readAtOnce = 256 << 10, 32 << 10
)

// WebSocket dials a server over a WebSocket (RFC 6455), a custom transport: each text
// frame is one message. Redirects are reported, not followed.
type WebSocket struct{ Endpoint Endpoint }

// Transport returns "custom".
func (d *WebSocket) Transport() string { return NameCustom }

// Dial makes the handshake. Its error is a *StartError.
func (d *WebSocket) Dial(ctx context.Context, log *wire.Log) (Conn, error) {
	c, err := d.dial(ctx, log, func([]byte) {})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial is Dial with what each message of the server is passed to once it is recorded.
func (d *WebSocket) dial(ctx context.Context, log *wire.Log, pass func(raw []byte)) (*WebSocketConn, error) {
	s, err := d.Endpoint.open(log, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout,
		&TimeoutError{Missed: "the handshake of the WebSocket was not answered", After: s.timeout})
	defer cancel()
	frames := newFrames(log.Limits().Message)
	handshake := http.Client{Transport: framed{s.transport, frames},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	options := websocket.DialOptions{
		HTTPClient: &handshake, HTTPHeader: s.common(ctx), Host: s.header.Get("Host"),
		Subprotocols: []string{Subprotocol}, OnPingReceived: frames.pinged,
	}
	socket, answer, err := websocket.Dial(ctx, s.url.String(), &options) //nolint:bodyclose // Dial has closed it
	if err != nil {
		if err = s.refusal(answer, err); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, unstarted(log, &StartError{Target: s.name, Err: err})
	}
	if socket.Subprotocol() != Subprotocol {
		log.Note("the server did not choose the WebSocket subprotocol " + Subprotocol)
	}
	frames.use(socket)
	c := &WebSocketConn{frames: frames, log: log, pass: pass, sending: make(chan struct{}, 1),
		done: make(chan struct{})}
	go c.run()
	return c, nil
}

// refusal says why there was no handshake.
func (s *site) refusal(answer *http.Response, err error) error {
	var urlErr *url.Error
	switch {
	case answer == nil && errors.As(err, &urlErr):
		return urlErr.Err // without the URL
	case answer == nil:
		return err
	case answer.StatusCode == http.StatusSwitchingProtocols:
		return fmt.Errorf("the handshake of the WebSocket is wrong: %w", errors.Unwrap(err))
	}
	status := fmt.Sprintf("the server answered the handshake of the WebSocket with status %d, not with 101",
		answer.StatusCode)
	if to := answer.Header.Get("Location"); answer.StatusCode/100 == 3 && to != "" {
		status += "; redirects are not followed, and this one leads to " + wire.Quote(s.redact.rawURL(to), 200)
	}
	if answer.StatusCode == http.StatusUnauthorized {
		status += "; --header or --bearer-env gives it credentials"
	}
	if slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable}, answer.StatusCode) {
		status += "; the URL of a server over HTTP begins with http:// or https://"
	}
	return errors.New(status)
}

// WebSocketConn is the client's end of a WebSocket.
type WebSocketConn struct {
	frames  *Frames
	log     *wire.Log
	pass    func(raw []byte)
	sending chan struct{} // holds one element while a message is recorded and written
	closing sync.Once
	closed  atomic.Bool
	done    chan struct{} // closed when the reader has ended
}

// Log of the connection.
func (c *WebSocketConn) Log() *wire.Log { return c.log }

// Send sends one message as a text frame.
func (c *WebSocketConn) Send(ctx context.Context, m Outgoing) (*wire.Event, error) {
	select {
	case c.sending <- struct{}{}:
		defer func() { <-c.sending }()
	case <-c.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("write to the WebSocket: %w", context.Cause(ctx))
	}
	select {
	case <-c.done:
		return nil, ErrClosed
	default:
	}
	if c.closed.Load() {
		return nil, ErrClosed
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("write to the WebSocket: %w", context.Cause(ctx))
	}
	// It is recorded before it is written, so that the answer comes later.
	sent, err := c.log.Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: StreamWebSocket, Raw: m.Raw,
		Deliberate: m.Deliberate})
	if err != nil {
		return nil, err
	}
	switch err := c.frames.Write(ctx, m.Raw); {
	case err == nil:
		return sent, nil
	case ctx.Err() != nil:
		return sent, fmt.Errorf("write to the WebSocket: %w", context.Cause(ctx))
	default:
		return sent, fmt.Errorf("write to the WebSocket: %w: %w", ErrClosed, err)
	}
}

// run is the reader.
func (c *WebSocketConn) run() {
	defer close(c.done)
	defer c.log.End()
	defer c.frames.End()
	for {
		raw, dropped, err := c.frames.Read()
		if err != nil {
			_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: StreamWebSocket,
				Note: DescribeClose("the server", err)})
			return
		}
		_, err = c.log.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: StreamWebSocket, Raw: raw,
			Dropped: dropped})
		if err == nil && dropped > 0 {
			err = fmt.Errorf("a message is longer than %d bytes", c.log.Limits().Message)
		}
		if err != nil {
			c.log.Note(wire.Stopped + err.Error())
			return
		}
		c.pass(raw)
	}
}

// Close sends a close frame, waits for that of the server, and ends the connection.
func (c *WebSocketConn) Close(ctx context.Context) error {
	c.closing.Do(func() {
		c.closed.Store(true)
		_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: StreamWebSocket})
		c.frames.Close(ctx)
	})
	<-c.done
	return nil
}

// Frames are the messages of a WebSocket, one a text frame.
type Frames struct {
	most    int // bytes of a message
	socket  *websocket.Conn
	conn    io.Closer       // below the socket
	pings   atomic.Int64    // since the last message
	reading context.Context // its end is that of the connection
	stop    context.CancelCauseFunc

	mu   sync.Mutex
	idle int // bytes that came and brought nothing of a message
}

// newFrames returns the messages of a WebSocket, the longest of which has so many bytes. The
// socket is still to be set with use; pinged has to be told of its pings, and count of its bytes.
func newFrames(most int) *Frames {
	f := &Frames{most: most}
	f.reading, f.stop = context.WithCancelCause(context.Background())
	return f
}

// use sets the socket.
func (f *Frames) use(socket *websocket.Conn) {
	socket.SetReadLimit(-1) // Read has the limit, and keeps what came before it
	f.socket = socket
	context.AfterFunc(f.reading, func() { _ = f.conn.Close() })
}

// AcceptFrames answers the handshake of a WebSocket, with an error as well, and returns its messages, the longest
// of which has so many bytes. Pages of other origins are refused.
func AcceptFrames(w http.ResponseWriter, r *http.Request, most int) (*Frames, error) {
	f := newFrames(most)
	socket, err := websocket.Accept(hijacked{w, f}, r,
		&websocket.AcceptOptions{Subprotocols: []string{Subprotocol}, OnPingReceived: f.pinged})
	if err != nil {
		return nil, err
	}
	f.use(socket)
	return f, nil
}

// framed tells the messages of a WebSocket of the bytes that the server sends after the handshake.
type framed struct {
	http.RoundTripper
	frames *Frames
}

func (t framed) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if conn, ok := answer.Body.(io.ReadWriteCloser); ok {
		t.frames.conn = conn
		answer.Body = counted{conn, t.frames}
	}
	return answer, nil
}

// hijacked tells the messages of a WebSocket of the bytes that the client sends after the handshake.
type hijacked struct {
	http.ResponseWriter
	frames *Frames
}

func (w hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.frames.conn = conn
	return countedConn{conn, w.frames}, buffered, nil
}

type counted struct {
	io.ReadWriteCloser
	frames *Frames
}

func (c counted) Read(p []byte) (int, error) { return c.frames.count(c.ReadWriteCloser.Read(p)) }

type countedConn struct {
	net.Conn
	frames *Frames
}

func (c countedConn) Read(p []byte) (int, error) { return c.frames.count(c.Conn.Read(p)) }

// count counts the bytes read from the connection. It ends the connection if a peer sends only frames without
// content.
func (f *Frames) count(n int, err error) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle += n; f.idle > mostIdle {
		f.stop(fmt.Errorf("more than %d bytes of frames came that bring nothing of a message", mostIdle))
		return n, cmp.Or(err, net.ErrClosed)
	}
	return n, err
}

// brought takes from the count what a part of a message may have needed.
func (f *Frames) brought(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle = max(0, f.idle-mostOfFrames*n)
}

// payload is what the frames of a message bring.
type payload struct {
	from   io.Reader
	frames *Frames
}

func (p payload) Read(b []byte) (int, error) {
	n, err := p.from.Read(b[:min(len(b), readAtOnce)])
	p.frames.brought(n)
	return n, err
}

// pinged counts a ping frame, and ends the connection with a peer that only pings.
func (f *Frames) pinged(context.Context, []byte) bool {
	if f.pings.Add(1) <= mostPings {
		return true
	}
	f.stop(fmt.Errorf("more than %d ping frames came without a message", mostPings))
	return false
}

// errBinary is the end of a peer that sends messages in binary frames.
var errBinary = errors.New("a binary frame came; each message has to be a text frame")

// Read returns the next message. If that is too long, it returns the first bytes and how many
// more it has seen; no further message can be read then.
func (f *Frames) Read() (raw []byte, dropped int64, err error) {
	// A context that can end would be watched anew for each part of each frame.
	kind, frame, err := f.socket.Reader(context.Background())
	if err == nil && kind != websocket.MessageText {
		err = errBinary
	}
	if err == nil {
		f.pings.Store(0)
		raw, err = io.ReadAll(io.LimitReader(payload{frame, f}, int64(f.most)+1))
	}
	var closed websocket.CloseError
	if f.reading.Err() != nil && !errors.As(err,
		&closed) { // what the peer said of its end counts, even if we stopped after that
		err = context.Cause(f.reading)
	}
	if err != nil {
		return nil, 0, err
	}
	if over := len(raw) - f.most; over > 0 {
		return raw[:f.most], int64(over), nil
	}
	return raw, 0, nil
}

// Write writes a message. When the context ends before it is written, so does the connection.
func (f *Frames) Write(ctx context.Context, raw []byte) error {
	return f.socket.Write(ctx, websocket.MessageText, raw)
}

// Close closes the WebSocket in order while another goroutine reads, and ends it if the peer
// does not close its side in time.
func (f *Frames) Close(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, closeFrameWait)
	defer cancel()
	defer context.AfterFunc(limited, func() { f.stop(errEnded) })()
	// Either the reader meets the close frame of the peer, or this does.
	closed := websocket.CloseError{Code: websocket.StatusNormalClosure}
	if err := f.socket.Close(closed.Code, ""); err == nil || errors.As(err, &closed) {
		f.stop(closed)
	}
	f.stop(errEnded)
}

// errEnded is the end of a WebSocket that we have ended.
var errEnded = errors.New("the WebSocket was ended without a close frame of the peer")

// End ends the connection at once.
func (f *Frames) End() {
	f.stop(errEnded)
	_ = f.socket.CloseNow()
}

// DescribeClose says how a peer has ended a WebSocket.
func DescribeClose(peer string, err error) string {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason != "":
		return fmt.Sprintf("%s closed the WebSocket with code %d and the reason %s", peer, closed.Code,
			wire.Quote(closed.Reason, 200))
	case errors.As(err, &closed) && closed.Code == websocket.StatusNoStatusRcvd:
		return peer + " closed the WebSocket without a code"
	case errors.As(err, &closed):
		return fmt.Sprintf("%s closed the WebSocket with code %d", peer, closed.Code)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return peer + " ended the connection without a close frame"
	case errors.Is(err, errEnded):
		return err.Error()
	}
	return "the WebSocket was ended: " + err.Error()
}
