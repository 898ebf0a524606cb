package mockserver

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// The faults in this file do to other sessions what belongs to the one that acts.

func theNewest(others []*server.Session) []*server.Session { return others[max(0, len(others)-1):] }
func theOldest(others []*server.Session) []*server.Session { return others[:min(1, len(others))] }

// onMessage fits messages of a method, once they are served.
func onMessage(method string) Trigger {
	return func(do func(s *server.Session)) apply {
		return Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Method == method {
				do(s)
			}
		})
	}
}

// onUnknown fits requests of a method that the server does not know.
func onUnknown(do func(s *server.Session)) apply {
	return Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if problem != nil && problem.Code == server.MethodNotFound {
			do(r.Session)
		}
		return result, problem
	})
}

func onBadMessage(do func(s *server.Session)) apply {
	return All(aware(func(s *server.Session, w http.ResponseWriter, r *http.Request, next func()) {
		next()
		if r.Method == http.MethodPost && Posted(r).Kind == wire.Invalid {
			do(s)
		}
	}), Peeking())
}

// onHangUp fits listening streams that have ended. A resumed one has a Last-Event-ID.
func onHangUp(resumed bool) Trigger {
	return func(do func(s *server.Session)) apply {
		return aware(func(s *server.Session, w http.ResponseWriter, r *http.Request, next func()) {
			next()
			if r.Method == http.MethodGet && (r.Header.Get(LastEventHeader) != "") == resumed {
				do(s)
			}
		})
	}
}

func onEnd(do func(s *server.Session)) apply {
	return Ready(func(s *server.Session) { context.AfterFunc(s.Context(), func() { do(s) }) })
}

// stopsCalls leaves the calls of other sessions that are under way without answer.
func stopsCalls(on Trigger, which Pick) apply {
	return All(stoppable(server.NoAnswer, nil), ToOthers(on, which, func(s *server.Session) {
		u := underWayOf(s)
		u.Lock()
		defer u.Unlock()
		for _, stop := range u.stops {
			stop()
		}
	}))
}

// endsSubscriptions tells other sessions no more of changes.
func endsSubscriptions(on Trigger, which Pick) apply {
	flag := func(s *server.Session) *atomic.Bool {
		return Kept[atomic.Bool](s, "list unsubscribed")
	}
	return All(
		OnRequest("resources/subscribe", func(r *server.Request) {
			flag(r.Session).Store(false)
		}),
		ToOthers(on, which, func(s *server.Session) { flag(s).Store(true) }),
		droppingUpdates(func(s *server.Session, _ string) bool { return flag(s).Load() }),
	)
}

const rootsChanged = "notifications/roots/list_changed"

// diverted sends messages of a method to other sessions.
func diverted(method string, which Pick) apply {
	return Withholding(method, func(out *server.Outgoing) bool {
		if out.To == nil {
			return false
		}
		for _, other := range which(Others(out.Session)) {
			moved := out.Clone()
			moved.Session, moved.To = other, nil
			other.Send(moved)
		}
		return true
	})
}

// asksElsewhere has a tool ask another client in place of the one that calls it.
func asksElsewhere(tool, capability, method string, params object, which Pick) apply {
	ask := func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		able := slices.DeleteFunc(Others(r.Session), func(s *server.Session) bool { return !s.ClientHas(capability) })
		asked := which(able)
		if len(asked) == 0 {
			return next(ctx, r)
		}
		r.Detach()
		result, err := asked[0].Call(ctx, method, Copied(params))
		if err != nil {
			return object{"content": TextOf(err.Error()), "isError": true}, nil
		}
		answer, _ := result.(object)
		return object{"content": TextOf(Text(answer))}, nil
	}
	return WrappingTool(tool, ask)
}

var bystanderFaults = func() (faults []Fault) {
	unanswered := []string{ids.BaseResponsePresent, ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose}
	type kind struct {
		name, summary string
		requirement   string
		do            func(on Trigger, which Pick) apply
		collateral    []string
	}
	const isolation = ids.HTTPServerSessionIsolation
	ends := kind{"ends", "session of another client ends", isolation, EndsOthers, nil}
	stops := kind{"stops-calls-of", "session gets no answer to its calls", isolation, stopsCalls, unanswered}
	levels := kind{
		"raises-level-of", "session gets the log level error", ids.LoggingFilterAllAbove,
		func(on Trigger, which Pick) apply {
			return ToOthers(on, which, func(s *server.Session) { s.SetLevel("error") })
		},
		[]string{ids.LoggingSetLevelReplaces, ids.LoggingFilterNoneBelow},
	}
	updates := kind{"unsubscribes", "session is told of no changes", ids.ResourcesUpdatedSent, endsSubscriptions, nil}
	picks := map[string]Pick{"newest": theNewest, "oldest": theOldest,
		"others": func(others []*server.Session) []*server.Session { return others }}
	for _, row := range []struct {
		on, summary string
		trigger     Trigger
		which       string
		kinds       []kind
	}{
		{"delete", "a session ends", onEnd, "newest", []kind{ends, stops}},
		{"delete", "a session ends", onEnd, "oldest", []kind{ends, levels, updates}},
		{"bad-message", "a message is not JSON", onBadMessage, "others", []kind{ends, stops}},
		{"unknown-method", "a request is of an unknown method", onUnknown, "newest", []kind{ends, stops}},
		{"unknown-method", "a request is of an unknown method", onUnknown, "oldest", []kind{levels}},
		{"cancel", "a request is cancelled", onMessage(Cancelled), "oldest", []kind{ends, updates}},
		{"subscribe", "a client subscribes", onMessage("resources/subscribe"), "newest", []kind{stops}},
		{"unsubscribe", "a client unsubscribes", onMessage("resources/unsubscribe"), "oldest", []kind{ends, updates}},
		{"set-level", "a log level is set", onMessage("logging/setLevel"), "others", []kind{stops}},
		{"roots", "the roots of a client change", onMessage(rootsChanged), "others", []kind{ends, stops, levels}},
		{"hang-up", "a client closes a listening stream", onHangUp(false), "oldest", []kind{ends, updates}},
		{"resume", "a stream is resumed", onHangUp(true), "newest", []kind{ends, stops}},
		{"begin", "a session begins", OnBegin, "oldest", []kind{stops, levels, updates}},
	} {
		for _, k := range row.kinds {
			faults = append(faults, fault("http."+row.on+"-"+k.name+"-"+row.which, k.requirement,
				"When "+row.summary+", the "+row.which+" "+k.summary+".",
				func(o *server.Options) { k.do(row.trigger, picks[row.which])(o) }).Seen(BySession).
				Also(k.collateral...))
		}
	}
	return faults
}()

var (
	prompted = object{
		"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Say hello."}}},
		"maxTokens": 100,
	}
	formed = object{
		"message":         "What is your name?",
		"requestedSchema": object{"type": "object", "properties": object{"username": object{"type": "string"}}},
	}
)

var divertedFaults = func() (faults []Fault) {
	picks := []struct {
		name string
		pick Pick
	}{{"newest", theNewest}, {"oldest", theOldest}}
	for _, over := range []string{"http", "sse"} {
		add := func(id, summary string, change apply, collateral ...string) {
			faults = append(faults, fault(over+"."+id, over+".server.session-isolation", summary, change).
				Seen(BySession).Also(collateral...))
		}
		for _, p := range picks {
			to := " goes to the " + p.name + " session of another client."
			add("progress-to-the-"+p.name, "The progress of a call"+to, diverted(Progressed, p.pick),
				ids.ProgressTokenActiveRequest, ids.ProgressInProgress)
			add("log-to-the-"+p.name, "What a call logs"+to, diverted("notifications/message", p.pick),
				ids.LoggingFilterAllAbove, ids.LoggingFilterNoneBelow, ids.LoggingSetLevelReplaces)
			asks := " asks the client of the " + p.name + " other session."
			add("samples-at-the-"+p.name, "A tool that needs sampling"+asks,
				asksElsewhere("test_sampling", "sampling", "sampling/createMessage", prompted, p.pick))
			add("elicits-from-the-"+p.name, "A tool that elicits"+asks,
				asksElsewhere("test_elicitation", "elicitation", "elicitation/create", formed, p.pick))
		}
	}
	return faults
}()
