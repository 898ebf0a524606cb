package oddserver

import (
	"context"
	"net/http"
	"reflect"
	"sync"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// In returns a fault in another form: the server misbehaves in all sessions but its
// first, only while other requests of the session are in progress, or only from the second
// request and notification of a method on. It reports false if the fault is one of what
// the server offers or of the transport as a whole, which is the same at every time.
func In(f mockserver.Fault, form mockserver.Form) (mockserver.Fault, bool) {
	var probe server.Options
	f.Apply(&probe)
	if !momentary(probe) || f.Form != "" {
		return mockserver.Fault{}, false
	}
	faulty := f.Apply
	f.ID += "/" + string(form)
	f.Form = form
	f.Apply = func(o *server.Options) {
		other := *o
		faulty(&other)
		g := &gate{form: form, sessions: make(map[string]int)}
		o.Behaviour = g.between(o.Behaviour, other.Behaviour)
	}
	return f, true
}

// momentary reports whether options differ from the ordinary ones by hooks alone that are
// asked each time anew.
func momentary(o server.Options) bool {
	b := &o.Behaviour
	b.Receive, b.Methods, b.Send, b.Frame, b.Connected, b.Initialized = nil, nil, nil, nil, nil, nil
	h := &b.HTTP
	h.Middleware, h.Reply, h.Answer, h.Event, h.Replay, h.KeepOpen = nil, nil, nil, nil, nil, nil
	return reflect.DeepEqual(o, server.Options{})
}

// gate decides at which times a server misbehaves.
type gate struct {
	form     mockserver.Form
	mu       sync.Mutex
	sessions map[string]int // by id: the first is 1
	seen     int            // sessions
}

// number returns which of the server's sessions this one is, from 1.
func (g *gate) number(s *server.Session) int {
	n := Kept[int](s, "number")
	g.mu.Lock()
	defer g.mu.Unlock()
	if *n == 0 {
		g.seen++
		*n = g.seen
	}
	if s.ID != "" {
		g.sessions[s.ID] = *n
	}
	return *n
}

// times counts what was received or sent in a session.
type times struct {
	mu    sync.Mutex
	count map[string]int
}

func of(s *server.Session) *times {
	return s.Value("times", func() any { return &times{count: make(map[string]int)} }).(*times)
}

func (s *times) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[what]++
}

func (s *times) again(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[what] > 1
}

// open reports whether the server misbehaves in a session with regard to a method. own is the number of requests in
// progress that belong to the subject itself.
func (g *gate) open(s *server.Session, method string, own int) bool {
	switch {
	case s == nil:
		return false
	case g.form == mockserver.BySession:
		return g.number(s) > 1
	case g.form == mockserver.AtOnce:
		return len(s.Running()) > own
	}
	return of(s).again(method)
}

// concerns returns the method of a message, or of what it answers.
func concerns(out *server.Outgoing) string {
	switch {
	case out == nil:
		return ""
	case out.Answers != nil:
		return out.Answers.Method
	}
	return out.Method
}

// causes returns how many requests in progress a message of the server comes from: a request
// ends before its answer is sent.
func causes(out *server.Outgoing) int {
	if out == nil || out.Answers != nil {
		return 0
	}
	return 1
}

// between returns a behaviour that is now one, now the other.
func (g *gate) between(plain, faulty server.Behaviour) server.Behaviour {
	b := plain
	b.Receive = func(s *server.Session, m *wire.Message, next func()) {
		of(s).add(m.Method)
		hook := plain.Receive
		if g.open(s, m.Method, 0) {
			hook = faulty.Receive
		}
		if hook == nil {
			next()
		} else {
			hook(s, m, next)
		}
	}
	b.Send = func(out *server.Outgoing) []*server.Outgoing {
		if out.Answers == nil {
			of(out.Session).add(out.Method)
		}
		hook := plain.Send
		if g.open(out.Session, concerns(out), causes(out)) {
			hook = faulty.Send
		}
		if hook == nil {
			return []*server.Outgoing{out}
		}
		return hook(out)
	}
	b.Methods = nil
	for method, m := range faulty.Methods {
		b.Wrap(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			switch before := plain.Methods[method]; {
			case g.open(r.Session, r.Method, 1):
				return m(ctx, r, next)
			case before != nil:
				return before(ctx, r, next)
			}
			return next(ctx, r)
		})
	}
	if faulty.Frame != nil {
		b.Frame = func(out *server.Outgoing, frame []byte) []byte {
			hook := plain.Frame
			if g.open(out.Session, concerns(out), causes(out)) {
				hook = faulty.Frame
			}
			if hook == nil {
				return frame
			}
			return hook(out, frame)
		}
	}
	b.Connected = g.begun(plain.Connected, faulty.Connected)
	b.Initialized = g.begun(plain.Initialized, faulty.Initialized)
	b.HTTP = g.http(plain.HTTP, faulty.HTTP)
	return b
}

func (g *gate) begun(plain, faulty func(context.Context, *server.Session)) func(context.Context, *server.Session) {
	return func(ctx context.Context, s *server.Session) {
		hook := plain
		// A session begins once: only its number tells it from another.
		if g.form != mockserver.BySession || g.open(s, "", 0) {
			hook = faulty
		}
		if hook != nil {
			hook(ctx, s)
		}
	}
}

func (g *gate) http(plain, faulty server.HTTP) server.HTTP {
	h := plain
	h.Middleware = g.middleware(plain.Middleware, faulty.Middleware)
	if faulty.Reply != nil {
		h.Reply = func(r *server.Reply) {
			hook := plain.Reply
			if g.replies(r) {
				hook = faulty.Reply
			}
			if hook != nil {
				hook(r)
			}
		}
	}
	own := func(r *server.Request) bool { return g.open(r.Session, r.Method, 1) }
	h.Answer = chosen(plain.Answer, faulty.Answer, own,
		func(*server.Request) server.AnswerForm { return server.AnswerAuto })
	h.KeepOpen = chosen(plain.KeepOpen, faulty.KeepOpen, own, func(*server.Request) bool { return false })
	h.Event = chosen(plain.Event, faulty.Event,
		func(e *server.Event) bool { return g.open(e.Session, concerns(e.Out), causes(e.Out)) },
		func(e *server.Event) []*server.Event { return []*server.Event{e} })
	if faulty.Replay != nil {
		h.Replay = func(s *server.Session, last string, proposal, all []*server.Event) []*server.Event {
			hook := plain.Replay
			if g.form != mockserver.BySession || g.open(s, "", 0) {
				hook = faulty.Replay
			}
			if hook == nil {
				return proposal
			}
			return hook(s, last, proposal, all)
		}
	}
	return h
}

// chosen returns a hook that is the faulty one while the server misbehaves. Otherwise it is the plain one, or ordinary
// if there is none.
func chosen[A, R any](plain, faulty func(A) R, misbehaves func(A) bool, ordinary func(A) R) func(A) R {
	if faulty == nil {
		return plain
	}
	return func(a A) R {
		switch {
		case misbehaves(a):
			return faulty(a)
		case plain != nil:
			return plain(a)
		}
		return ordinary(a)
	}
}

// middleware wraps a handler by the faulty middleware in later sessions, and otherwise by the plain one.
func (g *gate) middleware(plain, faulty func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	if faulty == nil {
		return plain
	}
	return func(next http.Handler) http.Handler {
		right, wrong := next, faulty(next)
		if plain != nil {
			right = plain(next)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if g.later(r.Header.Get(SessionHeader)) {
				wrong.ServeHTTP(w, r)
			} else {
				right.ServeHTTP(w, r)
			}
		})
	}
}

// replies reports whether the server misbehaves in its reply to an HTTP request. A refused message does not count as
// received, so replies are counted apart.
func (g *gate) replies(r *server.Reply) bool {
	if r.Session == nil {
		return g.later(r.Request.Header.Get(SessionHeader))
	}
	method := Posted(r.Request).Method
	if g.form != mockserver.InSequence {
		return g.open(r.Session, method, 0)
	}
	what := r.Request.Method + " " + method
	of(r.Session).add(what)
	return of(r.Session).again(what)
}

// later reports whether an HTTP request belongs to none but the first session. It is
// true of all in the other forms, which know no more of a request than its session.
func (g *gate) later(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.form != mockserver.BySession || g.seen > 0 && g.sessions[id] != 1
}
