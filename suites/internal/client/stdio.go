package client

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var stdioScenarios = []*client.Scenario{
	{
		Name: "stdio/framing", Transports: overStdio(),
		Requirements: []string{ids.StdioMessageCrlfAccepted, ids.StdioMessageSplitWrites,
			ids.StdioMessageSeveralPerWrite, ids.StdioMessageOnlyNewlineDelimits},
		Needs:   "the client did not get through the handshake",
		Options: framing,
		Judge:   judgeFraming,
	},
	{
		Name: "stdio/stderr", Transports: overStdio(), Requirements: []string{ids.StdioClientStderrHandling},
		Needs: "the client did not get through the handshake",
		Options: func(*client.ScenarioRun) server.Options {
			var o server.Options
			o.Behaviour.Stdio.Start = func(_, stderr io.Writer) {
				// This is more than a pipe holds. If the client does not read it, the server blocks.
				for i := range 8000 {
					_, _ = fmt.Fprintf(stderr, "ERROR: line %d of a text that is not an error\n", i)
				}
				_, _ = io.WriteString(stderr, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`+"\n")
			}
			return o
		},
		Judge: goesOn("the server wrote to stderr"),
	},
	{
		Name: "stdio/exits-early", Transports: overStdio(),
		Requirements: []string{ids.LifecycleShutdownStdioServerInitiates},
		Needs:        client.NeedsRequest,
		Options: func(*client.ScenarioRun) server.Options {
			var o server.Options
			o.Behaviour.Breaks = []string{"*"}
			o.Behaviour.Stdio.Quit = func(_ int, line []byte) bool {
				m := wire.Parse(line)
				return m.Kind == wire.Request && client.IsOperation(m.Method)
			}
			return o
		},
		Judge: func(t *client.T) {
			const id = ids.LifecycleShutdownStdioServerInitiates
			switch c := t.Handshake(); {
			case c == nil || len(client.RequestsOf(c)) == 0:
			case t.Ending.Late && t.Baseline.Ending.Exit != nil:
				t.Violation(id, client.TimedOut("the client hangs when the server process ends by itself"),
					client.LastEvents(c, 3)...)
			case t.Died() != "":
				t.Violation(id, "the client "+t.Died()+" when the server process ends by itself",
					client.LastEvents(c, 3)...)
			case t.Ending.Uncaught():
				t.Inconclusive("the client ended with a stack trace when the server process ended by itself, so it "+
					"may have reported that or failed", id)
			default:
				t.Exercised(id)
			}
		},
	},
	{
		Name: "stdio/shutdown", Transports: overStdio(),
		Requirements: []string{ids.LifecycleShutdownStdioCloseStdin, ids.LifecycleShutdownStdioWait},
		Needs:        client.NeedsEnd,
		Judge:        judgeShutdown,
	},
	{
		Name: "stdio/stubborn", Transports: overStdio(),
		Requirements: []string{ids.LifecycleShutdownStdioCloseStdin, ids.LifecycleShutdownStdioWait,
			ids.LifecycleShutdownStdioSigterm, ids.LifecycleShutdownStdioSigkill},
		Needs: client.NeedsEnd,
		Options: func(*client.ScenarioRun) server.Options {
			var o server.Options
			o.Behaviour.Breaks = []string{"*"}
			o.Behaviour.Stdio.Linger = func(*server.Session) bool { return true }
			return o
		},
		Judge: func(t *client.T) {
			judgeShutdown(t)
			judgeStubborn(t)
		},
	},
}

// framing ends its answers with CR LF and writes everything in pieces. Once the
// client has survived a log message, another one comes in the same write as an
// answer.
func framing(run *client.ScenarioRun) server.Options {
	var together atomic.Bool
	o := client.Scripted(func(a *client.Asker) {
		a.Notify("notifications/message", map[string]any{"level": "info", "data": "alone"})
		together.Store(a.Fence("after-message"))
	})(run)
	o.Instructions = "one\u2028two\u2029three\u0085four — ünïcödé"
	o.Behaviour.Stdio.Stdout = func(w io.Writer) io.Writer { return &splitter{to: w} }
	o.Behaviour.Frame = func(out *server.Outgoing, frame []byte) []byte {
		frame = wire.RawSeparators(frame)
		if out.Answers == nil || !client.IsOperation(out.Answers.Method) {
			return frame
		}
		line := append(frame[:len(frame)-1:len(frame)-1], "\r\n"...)
		if together.Load() {
			line = append([]byte(
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"before"}}`+"\n"),
				line...)
		}
		return line
	}
	o.Behaviour.Breaks = []string{"*"} // the log holds two lines as one
	return o
}

func judgeFraming(t *client.T) {
	form := []string{ids.StdioMessageCrlfAccepted, ids.StdioMessageSplitWrites, ids.StdioMessageOnlyNewlineDelimits}
	const several = ids.StdioMessageSeveralPerWrite
	ok, decided, _ := t.Continued()
	switch x, alone := t.Answered("after-message"); {
	case alone:
		t.JudgeContinued("lines came in pieces, together with others, and ended with CR LF", append(form, several)...)
	case x == nil || decided && ok:
		t.JudgeContinued("lines came in pieces and ended with CR LF", form...)
	default:
		t.Inconclusive("the client answers no ping after a log message, even if the message comes in a write of "+
			"its own", append(form, several)...)
	}
}

// splitter writes everything in pieces of an odd size.
type splitter struct{ to io.Writer }

func (s *splitter) Write(p []byte) (int, error) {
	const piece = 1021
	written := 0
	for len(p) > 0 {
		n, err := s.to.Write(p[:min(piece, len(p))])
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// judgeShutdown judges how the client ends the server process (basic/lifecycle#stdio).
func judgeShutdown(t *client.T) {
	const first, wait = ids.LifecycleShutdownStdioCloseStdin, ids.LifecycleShutdownStdioWait
	for _, c := range t.Conversations {
		closed, signalled := stdinEnd(c.Events), firstSignal(c.Events)
		switch {
		case signalled == nil && closed == nil:
		case signalled == nil:
			t.Exercised(first)
			t.Exercised(wait)
		case closed == nil || closed.At-signalled.At >= inOrder:
			t.Violation(first, "the server process got "+signalled.Note+
				" while its stdin was open; the client has to close stdin first", signalled)
		case signalled.At-closed.At < atOnce:
			t.Violation(wait, "the server process got "+signalled.Note+
				" as soon as its stdin was closed; it needs time to exit by itself", closed, signalled)
		case signalled.At-closed.At < inOrder:
			t.Exercised(first)
			t.Inconclusive("the server process got "+signalled.Note+
				" so soon after the end of its stdin that a busy machine may be the reason", wait)
		default:
			t.Exercised(first)
			t.Exercised(wait)
		}
	}
}

// A signal and the end of stdin reach a process in two ways. These times tell how they relate.
const (
	// atOnce is the time within which the end of stdin leaves the server no time to exit before the signal.
	atOnce  = 50 * time.Millisecond
	inOrder = 500 * time.Millisecond // from which they come in the order in which they are seen, on a busy machine too
)

func judgeStubborn(t *client.T) {
	const term, kill = ids.LifecycleShutdownStdioSigterm, ids.LifecycleShutdownStdioSigkill
	if t.Ending.Exit == nil {
		return // the harness stopped it
	}
	for _, c := range t.Conversations {
		closed, signalled := stdinEnd(c.Events), firstSignal(c.Events)
		if closed == nil || !launched(c.Events) {
			continue
		}
		terminated, killed := signalNamed(c.Events, "SIGTERM"), signalNamed(c.Events, "SIGKILL")
		switch {
		case signalled == nil:
			t.Violation(term, "the client left behind a server process that does not exit when its stdin is "+
				"closed; SIGTERM was expected", closed)
		case killed != nil && (terminated == nil || killed.Seq < terminated.Seq):
			t.Violation(term, "the server process got SIGKILL without a SIGTERM before it", closed, signalled, killed)
		case terminated == nil:
			t.Violation(term, "the server process got "+signalled.Note+" and no SIGTERM", closed, signalled)
		default:
			t.Exercised(term)
		}
		t.Check(kill, killed != nil, closed, signalled).
			To(BeTrueBecause("the client %s and left a server process behind that does not exit on SIGTERM; "+
				"SIGKILL was expected", t.Ending.Exit))
	}
}

// launched reports whether the server was a process, to which a signal can be sent.
func launched(events []*wire.Event) bool {
	return slices.ContainsFunc(events, func(e *wire.Event) bool { return e.Kind == wire.KindStart })
}

func stdinEnd(events []*wire.Event) *wire.Event {
	for _, e := range events {
		if e.Kind == wire.KindClose && e.From == wire.Client && e.Stream == transport.Stdin {
			return e
		}
	}
	return nil
}

func firstSignal(events []*wire.Event) *wire.Event { return signalNamed(events, "") }

// signalNamed returns the first signal of the client with a name, or its first signal for "". It returns nil if there
// is none.
func signalNamed(events []*wire.Event, name string) *wire.Event {
	for _, e := range events {
		if e.Kind == wire.KindSignal && e.From == wire.Client && (name == "" || e.Note == name) {
			return e
		}
	}
	return nil
}
