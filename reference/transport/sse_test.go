package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func keyBlocks(t *testing.T, pair tls.Certificate) []*pem.Block {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return []*pem.Block{{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, {Type: "PRIVATE KEY", Bytes: key}}
}

// legacy is a server of the old transport: a stream at /sse, messages to
// /messages.
type legacy struct {
	endpoint string // data of the endpoint event
	push     chan string

	mu   sync.Mutex
	seen []string
}

func newLegacy() *legacy {
	return &legacy{endpoint: "messages?session=abc", push: make(chan string, 10)}
}

func (l *legacy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.seen = append(l.seen, r.Method+" "+r.RequestURI+" version="+r.Header.Get("MCP-Protocol-Version"))
	l.mu.Unlock()
	switch {
	case r.URL.Path == "/messages" && r.Method == http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		switch wire.Parse(body).Method {
		case "initialize":
			l.push <- "event: message\ndata: " + initResult + "\n\n"
		case "refused":
			w.WriteHeader(http.StatusBadRequest)
			return
		case "hang up":
			close(l.push)
		}
		w.WriteHeader(http.StatusAccepted)
	case r.URL.Path == "/sse" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": welcome\n\nevent: endpoint\ndata: "+l.endpoint+"\n\n")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text, open := <-l.push:
				if !open {
					return
				}
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func dialSSE(t *testing.T, url string, log *wire.Log) (Conn, error) {
	t.Helper()
	conn, err := (&SSE{Endpoint: Endpoint{URL: url}}).Dial(limit(t), log)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func TestSSESession(t *testing.T) {
	noLeaks(t)
	l := newLegacy()
	server := serve(t, l.ServeHTTP)
	log := newTestLog()
	conn, err := dialSSE(t, server.URL+"/sse?key=12345678", log)
	if err != nil {
		t.Fatal(err)
	}
	send(t, conn, initializeRaw)
	if _, err := log.Await(limit(t), 0, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Stream == "get:1"
	}); err != nil {
		t.Fatal(err)
	}
	// The answer may come before the POST of its request is accepted.
	if _, err := log.Await(limit(t), 0, func(e *wire.Event) bool {
		return e.Kind == wire.KindHTTPResponse && e.Stream == "post:1"
	}); err != nil {
		t.Fatal(err)
	}
	send(t, conn, initializedRaw)
	send(t, conn, `{"jsonrpc":"2.0","method":"refused"}`)
	awaitEnd(t, log, "post:3")
	if err := conn.Close(limit(t)); err != nil {
		t.Fatal(err)
	}
	perStream := make(map[string][]string)
	for _, line := range lines(log) {
		stream, rest, _ := strings.Cut(line, " ")
		perStream[stream] = append(perStream[stream], rest)
	}
	if diff := cmp.Diff(map[string][]string{
		"get:1": {
			"client http-request GET", "server http-response 200", "server sse event= id= comment=welcome",
			"server sse event=endpoint id= comment= messages?session=abc",
			"server message event=message id= comment= " + initResult[:60],
			"client stream-end (the client dropped the connection)",
		},
		"post:1": {"client message " + initializeRaw[:60], "client http-request POST", "server http-response 202"},
		"post:2": {"client message " + initializedRaw, "client http-request POST", "server http-response 202"},
		"post:3": {
			`client message {"jsonrpc":"2.0","method":"refused"}`, "client http-request POST",
			"server http-response 400", "server stream-end",
		},
	}, perStream); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"GET /sse?key=12345678 version=", "POST /messages?session=abc version=",
		"POST /messages?session=abc version=2025-03-26", "POST /messages?session=abc version=2025-03-26",
	}, l.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, e := range log.Events() {
		if e.HTTP != nil && strings.Contains(e.HTTP.URL, "12345678") {
			t.Errorf("the log shows the key: %s", e.HTTP.URL)
		}
	}
}

// The end of the stream is the end of the connection.
func TestSSEHangUp(t *testing.T) {
	noLeaks(t)
	server := serve(t, newLegacy().ServeHTTP)
	log := newTestLog()
	conn, err := dialSSE(t, server.URL+"/sse", log)
	if err != nil {
		t.Fatal(err)
	}
	send(t, conn, `{"jsonrpc":"2.0","method":"hang up"}`)
	awaitEnd(t, log, "get:1")
	if _, err := log.Await(limit(t), 0, func(e *wire.Event) bool {
		return e.Kind == wire.KindClose && e.From == wire.Server && e.Stream == "get:1"
	}); err != nil {
		t.Error(err)
	}
}

func TestSSEDialFailures(t *testing.T) {
	noLeaks(t)
	stream := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"not found", http.NotFound, "HTTP status 404"},
		{"no stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>hello</h1>")
		}, `content type "text/html"`},
		{"other host", stream("event: endpoint\ndata: http://evil.example/messages\n\n"), "another origin"},
		{"other scheme", stream("event: endpoint\ndata: file:///messages\n\n"), "another origin"},
		{"no URI", stream("event: endpoint\ndata:\n\n"), "is empty, not a URI"},
		{"bad URI", stream("event: endpoint\ndata: http://[\n\n"), "is not a URI"},
		{"ends", stream(": hello\n\n"), "ended before the endpoint event"},
		{"floods", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat(": still here\n\n", 100))
			}
		}, "ended before the endpoint event: reading was stopped"},
		{"ends at once with its endpoint", stream("event: endpoint\ndata: /messages\n\n"), ""},
		{"ends inside the endpoint", stream("event: endpoint\ndata: /messages\n"), "ended before the endpoint event"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, tt.handler)
			log := newTestLog()
			_, err := dialSSE(t, server.URL+"/sse", log)
			if tt.want == "" {
				// Whether the end is seen first depends on who is faster.
				if err != nil && !strings.Contains(err.Error(), "ended") {
					t.Errorf("error %v", err)
				}
				return
			}
			var stream *StreamError
			if !errors.As(err, &stream) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if _, err := log.Await(limit(t), 0, func(*wire.Event) bool { return false }); !errors.Is(err, wire.ErrEnded) {
				t.Errorf("the log has not ended: %v", err)
			}
		})
	}
	t.Run("silent stream", func(t *testing.T) {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		log := newTestLog()
		ctx, cancel := context.WithCancelCause(limit(t))
		given := errors.New("given up")
		go func() {
			_, _ = log.Await(ctx, 0, func(e *wire.Event) bool { return e.Kind == wire.KindHTTPResponse })
			cancel(given)
		}()
		if _, err := (&SSE{Endpoint: Endpoint{URL: server.URL}}).Dial(ctx, log); !errors.Is(err, given) {
			t.Errorf("error %v", err)
		}
	})
}

func TestEndpointURL(t *testing.T) {
	base, err := url.Parse("https://Host.example/a/sse?x=1")
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"/m?s=1":                       "https://Host.example/m?s=1",
		"m":                            "https://Host.example/a/m",
		"?s=2":                         "https://Host.example/a/sse?s=2",
		"https://host.example:443/m#f": "https://host.example:443/m",
		"//host.example/m":             "https://host.example/m",
		"http://host.example/m":        "",
		"https://host.example:444/m":   "",
		"//evil.example/m":             "",
		"https://host.example@evil/m":  "",
	} {
		u, err := endpointURL(base, ref)
		if want == "" {
			if err == nil {
				t.Errorf("%s: accepted as %s", ref, u)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v, want %s", ref, u, err, want)
		}
	}
}
