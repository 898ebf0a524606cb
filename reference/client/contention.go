package client

import (
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// contention grants a peer more time while it waits for a processor. That is asked only when
// its time is over: then it is watched for a moment, and for another as long as it has waited for
// a share of all of them. A single moment says little: it may be the one in which nobody else ran.
type contention struct {
	conn    transport.Conn
	granted time.Duration // so far
	waited  time.Duration // by the peer, until the first look
	watched bool          // there was one
}

const (
	watchTime   = 250 * time.Millisecond
	watchShare  = 4 // of a limit or, of what was granted, what has to be spent waiting
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
	if !c.watched {
		c.waited, c.watched = waited, true
	} else if waited-c.waited <= c.granted/watchShare {
		return false
	}
	if !busy || c.granted+moment > mostGranted*limit {
		return false
	}
	c.granted += moment
	return true
}
