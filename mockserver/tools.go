package mockserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// tool changes the definition of one tool.
func tool(name string, change func(tool object)) apply {
	return Item("tools/list", "tools", "name", name, change)
}

// calling fits calls of a tool.
func calling(name string) func(r *server.Request) bool {
	return func(r *server.Request) bool { return r.Params["name"] == name }
}

// emptyArguments fits calls of tools that exist whose arguments are an empty object.
func emptyArguments(r *server.Request) bool {
	arguments, given := r.Params["arguments"].(object)
	return given && len(arguments) == 0 && !UnknownTool(r)
}

// erringOn is FailingOn with an error in place of a result.
func erringOn(name string, code int64, message string, fits func(result object) bool) apply {
	return All(Overhearing(), WrappingTool(name, func(ctx context.Context, r *server.Request, next server.Handler) (any,
		*wire.Error) {
		result, problem := Failing(fits)(ctx, r, next)
		if o, ok := result.(object); ok && o["isError"] == true {
			return nil, &wire.Error{Code: code, Message: message}
		}
		return result, problem
	}))
}

// duplicated repeats the first item of a list at its end.
func duplicated(method, member string) apply {
	return Results(method, func(result object) {
		if all, ok := result[member].(list); ok && len(all) > 0 && result["nextCursor"] == nil {
			result[member] = append(slices.Clip(all), all[0])
		}
	})
}

// everyPage puts an item on every page of a list.
func everyPage(method, member string, extra object) apply {
	return Results(method, func(result object) {
		if all, ok := result[member].(list); ok {
			result[member] = append(list{Copied(extra)}, all...)
		}
	})
}

// addingSilently has one tool that adds another one to the list without a word,
// and makes toggle_tool do no more than remove it.
func addingSilently() apply {
	more := func() *server.Tool {
		return &server.Tool{
			Definition: object{"name": "more", "inputSchema": object{"type": "object"}},
			Call: func(context.Context, *server.Request, map[string]any) (any, *wire.Error) {
				return object{"content": TextOf("more")}, nil
			},
		}
	}
	// turn adds or removes the tool if it is not there or there.
	turn := func(r *server.Request, shown bool) {
		if Kept[atomic.Bool](r.Session, "shown").Swap(shown) != shown {
			r.Session.ToggleTool(more())
		}
	}
	return All(
		Offering(func(c *server.Catalogue) {
			c.Tools = append(c.Tools, &server.Tool{
				Definition: object{"name": "show_more", "inputSchema": object{"type": "object"}},
				Call: func(_ context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
					turn(r, true)
					return object{"content": TextOf("shown")}, nil
				},
			})
		}),
		WrappingTool("toggle_tool", func(_ context.Context, r *server.Request, _ server.Handler) (any, *wire.Error) {
			turn(r, false)
			return object{"content": TextOf("hidden")}, nil
		}),
		Withholding("notifications/tools/list_changed", func(out *server.Outgoing) bool {
			return Kept[atomic.Bool](out.Session, "shown").Load()
		}),
	)
}

// measure is a tool whose arguments have to follow all kinds of rules.
func measure() *server.Tool {
	return &server.Tool{
		Definition: object{"name": "measure", "inputSchema": object{
			"type": "object",
			"properties": object{
				"count": object{"type": "integer", "minimum": 1, "maximum": 10},
				"mode":  object{"type": "string", "enum": list{"fast", "exact"}},
				"label": object{"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]*$"},
				"tags":  object{"type": "array", "minItems": 1, "maxItems": 3, "items": object{"type": "string"}},
			},
			"required": list{"count", "mode"},
		}},
		Call: func(context.Context, *server.Request, map[string]any) (any, *wire.Error) {
			return object{"content": TextOf("measured")}, nil
		},
	}
}

// misjudging has the tool measure, which lists one schema for an argument and
// goes by another.
func misjudging(argument string, change func(schema object)) apply {
	listed := measure().Definition["inputSchema"]
	return All(
		Offering(func(c *server.Catalogue) {
			t := measure()
			change(t.Definition["inputSchema"].(object)["properties"].(object)[argument].(object))
			c.Tools = append(c.Tools, t)
		}),
		tool("measure", Having("inputSchema", listed)),
	)
}

func unchecked(argument, keyword string) apply { return misjudging(argument, Lacking(keyword)) }

// server/tools
var toolFaults = []Fault{
	{ID: "tools.undeclared", Requirement: ids.ToolsCapabilityDeclared, Summary: "Tools are served, but not declared.",
		Collateral: []string{ids.LifecycleCapabilityServerEmitsToolsListChanged},
		Apply:      Undeclared("tools")},
	{ID: "tools.list-refused", Requirement: ids.ToolsListAnswered, Summary: "tools/list is refused with -32603.",
		Apply: Refusing("tools/list", server.InternalError, Always)},
	{ID: "tools.second-page-refused", Requirement: ids.PaginationOperations,
		Summary:    "The second page of tools/list is refused.",
		Collateral: []string{ids.PaginationErrorInvalidCursorCode},
		Apply: Refusing("tools/list", server.InternalError, func(r *server.Request) bool {
			cursor, ok := r.Params["cursor"].(string)
			return ok && len(cursor) > 30
		})},
	{ID: "tools.listed-but-unknown", Requirement: ids.ToolsListCallable,
		Summary: "A tool is listed, and unknown when it is called.",
		Apply: Offering(func(c *server.Catalogue) {
			for _, t := range c.Tools {
				if t.Name() == "resource_links" || t.Name() == "annotated_content" {
					t.Call = func(_ context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
						name, _ := r.Params["name"].(string)
						return nil, &wire.Error{Code: server.InvalidParams, Message: "Unknown tool: " + name}
					}
				}
			}
		})},
	{ID: "tools.listed-but-no-method", Requirement: ids.ToolsListCallable,
		Summary: "Calling a listed tool is refused with -32601.",
		Apply:   Refusing("tools/call", server.MethodNotFound, calling("annotated_content"))},
	{ID: "tools.change-unannounced", Requirement: ids.ToolsListChangedSent,
		Summary: "The list changes without notifications/tools/list_changed.",
		Apply:   Dropping("notifications/tools/list_changed")},
	{ID: "tools.change-unannounced-when-added", Requirement: ids.ToolsListChangedSent,
		Summary: "A tool that adds another one does not announce the change of the list; the tool " +
			"that removes it does.",
		Apply: addingSilently()},
	{ID: "tools.list-grows", Requirement: ids.ToolsListChangedSent,
		Summary: "The list has one more tool when it is read again, nothing tells of that, and no tool is known " +
			"to change the list.",
		Apply: growing("tools", "toggle_tool", object{"name": "grown", "inputSchema": object{"type": "object"}})},
	{ID: "tools.change-announced-once", Requirement: ids.ToolsListChangedSent, Form: InSequence,
		Summary: "Only the first change of the list in a session is announced.",
		Apply:   FirstOnly("notifications/tools/list_changed")},
	{ID: "tools.announced-early", Requirement: ids.ToolsListChangedSent, Form: InSequence,
		Summary: "A change of the list is announced before it is made.",
		Apply: TellingEarly("toggle_tool", "notifications/tools/list_changed", func(s *server.Session) {
			s.Notify("notifications/tools/list_changed", nil)
		})},
	{ID: "tools.removal-unannounced", Requirement: ids.ToolsListChangedSent,
		Summary: "The addition of a tool is announced, its removal is not.",
		Apply: Withholding("notifications/tools/list_changed", func(out *server.Outgoing) bool {
			n := Kept[atomic.Int64](out.Session, "changes")
			return n.Add(1)%2 == 0
		})},
	{ID: "tools.late-duplicate", Requirement: ids.ToolsNameUnique,
		Summary: "A tool that has come into the list has the name of another one.",
		Apply: Results("tools/list", func(result object) {
			all, _ := result["tools"].(list)
			for _, tool := range all {
				if tool, ok := tool.(object); ok && tool["name"] == "extra" {
					result["tools"] = append(slices.Clip(all), Copied(tool))
				}
			}
		})},
	{ID: "tools.late-content-missing", Requirement: ids.SchemaCallToolResult,
		Summary: "A tool that has come into the list gives a result without content.",
		Apply:   Called("extra", Lacking("content"))},
	{ID: "tools.duplicate-name", Requirement: ids.ToolsNameUnique,
		Summary: "A tool is listed twice on the same page.", Apply: duplicated("tools/list", "tools")},
	{ID: "tools.duplicate-over-pages", Requirement: ids.ToolsNameUnique, Summary: "A tool is listed on every page.",
		Collateral: []string{ids.PaginationCursorResultsAfter},
		Apply: everyPage("tools/list", "tools", object{
			"name": "test_simple_text", "inputSchema": object{"type": "object"},
		})},
	{ID: "tools.input-schema-type", Requirement: ids.ToolsInputSchemaValid,
		Summary: `An input schema has a property of the type "str".`,
		Apply: tool("echo", Having("inputSchema", object{
			"type": "object", "properties": object{"text": object{"type": "str"}}, "required": list{"text"},
		}))},
	{ID: "tools.input-schema-required", Requirement: ids.ToolsInputSchemaValid,
		Summary: "In an input schema, required stands in the property as a boolean.",
		Apply: tool("echo", Having("inputSchema", object{
			"type": "object", "properties": object{"text": object{"type": "string", "required": true}},
		}))},
	{ID: "tools.output-schema-type", Requirement: ids.ToolsOutputSchemaValid,
		Summary: `An output schema has a property of the type "float".`,
		Apply: tool("sum", Having("outputSchema", object{
			"type": "object", "properties": object{"sum": object{"type": "float"}}, "required": list{"sum"},
		}))},
	{ID: "tools.dangling-link", Requirement: ids.ToolsResourceLinkResolvable,
		Summary: "A tool returns a link to a resource that cannot be read.",
		Apply: Blocks("resource_links", func(block object) {
			if block["uri"] == "test://static-text" {
				block["uri"] = "test://nowhere"
			}
		})},
	{ID: "tools.resources-undeclared", Requirement: ids.ToolsEmbeddedResourceResourcesCapability,
		Summary:    "Tools embed resources, but the server offers no resources.",
		Collateral: []string{ids.ToolsResourceLinkResolvable}, Apply: Without("resources")},
	{ID: "tools.structured-array", Requirement: ids.ToolsStructuredContentObject,
		Summary: "structuredContent is an array.", Collateral: []string{ids.ToolsOutputSchemaConforms},
		Apply: Called("sum", func(result object) {
			result["structuredContent"] = list{result["structuredContent"]}
		})},
	{ID: "tools.structured-string", Requirement: ids.ToolsStructuredContentObject,
		Summary: "structuredContent is JSON in a string.", Collateral: []string{ids.ToolsOutputSchemaConforms},
		Apply: Called("sum", Having("structuredContent", `{"sum":3}`))},
	{ID: "tools.structured-without-text", Requirement: ids.ToolsStructuredContentTextCopy,
		Summary: "Structured content is not repeated as text.",
		Apply:   Called("sum", Having("content", TextOf("Done.")))},
	{ID: "tools.structured-missing", Requirement: ids.ToolsOutputSchemaStructuredPresent,
		Summary: "A tool with an output schema returns text only.",
		Apply:   Called("sum", Lacking("structuredContent"))},
	{ID: "tools.structured-missing-for-zero", Requirement: ids.ToolsOutputSchemaStructuredPresent, Form: ByValue,
		Summary: "A sum of zero comes as text only.",
		Apply: Called("sum", func(result object) {
			if Text(object{"sum": wire.At(result, "structuredContent", "sum")}) == `{"sum":0}` {
				delete(result, "structuredContent")
			}
		})},
	{ID: "tools.structured-text-of-before", Requirement: ids.ToolsStructuredContentTextCopy,
		Summary: "The text beside structured content is that of the call before.",
		Apply: WrappingTool("sum", server.Edit(func(r *server.Request, result map[string]any) {
			before := Kept[atomic.Value](r.Session, "before")
			if old := before.Swap(result["content"]); old != nil {
				result["content"] = old
			}
		}))},
	{ID: "tools.structured-wrong-type", Requirement: ids.ToolsOutputSchemaConforms,
		Summary: "A number of the output schema comes as a string.",
		Apply: Called("sum", func(result object) {
			result["structuredContent"] = object{"sum": "3"}
			result["content"] = TextOf(`{"sum":"3"}`)
		})},
	{ID: "tools.structured-wrong-type-below-zero", Requirement: ids.ToolsOutputSchemaConforms, Form: ByValue,
		Summary: "A sum below zero comes as a string.",
		Apply: Called("sum", func(result object) {
			if structured := Text(object{"sum": wire.At(result, "structuredContent",
				"sum")}); strings.HasPrefix(structured, `{"sum":-`) {
				result["structuredContent"] = object{"sum": structured}
				result["content"] = TextOf(Text(object{"sum": structured}))
			}
		})},
	{ID: "tools.structured-misnamed-for-one-kind", Requirement: ids.ToolsOutputSchemaConforms, Form: ByValue,
		Summary: "The result of a tool has another member than its output schema requires, for one of the values " +
			"that an argument may have.",
		Apply: ServingTool(object{
			"name": "weigh", "annotations": object{"readOnlyHint": true},
			"inputSchema": object{
				"type": "object", "properties": object{"unit": object{"$ref": "#/$defs/unit"}},
				"required": list{"unit"},
				"$defs":    object{"unit": object{"enum": list{"gram", "ounce", "stone"}}},
			},
			"outputSchema": object{"type": "object", "properties": object{"weight": object{"type": "number"}},
				"required": list{"weight"}},
		}, func(_ context.Context, r *server.Request) (any, *wire.Error) {
			member := "weight"
			if wire.At(r.Params, "arguments", "unit") == "stone" {
				member = "stones"
			}
			return object{"structuredContent": object{member: 3}, "content": TextOf(Text(object{member: 3}))}, nil
		})},
	{ID: "tools.structured-misnamed", Requirement: ids.ToolsOutputSchemaConforms,
		Summary: "A required member of the output schema has another name in the result.",
		Apply: Called("sum", func(result object) {
			result["structuredContent"] = object{"result": 3}
			result["content"] = TextOf(`{"result":3}`)
		})},
	{ID: "tools.unknown-as-result", Requirement: ids.ToolsErrorUnknownToolProtocolError,
		Summary: "The call of an unknown tool gets a result with isError.",
		Apply:   Answering("tools/call", object{"content": TextOf("Unknown tool"), "isError": true}, unknownNamed)},
	{ID: "tools.unknown-as-success", Requirement: ids.ToolsErrorUnknownToolProtocolError,
		Summary: "The call of an unknown tool gets a plain result.",
		Apply:   Answering("tools/call", object{"content": TextOf("")}, unknownNamed)},
	{ID: "tools.unknown-code-method", Requirement: ids.ToolsErrorUnknownToolCode,
		Summary: "The call of an unknown tool is refused with -32601.",
		Apply:   Refusing("tools/call", server.MethodNotFound, unknownNamed)},
	{ID: "tools.unknown-code-internal", Requirement: ids.ToolsErrorUnknownToolCode,
		Summary: "The call of an unknown tool is refused with -32603.",
		Apply:   Refusing("tools/call", server.InternalError, unknownNamed)},
	{ID: "tools.inherited-name-code", Requirement: ids.ToolsErrorUnknownToolCode, Form: ByValue,
		Summary: "The call of a tool with the name of a member that every JavaScript object has " +
			"is refused with -32603.",
		Apply: Refusing("tools/call", server.InternalError, calling("constructor"))},
	{ID: "tools.inherited-name-result", Requirement: ids.ToolsErrorUnknownToolProtocolError, Form: ByValue,
		Summary: "The call of a tool with the name of a member that every JavaScript object has gets a result.",
		Apply:   Answering("tools/call", object{"content": TextOf("[object Undefined]")}, calling("toString"))},
	{ID: "tools.invalid-arguments-code", Requirement: ids.ToolsErrorInvalidArgumentsForm,
		Summary: "Arguments that do not fit are refused with -32603.",
		Apply:   WrappingTool("sum", server.Recode(server.InvalidParams, server.InternalError))},
	{ID: "tools.arguments-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "Arguments are not checked against the input schema.",
		Apply: Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, ok := r.Params["arguments"].(object); !ok || UnknownTool(r) || r.Params["name"] == "sum" {
					return next(ctx, r)
				}
				return Pardoning(object{"content": TextOf("undefined")})(ctx, r, next)
			})},
	{ID: "tools.missing-argument-accepted", Requirement: ids.ToolsSecurityValidateInputs,
		Summary:    "A required argument may be missing.",
		Collateral: []string{ids.ToolsStructuredContentTextCopy},
		Apply: Answering("tools/call", object{"content": TextOf("NaN"), "structuredContent": object{"sum": 0}},
			func(r *server.Request) bool {
				given, ok := r.Params["arguments"].(object)
				_, a := given["a"].(json.Number)
				_, b := given["b"].(json.Number)
				return ok && r.Params["name"] == "sum" && (a || b) && given["a"] != nil != (given["b"] != nil)
			})},
	{ID: "tools.enum-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A string that is not in the enumeration of the input schema is accepted.",
		Apply:   unchecked("mode", "enum")},
	{ID: "tools.minimum-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A number below the minimum of the input schema is accepted.",
		Apply:   unchecked("count", "minimum")},
	{ID: "tools.maximum-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A number above the maximum of the input schema is accepted.",
		Apply:   unchecked("count", "maximum")},
	{ID: "tools.min-length-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A string that is shorter than the input schema wants it is accepted.",
		Apply:   unchecked("label", "minLength")},
	{ID: "tools.max-length-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A string that is longer than the input schema wants it is accepted.",
		Apply:   unchecked("label", "maxLength")},
	{ID: "tools.pattern-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A string that does not match the pattern of the input schema is accepted.",
		Apply:   unchecked("label", "pattern")},
	{ID: "tools.min-items-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "An array with fewer items than the input schema wants is accepted.",
		Apply:   unchecked("tags", "minItems")},
	{ID: "tools.max-items-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "An array with more items than the input schema wants is accepted.",
		Apply:   unchecked("tags", "maxItems")},
	{ID: "tools.items-unchecked", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "Items of an array that have another type than the input schema wants are accepted.",
		Apply:   unchecked("tags", "items")},
	{ID: "tools.fraction-accepted", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "A fraction is accepted where the input schema wants an integer.",
		Apply:   misjudging("count", Having("type", "number"))},
	{ID: "tools.null-accepted", Requirement: ids.ToolsSecurityValidateInputs,
		Summary: "null is accepted for a required argument.",
		Apply: Answering("tools/call", object{"content": TextOf("null")}, func(r *server.Request) bool {
			given, _ := r.Params["arguments"].(object)
			text, ok := given["text"]
			return ok && text == nil
		})},
	{ID: "tools.surplus-member-accepted", Requirement: ids.ToolsSecurityValidateInputs, WarnOnly: true,
		Summary: "A member that the input schema does not allow is dropped.",
		Apply: OnRequest("tools/call", func(r *server.Request) {
			if given, _ := r.Params["arguments"].(object); len(given) > 0 &&
				r.Params["name"] == "test_simple_text" {
				r.Params["arguments"] = object{}
			}
		})},
	{ID: "tools.arguments-required", Requirement: ids.ToolsCallArgumentsOmitted,
		Summary: "A call without the member arguments is refused.",
		Apply: Refusing("tools/call", server.InvalidParams, func(r *server.Request) bool {
			return r.Params["arguments"] == nil && !UnknownTool(r)
		})},
	// https://github.com/use-novamira/novamira/issues/53
	{ID: "tools.empty-arguments-refused", Requirement: ids.ToolsListCallable, WarnOnly: true,
		Summary: "A call whose arguments are an empty object is refused, and one without the member arguments " +
			"is served.",
		Collateral: []string{ids.ToolsErrorExecutionAsResult},
		Apply:      Refusing("tools/call", server.InvalidParams, emptyArguments)},
	// https://github.com/php-mcp/server/issues/26
	{ID: "tools.empty-arguments-as-array", Requirement: ids.ToolsListCallable, Form: ByValue, WarnOnly: true,
		Summary: "Tools without parameters refuse a call without arguments, or with an empty object of them, " +
			"as if they were an array; any arguments are served.",
		Collateral: []string{ids.ToolsErrorExecutionAsResult},
		Apply: All(
			Offering(func(c *server.Catalogue) {
				for _, tool := range c.Tools {
					if properties, _ := wire.At(tool.Definition["inputSchema"],
						"properties").(object); len(properties) == 0 {
						tool.Definition["inputSchema"] = object{"type": "object"}
					}
				}
			}),
			Refusing("tools/call", server.InvalidParams, func(r *server.Request) bool {
				return emptyArguments(r) || r.Params["arguments"] == nil && !UnknownTool(r)
			}),
		)},
	{ID: "tools.failure-as-error", Requirement: ids.ToolsErrorExecutionAsResult,
		Summary: "A failure inside a tool is reported as a JSON-RPC error.",
		Apply:   Refusing("tools/call", server.InternalError, calling("test_error_handling"))},
	{ID: "tools.failure-unmarked", Requirement: ids.ToolsErrorExecutionAsResult,
		Summary: "A failure inside a tool is reported without isError.",
		Apply:   Called("test_error_handling", Lacking("isError"))},
	{ID: "tools.content-missing", Requirement: ids.SchemaCallToolResult, Summary: "A tool result has no content.",
		Apply: Called("annotated_content", Lacking("content"))},
	{ID: "tools.content-string", Requirement: ids.SchemaCallToolResult,
		Summary: "The content of a tool result is a string.",
		Apply:   Called("annotated_content", Having("content", "plain text"))},
	{ID: "tools.content-block", Requirement: ids.SchemaCallToolResult,
		Summary: "The content of a tool result is one block, not an array.",
		Apply:   Called("annotated_content", Having("content", object{"type": "text", "text": "x"}))},
	{ID: "tools.is-error-string", Requirement: ids.SchemaCallToolResult, Summary: `isError is the string "false".`,
		Apply: Called("annotated_content", Having("isError", "false"))},
	{ID: "tools.text-number", Requirement: ids.SchemaCallToolResult, Summary: "The text of a block is a number.",
		Apply: Blocks("annotated_content", Having("text", 42))},
	{ID: "tools.name-missing", Requirement: ids.SchemaListToolsResult, Summary: "A tool has no name.",
		Apply: tool("annotated_content", Lacking("name"))},
	{ID: "tools.input-schema-missing", Requirement: ids.SchemaListToolsResult, Summary: "A tool has no inputSchema.",
		Apply: tool("annotated_content", Lacking("inputSchema"))},
	{ID: "tools.input-schema-empty", Requirement: ids.SchemaListToolsResult,
		Summary: "An inputSchema is empty, without a type.",
		Apply:   tool("annotated_content", Having("inputSchema", object{}))},
	{ID: "tools.input-schema-array", Requirement: ids.SchemaListToolsResult,
		Summary: "An inputSchema has another type than object.",
		Apply:   tool("annotated_content", Having("inputSchema", object{"type": "array"}))},
	{ID: "tools.hint-string", Requirement: ids.SchemaListToolsResult,
		Summary: "The annotation readOnlyHint is a string.",
		Apply:   tool("annotated_content", At("annotations", Having("readOnlyHint", "true")))},
	{ID: "tools.description-null", Requirement: ids.SchemaListToolsResult,
		Summary: "The description of a tool is null.",
		Apply:   tool("annotated_content", Having("description", nil))},
	{ID: "tools.object-by-name", Requirement: ids.SchemaListToolsResult,
		Summary: "The tools are an object by name, not an array.",
		Apply: Results("tools/list", func(result object) {
			byName := object{}
			all, _ := result["tools"].(list)
			for _, t := range all {
				name, _ := t.(object)["name"].(string)
				byName[name] = t
			}
			result["tools"] = byName
		})},
}

// unknownNamed fits well-formed calls of tools that do not exist.
func unknownNamed(r *server.Request) bool {
	name, ok := r.Params["name"].(string)
	return ok && name != "extra" && UnknownTool(r)
}

// growing gives a list one more item when a session reads it to its end again, and takes away
// the tool that would change it.
func growing(feature, toggle string, more object) apply {
	return All(
		Offering(func(c *server.Catalogue) {
			c.Tools = slices.DeleteFunc(c.Tools, func(t *server.Tool) bool { return t.Name() == toggle })
		}),
		Wrapping(feature+"/list", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			result, rpcErr := next(ctx, r)
			if page, ok := result.(object); ok && page["nextCursor"] == nil && !Once(r.Session, feature+" listed") {
				items, _ := page[feature].(list)
				page[feature] = append(slices.Clip(items), more)
			}
			return result, rpcErr
		}),
	)
}
