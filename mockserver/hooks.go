package mockserver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The functions in this file make faults out of the hooks of a behaviour.
// They leave in place what other faults have put there.

type (
	apply  = func(o *server.Options)
	object = map[string]any
	list   = []any
)

// all applies several changes.
func all(changes ...apply) apply {
	return func(o *server.Options) {
		for _, change := range changes {
			change(o)
		}
	}
}

// sending hooks into what is sent.
func sending(hook func(out *server.Outgoing) []*server.Outgoing) apply {
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

// responses changes the responses to requests of a method, errors included.
// "*" stands for all methods.
func responses(method string, change func(out *server.Outgoing)) apply {
	return sending(server.OnResponse(method, func(out *server.Outgoing) []*server.Outgoing {
		change(out)
		return []*server.Outgoing{out}
	}))
}

// resultOf changes the result of a method, where it has one.
func resultOf(method string, result any) apply {
	return responses(method, func(out *server.Outgoing) {
		if _, has := out.Message["result"]; has {
			out.Message["result"] = result
		}
	})
}

// problems changes error responses to requests of a method. "*" stands for
// all methods.
func problems(method string, change func(out *server.Outgoing, problem object)) apply {
	return responses(method, func(out *server.Outgoing) {
		if problem := out.RPCError(); problem != nil {
			change(out, problem)
		}
	})
}

// results changes the results of a method. "*" stands for all methods.
func results(method string, change func(result object)) apply {
	return wrapping(method, server.Edit(func(_ *server.Request, result map[string]any) { change(result) }))
}

// items changes the items of an array in the results of a method.
func items(method, member string, change func(item object)) apply {
	return wrapping(method, server.EditItems(member, change))
}

// item changes one item of an array in the results of a method, known by the
// value of one of its members.
func item(method, member, key, value string, change func(item object)) apply {
	return items(method, member, func(item object) {
		if item[key] == value {
			change(item)
		}
	})
}

// called changes the results of one tool.
func called(tool string, change func(result object)) apply {
	return wrapping("tools/call", server.Named(tool,
		server.Edit(func(_ *server.Request, result map[string]any) { change(result) })))
}

// blocks changes the content blocks of one tool's results.
func blocks(tool string, change func(block object)) apply {
	return wrapping("tools/call", server.Named(tool, server.EditItems("content", change)))
}

// texts changes the texts in the content of what a tool returns.
func texts(tool string, change func(text string) string) apply {
	return blocks(tool, func(block object) {
		if text, ok := block["text"].(string); ok {
			block["text"] = change(text)
		}
	})
}

// inbound changes messages as they are read.
func inbound(change func(raw []byte) []byte) apply {
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

// wrapping puts a middleware around a method.
func wrapping(method string, m server.Middleware) apply {
	return func(o *server.Options) { o.Behaviour.Wrap(method, m) }
}

// refusing answers the requests of a method that fit with an error.
func refusing(method string, code int64, fits func(r *server.Request) bool) apply {
	return wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if fits(r) {
			return nil, &wire.Error{Code: code, Message: "Refused"}
		}
		return next(ctx, r)
	})
}

// answering answers the requests of a method that fit with a result of its own,
// server.NoAnswer among them.
func answering(method string, result any, fits func(r *server.Request) bool) apply {
	return wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if !fits(r) {
			return next(ctx, r)
		}
		if o, ok := result.(object); ok {
			return copied(o), nil
		}
		return result, nil
	})
}

// copied returns a deep copy of what JSON can hold.
func copied(o object) object {
	out := server.Outgoing{Message: o}
	return out.Clone().Message
}

// recoding changes the code of a method's errors.
func recoding(method string, from, to int64) apply {
	return wrapping(method, server.Recode(from, to))
}

// messages changes requests and notifications of a method.
func messages(method string, change func(out *server.Outgoing)) apply {
	return sending(server.OnMessage(method, func(out *server.Outgoing) []*server.Outgoing {
		change(out)
		return []*server.Outgoing{out}
	}))
}

// params changes the params of requests and notifications of a method.
func params(method string, change func(params object)) apply {
	return messages(method, func(out *server.Outgoing) {
		p := out.Params()
		if p == nil {
			p = object{}
			out.Message["params"] = p
		}
		change(p)
	})
}

// dropping holds back all messages of a method.
func dropping(method string) apply {
	return sending(server.OnMessage(method, func(*server.Outgoing) []*server.Outgoing { return nil }))
}

// firstOnly holds back all messages of a method but the first one of a session.
func firstOnly(method string) apply {
	return sending(server.OnMessage(method, func(out *server.Outgoing) []*server.Outgoing {
		if once(out.Session, method) {
			return []*server.Outgoing{out}
		}
		return nil
	}))
}

// tellingEarly has a tool tell of the change that it makes some time before it makes it, and not when it has.
func tellingEarly(tool, method string, tell func(s *server.Session)) apply {
	return all(
		wrapping("tools/call", server.Named(tool,
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				tell(r.Session)
				r.Detach()
				<-time.After(100 * time.Millisecond)
				return next(ctx, r)
			})),
		sending(server.OnMessage(method, func(out *server.Outgoing) []*server.Outgoing {
			if count(out.Session, method)%2 == 0 {
				return nil
			}
			return []*server.Outgoing{out}
		})),
	)
}

// receiving hooks into what is received.
func receiving(hook func(s *server.Session, m *wire.Message, next func())) apply {
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

// framing changes the bytes of messages.
func framing(hook func(out *server.Outgoing, frame []byte) []byte) apply {
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

// ready runs once the client has finished the handshake.
func ready(hook func(s *server.Session)) apply {
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

// without leaves out capabilities, and what belongs to them.
func without(capabilities ...string) apply {
	return func(o *server.Options) { o.Without = append(slices.Clip(o.Without), capabilities...) }
}

// undeclared serves a capability without declaring it.
func undeclared(capability string) apply {
	return results("initialize", func(result object) { delete(result["capabilities"].(object), capability) })
}

// offering changes what the server offers.
func offering(change func(c *server.Catalogue)) apply {
	return func(o *server.Options) {
		if o.Catalogue == nil {
			o.Catalogue = server.DefaultCatalogue()
		}
		change(o.Catalogue)
	}
}

// lacking removes a member.
func lacking(name string) func(object) {
	return func(o object) { delete(o, name) }
}

// having sets a member.
func having(name string, value any) func(object) {
	return func(o object) { o[name] = value }
}

// flood is more messages than a limiter lets pass within a second.
const flood = 1200

// always fits every request.
func always(*server.Request) bool { return true }

// once reports true the first time in a session.
func once(s *server.Session, key string) bool {
	first := s.Value(onceKey(key), func() any { return make(chan struct{}, 1) }).(chan struct{})
	select {
	case first <- struct{}{}:
		return true
	default:
		return false
	}
}

type onceKey string

// text returns the JSON text of a message; "" when it has none.
func text(message object) string {
	raw, err := json.Marshal(message)
	if err != nil {
		return ""
	}
	return string(raw)
}
