package client

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// Script acts for a server while a client waits for an answer. The client's request is its first one after the
// handshake other than a ping. A client that awaits an answer also reads the other messages that come, on every
// transport.
type Script func(a *Asker)

// Asker sends a script's messages on the stream of the request that waits.
type Asker struct {
	Request *server.Request
	// Patience is how long to wait for an answer. UserPatience is how long to wait if the client may ask a person.
	Patience, UserPatience time.Duration
	// Choice of the members of families that are sent.
	Choice family.Choice
	// Silent is set once a request of the script was not answered in time. Further requests would only cost the same
	// time again.
	Silent bool

	// BesidePings says that each request is sent beside a ping. The answer to a request may depend on the other
	// requests that the client has to answer.
	BesidePings bool

	MayLeave   bool      // the client need not stay to the end of the script
	raw        bool      // raw texts were sent, with ids that the log does not know
	Responsive bool      // the client has answered the ping of Greet
	answered   bool      // a request that may wait for a user was answered
	attended   bool      // one took longer than without a user
	lost       int       // requests of Vary that were not answered
	began      time.Time // the first script of the session
}

// During returns the middleware, for all methods, that runs a script once in a
// session.
func (run *ScenarioRun) During(script Script) server.Middleware {
	once := new(struct{ _ byte }) // each script has a key of its own
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if !IsOperation(r.Method) || !r.Session.Initialized() {
			return next(ctx, r)
		}
		first := make(chan struct{})
		if r.Session.Value(once, func() any { return first }) == any(first) {
			r.Withhold()
			began, _ := r.Session.Value("scripts began", func() any { return time.Now() }).(time.Time)
			a := &Asker{Request: r, Patience: run.Patience, UserPatience: run.UserPatience, Choice: run.Choice,
				began: began}
			script(a)
			if a.HasLeft(0) && !a.MayLeave {
				run.left.Store(true)
			}
		}
		return next(ctx, r)
	}
}

// Scripted returns options of a server that runs a script.
func Scripted(script Script) func(*ScenarioRun) server.Options {
	return func(run *ScenarioRun) server.Options {
		return server.Options{Behaviour: server.Behaviour{
			Methods: map[string]server.Middleware{"*": run.During(script)},
			// The requests of a script are about the session, not about the request
			// that happens to be under way.
			Breaks: []string{ids.HTTPServerSSERelatedMessages},
		}}
	}
}

// Send sends one message, given by its members without jsonrpc. breaks names the
// requirements that it breaks on purpose.
func (a *Asker) Send(members map[string]any, breaks ...string) { a.sendOn(a.Request, members, breaks) }

// sendOn is Send on the stream of a request. Nil stands for the listening stream of the session.
func (a *Asker) sendOn(to *server.Request, members map[string]any, breaks []string) {
	message := map[string]any{"jsonrpc": "2.0"}
	for name, v := range members {
		message[name] = v
	}
	kind := wire.Notification
	if _, ok := message["id"]; ok {
		kind = wire.Request
	}
	method, _ := message["method"].(string)
	out := &server.Outgoing{Session: a.Request.Session, Kind: kind, Method: method, To: to, Message: message,
		Deliberate: breaks}
	if text, err := json.Marshal(message); err == nil {
		if raw := wire.RawSeparators(text); len(raw) != len(text) {
			out.Raw = raw
		}
	}
	a.Request.Session.Send(out)
}

// Raw sends a text in place of a message. The responses that a client may give to it
// are awaited with [Asker.Late].
func (a *Asker) Raw(text string) {
	a.raw = true
	a.Request.Session.Send(&server.Outgoing{
		Session: a.Request.Session, Kind: wire.Notification, Method: "raw", To: a.Request, Raw: []byte(text),
		Deliberate: []string{"*"},
	})
}

// Notify sends a notification.
func (a *Asker) Notify(method string, params map[string]any, breaks ...string) {
	message := map[string]any{"method": method}
	if params != nil {
		message["params"] = params
	}
	a.Send(message, breaks...)
}

// Ask sends a request and waits for the answer, which is nil if none comes. The log
// then holds a time-out.
func (a *Asker) Ask(id any, method string, params map[string]any, breaks ...string) *wire.Message {
	return a.ask(a.Request, AnswerTo(method), id, method, params, breaks)
}

// PingListening is Ask for a ping on the listening stream of the session.
func (a *Asker) PingListening(id string) *wire.Message {
	return a.ask(nil, AnswerTo("ping"), id, "ping", nil, nil)
}

// Try is Ask for a request in a form that the scenario judges. If no answer comes, the time-out in the log does not
// mean that a response is due.
func (a *Asker) Try(id any, method string, params map[string]any, breaks ...string) *wire.Message {
	return a.ask(a.Request, "answer to a "+method+" in a form that is tried", id, method, params, breaks)
}

// AskUser is Ask for a request that may wait for a user: a missing answer is not
// recorded.
func (a *Asker) AskUser(id any, method string, params map[string]any, breaks ...string) *wire.Message {
	return a.ask(a.Request, "", id, method, params, breaks)
}

// AskLike is AskUser for a form of a request, after a plain form was served. If this form is refused, it sends the
// plain one again under the id with [ControlSuffix] behind it. The client may refuse everything from some point on,
// because its user has had enough or because it limits how often it is asked.
//
// If no answer comes, a ping tells a client that waits for its user from one that hangs. If all others were answered
// at once, no user is asked about a request that breaks something. The response is then due, and the plain form shows
// whether the client continues.
//
// It reports whether this form was refused and the plain one served.
func (a *Asker) AskLike(id, method string, params, plain map[string]any, breaks ...string) (refused bool) {
	if a.Silent {
		return false
	}
	from, began := a.Request.Session.Log().Len(), time.Now()
	switch m := a.AskUser(id, method, params, breaks...); {
	case m != nil && m.Kind == wire.ErrorResponse:
		m = a.AskUser(id+ControlSuffix, method, plain)
		return m != nil && m.Kind == wire.Result
	case m == nil && a.Silent && a.Responsive && len(breaks) > 0 && a.answered && !a.attended:
		a.Silent = false
		served := a.AskUser(id+ControlSuffix, method, plain) != nil
		a.Silent = false
		if a.Fence(id + "-alive") {
			a.Missed(id, from, began, AnswerTo(method))
			a.Silent = !served
		}
	case m == nil && a.Silent && a.Responsive:
		a.Silent = false
		a.Fence(id + "-alive")
		a.Silent = true
	}
	return false
}

// unattended is the longest time for an answer that a client gives without its user.
const unattended = time.Second

// ControlSuffix ends the id of the request that is sent after a refusal.
const ControlSuffix = "-control"

// Greet pings the client to learn whether it answers pings at all. It may not.
func (a *Asker) Greet(id string) {
	a.Responsive = a.AskUser(id, "ping", nil) != nil
	a.Silent = false
}

// AnswerTo returns the note of a time-out that tells the rules that a response is due.
func AnswerTo(method string) string { return "answer to " + method }

// ask sends a request on the stream of another one, as sendOn does, and waits for the answer. missing is the note of
// the time-out if none comes. If missing is empty, the client may wait for its user.
func (a *Asker) ask(to *server.Request, missing string, id any, method string, params map[string]any,
	breaks []string) *wire.Message {
	if a.Silent {
		return nil
	}
	// The answer is due even if the client gives up its own request in the meantime.
	ctx := a.Request.Session.Context()
	log := a.Request.Session.Log()
	from, began := log.Len(), time.Now()
	message := map[string]any{"id": json.RawMessage(Identifier(id).String()), "method": method}
	if params != nil {
		message["params"] = params
	}
	beside := a.Accompany(Identifier(id).String())
	a.sendOn(to, message, breaks)
	patience := max(a.Patience, a.UserPatience)
	if missing != "" {
		patience = a.Patience
		var stop context.CancelFunc
		ctx, stop = a.whileCarried(ctx, from, id)
		defer stop()
	}
	e, astray := a.Await(ctx, patience, from, id)
	if e == nil && missing != "" && a.Unread(id) {
		a.Silent = true
		return a.resend(id, method, params, breaks)
	}
	if e != nil {
		if beside != "" {
			if other, astray := a.Await(a.Request.Session.Context(), a.Patience, from, beside); other == nil && !astray {
				a.Silent = true
				a.Missed(beside, from, began, AnswerTo("ping"))
			}
		}
		if missing == "" {
			a.answered, a.attended = true, a.attended || time.Since(began) > unattended
		}
		return e.Msg
	}
	a.Silent = !astray
	if missing != "" && !astray { // a response under another id is a finding of its own
		a.Missed(id, from, began, missing)
	}
	return nil
}

// resent ends the id of a request that is sent again because it may have been lost with its stream.
const resent = "-resent"

// Unread reports whether a request of the script may not have reached the client. It went to a stream that the client
// had closed, as it may at any time, or that ended before the client had the time to read the request.
func (a *Asker) Unread(id any) bool {
	log := a.Request.Session.Log()
	if log.Transport != transport.NameHTTP {
		return false
	}
	c := log.Conversation()
	x := c.Newest(wire.Server, Identifier(id))
	return x == nil || x.Response == nil && judge.Unread(c, x.Request, len(c.Events))
}

// whileCarried returns a context that ends soon after the end of the stream that carries a request.
func (a *Asker) whileCarried(ctx context.Context, from int, id any) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	wanted, stream := Identifier(id), ""
	var watch sync.WaitGroup
	watch.Go(func() {
		if _, err := a.Request.Session.Log().Await(ctx, from, func(e *wire.Event) bool {
			if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Request &&
				e.Msg.ID.Key() == wanted.Key() {
				stream = e.Stream
			}
			return e.Kind == wire.KindStreamEnd && e.Stream == stream && stream != ""
		}); err != nil {
			return
		}
		soon, stop := context.WithTimeout(ctx, 2*judge.Crossing)
		defer stop()
		<-soon.Done()
		if a.Unread(id) {
			cancel()
		}
	})
	return ctx, func() { cancel(); watch.Wait() }
}

// resend repeats a request that may have been lost with its stream. It has an id of its own, and goes to the listening
// stream if the client has one. It returns the answer, or nil. The second one that gets no answer is missed, wherever
// it went.
func (a *Asker) resend(id any, method string, params map[string]any, breaks []string) *wire.Message {
	name, ok := id.(string)
	log, ctx := a.Request.Session.Log(), a.Request.Session.Context()
	if !ok || !a.listened() {
		return nil
	}
	from, began := log.Len(), time.Now()
	message := map[string]any{"id": name + resent, "method": method}
	if params != nil {
		message["params"] = params
	}
	a.sendOn(nil, message, breaks)
	e, _ := a.Await(ctx, a.Patience, from, name+resent)
	switch {
	case e != nil:
		a.Silent = false
		return e.Msg
	case log.Asked(wire.Server, wire.StringID(name+resent)): // it was sent
		a.unanswered(from, began, AnswerTo(method))
	}
	return nil
}

// listened reports whether the client has a listening stream open. It may be opening one.
func (a *Asker) listened() bool {
	log := a.Request.Session.Log()
	soon, cancel := context.WithTimeout(a.Request.Session.Context(), a.Patience/ListeningTime)
	defer cancel()
	for from := log.Len(); !StillListens(log.Events()); {
		e, err := log.Await(soon, from, Listens)
		if err != nil {
			return false
		}
		from = e.Seq + 1
	}
	return true
}

// Accompany sends a ping before the request with an id, if the script sends its requests beside pings. It returns the
// id of the ping.
func (a *Asker) Accompany(id string) string {
	if !a.BesidePings {
		return ""
	}
	id = "before " + id
	a.Send(map[string]any{"id": id, "method": "ping"})
	return id
}

// Missed records in the log that the answer to a request did not come in time, if the request has reached the client.
func (a *Asker) Missed(id any, from int, began time.Time, note string) {
	if !a.Unread(id) {
		a.unanswered(from, began, note)
	}
}

// unanswered records in the log that an answer did not come in time. If the client has left in the meantime, it must
// have had the time to answer and have continued with something else instead.
func (a *Asker) unanswered(from int, began time.Time, note string) {
	log := a.Request.Session.Log()
	if !a.HasLeft(from) || time.Since(began) > a.Patience/shortest && requestsAfter(log, from) {
		_, _ = log.Append(wire.Event{Kind: wire.KindTimeout, From: wire.Client, Note: note})
	}
}

// HasLeft reports whether the session has ended, or the client closed the connection from an event on.
func (a *Asker) HasLeft(from int) bool {
	s := a.Request.Session
	return s.Context().Err() != nil || slices.ContainsFunc(s.Log().Events()[from:], HangsUp)
}

// HangsUp reports whether an event shows the client closing the connection. Nothing can come from it after that. Over
// stdio the session continues until the server has exited (basic/lifecycle#shutdown).
func HangsUp(e *wire.Event) bool { return e.Kind == wire.KindClose && e.From == wire.Client }

// shortest is the share of the patience that a client must have stayed before it left. Only then does a missing
// answer count.
const shortest = 4

// RequestsAfter reports whether the client continued with other requests. It was then neither about to end nor busy
// when it was asked.
func requestsAfter(log *wire.Log, from int) bool {
	return slices.ContainsFunc(log.Events()[from:], func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Kind == wire.Request &&
			IsOperation(e.Msg.Method)
	})
}

// Await waits for the client's response to an id. If the client sends a response that answers no open request, await
// waits only a little longer, since the client does answer, but under a wrong id.
func (a *Asker) Await(ctx context.Context, patience time.Duration, from int, id any) (_ *wire.Event, astray bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer func() { cancel() }()
	log, wanted := a.Request.Session.Log(), Identifier(id)
	for {
		e, err := log.Await(ctx, from, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.IsResponse() || HangsUp(e)
		})
		switch {
		case err != nil, HangsUp(e):
			return nil, astray
		case e.Msg.ID.Resembles(wanted):
			return e, false
		case !astray && !a.raw && (e.Msg.ID.Usable() || e.Msg.Kind == wire.Result) && !log.Answers(e):
			astray = true
			whole := cancel
			var soon context.CancelFunc
			ctx, soon = context.WithTimeout(ctx, patience/astrayShare)
			cancel = func() { soon(); whole() }
		}
		from = e.Seq + 1
	}
}

// astrayShare is the share of the patience that is left after a response with a wrong
// id.
const astrayShare = 8

// Identifier returns the id that a script gives a request.
func Identifier(id any) wire.ID {
	switch id := id.(type) {
	case string:
		return wire.StringID(id)
	case int:
		return wire.IntID(int64(id))
	case int64:
		return wire.IntID(id)
	case json.Number:
		return wire.ReadID(id)
	case wire.ID:
		return id
	}
	return wire.ID{}
}

// Fence pings the client and reports whether it answered. Its reactions to earlier messages have then arrived.
func (a *Asker) Fence(id string) bool {
	return a.Ask(id, "ping", nil) != nil
}

// Late waits for the responses with the given ids to raw texts, for all of them together no longer than patience. A
// client may answer several requests at a time, the earlier one after the later one.
func (a *Asker) Late(patience time.Duration, ids ...string) {
	if a.Silent {
		return
	}
	patience = min(patience, a.Patience)
	ctx, cancel := context.WithTimeout(a.Request.Session.Context(), patience)
	defer cancel()
	for _, id := range ids {
		if e, _ := a.Await(ctx, patience, 0, id); e == nil {
			return
		}
	}
}

// Has reports whether the client declared a capability.
func (a *Asker) Has(capability string) bool { return a.Request.Session.ClientHas(capability) }

// ListeningTime is the part of the patience that a client has to resume its listening stream.
const ListeningTime = 20

// StillListens reports whether the listening stream that was opened last has not ended.
func StillListens(events []*wire.Event) bool {
	open := ""
	for _, e := range events {
		switch {
		case Listens(e):
			open = e.Stream
		case e.Kind == wire.KindStreamEnd && e.Stream == open:
			open = ""
		}
	}
	return open != ""
}

// Listens matches the answer to a GET with which the client listens.
func Listens(e *wire.Event) bool {
	return e.Kind == wire.KindHTTPResponse && strings.HasPrefix(e.Stream, "get:") && e.HTTP.Status == http.StatusOK
}
