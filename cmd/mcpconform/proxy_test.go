package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// relayed checks the results that a proxy left for both parties.
func relayed(t *testing.T, dir string, least int) {
	t.Helper()
	for _, party := range []string{"server", "client"} {
		var run result.Run
		read(t, filepath.Join(dir, "results."+party+".json"), &run)
		if run.Role != party || run.Verdict != result.Conformant || run.Counts()[result.Pass] < least {
			t.Errorf("the %s is %s with %v", run.Role, run.Verdict, run.Counts())
		}
		for _, q := range run.Requirements {
			for _, f := range q.Findings {
				t.Errorf("%s: %s", q.ID, f.Message)
			}
		}
	}
}

// inPart judges beginnings of what a proxy recorded, as if more had been more
// than it keeps: a record that ends early accuses nobody.
func inPart(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	whole, err := wire.ReadTrace(file, wire.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range whole.Logs() {
		for n := 1; n < log.Len(); n += 1 + log.Len()/40 {
			part := relayedTrace(wire.Limits{Message: 1 << 20, Total: 1 << 30, Events: n})
			l := part.Connect(log.Transport, log.Label)
			for _, e := range log.Events() {
				if _, err := l.Append(*e); err != nil {
					t.Fatal(err)
				}
			}
			l.End()
			for _, party := range []wire.Party{wire.Server, wire.Client} {
				run, _, err := suites.Run(t.Context(), suites.Recording{Party: party}, suites.Options{Trace: part})
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range run.Requirements {
					if len(q.Findings) > 0 {
						t.Errorf("the first %d events of %s: %s: %s", n, log.ID, q.ID, q.Findings[0].Message)
					}
				}
				if l.Stopped() != (len(run.Notes) == 1) || n == 1 && !l.Stopped() {
					t.Fatalf("the first %d events of %s: stopped: %t; notes: %q", n, log.ID, l.Stopped(), run.Notes)
				}
			}
		}
	}
}

func TestProxyStdio(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(asReference, "1")
	err := reference.Standalone{Launcher: transport.Command{Args: []string{
		os.Args[0], "proxy", "--json", filepath.Join(dir, "results.json"), "--trace", filepath.Join(dir, "trace"), "--", os.Args[0],
	}}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relayed(t, dir, 100)
	inPart(t, filepath.Join(dir, "trace"))
}

// Before a server over WebSocket, the proxy is a server over stdio.
func TestProxyWebSocket(t *testing.T) {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.New(server.Options{}).ServeWebSocket(ctx, l) }()
	dir := t.TempDir()
	t.Setenv(asCommand, "1")
	err = reference.Standalone{Launcher: transport.Command{Args: []string{
		os.Args[0], "proxy", "--json", filepath.Join(dir, "results.json"), "--trace", filepath.Join(dir, "trace"), "--url", "ws://" + l.Addr().String() + server.PathMCP,
	}}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relayed(t, dir, 100)
	inPart(t, filepath.Join(dir, "trace"))
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A client that leaves while the server still writes does not take the report
// with it.
func TestProxyWithoutReader(t *testing.T) {
	t.Setenv(asReference, "1")
	file := filepath.Join(t.TempDir(), "results.json")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "proxy", "--quiet", "--role", "server", "--json", file, "--", os.Args[0])
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	send := func(lines ...string) {
		if _, err := io.WriteString(in, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Error(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	_ = in.Close()
	_ = cmd.Wait()
	var run result.Run
	read(t, file, &run)
	if code := cmd.ProcessState.ExitCode(); code != exitIncomplete || run.Verdict != result.Incomplete || !strings.Contains(run.Reason, "nothing in the run used: resources, prompts") {
		t.Errorf("exit status %d: the server is %s: %s", code, run.Verdict, run.Reason)
	}
}

// A client that breaks something decides the exit code, however little its server showed.
func TestProxyEndsWithTheFailure(t *testing.T) {
	t.Setenv(asReference, "1")
	file := filepath.Join(t.TempDir(), "results.json")
	cmd := newRoot()
	cmd.SetIn(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a"}}}` + "\n"))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"proxy", "--quiet", "--json", file, "--", os.Args[0]})
	err := cmd.ExecuteContext(t.Context())
	for party, want := range map[string]result.Overall{"server": result.Incomplete, "client": result.NotConformant} {
		var run result.Run
		read(t, strings.TrimSuffix(file, "json")+party+".json", &run)
		if run.Verdict != want {
			t.Errorf("the %s is %s, want %s", party, run.Verdict, want)
		}
	}
	var code exitError
	if !errors.As(err, &code) || code != exitNotConformant {
		t.Errorf("it ends with %v", err)
	}
}

// overHTTP runs the proxy until the visit of a client at the URL of the proxy has ended, and checks what it reports.
func overHTTP(t *testing.T, visit func(ctx context.Context, url string) error, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, stderr := io.Pipe()
	cmd := newRoot()
	cmd.SetErr(stderr)
	cmd.SetArgs(append([]string{"proxy", "--quiet", "--json", filepath.Join(dir, "results.json"),
		"--trace", filepath.Join(dir, "trace")}, args...))
	visited := make(chan error, 1)
	go func() {
		line, _ := bufio.NewReader(said).ReadString('\n')
		_, rest, _ := strings.Cut(line, "find the server at ")
		url, _, _ := strings.Cut(rest, ";")
		visited <- visit(ctx, url)
		interrupt()
		_, _ = io.Copy(io.Discard, said)
	}()
	err := cmd.ExecuteContext(ctx)
	_ = stderr.Close()
	if err != nil {
		t.Error(err)
	}
	if err := <-visited; err != nil {
		t.Fatal(err)
	}
	relayed(t, dir, 100)
	return dir
}

// paths of the endpoints of the reference server.
var paths = map[string]string{transport.NameHTTP: server.PathMCP, transport.NameSSE: server.PathSSE}

func TestProxyHTTP(t *testing.T) {
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			handler := server.New(server.Options{}).HTTP()
			defer handler.Close()
			upstream := httptest.NewServer(handler)
			defer upstream.Close()
			dir := overHTTP(t, func(ctx context.Context, url string) error {
				return reference.Standalone{URL: url, Legacy: name == transport.NameSSE}.Run(ctx)
			}, "--url", upstream.URL+path, "--transport", name, "--header", "X-Key: hush-hush")
			inPart(t, filepath.Join(dir, "trace"))
			trace, err := os.ReadFile(filepath.Join(dir, "trace"))
			if err != nil || len(trace) == 0 || strings.Contains(string(trace), "hush-hush") {
				t.Errorf("the trace of %d bytes: %v; does it hold the secret?", len(trace), err)
			}
		})
	}
}

// A client logs in to a protected server through the proxy, with a token for the URL of the proxy, wherever the server
// has its resource metadata.
func TestProxyProtected(t *testing.T) {
	for name, path := range paths {
		for _, location := range []string{"", "/about/this"} {
			t.Run(name+location, func(t *testing.T) {
				var as *authserver.Server
				issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					as.ServeHTTP(w, r)
				}))
				defer issuer.Close()
				var err error
				if as, err = authserver.New(authserver.Options{Issuer: issuer.URL}); err != nil {
					t.Fatal(err)
				}
				var at atomic.Value // URL of the proxy
				upstream := httptest.NewUnstartedServer(nil)
				protection := &server.Protection{
					Resource: "http://" + upstream.Listener.Addr().String() + path, MetadataPath: location,
					Issuers: []string{issuer.URL},
					Verify: func(token, _ string, _ *http.Request) *server.Denial {
						if !as.Valid(token, at.Load().(string)) {
							return server.InvalidToken
						}
						return nil
					},
				}
				handler := server.New(server.Options{HTTP: server.HTTPOptions{Protection: protection}}).HTTP()
				defer handler.Close()
				upstream.Config.Handler = handler
				upstream.Start()
				defer upstream.Close()
				overHTTP(t, func(ctx context.Context, url string) error {
					at.Store(url)
					return reference.Standalone{URL: url, Legacy: name == transport.NameSSE}.Run(ctx)
				}, "--url", upstream.URL+path, "--transport", name)
			})
		}
	}
}

// A client that stops in the middle of a request does not keep the proxy from
// ending, and from reporting.
func TestProxyEndsBesideStalledClient(t *testing.T) {
	results := filepath.Join(t.TempDir(), "results.json")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, stderr := io.Pipe()
	cmd := newRoot()
	cmd.SetErr(stderr)
	cmd.SetArgs([]string{"proxy", "--quiet", "--role", "server", "--url", "http://127.0.0.1:1/mcp", "--transport", "http", "--json", results})
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.ExecuteContext(ctx)
		_ = stderr.Close()
	}()
	line, _ := bufio.NewReader(said).ReadString('\n')
	_, rest, _ := strings.Cut(line, "http://")
	address, _, _ := strings.Cut(rest, "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(io.Discard, said) }()
	// It is told to go on once the proxy reads the body.
	_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the proxy says %q, %v", line, err)
	}
	interrupt()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the proxy waits for the client")
		_ = conn.Close()
		<-ended
	}
	var run result.Run
	read(t, results, &run)
}

func TestProxyRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "the server is missing"},
		{[]string{"--role", "host", "--", "x"}, "it takes server, client or both"},
		{[]string{"--url", "ftp://x"}, "must begin with http://"},
		{[]string{"--url", "http://x", "--start", "x"}, "cannot start a server"},
		{[]string{"--url", "http://localhost:1", "--listen", "nowhere"}, "--listen"},
		{[]string{"--url", "ws://localhost:1", "--listen", ":1"}, "--listen cannot be given"},
	} {
		cmd := newRoot()
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{"proxy"}, c.args...))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("proxy %q: %v, want an error with %q", c.args, err, c.want)
		}
	}
}
