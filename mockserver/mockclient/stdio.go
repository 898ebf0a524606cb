package mockclient

import (
	"bytes"
	"context"
	"slices"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// framings are the requirements on the framing of messages that one launch tries together.
var framings = []string{
	ids.StdioMessageCrlfAccepted, ids.StdioMessageSplitWrites, ids.StdioMessageSeveralPerWrite,
	ids.StdioMessageOnlyNewlineDelimits,
}

var stdioFaults = []Fault{
	{ID: "stdio.no-newline", Requirement: ids.StdioMessageNewlineDelimited, Transports: OverStdio,
		Summary: "Two messages stand on one line.", Collateral: []string{ids.BaseJSONWellFormed},
		Apply: Saying(`{"jsonrpc":"2.0","id":"l1","method":"ping"}{"jsonrpc":"2.0","id":"l2","method":"ping"}`)},
	{ID: "stdio.indented", Requirement: ids.StdioMessageNoEmbeddedNewlines, Transports: OverStdio,
		Summary:    "A message spans several lines.",
		Collateral: []string{ids.BaseJSONWellFormed, ids.StdioClientStdinClean},
		Apply:      Saying("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": \"lines\",\n  \"method\": \"ping\"\n}")},
	{ID: "stdio.chatter", Requirement: ids.StdioClientStdinClean, Transports: OverStdio,
		Summary: "A line that is not a message is written to the server.",
		Apply:   Saying("connected, sending requests")},
	{ID: "stdio.stderr-death", Requirement: ids.StdioClientStderrHandling, Scenario: "stdio/stderr",
		Transports: OverStdio, Summary: "Output of the server on stderr ends the client.",
		Apply: DyingOfStderr()},
	{ID: "stdio.stderr-full", Requirement: ids.StdioClientStderrHandling, Scenario: "stdio/stderr",
		Transports: OverStdio, Summary: "Much text on the server's stderr ends the client.",
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
			return &DyingConn{Conn: conn, At: func(last *wire.Event) bool {
				size := 0
				for _, e := range conn.Log().Events() {
					if e.Kind == wire.KindStderr && e.Seq <= last.Seq {
						size += len(e.Raw)
					}
				}
				return size > 16<<10
			}}
		})},
	{ID: "stdio.crlf-death", Requirement: ids.StdioMessageCrlfAccepted, Scenario: "stdio/framing",
		Transports: OverStdio, Summary: "A line that ends with CR LF ends the client.", Collateral: framings,
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && bytes.HasSuffix(e.Raw, []byte("\r"))
		})},
	{ID: "stdio.piece-is-message", Requirement: ids.StdioMessageSplitWrites, Scenario: "stdio/framing",
		Transports: OverStdio, Summary: "A message that comes in several pieces ends the client.",
		Collateral: framings,
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool {
				return e.Kind == wire.KindMessage && len(e.Raw) > 1<<10 && heard(conn, "ünïcödé")
			}}
		})},
	{ID: "stdio.one-line-a-read", Requirement: ids.StdioMessageSeveralPerWrite, Scenario: "stdio/framing",
		Transports: OverStdio, Summary: "A message that comes together with another ends the client.",
		Collateral: framings, Apply: DyingOf(`"data":"before"`)},
	{ID: "stdio.unicode-lines", Requirement: ids.StdioMessageOnlyNewlineDelimits, Scenario: "stdio/framing",
		Transports: OverStdio, Summary: "A line separator of Unicode within a message ends the client.",
		Collateral: framings, Apply: DyingOf("two three")},
	{ID: "stdio.server-exit-hangs", Requirement: ids.LifecycleShutdownStdioServerInitiates,
		Scenario: "stdio/exits-early", Transports: OverStdio,
		Summary: "The client hangs when the server exits by itself.",
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool { return e.Kind == wire.KindExit }) {
				<-ctx.Done()
			}
			return conn.Close(ctx)
		})},
	{ID: "stdio.killed-at-once", Requirement: ids.LifecycleShutdownStdioCloseStdin, Scenario: "stdio/shutdown",
		Transports: OverStdio, Summary: "The server is asked to end by a signal while its stdin is open.",
		Apply: leaving(func(p transport.Process) { _ = p.Terminate() })},
	{ID: "stdio.no-time-to-exit", Requirement: ids.LifecycleShutdownStdioWait, Scenario: "stdio/stubborn",
		Transports: OverStdio, Summary: "The server gets SIGTERM as soon as its stdin is closed.",
		Collateral: []string{ids.LifecycleShutdownStdioCloseStdin},
		Apply: leaving(func(p transport.Process) {
			_ = p.Stdin().Close()
			_ = p.Terminate()
		})},
	{ID: "stdio.no-sigterm", Requirement: ids.LifecycleShutdownStdioSigterm, Scenario: "stdio/stubborn",
		Transports: OverStdio, Summary: "A server that does not exit gets SIGKILL without SIGTERM before.",
		Apply: leaving(func(p transport.Process) { _ = p.Stdin().Close() })},
	{ID: "stdio.left-behind", Requirement: ids.LifecycleShutdownStdioSigkill, Scenario: "stdio/stubborn",
		Transports: OverStdio, Summary: "A server that outlives SIGTERM is left behind.", Apply: leavingBehind},
}

// leaving does something with the server's process before the connection is
// closed, and then kills it.
func leaving(action func(p transport.Process)) apply {
	return func(c *client.Standalone) {
		l := &Launcher{Launcher: c.Launcher}
		c.Launcher = l
		Closing(func(ctx context.Context, conn transport.Conn) error {
			action(l.Process)
			linger(l.Process)
			l.Process.Kill()
			return conn.Close(ctx)
		})(c)
	}
}

// leavingBehind ends without waiting for the server's process.
func leavingBehind(c *client.Standalone) {
	if command, ok := c.Launcher.(transport.Command); ok {
		command.Abandoned = true
		c.Launcher = command
	}
	l := &Launcher{Launcher: c.Launcher}
	c.Launcher = l
	Closing(func(context.Context, transport.Conn) error {
		_ = l.Process.Stdin().Close()
		linger(l.Process)
		_ = l.Process.Terminate()
		return nil
	})(c)
}

// linger waits a little for a process that may not exit.
func linger(p transport.Process) {
	wait := time.NewTimer(300 * time.Millisecond)
	defer wait.Stop()
	select {
	case <-p.Done():
	case <-wait.C:
	}
}
