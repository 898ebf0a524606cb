package mockserver

import (
	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// prompt changes the listed entry of a prompt.
func prompt(name string, change func(entry object)) apply {
	return Item("prompts/list", "prompts", "name", name, change)
}

// spoken changes the messages of a prompt.
func spoken(name string, change func(message object)) apply {
	return Wrapping("prompts/get", server.Named(name, server.EditItems("messages", change)))
}

func hello() object {
	return object{"messages": list{object{"role": "user", "content": object{"type": "text", "text": "undefined"}}}}
}

// server/prompts
var promptFaults = []Fault{
	fault("prompts.undeclared", ids.PromptsCapabilityDeclared, "Prompts are served, but not declared.",
		Undeclared("prompts")).Also(ids.LifecycleCapabilityServerEmitsPromptsListChanged),
	fault("prompts.list-refused", ids.PromptsListAnswered, "prompts/list is refused with -32603.",
		Refusing("prompts/list", server.InternalError, Always)),
	fault("prompts.get-no-method", ids.PromptsGetAnswered, "Getting a listed prompt is refused with -32601.",
		Refusing("prompts/get", server.MethodNotFound, calling("prompt_with_audio"))),
	fault("prompts.arguments-required", ids.PromptsGetArgumentsOmitted,
		"prompts/get without the member arguments is refused.",
		Refusing("prompts/get", server.InvalidParams, func(r *server.Request) bool {
			_, given := r.Params["arguments"]
			return !given && r.Params["name"] == "test_simple_prompt"
		})),
	fault("prompts.change-unannounced", ids.PromptsListChangedSent,
		"The list changes without notifications/prompts/list_changed.", Dropping("notifications/prompts/list_changed")),
	fault("prompts.list-grows", ids.PromptsListChangedSent,
		"The list has one more prompt when it is read again, nothing tells of that, and no tool is known to change "+
			"the list.", growing("prompts", "toggle_prompt", object{"name": "grown"})),
	fault("prompts.change-announced-once", ids.PromptsListChangedSent,
		"Only the first change of the list in a session is announced.",
		FirstOnly("notifications/prompts/list_changed")).Seen(InSequence),
	fault("prompts.duplicate-name", ids.PromptsNameUnique, "A prompt is listed twice.",
		duplicated("prompts/list", "prompts")),
	fault("prompts.role-system", ids.PromptsMessageRoleSpeaker, "A prompt message has the role system.",
		spoken("test_simple_prompt", Having("role", "system"))).Also(ids.SchemaGetPromptResult),
	fault("prompts.unknown-code", ids.PromptsErrorInvalidNameCode, "An unknown prompt is refused with -32603.",
		Refusing("prompts/get", server.InternalError, calling(noName))),
	fault("prompts.inherited-name", ids.PromptsErrorInvalidNameCode,
		"A prompt with the name of a member that every JavaScript object has is refused with -32603.",
		Refusing("prompts/get", server.InternalError, calling("toString"))).Seen(ByValue),
	fault("prompts.unknown-accepted", ids.PromptsErrorInvalidNameCode, "An unknown prompt has messages.",
		Answering("prompts/get", object{"messages": list{}}, calling(noName))),
	fault("prompts.missing-argument-code", ids.PromptsErrorMissingArgumentCode,
		"A missing argument is refused with -32603.",
		Refusing("prompts/get", server.InternalError, func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "travel" && given["country"] == nil
		})),
	fault("prompts.missing-argument-accepted", ids.PromptsArgumentsValidated, "A required argument may be missing.",
		Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "travel" && given["country"] == nil
		})).Also(ids.PromptsErrorMissingArgumentCode),
	fault("prompts.omitted-arguments-accepted", ids.PromptsArgumentsValidated,
		"A prompt with required arguments may be asked for without any arguments.",
		Answering("prompts/get", hello(), func(r *server.Request) bool {
			return r.Params["name"] == "travel" && r.Params["arguments"] == nil
		})).Seen(ByValue).Also(ids.PromptsErrorMissingArgumentCode),
	fault("prompts.second-argument-unchecked", ids.PromptsArgumentsValidated,
		"Only the first required argument has to be there.",
		Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "test_prompt_with_arguments" && given["arg1"] != nil &&
				given["arg2"] == nil
		})).Also(ids.PromptsErrorMissingArgumentCode),
	fault("prompts.argument-types-unchecked", ids.PromptsArgumentsValidated,
		"Arguments that are not strings are accepted.", Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, _ := r.Params["arguments"].(object)
			for _, v := range given {
				if _, ok := v.(string); !ok {
					return true
				}
			}
			return false
		})),
	fault("prompts.messages-missing", ids.SchemaGetPromptResult, "A prompt has prompt in place of messages.",
		Wrapping("prompts/get", server.Named("test_simple_prompt",
			server.Edit(func(_ *server.Request, result map[string]any) {
				result["prompt"] = "This is a simple prompt."
				delete(result, "messages")
			})))),
	fault("prompts.content-string", ids.SchemaGetPromptResult, "The content of a prompt message is a string.",
		spoken("test_simple_prompt", Having("content", "This is a simple prompt."))),
	fault("prompts.late-content-string", ids.SchemaGetPromptResult,
		"The content of a message is a string, in a prompt that has come into the list.",
		spoken("extra", Having("content", "extra"))),
	fault("prompts.content-array", ids.SchemaGetPromptResult, "The content of a prompt message is an array.",
		spoken("test_simple_prompt", func(message object) { message["content"] = list{message["content"]} })),
	fault("prompts.arguments-schema", ids.SchemaListPromptsResult,
		"The arguments of a prompt are a JSON Schema, not an array.", prompt("travel", Having("arguments",
			object{"type": "object", "properties": object{"country": object{"type": "string"}}}))),
	fault("prompts.required-string", ids.SchemaListPromptsResult, "required of a prompt argument is a string.",
		prompt("travel", func(entry object) { entry["arguments"].(list)[1].(object)["required"] = "no" })),
	fault("prompts.name-missing", ids.SchemaListPromptsResult, "A prompt has no name.",
		prompt("prompt_with_audio", Lacking("name"))),
}
