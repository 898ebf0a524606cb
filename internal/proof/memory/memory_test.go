package memory_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/mcpconform/mcpconform/internal/proof/memory"
)

// connected returns both ends of a connection.
func connected(t *testing.T) (client, server net.Conn) {
	t.Helper()
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if client, err = network.Dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, c2 = connected(t)
		return c1, c2, func() { c1.Close(); c2.Close() }, nil
	})
}

func TestDial(t *testing.T) {
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := network.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	var unknown *net.DNSError
	for _, test := range []struct {
		addr string
		ctx  context.Context
		is   func(error) bool
	}{
		{"localhost:" + port, t.Context(), func(err error) bool { return err == nil }},
		{"192.0.2.1:" + port, t.Context(), func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"127.0.0.1:1", t.Context(), func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }},
		{"example.com:" + port, t.Context(), func(err error) bool { return errors.As(err, &unknown) && unknown.IsNotFound }},
		{"localhost:" + port, cancelled, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		conn, err := network.Dial(test.ctx, "tcp", test.addr)
		if !test.is(err) {
			t.Errorf("%s: %v", test.addr, err)
		}
		if err == nil {
			defer conn.Close()
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener accepts: %v", err)
	}
	if _, err := waiting.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a connection that nobody accepted: %v", err)
	}
	if _, err := network.Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed listener is reached: %v", err)
	}
}

// TestClosed tests that bytes written before the end can be read, and that later writes fail.
func TestClosed(t *testing.T) {
	client, server := connected(t)
	if _, err := client.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "last" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
	client.Close()
	if _, err := server.Write([]byte("more")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("written to a peer that has gone: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after the end: %v", err)
	}
}

// One side may write a good deal that the other has not read, and waits no
// longer than its deadline for more.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connected(t)
		defer client.Close()
		defer server.Close()
		flood := make([]byte, 10<<20)
		began := time.Now()
		client.SetWriteDeadline(began.Add(time.Hour))
		n, err := client.Write(flood)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n < 64<<10 || n == len(flood) {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("the deadline passed after %v", took)
		}
		client.SetWriteDeadline(time.Time{})
		go func() {
			client.Write(flood[n:])
			client.Close()
		}()
		got, err := io.ReadAll(server)
		if !bytes.Equal(got, flood) || err != nil {
			t.Errorf("read %d bytes: %v", len(got), err)
		}
	})
}
