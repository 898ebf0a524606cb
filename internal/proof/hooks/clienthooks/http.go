package clienthooks

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// Head is the head of an HTTP request as it goes over the connection.
type Head struct {
	Line   string   // the request line
	Fields []string // name, colon, value
}

// Method returns the HTTP method.
func (h *Head) Method() string {
	method, _, _ := strings.Cut(h.Line, " ")
	return method
}

// Get returns the value of a field, or "".
func (h *Head) Get(name string) string {
	for _, field := range h.Fields {
		if key, value, _ := strings.Cut(field, ":"); strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Set replaces a field by others, or adds them.
func (h *Head) Set(name string, fields ...string) {
	kept := h.Fields[:0:0]
	for _, field := range h.Fields {
		if key, _, _ := strings.Cut(field, ":"); !strings.EqualFold(key, name) {
			kept = append(kept, field)
		}
	}
	h.Fields = append(kept, fields...)
}

// Heads changes the heads of all HTTP requests.
func Heads(change func(h *Head)) apply { return RequestsAs(change, nil) }

// Fields gives the requests with an HTTP method, or all if that is "", other fields.
func Fields(method, name string, values ...string) apply {
	return Heads(func(h *Head) {
		if method == "" || h.Method() == method {
			h.Set(name, values...)
		}
	})
}

// RequestsAs changes the heads of all HTTP requests, and how the bodies are written.
func RequestsAs(change func(h *Head), body func(conn net.Conn, text []byte) error) apply {
	return Connections(func(conn net.Conn) net.Conn { return &rewriter{Conn: conn, change: change, body: body} })
}

// Connections changes the connections that the client makes.
func Connections(change func(net.Conn) net.Conn) apply {
	return func(c *client.Standalone) {
		dial := c.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return change(conn), nil
		}
	}
}

// rewriter is a connection for one HTTP request at a time.
type rewriter struct {
	net.Conn
	change func(h *Head)
	body   func(conn net.Conn, text []byte) error

	began []byte // of a head or body that is not complete
	rest  int    // bytes of the body that are missing; -1 before the end of the head
	open  bool   // a head was sent
}

// HeadEnd separates a head from its body.
const HeadEnd = "\r\n\r\n"

func (c *rewriter) Write(p []byte) (int, error) {
	c.began = append(c.began, p...)
	for len(c.began) > 0 {
		if !c.open {
			text, rest, found := bytes.Cut(c.began, []byte(HeadEnd))
			if !found {
				return len(p), nil
			}
			lines := strings.Split(string(text), "\r\n")
			h := &Head{Line: lines[0], Fields: lines[1:]}
			c.rest, _ = strconv.Atoi(h.Get("Content-Length"))
			c.change(h)
			if _, err := c.Conn.Write([]byte(h.Line + "\r\n" + strings.Join(append(h.Fields, ""), "\r\n") +
				"\r\n")); err != nil {
				return 0, err
			}
			c.began, c.open = rest, c.rest > 0
			continue
		}
		if len(c.began) < c.rest {
			return len(p), nil
		}
		text := c.began[:c.rest]
		c.began, c.open = c.began[c.rest:], false
		var err error
		if c.body != nil {
			err = c.body(c.Conn, text)
		} else {
			_, err = c.Conn.Write(text)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// ListeningForOne closes the listening stream behind each message, and opens another one without Last-Event-ID.
func ListeningForOne(c *client.Standalone) { ClosingBehind(http.MethodGet)(c) }

// ClosingBehind closes the stream of each request with a method behind the first message on it: for a POST only if
// that has an event id, by which the client resumes the stream.
func ClosingBehind(method string) apply {
	return func(c *client.Standalone) {
		var heard sync.Map
		Connections(func(conn net.Conn) net.Conn {
			return &closingBehind{rewriter: &rewriter{Conn: conn}, heard: &heard, method: method}
		})(c)
	}
}

// closingBehind is a connection that is closed behind the first message on the stream of a request, unless that
// resumes another one, and behind one with an id if it is to be resumed. What the server has sent behind the message is
// lost.
type closingBehind struct {
	*rewriter
	method        string
	heard         *sync.Map // ids of events that were the last before a connection was closed
	listens, over bool
	text          []byte // what has come
}

func (c *closingBehind) Write(p []byte) (int, error) {
	c.change = func(h *Head) {
		if _, heard := c.heard.Load(h.Get("Last-Event-Id")); heard && c.method == http.MethodGet {
			h.Set("Last-Event-Id")
		}
		c.listens = h.Method() == c.method && h.Get("Mcp-Session-Id") != "" && h.Get("Last-Event-Id") == ""
	}
	return c.rewriter.Write(p)
}

func (c *closingBehind) Read(p []byte) (int, error) {
	if c.over {
		_ = c.Close()
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	if !c.listens {
		return n, err
	}
	before := len(c.text)
	c.text = append(c.text, p[:n]...)
	if head, event, ok := bytes.Cut(c.text, []byte("\ndata: ")); ok {
		_, id, named := bytes.Cut(head, []byte("\nid: "))
		if data, _, ok := bytes.Cut(event, []byte("\n\n")); ok && (named || c.method == http.MethodGet) {
			id, _, _ = bytes.Cut(id, []byte("\n"))
			c.heard.Store(string(id), true)
			c.over = true
			n = len(head) + len("\ndata: ") + len(data) + len("\n\n") - before
		}
	}
	return n, err
}

// ResumingAs gives the GET that resumes a stream after an event other fields in place of Last-Event-ID.
func ResumingAs(last string, fields ...string) apply {
	return Heads(func(h *Head) {
		if h.Method() == http.MethodGet && h.Get("Last-Event-ID") == last {
			h.Set("Last-Event-ID", fields...)
		}
	})
}

var (
	OverHTTP  = []string{transport.NameHTTP}
	OverStdio = []string{transport.NameStdio}
)

// withHTTP passes the connection to tell before it is wrapped.
func withHTTP(tell func(conn *transport.HTTPConn)) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		if raw, ok := conn.(*transport.HTTPConn); ok {
			tell(raw)
		}
		return conn
	})
}

// ConnectionOf returns what returns the client's latest connection before it was wrapped,
// or nil.
func ConnectionOf(c *client.Standalone) func() *transport.HTTPConn {
	var raw *transport.HTTPConn
	withHTTP(func(conn *transport.HTTPConn) { raw = conn })(c)
	return func() *transport.HTTPConn { return raw }
}
