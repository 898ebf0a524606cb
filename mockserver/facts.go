package mockserver

import (
	"context"
	"slices"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// keptFact is a fact that a session keeps, and how a server forgets it.
type keptFact struct {
	id, requirement, forgotten string
	collateral                 []string
	// forgets makes a server forget the fact in the sessions for which the function is called that it returns.
	forgets func(o *server.Options) (forget func(s *server.Session))
}

// unrelated is something that has nothing to do with a fact.
type unrelated struct {
	id, summary string
	// but names the facts that it has to do with after all, and those that are gone before a run can know them: each
	// session reads its lists before it calls a tool, and a call may change a list.
	but []string
	// does calls a function each time that a client has done it.
	does func(then func(s *server.Session)) apply
}

// factKey is that of the flag with which a session forgets a fact.
type factKey string

func forgotten(s *server.Session, fact string) *atomic.Bool {
	return Kept[atomic.Bool](s, factKey(fact))
}

// flagging is a way to forget a fact: apply looks at the flag that it sets.
func flagging(fact string, change apply) func(o *server.Options) func(s *server.Session) {
	return func(o *server.Options) func(s *server.Session) {
		change(o)
		return func(s *server.Session) { forgotten(s, fact).Store(true) }
	}
}

var keptFacts = []keptFact{
	{
		id: "level", requirement: ids.LoggingFilterAllAbove, forgotten: "the log level is warning again",
		collateral: []string{ids.LoggingFilterNoneBelow, ids.LoggingSetLevelReplaces},
		forgets: func(*server.Options) func(s *server.Session) {
			return func(s *server.Session) { s.SetLevel("warning") }
		},
	},
	{
		id: "subscription", requirement: ids.ResourcesUpdatedSent,
		forgotten:  "the subscription to a resource brings no more updates",
		collateral: []string{ids.HTTPServerGetUnrelated},
		forgets: flagging("subscription", All(
			Wrapping("resources/subscribe", func(
				ctx context.Context, r *server.Request, next server.Handler,
			) (any, *wire.Error) {
				if r.Params["uri"] == WatchedURI {
					forgotten(r.Session, "subscription").Store(false)
				}
				return next(ctx, r)
			}),
			Withholding("notifications/resources/updated", func(out *server.Outgoing) bool {
				return forgotten(out.Session, "subscription").Load()
			}),
		)),
	},
	{
		id: "roots", requirement: ids.RootsListChangedRefetch,
		forgotten: "a tool shows the roots that it has shown before",
		forgets: flagging("roots", WrappingTool("test_roots", func(
			ctx context.Context, r *server.Request, next server.Handler,
		) (any, *wire.Error) {
			shown := atomically[any](r.Session, "roots shown")
			if before := shown.Load(); before != nil && forgotten(r.Session, "roots").Load() {
				return *before, nil
			}
			result, problem := next(ctx, r)
			if problem == nil {
				shown.Store(&result)
			}
			return result, problem
		})),
	},
	{
		id: "offer", requirement: ids.ResourcesListChangedSent,
		forgotten: "the list of resources lacks the first one of each page, which nothing announces",
		forgets: flagging("offer", Wrapping("resources/list",
			server.Edit(func(r *server.Request, result map[string]any) {
				if all, _ := result["resources"].(list); len(all) > 1 && forgotten(r.Session, "offer").Load() {
					result["resources"] = all[1:]
				}
			}))),
	},
	{
		id: "call", requirement: ids.BaseResponsePresent, forgotten: "the next call gets no answer",
		forgets: flagging("call", Wrapping("tools/call", func(
			ctx context.Context, r *server.Request, next server.Handler,
		) (any, *wire.Error) {
			if forgotten(r.Session, "call").Swap(false) {
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})),
	},
}

// afterRequest does something after the request of a method, if it fits.
func afterRequest(method string, fits func(r *server.Request) bool) func(then func(s *server.Session)) apply {
	return func(then func(s *server.Session)) apply {
		return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			result, problem := next(ctx, r)
			if fits(r) {
				then(r.Session)
			}
			return result, problem
		})
	}
}

// afterNotification does something after a notification, if it fits.
func afterNotification(fits func(s *server.Session, m *wire.Message) bool) func(then func(s *server.Session)) apply {
	return func(then func(s *server.Session)) apply {
		return Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification && fits(s, m) {
				then(s)
			}
		})
	}
}

// aboutOthers fits requests about anything but the resource that changes.
func aboutOthers(r *server.Request) bool { return r.Params["uri"] != WatchedURI }

var unrelatedActions = []unrelated{
	{id: "ping", summary: "a ping", does: afterRequest("ping", Always)},
	{id: "tools", summary: "the list of tools was read", does: afterRequest("tools/list", Always),
		but: []string{"offer", "call"}},
	{id: "prompts", summary: "the list of prompts was read", does: afterRequest("prompts/list", Always),
		but: []string{"offer", "call"}},
	{
		id: "resources", summary: "the list of resources was read",
		does: afterRequest("resources/list", Always), but: []string{"offer", "call"},
	},
	{id: "templates", summary: "the list of templates was read", does: afterRequest("resources/templates/list", Always),
		but: []string{"offer", "call"}},
	{id: "prompt", summary: "a prompt was taken", does: afterRequest("prompts/get", Always)},
	{id: "read", summary: "another resource was read", does: afterRequest("resources/read", aboutOthers)},
	{id: "completion", summary: "a completion", does: afterRequest("completion/complete", Always)},
	{
		id: "other-subscribed", summary: "a subscription to another resource",
		does: afterRequest("resources/subscribe", aboutOthers),
	},
	{
		id: "other-unsubscribed", summary: "the end of a subscription to another resource",
		does: afterRequest("resources/unsubscribe", aboutOthers),
	},
	{
		id: "level-set", summary: "the log level was set",
		does: afterRequest("logging/setLevel", Always), but: []string{"level"},
	},
	{
		id: "logged", summary: "a call that logs",
		does: afterRequest("tools/call", func(r *server.Request) bool { return r.Params["name"] == "log_levels" }),
	},
	{id: "called", summary: "a call of a tool", does: afterRequest("tools/call", Always),
		but: []string{"offer", "call"}},
	{id: "unknown-notified", summary: "an unknown notification",
		does: afterNotification(func(_ *server.Session, m *wire.Message) bool {
			return m.Method == "notifications/mcpconform/no-such"
		})},
	{id: "malformed-notified", summary: "a notification of progress without a token",
		does: afterNotification(func(_ *server.Session, m *wire.Message) bool {
			return m.Method == "notifications/progress" && wire.At(m.Params, "progressToken") == nil
		})},
	{id: "cancelled", summary: "the cancellation of a request that is being served",
		does: afterNotification(func(s *server.Session, m *wire.Message) bool {
			return m.Method == "notifications/cancelled" && under(s, m)
		}), but: []string{"offer"}},
	{id: "late-cancelled", summary: "a late cancellation",
		does: afterNotification(func(s *server.Session, m *wire.Message) bool {
			return m.Method == "notifications/cancelled" && !under(s, m)
		})},
}

// under reports whether the request that a cancellation names is being served.
func under(s *server.Session, m *wire.Message) bool {
	return slices.ContainsFunc(s.Running(), func(r *server.Request) bool { return r.ID.Key() == named(m) })
}

// forgetting returns the fault of a server that forgets a fact.
func (k keptFact) forgetting(u unrelated) Fault {
	return fault("facts."+k.id+"-forgotten-after-"+u.id, k.requirement, "After "+u.summary+", "+k.forgotten+".",
		func(o *server.Options) { u.does(k.forgets(o))(o) }).Seen(InSequence).Also(k.collateral...)
}

// Forgotten returns a fault for each fact that a session keeps and each action that has nothing to do with it.
func Forgotten() (all []Fault) {
	for _, k := range keptFacts {
		for _, u := range unrelatedActions {
			if !slices.Contains(u.but, k.id) {
				all = append(all, k.forgetting(u))
			}
		}
	}
	return all
}

// factFaults are those of [Forgotten] that stand for all, and what is wrong when something is done a second time
// in a session.
var factFaults = slices.Concat(
	slices.DeleteFunc(Forgotten(), func(f Fault) bool {
		return !slices.Contains([]string{"facts.level-forgotten-after-tools", "facts.level-forgotten-after-logged",
			"facts.subscription-forgotten-after-prompts", "facts.subscription-forgotten-after-other-unsubscribed",
			"facts.roots-forgotten-after-read", "facts.offer-forgotten-after-completion",
			"facts.call-forgotten-after-late-cancelled"}, f.ID)
	}),
	[]Fault{
		fault("facts.subscription-counted", ids.ResourcesUpdatedEndsWithUnsubscribe,
			"A subscription that was asked for twice has to be ended twice.", All(
				OnRequest("resources/subscribe", func(r *server.Request) { subscribedTo(r).Add(1) }),
				Wrapping("resources/unsubscribe", func(
					ctx context.Context, r *server.Request, next server.Handler,
				) (any, *wire.Error) {
					if subscribedTo(r).Add(-1) > 0 {
						return object{}, nil
					}
					subscribedTo(r).Store(0)
					return next(ctx, r)
				}),
			)).Seen(InSequence),
	},
)

// subscribedTo counts the subscriptions to the resource that a request names.
func subscribedTo(r *server.Request) *atomic.Int64 {
	return r.Session.Value(subscribedKey(Member(r.Params, "uri")),
		func() any { return new(atomic.Int64) }).(*atomic.Int64)
}

type subscribedKey string
