package check

import (
	"context"
	"sync"
	"time"
)

// limits is the engine's knowledge of rate limits: a server may limit the rate of requests
// (server/tools#security-considerations).
type limits struct {
	mu    sync.Mutex
	until time.Time     // before which nothing is asked again
	spent time.Duration // waiting
}

// Bounds of the waits for a server that limits its requests.
const (
	maxLimitWait  = 5 * time.Second // at a time
	maxLimitSpent = 2 * time.Minute // in the whole run
	maxLimited    = 3               // times that a check is run again alone
)

// wait waits until the server takes requests again, all who wait together. It
// reports false when that takes too long.
func (l *limits) wait(ctx context.Context, asked time.Duration) bool {
	l.mu.Lock()
	if asked > maxLimitWait || l.spent > maxLimitSpent {
		l.mu.Unlock()
		return false
	}
	if now := time.Now(); l.until.Before(now) {
		l.until = now.Add(asked)
		l.spent += asked
	}
	until := l.until
	l.mu.Unlock()
	return pause(ctx, time.Until(until))
}

// settle waits until the server takes requests again, as far as is known.
func (l *limits) settle(ctx context.Context) {
	l.mu.Lock()
	until := l.until
	l.mu.Unlock()
	pause(ctx, time.Until(until))
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
