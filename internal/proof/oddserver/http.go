package oddserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/internal/proof/spell"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// altering changes the head of responses, and the pieces in which their bodies are written.
// Either function may be nil.
func altering(head func(r *http.Request, status int, h http.Header), body func(first bool, b []byte) [][]byte) apply {
	return Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&altered{ResponseWriter: w, request: r, head: head, body: body}, r)
	})
}

type altered struct {
	http.ResponseWriter
	request *http.Request
	head    func(r *http.Request, status int, h http.Header)
	body    func(first bool, b []byte) [][]byte
	begun   bool
}

// Unwrap is for [http.ResponseController].
func (a *altered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *altered) WriteHeader(status int) {
	if a.head != nil {
		a.head(a.request, status, a.Header())
	}
	if a.body != nil {
		a.Header().Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *altered) Write(b []byte) (int, error) {
	if a.body == nil {
		return a.ResponseWriter.Write(b)
	}
	first := !a.begun
	a.begun = true
	for _, piece := range a.body(first, b) {
		if _, err := a.ResponseWriter.Write(piece); err != nil {
			return 0, err
		}
		if err := http.NewResponseController(a.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// unaware is a response whose writes succeed although the client has closed the connection.
type unaware struct {
	http.ResponseWriter
	connected context.Context
}

func (u unaware) gone() bool { return u.connected.Err() != nil }

func (u unaware) Write(b []byte) (int, error) {
	if u.gone() {
		return len(b), nil
	}
	return u.ResponseWriter.Write(b)
}

// FlushError is for [http.ResponseController].
func (u unaware) FlushError() error {
	if u.gone() {
		return nil
	}
	return http.NewResponseController(u.ResponseWriter).Flush()
}

// buffered is a response whose head goes out with the first bytes of the body.
type buffered struct {
	http.ResponseWriter
	begun bool
}

func (b *buffered) Write(p []byte) (int, error) {
	b.begun = true
	return b.ResponseWriter.Write(p)
}

// FlushError is for [http.ResponseController].
func (b *buffered) FlushError() error {
	if !b.begun {
		return nil
	}
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// headed sets headers of all responses.
func headed(pairs ...string) apply {
	return altering(func(_ *http.Request, _ int, h http.Header) {
		for pair := range slices.Chunk(pairs, 2) {
			h[pair[0]] = append(h[pair[0]], pair[1])
		}
	}, nil)
}

// typedAs gives the media types of JSON and of streams another spelling.
func typedAs(asJSON, asStream string) apply {
	return altering(func(_ *http.Request, _ int, h http.Header) {
		switch h.Get("Content-Type") {
		case "application/json":
			h.Set("Content-Type", asJSON)
		case "text/event-stream":
			h.Set("Content-Type", asStream)
		}
	}, nil)
}

// refusedWith changes the status and body of refusals. An empty kind leaves out the body.
func refusedWith(status int, kind, body string, situations ...server.Situation) apply {
	var changes []apply
	for _, s := range situations {
		changes = append(changes, Replying(s, func(r *server.Reply) {
			if status != 0 {
				r.Status = status
			}
			r.Header.Del("Content-Type")
			r.Body = nil
			if kind != "" {
				r.Header.Set("Content-Type", kind)
				r.Body = []byte(body)
			}
		}))
	}
	return All(changes...)
}

// refusals are the situations in which a POST is refused by an error status.
var refusals = []server.Situation{
	server.BadMessage, server.UnsupportedMediaType, server.NotAcceptable, server.MissingSession, server.UnknownSession,
	server.BadVersionHeader,
	server.ForeignOrigin, server.ForeignHost,
}

// resumesHeader keeps what a GET had as Last-Event-ID.
const resumesHeader = "X-Resumes"

// identified makes the ids of sessions.
func identified(id func(unique string) string) apply {
	return func(o *server.Options) { o.Behaviour.HTTP.SessionID = func() string { return id(rand.Text()) } }
}

// streamless are the requirements that a server leaves open if it answers each request with JSON alone.
var streamless = []string{"progress.*", "logging.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout,
	"http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress, ids.CancellationStopProcessing,
	ids.CancellationLateResponse, ids.ProgressTokenEcho, ids.ProgressValueIncreases, ids.ProgressTokenActiveRequest,
	ids.ProgressInProgress, ids.ProgressStop, ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow,
	ids.LoggingSecurityNoCredentials, ids.LoggingSecurityNoPersonalData, ids.LoggingFilterAllAbove,
	ids.SchemaCancelledNotification, ids.SchemaLoggingMessageNotification, ids.SchemaProgressNotification}

// unlistened are the requirements that a server without listening streams leaves open.
var unlistened = []string{ids.LifecycleCapabilityServerEmitsToolsListChanged,
	ids.LifecycleCapabilityServerEmitsPromptsListChanged, ids.LifecycleCapabilityServerEmitsResourcesListChanged,
	ids.LifecycleCapabilityServerEmitsResourceUpdates, "http.server.*", ids.ToolsListChangedSent,
	ids.ResourcesListChangedSent, ids.ResourcesUpdatedSent, ids.PromptsListChangedSent,
	ids.ResourcesUpdatedOnlySubscribed, ids.SchemaResourceUpdatedNotification,
	ids.ResourcesUpdatedEndsWithUnsubscribe}

// basic/transports#streamable-http
var httpOddities = []Oddity{
	odd("http.always-streams", "Each request is answered with a stream.",
		"The server either initiates a stream or returns JSON.", "basic/transports#sending-messages-to-the-server",
		Serving(func(o *server.HTTPOptions) { o.AlwaysSSE = true })).Open(ids.HTTPServerJSONOneObject).
		Replaces("form of answers"),
	odd("http.never-streams",
		"Each request is answered with JSON; requests of the server come on the listening stream.",
		"The server either initiates a stream or returns JSON.", "basic/transports#sending-messages-to-the-server",
		inForm(server.AnswerJSON)).Open(streamless...).Replaces("form of answers"),
	odd("http.requests-unheard",
		"Each request is answered with JSON and there is no listening stream: calls that ask the client wait half "+
			"a minute for an answer.",
		"The server offers neither stream, and the text does not say how long a call may take.",
		"basic/lifecycle#timeouts",
		All(inForm(server.AnswerJSON), Serving(func(o *server.HTTPOptions) { o.NoGet = true }),
			WithholdingAny(func(out *server.Outgoing) bool { return out.Kind == wire.Request }))).Open("*").
		Replaces("form of answers"),
	odd("http.forms-by-turns", "Requests are answered with a stream and with JSON by turns.",
		"The server either initiates a stream or returns JSON.", "basic/transports#sending-messages-to-the-server",
		func(o *server.Options) {
			o.Behaviour.HTTP.Answer = func(r *server.Request) server.AnswerForm {
				if Count(r.Session, "form")%2 == 0 {
					return server.AnswerSSE
				}
				return server.AnswerAuto
			}
		}).Replaces("form of answers"),
	odd("http.no-get", "GET is answered with 405.", "That indicates that no stream is offered.",
		"basic/transports#listening-for-messages-from-the-server",
		Serving(func(o *server.HTTPOptions) { o.NoGet = true })).
		Open(ids.LifecycleCapabilityServerEmitsToolsListChanged, ids.LifecycleCapabilityServerEmitsPromptsListChanged,
			ids.LifecycleCapabilityServerEmitsResourcesListChanged, ids.LifecycleCapabilityServerEmitsResourceUpdates,
			ids.HTTPServerDisconnectNotCancel, ids.HTTPServerGetUnrelated, ids.HTTPServerGetNoResponse,
			ids.HTTPServerGetCloseTolerated, ids.HTTPServerEventIDCursor, ids.ToolsListChangedSent,
			ids.ResourcesListChangedSent, ids.ResourcesUpdatedSent, ids.PromptsListChangedSent,
			ids.ResourcesUpdatedOnlySubscribed, ids.SchemaResourceUpdatedNotification,
			ids.ResourcesUpdatedEndsWithUnsubscribe).Replaces("listening"),
	odd("http.no-delete", "DELETE is answered with 405.", "That indicates that clients cannot terminate sessions.",
		"basic/transports#session-management", Serving(func(o *server.HTTPOptions) { o.NoDelete = true })).
		Open(ids.HTTPServerSessionEnded404).Replaces("endings"),
	odd("http.405-bare", "405 comes without a body and without the header Allow.",
		"The text asks for the status alone.", "basic/transports#listening-for-messages-from-the-server",
		All(Serving(func(o *server.HTTPOptions) { o.NoGet, o.NoDelete = true, true }),
			refusedWith(0, "", "", server.MethodNotAllowed),
			Replying(server.MethodNotAllowed, func(r *server.Reply) { r.Header.Del("Allow") }))).Open(unlistened...),
	odd("http.405-page", "405 comes with a page in HTML.", "The text asks for the status alone.",
		"basic/transports#listening-for-messages-from-the-server",
		All(Serving(func(o *server.HTTPOptions) { o.NoGet, o.NoDelete = true, true }),
			refusedWith(0, "text/html; charset=iso-8859-1", "<h1>Method Not Allowed</h1>\xe9",
				server.MethodNotAllowed))).Open(unlistened...),
	odd("http.no-event-ids", "Events have no ids.", "Servers MAY attach ids.",
		"basic/transports#resumability-and-redelivery", Serving(func(o *server.HTTPOptions) { o.NoEventID = true })).
		Open(ids.HTTPServerDisconnectNotCancel, ids.HTTPServerEventIDUnique, ids.HTTPServerReplaySameStream,
			ids.HTTPServerEventIDCursor).Replaces("event ids"),
	odd("http.plain",
		"The server has neither GET nor DELETE, gives no ids, keeps nothing of its clients, and answers with JSON.",
		"All of that is optional.", "basic/transports#streamable-http", All(inForm(server.AnswerJSON), stateless)).
		Open(ids.PingNotExcessive, "security.session.*", "progress.*", "logging.*", "base.*", ids.MetaAttachResult,
			ids.LifecycleInitServerWaits, ids.LifecycleShutdownByTransport, "http.server.*",
			ids.CancellationSameDirection, ids.CancellationInProgress, ids.CancellationStopProcessing,
			ids.CancellationNoResponse, ids.CancellationLateResponse, ids.PingNoParams, "progress.*",
			ids.ToolsListChangedSent, "resources.*", ids.PromptsListChangedSent, "logging.*",
			ids.PaginationServerStableCursors, "sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout,
			ids.RootsRootNameOptional, ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*",
			ids.RootsListChangedRefetch, ids.RootsRootFileOrDirectory, ids.PaginationCursorResultsAfter,
			ids.MetaAttachObjects),
	odd("http.session-id-long", "Session ids have 2000 characters.", "The length has no limit.",
		"basic/transports#session-management",
		identified(func(u string) string { return u + strings.Repeat("0123456789abcdef", 123) })).
		Replaces("session ids"),
	odd("http.session-id-characters", "Session ids have all visible ASCII characters.",
		"Characters from 0x21 to 0x7E are allowed.", "basic/transports#session-management",
		identified(func(u string) string {
			var b strings.Builder
			for c := byte('!'); c <= '~'; c++ {
				b.WriteByte(c)
			}
			return b.String() + u
		})).Replaces("session ids"),
	odd("http.session-id-jwt", "Session ids have the form of a JWT.", "The text names a JWT as an example.",
		"basic/transports#session-management", identified(func(u string) string {
			return "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + u +
				"dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
		})).Replaces("session ids"),
	odd("http.session-header-repeated", "All responses of a session carry its id.",
		"The text demands the header on one response, and forbids it on none.", "basic/transports#session-management",
		altering(func(r *http.Request, _ int, h http.Header) {
			if id := r.Header.Get(SessionHeader); id != "" && h.Get(SessionHeader) == "" {
				h.Set(SessionHeader, id)
			}
		}, nil)).Replaces("headers"),
	odd("http.headers-lower-case", "Names of headers are written in lower case.",
		"Names of headers have no case (RFC 9110, section 5.1).", "basic/transports#session-management",
		altering(func(_ *http.Request, _ int, h http.Header) {
			for name, values := range h {
				if lower := strings.ToLower(name); lower != name && name != "Content-Length" {
					delete(h, name)
					h[lower] = values
				}
			}
		}, nil)).Only(OverBothHTTP).Replaces("headers"),
	odd("http.headers-more",
		"Responses carry cookies, security headers, several Vary, and the version of the protocol.",
		"Other headers are HTTP's own affair.", "basic/transports#streamable-http",
		headed("Set-Cookie", "a=b; Path=/; HttpOnly", "Set-Cookie", "c=d", "Vary", "Origin", "Vary",
			"Accept-Encoding", "Strict-Transport-Security", "max-age=1",
			"X-Powered-By", "MCP", "Mcp-Protocol-Version", "2025-06-18", "Access-Control-Allow-Origin",
			"http://localhost", "Via", "1.1 proxy, 1.0 cache", "Etag", `W/"1"`)).Only(OverBothHTTP),
	odd("http.charset", "Media types have the parameter charset=utf-8.", "Media types may have parameters.",
		"basic/transports#sending-messages-to-the-server",
		typedAs("application/json; charset=utf-8", "text/event-stream;charset=UTF-8")).Only(OverBothHTTP).
		Replaces("headers"),
	odd("http.media-types-odd", "Media types are in capitals, with quoted parameters and spaces around the semicolon.",
		"Media types have no case (RFC 9110, section 8.3.1).", "basic/transports#sending-messages-to-the-server",
		typedAs(`Application/JSON ; Charset="UTF-8"; profile="a;b"`, `Text/Event-Stream ; Charset="utf-8"`)).
		Only(OverBothHTTP).Replaces("headers"),
	odd("http.connection-close", "Each connection is closed after one response.",
		"Keeping connections is optional in HTTP.", "basic/transports#streamable-http", headed("Connection", "close")).
		Only(OverBothHTTP),
	odd("http.no-length", "No body has a Content-Length; all are chunked.",
		"How the length of a body is told is HTTP's own affair.", "basic/transports#streamable-http",
		altering(nil, func(_ bool, b []byte) [][]byte { return [][]byte{b} })).Replaces("chunks"),
	odd("http.small-chunks", "Bodies come in chunks of a few bytes, in the midst of characters too.",
		"Chunks mean nothing to the content.", "basic/transports#streamable-http",
		altering(nil, func(_ bool, b []byte) [][]byte { return slices.Collect(slices.Chunk(b, max(3, len(b)/40))) })).
		Only(OverBothHTTP).Replaces("chunks"),
	odd("http.space-around-json", "JSON bodies have whitespace and line ends before and after.",
		"It is insignificant whitespace of JSON.", "basic/transports#sending-messages-to-the-server",
		Replying(server.AnsweredJSON,
			func(r *server.Reply) { r.Body = slices.Concat([]byte("\r\n \t"), r.Body, []byte("\n\n")) })),
	odd("http.accepted-with-type", "202 comes with a Content-Type and a Content-Length of 0.", "There is no body.",
		"basic/transports#sending-messages-to-the-server", Replying(server.Accepted, func(r *server.Reply) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Content-Length", "0")
		})),
	odd("http.refusals-bare", "Refusals have no body.", "The body MAY comprise an error.",
		"basic/transports#sending-messages-to-the-server", refusedWith(0, "", "", refusals...)).
		Open(ids.BaseErrorParseError, ids.BaseErrorUndetectableID, ids.BaseErrorInvalidRequest).Replaces("refusals"),
	odd("http.refusals-text", "Refusals have a plain text for their body.", "The body MAY comprise an error.",
		"basic/transports#sending-messages-to-the-server", refusedWith(0, "text/plain", "Refused\n", refusals...)).
		Open(ids.BaseErrorParseError, ids.BaseErrorUndetectableID, ids.BaseErrorInvalidRequest).Replaces("refusals"),
	odd("http.refusals-other-json", "Refusals have a JSON body that is not a message: a problem of RFC 9457.",
		"The body MAY comprise a JSON-RPC error.", "basic/transports#sending-messages-to-the-server",
		refusedWith(0, "application/problem+json", `{"type":"about:blank","title":"Refused","detail":"no"}`,
			refusals...)).Open(ids.BaseErrorParseError, ids.BaseErrorUndetectableID, ids.BaseErrorInvalidRequest).
		Replaces("refusals"),
	odd("http.refusals-id-null", "The errors in the bodies of refusals have the id null.",
		"JSON-RPC has null for a request whose id could not be told.",
		"basic/transports#sending-messages-to-the-server", All(func(o *server.Options) {
			for _, s := range refusals {
				Replying(s, func(r *server.Reply) {
					var m object
					if json.Unmarshal(r.Body, &m) == nil && m["id"] == nil {
						m["id"] = nil
						r.Body = []byte(spell.Plain(m))
					}
				})(o)
			}
		})).Replaces("refusals"),
	odd("http.refusals-422", "An invalid message is refused with 422.",
		"The status is an error status, 400 for example.", "basic/transports#sending-messages-to-the-server",
		refusedWith(http.StatusUnprocessableEntity, "", "", server.BadMessage)).
		Open(ids.BaseErrorParseError, ids.BaseErrorUndetectableID, ids.BaseErrorInvalidRequest).Replaces("refusals"),
	odd("http.refusals-400", "A wrong media type, a wrong Accept and a foreign origin are refused with 400.",
		"The text names no status for these.", "basic/transports#security-warning",
		refusedWith(http.StatusBadRequest, "", "", server.UnsupportedMediaType, server.NotAcceptable,
			server.ForeignOrigin, server.ForeignHost)).Replaces("refusals"),
	odd("http.foreign-origin-404", "A request of a foreign origin is refused with 404, one of a foreign host with 421.",
		"The text names no status for these.", "basic/transports#security-warning",
		All(refusedWith(http.StatusNotFound, "text/plain", "not here", server.ForeignOrigin),
			refusedWith(http.StatusMisdirectedRequest, "", "", server.ForeignHost))).Only(OverBothHTTP).
		Replaces("refusals"),
	odd("http.delete-200", "DELETE is answered with 200 and a JSON document.",
		"The text names no status for a termination that succeeds.", "basic/transports#session-management",
		Replying(server.DeletedSession, func(r *server.Reply) {
			r.Status, r.Body = http.StatusOK, []byte(`{"ended":true}`)
			r.Header.Set("Content-Type", "application/json")
		})).Replaces("endings"),
	odd("http.delete-202", "DELETE is answered with 202 and nothing else.",
		"The text names no status for a termination that succeeds.", "basic/transports#session-management",
		Replying(server.DeletedSession, func(r *server.Reply) { r.Status = http.StatusAccepted })).Replaces("endings"),
	odd("http.delete-202-later", "DELETE is answered with 202, and the session ends two seconds later.",
		"202 says that the request was accepted, not that it was carried out.", "basic/transports#session-management",
		endingLater).Open(ids.HTTPServerSessionEnded404, ids.HTTPServerDeleteSession).Replaces("endings"),
	odd("http.lenient-media-types", "The Content-Type and the Accept header of requests do not matter.",
		"They bind the client; nothing obliges the server to refuse.",
		"basic/transports#sending-messages-to-the-server",
		All(Passing(server.UnsupportedMediaType, func(*server.Reply) bool { return true }),
			Passing(server.NotAcceptable, func(*server.Reply) bool { return true }))).Replaces("refusals"),
	odd("http.strict-accept", "A POST whose Accept header does not list both types is refused with 406.",
		"The client MUST list both.", "basic/transports#sending-messages-to-the-server",
		NotAccepting(func(accept string) bool {
			accept = strings.ToLower(accept)
			both := strings.Contains(accept, "application/json") && strings.Contains(accept, "text/event-stream")
			return !both && !strings.Contains(accept, "*/*")
		})).Replaces("refusals"),
	odd("http.one-version", "The server supports this revision alone, in the header too.",
		"An unsupported version in the header MUST get 400.", "basic/transports#protocol-version-header",
		func(o *server.Options) { o.Versions = []string{server.Version} }),
	odd("http.moved", "The URL of the server redirects with 308 to another.", "Redirects are HTTP's own affair.",
		"basic/transports#streamable-http", Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path == server.PathMCP && r.URL.RawQuery == "" {
				http.Redirect(w, r, server.PathMCP+"?v=2", http.StatusPermanentRedirect)
				return
			}
			next.ServeHTTP(w, r)
		})),
	odd("http.early-hints", "A response 103 precedes each other one.",
		"Informational responses are HTTP's own affair (RFC 9110, section 15.2).", "basic/transports#streamable-http",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			next.ServeHTTP(w, r)
		})).Only(OverBothHTTP),
	odd("http.trailers", "Bodies end with trailers.", "Trailers are HTTP's own affair (RFC 9110, section 6.5).",
		"basic/transports#streamable-http", All(
			altering(nil, func(_ bool, b []byte) [][]byte { return [][]byte{b} }),
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				w.Header().Set("Trailer", "X-Checksum")
				next.ServeHTTP(w, r)
				w.Header().Set("X-Checksum", "7")
			}),
		)).Replaces("chunks"),
	odd("http.options", "OPTIONS is answered with 204 and the headers of CORS.",
		"The text is about GET, POST and DELETE.", "basic/transports#streamable-http",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodOptions {
				w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})).Only(OverBothHTTP),
	odd("http.other-methods", "HEAD, PUT and PATCH are answered with 501 and a text.",
		"The text is about GET, POST and DELETE.", "basic/transports#streamable-http",
		RefusingHTTP(http.StatusNotImplemented, func(r *http.Request) bool {
			return slices.Contains([]string{http.MethodHead, http.MethodPut, http.MethodPatch}, r.Method)
		})),
	odd("http.replay-not-offered", "Last-Event-ID is ignored: nothing is sent again.",
		"The server MAY use the header to replay messages.", "basic/transports#resumability-and-redelivery",
		Replaying(func(string, []*server.Event, []*server.Event) []*server.Event { return nil })).
		Replaces("event ids"),
	odd("http.resume-listens", "A GET with Last-Event-ID opens a new listening stream, which begins with a ping.",
		"The server MAY use the header to replay messages.", "basic/transports#resumability-and-redelivery", All(
			Replying(server.ListeningSSE, func(r *server.Reply) {
				if r.Request.Header.Get(resumesHeader) != "" {
					go func() { _, _ = r.Session.Call(r.Request.Context(), "ping", nil) }()
				}
			}),
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Header.Del(resumesHeader)
				if last := r.Header.Get(LastEventHeader); last != "" {
					r.Header.Del(LastEventHeader)
					r.Header.Set(resumesHeader, last)
				}
				next.ServeHTTP(w, r)
			}),
		)).Open(ids.HTTPServerDisconnectNotCancel).Replaces("listening"),
	odd("http.resumed-once",
		"Events of a stream are sent again to the first client that resumes it, and to nobody afterwards.",
		"The server MAY use the header to replay messages.", "basic/transports#resumability-and-redelivery",
		func(o *server.Options) {
			var begun sync.Map // by session and stream
			o.Behaviour.HTTP.Replay = func(s *server.Session, last string, proposal,
				_ []*server.Event) []*server.Event {
				stream, _, _ := strings.Cut(last, "-")
				if _, again := begun.LoadOrStore([2]any{s, stream}, true); again {
					return nil
				}
				return proposal
			}
		}).Replaces("event ids"),
	odd("http.listening-ends", "The server closes a listening stream 20 ms after it was opened.",
		"The server MAY close the stream at any time.", "basic/transports#listening-for-messages-from-the-server",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet {
				ctx, stop := context.WithTimeout(r.Context(), 20*time.Millisecond)
				defer stop()
				r = r.WithContext(ctx)
			}
			next.ServeHTTP(w, r)
		})).
		Open(ids.HTTPServerDisconnectNotCancel, ids.HTTPServerEventIDCursor, ids.ResourcesUpdatedSent,
			ids.ResourcesUpdatedEndsWithUnsubscribe).Replaces("listening"),
	odd("http.listening-ends-after-event", "The server closes a listening stream after each event.",
		"The server MAY close the stream at any time.", "basic/transports#listening-for-messages-from-the-server",
		EachEvent(func(e *server.Event) { e.Cut = strings.HasPrefix(e.Stream, "get:") })).Replaces("listening"),
	odd("http.close-noticed-late",
		"The server goes on writing to each stream for two seconds after the client has closed that.",
		"A connection that was closed shows when a write to it fails; what was sent until then can be had by "+
			"resuming the stream.", "basic/transports#resumability-and-redelivery",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
			defer stop()
			defer context.AfterFunc(r.Context(), func() { time.AfterFunc(2*time.Second, stop) })()
			next.ServeHTTP(unaware{w, r.Context()}, r.WithContext(ctx))
		})).Replaces("listening"),
	odd("http.get-head-with-first-event", "The head of the response to a GET goes out with the first event.",
		"The text sets no time for the response; a server that buffers it sends nothing before it has something to "+
			"send.", "basic/transports#listening-for-messages-from-the-server", buffersGets).Replaces("listening"),
	odd("http.listening-announces", "A listening stream begins with a notice that each of the lists has changed.",
		"A client that has just begun to listen may have missed a change; the server MAY send notifications on the "+
			"stream.", "basic/transports#listening-for-messages-from-the-server",
		Replying(server.ListeningSSE, func(r *server.Reply) {
			if r.Session.Initialized() {
				for _, list := range []string{"tools", "prompts", "resources"} {
					r.Session.Notify("notifications/"+list+"/list_changed", nil)
				}
			}
		})).Replaces("listening"),
	odd("http.one-listening-stream", "A second listening stream of a session is refused with 409.",
		"It is the client that MAY remain connected to several; the server offers what it can.",
		"basic/transports#multiple-connections", oneListening).
		Open(ids.HTTPServerDisconnectNotCancel, ids.HTTPServerEventIDCursor).Replaces("listening"),
	odd("http.one-buffered-listening-stream", "A second listening stream of a session is refused with 409, although "+
		"the head of the first goes out with its first event.",
		"The text sets no time for the response; the server offers what it can.",
		"basic/transports#multiple-connections", All(oneListening, buffersGets)).
		Open(ids.HTTPServerDisconnectNotCancel, ids.HTTPServerEventIDCursor, ids.HTTPServerGetCloseTolerated).
		Replaces("listening"),
	odd("http.listening-after-handshake", "A listening stream is refused with 400 before notifications/initialized.",
		"The initialization phase MUST be the first interaction: nothing obliges to more before its end.",
		"basic/lifecycle#initialization", Replying(server.ListeningSSE, func(r *server.Reply) {
			if !r.Session.Initialized() {
				r.Status, r.Body = http.StatusBadRequest, []byte("not initialized yet")
			}
		})).Replaces("listening"),
	odd("http.older-transport-beside",
		"A GET without a session opens a stream of the older transport, whose endpoint event comes after 20 ms.",
		"It is possible to combine the old endpoint and the new one.", "basic/transports#backwards-compatibility",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || r.Header.Get("Mcp-Session-Id") != "" || r.Header.Get("Origin") != "" ||
				!strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
				next.ServeHTTP(w, r)
				return
			}
			flush := http.NewResponseController(w).Flush
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
			_, _ = w.Write([]byte("event: endpoint\ndata: /messages?session=1\n\n"))
			_ = flush()
			<-r.Context().Done()
		})).Replaces("listening"),
	odd("http.initialized-once", "A second notifications/initialized is refused with 400.",
		"A server refuses unacceptable messages with an HTTP error status.",
		"basic/transports#sending-messages-to-the-server",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Method == "notifications/initialized" && !Once(r.Session, "initialized") {
				r.Status, r.Body = http.StatusBadRequest, []byte("initialized already")
			}
		}))),
	odd("http.sessions-short", "A session ends after 300 of its requests, and is answered with 404 from then on.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management", sessionsOf(300)).
		Open("*"),
	odd("http.sessions-shorter", "A session ends after 30 of its requests, and is answered with 404 from then on.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management", sessionsOf(30)).
		Open("*").Replaces("sessions"),
	endingEach(3),
	endingEach(7),
	endingEach(20),
	endingEach(50),
	odd("http.sessions-of-seven", "A session ends after seven of its requests, and is answered with 404 from then on.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management", sessionsOf(7)).
		Open("*").Replaces("sessions"),
	odd("http.sessions-brief",
		"A session ends 100 milliseconds after its first request, and is answered with 404 from then on.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management",
		func(o *server.Options) {
			var begun sync.Map // by session id
			RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
				id := r.Header.Get(SessionHeader)
				first, _ := begun.LoadOrStore(id, time.Now())
				return id != "" && time.Since(first.(time.Time)) > 100*time.Millisecond
			})(o)
		}).Open("*").Replaces("sessions"),
	odd("http.session-ends-when-refused",
		"A message or a version that is refused is the last of its session, which is answered with 404 from then on.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management",
		func(o *server.Options) {
			var ended sync.Map // by session id
			RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
				_, over := ended.Load(r.Header.Get(SessionHeader))
				return over
			})(o)
			for _, situation := range []server.Situation{server.BadMessage, server.BadVersionHeader} {
				Replying(situation, func(r *server.Reply) {
					if id := r.Request.Header.Get(SessionHeader); id != "" {
						ended.Store(id, true)
					}
				})(o)
			}
		}).Open("*").Replaces("sessions"),
	odd("http.busy", "With more than eight requests at once, POST is answered with 503 and Retry-After.",
		"Being busy is HTTP's own affair (RFC 9110, section 15.6.4).", "basic/transports#streamable-http",
		func(o *server.Options) {
			var running atomic.Int64
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodPost {
					defer running.Add(-1)
					if running.Add(1) > 8 {
						w.Header().Set("Retry-After", "1")
						http.Error(w, "busy", http.StatusServiceUnavailable)
						return
					}
				}
				next.ServeHTTP(w, r)
			})(o)
		}).Open("*"),
	odd("http.gateway-fails",
		"The first two requests are answered with 502 and a page, and in each session the first GET with 503 and "+
			"the first tools/list and notifications/initialized with 504.",
		"A gateway that gets no answer for the moment says so (RFC 9110, sections 15.6.3 to 15.6.5).",
		"basic/transports#streamable-http", All(func(o *server.Options) {
			var begun atomic.Int64
			var known sync.Map // what each session has begun
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				first := func(what string) bool {
					_, loaded := known.LoadOrStore([2]string{r.Header.Get("Mcp-Session-Id"), what}, true)
					return !loaded
				}
				method := Posted(r).Method
				switch {
				case begun.Add(1) <= 2:
					http.Error(w, "<html><title>502 Bad Gateway</title></html>", http.StatusBadGateway)
				case r.Method == http.MethodGet && first(http.MethodGet):
					http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
				case slices.Contains([]string{"tools/list", "notifications/initialized"}, method) && first(method):
					http.Error(w, "", http.StatusGatewayTimeout)
				default:
					next.ServeHTTP(w, r)
				}
			})(o)
		}, Peeking())),
	odd("http.too-many-requests", "After 100 in a second, requests are answered with 429 and Retry-After.",
		"Limits of rate are HTTP's own affair (RFC 6585, section 4).", "basic/transports#streamable-http",
		limitingRate(100,
			func(w http.ResponseWriter) { http.Error(w, "too many requests", http.StatusTooManyRequests) })).Open("*"),
	odd("http.too-many-requests-as-errors",
		"After 20 in a second, requests are answered with 429, Retry-After and a JSON-RPC error without an id.",
		"Limits of rate are HTTP's own affair (RFC 6585, section 4), and the body of a refusal may be an error.",
		"basic/transports#sending-messages-to-the-server", limitingRate(20, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Too many requests"},"id":null}`))
		})).Open("*"),
}

// limitingRate refuses requests beyond a number in a second.
func limitingRate(most int64, refuse func(http.ResponseWriter)) apply {
	return func(o *server.Options) {
		var mu sync.Mutex
		var second, n int64
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			mu.Lock()
			if now := time.Now().Unix(); now != second {
				second, n = now, 0
			}
			n++
			over := n > most
			mu.Unlock()
			if over {
				w.Header().Set("Retry-After", "1")
				refuse(w)
				return
			}
			next.ServeHTTP(w, r)
		})(o)
	}
}

// stateless serves each request in a session of its own, which no client gets to know.
var stateless = All(
	paged(1000), // a cursor means nothing to another session
	Without("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe", "logging"),
	Offering(func(c *server.Catalogue) {
		c.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t *server.Tool) bool {
			asks := needs[t.Name()] != "" || t.Name() == "test_ping"
			return asks || strings.HasPrefix(t.Name(), "toggle_") || t.Name() == "update_resource"
		})
	}),
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if m := Posted(r); r.Method == http.MethodPost && m.Kind != wire.Invalid && m.Method != "initialize" {
			id := opened(r, next)
			r.Header.Set(SessionHeader, id)
			defer func() { sent(r, next, http.MethodDelete, id, "") }()
		}
		next.ServeHTTP(&altered{ResponseWriter: w, request: r,
			head: func(_ *http.Request, _ int, h http.Header) { h.Del(SessionHeader) }}, r)
	}),
	Peeking(),
	Serving(func(o *server.HTTPOptions) { o.NoGet, o.NoEventID = true, true }),
	RefusingHTTP(http.StatusMethodNotAllowed, func(r *http.Request) bool { return r.Method == http.MethodDelete }),
)

// endingLater accepts the first DELETE of each session, and carries it out later.
func endingLater(o *server.Options) {
	var accepted sync.Map // by session id
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id, version := r.Header.Get(SessionHeader), r.Header.Get("Mcp-Protocol-Version")
		refused := id == "" || r.Header.Get("Origin") != "" || version != "" && version != schema.DefaultVersion
		if _, twice := accepted.Load(id); r.Method != http.MethodDelete || refused || twice {
			next.ServeHTTP(w, r)
			return
		}
		accepted.Store(id, true)
		later := r.Clone(context.WithoutCancel(r.Context()))
		time.AfterFunc(2*time.Second, func() { next.ServeHTTP(unread{}, later) })
		w.WriteHeader(http.StatusAccepted)
	})(o)
}

// opened opens a session behind the back of a client, and returns its id.
func opened(r *http.Request, next http.Handler) string {
	const params = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"none","version":"1"}}`
	id := sent(r, next, http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+params+
		`}`).Get(SessionHeader)
	sent(r, next, http.MethodPost, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return id
}

// sent serves a request of the server's own, and returns the header of the response.
func sent(r *http.Request, next http.Handler, method, session, body string) http.Header {
	answer := unread{}
	own, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.Host+server.PathMCP,
		strings.NewReader(body))
	if err != nil {
		return http.Header(answer)
	}
	own.Header.Set("Content-Type", "application/json")
	own.Header.Set("Accept", "application/json")
	if session != "" {
		own.Header.Set(SessionHeader, session)
	}
	next.ServeHTTP(answer, own)
	return http.Header(answer)
}

// unread is the header of a response that nobody reads.
type unread http.Header

func (u unread) Header() http.Header         { return http.Header(u) }
func (u unread) Write(b []byte) (int, error) { return len(b), nil }
func (u unread) WriteHeader(int)             {}

// oneListening allows one listening stream in a session.
func oneListening(o *server.Options) {
	var open sync.Map
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if id := r.Header.Get(SessionHeader); r.Method == http.MethodGet && id != "" {
			if _, taken := open.LoadOrStore(id, true); taken {
				http.Error(w, "one stream is open", http.StatusConflict)
				return
			}
			defer open.Delete(id)
		}
		next.ServeHTTP(w, r)
	})(o)
}

// buffersGets sends the head of the response to a GET with the first event.
var buffersGets = Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method == http.MethodGet {
		w = &buffered{ResponseWriter: w}
	}
	next.ServeHTTP(w, r)
})

// fields writes the fields of an event, each of which is a name and a value.
type fields func(e *server.Event) [][2]string

// eventOf returns the fields of an event in the order in which the reference server has them.
func eventOf(e *server.Event) [][2]string {
	var all [][2]string
	if e.Name != "" {
		all = append(all, [2]string{"event", e.Name})
	}
	if e.ID != "" {
		all = append(all, [2]string{"id", e.ID})
	}
	return append(all, [2]string{"data", string(e.Data)})
}

// written changes how events are written.
func written(write func(e *server.Event) string) apply {
	return EachEvent(func(e *server.Event) {
		e.Raw = []byte(write(e))
	})
}

// spelled writes fields with a separator and a line end.
func spelled(of fields, separator, end string) apply {
	return written(func(e *server.Event) string {
		var b strings.Builder
		for _, field := range of(e) {
			b.WriteString(field[0] + separator + field[1] + end)
		}
		return b.String() + end
	})
}

// withFields adds fields before those of each event.
func withFields(extra ...[2]string) fields {
	return func(e *server.Event) [][2]string { return append(slices.Clone(extra), eventOf(e)...) }
}

// beginning writes something at the beginning of each stream.
func beginning(text string) apply {
	return Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		a := &altered{ResponseWriter: w, request: r}
		a.body = func(first bool, b []byte) [][]byte {
			if first && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
				return [][]byte{[]byte(text), b}
			}
			return [][]byte{b}
		}
		next.ServeHTTP(a, r)
	})
}

// besideEvents adds events to each stream, before each event and after it.
func besideEvents(before, after string) apply {
	return written(func(e *server.Event) string {
		var b strings.Builder
		for _, field := range eventOf(e) {
			b.WriteString(field[0] + ": " + field[1] + "\n")
		}
		return before + b.String() + "\n" + after
	})
}

const sseStandard = "The SSE standard gives it the same meaning."

// Spellings of SSE streams, over both transports that have them.
var streamOddities = []Oddity{
	odd("stream.cr", "Lines of streams end with a carriage return.", "Carriage return, line feed and both end a line.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, spelled(eventOf, ": ", "\r"))).
		Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.crlf", "Lines of streams end with a carriage return and a line feed.",
		"Carriage return, line feed and both end a line.", "basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, spelled(eventOf, ": ", "\r\n"))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).
		Replaces("lines of streams"),
	odd("stream.no-space", "There is no space after the colon of fields.", sseStandard,
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, spelled(eventOf, ":", "\n"))).
		Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.byte-order-mark", "Streams begin with a byte order mark.", "The SSE standard strips one.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, beginning("\uFEFF"))).Only(OverBothHTTP).
		Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.comment-first", "Streams begin with comments and blank lines.", "The SSE standard ignores comments.",
		"basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, beginning(": connected\n:\n\n:"+strings.Repeat(" padding", 300)+"\n\n\n\n"))).
		Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.comments", "Comments stand before, within and after events.", "The SSE standard ignores comments.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, written(func(e *server.Event) string {
			var b strings.Builder
			for _, field := range eventOf(e) {
				b.WriteString(":c\n" + field[0] + ": " + field[1] + "\n")
			}
			return ":keep-alive\n\n" + b.String() + ": data: no\n\n: after\n\n"
		}))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.several-data-lines", "The data of events is broken into lines at each comma between members.",
		"Lines of data are joined by a line feed, which is whitespace of JSON.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, written(func(e *server.Event) string {
			data := e.Data
			if e.Out != nil {
				var indented bytes.Buffer
				if json.Indent(&indented, data, "", " ") == nil {
					data = indented.Bytes()
				}
			}
			var b strings.Builder
			for _, field := range eventOf(e) {
				if field[0] != "data" {
					b.WriteString(field[0] + ": " + field[1] + "\n")
				}
			}
			for line := range strings.SplitSeq(string(data), "\n") {
				b.WriteString("data:" + line + "\n")
			}
			return b.String() + "\n"
		}))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.no-event-field", "Events of messages do not name their type.",
		"The type is message where none is named.", "basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, EachEvent(func(e *server.Event) {
			if e.Out != nil {
				e.Name = ""
			}
		}))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.fields-in-another-order", "The fields of events are in reverse order: data, id, event.", sseStandard,
		"basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, spelled(func(e *server.Event) [][2]string {
			all := eventOf(e)
			slices.Reverse(all)
			return all
		}, ": ", "\n"))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.unknown-fields", "Events have fields that the SSE standard does not know.",
		"The SSE standard ignores them.", "basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, spelled(withFields([2]string{"x-trace", "1"}, [2]string{"Data", "none"},
			[2]string{" data", "none"}), ": ", "\n"))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject),
	odd("stream.retry", "Events say how long to wait before reconnecting, one in a form that is ignored.",
		"The SSE standard has the field retry, and ignores it if it is not digits.",
		"basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, spelled(withFields([2]string{"retry", "3000"}, [2]string{"retry", "soon"}), ": ",
			"\n"))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.empty-events", "Events without data stand between the others: with an id, with a type, with a retry.",
		"The SSE standard does not dispatch an event without data.", "basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, besideEvents("retry: 500\n\nevent: nothing\n\n", ""))).Only(OverBothHTTP).
		Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.priming-event", "Streams begin with an event that has an id and empty data.",
		"An event with empty data carries no message, and its id is one to resume after.",
		"basic/transports#resumability-and-redelivery", func(o *server.Options) {
			var n atomic.Int64
			AlwaysStreams(o)
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				a := &altered{ResponseWriter: w, request: r}
				a.body = func(first bool, b []byte) [][]byte {
					if first && strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
						return [][]byte{fmt.Appendf(nil, "id: prime-%d\ndata:\n\n", n.Add(1)), b}
					}
					return [][]byte{b}
				}
				next.ServeHTTP(a, r)
			})(o)
		}).Only(OverHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.ids-alone", "The id of an event stands alone, without data, before the event and after it.",
		"The SSE standard dispatches nothing without data: the field says where the stream is.",
		"basic/transports#resumability-and-redelivery", All(AlwaysStreams, written(func(e *server.Event) string {
			var b strings.Builder
			alone := ""
			for _, field := range eventOf(e) {
				b.WriteString(field[0] + ": " + field[1] + "\n")
				if field[0] == "id" {
					alone = "id: " + field[1] + "\n\n"
				}
			}
			return alone + b.String() + "\n" + alone
		}))).Only(OverHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.other-types",
		"Events of types of the server's own, with data that is not JSON, stand between those of messages.",
		"A client of the SSE standard listens for events of type message; the text says nothing about others.",
		"basic/transports#sending-messages-to-the-server",
		All(AlwaysStreams, Streaming(func(e *server.Event) []*server.Event {
			if e.Out == nil || e.Out.Answers == nil {
				return []*server.Event{e}
			}
			return []*server.Event{{Session: e.Session, Stream: e.Stream, Name: "heartbeat", Data: []byte("12:00")}, e}
		}))).Only(OverBothHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("beginnings of streams"),
	odd("stream.event-ids-odd", "Event ids have 500 characters, spaces and what is not ASCII.",
		"An id is any string without line ends and U+0000.", "basic/transports#resumability-and-redelivery",
		All(AlwaysStreams, EachEvent(func(e *server.Event) {
			if e.ID != "" {
				e.ID = "é / " + strings.Repeat("x", 490) + " " + e.ID
			}
		}))).Only(OverHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.event-ids-now-and-then", "Only every other event has an id.", "Servers MAY attach ids.",
		"basic/transports#resumability-and-redelivery", All(AlwaysStreams, EachEvent(func(e *server.Event) {
			if Count(e.Session, "event ids")%2 == 0 {
				e.ID = ""
			}
		}))).Only(OverHTTP).Open(ids.HTTPServerJSONOneObject).Replaces("lines of streams"),
	odd("stream.after-the-response", "Comments and empty events follow the response on its stream.",
		"The server is to close the stream after the response; what follows is not a message.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, besideEvents("", ": bye\n\ndata:\n\n"))).
		Only(OverHTTP).Open(ids.HTTPServerJSONOneObject),
	odd("stream.keep-alive", "While a call is running, a comment comes every 10 ms.",
		"The SSE standard recommends comments to keep a connection alive.",
		"basic/transports#sending-messages-to-the-server", All(AlwaysStreams, delayed(60*time.Millisecond,
			func(r *server.Request) bool { return r.Method == "tools/call" }), keepingAlive)).Only(OverHTTP).
		Open(ids.HTTPServerJSONOneObject),
}

// keepingAlive writes a comment to streams every 10 ms.
var keepingAlive = Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
	k := &kept{ResponseWriter: w, done: make(chan struct{})}
	next.ServeHTTP(k, r)
	close(k.done)
	k.commenting.Wait()
})

// kept is a response that is kept alive while it is a stream.
type kept struct {
	http.ResponseWriter
	mu         sync.Mutex // held to write
	commenting sync.WaitGroup
	done       chan struct{}
}

func (k *kept) WriteHeader(status int) {
	k.ResponseWriter.WriteHeader(status)
	if strings.HasPrefix(k.Header().Get("Content-Type"), "text/event-stream") {
		k.commenting.Go(k.comment)
	}
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.ResponseWriter.Write(b)
	if err == nil {
		err = http.NewResponseController(k.ResponseWriter).Flush()
	}
	return n, err
}

func (k *kept) comment() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := k.Write([]byte(": keep-alive\n\n")); err != nil {
				return
			}
		case <-k.done:
			return
		}
	}
}

// FlushError flushes between writes.
func (k *kept) FlushError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return http.NewResponseController(k.ResponseWriter).Flush()
}

// SetWriteDeadline is for [http.ResponseController].
func (k *kept) SetWriteDeadline(at time.Time) error {
	return http.NewResponseController(k.ResponseWriter).SetWriteDeadline(at)
}

// SetReadDeadline is for [http.ResponseController].
func (k *kept) SetReadDeadline(at time.Time) error {
	return http.NewResponseController(k.ResponseWriter).SetReadDeadline(at)
}

// endpoint spells the URI of the endpoint event; host is the one that the client has used.
func endpoint(spell func(host, uri string) string) apply {
	return func(o *server.Options) {
		var host atomic.Value
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			host.Store(r.Host)
			next.ServeHTTP(w, r)
		})(o)
		o.Behaviour.HTTP.Endpoint = func(uri string) string { return spell(host.Load().(string), uri) }
	}
}

const legacyPage = "2024-11-05/basic/transports#http-with-sse"

// The HTTP+SSE transport of revision 2024-11-05.
var legacyOddities = []Oddity{
	odd("legacy.absolute-endpoint", "The endpoint event has an absolute URL.", "The event has a URI, in whatever form.",
		legacyPage, endpoint(func(host, uri string) string { return "http://" + host + uri })).Replaces("endpoint"),
	odd("legacy.endpoint-without-scheme", "The endpoint event has a reference that begins with two slashes.",
		"It is a relative reference of RFC 3986.", legacyPage,
		endpoint(func(host, uri string) string { return "//" + host + uri })).Replaces("endpoint"),
	odd("legacy.relative-endpoint", "The endpoint event has a path relative to that of the stream.",
		"It is a relative reference of RFC 3986.", legacyPage,
		endpoint(func(_, uri string) string { return strings.TrimPrefix(uri, "/") })).Replaces("endpoint"),
	odd("legacy.endpoint-with-dots", "The endpoint event has a path with ./ and ../.",
		"It is a relative reference of RFC 3986.", legacyPage,
		endpoint(func(_, uri string) string { return "./x/.." + uri })).Replaces("endpoint"),
	odd("legacy.endpoint-query", "The URI in the endpoint event has more parameters, with escapes.",
		"The URI is the server's own.", legacyPage,
		endpoint(func(_, uri string) string { return uri + "&x=%20%C3%A9&y=a+b&z" })).Replaces("endpoint"),
	odd("legacy.post-200", "A POST is answered with 200 and the text Accepted.", "The text names no status for a POST.",
		legacyPage, Replying(server.LegacyAccepted, func(r *server.Reply) {
			r.Status, r.Body = http.StatusOK, []byte("Accepted")
			r.Header.Set("Content-Type", "text/plain")
		})).Replaces("posts"),
	odd("legacy.post-204", "A POST is answered with 204.", "The text names no status for a POST.", legacyPage,
		Replying(server.LegacyAccepted, func(r *server.Reply) { r.Status = http.StatusNoContent })).Replaces("posts"),
	odd("legacy.post-400-beside-error",
		"The POST of a request with an unknown method is answered with 400, and the error comes on the stream.",
		"The text names no status for a POST, and the response is a message event.", legacyPage,
		All(Peeking(), Replying(server.LegacyAccepted, func(r *server.Reply) {
			if strings.HasPrefix(Posted(r.Request).Method, "mcpconform/") {
				r.Status = http.StatusBadRequest
			}
		}))).Replaces("posts"),
	odd("legacy.post-answered-late", "A POST is answered 30 ms after its message was served.",
		"The response travels on the stream, independent of the POST.", legacyPage,
		Replying(server.LegacyAccepted, func(*server.Reply) { <-time.After(30 * time.Millisecond) })).Replaces("posts"),
	odd("legacy.event-ids", "Events have ids and retry fields.", "The SSE standard has these fields.", legacyPage,
		spelled(func(e *server.Event) [][2]string {
			return append([][2]string{{"id", fmt.Sprint(Count(e.Session, "legacy id"))}, {"retry", "10"}},
				eventOf(e)...)
		}, ": ", "\n")),
}

// sessionsOf ends a session after a number of its requests.
func sessionsOf(requests int64) apply {
	return func(o *server.Options) {
		var uses sync.Map
		RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
			id := r.Header.Get(SessionHeader)
			n, _ := uses.LoadOrStore(id, new(atomic.Int64))
			return id != "" && n.(*atomic.Int64).Add(1) > requests
		})(o)
	}
}

// endingEach ends the session of one request in so many, after that.
func endingEach(many int64) Oddity {
	return odd(fmt.Sprintf("http.sessions-end-of-%d", many),
		fmt.Sprintf("One request in %d is the last one of its session, which is answered with 404 from then on.", many),
		"The server MAY terminate the session at any time.", "basic/transports#session-management",
		func(o *server.Options) {
			var served atomic.Int64
			var ended sync.Map // by session id
			RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
				id := r.Header.Get(SessionHeader)
				_, over := ended.Load(id)
				if id != "" && !over && served.Add(1)%many == 0 {
					ended.Store(id, true)
				}
				return over
			})(o)
		}).Open("*").Replaces("sessions")
}
