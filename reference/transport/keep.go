package transport

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Connections are kept open between exchanges. That saves both sides most of the cost of a short exchange, over TLS
// above all.
const (
	// mostKept is how many idle connections a link keeps.
	mostKept = 4
	// keepTime is how long one is kept that nobody uses: far less than servers do, which
	// close theirs after some seconds, so that a request and such a close rarely cross.
	keepTime = 500 * time.Millisecond
)

// keep makes a transport that keeps connections, otherwise like t.
func keep(t *http.Transport) *http.Transport {
	kept := t.Clone()
	kept.MaxIdleConnsPerHost, kept.IdleConnTimeout = mostKept, keepTime
	kept.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := t.DialContext(ctx, network, addr)
		if quiet, ok := conn.(*quietConn); ok {
			quiet.Conn = promptly(quiet.Conn)
		}
		return conn, err
	}
	return kept
}

// roundTrip makes an exchange, on a connection that was kept from an earlier one if it is an
// ordinary message. Any other has a connection of its own: what it leaves behind on that
// disturbs nobody.
//
// A server may close a kept connection at any time (RFC 9112, section 9.5). A failed request on such a connection
// says nothing about the server: it is made again on a new connection, and no more connections are kept.
func (x *roundTrip) roundTrip(req *http.Request) (*http.Response, error) {
	s := x.link.site
	if !x.ordinary || s.unkept == nil || s.unkept.Load() {
		return s.transport.RoundTrip(req)
	}
	resp, err := s.kept.RoundTrip(req)
	if err == nil || !x.reused.Load() || context.Cause(x.ctx) != nil {
		return resp, err
	}
	s.unkept.Store(true)
	again := x.repeated(req)
	x.link.log.Note(x.stream +
		": the connection was kept from an earlier exchange, and the server sent no response on it; the request " +
		"is sent again on a new one")
	if resp, newer := s.transport.RoundTrip(again); newer == nil {
		return resp, nil
	}
	return nil, err // what ended the first attempt may have ended the server
}

// repeated returns a request that may be sent once more.
func (x *roundTrip) repeated(req *http.Request) *http.Request {
	again := req.Clone(x.ctx)
	if req.GetBody != nil {
		again.Body, _ = req.GetBody() // of bytes in memory, which cannot fail
	}
	return again
}

// endKept closes what is idle.
func (s *site) endKept() {
	if s.kept != nil {
		s.kept.CloseIdleConnections()
	}
}
