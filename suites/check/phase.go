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
	held  []*Future // had a process to themselves and got no answer: they stand unless the target has stopped answering
	again []*Future // to be run again, alone

	sharing  sync.WaitGroup // of the checks that are run in the shared session
	slots    chan struct{}  // holds an entry for each of them that is being run
	unshared atomic.Bool    // a check was not run there that should have been
}

// together runs checks at the same time, and then again alone those that may owe
// their outcome to others.
func (e *Engine) together(ctx context.Context, now []*Future, later func() []*Future) {
	p := &phase{Engine: e, slots: make(chan struct{}, sharedAtOnce)}
	ended := p.start(ctx, now, later)
	e.closers.Go(func() {
		<-ended
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
// that could not be run there, get other sessions. The channel that start returns
// is closed when all have ended.
func (p *phase) start(ctx context.Context, now []*Future, later func() []*Future) <-chan struct{} {
	toolsKnown := make(chan struct{})
	held := cap(p.slots) - fewAtOnce // of the slots for shared checks, until the tools are known
	if p.processPerSession() {
		held = 0
	}
	for range held {
		p.slots <- struct{}{}
	}
	p.closers.Go(func() {
		p.begin(ctx, now)
		p.begin(ctx, later())
		close(toolsKnown)
		for range held {
			<-p.slots
		}
		p.sharing.Wait()
		// Over stdio, others use the shared session in turn from now on. They do not if one of the checks that shared
		// it may be run in a session of the others, as it would use ids twice, or if the session has to stay as it is.
		if p.processPerSession() && p.shared != nil && !p.unshared.Load() && len(p.announcedLater.methods) == 0 &&
			ctx.Err() == nil && p.fenceShared(ctx) == nil && tidy(p.shared) {
			p.pool.expect(ofCapable)
			p.pool.give(ofCapable, p.shared)
		}
		p.schedule.change(func() { p.schedule.closed = true })
	})
	var workers sync.WaitGroup
	for i := range p.Parallel {
		workers.Go(func() {
			if i >= fewAtOnce && !p.processPerSession() && !p.latent() {
				<-toolsKnown
			}
			for f := p.schedule.next(p.hasSession); f != nil; f = p.schedule.next(p.hasSession) {
				p.run(ctx, f)
				// The next one of its lane may begin, or another one in its session.
				p.schedule.change(func() { delete(p.schedule.busy, f.Check.own()) })
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
	return ended
}

// begin begins checks: those that share a session, as soon as there is room there; the others are scheduled.
func (p *phase) begin(ctx context.Context, checks []*Future) {
	slices.SortStableFunc(checks, func(a, b *Future) int { return cmp.Compare(a.Check.order(), b.Check.order()) })
	for _, f := range checks {
		if f.Check.leaves() {
			p.pool.expect(f.Check.key())
		}
		if f.Check.Needs.Session != Shared {
			p.schedule.add(f)
			continue
		}
		p.sharing.Go(func() {
			p.slots <- struct{}{}
			defer func() { <-p.slots }()
			if !p.try(ctx, f, p.shared) {
				p.unshared.Store(true)
				p.schedule.add(f)
			}
		})
	}
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
	if (f.Check.Needs.Session == Own || unshared) && p.GivenUp() == nil && (p.processPerSession() || !p.outage().down) {
		s, k, err := p.pool.take(ctx, f.Check.key(), f.Check.Needs.Lane == Last)
		if err == nil && s != nil {
			serve(s, k, f.Check)
		} else if err == nil {
			if s, err = p.initialized(ctx, OwnLabel, f.Check.options()); err != nil {
				p.pool.give(k, nil)
			}
		}
		if err == nil {
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
	case !p.processPerSession() && p.outage().down:
		f.last = attempt{outcome: f.Check.cutShort(ByLimit, errDown), unanswered: true}
		p.later(&p.again, f)
		return true
	case s != nil && s == p.shared && p.sharedHung.Load():
		return false
	}
	before, began := f.last, time.Now()
	switch {
	case s != nil:
		f.last = p.execute(ctx, f.Check, s, first, true)
	case f.last.late:
		f.last = p.alone(ctx, f.Check, further)
	default:
		f.last = p.alone(ctx, f.Check, first)
	}
	// What waits for long begins anew if the server has ended it early: later, it would keep all that follows.
	for n := 1; n < maxLost && s == nil && f.Check.Patient() && (f.last.lost || f.last.limit != nil) &&
		time.Since(began) < p.Timeout; n++ {
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
		f.finish()
	case !p.processPerSession():
		p.later(&p.again, f)
		if f.last.unanswered {
			_ = p.noteUnanswered(ctx, f.Check) // the check runs again in any case
		}
	case !f.last.unanswered && s != nil:
		p.later(&p.again, f)
	case !f.last.unanswered:
		f.finish()
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

// later adds a check to a list of the phase that is worked off when all checks have run.
func (p *phase) later(list *[]*Future, f *Future) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, f)
}
