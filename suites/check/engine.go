package check

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// Engine runs checks against one server, many at a time. Ginkgo runs specs one
// after the other; the engine starts their checks ahead, and each spec awaits
// the future of its own.
type Engine struct {
	Options

	target *Target
	logins
	connections
	repeatable
	members
	pace           client.Pace
	liveness       liveness
	limits         limits
	concurrency    concurrency
	announcedLater announcedLater
	schedule       *schedule
}

// Options of an engine.
type Options struct {
	Revision *schema.Revision
	Dialer   transport.Dialer
	Trace    *wire.Trace
	// Timeout of one answer. Zero: client.DefaultTimeout.
	Timeout time.Duration
	// StartTimeout of the first answer of a new process. Zero: as [client.Options] has it.
	StartTimeout time.Duration
	// Parallel is how many connections of single checks are open at a time.
	// Zero: parallelLocal times the number of processors where each is a process, else
	// parallelRemote.
	Parallel int
	// Choice says which members of families the checks draw.
	Choice family.Choice
	// Settings say which tools may be called, and which roles they have.
	Settings Settings
	// Restart starts a target again that all connections share and that no longer
	// answers. Nil: that is not possible.
	Restart func(context.Context) error
	// Login obtains an access token if the server demands one and the user gave none. Nil: that is not tried.
	Login *Login
}

// FirstLabel is the label of the log of the first session.
const FirstLabel = "first session"

// OwnLabel is the label of the logs of sessions that checks used one after the other.
const OwnLabel = "checks in turn"

// checkTime bounds a whole check, in answers that may time out.
const checkTime = 6

// parallelRemote is how many connections are open to one server over HTTP: that
// takes the time of its answers rather than of processors.
const parallelRemote = 16

// parallelLocal is how many processes are used for each processor: mostly they wait.
const parallelLocal = 4

// sharedAtOnce is how many checks use the shared session at a time.
const sharedAtOnce = 16

// triesAtOnce is how many members of families are tried at a time, beside one for each check.
const triesAtOnce = 16

// Why a check is inconclusive that did not come to its end.
var (
	errCheckTime = errors.New("the check took too long; " + ending.Raise(ending.Timeout))
	errDown      = errors.New("the server no longer answered")
	errExcluded  = errors.New("the server ends each process that is started while another one runs")
	errWaits     = errors.New("the server leaves an initialize unanswered as long as another session is open")
)

// Prepare opens the first session and reads the offers of the target. The error says why the session was not
// established. It is a *transport.StartError if the target could not be started or reached.
func (e *Engine) Prepare(ctx context.Context) (*Target, error) {
	if e.Timeout == 0 {
		e.Timeout = client.DefaultTimeout
	}
	switch {
	case e.Parallel > 0:
	case e.Dialer.Transport() == transport.NameStdio:
		e.Parallel = parallelLocal * runtime.GOMAXPROCS(0)
	default:
		e.Parallel = parallelRemote
	}
	e.pool.limit = maxRemote
	if e.processPerSession() {
		e.pool.limit = maxProcesses
	}
	e.limits.turn = make(chan struct{}, 1)
	if at := transport.EndpointOf(e.Dialer); at != nil {
		at.Limits = &e.limits
	}
	e.launches, e.schedule = make(chan struct{}, runtime.GOMAXPROCS(0)), newSchedule()
	e.tries = make(chan struct{}, triesAtOnce)
	e.liveness.givenUp, e.liveness.giveUp = context.WithCancelCause(context.Background())
	e.liveness.hung, e.liveness.hang = context.WithCancel(context.Background())
	e.concurrency.trying = make(chan struct{}, 1)
	err := e.establish(ctx)
	var refused *UnauthorizedError
	if e.Login == nil || !errors.As(err, &refused) || refused.Given || transport.EndpointOf(e.Dialer) == nil {
		return e.target, err
	}
	source, err := e.login(ctx, refused, "")
	if err != nil {
		return e.target, err
	}
	e.tokens, transport.EndpointOf(e.Dialer).Token = source, source
	if e.first != nil {
		e.close(ctx, e.first)
	}
	if err = e.establish(ctx); errors.As(err, &refused) {
		return e.target, source.fail(refusedAgain(errors.New(
			"the server refuses the access token that its own authorization server has just issued for it")))
	}
	source.accepted()
	// The run does not depend on the login of another user.
	if err == nil && e.Login.SecondUser && e.Settings.Authorization.OtherUser == "" {
		if e.second, e.secondFailed = e.login(ctx, e.tokens.refused, "another user"); e.second != nil {
			e.second.accepted()
		}
	}
	return e.target, err
}

// establish opens the first session and reads the offers of the target.
func (e *Engine) establish(ctx context.Context) error {
	e.target = &Target{Transport: e.Dialer.Transport(), Settings: e.Settings}
	from := len(e.Trace.Logs())
	s, err := e.openFirst(ctx)
	for range maxMoves {
		d, ok := e.moved(ctx, s, err)
		if !ok {
			break
		}
		e.close(ctx, s)
		e.Dialer, e.target.Transport = d, d.Transport()
		s, err = e.openFirst(ctx)
	}
	e.first, e.shared = s, s
	if err != nil {
		return e.explained(e.unauthorized(from, err))
	}
	ask := func(ctx context.Context) error { return e.ask(ctx, ctx, e.Timeout, s.Log()) }
	err = e.target.discover(ctx, s, ask)
	for n := 1; n < maxLost && err == nil && s.Lost(); n++ {
		e.close(ctx, s)
		if s, err = e.openFirst(ctx); err == nil {
			err = e.target.discover(ctx, s, ask)
		}
		e.first, e.shared = s, s
	}
	if err != nil {
		e.liveness.giveUp(err)
		return ending.Longer(err)
	}
	if err := e.unauthorized(from, nil); err != nil {
		return err
	}
	return e.target.complete()
}

// openFirst connects the first session and initialises it. It returns the session also
// with an error, unless there was no connection.
func (e *Engine) openFirst(ctx context.Context) (*client.Session, error) {
	s, err := e.connect(ctx, FirstLabel, Capable())
	if err != nil {
		return nil, err
	}
	e.target.Init, err = s.Initialize(ctx)
	return s, err
}

// maxMoves bounds how often the server is looked for elsewhere.
const maxMoves = 3

// moved returns another way to a server that has refused the initialize of a session: the endpoint of its redirect,
// on the same server, or the older transport.
func (e *Engine) moved(ctx context.Context, s *client.Session, err error) (transport.Dialer, bool) {
	var refused *client.RefusedError
	d, ok := e.Dialer.(*transport.HTTP)
	if !ok || !errors.As(err, &refused) {
		return nil, false
	}
	if endpoint, ok := d.Moved(refused.Exchange.Head); ok {
		return &transport.HTTP{Endpoint: endpoint, NoListen: d.NoListen, OrOlder: d.OrOlder}, true
	}
	return d.Older(ctx, s.Conn, refused.Exchange.Head)
}

// Start starts the checks and returns their futures in the same order. With a
// cause, nothing is run: every check is inconclusive because of it.
func (e *Engine) Start(ctx context.Context, checks []*Check, cause error) []*Future {
	futures := make([]*Future, len(checks))
	for _, c := range checks {
		if sharing(c) {
			e.sharing = append(e.sharing, c)
		}
	}
	applying := slices.DeleteFunc(slices.Clone(checks),
		func(c *Check) bool { return !c.Applies(e.Dialer.Transport()) })
	e.pool.plan(applying, e.processPerSession(), e.processPerSession() && e.pace.Start() > latency)
	var now, later []*Future // those that call tools, or may follow one that does, begin when the tools are known
	for i, c := range checks {
		f := &Future{Check: c, revision: e.Revision, done: make(chan struct{})}
		futures[i] = f
		switch {
		case cause != nil && !(c.Needs.Unauthorized && errors.As(cause, new(*UnauthorizedError))):
			f.last.outcome = c.cutShort(ByRunEnd, cause)
			f.finish()
		case cause == nil && (c.Needs.Server == "tools" || len(c.Needs.ToolRoles) > 0 || c.own() != "" ||
			c.Needs.Lane == Last):
			later = append(later, f)
		default:
			now = append(now, f)
		}
	}
	if cause == nil {
		e.announcedLater.begin(e.target)
		e.liveness.asks = append([]string{"ping"}, e.target.answered()...)
		watched, stop := context.WithCancel(ctx)
		e.liveness.unwatch = stop
		e.liveness.watching.Go(func() { e.watch(watched) })
		e.share(ctx, checks)
		e.target.probed = make(chan struct{})
	}
	e.together(ctx, e.applicable(now), func() []*Future {
		if cause == nil {
			e.probeTools(ctx, checks, nil)
			close(e.target.probed)
		}
		return e.applicable(later)
	})
	return futures
}

// share opens the session that checks share, and chooses the request that does nothing. A server with several
// sessions in one process may serve its first session better than the others. The shared session is therefore a
// second one, if the server opens it.
func (e *Engine) share(ctx context.Context, checks []*Check) {
	ctx, stop := e.unlessDown(ctx)
	defer stop()
	var second *client.Session
	err := errors.New("no second session is needed")
	shares := func(c *Check) bool { return c.Needs.Session == Shared }
	alone := func(c *Check) bool { return !shares(c) && c.Needs.Session != None }
	// A selection of which one session is enough has no other.
	if !e.processPerSession() && slices.ContainsFunc(checks, shares) && slices.ContainsFunc(checks, alone) {
		second, err = e.connect(ctx, "shared session", Capable())
	}
	var opening sync.WaitGroup
	if err == nil {
		opening.Go(func() {
			if _, err = second.Initialize(ctx); err == nil {
				e.target.list(ctx, second)
			}
		})
	}
	e.target.chooseNoOp(ctx, e.first)
	opening.Wait()
	switch {
	case err == nil:
		second.Options.NoOp = e.target.noOp
		e.shared = second
	case second != nil && late(err) && e.first.Fence(ctx) == nil:
		e.exclusive.Store(true)
		fallthrough
	case second != nil:
		e.close(ctx, second)
	}
}

// applicable ends the checks that cannot be tried on the target, and returns the others.
func (e *Engine) applicable(checks []*Future) []*Future {
	return slices.DeleteFunc(checks, func(f *Future) bool {
		c := f.Check
		o := Outcome{Check: c, Verdict: Skipped, Reason: e.inapplicable(c)}
		if o.Reason == "" {
			o.Verdict, o.Reason = Inconclusive, e.lacking(c)
		}
		if o.Reason != "" && !e.announcedLater.keeps(f, o) {
			f.last.outcome = o
			f.finish()
		}
		return o.Reason != ""
	})
}

// inapplicable says why a check cannot apply to the target, or "".
func (e *Engine) inapplicable(c *Check) string {
	switch {
	case !c.Applies(e.Dialer.Transport()):
		return "another transport"
	case c.Needs.Server != "" && e.target.Init != nil && e.shared != nil && !e.shared.Capability(c.Needs.Server):
		return "the server does not declare " + c.Needs.Server
	case c.Needs.Authorization && e.servesAnyone():
		return NoAuthorization
	}
	return ""
}

func (e *Engine) lacking(c *Check) string {
	if c.Needs.Lacking == nil {
		return ""
	}
	return c.Needs.Lacking(e.target)
}

// alone executes a check in a session of its own, for the first or a further time.
func (e *Engine) alone(ctx context.Context, c *Check, time int) (a attempt) {
	if c.Needs.Session == None {
		return e.execute(ctx, c, nil, time, false)
	}
	s, err := e.connect(ctx, c.Name, c.options())
	if err == nil {
		defer func() {
			if k, ok := reusable(s); ok && time == first && c.leaves() && k.client == c.key().client && !a.several {
				a.left = true
				e.putBack(ctx, c.key(), s, &a)
			} else {
				e.close(ctx, s)
			}
		}()
		if c.Needs.Session != Raw {
			opening, stop := e.unlessDown(ctx)
			_, err = s.Initialize(opening)
			stop()
		}
	}
	if err != nil {
		return attempt{outcome: Outcome{Check: c, Verdict: Inconclusive,
			Reason: "no session could be opened for the check: " + ending.Longer(err).Error()}, unanswered: true}
	}
	return e.execute(ctx, c, s, time, false)
}

// GivingUp is how much later than it should a server may give up a request.
const GivingUp = 2 * time.Second

// execute runs the body of a check, for the first or a further time. It is concurrent where
// others are run at the same time, and the check is run again if anything is wrong.
func (e *Engine) execute(ctx context.Context, c *Check, s *client.Session, time int, concurrent bool) attempt {
	running, stop := e.unlessDown(ctx)
	defer stop()
	longest := checkTime * e.Timeout
	if c.Patient() {
		longest += e.Settings.GivesUpAfter + 2*GivingUp
	}
	limit, allowance, cancel := within(running, longest)
	defer cancel()
	t := newT(limit, e, c, s)
	t.allowance = allowance
	t.concurrent, t.time = concurrent, time
	if s != nil && c.Needs.Brief {
		s.Hurry(time)
		defer s.Hurry(0)
	}
	mark := 0
	if s != nil {
		mark = s.Log().Len()
	}
	t.body()
	t.Session = s // it may have gone on in another one, which is among those that it opened
	aborted := errors.Is(context.Cause(limit), errDown)
	if !concurrent {
		var found []string
		for _, k := range t.rec.Record.Keys() {
			if k.Party == wire.Server && len(t.rec.Record[k].Findings) > 0 {
				found = append(found, k.Requirement)
			}
		}
		e.found.Store(c, found)
	}
	defer func() {
		for _, extra := range t.extra {
			e.close(ctx, extra)
		}
	}()
	if cause := e.GivenUp(); cause != nil && t.outcome.Verdict != Passed {
		return attempt{outcome: c.cutShort(ByRunEnd, cause)}
	}
	if aborted { // what it found may come of being ended
		return attempt{outcome: c.cutShort(ByLimit, errDown), unanswered: true}
	}
	r := t.read(running, mark)
	a := r.attempt()
	a.late, a.disturbed = t.late, a.disturbed || t.disturbed
	return a
}

// Finish closes every session and waits until all processes and goroutines of
// the run have ended.
func (e *Engine) Finish(ctx context.Context) {
	if e.liveness.unwatch != nil {
		e.liveness.unwatch()
		e.liveness.watching.Wait()
	}
	if e.shared != nil && !e.left.Load() {
		e.closeShared(ctx)
	}
	e.closers.Wait()
}

// Alive returns nil if the target still answers: in the shared session or, if that has ended, in a new one.
func (e *Engine) Alive(ctx context.Context) error {
	if e.shared == nil {
		return transport.ErrClosed
	}
	for _, known := range []error{e.GivenUp(), e.Dead()} {
		if known != nil {
			return known
		}
	}
	if !e.outage().wasDown && !e.left.Load() && !e.sharedHung.Load() && e.shared.Fence(ctx) == nil {
		return nil
	}
	return e.probe(ctx)
}
