package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// ExitError is returned by RunStdio when the behaviour wants a status other
// than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// errQuit ends the process early, because the behaviour says so.
var errQuit = errors.New("quit")

// RunStdio serves one client over standard input and output, as one process
// would, until stdin ends or the context does. It may run any number of times
// at once.
//
// All goroutines of the connection have ended when it returns, except when the
// context has ended or [Stdio.Quit] did it: a read of stdin, or a write to
// stdout, that is still pending then goes on until the caller closes it.
func (s *Server) RunStdio(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	b := s.behaviour
	if b.Stdio.Stdin != nil {
		stdin = b.Stdio.Stdin(stdin)
	}
	if b.Stdio.Stdout != nil {
		stdout = b.Stdio.Stdout(stdout)
	}
	if b.Stdio.Start != nil {
		b.Stdio.Start(stdout, stderr)
	}
	read := func(lines chan<- line, gone <-chan struct{}) { readLines(stdin, s.options.MaxMessage, lines, gone) }
	l := &streamLink{name: transport.NameStdio, in: transport.Stdin, out: transport.Stdout, write: writeTo(stdout),
		hooks: b.Stdio}
	err := s.runStream(ctx, l, read)
	if err == nil && b.Stdio.ExitCode != 0 {
		err = &ExitError{b.Stdio.ExitCode}
	}
	return err
}

// writeTo writes frames as they are.
func writeTo(w io.Writer) func([]byte) error {
	return func(frame []byte) error {
		_, err := w.Write(frame)
		return err
	}
}

// runStream serves one client over a stream of messages.
func (s *Server) runStream(ctx context.Context, l *streamLink,
	read func(lines chan<- line, gone <-chan struct{})) error {
	log := s.connect(l.name)
	if log != nil {
		defer log.End()
	}
	l.server, l.log, l.frames, l.stop, l.stopped = s, log, make(chan frame), make(chan struct{}), make(chan struct{})
	session := s.newSession(l.name, log, l)
	l.session = session
	// Every wait for the client stops when the context ends.
	defer context.AfterFunc(ctx, func() { session.cancel(context.Cause(ctx)) })()
	go l.writeAll()
	lines := make(chan line)
	gone := make(chan struct{}) // tells the reader that its lines are not read any more
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		read(lines, gone)
	}()
	session.begin()
	err := l.serve(ctx, lines)
	if err == nil && l.hooks.Linger != nil && l.hooks.Linger(session) {
		<-ctx.Done()
	}
	session.end()
	close(l.stop)
	close(gone)
	if !errors.Is(err, errQuit) {
		waitFor(ctx, ended)
	}
	waitFor(ctx, l.stopped)
	if errors.Is(err, errQuit) {
		err = nil
	}
	_ = s.record(log, wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: l.out})
	return err
}

func waitFor(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// streamLink writes messages to one stream, which has one client.
type streamLink struct {
	name    string             // of the transport
	in, out string             // names of the streams
	write   func([]byte) error // of a message and a newline
	hooks   Stdio
	server  *Server
	session *Session
	log     *wire.Log
	frames  chan frame
	stop    chan struct{} // closed when no frame follows
	stopped chan struct{} // closed when the last frame was written
}

type frame struct {
	bytes []byte
	event wire.Event
}

func (l *streamLink) deliver(out *Outgoing) {
	text, err := out.text()
	if err != nil {
		return // it cannot be written as JSON; only a behaviour makes such a message
	}
	line := append(text, '\n')
	if hook := l.server.behaviour.Frame; hook != nil {
		if line = hook(out, line); line == nil {
			return
		}
	}
	f := frame{bytes: line, event: wire.Event{
		Kind: wire.KindMessage, From: wire.Server, Stream: l.out,
		Raw: bytes.TrimSuffix(line, []byte{'\n'}), Deliberate: out.Deliberate,
	}}
	// Later messages must not be sent without the one that came too late.
	if l.session.ctx.Err() != nil {
		return
	}
	select {
	case l.frames <- f:
	case <-l.session.ctx.Done():
	case <-l.stopped:
	}
}

// writeAll owns the output.
func (l *streamLink) writeAll() {
	defer close(l.stopped)
	for {
		select {
		case f := <-l.frames:
			// It is recorded before it is written, so that the reaction comes later.
			if l.server.record(l.log, f.event) != nil {
				return
			}
			if l.write(f.bytes) != nil {
				return // the client does not read any more; the end of the input follows
			}
		case <-l.stop:
			return
		}
	}
}

// serve handles the lines. It returns nil when the input has ended.
func (l *streamLink) serve(ctx context.Context, lines <-chan line) error {
	b := l.server.behaviour
	for n := 1; ; n++ {
		var in line
		var ok bool
		select {
		case in, ok = <-lines:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !ok {
			_ = l.server.record(l.log, wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: l.in})
			return nil
		}
		err := l.server.record(l.log, wire.Event{
			Kind: wire.KindMessage, From: wire.Client, Stream: l.in, Raw: in.text, Dropped: in.dropped,
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", l.in, err)
		}
		if l.hooks.Quit != nil && l.hooks.Quit(n, in.text) {
			return errQuit
		}
		if in.dropped > 0 {
			l.session.emit((&refusal{rpcErr: wire.Error{
				Code: InvalidRequest, Message: fmt.Sprintf("The message is longer than %d bytes",
					l.server.options.MaxMessage),
			}}).outgoing(l.session))
			continue
		}
		if b.Inbound == nil {
			l.line(in.text)
			continue
		}
		if text := b.Inbound(in.text); text != nil {
			for part := range bytes.SplitSeq(text, []byte{'\n'}) {
				l.line(part)
			}
		}
	}
}

func (l *streamLink) line(text []byte) {
	if len(bytes.TrimSpace(text)) == 0 {
		return // an empty line, which is not answered
	}
	m := wire.Parse(text)
	f := l.server.behaviour.refuse(m)
	switch {
	case f == nil:
		l.session.receive(m, nil)
	case f.unanswered:
		l.session.spoiled(m)
	default:
		l.session.emit(f.outgoing(l.session))
	}
}

// line is one line of stdin without its newline.
type line struct {
	text    []byte
	dropped int64 // bytes beyond the limit, which were not kept
}

// readLines sends the lines of stdin, the last one even without a newline unless the reader says by an error that the
// rest of it was lost, and closes the channel.
func readLines(stdin io.Reader, max int, lines chan<- line, gone <-chan struct{}) {
	defer close(lines)
	r := bufio.NewReaderSize(stdin, 16<<10)
	for {
		text, surplus, err := transport.ReadLine(r, max)
		in := line{text: text}
		for len(surplus) > 0 {
			end := bytes.TrimSuffix(surplus, []byte{'\n'})
			in.dropped += int64(len(end))
			if len(end) < len(surplus) {
				break
			}
			surplus, err = r.ReadSlice('\n')
		}
		if err == nil || len(in.text) > 0 && errors.Is(err, io.EOF) {
			select {
			case lines <- in:
			case <-gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
