package oddclient

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// HostilePeer is a client with which no honest run is made. After what it does it is an
// ordinary client once more, as far as it is let: others must not suffer from it.
type HostilePeer struct {
	Name       string
	Transports []string // none means all
	// Run runs the client: c says where the server is.
	Run func(ctx context.Context, c client.Standalone) error
}

// Hostile returns the hostile clients, with one for each text of the corpus.
func Hostile() []HostilePeer {
	var peers []HostilePeer
	for _, text := range oddserver.HostileTexts() {
		peers = append(peers, HostilePeer{Name: "text: " + text.Name,
			Run: func(ctx context.Context, c client.Standalone) error {
				saysTo(&c, text)
				return c.Run(ctx)
			}})
	}
	for _, a := range attacks() {
		peers = append(peers, HostilePeer{Name: a.name, Transports: []string{transport.NameHTTP, transport.NameSSE},
			Run: a.run})
	}
	for _, a := range frames() {
		a.text = handshake + a.text
		peers = append(peers, HostilePeer{Name: a.name, Transports: []string{transport.NameCustom}, Run: a.run})
	}
	return append(peers, hostilePeers...)
}

// saysTo makes a client send a text unasked, and then in the place of each second answer.
func saysTo(c *client.Standalone, text oddserver.HostileText) {
	Wrapping(func(conn transport.Conn) transport.Conn {
		n := 0
		return &Sender{Conn: conn, Hook: func(m *wire.Message, out outgoing) []outgoing {
			if !m.IsResponse() {
				return []outgoing{out}
			}
			if n++; n%2 == 1 {
				out.Raw = []byte(text.With(m.ID.String()))
			}
			return []outgoing{out}
		}}
	})(c)
	c.Extra = func(ctx context.Context, s *client.Session) {
		_, _ = s.Conn.Send(ctx, transport.Outgoing{Raw: []byte(text.With(`"unasked"`))})
	}
}

// mostOfFlood is how many messages a client sends that floods.
const mostOfFlood = 30_000

var hostilePeers = []HostilePeer{
	{Name: "flood of notifications", Run: flooding(`{"jsonrpc":"2.0","method":"notifications/com.example/more"}`)},
	{Name: "flood of requests", Run: flooding(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)},
	{Name: "flood of long messages", Run: func(ctx context.Context, c client.Standalone) error {
		return flooding(`{"jsonrpc":"2.0","method":"notifications/com.example/more","params":{"a":"`+
			strings.Repeat("x", 100_000)+`"}}`)(ctx, c)
	}},
	{Name: "sessions without end", Transports: []string{transport.NameHTTP},
		Run: func(ctx context.Context, c client.Standalone) error {
			for range 50 {
				again := c
				again.Use = func(context.Context, *client.Session, client.Call) error { return nil }
				if err := again.Run(ctx); err != nil {
					return err
				}
			}
			return c.Run(ctx)
		}},
	{Name: "listening streams without end", Transports: []string{transport.NameHTTP},
		Run: func(ctx context.Context, c client.Standalone) error {
			c.Extra = func(ctx context.Context, s *client.Session) {
				conn, ok := s.Conn.(*transport.HTTPConn)
				for i := 0; ok && i < 300; i++ {
					_, _ = conn.Listen(ctx)
				}
			}
			return c.Run(ctx)
		}},
}

// flooding sends the same again and again, and then goes on as an ordinary client.
func flooding(text string) func(ctx context.Context, c client.Standalone) error {
	return func(ctx context.Context, c client.Standalone) error {
		raw := []byte(text)
		before := c
		before.Use = func(ctx context.Context, s *client.Session, _ client.Call) error {
			for sent := 0; sent < mostOfFlood && sent*len(raw) < mostOfFlood*1000; sent++ {
				if _, err := s.Conn.Send(ctx, transport.Outgoing{Raw: raw}); err != nil {
					return err
				}
			}
			return nil
		}
		if before.Launcher == nil { // a process would be another one
			_ = before.Run(ctx)
			return c.Run(ctx)
		}
		return before.Run(ctx)
	}
}

// attack is what a client says on a connection of its own, byte for byte, and then without end
// or until nothing more comes.
type attack struct {
	name, text, endless string
	each                time.Duration // before each part of what is endless
	times               int           // on so many connections; 0 is one
}

// patience is how long an attack waits for what the server does, and endlessly how much it says
// at the most.
const (
	attackPatience = 2 * time.Minute
	endlessly      = 40 << 20
)

func (a attack) run(ctx context.Context, c client.Standalone) error {
	u, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	at := u.Host
	limited, cancel := context.WithTimeout(ctx, attackPatience)
	defer cancel()
	text := strings.NewReplacer("{path}", u.RequestURI(), "{host}", at).Replace(a.text)
	var open []net.Conn
	for range max(1, a.times) {
		conn, err := dial(limited, c, at)
		if err != nil {
			break // it may have had enough of us
		}
		open = append(open, conn)
		stop := context.AfterFunc(limited, func() { _ = conn.Close() })
		defer stop()
		a.say(limited, conn, text)
	}
	for _, conn := range open {
		_ = conn.Close()
	}
	return c.Run(ctx)
}

func dial(ctx context.Context, c client.Standalone, at string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial(ctx, "tcp", at)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at)
}

// say says the text and listens, unless there are many that do so.
func (a attack) say(ctx context.Context, conn net.Conn, text string) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r := bufio.NewReader(conn)
		if strings.HasPrefix(text, "GET") && strings.Contains(text, "Upgrade") {
			if answer, err := http.ReadResponse(r, nil); err == nil {
				_ = answer.Body.Close()
			}
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	_, err := io.WriteString(conn, text)
	for said := 0; err == nil && a.endless != "" && said < endlessly; said += len(a.endless) {
		if a.each > 0 {
			select {
			case <-time.After(a.each):
			case <-gone:
			case <-ctx.Done():
			}
		}
		_, err = io.WriteString(conn, a.endless)
	}
	if a.times > 0 {
		return
	}
	select {
	case <-gone:
	case <-ctx.Done():
	}
	_ = conn.Close()
	<-gone
}

const (
	post = "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, " +
		"text/event-stream\r\n"
	pinged   = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	smuggled = "GET /smuggled HTTP/1.1\r\nHost: {host}\r\n\r\n"
)

func attacks() []attack {
	return []attack{
		{name: "nothing but a connection", times: 100},
		{name: "half a request", text: post, times: 100},
		{name: "header byte by byte", text: post + "X-A: ", endless: "a", each: time.Second},
		{name: "header without end", text: post + "X-A: ", endless: strings.Repeat("a", 1<<16)},
		{name: "headers without end", text: post, endless: "X-A: b\r\n"},
		{name: "folded header", text: post + "X-A: b\r\n c\r\n\td\r\nContent-Length: 40\r\n\r\n" + pinged},
		{name: "two lengths", text: post + "Content-Length: 5\r\nContent-Length: 40\r\n\r\n" + pinged},
		{name: "length beside chunks", text: post +
			"Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
		{name: "chunks in two spellings", text: post +
			"Transfer-Encoding: xchunked\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled},
		{name: "length below zero", text: post + "Content-Length: -1\r\n\r\n" + pinged},
		{name: "length beyond every type", text: post + "Content-Length: 99999999999999999999999\r\n\r\n" + pinged},
		{name: "chunk beyond every type", text: post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" +
			pinged},
		{name: "chunk extension without end", text: post + "Transfer-Encoding: chunked\r\n\r\n1;",
			endless: strings.Repeat("e", 1<<16)},
		{name: "trailers without end", text: post + "Transfer-Encoding: chunked\r\n\r\n0\r\n", endless: "X-T: t\r\n"},
		{name: "body without end", text: post + "Transfer-Encoding: chunked\r\n\r\n",
			endless: "10000\r\n" + strings.Repeat("b", 1<<16) + "\r\n"},
		{name: "body of one byte a second", text: post + "Content-Length: 100000\r\n\r\n", endless: "b",
			each: time.Second},
		{name: "body that does not come", text: post + "Expect: 100-continue\r\nContent-Length: 40\r\n\r\n"},
		{name: "bomb", text: post +
			"Content-Encoding: gzip\r\nContent-Length: " +
			"20\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xed\xc1\x01\x0d\x00\x00\x00"},
		{name: "another protocol", text: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		{name: "TLS", text: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 500)},
		{name: "bytes", text: strings.Repeat("\x00\xff\r\n", 10_000)},
		{name: "path of a megabyte", text: "GET /" + strings.Repeat("%2e/", 1<<18) +
			" HTTP/1.1\r\nHost: {host}\r\n\r\n"},
		{name: "requests without answers", text: strings.Repeat(strings.ReplaceAll(smuggled, "/smuggled", "{path}"),
			500)},
		{name: "methods that nobody knows",
			text: "BREW {path} HTTP/1.1\r\nHost: {host}\r\n\r\nCONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
		{name: "another place", text: "GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n"},
	}
}

const handshake = "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: " +
	"websocket\r\nSec-WebSocket-Version: 13\r\n" +
	"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// frames are attacks over a WebSocket (RFC 6455, section 5.2); the mask is four zeros.
func frames() []attack {
	return []attack{
		{name: "frame beyond every type", text: "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00abc"},
		{name: "frame of exabytes", text: "\x81\xff\x0f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
			endless: strings.Repeat("x", 1<<16)},
		{name: "fragments without end", text: "\x01\x81\x00\x00\x00\x00x",
			endless: strings.Repeat("\x00\x81\x00\x00\x00\x00x", 1000)},
		{name: "empty fragments without end", text: "\x01\x80\x00\x00\x00\x00",
			endless: strings.Repeat("\x00\x80\x00\x00\x00\x00", 1000)},
		{name: "continuation of nothing", text: "\x80\x81\x00\x00\x00\x00x"},
		{name: "frame without mask", text: "\x81\x01x"},
		{name: "reserved bits", text: "\xf1\x81\x00\x00\x00\x00x"},
		{name: "pings without end", endless: strings.Repeat("\x89\x80\x00\x00\x00\x00", 100)},
		{name: "long ping", text: "\x89\xfe\x01\x00\x00\x00\x00\x00" + strings.Repeat("p", 256)},
		{name: "close with half a code", text: "\x88\x81\x00\x00\x00\x00\x03"},
		{name: "text that is not UTF-8", text: "\x81\x82\x00\x00\x00\x00\xff\xfe"},
		{name: "binary frame", text: "\x82\x81\x00\x00\x00\x00x"},
		{name: "frame of one byte a second", text: "\x81\xfe\x40\x00\x00\x00\x00\x00", endless: "x", each: time.Second},
	}
}
