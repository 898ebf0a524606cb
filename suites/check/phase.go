package check

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
)

// phase is the first execution of all checks.
type phase struct {
	*Engine
	mu    sync.Mutex
	turns map[string]bool // by name: whether one of the checks is being run
	held  []*Future       // had a process to themselves and got no answer: they stand unless the target has stopped answering
	again []*Future       // to be run again, alone

	unshared atomic.Bool // a check was not run in the shared session that should have been
}

// together runs checks at the same time, and then again alone those that may owe
// their outcome to others.
func (e *Engine) together(ctx context.Context, now []*Future, later func() []*Future) {
	p := &phase{Engine: e, turns: make(map[string]bool)}
	wait := p.start(ctx, now, later)
	e.closers.Go(func() {
		wait()
		if e.processPerSession() && len(p.held) > 0 && !e.opensAnother() {
			e.exclusive.Store(true) // what got no answer is tried where nothing else runs
			p.again, p.held = append(p.again, p.held...), nil
		}
		giveUp(p.held, e.GivenUp())
		if kept := e.announcedLater.take(); len(kept) > 0 && ctx.Err() == nil && e.GivenUp() == nil &&
			e.announced(ctx) {
			p.again = append(p.again, e.tryAnnounced(ctx, kept)...)
		} else {
			giveUp(kept, nil)
		}
		if len(p.again) > 0 {
			e.inTurn(ctx, p.again)
		}
		e.endExperiments(ctx)
	})
}

// start runs the shared checks in the shared session. All others, and shared checks
// that could not be run there, get other sessions. The function that start returns
// waits for all of them.
func (p *phase) start(ctx context.Context, now []*Future, later func() []*Future) (wait func()) {
	sharedSlots := make(chan struct{}, sharedAtOnce)
	toolsKnown := make(chan struct{})
	release := p.hold(sharedSlots)
	var sharing sync.WaitGroup
	feed := func(checks []*Future) {
		slices.SortStableFunc(checks, func(a, b *Future) int { return cmp.Compare(a.Check.order(), b.Check.order()) })
		for _, f := range checks {
			if f.Check.leaves() {
				p.pool.expect(f.Check.key())
			}
			if f.Check.Needs.Session != Shared {
				p.queue.push(f)
				continue
			}
			sharing.Go(func() {
				sharedSlots <- struct{}{}
				defer func() { <-sharedSlots }()
				if !p.try(ctx, f, p.shared) {
					p.unshared.Store(true)
					p.queue.push(f)
				}
			})
		}
	}
	p.closers.Go(func() {
		var late []*Future
		now = slices.DeleteFunc(now, func(f *Future) bool {
			if f.Check.Needs.Late {
				late = append(late, f)
			}
			return f.Check.Needs.Late
		})
		feed(now)
		feed(append(later(), late...))
		close(toolsKnown)
		release()
		sharing.Wait()
		p.lendShared(ctx)
		p.queue.close()
	})
	var workers sync.WaitGroup
	for i := range p.Parallel {
		workers.Go(func() {
			if i >= fewAtOnce && !p.processPerSession() && !p.latent() {
				<-toolsKnown
			}
			for f := p.queue.pop(p.claim); f != nil; f = p.queue.pop(p.claim) {
				p.run(ctx, f)
				p.over(f.Check)
				p.queue.wake() // it may have given a session back, or end a turn
			}
		})
	}
	ended := make(chan struct{})
	p.closers.Go(func() {
		workers.Wait()
		for _, s := range p.pool.empty() {
			if s != p.shared {
				p.close(ctx, s)
			}
		}
		close(ended)
	})
	return func() { <-ended }
}

// queue holds the checks that wait for a worker, those that are begun first in front.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting []*Future
	closed  bool
}

func newQueue() *queue {
	q := new(queue)
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *queue) push(f *Future) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.waiting, func(other *Future) bool { return other.Check.order() > f.Check.order() })
	if i < 0 {
		i = len(q.waiting)
	}
	q.waiting = slices.Insert(q.waiting, i, f)
	q.changed.Signal()
}

// pop waits for a check that is ready, a late one until no other waits. It returns nil when no more will come.
func (q *queue) pop(ready func(*Check) bool) *Future {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		i := slices.IndexFunc(q.waiting, func(f *Future) bool {
			return (!f.Check.Needs.Late || q.waiting[0].Check.Needs.Late) && ready(f.Check)
		})
		if i >= 0 {
			f := q.waiting[i]
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return f
		}
		if len(q.waiting) == 0 && q.closed {
			return nil
		}
		q.changed.Wait()
	}
}

// wake has the workers look again for a check that is ready.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// close says that no more checks will come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

// fewAtOnce is the number of shared checks, and of others, that run beside the probe of tools. The longest waits
// begin after the probe, and a server that all connections share serves many requests at once no sooner than one
// after the other.
const fewAtOnce = 2

// latent reports whether the server is slow at handshakes, and not because it is busy: it has answered later requests
// much faster. Other handshakes can then run at the same time.
func (e *Engine) latent() bool {
	if e.target.Init == nil || e.target.Init.Response == nil {
		return false
	}
	took := e.target.Init.Response.At - e.target.Init.Request.At
	return took > latency && took > 10*e.pace.Reaction(0)
}

// latency is from which time on a handshake counts as slow.
const latency = 250 * time.Millisecond

// hold takes most of the slots for shared checks. The returned function gives them back.
func (p *phase) hold(slots chan struct{}) (release func()) {
	held := cap(slots) - fewAtOnce
	if p.processPerSession() {
		held = 0
	}
	for range held {
		slots <- struct{}{}
	}
	return func() {
		for range held {
			<-slots
		}
	}
}

// order says when a check begins. A check with a long wait begins before others, which use the time, unless it can
// wait in a session that an early check leaves.
func (c *Check) order() int {
	switch {
	case c.takesLong() && (c.Needs.Session != Own || c.Needs.Group != ""):
		return 0
	case c.leaves():
		return 1
	case c.takesLong():
		return 2
	case c.Needs.Late:
		return 4
	}
	return 3
}

// claim reports whether a check need wait neither for a session, be it to come back or to be opened, nor for its
// turn, which it then has.
func (p *phase) claim(c *Check) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns[c.Needs.Turn] || !p.hasSession(c) {
		return false
	}
	if c.Needs.Turn != "" {
		p.turns[c.Needs.Turn] = true
	}
	return true
}

// hasSession reports whether there is a session for a check, or one can be opened at once.
func (p *phase) hasSession(c *Check) bool {
	now, idle := true, c.Needs.Session == None
	switch c.Needs.Session {
	case Own:
		now, idle = p.pool.has(c.key(), c.Needs.Late)
	case Shared:
		_, idle = p.pool.has(c.key(), false)
	}
	return now && (idle || len(p.launches) < cap(p.launches))
}

// over ends the turn of a check.
func (p *phase) over(c *Check) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.turns, c.Needs.Turn)
}

// run executes a check in a session that others have used before it, or in a session of its own. It does the former
// if the check needs no more, or if the shared session has ended.
func (p *phase) run(ctx context.Context, f *Future) {
	p.awaitLiveness()
	if why := p.excludes(f.Check); why != nil {
		f.last = attempt{outcome: f.Check.cutShort(ByLimit, why), unanswered: true}
		p.later(&p.again, f)
		if f.Check.leaves() {
			p.pool.give(f.Check.key(), nil)
		}
		return
	}
	unshared := f.Check.Needs.Session == Shared && (!f.last.unanswered || closed(p.shared))
	if (f.Check.Needs.Session == Own || unshared) && p.GivenUp() == nil && (p.processPerSession() || !p.isDown()) {
		if s, k, err := p.takeSession(ctx, f.Check); err == nil {
			f.reused = k != f.Check.key()
			done := p.try(ctx, f, s)
			p.putBack(ctx, k, s, &f.last)
			if done {
				return
			}
		}
	}
	p.try(ctx, f, nil)
	if f.Check.leaves() && !f.last.left {
		p.pool.give(f.Check.key(), nil)
	}
}

// try executes a check in a session that others use as well or, with nil, in one of
// its own. It reports false if the check needs one of its own at once.
func (p *phase) try(ctx context.Context, f *Future, s *client.Session) bool {
	switch cause := p.GivenUp(); {
	case cause != nil:
		f.giveUp(cause)
		return true
	case !p.processPerSession() && p.isDown():
		f.last = attempt{outcome: f.Check.cutShort(ByLimit, errDown), unanswered: true}
		p.later(&p.again, f)
		return true
	case s != nil && s == p.shared && p.sharedHung.Load():
		return false
	}
	before := f.last
	switch {
	case s != nil:
		f.last = p.execute(ctx, f.Check, s, first, true)
	case f.last.late:
		f.last = p.alone(ctx, f.Check, further)
	default:
		f.last = p.alone(ctx, f.Check, first)
	}
	if s == nil && p.processPerSession() && (f.last.late || !f.last.unanswered && !f.last.final()) {
		before = f.last
		p.settle(ctx, f, func() { f.last = p.alone(ctx, f.Check, further) })
	}
	f.noteDifference(before)
	switch {
	case ctx.Err() == nil && f.last.final() && p.announcedLater.keeps(f, f.last.outcome):
	case ctx.Err() != nil, f.last.final():
		f.keep()
	case !p.processPerSession():
		p.later(&p.again, f)
		if f.last.unanswered {
			_ = p.noteUnanswered(ctx, f.Check) // the check runs again in any case
		}
	case !f.last.unanswered && s != nil:
		p.later(&p.again, f)
	case !f.last.unanswered:
		f.keep()
	case s == nil:
		p.later(&p.held, f)
		_ = p.noteUnanswered(ctx, f.Check) // the check runs again in any case
	default:
		// Another process is at hand.
		if s == p.shared {
			_ = p.fenceShared(ctx)
		}
		return false
	}
	return true
}

// fenceShared finds out whether the shared session still answers, and returns why not.
func (e *Engine) fenceShared(ctx context.Context) error {
	if e.sharedHung.Load() {
		return errDown
	}
	err := e.fence(ctx, e.shared)
	if err != nil {
		e.sharedHung.Store(true)
	}
	return err
}

// lendShared lets other checks use the shared session in turn, over stdio, once the checks that share it are over. It
// does not if one of these may be run in a session of the others, as it would use ids twice, or if the session has to
// stay as it is.
func (p *phase) lendShared(ctx context.Context) {
	if !p.processPerSession() || p.shared == nil || p.unshared.Load() || len(p.announcedLater.methods) > 0 ||
		ctx.Err() != nil || p.fenceShared(ctx) != nil || !tidy(p.shared) {
		return
	}
	p.pool.expect(ofCapable)
	p.pool.give(ofCapable, p.shared)
}

// later adds a check to a list of the phase that is worked off when all checks have run.
func (p *phase) later(list *[]*Future, f *Future) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, f)
}
