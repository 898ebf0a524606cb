package transport

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// HTTPRelay stands between a real client and a real server over HTTP. It passes every request on to the same path of
// the server, and every response back as it arrives, and records both: a session in a log of its own, and what is not
// of the protocol in another one, without the bodies. A message is recorded before it is passed on, so that a log
// never shows an effect before its cause. The client of a protected server gets the addresses of the relay in place of
// the server's: see relay_resource.go. The trace should be lossy, so that its limits do not end a session. Close the
// relay when it is no longer needed.
type HTTPRelay struct {
	trace     *wire.Trace
	transport string
	site      *site

	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup
	links   []*httpLink
	byKey   map[string]*httpLink // by session id, or by the path of a legacy endpoint
	newest  *httpLink            // for requests that name no session
	aside   *httpLink            // for requests that are not of the protocol
	named   string               // path of the resource metadata that the server named last, or ""
}

// NewHTTPRelay returns a relay to the server at the endpoint. The name of the
// transport, NameHTTP or NameSSE, says by which rules the trace is judged.
func NewHTTPRelay(e Endpoint, name string, trace *wire.Trace) (*HTTPRelay, error) {
	s, err := e.site()
	if err != nil {
		return nil, err
	}
	return &HTTPRelay{trace: trace, transport: name, site: s, byKey: make(map[string]*httpLink)}, nil
}

// URL returns where clients find the server behind a relay that listens at an
// address.
func (r *HTTPRelay) URL(addr string) string {
	u := url.URL{Scheme: "http", Host: addr, Path: r.site.url.Path, RawQuery: r.site.url.RawQuery}
	return u.String()
}

// Close drops what is still open and completes the logs.
func (r *HTTPRelay) Close() {
	r.mu.Lock()
	r.closed = true
	links := slices.Clone(r.links)
	r.mu.Unlock()
	for _, l := range links {
		l.shut(nil)
	}
	r.serving.Wait()
}

// ServeHTTP passes one request on.
func (r *HTTPRelay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.enter() {
		http.Error(w, "the relay is closing", http.StatusServiceUnavailable)
		return
	}
	defer r.serving.Done()
	limit := r.trace.Limits.Message
	body, err := io.ReadAll(io.LimitReader(req.Body, int64(limit)+1))
	switch {
	case err != nil:
		return // the client is gone
	case len(body) > limit:
		http.Error(w, "the body is longer than the relay's limit", http.StatusRequestEntityTooLarge)
		return
	}
	// The client's own credentials are as secret as those in the user's flags.
	r.site.redact.AddHead(req.Header, req.URL)
	msg := wire.Parse(body)
	l := r.link(req, msg)
	if l == nil {
		http.Error(w, "the relay is closing", http.StatusServiceUnavailable)
		return
	}
	o := &outbound{
		method: req.Method, url: r.target(req.URL), header: r.header(req), message: req.Method == http.MethodPost &&
			l.log.Transport != NameOAuth,
		confidential: l.log.Transport == NameOAuth, relay: &challenged{w, r, req.Host},
		omitEnd: r.transport == NameSSE && req.Method == http.MethodPost,
	}
	metadata := r.keepMetadata(o, req)
	if len(body) > 0 || o.message {
		o.body = nonNil(body)
	}
	o.onHead = func(resp *http.Response) {
		if id := resp.Header.Get(headerSession); id != "" {
			r.remember(id, l)
		}
	}
	if r.transport == NameSSE && req.Method == http.MethodGet && !o.confidential {
		r.followEvents(o, l)
	}
	x, err := l.start(o)
	if err != nil {
		http.Error(w, "the relay cannot pass the request on: "+r.site.redact.String(err.Error()), http.StatusBadGateway)
		return
	}
	defer context.AfterFunc(req.Context(), func() { x.cancel(errDropped) })()
	<-x.done
	switch {
	case x.head == nil && req.Context().Err() == nil:
		http.Error(w, "the server sent no response: "+x.err.Error(), http.StatusBadGateway)
	case x.head != nil && metadata != nil:
		r.passMetadata(w, req.Host, metadata)
	}
}

// followEvents learns from the stream of a server over HTTP+SSE where its messages go, and when it ends.
func (r *HTTPRelay) followEvents(o *outbound, l *httpLink) {
	o.onEvent = func(item wire.SSEItem) bool {
		if item.SSE.Event != "endpoint" || item.Incomplete {
			return false
		}
		if u, err := endpointURL(r.site.url, string(item.Data)); err == nil {
			r.remember(u.RequestURI(), l)
		}
		return true
	}
	o.onEnd = func(_ *roundTrip, dropped bool) {
		if !dropped {
			_, _ = l.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: "get:1"})
		}
	}
}

func (r *HTTPRelay) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.serving.Add(1)
	}
	return !r.closed
}

// link returns the connection that a request belongs to; nil when the relay is
// closed.
func (r *HTTPRelay) link(req *http.Request, msg *wire.Message) *httpLink {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	opens := msg.Method == "initialize"
	if r.transport == NameSSE {
		opens = req.Method == http.MethodGet
	}
	for _, key := range []string{req.Header.Get(headerSession), r.target(req.URL).RequestURI()} {
		if l := r.byKey[key]; l != nil && !opens {
			return l
		}
	}
	if r.beside(req, msg) {
		if r.aside == nil {
			r.aside = newHTTPLink(r.site, r.trace.Connect(NameOAuth, "beside the sessions"))
			r.links = append(r.links, r.aside)
		}
		return r.aside
	}
	if opens || r.newest == nil {
		log := r.trace.Connect(r.transport, "relayed session")
		if r.newest == nil || r.newest.log != log { // a full trace has one log for all sessions
			r.newest = newHTTPLink(r.site, log)
			r.links = append(r.links, r.newest)
		}
	}
	return r.newest
}

// beside reports whether a request is not of the protocol: it goes to another path than the
// endpoint, and neither names a session nor asks for events nor says that it is JSON-RPC. So
// clients fetch metadata and tokens where an authorization server is on the same origin.
func (r *HTTPRelay) beside(req *http.Request, msg *wire.Message) bool {
	events := slices.ContainsFunc(req.Header.Values("Accept"),
		func(v string) bool { return strings.Contains(strings.ToLower(v), typeEvents) })
	elsewhere := strings.TrimSuffix(req.URL.Path, "/") != strings.TrimSuffix(r.site.url.Path, "/")
	return elsewhere && !speaksRPC(msg) && !events && req.Header.Get(headerSession) == ""
}

// Bounds of the names of sessions that are known: how many, and their bytes. A message with another name counts as a
// part of the newest session.
const (
	maxKeys = 1 << 14
	maxKey  = 1 << 10
)

func (r *HTTPRelay) remember(key string, l *httpLink) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byKey) < maxKeys && len(key) <= maxKey {
		r.byKey[key] = l
	}
}

// target returns where a request of the client goes.
func (r *HTTPRelay) target(u *url.URL) *url.URL {
	to := *r.site.url
	to.Path, to.RawPath, to.RawQuery = u.Path, u.RawPath, u.RawQuery
	return &to
}

// hopByHop are headers that belong to one connection only (RFC 9110, section 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// header returns the client's header and what the user adds to it. The Origin
// is the client's own; Host names the server.
func (r *HTTPRelay) header(req *http.Request) http.Header {
	h := req.Header.Clone()
	for _, name := range hopByHop {
		h.Del(name)
	}
	maps.Copy(h, r.site.common(req.Context()))
	return h
}

// passHead writes the head of a response to the client.
func passHead(w http.ResponseWriter, resp *http.Response) {
	for name, values := range resp.Header {
		if !slices.Contains(hopByHop, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(w).Flush()
}

// relayBody keeps what was read of a body until it was recorded, and then passes
// it on. In an event stream it does so before it reads more.
type relayBody struct {
	io.ReadCloser
	to      http.ResponseWriter
	stream  bool
	pending []byte
}

func newRelayBody(resp *http.Response, to http.ResponseWriter) *relayBody {
	return &relayBody{ReadCloser: resp.Body, to: to,
		stream: strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), typeEvents)}
}

func (b *relayBody) Read(p []byte) (int, error) {
	if b.stream {
		b.pass()
	}
	n, err := b.ReadCloser.Read(p)
	b.pending = append(b.pending, p[:n]...)
	return n, err
}

// rest passes on what was not read, after a call of unread if there is any.
func (b *relayBody) rest(unread func()) {
	b.stream = true
	b.pass()
	if n, _ := io.ReadFull(b, make([]byte, 1)); n > 0 {
		unread()
		_, _ = io.Copy(io.Discard, b)
	}
	b.pass()
}

func (b *relayBody) pass() {
	if len(b.pending) == 0 {
		return
	}
	// A client that is gone ends the exchange by its context.
	_, _ = b.to.Write(b.pending)
	_ = http.NewResponseController(b.to).Flush()
	b.pending = b.pending[:0]
}
