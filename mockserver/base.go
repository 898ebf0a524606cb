package mockserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// unknownMethod fits requests of methods that do not begin like a method of MCP.
func unknownMethod(r *server.Request) bool { return strings.HasPrefix(r.Method, "mcpconform/") }

// unknownRef fits completions for a type of reference that does not exist.
func unknownRef(r *server.Request) bool {
	kind, ok := wire.At(r.Params, "ref", "type").(string)
	return ok && kind != "ref/prompt" && kind != "ref/resource"
}

// reacting sends something in answer to notifications and responses that fit.
func reacting(kind wire.Kind, method string, answer func(m *wire.Message) object) apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		next()
		if m.Kind == kind && (method == "" || m.Method == method) {
			s.Send(&server.Outgoing{Session: s, Message: answer(m)})
		}
	})
}

func refusal(id any, code int, message string) object {
	return object{"jsonrpc": "2.0", "id": id, "error": object{"code": code, "message": message}}
}

// hasUndefined fits requests that have a member in params which is not defined.
func hasUndefined(r *server.Request) bool { return r.Params["mcpconform"] != nil }

// ownIDs holds the ids of the requests that the server has sent, if it keeps them.
func ownIDs(s *server.Session) *sync.Map {
	return Kept[sync.Map](s, "own ids")
}

// keepsOwnIDs makes each session remember its own requests; see ownIDs.
var keepsOwnIDs = Altering(func(out *server.Outgoing) {
	if id, ok := out.Message["id"].(json.RawMessage); ok && out.Kind == wire.Request {
		ownIDs(out.Session).Store(string(id), true)
	}
})

// basic/index
var baseFaults = []Fault{
	fault("base.unknown-method-ignored", ids.BaseResponsePresent, "Requests of unknown methods get no response.",
		Answering("*", server.NoAnswer, unknownMethod)).Also(ids.BaseErrorMethodNotFound),
	fault("base.member-case-ignored", ids.BaseJSONRPCMemberCase,
		"Members are read without regard to case: METHOD is as good as method.", Inbound(func(raw []byte) []byte {
			return []byte(strings.NewReplacer(`"ID":`, `"id":`, `"METHOD":`, `"method":`, `"Method":`,
				`"method":`).Replace(string(raw)))
		})),
	fault("base.log-trailing-comma", ids.BaseJSONWellFormed,
		"Log messages are JSON with a comma before the last brace.",
		Logged(func(raw string) string { return strings.TrimSuffix(raw, "}") + ",}" })).
		Also(ids.StdioServerStdoutClean),
	fault("base.log-lone-surrogate", ids.BaseJSONWellFormed, "Log messages hold half a surrogate pair.",
		Logged(func(raw string) string { return strings.Replace(raw, `"logger":"`, `"logger":"\ud83d`, 1) })).Warns(),
	fault("base.byte-order-mark", ids.BaseJSONWellFormed, "Each message begins with a byte order mark.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte { return append([]byte("\xef\xbb\xbf"), frame...) })),
	fault("base.duplicate-member", ids.BaseJSONUniqueNames, "Responses name the member jsonrpc twice.",
		Responses("*", func(out *server.Outgoing) {
			out.Raw = []byte(`{"jsonrpc":"2.0",` + strings.TrimPrefix(Text(out.Message), "{"))
		})),
	fault("base.jsonrpc-missing", ids.BaseJSONRPCVersion, "Responses lack the member jsonrpc.",
		Responses("*", func(out *server.Outgoing) { delete(out.Message, "jsonrpc") })),
	fault("base.jsonrpc-number", ids.BaseJSONRPCVersion, "The member jsonrpc of notifications is the number 2.0.",
		Altering(func(out *server.Outgoing) {
			if out.Kind == wire.Notification {
				out.Message["jsonrpc"] = json.Number("2.0")
			}
		})),
	fault("base.jsonrpc-1.0", ids.BaseJSONRPCVersion, `Errors carry "jsonrpc": "1.0".`,
		Problems("*", func(out *server.Outgoing, _ object) { out.Message["jsonrpc"] = "1.0" })),
	fault("base.method-number", ids.BaseJSONRPCMethodString, "The method of log messages is a number.",
		Messages("notifications/message", func(out *server.Outgoing) { out.Message["method"] = 7 })).
		Also(ids.StdioServerStdoutClean),
	fault("base.params-array", ids.BaseJSONRPCParamsObject,
		"The params of notifications/tools/list_changed are an empty array.",
		Messages("notifications/tools/list_changed", func(out *server.Outgoing) { out.Message["params"] = list{} })),
	fault("base.params-null", ids.BaseJSONRPCParamsObject,
		"The params of requests and notifications that need none are null.", Altering(func(out *server.Outgoing) {
			if _, ok := out.Message["params"]; !ok && out.Method != "" {
				out.Message["params"] = nil
			}
		})),
	fault("base.rpc-method", ids.BaseJSONRPCRPCPrefix, "A notification rpc.ready follows the handshake.",
		Ready(func(s *server.Session) { s.Notify("rpc.ready", nil) })),
	fault("base.response-twice", ids.BaseResponseOnce, "Each response is sent twice.", Sending(server.OnResponse("*",
		func(out *server.Outgoing) []*server.Outgoing { return []*server.Outgoing{out, out.Clone()} }))),
	fault("base.error-and-result", ids.BaseResponseOnce,
		"A request that is refused gets the error and then an empty result.",
		Sending(server.OnResponse("prompts/get", func(out *server.Outgoing) []*server.Outgoing {
			if out.Kind != wire.ErrorResponse {
				return []*server.Outgoing{out}
			}
			again := out.Clone()
			delete(again.Message, "error")
			again.Message["result"] = object{"messages": list{}}
			return []*server.Outgoing{out, again}
		}))),
	fault("base.reserved-code", ids.BaseErrorReservedCodes,
		"A reference of unknown type is refused with the code -32100.",
		Refusing("completion/complete", -32100, unknownRef)),
	fault("base.parse-error-code", ids.BaseErrorParseError, "Input that is not JSON is answered with -32600.",
		parseErrors(func(out *server.Outgoing) { out.RPCError()["code"] = server.InvalidRequest })),
	fault("base.parse-error-internal", ids.BaseErrorParseError, "Input that is not JSON is answered with -32603.",
		parseErrors(func(out *server.Outgoing) { out.RPCError()["code"] = server.InternalError })),
	fault("base.parse-error-id", ids.BaseErrorUndetectableID, "The error for input that is not JSON has the id 0.",
		parseErrors(func(out *server.Outgoing) { out.Message["id"] = -99 })),
	fault("base.invalid-request-served", ids.BaseErrorInvalidRequest,
		"A request whose method is a number gets a result.", All(
			func(o *server.Options) {
				o.Behaviour.Valid = func(m *wire.Message) bool { return m.Has(wire.MethodType) && m.ID.Usable() }
			},
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if m.Has(wire.MethodType) {
					s.Send(&server.Outgoing{Session: s,
						Message: object{"jsonrpc": "2.0", "id": json.RawMessage(m.ID.String()), "result": object{}}})
					return
				}
				next()
			}),
		)),
	fault("base.id-unchecked", ids.BaseResponseIDEcho, "Requests are served whatever the type of their id is.",
		Understanding(wire.IDType)),
	fault("base.invalid-request-over-http", ids.BaseErrorInvalidRequest,
		"Over HTTP, JSON that is not a request is refused as if it were not JSON.",
		Altering(func(out *server.Outgoing) {
			if problem := out.RPCError(); problem != nil && out.Answers == nil &&
				IsCode(problem, server.InvalidRequest) {
				problem["code"] = server.ParseError
			}
		})).Only(OverHTTP),
	fault("base.invalid-request-code", ids.BaseErrorInvalidRequest,
		"JSON that is not a request is refused with -32603.", Altering(func(out *server.Outgoing) {
			if problem := out.RPCError(); problem != nil && out.Answers == nil &&
				IsCode(problem, server.InvalidRequest) {
				problem["code"] = server.InternalError
			}
		})),
	fault("base.unknown-method-code", ids.BaseErrorMethodNotFound,
		"Requests of unknown methods are refused with -32600.",
		Recoding("*", server.MethodNotFound, server.InvalidRequest)),
	fault("base.unknown-method-result", ids.BaseErrorMethodNotFound, "Requests of unknown methods get an empty result.",
		Answering("*", object{}, unknownMethod)),
	fault("base.unknown-method-of-feature", ids.BaseErrorMethodNotFound,
		"Requests of unknown methods that begin with prompts/ are refused with -32602.",
		Refusing("*", server.InvalidParams, func(r *server.Request) bool {
			return strings.HasPrefix(r.Method, "prompts/") && r.Method != "prompts/list" && r.Method != "prompts/get"
		})),
	fault("base.method-beginning", ids.BaseErrorMethodNotFound,
		"Requests of methods whose name begins like ping, in whatever case, are taken for pings.",
		Answering("*", object{}, func(r *server.Request) bool {
			return r.Method != "ping" && strings.HasPrefix(strings.ToLower(r.Method), "ping")
		})).Seen(ByValue),
	fault("base.invalid-params-code", ids.BaseErrorInvalidParams, "A call without a name is refused with -32603.",
		Refusing("tools/call", server.InternalError, func(r *server.Request) bool {
			_, ok := r.Params["name"].(string)
			return !ok
		})),
	fault("base.invalid-params-parse-error", ids.BaseErrorInvalidParams,
		"Params that do not fit are refused with -32700.",
		Refusing("prompts/get", server.ParseError, func(r *server.Request) bool {
			_, ok := r.Params["name"].(string)
			return !ok
		})),
	fault("base.params-strict", ids.BaseParamsOpen, "List requests with members beside cursor and _meta are refused.",
		Refusing("*", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-call", ids.BaseParamsOpen,
		"A tools/call with a member that the revision does not define is refused.",
		Refusing("tools/call", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-read", ids.BaseParamsOpen,
		"A resources/read with a member that the revision does not define is refused.",
		Refusing("resources/read", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-get", ids.BaseParamsOpen,
		"A prompts/get with a member that the revision does not define is refused.",
		Refusing("prompts/get", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-complete", ids.BaseParamsOpen,
		"A completion/complete with a member that the revision does not define is refused.",
		Refusing("completion/complete", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-initialize", ids.BaseParamsOpen,
		"An initialize with a member that the revision does not define is refused.",
		Refusing("initialize", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-set-level", ids.BaseParamsOpen,
		"A logging/setLevel with a member that the revision does not define is refused.",
		Refusing("logging/setLevel", server.InvalidParams, hasUndefined)),
	fault("base.params-strict-subscribe", ids.BaseParamsOpen,
		"A resources/subscribe with a member that the revision does not define is refused.",
		Refusing("resources/subscribe", server.InvalidParams, hasUndefined)),
	fault("base.params-required", ids.BaseParamsOmitted, "A list request with empty params is refused.",
		Refusing("resources/list", server.InvalidParams,
			func(r *server.Request) bool { return r.Message.Params != nil && len(r.Params) == 0 })),
	fault("base.request-without-id", ids.BaseRequestIDPresent, "The server's pings have no id.", pinging(object{})),
	fault("base.request-id-fraction", ids.BaseRequestIDType, "The ids of the server's requests have a fraction.",
		pinging(object{"id": json.Number("1.5")})),
	fault("base.request-id-object", ids.BaseRequestIDType, "The ids of the server's requests are objects.",
		pinging(object{"id": object{"n": 1}})),
	fault("base.request-id-null", ids.BaseRequestIDNotNull, "The ids of the server's requests are null.",
		pinging(object{"id": nil})),
	fault("base.request-id-reused", ids.BaseRequestIDUnique, "Two pings of the server have the same id.",
		All(pinging(object{"id": "ping"}), pinging(object{"id": "ping"}))),
	fault("base.id-spaces-mixed", ids.BaseRequestIDSpacePerSide,
		"Requests with ids from 1000000 on are taken for the server's own and refused.",
		Refusing("ping", server.InvalidRequest, func(r *server.Request) bool {
			n, err := strconv.Atoi(r.ID.String())
			return err == nil && n >= 1000000
		})).Also(ids.BaseRequestIntegerIDServed),
	fault("base.id-space-shared", ids.BaseRequestIDSpacePerSide,
		"A request with the id of an open request of the server is taken for the answer to that.", All(
			keepsOwnIDs,
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if _, open := ownIDs(s).LoadAndDelete(m.ID.String()); open && m.Kind == wire.Request {
					m.Kind, m.Result = wire.Result, object{}
				}
				next()
			}),
		)).Seen(AtOnce).Also(ids.BaseResponsePresent),
	fault("base.id-space-forgets", ids.BaseRequestIDSpacePerSide,
		"A request with the id of an open request of the server makes that forget what it waits for.", All(
			keepsOwnIDs,
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if _, open := ownIDs(s).LoadAndDelete(m.ID.String()); open || !m.IsResponse() {
					next()
				}
			}),
		)).Seen(AtOnce).Also(ids.CancellationInProgress),
	fault("base.string-id-refused", ids.BaseRequestStringIDServed, "Requests whose id is a string are refused.",
		Refusing("*", server.InvalidRequest, func(r *server.Request) bool {
			return strings.HasPrefix(r.ID.String(), `"`)
		})).Also(ids.BaseMessageUTF8Accepted, ids.StdioMessageOnlyNewlineDelimits),
	fault("base.refusals-unsent", ids.BaseResponsePresent,
		"A read of a URI without a scheme, and a completion for a reference of an unknown type, are refused in "+
			"silence.", All(
			Answering("resources/read", server.NoAnswer, func(r *server.Request) bool {
				uri, _ := r.Params["uri"].(string)
				return strings.HasPrefix(uri, "mcpconform no")
			}),
			Answering("completion/complete", server.NoAnswer,
				func(r *server.Request) bool { return wire.At(r.Params, "ref", "type") == "ref/mcpconform" }),
		)).Seen(ByValue).Also(ids.ResourcesErrorNotFoundCode),
	fault("base.string-id-unanswered", ids.BaseRequestStringIDServed,
		"Requests whose id is a string are read as if they had none.",
		Answering("*", server.NoAnswer, func(r *server.Request) bool { return strings.HasPrefix(r.ID.String(), `"`) })).
		Also(ids.BaseResponsePresent),
	fault("base.ids-as-text", ids.BaseRequestStringIDServed,
		"A request is refused while another one has an id of the same text.",
		Refusing("ping", server.InvalidRequest, func(r *server.Request) bool {
			return slices.ContainsFunc(r.Session.Running(),
				func(other *server.Request) bool { return other != r && other.ID.Resembles(r.ID) })
		})).Seen(AtOnce),
	fault("base.ids-as-text-crossed", ids.BaseResponseIDTypeEcho,
		"The response to a request has the id of another one that is running, if its text is the same.",
		Responses("ping", func(out *server.Outgoing) {
			for _, other := range out.Session.Running() {
				if other != out.Answers && other.ID.Resembles(out.Answers.ID) {
					out.Message["id"] = json.RawMessage(other.ID.String())
				}
			}
		})).Seen(AtOnce).
		Also(ids.BaseResponseOnce, ids.BaseRequestStringIDServed, ids.PingResponseEmpty, ids.SchemaCallToolResult,
			ids.ProgressInProgress, ids.ProgressStop),
	fault("base.empty-string-id-refused", ids.BaseRequestStringIDServed,
		"A request whose id is the empty string is refused.",
		Refusing("*", server.InvalidRequest, func(r *server.Request) bool { return r.ID.String() == `""` })).
		Seen(ByValue),
	fault("base.zero-id-ignored", ids.BaseRequestIntegerIDServed,
		"A request with the id 0 is taken for a notification.",
		Answering("*", server.NoAnswer, func(r *server.Request) bool { return r.ID.String() == "0" })).Seen(ByValue).
		Also(ids.BaseResponsePresent),
	fault("base.large-id-cut", ids.BaseRequestIntegerIDServed, "Ids are cut to 32 bits in the response.",
		Responses("*", func(out *server.Outgoing) {
			if n, err := strconv.ParseInt(out.Answers.ID.String(), 10, 64); err == nil && n > 0 {
				out.Message["id"] = uint32(n)
			}
		})).Seen(ByValue).
		Also(ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID, ids.BaseResponseOnce, ids.BaseResponsePresent,
			ids.BaseResponseOnlyToRequests),
	fault("base.error-id-null", ids.BaseResponseIDEcho, "Errors for unknown methods have the id null.",
		Problems("*", func(out *server.Outgoing, problem object) {
			if IsCode(problem, server.MethodNotFound) {
				out.Message["id"] = nil
			}
		})).Also(ids.BaseErrorMethodNotFound, ids.BaseResponsePresent),
	fault("base.error-id-missing", ids.BaseResponseIDEcho, "Errors for unknown methods have no id.",
		Problems("*", func(out *server.Outgoing, problem object) {
			if IsCode(problem, server.MethodNotFound) {
				delete(out.Message, "id")
			}
		})).Also(ids.BaseErrorMethodNotFound, ids.BaseResponsePresent),
	fault("base.id-as-string", ids.BaseResponseIDTypeEcho, "Responses carry the id as a string, whatever it was.",
		Responses("*", func(out *server.Outgoing) {
			if id := out.Answers.ID.String(); !strings.HasPrefix(id, `"`) {
				out.Message["id"] = id
			}
		})),
	fault("base.id-as-number", ids.BaseResponseIDTypeEcho, "A string id that looks like a number comes back as one.",
		Responses("*", func(out *server.Outgoing) {
			if id, err := strconv.Atoi(strings.Trim(out.Answers.ID.String(), `"`)); err == nil {
				out.Message["id"] = id
			}
		})).Seen(ByValue).
		Also(ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseIDEcho, ids.BaseRequestStringIDServed,
			ids.BaseResponseOnlyToRequests, ids.BaseErrorUndetectableID, ids.SchemaCallToolResult,
			ids.ProgressInProgress, ids.ProgressStop),
	fault("base.responses-answered", ids.BaseResponseOnlyToRequests,
		"A response that nobody asked for is answered with an error.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.IsResponse() && m.ID.String() == `"mcpconform-stray"` {
				s.Send(&server.Outgoing{Session: s,
					Message: refusal("mcpconform-stray", server.InvalidRequest, "No such request")})
			}
		})),
	fault("base.responses-refused", ids.BaseResponseOnlyToRequests,
		"An error that nobody asked for is answered with an error without an id.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.ErrorResponse && m.ID.String() == `"mcpconform-stray-too"` {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidRequest, "No such request")})
			}
		})).Also(ids.BaseResponseIDEcho),
	fault("base.invented-response", ids.BaseResponseOnlyToRequests,
		"After the handshake comes a result that belongs to no request.", Ready(func(s *server.Session) {
			s.Send(&server.Outgoing{Session: s, Message: object{"jsonrpc": "2.0", "id": "hello", "result": object{}}})
		})).Also(ids.MetaAttachNotification),
	fault("base.void-result-dropped", ids.BaseResponseResultOrError,
		"The response to resources/unsubscribe has neither result nor error.",
		Responses("resources/unsubscribe", func(out *server.Outgoing) { delete(out.Message, "result") })).
		Also(ids.ResourcesUnsubscribeAccepted, ids.BaseResponsePresent, ids.StdioServerStdoutClean),
	fault("base.error-null-beside-result", ids.BaseResponseNotBoth, "Results come with an error that is null.",
		Responses("tools/list", func(out *server.Outgoing) {
			if out.Kind == wire.Result {
				out.Message["error"] = nil
			}
		})),
	fault("base.result-null-beside-error", ids.BaseResponseNotBoth, "Errors come with a result that is null.",
		Problems("*", func(out *server.Outgoing, _ object) { out.Message["result"] = nil })),
	fault("base.result-null", ids.BaseResponseResultObject, "The result of resources/unsubscribe is null.",
		ResultOf("resources/unsubscribe", nil)).Also(ids.ResourcesUnsubscribeAccepted),
	fault("base.result-string", ids.BaseResponseResultObject, `The result of resources/unsubscribe is the string "ok".`,
		ResultOf("resources/unsubscribe", "ok")).Also(ids.ResourcesUnsubscribeAccepted),
	fault("base.error-string", ids.BaseErrorObject, "The error for a reference of unknown type is a string.",
		refError(func(out *server.Outgoing, _ object) { out.Message["error"] = "no such reference" })),
	fault("base.error-code-missing", ids.BaseErrorCodePresent, "The error for a reference of unknown type has no code.",
		refError(func(_ *server.Outgoing, problem object) { delete(problem, "code") })),
	fault("base.error-message-missing", ids.BaseErrorMessagePresent, "Errors have no message.",
		Problems("*", func(_ *server.Outgoing, problem object) { delete(problem, "message") })),
	fault("base.error-code-string", ids.BaseErrorCodeInteger,
		"The code of the error for a reference of unknown type is a string.",
		refError(func(_ *server.Outgoing, problem object) { problem["code"] = "invalid_params" })),
	fault("base.error-code-string-subscribing", ids.BaseErrorCodeInteger,
		"The code of the error for a subscription to a resource that does not exist is a string.",
		Problems("resources/subscribe",
			func(_ *server.Outgoing, problem object) { problem["code"] = "RESOURCE_NOT_FOUND" })).
		Also(ids.BaseErrorInvalidParams),
	fault("base.error-code-fraction", ids.BaseErrorCodeInteger,
		"The code of the error for a reference of unknown type has a fraction.",
		refError(func(_ *server.Outgoing, problem object) { problem["code"] = -32602.5 })),
	fault("base.error-message-object", ids.BaseErrorMessageString, "The message of errors is an object.", Problems("*",
		func(_ *server.Outgoing, problem object) { problem["message"] = object{"en": problem["message"]} })),
	fault("base.error-stack-trace", ids.BaseErrorMessageConcise, "The message of errors is a stack trace.",
		Problems("*", func(_ *server.Outgoing, problem object) {
			problem["message"] = "Error: refused" +
				strings.Repeat("\n    at Object.handle (/srv/app/node_modules/server/index.js:1:1)", 3)
		})),
	fault("base.initialized-answered", ids.BaseNotificationNoResponse,
		"notifications/initialized is answered with an error.", reacting(wire.Notification, "notifications/initialized",
			func(*wire.Message) object { return refusal(nil, server.MethodNotFound, "Method not found") })).
		Also(ids.BaseResponseIDEcho, ids.MetaAttachNotification),
	fault("base.unknown-notification-answered", ids.BaseNotificationUnknownNoResponse,
		"A notification of an unknown method is answered with an error.",
		reacting(wire.Notification, "notifications/mcpconform/no-such", func(*wire.Message) object {
			return refusal(nil, server.MethodNotFound, "Method not found")
		})).Also(ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho),
	fault("base.malformed-notification-answered", ids.BaseNotificationMalformedNoResponse,
		"A notification with wrong params is answered with an error.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification && m.Method == "notifications/progress" &&
				wire.At(m.Params, "progressToken") == nil {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "Invalid params")})
			}
		})).Also(ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho),
	fault("base.malformed-notification-kills", ids.BaseNotificationMalformedNoResponse,
		"A notification with wrong params ends the process.", dyingOf(`"notifications/progress","params":{}}`)).
		Only(OverStdio).Warns(),
	fault("base.notification-with-id", ids.BaseNotificationNoID, "A log message carries an id.",
		Messages("notifications/message", func(out *server.Outgoing) {
			if Once(out.Session, "log") {
				out.Message["id"] = "log"
			}
		})),
	fault("base.batch-sent", ids.BaseBatchNotSent, "Log messages are sent as arrays of one.",
		Logged(func(raw string) string { return "[" + raw + "]" })),
	fault("base.batch-served", ids.BaseBatchNotServed, "The members of a batch are served.",
		func(o *server.Options) { o.Behaviour.Batches = true }),
	fault("base.batch-of-one-served", ids.BaseBatchNotServed, "A batch with one member is taken for that.",
		Inbound(func(raw []byte) []byte {
			var batch []json.RawMessage
			if json.Unmarshal(raw, &batch) == nil && len(batch) == 1 {
				return batch[0]
			}
			return raw
		})).Only(OverStdio),
	fault("base.latin-1", ids.BaseMessageUTF8, "The log is written in ISO 8859-1.",
		Logged(func(raw string) string { return strings.Replace(raw, `"logger":"`, "\"logger\":\"\xfc", 1) })),
	fault("base.utf8-refused", ids.BaseMessageUTF8Accepted,
		"A request with an id that is not ASCII is answered with HTTP status 400.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return strings.Contains(Posted(r).ID.String(), "Grüße")
		}), Peeking())).Only(OverHTTP).Also(ids.BaseRequestStringIDServed),
	fault("base.utf8-mangled", ids.BaseMessageUTF8Accepted,
		"Characters outside ASCII in an id come back as question marks.",
		Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers == nil || out.Answers.Method != "ping" {
				return frame
			}
			return bytes.ReplaceAll(frame, []byte("Grüße 你好"), []byte("Grüße ??"))
		})).
		Also(ids.BaseRequestStringIDServed, ids.BaseResponseIDEcho, ids.BaseResponsePresent,
			ids.BaseResponseOnlyToRequests, ids.StdioMessageOnlyNewlineDelimits),
	fault("base.utf8-normalised", ids.BaseMessageUTF8Accepted, "An e and an accent come back as one character.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return bytes.ReplaceAll(frame, []byte("e\u0301"), []byte("\u00e9"))
		})).Seen(ByValue).
		Also(ids.BaseRequestStringIDServed, ids.ProgressTokenActiveRequest, ids.BaseResponsePresent,
			ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID),
	fault("base.utf8-cut-apart", ids.BaseMessageUTF8Accepted,
		"Input is decoded piece by piece, so that a character at the end of 64 KiB is lost.",
		Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers == nil || out.Answers.Method != "ping" || len(frame) < 64<<10 {
				return frame
			}
			at := len(frame) / 2
			for !utf8.RuneStart(frame[at]) {
				at++
			}
			_, size := utf8.DecodeRune(frame[at:])
			return slices.Concat(frame[:at], []byte("\uFFFD\uFFFD"), frame[at+size:])
		})).Also(ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho),
	fault("base.utf8-cut-by-reads", ids.StdioMessageSplitWrites,
		"Each read of stdin is decoded by itself, so that a character that comes in two is lost.",
		chunks(func(chunk []byte) []byte { return bytes.ToValidUTF8(chunk, []byte("\uFFFD")) })).Only(OverStdio).
		Also(ids.BaseMessageUTF8Accepted, ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests,
			ids.BaseResponseIDEcho),
	fault("base.method-and-result", ids.SchemaJSONRPCMessage, "Responses to tools/list repeat the method.",
		Responses("tools/list", func(out *server.Outgoing) { out.Message["method"] = "tools/list" })),
}

// parseErrors changes the error for input that is not JSON.
func parseErrors(change func(out *server.Outgoing)) apply {
	return Altering(func(out *server.Outgoing) {
		if problem := out.RPCError(); problem != nil && out.Answers == nil && IsCode(problem, server.ParseError) {
			change(out)
		}
	})
}

// refError changes the error for a reference of unknown type; no check looks at
// the form of that error.
func refError(change func(out *server.Outgoing, problem object)) apply {
	return Problems("completion/complete", func(out *server.Outgoing, problem object) {
		if unknownRef(out.Answers) {
			change(out, problem)
		}
	})
}
