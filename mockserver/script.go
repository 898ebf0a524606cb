package mockserver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// ScriptRun is a script that a server runs in the sessions of its clients. The reference server serves everything
// else that a client does.
type ScriptRun struct {
	script *script.Script
	report func(line string)

	mu       sync.Mutex
	finished bool
	said     int
	sessions []*sessionRun
}

// Course is how far a script has come in one session.
type Course struct {
	Log *wire.Log
	// Finished says that it came to its end.
	Finished bool
	// GivenUp is why it was ended before, or "".
	GivenUp string
	// Begun says that the client has done something that the script was waiting
	// for, beyond the handshake.
	Begun bool
	// Line of the awaited step, and the message that it waits for.
	Line   int
	Awaits string
	// Asked is the id of the script's request, if a response to it is awaited.
	Asked *wire.ID
	// Nearest is the latest message that might have been meant, and Mismatch how
	// it differs.
	Nearest  *wire.Message
	Mismatch string
}

// maxSaid bounds what is reported of clients that do something else for ever.
const maxSaid = 1000

// RunScript makes a server run a script in each session, from the first message
// on, and reports its progress a line at a time.
func RunScript(o *server.Options, s *script.Script, report func(line string)) (*ScriptRun, error) {
	if line := s.Line(script.Never); line > 0 {
		return nil, &script.Error{File: s.File, Line: line, Message: "never is for scripts that test servers"}
	}
	p := &ScriptRun{script: s, report: report}
	Receiving(func(session *server.Session, m *wire.Message, next func()) {
		if m.Kind == wire.Request || !p.of(session).take(m, nil) {
			next()
		}
	})(o)
	Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		a := p.of(r.Session)
		if !a.take(r.Message, r) {
			return next(ctx, r)
		}
		r.Detach()
		if r.Method == "initialize" {
			// The session is set up all the same, so that what the script leaves out can be served.
			_, _ = next(ctx, r)
		}
		return a.await(ctx, r)
	})(o)
	Altering(func(out *server.Outgoing) {
		if out.Answers != nil {
			p.of(out.Session).replace(out)
		}
	})(o)
	before := o.Behaviour.Connected
	o.Behaviour.Connected = func(ctx context.Context, session *server.Session) {
		a := p.of(session)
		a.begin()
		if before != nil {
			before(ctx, session)
		}
		<-ctx.Done()
		a.end()
	}
	return p, nil
}

// maxSessions bounds the sessions whose course is kept.
const maxSessions = 1000

// Courses returns how far the script has come in each session, oldest first.
func (p *ScriptRun) Courses() []Course {
	p.mu.Lock()
	sessions := slices.Clone(p.sessions)
	p.mu.Unlock()
	var all []Course
	for _, a := range sessions {
		all = append(all, a.course())
	}
	return all
}

// Finished reports whether the script came to its end in any session.
func (p *ScriptRun) Finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished
}

func (p *ScriptRun) say(line int, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said++; p.said > maxSaid {
		return
	}
	p.report(fmt.Sprintf("%s:%d: %s", p.script.File, line, fmt.Sprintf(format, args...)))
}

type sessionKey struct{ script *ScriptRun }

// of returns the run of the script in a session.
func (p *ScriptRun) of(s *server.Session) *sessionRun {
	return s.Value(sessionKey{p}, func() any {
		a := &sessionRun{
			run: p, session: s, steps: p.script.Steps, bound: make(script.Bindings),
			taken: make(map[*server.Request]*openRequest), asked: make(map[string]wire.ID),
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.sessions) < maxSessions {
			p.sessions = append(p.sessions, a)
		}
		return a
	}).(*sessionRun)
}

// sessionRun is a script that is run in one session.
type sessionRun struct {
	run     *ScriptRun
	session *server.Session

	mu    sync.Mutex
	steps []script.Step // that are left
	bound script.Bindings
	taken map[*server.Request]*openRequest // requests of the client that the script answers
	// latest is the request of the client that was taken last, ours the id of
	// the request that was sent last.
	latest *openRequest
	ours   wire.ID
	asked  map[string]wire.ID // by name
	sent   int
	over   bool
	// Further members of the course.
	finished, begun bool
	givenUp         string
	nearest         *wire.Message
	mismatch        string
}

// openRequest is a request of the client that the script answers.
type openRequest struct {
	request  *server.Request
	answer   map[string]any // nil until the script gives it
	answered chan struct{}  // closed then
}

// begin sends what the script sends before anything has come.
func (a *sessionRun) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance()
}

// take offers a message to the script and reports whether the script was
// waiting for it. r is nil if the message is not a request.
func (a *sessionRun) take(m *wire.Message, r *server.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.steps) == 0 {
		return false
	}
	step := a.steps[0]
	rest := a.steps[1:]
	switch step.Kind {
	case script.Expect:
		if !a.fits(step.Value, step.Of, m, step.Line) {
			return false
		}
	case script.Branch:
		arm := a.choose(step, m)
		if arm == nil {
			return false
		}
		rest = slices.Concat(arm.Steps, rest)
	default:
		return false
	}
	if r != nil {
		a.latest = &openRequest{request: r, answered: make(chan struct{})}
		a.taken[r] = a.latest
		a.bound["id"] = wire.At(m.Value(), "id")
	}
	a.steps, a.nearest, a.mismatch = rest, nil, ""
	a.begun = a.begun || m.Method != "initialize" && m.Method != "notifications/initialized"
	a.advance()
	return true
}

// course returns how far the script has come.
func (a *sessionRun) course() Course {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := Course{
		Log: a.session.Log(), Finished: a.finished, GivenUp: a.givenUp, Begun: a.begun, Nearest: a.nearest,
		Mismatch: a.mismatch,
	}
	if a.over || len(a.steps) == 0 {
		return c
	}
	step := a.steps[0]
	c.Line = step.Line
	pattern := step.Value
	if step.Kind == script.Branch {
		pattern = step.Arms[0].Pattern
	}
	if method, ok := wire.At(pattern, "method").(string); ok {
		c.Awaits = method
		return c
	}
	id := a.awaited(step.Of)
	c.Awaits, c.Asked = "the response to its request", &id
	return c
}

// awaited returns the id of the request of the script that has a name: the
// latest for "".
func (a *sessionRun) awaited(name string) wire.ID {
	if name == "" {
		return a.ours
	}
	return a.asked[name]
}

// fits compares a message with what is expected. A response has to answer
// a request of the script.
func (a *sessionRun) fits(pattern any, of string, m *wire.Message, line int) bool {
	if script.IsResponse(pattern) {
		if !m.IsResponse() || !m.ID.Resembles(a.awaited(of)) {
			return false
		}
	} else if m.Kind != wire.Request && m.Kind != wire.Notification {
		return false
	}
	mismatch := a.bound.Match(pattern, m.Value())
	if mismatch != nil && (m.IsResponse() || wire.At(pattern, "method") == m.Method) {
		a.nearest, a.mismatch = m, mismatch.String()
		a.run.say(line, "the message that came is not the expected one: %s", mismatch)
	}
	return mismatch == nil
}

// choose returns the arm of a branch that a message belongs to, or nil.
func (a *sessionRun) choose(step script.Step, m *wire.Message) *script.Arm {
	for i := range step.Arms {
		arm := &step.Arms[i]
		switch {
		case arm.Pattern != nil:
			if a.bound.Match(arm.Pattern, m.Value()) == nil && a.fits(arm.Pattern, "", m, arm.Line) {
				return arm
			}
		case m.IsResponse() && m.ID.Resembles(a.ours),
			m.Kind == wire.Request && m.Method != "initialize" && m.Method != "ping":
			return arm
		}
	}
	if m.IsResponse() && m.ID.Resembles(a.ours) {
		a.nearest, a.mismatch = m, "it fits none of the branches"
	}
	return nil
}

// advance sends what the script sends next, until something is to come.
func (a *sessionRun) advance() {
	for len(a.steps) > 0 {
		step := a.steps[0]
		switch step.Kind {
		case script.Send:
			if err := a.send(step); err != nil {
				a.run.say(step.Line, "%s; the script ends here", err)
				a.steps, a.over, a.givenUp = nil, true, fmt.Sprintf("%s:%d: %s", a.run.script.File, step.Line, err)
				a.abandon()
				return
			}
		case script.Text:
			a.deliver(&server.Outgoing{Kind: wire.Notification, Raw: []byte(step.Text)})
		case script.GiveUp:
			a.run.say(step.Line, "%s", step.Text)
			a.steps, a.over, a.givenUp = nil, true, step.Text
			return
		default:
			return
		}
		a.steps = a.steps[1:]
	}
	if !a.over {
		a.over, a.finished = true, true
		a.run.mu.Lock()
		a.run.finished = true
		a.run.mu.Unlock()
		a.run.say(a.run.script.Steps[0].Line, "the script came to its end")
	}
}

// abandon refuses the requests that the script has taken and can no longer answer.
func (a *sessionRun) abandon() {
	for r, o := range a.taken {
		if o.answer == nil {
			o.answer = refusal(wire.At(r.Message.Value(), "id"), server.InternalError, "The script has ended")
			close(o.answered)
		}
	}
}

func (a *sessionRun) send(step script.Step) error {
	value, err := a.bound.Expand(step.Value)
	if err != nil {
		return err
	}
	message, ok := value.(map[string]any)
	if !ok {
		a.deliver(&server.Outgoing{Kind: wire.Notification, Raw: []byte(wire.Show(value))})
		return nil
	}
	if _, given := message["id"]; !given && script.IsResponse(message) && a.latest != nil {
		message["id"] = wire.At(a.latest.request.Message.Value(), "id")
	}
	message, request := script.Complete(message, func() any {
		a.sent++
		return fmt.Sprintf("script-%d", a.sent)
	})
	id := wire.ReadID(message["id"])
	method, _ := message["method"].(string)
	switch to := a.waiting(id); {
	case script.IsResponse(message) && to != nil:
		to.answer = message
		close(to.answered)
	case request:
		if a.ours = id; step.As != "" {
			a.asked[step.As] = id
		}
		a.bound["id"] = message["id"]
		a.deliver(&server.Outgoing{Kind: wire.Request, Method: method, Message: message})
	default:
		a.deliver(&server.Outgoing{Kind: wire.Notification, Method: method, Message: message})
	}
	return nil
}

// deliver sends a message on the stream of the latest request, if that is open.
func (a *sessionRun) deliver(out *server.Outgoing) {
	out.Session, out.Deliberate = a.session, []string{"*"}
	if a.latest != nil && a.latest.answer == nil {
		out.To = a.latest.request
	}
	a.session.Send(out)
}

// waiting returns the taken request with an id that was not answered yet, or nil.
func (a *sessionRun) waiting(id wire.ID) *openRequest {
	for r, o := range a.taken {
		if o.answer == nil && r.ID.Key() == id.Key() {
			return o
		}
	}
	return nil
}

// await waits until the script answers a request that it has taken.
func (a *sessionRun) await(ctx context.Context, r *server.Request) (any, *wire.Error) {
	a.mu.Lock()
	answered := a.taken[r].answered
	a.mu.Unlock()
	select {
	case <-answered:
		return object{}, nil // replace puts the script's answer in its place
	case <-ctx.Done():
		return server.NoAnswer, nil
	}
}

// replace puts the script's answer in the place of the server's.
func (a *sessionRun) replace(out *server.Outgoing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.taken[out.Answers]; o != nil && o.answer != nil {
		out.Message, out.Deliberate = o.answer, []string{"*"}
		delete(a.taken, out.Answers)
	}
}

// end reports what the script was waiting for when its session ended.
func (a *sessionRun) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over && len(a.steps) > 0 {
		a.run.say(a.steps[0].Line, "the session ended before this came")
	}
}
