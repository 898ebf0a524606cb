package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Engine runs checks against one server, many at a time. Ginkgo runs specs one
// after the other; the engine starts their checks ahead, and each spec awaits
// the future of its own.
type Engine struct {
	Dialer transport.Dialer
	Trace  *wire.Trace
	// Timeout of one answer. Zero: client.DefaultTimeout.
	Timeout time.Duration
	// Parallel is how many connections of single checks are open at a time.
	// Zero: twice the number of processors where each is a process, else
	// parallelRemote.
	Parallel int
	// Settings say what may be called and for which purpose.
	Settings Settings
	// Restart brings back a target that all connections share and that has
	// stopped to answer. Nil: that is not possible.
	Restart func(context.Context) error

	health  health
	limits  limits
	turns   turns
	silence silence
	target  *Target
	shared  *client.Session
	closers sync.WaitGroup
	closing sync.WaitGroup // of sessions
}

// Future is a check that has been started.
type Future struct {
	Check   *Check
	done    chan struct{}
	outcome Outcome
	// hindered says that something kept the server from doing what the check is
	// about that it may do at any time; nil if nothing did.
	hindered *hindrance
}

// Await returns the outcome of the check. It comes in bounded time, as every
// wait of a check is bounded.
func (f *Future) Await() Outcome {
	<-f.done
	return f.outcome
}

// SharedLabel is the label of the shared session's log.
const SharedLabel = "shared session"

// OwnLabel is the label of the logs in which checks took turns.
const OwnLabel = "checks in turn"

// checkTime bounds a whole check, in answers that may time out.
const checkTime = 6

// parallelRemote is how many connections are open to one server over HTTP: that
// takes the time of its answers rather than of processors.
const parallelRemote = 16

// sharedAtOnce is how many checks use the shared session at a time.
const sharedAtOnce = 16

var errCheckTime = errors.New("the check took too long")

func (e *Engine) connect(ctx context.Context, label string, o client.Options) (*client.Session, error) {
	if o.Timeout == 0 {
		o.Timeout = e.Timeout
	}
	if e.target != nil {
		o.Plain = e.target.plain
	}
	o.Limited = e.limits.wait
	conn, err := e.Dialer.Dial(ctx, e.Trace.Connect(e.Dialer.Transport(), label))
	if err != nil {
		return nil, err
	}
	return client.New(conn, o), nil
}

// close shuts a session down in the background; Finish waits for it.
func (e *Engine) close(ctx context.Context, s *client.Session) {
	e.closing.Add(1)
	e.closers.Go(func() {
		defer e.closing.Done()
		_ = s.Close(ctx)
	})
}

// Prepare opens the shared session and learns what the target offers. The
// error is what kept the session from being established; a *transport.StartError
// when the target could not even be started or reached.
func (e *Engine) Prepare(ctx context.Context) (*Target, error) {
	if e.Timeout == 0 {
		e.Timeout = client.DefaultTimeout
	}
	switch {
	case e.Parallel > 0:
	case e.Dialer.Transport() == transport.NameStdio:
		e.Parallel = 2 * runtime.GOMAXPROCS(0)
	default:
		e.Parallel = parallelRemote
	}
	e.silence.begin()
	e.target = &Target{Transport: e.Dialer.Transport(), Settings: e.Settings}
	s, err := e.openShared(ctx)
	if d, ok := e.moved(err); ok {
		e.close(ctx, s)
		e.Dialer = d
		s, err = e.openShared(ctx)
	}
	e.shared = s
	if err != nil {
		return e.target, e.barred(err)
	}
	if err := e.target.discover(ctx, s); err != nil {
		e.silence.decide(err)
		return e.target, err
	}
	if err := e.barred(nil); err != nil {
		return e.target, err
	}
	return e.target, e.target.complete()
}

// openShared connects the session that checks share and initialises it. It
// returns the session also with an error, unless there was no connection.
func (e *Engine) openShared(ctx context.Context) (*client.Session, error) {
	s, err := e.connect(ctx, SharedLabel, Capable())
	if err != nil {
		return nil, err
	}
	e.target.Init, err = s.Initialize(ctx)
	return s, err
}

// moved returns what reaches the endpoint to which the server sent an
// initialize, if that is on the same server.
func (e *Engine) moved(err error) (transport.Dialer, bool) {
	var refused *client.RefusedError
	d, ok := e.Dialer.(*transport.HTTP)
	if !ok || !errors.As(err, &refused) {
		return nil, false
	}
	endpoint, ok := d.Moved(refused.Exchange.Head)
	return &transport.HTTP{Endpoint: endpoint, NoListen: d.NoListen}, ok
}

// Start starts the checks and returns their futures in the same order. With a
// cause, nothing is run: every check is inconclusive because of it.
func (e *Engine) Start(ctx context.Context, checks []*Check, cause error) []*Future {
	if cause == nil {
		e.target.choosePlain(ctx, e.shared)
		e.rehearse(ctx, checks)
	}
	futures := make([]*Future, len(checks))
	var shared, own []*Future
	var barred *UnauthorizedError
	for i, c := range checks {
		f := &Future{Check: c, done: make(chan struct{}), outcome: Outcome{Check: c}}
		futures[i] = f
		switch skip := e.inapplicable(c); {
		case cause != nil && !(c.Needs.Unauthorized && errors.As(cause, &barred)):
			f.finish(Inconclusive, cause.Error())
		case skip != "":
			f.finish(Skipped, skip)
		case e.lacking(c) != "":
			f.finish(Inconclusive, e.lacking(c))
		case c.Needs.Session == Shared:
			shared = append(shared, f)
		default:
			own = append(own, f)
		}
	}
	if e.Dialer.Transport() == transport.NameStdio {
		e.startApart(ctx, shared, own)
	} else {
		e.startTogether(ctx, shared, own)
	}
	return futures
}

// startApart starts checks of a target that is a process of its own for each
// connection: what one check does to it cannot harm the others, except in the
// shared session.
func (e *Engine) startApart(ctx context.Context, shared, own []*Future) {
	// A shared session that has gone silent would hold up every other check.
	var silent atomic.Bool
	wait := e.startAll(ctx, shared, own, func(f *Future, s *client.Session) bool {
		switch cause := e.Silent(); {
		case cause != nil:
			f.giveUp(cause)
			return true
		case s == nil && e.stands(ctx, f):
			close(f.done)
			return true
		case s == nil:
			if e.runAlone(ctx, f) || ctx.Err() != nil {
				close(f.done)
			} else {
				e.hold(ctx, f)
			}
			return true
		case s == e.shared && silent.Load():
			return false
		case e.run(ctx, f, s) || ctx.Err() != nil:
			close(f.done)
			return true
		case s == e.shared && e.shared.Fence(ctx) != nil:
			silent.Store(true)
		}
		return false // again, in a session of its own
	})
	e.closers.Go(func() {
		wait()
		e.silence.mu.Lock()
		defer e.silence.mu.Unlock()
		e.silence.release()
	})
}

// startAll runs the shared checks in the shared session and all others, with
// those of the shared ones that do returns false for, without one. The function
// that it returns waits for all of them.
func (e *Engine) startAll(ctx context.Context, shared, own []*Future, do func(*Future, *client.Session) bool) (wait func()) {
	queue := make(chan *Future, len(own)+len(shared))
	for _, long := range []bool{true, false} {
		for _, f := range own {
			if f.Check.takesLong() == long {
				queue <- f
			}
		}
	}
	var sharing sync.WaitGroup
	sharedSlots := make(chan struct{}, sharedAtOnce)
	for _, f := range shared {
		sharing.Go(func() {
			sharedSlots <- struct{}{}
			defer func() { <-sharedSlots }()
			if !do(f, e.shared) {
				queue <- f
			}
		})
	}
	e.closers.Go(func() {
		sharing.Wait()
		close(queue)
	})
	var workers sync.WaitGroup
	for range e.Parallel {
		workers.Go(func() {
			w := worker{engine: e}
			defer w.drop(ctx)
			for f := range queue {
				if s := w.session(ctx, f.Check); s != nil {
					done := do(f, s)
					if !done || f.outcome.Verdict != Passed {
						w.drop(ctx)
					}
					if done {
						continue
					}
				}
				do(f, nil)
			}
		})
	}
	e.closers.Go(workers.Wait)
	return workers.Wait
}

// worker runs checks one after the other. Those that want a session to
// themselves, but not one of which nothing was asked before, get the same one
// as long as all goes well: a new process for each is what takes the time.
type worker struct {
	engine *Engine
	own    *client.Session
}

// session returns the session for a check that can do with a used one, or nil.
func (w *worker) session(ctx context.Context, c *Check) *client.Session {
	if c.Needs.Session != Own || w.engine.Silent() != nil {
		return nil
	}
	if w.own == nil {
		s, err := w.engine.connect(ctx, OwnLabel, c.Needs.Options)
		if err != nil {
			return nil
		}
		if _, err := s.Initialize(ctx); err != nil {
			w.engine.close(ctx, s)
			return nil
		}
		w.own = s
	}
	return w.own
}

func (w *worker) drop(ctx context.Context) {
	if w.own != nil {
		w.engine.close(ctx, w.own)
		w.own = nil
	}
}

func (f *Future) finish(v Verdict, reason string) {
	f.outcome.Verdict, f.outcome.Reason = v, reason
	close(f.done)
}

// inapplicable says why a check cannot apply to the target, or "".
func (e *Engine) inapplicable(c *Check) string {
	switch {
	case !c.Applies(e.Dialer.Transport()):
		return "another transport"
	case c.Needs.Server != "" && e.target.Init != nil && e.shared != nil && !e.shared.Capability(c.Needs.Server):
		return "the server does not declare " + c.Needs.Server
	}
	return ""
}

func (e *Engine) lacking(c *Check) string {
	if c.Needs.Lacking == nil {
		return ""
	}
	return c.Needs.Lacking(e.target)
}

// runAlone runs a check in a session of its own. It reports whether whatever
// was due from the server came.
func (e *Engine) runAlone(ctx context.Context, f *Future) bool {
	o := f.Check.Needs.Options
	if f.Check.Needs.Session == None {
		return e.run(ctx, f, nil)
	}
	if f.Check.Needs.Session == Shared {
		o.Capabilities, o.Answers = AllCapabilities(), StandardAnswers()
	}
	s, err := e.connect(ctx, f.Check.Name, o)
	if err == nil {
		defer e.close(ctx, s)
		if f.Check.Needs.Session != Raw {
			_, err = s.Initialize(ctx)
		}
	}
	if err != nil {
		f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "no session for it: " + err.Error()}
		return false
	}
	return e.run(ctx, f, s)
}

// run executes the body. It reports false when something that was due from the
// server did not come, for which another check may be the cause.
func (e *Engine) run(ctx context.Context, f *Future, s *client.Session) bool {
	limit, cancel := context.WithTimeoutCause(ctx, checkTime*e.Timeout, errCheckTime)
	defer cancel()
	limit, hush := context.WithCancelCause(limit)
	defer context.AfterFunc(e.silence.ctx, func() { hush(e.Silent()) })()
	t := &T{Context: limit, Session: s, Target: e.target, engine: e, check: f.Check, outcome: Outcome{Check: f.Check}}
	mark := 0
	if s != nil {
		mark = s.Log().Len()
	}
	t.body()
	if t.refusedLikeAll() {
		t.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "after the handshake the server refuses every request with " + e.target.refusal.String()}
	}
	f.hindered = t.hindrance(ctx, mark)
	for _, extra := range t.extra {
		e.close(ctx, extra)
	}
	f.outcome = t.outcome
	if cause := e.Silent(); cause != nil && f.outcome.Verdict != Passed {
		f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: cause.Error()}
		return true
	}
	if f.outcome.Verdict == Failed && s != nil && s != e.shared && unopened(s) && ctx.Err() == nil {
		// The control: what a plain session gets that is opened now.
		if cause := e.refuses(ctx); cause != nil {
			f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "the server opens no further session beside those that are open: " + cause.Error()}
		}
	}
	if f.outcome.Verdict == Passed {
		f.outcome.Exercised = append(f.outcome.Exercised, f.Check.Requirements...)
	}
	return !t.noAnswer && !t.deserted() && f.hindered == nil
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

// refuses opens an ordinary session and closes it again. The error is why the
// server does not open it: it may serve one client at a time
// (docs/positions.md, several-clients).
func (e *Engine) refuses(ctx context.Context) error {
	s, err := e.connect(ctx, "whether the server opens a further session", Capable())
	if err != nil {
		return err
	}
	defer e.close(ctx, s)
	_, err = s.Initialize(ctx)
	return err
}

// deserted reports whether a check that found something met nobody any more:
// then another check may have brought the server down.
func (t *T) deserted() bool {
	if t.outcome.Verdict != Failed {
		return false
	}
	// A check of a target that could not be reached has no session.
	for _, s := range append([]*client.Session{t.Session}, t.extra...) {
		if s != nil && slices.ContainsFunc(s.Log().Events(), transport.Gone) {
			return true
		}
	}
	return false
}

// body runs the check's body to its verdict; a panic is a fault of the harness.
func (t *T) body() {
	defer func() {
		switch r := recover().(type) {
		case nil, stop:
		default:
			t.outcome.Verdict = Broken
			t.outcome.Reason = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	t.check.Body(t)
}

// Finish closes every session and waits until all processes and goroutines of
// the run have ended.
func (e *Engine) Finish(ctx context.Context) {
	if e.shared != nil {
		_ = e.shared.Close(ctx)
	}
	e.closers.Wait()
}

// Alive reports whether the shared session still answers.
func (e *Engine) Alive(ctx context.Context) error {
	if e.shared == nil {
		return transport.ErrClosed
	}
	for _, known := range []error{e.Silent(), e.Dead()} {
		if known != nil {
			return known
		}
	}
	if e.health.hasDied() {
		return e.probe(ctx) // the shared session died with the target
	}
	return e.shared.Fence(ctx)
}
