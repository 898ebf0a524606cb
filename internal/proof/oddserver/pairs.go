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
func listeningSequence(o *server.Options) {
	o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal, kept []*server.Event) []*server.Event {
		i := slices.IndexFunc(kept, func(e *server.Event) bool {
			return e.ID == last && strings.HasPrefix(e.Stream, "get:")
		})
		if i < 0 {
			return proposal
		}
		return slices.DeleteFunc(slices.Clone(kept[i+1:]),
			func(e *server.Event) bool { return !strings.HasPrefix(e.Stream, "get:") })
	}
}

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
	Streaming(func(e *server.Event) []*server.Event {
		e.Retry = "100" // who comes back comes after the notification
		return []*server.Event{e}
	})(o)
}

// pairOddities are legal ways to deal with two of something.
var pairOddities = []Oddity{
	{ID: "resources.shared", Transports: OverBothHTTP,
		Summary: "All sessions share a resource that changes, and each that has subscribed to it is told.",
		Why:     "Whose change it was is not said.", Source: at("server/resources#subscriptions"),
		Changes: "resources", Apply: SharedResource},
	{ID: "resources.subscribed-twice-refused", Summary: "A second subscription to the same resource is refused.",
		Why: "A request can be refused for reasons of its own.", Source: at("server/resources#subscriptions"),
		Apply: Refusing("resources/subscribe", server.InvalidRequest, func(r *server.Request) bool {
			return slices.Contains(r.Session.Subscriptions(), Member(r.Params, "uri"))
		})},
	{ID: "tools.shared", Transports: OverBothHTTP,
		Summary: "All sessions share the list of tools, and each is told when it changes.",
		Why:     "Servers that declared listChanged should tell; whose change it was is not said.",
		Source:  at("server/tools#list-changed-notification"), Changes: "tools",
		Apply: SharedTools(func(*server.Session) bool { return true })},
	{ID: "tools.calls-in-turn", Summary: "The calls of a session are served one after the other.",
		Why:    "No sentence obliges a server to serve calls at the same time.",
		Source: at("server/tools#calling-tools"), Untried: []string{"*"}, Changes: "calls",
		Apply: inTurn(func(r *server.Request) any { return r.Session })},
	{ID: "tools.calls-of-all-in-turn", Transports: OverBothHTTP,
		Summary: "The calls of all sessions are served one after the other.",
		Why:     "No sentence obliges a server to serve calls at the same time.",
		Source:  at("server/tools#calling-tools"), Untried: []string{"*"}, Changes: "calls",
		Apply: inTurn(func(*server.Request) any { return nil })},
	{ID: "tools.one-call", Summary: "A call is refused while another one of the session is served.",
		Why: "Servers MUST rate limit tool invocations.", Source: at("server/tools#security-considerations"),
		Untried: []string{"*"}, Changes: "calls",
		Apply: Beside(func(ctx context.Context, r *server.Request, n int64, next server.Handler) (any, *wire.Error) {
			if n > 1 {
				return nil, &wire.Error{Code: -32000, Message: "Another call is being served"}
			}
			return next(ctx, r)
		})},
	{ID: "http.few-sessions-503", Transports: OverHTTP,
		Summary: "With three sessions open, initialize is refused with 503.",
		Why:     "Being busy is HTTP's own affair (RFC 9110, section 15.6.4).",
		Source:  at("basic/transports#streamable-http"), Untried: []string{"*"}, Changes: "sessions",
		Apply: fewSessions(3, http.StatusServiceUnavailable)},
	{ID: "http.few-sessions-400", Transports: OverHTTP,
		Summary: "With one session open, initialize is refused with 400 until that session has ended.",
		Why:     "A server can handle several connections, and need not.",
		Source:  at("basic/transports#streamable-http"), Untried: []string{"*"}, Changes: "sessions",
		Apply: fewSessions(1, http.StatusBadRequest)},
	{ID: "http.sessions-in-turn", Transports: OverHTTP,
		Summary: "While one session is open, initialize waits for its end.",
		Why: "A server can handle several connections, and need not; nothing says how soon an initialize " +
			"is answered.",
		Source: at("basic/transports#streamable-http"), Untried: []string{"*"}, Changes: "sessions",
		Apply: sessionsInTurn},
	{ID: "http.one-session", Transports: OverHTTP, Summary: "A session ends when another one begins.",
		Why:    "The server MAY terminate the session at any time.",
		Source: at("basic/transports#session-management"), Untried: []string{"*"}, Changes: "sessions",
		Apply: oneSession},
	{ID: "http.second-get-displaces", Transports: OverHTTP,
		Summary: "A second listening stream of a session ends the first.",
		Why:     "The server MAY close the SSE stream at any time.",
		Source:  at("basic/transports#listening-for-messages-from-the-server"), Untried: []string{"*"},
		Changes: "listening", Apply: displacedListening},
	{ID: "http.listening-in-one-sequence", Transports: OverHTTP,
		Summary: "A session has one sequence of events for listening: a GET goes on with it and ends the one " +
			"before, and Last-Event-ID brings all that came after, on whichever. Each begins with an event.",
		Why:    "Messages during the break of a stream would have been sent on it.",
		Source: at("basic/transports#resumability-and-redelivery"), Untried: []string{"*"}, Changes: "event ids",
		Apply: All(displacedListening, listeningSequence, greeted)},
	{ID: "logging.one-level", Transports: OverBothHTTP,
		Summary: "The log level that a client sets holds for all clients.",
		Why:     "Clients may configure the minimum log level, of which the page names no session.",
		Source:  at("server/utilities/logging#setting-log-level"), Changes: "log level", Apply: sharedLevel},
	{ID: "http.sessions-idle", Transports: OverHTTP,
		Summary: "A session that is idle for 300 milliseconds ends, and is answered with 404.",
		Why:     "The server MAY terminate the session at any time.",
		Source:  at("basic/transports#session-management"), Untried: []string{"*"}, Changes: "sessions",
		Apply: func(o *server.Options) {
			var used sync.Map // by session id: when
			RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
				before, known := used.Load(IDOf(r))
				over := known && IDOf(r) != "" && time.Since(before.(time.Time)) > 300*time.Millisecond
				if !over {
					used.Store(IDOf(r), time.Now())
				}
				return over
			})(o)
		}},
	{ID: "http.sessions-of-the-last-six", Transports: OverHTTP,
		Summary: "When a seventh session begins, the oldest one ends.",
		Why:     "The server MAY terminate the session at any time.",
		Source:  at("basic/transports#session-management"), Untried: []string{"*"}, Changes: "sessions",
		Apply: EndsOthers(OnBegin, func(others []*server.Session) []*server.Session {
			return others[:max(0, len(others)-5)]
		})},
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
