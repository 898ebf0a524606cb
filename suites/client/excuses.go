package client

import (
	"context"
	"sync"

	"github.com/mcpconform/mcpconform/suites/internal/trial"
)

// played is a launch of the client for a scenario, as the table of excuses sees it: its record, and what the engine
// knows and can do. The table tests replace the latter.
type played struct {
	*T
	judged    func()                  // judges the launch, once; the baselines have ended then
	hangs     func() bool             // the client does not end by itself with an ordinary server, either
	separated func() bool             // lets clients run in turn, unless that was seen to make no difference
	alone     func() bool             // waits until no other client runs
	heard     func(spoke, ended bool) // takes in whether the client spoke alone, and whether it ended by itself before
	end       func(why string)        // launches the client no more
}

// excuses is the table for scenarios. Nothing else launches a client again for a scenario alone, but for the search
// for a smaller cause of what was found ([Scenario.Smaller]) and the second baseline ([execution.secondBaseline]).
var excuses = trial.Table[played]{
	{
		// The client may be able to run only once at a time, because it locks a file or listens at a port of its own.
		Name: "mute-beside-others", Again: 1, Stands: true,
		Fits: func(a played) string {
			// Clients that hang are all launched at once, so such a client may not have had the time to speak.
			return trial.When(a.beside && !a.spoke && a.Ending.Skipped == "" && (a.Ending.Exit != nil || !a.hangs()),
				"the client sent nothing while another one was running")
		},
		Ready: func(a played) bool { return a.separated() },
		Learn: func(before, after played) { after.heard(after.spoke, before.Ending.Exit != nil) },
	},
	{
		// Everything else is compared with the baseline.
		Name: "baseline-unused", Again: 1, Stands: true,
		Fits: func(a played) string {
			return trial.When(a.Scenario.Name == Baseline && (a.unbegun() || a.leftUnused()),
				"the client ended before it used the ordinary server")
		},
		Learn: func(before, after played) {
			if before.unbegun() && after.unbegun() {
				after.end(notLaunched + "it ended twice without sending initialize")
			}
		},
	},
	{
		Name: "silence", Again: 1, Stands: true,
		Fits: func(a played) string {
			if !a.Ending.Silent || a.whole || a.combined || a.before != nil && a.before.whole {
				return "" // what counts, or the client hung before, when it had the whole time limit
			}
			a.judged()
			// A client that does not end with an ordinary server, either, has no more time when it is launched again.
			return trial.When(!a.final() || a.idle && !a.hangs(), "the client was stopped before its time limit")
		},
	},
	{
		Name: "other-clients", Again: 1, Stands: true,
		Fits: func(a played) string {
			if a.Ending.Silent || a.combined || a.before != nil {
				return ""
			}
			a.judged()
			return trial.When(!a.final(), "other clients were running")
		},
		Ready: func(a played) bool { return a.alone() },
		Learn: func(before, after played) {
			if after.judged(); !after.Accused() {
				after.noteDifference(before.T)
			}
		},
	},
}

// played returns a launch as the table sees it. leave tells those that wait to run alone that they need not wait for
// this scenario.
func (x *execution) played(ctx context.Context, t *T, leave func()) played {
	return played{
		T:         t,
		judged:    sync.OnceFunc(func() { x.judge(t) }),
		hangs:     x.launches.hung,
		separated: x.launches.tryAlone,
		alone: func() bool {
			x.publish(t)
			leave()
			select {
			case <-x.deserted:
				return true
			case <-ctx.Done():
				return false
			}
		},
		heard: x.launches.triedAlone,
		end:   x.launches.stop,
	}
}

// settle returns the launch of a scenario that counts. It begins with one that has ended.
func (x *execution) settle(ctx context.Context, t *T, leave func()) *T {
	last, _ := excuses.Settle(ctx, x.played(ctx, t, leave), func(before played) (played, bool) {
		again := x.fresh(before.T)
		return x.played(ctx, again, leave), x.launchedAgain(ctx, again)
	})
	last.judged()
	return last.T
}
