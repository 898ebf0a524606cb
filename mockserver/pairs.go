package mockserver

import (
	"context"
	"encoding/json"
	"fmt"
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

// withoutTool leaves out a tool.
func withoutTool(name string) apply {
	return Offering(func(c *server.Catalogue) {
		c.Tools = slices.DeleteFunc(c.Tools, func(t *server.Tool) bool { return t.Name() == name })
	})
}

// underWay holds how to stop the calls of a session that are under way, by their ids.
type underWay struct {
	sync.Mutex
	stops map[string]context.CancelFunc
}

func underWayOf(s *server.Session) *underWay {
	return s.Value("calls", func() any { return &underWay{stops: make(map[string]context.CancelFunc)} }).(*underWay)
}

// stopIf stops all of the calls, if the one with an id is among them.
func (u *underWay) stopIf(id wire.ID) {
	u.Lock()
	defer u.Unlock()
	if u.stops[id.Key()] != nil {
		for _, stop := range u.stops {
			stop()
		}
	}
}

// abortable gives each call of a tool to begun, with a function that ends the call with this answer. If begun returns
// a function, that is called after the call.
func abortable(result any, problem *wire.Error,
	begun func(r *server.Request, stop context.CancelFunc) (over func())) apply {
	return Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		within, stop := context.WithCancel(ctx)
		defer stop()
		over := begun(r, stop)
		given, refused := next(within, r)
		if over != nil {
			over()
		}
		if within.Err() != nil && ctx.Err() == nil {
			return result, problem
		}
		return given, refused
	})
}

// stoppable gives the calls of a session that are stopped an answer.
func stoppable(result any, problem *wire.Error) apply {
	return abortable(result, problem, func(r *server.Request, stop context.CancelFunc) func() {
		u, key := underWayOf(r.Session), r.ID.Key()
		u.Lock()
		defer u.Unlock()
		u.stops[key] = stop
		return func() {
			u.Lock()
			defer u.Unlock()
			delete(u.stops, key)
		}
	})
}

// cancelledTogether makes a cancellation of a call that is under way stop all calls of the session.
func cancelledTogether() apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		next()
		if m.Method == Cancelled {
			underWayOf(s).stopIf(wire.ReadID(wire.At(m.Params, "requestId")))
		}
	})
}

// leftTogether makes the end of a connection on which a call is under way stop all others of
// the session.
func leftTogether(o *server.Options) {
	var sessions sync.Map
	Ready(func(s *server.Session) { sessions.Store(s.ID, s) })(o)
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		if s, ok := sessions.Load(IDOf(r)); ok && r.Method == http.MethodPost && r.Context().Err() != nil {
			underWayOf(s.(*server.Session)).stopIf(Posted(r).ID)
		}
	})(o)
	Peeking()(o)
}

// lastToken gives all progress of a session the token of the call that began last.
func lastToken(o *server.Options) {
	of := func(s *server.Session) *atomic.Value {
		return Kept[atomic.Value](s, "token")
	}
	type box struct{ token any }
	OnRequest("tools/call", func(r *server.Request) {
		if token, ok := r.Token(); ok {
			of(r.Session).Store(box{token})
		}
	})(o)
	Messages(Progressed, func(out *server.Outgoing) {
		if last, ok := of(out.Session).Load().(box); ok {
			out.Params()["progressToken"] = last.token
		}
	})(o)
}

// progressByToken sends the progress for a token to the session that used it last.
func progressByToken(o *server.Options) {
	var owners sync.Map
	OnRequest("tools/call", func(r *server.Request) {
		if token, ok := r.Token(); ok {
			owners.Store(token, r)
		}
	})(o)
	Withholding(Progressed, func(out *server.Outgoing) bool {
		owner, ok := owners.Load(out.Params()["progressToken"])
		if r, _ := owner.(*server.Request); ok && r.Session != out.Session {
			moved := out.Clone()
			moved.Session, moved.To = r.Session, r
			r.Session.Send(moved)
			return true
		}
		return false
	})(o)
}

// answersInOrder takes what clients answer to be for the request that waits longest.
func answersInOrder(o *server.Options) {
	type waiting struct {
		sync.Mutex
		ids []wire.ID
	}
	of := func(s *server.Session) *waiting {
		return Kept[waiting](s, "asked")
	}
	Altering(func(out *server.Outgoing) {
		if out.Kind == wire.Request {
			if id, ok := out.Message["id"].(json.RawMessage); ok {
				w := of(out.Session)
				w.Lock()
				w.ids = append(w.ids, wire.Parse([]byte(`{"id":`+string(id)+`}`)).ID)
				w.Unlock()
			}
		}
	})(o)
	Receiving(func(s *server.Session, m *wire.Message, next func()) {
		if m.IsResponse() {
			w := of(s)
			w.Lock()
			if len(w.ids) > 0 {
				m.ID, w.ids = w.ids[0], w.ids[1:]
			}
			w.Unlock()
		}
		next()
	})(o)
}

// crossing makes two requests of a method that are served at the same time get the results of
// each other.
func crossing(method string) apply {
	type offer struct {
		result any
		other  chan any
	}
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		r.Detach()
		result, problem := next(ctx, r)
		if problem != nil {
			return result, problem
		}
		partners := r.Session.Value("crossing "+method, func() any { return make(chan offer) }).(chan offer)
		mine := offer{result, make(chan any, 1)}
		select {
		case other := <-partners:
			other.other <- result
			return other.result, nil
		case partners <- mine:
			return <-mine.other, nil
		case <-time.After(5 * time.Millisecond):
			return result, nil
		}
	})
}

// resubscribing stands around subscriptions and their ends, and counts which are held for a
// resource.
func resubscribing(change func(ctx context.Context, r *server.Request, held int64, next server.Handler) (any,
	*wire.Error)) apply {
	return func(o *server.Options) {
		of := func(r *server.Request) *atomic.Int64 {
			return r.Session.Value("subscribed "+Member(r.Params, "uri"),
				func() any { return new(atomic.Int64) }).(*atomic.Int64)
		}
		Wrapping("resources/subscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				return change(ctx, r, of(r).Add(1), next)
			})(o)
		Wrapping("resources/unsubscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				n := of(r)
				if n.Add(-1) < 0 {
					n.Store(0)
				}
				return change(ctx, r, n.Load(), next)
			})(o)
	}
}

// twice tells whether a session is subscribed to a resource twice.
func twice(s *server.Session, uri string) *atomic.Bool {
	return Kept[atomic.Bool](s, "twice "+uri)
}

// lastSubscription holds the URI to which a client has subscribed last.
func lastSubscription(s *server.Session) *atomic.Value {
	return Kept[atomic.Value](s, "last subscription")
}

// droppingUpdates sends no updates of resources that fit.
func droppingUpdates(fits func(s *server.Session, uri string) bool) apply {
	return Withholding("notifications/resources/updated", func(out *server.Outgoing) bool {
		return fits(out.Session, Member(out.Params(), "uri"))
	})
}

// pairFaults show when there are two of something.
var pairFaults = []Fault{
	fault("resources.reads-crossed", ids.BaseResponseIDEcho,
		"Two resources that are read at the same time get the contents of each other.", crossing("resources/read")).
		Seen(AtOnce).Also(ids.ResourcesSizeRawBytes),
	fault("prompts.gets-crossed", ids.BaseResponseIDEcho,
		"Two prompts that are got at the same time get the messages of each other.", crossing("prompts/get")).
		Seen(AtOnce),
	fault("tools.arguments-of-the-last", ids.BaseResponseIDEcho,
		"Calls of a tool that run at the same time work with the arguments of the one that began last.",
		WrappingTool("echo", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			last := Kept[atomic.Value](r.Session, "arguments")
			last.Store(r.Params)
			_ = r.Sleep(ctx, 5*time.Millisecond)
			r.Params, _ = last.Load().(object)
			return next(ctx, r)
		})).Seen(AtOnce).Warns(),
	fault("tools.second-call-unanswered", ids.BaseResponsePresent,
		"A call that begins while another one runs is not answered.",
		Beside(func(ctx context.Context, r *server.Request, n int64, next server.Handler) (any, *wire.Error) {
			r.Detach()
			if n > 1 {
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})).Seen(AtOnce),
	fault("tools.unknown-served-when-busy", ids.ToolsErrorUnknownToolProtocolError,
		"The call of an unknown tool gets a plain result while another call is in progress.",
		Answering("tools/call", object{"content": TextOf("")},
			func(r *server.Request) bool { return unknownNamed(r) && len(r.Session.Running()) > 1 })).Seen(AtOnce),
	fault("http.second-call-unanswered", ids.BaseResponsePresent,
		"A call that begins while another one runs is not answered.",
		Beside(func(ctx context.Context, r *server.Request, n int64, next server.Handler) (any, *wire.Error) {
			if n > 1 {
				<-ctx.Done()
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})).Seen(AtOnce).Also(ids.HTTPServerDisconnectNotCancel),
	fault("cancellation.ends-neighbours", ids.BaseResponsePresent,
		"The cancellation of a call ends the others as well: they are not answered.",
		All(stoppable(server.NoAnswer, nil), cancelledTogether())).Seen(AtOnce),
	fault("cancellation.refuses-neighbours", ids.CancellationEitherSide,
		"The cancellation of a call ends the others as well: they are answered as cancelled.",
		All(stoppable(nil, &wire.Error{Code: server.InternalError, Message: "Cancelled"}),
			cancelledTogether())).Seen(AtOnce),
	fault("progress.token-of-the-last", ids.ProgressValueIncreases,
		"The progress of all calls has the token of the one that began last.", lastToken).Seen(AtOnce).
		Also(ids.ProgressStop, ids.ProgressInProgress, ids.CancellationStopProcessing),
	fault("sampling.answers-in-order", ids.BaseResponseCorrelated,
		"The server applies each answer of the client to the request that waits longest.", answersInOrder).Seen(AtOnce).
		Also(ids.CancellationInProgress),
	fault("elicitation.answers-in-order", ids.BaseResponseCorrelated,
		"A server without sampling takes an answer for that to the request that waits longest.",
		All(withoutTool("test_sampling"), answersInOrder)).Seen(AtOnce).Also(ids.CancellationInProgress),
	fault("http.elicited-answers-mixed", ids.HTTPServerSessionIsolation,
		"When a server without sampling elicits from two clients with the same id, the answer that comes first "+
			"counts for both.", func(o *server.Options) {
			withoutTool("test_sampling")(o)
			var answers sync.Map
			Receiving(func(_ *server.Session, m *wire.Message, next func()) {
				if name, _ := wire.At(m.Result, "content", "username").(string); strings.HasPrefix(name,
					"mcpconform-of-the-") {
					m.Result, _ = answers.LoadOrStore(m.ID.Key(), m.Result)
				}
				next()
			})(o)
		}).Seen(BySession),
	fault("pagination.one-reader", ids.PaginationServerStableCursors,
		"When a list is read anew, the cursors of the reading before are refused.",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			reading := Kept[atomic.Int64](r.Session, "readings of "+r.Method)
			if cursor, ok := r.Params["cursor"].(string); !ok {
				reading.Add(1)
			} else if prefix := fmt.Sprintf("%020d", reading.Load()); strings.HasPrefix(cursor, prefix) {
				r.Params["cursor"] = cursor[len(prefix):]
			} else if len(cursor) > 2*len(prefix) {
				return nil, &wire.Error{Code: server.InvalidParams, Message: "Unknown cursor"}
			}
			result, problem := next(ctx, r)
			if page, ok := result.(object); ok && page["nextCursor"] != nil {
				page["nextCursor"] = fmt.Sprintf("%020d%s", reading.Load(), page["nextCursor"])
			}
			return result, problem
		})).Seen(AtOnce),
	fault("resources.subscriptions-counted", ids.ResourcesUpdatedEndsWithUnsubscribe,
		"A client that has subscribed twice has to unsubscribe twice.",
		resubscribing(func(ctx context.Context, r *server.Request, held int64, next server.Handler) (any,
			*wire.Error) {
			if r.Method == "resources/unsubscribe" && held > 0 {
				return object{}, nil
			}
			return next(ctx, r)
		})).Seen(InSequence),
	fault("resources.subscribed-twice-ends", ids.ResourcesUpdatedSent,
		"A client that subscribes to a resource twice is not told any more that it has changed.", All(
			resubscribing(func(ctx context.Context, r *server.Request, held int64, next server.Handler) (any,
				*wire.Error) {
				twice(r.Session, Member(r.Params, "uri")).Store(r.Method == "resources/subscribe" && held > 1)
				return next(ctx, r)
			}),
			droppingUpdates(func(s *server.Session, uri string) bool { return twice(s, uri).Load() }),
		)).Seen(InSequence),
	fault("resources.subscribed-anew-ends", ids.ResourcesUpdatedSent,
		"A client that has unsubscribed from a resource and subscribes again is not told any more that it has "+
			"changed.", All(
			OnRequest("resources/unsubscribe",
				func(r *server.Request) { twice(r.Session, Member(r.Params, "uri")).Store(true) }),
			droppingUpdates(func(s *server.Session, uri string) bool { return twice(s, uri).Load() }),
		)).Seen(InSequence),
	fault("resources.only-last-listed-last", ids.ResourcesUpdatedSent,
		"A subscription ends the one before, and the resource that changes is the last of the list.", All(
			Offering(func(c *server.Catalogue) {
				slices.SortStableFunc(c.Resources, func(a, b *server.Resource) int {
					switch {
					case a.URI() == WatchedURI:
						return 1
					case b.URI() == WatchedURI:
						return -1
					}
					return 0
				})
			}),
			OnRequest("resources/subscribe",
				func(r *server.Request) { lastSubscription(r.Session).Store(Member(r.Params, "uri")) }),
			droppingUpdates(func(s *server.Session, uri string) bool { return uri != lastSubscription(s).Load() }),
		)).Seen(InSequence),
	fault("resources.only-last-beside-clock", ids.ResourcesUpdatedSent,
		"A subscription ends the one before, and another resource changes by itself all the time.", All(Ticking,
			OnRequest("resources/subscribe",
				func(r *server.Request) { lastSubscription(r.Session).Store(Member(r.Params, "uri")) }),
			droppingUpdates(func(s *server.Session, uri string) bool {
				return uri != ClockURI && uri != lastSubscription(s).Load()
			}),
		)).Seen(InSequence),
	fault("http.progress-of-same-token", ids.ProgressValueIncreases,
		"The progress for a token goes to the session that has used it last.", progressByToken).Seen(BySession),
	fault("http.unsubscribes-all-sessions", ids.ResourcesUpdatedSent,
		"When a client unsubscribes from a resource, the subscriptions of others to it end, too.",
		All(SharedResource, Wrapping("resources/unsubscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				own := r.Session
				for _, s := range Others(own) {
					r.Session = s
					_, _ = next(ctx, r)
				}
				r.Session = own
				return next(ctx, r)
			}))).Seen(BySession),
	fault("http.subscriber-of-last", ids.ResourcesUpdatedSent,
		"Only the client that subscribed to a resource last is told that it has changed.", func(o *server.Options) {
			SharedResource(o)
			var last sync.Map
			OnRequest("resources/subscribe",
				func(r *server.Request) { last.Store(Member(r.Params, "uri"), r.Session) })(o)
			Withholding("notifications/resources/updated", func(out *server.Outgoing) bool {
				if s, ok := last.Load(out.Params()["uri"]); ok && s != out.Session {
					return true
				}
				return false
			})(o)
		}).Seen(BySession),
	fault("http.subscribers-end-together", ids.ResourcesUpdatedSent,
		"When a session ends, nobody is told any more that the resources have changed to which it had subscribed.",
		func(o *server.Options) {
			var lost sync.Map
			OnRequest("resources/subscribe", func(r *server.Request) {
				uri := Member(r.Params, "uri")
				lost.Delete(uri)
				context.AfterFunc(r.Session.Context(), func() { lost.Store(uri, true) })
			})(o)
			Withholding("notifications/resources/updated", func(out *server.Outgoing) bool {
				if _, ended := lost.Load(out.Params()["uri"]); ended {
					return true
				}
				return false
			})(o)
		}).Seen(BySession),
	fault("http.update-told-to-one", ids.ResourcesUpdatedSent,
		"Clients that have subscribed to a resource are told of a change only if they make it.",
		All(SharedResource, Withholding("notifications/resources/updated", func(out *server.Outgoing) bool {
			return !slices.ContainsFunc(out.Session.Running(), calling("update_resource"))
		}))).Seen(BySession),
	fault("http.cursors-of-the-last", ids.PaginationServerStableCursors,
		"When a client reads a list from its beginning, the cursors of all others are refused.",
		func(o *server.Options) {
			var last sync.Map
			Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if cursor, there := r.Params["cursor"].(string); !there {
					last.Store(r.Method, r.Session)
				} else if s, _ := last.Load(r.Method); s != r.Session && len(cursor) > 30 {
					return nil, &wire.Error{Code: server.InvalidParams, Message: "Unknown cursor"}
				}
				return next(ctx, r)
			})(o)
		}).Seen(BySession),
	fault("http.change-told-to-one", ids.ToolsListChangedSent,
		"When a call changes the tools of all clients, only the one that made it is told.",
		SharedTools(func(*server.Session) bool { return false })).Seen(BySession),
	fault("http.delete-ends-all", ids.HTTPServerSessionIsolation, "A DELETE ends all sessions.",
		func(o *server.Options) {
			var ended sync.Map
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if _, gone := ended.Load(IDOf(r)); gone && IDOf(r) != "" {
					http.Error(w, "no such session", http.StatusNotFound)
					return
				}
				next.ServeHTTP(w, r)
			})(o)
			Replying(server.DeletedSession, func(r *server.Reply) {
				for _, s := range Others(r.Session) {
					ended.Store(s.ID, true)
				}
			})(o)
		}).Seen(BySession),
	fault("http.initialize-once", ids.HTTPServerInitializeWithoutSession,
		"Only the first initialize is served, even when its session has ended.", func(o *server.Options) {
			var served atomic.Bool
			All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
				return Posted(r).Method == "initialize" && Posted(r).Kind == wire.Request &&
					!served.CompareAndSwap(false, true)
			}), Peeking())(o)
		}).Seen(BySession),
	fault("http.notices-to-the-last", ids.ResourcesUpdatedSent,
		"Messages outside of requests go to the client that has connected last.", func(o *server.Options) {
			var last atomic.Pointer[server.Session]
			Ready(func(s *server.Session) { last.Store(s) })(o)
			WithholdingAny(func(out *server.Outgoing) bool {
				if s := last.Load(); s != nil && s != out.Session && out.To == nil && out.Answers == nil &&
					out.Kind == wire.Notification {
					moved := out.Clone()
					moved.Session = s
					s.Send(moved)
					return true
				}
				return false
			})(o)
		}).Seen(BySession).
		Also(ids.ResourcesUpdatedOnlySubscribed, ids.ToolsListChangedSent, ids.ResourcesListChangedSent,
			ids.PromptsListChangedSent),
	fault("http.hang-up-ends-others", ids.BaseResponsePresent,
		"When the connection of a call breaks, no call of its session that is under way is answered.",
		All(stoppable(server.NoAnswer, nil), leftTogether)).Seen(AtOnce).
		Also(ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("http.get-second-silent", ids.ToolsListChangedSent,
		"Nothing comes on a listening stream that was opened after the first one of the session had been closed.",
		func(o *server.Options) {
			var begun, ended sync.Map
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if id := IDOf(r); r.Method == http.MethodGet && id != "" {
					if _, again := begun.LoadOrStore(id, true); !again {
						defer ended.Store(id, true)
					}
				}
				next.ServeHTTP(w, r)
			})(o)
			WithholdingAny(func(out *server.Outgoing) bool {
				return Knows(&ended, out.Session.ID) && out.To == nil && out.Answers == nil
			})(o)
		}).Seen(InSequence).Also(ids.ResourcesListChangedSent, ids.PromptsListChangedSent),
	fault("http.second-get-takes-over", ids.ToolsListChangedSent,
		"Once a second listening stream was opened and closed, nothing comes on the first.", func(o *server.Options) {
			streams := new(listening)
			streams.counting()(o)
			var second sync.Map
			Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodGet && IDOf(r) != "" && streams.of(IDOf(r)).Load() > 0 {
					second.Store(IDOf(r), true)
				}
				next.ServeHTTP(w, r)
			})(o)
			WithholdingAny(func(out *server.Outgoing) bool {
				if _, lost := second.Load(out.Session.ID); lost && out.To == nil && out.Answers == nil &&
					streams.of(out.Session.ID).Load() < 2 {
					return true
				}
				return false
			})(o)
		}).Seen(AtOnce).Also(ids.ResourcesListChangedSent, ids.PromptsListChangedSent, ids.ResourcesUpdatedSent),
}
