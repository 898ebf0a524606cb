package mockclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

type outgoing = transport.Outgoing

var (
	overSSE = []string{transport.NameSSE}
)

var httpFaults = []Fault{
	{ID: "http.accept-json-only", Requirement: ids.HTTPClientPostAcceptSSE, Transports: OverHTTP,
		Summary: "Accept of a POST has application/json alone.",
		Apply:   Headers(Anything, "Accept", "application/json")},
	{ID: "http.accept-sse-only", Requirement: ids.HTTPClientPostAcceptJSON, Transports: OverHTTP,
		Summary: "Accept of a POST has text/event-stream alone.",
		Apply:   Headers(Anything, "Accept", "text/event-stream")},
	{ID: "http.accept-sse-weightless", Requirement: ids.HTTPClientPostAcceptSSE, Form: mockserver.ByValue,
		Transports: OverHTTP,
		Summary:    "Accept of a POST lists text/event-stream with the weight 0: as not acceptable.",
		Apply:      Headers(Anything, "Accept", "application/json, text/event-stream;q=0.0")},
	{ID: "http.two-messages", Requirement: ids.HTTPClientBodySingleMessage, Transports: OverHTTP,
		Summary: "A POST carries two messages.", Collateral: []string{ids.BaseJSONWellFormed},
		Apply: Saying(`{"jsonrpc":"2.0","id":"p1","method":"ping"}` + "\n" +
			`{"jsonrpc":"2.0","id":"p2","method":"ping"}`)},
	{ID: "http.put", Requirement: ids.HTTPClientPostMethod, Transports: OverHTTP,
		Summary: "A message is sent with PUT.",
		Apply: requesting(transport.Request{Method: http.MethodPut,
			Body: []byte(`{"jsonrpc":"2.0","id":"put","method":"ping"}`)})},
	{ID: "http.get-accept", Requirement: ids.HTTPClientGetAccept, Transports: OverHTTP,
		Summary: "The GET for the listening stream does not accept text/event-stream.",
		Apply: requesting(transport.Request{Method: http.MethodGet,
			Header: http.Header{"Accept": {"application/json"}}})},
	{ID: "http.no-session-header", Requirement: ids.HTTPClientSessionHeader, Transports: OverHTTP,
		Summary: "Requests after the initialization lack Mcp-Session-Id.",
		Apply:   Headers(Later, "Mcp-Session-Id")},
	{ID: "http.no-version-header", Requirement: ids.HTTPClientVersionHeader, Transports: OverHTTP,
		Summary: "Requests after the initialization lack MCP-Protocol-Version.",
		Apply:   Headers(Later, "Mcp-Protocol-Version")},
	{ID: "http.other-version-header", Requirement: ids.HTTPClientVersionHeaderNegotiated, Transports: OverHTTP,
		Summary: "MCP-Protocol-Version is not the negotiated version.",
		Apply:   Headers(Later, "Mcp-Protocol-Version", "2024-11-05")},
	{ID: "http.version-header-twice", Requirement: ids.HTTPClientVersionHeader, Form: mockserver.ByValue,
		Transports: OverHTTP, Summary: "MCP-Protocol-Version names the version twice, with a comma.",
		Collateral: []string{ids.HTTPClientVersionHeaderNegotiated},
		Apply:      Headers(Later, "Mcp-Protocol-Version", "2025-06-18, 2025-06-18")},
	{ID: "http.lost-session-used", Requirement: ids.HTTPClientReinitializeOn404, Scenario: LostSession,
		Transports: OverHTTP, Summary: "The client goes on in a session that was answered with 404.",
		Apply: func(c *client.Standalone) { c.Omissions.Lost = true }},
	// github.com/modelcontextprotocol/typescript-sdk/pull/2086
	{ID: "http.lost-session-used-again", Requirement: ids.HTTPClientReinitializeOn404, Form: mockserver.BySession,
		Scenario: "http/lost-again", Transports: OverHTTP,
		Summary: "The client goes on in the second session that is answered with 404, after it has replaced the first.",
		Apply:   func(c *client.Standalone) { c.Omissions.LostAgain = true }},
	{ID: "http.lost-session-named", Requirement: ids.HTTPClientReinitializeWithoutSessionID, Scenario: LostSession,
		Transports: OverHTTP, Summary: "initialize after 404 carries the id of the lost session.",
		Apply: namingLost},
	{ID: "http.lost-session-unauthorized", Requirement: ids.AuthClientEveryRequest, Form: mockserver.BySession,
		Scenario: "auth/root", Transports: OverHTTP, Summary: "initialize after 404 lacks the access token.",
		Apply: func(c *client.Standalone) {
			raw := ConnectionOf(c)
			lost := false
			Sending(Anything, func(m *wire.Message, out outgoing) []outgoing {
				if lost = lost || raw() != nil && raw().SessionID() != ""; lost && m.Method == "initialize" {
					out.Header = http.Header{"Authorization": nil}
				}
				return []outgoing{out}
			})(c)
		}},
	{ID: "http.no-delete", Requirement: ids.HTTPClientDeleteSession, Scenario: "http/delete", Transports: OverHTTP,
		Summary: "The client ends without a DELETE for its session.",
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if named, ok := conn.(interface{ SetSession(id, version string) }); ok {
				named.SetSession("", "")
			}
			return conn.Close(ctx)
		})},
	{ID: "http.delete-elsewhere", Requirement: ids.HTTPClientDeleteSession, Form: mockserver.ByValue,
		Scenario: "http/delete", Transports: OverHTTP,
		Summary: "The DELETE goes to a path with the id of the session.",
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			if raw, ok := conn.(*transport.HTTPConn); ok && raw.SessionID() != "" {
				_, _ = raw.Do(ctx, transport.Request{Method: http.MethodDelete,
					Path: "/mcp/" + url.PathEscape(raw.SessionID()), Defaults: true})
				raw.SetSession("", "")
			}
			return conn.Close(ctx)
		})},
	{ID: "http.stream-outlives-session", Requirement: ids.LifecycleShutdownHTTPClose, Scenario: "http/delete",
		Transports: OverHTTP, Summary: "The listening stream stays open for long after the DELETE.",
		Apply: func(c *client.Standalone) {
			raw := ConnectionOf(c)
			Doing(func(ctx context.Context, _ *client.Session) {
				if raw() == nil {
					return
				}
				if _, err := raw().Delete(ctx); err == nil {
					<-time.After(10 * time.Second)
				}
			})(c)
		}},
	{ID: "http.resumes-by-post", Requirement: ids.HTTPClientResumeGet, Scenario: CutStream, Transports: OverHTTP,
		Summary: "A stream that was cut is resumed by a POST.", Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply: Wrapping(func(conn transport.Conn) transport.Conn { return reposting{conn} })},
	{ID: "http.fallback-elsewhere", Requirement: ids.SSEClientFallbackGet, Scenario: "http/legacy-only",
		Transports: OverHTTP,
		Summary:    "A client whose POST is refused looks for the older transport at a path of its own choice.",
		Apply: func(c *client.Standalone) {
			c.Omissions.Legacy = true
			Wrapping(func(conn transport.Conn) transport.Conn {
				return &Closer{Conn: conn, OnClose: func(ctx context.Context, conn transport.Conn) error {
					if raw, ok := conn.(*transport.HTTPConn); ok && raw.SessionID() == "" {
						_, _ = raw.Do(ctx, transport.Request{Method: http.MethodGet, Path: "/legacy/events",
							Header: http.Header{"Accept": {"text/event-stream"}}})
					}
					return conn.Close(ctx)
				}}
			})(c)
		}},
	{ID: "http.fallback-rare", Requirement: ids.SSEClientFallbackGet, Form: mockserver.ByValue,
		Scenario: "http/legacy-refused", Transports: OverHTTP,
		Summary: "A client falls back to the older transport after 400, 404 and 405 alone.",
		Apply:   func(c *client.Standalone) { c.Omissions.LegacyRare = true }},
	{ID: "http.fallback-mixed", Requirement: ids.SSEClientFallbackStaysLegacy, Scenario: "http/legacy-only",
		Transports: OverHTTP,
		Summary:    "A client that has fallen back to the older transport posts to the URL of the server.",
		Apply:      func(c *client.Standalone) { Doing(posting(c, func(u *url.URL) {}))(c) }},
	{ID: "http.absolute-endpoint-death", Requirement: ids.SSEClientPostToEndpoint, Form: mockserver.ByValue,
		Scenario: "sse/absolute-endpoint", Transports: overSSE,
		Summary: "An absolute URI in the endpoint event ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.SSE != nil && e.SSE.Event == "endpoint" && bytes.HasPrefix(e.Raw, []byte("http://"))
		})},
	{ID: "http.posts-without-query", Requirement: ids.SSEClientPostToEndpoint, Scenario: "sse/session",
		Transports: []string{transport.NameSSE},
		Summary:    "A message is posted to the path of the endpoint event without its query.",
		Apply:      func(c *client.Standalone) { Doing(posting(c, func(u *url.URL) { u.Path = "/messages" }))(c) }},
	{ID: "http.cut-is-the-end", Requirement: ids.HTTPDisconnectSurvived, Scenario: CutStream, Transports: OverHTTP,
		Crashes: true, Summary: "The end of a connection before its answer crashes the client.",
		Apply: func(c *client.Standalone) { c.Omissions.Cut = true }},
	{ID: "http.json-refused", Requirement: ids.HTTPClientJSONAnswer, Scenario: "http/json-answers",
		Transports: OverHTTP, Summary: "A JSON answer ends the client.",
		Apply: dyingOfHead("Content-Type", "application/json; charset")},
	{ID: "http.sse-refused", Requirement: ids.HTTPClientSSEAnswer, Scenario: "http/sse-answers",
		Transports: OverHTTP, Summary: "A stream of events whose answer has no id ends the client.",
		Collateral: []string{ids.HTTPServerEventIDs},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && !e.SSE.HasID
		})},
	{ID: "http.comment-death", Requirement: ids.HTTPClientSSESyntax, Scenario: "http/sse-fields",
		Transports: OverHTTP, Summary: "An event without the event field ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && e.SSE.Event == ""
		})},
	{ID: "http.comment-ends-event", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: "http/sse-fields", Transports: OverHTTP,
		Summary: "A comment between two lines of data ends the event, and what it was is lost.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && strings.Contains(string(e.Raw), "\n") &&
				e.SSE.Event == ""
		})},
	{ID: "http.idle-death", Requirement: ids.HTTPClientSSESyntax, Scenario: "http/sse-idle", Transports: OverHTTP,
		Summary: "A block of an event stream without data ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.Event == "message" && len(e.Raw) == 0
		})},
	{ID: "http.legacy-lines-death", Requirement: ids.SSEClientMessageEvents, Scenario: "sse/spelling",
		Transports: []string{"sse"},
		Summary:    "An event of the older transport whose data comes in two lines ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, ",\n\"")
		})},
	{ID: "http.event-id-required", Requirement: ids.HTTPServerEventIDs, Scenario: "http/sse-answers",
		Transports: OverHTTP, Summary: "An event without an id ends the client.",
		Collateral: []string{ids.HTTPClientSSEAnswer},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && !e.SSE.HasID
		})},
	{ID: "http.messages-before-ignored", Requirement: ids.HTTPClientMessagesBeforeResponse, Scenario: Requests,
		Transports: OverHTTP, Summary: "A message on a stream before the answer ends the client.",
		Collateral: []string{ids.ArchitectureClientRouting, ids.BaseResponsePresent, ids.PingEitherSide,
			ids.PingResponsePrompt},
		Apply: DyingOf(`"a word"`)},
	{ID: "http.get-405-death", Requirement: ids.HTTPClientGet405Tolerated, Scenario: "http/plain",
		Transports: OverHTTP, Summary: "405 for the GET ends the client.",
		Collateral: []string{ids.HTTPClientDelete405Tolerated},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusMethodNotAllowed &&
				strings.HasPrefix(e.Stream, "get:")
		})},
	{ID: "http.get-without-pause", Requirement: ids.HTTPClientGet405Tolerated, Scenario: "http/plain",
		Transports: OverHTTP,
		Summary:    "The GET is repeated ten times a second although it is answered with 405.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			listener, ok := s.Conn.(interface {
				Listen(ctx context.Context) (stream string, err error)
			})
			for range 70 {
				if !ok {
					return
				}
				_, _ = listener.Listen(ctx)
				<-time.After(100 * time.Millisecond)
			}
		})},
	{ID: "http.stream-ignored", Requirement: ids.HTTPClientGetStreamMessages, Scenario: "http/listening",
		Transports: OverHTTP, Summary: "A ping on the listening stream is not answered.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: Dropping(Replies("on-the-stream"))},
	{ID: "http.stream-left-unanswered", Requirement: ids.HTTPClientGetStreamMessages, Scenario: "http/listening",
		Transports: OverHTTP,
		Summary:    "The listening stream is closed behind each message, and a ping on it is not answered.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      All(ListeningForOne, Dropping(Replies("on-the-stream", "on-the-stream-resent")))},
	{ID: "http.resumed-stream-ignored", Requirement: ids.HTTPClientGetStreamMessages, Form: mockserver.InSequence,
		Scenario: "http/listening", Transports: OverHTTP,
		Summary:    "A ping on the listening stream is not answered once that was resumed.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: Dropping(Replies("on-the-stream-again"))},
	{ID: "http.stream-end-death", Requirement: ids.HTTPClientGetCloseTolerated, Scenario: "http/listening",
		Transports: OverHTTP, Summary: "The end of the listening stream ends the client.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPClientGetStreamMessages},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindStreamEnd && strings.HasPrefix(e.Stream, "get:")
		})},
	{ID: "http.delete-405-death", Requirement: ids.HTTPClientDelete405Tolerated, Scenario: "http/plain",
		Transports: OverHTTP, Summary: "405 for the DELETE is an error of the client.",
		Collateral: []string{ids.HTTPClientGet405Tolerated},
		Apply: Closing(func(ctx context.Context, conn transport.Conn) error {
			err := conn.Close(ctx)
			if slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
				return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusMethodNotAllowed &&
					strings.HasPrefix(e.Stream, "delete:")
			}) {
				err = ErrDead
			}
			return err
		})},
	{ID: "http.other-event-named", Requirement: ids.HTTPClientLastEventID, Scenario: CutStream,
		Transports: OverHTTP, Summary: "A stream is resumed after another event than the last.",
		Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply:      func(c *client.Standalone) { c.Omissions.Event = true }},
	{ID: "http.first-event-named", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: CutStream, Transports: OverHTTP,
		Summary:    "A stream is resumed after the first event that came on it.",
		Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply:      naming(func(string) string { return "cut-soon" })},
	{ID: "http.earlier-event-named-again", Requirement: ids.HTTPClientLastEventID, Form: mockserver.InSequence,
		Scenario: CutStream, Transports: OverHTTP,
		Summary: "A resumed stream that is cut behind a further event is resumed after the event that was " +
			"named before.",
		Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply: func(c *client.Standalone) {
			first := ""
			naming(func(last string) string {
				first = cmp.Or(first, last)
				return first
			})(c)
		}},
	{ID: "http.event-of-another-stream-named", Requirement: ids.HTTPClientLastEventID, Form: mockserver.AtOnce,
		Scenario: CutStream, Transports: OverHTTP,
		Summary:    "A stream is resumed after the last event of any stream.",
		Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply: func(c *client.Standalone) {
			raw := ConnectionOf(c)
			naming(func(last string) string {
				for _, e := range slices.Backward(raw().Log().Events()) {
					if e.SSE != nil && e.SSE.HasID {
						return e.SSE.ID
					}
				}
				return last
			})(c)
		}},
	{ID: "http.event-name-encoded", Requirement: ids.HTTPClientLastEventID, Form: mockserver.ByValue,
		Scenario: CutStream, Transports: OverHTTP, Summary: "The id in Last-Event-ID is percent-encoded.",
		Collateral: []string{ids.HTTPDisconnectSurvived}, Apply: naming(url.QueryEscape)},
	// github.com/junjiem/dify-plugin-agent-mcp_sse/pull/88
	{ID: "http.charset-unread", Requirement: ids.HTTPClientJSONAnswer, Form: mockserver.ByValue,
		Scenario: "http/json-answers", Transports: OverHTTP,
		Summary: "An answer whose Content-Type has a charset is passed over, and the client goes on.",
		Apply: SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok &&
				strings.Contains(typeOfPage(conn.Log(), cursor), "charset") {
				out.Raw = client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()),
					"method": "ping"})
			}
			return []outgoing{out}
		})},
	{ID: "http.no-event-named", Requirement: ids.HTTPClientLastEventID, Scenario: CutStream, Transports: OverHTTP,
		Summary: "A stream is resumed without Last-Event-ID.", Collateral: []string{ids.HTTPDisconnectSurvived},
		Apply: func(c *client.Standalone) { c.Omissions.Unnamed = true }},
	{ID: "http.array", Requirement: ids.HTTPClientPostPerMessage, Transports: OverHTTP,
		Summary:    "A POST carries an array of messages.",
		Collateral: []string{ids.BaseBatchNotSent, ids.HTTPClientBodySingleMessage},
		Apply: Saying(
			`[{"jsonrpc":"2.0","id":"p1","method":"ping"},{"jsonrpc":"2.0","id":"p2","method":"ping"}]`)},
	{ID: "http.other-path", Requirement: ids.HTTPClientPostToEndpoint, Transports: OverHTTP,
		Summary: "A message is sent to another path.",
		Apply: requesting(transport.Request{
			Method: http.MethodPost, Path: "/mcp/messages",
			Body: []byte(`{"jsonrpc":"2.0","id":"elsewhere","method":"ping"}`),
		})},
	{ID: "http.legacy-first", Requirement: ids.SSEClientPostFirst, Scenario: "http/legacy-only",
		Transports: OverHTTP, Summary: "A GET for the legacy transport comes before any POST.",
		Apply: func(c *client.Standalone) { c.Legacy = strings.HasSuffix(c.URL, "/sse") }},
	{ID: "http.session-required", Requirement: ids.HTTPServerSessionID, Scenario: "http/no-session",
		Transports: OverHTTP, Summary: "A server that assigns no session id ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusOK &&
				strings.HasPrefix(e.Stream, "post:") &&
				e.HTTP.Header.Get("Mcp-Session-Id") == "" && e.Seq < 6
		})},
	{ID: "http.error-body-death", Requirement: ids.HTTPClientErrorBodyTolerated, Scenario: "http/refused-message",
		Transports: OverHTTP, Summary: "The client answers no ping after a refusal with a body.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: Dropping(Replies("after-body"))},
	{ID: "http.torn-line-ends", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.InSequence,
		Scenario: "http/sse-torn", Transports: OverHTTP,
		Summary: "A LF that comes in another piece of a stream than the CR before it ends a line of its own.",
		Apply:   Connections(func(conn net.Conn) net.Conn { return tornLineEnds{conn} })},
	{ID: "http.mark-read", Requirement: ids.HTTPClientSSESyntax, Form: mockserver.ByValue,
		Scenario: "http/sse-marked", Transports: OverHTTP,
		Summary: "A byte order mark at the beginning of a stream is read as a part of the first field.",
		Apply:   Connections(func(conn net.Conn) net.Conn { return markReader{conn} })},
	{ID: "http.legacy-mark-read", Requirement: ids.SSEClientMessageEvents, Form: mockserver.ByValue,
		Scenario: "http/sse-marked", Transports: []string{transport.NameSSE},
		Summary: "A byte order mark at the beginning of the stream of the older transport is read as a part " +
			"of the first field.",
		Apply: Connections(func(conn net.Conn) net.Conn { return markReader{conn} })},
	{ID: "http.large-death", Requirement: ids.HTTPMessageLarge, Scenario: "hostile/large", Transports: OverHTTP,
		Summary: "A message of a mebibyte ends the client.",
		Apply:   Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 1<<20 })},
	{ID: "http.large-event-death", Requirement: ids.HTTPMessageLarge, Form: mockserver.ByValue,
		Scenario: "hostile/large", Transports: OverHTTP,
		Summary: "An answer of a mebibyte ends the client if it comes on an event stream.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && len(e.Raw) > 1<<20
		})},
	{ID: "http.large-lost", Requirement: ids.HTTPMessageLarge, Scenario: "hostile/large", Transports: OverHTTP,
		Summary: "A page of a mebibyte is taken for the last one.", Apply: forgetting(1 << 20)},
	{ID: "stdio.large-lost", Requirement: ids.StdioMessageLarge, Scenario: "hostile/large", Transports: OverStdio,
		Summary: "A page on a line of a mebibyte is taken for the last one.", Apply: forgetting(1 << 20)},
	{ID: "stdio.large-death", Requirement: ids.StdioMessageLarge, Scenario: "hostile/large", Transports: OverStdio,
		Summary: "A line of a mebibyte ends the client.",
		Apply:   Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 1<<20 })},
}

// forgetting stops reading a list after a page of more than size bytes.
func forgetting(size int) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		cursor := wire.At(m.Params, "cursor")
		if cursor != nil && slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && len(e.Raw) > size && wire.At(e.Msg.Result, "nextCursor") == cursor
		}) {
			out.Raw = client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()),
				"method": "ping"})
		}
		return []outgoing{out}
	})
}

// requesting sends an additional HTTP request, with the headers that the session needs.
func requesting(r transport.Request) apply {
	return func(c *client.Standalone) {
		raw := ConnectionOf(c)
		Doing(func(ctx context.Context, _ *client.Session) {
			if raw() == nil {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			id, version := raw().Session()
			header := http.Header{"Accept": {"application/json, text/event-stream"},
				"Content-Type": {"application/json"}}
			maps.Copy(header, r.Header)
			header.Set("Mcp-Session-Id", id)
			header.Set("Mcp-Protocol-Version", version)
			r.Header = header
			_, _ = raw().Do(ctx, r)
		})(c)
	}
}

// namingLost sends the id of the first session with every later initialize.
func namingLost(c *client.Standalone) {
	raw := ConnectionOf(c)
	lost := ""
	Sending(Anything, func(m *wire.Message, out outgoing) []outgoing {
		if raw() != nil && lost == "" {
			lost, _ = raw().Session()
		}
		if m.Method == "initialize" && lost != "" {
			out.Header = http.Header{"Mcp-Session-Id": {lost}}
		}
		return []outgoing{out}
	})(c)
}

// dyingOfHead ends the client when a response has a header field with a value.
func dyingOfHead(name, value string) apply {
	return Dying(func(e *wire.Event) bool {
		return e.Kind == wire.KindHTTPResponse && strings.Contains(e.HTTP.Header.Get(name), value)
	})
}

// naming resumes streams after another event.
func naming(change func(last string) string) apply {
	return Changing(func(o *client.Options) {
		resume := o.Resuming
		o.Resuming = func(last string) (string, bool) {
			if resume != nil {
				if _, ok := resume(last); !ok {
					return "", false
				}
			}
			return change(last), true
		}
	})
}

// typeOfPage returns the Content-Type of the response that brought a cursor.
func typeOfPage(log *wire.Log, cursor string) string {
	events := log.Events()
	for _, page := range events {
		if page.Kind != wire.KindMessage || page.From != wire.Server ||
			wire.At(page.Msg.Value(), "result", "nextCursor") != any(cursor) {
			continue
		}
		for _, e := range events {
			if e.Kind == wire.KindHTTPResponse && e.Stream == page.Stream {
				return e.HTTP.Header.Get("Content-Type")
			}
		}
	}
	return ""
}

// reposting resumes streams by POST.
type reposting struct{ transport.Conn }

var errNotResumed = errors.New("the stream cannot be resumed")

func (c reposting) Resume(ctx context.Context, lastEventID string, _ ...string) (*transport.Stream, error) {
	if raw, ok := c.Conn.(*transport.HTTPConn); ok {
		_, _ = raw.Do(ctx, transport.Request{
			Defaults: true, Header: http.Header{"Last-Event-Id": {lastEventID}},
			Body: []byte(`{"jsonrpc":"2.0","id":"again","method":"ping"}`),
		})
	}
	return nil, errNotResumed
}

// posting posts a ping to the URL of the server as change changes it.
func posting(c *client.Standalone, change func(u *url.URL)) func(ctx context.Context, s *client.Session) {
	return func(ctx context.Context, _ *client.Session) {
		u, err := url.Parse(c.URL)
		if err != nil {
			return
		}
		change(u)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(),
			strings.NewReader(`{"jsonrpc":"2.0","id":"elsewhere","method":"ping"}`))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		sender := http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}}
		if answer, err := sender.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}
}

// tornLineEnds reads a CR with which a chunk of a body ends as a LF, so that the LF of the next chunk
// makes an empty line.
type tornLineEnds struct{ net.Conn }

func (c tornLineEnds) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("\r\r\n"), []byte("\n\r\n")))
	return n, err
}

// markReader reads a byte order mark before a field as letters of its name.
type markReader struct{ net.Conn }

func (c markReader) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for _, field := range []string{"data:", "event:"} {
		copy(p[:n], bytes.ReplaceAll(p[:n], []byte("\uFEFF"+field), []byte("bom"+field)))
	}
	return n, err
}
