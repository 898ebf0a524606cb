package client

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

var timeoutRequirements = []string{ids.LifecycleTimeoutEstablished, ids.LifecycleTimeoutCancel,
	ids.LifecycleTimeoutStopWaiting, ids.LifecycleErrorRequestTimeout, ids.ToolsClientTimeouts,
	ids.HTTPClientCancelExplicit}

var timeScenarios = []*client.Scenario{
	{
		Name: "time/silence", Lane: client.Waiting,
		Requirements: append(slices.Clone(timeoutRequirements), lateResponse),
		Needs:        client.NeedsRequest + ", so none could be left unanswered",
		Options:      answeringLate(func(string) bool { return true }),
		Judge: func(t *client.T) {
			judgeSilence(t, false)
			judgeLate(t)
		},
	},
	{
		Name: "time/silent-tool", Lane: client.Waiting,
		Requirements: append(slices.Clone(timeoutRequirements), lateResponse),
		Needs:        "the client called no tool",
		Options:      answeringLate(func(method string) bool { return method == "tools/call" }),
		Judge: func(t *client.T) {
			judgeSilence(t, true)
			judgeLate(t)
		},
	},
	{
		Name: "time/endless-progress", Lane: client.Waiting, After: []string{"time/silent-tool"},
		// Progress only gives a client reason to wait for longer. If the user has stated when it should give up, that
		// time counts.
		Excused: func(silent *client.T) string {
			if silent.Ending.Skipped == "" && silent.Sent("tools/call") == nil {
				return "the client called no tool"
			}
			open := silent.Unanswered()
			if silent.GivesUpAfter > 0 || len(open) == 0 || !silent.Ending.Late || silent.GivenUp(open[0]) {
				return ""
			}
			return "the client still waited for a tool call without answer or progress; say with --gives-up-after " +
				"how long it waits"
		},
		Requirements: []string{ids.LifecycleTimeoutMaximum},
		Needs:        "the client did not ask for the progress of a tool call",
		Options:      onlyProgressing,
		Judge: func(t *client.T) {
			for _, x := range t.Unanswered() {
				if x.Token == nil {
					continue
				}
				if t.Ending.Late && !t.GivenUp(x) {
					judgeRenewing(t, x, ids.LifecycleTimeoutMaximum)
					return
				}
				t.Exercised(ids.LifecycleTimeoutMaximum)
				return
			}
		},
	},
	{
		Name:         "time/slow",
		Requirements: []string{lateResponse},
		Needs:        "the client did not cancel a request before its late answer",
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				AnswerCancelled: true, Breaks: []string{ids.CancellationNoResponse, ids.CancellationStopProcessing},
				Methods: map[string]server.Middleware{"tools/call": func(ctx context.Context, r *server.Request,
					next server.Handler) (any, *wire.Error) {
					if counter(r.Session, "slow").next() < slowCalls {
						r.Withhold()
						_ = r.Sleep(r.Session.Context(), time.Second)
					}
					return next(ctx, r)
				}},
			}}
		},
		Judge: func(t *client.T) {
			for _, x := range t.Requests() {
				if x.Cancelled != nil && x.Response != nil && x.Response.Seq > x.Cancelled.Seq {
					t.JudgeContinued("a request was answered although it had been cancelled", lateResponse)
				}
			}
		},
	},
}

// slowCalls is the number of tool calls of a session that are answered slowly.
const slowCalls = 3

const lateResponse = ids.CancellationLateResponse

// answeringLate returns options of a server that leaves the first request of some methods unanswered. If the client
// cancels it, the answer comes with the second further request. The first one shows that the client continues after a
// request that it gave up (basic/utilities/cancellation#behavior-requirements).
func answeringLate(which func(method string) bool) func(*client.ScenarioRun) server.Options {
	return func(run *client.ScenarioRun) server.Options {
		type given struct { // what was given up in a session
			id      wire.ID
			up      atomic.Bool
			further count
			late    chan struct{} // closed when it is answered
		}
		answer := func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			mine := &given{id: r.ID, late: make(chan struct{})}
			first := r.Session.Value("given up", func() any { return mine }).(*given)
			switch {
			case first == mine:
				r.Withhold()
				<-ctx.Done()
				mine.up.Store(true)
				select {
				case <-r.Session.Context().Done():
					return server.NoAnswer, nil
				case <-mine.late:
				}
				if r.Method == "tools/call" { // a tool might ask the client
					return map[string]any{"content": []any{map[string]any{"type": "text", "text": "too late"}},
						"isError": true}, nil
				}
				ctx = r.Session.Context()
			case first.up.Load() && first.further.next() == 1:
				log := r.Session.Log()
				from := log.Len()
				close(first.late)
				answered, cancel := context.WithTimeout(ctx, run.Patience/20)
				defer cancel()
				_, _ = log.Await(answered, from, func(e *wire.Event) bool {
					return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() &&
						e.Msg.ID.Key() == first.id.Key()
				})
				// Over HTTP each answer has a stream of its own, and the client need not read them in this order.
				_ = r.Sleep(ctx, run.Patience/100)
			}
			return next(ctx, r)
		}
		return server.Options{Behaviour: server.Behaviour{
			AnswerCancelled: true,
			Breaks:          append(slices.Clone(silences), ids.CancellationNoResponse, ids.CancellationStopProcessing),
			Methods: map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request,
				next server.Handler) (any,
				*wire.Error) {
				if !client.IsOperation(r.Method) || !r.Session.Initialized() || !which(r.Method) {
					return next(ctx, r)
				}
				return answer(ctx, r, next)
			}},
		}}
	}
}

// silences lists the requirements that a server breaks if it leaves a request unanswered.
var silences = []string{ids.BaseResponsePresent, ids.HTTPServerSSENoEarlyClose, ids.LifecycleTimeoutEstablished,
	ids.LifecycleTimeoutCancel}

// judgeLate judges whether a client continues if a cancelled request is answered, as it did when no answer came. Its
// end shows nothing, unless it has more to do and needs no list for it that it gave up.
func judgeLate(t *client.T) {
	for _, c := range t.Conversations {
		for _, x := range client.RequestsOf(c) {
			r := x.Response
			if x.Cancelled == nil || r == nil || r.Seq < x.Cancelled.Seq {
				continue
			}
			ordinary := t.Baseline.Ending.Exit
			blame := func(how string) string {
				return "the client " + how +
					" when a request that it had cancelled was answered; without the answer it went on"
			}
			message := ""
			switch {
			case answeredSince(c, r):
				t.Exercised(lateResponse)
			case t.Died() != "":
				message = blame(t.Died())
			case x.Method() == "tools/call" && t.BrokeOff() && t.LeftOut() != "":
				message = blame("ended without " + t.LeftOut())
			case t.Ending.Late && !t.Ending.Busy && ordinary != nil && !t.HeardSince(r):
				message = client.TimedOut(blame("hangs"))
			}
			if message != "" {
				t.Violation(lateResponse, message, x.Request, x.Cancelled, r)
			}
		}
	}
}

// answeredSince reports whether the client sent a request after a further answer had
// come. Without a further answer, the request may have left before the client read r.
func answeredSince(c *judge.Conversation, r *wire.Event) bool {
	next := math.MaxInt
	for _, x := range c.Exchanges {
		if y := x.Response; x.From() == wire.Client && y != nil && y.Seq > r.Seq {
			next = min(next, y.Seq)
		}
	}
	return slices.ContainsFunc(client.RequestsOf(c), func(x *judge.Exchange) bool { return x.Request.Seq > next })
}

// onlyProgressing returns options of a server that leaves the first tool call unanswered
// and reports its progress until the client gives it up.
func onlyProgressing(*client.ScenarioRun) server.Options {
	return server.Options{Behaviour: server.Behaviour{
		Breaks: silences,
		Methods: map[string]server.Middleware{"tools/call": func(ctx context.Context, r *server.Request,
			next server.Handler) (any, *wire.Error) {
			mine := new(count)
			if !r.Session.Initialized() || r.Session.Value("unanswered", func() any { return mine }) != any(mine) {
				return next(ctx, r)
			}
			r.Withhold()
			for step := 1; r.Sleep(ctx, 200*time.Millisecond) == nil; step++ {
				r.Progress(float64(step), 0, "")
			}
			return server.NoAnswer, nil
		}},
	}}
}

const stillWaiting = "the client still waited at the time limit of the scenario"

// judgeWaiting judges a client that still waited for an answer when it was stopped.
func judgeWaiting(t *client.T, x *judge.Exchange, ids ...string) {
	waited := t.ConversationOf(x).Events
	for _, id := range ids {
		switch after := waited[len(waited)-1].At - x.Request.At; {
		case t.GivesUpAfter == 0:
			t.Inconclusive(stillWaiting+"; say with --gives-up-after how long it waits", id)
		case after >= t.GivesUpAfter+client.GiveUpDelay:
			t.Violation(id,
				fmt.Sprintf("the client still waits for the answer to %s after %s; it is to give up after %s",
					x.Method(), after.Round(time.Second), t.GivesUpAfter), x.Request)
		default:
			t.Inconclusive(client.TimedOut(stillWaiting), id)
		}
	}
}

// judgeRenewing judges a client that still waited for an answer although only progress came. If the user has not
// stated when it gives up, its time for a call without progress counts.
func judgeRenewing(t *client.T, x *judge.Exchange, id string) {
	took := t.TookToGiveUp()
	if t.GivesUpAfter > 0 || took == 0 {
		judgeWaiting(t, x, id)
		return
	}
	events := t.ConversationOf(x).Events
	after := events[len(events)-1].At - x.Request.At
	if after < client.Renewals*took {
		t.Inconclusive(client.TimedOut(stillWaiting), id)
		return
	}
	t.Warning(id,
		fmt.Sprintf("the client gives up a tool call after %s without an answer, but still waits after %s if "+
			"progress comes; it needs a maximum time as well",
			took.Round(time.Second), after.Round(time.Second)), x.Request)
}

// hungUp returns the event with which the client closed the stream of an unanswered request before it continued, or
// nil.
func hungUp(t *client.T, x *judge.Exchange) *wire.Event {
	c := t.ConversationOf(x)
	carrier := c.Carrier(x.Request)
	if carrier == nil || carrier.End == nil || carrier.End.From != wire.Client || carrier.End.Seq > t.WentOn(x).Seq {
		return nil
	}
	return carrier.End
}

// judgeSilence judges how the client gives up a request without an answer (basic/lifecycle#timeouts).
func judgeSilence(t *client.T, tool bool) {
	open := t.Unanswered()
	if len(open) == 0 {
		return
	}
	x := open[0]
	requirements := []string{ids.LifecycleTimeoutEstablished, ids.LifecycleTimeoutStopWaiting,
		ids.LifecycleErrorRequestTimeout}
	if tool {
		requirements = append(requirements, ids.ToolsClientTimeouts)
	}
	if !t.GivenUp(x) {
		limits := []string{ids.LifecycleTimeoutEstablished}
		if tool {
			limits = append(limits, ids.ToolsClientTimeouts)
		}
		judgeWaiting(t, x, limits...)
		t.Inconclusive(client.TimedOut(stillWaiting), slices.DeleteFunc(slices.Clone(timeoutRequirements),
			func(id string) bool { return slices.Contains(limits, id) })...)
		return
	}
	if died := t.Died(); died != "" && x.Cancelled == nil {
		t.Violation(ids.LifecycleErrorRequestTimeout, "the client "+died+" when "+x.Method()+" was not answered",
			x.Request)
		return
	}
	if waits := x.Cancelled != nil && t.Ending.Late && !t.Ending.Busy && t.Baseline.Ending.Exit != nil &&
		!t.HeardSince(x.Cancelled); waits {
		t.Violation(ids.LifecycleTimeoutStopWaiting,
			client.TimedOut("the client has cancelled "+x.Method()+" and goes on waiting for its response"), x.Request,
			x.Cancelled)
		requirements = slices.DeleteFunc(requirements,
			func(id string) bool { return id == ids.LifecycleTimeoutStopWaiting })
	}
	t.Exercised(requirements...)
	switch {
	case x.Cancelled != nil:
		t.Exercised(ids.LifecycleTimeoutCancel)
		if t.Transport == "http" {
			t.Exercised(ids.HTTPClientCancelExplicit)
		}
	case t.WentOn(x) != nil:
		t.Violation(ids.LifecycleTimeoutCancel, "the client gave "+x.Method()+" up and went on without a cancellation",
			x.Request, t.WentOn(x))
		if left := hungUp(t, x); left != nil {
			t.Violation(ids.HTTPClientCancelExplicit,
				"the client closed the stream of "+x.Method()+" and did not cancel the request", x.Request, left,
				t.WentOn(x))
		}
	default:
		// The end of the client also tells its own server process that it no longer waits.
		t.Inconclusive("the client ended instead of cancelling the request", ids.LifecycleTimeoutCancel,
			ids.HTTPClientCancelExplicit)
	}
}
