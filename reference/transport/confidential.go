package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// RoundTripper returns what makes single requests to the endpoint. Unless the log is nil, it takes one request, and
// that is recorded there without the bodies, which may hold what belongs in no trace.
func (e Endpoint) RoundTripper(log *wire.Log) (http.RoundTripper, error) {
	s, err := e.site()
	switch {
	case err != nil && log != nil:
		log.End()
		return nil, err
	case err != nil:
		return nil, err
	case log == nil:
		return s.transport, nil
	}
	return &confidential{newHTTPLink(s, log)}, nil
}

// confidential makes one request through a link, which it then shuts.
type confidential struct{ link *httpLink }

// RoundTrip implements [http.RoundTripper].
func (c *confidential) RoundTrip(r *http.Request) (*http.Response, error) {
	defer c.link.shut(nil)
	o := &outbound{method: r.Method, url: r.URL, header: r.Header, confidential: true}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		o.body = body
	}
	answer := &kept{header: make(http.Header)}
	o.relay = answer
	x, err := c.link.start(o)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(r.Context(), func() { x.cancel(context.Cause(r.Context())) })()
	<-x.done
	switch {
	case x.head == nil:
		return nil, x.err
	case x.ended != "":
		return nil, errors.New(x.ended)
	}
	return &http.Response{
		Status: http.StatusText(answer.status), StatusCode: answer.status, Header: answer.header,
		Body: io.NopCloser(&answer.body), ContentLength: int64(answer.body.Len()), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// kept is a response that is kept in memory, up to mostOfDocument bytes of its body.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

const mostOfDocument = 1 << 20

// Header implements [http.ResponseWriter].
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements [http.ResponseWriter].
func (k *kept) WriteHeader(status int) { k.status = status }

// Write implements [http.ResponseWriter].
func (k *kept) Write(p []byte) (int, error) {
	k.body.Write(p[:min(len(p), mostOfDocument-k.body.Len())])
	return len(p), nil
}
