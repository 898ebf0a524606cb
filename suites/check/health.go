package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
)

// health is what the engine knows of a target that all connections share.
type health struct {
	mu       sync.Mutex // held during a probe
	down     bool       // it did not answer when it was last tried
	died     bool
	restarts int
	dead     error // it cannot be brought back
	suspects []string
	again    []*Future // checks that got no answer, to be run again one by one

	row      int           // checks without an answer since the target was last heard
	rowSince time.Duration // end of the first of them, in the time of the trace
	mute     bool          // it has answered the handshake and nothing else before
}

// maxRestarts bounds how often a target is brought back.
const maxRestarts = 20

func (h *health) hasDied() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.died
}

// Dead returns why the target could not be tried to the end, or nil.
func (e *Engine) Dead() error {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	return e.health.dead
}

// Restarts returns how often the target was brought back.
func (e *Engine) Restarts() int {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	return e.health.restarts
}

// startTogether starts checks of a target that serves all connections: when it
// dies of one check, the others that run at the time get no answer either.
// Checks without an answer are therefore repeated at the end, one by one.
func (e *Engine) startTogether(ctx context.Context, shared, own []*Future) {
	wait := e.startAll(ctx, shared, own, func(f *Future, s *client.Session) bool {
		answered := false
		switch cause := e.Silent(); {
		case cause != nil:
			f.giveUp(cause)
			return true
		case e.isDown():
		case s == nil:
			answered = e.runAlone(ctx, f)
			if f.hindered != nil {
				f.hindered.own = true
			}
		default:
			answered = e.run(ctx, f, s)
		}
		switch {
		case answered || ctx.Err() != nil:
			close(f.done)
		case f.hindered != nil:
			e.putAside(f)
		default:
			e.unanswered(ctx, f)
		}
		return true
	})
	e.closers.Go(func() {
		wait()
		e.repeat(ctx)
	})
}

// putAside keeps a check to be run again, alone.
func (e *Engine) putAside(f *Future) {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	e.health.again = append(e.health.again, f)
}

func (e *Engine) isDown() bool {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	return e.health.down
}

// unanswered puts a check aside and finds out whether the target still lives.
func (e *Engine) unanswered(ctx context.Context, f *Future) {
	h := &e.health
	h.mu.Lock()
	defer h.mu.Unlock()
	h.again = append(h.again, f)
	if h.down {
		return
	}
	h.suspects = append(h.suspects, f.Check.Name)
	if e.probe(ctx) != nil && ctx.Err() == nil || e.fallenSilent(ctx) {
		h.down, h.died = true, true
	}
}

// fallenSilent counts a check without an answer from a target that still opens
// sessions, and reports whether that is all that it does. Whoever cannot bring
// it back has heard the last of it.
func (e *Engine) fallenSilent(ctx context.Context) bool {
	h := &e.health
	if h.row == 0 || e.heard(h.rowSince) {
		h.row, h.rowSince = 0, time.Since(e.Trace.Start)
	}
	h.row++
	if h.row < maxSilent {
		return false
	}
	var silent *SilentError
	if !errors.As(e.ask(ctx), &silent) || e.heard(h.rowSince) {
		h.row = 0
		return false
	}
	h.mute = true
	if e.Restart == nil {
		e.silence.decide(silent)
	}
	return true
}

// alive reports whether the target answers, as far as is known to be in doubt.
func (e *Engine) alive(ctx context.Context) error {
	if e.health.mute {
		return e.ask(ctx)
	}
	return e.probe(ctx)
}

// probe opens a session and closes it again. The error says that the target
// does not answer; one that refuses is alive.
func (e *Engine) probe(ctx context.Context) error {
	s, err := e.connect(ctx, "whether the server is alive", client.Options{})
	if err != nil {
		return err
	}
	defer e.close(ctx, s)
	_, err = s.Initialize(ctx)
	var refused *client.RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// repeat runs the checks that got no answer again, one by one.
func (e *Engine) repeat(ctx context.Context) {
	h := &e.health
	h.mu.Lock()
	again := h.again
	h.mu.Unlock()
	var silent []*Future // in a row
	settle := func() {
		for _, f := range silent {
			close(f.done)
		}
		silent = nil
	}
	defer settle()
	for _, f := range again {
		if cause := e.Silent(); cause != nil {
			f.abandon(cause)
			continue
		}
		err := e.revive(ctx)
		e.closing.Wait() // the server may bound how many sessions it keeps
		e.limits.settle(ctx)
		switch {
		case ctx.Err() != nil && !f.refused():
			f.outcome = Outcome{Check: f.Check}
			f.finish(Inconclusive, "the run was interrupted")
			continue
		case err != nil:
			f.abandon(err)
			continue
		case e.stands(ctx, f):
			close(f.done)
			continue
		case len(silent) >= maxSilent && !h.hasDied() && f.hindered == nil:
			close(f.done) // as it was
			continue
		}
		if e.runAlone(ctx, f) || f.hindered != nil {
			e.unhinder(ctx, f)
			settle()
			close(f.done)
			continue
		}
		silent = append(silent, f)
		if cause := e.stillSilent(ctx); cause != nil {
			for _, f := range silent {
				f.giveUp(cause)
			}
			silent = nil
		}
	}
}

// abandon ends a check that cannot be run again. What it found may be due to
// another check, unless its session was its own or it got an answer.
func (f *Future) abandon(cause error) {
	if f.hindered != nil && f.hindered.limit == nil && (f.hindered.own || f.refused()) {
		close(f.done)
		return
	}
	f.giveUp(cause)
}

// stillSilent counts one more check without an answer and returns the reason when the
// target is given up.
func (e *Engine) stillSilent(ctx context.Context) error {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	e.fallenSilent(ctx)
	return e.Silent()
}

// revive makes sure that the target answers, and restarts it where that is
// possible.
func (e *Engine) revive(ctx context.Context) error {
	h := &e.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead != nil {
		return h.dead
	}
	err := e.alive(ctx)
	if err == nil || ctx.Err() != nil {
		h.down = false
		return nil
	}
	h.down, h.died = true, true
	if e.Restart != nil && h.restarts < maxRestarts {
		h.restarts++
		problem := e.Restart(ctx)
		if problem == nil {
			if problem = e.alive(ctx); problem == nil {
				h.down = false
				return nil
			}
		}
		err = fmt.Errorf("it was started again without success: %w", problem)
	}
	suspects := h.suspects
	if len(suspects) > maxSuspects {
		suspects = append(suspects[:maxSuspects:maxSuspects], "others")
	}
	h.dead = fmt.Errorf("the server no longer answers an initialize, since %s: %w", strings.Join(suspects, ", "), err)
	return h.dead
}

const maxSuspects = 5
