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
	fault("http.accept-json-only", ids.HTTPClientPostAcceptSSE, "Accept of a POST has application/json alone.",
		Headers(Anything, "Accept", "application/json")),
	fault("http.accept-sse-only", ids.HTTPClientPostAcceptJSON, "Accept of a POST has text/event-stream alone.",
		Headers(Anything, "Accept", "text/event-stream")),
	fault("http.accept-sse-weightless", ids.HTTPClientPostAcceptSSE,
		"Accept of a POST lists text/event-stream with the weight 0: as not acceptable.",
		Headers(Anything, "Accept", "application/json, text/event-stream;q=0.0")).Seen(byValue),
	fault("http.two-messages", ids.HTTPClientBodySingleMessage, "A POST carries two messages.",
		Saying(`{"jsonrpc":"2.0","id":"p1","method":"ping"}`+"\n"+
			`{"jsonrpc":"2.0","id":"p2","method":"ping"}`)).Also(ids.BaseJSONWellFormed),
	fault("http.put", ids.HTTPClientPostMethod, "A message is sent with PUT.",
		requesting(transport.Request{Method: http.MethodPut,
			Body: []byte(`{"jsonrpc":"2.0","id":"put","method":"ping"}`)})),
	fault("http.get-accept", ids.HTTPClientGetAccept,
		"The GET for the listening stream does not accept text/event-stream.",
		requesting(transport.Request{Method: http.MethodGet, Header: http.Header{"Accept": {"application/json"}}})),
	fault("http.no-session-header", ids.HTTPClientSessionHeader,
		"Requests after the initialization lack Mcp-Session-Id.", Headers(Later, "Mcp-Session-Id")),
	fault("http.no-version-header", ids.HTTPClientVersionHeader,
		"Requests after the initialization lack MCP-Protocol-Version.", Headers(Later, "Mcp-Protocol-Version")),
	fault("http.other-version-header", ids.HTTPClientVersionHeaderNegotiated,
		"MCP-Protocol-Version is not the negotiated version.", Headers(Later, "Mcp-Protocol-Version", "2024-11-05")),
	fault("http.version-header-twice", ids.HTTPClientVersionHeader,
		"MCP-Protocol-Version names the version twice, with a comma.",
		Headers(Later, "Mcp-Protocol-Version", "2025-06-18, 2025-06-18")).Seen(byValue).
		Also(ids.HTTPClientVersionHeaderNegotiated),
	fault("http.lost-session-used", ids.HTTPClientReinitializeOn404,
		"The client goes on in a session that was answered with 404.",
		func(c *client.Standalone) { c.Omissions.Lost = true }).In(LostSession),
	// github.com/modelcontextprotocol/typescript-sdk/pull/2086
	fault("http.lost-session-used-again", ids.HTTPClientReinitializeOn404,
		"The client goes on in the second session that is answered with 404, after it has replaced the first.",
		func(c *client.Standalone) { c.Omissions.LostAgain = true }).Seen(bySession).In("http/lost-again"),
	fault("http.lost-session-named", ids.HTTPClientReinitializeWithoutSessionID,
		"initialize after 404 carries the id of the lost session.", namingLost).In(LostSession),
	fault("http.lost-session-unauthorized", ids.AuthClientEveryRequest, "initialize after 404 lacks the access token.",
		func(c *client.Standalone) {
			raw := ConnectionOf(c)
			lost := false
			Sending(Anything, func(m *wire.Message, out outgoing) []outgoing {
				if lost = lost || raw() != nil && raw().SessionID() != ""; lost && m.Method == "initialize" {
					out.Header = http.Header{"Authorization": nil}
				}
				return []outgoing{out}
			})(c)
		}).Seen(bySession).In("auth/root"),
	fault("http.no-delete", ids.HTTPClientDeleteSession, "The client ends without a DELETE for its session.",
		Closing(func(ctx context.Context, conn transport.Conn) error {
			if named, ok := conn.(interface{ SetSession(id, version string) }); ok {
				named.SetSession("", "")
			}
			return conn.Close(ctx)
		})).In("http/delete"),
	fault("http.delete-elsewhere", ids.HTTPClientDeleteSession, "The DELETE goes to a path with the id of the session.",
		Closing(func(ctx context.Context, conn transport.Conn) error {
			if raw, ok := conn.(*transport.HTTPConn); ok && raw.SessionID() != "" {
				_, _ = raw.Do(ctx, transport.Request{Method: http.MethodDelete,
					Path: "/mcp/" + url.PathEscape(raw.SessionID()), Defaults: true})
				raw.SetSession("", "")
			}
			return conn.Close(ctx)
		})).Seen(byValue).In("http/delete"),
	fault("http.stream-outlives-session", ids.LifecycleShutdownHTTPClose,
		"The listening stream stays open for long after the DELETE.", func(c *client.Standalone) {
			raw := ConnectionOf(c)
			Doing(func(ctx context.Context, _ *client.Session) {
				if raw() == nil {
					return
				}
				if _, err := raw().Delete(ctx); err == nil {
					<-time.After(10 * time.Second)
				}
			})(c)
		}).In("http/delete"),
	fault("http.resumes-by-post", ids.HTTPClientResumeGet, "A stream that was cut is resumed by a POST.",
		Wrapping(func(conn transport.Conn) transport.Conn { return reposting{conn} })).In(CutStream).
		Also(ids.HTTPDisconnectSurvived),
	fault("http.fallback-elsewhere", ids.SSEClientFallbackGet,
		"A client whose POST is refused looks for the older transport at a path of its own choice.",
		func(c *client.Standalone) {
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
		}).In("http/legacy-only"),
	fault("http.fallback-rare", ids.SSEClientFallbackGet,
		"A client falls back to the older transport after 400, 404 and 405 alone.",
		func(c *client.Standalone) { c.Omissions.LegacyRare = true }).Seen(byValue).In("http/legacy-refused"),
	fault("http.fallback-mixed", ids.SSEClientFallbackStaysLegacy,
		"A client that has fallen back to the older transport posts to the URL of the server.",
		func(c *client.Standalone) { Doing(posting(c, func(u *url.URL) {}))(c) }).In("http/legacy-only"),
	fault("http.absolute-endpoint-death", ids.SSEClientPostToEndpoint,
		"An absolute URI in the endpoint event ends the client.", Dying(func(e *wire.Event) bool {
			return e.SSE != nil && e.SSE.Event == "endpoint" && bytes.HasPrefix(e.Raw, []byte("http://"))
		})).Seen(byValue).In("sse/absolute-endpoint").Only(overSSE),
	fault("http.posts-without-query", ids.SSEClientPostToEndpoint,
		"A message is posted to the path of the endpoint event without its query.",
		func(c *client.Standalone) { Doing(posting(c, func(u *url.URL) { u.Path = "/messages" }))(c) }).
		In("sse/session").Only(overSSE),
	fault("http.cut-is-the-end", ids.HTTPDisconnectSurvived,
		"The end of a connection before its answer crashes the client.",
		func(c *client.Standalone) { c.Omissions.Cut = true }).In(CutStream).Crashing(),
	fault("http.json-refused", ids.HTTPClientJSONAnswer, "A JSON answer ends the client.",
		dyingOfHead("Content-Type", "application/json; charset")).In("http/json-answers"),
	fault("http.sse-refused", ids.HTTPClientSSEAnswer, "A stream of events whose answer has no id ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && e.SSE != nil && !e.SSE.HasID })).
		In("http/sse-answers").Also(ids.HTTPServerEventIDs),
	fault("http.comment-death", ids.HTTPClientSSESyntax, "An event without the event field ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && e.SSE != nil && e.SSE.Event == "" })).
		In("http/sse-fields"),
	fault("http.comment-ends-event", ids.HTTPClientSSESyntax,
		"A comment between two lines of data ends the event, and what it was is lost.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && strings.Contains(string(e.Raw), "\n") &&
				e.SSE.Event == ""
		})).Seen(byValue).In("http/sse-fields"),
	fault("http.idle-death", ids.HTTPClientSSESyntax, "A block of an event stream without data ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.Event == "message" && len(e.Raw) == 0
		})).In("http/sse-idle"),
	fault("http.legacy-lines-death", ids.SSEClientMessageEvents,
		"An event of the older transport whose data comes in two lines ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && ContainsText(e, ",\n\"")
		})).In("sse/spelling").Only(overSSE),
	fault("http.event-id-required", ids.HTTPServerEventIDs, "An event without an id ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && e.SSE != nil && !e.SSE.HasID })).
		In("http/sse-answers").Also(ids.HTTPClientSSEAnswer),
	fault("http.messages-before-ignored", ids.HTTPClientMessagesBeforeResponse,
		"A message on a stream before the answer ends the client.", DyingOf(`"a word"`)).In(Requests).
		Also(ids.ArchitectureClientRouting, ids.BaseResponsePresent, ids.PingEitherSide, ids.PingResponsePrompt),
	fault("http.get-405-death", ids.HTTPClientGet405Tolerated, "405 for the GET ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusMethodNotAllowed &&
				strings.HasPrefix(e.Stream, "get:")
		})).In("http/plain").Also(ids.HTTPClientDelete405Tolerated),
	fault("http.get-without-pause", ids.HTTPClientGet405Tolerated,
		"The GET is repeated ten times a second although it is answered with 405.",
		Doing(func(ctx context.Context, s *client.Session) {
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
		})).In("http/plain"),
	fault("http.stream-ignored", ids.HTTPClientGetStreamMessages, "A ping on the listening stream is not answered.",
		Dropping(Replies("on-the-stream"))).In("http/listening").Also(ids.BaseResponsePresent),
	fault("http.stream-left-unanswered", ids.HTTPClientGetStreamMessages,
		"The listening stream is closed behind each message, and a ping on it is not answered.",
		All(ListeningForOne, Dropping(Replies("on-the-stream", "on-the-stream-resent")))).In("http/listening").
		Also(ids.BaseResponsePresent),
	fault("http.resumed-stream-ignored", ids.HTTPClientGetStreamMessages,
		"A ping on the listening stream is not answered once that was resumed.",
		Dropping(Replies("on-the-stream-again"))).Seen(inSequence).In("http/listening").Also(ids.BaseResponsePresent),
	fault("http.stream-end-death", ids.HTTPClientGetCloseTolerated, "The end of the listening stream ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindStreamEnd && strings.HasPrefix(e.Stream, "get:") })).
		In("http/listening").Also(ids.BaseResponsePresent, ids.HTTPClientGetStreamMessages),
	fault("http.delete-405-death", ids.HTTPClientDelete405Tolerated, "405 for the DELETE is an error of the client.",
		Closing(func(ctx context.Context, conn transport.Conn) error {
			err := conn.Close(ctx)
			if slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
				return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusMethodNotAllowed &&
					strings.HasPrefix(e.Stream, "delete:")
			}) {
				err = ErrDead
			}
			return err
		})).In("http/plain").Also(ids.HTTPClientGet405Tolerated),
	fault("http.other-event-named", ids.HTTPClientLastEventID, "A stream is resumed after another event than the last.",
		func(c *client.Standalone) { c.Omissions.Event = true }).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	fault("http.first-event-named", ids.HTTPClientLastEventID,
		"A stream is resumed after the first event that came on it.",
		naming(func(string) string { return "cut-soon" })).Seen(inSequence).In(CutStream).
		Also(ids.HTTPDisconnectSurvived),
	fault("http.earlier-event-named-again", ids.HTTPClientLastEventID,
		"A resumed stream that is cut behind a further event is resumed after the event that was named before.",
		func(c *client.Standalone) {
			first := ""
			naming(func(last string) string {
				first = cmp.Or(first, last)
				return first
			})(c)
		}).Seen(inSequence).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	fault("http.event-of-another-stream-named", ids.HTTPClientLastEventID,
		"A stream is resumed after the last event of any stream.", func(c *client.Standalone) {
			raw := ConnectionOf(c)
			naming(func(last string) string {
				for _, e := range slices.Backward(raw().Log().Events()) {
					if e.SSE != nil && e.SSE.HasID {
						return e.SSE.ID
					}
				}
				return last
			})(c)
		}).Seen(atOnce).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	fault("http.event-name-encoded", ids.HTTPClientLastEventID, "The id in Last-Event-ID is percent-encoded.",
		naming(url.QueryEscape)).Seen(byValue).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	// github.com/junjiem/dify-plugin-agent-mcp_sse/pull/88
	fault("http.charset-unread", ids.HTTPClientJSONAnswer,
		"An answer whose Content-Type has a charset is passed over, and the client goes on.",
		SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
			if cursor, ok := wire.At(m.Params, "cursor").(string); ok &&
				strings.Contains(typeOfPage(conn.Log(), cursor), "charset") {
				out.Raw = client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()),
					"method": "ping"})
			}
			return []outgoing{out}
		})).Seen(byValue).In("http/json-answers"),
	fault("http.no-event-named", ids.HTTPClientLastEventID, "A stream is resumed without Last-Event-ID.",
		func(c *client.Standalone) { c.Omissions.Unnamed = true }).In(CutStream).Also(ids.HTTPDisconnectSurvived),
	fault("http.array", ids.HTTPClientPostPerMessage, "A POST carries an array of messages.", Saying(
		`[{"jsonrpc":"2.0","id":"p1","method":"ping"},{"jsonrpc":"2.0","id":"p2","method":"ping"}]`)).
		Also(ids.BaseBatchNotSent, ids.HTTPClientBodySingleMessage),
	fault("http.other-path", ids.HTTPClientPostToEndpoint, "A message is sent to another path.",
		requesting(transport.Request{
			Method: http.MethodPost, Path: "/mcp/messages",
			Body: []byte(`{"jsonrpc":"2.0","id":"elsewhere","method":"ping"}`),
		})),
	fault("http.legacy-first", ids.SSEClientPostFirst, "A GET for the legacy transport comes before any POST.",
		func(c *client.Standalone) { c.Legacy = strings.HasSuffix(c.URL, "/sse") }).In("http/legacy-only"),
	fault("http.session-required", ids.HTTPServerSessionID, "A server that assigns no session id ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusOK &&
				strings.HasPrefix(e.Stream, "post:") &&
				e.HTTP.Header.Get("Mcp-Session-Id") == "" && e.Seq < 6
		})).In("http/no-session"),
	fault("http.error-body-death", ids.HTTPClientErrorBodyTolerated,
		"The client answers no ping after a refusal with a body.", Dropping(Replies("after-body"))).
		In("http/refused-message").Also(ids.BaseResponsePresent),
	fault("http.torn-line-ends", ids.HTTPClientSSESyntax,
		"A LF that comes in another piece of a stream than the CR before it ends a line of its own.",
		Connections(func(conn net.Conn) net.Conn { return tornLineEnds{conn} })).Seen(inSequence).In("http/sse-torn"),
	fault("http.mark-read", ids.HTTPClientSSESyntax,
		"A byte order mark at the beginning of a stream is read as a part of the first field.",
		Connections(func(conn net.Conn) net.Conn { return markReader{conn} })).Seen(byValue).In("http/sse-marked"),
	fault("http.legacy-mark-read", ids.SSEClientMessageEvents,
		"A byte order mark at the beginning of the stream of the older transport is read as a part of the first "+
			"field.", Connections(func(conn net.Conn) net.Conn { return markReader{conn} })).Seen(byValue).
		In("http/sse-marked").Only(overSSE),
	fault("http.large-death", ids.HTTPMessageLarge, "A message of a mebibyte ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 1<<20 })).
		In("hostile/large"),
	fault("http.large-event-death", ids.HTTPMessageLarge,
		"An answer of a mebibyte ends the client if it comes on an event stream.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.SSE != nil && len(e.Raw) > 1<<20
		})).Seen(byValue).In("hostile/large"),
	fault("http.large-lost", ids.HTTPMessageLarge, "A page of a mebibyte is taken for the last one.",
		forgetting(1<<20)).In("hostile/large"),
	fault("stdio.large-lost", ids.StdioMessageLarge, "A page on a line of a mebibyte is taken for the last one.",
		forgetting(1<<20)).In("hostile/large"),
	fault("stdio.large-death", ids.StdioMessageLarge, "A line of a mebibyte ends the client.",
		Dying(func(e *wire.Event) bool { return e.Kind == wire.KindMessage && len(e.Raw) > 1<<20 })).
		In("hostile/large"),
}

// forgetting stops reading a list after a page of more than size bytes.
func forgetting(size int) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		cursor := wire.At(m.Params, "cursor")
		if cursor != nil && slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && len(e.Raw) > size && wire.At(e.Msg.Result, "nextCursor") == cursor
		}) {
			out.Raw = client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()), "method": "ping"})
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
