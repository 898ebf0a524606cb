package oddclient

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/internal/proof/spell"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var (
	ofRequests      = at("basic/index#requests")
	ofResponses     = at("basic/index#responses")
	ofNotifications = at("basic/index#notifications")
	ofMessages      = at("basic/index#messages")
	ofMeta          = at("basic/index#meta")
)

// numbering chooses the ids of requests.
func numbering(id func(n int64) wire.ID) apply {
	return Changing(func(o *client.Options) { o.ID = id })
}

const anyID = "A request has a string or integer id that its sender has not used before; the text wants no order " +
	"and no form."

// unserving are the requirements that a client leaves open if it refuses the requests of the server.
var unserving = []string{
	"sampling.*", "roots.*", ids.BaseErrorInvalidParams, "content.*", "meta.attach.*", "progress.*",
	"cancellation.*", "schema.*", "elicitation.*",
}

var idOddities = []Oddity{
	{ID: "ids.words", Summary: "Ids are strings, as UUIDs are.", Why: anyID, Source: ofRequests,
		Scenarios: []string{Requests},
		Apply: numbering(func(n int64) wire.ID {
			return wire.StringID(fmt.Sprintf("9b2e7c1a-0000-4000-8000-%012x", n*0x5DEECE66D&0xFFFFFFFFFFFF))
		})},
	{ID: "ids.digits", Summary: "Ids are strings of digits.", Why: anyID, Source: ofRequests,
		Scenarios: []string{Requests},
		Apply:     numbering(func(n int64) wire.ID { return wire.StringID(strconv.FormatInt(n, 10)) })},
	{ID: "ids.from-zero", Summary: "The first id is 0.", Why: anyID, Source: ofRequests,
		Apply: numbering(func(n int64) wire.ID { return wire.IntID(n - 1) })},
	{ID: "ids.negative", Summary: "Ids are negative and fall.", Why: anyID, Source: ofRequests,
		Scenarios: []string{Requests}, Apply: numbering(func(n int64) wire.ID { return wire.IntID(-n) })},
	{ID: "ids.gaps", Summary: "Ids leave gaps and come in no order.", Why: anyID, Source: ofRequests,
		Apply: numbering(func(n int64) wire.ID { return wire.IntID(n * 7919 % 1_000_003) })},
	{ID: "ids.huge", Summary: "Ids are beyond what a double holds exactly.", Why: anyID, Source: ofRequests,
		Scenarios: []string{Requests},
		Apply:     numbering(func(n int64) wire.ID { return wire.IntID(math.MaxInt64 - n) })},
	{ID: "ids.letters", Summary: "Ids are strings with letters beyond ASCII, quotes, escapes and blanks.", Why: anyID,
		Source: ofRequests, Scenarios: []string{Requests},
		Apply: numbering(func(n int64) wire.ID { return wire.StringID(fmt.Sprintf(" é\t\"%d\"\\ → 🎉\u2028", n)) })},
	{ID: "ids.empty-first", Summary: "The first id is the empty string.", Why: anyID, Source: ofRequests,
		Apply: numbering(func(n int64) wire.ID { return wire.StringID(strings.Repeat("x", int(n-1))) })},
	{ID: "ids.long", Summary: "Ids are strings of two thousand characters.", Why: anyID, Source: ofRequests,
		Apply: numbering(func(n int64) wire.ID {
			return wire.StringID(fmt.Sprintf("%d-%s", n, strings.Repeat("long ", 400)))
		})},
	{ID: "ids.mixed", Summary: "Ids are strings and integers in turn.", Why: anyID, Source: ofRequests,
		Scenarios: []string{Requests},
		Apply: numbering(func(n int64) wire.ID {
			if n%2 == 0 {
				return wire.StringID("request " + strconv.FormatInt(n, 10))
			}
			return wire.IntID(n)
		})},
	{ID: "ids.exponents", Summary: "Ids are integers that are written with an exponent.",
		Why: "JSON has several spellings of one integer, and the text does not choose one.", Source: ofRequests,
		Apply: numbering(func(n int64) wire.ID { return wire.ReadID(json.Number(strconv.FormatInt(n, 10) + "e2")) })},
	{ID: "ids.of-the-other-side", Summary: "Ids of the client are equal to ids that the server uses.",
		Why:    "An id is unique among the requests of one requestor; each side counts for itself.",
		Source: ofRequests, Scenarios: []string{Requests},
		Apply: numbering(func(n int64) wire.ID {
			if n == 2 {
				return wire.StringID("a word")
			}
			return wire.IntID(n + 10_000)
		})},
}

var messageOddities = []Oddity{
	{ID: "messages.old-version-served", Summary: "A ping with jsonrpc 1.0 is served.",
		Why: "JSON-RPC 2.0, section 3, recommends to handle objects of version 1.0.", Source: ofMessages,
		Scenarios: []string{Envelopes}, Apply: Editing(Replies("old-version"), Served)},
	{ID: "messages.reversed",
		Summary: "The members of each object come in another order, jsonrpc after method and params first.",
		Why:     "The members of a JSON object have no order.", Source: ofMessages, Scenarios: []string{Requests},
		Apply: spelled(Anything, spell.Speller{Order: spell.Reversed})},
	{ID: "messages.escapes", Summary: "All letters in names and strings are written as \\u escapes.",
		Why: "JSON allows the escape of any character, also in names.", Source: ofMessages,
		Scenarios: []string{Requests},
		Apply:     spelled(Anything, spell.Speller{Text: spell.Escaping(`\u%04x`, unicode.IsLetter)})},
	{ID: "messages.solidus", Summary: "Slashes are escaped.", Why: "JSON allows the escape of the solidus.",
		Source: ofMessages, Apply: spelled(Anything, spell.Speller{Text: spell.Solidus})},
	{ID: "messages.blanks", Summary: "There are blanks and tabs between all tokens.",
		Why: "JSON allows whitespace between tokens, and only newlines end a message.", Source: ofMessages,
		Scenarios: []string{"http/refused-message"}, Apply: spelled(Anything, spell.Speller{Gap: " \t "})},
	{ID: "messages.lines", Transports: overEitherHTTP, Summary: "Each body is indented over several lines.",
		Why:    "Newlines delimit messages over stdio alone; over HTTP a body is one message.",
		Source: at("basic/transports#sending-messages-to-the-server"),
		Apply:  spelled(Anything, spell.Speller{Gap: "\r\n  "})},
	{ID: "messages.numbers", Summary: "Numbers in arguments are written with a fraction and an exponent.",
		Why: "JSON has several spellings of one number.", Source: ofMessages, Scenarios: []string{Elicitation},
		Apply: spelled(Calls("tools/call", "notifications/progress"), spell.Speller{Number: func(n json.Number) any {
			if _, err := n.Int64(); err != nil {
				return n.String()
			}
			return n.String() + ".0e0"
		}})},
	{ID: "messages.members", Summary: "Messages have members beside those of JSON-RPC.",
		Why: "Neither the text nor the schema closes the objects of messages.", Source: ofMessages,
		Scenarios: []string{Requests, Sampling},
		Apply:     Editing(Anything, Having("com.example.trace", object{"span": list{1, nil, "x"}}))},
	{ID: "messages.params-members", Summary: "Params have members that the method does not define.",
		Why: "params is an object with any members: [key: string]: unknown.", Source: ofRequests,
		Apply: Editing(Calls("initialize", "tools/list", "tools/call", "resources/list", "resources/read",
			"prompts/list", "prompts/get",
			"completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
			"resources/templates/list"), func(m object) {
			p, _ := m["params"].(object)
			if p == nil {
				p = object{}
			}
			p["com.example.hint"], p["x"] = list{object{}}, nil
			m["params"] = p
		})},
	{ID: "messages.params-empty", Summary: "If a method needs no params, they are an empty object.",
		Why: "params is optional, and an empty object has no parameter.", Source: ofRequests,
		Apply: Editing(func(m *wire.Message) bool { return m.Kind == wire.Request || m.Kind == wire.Notification },
			func(m object) {
				if m["params"] == nil {
					m["params"] = object{}
				}
			})},
	{ID: "messages.large", Summary: "A request has a quarter of a mebibyte.",
		Why: "No page bounds the size of a message.", Source: ofMessages,
		Apply: func(c *client.Standalone) {
			Calling("ping", object{"_meta": object{"com.example/ballast": strings.Repeat("ballast ", 32<<10)}})(c)
		}},
	{ID: "messages.deep", Summary: "A value is nested a hundred levels deep.",
		Why: "No page bounds how deep values are nested.", Source: ofMessages,
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			deep := json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))
			_, _ = s.Call(ctx, "ping", object{"_meta": object{"com.example/deep": deep}})
		})},
	{ID: "notifications.unknown",
		Summary: "The client sends a notification that the schema does not have, for an experimental capability " +
			"that both sides may have.",
		Why: "experimental describes support for non-standard features, and a receiver ignores notifications " +
			"that it does not know.",
		Source: at("basic/lifecycle#capability-negotiation"),
		Apply: Changing(func(o *client.Options) {
			o.Capabilities["experimental"] = object{"com.example/heartbeat": object{"every": 5}}
		})},
	{ID: "notifications.leaving",
		Summary: "The client closes the connection when a notification with an unknown method comes, and ends " +
			"with an error.",
		Why: "The receiver sends no response; that it goes on, no page says.", Source: ofNotifications,
		Scenarios: []string{Notifications, "exchange/beside", "sequences/session"}, Untried: unheard,
		Apply: SendingOn(func(ctx context.Context, conn transport.Conn) {
			if Told(conn, unknownNotification) {
				_ = conn.Close(ctx)
			}
		})},
	{ID: "notifications.params", Summary: "Notifications without parameters carry params with unknown members.",
		Why: "params of a notification is an object with any members.", Source: ofNotifications,
		Apply: Editing(Calls("notifications/initialized", "notifications/roots/list_changed"),
			Having("params", object{"com.example.at": "2025-06-18T09:00:00Z"})),
	},
}

// unheard are the requirements that a client leaves open which ends the session at a notification with an unknown
// method.
var unheard = []string{"base.notification.*", ids.MetaAttachNotification, "cancellation.*",
	"*.list-changed.unsolicited", ids.LoggingMessageAnyData}

func unknownNotification(m *wire.Message) bool {
	return m.Kind == wire.Notification && strings.Contains(m.Method, "com.example")
}

// oddKeys returns metadata with all forms of keys that a client may choose.
func oddKeys() object {
	return object{
		"com.example/a-b_c.d": 1, "io.example-host.x1/trace": "x", "a": nil, "Z9": list{}, "a.b-c_d": true,
		"com.example/": object{}, "x.y/z": 0.5,
	}
}

// withMeta adds metadata to the params of requests and notifications and to results.
func withMeta(meta func() object) apply {
	return Editing(Anything, func(m object) {
		member := "params"
		if m["result"] != nil {
			member = "result"
		} else if m["method"] == nil {
			return
		}
		o, ok := m[member].(object)
		if !ok {
			o = object{}
		}
		all, ok := o["_meta"].(object)
		if !ok {
			all = object{}
		}
		for name, v := range meta() {
			all[name] = v
		}
		o["_meta"] = all
		m[member] = o
	})
}

var metaOddities = []Oddity{
	{ID: "meta.everywhere", Summary: "Every request, notification and result has _meta with keys of all forms.",
		Why: "_meta attaches additional metadata to any interaction; an empty name is allowed, and a prefix " +
			"is optional.",
		Source: ofMeta, Scenarios: []string{Requests, Sampling, Elicitation, RootsSeen},
		Apply: withMeta(oddKeys)},
	{ID: "meta.empty", Summary: "Every request, notification and result has an empty _meta.",
		Why: "_meta is an object with any number of members, also none.", Source: ofMeta,
		Scenarios: []string{Requests, Sampling}, Apply: withMeta(func() object { return object{} })},
	{ID: "meta.in-items", Summary: "Roots and the content of sampled messages have _meta of their own.",
		Why: "The definitions of Root and of content blocks have _meta.", Source: at("schema#root"),
		Scenarios: []string{Sampling, RootsSeen},
		Apply: All(Amending("roots/list", func(r object) {
			roots, _ := r["roots"].(list)
			for i, root := range roots {
				if o, ok := root.(object); ok {
					roots[i] = object{"uri": o["uri"], "name": o["name"], "_meta": oddKeys()}
				}
			}
		}), Amending("sampling/createMessage", func(r object) {
			if content, ok := r["content"].(object); ok {
				content["_meta"] = oddKeys()
			}
		}))},
}

// failingWith gives the errors of the client a code and data.
func failingWith(code int64, message string, data any) apply {
	return answering(func(any) (any, *wire.Error) {
		return nil, &wire.Error{Code: code, Message: message, Data: data}
	}, "sampling/createMessage", "roots/list")
}

var answerOddities = []Oddity{
	{ID: "results.members", Summary: "Results have members that their definitions do not have.",
		Why: "Results may follow any JSON object structure.", Source: ofResponses,
		Scenarios: []string{Sampling, Elicitation, RootsSeen},
		Apply: Changing(func(o *client.Options) {
			for method, serve := range o.Answers {
				o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
					result, rpcErr := serve(ctx, params)
					if r, ok := result.(object); ok {
						r["com.example.cost"] = object{"tokens": 12}
					}
					return result, rpcErr
				}
			}
		})},
	{ID: "errors.data", Summary: "Errors have data: an object, a list, a text, a number or null.",
		Why: "data is optional and its value is defined by the sender.", Source: at("schema#jsonrpcerror"),
		Scenarios: []string{Requests, "hostile/envelopes", Sampling},
		Apply: Editing(Refusals, func(m object) {
			kinds := list{object{"cause": list{}}, list{1}, "text", 7, nil, false}
			if e, ok := m["error"].(object); ok {
				e["data"] = kinds[len(fmt.Sprint(m["id"]))%len(kinds)]
			}
		})},
	{ID: "errors.own-code", Summary: "Requests of the server are refused with codes of the application's own.",
		Why:    "Error codes are integers; JSON-RPC leaves all of them outside the reserved range to the application.",
		Source: ofResponses, Scenarios: []string{Sampling, RootsSeen, "acts/sampling", "acts/roots"},
		Untried: unserving, Apply: failingWith(4711, "This host says no.", object{"policy": "none"})},
	{ID: "errors.server-range", Summary: "Requests of the server are refused with a code between -32099 and -32000.",
		Why: "JSON-RPC reserves this range for errors that the implementation defines.", Source: ofResponses,
		Scenarios: []string{Sampling, RootsSeen, "acts/sampling", "acts/roots"}, Untried: unserving,
		Apply: failingWith(-32050, "Unavailable", nil)},
	{
		ID: "answers.late", Summary: "Answers that are not to a ping take half a second.",
		Why: "Only a ping has to be answered promptly.", Source: at("basic/utilities/ping#behavior-requirements"),
		Scenarios: []string{Sampling, Elicitation, RootsSeen, "acts/elicitation", "acts/roots", "acts/sampling",
			"acts/root-folder"},
		Untried: []string{ids.SamplingSecurityValidateContent}, // the client does not wait until all is asked
		Apply: All(Obedient, Delaying(500*time.Millisecond, "sampling/createMessage", "elicitation/create",
			"roots/list")),
	},
	{ID: "answers.out-of-order", Summary: "Pings are answered before requests that came earlier.",
		Why: "Responses carry the id of their request; no order is given.", Source: ofResponses,
		Scenarios: []string{RootsSeen, Sampling, Elicitation},
		Apply: All(Obedient, Delaying(40*time.Millisecond, "sampling/createMessage", "elicitation/create",
			"roots/list"))},
}
