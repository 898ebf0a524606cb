package suites_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// counting counts the connections that are dialled.
type counting struct {
	transport.Dialer
	n *atomic.Int32
}

func (c counting) Dial(ctx context.Context, log *wire.Log) (transport.Conn, error) {
	c.n.Add(1)
	return c.Dialer.Dial(ctx, log)
}

// TestSelectionCostsWhatItSelects: requirements that rules and discovery judge cost one session. Requirements that a
// sequence may find broken cost one more. Checks with sessions of their own cost these. Over HTTP checks share a
// second one.
func TestSelectionCostsWhatItSelects(t *testing.T) {
	brief.WholeRuns(t)
	for _, tt := range []struct {
		selected string
		over     string // "": either
		most     int
	}{
		{"ping.either-side", transport.NameStdio, 3}, // one of them is for a sequence, which begins with a new session
		{"ping.either-side", transport.NameHTTP, 4},
		{"ping", transport.NameStdio, 4}, // one before the handshake is complete, and one for a client without capabilities
		{"ping", transport.NameHTTP, 5},
		{"tools.name.unique", "", 1},
		{"schema.list-tools-result", "", 1},
		{"base.json.well-formed", "", 1},
		{"lifecycle.init.answered", "", 1},
		{"base.error.method-not-found", "", 1},
		{"prompts.list.answered", transport.NameStdio, 3},
		{"prompts.list.answered", transport.NameHTTP, 4},
		{"http.server.version-header-missing", transport.NameHTTP, 2},
		{"progress.value-increases", transport.NameStdio, 5}, // discovery shows no progress
		{"progress.value-increases", transport.NameHTTP, 9},  // and sessions are told apart by their progress
	} {
		for _, over := range []string{transport.NameHTTP, transport.NameStdio} {
			if tt.over != "" && tt.over != over {
				continue
			}
			t.Run(tt.selected+" over "+over, inVirtualTime(func(t *testing.T) {
				dialer, stop, err := serve(t.Context(), over, serverOptions())
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				n := new(atomic.Int32)
				run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: counting{dialer, n}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}},
					suites.Options{Selection: suites.Selection{Select: []string{tt.selected}}})
				if err != nil {
					t.Fatal(err)
				}
				if got := int(n.Load()); got > tt.most {
					var labels []string
					for _, l := range trace.Logs() {
						labels = append(labels, l.Label)
					}
					t.Errorf("it takes %d connections: %q", got, labels)
				}
				for _, q := range run.Requirements {
					if q.Verdict != result.Pass && q.Verdict != result.Skip {
						t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
					}
				}
			}))
		}
	}
}

// TestProcessThatDies: a process that ends at the message of one check takes with it the checks that share it. They
// take turns in the running processes, and only that check has findings.
func TestProcessThatDies(t *testing.T) {
	brief.WholeRuns(t)
	costs := func(t *testing.T, quit func(n int, line []byte) bool) (connections int, failed []string) {
		t.Helper()
		o := serverOptions()
		o.Behaviour.Stdio.Quit = quit
		dialer, stop, err := serve(t.Context(), transport.NameStdio, o)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		n := new(atomic.Int32)
		run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: counting{dialer, n}, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range run.Requirements {
			if q.Verdict == result.Fail || q.Verdict == result.Warn || q.Verdict == result.Error {
				failed = append(failed, q.ID)
			}
		}
		return int(n.Load()), failed
	}
	inVirtualTime(func(t *testing.T) {
		whole, failed := costs(t, nil)
		if len(failed) > 0 {
			t.Errorf("%q are at fault", failed)
		}
		dying, failed := costs(t, func(_ int, line []byte) bool { return bytes.HasSuffix(line, []byte("} \t")) })
		if want := []string{"base.json.any-spelling"}; !slices.Equal(failed, want) {
			t.Errorf("%q are at fault, want %q", failed, want)
		}
		const more = 8
		if dying > whole+more {
			t.Errorf("it takes %d connections, and %d where the process goes on", dying, whole)
		}
	})(t)
}

// TestFewSlowProcesses: a server whose process takes its time to start gets about a dozen of them, however many
// checks there are.
func TestFewSlowProcesses(t *testing.T) {
	brief.WholeRuns(t)
	const most = 14
	inVirtualTime(func(t *testing.T) {
		n := new(atomic.Int32)
		dialer := &transport.Stdio{Launcher: transport.Func{Name: "slow to start", Run: func(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
			n.Add(1)
			time.Sleep(400 * time.Millisecond)
			return server.New(serverOptions()).RunStdio(ctx, in, out, stderr)
		}}}
		run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n.Load() > most {
			var labels []string
			for _, l := range trace.Logs() {
				labels = append(labels, l.Label)
			}
			t.Errorf("it takes %d processes: %q", n.Load(), labels)
		}
		if run.Verdict != result.Conformant {
			t.Errorf("%s: %s", run.Verdict, run.Reason)
		}
	})(t)
}

// TestSelectionCostsWhatItSelectsOfClients: the same in launches of a client.
func TestSelectionCostsWhatItSelectsOfClients(t *testing.T) {
	for _, tt := range []struct {
		selected string
		most     int
	}{
		{"lifecycle.init.request-client-info", 2}, // a second session begins otherwise in some clients
		{"base.request.id-type", 1},
		{"base.request.id-unique", 1},
		{"schema.initialize-request", 1},
		{"roots.list.answered", 3}, // a sequence may show it broken as well
	} {
		t.Run(tt.selected, inVirtualTime(func(t *testing.T) {
			var n atomic.Int32
			if err := (suites.Selection{Select: []string{tt.selected}}).Validate(schema.Default(), wire.Client); err != nil {
				t.Fatal(err)
			}
			run, _, err := suites.Run(t.Context(), suites.ClientScenarios{Network: new(memory.Network), Launch: func(p client.Endpoint) (transport.Process, error) {
				n.Add(1)
				return suites.ReferenceClient(p, 3*time.Second).Launch()
			}}, suites.Options{Selection: suites.Selection{Select: []string{tt.selected}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := int(n.Load()); got > tt.most {
				t.Errorf("it takes %d launches", got)
			}
			for _, q := range run.Requirements {
				if q.Verdict != result.Pass {
					t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
				}
			}
		}))
	}
}

// TestLatentServer bounds how often a run waits for a server that is far away: what needs no
// order is sent side by side, and what takes many exchanges is begun early.
func TestLatentServer(t *testing.T) {
	brief.WholeRuns(t)
	const latency, most = 200 * time.Millisecond, 230 // exchanges one after the other; sessions that stand by wait for all else
	for _, over := range []string{transport.NameHTTP, transport.NameSSE} {
		t.Run(over, inVirtualTime(func(t *testing.T) {
			o := serverOptions()
			o.Behaviour.Inbound = func(raw []byte) []byte {
				time.Sleep(latency)
				return raw
			}
			dialer, stop, err := serve(t.Context(), over, o)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			began := time.Now()
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("it takes %v, as long as %d exchanges", took, took/latency)
			if took > most*latency {
				t.Errorf("that is longer than %d exchanges", most)
			}
			if run.Verdict != result.Conformant {
				t.Errorf("%s: %s", run.Verdict, run.Reason)
			}
		}))
	}
}

// TestStreamsNoticedLate bounds what a server costs that writes to a stream for two seconds after the client has closed
// it. What it sent there is not missing, so that no check waits for it.
func TestStreamsNoticedLate(t *testing.T) {
	brief.WholeRuns(t)
	const late = "http.close-noticed-late"
	took := func(id string) (took time.Duration) {
		virtual.Test(t, func(t *testing.T) {
			o := serverOptions()
			for _, odd := range oddserver.Oddities() {
				if odd.ID == id {
					odd.Apply(&o)
				}
			}
			dialer, stop, err := serve(t.Context(), transport.NameHTTP, o)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			began := time.Now()
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer,
				Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles}}, suites.Options{})
			if err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
			if run.Verdict != result.Conformant {
				t.Errorf("%s: %s", run.Verdict, run.Reason)
			}
		})
		return took
	}
	ordinary, odd := took(""), took(late)
	t.Logf("%v with the oddity, %v without it", odd, ordinary)
	if odd > ordinary+5*time.Second {
		t.Errorf("a run takes %v with the oddity %s, and %v without it", odd, late, ordinary)
	}
}

// TestHangingServer bounds what a server costs that from some message on answers nothing any more, or nothing but
// initialize, in any session: two time limits, or less than three, beside what it took until then and the end of the
// sessions.
func TestHangingServer(t *testing.T) {
	brief.WholeRuns(t)
	for _, over := range []string{transport.NameHTTP, transport.NameSSE, transport.NameStdio} {
		for _, answers := range []string{"nothing", "initialize"} {
			for _, served := range []int32{5, 12, 60, 300} {
				t.Run(fmt.Sprintf("%s after %d answers %s", over, served, answers), inVirtualTime(func(t *testing.T) {
					o := serverOptions()
					var received atomic.Int32
					ended := make(chan struct{})
					o.Behaviour.Inbound = func(raw []byte) []byte {
						n := received.Add(1)
						time.Sleep(time.Duration(n%7) * 10 * time.Millisecond) // what is asked at once is not answered at once
						switch {
						case n <= served, answers == "initialize" && bytes.Contains(raw, []byte(`"initialize"`)):
							return raw
						case over == transport.NameStdio: // what blocks there could not be ended
							return []byte(`{"jsonrpc":"2.0","method":"notifications/unanswered"}`)
						}
						<-ended
						return raw
					}
					dialer, stop, err := serve(t.Context(), over, o)
					if err != nil {
						t.Fatal(err)
					}
					defer stop()
					defer close(ended)
					hanging(t, dialer)
				}))
			}
		}
	}
}

// hanging judges a server that hangs, and expects that to cost three time limits at most.
func hanging(t *testing.T, dialer transport.Dialer) *result.Run {
	t.Helper()
	const timeout, most = reference.DefaultTimeout, 3 * reference.DefaultTimeout
	began := time.Now()
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: dialer}, suites.Options{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > most {
		t.Errorf("it takes %v, %.1f time limits", took, float64(took)/float64(timeout))
	}
	if run.Verdict == result.Conformant {
		t.Errorf("%s: %s", run.Verdict, run.Reason)
	}
	return run
}

// TestWearingProcesses: each process answers only so much, and the next one begins anew.
func TestWearingProcesses(t *testing.T) {
	brief.WholeRuns(t)
	for _, served := range []int32{3, 4, 5, 12, 60, 300} {
		t.Run(fmt.Sprintf("after %d messages", served), inVirtualTime(func(t *testing.T) {
			run := hanging(t, &transport.Stdio{Launcher: transport.Func{Name: "wearing", Run: func(ctx context.Context, in io.Reader, out, stderr io.Writer) error {
				o := serverOptions()
				var received atomic.Int32
				o.Behaviour.Inbound = func(raw []byte) []byte {
					if received.Add(1) <= served {
						return raw
					}
					return []byte(`{"jsonrpc":"2.0","method":"notifications/unanswered"}`)
				}
				return server.New(o).RunStdio(ctx, in, out, stderr)
			}}})
			const id = "base.response.present"
			i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == id })
			if !slices.ContainsFunc(run.Requirements[i].Findings, func(f result.Finding) bool { return strings.Contains(f.Message, "to a process beyond the first") }) {
				t.Errorf("%s is %s: %v", id, run.Requirements[i].Verdict, run.Requirements[i].Findings)
			}
			for _, q := range run.Requirements {
				if q.Verdict == result.Fail && q.ID != id {
					t.Errorf("%s fails: %s", q.ID, q.Findings[0].Message)
				}
			}
		}))
	}
}
