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
	return Results("completion/complete", At("completion", change))
}

func nothingSuggested() object {
	return object{"completion": object{"values": list{}, "total": 0, "hasMore": false}}
}

// server/utilities/completion
var completionFaults = []Fault{
	fault("completion.undeclared", ids.CompletionCapabilityDeclared, "Completions are served, but not declared.",
		Undeclared("completions")),
	fault("completion.undeclared-for-templates", ids.CompletionCapabilityDeclared,
		"Completions are served, but not declared, and suggest something for templates alone.",
		All(Undeclared("completions"), Answering("completion/complete", nothingSuggested(),
			func(r *server.Request) bool { return wire.At(r.Params, "ref", "name") != nil }))).Seen(ByValue),
	fault("completion.undeclared-code", ids.CompletionErrorUnsupportedCode,
		"A server without completions refuses completion/complete with -32600.",
		All(Without("completions"), Refusing("completion/complete", server.InvalidRequest, Always))),
	fault("completion.refused", ids.CompletionAnswered, "Completing the variable of a template is refused with -32603.",
		Refusing("completion/complete", server.InternalError, func(r *server.Request) bool {
			return wire.At(r.Params, "ref", "uri") == "test://notes/{name}"
		})),
	fault("completion.empty-context-refused", ids.CompletionContextAccepted,
		"A completion whose context has no arguments is refused.",
		Refusing("completion/complete", server.InvalidParams, func(r *server.Request) bool {
			given, ok := r.Params["context"].(object)
			return ok && given["arguments"] == nil
		})).Seen(ByValue),
	fault("completion.context-refused", ids.CompletionContextAccepted, "A completion with context is refused.",
		Refusing("completion/complete", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["context"] != nil })),
	fault("completion.too-many-values", ids.CompletionResultMax100, "A completion has 150 values.",
		suggested(func(completion object) {
			if completion["hasMore"] == true {
				values := completion["values"].(list)
				for i := len(values); i < 150; i++ {
					values = append(values, fmt.Sprint(i))
				}
				completion["values"], completion["hasMore"] = values, false
			}
		})),
	fault("completion.total-zero", ids.CompletionResultTotalMeaning, "total is 0 whatever the number of values.",
		suggested(Having("total", 0))),
	fault("completion.has-more-always", ids.CompletionResultHasMoreMeaning,
		"hasMore is true although all values are there.", suggested(Having("hasMore", true))),
	fault("completion.has-more-never", ids.CompletionResultHasMoreMeaning,
		"hasMore is false although total is larger than the number of values.", suggested(Having("hasMore", false))),
	fault("completion.has-more-of-whole", ids.CompletionResultHasMoreMeaning,
		"hasMore is true although the value is complete and the only one.", Wrapping("completion/complete",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				value := wire.At(r.Params, "argument", "value")
				if values, _ := wire.At(result, "completion", "values").(list); len(values) == 1 && values[0] == value {
					result.(object)["completion"].(object)["hasMore"] = true
				}
				return result, problem
			})),
	fault("completion.unknown-prompt-code", ids.CompletionErrorInvalidPromptCode,
		"Completing an argument of an unknown prompt is refused with -32603.",
		Refusing("completion/complete", server.InternalError,
			func(r *server.Request) bool { return wire.At(r.Params, "ref", "name") == noName })),
	fault("completion.unknown-prompt-empty", ids.CompletionErrorInvalidPromptCode,
		"Completing an argument of an unknown prompt suggests nothing.",
		Answering("completion/complete", nothingSuggested(),
			func(r *server.Request) bool { return wire.At(r.Params, "ref", "name") == noName })),
	fault("completion.missing-argument-code", ids.CompletionErrorMissingArgumentCode,
		"A completion without argument is refused with -32603.", Refusing("completion/complete", server.InternalError,
			func(r *server.Request) bool { return r.Params["ref"] != nil && r.Params["argument"] == nil })),
	fault("completion.anything-completed", ids.CompletionSecurityValidateInputs,
		"A reference of unknown type gets a result.", Answering("completion/complete", nothingSuggested(), unknownRef)),
	fault("completion.value-unchecked", ids.CompletionSecurityValidateInputs,
		"A value that is not a string gets a result.",
		Answering("completion/complete", nothingSuggested(), func(r *server.Request) bool {
			_, isArray := wire.At(r.Params, "argument", "value").(list)
			return isArray
		})),
	fault("completion.number-completed", ids.CompletionSecurityValidateInputs,
		"A value that is a number gets a result.",
		Answering("completion/complete", nothingSuggested(), func(r *server.Request) bool {
			_, isNumber := wire.At(r.Params, "argument", "value").(json.Number)
			return isNumber
		})).Seen(ByValue),
	fault("completion.values-objects", ids.SchemaCompleteResult, "The values of a completion are objects.",
		suggested(func(completion object) {
			values := completion["values"].(list)
			for i, v := range values {
				values[i] = object{"value": v}
			}
		})),
	fault("completion.flat", ids.SchemaCompleteResult, "The values stand in the result itself, not in completion.",
		Results("completion/complete", func(result object) {
			for name, v := range result["completion"].(object) {
				result[name] = v
			}
			delete(result, "completion")
		})),
}
