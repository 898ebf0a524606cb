package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// hub takes the connections of bridges and runs a server for each.
type hub struct {
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	serving map[string]*booth // by token
}

// booth is where the processes of one scenario report.
type booth struct {
	scenario *Scenario
	options  server.Options
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	left     atomic.Bool // signals are no longer the client's

	mu     sync.Mutex
	closed bool
}

func newHub(ctx context.Context, listen func() (net.Listener, error)) (*hub, error) {
	l, err := listen()
	if err != nil {
		return nil, fmt.Errorf("listen for the server processes of the client: %w", err)
	}
	h := &hub{listener: l, serving: make(map[string]*booth)}
	h.ctx, h.cancel = context.WithCancel(ctx)
	h.running.Go(h.accept)
	return h, nil
}

func (h *hub) close() {
	h.cancel()
	_ = h.listener.Close()
	h.running.Wait()
}

func (h *hub) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.running.Go(func() { h.take(conn) })
	}
}

// take runs the server of one bridge.
func (h *hub) take(conn net.Conn) {
	defer conn.Close()
	f := newFrames(conn)
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	kind, token, err := f.read()
	if err != nil || kind != frameHello {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	h.mu.Lock()
	b := h.serving[string(token)]
	h.mu.Unlock()
	if b == nil || !b.enter() {
		return
	}
	defer b.running.Done()
	b.serve(conn, f)
}

func (h *hub) open(b *booth) (token string) {
	token = rand.Text()
	b.ctx, b.cancel = context.WithCancel(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving[token] = b
	return token
}

// shut waits until the server processes of a scenario have ended, for as long
// as the context lets it, and then ends them.
func (h *hub) shut(ctx context.Context, token string) {
	h.mu.Lock()
	b := h.serving[token]
	delete(h.serving, token)
	h.mu.Unlock()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.running.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	b.cancel()
	<-ended
}

func (b *booth) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Add(1)
	return true
}

// serve runs the server for a process until either has ended.
func (b *booth) serve(conn net.Conn, f *frames) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, func() { _ = conn.Close() })()
	input, feed := io.Pipe()
	defer input.Close()
	var log *wire.Log // set before ready is closed
	ready := make(chan struct{})
	o := b.options
	hook := o.Behaviour.Connected
	o.Behaviour.Connected = func(ctx context.Context, s *server.Session) {
		log = s.Log()
		_, _ = log.Append(wire.Event{Kind: wire.KindStart, From: wire.Server, Note: "started by the client"})
		close(ready)
		if hook != nil {
			hook(ctx, s)
		}
	}
	note := func(e wire.Event) {
		select {
		case <-ready:
			_, _ = log.Append(e)
		default: // nothing was recorded yet
		}
	}
	var workers sync.WaitGroup
	lost := make(chan struct{})
	workers.Go(func() {
		defer close(lost)
		defer feed.Close()
		b.read(f, feed, note, cancel)
	})
	done := make(chan error, 1)
	workers.Go(func() {
		done <- server.New(o).RunStdio(ctx, input, frameWriter{f, frameOutput}, &stderrLog{to: frameWriter{f, frameError}, note: note})
	})
	code := 0
	select {
	case err := <-done:
		var exit *server.ExitError
		if errors.As(err, &exit) {
			code = exit.Code
		}
		_ = f.write(frameExit, []byte{byte(code)})
		note(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{Code: code}, Deliberate: o.Behaviour.Breaks})
	case <-lost:
		if b.ctx.Err() == nil && !b.left.Load() {
			// A bridge dies without a word of SIGKILL alone.
			note(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: "SIGKILL"})
			note(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{Code: -1, Signal: "killed"}, Deliberate: o.Behaviour.Breaks})
		}
		cancel()
		<-done //nolint:errcheck // it was told to end
	}
	_ = conn.Close()
	_ = input.Close()
	workers.Wait()
}

// read takes the frames of a process until it is gone.
func (b *booth) read(f *frames, feed *io.PipeWriter, note func(wire.Event), terminate func()) {
	for {
		kind, data, err := f.read()
		switch {
		case err != nil:
			return
		case kind == frameInput:
			_, _ = feed.Write(data) // fails when the server has ended
		case kind == frameEOF:
			_ = feed.Close()
		case kind == frameSignal:
			if !b.left.Load() {
				note(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: string(data)})
			}
			if b.left.Load() || !b.scenario.IgnoreSIGTERM {
				terminate()
			}
		}
	}
}

// stderrLog records what a server process writes to stderr.
type stderrLog struct {
	to   io.Writer
	note func(wire.Event)
}

func (w *stderrLog) Write(p []byte) (int, error) {
	w.note(wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: transport.Stderr, Raw: append([]byte(nil), p...)})
	return w.to.Write(p)
}
