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
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// threadFaults were reported to the authors of real clients. Each names the thread.
var threadFaults = []Fault{
	// https://github.com/profullstack/sh1pt/issues/705
	fault("http.lines-death", ids.HTTPClientSSESyntax, "An event whose data comes in several lines ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, ",\n\"")
		})).In("http/sse-crlf").Also(ids.BaseResponsePresent),
	// https://github.com/simonx1/ruby-mcp-client/pull/159
	fault("elicitation.answer-invented", ids.BaseResponsePresent,
		"An elicitation is answered by a notification that the client invented.",
		replying("elicitation/create", func(_ *wire.Event, m *wire.Message, _ outgoing) []outgoing {
			return []outgoing{{Raw: client.Marshal(object{
				"jsonrpc": "2.0", "method": "elicitation/response",
				"params": object{"elicitationId": m.ID.String(), "result": m.Result},
			})}}
		})).In(Elicitation),
	// https://github.com/simonx1/ruby-mcp-client/pull/162
	fault("http.session-id-alphabet", ids.HTTPClientSessionHeader,
		"A session id that holds more than letters, digits, hyphens and underscores is not sent back.",
		func(c *client.Standalone) {
			raw := ConnectionOf(c)
			Sending(Later, func(_ *wire.Message, out outgoing) []outgoing {
				if raw() != nil && strings.ContainsFunc(raw().SessionID(), func(r rune) bool {
					return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
				}) {
					out.Header = http.Header{"Mcp-Session-Id": nil}
				}
				return []outgoing{out}
			})(c)
		}).Seen(byValue).In("http/delete"),
	// https://github.com/modelcontextprotocol/python-sdk/issues/1672
	fault("http.empty-data-death", ids.HTTPClientSSESyntax, "An event that has an id and no data ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.HasID && len(e.Raw) == 0
		})).Seen(byValue).In(Framed),
	// https://github.com/langchain4j/langchain4j/issues/3697
	fault("http.data-in-data-death", ids.HTTPClientSSESyntax,
		"The text data: within a message on an event stream ends the client.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, "data:")
		})).Seen(byValue).In(Framed).Also(ids.BaseResponsePresent),
	// https://github.com/modelcontextprotocol/typescript-sdk/pull/2809
	fault("http.second-cut-unnamed", ids.HTTPClientLastEventID,
		"A resumed stream that is cut before its first event is resumed without Last-Event-ID.",
		Changing(func(o *client.Options) {
			resume, resumed := o.Resuming, ""
			o.Resuming = func(last string) (string, bool) {
				if last != "" && last == resumed {
					last = ""
				}
				resumed = last
				return resume(last)
			}
		})).Seen(inSequence).In(CutStream),
	// https://github.com/modelcontextprotocol/java-sdk/issues/1136
	fault("http.unicode-lines-death", ids.HTTPClientSSESyntax,
		"A line separator of Unicode in the data of an event ends the client.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil &&
				slices.ContainsFunc([]string{"\u2028", "\u2029", "\u0085"},
					func(s string) bool { return ContainsText(e, s) })
		})).Seen(byValue).In(Framed),
	// https://github.com/anthropics/anthropic-sdk-typescript/issues/882
	fault("stdio.paragraph-separator-death", ids.StdioMessageOnlyNewlineDelimits,
		"A paragraph separator of Unicode within a message ends the client.", DyingOf("\u2029")).
		Seen(byValue).In(Framed).Also(ids.BaseResponsePresent),
	// https://github.com/vercel/ai/pull/15701
	fault("ping.unknown", ids.PingResponsePrompt, "A ping is refused as an unknown method.",
		replying("ping", func(_ *wire.Event, m *wire.Message, _ outgoing) []outgoing {
			return []outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() +
				`,"error":{"code":-32601,"message":"Method not found"}}`)}}
		})).In(Requests).Also(ids.PingEitherSide),
	// https://github.com/vercel/ai/pull/16353
	fault("logging.message-death", ids.LoggingMessageLoggerOptional, "A log message ends the client.",
		DyingOf("notifications/message")).In(plainContent).Also(ids.LoggingDefaultServerDecides),
	// https://github.com/langchain4j/langchain4j/issues/4282
	fault("resources.template-closed", ids.BaseResponseResultOpen,
		"A member of a resource template that the client does not know ends it.",
		dyingOfMember("resourceTemplates", "uriTemplate", "name", "title", "description", "mimeType",
			"annotations", "_meta")).Seen(byValue).In("exchange/open-results"),
	// https://github.com/modelcontextprotocol/java-sdk/issues/76
	fault("lifecycle.server-info-closed", ids.BaseResponseResultOpen,
		"A member of serverInfo that the client does not know ends it.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage &&
				unknownMember(wire.At(e.Msg.Result, "serverInfo"), "name", "title", "version")
		})).Seen(byValue).In("exchange/open-results"),
	// https://github.com/modelcontextprotocol/java-sdk/issues/748
	fault("http.accepted-typed-death", ids.HTTPClientAccepted, "202 with a Content-Type ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusAccepted &&
				e.HTTP.Header.Get("Content-Type") != ""
		})).Seen(byValue).In(Framed).Also(ids.BaseResponsePresent),
	// https://github.com/vercel/ai/issues/14413
	fault("http.version-not-lowered", ids.HTTPClientVersionHeaderNegotiated,
		"MCP-Protocol-Version is that of the client although an older one was negotiated.", All(
			func(c *client.Standalone) { c.Versions = []string{"2025-03-26", "2024-11-05"} },
			Headers(Later, "Mcp-Protocol-Version", client.Version),
		)).Seen(byValue).In("lifecycle/older-version").Warns(),
	// https://github.com/modelcontextprotocol/java-sdk/pull/684
	fault("http.get-version-not-lowered", ids.HTTPClientVersionHeaderNegotiated,
		"MCP-Protocol-Version of the GET is that of the client although an older one was negotiated.", All(
			func(c *client.Standalone) { c.Versions = []string{"2025-03-26", "2024-11-05"} },
			Fields(http.MethodGet, "Mcp-Protocol-Version", "Mcp-Protocol-Version: "+client.Version),
		)).Seen(byValue).In("lifecycle/older-version").Warns(),
	// https://github.com/BaseIntelligence/bounty-challenge/issues/6313
	fault("base.ids-alike", ids.BaseResponseIDTypeEcho,
		"Two open requests whose ids differ in their type alone are both answered with the id of the later one.",
		All(SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if !m.IsResponse() {
				return []outgoing{out}
			}
			if last := conn.Log().Conversation().Resembling(wire.Server, m.ID); last != nil {
				out.Raw = bytes.Replace(out.Raw, []byte(m.ID.String()), []byte(last.Request.Msg.ID.String()), 1)
			}
			return []outgoing{out}
		}), Pausing(Answers, 20*time.Millisecond))).Seen(atOnce).In(Requests).
		Also(ids.BaseResponseOnce, ids.BaseResponsePresent),
	// https://github.com/modelcontextprotocol/typescript-sdk/issues/966
	fault("elicitation.content-null", ids.SchemaElicitResult,
		"The content of an elicitation that was declined is null.", Amending("elicitation/create", func(r object) {
			if r["action"] != "accept" {
				r["content"] = nil
			}
		})).In("acts/elicitation").Also(ids.ElicitationContentOnlyWithAccept),
	// https://github.com/opensolon/solon-ai/issues/58
	fault("tools.schema-keyword-death", ids.ToolsInputSchemaAnyKeyword,
		"additionalProperties that is an object in the schema of a tool ends the client.",
		Dying(func(e *wire.Event) bool {
			return slices.ContainsFunc(wire.Items(message(e).Result, "tools"), func(tool any) bool {
				_, in := wire.At(tool, "inputSchema", "additionalProperties").(object)
				_, out := wire.At(tool, "outputSchema", "additionalProperties").(object)
				return in || out
			})
		})).Seen(byValue).In("lists/schemas"),
	// https://github.com/modelcontextprotocol/rust-sdk/pull/361
	fault("progress.counts-only", ids.ProgressValueFloat, "Progress that is not a count ends the client.",
		dyingOfProgress(func(value float64) bool {
			return value < 0 || value > math.MaxUint32 || value != math.Trunc(value)
		})).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat),
	// https://github.com/Kuadrant/mcp-gateway/issues/813
	fault("http.listens-in-lost-session", ids.HTTPClientSessionHeader,
		"The GET in a new session names the session that was lost.", inFirstSession(http.MethodGet)).
		Seen(bySession).In(LostSession),
	// https://github.com/google-antigravity/antigravity-cli/issues/510
	fault("roots.not-encoded", ids.SchemaListRootsResult,
		"A root whose path holds characters beyond ASCII is listed with them as they are.",
		Replacing(Results, "%C3%A9", "é")).Seen(byValue).In("acts/root-folder"),
	// https://github.com/kirodotdev/Kiro/issues/8960
	fault("tools.link-death", ids.ToolsResultResourceLinks,
		"A link to a resource in the result of a tool ends the client.", DyingOf(`"resource_link"`)).In(plainContent),
	// https://github.com/simonx1/ruby-mcp-client/pull/178
	fault("time.sent-again", ids.LifecycleTimeoutCancel, "A request that is given up is sent again and not cancelled.",
		All(Impatient, SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
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
		}))).In(silence),
	// https://github.com/quarkiverse/quarkus-langchain4j/issues/2871
	fault("http.data-without-blank-death", ids.HTTPClientSSESyntax,
		"A field of an event stream without a blank behind its colon ends the client.", dyingOfBytes("\ndata:{")).
		Seen(byValue).In(Framed),
	// https://github.com/FellouAI/eko/pull/287
	fault("http.carriage-returns-death", ids.HTTPClientSSESyntax,
		"Lines of an event stream that end in CR alone end the client.", dyingOfBytes("\rdata:", "}\r\r")).
		Seen(byValue).In(Framed),
	// https://github.com/ThinkInAIXYZ/go-mcp/pull/136
	fault("http.stream-type-death", ids.HTTPClientSSEAnswer,
		"A Content-Type of an event stream that is not spelled text/event-stream ends the client.",
		Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindHTTPResponse {
				return false
			}
			field := e.HTTP.Header.Get("Content-Type")
			return strings.HasPrefix(strings.ToLower(field), "text/event-stream") && field != "text/event-stream"
		})).Seen(byValue).In("http/sse-answers").Also(ids.HTTPServerEventIDs),
	// https://github.com/punkpeye/mcp-remote/issues/155
	fault("ping.once", ids.BaseResponsePresent, "Only the first ping is answered.", func(c *client.Standalone) {
		answered := false
		replying("ping", func(_ *wire.Event, _ *wire.Message, out outgoing) []outgoing {
			if answered {
				return nil
			}
			answered = true
			return []outgoing{out}
		})(c)
	}).Seen(inSequence).In(Requests).Also(ids.BaseParamsOmitted, ids.BaseRequestStringIDServed),
	// https://github.com/open-octo/octo-agent/pull/2026
	fault("tools.change-while-waiting", ids.ToolsListChangedUnsolicited,
		"News of changed tools that come on the stream of a request that is open end the client.",
		DyingOn(func(conn transport.Conn, e *wire.Event) bool {
			return message(e).Method == "notifications/tools/list_changed" &&
				strings.HasPrefix(e.Stream, "post:") &&
				slices.ContainsFunc(conn.Log().Conversation().Exchanges, func(x *wire.Exchange) bool {
					return x.From() == wire.Client && x.Request.Seq < e.Seq &&
						(x.Response == nil || x.Response.Seq > e.Seq)
				})
		})).Seen(inSequence).In(Notifications).
		Also(append([]string{ids.BaseResponsePresent}, fenced["after-changed"]...)...),
	// https://github.com/modelcontextprotocol/typescript-sdk/pull/1428
	fault("tools.structured-error-death", ids.ToolsResultStructuredOrUnstructured,
		"A tool error with structured content ends the client.", Dying(func(e *wire.Event) bool {
			return wire.At(message(e).Result, "isError") == true &&
				wire.At(message(e).Result, "structuredContent") != nil
		})).Seen(byValue).In("content/failed-tool"),
	// https://github.com/assistant-ui/assistant-ui/pull/5341
	fault("elicitation.booleans-as-text", ids.ElicitationContentMatchesSchema, "Booleans are submitted as text.",
		Amending("elicitation/create", func(r object) {
			content, _ := r["content"].(object)
			for name, value := range content {
				if value, ok := value.(bool); ok {
					content[name] = map[bool]string{true: "true", false: "false"}[value]
				}
			}
		})).Seen(byValue).In(Elicitation).Also(ids.ElicitationSecurityValidateContent),
	// https://github.com/PrefectHQ/fastmcp/issues/1565
	fault("elicitation.enum-as-text", ids.ElicitationContentMatchesSchema,
		"Any text is submitted where the schema names values.", Changing(func(o *client.Options) {
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
		})).Seen(byValue).In(Elicitation).Also(ids.ElicitationSecurityValidateContent),
	// https://github.com/mark3labs/mcp-go/issues/61
	fault("http.line-of-64k-death", ids.HTTPMessageLarge,
		"A line of an event stream that is longer than 64 KiB ends the client.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && len(e.Raw) > 64<<10
		})).In(Framed),
	// https://github.com/mark3labs/mcp-go/pull/230
	fault("http.notification-accept", ids.HTTPClientPostAcceptSSE,
		"The POST of a notification has no Accept; those of requests have.",
		Headers(func(m *wire.Message) bool { return m.Kind == wire.Notification }, "Accept")).Seen(byValue).
		Also(ids.HTTPClientPostAcceptJSON),
	// https://github.com/modelcontextprotocol/inspector/issues/905
	// With a server that answers at once, the notification may have been sent before the answer.
	fault("http.initialized-session", ids.HTTPClientSessionHeader,
		"notifications/initialized is posted without Mcp-Session-Id; later requests have it.",
		Headers(Calls("notifications/initialized"), "Mcp-Session-Id")).Seen(byValue).In("lifecycle/slow-answer"),
	// https://github.com/modelcontextprotocol/python-sdk/issues/2546
	fault("stdio.content-length", ids.StdioClientStdinClean, "A header Content-Length precedes each message.",
		Rewriting(Anything,
			func(text string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text) })),
	// https://github.com/langchain4j/langchain4j/pull/6175
	fault("time.lists-not-cancelled", ids.LifecycleTimeoutCancel,
		"When requests are given up, only tool calls are cancelled.",
		All(Impatient, Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if m.Method == "notifications/cancelled" {
				id := wire.ReadID(wire.At(m.Params, "requestId"))
				if x := conn.Log().Conversation().Newest(wire.Client, id); x == nil || x.Method() != "tools/call" {
					return true
				}
			}
			return false
		}))).Seen(byValue).In(silence),
	// https://github.com/vercel/ai/issues/18075
	fault("time.initialize-without-limit", ids.LifecycleTimeoutEstablished, "initialize is awaited for ever.", patient).
		Seen(byValue).In("lifecycle/unanswered"),
	// https://github.com/CALLE-AI/call-e-integrations/issues/110
	fault("http.stream-unread", ids.HTTPClientSSEAnswer,
		"An answer as an event stream is passed over, and the client goes on.",
		SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok &&
				strings.Contains(typeOfPage(conn.Log(), cursor), "event-stream") {
				out.Raw = []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"method":"ping"}`)
			}
			return []outgoing{out}
		})).Seen(byValue).In("http/sse-answers"),
	// https://github.com/modelcontextprotocol/php-sdk/pull/401
	fault("http.crlf-death", ids.HTTPClientSSESyntax, "Lines of an event stream that end in CR LF end the client.",
		dyingOfBytes("}\r\n\r\n")).In("http/sse-crlf"),
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
