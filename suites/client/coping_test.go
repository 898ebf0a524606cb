package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// user is a person who decides by the params of a request; nil leaves it to the client.
type user = func(n int, params any) (any, *wire.Error)

// deciding is the reference client with such a person behind one of its features.
func deciding(method string, decide user) func(*reference.Standalone) {
	return func(c *reference.Standalone) {
		c.Change = func(o *reference.Options) {
			serve, n := o.Answers[method], new(atomic.Int32) // requests come at the same time
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				if result, rpcErr := decide(int(n.Add(1)), params); result != nil || rpcErr != nil {
					return result, rpcErr
				}
				return serve(ctx, params)
			}
		}
	}
}

// TestUsersMayRefuse runs clients whose users, or model providers, refuse what they
// like: nothing is broken, and nothing was shown.
func TestUsersMayRefuse(t *testing.T) {
	const sampling, elicitation = "features/sampling", "features/elicitation"
	rejected := &wire.Error{Code: -1, Message: "User rejected sampling request"}
	for _, test := range []struct {
		name, scenario, method string
		decide                 user
		unknown                []string // requirements of which nothing is known then
	}{
		{"all sampling", sampling, "sampling/createMessage", func(int, any) (any, *wire.Error) { return nil, rejected },
			[]string{"base.error.invalid-params", "sampling.error.returned", "sampling.request.optional-members", "sampling.security.validate-content"}},
		{"all sampling but the first", sampling, "sampling/createMessage", func(n int, _ any) (any, *wire.Error) {
			if n > 1 {
				return nil, &wire.Error{Code: -32603, Message: "too many sampling requests"}
			}
			return nil, nil
		}, []string{"base.error.invalid-params", "sampling.request.optional-members", "sampling.security.validate-content"}},
		{"metadata that the provider does not know", sampling, "sampling/createMessage", func(_ int, params any) (any, *wire.Error) {
			if m, _ := wire.At(params, "metadata").(map[string]any); len(m) > 0 {
				return nil, &wire.Error{Code: -32602, Message: "the provider knows no such metadata"}
			}
			return nil, nil
		}, nil},
		{"images", sampling, "sampling/createMessage", func(_ int, params any) (any, *wire.Error) {
			messages, _ := wire.At(params, "messages").([]any)
			for _, m := range messages {
				if wire.At(m, "content", "type") != "text" {
					return nil, &wire.Error{Code: -32602, Message: "the model cannot see"}
				}
			}
			return nil, nil
		}, nil},
		{"what was asked with invalid params", sampling, "sampling/createMessage", func(_ int, params any) (any, *wire.Error) {
			if _, ok := wire.At(params, "messages").([]any); !ok {
				return nil, rejected
			}
			return nil, nil
		}, []string{"base.error.invalid-params"}},
		{"every form", elicitation, "elicitation/create", func(int, any) (any, *wire.Error) { return map[string]any{"action": "decline"}, nil },
			[]string{"elicitation.schema.client-supports", "elicitation.schema.number-bounds"}},
		{"every other form", elicitation, "elicitation/create", func(n int, _ any) (any, *wire.Error) {
			if n%2 == 0 {
				return map[string]any{"action": "cancel"}, nil
			}
			return nil, nil
		}, nil},
		{"forms that come too often", elicitation, "elicitation/create", func(n int, _ any) (any, *wire.Error) {
			if n > 5 {
				return nil, &wire.Error{Code: -32603, Message: "too many forms"}
			}
			return nil, nil
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Scenarios: []string{test.scenario}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
				deciding(test.method, test.decide)(&c)
				return c.Run(ctx)
			})}, suites.Options{Timeout: 40 * time.Second})
			if found := verdicts(run); len(found) > 0 {
				t.Errorf("found: %v", found)
			}
			for _, id := range test.unknown {
				if q := requirement(t, run, id); q.Verdict != result.Inconclusive {
					t.Errorf("%s is %s", id, q.Verdict)
				}
			}
		})
	}
}

// ending is a process that ends as it is told, whatever its program returned.
type ending struct {
	transport.Process
	exit wire.Exit
}

func (p ending) Exit() wire.Exit { return p.exit }

// TestHowClientsCope runs clients that meet what they cannot use: whoever goes on,
// ends in order or reports it has coped, and whoever crashes has not.
func TestHowClientsCope(t *testing.T) {
	const version, capability, empty = "lifecycle.error.version-mismatch", "lifecycle.error.missing-capability", "schema.optional-members"
	for _, test := range []struct {
		name, scenario, requirement string
		exit                        wire.Exit
		output                      string
		want                        result.Verdict
	}{
		{"a report", "lifecycle/no-version", version, wire.Exit{Code: 1}, "error: the server speaks no version that I know", result.Pass},
		{"no word", "capabilities/none", capability, wire.Exit{Code: 1}, "", result.Inconclusive},
		{"an uncaught exception", "capabilities/none", capability, wire.Exit{Code: 1}, "Traceback (most recent call last):\n  File \"c.py\", line 1\nKeyError: 'tools'", result.Inconclusive},
		{"a good end", "capabilities/none", capability, wire.Exit{}, "", result.Pass},
		{"a signal", "capabilities/none", capability, wire.Exit{Code: -1, Signal: "segmentation fault"}, "", result.Warn},
		{"a signal, seen by a shell", "lifecycle/older-version", version, wire.Exit{Code: 139}, "", result.Warn},
		{"a panic", "lifecycle/no-version", version, wire.Exit{Code: 2}, "panic: runtime error\n\ngoroutine 1 [running]:\n", result.Warn},
		{"a report that there are no tools", "content/empty", empty, wire.Exit{Code: 1}, "error: the server has no tools", result.Inconclusive},
		{"an error at an item that is not there", "content/empty", empty, wire.Exit{Code: 1}, "Traceback (most recent call last):\n  File \"c.py\", line 1\nIndexError: list index out of range", result.Warn},
		{"an end without work", "content/empty", empty, wire.Exit{}, "", result.Pass},
		{"a crash in place of a time-out", "lifecycle/unanswered", "lifecycle.error.request-timeout", wire.Exit{Code: -1, Signal: "aborted"}, "", result.Warn},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Scenarios: []string{test.scenario}, Launch: func(p client.Endpoint) (transport.Process, error) {
				process, err := transport.Func{Name: "a client", Run: func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) error {
					c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}
					if p.Scenario == client.Baseline {
						return c.Run(ctx)
					}
					_, _ = io.WriteString(stdout, test.output)
					return leaving(ctx, c)
				}}.Launch()
				if err == nil && p.Scenario != client.Baseline {
					process = ending{process, test.exit}
				}
				return process, err
			}}, suites.Options{Timeout: 40 * time.Second})
			if q := requirement(t, run, test.requirement); q.Verdict != test.want {
				t.Errorf("%s is %s, want %s: %s", test.requirement, q.Verdict, test.want, q.Reason)
			}
		})
	}
}

// errLeft ends a client that leaves without taking leave.
var errLeft = errors.New("left")

// leaving runs a client that leaves after a few requests, without ending its session.
func leaving(ctx context.Context, c reference.Standalone) error {
	c.Wrap = func(conn transport.Conn) transport.Conn { return &leaver{Conn: conn} }
	return c.Run(ctx)
}

type leaver struct{ transport.Conn }

func (l *leaver) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if m := wire.Parse(out.Raw); m.Kind == wire.Request && m.Method != "initialize" && !strings.HasPrefix(m.Method, "tools/") && m.Method != "ping" && m.Method != "logging/setLevel" {
		return &wire.Event{Kind: wire.KindNote}, errLeft
	}
	return l.Conn.Send(ctx, out)
}

// Close drops the connection without a DELETE.
func (l *leaver) Close(ctx context.Context) error {
	if named, ok := l.Conn.(interface{ SetSession(id, version string) }); ok {
		named.SetSession("", "")
	}
	return errors.Join(errLeft, l.Conn.Close(ctx))
}

// TestCursorOfAnEndedProcess runs clients that start the server anew when its process
// has ended between two pages of a list.
func TestCursorOfAnEndedProcess(t *testing.T) {
	for name, test := range map[string]struct {
		keeps bool
		want  result.Verdict
	}{"begins anew": {false, result.Pass}, "reads on": {true, result.Fail}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{Transport: transport.NameStdio, Scenarios: []string{"lists/lost-session"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				var params map[string]any
				for range 2 {
					d := &transport.Stdio{Launcher: transport.Func{Name: p.Scenario, Run: p.Serve}}
					conn, err := d.Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(p.Transport, "a client"))
					if err != nil {
						return err
					}
					s := reference.New(conn, reference.Options{Timeout: answerTime})
					if _, err := s.Initialize(ctx); err != nil {
						return err
					}
					x, err := s.Call(ctx, "tools/list", params)
					for err == nil && x.Result()["nextCursor"] != nil {
						params = map[string]any{"cursor": x.Result()["nextCursor"]}
						x, err = s.Call(ctx, "tools/list", params)
					}
					_ = s.Close(ctx)
					if !test.keeps {
						params = nil
					}
					if err == nil {
						return nil
					}
				}
				return nil
			})}, suites.Options{Timeout: 40 * time.Second})
			if q := requirement(t, run, "pagination.client.cursor-not-persisted"); q.Verdict != test.want {
				t.Errorf("the verdict is %s: %s", q.Verdict, q.Reason)
			}
		})
	}
}

// TestLateOnce launches a client that leaves a ping unanswered: what happens once may
// be the machine's doing.
func TestLateOnce(t *testing.T) {
	const scenario, id = "exchange/notifications", "cancellation.ignore-unknown"
	for name, test := range map[string]struct {
		times int32
		want  result.Verdict
	}{"once": {1, result.Pass}, "always": {1000, result.Warn}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var launches atomic.Int32
			run := conducted(t, suites.ClientScenarios{Scenarios: []string{scenario}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
				c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: calmTime}
				if p.Scenario == scenario && launches.Add(1) <= test.times {
					with(dropped(func(m *wire.Message) bool { return m.ID.Key() == wire.StringID("after-cancelled").Key() }))(&c)
				}
				return c.Run(ctx)
			})}, suites.Options{Timeout: 40 * time.Second})
			if q := requirement(t, run, id); q.Verdict != test.want {
				t.Errorf("%s is %s after %d launches: %s", id, q.Verdict, launches.Load(), q.Reason)
			}
		})
	}
}

// byHand returns the launch of a client over stdio. The client sends initialize, and then only the messages that
// reads sends for each message of the server, until reads reports that the client leaves. Each launch has a reads of
// its own. Its further work ends before the client.
func byHand(reader func(send func(text string), beside func(func())) (reads func(m *wire.Message) (leaves bool))) func(client.Endpoint) (transport.Process, error) {
	return inProcess(func(ctx context.Context, p client.Endpoint) error {
		fromClient, stdin := io.Pipe()
		stdout, fromServer := io.Pipe()
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() {
			_ = p.Serve(ctx, fromClient, fromServer, io.Discard)
			_ = fromServer.Close()
		})
		defer stdout.Close()
		defer stdin.Close()
		send := func(text string) { _, _ = io.WriteString(stdin, text+"\n") } // a pipe takes one write at a time
		reads := reader(send, all.Go)
		send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a client","version":"1"}}}`)
		lines := bufio.NewScanner(stdout)
		for lines.Buffer(nil, 1<<22); lines.Scan(); {
			if reads(wire.Parse(lines.Bytes())) {
				return nil
			}
		}
		return nil
	})
}

// pong is the answer to a ping.
func pong(id wire.ID) string { return `{"jsonrpc":"2.0","id":` + id.String() + `,"result":{}}` }

// TestAnsweredLate runs a client that answers each request of the server beside the others, and one of them when it has
// answered a later one. It leaves as soon as its own request is answered.
func TestAnsweredLate(t *testing.T) {
	const scenario, id = "hostile/envelopes", "base.error.invalid-request"
	run := conducted(t, suites.ClientScenarios{Transport: transport.NameStdio, Scenarios: []string{scenario}, Launch: byHand(func(send func(string), beside func(func())) func(*wire.Message) bool {
		return func(m *wire.Message) (leaves bool) {
			switch {
			case m.Method == "ping":
				beside(func() {
					if m.ID.Key() == `"old-version"` {
						time.Sleep(latest)
					}
					send(pong(m.ID))
				})
			case m.ID.Key() == "1":
				send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			case m.ID.Key() == "2":
				return true
			}
			return false
		}
	})}, suites.Options{Timeout: 40 * time.Second})
	if q := requirement(t, run, id); len(q.Notes) == 0 {
		t.Errorf("%s has no note that the ping was served; it is %s: %s", id, q.Verdict, q.Reason)
	}
}

// TestPingsBehindOwnRequests runs a client that answers pings only when it has the answers to its own requests: that
// is held against it, and not what it did not answer in between.
func TestPingsBehindOwnRequests(t *testing.T) {
	const id = "ping.response-prompt"
	run := conducted(t, suites.ClientScenarios{Transport: transport.NameStdio, Scenarios: []string{"exchange/requests", "hostile/*"}, Launch: byHand(func(send func(string), _ func(func())) func(*wire.Message) bool {
		var pings []wire.ID
		return func(m *wire.Message) (leaves bool) {
			if m.Method == "ping" {
				pings = append(pings, m.ID)
			}
			if !m.IsResponse() {
				return false
			}
			for _, ping := range pings {
				send(pong(ping))
			}
			pings = nil
			switch m.ID.Key() {
			case "1":
				send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
			case "2":
				send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
			case "3":
				return true
			}
			return false
		}
	})}, suites.Options{})
	if q := requirement(t, run, id); q.Verdict != result.Fail {
		t.Errorf("%s is %s: %s", id, q.Verdict, q.Reason)
	}
	if q := requirement(t, run, "base.error.parse-survive"); len(q.Findings) > 0 {
		t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
	}
}

// latest is how long after another answer one comes.
const latest = 100 * time.Millisecond
