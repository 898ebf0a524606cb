package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// RelayStdio stands between a real client, at in, out and errOut, and a real
// server that it starts: it passes every line on and records it before. It ends
// when the server has exited. When the context ends, the server gets SIGTERM,
// and SIGKILL if that does not help. The error is a *StartError.
func (d *Stdio) RelayStdio(ctx context.Context, log *wire.Log, in io.Reader, out, errOut io.Writer) error {
	conn, err := d.Dial(ctx, log)
	if err != nil {
		return err
	}
	c := conn.(*StdioConn)
	var workers sync.WaitGroup
	workers.Go(func() { c.passOut(out, errOut) })
	// The client's end may stay open for ever: nobody waits for this reader.
	go c.passIn(in)
	select {
	case <-c.done:
	case <-ctx.Done():
		sendSignal(log, "SIGTERM", c.proc.Terminate)
		if !c.exited(context.WithoutCancel(ctx), ReasonableExit) {
			c.note("the relay killed the server, which did not end")
			c.proc.Kill()
		}
		<-c.done
	}
	workers.Wait()
	return nil
}

// passIn passes the client's lines on until either side has closed.
func (c *StdioConn) passIn(in io.Reader) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		raw, dropped, err := readLine(lines, c.log.Limits().Message)
		if len(raw) > 0 || err == nil {
			end := []byte{'\n'}
			if err != nil {
				end = nil
			}
			if _, failed := c.Write(context.Background(), Outgoing{Raw: raw}, append(raw[:len(raw):len(raw)], end...)); failed != nil {
				return
			}
		}
		if dropped > 0 {
			c.note("the client's line is longer than the limit: its input was closed")
		}
		if err != nil || dropped > 0 {
			c.CloseStdin()
			return
		}
	}
}

// passOut passes on what the server writes, as it is recorded, until the log
// is complete.
func (c *StdioConn) passOut(out, errOut io.Writer) {
	next := 0
	for {
		e, err := c.log.Await(context.Background(), next, func(e *wire.Event) bool {
			return e.From == wire.Server && !e.Member && (e.Kind == wire.KindMessage || e.Kind == wire.KindStderr)
		})
		if errors.Is(err, wire.ErrEnded) {
			return
		}
		next = e.Seq + 1
		to, line := out, e.Raw[:len(e.Raw):len(e.Raw)]
		if e.Kind == wire.KindStderr {
			to = errOut
		}
		if !Unterminated(e) {
			line = append(line, '\n')
		}
		// A client that no longer reads is no reason to stop recording.
		_, _ = to.Write(line)
	}
}
