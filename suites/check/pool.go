package check

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// pool keeps the sessions that checks use one after the other while all are run: most
// of the time would go into a new session for each, over stdio into a process.
type pool struct {
	limit  int         // sessions of a key that are used in turn
	limits map[key]int // the same for keys of which fewer are worth what they cost

	mu       sync.Mutex
	keyed    map[key]*sessions
	returned chan struct{} // closed and replaced when one comes back or is lost
}

// key names the sessions that do for the same checks.
type key struct {
	client string // that a server sees: it cannot tell the clients of two sessions with the same one apart
	lane   Lane   // see Check.own
}

var (
	// anyClient is the key of checks that need nothing of their client. ofCapable is the key of sessions with a
	// client that can do everything.
	anyClient = key{client: clientOf(client.Version, nil)}
	ofCapable = key{client: clientOf(client.Version, AllCapabilities())}
)

// lends reports whether sessions of a key do for the checks of another one.
func (k key) lends(to key) bool { return k == ofCapable && to == anyClient }

// sessions are those of one key.
type sessions struct {
	limit int // that are used in turn
	idle  []*client.Session
	open  int // idle or in use, or about to be
}

// How many sessions of a key are used in turn: what one check waits for, for a second at
// most, is waited for beside others.
const (
	maxProcesses = 3
	maxRemote    = 5
	// perSession is the number of checks that justify the cost of one more session. perSlowStart is the same for a
	// slow start of the process.
	perSession   = 6
	perSlowStart = 8 * perSession
)

// plan takes the checks that will need a session. It also takes whether a session is a process, and whether processes
// start slowly.
func (p *pool) plan(checks []*Check, processPerSession, slow bool) {
	per := perSession
	if slow {
		per = perSlowStart
	}
	worth := func(checks int) int { return max(1, min(p.limit, (checks+per-1)/per)) }
	p.limits = make(map[key]int)
	all := 0
	for _, c := range checks {
		if c.Needs.Session == Own {
			all++
			if processPerSession {
				p.limits[c.key()]++
			}
		}
	}
	p.limit = worth(all)
	for k, n := range p.limits {
		p.limits[k] = worth(n)
	}
}

// clientOf returns a name for all handshakes that show the server the same client. The server sees only the
// capabilities that the specification defines.
func clientOf(version string, capabilities map[string]any) string {
	defined := make(map[string]any)
	for _, name := range usable {
		if value, ok := capabilities[name].(map[string]any); ok {
			defined[name] = map[string]any{"listChanged": value["listChanged"]}
		}
	}
	return version + string(client.Marshal(defined))
}

// usable are the capabilities of a client that a server may use. The revision defines one member of them.
var usable = []string{"sampling", "roots", "elicitation"}

func (p *pool) of(k key) *sessions {
	if p.keyed == nil {
		p.keyed, p.returned = make(map[key]*sessions), make(chan struct{})
	}
	if p.keyed[k] == nil {
		p.keyed[k] = &sessions{limit: cmp.Or(p.limits[k], p.limit)}
	}
	return p.keyed[k]
}

// expect says that a session will come that a check opens for itself.
func (p *pool) expect(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(k).open++
}

// has reports whether take would return at once, and whether it would return a session.
func (p *pool) has(k key, old bool) (now, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, idle = p.idle(k, old)
	return idle || p.opens(k, old), idle
}

// opens reports whether take lets a new session be opened when none is idle.
func (p *pool) opens(k key, old bool) bool {
	s := p.of(k)
	return s.open < s.limit && !(old && s.open > 0)
}

// idle returns the key of the idle session that take returns, if there is one: rather than wait for one of its
// own key, it takes one of another that will do.
func (p *pool) idle(k key, old bool) (of key, ok bool) {
	if len(p.of(k).idle) > 0 || p.opens(k, old) {
		return k, len(p.of(k).idle) > 0
	}
	return ofCapable, ofCapable.lends(k) && len(p.of(ofCapable).idle) > 0
}

// take returns an idle session and its key or, if there are not too many yet, nil for a new one; if it
// has to be old, only the first one is new, and of several the one that is idle longest is taken. It waits for a
// session to come back if there is neither.
func (p *pool) take(ctx context.Context, k key, old bool) (*client.Session, key, error) {
	for {
		p.mu.Lock()
		if of, ok := p.idle(k, old); ok {
			s := p.of(of)
			i := len(s.idle) - 1
			if old {
				i = 0
			}
			taken := s.idle[i]
			s.idle = slices.Delete(s.idle, i, i+1)
			p.mu.Unlock()
			return taken, of, nil
		}
		if p.opens(k, old) {
			p.of(k).open++
			p.mu.Unlock()
			return nil, k, nil
		}
		returned := p.returned
		p.mu.Unlock()
		select {
		case <-returned:
		case <-ctx.Done():
			return nil, k, context.Cause(ctx)
		}
	}
}

// give puts a session back, or says with nil that one has been lost.
func (p *pool) give(k key, s *client.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of(k)
	if s != nil {
		of.idle = append(of.idle, s)
	} else {
		of.open--
	}
	close(p.returned)
	p.returned = make(chan struct{})
}

// empty returns the sessions that are idle, which it then forgets.
func (p *pool) empty() []*client.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*client.Session
	for _, s := range p.keyed {
		all = append(all, s.idle...)
	}
	p.keyed = nil
	return all
}

// reusable reports whether others can use a session in turn that a check opened for
// itself: one initialize was served, in the ordinary way, and nothing is left undone in it.
func reusable(s *client.Session) (as key, ok bool) {
	log := s.Log()
	inits := slices.DeleteFunc(log.Requests(wire.Client, "initialize"),
		func(x *wire.Exchange) bool { return x.Result() == nil })
	if len(inits) != 1 || inits[0].Result()["protocolVersion"] != client.Version || !tidy(s) {
		return key{}, false
	}
	initialized := slices.ContainsFunc(log.Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "notifications/initialized"
	})
	params, _ := inits[0].Request.Msg.Params.(map[string]any)
	capabilities, _ := params["capabilities"].(map[string]any)
	s.Init = inits[0]
	return key{client: clientOf(client.Version, capabilities)},
		initialized && params["protocolVersion"] == client.Version
}

// tidy reports whether a session continues, and neither a tool nor this side owes an answer.
func tidy(s *client.Session) bool {
	for _, x := range s.Log().Unanswered() {
		if x.Cancelled == nil && (x.Method() == "tools/call" || x.From() == wire.Server) {
			return false
		}
	}
	return !closed(s) && !slices.ContainsFunc(s.Log().Events(),
		func(e *wire.Event) bool { return e.Kind == wire.KindTimeout })
}

// closed reports whether the connection of a session has ended.
func closed(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Events(),
		func(e *wire.Event) bool { return e.Kind == wire.KindExit || e.Kind == wire.KindClose })
}

// putBack gives a session back after a check, or closes it if that may have left
// something behind.
func (e *Engine) putBack(ctx context.Context, k key, s *client.Session, a *attempt) {
	if ctx.Err() != nil || a.outcome.Verdict == Broken || a.unanswered || a.lost || !e.becomesTidy(ctx, s) {
		e.close(ctx, s)
		s = nil
	}
	e.pool.give(k, s)
}

// becomesTidy reports whether a session is tidy at once, or once the latest request of the server is answered.
func (e *Engine) becomesTidy(ctx context.Context, s *client.Session) bool {
	if tidy(s) {
		return true
	}
	if e.fence(ctx, s) != nil {
		return false
	}
	limit, stop := context.WithTimeout(ctx, AtOnce)
	defer stop()
	from := s.Log().Len()
	if !tidy(s) {
		_, _ = s.Log().Await(limit, from, func(*wire.Event) bool { return tidy(s) })
	}
	return tidy(s)
}

// serve makes a session answer the server as the check wants. If the check reuses a session, it answers like a client
// with all capabilities.
func serve(s *client.Session, k key, c *Check) {
	if k == c.key() {
		s.Answer(c.options().Answers)
	} else {
		s.Answer(StandardAnswers())
	}
}
