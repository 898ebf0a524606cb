package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// cancel cancels a request of ours. A request that may have been answered
// already is cancelled on purpose.
func cancel(t *check.T, id wire.ID, opts ...client.Option) {
	t.Send(cancellation(id), opts...)
}

// cancellation is the message that cancels a request of ours.
func cancellation(id wire.ID) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id.String() +
		`,"reason":"mcpconform no longer needs it"}}`
}

// late declares a cancellation of a request that is over, or was never made.
var late = client.Deliberately(ids.CancellationInProgress, ids.CancellationSameDirection)

// basic/utilities/cancellation
var cancellationChecks = []*check.Check{
	{
		Name:         "cancellation/unknown",
		Requirements: []string{ids.CancellationIgnoreUnknown},
		Needs:        repeated(check.Needs{Session: check.Own}),
		Body: func(t *check.T) {
			// Ids that no request has had, of either type.
			silent(t,
				`{"jsonrpc":"2.0","method":"notifications/cancelled",`+
					`"params":{"requestId":"mcpconform-never-used","reason":"none"}}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":987654321}}`)
		},
	},
	{
		Name:         "cancellation/completed",
		Requirements: []string{ids.CancellationIgnoreCompleted},
		Shows:        []string{ids.BaseResponsePresent},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// A request that has been answered, once and once more.
			x := t.Call(t.NoOp(), nil)
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`,
				x.Request.Msg.ID)
			silent(t, raw, raw)
		},
	},
	{
		Name:         "cancellation/malformed",
		Requirements: []string{ids.CancellationIgnoreMalformed},
		Needs:        repeated(check.Needs{Session: check.Own}),
		Body: func(t *check.T) {
			all := []string{
				``, `,"params":{}`, `,"params":{"reason":"no id"}`, `,"params":{"requestId":null}`,
				`,"params":{"requestId":true}`,
				`,"params":{"requestId":[1]}`, `,"params":{"requestId":"x","reason":7}`,
			}
			for i, params := range all {
				all[i] = `{"jsonrpc":"2.0","method":"notifications/cancelled"` + params + `}`
			}
			silent(t, all[:t.Most(len(all), 2)]...)
		},
	},
	{
		Name:         "cancellation/race",
		Requirements: []string{ids.CancellationRace, ids.CancellationEitherSide, ids.BaseMessageUTF8Accepted},
		Shows:        []string{ids.BaseResponsePresent},
		Needs:        aboutLiveness(check.Needs{Session: check.Own, Options: capable}),
		Body: func(t *check.T) {
			// A cancellation right after its request, and right after the answer, again and again. The race decides
			// whether the request is answered; the requests beside it are. It is another one for a list than for a
			// call.
			method := t.NoOp()
			if len(t.Target.Tools()) > 0 {
				method = "tools/list"
			}
			t.About(ids.CancellationEitherSide)
			cancel(t, t.Start(method, nil).ID)
			fence := func() {
				if !t.RunsAgain() {
					t.Fence()
				}
			}
			fence()
			t.Exercised(ids.CancellationEitherSide)
			// A reason beyond ASCII comes behind its plain twin. The request has ended, so that the server has nothing
			// to stop: only the text is new to it.
			ended := t.Call(method, nil).Request.Msg.ID
			t.About(ids.CancellationRace)
			cancel(t, ended, late)
			fence()
			t.About(ids.BaseMessageUTF8Accepted)
			t.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled",`+
				`"params":{"requestId":%s,"reason":"nicht mehr nötig – 不要 🙂"}}`, ended), late)
			t.Fence()
			t.Exercised(ids.BaseMessageUTF8Accepted)
			t.About(ids.CancellationRace)
			burst := t.Count(2, 4, 4)
			least, most := t.Count(2, 2, 5), t.Count(2, 2, 10)
			var kept []*client.Pending
			cross := func(method string, params any, least, most int) {
				start := time.Now()
				var took time.Duration // to answer one
				for round := 0; round < least || round < most && time.Since(start) < check.AtOnce; round++ {
					t.Clear()
					began := time.Now()
					var crossing []*client.Pending
					for range burst {
						p := t.Start(method, params)
						t.Show(p.Request)
						if round%2 == 0 {
							cancel(t, p.ID)
							continue
						}
						crossing = append(crossing, p)
					}
					kept = append(kept, t.Start(t.NoOp(), nil))
					for i, p := range crossing { // from at once to when it is, or has just been, answered
						t.Pause(time.Until(began.Add(time.Duration(i) * took / 2)))
						cancel(t, p.ID, late)
					}
					answered := t.Call(method, params)
					if t.Session.Lost() {
						t.Inconclusive("the server has ended the session")
					}
					cancel(t, answered.Request.Msg.ID, late)
					if answered.Response != nil {
						took = min(answered.Response.At-answered.Request.At, judge.Crossing)
					}
				}
			}
			cross(method, nil, least, most)
			if call, ok := quickCall(t); ok {
				calls := t.Count(0, 1, 2)
				cross("tools/call", call.Params(), calls, calls)
			}
			for _, p := range kept {
				t.Expect(t.Await(p)).To(HaveResult())
			}
			t.Fence()
		},
	},
	{
		Name:         "cancellation/in-flight",
		Requirements: []string{ids.CancellationNoResponse},
		Shows: []string{ids.BaseResponsePresent, ids.CancellationEitherSide, ids.HTTPServerNotification202,
			ids.ProgressValueIncreases},
		Needs: calling("slow"),
		Body: func(t *check.T) {
			// A slow call is cancelled, and the same one made again, which takes as long: when that is answered, an
			// answer to the first would have come. The rule tells a crossing answer from one that was sent in spite
			// of the cancellation.
			call := toolFor(t, "slow")
			gone := begun(t, call, "mcpconform-cancelled", t.Fence) // with which the server shows that it reads on
			kept := t.Start("tools/call", withToken(call.Params(), "mcpconform-kept"))
			shows(t, t.Session, kept, judge.Crossing/4)
			// The reason is optional. Others give one.
			for range 2 {
				t.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(gone.ID.String())})
			}
			t.Fence() // it has read the cancellation
			t.Fence() // and nothing of before that is on its way
			// A string is as good an id as a number.
			text := t.StartID(wire.StringID("mcpconform-cancelled-text"), "tools/call",
				withToken(call.Params(), "mcpconform-cancelled-text"))
			underWay(t, t.Session, text)
			if !finished(t, text) {
				cancel(t, text.ID)
				t.Fence()
				t.Fence()
			}
			control := t.Start("tools/call", call.Params())
			awaitSlow(t, call, control, gone, text)
			keptOn(t, call, kept)
			answeredAtOnce(t, control, gone, text)
			// Two timers of the same length may fire in another order than that in which they were set.
			began, ended := control.Request.At, t.Session.Log().Events()[t.Mark()-1].At
			limit, stop := context.WithTimeout(t.Context, (ended-began)/4)
			defer stop()
			answer := func(e *wire.Event) bool { return gone.Answers(e) || text.Answers(e) }
			if _, err := t.Session.Log().Await(limit, gone.Request.Seq, answer); err == nil {
				t.Inconclusive("the cancelled request was answered so soon that its answer may have crossed " +
					"the cancellation")
			}
			t.Fence()
		},
	},
	{
		Name:         "cancellation/other-id",
		Requirements: []string{ids.CancellationIgnoreUnknown},
		Shows:        []string{ids.BaseResponsePresent, ids.ProgressValueIncreases},
		Needs:        calling("slow"),
		Body: func(t *check.T) {
			// The ids 7 and "7" are different: a cancellation that names one does not cancel the other request.
			call := toolFor(t, "slow")
			kept := begun(t, call, "mcpconform-kept", nil)
			cancel(t, wire.StringID(kept.ID.String()), late)
			t.Fence()
			x, err := kept.Await(t.Context)
			t.Show(x.Events()...)
			switch {
			case x.Response != nil && (x.Error() == nil || !cancels.MatchString(x.Error().Message)):
			case x.Response == nil && !endsElsewhere(t, call, client.Options{}):
				t.Inconclusive("the slow tool takes longer than mcpconform waits for an answer: configure a " +
					"call that ends sooner")
			case t.Context.Err() != nil:
				t.Must(err)
			default:
				t.Fail("a request with a number as its id was cancelled by a notification that names a string " +
					"of the same digits")
			}
		},
	},
}

func init() {
	for _, role := range []string{"sampling", "elicitation"} {
		cancellationChecks = append(cancellationChecks, lateResponse(role))
	}
}

func lateResponse(role string) *check.Check {
	return &check.Check{
		Name:         "cancellation/late-response-" + role,
		Requirements: []string{ids.CancellationLateResponse},
		Shows:        []string{ids.CancellationNoResponse},
		Needs:        waiting(aboutLiveness(byHand(role))),
		Body: func(t *check.T) {
			// A tool that asks for something is cancelled, so that the server no longer needs its own request. If the
			// server cancels that, the answer comes too late.
			call := toolFor(t, role)
			method, reply := createMessage, generation(nil)
			if role == "elicitation" {
				method, reply = elicit, map[string]any{"action": "cancel"}
			}
			tooLate := map[string]any{"error": map[string]any{"code": -32603, "message": "Too late"}}
			var answers []*wire.Event
			given := 0 // too late
			for try := 0; try < 2 || try == 2 && len(answers) == 1; try++ {
				request, answer := abandoned(t, call, method, len(answers) == 0)
				if answer != nil {
					// The call was waiting for our answer: one that comes now, and once more, did not cross the
					// cancellation.
					if answers = append(answers, answer); len(answers) == 2 {
						t.Violation(ids.CancellationNoResponse,
							"twice, a call that waited for the client's answer was cancelled and was answered "+
								"all the same; a cancelled request gets no response",
							answers...)
					}
				}
				if request != nil {
					respond(t, request, []map[string]any{reply, tooLate}[given%2],
						client.Deliberately(ids.CancellationNoResponse))
					t.Fence()
					given++
				} else if len(answers) != 1 {
					break
				}
			}
			if given == 0 {
				t.Inconclusive("the server did not cancel its own request when its call was cancelled; if a " +
					"tool does that, name it for the role sampling or elicitation in the configuration")
			}
		},
	}
}

// underWay waits until a request is under way. That shows when it reports progress;
// otherwise, over HTTP, the next message can overtake it, and the server does not yet
// know what is cancelled.
func underWay(t *check.T, s *client.Session, p *client.Pending) {
	shows(t, s, p, judge.Crossing)
}

// shows waits until a request reports progress or is answered, up to a limit.
func shows(t *check.T, s *client.Session, p *client.Pending, most time.Duration) {
	limit, stop := context.WithTimeout(t.Context, most)
	defer stop()
	_, _ = s.Log().Await(limit, p.Request.Seq+1, func(e *wire.Event) bool {
		return p.Answers(e) || tells(e, "notifications/progress")
	})
}

// keptOn judges a call that was under way when another one was cancelled. It ends before a later call, unless the
// cancellation has ended it as well.
func keptOn(t *check.T, call check.Call, kept *client.Pending) {
	x, err := kept.Await(t.Context)
	switch {
	case t.Context.Err() != nil:
		t.Must(err)
	case err != nil && endsElsewhere(t, call, client.Options{}):
		t.Violation(ids.BaseResponsePresent,
			"when one call was cancelled, another open call got no answer; the same call was answered later", x.Request)
	case x.Error() != nil && cancels.MatchString(x.Error().Message),
		x.Result()["isError"] == true && cancels.MatchString(texts(x)):
		t.Violation(ids.CancellationEitherSide,
			"when one call was cancelled, another open call was answered as if it had been cancelled too",
			x.Request, x.Response)
	}
}

// begun makes a slow call that is under way, and not over, once the step after
// it is done; nil for none. The token tells it from other calls.
func begun(t *check.T, call check.Call, token string, step func()) *client.Pending {
	p := t.Start("tools/call", withToken(call.Params(), token))
	underWay(t, t.Session, p)
	if step != nil {
		step()
	}
	if finished(t, p) {
		t.Inconclusive("the tool %q is not slow enough, or the server does not read while it runs", call.Tool)
	}
	return p
}

// finished reports whether a request was answered by now.
func finished(t *check.T, p *client.Pending) bool {
	for _, e := range t.Since(p.Request.Seq) {
		if p.Answers(e) {
			return true
		}
	}
	return false
}

// endsElsewhere reports whether a call is answered in time in a session of its own.
func endsElsewhere(t *check.T, call check.Call, options client.Options) bool {
	_, err := t.Open(options).Call(t.Context, "tools/call", call.Params())
	return err == nil
}

// awaitSlow waits for the answer to a call, also beyond the time limit of an answer. The server is at fault only if
// an earlier cancellation keeps the call from being answered. If the call ends without an answer, the cancelled
// request is awaited as well.
func awaitSlow(t *check.T, call check.Call, p *client.Pending, cancelled ...*client.Pending) {
	e, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "the end of a slow tool",
		func(e *wire.Event) bool { return over(e, p) })
	if err != nil && t.Context.Err() == nil {
		cancel(t, p.ID)
		t.Fence()
		if endsElsewhere(t, call, client.Options{}) {
			t.Violation(ids.BaseResponsePresent,
				"after a call was cancelled, the server no longer answers the same call; in another session it does",
				p.Request)
		}
		t.Inconclusive("the slow tool takes longer than mcpconform waits for an answer: configure a call that " +
			"ends sooner")
	}
	t.Must(err)
	// A server that ends the exchange without an answer may still answer elsewhere, and so much time is what counts
	// here.
	if !p.Answers(e) && !endsElsewhere(t, call, client.Options{}) {
		limit, stop := context.WithTimeout(t.Context, 5*judge.Crossing)
		defer stop()
		for _, gone := range cancelled {
			_, _ = t.Session.Log().Await(limit, gone.Request.Seq+1, gone.Answers)
		}
		t.Inconclusive("the slow tool does not answer: %s", cmp.Or(e.Note, "its exchange ended without an answer"))
	}
}

// abandoned makes a call, waits until the server asks something because of it, and cancels the call. It returns the
// server's request if the server cancels that in turn, or nil, and the answer to the call if one came on a stream
// nevertheless, or nil. A patient caller waits a little for messages after such an answer.
func abandoned(t *check.T, call check.Call, method string, patient bool) (asked, answer *wire.Event) {
	p := t.Start("tools/call", call.Params())
	request, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "request within a call", func(e *wire.Event) bool {
		return asks(e, method) || over(e, p)
	})
	mayYetAsk(t, call, method, err)
	t.Must(err)
	if over(request, p) {
		return nil, nil
	}
	if method == createMessage && !check.Sampleable(request.Msg.Params) {
		cancel(t, p.ID)
		return nil, nil
	}
	cancel(t, p.ID)
	withdrawn := func(e *wire.Event) bool {
		return tells(e, "notifications/cancelled") &&
			wire.ReadID(at(e.Msg.Params, "requestId")).Key() == request.Msg.ID.Key()
	}
	within := func(d time.Duration, fits func(*wire.Event) bool) bool {
		limit, stop := context.WithTimeout(t.Context, d)
		defer stop()
		_, err := t.Session.Log().Await(limit, request.Seq+1, fits)
		return err == nil
	}
	if within(t.Soon(check.AtOnce), func(e *wire.Event) bool { return withdrawn(e) || over(e, p) }) {
		t.Fence() // a ping could wait behind a call that goes on
		if patient {
			within(judge.Crossing, withdrawn)
		}
	}
	gone := slices.ContainsFunc(t.Since(request.Seq), withdrawn)
	answer = answeredNevertheless(t, p)
	if !gone {
		// It still waits: let it go on.
		respond(t, request, map[string]any{"error": map[string]any{"code": -1, "message": "User rejected the request"}})
		t.Fence()
		return nil, answer
	}
	t.Show(p.Request, request)
	return request, answer
}

// answeredNevertheless returns the answer to a request, unless there is none or it is the JSON body with
// which an HTTP response has to answer it (docs/positions.md, cancelled-post).
func answeredNevertheless(t *check.T, p *client.Pending) *wire.Event {
	for _, e := range t.Since(p.Request.Seq) {
		if !p.Answers(e) {
			continue
		}
		if x := t.Session.Log().Carrier(e); x != nil && !check.Streams(x.Head.HTTP.Header) {
			return nil
		}
		return e
	}
	return nil
}

// answeredAtOnce judges calls that were answered right after their cancellation, long before the undisturbed twin of
// the call. One such answer may have crossed the cancellation, two have not. The rule judges an answer that calls the
// call cancelled, whenever it comes.
func answeredAtOnce(t *check.T, control *client.Pending, cancelled ...*client.Pending) {
	ended := answeredNevertheless(t, control)
	if ended == nil {
		return
	}
	var shown []*wire.Event
	for _, p := range cancelled {
		answer, told := answeredNevertheless(t, p), cancellationOf(t, p)
		if answer == nil || told == nil || answer.Seq < told.Seq || answer.At-told.At >= judge.Crossing ||
			2*(answer.At-p.Request.At) > ended.At-control.Request.At {
			return
		}
		shown = append(shown, p.Request, told, answer)
	}
	t.Violation(ids.CancellationNoResponse,
		"two calls were answered right after their cancellation, long before such a call ends; a cancelled request "+
			"gets no response",
		shown...)
}

// cancellationOf returns the message with which a request of ours was first cancelled, or nil.
func cancellationOf(t *check.T, p *client.Pending) *wire.Event {
	for _, e := range t.Session.Log().Events()[p.Request.Seq:] {
		if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "notifications/cancelled" &&
			wire.ReadID(at(e.Msg.Params, "requestId")).Key() == p.ID.Key() {
			return e
		}
	}
	return nil
}
