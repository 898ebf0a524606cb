package check_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/match"
)

func engine(timeout time.Duration) *check.Engine {
	return &check.Engine{Options: check.Options{Revision: schema.Default(),
		Dialer:  &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(server.Options{}).RunStdio}},
		Trace:   wire.NewTrace(wire.DefaultLimits),
		Timeout: timeout,
	}}
}

// run runs one check and returns its outcome.
func run(t *testing.T, c check.Check) check.Outcome {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	e := engine(time.Minute)
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Name, c.Requirements = "a/check", []string{"a.first", "a.second"}
	o := e.Start(t.Context(), []*check.Check{&c}, nil)[0].Await()
	e.Finish(t.Context())
	return o
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		needs   check.Needs
		body    func(t *check.T)
		verdict check.Verdict
		reason  string // part of it, or of the first finding
	}{
		{"passes", check.Needs{}, func(t *check.T) { t.Fence() }, check.Passed, ""},
		{"passes alone", check.Needs{Session: check.Fresh}, func(t *check.T) { t.Fence() }, check.Passed, ""},
		{"passes raw", check.Needs{Session: check.Raw}, func(t *check.T) { t.Expect(t.Mark()).To(gomega.Equal(1)) }, check.Passed, ""},
		{"another transport", check.Needs{Transports: []string{"http"}}, nil, check.Skipped, "another transport"},
		{"a capability", check.Needs{Server: "tools.listChanged"}, func(*check.T) {}, check.Passed, ""},
		{"no capability", check.Needs{Server: "experimental"}, nil, check.Skipped, "the server does not declare experimental"},
		{"skips", check.Needs{}, func(t *check.T) { t.Skip("because of %d", 7) }, check.Skipped, "because of 7"},
		{"cannot tell", check.Needs{}, func(t *check.T) { t.Inconclusive("no tool") }, check.Inconclusive, "no tool"},
		{"fails", check.Needs{}, func(t *check.T) { t.Fence(); t.Fail("it is %s", "bad"); panic("it goes on") }, check.Failed, "it is bad"},
		{"expects", check.Needs{}, func(t *check.T) { t.Expect(1).To(gomega.Equal(2)) }, check.Failed, "to equal"},
		{"warns and goes on", check.Needs{}, func(t *check.T) { t.Warning("a.second", "odd"); t.Fence() }, check.Failed, "odd"},
		{"what was found stays found", check.Needs{}, func(t *check.T) { t.Violation("a.second", "bad"); t.Skip("never mind") }, check.Failed, "bad"},
		{"panics", check.Needs{}, func(*check.T) { panic("out of luck") }, check.Broken, "out of luck"},
		{"expects an error code", check.Needs{}, func(t *check.T) {
			x := t.Call("no/such/method", nil)
			t.Expect(x).To(match.HaveErrorCode(-32601))
			t.Expect(x).To(match.HaveErrorCode(-1))
		}, check.Failed, "not with error -1"},
		{"expects a result", check.Needs{}, func(t *check.T) { t.Expect(t.Call("no/such/method", nil)).To(match.HaveResult()) }, check.Failed, "with error -32601"},
		{"opens another session", check.Needs{}, func(t *check.T) { t.FenceOn(t.Open(client.Options{})) }, check.Passed, ""},
	} {
		o := run(t, check.Check{Needs: c.needs, Body: c.body})
		said := o.Reason
		if len(o.Record.Findings()) > 0 {
			said = o.Record.Findings()[0].Message
			if len(o.Record.Findings()[0].Evidence) == 0 {
				t.Errorf("%s: a finding without evidence", c.name)
			}
		}
		if o.Verdict != c.verdict || !strings.Contains(said, c.reason) {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, o.Verdict, said, c.verdict, c.reason)
		}
		for _, id := range []string{"a.first", "a.second"} {
			seen := o.Record[ledger.Key{Requirement: id, Party: wire.Server}]
			if satisfied := seen != nil && seen.Exercised > 0 && len(seen.Findings) == 0; satisfied != (c.verdict == check.Passed) {
				t.Errorf("%s: %s is exercised: %v", c.name, id, satisfied)
			}
		}
	}
}

func TestCauseStopsAll(t *testing.T) {
	e := engine(time.Minute)
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	never := &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Body: func(*check.T) { panic("it is run") }}
	for _, f := range e.Start(t.Context(), []*check.Check{never, never}, errors.New("the reason")) {
		if o := f.Await(); o.Verdict != check.Inconclusive || o.Reason != "the reason" {
			t.Errorf("%v, %q", o.Verdict, o.Reason)
		}
	}
	e.Finish(t.Context())
	goleak.VerifyNone(t)
}

// Without an answer in the shared session a check is run again in one of its
// own: another check may have been the cause.
func TestAgainAlone(t *testing.T) {
	e := engine(time.Minute)
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	spoiled := &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Body: func(t *check.T) {
		if runs.Add(1) == 1 {
			t.Must(&client.TimeoutError{Awaited: "answer"})
		}
		t.Fence()
	}}
	always := &check.Check{Name: "a/c", Requirements: []string{"a.c"}, Body: func(t *check.T) {
		t.Must(&client.ClosedError{Awaited: "answer"})
	}}
	futures := e.Start(t.Context(), []*check.Check{spoiled, always}, nil)
	if o := futures[0].Await(); o.Verdict != check.Passed || runs.Load() != 2 {
		t.Errorf("%v after %d runs: %q", o.Verdict, runs.Load(), o.Reason)
	}
	if o := futures[1].Await(); o.Verdict != check.Failed || len(o.Record.Findings()) != 1 {
		t.Errorf("%v: %+v", o.Verdict, o.Record.Findings())
	}
	if err := e.Alive(t.Context()); err != nil {
		t.Error(err)
	}
	e.Finish(t.Context())
	goleak.VerifyNone(t)
}

// TestOneSession tests that a check is to blame for a refused session only if the server would have opened a plain
// one.
func TestOneSession(t *testing.T) {
	for name, c := range map[string]struct {
		refuses func(sessions int32, r *server.Request) bool
		verdict check.Verdict
	}{
		"one client at a time": {func(n int32, _ *server.Request) bool { return n > 1 }, check.Inconclusive},
		"an experiment": {func(_ int32, r *server.Request) bool {
			return wire.At(r.Params["capabilities"], "experimental") != nil
		}, check.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			var sessions atomic.Int32
			o := server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{
				"initialize": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					if c.refuses(sessions.Add(1), r) {
						return nil, &wire.Error{Code: -32600, Message: "already initialized"}
					}
					return next(ctx, r)
				},
			}}}
			e := engine(time.Minute)
			e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "reference", Run: server.New(o).RunStdio}}
			if _, err := e.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			experiment := &check.Check{
				Name: "a/b", Requirements: []string{"a.b"},
				Needs: check.Needs{Session: check.Raw, Options: client.Options{Capabilities: map[string]any{"experimental": map[string]any{}}}},
				Body:  func(t *check.T) { t.Expect(t.Call("initialize", t.Session.InitializeParams())).To(match.HaveResult()) },
			}
			if o := e.Start(t.Context(), []*check.Check{experiment}, nil)[0].Await(); o.Verdict != c.verdict {
				t.Errorf("%v: %q %+v", o.Verdict, o.Reason, o.Record.Findings())
			}
			e.Finish(t.Context())
			goleak.VerifyNone(t)
		})
	}
}

func TestInterruptedRun(t *testing.T) {
	e := engine(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := e.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	waits := func(t *check.T) {
		cancel()
		_, err := t.Session.AwaitNotification(t.Context, t.Mark(), "never")
		t.Must(err)
	}
	var checks []*check.Check
	for _, s := range []check.Session{check.Shared, check.Fresh, check.Raw} {
		for range 20 {
			checks = append(checks, &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: s}, Body: waits})
		}
	}
	for _, f := range e.Start(ctx, checks, nil) {
		if o := f.Await(); o.Verdict != check.Inconclusive {
			t.Errorf("%v: %q %+v", o.Verdict, o.Reason, o.Record.Findings())
		}
	}
	e.Finish(ctx)
	goleak.VerifyNone(t)
}

// A check that waits for this and that is ended all the same.
func TestCheckTime(t *testing.T) {
	e := engine(100 * time.Millisecond)
	if _, err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	endless := &check.Check{Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Fresh}, Body: func(t *check.T) {
		for {
			_, err := t.Session.AwaitNotification(t.Context, t.Mark(), "never")
			if t.Context.Err() != nil {
				t.Must(err)
			}
		}
	}}
	if o := e.Start(t.Context(), []*check.Check{endless}, nil)[0].Await(); o.Verdict != check.Inconclusive || o.Reason != "the check took too long; if it may take longer, raise --timeout" {
		t.Errorf("%v: %q", o.Verdict, o.Reason)
	}
	e.Finish(t.Context())
	goleak.VerifyNone(t)
}

func TestNoTarget(t *testing.T) {
	e := engine(time.Minute)
	e.Dialer = &transport.Stdio{Launcher: transport.Command{Args: []string{"mcpconform-no-such-command"}}}
	target, err := e.Prepare(t.Context())
	var start *transport.StartError
	if target == nil || !errors.As(err, &start) {
		t.Errorf("Prepare = %v, %v", target, err)
	}
	if e.Alive(t.Context()) == nil {
		t.Error("the target counts as alive")
	}
	e.Finish(t.Context())
}

// TestInterruptedBeforeItBegins: a run may end before it has opened a connection.
func TestInterruptedBeforeItBegins(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := engine(time.Minute)
	_, cause := e.Prepare(ctx)
	if cause == nil {
		t.Error("it was prepared")
	}
	c := check.Check{Name: "a/check", Requirements: []string{"a.first"}, Body: func(*check.T) {}}
	o := e.Start(ctx, []*check.Check{&c}, cause)[0].Await()
	e.Finish(ctx)
	if o.Verdict != check.Inconclusive {
		t.Errorf("it is %s: %s", o.Verdict, o.Reason)
	}
}
