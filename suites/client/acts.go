package client

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// SilentTo reports whether a request of the script was not answered while the client
// was running.
func (t *T) SilentTo(x *judge.Exchange) bool {
	return x != nil && x.Response == nil && t.SilentUntil(x.Request, nil)
}

// SilentUntil reports whether an answer was missing in time after a request of the script, and before an event unless
// that is nil.
func (t *T) SilentUntil(request, until *wire.Event) bool {
	return slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return slices.ContainsFunc(c.Events, func(e *wire.Event) bool {
			return e.Kind == wire.KindTimeout && e.Conn == request.Conn && e.Seq > request.Seq &&
				(until == nil || e.Seq < until.Seq)
		})
	})
}

// RequestsAfter reports whether the client has sent a request after an event.
func (t *T) RequestsAfter(c *judge.Conversation, after *wire.Event) bool {
	return slices.ContainsFunc(RequestsOf(c), func(x *judge.Exchange) bool { return x.Request.Seq > after.Seq })
}

// Sent returns the client's first request of a method, or nil.
func (t *T) Sent(method string) *judge.Exchange {
	for _, x := range t.Requests() {
		if x.Method() == method {
			return x
		}
	}
	return nil
}

// Unanswered returns the client's requests that got no answer before it gave them up.
func (t *T) Unanswered() []*judge.Exchange {
	var all []*judge.Exchange
	for _, x := range t.Requests() {
		if x.Response == nil || x.Cancelled != nil && x.Response.Seq > x.Cancelled.Seq {
			all = append(all, x)
		}
	}
	return all
}

// gaveUp reports whether the client was kept waiting, and has shown that it gives up.
func (t *T) gaveUp() bool {
	open := t.Unanswered()
	return t.Scenario.Lane == Waiting && len(open) > 0 && t.GivenUp(open[0])
}

// Acts returns the acts of the client in some scenarios that hints ask for, as [schema.Hint] names them. A client that
// has given up a request needs nobody to state its time.
func Acts(runs []*T) []string {
	acts := make(map[string]bool)
	for _, t := range runs {
		for _, c := range t.Conversations {
			for _, e := range c.Messages {
				acts[e.Msg.Method] = acts[e.Msg.Method] || e.From == wire.Client
			}
		}
		for _, x := range t.Requests() {
			acts["progressToken"] = acts["progressToken"] || x.Token != nil
		}
		acts["--gives-up-after"] = acts["--gives-up-after"] || t.gaveUp()
	}
	maps.DeleteFunc(acts, func(_ string, seen bool) bool { return !seen })
	return slices.Sorted(maps.Keys(acts))
}

// GivenUp reports whether the client has shown that it no longer waits.
func (t *T) GivenUp(x *judge.Exchange) bool {
	if x.Cancelled != nil || t.Ending.Exit != nil || t.WentOn(x) != nil {
		return true
	}
	for _, c := range t.Conversations {
		for _, e := range c.Events {
			if e.Conn == x.Request.Conn && e.Seq > x.Request.Seq && e.From == wire.Client && e.Kind == wire.KindClose &&
				!t.Ending.Late {
				return true
			}
		}
	}
	return false
}

// pause is the time after which a further request shows that the client no longer waits for the one before. A client
// may send requests at shorter intervals concurrently.
const pause = 250 * time.Millisecond

// WentOn returns the request with which the client continued without an answer to another one, or nil. A client that
// had further requests under way may still wait.
func (t *T) WentOn(x *judge.Exchange) *wire.Event {
	for _, y := range t.Requests() {
		switch {
		case y == x, y.Request.Conn != x.Request.Conn:
		case y.Request.Seq > x.Request.Seq:
			if y.Request.At-x.Request.At >= pause {
				return y.Request
			}
			return nil
		case y.Response == nil, y.Response.Seq > x.Request.Seq:
			return nil
		}
	}
	return nil
}

// GiveUpDelay is the delay with which a client may give up later than it should.
const GiveUpDelay = 2 * time.Second

// Renewals is a factor: a client waits for ever if it waits so many times as long with progress as without
// (docs/positions.md, renewed-timeout).
const Renewals = 4

// TookToGiveUp returns how long the client waited for a call before it gave up, in the scenario that this one
// follows. It returns 0 if that is not known, also if a person may have ended the client.
func (t *T) TookToGiveUp() time.Duration {
	if t.Preceding == nil || t.Preceding.Ending.Attended || !t.Preceding.gaveUp() {
		return 0
	}
	x := t.Preceding.Unanswered()[0]
	events := t.Preceding.ConversationOf(x).Events
	sign := events[len(events)-1]
	if x.Cancelled != nil {
		sign = x.Cancelled
	} else if next := t.Preceding.WentOn(x); next != nil {
		sign = next
	}
	return sign.At - x.Request.At
}

// ConversationOf returns the conversation of an exchange.
func (t *T) ConversationOf(x *judge.Exchange) *judge.Conversation {
	for _, c := range t.Conversations {
		if c.Log.ID == x.Request.Conn {
			return c
		}
	}
	return nil
}

// HeardSince reports whether the client sent any message after an event.
func (t *T) HeardSince(e *wire.Event) bool {
	return slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return slices.ContainsFunc(c.Messages, func(m *wire.Event) bool { return m.From == wire.Client && m.At > e.At })
	})
}
