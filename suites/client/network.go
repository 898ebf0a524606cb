package client

import (
	"context"
	"net"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Network is where the servers of scenarios listen.
type Network interface {
	// Listen opens a listener at a loopback address.
	Listen() (net.Listener, error)
	// Dial connects to such a listener.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

func (e *Engine) listen() (net.Listener, error) {
	if e.Network != nil {
		return e.Network.Listen()
	}
	return server.Listen("127.0.0.1:0")
}
