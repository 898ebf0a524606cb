package memory

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// capacity is how many bytes one side may write before the other has to read,
// about what two sockets hold.
const capacity = 256 << 10

// pair returns the two ends of a connection.
func pair(near, far net.Addr) (*conn, *conn) {
	there, back := newPipe(), newPipe()
	return &conn{in: back, out: there, local: near, remote: far}, &conn{in: there, out: back, local: far, remote: near}
}

// conn is one end of a connection.
type conn struct {
	in, out       *pipe
	local, remote net.Addr
}

// Read reads what has come. After the peer has closed, it returns what is left
// and then io.EOF.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.failed("read", err)
}

// Write writes all, waiting for the peer to read where it has to. It fails once
// the peer has closed.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.failed("write", err)
}

func (c *conn) failed(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends both directions. The peer may still read what was written.
func (c *conn) Close() error {
	c.out.finish()
	c.in.abandon()
	return nil
}

// CloseWrite tells the peer that nothing more will be written.
func (c *conn) CloseWrite() error {
	c.out.finish()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.limit(&c.in.reading, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.limit(&c.out.writing, t)
	return nil
}

// pipe is one direction of a connection.
type pipe struct {
	mu       sync.Mutex
	changed  sync.Cond
	data     []byte
	at       int  // so many bytes of data were read
	finished bool // the writer has closed
	gone     bool // the reader has closed
	reading  deadline
	writing  deadline
}

// deadline of the calls on one end of a pipe.
type deadline struct {
	timer  *time.Timer // nil without one
	passed bool
}

func newPipe() *pipe {
	p := new(pipe)
	p.changed.L = &p.mu
	return p
}

func (p *pipe) read(to []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.gone:
			return 0, net.ErrClosed
		case p.reading.passed:
			return 0, os.ErrDeadlineExceeded
		case p.at < len(p.data):
			n := copy(to, p.data[p.at:])
			if p.at += n; p.at == len(p.data) {
				p.data, p.at = p.data[:0], 0 // what is written next needs no other place
			}
			p.changed.Broadcast()
			return n, nil
		case p.finished:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}

func (p *pipe) write(from []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.finished:
			return n, net.ErrClosed
		case p.writing.passed:
			return n, os.ErrDeadlineExceeded
		case p.gone:
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case n == len(from):
			return n, nil
		case len(p.data)-p.at < capacity:
			chunk := from[n:min(len(from), n+capacity-(len(p.data)-p.at))]
			if p.at > capacity {
				p.data, p.at = append(p.data[:0], p.data[p.at:]...), 0
			}
			p.data = append(p.data, chunk...)
			n += len(chunk)
			p.changed.Broadcast()
			if n == len(from) {
				return n, nil
			}
		}
		p.changed.Wait()
	}
}

// finish ends the pipe on the writer's side.
func (p *pipe) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
	p.writing.stop()
	p.changed.Broadcast()
}

// abandon ends the pipe on the reader's side.
func (p *pipe) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone, p.data, p.at = true, nil, 0
	p.reading.stop()
	p.changed.Broadcast()
}

// limit sets a deadline of the pipe; the zero time takes it away.
func (p *pipe) limit(d *deadline, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.stop()
	d.passed = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		p.changed.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if d.timer == timer { // and no other one was set meanwhile
			d.passed = true
			p.changed.Broadcast()
		}
	})
	d.timer = timer
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
