package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic/transports#listening-for-messages-from-the-server, #multiple-connections, #resumability-and-redelivery
var httpStreamChecks = []*check.Check{
	{
		Name:         "http/get-closed",
		Requirements: []string{ids.HTTPServerGetCloseTolerated},
		Needs:        hangingUp,
		Body: func(t *check.T) {
			// A client may hang up on the listening stream and open it again, also before its head has come.
			const id = ids.HTTPServerGetCloseTolerated
			for range 2 {
				if s, err := t.OpenStream(transport.Request{Method: http.MethodGet}); err == nil {
					s.Close()
					if !listens(t) {
						t.Skip("the server does not offer a listening stream")
					}
				}
				t.Clear()
				if !served(t, t.Do(plainRequest(t)), id) {
					return
				}
			}
		},
	},
	{
		Name:         "http/get-accept-forms",
		Requirements: []string{ids.HTTPServerAcceptForms},
		Shows:        []string{ids.HTTPServerGetStreamOr405},
		Needs:        hangingUp,
		Families:     []string{"accepts"},
		Body: func(t *check.T) {
			// A further listening stream is opened with every form of the Accept header that names its type, if it is
			// with the plain one.
			const id = ids.HTTPServerAcceptForms
			if !listens(t) {
				t.Skip("the server does not offer a listening stream")
			}
			open := func(accept []string) *wire.Event {
				r := transport.Request{Method: http.MethodGet}
				if accept != nil {
					r.Header = http.Header{"Accept": accept}
				}
				s, err := t.OpenStream(r)
				if err != nil {
					return nil
				}
				s.Close()
				return s.Head
			}
			if head := open(nil); head == nil || head.HTTP.Status != http.StatusOK {
				t.Inconclusive("the server does not open a second listening stream")
			}
			t.VaryInTurn(t.Draw("accepts"), func(m family.Member) {
				head := open(strings.Split(m.Str(), "\n"))
				if head == nil || head.HTTP.Status == http.StatusOK {
					return
				}
				if twin := open(nil); twin != nil && twin.HTTP.Status == http.StatusOK {
					t.Check(id, head).To(HaveHTTPStatus(http.StatusOK), "for a GET with the Accept header %s", m)
				}
			})
		},
	},
	{
		Name:         "http/multiple-streams",
		Requirements: []string{ids.HTTPServerMultipleStreams},
		Needs:        besideOthers(calls(posting, "slow")),
		Body: func(t *check.T) {
			// While one request is still being answered and a listening stream is open, others are served.
			call := toolFor(t, "slow")
			slow := t.Start("tools/call", call.Params())
			for range 2 {
				t.Expect(t.Call(t.NoOp(), nil)).To(HaveResult(), "beside another request")
			}
			before := t.Mark()
			done, err := slow.Await(t.Context)
			if err != nil {
				t.Inconclusive("the tool %q does not answer: %v", call.Tool, err)
			}
			if done.Response != nil && done.Response.Seq < before {
				t.Inconclusive("the tool %q answers at once: name one that takes a second for the tool role "+
					"%q in the configuration",
					call.Tool, "slow")
			}
		},
	},
	{
		Name:         "http/broadcast",
		Requirements: []string{ids.HTTPServerNoBroadcast},
		Needs:        overHTTPCalling(noticed...),
		Body: func(t *check.T) {
			// Notifications have no id; what causes them tells them apart: a single call, while every stream that the
			// server grants us is open.
			if !listens(t) {
				t.Skip("the server does not offer a listening stream")
			}
			if t.Session.Capability("logging") {
				t.Call("logging/setLevel", map[string]any{"level": "debug"})
			}
			if t.Session.Capability("resources.subscribe") {
				for _, uri := range updatedResources(t) {
					t.Call("resources/subscribe", map[string]any{"uri": uri})
				}
			}
			// Twice, each time with a new listening stream: its event ids differ from those of the one before.
			sent := 0
			for range 2 {
				further, err := t.OpenStream(transport.Request{Method: http.MethodGet})
				for _, role := range noticed {
					call, ok := t.Target.ToolFor(role)
					if !ok {
						continue
					}
					t.Clear()
					mark := t.Mark()
					if _, err := t.Session.Call(t.Context, "tools/call", call.Params()); err != nil {
						t.Inconclusive("the tool %q could not be called: %v", call.Tool, err)
					}
					t.Fence()
					for _, told := range notifications(sentOnce(t, mark)) {
						sent += len(told)
						if twice := broadcast(told); twice != nil {
							t.Show(twice...)
							t.Fail("the server sent the same notifications for one call of %q on two streams",
								call.Tool)
						}
					}
				}
				if err == nil { // a refusal is not judged here
					further.Close()
				}
			}
			if sent == 0 {
				t.Inconclusive("no tool made the server send a notification: name one for the tool role log " +
					"or tools-change in the configuration")
			}
		},
	},
	{
		Name:         "http/get-history",
		Requirements: []string{ids.HTTPServerNoBroadcast},
		Needs:        calls(hangingUp, "progress"),
		Body: func(t *check.T) {
			// Events from the stream of a request do not come again on a later listening stream. The judge sees
			// whether it does.
			if !listens(t) {
				t.Skip("the server does not offer a listening stream")
			}
			call := toolFor(t, "progress")
			x := t.Call("tools/call", withToken(call.Params(), "mcpconform-history"))
			t.Assume(t.Since(x.Request.Seq)).To(Carry("progress", func(e *wire.Event) bool {
				return at(e.Msg.Params, "progressToken") == "mcpconform-history"
			}), "when the tool %q was called", call.Tool)
			further, err := t.OpenStream(transport.Request{Method: http.MethodGet})
			if err != nil {
				t.Inconclusive("a GET is not answered before there is something to send: %v", err)
			}
			defer further.Close()
			t.Assume(further.Head).To(HaveHTTPStatus(http.StatusOK), "for a second listening stream")
			t.Fence()
			t.Fence() // other streams may lag behind
		},
	},
	{
		Name:         "http/listening-history",
		Requirements: []string{ids.HTTPServerNoBroadcast},
		Needs:        overHTTPCalling(noticed...),
		Body: func(t *check.T) {
			// A single notification may repeat the text of another one. A whole sequence is a replay if it comes
			// again on each new listening stream while its first stream is connected.
			if !listens(t) {
				t.Skip("the server does not offer a listening stream")
			}
			first := listenToo(t)
			defer first.Close()
			mark := t.Mark()
			for _, role := range noticed {
				if call, ok := t.Target.ToolFor(role); ok {
					_, _ = t.Session.Call(t.Context, "tools/call", call.Params())
				}
			}
			t.Fence()
			t.Fence() // other streams may lag behind
			told := toldOn(sentOnce(t, mark))
			if len(told) == 0 {
				t.Inconclusive("no tool made the server send two different notifications: name one for the tool " +
					"role log-levels, log or tools-change in the configuration")
			}
			// The opening events of the first stream come anew on each stream.
			began := t.Session.Log().Carrier(first.Request()).Messages
			began = slices.DeleteFunc(slices.Clone(began), func(e *wire.Event) bool { return e.Seq >= mark })
			told = slices.DeleteFunc(told, func(one []*wire.Event) bool { return brought(began, one) })
			for range 2 {
				further := listenToo(t)
				defer further.Close()
				came := t.Session.Log().Carrier(further.Request()).Messages
				told = slices.DeleteFunc(told, func(one []*wire.Event) bool { return !brought(came, one) })
				t.Show(further.Request())
			}
			if len(told) > 0 && t.Session.Log().Carrier(first.Request()).End == nil {
				t.Show(told[0]...)
				t.Fail("each listening stream that is opened beside another brings again the notifications that " +
					"had come on a stream before")
			}
		},
	},
	{
		Name:         "http/disconnect",
		Requirements: []string{ids.HTTPDisconnectSurvived},
		Needs:        hangingUp,
		Body: func(t *check.T) {
			// Connections break at any moment: in the middle of an answer as well as of a listening stream.
			for _, r := range []transport.Request{plainRequest(t), {Method: http.MethodGet}} {
				if r.Method == http.MethodGet && !listens(t) {
					continue
				}
				if s, err := t.OpenStream(r); err == nil {
					s.Close()
				}
				t.Clear()
				served(t, t.Do(plainRequest(t)), ids.HTTPDisconnectSurvived)
			}
			fresh := t.Connect(client.Options{})
			_, err := fresh.Initialize(t.Context)
			if refused := (*client.RefusedError)(nil); !errors.As(err, &refused) {
				t.Must(err)
				t.FenceOn(fresh)
			}
			// By now the server has noticed that it was left.
			t.Clear()
			served(t, t.Do(plainRequest(t)), ids.HTTPDisconnectSurvived)
		},
	},
	{
		Name:         "http/disconnect-listening",
		Requirements: []string{ids.HTTPServerGetNoResponse},
		Needs:        overHTTPCalling("progress", "slow"),
		Body: func(t *check.T) {
			// The connection of a call breaks while the listening stream is open: the response waits for the client
			// to resume, and does not come there (basic/transports#listening-for-messages-from-the-server). The rule
			// sees whether it does.
			if !listens(t) {
				t.Skip("the server does not offer a listening stream")
			}
			call := toolFor(t, "progress", "slow")
			left, err := t.OpenStream(callRequest(t, call, "mcpconform-orphan"))
			t.Must(err)
			left.Close()
			if responseIn(left) != nil {
				t.Inconclusive("the tool %q was answered before the connection could be dropped", call.Tool)
			}
			awaitSlow(t, call, t.Start("tools/call", call.Params()))
			t.Fence()
		},
	},
	{
		Name:         "http/disconnect-beside",
		Requirements: []string{ids.BaseResponsePresent},
		Needs:        waiting(overHTTPCalling("slow")),
		Body: func(t *check.T) {
			// The connection of one of two calls breaks while both are under way: the other one is answered.
			call := toolFor(t, "slow")
			beside := t.Start("tools/call", call.Params())
			limit, stop := context.WithTimeout(t.Context, judge.Crossing)
			defer stop()
			leftAlone := callRequest(t, call, "mcpconform-left-alone")
			leftAlone.Defaults = true
			if left, err := t.HTTP().Open(limit, leftAlone); err == nil {
				left.Close()
			}
			if finished(t, beside) {
				t.Inconclusive("the tool %q was answered before the connection could be dropped", call.Tool)
			}
			x, err := beside.Await(t.Context)
			switch {
			case t.Context.Err() != nil:
				t.Must(err)
			case err != nil && endsElsewhere(t, call, client.Options{}):
				t.Fail("when the connection of a call was dropped, another one that was under way got no answer; " +
					"in another session the call is answered")
			case err != nil:
				t.Inconclusive("the slow tool takes longer than mcpconform waits for an answer: configure a " +
					"call that ends sooner")
			case x.Error() != nil && cancels.MatchString(x.Error().Message):
				t.Show(x.Response)
				t.Violation(ids.HTTPServerDisconnectNotCancel,
					"when the connection of a call was dropped, another one that was under way was answered "+
						"as cancelled")
			}
		},
	},
	{
		Name:         "http/delete-crossing",
		Requirements: []string{ids.HTTPServerSessionEnded404},
		Needs: check.Needs{Session: check.Fresh, Transports: []string{transport.NameHTTP},
			ToolRoles: []string{"slow"}, Lacking: calling("slow").Lacking, Lane: check.Waiting},
		Body: func(t *check.T) {
			// A DELETE crosses a call that is running. The session ends all the same, and the end of the call does
			// not bring it back, which the same call in another session shows.
			const ended = ids.HTTPServerSessionEnded404
			sessionID(t)
			call := toolFor(t, "slow")
			t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "in a session that goes on")
			begun(t, call, "mcpconform-deleted", nil)
			other := t.Open(capable)
			twin, err := other.Start(t.Context, "tools/call", call.Params())
			t.Must(err)
			r := t.Do(transport.Request{Method: http.MethodDelete})
			if r.Status/100 != 2 {
				t.Inconclusive("the server does not let a client end the session: it answers DELETE "+
					"with HTTP status %d",
					r.Status)
			}
			for _, when := range []string{"while a call was running",
				"while a call was running, and after the time that the call takes"} {
				request := plainRequest(t)
				request.Deliberate = []string{"*"}
				got := t.Do(request)
				mayGoOn(t, r, got)
				if !t.Check(ended, got).To(HaveHTTPStatus(http.StatusNotFound),
					"in a session that a DELETE has ended %s", when) {
					return
				}
				if _, err := twin.Await(t.Context); err != nil {
					t.Inconclusive("the tool %q does not answer: %v", call.Tool, err)
				}
			}
		},
	},
	{
		Name:         "http/stream-ends",
		Requirements: []string{ids.HTTPServerSSECloseAfterResponse},
		Needs:        calls(hangingUp, "progress"),
		Body: func(t *check.T) {
			// A stream that has brought the response should end, also if that is an error.
			unknown := client.Marshal(map[string]any{"jsonrpc": "2.0",
				"id": json.RawMessage(t.Session.NextID().String()), "method": unknownMethod})
			requests := []transport.Request{plainRequest(t),
				{Body: unknown, Defaults: true, Deliberate: []string{ids.LifecycleCapabilityExperimentalGated}}}
			if t.Session.Capability("tools") {
				// Some answer calls alone with a stream.
				requests = append(requests, callRequest(t, check.Call{Tool: noTool}, "mcpconform-stream-ends-unknown"))
			}
			if call, ok := knownTool(t, "progress"); ok {
				requests = append(requests, callRequest(t, call, "mcpconform-stream-ends"))
			}
			streams := 0
			for _, r := range requests {
				s, err := t.OpenStream(r)
				t.Must(err)
				if !check.Streams(s.Head.HTTP.Header) {
					s.Close()
					continue
				}
				streams++
				// The rule finds out whether the response is missing.
				if answer, ended := readTo(t, s); answer != nil && !ended {
					t.Violation(ids.HTTPServerSSECloseAfterResponse,
						"the stream of the request is still open long after the response")
				}
				s.Close()
			}
			if streams == 0 {
				t.Inconclusive("no request was answered with an event stream: name a tool for the role %q in "+
					"the configuration",
					"progress")
			}
		},
	},
	{
		Name:         "http/resume",
		Requirements: []string{ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor},
		Shows:        []string{ids.HTTPServerGetStreamOr405},
		Needs:        resuming,
		Body: func(t *check.T) {
			// Two requests run at once; the stream of one is dropped and resumed. The rule compares the further
			// events with those of that request.
			call := toolFor(t, "progress", "slow")
			_, last := drop(t, call, true)
			resumed := resume(t, last)
			if responseOn(t, resumed, func(context.Context) bool { return true }) == nil {
				t.Inconclusive("the resumed stream did not bring a response: the server does not replay anything")
			}
			resumed.Close()
		},
	},
	{
		Name:         "http/resume-points",
		Requirements: []string{ids.HTTPServerEventIDCursor, ids.HTTPServerReplaySameStream},
		Needs:        resuming,
		Body: func(t *check.T) {
			// A stream that has brought its response is resumed at several points, in the end at the first one again.
			// The rule compares what comes with what came before; what does not come need not, unless it still does
			// from an earlier point.
			events := eventIDs(t, toolFor(t, "progress", "slow"))
			points := []string{events[0], events[len(events)/2], events[len(events)-1], events[0]}
			brought := make([]bool, len(points)) // the response
			resumed := make([]bool, len(points))
			for i, id := range points {
				s := goOn(t, id, "the GET that resumes the stream")
				if resumed[i] = s.Head.HTTP.Status == http.StatusOK; resumed[i] {
					brought[i] = bringsResponse(t, s)
				}
				s.Close()
				if i == 0 && !brought[i] {
					t.Inconclusive("the server does not send again what a stream has brought to its end")
				}
			}
			for i := range points {
				if brought[0] && brought[len(points)-1] && resumed[i] && !brought[i] {
					t.Fail("resumed after the event with the id %s, the stream brings no response; resumed after "+
						"the earlier one with the id %s, it does, before and afterwards",
						wire.Quote(points[i], 80), wire.Quote(points[0], 80))
				}
			}
		},
	},
	{
		Name:         "http/resume-twice",
		Requirements: []string{ids.HTTPServerEventIDCursor, ids.HTTPServerReplaySameStream},
		Needs:        resuming,
		Body: func(t *check.T) {
			// The connection of a call breaks, and that of the stream that resumes it breaks as well. The rule
			// compares.
			call := toolFor(t, "slow", "progress")
			_, last := drop(t, call, false)
			twin := t.Start("tools/call", withToken(call.Params(), "mcpconform-beside-resumed"))
			ended := func(ctx context.Context) bool {
				_, err := t.Session.Log().Await(ctx, twin.Request.Seq+1,
					func(e *wire.Event) bool { return over(e, twin) })
				return err == nil
			}
			resumed := resume(t, last)
			ctx, stop := expecting(t, ended)
			next := firstID(ctx, resumed)
			stop()
			resumed.Close()
			if next == "" {
				t.Inconclusive("the resumed stream brought no event with an id before the response")
			}
			again := resume(t, next)
			defer again.Close()
			if responseOn(t, again, ended) == nil {
				t.Inconclusive("the stream that was resumed twice did not bring a response: the server need " +
					"not replay anything")
			}
		},
	},
	{
		Name:         "http/resume-unknown",
		Requirements: []string{ids.HTTPServerReplaySameStream},
		Shows:        []string{ids.HTTPServerGetStreamOr405},
		Needs:        calls(hangingUp, "progress", "log"),
		Body: func(t *check.T) {
			// An event id that the server never sent names no stream, so all earlier messages belong to other streams.
			for _, role := range []string{"progress", "log"} {
				if call, ok := t.Target.ToolFor(role); ok {
					// Whether it is answered does not matter here.
					_, _ = t.Session.Call(t.Context, "tools/call", withToken(call.Params(), "mcpconform-before-"+role))
				}
			}
			unasked(t)
			t.Fence()
			given := make(map[string]*wire.Event)
			for _, e := range t.Session.Log().Events() {
				if e.SSE != nil && e.SSE.ID != "" && e.Kind == wire.KindMessage && e.From == wire.Server {
					given[e.SSE.ID] = e
				}
			}
			if len(given) == 0 {
				t.Skip("the server does not send event ids")
			}
			if e := replayed(t, "mcpconform-no-such-event", "an unknown Last-Event-ID", func(e *wire.Event) bool {
				return e.SSE != nil && given[e.SSE.ID] != nil && bytes.Equal(e.Raw, given[e.SSE.ID].Raw)
			}); e != nil {
				t.Show(given[e.SSE.ID], e)
				t.Fail("a GET with an unknown Last-Event-ID brought a message that had come on another stream before")
			}
		},
	},
	{
		Name:         "http/resume-other-session",
		Requirements: []string{ids.HTTPServerReplaySameStream},
		Needs:        calls(hangingUp, "progress", "log"),
		Body: func(t *check.T) {
			// An event id of another client's stream must not bring its messages: no other call has the token and the
			// id.
			call, ok := t.Target.ToolFor("progress")
			if !ok {
				call, ok = t.Target.ToolFor("log")
			}
			if !ok {
				t.Inconclusive("%s", unknown("progress"))
			}
			if t.HTTP().SessionID() == "" {
				t.Skip("without sessions all streams belong to one client")
			}
			other := t.Open(check.Capable())
			p, err := other.StartID(t.Context, wire.StringID("mcpconform-elsewhere"), "tools/call",
				withToken(call.Params(), "mcpconform-elsewhere"))
			t.Must(err)
			if _, err := p.Await(t.Context); err != nil {
				t.Inconclusive("the tool %q does not answer: %v", call.Tool, err)
			}
			first := ""
			for _, e := range other.Log().Events() {
				if e.SSE != nil && e.SSE.ID != "" && e.Stream == p.Request.Stream && e.Kind == wire.KindMessage &&
					!e.Msg.IsResponse() {
					first = e.SSE.ID
					break
				}
			}
			if first == "" {
				t.Inconclusive("the server does not send event ids before the response, so there is nothing to resume")
			}
			t.Show(p.Request)
			if e := replayed(t, first, "the Last-Event-ID of another session", func(e *wire.Event) bool {
				return e.Msg != nil && (at(e.Msg.Params, "progressToken") == "mcpconform-elsewhere" ||
					e.Msg.IsResponse() && e.Msg.ID.Key() == p.ID.Key())
			}); e != nil {
				t.Show(e)
				t.Fail("a GET with an event id of another session brought a message of that session")
			}
		},
	},
	{
		Name:         "http/disconnect-not-cancel",
		Requirements: []string{ids.HTTPServerDisconnectNotCancel},
		Needs:        resuming,
		Body: func(t *check.T) {
			// A connection that breaks is not a cancellation: the resumed stream brings the result. There are two
			// calls: one is resumed at once, the other when the first is done, after the server has noticed that its
			// client is gone.
			call := toolFor(t, "slow", "progress")
			left, first := leave(t, call)
			dropped, last := drop(t, call, false)
			if answer := responseIn(dropped); answer != nil {
				t.Inconclusive("the tool %q was answered before the connection could be dropped: name one that "+
					"takes a second for the tool role %q in the configuration",
					call.Tool, "slow")
			}
			// A further call, which ends later, shows how long the answer is worth waiting for.
			twin := t.Start("tools/call", withToken(call.Params(), "mcpconform-beside"))
			answer := responseOn(t, resume(t, last), func(ctx context.Context) bool {
				e, err := t.Session.Log().Await(ctx, twin.Request.Seq+1,
					func(e *wire.Event) bool { return over(e, twin) })
				return err == nil && twin.Answers(e) && e.Msg.Kind == wire.Result
			})
			switch {
			case answer == nil && first != "" && keptFor(t, left, first):
				// The server had forgotten the stream that was resumed at once, as some do when they notice that the
				// first connection is gone.
			case answer == nil:
				t.Inconclusive("the resumed stream did not bring a response, so the fate of the request is unknown")
			case answer.Msg.Kind == wire.ErrorResponse && cancels.MatchString(answer.Msg.Error.Message):
				t.Fail("the request whose connection was dropped was answered as cancelled")
			case first != "":
				endsLater(t, left, first)
			}
		},
	},
}

// resuming is for calls that wait on a resumed stream, which some servers open and
// leave alone.
var resuming = check.Needs{
	Session: check.Fresh, Transports: []string{transport.NameHTTP}, ToolRoles: []string{"progress", "slow"},
	Lane: check.Waiting,
}

// noticed are the tool roles of calls that cause notifications which hold nothing to
// tell them apart.
var noticed = []string{"log-levels", "log", "tools-change", "resources-change", "prompts-change", "resource-update"}

// sentOnce returns the messages since a mark, without those that a resumed stream repeats.
func sentOnce(t *check.T, mark int) []*wire.Event {
	log := t.Session.Log()
	first := make(map[string]*wire.Event) // by event id
	for _, e := range log.Events() {
		if e.SSE != nil && e.SSE.ID != "" && first[e.SSE.ID] == nil {
			first[e.SSE.ID] = e
		}
	}
	return slices.DeleteFunc(t.Since(mark), func(e *wire.Event) bool {
		return e.SSE != nil && e.SSE.ID != "" && first[e.SSE.ID] != e && log.Carrier(e).Resumes()
	})
}

// notifications returns the log messages, the resource updates and the changes of
// lists that the server sent, each by stream: a server may send one kind to all
// streams and another to a single one.
func notifications(events []*wire.Event) []map[string][]*wire.Event {
	logs, updates := make(map[string][]*wire.Event), make(map[string][]*wire.Event)
	lists := make(map[string][]*wire.Event)
	for _, e := range events {
		switch m := e.Msg.Method; {
		case m == "notifications/message":
			logs[e.Stream] = append(logs[e.Stream], e)
		case m == "notifications/resources/updated":
			updates[e.Stream] = append(updates[e.Stream], e)
		case strings.HasSuffix(m, "/list_changed"):
			lists[e.Stream] = append(lists[e.Stream], e)
		}
	}
	return []map[string][]*wire.Event{logs, updates, lists}
}

// listenToo opens a further listening stream and waits for what it begins with.
func listenToo(t *check.T) *transport.Stream {
	s, err := t.OpenStream(transport.Request{Method: http.MethodGet})
	if err != nil {
		t.Inconclusive("a GET is not answered before there is something to send: %v", err)
	}
	t.Assume(s.Head).To(HaveHTTPStatus(http.StatusOK), "for a further listening stream")
	t.Fence()
	t.Fence() // other streams may lag behind
	return s
}

// toldOn returns the notifications of each stream that brought two which differ.
func toldOn(events []*wire.Event) [][]*wire.Event {
	told := make(map[string][]*wire.Event)
	for _, kind := range notifications(events) {
		for stream, some := range kind {
			told[stream] = append(told[stream], some...)
		}
	}
	var all [][]*wire.Event
	for _, stream := range slices.Sorted(maps.Keys(told)) {
		one := told[stream]
		slices.SortFunc(one, func(a, b *wire.Event) int { return a.Seq - b.Seq })
		if slices.ContainsFunc(one, func(e *wire.Event) bool { return !wire.Same(e, one[0]) }) {
			all = append(all, one)
		}
	}
	return all
}

// brought reports whether messages hold others in their order.
func brought(messages, others []*wire.Event) bool {
	for _, e := range messages {
		if len(others) > 0 && wire.Same(e, others[0]) {
			others = others[1:]
		}
	}
	return len(others) == 0
}

// broadcast returns the first message and its copy if one stream brought, at the
// same time, no other messages than another one, or nil.
func broadcast(told map[string][]*wire.Event) []*wire.Event {
	same := func(a, b *wire.Event) bool { return bytes.Equal(a.Raw, b.Raw) && (a.At-b.At).Abs() < judge.Crossing }
	for _, one := range slices.Sorted(maps.Keys(told)) {
		for _, other := range slices.Sorted(maps.Keys(told)) {
			if strings.HasPrefix(one, "post:") && strings.HasPrefix(other, "post:") {
				continue // each request may log the same
			}
			if one < other && slices.EqualFunc(told[one], told[other], same) {
				return []*wire.Event{told[one][0], told[other][0]}
			}
		}
	}
	return nil
}

// callRequest returns the POST of a tools/call that asks for progress.
func callRequest(t *check.T, call check.Call, token string) transport.Request {
	return callRequestOf(wire.StringID(token+"-"+t.Session.NextID().String()), call, token)
}

// callRequestOf is callRequest with an id.
func callRequestOf(id wire.ID, call check.Call, token string) transport.Request {
	return transport.Request{Body: client.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(id.String()), "method": "tools/call",
		"params": withToken(call.Params(), token),
	}), Defaults: true}
}

// readTo reads a stream until it ends or the limit of an answer is over. It
// returns the first response, of whatever id.
func readTo(t *check.T, s *transport.Stream) (answer *wire.Event, ended bool) {
	ctx, cancel := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer cancel()
	for {
		e, err := s.Next(ctx)
		if err != nil {
			return answer, ctx.Err() == nil
		}
		if e.Msg != nil && e.Msg.IsResponse() && answer == nil {
			answer = e
			t.Show(e)
		}
	}
}

// firstID reads a stream until an event with an id has come that is no
// response; it returns "" when the response or the end comes before.
func firstID(ctx context.Context, s *transport.Stream) string {
	for {
		e, err := s.Next(ctx)
		if err != nil || e.Msg != nil && e.Msg.IsResponse() {
			return ""
		}
		if id := s.LastEventID(); id != "" {
			return id
		}
	}
}

// drop calls a tool and drops the connection once an event with an id has come,
// which it returns; with beside, while another call is under way. A quick tool may have
// answered by then, and a call may be answered without a stream: it is made a few times,
// unless the events have no ids.
func drop(t *check.T, call check.Call, beside bool) (dropped *transport.Stream, last string) {
	var streamed bool
	for i := range 5 {
		dropped, last = dropOnce(t, call, fmt.Sprint("mcpconform-dropped-", i), beside)
		if slow, ok := knownTool(t, "slow"); ok {
			call = slow // which does not answer so soon
		}
		streams := check.Streams(dropped.Head.HTTP.Header)
		streamed = streamed || streams
		if streams && (responseIn(dropped) == nil || dropped.LastEventID() == "") {
			break
		}
	}
	switch {
	case !streamed:
		t.Inconclusive("the tool %q is answered without an event stream: name one that reports progress slowly "+
			"for the tool role %q in the configuration",
			call.Tool, "progress")
	case last == "":
		t.Inconclusive("the server does not send event ids before the response, so there is nothing to resume")
	}
	return dropped, last
}

func dropOnce(t *check.T, call check.Call, token string, beside bool) (dropped *transport.Stream, last string) {
	dropped, err := t.OpenStream(callRequest(t, call, token))
	t.Must(err)
	defer dropped.Close()
	if !check.Streams(dropped.Head.HTTP.Header) {
		return dropped, ""
	}
	var kept *transport.Stream
	if beside {
		if kept, err = t.OpenStream(callRequest(t, call, token+"-kept")); err != nil {
			t.Inconclusive("a second call of %q beside the first is not answered: %v", call.Tool, err)
		}
		defer kept.Close()
	}
	limit, stop := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer stop()
	last = firstID(limit, dropped)
	dropped.Close()
	if kept != nil {
		_, _ = readTo(t, kept)
	}
	return dropped, last
}

// leave calls a tool and drops the connection once two events with ids have come.
// It returns the id of the first one, or "" if they do not come before the response.
func leave(t *check.T, call check.Call) (left *transport.Stream, first string) {
	left, err := t.OpenStream(callRequest(t, call, "mcpconform-left"))
	t.Must(err)
	defer left.Close()
	if !check.Streams(left.Head.HTTP.Header) {
		return left, ""
	}
	ctx, cancel := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer cancel()
	for {
		e, err := left.Next(ctx)
		switch {
		case err != nil || e.Msg != nil && e.Msg.IsResponse():
			return left, ""
		case e.SSE == nil || e.SSE.ID == "":
		case first == "":
			first = e.SSE.ID
		default:
			return left, first
		}
	}
}

// keptFor resumes the stream of a call that has ended since, and reports whether the result soon comes.
func keptFor(t *check.T, left *transport.Stream, first string) bool {
	resumed := goOn(t, first, "the GET that resumes the stream")
	defer resumed.Close()
	answer := responseOn(t, resumed, func(context.Context) bool { return true })
	return answer != nil && answer.Msg.Kind == wire.Result
}

// endsLater resumes a stream that was left long before. If the server has kept it, so
// that it brings again what came after the event, it has to bring the response as well.
func endsLater(t *check.T, left *transport.Stream, first string) {
	t.Clear()
	t.Show(left.Request(), left.Head)
	resumed := goOn(t, first, "the GET that resumes the stream")
	defer resumed.Close()
	answer := responseOn(t, resumed, nil)
	switch {
	case answer != nil && answer.Msg.Kind == wire.ErrorResponse && cancels.MatchString(answer.Msg.Error.Message):
		t.Show(answer)
		t.Fail("the request whose connection was dropped was answered as cancelled")
	case answer == nil && len(resumed.Response().Messages) > 0 &&
		t.Session.Log().Exchange(left.Request()).Response == nil:
		t.Show(resumed.Response().Messages...)
		t.Fail("the request whose connection was dropped was never answered: its stream, when resumed later, " +
			"brings earlier messages and no response")
	}
}

// eventIDs calls a tool and returns the ids of the events that came before its response. It ends the body if there
// are not two.
func eventIDs(t *check.T, call check.Call) (ids []string) {
	s, err := t.OpenStream(callRequest(t, call, "mcpconform-points"))
	t.Must(err)
	defer s.Close()
	if !check.Streams(s.Head.HTTP.Header) {
		t.Inconclusive("the tool %q is answered without an event stream: name one that reports progress for "+
			"the tool role %q in the configuration",
			call.Tool, "progress")
	}
	limit, stop := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	defer stop()
	for {
		e, err := s.Next(limit)
		if err != nil {
			t.Inconclusive("the tool %q does not answer: %v", call.Tool, err)
		}
		if e.Msg != nil && e.Msg.IsResponse() {
			break
		}
		if e.Kind == wire.KindMessage && e.SSE != nil && e.SSE.ID != "" {
			ids = append(ids, e.SSE.ID)
		}
	}
	if len(ids) < 2 {
		t.Inconclusive("the server does not send two event ids before the response, so there is nothing to compare")
	}
	return ids
}

// bringsResponse waits a while for a response on a stream whose messages the server has sent before.
func bringsResponse(t *check.T, s *transport.Stream) bool {
	limit, stop := context.WithTimeout(t.Context, t.Soon(check.Later))
	defer stop()
	return nextResponse(limit, s) != nil
}

// nextResponse waits for a response on a stream; nil if it ends before.
func nextResponse(ctx context.Context, s *transport.Stream) *wire.Event {
	for {
		e, err := s.Next(ctx)
		if err != nil || e.Msg != nil && e.Msg.IsResponse() {
			return e
		}
	}
}

// resume opens the stream again after an event, which need not be the last
// that arrived.
func resume(t *check.T, last string) *transport.Stream {
	s := goOn(t, last, "the GET that resumes the stream")
	if s.Head.HTTP.Status != http.StatusOK {
		s.Close()
		t.Inconclusive("the server does not resume the stream: it answers the GET with HTTP status %d",
			s.Head.HTTP.Status)
	}
	return s
}

// goOn sends a GET that names an event, whatever the answer is. Some servers send
// no head before there is something to send.
func goOn(t *check.T, last, get string) *transport.Stream {
	s, err := t.HTTP().Resume(t.Context, last, ids.HTTPClientLastEventID)
	if err != nil {
		t.Inconclusive("%s is not answered: %v", get, err)
	}
	t.Show(s.Request(), s.Head)
	return s
}

// replayed resumes from an event that belongs to no stream of the session, and returns
// the first message that does not belong there; nil if none comes, as when the server
// refuses.
func replayed(t *check.T, last, what string, strange func(*wire.Event) bool) *wire.Event {
	s := goOn(t, last, "a GET with "+what)
	defer s.Close()
	if s.Head.HTTP.Status != http.StatusOK {
		return nil
	}
	limit, stop := context.WithTimeout(t.Context, judge.Crossing)
	defer stop()
	for {
		e, err := s.Next(limit)
		if err != nil || strange(e) {
			return e
		}
	}
}

// unasked makes a call that the server tells of on the listening stream, if one is known, and waits until it has.
func unasked(t *check.T) {
	for _, list := range []string{"tools", "prompts", "resources"} {
		call, ok := t.Target.ToolFor(list + "-change")
		if !ok {
			continue
		}
		mark := t.Mark()
		_, _ = t.Session.Call(t.Context, "tools/call", call.Params())
		limit, stop := context.WithTimeout(t.Context, judge.Crossing)
		defer stop()
		_, _ = t.Session.Log().Await(limit, mark, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Method == "notifications/"+list+"/list_changed"
		})
		return
	}
}

// responseIn returns the response that a stream has brought, or nil.
func responseIn(s *transport.Stream) *wire.Event {
	for _, e := range s.Response().Messages {
		if e.Msg.IsResponse() {
			return e
		}
	}
	return nil
}

var cancels = regexp.MustCompile(`(?i)cancel|abort|disconnect`)

// responseOn waits for a response on a stream (see [expecting]).
func responseOn(t *check.T, s *transport.Stream, ended func(context.Context) bool) *wire.Event {
	ctx, stop := expecting(t, ended)
	defer stop()
	return nextResponse(ctx, s)
}

// expecting is the context of a wait for a message of a call. ended waits for the end of the call, and reports
// whether that is certain: kept messages then come soon. It may be nil.
func expecting(t *check.T, ended func(context.Context) bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithTimeout(t.Context, t.Session.Options.Timeout)
	var watch sync.WaitGroup
	watch.Go(func() {
		if ended == nil || !ended(ctx) {
			return
		}
		soon, stop := context.WithTimeout(ctx, t.Soon(check.AtOnce))
		defer stop()
		<-soon.Done()
		cancel()
	})
	return ctx, func() {
		cancel()
		watch.Wait()
	}
}
