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
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// familyFaults show with another value than the plain one, in a second session, with two
// requests at the same time or in one order.
var familyFaults = []Fault{
	{ID: "http.comment-within-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: Framed, Transports: OverHTTP,
		Summary: "A comment between the fields of an event ends the client.", Apply: dyingOfBytes(": between")},
	{ID: "http.retry-number-required", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: Framed, Transports: OverHTTP, Summary: "A field retry that is not a number ends the client.",
		Apply: dyingOfBytes("retry: soon")},
	{ID: "http.type-carried-over", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverHTTP,
		Summary:    "The type of a block without data is that of the next event, which is ignored.",
		Apply:      Dropping(Replies("event: a block with a type alone before it"))},
	{ID: "http.legacy-carriage-returns-death", Requirement: ids.SSEClientMessageEvents, Form: mockserver.ByValue,
		Scenario: Framed, Transports: []string{transport.NameSSE},
		Summary: "Lines of an event stream of the older transport that end in CR alone end the client.",
		Apply:   dyingOfBytes("}\r\r")},
	{ID: "http.empty-event-death", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverHTTP, WarnOnly: true, Summary: "An event whose data is empty ends the client.",
		Apply: dyingOfBytes("id: primed")},
	{ID: "stdio.line-of-64k-death", Requirement: ids.StdioMessageLarge, Form: mockserver.ByValue, Scenario: Framed,
		Transports: OverStdio, Summary: "A line that is longer than 64 KiB ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 64<<10 })},
	{ID: "http.json-capitals-death", Requirement: ids.HTTPClientJSONAnswer, Form: mockserver.ByValue,
		Scenario: "http/json-answers", Transports: OverHTTP,
		Summary: "A JSON answer whose Content-Type has capitals ends the client.",
		Apply:   dyingOfHead("Content-Type", "Application/JSON")},
	{ID: "logging.false-data-death", Requirement: ids.LoggingMessageAnyData, Form: mockserver.ByValue,
		Scenario:   Notifications,
		Summary:    "A log message whose data is false, zero, null or empty ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Dying(func(e *wire.Event) bool {
			params, _ := message(e).Params.(object)
			data, ok := params["data"]
			number, isNumber := number(data)
			return ok && (data == nil || data == false || data == "" || isNumber && number == 0)
		})},
	{ID: "logging.large-number-death", Requirement: ids.LoggingMessageAnyData, Form: mockserver.ByValue,
		Scenario: Notifications, Summary: "A log message whose data is a number beyond 64 bits ends the client.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      DyingOf("notifications/message", "123456789012345678901234567890")},
	{ID: "meta.text-inherited-refused", Requirement: ids.MetaAttachRequest, Form: mockserver.ByValue,
		Scenario: Requests, Summary: "A ping with the text __proto__ in its _meta is refused.",
		Apply: Refusing(Replies("text: a name of JavaScript"))},
	{ID: "progress.large-death", Requirement: ids.ProgressNotify, Form: mockserver.ByValue,
		Scenario: "features/progress", Summary: "Progress beyond 64 bits ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressOmitTotal, ids.ProgressTotalFloat,
			ids.ProgressValueFloat},
		Apply: dyingOfProgress(func(value float64) bool { return value > 1e19 })},
	{ID: "tools.recursive-schema-death", Requirement: ids.ToolsInputSchemaAnyKeyword, Form: mockserver.ByValue,
		Scenario: "lists/schemas", Summary: "A tool whose schema refers to itself ends the client.",
		Apply: DyingOf(`"$ref":"#"`)},
	{ID: "elicitation.required-required", Requirement: ids.ElicitationSchemaClientSupports, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form in which nothing is required is refused.",
		Apply: Rejecting(Replies("elicitation-optional"))},
	{ID: "elicitation.names-required", Requirement: ids.ElicitationSchemaClientSupports, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "An enum without names for its values is refused.",
		Apply: Rejecting(Replies("elicitation-bare-enum"))},
	{ID: "sampling.empty-prompt-refused", Requirement: ids.SamplingRequestOptionalMembers, Form: mockserver.ByValue,
		Scenario: Sampling, Summary: "A sampling request whose system prompt is empty is refused.",
		Apply: Rejecting(Replies("sampling-option-1"))},
	{ID: "cancellation.of-all", Requirement: ids.BaseResponsePresent, Form: mockserver.AtOnce, Scenario: RootsSeen,
		Summary: "The cancellation of a request ends all requests that are open.",
		Apply: All(Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if !m.IsResponse() {
				return false
			}
			conversation := conn.Log().Conversation()
			x := conversation.Newest(wire.Server, m.ID)
			return x != nil && slices.ContainsFunc(conversation.Exchanges, func(y *wire.Exchange) bool {
				return y.From() == wire.Server && y.Cancelled != nil && y.Cancelled.Seq > x.Request.Seq
			})
		}), Pausing(Replies(keptIDs()...), 20*time.Millisecond))},
	{ID: "http.second-session-unannounced", Requirement: ids.LifecycleInitInitializedSent,
		Form: mockserver.BySession, Scenario: LostSession, Transports: OverHTTP,
		Summary:    "In the session that follows a lost one the client does not send initialized.",
		Collateral: []string{ids.LifecycleInitInitializedBeforeOperation},
		Apply: func(c *client.Standalone) {
			n := 0
			Sending(Calls("notifications/initialized"), func(_ *wire.Message, out outgoing) []outgoing {
				if n++; n > 1 {
					return nil
				}
				return []outgoing{out}
			})(c)
		}},
	{ID: "http.second-session-bare", Requirement: ids.LifecycleInitRequestClientInfo, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary:    "The initialize that follows a lost session has no clientInfo.",
		Collateral: []string{ids.SchemaInitializeRequest},
		Apply: func(c *client.Standalone) {
			n := 0
			Params("initialize", func(p object) {
				if n++; n > 1 {
					delete(p, "clientInfo")
				}
			})(c)
		}},
	{ID: "http.second-session-unversioned", Requirement: ids.HTTPClientVersionHeader, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "Requests in the session that follows a lost one lack MCP-Protocol-Version.",
		Apply: comparedToFirst("Mcp-Session-Id", func(h *Head, first string) {
			if id := h.Get("Mcp-Session-Id"); id != "" && id != first {
				h.Set("Mcp-Protocol-Version")
			}
		})},
	{ID: "http.second-session-unnamed", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "Requests in the session that follows a lost one lack Mcp-Session-Id.",
		Apply: inLaterSession(Later, func(_ string, out outgoing) []outgoing {
			out.Header = http.Header{"Mcp-Session-Id": nil}
			return []outgoing{out}
		})},
	{ID: "http.second-session-answers", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary:    "Responses in the session that follows a lost one name the lost one.",
		Collateral: []string{ids.BaseResponseOnlyToRequests, ids.HTTPClientReinitializeOn404},
		Apply: inLaterSession((*wire.Message).IsResponse, func(first string, out outgoing) []outgoing {
			out.Header = http.Header{"Mcp-Session-Id": {first}}
			return []outgoing{out}
		})},
	{ID: "http.second-session-unanswered", Requirement: ids.BaseResponsePresent, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "Requests of the server in the session that follows a lost one get no response.",
		Apply:   inLaterSession((*wire.Message).IsResponse, func(string, outgoing) []outgoing { return nil })},
	{ID: "http.second-session-kept", Requirement: ids.HTTPClientDeleteSession, Form: mockserver.BySession,
		Scenario: LostSession, Transports: OverHTTP,
		Summary: "The DELETE at the end names the session that was lost, not the one that followed it.",
		Apply:   inFirstSession(http.MethodDelete)},
	{ID: "http.later-session-version", Requirement: ids.HTTPClientVersionHeaderNegotiated,
		Form: mockserver.BySession, Scenario: "http/lost-again", Transports: OverHTTP,
		Summary: "MCP-Protocol-Version is that of the first session in all that follow.",
		Apply: func(c *client.Standalone) {
			c.Omissions.Version = true // it supports the older version of that session
			comparedToFirst("Mcp-Protocol-Version", func(h *Head, first string) {
				if h.Get("Mcp-Session-Id") != "" {
					h.Set("Mcp-Protocol-Version", "Mcp-Protocol-Version: "+first)
				}
			})(c)
		}},
	{ID: "lifecycle.capabilities-kept", Requirement: ids.LifecycleCapabilityClientUsesPrompts,
		Form: mockserver.BySession, Scenario: LostSession, Transports: OverHTTP,
		Summary: "The client uses what the lost session had declared, and the one that follows does not.",
		Apply: func(c *client.Standalone) {
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
		}},
	{ID: "http.lost-answer-ignored", Requirement: ids.HTTPClientReinitializeOn404, Form: mockserver.InSequence,
		Scenario: "http/lost-answer", Transports: OverHTTP,
		Summary: "The client goes on in a session in which a response of its own was answered with 404.",
		Apply:   func(c *client.Standalone) { c.Omissions.LostAnswer = true }},
	{ID: "progress.token-kept", Requirement: ids.ProgressTokenUnique, Form: mockserver.AtOnce, Scenario: Requests,
		Summary: "Two requests that are open at the same time have one progress token.",
		Apply: Further("tools", func(ctx context.Context, s *client.Session) {
			meta := object{"progressToken": "kept"}
			Together(ctx, s, "tools/call", SlowCall(0.2, meta), SlowCall(0.2, meta))
		})},
	{ID: "pagination.forgets-in-change", Requirement: ids.PaginationClientCursorUnmodified,
		Form: mockserver.InSequence, Scenario: "lists/pages", Transports: OverHTTP,
		Summary: "A client that learns that a list has changed while it reads it goes on with a cursor of its own.",
		Apply: SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok && heard(conn, "list_changed") {
				out.Raw = []byte(strings.Replace(string(out.Raw), string(client.Marshal(cursor)), `"0"`, 1))
			}
			return []outgoing{out}
		})},
	{ID: "http.unfinished-event-named", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: CutStream, Transports: OverHTTP,
		Summary:    "A stream that was cut within an event is resumed after that event.",
		Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply: naming(func(last string) string {
			if strings.HasPrefix(last, "cut") {
				return "cut-within"
			}
			return last
		})},
	{ID: "http.unfinished-event-read", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.InSequence,
		Scenario: CutStream, Transports: OverHTTP,
		Summary: "An event within which a stream was cut is read as a message.",
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
			return &beforeResuming{Conn: conn, send: `{"jsonrpc":"2.0","id":"cut-within","result":{}}`}
		})},
	{ID: "http.get-resumed-unnamed", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: ListeningStream, Transports: OverHTTP,
		Summary: "A listening stream that was resumed and breaks again is asked for without Last-Event-ID.",
		Apply:   ResumingAs("resumed,once")},
	{ID: "http.get-unfinished-named", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: ListeningStream, Transports: OverHTTP,
		Summary: "A listening stream that was cut within an event is resumed after that event.",
		Apply:   ResumingAs("resumed,once", "Last-Event-ID: not-finished")},
	{ID: "http.get-first-event-named", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: ListeningStream, Transports: OverHTTP,
		Summary: "A listening stream that breaks for the second time is resumed after the event that was named " +
			"the first time.",
		Apply: ResumingAs("resumed,once", "Last-Event-ID: listened+/=%20")},
	{ID: "http.get-empty-event-passed-over", Requirement: ids.HTTPClientLastEventID, Form: mockserver.ByValue,
		Scenario: ListeningStream, Transports: OverHTTP,
		Summary: "A listening stream on which an event with an id and empty data came last is resumed after " +
			"the event before.",
		Apply: ResumingAs("resumed,twice", "Last-Event-ID: resumed,once")},
	{ID: "http.get-event-encoded", Requirement: ids.HTTPClientLastEventID, Form: mockserver.ByValue,
		Scenario: ListeningStream, Transports: OverHTTP,
		Summary: "The id by which a listening stream is resumed is percent-encoded.",
		Apply:   ResumingAs("listened+/=%20", "Last-Event-ID: listened%2B%2F%3D%2520")},
	{ID: "http.broken-end-death", Requirement: ids.HTTPDisconnectSurvived, Form: mockserver.InSequence,
		Scenario: "http/broken-end", Transports: OverHTTP, Crashes: true,
		Summary: "A connection that breaks off behind an answer crashes the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindStreamEnd && strings.HasPrefix(e.Stream, "post:") && e.Note != ""
		})},
	{ID: "http.session-header-lower-lost", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.ByValue,
		Scenario: "http/lower-field", Transports: OverHTTP,
		Summary: "The id of a session is not found in a field whose name is in small letters.",
		Apply:   Connections(func(conn net.Conn) net.Conn { return blindTo{conn, "mcp-session-id:"} })},
	{ID: "http.session-header-upper-lost", Requirement: ids.HTTPClientSessionHeader, Form: mockserver.ByValue,
		Scenario: "http/upper-field", Transports: OverHTTP,
		Summary: "The id of a session is not found in a field whose name is in capitals.",
		Apply:   Connections(func(conn net.Conn) net.Conn { return blindTo{conn, "MCP-SESSION-ID:"} })},
	{ID: "tools.name-lowered", Requirement: ids.ToolsCallListedName, Form: mockserver.ByValue,
		Scenario: "lists/tool-names", Summary: "A tool is called by its name in small letters.",
		Apply: Renaming("tools/call", "name", strings.ToLower)},
	{ID: "tools.name-trimmed", Requirement: ids.ToolsCallListedName, Form: mockserver.ByValue,
		Scenario: "lists/tool-names", Summary: "A tool is called by its name without the blanks around it.",
		Apply: Renaming("tools/call", "name", strings.TrimSpace)},
	{ID: "tools.name-composed", Requirement: ids.ToolsCallListedName, Form: mockserver.ByValue,
		Scenario: "lists/tool-names",
		Summary:  "A letter and its accent in the name of a tool are made one character.",
		Apply: Renaming("tools/call", "name", func(name string) string {
			return strings.ReplaceAll(name, "e\u0301", "é")
		})},
	{ID: "tools.name-cut", Requirement: ids.ToolsCallListedName, Form: mockserver.ByValue,
		Scenario: "lists/tool-names", Summary: "A tool is called by the first 64 characters of its name.",
		Apply: Renaming("tools/call", "name", func(name string) string { return name[:min(len(name), 64)] })},
	{ID: "tools.name-death", Requirement: ids.ToolsCallListedName, Form: mockserver.ByValue,
		Scenario: "lists/tool-names", Summary: "A tool whose name has slashes ends the client.",
		Apply: DyingOf(`"inputSchema"`, "mcpconform/sub//../slash")},
	// github.com/maximhq/bifrost/pull/1302
	{ID: "prompts.name-cleaned", Requirement: ids.PromptsGetListedName, Form: mockserver.ByValue,
		Scenario: "lists/prompt-names",
		Summary:  "Other characters than letters and digits in the name of a prompt become underscores.",
		Apply: Renaming("prompts/get", "name", func(name string) string {
			return strings.Map(func(c rune) rune {
				if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
					return c
				}
				return '_'
			}, name)
		})},
	{ID: "resources.uri-lowered", Requirement: ids.ResourcesURISchemeCustomAllowed, Form: mockserver.ByValue,
		Scenario: "lists/uris",
		Summary:  "A resource is read by its URI in small letters, those of the path included.",
		Apply:    Renaming("resources/read", "uri", strings.ToLower)},
	{ID: "resources.uri-decoded", Requirement: ids.ResourcesURISchemeCustomAllowed, Form: mockserver.ByValue,
		Scenario: "lists/uris", Summary: "A resource is read by its URI with the escapes decoded.",
		Collateral: []string{ids.SchemaReadResourceRequest},
		Apply: Renaming("resources/read", "uri", func(uri string) string {
			if decoded, err := url.PathUnescape(uri); err == nil {
				return decoded
			}
			return uri
		})},
	{ID: "resources.uri-slash", Requirement: ids.ResourcesURISchemeCustomAllowed, Form: mockserver.ByValue,
		Scenario: "lists/uris", Summary: "A resource is read by its URI without the slash at the end.",
		Apply: Renaming("resources/read", "uri", func(uri string) string { return strings.TrimRight(uri, "/") })},
	{ID: "resources.mime-parameter-death", Requirement: ids.ResourcesMimeTypeAny, Form: mockserver.ByValue,
		Scenario: "lists/types", Summary: "A resource whose mimeType has a parameter ends the client.",
		Apply: DyingOf("text/plain; charset=utf-8")},
	{ID: "content.fraction-death", Requirement: ids.ContentAnnotationsOptional, Form: mockserver.ByValue,
		Scenario: "content/dates", Summary: "A date whose seconds have a fraction ends the client.",
		Apply: DyingOf(`"lastModified":"2025-01-12T15:00:58.250Z"`)},
	{ID: "roots.one-at-a-time", Requirement: ids.BaseResponsePresent, Form: mockserver.AtOnce, Scenario: RootsSeen,
		Summary: "A request for the roots that comes while another one is open is never answered.",
		Apply:   Dropping(Replies("roots-both-second"))},
	{ID: "ping.behind-form", Requirement: ids.PingResponsePrompt, Form: mockserver.AtOnce, Scenario: Elicitation,
		Summary: "A ping that comes while a form is open is answered after the user has filled it in.",
		Apply:   All(Slowly("elicitation/create", "take your time"), BehindAnswer("elicitation-open"))},
	{ID: "ping.behind-sampling", Requirement: ids.PingResponsePrompt, Form: mockserver.AtOnce, Scenario: Sampling,
		Summary: "A ping that comes while a model is asked is answered after the model has.",
		Apply:   All(Slowly("sampling/createMessage", "Take your time"), BehindAnswer("sampling-open"))},
	{ID: "ping.behind-roots", Requirement: ids.PingResponsePrompt, Form: mockserver.AtOnce, Scenario: RootsSeen,
		Summary: "A ping that comes while roots are listed is answered after that.",
		Apply:   All(Slowly("roots/list", "roots-unhurried"), BehindAnswer("roots-unhurried"))},
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
