package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/judge"
)

type counter struct{ n atomic.Int64 }

// next returns 0, 1, 2 …
func (c *counter) next() int { return int(c.n.Add(1) - 1) }

var timeoutRequirements = []string{
	"lifecycle.timeout.established", "lifecycle.timeout.cancel", "lifecycle.timeout.stop-waiting",
	"lifecycle.error.request-timeout", "tools.client.timeouts", "http.client.cancel-explicit",
}

var timeScenarios = []*Scenario{
	{
		Name: "time/silence", Patient: true, Requirements: timeoutRequirements,
		Needs:   "the client sent no request after the handshake that could be left unanswered",
		Options: hushed(func(string) bool { return true }, nil),
		Judge:   func(t *T) { judgeSilence(t, false) },
	},
	{
		Name: "time/silent-tool", Patient: true, Requirements: timeoutRequirements,
		Needs:   "the client called no tool",
		Options: hushed(func(method string) bool { return method == "tools/call" }, nil),
		Judge:   func(t *T) { judgeSilence(t, true) },
	},
	{
		Name: "time/endless-progress", Patient: true,
		Requirements: []string{"lifecycle.timeout.maximum"},
		Needs:        "the client asked for the progress of no tool call",
		Options: hushed(func(method string) bool { return method == "tools/call" }, func(ctx context.Context, r *server.Request) {
			for step := 1; r.Sleep(ctx, 200*time.Millisecond) == nil; step++ {
				r.Progress(float64(step), 0, "")
			}
		}),
		Judge: func(t *T) {
			for _, x := range t.hushed() {
				if x.Token == nil {
					continue
				}
				if t.Ending.Late && !t.givenUp(x) {
					t.Inconclusive("the client still waited at the time limit of the scenario; a longer --timeout could tell", "lifecycle.timeout.maximum")
					return
				}
				t.Exercised("lifecycle.timeout.maximum")
				return
			}
		},
	},
	{
		Name:         "time/slow",
		Requirements: []string{"cancellation.late-response"},
		Needs:        "the client cancelled no request before its late answer",
		Options: func(*Play) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				AnswerCancelled: true, Breaks: []string{"cancellation.no-response", "cancellation.stop-processing"},
				Methods: map[string]server.Middleware{"tools/call": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					if r.Session.Value("slow", func() any { return new(counter) }).(*counter).next() < slowCalls {
						_ = r.Sleep(r.Session.Context(), time.Second)
					}
					return next(ctx, r)
				}},
			}}
		},
		Judge: func(t *T) {
			for _, x := range t.Requests() {
				if x.Cancelled != nil && x.Response() != nil && x.Response().Seq > x.Cancelled.Seq {
					t.Carries("an answer came although the request had been cancelled", "cancellation.late-response")
				}
			}
		},
	},
}

// slowCalls is how many tool calls of a session are answered slowly.
const slowCalls = 3

// hushed returns options of a server that leaves the first request of some
// methods unanswered. meanwhile, unless nil, runs until the request is
// cancelled or the session ends.
func hushed(which func(method string) bool, meanwhile func(ctx context.Context, r *server.Request)) func(*Play) server.Options {
	return func(*Play) server.Options {
		return server.Options{Behaviour: server.Behaviour{
			Breaks: []string{"base.response.present", "http.server.sse-no-early-close", "lifecycle.timeout.established", "lifecycle.timeout.cancel"},
			Methods: map[string]server.Middleware{"*": func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				mine := new(counter)
				if !operation(r.Method) || !r.Session.Initialized() || !which(r.Method) || r.Session.Value("hushed", func() any { return mine }) != any(mine) {
					return next(ctx, r)
				}
				r.Detach()
				if meanwhile != nil {
					meanwhile(ctx, r)
				}
				<-ctx.Done()
				return server.NoAnswer, nil
			}},
		}}
	}
}

// hushed returns the client's requests that got no answer.
func (t *T) hushed() []*judge.Exchange {
	var all []*judge.Exchange
	for _, x := range t.Requests() {
		if x.Response() == nil {
			all = append(all, x)
		}
	}
	return all
}

// givenUp reports whether the client showed that it waits no longer.
func (t *T) givenUp(x *judge.Exchange) bool {
	if x.Cancelled != nil || t.Ending.Exit != nil {
		return true
	}
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			if e.Conn == x.Request.Conn && e.Seq > x.Request.Seq && e.From == wire.Client &&
				(e.Kind == wire.KindClose && !t.Ending.Late || e.Kind == wire.KindMessage && e.Msg.Kind == wire.Request && operation(e.Msg.Method)) {
				return true
			}
		}
	}
	return false
}

// basic/lifecycle#timeouts
func judgeSilence(t *T, tool bool) {
	open := t.hushed()
	if len(open) == 0 {
		return
	}
	x := open[0]
	ids := []string{"lifecycle.timeout.established", "lifecycle.timeout.stop-waiting", "lifecycle.error.request-timeout"}
	if tool {
		ids = append(ids, "tools.client.timeouts")
	}
	if !t.givenUp(x) {
		t.Inconclusive("the client still waited at the time limit of the scenario; a longer --timeout could tell", timeoutRequirements...)
		return
	}
	t.Exercised(ids...)
	switch {
	case x.Cancelled != nil:
		t.Exercised("lifecycle.timeout.cancel")
		if t.Transport == "http" {
			t.Exercised("http.client.cancel-explicit")
		}
	case t.Ending.Exit != nil && len(open) == len(t.Requests()):
		// The end of the whole client says it as well, to a server that it started.
		t.Inconclusive("the client ended instead", "lifecycle.timeout.cancel", "http.client.cancel-explicit")
	default:
		t.Violation("lifecycle.timeout.cancel", "the client gave "+x.Method()+" up and went on without a cancellation", x.Request)
	}
}
