package suites_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// hostilePatience is the limit of one answer with which hostile peers are met.
const hostilePatience = 150 * time.Millisecond

// TestHostileHTTPPeers meets peers that are not MCP servers: each run ends, has a
// full report, says what is wrong and blames the peer unless nobody was there.
func TestHostileHTTPPeers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		serve func(*testing.T, net.Conn) // nil: nobody listens
		want  result.Overall
		says  string // part of the reason or of a finding
	}{
		{"nobody", nil, result.Incomplete, "connection refused: nothing listens at"},
		{"silence", func(_ *testing.T, c net.Conn) { readRequest(c); drain(c) }, result.NotConformant, "no answer to initialize"},
		{"one byte at a time", dribble("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"), result.NotConformant, "no answer to initialize"},
		{"endless headers", func(_ *testing.T, c net.Conn) {
			readRequest(c)
			write(c, "HTTP/1.1 200 OK\r\n")
			for i := 0; write(c, fmt.Sprintf("X-Header-%d: %s\r\n", i, strings.Repeat("x", 1000))); i++ {
			}
		}, result.NotConformant, "initialize"},
		{"endless comments", func(_ *testing.T, c net.Conn) {
			readRequest(c)
			write(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
			for write(c, ": still here\n\n") {
				if !pause(c, 5*time.Millisecond) {
					return
				}
			}
		}, result.NotConformant, "no answer to initialize"},
		{"status 500", answer("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\noops\n"), result.NotConformant, "HTTP status 500"},
		{"not at this name", answer("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\nask localhost\n"), result.Incomplete, `HTTP status 403: "ask localhost"`},
		{"misdirected", answer("HTTP/1.1 421 Misdirected Request\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>a</html>"), result.Incomplete, "host name in the URL"},
		{"no server behind the gateway", answer("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), result.Incomplete, "HTTP status 502"},
		{"HTML", answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html>a</html>"), result.NotConformant, "text/html"},
		{"redirect", answer("HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/mcp\r\nContent-Length: 0\r\n\r\n"), result.NotConformant, "redirects are not followed"},
		{"reset", func(_ *testing.T, c net.Conn) {
			readRequest(c)
			_ = c.(*net.TCPConn).SetLinger(0)
		}, result.NotConformant, "reset"},
		{"no HTTP", answer("220 mail.example ESMTP\r\n"), result.NotConformant, "initialize"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run := runHostile(t, &transport.HTTP{Endpoint: transport.Endpoint{
				URL: "http://" + listenHostile(t, tt.serve) + "/mcp", Timeout: hostilePatience,
			}})
			if run.Verdict != tt.want {
				t.Errorf("the verdict is %s (%s), not %s", run.Verdict, run.Reason, tt.want)
			}
			if text := everything(run); !strings.Contains(text, tt.says) {
				t.Errorf("nothing says %q:\n%.2000s", tt.says, text)
			}
			if len(run.Requirements) == 0 {
				t.Error("the report is empty")
			}
			for _, h := range run.Harness {
				t.Errorf("a message of mcpconform is at fault: %s", h.Message)
			}
		})
	}
}

// TestTargetThatDies tells a server that dies from one that fails everything. The run continues if the server can be
// restarted.
func TestTargetThatDies(t *testing.T) {
	t.Run("for good", inVirtualTime(func(t *testing.T) {
		run, killed := runMortal(t, false)
		if !killed {
			t.Fatal("the server was not killed")
		}
		// Nothing can be tried again, so that the messages are named that can be the cause, or the last of them.
		for _, q := range run.Requirements {
			down := q.ID == "base.response.present"
			if q.Verdict == result.Fail || q.Verdict == result.Warn != down {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, killmatrix.Why(q))
			} else if down && (!strings.Contains(q.Findings[0].Message, "the server answered nothing any more") || !strings.Contains(killmatrix.Why(q), "no-such-method") && !strings.Contains(q.Findings[0].Message, "of which the last 10")) {
				t.Errorf("the finding is %s", killmatrix.Why(q))
			}
		}
		if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "no longer answers an initialize") {
			t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
		}
	}))
	t.Run("and is restarted", inVirtualTime(func(t *testing.T) {
		run, killed := runMortal(t, true)
		if !killed {
			t.Fatal("the server was not killed")
		}
		var failed []string
		for _, q := range run.Requirements {
			if q.Verdict == result.Fail || q.Verdict == result.Error {
				failed = append(failed, q.ID)
			}
		}
		// The check that sends what kills the server, and no other.
		if !slices.Equal(failed, []string{"base.response.present", "base.error.method-not-found"}) {
			t.Errorf("%v are at fault", failed)
		}
		if len(run.Notes) == 0 {
			t.Error("the report does not mention the restarts")
		}
	}))
}

// runMortal runs some checks against a server that goes down, as a crashed
// process does, when it meets a method that it does not know.
func runMortal(t *testing.T, restarts bool) (run *result.Run, killed bool) {
	t.Helper()
	const selected = "base.error.method-not-found"
	handler := server.New(serverOptions()).HTTP()
	down := make(chan struct{}, 1000)
	alive := newSwitch()
	at := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := peek(r)
		if alive.isOff() {
			panic(http.ErrAbortHandler)
		}
		if strings.Contains(body, "mcpconform/no-such-method") {
			alive.set(false)
			down <- struct{}{}
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(handler.Close)
	checks := suites.ServerChecks{
		Dialer:   &transport.HTTP{Endpoint: below(at, server.PathMCP)},
		Settings: check.Settings{CallTools: check.CallNone},
	}
	if restarts {
		checks.Restart = func(context.Context) error { alive.set(true); return nil }
	}
	run, _, err := suites.Run(t.Context(), checks, suites.Options{
		Selection: suites.Selection{Select: []string{selected, "ping", "base.response.present", "base.request", "http.server.version-header-missing"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return run, len(down) > 0
}

func runHostile(t *testing.T, d transport.Dialer) *result.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run, trace, err := suites.Run(ctx, suites.ServerChecks{Dialer: d}, suites.Options{Timeout: hostilePatience, Limits: wire.Limits{Message: 1 << 20, Total: 4 << 20, Events: 20_000}})
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("the run does not end")
	}
	if len(trace.Logs()) == 0 {
		t.Error("the trace is empty")
	}
	return run
}

// listenHostile returns the address at which a peer serves each connection.
func listenHostile(t *testing.T, serve func(*testing.T, net.Conn)) string {
	t.Helper()
	if serve == nil {
		return net.JoinHostPort("127.0.0.1", freePort(t))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(t, c)
			}()
		}
	}()
	return l.Addr().String()
}

// readRequest reads a request with its body.
func readRequest(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_ = peek(r)
	}
}

// drain waits until the other side hangs up.
func drain(c net.Conn) {
	buffer := make([]byte, 1024)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
	}
}

func write(c net.Conn, text string) bool {
	_, err := c.Write([]byte(text))
	return err == nil
}

func answer(text string) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) {
		readRequest(c)
		write(c, text)
	}
}

// pause reports false when the other side has hung up meanwhile.
func pause(c net.Conn, d time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(d))
	_, err := c.Read(make([]byte, 1))
	problem, ok := err.(net.Error)
	return ok && problem.Timeout()
}

func dribble(text string) func(*testing.T, net.Conn) {
	return func(_ *testing.T, c net.Conn) {
		readRequest(c)
		for i := range text {
			if !write(c, text[i:i+1]) || !pause(c, hostilePatience/4) {
				return
			}
		}
	}
}

// everything returns the reasons and findings of a run with their evidence.
func everything(run *result.Run) string {
	var b strings.Builder
	b.WriteString(run.Reason + "\n")
	for _, q := range run.Requirements {
		for _, f := range q.Findings {
			b.WriteString(q.ID + ": " + f.Message + "\n")
			for _, e := range f.Evidence {
				b.WriteString("    " + e.Text + "\n")
			}
		}
	}
	return b.String()
}
