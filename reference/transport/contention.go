package transport

import "time"

// Contender is a connection that can tell whether its peer has to wait for a processor. A
// peer that the machine keeps from answering is not to blame.
type Contender interface {
	// Contention returns how long the peer waited for a processor so far, which only means
	// something beside an earlier value. It is not known on an idle machine, of a peer
	// elsewhere and of one in this program.
	Contention() (waited time.Duration, known bool)
}

// Contention is that of the process and of all that it has started.
func (c *StdioConn) Contention() (time.Duration, bool) {
	p, ok := c.proc.(*osProcess)
	if !ok {
		return 0, false
	}
	if _, busy := contention(); !busy {
		return 0, false
	}
	return p.queued(), true
}

// Contention is that of the machine, where the server is on it.
func (l *httpLink) Contention() (time.Duration, bool) {
	if l.site.elsewhere {
		return 0, false
	}
	return contention()
}
