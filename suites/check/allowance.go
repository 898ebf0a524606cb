package check

import (
	"context"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
)

// allowance is the time that a check has. It grows with what its waits are granted on a busy machine, up to as much
// again.
type allowance struct {
	mu    sync.Mutex
	end   *time.Timer
	at    time.Time // when it is over
	spare time.Duration
}

// within returns a context that ends when the time of a check is over.
func within(ctx context.Context, limit time.Duration) (context.Context, *allowance, func()) {
	ctx, end := context.WithCancelCause(ctx)
	a := &allowance{at: time.Now().Add(limit), spare: limit}
	a.end = time.AfterFunc(limit, func() { end(errCheckTime) })
	return client.WithGrants(ctx, a.grow), a, func() {
		a.end.Stop()
		end(nil)
	}
}

func (a *allowance) grow(granted time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	granted = min(granted, a.spare)
	a.spare -= granted
	a.at = a.at.Add(granted)
	if a.end.Stop() {
		a.end.Reset(time.Until(a.at))
	}
}

// left returns how much time is left to the check.
func (t *T) left() time.Duration {
	t.allowance.mu.Lock()
	at := t.allowance.at
	t.allowance.mu.Unlock()
	if end, ok := t.Context.Deadline(); ok && end.Before(at) {
		at = end
	}
	return time.Until(at)
}
