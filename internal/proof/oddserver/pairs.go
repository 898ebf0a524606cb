package oddserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// inTurn serves calls of tools one after the other, those of one key.
func inTurn(key func(r *server.Request) any) apply {
	return func(o *server.Options) {
		var turns sync.Map
		Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			r.Detach()
			v, _ := turns.LoadOrStore(key(r), make(chan struct{}, 1))
			turn := v.(chan struct{})
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
				return next(ctx, r)
			case <-ctx.Done():
				return server.NoAnswer, nil
			}
		})(o)
	}
}

// fewSessions bounds how many sessions there are at a time.
func fewSessions(most int, status int) apply {
	return func(o *server.Options) {
		var open sync.Map
		All(RefusingHTTP(status, func(r *http.Request) bool {
			if Posted(r).Kind != wire.Request || Posted(r).Method != "initialize" || IDOf(r) != "" {
				return false
			}
			n := 0
			open.Range(func(any, any) bool { n++; return true })
			return n >= most
		}), Peeking(), Ready(func(s *server.Session) { open.Store(s.ID, true) }),
			Replying(server.DeletedSession, func(r *server.Reply) { open.Delete(r.Session.ID) }))(o)
	}
}

// sessionsInTurn has initialize wait until no other session is open.
func sessionsInTurn(o *server.Options) {
	turn := make(chan struct{}, 1)
	All(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if Posted(r).Kind != wire.Request || Posted(r).Method != "initialize" || IDOf(r) != "" {
			next.ServeHTTP(w, r)
			return
		}
		select {
		case turn <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		next.ServeHTTP(w, r)
		if w.Header().Get(SessionHeader) == "" {
			<-turn // it was refused
		}
	}), Peeking(), Replying(server.DeletedSession, func(*server.Reply) { <-turn }))(o)
}

// oneSession ends a session when another one begins.
func oneSession(o *server.Options) {
	var ended sync.Map
	Ready(func(s *server.Session) {
		for _, other := range Others(s) {
			ended.Store(other.ID, true)
		}
	})(o)
	RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
		_, gone := ended.Load(IDOf(r))
		return gone && IDOf(r) != ""
	})(o)
}

// displacedListening ends the listening stream of a session when it opens another one.
func displacedListening(o *server.Options) {
	var open sync.Map
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id := IDOf(r)
		if r.Method != http.MethodGet || id == "" || r.Header.Get("Last-Event-Id") != "" {
			next.ServeHTTP(w, r)
			return
		}
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		if before, there := open.Swap(id, stop); there {
			before.(context.CancelFunc)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})(o)
}

// listeningSequence replays the events of all listening streams of a session as if they were of one.
var listeningSequence = Replaying(func(last string, proposal, kept []*server.Event) []*server.Event {
	i := slices.IndexFunc(kept, func(e *server.Event) bool {
		return e.ID == last && strings.HasPrefix(e.Stream, "get:")
	})
	if i < 0 {
		return proposal
	}
	return slices.DeleteFunc(slices.Clone(kept[i+1:]),
		func(e *server.Event) bool { return !strings.HasPrefix(e.Stream, "get:") })
})

// greeted sends a notification soon after a listening stream has begun.
func greeted(o *server.Options) {
	var open sync.Map
	Ready(func(s *server.Session) { open.Store(s.ID, s) })(o)
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if s, ok := open.Load(IDOf(r)); ok && r.Method == http.MethodGet {
			time.AfterFunc(5*time.Millisecond, func() {
				s.(*server.Session).Notify("notifications/prompts/list_changed", nil)
			})
		}
		next.ServeHTTP(w, r)
	})(o)
	EachEvent(func(e *server.Event) {
		e.Retry = "100" // who comes back comes after the notification
	})(o)
}

// pairOddities are legal ways to deal with two of something.
var pairOddities = []Oddity{
	odd("resources.shared", "All sessions share a resource that changes, and each that has subscribed to it is told.",
		"Whose change it was is not said.", "server/resources#subscriptions", SharedResource).Only(OverBothHTTP).
		Replaces("resources"),
	odd("resources.subscribed-twice-refused", "A second subscription to the same resource is refused.",
		"A request can be refused for reasons of its own.", "server/resources#subscriptions",
		Refusing("resources/subscribe", server.InvalidRequest, func(r *server.Request) bool {
			return slices.Contains(r.Session.Subscriptions(), Member(r.Params, "uri"))
		})),
	odd("tools.shared", "All sessions share the list of tools, and each is told when it changes.",
		"Servers that declared listChanged should tell; whose change it was is not said.",
		"server/tools#list-changed-notification", SharedTools(func(*server.Session) bool { return true })).
		Only(OverBothHTTP).Replaces("tools"),
	odd("tools.calls-in-turn", "The calls of a session are served one after the other.",
		"No sentence obliges a server to serve calls at the same time.", "server/tools#calling-tools",
		inTurn(func(r *server.Request) any { return r.Session })).Open("*").Replaces("calls"),
	odd("tools.calls-of-all-in-turn", "The calls of all sessions are served one after the other.",
		"No sentence obliges a server to serve calls at the same time.", "server/tools#calling-tools",
		inTurn(func(*server.Request) any { return nil })).Only(OverBothHTTP).Open("*").Replaces("calls"),
	odd("tools.one-call", "A call is refused while another one of the session is served.",
		"Servers MUST rate limit tool invocations.", "server/tools#security-considerations",
		Beside(func(ctx context.Context, r *server.Request, n int64, next server.Handler) (any, *wire.Error) {
			if n > 1 {
				return nil, &wire.Error{Code: -32000, Message: "Another call is being served"}
			}
			return next(ctx, r)
		})).Open("*").Replaces("calls"),
	odd("http.few-sessions-503", "With three sessions open, initialize is refused with 503.",
		"Being busy is HTTP's own affair (RFC 9110, section 15.6.4).", "basic/transports#streamable-http",
		fewSessions(3, http.StatusServiceUnavailable)).Open("*").Replaces("sessions"),
	odd("http.few-sessions-400", "With one session open, initialize is refused with 400 until that session has ended.",
		"A server can handle several connections, and need not.", "basic/transports#streamable-http",
		fewSessions(1, http.StatusBadRequest)).Open("*").Replaces("sessions"),
	odd("http.sessions-in-turn", "While one session is open, initialize waits for its end.",
		"A server can handle several connections, and need not; nothing says how soon an initialize is answered.",
		"basic/transports#streamable-http", sessionsInTurn).Open("*").Replaces("sessions"),
	odd("http.one-session", "A session ends when another one begins.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management", oneSession).
		Open("*").Replaces("sessions"),
	odd("http.second-get-displaces", "A second listening stream of a session ends the first.",
		"The server MAY close the SSE stream at any time.", "basic/transports#listening-for-messages-from-the-server",
		displacedListening).Open("*").Replaces("listening"),
	odd("http.listening-in-one-sequence",
		"A session has one sequence of events for listening: a GET goes on with it and ends the one before, and "+
			"Last-Event-ID brings all that came after, on whichever. Each begins with an event.",
		"Messages during the break of a stream would have been sent on it.",
		"basic/transports#resumability-and-redelivery", All(displacedListening, listeningSequence, greeted)).Open("*").
		Replaces("event ids"),
	odd("logging.one-level", "The log level that a client sets holds for all clients.",
		"Clients may configure the minimum log level, of which the page names no session.",
		"server/utilities/logging#setting-log-level", sharedLevel).Only(OverBothHTTP).Replaces("log level"),
	odd("http.sessions-idle", "A session that is idle for 300 milliseconds ends, and is answered with 404.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management",
		func(o *server.Options) {
			var used sync.Map // by session id: when
			RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
				before, known := used.Load(IDOf(r))
				over := known && IDOf(r) != "" && time.Since(before.(time.Time)) > 300*time.Millisecond
				if !over {
					used.Store(IDOf(r), time.Now())
				}
				return over
			})(o)
		}).Open("*").Replaces("sessions"),
	odd("http.sessions-of-the-last-six", "When a seventh session begins, the oldest one ends.",
		"The server MAY terminate the session at any time.", "basic/transports#session-management", EndsOthers(OnBegin,
			func(others []*server.Session) []*server.Session { return others[:max(0, len(others)-5)] })).Open("*").
		Replaces("sessions"),
}

// sharedLevel keeps one log level for all sessions.
func sharedLevel(o *server.Options) {
	Wrapping("logging/setLevel", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if problem == nil {
			for _, s := range Others(r.Session) {
				s.SetLevel(Member(r.Params, "level"))
			}
		}
		return result, problem
	})(o)
}
