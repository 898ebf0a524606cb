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

func beyondASCII(r rune) bool { return r > '~' }

// The JSON text of messages.
var spellingOddities = []Oddity{
	{ID: "spelling.members-reversed", Summary: "The members of all objects stand in reverse order.",
		Why:    "Objects are unordered collections of members (RFC 8259, section 4).",
		Source: at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Order: spell.Reversed}.Spell)},
	{ID: "spelling.members-by-length",
		Summary: "The members of all objects stand in the order of the length of their names.",
		Why:     "Objects are unordered collections of members (RFC 8259, section 4).",
		Source:  at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Order: func(a, b string) int { return cmp.Compare(len(a), len(b)) }}.Spell)},
	{ID: "spelling.spaces", Summary: "A space and a tab stand before each token of the JSON text.", Why: sameJSON,
		Source: at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Gap: " \t"}.Spell)},
	{ID: "spelling.newlines", Transports: []string{"http"},
		Summary: "Line feeds and carriage returns stand between the tokens of the JSON text.",
		Why:     "Only stdio forbids newlines in a message.", Source: at("basic/transports#stdio"),
		Untried: streamless,
		Apply:   All(inForm(server.AnswerJSON), spelling(spell.Speller{Gap: "\r\n\t"}.Spell))},
	{ID: "spelling.escaped-beyond-ascii", Summary: "Characters outside ASCII are written as escapes, in lower case.",
		Why: sameJSON, Source: at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Text: spell.Escaping(`\u%04x`, beyondASCII)}.Spell)},
	{ID: "spelling.escaped-everything",
		Summary: "Each character of every string and name is written as an escape, in upper case.",
		Why:     sameJSON, Source: at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Text: spell.Escaping(`\u%04X`, func(rune) bool { return true })}.Spell)},
	{ID: "spelling.escaped-slashes", Summary: "Slashes are escaped, as PHP does.", Why: sameJSON,
		Source: at("basic/index#messages"), Changes: "spelling",
		Apply: spelling(spell.Speller{Text: spell.Solidus}.Spell)},
	{ID: "spelling.unescaped-separators", Summary: "Log messages hold U+0085, U+2028, U+2029 and U+007F unescaped.",
		Why:    "JSON strings may hold them (RFC 8259, section 7), and they are not newlines.",
		Source: at("basic/transports#stdio"),
		Apply: Logged(func(raw string) string {
			return strings.Replace(raw, `"logger":"`, "\"logger\":\"\u0085\u2028\u2029\u007f", 1)
		})},
	{ID: "spelling.whole-numbers-with-fraction",
		Summary: "Whole numbers in results are written with a fraction of zero: 5.0.",
		Why:     "It is the same number, and an integer to JSON Schema.", Source: at("schema#resource"),
		Changes: "spelling",
		Apply: respellingResults(func(n json.Number) any {
			if strings.ContainsAny(string(n), ".eE") {
				return n
			}
			return n + ".0"
		})},
	{ID: "spelling.numbers-with-exponent", Summary: "Numbers in results are written with an exponent: 5e0.",
		Why: "It is the same number (RFC 8259, section 6).", Source: at("basic/index#responses"),
		Changes: "spelling",
		Apply: respellingResults(func(n json.Number) any {
			if strings.ContainsAny(string(n), "eE") {
				return n
			}
			return n + "e+0"
		})},
	{ID: "spelling.code-with-fraction", Summary: "Error codes are written with a fraction of zero: -32601.0.",
		Why: "The value is an integer.", Source: at("basic/index#responses"),
		Apply: Problems("*", func(_ *server.Outgoing, problem object) {
			problem["code"] = json.Number(fmt.Sprint(problem["code"]) + ".0")
		})},
	{ID: "spelling.id-escaped", Summary: "String ids come back with each character as an escape.",
		Why: "It is the same string.", Source: at("basic/index#responses"), Changes: "spelling",
		Apply: Responses("*", func(out *server.Outgoing) {
			var id string
			if json.Unmarshal([]byte(out.Answers.ID.String()), &id) == nil && out.Answers.ID.String()[0] == '"' {
				out.Message["id"] = json.RawMessage(spell.Escaping(`\u%04x`, func(rune) bool { return true })(id))
				out.Raw = nil
			}
		})},
	{ID: "spelling.id-with-fraction", Summary: "Integer ids come back with a fraction of zero: 7.0.",
		Why:    "It is the same number, as servers write it whose language has but one type of number.",
		Source: at("basic/index#responses"), Changes: "spelling",
		Apply: Responses("*", func(out *server.Outgoing) {
			if id := out.Answers.ID.String(); id[0] != '"' && !strings.ContainsAny(id, ".eE") {
				out.Message["id"] = json.RawMessage(id + ".0")
			}
		})},
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
	{ID: "meta.results", Summary: "All results but empty ones have _meta, with values of all types.",
		Why: "Servers may attach metadata to their interactions.", Source: at("basic/index#meta"),
		Apply: withMember("_meta", metadata)},
	{ID: "meta.empty-results", Summary: "Empty results, that of ping among them, have _meta.",
		Why: "An EmptyResult is a Result, which may have _meta.", Source: at("schema#emptyresult"),
		Apply: Responses("*", func(out *server.Outgoing) {
			if result := out.Result(); result != nil && emptied(out.Answers.Method) {
				metaWith(metadata)(result)
			}
		})},
	{ID: "meta.notifications", Summary: "The params of all notifications have _meta.",
		Why: "The params of a notification may have _meta.", Source: at("basic/index#meta"),
		Apply: anyMessage(wire.Notification, metaWith(metadata))},
	{ID: "meta.requests", Summary: "The params of all requests of the server have _meta.",
		Why: "The params of a request may have _meta.", Source: at("basic/index#meta"),
		Apply: anyMessage(wire.Request, metaWith(metadata))},
	{ID: "meta.items", Summary: "Tools, resources, templates and prompts have _meta.",
		Why: "Each of them is defined with _meta.", Source: at("schema#tool"),
		Apply: everyItem(metaWith(metadata))},
	{ID: "meta.contents", Summary: "Content blocks and the contents of resources have _meta.",
		Why: "Each of them is defined with _meta.", Source: at("schema#contentblock"),
		Apply: everyContent(metaWith(metadata))},
	{ID: "meta.empty", Summary: "Results and items have an empty _meta.",
		Why: "_meta is an object with any number of keys.", Source: at("basic/index#meta"),
		Untried: []string{ids.MetaKeyPrefixForm, ids.MetaKeyLabelStart, ids.MetaKeyLabelEnd,
			ids.MetaKeyLabelInterior, ids.MetaKeyPrefixReserved},
		Apply: All(withMember("_meta", object{}), everyItem(Having("_meta", object{})))},
	{ID: "meta.key-forms",
		Summary: "Keys of _meta have all the forms that the text allows: without a name, of one character, with " +
			"every kind of label.",
		Why: "The form of keys allows each of them.", Source: at("basic/index#meta"), Changes: "meta keys",
		Apply: withMember("_meta", object{
			"com.example/": 1, "": 2, "a": 3, "7": 4, "A.b-c_d.E": 5, "x/y": 6, "a1-2b.c--d.e9/0": 7,
			"com.example/a..b__c--d": 8, "Com.EXAMPLE/Key": 9,
		})},
	{ID: "meta.keys-almost-reserved",
		Summary: "Prefixes of _meta keys resemble those that are kept for MCP: mcp/, com.example.mcp/, mcpx.dev/, " +
			"my-mcp.dev/.",
		Why:    "A prefix is reserved only if a label follows mcp or modelcontextprotocol.",
		Source: at("basic/index#meta"), Changes: "meta keys",
		Apply: withMember("_meta", object{"mcp/key": 1, "com.example.mcp/key": 2, "mcpx.dev/key": 3,
			"my-mcp.dev/key": 4, "modelcontextprotocol/key": 5, "mcp": 6})},
}

// naming the ids of the server's requests
var messageOddities = []Oddity{
	{ID: "message.version-unchecked", Summary: "The member jsonrpc is not looked at.",
		Why: "No sentence has a receiver look for what a sender must not do, and JSON-RPC 2.0, section 3, " +
			"recommends to handle objects of version 1.0.",
		Source: at("basic/index#messages"), Changes: "messages understood",
		Apply: func(o *server.Options) {
			o.Behaviour.Valid = func(m *wire.Message) bool {
				return m.Method != "" && m.Has(wire.JSONRPCMissing, wire.JSONRPCWrong)
			}
		}},
	{ID: "message.params-unchecked", Summary: "Params that are not an object are ignored.",
		Why:    "No sentence has a receiver look for what a sender must not do.",
		Source: at("basic/index#messages"), Changes: "messages understood",
		Apply: Understanding(wire.ParamsType)},
	{ID: "message.unknown-members", Summary: "Messages have members beside those of JSON-RPC.",
		Why: "The definitions of messages are not closed.", Source: at("schema#jsonrpcmessage"),
		Apply: Altering(func(out *server.Outgoing) {
			out.Message["x-trace"], out.Message["timestamp"] = object{"id": 1}, 1750237200
		})},
	{ID: "message.unknown-result-members", Summary: "Results have members that nobody defines.",
		Why: "Results MAY follow any JSON object structure.", Source: at("basic/index#responses"),
		Apply: All(withMember("debug", object{"took": 1.5}), withMember("warnings", list{}))},
	{ID: "message.unknown-error-members", Summary: "Errors have members beside code, message and data.",
		Why: "Errors MUST include code and message at minimum.", Source: at("basic/index#responses"),
		Apply: Problems("*", func(_ *server.Outgoing, problem object) {
			problem["help"], problem["retryable"] = "see the manual", false
		})},
	{ID: "message.unknown-params",
		Summary: "Requests of the server, other than pings, and its notifications have params that nobody defines.",
		Why:     "The params of requests and notifications are open.", Source: at("basic/index#requests"),
		Apply: All(
			Params("roots/list", Having("x-hint", "none")), Params("sampling/createMessage", Having("x-hint", "none")),
			Params("elicitation/create", Having("x-hint", "none")),
			anyMessage(wire.Notification, Having("x-hint", list{1})),
		)},
	{ID: "message.unknown-item-members",
		Summary: "Tools, resources, templates, prompts and content blocks have members that nobody defines.",
		Why:     "None of the definitions is closed.", Source: at("schema#tool"),
		Apply: All(everyItem(Having("x-category", "misc")), everyContent(Having("x-rank", 1)))},
	{ID: "message.empty-params",
		Summary: "Requests and notifications without params have an empty object for params.",
		Why:     "params is an optional object.", Source: at("basic/index#notifications"),
		Apply: All(anyMessage(wire.Request, func(object) {}), anyMessage(wire.Notification, func(object) {}))},
	{ID: "message.error-data",
		Summary: "Errors have data: a text, a number, a list, an object, true and null by turns.",
		Why:     "data may be of any type.", Source: at("basic/index#responses"), Changes: "errors",
		Apply: Problems("*", func(out *server.Outgoing, problem object) {
			kinds := list{"text", 7, list{}, object{"a": 1}, true, nil, 0.5, ""}
			if problem["data"] == nil {
				problem["data"] = kinds[Count(out.Session, "data")%len(kinds)]
			}
		})},
	{ID: "message.error-languages", Summary: "The messages of errors are Chinese, with an emoji.",
		Why: "The message is a short text, in any language.", Source: at("schema#jsonrpcerror"),
		Apply: Problems("*", func(_ *server.Outgoing, problem object) { problem["message"] = "请求无法处理 🙁" })},
	{ID: "message.ids-strings", Summary: "The ids of the server's requests are strings.",
		Why: "Ids are strings or integers.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string { return fmt.Sprintf("%q", fmt.Sprintf("srv-%d", n)) })},
	{ID: "message.ids-odd-strings",
		Summary: "The ids of the server's requests have quotes, escapes, spaces and what is not " +
			"ASCII; the first is empty.",
		Why: "Any string is an id.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string {
			if n == 1 {
				return `""`
			}
			return spell.Plain(strings.Repeat(" ", int(n)) + "\"é\\/\u2028\U0001F600\x00\n")
		})},
	{ID: "message.ids-long", Summary: "The ids of the server's requests have 4000 characters.",
		Why: "The length of an id has no limit.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string { return fmt.Sprintf(`"%04000d"`, n) })},
	{ID: "message.ids-negative", Summary: "The ids of the server's requests count down from 0.",
		Why: "Ids are integers, of either sign.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string { return fmt.Sprint(1 - n) })},
	{ID: "message.ids-at-2-53", Summary: "The ids of the server's requests lie just below 2^53.",
		Why: "Ids are integers.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string { return fmt.Sprint(int64(1)<<53 - n) })},
	{ID: "message.ids-beyond-64-bits", Summary: "The ids of the server's requests have 30 digits.",
		Why:    "Integers of JSON have no limit, and the id comes back as it is.",
		Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string {
			return new(big.Int).Add(new(big.Int).Exp(big.NewInt(10), big.NewInt(29), nil), big.NewInt(n)).String()
		})},
	{ID: "message.ids-of-both-types", Summary: "The ids of the server's requests are 1, \"1\", 2, \"2\" and so on.",
		Why: "A string and an integer are different ids.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string {
			if n%2 == 0 {
				return fmt.Sprintf(`"%d"`, n/2)
			}
			return fmt.Sprint(n/2 + 1)
		})},
	{ID: "message.ids-uuid", Summary: "The ids of the server's requests are UUIDs.",
		Why: "Ids are strings or integers.", Source: at("basic/index#requests"), Changes: "ids",
		Apply: renumbered(func(n int64) string { return fmt.Sprintf(`"550e8400-e29b-41d4-a716-%012x"`, n) })},
	{ID: "message.out-of-order",
		Summary: "Every other response to a list, read or get comes 30 ms late, so that others overtake it.",
		Why:     "Responses are tied to requests by their ids, not by their order.",
		Source:  at("basic/index#responses"),
		Apply: Responses("*", func(out *server.Outgoing) {
			if out.Answers.Method != "ping" && out.Answers.Method != "initialize" &&
				Count(out.Session, "order")%2 == 0 {
				out.Delay = 30 * time.Millisecond
			}
		})},
	{ID: "message.slow", Summary: "All responses but those to ping take 300 ms.",
		Why: "The text sets no time for an answer but that of ping.", Source: at("basic/lifecycle#timeouts"),
		Changes: "time",
		Apply:   delayed(300*time.Millisecond, func(r *server.Request) bool { return r.Method != "ping" })},
	{ID: "message.large", Summary: "The result of tools/list has 160,000 characters of metadata.",
		Why: "The length of a message has no limit.", Source: at("basic/index#messages"), Changes: "time",
		Apply: Results("tools/list", func(result object) {
			metaWith(object{"com.example/padding": strings.Repeat("padding ", 20_000)})(result)
		})},
	{ID: "message.deep", Summary: "The result of prompts/list has metadata that is nested 100 deep.",
		Why: "The depth of a message has no limit.", Source: at("basic/index#meta"),
		Apply: Results("prompts/list", func(result object) {
			var deep any = 1
			for range 100 {
				deep = list{object{"d": deep}}
			}
			metaWith(object{"com.example/deep": deep})(result)
		})},
	{ID: "message.requests-in-parallel",
		Summary: "After the handshake the server sends several requests without waiting for the answers.",
		Why:     "Either side may send requests at any time.", Source: at("basic/index#requests"),
		Apply: Ready(func(s *server.Session) { parallel(3, func() { _, _ = s.Call(s.Context(), "ping", nil) }) })},
	{ID: "message.own-error-codes",
		Summary: "Tools that the client lacks the means for are refused with the codes -32000, 1 and 403 by turns.",
		Why:     "Codes are any integers that JSON-RPC does not reserve, or those it keeps for servers.",
		Source:  at("basic/index#responses"),
		Apply: refusingUnable(func(n int) *wire.Error {
			return &wire.Error{Code: []int64{-32000, 1, 403}[n%3], Message: "The client does not support this"}
		})}, {
		ID:      "message.rate-limited",
		Summary: "After 30 requests of a session in a second, all but pings are refused with -32000.",
		Why: "The codes from -32000 to -32099 are the server's own (JSON-RPC 2.0, section 5.1), and which " +
			"requests it limits is not said.",
		Source: at("basic/index#responses"), Changes: "calls",
		Untried: []string{"*"},
		Apply: Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			if r.Method != "ping" && r.Method != "initialize" &&
				Count(r.Session, fmt.Sprint("requests at ", time.Now().Unix())) > 30 {
				return nil, &wire.Error{Code: -32000, Message: "Rate limit exceeded"}
			}
			return next(ctx, r)
		}),
	},
}
