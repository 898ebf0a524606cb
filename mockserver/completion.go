package mockserver

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// suggested changes the completion object of results.
func suggested(change func(completion object)) apply {
	return Results("completion/complete", func(result object) {
		if completion, ok := result["completion"].(object); ok {
			change(completion)
		}
	})
}

func nothingSuggested() object {
	return object{"completion": object{"values": list{}, "total": 0, "hasMore": false}}
}

// server/utilities/completion
var completionFaults = []Fault{
	{ID: "completion.undeclared", Requirement: ids.CompletionCapabilityDeclared,
		Summary: "Completions are served, but not declared.", Apply: Undeclared("completions")},
	{ID: "completion.undeclared-for-templates", Requirement: ids.CompletionCapabilityDeclared, Form: ByValue,
		Summary: "Completions are served, but not declared, and suggest something for templates alone.",
		Apply: All(Undeclared("completions"), Answering("completion/complete", nothingSuggested(),
			func(r *server.Request) bool {
				return wire.At(r.Params, "ref", "name") != nil
			}))},
	{ID: "completion.undeclared-code", Requirement: ids.CompletionErrorUnsupportedCode,
		Summary: "A server without completions refuses completion/complete with -32600.",
		Apply:   All(Without("completions"), Refusing("completion/complete", server.InvalidRequest, Always))},
	{ID: "completion.refused", Requirement: ids.CompletionAnswered,
		Summary: "Completing the variable of a template is refused with -32603.",
		Apply: Refusing("completion/complete", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "ref", "uri") == "test://notes/{name}"
		})},
	{ID: "completion.empty-context-refused", Requirement: ids.CompletionContextAccepted, Form: ByValue,
		Summary: "A completion whose context has no arguments is refused.",
		Apply: Refusing("completion/complete", server.InvalidParams, func(r *server.Request) bool {
			given, ok := r.Params["context"].(object)
			return ok && given["arguments"] == nil
		})},
	{ID: "completion.context-refused", Requirement: ids.CompletionContextAccepted,
		Summary: "A completion with context is refused.",
		Apply: Refusing("completion/complete", server.InvalidParams, func(r *server.Request) bool {
			return r.Params["context"] != nil
		})},
	{ID: "completion.too-many-values", Requirement: ids.CompletionResultMax100,
		Summary: "A completion has 150 values.",
		Apply: suggested(func(completion object) {
			if completion["hasMore"] == true {
				values := completion["values"].(list)
				for i := len(values); i < 150; i++ {
					values = append(values, fmt.Sprint(i))
				}
				completion["values"], completion["hasMore"] = values, false
			}
		})},
	{ID: "completion.total-zero", Requirement: ids.CompletionResultTotalMeaning,
		Summary: "total is 0 whatever the number of values.", Apply: suggested(Having("total", 0))},
	{ID: "completion.has-more-always", Requirement: ids.CompletionResultHasMoreMeaning,
		Summary: "hasMore is true although all values are there.", Apply: suggested(Having("hasMore", true))},
	{ID: "completion.has-more-never", Requirement: ids.CompletionResultHasMoreMeaning,
		Summary: "hasMore is false although total is larger than the number of values.",
		Apply:   suggested(Having("hasMore", false))},
	{ID: "completion.has-more-of-whole", Requirement: ids.CompletionResultHasMoreMeaning,
		Summary: "hasMore is true although the value is complete and the only one.",
		Apply: Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				value := wire.At(r.Params, "argument", "value")
				if values, _ := wire.At(result, "completion", "values").(list); len(values) == 1 && values[0] == value {
					result.(object)["completion"].(object)["hasMore"] = true
				}
				return result, problem
			})},
	{ID: "completion.unknown-prompt-code", Requirement: ids.CompletionErrorInvalidPromptCode,
		Summary: "Completing an argument of an unknown prompt is refused with -32603.",
		Apply: Refusing("completion/complete", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "ref", "name") == noName
		})},
	{ID: "completion.unknown-prompt-empty", Requirement: ids.CompletionErrorInvalidPromptCode,
		Summary: "Completing an argument of an unknown prompt suggests nothing.",
		Apply: Answering("completion/complete", nothingSuggested(), func(r *server.Request) bool {
			return wire.At(r.Params, "ref", "name") == noName
		})},
	{ID: "completion.missing-argument-code", Requirement: ids.CompletionErrorMissingArgumentCode,
		Summary: "A completion without argument is refused with -32603.",
		Apply: Refusing("completion/complete", server.InternalError, func(r *server.Request) bool {
			return r.Params["ref"] != nil && r.Params["argument"] == nil
		})},
	{ID: "completion.anything-completed", Requirement: ids.CompletionSecurityValidateInputs,
		Summary: "A reference of unknown type gets a result.",
		Apply:   Answering("completion/complete", nothingSuggested(), unknownRef)},
	{ID: "completion.value-unchecked", Requirement: ids.CompletionSecurityValidateInputs,
		Summary: "A value that is not a string gets a result.",
		Apply: Answering("completion/complete", nothingSuggested(), func(r *server.Request) bool {
			_, isArray := wire.At(r.Params, "argument", "value").(list)
			return isArray
		})},
	{ID: "completion.number-completed", Requirement: ids.CompletionSecurityValidateInputs, Form: ByValue,
		Summary: "A value that is a number gets a result.",
		Apply: Answering("completion/complete", nothingSuggested(), func(r *server.Request) bool {
			_, isNumber := wire.At(r.Params, "argument", "value").(json.Number)
			return isNumber
		})},
	{ID: "completion.values-objects", Requirement: ids.SchemaCompleteResult,
		Summary: "The values of a completion are objects.",
		Apply: suggested(func(completion object) {
			values := completion["values"].(list)
			for i, v := range values {
				values[i] = object{"value": v}
			}
		})},
	{ID: "completion.flat", Requirement: ids.SchemaCompleteResult,
		Summary: "The values stand in the result itself, not in completion.",
		Apply: Results("completion/complete", func(result object) {
			for name, v := range result["completion"].(object) {
				result[name] = v
			}
			delete(result, "completion")
		})},
}
