package client

import (
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// contention grants a peer more time while it waits for a processor. That is asked only when
// its time is over: then it is watched for a moment, and for another as long as it waits.
type contention struct {
	conn    transport.Conn
	granted time.Duration // so far
	waited  time.Duration // by the peer, until the last look
	watched bool          // there was one
}

const (
	watchTime   = 250 * time.Millisecond
	watchShare  = 4 // of a limit or, of a moment, what has to be spent waiting
	mostGranted = 4 // limits
)

// grants reports whether the peer gets another moment beyond its limit.
func (c *contention) grants(limit time.Duration) bool {
	conn, ok := c.conn.(transport.Contender)
	if !ok {
		return false
	}
	waited, busy := conn.Contention()
	moment := min(watchTime, limit/watchShare)
	waits := !c.watched || waited-c.waited > moment/watchShare
	if !busy || !waits || c.granted+moment > mostGranted*limit {
		return false
	}
	c.granted, c.waited, c.watched = c.granted+moment, waited, true
	return true
}
