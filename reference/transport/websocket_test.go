package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// webSocket serves WebSockets with a function.
func webSocket(t *testing.T, serve func(ctx context.Context, c *websocket.Conn)) Endpoint {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		serve(r.Context(), c)
	}))
	t.Cleanup(s.Close)
	return Endpoint{URL: "ws" + strings.TrimPrefix(s.URL, "http")}
}

func dialed(t *testing.T, e Endpoint, l wire.Limits) (*WebSocketConn, *wire.Log) {
	t.Helper()
	log := wire.NewTrace(l).Connect(NameCustom, "test")
	conn, err := (&WebSocket{Endpoint: e}).Dial(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return conn.(*WebSocketConn), log
}

// Each text frame is one message, as it was written, also with newlines; and the end of
// either side is in the log.
func TestWebSocket(t *testing.T) {
	noLeaks(t)
	const spread = "{\"jsonrpc\": \"2.0\",\n \"id\": 1,\n \"result\": {}}"
	e := webSocket(t, func(ctx context.Context, c *websocket.Conn) {
		kind, raw, err := c.Read(ctx)
		if err != nil || kind != websocket.MessageText || string(raw) != `{"jsonrpc":"2.0","id":1,"method":"ping"}` {
			t.Errorf("the server got %v %q: %v", kind, raw, err)
		}
		_ = c.Write(ctx, websocket.MessageText, []byte(spread))
		_, _, _ = c.Read(ctx) // the close frame
	})
	conn, log := dialed(t, e, wire.DefaultLimits)
	sent, err := conn.Send(t.Context(), Outgoing{Raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := log.Await(t.Context(), sent.Seq+1, func(e *wire.Event) bool { return e.From == wire.Server })
	if err != nil || string(got.Raw) != spread {
		t.Errorf("got %q: %v", got.Raw, err)
	}
	if x := log.Exchange(got); x == nil || x.Response != got {
		t.Errorf("the answer is not taken for one: %+v", x)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := conn.Send(t.Context(), Outgoing{Raw: []byte("{}")}); !errors.Is(err, ErrClosed) {
		t.Errorf("sent after the end: %v", err)
	}
	last := log.Events()[log.Len()-1]
	if last.Kind != wire.KindClose || last.From != wire.Server || !strings.Contains(last.Note, "code 1000") {
		t.Errorf("the log ends with %+v", last)
	}
}

// TestWebSocketOfHostileServers tests that every disorderly end by the peer is reported, and leaves nothing behind.
func TestWebSocketOfHostileServers(t *testing.T) {
	flood := []byte(strings.Repeat("x", 64<<10))
	for name, tt := range map[string]struct {
		serve func(ctx context.Context, c *websocket.Conn)
		says  string
	}{
		"binary": {func(ctx context.Context, c *websocket.Conn) {
			_ = c.Write(ctx, websocket.MessageBinary, []byte(`{}`))
			_, _, _ = c.Read(ctx)
		}, "a binary frame came"},
		"endless frames": {func(ctx context.Context, c *websocket.Conn) {
			w, err := c.Writer(ctx, websocket.MessageText)
			for err == nil {
				_, err = w.Write(flood)
			}
		}, "reading was stopped: "},
		"empty frames": {func(ctx context.Context, c *websocket.Conn) {
			w, err := c.Writer(ctx, websocket.MessageText)
			for err == nil {
				_, err = w.Write(nil)
			}
		}, "more than 262144 bytes of frames came that bring nothing of a message"},
		"endless messages": {func(ctx context.Context, c *websocket.Conn) {
			for c.Write(ctx, websocket.MessageText, flood) == nil {
			}
		}, "reading was stopped: "},
		"pings": {func(ctx context.Context, c *websocket.Conn) {
			ctx = c.CloseRead(ctx) // which reads the pongs
			for range mostPings + 1 {
				if ctx.Err() != nil {
					break
				}
				pinging, cancel := context.WithTimeout(ctx, 2*time.Second)
				_ = c.Ping(pinging)
				cancel()
			}
		}, "more than 1000 ping frames came without a message"},
		"code and reason": {func(_ context.Context, c *websocket.Conn) {
			_ = c.Close(4001, "no \x1b[31mmore")
		}, `closed the WebSocket with code 4001 and the reason "no \x1b[31mmore"`},
		"gone": {func(_ context.Context, c *websocket.Conn) { _ = c.CloseNow() }, "ended the connection without a close frame"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			conn, log := dialed(t, webSocket(t, tt.serve), wire.Limits{Message: 1e6, Total: 10e6, Run: 10e6})
			if _, err := log.Await(t.Context(), 0, func(e *wire.Event) bool { return strings.Contains(e.Note, tt.says) }); err != nil {
				t.Errorf("nothing says %q: %v\n%s", tt.says, err, strings.Join(lines(log), "\n"))
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A message may come byte by byte: that is legal, however long it is.
func TestWebSocketInFragments(t *testing.T) {
	noLeaks(t)
	long := `{"jsonrpc":"2.0","method":"` + strings.Repeat("x", mostIdle/2) + `"}` // each byte has a head of two
	e := webSocket(t, func(ctx context.Context, c *websocket.Conn) {
		w, err := c.Writer(ctx, websocket.MessageText)
		for i := 0; i < len(long) && err == nil; i++ {
			_, err = w.Write([]byte{long[i]})
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Error(err)
		}
		_, _, _ = c.Read(ctx) // the close frame
	})
	conn, log := dialed(t, e, wire.DefaultLimits)
	got, err := log.Await(t.Context(), 0, func(e *wire.Event) bool { return e.From == wire.Server })
	if err != nil || string(got.Raw) != long {
		t.Errorf("got %.100q: %v", got.Raw, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that neither reads nor closes is left in bounded time.
func TestWebSocketOfDeafServer(t *testing.T) {
	noLeaks(t)
	release := make(chan struct{})
	conn, _ := dialed(t, webSocket(t, func(context.Context, *websocket.Conn) { <-release }), wire.DefaultLimits)
	t.Cleanup(func() { close(release) })
	sending, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := conn.Send(sending, Outgoing{Raw: make([]byte, 15<<20)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sent to a server that does not read: %v", err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := conn.Close(ended); err != nil {
		t.Error(err)
	}
}

func TestWebSocketRefused(t *testing.T) {
	noLeaks(t)
	const token = "0123456789abcdefXYZ"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "https://elsewhere.example/?token="+token, http.StatusFound)
		case "/protected":
			w.WriteHeader(http.StatusUnauthorized)
		case "/wrong":
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
		default:
			fmt.Fprint(w, "a page")
		}
	}))
	defer s.Close()
	for path, says := range map[string]string{
		"/moved": "status 302, not with 101; redirects are not followed", "/protected": "--bearer-env", "/wrong": "handshake of the WebSocket is wrong", "/": "status 200, not with 101",
	} {
		log := wire.NewTrace(wire.DefaultLimits).Connect(NameCustom, "test")
		_, err := (&WebSocket{Endpoint: Endpoint{URL: "ws" + strings.TrimPrefix(s.URL, "http") + path}}).Dial(t.Context(), log)
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, not %q", path, err, says)
		}
		if events := log.Events(); len(events) != 1 || !strings.Contains(events[0].Note, says) {
			t.Errorf("%s: the log has %v", path, lines(log))
		}
	}
}

// Headers go with the handshake.
func TestWebSocketHeader(t *testing.T) {
	noLeaks(t)
	got := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
		if c, err := websocket.Accept(w, r, nil); err == nil {
			_, _, _ = c.Read(r.Context())
		}
	}))
	defer s.Close()
	conn, log := dialed(t, Endpoint{URL: "ws" + strings.TrimPrefix(s.URL, "http"), Header: http.Header{"Authorization": {"Bearer x"}}}, wire.DefaultLimits)
	if h := <-got; h != "Bearer x" {
		t.Errorf("the header is %q", h)
	}
	if first := log.Events()[0]; !strings.Contains(first.Note, "did not choose the WebSocket subprotocol mcp") {
		t.Errorf("the log begins with %+v", first)
	}
	_ = conn.Close(t.Context())
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{
		"ws://localhost:8080/mcp": "ws://localhost:8080/mcp", "": "''", "a&b;c": "'a&b;c'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := ShellQuote(text); got != want {
			t.Errorf("%s is written %s, not %s", text, got, want)
		}
	}
}
