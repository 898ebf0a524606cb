package client

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// The engine isolates the findings on clients. First it launches several clients at once, each against several
// scenarios if those do not hide each other. A scenario with a finding then runs again alone, and no other client
// runs meanwhile if other clients may have caused the finding. The second verdict stands, and the run notes a
// difference.

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

// smaller returns the run of a scenario with the smallest part of its stimuli that shows what the run has found. That
// the client hangs is known.
func (e *Engine) smaller(ctx context.Context, t *T) *T {
	if t.Scenario.Smaller == nil {
		return t
	}
	return t.Scenario.Smaller(t, func(limit func(*T)) *T {
		again := e.fresh(t)
		again.whole = false
		limit(again)
		if !e.launchedAgain(ctx, again) {
			return nil
		}
		e.judge(again)
		return again
	})
}

// fresh returns the run of a scenario that follows on another.
func (e *Engine) fresh(t *T) *T {
	again := e.newRun(t.Scenario)
	again.others = t.others
	again.after, again.whole, again.combined = len(e.Trace.Logs()), t.Ending.Silent, t.combined
	if t.spoke {
		again.before = t
	}
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

// secondBaseline returns a function that launches the client once more with the ordinary server, at its first call.
// The function returns that run, or nil if the client could not be launched.
func (e *Engine) secondBaseline(ctx context.Context) func() *T {
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	var second *T
	return func() *T {
		select {
		case begun <- struct{}{}:
			if t := e.fresh(e.awaited[Baseline].t); e.launchedAgain(ctx, t) {
				second = t
			}
			close(ended)
		case <-ended:
		}
		return second
	}
}

// spoke reports whether the client sent anything on a connection.
func spoke(events []*wire.Event) bool {
	return slices.ContainsFunc(events, func(e *wire.Event) bool {
		return e.From == wire.Client && e.Kind != wire.KindSignal && e.Kind != wire.KindClose
	})
}

// finish records the outcome of a scenario and reports it. Nothing else does so.
func (e *Engine) finish(i int, t *T) {
	e.outcomes[i] = t
	if e.Done != nil {
		e.Done(t)
	}
}
