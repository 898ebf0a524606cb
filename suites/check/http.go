package check

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// HTTP returns the connection of the check's session over Streamable HTTP. On
// another transport it ends the body.
func (t *T) HTTP() *transport.HTTPConn {
	conn, ok := t.Session.Conn.(*transport.HTTPConn)
	if !ok {
		t.Skip("another transport")
	}
	return conn
}

// Do sends a raw HTTP request with the headers of an ordinary one, changed by
// those of the request, and waits for the end of the response, or for its head if a
// GET opens an event stream. It ends the body when no response comes.
func (t *T) Do(r transport.Request) *transport.Response { return t.DoOn(t.HTTP(), r) }

// DoOn is Do on another connection.
func (t *T) DoOn(conn *transport.HTTPConn, r transport.Request) *transport.Response {
	var got reply
	t.yield(func() { got = t.ask(conn, r) })
	return t.take(got)
}

// DoEach is DoOn with each of the requests on its own connection, a few at a time. A slow step, such as a handshake,
// then passes once for all of them. Each response is judged in turn, with the evidence of its request alone.
func (t *T) DoEach(conns []*transport.HTTPConn, requests []transport.Request,
	judge func(i int, r *transport.Response)) {
	replies := make([]reply, len(requests))
	concurrently(len(requests), func(i int) { replies[i] = t.ask(conns[i], requests[i]) })
	for i, r := range replies {
		t.Clear()
		judge(i, t.take(r))
	}
}

// atOnce is the number of slow operations, each on its own connection, that one check runs at a time.
const atOnce = 8

// concurrently calls do with each number below n, a few at a time, and waits for all of them.
func concurrently(n int, do func(i int)) {
	slots := make(chan struct{}, atOnce)
	var under sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	under.Wait()
}

// reply is what came of a raw HTTP request.
type reply struct {
	response *transport.Response
	shown    []*wire.Event
	err      error // that no response came
}

// take adds the evidence of a reply to that of the check, and ends the body if no
// response came.
func (t *T) take(r reply) *transport.Response {
	t.Show(r.shown...)
	t.Must(r.err)
	return r.response
}

// ask sends a raw HTTP request as Do says, up to three times if a gateway does not reach the server. It leaves the
// check as it is, so that other requests may run beside it.
func (t *T) ask(conn *transport.HTTPConn, r transport.Request) (got reply) {
	again := client.Options{Limited: t.engine.limits.wait}
	for tries := 1; ; tries++ {
		if tries == 2 {
			r.Deliberate = append(slices.Clip(r.Deliberate),
				ids.BaseRequestIDUnique) // in case that it did reach the server
		}
		got = t.askOnce(conn, r)
		if got.response == nil || !wire.Unreached(got.response.Head) ||
			!again.Passes(t.Context, got.response.Head, len(got.response.Messages) > 0, tries) {
			return got
		}
	}
}

func (t *T) askOnce(conn *transport.HTTPConn, r transport.Request) (got reply) {
	r.Defaults = true
	ctx, cancel := context.WithTimeoutCause(t.Context, t.engine.Timeout,
		&client.TimeoutError{Awaited: "end of the response to a " + cmp.Or(r.Method, http.MethodPost),
			After: t.engine.Timeout})
	defer cancel()
	s, err := conn.Open(ctx, r)
	if err != nil {
		return reply{err: err}
	}
	defer s.Close()
	for {
		if r.Method == http.MethodGet && Streams(s.Head.HTTP.Header) {
			break
		}
		e, err := s.Next(ctx)
		if err != nil {
			break // the end, or the limit of time
		}
		if e.Msg != nil && e.Msg.IsResponse() && Streams(s.Head.HTTP.Header) {
			break // whether the stream ends is another question
		}
	}
	got.response = s.Response()
	x := conn.Log().Carrier(s.Head)
	if x != nil {
		got.shown = x.Events()
		if m := x.Message(); m != nil && m.Msg.Kind == wire.Request && x.OK() && len(got.response.Messages) == 0 {
			if e := client.Elsewhere(t.Context, conn.Log(), m); e != nil { // it must not, which the rules judge
				got.response.Messages = append(got.response.Messages, e)
			}
		}
	}
	got.shown = append(got.shown, got.response.Messages...)
	if x != nil {
		got.shown = append(got.shown, x.Body())
	}
	if ctx.Err() != nil && t.Context.Err() == nil && len(got.response.Messages) == 0 {
		got.err = context.Cause(ctx)
	}
	return got
}

// Streams reports whether the head of a response announces an event stream.
func Streams(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// HeadWait is how long the head of a listening stream is awaited. Some servers send it together with the first event
// only.
const HeadWait = 2 * time.Second

// OpenStream opens a raw HTTP exchange with the headers of an ordinary request; the body has to close the stream. The
// error is that no head came, which is no finding for a GET.
func (t *T) OpenStream(r transport.Request) (*transport.Stream, error) {
	r.Defaults = true
	limit := t.Session.Options.Timeout
	if r.Method == http.MethodGet {
		limit = min(limit, HeadWait)
	}
	ctx, cancel := context.WithTimeout(t.Context, limit)
	defer cancel()
	s, err := t.HTTP().Open(ctx, r)
	if err == nil {
		if x := t.HTTP().Log().Carrier(s.Head); x != nil {
			t.Show(x.Events()...)
		}
	}
	return s, err
}

// Clear forgets the evidence so far, but for premises: what follows does not concern it.
func (t *showing) Clear() { t.evidence = nil }

// Endpoint returns where a target over the network is.
func (t *T) Endpoint() (transport.Endpoint, bool) {
	if e := transport.EndpointOf(t.engine.Dialer); e != nil {
		return *e, true
	}
	return transport.Endpoint{}, false
}

// DialSSE opens a further connection over HTTP+SSE that sends more headers with
// each request, and returns the head of the answer. The connection is closed with
// the check. It ends the body when no answer comes.
func (t *T) DialSSE(more http.Header) (head *wire.Event) {
	e, ok := t.Endpoint()
	if !ok || t.Target.Transport != transport.NameSSE {
		t.Skip("another transport")
	}
	e.Redactor = t.redactor(e)
	header := e.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	for name, values := range more {
		header[name] = values
	}
	e.Header = header
	log := t.engine.Trace.Connect(transport.NameSSE, t.check.Name)
	conn, err := (&transport.SSE{Endpoint: e}).Dial(t.Context, log)
	if err == nil {
		t.extra = append(t.extra, client.New(conn, client.Options{Timeout: t.engine.Timeout}))
	}
	for _, event := range log.Events() {
		t.Show(event)
		if event.Kind == wire.KindHTTPResponse {
			head = event
		}
	}
	if head == nil {
		t.Must(err)
		t.Inconclusive("the server did not send the head of a response")
	}
	return head
}

// HeadAt sends what opens a session to another URL, over the transport of the target, and
// returns the head of the answer, or nil if none came. The headers of the user are not for
// other hosts. The connection is closed with the check.
func (t *T) HeadAt(url string) *wire.Event {
	e, _ := t.Endpoint()
	e.Redactor = t.redactor(e)
	e.URL, e.Header, e.Token = url, nil, nil
	limit, stop := context.WithTimeout(t.Context, t.engine.Timeout)
	defer stop()
	log := t.engine.Trace.Connect(t.Target.Transport, t.check.Name)
	if t.Target.Transport == transport.NameSSE {
		if conn, err := (&transport.SSE{Endpoint: e}).Dial(limit, log); err == nil {
			t.extra = append(t.extra, client.New(conn, client.Options{Timeout: t.engine.Timeout}))
		}
	} else if conn, err := (&transport.HTTP{Endpoint: e}).Dial(limit, log); err == nil {
		// It need not be the server under test that is silent there: no rule judges that.
		s := client.New(conn, client.Options{Timeout: 2 * t.engine.Timeout})
		t.extra = append(t.extra, s)
		_, _ = s.Initialize(limit)
	}
	var head *wire.Event
	for _, event := range log.Events() {
		t.Show(event)
		if event.Kind == wire.KindHTTPResponse {
			head = event
		} else if head != nil && event.From == wire.Server {
			break // the first that comes with the head tells who answers
		}
	}
	return head
}

// redactor returns the redactor of an endpoint. It must not take the check's own additions for secrets.
func (t *T) redactor(e transport.Endpoint) *transport.Redactor {
	if e.Redactor != nil {
		return e.Redactor
	}
	return transport.NewRedactor(e.Header, e.URL)
}
