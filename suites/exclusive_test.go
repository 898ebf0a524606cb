package suites_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/internal/virtual"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A server may run once at a time, as where it locks a file: a process that is started beside another one ends at
// once. It is tried one process after the other, and not accused of those that ended.
func TestProcessesThatExcludeEachOther(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		var running sync.Mutex
		s := server.New(server.Options{})
		dialer := &transport.Stdio{Launcher: transport.Func{Name: "exclusive", Run: func(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
			if !running.TryLock() {
				return nil
			}
			defer running.Unlock()
			return s.RunStdio(ctx, in, out, stderr)
		}}}
		run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
		passed := make(map[string]bool)
		for _, q := range run.Requirements {
			passed[q.ID] = q.Verdict == result.Pass
			if len(q.Findings) > 0 {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Findings[0].Message)
			}
		}
		for _, id := range []string{"lifecycle.version.offer-other", "lifecycle.capability.client-experimental", "ping.response-prompt", "lifecycle.shutdown.stdio-server-exits"} {
			if !passed[id] {
				t.Errorf("%s has not passed", id)
			}
		}
	})
}
