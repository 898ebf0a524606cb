package client

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// launchLimiter decides when clients may be launched, and whether any more are.
type launchLimiter struct {
	queue
	turns
	pace
	over chan struct{} // closed when no client is launched any more
	once sync.Once
	why  string // set before over is closed
}

// presence is the number of clients that may be present for each client that may work.
const presence = 16

func newLaunchLimiter(parallel int) *launchLimiter {
	if parallel <= 0 {
		parallel = 2 * runtime.GOMAXPROCS(0)
	}
	return &launchLimiter{
		queue: queue{working: parallel}, turns: turns{most: presence * parallel, there: make(map[*slot]bool)},
		pace: pace{hanging: make(chan struct{})}, over: make(chan struct{}),
	}
}

// notLaunched begins a reason to launch no client any more.
const notLaunched = "the client was not launched any more: with an ordinary server "

// stop stops all further launches, for the given reason.
func (l *launchLimiter) stop(why string) {
	l.once.Do(func() {
		l.why = why
		close(l.over)
	})
}

// stopped returns the reason why no client is launched any more, or "".
func (l *launchLimiter) stopped() string {
	select {
	case <-l.over:
		return l.why
	default:
		return ""
	}
}

// acquire waits until a client may be launched. It returns its slot, or the reason not to launch it. A new caller
// comes before all waiters.
func (l *launchLimiter) acquire(ctx context.Context, scenario *Scenario, w *waiter) (s *slot, why string) {
	s = &slot{limiter: l}
	if scenario.Name != Baseline {
		if w == nil {
			w = l.wait(true) // it had to wait for the outcome of another launch
		}
		s.working = w
		select {
		case <-w.ready:
		case <-l.hanging:
			s.idle()
		case <-l.over:
		case <-ctx.Done():
		}
	}
	l.enter(ctx, l.over, s)
	if why = l.stopped(); ctx.Err() != nil {
		why = cutShort(ctx)
	}
	if why == "" {
		return s, ""
	}
	s.release()
	return nil, why
}

// slot is the permission for one client to run.
type slot struct {
	limiter *launchLimiter
	working *waiter // nil if it only waits
	others  bool    // another client is or was present at the same time
}

// idle makes room for a client that works, since this one only waits.
func (s *slot) idle() {
	if s.working != nil {
		s.limiter.queue.leave(s.working)
		s.working = nil
	}
}

// release gives the slot back.
func (s *slot) release() {
	s.idle()
	c := &s.limiter.turns
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.there, s); c.next != nil { // which may enter now
		close(c.next)
		c.next = nil
	}
}

// queue decides which clients may work. Only a few may at a time, so that each gets enough of the machine. Clients
// that merely wait make room for others, so hanging clients wait for their time limits together.
type queue struct {
	mu      sync.Mutex
	opened  bool      // others than the baseline may be launched
	working int       // how many clients may work at a time
	free    int       // how many more clients may work
	waiters []*waiter // for that, if none may
}

// waiter is one of the clients that wait to be launched.
type waiter struct {
	ready chan struct{} // closed when it is the client's turn
}

// open permits launches beyond the baseline. They wait until the client has sent something there, so a client that
// cannot work at all costs few launches.
func (q *queue) open() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.opened {
		q.opened, q.free = true, q.working
		q.advance()
	}
}

// wait adds a waiter before all others, or behind them.
func (q *queue) wait(first bool) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &waiter{make(chan struct{})}
	at := len(q.waiters)
	if first {
		at = 0
	}
	q.waiters = slices.Insert(q.waiters, at, w)
	q.advance()
	return w
}

// leave takes a waiter out, whether or not it was its turn.
func (q *queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		return
	}
	q.free++
	q.advance()
}

// advance lets the clients work that have waited longest, up to the free number.
func (q *queue) advance() {
	for q.free > 0 && len(q.waiters) > 0 {
		close(q.waiters[0].ready)
		q.waiters = q.waiters[1:]
		q.free--
	}
}

// inTurn lets one client work at a time from now on. No client may be present at the call.
func (q *queue) inTurn() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = 1
}

// turns decides how many clients may be present, of those that work and those that wait.
type turns struct {
	mu    sync.Mutex
	most  int
	there map[*slot]bool // clients that run
	next  chan struct{}  // closed when the next one ends; nil if none waits for that
	mode  mode
	slow  bool // one was silent beside others until its time limit, and has spoken alone
}

// mode says whether clients run one after the other.
type mode int

const (
	together mode = iota
	trying        // one is launched alone, as it did nothing beside another
	separate      // that has made it speak: it can run only once at a time
	final         // that has made no difference, and is not tried again
)

// enter waits until no other client is present, if clients run one after the other, or else until few enough are.
func (c *turns) enter(ctx context.Context, over <-chan struct{}, s *slot) {
	for {
		c.mu.Lock()
		most := c.most
		if c.mode == trying || c.mode == separate {
			most = 1
		}
		if len(c.there) < most {
			s.others = len(c.there) > 0
			for other := range c.there {
				other.others = true
			}
			c.there[s] = true
			c.mu.Unlock()
			return
		}
		if c.next == nil {
			c.next = make(chan struct{})
		}
		next := c.next
		c.mu.Unlock()
		select {
		case <-next:
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// beside reports whether another client is or was present at the same time.
func (c *turns) beside(s *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.others
}

// tryAlone reports whether to launch a client once more, alone, after it did nothing beside another one.
func (c *turns) tryAlone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == together {
		c.mode = trying
	}
	return c.mode != final
}

// triedAlone records whether a client that did nothing beside another one has spoken alone. If it had not ended by
// itself beside the other, the machine may have been busy, and the same has to happen a second time.
func (c *turns) triedAlone(spoke, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mode != trying:
	case !spoke:
		c.mode = final
	case ended || c.slow:
		c.mode = separate
	default:
		c.mode, c.slow = together, true
	}
}

// oneByOne reports whether the client was found to run only once at a time.
func (c *turns) oneByOne() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode == separate
}

// pace is what the baseline has shown: how long the client takes, or that it hangs.
type pace struct {
	hanging chan struct{} // closed when the client is found to hang

	mu sync.Mutex
	measured
}

// measured is the pace in numbers.
type measured struct {
	at     time.Time     // when hanging was closed
	took   time.Duration // by the client; 0 if not known
	active time.Duration // of that, since it sent something
	pause  time.Duration // the longest one in that time
	sent   int           // by the client in that time
}

// shown returns what is known so far.
func (p *pace) shown() measured {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.measured
}

// slowness is a factor: a client hangs if it takes this many times as long as with an ordinary server. The factor
// allows for a busy machine.
const slowness = 4

// endlessly is a factor: a client reads for ever if it sends so many times as much as with an ordinary server.
const endlessly = 10

// learn notes how long the client takes, and how much it sends.
func (p *pace) learn(took time.Duration, a *activity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took, p.pause, p.active, p.sent = took, a.pause, a.last-a.spoke, a.sent
}

// hangs notes that the client does not end by itself.
func (p *pace) hangs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() { // it may have been tried twice
		p.at = time.Now()
		close(p.hanging)
	}
}

// hung reports whether the client was found to hang.
func (p *pace) hung() bool {
	select {
	case <-p.hanging:
		return true
	default:
		return false
	}
}
