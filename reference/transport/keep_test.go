package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// connected is a server that notes on which connection each message came: the first one is 1.
type connected struct {
	closing func(onConnection int) bool // whether to hang up on a further message

	mu    sync.Mutex
	known []string
	seen  []string
	count map[string]int
}

func (c *connected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if !slices.Contains(c.known, r.RemoteAddr) {
		c.known = append(c.known, r.RemoteAddr)
	}
	if c.count == nil {
		c.count = make(map[string]int)
	}
	c.count[r.RemoteAddr]++
	n := c.count[r.RemoteAddr]
	c.seen = append(c.seen, fmt.Sprintf("%s on %d", r.Method, slices.Index(c.known, r.RemoteAddr)+1))
	c.mu.Unlock()
	if c.closing != nil && c.closing(n) {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodGet {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

const anyNotification = `{"jsonrpc":"2.0","method":"notifications/any"}`

// TestKeptConnections counts the connections that messages take.
func TestKeptConnections(t *testing.T) {
	const note = "the request is sent again on a new one"
	for name, test := range map[string]struct {
		closing func(int) bool
		send    func(t *testing.T, c *HTTPConn)
		want    []string
		again   bool
	}{
		"ordinary messages": {
			send: func(t *testing.T, c *HTTPConn) { send(t, c, anyNotification); send(t, c, anyNotification) },
			want: []string{"POST on 1", "POST on 1"},
		},
		"others": {
			send: func(t *testing.T, c *HTTPConn) { send(t, c, "{"); send(t, c, "{") },
			want: []string{"POST on 1", "POST on 2"},
		},
		"a listening stream that may not be open yet": {
			send: func(t *testing.T, c *HTTPConn) {
				c.dialer.NoListen = false
				send(t, c, initializedRaw)
				send(t, c, anyNotification)
			},
			want: []string{"POST on 1", "GET on 2", "POST on 3"},
		},
		"the server drops them": {
			closing: func(n int) bool { return n > 1 },
			send: func(t *testing.T, c *HTTPConn) {
				send(t, c, anyNotification)
				send(t, c, anyNotification)
				send(t, c, anyNotification)
			},
			want:  []string{"POST on 1", "POST on 1", "POST on 2", "POST on 3"},
			again: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			peer := &connected{closing: test.closing}
			server := httptest.NewServer(peer)
			t.Cleanup(server.Close)
			log := newTestLog()
			c := dialHTTP(t, at(server.URL), log)
			test.send(t, c)
			for _, s := range []string{"post:1", "post:2"} {
				awaitEnd(t, log, s)
			}
			if !slices.Equal(peer.seen, test.want) {
				t.Errorf("the server has seen %q, want %q", peer.seen, test.want)
			}
			again := slices.ContainsFunc(log.Events(), func(e *wire.Event) bool { return strings.Contains(e.Note, note) })
			if again != test.again {
				t.Errorf("the log says that a request was sent again: %t", again)
			}
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
