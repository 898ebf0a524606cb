package mockserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const (
	versionHeader = "Mcp-Protocol-Version"

	// fromTheBeginning is an event id that is never given.
	fromTheBeginning = "0"
)

// deletedWhere answers a DELETE with 204 in a situation in which there is nothing to delete.
func deletedWhere(situation server.Situation) apply {
	return Replying(situation, func(r *server.Reply) {
		if r.Request.Method == http.MethodDelete {
			r.Status, r.Body = http.StatusNoContent, nil
		}
	})
}

// blindTo does not find a header whose name is spelled like this.
func blindTo(name string) apply {
	return func(o *server.Options) {
		o.Behaviour.HTTP.Connection = func(conn net.Conn) net.Conn { return blind{conn, []byte("\n" + name + ":")} }
	}
}

// blind is a connection on which a header is read as another one.
type blind struct {
	net.Conn
	header []byte
}

func (c blind) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if at := bytes.Index(p[:n], c.header); at >= 0 {
		p[at+1] = 'x'
	}
	return n, err
}

// ahead puts an event with some data before log messages.
func ahead(data string) apply {
	return Streaming(func(e *server.Event) []*server.Event {
		if e.Out == nil || e.Out.Method != "notifications/message" {
			return []*server.Event{e}
		}
		return []*server.Event{{Session: e.Session, Out: e.Out, Stream: e.Stream, Name: "message", Data: []byte(data)},
			e}
	})
}

// misanswered changes the answer to the completion of a reference of unknown type, which hardly matters.
func misanswered(change func(r *server.Reply)) apply {
	return All(Peeking(), Replying(server.AnsweredJSON, func(r *server.Reply) {
		kind, ok := wire.At(Posted(r.Request).Params, "ref", "type").(string)
		if ok && kind != "ref/prompt" && kind != "ref/resource" {
			change(r)
		}
	}))
}

// ofHostHeader trusts what is one site to a browser.
var ofHostHeader = All(Passing(server.ForeignHost, func(*server.Reply) bool { return true }),
	Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "http://"+r.Request.Host }))

func origin(r *server.Reply) string { return r.Request.Header.Get("Origin") }

// elsewhere returns another call of the session that is running, or nil.
func elsewhere(r *server.Request) *server.Request {
	for _, other := range r.Session.Running() {
		if other.Method == "tools/call" && other != r {
			return other
		}
	}
	return nil
}

// fragile refuses all requests of a session once the client has hung up on one
// that fits.
func fragile(fits func(r *http.Request) bool) apply {
	return func(o *server.Options) {
		var broken sync.Map
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			id := r.Header.Get(SessionHeader)
			if _, gone := broken.Load(id); gone && id != "" && r.Method != http.MethodDelete {
				http.Error(w, "broken pipe", http.StatusInternalServerError)
				return
			}
			next.ServeHTTP(w, r)
			// If an answer tells its length, the client may rightly hang up before the server is done.
			stream := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
			if fits(r) && stream && r.Context().Err() != nil {
				broken.Store(id, true)
			}
		})(o)
	}
}

// onOthers returns the events of all streams but the one that an event id
// belongs to.
func onOthers(last string, all []*server.Event) []*server.Event {
	stream := ""
	for _, e := range all {
		if e.ID == last {
			stream = e.Stream
		}
	}
	var others []*server.Event
	for _, e := range all {
		if e.Stream != stream {
			others = append(others, e)
		}
	}
	return others
}

// historyOnGet has a listening stream begin with messages that came on others.
func historyOnGet(of func(e *server.Event) bool) apply {
	return All(
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet && r.Header.Get(LastEventHeader) == "" {
				r.Header.Set(LastEventHeader, fromTheBeginning)
			}
			next.ServeHTTP(w, r)
		}),
		Replaying(func(last string, proposal, all []*server.Event) []*server.Event {
			if last != fromTheBeginning {
				return proposal
			}
			var again []*server.Event
			for _, e := range all {
				if e.Out != nil && of(e) {
					again = append(again, &server.Event{Session: e.Session, Out: e.Out, Stream: e.Stream,
						Name: e.Name, Data: e.Data})
				}
			}
			return again
		}),
	)
}

// replayingAll keeps one list of events for all sessions, whose ids no two of
// them share.
func replayingAll() apply {
	return func(o *server.Options) {
		var (
			mu       sync.Mutex
			sessions = make(map[*server.Session]string)
			events   = make(map[*server.Session][]*server.Event)
		)
		EachEvent(func(e *server.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.ID != "" {
				if sessions[e.Session] == "" {
					sessions[e.Session] = strconv.Itoa(len(sessions)+1) + "."
				}
				e.ID = sessions[e.Session] + e.ID
				events[e.Session] = append(events[e.Session], e)
			}
		})(o)
		o.Behaviour.HTTP.Replay = func(s *server.Session, last string, proposal, _ []*server.Event) []*server.Event {
			mu.Lock()
			defer mu.Unlock()
			for other, all := range events {
				i := slices.IndexFunc(all, func(e *server.Event) bool { return e.ID == last })
				if other == s || i < 0 {
					continue
				}
				return slices.DeleteFunc(slices.Clone(all[i+1:]),
					func(e *server.Event) bool { return e.Stream != all[i].Stream })
			}
			return proposal
		}
	}
}

// greeting sends a log message as the first event of a legacy stream.
func greeting() apply {
	return Streaming(func(e *server.Event) []*server.Event {
		if e.Out != nil {
			return []*server.Event{e}
		}
		hello := e.Session.Notification("notifications/message", object{"level": "info", "data": "hello"})
		return []*server.Event{{Session: e.Session, Out: hello, Stream: e.Stream, Name: "message",
			Data: []byte(Text(hello.Message))}, e}
	})
}

// confusing answers requests of the same id, of whatever session, alike.
func confusing() apply {
	return func(o *server.Options) {
		type outcome struct {
			result  any
			problem *wire.Error
		}
		var answers sync.Map
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if !strings.Contains(r.ID.String(), "mcpconform-same") {
				return next(ctx, r)
			}
			result, problem := next(ctx, r)
			first, _ := answers.LoadOrStore(r.ID.Key(), outcome{result, problem})
			return first.(outcome).result, first.(outcome).problem
		})(o)
	}
}

// mixingAnswers keeps one list of what clients were asked for all sessions, by
// the id. It does so where the answer tells whose it is.
func mixingAnswers(o *server.Options) {
	var answers sync.Map
	Receiving(func(_ *server.Session, m *wire.Message, next func()) {
		if text, _ := wire.At(m.Result, "content", "text").(string); strings.HasPrefix(text, "mcpconform-of-the-") {
			m.Result, _ = answers.LoadOrStore(m.ID.Key(), m.Result)
		}
		next()
	})(o)
}

// forgetting keeps no response for a client that has hung up on its call and not
// come back to the stream.
func forgetting(o *server.Options) {
	type call struct{ session, id string }
	var (
		calls sync.Map // by session and event id: the call that the event belongs to
		left  sync.Map // the calls that were hung up on
		back  sync.Map // those to which the client came back
	)
	Streaming(func(e *server.Event) []*server.Event {
		r := e.Out.To
		if e.Out.Answers != nil {
			r = e.Out.Answers
		}
		if r == nil || r.Method != "tools/call" {
			return []*server.Event{e}
		}
		of := call{e.Session.ID, r.ID.Key()}
		calls.Store(call{e.Session.ID, e.ID}, of)
		if _, gone := left.Load(of); gone && e.Out.Answers != nil {
			if _, here := back.Load(of); !here {
				return nil
			}
		}
		return []*server.Event{e}
	})(o)
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		session := r.Header.Get(SessionHeader)
		if of, ok := calls.Load(call{session, r.Header.Get(LastEventHeader)}); ok {
			back.Store(of, true)
		}
		next.ServeHTTP(w, r)
		if r.Context().Err() != nil && Posted(r).Method == "tools/call" {
			left.Store(call{session, Posted(r).ID.Key()}, true)
		}
	})(o)
	Peeking()(o)
}

// losing leaves the calls with an id without response while another one with it
// is being served, in whatever session.
func losing(id string) apply {
	return func(o *server.Options) {
		var serving atomic.Int64
		Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.ID.Key() != wire.StringID(id).Key() {
				return next(ctx, r)
			}
			defer serving.Add(-1)
			if serving.Add(1) > 1 {
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})(o)
	}
}

// cancellingAll keeps one list of what is running for all sessions, by the id.
func cancellingAll() apply {
	return func(o *server.Options) {
		var running sync.Map
		abortable(server.NoAnswer, nil, func(r *server.Request, stop context.CancelFunc) func() {
			running.Store(r.ID.Key(), stop)
			return nil
		})(o)
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			next()
			if stop, ok := running.Load(wire.ReadID(wire.At(m.Params, "requestId")).Key()); ok &&
				m.Method == Cancelled {
				stop.(context.CancelFunc)()
			}
		})(o)
	}
}

// cancellingTheLast applies a cancellation to the call that began last under its id, in any session.
func cancellingTheLast(o *server.Options) {
	type begun struct {
		session *server.Session
		stop    context.CancelFunc
	}
	var last sync.Map // by id
	abortable(server.NoAnswer, nil, func(r *server.Request, stop context.CancelFunc) func() {
		last.Store(r.ID.Key(), begun{r.Session, stop})
		return nil
	})(o)
	Receiving(func(s *server.Session, m *wire.Message, next func()) {
		if found, ok := last.Load(named(m)); ok && m.Method == Cancelled {
			own := slices.ContainsFunc(s.Running(), func(r *server.Request) bool { return r.ID.Key() == named(m) })
			if call := found.(begun); own && call.session != s {
				call.stop()
			}
		}
		next()
	})(o)
}

// basic/transports#streamable-http and the legacy HTTP+SSE transport
var httpFaults = []Fault{
	fault("http.post-not-allowed", ids.HTTPServerEndpointPost, "POST is refused with 405.",
		RefusingHTTP(http.StatusMethodNotAllowed,
			func(r *http.Request) bool { return r.Method == http.MethodPost })).Also(ids.LifecycleInitAnswered),
	fault("http.origin-unchecked", ids.HTTPServerOriginForeign,
		"The Origin of the first request of a session is not checked.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return r.Session == nil && origin(r) != "null" })),
	fault("http.origin-prefix", ids.HTTPServerOriginForeign, "An Origin that begins like a trusted one is trusted.",
		Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "http://localhost") })).Seen(ByValue).
		Also(ids.HTTPServerOriginEveryRequest),
	fault("http.origin-of-host-header", ids.HTTPServerOriginForeign,
		"An Origin that is the one of the Host header is trusted, whatever that names.", ofHostHeader),
	fault("http.origin-null-trusted", ids.HTTPServerOriginNull, "The Origin null is trusted.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "null" })),
	fault("http.origin-null-trusted-later", ids.HTTPServerOriginNull, "The Origin null is trusted within a session.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return r.Session != nil && origin(r) == "null" })).
		Seen(InSequence),
	fault("http.origin-checked-once", ids.HTTPServerOriginEveryRequest,
		"The Origin is checked for the first request of a session only.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return r.Session != nil })).Seen(InSequence).
		Also(ids.HTTPServerOriginNull),
	fault("http.origin-get-unchecked", ids.HTTPServerOriginEveryRequest, "The Origin of a GET is not checked.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return r.Request.Method == http.MethodGet })),
	fault("http.origin-notification-unchecked", ids.HTTPServerOriginEveryRequest,
		"The Origin of a POST with a notification is not checked.", All(Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return Posted(r.Request).Kind == wire.Notification }), Peeking())),
	fault("http.origin-response-unchecked", ids.HTTPServerOriginEveryRequest,
		"The Origin of a POST with a response is not checked.", All(Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return Posted(r.Request).Kind == wire.Result }), Peeking())),
	fault("http.accept-verbatim", ids.HTTPServerAcceptForms,
		"An Accept header with quality values is refused with 406.",
		NotAccepting(func(accept string) bool { return strings.Contains(accept, ";q=") })).Seen(ByValue),
	fault("http.accept-case", ids.HTTPServerAcceptForms,
		"Media types in the Accept header are compared with regard to case.",
		NotAccepting(func(accept string) bool { return accept != strings.ToLower(accept) })).Seen(ByValue),
	fault("http.session-header-lower-lost", ids.HTTPServerHeaderNames,
		"The id of a session is not found in a header whose name is in small letters.", blindTo("mcp-session-id")).
		Seen(ByValue),
	fault("http.content-type-header-upper-lost", ids.HTTPServerHeaderNames,
		"The Content-Type is not found in a header whose name is in capitals.", blindTo("CONTENT-TYPE")).Seen(ByValue),
	fault("http.version-header-lower-lost", ids.HTTPServerHeaderNames,
		"The version of the protocol is not found in a header whose name is in small letters.",
		blindTo("mcp-protocol-version")).Seen(ByValue),
	fault("http.notification-200", ids.HTTPServerNotification202, "Notifications are answered with 200.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusOK
			}
		}))),
	fault("http.notification-204", ids.HTTPServerNotification202, "Notifications are answered with 204.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusNoContent
			}
		}))),
	fault("http.response-200", ids.HTTPServerResponse202, "Responses are answered with 200.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).IsResponse() {
				r.Status = http.StatusOK
			}
		}))),
	fault("http.response-refused", ids.HTTPServerResponse202,
		"The response to a ping is refused with 400, as if only requests may be posted.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			result, ok := Posted(r).Result.(object)
			return ok && len(result) == 0
		}), Peeking())).Warns().Also(ids.CancellationInProgress), // it cancels the request whose response it refused
	fault("http.charset-refused", ids.HTTPServerContentTypeForms,
		"A Content-Type other than just application/json is refused with 415.",
		RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json"
		})).Seen(ByValue).Only(OverBothHTTP),
	fault("http.accepted-with-body", ids.HTTPServerAcceptedNoBody, `202 comes with the body "Accepted".`,
		Replying(server.Accepted, func(r *server.Reply) {
			r.Header.Set("Content-Type", "text/plain")
			r.Body = []byte("Accepted")
		})),
	fault("http.refused-with-200", ids.HTTPServerUnacceptableErrorStatus,
		"A notification of an unknown method is refused with a JSON-RPC error and the status 200.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Method == "notifications/mcpconform/no-such" {
				r.Status = http.StatusOK
				r.Header.Set("Content-Type", "application/json")
				r.Body = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)
			}
		}))).Also(ids.BaseNotificationUnknownNoResponse, ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho),
	fault("http.answer-untyped", ids.HTTPServerRequestAnswerType, "An answer in JSON has the type text/plain.",
		misanswered(func(r *server.Reply) { r.Header.Set("Content-Type", "text/plain") })).
		Also(ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent),
	fault("http.request-accepted", ids.HTTPServerRequestAnswerType, "A request is answered with 202 and nothing else.",
		misanswered(func(r *server.Reply) {
			r.Status, r.Body = http.StatusAccepted, nil
			r.Header.Del("Content-Type")
		})).Also(ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent),
	fault("http.json-array", ids.HTTPServerJSONOneObject, "A JSON answer is an array of one response.",
		misanswered(func(r *server.Reply) { r.Body = []byte("[" + string(r.Body) + "]") })).Also(ids.BaseBatchNotSent),
	fault("http.json-empty", ids.HTTPServerJSONOneObject, "A JSON answer has an empty body.",
		misanswered(func(r *server.Reply) { r.Body = []byte{} })).
		Also(ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent),
	fault("http.event-not-json", ids.HTTPServerSSEEventData, "An event carries the text ok.", ahead("ok")).
		Also(ids.BaseJSONWellFormed),
	fault("http.event-string", ids.BaseJSONObject, "An event carries a JSON string.", ahead(`"ok"`)).
		Also(ids.HTTPServerSSEEventData),
	fault("http.response-withheld", ids.HTTPServerSSEResponseSent, "The stream of a request ends without the response.",
		Streaming(func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.Answers != nil && e.Out.Answers.Params["name"] == "test_tool_with_logging" {
				return nil
			}
			return []*server.Event{e}
		})).
		Also(ids.HTTPServerSSENoEarlyClose, ids.ToolsListCallable, ids.LoggingFilterAllAbove,
			ids.LoggingSetLevelReplaces),
	fault("http.stream-cut", ids.HTTPServerSSENoEarlyClose, "The stream of a request is closed before the response.",
		EachEvent(func(e *server.Event) {
			if e.Out != nil && e.Out.To != nil && e.Out.Method == "notifications/message" &&
				e.Out.To.Params["name"] == "test_tool_with_logging" {
				e.Cut = true
			}
		})).Also(ids.HTTPServerSSEResponseSent, ids.ToolsListCallable),
	fault("http.response-elsewhere", ids.HTTPServerSSEOwnResponse,
		"The response to a ping comes on the stream of a call that is running.", All(
			func(o *server.Options) { o.HTTP.AlwaysSSE = true },
			Responses("ping", func(out *server.Outgoing) {
				if other := elsewhere(out.Answers); other != nil {
					out.To = other
				}
			}),
		)).Also(ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent, ids.HTTPServerMultipleStreams,
		ids.PingResponsePrompt, ids.CancellationNoResponse, ids.CancellationIgnoreUnknown,
		ids.BaseResponseIDTypeEcho, ids.BaseRequestIDSpacePerSide), // whose checks ping during a call
	fault("http.progress-elsewhere", ids.HTTPServerSSERelatedMessages,
		"Progress of a call comes on the stream of another one.", All(
			WrappingTool("test_tool_with_progress",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					_ = r.Sleep(ctx, 50*time.Millisecond) // so that others run beside it
					return next(ctx, r)
				}),
			Messages(Progressed, func(out *server.Outgoing) {
				if out.To == nil {
					return
				}
				if other := elsewhere(out.To); other != nil {
					out.To = other
				}
			}),
		)).Also(ids.HTTPServerReplaySameStream), // of a stream that is resumed
	fault("http.stream-kept-open", ids.HTTPServerSSECloseAfterResponse,
		"The stream of a request stays open after the response.",
		func(o *server.Options) { o.Behaviour.HTTP.KeepOpen = func(*server.Request) bool { return true } }),
	fault("http.stream-of-refused-call-kept-open", ids.HTTPServerSSECloseAfterResponse,
		"Calls alone are answered with a stream, and that of a call of a tool that does not exist stays open after "+
			"the error.", func(o *server.Options) {
			o.Behaviour.HTTP.Answer = func(r *server.Request) server.AnswerForm {
				if r.Method == "tools/call" {
					return server.AnswerSSE
				}
				return server.AnswerJSON
			}
			o.Behaviour.HTTP.KeepOpen = func(r *server.Request) bool {
				name, _ := r.Params["name"].(string)
				return r.Method == "tools/call" && strings.HasSuffix(name, "no-such-tool")
			}
		}).Seen(ByValue),
	fault("http.hang-up-breaks-session", ids.HTTPDisconnectSurvived,
		"When the client hangs up on a stream, nothing in its session is served any more.",
		fragile(func(r *http.Request) bool { return true })).
		Also(ids.HTTPServerGetCloseTolerated, ids.HTTPServerGetStreamOr405, ids.HTTPServerOriginEveryRequest),
	fault("http.get-closed-breaks-session", ids.HTTPServerGetCloseTolerated,
		"When the client closes the listening stream, nothing in its session is served any more.",
		fragile(func(r *http.Request) bool { return r.Method == http.MethodGet })).
		Also(ids.HTTPDisconnectSurvived, ids.HTTPServerGetStreamOr405),
	fault("http.disconnect-cancels", ids.HTTPServerDisconnectNotCancel, "The end of a connection cancels the request.",
		All(
			func(o *server.Options) { o.Behaviour.HTTP.CancelOnDisconnect, o.Behaviour.AnswerCancelled = true, true },
			Wrapping("tools/call",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					result, problem := next(ctx, r)
					if ctx.Err() != nil {
						return nil, &wire.Error{Code: server.InternalError,
							Message: "Request cancelled: the client has disconnected"}
					}
					return result, problem
				}),
		)).Also(ids.CancellationNoResponse),
	fault("http.disconnect-forgets", ids.HTTPServerDisconnectNotCancel,
		"A call is left unanswered if, when it is done, the client has not come back to its stream.", forgetting).
		Also(ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("http.bad-body-accepted", ids.HTTPServerSurvivesBadBody,
		"A body that is not a message is answered with 200 and nothing else.",
		Replying(server.BadMessage, func(r *server.Reply) {
			r.Status, r.Body = http.StatusOK, nil
			r.Header.Del("Content-Type")
		})).Also(ids.BaseErrorInvalidRequest, ids.BaseErrorParseSurvive),
	fault("http.bad-body-breaks-session", ids.HTTPServerSurvivesBadBody,
		"After a message without jsonrpc nothing is answered in the session any more.", All(
			Understanding(wire.JSONRPCMissing),
			unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool { return m.Has(wire.JSONRPCMissing) }),
		)).Also(ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("http.large-body-fails", ids.HTTPMessageLarge, "A body of more than 512 KiB is answered with 500.",
		RefusingHTTP(http.StatusInternalServerError,
			func(r *http.Request) bool { return r.ContentLength > 512<<10 })),
	fault("http.large-body-cut", ids.HTTPMessageLarge, "Only the first 512 KiB of a body are read.",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Body = io.NopCloser(io.LimitReader(r.Body, 512<<10))
			next.ServeHTTP(w, r)
		})),
	fault("http.get-not-found", ids.HTTPServerGetStreamOr405, "GET is answered with 404.",
		RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool { return r.Method == http.MethodGet })),
	fault("http.get-page", ids.HTTPServerGetStreamOr405, "GET is answered with a page in HTML.",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>MCP server</title>")
		})).Also(ids.HTTPServerOriginEveryRequest, ids.HTTPServerSessionMissing400, ids.HTTPServerSessionEnded404),
	fault("http.resume-octets", ids.HTTPServerGetStreamOr405,
		"A stream that is resumed has the Content-Type application/octet-stream.",
		Replying(server.ListeningSSE, func(r *server.Reply) {
			if r.Request.Header.Get(LastEventHeader) != "" {
				r.Header.Set("Content-Type", "application/octet-stream")
			}
		})).Seen(InSequence).Also(ids.HTTPServerEventIDCursor),
	fault("http.resume-unknown-json", ids.HTTPServerGetStreamOr405,
		"A GET with a Last-Event-ID that the server does not know is answered with 200 and JSON.",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || !strings.HasPrefix(r.Header.Get(LastEventHeader), "mcpconform") {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":"unknown event"}`)
		})).Seen(ByValue),
	fault("http.progress-on-get", ids.HTTPServerGetUnrelated, "Progress of a call comes on the listening stream.",
		Messages(Progressed, func(out *server.Outgoing) { out.To = nil })),
	fault("http.response-on-get", ids.HTTPServerGetNoResponse,
		"The response to a request comes on the listening stream.",
		Responses("resources/unsubscribe", func(out *server.Outgoing) { out.To = nil })).
		Also(ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent, ids.ResourcesUnsubscribeAccepted),
	fault("http.all-responses-on-get", ids.HTTPServerGetNoResponse,
		"While a listening stream is open, all messages come on it, and the POST of a request is answered with 202.",
		divertingToGet(func(method string) bool { return method != "initialize" },
			func(r *server.Reply) { r.Header.Del("Content-Type"); r.Status, r.Body = http.StatusAccepted, nil })).
		Also(ids.HTTPServerRequestAnswerType, ids.HTTPServerGetUnrelated),
	fault("http.orphan-on-get", ids.HTTPServerGetNoResponse,
		"The response to a call whose connection broke comes on the listening stream.",
		Responses("tools/call", func(out *server.Outgoing) {
			if strings.Contains(out.Answers.ID.String(), "mcpconform-orphan") {
				out.To = nil
			}
		})).Also(ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent),
	fault("http.one-at-a-time", ids.HTTPServerMultipleStreams, "While a tool is at work, other requests are refused.",
		Refusing("ping", server.InternalError, func(r *server.Request) bool { return Busy(r.Session) })),
	fault("http.broadcast", ids.HTTPServerNoBroadcast,
		"Progress comes on the stream of the request and on the listening stream.",
		Sending(server.OnMessage(Progressed, func(out *server.Outgoing) []*server.Outgoing {
			again := out.Clone()
			again.To = nil
			return []*server.Outgoing{out, again}
		}))).Also(ids.HTTPServerGetUnrelated, ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress),
	fault("http.broadcast-log", ids.HTTPServerNoBroadcast,
		"Log messages come on the stream of the request and on the listening stream.",
		Sending(server.OnMessage("notifications/message", func(out *server.Outgoing) []*server.Outgoing {
			again := out.Clone()
			again.To = nil
			return []*server.Outgoing{out, again}
		}))),
	fault("http.broadcast-update", ids.HTTPServerNoBroadcast,
		"The update of a resource is announced on the stream of the call that made it and on the listening stream.",
		Sending(server.OnMessage("notifications/resources/updated",
			func(out *server.Outgoing) []*server.Outgoing {
				sent := []*server.Outgoing{out}
				for _, r := range out.Session.Running() {
					if r.Method == "tools/call" {
						again := out.Clone()
						again.To = r
						sent = append(sent, again)
					}
				}
				return sent
			}))),
	fault("http.history-on-get", ids.HTTPServerNoBroadcast,
		"A listening stream begins with the progress that came on the streams of requests.",
		historyOnGet(func(e *server.Event) bool { return e.Out.Method == Progressed })).
		Also(ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress, ids.HTTPServerGetUnrelated,
			ids.CancellationStopProcessing),
	fault("http.listening-history", ids.HTTPServerNoBroadcast,
		"A listening stream begins with the notifications that came on earlier listening streams.",
		historyOnGet(func(e *server.Event) bool {
			return e.Out.Kind == wire.Notification && strings.HasPrefix(e.Stream, "get:")
		})),
	fault("http.log-history-on-get", ids.HTTPServerNoBroadcast,
		"A listening stream begins with the log messages that came on the streams of requests.",
		historyOnGet(func(e *server.Event) bool {
			return e.Out.Method == "notifications/message" && strings.HasPrefix(e.Stream, "post:")
		})).Seen(ByValue),
	fault("http.event-ids-per-stream", ids.HTTPServerEventIDUnique, "Event ids count from 1 on each stream.",
		EachEvent(func(e *server.Event) {
			if _, n, ok := strings.Cut(e.ID, "-"); ok {
				e.ID = n
			}
		})).Also(ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor, ids.BaseResponseOnce),
	fault("http.event-ids-of-listening", ids.HTTPServerEventIDUnique,
		"Event ids count from 1 on each listening stream.", EachEvent(func(e *server.Event) {
			if _, n, ok := strings.Cut(e.ID, "-"); ok && strings.HasPrefix(e.Stream, "get:") {
				e.ID = "listening-" + n
			}
		})).Also(ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor),
	fault("http.event-id-of-beginnings", ids.HTTPServerEventIDUnique,
		"Each stream begins with an event that has the id 0 and empty data.",
		All(AlwaysStreams, FirstOfStream("0", []byte{}))),
	fault("http.event-id-alone-of-beginnings", ids.HTTPServerEventIDUnique,
		"Each stream begins with the id 0, without data.", All(AlwaysStreams, FirstOfStream("0", nil))).Seen(ByValue),
	fault("http.replays-other-sessions", ids.HTTPServerReplaySameStream,
		"A client is sent again what belongs to another session, if it knows the event id.", replayingAll()).
		Also(ids.ProgressTokenActiveRequest, ids.BaseResponseOnlyToRequests),
	fault("http.replays-everything", ids.HTTPServerReplaySameStream,
		"A resumed stream begins with what came on the other streams.",
		Replaying(func(last string, proposal, all []*server.Event) []*server.Event {
			return append(onOthers(last, all), proposal...)
		})).Also(ids.HTTPServerSSENoEarlyClose), // of a call whose response it brings
	fault("http.unknown-event-replays", ids.HTTPServerReplaySameStream,
		"For an event id that was never given everything is sent again.",
		Replaying(func(last string, proposal, all []*server.Event) []*server.Event {
			if slices.ContainsFunc(all, func(e *server.Event) bool { return e.ID == last }) {
				return proposal
			}
			return all
		})),
	fault("http.unknown-event-replays-listening", ids.HTTPServerReplaySameStream,
		"For an event id that was never given all that came on listening streams is sent again.",
		Replaying(func(last string, proposal, all []*server.Event) []*server.Event {
			if slices.ContainsFunc(all, func(e *server.Event) bool { return e.ID == last }) {
				return proposal
			}
			return slices.DeleteFunc(slices.Clone(all),
				func(e *server.Event) bool { return !strings.HasPrefix(e.Stream, "get:") })
		})).Seen(ByValue),
	fault("http.resume-skips-after-third", ids.HTTPServerEventIDCursor,
		"A stream that is resumed after its third event, or a later one, leaves out the one that follows.",
		Replaying(func(last string, proposal, _ []*server.Event) []*server.Event {
			_, digits, _ := strings.Cut(last, "-")
			if n, err := strconv.Atoi(digits); err == nil && n >= 3 && len(proposal) > 0 {
				return proposal[1:]
			}
			return proposal
		})).Seen(ByValue),
	fault("http.resumed-anew", ids.HTTPServerEventIDCursor,
		"A stream that is resumed for the second time begins where it began the first time.", func(o *server.Options) {
			var begun sync.Map // by session and stream
			type key struct {
				session *server.Session
				stream  string
			}
			o.Behaviour.HTTP.Replay = func(s *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
				i := slices.IndexFunc(all, func(e *server.Event) bool { return e.ID == last })
				if i < 0 {
					return proposal
				}
				stream := all[i].Stream
				first, again := begun.LoadOrStore(key{s, stream}, last)
				if !again || first == last {
					return proposal
				}
				from := slices.IndexFunc(all, func(e *server.Event) bool { return e.ID == first })
				if from < 0 {
					return proposal
				}
				return slices.DeleteFunc(slices.Clone(all[from+1:]),
					func(e *server.Event) bool { return e.Stream != stream })
			}
		}).Seen(InSequence),
	fault("http.replay-too-early", ids.HTTPServerEventIDCursor, "A resumed stream begins with the event that is named.",
		Replaying(func(last string, proposal, all []*server.Event) []*server.Event {
			for _, e := range all {
				if e.ID == last {
					return append([]*server.Event{e}, proposal...)
				}
			}
			return proposal
		})),
	fault("http.sessions-mixed", ids.HTTPServerSessionIsolation,
		"Requests of two sessions with the same id get the same answer.", confusing()).Seen(BySession),
	fault("http.same-id-call-lost", ids.HTTPServerSessionIsolation,
		"A call gets no response while another client's call with the same id is served.",
		losing("mcpconform-same-call")).Seen(BySession).
		Also(ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("http.cancels-elsewhere", ids.HTTPServerSessionIsolation,
		"A cancellation ends the request of that id in whatever session.", cancellingAll()).Seen(BySession).
		Also(ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose,
			ids.CancellationIgnoreUnknown),
	fault("http.cancels-the-last", ids.HTTPServerSessionIsolation,
		"If two clients have a call with the same id under way, a cancellation by either ends the call that began "+
			"last.", cancellingTheLast).Seen(BySession).
		Also(ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("http.answers-mixed", ids.HTTPServerSessionIsolation,
		"When the server asks two clients with the same id, the answer that comes first counts for both.",
		mixingAnswers).Seen(BySession),
	fault("http.session-id-counts", ids.SecuritySessionIDNonDeterministic,
		"The ids of sessions are session-1, session-2 and so on.", func(o *server.Options) {
			var n atomic.Int64
			o.Behaviour.HTTP.SessionID = func() string { return "session-" + strconv.FormatInt(n.Add(1), 10) }
		}).Also(ids.HTTPServerSessionIDSecure),
	fault("http.session-id-time", ids.HTTPServerSessionIDSecure, "The ids of sessions are the time in nanoseconds.",
		func(o *server.Options) {
			var n atomic.Int64 // tells sessions of the same moment apart
			o.Behaviour.HTTP.SessionID = func() string { return strconv.FormatInt(time.Now().UnixNano()+n.Add(1), 10) }
		}).Also(ids.SecuritySessionIDNonDeterministic),
	fault("http.late-session-id", ids.HTTPServerSessionIDAtInitialization,
		"The answers to notifications name another session id.",
		Replying(server.Accepted, func(r *server.Reply) { r.Header.Set(SessionHeader, "another-session") })),
	fault("http.session-id-with-space", ids.HTTPServerSessionIDCharset, "Session ids have a space.",
		func(o *server.Options) {
			var n sync.Map
			o.Behaviour.HTTP.SessionID = func() string {
				for i := 0; ; i++ {
					id := "session " + strconv.Itoa(i)
					if _, taken := n.LoadOrStore(id, true); !taken {
						return id
					}
				}
			}
		}).Also(ids.HTTPServerSessionIDSecure, ids.SecuritySessionIDNonDeterministic),
	fault("http.missing-session-401", ids.HTTPServerSessionMissing400,
		"A request without session id is refused with 401.",
		Replying(server.MissingSession, func(r *server.Reply) { r.Status = http.StatusUnauthorized })).
		Also(ids.AuthServerWWWAuthenticate, challengeURL),
	fault("http.get-needs-no-session", ids.HTTPServerSessionMissing400,
		"A GET without session id opens a stream, where a POST is refused.",
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || r.Header.Get(SessionHeader) != "" || r.URL.Path != server.PathMCP {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": nothing to tell\n\n")
		})),
	fault("http.older-version-refused", ids.LifecycleOperationVersion,
		"MCP-Protocol-Version may name the latest version only, whatever was agreed upon.",
		RefusingHTTP(http.StatusBadRequest,
			func(r *http.Request) bool { return r.Header.Get(versionHeader) == "2025-03-26" })),
	fault("http.initialize-needs-session", ids.HTTPServerInitializeWithoutSession,
		"An initialize of a client without capabilities is refused because it has no session id.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			declared, _ := wire.At(Posted(r).Params, "capabilities").(object)
			return Posted(r).Method == "initialize" && len(declared) == 0
		}), Peeking())).Also(ids.BaseSupportOtherComponents),
	fault("http.ended-session-400", ids.HTTPServerSessionEnded404, "A request of an ended session is refused with 400.",
		Replying(server.UnknownSession, func(r *server.Reply) { r.Status = http.StatusBadRequest })),
	fault("http.ended-session-responses", ids.HTTPServerSessionEnded404,
		"A response that is posted in an ended session is answered with 202.",
		All(Peeking(), Replying(server.UnknownSession, func(r *server.Reply) {
			if Posted(r.Request).IsResponse() {
				r.Status, r.Body = http.StatusAccepted, nil
			}
		}))).Seen(ByValue),
	fault("http.ended-session-deleted", ids.HTTPServerSessionEnded404,
		"The DELETE of an ended session is answered with 204.", deletedWhere(server.UnknownSession)).Warns(),
	fault("http.delete-ignored", ids.HTTPServerDeleteSession,
		"DELETE is answered with success, and the session goes on.",
		func(o *server.Options) { o.Behaviour.HTTP.KeepSession = true }).Also(ids.HTTPServerSessionEnded404),
	fault("http.delete-fails", ids.HTTPServerDeleteSession, "DELETE is answered with 500.",
		RefusingHTTP(http.StatusInternalServerError,
			func(r *http.Request) bool { return r.Method == http.MethodDelete && r.Header.Get("Origin") == "" })),
	fault("http.version-required", ids.HTTPServerVersionHeaderMissing,
		"A request without MCP-Protocol-Version is refused.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return r.Method == http.MethodPost && Posted(r).Method != "initialize" && r.Header.Get(versionHeader) == ""
		}), Peeking())),
	fault("http.version-required-notifications", ids.HTTPServerVersionHeaderMissing,
		"A notification without MCP-Protocol-Version is refused.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return Posted(r).Kind == wire.Notification && r.Header.Get(versionHeader) == ""
		}), Peeking())).Seen(ByValue),
	fault("http.version-required-get", ids.HTTPServerVersionHeaderMissing,
		"A GET without MCP-Protocol-Version is refused.",
		RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return r.Method == http.MethodGet && r.Header.Get(versionHeader) == ""
		})).Seen(ByValue),
	fault("http.version-unchecked", ids.HTTPServerVersionHeaderInvalid400,
		"MCP-Protocol-Version may hold anything that is not a version.", Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return len(r.Request.Header.Get(versionHeader)) != len("2025-06-18") })),
	fault("http.version-unsupported-served", ids.HTTPServerVersionHeaderUnsupported400,
		"MCP-Protocol-Version may name a version that is not supported.", Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return len(r.Request.Header.Get(versionHeader)) == len("2025-06-18") })),
	fault("http.version-later-served", ids.HTTPServerVersionHeaderUnsupported400,
		"MCP-Protocol-Version may name any later version.",
		Passing(server.BadVersionHeader, func(r *server.Reply) bool {
			version := r.Request.Header.Get(versionHeader)
			return len(version) == len("2025-06-18") && version > "2025-06-18"
		})),
	fault("http.version-of-delete-unchecked", ids.HTTPServerVersionHeaderUnsupported400,
		"MCP-Protocol-Version of a DELETE is not checked.", Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return r.Request.Method == http.MethodDelete })).
		Also(ids.HTTPServerVersionHeaderInvalid400),
	fault("http.version-of-responses-unchecked", ids.HTTPServerVersionHeaderUnsupported400,
		"MCP-Protocol-Version of a response is not checked.", All(Peeking(), Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return Posted(r.Request).IsResponse() }))).Seen(ByValue).
		Also(ids.HTTPServerVersionHeaderInvalid400),
	fault("sse.not-a-stream", ids.SSEServerSSEEndpoint, "The GET is answered with text/plain.",
		Replying(server.LegacySSE, func(r *server.Reply) { r.Header.Set("Content-Type", "text/plain") })),
	fault("sse.post-fails", ids.SSEServerPostEndpoint, "Notifications are taken, but answered with 500.",
		All(Peeking(), Replying(server.LegacyAccepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusInternalServerError
			}
		}))),
	fault("sse.no-endpoint", ids.SSEServerEndpointEvent, "The stream ends without an endpoint event.",
		Streaming(func(e *server.Event) []*server.Event {
			if e.Out == nil {
				return []*server.Event{{Session: e.Session, Comment: "hello", Raw: []byte(": hello\n\n"), Cut: true}}
			}
			return []*server.Event{e}
		})),
	fault("sse.endpoint-second", ids.SSEServerEndpointEventFirst, "A message precedes the endpoint event.", greeting()).
		Also(ids.LifecycleInitFirst),
	fault("sse.speaks-first", ids.LifecycleInitFirst, "A log message is sent before the client can send anything.",
		greeting()).Warns().Also(ids.SSEServerEndpointEventFirst),
	fault("sse.endpoint-json", ids.SSEServerEndpointEventURI, "The endpoint event holds a JSON object.",
		func(o *server.Options) {
			o.Behaviour.HTTP.Endpoint = func(uri string) string { return `{"uri": "` + uri + `"}` }
		}),
	fault("sse.event-type", ids.SSEServerMessageEvents, "Log messages come as events of the type log.",
		EachEvent(func(e *server.Event) {
			if e.Out != nil && e.Out.Method == "notifications/message" {
				e.Name = "log"
			}
		})),
	fault("sse.event-not-json", ids.SSEServerMessageJSON, "A message event carries the text ok.", ahead("ok")).
		Also(ids.BaseJSONWellFormed),
	fault("sse.response-in-post", ids.SSEServerResponsesOnStream,
		"The response to resources/unsubscribe comes in the answer to the POST.", All(
			Peeking(),
			Replying(server.LegacyAccepted, func(r *server.Reply) {
				if m := Posted(r.Request); m.Method == "resources/unsubscribe" {
					r.Status = http.StatusOK
					r.Header.Set("Content-Type", "application/json")
					r.Body = []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{}}`)
				}
			}),
			WithholdingAnswers("resources/unsubscribe", func(_ *server.Outgoing) bool { return true }),
		)),
	fault("sse.sessions-mixed", ids.SSEServerSessionIsolation,
		"Requests of two sessions with the same id get the same answer.", confusing()).Seen(BySession),
	fault("sse.answers-mixed", ids.SSEServerSessionIsolation,
		"When the server asks two clients with the same id, the answer that comes first counts for both.",
		mixingAnswers).Seen(BySession),
	fault("sse.cancels-elsewhere", ids.SSEServerSessionIsolation,
		"A cancellation ends the request of that id in whatever session.", cancellingAll()).Seen(BySession).
		Also(ids.BaseResponsePresent, ids.CancellationIgnoreUnknown),
	fault("sse.origin-unchecked", ids.SSEServerOriginForeign, "The Origin is not checked, unless it is null.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) != "null" })),
	fault("sse.origin-of-host-header", ids.SSEServerOriginForeign,
		"An Origin that is the one of the Host header is trusted, whatever that names.", ofHostHeader),
	fault("sse.origin-null-trusted", ids.SSEServerOriginNull, "The Origin null is trusted.",
		Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "null" })),
}
