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
var framings = []string{ids.StdioMessageCrlfAccepted, ids.StdioMessageSplitWrites, ids.StdioMessageSeveralPerWrite,
	ids.StdioMessageOnlyNewlineDelimits}

var stdioFaults = []Fault{
	fault("stdio.no-newline", ids.StdioMessageNewlineDelimited, "Two messages stand on one line.",
		Saying(`{"jsonrpc":"2.0","id":"l1","method":"ping"}{"jsonrpc":"2.0","id":"l2","method":"ping"}`)).
		Also(ids.BaseJSONWellFormed),
	fault("stdio.indented", ids.StdioMessageNoEmbeddedNewlines, "A message spans several lines.",
		Saying("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": \"lines\",\n  \"method\": \"ping\"\n}")).
		Also(ids.BaseJSONWellFormed, ids.StdioClientStdinClean),
	fault("stdio.chatter", ids.StdioClientStdinClean, "A line that is not a message is written to the server.",
		Saying("connected, sending requests")),
	fault("stdio.stderr-death", ids.StdioClientStderrHandling, "Output of the server on stderr ends the client.",
		DyingOfStderr()).In("stdio/stderr"),
	fault("stdio.stderr-full", ids.StdioClientStderrHandling, "Much text on the server's stderr ends the client.",
		DyingOn(func(conn transport.Conn, last *wire.Event) bool {
			size := 0
			for _, e := range conn.Log().Events() {
				if e.Kind == wire.KindStderr && e.Seq <= last.Seq {
					size += len(e.Raw)
				}
			}
			return size > 16<<10
		})).In("stdio/stderr"),
	fault("stdio.crlf-death", ids.StdioMessageCrlfAccepted, "A line that ends with CR LF ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && bytes.HasSuffix(e.Raw, []byte("\r")) })).
		In("stdio/framing").Also(framings...),
	fault("stdio.piece-is-message", ids.StdioMessageSplitWrites,
		"A message that comes in several pieces ends the client.",
		DyingOn(func(conn transport.Conn, e *wire.Event) bool {
			return e.Kind == wire.KindMessage && len(e.Raw) > 1<<10 && heard(conn, "ünïcödé")
		})).In("stdio/framing").Also(framings...),
	fault("stdio.one-line-a-read", ids.StdioMessageSeveralPerWrite,
		"A message that comes together with another ends the client.", DyingOf(`"data":"before"`)).In("stdio/framing").
		Also(framings...),
	fault("stdio.unicode-lines", ids.StdioMessageOnlyNewlineDelimits,
		"A line separator of Unicode within a message ends the client.", DyingOf("two three")).In("stdio/framing").
		Also(framings...),
	fault("stdio.server-exit-hangs", ids.LifecycleShutdownStdioServerInitiates,
		"The client hangs when the server exits by itself.",
		hanging(func(conn transport.Conn) bool {
			return slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool { return e.Kind == wire.KindExit })
		})).In("stdio/exits-early"),
	fault("stdio.killed-at-once", ids.LifecycleShutdownStdioCloseStdin,
		"The server is asked to end by a signal while its stdin is open.",
		leaving(func(p transport.Process) { _ = p.Terminate() })).In("stdio/shutdown"),
	fault("stdio.no-time-to-exit", ids.LifecycleShutdownStdioWait,
		"The server gets SIGTERM as soon as its stdin is closed.", leaving(func(p transport.Process) {
			_ = p.Stdin().Close()
			_ = p.Terminate()
		})).In("stdio/stubborn").Also(ids.LifecycleShutdownStdioCloseStdin),
	fault("stdio.no-sigterm", ids.LifecycleShutdownStdioSigterm,
		"A server that does not exit gets SIGKILL without SIGTERM before.",
		leaving(func(p transport.Process) { _ = p.Stdin().Close() })).In("stdio/stubborn"),
	fault("stdio.left-behind", ids.LifecycleShutdownStdioSigkill, "A server that outlives SIGTERM is left behind.",
		leavingBehind).In("stdio/stubborn"),
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
	select {
	case <-p.Done():
	case <-time.After(300 * time.Millisecond):
	}
}
