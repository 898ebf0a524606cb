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
	fault("tools.undeclared", ids.ToolsCapabilityDeclared, "Tools are served, but not declared.", Undeclared("tools")).
		Also(ids.LifecycleCapabilityServerEmitsToolsListChanged),
	fault("tools.list-refused", ids.ToolsListAnswered, "tools/list is refused with -32603.",
		Refusing("tools/list", server.InternalError, Always)),
	fault("tools.second-page-refused", ids.PaginationOperations, "The second page of tools/list is refused.",
		Refusing("tools/list", server.InternalError,
			Fitting(func(cursor string) bool { return len(cursor) > 30 }, "cursor"))).
		Also(ids.PaginationErrorInvalidCursorCode),
	fault("tools.listed-but-unknown", ids.ToolsListCallable, "A tool is listed, and unknown when it is called.",
		Offering(func(c *server.Catalogue) {
			for _, t := range c.Tools {
				if t.Name() == "resource_links" || t.Name() == "annotated_content" {
					t.Call = func(_ context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
						name, _ := r.Params["name"].(string)
						return nil, &wire.Error{Code: server.InvalidParams, Message: "Unknown tool: " + name}
					}
				}
			}
		})),
	fault("tools.listed-but-no-method", ids.ToolsListCallable, "Calling a listed tool is refused with -32601.",
		Refusing("tools/call", server.MethodNotFound, calling("annotated_content"))),
	fault("tools.change-unannounced", ids.ToolsListChangedSent,
		"The list changes without notifications/tools/list_changed.", Dropping("notifications/tools/list_changed")),
	fault("tools.change-unannounced-when-added", ids.ToolsListChangedSent,
		"A tool that adds another one does not announce the change of the list; the tool that removes it does.",
		addingSilently()),
	fault("tools.list-grows", ids.ToolsListChangedSent, "The list has one more tool when it is read again, nothing "+
		"tells of that, and no tool is known to change the list.",
		growing("tools", "toggle_tool", object{"name": "grown", "inputSchema": object{"type": "object"}})),
	fault("tools.change-announced-once", ids.ToolsListChangedSent,
		"Only the first change of the list in a session is announced.", FirstOnly("notifications/tools/list_changed")).
		Seen(InSequence),
	fault("tools.announced-early", ids.ToolsListChangedSent, "A change of the list is announced before it is made.",
		TellingEarly("toggle_tool", "notifications/tools/list_changed",
			func(s *server.Session) { s.Notify("notifications/tools/list_changed", nil) })).Seen(InSequence),
	fault("tools.removal-unannounced", ids.ToolsListChangedSent,
		"The addition of a tool is announced, its removal is not.",
		Withholding("notifications/tools/list_changed", func(out *server.Outgoing) bool {
			n := Kept[atomic.Int64](out.Session, "changes")
			return n.Add(1)%2 == 0
		})),
	fault("tools.late-duplicate", ids.ToolsNameUnique,
		"A tool that has come into the list has the name of another one.", Results("tools/list", func(result object) {
			all, _ := result["tools"].(list)
			for _, tool := range all {
				if tool, ok := tool.(object); ok && tool["name"] == "extra" {
					result["tools"] = append(slices.Clip(all), Copied(tool))
				}
			}
		})),
	fault("tools.late-content-missing", ids.SchemaCallToolResult,
		"A tool that has come into the list gives a result without content.", Called("extra", Lacking("content"))),
	fault("tools.duplicate-name", ids.ToolsNameUnique, "A tool is listed twice on the same page.",
		duplicated("tools/list", "tools")),
	fault("tools.duplicate-over-pages", ids.ToolsNameUnique, "A tool is listed on every page.",
		everyPage("tools/list", "tools", object{
			"name": "test_simple_text", "inputSchema": object{"type": "object"},
		})).Also(ids.PaginationCursorResultsAfter),
	fault("tools.input-schema-type", ids.ToolsInputSchemaValid, `An input schema has a property of the type "str".`,
		tool("echo", Having("inputSchema",
			object{"type": "object", "properties": object{"text": object{"type": "str"}}, "required": list{"text"}}))),
	fault("tools.input-schema-required", ids.ToolsInputSchemaValid,
		"In an input schema, required stands in the property as a boolean.", tool("echo", Having("inputSchema",
			object{"type": "object", "properties": object{"text": object{"type": "string", "required": true}}}))),
	fault("tools.output-schema-type", ids.ToolsOutputSchemaValid,
		`An output schema has a property of the type "float".`, tool("sum", Having("outputSchema",
			object{"type": "object", "properties": object{"sum": object{"type": "float"}}, "required": list{"sum"}}))),
	fault("tools.dangling-link", ids.ToolsResourceLinkResolvable,
		"A tool returns a link to a resource that cannot be read.", Blocks("resource_links", func(block object) {
			if block["uri"] == "test://static-text" {
				block["uri"] = "test://nowhere"
			}
		})),
	fault("tools.resources-undeclared", ids.ToolsEmbeddedResourceResourcesCapability,
		"Tools embed resources, but the server offers no resources.", Without("resources")).
		Also(ids.ToolsResourceLinkResolvable),
	fault("tools.structured-array", ids.ToolsStructuredContentObject, "structuredContent is an array.",
		Called("sum", func(result object) { result["structuredContent"] = list{result["structuredContent"]} })).
		Also(ids.ToolsOutputSchemaConforms),
	fault("tools.structured-string", ids.ToolsStructuredContentObject, "structuredContent is JSON in a string.",
		Called("sum", Having("structuredContent", `{"sum":3}`))).Also(ids.ToolsOutputSchemaConforms),
	fault("tools.structured-without-text", ids.ToolsStructuredContentTextCopy,
		"Structured content is not repeated as text.", Called("sum", Having("content", TextOf("Done.")))),
	fault("tools.structured-missing", ids.ToolsOutputSchemaStructuredPresent,
		"A tool with an output schema returns text only.", Called("sum", Lacking("structuredContent"))),
	fault("tools.structured-missing-for-zero", ids.ToolsOutputSchemaStructuredPresent,
		"A sum of zero comes as text only.", Called("sum", func(result object) {
			if Text(object{"sum": wire.At(result, "structuredContent", "sum")}) == `{"sum":0}` {
				delete(result, "structuredContent")
			}
		})).Seen(ByValue),
	fault("tools.structured-text-of-before", ids.ToolsStructuredContentTextCopy,
		"The text beside structured content is that of the call before.",
		WrappingTool("sum", server.Edit(func(r *server.Request, result map[string]any) {
			before := Kept[atomic.Value](r.Session, "before")
			if old := before.Swap(result["content"]); old != nil {
				result["content"] = old
			}
		}))),
	fault("tools.structured-wrong-type", ids.ToolsOutputSchemaConforms,
		"A number of the output schema comes as a string.", Called("sum", func(result object) {
			result["structuredContent"] = object{"sum": "3"}
			result["content"] = TextOf(`{"sum":"3"}`)
		})),
	fault("tools.structured-wrong-type-below-zero", ids.ToolsOutputSchemaConforms,
		"A sum below zero comes as a string.", Called("sum", func(result object) {
			if structured := Text(object{"sum": wire.At(result, "structuredContent",
				"sum")}); strings.HasPrefix(structured, `{"sum":-`) {
				result["structuredContent"] = object{"sum": structured}
				result["content"] = TextOf(Text(object{"sum": structured}))
			}
		})).Seen(ByValue),
	fault("tools.structured-misnamed-for-one-kind", ids.ToolsOutputSchemaConforms,
		"The result of a tool has another member than its output schema requires, for one of the values that an "+
			"argument may have.", ServingTool(object{
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
		})).Seen(ByValue),
	fault("tools.structured-misnamed", ids.ToolsOutputSchemaConforms,
		"A required member of the output schema has another name in the result.", Called("sum", func(result object) {
			result["structuredContent"] = object{"result": 3}
			result["content"] = TextOf(`{"result":3}`)
		})),
	fault("tools.unknown-as-result", ids.ToolsErrorUnknownToolProtocolError,
		"The call of an unknown tool gets a result with isError.",
		Answering("tools/call", object{"content": TextOf("Unknown tool"), "isError": true}, unknownNamed)),
	fault("tools.unknown-as-success", ids.ToolsErrorUnknownToolProtocolError,
		"The call of an unknown tool gets a plain result.",
		Answering("tools/call", object{"content": TextOf("")}, unknownNamed)),
	fault("tools.unknown-code-method", ids.ToolsErrorUnknownToolCode,
		"The call of an unknown tool is refused with -32601.",
		Refusing("tools/call", server.MethodNotFound, unknownNamed)),
	fault("tools.unknown-code-internal", ids.ToolsErrorUnknownToolCode,
		"The call of an unknown tool is refused with -32603.",
		Refusing("tools/call", server.InternalError, unknownNamed)),
	fault("tools.inherited-name-code", ids.ToolsErrorUnknownToolCode,
		"The call of a tool with the name of a member that every JavaScript object has is refused with -32603.",
		Refusing("tools/call", server.InternalError, calling("constructor"))).Seen(ByValue),
	fault("tools.inherited-name-result", ids.ToolsErrorUnknownToolProtocolError,
		"The call of a tool with the name of a member that every JavaScript object has gets a result.",
		Answering("tools/call", object{"content": TextOf("[object Undefined]")}, calling("toString"))).Seen(ByValue),
	fault("tools.invalid-arguments-code", ids.ToolsErrorInvalidArgumentsForm,
		"Arguments that do not fit are refused with -32603.",
		WrappingTool("sum", server.Recode(server.InvalidParams, server.InternalError))),
	fault("tools.arguments-unchecked", ids.ToolsSecurityValidateInputs,
		"Arguments are not checked against the input schema.", Wrapping("tools/call",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if _, ok := r.Params["arguments"].(object); !ok || UnknownTool(r) || r.Params["name"] == "sum" {
					return next(ctx, r)
				}
				return Pardoning(object{"content": TextOf("undefined")})(ctx, r, next)
			})),
	fault("tools.missing-argument-accepted", ids.ToolsSecurityValidateInputs, "A required argument may be missing.",
		Answering("tools/call", object{"content": TextOf("NaN"), "structuredContent": object{"sum": 0}},
			func(r *server.Request) bool {
				given, ok := r.Params["arguments"].(object)
				_, a := given["a"].(json.Number)
				_, b := given["b"].(json.Number)
				return ok && r.Params["name"] == "sum" && (a || b) && given["a"] != nil != (given["b"] != nil)
			})).Also(ids.ToolsStructuredContentTextCopy),
	fault("tools.enum-unchecked", ids.ToolsSecurityValidateInputs,
		"A string that is not in the enumeration of the input schema is accepted.", unchecked("mode", "enum")),
	fault("tools.minimum-unchecked", ids.ToolsSecurityValidateInputs,
		"A number below the minimum of the input schema is accepted.", unchecked("count", "minimum")),
	fault("tools.maximum-unchecked", ids.ToolsSecurityValidateInputs,
		"A number above the maximum of the input schema is accepted.", unchecked("count", "maximum")),
	fault("tools.min-length-unchecked", ids.ToolsSecurityValidateInputs,
		"A string that is shorter than the input schema wants it is accepted.", unchecked("label", "minLength")),
	fault("tools.max-length-unchecked", ids.ToolsSecurityValidateInputs,
		"A string that is longer than the input schema wants it is accepted.", unchecked("label", "maxLength")),
	fault("tools.pattern-unchecked", ids.ToolsSecurityValidateInputs,
		"A string that does not match the pattern of the input schema is accepted.", unchecked("label", "pattern")),
	fault("tools.min-items-unchecked", ids.ToolsSecurityValidateInputs,
		"An array with fewer items than the input schema wants is accepted.", unchecked("tags", "minItems")),
	fault("tools.max-items-unchecked", ids.ToolsSecurityValidateInputs,
		"An array with more items than the input schema wants is accepted.", unchecked("tags", "maxItems")),
	fault("tools.items-unchecked", ids.ToolsSecurityValidateInputs,
		"Items of an array that have another type than the input schema wants are accepted.",
		unchecked("tags", "items")),
	fault("tools.fraction-accepted", ids.ToolsSecurityValidateInputs,
		"A fraction is accepted where the input schema wants an integer.",
		misjudging("count", Having("type", "number"))),
	fault("tools.null-accepted", ids.ToolsSecurityValidateInputs, "null is accepted for a required argument.",
		Answering("tools/call", object{"content": TextOf("null")}, func(r *server.Request) bool {
			given, _ := r.Params["arguments"].(object)
			text, ok := given["text"]
			return ok && text == nil
		})),
	fault("tools.surplus-member-accepted", ids.ToolsSecurityValidateInputs,
		"A member that the input schema does not allow is dropped.", OnRequest("tools/call", func(r *server.Request) {
			if given, _ := r.Params["arguments"].(object); len(given) > 0 &&
				r.Params["name"] == "test_simple_text" {
				r.Params["arguments"] = object{}
			}
		})).Warns(),
	fault("tools.arguments-required", ids.ToolsCallArgumentsOmitted, "A call without the member arguments is refused.",
		Refusing("tools/call", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["arguments"] == nil && !UnknownTool(r) })),
	// https://github.com/use-novamira/novamira/issues/53
	fault("tools.empty-arguments-refused", ids.ToolsListCallable,
		"A call whose arguments are an empty object is refused, and one without the member arguments is served.",
		Refusing("tools/call", server.InvalidParams, emptyArguments)).Warns().Also(ids.ToolsErrorExecutionAsResult),
	// https://github.com/php-mcp/server/issues/26
	fault("tools.empty-arguments-as-array", ids.ToolsListCallable,
		"Tools without parameters refuse a call without arguments, or with an empty object of them, as if they "+
			"were an array; any arguments are served.", All(
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
		)).Seen(ByValue).Warns().Also(ids.ToolsErrorExecutionAsResult),
	fault("tools.failure-as-error", ids.ToolsErrorExecutionAsResult,
		"A failure inside a tool is reported as a JSON-RPC error.",
		Refusing("tools/call", server.InternalError, calling("test_error_handling"))),
	fault("tools.failure-unmarked", ids.ToolsErrorExecutionAsResult,
		"A failure inside a tool is reported without isError.", Called("test_error_handling", Lacking("isError"))),
	fault("tools.content-missing", ids.SchemaCallToolResult, "A tool result has no content.",
		Called("annotated_content", Lacking("content"))),
	fault("tools.content-string", ids.SchemaCallToolResult, "The content of a tool result is a string.",
		Called("annotated_content", Having("content", "plain text"))),
	fault("tools.content-block", ids.SchemaCallToolResult, "The content of a tool result is one block, not an array.",
		Called("annotated_content", Having("content", object{"type": "text", "text": "x"}))),
	fault("tools.is-error-string", ids.SchemaCallToolResult, `isError is the string "false".`,
		Called("annotated_content", Having("isError", "false"))),
	fault("tools.text-number", ids.SchemaCallToolResult, "The text of a block is a number.",
		Blocks("annotated_content", Having("text", 42))),
	fault("tools.name-missing", ids.SchemaListToolsResult, "A tool has no name.",
		tool("annotated_content", Lacking("name"))),
	fault("tools.input-schema-missing", ids.SchemaListToolsResult, "A tool has no inputSchema.",
		tool("annotated_content", Lacking("inputSchema"))),
	fault("tools.input-schema-empty", ids.SchemaListToolsResult, "An inputSchema is empty, without a type.",
		tool("annotated_content", Having("inputSchema", object{}))),
	fault("tools.input-schema-array", ids.SchemaListToolsResult, "An inputSchema has another type than object.",
		tool("annotated_content", Having("inputSchema", object{"type": "array"}))),
	fault("tools.hint-string", ids.SchemaListToolsResult, "The annotation readOnlyHint is a string.",
		tool("annotated_content", At("annotations", Having("readOnlyHint", "true")))),
	fault("tools.description-null", ids.SchemaListToolsResult, "The description of a tool is null.",
		tool("annotated_content", Having("description", nil))),
	fault("tools.object-by-name", ids.SchemaListToolsResult, "The tools are an object by name, not an array.",
		Results("tools/list", func(result object) {
			byName := object{}
			for _, t := range wire.Items(result, "tools") {
				name, _ := t.(object)["name"].(string)
				byName[name] = t
			}
			result["tools"] = byName
		})),
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
				page[feature] = append(slices.Clip(wire.Items(page, feature)), more)
			}
			return result, rpcErr
		}),
	)
}
