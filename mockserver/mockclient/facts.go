package mockclient

import (
	"math"
	"net/http"
	"slices"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// keptFact is a fact that a client keeps in a session, and how it forgets it.
type keptFact struct {
	id, requirement, forgotten string
	transports                 []string
	collateral                 []string
	// method is that of the requests whose answers show the fact; "" if every message of the client shows it.
	method string
	// forgets changes a client that has forgotten the fact.
	forgets func(lost loss) apply
}

// unrelated is an action of a server that has nothing to do with a fact.
type unrelated struct {
	id, summary string
	// but names the facts that are gone before a run can know them, or whose loss a decision of the user may explain.
	but []string
	is  moment
	// with is a further change of the client, without which the action does not come about; it may be nil.
	with apply
}

// loss returns the last action before a position in the log after which a fact is forgotten, or nil.
type loss func(c *wire.Conversation, before int) *wire.Event

var keptFacts = []keptFact{
	{
		id: "roots", requirement: ids.RootsListChangedNotify, method: rootsList,
		forgotten: "roots/list has no more roots, which nothing announces",
		forgets: func(lost loss) apply {
			return All(unchanging, onceLost(lost, rootsList, func(id wire.ID) []outgoing {
				return []outgoing{{Raw: []byte(`{"jsonrpc":"2.0","id":` + id.String() + `,"result":{"roots":[]}}`)}}
			}))
		},
	},
	{
		id: "method", requirement: ids.RootsListAnswered, method: rootsList,
		forgotten: "roots/list is refused as an unknown method",
		forgets: func(lost loss) apply {
			return onceLost(lost, rootsList, refused(-32601, "Method not found"))
		},
	},
	{
		id: "sampling", requirement: ids.BaseResponsePresent, method: createMessage,
		forgotten: "no sampling request gets an answer",
		forgets:   func(lost loss) apply { return onceLost(lost, createMessage, unanswered) },
	},
	{
		id: "form", requirement: ids.ElicitationCapabilityHonoured, method: createForm,
		forgotten: "each form is refused as invalid",
		forgets: func(lost loss) apply {
			return onceLost(lost, createForm, refused(-32602, "Invalid params"))
		},
	},
	{
		id: "request", requirement: ids.BaseResponsePresent, method: rootsList,
		forgotten:  "the next request gets no answer",
		collateral: []string{ids.PingEitherSide, ids.BaseErrorMethodNotFound, ids.RootsListAnswered},
		forgets: func(lost loss) apply {
			return answeringAt(func(c *wire.Conversation, request *wire.Event) bool {
				action := lost(c, request.Seq)
				last := lastBefore(c, request, func(m *wire.Message) bool { return m.Kind == wire.Request })
				return action != nil && (last == nil || last.Seq <= action.Seq)
			}, unanswered)
		},
	},
	{
		id: "session", requirement: ids.HTTPClientSessionHeader, transports: OverHTTP,
		forgotten:  "messages lack Mcp-Session-Id",
		collateral: []string{ids.HTTPClientReinitializeOn404, ids.BaseResponsePresent, ids.PingEitherSide},
		forgets:    withoutField("Mcp-Session-Id"),
	},
	{
		id: "version", requirement: ids.HTTPClientVersionHeader, transports: OverHTTP,
		forgotten: "messages lack MCP-Protocol-Version",
		forgets:   withoutField("Mcp-Protocol-Version"),
	},
}

// unchanging keeps the reference client from changing its roots.
func unchanging(c *client.Standalone) { c.UserActions += " roots=" }

// onceLost replaces the answers to requests of a method once a fact is lost.
func onceLost(lost loss, method string, by func(id wire.ID) []outgoing) apply {
	return atMoment(method, func(c *wire.Conversation, request *wire.Event) bool { return lost(c, request.Seq) != nil },
		by)
}

// withoutField sends no more field of a name in the header of messages once a fact is lost.
func withoutField(name string) func(lost loss) apply {
	return func(lost loss) apply {
		return SendingOver(func(conn transport.Conn, _ *wire.Message, out outgoing) []outgoing {
			if c := conn.Log().Conversation(); lost(c, math.MaxInt) != nil {
				out.Header = http.Header{name: nil}
			}
			return []outgoing{out}
		})
	}
}

// on is when the server sends a request or notification of a method.
func on(method string) moment {
	return func(_ *wire.Conversation, e *wire.Event) bool { return Calls(method)(e.Msg) }
}

// servedByUser are the facts whose loss the user may explain if other requests have asked him before.
var servedByUser = []string{"sampling", "form"}

var unrelatedActions = []unrelated{
	{id: "ping", summary: "a ping", is: on("ping"), but: []string{"method", "sampling", "form", "request"}},
	{id: "refused", summary: "a request of an unknown method", is: on(unknownRequest)},
	{id: "roots", summary: "roots/list", is: on(rootsList),
		but: []string{"roots", "method", "sampling", "form", "request"}},
	{id: "sampling", summary: "a sampling request", is: on(createMessage), but: servedByUser},
	{id: "form", summary: "a form", is: on(createForm), but: servedByUser},
	{id: "unknown-notified", summary: "an unknown notification", is: on("notifications/com.example/unknown")},
	{id: "malformed-notified", summary: "a notification of progress without a token",
		is: func(c *wire.Conversation, e *wire.Event) bool {
			return on("notifications/progress")(c, e) && wire.At(e.Msg.Params, "progressToken") == nil
		}},
	{id: "tools-changed", summary: "the news of changed tools", is: on("notifications/tools/list_changed")},
	{id: "prompts-changed", summary: "the news of changed prompts", is: on("notifications/prompts/list_changed")},
	{id: "resources-changed", summary: "the news of changed resources", is: on("notifications/resources/list_changed")},
	{id: "logged", summary: "a log message", is: on("notifications/message")},
	{id: "late-progress", summary: "the progress of a request that is over",
		is: func(c *wire.Conversation, e *wire.Event) bool {
			return on("notifications/progress")(c, e) && wire.At(e.Msg.Params, "progressToken") != nil
		}},
	{id: "unknown-cancelled", summary: "the cancellation of a request that was never made",
		is: func(c *wire.Conversation, e *wire.Event) bool {
			return on(cancelledNews)(c, e) && c.Newest(wire.Server, cancelsID(e)) == nil
		}},
	{id: "late-cancelled", summary: "a late cancellation", is: cancelsEnded},
	{id: "cancelled", summary: "the cancellation of a request that is being served",
		is: func(c *wire.Conversation, e *wire.Event) bool {
			x := c.Newest(wire.Server, cancelsID(e))
			return on(cancelledNews)(c, e) && x != nil && (x.Response == nil || x.Response.Seq > e.Seq)
		},
		with: All(Obedient, Delaying(20*time.Millisecond, rootsList, createMessage, createForm))},
}

// after returns the loss of the fact by an unrelated action that comes once the fact was shown.
func (k keptFact) after(u unrelated) loss {
	return func(c *wire.Conversation, before int) (last *wire.Event) {
		shown := false
		for _, e := range c.Messages {
			switch x := c.Of(e); {
			case e.Seq >= before:
				return last
			case e.From == wire.Client:
				shown = shown || k.method == "" || e.Msg.Kind == wire.Result && x != nil && x.Method() == k.method
			case shown && u.is(c, e):
				last = e
			}
		}
		return last
	}
}

// forgetting returns the fault of a client that forgets a fact.
func (k keptFact) forgetting(u unrelated) Fault {
	changes := []apply{k.forgets(k.after(u))}
	if u.with != nil {
		changes = append(changes, u.with)
	}
	return fault("facts."+k.id+"-forgotten-after-"+u.id, k.requirement, "After "+u.summary+", "+k.forgotten+".",
		All(changes...)).Seen(inSequence).In(Sequences).Only(k.transports).Also(k.collateral...)
}

// Forgotten returns a fault for each fact that a client keeps and each action that has nothing to do with it.
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

// factFaults are those of [Forgotten] that stand for all.
var factFaults = slices.DeleteFunc(Forgotten(), func(f Fault) bool {
	return !slices.Contains([]string{"facts.roots-forgotten-after-logged",
		"facts.method-forgotten-after-tools-changed", "facts.sampling-forgotten-after-late-cancelled",
		"facts.form-forgotten-after-unknown-notified", "facts.request-forgotten-after-cancelled",
		"facts.session-forgotten-after-refused", "facts.version-forgotten-after-unknown-cancelled"}, f.ID)
})
