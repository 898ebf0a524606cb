package mockclient

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

const (
	cutStream = "http/cut-stream"
	lost      = "http/lost-session"
)

// familyFaults show with another value than the plain one, in a second session, with two
// requests at the same time or in one order.
var familyFaults = []Fault{
	{
		ID: "http.comment-within-death", Requirement: "http.client.sse-syntax", Transports: overHTTP, Scenario: framed, Form: mockserver.ByValue,
		Summary: "A comment between the fields of an event ends the client.",
		Apply:   dyingOfBytes(": between"),
	},
	{
		ID: "http.retry-number-required", Requirement: "http.client.sse-syntax", Transports: overHTTP, Scenario: framed, Form: mockserver.ByValue,
		Summary: "A field retry that is not a number ends the client.",
		Apply:   dyingOfBytes("retry: soon"),
	},
	{
		ID: "http.type-carried-over", Requirement: "http.client.sse-syntax", Transports: overHTTP, Scenario: framed, Form: mockserver.ByValue,
		Summary: "The type of a block without data is that of the next event, which is ignored.",
		Apply:   dropping(replies("event: a block with a type alone before it")),
	},
	{
		ID: "http.legacy-carriage-returns-death", Requirement: "sse.client.message-events", Transports: []string{transport.NameSSE}, Scenario: framed, Form: mockserver.ByValue,
		Summary: "Lines of an event stream of the older transport that end in CR alone end the client.",
		Apply:   dyingOfBytes("}\r\r"),
	},
	{
		ID: "http.empty-event-death", Requirement: "http.client.sse-syntax", WarnOnly: true, Transports: overHTTP, Scenario: framed, Form: mockserver.ByValue,
		Summary: "An event whose data is empty ends the client.",
		Apply:   dyingOfBytes("id: primed"),
	},
	{
		ID: "stdio.line-of-64k-death", Requirement: "stdio.message.large", Transports: overStdio, Scenario: framed, Form: mockserver.ByValue,
		Summary:    "A line that is longer than 64 KiB ends the client.",
		Apply:      dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 64<<10 }),
		Collateral: []string{"base.response.present"},
	},
	{
		ID: "http.json-capitals-death", Requirement: "http.client.json-answer", Transports: overHTTP, Scenario: "http/json-answers", Form: mockserver.ByValue,
		Summary: "A JSON answer whose Content-Type has capitals ends the client.",
		Apply:   dyingOfHead("Content-Type", "Application/JSON"),
	},
	{
		ID: "logging.false-data-death", Requirement: "logging.message.any-data", Scenario: notifications, Form: mockserver.ByValue,
		Summary: "A log message whose data is false, zero, null or empty ends the client.",
		Apply: dying(func(e *wire.Event) bool {
			params, _ := message(e).Params.(object)
			data, ok := params["data"]
			number, isNumber := number(data)
			return ok && (data == nil || data == false || data == "" || isNumber && number == 0)
		}),
		Collateral: []string{"base.response.present"},
	},
	{
		ID: "logging.large-number-death", Requirement: "logging.message.any-data", Scenario: notifications, Form: mockserver.ByValue,
		Summary:    "A log message whose data is a number beyond 64 bits ends the client.",
		Apply:      dyingOf("notifications/message", "123456789012345678901234567890"),
		Collateral: []string{"base.response.present"},
	},
	{
		ID: "meta.text-inherited-refused", Requirement: "meta.attach.request", Scenario: requests, Form: mockserver.ByValue,
		Summary: "A ping with the text __proto__ in its _meta is refused.",
		Apply:   refusing(replies("text: a name of JavaScript")),
	},
	{
		ID: "progress.large-death", Requirement: "progress.notify", Scenario: "features/progress", Form: mockserver.ByValue,
		Summary: "Progress beyond 64 bits ends the client.",
		Apply: dying(func(e *wire.Event) bool {
			value, ok := number(wire.At(message(e).Params, "progress"))
			return ok && value > 1e19
		}),
		Collateral: []string{"progress.frequency", "progress.omit-total", "progress.total-float", "progress.value-float"},
	},
	{
		ID: "tools.recursive-schema-death", Requirement: "tools.input-schema.any-keyword", Scenario: "lists/schemas", Form: mockserver.ByValue,
		Summary: "A tool whose schema refers to itself ends the client.",
		Apply:   dyingOf(`"$ref":"#"`),
	},
	{
		ID: "elicitation.required-required", Requirement: "elicitation.schema.client-supports", Scenario: elicitation, Form: mockserver.ByValue,
		Summary: "A form in which nothing is required is refused.",
		Apply:   rejecting(replies("elicitation-optional")),
	},
	{
		ID: "elicitation.names-required", Requirement: "elicitation.schema.client-supports", Scenario: elicitation, Form: mockserver.ByValue,
		Summary: "An enum without names for its values is refused.",
		Apply:   rejecting(replies("elicitation-bare-enum")),
	},
	{
		ID: "sampling.empty-prompt-refused", Requirement: "sampling.request.optional-members", Scenario: sampling, Form: mockserver.ByValue,
		Summary: "A sampling request whose system prompt is empty is refused.",
		Apply:   rejecting(replies("sampling-option-1")),
	},
	{
		ID: "cancellation.of-all", Requirement: "base.response.present", Scenario: rootsSeen, Form: mockserver.AtOnce,
		Summary: "The cancellation of a request ends all requests that are open.",
		Apply: all(wrapping(func(conn transport.Conn) transport.Conn {
			return &sender{Conn: conn, hook: func(m *wire.Message, out outgoing) []outgoing {
				if !m.IsResponse() {
					return []outgoing{out}
				}
				conversation := conn.Log().Conversation()
				x := conversation.Newest(wire.Server, m.ID)
				if x != nil && slices.ContainsFunc(conversation.Exchanges, func(y *wire.Exchange) bool {
					return y.From() == wire.Server && y.Cancelled != nil && y.Cancelled.Seq > x.Request.Seq
				}) {
					return nil
				}
				return []outgoing{out}
			}}
		}), pausing(replies(keptIDs()...), 20*time.Millisecond)),
	},
	{
		ID: "http.second-session-unannounced", Requirement: "lifecycle.init.initialized-sent", Transports: overHTTP, Scenario: lost, Form: mockserver.BySession,
		Summary: "In the session that follows a lost one the client does not send initialized.",
		Apply: func(c *client.Standalone) {
			n := 0
			sending(calls("notifications/initialized"), func(_ *wire.Message, out outgoing) []outgoing {
				if n++; n > 1 {
					return nil
				}
				return []outgoing{out}
			})(c)
		},
		Collateral: []string{"lifecycle.init.initialized-before-operation"},
	},
	{
		ID: "http.second-session-bare", Requirement: "lifecycle.init.request-client-info", Transports: overHTTP, Scenario: lost, Form: mockserver.BySession,
		Summary: "The initialize that follows a lost session has no clientInfo.",
		Apply: func(c *client.Standalone) {
			n := 0
			params("initialize", func(p object) {
				if n++; n > 1 {
					delete(p, "clientInfo")
				}
			})(c)
		},
		Collateral: []string{"schema.initialize-request"},
	},
	{
		ID: "http.second-session-unversioned", Requirement: "http.client.version-header", Transports: overHTTP, Scenario: lost, Form: mockserver.BySession,
		Summary: "Requests in the session that follows a lost one lack MCP-Protocol-Version.",
		Apply: func(c *client.Standalone) {
			var first atomic.Pointer[string]
			heads(func(h *head) {
				id := h.get("Mcp-Session-Id")
				if id == "" {
					return
				}
				if !first.CompareAndSwap(nil, &id) && *first.Load() != id {
					h.set("Mcp-Protocol-Version")
				}
			})(c)
		},
	},
	{
		ID: "http.second-session-unnamed", Requirement: "http.client.session-header", Transports: overHTTP, Scenario: lost, Form: mockserver.BySession,
		Summary: "Requests in the session that follows a lost one lack Mcp-Session-Id.",
		Apply: func(c *client.Standalone) {
			raw := connectionOf(c)
			first := ""
			sending(later, func(_ *wire.Message, out outgoing) []outgoing {
				id := raw().SessionID()
				if first == "" {
					first = id
				}
				if id != first {
					out.Header = http.Header{"Mcp-Session-Id": nil}
				}
				return []outgoing{out}
			})(c)
		},
	},
	{
		ID: "progress.token-kept", Requirement: "progress.token.unique", Scenario: requests, Form: mockserver.AtOnce,
		Summary: "Two requests that are open at the same time have one progress token.",
		Apply: further("tools", func(ctx context.Context, s *client.Session) {
			meta := object{"progressToken": "kept"}
			together(ctx, s, "tools/call", slowCall(0.2, meta), slowCall(0.2, meta))
		}),
	},
	{
		ID: "pagination.forgets-in-change", Requirement: "pagination.client.cursor-unmodified", Transports: overHTTP, Scenario: "lists/pages", Form: mockserver.InSequence,
		Summary: "A client that learns that a list has changed while it reads it goes on with a cursor of its own.",
		Apply: wrapping(func(conn transport.Conn) transport.Conn {
			return &sender{Conn: conn, hook: func(m *wire.Message, out outgoing) []outgoing {
				if cursor, ok := wire.At(m.Params, "cursor").(string); ok && heard(conn, "list_changed") {
					out.Raw = []byte(strings.Replace(string(out.Raw), string(client.Marshal(cursor)), `"0"`, 1))
				}
				return []outgoing{out}
			}}
		}),
	},
}

// keptIDs are the ids of pings that are open while others are cancelled.
func keptIDs() []any {
	var ids []any
	for _, n := range "0123456789" {
		ids = append(ids, "ping-kept-"+string(n))
	}
	return ids
}
