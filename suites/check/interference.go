package check

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// interference is what a server may do to a check at any time, whatever the
// check is about: refuse a request because there are too many
// (server/tools#security-considerations), open no further session, or end one
// (basic/transports#session-management).
type interference struct {
	limit *wire.Event // with which a request was refused because there were too many, or nil
	lost  bool        // a session was ended, or not opened for want of room
	// How many HTTP requests the busiest session of the check took, and how long the longest one lasted, if one was
	// lost.
	posts int
	age   time.Duration
}

// interference returns what disturbed the check, which began at a mark of its
// session's log.
func (t *T) interference(ctx context.Context, mark int) (i interference) {
	if i.limit = t.limited(mark); i.limit != nil || t.outcome.Verdict == Skipped ||
		t.outcome.Verdict == Passed && len(t.rec.Record.Findings()) == 0 {
		return i
	}
	i.lost = slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return full(s) || lost(ctx, s, t.noAnswer)
	})
	if i.lost {
		for _, s := range t.sessions() {
			i.posts, i.age = max(i.posts, posts(s)), max(i.age, age(s))
		}
	}
	return i
}

// posts returns how many HTTP requests a session has sent.
func posts(s *client.Session) (n int) {
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindHTTPRequest {
			n++
		}
	}
	return n
}

// age returns the time from the first event of a session to its last one.
func age(s *client.Session) time.Duration {
	events := s.Log().Events()
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].At - events[0].At
}

// sessions returns the check's own session, if any, and those that it opened.
func (t *T) sessions() []*client.Session {
	return slices.DeleteFunc(append([]*client.Session{t.Session}, t.extra...),
		func(s *client.Session) bool { return s == nil })
}

// limited returns the response with which a request of the check was refused
// because there were too many, or nil. If all went well, a request that was repeated
// does not count, unless it had to be refused.
func (t *T) limited(mark int) *wire.Event {
	for _, s := range t.sessions() {
		from := 0
		if s == t.Session {
			from = mark
		}
		for _, e := range s.Log().Events()[from:] {
			if wire.TooMany(e) && (t.outcome.Verdict != Passed || deliberate(s.Log().Carrier(e))) {
				return e
			}
		}
	}
	return nil
}

// legalCallFailed reports whether a check beside others was inconclusive while a legal call was refused or failed.
// Others may have made too many calls (server/tools#security-considerations).
func (t *T) legalCallFailed(mark int) bool {
	if !t.concurrent || t.outcome.Verdict != Inconclusive {
		return false
	}
	return slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return slices.ContainsFunc(s.Log().Requests(wire.Client, "tools/call"), func(x *wire.Exchange) bool {
			if x.Response == nil || s == t.Session && x.Request.Seq < mark || len(x.Request.Deliberate) > 0 {
				return false
			}
			return x.Response.Msg.Kind == wire.ErrorResponse || wire.At(x.Response.Msg.Result, "isError") == true
		})
	})
}

// deliberate reports whether an HTTP exchange holds what breaks a requirement on purpose.
func deliberate(x *wire.HTTPExchange) bool {
	return x != nil && slices.ContainsFunc(x.Events(), func(e *wire.Event) bool { return len(e.Deliberate) > 0 })
}

// endedBeneath reports whether the server has ended the session of its own accord, and all findings end with its
// answer that it does not know the session. It may end a session at any time, also after a faulty message
// (basic/transports#session-management). After others, it does not serve them.
func (t *T) endedBeneath(ctx context.Context) bool {
	findings := t.rec.Record.Findings()
	if len(findings) == 0 || slices.ContainsFunc(t.sessions(), deletes) {
		return false
	}
	return !slices.ContainsFunc(findings, func(f ledger.Finding) bool {
		return !slices.ContainsFunc(t.sessions(),
			func(s *client.Session) bool { return ends404(s, f.Evidence) && forgotten(ctx, s) })
	})
}

// ends404 reports whether the last response of a session that evidence shows has the status 404, and comes after a
// faulty message.
func ends404(s *client.Session, evidence []*wire.Event) bool {
	var last *wire.Event
	for _, e := range evidence {
		if e.Conn != s.Log().ID {
			continue
		}
		if x := s.Log().Carrier(e); x != nil && x.Head != nil && (last == nil || x.Head.Seq > last.Seq) {
			last = x.Head
		}
	}
	return last != nil && last.HTTP.Status == http.StatusNotFound &&
		slices.ContainsFunc(s.Log().Events()[:last.Seq], func(e *wire.Event) bool { return len(e.Deliberate) > 0 })
}

// deletes reports whether the client has ended a session: another one must not end with it.
func deletes(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Conversation().HTTP, func(x *wire.HTTPExchange) bool {
		return x.Request.HTTP.Method == http.MethodDelete && x.Head != nil && x.Head.HTTP.Status/100 == 2
	})
}

// forgotten reports whether a session is not known any more, as a request that does nothing shows.
func forgotten(ctx context.Context, s *client.Session) bool {
	conn, ok := s.Conn.(*transport.HTTPConn)
	if !ok || conn.SessionID() == "" || s.Log().Conversation().Initialized == nil {
		return false
	}
	_ = s.Fence(ctx)
	return conn.Lost()
}

// full reports whether the server said that it has no room for a session.
func full(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Requests(wire.Client, "initialize"), func(x *wire.Exchange) bool {
		return x.Head != nil && x.Head.HTTP.Status == http.StatusServiceUnavailable
	})
}

// LostSession reports whether the latest answer of the server is that it does not know a session. It may end a
// session at any time (basic/transports#session-management).
func LostSession(s *client.Session) bool {
	conn, ok := s.Conn.(*transport.HTTPConn)
	return ok && conn.Lost()
}

// lost reports whether the server no longer knows a session that the client has not ended. A missing answer leaves a
// doubt, and so does a 404 to a request that was wrong on purpose. A request that does nothing then decides, unless
// the client has ended the session since.
func lost(ctx context.Context, s *client.Session, doubt bool) bool {
	conn, ok := s.Conn.(*transport.HTTPConn)
	if !ok || LostSession(s) {
		return ok
	}
	notFound := false
	leaving := "" // stream
	for _, e := range s.Log().Events() {
		doubt = doubt && e.Kind != wire.KindTimeout // who is silent would cost a time limit more
		switch {
		case e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodDelete && leaving == "":
			leaving = e.Stream
		case e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound &&
			(leaving == "" || e.Stream == leaving):
			notFound = true
		}
	}
	if conn.Left() {
		return notFound
	}
	if doubt || notFound {
		_ = s.Fence(ctx)
	}
	return conn.Lost()
}

// refusal is how a request was refused.
type refusal struct {
	status  int // of HTTP; 0 for a JSON-RPC error
	code    int64
	message string // without digits, which may count or name the request
}

func (r refusal) String() string {
	switch {
	case r.status != 0:
		return fmt.Sprintf("HTTP status %d", r.status)
	case r.code == 0:
		return "isError: " + wire.Quote(r.message, 120)
	}
	return fmt.Sprintf("error %d: %s", r.code, wire.Quote(r.message, 120))
}

// refusing returns how an event refuses a request, if it does.
func refusing(e *wire.Event) (refusal, bool) {
	switch {
	case e == nil:
	case e.Kind == wire.KindHTTPResponse && e.HTTP.Status >= 400:
		return refusal{status: e.HTTP.Status}, true
	case e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.ErrorResponse && e.Msg.Error != nil:
		return refusal{code: e.Msg.Error.Code, message: withoutDigits(e.Msg.Error.Message)}, true
	case e.Kind == wire.KindMessage && e.From == wire.Server && wire.At(e.Msg.Result, "isError") == true:
		// The example of a failure that the result reports is a limit (server/tools#error-handling).
		var text string
		if content, _ := wire.At(e.Msg.Result, "content").([]any); len(content) > 0 {
			text, _ = wire.At(content[0], "text").(string)
		}
		if how := (refusal{message: withoutDigits(text)}); how.temporary() {
			return how, true
		}
	}
	return refusal{}, false
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// temporary reports whether a refusal speaks of too many requests, in the usual words of servers. That alone excuses
// nothing; it decides for how long the refusal is looked into.
func (r refusal) temporary() bool { return tooMany.MatchString(r.message) }

var tooMany = regexp.MustCompile(`(?i)\brate|quota|throttl|\btoo (many|fast|frequent)|limit(ed)?\b|\bbusy\b|\b(try|retry|come) (again|later|after)|slow down`)

// refused is a request of a check and how it was refused.
type refused struct {
	request *wire.Event
	how     refusal
	// concurrent says that another request of the check was under way at the time.
	concurrent bool
	// undeclared is the capability that the request needs, if the server declares it, but not in the session of the
	// request.
	undeclared string
}

// refusals returns the refused requests among the evidence of the findings.
func (t *T) refusals() []refused {
	shown := make(map[*wire.Event]bool)
	for _, f := range t.rec.Record.Findings() {
		for _, e := range f.Evidence {
			shown[e] = true
		}
	}
	var all []refused
	for _, s := range t.sessions() {
		for _, e := range s.Log().Events() {
			how, ok := refusing(e)
			if !ok {
				continue
			}
			request := posted(s.Log(), e)
			if e.Kind == wire.KindMessage {
				request = s.Log().RequestOf(e)
			}
			if request != nil && (shown[request] || shown[e]) {
				all = append(all, refused{request, how, t.busy(request, e), t.undeclared(s, request.Msg.Method)})
			}
		}
	}
	return all
}

// undeclared returns the capability that a request needs, if the server declares it elsewhere, but not in this
// session. Its offers may depend on the capabilities of the client and on the version
// (basic/lifecycle#capability-negotiation).
func (t *T) undeclared(s *client.Session, method string) string {
	capability := wire.Capability(method)
	if capability == "" || !t.Target.Declares(capability) {
		return ""
	}
	init := s.Init
	if init == nil {
		init = s.Log().Conversation().Init // that of the check itself
	}
	if init == nil || init.Result() == nil {
		return ""
	}
	if wire.Declares(init.Capabilities(), capability) {
		return ""
	}
	return capability
}

// declaredElsewhere says of a capability that it was declared in other sessions alone.
func declaredElsewhere(feature string) string {
	return fmt.Sprintf("the server declares %s to other clients, but not in the session of this check", feature)
}

// posted returns the request that travelled in the HTTP exchange of an event, or nil.
func posted(l *wire.Log, e *wire.Event) *wire.Event {
	x := l.Carrier(e)
	if x == nil || x.Message() == nil || x.Message().Msg.Kind != wire.Request {
		return nil
	}
	return x.Message()
}

// busy reports whether another request of the check was under way at some time
// between a request and its answer. Within a log their order shows that, across
// two logs their times.
func (t *T) busy(request, answer *wire.Event) bool {
	before := func(e, mark *wire.Event) bool {
		if e.Conn == mark.Conn {
			return e.Seq < mark.Seq
		}
		return e.At < mark.At
	}
	return slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		c := s.Log().Conversation()
		return slices.ContainsFunc(c.Exchanges, func(x *wire.Exchange) bool {
			end := ended(c, x)
			return x.From() == wire.Client && x.Request != request && !before(answer, x.Request) &&
				(end == nil || !before(end, request))
		})
	})
}

// ended returns what ended a request: its response or, where there is none, the end of
// the HTTP exchange that could have held it. A stream may be resumed, and has no such end.
func ended(c *wire.Conversation, x *wire.Exchange) *wire.Event {
	if x.Response != nil {
		return x.Response
	}
	carrier := c.Carrier(x.Request)
	if carrier == nil || carrier.End == nil || carrier.End.From != wire.Server ||
		carrier.OK() && carrier.MediaType() == "text/event-stream" {
		return nil
	}
	return carrier.End
}

// refusesAll returns how the server refuses ping and every declared list alike:
// such a server passes no check. It returns nil if the refusals differ, or if they
// are due to the client or to the moment.
func (t *Target) refusesAll(ping *client.Exchange) *refusal {
	all, ok := howRefused(ping)
	if !ok || len(t.Lists) == 0 || ping.Head != nil && passing(ping.Head.HTTP.Status) {
		return nil
	}
	for _, l := range t.Lists {
		if len(l.Pages) == 0 {
			return nil
		}
		if this, ok := howRefused(l.Pages[0]); !ok || this != all {
			return nil
		}
	}
	return &all
}

// passing reports whether an HTTP status is due to the client or to the moment.
func passing(status int) bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable},
		status)
}

// howRefused returns the refusal in an answer. The text of the answer precedes its HTTP status.
func howRefused(x *client.Exchange) (refusal, bool) {
	if x.Response != nil {
		return refusing(x.Response)
	}
	return refusing(x.Head)
}

// A server breaks sseRequirement if its answers come in SSE events without an end. cutAnswer is the reason that
// checks give then.
const (
	sseRequirement = "http.server.sse-response-sent"
	cutAnswer      = "an answer came in an SSE event without the empty line that ends it, and does not count: see " +
		sseRequirement
)

// metCutAnswer reports whether the findings show a request with its answer in an unfinished SSE event: no empty line
// ended the event. A rule finds this one fault. It is not a fault of the request.
func (t *T) metCutAnswer() bool {
	if slices.Contains(t.check.Requirements, sseRequirement) {
		return false
	}
	return slices.ContainsFunc(t.rec.Record.Findings(),
		func(f ledger.Finding) bool { return slices.ContainsFunc(f.Evidence, t.cut) })
}

// cut reports whether an event belongs to a request with its answer in such an event, in any session.
func (t *T) cut(e *wire.Event) bool {
	return slices.ContainsFunc(t.Logs(), func(l *wire.Log) bool {
		if l.ID != e.Conn {
			return false
		}
		x := l.Carrier(e)
		return x != nil && x.CutEvent() != nil
	})
}

// refusedLikeAll reports whether the findings only show the refusal with which the server answers everything. It does
// not apply to a check about that refusal.
func (t *T) refusedLikeAll() bool {
	all := t.Target.refusal
	if all == nil || t.check.Needs.Served {
		return false
	}
	is := func(e *wire.Event) bool {
		how, ok := refusing(e)
		return ok && how == *all
	}
	for _, f := range t.rec.Record.Findings() {
		if slices.ContainsFunc(f.Evidence, is) {
			return true
		}
	}
	return slices.ContainsFunc(t.refusals(), func(r refused) bool { return r.how == *all })
}

// concurrency is the engine's knowledge of a server that refuses requests while it serves others, in the same session
// or anywhere. The specification does not oblige it to serve several at a time (docs/positions.md,
// requests-beside-others).
type concurrency struct {
	trying chan struct{} // holds an entry during an experiment, which another would disturb
	beside experiment    // refusals that come only beside other requests
	rate   experiment    // refusals that come only when there were too many requests of late
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

// limitsConcurrency reports whether the server refused one of the requests only because the check sent others beside
// it.
func (e *Engine) limitsConcurrency(ctx context.Context, refusals []refused) bool {
	refusals = slices.DeleteFunc(slices.Clone(refusals), func(r refused) bool { return !r.concurrent })
	return e.limited(ctx, "whether requests are refused beside others", &e.concurrency.beside, refusals, e.tryBurst)
}

// limited reports whether one of the requests was refused only because of others, which is tried unless it is known.
// It begins with the last request: a check mostly ends on it. A request that is refused the first time leaves its
// session to the next.
func (e *Engine) limited(ctx context.Context, label string, known *experiment, refusals []refused,
	try func(ctx context.Context, s *client.Session, how refusal, again func() bool) bool) bool {
	if len(refusals) == 0 {
		return false
	}
	select {
	case e.concurrency.trying <- struct{}{}:
		defer func() { <-e.concurrency.trying }()
	case <-ctx.Done():
		return false
	}
	if slices.ContainsFunc(refusals, func(r refused) bool { return slices.Contains(known.limited, r.how) }) {
		return true
	}
	var s *client.Session
	leave := func() {
		if s != nil {
			e.close(ctx, s)
			s = nil
		}
	}
	defer func() {
		if s != nil && e.processPerSession() {
			e.openedEarly.leave(label, s)
		} else {
			leave()
		}
	}()
	for _, r := range slices.Backward(refusals) {
		if slices.Contains(known.genuine, r.how) || len(known.genuine) == maxGenuine {
			continue
		}
		if s == nil {
			s, _ = e.initialized(ctx, label, Capable())
		}
		if s != nil {
			again, stop := repeating(ctx, s, r)
			first := again()
			for n := 0; first && r.how.temporary() && n < ratePauses && pause(ctx, time.Second); n++ {
				first = again() // what the check has sent may count still
			}
			limited := !first && try(ctx, s, r.how, again)
			stop()
			if !first {
				leave()
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
	e.closing.Wait() // the end of another session must not end this one
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
		if answered == most && pause(limit, i.age-age(s)) {
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

// limitsRate reports whether one of the calls of tools, or of the completions, or what was refused with such words,
// was refused only because there had been too many of late (server/tools#security-considerations): when it is sent
// again and again it is first served, or refused in another way, then refused as before several times in a row, and
// after a pause no longer.
func (e *Engine) limitsRate(ctx context.Context, refusals []refused) bool {
	return e.limited(ctx, OwnLabel, &e.concurrency.rate, ratable(refusals), tryRate)
}

// ratable returns the refusals that may be due to how many requests there were.
func ratable(refusals []refused) []refused {
	return slices.DeleteFunc(slices.Clone(refusals), func(r refused) bool {
		return r.request.Msg.Method != "tools/call" && r.request.Msg.Method != "completion/complete" &&
			!r.how.temporary()
	})
}

// tryRate makes the experiment of limitsRate with a request that was served once.
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

// unopened reports whether the handshake was begun and got no result.
func unopened(s *client.Session) bool {
	begun := false
	for _, e := range s.Log().Events() {
		switch {
		case e.Kind != wire.KindMessage:
		case e.From == wire.Client && e.Msg.Method == "initialize":
			begun = true
		case e.From == wire.Server && e.Msg.Kind == wire.Result:
			return false
		}
	}
	return begun
}
