package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// bystandersCheck returns the check that a session keeps its state while others act, over one transport.
func bystandersCheck(name, over, isolation string) *check.Check {
	return &check.Check{
		Name:         name,
		Requirements: []string{isolation},
		Shows:        []string{ids.ResourcesUpdatedSent, "logging.filter.*"},
		Needs: check.Needs{
			Session: check.None, Transports: []string{over},
			ToolRoles: []string{"slow", "progress", "log-levels", "log", "sampling", "elicitation", "resource-update"},
		},
		Body: func(t *check.T) { standBy(t, isolation) },
	}
}

// The sessions of a scene, from the oldest to the newest. The first and the last stand by while the others act. A
// server that wrongly has one place for the state of all sessions mostly keeps that of the newest session, or of the
// oldest.
const (
	oldest = iota
	actor
	newest
	cast // how many they are
)

// bystanders are the sessions that stand by, and bystanderNames say in messages which of them something has happened
// to.
var (
	bystanders     = []int{oldest, newest}
	bystanderNames = [cast]string{oldest: "the oldest session", newest: "the newest session"}
)

// scene is a few sessions of one server, of which two stand by.
type scene struct {
	t        *check.T
	sessions []*client.Session
	calls    [cast]*client.Pending // slow ones, by session
	levels   [cast][]string        // what a call logs in a session that stands by
	uri      string                // the resource to which the oldest session has subscribed
}

// harm is what has happened to a session that stands by.
type harm struct {
	session int
	what    string
}

// harmed is a harm with what shows it.
type harmed struct {
	harm
	requirement string
	evidence    []*wire.Event
}

// act is an action of a session that does not concern other sessions.
type act struct {
	did string // a clause about the client that did it
	do  func(s *scene)
	// spares is a harm that the act may do, with the reason.
	spares, because string
}

const (
	sessionEnds  = "ended"
	callLost     = "got no answer to an open call"
	levelChanged = "got log messages below the level that it had set"
	updateLost   = "got no more updates of a resource to which it had subscribed"
)

// quietActs are done side by side, while the sessions that stand by do nothing.
func quietActs(t *check.T) (acts []act) {
	called := make(map[string]bool)
	for _, role := range []string{"progress", "log-levels", "log", "sampling", "elicitation"} {
		if call, ok := t.Target.ToolFor(role); ok && !called[call.Tool] {
			called[call.Tool] = true
			acts = append(acts, act{did: "called the tool " + quote(call.Tool),
				do: func(s *scene) { s.callTool(call) }})
		}
	}
	return acts
}

// busyActs are done while the sessions that stand by have a call under way, a log level and a subscription. Those of
// one row are done side by side.
var busyActs = [][]act{
	{
		{
			did: "cancelled a request that it had never made, under the id of another client's call",
			do:  func(s *scene) { s.cancel(oldestID) },
		},
		{
			did: "set its log level", spares: levelChanged, because: "one log level may hold for all clients",
			do: func(s *scene) { s.send(actor, "logging/setLevel", map[string]any{"level": "emergency"}) },
		},
		{did: "subscribed to the same resource", do: func(s *scene) { _ = s.subscribe() }},
		{did: "told of a change to its roots", do: func(s *scene) {
			_ = s.sessions[actor].Notify(s.t.Context, rootsChanged, nil)
		}},
		{did: "sent a request of an unknown method", do: func(s *scene) {
			s.send(actor, unknownMethod, nil, client.Deliberately(ids.LifecycleCapabilityExperimentalGated))
		}},
		{did: "sent a body that is not JSON", do: func(s *scene) {
			_, _ = s.sessions[actor].Send(s.t.Context, []byte(`{"jsonrpc":`), client.Deliberately("*"))
		}},
		{did: "opened a further listening stream and closed it", do: func(s *scene) { s.opens(nil) }},
		{did: "resumed a stream", do: func(s *scene) {
			if last := s.lastEventID(); last != "" {
				s.opens(http.Header{headerEventID: {last}})
			}
		}},
	},
	{
		{did: "unsubscribed from the same resource", do: func(s *scene) {
			if s.subscribe() {
				s.send(actor, "resources/unsubscribe", map[string]any{"uri": s.uri})
			}
		}},
		{did: "cancelled its own call with the same id", do: func(s *scene) {
			s.cancel(sharedID)
		}},
	},
	{{did: "ended its session", do: func(s *scene) {
		_ = s.subscribe()
		_ = s.sessions[actor].Close(s.t.Context)
	}}},
	{{
		did: "began a session", spares: sessionEnds, because: "a server may bound the number of its sessions",
		do: func(s *scene) {
			further := s.t.Connect(capable)
			s.sessions = append(s.sessions, further)
			_, _ = further.Initialize(s.t.Context)
		},
	}},
}

// headerEventID names the event from which a stream is resumed.
const headerEventID = "Last-Event-ID"

// standBy lets a session act, and looks then at two sessions that stand by. If one of these was harmed, each act is
// tried alone.
func standBy(t *check.T, isolation string) {
	t.Alone()
	hear := func(s *scene, acts ...[]act) []harmed { return s.hear(acts, isolation) }
	keep := func(s *scene, acts ...[]act) []harmed { return s.keep(acts, isolation) }
	quiet := quietActs(t)
	var heard, kept []harmed
	openScene(t).play(func(s *scene) { heard, kept = hear(s, quiet), keep(s, busyActs...) })
	excused := slices.Concat(attribute(t, heard, quiet, hear), attribute(t, kept, slices.Concat(busyActs...), keep))
	if len(excused) > 0 {
		h := excused[0]
		t.Disturbed("%s %s while other clients did several things, but none of these alone causes it",
			bystanderNames[h.session], h.what)
	}
}

// attribute finds the act that has done each harm, and returns what no act has done. A server may do the same at any
// time of its own accord, as it may end a session (basic/transports#session-management). So an act has done it if the
// same is seen with that act alone, not without it, and with it once more, each time with new sessions
// (docs/positions.md, ended-because-of-others). What is seen without an act is due to none.
func attribute(t *check.T, found []harmed, acts []act, play func(*scene, ...[]act) []harmed) (excused []harmed) {
	if len(found) == 0 {
		return nil
	}
	trials := make([][]func() []harmed, len(acts)) // of each act: with it, without it, and with it again
	for i, a := range acts {
		var took time.Duration
		with := act{do: func(s *scene) {
			began := time.Now()
			a.do(s)
			took = time.Since(began)
		}}
		for _, what := range []act{with, {do: func(*scene) { t.Pause(took) }}, with} {
			trials[i] = append(trials[i], sync.OnceValue(func() (seen []harmed) {
				openScene(t).play(func(s *scene) { seen = play(s, []act{what}) })
				return seen
			}))
		}
	}
	for _, h := range found {
		seen := func(trial func() []harmed) bool {
			return slices.ContainsFunc(trial(), func(other harmed) bool { return other.harm == h.harm })
		}
		without := false // it is seen without any act: the server does it of its own accord
		cause := slices.IndexFunc(trials, func(of []func() []harmed) bool {
			if without || !seen(of[0]) {
				return false
			}
			without = seen(of[1])
			return !without && seen(of[2])
		})
		who := bystanderNames[h.session]
		switch {
		case cause < 0:
			excused = append(excused, h)
		case acts[cause].spares == h.what:
			t.Note("%s %s when another client %s: %s", who, h.what, acts[cause].did, acts[cause].because)
		default:
			t.Violation(h.requirement, who+" "+h.what+" when another client "+acts[cause].did+
				"; the same happened again with new sessions, but not when the other client did nothing", h.evidence...)
		}
	}
	return excused
}

// openScene opens the sessions of a scene one after the other, so that it is known which is the oldest. A server that
// does not keep them open side by side shows nothing.
func openScene(t *check.T) *scene {
	s := &scene{t: t}
	for len(s.sessions) < cast {
		next := t.Connect(capable)
		if _, err := next.Initialize(t.Context); err != nil {
			t.Inconclusive("the server does not serve several clients: %v", err)
		}
		if conn, ok := next.Conn.(*transport.HTTPConn); ok && conn.SessionID() == "" {
			t.Skip("the server assigns no session ids")
		}
		s.sessions = append(s.sessions, next)
	}
	if _, lost := s.lost(); slices.Contains(lost[:], true) {
		t.Inconclusive("a session does not outlast the beginning of another one")
	}
	return s
}

// play runs a scene, and ends its sessions.
func (s *scene) play(do func(*scene)) {
	defer func() {
		s.await()
		each(s.sessions, func(session *client.Session) { _ = session.Close(s.t.Context) })
	}()
	do(s)
}

// each does something to all items side by side, which may not end the body.
func each[T any](all []T, do func(T)) {
	var under sync.WaitGroup
	for _, one := range all {
		under.Go(func() { do(one) })
	}
	under.Wait()
}

// perform does acts, those of one row side by side.
func (s *scene) perform(rows [][]act) {
	for _, row := range rows {
		if len(row) == 1 {
			row[0].do(s) // which may end the body
			continue
		}
		each(row, func(a act) { a.do(s) })
	}
}

// await waits for the slow calls, and returns those that got no answer, or were answered as cancelled.
func (s *scene) await() (lost [cast]*client.Exchange) {
	each(bystanders, func(i int) {
		if s.calls[i] == nil {
			return
		}
		if x, err := s.calls[i].Await(s.t.Context); err != nil ||
			x.Error() != nil && cancels.MatchString(x.Error().Message) {
			lost[i] = x
		}
	})
	s.calls = [cast]*client.Pending{}
	return lost
}

// lost makes a request in each session that stands by, and reports which of them get no answer.
func (s *scene) lost() (asked [cast]*client.Exchange, lost [cast]bool) {
	each(bystanders, func(i int) {
		x, err := s.sessions[i].Call(s.t.Context, s.sessions[i].NoOp(), nil)
		asked[i], lost[i] = x, err != nil || x.Response == nil
	})
	if s.t.Context.Err() != nil {
		s.t.Must(context.Cause(s.t.Context))
	}
	for _, i := range bystanders {
		if head := asked[i].Head; head != nil && head.HTTP.Status == http.StatusUnauthorized {
			s.t.Inconclusive("the server no longer takes the access token")
		}
	}
	return asked, lost
}

// send makes a request in a session that acts. Its result does not matter here.
func (s *scene) send(i int, method string, params any, opts ...client.Option) {
	if capability := wire.Capability(method); capability == "" || s.sessions[i].Capability(capability) {
		_, _ = s.sessions[i].Call(s.t.Context, method, params, opts...)
	}
}

// subscribe has the acting session subscribe to the resource to which the oldest one has subscribed, if to any.
func (s *scene) subscribe() bool {
	if s.uri != "" {
		s.send(actor, "resources/subscribe", map[string]any{"uri": s.uri})
	}
	return s.uri != ""
}

// begin begins a call in a session.
func (s *scene) begin(i int, id string) {
	call, ok := knownTool(s.t, "slow")
	if !ok {
		return
	}
	params := withToken(call.Params(), id+"-"+s.sessions[i].NextID().String())
	if p, err := s.sessions[i].StartID(s.t.Context, wire.StringID(id), "tools/call", params); err == nil {
		underWay(s.t, s.sessions[i], p)
		s.calls[i] = p
	}
}

// cancel has the acting session cancel the request with an id, if the sessions have calls under way.
func (s *scene) cancel(id string) {
	if s.calls[oldest] != nil {
		_ = s.sessions[actor].Notify(s.t.Context, "notifications/cancelled", map[string]any{"requestId": id}, late)
	}
}

// opens opens a stream by a GET in the session that acts, and closes it.
func (s *scene) opens(header http.Header) {
	conn, ok := s.sessions[actor].Conn.(*transport.HTTPConn)
	if !ok || !listensIn(s.sessions[actor]) {
		return
	}
	limit, stop := context.WithTimeout(s.t.Context, check.HeadWait)
	defer stop()
	stream, err := conn.Open(limit, transport.Request{Method: http.MethodGet, Header: header, Defaults: true})
	if err == nil {
		stream.Close()
	}
}

// lastEventID returns the id of the last event that came to the session that acts, or "".
func (s *scene) lastEventID() string {
	for _, e := range slices.Backward(s.sessions[actor].Log().Events()) {
		if e.SSE != nil && e.SSE.ID != "" {
			return e.SSE.ID
		}
	}
	return ""
}

// callTool makes a call in the session that acts.
func (s *scene) callTool(call check.Call) {
	s.send(actor, "tools/call", withToken(call.Params(), actorToken+call.Tool))
}

// actorToken begins the progress tokens of the session that acts.
const actorToken = "mcpconform-of-the-actor-"

// hear does acts while the bystanders do nothing. It returns the messages to the bystanders that belong to the acting
// session.
func (s *scene) hear(acts [][]act, isolation string) (found []harmed) {
	var marks [cast]int
	for i := range marks {
		marks[i] = s.sessions[i].Log().Len()
	}
	s.perform(acts)
	each(s.sessions, func(session *client.Session) { _ = session.Fence(s.t.Context) })
	own := s.sessions[actor].Log().Events()[marks[actor]:]
	for _, i := range bystanders {
		for _, e := range s.sessions[i].Log().Events()[marks[i]:] {
			if what := s.belongsElsewhere(s.sessions[i], e, own); what != "" &&
				!slices.ContainsFunc(found, func(h harmed) bool { return h.harm == harm{i, what} }) {
				found = append(found, harmed{harm{i, what}, isolation, []*wire.Event{e}})
			}
		}
	}
	return found
}

// belongsElsewhere says how a message to an idle session belongs to a call of another session, or returns "". own are
// the events of that other session. A server may send log messages and requests of its own accord. They belong to the
// call if nothing like them came to the calling session (docs/positions.md, messages-of-others).
func (s *scene) belongsElsewhere(to *client.Session, e *wire.Event, own []*wire.Event) string {
	if e.Kind != wire.KindMessage || e.From != wire.Server {
		return ""
	}
	method := e.Msg.Method
	token, _ := at(e.Msg.Params, "progressToken").(string)
	switch {
	case e.Msg.IsResponse() && e.Msg.ID.Usable() && !asked(to, e):
		return "received a response to a request that it had never made"
	case strings.HasPrefix(token, actorToken):
		return "received the progress of the call"
	case method != "notifications/message" && method != createMessage && method != elicit,
		slices.ContainsFunc(own, func(o *wire.Event) bool { return tells(o, method) }):
		return ""
	}
	return "received " + method + " instead of the caller"
}

// The ids of calls. The acting session and the newest one have a call with the same id. That of the newest began last.
const (
	oldestID = "mcpconform-bystander"
	sharedID = "mcpconform-both"
)

// keep makes the bystanders set a log level, subscribe to a resource and begin a call. Then it does acts, and returns
// the state that the bystanders have lost.
func (s *scene) keep(acts [][]act, isolation string) (found []harmed) {
	s.setLevels()
	s.uri = s.subscribes()
	// A stream can be resumed only from an event, such as the progress of a call.
	ids := []string{oldest: oldestID, actor: sharedID, newest: sharedID}
	for _, together := range [][]int{{oldest, actor}, {newest}} {
		each(together, func(i int) { s.begin(i, ids[i]) })
	}
	s.perform(acts)
	var unanswered [cast]*client.Exchange
	var calls sync.WaitGroup
	defer calls.Wait()
	calls.Go(func() { unanswered = s.await() })
	asked, lost := s.lost()
	var missed [cast][]harmed
	each(bystanders, func(i int) {
		if !lost[i] {
			missed[i] = s.look(i)
		}
	})
	calls.Wait()
	for _, i := range bystanders {
		if lost[i] {
			found = append(found, harmed{harm{i, sessionEnds}, isolation, asked[i].Events()})
			continue
		}
		if x := unanswered[i]; x != nil {
			found = append(found, harmed{harm{i, callLost}, isolation, x.Events()})
		}
		found = append(found, missed[i]...)
	}
	return found
}

// setLevels has the oldest session set the lowest log level, and the newest one the level of the most severe message
// that comes, as the acting session has seen or the oldest one sees then. It sees what a call logs in either. Some
// servers have one level for all (docs/positions.md, shared-log-level).
func (s *scene) setLevels() {
	call, ok := logging(s.t)
	if !ok || !s.sessions[oldest].Capability("logging") {
		return
	}
	s.send(oldest, "logging/setLevel", map[string]any{"level": judge.LogLevels[0]})
	seen := levelsSince(s.sessions[actor].Log().Events())
	if len(seen) == 0 {
		seen = s.logged(oldest, call, nil)
	}
	for range 2 {
		if len(seen) == 0 || len(s.levels[newest]) > 0 {
			return
		}
		s.send(newest, "logging/setLevel", map[string]any{"level": seen[len(seen)-1]})
		each(bystanders, func(i int) { s.levels[i] = s.logged(i, call, nil) })
		seen = s.levels[oldest]
	}
}

// logged makes a call in a session and returns the levels of what it logs, least severe first. It waits for the wanted
// ones.
func (s *scene) logged(i int, call check.Call, wanted []string) (levels []string) {
	of := s.sessions[i]
	mark := of.Log().Len()
	came := make(map[string]bool)
	x, err := of.Call(s.t.Context, "tools/call", call.Params())
	if err != nil || !worked(x) {
		return wanted // which shows nothing
	}
	if !loggedOn(x.Response.Stream, of.Log().Events()[mark:]) {
		_ = of.Fence(s.t.Context)
	}
	s.soon(i, mark, func(e *wire.Event) bool {
		came[levelOf(e)] = true
		return !slices.ContainsFunc(wanted, func(level string) bool { return !came[level] })
	})
	for _, e := range of.Log().Events()[mark:] {
		came[levelOf(e)] = true
	}
	return slices.DeleteFunc(slices.Clone(judge.LogLevels), func(level string) bool { return !came[level] })
}

// subscribes has the oldest session subscribe to the resources, and returns the one of which it is told when a call
// changes it, or "".
func (s *scene) subscribes() string {
	of := s.sessions[oldest]
	call, ok := s.t.Target.ToolFor("resource-update")
	if !ok || !of.Capability("resources.subscribe") || !listensIn(of) {
		return ""
	}
	each(updatedResources(s.t), func(uri string) { s.send(oldest, "resources/subscribe", map[string]any{"uri": uri}) })
	mark := of.Log().Len()
	s.send(oldest, "tools/call", call.Params())
	e := s.soon(oldest, mark, func(e *wire.Event) bool { return tells(e, "notifications/resources/updated") })
	if e == nil {
		return ""
	}
	uri, _ := at(e.Msg.Params, "uri").(string)
	return uri
}

// look returns what of its log level and its subscription a session that stands by has not kept.
func (s *scene) look(i int) (found []harmed) {
	of := s.sessions[i]
	mark := of.Log().Len()
	add := func(what, requirement string) {
		found = append(found, harmed{harm{i, what}, requirement, of.Log().Events()[mark:]})
	}
	if before := s.levels[i]; len(before) > 0 {
		call, _ := logging(s.t)
		after := s.logged(i, call, before)
		switch below := slices.Index(judge.LogLevels, before[0]); {
		case absent(before, after) != "":
			add(levelChanged, ids.LoggingFilterAllAbove)
		case i == newest && slices.Index(judge.LogLevels, after[0]) < below:
			add(levelChanged, ids.LoggingFilterNoneBelow)
		}
	}
	if call, ok := s.t.Target.ToolFor("resource-update"); ok && i == oldest && s.uri != "" && listensIn(of) {
		mark = of.Log().Len()
		x, err := of.Call(s.t.Context, "tools/call", call.Params())
		if err != nil || !worked(x) {
			return found
		}
		if s.soon(i, mark, func(e *wire.Event) bool { return updates(e, s.uri) }) == nil && listensIn(of) {
			add(updateLost, ids.ResourcesUpdatedSent)
		}
	}
	return found
}

// soon waits for a message that mostly comes at once, and returns nil if it does not come. A message that comes late
// whenever another client acts, and never otherwise, counts as missing too.
func (s *scene) soon(i, mark int, match func(*wire.Event) bool) *wire.Event {
	limit, stop := context.WithTimeout(s.t.Context, s.t.Soon(check.Later))
	defer stop()
	e, err := s.sessions[i].Log().Await(limit, mark, match)
	if err != nil {
		return nil
	}
	return e
}
