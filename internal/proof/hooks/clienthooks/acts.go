package clienthooks

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Pausing waits before it sends messages.
func Pausing(which match, pause time.Duration) apply {
	return Sending(which, func(_ *wire.Message, out outgoing) []outgoing {
		<-time.After(pause)
		return []outgoing{out}
	})
}

// Obedient leaves requests without an answer that the server has cancelled.
var Obedient = Withholding(func(conn transport.Conn, m *wire.Message) bool {
	if m.IsResponse() {
		if x := conn.Log().Conversation().Newest(wire.Server, m.ID); x != nil && x.Cancelled != nil {
			return true
		}
	}
	return false
})

// Delaying takes its time for the answers to requests of methods.
func Delaying(pause time.Duration, methods ...string) apply {
	return Changing(func(o *client.Options) {
		for _, method := range methods {
			serve := o.Answers[method]
			if serve == nil {
				continue
			}
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				if !Passes(ctx, pause) {
					return nil, nil
				}
				return serve(ctx, params)
			}
		}
	})
}

// Passes waits, and reports whether the time passed before the context ended.
func Passes(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// Further does something before the client leaves, if the server has a capability.
func Further(capability string, action func(ctx context.Context, s *client.Session)) apply {
	return Doing(func(ctx context.Context, s *client.Session) {
		if s.Capability(capability) {
			action(ctx, s)
		}
	})
}

// Together makes several requests at the same time and waits for the answers, that to
// the last one first.
func Together(ctx context.Context, s *client.Session, method string, params ...any) {
	var pending []*client.Pending
	for _, p := range params {
		if x, err := s.Start(ctx, method, p); err == nil {
			pending = append(pending, x)
		}
	}
	for _, x := range slices.Backward(pending) {
		_, _ = x.Await(ctx)
	}
}

// SlowCall are params of a tool call that takes some seconds.
func SlowCall(seconds float64, meta object) object {
	call := object{"name": "slow", "arguments": object{"seconds": seconds}}
	if meta != nil {
		call["_meta"] = meta
	}
	return call
}

// Slowly takes three seconds for the answer to requests of a method that hold a text.
func Slowly(method, text string) apply {
	return Changing(func(o *client.Options) {
		serve := o.Answers[method]
		o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
			if bytes.Contains(client.Marshal(params), []byte(text)) && !Passes(ctx, 3*time.Second) {
				return nil, nil
			}
			return serve(ctx, params)
		}
	})
}

// DeclaringOnce declares nothing in any initialize but the first.
func DeclaringOnce(c *client.Standalone) {
	again := false
	Params("initialize", func(p object) {
		if again {
			p["capabilities"] = object{}
		}
		again = true
	})(c)
}

// Impatient soon stops waiting for an answer.
func Impatient(c *client.Standalone) { c.Timeout = 300 * time.Millisecond }
