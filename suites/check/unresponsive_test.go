package check_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

const silentTimeout = 200 * time.Millisecond

// reticent is a server that answers initialize and the methods that reply
// says so of.
func reticent(capabilities string, reply func(method string) bool) func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	return func(_ context.Context, stdin io.Reader, stdout, _ io.Writer) error {
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			if answer := reticentAnswer(lines.Bytes(), capabilities, reply); answer != "" {
				_, _ = io.WriteString(stdout, answer+"\n")
			}
		}
		return nil
	}
}

func reticentAnswer(raw []byte, capabilities string, reply func(method string) bool) string {
	m := wire.Parse(raw)
	switch {
	case m.Kind != wire.Request:
		return ""
	case m.Method == "initialize":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":%s,"serverInfo":{"name":"s","version":"1"}}}`, m.ID, capabilities)
	case reply(m.Method):
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
	}
	return ""
}

func overStdio(capabilities string, reply func(string) bool) *check.Engine {
	e := engine(silentTimeout)
	e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "reticent", Run: reticent(capabilities, reply)}}
	e.Parallel = 4
	return e
}

func overHTTP(t *testing.T, capabilities string, reply func(string) bool, refused ...string) *check.Engine {
	t.Helper()
	gone := make(chan struct{})
	s, at := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		switch answer := reticentAnswer(raw, capabilities, reply); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case answer != "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		case slices.Contains(refused, wire.Parse(raw).Method):
			w.WriteHeader(http.StatusNotFound)
		case wire.Parse(raw).Kind != wire.Request:
			w.WriteHeader(http.StatusAccepted)
		default:
			select {
			case <-gone:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(gone) })
	e := engine(silentTimeout)
	e.Dialer = &transport.HTTP{Endpoint: at}
	e.Parallel = 4
	return e
}

// serving serves a handler in a network of its own, so that it can be tried in virtual time.
func serving(t *testing.T, h http.Handler) (*httptest.Server, transport.Endpoint) {
	t.Helper()
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close() // the one of the machine's network
	s.Listener = l
	s.Start()
	return s, transport.Endpoint{URL: s.URL, Dial: network.Dial, Timeout: silentTimeout}
}

// pings returns checks that send a ping, in sessions of every kind, and how
// many of them have begun.
func pings(n int) (checks []*check.Check, begun *atomic.Int32) {
	begun = new(atomic.Int32)
	for i := range n {
		checks = append(checks, &check.Check{
			Name: fmt.Sprintf("ping/%d", i), Requirements: []string{"ping"}, Needs: check.Needs{Session: check.Session(i % 3)},
			Body: func(t *check.T) {
				begun.Add(1)
				t.Call("ping", nil)
			},
		})
	}
	return checks, begun
}

// virtually runs a part of a test in virtual time.
func virtually(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { virtual.Test(t, test) })
}

func never(string) bool { return false }

// A server that answers no list and no ping is unresponsive: no check begins.
func TestUnresponsiveAfterHandshake(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *check.Engine{
		"stdio": func(*testing.T) *check.Engine { return overStdio(`{"tools":{},"resources":{},"prompts":{}}`, never) },
		"http": func(t *testing.T) *check.Engine {
			return overHTTP(t, `{"tools":{},"resources":{},"prompts":{}}`, never)
		},
	} {
		virtually(t, name, func(t *testing.T) {
			e := start(t)
			_, err := e.Prepare(t.Context())
			var silent *check.UnresponsiveError
			if !errors.As(err, &silent) || !strings.Contains(err.Error(), "after the handshake: there was no answer to tools/list, ping,") {
				t.Errorf("Prepare: %v", err)
			}
			if !errors.As(e.Alive(t.Context()), &silent) {
				t.Error("the target is asked again")
			}
			e.Finish(t.Context())
		})
	}
}

// A server that answers no list is not unresponsive if it answers something else.
func TestReticentIsNotUnresponsive(t *testing.T) {
	for _, only := range []string{"ping", "prompts/list", "tools/list"} {
		virtually(t, only, func(t *testing.T) {
			e := overStdio(`{"tools":{},"resources":{},"prompts":{}}`, func(method string) bool { return method == only })
			target, err := e.Prepare(t.Context())
			if err != nil {
				t.Errorf("with an answer to %s: %v", only, err)
			}
			if only != "ping" && target.List(only).Err != nil {
				t.Errorf("%s was not read: %v", only, target.List(only).Err)
			}
			e.Finish(t.Context())
		})
	}
}

// A server that becomes unresponsive costs a few time limits, however many checks
// there are, and none of them blames its own requirement.
func TestBecomesUnresponsive(t *testing.T) {
	const many = 300
	for name, start := range map[string]func(t *testing.T) *check.Engine{
		"stdio": func(*testing.T) *check.Engine { return overStdio(`{}`, never) },
		"http":  func(t *testing.T) *check.Engine { return overHTTP(t, `{}`, never) },
		// A front end that refuses notifications need not ask the server that hangs.
		"http, notifications refused": func(t *testing.T) *check.Engine { return overHTTP(t, `{}`, never, "notifications/cancelled") },
	} {
		virtually(t, name, func(t *testing.T) {
			e := start(t)
			if _, err := e.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			checks, begun := pings(many)
			for _, f := range e.Start(t.Context(), checks, nil) {
				if o := f.Await(); o.Verdict != check.Inconclusive || !strings.Contains(o.Reason, "answers no request any more: there was no answer to ") {
					t.Errorf("%s is %v: %q %+v", o.Check.Name, o.Verdict, o.Reason, o.Record.Findings())
				}
			}
			e.Finish(t.Context())
			if e.GivenUp() == nil {
				t.Error("the engine has not noticed")
			}
			// The first of each session, those repeated alone, those begun meanwhile.
			if n := begun.Load(); n > many/5 {
				t.Errorf("%d checks were begun", n)
			}
		})
	}
}

// TestUnansweredIsNotUnresponsive tests checks without an answer, from a server that answers other checks: their
// findings stay.
func TestUnansweredIsNotUnresponsive(t *testing.T) { virtual.Test(t, unansweredIsNotUnresponsive) }

func unansweredIsNotUnresponsive(t *testing.T) {
	e := overStdio(`{"tools":{}}`, func(method string) bool { return method == "tools/list" })
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	checks, begun := pings(12)
	for _, f := range e.Start(t.Context(), checks, nil) {
		if o := f.Await(); o.Verdict != check.Failed {
			t.Errorf("%s is %v: %s", o.Check.Name, o.Verdict, o.Reason)
		}
	}
	if e.GivenUp() != nil || begun.Load() < 12 {
		t.Errorf("%v after %d checks", e.GivenUp(), begun.Load())
	}
	e.Finish(t.Context())
}

// A server that answers one request after the other may have a tool that takes nearly two time limits: what waits
// behind it is answered then.
func TestSlowToolIsNotUnresponsive(t *testing.T) { virtual.Test(t, slowToolIsNotUnresponsive) }

func slowToolIsNotUnresponsive(t *testing.T) {
	one := make(chan struct{}, 1)
	e := overHTTP(t, `{"tools":{}}`, func(method string) bool {
		one <- struct{}{}
		defer func() { <-one }()
		if method == "tools/call" {
			time.Sleep(silentTimeout * 7 / 4)
		}
		return true
	})
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	checks, _ := pings(6)
	slow := &check.Check{Name: "slow", Requirements: []string{"x"}, Needs: check.Needs{Session: check.Fresh, Lane: check.Waiting}, Body: func(t *check.T) {
		t.Attempt(map[string]any{"name": "slow"})
	}}
	for _, f := range e.Start(t.Context(), append([]*check.Check{slow}, checks...), nil) {
		if o := f.Await(); o.Verdict != check.Passed {
			t.Errorf("%s is %v: %s %+v", o.Check.Name, o.Verdict, o.Reason, o.Record.Findings())
		}
	}
	if err := e.Alive(t.Context()); err != nil || e.GivenUp() != nil {
		t.Errorf("%v, %v", err, e.GivenUp())
	}
	e.Finish(t.Context())
}

// A session that answers nothing any more says nothing of the others.
func TestDeafSessionIsNotUnresponsive(t *testing.T) { virtual.Test(t, deafSessionIsNotUnresponsive) }

func deafSessionIsNotUnresponsive(t *testing.T) {
	e := overHTTP(t, `{"tools":{}}`, func(method string) bool { return method != "mcpconform/deafen" })
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	deafens := &check.Check{Name: "deafens", Requirements: []string{"x"}, Needs: check.Needs{Session: check.Fresh}, Body: func(t *check.T) {
		t.Call("mcpconform/deafen", nil)
	}}
	if o := e.Start(t.Context(), []*check.Check{deafens}, nil)[0].Await(); o.Verdict != check.Failed {
		t.Errorf("%v: %s", o.Verdict, o.Reason)
	}
	if err := e.Alive(t.Context()); err != nil || e.GivenUp() != nil {
		t.Errorf("%v, %v", err, e.GivenUp())
	}
	e.Finish(t.Context())
}

// A server over HTTP that becomes unresponsive is started again, and the run goes on.
func TestUnresponsiveServerIsRestarted(t *testing.T) { virtual.Test(t, unresponsiveServerIsRestarted) }

func unresponsiveServerIsRestarted(t *testing.T) {
	var broken atomic.Bool
	var once sync.Once
	first := make(chan struct{})
	e := overHTTP(t, `{"tools":{}}`, func(method string) bool {
		if method == "mcpconform/break" {
			broken.Store(true)
			once.Do(func() { close(first) })
		}
		return !broken.Load()
	})
	e.Restart = func(context.Context) error { broken.Store(false); return nil }
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	checks, _ := pings(12)
	for _, c := range checks {
		ping := c.Body
		c.Body = func(t *check.T) {
			<-first // none of them comes before it is broken
			ping(t)
		}
	}
	breaks := &check.Check{Name: "break", Requirements: []string{"x"}, Needs: check.Needs{Session: check.Fresh, Lane: check.Waiting}, Body: func(t *check.T) {
		t.Call("mcpconform/break", nil)
	}}
	futures := e.Start(t.Context(), append([]*check.Check{breaks}, checks...), nil)
	for i, f := range futures {
		o := f.Await()
		if want := map[bool]check.Verdict{true: check.Failed, false: check.Passed}[i == 0]; o.Verdict != want {
			t.Errorf("%s is %v, not %v: %s", o.Check.Name, o.Verdict, want, o.Reason)
		}
	}
	if e.Restarts() == 0 {
		t.Error("it was not started again")
	}
	e.Finish(t.Context())
}

// A check that finds something while the server goes down is run again.
func TestDesertedCheckIsRepeated(t *testing.T) { virtual.Test(t, desertedCheckIsRepeated) }

func desertedCheckIsRepeated(t *testing.T) {
	e := overHTTP(t, `{"tools":{}}`, func(string) bool { return true })
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	blames := &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Fresh}, Body: func(t *check.T) {
		if runs.Add(1) == 1 {
			_, _ = t.Session.Log().Append(wire.Event{
				Kind: wire.KindStreamEnd, From: wire.Server, Stream: "post:9", Note: "connection refused: nothing listens at http://localhost",
			})
			t.Fail("it was the server's fault")
		}
	}}
	if o := e.Start(t.Context(), []*check.Check{blames}, nil)[0].Await(); o.Verdict != check.Passed || runs.Load() != 2 {
		t.Errorf("%v after %d runs: %+v", o.Verdict, runs.Load(), o.Record.Findings())
	}
	e.Finish(t.Context())
}
