package suites

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/lastwords"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/server"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
	"github.com/mcpconform/mcpconform/suites/result"
)

// ServerChecks is the stimulus for servers: checks send messages that a client may send, and messages that it must
// not.
type ServerChecks struct {
	Dialer   transport.Dialer
	Settings check.Settings
	// StartTimeout is how long the first answer of a new process may take; zero is
	// [client.StartTimes] the time of another.
	StartTimeout time.Duration
	// Restart brings back a target over HTTP that no longer answers; nil
	// if that is not possible.
	Restart func(context.Context) error
	// Login obtains an access token if the server demands one and the connection has none; nil does not.
	Login *check.Login
}

func (s ServerChecks) begin(r *run) stimulus { return &serverRun{ServerChecks: s, run: r} }

// Secrets makes known the secrets of the connection and of the settings.
func (s ServerChecks) Secrets(r *transport.Redactor) {
	if d, ok := s.Dialer.(*transport.Stdio); ok {
		if c, ok := d.Launcher.(transport.Command); ok {
			r.AddEnv(c.Env...)
			r.AddArgs(c.Args...)
		}
	}
	if e := transport.EndpointOf(s.Dialer); e != nil {
		r.AddTarget(e.Header, e.URL)
		if e.Redactor == nil {
			e.Redactor = r // as a run finds out more
		}
	}
	r.Add(s.Settings.Secrets...)
	r.Add(s.Settings.Authorization.Tokens()...)
}

// serverRun is the stimulus while the run goes on.
type serverRun struct {
	ServerChecks
	*run
	checks  map[string]*check.Check // by name
	engine  *check.Engine
	target  *check.Target
	futures map[string]*check.Future
	cause   error
}

func (s *serverRun) party() wire.Party { return wire.Server }

// transport is known for sure once the server was found.
func (s *serverRun) transport() string {
	if s.engine != nil {
		return s.engine.Dialer.Transport()
	}
	return s.Dialer.Transport()
}

func (s *serverRun) limit(n int) time.Duration {
	answer := cmp.Or(s.Timeout, client.DefaultTimeout)
	limit := runTime(n, answer)
	// A run over stdio starts about a dozen processes.
	const starts = 12
	limit += starts * max(0, s.StartTimeout-client.StartTimes*answer)
	if l := s.Login; l != nil && l.Consent != nil {
		limit += l.Consent.Wait
	}
	if patience := s.Settings.GivesUpAfter; patience > 0 {
		// Two tools, and each once more, alone.
		limit += 4 * (patience + 2*check.GivingUp)
	}
	return limit
}

func (s *serverRun) specs() ([]*tree.Spec, error) {
	s.checks = make(map[string]*check.Check)
	var specs []*tree.Spec
	checks := slices.Clone(server.Checks())
	for _, script := range s.Scripts {
		checks = append(checks, server.Scripted(script, serves(script)...))
	}
	for _, c := range checks {
		s.checks[c.Name] = c
		spec := s.spec(c.Name, c.Requirements, tree.Label(tree.KeySession, c.Needs.Session.String()))
		s.shows(spec, c.Shows)
		spec.Cheap = c.Needs.Session == check.Shared && c.Needs.Lane == ""
		spec.Await = func(context.Context) tree.Outcome {
			f := s.futures[c.Name]
			if f == nil {
				return tree.Outcome{Verdict: result.Skip, Message: dispensable}
			}
			return s.outcome(f.Await().Record)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func (s *serverRun) start(ctx context.Context, left []*tree.Spec) {
	s.engine = &check.Engine{Options: check.Options{
		Revision: s.Revision,
		Dialer:   s.Dialer, Trace: s.Trace, Timeout: s.Timeout, StartTimeout: s.StartTimeout, Parallel: s.Parallel,
		Settings: s.Settings, Restart: s.Restart, Login: s.Login,
		Choice: family.Choice{Seed: s.Seed, Budget: s.Budget},
	}}
	s.target, s.cause = s.engine.Prepare(ctx)
	if s.cause != nil && ctx.Err() != nil {
		s.cause = ending.Cause(ctx)
	}
	if s.target.Init != nil {
		s.ledger.Evidence.Revision, _ = s.target.Init.Result()["protocolVersion"].(string)
	}
	if refused := (*client.RefusedError)(nil); errors.As(s.cause, &refused) {
		supported := refused.Supported()
		if len(supported) == 0 {
			supported = s.engine.Later(ctx, refused)
		}
		if len(supported) > 0 {
			s.ledger.Evidence.Revision = slices.Max(supported)
		}
	}
	if other := s.ledger.OtherRevision(); other != nil && ctx.Err() == nil {
		s.cause = other
	}
	var checks []*check.Check
	left = s.plainest(s.needed(left), s.seen, func(spec *tree.Spec) trial {
		return checkTrial(s.checks[spec.Name], s.target)
	})
	for _, spec := range left {
		c := s.checks[spec.Name]
		checks = append(checks, c)
		s.ledger.Serve(c.Name, wire.Server, c.Requirements...)
	}
	s.futures = make(map[string]*check.Future, len(checks))
	for i, f := range s.engine.Start(ctx, checks, s.cause) {
		s.futures[checks[i].Name] = f
	}
}

func (s *serverRun) finish(ctx context.Context) {
	var gone error
	if s.cause == nil && ctx.Err() == nil {
		gone = s.engine.Alive(ctx) // the judge sees why
	}
	s.engine.Finish(ctx)
	if ctx.Err() != nil && s.cause == nil {
		s.cause = ending.Cause(ctx)
	}
	s.judging = judge.Options{Secrets: slices.Concat(s.target.Settings.Secrets, s.engine.Tokens()),
		Personal: s.target.Settings.Personal}
	s.ledger.NotRun, s.ledger.Cause = s.cause, s.cause
	s.ledger.Given = s.target.Settings.Given()
	if e := transport.EndpointOf(s.Dialer); e != nil && (e.Token != nil || e.Header.Get("Authorization") != "") {
		s.ledger.Given = append(s.ledger.Given, "--bearer-env")
	}
	if s.target.Init != nil && s.target.Init.Result() != nil {
		s.ledger.Declared = func(_ wire.Party, capability string) bool { return s.target.Declares(capability) }
	}
	s.handshake()
	lapsed := s.engine.Lapsed()
	if failed := new(check.LoginError); errors.As(cmp.Or(s.cause, lapsed), &failed) {
		s.login = failed.Result()
	}
	if s.target.Init != nil {
		describe(&s.Target, s.target.Init.Result(), "serverInfo")
	}
	s.uncalled = s.target.Uncalled()
	for _, u := range s.uncalled {
		s.ledger.Evidence.Forbidden = append(s.ledger.Evidence.Forbidden, u.Tool)
	}
	s.offer = offer(s.target)
	if s.target.Profile != "" {
		s.notes = append(s.notes, "the server was recognised as "+s.target.Profile+
			"; its tools are known to be safe to call")
	}
	for _, cause := range []error{lapsed, s.engine.Dead(), gone, s.overdue()} {
		if s.ledger.Cause == nil {
			s.ledger.Cause = cause
		}
	}
	s.ledger.Add(s.engine.Blame(slices.Collect(maps.Values(s.futures))))
	if n := s.engine.Restarts(); n > 0 {
		s.notes = append(s.notes,
			fmt.Sprintf("the server stopped answering and was started again, %d times in this run", n))
	}
	if s.ledger.Cause != nil {
		s.quoteStderr()
	}
}

// overdue is the reason why the run is not whole if checks were ended by a limit
// of time; nil if there are none.
func (s *serverRun) overdue() error {
	var late []string
	for name, f := range s.futures {
		if o := f.Await(); o.Verdict == check.Inconclusive && o.Cut == check.ByLimit {
			late = append(late, name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	slices.Sort(late)
	return fmt.Errorf("mcpconform ended checks that took too long: %s; %s", strings.Join(late, ", "),
		ending.Raise(ending.Timeout))
}

// handshake records what it means when the handshake itself failed.
func (s *serverRun) handshake() {
	var start *transport.StartError
	var unauthorized *check.UnauthorizedError // which is an answer
	var stream *transport.StreamError
	if errors.As(s.cause, &stream) && !s.saidSomething() {
		// The rules tell what is wrong with a stream that was opened.
		s.unmet(ids.SSEServerSSEEndpoint)
	}
	if s.ledger.OtherRevision() != nil && s.target.Init.Result() == nil {
		// The page shows such an error, against its own text (docs/positions.md, unsupported-version).
		const id = ids.LifecycleVersionOfferOther
		rec := ledger.NewRecorder(s.Revision, "lifecycle/handshake")
		rec.Warn(id, wire.Server, "this revision was refused with an error instead of answered with another version",
			s.target.Init.Events()...)
		s.ledger.Serve(rec.Source, wire.Server, id)
		s.ledger.Add(rec.Record)
		return
	}
	if s.cause == nil || s.target.Init == nil || errors.As(s.cause, &start) || errors.As(s.cause, &unauthorized) ||
		errors.Is(s.cause, ending.ErrInterrupted) {
		return
	}
	var timeout *client.TimeoutError
	var refused *client.RefusedError
	overHTTP := s.transport() == transport.NameHTTP ||
		s.transport() == transport.NameSSE // it was reached, else the cause is a StartError
	if !errors.As(s.cause, &timeout) && !errors.As(s.cause, &refused) && !overHTTP && !s.saidSomething() {
		return // it ended before it was there
	}
	// The params of initialize may have been refused, rather than one more session.
	misread := refused != nil && refused.Exchange.Error() != nil && refused.Exchange.Error().Code == -32602
	if s.target.Init.Result() != nil || !misread && s.sent(func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && wire.At(e.Msg.Result, "protocolVersion") != nil
	}) {
		return // it was answered; something else is wrong
	}
	if refused != nil && refused.TurnedAway() {
		return // the server decides who may connect, and when
	}
	s.unmet(ids.LifecycleInitAnswered)
}

// unmet records that the cause of the run's end broke a requirement.
func (s *serverRun) unmet(id string) {
	evidence := s.handshakeEvents()
	if refused := (*client.RefusedError)(nil); errors.As(s.cause, &refused) {
		evidence = refused.Exchange.Events()
	}
	rec := ledger.NewRecorder(s.Revision, "lifecycle/handshake")
	message := s.cause.Error()
	if len(evidence) > 0 {
		for _, l := range s.Trace.Logs() {
			if x := l.Carrier(evidence[0]); x != nil && x.CutEvent() != nil {
				message += ", as the SSE event with the answer is not ended by an empty line"
				evidence = append(slices.Clone(evidence), x.CutEvent())
				break
			}
		}
	}
	rec.Fail(id, wire.Server, message, evidence...)
	s.ledger.Serve(rec.Source, wire.Server, id)
	s.ledger.Add(rec.Record)
}

// saidSomething reports whether the target sent anything at all.
func (s *serverRun) saidSomething() bool {
	return s.sent(func(e *wire.Event) bool { return e.Kind == wire.KindMessage || e.Kind == wire.KindHTTPResponse })
}

// sent reports whether the target sent an event that is so, in some session.
func (s *serverRun) sent(is func(*wire.Event) bool) bool {
	return slices.ContainsFunc(s.Trace.Logs(), func(l *wire.Log) bool {
		return slices.ContainsFunc(l.Events(), func(e *wire.Event) bool { return e.From == wire.Server && is(e) })
	})
}

// handshakeEvents returns the beginning and the end of the first session.
func (s *serverRun) handshakeEvents() []*wire.Event {
	const most = 10
	var events []*wire.Event
	for _, l := range s.Trace.Logs() {
		if l.Label == check.FirstLabel {
			events = l.Events()
		}
	}
	if len(events) <= most {
		return events
	}
	return slices.Concat(events[:most/2], events[len(events)-most/2:])
}

// quoteStderr adds to why the run is not whole what the target wrote to its stderr:
// what says why it died, and the end unless that says the same.
func (s *serverRun) quoteStderr() {
	text, died := s.stderr()
	var said []string
	var start *transport.StartError // which tells them itself
	if died && !errors.As(s.cause, &start) {
		said, _ = lastwords.Find(text)
		s.ledger.LastWords = s.quote(said)
	}
	const most = 5
	var end []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			end = append(end, line)
		}
	}
	if len(end) == 0 || slices.Equal(end, said) {
		return
	}
	whose := "server"
	if s.transport() == transport.NameCustom {
		whose = "bridge"
	}
	s.notes = append(s.notes, "the end of the "+whose+"'s stderr: "+s.quote(end[max(0, len(end)-most):]))
}

// stderr returns what the target wrote to its stderr in one connection, and whether it
// then died: where it did is the first choice, since the connections are alike otherwise.
func (s *serverRun) stderr() (text string, died bool) {
	for _, l := range s.Trace.Logs() {
		var b strings.Builder
		exited, killed := false, false
		for _, e := range l.Events() {
			switch e.Kind {
			case wire.KindStderr:
				b.Write(e.Raw)
				b.WriteByte('\n')
			case wire.KindExit:
				exited = e.Exit.Code != 0
			case wire.KindSignal:
				killed = true
			}
		}
		said := strings.TrimSpace(b.String()) != ""
		if said && exited && !killed {
			return b.String(), true
		}
		if said && text == "" {
			text = b.String()
		}
	}
	return text, false
}
