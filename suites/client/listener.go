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

// bridgeListener takes the connections of bridges and runs a server for each.
type bridgeListener struct {
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	serving map[string]*stdioEndpoint // by token
}

// stdioEndpoint is the endpoint of one scenario over stdio: the bridges that the
// client starts connect to it.
type stdioEndpoint struct {
	options server.Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	left    atomic.Bool // signals no longer come from the client

	mu     sync.Mutex
	closed bool
}

func newBridgeListener(ctx context.Context, listen func() (net.Listener, error)) (*bridgeListener, error) {
	listener, err := listen()
	if err != nil {
		return nil, fmt.Errorf("listen for the server processes of the client: %w", err)
	}
	l := &bridgeListener{listener: listener, serving: make(map[string]*stdioEndpoint)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.running.Go(l.accept)
	return l, nil
}

func (l *bridgeListener) accept() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.take(conn) })
	}
}

// take runs the server of one bridge.
func (l *bridgeListener) take(conn net.Conn) {
	defer conn.Close()
	f := newFrames(conn)
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	kind, token, err := f.read()
	if err != nil || kind != frameHello {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	l.mu.Lock()
	endpoint := l.serving[string(token)]
	l.mu.Unlock()
	if endpoint == nil || !endpoint.enter() {
		return
	}
	defer endpoint.running.Done()
	endpoint.serve(conn, f)
}

func (l *bridgeListener) open(endpoint *stdioEndpoint) (token string) {
	token = rand.Text()
	endpoint.ctx, endpoint.cancel = context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving[token] = endpoint
	return token
}

// shut waits until the server processes of a scenario have ended or the context ends. It then stops the rest.
func (l *bridgeListener) shut(ctx context.Context, token string) {
	l.mu.Lock()
	endpoint := l.serving[token]
	delete(l.serving, token)
	l.mu.Unlock()
	endpoint.mu.Lock()
	endpoint.closed = true
	endpoint.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		endpoint.running.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	endpoint.cancel()
	<-ended
}

func (e *stdioEndpoint) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.running.Add(1)
	return true
}

// serve runs the server for a bridge until one of them has ended.
func (e *stdioEndpoint) serve(conn net.Conn, f *frames) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, func() { _ = conn.Close() })()
	input, feed := io.Pipe()
	defer input.Close()
	var log *wire.Log // set before ready is closed
	ready := make(chan struct{})
	o := e.options
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
		e.read(f, feed, note, cancel)
	})
	done := make(chan error, 1)
	workers.Go(func() {
		done <- server.New(o).RunStdio(ctx, input, frameWriter{f, frameOutput},
			&stderrLog{to: frameWriter{f, frameError}, note: note})
	})
	code := 0
	select {
	case err := <-done:
		var exit *server.ExitError
		if errors.As(err, &exit) {
			code = exit.Code
		}
		_ = f.write(frameExit, []byte{byte(code)})
		note(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{Code: code},
			Deliberate: o.Behaviour.Breaks})
	case <-lost:
		if e.ctx.Err() == nil && !e.left.Load() {
			// Only SIGKILL ends a bridge without a frame.
			note(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: "SIGKILL"})
			note(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{Code: -1, Signal: "killed"},
				Deliberate: o.Behaviour.Breaks})
		}
		cancel()
		<-done //nolint:errcheck // it was told to end
	}
	_ = conn.Close()
	_ = input.Close()
	workers.Wait()
}

// read takes the frames of a bridge until it is gone. If the client was ended, its last line may be incomplete, and
// is no message.
func (e *stdioEndpoint) read(f *frames, feed *io.PipeWriter, note func(wire.Event), terminate func()) {
	end := func() {
		if e.left.Load() || e.ctx.Err() != nil {
			_ = feed.CloseWithError(io.ErrUnexpectedEOF)
		}
		_ = feed.Close()
	}
	defer end()
	for {
		kind, data, err := f.read()
		switch {
		case err != nil:
			return
		case kind == frameInput:
			_, _ = feed.Write(data) // fails when the server has ended
		case kind == frameEOF:
			end()
		case kind == frameSignal:
			if !e.left.Load() {
				note(wire.Event{Kind: wire.KindSignal, From: wire.Client, Note: string(data)})
			}
			if e.left.Load() || e.options.Behaviour.Stdio.Linger == nil { // which outlives the signal, too
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
	w.note(wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: transport.Stderr,
		Raw: append([]byte(nil), p...)})
	return w.to.Write(p)
}
