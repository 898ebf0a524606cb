package check

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// concurrency is the engine's knowledge of a server that refuses requests while it serves others, in the same session
// or anywhere. The specification does not oblige it to serve several at a time (docs/positions.md,
// requests-beside-others).
type concurrency struct {
	trying chan struct{}   // holds an entry during an experiment, which another would disturb
	beside experiment      // refusals that come only beside other requests
	rate   experiment      // refusals that come only when there were too many requests of late
	in     *client.Session // where requests are sent again; nil before the first one
}

// experiment is the result of sending refused requests again.
type experiment struct {
	limited []refusal // that come only because of other requests
	genuine []refusal // that come in any case, as far as that was tried
}

// Bounds of the experiment that tells why a request was refused.
const (
	maxGenuine = 10 // refusals that are tried without success
	burst      = 8  // requests at once
	bursts     = 3
	aloneTries = 2 * burst // a server that refuses one request in so many has no limit of this kind
)

// limited reports whether one of the requests was refused only because of others, which is tried unless it is known.
// It begins with the last request: a check mostly ends on it. A request that is refused the first time leaves its
// session to the next.
func (e *Engine) limited(ctx context.Context, known *experiment, refusals []refused,
	try func(ctx context.Context, s *client.Session, how refusal, again func() bool) bool) bool {
	if len(refusals) == 0 {
		return false
	}
	select {
	case e.concurrency.trying <- struct{}{}:
		defer func() {
			if e.bounded() {
				e.endExperiments(ctx) // a server may bound how many sessions it keeps
			}
			<-e.concurrency.trying
		}()
	case <-ctx.Done():
		return false
	}
	if slices.ContainsFunc(refusals, func(r refused) bool { return slices.Contains(known.limited, r.how) }) {
		return true
	}
	for _, r := range slices.Backward(refusals) {
		if slices.Contains(known.genuine, r.how) || len(known.genuine) == maxGenuine {
			continue
		}
		if c := &e.concurrency; c.in == nil || closed(c.in) || c.in.Lost() {
			e.endExperiments(ctx)
			c.in, _ = e.initialized(ctx, "whether requests are refused because of others", Capable())
		}
		if s := e.concurrency.in; s != nil {
			again, stop := repeating(ctx, s, r)
			first := again()
			for n := 0; first && r.how.temporary() && n < ratePauses && pause(ctx, time.Second); n++ {
				first = again() // what the check has sent may count still
			}
			limited := !first && try(ctx, s, r.how, again)
			stop()
			if !first {
				e.endExperiments(ctx)
			}
			if limited {
				known.limited = append(known.limited, r.how)
				return true
			}
		}
		known.genuine = append(known.genuine, r.how)
	}
	return false
}

// endExperiments closes the session of the experiments.
func (e *Engine) endExperiments(ctx context.Context) {
	if s := e.concurrency.in; s != nil {
		e.close(ctx, s)
		e.concurrency.in = nil
	}
}

// repeating returns a function that sends a request once more, in another session and for as
// long as one answer may take in all, and reports whether it is refused as it was.
func repeating(ctx context.Context, s *client.Session, r refused) (refused func() bool, stop func()) {
	limit, cancel := context.WithTimeout(ctx, s.Options.Timeout)
	params := r.request.Msg.Params
	if wire.At(params, "_meta", "progressToken") != nil {
		// A token belongs to one request alone (basic/utilities/progress#progress-flow).
		rest := maps.Clone(params.(map[string]any))
		delete(rest, "_meta")
		params = rest
	}
	return func() bool {
		x, err := s.Call(limit, r.request.Msg.Method, params,
			client.Deliberately(ledger.Anything)) // out of its context
		return err == nil && slices.ContainsFunc(x.Events(), func(e *wire.Event) bool {
			how, ok := refusing(e)
			return ok && how == r.how
		})
	}, cancel
}

// tryBurst sends a request alone several times more, and then many times at once, while a
// slow tool is running if there is one. It reports whether the request was refused as
// before only when sent many times at once.
func (e *Engine) tryBurst(ctx context.Context, s *client.Session, _ refusal, refused func() bool) bool {
	for range aloneTries - 1 {
		if refused() {
			return false
		}
	}
	slow, hasSlow := e.target.ToolFor("slow")
	for range bursts {
		if hasSlow {
			if _, err := s.Start(ctx, "tools/call", slow.Params()); err != nil {
				return false
			}
		}
		answers := make(chan bool, burst)
		for range burst {
			go func() { answers <- refused() }()
		}
		together := 0
		for range burst {
			if <-answers {
				together++
			}
		}
		if together > 1 {
			return true
		}
	}
	return false
}

// single reports whether the server ends a session when another is opened.
func (e *Engine) single(ctx context.Context) bool {
	const label = "whether the server keeps several sessions"
	single := false
	_ = e.open(ctx, label, client.Options{}, func(first *client.Session) error {
		if err := first.Fence(ctx); err != nil {
			return err
		}
		return e.open(ctx, label, client.Options{}, func(second *client.Session) error {
			if err := second.Fence(ctx); err != nil {
				return err
			}
			_ = first.Fence(ctx)
			single = lost(ctx, first, false) && !lost(ctx, second, false)
			return nil
		})
	})
	return single
}

// maxLost bounds how often a check is run whose session was lost each time, and the others how
// many pings show that a server ends its sessions of its own accord.
const (
	maxLost     = 3
	fewestPings = 20
	maxPings    = 500
	// lastingTimes is how many times as many requests as in a session that was lost another one has to serve: which
	// one is the last may be a matter of chance.
	lastingTimes = 3
)

// shortLived reports whether the server ends two sessions that do nothing but ping. Each gets some times the requests
// and the time of a check. The end of a session then has nothing to do with the subject of the check.
func (e *Engine) shortLived(ctx context.Context, i interference) bool {
	first, ended := e.pingsUntilLost(ctx, i)
	if !ended {
		return false
	}
	second, ended := e.pingsUntilLost(ctx, i)
	return ended && first+second > 0 // a server that serves no ping is not one that ends sessions
}

// pingsUntilLost returns how many pings are answered in a session, and whether the server ends
// it within the number of them, and the time, that a check took.
func (e *Engine) pingsUntilLost(ctx context.Context, i interference) (answered int, ended bool) {
	<-e.closing.None() // the end of another session must not end this one
	_ = e.open(ctx, "how many requests a session lasts", client.Options{}, func(s *client.Session) error {
		limit, cancel := context.WithTimeout(ctx, s.Options.Timeout)
		defer cancel()
		answers := func() bool {
			x, err := s.Call(limit, s.NoOp(), nil)
			return err == nil && x.Response != nil
		}
		most := min(max(lastingTimes*i.posts, fewestPings), maxPings)
		for answered < most && answers() {
			answered++
		}
		if answered == most && pause(limit, i.age-age(s.Log())) {
			answers()
		}
		ended = lost(ctx, s, true)
		return nil
	})
	return answered, ended
}

// maxRateTries bounds how many requests tell whether the server limits their rate, maxSaid how many if it says so,
// and ratePauses how many seconds it is then left alone.
const (
	maxRateTries = 3 * burst
	maxSaid      = 30 * burst
	ratePauses   = 4
)

// ratable returns the refusals that may be due to how many requests there were: of the calls of tools, or of the
// completions, or with such words (server/tools#security-considerations).
func ratable(refusals []refused) []refused {
	return slices.DeleteFunc(slices.Clone(refusals), func(r refused) bool {
		return r.request.Msg.Method != "tools/call" && r.request.Msg.Method != "completion/complete" &&
			!r.how.temporary()
	})
}

// tryRate reports whether a request that was served once was refused only because there had been too many of late. When
// it is sent again and again, it is then refused as before several times in a row, and after a pause no longer.
func tryRate(ctx context.Context, _ *client.Session, how refusal, refused func() bool) bool {
	const inARow = 3
	row, most := 0, maxRateTries
	if how.temporary() {
		most = maxSaid
	}
	for n := 1; n < most && row < inARow; n++ {
		switch was := refused(); {
		case !was && row > 0:
			return false // it is refused now and then
		case was:
			row++
		}
	}
	for n := 0; n < ratePauses && row == inARow && pause(ctx, time.Second); n++ {
		if !refused() {
			return true
		}
	}
	return false
}
