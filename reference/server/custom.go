package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// RunCustom serves one client over a custom transport, whose bridge passes messages on as
// lines, until the input ends or the context does.
func (s *Server) RunCustom(ctx context.Context, in io.Reader, out io.Writer) error {
	read := func(lines chan<- line, gone <-chan struct{}) { readLines(in, s.options.MaxMessage, lines, gone) }
	l := &streamLink{name: transport.NameCustom, in: transport.Stdin, out: transport.Stdout, write: writeTo(out)}
	return s.runStream(ctx, l, read)
}

// ServeWebSocket serves each client that opens a WebSocket, until the context ends and
// all have been closed. It closes the listener.
func (s *Server) ServeWebSocket(ctx context.Context, l net.Listener) error {
	var serving sync.WaitGroup
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		s.webSocket(ctx, w, r)
	})
	if wrap := s.behaviour.HTTP.Middleware; wrap != nil {
		handler = wrap(handler)
	}
	h := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		// It leaves alone the connections that are WebSockets; the context ends these.
		_ = h.Close()
		if err = <-ended; errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
	}
	serving.Wait()
	return err
}

// lastWrite is how long a client may take to read what was sent before its session ended.
const lastWrite = 2 * time.Second

// webSocket serves one client.
func (s *Server) webSocket(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	frames, err := transport.AcceptFrames(w, r, s.options.MaxMessage)
	if err != nil {
		return // it was answered
	}
	var running sync.WaitGroup
	running.Add(1) // for the reader
	defer running.Wait()
	l := &streamLink{
		name: transport.NameCustom, in: transport.StreamWebSocket, out: transport.StreamWebSocket,
		write: func(frame []byte) error { return frames.Write(ctx, bytes.TrimSuffix(frame, []byte{'\n'})) },
	}
	// The trace, if there is one, says why it ended.
	_ = s.runStream(ctx, l, func(lines chan<- line, gone <-chan struct{}) {
		defer running.Done()
		defer close(lines)
		running.Go(func() {
			<-gone
			// First what is on its way, unless the client does not read it.
			patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			waitFor(patient, l.stopped)
			frames.Close(context.WithoutCancel(ctx))
		})
		for {
			text, dropped, err := frames.Read()
			if err != nil {
				return
			}
			select {
			case lines <- line{text: text, dropped: dropped}:
			case <-gone:
				return
			}
			if dropped > 0 {
				return
			}
		}
	})
}
