package oddserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/internal/proof/spell"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const sameJSON = "The text is the same JSON value (RFC 8259), and messages are defined by their value."

// The JSON text of messages.
var spellingOddities = []Oddity{
	odd("spelling.members-reversed", "The members of all objects stand in reverse order.",
		"Objects are unordered collections of members (RFC 8259, section 4).", "basic/index#messages",
		spelling(spell.Speller{Order: spell.Reversed}.Spell)).Replaces("spelling"),
	odd("spelling.members-by-length", "The members of all objects stand in the order of the length of their names.",
		"Objects are unordered collections of members (RFC 8259, section 4).", "basic/index#messages",
		spelling(spell.Speller{Order: func(a, b string) int { return cmp.Compare(len(a), len(b)) }}.Spell)).
		Replaces("spelling"),
	odd("spelling.spaces", "A space and a tab stand before each token of the JSON text.", sameJSON,
		"basic/index#messages", spelling(spell.Speller{Gap: " \t"}.Spell)).Replaces("spelling"),
	odd("spelling.newlines", "Line feeds and carriage returns stand between the tokens of the JSON text.",
		"Only stdio forbids newlines in a message.", "basic/transports#stdio",
		All(inForm(server.AnswerJSON), spelling(spell.Speller{Gap: "\r\n\t"}.Spell))).Only(OverHTTP).
		Open(streamless...),
	odd("spelling.escaped-beyond-ascii", "Characters outside ASCII are written as escapes, in lower case.", sameJSON,
		"basic/index#messages",
		spelling(spell.Speller{Text: spell.Escaping(`\u%04x`, func(r rune) bool { return r > '~' })}.Spell)).
		Replaces("spelling"),
	odd("spelling.escaped-everything",
		"Each character of every string and name is written as an escape, in upper case.",
		sameJSON, "basic/index#messages",
		spelling(spell.Speller{Text: spell.Escaping(`\u%04X`, func(rune) bool { return true })}.Spell)).
		Replaces("spelling"),
	odd("spelling.escaped-slashes", "Slashes are escaped, as PHP does.", sameJSON, "basic/index#messages",
		spelling(spell.Speller{Text: spell.Solidus}.Spell)).Replaces("spelling"),
	odd("spelling.unescaped-separators", "Log messages hold U+0085, U+2028, U+2029 and U+007F unescaped.",
		"JSON strings may hold them (RFC 8259, section 7), and they are not newlines.", "basic/transports#stdio",
		Logged(func(raw string) string {
			return strings.Replace(raw, `"logger":"`, "\"logger\":\"\u0085\u2028\u2029\u007f", 1)
		})),
	odd("spelling.whole-numbers-with-fraction", "Whole numbers in results are written with a fraction of zero: 5.0.",
		"It is the same number, and an integer to JSON Schema.", "schema#resource",
		respellingResults(func(n json.Number) any {
			if strings.ContainsAny(string(n), ".eE") {
				return n
			}
			return n + ".0"
		})).Replaces("spelling"),
	odd("spelling.numbers-with-exponent", "Numbers in results are written with an exponent: 5e0.",
		"It is the same number (RFC 8259, section 6).", "basic/index#responses",
		respellingResults(func(n json.Number) any {
			if strings.ContainsAny(string(n), "eE") {
				return n
			}
			return n + "e+0"
		})).Replaces("spelling"),
	odd("spelling.code-with-fraction", "Error codes are written with a fraction of zero: -32601.0.",
		"The value is an integer.", "basic/index#responses", Problems("*", func(_ *server.Outgoing, problem object) {
			problem["code"] = json.Number(fmt.Sprint(problem["code"]) + ".0")
		})),
	odd("spelling.id-escaped", "String ids come back with each character as an escape.", "It is the same string.",
		"basic/index#responses", Responses("*", func(out *server.Outgoing) {
			var id string
			if json.Unmarshal([]byte(out.Answers.ID.String()), &id) == nil && out.Answers.ID.String()[0] == '"' {
				out.Message["id"] = json.RawMessage(spell.Escaping(`\u%04x`, func(rune) bool { return true })(id))
				out.Raw = nil
			}
		})).Replaces("spelling"),
	odd("spelling.id-with-fraction", "Integer ids come back with a fraction of zero: 7.0.",
		"It is the same number, as servers write it whose language has but one type of number.",
		"basic/index#responses", Responses("*", func(out *server.Outgoing) {
			if id := out.Answers.ID.String(); id[0] != '"' && !strings.ContainsAny(id, ".eE") {
				out.Message["id"] = json.RawMessage(id + ".0")
			}
		})).Replaces("spelling"),
}

// respellingResults changes how numbers are written in results; ids and codes stay as they are.
func respellingResults(number func(n json.Number) any) apply {
	respell := func(n json.Number) any { return json.Number(fmt.Sprint(number(n))) }
	return Responses("*", func(out *server.Outgoing) {
		result := out.Result()
		if value, _, err := wire.Decode([]byte(Text(result))); result != nil && err == nil {
			out.Message["result"] = json.RawMessage(spell.Speller{Number: respell}.Spell(value))
		}
	})
}

// emptied are the methods whose result is empty.
func emptied(method string) bool {
	return slices.Contains([]string{"ping", "resources/subscribe", "resources/unsubscribe", "logging/setLevel"}, method)
}

// withMember sets a member of all results that are not empty by definition.
func withMember(name string, value any) apply {
	return Responses("*", func(out *server.Outgoing) {
		if result := out.Result(); result != nil && !emptied(out.Answers.Method) {
			result[name] = Copied(object{"v": value})["v"]
		}
	})
}

// anyMessage changes requests and notifications.
func anyMessage(kind wire.Kind, change func(params object)) apply {
	return Altering(func(out *server.Outgoing) {
		if out.Kind == kind && out.Method != "" {
			p := out.Params()
			if p == nil {
				p = object{}
				out.Message["params"] = p
			}
			change(p)
		}
	})
}

var metadata = object{
	"com.example/trace": object{"id": "4bf92f3577b34da6", "depth": 1}, "example.com/none": nil,
	"list": list{1, "two", nil}, "flag": true,
}

// metaWith adds metadata, beside what is there.
func metaWith(extra object) func(object) {
	return func(o object) {
		meta, _ := o["_meta"].(object)
		if meta == nil {
			meta = object{}
		}
		for key, value := range Copied(extra) {
			meta[key] = value
		}
		o["_meta"] = meta
	}
}

// basic/index#meta
var metaOddities = []Oddity{
	odd("meta.results", "All results but empty ones have _meta, with values of all types.",
		"Servers may attach metadata to their interactions.", "basic/index#meta", withMember("_meta", metadata)),
	odd("meta.empty-results", "Empty results, that of ping among them, have _meta.",
		"An EmptyResult is a Result, which may have _meta.", "schema#emptyresult",
		Responses("*", func(out *server.Outgoing) {
			if result := out.Result(); result != nil && emptied(out.Answers.Method) {
				metaWith(metadata)(result)
			}
		})),
	odd("meta.notifications", "The params of all notifications have _meta.",
		"The params of a notification may have _meta.", "basic/index#meta",
		anyMessage(wire.Notification, metaWith(metadata))),
	odd("meta.requests", "The params of all requests of the server have _meta.",
		"The params of a request may have _meta.", "basic/index#meta", anyMessage(wire.Request, metaWith(metadata))),
	odd("meta.items", "Tools, resources, templates and prompts have _meta.", "Each of them is defined with _meta.",
		"schema#tool", everyItem(metaWith(metadata))),
	odd("meta.contents", "Content blocks and the contents of resources have _meta.",
		"Each of them is defined with _meta.", "schema#contentblock", everyContent(metaWith(metadata))),
	odd("meta.empty", "Results and items have an empty _meta.", "_meta is an object with any number of keys.",
		"basic/index#meta", All(withMember("_meta", object{}), everyItem(Having("_meta", object{})))).
		Open(ids.MetaKeyPrefixForm, ids.MetaKeyLabelStart, ids.MetaKeyLabelEnd, ids.MetaKeyLabelInterior,
			ids.MetaKeyPrefixReserved),
	odd("meta.key-forms",
		"Keys of _meta have all the forms that the text allows: without a name, of one character, with every kind "+
			"of label.", "The form of keys allows each of them.", "basic/index#meta", withMember("_meta", object{
			"com.example/": 1, "": 2, "a": 3, "7": 4, "A.b-c_d.E": 5, "x/y": 6, "a1-2b.c--d.e9/0": 7,
			"com.example/a..b__c--d": 8, "Com.EXAMPLE/Key": 9,
		})).Replaces("meta keys"),
	odd("meta.keys-almost-reserved",
		"Prefixes of _meta keys resemble those that are kept for MCP: mcp/, com.example.mcp/, mcpx.dev/, my-mcp.dev/.",
		"A prefix is reserved only if a label follows mcp or modelcontextprotocol.", "basic/index#meta",
		withMember("_meta", object{"mcp/key": 1, "com.example.mcp/key": 2, "mcpx.dev/key": 3,
			"my-mcp.dev/key": 4, "modelcontextprotocol/key": 5, "mcp": 6})).Replaces("meta keys"),
}

// naming the ids of the server's requests
var messageOddities = []Oddity{
	odd("message.version-unchecked", "The member jsonrpc is not looked at.",
		"No sentence has a receiver look for what a sender must not do, and JSON-RPC 2.0, section 3, recommends to "+
			"handle objects of version 1.0.", "basic/index#messages", func(o *server.Options) {
			o.Behaviour.Valid = func(m *wire.Message) bool {
				return m.Method != "" && m.Has(wire.JSONRPCMissing, wire.JSONRPCWrong)
			}
		}).Replaces("messages understood"),
	odd("message.params-unchecked", "Params that are not an object are ignored.",
		"No sentence has a receiver look for what a sender must not do.", "basic/index#messages",
		Understanding(wire.ParamsType)).Replaces("messages understood"),
	odd("message.unknown-members", "Messages have members beside those of JSON-RPC.",
		"The definitions of messages are not closed.", "schema#jsonrpcmessage", Altering(func(out *server.Outgoing) {
			out.Message["x-trace"], out.Message["timestamp"] = object{"id": 1}, 1750237200
		})),
	odd("message.unknown-result-members", "Results have members that nobody defines.",
		"Results MAY follow any JSON object structure.", "basic/index#responses",
		All(withMember("debug", object{"took": 1.5}), withMember("warnings", list{}))),
	odd("message.unknown-error-members", "Errors have members beside code, message and data.",
		"Errors MUST include code and message at minimum.", "basic/index#responses",
		Problems("*", func(_ *server.Outgoing, problem object) {
			problem["help"], problem["retryable"] = "see the manual", false
		})),
	odd("message.unknown-params",
		"Requests of the server, other than pings, and its notifications have params that nobody defines.",
		"The params of requests and notifications are open.", "basic/index#requests", All(
			Params("roots/list", Having("x-hint", "none")), Params("sampling/createMessage", Having("x-hint", "none")),
			Params("elicitation/create", Having("x-hint", "none")),
			anyMessage(wire.Notification, Having("x-hint", list{1})),
		)),
	odd("message.unknown-item-members",
		"Tools, resources, templates, prompts and content blocks have members that nobody defines.",
		"None of the definitions is closed.", "schema#tool",
		All(everyItem(Having("x-category", "misc")), everyContent(Having("x-rank", 1)))),
	odd("message.empty-params", "Requests and notifications without params have an empty object for params.",
		"params is an optional object.", "basic/index#notifications",
		All(anyMessage(wire.Request, func(object) {}), anyMessage(wire.Notification, func(object) {}))),
	odd("message.error-data", "Errors have data: a text, a number, a list, an object, true and null by turns.",
		"data may be of any type.", "basic/index#responses", Problems("*", func(out *server.Outgoing, problem object) {
			kinds := list{"text", 7, list{}, object{"a": 1}, true, nil, 0.5, ""}
			if problem["data"] == nil {
				problem["data"] = kinds[Count(out.Session, "data")%len(kinds)]
			}
		})).Replaces("errors"),
	odd("message.error-languages", "The messages of errors are Chinese, with an emoji.",
		"The message is a short text, in any language.", "schema#jsonrpcerror",
		Problems("*", func(_ *server.Outgoing, problem object) { problem["message"] = "请求无法处理 🙁" })),
	odd("message.ids-strings", "The ids of the server's requests are strings.", "Ids are strings or integers.",
		"basic/index#requests",
		renumbered(func(n int64) string { return fmt.Sprintf("%q", fmt.Sprintf("srv-%d", n)) })).Replaces("ids"),
	odd("message.ids-odd-strings",
		"The ids of the server's requests have quotes, escapes, spaces and what is not ASCII; the first is empty.",
		"Any string is an id.", "basic/index#requests", renumbered(func(n int64) string {
			if n == 1 {
				return `""`
			}
			return spell.Plain(strings.Repeat(" ", int(n)) + "\"é\\/\u2028\U0001F600\x00\n")
		})).Replaces("ids"),
	odd("message.ids-long", "The ids of the server's requests have 4000 characters.",
		"The length of an id has no limit.", "basic/index#requests",
		renumbered(func(n int64) string { return fmt.Sprintf(`"%04000d"`, n) })).Replaces("ids"),
	odd("message.ids-negative", "The ids of the server's requests count down from 0.",
		"Ids are integers, of either sign.", "basic/index#requests",
		renumbered(func(n int64) string { return fmt.Sprint(1 - n) })).Replaces("ids"),
	odd("message.ids-at-2-53", "The ids of the server's requests lie just below 2^53.", "Ids are integers.",
		"basic/index#requests", renumbered(func(n int64) string { return fmt.Sprint(int64(1)<<53 - n) })).
		Replaces("ids"),
	odd("message.ids-beyond-64-bits", "The ids of the server's requests have 30 digits.",
		"Integers of JSON have no limit, and the id comes back as it is.", "basic/index#requests",
		renumbered(func(n int64) string {
			return new(big.Int).Add(new(big.Int).Exp(big.NewInt(10), big.NewInt(29), nil), big.NewInt(n)).String()
		})).Replaces("ids"),
	odd("message.ids-of-both-types", "The ids of the server's requests are 1, \"1\", 2, \"2\" and so on.",
		"A string and an integer are different ids.", "basic/index#requests", renumbered(func(n int64) string {
			if n%2 == 0 {
				return fmt.Sprintf(`"%d"`, n/2)
			}
			return fmt.Sprint(n/2 + 1)
		})).Replaces("ids"),
	odd("message.ids-uuid", "The ids of the server's requests are UUIDs.", "Ids are strings or integers.",
		"basic/index#requests",
		renumbered(func(n int64) string { return fmt.Sprintf(`"550e8400-e29b-41d4-a716-%012x"`, n) })).Replaces("ids"),
	odd("message.out-of-order",
		"Every other response to a list, read or get comes 30 ms late, so that others overtake it.",
		"Responses are tied to requests by their ids, not by their order.", "basic/index#responses",
		Responses("*", func(out *server.Outgoing) {
			if out.Answers.Method != "ping" && out.Answers.Method != "initialize" &&
				Count(out.Session, "order")%2 == 0 {
				out.Delay = 30 * time.Millisecond
			}
		})),
	odd("message.slow", "All responses but those to ping take 300 ms.",
		"The text sets no time for an answer but that of ping.", "basic/lifecycle#timeouts",
		delayed(300*time.Millisecond, func(r *server.Request) bool { return r.Method != "ping" })).Replaces("time"),
	odd("message.large", "The result of tools/list has 160,000 characters of metadata.",
		"The length of a message has no limit.", "basic/index#messages", Results("tools/list", func(result object) {
			metaWith(object{"com.example/padding": strings.Repeat("padding ", 20_000)})(result)
		})).Replaces("time"),
	odd("message.deep", "The result of prompts/list has metadata that is nested 100 deep.",
		"The depth of a message has no limit.", "basic/index#meta", Results("prompts/list", func(result object) {
			var deep any = 1
			for range 100 {
				deep = list{object{"d": deep}}
			}
			metaWith(object{"com.example/deep": deep})(result)
		})),
	odd("message.requests-in-parallel",
		"After the handshake the server sends several requests without waiting for the answers.",
		"Either side may send requests at any time.", "basic/index#requests",
		Ready(func(s *server.Session) { parallel(3, func() { _, _ = s.Call(s.Context(), "ping", nil) }) })),
	odd("message.own-error-codes",
		"Tools that the client lacks the means for are refused with the codes -32000, 1 and 403 by turns.",
		"Codes are any integers that JSON-RPC does not reserve, or those it keeps for servers.",
		"basic/index#responses", refusingUnable(func(n int) *wire.Error {
			return &wire.Error{Code: []int64{-32000, 1, 403}[n%3], Message: "The client does not support this"}
		})),
	odd("message.rate-limited", "After 30 requests of a session in a second, all but pings are refused with -32000.",
		"The codes from -32000 to -32099 are the server's own (JSON-RPC 2.0, section 5.1), and which requests it "+
			"limits is not said.", "basic/index#responses",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Method != "ping" && r.Method != "initialize" &&
				Count(r.Session, fmt.Sprint("requests at ", time.Now().Unix())) > 30 {
				return nil, &wire.Error{Code: -32000, Message: "Rate limit exceeded"}
			}
			return next(ctx, r)
		})).Replaces("calls").Open("*"),
}
