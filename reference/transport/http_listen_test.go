package transport

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// listened is what a server makes of each GET in its turn.
func listened(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (*HTTPConn, *wire.Log, *atomic.Int32) {
	t.Helper()
	noLeaks(t)
	var gets atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", typeEvents)
		answer(int(gets.Add(1)), w, r)
	})
	log := newTestLog()
	conn := dialHTTP(t, &HTTP{Endpoint: Endpoint{URL: server.URL}}, log)
	send(t, conn, initializedRaw)
	return conn, log, &gets
}

// A listening stream that the server ends is opened anew, after its last event.
func TestHTTPListensAgain(t *testing.T) {
	last := make(chan string, 1)
	_, log, _ := listened(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 1:
			_, _ = io.WriteString(w, "id: seven\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\"}\n\n")
		case 2:
			last <- r.Header.Get("Last-Event-ID")
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/b\"}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	for _, method := range []string{"notifications/a", "notifications/b"} {
		if _, err := log.Await(limit(t), 0, func(e *wire.Event) bool { return e.Msg != nil && e.Msg.Method == method }); err != nil {
			t.Fatalf("%s did not come: %v\n%s", method, err, strings.Join(lines(log), "\n"))
		}
	}
	if got := <-last; got != "seven" {
		t.Errorf("Last-Event-ID is %q", got)
	}
}

// TestHTTPListensNoMore tests that the client stops listening if streams bring nothing, are declined, are wanted much
// later, or end with the session.
func TestHTTPListensNoMore(t *testing.T) {
	t.Run("barren", func(t *testing.T) {
		_, log, gets := listened(t, func(int, http.ResponseWriter, *http.Request) {})
		for n := range maxBarren {
			awaitEnd(t, log, fmt.Sprintf("get:%d", n+1))
		}
		if n := gets.Load(); n != maxBarren {
			t.Errorf("%d GETs", n)
		}
	})
	for name, answer := range map[string]func(w http.ResponseWriter){
		"declined": func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"later":    func(w http.ResponseWriter) { _, _ = io.WriteString(w, "retry: 60000\n: see you\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			conn, log, gets := listened(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answer(w) })
			awaitEnd(t, log, "get:1")
			_ = conn.Close(limit(t)) // waits for whoever would open another one
			if n := gets.Load(); n != 1 {
				t.Errorf("%d GETs", n)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		end := make(chan struct{})
		conn, log, gets := listened(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, ": here\n\n")
			_ = http.NewResponseController(w).Flush()
			<-end
		})
		if _, err := conn.Delete(limit(t)); err != nil {
			t.Fatal(err)
		}
		close(end)
		awaitEnd(t, log, "get:1")
		_ = conn.Close(limit(t))
		if n := gets.Load(); n != 1 {
			t.Errorf("%d GETs", n)
		}
	})
}

// TestHTTPListenerFindsNobody tests that nothing is expected any more when nobody listens.
func TestHTTPListenerFindsNobody(t *testing.T) {
	noLeaks(t)
	gone := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", typeEvents)
			_ = http.NewResponseController(w).Flush()
			<-gone
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	log := newTestLog()
	conn := dialHTTP(t, &HTTP{Endpoint: Endpoint{URL: server.URL}}, log)
	send(t, conn, initializedRaw)
	_ = server.Listener.Close()
	close(gone)
	e, err := log.Await(limit(t), 0, func(e *wire.Event) bool { return e.Kind == wire.KindClose })
	if err != nil || !strings.Contains(e.Note, "connection refused") || e.From != wire.Server {
		t.Errorf("%v: %+v\n%s", err, e, strings.Join(lines(log), "\n"))
	}
}
