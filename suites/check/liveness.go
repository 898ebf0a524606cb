package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
)

// UnresponsiveError reports a target that lives and answers the handshake, but
// no request after it. Then nothing more is tried: each check would wait for a time
// limit and blame its own requirement.
type UnresponsiveError struct {
	// Since says in a clause since when the target does not answer.
	Since string
	// Unanswered are the methods of the requests that got no answer.
	Unanswered []string
	After      time.Duration
}

func (e *UnresponsiveError) Error() string {
	return fmt.Sprintf("the server answers no request %s: there was no answer to %s within %v; ", e.Since, strings.Join(e.Unanswered, ", "), e.After) + ending.Raise(ending.Timeout)
}

// liveness is what the engine knows of whether the target answers. Its lock is
// never held during a request to the target.
type liveness struct {
	givenUp context.Context // ended, with the cause, once nothing is tried any more
	giveUp  context.CancelCauseFunc
	hung    context.Context // ended once the target was seen to hang, where all connections share it
	hang    context.CancelFunc

	mu           sync.Mutex
	probing      chan struct{} // open while a check is finding out whether the target answers, or nil
	down         bool          // it did not answer when it was last tried
	cause        error         // of down
	downSince    time.Duration // in the time of the trace
	wasDown      bool          // at some time
	unresponsive bool          // it answered the handshake and nothing else then
	dead         error         // why it cannot be restarted
	restarts     int           // how often it was restarted
	suspects     []string      // checks that may have brought it down

	unanswered      int           // checks without an answer since the target was last heard
	unansweredSince time.Duration // end of the first of them, in the time of the trace
}

const (
	// maxUnanswered is how many checks in a row may stay without any answer
	// before the target is asked whether it answers at all.
	maxUnanswered = 3
	// maxRestarts bounds how often a target is restarted.
	maxRestarts = 20
	// maxSuspects bounds how many checks are named when it cannot be.
	maxSuspects = 5
)

func (l *liveness) begin() {
	l.givenUp, l.giveUp = context.WithCancelCause(context.Background())
	l.hung, l.hang = context.WithCancel(context.Background())
}

// GivenUp returns why nothing more is tried, or nil.
func (e *Engine) GivenUp() error {
	if e.liveness.givenUp == nil || e.liveness.givenUp.Err() == nil {
		return nil
	}
	return context.Cause(e.liveness.givenUp)
}

// Dead returns why the target could not be tried to the end, or nil.
func (e *Engine) Dead() error {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.dead
}

// Restarts returns how often the target was restarted.
func (e *Engine) Restarts() int {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.restarts
}

func (e *Engine) wasDown() bool {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.wasDown
}

func (e *Engine) isDown() bool {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.down
}

// noteUnanswered notes that a check got no answer, and finds out whether the target
// still answers. It returns what shows that it went down, or nil.
func (e *Engine) noteUnanswered(ctx context.Context, c *Check) (down error) {
	l := &e.liveness
	heard := e.heard(e.unansweredSince())
	l.mu.Lock()
	if l.unanswered == 0 || heard {
		l.unanswered, l.unansweredSince = 0, time.Since(e.Trace.Start)
	}
	l.unanswered++
	several, since := l.unanswered >= maxUnanswered, l.unansweredSince
	if l.probing != nil || l.down {
		l.mu.Unlock()
		e.awaitLiveness()
		return nil
	}
	l.probing = make(chan struct{})
	l.suspects = append(l.suspects, c.Name)
	l.mu.Unlock()

	// Where each connection is a process, the others go on when one ends.
	hangs := false // in the shared session, and towards another one
	if !e.apart() {
		var fenced sync.WaitGroup
		if !e.left.Load() && !e.sharedHung.Load() {
			fenced.Go(func() { hangs = late(e.fenceShared(ctx)) })
		}
		down = e.probe(ctx)
		fenced.Wait()
		hangs = hangs && late(down)
	}
	isDown := down != nil && ctx.Err() == nil
	unresponsive := !isDown && several && e.isUnresponsive(ctx, since)

	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.probing)
	l.probing = nil
	if several && !unresponsive {
		l.unanswered = 0
	}
	if isDown || unresponsive {
		l.down, l.wasDown, l.unresponsive = true, true, l.unresponsive || unresponsive
		if hangs {
			l.cause, l.downSince = down, time.Since(e.Trace.Start)
			l.hang()
		}
	}
	if !isDown || late(down) {
		return nil // a busy machine is slow, too
	}
	return down
}

// awaitLiveness waits while another check finds out whether the target answers: what is begun meanwhile would wait for the
// target as well.
func (e *Engine) awaitLiveness() {
	e.liveness.mu.Lock()
	probing := e.liveness.probing
	e.liveness.mu.Unlock()
	if probing != nil {
		<-probing
	}
}

func (e *Engine) unansweredSince() time.Duration {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.unansweredSince
}

// isUnresponsive reports whether the target answers nothing but the handshake, and
// has answered nothing else since a time of the trace. It gives up a target that cannot
// be started again.
func (e *Engine) isUnresponsive(ctx context.Context, since time.Duration) bool {
	var unresponsive *UnresponsiveError
	if !errors.As(e.ask(ctx), &unresponsive) || e.heard(since) {
		return false
	}
	if e.Restart == nil {
		e.liveness.giveUp(unresponsive)
	}
	return true
}

// probe opens a session and closes it again. The error says that the target
// does not answer, or is broken; one that refuses is alive: it may decide whom it serves,
// and how many.
func (e *Engine) probe(ctx context.Context) error {
	err := e.open(ctx, "whether the server is alive", client.Options{}, nil)
	var refused *client.RefusedError
	if errors.As(err, &refused) && !(broken(refused.Exchange.Head) && e.servedSessions() > 1) {
		return nil // a server may open a single session, whatever it says to others
	}
	return err
}

// servedSessions returns how many sessions the target has opened.
func (e *Engine) servedSessions() int {
	n := 0
	for _, l := range e.Trace.Logs() {
		for _, x := range l.Requests(wire.Client, "initialize") {
			if x.Result() != nil {
				n++
			}
		}
	}
	return n
}

// ask opens a session and sends a ping and what the target has answered before.
// The error is an *UnresponsiveError when it answers neither.
func (e *Engine) ask(ctx context.Context) error {
	initialized := false
	var limit time.Duration
	err := e.open(ctx, "whether the server answers", client.Options{}, func(s *client.Session) error {
		initialized, limit = true, s.Options.Timeout
		return anyAnswer(ctx, s, "any more", append([]string{"ping"}, e.target.answered()...)...)
	})
	switch refused := (*client.RefusedError)(nil); {
	case initialized:
		return err
	case errors.As(err, &refused):
		return nil
	case late(err):
		return &UnresponsiveError{Since: "any more", Unanswered: []string{"initialize"}, After: max(limit, e.Timeout)}
	}
	return err
}

// open opens an initialised session, calls use with it unless that is nil, and closes
// it again. The error is that of opening it, or of use.
func (e *Engine) open(ctx context.Context, label string, o client.Options, use func(*client.Session) error) error {
	s, err := e.initialized(ctx, label, o)
	if err != nil {
		return err
	}
	defer e.close(ctx, s)
	if use == nil {
		return nil
	}
	return use(s)
}

// initialized returns an initialised session: one that was opened ahead for the same, or a new one. With an error,
// nothing is left of it.
func (e *Engine) initialized(ctx context.Context, label string, o client.Options) (*client.Session, error) {
	if s := e.ahead.take(label, o); s != nil {
		return s, nil
	}
	return e.opened(ctx, label, o)
}

// opened connects a session and initialises it.
func (e *Engine) opened(ctx context.Context, label string, o client.Options) (*client.Session, error) {
	s, err := e.connect(ctx, label, o)
	if err != nil {
		return nil, err
	}
	if _, err := s.Initialize(ctx); err != nil {
		e.close(ctx, s)
		return nil, err
	}
	return s, nil
}

// ensureUp makes sure that the target answers, and restarts it where that is
// possible. The error says why it cannot be tried any more.
func (e *Engine) ensureUp(ctx context.Context) error {
	if err := e.Dead(); err != nil {
		return err
	}
	l := &e.liveness
	l.mu.Lock()
	unresponsive, restarts, err, since := l.unresponsive, l.restarts, l.cause, l.downSince
	l.cause = nil // which counts once
	l.mu.Unlock()
	try := e.probe
	if unresponsive {
		try = e.ask
	}
	if err == nil || e.heard(since) {
		err = try(ctx)
	}
	if err == nil || ctx.Err() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.down = false
		return nil
	}
	if errors.Is(err, wire.ErrFlood) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.down, l.dead = true, fmt.Errorf("no more of the run can be recorded: %w (limits in the configuration)", err)
		return l.dead
	}
	restarted := e.Restart != nil && restarts < maxRestarts
	if restarted {
		again := e.Restart(ctx)
		if again == nil {
			again = try(ctx)
		}
		if again != nil {
			err = fmt.Errorf("starting it again did not help: %w", again)
		}
		restarted = again == nil
		restarts++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.wasDown, l.restarts = !restarted, true, restarts
	if !restarted {
		suspects := l.suspects
		if len(suspects) > maxSuspects {
			suspects = append(suspects[:maxSuspects:maxSuspects], "others")
		}
		l.dead = fmt.Errorf("the server no longer answers an initialize, since %s: %w", strings.Join(suspects, ", "), err)
	}
	return l.dead
}

// anyAnswer sends requests without params, all at once, and returns once one is
// answered, or with an *UnresponsiveError when none is.
func anyAnswer(ctx context.Context, s *client.Session, since string, methods ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(methods))
	for _, m := range methods {
		go func() {
			_, err := s.Call(ctx, m, nil)
			answers <- err
		}()
	}
	var unanswered error
	answered := false
	for range methods {
		switch err := <-answers; {
		case answered:
		case err == nil:
			answered = true
			cancel()
		case unanswered == nil, late(unanswered):
			unanswered = err
		}
	}
	switch {
	case answered:
		return nil
	case late(unanswered):
		return &UnresponsiveError{Since: since, Unanswered: methods, After: s.Options.Timeout}
	}
	return unanswered
}

// late reports whether the target had not answered, or not even taken a message,
// when its time was up.
func late(err error) bool {
	var unanswered *client.TimeoutError
	var untaken *transport.TimeoutError
	return errors.As(err, &unanswered) || errors.As(err, &untaken) || errors.Is(err, context.DeadlineExceeded)
}

// answered returns a list operation that the target has answered, if any.
func (t *Target) answered() []string {
	for _, l := range listMembers {
		if list := t.List(l.method); len(list.Pages) > 0 {
			return []string{l.method}
		}
	}
	return nil
}

// heard reports whether the target has answered any request but an initialize
// since a time of the trace.
func (e *Engine) heard(since time.Duration) bool {
	for _, l := range e.Trace.Logs() {
		for _, e := range slices.Backward(l.Events()) {
			if e.At < since {
				break
			}
			if answers(l, e) {
				return true
			}
		}
	}
	return false
}

// answers reports whether an event answers a request other than initialize.
func answers(l *wire.Log, e *wire.Event) bool {
	switch {
	case e.Kind == wire.KindHTTPResponse:
		return e.HTTP.Status >= 400 && strings.HasPrefix(e.Stream, "post:")
	case e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse() || strings.HasPrefix(e.Stream, "delete:"):
		return false
	}
	request := l.RequestOf(e)
	return request == nil || request.Msg.Method != "initialize"
}
