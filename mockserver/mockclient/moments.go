package mockclient

import (
	"encoding/json"
	"slices"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const (
	rootsList      = "roots/list"
	createMessage  = "sampling/createMessage"
	createForm     = "elicitation/create"
	cancelledNews  = "notifications/cancelled"
	unknownRequest = "com.example/no-such-method"
)

// momentFaults show in one order, or at one moment.
var momentFaults = []Fault{
	fault("ping.refused-when-busy", ids.PingResponsePrompt, "A ping is refused while another one waits for its answer.",
		Busily(Refusing(Replies("a word")))).Seen(atOnce).In("exchange/beside").
		Also(ids.BaseRequestStringIDServed, ids.PingEitherSide, ids.BaseParamsOmitted),
	fault("moments.roots-refused-after-change", ids.RootsListAnswered,
		"Right after the news of a changed list roots/list is refused.",
		atMoment(rootsList, rightAfter(func(_ *wire.Conversation, e *wire.Event) bool {
			return slices.Contains([]string{"notifications/tools/list_changed", "notifications/prompts/list_changed",
				"notifications/resources/list_changed"}, e.Msg.Method)
		}), refused(-32602, "Invalid params"))).Seen(inSequence).In(Sequences),
	fault("moments.error-sticks", ids.RootsListAnswered,
		"Right after a request of an unknown method roots/list is refused as unknown.",
		atMoment(rootsList, behindRequest(unknownRequest), refused(-32601, "Method not found"))).
		Seen(inSequence).In(Sequences),
	fault("moments.sampling-lost-behind-form", ids.BaseResponsePresent,
		"A sampling request that comes right behind a form gets no response.",
		atMoment(createMessage, behindRequest(createForm), unanswered)).Seen(inSequence).In(Sequences),
	fault("moments.form-lost-behind-log", ids.BaseResponsePresent,
		"A form that comes right behind a log message gets no response.",
		atMoment(createForm, rightAfter(func(_ *wire.Conversation, e *wire.Event) bool {
			return e.Msg.Method == "notifications/message"
		}), unanswered)).Seen(inSequence).In(Sequences),
	fault("moments.ping-refused-after-late-cancellation", ids.PingEitherSide,
		"Right after the cancellation of a request that was answered a ping whose id is an integer is refused as "+
			"cancelled.", atMoment("ping", func(c *wire.Conversation, request *wire.Event) bool {
			return !strings.HasPrefix(request.Msg.ID.Key(), `"`) && rightAfter(cancelsEnded)(c, request)
		}, refused(-32800, "Request cancelled"))).Seen(inSequence).In(Sequences),
	fault("moments.form-refused-after-cancellation", ids.ElicitationCapabilityHonoured,
		"Right after the cancellation of a request that was never made a form is refused.",
		atMoment(createForm, rightAfter(func(c *wire.Conversation, e *wire.Event) bool {
			return e.Msg.Method == cancelledNews && c.Newest(wire.Server, cancelsID(e)) == nil
		}), refused(-32602, "Invalid params"))).Seen(inSequence).In(Sequences),
	fault("moments.late-cancellation-deafens", ids.BaseResponsePresent,
		"After the cancellation of a form that was answered nothing is answered any more.",
		Withholding(func(conn transport.Conn, m *wire.Message) bool {
			return m.IsResponse() && slices.ContainsFunc(conn.Log().Events(),
				func(e *wire.Event) bool { return cancelsForm(conn, e) })
		})).Seen(inSequence).In(Sequences),
	fault("moments.late-cancellation-death", ids.BaseResponsePresent,
		"The cancellation of a form that was answered ends the client.",
		DyingOn(cancelsForm)).Seen(inSequence).In(Sequences).Also(ids.CancellationIgnoreCompleted),
}

// moment reports whether a request comes at a moment that a fault is about.
type moment = func(c *wire.Conversation, request *wire.Event) bool

// atMoment replaces the answers to requests of a method that come at a moment.
func atMoment(method string, at moment, by func(id wire.ID) []outgoing) apply {
	return answeringAt(func(c *wire.Conversation, request *wire.Event) bool {
		return request.Msg.Method == method && at(c, request)
	}, by)
}

// answeringAt replaces the answers to requests that come at a moment.
func answeringAt(at moment, by func(id wire.ID) []outgoing) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if m.IsResponse() {
			c := conn.Log().Conversation()
			if x := c.Newest(wire.Server, m.ID); x != nil && at(c, x.Request) {
				return by(m.ID)
			}
		}
		return []outgoing{out}
	})
}

// rightAfter is when the last message of the server before is of a kind.
func rightAfter(is moment) moment {
	return func(c *wire.Conversation, request *wire.Event) bool {
		last := lastBefore(c, request, Anything)
		return last != nil && is(c, last)
	}
}

// behindRequest is when the last request of the server before is of a method.
func behindRequest(method string) moment {
	return func(c *wire.Conversation, request *wire.Event) bool {
		last := lastBefore(c, request, func(m *wire.Message) bool { return m.Kind == wire.Request })
		return last != nil && last.Msg.Method == method
	}
}

// lastBefore returns the last message of the server before an event that fits, or nil.
func lastBefore(c *wire.Conversation, event *wire.Event, fits match) *wire.Event {
	for _, e := range slices.Backward(c.Messages) {
		if e.Seq < event.Seq && e.From == wire.Server && fits(e.Msg) {
			return e
		}
	}
	return nil
}

// cancelsEnded reports whether a message cancels a request that was answered before.
func cancelsEnded(c *wire.Conversation, e *wire.Event) bool {
	x := c.Newest(wire.Server, cancelsID(e))
	return e.Msg.Method == cancelledNews && x != nil && x.Response != nil && x.Response.Seq < e.Seq
}

// cancelsForm reports whether an event cancels a form that was answered before.
func cancelsForm(conn transport.Conn, e *wire.Event) bool {
	if message(e).Method != cancelledNews {
		return false
	}
	c := conn.Log().Conversation()
	return cancelsEnded(c, e) && c.Newest(wire.Server, cancelsID(e)).Method() == createForm
}

// cancelsID returns the id of the request that a cancellation names.
func cancelsID(e *wire.Event) wire.ID { return wire.ReadID(wire.At(e.Msg.Params, "requestId")) }

func unanswered(wire.ID) []outgoing { return nil }

func refused(code int, message string) func(id wire.ID) []outgoing {
	return func(id wire.ID) []outgoing {
		return []outgoing{{Raw: client.Marshal(object{
			"jsonrpc": "2.0", "id": json.RawMessage(id.String()), "error": object{"code": code, "message": message},
		})}}
	}
}
