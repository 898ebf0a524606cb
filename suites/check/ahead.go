package check

import (
	"context"
	"sync/atomic"

	"github.com/mcpconform/mcpconform/reference/client"
)

// ahead is the connection of the check that is begun first, for which a process is started
// beside that of the first session: that leaves a processor free, and the first check need not wait.
type ahead struct {
	check   *Check
	taken   atomic.Bool
	done    chan struct{} // closed once the rest is there
	session *client.Session
	err     error
}

// startAhead connects for one of the checks that will be started in any case.
func (e *Engine) startAhead(ctx context.Context, checks []*Check) {
	if !e.apart() || cap(e.launches) < 2 {
		return
	}
	var soonest *Check
	for _, c := range checks {
		if c.Needs.Session == Raw && !c.callsTools() && e.inapplicable(c) == "" && c.Needs.Server == "" && c.Needs.Lacking == nil &&
			(soonest == nil || c.order() < soonest.order()) {
			soonest = c
		}
	}
	if soonest == nil {
		return
	}
	a := &ahead{check: soonest, done: make(chan struct{})}
	e.ahead = a
	e.closers.Go(func() {
		defer close(a.done)
		a.session, a.err = e.dial(ctx, soonest.Name, soonest.options())
	})
}

// connectFor returns a connection for a check alone, on which nothing was sent.
func (e *Engine) connectFor(ctx context.Context, c *Check) (*client.Session, error) {
	if a := e.ahead; a != nil && a.check == c && a.taken.CompareAndSwap(false, true) {
		<-a.done
		switch {
		case a.err != nil:
		case closed(a.session): // which it need not hold against the check
			e.close(ctx, a.session)
		default:
			a.session.Options.NoOp = e.target.noOp
			return a.session, nil
		}
	}
	return e.connect(ctx, c.Name, c.options())
}

// dropAhead closes the connection if its check was not run.
func (e *Engine) dropAhead(ctx context.Context) {
	if a := e.ahead; a != nil && a.taken.CompareAndSwap(false, true) {
		<-a.done
		if a.session != nil {
			e.close(ctx, a.session)
		}
	}
}
