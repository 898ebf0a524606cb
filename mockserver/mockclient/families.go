package mockclient

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// familyFaults show with another value than the plain one, in a second session, with two
// requests at the same time or in one order.
var familyFaults = []Fault{
	fault("http.comment-within-death", ids.HTTPClientSSESyntax,
		"A comment between the fields of an event ends the client.", dyingOfBytes(": between")).
		Seen(byValue).In(Framed),
	fault("http.retry-number-required", ids.HTTPClientSSESyntax, "A field retry that is not a number ends the client.",
		dyingOfBytes("retry: soon")).Seen(byValue).In(Framed),
	fault("http.type-carried-over", ids.HTTPClientSSESyntax,
		"The type of a block without data is that of the next event, which is ignored.",
		Dropping(Replies("event: a block with a type alone before it"))).Seen(byValue).In(Framed),
	fault("http.legacy-carriage-returns-death", ids.SSEClientMessageEvents,
		"Lines of an event stream of the older transport that end in CR alone end the client.", dyingOfBytes("}\r\r")).
		Seen(byValue).In(Framed).Only(overSSE),
	fault("http.empty-event-death", ids.HTTPClientSSESyntax, "An event whose data is empty ends the client.",
		dyingOfBytes("id: primed")).Seen(byValue).In(Framed).Warns(),
	fault("stdio.line-of-64k-death", ids.StdioMessageLarge, "A line that is longer than 64 KiB ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 64<<10 })).
		Seen(byValue).In(Framed).Also(ids.BaseResponsePresent),
	fault("http.json-capitals-death", ids.HTTPClientJSONAnswer,
		"A JSON answer whose Content-Type has capitals ends the client.",
		dyingOfHead("Content-Type", "Application/JSON")).Seen(byValue).In("http/json-answers"),
	fault("logging.false-data-death", ids.LoggingMessageAnyData,
		"A log message whose data is false, zero, null or empty ends the client.", Dying(func(e *wire.Event) bool {
			params, _ := message(e).Params.(object)
			data, ok := params["data"]
			number, isNumber := number(data)
			return ok && (data == nil || data == false || data == "" || isNumber && number == 0)
		})).Seen(byValue).In(Notifications).Also(ids.BaseResponsePresent),
	fault("logging.large-number-death", ids.LoggingMessageAnyData,
		"A log message whose data is a number beyond 64 bits ends the client.",
		DyingOf("notifications/message", "123456789012345678901234567890")).Seen(byValue).In(Notifications).
		Also(ids.BaseResponsePresent),
	fault("meta.text-inherited-refused", ids.MetaAttachRequest,
		"A ping with the text __proto__ in its _meta is refused.", Refusing(Replies("text: a name of JavaScript"))).
		Seen(byValue).In(Requests),
	fault("progress.large-death", ids.ProgressNotify, "Progress beyond 64 bits ends the client.",
		dyingOfProgress(func(value float64) bool { return value > 1e19 })).Seen(byValue).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressOmitTotal, ids.ProgressTotalFloat, ids.ProgressValueFloat),
	fault("tools.recursive-schema-death", ids.ToolsInputSchemaAnyKeyword,
		"A tool whose schema refers to itself ends the client.", DyingOf(`"$ref":"#"`)).Seen(byValue).
		In("lists/schemas"),
	fault("elicitation.required-required", ids.ElicitationSchemaClientSupports,
		"A form in which nothing is required is refused.", Rejecting(Replies("elicitation-optional"))).
		Seen(byValue).In(Elicitation),
	fault("elicitation.names-required", ids.ElicitationSchemaClientSupports,
		"An enum without names for its values is refused.", Rejecting(Replies("elicitation-bare-enum"))).
		Seen(byValue).In(Elicitation),
	fault("sampling.empty-prompt-refused", ids.SamplingRequestOptionalMembers,
		"A sampling request whose system prompt is empty is refused.", Rejecting(Replies("sampling-option-1"))).
		Seen(byValue).In(Sampling),
	fault("cancellation.of-all", ids.BaseResponsePresent,
		"The cancellation of a request ends all requests that are open.",
		All(Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if !m.IsResponse() {
				return false
			}
			conversation := conn.Log().Conversation()
			x := conversation.Newest(wire.Server, m.ID)
			return x != nil && slices.ContainsFunc(conversation.Exchanges, func(y *wire.Exchange) bool {
				return y.From() == wire.Server && y.Cancelled != nil && y.Cancelled.Seq > x.Request.Seq
			})
		}), Pausing(Replies(keptIDs()...), 20*time.Millisecond))).Seen(atOnce).In(RootsSeen),
	fault("http.second-session-unannounced", ids.LifecycleInitInitializedSent,
		"In the session that follows a lost one the client does not send initialized.", func(c *client.Standalone) {
			n := 0
			Sending(Calls("notifications/initialized"), func(_ *wire.Message, out outgoing) []outgoing {
				if n++; n > 1 {
					return nil
				}
				return []outgoing{out}
			})(c)
		}).Seen(bySession).In(LostSession).Also(ids.LifecycleInitInitializedBeforeOperation),
	fault("http.second-session-bare", ids.LifecycleInitRequestClientInfo,
		"The initialize that follows a lost session has no clientInfo.", func(c *client.Standalone) {
			n := 0
			Params("initialize", func(p object) {
				if n++; n > 1 {
					delete(p, "clientInfo")
				}
			})(c)
		}).Seen(bySession).In(LostSession).Also(ids.SchemaInitializeRequest),
	fault("http.second-session-unversioned", ids.HTTPClientVersionHeader,
		"Requests in the session that follows a lost one lack MCP-Protocol-Version.",
		comparedToFirst("Mcp-Session-Id", func(h *Head, first string) {
			if id := h.Get("Mcp-Session-Id"); id != "" && id != first {
				h.Set("Mcp-Protocol-Version")
			}
		})).Seen(bySession).In(LostSession),
	fault("http.second-session-unnamed", ids.HTTPClientSessionHeader,
		"Requests in the session that follows a lost one lack Mcp-Session-Id.",
		inLaterSession(Later, func(_ string, out outgoing) []outgoing {
			out.Header = http.Header{"Mcp-Session-Id": nil}
			return []outgoing{out}
		})).Seen(bySession).In(LostSession),
	fault("http.second-session-answers", ids.HTTPClientSessionHeader,
		"Responses in the session that follows a lost one name the lost one.",
		inLaterSession((*wire.Message).IsResponse, func(first string, out outgoing) []outgoing {
			out.Header = http.Header{"Mcp-Session-Id": {first}}
			return []outgoing{out}
		})).Seen(bySession).In(LostSession).Also(ids.BaseResponseOnlyToRequests, ids.HTTPClientReinitializeOn404),
	fault("http.second-session-unanswered", ids.BaseResponsePresent,
		"Requests of the server in the session that follows a lost one get no response.",
		inLaterSession((*wire.Message).IsResponse, func(string, outgoing) []outgoing { return nil })).
		Seen(bySession).In(LostSession),
	fault("http.second-session-kept", ids.HTTPClientDeleteSession,
		"The DELETE at the end names the session that was lost, not the one that followed it.",
		inFirstSession(http.MethodDelete)).Seen(bySession).In(LostSession),
	fault("http.later-session-version", ids.HTTPClientVersionHeaderNegotiated,
		"MCP-Protocol-Version is that of the first session in all that follow.", func(c *client.Standalone) {
			c.Omissions.Version = true // it supports the older version of that session
			comparedToFirst("Mcp-Protocol-Version", func(h *Head, first string) {
				if h.Get("Mcp-Session-Id") != "" {
					h.Set("Mcp-Protocol-Version", "Mcp-Protocol-Version: "+first)
				}
			})(c)
		}).Seen(bySession).In("http/lost-again"),
	fault("lifecycle.capabilities-kept", ids.LifecycleCapabilityClientUsesPrompts,
		"The client uses what the lost session had declared, and the one that follows does not.",
		func(c *client.Standalone) {
			raw := ConnectionOf(c)
			first := ""
			Sending(Anything, func(_ *wire.Message, out outgoing) []outgoing {
				if first == "" {
					first = raw().SessionID()
				}
				return []outgoing{out}
			})(c)
			Doing(func(ctx context.Context, s *client.Session) {
				if raw() != nil && raw().SessionID() != first && !s.Capability("prompts") {
					_, _ = s.Call(ctx, "prompts/list", nil)
				}
			})(c)
		}).Seen(bySession).In(LostSession).Only(OverHTTP),
	fault("http.lost-answer-ignored", ids.HTTPClientReinitializeOn404,
		"The client goes on in a session in which a response of its own was answered with 404.",
		func(c *client.Standalone) { c.Omissions.LostAnswer = true }).Seen(inSequence).In("http/lost-answer"),
	fault("progress.token-kept", ids.ProgressTokenUnique,
		"Two requests that are open at the same time have one progress token.",
		Further("tools", func(ctx context.Context, s *client.Session) {
			meta := object{"progressToken": "kept"}
			Together(ctx, s, "tools/call", SlowCall(0.2, meta), SlowCall(0.2, meta))
		})).Seen(atOnce).In(Requests),
	fault("pagination.forgets-in-change", ids.PaginationClientCursorUnmodified,
		"A client that learns that a list has changed while it reads it goes on with a cursor of its own.",
		SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok && heard(conn, "list_changed") {
				out.Raw = []byte(strings.Replace(string(out.Raw), string(client.Marshal(cursor)), `"0"`, 1))
			}
			return []outgoing{out}
		})).Seen(inSequence).In("lists/pages").Only(OverHTTP),
	fault("http.unfinished-event-named", ids.HTTPClientLastEventID,
		"A stream that was cut within an event is resumed after that event.", naming(func(last string) string {
			if strings.HasPrefix(last, "cut") {
				return "cut-within"
			}
			return last
		})).Seen(inSequence).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	fault("http.unfinished-event-read", ids.HTTPClientSSESyntax,
		"An event within which a stream was cut is read as a message.",
		Wrapping(func(conn transport.Conn) transport.Conn {
			return &beforeResuming{Conn: conn, send: `{"jsonrpc":"2.0","id":"cut-within","result":{}}`}
		})).Seen(inSequence).In(CutStream),
	fault("http.get-resumed-unnamed", ids.HTTPClientLastEventID,
		"A listening stream that was resumed and breaks again is asked for without Last-Event-ID.",
		ResumingAs("resumed,once")).Seen(inSequence).In(ListeningStream),
	fault("http.get-unfinished-named", ids.HTTPClientLastEventID,
		"A listening stream that was cut within an event is resumed after that event.",
		ResumingAs("resumed,once", "Last-Event-ID: not-finished")).Seen(inSequence).In(ListeningStream),
	fault("http.get-first-event-named", ids.HTTPClientLastEventID,
		"A listening stream that breaks for the second time is resumed after the event that was named the first time.",
		ResumingAs("resumed,once", "Last-Event-ID: listened+/=%20")).Seen(inSequence).In(ListeningStream),
	fault("http.get-empty-event-passed-over", ids.HTTPClientLastEventID,
		"A listening stream on which an event with an id and empty data came last is resumed after the event before.",
		ResumingAs("resumed,twice", "Last-Event-ID: resumed,once")).Seen(byValue).In(ListeningStream),
	fault("http.get-event-encoded", ids.HTTPClientLastEventID,
		"The id by which a listening stream is resumed is percent-encoded.",
		ResumingAs("listened+/=%20", "Last-Event-ID: listened%2B%2F%3D%2520")).Seen(byValue).In(ListeningStream),
	fault("http.broken-end-death", ids.HTTPDisconnectSurvived,
		"A connection that breaks off behind an answer crashes the client.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindStreamEnd && strings.HasPrefix(e.Stream, "post:") && e.Note != ""
		})).Seen(inSequence).In("http/broken-end").Crashing(),
	fault("http.session-header-lower-lost", ids.HTTPClientSessionHeader,
		"The id of a session is not found in a field whose name is in small letters.",
		Connections(func(conn net.Conn) net.Conn { return blindTo{conn, "mcp-session-id:"} })).Seen(byValue).
		In("http/lower-field"),
	fault("http.session-header-upper-lost", ids.HTTPClientSessionHeader,
		"The id of a session is not found in a field whose name is in capitals.",
		Connections(func(conn net.Conn) net.Conn { return blindTo{conn, "MCP-SESSION-ID:"} })).Seen(byValue).
		In("http/upper-field"),
	fault("tools.name-lowered", ids.ToolsCallListedName, "A tool is called by its name in small letters.",
		Renaming("tools/call", "name", strings.ToLower)).Seen(byValue).In("lists/tool-names"),
	fault("tools.name-trimmed", ids.ToolsCallListedName, "A tool is called by its name without the blanks around it.",
		Renaming("tools/call", "name", strings.TrimSpace)).Seen(byValue).In("lists/tool-names"),
	fault("tools.name-composed", ids.ToolsCallListedName,
		"A letter and its accent in the name of a tool are made one character.",
		Renaming("tools/call", "name", func(name string) string { return strings.ReplaceAll(name, "e\u0301", "é") })).
		Seen(byValue).In("lists/tool-names"),
	fault("tools.name-cut", ids.ToolsCallListedName, "A tool is called by the first 64 characters of its name.",
		Renaming("tools/call", "name", func(name string) string { return name[:min(len(name), 64)] })).
		Seen(byValue).In("lists/tool-names"),
	fault("tools.name-death", ids.ToolsCallListedName, "A tool whose name has slashes ends the client.",
		DyingOf(`"inputSchema"`, "mcpconform/sub//../slash")).Seen(byValue).In("lists/tool-names"),
	// github.com/maximhq/bifrost/pull/1302
	fault("prompts.name-cleaned", ids.PromptsGetListedName,
		"Other characters than letters and digits in the name of a prompt become underscores.",
		Renaming("prompts/get", "name", func(name string) string {
			return strings.Map(func(c rune) rune {
				if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
					return c
				}
				return '_'
			}, name)
		})).Seen(byValue).In("lists/prompt-names"),
	fault("resources.uri-lowered", ids.ResourcesURISchemeCustomAllowed,
		"A resource is read by its URI in small letters, those of the path included.",
		Renaming("resources/read", "uri", strings.ToLower)).Seen(byValue).In("lists/uris"),
	fault("resources.uri-decoded", ids.ResourcesURISchemeCustomAllowed,
		"A resource is read by its URI with the escapes decoded.",
		Renaming("resources/read", "uri", func(uri string) string {
			if decoded, err := url.PathUnescape(uri); err == nil {
				return decoded
			}
			return uri
		})).Seen(byValue).In("lists/uris").Also(ids.SchemaReadResourceRequest),
	fault("resources.uri-slash", ids.ResourcesURISchemeCustomAllowed,
		"A resource is read by its URI without the slash at the end.",
		Renaming("resources/read", "uri", func(uri string) string { return strings.TrimRight(uri, "/") })).
		Seen(byValue).In("lists/uris"),
	fault("resources.mime-parameter-death", ids.ResourcesMimeTypeAny,
		"A resource whose mimeType has a parameter ends the client.", DyingOf("text/plain; charset=utf-8")).
		Seen(byValue).In("lists/types"),
	fault("content.fraction-death", ids.ContentAnnotationsOptional,
		"A date whose seconds have a fraction ends the client.", DyingOf(`"lastModified":"2025-01-12T15:00:58.250Z"`)).
		Seen(byValue).In("content/dates"),
	fault("roots.one-at-a-time", ids.BaseResponsePresent,
		"A request for the roots that comes while another one is open is never answered.",
		Dropping(Replies("roots-both-second"))).Seen(atOnce).In(RootsSeen),
	fault("ping.behind-form", ids.PingResponsePrompt,
		"A ping that comes while a form is open is answered after the user has filled it in.",
		All(Slowly("elicitation/create", "take your time"), BehindAnswer("elicitation-open"))).Seen(atOnce).
		In(Elicitation),
	fault("ping.behind-sampling", ids.PingResponsePrompt,
		"A ping that comes while a model is asked is answered after the model has.",
		All(Slowly("sampling/createMessage", "Take your time"), BehindAnswer("sampling-open"))).Seen(atOnce).
		In(Sampling),
	fault("ping.behind-roots", ids.PingResponsePrompt,
		"A ping that comes while roots are listed is answered after that.",
		All(Slowly("roots/list", "roots-unhurried"), BehindAnswer("roots-unhurried"))).Seen(atOnce).In(RootsSeen),
}

// beforeResuming is a connection on which a text is sent before a stream is resumed for the first time.
type beforeResuming struct {
	transport.Conn
	send string
	once sync.Once
}

func (c *beforeResuming) Resume(ctx context.Context, lastEventID string,
	deliberate ...string) (*transport.Stream, error) {
	c.once.Do(func() { _, _ = c.Send(ctx, outgoing{Raw: []byte(c.send)}) })
	r, ok := c.Conn.(Resumer)
	if !ok {
		return nil, errNotResumed
	}
	return r.Resume(ctx, lastEventID, deliberate...)
}

// comparedToFirst changes the heads of requests as soon as one had a header field, the first value of which it gets.
func comparedToFirst(field string, change func(h *Head, first string)) apply {
	return func(c *client.Standalone) {
		var first atomic.Pointer[string]
		Heads(func(h *Head) {
			if value := h.Get(field); value != "" {
				first.CompareAndSwap(nil, &value)
			}
			if value := first.Load(); value != nil {
				change(h, *value)
			}
		})(c)
	}
}

// inLaterSession changes matching messages in all sessions after the first. It gets the id of the first session.
func inLaterSession(fits match, change func(first string, out outgoing) []outgoing) apply {
	return func(c *client.Standalone) {
		raw := ConnectionOf(c)
		first := ""
		Sending(Anything, func(m *wire.Message, out outgoing) []outgoing {
			id := raw().SessionID()
			if first == "" {
				first = id
			}
			if id == first || !fits(m) {
				return []outgoing{out}
			}
			return change(first, out)
		})(c)
	}
}

// inFirstSession has requests with an HTTP method name the first session.
func inFirstSession(method string) apply {
	return comparedToFirst("Mcp-Session-Id", func(h *Head, first string) {
		if h.Method() == method {
			h.Set("Mcp-Session-Id", "Mcp-Session-Id: "+first)
		}
	})
}

// blindTo is a connection on which the name of a field is read as another one.
type blindTo struct {
	net.Conn
	field string
}

func (c blindTo) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte(c.field), []byte("x"+c.field[1:])))
	return n, err
}

// keptIDs are the ids of pings that are open while others are cancelled.
func keptIDs() []any {
	var ids []any
	for _, n := range "0123456789" {
		ids = append(ids, "ping-kept-"+string(n))
	}
	return ids
}
