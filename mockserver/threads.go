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

// divertingToGet sends what belongs to requests on the listening stream, where there is one.
func divertingToGet(fits func(method string) bool, answer func(r *server.Reply)) apply {
	return func(o *server.Options) {
		streams := new(listening)
		streams.counting()(o)
		diverts := func(session *server.Session, method string) bool {
			return fits(method) && streams.of(session.ID).Load() > 0
		}
		Sending(func(out *server.Outgoing) []*server.Outgoing {
			if out.To != nil && diverts(out.Session, out.To.Method) {
				out.To = nil
			}
			return []*server.Outgoing{out}
		})(o)
		Replying(server.AnsweredSSE, func(r *server.Reply) {
			if diverts(r.Session, Posted(r.Request).Method) {
				answer(r)
			}
		})(o)
		Peeking()(o)
	}
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
	fault("base.ids-forgotten", ids.BaseResponseOnlyToRequests,
		"Responses to requests with a string id have the id null, others 0.",
		Responses("*", func(out *server.Outgoing) {
			out.Message["id"] = 0
			if strings.HasPrefix(out.Answers.ID.String(), `"`) {
				out.Message["id"] = nil
			}
		})).Also(ids.BaseResponsePresent),
	// https://github.com/MemPalace/mempalace/issues/2229
	fault("stdio.code-page-drops", ids.BaseMessageUTF8Accepted,
		"A line with a byte that Windows-1252 does not have is dropped.", Inbound(func(raw []byte) []byte {
			if utf8.Valid(raw) && slices.ContainsFunc(raw,
				func(c byte) bool { return strings.IndexByte("\x81\x8d\x8f\x90\x9d", c) >= 0 }) {
				return nil
			}
			return raw
		})).Seen(ByValue).
		Also(ids.BaseResponsePresent, ids.BaseRequestStringIDServed, ids.ProgressRequest,
			ids.ToolsErrorUnknownToolProtocolError, ids.PromptsErrorInvalidNameCode, ids.CompletionAnswered,
			ids.CompletionErrorInvalidPromptCode, ids.CancellationInProgress),
	// https://github.com/andresharpe/dotbot/pull/650
	fault("base.parse-error-stale-id", ids.BaseResponseOnce,
		"The error for input that is not JSON has the id of the request before it.",
		All(numbering(), parseErrors(func(out *server.Outgoing) {
			if last := preceding(out.Session).Load()[1]; last.Usable() {
				out.Message["id"] = json.RawMessage(last.String())
			}
		}))).Seen(InSequence).Only(OverStdio),
	// https://github.com/modelcontextprotocol/kotlin-sdk/issues/189
	fault("base.params-absent-refused", ids.ToolsListAnswered, "A list request without params is refused.",
		Refusing("*", server.InternalError, func(r *server.Request) bool {
			return isList(r.Method) && r.Message.Params == nil
		})).Also(ids.ResourcesListAnswered, ids.ResourcesTemplatesAnswered, ids.PromptsListAnswered),
	// https://github.com/open-metadata/OpenMetadata/issues/32213
	fault("http.unknown-method-500", ids.BaseErrorMethodNotFound,
		"A request of an unknown method is answered with HTTP status 500 and a text.",
		Replying(server.AnsweredJSON, func(r *server.Reply) {
			if bytes.Contains(r.Body, []byte(`"code":-32601`)) {
				r.Header.Set("Content-Type", "text/plain")
				r.Status, r.Body = http.StatusInternalServerError, []byte("Missing handler for request type")
			}
		})),
	// https://github.com/modelcontextprotocol/python-sdk/issues/2416
	fault("cancellation.of-the-last-deafens", ids.BaseResponsePresent,
		"After a cancellation of the request that was answered last nothing is answered any more.", All(
			Responses("*", func(out *server.Outgoing) { doneOf(out.Session).Store(out.Answers.ID.Key()) }),
			unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
				last, _ := doneOf(s).Load().(string)
				return m.Method == Cancelled && wire.ReadID(wire.At(m.Params, "requestId")).Key() == last
			}),
		)).Seen(InSequence).Also(ids.CancellationEitherSide, ids.CancellationIgnoreCompleted),
	// https://github.com/modelcontextprotocol/python-sdk/pull/2493
	fault("cancellation.answered-with-error", ids.CancellationNoResponse,
		"A cancelled call is answered with an error of the code 0.", All(
			func(o *server.Options) { o.Behaviour.AnswerCancelled = true },
			Wrapping("tools/call",
				func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
					result, problem := next(ctx, r)
					if ctx.Err() != nil {
						return nil, &wire.Error{Code: 0, Message: "Request cancelled"}
					}
					return result, problem
				}),
		)),
	// https://github.com/mark3labs/mcp-go/issues/742
	fault("http.json-behind-events", ids.HTTPServerSSEResponseSent,
		"Behind the events of its stream a call is answered with plain JSON.",
		Framing(func(out *server.Outgoing, frame []byte) []byte {
			if out.Answers != nil && calling("test_tool_with_logging")(out.Answers) &&
				!bytes.HasPrefix(frame, []byte("{")) {
				return append([]byte(Text(out.Message)), '\n')
			}
			return frame
		})).Also(ids.HTTPServerSSENoEarlyClose, ids.ToolsListCallable),
	// https://github.com/modelcontextprotocol/ruby-sdk/issues/111
	fault("http.responses-move-to-get", ids.HTTPServerGetNoResponse,
		"While a listening stream is open, the response to resources/templates/list comes on it, and the POST is "+
			"answered with a note.",
		divertingToGet(func(method string) bool { return method == "resources/templates/list" },
			func(r *server.Reply) {
				r.Header.Set("Content-Type", "application/json")
				r.Status, r.Body = http.StatusOK, []byte(`{"accepted":true}`)
			})).Seen(InSequence).
		Also(ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError, ids.HTTPServerJSONOneObject,
			ids.HTTPServerVersionHeaderMissing),
	// https://github.com/modelcontextprotocol/ruby-sdk/pull/114
	fault("http.other-notifications-200", ids.HTTPServerNotification202,
		"Notifications other than notifications/initialized are answered with 200.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if m := Posted(r.Request); m.Kind == wire.Notification && m.Method != "notifications/initialized" {
				r.Status = http.StatusOK
			}
		}))).Seen(ByValue),
	// https://github.com/modelcontextprotocol/go-sdk/pull/424
	fault("tools.failure-content-null", ids.SchemaCallToolResult, "The content of a tool that fails is null.",
		Called("test_error_handling", Having("content", nil))),
	// https://github.com/modelcontextprotocol/go-sdk/pull/418
	fault("tools.structured-null", ids.ToolsStructuredContentObject,
		"A tool without structured content has null for it.",
		Called("test_simple_text", Having("structuredContent", nil))),
	// https://github.com/use-novamira/novamira/issues/82
	fault("tools.properties-array", ids.ToolsInputSchemaValid,
		"The properties in the input schema of a tool without parameters are an empty array.",
		tool("test_simple_text", At("inputSchema", Having("properties", list{})))).Also(ids.SchemaListToolsResult),
	// https://github.com/logiscape/mcp-sdk-php/issues/1
	fault("base.empty-result-array", ids.BaseResponseResultObject, "Results without members are an empty array.",
		Responses("*", func(out *server.Outgoing) {
			if result := out.Result(); result != nil && len(result) == 0 {
				out.Message["result"] = list{}
			}
		})).Also(ids.PingResponsePrompt, ids.ResourcesSubscribeAccepted, ids.LoggingSetLevelAllLevels),
	// https://github.com/opentokenz/mcpx/issues/28
	fault("tools.output-schema-untyped", ids.SchemaListToolsResult, "An output schema has no type.",
		tool("sum", At("outputSchema", Lacking("type")))),
	// https://github.com/modelcontextprotocol/java-sdk/pull/839
	fault("http.updates-to-all", ids.ResourcesUpdatedOnlySubscribed,
		"The update of a resource is announced to every session, if one of them has subscribed to it.",
		WrappingTool("update_resource", func(ctx context.Context, r *server.Request, next server.Handler) (any,
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
		})).Seen(BySession).Also(ids.ResourcesUpdatedEndsWithUnsubscribe),
	// https://github.com/punkpeye/fastmcp/pull/316
	fault("completion.many-refused", ids.CompletionAnswered,
		"A completion for which there are more than 100 values is refused with -32603.", Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if wire.At(result, "completion", "hasMore") == true {
					return nil, &wire.Error{Code: server.InternalError,
						Message: "Too big: expected array to have <=100 items"}
				}
				return result, problem
			})).Seen(ByValue),
	// https://github.com/PrefectHQ/fastmcp/issues/5166
	fault("resources.escaped-unreadable", ids.ResourcesReadAnswered,
		"A listed resource whose URI has an escape cannot be found.", All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": "test://caf%C3%A9", "name": "café", "mimeType": "text/plain"},
					Read: func(context.Context, *server.Request) ([]any, *wire.Error) {
						return list{object{"uri": "test://caf%C3%A9", "mimeType": "text/plain", "text": "closed"}}, nil
					},
				})
			}),
			Refusing("resources/read", -32002, reading("test://caf%C3%A9")),
		)).Seen(ByValue),
	// https://github.com/modelcontextprotocol/inspector/issues/2028
	fault("tools.logging-shifts-id", ids.BaseResponseOnce,
		"The response to a call that logs has the id of the request before it.",
		All(numbering(), Responses("tools/call", func(out *server.Outgoing) {
			if last := preceding(out.Session).Load()[0]; last.Usable() &&
				calling("test_tool_with_logging")(out.Answers) {
				out.Message["id"] = json.RawMessage(last.String())
			}
		}))).Seen(InSequence).Also(ids.LifecycleShutdownStdioServerExits),
	// https://github.com/modelcontextprotocol/inspector/issues/2187
	fault("http.get-blocks-posts", ids.BaseResponsePresent,
		"While a listening stream is open, no POST of its session is served.", waitingForListening).Seen(AtOnce),
	// https://github.com/PhilflowIO/dav-mcp/issues/31
	fault("http.heartbeat-event", ids.HTTPServerSSEEventData,
		"An event carries a heartbeat in JSON that is not a message.", ahead(`{"type":"heartbeat"}`)).
		Also(ids.BaseJSONRPCVersion, ids.BaseResponseResultOrError),
	// https://github.com/0xMassi/webclaw/pull/112
	fault("stdio.burst-loses-responses", ids.BaseResponsePresent,
		"A request that runs beside more than seven others gets no response.",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			r.Detach()
			if r.Sleep(ctx, 5*time.Millisecond) == nil && len(r.Session.Running()) > 8 {
				return server.NoAnswer, nil
			}
			return next(ctx, r)
		})).Seen(AtOnce).Also(ids.LifecycleErrorMissingCapability, ids.ProgressRequest),
	// https://github.com/sourcemeta/one/pull/964
	fault("tools.arguments-string-served", ids.BaseErrorInvalidParams,
		"The arguments of a call that are not an object are taken for none.", argumentsForNone("tools/call")).
		Seen(ByValue),
	// https://github.com/modelcontextprotocol/python-sdk/issues/820
	fault("tools.arguments-string-deafens", ids.BaseResponsePresent,
		"After a call whose arguments are a string nothing is answered any more.",
		unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			_, text := wire.At(m.Params, "arguments").(string)
			return m.Method == "tools/call" && text
		})).Seen(ByValue).Also(ids.BaseErrorInvalidParams),
	// https://github.com/php-mcp/server/issues/53
	fault("tools.arguments-array-internal", ids.BaseErrorInvalidParams,
		"A call whose arguments are an array is refused with -32603.",
		Refusing("tools/call", server.InternalError, ofType("an array", "arguments"))).Seen(ByValue),
	// https://github.com/sourcemeta/one/pull/964
	fault("prompts.arguments-string-served", ids.BaseErrorInvalidParams,
		"The arguments of prompts/get that are not an object are taken for none.", argumentsForNone("prompts/get")).
		Seen(ByValue),
	// https://github.com/Dokploy/mcp/issues/3
	fault("tools.arguments-lost", ids.ToolsListCallable, "Calls are served as if they had no arguments.",
		OnRequest("tools/call", func(r *server.Request) {
			if _, ok := r.Params["arguments"].(object); ok {
				r.Params["arguments"] = object{}
			}
		})).Warns().Also(ids.ToolsSecurityValidateInputs),
	// https://github.com/affaan-m/ECC/pull/2670
	fault("meta.call-refused", ids.MetaAttachRequest, "A call with _meta is refused with -32602.",
		Refusing("tools/call", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })).Seen(ByValue).
		Also(ids.ProgressTokenAnyMeans, ids.ProgressRequest, ids.ToolsErrorExecutionAsResult),
	// https://github.com/MemPalace/mempalace/issues/1574
	fault("tools.missing-argument-server-error", ids.ToolsErrorInvalidArgumentsForm,
		"Arguments that do not fit are refused with -32000.",
		WrappingTool("sum", server.Recode(server.InvalidParams, -32000))),
	// https://github.com/MemPalace/mempalace/issues/929
	fault("tools.text-outside-ascii-refused", ids.BaseMessageUTF8Accepted,
		"A call of echo with text outside ASCII is refused with -32000.",
		Refusing("tools/call", -32000, Fitting(HoldsWide, "arguments", "text"))).Seen(ByValue),
	// https://github.com/ganhammar/hass-mcp-server/issues/82
	fault("http.failure-500", ids.ToolsErrorExecutionAsResult,
		"The failure of a tool is answered with HTTP status 500 and a text.",
		Replying(server.AnsweredJSON, func(r *server.Reply) {
			if bytes.Contains(r.Body, []byte(`"isError":true`)) {
				r.Header.Set("Content-Type", "text/plain")
				r.Status, r.Body = http.StatusInternalServerError, []byte("500 Internal Server Error")
			}
		})),
	// https://github.com/google-labs-code/stitch-sdk/issues/367
	fault("tools.output-schema-dangling", ids.ToolsOutputSchemaValid,
		"An output schema refers to a definition that is not there.",
		tool("sum", At("outputSchema", At("properties", Having("sum", object{"$ref": "#/$defs/Sum"}))))),
	// https://github.com/superdoc/docx-editor/issues/3588
	fault("tools.input-schema-dangling", ids.ToolsInputSchemaValid,
		"An input schema refers to a definition that is not there.",
		tool("sum", At("inputSchema", At("properties", Having("a", object{"$ref": "#/$defs/Number"}))))),
	// https://github.com/cloudflare/mcp-server-cloudflare/issues/12
	fault("tools.result-wrapped", ids.SchemaCallToolResult, "The result of a tool stands in a member toolResult.",
		Called("test_simple_text", func(result object) {
			result["toolResult"] = object{"content": result["content"]}
			delete(result, "content")
		})),
	// https://github.com/Apicurio/apicurio-registry/pull/6899
	fault("meta.result-null", ids.MetaObject, "The _meta of tool results is null.",
		Results("tools/call", Having("_meta", nil))),
	// https://github.com/cyanheads/obsidian-mcp-server/issues/108
	fault("tools.structured-surplus", ids.ToolsOutputSchemaConforms,
		"Structured content has a member that the output schema does not allow.", All(
			tool("sum", At("outputSchema", Having("additionalProperties", false))),
			Called("sum", func(result object) {
				if structured, ok := result["structuredContent"].(object); ok {
					structured["notes"] = list{}
					result["content"] = TextOf(Text(structured))
				}
			}),
		)),
	// https://github.com/Hmbown/Codewhale/issues/5335
	fault("tools.next-cursor-null", ids.SchemaListToolsResult,
		"The last page of the tools has a nextCursor that is null.",
		Results("tools/list", Defaulting("nextCursor", nil))),
	// https://github.com/DeusData/codebase-memory-mcp/issues/1247
	fault("pagination.only-page-repeats", ids.PaginationOperations,
		"prompts/list gives all on one page, with a cursor that leads to the same page.",
		Answering("prompts/list", object{"prompts": list{object{"name": "test_simple_prompt"}},
			"nextCursor": "8"}, Always)).
		Also(ids.PaginationCursorResultsAfter, ids.PromptsNameUnique, ids.PaginationServerStableCursors,
			ids.PaginationErrorInvalidCursorCode),
	// https://github.com/sparfenyuk/mcp-proxy/issues/233
	fault("pagination.tools-cursor-dropped", ids.PaginationCursorResultsAfter, "tools/list ignores the cursor.",
		FromStart("tools/list", Always)).
		Also(ids.PaginationOperations, ids.ToolsNameUnique, ids.PaginationServerStableCursors,
			ids.PaginationErrorInvalidCursorCode),
	// https://github.com/modelcontextprotocol/python-sdk/issues/2961
	fault("resources.dot-as-pattern", ids.ResourcesSecurityValidateURIs,
		"A dot in the URI of a resource stands for any character.", All(
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
		)).Seen(ByValue),
	// https://github.com/modelcontextprotocol/python-sdk/issues/2961
	fault("resources.template-dot-as-pattern", ids.ResourcesSecurityValidateURIs,
		"A dot in the text of a template stands for any character.", Offering(func(c *server.Catalogue) {
			pattern := regexp.MustCompile("^test://files/([^/]+).json$")
			c.Templates = append(c.Templates, TemplateOf("test://files/{id}.json", pattern, "id"))
		})).Seen(ByValue),
	// https://github.com/modelcontextprotocol/java-sdk/issues/596
	fault("resources.template-query-unreadable", ids.ResourcesTemplateConstructsURIs,
		"The question mark in the text of a template makes the character before it optional.",
		Offering(func(c *server.Catalogue) {
			pattern := regexp.MustCompile("^test://search?q=([^/]+)$")
			c.Templates = append(c.Templates, TemplateOf("test://search?q={text}", pattern, "text"))
		})).Seen(ByValue),
	// https://github.com/PrefectHQ/fastmcp/issues/4250
	fault("resources.template-form-query-fails", ids.ResourcesTemplateConstructsURIs,
		"A template with {?format} matches nothing but its own text.", Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://reports/{id}{?format}",
				regexp.MustCompile(`^test://reports/([^/]+)\{\?format\}$`), "id"))
		})).Seen(ByValue),
	// https://github.com/laravel/mcp/issues/329
	fault("resources.template-plus-unreadable", ids.ResourcesTemplateConstructsURIs,
		"A template with {+path} matches nothing but its own text.", Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://tree/{+path}",
				regexp.MustCompile(`^test://tree/\{\+path(\})$`), "path"))
		})).Seen(ByValue),
	// https://github.com/modelcontextprotocol/python-sdk/issues/342
	fault("resources.blob-base64url", ids.ResourcesSecurityBinaryEncoded,
		"Binary contents are in the alphabet for URLs.", contents("test://static-binary",
			Having("blob", base64.URLEncoding.EncodeToString([]byte("\xfb\xff\xfe 1"))))),
	// https://github.com/langchain4j/langchain4j/issues/6279
	fault("resources.blob-line-breaks", ids.ResourcesSecurityBinaryEncoded,
		"Binary contents are base64 with line breaks.", contents("test://static-binary", func(contents object) {
			if blob, ok := contents["blob"].(string); ok {
				contents["blob"] = blob[:76] + "\r\n" + blob[76:]
			}
		})),
	// https://github.com/GopherSecurity/gopher-mcp/issues/206
	fault("resources.contents-counted", ids.SchemaReadResourceResult,
		"The result of resources/read counts the contents and does not hold them.",
		Results("resources/read", func(result object) {
			contents, _ := result["contents"].(list)
			delete(result, "contents")
			result["contentCount"] = len(contents)
		})),
	// https://github.com/Azure/data-api-builder/issues/3274
	fault("logging.declared-not-served", ids.LoggingSetLevelAllLevels,
		"logging is declared, and logging/setLevel refused with -32601.",
		Refusing("logging/setLevel", server.MethodNotFound, Always)).Also(ids.LoggingErrorInvalidLevelCode),
	// https://github.com/php-mcp/server/issues/34
	fault("lifecycle.newest-always", ids.LifecycleVersionEchoSupported,
		"initialize is answered with the newest version, whichever was asked for.",
		choosing(func(string) string { return schema.DefaultVersion })).Only(OverHTTP),
	// https://github.com/wildfly/wildfly-ai-feature-pack/issues/346
	fault("lifecycle.echoes-anything", ids.LifecycleVersionOfferOther,
		"initialize is answered with the version that was asked for, whichever it is.",
		choosing(func(asked string) string { return asked })).
		Also(ids.LifecycleVersionOfferLatest, ids.LifecycleErrorVersionMismatch),
	// https://github.com/xpzouying/xiaohongshu-mcp/issues/697
	fault("lifecycle.version-refused-by-status", ids.LifecycleVersionOfferOther,
		"initialize with a version that is not supported is answered with 400.",
		All(RefusingHTTP(http.StatusBadRequest, func(r *http.Request) bool {
			m := Posted(r)
			version, _ := wire.At(m.Params, "protocolVersion").(string)
			return m.Method == "initialize" && !slices.Contains(
				[]string{schema.DefaultVersion, "2025-03-26", "2024-11-05"}, version)
		}), Peeking())).Only(OverHTTP).Also(ids.LifecycleVersionOfferLatest, ids.LifecycleErrorVersionMismatch),
	// https://github.com/IBM/WxMCPServer/issues/3
	fault("lifecycle.version-placeholder", ids.LifecycleVersionOfferOther,
		"initialize without a version is answered with the version %params/protocolVersion%.", Wrapping("initialize",
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
			})).Seen(ByValue).Warns(),
	// https://github.com/GopherSecurity/gopher-mcp/issues/183
	fault("lifecycle.client-version-internal", ids.BaseErrorInvalidParams,
		"initialize without the version of the client is refused with -32603.",
		Refusing("initialize", server.InternalError,
			func(r *server.Request) bool { return wire.At(r.Params, "clientInfo", "version") == nil })).Seen(ByValue),
	// https://github.com/scalameta/metals/issues/8851
	fault("lifecycle.capability-members-refused", ids.LifecycleCapabilityClientAdditional,
		"A client whose capability elicitation has members is refused.",
		Refusing("initialize", server.InvalidParams, func(r *server.Request) bool {
			o, _ := wire.At(r.Params, "capabilities", "elicitation").(object)
			return len(o) > 0
		})).Seen(ByValue),
	// https://github.com/modelcontextprotocol/python-sdk/issues/1311
	fault("ping.before-initialize-refused", ids.LifecycleInitClientEarlyPing,
		"A ping before initialize is refused with -32602.", All(
			OnRequest("initialize", func(r *server.Request) { Once(r.Session, "begun") }),
			Refusing("ping", server.InvalidParams, func(r *server.Request) bool { return Once(r.Session, "begun") }),
		)).Seen(InSequence).Only(OverStdio),
	// https://github.com/quarkiverse/quarkus-mcp-server/issues/469
	fault("ping.first-message-deafens", ids.LifecycleInitClientEarlyPing,
		"When the first message is a ping, nothing is answered.",
		unresponsiveAfter(func(s *server.Session, m *wire.Message) bool {
			return Once(s, "begun") && m.Method == "ping"
		})).Seen(InSequence).Only(OverStdio).Also(ids.BaseResponsePresent),
	// https://github.com/theoriclabs/LeanDB/issues/64
	fault("base.call-without-id-answered", ids.BaseNotificationNoResponse,
		"A tools/call without an id is answered with the id null.", reacting(wire.Notification, "tools/call",
			func(*wire.Message) object { return refusal(nil, server.InvalidParams, "Unknown tool") })).Seen(ByValue).
		Also(ids.BaseResponseIDEcho),
	// https://github.com/paiml/aprender/pull/2090
	fault("base.initialize-without-id-answered", ids.BaseNotificationNoResponse,
		"An initialize without an id is answered with the id null; over Streamable HTTP in place of the status 400.",
		All(
			reacting(wire.Notification, "initialize", func(*wire.Message) object { return Copied(unasked) }),
			Replying(server.MissingSession, func(r *server.Reply) {
				if Posted(r.Request).Method == "initialize" {
					r.Header.Set("Content-Type", "application/json")
					r.Status, r.Body = http.StatusOK, []byte(Text(unasked))
				}
			}),
			Peeking(),
		)).Seen(ByValue).Also(ids.BaseResponseIDEcho, ids.BaseResponseOnce),
	// https://github.com/anthropics/claude-code/issues/45368
	fault("http.error-id-invented", ids.BaseErrorUndetectableID,
		"Errors that come with an HTTP error status have the id server-error.", func(o *server.Options) {
			for _, situation := range []server.Situation{server.MissingSession, server.UnknownSession,
				server.BadMessage, server.NotAcceptable, server.BadVersionHeader} {
				Replying(situation, func(r *server.Reply) {
					r.Header.Set("Content-Type", "application/json")
					r.Body = []byte(
						`{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request"}}`)
				})(o)
			}
		}).Also(ids.BaseResponseOnlyToRequests, ids.BaseErrorParseError),
	// https://github.com/sagemcp/sagemcp/pull/29
	fault("stdio.null-for-notification", ids.StdioServerStdoutClean,
		"A notification is answered with a line that holds null.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification {
				s.Send(&server.Outgoing{Session: s, Message: object{}, Raw: []byte("null")})
			}
		})).Also(ids.BaseJSONObject),
	// https://github.com/TSavo/printify-mcp/issues/3
	fault("stdio.log-on-refusal", ids.StdioServerStdoutClean,
		"The refusal of an unknown tool is also written to stdout as a line of text.",
		Responses("tools/call", func(out *server.Outgoing) {
			if out.RPCError() != nil && unknownNamed(out.Answers) {
				out.Raw = []byte("Error: unknown tool\n" + Text(out.Message))
			}
		})).Seen(ByValue),
	// https://github.com/agentic-hil/agentic-hil/issues/484
	fault("stdio.answers-in-code-page", ids.BaseMessageUTF8, "Lines are written in ISO 8859-1.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			var written []byte
			for _, c := range string(frame) {
				if c > 255 {
					c = '?'
				}
				written = append(written, byte(c))
			}
			return written
		})).Seen(ByValue).
		Also(ids.BaseJSONWellFormed, ids.BaseJSONAnySpelling, ids.BaseMessageUTF8Accepted, ids.BaseResponsePresent,
			ids.BaseResponseIDEcho, ids.BaseErrorUndetectableID, ids.BaseRequestStringIDServed,
			ids.BaseResponseOnlyToRequests, ids.ProgressTokenActiveRequest),
	// https://github.com/open-metadata/OpenMetadata/issues/22423
	fault("http.answers-in-ascii", ids.BaseMessageUTF8Accepted,
		"In answers over HTTP a question mark stands for each character outside ASCII.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			return []byte(strings.Map(func(c rune) rune {
				if c > 127 {
					return '?'
				}
				return c
			}, string(frame)))
		})).Seen(ByValue).
		Also(ids.BaseResponsePresent, ids.BaseResponseIDEcho, ids.BaseRequestStringIDServed,
			ids.BaseResponseOnlyToRequests, ids.BaseJSONAnySpelling, ids.ProgressTokenActiveRequest),
	// https://github.com/ruvnet/ruflo/issues/2426
	fault("stdio.answer-cut", ids.BaseJSONWellFormed, "A line is cut after 64 KiB.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			if len(frame) > 64<<10 {
				return append(bytes.Clone(frame[:64<<10]), '\n')
			}
			return frame
		})).Seen(ByValue).Also(ids.BaseResponsePresent, ids.StdioServerStdoutClean),
	// https://github.com/DeusData/codebase-memory-mcp/issues/1375
	fault("base.long-answer-lost", ids.BaseResponsePresent, "A response of more than 256 KiB is not sent.",
		WithholdingAnswers("*", func(out *server.Outgoing) bool { return len(Text(out.Message)) > 256<<10 })).
		Seen(ByValue).Also(ids.StdioMessageLarge, ids.HTTPMessageLarge),
	// https://github.com/twentyhq/twenty/issues/24559
	fault("progress.token-fabricated", ids.ProgressTokenActiveRequest,
		"Each call sends progress with a token of the server's own making.",
		OnRequest("tools/call", func(r *server.Request) {
			r.Notify("notifications/progress",
				object{"progressToken": "tool-call-" + strings.Trim(r.ID.String(), `"`), "progress": 0, "total": 1})
		})).Also(ids.ProgressTokenEcho),
	// https://github.com/infobip/infobip-openapi-mcp/pull/41
	fault("progress.total-null", ids.SchemaProgressNotification, "The total of progress is null.",
		Params("notifications/progress", Having("total", nil))),
	// https://github.com/shaun0927/openchrome/pull/954
	fault("progress.last-repeated", ids.ProgressValueIncreases, "The last progress of a call is reported twice.",
		Sending(server.OnMessage("notifications/progress", func(out *server.Outgoing) []*server.Outgoing {
			p := out.Params()
			if p["total"] != nil && Text(object{"v": p["progress"]}) == Text(object{"v": p["total"]}) {
				return []*server.Outgoing{out, out.Clone()}
			}
			return []*server.Outgoing{out}
		}))),
	// https://github.com/supabase/mcp/issues/400
	fault("http.delete-not-found", ids.HTTPServerDeleteSession,
		"The DELETE of a live session is answered with 404, and the session goes on.", RefusingHTTP(http.StatusNotFound,
			func(r *http.Request) bool { return r.Method == http.MethodDelete && r.Header.Get("Origin") == "" })),
	// https://github.com/rust-mcp-stack/rust-mcp-sdk/pull/169
	fault("http.session-id-outside-ascii", ids.HTTPServerSessionIDCharset, "Session ids have a letter outside ASCII.",
		sessionIDs("séance-")).Seen(ByValue),
	// https://github.com/rust-mcp-stack/rust-mcp-sdk/pull/169
	fault("http.session-id-with-tab", ids.HTTPServerSessionIDCharset, "Session ids have a tab.",
		sessionIDs("session\t")).Seen(ByValue),
	// https://github.com/aklivity/zilla/issues/2525
	fault("http.ended-session-200", ids.HTTPServerSessionEnded404,
		"A POST of an ended session is answered with 200 and an error without an id.",
		Replying(server.UnknownSession, func(r *server.Reply) {
			if r.Request.Method == http.MethodPost {
				r.Status, r.Body = http.StatusOK, []byte(
					`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)
			}
		})).Also(ids.BaseResponseIDEcho, ids.HTTPServerUnacceptableErrorStatus, ids.HTTPServerDeleteSession),
	// https://github.com/aipotheosis-labs/gate22/pull/137
	fault("http.delete-without-session-204", ids.HTTPServerSessionMissing400,
		"A DELETE without a session id is answered with 204.", deletedWhere(server.MissingSession)).Seen(ByValue),
	// https://github.com/bcurts/agentchattr/issues/80
	fault("http.session-id-twice", ids.HTTPServerSessionIDAtInitialization,
		"The answer to initialize has the header with the session id twice.", func(o *server.Options) {
			for _, situation := range []server.Situation{server.AnsweredJSON, server.AnsweredSSE} {
				Replying(situation,
					func(r *server.Reply) { r.Header[SessionHeader] = slices.Repeat(r.Header[SessionHeader], 2) })(o)
			}
		}),
	// https://github.com/modelcontextprotocol/csharp-sdk/issues/788
	fault("http.client-version-500", ids.BaseErrorInvalidParams,
		"initialize without the version of the client ends in HTTP status 500.",
		All(RefusingHTTP(http.StatusInternalServerError, func(r *http.Request) bool {
			info, _ := wire.At(Posted(r).Params, "clientInfo").(object)
			return Posted(r).Method == "initialize" && info["name"] != nil && info["version"] == nil
		}), Peeking())).Seen(ByValue),
	// https://github.com/hyperdxio/hyperdx/issues/2686
	fault("http.notification-without-params-400", ids.BaseParamsOmitted,
		"A notification without params is refused with 400.",
		All(Peeking(), Replying(server.Accepted, func(r *server.Reply) {
			if m := Posted(r.Request); m.Kind == wire.Notification && m.Params == nil {
				r.Status = http.StatusBadRequest
			}
		}))),
	// https://github.com/modelcontextprotocol/java-sdk/issues/1050
	fault("http.refusal-stream-open", ids.HTTPServerSSECloseAfterResponse,
		"The stream with the refusal of an unknown method stays open.", func(o *server.Options) {
			o.Behaviour.HTTP.KeepOpen = unknownMethod
			o.Behaviour.HTTP.Answer = func(r *server.Request) server.AnswerForm {
				if unknownMethod(r) {
					return server.AnswerSSE
				}
				return server.AnswerAuto
			}
		}).Seen(ByValue),
	// https://github.com/HatriGt/hana-mcp-server/issues/22
	fault("base.roots-change-answered", ids.BaseNotificationNoResponse,
		"notifications/roots/list_changed is answered with an error without an id.",
		reacting(wire.Notification, "notifications/roots/list_changed", func(*wire.Message) object {
			return object{"jsonrpc": "2.0", "error": object{"code": server.MethodNotFound,
				"message": "Method not found"}}
		})).Also(ids.BaseResponseIDEcho),
	// https://github.com/IBM/mcp-context-forge/issues/4438
	fault("base.id-fabricated", ids.BaseNotificationNoResponse,
		"A ping without an id is answered with an id that the server makes up.",
		reacting(wire.Notification, "ping", func(*wire.Message) object {
			return object{"jsonrpc": "2.0", "id": "5baca3f1-a093-40f2-b76f-cb4e1afb0c29", "result": object{}}
		})).Seen(ByValue).Also(ids.BaseResponseOnlyToRequests),
	// https://github.com/quarkiverse/quarkus-mcp-server/issues/716
	fault("resources.subscribe-unknown-silent", ids.BaseResponsePresent,
		"A subscription to a resource that does not exist gets no response.",
		Answering("resources/subscribe", server.NoAnswer, func(r *server.Request) bool {
			return !slices.ContainsFunc(server.DefaultCatalogue().Resources,
				func(x *server.Resource) bool { return x.URI() == r.Params["uri"] })
		})).Also(ids.ResourcesSubscribeAccepted, ids.BaseErrorInvalidParams),
	// https://github.com/luckyPipewrench/agent-egress-bench/pull/101
	fault("resources.templates-null", ids.SchemaListResourceTemplatesResult,
		"The list of templates is null where there are none.", All(
			Offering(func(c *server.Catalogue) { c.Templates = nil }),
			Results("resources/templates/list", Having("resourceTemplates", nil)),
		)).Seen(ByValue).Also(ids.ToolsResourceLinkResolvable),
	// https://github.com/ag2ai/ag2/issues/3249
	fault("resources.template-escapes", ids.ResourcesTemplateConstructsURIs,
		"A template does not match a URI in which the value that the server suggests is encoded.",
		Offering(func(c *server.Catalogue) {
			t := TemplateOf("test://papers/{name}", regexp.MustCompile(`^test://papers/([\w. ]+)$`), "name")
			t.Complete["name"] = func(string, map[string]string) []string { return []string{"hello world.txt"} }
			c.Templates = append(c.Templates, t)
		})).Seen(ByValue),
	// https://github.com/modelcontextprotocol/kotlin-sdk/issues/174
	fault("stdio.initialized-with-params-kills", ids.MetaAttachNotification,
		"notifications/initialized with params ends the process.", dying(func(line []byte) bool {
			m := wire.Parse(line)
			return m.Method == "notifications/initialized" && m.Params != nil
		})).Seen(ByValue),
	// https://github.com/paiml/paiml-mcp-agent-toolkit/issues/648
	fault("stdio.unknown-method-kills", ids.BaseErrorMethodNotFound, "A request of an unknown method ends the process.",
		dying(func(line []byte) bool {
			m := wire.Parse(line)
			return m.Kind == wire.Request && strings.HasPrefix(m.Method, "mcpconform/")
		})).Also(ids.StdioServerSurvivesNonMessage, ids.BaseResponsePresent),
	// https://github.com/open-agreements/open-agreements/pull/116
	fault("stdio.content-length", ids.StdioServerStdoutClean,
		"Messages are written behind a header Content-Length, and not ended by a newline.",
		Framing(func(_ *server.Outgoing, frame []byte) []byte {
			body := bytes.TrimSuffix(frame, []byte("\n"))
			return fmt.Appendf(nil, "Content-Length: %d\r\nContent-Type: application/json\r\n\r\n%s", len(body), body)
		})).Also(ids.StdioMessageNewlineDelimited),
	// https://github.com/simonlin1212/Vibe-Research/issues/27
	fault("stdio.answers-lost-in-code-page", ids.BaseResponsePresent,
		"The response to a call is not sent if it has characters that an encoding of the system lacks.",
		WithholdingAnswers("tools/call", func(out *server.Outgoing) bool {
			return strings.ContainsAny(Text(out.Message), "\u00a0🎉ï")
		})).Seen(ByValue).Also(ids.ToolsErrorUnknownToolProtocolError),
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
