package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/reference/transport"
)

const (
	// hostileLimit is the limit of an answer with which hostile peers are met.
	hostileLimit = 300 * time.Millisecond
	// most memory that a run against a hostile peer may take, with the program itself and
	// what the collector, late on a busy machine, has not taken back yet.
	hostileMemory = 512 << 20
)

// listen serves each connection of a peer that is not a proper server, and returns
// its address.
func listen(t *testing.T, serve func(c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-accepted
	})
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// says is a peer that answers each request with a text and hangs up.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		swallow(c)
		_, _ = io.WriteString(c, text)
	}
}

// blurts is a peer that says a text before it was asked, and then the same without end.
func blurts(text, endless string) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, text)
		for err == nil && endless != "" {
			_, err = io.WriteString(c, endless)
		}
		_, _ = io.Copy(io.Discard, c)
	}
}

// swallow reads one request.
func swallow(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// endlessly is a peer that answers and then says the same without end, each time
// after a wait in which nothing comes from the other side.
func endlessly(text, endless string, wait time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		swallow(c)
		_, err := io.WriteString(c, text)
		for err == nil {
			if wait > 0 {
				_ = c.SetReadDeadline(time.Now().Add(wait))
				if n, problem := c.Read(make([]byte, 1)); n == 0 && problem == io.EOF {
					return
				}
			}
			_, err = io.WriteString(c, endless)
		}
	}
}

// bytewise is a peer that says each byte of an answer on its own.
func bytewise(text string) func(net.Conn) {
	return func(c net.Conn) {
		swallow(c)
		for i := range text {
			_ = c.SetReadDeadline(time.Now().Add(hostileLimit / 3))
			if n, err := c.Read(make([]byte, 1)); n == 0 && err == io.EOF {
				return
			}
			if _, err := io.WriteString(c, text[i:i+1]); err != nil {
				return
			}
		}
	}
}

const (
	ok     = "HTTP/1.1 200 OK\r\n"
	asJSON = ok + "Content-Type: application/json\r\n"
	asSSE  = ok + "Content-Type: text/event-stream\r\n\r\n"
	answer = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`
)

// bomb returns a gigabyte of zeros, packed as many members of gzip.
func bomb(t *testing.T) string {
	t.Helper()
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Repeat(member.String(), 1<<10)
}

var runs = make(map[string]int) // by the name of the test

// thinned returns a function that says of each case whether to leave it out. Under the
// race detector, with which each run of the command takes seconds, that is five
// of six; with -count, the test tries others.
func thinned(t *testing.T) (leaveOut func() bool) {
	t.Helper()
	n := runs[t.Name()]
	runs[t.Name()]++
	return func() bool {
		n++
		return raceDetector && n%6 != 0
	}
}

// hanging are the peers that keep a run waiting until its time limit.
var hanging = []string{
	"never answers", "never reads", "head byte by byte", "body byte by byte", "endless body", "endless event",
	"comments without end", "comments now and then", "length too long", "no endpoint", "endless comments",
}

// TestHostilePeers runs the command against peers that are not MCP servers. In
// each case it ends, says what is wrong, writes every report and takes little
// memory; the target is blamed if it was there.
func TestHostilePeers(t *testing.T) {
	leaveOut := thinned(t)
	packed := bomb(t)
	gzipped := fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed)
	for _, tt := range []struct {
		name      string
		transport string // auto unless it is named
		serve     func(net.Conn)
		says      string
	}{
		{"never answers", "", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "no answer to initialize"},
		{"never reads", "", func(c net.Conn) { time.Sleep(10 * hostileLimit) }, "no answer to initialize"},
		{"head byte by byte", "", bytewise(asJSON + "\r\n"), "no answer to initialize"},
		{"body byte by byte", "", func(c net.Conn) {
			swallow(c)
			_, _ = io.WriteString(c, asJSON+"\r\n")
			bytewise(answer)(c)
		}, "no answer to initialize"},
		{"endless headers", "", endlessly(ok, "X-Header: "+strings.Repeat("x", 1000)+"\r\n", 0), "headers exceeded"},
		{"endless header", "", endlessly(ok+"X-Header: ", strings.Repeat("x", 1000), 0), "headers exceeded"},
		{"endless body", "", endlessly(asJSON+"\r\n", strings.Repeat("[", 1000), 0), "initialize"},
		{"comments without end", "", endlessly(asSSE, ": still here\n\n", 0), "initialize"},
		{"comments now and then", "", endlessly(asSSE, ": still here\n\n", hostileLimit/10), "no answer to initialize"},
		{"endless event", "", endlessly(asSSE, "data: x\n", 0), "initialize"},
		{"length too long", "", says(asJSON + "Content-Length: 1000\r\n\r\n" + answer), "its head declares 1000"},
		{"length too short", "", says(asJSON + "Content-Length: 20\r\n\r\n" + answer), "initialize"},
		{"negative length", "", says(asJSON + "Content-Length: -5\r\n\r\n" + answer), "Content-Length"},
		{"two lengths", "", says(asJSON + "Content-Length: 5\r\nContent-Length: 100\r\n\r\n" + answer), "Content-Length"},
		{"broken chunks", "", says(asJSON + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}"), "initialize"},
		{"folded header", "", says(asJSON + "X-Header: a\r\n b\r\n\tc\r\nContent-Length: 1000\r\n\r\n" + answer), "its head declares 1000"},
		{"length beside chunks", "", says(asJSON + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n0\r\n\r\n" + asJSON + "\r\n" + answer), "initialize"},
		{"endless trailers", "", endlessly(asJSON+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X-T: t\r\n", 0), "initialize"},
		{"endless chunk extension", "", endlessly(asJSON+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("e", 1000), 0), "initialize"},
		{"endless hints", "", endlessly("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 0), "initialize"},
		{"status 500", "", says("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\noops\n"), "HTTP status 500"},
		{"status 404", "", says("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\noops\n"), "HTTP status 404"},
		{"no content", "", says("HTTP/1.1 204 No Content\r\n\r\n"), "initialize"},
		{"HTML", "", says(ok + "Content-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>a</html>"), "text/html"},
		{"bomb as JSON", "", says(asJSON + gzipped), "initialize"},
		{"bomb as events", "", says(ok + "Content-Type: text/event-stream\r\n" + gzipped), "initialize"},
		{"hangs up", "", func(net.Conn) {}, "initialize"},
		{"resets", "", reset, "initialize"},
		{"resets after the request", "", func(c net.Conn) { swallow(c); reset(c) }, "the connection was reset"},
		{"another protocol", "", says("220 mail.example ESMTP\r\n"), "malformed HTTP"},
		{"TLS", "", says("\x15\x03\x01\x00\x02\x02\x16"), "initialize"},
		{"never answers", "sse", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "within 300ms"},
		{"no endpoint", "sse", endlessly(asSSE, ": still here\n\n", hostileLimit/10), "no endpoint event"},
		{"endless comments", "sse", endlessly(asSSE, ": still here\n\n", time.Millisecond), "endpoint"}, // a flood may be cut before the time is over
		{"ends early", "sse", says(asSSE + ": bye\n\n"), "ended before the endpoint event"},
		{"HTML", "sse", says(ok + "Content-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>a</html>"), "text/html"},
		{"status 500", "sse", says("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\noops\n"), "HTTP status 500"},
		{"resets after the request", "sse", func(c net.Conn) { swallow(c); reset(c) }, "the connection was reset"},
	} {
		if leaveOut() {
			continue
		}
		t.Run(strings.TrimSpace(tt.transport+" "+tt.name), func(t *testing.T) {
			t.Parallel()
			// The others answer at once, however busy the machine is.
			limit := 10 * time.Second
			if slices.Contains(hanging, tt.name) {
				limit = hostileLimit
			}
			args := []string{"--timeout", limit.String(), "--url", "http://" + listen(t, tt.serve) + "/mcp"}
			if tt.transport != "" {
				args = append(args, "--transport", tt.transport)
			}
			conduct(t, nil, args...).wantHostile(t, exitNotConformant, tt.says)
		})
	}
}

func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

func (o outcome) wantHostile(t *testing.T, code int, says string) {
	t.Helper()
	o.wantCode(t, code, "")
	if !strings.Contains(strings.Join(strings.Fields(o.files["stdout"]), " "), says) {
		t.Errorf("nothing says %q:\n%.3000s", says, o.files["stdout"])
	}
	for _, name := range []string{"stdout", "stderr"} {
		if err := wellformed.Plain(o.files[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, h := range o.run.Harness {
		t.Errorf("a message of mcpconform is at fault: %s", h.Message)
	}
	// The race detector takes several times the memory.
	if o.memory > hostileMemory && !raceDetector {
		t.Errorf("it took %d MiB", o.memory>>20)
	}
}

// nobody returns the URL of a port at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	port, err := transport.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "http://127.0.0.1:" + strconv.Itoa(port)
}

// Only where nobody was reached is the run cut short.
func TestNobodyBehindTheURL(t *testing.T) {
	gone := nobody(t)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"auto":         {[]string{"--url", gone + "/mcp"}, "connection refused"},
		"http":         {[]string{"--url", gone + "/mcp", "--transport", "http"}, "connection refused"},
		"sse":          {[]string{"--url", gone + "/sse", "--transport", "sse"}, "connection refused"},
		"no such host": {[]string{"--url", "http://no-such-host.invalid/mcp"}, "cannot be found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conduct(t, nil, append(tt.args, "--timeout=5s")...).wantHostile(t, exitIncomplete, tt.says)
		})
	}
}

// TestTLSThatLies: where nobody proves who he is, nothing is sent.
func TestTLSThatLies(t *testing.T) {
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came") }))
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.StartTLS()
	t.Cleanup(other.Close)
	for name, tt := range map[string]struct{ at, says string }{
		"of somebody else":   {other.Listener.Addr().String(), "certificate"},
		"silence":            {listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "cannot reach https"},
		"an alert":           {listen(t, blurts("\x15\x03\x03\x00\x02\x02\x28", "")), "handshake failure"},
		"another protocol":   {listen(t, blurts("220 mail.example ESMTP\r\n", "")), "TLS"},
		"hello without end":  {listen(t, blurts("", "\x16\x03\x03\x40\x00\x02\x00\xff\xff"+strings.Repeat("\x00", 1<<14-4))), "tls"},
		"alerts without end": {listen(t, blurts("", "\x15\x03\x03\x00\x02\x01\x5a")), "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conduct(t, nil, "--timeout=1s", "--url", "https://"+tt.at+"/mcp", "--header", "X-Own: own-s3cret").wantHostile(t, exitIncomplete, tt.says)
		})
	}
}

// A redirect is told, not followed: the headers are meant for this server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	leaveOut := thinned(t)
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{other.URL + "/mcp", "/elsewhere"} {
			if leaveOut() {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", status, strings.TrimPrefix(location, other.URL)), func(t *testing.T) {
				t.Parallel()
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					// To another path of the same server a POST may be led as it is.
					if r.URL.Path == "/elsewhere" && status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
						elsewhere.Add(1)
					}
					w.Header().Set("Location", location)
					w.WriteHeader(status)
				}))
				t.Cleanup(s.Close)
				o := conduct(t, nil, "--timeout=5s", "--url", s.URL+"/mcp", "--header", "X-Own: own-s3cret")
				o.wantHostile(t, exitNotConformant, fmt.Sprintf("HTTP status %d", status))
			})
		}
	}
	t.Run("endpoint event", func(t *testing.T) {
		s := listen(t, endlessly(asSSE+"event: endpoint\ndata: "+other.URL+"/messages\n\n", ":\n\n", hostileLimit/10))
		o := conduct(t, nil, "--timeout=5s", "--url", "http://"+s+"/sse", "--transport=sse", "--header", "X-Own: own-s3cret")
		o.wantHostile(t, exitIncomplete, "names another origin") // for which the text has no rule
	})
	t.Cleanup(func() {
		if n := elsewhere.Load(); n > 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
}

// A connection may be reset at any moment: after so many bytes of each answer
// of a good server.
func TestResetsAtAnyMoment(t *testing.T) {
	leaveOut := thinned(t)
	behind := start(t, served(t, nil))
	for _, after := range []int{0, 1, 15, 16, 60, 150, 250, 400, 1000} {
		for _, transport := range []string{"http", "sse"} {
			path := map[string]string{"http": "/mcp", "sse": "/sse"}[transport]
			if leaveOut() {
				continue
			}
			t.Run(fmt.Sprintf("%s after %d bytes", transport, after), func(t *testing.T) {
				t.Parallel()
				front := listen(t, func(c net.Conn) {
					server, err := net.Dial("tcp", behind.Listener.Addr().String())
					if err != nil {
						return
					}
					defer func() { _ = server.Close() }()
					go func() {
						_, _ = io.Copy(server, c)
						_ = server.Close()
					}()
					_, _ = io.CopyN(c, server, int64(after))
					reset(c)
				})
				o := conduct(t, nil, "--timeout=1s", "--transport", transport, "--url", "http://"+front+path)
				o.wantHostile(t, exitNotConformant, "")
			})
		}
	}
}

// TestMemoryIsBounded counts the kept data, in decoded form, and the written data.
func TestMemoryIsBounded(t *testing.T) {
	if raceDetector {
		t.Skip("left out with the race detector, which takes several times the memory")
	}
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("this system has no awk: ", err)
	}
	const shake = `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'; `
	for name, endless := range map[string]string{
		"notifications": `yes '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":{"b":1}}}}'`,
		"requests":      `awk 'BEGIN{for(;;)printf "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n",++n}'`,
		"long ids":      `awk 'BEGIN{x="x";for(i=0;i<20;i++)x=x x;for(;;)printf "{\"jsonrpc\":\"2.0\",\"id\":\"%s%d\",\"method\":\"ping\"}\n",x,++n}'`,
		"large objects": `awk 'BEGIN{for(;;){printf "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":[";for(i=0;i<200000;i++)printf "{\"a\":{\"b\":1}},";print "0]}}"}}'`,
		"long texts":    `awk 'BEGIN{x="x";for(i=0;i<20;i++)x=x x;for(;;){printf "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\"";for(i=0;i<15;i++)printf x;print "\"}}"}}'`,
	} {
		if testing.Short() && name != "large objects" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			o := conduct(t, []string{gogc + "="}, "--timeout=2s", "--", "sh", "-c", shake+endless)
			if o.code != exitNotConformant && o.code != exitIncomplete {
				t.Errorf("exit code %d:\n%.2000s", o.code, o.files["stdout"])
			}
			t.Logf("it took %d MiB", o.memory>>20)
			if o.memory > hostileMemory {
				t.Errorf("it took %d MiB", o.memory>>20)
			}
		})
	}
}
