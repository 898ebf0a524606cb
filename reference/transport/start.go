package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/lastwords"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// PortPlaceholder stands for a free port in the command and the URL of a Start.
const PortPlaceholder = "{port}"

// Start is an HTTP server to be started.
type Start struct {
	Command Command
	// Launcher replaces Command unless it is nil.
	Launcher Launcher
	// Endpoint at which the server will accept connections.
	Endpoint Endpoint
	// Wait bounds how long that may take. Zero: 30 s.
	Wait time.Duration
	// ExitWait is how long the server may take to exit after SIGTERM. Zero:
	// ReasonableExit.
	ExitWait time.Duration
	// Log, unless nil, records start, output, signals and exit; it is ended
	// with the server.
	Log *wire.Log
}

const (
	defaultStartWait = 30 * time.Second
	startBackoff     = 20 * time.Millisecond
	startBackoffMost = 250 * time.Millisecond
)

// Started is an HTTP server that a Start has started.
type Started struct {
	Endpoint Endpoint // with the port filled in

	start    Start // with the port filled in
	name     string
	exitWait time.Duration
	proc     Process
	log      *wire.Log
	tail     tail
	done     chan struct{} // closed when the process is gone and its output was read
}

// Shell returns the arguments that run a command line in the system's shell.
func Shell(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", line}
	}
	return []string{"sh", "-c", line}
}

// ShellQuote returns a text as one word for [Shell]. A plain word gets no quotes.
func ShellQuote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._+@,=-"
	switch {
	case text != "" && strings.Trim(text, plain) == "":
		return text
	case runtime.GOOS == "windows":
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Run starts the server and waits until it accepts connections. The error is a
// *StartError, which tells the end of the server's output when it has exited.
func (s Start) Run(ctx context.Context) (*Started, error) {
	server, err := s.run(ctx)
	if err != nil {
		return nil, &StartError{Target: s.target(), Err: err, Process: true}
	}
	return server, nil
}

// target names the program for errors. A command line may hold secrets, and the name of
// the shell that runs it says nothing.
func (s Start) target() string {
	if s.Launcher == nil && len(s.Command.Args) == 3 && slices.Equal(s.Command.Args, Shell(s.Command.Args[2])) {
		return "the server"
	}
	return s.launcher().String()
}

func (s Start) launcher() Launcher {
	if s.Launcher != nil {
		return s.Launcher
	}
	return s.Command
}

func (s Start) run(ctx context.Context) (server *Started, err error) {
	log := s.Log
	if log == nil {
		log = wire.NewTrace(wire.DefaultLimits).Connect(NameHTTP, "server process")
	}
	defer func() {
		if err != nil {
			log.End()
		}
	}()
	if err := s.fillPort(); err != nil {
		return nil, err
	}
	network, addr, err := s.Endpoint.address()
	if err != nil {
		return nil, err
	}
	if accepts(ctx, network, addr) {
		return nil, fmt.Errorf("something already accepts connections at %s", addr)
	}
	proc, err := s.launcher().Launch()
	if err != nil {
		return nil, err
	}
	server = &Started{
		Endpoint: s.Endpoint, start: s, name: s.launcher().String(), exitWait: s.ExitWait,
		proc: proc, log: log, done: make(chan struct{}),
	}
	if server.exitWait == 0 {
		server.exitWait = ReasonableExit
	}
	_, _ = log.Append(wire.Event{Kind: wire.KindStart, From: wire.Server, Note: server.name})
	go server.own()
	if err := server.await(ctx, s.Wait, network, addr); err != nil {
		server.Stop(ctx)
		return nil, err
	}
	return server, nil
}

// FreePort returns a port of the loopback interface at which nothing listens. Systems hand
// out none of those it chooses from by themselves, so that no other program gets it meanwhile.
func FreePort() (int, error) {
	const first, end, tries = 15_000, 32_768, 100
	var err error
	for range tries {
		port := first + rand.IntN(end-first)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			if err = l.Close(); err == nil {
				return port, nil
			}
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// fillPort replaces the placeholder with a free port.
func (s *Start) fillPort() error {
	if !strings.Contains(s.Endpoint.URL, PortPlaceholder) {
		return nil
	}
	free, err := FreePort()
	if err != nil {
		return err
	}
	port := strconv.Itoa(free)
	s.Endpoint.URL = strings.ReplaceAll(s.Endpoint.URL, PortPlaceholder, port)
	args := make([]string, len(s.Command.Args))
	for i, arg := range s.Command.Args {
		args[i] = strings.ReplaceAll(arg, PortPlaceholder, port)
	}
	s.Command.Args = args
	return nil
}

// address returns where a server at the endpoint accepts connections.
func (e Endpoint) address() (network, addr string, err error) {
	u, socket, err := parseURL(e.URL)
	if err != nil {
		return "", "", err
	}
	if e.Socket != "" {
		socket = e.Socket
	}
	if socket != "" {
		return "unix", socket, nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return "tcp", net.JoinHostPort(u.Hostname(), port), nil
}

func accepts(ctx context.Context, network, addr string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// await tries until the server accepts a connection, exits or runs out of time.
func (s *Started) await(ctx context.Context, wait time.Duration, network, addr string) error {
	if wait == 0 {
		wait = defaultStartWait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait,
		&TimeoutError{Missed: "it did not accept connections at " + addr, After: wait, Start: true})
	defer cancel()
	for backoff := startBackoff; ; backoff = min(2*backoff, startBackoffMost) {
		if accepts(ctx, network, addr) {
			return nil
		}
		select {
		case <-time.After(backoff):
		case <-s.proc.Done():
			<-s.done
			return s.withOutput(fmt.Errorf("it %s before it accepted connections at %s", s.proc.Exit(), addr))
		case <-ctx.Done():
			return s.withOutput(context.Cause(ctx))
		}
	}
}

// withOutput adds to an error what the server has written: the lines that say why it
// ended, else the last ones.
func (s *Started) withOutput(err error) error {
	lines, known := lastwords.Find(string(s.Endpoint.redactor().Bytes(s.Output())))
	switch {
	case len(lines) == 0:
		return fmt.Errorf("%w; it has not written any output", err)
	case known:
		return fmt.Errorf("%w; its last words: %s", err, lastwords.Quote(lines))
	}
	return fmt.Errorf("%w; its output ends with: %s", err, lastwords.Quote(lines))
}

// own reads the output until the process is gone, and outlives its goroutines.
func (s *Started) own() {
	defer close(s.done)
	defer s.log.End()
	var readers sync.WaitGroup
	readers.Go(func() { s.read(s.proc.Stdout(), Stdout) })
	readers.Go(func() { s.read(s.proc.Stderr(), Stderr) })
	<-s.proc.Done()
	// Processes that it leaves behind must not outlive it.
	s.proc.Kill()
	drained := ended(&readers)
	awaitRest(s.proc, drained)
	_ = s.proc.Stdin().Close()
	_ = s.proc.Stdout().Close()
	_ = s.proc.Stderr().Close()
	<-drained
	exit := s.proc.Exit()
	_, _ = s.log.Append(wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &exit})
}

// read records the beginning of an output and keeps its end.
func (s *Started) read(r io.Reader, stream string) {
	lines := bufio.NewReaderSize(r, stderrLine)
	kept := 0
	for {
		raw, err := lines.ReadSlice('\n')
		s.tail.write(raw)
		if len(raw) > 0 && kept < stderrHead {
			kept += len(raw) + stderrCost
			text := bytes.Clone(bytes.TrimRight(raw, "\r\n"))
			_, _ = s.log.Append(wire.Event{Kind: wire.KindStderr, From: wire.Server, Stream: stream, Raw: text})
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// Restart stops what is left of the server and starts it again, at the same
// endpoint. The log, unless nil, records the new process.
func (s *Started) Restart(ctx context.Context, log *wire.Log) (*Started, error) {
	s.Stop(ctx)
	again := s.start
	again.Log = log
	return again.Run(ctx)
}

// Exit tells how the server exited, once it has.
func (s *Started) Exit() wire.Exit { return s.proc.Exit() }

// Output returns the end of what the server has written to stdout and stderr.
func (s *Started) Output() []byte {
	kept, _ := s.tail.end()
	return kept
}

// Stop sends SIGTERM, waits, kills what is left, and returns when nothing of
// the server is left. A context that ends shortens the wait.
func (s *Started) Stop(ctx context.Context) {
	select {
	case <-s.proc.Done():
		<-s.done
		return
	default:
	}
	sendSignal(s.log, "SIGTERM", s.proc.Terminate)
	select {
	case <-s.done:
		return
	case <-time.After(s.exitWait):
	case <-ctx.Done():
	}
	sendSignal(s.log, "SIGKILL", func() error { s.proc.Kill(); return nil })
	<-s.done
}
