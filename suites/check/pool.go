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
// of the time would go into a new session for each, over stdio into a process. A server
// cannot tell the clients of sessions with the same key apart.
type pool struct {
	limit  int            // sessions of a key that are used in turn
	limits map[string]int // the same for keys of which fewer are worth what they cost

	mu    sync.Mutex
	keyed map[string]*sessions
}

// sessions are those of one key.
type sessions struct {
	limit    int // that are used in turn
	idle     []*client.Session
	open     int           // idle or in use, or about to be
	returned chan struct{} // closed and replaced when one comes back or is lost
}

// How many sessions of a key are used in turn: what one check waits for, for a second at
// most, is waited for beside others.
const (
	maxProcesses = 3
	maxRemote    = 8
	// perSession is how many checks make one more of them worth what it costs, and perSlowStart how many do where it is a
	// process that takes its time to start.
	perSession   = 6
	perSlowStart = 8 * perSession
)

// plan says which checks will take a session, whether each is a process, and whether that takes long to start.
func (p *pool) plan(checks []*Check, apart, slow bool) {
	per := perSession
	if slow {
		per = perSlowStart
	}
	worth := func(checks int) int { return max(1, min(p.limit, (checks+per-1)/per)) }
	p.limits = make(map[string]int)
	all := 0
	for _, c := range checks {
		if c.Needs.Session == Own {
			all++
			p.limits[c.key()]++
		}
	}
	p.limit = worth(all)
	for key, n := range p.limits {
		switch {
		case !apart:
			delete(p.limits, key)
		case !slow && waitsApart(checks, key):
			p.limits[key] = min(n, p.limit)
		default:
			p.limits[key] = worth(n)
		}
	}
}

// waitsApart reports whether checks of a key may wait long, and no others use what they leave: one of their sessions
// after the other would make the run longer.
func waitsApart(checks []*Check, key string) bool {
	return slices.ContainsFunc(checks, func(c *Check) bool { return c.Needs.Among != "" && c.takesLong() && c.key() == key })
}

// keyOf names the handshakes after which a server sees the same client: what a server
// may use depends on the capabilities that the specification defines.
func keyOf(version string, capabilities map[string]any) string {
	defined := make(map[string]any)
	for _, name := range usable {
		if value, ok := capabilities[name]; ok {
			defined[name] = value
		}
	}
	return version + string(client.Marshal(defined))
}

// usable are the capabilities of a client that a server may use.
var usable = []string{"sampling", "roots", "elicitation"}

func (p *pool) of(key string) *sessions {
	if p.keyed == nil {
		p.keyed = make(map[string]*sessions)
	}
	if p.keyed[key] == nil {
		p.keyed[key] = &sessions{limit: cmp.Or(p.limits[key], p.limit), returned: make(chan struct{})}
	}
	return p.keyed[key]
}

// expect says that a session will come that a check opens for itself.
func (p *pool) expect(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(key).open++
}

// has reports whether take would return at once.
func (p *pool) has(key string, old bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(key)
	return len(s.idle) > 0 || p.opens(s, old)
}

// opens reports whether take lets a new session be opened when none is idle.
func (p *pool) opens(s *sessions, old bool) bool { return s.open < s.limit && !(old && s.open > 0) }

// take returns an idle session or, if there are not too many yet, nil for a new one; if it
// has to be old, only the first one is new, and of several the one that is idle longest is taken. It waits for a session to come back if there
// is neither.
func (p *pool) take(ctx context.Context, key string, old bool) (*client.Session, error) {
	for {
		p.mu.Lock()
		s := p.of(key)
		if n := len(s.idle); n > 0 {
			i := n - 1
			if old {
				i = 0
			}
			taken := s.idle[i]
			s.idle = slices.Delete(s.idle, i, i+1)
			p.mu.Unlock()
			return taken, nil
		}
		if p.opens(s, old) {
			s.open++
			p.mu.Unlock()
			return nil, nil
		}
		returned := s.returned
		p.mu.Unlock()
		select {
		case <-returned:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// give puts a session back, or says with nil that one has been lost.
func (p *pool) give(key string, s *client.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of(key)
	if s != nil {
		of.idle = append(of.idle, s)
	} else {
		of.open--
	}
	close(of.returned)
	of.returned = make(chan struct{})
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
func reusable(s *client.Session) (key string, ok bool) {
	log := s.Log()
	inits := slices.DeleteFunc(log.Requests(wire.Client, "initialize"), func(x *wire.Exchange) bool { return x.Result() == nil })
	if len(inits) != 1 || inits[0].Result()["protocolVersion"] != client.Version || !tidy(s) {
		return "", false
	}
	initialized := slices.ContainsFunc(log.Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "notifications/initialized"
	})
	params, _ := inits[0].Request.Msg.Params.(map[string]any)
	capabilities, _ := params["capabilities"].(map[string]any)
	s.Init = inits[0]
	return keyOf(client.Version, capabilities), initialized && params["protocolVersion"] == client.Version
}

// tidy reports whether a session goes on, and neither a tool nor this side owes an answer.
func tidy(s *client.Session) bool {
	for _, x := range s.Log().Unanswered() {
		if x.Cancelled == nil && (x.Method() == "tools/call" || x.From() == wire.Server) {
			return false
		}
	}
	return !closed(s) && !slices.ContainsFunc(s.Log().Events(), func(e *wire.Event) bool { return e.Kind == wire.KindTimeout })
}

// closed reports whether the connection of a session has ended.
func closed(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Events(), func(e *wire.Event) bool { return e.Kind == wire.KindExit || e.Kind == wire.KindClose })
}

// putBack gives a session back after a check, or closes it if that may have left
// something behind.
func (e *Engine) putBack(ctx context.Context, key string, s *client.Session, a *attempt) {
	// What the server asked last is being answered.
	if ctx.Err() != nil || a.outcome.Verdict == Broken || a.unanswered || a.lost || !tidy(s) && (e.fence(ctx, s) != nil || !tidy(s)) {
		e.close(ctx, s)
		s = nil
	}
	e.pool.give(key, s)
}

// takeSession returns a session for a check that can use one that others have used before it.
func (e *Engine) takeSession(ctx context.Context, c *Check) (s *client.Session, key string, err error) {
	o := c.options()
	key = c.key()
	s, err = e.pool.take(ctx, key, c.Needs.Late)
	switch {
	case err != nil:
		return nil, key, err
	case s != nil:
		s.Answer(o.Answers)
		return s, key, nil
	}
	if s, err = e.initialized(ctx, OwnLabel, o); err != nil {
		e.pool.give(key, nil)
		return nil, key, err
	}
	return s, key, nil
}
