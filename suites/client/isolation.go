package client

import (
	"context"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// The engine isolates the findings on clients. First it launches several clients at once, each against several
// scenarios if those do not hide each other. A scenario with a finding then runs again alone, and no other client
// runs meanwhile if other clients may have caused the finding. The second verdict stands, and the run notes a
// difference.

// attempt is a scenario run whose outcome other clients at the same time may have caused.
type attempt struct {
	index int // of the scenario
	t     *T
}

// final reports whether the outcome is final, because another run could not change it: nothing was found, a person
// attended the client, or the client neither broke off the scenario nor missed a time limit.
func (t *T) final() bool {
	ok, decided, _ := t.Continued()
	brokenOff := decided && !ok && (t.Ending.Exit != nil || t.Ending.Silent)
	return !brokenOff && !t.leftUnanswered() || t.Ending.Attended || !t.Accused()
}

// later schedules another run of a scenario for the time when all others have ended.
func (e *Engine) later(a attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.again = append(e.again, a)
}

// inTurn runs scenarios again, alone, one after the other.
func (e *Engine) inTurn(ctx context.Context) {
	if e.launches != nil {
		e.launches.inTurn()
	}
	var all sync.WaitGroup
	for _, a := range e.again {
		all.Go(func() {
			alone := e.repeat(ctx, a.t)
			if alone != a.t && !alone.Accused() {
				alone.noteDifference(a.t)
			}
			e.keep(ctx, a.index, alone)
		})
	}
	all.Wait()
}

// noteDifference notes the findings of an earlier run of the scenario that this run does not have.
func (t *T) noteDifference(before *T) {
	found := before.Recorder().Record
	for _, k := range found.Keys() {
		if all := found[k].Findings; len(all) > 0 {
			t.Recorder().Note(k.Requirement, k.Party,
				"it failed while other clients ran, but passed when it ran alone: "+all[0].Message)
		}
	}
}

// repeat runs a scenario again and returns the outcome that counts.
func (e *Engine) repeat(ctx context.Context, t *T) *T {
	again := e.fresh(t)
	if !e.launchedAgain(ctx, again) {
		return t
	}
	again.judge()
	return again
}

// smaller returns the run of a scenario with the smallest part of its stimuli that shows what the run has found. That
// the client hangs is known.
func (e *Engine) smaller(ctx context.Context, t *T) *T {
	if t.Scenario.Smaller == nil {
		return t
	}
	return t.Scenario.Smaller(t, func(limit func(*T)) *T {
		again := e.fresh(t)
		again.confirms = false
		limit(again)
		if !e.launchedAgain(ctx, again) {
			return nil
		}
		again.judge()
		return again
	})
}

// fresh returns the run of a scenario that follows on another.
func (e *Engine) fresh(t *T) *T {
	again := e.newRun(t.Scenario)
	again.Baseline, again.AuthorizationBaseline, again.before = t.Baseline, t.AuthorizationBaseline, t
	again.after, again.confirms = len(e.Trace.Logs()), t.Ending.Silent
	return again
}

// launchedAgain launches the client for a run that follows on another, and reports whether it could be launched.
func (e *Engine) launchedAgain(ctx context.Context, again *T) bool {
	if err := e.runScenario(ctx, again, nil); err != nil || again.Ending.Skipped != "" {
		return false
	}
	again.gather(e.Trace)
	return true
}

// lasting runs the baseline again if the client gave up the ordinary server before it used it, because everything
// else is compared with the baseline. A client that has ended twice without a message is not launched any more.
func (e *Engine) lasting(ctx context.Context, t *T) *T {
	gaveUp := len(t.Conversations) > 0 && len(t.Requests()) == 0 && t.Ending.Exit != nil &&
		*t.Ending.Exit != wire.Exit{}
	if !gaveUp && !t.mute() || t.Ending.Attended {
		return t
	}
	again := e.fresh(t)
	if !e.launchedAgain(ctx, again) {
		return t
	}
	e.outcomes[0] = again
	if t.mute() && again.mute() {
		e.launches.end(notLaunched + "it ended twice without sending anything")
	}
	return again
}

// secondBaseline returns a function that launches the client once more with the ordinary server, at its first call.
// The function returns that run, or nil if the client could not be launched.
func (e *Engine) secondBaseline(ctx context.Context) func() *T {
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	var second *T
	return func() *T {
		select {
		case begun <- struct{}{}:
			if t := e.fresh(e.outcomes[0]); e.launchedAgain(ctx, t) {
				second = t
			}
			close(ended)
		case <-ended:
		}
		return second
	}
}

// mute reports whether the client ended without having sent anything.
func (t *T) mute() bool {
	return t.Ending.Exit != nil && !slices.ContainsFunc(t.Conversations,
		func(c *judge.Conversation) bool { return spoke(c.Events) })
}

// spoke reports whether the client sent anything on a connection.
func spoke(events []*wire.Event) bool {
	return slices.ContainsFunc(events, func(e *wire.Event) bool {
		return e.From == wire.Client && e.Kind != wire.KindSignal && e.Kind != wire.KindClose
	})
}

// keep takes the outcome of a scenario. It may only run parts of the scenario again, to find a smaller cause.
func (e *Engine) keep(ctx context.Context, i int, t *T) {
	e.finish(i, e.smaller(ctx, t))
}

// finish records the outcome of a scenario and reports it. Nothing else does so.
func (e *Engine) finish(i int, t *T) {
	if e.outcomes[i] != t { // the baseline, which others read, stays
		e.outcomes[i] = t
	}
	if e.Done != nil {
		e.Done(t)
	}
}
