package client

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/match"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Scenario is one server that a client is launched against.
type Scenario struct {
	// Name is stable and unique: topic, slash, subject.
	Name string
	// Requirements that the scenario can judge.
	Requirements []schema.ID
	// Shows lists further requirements, as patterns of ids. The scenario finds them broken if plainer scenarios do
	// not, so a user who selects one of them needs it.
	Shows []schema.ID
	// Families are those of the stimuli that the scenario draws.
	Families []string
	// Smaller runs the scenario again with parts of its stimuli, after a finding that no more than a part of them may
	// have caused. It returns the run with the smallest part that shows the same, or the one that it was given. It is
	// nil if the scenario has no parts.
	Smaller func(t *T, again Again) *T
	// Transports on which the scenario makes sense; none means all.
	Transports []string
	// UserActions tells the client the decisions of a user: topics with actions, such as
	// "elicitation=accept,decline,cancel". It is empty in most scenarios.
	UserActions string
	// Needs is the reason that is given if the scenario could not judge anything. It names the missing act of the
	// client.
	Needs string
	// Lane says beside which others the scenario is played; "" is beside any.
	Lane Lane
	// After names scenarios. One of them, over each transport, tells whether this one can show anything. Excused says
	// why it cannot, from the acts of the client there, or "".
	After   []string
	Excused func(first *T) string
	// Path replaces the path of the URL that the client is given.
	Path string
	// Options returns the options of the server; nil is the ordinary server.
	Options func(run *ScenarioRun) server.Options
	// Faults lists faults of the catalogue of package mockserver that the server has besides.
	Faults []string
	// Authorization says how the server is protected; nil leaves it open.
	Authorization func() *AuthorizationSetup
	// Official is the name of a scenario of the official conformance tool: clients
	// that are written for it choose their behaviour by this name. "" is the
	// ordinary one.
	Official string
	// Judge judges what the client has done. It may be nil: then only the passive
	// rules judge.
	Judge func(t *T)
}

// Lane is where a scenario is played.
type Lane string

// Waiting is the lane of the scenarios that keep a client waiting on purpose. They begin first, and the others use the
// time. A client that is still there at the time limit may end by itself in the others.
const Waiting Lane = "waiting"

// Applies reports whether the scenario makes sense on a transport.
func (s *Scenario) Applies(name string) bool {
	return len(s.Transports) == 0 || slices.Contains(s.Transports, name)
}

// Named reports whether a name or pattern, as in [path.Match], is the scenario's.
func (s *Scenario) Named(pattern string) bool {
	ok, err := path.Match(pattern, s.Name)
	return ok && err == nil || pattern == s.Name
}

// about reports whether the scenario can judge a requirement, or names it in Shows.
func (s *Scenario) about(q schema.Requirement) bool {
	return slices.Contains(s.Requirements, q.ID) || slices.ContainsFunc(s.Shows, q.Matches)
}

// Baseline is the name of the scenario with which the others are compared.
const Baseline = "baseline"

// FaultPrefix begins the names of the scenarios whose server has one fault of
// the catalogue of package mockserver.
const FaultPrefix = "fault/"

// Settings are the same for all scenarios of a run.
type Settings struct {
	Revision  *schema.Revision
	Transport string
	// Timeout of one scenario. Zero: DefaultTimeout.
	Timeout time.Duration
	// GivesUpAfter is the time after which the client gives up a request without an answer, even if progress comes.
	// Zero: not known.
	GivesUpAfter time.Duration
	// Authorizes says that the client is meant to seek authorization: if it does not, that is a failure.
	Authorizes bool
	// Choice of the members of families that are sent to the client.
	Choice family.Choice
}

// ScenarioRun is what the server of a scenario is told about one launch of the client.
type ScenarioRun struct {
	Settings
	// Patience is how long to wait for an answer of the client. UserPatience is how long to wait if the client may
	// ask a person.
	Patience, UserPatience time.Duration
	// Folder is an empty folder of the scenario's own, which the scenario may
	// remove.
	Folder string
	// Part is the part of the stimuli that the scenario is limited to; nil for all.
	Part any
	// Notes are what the server notes for the judge.
	Notes Notes

	left atomic.Bool // the client ended a session in the middle of a script
}

// Again runs a scenario once more and judges it. limit changes the run before it begins. Again returns nil if the
// client cannot be launched.
type Again func(limit func(*T)) *T

// Notes are what the server of a scenario notes for its judge.
type Notes struct {
	mu  sync.Mutex
	all []any
}

// Add adds a note.
func (n *Notes) Add(one any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, one)
}

// All returns the notes.
func (n *Notes) All() []any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// Ending tells how the client under test ended in a scenario.
type Ending struct {
	// Exit of the process, or nil if the harness stopped it.
	Exit *wire.Exit
	// Late says that the client was still there at the time limit, Busy that it
	// had done something shortly before.
	Late, Busy bool
	// Silent says that the client was stopped before the time limit, after a long silence.
	Silent bool
	// Skipped says why the client was not launched at all, or "".
	Skipped string
	// NotRun says that the client was not launched because the run had ended.
	NotRun bool
	// Attended says that a person connected the client and decided when to stop. Omissions of the client are then not
	// judged.
	Attended bool
	// Output is the end of the client's output to stdout and stderr.
	Output string
}

// The statuses with which a shell and the panics of Go and Rust end a process.
const (
	statusSignal    = 128 // and the number of the signal
	maxSignal       = 31
	statusGoPanic   = 2
	statusRustPanic = 101
)

// Crash says how a process crashed: it ended as no program ends by intent. It returns "" if it did not.
func (e Ending) Crash() string {
	switch exit := e.Exit; {
	case exit == nil:
		return ""
	case exit.Signal != "":
		return exit.String()
	case exit.Code > statusSignal && exit.Code <= statusSignal+maxSignal:
		return fmt.Sprintf("exited with status %d, which stands for signal %d", exit.Code, exit.Code-statusSignal)
	case exit.Code == statusGoPanic && strings.Contains(e.Output, "\ngoroutine "),
		exit.Code == statusRustPanic && strings.Contains(e.Output, "panicked at "):
		return "panicked"
	}
	return ""
}

// stackTrace matches the beginning of the output of runtimes for an uncaught exception.
var stackTrace = regexp.MustCompile(
	`(?m)^Traceback \(most recent call last\):|^\s+at \S.*:\d+|^Exception in thread |^Unhandled exception` +
		`|^fatal error: |panicked at `)

// Uncaught reports whether the client may have ended because of an unexpected exception.
func (e Ending) Uncaught() bool {
	return e.Exit != nil && *e.Exit != (wire.Exit{}) && stackTrace.MatchString(e.Output)
}

// T holds the record of one scenario for its judgement.
type T struct {
	*ScenarioRun
	Scenario *Scenario
	// Conversations that the client had, oldest first.
	Conversations []*judge.Conversation
	Ending        Ending
	// Flow is how the client obtained a token; nil if the server is open.
	Flow *Flow
	others
	launched
	continued *continuation // what Continued has found; nil before
	rec       *ledger.Recorder
}

// others are further launches of the client, with which a launch is compared.
type others struct {
	// Baseline is the same client with the ordinary server.
	Baseline *T
	// Preceding is the same client in the scenario that this one follows on; nil if that is not run.
	Preceding *T
	// second is the client with the ordinary server once more. It is launched when it is first asked for, and is nil if
	// that fails. The function is nil if the client cannot be launched.
	second func() *T
}

// launched tells how the client was launched for a run.
type launched struct {
	before   *T   // an earlier run of the scenario alone, in which the client spoke; nil if this is the first
	after    int  // connections that the trace held when the run began
	whole    bool // the client was seen to hang in an earlier run, and has the whole time limit
	combined bool // the run is for several scenarios, which run alone if the client does not come through
	beside   bool // another client was running
	spoke    bool // the client has sent something
	idle     bool // the client was stopped because it sent nothing, although it had all its answers
}

// SourcePrefix stands before the name of a scenario where it is the source of
// findings.
const SourcePrefix = "scenario: "

// Record returns what the scenario recorded, with a reason for each of its
// requirements that it could not judge.
func (t *T) Record() ledger.Record {
	r := t.Recorder()
	for _, id := range t.Scenario.Requirements {
		if e := r.Record.At(id, wire.Client); e.Exercised == 0 && len(e.Skipped) == 0 && e.Error == "" &&
			len(e.Inconclusive) == 0 {
			switch {
			case t.Ending.NotRun:
				r.NotRun(id, wire.Client, t.Ending.Skipped)
			case t.Choice.Budget == result.Quick && len(t.Scenario.Families) > 0 && len(t.Requests()) > 0:
				r.NotRun(id, wire.Client, result.QuickOnly) // another member of a family tries it
			default:
				r.Inconclusive(id, wire.Client, t.reasonInconclusive())
			}
		}
	}
	return r.Record
}

// reasonInconclusive says why the scenario could not judge a requirement.
func (t *T) reasonInconclusive() string {
	switch {
	case t.Ending.Skipped != "":
		return t.Ending.Skipped
	case len(t.Conversations) == 0:
		return "the client did not connect in scenario " + t.Scenario.Name
	case t.Scenario.Needs != "" && !t.had(t.Scenario.Needs):
		return "in scenario " + t.Scenario.Name + " " + t.Scenario.Needs
	}
	if ok, _, how := t.Continued(); !ok && how != "" {
		return "in scenario " + t.Scenario.Name + " " + how
	}
	if t.outstays(t.Baseline) {
		return "in scenario " + t.Scenario.Name + " " + outstayed
	}
	return "the client did nothing in scenario " + t.Scenario.Name + " that could be judged"
}

// had reports whether the record shows the client doing the act that a scenario needs. The reason is then another
// one.
func (t *T) had(need string) bool {
	switch {
	case need == NeedsEnd:
		return t.Ending.Exit != nil
	case strings.HasPrefix(need, NeedsRequest):
		return len(t.Requests()) > 0
	case need == NeedsList:
		return slices.ContainsFunc(t.Requests(),
			func(x *judge.Exchange) bool { return strings.HasSuffix(x.Method(), "/list") })
	}
	return false
}

// Many scenarios need these acts of the client. Each text says that the client did not do it.
const (
	NeedsHandshake = "the client did not complete a handshake"
	NeedsEnd       = "the client did not end by itself"
	NeedsRequest   = "the client sent no request other than pings after the handshake"
	NeedsList      = "the client requested no list"
)

// Recorder returns the recorder of the scenario, for what the other methods do not record.
func (t *T) Recorder() *ledger.Recorder {
	if t.rec == nil {
		t.rec = ledger.NewRecorder(t.Revision, SourcePrefix+t.Scenario.Name)
	}
	return t.rec
}

// HasFindings reports whether the scenario found that the client breaks a
// requirement.
func (t *T) HasFindings(id string) bool {
	return len(t.Recorder().Record.At(id, wire.Client).Findings) > 0
}

// Exercised counts that the client satisfied a requirement.
func (t *T) Exercised(ids ...string) {
	for _, id := range ids {
		t.Recorder().Pass(id, wire.Client)
	}
}

// Violation records that the client broke a requirement. The events are the
// proof, oldest first.
func (t *T) Violation(id, message string, events ...*wire.Event) {
	t.Recorder().Fail(id, wire.Client, message, events...)
}

// Warning records a violation that only warns, whatever the level.
func (t *T) Warning(id, message string, events ...*wire.Event) {
	t.Recorder().Warn(id, wire.Client, message, events...)
}

// Inconclusive says why the scenario cannot tell whether requirements are satisfied.
func (t *T) Inconclusive(reason string, ids ...string) {
	for _, id := range ids {
		t.Recorder().Inconclusive(id, wire.Client, reason)
	}
}

// Check expects something of a value. If the value fits, the requirement is exercised, else broken. The proof holds
// the events, oldest first, and the events that show the value.
func (t *T) Check(id string, actual any, events ...*wire.Event) *match.Expectation {
	return t.expect(id, actual, events, t.Violation)
}

// WarnUnless is Check for an expectation that only warns, whatever the requirement's level.
func (t *T) WarnUnless(id string, actual any, events ...*wire.Event) *match.Expectation {
	return t.expect(id, actual, events, t.Warning)
}

func (t *T) expect(id string, actual any, events []*wire.Event,
	unmet func(id, message string, events ...*wire.Event)) *match.Expectation {
	unsatisfied := func(message string, shown []*wire.Event) {
		proof := slices.Clone(events)
		for _, e := range shown {
			if !slices.Contains(proof, e) {
				proof = append(proof, e)
			}
		}
		unmet(id, message, proof...)
	}
	return &match.Expectation{Actual: actual, Satisfied: func() { t.Exercised(id) }, Unsatisfied: unsatisfied}
}

// Handshake returns the first conversation in which the client sent requests after
// the handshake, else the first one with a handshake; nil if there is none. A
// client may open a session only to see whether the server is there.
func (t *T) Handshake() *judge.Conversation {
	var first *judge.Conversation
	for _, c := range t.Conversations {
		if len(RequestsOf(c)) > 0 {
			return c
		}
		if first == nil && c.Handshaken() {
			first = c
		}
	}
	return first
}

// Requests returns the client's requests after the handshake, apart from pings.
func (t *T) Requests() []*judge.Exchange {
	var all []*judge.Exchange
	for _, c := range t.Conversations {
		all = append(all, RequestsOf(c)...)
	}
	return all
}

// RequestsOf returns the client's requests in a conversation after the handshake, apart from pings.
func RequestsOf(c *judge.Conversation) []*judge.Exchange {
	if !c.Handshaken() {
		return nil
	}
	var all []*judge.Exchange
	for _, x := range c.Exchanges {
		if x.From() == wire.Client && IsOperation(x.Method()) && x.Request.Seq > c.Init.Response.Seq {
			all = append(all, x)
		}
	}
	return all
}

// IsOperation reports whether a method belongs to neither handshake nor liveness.
func IsOperation(method string) bool { return method != "initialize" && method != "ping" }

// Asked returns the server's request whose id is the given text, or nil; only scripts send such ids. If the request was
// sent again because it may have been lost with its stream, it returns the second one.
func (t *T) Asked(id string) *judge.Exchange {
	if again := t.requestOf(id + resent); again != nil {
		return again
	}
	return t.requestOf(id)
}

func (t *T) requestOf(id string) *judge.Exchange {
	for _, c := range t.Conversations {
		for _, x := range c.Exchanges {
			if x.From() == wire.Server && x.Request.Msg.ID.Key() == wire.StringID(id).Key() {
				return x
			}
		}
	}
	return nil
}

// Answered returns a request of the script, which is nil if it was never sent, and
// reports whether the client answered it.
func (t *T) Answered(id string) (x *judge.Exchange, ok bool) {
	x = t.Asked(id)
	return x, x != nil && x.Response != nil
}

// LastEvents returns the last messages of a conversation.
func LastEvents(c *judge.Conversation, n int) []*wire.Event {
	if c == nil {
		return nil
	}
	return c.Messages[max(0, len(c.Messages)-n):]
}

// Last returns the newest conversation, or nil.
func (t *T) Last() *judge.Conversation {
	if len(t.Conversations) == 0 {
		return nil
	}
	return t.Conversations[len(t.Conversations)-1]
}
