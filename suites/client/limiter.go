package client

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// launchLimiter decides when clients may be launched. Only a few may work at a time, so that each gets enough of the
// machine. Clients that merely wait make room for others, so hanging clients wait for their time limits together.
type launchLimiter struct {
	present chan struct{} // one entry for each client that is there, also if it only waits
	hanging chan struct{} // closed when the client is found to hang in the baseline
	over    chan struct{} // closed when no client is launched any more
	opened  chan struct{} // closed when others than the baseline may be launched
	working int           // how many clients may work at a time

	mu       sync.Mutex
	free     int           // how many more clients may work
	waiters  []*waiter     // for that, if none may
	at       time.Time     // when hanging was closed
	why      string        // over was closed
	baseline time.Duration // how long the client took in the baseline; 0 if not known
	active   time.Duration // of that, since it sent something
	pause    time.Duration // the longest one in that time
	sent     int           // by the client in that time

	there int           // clients that run
	begun int           // how many were launched in all
	next  chan struct{} // closed when the next one ends; nil if none waits for that
	turns turns
	slow  bool // one was silent beside others until its time limit, and has spoken alone
}

// turns says whether clients run one after the other.
type turns int

const (
	together turns = iota
	trying         // one is launched alone, as it did nothing beside another
	separate       // that has made it speak: it can run only once at a time
	final          // that has made no difference, and is not tried again
)

// slowness is a factor: a client hangs if it takes this many times as long as with an ordinary server. The factor
// allows for a busy machine.
const slowness = 4

// presence is the number of clients that may be present for each client that may work.
const presence = 16

func newLaunchLimiter(parallel int) *launchLimiter {
	if parallel <= 0 {
		parallel = 2 * runtime.GOMAXPROCS(0)
	}
	return &launchLimiter{
		working: parallel, present: make(chan struct{}, presence*parallel), hanging: make(chan struct{}),
		over: make(chan struct{}), opened: make(chan struct{}),
	}
}

// open permits launches beyond the baseline. They wait until the client has sent something there, so a client that
// cannot work at all costs few launches.
func (l *launchLimiter) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.opened:
	default:
		close(l.opened)
		l.free = l.working
		l.advance()
	}
}

// end stops all further launches, for the given reason.
func (l *launchLimiter) end(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.why = why
		close(l.over)
	}
}

// ended returns the reason why no client is launched any more, or "".
func (l *launchLimiter) ended() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// waiter is one of the clients that wait to be launched.
type waiter struct {
	ready chan struct{} // closed when it is the client's turn
}

// wait adds a waiter before all others, or behind them.
func (l *launchLimiter) wait(first bool) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waiter{make(chan struct{})}
	at := len(l.waiters)
	if first {
		at = 0
	}
	l.waiters = slices.Insert(l.waiters, at, w)
	l.advance()
	return w
}

// leave takes a waiter out, whether or not it was its turn.
func (l *launchLimiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
		return
	}
	l.free++
	l.advance()
}

// advance lets the clients work that have waited longest, up to the free number.
func (l *launchLimiter) advance() {
	for l.free > 0 && len(l.waiters) > 0 {
		close(l.waiters[0].ready)
		l.waiters = l.waiters[1:]
		l.free--
	}
}

// inTurn lets one client work at a time from now on. No client may be present at the call.
func (l *launchLimiter) inTurn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = 1
}

// acquire waits until a client may be launched. It returns its slot, or the reason not to launch it. A new caller
// comes before all waiters.
func (l *launchLimiter) acquire(ctx context.Context, scenario *Scenario, w *waiter) (s *slot, why string) {
	s = &slot{limiter: l}
	switch {
	case scenario.Name == Baseline:
	default:
		if w == nil {
			w = l.wait(true) // it had to wait for the outcome of another launch
		}
		select {
		case <-w.ready:
			s.working = w
		case <-l.hanging:
			l.leave(w)
		case <-l.over:
			l.leave(w)
		case <-ctx.Done():
			l.leave(w)
		}
		select {
		case l.present <- struct{}{}:
			s.present = true
		case <-ctx.Done():
		}
	}
	l.enter(ctx, s)
	if why = l.ended(); ctx.Err() != nil {
		why = cutShort(ctx)
	}
	if why == "" {
		return s, ""
	}
	s.release()
	return nil, why
}

// enter waits until no other client is present, if clients run one after the other.
func (l *launchLimiter) enter(ctx context.Context, s *slot) {
	for {
		l.mu.Lock()
		if l.there == 0 || l.turns != trying && l.turns != separate {
			l.there++
			l.begun++
			s.entered, s.first, s.number = true, l.there == 1, l.begun
			l.mu.Unlock()
			return
		}
		if l.next == nil {
			l.next = make(chan struct{})
		}
		next := l.next
		l.mu.Unlock()
		select {
		case <-next:
		case <-l.over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tryAlone reports whether to launch a client once more, alone, after it did nothing beside another one.
func (l *launchLimiter) tryAlone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turns == together {
		l.turns = trying
	}
	return l.turns != final
}

// triedAlone records whether a client that did nothing beside another one has spoken alone. If it had not ended by
// itself beside the other, the machine may have been busy, and the same has to happen a second time.
func (l *launchLimiter) triedAlone(spoke, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.turns != trying:
	case !spoke:
		l.turns = final
	case ended || l.slow:
		l.turns = separate
	default:
		l.turns, l.slow = together, true
	}
}

// oneByOne reports whether the client was found to run only once at a time.
func (l *launchLimiter) oneByOne() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turns == separate
}

// baselineHangs notes that the client does not end by itself with an ordinary server.
func (l *launchLimiter) baselineHangs(spoke bool) {
	if !spoke {
		l.end(notLaunched + "it said nothing until its time limit")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() { // it may have been tried twice
		l.at = time.Now()
		close(l.hanging)
	}
}

const notLaunched = "the client was not launched any more: with an ordinary server "

// baselineTook notes how long the client takes with an ordinary server, and how much it
// sends.
func (l *launchLimiter) baselineTook(d time.Duration, a *activity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.baseline, l.pause, l.active, l.sent = d, a.pause, a.last-a.spoke, a.sent
}

// pace returns the longest pause of the client with an ordinary server, and its time there from the first message on.
func (l *launchLimiter) pace() (pause, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pause, l.active
}

// endlessly is a factor: a client reads for ever if it sends so many times as much as with an ordinary server.
const endlessly = 10

// hopeless reports whether a client will hardly come through a combined launch. Its time is better spent on the
// scenarios one by one.
func (l *launchLimiter) hopeless(lasted, limit time.Duration, sent int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.baseline > 0 && (lasted > max(slowness*l.active, limit) || sent > endlessly*l.sent)
}

// minimum returns the least time limit of the client.
func (l *launchLimiter) minimum() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slowness * l.baseline
}

// baselineHung reports whether the client was found to hang with an ordinary server.
func (l *launchLimiter) baselineHung() bool {
	select {
	case <-l.hanging:
		return true
	default:
		return false
	}
}

// since returns the later of a time and the time at which the baseline hung.
func (l *launchLimiter) since(t time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.After(t) {
		return l.at
	}
	return t
}

// slot is the permission for one client to run.
type slot struct {
	limiter *launchLimiter
	working *waiter // nil if it only waits
	present bool
	entered bool
	first   bool // no other client was there at the beginning
	number  int  // of those that were launched until then
}

// beside reports whether another client is or was present at the same time.
func (s *slot) beside() bool {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return !s.first || s.limiter.begun > s.number
}

// idle makes room for a client that works, since this one only waits.
func (s *slot) idle() {
	if s.working != nil {
		s.limiter.leave(s.working)
		s.working = nil
	}
}

// release gives the slot back.
func (s *slot) release() {
	s.idle()
	if s.entered {
		s.limiter.mu.Lock()
		s.entered = false
		s.limiter.there--
		if s.limiter.next != nil {
			close(s.limiter.next)
			s.limiter.next = nil
		}
		s.limiter.mu.Unlock()
	}
	if s.present {
		<-s.limiter.present
		s.present = false
	}
}
