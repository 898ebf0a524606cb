package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
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

func TestProxyStdio(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(asReference, "1")
	err := reference.Standalone{Launcher: transport.Command{Args: []string{
		os.Args[0], "proxy", "--json", filepath.Join(dir, "results.json"), "--", os.Args[0],
	}}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relayed(t, dir, 100)
}

func TestProxyHTTP(t *testing.T) {
	for _, name := range []string{transport.NameHTTP, transport.NameSSE} {
		t.Run(name, func(t *testing.T) {
			handler := server.New(server.Options{}).HTTP()
			defer handler.Close()
			upstream := httptest.NewServer(handler)
			defer upstream.Close()
			path := map[string]string{transport.NameHTTP: server.PathMCP, transport.NameSSE: server.PathSSE}[name]
			dir := t.TempDir()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			said, stderr := io.Pipe()
			cmd := newRoot()
			cmd.SetErr(stderr)
			cmd.SetArgs([]string{
				"proxy", "--quiet", "--url", upstream.URL + path, "--transport", name,
				"--header", "X-Key: hush-hush", "--json", filepath.Join(dir, "results.json"), "--trace", filepath.Join(dir, "trace"),
			})
			visited := make(chan error, 1)
			go func() {
				line, _ := bufio.NewReader(said).ReadString('\n')
				_, rest, _ := strings.Cut(line, "find the server at ")
				url, _, _ := strings.Cut(rest, ";")
				visited <- reference.Standalone{URL: url, Legacy: name == transport.NameSSE}.Run(ctx)
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
			trace, err := os.ReadFile(filepath.Join(dir, "trace"))
			if err != nil || len(trace) == 0 || strings.Contains(string(trace), "hush-hush") {
				t.Errorf("the trace of %d bytes: %v; does it hold the secret?", len(trace), err)
			}
		})
	}
}

func TestProxyRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no server to stand before"},
		{[]string{"--role", "host", "--", "x"}, "it takes server, client or both"},
		{[]string{"--url", "ftp://x"}, "must begin with http://"},
		{[]string{"--url", "http://x", "--start", "x"}, "starts no server"},
		{[]string{"--url", "http://localhost:1", "--listen", "nowhere"}, "--listen"},
	} {
		cmd := newRoot()
		cmd.SetErr(io.Discard)
		cmd.SetArgs(append([]string{"proxy"}, c.args...))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("proxy %q: %v, want an error with %q", c.args, err, c.want)
		}
	}
}
