package client

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

const (
	// bridgeReady is how long a transport command may take to say that it listens.
	bridgeReady = 2 * time.Second
	// bridgeExit is how long a transport command may take to end when its stdin was
	// closed, and again after SIGTERM.
	bridgeExit = time.Second
	// mostBridges is how many processes of a transport command serve one scenario.
	mostBridges = 100
)

// bridged is the server of a scenario behind a transport command. Each process of the command serves one client.
type bridged struct {
	command transport.Command
	server  *server.Server

	ready   chan struct{} // closed when the first process listens, or has ended
	isReady sync.Once
	done    chan struct{} // closed when no process is left, and none follows

	mu     sync.Mutex
	served chan struct{} // closed when the last client that came has been served; nil before one has come
	fault  error         // why no client can come
}

// serveBridged serves the clients of a scenario over a custom transport.
func (e *Engine) serveBridged(ctx context.Context, endpoint *Endpoint, o server.Options) (scenarioServer, error) {
	command := e.TransportCommand
	var err error
	if command.Args, endpoint.Port, err = withPort(command.Args); err != nil {
		return scenarioServer{}, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &bridged{command: command, server: server.New(o), ready: make(chan struct{}), done: make(chan struct{})}
	go b.run(serving)
	shut := func(context.Context) {
		stop()
		<-b.done
	}
	select {
	case <-b.ready:
	case <-time.After(bridgeReady): // one that says nothing listens by now
	case <-ctx.Done():
	}
	if err := b.failed(); err != nil {
		shut(ctx)
		return scenarioServer{}, err
	}
	return scenarioServer{settle: b.settle, leave: func() {}, shut: shut, failed: b.failed}, nil
}

// withPort replaces the placeholder with a free port, if it is there.
func withPort(args []string) ([]string, int, error) {
	if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, transport.PortPlaceholder) }) {
		return args, 0, nil
	}
	port, err := transport.FreePort()
	if err != nil {
		return nil, 0, err
	}
	filled := make([]string, len(args))
	for i, a := range args {
		filled[i] = strings.ReplaceAll(a, transport.PortPlaceholder, strconv.Itoa(port))
	}
	return filled, port, nil
}

// run keeps a process for the next client.
func (b *bridged) run(ctx context.Context) {
	defer close(b.done)
	for range mostBridges {
		served, err := b.one(ctx)
		b.mu.Lock()
		if b.served == nil && err != nil {
			b.fault = fmt.Errorf("--transport-command: %w", err)
		}
		b.mu.Unlock()
		b.listens()
		if !served || ctx.Err() != nil {
			return
		}
	}
}

// listens records that the first process listens, or has ended.
func (b *bridged) listens() { b.isReady.Do(func() { close(b.ready) }) }

// failed says why no client has been served.
func (b *bridged) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}

// one runs one process and reports whether a client came to it.
func (b *bridged) one(ctx context.Context) (served bool, err error) {
	p, err := b.command.Launch()
	if err != nil {
		return false, err
	}
	defer p.Kill()
	output := &tail{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReader(io.TeeReader(p.Stderr(), output))
		if _, err := lines.ReadSlice('\n'); err == nil || errors.Is(err, bufio.ErrBufferFull) {
			b.listens()
		}
		_, _ = io.Copy(io.Discard, lines)
	}()
	defer func() {
		b.end(p)
		_ = p.Stdout().Close()
		_ = p.Stderr().Close()
		<-read
	}()
	var connected atomic.Bool
	defer context.AfterFunc(ctx, func() {
		if !connected.Load() {
			_ = p.Terminate() // there is nobody to take leave of
		}
		b.end(p)
		_ = p.Stdout().Close()
	})()
	in := bufio.NewReader(p.Stdout())
	if _, err := in.Peek(1); err != nil {
		if ctx.Err() != nil {
			return false, nil
		}
		b.end(p)
		// Another process may keep its stderr open.
		select {
		case <-read:
		case <-time.After(bridgeExit):
		}
		exit := p.Exit()
		return false, fmt.Errorf("the command %s before a client had come; the end of its output: %s", exit.String(),
			wire.Quote(cmp.Or(strings.TrimSpace(output.String()), "(none)"), 400))
	}
	connected.Store(true)
	b.listens()
	end := make(chan struct{})
	defer close(end)
	b.mu.Lock()
	b.served = end
	b.mu.Unlock()
	// The trace shows the end of the session.
	_ = b.server.RunCustom(ctx, in, p.Stdin())
	return true, nil
}

// end ends a process, in order if it ends so.
func (b *bridged) end(p transport.Process) {
	_ = p.Stdin().Close()
	for _, step := range []func(){func() { _ = p.Terminate() }, p.Kill} {
		select {
		case <-p.Done():
			return
		case <-time.After(bridgeExit):
			step()
		}
	}
	<-p.Done()
}

// settle gives the process time to pass on the client's last messages. If no client came to it, the process has time
// to end by itself: it has not begun to listen if it said something. The client is not to blame if the process stays.
func (b *bridged) settle(ctx context.Context) bool {
	b.mu.Lock()
	ended, patience := b.served, bridgeExit
	b.mu.Unlock()
	if ended == nil {
		ended, patience = b.done, bridgeReady
	}
	select {
	case <-ended:
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return true
}
