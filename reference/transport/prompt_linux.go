package transport

import (
	"net"
	"syscall"
)

// prompts says whether [promptly] has an effect here.
const prompts = true

// promptly returns a connection that acknowledges what was read at once. Otherwise a system may wait with
// that, on a connection that has been in use for a while, and many servers send no further small piece
// until the last one was acknowledged: each answer in two pieces would take 40 ms.
func promptly(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &promptConn{tcp, raw}
}

type promptConn struct {
	*net.TCPConn
	raw syscall.RawConn
}

func (c *promptConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		// It holds until the system changes its mind. Without it everything works, only slower.
		_ = c.raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
	return n, err
}
