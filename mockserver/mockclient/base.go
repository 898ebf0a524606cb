package mockclient

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const (
	notJSON = "hostile/not-json"
)

var baseFaults = []Fault{
	{ID: "base.truncated", Requirement: ids.BaseJSONWellFormed, Summary: "A message breaks off before its end.",
		Collateral: []string{ids.HTTPClientBodySingleMessage},
		Apply:      Saying(`{"jsonrpc":"2.0","id":"cut","method":"ping"`)},
	{ID: "base.duplicate-member", Requirement: ids.BaseJSONUniqueNames, Summary: "A message has a member twice.",
		Apply: Saying(`{"jsonrpc":"2.0","id":"double","method":"ping","method":"ping"}`)},
	{ID: "base.message-string", Requirement: ids.BaseJSONObject, Summary: "A message is a string.",
		Collateral: []string{ids.HTTPClientBodySingleMessage}, Apply: Saying(`"ping"`)},
	{ID: "base.jsonrpc-1.0", Requirement: ids.BaseJSONRPCVersion, Summary: "jsonrpc is 1.0.",
		Apply: Saying(`{"jsonrpc":"1.0","id":"old","method":"ping"}`)},
	{ID: "base.method-number", Requirement: ids.BaseJSONRPCMethodString, Summary: "method is a number.",
		Collateral: []string{ids.HTTPClientBodySingleMessage},
		Apply:      Saying(`{"jsonrpc":"2.0","id":"number","method":7}`)},
	{ID: "base.params-array", Requirement: ids.BaseJSONRPCParamsObject, Summary: "params is an array.",
		Apply: Saying(`{"jsonrpc":"2.0","id":"array","method":"ping","params":[]}`)},
	{ID: "base.rpc-method", Requirement: ids.BaseJSONRPCRPCPrefix, Summary: "A method begins with rpc.",
		Collateral: []string{ids.LifecycleCapabilityExperimentalGated}, Apply: Calling("rpc.discover", nil)},
	{ID: "base.member-case-ignored", Requirement: ids.BaseJSONRPCMemberCase, Scenario: Requests,
		Summary: "A message with the members ID and METHOD is answered like a ping.",
		Apply:   Before(Replies("after-wrong-case"), `{"jsonrpc":"2.0","id":"wrong-case","result":{}}`)},
	{ID: "base.batch", Requirement: ids.BaseBatchNotSent, Summary: "Two requests come in an array.",
		Collateral: []string{ids.HTTPClientBodySingleMessage, ids.HTTPClientPostPerMessage},
		Apply: Saying(
			`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","id":"b2","method":"ping"}]`)},
	{ID: "base.batch-served", Requirement: ids.BaseBatchNotServed, Scenario: Envelopes,
		Summary: "A request of a batch is answered with a result.",
		Apply:   Before(Replies("after-batch"), `{"jsonrpc":"2.0","id":"batch-1","result":{}}`)},
	{ID: "base.answers-none", Requirement: ids.BaseResponsePresent, Scenario: Requests,
		Summary: "No request of the server is answered.",
		Collateral: []string{ids.ArchitectureClientRouting, ids.HTTPClientMessagesBeforeResponse, ids.PingEitherSide,
			ids.PingResponsePrompt},
		Apply: Dropping(Answers)},
	{ID: "base.response-twice", Requirement: ids.BaseResponseOnce, Scenario: Requests,
		Summary: "Requests of the server are answered twice.", Apply: Twice(Results)},
	{ID: "base.response-other-id", Requirement: ids.BaseResponseOnlyToRequests, Scenario: Requests,
		Summary: "An answer has an id that no request has.",
		Collateral: []string{ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.BaseResponsePresent,
			ids.PingEitherSide, ids.PingResponsePrompt},
		Apply: Replacing(Replies("a word"), `"a word"`, `"another"`)},
	{ID: "base.response-without-id", Requirement: ids.BaseResponseIDEcho, Scenario: Requests,
		Summary: "A result has no id.",
		Collateral: []string{ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.BaseResponsePresent,
			ids.PingEitherSide, ids.PingResponsePrompt},
		Apply: Editing(Replies("a word"), Lacking("id"))},
	{ID: "base.id-as-number", Requirement: ids.BaseResponseIDTypeEcho, Scenario: Requests,
		Summary: "The id \"1234\" comes back as a number.", Apply: Replacing(Replies("1234"), `"1234"`, "1234")},
	{ID: "base.string-ids-as-zero", Requirement: ids.BaseRequestStringIDServed, Scenario: Requests,
		Summary: "A request whose id is a string is answered with the id 0.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseOnce,
			ids.PingResponsePrompt},
		Apply: Editing(Named, Having("id", 0))},
	{ID: "base.stray-refused", Requirement: ids.BaseResponseOnlyToRequests, Scenario: "faults/responses",
		Summary:    "A response that the client did not ask for is answered with an error without an id.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
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
		})},
	{ID: "base.neither-result-nor-error", Requirement: ids.BaseResponseResultOrError, Scenario: Requests,
		Summary: "A response has neither result nor error.",
		Collateral: []string{ids.ArchitectureClientRouting, ids.BaseParamsOmitted, ids.BaseRequestStringIDServed,
			ids.BaseResponsePresent, ids.HTTPClientBodySingleMessage, ids.HTTPClientMessagesBeforeResponse,
			ids.PingEitherSide, ids.PingResponsePrompt},
		Apply: Editing(Replies("a word"), Lacking("result"))},
	{ID: "base.error-and-result", Requirement: ids.BaseResponseNotBoth, Scenario: Requests,
		Summary: "A response has both a result and an error.",
		Collateral: []string{ids.BaseParamsOmitted, ids.BaseRequestStringIDServed, ids.PingEitherSide,
			ids.PingResponsePrompt},
		Apply: Editing(Replies("a word"), Having("error", object{"code": -32603, "message": "Internal error"}))},
	{ID: "base.result-array", Requirement: ids.BaseResponseResultObject, Scenario: Requests,
		Summary: "A result is an array.", Apply: Editing(Replies("a word"), Having("result", list{}))},
	{ID: "base.error-text", Requirement: ids.BaseErrorObject, Scenario: Requests, Summary: "An error is a text.",
		Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply:      Editing(Refusals, Having("error", "Method not found"))},
	{ID: "base.error-without-code", Requirement: ids.BaseErrorCodePresent, Scenario: Requests,
		Summary: "An error has no code.", Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply: editingError(Lacking("code"))},
	{ID: "base.error-without-message", Requirement: ids.BaseErrorMessagePresent, Scenario: Requests,
		Summary: "An error has no message.", Apply: editingError(Lacking("message"))},
	{ID: "base.error-code-text", Requirement: ids.BaseErrorCodeInteger, Scenario: Requests,
		Summary: "The code of an error is a string.", Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply: editingError(Having("code", "-32601"))},
	{ID: "base.error-message-number", Requirement: ids.BaseErrorMessageString, Scenario: Requests,
		Summary: "The message of an error is a number.", Apply: editingError(Having("message", 32601))},
	{ID: "base.error-message-dump", Requirement: ids.BaseErrorMessageConcise, Scenario: Requests,
		Summary: "The message of an error is a dump of all that the client knows.",
		Apply: editingError(Having("message", "Method not found\n"+
			strings.Repeat("handlers[sampling/createMessage] = function\n", 40))),
	},
	{ID: "base.reserved-code", Requirement: ids.BaseErrorReservedCodes, Scenario: Requests,
		Summary:    "An error has a reserved code that has no meaning.",
		Collateral: []string{ids.BaseErrorMethodNotFound}, Apply: editingError(Having("code", -32650))},
	{ID: "base.unknown-method-code", Requirement: ids.BaseErrorMethodNotFound, Scenario: Requests,
		Summary: "A request of an unknown method is refused with -32603.",
		Apply:   editingError(Having("code", -32603))},
	{ID: "base.unknown-method-result", Requirement: ids.BaseErrorMethodNotFound, Scenario: Requests,
		Summary: "A request of an unknown method is answered with a result.", Apply: Editing(Refusals, Served)},
	{ID: "base.unknown-method-death", Requirement: ids.BaseErrorMethodNotFound, Scenario: Requests,
		Summary:    "A request of an unknown method ends the client.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: DyingOf("com.example/no-such-method")},
	{ID: "base.unreadable-id-guessed", Requirement: ids.BaseErrorUndetectableID, Scenario: notJSON,
		Summary: "Text that is not JSON is answered with an error whose id is a guess.",
		Apply:   Before(Replies("after"), `{"jsonrpc":"2.0","id":0,"error":{"code":-32700,"message":"Parse error"}}`)},
	{ID: "base.refuses-after-noise", Requirement: ids.BaseErrorParseSurvive, Scenario: notJSON,
		Summary: "After a text that is not JSON all pings are refused.", Apply: Refusing(Replies("after"))},
	{ID: "base.unknown-kin-code", Requirement: ids.BaseErrorMethodNotFound, Scenario: Requests,
		Summary: "A request of an unknown method whose name begins like that of a known one is refused with -32602.",
		Apply:   Editing(Replies("unknown-kin"), Having("error", object{"code": -32602, "message": "Invalid params"}))},
	{ID: "base.invalid-params-code", Requirement: ids.BaseErrorInvalidParams, Scenario: "features/sampling",
		Summary: "A request with invalid params is refused with -32603.",
		Apply:   editingError(Having("code", -32603))},
	{ID: "base.invalid-request-code", Requirement: ids.BaseErrorInvalidRequest, Scenario: Envelopes,
		Summary: "A message that is not a request is refused with -32603.",
		Apply:   editingError(Having("code", -32603))},
	{ID: "base.invalid-request-served", Requirement: ids.BaseErrorInvalidRequest, Scenario: Envelopes,
		Summary: "A message without method gets a result.",
		Apply:   Before(Replies("after"), `{"jsonrpc":"2.0","id":"no-method","result":{}}`)},
	{ID: "base.parse-error-code", Requirement: ids.BaseErrorParseError, Scenario: notJSON,
		Summary: "Text that is not JSON is answered with -32603.",
		Apply: Before(Replies("after"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`)},
	{ID: "base.parse-death", Requirement: ids.BaseErrorParseSurvive, Scenario: notJSON,
		Summary: "Text that is not JSON ends the client.", Collateral: []string{ids.BaseResponsePresent},
		Apply: DyingOf("not JSON at all")},
	{ID: "base.request-without-id", Requirement: ids.BaseRequestIDPresent, Summary: "A request has no id.",
		Apply: Saying(`{"jsonrpc":"2.0","method":"tools/list"}`)},
	{ID: "base.request-id-fraction", Requirement: ids.BaseRequestIDType,
		Summary: "The id of a request has a fraction.",
		Apply:   Saying(`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`)},
	{ID: "base.request-id-object", Requirement: ids.BaseRequestIDType, Summary: "The id of a request is an object.",
		Apply: Saying(`{"jsonrpc":"2.0","id":{},"method":"ping"}`)},
	{ID: "base.request-id-null", Requirement: ids.BaseRequestIDNotNull, Summary: "The id of a request is null.",
		Apply: Saying(`{"jsonrpc":"2.0","id":null,"method":"ping"}`)},
	{ID: "base.request-id-reused", Requirement: ids.BaseRequestIDUnique, Summary: "Two requests have the same id.",
		Apply: Doing(func(ctx context.Context, s *client.Session) {
			if p, err := s.StartID(ctx, wire.IntID(1), "ping", nil); err == nil {
				_, _ = p.Await(ctx)
			}
		})},
	{ID: "base.id-spaces-mixed", Requirement: ids.BaseRequestIDSpacePerSide, Scenario: Requests,
		Summary: "A ping of the server with the id of a request that waits is refused, as if ids were shared.",
		Apply: clashing(Numbered, func(out outgoing) []outgoing {
			out.Raw = client.Marshal(object{
				"jsonrpc": "2.0", "id": json.RawMessage(wire.Parse(out.Raw).ID.String()),
				"error": object{"code": -32600, "message": "Invalid request"},
			})
			return []outgoing{out}
		})},
	{ID: "base.id-spaces-loose", Requirement: ids.BaseRequestIDSpacePerSide, Scenario: Requests,
		Summary:    "The client does not answer a ping with the id of one of its waiting requests.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      clashing(Named, func(outgoing) []outgoing { return nil })},
	// github.com/Gitlawb/zero/pull/942
	{ID: "base.id-spaces-mistaken", Requirement: ids.BaseRequestIDSpacePerSide, Scenario: Requests,
		Summary: "A ping of the server with the id of a request that waits is taken for the answer to that: " +
			"the client goes on, and the ping stays unanswered.",
		Apply: Withholding(func(conn transport.Conn, m *wire.Message) bool {
			if !Numbered(m) || !waiting(conn.Log(), m.ID) {
				return false
			}
			answer := client.Marshal(object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()),
				"result": object{"tools": list{}}})
			_, _ = conn.Log().Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Raw: answer})
			return true
		})},
	{ID: "base.id-inherited-refused", Requirement: ids.BaseRequestStringIDServed, Form: mockserver.ByValue,
		Scenario: Requests,
		Summary:  "A ping whose id is the name of a member that every JavaScript object has is refused.",
		Apply:    Refusing(Replies("constructor"))},
	{ID: "base.id-cut-to-32-bits", Requirement: ids.BaseRequestIntegerIDServed, Form: mockserver.ByValue,
		Scenario: Requests, Summary: "The id of a ping comes back cut to 32 bits.",
		Collateral: []string{ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent, ids.BaseResponseIDEcho,
			ids.BaseResponseOnce},
		Apply: Replacing(Replies(2147483648), "2147483648", "-2147483648")},
	{ID: "base.spelling-refused", Requirement: ids.BaseJSONAnySpelling, Form: mockserver.ByValue, Scenario: Requests,
		Summary: "A ping with a blank before a colon is refused.",
		Apply:   Refusing(Replies("spelling: blanks between tokens"))},
	{ID: "base.spelling-ignored", Requirement: ids.BaseJSONAnySpelling, Form: mockserver.ByValue, Scenario: Requests,
		Summary:    "A ping whose members stand in another order is not answered.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      Dropping(Replies("spelling: members in another order"))},
	{ID: "base.meta-inherited-refused", Requirement: ids.MetaAttachRequest, Form: mockserver.ByValue,
		Scenario: Requests,
		Summary:  "A ping with a _meta that has the name of a member that every JavaScript object has is refused.",
		Apply:    Refusing(Replies("meta: a name of JavaScript"))},
	{ID: "base.token-large-refused", Requirement: ids.ProgressTokenAnyMeans, Form: mockserver.ByValue,
		Scenario: Requests, Summary: "A ping whose progress token does not fit into 32 bits is refused.",
		Collateral: []string{ids.ProgressRequest}, Apply: Refusing(Replies("token: beyond 31 bits"))},
	{ID: "base.id-trimmed", Requirement: ids.BaseRequestStringIDServed, Scenario: Requests,
		Summary:    "The id of a ping loses the blanks around it.",
		Collateral: []string{ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent},
		Apply:      Replacing(Replies(" pad "), `" pad "`, `"pad"`)},
	{ID: "base.string-id-refused", Requirement: ids.BaseRequestStringIDServed, Scenario: Requests,
		Summary: "A ping whose id is a string of letters beyond ASCII is refused.",
		Apply:   Refusing(Replies("ключ-鍵-🔑", ""))},
	{ID: "base.negative-id-refused", Requirement: ids.BaseRequestIntegerIDServed, Scenario: Requests,
		Summary: "A ping whose id is negative is refused.", Apply: Refusing(Replies(-7))},
	{ID: "base.large-id-cut", Requirement: ids.BaseRequestIntegerIDServed, Scenario: Requests,
		Summary:    "A ping with a large id is answered with another id.",
		Collateral: []string{ids.BaseResponseOnlyToRequests, ids.BaseResponsePresent},
		Apply:      Replacing(Replies(1<<53-1), "9007199254740991", "9007199254740992")},
	{ID: "base.params-strict", Requirement: ids.BaseParamsOpen, Scenario: Requests,
		Summary: "A ping with an additional member in its params is refused.",
		Apply:   Refusing(Replies("with-member"))},
	{ID: "base.params-required", Requirement: ids.BaseParamsOmitted, Scenario: Requests,
		Summary:    "A ping without params is refused.",
		Collateral: []string{ids.BaseRequestStringIDServed, ids.PingEitherSide, ids.PingResponsePrompt},
		Apply:      Refusing(Replies("a word"))},
	{ID: "base.notification-answered", Requirement: ids.BaseNotificationNoResponse, Scenario: "lists/changed",
		Summary: "A notification of the server is answered.", Collateral: []string{ids.BaseResponseIDEcho},
		Apply: Before(Calls("tools/call"), `{"jsonrpc":"2.0","id":null,"result":{}}`)},
	{ID: "base.unknown-notification-refused", Requirement: ids.BaseNotificationUnknownNoResponse,
		Scenario: Notifications, Summary: "An unknown notification is refused with an error.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: Before(Replies("after-unknown"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`)},
	{ID: "base.malformed-notification-refused", Requirement: ids.BaseNotificationMalformedNoResponse,
		Scenario: Notifications, Summary: "A malformed notification is refused with an error.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: Before(Replies("after-malformed"),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Invalid params"}}`)},
	{ID: "base.notification-with-id", Requirement: ids.BaseNotificationNoID,
		Summary: "notifications/initialized has an id.", Collateral: []string{ids.LifecycleInitInitializedSent},
		Apply: Editing(Calls("notifications/initialized"), Having("id", "n1"))},
	{ID: "base.utf-16-surrogate", Requirement: ids.BaseMessageUTF8,
		Summary: "A message holds bytes that are not UTF-8.",
		Apply:   Saying("{\"jsonrpc\":\"2.0\",\"id\":\"\xed\xa0\x80\",\"method\":\"ping\"}")},
	{ID: "base.unknown-methods-used", Requirement: ids.LifecycleCapabilityExperimentalGated,
		Summary: "The client sends a request of an unknown method, without any capability for it.",
		Apply:   Calling("com.example/extension", nil)},
	{ID: "base.method-and-result", Requirement: ids.SchemaJSONRPCMessage,
		Summary:    "A message has both a method and a result.",
		Collateral: []string{ids.BaseResponseOnlyToRequests},
		Apply:      Saying(`{"jsonrpc":"2.0","id":"both","method":"ping","result":{}}`)},
	{ID: "base.error-data-death", Requirement: ids.BaseErrorDataFree, Scenario: "features/errors",
		Summary: "An error with data ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.Kind == wire.ErrorResponse &&
				wire.At(e.Msg.Value(), "error", "data") != nil
		})},
	{ID: "base.error-null-data-death", Requirement: ids.BaseErrorDataFree, Form: mockserver.ByValue,
		Scenario: "features/errors", Summary: "An error with data that is null ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage || e.Msg.Kind != wire.ErrorResponse {
				return false
			}
			failure, _ := wire.At(e.Msg.Value(), "error").(object)
			data, has := failure["data"]
			return has && data == nil
		})},
	{ID: "base.server-method", Requirement: ids.SchemaClientRequest,
		Summary: "The client sends a request that only servers send.", Apply: Calling("roots/list", nil)},
	{ID: "base.server-notification", Requirement: ids.SchemaClientNotification,
		Summary: "The client sends a notification that only servers send.",
		Apply:   Notifying("notifications/tools/list_changed", nil)},
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
	{ID: "meta.array", Requirement: ids.MetaObject, Summary: "_meta of a tool call is an array.",
		Apply: Params("tools/call", Having("_meta", list{}))},
	{ID: "meta.text", Requirement: ids.MetaObject, Summary: "_meta is a string.",
		Apply: Calling("ping", object{"_meta": "text"})},
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
	{ID: "meta.request-refused", Requirement: ids.MetaAttachRequest, Scenario: Requests,
		Summary: "A ping with _meta is refused.", Apply: Refusing(Replies("with-meta"))},
}

func metaKey(id, requirement, summary, key string) Fault {
	return Fault{ID: "meta." + id, Requirement: requirement, Summary: summary,
		Apply: Calling("ping", object{"_meta": object{key: 1}})}
}
