package check

import (
	"errors"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
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
	late       bool // the answer may only have been late: a learned limit decided
	disturbed  bool // other checks kept it from a verdict
	doubted    bool // an earlier attempt found something, and this one can be followed by another in its session
	interference
	refusals     []refused // of a failed check
	several      bool      // it used more than one session
	unopened     bool      // its session was not opened for it
	broken       bool      // of a failed check: the server said that it was broken
	endedBeneath bool      // of a failed check: all that was found is that the server had ended the session
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
	Check    *Check
	revision *schema.Revision
	done     chan struct{}
	last     attempt
	reused   bool // it was run in a session of the client that can do everything, which it does not need
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

// finish ends a check with its outcome. No other place does so.
func (f *Future) finish() {
	f.last.outcome = f.last.outcome.final(f.revision)
	close(f.done)
}

// giveUp ends a check that can no longer come to a verdict. Its findings from the time when the server answered
// stand. Without a cause, all stands.
func (f *Future) giveUp(cause error) {
	if cause != nil && !(f.last.mine() && (!f.last.broken || errors.Is(cause, ending.ErrInterrupted))) {
		f.abandoned = f.last.outcome.Record
		f.last.outcome = f.Check.cutShort(ByRunEnd, cause)
	}
	f.finish()
}

// mine reports whether the attempt found something while the server answered all
// that was asked.
func (a *attempt) mine() bool {
	return a.outcome.Verdict == Failed && !a.unanswered && !a.lost && a.limit == nil
}

// noteDifference notes what an earlier attempt found if the last one has passed.
func (f *Future) noteDifference(before attempt) {
	var text string
	switch {
	case f.last.outcome.Verdict != Passed:
		return
	case before.late:
		text = "at first an answer came later than others; when the check ran again, it came in time"
	case before.mine():
		text = "it failed while other checks ran, but passed when it ran alone: " +
			before.outcome.Record.Findings()[0].Message
	default:
		return
	}
	r := f.last.outcome.recorder(f.revision)
	r.Note(f.Check.Requirements[0], wire.Server, text)
	f.last.outcome.Record = r.Record
}

func (a *attempt) tellsNothing(reason string) {
	a.outcome = Outcome{Check: a.outcome.Check, Verdict: Inconclusive, Reason: reason}
}
