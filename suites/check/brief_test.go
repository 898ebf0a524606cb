package check_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/virtual"
)

// What gives a server nothing to do is answered as quickly as before, or not at all:
// that shows long before the time limit, and counts once it has shown twice.
func TestLearnedLimit(t *testing.T) {
	for name, c := range map[string]struct {
		silent  int32 // connections in which the server falls silent
		brief   bool
		verdict check.Verdict
		timeout bool // one is in the log
		within  time.Duration
	}{
		"never":                 {0, true, check.Passed, false, time.Second},
		"once":                  {1, true, check.Passed, false, 3 * time.Second},
		"always":                {10, true, check.Failed, true, 5 * time.Second},
		"and may take its time": {10, false, check.Failed, true, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				var fell atomic.Int32
				e := scripted(`{}`, func() func(m *wire.Message) string {
					silent := false
					return func(m *wire.Message) string {
						if m.Method == "notifications/hush" {
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
						t.Notify("notifications/hush", nil)
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
