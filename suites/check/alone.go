package check

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
)

// inTurn runs checks alone, one after the other.
func (e *Engine) inTurn(ctx context.Context, checks []*Future) {
	e.toTheEnd()
	if e.bounded() && e.shared != nil {
		e.closeShared(ctx) // a server may serve one session at a time
	}
	checks = inOrder(checks)
	w := worker{engine: e}
	defer w.drop(ctx)
	var unanswered []*Future // in a row
	probed := false
	waited := e.waitTogether(ctx, checks)
	for _, f := range checks {
		before, played := waited[f]
		if !played {
			before = f.last
		}
		if e.bounded() {
			<-e.closing.None()
		}
		// A session that is opened for the check shows as well that the target lives.
		probed = probed || !e.outage().down && w.session(ctx, f) != nil
		if cause := e.ready(ctx, len(unanswered) > 0 || !probed); cause != nil {
			f.giveUp(cause)
			continue
		}
		probed = true
		if len(unanswered) >= maxUnanswered && !e.outage().wasDown && before.unanswered && !before.late &&
			!before.lost && before.limit == nil {
			f.finish() // enough of them got no answer alone, either
			continue
		}
		again := func() {
			w.execute(ctx, f)
			f.last.doubted = before.mine() && w.used != nil && f.Check.reuses() && !choosesIDs(w.used, w.mark)
		}
		if !played {
			again()
			e.settle(ctx, f, again)
		}
		switch {
		case ctx.Err() != nil:
			f.last = before // the second execution was cut short
			f.giveUp(ending.Cause(ctx))
			continue
		case f.last.unanswered:
			unanswered = e.stillUnanswered(ctx, append(unanswered, f))
			continue
		}
		f.noteDifference(before)
		giveUp(unanswered, nil)
		unanswered = nil
		f.finish()
	}
	giveUp(unanswered, nil)
}

// stillUnanswered notes that the last of some checks got no answer alone, and returns those whose findings are still
// open: none once the target is given up.
func (e *Engine) stillUnanswered(ctx context.Context, checks []*Future) []*Future {
	f := checks[len(checks)-1]
	if down := e.noteUnanswered(ctx, f.Check); down != nil {
		f.last.broughtDown(e.Revision, down)
	}
	if cause := e.GivenUp(); cause != nil {
		giveUp(checks, cause)
		return nil
	}
	return checks
}

// waitTogether plays again, beside each other, the checks that wait until the server gives a request up. Their waits
// would add up otherwise. Each has a session of its own. If the server has one session at a time, all are in one, and
// those that do not pass there wait for their turn. It returns what the checks had before that it has decided.
func (e *Engine) waitTogether(ctx context.Context, checks []*Future) (before map[*Future]attempt) {
	checks = slices.DeleteFunc(slices.Clone(checks), func(f *Future) bool { return !f.Check.Patient() })
	if len(checks) < 2 || e.ready(ctx, true) != nil {
		return nil
	}
	before = make(map[*Future]attempt)
	for _, f := range checks {
		before[f] = f.last
	}
	each := func(play func(*Future)) {
		var playing sync.WaitGroup
		for _, f := range checks {
			playing.Go(func() { play(f) })
		}
		playing.Wait()
	}
	<-e.closing.None()
	lost := slices.ContainsFunc(checks, func(f *Future) bool { return f.last.lost })
	if !e.exclusive.Load() && !(lost && e.single(ctx)) {
		each(func(f *Future) {
			play := func() { f.last = e.alone(ctx, f.Check, further) }
			play()
			e.settle(ctx, f, play)
		})
		return before
	}
	<-e.closing.None()
	_ = e.open(ctx, OwnLabel, checks[0].Check.options(), func(s *client.Session) error {
		each(func(f *Future) { f.last = e.execute(ctx, f.Check, s, further, true) })
		return nil
	})
	<-e.closing.None()
	for _, f := range checks {
		if f.last.outcome.Verdict != Passed || !f.last.final() {
			f.last = before[f]
			delete(before, f)
		}
	}
	return before
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
		return cmp.Or(cmp.Compare(ka.client, kb.client), cmp.Compare(ka.lane, kb.lane))
	})
}

// giveUp ends checks for a cause, or with what they have if it is nil.
func giveUp(checks []*Future, cause error) {
	for _, f := range checks {
		f.giveUp(cause)
	}
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
	if !c.reuses() || w.engine.GivenUp() != nil {
		return nil
	}
	k, o := f.where()
	// A finding may come of the capabilities of the client.
	lends := w.key == k || w.key.lends(k) && !f.last.mine()
	if w.used != nil && (closed(w.used) || !lends) {
		w.drop(ctx)
	}
	if w.used == nil {
		if w.engine.exclusive.Load() {
			<-w.engine.closing.None()
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
		// A check that is run once more must not meet what it sent before.
		if f.last.unanswered || f.last.lost || f.last.limit != nil ||
			f.last.outcome.Verdict != Passed && w.engine.fence(ctx, s) != nil {
			w.drop(ctx)
		}
		return
	}
	if w.used != nil && w.engine.bounded() {
		w.drop(ctx) // a server may bound how many sessions it keeps
		<-w.engine.closing.None()
	}
	f.last = w.engine.alone(ctx, f.Check, further)
}

func (w *worker) drop(ctx context.Context) {
	if w.used != nil {
		w.engine.close(ctx, w.used)
		w.used = nil
	}
}

// choosesIDs reports whether requests since a mark had other ids than a session gives them: to run such a check again
// in the session would use its ids twice.
func choosesIDs(s *client.Session, mark int) bool {
	give := s.Options.ID
	if give == nil {
		give = wire.IntID
	}
	exchanges := s.Log().Conversation().Exchanges
	given := make(map[string]bool)
	for _, x := range exchanges {
		if x.From() == wire.Client {
			given[give(int64(len(given)+1)).Key()] = true
		}
	}
	return slices.ContainsFunc(exchanges, func(x *wire.Exchange) bool {
		return x.From() == wire.Client && x.Request.Seq >= mark && !given[x.Request.Msg.ID.Key()]
	})
}
