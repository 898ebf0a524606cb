package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// T is what the body of a check works with. Its methods that can fail end the
// body; a T is used by the goroutine of its body alone.
type T struct {
	// Context ends when the run is interrupted or the check has taken too long.
	Context context.Context
	// Session of the check; nil if it needs none.
	Session *client.Session
	// Target is what discovery learned.
	Target *Target

	engine *Engine
	check  *Check
	execution
	traffic
	showing
	trying
	failing
	verdict
	shortfall
}

// execution is how the body of a check is executed.
type execution struct {
	allowance  *allowance
	concurrent bool // others are run at the same time, and the check is run again if anything is wrong
	time       int  // the first execution is beside others
}

// traffic is what a body has opened and sent.
type traffic struct {
	extra []*client.Session // opened by the body
	// The messages that Send sent since the last Fence and that need no answer.
	unawaited []*wire.Event
}

// showing is what a finding shows.
type showing struct {
	evidence []*wire.Event
	premises []*wire.Event
}

// trying is what a body tries of families.
type trying struct {
	varied     *variation // while members of a family are tried
	variations int        // how many families were tried so far
	plainly    bool       // the plain member alone is tried
}

// failing is what a failure of the body means.
type failing struct {
	about   string // the requirement
	mild    bool   // it is only a warning
	excused bool   // silence is not what the check is about
}

// verdict is what has come of a body.
type verdict struct {
	outcome Outcome
	rec     *ledger.Recorder
}

// shortfall is why a verdict may not count.
type shortfall struct {
	noAnswer  bool // the check ended because an answer did not come
	late      bool // it may only have been late
	disturbed bool // it ended because of what other checks did
}

func newT(ctx context.Context, e *Engine, c *Check, s *client.Session) *T {
	rec := ledger.NewRecorder(e.Revision, c.Name)
	return &T{Context: ctx, Session: s, Target: e.target, engine: e, check: c,
		verdict: verdict{Outcome{Check: c, Record: rec.Record}, rec}}
}

// stop unwinds the body of a check that has come to its verdict.
type stop struct{}

// maxEvidence bounds how many events a finding shows.
const maxEvidence = 12

// Note remarks something on the check's first requirement.
func (t *T) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if v := t.varied; v != nil {
		v.notes[v.member.Is] = append(v.notes[v.member.Is], text)
		return
	}
	t.rec.Note(t.check.Requirements[0], wire.Server, text)
}

// Show adds events to the evidence of a later failure.
func (t *showing) Show(events ...*wire.Event) {
	for _, e := range events {
		if e != nil {
			t.evidence = append(t.evidence, e)
		}
	}
	if over := len(t.evidence) - maxEvidence; over > 0 {
		t.evidence = append(t.evidence[:0], t.evidence[over:]...)
	}
}

// Premise adds events that lead the evidence of all later findings: the declaration by
// which an act is wrong, or the twin of a request that was accepted. Clear leaves them.
func (t *showing) Premise(events ...*wire.Event) {
	for _, e := range events {
		if e != nil && !slices.Contains(t.premises, e) {
			t.premises = append(t.premises, e)
		}
	}
}

// Exercised records that requirements were exercised, in addition to those of the check.
func (t *T) Exercised(ids ...string) {
	for _, id := range ids {
		t.rec.Pass(id, wire.Server)
	}
}

// Violation records a broken requirement, and the body continues. Without events it takes the evidence that the check
// has collected so far.
func (t *T) Violation(id, message string, events ...*wire.Event) {
	t.find(id, message, false, events)
}

// Warning records a finding that only warns, whatever the requirement's level.
func (t *T) Warning(id, message string, events ...*wire.Event) {
	t.find(id, message, true, events)
}

func (t *T) find(id, message string, warnOnly bool, events []*wire.Event) {
	t.outcome.Verdict = Failed
	switch proof := t.proof(events); {
	case t.varied != nil:
		t.varied.Add(t.varied.member, id, message, warnOnly, proof)
	case warnOnly:
		t.rec.Warn(id, wire.Server, message, proof...)
	default:
		t.rec.Fail(id, wire.Server, message, proof...)
	}
}

// proof returns the evidence of a finding, which is never empty in a session.
func (t *T) proof(events []*wire.Event) []*wire.Event {
	if len(events) == 0 {
		events = t.evidence
	}
	if room := maxEvidence - len(t.premises); len(t.premises) > 0 && room > 0 {
		return slices.Concat(t.premises, events[max(0, len(events)-room):])
	}
	if len(events) == 0 && t.Session != nil {
		all := t.Session.Log().Events()
		events = all[max(0, len(all)-maxEvidence/2):]
	}
	return events
}

// About names the requirement that a failure from here on breaks. Without it,
// that is the check's first one.
func (t *failing) About(id string) { t.about = id }

// ExcuseSilence lets a missing answer end the body as inconclusive from here on: that each request gets
// a response is a requirement of its own, which a rule judges (basic/index#messages).
func (t *failing) ExcuseSilence() { t.excused = true }

// Fail records that the requirement that the body is about is broken and ends
// the body.
func (t *T) Fail(format string, args ...any) {
	t.find(cmp.Or(t.about, t.check.Requirements[0]), fmt.Sprintf(format, args...), t.mild, nil)
	panic(stop{})
}

// Disturbed is Inconclusive because of what other checks do meanwhile: the check is run
// again, alone.
func (t *T) Disturbed(format string, args ...any) {
	t.disturbed = true
	t.Inconclusive(format, args...)
}

// Alone ends the body as long as other checks have sessions: the check is run again when they have none. It waits
// then for the end of those that are being closed.
func (t *T) Alone() {
	if t.time == first && !t.engine.processPerSession() {
		t.Disturbed("other checks have sessions at the same time")
	}
	<-t.engine.closing.None()
}

// Inconclusive ends the body: the requirement applies, but could not be provoked. The reason advises the user.
func (t *T) Inconclusive(format string, args ...any) {
	t.end(Inconclusive, fmt.Sprintf(format, args...))
}

// Skip ends the body: the requirement does not apply to this target.
func (t *T) Skip(format string, args ...any) { t.end(Skipped, fmt.Sprintf(format, args...)) }

func (t *T) end(v Verdict, reason string) {
	// Earlier findings stay.
	if t.outcome.Verdict != Failed {
		t.outcome.Verdict, t.outcome.Reason = v, reason
	}
	panic(stop{})
}

// cutShort ends the body before its verdict.
func (t *T) cutShort(by Cut, cause error) {
	if t.outcome.Verdict != Failed {
		t.outcome.Cut = by
	}
	t.end(Inconclusive, cause.Error())
}

// body runs the check's body to its verdict; a panic is a fault of the harness.
func (t *T) body() {
	defer func() {
		switch r := recover().(type) {
		case nil, stop:
		default:
			t.outcome.Verdict, t.outcome.Reason = Broken, fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	t.check.Body(t)
}

// Must ends the body with a failure if err says that the server did not answer. It ends the body as broken if the
// harness itself has failed.
func (t *T) Must(err error) {
	var timeout *client.TimeoutError
	var closed *client.ClosedError
	var start *transport.StartError
	var stream *transport.StreamError
	switch {
	case err == nil:
	case errors.As(err, &start) && t.Context.Err() == nil && t.wasServed():
		// The engine finds out whether another check has brought it down.
		t.noAnswer = true
		t.Fail("the server was there before, and then could not be reached: %s", ending.Longer(err))
	case errors.As(err, &start), errors.As(err, &stream):
		t.noAnswer = true
		t.end(Inconclusive, ending.Longer(err).Error())
	case errors.Is(err, wire.ErrFlood):
		// The limits of mcpconform ended the reading, not the server.
		t.noAnswer = true
		t.end(Inconclusive, err.Error()+" (limits in the configuration)")
	case errors.As(err, &timeout) && timeout.Awaited != "answer to tools/call" && t.behindTool(err):
	case errors.As(err, &timeout) && t.excused:
		t.noAnswer = true
		t.end(Inconclusive, ending.Longer(err).Error())
	case errors.As(err, &timeout):
		t.noAnswer, t.late = true, timeout.Doubtful
		t.Show(t.lastWords(err)...)
		t.Fail("%s", ending.Longer(err))
	case errors.As(err, &closed), errors.Is(err, transport.ErrClosed):
		t.noAnswer = true
		t.Show(t.lastWords(err)...)
		if closed != nil && closed.Cause != nil && cut(t.Logs(), closed.Cause) {
			t.Show(closed.Cause) // the request may be of another session, as where lists are read
		}
		t.Fail("%s", err)
	case errors.Is(context.Cause(t.Context), errCheckTime):
		t.cutShort(ByLimit, errCheckTime)
	case t.Context.Err() != nil:
		t.cutShort(ByRunEnd, ending.Cause(t.Context))
	default:
		t.noAnswer = true
		t.Show(t.lastWords(err)...)
		t.Fail("%s", ending.Longer(err))
	}
}

// wasServed reports whether the target, which all connections share, has answered
// something in a session of the check.
func (t *T) wasServed() bool {
	return !t.engine.processPerSession() && slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return slices.ContainsFunc(s.Log().Events(),
			func(e *wire.Event) bool { return e.Kind == wire.KindHTTPResponse })
	})
}

// behindTool ends the body when an answer did not come in time while a call of a tool
// was unanswered: a server may do one thing after the other. Checks about liveness
// find out whether it is unresponsive.
func (t *T) behindTool(cause error) bool {
	if t.Session == nil {
		return false
	}
	events := t.Session.Log().Events()
	late := len(events) // where time was up
	for late > 0 && events[late-1].Kind != wire.KindTimeout {
		late--
	}
	if !slices.ContainsFunc(t.Session.Log().Requests(wire.Client, "tools/call"), func(x *wire.Exchange) bool {
		return x.Request.Seq < late && (x.Response == nil || x.Response.Seq > late)
	}) {
		return false
	}
	_, err := t.Session.AwaitEvent(t.Context, late, "answer to a tool that was called", func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse()
	})
	why := ", because a tool that was called before was still running; " + ending.Raise(ending.Timeout)
	if err != nil {
		if t.Context.Err() != nil || t.check.Needs.Liveness {
			return false
		}
		why = ", and a tool that was called before did not answer either"
	}
	t.noAnswer = true
	t.end(Inconclusive, cause.Error()+why)
	return true
}

// lastWords returns the end of the connection, or of the vain wait, and the output of the server to stderr before it.
func (t *T) lastWords(cause error) []*wire.Event {
	if t.Session == nil {
		return nil
	}
	var timeout *client.TimeoutError
	errors.As(cause, &timeout)
	events := t.Session.Log().Events()
	var words []*wire.Event
	for i := len(events) - 1; i >= 0 && len(words) < 4; i-- {
		switch e := events[i]; e.Kind {
		case wire.KindTimeout:
			if timeout == nil || e.Note != timeout.Awaited {
				continue // others wait in the same session
			}
			timeout = nil
			fallthrough
		case wire.KindStderr, wire.KindExit, wire.KindClose:
			words = append([]*wire.Event{e}, words...)
		}
	}
	return words
}

// Call sends a request and returns its exchange; no answer is a failure.
func (t *T) Call(method string, params any, opts ...client.Option) *client.Exchange {
	return t.CallOn(t.Session, method, params, opts...)
}

// CallOn is Call on another session.
func (t *T) CallOn(s *client.Session, method string, params any, opts ...client.Option) *client.Exchange {
	t.offers(s, method)
	var x *client.Exchange
	var err error
	t.yield(func() { x, err = s.Call(t.Context, method, params, opts...) })
	t.Show(x.Events()...)
	t.Must(err)
	t.admitted(x)
	return x
}

// Attempt calls a tool that may take its time: it returns nil when no answer
// came within the limit, which a tool may exceed.
func (t *T) Attempt(params map[string]any, opts ...client.Option) *client.Exchange {
	t.offers(t.Session, "tools/call")
	var x *client.Exchange
	var err error
	t.yield(func() { x, err = t.Session.Call(t.Context, "tools/call", params, opts...) })
	t.Show(x.Events()...)
	var late *client.TimeoutError
	if errors.As(err, &late) {
		t.Fence() // else each further call would take as long
		return nil
	}
	t.Must(err)
	t.admitted(x)
	return x
}

// These are the times within which a server mostly acts of its own accord, if at all.
const (
	AtOnce  = 250 * time.Millisecond // because of what it has just been sent
	Later   = 500 * time.Millisecond // by a timer of its own
	longest = time.Second
)

// Soon returns how long to wait for an act that a server may do of its own accord. It is the usual time, and more on
// a slow target or machine, but at most a second. It only decides whether a check is conclusive.
func (t *T) Soon(usual time.Duration) time.Duration {
	return min(longest, t.engine.pace.Reaction(usual))
}

// Pause waits, unless the time is over or the run is.
func (t *T) Pause(d time.Duration) { pause(t.Context, d) }

// Start sends a request whose answer is awaited later with Await.
func (t *T) Start(method string, params any, opts ...client.Option) *client.Pending {
	t.offers(t.Session, method)
	p, err := t.Session.Start(t.Context, method, params, opts...)
	t.Must(err)
	t.Show(p.Request)
	return p
}

// StartID is Start with an id of the caller's choice.
func (t *T) StartID(id wire.ID, method string, params any, opts ...client.Option) *client.Pending {
	t.offers(t.Session, method)
	p, err := t.Session.StartID(t.Context, id, method, params, opts...)
	t.Must(err)
	t.Show(p.Request)
	return p
}

// Await waits for the answer to a started request.
func (t *T) Await(p *client.Pending) *client.Exchange {
	var x *client.Exchange
	var err error
	t.yield(func() { x, err = p.Await(t.Context) })
	t.Show(x.Response)
	t.Must(err)
	t.admitted(x)
	return x
}

// Notify sends a notification.
func (t *T) Notify(method string, params any, opts ...client.Option) {
	t.Must(t.Session.Notify(t.Context, method, params, opts...))
}

// Send sends bytes as one message, whatever they hold. It sends a response again that is refused for a reason of the
// moment: the server waits for it.
func (t *T) Send(raw string, opts ...client.Option) *wire.Event {
	for tries := 1; ; tries++ {
		e, err := t.Session.Send(t.Context, []byte(raw), opts...)
		t.Show(e)
		t.Must(err)
		if e.Msg.Kind != wire.Request {
			t.unawaited = append(t.unawaited, e)
		}
		x := t.Session.Log().Carrier(e)
		if !e.Msg.IsResponse() || x == nil || x.Head == nil {
			return e
		}
		if x.Status() == http.StatusNotFound { // if the session has ended, what asked for the response waits in vain
			_ = goneFrom(t.Context, t.Session)
		}
		if !t.Session.Options.Passes(t.Context, x.Head, false, tries) {
			return e
		}
	}
}

// NoOp returns the method of a request that does nothing: ping or, if the server
// does not serve ping, a list that it serves without params.
func (t *T) NoOp() string { return t.Session.NoOp() }

// Served returns the methods of the lists that the server serves, but for those that it does not declare in this
// session.
func (t *T) Served() []string {
	return slices.DeleteFunc(t.Target.Methods(), func(method string) bool {
		return !t.Target.Lists[method].Served() || !t.Offers(method)
	})
}

// Offers reports whether a request may be sent in the session: the server declares the needed capability there, or
// nowhere.
func (t *T) Offers(method string) bool {
	return t.Target.undeclared(t.Session.Log(), t.Session.Init, method) == ""
}

// offers ends the body if the server declares the capability that a request needs to other clients, but not in this
// session.
func (t *T) offers(s *client.Session, method string) {
	if feature := t.Target.undeclared(s.Log(), s.Init, method); feature != "" {
		t.Inconclusive("%s", declaredElsewhere(feature))
	}
}

// Fence sends a request that does nothing and waits for its answer: whatever the
// server was going to answer at once to an earlier message has then arrived.
func (t *T) Fence() {
	t.Settle()
	t.FenceOn(t.Session)
}

// Fenced is Fence, unless the last that was sent in the session is a request, and it was answered.
func (t *T) Fenced() {
	t.Settle()
	log := t.Session.Log()
	stream := "" // of the last that was sent
	for _, e := range slices.Backward(log.Events()) {
		switch {
		case e.From != wire.Client:
		case e.Kind != wire.KindMessage:
			stream = cmp.Or(stream, e.Stream)
		default:
			if x := log.Exchange(e); x == nil || x.Response == nil || stream != "" && stream != e.Stream {
				t.Fence()
			}
			return
		}
	}
	t.Fence()
}

// FenceMildly is Fence for a server that no sentence obliges to continue: a missing answer is only a warning.
func (t *T) FenceMildly() {
	t.mild = true
	defer func() { t.mild = false }()
	t.Fence()
}

// Settle waits, over HTTP, for the ends of the streams that belong to messages which
// are not requests: a request could overtake them, as each message has a stream of its
// own (basic/transports#sending-messages-to-the-server).
func (t *T) Settle() {
	for _, sent := range t.unawaited {
		if t.Session.Log().Transport != transport.NameHTTP {
			break
		}
		// Other checks judge a stream that is held open.
		_, _ = t.Session.AwaitEvent(t.Context, sent.Seq, "end of the response to a POST", func(e *wire.Event) bool {
			return e.Stream == sent.Stream && (e.Kind == wire.KindStreamEnd ||
				e.Kind == wire.KindMessage && e.From == wire.Server)
		})
	}
	t.unawaited = nil
}

// FenceOn is Fence on another session.
func (t *T) FenceOn(s *client.Session) {
	x, err := s.Call(t.Context, s.NoOp(), nil)
	if err != nil {
		t.Show(x.Events()...)
	}
	t.Must(err)
}

// Mark returns a position in the session's log, for Since.
func (t *T) Mark() int { return t.Session.Log().Len() }

// Ago returns how long ago an event was.
func (t *T) Ago(e *wire.Event) time.Duration { return time.Since(t.engine.Trace.Start) - e.At }

// Since returns the messages that the server sent after a mark.
func (t *T) Since(mark int) []*wire.Event {
	log := t.Session.Log()
	// The body of a GET that was refused does not count.
	declined := func(e *wire.Event) bool {
		x := log.Carrier(e)
		return x != nil && x.Method() == http.MethodGet && x.Status() >= 400
	}
	var from []*wire.Event
	for _, e := range log.Events()[mark:] {
		if e.Kind == wire.KindMessage && e.From == wire.Server && !declined(e) {
			from = append(from, e)
		}
	}
	return from
}

// Claim reports whether an event is left to this check by those that use its session at the same time: each request of
// the server is answered once.
func (t *T) Claim(e *wire.Event) bool {
	by, _ := t.engine.claimed.LoadOrStore(e, t)
	return by == t
}

// Logs returns what crossed all connections of the run so far.
func (t *T) Logs() []*wire.Log { return t.engine.Trace.Logs() }

// Stray reports whether a response belongs to no request of the session.
func (t *T) Stray(e *wire.Event) bool {
	return !t.Session.Log().Asked(wire.Client, e.Msg.ID)
}

// Refused reports whether a message is the body of an HTTP error that refused a message of ours. It may be a JSON-RPC
// error without an id (basic/transports#sending-messages-to-the-server).
func (t *T) Refused(sent, e *wire.Event) bool {
	x := t.Session.Log().Carrier(e)
	return x != nil && x.Stream == sent.Stream && x.Status() >= 400
}

// Open opens a further initialised session, which is closed with the check. If it
// cannot be opened, the check is inconclusive: it is about what happens in the session.
func (t *T) Open(o client.Options) *client.Session {
	s := t.Connect(o)
	if _, err := s.Initialize(t.Context); err != nil {
		t.noAnswer = true
		t.end(Inconclusive, "no session could be opened for the check: "+err.Error())
	}
	return s
}

// Connect opens a further connection without initialising it. If the server opens no session beside one of the check,
// the check is inconclusive.
func (t *T) Connect(o client.Options) *client.Session {
	if !t.engine.processPerSession() && t.engine.exclusive.Load() && slices.ContainsFunc(t.sessions(), isOpen) {
		t.end(Inconclusive, errWaits.Error()+", and the check needs several")
	}
	s, err := t.engine.connect(t.Context, t.check.Name, o)
	t.Must(err)
	t.extra = append(t.extra, s)
	return s
}

// OpenEach opens further initialised sessions, a few at a time: handshakes that take their time take it once for all
// of them. The error of a session that could not be opened gives the reason. The sessions are closed with the check.
func (t *T) OpenEach(options ...client.Options) (sessions []*client.Session, errs []error) {
	for _, o := range options {
		sessions = append(sessions, t.Connect(o))
	}
	errs = make([]error, len(sessions))
	concurrently(len(sessions), func(i int) { _, errs[i] = sessions[i].Initialize(t.Context) })
	return sessions, errs
}
