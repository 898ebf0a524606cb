package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// SilentError reports a target that lives and answers the handshake, but no
// request after it. Nothing is tried any more then: each check would cost a
// time limit and be blamed on its own requirement.
type SilentError struct {
	// Since says in a clause since when.
	Since string
	// Unanswered are the methods of the requests that got no answer.
	Unanswered []string
	After      time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the server answers no request %s: there was no answer to %s within %v", e.Since, strings.Join(e.Unanswered, ", "), e.After)
}

// silence tells a target that answers nothing from one that leaves single
// requests unanswered. A check that got no answer is held until that is known.
type silence struct {
	mu      sync.Mutex
	held    []*Future     // in a row, with no answer of the target's to anything since the first
	since   time.Duration // end of the first of them, in the time of the trace
	probing bool

	ctx    context.Context // ended by the verdict, for the checks under way
	decide context.CancelCauseFunc
}

// maxSilent is how many checks in a row may stay without any answer before the
// target is asked whether it answers at all.
const maxSilent = 3

func (s *silence) begin() { s.ctx, s.decide = context.WithCancelCause(context.Background()) }

// Silent returns why nothing is tried any more, or nil.
func (e *Engine) Silent() error {
	if e.silence.ctx == nil || e.silence.ctx.Err() == nil {
		return nil
	}
	return context.Cause(e.silence.ctx)
}

// giveUp ends a check that cannot tell anything about a silent target.
func (f *Future) giveUp(cause error) {
	f.outcome = Outcome{Check: f.Check}
	f.finish(Inconclusive, cause.Error())
}

// hold keeps back the outcome of a check that got no answer. The check in a row
// that is one too many finds out whether the target answers anything at all.
func (e *Engine) hold(ctx context.Context, f *Future) {
	s := &e.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	if cause := e.Silent(); cause != nil {
		f.giveUp(cause)
		return
	}
	e.keep(f)
	if len(s.held) < maxSilent || s.probing {
		return
	}
	s.probing = true
	since := s.since
	s.mu.Unlock()
	err := e.ask(ctx)
	heard := e.heard(since)
	s.mu.Lock()
	s.probing = false
	if silent := (*SilentError)(nil); !heard && errors.As(err, &silent) {
		s.decide(silent)
		for _, f := range s.held {
			f.giveUp(silent)
		}
		s.held = nil
		return
	}
	s.release()
}

// keep adds a check to the row; an answer to anything has ended the one before.
func (e *Engine) keep(f *Future) {
	s := &e.silence
	if len(s.held) > 0 && !s.probing && e.heard(s.since) {
		s.release()
	}
	if len(s.held) == 0 {
		s.since = time.Since(e.Trace.Start)
	}
	s.held = append(s.held, f)
}

// release lets the outcomes stand as they are.
func (s *silence) release() {
	for _, f := range s.held {
		close(f.done)
	}
	s.held = nil
}

// ask opens a session and sends a ping and what the target has answered before.
// The error is a *SilentError when it answers neither.
func (e *Engine) ask(ctx context.Context) error {
	s, err := e.connect(ctx, "whether the server answers", client.Options{})
	if err != nil {
		return err
	}
	defer e.close(ctx, s)
	_, err = s.Initialize(ctx)
	switch refused := (*client.RefusedError)(nil); {
	case errors.As(err, &refused):
		return nil
	case late(err):
		return &SilentError{Since: "any more", Unanswered: []string{"initialize"}, After: s.Options.Timeout}
	case err != nil:
		return err
	}
	return anyAnswer(ctx, s, "any more", append([]string{"ping"}, e.target.answered()...)...)
}

// anyAnswer sends requests without params, all at once, and returns once one is
// answered, or with a *SilentError when none is.
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
	var problem error
	answered := false
	for range methods {
		switch err := <-answers; {
		case answered:
		case err == nil:
			answered = true
			cancel()
		case problem == nil, late(problem):
			problem = err
		}
	}
	switch {
	case answered:
		return nil
	case late(problem):
		return &SilentError{Since: since, Unanswered: methods, After: s.Options.Timeout}
	}
	return problem
}

// late reports whether the target had not answered, or not even taken a message,
// when its time was up.
func late(err error) bool {
	var timeout *client.TimeoutError
	return errors.As(err, &timeout) || errors.Is(err, context.DeadlineExceeded)
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
		events := l.Events()
		for i := len(events) - 1; i >= 0 && events[i].At >= since; i-- {
			if answers(events[:i], events[i]) {
				return true
			}
		}
	}
	return false
}

// answers reports whether an event answers a request other than initialize.
func answers(before []*wire.Event, e *wire.Event) bool {
	switch {
	case e.Kind == wire.KindHTTPResponse:
		return e.HTTP.Status >= 400 && strings.HasPrefix(e.Stream, "post:")
	case e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse():
		return false
	}
	for _, sent := range before {
		if sent.Kind == wire.KindMessage && sent.From == wire.Client && sent.Msg.Method == "initialize" && sent.Msg.ID.Resembles(e.Msg.ID) {
			return false
		}
	}
	return true
}
