package check_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// TestLearnedLimit tests requests that give a server nothing to do. It answers them as quickly as before, or not at
// all, which shows long before the time limit. The silence counts once it has shown twice, and the limits of both
// tries pass at the same time.
func TestLearnedLimit(t *testing.T) {
	for name, c := range map[string]struct {
		silent  int32 // connections in which the server falls silent
		brief   bool
		verdict check.Verdict
		timeout bool // one is in the log
		within  time.Duration
	}{
		"never":                 {0, true, check.Passed, false, time.Second},
		"once":                  {1, true, check.Passed, false, time.Second},
		"always":                {10, true, check.Failed, true, 1600 * time.Millisecond},
		"and may take its time": {10, false, check.Failed, true, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				var fell atomic.Int32
				e := scripted(`{}`, func() func(m *wire.Message) string {
					silent := false
					return func(m *wire.Message) string {
						if m.Method == "notifications/stop-answering" {
							silent = fell.Add(1) <= c.silent
						}
						if silent || m.Kind != wire.Request {
							return ""
						}
						return resultFor(m.ID, `{}`)
					}
				})
				e.Timeout = time.Minute
				if _, err := e.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				o := e.Start(t.Context(), []*check.Check{{
					Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Fresh, Brief: c.brief},
					Body: func(t *check.T) {
						t.Fence()
						t.Notify("notifications/stop-answering", nil)
						t.Fence()
					},
				}}, nil)[0].Await()
				took := time.Since(began)
				e.Finish(t.Context())
				if o.Verdict != c.verdict || took > c.within {
					t.Errorf("%s after %v, not %s within %v", o.Verdict, took, c.verdict, c.within)
				}
				timeout := false
				for _, l := range e.Trace.Logs() {
					for _, event := range l.Events() {
						timeout = timeout || event.Kind == wire.KindTimeout
					}
				}
				if timeout != c.timeout {
					t.Errorf("a timeout in the log: %t", timeout)
				}
				if o.Verdict == check.Failed {
					if message := o.Record.Findings()[0].Message; strings.Contains(message, "--timeout") == c.brief {
						t.Error(message)
					}
				}
			})
		})
	}
}

// How long the first process took to start shows how long others may take, on a busy
// machine or with a server that loads for long.
func TestSlowStarts(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var started atomic.Int32
		serve := reticent(`{}`, func(method string) bool { return method == "ping" })
		e := engine(10 * time.Second)
		e.Dialer = &transport.Stdio{Launcher: transport.Func{Name: "slow", Run: func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
			lines := bufio.NewReader(stdin)
			first, err := lines.ReadBytes('\n')
			if err != nil {
				return err
			}
			time.Sleep(time.Duration(20*started.Add(1)) * time.Second) // as if it were loading
			return serve(ctx, io.MultiReader(bytes.NewReader(first), lines), stdout, stderr)
		}}}
		if _, err := e.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := e.Start(t.Context(), []*check.Check{{
			Name: "a/b", Requirements: []string{"a.b"}, Needs: check.Needs{Session: check.Fresh}, Body: func(t *check.T) { t.Fence() },
		}}, nil)[0].Await()
		e.Finish(t.Context())
		if o.Verdict != check.Passed {
			t.Errorf("%s: %s", o.Verdict, o.Reason)
		}
	})
}

// Rather than wait for its turn, a check that needs nothing of its client uses the session of one that can do
// everything.
func TestLentSessions(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		e := engine(time.Minute)
		if _, err := e.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		var checks []*check.Check
		for i := range 5 {
			checks = append(checks, &check.Check{
				Name: fmt.Sprintf("a/%d", i), Requirements: []string{"a"}, Needs: check.Needs{Session: check.Own},
				Body: func(t *check.T) {
					time.Sleep(time.Minute)
					t.Fence()
				},
			})
		}
		checks = append(checks, &check.Check{
			Name: "b", Requirements: []string{"b"}, Needs: check.Needs{Session: check.Own, Options: check.Capable()},
			Body: func(t *check.T) { t.Fence() },
		})
		began := time.Now()
		for _, f := range e.Start(t.Context(), checks, nil) {
			if o := f.Await(); o.Verdict != check.Passed {
				t.Errorf("%s: %s %s", o.Check.Name, o.Verdict, o.Reason)
			}
		}
		took := time.Since(began)
		e.Finish(t.Context())
		if took > 3*time.Minute+10*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := len(e.Trace.Logs()); n > 3 {
			t.Errorf("%d sessions", n)
		}
	})
}

// Checks that can use a session in turn share a few, among them those that other checks
// have opened for themselves.
func TestFewSessions(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		e := engine(time.Minute)
		if _, err := e.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		opens := func(t *check.T) {
			t.Call("initialize", t.Session.InitializeParams())
			t.Notify("notifications/initialized", nil)
			t.Fence()
		}
		checks := []*check.Check{
			{Name: "a/raw", Requirements: []string{"a.raw"}, Needs: check.Needs{Session: check.Raw}, Body: opens},
			{Name: "a/capable", Requirements: []string{"a.capable"}, Needs: check.Needs{Session: check.Raw, Options: check.Capable()}, Body: opens},
		}
		for i := range 40 {
			needs := check.Needs{Session: check.Own}
			if i%2 == 0 {
				needs.Options = check.Capable()
			}
			checks = append(checks, &check.Check{
				Name: fmt.Sprintf("b/%d", i), Requirements: []string{"b"}, Needs: needs,
				Body: func(t *check.T) {
					mark := t.Mark()
					time.Sleep(time.Second)
					t.Fence()
					if n := len(t.Since(mark)); n != 1 {
						t.Fail("%d messages came, not one", n)
					}
				},
			})
		}
		for _, f := range e.Start(t.Context(), checks, nil) {
			if o := f.Await(); o.Verdict != check.Passed {
				t.Errorf("%s: %s %s", o.Check.Name, o.Verdict, o.Reason)
			}
		}
		e.Finish(t.Context())
		if n := len(e.Trace.Logs()); n > 1+2*4 {
			t.Errorf("%d sessions", n)
		}
	})
}
