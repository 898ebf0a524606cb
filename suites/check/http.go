package check

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
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
// those of the request, and waits for the end of the response; of a GET that
// opens an event stream, for its head. It ends the body when no response comes.
func (t *T) Do(r transport.Request) *transport.Response {
	r.Defaults = true
	ctx, cancel := context.WithTimeoutCause(t.Context, t.Session.Options.Timeout,
		&client.TimeoutError{Awaited: "end of the response to " + r.Method, After: t.Session.Options.Timeout})
	defer cancel()
	s, err := t.HTTP().Open(ctx, r)
	if err != nil {
		t.Must(err)
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
	response := s.Response()
	t.showStream(s)
	t.Show(response.Messages...)
	if ctx.Err() != nil && t.Context.Err() == nil && len(response.Messages) == 0 {
		t.Must(context.Cause(ctx))
	}
	return response
}

// Streams reports whether the head of a response announces an event stream.
func Streams(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// OpenStream opens a raw HTTP exchange with the headers of an ordinary request; the
// body has to close the stream. The error is that no head came.
func (t *T) OpenStream(r transport.Request) (*transport.Stream, error) {
	r.Defaults = true
	ctx, cancel := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer cancel()
	s, err := t.HTTP().Open(ctx, r)
	if err == nil {
		t.showStream(s)
	}
	return s, err
}

// showStream adds a request, with its head, and the head of the response to
// the evidence.
func (t *T) showStream(s *transport.Stream) {
	for _, e := range t.Session.Log().Events()[s.Request().Seq : s.Head.Seq+1] {
		if e.Stream == s.Name {
			t.Show(e)
		}
	}
}

// Clear forgets the evidence so far: what follows is another matter.
func (t *T) Clear() { t.evidence = nil }

// Endpoint returns where a target over HTTP is.
func (t *T) Endpoint() (transport.Endpoint, bool) {
	switch d := t.engine.Dialer.(type) {
	case *transport.HTTP:
		return d.Endpoint, true
	case *transport.SSE:
		return d.Endpoint, true
	}
	return transport.Endpoint{}, false
}

// DialSSE opens a further connection over HTTP+SSE that sends more headers with
// each request. The error says how the server refused it.
func (t *T) DialSSE(more http.Header) (*client.Session, error) {
	e, ok := t.Endpoint()
	if !ok || t.Target.Transport != transport.NameSSE {
		t.Skip("another transport")
	}
	header := e.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	for name, values := range more {
		header[name] = values
	}
	e.Redactor, e.Header = t.redactor(e), header
	log := t.engine.Trace.Connect(transport.NameSSE, t.check.Name)
	conn, err := (&transport.SSE{Endpoint: e}).Dial(t.Context, log)
	for _, event := range log.Events() {
		t.Show(event)
	}
	if err != nil {
		return nil, err
	}
	s := client.New(conn, client.Options{Timeout: t.engine.Timeout})
	t.extra = append(t.extra, s)
	return s, nil
}

// redactor returns the redactor of an endpoint, which must not take what the
// check adds for a secret.
func (t *T) redactor(e transport.Endpoint) *transport.Redactor {
	if e.Redactor != nil {
		return e.Redactor
	}
	return transport.NewRedactor(e.Header, e.URL)
}

// Unreached reports whether an error says that the server was not reached.
func Unreached(err error) bool {
	var start *transport.StartError
	return errors.As(err, &start)
}
