package mockserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// preceding holds the ids of the last two requests of a session.
func preceding(s *server.Session) *atomic.Pointer[[2]wire.ID] {
	return s.Value("preceding", func() any {
		p := new(atomic.Pointer[[2]wire.ID])
		p.Store(new([2]wire.ID))
		return p
	}).(*atomic.Pointer[[2]wire.ID])
}

// numbering keeps these ids.
func numbering() apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		if m.Kind == wire.Request {
			p := preceding(s)
			last := p.Load()
			p.Store(&[2]wire.ID{last[1], m.ID})
		}
		next()
	})
}

// listening counts the listening streams that are open, by session.
type listening struct{ open sync.Map }

func (l *listening) of(session string) *atomic.Int64 {
	n, _ := l.open.LoadOrStore(session, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// counting counts a GET for as long as it lasts.
func (l *listening) counting() apply {
	return Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodGet {
			n := l.of(r.Header.Get(SessionHeader))
			n.Add(1)
			defer n.Add(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// divertingToGet sends the responses to requests on the listening stream, where there is one.
func divertingToGet(o *server.Options) {
	streams := new(listening)
	streams.counting()(o)
	Responses("resources/templates/list", func(out *server.Outgoing) {
		if streams.of(out.Session.ID).Load() > 0 {
			out.To = nil
		}
	})(o)
	accepted := func(r *server.Reply) {
		if Posted(r.Request).Method == "resources/templates/list" && streams.of(r.Session.ID).Load() > 0 {
			r.Header.Set("Content-Type", "application/json")
			r.Status, r.Body = http.StatusOK, []byte(`{"accepted":true}`)
		}
	}
	Replying(server.AnsweredSSE, accepted)(o)
	Peeking()(o)
}

// waitingForListening serves no POST of a session while it has a listening stream.
func waitingForListening(o *server.Options) {
	var streams sync.Map
	Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		id := r.Header.Get(SessionHeader)
		if r.Method == http.MethodGet {
			gone := make(chan struct{})
			streams.Store(id, gone)
			defer close(gone)
			defer streams.CompareAndDelete(id, gone)
		} else if gone, there := streams.Load(id); there && r.Method == http.MethodPost {
			select {
			case <-gone.(chan struct{}):
			case <-r.Context().Done():
				return
			}
		}
		next.ServeHTTP(w, r)
	})(o)
}

// unasked is the answer to an initialize that asks for none.
var unasked = object{"jsonrpc": "2.0", "id": nil, "result": object{
	"protocolVersion": server.Version, "capabilities": object{},
	"serverInfo": object{"name": "unasked", "version": "1"},
}}

// threadFaults were reported to the authors of real servers. Each names the thread.
var threadFaults = []Fault{
	// https://github.com/radareorg/radare2-mcp/issues/68
	{ID: "base.ids-forgotten", Requirement: ids.BaseResponseOnlyToRequests,
		Summary:    "Responses to requests with a string id have the id null, others 0.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Responses("*", func(out *server.Outgoing) {
			out.Message["id"] = 0
			if strings.HasPrefix(out.Answers.ID.String(), `"`) {
				out.Message["id"] = nil
			}
		})},
	// https://github.com/MemPalace/mempalace/issues/2229
	{ID: "stdio.code-page-drops", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue, Transports: OverStdio,
		Summary: "A line with a byte that Windows-1252 does not have is dropped.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseRequestStringIDServed, ids.ProgressRequest,
			ids.ToolsErrorUnknownToolProtocolError, ids.PromptsErrorInvalidNameCode, ids.CompletionAnswered,
			ids.CompletionErrorInvalidPromptCode, ids.CancellationInProgress},
		Apply: Inbound(func(raw []byte) []byte {
			if utf8.Valid(raw) && slices.ContainsFunc(raw,
				func(c byte) bool { return strings.IndexByte("\x81\x8d\x8f\x90\x9d", c) >= 0 }) {
				return nil
			}
			return raw
		})},
	// https://github.com/andresharpe/dotbot/pull/650
	{ID: "base.parse-error-stale-id", Requirement: ids.BaseResponseOnce, Form: InSequence, Transports: OverStdio,
		Summary: "The error for input that is not JSON has the id of the request before it.",
		Apply: All(numbering(), parseErrors(func(out *server.Outgoing) {
			if last := preceding(out.Session).Load()[1]; last.Usable() {
				out.Message["id"] = json.RawMessage(last.String())
			}
		}))},
	// https://github.com/modelcontextprotocol/kotlin-sdk/issues/189
	{ID: "base.params-absent-refused", Requirement: ids.ToolsListAnswered,
		Summary:    "A list request without params is refused.",
		Collateral: []string{ids.ResourcesListAnswered, ids.ResourcesTemplatesAnswered, ids.PromptsListAnswered},
		Apply: Refusing("*", server.InternalError, func(r *server.Request) bool {
			return strings.HasSuffix(r.Method, "/list") && r.Message.Params == nil
		})},
	// https://github.com/open-metadata/OpenMetadata/issues/32213
	{ID: "http.unknown-method-500", Requirement: ids.BaseErrorMethodNotFound, Transports: OverHTTP,
		Summary: "A request of an unknown method is answered with HTTP status 500 and a text.",
		Apply: Replying(server.AnsweredJSON, func(r *server.Reply) {
			if bytes.Contains(r.Body, []byte(`"code":-32601`)) {
				r.Header.Set("Content-Type", "text/plain")
				r.Status, r.Body = http.StatusInternalServerError, []byte("Missing handler for request type")
			}
		})},
	// https://github.com/modelcontextprotocol/python-sdk/issues/2416
	{ID: "cancellation.of-the-last-deafens", Requirement: ids.BaseResponsePresent, Form: InSequence,
		Summary:    "After a cancellation of the request that was answered last nothing is answered any more.",
		Collateral: []string{ids.CancellationEitherSide},
		Apply: All(
			Responses("*", func(out *server.Outgoing) { doneOf(out.Session).Store(out.Answers.ID.Key()) }),
			unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
				last, _ := doneOf(s).Load().(string)
				return m.Method == Cancelled && wire.ReadID(wire.At(m.Params, "requestId")).Key() == last
			}),
		)},
	// https://github.com/modelcontextprotocol/python-sdk/pull/2493
	{ID: "cancellation.answered-with-error", Requirement: ids.CancellationNoResponse,
		Summary: "A cancelled call is answered with an error of the code 0.",
		Apply: All(
			func(o *server.Options) { o.Behaviour.AnswerCancelled = true },
			Wrapping("tools/call",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					result, problem := next(ctx, r)
					if ctx.Err() != nil {
						return nil, &wire.Error{Code: 0, Message: "Request cancelled"}
					}
					return result, problem
				}),
		)},
	// https://github.com/mark3labs/mcp-go/issues/742
	{ID: "http.json-behind-events", Requirement: ids.HTTPServerSSEResponseSent, Transports: OverHTTP,
		Summary:    "Behind the events of its stream a call is answered with plain JSON.",
		Collateral: []string{ids.HTTPServerSSENoEarlyClose, ids.ToolsListCallable},
		Apply: Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers != nil && calling("test_tool_with_logging")(out.Answers) &&
				!bytes.HasPrefix(frame, []byte("{")) {
				return append([]byte(Text(out.Message)), '\n')
			}
			return frame
		})},
	// https://github.com/modelcontextprotocol/ruby-sdk/issues/111
	{ID: "http.responses-move-to-get", Requirement: ids.HTTPServerGetNoResponse, Form: InSequence,
		Transports: OverHTTP,
		Summary: "While a listening stream is open, the response to resources/templates/list comes on it, " +
			"and the POST is answered with a note.",
		Collateral: []string{ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError, ids.HTTPServerJSONOneObject,
			ids.HTTPServerVersionHeaderMissing},
		Apply: divertingToGet},
	// https://github.com/modelcontextprotocol/ruby-sdk/pull/114
	{ID: "http.other-notifications-200", Requirement: ids.HTTPServerNotification202, Form: ByValue,
		Transports: OverHTTP,
		Summary:    "Notifications other than notifications/initialized are answered with 200.",
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if m := Posted(r.Request); m.Kind == wire.Notification && m.Method != "notifications/initialized" {
				r.Status = http.StatusOK
			}
		}))},
	// https://github.com/modelcontextprotocol/go-sdk/pull/424
	{ID: "tools.failure-content-null", Requirement: ids.SchemaCallToolResult,
		Summary: "The content of a tool that fails is null.",
		Apply:   Called("test_error_handling", Having("content", nil))},
	// https://github.com/modelcontextprotocol/go-sdk/pull/418
	{ID: "tools.structured-null", Requirement: ids.ToolsStructuredContentObject,
		Summary: "A tool without structured content has null for it.",
		Apply:   Called("test_simple_text", Having("structuredContent", nil))},
	// https://github.com/use-novamira/novamira/issues/82
	{ID: "tools.properties-array", Requirement: ids.ToolsInputSchemaValid,
		Summary:    "The properties in the input schema of a tool without parameters are an empty array.",
		Collateral: []string{ids.SchemaListToolsResult},
		Apply:      tool("test_simple_text", At("inputSchema", Having("properties", list{})))},
	// https://github.com/logiscape/mcp-sdk-php/issues/1
	{ID: "base.empty-result-array", Requirement: ids.BaseResponseResultObject,
		Summary:    "Results without members are an empty array.",
		Collateral: []string{ids.PingResponsePrompt, ids.ResourcesSubscribeAccepted, ids.LoggingSetLevelAllLevels},
		Apply: Responses("*", func(out *server.Outgoing) {
			if result := out.Result(); result != nil && len(result) == 0 {
				out.Message["result"] = list{}
			}
		})},
	// https://github.com/opentokenz/mcpx/issues/28
	{ID: "tools.output-schema-untyped", Requirement: ids.SchemaListToolsResult,
		Summary: "An output schema has no type.", Apply: tool("sum", At("outputSchema", Lacking("type")))},
	// https://github.com/modelcontextprotocol/java-sdk/pull/839
	{ID: "http.updates-to-all", Requirement: ids.ResourcesUpdatedOnlySubscribed, Form: BySession,
		Transports: OverHTTP,
		Summary:    "The update of a resource is announced to every session, if one of them has subscribed to it.",
		Collateral: []string{ids.ResourcesUpdatedEndsWithUnsubscribe},
		Apply: WrappingTool("update_resource", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			result, problem := next(ctx, r)
			if held := r.Session.Subscriptions(); len(held) > 0 {
				for _, s := range r.Session.Server.Sessions() {
					if s != r.Session && s.Initialized() {
						s.Notify("notifications/resources/updated", object{"uri": WatchedURI})
					}
				}
			}
			return result, problem
		})},
	// https://github.com/punkpeye/fastmcp/pull/316
	{ID: "completion.many-refused", Requirement: ids.CompletionAnswered, Form: ByValue,
		Summary: "A completion for which there are more than 100 values is refused with -32603.",
		Apply: Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if wire.At(result, "completion", "hasMore") == true {
					return nil, &wire.Error{Code: server.InternalError,
						Message: "Too big: expected array to have <=100 items"}
				}
				return result, problem
			})},
	// https://github.com/PrefectHQ/fastmcp/issues/5166
	{ID: "resources.escaped-unreadable", Requirement: ids.ResourcesReadAnswered, Form: ByValue,
		Summary: "A listed resource whose URI has an escape cannot be found.",
		Apply: All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": "test://caf%C3%A9", "name": "café", "mimeType": "text/plain"},
					Read: func(context.Context, *server.Request) ([]any, *wire.Error) {
						return list{object{"uri": "test://caf%C3%A9", "mimeType": "text/plain", "text": "closed"}}, nil
					},
				})
			}),
			Refusing("resources/read", -32002, reading("test://caf%C3%A9")),
		)},
	// https://github.com/modelcontextprotocol/inspector/issues/2028
	{ID: "tools.logging-shifts-id", Requirement: ids.BaseResponseOnce, Form: InSequence,
		Summary:    "The response to a call that logs has the id of the request before it.",
		Collateral: []string{ids.LifecycleShutdownStdioServerExits},
		Apply: All(numbering(), Responses("tools/call", func(out *server.Outgoing) {
			if last := preceding(out.Session).Load()[0]; last.Usable() &&
				calling("test_tool_with_logging")(out.Answers) {
				out.Message["id"] = json.RawMessage(last.String())
			}
		}))},
	// https://github.com/modelcontextprotocol/inspector/issues/2187
	{ID: "http.get-blocks-posts", Requirement: ids.BaseResponsePresent, Form: AtOnce, Transports: OverHTTP,
		Summary: "While a listening stream is open, no POST of its session is served.",
		Apply:   waitingForListening},
	// https://github.com/PhilflowIO/dav-mcp/issues/31
	{ID: "http.heartbeat-event", Requirement: ids.HTTPServerSSEEventData, Transports: OverHTTP,
		Summary:    "An event carries a heartbeat in JSON that is not a message.",
		Collateral: []string{ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError},
		Apply:      ahead(`{"type":"heartbeat"}`)},
	// https://github.com/0xMassi/webclaw/pull/112
	{ID: "stdio.burst-loses-responses", Requirement: ids.BaseResponsePresent, Form: AtOnce, Transports: OverStdio,
		Summary:    "A request that runs beside more than seven others gets no response.",
		Collateral: []string{ids.LifecycleErrorMissingCapability, ids.ProgressRequest},
		Apply: Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			r.Detach()
			if r.Sleep(ctx, 5*time.Millisecond) == nil && len(r.Session.Running()) > 8 {
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})},
	// https://github.com/sourcemeta/one/pull/964
	{ID: "tools.arguments-string-served", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "The arguments of a call that are not an object are taken for none.",
		Apply:   argumentsForNone("tools/call")},
	// https://github.com/modelcontextprotocol/python-sdk/issues/820
	{ID: "tools.arguments-string-deafens", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "After a call whose arguments are a string nothing is answered any more.",
		Collateral: []string{ids.BaseErrorInvalidParams},
		Apply: unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			_, text := wire.At(m.Params, "arguments").(string)
			return m.Method == "tools/call" && text
		})},
	// https://github.com/php-mcp/server/issues/53
	{ID: "tools.arguments-array-internal", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "A call whose arguments are an array is refused with -32603.",
		Apply:   Refusing("tools/call", server.InternalError, ofType("an array", "arguments"))},
	// https://github.com/sourcemeta/one/pull/964
	{ID: "prompts.arguments-string-served", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "The arguments of prompts/get that are not an object are taken for none.",
		Apply:   argumentsForNone("prompts/get")},
	// https://github.com/Dokploy/mcp/issues/3
	{ID: "tools.arguments-lost", Requirement: ids.ToolsListCallable, WarnOnly: true,
		Summary:    "Calls are served as if they had no arguments.",
		Collateral: []string{ids.ToolsSecurityValidateInputs},
		Apply: OnRequest("tools/call", func(r *server.Request) {
			if _, ok := r.Params["arguments"].(object); ok {
				r.Params["arguments"] = object{}
			}
		})},
	// https://github.com/affaan-m/ECC/pull/2670
	{ID: "meta.call-refused", Requirement: ids.MetaAttachRequest, Form: ByValue,
		Summary:    "A call with _meta is refused with -32602.",
		Collateral: []string{ids.ProgressTokenAnyMeans, ids.ProgressRequest, ids.ToolsErrorExecutionAsResult},
		Apply: Refusing("tools/call", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })},
	// https://github.com/MemPalace/mempalace/issues/1574
	{ID: "tools.missing-argument-server-error", Requirement: ids.ToolsErrorInvalidArgumentsForm,
		Summary: "Arguments that do not fit are refused with -32000.",
		Apply:   WrappingTool("sum", server.Recode(server.InvalidParams, -32000))},
	// https://github.com/MemPalace/mempalace/issues/929
	{ID: "tools.text-outside-ascii-refused", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "A call of echo with text outside ASCII is refused with -32000.",
		Apply:   Refusing("tools/call", -32000, Fitting(HoldsWide, "arguments", "text"))},
	// https://github.com/ganhammar/hass-mcp-server/issues/82
	{ID: "http.failure-500", Requirement: ids.ToolsErrorExecutionAsResult, Transports: OverHTTP,
		Summary: "The failure of a tool is answered with HTTP status 500 and a text.",
		Apply: Replying(server.AnsweredJSON, func(r *server.Reply) {
			if bytes.Contains(r.Body, []byte(`"isError":true`)) {
				r.Header.Set("Content-Type", "text/plain")
				r.Status, r.Body = http.StatusInternalServerError, []byte("500 Internal Server Error")
			}
		})},
	// https://github.com/google-labs-code/stitch-sdk/issues/367
	{ID: "tools.output-schema-dangling", Requirement: ids.ToolsOutputSchemaValid,
		Summary: "An output schema refers to a definition that is not there.",
		Apply:   tool("sum", At("outputSchema", At("properties", Having("sum", object{"$ref": "#/$defs/Sum"}))))},
	// https://github.com/superdoc/docx-editor/issues/3588
	{ID: "tools.input-schema-dangling", Requirement: ids.ToolsInputSchemaValid,
		Summary: "An input schema refers to a definition that is not there.",
		Apply:   tool("sum", At("inputSchema", At("properties", Having("a", object{"$ref": "#/$defs/Number"}))))},
	// https://github.com/cloudflare/mcp-server-cloudflare/issues/12
	{ID: "tools.result-wrapped", Requirement: ids.SchemaCallToolResult,
		Summary: "The result of a tool stands in a member toolResult.",
		Apply: Called("test_simple_text", func(result object) {
			result["toolResult"] = object{"content": result["content"]}
			delete(result, "content")
		})},
	// https://github.com/Apicurio/apicurio-registry/pull/6899
	{ID: "meta.result-null", Requirement: ids.MetaObject, Summary: "The _meta of tool results is null.",
		Apply: Results("tools/call", Having("_meta", nil))},
	// https://github.com/cyanheads/obsidian-mcp-server/issues/108
	{ID: "tools.structured-surplus", Requirement: ids.ToolsOutputSchemaConforms,
		Summary: "Structured content has a member that the output schema does not allow.",
		Apply: All(
			tool("sum", At("outputSchema", Having("additionalProperties", false))),
			Called("sum", func(result object) {
				if structured, ok := result["structuredContent"].(object); ok {
					structured["notes"] = list{}
					result["content"] = TextOf(Text(structured))
				}
			}),
		)},
	// https://github.com/Hmbown/Codewhale/issues/5335
	{ID: "tools.next-cursor-null", Requirement: ids.SchemaListToolsResult,
		Summary: "The last page of the tools has a nextCursor that is null.",
		Apply: Results("tools/list", func(result object) {
			if result["nextCursor"] == nil {
				result["nextCursor"] = nil
			}
		})},
	// https://github.com/DeusData/codebase-memory-mcp/issues/1247
	{ID: "pagination.only-page-repeats", Requirement: ids.PaginationOperations,
		Summary: "prompts/list gives all on one page, with a cursor that leads to the same page.",
		Collateral: []string{ids.PaginationCursorResultsAfter, ids.PromptsNameUnique,
			ids.PaginationServerStableCursors, ids.PaginationErrorInvalidCursorCode},
		Apply: Answering("prompts/list", object{"prompts": list{object{"name": "test_simple_prompt"}},
			"nextCursor": "8"}, Always)},
	// https://github.com/sparfenyuk/mcp-proxy/issues/233
	{ID: "pagination.tools-cursor-dropped", Requirement: ids.PaginationCursorResultsAfter,
		Summary: "tools/list ignores the cursor.",
		Collateral: []string{ids.PaginationOperations, ids.ToolsNameUnique, ids.PaginationServerStableCursors,
			ids.PaginationErrorInvalidCursorCode},
		Apply: FromStart("tools/list", Always)},
	// https://github.com/modelcontextprotocol/python-sdk/issues/2961
	{ID: "resources.dot-as-pattern", Requirement: ids.ResourcesSecurityValidateURIs, Form: ByValue,
		Summary: "A dot in the URI of a resource stands for any character.",
		Apply: All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": DottedURI, "name": "notes", "mimeType": "text/plain"},
					Read:       ReadingText(DottedURI),
				})
			}),
			OnRequest("resources/read", func(r *server.Request) {
				if uri := Param(r, "uri"); regexp.MustCompile("^" + DottedURI + "$").MatchString(uri) {
					r.Params["uri"] = DottedURI
				}
			}),
		)},
	// https://github.com/modelcontextprotocol/python-sdk/issues/2961
	{ID: "resources.template-dot-as-pattern", Requirement: ids.ResourcesSecurityValidateURIs, Form: ByValue,
		Summary: "A dot in the text of a template stands for any character.",
		Apply: Offering(func(c *server.Catalogue) {
			pattern := regexp.MustCompile("^test://files/([^/]+).json$")
			c.Templates = append(c.Templates, TemplateOf("test://files/{id}.json", pattern, "id"))
		})},
	// https://github.com/modelcontextprotocol/java-sdk/issues/596
	{ID: "resources.template-query-unreadable", Requirement: ids.ResourcesTemplateConstructsURIs, Form: ByValue,
		Summary: "The question mark in the text of a template makes the character before it optional.",
		Apply: Offering(func(c *server.Catalogue) {
			pattern := regexp.MustCompile("^test://search?q=([^/]+)$")
			c.Templates = append(c.Templates, TemplateOf("test://search?q={text}", pattern, "text"))
		})},
	// https://github.com/PrefectHQ/fastmcp/issues/4250
	{ID: "resources.template-form-query-fails", Requirement: ids.ResourcesTemplateConstructsURIs, Form: ByValue,
		Summary: "A template with {?format} matches nothing but its own text.",
		Apply: Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://reports/{id}{?format}",
				regexp.MustCompile(`^test://reports/([^/]+)\{\?format\}$`), "id"))
		})},
	// https://github.com/laravel/mcp/issues/329
	{ID: "resources.template-plus-unreadable", Requirement: ids.ResourcesTemplateConstructsURIs, Form: ByValue,
		Summary: "A template with {+path} matches nothing but its own text.",
		Apply: Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://tree/{+path}",
				regexp.MustCompile(`^test://tree/\{\+path(\})$`), "path"))
		})},
	// https://github.com/modelcontextprotocol/python-sdk/issues/342
	{ID: "resources.blob-base64url", Requirement: ids.ResourcesSecurityBinaryEncoded,
		Summary: "Binary contents are in the alphabet for URLs.",
		Apply: contents("test://static-binary",
			Having("blob", base64.URLEncoding.EncodeToString([]byte("\xfb\xff\xfe 1"))))},
	// https://github.com/langchain4j/langchain4j/issues/6279
	{ID: "resources.blob-line-breaks", Requirement: ids.ResourcesSecurityBinaryEncoded,
		Summary: "Binary contents are base64 with line breaks.",
		Apply: contents("test://static-binary", func(contents object) {
			if blob, ok := contents["blob"].(string); ok {
				contents["blob"] = blob[:76] + "\r\n" + blob[76:]
			}
		})},
	// https://github.com/GopherSecurity/gopher-mcp/issues/206
	{ID: "resources.contents-counted", Requirement: ids.SchemaReadResourceResult,
		Summary: "The result of resources/read counts the contents and does not hold them.",
		Apply: Results("resources/read", func(result object) {
			contents, _ := result["contents"].(list)
			delete(result, "contents")
			result["contentCount"] = len(contents)
		})},
	// https://github.com/Azure/data-api-builder/issues/3274
	{ID: "logging.declared-not-served", Requirement: ids.LoggingSetLevelAllLevels,
		Summary:    "logging is declared, and logging/setLevel refused with -32601.",
		Collateral: []string{ids.LoggingErrorInvalidLevelCode},
		Apply:      Refusing("logging/setLevel", server.MethodNotFound, Always)},
	// https://github.com/php-mcp/server/issues/34
	{ID: "lifecycle.newest-always", Requirement: ids.LifecycleVersionEchoSupported, Transports: OverHTTP,
		Summary: "initialize is answered with the newest version, whichever was asked for.",
		Apply:   choosing(func(string) string { return schema.DefaultVersion })},
	// https://github.com/wildfly/wildfly-ai-feature-pack/issues/346
	{ID: "lifecycle.echoes-anything", Requirement: ids.LifecycleVersionOfferOther,
		Summary:    "initialize is answered with the version that was asked for, whichever it is.",
		Collateral: []string{ids.LifecycleVersionOfferLatest, ids.LifecycleErrorVersionMismatch},
		Apply:      choosing(func(asked string) string { return asked })},
	// https://github.com/xpzouying/xiaohongshu-mcp/issues/697
	{ID: "lifecycle.version-refused-by-status", Requirement: ids.LifecycleVersionOfferOther, Transports: OverHTTP,
		Summary:    "initialize with a version that is not supported is answered with 400.",
		Collateral: []string{ids.LifecycleVersionOfferLatest, ids.LifecycleErrorVersionMismatch},
		Apply: All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			m := Posted(r)
			version, _ := wire.At(m.Params, "protocolVersion").(string)
			return m.Method == "initialize" && !slices.Contains([]string{schema.DefaultVersion, "2025-03-26",
				"2024-11-05"},
				version)
		}), Peeking())},
	// https://github.com/IBM/WxMCPServer/issues/3
	{ID: "lifecycle.version-placeholder", Requirement: ids.LifecycleVersionOfferOther, Form: ByValue, WarnOnly: true,
		Summary: "initialize without a version is answered with the version %params/protocolVersion%.",
		Apply: Wrapping("initialize",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				_, given := r.Params["protocolVersion"]
				if !given {
					r.Params["protocolVersion"] = schema.DefaultVersion
				}
				result, problem := next(ctx, r)
				if o, ok := result.(object); ok && !given {
					o["protocolVersion"] = "%params/protocolVersion%"
				}
				return result, problem
			})},
	// https://github.com/GopherSecurity/gopher-mcp/issues/183
	{ID: "lifecycle.client-version-internal", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "initialize without the version of the client is refused with -32603.",
		Apply: Refusing("initialize", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "clientInfo", "version") == nil
		})},
	// https://github.com/scalameta/metals/issues/8851
	{ID: "lifecycle.capability-members-refused", Requirement: ids.LifecycleCapabilityClientAdditional, Form: ByValue,
		Summary: "A client whose capability elicitation has members is refused.",
		Apply: Refusing("initialize", server.InvalidParams, func(r *server.Request) bool {
			o, _ := wire.At(r.Params, "capabilities", "elicitation").(object)
			return len(o) > 0
		})},
	// https://github.com/modelcontextprotocol/python-sdk/issues/1311
	{ID: "ping.before-initialize-refused", Requirement: ids.LifecycleInitClientEarlyPing, Form: InSequence,
		Transports: OverStdio, Summary: "A ping before initialize is refused with -32602.",
		Apply: All(
			OnRequest("initialize", func(r *server.Request) {
				Once(r.Session, "begun")
			}),
			Refusing("ping", server.InvalidParams, func(r *server.Request) bool { return Once(r.Session, "begun") }),
		)},
	// https://github.com/quarkiverse/quarkus-mcp-server/issues/469
	{ID: "ping.first-message-deafens", Requirement: ids.LifecycleInitClientEarlyPing, Form: InSequence,
		Transports: OverStdio, Summary: "When the first message is a ping, nothing is answered.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
			return Once(s, "begun") && m.Method == "ping"
		})},
	// https://github.com/theoriclabs/LeanDB/issues/64
	{ID: "base.call-without-id-answered", Requirement: ids.BaseNotificationNoResponse, Form: ByValue,
		Summary:    "A tools/call without an id is answered with the id null.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: reacting(wire.Notification, "tools/call", func(*wire.Message) object {
			return refusal(nil, server.InvalidParams, "Unknown tool")
		})},
	// https://github.com/paiml/aprender/pull/2090
	{ID: "base.initialize-without-id-answered", Requirement: ids.BaseNotificationNoResponse, Form: ByValue,
		Summary: "An initialize without an id is answered with the id null; over Streamable HTTP in place " +
			"of the status 400.",
		Collateral: []string{ids.BaseResponseIDEcho, ids.BaseResponseOnce},
		Apply: All(
			reacting(wire.Notification, "initialize", func(*wire.Message) object { return Copied(unasked) }),
			Replying(server.MissingSession, func(r *server.Reply) {
				if Posted(r.Request).Method == "initialize" {
					r.Header.Set("Content-Type", "application/json")
					r.Status, r.Body = http.StatusOK, []byte(Text(unasked))
				}
			}),
			Peeking(),
		)},
	// https://github.com/anthropics/claude-code/issues/45368
	{ID: "http.error-id-invented", Requirement: ids.BaseErrorUndetectableID, Transports: OverHTTP,
		Summary:    "Errors that come with an HTTP error status have the id server-error.",
		Collateral: []string{ids.BaseResponseOnlyToRequests, ids.BaseErrorParseError},
		Apply: func(o *server.Options) {
			for _, situation := range []server.Situation{server.MissingSession, server.UnknownSession,
				server.BadMessage, server.NotAcceptable, server.BadVersionHeader} {
				Replying(situation, func(r *server.Reply) {
					r.Header.Set("Content-Type", "application/json")
					r.Body = []byte(
						`{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}`)
				})(o)
			}
		}},
	// https://github.com/sagemcp/sagemcp/pull/29
	{ID: "stdio.null-for-notification", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary:    "A notification is answered with a line that holds null.",
		Collateral: []string{ids.BaseJSONObject},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification {
				s.Send(&server.Outgoing{Session: s, Message: object{}, Raw: []byte("null")})
			}
		})},
	// https://github.com/TSavo/printify-mcp/issues/3
	{ID: "stdio.log-on-refusal", Requirement: ids.StdioServerStdoutClean, Form: ByValue, Transports: OverStdio,
		Summary: "The refusal of an unknown tool is also written to stdout as a line of text.",
		Apply: Responses("tools/call", func(out *server.Outgoing) {
			if out.RPCError() != nil && unknownNamed(out.Answers) {
				out.Raw = []byte("Error: unknown tool\n" + Text(out.Message))
			}
		})},
	// https://github.com/agentic-hil/agentic-hil/issues/484
	{ID: "stdio.answers-in-code-page", Requirement: ids.BaseMessageUTF8, Form: ByValue, Transports: OverStdio,
		Summary: "Lines are written in ISO 8859-1.",
		Collateral: []string{ids.BaseJSONWellFormed, ids.BaseJSONAnySpelling, ids.BaseMessageUTF8Accepted,
			ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID,
			ids.BaseRequestStringIDServed, ids.BaseResponseOnlyToRequests, ids.ProgressTokenActiveRequest},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			var written []byte
			for _, c := range string(frame) {
				if c > 255 {
					c = '?'
				}
				written = append(written, byte(c))
			}
			return written
		})},
	// https://github.com/open-metadata/OpenMetadata/issues/22423
	{ID: "http.answers-in-ascii", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue, Transports: OverHTTP,
		Summary: "In answers over HTTP a question mark stands for each character outside ASCII.",
		Collateral: []string{ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.BaseRequestStringIDServed,
			ids.BaseResponseOnlyToRequests, ids.BaseJSONAnySpelling, ids.ProgressTokenActiveRequest},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return []byte(strings.Map(func(c rune) rune {
				if c > 127 {
					return '?'
				}
				return c
			}, string(frame)))
		})},
	// https://github.com/ruvnet/ruflo/issues/2426
	{ID: "stdio.answer-cut", Requirement: ids.BaseJSONWellFormed, Form: ByValue, Transports: OverStdio,
		Summary:    "A line is cut after 64 KiB.",
		Collateral: []string{ids.BaseResponsePresent, ids.StdioServerStdoutClean},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			if len(frame) > 64<<10 {
				return append(bytes.Clone(frame[:64<<10]), '\n')
			}
			return frame
		})},
	// https://github.com/DeusData/codebase-memory-mcp/issues/1375
	{ID: "base.long-answer-lost", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "A response of more than 256 KiB is not sent.",
		Collateral: []string{ids.StdioMessageLarge, ids.HTTPMessageLarge},
		Apply: WithholdingAnswers("*", func(out *server.Outgoing) bool {
			return len(Text(out.Message)) > 256<<10
		})},
	// https://github.com/twentyhq/twenty/issues/24559
	{ID: "progress.token-fabricated", Requirement: ids.ProgressTokenActiveRequest,
		Summary:    "Each call sends progress with a token of the server's own making.",
		Collateral: []string{ids.ProgressTokenEcho},
		Apply: OnRequest("tools/call", func(r *server.Request) {
			r.Notify("notifications/progress",
				object{"progressToken": "tool-call-" + strings.Trim(r.ID.String(), `"`), "progress": 0, "total": 1})
		})},
	// https://github.com/infobip/infobip-openapi-mcp/pull/41
	{ID: "progress.total-null", Requirement: ids.SchemaProgressNotification,
		Summary: "The total of progress is null.",
		Apply:   Params("notifications/progress", Having("total", nil))},
	// https://github.com/shaun0927/openchrome/pull/954
	{ID: "progress.last-repeated", Requirement: ids.ProgressValueIncreases,
		Summary: "The last progress of a call is reported twice.",
		Apply: Sending(server.OnMessage("notifications/progress", func(out *server.Outgoing) []*server.Outgoing {
			p := out.Params()
			if p["total"] != nil && Text(object{"v": p["progress"]}) == Text(object{"v": p["total"]}) {
				return []*server.Outgoing{out, out.Clone()}
			}
			return []*server.Outgoing{out}
		}))},
	// https://github.com/supabase/mcp/issues/400
	{ID: "http.delete-not-found", Requirement: ids.HTTPServerDeleteSession, Transports: OverHTTP,
		Summary: "The DELETE of a live session is answered with 404, and the session goes on.",
		Apply: RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
			return r.Method == http.MethodDelete && r.Header.Get("Origin") == ""
		})},
	// https://github.com/rust-mcp-stack/rust-mcp-sdk/pull/169
	{ID: "http.session-id-outside-ascii", Requirement: ids.HTTPServerSessionIDCharset, Form: ByValue,
		Transports: OverHTTP, Summary: "Session ids have a letter outside ASCII.", Apply: sessionIDs("séance-")},
	// https://github.com/rust-mcp-stack/rust-mcp-sdk/pull/169
	{ID: "http.session-id-with-tab", Requirement: ids.HTTPServerSessionIDCharset, Form: ByValue,
		Transports: OverHTTP, Summary: "Session ids have a tab.", Apply: sessionIDs("session\t")},
	// https://github.com/aklivity/zilla/issues/2525
	{ID: "http.ended-session-200", Requirement: ids.HTTPServerSessionEnded404, Transports: OverHTTP,
		Summary: "A POST of an ended session is answered with 200 and an error without an id.",
		Collateral: []string{ids.BaseResponseIDEcho, ids.HTTPServerUnacceptableErrorStatus,
			ids.HTTPServerDeleteSession},
		Apply: Replying(server.UnknownSession, func(r *server.Reply) {
			if r.Request.Method == http.MethodPost {
				r.Status, r.Body = http.StatusOK, []byte(
					`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)
			}
		})},
	// https://github.com/aipotheosis-labs/gate22/pull/137
	{ID: "http.delete-without-session-204", Requirement: ids.HTTPServerSessionMissing400, Form: ByValue,
		Transports: OverHTTP, Summary: "A DELETE without a session id is answered with 204.",
		Apply: deletedWhere(server.MissingSession)},
	// https://github.com/bcurts/agentchattr/issues/80
	{ID: "http.session-id-twice", Requirement: ids.HTTPServerSessionIDAtInitialization, Transports: OverHTTP,
		Summary: "The answer to initialize has the header with the session id twice.",
		Apply: func(o *server.Options) {
			for _, situation := range []server.Situation{server.AnsweredJSON, server.AnsweredSSE} {
				Replying(situation, func(r *server.Reply) {
					r.Header[SessionHeader] = slices.Repeat(r.Header[SessionHeader], 2)
				})(o)
			}
		}},
	// https://github.com/modelcontextprotocol/csharp-sdk/issues/788
	{ID: "http.client-version-500", Requirement: ids.BaseErrorInvalidParams, Form: ByValue, Transports: OverHTTP,
		Summary: "initialize without the version of the client ends in HTTP status 500.",
		Apply: All(RefusingHTTP(http.StatusInternalServerError, func(r *http.Request) bool {
			info, _ := wire.At(Posted(r).Params, "clientInfo").(object)
			return Posted(r).Method == "initialize" && info["name"] != nil && info["version"] == nil
		}), Peeking())},
	// https://github.com/hyperdxio/hyperdx/issues/2686
	{ID: "http.notification-without-params-400", Requirement: ids.BaseParamsOmitted, Transports: OverHTTP,
		Summary: "A notification without params is refused with 400.",
		Apply: All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if m := Posted(r.Request); m.Kind == wire.Notification && m.Params == nil {
				r.Status = http.StatusBadRequest
			}
		}))},
	// https://github.com/modelcontextprotocol/java-sdk/issues/1050
	{ID: "http.refusal-stream-open", Requirement: ids.HTTPServerSSECloseAfterResponse, Form: ByValue,
		Transports: OverHTTP, Summary: "The stream with the refusal of an unknown method stays open.",
		Apply: func(o *server.Options) {
			o.Behaviour.HTTP.KeepOpen = unknownMethod
			o.Behaviour.HTTP.Answer = func(r *server.Request) server.AnswerForm {
				if unknownMethod(r) {
					return server.AnswerSSE
				}
				return server.AnswerAuto
			}
		}},
	// https://github.com/HatriGt/hana-mcp-server/issues/22
	{ID: "base.roots-change-answered", Requirement: ids.BaseNotificationNoResponse,
		Summary:    "notifications/roots/list_changed is answered with an error without an id.",
		Collateral: []string{ids.BaseResponseIDEcho},
		Apply: reacting(wire.Notification, "notifications/roots/list_changed", func(*wire.Message) object {
			return object{"jsonrpc": "2.0", "error": object{"code": server.MethodNotFound,
				"message": "Method not found"}}
		})},
	// https://github.com/IBM/mcp-context-forge/issues/4438
	{ID: "base.id-fabricated", Requirement: ids.BaseNotificationNoResponse, Form: ByValue,
		Summary:    "A ping without an id is answered with an id that the server makes up.",
		Collateral: []string{ids.BaseResponseOnlyToRequests},
		Apply: reacting(wire.Notification, "ping", func(*wire.Message) object {
			return object{"jsonrpc": "2.0", "id": "5baca3f1-a093-40f2-b76f-cb4e1afb0c29", "result": object{}}
		})},
	// https://github.com/quarkiverse/quarkus-mcp-server/issues/716
	{ID: "resources.subscribe-unknown-silent", Requirement: ids.BaseResponsePresent,
		Summary:    "A subscription to a resource that does not exist gets no response.",
		Collateral: []string{ids.ResourcesSubscribeAccepted, ids.BaseErrorInvalidParams},
		Apply: Answering("resources/subscribe", server.NoAnswer, func(r *server.Request) bool {
			return !slices.ContainsFunc(server.DefaultCatalogue().Resources,
				func(x *server.Resource) bool { return x.URI() == r.Params["uri"] })
		})},
	// https://github.com/luckyPipewrench/agent-egress-bench/pull/101
	{ID: "resources.templates-null", Requirement: ids.SchemaListResourceTemplatesResult, Form: ByValue,
		Summary:    "The list of templates is null where there are none.",
		Collateral: []string{ids.ToolsResourceLinkResolvable},
		Apply: All(
			Offering(func(c *server.Catalogue) { c.Templates = nil }),
			Results("resources/templates/list", Having("resourceTemplates", nil)),
		)},
	// https://github.com/ag2ai/ag2/issues/3249
	{ID: "resources.template-escapes", Requirement: ids.ResourcesTemplateConstructsURIs, Form: ByValue,
		Summary: "A template does not match a URI in which the value that the server suggests is encoded.",
		Apply: Offering(func(c *server.Catalogue) {
			t := TemplateOf("test://papers/{name}", regexp.MustCompile(`^test://papers/([\w. ]+)$`), "name")
			t.Complete["name"] = func(string, map[string]string) []string { return []string{"hello world.txt"} }
			c.Templates = append(c.Templates, t)
		})},
	// https://github.com/modelcontextprotocol/kotlin-sdk/issues/174
	{ID: "stdio.initialized-with-params-kills", Requirement: ids.MetaAttachNotification, Form: ByValue,
		Transports: OverStdio, Summary: "notifications/initialized with params ends the process.",
		Apply: dying(func(line []byte) bool {
			m := wire.Parse(line)
			return m.Method == "notifications/initialized" && m.Params != nil
		})},
	// https://github.com/paiml/paiml-mcp-agent-toolkit/issues/648
	{ID: "stdio.unknown-method-kills", Requirement: ids.BaseErrorMethodNotFound, Transports: OverStdio,
		Summary:    "A request of an unknown method ends the process.",
		Collateral: []string{ids.StdioServerSurvivesNonMessage, ids.BaseResponsePresent},
		Apply: dying(func(line []byte) bool {
			m := wire.Parse(line)
			return m.Kind == wire.Request && strings.HasPrefix(m.Method, "mcpconform/")
		})},
	// https://github.com/open-agreements/open-agreements/pull/116
	{ID: "stdio.content-length", Requirement: ids.StdioServerStdoutClean, Transports: OverStdio,
		Summary:    "Messages are written behind a header Content-Length, and not ended by a newline.",
		Collateral: []string{ids.StdioMessageNewlineDelimited},
		Apply: Framing(func(_ *server.Outgoing, frame []byte) []byte {
			body := bytes.TrimSuffix(frame, []byte("\n"))
			return fmt.Appendf(nil, "Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(body), body)
		})},
	// https://github.com/simonlin1212/Vibe-Research/issues/27
	{ID: "stdio.answers-lost-in-code-page", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Transports: OverStdio,
		Summary:    "The response to a call is not sent if it has characters that an encoding of the system lacks.",
		Collateral: []string{ids.ToolsErrorUnknownToolProtocolError},
		Apply: WithholdingAnswers("tools/call", func(out *server.Outgoing) bool {
			return strings.ContainsAny(Text(out.Message), "\u00a0🎉ï")
		})},
}

// argumentsForNone leaves out arguments that are not an object.
func argumentsForNone(method string) apply {
	return OnRequest(method, func(r *server.Request) {
		if _, ok := r.Params["arguments"].(object); !ok {
			delete(r.Params, "arguments")
		}
	})
}

// sessionIDs gives out session ids with a prefix.
func sessionIDs(prefix string) apply {
	return func(o *server.Options) { o.Behaviour.HTTP.SessionID = func() string { return prefix + rand.Text() } }
}

// doneOf holds the key of the id of the call that was answered last.
func doneOf(s *server.Session) *atomic.Value {
	return Kept[atomic.Value](s, "done")
}
