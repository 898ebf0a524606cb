package check

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites/internal/trial"
)

// played is an attempt as the table of excuses sees it: what was read from its trace, and what experiments can tell
// beyond that.
type played struct {
	*attempt
	experiments
}

// experiments look into an attempt once more, when a row asks, and no more than once. The table tests replace them with
// their outcomes.
type experiments struct {
	opensAnother      func() bool  // a process has opened a session beside the first one
	further           func() error // why the server opens no further session, or nil
	single            func() bool  // the server ends a session when another one is opened
	shortLived        func() bool  // sessions that do nothing end as well
	limitsRate        func() bool  // the request is refused only because there were too many
	limitsConcurrency func() bool  // the request is refused only because of others at the same time
	pause             func(time.Duration) bool
	closed            func() bool // waits until all closed sessions have ended
}

// experiments returns those that the engine makes about an attempt.
func (e *Engine) experiments(ctx context.Context, a *attempt) experiments {
	return experiments{
		opensAnother: e.opensAnother,
		further: sync.OnceValue(func() error {
			return e.open(ctx, "whether the server opens a further session", Capable(), nil)
		}),
		single:     sync.OnceValue(func() bool { return e.single(ctx) }),
		shortLived: sync.OnceValue(func() bool { return e.shortLived(ctx, a.interference) }),
		limitsRate: sync.OnceValue(func() bool {
			return e.limited(ctx, &e.concurrency.rate, ratable(a.refusals), tryRate)
		}),
		limitsConcurrency: sync.OnceValue(func() bool {
			concurrent := slices.DeleteFunc(slices.Clone(a.refusals), func(r refused) bool { return !r.concurrent })
			return e.limited(ctx, &e.concurrency.beside, concurrent, e.tryBurst)
		}),
		pause: func(d time.Duration) bool { return e.limits.wait(ctx, d) },
		closed: func() bool {
			<-e.closing.None()
			return true
		},
	}
}

// excuses is the table for checks of servers.
var excuses = trial.Table[played]{
	{
		Name: "too-many-requests", Again: maxLimited - 1,
		Fits: func(a played) string {
			if a.limit == nil {
				return ""
			}
			return fmt.Sprintf("the server refuses requests because there are too many (HTTP status %d)",
				a.limit.HTTP.Status)
		},
		Ready: func(a played) bool { return a.pause(client.RetryAfter(a.limit)) },
	},
	{
		Name: "late-answer", Again: 1, Stands: true,
		Fits: func(a played) string {
			return trial.When(a.late, "a limit decided that was learned from other answers")
		},
	},
	{
		// A failure beside others may show only the second time in a session.
		Name: "second-time", Again: 1, Stands: true,
		Fits: func(a played) string {
			return trial.When(a.doubted && a.outcome.Verdict == Passed, "it may fail only the second time in a session")
		},
	},
	{
		Name: "session-lost", Again: maxLost - 1, Stands: true,
		Fits: func(a played) string {
			return trial.When(a.lost && a.outcome.accuses(), "the server ended the session")
		},
	},
	{
		Name: "no-further-session",
		Fits: func(a played) string {
			if !a.unopened || a.opensAnother() {
				return ""
			}
			err := a.further()
			return trial.When(err != nil, "the server opens no further session: "+fmt.Sprint(err))
		},
	},
	{
		Name: "no-room-yet", Again: 1, Stands: true,
		Fits: func(a played) string {
			return trial.When(a.unopened && !a.opensAnother(),
				"the server may take a moment to make room for a session")
		},
		Ready: func(a played) bool { return a.closed() },
	},
	{
		Name: "ended-at-will",
		Fits: func(a played) string {
			return trial.When(a.endedBeneath, "the server ended the session during the check, as it may at any time")
		},
	},
	{
		Name: "one-session",
		Fits: func(a played) string {
			return trial.When(a.lost && a.several && a.outcome.accuses() && a.single(),
				"the server ends a session when another one is opened, and the check needs both")
		},
	},
	{
		Name: "short-sessions",
		Fits: func(a played) string {
			return trial.When(a.lost && a.outcome.accuses() && a.shortLived(),
				"the server ends sessions of its own accord, "+
					"and ended this session before the check came to a verdict")
		},
	},
	{
		Name: "declared-elsewhere",
		Fits: func(a played) string {
			for _, r := range a.refusals {
				if r.undeclared != "" {
					return declaredElsewhere(r.undeclared)
				}
			}
			return ""
		},
	},
	{
		Name: "limits-rate",
		Fits: func(a played) string {
			return trial.When(!a.unanswered && a.limitsRate(),
				"the server refuses requests because there are too many: raise its limit for the test")
		},
	},
	{
		Name: "limits-concurrency",
		Fits: func(a played) string {
			return trial.When(!a.outcome.Check.Needs.Concurrent && !a.unanswered && a.limitsConcurrency(),
				"the server refuses requests while it serves others")
		},
	},
}

// settle decides the outcome of a check that was played alone. Nothing else runs a check again alone.
func (e *Engine) settle(ctx context.Context, f *Future, play func()) {
	last := func() played {
		a := f.last
		return played{&a, e.experiments(ctx, &a)}
	}
	_, why := excuses.Settle(ctx, last(), func(played) (played, bool) {
		play()
		return last(), true
	})
	if why != "" {
		f.last.tellsNothing(why)
	}
}
