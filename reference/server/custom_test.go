package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// overWebSocket serves WebSocket until the test ends, or stop is called.
func overWebSocket(t *testing.T, o Options) (url string, stop func()) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- New(o).ServeWebSocket(ctx, l) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return "ws://" + l.Addr().String() + PathMCP, stop
}

func opened(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: []string{transport.Subprotocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

const pingRaw = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// Each text frame is a message, and each client has a session of its own.
func TestWebSocketSessions(t *testing.T) {
	trace := wire.NewTrace(wire.DefaultLimits)
	url, stop := overWebSocket(t, Options{Trace: trace})
	for range 2 {
		c := opened(t, url)
		if c.Subprotocol() != transport.Subprotocol {
			t.Errorf("the subprotocol is %q", c.Subprotocol())
		}
		if err := c.Write(t.Context(), websocket.MessageText, []byte("{\n"+pingRaw[1:])); err != nil {
			t.Fatal(err)
		}
		kind, raw, err := c.Read(t.Context())
		if err != nil || kind != websocket.MessageText || strings.HasSuffix(string(raw), "\n") || wire.Parse(raw).Kind != wire.Result {
			t.Errorf("the answer is %v %q: %v", kind, raw, err)
		}
		if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Errorf("the server does not close in order: %v", err)
		}
	}
	stop()
	for _, l := range trace.Logs() {
		last := l.Events()[l.Len()-1]
		if l.Transport != transport.NameCustom || l.Len() < 3 || last.Kind != wire.KindClose || last.From != wire.Server {
			t.Errorf("over %s there are %d events, the last of which is %+v", l.Transport, l.Len(), last)
		}
	}
}

// Clients that do what they must not, or nothing at all, are left in bounded time.
func TestWebSocketOfHostileClients(t *testing.T) {
	for name, tt := range map[string]struct {
		attack func(t *testing.T, c *websocket.Conn)
		answer string
	}{
		"binary": {func(t *testing.T, c *websocket.Conn) {
			_ = c.Write(t.Context(), websocket.MessageBinary, []byte(pingRaw))
		}, ""},
		"long": {func(t *testing.T, c *websocket.Conn) {
			_ = c.Write(t.Context(), websocket.MessageText, make([]byte, 2000))
		}, "longer than 1000 bytes"},
		"empty": {func(t *testing.T, c *websocket.Conn) {
			w, err := c.Writer(t.Context(), websocket.MessageText)
			for err == nil {
				_, err = w.Write(nil)
			}
		}, ""},
		"gone": {func(_ *testing.T, c *websocket.Conn) { _ = c.CloseNow() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := overWebSocket(t, Options{MaxMessage: 1000})
			c := opened(t, url)
			tt.attack(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var said string
			for {
				_, raw, err := c.Read(ctx)
				if err != nil {
					break
				}
				said += string(raw)
			}
			if ctx.Err() != nil || !strings.Contains(said, tt.answer) || tt.answer == "" && said != "" {
				t.Errorf("the server says %q, not %q: %v", said, tt.answer, ctx.Err())
			}
		})
	}
	t.Run("deaf", func(t *testing.T) {
		url, stop := overWebSocket(t, Options{})
		opened(t, url)
		stop() // although the client is still there
	})
}

// A page of another origin cannot open a WebSocket.
func TestWebSocketOrigin(t *testing.T) {
	url, _ := overWebSocket(t, Options{})
	_, answer, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
	if err == nil || answer == nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("the answer to a foreign page is %+v: %v", answer, err)
	}
}
