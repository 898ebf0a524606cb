// Package check defines checks and runs them. A check provokes a target and asserts facts that only the provoker
// knows. A check is a plain value, so that it can be listed, explained and run without any framework.
package check

import (
	"cmp"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// Check provokes a target and says what must follow.
type Check struct {
	// Name is stable and unique: page topic, slash, what is tried.
	Name string
	// Requirements that the check exercises when its body returns. The first
	// is the one that a failed expectation breaks.
	Requirements []schema.ID
	// Shows lists what else is found broken through the exchanges of the check, by rules or by the
	// check, where plainer exchanges do not show it, as patterns of ids: who selects one of them
	// wants the check.
	Shows []schema.ID
	Needs Needs
	// Families are those of the stimuli that the check draws.
	Families []string
	// Body sends the stimulus and states the expectation. It returns early
	// through the methods of T.
	Body func(t *T)
}

// Needs are the conditions under which a check can run.
type Needs struct {
	Session Session
	// Transports on which the check makes sense; none means all.
	Transports []string
	// Server is a capability that the server must declare, as a dotted path.
	Server string
	// Lacking says why the check cannot be tried on a target, or "": then no
	// session is opened for it, and it is inconclusive. Nil asks for nothing.
	Lacking func(*Target) string
	// Unauthorized says that the check is run even if the server refuses everything
	// because no valid access token was given.
	Unauthorized bool
	// Authorization says that the check is about a server that demands authorization: no
	// session is opened for it at a server that was seen to serve without.
	Authorization bool
	// ToolRoles are the roles in which the check calls tools, as far as there are tools for them.
	ToolRoles []string
	// Options of the session, when it is not the shared one. If they name no capability, an [Own] session may be one
	// whose client declares all of them.
	Options client.Options
	// Lane says when and beside what the check is played.
	Lane Lane
	// Brief says that what the check sends gives the server nothing to do: its plain
	// requests are answered as quickly as before, or not at all.
	Brief bool
	// Concurrent says that the check is about several requests at the same time: a
	// server that refuses one of them because of the others fails it.
	Concurrent bool
	// Beside says that the check can be run beside other requests in its session although it does
	// not share one: it does what others would notice, and is not misled by what they do.
	Beside bool
	// Served says that the check is about a plain request being served: a server
	// that refuses everything fails it.
	Served bool
	// Liveness says that the check is about whether the server goes on answering: a
	// server that does not fails it, even if the call of a tool got no answer before.
	Liveness bool
}

// Lane names checks that are played one after the other, in the order of the catalogue. A check makes use of what the
// one before it has shown, or would mislead the checks of other lanes: no others use the [Own] sessions of the lane. A
// check without a lane is played at any time. [Waiting] and [Last] only say when a check begins.
type Lane string

const (
	// Waiting is for checks that wait, on some servers, for a message that never comes, for many one after the other,
	// or until the server gives up a request of its own. They begin first. Those that are played again, and can be
	// played beside others in their session ([Needs.Beside]), are played at the same time.
	Waiting Lane = "waiting"
	// Last is for checks that begin after all others. They wait for what comes some time after a handshake, if at all,
	// or look at what the others have done. An [Own] session is no longer new.
	Last Lane = "last"
)

// Patient reports whether the check waits until the server gives up a request of its own.
func (c *Check) Patient() bool { return c.Needs.Lane == Waiting && c.Needs.Beside }

// own returns the lane of the check if its checks take turns; otherwise "".
func (c *Check) own() Lane {
	if l := c.Needs.Lane; l != Waiting && l != Last {
		return l
	}
	return ""
}

// Session is the kind of session that a check works in.
type Session uint8

// The kinds of session.
const (
	Shared Session = iota // initialised, used by other checks at the same time
	Own                   // initialised; other checks may have used it before, but none at the time
	Fresh                 // initialised, of this check alone
	Raw                   // a connection on which nothing was sent yet
	None                  // no session at all: for what lies before one
)

var sessionNames = [...]string{"shared", "own", "fresh", "raw", "none"}

func (s Session) String() string { return sessionNames[s] }

// Verdict of one check.
type Verdict uint8

// The verdicts.
const (
	Passed Verdict = iota
	Skipped
	Inconclusive
	Failed
	Broken // the harness could not tell
)

var verdictNames = [...]string{"passed", "skipped", "inconclusive", "failed", "broken"}

func (v Verdict) String() string { return verdictNames[v] }

// Cut is what may end a check before its verdict.
type Cut uint8

// The parties that may do so.
const (
	Uncut    Cut = iota
	ByLimit      // a limit of the harness
	ByRunEnd     // the end of the run
)

// Outcome of one check.
type Outcome struct {
	Check   *Check
	Verdict Verdict
	Reason  string // of skipped, inconclusive and broken
	// Cut says what ended an inconclusive check, if it was not the check itself.
	Cut Cut
	// Record holds the findings of the check, and the consequences of its verdict for its requirements.
	Record ledger.Record
}

// accuses reports whether something was found, be it a warning beside which the check passed.
func (o *Outcome) accuses() bool {
	return o.Verdict == Failed || o.Verdict == Passed && len(o.Record.Findings()) > 0
}

// final returns the outcome and records the consequences of its verdict.
func (o Outcome) final(revision *schema.Revision) Outcome {
	r := o.recorder(revision)
	for _, id := range o.Check.Requirements {
		switch o.Verdict {
		case Failed:
			if found := r.Record.Findings(); len(found) > 0 && len(r.Record.At(id, wire.Server).Findings) == 0 {
				r.Inconclusive(id, wire.Server, "its check ended early because of another finding: "+found[0].Message)
			}
		case Passed:
			r.Pass(id, wire.Server)
		case Skipped:
			r.Skip(id, wire.Server, o.Reason)
		case Inconclusive:
			if o.Cut == ByRunEnd {
				r.NotRun(id, wire.Server, o.Reason)
			} else {
				r.Inconclusive(id, wire.Server, o.Reason)
			}
		case Broken:
			r.Error(id, wire.Server, o.Reason)
		}
	}
	o.Record = r.Record
	return o
}

// cutShort is the outcome of a check that was ended before its verdict.
func (c *Check) cutShort(by Cut, cause error) Outcome {
	return Outcome{Check: c, Verdict: Inconclusive, Reason: cause.Error(), Cut: by}
}

// recorder returns a recorder that adds to what the check has recorded.
func (o Outcome) recorder(revision *schema.Revision) *ledger.Recorder {
	r := ledger.NewRecorder(revision, o.Check.Name)
	if o.Record != nil {
		r.Record = o.Record
	}
	return r
}

// Applies reports whether the check makes sense on a transport.
func (c *Check) Applies(transport string) bool {
	return len(c.Needs.Transports) == 0 || slices.Contains(c.Needs.Transports, transport)
}

// takesLong reports whether a check begins before others. They use the time of its waits.
func (c *Check) takesLong() bool {
	return c.Needs.Lane == Waiting || slices.Contains(c.Needs.ToolRoles, "slow")
}

// key names the sessions in which the check can be run.
func (c *Check) key() key {
	return key{clientOf(cmp.Or(c.options().Version, client.Version), c.options().Capabilities), c.own()}
}

// reuses reports whether the check can be run in a session that others have used.
func (c *Check) reuses() bool { return c.Needs.Session == Own || c.Needs.Session == Shared }

// leaves reports whether the check may leave a session that others can use.
func (c *Check) leaves() bool { return c.Needs.Session == Raw && c.Needs.Options.Version == "" }

// options returns those of a session for the check alone.
func (c *Check) options() client.Options {
	if c.Needs.Session == Shared {
		return Capable()
	}
	return c.Needs.Options
}
