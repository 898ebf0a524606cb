package check

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// limits is the engine's knowledge of rate limits: a server may limit the rate of requests
// (server/tools#security-considerations). All connections wait together, and send no more at a time than was taken.
type limits struct {
	turn  chan struct{} // holds an entry while a request is the next one to be sent
	mu    sync.Mutex
	until time.Time     // before which nothing is sent
	spent time.Duration // waiting because the server asked for it
	asked time.Duration // how long the server last asked to wait after 429
	began time.Time     // when the wait was over
	sent  int           // requests since then
	most  int           // that the server took in as long a time; 0: not known
}

// Bounds of the waits for a server that limits its requests.
const (
	maxLimitWait  = 5 * time.Second // at a time
	maxLimitSpent = 2 * time.Minute // in the whole run
	maxLimited    = 3               // times that a check is run again alone
)

// Admit waits until the server takes one more request, as far as is known. The first to ask is the first to be sent.
func (l *limits) Admit(ctx context.Context) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-l.turn }()
	for {
		until := l.opens()
		if until.IsZero() || !pause(ctx, time.Until(until)) {
			return
		}
	}
}

// opens counts one more request, or returns until when it has to wait.
func (l *limits) opens() (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, over := time.Now(), l.began.Add(l.asked)
	full := l.most > 0 && l.sent >= l.most
	switch {
	case now.Before(l.until):
		return l.until
	case full && now.Before(over):
		return over
	case full && now.After(l.until.Add(maxLimitWait)):
		l.most++ // it may take more by now
		fallthrough
	case l.most > 0 && !now.Before(over):
		l.began, l.sent = now, 0
	}
	l.sent++
	return time.Time{}
}

// Refused takes in that the server has refused a request for now.
func (l *limits) Refused(head *wire.Event) {
	asked := client.RetryAfter(head)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.close(asked) || head.HTTP.Status != http.StatusTooManyRequests {
		return
	}
	if l.most == 0 {
		l.most = l.sent
	}
	l.most = max(1, l.most-1)
	l.asked, l.began, l.sent = asked, l.until, 0
}

// close has all requests wait for a time, and reports false if that takes too long.
func (l *limits) close(asked time.Duration) bool {
	if asked > maxLimitWait || l.spent > maxLimitSpent {
		return false
	}
	if now := time.Now(); l.until.Before(now) {
		l.until = now.Add(asked)
		l.spent += asked
	}
	return true
}

// wait waits until the server takes requests again, all who wait together. It
// reports false when that takes too long.
func (l *limits) wait(ctx context.Context, asked time.Duration) bool {
	l.mu.Lock()
	ok := l.close(asked)
	l.mu.Unlock()
	return ok && l.settle(ctx)
}

// settle waits until the server takes requests again, as far as is known.
func (l *limits) settle(ctx context.Context) bool {
	l.mu.Lock()
	until := l.until
	l.mu.Unlock()
	return pause(ctx, time.Until(until))
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
