package suites

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A Server is a server under test, for [ServerSuite].
type Server struct {
	target result.Target
	dialer func(t *testing.T) transport.Dialer
}

// Command is a server over stdio: a program with its arguments, started anew
// for each connection.
func Command(program string, args ...string) Server {
	command := append([]string{program}, args...)
	return Server{result.Target{Command: command}, func(*testing.T) transport.Dialer {
		return &transport.Stdio{Launcher: transport.Command{Args: command}}
	}}
}

// InProcess is a server within this program that speaks the stdio transport over
// pipes: one JSON-RPC message a line. serve is called once a connection, several
// at the same time, and has to return once in has ended; until then ctx is not cancelled.
func InProcess(serve func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error) Server {
	return Server{result.Target{Command: []string{"(in process)"}}, func(*testing.T) transport.Dialer {
		run := func(ctx context.Context, in io.Reader, out, _ io.Writer) error {
			return serve(ctx, in.(io.ReadCloser), out.(io.WriteCloser))
		}
		return &transport.Stdio{Launcher: transport.Func{Name: "server", Run: run}}
	}}
}

// URL is a server over Streamable HTTP, the older HTTP+SSE or WebSocket that runs already.
// The header, which may be nil, goes with each request.
func URL(url string, header http.Header) Server {
	return Server{result.Target{}, func(t *testing.T) transport.Dialer {
		e := transport.Endpoint{URL: url, Header: header}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		if transport.IsWebSocket(url) {
			return &transport.WebSocket{Endpoint: e}
		}
		return &transport.HTTP{Endpoint: e, OrOlder: true}
	}}
}

// Handler is a server over Streamable HTTP within this program, whose endpoint is
// at a path, such as /mcp.
func Handler(path string, h http.Handler) Server {
	return Server{result.Target{}, func(t *testing.T) transport.Dialer {
		s := httptest.NewServer(h)
		t.Cleanup(func() {
			s.CloseClientConnections()
			s.Close()
		})
		return &transport.HTTP{Endpoint: transport.Endpoint{URL: s.URL + path}}
	}}
}

// A Client is a client under test, for [ClientSuite].
type Client struct {
	target    result.Target
	transport string
	launch    func(p client.Endpoint) (transport.Process, error)
}

// ClientCommand is a client over Streamable HTTP: a program with its arguments,
// in which {url} stands for the URL of the server, or after which it is appended.
func ClientCommand(program string, args ...string) Client {
	command := append([]string{program}, args...)
	return Client{result.Target{Command: command}, transport.NameHTTP, client.Command{Args: command}.Launch}
}

// ClientOverHTTP is a client within this program. connect is called once a
// scenario, several at the same time, with the URL of the server: it connects, uses
// what is there, disconnects and returns. An error stands for a failed process.
func ClientOverHTTP(connect func(ctx context.Context, url string) error) Client {
	return Client{result.Target{Command: []string{"(in process)"}}, transport.NameHTTP,
		func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				return connect(ctx, p.URL)
			}}.Launch()
		}}
}

// ClientOverPipes is ClientOverHTTP for the stdio transport: connect reads the
// server's messages from in and writes its own to out, one a line.
func ClientOverPipes(connect func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error) Client {
	return Client{result.Target{Command: []string{"(in process)"}}, transport.NameStdio,
		func(p client.Endpoint) (transport.Process, error) {
			return transport.Func{Name: "client", Run: func(ctx context.Context, _ io.Reader, _, _ io.Writer) error {
				server, err := transport.Func{Name: p.Scenario, Run: p.Serve}.Launch()
				if err != nil {
					return err
				}
				logged := make(chan struct{})
				go func() {
					defer close(logged)
					_, _ = io.Copy(io.Discard, server.Stderr())
				}()
				defer func() {
					server.Kill()
					<-server.Done()
					<-logged
				}()
				return connect(ctx, server.Stdout(), server.Stdin())
			}}.Launch()
		}}
}

// An Option of [ServerSuite] and [ClientSuite].
type Option func(*suite)

// suite is what the options say.
type suite struct {
	Options
	settings  check.Settings
	scenarios []string
	watch     []func(*result.Run)
}

// Select leaves only the requirements that one of the patterns matches: an id, a
// glob of ids, a page or a level.
func Select(patterns ...string) Option {
	return func(s *suite) { s.Selection.Select = append(s.Selection.Select, patterns...) }
}

// Skip leaves out the requirements that one of the patterns matches; see Select.
func Skip(patterns ...string) Option {
	return func(s *suite) { s.Selection.Skip = append(s.Selection.Skip, patterns...) }
}

// LabelFilter leaves what a label filter of Ginkgo matches, beside what Select and Skip leave.
func LabelFilter(filter string) Option {
	return func(s *suite) { s.Selection.LabelFilter = filter }
}

// Strict makes broken recommendations failures.
func Strict() Option { return func(s *suite) { s.Strict = true } }

// Seed chooses which members of large families of stimuli are tried: docs/families.md.
func Seed(n uint64) Option { return func(s *suite) { s.Options.Seed = n } }

// Thorough tries all members of all families of stimuli.
func Thorough() Option { return func(s *suite) { s.Budget = result.Thorough } }

// Quick tries each requirement once, in the plainest way. The last one of Quick and Thorough counts.
func Quick() Option { return func(s *suite) { s.Budget = result.Quick } }

// Timeout bounds one answer of a server, or one scenario of a client.
func Timeout(d time.Duration) Option { return func(s *suite) { s.Timeout = d } }

// RunTimeout bounds the whole run: what was not tried by then is inconclusive.
func RunTimeout(d time.Duration) Option { return func(s *suite) { s.RunTimeout = d } }

// Shard runs one of several shards of the suite, from 1 on: the same options give the
// same shards. Merge makes a whole of their results.
func Shard(i, of int) Option {
	return func(s *suite) { s.Options.Shard, s.Shards = i, of }
}

// CallAllTools allows calls of all tools of a server: without it only those that
// are annotated read-only, or named by ToolRole, are called.
func CallAllTools() Option { return func(s *suite) { s.settings.CallTools = check.CallAll } }

// ToolRole names a tool of a server, with arguments, for something that can be
// tried only with a tool that does it: docs/configuration.md lists the tool roles.
func ToolRole(name, tool string, arguments map[string]any) Option {
	return func(s *suite) {
		if s.settings.ToolRoles == nil {
			s.settings.ToolRoles = make(map[string]check.Call)
		}
		s.settings.ToolRoles[name] = check.Call{Tool: tool, Arguments: arguments}
	}
}

// GivesUpAfter says after what time at most the target gives up a request of its own
// that is not answered. Waiting for longer is then reported.
func GivesUpAfter(d time.Duration) Option { return func(s *suite) { s.settings.GivesUpAfter = d } }

// Scenarios runs only the scenarios of these names or globs, beside the baseline.
func Scenarios(names ...string) Option {
	return func(s *suite) { s.scenarios = append(s.scenarios, names...) }
}

// ExpectFailure lets a requirement, or those that a glob matches, fail for a
// reason. The test fails once they no longer fail.
func ExpectFailure(id, reason string) Option {
	return func(s *suite) { s.Expected = append(s.Expected, expected.Entry{ID: id, Reason: reason}) }
}

// Watch passes the results on, for a report by package reporters.
func Watch(see func(*result.Run)) Option {
	return func(s *suite) { s.watch = append(s.watch, see) }
}

// ServerSuite tests a server. Each requirement is a subtest of that of its page,
// such as TestServer/server/tools/tools.list.callable: it fails where a MUST is
// broken, logs a broken SHOULD, and is skipped where nothing can be said.
func ServerSuite(t *testing.T, s Server, options ...Option) {
	t.Helper()
	o := collect(options)
	dialer := s.dialer(t)
	o.Target = s.target
	if e := transport.EndpointOf(dialer); e != nil {
		o.Target.URL = e.String()
	}
	report(t, o, wire.Server, ServerChecks{Dialer: dialer, Settings: o.settings})
}

// ClientSuite tests a client; see ServerSuite.
func ClientSuite(t *testing.T, c Client, options ...Option) {
	t.Helper()
	o := collect(options)
	o.Target = c.target
	report(t, o, wire.Client, ClientScenarios{Transport: c.transport, Launch: c.launch, Scenarios: o.scenarios,
		GivesUpAfter: o.settings.GivesUpAfter})
}

func collect(options []Option) *suite {
	s := &suite{settings: check.Settings{CallTools: check.CallSafe}}
	s.Tool = result.Tool{Name: "mcpconform"}
	for _, option := range options {
		option(s)
	}
	return s
}

// report runs a suite on a party and tells a test of its results.
func report(t *testing.T, s *suite, p wire.Party, stimulus Stimulus) {
	t.Helper()
	if err := s.Selection.Validate(schema.Default(), p); err != nil {
		t.Fatal(err)
	}
	run, _, err := Run(t.Context(), stimulus, s.Options)
	if err != nil {
		t.Fatal(err)
	}
	for _, see := range s.watch {
		see(run)
	}
	for first := 0; first < len(run.Requirements); {
		last := first
		for last < len(run.Requirements) && run.Requirements[last].Page == run.Requirements[first].Page {
			last++
		}
		page := run.Requirements[first:last]
		t.Run(page[0].Page, func(t *testing.T) {
			for _, q := range page {
				t.Run(q.ID, func(t *testing.T) { tell(t, run, q) })
			}
		})
		first = last
	}
	for _, e := range run.ExpectedFailures {
		if e.Status == expected.Passed || e.Status == expected.Unmatched {
			t.Errorf("%s no longer fails, although a failure was expected because of %s: remove the expectation", e.ID,
				e.Reason)
		}
	}
	if run.Verdict == result.Incomplete {
		t.Errorf("the run is incomplete: %s", run.Reason)
	}
}

// tell gives a test the verdict on a requirement.
func tell(t *testing.T, run *result.Run, q result.Requirement) {
	switch {
	case q.Expected != "":
		t.Skipf("%s as expected: %s", q.Verdict, q.Expected)
	case q.Disputed != nil && !run.Strict:
		t.Skipf("%s, but disputed: %s\n%s", q.Verdict, q.Disputed.Title, explain(run, q))
	case q.Verdict == result.Fail, q.Verdict == result.Error, q.Verdict == result.Warn && run.Strict:
		t.Error(explain(run, q))
	case q.Verdict == result.Warn:
		t.Log(explain(run, q))
	case q.Verdict != result.Pass:
		t.Skipf("%s: %s", q.Verdict, q.Reason)
	}
}

// explain says what was required, found and exchanged.
func explain(run *result.Run, q result.Requirement) string {
	var b strings.Builder
	grade := q.Level
	if basis := cmp.Or(q.Standard, q.Basis); basis != "" {
		grade += ", " + basis
	}
	fmt.Fprintf(&b, "%s: %s\n", grade, cmp.Or(q.Summary, q.ID))
	if q.Reason != "" {
		fmt.Fprintf(&b, "  %s\n", q.Reason)
	}
	for _, f := range q.Findings {
		fmt.Fprintf(&b, "  found by %s: %s\n", f.Check, f.Message)
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "    %s %s: %s\n", e.From, e.Kind, strings.ReplaceAll(e.Text, "\n", "\n      "))
		}
	}
	if d := q.Disputed; d != nil {
		for _, thread := range d.Threads {
			fmt.Fprintf(&b, "  disputed: %s %s\n", thread.URL, thread.Says)
		}
		fmt.Fprintf(&b, "  our position: %s\n", d.Position)
	}
	if url := q.URL(run.Revision); url != "" {
		fmt.Fprintf(&b, "  see %s", url)
	}
	return strings.TrimRight(b.String(), "\n")
}
