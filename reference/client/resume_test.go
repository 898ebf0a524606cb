package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// A request of the server that a resumed stream brings once more has its answer.
func TestRequestAgainOnResumedStream(t *testing.T) {
	const ask = "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"ping\"}\n\n"
	var answers atomic.Int32
	answered := make(chan struct{}, 8)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := wire.Parse(body)
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ask, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"t\",\"method\":\"ping\"}\n\n")
			w.(http.Flusher).Flush()
			<-answered
			fmt.Fprint(w, "id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n")
		case m.Kind == wire.Request:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ask)
			w.(http.Flusher).Flush()
			<-answered
		default:
			answers.Add(1)
			w.WriteHeader(http.StatusAccepted)
			answered <- struct{}{}
		}
	})
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := (&transport.HTTP{Endpoint: transport.Endpoint{URL: server.URL}}).Dial(t.Context(), wire.NewTrace(wire.DefaultLimits).Connect("http", t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	s := client.New(conn, client.Options{Timeout: time.Minute})
	x, err := s.Call(t.Context(), "tools/call", map[string]any{"name": "t"})
	if err != nil || x.Result() == nil {
		t.Fatalf("the call is answered with %v, %v", x, err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := answers.Load(); n != 2 {
		t.Errorf("the two requests of the server got %d answers", n)
	}
}
