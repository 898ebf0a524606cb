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
	ofRequests      = "basic/index#requests"
	ofResponses     = "basic/index#responses"
	ofNotifications = "basic/index#notifications"
	ofMessages      = "basic/index#messages"
	ofMeta          = "basic/index#meta"
)

// numbering chooses the ids of requests.
func numbering(id func(n int64) wire.ID) apply {
	return Changing(func(o *client.Options) { o.ID = id })
}

const anyID = "A request has a string or integer id that its sender has not used before; the text wants no order " +
	"and no form."

// unserving are the requirements that a client leaves open if it refuses the requests of the server.
var unserving = []string{"sampling.*", "roots.*", ids.BaseErrorInvalidParams, "content.*", "meta.attach.*",
	"progress.*", "cancellation.*", "schema.*", "elicitation.*"}

var idOddities = []Oddity{
	odd("ids.words", "Ids are strings, as UUIDs are.", anyID, ofRequests, numbering(func(n int64) wire.ID {
		return wire.StringID(fmt.Sprintf("9b2e7c1a-0000-4000-8000-%012x", n*0x5DEECE66D&0xFFFFFFFFFFFF))
	})).In(Requests),
	odd("ids.digits", "Ids are strings of digits.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.StringID(strconv.FormatInt(n, 10)) })).In(Requests),
	odd("ids.from-zero", "The first id is 0.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.IntID(n - 1) })),
	odd("ids.negative", "Ids are negative and fall.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.IntID(-n) })).In(Requests),
	odd("ids.gaps", "Ids leave gaps and come in no order.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.IntID(n * 7919 % 1_000_003) })),
	odd("ids.huge", "Ids are beyond what a double holds exactly.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.IntID(math.MaxInt64 - n) })).In(Requests),
	odd("ids.letters", "Ids are strings with letters beyond ASCII, quotes, escapes and blanks.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.StringID(fmt.Sprintf(" é\t\"%d\"\\ → 🎉\u2028", n)) })).
		In(Requests),
	odd("ids.empty-first", "The first id is the empty string.", anyID, ofRequests,
		numbering(func(n int64) wire.ID { return wire.StringID(strings.Repeat("x", int(n-1))) })),
	odd("ids.long", "Ids are strings of two thousand characters.", anyID, ofRequests, numbering(
		func(n int64) wire.ID { return wire.StringID(fmt.Sprintf("%d-%s", n, strings.Repeat("long ", 400))) })),
	odd("ids.mixed", "Ids are strings and integers in turn.", anyID, ofRequests, numbering(func(n int64) wire.ID {
		if n%2 == 0 {
			return wire.StringID("request " + strconv.FormatInt(n, 10))
		}
		return wire.IntID(n)
	})).In(Requests),
	odd("ids.exponents", "Ids are integers that are written with an exponent.",
		"JSON has several spellings of one integer, and the text does not choose one.", ofRequests,
		numbering(func(n int64) wire.ID { return wire.ReadID(json.Number(strconv.FormatInt(n, 10) + "e2")) })),
	odd("ids.of-the-other-side", "Ids of the client are equal to ids that the server uses.",
		"An id is unique among the requests of one requestor; each side counts for itself.", ofRequests,
		numbering(func(n int64) wire.ID {
			if n == 2 {
				return wire.StringID("a word")
			}
			return wire.IntID(n + 10_000)
		})).In(Requests),
}

var messageOddities = []Oddity{
	odd("messages.old-version-served", "A ping with jsonrpc 1.0 is served.",
		"JSON-RPC 2.0, section 3, recommends to handle objects of version 1.0.", ofMessages,
		Editing(Replies("old-version"), Served)).In(Envelopes),
	odd("messages.reversed", "The members of each object come in another order, jsonrpc after method and params first.",
		"The members of a JSON object have no order.", ofMessages,
		spelled(Anything, spell.Speller{Order: spell.Reversed})).In(Requests),
	odd("messages.escapes", "All letters in names and strings are written as \\u escapes.",
		"JSON allows the escape of any character, also in names.", ofMessages,
		spelled(Anything, spell.Speller{Text: spell.Escaping(`\u%04x`, unicode.IsLetter)})).In(Requests),
	odd("messages.solidus", "Slashes are escaped.", "JSON allows the escape of the solidus.", ofMessages,
		spelled(Anything, spell.Speller{Text: spell.Solidus})),
	odd("messages.blanks", "There are blanks and tabs between all tokens.",
		"JSON allows whitespace between tokens, and only newlines end a message.", ofMessages,
		spelled(Anything, spell.Speller{Gap: " \t "})).In("http/refused-message"),
	odd("messages.lines", "Each body is indented over several lines.",
		"Newlines delimit messages over stdio alone; over HTTP a body is one message.",
		"basic/transports#sending-messages-to-the-server", spelled(Anything, spell.Speller{Gap: "\r\n  "})).
		Only(overEitherHTTP),
	odd("messages.numbers", "Numbers in arguments are written with a fraction and an exponent.",
		"JSON has several spellings of one number.", ofMessages,
		spelled(Calls("tools/call", "notifications/progress"), spell.Speller{Number: func(n json.Number) any {
			if _, err := n.Int64(); err != nil {
				return n.String()
			}
			return n.String() + ".0e0"
		}})).In(Elicitation),
	odd("messages.members", "Messages have members beside those of JSON-RPC.",
		"Neither the text nor the schema closes the objects of messages.", ofMessages,
		Editing(Anything, Having("com.example.trace", object{"span": list{1, nil, "x"}}))).In(Requests, Sampling),
	odd("messages.params-members", "Params have members that the method does not define.",
		"params is an object with any members: [key: string]: unknown.", ofRequests,
		Editing(Calls("initialize", "tools/list", "tools/call", "resources/list", "resources/read", "prompts/list",
			"prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
			"resources/templates/list"), func(m object) {
			p, _ := m["params"].(object)
			if p == nil {
				p = object{}
			}
			p["com.example.hint"], p["x"] = list{object{}}, nil
			m["params"] = p
		})),
	odd("messages.params-empty", "If a method needs no params, they are an empty object.",
		"params is optional, and an empty object has no parameter.", ofRequests,
		Editing(func(m *wire.Message) bool { return m.Kind == wire.Request || m.Kind == wire.Notification },
			Defaulting("params", object{}))),
	odd("messages.large", "A request has a quarter of a mebibyte.", "No page bounds the size of a message.", ofMessages,
		func(c *client.Standalone) {
			Calling("ping", object{"_meta": object{"com.example/ballast": strings.Repeat("ballast ", 32<<10)}})(c)
		}),
	odd("messages.deep", "A value is nested a hundred levels deep.", "No page bounds how deep values are nested.",
		ofMessages, Doing(func(ctx context.Context, s *client.Session) {
			deep := json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))
			_, _ = s.Call(ctx, "ping", object{"_meta": object{"com.example/deep": deep}})
		})),
	odd("notifications.unknown",
		"The client sends a notification that the schema does not have, for an experimental capability that both "+
			"sides may have.",
		"experimental describes support for non-standard features, and a receiver ignores notifications that it "+
			"does not know.", "basic/lifecycle#capability-negotiation", Changing(func(o *client.Options) {
			o.Capabilities["experimental"] = object{"com.example/heartbeat": object{"every": 5}}
		})),
	odd("notifications.leaving",
		"The client closes the connection when a notification with an unknown method comes, and ends with an error.",
		"The receiver sends no response; that it goes on, no page says.", ofNotifications,
		SendingOn(func(ctx context.Context, conn transport.Conn) {
			if Told(conn, unknownNotification) {
				_ = conn.Close(ctx)
			}
		})).In(Notifications, "exchange/beside", "sequences/session").Open(unheard...),
	odd("notifications.params", "Notifications without parameters carry params with unknown members.",
		"params of a notification is an object with any members.", ofNotifications,
		Editing(Calls("notifications/initialized", "notifications/roots/list_changed"),
			Having("params", object{"com.example.at": "2025-06-18T09:00:00Z"}))),
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
	odd("meta.everywhere", "Every request, notification and result has _meta with keys of all forms.",
		"_meta attaches additional metadata to any interaction; an empty name is allowed, and a prefix is optional.",
		ofMeta, withMeta(oddKeys)).In(Requests, Sampling, Elicitation, RootsSeen),
	odd("meta.empty", "Every request, notification and result has an empty _meta.",
		"_meta is an object with any number of members, also none.", ofMeta,
		withMeta(func() object { return object{} })).In(Requests, Sampling),
	odd("meta.in-items", "Roots and the content of sampled messages have _meta of their own.",
		"The definitions of Root and of content blocks have _meta.", "schema#root",
		All(Amending("roots/list", func(r object) {
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
		}))).In(Sampling, RootsSeen),
}

// failingWith gives the errors of the client a code and data.
func failingWith(code int64, message string, data any) apply {
	return answering(func(any) (any, *wire.Error) {
		return nil, &wire.Error{Code: code, Message: message, Data: data}
	}, "sampling/createMessage", "roots/list")
}

var answerOddities = []Oddity{
	odd("results.members", "Results have members that their definitions do not have.",
		"Results may follow any JSON object structure.", ofResponses, Changing(func(o *client.Options) {
			for method, serve := range o.Answers {
				o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
					result, rpcErr := serve(ctx, params)
					if r, ok := result.(object); ok {
						r["com.example.cost"] = object{"tokens": 12}
					}
					return result, rpcErr
				}
			}
		})).In(Sampling, Elicitation, RootsSeen),
	odd("errors.data", "Errors have data: an object, a list, a text, a number or null.",
		"data is optional and its value is defined by the sender.", "schema#jsonrpcerror",
		Editing(Refusals, func(m object) {
			kinds := list{object{"cause": list{}}, list{1}, "text", 7, nil, false}
			if e, ok := m["error"].(object); ok {
				e["data"] = kinds[len(fmt.Sprint(m["id"]))%len(kinds)]
			}
		})).In(Requests, "hostile/envelopes", Sampling),
	odd("errors.own-code", "Requests of the server are refused with codes of the application's own.",
		"Error codes are integers; JSON-RPC leaves all of them outside the reserved range to the application.",
		ofResponses, failingWith(4711, "This host says no.", object{"policy": "none"})).
		In(Sampling, RootsSeen, "acts/sampling", "acts/roots").Open(unserving...),
	odd("errors.server-range", "Requests of the server are refused with a code between -32099 and -32000.",
		"JSON-RPC reserves this range for errors that the implementation defines.", ofResponses,
		failingWith(-32050, "Unavailable", nil)).In(Sampling, RootsSeen, "acts/sampling", "acts/roots").
		Open(unserving...),
	odd("answers.late", "Answers that are not to a ping take half a second.",
		"Only a ping has to be answered promptly.", "basic/utilities/ping#behavior-requirements",
		All(Obedient, Delaying(500*time.Millisecond, "sampling/createMessage", "elicitation/create", "roots/list"))).
		In(Sampling, Elicitation, RootsSeen, "acts/elicitation", "acts/roots", "acts/sampling", "acts/root-folder").
		Open(ids.SamplingSecurityValidateContent), // the client does not wait until all is asked
	odd("answers.out-of-order", "Pings are answered before requests that came earlier.",
		"Responses carry the id of their request; no order is given.", ofResponses,
		All(Obedient, Delaying(40*time.Millisecond, "sampling/createMessage", "elicitation/create",
			"roots/list"))).In(RootsSeen, Sampling, Elicitation),
}
