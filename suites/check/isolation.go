package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// The rule of isolation, as it is for servers. First all checks are run at once, in shared sessions where that does
// no harm. A check that neither passed nor was skipped may owe that to another check. It is run again, alone and in
// turn, after the target was probed. The second verdict stands, and a difference is noted.

// attempt is one execution of a check.
type attempt struct {
	outcome Outcome
	// unanswered says that something that the server had to send did not come.
	unanswered bool
	left       bool // its session was left to others
	doubtful   bool // that was found out by a limit which has to be tried twice
	disturbed  bool // other checks kept it from a verdict
	interference
	refusals     []refused     // of a failed check
	several      bool          // it used more than one session
	unopened     bool          // its session was not opened for it
	broken       bool          // of a failed check: the server said that it was broken
	endedBeneath bool          // of a failed check: all that was found is that the server had ended the session
	confirmation *confirmation // of one that is run for the first time, if it may need one
}

// Times that a check is executed: learned limits are doubled the further times.
const (
	first   = 1
	further = 2
)

// final reports whether another execution could not change the outcome: all
// went well, or the server answered everything and the check says why that is
// inconclusive.
func (a *attempt) final() bool {
	switch {
	case a.limit != nil:
		return false
	case a.outcome.Verdict == Passed, a.outcome.Verdict == Skipped:
		return !a.lost
	}
	return a.outcome.Verdict != Failed && !a.unanswered && !a.lost && !a.disturbed
}

// Future is a check that has been started.
type Future struct {
	Check  *Check
	done   chan struct{}
	last   attempt
	reused bool // it was run in a session of the client that can do everything, which it does not need
	// abandoned is what the check had recorded when the target went down and it
	// could not be run again.
	abandoned ledger.Record
}

// Await returns the outcome of the check. It comes in bounded time, as every
// wait of a check is bounded.
func (f *Future) Await() Outcome {
	<-f.done
	return f.last.outcome
}

// where returns the session in which the check was run, or is if it was not yet.
func (f *Future) where() (key, client.Options) {
	if f.reused {
		return ofCapable, Capable()
	}
	return f.Check.key(), f.Check.options()
}

// finish ends a check, in the one place where that happens.
func (f *Future) finish(o Outcome) {
	f.last.outcome = o.final()
	close(f.done)
}

// keep ends a check with the outcome that it has.
func (f *Future) keep() { f.finish(f.last.outcome) }

// giveUp ends a check that can no longer come to a verdict. Its findings from the time when the server answered
// stand.
func (f *Future) giveUp(cause error) {
	if f.last.mine() && (!f.last.broken || errors.Is(cause, ending.ErrInterrupted)) {
		f.keep()
		return
	}
	f.abandoned = f.last.outcome.Record
	f.finish(f.Check.cutShort(ByRunEnd, cause))
}

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
		e.closeEarly(ctx)
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
			next := func() *Future {
				return p.queue.pop(p.claim, func(waiting int) {
					if waiting == 0 || len(p.launches) == 0 {
						p.openForAgain(ctx)
					}
				})
			}
			for f := next(); f != nil; f = next() {
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

// pop waits for a check that is ready, a late one until no other waits. It returns nil when no more will come. When
// no more will, and none of those that wait is ready, it calls idle with how many these are.
func (q *queue) pop(ready func(*Check) bool, idle func(waiting int)) *Future {
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
		if q.closed {
			idle(len(q.waiting))
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
	switch {
	case s != nil:
		f.last = p.execute(ctx, f.Check, s, first, true)
	case f.last.doubtful:
		f.last = f.last.confirmation.result(func() attempt { return p.alone(ctx, f.Check, further) })
	default:
		f.last = p.alone(ctx, f.Check, first)
	}
	if f.last.doubtful && s == nil && p.processPerSession() && ctx.Err() == nil {
		f.last = f.last.confirmation.result(func() attempt { return p.alone(ctx, f.Check, further) })
		if f.last.outcome.Verdict == Passed {
			f.last.outcome.note("at first an answer came later than others; when the check ran again, it came in time")
		}
	}
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
		p.excuse(ctx, f, nil)
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

// inTurn runs checks alone, one after the other.
func (e *Engine) inTurn(ctx context.Context, checks []*Future) {
	e.toTheEnd()
	if e.bounded() && e.shared != nil {
		e.closeShared(ctx) // a server may serve one session at a time
	}
	checks = inOrder(checks)
	w := worker{engine: e}
	defer w.drop(ctx)
	if e.processPerSession() {
		// In the process that the checks get which will ask for it, as long as it is new.
		e.limitsRate(ctx, refusalsOf(checks))
		w.used, w.key = e.openedEarly.take(OwnLabel, Capable()), ofCapable
	}
	var unanswered []*Future // in a row
	probed := false
	for _, f := range checks {
		before := f.last
		if e.bounded() {
			e.closing.Wait()
		}
		// A session that is opened for the check shows as well that the target lives.
		probed = probed || !e.isDown() && w.session(ctx, f) != nil
		if cause := e.ready(ctx, len(unanswered) > 0 || !probed); cause != nil {
			f.giveUp(cause)
			continue
		}
		probed = true
		if len(unanswered) >= maxUnanswered && !e.wasDown() && before.unanswered && !before.doubtful && !before.lost &&
			before.limit == nil {
			f.keep() // enough of them got no answer alone, either
			continue
		}
		again := func() { w.execute(ctx, f) }
		again()
		e.excuse(ctx, f, again)
		if k, _ := f.where(); w.used != nil && w.key != k && before.mine() && f.last.outcome.Verdict == Passed {
			w.drop(ctx) // it may have failed because of what the client cannot do
			again()
			e.excuse(ctx, f, again)
		}
		switch {
		case ctx.Err() != nil:
			f.last = before // the second execution was cut short
			f.giveUp(ending.Cause(ctx))
			continue
		case f.last.unanswered:
			unanswered = append(unanswered, f)
			if down := e.noteUnanswered(ctx, f.Check); down != nil {
				f.last.broughtDown(down)
			}
			if cause := e.GivenUp(); cause != nil {
				giveUp(unanswered, cause)
				unanswered = nil
			}
			continue
		case before.mine() && f.last.outcome.Verdict == Passed && !w.failsLater(ctx, f):
			f.last.outcome.note("it failed while other checks ran, but passed when it ran alone: " +
				before.outcome.Record.Findings()[0].Message)
		}
		giveUp(unanswered, nil)
		unanswered = nil
		f.keep()
	}
	giveUp(unanswered, nil)
}

// inOrder sorts checks that are run in turn: those that can use the same process follow each other, and those that can
// use any come last.
func inOrder(checks []*Future) []*Future {
	return slices.SortedStableFunc(slices.Values(checks), func(a, b *Future) int {
		ka, _ := a.where()
		kb, _ := b.where()
		switch {
		case ka == kb:
			return cmp.Compare(a.Check.Needs.Session, b.Check.Needs.Session)
		case ka == anyClient:
			return 1
		case kb == anyClient:
			return -1
		}
		return ka.compare(kb)
	})
}

// giveUp ends checks for a cause, or with what they have if it is nil.
func giveUp(checks []*Future, cause error) {
	for _, f := range checks {
		if cause == nil {
			f.keep()
		} else {
			f.giveUp(cause)
		}
	}
}

// accuses reports whether something was found, be it a warning beside which the check passed.
func (a *attempt) accuses() bool {
	return a.outcome.Verdict == Failed || a.outcome.Verdict == Passed && len(a.outcome.Record.Findings()) > 0
}

// mine reports whether the attempt found something while the server answered all
// that was asked.
func (a *attempt) mine() bool {
	return a.outcome.Verdict == Failed && !a.unanswered && !a.lost && a.limit == nil
}

// ready waits until the target can be tried, and returns the reason if it cannot.
// It is probed where it is in doubt whether it lives.
func (e *Engine) ready(ctx context.Context, doubt bool) error {
	if cause := e.GivenUp(); cause != nil {
		return cause
	}
	if doubt && !e.processPerSession() {
		if err := e.ensureUp(ctx); err != nil {
			return err
		}
	}
	e.limits.settle(ctx)
	if ctx.Err() != nil {
		return ending.Cause(ctx)
	}
	return nil
}

// excuse decides the outcome of a check that ran alone. The check is inconclusive if its failure may come from acts
// that a server may do at any time. again runs the check once more, or is nil if that cannot help.
func (e *Engine) excuse(ctx context.Context, f *Future, again func()) {
	for n := 1; f.last.limit != nil && again != nil; n++ {
		if n == maxLimited || !e.limits.wait(ctx, client.RetryAfter(f.last.limit)) {
			f.last.tellsNothing(fmt.Sprintf("the server refuses requests because there are too many (HTTP status %d)",
				f.last.limit.HTTP.Status))
			return
		}
		again()
	}
	for n := 1; n < maxLost && f.last.lost && f.last.accuses() && again != nil && ctx.Err() == nil; n++ {
		again()
	}
	if !f.last.accuses() || ctx.Err() != nil {
		return
	}
	undeclared := slices.IndexFunc(f.last.refusals, func(r refused) bool { return r.undeclared != "" })
	switch {
	case f.last.unopened && !e.opensAnother():
		if err := e.open(ctx, "whether the server opens a further session", Capable(), nil); err != nil {
			f.last.tellsNothing("the server opens no further session: " + err.Error())
		} else if again != nil {
			e.closing.Wait() // a server may take a moment to make room for the next session
			again()
		}
	case f.last.endedBeneath:
		f.last.tellsNothing("the server ended the session during the check, as it may at any time")
	case f.last.lost && f.last.several && e.single(ctx):
		f.last.tellsNothing("the server ends a session when another one is opened, and the check needs both")
	case f.last.lost && e.shortLived(ctx, f.last.interference):
		f.last.tellsNothing("the server ends sessions of its own accord, and ended this session before the check came to a verdict")
	case undeclared >= 0:
		f.last.tellsNothing(declaredElsewhere(f.last.refusals[undeclared].undeclared))
	case !f.last.unanswered && e.limitsRate(ctx, f.last.refusals):
		f.last.tellsNothing("the server refuses requests because there are too many: raise its limit for the test")
	case !f.Check.Needs.Concurrent && !f.last.unanswered && e.limitsConcurrency(ctx, f.last.refusals):
		f.last.tellsNothing("the server refuses requests while it serves others")
	}
}

func (a *attempt) tellsNothing(reason string) {
	a.outcome = Outcome{Check: a.outcome.Check, Verdict: Inconclusive, Reason: reason}
}

// worker keeps a session for checks that are run alone, one after the other: they get
// the same one as long as all goes well.
type worker struct {
	engine *Engine
	key    key
	used   *client.Session
	mark   int // of its log, when the last check was run in it
}

// session returns the session for a check that can use one that others have used, or nil.
func (w *worker) session(ctx context.Context, f *Future) *client.Session {
	c := f.Check
	if c.Needs.Session != Own && c.Needs.Session != Shared || w.engine.GivenUp() != nil {
		return nil
	}
	k, o := f.where()
	if w.used != nil && (closed(w.used) || w.key != k && !w.key.lends(k)) {
		w.drop(ctx)
	}
	if w.used == nil {
		if w.engine.exclusive.Load() {
			w.engine.closing.Wait()
		}
		s, err := w.engine.initialized(ctx, OwnLabel, o)
		if err != nil {
			return nil
		}
		w.used, w.key = s, k
	}
	serve(w.used, w.key, c)
	return w.used
}

// execute runs a check alone, in a session that others have used before it
// unless they have disturbed it, or cost it.
func (w *worker) execute(ctx context.Context, f *Future) {
	if s := w.session(ctx, f); s != nil {
		w.mark = s.Log().Len()
		f.last = w.engine.execute(ctx, f.Check, s, further, false)
		if !f.last.lost {
			// A check that is run once more must not meet what it sent before.
			if f.last.unanswered || f.last.limit != nil ||
				f.last.outcome.Verdict != Passed && w.engine.fence(ctx, s) != nil {
				w.drop(ctx)
			}
			return
		}
	}
	if w.used != nil && w.engine.bounded() {
		w.drop(ctx) // a server may bound how many sessions it keeps
		w.engine.closing.Wait()
	}
	f.last = w.engine.alone(ctx, f.Check, further)
}

// failsLater runs a check that has passed alone once more in the same session: the earlier finding may need a second
// execution to show. It reports whether the check fails then, and leaves that as the last attempt. A check that
// chooses ids does not run again: it would use them twice.
func (w *worker) failsLater(ctx context.Context, f *Future) bool {
	s := w.used
	if s == nil || f.Check.Needs.Session != Own && f.Check.Needs.Session != Shared || choosesIDs(s, w.mark) {
		return false
	}
	alone := f.last
	f.last = w.engine.execute(ctx, f.Check, s, further, false)
	w.engine.excuse(ctx, f, nil)
	if f.last.mine() {
		f.last.outcome.note("it passed alone at first, but failed when it ran again in the same session")
		return true
	}
	w.drop(ctx)
	f.last = alone
	return false
}

// choosesIDs reports whether requests since a mark had other ids than a session gives them.
func choosesIDs(s *client.Session, mark int) bool {
	give := s.Options.ID
	if give == nil {
		give = wire.IntID
	}
	exchanges := s.Log().Conversation().Exchanges
	given := make(map[string]bool)
	chosen := false
	for _, x := range exchanges {
		if x.From() == wire.Client {
			given[give(int64(len(given)+1)).Key()] = true
		}
	}
	for _, x := range exchanges {
		chosen = chosen || x.From() == wire.Client && x.Request.Seq >= mark && !given[x.Request.Msg.ID.Key()]
	}
	return chosen
}

func (w *worker) drop(ctx context.Context) {
	if w.used != nil {
		w.engine.close(ctx, w.used)
		w.used = nil
	}
}

// processPerSession reports whether each connection is a separate process. No check can then harm the process of
// another.
func (e *Engine) processPerSession() bool { return e.Dialer.Transport() == transport.NameStdio }

// maxExcluded is how many processes may end at once before no more are started beside the first one.
const maxExcluded = 3

// excludes returns why a check has to wait until no other session is open, or nil. Processes of the server seem to
// exclude each other, as where they lock a file, if all but the first one have ended without having answered
// anything.
func (e *Engine) excludes(c *Check) error {
	switch {
	case !e.processPerSession() && e.exclusive.Load():
		return errWaits
	case !e.processPerSession(), c.Needs.Session == None:
		return nil
	}
	ended := 0
	for _, l := range e.Trace.Logs()[1:] {
		for _, event := range l.Events() {
			switch {
			case event.Kind == wire.KindMessage && event.From == wire.Server:
				return nil
			case event.Kind == wire.KindExit:
				ended++
			}
		}
	}
	if ended < maxExcluded {
		return nil
	}
	return errExcluded
}

// bounded reports whether what one session takes may be missing for another one: the connections share a
// server, or its processes exclude each other.
func (e *Engine) bounded() bool { return !e.processPerSession() || e.exclusive.Load() }

// serverGone reports whether the server was gone when a check found something: then
// another check may have brought it down.
func (t *T) serverGone() bool {
	if t.outcome.Verdict != Failed {
		return false
	}
	return slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return slices.ContainsFunc(s.Log().Events(), transport.Gone)
	})
}

// unopenedFor reports whether a server that has opened another session did not open the session of the check. A check
// without a session of its own counts with the first one that it opens.
func (t *T) unopenedFor() bool {
	if t.Target.Init == nil || t.Target.Init.Result() == nil {
		return false
	}
	s := t.Session
	if t.check.Needs.Session == None && len(t.extra) > 0 {
		s = t.extra[0]
	}
	return s != nil && s != t.engine.shared && unopened(s)
}

// opensAnother reports whether a process has opened a session beside the first one: then it was not for want of room
// that a further one did not. A shared resource of the processes, such as a locked file, has room for one.
func (e *Engine) opensAnother() bool {
	logs := e.Trace.Logs()
	return e.processPerSession() && len(logs) > 1 && slices.ContainsFunc(logs[1:], func(l *wire.Log) bool {
		return slices.ContainsFunc(l.Requests(wire.Client, "initialize"),
			func(x *wire.Exchange) bool { return x.Result() != nil })
	})
}
