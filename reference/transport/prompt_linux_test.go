package transport

import (
	"net"
	"net/http"
	"testing"
)

// A connection that is kept acknowledges at once what comes, and others need not: their systems
// still do so by themselves.
func TestKeptConnectionsArePrompt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	own := &http.Transport{DialContext: quietly(new(net.Dialer).DialContext)}
	for _, tt := range []struct {
		name string
		of   *http.Transport
		want bool
	}{{"kept", keep(own), true}, {"of an exchange of its own", own, false}} {
		conn, err := tt.of.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, prompt := conn.(*quietConn).Conn.(*promptConn); prompt != tt.want {
			t.Errorf("the connection %s is prompt: %t", tt.name, prompt)
		}
		_ = conn.Close()
	}
}
