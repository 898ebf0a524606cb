package client

import (
	"context"
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

// grantsKey is the key of a function in a context.
type grantsKey struct{}

// WithGrants returns a context in which granted is called with each moment that a wait for a peer gets beyond its
// limit, as the machine is busy.
func WithGrants(ctx context.Context, granted func(time.Duration)) context.Context {
	return context.WithValue(ctx, grantsKey{}, granted)
}

// grants reports whether the peer gets another moment beyond its limit.
func (c *contention) grants(ctx context.Context, limit time.Duration) bool {
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
	if granted, ok := ctx.Value(grantsKey{}).(func(time.Duration)); ok {
		granted(moment)
	}
	return true
}
