// Package hooks has what faults and oddities of servers are made of: functions that change one thing in what the
// reference server does, and what several of them know of its requests and sessions.
//
// The names are imported with a dot, so that a row of a catalogue reads as a sentence:
//
//	Apply: Refusing("ping", server.MethodNotFound, Always),
//
// Package clienthooks is its twin for clients.
package hooks

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/members"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The functions in this file change the behaviour of a server. They keep the changes that were made before.

type (
	apply  = func(o *server.Options)
	object = map[string]any
	list   = []any
)

// All applies several changes.
func All(changes ...apply) apply {
	return func(o *server.Options) {
		for _, change := range changes {
			change(o)
		}
	}
}

// Sending hooks into what is sent.
func Sending(hook func(out *server.Outgoing) []*server.Outgoing) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Send
		o.Behaviour.Send = func(out *server.Outgoing) []*server.Outgoing {
			if before == nil {
				return hook(out)
			}
			var sent []*server.Outgoing
			for _, out := range before(out) {
				sent = append(sent, hook(out)...)
			}
			return sent
		}
	}
}

// Altering changes all that is sent.
func Altering(change func(out *server.Outgoing)) apply {
	return Sending(func(out *server.Outgoing) []*server.Outgoing {
		change(out)
		return []*server.Outgoing{out}
	})
}

// WithholdingAny holds back what fits of all that is sent.
func WithholdingAny(fits func(out *server.Outgoing) bool) apply { return Sending(keeping(fits)) }

// Withholding holds back the requests and notifications of a method that fit.
func Withholding(method string, fits func(out *server.Outgoing) bool) apply {
	return Sending(server.OnMessage(method, keeping(fits)))
}

// WithholdingAnswers holds back the responses to requests of a method that fit.
func WithholdingAnswers(method string, fits func(out *server.Outgoing) bool) apply {
	return Sending(server.OnResponse(method, keeping(fits)))
}

func keeping(fits func(out *server.Outgoing) bool) func(out *server.Outgoing) []*server.Outgoing {
	return func(out *server.Outgoing) []*server.Outgoing {
		if fits(out) {
			return nil
		}
		return []*server.Outgoing{out}
	}
}

// Responses changes the responses to requests of a method, errors included.
// "*" stands for all methods.
func Responses(method string, change func(out *server.Outgoing)) apply {
	return Sending(server.OnResponse(method, func(out *server.Outgoing) []*server.Outgoing {
		change(out)
		return []*server.Outgoing{out}
	}))
}

// ResultOf changes the result of a method, where it has one.
func ResultOf(method string, result any) apply {
	return Responses(method, func(out *server.Outgoing) {
		if _, has := out.Message["result"]; has {
			out.Message["result"] = result
		}
	})
}

// Problems changes error responses to requests of a method. "*" stands for
// all methods.
func Problems(method string, change func(out *server.Outgoing, problem object)) apply {
	return Responses(method, func(out *server.Outgoing) {
		if problem := out.RPCError(); problem != nil {
			change(out, problem)
		}
	})
}

// Results changes the results of a method. "*" stands for all methods.
func Results(method string, change func(result object)) apply {
	return Wrapping(method, server.Edit(func(_ *server.Request, result map[string]any) { change(result) }))
}

// Items changes the items of an array in the results of a method.
func Items(method, member string, change func(item object)) apply {
	return Wrapping(method, server.EditItems(member, change))
}

// Item changes one item of an array in the results of a method, known by the
// value of one of its members.
func Item(method, member, key, value string, change func(item object)) apply {
	return Items(method, member, func(item object) {
		if item[key] == value {
			change(item)
		}
	})
}

// Called changes the results of one tool.
func Called(tool string, change func(result object)) apply {
	return WrappingTool(tool, server.Edit(func(_ *server.Request, result map[string]any) { change(result) }))
}

// Blocks changes the content blocks of one tool's results.
func Blocks(tool string, change func(block object)) apply {
	return WrappingTool(tool, server.EditItems("content", change))
}

// Texts changes the texts in the content of what a tool returns.
func Texts(tool string, change func(text string) string) apply {
	return Blocks(tool, func(block object) {
		if text, ok := block["text"].(string); ok {
			block["text"] = change(text)
		}
	})
}

// Inbound changes messages as they are read.
func Inbound(change func(raw []byte) []byte) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Inbound
		o.Behaviour.Inbound = func(raw []byte) []byte {
			if before != nil {
				raw = before(raw)
			}
			if raw == nil {
				return nil
			}
			return change(raw)
		}
	}
}

// Wrapping puts a middleware around a method.
func Wrapping(method string, m server.Middleware) apply {
	return func(o *server.Options) { o.Behaviour.Wrap(method, m) }
}

// WrappingTool puts a middleware around the calls of a tool.
func WrappingTool(tool string, m server.Middleware) apply {
	return Wrapping("tools/call", server.Named(tool, m))
}

// OnRequest does something with the requests of a method before they are served.
func OnRequest(method string, do func(r *server.Request)) apply {
	return Wrapping(method, beforehand(do))
}

// OnCall does something with the calls of a tool before they are served.
func OnCall(tool string, do func(r *server.Request)) apply { return WrappingTool(tool, beforehand(do)) }

func beforehand(do func(r *server.Request)) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		do(r)
		return next(ctx, r)
	}
}

// Refusing answers the requests of a method that fit with an error.
func Refusing(method string, code int64, fits func(r *server.Request) bool) apply {
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if fits(r) {
			return nil, &wire.Error{Code: code, Message: "Refused"}
		}
		return next(ctx, r)
	})
}

// Answering answers the requests of a method that fit with a result of its own,
// server.NoAnswer among them.
func Answering(method string, result any, fits func(r *server.Request) bool) apply {
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if !fits(r) {
			return next(ctx, r)
		}
		if o, ok := result.(object); ok {
			return Copied(o), nil
		}
		return result, nil
	})
}

// Recoding changes the code of a method's errors.
func Recoding(method string, from, to int64) apply {
	return Wrapping(method, server.Recode(from, to))
}

// Messages changes requests and notifications of a method.
func Messages(method string, change func(out *server.Outgoing)) apply {
	return Sending(server.OnMessage(method, func(out *server.Outgoing) []*server.Outgoing {
		change(out)
		return []*server.Outgoing{out}
	}))
}

// Params changes the params of requests and notifications of a method.
func Params(method string, change func(params object)) apply {
	return Messages(method, func(out *server.Outgoing) {
		p := out.Params()
		if p == nil {
			p = object{}
			out.Message["params"] = p
		}
		change(p)
	})
}

// Dropping holds back all messages of a method.
func Dropping(method string) apply {
	return Sending(server.OnMessage(method, func(*server.Outgoing) []*server.Outgoing { return nil }))
}

// FirstOnly holds back all messages of a method but the first one of a session.
func FirstOnly(method string) apply {
	return Withholding(method, func(out *server.Outgoing) bool {
		return !Once(out.Session, method)
	})
}

// TellingEarly has a tool tell of the change that it makes some time before it makes it, and not when it has.
func TellingEarly(tool, method string, tell func(s *server.Session)) apply {
	return All(
		OnCall(tool, func(r *server.Request) {
			tell(r.Session)
			r.Detach()
			<-time.After(100 * time.Millisecond)
		}),
		Withholding(method, func(out *server.Outgoing) bool {
			return Count(out.Session, method)%2 == 0
		}),
	)
}

// Receiving hooks into what is received.
func Receiving(hook func(s *server.Session, m *wire.Message, next func())) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Receive
		o.Behaviour.Receive = func(s *server.Session, m *wire.Message, next func()) {
			if before == nil {
				hook(s, m, next)
			} else {
				hook(s, m, func() { before(s, m, next) })
			}
		}
	}
}

// Framing changes the bytes of messages.
func Framing(hook func(out *server.Outgoing, frame []byte) []byte) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Frame
		o.Behaviour.Frame = func(out *server.Outgoing, frame []byte) []byte {
			if before != nil {
				frame = before(out, frame)
			}
			return hook(out, frame)
		}
	}
}

// Ready runs once the client has finished the handshake.
func Ready(hook func(s *server.Session)) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Initialized
		o.Behaviour.Initialized = func(ctx context.Context, s *server.Session) {
			if before != nil {
				before(ctx, s)
			}
			hook(s)
		}
	}
}

// Without leaves out capabilities, and what belongs to them.
func Without(capabilities ...string) apply {
	return func(o *server.Options) { o.Without = append(slices.Clip(o.Without), capabilities...) }
}

// Undeclared serves a capability without declaring it.
func Undeclared(capability string) apply {
	return Results("initialize", At("capabilities", Lacking(capability)))
}

// Offering changes what the server offers.
func Offering(change func(c *server.Catalogue)) apply {
	return func(o *server.Options) {
		if o.Catalogue == nil {
			o.Catalogue = server.DefaultCatalogue()
		}
		change(o.Catalogue)
	}
}

// What changes an object: see package members.
var (
	Lacking    = members.Lacking
	Having     = members.Having
	Defaulting = members.Defaulting
	Renamed    = members.Renamed
	At         = members.At
	Copied     = members.Copied
)

// Flood is more messages than a limiter lets pass within a second.
const Flood = 1200

// Always fits every request.
func Always(*server.Request) bool { return true }

// Text returns the JSON text of a message; "" when it has none.
func Text(message object) string {
	raw, err := json.Marshal(message)
	if err != nil {
		return ""
	}
	return string(raw)
}
