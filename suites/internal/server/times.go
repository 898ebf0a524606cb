package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// basic/lifecycle#timeouts
const (
	timeoutEstablished = ids.LifecycleTimeoutEstablished
	timeoutCancel      = ids.LifecycleTimeoutCancel
	timeoutStopWaiting = ids.LifecycleTimeoutStopWaiting
	timeoutMaximum     = ids.LifecycleTimeoutMaximum
	timeoutCoping      = ids.LifecycleErrorRequestTimeout
)

func init() {
	for _, role := range []string{"sampling", "elicitation"} {
		lifecycleChecks = append(lifecycleChecks, givesUp(role), givesUpProgressing(role))
	}
}

// leavingOpen returns needs of a check that waits until the server gives a request up.
func leavingOpen(role string) check.Needs {
	needs := waiting(byHand(role))
	needs.Beside, needs.Session = true, check.Fresh // which nobody else waits for
	needs.Options = open([]string{"sampling", "elicitation"})
	lacking := needs.Lacking
	needs.Lacking = func(target *check.Target) string {
		if reason := lacking(target); reason != "" {
			return reason
		}
		if target.Settings.GivesUpAfter == 0 {
			return "the run was not told how long the server waits for the answer to a request of its own"
		}
		return ""
	}
	return needs
}

// givesUp calls a tool and leaves the request open that the server sends because of it.
func givesUp(role string) *check.Check {
	return &check.Check{
		Name:         "lifecycle/gives-up-" + role,
		Requirements: []string{timeoutEstablished, timeoutCancel, timeoutStopWaiting, timeoutCoping},
		Needs:        leavingOpen(role),
		Body:         func(t *check.T) { leaveOpen(t, role).judge() },
	}
}

// givesUpProgressing does the same, and reports progress of the request all the time.
func givesUpProgressing(role string) *check.Check {
	return &check.Check{
		Name:         "lifecycle/gives-up-progressing-" + role,
		Requirements: []string{timeoutMaximum, timeoutCoping},
		Needs:        leavingOpen(role),
		Body:         func(t *check.T) { leaveOpen(t, role).judgeProgressing() },
	}
}

// leaveOpen calls a tool and returns the request that the server sends because of it.
func leaveOpen(t *check.T, role string) *unanswered {
	call := toolFor(t, role)
	u := &unanswered{T: t, call: call, method: createMessage, reply: always(generation(nil))}
	if role == "elicitation" {
		u.method, u.reply = elicit, accept
	}
	u.pending = t.Start("tools/call", call.Params())
	e, err := t.Session.AwaitEvent(t.Context, u.pending.Request.Seq+1, "request within a call",
		func(e *wire.Event) bool {
			return asks(e, u.method) && t.Claim(e) || over(e, u.pending)
		})
	mayYetAsk(t, call, u.method, err)
	t.Must(err)
	if over(e, u.pending) {
		t.Inconclusive("the tool %q did not send %s", call.Tool, u.method)
	}
	u.request = e
	t.Show(e)
	return u
}

// unanswered is a request of the server that is left open.
type unanswered struct {
	*check.T
	call    check.Call
	method  string
	reply   func(*wire.Event) map[string]any
	pending *client.Pending // the call that it belongs to
	request *wire.Event
}

func (u *unanswered) judge() {
	limit := u.Target.Settings.GivesUpAfter
	sign := u.await(u.request.Seq+1, limit+check.GivingUp-u.Ago(u.request), u.givenUp)
	switch {
	case sign == nil:
		u.waits(timeoutEstablished, "")
	case u.cancels(sign):
		u.Show(sign)
		u.Exercised(timeoutEstablished, timeoutCancel)
		u.stopsWaiting(sign, max(check.GivingUp, limit+check.GivingUp-u.Ago(u.request)))
	case !u.pending.Answers(sign):
		u.Inconclusive("the exchange of the call ended without an answer while %s was open", u.method)
	default:
		u.Show(sign)
		u.ended(sign)
	}
	u.About(timeoutCoping)
	u.Fence()
}

// reports is how many times progress is reported of a request that is left open.
const reports = 20

// judgeProgressing reports progress of the open request until the server has to have given it
// up (basic/lifecycle#timeouts).
func (u *unanswered) judgeProgressing() {
	token := at(u.request.Msg.Params, "_meta", "progressToken")
	if token == nil {
		u.release()
		u.Inconclusive("the server asks for no progress of %s", u.method)
	}
	limit := u.Target.Settings.GivesUpAfter
	var sign *wire.Event
	for done := 1; sign == nil && u.Ago(u.request) < limit+check.GivingUp; done++ {
		u.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": done})
		sign = u.await(u.request.Seq+1, min(limit/reports, limit+check.GivingUp-u.Ago(u.request)), u.givenUp)
	}
	switch {
	case sign == nil:
		u.waits(timeoutMaximum, ", of which progress was reported all the time,")
	case u.cancels(sign):
		u.Show(sign)
		u.Exercised(timeoutMaximum)
		// Other requests of the call are given up with it.
		if u.await(u.request.Seq+1, u.Soon(check.AtOnce),
			func(e *wire.Event) bool { return over(e, u.pending) }) == nil {
			u.release()
		}
	case !u.pending.Answers(sign):
		u.Inconclusive("the exchange of the call ended without an answer while %s was open", u.method)
	default:
		u.Show(sign)
		u.waited(sign)
		u.Exercised(timeoutMaximum)
	}
	u.About(timeoutCoping)
	u.Fence()
}

// givenUp reports whether an event shows that the server no longer waits.
func (u *unanswered) givenUp(e *wire.Event) bool { return u.cancels(e) || over(e, u.pending) }

// await returns the first event that fits, or nil if none came in time.
func (u *unanswered) await(from int, d time.Duration, fits func(*wire.Event) bool) *wire.Event {
	limit, stop := context.WithTimeout(u.Context, d)
	defer stop()
	e, err := u.Session.Log().Await(limit, from, fits)
	if errors.Is(err, wire.ErrEnded) {
		u.About(timeoutCoping)
		u.Fence() // says how the server ended
	}
	if u.Context.Err() != nil {
		u.Must(err)
	}
	return e
}

// cancels reports whether an event is the cancellation of the open request.
func (u *unanswered) cancels(e *wire.Event) bool {
	return tells(e, "notifications/cancelled") &&
		wire.ReadID(at(e.Msg.Params, "requestId")).Key() == u.request.Msg.ID.Key()
}

// waits judges a server that did nothing about the open request in time. how, if not "", says
// how the request was left open.
func (u *unanswered) waits(id, how string) {
	waited := u.Ago(u.request)
	again := u.await(u.request.Seq+1, 0, func(e *wire.Event) bool {
		return asks(e, u.method) && e.At-u.request.At >= judge.Crossing
	})
	_, err := u.Session.Call(u.Context, u.NoOp(), nil)
	u.release()
	switch {
	case err != nil:
		u.Inconclusive("while %s was open, the server answered nothing", u.method)
	case again != nil:
		u.Inconclusive("the tool %q sent %s again while it was open, so it is not known for which answer it waits",
			u.call.Tool, u.method)
	}
	u.Violation(id, fmt.Sprintf("the server still waits for the answer to %s%s after %s; it is to give up after %s",
		u.method, how, waited.Round(time.Second), u.Target.Settings.GivesUpAfter), u.pending.Request, u.request)
	u.Inconclusive("the server still waited when mcpconform ended the check")
}

// stopsWaiting judges a server that has cancelled the open request: the call ends, or continues with something else.
func (u *unanswered) stopsWaiting(cancelled *wire.Event, d time.Duration) {
	sign := u.await(u.request.Seq+1, d, func(e *wire.Event) bool {
		return over(e, u.pending) || e.Seq > cancelled.Seq && asks(e, u.method)
	})
	if sign != nil && u.pending.Answers(sign) {
		u.Exercised(timeoutStopWaiting)
		return
	}
	u.release()
	switch {
	case sign != nil && asks(sign, u.method):
		u.Exercised(timeoutStopWaiting)
	case sign != nil:
		u.Inconclusive("the server cancelled %s, and the exchange of the call ended without an answer", u.method)
	case slices.ContainsFunc(u.Since(cancelled.Seq+1), atWork):
		u.Exercised(timeoutCoping)
		u.Inconclusive("the server cancelled %s, and the call of the tool %q went on", u.method, u.call.Tool)
	case !endsElsewhere(u.T, u.call, check.Capable()): // it gets its answer there
		u.Inconclusive("the call of the tool %q does not end even when %s is answered", u.call.Tool, u.method)
	default:
		u.Violation(timeoutStopWaiting,
			fmt.Sprintf("the server has cancelled %s and the call of the tool %q goes on waiting for its response",
				u.method, u.call.Tool), u.pending.Request, u.request, cancelled)
	}
}

// atWork reports whether a message shows that the server does something of its own accord.
func atWork(e *wire.Event) bool {
	return e.Msg.Kind == wire.Notification || e.Msg.Kind == wire.Request && e.Msg.Method != "ping"
}

// ended judges a server whose call ended while the request was open: a cancellation
// may follow.
func (u *unanswered) ended(answer *wire.Event) {
	if cancelled := u.await(u.request.Seq+1, max(judge.Crossing, u.Soon(check.Later)), u.cancels); cancelled != nil {
		u.Exercised(timeoutEstablished, timeoutCancel, timeoutStopWaiting)
		return
	}
	waited := u.waited(answer)
	u.Exercised(timeoutEstablished, timeoutStopWaiting)
	u.Violation(timeoutCancel,
		fmt.Sprintf("the server gave %s up and ended the call after %s without a cancellation; with an answer "+
			"the call ended at once",
			u.method, waited.Round(time.Millisecond)), u.pending.Request, u.request, answer)
}

// waited returns how long the server waited before it ended the call. A tool that does not wait
// for the answer has not given it up when it ends: it takes as long when it gets one.
func (u *unanswered) waited(answer *wire.Event) time.Duration {
	waited := answer.At - u.request.At
	control, asked := converse(u.T, u.call, u.method, u.reply)
	if len(asked) == 0 || control.Response == nil || waited < 2*(control.Response.At-asked[0].At)+judge.Crossing {
		u.Inconclusive("the tool %q may not wait for the answer to %s: its call ends as soon as with an answer",
			u.call.Tool, u.method)
	}
	return waited
}

// release ends the call, so that the session can be used further. It refuses the request for whose answer the server
// still waits.
func (u *unanswered) release() {
	since := u.Since(u.request.Seq)
	for _, e := range since {
		withdrawn := func(m *wire.Event) bool {
			return m.Msg.Method == "notifications/cancelled" &&
				wire.ReadID(at(m.Msg.Params, "requestId")).Key() == e.Msg.ID.Key()
		}
		if asks(e, u.method) && u.Claim(e) && !slices.ContainsFunc(since, withdrawn) {
			respond(u.T, e, map[string]any{"error": map[string]any{"code": -1, "message": "User rejected the request"}})
		}
	}
	if u.await(u.request.Seq+1, u.Soon(check.Later), func(e *wire.Event) bool { return over(e, u.pending) }) == nil {
		cancel(u.T, u.pending.ID)
	}
}
