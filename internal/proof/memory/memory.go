// Package memory is a network within the program, for servers and clients that do
// not use the machine's network. A goroutine that waits on it waits only for other
// goroutines of the program, so that in a bubble of testing/synctest time passes
// as soon as all of them wait.
package memory

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// Network is a loopback interface of its own. The zero value is ready for use.
// It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[int]*listener // by port
	last      int               // port that was given
	free      time.Time         // when the next connection can be made
}

const (
	firstPort = 20_000
	// moment is how long it takes to make a connection. No two are made at the
	// same time, so that what happens on them has an order in virtual time too.
	moment = 100 * time.Microsecond
	// backlog is how many connections may wait to be accepted.
	backlog = 128
)

// Listen opens a listener at 127.0.0.1 and a port that was not used before.
func (n *Network) Listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners, n.last = make(map[int]*listener), firstPort
	}
	n.last++
	l := &listener{network: n, addr: loopback(n.last), waiting: make(chan *conn, backlog), closed: make(chan struct{})}
	n.listeners[n.last] = l
	return l, nil
}

func loopback(port int) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

// Dial connects to a listener of the network. Every other address of a machine
// refuses the connection, and localhost is the only name.
func (n *Network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	failed := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	host, digits, err := net.SplitHostPort(addr)
	if err != nil {
		return failed(err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		return failed(fmt.Errorf("the port %q is not a number", digits))
	}
	if !transport.Loopback(host) && net.ParseIP(host) == nil {
		return failed(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	if err := n.turn(ctx); err != nil {
		return failed(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[port]
	if l == nil || !transport.Loopback(host) || len(l.waiting) == backlog {
		return failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	n.last++
	near, far := pair(loopback(n.last), l.addr)
	l.waiting <- far
	return near, nil
}

// turn waits until a connection can be made.
func (n *Network) turn(ctx context.Context) error {
	n.mu.Lock()
	if now := time.Now(); n.free.Before(now) {
		n.free = now
	}
	n.free = n.free.Add(moment)
	timer := time.NewTimer(time.Until(n.free))
	n.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type listener struct {
	network *Network
	addr    *net.TCPAddr
	waiting chan *conn    // filled under the network's lock
	closed  chan struct{} // closed under the network's lock
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.waiting:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
}

// Addr returns where the listener is reached.
func (l *listener) Addr() net.Addr { return l.addr }

// Close ends the connections that were not accepted, and refuses further ones.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.listeners[l.addr.Port] != l {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	delete(l.network.listeners, l.addr.Port)
	close(l.closed)
	for {
		select {
		case c := <-l.waiting:
			_ = c.Close()
		default:
			return nil
		}
	}
}
