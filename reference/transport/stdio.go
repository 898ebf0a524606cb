package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Streams of the stdio transport.
const (
	Stdin  = "stdin"
	Stdout = "stdout"
	Stderr = "stderr"
)

// Stdio dials a server over its standard input and output: each connection is
// a process of its own.
type Stdio struct {
	Launcher Launcher
	// Bridge says that the process is not the server but leads to it: it takes messages
	// as lines, delivers them by a custom transport and writes what comes back.
	Bridge bool
	// ExitWait is how long a server may take to exit after its stdin was
	// closed, and again after SIGTERM, before the next step. Zero: ReasonableExit.
	ExitWait time.Duration

	// stubborn is set once a server did not exit when its stdin was closed: later
	// connections wait less for it.
	stubborn atomic.Bool
	// longestStart is the longest time that a process took to its first message.
	longestStart atomic.Int64
}

// ReasonableExit is how long a server may take to exit before it is a finding
// (basic/lifecycle#stdio gives no figure).
const ReasonableExit = 5 * time.Second

const (
	stubbornWait = 50 * time.Millisecond
	// waitingWait is how long a server may take to exit while one side waits for an
	// answer of the other: that it does not exit then says nothing.
	waitingWait = 250 * time.Millisecond
	// quietWait is how long what is read of a process that is gone may be waited for, and
	// drainWait how long it may keep coming.
	quietWait = 200 * time.Millisecond
	drainWait = time.Second
)

// Transport returns "stdio" or, behind a bridge, "custom".
func (d *Stdio) Transport() string {
	if d.Bridge {
		return NameCustom
	}
	return NameStdio
}

// process names what the process is.
func (d *Stdio) process() string {
	if d.Bridge {
		return "bridge"
	}
	return "server"
}

// Dial starts a process. Its error is a *StartError.
func (d *Stdio) Dial(_ context.Context, log *wire.Log) (Conn, error) {
	c, err := d.launch(log)
	if err != nil {
		return nil, err
	}
	go c.run()
	return c, nil
}

// launch starts the process of a connection, which is still to be run.
func (d *Stdio) launch(log *wire.Log) (*StdioConn, error) {
	proc, err := d.Launcher.Launch()
	if err != nil {
		return nil, unstarted(log, &StartError{Target: d.Launcher.String(), Err: err, Process: true})
	}
	c := &StdioConn{dialer: d, log: log, proc: proc, writes: make(chan write), done: make(chan struct{}),
		closing: make(chan struct{})}
	_, _ = log.Append(wire.Event{Kind: wire.KindStart, From: wire.Server, Note: d.Launcher.String()})
	return c, nil
}

// write is a message on its way. Its chunks are written together.
type write struct {
	message *Outgoing // nil: it is not recorded
	chunks  [][]byte
	began   chan written
	done    chan error
}

// written is the record of a message that is being written.
type written struct {
	event *wire.Event
	err   error
}

// StdioConn is the client's end of a stdio connection.
type StdioConn struct {
	dialer *Stdio
	log    *wire.Log
	proc   Process
	writes chan write
	relay  *relay // gets what the server writes; it may be nil

	closeStdin sync.Once
	closing    chan struct{} // closed with stdin
	done       chan struct{} // closed when the process and all readers have ended
}

// Log of the connection.
func (c *StdioConn) Log() *wire.Log { return c.log }

// Done is closed when the process has exited and its output was read.
func (c *StdioConn) Done() <-chan struct{} { return c.done }

// run owns the goroutines of the connection and outlives them.
func (c *StdioConn) run() {
	defer close(c.done)
	defer c.log.End()
	var readers, writer sync.WaitGroup
	writer.Go(c.writeLoop)
	readers.Go(c.readStdout)
	readers.Go(c.readStderr)
	<-c.proc.Done()
	// Processes that it leaves behind must not outlive it.
	c.proc.Kill()
	drained := ended(&readers)
	c.awaitOutput(drained)
	_ = c.proc.Stdout().Close()
	_ = c.proc.Stderr().Close()
	<-drained
	c.shutStdin(false)
	writer.Wait()
	exit := c.proc.Exit()
	end := wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &exit}
	if c.dialer.Bridge {
		end.Note = bridgeEnded
	}
	_, _ = c.log.Append(end)
}

// ended returns a channel that is closed when all of a group have ended.
func ended(g *sync.WaitGroup) <-chan struct{} {
	all := make(chan struct{})
	go func() {
		g.Wait()
		close(all)
	}()
	return all
}

// bridgeEnded is the note on the exit of a process that is not the server.
const bridgeEnded = "the process is the bridge to the server"

// Ended says in a clause which process ended and how. The event is its exit.
func Ended(e *wire.Event) string {
	if e.Note == bridgeEnded {
		return "the bridge to the server " + e.Exit.String()
	}
	return "the server " + e.Exit.String()
}

// awaitOutput waits until the output of a process that has ended was read. A
// process elsewhere may keep it open for ever, but a client behind a relay may
// read the rest as slowly as it likes.
func (c *StdioConn) awaitOutput(drained <-chan struct{}) {
	if c.relay != nil {
		select {
		case <-drained:
		case <-c.relay.out.given:
		}
		return
	}
	if awaitRest(c.proc, drained) {
		c.log.Note(fmt.Sprintf("another process kept the %[1]s's output open after the %[1]s had exited",
			c.dialer.process()))
	}
}

// awaitRest waits until the output of a process that has ended was read, and reports whether
// another process kept it open.
func awaitRest(p Process, drained <-chan struct{}) (held bool) {
	finishing, ok := p.(interface {
		finish(moment time.Duration)
		held() bool
	})
	if ok {
		finishing.finish(quietWait)
	}
	select {
	case <-drained:
		return ok && finishing.held()
	case <-time.After(drainWait):
		return true
	}
}

func (c *StdioConn) writeLoop() {
	for {
		select {
		case w := <-c.writes:
			// It is recorded in the order of the writes, and before it is written, so that the answer comes later.
			var record written
			if m := w.message; m != nil {
				record.event, record.err = c.log.Append(wire.Event{
					Kind: wire.KindMessage, From: wire.Client, Stream: Stdin, Raw: m.Raw, Deliberate: m.Deliberate,
				})
			}
			w.began <- record
			err := record.err
			for _, chunk := range w.chunks {
				if err != nil {
					break
				}
				_, err = c.proc.Stdin().Write(chunk)
			}
			w.done <- err
		case <-c.closing:
			return
		}
	}
}

// Send writes one message and a newline.
func (c *StdioConn) Send(ctx context.Context, m Outgoing) (*wire.Event, error) {
	if len(m.Raw) > pipeSize {
		return c.Write(ctx, m, m.Raw, []byte{'\n'})
	}
	return c.Write(ctx, m, append(m.Raw[:len(m.Raw):len(m.Raw)], '\n'))
}

// pipeSize is what a pipe holds on most systems. A longer message cannot arrive in
// one piece, so that it is not copied into one.
const pipeSize = 64 << 10

// Write records the message and writes the chunks as they are, each in a
// write of its own, so that framing itself can be put to the test. A message that
// waits for earlier ones until the context ends, or comes after that, is neither recorded nor written.
func (c *StdioConn) Write(ctx context.Context, m Outgoing, chunks ...[]byte) (*wire.Event, error) {
	select {
	case <-c.done:
		return nil, ErrClosed
	default:
	}
	return c.put(ctx, &m, chunks...)
}

// put writes chunks, each in a write of its own, and returns the record of their message.
func (c *StdioConn) put(ctx context.Context, m *Outgoing, chunks ...[]byte) (*wire.Event, error) {
	w := write{message: m, chunks: chunks, began: make(chan written, 1), done: make(chan error, 1)}
	select {
	case <-c.closing:
		return nil, ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return nil, c.unwritten(context.Cause(ctx))
	}
	select {
	case c.writes <- w:
	case <-c.closing:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, c.unwritten(context.Cause(ctx))
	}
	record := <-w.began
	if record.err != nil {
		return nil, record.err
	}
	select {
	case err := <-w.done:
		if err != nil {
			return record.event, c.unwritten(fmt.Errorf("%w: %w", ErrClosed, err))
		}
		return record.event, nil
	case <-ctx.Done():
		return record.event, c.unwritten(context.Cause(ctx))
	}
}

func (c *StdioConn) unwritten(cause error) error {
	return fmt.Errorf("write to the %s's stdin: %w", c.dialer.process(), cause)
}

func (c *StdioConn) readStdout() {
	stdout := c.proc.Stdout()
	lines := bufio.NewReaderSize(stdout, 16<<10)
	for {
		raw, surplus, err := ReadLine(lines, c.log.Limits().Message)
		ended, dropped := err != nil, int64(len(surplus))
		if len(raw) > 0 || dropped > 0 || !ended {
			e := wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: Stdout, Raw: raw, Dropped: dropped}
			switch {
			case !ended:
			case !errors.Is(err, io.EOF) || cutShort(c.proc):
				e.Note = cutOff
			default:
				e.Note = unterminated
			}
			_, err := c.log.Append(e)
			if c.relay != nil {
				c.relay.out.line(raw, surplus, ended)
				if dropped > 0 {
					c.log.Stop(stopReason(nil, c.log.Limits()))
					_, _ = io.Copy(&c.relay.out, lines)
					return
				}
			}
			if err != nil || dropped > 0 {
				// The rest cannot be split into lines or kept: end it here.
				c.log.Note(wire.Stopped + stopReason(err, c.log.Limits()))
				c.proc.Kill()
				return
			}
		}
		if ended {
			_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Server, Stream: Stdout})
			return
		}
	}
}

// Notes on a last line without a newline.
const (
	unterminated = "the output ended without a newline"
	cutOff       = unterminated + ", as mcpconform ended the process or stopped reading"
)

// Unterminated reports whether a message was the last on its stream and its sender left out the newline.
func Unterminated(e *wire.Event) bool { return e.Note == unterminated }

// CutOff reports whether a message was the last on its stream and we ended its sender, or stopped reading, before the
// newline: the rest may have been on its way.
func CutOff(e *wire.Event) bool { return e.Note == cutOff }

// cutShort reports whether the output of a process may end before what it has to say.
func cutShort(p Process) bool {
	ended, ok := p.(interface{ cut() bool })
	return ok && ended.cut()
}

func stopReason(err error, limits wire.Limits) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("a line is longer than %d bytes", limits.Message)
}

// ReadLine returns the next line without its newline. If the line is longer than
// max, it returns the first max bytes and, until the next read, the further bytes
// that it has seen; the rest of the line stays unread. err is set with the last,
// unterminated line.
func ReadLine(r *bufio.Reader, max int) (line, surplus []byte, err error) {
	var parts [][]byte // of a line that the buffer does not hold
	length := 0
	for {
		part, err := r.ReadSlice('\n')
		room := max - length
		switch {
		case len(part) > room+1 || len(part) > room && !bytes.HasSuffix(part, []byte{'\n'}):
			return joined(parts, part[:room]), part[room:], nil
		case err == nil:
			return joined(parts, part[:len(part)-1]), nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return joined(parts, part), nil, err
		}
		parts = append(parts, bytes.Clone(part))
		length += len(part)
	}
}

// joined returns the parts of a line as one, which takes no more memory than it needs: it is kept.
func joined(parts [][]byte, last []byte) []byte {
	if len(parts) == 0 {
		return bytes.Clone(last)
	}
	return slices.Concat(append(parts, last)...)
}

// Bounds of what is kept of stderr: the beginning, and the end, which may tell why
// the process died.
const (
	stderrHead = 64 << 10
	stderrTail = 16 << 10
	stderrLine = 4 << 10
	stderrCost = 64 // what an event costs in addition to its bytes
)

func (c *StdioConn) readStderr() {
	lines := bufio.NewReaderSize(c.proc.Stderr(), stderrLine)
	var kept int
	var rest tail
	for {
		raw, err := lines.ReadSlice('\n')
		if len(raw) > 0 && kept < stderrHead {
			kept += len(raw) + stderrCost
			text := bytes.Clone(bytes.TrimSuffix(raw, []byte{'\n'}))
			_, _ = c.log.Append(wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: Stderr, Raw: text})
		} else if len(raw) > 0 {
			rest.write(raw)
		}
		if c.relay != nil {
			_, _ = c.relay.errOut.Write(raw)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if raw, dropped := rest.end(); len(raw) > 0 {
		_, _ = c.log.Append(wire.Event{
			Kind: wire.KindStderr, From: wire.Server, Stream: Stderr, Raw: raw, Dropped: dropped,
		})
	}
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu      sync.Mutex
	kept    []byte
	dropped int64
}

func (t *tail) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	// It is moved only now and then, because there may be many short lines.
	if len(t.kept) > 2*stderrTail {
		t.cut()
	}
}

func (t *tail) cut() {
	if over := len(t.kept) - stderrTail; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.dropped += int64(over)
	}
}

// end returns what is kept, and how many bytes before it are not.
func (t *tail) end() (kept []byte, dropped int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
	return bytes.Clone(t.kept), t.dropped
}

func (c *StdioConn) shutStdin(record bool) {
	c.closeStdin.Do(func() {
		if record {
			_, _ = c.log.Append(wire.Event{Kind: wire.KindClose, From: wire.Client, Stream: Stdin})
		}
		close(c.closing)
		_ = c.proc.Stdin().Close()
	})
}

// CloseStdin closes the server's input, as the first step of a shutdown.
func (c *StdioConn) CloseStdin() { c.shutStdin(true) }

// Close closes the server's stdin, waits for its exit, sends SIGTERM, waits
// again, and kills what is left (basic/lifecycle#stdio). A context that ends
// shortens the waits. It returns when nothing of the process is left.
func (c *StdioConn) Close(ctx context.Context) error {
	wait := c.dialer.ExitWait
	if wait == 0 {
		wait = max(ReasonableExit, min(ExitPerStart*c.dialer.slowest(c.startTime()), slowestExit))
	}
	c.shutStdin(true)
	closeWait := wait
	if c.dialer.stubborn.Load() {
		closeWait = min(wait, stubbornWait)
	}
	waits, ends := c.untilItWaits(ctx)
	defer ends()
	if c.exited(waits, closeWait) || waits.Err() != nil && c.exited(ctx, waitingWait) {
		return nil
	}
	if waits.Err() == nil {
		c.dialer.stubborn.Store(true)
	}
	sendSignal(c.log, "SIGTERM", c.proc.Terminate)
	if c.exited(ctx, wait) {
		return nil
	}
	sendSignal(c.log, "SIGKILL", func() error { c.proc.Kill(); return nil })
	<-c.done
	return nil
}

// untilItWaits returns a context that also ends once one side waits for an answer of
// the other, which can no longer come.
func (c *StdioConn) untilItWaits(ctx context.Context) (waits context.Context, ends func()) {
	waits, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		_, err := c.log.Await(waits, 0, func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage || e.Msg.Kind != wire.Request {
				return false
			}
			x := c.log.Exchange(e)
			return x != nil && x.Request == e && x.Response == nil
		})
		if err == nil {
			cancel()
		}
	})
	return waits, func() { cancel(); watch.Wait() }
}

// ExitPerStart times the duration of the slowest start in a run is how long a
// process may take to exit, even if that is more than ReasonableExit: both
// durations show how busy the machine is.
const ExitPerStart = 2

// slowestExit bounds the wait for the exit of a process that was slow to start.
const slowestExit = 30 * time.Second

// slowest returns the longest time that a process took to start so far.
func (d *Stdio) slowest(start time.Duration) time.Duration {
	for {
		longest := d.longestStart.Load()
		if int64(start) <= longest {
			return time.Duration(longest)
		}
		if d.longestStart.CompareAndSwap(longest, int64(start)) {
			return start
		}
	}
}

// startTime returns how long the process took to its first message, or 0.
func (c *StdioConn) startTime() time.Duration {
	events := c.log.Events()
	for _, e := range events {
		if e.Kind == wire.KindMessage && e.From == wire.Server {
			return e.At - events[0].At
		}
	}
	return 0
}

// sendSignal records a signal and then sends it, so that the exit comes later in
// the log.
func sendSignal(log *wire.Log, name string, send func() error) {
	_, _ = log.Append(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: name})
	if err := send(); err != nil {
		log.Note(name + " could not be sent: " + err.Error())
	}
}

func (c *StdioConn) exited(ctx context.Context, wait time.Duration) bool {
	select {
	case <-c.done:
		return true
	default: // although the context may have ended
	}
	select {
	case <-c.done:
		return true
	case <-time.After(wait):
		return false
	case <-ctx.Done():
		return false
	}
}
