package mockclient

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const (
	notJSON = "hostile/not-json"
)

var baseFaults = []Fault{
	fault("base.truncated", ids.BaseJSONWellFormed, "A message breaks off before its end.",
		Saying(`{"jsonrpc":"2.0","id":"cut","method":"ping"`)).Also(ids.HTTPClientBodySingleMessage),
	fault("base.duplicate-member", ids.BaseJSONUniqueNames, "A message has a member twice.",
		Saying(`{"jsonrpc":"2.0","id":"double","method":"ping","method":"ping"}`)),
	fault("base.message-string", ids.BaseJSONObject, "A message is a string.", Saying(`"ping"`)).
		Also(ids.HTTPClientBodySingleMessage),
	fault("base.jsonrpc-1.0", ids.BaseJSONRPCVersion, "jsonrpc is 1.0.",
		Saying(`{"jsonrpc":"1.0","id":"old","method":"ping"}`)),
	fault("base.method-number", ids.BaseJSONRPCMethodString, "method is a number.",
		Saying(`{"jsonrpc":"2.0","id":"number","method":7}`)).Also(ids.HTTPClientBodySingleMessage),
	fault("base.params-array", ids.BaseJSONRPCParamsObject, "params is an array.",
		Saying(`{"jsonrpc":"2.0","id":"array","method":"ping","params":[]}`)),
	fault("base.rpc-method", ids.BaseJSONRPCRPCPrefix, "A method begins with rpc.", Calling("rpc.discover", nil)).
		Also(ids.LifecycleCapabilityExperimentalGated),
	fault("base.member-case-ignored", ids.BaseJSONRPCMemberCase,
		"A message with the members ID and METHOD is answered like a ping.",
		Before(Replies("after-wrong-case"), `{"jsonrpc":"2.0","id":"wrong-case","result":{}}`)).In(Requests),
	fault("base.batch", ids.BaseBatchNotSent, "Two requests come in an array.", Saying(
		`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","id":"b2","method":"ping"}]`)).
		Also(ids.HTTPClientBodySingleMessage, ids.HTTPClientPostPerMessage),
	fault("base.batch-served", ids.BaseBatchNotServed, "A request of a batch is answered with a result.",
		Before(Replies("after-batch"), `{"jsonrpc":"2.0","id":"batch-1","result":{}}`)).In(Envelopes),
	fault("base.answers-none", ids.BaseResponsePresent, "No request of the server is answered.", Dropping(Answers)).
		In(Requests).
		Also(ids.ArchitectureClientRouting, ids.HTTPClientMessagesBeforeResponse, ids.PingEitherSide,
			ids.PingResponsePrompt),
	fault("base.response-twice", ids.BaseResponseOnce, "Requests of the server are answered twice.", Twice(Results)).
		In(Requests),
	fault("base.response-other-id", ids.BaseResponseOnlyToRequests, "An answer has an id that no request has.",
		Replacing(Replies("a word"), `"a word"`, `"another"`)).In(Requests).
		Also(ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.BaseResponsePresent, ids.PingEitherSide,
			ids.PingResponsePrompt),
	fault("base.response-without-id", ids.BaseResponseIDEcho, "A result has no id.",
		Editing(Replies("a word"), Lacking("id"))).In(Requests).
		Also(ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.BaseResponsePresent, ids.PingEitherSide,
			ids.PingResponsePrompt),
	fault("base.id-as-number", ids.BaseResponseIDTypeEcho, "The id \"1234\" comes back as a number.",
		Replacing(Replies("1234"), `"1234"`, "1234")).In(Requests),
	fault("base.string-ids-as-zero", ids.BaseRequestStringIDServed,
		"A request whose id is a string is answered with the id 0.", Editing(Named, Having("id", 0))).In(Requests).
		Also(ids.BaseResponseOnlyToRequests, ids.BaseResponseOnce),
	fault("base.stray-refused", ids.BaseResponseOnlyToRequests,
		"A response that the client did not ask for is answered with an error without an id.",
		Wrapping(func(conn transport.Conn) transport.Conn {
			refused := false
			return &Sender{Conn: conn, Hook: func(m *wire.Message, out outgoing) []outgoing {
				if refused || !heard(conn, `"id":"hello"`) {
					return []outgoing{out}
				}
				refused = true
				return []outgoing{{Raw: []byte(
					`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)},
					out}
			}}
		})).In("faults/responses").Also(ids.BaseResponseIDEcho),
	fault("base.neither-result-nor-error", ids.BaseResponseResultOrError, "A response has neither result nor error.",
		Editing(Replies("a word"), Lacking("result"))).In(Requests).
		Also(ids.ArchitectureClientRouting, ids.BaseParamsOmitted, ids.BaseRequestStringIDServed,
			ids.BaseResponsePresent, ids.HTTPClientBodySingleMessage, ids.HTTPClientMessagesBeforeResponse,
			ids.PingEitherSide, ids.PingResponsePrompt),
	fault("base.error-and-result", ids.BaseResponseNotBoth, "A response has both a result and an error.",
		Editing(Replies("a word"), Having("error", object{"code": -32603, "message": "Internal error"}))).In(Requests).
		Also(ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.PingEitherSide, ids.PingResponsePrompt),
	fault("base.result-array", ids.BaseResponseResultObject, "A result is an array.",
		Editing(Replies("a word"), Having("result", list{}))).In(Requests),
	fault("base.error-text", ids.BaseErrorObject, "An error is a text.",
		Editing(Refusals, Having("error", "Method not found"))).In(Requests).Also(ids.BaseErrorMethodNotFound),
	fault("base.error-without-code", ids.BaseErrorCodePresent, "An error has no code.", editingError(Lacking("code"))).
		In(Requests).Also(ids.BaseErrorMethodNotFound),
	fault("base.error-without-message", ids.BaseErrorMessagePresent, "An error has no message.",
		editingError(Lacking("message"))).In(Requests),
	fault("base.error-code-text", ids.BaseErrorCodeInteger, "The code of an error is a string.",
		editingError(Having("code", "-32601"))).In(Requests).Also(ids.BaseErrorMethodNotFound),
	fault("base.error-message-number", ids.BaseErrorMessageString, "The message of an error is a number.",
		editingError(Having("message", 32601))).In(Requests),
	fault("base.error-message-dump", ids.BaseErrorMessageConcise,
		"The message of an error is a dump of all that the client knows.",
		editingError(Having("message", "Method not found\n"+
			strings.Repeat("handlers[sampling/createMessage] = function\n", 40)))).In(Requests),
	fault("base.reserved-code", ids.BaseErrorReservedCodes, "An error has a reserved code that has no meaning.",
		editingError(Having("code", -32650))).In(Requests).Also(ids.BaseErrorMethodNotFound),
	fault("base.unknown-method-code", ids.BaseErrorMethodNotFound,
		"A request of an unknown method is refused with -32603.", editingError(Having("code", -32603))).In(Requests),
	fault("base.unknown-method-result", ids.BaseErrorMethodNotFound,
		"A request of an unknown method is answered with a result.", Editing(Refusals, Served)).In(Requests),
	fault("base.unknown-method-death", ids.BaseErrorMethodNotFound, "A request of an unknown method ends the client.",
		DyingOf("com.example/no-such-method")).In(Requests).Also(ids.BaseResponsePresent),
	fault("base.unreadable-id-guessed", ids.BaseErrorUndetectableID,
		"Text that is not JSON is answered with an error whose id is a guess.",
		Before(Replies("after"), `{"jsonrpc":"2.0","id":0,"error":{"code":-32700,"message":"Parse error"}}`)).
		In(notJSON),
	fault("base.refuses-after-noise", ids.BaseErrorParseSurvive, "After a text that is not JSON all pings are refused.",
		Refusing(Replies("after"))).In(notJSON),
	fault("base.unknown-kin-code", ids.BaseErrorMethodNotFound,
		"A request of an unknown method whose name begins like that of a known one is refused with -32602.",
		Editing(Replies("unknown-kin"), Having("error", object{"code": -32602, "message": "Invalid params"}))).
		In(Requests),
	fault("base.invalid-params-code", ids.BaseErrorInvalidParams,
		"A request with invalid params is refused with -32603.", editingError(Having("code", -32603))).
		In("features/sampling"),
	fault("base.invalid-request-code", ids.BaseErrorInvalidRequest,
		"A message that is not a request is refused with -32603.", editingError(Having("code", -32603))).In(Envelopes),
	fault("base.invalid-request-served", ids.BaseErrorInvalidRequest, "A message without method gets a result.",
		Before(Replies("after"), `{"jsonrpc":"2.0","id":"no-method","result":{}}`)).In(Envelopes),
	fault("base.parse-error-code", ids.BaseErrorParseError, "Text that is not JSON is answered with -32603.",
		Before(Replies("after"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`)).In(notJSON),
	fault("base.parse-death", ids.BaseErrorParseSurvive, "Text that is not JSON ends the client.",
		DyingOf("not JSON at all")).In(notJSON).Also(ids.BaseResponsePresent),
	fault("base.request-without-id", ids.BaseRequestIDPresent, "A request has no id.",
		Saying(`{"jsonrpc":"2.0","method":"tools/list"}`)),
	fault("base.request-id-fraction", ids.BaseRequestIDType, "The id of a request has a fraction.",
		Saying(`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`)),
	fault("base.request-id-object", ids.BaseRequestIDType, "The id of a request is an object.",
		Saying(`{"jsonrpc":"2.0","id":{},"method":"ping"}`)),
	fault("base.request-id-null", ids.BaseRequestIDNotNull, "The id of a request is null.",
		Saying(`{"jsonrpc":"2.0","id":null,"method":"ping"}`)),
	fault("base.request-id-reused", ids.BaseRequestIDUnique, "Two requests have the same id.",
		Doing(func(ctx context.Context, s *client.Session) {
			if p, err := s.StartID(ctx, wire.IntID(1), "ping", nil); err == nil {
				_, _ = p.Await(ctx)
			}
		})),
	fault("base.id-spaces-mixed", ids.BaseRequestIDSpacePerSide,
		"A ping of the server with the id of a request that waits is refused, as if ids were shared.",
		clashing(Numbered, func(out outgoing) []outgoing {
			out.Raw = client.Marshal(object{
				"jsonrpc": "2.0", "id": json.RawMessage(wire.Parse(out.Raw).ID.String()),
				"error": object{"code": -32600, "message": "Invalid request"},
			})
			return []outgoing{out}
		})).In(Requests),
	fault("base.id-spaces-loose", ids.BaseRequestIDSpacePerSide,
		"The client does not answer a ping with the id of one of its waiting requests.",
		clashing(Named, func(outgoing) []outgoing { return nil })).In(Requests).Also(ids.BaseResponsePresent),
	// github.com/Gitlawb/zero/pull/942
	fault("base.id-spaces-mistaken", ids.BaseRequestIDSpacePerSide,
		"A ping of the server with the id of a request that waits is taken for the answer to that: the client goes "+
			"on, and the ping stays unanswered.", Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if !Numbered(m) || !waiting(conn.Log(), m.ID) {
				return false
			}
			answer := client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()),
				"result": object{"tools": list{}}})
			_, _ = conn.Log().Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: answer})
			return true
		})).In(Requests),
	fault("base.id-inherited-refused", ids.BaseRequestStringIDServed,
		"A ping whose id is the name of a member that every JavaScript object has is refused.",
		Refusing(Replies("constructor"))).Seen(byValue).In(Requests),
	fault("base.id-cut-to-32-bits", ids.BaseRequestIntegerIDServed, "The id of a ping comes back cut to 32 bits.",
		Replacing(Replies(2147483648), "2147483648", "-2147483648")).Seen(byValue).In(Requests).
		Also(ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.BaseResponseOnce),
	fault("base.spelling-refused", ids.BaseJSONAnySpelling, "A ping with a blank before a colon is refused.",
		Refusing(Replies("spelling: blanks between tokens"))).Seen(byValue).In(Requests),
	fault("base.spelling-ignored", ids.BaseJSONAnySpelling,
		"A ping whose members stand in another order is not answered.",
		Dropping(Replies("spelling: members in another order"))).Seen(byValue).In(Requests).
		Also(ids.BaseResponsePresent),
	fault("base.meta-inherited-refused", ids.MetaAttachRequest,
		"A ping with a _meta that has the name of a member that every JavaScript object has is refused.",
		Refusing(Replies("meta: a name of JavaScript"))).Seen(byValue).In(Requests),
	fault("base.token-large-refused", ids.ProgressTokenAnyMeans,
		"A ping whose progress token does not fit into 32 bits is refused.",
		Refusing(Replies("token: beyond 31 bits"))).Seen(byValue).In(Requests).Also(ids.ProgressRequest),
	fault("base.id-trimmed", ids.BaseRequestStringIDServed, "The id of a ping loses the blanks around it.",
		Replacing(Replies(" pad "), `" pad "`, `"pad"`)).In(Requests).
		Also(ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent),
	fault("base.string-id-refused", ids.BaseRequestStringIDServed,
		"A ping whose id is a string of letters beyond ASCII is refused.", Refusing(Replies("ключ-鍵-🔑", ""))).
		In(Requests),
	fault("base.negative-id-refused", ids.BaseRequestIntegerIDServed, "A ping whose id is negative is refused.",
		Refusing(Replies(-7))).In(Requests),
	fault("base.large-id-cut", ids.BaseRequestIntegerIDServed, "A ping with a large id is answered with another id.",
		Replacing(Replies(1<<53-1), "9007199254740991", "9007199254740992")).In(Requests).
		Also(ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent),
	fault("base.params-strict", ids.BaseParamsOpen, "A ping with an additional member in its params is refused.",
		Refusing(Replies("with-member"))).In(Requests),
	fault("base.params-required", ids.BaseParamsOmitted, "A ping without params is refused.",
		Refusing(Replies("a word"))).In(Requests).
		Also(ids.BaseRequestStringIDServed, ids.PingEitherSide, ids.PingResponsePrompt),
	fault("base.notification-answered", ids.BaseNotificationNoResponse, "A notification of the server is answered.",
		Before(Calls("tools/call"), `{"jsonrpc":"2.0","id":null,"result":{}}`)).In("lists/changed").
		Also(ids.BaseResponseIDEcho),
	fault("base.unknown-notification-refused", ids.BaseNotificationUnknownNoResponse,
		"An unknown notification is refused with an error.", Before(Replies("after-unknown"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)).In(Notifications).
		Also(ids.BaseResponseIDEcho),
	fault("base.malformed-notification-refused", ids.BaseNotificationMalformedNoResponse,
		"A malformed notification is refused with an error.", Before(Replies("after-malformed"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid params"}}`)).In(Notifications).
		Also(ids.BaseResponseIDEcho),
	fault("base.notification-with-id", ids.BaseNotificationNoID, "notifications/initialized has an id.",
		Editing(Calls("notifications/initialized"), Having("id", "n1"))).Also(ids.LifecycleInitInitializedSent),
	fault("base.utf-16-surrogate", ids.BaseMessageUTF8, "A message holds bytes that are not UTF-8.",
		Saying("{\"jsonrpc\":\"2.0\",\"id\":\"\xed\xa0\x80\",\"method\":\"ping\"}")),
	fault("base.unknown-methods-used", ids.LifecycleCapabilityExperimentalGated,
		"The client sends a request of an unknown method, without any capability for it.",
		Calling("com.example/extension", nil)),
	fault("base.method-and-result", ids.SchemaJSONRPCMessage, "A message has both a method and a result.",
		Saying(`{"jsonrpc":"2.0","id":"both","method":"ping","result":{}}`)).Also(ids.BaseResponseOnlyToRequests),
	fault("base.error-data-death", ids.BaseErrorDataFree, "An error with data ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Kind == wire.ErrorResponse &&
				wire.At(e.Msg.Value(), "error", "data") != nil
		})).In("features/errors"),
	fault("base.error-null-data-death", ids.BaseErrorDataFree, "An error with data that is null ends the client.",
		Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage || e.Msg.Kind != wire.ErrorResponse {
				return false
			}
			failure, _ := wire.At(e.Msg.Value(), "error").(object)
			data, has := failure["data"]
			return has && data == nil
		})).Seen(byValue).In("features/errors"),
	fault("base.server-method", ids.SchemaClientRequest, "The client sends a request that only servers send.",
		Calling("roots/list", nil)),
	fault("base.server-notification", ids.SchemaClientNotification,
		"The client sends a notification that only servers send.", Notifying("notifications/tools/list_changed", nil)),
}

// editingError changes the error objects of responses.
func editingError(change func(e object)) apply {
	return Editing(Refusals, func(m object) {
		if e, ok := m["error"].(object); ok {
			change(e)
		}
	})
}

// clashing replaces the answers to requests of the server that have the id of a
// waiting request of the client. An id that is a string also counts as the number in
// it.
func clashing(which match, hook func(out outgoing) []outgoing) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if which(m) && waiting(conn.Log(), m.ID) {
			return hook(out)
		}
		return []outgoing{out}
	})
}

func waiting(log *wire.Log, id wire.ID) bool {
	wait := false
	for _, e := range log.Events() {
		if e.Kind != wire.KindMessage || !e.Msg.ID.Resembles(id) {
			continue
		}
		switch {
		case e.From == wire.Client && e.Msg.Kind == wire.Request:
			wait = true
		case e.From == wire.Server && e.Msg.IsResponse():
			wait = false
		}
	}
	return wait
}

var metaFaults = []Fault{
	fault("meta.array", ids.MetaObject, "_meta of a tool call is an array.",
		Params("tools/call", Having("_meta", list{}))),
	fault("meta.text", ids.MetaObject, "_meta is a string.", Calling("ping", object{"_meta": "text"})),
	metaKey("segments", ids.MetaKeySegments, "A key of _meta has two slashes.", "com.example/a/b"),
	metaKey("name-start", ids.MetaKeyNameStart, "The name of a key of _meta begins with a hyphen.",
		"com.example/-name"),
	metaKey("name-end", ids.MetaKeyNameEnd, "The name of a key of _meta ends with a dot.", "name."),
	metaKey("name-interior", ids.MetaKeyNameInterior, "The name of a key of _meta holds a blank.", "a name"),
	metaKey("prefix-form", ids.MetaKeyPrefixForm, "The prefix of a key of _meta has an empty label.",
		"com..example/name"),
	metaKey("label-start", ids.MetaKeyLabelStart, "A label of a prefix begins with a digit.", "com.1example/name"),
	metaKey("label-end", ids.MetaKeyLabelEnd, "A label of a prefix ends with a hyphen.", "com.example-/name"),
	metaKey("label-interior", ids.MetaKeyLabelInterior, "A label of a prefix holds an underscore.",
		"com.exa_mple/name"),
	metaKey("prefix-reserved", ids.MetaKeyPrefixReserved, "A prefix is one that is reserved for MCP.",
		"tools.mcp.com/name"),
	metaKey("own-prefix", ids.MetaKeyPrefixReserved, "A key that MCP does not define has MCP's own prefix.",
		"modelcontextprotocol.io/trace"),
	fault("meta.request-refused", ids.MetaAttachRequest, "A ping with _meta is refused.",
		Refusing(Replies("with-meta"))).In(Requests),
}

func metaKey(id, requirement, summary, key string) Fault {
	return fault("meta."+id, requirement, summary, Calling("ping", object{"_meta": object{key: 1}}))
}
