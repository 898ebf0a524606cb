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
	{ID: "base.unknown-method-ignored", Requirement: ids.BaseResponsePresent,
		Summary:    "Requests of unknown methods get no response.",
		Collateral: []string{ids.BaseErrorMethodNotFound},
		Apply:      Answering("*", server.NoAnswer, unknownMethod)},
	{ID: "base.member-case-ignored", Requirement: ids.BaseJSONRPCMemberCase,
		Summary: "Members are read without regard to case: METHOD is as good as method.",
		Apply: Inbound(func(raw []byte) []byte {
			return []byte(strings.NewReplacer(`"ID":`, `"id":`, `"METHOD":`, `"method":`, `"Method":`,
				`"method":`).Replace(string(raw)))
		})},
	{ID: "base.log-trailing-comma", Requirement: ids.BaseJSONWellFormed,
		Summary:    "Log messages are JSON with a comma before the last brace.",
		Collateral: []string{ids.StdioServerStdoutClean},
		Apply:      Logged(func(raw string) string { return strings.TrimSuffix(raw, "}") + ",}" })},
	{ID: "base.log-lone-surrogate", Requirement: ids.BaseJSONWellFormed, WarnOnly: true,
		Summary: "Log messages hold half a surrogate pair.",
		Apply:   Logged(func(raw string) string { return strings.Replace(raw, `"logger":"`, `"logger":"\ud83d`, 1) })},
	{ID: "base.byte-order-mark", Requirement: ids.BaseJSONWellFormed,
		Summary: "Each message begins with a byte order mark.",
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return append([]byte("\xef\xbb\xbf"), frame...)
		})},
	{ID: "base.duplicate-member", Requirement: ids.BaseJSONUniqueNames,
		Summary: "Responses name the member jsonrpc twice.",
		Apply: Responses("*", func(out *server.Outgoing) {
			out.Raw = []byte(`{"jsonrpc":"2.0",` + strings.TrimPrefix(Text(out.Message), "{"))
		})},
	{ID: "base.jsonrpc-missing", Requirement: ids.BaseJSONRPCVersion, Summary: "Responses lack the member jsonrpc.",
		Apply: Responses("*", func(out *server.Outgoing) { delete(out.Message, "jsonrpc") })},
	{ID: "base.jsonrpc-number", Requirement: ids.BaseJSONRPCVersion,
		Summary: "The member jsonrpc of notifications is the number 2.0.",
		Apply: Altering(func(out *server.Outgoing) {
			if out.Kind == wire.Notification {
				out.Message["jsonrpc"] = json.Number("2.0")
			}
		})},
	{ID: "base.jsonrpc-1.0", Requirement: ids.BaseJSONRPCVersion, Summary: `Errors carry "jsonrpc": "1.0".`,
		Apply: Problems("*", func(out *server.Outgoing, _ object) { out.Message["jsonrpc"] = "1.0" })},
	{ID: "base.method-number", Requirement: ids.BaseJSONRPCMethodString,
		Summary: "The method of log messages is a number.", Collateral: []string{ids.StdioServerStdoutClean},
		Apply: Messages("notifications/message", func(out *server.Outgoing) { out.Message["method"] = 7 })},
	{ID: "base.params-array", Requirement: ids.BaseJSONRPCParamsObject,
		Summary: "The params of notifications/tools/list_changed are an empty array.",
		Apply: Messages("notifications/tools/list_changed",
			func(out *server.Outgoing) { out.Message["params"] = list{} })},
	{ID: "base.params-null", Requirement: ids.BaseJSONRPCParamsObject,
		Summary: "The params of requests and notifications that need none are null.",
		Apply: Altering(func(out *server.Outgoing) {
			if _, ok := out.Message["params"]; !ok && out.Method != "" {
				out.Message["params"] = nil
			}
		})},
	{ID: "base.rpc-method", Requirement: ids.BaseJSONRPCRPCPrefix,
		Summary: "A notification rpc.ready follows the handshake.",
		Apply:   Ready(func(s *server.Session) { s.Notify("rpc.ready", nil) })},
	{ID: "base.response-twice", Requirement: ids.BaseResponseOnce, Summary: "Each response is sent twice.",
		Apply: Sending(server.OnResponse("*", func(out *server.Outgoing) []*server.Outgoing {
			return []*server.Outgoing{out, out.Clone()}
		}))},
	{ID: "base.error-and-result", Requirement: ids.BaseResponseOnce,
		Summary: "A request that is refused gets the error and then an empty result.",
		Apply: Sending(server.OnResponse("prompts/get", func(out *server.Outgoing) []*server.Outgoing {
			if out.Kind != wire.ErrorResponse {
				return []*server.Outgoing{out}
			}
			again := out.Clone()
			delete(again.Message, "error")
			again.Message["result"] = object{"messages": list{}}
			return []*server.Outgoing{out, again}
		}))},
	{ID: "base.reserved-code", Requirement: ids.BaseErrorReservedCodes,
		Summary: "A reference of unknown type is refused with the code -32100.",
		Apply:   Refusing("completion/complete", -32100, unknownRef)},
	{ID: "base.parse-error-code", Requirement: ids.BaseErrorParseError,
		Summary: "Input that is not JSON is answered with -32600.",
		Apply:   parseErrors(func(out *server.Outgoing) { out.RPCError()["code"] = server.InvalidRequest })},
	{ID: "base.parse-error-internal", Requirement: ids.BaseErrorParseError,
		Summary: "Input that is not JSON is answered with -32603.",
		Apply:   parseErrors(func(out *server.Outgoing) { out.RPCError()["code"] = server.InternalError })},
	{ID: "base.parse-error-id", Requirement: ids.BaseErrorUndetectableID,
		Summary: "The error for input that is not JSON has the id 0.",
		Apply:   parseErrors(func(out *server.Outgoing) { out.Message["id"] = -99 })},
	{ID: "base.invalid-request-served", Requirement: ids.BaseErrorInvalidRequest,
		Summary: "A request whose method is a number gets a result.",
		Apply: All(
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
		)},
	{ID: "base.id-unchecked", Requirement: ids.BaseResponseIDEcho,
		Summary: "Requests are served whatever the type of their id is.", Apply: Understanding(wire.IDType)},
	{ID: "base.invalid-request-over-http", Requirement: ids.BaseErrorInvalidRequest, Transports: OverHTTP,
		Summary: "Over HTTP, JSON that is not a request is refused as if it were not JSON.",
		Apply: Altering(func(out *server.Outgoing) {
			if problem := out.RPCError(); problem != nil && out.Answers == nil &&
				IsCode(problem, server.InvalidRequest) {
				problem["code"] = server.ParseError
			}
		})},
	{ID: "base.invalid-request-code", Requirement: ids.BaseErrorInvalidRequest,
		Summary: "JSON that is not a request is refused with -32603.",
		Apply: Altering(func(out *server.Outgoing) {
			if problem := out.RPCError(); problem != nil && out.Answers == nil &&
				IsCode(problem, server.InvalidRequest) {
				problem["code"] = server.InternalError
			}
		})},
	{ID: "base.unknown-method-code", Requirement: ids.BaseErrorMethodNotFound,
		Summary: "Requests of unknown methods are refused with -32600.",
		Apply:   Recoding("*", server.MethodNotFound, server.InvalidRequest)},
	{ID: "base.unknown-method-result", Requirement: ids.BaseErrorMethodNotFound,
		Summary: "Requests of unknown methods get an empty result.",
		Apply:   Answering("*", object{}, unknownMethod)},
	{ID: "base.unknown-method-of-feature", Requirement: ids.BaseErrorMethodNotFound,
		Summary: "Requests of unknown methods that begin with prompts/ are refused with -32602.",
		Apply: Refusing("*", server.InvalidParams, func(r *server.Request) bool {
			return strings.HasPrefix(r.Method, "prompts/") && r.Method != "prompts/list" && r.Method != "prompts/get"
		})},
	{ID: "base.method-beginning", Requirement: ids.BaseErrorMethodNotFound, Form: ByValue,
		Summary: "Requests of methods whose name begins like ping, in whatever case, are taken for pings.",
		Apply: Answering("*", object{}, func(r *server.Request) bool {
			return r.Method != "ping" && strings.HasPrefix(strings.ToLower(r.Method), "ping")
		})},
	{ID: "base.invalid-params-code", Requirement: ids.BaseErrorInvalidParams,
		Summary: "A call without a name is refused with -32603.",
		Apply: Refusing("tools/call", server.InternalError, func(r *server.Request) bool {
			_, ok := r.Params["name"].(string)
			return !ok
		})},
	{ID: "base.invalid-params-parse-error", Requirement: ids.BaseErrorInvalidParams,
		Summary: "Params that do not fit are refused with -32700.",
		Apply: Refusing("prompts/get", server.ParseError, func(r *server.Request) bool {
			_, ok := r.Params["name"].(string)
			return !ok
		})},
	{ID: "base.params-strict", Requirement: ids.BaseParamsOpen,
		Summary: "List requests with members beside cursor and _meta are refused.",
		Apply:   Refusing("*", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-call", Requirement: ids.BaseParamsOpen,
		Summary: "A tools/call with a member that the revision does not define is refused.",
		Apply:   Refusing("tools/call", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-read", Requirement: ids.BaseParamsOpen,
		Summary: "A resources/read with a member that the revision does not define is refused.",
		Apply:   Refusing("resources/read", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-get", Requirement: ids.BaseParamsOpen,
		Summary: "A prompts/get with a member that the revision does not define is refused.",
		Apply:   Refusing("prompts/get", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-complete", Requirement: ids.BaseParamsOpen,
		Summary: "A completion/complete with a member that the revision does not define is refused.",
		Apply:   Refusing("completion/complete", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-initialize", Requirement: ids.BaseParamsOpen,
		Summary: "An initialize with a member that the revision does not define is refused.",
		Apply:   Refusing("initialize", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-set-level", Requirement: ids.BaseParamsOpen,
		Summary: "A logging/setLevel with a member that the revision does not define is refused.",
		Apply:   Refusing("logging/setLevel", server.InvalidParams, hasUndefined)},
	{ID: "base.params-strict-subscribe", Requirement: ids.BaseParamsOpen,
		Summary: "A resources/subscribe with a member that the revision does not define is refused.",
		Apply:   Refusing("resources/subscribe", server.InvalidParams, hasUndefined)},
	{ID: "base.params-required", Requirement: ids.BaseParamsOmitted,
		Summary: "A list request with empty params is refused.",
		Apply: Refusing("resources/list", server.InvalidParams, func(r *server.Request) bool {
			return r.Message.Params != nil && len(r.Params) == 0
		})},
	{ID: "base.request-without-id", Requirement: ids.BaseRequestIDPresent, Summary: "The server's pings have no id.",
		Apply: pinging(object{})},
	{ID: "base.request-id-fraction", Requirement: ids.BaseRequestIDType,
		Summary: "The ids of the server's requests have a fraction.",
		Apply:   pinging(object{"id": json.Number("1.5")})},
	{ID: "base.request-id-object", Requirement: ids.BaseRequestIDType,
		Summary: "The ids of the server's requests are objects.", Apply: pinging(object{"id": object{"n": 1}})},
	{ID: "base.request-id-null", Requirement: ids.BaseRequestIDNotNull,
		Summary: "The ids of the server's requests are null.", Apply: pinging(object{"id": nil})},
	{ID: "base.request-id-reused", Requirement: ids.BaseRequestIDUnique,
		Summary: "Two pings of the server have the same id.",
		Apply:   All(pinging(object{"id": "ping"}), pinging(object{"id": "ping"}))},
	{ID: "base.id-spaces-mixed", Requirement: ids.BaseRequestIDSpacePerSide,
		Summary:    "Requests with ids from 1000000 on are taken for the server's own and refused.",
		Collateral: []string{ids.BaseRequestIntegerIDServed},
		Apply: Refusing("ping", server.InvalidRequest, func(r *server.Request) bool {
			n, err := strconv.Atoi(r.ID.String())
			return err == nil && n >= 1000000
		})},
	{ID: "base.id-space-shared", Requirement: ids.BaseRequestIDSpacePerSide, Form: AtOnce,
		Summary:    "A request with the id of an open request of the server is taken for the answer to that.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: All(
			keepsOwnIDs,
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if _, open := ownIDs(s).LoadAndDelete(m.ID.String()); open && m.Kind == wire.Request {
					m.Kind, m.Result = wire.Result, object{}
				}
				next()
			}),
		)},
	{ID: "base.id-space-forgets", Requirement: ids.BaseRequestIDSpacePerSide, Form: AtOnce,
		Summary:    "A request with the id of an open request of the server makes that forget what it waits for.",
		Collateral: []string{ids.CancellationInProgress},
		Apply: All(
			keepsOwnIDs,
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if _, open := ownIDs(s).LoadAndDelete(m.ID.String()); open || !m.IsResponse() {
					next()
				}
			}),
		)},
	{ID: "base.string-id-refused", Requirement: ids.BaseRequestStringIDServed,
		Summary:    "Requests whose id is a string are refused.",
		Collateral: []string{ids.BaseMessageUTF8Accepted, ids.StdioMessageOnlyNewlineDelimits},
		Apply: Refusing("*", server.InvalidRequest, func(r *server.Request) bool {
			return strings.HasPrefix(r.ID.String(), `"`)
		})},
	{ID: "base.refusals-unsent", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary: "A read of a URI without a scheme, and a completion for a reference of an unknown type, " +
			"are refused in silence.",
		Collateral: []string{ids.ResourcesErrorNotFoundCode},
		Apply: All(
			Answering("resources/read", server.NoAnswer, func(r *server.Request) bool {
				uri, _ := r.Params["uri"].(string)
				return strings.HasPrefix(uri, "mcpconform no")
			}),
			Answering("completion/complete", server.NoAnswer, func(r *server.Request) bool {
				return wire.At(r.Params, "ref", "type") == "ref/mcpconform"
			}),
		)},
	{ID: "base.string-id-unanswered", Requirement: ids.BaseRequestStringIDServed,
		Summary:    "Requests whose id is a string are read as if they had none.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Answering("*", server.NoAnswer, func(r *server.Request) bool {
			return strings.HasPrefix(r.ID.String(), `"`)
		})},
	{ID: "base.ids-as-text", Requirement: ids.BaseRequestStringIDServed, Form: AtOnce,
		Summary: "A request is refused while another one has an id of the same text.",
		Apply: Refusing("ping", server.InvalidRequest, func(r *server.Request) bool {
			return slices.ContainsFunc(r.Session.Running(),
				func(other *server.Request) bool { return other != r && other.ID.Resembles(r.ID) })
		})},
	{ID: "base.ids-as-text-crossed", Requirement: ids.BaseResponseIDTypeEcho, Form: AtOnce,
		Summary: "The response to a request has the id of another one that is running, if its text is the same.",
		Collateral: []string{ids.BaseResponseOnce, ids.BaseRequestStringIDServed, ids.PingResponseEmpty,
			ids.SchemaCallToolResult, ids.ProgressInProgress, ids.ProgressStop},
		Apply: Responses("ping", func(out *server.Outgoing) {
			for _, other := range out.Session.Running() {
				if other != out.Answers && other.ID.Resembles(out.Answers.ID) {
					out.Message["id"] = json.RawMessage(other.ID.String())
				}
			}
		})},
	{ID: "base.empty-string-id-refused", Requirement: ids.BaseRequestStringIDServed, Form: ByValue,
		Summary: "A request whose id is the empty string is refused.",
		Apply:   Refusing("*", server.InvalidRequest, func(r *server.Request) bool { return r.ID.String() == `""` })},
	{ID: "base.zero-id-ignored", Requirement: ids.BaseRequestIntegerIDServed, Form: ByValue,
		Summary:    "A request with the id 0 is taken for a notification.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      Answering("*", server.NoAnswer, func(r *server.Request) bool { return r.ID.String() == "0" })},
	{ID: "base.large-id-cut", Requirement: ids.BaseRequestIntegerIDServed, Form: ByValue,
		Summary: "Ids are cut to 32 bits in the response.",
		Collateral: []string{ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID, ids.BaseResponseOnce,
			ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests},
		Apply: Responses("*", func(out *server.Outgoing) {
			if n, err := strconv.ParseInt(out.Answers.ID.String(), 10, 64); err == nil && n > 0 {
				out.Message["id"] = uint32(n)
			}
		})},
	{ID: "base.error-id-null", Requirement: ids.BaseResponseIDEcho,
		Summary:    "Errors for unknown methods have the id null.",
		Collateral: []string{ids.BaseErrorMethodNotFound, ids.BaseResponsePresent},
		Apply: Problems("*", func(out *server.Outgoing, problem object) {
			if IsCode(problem, server.MethodNotFound) {
				out.Message["id"] = nil
			}
		})},
	{ID: "base.error-id-missing", Requirement: ids.BaseResponseIDEcho,
		Summary:    "Errors for unknown methods have no id.",
		Collateral: []string{ids.BaseErrorMethodNotFound, ids.BaseResponsePresent},
		Apply: Problems("*", func(out *server.Outgoing, problem object) {
			if IsCode(problem, server.MethodNotFound) {
				delete(out.Message, "id")
			}
		})},
	{ID: "base.id-as-string", Requirement: ids.BaseResponseIDTypeEcho,
		Summary: "Responses carry the id as a string, whatever it was.",
		Apply: Responses("*", func(out *server.Outgoing) {
			if id := out.Answers.ID.String(); !strings.HasPrefix(id, `"`) {
				out.Message["id"] = id
			}
		})},
	{ID: "base.id-as-number", Requirement: ids.BaseResponseIDTypeEcho, Form: ByValue,
		Summary: "A string id that looks like a number comes back as one.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseIDEcho,
			ids.BaseRequestStringIDServed, ids.BaseResponseOnlyToRequests, ids.SchemaCallToolResult,
			ids.ProgressInProgress, ids.ProgressStop},
		Apply: Responses("*", func(out *server.Outgoing) {
			if id, err := strconv.Atoi(strings.Trim(out.Answers.ID.String(), `"`)); err == nil {
				out.Message["id"] = id
			}
		})},
	{ID: "base.responses-answered", Requirement: ids.BaseResponseOnlyToRequests,
		Summary: "A response that nobody asked for is answered with an error.",
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.IsResponse() && m.ID.String() == `"mcpconform-stray"` {
				s.Send(&server.Outgoing{Session: s,
					Message: refusal("mcpconform-stray", server.InvalidRequest, "No such request")})
			}
		})},
	{ID: "base.responses-refused", Requirement: ids.BaseResponseOnlyToRequests,
		Summary:    "An error that nobody asked for is answered with an error without an id.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.ErrorResponse && m.ID.String() == `"mcpconform-stray-too"` {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidRequest, "No such request")})
			}
		})},
	{ID: "base.invented-response", Requirement: ids.BaseResponseOnlyToRequests,
		Summary:    "After the handshake comes a result that belongs to no request.",
		Collateral: []string{ids.MetaAttachNotification},
		Apply: Ready(func(s *server.Session) {
			s.Send(&server.Outgoing{Session: s, Message: object{"jsonrpc": "2.0", "id": "hello", "result": object{}}})
		})},
	{ID: "base.void-result-dropped", Requirement: ids.BaseResponseResultOrError,
		Summary:    "The response to resources/unsubscribe has neither result nor error.",
		Collateral: []string{ids.ResourcesUnsubscribeAccepted, ids.BaseResponsePresent, ids.StdioServerStdoutClean},
		Apply:      Responses("resources/unsubscribe", func(out *server.Outgoing) { delete(out.Message, "result") })},
	{ID: "base.error-null-beside-result", Requirement: ids.BaseResponseNotBoth,
		Summary: "Results come with an error that is null.",
		Apply: Responses("tools/list", func(out *server.Outgoing) {
			if out.Kind == wire.Result {
				out.Message["error"] = nil
			}
		})},
	{ID: "base.result-null-beside-error", Requirement: ids.BaseResponseNotBoth,
		Summary: "Errors come with a result that is null.",
		Apply:   Problems("*", func(out *server.Outgoing, _ object) { out.Message["result"] = nil })},
	{ID: "base.result-null", Requirement: ids.BaseResponseResultObject,
		Summary:    "The result of resources/unsubscribe is null.",
		Collateral: []string{ids.ResourcesUnsubscribeAccepted}, Apply: ResultOf("resources/unsubscribe", nil)},
	{ID: "base.result-string", Requirement: ids.BaseResponseResultObject,
		Summary:    `The result of resources/unsubscribe is the string "ok".`,
		Collateral: []string{ids.ResourcesUnsubscribeAccepted}, Apply: ResultOf("resources/unsubscribe", "ok")},
	{ID: "base.error-string", Requirement: ids.BaseErrorObject,
		Summary: "The error for a reference of unknown type is a string.",
		Apply:   refError(func(out *server.Outgoing, _ object) { out.Message["error"] = "no such reference" })},
	{ID: "base.error-code-missing", Requirement: ids.BaseErrorCodePresent,
		Summary: "The error for a reference of unknown type has no code.",
		Apply:   refError(func(_ *server.Outgoing, problem object) { delete(problem, "code") })},
	{ID: "base.error-message-missing", Requirement: ids.BaseErrorMessagePresent, Summary: "Errors have no message.",
		Apply: Problems("*", func(_ *server.Outgoing, problem object) { delete(problem, "message") })},
	{ID: "base.error-code-string", Requirement: ids.BaseErrorCodeInteger,
		Summary: "The code of the error for a reference of unknown type is a string.",
		Apply:   refError(func(_ *server.Outgoing, problem object) { problem["code"] = "invalid_params" })},
	{ID: "base.error-code-string-subscribing", Requirement: ids.BaseErrorCodeInteger,
		Summary:    "The code of the error for a subscription to a resource that does not exist is a string.",
		Collateral: []string{ids.BaseErrorInvalidParams},
		Apply: Problems("resources/subscribe",
			func(_ *server.Outgoing, problem object) { problem["code"] = "RESOURCE_NOT_FOUND" })},
	{ID: "base.error-code-fraction", Requirement: ids.BaseErrorCodeInteger,
		Summary: "The code of the error for a reference of unknown type has a fraction.",
		Apply:   refError(func(_ *server.Outgoing, problem object) { problem["code"] = -32602.5 })},
	{ID: "base.error-message-object", Requirement: ids.BaseErrorMessageString,
		Summary: "The message of errors is an object.",
		Apply: Problems("*", func(_ *server.Outgoing, problem object) {
			problem["message"] = object{"en": problem["message"]}
		})},
	{ID: "base.error-stack-trace", Requirement: ids.BaseErrorMessageConcise,
		Summary: "The message of errors is a stack trace.",
		Apply: Problems("*", func(_ *server.Outgoing, problem object) {
			problem["message"] = "Error: refused" +
				strings.Repeat("\n    at Object.handle (/srv/app/node_modules/server/index.js:1:1)", 3)
		})},
	{ID: "base.initialized-answered", Requirement: ids.BaseNotificationNoResponse,
		Summary:    "notifications/initialized is answered with an error.",
		Collateral: []string{ids.BaseResponseIDEcho, ids.MetaAttachNotification},
		Apply: reacting(wire.Notification, "notifications/initialized", func(*wire.Message) object {
			return refusal(nil, server.MethodNotFound, "Method not found")
		})},
	{ID: "base.unknown-notification-answered", Requirement: ids.BaseNotificationUnknownNoResponse,
		Summary:    "A notification of an unknown method is answered with an error.",
		Collateral: []string{ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho},
		Apply: reacting(wire.Notification, "notifications/mcpconform/no-such", func(*wire.Message) object {
			return refusal(nil, server.MethodNotFound, "Method not found")
		})},
	{ID: "base.malformed-notification-answered", Requirement: ids.BaseNotificationMalformedNoResponse,
		Summary:    "A notification with wrong params is answered with an error.",
		Collateral: []string{ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification && m.Method == "notifications/progress" &&
				wire.At(m.Params, "progressToken") == nil {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "Invalid params")})
			}
		})},
	{ID: "base.malformed-notification-kills", Requirement: ids.BaseNotificationMalformedNoResponse,
		Transports: OverStdio, WarnOnly: true, Summary: "A notification with wrong params ends the process.",
		Apply: dyingOf(`"notifications/progress","params":{}}`)},
	{ID: "base.notification-with-id", Requirement: ids.BaseNotificationNoID, Summary: "A log message carries an id.",
		Apply: Messages("notifications/message", func(out *server.Outgoing) {
			if Once(out.Session, "log") {
				out.Message["id"] = "log"
			}
		})},
	{ID: "base.batch-sent", Requirement: ids.BaseBatchNotSent, Summary: "Log messages are sent as arrays of one.",
		Apply: Logged(func(raw string) string { return "[" + raw + "]" })},
	{ID: "base.batch-served", Requirement: ids.BaseBatchNotServed, Summary: "The members of a batch are served.",
		Apply: func(o *server.Options) { o.Behaviour.Batches = true }},
	{ID: "base.batch-of-one-served", Requirement: ids.BaseBatchNotServed, Transports: OverStdio,
		Summary: "A batch with one member is taken for that.",
		Apply: Inbound(func(raw []byte) []byte {
			var batch []json.RawMessage
			if json.Unmarshal(raw, &batch) == nil && len(batch) == 1 {
				return batch[0]
			}
			return raw
		})},
	{ID: "base.latin-1", Requirement: ids.BaseMessageUTF8, Summary: "The log is written in ISO 8859-1.",
		Apply: Logged(func(raw string) string { return strings.Replace(raw, `"logger":"`, "\"logger\":\"\xfc", 1) })},
	{ID: "base.utf8-refused", Requirement: ids.BaseMessageUTF8Accepted, Transports: OverHTTP,
		Summary:    "A request with an id that is not ASCII is answered with HTTP status 400.",
		Collateral: []string{ids.BaseRequestStringIDServed},
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			return strings.Contains(Posted(r).ID.String(), "Grüße")
		}), Peeking())},
	{ID: "base.utf8-mangled", Requirement: ids.BaseMessageUTF8Accepted,
		Summary: "Characters outside ASCII in an id come back as question marks.",
		Collateral: []string{ids.BaseRequestStringIDServed, ids.BaseResponseIDEcho, ids.BaseResponsePresent,
			ids.BaseResponseOnlyToRequests, ids.StdioMessageOnlyNewlineDelimits},
		Apply: Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers == nil || out.Answers.Method != "ping" {
				return frame
			}
			return bytes.ReplaceAll(frame, []byte("Grüße 你好"), []byte("Grüße ??"))
		})},
	{ID: "base.utf8-normalised", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "An e and an accent come back as one character.",
		Collateral: []string{ids.BaseRequestStringIDServed, ids.ProgressTokenActiveRequest, ids.BaseResponsePresent,
			ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return bytes.ReplaceAll(frame, []byte("e\u0301"), []byte("\u00e9"))
		})},
	{ID: "base.utf8-cut-apart", Requirement: ids.BaseMessageUTF8Accepted,
		Summary:    "Input is decoded piece by piece, so that a character at the end of 64 KiB is lost.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests, ids.BaseResponseIDEcho},
		Apply: Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers == nil || out.Answers.Method != "ping" || len(frame) < 64<<10 {
				return frame
			}
			at := len(frame) / 2
			for !utf8.RuneStart(frame[at]) {
				at++
			}
			_, size := utf8.DecodeRune(frame[at:])
			return slices.Concat(frame[:at], []byte("\uFFFD\uFFFD"), frame[at+size:])
		})},
	{ID: "base.utf8-cut-by-reads", Requirement: ids.StdioMessageSplitWrites, Transports: OverStdio,
		Summary: "Each read of stdin is decoded by itself, so that a character that comes in two is lost.",
		Collateral: []string{ids.BaseMessageUTF8Accepted, ids.BaseResponsePresent, ids.BaseResponseOnlyToRequests,
			ids.BaseResponseIDEcho},
		Apply: chunks(func(chunk []byte) []byte { return bytes.ToValidUTF8(chunk, []byte("\uFFFD")) })},
	{ID: "base.method-and-result", Requirement: ids.SchemaJSONRPCMessage,
		Summary: "Responses to tools/list repeat the method.",
		Apply:   Responses("tools/list", func(out *server.Outgoing) { out.Message["method"] = "tools/list" })},
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
