package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// Scripted returns the check that runs a script of the user. It serves the given requirements. The server breaks the
// first of them if it departs from the script. All messages of a script count as deliberate.
func Scripted(s *script.Script, requirements ...string) *check.Check {
	needs := check.Needs{Session: check.Own, Transports: s.Transports}
	if len(s.Needs) > 0 {
		needs.Server = s.Needs[0]
	}
	answered := slices.DeleteFunc(s.Methods(), func(method string) bool {
		return strings.HasPrefix(method, "notifications/")
	})
	switch {
	case s.Session == script.Raw:
		needs.Session = check.Raw
	case len(answered) > 0 || s.Capabilities != nil:
		needs.Session = check.Fresh
	}
	if needs.Session == check.Raw || needs.Session == check.Fresh {
		needs.Options.Capabilities = s.Capabilities
		if s.Capabilities == nil && len(answered) > 0 {
			needs.Options.Capabilities = check.AllCapabilities()
		}
		needs.Options.Answers = answersFor(slices.Collect(maps.Keys(needs.Options.Capabilities))...)
		for _, method := range answered {
			needs.Options.Answers[method] = nothing
		}
	}
	return &check.Check{
		Name: "script: " + s.Name, Requirements: requirements, Needs: needs,
		Body: func(t *check.T) {
			for _, capability := range s.Needs {
				if !t.Target.Declares(capability) {
					t.Skip("the server does not declare %s", capability)
				}
			}
			p := &scriptRun{
				t: t, script: s, from: t.Mark(), bound: script.Bindings{"plain": t.NoOp()},
				taken: make(map[*wire.Event]bool), named: make(map[string]*scriptRequest),
			}
			p.run(s.Steps)
		},
	}
}

// scriptRun runs one script against a server.
type scriptRun struct {
	t      *check.T
	script *script.Script
	from   int // position in the log where it began
	bound  script.Bindings
	taken  map[*wire.Event]bool // what the script has dealt with
	named  map[string]*scriptRequest
	latest *scriptRequest
	all    []*scriptRequest
}

// scriptRequest is a request of the script.
type scriptRequest struct {
	id     wire.ID
	method string
	event  *wire.Event
}

func (p *scriptRun) run(steps []script.Step) {
	for _, step := range steps {
		switch step.Kind {
		case script.Send:
			p.send(step)
		case script.Text:
			p.t.Send(step.Text, client.Deliberately(judge.Anything))
		case script.Expect:
			p.expect(step)
		case script.Never:
			p.never(step)
		case script.Branch:
			p.branch(step)
		case script.GiveUp:
			p.t.Inconclusive("%s", step.Text)
		}
	}
}

// fail ends the script with a message about a line of its file.
func (p *scriptRun) fail(line int, format string, args ...any) {
	p.t.Fail("%s:%d: %s", p.script.File, line, fmt.Sprintf(format, args...))
}

// broken ends the script as one that cannot be run.
func (p *scriptRun) broken(line int, err error) {
	p.t.Inconclusive("%s:%d: %s", p.script.File, line, err)
}

func (p *scriptRun) send(step script.Step) {
	value, err := p.bound.Expand(step.Value)
	if err != nil {
		p.broken(step.Line, err)
	}
	message, ok := value.(map[string]any)
	if !ok {
		p.t.Send(string(client.Marshal(value)), client.Deliberately(judge.Anything))
		return
	}
	message, request := script.Complete(message, func() any { return json.RawMessage(p.t.Session.NextID().String()) })
	e := p.t.Send(string(client.Marshal(message)), client.Deliberately(judge.Anything))
	if !request {
		return
	}
	method, _ := message["method"].(string)
	p.latest = &scriptRequest{id: wire.ReadID(jsonValue(message["id"])), method: method, event: e}
	p.all = append(p.all, p.latest)
	p.bound["id"] = jsonValue(message["id"])
	if step.As != "" {
		p.named[step.As] = p.latest
	}
}

// request returns the request that a name stands for: the latest for "".
func (p *scriptRun) request(name string) *scriptRequest {
	if name == "" {
		return p.latest
	}
	return p.named[name]
}

// answers reports whether an event is the response to a request. The body of an
// HTTP error may have no id.
func (r *scriptRequest) answers(e *wire.Event) bool {
	if r == nil || !e.Msg.IsResponse() {
		return false
	}
	return e.Msg.ID.Resembles(r.id) || !e.Msg.ID.Usable() && e.Stream == r.event.Stream &&
		strings.HasPrefix(e.Stream, "post:")
}

// await returns the next matching message of the server that no step has used yet, or the reason why none can come. r
// is the request whose response is awaited, or nil.
func (p *scriptRun) await(what string, r *scriptRequest, fits func(e *wire.Event) bool) (*wire.Event, error) {
	e, err := p.t.Session.AwaitEvent(p.t.Context, p.from, what, func(e *wire.Event) bool {
		if e.Kind == wire.KindStreamEnd && r != nil && e.Stream == r.event.Stream &&
			strings.HasPrefix(e.Stream, "post:") {
			return true // no response can come any more
		}
		return e.Kind == wire.KindMessage && e.From == wire.Server && !p.taken[e] && fits(e)
	})
	switch {
	case err != nil:
		return nil, err
	case e.Kind == wire.KindStreamEnd:
		p.t.Show(e)
		return nil, &client.ClosedError{Awaited: what, Cause: e}
	}
	p.taken[e] = true
	p.t.Show(e)
	return e, nil
}

// response awaits the response to a request.
func (p *scriptRun) response(line int, r *scriptRequest, fits func(e *wire.Event) bool) *wire.Event {
	what := "response"
	if r != nil {
		what = "answer to " + r.method // the judge looks at it, too
	}
	e, err := p.await(what, r, fits)
	if r != nil && (e == nil || e.Msg.Kind != wire.Result) {
		p.admitted(r)
	}
	if closed := (*client.ClosedError)(nil); errors.As(err, &closed) && streamEnded(closed.Cause) {
		p.fail(line, "no %s: the server has ended its stream", what) // so it is still there
	} else if err != nil {
		p.t.Must(fmt.Errorf("%s:%d: %w", p.script.File, line, err))
	}
	return e
}

// admitted ends the script if a request was refused because it lacks authorization.
func (p *scriptRun) admitted(r *scriptRequest) {
	if x := p.t.Session.Log().Carrier(r.event); x != nil && x.Head != nil {
		p.t.Admitted(x.Head, r.method)
	}
}

func (p *scriptRun) expect(step script.Step) {
	pattern := step.Value.(map[string]any) // all patterns of messages are
	if !script.IsResponse(pattern) {
		// Other messages may come in between; the finding shows the one that nearly fits.
		nearest := ""
		e, err := p.await("message "+wire.Show(pattern["method"]), nil, func(e *wire.Event) bool {
			m := p.bound.Match(pattern, e.Msg.Value())
			if m != nil && e.Msg.Method == pattern["method"] {
				nearest = "; one came whose " + m.String()
				p.t.Show(e)
			}
			return m == nil
		})
		if timedOut(err) && p.t.Context.Err() == nil {
			p.fail(step.Line, "%s%s", err, nearest)
		} else if err != nil {
			p.t.Must(fmt.Errorf("%s:%d: %w%s", p.script.File, step.Line, err, nearest))
		}
		p.bind(pattern, e)
		return
	}
	r := p.request(step.Of)
	id, ownID := pattern["id"]
	if r == nil && !ownID {
		p.broken(step.Line, errNoRequest)
	}
	e := p.response(step.Line, r, func(e *wire.Event) bool {
		if ownID {
			return e.Msg.IsResponse() && p.bound.Match(map[string]any{"id": id}, e.Msg.Value()) == nil
		}
		return r.answers(e)
	})
	p.bind(pattern, e)
	if m := p.bound.Match(pattern, e.Msg.Value()); m != nil {
		p.fail(step.Line, "%s", m)
	}
}

var errNoRequest = errors.New("a response is expected, but no request was sent")

// bind makes the id of a request of the server known, for the response.
func (p *scriptRun) bind(pattern map[string]any, e *wire.Event) {
	if _, named := pattern["id"]; !named && e.Msg.Kind == wire.Request {
		p.bound["id"] = wire.At(e.Msg.Value(), "id")
	}
}

// never fails if a message has come that fits. The server's reactions to earlier
// messages have arrived when a ping is answered; over HTTP, when the requests have
// been answered too, as each has a stream of its own.
func (p *scriptRun) never(step script.Step) {
	if p.t.Session.Log().Transport != transport.NameStdio {
		for _, r := range p.all {
			// An answer that does not come is judged elsewhere.
			_, _ = p.t.Session.AwaitEvent(p.t.Context, r.event.Seq, "answer to "+r.method, func(e *wire.Event) bool {
				return e.Kind == wire.KindMessage && e.From == wire.Server && r.answers(e) ||
					e.Kind == wire.KindStreamEnd && e.Stream == r.event.Stream
			})
		}
	}
	mark := p.t.Mark()
	p.t.Fence()
	pings := make(map[string]bool)
	for _, e := range p.t.Session.Log().Events()[mark:] {
		if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Kind == wire.Request {
			pings[e.Msg.ID.Key()] = true
		}
	}
	for _, e := range p.t.Since(p.from) {
		if p.taken[e] || e.Msg.IsResponse() && pings[e.Msg.ID.Key()] {
			continue
		}
		if p.bound.Match(step.Value, e.Msg.Value()) == nil {
			p.t.Show(e)
			p.fail(step.Line, "a message came that must not come: %s", wire.Quote(string(e.Msg.Raw), 200))
		}
	}
}

// branch continues with the first arm that fits the next message: the response to the latest request, or a message
// with the method of an arm.
func (p *scriptRun) branch(step script.Step) {
	var chosen *script.Arm
	var problems []string
	r := p.latest
	e := p.response(step.Line, r, func(e *wire.Event) bool {
		for i := range step.Arms {
			arm := &step.Arms[i]
			if arm.Pattern == nil || script.IsResponse(arm.Pattern) && !r.answers(e) {
				continue
			}
			m := p.bound.Match(arm.Pattern, e.Msg.Value())
			if m == nil {
				chosen = arm
				return true
			}
			if r.answers(e) {
				problems = append(problems, m.String())
			}
		}
		return r.answers(e)
	})
	if last := &step.Arms[len(step.Arms)-1]; chosen == nil && last.Pattern == nil {
		chosen = last
	}
	if chosen == nil {
		p.fail(step.Line, "the response does not fit any of the branches: %s", strings.Join(problems, "; "))
		return
	}
	if pattern, ok := chosen.Pattern.(map[string]any); ok {
		p.bind(pattern, e)
	}
	p.run(chosen.Steps)
}

// streamEnded reports whether the server has ended a stream in order.
func streamEnded(e *wire.Event) bool { return e != nil && e.Kind == wire.KindStreamEnd && e.Note == "" }
