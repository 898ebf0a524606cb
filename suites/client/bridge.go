package client

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// The bridge is the server process that a client starts over stdio: a small
// command that connects back to this program, where the server runs. The two
// exchange frames: a byte for the kind, four for the length, and the data.
const (
	frameHello  = 'h' // the token; bridge to harness, first
	frameInput  = 'i' // bytes of stdin
	frameEOF    = 'e' // stdin has ended
	frameSignal = 's' // a signal arrived, by name
	frameOutput = 'o' // bytes for stdout
	frameError  = 'r' // bytes for stderr
	frameExit   = 'x' // exit with the status in one byte
)

// maxFrame bounds the bytes of one frame.
const maxFrame = 64 << 10

// helloTime is how long a connection may take to send its token.
const helloTime = 5 * time.Second

var errFrame = errors.New("a frame of the bridge is broken")

type frames struct {
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex
}

func newFrames(conn net.Conn) *frames { return &frames{conn: conn, r: bufio.NewReader(conn)} }

func (f *frames) write(kind byte, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), maxFrame)
		head := [5]byte{kind}
		binary.BigEndian.PutUint32(head[1:], uint32(n))
		if _, err := f.conn.Write(append(head[:], data[:n]...)); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (f *frames) read() (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, errFrame
	}
	data = make([]byte, n)
	_, err = io.ReadFull(f.r, data)
	return head[0], data, err
}

// frameWriter writes to one of the bridge's outputs.
type frameWriter struct {
	frames *frames
	kind   byte
}

func (w frameWriter) Write(p []byte) (int, error) {
	if err := w.frames.write(w.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Bridge runs the side of the bridge process: it copies stdin to the harness at
// addr, and what the harness sends to stdout and stderr, until the harness ends it.
// It returns the status with which the process has to exit.
func Bridge(ctx context.Context, addr, token string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 1, fmt.Errorf("connect to mcpconform: %w", err)
	}
	defer conn.Close()
	f := newFrames(conn)
	if err := f.write(frameHello, []byte(token)); err != nil {
		return 1, fmt.Errorf("connect to mcpconform: %w", err)
	}
	// The process must not die when the client no longer reads.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(signals)
	// Both goroutines end with the process, which follows the return.
	go func() {
		for s := range signals {
			_ = f.write(frameSignal, []byte(signalName(s)))
		}
	}()
	go func() {
		buffer := make([]byte, maxFrame)
		for {
			n, err := stdin.Read(buffer)
			if n > 0 && f.write(frameInput, buffer[:n]) != nil {
				return
			}
			if err != nil {
				_ = f.write(frameEOF, nil)
				return
			}
		}
	}()
	for {
		kind, data, err := f.read()
		switch {
		case err != nil:
			return 0, nil // the harness is gone
		case kind == frameOutput:
			_, err = stdout.Write(data)
		case kind == frameError:
			_, err = stderr.Write(data)
		case kind == frameExit && len(data) == 1:
			return int(data[0]), nil
		}
		// The server goes on when the client no longer reads, until its stdin ends
		// or a signal comes.
		_ = err
	}
}

func signalName(s os.Signal) string {
	switch s {
	case syscall.SIGTERM:
		return "SIGTERM"
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}
