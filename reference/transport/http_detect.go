package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// DetectError reports a server that speaks neither transport.
type DetectError struct {
	Target string
	HTTP   error // how the POST of Streamable HTTP failed
	SSE    error // how the GET of HTTP+SSE failed; nil when it was not tried
}

func (e *DetectError) Error() string {
	sse := "not tried, because only a status 4xx for the POST points to it"
	if e.SSE != nil {
		sse = e.SSE.Error()
	}
	return fmt.Sprintf("%s speaks no known transport: Streamable HTTP: %v; HTTP+SSE: %s", e.Target, e.HTTP, sse)
}

// Unwrap returns the causes.
func (e *DetectError) Unwrap() []error {
	if e.SSE == nil {
		return []error{e.HTTP}
	}
	return []error{e.HTTP, e.SSE}
}

const (
	detectInitialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mcpconform","title":"mcpconform reference client","version":"1.0.0"}}}`
	detectInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// Detect finds out which transport a server speaks, as the specification tells
// clients to (basic/transports#backwards-compatibility): Streamable HTTP when
// it accepts the POST of an initialize, HTTP+SSE when it refuses that with 4xx
// and opens a stream with an endpoint event. Both attempts are recorded on a
// connection "transport detection". The error is a *StartError when the server
// cannot be reached, else a *DetectError.
func Detect(ctx context.Context, trace *wire.Trace, e Endpoint) (Dialer, error) {
	return detect(ctx, trace, e, maxMoves)
}

func detect(ctx context.Context, trace *wire.Trace, e Endpoint, moves int) (Dialer, error) {
	log := trace.Connect(NameHTTP, "transport detection")
	if e.Redactor == nil {
		e.Redactor = e.redactor()
	}
	dialed, err := (&HTTP{Endpoint: e, NoListen: true}).Dial(ctx, log)
	if err != nil {
		return nil, err
	}
	c := dialed.(*HTTPConn)
	defer func() { _ = c.Close(ctx) }()
	status := 0
	head, err := tryPost(ctx, c)
	if head != nil {
		status = head.HTTP.Status
	}
	var start *StartError
	moved, elsewhere := e.Moved(head)
	switch {
	case errors.As(err, &start):
		return nil, err
	case elsewhere && moves > 0:
		return detect(ctx, trace, moved, moves-1)
	case err == nil && status/100 == 2:
		return &HTTP{Endpoint: e}, nil
	case err == nil:
		err = fmt.Errorf("the POST of initialize was answered with HTTP status %d", status)
	}
	failed := &DetectError{Target: c.site.name, HTTP: err}
	if status/100 != 4 {
		return nil, failed
	}
	if failed.SSE = newSSEConn(c.httpLink).connect(ctx); failed.SSE != nil {
		return nil, failed
	}
	return &SSE{Endpoint: e}, nil
}

// tryPost initialises a session and returns the head of the response. If the
// server begins a session, tryPost completes the handshake, so that DELETE is
// allowed.
func tryPost(ctx context.Context, c *HTTPConn) (*wire.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, c.site.timeout)
	defer cancel()
	s, err := c.Open(ctx, Request{Method: http.MethodPost, Defaults: true, Body: []byte(detectInitialize)})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if s.Head.HTTP.Status/100 != 2 {
		return s.Head, nil
	}
	for {
		e, err := s.Next(ctx)
		if err != nil {
			break // the status is all that matters
		}
		switch {
		case e.Kind != wire.KindMessage:
		case e.Msg.Kind == wire.Request && e.Msg.Method == "ping" && e.Msg.ID.Usable():
			// A server may ping before it answers (basic/lifecycle#initialization).
			_, _ = c.Send(ctx, Outgoing{Raw: []byte(`{"jsonrpc":"2.0","id":` + e.Msg.ID.String() + `,"result":{}}`)})
		case e.Msg.Kind == wire.Result:
			_, _ = c.Send(ctx, Outgoing{Raw: []byte(detectInitialized)})
			return s.Head, nil
		}
	}
	return s.Head, nil
}
