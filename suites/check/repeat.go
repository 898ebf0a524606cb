package check

import (
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// repeatable are the checks that others may repeat.
type repeatable struct {
	sharing []*Check // see [T.Sharing]
	found   sync.Map // by check: the requirements of which its last execution alone found something
}

// Sharing returns the checks of the run that can be tried on the target beside other requests in
// their session, whatever these are. Only a thorough run has those of one transport: they are about its heads.
func (t *T) Sharing() []*Check {
	return slices.DeleteFunc(slices.Clone(t.engine.sharing), func(c *Check) bool {
		return len(c.Needs.Transports) > 0 && !t.Thorough() ||
			t.engine.inapplicable(c) != "" || t.engine.lacking(c) != ""
	})
}

// sharing reports whether a check can be run beside other requests in its session.
func sharing(c *Check) bool {
	return (c.Needs.Session == Shared || c.Needs.Beside) && !c.Needs.Concurrent && c.Needs.Lane != Last &&
		!c.takesLong()
}

// Found returns the requirements with findings in the last execution of another check alone, as far as that has
// ended. Findings beside other checks may come from those.
func (t *T) Found(c *Check) []string {
	ids, _ := t.engine.found.Load(c)
	found, _ := ids.([]string)
	return found
}

// Plainly reports whether the check is repeated and has to send only plain members (see [T.Repeat]).
func (t *T) Plainly() bool { return t.plainly }

// Items returns how many of n items of a list a check asks for: all, or a few if it is repeated. Beside a call, the
// check base/everything-beside-call asks for all of them.
func (t *T) Items(n int) int {
	const few = 2
	if t.plainly && !t.Thorough() {
		return min(n, few)
	}
	return n
}

// Repeat runs the body of another check once more, in a session of this one in which it was not run before, and with
// the plain members of families alone. It returns the record of that execution. An answer that is missing here, and
// comes in a separate session, is a finding of this check and ends it.
func (t *T) Repeat(c *Check, s *client.Session) ledger.Record {
	again := t.repeat(c, s)
	if !again.noAnswer {
		return again.rec.Record
	}
	if t.repeat(c, t.Open(t.check.Needs.Options)).noAnswer { // the check itself finds that
		t.noAnswer = true
		t.end(Inconclusive, "in the check "+c.Name+", even when nothing else runs: "+again.outcome.Reason)
	}
	t.noAnswer, t.late = true, again.late
	for _, k := range again.rec.Record.Keys() {
		for _, f := range again.rec.Record[k].Findings {
			if c.Needs.Beside {
				t.About(k.Requirement) // it may be what the check is about that the server does not survive
			}
			t.Show(f.Evidence...)
			t.Fail("in the check %s: %s", c.Name, f.Message)
		}
	}
	t.end(Inconclusive, "in the check "+c.Name+": "+again.outcome.Reason)
	return nil
}

func (t *T) repeat(c *Check, s *client.Session) *T {
	again := newT(t.Context, t.engine, c, s)
	again.allowance = t.allowance
	again.plainly = true
	again.body()
	t.extra = append(t.extra, again.extra...)
	return again
}
