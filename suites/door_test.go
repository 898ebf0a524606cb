package suites_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/mockserver"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// piped serves the reference server, or one with a fault, over pipes.
func piped(o server.Options) suites.Server {
	return suites.InProcess(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return server.New(o).RunStdio(ctx, in, out, io.Discard)
	})
}

func TestServerSuite(t *testing.T) {
	handler := server.New(server.Options{}).HTTP()
	t.Cleanup(handler.Close)
	for name, s := range map[string]suites.Server{"pipes": piped(server.Options{}), "handler": suites.Handler(server.PathMCP, handler)} {
		t.Run(name, func(t *testing.T) {
			var run *result.Run
			suites.ServerSuite(t, s, suites.CallAllTools(), suites.Select("server/tools", "ping"), suites.LabelFilter("!level: containsAny {MAY}"),
				suites.Watch(func(r *result.Run) { run = r }))
			if run.Verdict != result.Conformant || run.Counts()[result.Pass] < 10 || slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool { return q.Level == "MAY" }) {
				t.Errorf("the verdict is %s, with %v", run.Verdict, run.Counts())
			}
		})
	}
}

func TestClientSuite(t *testing.T) {
	connect := func(c reference.Standalone) func(ctx context.Context) error {
		return func(ctx context.Context) error { return c.Run(ctx) }
	}
	for name, c := range map[string]suites.Client{
		"HTTP": suites.ClientOverHTTP(func(ctx context.Context, url string) error { return connect(reference.Standalone{URL: url})(ctx) }),
		"pipes": suites.ClientOverPipes(func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			return connect(reference.Standalone{Launcher: attached{in, out}})(ctx)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			var run *result.Run
			suites.ClientSuite(t, c, suites.Scenarios("exchange/*"), suites.Select("ping", "lifecycle"), suites.Watch(func(r *result.Run) { run = r }))
			if run.Verdict != result.Conformant || run.Counts()[result.Pass] < 5 {
				t.Errorf("the verdict is %s, with %v: %s", run.Verdict, run.Counts(), run.Reason)
			}
		})
	}
}

// attached is a server at the other end of two pipes, as a process.
type attached struct {
	in  io.ReadCloser
	out io.WriteCloser
}

func (a attached) String() string { return "attached" }

func (a attached) Launch() (transport.Process, error) {
	return transport.Func{Name: "attached", Run: func(_ context.Context, stdin io.Reader, stdout, _ io.Writer) error {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(a.out, stdin)
			_ = a.out.Close()
		}()
		_, err := io.Copy(stdout, a.in)
		<-done
		return err
	}}.Launch()
}

// Programs and servers that run already are tested like what is within the program.
func TestSuitesOfPrograms(t *testing.T) {
	var runs []*result.Run
	options := func(more ...suites.Option) []suites.Option {
		return append(more, suites.Strict(), suites.Timeout(20*time.Second), suites.Select("ping.response-prompt"),
			suites.Watch(func(r *result.Run) { runs = append(runs, r) }))
	}
	handler := server.New(server.Options{}).HTTP()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	t.Cleanup(handler.Close)
	t.Run("URL", func(t *testing.T) {
		suites.ServerSuite(t, suites.URL(s.URL+server.PathMCP, nil), options(suites.ToolRole("slow", "slow", map[string]any{"seconds": 1}))...)
	})
	t.Run("Command", func(t *testing.T) {
		t.Setenv(serveVariable, "1")
		suites.ServerSuite(t, suites.Command(os.Args[0]), options()...)
	})
	t.Run("ClientCommand", func(t *testing.T) {
		t.Setenv(serveVariable, asClient)
		suites.ClientSuite(t, suites.ClientCommand(os.Args[0], "{url}"), options(suites.Scenarios("exchange/requests"))...)
	})
	for _, run := range runs {
		if run.Verdict != result.Conformant || !run.Strict || run.Counts()[result.Pass] != 1 {
			t.Errorf("%v: the verdict is %s, with %v: %s", run.Target, run.Verdict, run.Counts(), run.Reason)
		}
	}
	if len(runs) != 3 {
		t.Errorf("%d runs", len(runs))
	}
}

// The output of a suite holds no secret of the environment or a command, even if a server repeats it.
func TestSuitesKeepSecrets(t *testing.T) {
	const inherited, argument, header = "inherited-s3cret", "argument-s3cret", "header-s3cret"
	var shown []byte
	keep := suites.Watch(func(r *result.Run) { shown = append(shown, reference.Marshal(r)...) })
	t.Setenv("SERVICE_TOKEN", inherited)
	t.Run("pipes", func(t *testing.T) {
		suites.ServerSuite(t, piped(server.Options{Instructions: "the token is " + inherited}), suites.Select("ping.response-prompt"), keep)
	})
	t.Run("URL", func(t *testing.T) {
		handler := server.New(server.Options{Instructions: "the key is " + header}).HTTP()
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		t.Cleanup(handler.Close)
		suites.ServerSuite(t, suites.URL(s.URL+server.PathMCP, http.Header{"X-Service-Key": {header}}), suites.Select("ping.response-prompt"), keep)
	})
	t.Run("Command", func(t *testing.T) {
		t.Setenv(serveVariable, "1")
		suites.ServerSuite(t, suites.Command(os.Args[0], "--token", argument), suites.Select("ping.response-prompt"), keep)
	})
	if !bytes.Contains(shown, []byte(transport.Redacted)) {
		t.Error("nothing was taken out")
	}
	for _, secret := range []string{inherited, argument, header} {
		if bytes.Contains(shown, []byte(secret)) {
			t.Errorf("the results hold %s", secret)
		}
	}
}

// A finding of a suite fails the test of its requirement. The failure shows the requirement, the finding, the
// messages and the place in the specification. This program runs itself again with a test that fails on purpose, to
// read the output.
func TestServerSuiteFails(t *testing.T) {
	brief.WholeRuns(t)
	const inner = "MCPCONFORM_TEST_FAULT"
	if id := os.Getenv(inner); id != "" {
		o := server.Options{}
		fault, _ := mockserver.Find("base.unknown-method-code")
		if id == fault.ID {
			fault.Apply(&o)
		}
		var options []suites.Option
		if reason := os.Getenv(inner + "_EXPECTED"); reason != "" {
			options = append(options, suites.ExpectFailure(fault.Requirement, reason))
		}
		suites.ServerSuite(t, piped(o), append(options, suites.Select("base.error"))...)
		return
	}
	output, err := again(t, inner+"=base.unknown-method-code")
	for _, text := range []string{
		"--- FAIL: " + t.Name() + "/basic/index/base.error.method-not-found", "MUST, JSON-RPC 2.0, section 5.1: ", "found by base/", "-32601",
		"client message: ", "see https://modelcontextprotocol.io/specification/2025-06-18/basic#",
		"--- PASS: " + t.Name() + "/basic/index/base.error.object",
	} {
		if !strings.Contains(output, text) {
			t.Errorf("%q is missing (%v) in:\n%s", text, err, output)
		}
	}
	if output, err := again(t, inner+"=base.unknown-method-code", inner+"_EXPECTED=known"); err != nil || !strings.Contains(output, "fail as expected: known") {
		t.Errorf("an expected failure: %v:\n%s", err, output)
	}
	if output, err := again(t, inner+"=none", inner+"_EXPECTED=known"); err == nil || !strings.Contains(output, "remove the expectation") {
		t.Errorf("a failure that did not come: %v:\n%s", err, output)
	}
}

// again runs a test of this program in a process of its own, and returns what it
// prints. The error is that of a program that fails.
func again(t *testing.T, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
