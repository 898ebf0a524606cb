package mockserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// whileBusy leaves the requests of a method unanswered that come while a call is running.
func whileBusy(method string) apply {
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		if Busy(r.Session) {
			return server.NoAnswer, nil
		}
		return next(ctx, r)
	})
}

// atomically returns a value of a session that its goroutines share.
func atomically[T any](s *server.Session, key any) *atomic.Pointer[T] {
	return Kept[atomic.Pointer[T]](s, key)
}

// named returns the key of the id in a cancellation.
func named(m *wire.Message) string { return wire.ReadID(wire.At(m.Params, "requestId")).Key() }

// after answers requests of a method with an error if the last request before was of another
// method.
func after(former, method string, problem *wire.Error) apply {
	return All(
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			if m.Kind == wire.Request {
				last := atomically[[2]string](s, "former")
				before := last.Load()
				if before == nil {
					before = new([2]string)
				}
				last.Store(&[2]string{before[1], m.Method})
			}
			next()
		}),
		Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if last := atomically[[2]string](r.Session, "former").Load(); last != nil && last[0] == former &&
				last[1] == method {
				return nil, problem
			}
			return next(ctx, r)
		}),
	)
}

// robbing leaves requests without a response, which do chooses by a function that takes one.
func robbing(do func(take func(*server.Request)) apply) apply {
	take := func(r *server.Request) { Keys(r.Session, "taken").Store(r.ID.Key(), true) }
	return All(do(take), WithholdingAny(func(out *server.Outgoing) bool {
		if out.Answers != nil {
			if _, taken := Keys(out.Session, "taken").Load(out.Answers.ID.Key()); taken {
				return true
			}
		}
		return false
	}))
}

// aware hooks into the HTTP requests that belong to a session in which something was asked.
func aware(hook func(s *server.Session, w http.ResponseWriter, r *http.Request, next func())) apply {
	return func(o *server.Options) {
		var sessions sync.Map
		OnRequest("*", func(r *server.Request) {
			sessions.Store(r.Session.ID, r.Session)
		})(o)
		Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			serve := func() { next.ServeHTTP(w, r) }
			if s, ok := sessions.Load(r.Header.Get(SessionHeader)); ok {
				hook(s.(*server.Session), w, r, serve)
			} else {
				serve()
			}
		})(o)
	}
}

// changingPlaces swaps the answers of two lists that are requested at the same time.
func changingPlaces(o *server.Options) {
	for _, method := range []string{"prompts/list", "resources/list"} {
		Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if err := r.Sleep(ctx, time.Millisecond); err != nil {
				return nil, &wire.Error{Code: server.InternalError, Message: err.Error()}
			}
			result, problem := next(ctx, r)
			first := atomically[swapped](r.Session, "swapped")
			for _, other := range r.Session.Running() {
				if other != r && other.Method != r.Method && isList(other.Method) {
					first.Store(&swapped{other, result, problem})
				}
			}
			if given := first.Load(); given != nil && given.to == r {
				first.Store(nil)
				return given.result, given.problem
			}
			return result, problem
		})(o)
	}
}

// swapped is the answer that a request gets in place of its own.
type swapped struct {
	to      *server.Request
	result  any
	problem *wire.Error
}

// momentFaults show in one order, or at one moment. A fault that was reported to the authors of a real server names
// the thread.
var momentFaults = []Fault{
	fault("tools.unknown-served-later", ids.ToolsErrorUnknownToolProtocolError,
		"From the second call in a session on, an unknown tool gets a plain result.", func(o *server.Options) {
			Wrapping("tools/call",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					if Count(r.Session, "calls so far") > 1 && unknownNamed(r) {
						return object{"content": TextOf("")}, nil
					}
					return next(ctx, r)
				})(o)
		}).Seen(InSequence),
	// https://github.com/NatLabRockies/openstudio-mcp/issues/42
	fault("moments.templates-lost-beside-call", ids.BaseResponsePresent,
		"While a call is running, resources/templates/list gets no response.", whileBusy("resources/templates/list")).
		Seen(InSequence),
	fault("moments.unsubscribe-lost-beside-call", ids.BaseResponsePresent,
		"While a call is running, resources/unsubscribe gets no response.", whileBusy("resources/unsubscribe")).
		Seen(InSequence),
	fault("moments.cancel-takes-all", ids.BaseResponsePresent,
		"The cancellation of a call takes all other calls that are running with it.",
		robbing(func(take func(*server.Request)) apply {
			return Receiving(func(s *server.Session, m *wire.Message, next func()) {
				running := s.Running()
				if m.Method == Cancelled && slices.ContainsFunc(running,
					func(r *server.Request) bool { return r.ID.Key() == named(m) }) {
					for _, r := range running {
						take(r)
					}
				}
				next()
			})
		})).Seen(InSequence),
	fault("moments.unknown-cancel-takes-last", ids.BaseResponsePresent,
		"The cancellation of an unknown request takes the call that is running.",
		robbing(func(take func(*server.Request)) apply {
			return Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if m.Method == Cancelled && !Knows(Keys(s, "seen"), named(m)) {
					for _, r := range s.Running() {
						take(r)
					}
				}
				if m.Kind == wire.Request {
					Keys(s, "seen").Store(m.ID.Key(), true)
				}
				next()
			})
		})).Seen(InSequence).Also(ids.CancellationIgnoreUnknown),
	fault("moments.early-cancel-remembered", ids.CancellationIgnoreUnknown,
		"A request is not answered whose id was in a cancellation before it came.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			if m.Method == Cancelled {
				Keys(s, "named").Store(named(m), true)
			}
			if _, withdrawn := Keys(s, "named").Load(m.ID.Key()); m.Kind != wire.Request || !withdrawn {
				next()
			}
		})).Seen(InSequence).Also(ids.BaseResponsePresent),
	fault("moments.late-cancel-answered-again", ids.BaseResponseOnce,
		"The cancellation of a list request that was answered has it answered again.", All(
			Altering(func(out *server.Outgoing) {
				if out.Answers != nil && out.Answers.Method == "prompts/list" {
					Keys(out.Session, "sent").Store(out.Answers.ID.Key(), out.Clone())
				}
			}),
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				next()
				if m.Method != Cancelled {
					return
				}
				if out, ok := Keys(s, "sent").LoadAndDelete(named(m)); ok {
					again := out.(*server.Outgoing)
					again.To = nil
					s.Send(again)
				}
			}),
		)).Seen(InSequence),
	fault("moments.subscribe-once", ids.ResourcesSubscribeAccepted,
		"A resource that was unsubscribed from cannot be subscribed to again.", Wrapping("resources/subscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if uri, _ := r.Params["uri"].(string); uri != "" && len(r.Session.Subscriptions()) == 0 &&
					!Once(r.Session, "subscribe "+uri) {
					return nil, &wire.Error{Code: server.InternalError, Message: "Already subscribed"}
				}
				return next(ctx, r)
			})).Seen(InSequence),
	fault("moments.error-sticks", ids.PromptsListAnswered,
		"After a request of an unknown method, prompts/list is refused.",
		after("mcpconform/no-such-method", "prompts/list",
			&wire.Error{Code: server.InternalError, Message: "Method not found"})).Seen(InSequence),
	fault("moments.read-ends-with-subscription", ids.ResourcesReadAnswered,
		"Right after resources/unsubscribe a resource cannot be read.", after("resources/unsubscribe", "resources/read",
			&wire.Error{Code: -32002, Message: "Resource not found"})).Seen(InSequence),
	fault("moments.get-after-complete", ids.PromptsGetAnswered,
		"Right after completion/complete a prompt cannot be had.",
		after("completion/complete", "prompts/get", &wire.Error{Code: server.InternalError, Message: "busy"})).
		Seen(InSequence),
	fault("moments.aborted-for-good", ids.ToolsListCallable,
		"After the cancellation of a call that was running the next call is refused as aborted.", All(
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				for _, r := range s.Running() {
					if m.Method == Cancelled && r.ID.Key() == named(m) && r.Method == "tools/call" {
						atomically[bool](s, "aborted").Store(new(bool))
					}
				}
				next()
			}),
			Wrapping("tools/call",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					if atomically[bool](r.Session, "aborted").Swap(nil) != nil {
						return nil, &wire.Error{Code: server.InternalError, Message: "This operation was aborted"}
					}
					return next(ctx, r)
				}),
		)).Seen(InSequence).Warns(),
	fault("moments.current-id", ids.BaseResponseOnce,
		"A call is answered with the id of the request that was read last.", All(
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if m.Kind == wire.Request {
					atomically[wire.ID](s, "last id").Store(&m.ID)
				}
				next()
			}),
			Responses("tools/call", func(out *server.Outgoing) {
				if last := atomically[wire.ID](out.Session, "last id").Load(); last != nil {
					out.Message["id"] = json.RawMessage(last.String())
				}
			}),
		)).Seen(InSequence).
		Also(ids.BaseResponsePresent, ids.BaseRequestIDSpacePerSide, ids.CancellationIgnoreUnknown,
			ids.ProgressInProgress, ids.ProgressStop),
	fault("moments.strange-notifications-swallow", ids.BaseResponsePresent,
		"The request right after an unknown notification is lost, unless it is a ping.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			strange := Kept[atomic.Bool](s, "strange")
			if last := strange.Swap(m.Kind == wire.Notification &&
				strings.HasPrefix(m.Method, "notifications/mcpconform/")); !last || m.Kind != wire.Request ||
				m.Method == "ping" {
				next()
			}
		})).Seen(InSequence),
	fault("moments.lists-change-places", ids.BaseResponseIDEcho,
		"The second of two lists that are asked for at once gets the answer of the first.", changingPlaces).
		Seen(InSequence).
		Also(ids.SchemaListPromptsResult, ids.SchemaListResourcesResult, ids.PromptsListAnswered,
			ids.ResourcesListAnswered, ids.PromptsListChangedSent, ids.ResourcesListChangedSent),
	fault("moments.cursor-of-the-last-list", ids.PaginationServerStableCursors,
		"A cursor of tools/list is refused once another list was asked for.",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if !isList(r.Method) {
				return next(ctx, r)
			}
			last := atomically[string](r.Session, "former list").Swap(&r.Method)
			if cursor, _ := r.Params["cursor"].(string); r.Method == "tools/list" && len(cursor) > 30 && last != nil &&
				*last != r.Method {
				return nil, &wire.Error{Code: server.InvalidParams, Message: "Invalid cursor"}
			}
			return next(ctx, r)
		})).Seen(InSequence),
	// https://github.com/HarperFast/harper/issues/1368
	fault("moments.session-resurrected", ids.HTTPServerSessionEnded404,
		"A session that is deleted while a call is running lives on.",
		aware(func(s *server.Session, w http.ResponseWriter, r *http.Request, next func()) {
			if r.Method == http.MethodDelete && Busy(s) {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next()
		})).Seen(InSequence).Only(OverHTTP),
	fault("moments.listening-end-takes-call", ids.BaseResponsePresent,
		"When the client closes a listening stream, the calls that are running get no response.",
		robbing(func(take func(*server.Request)) apply {
			return aware(func(s *server.Session, _ http.ResponseWriter, r *http.Request, next func()) {
				next()
				if r.Method == http.MethodGet && left(r) {
					for _, r := range s.Running() {
						take(r)
					}
				}
			})
		})).Seen(InSequence).Only(OverHTTP).Also(ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("moments.get-takes-streams", ids.BaseResponsePresent,
		"When a listening stream is opened, the calls that are running get no response.",
		robbing(func(take func(*server.Request)) apply {
			return aware(func(s *server.Session, _ http.ResponseWriter, r *http.Request, next func()) {
				if r.Method == http.MethodGet && r.Header.Get(LastEventHeader) == "" {
					for _, r := range s.Running() {
						take(r)
					}
				}
				next()
			})
		})).Seen(InSequence).Only(OverHTTP).Also(ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
}

// left reports whether a client has closed the stream of a response. An event that cannot be written any
// more may end the response before net/http notices.
func left(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		return true
	case <-time.After(50 * time.Millisecond):
		return false
	}
}
