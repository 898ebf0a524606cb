package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/check/match"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// cancel cancels a request of ours. A request that may have been answered
// already is cancelled on purpose.
func cancel(t *check.T, id wire.ID, opts ...client.Option) {
	t.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id.String()+`,"reason":"mcpconform no longer needs it"}}`, opts...)
}

// late declares a cancellation of a request that is over, or was never made.
var late = client.Deliberately("cancellation.in-progress", "cancellation.same-direction")

// basic/utilities/cancellation
var cancellationChecks = []*check.Check{
	{
		Name:         "cancellation/unknown",
		Requirements: []string{"cancellation.ignore-unknown"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// Ids that no request has had, of either type.
			silent(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpconform-never-used","reason":"none"}}`)
			silent(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":987654321}}`)
		},
	},
	{
		Name:         "cancellation/completed",
		Requirements: []string{"cancellation.ignore-completed"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// A request that has been answered, once and once more.
			x := t.Call(t.NoOp(), nil)
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, x.Request.Msg.ID)
			silent(t, raw)
			silent(t, raw)
		},
	},
	{
		Name:         "cancellation/malformed",
		Requirements: []string{"cancellation.ignore-malformed"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			for _, params := range []string{
				``, `,"params":{}`, `,"params":{"reason":"no id"}`, `,"params":{"requestId":null}`, `,"params":{"requestId":true}`,
				`,"params":{"requestId":[1]}`, `,"params":{"requestId":"x","reason":7}`,
			} {
				silent(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"`+params+`}`)
			}
		},
	},
	{
		Name:         "cancellation/race",
		Requirements: []string{"cancellation.race", "cancellation.either-side"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// A cancellation right after its request, and right after the answer, again and again. The race decides whether
			// the request is answered; the requests beside it are.
			method := t.NoOp()
			if len(t.Target.Tools()) > 0 {
				method = "tools/list"
			}
			t.About("cancellation.either-side")
			cancel(t, t.Start(method, nil).ID)
			t.Fence()
			t.About("cancellation.race")
			const rounds, burst = 10, 4
			var kept []*client.Pending
			for range rounds {
				t.Clear()
				for range burst {
					p := t.Start(method, nil)
					t.Show(p.Request)
					cancel(t, p.ID)
				}
				kept = append(kept, t.Start(t.NoOp(), nil))
				answered := t.Call(method, nil)
				cancel(t, answered.Request.Msg.ID, late)
			}
			for _, p := range kept {
				t.Expect(t.Await(p)).To(HaveResult())
			}
			t.Fence()
		},
	},
	{
		Name:         "cancellation/in-flight",
		Requirements: []string{"cancellation.no-response"},
		Needs:        calling("slow"),
		Body: func(t *check.T) {
			// A slow call is cancelled, and the same one made again, which takes as long: when that is answered, an answer
			// to the first would have come. The rule tells a crossing answer from one that was sent in spite of the cancellation.
			call := toolFor(t, "slow")
			gone := begun(t, call, "mcpconform-cancelled", t.Fence) // with which the server shows that it reads on
			// The reason is optional. Others give one.
			for range 2 {
				t.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(gone.ID.String())})
			}
			t.Fence() // it has read the cancellation
			t.Fence() // and nothing of before that is on its way
			// A string is as good an id as a number.
			text := t.StartID(wire.StringID("mcpconform-cancelled-text"), "tools/call", withToken(call.Params(), "mcpconform-cancelled-text"))
			underWay(t, t.Session, text)
			if !finished(t, text) {
				cancel(t, text.ID)
				t.Fence()
				t.Fence()
			}
			control := t.Start("tools/call", call.Params())
			awaitSlow(t, call, control)
			// Two timers of the same length may fire in another order than that in which they were set.
			began, ended := control.Request.At, t.Session.Log().Events()[t.Mark()-1].At
			limit, stop := context.WithTimeout(t.Context, (ended-began)/4)
			defer stop()
			answer := func(e *wire.Event) bool { return gone.Answers(e) || text.Answers(e) }
			if _, err := t.Session.Log().Await(limit, gone.Request.Seq, answer); err == nil {
				t.Inconclusive("the cancelled request was answered; the rule on cancelled requests says whether that was too late")
			}
			t.Fence()
		},
	},
	{
		Name:         "cancellation/other-id",
		Requirements: []string{"cancellation.ignore-unknown"},
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
			case x.Response == nil && !endsElsewhere(t, call):
				t.Inconclusive("the slow tool takes longer than an answer may: configure a call that ends sooner")
			case t.Context.Err() != nil:
				t.Must(err)
			default:
				t.Fail("a request with a number as its id was cancelled by a notification that names a string of the same digits")
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
		Requirements: []string{"cancellation.late-response"},
		Needs:        waiting(aboutLiveness(byHand(role))),
		Body: func(t *check.T) {
			// A tool that asks for something is cancelled, so that the server no longer needs its own request. If the server
			// cancels that, the answer comes too late.
			call := toolFor(t, role)
			method, reply := createMessage, generation(nil)
			if role == "elicitation" {
				method, reply = elicit, map[string]any{"action": "cancel"}
			}
			for i, outcome := range []map[string]any{reply, {"error": map[string]any{"code": -32603, "message": "Too late"}}} {
				request := abandoned(t, call, method)
				if request == nil && i > 0 {
					return
				}
				if request == nil {
					t.Inconclusive("when a call was cancelled, the server did not cancel its own request for that call; name tools for the roles sampling and elicitation in the configuration if one does")
				}
				respond(t, request, outcome, client.Deliberately("cancellation.no-response"))
				t.Fence()
			}
		},
	}
}

// underWay waits until a request is under way. That shows when it reports progress;
// otherwise, over HTTP, the next message can overtake it, and the server does not yet
// know what is cancelled.
func underWay(t *check.T, s *client.Session, p *client.Pending) {
	limit, stop := context.WithTimeout(t.Context, judge.Crossing)
	defer stop()
	_, _ = s.Log().Await(limit, p.Request.Seq+1, func(e *wire.Event) bool {
		return p.Answers(e) || e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Method == "notifications/progress"
	})
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
func endsElsewhere(t *check.T, call check.Call) bool {
	_, err := t.Open(client.Options{}).Call(t.Context, "tools/call", call.Params())
	return err == nil
}

// awaitSlow waits for as long as it takes to answer a call, which may be longer than the
// time limit of an answer. The server is at fault only if a cancellation before the call keeps it
// from being answered.
func awaitSlow(t *check.T, call check.Call, p *client.Pending) {
	e, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "the end of a slow tool", func(e *wire.Event) bool { return over(e, p) })
	if err != nil && t.Context.Err() == nil {
		cancel(t, p.ID)
		t.Fence()
		if endsElsewhere(t, call) {
			t.Violation("base.response.present", "after a call was cancelled, the same call is no longer answered; in another session it is", p.Request)
		}
		t.Inconclusive("the slow tool takes longer than an answer may: configure a call that ends sooner")
	}
	t.Must(err)
	// A server that ends the exchange without an answer may still answer elsewhere, and so much time is what counts here.
	if !p.Answers(e) && !endsElsewhere(t, call) {
		// What was cancelled may go on all the same.
		limit, stop := context.WithTimeout(t.Context, 5*judge.Crossing)
		defer stop()
		_, _ = t.Session.Log().Await(limit, p.Request.Seq+1, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Method == "notifications/progress"
		})
		t.Inconclusive("the slow tool does not answer: %s", cmp.Or(e.Note, "its exchange ended without one"))
	}
}

// abandoned makes a call, waits until the server asks something because of it,
// and cancels the call. It returns the server's request if the server cancels
// that in turn, or nil.
func abandoned(t *check.T, call check.Call, method string) *wire.Event {
	p := t.Start("tools/call", call.Params())
	request, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "request within a call", func(e *wire.Event) bool {
		return asks(e, method) || over(e, p)
	})
	t.Must(err)
	if over(request, p) {
		return nil
	}
	if method == createMessage && !check.Sampleable(request.Msg.Params) {
		cancel(t, p.ID)
		return nil
	}
	cancel(t, p.ID)
	waiting, stop := context.WithTimeout(t.Context, t.Soon(check.AtOnce))
	defer stop()
	_, err = t.Session.Log().Await(waiting, request.Seq+1, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Method == "notifications/cancelled" &&
			wire.ReadID(at(e.Msg.Params, "requestId")).Key() == request.Msg.ID.Key()
	})
	if err != nil {
		// It still waits: let it go on.
		respond(t, request, map[string]any{"error": map[string]any{"code": -1, "message": "User rejected the request"}})
		t.Fence()
		return nil
	}
	t.Show(p.Request, request)
	return request
}
