package transport

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/wire"
)

const (
	initializeRaw  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initializedRaw = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	initResult     = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
	pingRaw        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	pong           = `{"jsonrpc":"2.0","id":2,"result":{}}`
)

// limit guards a test against hanging; no test waits for it to pass.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func noLeaks(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
}

func newTestLog() *wire.Log {
	return wire.NewTrace(wire.DefaultLimits).Connect(NameHTTP, "test")
}

func dialHTTP(t *testing.T, d *HTTP, log *wire.Log) *HTTPConn {
	t.Helper()
	conn, err := d.Dial(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn.(*HTTPConn)
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func at(url string) *HTTP { return &HTTP{Endpoint: Endpoint{URL: url}, NoListen: true} }

// awaitEnd waits for the end of a stream.
func awaitEnd(t *testing.T, log *wire.Log, stream string) *wire.Event {
	t.Helper()
	e, err := log.Await(limit(t), 0, func(e *wire.Event) bool { return e.Kind == wire.KindStreamEnd && e.Stream == stream })
	if err != nil {
		t.Fatalf("await the end of %s: %v\n%s", stream, err, strings.Join(lines(log), "\n"))
	}
	return e
}

// lines shows a log, one event a line.
func lines(log *wire.Log) []string {
	var out []string
	for _, e := range log.Events() {
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s %s", e.Stream, e.From, e.Kind)
		if e.HTTP != nil && e.HTTP.Method != "" {
			fmt.Fprintf(&b, " %s", e.HTTP.Method)
		} else if e.HTTP != nil {
			fmt.Fprintf(&b, " %d", e.HTTP.Status)
		}
		if e.SSE != nil {
			fmt.Fprintf(&b, " event=%s id=%s comment=%s", e.SSE.Event, e.SSE.ID, e.SSE.Comment)
		}
		if e.Raw != nil {
			fmt.Fprintf(&b, " %s", e.Raw[:min(len(e.Raw), 60)])
		}
		if e.Note != "" {
			fmt.Fprintf(&b, " (%s)", e.Note)
		}
		out = append(out, strings.TrimSpace(b.String()))
	}
	return out
}

func wantLines(t *testing.T, log *wire.Log, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, lines(log)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func send(t *testing.T, c Conn, raw string) *wire.Event {
	t.Helper()
	sent, err := c.Send(limit(t), Outgoing{Raw: []byte(raw)})
	if err != nil {
		t.Fatalf("send %s: %v\n%s", raw, err, strings.Join(lines(c.Log()), "\n"))
	}
	return sent
}

// peer is a server with a session and every stream of the transport.
type peer struct {
	mu   sync.Mutex
	seen []string // method, session, version and accepted types of each request
	push chan string
	// streams counts the GET streams that are open: each of them takes what is pushed.
	streams sync.WaitGroup
}

func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, fmt.Sprintf("%s session=%s version=%s accept=%s last=%s", r.Method,
		r.Header.Get("Mcp-Session-Id"), r.Header.Get("MCP-Protocol-Version"), r.Header.Get("Accept"), r.Header.Get("Last-Event-ID")))
	p.mu.Unlock()
	switch r.Method {
	case http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		switch m := wire.Parse(body); m.Method {
		case "initialize":
			w.Header().Set("Mcp-Session-Id", "session-1")
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, initResult)
		case "ping":
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, ": hello\n\nid: e1\nretry: 50\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\nid: e2\n\nevent: message\ndata: "+pong+"\n\n")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	case http.MethodGet:
		p.streams.Add(1)
		defer p.streams.Done()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text := <-p.push:
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestHTTPSession(t *testing.T) {
	noLeaks(t)
	p := &peer{push: make(chan string)}
	server := serve(t, p.ServeHTTP)
	log := newTestLog()
	conn := dialHTTP(t, &HTTP{Endpoint: Endpoint{URL: server.URL + "/mcp?task=1"}}, log)
	if conn.SessionID() != "" {
		t.Error("a session before initialize")
	}
	sent := send(t, conn, initializeRaw)
	if sent.Stream != "post:1" || string(sent.Raw) != initializeRaw {
		t.Errorf("sent %+v", sent)
	}
	awaitEnd(t, log, "post:1")
	if id, version := conn.Session(); id != "session-1" || version != "2025-03-26" {
		t.Errorf("session %q, version %q", id, version)
	}
	send(t, conn, initializedRaw)
	awaitEnd(t, log, "post:2")
	send(t, conn, pingRaw)
	awaitEnd(t, log, "post:3")
	p.push <- "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	if _, err := log.Await(limit(t), 0, func(e *wire.Event) bool {
		return e.Stream == "get:1" && e.Kind == wire.KindMessage && e.Msg.Method == "notifications/tools/list_changed"
	}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(limit(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Send(limit(t), Outgoing{Raw: []byte(pingRaw)}); !errors.Is(err, ErrClosed) {
		t.Errorf("send after close: %v", err)
	}
	perStream := make(map[string][]string)
	for _, line := range lines(log) {
		stream, rest, _ := strings.Cut(line, " ")
		perStream[stream] = append(perStream[stream], rest)
	}
	want := map[string][]string{
		"post:1": {
			"client message " + initializeRaw[:60], "client http-request POST", "server http-response 200",
			"server message " + initResult[:60], "server stream-end",
		},
		"post:2": {
			"client message " + initializedRaw, "client http-request POST", "server http-response 202", "server stream-end",
		},
		"post:3": {
			"client message " + pingRaw, "client http-request POST", "server http-response 200",
			"server sse event= id= comment=hello",
			`server message event= id=e1 comment= {"jsonrpc":"2.0","method":"notifications/message"}`,
			"server sse event= id=e2 comment=",
			"server message event=message id= comment= " + pong, "server stream-end",
		},
		"get:1": {
			"client http-request GET", "server http-response 200",
			`server message event= id= comment= {"jsonrpc":"2.0","method":"notifications/tools/list_changed"`,
			"client stream-end (the client dropped the connection)",
		},
		"delete:1": {"client http-request DELETE", "server http-response 204", "server stream-end"},
	}
	if diff := cmp.Diff(want, perStream); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	both := "application/json, text/event-stream"
	if diff := cmp.Diff([]string{
		"POST session= version= accept=" + both + " last=",
		"POST session=session-1 version=2025-03-26 accept=" + both + " last=",
		"GET session=session-1 version=2025-03-26 accept=text/event-stream last=",
		"POST session=session-1 version=2025-03-26 accept=" + both + " last=",
		"DELETE session=session-1 version=2025-03-26 accept= last=",
	}, p.seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestHTTPLostSession tests that messages in a session that the server no longer knows are marked as deliberate,
// until the server knows it again.
func TestHTTPLostSession(t *testing.T) {
	noLeaks(t)
	var lost atomic.Bool
	p := &peer{}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			http.NotFound(w, r)
			return
		}
		p.ServeHTTP(w, r)
	})
	log := newTestLog()
	conn := dialHTTP(t, at(server.URL), log)
	steps := []struct {
		raw        string
		lost       bool // the server does not know the session
		deliberate bool
	}{
		{initializeRaw, false, false}, {pingRaw, false, false}, {pingRaw, true, false},
		{pingRaw, true, true}, {pingRaw, false, true}, {pingRaw, false, false}, {pingRaw, true, false},
	}
	for i, step := range steps {
		lost.Store(step.lost)
		sent := send(t, conn, step.raw)
		awaitEnd(t, log, sent.Stream)
		if deliberate := len(sent.Deliberate) > 0; deliberate != step.deliberate {
			t.Errorf("step %d: deliberate is %v, want %v", i, deliberate, step.deliberate)
		}
		if conn.Lost() != step.lost {
			t.Errorf("step %d: lost is %v, want %v", i, conn.Lost(), step.lost)
		}
	}
}

// The order in which a waiter relies on the log: what we sent, its head, the
// head of the answer, the answer, the end.
func TestHTTPOrder(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "["+pong+"]")
	})
	log := newTestLog()
	send(t, dialHTTP(t, at(server.URL), log), pingRaw)
	awaitEnd(t, log, "post:1")
	wantLines(t, log,
		"post:1 client message "+pingRaw, "post:1 client http-request POST", "post:1 server http-response 200",
		"post:1 server message ["+pong+"]", "post:1 server message "+`{"id":2,"jsonrpc":"2.0","result":{}}`,
		"post:1 server stream-end")
}

func TestHTTPBodies(t *testing.T) {
	noLeaks(t)
	rpcError := `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		want        wire.EventKind // "" for none
	}{
		{"json", 200, "application/json", pong, wire.KindMessage},
		{"json with charset", 200, "application/json; charset=utf-8", pong, wire.KindMessage},
		{"broken json", 200, "application/json", `{"jsonrpc":`, wire.KindMessage},
		{"json under another name", 200, "text/plain", pong, wire.KindMessage},
		{"text", 200, "text/plain", "hello", wire.KindBody},
		{"html error", 500, "text/html", "<h1>oops</h1>", wire.KindBody},
		{"rpc error", 400, "application/json", rpcError, wire.KindMessage},
		{"other json error", 401, "application/json", `{"error":"invalid_token"}`, wire.KindBody},
		{"broken json error", 500, "application/json", `{`, wire.KindBody},
		{"accepted", 202, "", "", ""},
		{"accepted with a body", 202, "application/json", "null", wire.KindMessage},
		{"redirect", 302, "text/html", "elsewhere", wire.KindBody},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tt.contentType)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			log := newTestLog()
			send(t, dialHTTP(t, at(server.URL), log), pingRaw)
			awaitEnd(t, log, "post:1")
			want := []string{"post:1 client message " + pingRaw, "post:1 client http-request POST", fmt.Sprintf("post:1 server http-response %d", tt.status)}
			if tt.want != "" {
				want = append(want, fmt.Sprintf("post:1 server %s %s", tt.want, tt.body))
			}
			wantLines(t, log, append(want, "post:1 server stream-end")...)
		})
	}
}

func TestHTTPEventKinds(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: tick\ndata: 12\n\nevent: tick\ndata: "+pong+"\n\ndata: no json\n\nid: 1\ndata:\n\nfoo\n\ndata: "+pong)
	})
	log := newTestLog()
	send(t, dialHTTP(t, at(server.URL), log), pingRaw)
	awaitEnd(t, log, "post:1")
	if diff := cmp.Diff([]string{
		"post:1 server sse event=tick id= comment= 12",
		"post:1 server message event=tick id= comment= " + pong,
		"post:1 server message event= id= comment= no json",
		"post:1 server sse event= id=1 comment=  (the event's data is empty)",
		`post:1 server sse event= id= comment= (the unknown field "foo" is ignored)`,
		"post:1 server sse event= id= comment= " + pong + " (the stream ended inside this event)",
		"post:1 server stream-end",
	}, lines(log)[3:]); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestHTTPHeaders(t *testing.T) {
	noLeaks(t)
	type request struct {
		Method, URI, Host string
		Header            http.Header
		Body              string
	}
	got := make(chan request, 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- request{r.Method, r.RequestURI, r.Host, r.Header, string(body)}
		w.WriteHeader(http.StatusAccepted)
	})
	d := at(server.URL + "/mcp?task_id=12345678")
	d.Header = http.Header{"X-Tenant": {"acme"}}
	conn := dialHTTP(t, d, newTestLog())
	conn.SetSession("s1", "2025-06-18")

	_, err := conn.Send(limit(t), Outgoing{Raw: []byte(pingRaw), Deliberate: []string{"some-id"}, Header: http.Header{
		"accept": nil, "Mcp-Session-Id": {}, "Origin": {"http://evil.example"}, "X-Many": {"a", "b"}, "Content-Type": {"text/plain"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := request{"POST", "/mcp?task_id=12345678", strings.TrimPrefix(server.URL, "http://"), http.Header{
		"Content-Type": {"text/plain"}, "Content-Length": {fmt.Sprint(len(pingRaw))}, "Mcp-Protocol-Version": {"2025-06-18"},
		"Origin": {"http://evil.example"}, "X-Many": {"a", "b"}, "X-Tenant": {"acme"}, "User-Agent": {"mcpconform"},
	}, pingRaw}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("with overrides (-want +got):\n%s", diff)
	}
	for _, e := range conn.Log().Events()[:2] {
		if diff := cmp.Diff([]string{"some-id"}, e.Deliberate); diff != "" {
			t.Errorf("%s: deliberate (-want +got):\n%s", e.Kind, diff)
		}
	}

	raw, err := conn.Do(limit(t), Request{
		Method: "PATCH", Path: "/other?x=1", Header: http.Header{"Host": {"evil.example"}, "X-One": {"1"}}, Body: []byte("body"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want = request{"PATCH", "/other?x=1", "evil.example", http.Header{"X-One": {"1"}, "Content-Length": {"4"}}, "body"}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("raw (-want +got):\n%s", diff)
	}
	if raw.Status != http.StatusAccepted || raw.Stream != "patch:1" || raw.End == nil {
		t.Errorf("response %+v", raw)
	}
}

func TestHTTPListenAndResume(t *testing.T) {
	noLeaks(t)
	p := &peer{push: make(chan string)}
	server := serve(t, p.ServeHTTP)
	log := newTestLog()
	conn := dialHTTP(t, at(server.URL), log)
	ctx := limit(t)
	for i := 1; i <= 2; i++ {
		stream, err := conn.Listen(ctx)
		if want := fmt.Sprintf("get:%d", i); err != nil || stream != want {
			t.Fatalf("stream %q, %v, want %s", stream, err, want)
		}
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	p.streams.Wait() // the server hears later than the client that a stream has ended
	other := dialHTTP(t, at(server.URL), newTestLog())
	defer func() { _ = other.Close(ctx) }()
	stream, err := other.Resume(ctx, "e7")
	if err != nil {
		t.Fatal(err)
	}
	p.push <- ": c\n\nid: e8\ndata: " + pong + "\n\n"
	var got []string
	for range 2 {
		e, err := stream.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Kind))
	}
	if diff := cmp.Diff([]string{"sse", "message"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if id := stream.LastEventID(); id != "e8" {
		t.Errorf("last event id %q", id)
	}
	stream.Close()
	for range 2 {
		if _, err := stream.Next(ctx); !errors.Is(err, io.EOF) {
			t.Errorf("after close: %v", err)
		}
	}
	r := stream.Response()
	if len(r.Messages) != 1 || len(r.Events) != 2 || r.End == nil || r.End.From != wire.Client {
		t.Errorf("response %+v", r)
	}
	if last := p.seen[len(p.seen)-1]; !strings.Contains(last, "GET") || !strings.Contains(last, "last=e7") {
		t.Errorf("request %s", last)
	}
}

// Servers that hold back the head of the GET stream must not hold up the session.
func TestHTTPLateHead(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	d := at(server.URL)
	d.NoListen = false
	for range 2 {
		log := newTestLog()
		conn := dialHTTP(t, d, log)
		send(t, conn, initializedRaw)
		_ = conn.Close(limit(t))
		if got := awaitEnd(t, log, "get:1").Note; got != errDropped.Error() {
			t.Errorf("end %q", got)
		}
	}
	if !d.lateHead.Load() {
		t.Error("the dialer has not remembered")
	}
}

func TestHTTPListenDeclined(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	d := at(server.URL)
	d.NoListen = false
	log := newTestLog()
	conn := dialHTTP(t, d, log)
	send(t, conn, initializedRaw)
	if end := awaitEnd(t, log, "get:1"); end.Note != "" {
		t.Errorf("end %q", end.Note)
	}
	if stream, err := conn.Listen(limit(t)); err != nil || stream != "get:2" {
		t.Errorf("listen: %q, %v", stream, err)
	}
}

// nobody returns an address at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// hostile listens and hands every connection to the function.
func hostile(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

// readRequest takes one request off the connection.
func readRequest(conn net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// flood writes a text until the connection is gone.
func flood(conn net.Conn, text string) {
	chunk := []byte(strings.Repeat(text, 1+4096/len(text)))
	for {
		if _, err := conn.Write(chunk); err != nil {
			return
		}
	}
}

func TestHTTPHostilePeers(t *testing.T) {
	noLeaks(t)
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	defer func() {
		if printed.Len() > 0 {
			t.Errorf("written to the program's log: %s", printed.String())
		}
	}()
	small := wire.Limits{Message: 64 << 10, Total: 1 << 20, Events: 500}
	events := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	tests := []struct {
		name string
		peer func(net.Conn)
		want string // part of the end's note
	}{
		{"closes at once", func(net.Conn) {}, "closed the connection"},
		{"closes after the request", readRequest, "the server closed the connection before the head of its response was complete"},
		{"resets", func(c net.Conn) {
			readRequest(c)
			_ = c.(*net.TCPConn).SetLinger(0)
		}, "the connection was reset"},
		{"endless head", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			flood(c, "X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
		}, "headers exceeded"},
		{"endless head line", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: ")
			flood(c, "a")
		}, "headers exceeded"},
		{"endless status line", func(c net.Conn) {
			readRequest(c)
			flood(c, "HTTP/1.1 ")
		}, "headers exceeded"},
		{"no HTTP", func(c net.Conn) {
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			readRequest(c)
		}, "malformed HTTP"},
		{"length too long", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"")
		}, "the body ended after 10 bytes, but its head declares 100"},
		{"broken chunks", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{}")
		}, "the connection ended inside a chunked body"},
		{"endless body", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
			flood(c, "[")
		}, "reading was stopped: the body is longer than 65536 bytes"},
		{"endless comments", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, events)
			flood(c, ": ping\n\n")
		}, errFlooded.Error()},
		{"endless long comments", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, events)
			flood(c, ":"+strings.Repeat("x", 8000)+"\n")
		}, errFlooded.Error()},
		{"endless events", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, events)
			flood(c, "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n")
		}, errFlooded.Error()},
		{"endless event", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, events)
			flood(c, "data: x\n")
		}, "reading was stopped: an event is longer than 65536 bytes"},
		{"endless blank lines", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, events)
			flood(c, "\n")
		}, "reading was stopped: an event is longer"},
		{"stream reset", func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n: hi\n\r\n")
		}, "the connection ended inside a chunked body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := wire.NewTrace(small).Connect(NameHTTP, "test")
			conn := dialHTTP(t, at(hostile(t, tt.peer)), log)
			// Whether an error shows already here depends on who is faster.
			_, _ = conn.Send(limit(t), Outgoing{Raw: []byte(pingRaw)})
			end := awaitEnd(t, log, "post:1")
			if !strings.Contains(end.Note, tt.want) {
				// A connection that is closed with unread data is reset.
				if !(tt.name == "closes at once" && end.Note == "the connection was reset") {
					t.Errorf("end %q, want %q", end.Note, tt.want)
				}
			}
			_ = conn.Close(limit(t))
			var bytes int
			for _, e := range log.Events() {
				bytes += len(e.Raw)
			}
			if bytes > 2<<20 {
				t.Errorf("%d bytes kept", bytes)
			}
		})
	}
}

// A truncated message is not the server's message.
func TestHTTPTruncated(t *testing.T) {
	noLeaks(t)
	url := hostile(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"jsonrpc\"")
	})
	log := newTestLog()
	send(t, dialHTTP(t, at(url), log), pingRaw)
	awaitEnd(t, log, "post:1")
	wantLines(t, log, "post:1 client message "+pingRaw, "post:1 client http-request POST", "post:1 server http-response 200",
		`post:1 server http-body {"jsonrpc"`, "post:1 server stream-end (the body ended after 10 bytes, but its head declares 100)")
}

// Peers that go on for ever without a limit to hit end with the context or with
// the connection.
func TestHTTPSilentPeers(t *testing.T) {
	noLeaks(t)
	dribble := func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		_, _ = io.Copy(io.Discard, c)
	}
	mute := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for name, peer := range map[string]func(net.Conn){"mute": mute, "dribble": dribble} {
		t.Run(name+" until close", func(t *testing.T) {
			log := newTestLog()
			conn := dialHTTP(t, at(hostile(t, peer)), log)
			send(t, conn, pingRaw)
			_ = conn.Close(limit(t))
			if end := awaitEnd(t, log, "post:1"); end.Note != errDropped.Error() || end.From != wire.Client {
				t.Errorf("end %+v", end)
			}
		})
		t.Run(name+" until the context ends", func(t *testing.T) {
			arrived := make(chan struct{}, 1)
			log := newTestLog()
			conn := dialHTTP(t, at(hostile(t, func(c net.Conn) {
				readRequest(c)
				arrived <- struct{}{}
				peer(c)
			})), log)
			ctx, cancel := context.WithCancelCause(limit(t))
			given := errors.New("given up")
			go func() {
				<-arrived
				cancel(given)
			}()
			if _, err := conn.Do(ctx, Request{Body: []byte(pingRaw)}); !errors.Is(err, given) {
				t.Errorf("error %v", err)
			}
			awaitEnd(t, log, "post:1")
		})
	}
	t.Run("notification", func(t *testing.T) {
		log := newTestLog()
		d := at(hostile(t, mute))
		d.Timeout = time.Millisecond
		_, err := dialHTTP(t, d, log).Send(limit(t), Outgoing{Raw: []byte(initializedRaw)})
		if err == nil || !strings.Contains(err.Error(), "within 1ms") {
			t.Errorf("error %v", err)
		}
		awaitEnd(t, log, "post:1")
	})
}

func TestHTTPNobody(t *testing.T) {
	noLeaks(t)
	url := "http://" + nobody(t) + "/mcp"
	for _, raw := range []string{initializeRaw, initializedRaw} {
		log := newTestLog()
		sent, err := dialHTTP(t, at(url), log).Send(limit(t), Outgoing{Raw: []byte(raw)})
		var start *StartError
		if !errors.As(err, &start) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v", err)
		}
		if sent == nil {
			t.Error("no event")
		}
		if end := awaitEnd(t, log, "post:1"); !strings.Contains(end.Note, "nothing listens at "+url) {
			t.Errorf("end %q", end.Note)
		}
	}
}

// A server that was there and is gone is no longer a target that could not be
// reached.
func TestHTTPGone(t *testing.T) {
	noLeaks(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(202) }))
	conn := dialHTTP(t, at(server.URL), newTestLog())
	send(t, conn, initializedRaw)
	server.Close()
	_, err := conn.Send(limit(t), Outgoing{Raw: []byte(initializedRaw)})
	var start *StartError
	if err == nil || errors.As(err, &start) {
		t.Errorf("error %v", err)
	}
}

func TestHTTPBadURL(t *testing.T) {
	for _, raw := range []string{"", "localhost:3000/mcp", "ftp://x/", "http://", "unix:", "http://user:hunter22@x:port/", "http://x/%zz?token=hunter22"} {
		log := newTestLog()
		_, err := at(raw).Dial(t.Context(), log)
		var start *StartError
		if !errors.As(err, &start) {
			t.Errorf("%q: error %v", raw, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter22") || strings.Contains(at(raw).String(), "hunter22") {
			t.Errorf("the error shows the password: %v", err)
		}
		if _, err := log.Await(limit(t), 0, func(*wire.Event) bool { return false }); !errors.Is(err, wire.ErrEnded) {
			t.Errorf("%q: the log has not ended: %v", raw, err)
		}
	}
}

// Secrets go to the server that they are meant for and nowhere else: neither to
// the target of a redirect nor into the trace.
func TestHTTPSecrets(t *testing.T) {
	noLeaks(t)
	var visited atomic.Int32
	other := serve(t, func(http.ResponseWriter, *http.Request) { visited.Add(1) })
	const token, task, cookie, password = "tok-abcdef", "task-123456", "sid-998877", "pass-word1"
	arrived := make(chan http.Header, 1)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header
		w.Header().Set("Location", other.URL+"/?"+r.URL.RawQuery)
		w.Header().Set("Set-Cookie", "a="+cookie)
		w.Header().Set("X-Echo", "you sent "+token)
		w.Header().Set("X-Api-Key", "short")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	url := strings.Replace(server.URL, "http://", "http://me:"+password+"@", 1) + "/mcp?task_id=" + task
	d := at(url)
	d.Header = http.Header{"Authorization": {"Bearer " + token}, "X-Tenant": {"tiny"}}
	trace := wire.NewTrace(wire.DefaultLimits)
	log := trace.Connect(NameHTTP, "test")
	send(t, dialHTTP(t, d, log), pingRaw)
	awaitEnd(t, log, "post:1")
	if got := (<-arrived).Get("Authorization"); got != "Bearer "+token {
		t.Errorf("the server got %q", got)
	}
	if visited.Load() > 0 {
		t.Error("the redirect was followed")
	}
	var out bytes.Buffer
	if _, err := trace.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{token, task, cookie, password, "tiny", "short"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the trace holds %q:\n%s", secret, out.String())
		}
	}
	events := log.Events()
	if got := events[1].HTTP.Header; got.Get("Authorization") != "Bearer REDACTED" || got.Get("X-Tenant") != "REDACTED" {
		t.Errorf("request header %v", got)
	}
	if got := events[1].HTTP.URL; !strings.HasSuffix(got, "/mcp?task_id=REDACTED") {
		t.Errorf("request URL %s", got)
	}
	if got := events[2].HTTP; got.Status != 307 || got.Header.Get("Location") != other.URL+"/?task_id=REDACTED" {
		t.Errorf("response %+v", got)
	}
}

func TestHTTPBasicFromURL(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			t.Errorf("credentials %q, %q", user, password)
		}
		w.WriteHeader(202)
	})
	send(t, dialHTTP(t, at(strings.Replace(server.URL, "://", "://me:secret@", 1)), newTestLog()), initializedRaw)
}

func TestHTTPCompressed(t *testing.T) {
	noLeaks(t)
	var bomb bytes.Buffer
	zipped := gzip.NewWriter(&bomb)
	_, _ = zipped.Write(make([]byte, 4<<20))
	_ = zipped.Close()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if v := r.Header.Get("Accept-Encoding"); v != "" {
			t.Errorf("Accept-Encoding %q", v)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	log := newTestLog()
	send(t, dialHTTP(t, at(server.URL), log), pingRaw)
	awaitEnd(t, log, "post:1")
	e := log.Events()[3]
	if e.Kind != wire.KindBody || !bytes.Equal(e.Raw, bomb.Bytes()) || !strings.Contains(e.Note, `"gzip"`) {
		t.Errorf("%s of %d bytes, note %q", e.Kind, len(e.Raw), e.Note)
	}
}

func TestHTTPUnixSocket(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	got := make(chan string, 1)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.RequestURI
		w.WriteHeader(202)
	})}}
	server.Start()
	defer server.Close()
	for _, d := range []*HTTP{
		at("unix://" + path + "?path=/mcp&x=1"),
		{Endpoint: Endpoint{URL: "http://ignored.invalid/mcp?x=1", Socket: path}},
	} {
		send(t, dialHTTP(t, d, newTestLog()), pingRaw)
		if uri := <-got; uri != "/mcp?x=1" {
			t.Errorf("request for %s", uri)
		}
	}
}

func TestHTTPS(t *testing.T) {
	noLeaks(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			w.Header().Set("X-Client", "known")
		}
		w.WriteHeader(202)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	ca, pair := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "client.pem")
	writePEM(t, ca, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	writePEM(t, pair, keyBlocks(t, server.TLS.Certificates[0])...)

	try := func(o TLSOptions) (*Response, error) {
		config, err := o.Config()
		if err != nil {
			t.Fatal(err)
		}
		d := at(server.URL)
		d.TLS = config
		return dialHTTP(t, d, newTestLog()).Do(limit(t), Request{Body: []byte(pingRaw)})
	}
	if r, err := try(TLSOptions{Insecure: true}); err != nil || r.Status != 202 || r.Header.Get("X-Client") != "" {
		t.Errorf("insecure: %+v, %v", r, err)
	}
	if r, err := try(TLSOptions{CAFile: ca, CertFile: pair}); err != nil || r.Header.Get("X-Client") != "known" {
		t.Errorf("with certificates: %+v, %v", r, err)
	}
	_, err := try(TLSOptions{})
	var start *StartError
	if !errors.As(err, &start) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("untrusted: %v", err)
	}
	for _, o := range []TLSOptions{{CAFile: filepath.Join(dir, "none")}, {CertFile: ca}, {CAFile: os.DevNull}} {
		if _, err := o.Config(); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestHTTPProxy(t *testing.T) {
	noLeaks(t)
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "http://mcp.invalid/mcp" {
			t.Errorf("proxied %s", r.URL)
		}
		w.WriteHeader(202)
	})
	d := at("http://mcp.invalid/mcp")
	proxyURL, _, err := parseURL(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	d.Proxy = http.ProxyURL(proxyURL)
	send(t, dialHTTP(t, d, newTestLog()), initializedRaw)
}

func TestAddHeader(t *testing.T) {
	h := http.Header{}
	if err := AddHeader(h, "x-tenant:  a: b "); err != nil || h.Get("X-Tenant") != "a: b" {
		t.Errorf("%v, %v", h, err)
	}
	for _, line := range []string{"hunter22", "na me: hunter22", "Name: hunter22\x00", ": hunter22"} {
		if err := AddHeader(h, line); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: %v", line, err)
		}
	}
	t.Setenv("TEST_TOKEN", "hunter22\n")
	if b, err := BearerFrom("TEST_TOKEN"); err != nil || b.Token(t.Context()) != "hunter22" {
		t.Errorf("%v, %v", b, err)
	}
	if _, err := BearerFrom("TEST_TOKEN_MISSING"); err == nil {
		t.Error("a variable that is not set is accepted")
	}
}

// TestOlder: only a server that refuses the POST of an initialize with a status 4xx and
// opens a stream with an endpoint speaks the older transport.
func TestOlder(t *testing.T) {
	noLeaks(t)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		or      bool
		want    bool
		gets    int
	}{
		{"older", newLegacy().ServeHTTP, true, true, 1},
		{"not asked for", newLegacy().ServeHTTP, false, false, 0},
		{"neither", status(404), true, false, 1},
		{"broken", status(500), true, false, 0},
		{"served", status(200), true, false, 0},
		{"another protocol", switchesProtocols, true, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var gets atomic.Int32
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					gets.Add(1)
				}
				tt.handler(w, r)
			})
			d := at(server.URL + "/sse")
			d.OrOlder = tt.or
			conn := dialHTTP(t, d, wire.NewTrace(wire.DefaultLimits).Connect(NameHTTP, "test"))
			s, err := conn.Open(limit(t), Request{Defaults: true, Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)})
			if err != nil {
				t.Fatal(err)
			}
			older, ok := d.Older(limit(t), conn, s.Head)
			s.Close()
			if ok != tt.want || ok && older.URL != d.URL || int(gets.Load()) != tt.gets {
				t.Errorf("%t after %d GETs", ok, gets.Load())
			}
		})
	}
}

// switchesProtocols keeps the connection open, which is not HTTP any more.
func switchesProtocols(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	_, _ = conn.Read(make([]byte, 1)) // until the other side closes
}

func writePEM(t *testing.T, path string, blocks ...*pem.Block) {
	t.Helper()
	var b bytes.Buffer
	for _, block := range blocks {
		if err := pem.Encode(&b, block); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHTTPFloodEndsEverything(t *testing.T) {
	noLeaks(t)
	url := hostile(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		if r.Header.Get("X-Flood") != "" {
			flood(c, ":\n")
		}
		_, _ = io.Copy(io.Discard, c)
	})
	log := wire.NewTrace(wire.Limits{Message: 1000, Total: 4000, Events: 100}).Connect(NameHTTP, "test")
	conn := dialHTTP(t, at(url), log)
	ctx := limit(t)
	if _, err := conn.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Open(ctx, Request{Method: "GET", Header: http.Header{"X-Flood": {"1"}}}); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"get:1", "get:2"} {
		if end := awaitEnd(t, log, stream); end.Note != errFlooded.Error() {
			t.Errorf("%s: %q", stream, end.Note)
		}
	}
	if _, err := conn.Send(ctx, Outgoing{Raw: []byte(pingRaw)}); !errors.Is(err, wire.ErrFlood) {
		t.Errorf("send: %v", err)
	}
}

func TestHTTPConcurrent(t *testing.T) {
	noLeaks(t)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ID int `json:"id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{}}`, in.ID)
	})
	log := newTestLog()
	conn := dialHTTP(t, at(server.URL), log)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			sent, err := conn.Send(limit(t), Outgoing{Raw: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)})
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := log.Await(limit(t), sent.Seq, func(e *wire.Event) bool {
				return e.Stream == sent.Stream && e.From == wire.Server && e.Kind == wire.KindMessage
			})
			if err != nil || answer.Msg.ID.Key() != fmt.Sprint(i) {
				t.Errorf("answer to %d: %v, %v", i, answer, err)
			}
		})
	}
	all.Wait()
}

// Large messages are read a few at a time, and who waits for that ends with its request.
func TestLargeMessagesTakeTurns(t *testing.T) {
	log := wire.NewTrace(wire.DefaultLimits).Connect(NameHTTP, "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	long := strings.Repeat("x", wire.LargeMessage+1)
	var turns []*messageReader
	for range 2 {
		m := &messageReader{ctx: t.Context(), log: log, r: strings.NewReader(long)}
		if _, err := io.Copy(io.Discard, m); err != nil {
			t.Errorf("there is room for the message: %v", err)
		}
		turns = append(turns, m)
	}
	third := &messageReader{ctx: ended, log: log, r: strings.NewReader(long)}
	if _, err := io.Copy(io.Discard, third); !errors.Is(err, context.Canceled) {
		t.Errorf("a message is read although there is no room: %v", err)
	}
	short := &messageReader{ctx: ended, log: log, r: strings.NewReader("short")}
	if raw, err := short.all(-1, 2*wire.LargeMessage); err != nil || string(raw) != "short" {
		t.Errorf("a short message has to wait: %v", err)
	}
	for _, m := range turns {
		m.recorded()
	}
	for limit, want := range map[int64]int{10: 10, wire.LargeMessage: wire.LargeMessage, wire.LargeMessage + 1: wire.LargeMessage + 1, 2 * wire.LargeMessage: wire.LargeMessage + 1} {
		for _, declared := range []int64{-1, int64(len(long)), 3 * wire.LargeMessage} {
			m := &messageReader{ctx: t.Context(), log: log, r: strings.NewReader(long)}
			raw, err := m.all(declared, limit)
			m.recorded()
			if len(raw) != want || err != nil && (declared <= limit || want == int(limit)) {
				t.Errorf("with limit %d and %d bytes declared, %d bytes are read: %v", limit, declared, len(raw), err)
			}
		}
	}
}

// TestShortBodiesTakeNoRoom reads a short body: the record weighs the bytes of a body, not the room after them.
func TestShortBodiesTakeNoRoom(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"result":{}}`
	m := &messageReader{r: strings.NewReader(body)}
	raw, err := m.all(-1, 1<<20)
	if err != nil || string(raw) != body {
		t.Fatalf("the body is %q: %v", raw, err)
	}
	if cap(raw) > 2*len(body) {
		t.Errorf("a body of %d bytes takes %d", len(body), cap(raw))
	}
}
