package suites_test

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// bridge dials a server through a program that passes lines on, and ends with its own words
// and a failure, which are no fault of the server.
func bridge(o server.Options) transport.Dialer {
	return &transport.Stdio{Bridge: true, Launcher: transport.Func{Name: "bridge", Run: func(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
		_, _ = io.WriteString(stderr, "{\"connected\": true}\n")
		if err := server.New(o).RunCustom(ctx, in, out); err != nil {
			return err
		}
		return &server.ExitError{Code: 3}
	}}}
}

// overCustom runs the suite against a server over WebSocket, or behind a bridge.
func overCustom(t *testing.T, bridged bool, o server.Options) (run *result.Run) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		var err error
		if !bridged {
			run, err = conduct(t.Context(), 0, transport.NameCustom, o)
		} else {
			s := suites.ServerChecks{Dialer: bridge(o), Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}
			run, _, err = suites.Run(t.Context(), s, suites.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return run
}

// A server over a transport of its own is judged as any other, without the rules of the
// transports that the specification defines.
func TestCustomTransport(t *testing.T) {
	for name, bridged := range map[string]bool{"websocket": false, "bridge": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := overCustom(t, bridged, serverOptions())
			if exonerated(t, run) < 200 || run.Verdict != result.Conformant || run.Transport != "custom" {
				t.Errorf("over %s the verdict is %s: %s; %v", run.Transport, run.Verdict, run.Reason, run.Counts())
			}
			for _, q := range run.Requirements {
				if r, _ := schema.Default().Lookup(q.ID); len(r.Transports) > 0 && q.Verdict != result.Skip {
					t.Errorf("%s is about %v, and is %s", q.ID, r.Transports, q.Verdict)
				}
			}
			for _, id := range []string{"lifecycle.init.answered", "base.response.id-echo", "base.error.parse-survive", "cancellation.stop-processing"} {
				if q := verdictOn(t, run, id); q.Verdict != result.Pass {
					t.Errorf("%s is %s: %s", id, q.Verdict, q.Reason)
				}
			}
		})
	}
}

// Faults are found over a custom transport as over others.
func TestFaultsOverCustomTransport(t *testing.T) {
	brief.WholeRuns(t)
	for i, id := range []string{
		"ping.silent", "base.id-as-string", "lifecycle.any-version", "tools.change-unannounced", "base.batch-served", "base.log-trailing-comma",
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			faults := mockserver.Catalogue()
			at := slices.IndexFunc(faults, func(f mockserver.Fault) bool { return f.ID == id })
			if at < 0 {
				t.Fatal("there is no such fault")
			}
			o := serverOptions()
			faults[at].Apply(&o)
			run := overCustom(t, i%2 == 0, o)
			if q := verdictOn(t, run, faults[at].Requirement); q.Verdict != result.Fail && q.Verdict != result.Warn {
				t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
			}
		})
	}
}
