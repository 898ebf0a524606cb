package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

func TestHTTPFlagsThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		flags httpFlags
		args  []string
		says  string
	}{
		{httpFlags{url: "http://localhost/mcp"}, []string{"command"}, "give either COMMAND"},
		{httpFlags{start: "serve"}, nil, "--url is missing"},
		{httpFlags{url: "ftp://localhost"}, nil, "--url: "},
		{httpFlags{url: "http://127.0.0.1:{port}/mcp"}, nil, "--url: "},
		{httpFlags{url: "http://localhost/mcp", headers: []string{"no colon"}}, nil, "--header: "},
		{httpFlags{url: "http://localhost/mcp", bearerEnv: "MCPCONFORM_NO_SUCH_VARIABLE"}, nil, "--bearer-env: "},
		{httpFlags{url: "https://localhost/mcp", tls: transport.TLSOptions{KeyFile: "key.pem"}}, nil, "--cert"},
		{httpFlags{url: "https://localhost/mcp", tls: transport.TLSOptions{CAFile: "no-such-file.pem"}}, nil, "no-such-file.pem"},
	} {
		_, err := tt.flags.endpoint(tt.args, 0)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v %v: %v, not %q", tt.flags, tt.args, err, tt.says)
		}
	}
}

func TestDetectedTransport(t *testing.T) {
	for path, want := range map[string]string{server.PathMCP: transport.NameHTTP, server.PathSSE: transport.NameSSE} {
		handler := server.New(server.Options{}).HTTP()
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		t.Cleanup(handler.Close)
		var o serverOptions
		f := httpFlags{url: s.URL + path, transport: "auto"}
		stop, err := f.target(t.Context(), &o, nil, transport.Command{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := prepare(t.Context(), o)
		stop()
		if err != nil || found.Transport != want {
			t.Errorf("%s is taken for %s, not %s: %v", path, found.Transport, want, err)
		}
		if n := len(o.Trace.Logs()); want == transport.NameHTTP && n != 1 {
			t.Errorf("it took %d connections to find that out", n)
		}
		if o.Target.URL != s.URL+path {
			t.Errorf("the report names %s", o.Target.URL)
		}
	}
}

// TestUnreachableServers wants exit code 3, a reason and a report.
func TestUnreachableServers(t *testing.T) {
	gone := nobody(t)
	for _, tt := range []struct {
		flags httpFlags
		says  string
	}{
		{httpFlags{url: gone + "/mcp", transport: "auto"}, "connection refused"},
		{httpFlags{url: gone + "/mcp", transport: "http"}, "connection refused"},
		{httpFlags{url: gone + "/sse", transport: "sse"}, "connection refused"},
		{httpFlags{url: "http://127.0.0.1:{port}/mcp", start: "echo these are the last words; exit 7"}, "these are the last words"},
		{httpFlags{url: "http://127.0.0.1:{port}/mcp", start: "echo loading; sleep 60"}, `within 300ms; its output ends with: "loading"; if it may take longer, raise --start-timeout`},
	} {
		o := serverOptions{ServerChecks: suites.ServerChecks{StartTimeout: 300 * time.Millisecond}}
		stop, err := tt.flags.target(t.Context(), &o, nil, transport.Command{})
		if err != nil {
			t.Fatal(err)
		}
		run, trace, err := suites.Run(t.Context(), o.ServerChecks, o.Options)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if run.Verdict != result.Incomplete || !strings.Contains(run.Reason, tt.says) || len(run.Requirements) == 0 {
			t.Errorf("%+v: %s: %s", tt.flags, run.Verdict, run.Reason)
		}
		report := filepath.Join(t.TempDir(), "results.json")
		var code exitError
		if err := (&reportFlags{quiet: true, json: report}).write(os.Stdout, run, trace); !errors.As(err, &code) || code != exitIncomplete {
			t.Errorf("%+v: %v", tt.flags, err)
		}
		if _, err := os.Stat(report); err != nil {
			t.Error(err)
		}
	}
}

// A URL is no command: the message names the flag that takes it.
func TestURLAsCommand(t *testing.T) {
	for _, command := range []string{"server", "client"} {
		for _, arg := range []string{"https://example.com/mcp", "HTTP://localhost", "ws://localhost"} {
			root := newRoot()
			root.SetArgs([]string{command, "--", arg})
			if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "COMMAND is a URL") || !strings.Contains(err.Error(), "--url URL") {
				t.Errorf("%s %s: %v", command, arg, err)
			}
		}
	}
}

// A server may accept the short initialize that detects its transport, and refuse the first message of the run. It
// then refuses a message, and no session.
func TestRefusedInitialize(t *testing.T) {
	const id = "lifecycle.init.answered"
	for name, refuses := range map[string]func(params map[string]any) bool{
		"title":       func(p map[string]any) bool { return wire.At(p, "clientInfo", "title") != nil },
		"elicitation": func(p map[string]any) bool { return wire.At(p, "capabilities", "elicitation") != nil },
	} {
		handler := server.New(server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
			"initialize": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if refuses(r.Params) {
					return nil, &wire.Error{Code: server.InvalidParams, Message: "unknown member"}
				}
				return next(ctx, r)
			},
		}}}).HTTP()
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		t.Cleanup(handler.Close)
		var o serverOptions
		f := httpFlags{url: s.URL + server.PathMCP, transport: "auto"}
		stop, err := f.target(t.Context(), &o, nil, transport.Command{})
		if err != nil {
			t.Fatal(err)
		}
		o.Selection = suites.Selection{Select: []string{id}}
		run, _, err := suites.Run(t.Context(), o.ServerChecks, o.Options)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		q := run.Requirements[0]
		if q.ID != id || q.Verdict != result.Fail || len(q.Findings) == 0 {
			t.Errorf("%s: %s is %s: %s; the run: %s", name, q.ID, q.Verdict, q.Reason, run.Reason)
			continue
		}
		if shown := q.Findings[0].Evidence; !strings.Contains(shown[0].Text, `"method":"initialize"`) || !strings.Contains(shown[len(shown)-1].Text, "unknown member") {
			t.Errorf("%s: the evidence is %v", name, shown)
		}
	}
}
