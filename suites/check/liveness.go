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
	// Worn is the request that got no answer in a process, of which each answers only so much; others may go on. Nil
	// is none.
	Worn *wire.Event
}

func (e *UnresponsiveError) Error() string {
	return fmt.Sprintf("the server answers no request %s: there was no answer to %s within %v; ", e.Since,
		strings.Join(e.Unanswered, ", "), e.After) + ending.Raise(ending.Timeout)
}

// liveness is the engine's knowledge about whether the target answers. Its lock is never held during a request to the
// target.
type liveness struct {
	givenUp context.Context // ended, with the cause, once nothing is tried any more
	giveUp  context.CancelCauseFunc
	watch

	mu      sync.Mutex
	probing chan struct{}   // open while it is being found out whether the target answers, or nil
	hung    context.Context // ended once the target was seen to hang
	hang    context.CancelFunc
	asked   question // the last one that the target answered
	outage
	suspects []string // checks that may have brought it down
}

// question is one whether the target answers.
type question struct {
	at   time.Duration // in the time of the trace
	sent int           // the most messages to a process that answered; see [sentTo]
}

// outage is what is known of the times at which the target did not answer.
type outage struct {
	down         bool          // it did not answer when it was last tried
	cause        error         // of down
	downSince    time.Duration // in the time of the trace
	wasDown      bool          // at some time
	unresponsive bool          // it answered nothing then
	dead         error         // why it cannot be restarted
	restarts     int           // how often it was restarted
}

// watch is the watch over the target. It is set once.
type watch struct {
	asks     []string // requests that show whether the target answers
	unwatch  func()   // ends it; nil before it has begun
	watching sync.WaitGroup
}

const (
	// silence is the part of a time limit after which a silent target is asked whether it answers. It then has until
	// two limits are over. The engine looks that many times in a limit.
	silence = 2
	looks   = 16
	// maxUnanswered is how many checks in a row may stay without any answer alone before the others keep what they
	// have.
	maxUnanswered = 3
	// maxRestarts bounds how often a target is restarted.
	maxRestarts = 20
	// maxSuspects bounds how many checks are named when it cannot be.
	maxSuspects = 5
)

// GivenUp returns why nothing more is tried, or nil.
func (e *Engine) GivenUp() error {
	if e.liveness.givenUp == nil || e.liveness.givenUp.Err() == nil {
		return nil
	}
	return context.Cause(e.liveness.givenUp)
}

// Dead returns why the target could not be tried to the end, or nil.
func (e *Engine) Dead() error { return e.outage().dead }

// Restarts returns how often the target was restarted.
func (e *Engine) Restarts() int { return e.outage().restarts }

func (e *Engine) outage() outage {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	return e.liveness.outage
}

// noteUnanswered notes that a check got no answer, and finds out whether the target still takes a new session. It
// returns what shows that it went down, or nil. Whether it hangs, [Engine.watch] finds out.
func (e *Engine) noteUnanswered(ctx context.Context, c *Check) (down error) {
	if e.GivenUp() != nil {
		return nil
	}
	l := &e.liveness
	l.mu.Lock()
	l.suspects = append(l.suspects, c.Name)
	known := l.down || e.processPerSession() // where each connection is a process, the others go on when one ends
	l.mu.Unlock()
	done, ok := func() {}, false
	if !known {
		done, ok = e.beginProbe()
	}
	if !ok {
		e.awaitLiveness()
		return nil
	}
	defer done()
	var fenced sync.WaitGroup
	alive := false
	if !e.left.Load() && !e.sharedHung.Load() {
		fenced.Go(func() { alive = e.fenceShared(ctx) == nil })
	}
	down = e.probe(ctx)
	fenced.Wait()
	switch {
	case down == nil, ctx.Err() != nil:
		return nil
	case alive && late(down):
		e.exclusive.Store(true)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.wasDown = true, true
	if late(down) {
		return nil // a busy machine is slow, too
	}
	return down
}

// beginProbe reports whether the caller may probe the target. Others then wait until done is called.
func (e *Engine) beginProbe() (done func(), ok bool) {
	l := &e.liveness
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.probing != nil {
		return nil, false
	}
	l.probing = make(chan struct{})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.probing)
		l.probing = nil
	}, true
}

// awaitLiveness waits while another check tests whether the target answers. A request begun meanwhile would wait for
// the target as well.
func (e *Engine) awaitLiveness() {
	e.liveness.mu.Lock()
	probing := e.liveness.probing
	e.liveness.mu.Unlock()
	if probing != nil {
		<-probing
	}
}

// watch asks the target whether it answers, as soon as it has answered nothing for a part of a time limit although
// requests wait. The limits of these requests and of the question pass at the same time. A hanging target costs two
// limits in all.
func (e *Engine) watch(ctx context.Context) {
	look := time.NewTicker(max(e.Timeout/looks, 1))
	defer look.Stop()
	for e.GivenUp() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		since := time.Since(e.Trace.Start)
		if silent := e.silent(since); len(silent) > 0 && !e.outage().down {
			e.askWhetherAlive(ctx, since, silent)
		}
	}
}

// silent returns the records of the sessions in which the target has answered nothing for a part of a time limit,
// although requests wait as long. Sessions that share a server are not silent as long as it answers in another one.
func (e *Engine) silent(now time.Duration) (logs []*wire.Log) {
	e.liveness.mu.Lock()
	asked := e.liveness.asked
	e.liveness.mu.Unlock()
	since := now - e.Timeout/silence
	if !e.processPerSession() && e.heard(since) {
		return nil
	}
	for _, l := range e.Trace.Logs() {
		unanswered := l.Unanswered()
		if len(unanswered) == 0 || heardIn(l, since) {
			continue
		}
		beyond := e.processPerSession() && sentTo(l) > asked.sent
		silent := slices.ContainsFunc(unanswered, func(x *wire.Exchange) bool {
			due := since
			if e.processPerSession() && x.Method() == "initialize" {
				due = min(due, now-client.StartTimes*e.pace.Start()) // a process takes its time to start
			}
			// A request from before the last answered question is not evidence of a hang, unless its process got more
			// messages than the one that answered.
			return x.Request.At < due && (x.Request.At > asked.at || beyond) && e.waits(l, x)
		})
		if silent {
			logs = append(logs, l)
		}
	}
	return logs
}

// waits reports whether a request to the target still waits for its answer. A tool may take its time.
func (e *Engine) waits(l *wire.Log, x *wire.Exchange) bool {
	if x.From() != wire.Client || x.Cancelled != nil || x.Method() == "tools/call" {
		return false
	}
	if carrier := l.Carrier(x.Request); carrier != nil &&
		(carrier.Status() >= 400 || carrier.End != nil && l.Transport == transport.NameHTTP) {
		return false
	}
	return !slices.ContainsFunc(l.Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindExit || e.Kind == wire.KindClose
	})
}

// askWhetherAlive asks the target whether it answers, in the session of its last answer and in a new one. It stops
// after two time limits without an answer in the silent sessions. A target that cannot be started again is then given
// up.
func (e *Engine) askWhetherAlive(ctx context.Context, since time.Duration, silent []*wire.Log) {
	inAll := !e.heard(since - e.Timeout/silence)
	if inAll {
		if done, ok := e.beginProbe(); ok {
			defer done()
		}
	}
	limit := 2*e.Timeout - e.Timeout/silence - e.Timeout/looks
	most := mostSent(silent)
	var err error
	if inAll {
		err = e.askOldAndNew(ctx, limit, silent)
	} else {
		err = e.ask(ctx, ctx, limit, silent...)
	}
	var unresponsive *UnresponsiveError
	hangs := errors.As(err, &unresponsive) && (unresponsive.Worn != nil || !e.heard(since))
	l := &e.liveness
	if hangs && e.Restart == nil {
		l.giveUp(unresponsive)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !hangs {
		l.asked = question{at: since, sent: max(l.asked.sent, most)}
		return
	}
	l.down, l.wasDown, l.unresponsive = true, true, true
	l.cause, l.downSince = unresponsive, time.Since(e.Trace.Start)
	l.hang()
}

// askOldAndNew asks the target in the session of its last answer and, if that is of use, in a new one. It returns nil
// if either is answered.
func (e *Engine) askOldAndNew(ctx context.Context, limit time.Duration, silent []*wire.Log) error {
	last := e.lastToAnswer()
	if last != nil && !e.processPerSession() && e.exclusive.Load() {
		_, err := anyAnswer(ctx, last, "any more", e.questions()...)
		return err
	}
	both, stop := context.WithCancel(ctx)
	defer stop()
	alive := false
	var asking sync.WaitGroup
	if last != nil {
		asking.Go(func() {
			_, err := anyAnswer(both, last, "any more", e.questions()...)
			if alive = err == nil; !alive {
				return
			}
			// It may open no other session as long as this one is open, which another handshake may show before.
			for range looks {
				if e.exclusive.Load() || !pause(both, e.Timeout/looks) {
					break
				}
			}
			stop()
		})
	}
	err := e.ask(ctx, both, limit, silent...)
	stop()
	asking.Wait()
	if !alive {
		return err
	}
	if !e.processPerSession() && ctx.Err() == nil && (late(err) || errors.Is(err, context.Canceled)) {
		e.exclusive.Store(true)
	}
	return nil
}

// lastToAnswer returns the open session in which the target has answered last, or nil: it may leave others waiting as
// long as that one is open.
func (e *Engine) lastToAnswer() (latest *client.Session) {
	var at time.Duration
	e.opened.Range(func(key, _ any) bool {
		s := key.(*client.Session)
		if last := s.Log().LastAnswer(time.Since(e.Trace.Start)); last != nil && last.At >= at && isOpen(s) {
			latest, at = s, last.At
		}
		return true
	})
	return latest
}

// isOpen reports whether a session was opened and neither side has ended it.
func isOpen(s *client.Session) bool {
	if conn, ok := s.Conn.(*transport.HTTPConn); ok && (conn.Left() || conn.Lost()) {
		return false
	}
	return !closed(s) && !unopened(s.Log())
}

// unlessDown returns a context that ends once nothing is tried any more. It also ends once the target was seen to
// hang, if the interrupted work is tried again after that.
func (e *Engine) unlessDown(ctx context.Context) (context.Context, func()) {
	e.liveness.mu.Lock()
	hung := e.liveness.hung
	e.liveness.mu.Unlock()
	ctx, end := context.WithCancelCause(ctx)
	given := context.AfterFunc(e.liveness.givenUp, func() { end(e.GivenUp()) })
	down := context.AfterFunc(hung, func() { end(errDown) })
	return ctx, func() {
		given()
		down()
		end(nil)
	}
}

// toTheEnd has what is tried from now on go on although the target hangs: it is not tried again.
func (e *Engine) toTheEnd() {
	e.liveness.mu.Lock()
	defer e.liveness.mu.Unlock()
	e.liveness.hung, e.liveness.hang = context.Background(), func() {}
}

// fence sends a request that does nothing and waits for its answer, unless the target is seen to be down meanwhile.
func (e *Engine) fence(ctx context.Context, s *client.Session) error {
	ctx, stop := e.unlessDown(ctx)
	defer stop()
	return s.Fence(ctx)
}

// probe opens a session and closes it again. The error says that the target
// does not answer, or is broken; one that refuses is alive: it may decide whom it serves,
// and how many.
func (e *Engine) probe(ctx context.Context) error {
	err := e.open(ctx, "whether the server is alive", client.Options{}, nil)
	var refused *client.RefusedError
	if errors.As(err, &refused) && !(broken(refused.Exchange.Head) && opened(e.Trace.Logs()) > 1) {
		return nil // a server may open a single session, whatever it says to others
	}
	return err
}

// ask opens a session and sends a ping and what the target has answered before, with a limit for each answer. The
// error is an *UnresponsiveError if the target answers neither. Over stdio it is one as well if the new process stops
// after as many requests as the silent ones. The wait ends with its context.
func (e *Engine) ask(ctx, waits context.Context, limit time.Duration, silent ...*wire.Log) error {
	// How long a process takes to start is known by now.
	s, err := e.connect(ctx, "whether the server answers", client.Options{Timeout: limit, StartTimeout: limit})
	if err != nil {
		return err
	}
	defer e.close(ctx, s)
	x, err := s.Initialize(waits)
	switch refused := (*client.RefusedError)(nil); {
	case err == nil:
		method, err := anyAnswer(waits, s, "any more", e.questions()...)
		if err == nil && e.processPerSession() && len(silent) > 0 {
			err = e.exhausts(waits, s, method, silent)
		}
		return err
	case errors.As(err, &refused):
		return nil
	case late(err):
		unanswered := "initialize"
		if x.Result() != nil {
			unanswered = "notifications/initialized"
		}
		return &UnresponsiveError{Since: "any more", Unanswered: []string{unanswered}, After: limit}
	}
	return err
}

// exhausts repeats an answered request in a process, until the process got as many requests as each silent one. It
// returns an *UnresponsiveError if this process falls silent too, unless others have answered many more requests.
func (e *Engine) exhausts(ctx context.Context, s *client.Session, method string, silent []*wire.Log) error {
	most := mostSent(silent)
	var unresponsive *UnresponsiveError
	enough := func() bool { return count(s.Log(), wire.KindMessage, sent) > most }
	for more := true; more && unresponsive == nil; more = !enough() {
		if _, err := anyAnswer(ctx, s, "", method); err != nil && !errors.As(err, &unresponsive) {
			return err
		}
	}
	if unresponsive == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	answered := count(s.Log(), wire.KindMessage, isAnswer)
	if slices.ContainsFunc(e.Trace.Logs(), func(l *wire.Log) bool {
		return count(l, wire.KindMessage, isAnswer) > 2*answered+1
	}) {
		return nil
	}
	asked := s.Log().Requests(wire.Client, method)
	unresponsive.Since, unresponsive.Worn = fmt.Sprintf("to a process beyond the first %d",
		answered), asked[len(asked)-1].Request
	return unresponsive
}

// count returns how many events of a kind there were in a session.
func count(l *wire.Log, kind wire.EventKind, is func(*wire.Event) bool) (n int) {
	for _, e := range l.Events() {
		if e.Kind == kind && is(e) {
			n++
		}
	}
	return n
}

// sentTo returns how many messages a process was sent, or as many as a new one is tried with.
func sentTo(l *wire.Log) int { return min(count(l, wire.KindMessage, sent), maxPings) }

// mostSent returns the most messages that one of several processes was sent.
func mostSent(logs []*wire.Log) (most int) {
	for _, l := range logs {
		most = max(most, sentTo(l))
	}
	return most
}

func everything(*wire.Event) bool { return true }

func sent(e *wire.Event) bool { return e.From == wire.Client }

func isAnswer(e *wire.Event) bool { return e.From == wire.Server && e.Msg.IsResponse() }

// questions returns requests that show whether the target answers: a ping and a list that it has answered.
func (e *Engine) questions() []string {
	if e.liveness.asks == nil { // while the lists are read for the first time
		return append([]string{"ping"}, e.target.answered()...)
	}
	return e.liveness.asks
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

// initialized connects a session and initialises it. With an error, nothing is left of it.
func (e *Engine) initialized(ctx context.Context, label string, o client.Options) (*client.Session, error) {
	s, err := e.connect(ctx, label, o)
	if err != nil {
		return nil, err
	}
	opening, stop := e.unlessDown(ctx)
	defer stop()
	if _, err := s.Initialize(opening); err != nil {
		e.close(ctx, s)
		return nil, err
	}
	return s, nil
}

// ensureUp makes sure that the target answers, and restarts it if it can. The error gives the reason to give up.
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
		try = func(ctx context.Context) error { return e.ask(ctx, ctx, e.Timeout) }
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
		l.dead = fmt.Errorf("the server no longer answers an initialize, since %s: %w", strings.Join(suspects, ", "),
			err)
	}
	return l.dead
}

// anyAnswer sends requests without params, all at once, and returns the method of one once that is
// answered, or an *UnresponsiveError when none is.
func anyAnswer(ctx context.Context, s *client.Session, since string, methods ...string) (answered string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		method string
		err    error
	}
	answers := make(chan answer, len(methods))
	for _, m := range methods {
		go func() {
			_, err := s.Call(ctx, m, nil)
			answers <- answer{m, err}
		}()
	}
	var unanswered error
	for range methods {
		switch a := <-answers; {
		case answered != "":
		case a.err == nil:
			answered = a.method
			cancel()
		case unanswered == nil, late(unanswered):
			unanswered = a.err
		}
	}
	switch {
	case answered != "":
		return answered, nil
	case late(unanswered):
		return "", &UnresponsiveError{Since: since, Unanswered: methods, After: s.Options.Timeout}
	}
	return "", unanswered
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
	return slices.ContainsFunc(e.Trace.Logs(), func(l *wire.Log) bool { return heardIn(l, since) })
}

// heardIn is heard for one session.
func heardIn(l *wire.Log, since time.Duration) bool {
	for _, e := range slices.Backward(l.Events()) {
		if e.At < since {
			break
		}
		if answers(l, e) {
			return true
		}
	}
	return false
}

// answers reports whether an event answers a request other than initialize.
func answers(l *wire.Log, e *wire.Event) bool {
	switch {
	case e.Kind == wire.KindHTTPResponse:
		return e.HTTP.Status >= 400 && strings.HasPrefix(e.Stream, "post:") && !asksNothing(l.Carrier(e))
	case e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse() ||
		strings.HasPrefix(e.Stream, "delete:"):
		return false
	}
	if request := l.RequestOf(e); request != nil {
		return request.Msg.Method != "initialize"
	}
	return !asksNothing(l.Carrier(e))
}

// asksNothing reports whether all that an HTTP request carried were notifications, responses and handshakes: what
// refuses these may do so before it would ask a server that hangs.
func asksNothing(x *wire.HTTPExchange) bool {
	return x != nil && len(x.Sent) > 0 && !slices.ContainsFunc(x.Sent, func(e *wire.Event) bool {
		return e.Msg == nil || e.Msg.Kind != wire.Notification && !e.Msg.IsResponse() && e.Msg.Method != "initialize"
	})
}
