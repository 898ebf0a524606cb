package transport

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// RelayStdio stands between a real client over stdio, at in and out, and the server: each
// line of the client is one message, and each message of the server one line, in which blanks
// take the place of line ends. Both are recorded as they cross the WebSocket. RelayStdio
// ends when either side has closed, or the context ends. A message that exceeds the limit of
// the record ends it too. The error is a *StartError.
func (d *WebSocket) RelayStdio(ctx context.Context, log *wire.Log, in io.Reader, out io.Writer) error {
	given := make(chan struct{})
	to := outlet{make(chan []byte), given}
	conn, err := d.dial(ctx, log, func(raw []byte) { to.line(inOneLine(raw), nil, false) })
	if err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		to.run(out)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The client's end may stay open for ever: RelayStdio does not wait for this reader.
	go func() {
		defer cancel()
		conn.passIn(ctx, in)
	}()
	select {
	case <-conn.done:
	case <-ctx.Done():
		// Further messages of the server reach the client, unless the client no longer reads.
		giveUp := time.AfterFunc(closeFrameWait, func() { close(given) })
		_ = conn.Close(context.WithoutCancel(ctx))
		giveUp.Stop()
	}
	close(to.data)
	select {
	case <-written:
	case <-time.After(drainWait): // a client that does not read may hold up the writer for ever
	}
	return nil
}

// passIn sends the client's lines until either side has closed.
func (c *WebSocketConn) passIn(ctx context.Context, in io.Reader) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		raw, surplus, err := ReadLine(lines, c.log.Limits().Message)
		if len(surplus) > 0 {
			c.log.Note(fmt.Sprintf("the relay was ended: a message of the client is longer than %d bytes",
				c.log.Limits().Message))
			return
		}
		if len(bytes.TrimSpace(raw)) > 0 {
			if _, err := c.Send(ctx, Outgoing{Raw: bytes.Clone(raw)}); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// inOneLine returns a message as it can be sent in one line. In JSON, line ends stand
// only where blanks may stand.
func inOneLine(raw []byte) []byte {
	blank := []byte(" ")
	return bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("\n"), blank), []byte("\r"), blank)
}
