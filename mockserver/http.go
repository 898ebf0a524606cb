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

// strayRef reports whether a request is the completion of a reference of
// unknown type, whose answer hardly matters.
func strayRef(r *http.Request) bool {
	kind, ok := wire.At(Posted(r).Params, "ref", "type").(string)
	return ok && kind != "ref/prompt" && kind != "ref/resource"
}

// misanswered changes the answer to such a request.
func misanswered(change func(r *server.Reply)) apply {
	return All(Peeking(), Replying(server.AnsweredJSON, func(r *server.Reply) {
		if strayRef(r.Request) {
			change(r)
		}
	}))
}

// ofHostHeader trusts what is one site to a browser.
var ofHostHeader = All(
	Passing(server.ForeignHost, func(*server.Reply) bool { return true }),
	Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "http://"+r.Request.Host }),
)

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
		func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
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
			}
		},
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
		Streaming(func(e *server.Event) []*server.Event {
			mu.Lock()
			defer mu.Unlock()
			if e.ID != "" {
				if sessions[e.Session] == "" {
					sessions[e.Session] = strconv.Itoa(len(sessions)+1) + "."
				}
				e.ID = sessions[e.Session] + e.ID
				events[e.Session] = append(events[e.Session], e)
			}
			return []*server.Event{e}
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
	{ID: "http.post-not-allowed", Requirement: ids.HTTPServerEndpointPost, Transports: OverHTTP,
		Summary: "POST is refused with 405.", Collateral: []string{ids.LifecycleInitAnswered},
		Apply: RefusingHTTP(http.StatusMethodNotAllowed,
			func(r *http.Request) bool { return r.Method == http.MethodPost })},
	{ID: "http.origin-unchecked", Requirement: ids.HTTPServerOriginForeign, Transports: OverHTTP,
		Summary: "The Origin of the first request of a session is not checked.",
		Apply: Passing(server.ForeignOrigin, func(r *server.Reply) bool {
			return r.Session == nil && origin(r) != "null"
		})},
	{ID: "http.origin-prefix", Requirement: ids.HTTPServerOriginForeign, Form: ByValue, Transports: OverHTTP,
		Summary:    "An Origin that begins like a trusted one is trusted.",
		Collateral: []string{ids.HTTPServerOriginEveryRequest},
		Apply: Passing(server.ForeignOrigin,
			func(r *server.Reply) bool { return strings.HasPrefix(origin(r), "http://localhost") })},
	{ID: "http.origin-of-host-header", Requirement: ids.HTTPServerOriginForeign, Transports: OverHTTP,
		Summary: "An Origin that is the one of the Host header is trusted, whatever that names.",
		Apply:   ofHostHeader},
	{ID: "http.origin-null-trusted", Requirement: ids.HTTPServerOriginNull, Transports: OverHTTP,
		Summary: "The Origin null is trusted.",
		Apply:   Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "null" })},
	{ID: "http.origin-null-trusted-later", Requirement: ids.HTTPServerOriginNull, Form: InSequence,
		Transports: OverHTTP, Summary: "The Origin null is trusted within a session.",
		Apply: Passing(server.ForeignOrigin, func(r *server.Reply) bool {
			return r.Session != nil && origin(r) == "null"
		})},
	{ID: "http.origin-checked-once", Requirement: ids.HTTPServerOriginEveryRequest, Form: InSequence,
		Transports: OverHTTP, Summary: "The Origin is checked for the first request of a session only.",
		Collateral: []string{ids.HTTPServerOriginNull},
		Apply:      Passing(server.ForeignOrigin, func(r *server.Reply) bool { return r.Session != nil })},
	{ID: "http.origin-get-unchecked", Requirement: ids.HTTPServerOriginEveryRequest, Transports: OverHTTP,
		Summary: "The Origin of a GET is not checked.",
		Apply: Passing(server.ForeignOrigin, func(r *server.Reply) bool {
			return r.Request.Method == http.MethodGet
		})},
	{ID: "http.origin-notification-unchecked", Requirement: ids.HTTPServerOriginEveryRequest, Transports: OverHTTP,
		Summary: "The Origin of a POST with a notification is not checked.",
		Apply: All(Passing(server.ForeignOrigin, func(r *server.Reply) bool {
			return Posted(r.Request).Kind == wire.Notification
		}), Peeking())},
	{ID: "http.origin-response-unchecked", Requirement: ids.HTTPServerOriginEveryRequest, Transports: OverHTTP,
		Summary: "The Origin of a POST with a response is not checked.",
		Apply: All(Passing(server.ForeignOrigin, func(r *server.Reply) bool {
			return Posted(r.Request).Kind == wire.Result
		}), Peeking())},
	{ID: "http.accept-verbatim", Requirement: ids.HTTPServerAcceptForms, Form: ByValue, Transports: OverHTTP,
		Summary: "An Accept header with quality values is refused with 406.",
		Apply:   NotAccepting(func(accept string) bool { return strings.Contains(accept, ";q=") })},
	{ID: "http.accept-case", Requirement: ids.HTTPServerAcceptForms, Form: ByValue, Transports: OverHTTP,
		Summary: "Media types in the Accept header are compared with regard to case.",
		Apply:   NotAccepting(func(accept string) bool { return accept != strings.ToLower(accept) })},
	{ID: "http.session-header-lower-lost", Requirement: ids.HTTPServerHeaderNames, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "The id of a session is not found in a header whose name is in small letters.",
		Apply:      blindTo("mcp-session-id")},
	{ID: "http.content-type-header-upper-lost", Requirement: ids.HTTPServerHeaderNames, Form: ByValue,
		Transports: OverHTTP, Summary: "The Content-Type is not found in a header whose name is in capitals.",
		Apply: blindTo("CONTENT-TYPE")},
	{ID: "http.version-header-lower-lost", Requirement: ids.HTTPServerHeaderNames, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "The version of the protocol is not found in a header whose name is in small letters.",
		Apply:      blindTo("mcp-protocol-version")},
	{ID: "http.notification-200", Requirement: ids.HTTPServerNotification202, Transports: OverHTTP,
		Summary: "Notifications are answered with 200.",
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusOK
			}
		}))},
	{ID: "http.notification-204", Requirement: ids.HTTPServerNotification202, Transports: OverHTTP,
		Summary: "Notifications are answered with 204.",
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusNoContent
			}
		}))},
	{ID: "http.response-200", Requirement: ids.HTTPServerResponse202, Transports: OverHTTP,
		Summary: "Responses are answered with 200.",
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).IsResponse() {
				r.Status = http.StatusOK
			}
		}))},
	{
		ID: "http.response-refused", Requirement: ids.HTTPServerResponse202, Transports: OverHTTP, WarnOnly: true,
		Collateral: []string{ids.CancellationInProgress}, // it cancels the request whose response it refused
		Summary:    "The response to a ping is refused with 400, as if only requests may be posted.",
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			result, ok := Posted(r).Result.(object)
			return ok && len(result) == 0
		}), Peeking()),
	},
	{ID: "http.charset-refused", Requirement: ids.HTTPServerContentTypeForms, Form: ByValue,
		Transports: []string{"http", "sse"},
		Summary:    "A Content-Type other than just application/json is refused with 415.",
		Apply: RefusingHTTP(http.StatusUnsupportedMediaType, func(r *http.Request) bool {
			return r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json"
		})},
	{ID: "http.accepted-with-body", Requirement: ids.HTTPServerAcceptedNoBody, Transports: OverHTTP,
		Summary: `202 comes with the body "Accepted".`,
		Apply: Replying(server.Accepted, func(r *server.Reply) {
			r.Header.Set("Content-Type", "text/plain")
			r.Body = []byte("Accepted")
		})},
	{ID: "http.refused-with-200", Requirement: ids.HTTPServerUnacceptableErrorStatus, Transports: OverHTTP,
		Summary: "A notification of an unknown method is refused with a JSON-RPC error and the status 200.",
		Collateral: []string{ids.BaseNotificationUnknownNoResponse, ids.BaseNotificationNoResponse,
			ids.BaseResponseIDEcho},
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if Posted(r.Request).Method == "notifications/mcpconform/no-such" {
				r.Status = http.StatusOK
				r.Header.Set("Content-Type", "application/json")
				r.Body = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)
			}
		}))},
	{ID: "http.answer-untyped", Requirement: ids.HTTPServerRequestAnswerType, Transports: OverHTTP,
		Summary:    "An answer in JSON has the type text/plain.",
		Collateral: []string{ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent},
		Apply:      misanswered(func(r *server.Reply) { r.Header.Set("Content-Type", "text/plain") })},
	{ID: "http.request-accepted", Requirement: ids.HTTPServerRequestAnswerType, Transports: OverHTTP,
		Summary:    "A request is answered with 202 and nothing else.",
		Collateral: []string{ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent},
		Apply: misanswered(func(r *server.Reply) {
			r.Status, r.Body = http.StatusAccepted, nil
			r.Header.Del("Content-Type")
		})},
	{ID: "http.json-array", Requirement: ids.HTTPServerJSONOneObject, Transports: OverHTTP,
		Summary: "A JSON answer is an array of one response.", Collateral: []string{ids.BaseBatchNotSent},
		Apply: misanswered(func(r *server.Reply) { r.Body = []byte("[" + string(r.Body) + "]") })},
	{ID: "http.json-empty", Requirement: ids.HTTPServerJSONOneObject, Transports: OverHTTP,
		Summary:    "A JSON answer has an empty body.",
		Collateral: []string{ids.CompletionSecurityValidateInputs, ids.BaseResponsePresent},
		Apply:      misanswered(func(r *server.Reply) { r.Body = []byte{} })},
	{ID: "http.event-not-json", Requirement: ids.HTTPServerSSEEventData, Transports: OverHTTP,
		Summary: "An event carries the text ok.", Collateral: []string{ids.BaseJSONWellFormed},
		Apply: ahead("ok")},
	{ID: "http.event-string", Requirement: ids.BaseJSONObject, Transports: OverHTTP,
		Summary: "An event carries a JSON string.", Collateral: []string{ids.HTTPServerSSEEventData},
		Apply: ahead(`"ok"`)},
	{ID: "http.response-withheld", Requirement: ids.HTTPServerSSEResponseSent, Transports: OverHTTP,
		Summary: "The stream of a request ends without the response.",
		Collateral: []string{ids.HTTPServerSSENoEarlyClose, ids.ToolsListCallable, ids.LoggingFilterAllAbove,
			ids.LoggingSetLevelReplaces},
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.Answers != nil && e.Out.Answers.Params["name"] == "test_tool_with_logging" {
				return nil
			}
			return []*server.Event{e}
		})},
	{ID: "http.stream-cut", Requirement: ids.HTTPServerSSENoEarlyClose, Transports: OverHTTP,
		Summary:    "The stream of a request is closed before the response.",
		Collateral: []string{ids.HTTPServerSSEResponseSent, ids.ToolsListCallable},
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.To != nil && e.Out.Method == "notifications/message" &&
				e.Out.To.Params["name"] == "test_tool_with_logging" {
				e.Cut = true
			}
			return []*server.Event{e}
		})},
	{ID: "http.response-elsewhere", Requirement: ids.HTTPServerSSEOwnResponse, Transports: OverHTTP,
		Summary: "The response to a ping comes on the stream of a call that is running.",
		Collateral: []string{
			ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent, ids.HTTPServerMultipleStreams,
			ids.PingResponsePrompt, ids.CancellationNoResponse,
			ids.CancellationIgnoreUnknown, ids.BaseResponseIDTypeEcho,
			ids.BaseRequestIDSpacePerSide, // whose checks ping during a call
		},
		Apply: All(
			func(o *server.Options) { o.HTTP.AlwaysSSE = true },
			Responses("ping", func(out *server.Outgoing) {
				if other := elsewhere(out.Answers); other != nil {
					out.To = other
				}
			}),
		)},
	{
		ID: "http.progress-elsewhere", Requirement: ids.HTTPServerSSERelatedMessages, Transports: OverHTTP,
		Summary:    "Progress of a call comes on the stream of another one.",
		Collateral: []string{ids.HTTPServerReplaySameStream}, // of a stream that is resumed
		Apply: All(
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
		),
	},
	{ID: "http.stream-kept-open", Requirement: ids.HTTPServerSSECloseAfterResponse, Transports: OverHTTP,
		Summary: "The stream of a request stays open after the response.",
		Apply:   func(o *server.Options) { o.Behaviour.HTTP.KeepOpen = func(*server.Request) bool { return true } }},
	{ID: "http.stream-of-refused-call-kept-open", Requirement: ids.HTTPServerSSECloseAfterResponse, Form: ByValue,
		Transports: OverHTTP,
		Summary: "Calls alone are answered with a stream, and that of a call of a tool that does not exist " +
			"stays open after the error.",
		Apply: func(o *server.Options) {
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
		}},
	{ID: "http.hang-up-breaks-session", Requirement: ids.HTTPDisconnectSurvived, Transports: OverHTTP,
		Summary: "When the client hangs up on a stream, nothing in its session is served any more.",
		Collateral: []string{ids.HTTPServerGetCloseTolerated, ids.HTTPServerGetStreamOr405,
			ids.HTTPServerOriginEveryRequest},
		Apply: fragile(func(r *http.Request) bool { return true })},
	{ID: "http.get-closed-breaks-session", Requirement: ids.HTTPServerGetCloseTolerated, Transports: OverHTTP,
		Summary:    "When the client closes the listening stream, nothing in its session is served any more.",
		Collateral: []string{ids.HTTPDisconnectSurvived, ids.HTTPServerGetStreamOr405},
		Apply:      fragile(func(r *http.Request) bool { return r.Method == http.MethodGet })},
	{ID: "http.disconnect-cancels", Requirement: ids.HTTPServerDisconnectNotCancel, Transports: OverHTTP,
		Summary:    "The end of a connection cancels the request.",
		Collateral: []string{ids.CancellationNoResponse},
		Apply: All(
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
		)},
	{ID: "http.disconnect-forgets", Requirement: ids.HTTPServerDisconnectNotCancel, Transports: OverHTTP,
		Summary: "A call is left unanswered if, when it is done, the client has not come back to its stream.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent,
			ids.HTTPServerSSENoEarlyClose},
		Apply: forgetting},
	{ID: "http.bad-body-accepted", Requirement: ids.HTTPServerSurvivesBadBody, Transports: OverHTTP,
		Summary:    "A body that is not a message is answered with 200 and nothing else.",
		Collateral: []string{ids.BaseErrorInvalidRequest, ids.BaseErrorParseSurvive},
		Apply: Replying(server.BadMessage, func(r *server.Reply) {
			r.Status, r.Body = http.StatusOK, nil
			r.Header.Del("Content-Type")
		})},
	{ID: "http.bad-body-breaks-session", Requirement: ids.HTTPServerSurvivesBadBody, Transports: OverHTTP,
		Summary: "After a message without jsonrpc nothing is answered in the session any more.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent,
			ids.HTTPServerSSENoEarlyClose},
		Apply: All(
			Understanding(wire.JSONRPCMissing),
			unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool { return m.Has(wire.JSONRPCMissing) }),
		)},
	{ID: "http.large-body-fails", Requirement: ids.HTTPMessageLarge, Transports: OverHTTP,
		Summary: "A body of more than 512 KiB is answered with 500.",
		Apply: RefusingHTTP(http.StatusInternalServerError,
			func(r *http.Request) bool { return r.ContentLength > 512<<10 })},
	{ID: "http.large-body-cut", Requirement: ids.HTTPMessageLarge, Transports: OverHTTP,
		Summary: "Only the first 512 KiB of a body are read.",
		Apply: Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Body = io.NopCloser(io.LimitReader(r.Body, 512<<10))
			next.ServeHTTP(w, r)
		})},
	{ID: "http.get-not-found", Requirement: ids.HTTPServerGetStreamOr405, Transports: OverHTTP,
		Summary: "GET is answered with 404.",
		Apply:   RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool { return r.Method == http.MethodGet })},
	{ID: "http.get-page", Requirement: ids.HTTPServerGetStreamOr405, Transports: OverHTTP,
		Summary: "GET is answered with a page in HTML.",
		Collateral: []string{ids.HTTPServerOriginEveryRequest, ids.HTTPServerSessionMissing400,
			ids.HTTPServerSessionEnded404},
		Apply: Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>MCP server</title>")
		})},
	{ID: "http.resume-octets", Requirement: ids.HTTPServerGetStreamOr405, Form: InSequence, Transports: OverHTTP,
		Summary:    "A stream that is resumed has the Content-Type application/octet-stream.",
		Collateral: []string{ids.HTTPServerEventIDCursor},
		Apply: Replying(server.ListeningSSE, func(r *server.Reply) {
			if r.Request.Header.Get(LastEventHeader) != "" {
				r.Header.Set("Content-Type", "application/octet-stream")
			}
		})},
	{ID: "http.resume-unknown-json", Requirement: ids.HTTPServerGetStreamOr405, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "A GET with a Last-Event-ID that the server does not know is answered with 200 and JSON.",
		Apply: Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || !strings.HasPrefix(r.Header.Get(LastEventHeader), "mcpconform") {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"error":"unknown event"}`)
		})},
	{ID: "http.progress-on-get", Requirement: ids.HTTPServerGetUnrelated, Transports: OverHTTP,
		Summary: "Progress of a call comes on the listening stream.",
		Apply:   Messages(Progressed, func(out *server.Outgoing) { out.To = nil })},
	{ID: "http.response-on-get", Requirement: ids.HTTPServerGetNoResponse, Transports: OverHTTP,
		Summary: "The response to a request comes on the listening stream.",
		Collateral: []string{ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent,
			ids.ResourcesUnsubscribeAccepted},
		Apply: Responses("resources/unsubscribe", func(out *server.Outgoing) { out.To = nil })},
	{ID: "http.orphan-on-get", Requirement: ids.HTTPServerGetNoResponse, Transports: OverHTTP,
		Summary:    "The response to a call whose connection broke comes on the listening stream.",
		Collateral: []string{ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSEResponseSent},
		Apply: Responses("tools/call", func(out *server.Outgoing) {
			if strings.Contains(out.Answers.ID.String(), "mcpconform-orphan") {
				out.To = nil
			}
		})},
	{ID: "http.one-at-a-time", Requirement: ids.HTTPServerMultipleStreams, Transports: OverHTTP,
		Summary: "While a tool is at work, other requests are refused.",
		Apply:   Refusing("ping", server.InternalError, func(r *server.Request) bool { return Busy(r.Session) })},
	{ID: "http.broadcast", Requirement: ids.HTTPServerNoBroadcast, Transports: OverHTTP,
		Summary: "Progress comes on the stream of the request and on the listening stream.",
		Collateral: []string{ids.HTTPServerGetUnrelated, ids.ProgressValueIncreases, ids.ProgressStop,
			ids.ProgressInProgress},
		Apply: Sending(server.OnMessage(Progressed, func(out *server.Outgoing) []*server.Outgoing {
			again := out.Clone()
			again.To = nil
			return []*server.Outgoing{out, again}
		}))},
	{ID: "http.broadcast-log", Requirement: ids.HTTPServerNoBroadcast, Transports: OverHTTP,
		Summary: "Log messages come on the stream of the request and on the listening stream.",
		Apply: Sending(server.OnMessage("notifications/message", func(out *server.Outgoing) []*server.Outgoing {
			again := out.Clone()
			again.To = nil
			return []*server.Outgoing{out, again}
		}))},
	{ID: "http.broadcast-update", Requirement: ids.HTTPServerNoBroadcast, Transports: OverHTTP,
		Summary: "The update of a resource is announced on the stream of the call that made it and " +
			"on the listening stream.",
		Apply: Sending(server.OnMessage("notifications/resources/updated",
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
			}))},
	{ID: "http.history-on-get", Requirement: ids.HTTPServerNoBroadcast, Transports: OverHTTP,
		Summary: "A listening stream begins with the progress that came on the streams of requests.",
		Collateral: []string{ids.ProgressValueIncreases, ids.ProgressStop, ids.ProgressInProgress,
			ids.HTTPServerGetUnrelated, ids.CancellationStopProcessing},
		Apply: historyOnGet(func(e *server.Event) bool { return e.Out.Method == Progressed })},
	{ID: "http.listening-history", Requirement: ids.HTTPServerNoBroadcast, Transports: OverHTTP,
		Summary: "A listening stream begins with the notifications that came on earlier listening streams.",
		Apply: historyOnGet(func(e *server.Event) bool {
			return e.Out.Kind == wire.Notification && strings.HasPrefix(e.Stream, "get:")
		})},
	{ID: "http.log-history-on-get", Requirement: ids.HTTPServerNoBroadcast, Form: ByValue, Transports: OverHTTP,
		Summary: "A listening stream begins with the log messages that came on the streams of requests.",
		Apply: historyOnGet(func(e *server.Event) bool {
			return e.Out.Method == "notifications/message" && strings.HasPrefix(e.Stream, "post:")
		})},
	{ID: "http.event-ids-per-stream", Requirement: ids.HTTPServerEventIDUnique, Transports: OverHTTP,
		Summary:    "Event ids count from 1 on each stream.",
		Collateral: []string{ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor, ids.BaseResponseOnce},
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if _, n, ok := strings.Cut(e.ID, "-"); ok {
				e.ID = n
			}
			return []*server.Event{e}
		})},
	{ID: "http.event-ids-of-listening", Requirement: ids.HTTPServerEventIDUnique, Transports: OverHTTP,
		Summary:    "Event ids count from 1 on each listening stream.",
		Collateral: []string{ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor},
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if _, n, ok := strings.Cut(e.ID, "-"); ok && strings.HasPrefix(e.Stream, "get:") {
				e.ID = "listening-" + n
			}
			return []*server.Event{e}
		})},
	{ID: "http.event-id-of-beginnings", Requirement: ids.HTTPServerEventIDUnique, Transports: OverHTTP,
		Summary: "Each stream begins with an event that has the id 0 and empty data.",
		Apply:   All(AlwaysStreams, FirstOfStream("0", []byte{}))},
	{ID: "http.event-id-alone-of-beginnings", Requirement: ids.HTTPServerEventIDUnique, Form: ByValue,
		Transports: OverHTTP, Summary: "Each stream begins with the id 0, without data.",
		Apply: All(AlwaysStreams, FirstOfStream("0", nil))},
	{ID: "http.replays-other-sessions", Requirement: ids.HTTPServerReplaySameStream, Transports: OverHTTP,
		Summary:    "A client is sent again what belongs to another session, if it knows the event id.",
		Collateral: []string{ids.ProgressTokenActiveRequest, ids.BaseResponseOnlyToRequests},
		Apply:      replayingAll()},
	{
		ID: "http.replays-everything", Requirement: ids.HTTPServerReplaySameStream, Transports: OverHTTP,
		Summary:    "A resumed stream begins with what came on the other streams.",
		Collateral: []string{ids.HTTPServerSSENoEarlyClose}, // of a call whose response it brings
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
				return append(onOthers(last, all), proposal...)
			}
		},
	},
	{ID: "http.unknown-event-replays", Requirement: ids.HTTPServerReplaySameStream, Transports: OverHTTP,
		Summary: "For an event id that was never given everything is sent again.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
				if slices.ContainsFunc(all, func(e *server.Event) bool { return e.ID == last }) {
					return proposal
				}
				return all
			}
		}},
	{ID: "http.unknown-event-replays-listening", Requirement: ids.HTTPServerReplaySameStream, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "For an event id that was never given all that came on listening streams is sent again.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
				if slices.ContainsFunc(all, func(e *server.Event) bool { return e.ID == last }) {
					return proposal
				}
				return slices.DeleteFunc(slices.Clone(all),
					func(e *server.Event) bool { return !strings.HasPrefix(e.Stream, "get:") })
			}
		}},
	{ID: "http.resume-skips-after-third", Requirement: ids.HTTPServerEventIDCursor, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "A stream that is resumed after its third event, or a later one, leaves out the one that follows.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				_ []*server.Event) []*server.Event {
				_, digits, _ := strings.Cut(last, "-")
				if n, err := strconv.Atoi(digits); err == nil && n >= 3 && len(proposal) > 0 {
					return proposal[1:]
				}
				return proposal
			}
		}},
	{ID: "http.resumed-anew", Requirement: ids.HTTPServerEventIDCursor, Form: InSequence, Transports: OverHTTP,
		Summary: "A stream that is resumed for the second time begins where it began the first time.",
		Apply: func(o *server.Options) {
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
		}},
	{ID: "http.replay-too-early", Requirement: ids.HTTPServerEventIDCursor, Transports: OverHTTP,
		Summary: "A resumed stream begins with the event that is named.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal,
				all []*server.Event) []*server.Event {
				for _, e := range all {
					if e.ID == last {
						return append([]*server.Event{e}, proposal...)
					}
				}
				return proposal
			}
		}},
	{ID: "http.sessions-mixed", Requirement: ids.HTTPServerSessionIsolation, Form: BySession, Transports: OverHTTP,
		Summary: "Requests of two sessions with the same id get the same answer.", Apply: confusing()},
	{ID: "http.same-id-call-lost", Requirement: ids.HTTPServerSessionIsolation, Form: BySession,
		Transports: OverHTTP,
		Summary:    "A call gets no response while another client's call with the same id is served.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent,
			ids.HTTPServerSSENoEarlyClose},
		Apply: losing("mcpconform-same-call")},
	{ID: "http.cancels-elsewhere", Requirement: ids.HTTPServerSessionIsolation, Form: BySession,
		Transports: OverHTTP, Summary: "A cancellation ends the request of that id in whatever session.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose,
			ids.CancellationIgnoreUnknown},
		Apply: cancellingAll()},
	{ID: "http.cancels-the-last", Requirement: ids.HTTPServerSessionIsolation, Form: BySession, Transports: OverHTTP,
		Summary: "If two clients have a call with the same id under way, a cancellation by either ends the call " +
			"that began last.",
		Collateral: []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent,
			ids.HTTPServerSSENoEarlyClose},
		Apply: cancellingTheLast},
	{ID: "http.answers-mixed", Requirement: ids.HTTPServerSessionIsolation, Form: BySession, Transports: OverHTTP,
		Summary: "When the server asks two clients with the same id, the answer that comes first counts for both.",
		Apply:   mixingAnswers},
	{ID: "http.session-id-counts", Requirement: ids.SecuritySessionIDNonDeterministic, Transports: OverHTTP,
		Summary:    "The ids of sessions are session-1, session-2 and so on.",
		Collateral: []string{ids.HTTPServerSessionIDSecure},
		Apply: func(o *server.Options) {
			var n atomic.Int64
			o.Behaviour.HTTP.SessionID = func() string { return "session-" + strconv.FormatInt(n.Add(1), 10) }
		}},
	{ID: "http.session-id-time", Requirement: ids.HTTPServerSessionIDSecure, Transports: OverHTTP,
		Summary:    "The ids of sessions are the time in nanoseconds.",
		Collateral: []string{ids.SecuritySessionIDNonDeterministic},
		Apply: func(o *server.Options) {
			var n atomic.Int64 // tells sessions of the same moment apart
			o.Behaviour.HTTP.SessionID = func() string { return strconv.FormatInt(time.Now().UnixNano()+n.Add(1), 10) }
		}},
	{ID: "http.late-session-id", Requirement: ids.HTTPServerSessionIDAtInitialization, Transports: OverHTTP,
		Summary: "The answers to notifications name another session id.",
		Apply:   Replying(server.Accepted, func(r *server.Reply) { r.Header.Set(SessionHeader, "another-session") })},
	{ID: "http.session-id-with-space", Requirement: ids.HTTPServerSessionIDCharset, Transports: OverHTTP,
		Summary:    "Session ids have a space.",
		Collateral: []string{ids.HTTPServerSessionIDSecure, ids.SecuritySessionIDNonDeterministic},
		Apply: func(o *server.Options) {
			var n sync.Map
			o.Behaviour.HTTP.SessionID = func() string {
				for i := 0; ; i++ {
					id := "session " + strconv.Itoa(i)
					if _, taken := n.LoadOrStore(id, true); !taken {
						return id
					}
				}
			}
		}},
	{ID: "http.missing-session-401", Requirement: ids.HTTPServerSessionMissing400, Transports: OverHTTP,
		Summary:    "A request without session id is refused with 401.",
		Collateral: []string{ids.AuthServerWWWAuthenticate, challengeURL},
		Apply:      Replying(server.MissingSession, func(r *server.Reply) { r.Status = http.StatusUnauthorized })},
	{ID: "http.get-needs-no-session", Requirement: ids.HTTPServerSessionMissing400, Transports: OverHTTP,
		Summary: "A GET without session id opens a stream, where a POST is refused.",
		Apply: Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method != http.MethodGet || r.Header.Get(SessionHeader) != "" || r.URL.Path != server.PathMCP {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": nothing to tell\n\n")
		})},
	{ID: "http.older-version-refused", Requirement: ids.LifecycleOperationVersion, Transports: OverHTTP,
		Summary: "MCP-Protocol-Version may name the latest version only, whatever was agreed upon.",
		Apply: RefusingHTTP(http.StatusBadRequest,
			func(r *http.Request) bool { return r.Header.Get(versionHeader) == "2025-03-26" })},
	{ID: "http.initialize-needs-session", Requirement: ids.HTTPServerInitializeWithoutSession, Transports: OverHTTP,
		Summary:    "An initialize of a client without capabilities is refused because it has no session id.",
		Collateral: []string{ids.BaseSupportOtherComponents},
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			declared, _ := wire.At(Posted(r).Params, "capabilities").(object)
			return Posted(r).Method == "initialize" && len(declared) == 0
		}), Peeking())},
	{ID: "http.ended-session-400", Requirement: ids.HTTPServerSessionEnded404, Transports: OverHTTP,
		Summary: "A request of an ended session is refused with 400.",
		Apply:   Replying(server.UnknownSession, func(r *server.Reply) { r.Status = http.StatusBadRequest })},
	{ID: "http.ended-session-responses", Requirement: ids.HTTPServerSessionEnded404, Form: ByValue,
		Transports: OverHTTP, Summary: "A response that is posted in an ended session is answered with 202.",
		Apply: All(Peeking(), Replying(server.UnknownSession, func(r *server.Reply) {
			if Posted(r.Request).IsResponse() {
				r.Status, r.Body = http.StatusAccepted, nil
			}
		}))},
	{ID: "http.ended-session-deleted", Requirement: ids.HTTPServerSessionEnded404, Transports: OverHTTP,
		WarnOnly: true, Summary: "The DELETE of an ended session is answered with 204.",
		Apply: deletedWhere(server.UnknownSession)},
	{ID: "http.delete-ignored", Requirement: ids.HTTPServerDeleteSession, Transports: OverHTTP,
		Summary:    "DELETE is answered with success, and the session goes on.",
		Collateral: []string{ids.HTTPServerSessionEnded404},
		Apply:      func(o *server.Options) { o.Behaviour.HTTP.KeepSession = true }},
	{ID: "http.delete-fails", Requirement: ids.HTTPServerDeleteSession, Transports: OverHTTP,
		Summary: "DELETE is answered with 500.",
		Apply: RefusingHTTP(http.StatusInternalServerError, func(r *http.Request) bool {
			return r.Method == http.MethodDelete && r.Header.Get("Origin") == ""
		})},
	{ID: "http.version-required", Requirement: ids.HTTPServerVersionHeaderMissing, Transports: OverHTTP,
		Summary: "A request without MCP-Protocol-Version is refused.",
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return r.Method == http.MethodPost && Posted(r).Method != "initialize" && r.Header.Get(versionHeader) == ""
		}), Peeking())},
	{ID: "http.version-required-notifications", Requirement: ids.HTTPServerVersionHeaderMissing, Form: ByValue,
		Transports: OverHTTP, Summary: "A notification without MCP-Protocol-Version is refused.",
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return Posted(r).Kind == wire.Notification && r.Header.Get(versionHeader) == ""
		}), Peeking())},
	{ID: "http.version-required-get", Requirement: ids.HTTPServerVersionHeaderMissing, Form: ByValue,
		Transports: OverHTTP, Summary: "A GET without MCP-Protocol-Version is refused.",
		Apply: RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return r.Method == http.MethodGet && r.Header.Get(versionHeader) == ""
		})},
	{ID: "http.version-unchecked", Requirement: ids.HTTPServerVersionHeaderInvalid400, Transports: OverHTTP,
		Summary: "MCP-Protocol-Version may hold anything that is not a version.",
		Apply: Passing(server.BadVersionHeader, func(r *server.Reply) bool {
			return len(r.Request.Header.Get(versionHeader)) != len("2025-06-18")
		})},
	{ID: "http.version-unsupported-served", Requirement: ids.HTTPServerVersionHeaderUnsupported400,
		Transports: OverHTTP, Summary: "MCP-Protocol-Version may name a version that is not supported.",
		Apply: Passing(server.BadVersionHeader, func(r *server.Reply) bool {
			return len(r.Request.Header.Get(versionHeader)) == len("2025-06-18")
		})},
	{ID: "http.version-later-served", Requirement: ids.HTTPServerVersionHeaderUnsupported400, Transports: OverHTTP,
		Summary: "MCP-Protocol-Version may name any later version.",
		Apply: Passing(server.BadVersionHeader, func(r *server.Reply) bool {
			version := r.Request.Header.Get(versionHeader)
			return len(version) == len("2025-06-18") && version > "2025-06-18"
		})},
	{ID: "http.version-of-delete-unchecked", Requirement: ids.HTTPServerVersionHeaderUnsupported400,
		Transports: OverHTTP, Summary: "MCP-Protocol-Version of a DELETE is not checked.",
		Collateral: []string{ids.HTTPServerVersionHeaderInvalid400},
		Apply: Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return r.Request.Method == http.MethodDelete })},
	{ID: "http.version-of-responses-unchecked", Requirement: ids.HTTPServerVersionHeaderUnsupported400,
		Form: ByValue, Transports: OverHTTP, Summary: "MCP-Protocol-Version of a response is not checked.",
		Collateral: []string{ids.HTTPServerVersionHeaderInvalid400},
		Apply: All(Peeking(), Passing(server.BadVersionHeader,
			func(r *server.Reply) bool { return Posted(r.Request).IsResponse() }))},
	{ID: "sse.not-a-stream", Requirement: ids.SSEServerSSEEndpoint, Transports: OverSSE,
		Summary: "The GET is answered with text/plain.",
		Apply:   Replying(server.LegacySSE, func(r *server.Reply) { r.Header.Set("Content-Type", "text/plain") })},
	{ID: "sse.post-fails", Requirement: ids.SSEServerPostEndpoint, Transports: OverSSE,
		Summary: "Notifications are taken, but answered with 500.",
		Apply: All(Peeking(), Replying(server.LegacyAccepted, func(r *server.Reply) {
			if Posted(r.Request).Kind == wire.Notification {
				r.Status = http.StatusInternalServerError
			}
		}))},
	{ID: "sse.no-endpoint", Requirement: ids.SSEServerEndpointEvent, Transports: OverSSE,
		Summary: "The stream ends without an endpoint event.",
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if e.Out == nil {
				return []*server.Event{{Session: e.Session, Comment: "hello", Raw: []byte(": hello\n\n"), Cut: true}}
			}
			return []*server.Event{e}
		})},
	{ID: "sse.endpoint-second", Requirement: ids.SSEServerEndpointEventFirst, Transports: OverSSE,
		Summary: "A message precedes the endpoint event.", Collateral: []string{ids.LifecycleInitFirst},
		Apply: greeting()},
	{ID: "sse.speaks-first", Requirement: ids.LifecycleInitFirst, Transports: OverSSE, WarnOnly: true,
		Summary:    "A log message is sent before the client can send anything.",
		Collateral: []string{ids.SSEServerEndpointEventFirst}, Apply: greeting()},
	{ID: "sse.endpoint-json", Requirement: ids.SSEServerEndpointEventURI, Transports: OverSSE,
		Summary: "The endpoint event holds a JSON object.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.Endpoint = func(uri string) string { return `{"uri": "` + uri + `"}` }
		}},
	{ID: "sse.event-type", Requirement: ids.SSEServerMessageEvents, Transports: OverSSE,
		Summary: "Log messages come as events of the type log.",
		Apply: Streaming(func(e *server.Event) []*server.Event {
			if e.Out != nil && e.Out.Method == "notifications/message" {
				e.Name = "log"
			}
			return []*server.Event{e}
		})},
	{ID: "sse.event-not-json", Requirement: ids.SSEServerMessageJSON, Transports: OverSSE,
		Summary: "A message event carries the text ok.", Collateral: []string{ids.BaseJSONWellFormed},
		Apply: ahead("ok")},
	{ID: "sse.response-in-post", Requirement: ids.SSEServerResponsesOnStream, Transports: OverSSE,
		Summary: "The response to resources/unsubscribe comes in the answer to the POST.",
		Apply: All(
			Peeking(),
			Replying(server.LegacyAccepted, func(r *server.Reply) {
				if m := Posted(r.Request); m.Method == "resources/unsubscribe" {
					r.Status = http.StatusOK
					r.Header.Set("Content-Type", "application/json")
					r.Body = []byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{}}`)
				}
			}),
			WithholdingAnswers("resources/unsubscribe", func(_ *server.Outgoing) bool {
				return true
			}),
		)},
	{ID: "sse.sessions-mixed", Requirement: ids.SSEServerSessionIsolation, Form: BySession, Transports: OverSSE,
		Summary: "Requests of two sessions with the same id get the same answer.", Apply: confusing()},
	{ID: "sse.answers-mixed", Requirement: ids.SSEServerSessionIsolation, Form: BySession, Transports: OverSSE,
		Summary: "When the server asks two clients with the same id, the answer that comes first counts for both.",
		Apply:   mixingAnswers},
	{ID: "sse.cancels-elsewhere", Requirement: ids.SSEServerSessionIsolation, Form: BySession, Transports: OverSSE,
		Summary:    "A cancellation ends the request of that id in whatever session.",
		Collateral: []string{ids.BaseResponsePresent, ids.CancellationIgnoreUnknown}, Apply: cancellingAll()},
	{ID: "sse.origin-unchecked", Requirement: ids.SSEServerOriginForeign, Transports: OverSSE,
		Summary: "The Origin is not checked, unless it is null.",
		Apply:   Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) != "null" })},
	{ID: "sse.origin-of-host-header", Requirement: ids.SSEServerOriginForeign, Transports: OverSSE,
		Summary: "An Origin that is the one of the Host header is trusted, whatever that names.",
		Apply:   ofHostHeader},
	{ID: "sse.origin-null-trusted", Requirement: ids.SSEServerOriginNull, Transports: OverSSE,
		Summary: "The Origin null is trusted.",
		Apply:   Passing(server.ForeignOrigin, func(r *server.Reply) bool { return origin(r) == "null" })},
}
