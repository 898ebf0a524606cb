package mockclient

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// threadFaults were reported to the authors of real clients. Each names the thread.
var threadFaults = []Fault{
	// https://github.com/profullstack/sh1pt/issues/705
	{ID: "http.lines-death", Requirement: ids.HTTPClientSSESyntax, Scenario: "http/sse-crlf", Transports: OverHTTP,
		Summary:    "An event whose data comes in several lines ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, ",\n\"")
		})},
	// https://github.com/simonx1/ruby-mcp-client/pull/159
	{ID: "elicitation.answer-invented", Requirement: ids.BaseResponsePresent, Scenario: Elicitation,
		Summary: "An elicitation is answered by a notification that the client invented.",
		Apply: replying("elicitation/create", func(_ *wire.Event, m *wire.Message, _ outgoing) []outgoing {
			return []outgoing{{Raw: client.Marshal(object{
				"jsonrpc": "2.0", "method": "elicitation/response",
				"params": object{"elicitationId": m.ID.String(), "result": m.Result},
			})}}
		})},
	// https://github.com/simonx1/ruby-mcp-client/pull/162
	{ID: "http.session-id-alphabet", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.ByValue,
		Scenario: "http/delete", Transports: OverHTTP,
		Summary: "A session id that holds more than letters, digits, hyphens and underscores is not sent back.",
		Apply: func(c *client.Standalone) {
			raw := ConnectionOf(c)
			Sending(Later, func(_ *wire.Message, out outgoing) []outgoing {
				if raw() != nil && strings.ContainsFunc(raw().SessionID(), func(r rune) bool {
					return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
				}) {
					out.Header = http.Header{"Mcp-Session-Id": nil}
				}
				return []outgoing{out}
			})(c)
		}},
	// https://github.com/modelcontextprotocol/python-sdk/issues/1672
	{ID: "http.empty-data-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverHTTP, Summary: "An event that has an id and no data ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.HasID && len(e.Raw) == 0
		})},
	// https://github.com/langchain4j/langchain4j/issues/3697
	{ID: "http.data-in-data-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverHTTP, Summary: "The text data: within a message on an event stream ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, "data:")
		})},
	// https://github.com/modelcontextprotocol/typescript-sdk/pull/2809
	{ID: "http.second-cut-unnamed", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: CutStream, Transports: OverHTTP,
		Summary: "A resumed stream that is cut before its first event is resumed without Last-Event-ID.",
		Apply: Changing(func(o *client.Options) {
			resume, resumed := o.Resuming, ""
			o.Resuming = func(last string) (string, bool) {
				if last != "" && last == resumed {
					last = ""
				}
				resumed = last
				return resume(last)
			}
		})},
	// https://github.com/modelcontextprotocol/java-sdk/issues/1136
	{ID: "http.unicode-lines-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: Framed, Transports: OverHTTP,
		Summary: "A line separator of Unicode in the data of an event ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil &&
				slices.ContainsFunc([]string{"\u2028", "\u2029", "\u0085"},
					func(s string) bool { return ContainsText(e, s) })
		})},
	// https://github.com/anthropics/anthropic-sdk-typescript/issues/882
	{ID: "stdio.paragraph-separator-death", Requirement: ids.StdioMessageOnlyNewlineDelimits,
		Form: mockserver.ByValue, Scenario: Framed, Transports: OverStdio,
		Summary:    "A paragraph separator of Unicode within a message ends the client.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: DyingOf("\u2029")},
	// https://github.com/vercel/ai/pull/15701
	{ID: "ping.unknown", Requirement: ids.PingResponsePrompt, Scenario: Requests,
		Summary: "A ping is refused as an unknown method.", Collateral: []string{ids.PingEitherSide},
		Apply: replying("ping", func(_ *wire.Event, m *wire.Message, _ outgoing) []outgoing {
			return []outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() +
				`,"error":{"code":-32601,"message":"Method not found"}}`)}}
		})},
	// https://github.com/vercel/ai/pull/16353
	{ID: "logging.message-death", Requirement: ids.LoggingMessageLoggerOptional, Scenario: plainContent,
		Summary: "A log message ends the client.", Collateral: []string{ids.LoggingDefaultServerDecides},
		Apply: DyingOf("notifications/message")},
	// https://github.com/langchain4j/langchain4j/issues/4282
	{ID: "resources.template-closed", Requirement: ids.BaseResponseResultOpen, Form: mockserver.ByValue,
		Scenario: "exchange/open-results",
		Summary:  "A member of a resource template that the client does not know ends it.",
		Apply: dyingOfMember("resourceTemplates", "uriTemplate", "name", "title", "description", "mimeType",
			"annotations", "_meta")},
	// https://github.com/modelcontextprotocol/java-sdk/issues/76
	{ID: "lifecycle.server-info-closed", Requirement: ids.BaseResponseResultOpen, Form: mockserver.ByValue,
		Scenario: "exchange/open-results",
		Summary:  "A member of serverInfo that the client does not know ends it.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage &&
				unknownMember(wire.At(e.Msg.Result, "serverInfo"), "name", "title", "version")
		})},
	// https://github.com/modelcontextprotocol/java-sdk/issues/748
	{ID: "http.accepted-typed-death", Requirement: ids.HTTPClientAccepted, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverHTTP, Summary: "202 with a Content-Type ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusAccepted &&
				e.HTTP.Header.Get("Content-Type") != ""
		})},
	// https://github.com/vercel/ai/issues/14413
	{ID: "http.version-not-lowered", Requirement: ids.HTTPClientVersionHeaderNegotiated, Form: mockserver.ByValue,
		Scenario: "lifecycle/older-version", Transports: OverHTTP, WarnOnly: true,
		Summary: "MCP-Protocol-Version is that of the client although an older one was negotiated.",
		Apply: All(
			func(c *client.Standalone) { c.Versions = []string{"2025-03-26", "2024-11-05"} },
			Headers(Later, "Mcp-Protocol-Version", client.Version),
		)},
	// https://github.com/modelcontextprotocol/java-sdk/pull/684
	{ID: "http.get-version-not-lowered", Requirement: ids.HTTPClientVersionHeaderNegotiated,
		Form: mockserver.ByValue, Scenario: "lifecycle/older-version", Transports: OverHTTP, WarnOnly: true,
		Summary: "MCP-Protocol-Version of the GET is that of the client although an older one was negotiated.",
		Apply: All(
			func(c *client.Standalone) { c.Versions = []string{"2025-03-26", "2024-11-05"} },
			Fields(http.MethodGet, "Mcp-Protocol-Version", "Mcp-Protocol-Version: "+client.Version),
		)},
	// https://github.com/BaseIntelligence/bounty-challenge/issues/6313
	{ID: "base.ids-alike", Requirement: ids.BaseResponseIDTypeEcho, Form: mockserver.AtOnce, Scenario: Requests,
		Summary: "Two open requests whose ids differ in their type alone are both answered with the id of " +
			"the later one.",
		Collateral: []string{ids.BaseResponseOnce, ids.BaseResponsePresent},
		Apply: All(SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if !m.IsResponse() {
				return []outgoing{out}
			}
			if last := conn.Log().Conversation().Resembling(wire.Server, m.ID); last != nil {
				out.Raw = bytes.Replace(out.Raw, []byte(m.ID.String()), []byte(last.Request.Msg.ID.String()), 1)
			}
			return []outgoing{out}
		}), Pausing(Answers, 20*time.Millisecond))},
	// https://github.com/modelcontextprotocol/typescript-sdk/issues/966
	{ID: "elicitation.content-null", Requirement: ids.SchemaElicitResult, Scenario: "acts/elicitation",
		Summary:    "The content of an elicitation that was declined is null.",
		Collateral: []string{ids.ElicitationContentOnlyWithAccept},
		Apply: Amending("elicitation/create", func(r object) {
			if r["action"] != "accept" {
				r["content"] = nil
			}
		})},
	// https://github.com/opensolon/solon-ai/issues/58
	{ID: "tools.schema-keyword-death", Requirement: ids.ToolsInputSchemaAnyKeyword, Form: mockserver.ByValue,
		Scenario: "lists/schemas",
		Summary:  "additionalProperties that is an object in the schema of a tool ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			tools, _ := wire.At(message(e).Result, "tools").(list)
			return slices.ContainsFunc(tools, func(tool any) bool {
				_, in := wire.At(tool, "inputSchema", "additionalProperties").(object)
				_, out := wire.At(tool, "outputSchema", "additionalProperties").(object)
				return in || out
			})
		})},
	// https://github.com/modelcontextprotocol/rust-sdk/pull/361
	{ID: "progress.counts-only", Requirement: ids.ProgressValueFloat, Scenario: "features/progress",
		Summary:    "Progress that is not a count ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat},
		Apply: dyingOfProgress(func(value float64) bool {
			return value < 0 || value > math.MaxUint32 || value != math.Trunc(value)
		})},
	// https://github.com/Kuadrant/mcp-gateway/issues/813
	{ID: "http.listens-in-lost-session", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "The GET in a new session names the session that was lost.",
		Apply:   inFirstSession(http.MethodGet)},
	// https://github.com/google-antigravity/antigravity-cli/issues/510
	{ID: "roots.not-encoded", Requirement: ids.SchemaListRootsResult, Form: mockserver.ByValue,
		Scenario: "acts/root-folder",
		Summary:  "A root whose path holds characters beyond ASCII is listed with them as they are.",
		Apply:    Replacing(Results, "%C3%A9", "é")},
	// https://github.com/kirodotdev/Kiro/issues/8960
	{ID: "tools.link-death", Requirement: ids.ToolsResultResourceLinks, Scenario: plainContent,
		Summary: "A link to a resource in the result of a tool ends the client.",
		Apply:   DyingOf(`"resource_link"`)},
	// https://github.com/simonx1/ruby-mcp-client/pull/178
	{ID: "time.sent-again", Requirement: ids.LifecycleTimeoutCancel, Scenario: silence,
		Summary: "A request that is given up is sent again and not cancelled.",
		Apply: All(Impatient, SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if m.Method != "notifications/cancelled" {
				return []outgoing{out}
			}
			for _, e := range conn.Log().Events() {
				if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Kind == wire.Request &&
					string(client.Marshal(wire.At(m.Params, "requestId"))) == e.Msg.ID.String() {
					return []outgoing{{Raw: bytes.Replace(e.Raw, []byte(e.Msg.ID.String()),
						[]byte(`"again-`+e.Msg.ID.String()+`"`), 1)}}
				}
			}
			return nil
		}))},
	// https://github.com/quarkiverse/quarkus-langchain4j/issues/2871
	{ID: "http.data-without-blank-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: Framed, Transports: OverHTTP,
		Summary: "A field of an event stream without a blank behind its colon ends the client.",
		Apply:   dyingOfBytes("\ndata:{")},
	// https://github.com/FellouAI/eko/pull/287
	{ID: "http.carriage-returns-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: Framed, Transports: OverHTTP,
		Summary: "Lines of an event stream that end in CR alone end the client.",
		Apply:   dyingOfBytes("\rdata:", "}\r\r")},
	// https://github.com/ThinkInAIXYZ/go-mcp/pull/136
	{ID: "http.stream-type-death", Requirement: ids.HTTPClientSSEAnswer, Form: mockserver.ByValue,
		Scenario: "http/sse-answers", Transports: OverHTTP,
		Summary:    "A Content-Type of an event stream that is not spelled text/event-stream ends the client.",
		Collateral: []string{ids.HTTPServerEventIDs},
		Apply: Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindHTTPResponse {
				return false
			}
			field := e.HTTP.Header.Get("Content-Type")
			return strings.HasPrefix(strings.ToLower(field), "text/event-stream") && field != "text/event-stream"
		})},
	// https://github.com/punkpeye/mcp-remote/issues/155
	{ID: "ping.once", Requirement: ids.BaseResponsePresent, Form: mockserver.InSequence, Scenario: Requests,
		Summary:    "Only the first ping is answered.",
		Collateral: []string{ids.BaseParamsOmitted, ids.BaseRequestStringIDServed},
		Apply: func(c *client.Standalone) {
			answered := false
			replying("ping", func(_ *wire.Event, _ *wire.Message, out outgoing) []outgoing {
				if answered {
					return nil
				}
				answered = true
				return []outgoing{out}
			})(c)
		}},
	// https://github.com/open-octo/octo-agent/pull/2026
	{ID: "tools.change-while-waiting", Requirement: ids.ToolsListChangedUnsolicited, Form: mockserver.InSequence,
		Scenario:   Notifications,
		Summary:    "News of changed tools that come on the stream of a request that is open end the client.",
		Collateral: append([]string{ids.BaseResponsePresent}, fenced["after-changed"]...),
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool {
				return message(e).Method == "notifications/tools/list_changed" &&
					strings.HasPrefix(e.Stream, "post:") &&
					slices.ContainsFunc(conn.Log().Conversation().Exchanges, func(x *wire.Exchange) bool {
						return x.From() == wire.Client && x.Request.Seq < e.Seq &&
							(x.Response == nil || x.Response.Seq > e.Seq)
					})
			}}
		})},
	// https://github.com/modelcontextprotocol/typescript-sdk/pull/1428
	{ID: "tools.structured-error-death", Requirement: ids.ToolsResultStructuredOrUnstructured,
		Form: mockserver.ByValue, Scenario: "content/failed-tool",
		Summary: "A tool error with structured content ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return wire.At(message(e).Result, "isError") == true &&
				wire.At(message(e).Result, "structuredContent") != nil
		})},
	// https://github.com/assistant-ui/assistant-ui/pull/5341
	{ID: "elicitation.booleans-as-text", Requirement: ids.ElicitationContentMatchesSchema, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "Booleans are submitted as text.",
		Collateral: []string{ids.ElicitationSecurityValidateContent},
		Apply: Amending("elicitation/create", func(r object) {
			content, _ := r["content"].(object)
			for name, value := range content {
				if value, ok := value.(bool); ok {
					content[name] = map[bool]string{true: "true", false: "false"}[value]
				}
			}
		})},
	// https://github.com/PrefectHQ/fastmcp/issues/1565
	{ID: "elicitation.enum-as-text", Requirement: ids.ElicitationContentMatchesSchema, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "Any text is submitted where the schema names values.",
		Collateral: []string{ids.ElicitationSecurityValidateContent},
		Apply: Changing(func(o *client.Options) {
			const method = "elicitation/create"
			serve := o.Answers[method]
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				result, rpcErr := serve(ctx, params)
				content, _ := wire.At(result, "content").(object)
				for name := range content {
					if wire.At(params, "requestedSchema", "properties", name, "enum") != nil {
						content[name] = "some text"
					}
				}
				return result, rpcErr
			}
		})},
	// https://github.com/mark3labs/mcp-go/issues/61
	{ID: "http.line-of-64k-death", Requirement: ids.HTTPMessageLarge, Scenario: Framed, Transports: OverHTTP,
		Summary: "A line of an event stream that is longer than 64 KiB ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && len(e.Raw) > 64<<10
		})},
	// https://github.com/mark3labs/mcp-go/pull/230
	{ID: "http.notification-accept", Requirement: ids.HTTPClientPostAcceptSSE, Form: mockserver.ByValue,
		Transports: OverHTTP, Summary: "The POST of a notification has no Accept; those of requests have.",
		Collateral: []string{ids.HTTPClientPostAcceptJSON},
		Apply:      Headers(func(m *wire.Message) bool { return m.Kind == wire.Notification }, "Accept")},
	// https://github.com/modelcontextprotocol/inspector/issues/905
	// With a server that answers at once, the notification may have been sent before the answer.
	{ID: "http.initialized-session", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.ByValue,
		Scenario: "lifecycle/slow-answer", Transports: OverHTTP,
		Summary: "notifications/initialized is posted without Mcp-Session-Id; later requests have it.",
		Apply:   Headers(Calls("notifications/initialized"), "Mcp-Session-Id")},
	// https://github.com/modelcontextprotocol/python-sdk/issues/2546
	{ID: "stdio.content-length", Requirement: ids.StdioClientStdinClean, Transports: OverStdio,
		Summary: "A header Content-Length precedes each message.",
		Apply: Rewriting(Anything, func(text string) string {
			return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text)
		})},
	// https://github.com/langchain4j/langchain4j/pull/6175
	{ID: "time.lists-not-cancelled", Requirement: ids.LifecycleTimeoutCancel, Form: mockserver.ByValue,
		Scenario: silence, Summary: "When requests are given up, only tool calls are cancelled.",
		Apply: All(Impatient, Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if m.Method == "notifications/cancelled" {
				id := wire.ReadID(wire.At(m.Params, "requestId"))
				if x := conn.Log().Conversation().Newest(wire.Client, id); x == nil || x.Method() != "tools/call" {
					return true
				}
			}
			return false
		}))},
	// https://github.com/vercel/ai/issues/18075
	{ID: "time.initialize-without-limit", Requirement: ids.LifecycleTimeoutEstablished, Form: mockserver.ByValue,
		Scenario: "lifecycle/unanswered", Summary: "initialize is awaited for ever.", Apply: patient},
	// https://github.com/CALLE-AI/call-e-integrations/issues/110
	{ID: "http.stream-unread", Requirement: ids.HTTPClientSSEAnswer, Form: mockserver.ByValue,
		Scenario: "http/sse-answers", Transports: OverHTTP,
		Summary: "An answer as an event stream is passed over, and the client goes on.",
		Apply: SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok &&
				strings.Contains(typeOfPage(conn.Log(), cursor), "event-stream") {
				out.Raw = []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"method":"ping"}`)
			}
			return []outgoing{out}
		})},
	// https://github.com/modelcontextprotocol/php-sdk/pull/401
	{ID: "http.crlf-death", Requirement: ids.HTTPClientSSESyntax, Scenario: "http/sse-crlf", Transports: OverHTTP,
		Summary: "Lines of an event stream that end in CR LF end the client.", Apply: dyingOfBytes("}\r\n\r\n")},
}

// message returns the message of an event, or an empty one.
func message(e *wire.Event) *wire.Message {
	if e.Kind != wire.KindMessage {
		return new(wire.Message)
	}
	return e.Msg
}

func number(v any) (float64, bool) {
	n, ok := v.(interface{ Float64() (float64, error) })
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// dyingOfProgress ends the client when a notification reports certain progress.
func dyingOfProgress(of func(value float64) bool) apply {
	return Dying(func(e *wire.Event) bool {
		value, ok := number(wire.At(message(e).Params, "progress"))
		return ok && of(value)
	})
}

// replying replaces the answers to requests of a method.
func replying(method string, hook func(request *wire.Event, m *wire.Message, out outgoing) []outgoing) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if m.IsResponse() {
			if x := conn.Log().Conversation().Newest(wire.Server, m.ID); x != nil && x.Method() == method {
				return hook(x.Request, m, out)
			}
		}
		return []outgoing{out}
	})
}

// dyingOfMember ends the client when an item of a list has a member besides those that
// it knows.
func dyingOfMember(member string, known ...string) apply {
	return Dying(func(e *wire.Event) bool {
		items, _ := wire.At(message(e).Result, member).(list)
		return slices.ContainsFunc(items, func(item any) bool { return unknownMember(item, known...) })
	})
}

func unknownMember(v any, known ...string) bool {
	o, _ := v.(object)
	for name := range o {
		if !slices.Contains(known, name) {
			return true
		}
	}
	return false
}

// dyingOfBytes ends the client when a response holds one of the texts, as it came over
// the network.
func dyingOfBytes(texts ...string) apply {
	return func(c *client.Standalone) {
		var heard atomic.Bool
		dial := c.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &listener{Conn: conn, texts: texts, heard: &heard}, err
		}
		Dying(func(*wire.Event) bool { return heard.Load() })(c)
	}
}

// listener looks for texts in what comes.
type listener struct {
	net.Conn
	texts []string
	heard *atomic.Bool
	tail  []byte
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.tail = append(l.tail, p[:n]...)
	for _, text := range l.texts {
		if bytes.Contains(l.tail, []byte(text)) {
			l.heard.Store(true)
		}
	}
	const longest = 16
	l.tail = slices.Clone(l.tail[max(0, len(l.tail)-longest):])
	return n, err
}
