package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// RelayStdio stands between a real client, at in, out and errOut, and a real
// server that it starts: it records every line, and then passes it on. With a
// lossy trace, what exceeds the limits is passed on as well, and only the record
// ends. RelayStdio ends when the server has exited and the client has got its
// output. When the context ends, the server gets SIGTERM, and SIGKILL if that does
// not help. The error is a *StartError.
func (d *Stdio) RelayStdio(ctx context.Context, log *wire.Log, in io.Reader, out, errOut io.Writer) error {
	c, err := d.launch(log)
	if err != nil {
		return err
	}
	given := make(chan struct{})
	c.relay = &relay{out: outlet{make(chan []byte), given}, errOut: outlet{make(chan []byte), given}}
	var writers sync.WaitGroup
	writers.Go(func() { c.relay.out.run(out) })
	writers.Go(func() { c.relay.errOut.run(errOut) })
	written := ended(&writers)
	go c.run()
	// The client's end may stay open for ever: RelayStdio does not wait for this reader.
	go c.passIn(in)
	select {
	case <-c.done:
	case <-ctx.Done():
		sendSignal(log, "SIGTERM", c.proc.Terminate)
		if !c.exited(context.WithoutCancel(ctx), cmp.Or(d.ExitWait, ReasonableExit)) {
			log.Note("the relay killed the server, because it did not end")
			c.proc.Kill()
			close(given)
			<-c.done
		}
	}
	close(c.relay.out.data)
	close(c.relay.errOut.data)
	select {
	case <-written:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-written:
	case <-time.After(drainWait): // a client that does not read may hold up a writer for ever
	}
	return nil
}

// relay is where the output of a relayed server goes.
type relay struct {
	out, errOut outlet
}

// outlet passes on what is written to it. The client may stop reading.
type outlet struct {
	data  chan []byte
	given <-chan struct{} // closed when the client is given up
}

// Write hands p over, unless the client was given up.
func (o *outlet) Write(p []byte) (int, error) {
	select {
	case o.data <- bytes.Clone(p):
		return len(p), nil
	case <-o.given:
		return 0, ErrClosed
	}
}

// line passes a line on, or only its beginning if it is too long.
func (o *outlet) line(raw, surplus []byte, unterminated bool) {
	if len(surplus) == 0 && !unterminated {
		surplus = []byte{'\n'}
	}
	_, _ = o.Write(append(raw[:len(raw):len(raw)], surplus...))
}

// run writes to the client until the server's output ends. It goes on recording
// if the client no longer reads.
func (o *outlet) run(to io.Writer) {
	for {
		select {
		case p, ok := <-o.data:
			if !ok {
				return
			}
			_, _ = to.Write(p)
		case <-o.given:
			return
		}
	}
}

// passIn passes the client's lines on until either side has closed.
func (c *StdioConn) passIn(in io.Reader) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		raw, surplus, err := ReadLine(lines, c.log.Limits().Message)
		if len(surplus) > 0 {
			c.log.Stop(stopReason(nil, c.log.Limits()))
			begun := bytes.NewReader(append(raw, surplus...))
			_, _ = io.Copy(stdinWriter{c}, io.MultiReader(begun, lines))
			c.CloseStdin()
			return
		}
		if len(raw) > 0 || err == nil {
			line := raw[:len(raw):len(raw)]
			if err == nil {
				line = append(line, '\n')
			}
			if _, failed := c.Write(context.Background(), Outgoing{Raw: raw}, line); failed != nil {
				return
			}
		}
		if err != nil {
			c.CloseStdin()
			return
		}
	}
}

// stdinWriter writes to the server without a record.
type stdinWriter struct{ c *StdioConn }

func (w stdinWriter) Write(p []byte) (int, error) {
	if _, err := w.c.put(context.Background(), nil, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
