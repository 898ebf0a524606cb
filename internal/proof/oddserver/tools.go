package oddserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// asksFirst makes every call of a simple tool ask the client for something before it is served.
func asksFirst(capability, method string, params object) apply {
	return WrappingTool("test_simple_text", func(ctx context.Context, r *server.Request, next server.Handler) (any,
		*wire.Error) {
		if capability == "" || r.Session.ClientHas(capability) {
			_, _ = r.Call(ctx, method, Copied(params))
		}
		return next(ctx, r)
	})
}

// toolsNamed adds a tool for each name.
func toolsNamed(names ...string) apply {
	var changes []apply
	for _, name := range names {
		changes = append(changes, serving(name, returning(object{"content": list{textBlock(name)}})))
	}
	return All(changes...)
}

// whim is a list that changes, with an announcement, each of the first six times that it was
// read to its end.
func whim(method, member string, item object) apply {
	return Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		state := Kept[atomic.Int64](r.Session, whimKey(method))
		result, problem := next(ctx, r)
		o, ok := result.(object)
		if !ok || o["nextCursor"] != nil {
			return result, problem
		}
		if min(state.Load(), 6)%2 == 1 {
			o[member] = append(slices.Clip(o[member].(list)), Copied(item))
		}
		if n := state.Add(1); n <= 6 {
			s := r.Session
			time.AfterFunc(time.Millisecond, func() {
				if s.Context().Err() == nil {
					s.Notify("notifications/"+member+"/list_changed", nil)
				}
			})
		}
		return result, problem
	})
}

type whimKey string

// eachSessionIts gives every other session a list without its last item.
func eachSessionIts(method, member string) apply {
	return func(o *server.Options) {
		var sessions atomic.Int64
		Results(method, func(object) {})(o)
		Wrapping(method, func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			mine := r.Session.Value("each", func() any { return sessions.Add(1) }).(int64)
			result, problem := next(ctx, r)
			if page, ok := result.(object); ok && mine%2 == 0 && page["nextCursor"] == nil {
				if items, ok := page[member].(list); ok && len(items) > 0 {
					page[member] = append(slices.Clip(items),
						object{"name": "of-this-session", "inputSchema": object{"type": "object"}})
				}
			}
			return result, problem
		})(o)
		WrappingTool("of-this-session", server.Always(object{"content": list{textBlock("mine")}}))(o)
	}
}

// server/tools
var toolOddities = []Oddity{
	odd("tools.minimal", "Tools have a name and an input schema, nothing else.",
		"Title, description, output schema and annotations are optional.", "schema#tool",
		Items("tools/list", "tools", func(tool object) {
			for name := range tool {
				if name != "name" && name != "inputSchema" {
					delete(tool, name)
				}
			}
		})).
		Open(ids.MetaKeyPrefixForm, ids.MetaKeyLabelStart, ids.MetaKeyLabelEnd, ids.MetaKeyLabelInterior,
			ids.MetaKeyPrefixReserved, ids.ToolsOutputSchemaValid, ids.ToolsOutputSchemaStructuredPresent,
			ids.ToolsOutputSchemaConforms).Replaces("tools"),
	odd("tools.names-odd", "Names of tools have spaces, dots, slashes, quotes, emojis, 300 characters, or one alone.",
		"A name is any string that is unique.", "server/tools#tool",
		toolsNamed("a tool", "files.read", "git/log", "it's \"quoted\"", "工具 🔧", strings.Repeat("n", 300), "x",
			"42", "-", "get-weather_v2.1")),
	odd("tools.names-alike", "Names of tools differ in case, or in a space, alone.", "They are different strings.",
		"server/tools#tool", toolsNamed("ECHO", "Echo", "echo ")),
	odd("tools.titles-alike", "All tools have the same title and an empty description.", "Only the name is unique.",
		"server/tools#tool",
		Items("tools/list", "tools", func(tool object) { tool["title"], tool["description"] = "Tool", "" })),
	odd("tools.many", "There are 150 more tools.", "The number of tools has no limit.", "server/tools#listing-tools",
		Offering(func(c *server.Catalogue) {
			for i := range 150 {
				name := fmt.Sprintf("tool_%03d", i)
				toolsNamed(name)(&server.Options{Catalogue: c})
			}
		})),
	odd("tools.none", "There are no tools, although the capability is declared.", "The list may be empty.",
		"schema#listtoolsresult", Offering(func(c *server.Catalogue) { c.Tools = nil })).
		Open(ids.PingNotExcessive, "base.*", ids.MetaObject, "meta.attach.*", "meta.key.*",
			ids.LifecycleInitServerWaits, ids.LifecycleCapabilityServerEmitsToolsListChanged,
			ids.LifecycleCapabilityServerEmitsPromptsListChanged,
			ids.LifecycleCapabilityServerEmitsResourcesListChanged, ids.LifecycleCapabilityServerEmitsResourceUpdates,
			"http.server.*", ids.CancellationSameDirection, ids.CancellationInProgress,
			ids.CancellationStopProcessing, ids.CancellationNoResponse, ids.CancellationLateResponse,
			ids.PingNoParams, "progress.*", "tools.*", ids.ResourcesListChangedSent, ids.ResourcesUpdatedSent,
			ids.PromptsListChangedSent, ids.ContentEmbeddedURIValid, ids.LoggingSetLevelReplaces,
			ids.LoggingFilterNoneBelow, ids.LoggingSecurityNoCredentials, ids.LoggingSecurityNoPersonalData,
			"sampling.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout, ids.RootsRootNameOptional,
			ids.RootsListMultiple, ids.RootsServerUnavailable, "elicitation.*", "schema.*", ids.LoggingFilterAllAbove,
			ids.ResourcesUpdatedOnlySubscribed, ids.RootsListChangedRefetch, ids.ResourcesUpdatedEndsWithUnsubscribe,
			ids.RootsRootFileOrDirectory, "logging.*"),
	odd("tools.parameters-untold",
		"A tool with an inputSchema without properties works with one argument alone, and another one not at first.",
		"A tool decides what it does with arguments that fit its inputSchema, and may fail.",
		"server/tools#error-handling", All(
			toolsNamed("untold", "not_at_first"), Items("tools/list", "tools", func(tool object) {
				if tool["name"] == "untold" || tool["name"] == "not_at_first" {
					tool["inputSchema"] = object{"type": "object"}
				}
			}),
			Refusing("tools/call", server.InvalidParams, func(r *server.Request) bool {
				return r.Params["name"] == "untold" && wire.At(r.Params, "arguments", "path") == nil ||
					r.Params["name"] == "not_at_first" && Once(r.Session, "not_at_first")
			}),
		)),
	odd("tools.list-changes",
		"An item comes and goes from one reading of tools/list to the next, each time with an announcement.",
		"The list may change at any time, with a notification.", "server/tools#list-changed-notification", All(
			whim("tools/list", "tools", object{"name": "now-and-then", "inputSchema": object{"type": "object"}}),
			WrappingTool("now-and-then", server.Always(object{"content": list{textBlock("here")}})),
		)).Open(ids.ToolsOutputSchemaStructuredPresent, ids.ToolsOutputSchemaConforms).Replaces("pages"),
	odd("tools.changes-announced-idly", "Every ten seconds a change of the tools is announced, although there is none.",
		"The notification says that the list may be read again.", "server/tools#list-changed-notification",
		announcingIdly("tools")),
	odd("tools.order-changes", "Each reading of tools/list has the tools in another order.",
		"The order of a list means nothing.", "server/tools#listing-tools",
		All(paged(1000), Wrapping("tools/list", server.Edit(func(r *server.Request, result map[string]any) {
			items := result["tools"].(list)
			n := Count(r.Session, "order of tools") % len(items)
			result["tools"] = slices.Concat(items[n:], items[:n])
		})))).Open(ids.PaginationServerStableCursors, ids.PaginationCursorResultsAfter).Replaces("pages"),
	odd("tools.differ-by-session", "Every other session has one tool more.", "Each session may offer something else.",
		"server/tools#listing-tools", eachSessionIts("tools/list", "tools")).Replaces("tools"),
	odd("tools.hints-odd", "Annotations of tools are empty, contradict each other, or hold what nobody defines.",
		"All annotations are hints, and none is required.", "schema#toolannotations",
		Items("tools/list", "tools", func(tool object) {
			switch len(tool["name"].(string)) % 3 {
			case 0:
				tool["annotations"] = object{}
			case 1:
				tool["annotations"] = object{"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false}
			default:
				tool["annotations"] = object{"title": "Another title", "x-cost": 3}
			}
		})).Replaces("tools"),
	odd("tools.all-destructive", "All tools are said to be destructive and open to the world.",
		"All annotations are hints.", "schema#toolannotations", Items("tools/list", "tools", Having("annotations",
			object{"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}))).Replaces("tools"),
	odd("tools.is-error-false", "Results of calls that succeed say isError: false.",
		"The member is optional, with false as its default.", "server/tools#calling-tools",
		Results("tools/call", Defaulting("isError", false))),
	odd("tools.all-fail", "All tools report an error in their result, as if a service were out of order.",
		"API failures are reported in the result.", "server/tools#error-handling", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if problem == nil {
					return object{"content": list{textBlock("The service is out of order")}, "isError": true}, nil
				}
				return result, problem
			})).
		Open(ids.BaseResponseResultOpen, ids.BaseResponseCorrelated, ids.MetaAttachResult, "progress.*", "tools.*",
			ids.ContentEmbeddedURIValid, ids.SamplingSecurityValidateContent, ids.ElicitationServerHandleAccept,
			ids.ElicitationSecurityValidateContent, ids.SamplingMaxTokensFewer, ids.SamplingResultStopReasonOptional,
			ids.SamplingResultStopReasonOpen, ids.SamplingPreferencesAdvisory).Replaces("calls"),
	odd("tools.all-refused",
		"All tools, whatever their arguments, are refused with -32603, but for one that fails by itself.",
		"Server errors are protocol errors.", "server/tools#error-handling", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if problem != nil && UnknownTool(r) || problem == nil && wire.At(result, "isError") == true {
					return result, problem
				}
				return nil, &wire.Error{Code: server.InternalError, Message: "The service cannot be reached"}
			})).
		Open(ids.BaseResponseResultOpen, ids.BaseResponseCorrelated, "meta.attach.*", "progress.*", "tools.*",
			ids.ContentEmbeddedURIValid, "sampling.*", "elicitation.*", "logging.*", "roots.*",
			"lifecycle.capability.*", "lifecycle.timeout.*", ids.LifecycleErrorRequestTimeout,
			ids.ResourcesListChangedSent, "resources.updated.*", ids.PromptsListChangedSent, "schema.*",
			"cancellation.*").Replaces("calls"),
	odd("tools.invalid-arguments-in-result", "Arguments that do not fit are reported in the result, with isError.",
		"Invalid input data is among the tool execution errors.", "server/tools#error-handling", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				if problem != nil && strings.Contains(problem.Message, "do not fit") {
					return object{"content": list{textBlock("Invalid arguments")}, "isError": true}, nil
				}
				return result, problem
			})).Replaces("calls"),
	odd("tools.rate-limited", "More than 150 calls of one session in a second are refused with -32000.",
		"Servers MUST rate limit tool invocations.", "server/tools#security-considerations", rateLimited(150,
			func() (any, *wire.Error) { return nil, &wire.Error{Code: -32000, Message: "Rate limit exceeded"} })).
		Replaces("calls"),
	odd("tools.rate-limited-in-result", "More than 150 calls of one session in a second get a result with isError.",
		"The example of a tool execution error is a rate limit.", "server/tools#error-handling",
		rateLimited(150, func() (any, *wire.Error) {
			return object{"content": list{textBlock("Rate limit exceeded")}, "isError": true}, nil
		})).Replaces("calls"),
	odd("tools.rate-limited-alone",
		"The tool that logs at each level serves two calls of a session in a minute, and more get a result with "+
			"isError.",
		"Servers MUST rate limit tool invocations; the example of a tool execution error is a rate limit.",
		"server/tools#security-considerations",
		WrappingTool("log_levels", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			if Count(r.Session, fmt.Sprint("logging calls at ", time.Now().Unix()/60)) > 2 {
				return object{"content": list{textBlock("Rate limit exceeded")}, "isError": true}, nil
			}
			return next(ctx, r)
		})).Open(ids.LoggingSetLevelReplaces, ids.LoggingFilterAllAbove),
	odd("tools.rate-limited-low", "More than four calls of one session in a second are refused with -32000.",
		"Servers MUST rate limit tool invocations.", "server/tools#security-considerations",
		rateLimited(4, func() (any, *wire.Error) {
			return nil, &wire.Error{Code: -32000, Message: "Rate limit exceeded"}
		})).Open("*").Replaces("calls"),
	odd("tools.forbidden",
		"All calls are refused before anything of them is looked at: with -32001, or with isError if the client "+
			"cannot sample.", "Servers MUST implement proper access controls; what is looked at first is not said.",
		"server/tools#security-considerations",
		Wrapping("tools/call", func(_ context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
			if r.Session.ClientHas("sampling") {
				return nil, &wire.Error{Code: -32001, Message: "Not allowed"}
			}
			return object{"content": list{textBlock("Not allowed")}, "isError": true}, nil
		})).Open("*").Replaces("calls"),
	odd("tools.called-once",
		"A tool that takes no arguments works once in a session; further calls of it get a result with isError.",
		"Failures for the tool's own reasons are reported in the result.", "server/tools#error-handling",
		Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				name, _ := r.Params["name"].(string)
				if given, _ := r.Params["arguments"].(object); len(given) > 0 || UnknownTool(r) ||
					Once(r.Session, "a call of "+name) {
					return next(ctx, r)
				}
				return object{"content": list{textBlock("This has been done already")}, "isError": true}, nil
			})).Open("*").Replaces("calls"),
	odd("tools.key-missing",
		"All tools that take arguments report that a key for their text or prompt is missing, whatever they are "+
			"given.", "API failures are reported in the result.", "server/tools#error-handling", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if given, ok := r.Params["arguments"].(object); ok && !UnknownTool(r) &&
					(len(given) > 0 || slices.Contains([]any{"echo", "sum", "test_sampling", "test_elicitation"},
						r.Params["name"])) {
					return object{"content": list{textBlock("Missing required API key for text, " +
						"prompt, message, a or b")},
						"isError": true}, nil
				}
				return next(ctx, r)
			})).
		Open("tools.structured-content.*", "tools.output-schema.*", ids.ToolsSecurityValidateInputs,
			ids.ToolsErrorInvalidArgumentsForm, "sampling.*", "elicitation.*", "base.*", "cancellation.*",
			"progress.*", "lifecycle.*", "meta.*", "schema.*", ids.HTTPServerDisconnectNotCancel,
			ids.HTTPServerMultipleStreams).Replaces("calls"),
	odd("tools.content-empty", "A tool returns no content at all.", "The list of content may be empty.",
		"schema#calltoolresult", serving("void", returning(object{"content": list{}}))),
	odd("tools.asks-ping", "A tool pings the client before it answers.", "Either side can ping.",
		"basic/utilities/ping#overview", asksFirst("", "ping", nil)),
	odd("tools.asks-roots", "A tool asks for the roots before it answers, if the client has any.",
		"Servers can ask for roots when they need them.", "client/roots#listing-roots",
		asksFirst("roots", "roots/list", nil)),
	odd("tools.asks-for-confirmation", "A tool elicits a confirmation before it answers, if the client can.",
		"Elicitation can occur nested in other features.", "client/elicitation#user-interaction-model",
		asksFirst("elicitation", "elicitation/create", object{
			"message": "Go ahead?", "requestedSchema": object{"type": "object",
				"properties": object{"sure": object{"type": "boolean"}}},
		})),
	odd("tools.asks-for-sampling", "A tool asks for a completion before it answers, if the client can.",
		"Sampling can occur nested in other features.", "client/sampling#user-interaction-model",
		asksFirst("sampling", "sampling/createMessage",
			object{"messages": list{saying("user", textBlock("Say yes."))}, "maxTokens": 5})),
	odd("tools.refuses-the-unable",
		"Tools that the client lacks the means for are refused with an error rather than a result.",
		"Server errors are protocol errors.", "server/tools#error-handling", refusingUnable(func(int) *wire.Error {
			return &wire.Error{Code: server.InternalError, Message: "The client does not support what this tool needs"}
		})),
	odd("tools.returns-late", "Each call takes 200 ms.", "The text sets no time for a call.",
		"basic/lifecycle#timeouts",
		delayed(200*time.Millisecond, func(r *server.Request) bool { return r.Method == "tools/call" })).
		Replaces("time"),
	odd("tools.structured-alone", "A tool without output schema returns structured content, and the same as text.",
		"The output schema is optional.", "server/tools#structured-content",
		serving("structured", returning(object{"content": list{textBlock(`{"a": 1}`)},
			"structuredContent": object{"a": 1}}))),
	odd("tools.structured-spelled",
		"The text beside structured content is indented JSON with its members in another order.",
		"It is the serialized JSON, in whatever spelling.", "server/tools#structured-content",
		serving("spelled", returning(object{
			"content":           list{textBlock("{\n  \"b\": [1.0, \"\\u00e9\"],\n  \"a\": 1\n}\n")},
			"structuredContent": object{"a": 1, "b": list{1, "é"}},
		}))),
	odd("tools.structured-and-more", "The serialized JSON is one block among others.",
		"It is to be returned in a TextContent block, not in the only one.", "server/tools#structured-content",
		serving("more", returning(object{
			"content":           list{textBlock("Here it is:"), textBlock(`{"a":1}`), textBlock("That was it.")},
			"structuredContent": object{"a": 1},
		}))),
	odd("tools.structured-empty", "Structured content is an empty object.", "It is any JSON object.",
		"server/tools#structured-content",
		serving("empty", returning(object{"content": list{textBlock("{}")}, "structuredContent": object{}}))),
	odd("tools.output-rich", "An output schema has references, alternatives and lists, and the result fits.",
		"An output schema is a JSON Schema.", "server/tools#output-schema", ServingTool(object{
			"name": "rich", "inputSchema": object{"type": "object"},
			"outputSchema": object{
				"type": "object", "required": list{"items"}, "additionalProperties": false,
				"properties": object{
					"items": object{"type": "array", "items": object{"$ref": "#/$defs/item"}, "uniqueItems": true},
					"next":  object{"anyOf": list{object{"type": "string"}, object{"type": "null"}}},
				},
				"$defs": object{"item": object{"type": "object", "properties": object{"id": object{"type": "integer"}},
					"required": list{"id"}}},
			},
		}, returning(object{
			"content":           list{textBlock(`{"items":[{"id":1},{"id":2,"x":null}],"next":null}`)},
			"structuredContent": object{"items": list{object{"id": 1}, object{"id": 2, "x": nil}}, "next": nil},
		}))),
	odd("tools.output-failed", "A tool with an output schema fails, and returns no structured content.",
		"An error is reported in the content.", "server/tools#error-handling", ServingTool(object{
			"name": "unlucky", "inputSchema": object{"type": "object"},
			"outputSchema": object{"type": "object", "properties": object{"a": object{"type": "integer"}},
				"required": list{"a"}},
		}, returning(object{"content": list{textBlock("no luck today")}, "isError": true}))),
}

// rateLimited bounds the calls of a session in a second.
func rateLimited(calls int, refusal func() (any, *wire.Error)) apply {
	return Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		second := fmt.Sprint("calls at ", time.Now().Unix())
		if Count(r.Session, second) > calls {
			return refusal()
		}
		return next(ctx, r)
	})
}

// taking is a tool with an input schema.
func taking(name string, schema object) apply {
	return ServingTool(object{"name": name, "inputSchema": schema}, returning(object{"content": list{textBlock("ok")}}))
}

const anySchema = "The input schema is a JSON Schema."

// Input schemas of tools.
var schemaOddities = []Oddity{
	odd("schemas.bare", "The input schema of a tool is just {\"type\": \"object\"}.", "Its other members are optional.",
		"schema#tool", taking("bare", object{"type": "object"})),
	odd("schemas.empty-parts", "An input schema has empty properties and required.", anySchema, "schema#tool",
		taking("empty-parts", object{"type": "object", "properties": object{}, "required": list{}})),
	odd("schemas.draft-04", "An input schema names draft-04 and uses it: id, exclusiveMinimum: true.",
		"JSON Schema has many drafts, and $schema names one.", "server/tools#tool", taking("draft-04", object{
			"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.com/draft-04", "type": "object",
			"properties": object{"n": object{"type": "number", "minimum": 0, "exclusiveMinimum": true}},
		})),
	odd("schemas.draft-06", "An input schema names draft-06.", "JSON Schema has many drafts, and $schema names one.",
		"server/tools#tool", taking("draft-06", object{
			"$schema": "http://json-schema.org/draft-06/schema#", "type": "object",
			"properties": object{"n": object{"exclusiveMinimum": 0, "type": "number"}, "c": object{"const": "x"}},
		})),
	odd("schemas.draft-07",
		"An input schema names draft-07 and uses it: definitions, if and then, tuples, dependencies.",
		"JSON Schema has many drafts, and $schema names one.", "server/tools#tool", taking("draft-07", object{
			"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
			"properties": object{
				"pair": object{"type": "array", "items": list{object{"type": "string"},
					object{"$ref": "#/definitions/n"}}, "additionalItems": false},
				"kind": object{"enum": list{"a", "b"}},
			},
			"definitions":  object{"n": object{"type": "integer"}},
			"if":           object{"properties": object{"kind": object{"const": "a"}}, "required": list{"kind"}},
			"then":         object{"required": list{"pair"}},
			"dependencies": object{"pair": list{"kind"}},
		})),
	odd("schemas.2019-09", "An input schema names 2019-09 and uses it: dependentRequired, unevaluatedProperties.",
		"JSON Schema has many drafts, and $schema names one.", "server/tools#tool", taking("2019-09", object{
			"$schema": "https://json-schema.org/draft/2019-09/schema", "type": "object",
			"properties":        object{"a": object{"type": "string"}, "b": object{"type": "string"}},
			"dependentRequired": object{"a": list{"b"}}, "unevaluatedProperties": false,
		})),
	odd("schemas.2020-12", "An input schema names 2020-12 and uses it: prefixItems, $defs, $dynamicRef, minContains.",
		"JSON Schema has many drafts, and $schema names one.", "server/tools#tool", taking("2020-12", object{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/schemas/2020",
			"type": "object",
			"properties": object{
				"pair": object{"type": "array", "prefixItems": list{object{"type": "string"},
					object{"$ref": "#/$defs/n"}}, "items": false},
				"some": object{"type": "array", "contains": object{"type": "integer"}, "minContains": 0},
			},
			"$defs": object{"n": object{"$anchor": "n", "type": "integer"}},
		})),
	odd("schemas.definitions-undeclared", "An input schema without $schema uses definitions of draft-07.",
		"A reference may point to any part of the document.", "server/tools#tool", taking("definitions", object{
			"type": "object", "properties": object{"n": object{"$ref": "#/definitions/n"}},
			"definitions": object{"n": object{"type": "integer"}},
		})),
	odd("schemas.tuple-undeclared",
		"An input schema without $schema has a tuple as draft-07 writes it: items with a list.",
		"The text does not say which draft an input schema is of.", "server/tools#tool", taking("tuple", object{
			"type": "object", "properties": object{"pair": object{"type": "array",
				"items": list{object{"type": "string"}, object{"type": "number"}}}},
		})),
	odd("schemas.recursive", "An input schema refers to itself, at the root and within.", anySchema, "schema#tool",
		taking("recursive", object{
			"type": "object", "properties": object{
				"name": object{"type": "string"}, "child": object{"$ref": "#"},
				"all": object{"type": "array", "items": object{"$ref": "#/$defs/node"}},
			},
			"$defs": object{"node": object{"type": "object",
				"properties": object{"next": object{"$ref": "#/$defs/node"}}}},
		})),
	odd("schemas.combined", "An input schema has allOf, anyOf, oneOf and not beside its type.", anySchema,
		"schema#tool", taking("combined", object{
			"type": "object", "properties": object{"a": object{"type": "integer"}, "b": object{"type": "string"}},
			"allOf": list{object{"required": list{"a"}}},
			"anyOf": list{object{"required": list{"a"}}, object{"required": list{"b"}}},
			"oneOf": list{object{"properties": object{"a": object{"minimum": 5}}},
				object{"properties": object{"a": object{"maximum": 4}}}},
			"not": object{"required": list{"c"}},
		})),
	odd("schemas.open-properties",
		"An input schema has patternProperties, propertyNames, minProperties and a schema for additional ones.",
		anySchema, "schema#tool", taking("open-properties", object{
			"type": "object", "patternProperties": object{"^x-": object{"type": "string"}},
			"propertyNames": object{"maxLength": 20},
			"minProperties": 1, "maxProperties": 5, "additionalProperties": object{"type": "integer"},
		})),
	odd("schemas.unknown-keywords",
		"An input schema has keywords that nobody defines, a format of its own, and comments, defaults and examples.",
		"Unknown keywords are annotations to JSON Schema.", "schema#tool", taking("unknown-keywords", object{
			"type": "object", "$comment": "generated", "x-order": list{"a"}, "title": "Input",
			"properties": object{"a": object{
				"type": "string", "format": "x-colour", "default": "red", "examples": list{"red", 7},
				"deprecated": true, "readOnly": true, "widget": object{"rows": 3},
			}},
		})),
	odd("schemas.boolean", "Properties of an input schema are the empty schema, and schemas that are true or false.",
		"Booleans are schemas, except directly below properties.", "schema#tool",
		taking("boolean", object{"type": "object",
			"properties": object{"any": object{"items": true}, "whatever": object{}, "never": object{"not": true}},
			"required":   list{"any"}})),
	odd("schemas.type-lists", "Properties of an input schema have several types, one of them null.", anySchema,
		"schema#tool", taking("type-lists", object{
			"type": "object", "properties": object{"a": object{"type": list{"string", "null"}},
				"b": object{"type": list{"integer", "array", "boolean"}}}, "required": list{"a", "b"},
		})),
	odd("schemas.enums",
		"Properties of an input schema have enums of mixed types, and constants that are null or objects.", anySchema,
		"schema#tool", taking("enums", object{
			"type": "object", "properties": object{"a": object{"enum": list{nil, 1, "x", true, list{}}},
				"b": object{"const": nil}, "c": object{"const": object{"k": 1}}},
			"required": list{"a", "b", "c"},
		})),
	odd("schemas.formats", "Required properties of an input schema have the formats that JSON Schema knows.", anySchema,
		"schema#tool", taking("formats", object{
			"type": "object", "properties": object{
				"at": object{"type": "string", "format": "date-time"}, "on": object{"type": "string", "format": "date"},
				"mail": object{"type": "string", "format": "email"},
				"id":   object{"type": "string", "format": "uuid"}, "uri": object{"type": "string", "format": "uri"},
				"ip":  object{"type": "string", "format": "ipv6"},
				"for": object{"type": "string", "format": "duration"},
				"re":  object{"type": "string", "format": "regex"},
				"ptr": object{"type": "string", "format": "json-pointer"},
			},
			"required": list{"at", "on", "mail", "id", "uri", "ip", "for", "re", "ptr"},
		})),
	odd("schemas.patterns",
		"Required properties of an input schema have patterns, with lookahead and classes of Unicode.",
		"Patterns are ECMA 262 regular expressions.", "schema#tool", taking("patterns", object{
			"type": "object", "properties": object{
				"code": object{"type": "string", "pattern": `^[A-Z]{3}-\d{4}$`},
				"free": object{"type": "string", "pattern": `^(?!-).+(?<!-)$`},
				"word": object{"type": "string", "pattern": `^\p{L}+$`},
			},
			"required": list{"code"},
		})),
	odd("schemas.bounds",
		"Properties of an input schema have narrow bounds: multipleOf 0.01, exclusive limits, lengths of zero.",
		anySchema, "schema#tool", taking("bounds", object{
			"type": "object", "properties": object{
				"price": object{"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0, "exclusiveMaximum": 0.03},
				"none":  object{"type": "string", "maxLength": 0},
				"three": object{"type": "array", "minItems": 3, "maxItems": 3, "uniqueItems": true,
					"items": object{"type": "integer", "minimum": -1, "maximum": 1}},
				"big": object{"type": "integer", "minimum": json.Number("9007199254740993")},
			},
			"required": list{"price", "none", "three", "big"},
		})),
	odd("schemas.required-undescribed", "A required property of an input schema is not among its properties.",
		anySchema, "schema#tool",
		taking("required-undescribed", object{"type": "object", "required": list{"anything"}})),
	odd("schemas.names-odd",
		"Names of properties are empty, have spaces, dots, slashes, tildes and emojis, or are those of keywords.",
		"Any string names a property.", "schema#tool", taking("names-odd", object{
			"type": "object", "properties": object{
				"": object{"type": "string"}, "a b": object{"type": "string"}, "a/b~c": object{"type": "string"},
				"🙂":    object{"type": "string"},
				"$ref": object{"type": "string"}, "type": object{"type": "string"},
				"__proto__": object{"type": "string"},
			},
			"required": list{"", "a/b~c", "$ref", "type"},
		})),
	odd("schemas.large", "An input schema has 300 properties, and objects nested 25 deep.",
		"The size of a schema has no limit.", "schema#tool",
		func(o *server.Options) { taking("large", largeSchema())(o) }),
	odd("schemas.identified", "An input schema has an $id, and refers to a part of itself by it.", anySchema,
		"schema#tool", taking("identified", object{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/schemas/identified",
			"type":       "object",
			"properties": object{"n": object{"$ref": "part"}, "m": object{"$ref": "#anchored"}},
			"$defs": object{"n": object{"$id": "part", "type": "integer"},
				"m": object{"$anchor": "anchored", "type": "string"}},
		})),
}

func largeSchema() object {
	properties := object{}
	for i := range 300 {
		properties[fmt.Sprintf("p%03d", i)] = object{"type": "string", "description": "The property " + fmt.Sprint(i)}
	}
	deep := object{"type": "string"}
	for range 25 {
		deep = object{"type": "object", "properties": object{"d": deep}, "required": list{"d"}}
	}
	properties["deep"] = deep
	return object{"type": "object", "properties": properties, "required": list{"deep", "p007"}}
}

// showing adds a tool and a prompt that return blocks.
func showing(name string, blocks ...any) apply {
	var messages list
	for _, block := range blocks {
		messages = append(messages, object{"role": "user", "content": block})
	}
	return All(serving(name, returning(object{"content": append(list{}, blocks...)})),
		servingPrompt(object{"name": name}, messages...))
}

func embeddedBlock(resource object) object { return object{"type": "resource", "resource": resource} }

func linked(uri, name string) object {
	return object{"type": "resource_link", "uri": uri, "name": name}
}

// binary is base64 of some bytes.
func binary(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00\xFF\x10", n)))
}

func stamped(when string) object {
	return object{"type": "text", "text": when, "annotations": object{"lastModified": when}}
}

// Content of tools and prompts.
var contentOddities = []Oddity{
	odd("content.all-types", "One result has a block of each type, with annotations and metadata.",
		"Content can hold several items of different types.", "server/tools#tool-result", showing("all-types",
			object{"type": "text", "text": "a", "annotations": object{"priority": 0}, "_meta": object{}},
			object{"type": "image", "data": binary(3), "mimeType": "image/webp",
				"annotations": object{"audience": list{"assistant"}}},
			object{"type": "audio", "data": binary(3), "mimeType": "audio/ogg", "annotations": object{}},
			object{"type": "resource_link", "uri": "file:///a%20b", "name": "a b", "size": 3,
				"annotations": object{"priority": 1}},
			embeddedBlock(object{"uri": "test://embedded", "mimeType": "application/octet-stream", "blob": binary(1)}),
		)),
	odd("content.many", "One result has 200 blocks.", "The number of blocks has no limit.", "server/tools#tool-result",
		func(o *server.Options) { showing("many-blocks", slices.Repeat(list{textBlock("again")}, 200)...)(o) }),
	odd("content.text-odd", "Blocks of text are empty, have U+0000, U+FFFE, surrogate pairs, right-to-left marks "+
		"and line ends of all kinds.", "The text is any string.", "server/tools#text-content",
		showing("text-odd", textBlock(""), textBlock("\x00\x1b\uFFFE\U0010FFFF\u202Eabc\r\n\r\u2028\n\t"))),
	odd("content.text-like-messages", "Blocks of text hold what looks like protocol messages, events and markup.",
		"The text is any string.", "server/tools#text-content",
		showing("text-like-messages", textBlock(`{"jsonrpc":"2.0","id":1,"result":{}}`),
			textBlock("data: x\n\nevent: endpoint\n"), textBlock("<script>alert(1)</script>|`x`"))),
	odd("content.image-types",
		"Images have the MIME types image/svg+xml, image/vnd.microsoft.icon and image/png;a=\"b c\".",
		"The MIME type is any valid one.", "server/tools#image-content", showing("image-types",
			object{"type": "image",
				"data":     base64.StdEncoding.EncodeToString([]byte("<svg xmlns='http://www.w3.org/2000/svg'/>")),
				"mimeType": "image/svg+xml"},
			object{"type": "image", "data": binary(2), "mimeType": "image/vnd.microsoft.icon"},
			object{"type": "image", "data": binary(2), "mimeType": `image/png;a="b c"`},
		)),
	odd("content.image-large", "An image has 300,000 bytes.", "The size of content has no limit.",
		"server/tools#image-content", serving("large-image", func(context.Context, *server.Request) (any, *wire.Error) {
			return object{"content": list{object{"type": "image", "data": binary(100_000), "mimeType": "image/bmp"}}},
				nil
		})),
	odd("content.base64-padding", "Data of images ends in one, two or no padding characters, and uses + and /.",
		"Each is base64.", "server/tools#image-content", showing("padding",
			object{"type": "image", "data": "+/+/", "mimeType": "image/gif"},
			object{"type": "image", "data": "+/8=", "mimeType": "image/gif"},
			object{"type": "image", "data": "/w==", "mimeType": "image/gif"})),
	odd("content.audience", "Audiences are empty, or name both roles in either order.",
		"The audience is a list of roles.", "server/resources#annotations", showing("audience",
			object{"type": "text", "text": "a", "annotations": object{"audience": list{}}},
			object{"type": "text", "text": "b", "annotations": object{"audience": list{"user", "assistant"},
				"x-tone": "mild"}},
			object{"type": "text", "text": "c", "annotations": object{"audience": list{"assistant", "user"}}},
		)),
	odd("content.priority", "Priorities are 0, 1, 0.0, 1.0 and 1e-3.", "The priority is a number from 0 to 1.",
		"server/resources#annotations", showing("priority",
			object{"type": "text", "text": "a", "annotations": object{"priority": json.Number("0")}},
			object{"type": "text", "text": "b", "annotations": object{"priority": json.Number("1.0")}},
			object{"type": "text", "text": "c", "annotations": object{"priority": json.Number("1e-3")}},
			object{"type": "text", "text": "d", "annotations": object{"priority": json.Number("0.0")}})),
	odd("content.last-modified",
		"Times of last modification have fractions, offsets, no seconds, no time, the basic format.",
		"Each is of ISO 8601.", "server/resources#annotations", showing("last-modified",
			stamped("2025-01-12T15:00:58.123456789Z"), stamped("2025-01-12T15:00:58+05:30"),
			stamped("2025-01-12T15:00Z"), stamped("2025-01-12"), stamped("20250112T150058Z"),
			stamped("2025-01-12T15:00:58-03"), stamped("2025-W02-7T15:00:58Z"), stamped("2025-012T15:00:58Z"),
			stamped("2025-01-12T15:00:58,5Z"), stamped("2025-01-12T15:00:58"))),
	odd("content.links",
		"Links lead to resources that no list has and to other schemes; one has all members, one the least.",
		"Links are not guaranteed to appear in a list.", "server/tools#resource-links", showing("links",
			linked("https://example.com/a?b=c#d", "web"), linked("urn:isbn:0451450523", ""),
			object{
				"type": "resource_link", "uri": "file:///project/src/main.rs", "name": "main.rs", "title": "Main",
				"description": "Entry", "mimeType": "text/x-rust",
				"size": 0, "annotations": object{"audience": list{"user"}, "priority": 0.9},
				"_meta": object{"com.example/k": 1}, "icon": "x",
			},
		)),
	odd("content.embedded",
		"Embedded resources are text and binary, without and with a MIME type, and of URIs that no list has.",
		"Resources MAY be embedded, as text or blob.", "server/tools#embedded-resources",
		serving("embedded", returning(object{"content": list{
			embeddedBlock(object{"uri": "memo://1", "text": ""}), embeddedBlock(object{"uri": "memo://2", "blob": ""}),
			embeddedBlock(object{"uri": "file:///project/a", "mimeType": "inode/directory", "text": "a\nb\n",
				"annotations": object{"priority": 0.7}, "_meta": object{}}),
			embeddedBlock(object{"uri": "git://example.com/r.git", "mimeType": "application/octet-stream",
				"blob": binary(4)}),
		}}))),
}
