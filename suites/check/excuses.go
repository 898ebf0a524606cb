package check

import (
	"context"
	"fmt"

	"github.com/mcpconform/mcpconform/reference/client"
)

// excuse is a row of the table of excuses: something that a server may do at any time, or that this side has done, and
// that may be the reason for the findings of an attempt instead of the subject of the check.
type excuse struct {
	// name is stable and unique. docs/design.md lists the rows by name.
	name string
	// fits returns the reason, as a clause, if the row applies to an attempt; otherwise "". It may make an experiment.
	fits func(ctx context.Context, e *Engine, a *attempt) (reason string)
	// again is how often the check runs again because of the row.
	again int
	// ready waits until the check can run again. It reports false if that takes too long. Nil: it can at once.
	ready func(ctx context.Context, e *Engine, a *attempt) bool
	// stands says that the row excuses nothing more if the check cannot run again. Otherwise the check is then
	// inconclusive, with the reason.
	stands bool
}

// excuses is the table. The first row that fits decides.
var excuses = []excuse{
	{
		name: "too-many-requests", again: maxLimited - 1,
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			if a.limit == nil {
				return ""
			}
			return fmt.Sprintf("the server refuses requests because there are too many (HTTP status %d)",
				a.limit.HTTP.Status)
		},
		ready: func(ctx context.Context, e *Engine, a *attempt) bool {
			return e.limits.wait(ctx, client.RetryAfter(a.limit))
		},
	},
	{
		name: "late-answer", again: 1, stands: true,
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			return reason(a.late, "a limit decided that was learned from other answers")
		},
	},
	{
		// What failed beside others may need a second time in the same session to show.
		name: "second-time", again: 1, stands: true,
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			return reason(a.doubted && a.outcome.Verdict == Passed, "it may fail only the second time in a session")
		},
	},
	{
		name: "session-lost", again: maxLost - 1, stands: true,
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			return reason(a.lost && a.accuses(), "the server ended the session")
		},
	},
	{
		name: "no-further-session",
		fits: func(ctx context.Context, e *Engine, a *attempt) string {
			if !a.unopened || e.opensAnother() {
				return ""
			}
			err := e.open(ctx, "whether the server opens a further session", Capable(), nil)
			return reason(err != nil, "the server opens no further session: "+fmt.Sprint(err))
		},
	},
	{
		name: "no-room-yet", again: 1, stands: true,
		fits: func(_ context.Context, e *Engine, a *attempt) string {
			return reason(a.unopened && !e.opensAnother(), "the server may take a moment to make room for a session")
		},
		ready: func(_ context.Context, e *Engine, _ *attempt) bool {
			e.closing.Wait()
			return true
		},
	},
	{
		name: "ended-at-will",
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			return reason(a.endedBeneath, "the server ended the session during the check, as it may at any time")
		},
	},
	{
		name: "one-session",
		fits: func(ctx context.Context, e *Engine, a *attempt) string {
			return reason(a.lost && a.several && a.accuses() && e.single(ctx),
				"the server ends a session when another one is opened, and the check needs both")
		},
	},
	{
		name: "short-sessions",
		fits: func(ctx context.Context, e *Engine, a *attempt) string {
			return reason(a.lost && a.accuses() && e.shortLived(ctx, a.interference),
				"the server ends sessions of its own accord, "+
					"and ended this session before the check came to a verdict")
		},
	},
	{
		name: "declared-elsewhere",
		fits: func(_ context.Context, _ *Engine, a *attempt) string {
			for _, r := range a.refusals {
				if r.undeclared != "" {
					return declaredElsewhere(r.undeclared)
				}
			}
			return ""
		},
	},
	{
		name: "limits-rate",
		fits: func(ctx context.Context, e *Engine, a *attempt) string {
			return reason(!a.unanswered && e.limitsRate(ctx, a.refusals),
				"the server refuses requests because there are too many: raise its limit for the test")
		},
	},
	{
		name: "limits-concurrency",
		fits: func(ctx context.Context, e *Engine, a *attempt) string {
			return reason(!a.outcome.Check.Needs.Concurrent && !a.unanswered && e.limitsConcurrency(ctx, a.refusals),
				"the server refuses requests while it serves others")
		},
	},
}

// reason returns a text if it holds.
func reason(holds bool, text string) string {
	if !holds {
		return ""
	}
	return text
}

// settle decides the outcome of a check that was played alone. As long as a row of the table asks for that, it plays
// the check again. Nothing else runs a check again alone.
func (e *Engine) settle(ctx context.Context, f *Future, play func()) {
	played := make(map[string]int) // by row
	for ctx.Err() == nil {
		x, why := e.excused(ctx, &f.last, played)
		switch {
		case x == nil:
			return
		case played[x.name] == x.again || x.ready != nil && !x.ready(ctx, e, &f.last):
			f.last.tellsNothing(why)
			return
		}
		played[x.name]++
		play()
	}
}

// excused returns the first row that fits, and its reason. It returns nil if none does.
func (e *Engine) excused(ctx context.Context, a *attempt, played map[string]int) (*excuse, string) {
	for i := range excuses {
		x := &excuses[i]
		if x.stands && played[x.name] == x.again {
			continue
		}
		if why := x.fits(ctx, e, a); why != "" {
			return x, why
		}
	}
	return nil, ""
}
