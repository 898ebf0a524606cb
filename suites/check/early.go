package check

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// openedEarly holds sessions that are opened before a check needs them, while no other session is being opened. Over
// stdio each one costs the start of a process.
type openedEarly struct {
	mu       sync.Mutex
	openings []*opening
}

// opening is a session that is being opened.
type opening struct {
	label, client string
	done          chan struct{}
	session       *client.Session // nil if that failed; to be read when it is done
}

// openEarly begins to open a session, unless that was begun.
func (e *Engine) openEarly(ctx context.Context, label string, o client.Options) {
	opens := &opening{label: label, client: clientOf(client.Version, o.Capabilities), done: make(chan struct{})}
	e.openedEarly.mu.Lock()
	defer e.openedEarly.mu.Unlock()
	if e.openedEarly.find(label, opens.client) >= 0 {
		return
	}
	e.openedEarly.openings = append(e.openedEarly.openings, opens)
	e.closers.Go(func() {
		defer close(opens.done)
		opens.session, _ = e.openNew(ctx, label, o) // who asks for it tries again
	})
}

// find returns the place of the opening for a label and a client, or -1.
func (a *openedEarly) find(label, of string) int {
	return slices.IndexFunc(a.openings, func(opens *opening) bool { return opens.label == label && opens.client == of })
}

// leave keeps a session that is open for who asks for one of its label and client.
func (a *openedEarly) leave(label string, s *client.Session) {
	opens := &opening{label: label, client: clientOf(client.Version, s.Options.Capabilities), done: make(chan struct{}),
		session: s}
	close(opens.done)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openings = append(a.openings, opens)
}

// take returns the session that was opened early for a label and a client, or nil.
func (a *openedEarly) take(label string, o client.Options) *client.Session {
	a.mu.Lock()
	i := a.find(label, clientOf(client.Version, o.Capabilities))
	if i < 0 {
		a.mu.Unlock()
		return nil
	}
	opens := a.openings[i]
	a.openings = slices.Delete(a.openings, i, i+1)
	a.mu.Unlock()
	<-opens.done // which the limit of a handshake bounds
	return opens.session
}

// closeEarly closes the unused sessions.
func (e *Engine) closeEarly(ctx context.Context) {
	e.openedEarly.mu.Lock()
	openings := e.openedEarly.openings
	e.openedEarly.openings = nil
	e.openedEarly.mu.Unlock()
	for _, opens := range openings {
		if <-opens.done; opens.session != nil {
			e.close(ctx, opens.session)
		}
	}
}

// openForAgain opens sessions for the second executions of checks, while the last first executions still run.
func (p *phase) openForAgain(ctx context.Context) {
	p.mu.Lock()
	again := slices.Clone(p.again)
	p.mu.Unlock()
	if len(again) == 0 || !p.processPerSession() || !p.opensAnother() || p.GivenUp() != nil {
		return
	}
	var keys []key
	if len(ratable(refusalsOf(again))) > 0 {
		keys = append(keys, ofCapable)
		p.openEarly(ctx, OwnLabel, Capable())
	}
	for _, f := range inOrder(again) {
		k, o := f.where()
		reuses := f.Check.Needs.Session == Own || f.Check.Needs.Session == Shared
		if reuses && k.group == "" && !slices.ContainsFunc(keys,
			func(known key) bool { return known == k || known.lends(k) }) {
			keys = append(keys, k)
			p.openEarly(ctx, OwnLabel, o)
		}
	}
}

// refusalsOf returns the refusals that checks have met.
func refusalsOf(checks []*Future) (all []refused) {
	for _, f := range checks {
		all = append(all, f.last.refusals...)
	}
	return all
}

// confirmation is a second execution of a check. It begins before the limit of the first one has passed, so that both
// limits pass at the same time. Nil is none.
type confirmation struct {
	stop    context.CancelFunc
	begun   chan struct{} // closed when it is
	ended   chan struct{}
	attempt attempt // to be read when it has ended
}

// silent is how long a process may leave a request unanswered that it usually answers at once. After that the check
// is tried in another process.
const silent = 250 * time.Millisecond

// confirmEarly begins a confirmation once a process is silent although the check in its session gives it nothing to
// do.
func (e *Engine) confirmEarly(ctx context.Context, c *Check, s *client.Session) *confirmation {
	watch, stop := context.WithCancel(ctx)
	confirming := &confirmation{stop: stop, begun: make(chan struct{}), ended: make(chan struct{})}
	from := s.Log().Len()
	e.closers.Go(func() {
		defer close(confirming.ended)
		for {
			limit, cancel := context.WithTimeout(watch, e.pace.Reaction(silent))
			heard, err := s.Log().Await(limit, from, func(e *wire.Event) bool { return e.From == wire.Server })
			cancel()
			switch {
			case err == nil:
				from = heard.Seq + 1
				continue
			case errors.Is(err, wire.ErrEnded), watch.Err() != nil:
				return // the first one knows
			}
			close(confirming.begun)
			confirming.attempt = e.alone(ctx, c, further)
			return
		}
	})
	return confirming
}

// waited says that the first execution waits for nothing any more.
func (c *confirmation) waited() {
	if c != nil {
		c.stop()
	}
}

// result returns the attempt of a second execution: the confirmation if one was begun, or else a new execution.
func (c *confirmation) result(execute func() attempt) attempt {
	if c == nil {
		return execute()
	}
	select {
	case <-c.begun:
		<-c.ended
		return c.attempt
	default:
		return execute()
	}
}
