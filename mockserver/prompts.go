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
	{ID: "prompts.undeclared", Requirement: ids.PromptsCapabilityDeclared,
		Summary:    "Prompts are served, but not declared.",
		Collateral: []string{ids.LifecycleCapabilityServerEmitsPromptsListChanged},
		Apply:      Undeclared("prompts")},
	{ID: "prompts.list-refused", Requirement: ids.PromptsListAnswered,
		Summary: "prompts/list is refused with -32603.",
		Apply:   Refusing("prompts/list", server.InternalError, Always)},
	{ID: "prompts.get-no-method", Requirement: ids.PromptsGetAnswered,
		Summary: "Getting a listed prompt is refused with -32601.",
		Apply:   Refusing("prompts/get", server.MethodNotFound, calling("prompt_with_audio"))},
	{ID: "prompts.arguments-required", Requirement: ids.PromptsGetArgumentsOmitted,
		Summary: "prompts/get without the member arguments is refused.",
		Apply: Refusing("prompts/get", server.InvalidParams, func(r *server.Request) bool {
			_, given := r.Params["arguments"]
			return !given && r.Params["name"] == "test_simple_prompt"
		})},
	{ID: "prompts.change-unannounced", Requirement: ids.PromptsListChangedSent,
		Summary: "The list changes without notifications/prompts/list_changed.",
		Apply:   Dropping("notifications/prompts/list_changed")},
	{ID: "prompts.list-grows", Requirement: ids.PromptsListChangedSent,
		Summary: "The list has one more prompt when it is read again, nothing tells of that, and no tool is " +
			"known to change the list.",
		Apply: growing("prompts", "toggle_prompt", object{"name": "grown"})},
	{ID: "prompts.change-announced-once", Requirement: ids.PromptsListChangedSent, Form: InSequence,
		Summary: "Only the first change of the list in a session is announced.",
		Apply:   FirstOnly("notifications/prompts/list_changed")},
	{ID: "prompts.duplicate-name", Requirement: ids.PromptsNameUnique, Summary: "A prompt is listed twice.",
		Apply: duplicated("prompts/list", "prompts")},
	{ID: "prompts.role-system", Requirement: ids.PromptsMessageRoleSpeaker,
		Summary: "A prompt message has the role system.", Collateral: []string{ids.SchemaGetPromptResult},
		Apply: spoken("test_simple_prompt", Having("role", "system"))},
	{ID: "prompts.unknown-code", Requirement: ids.PromptsErrorInvalidNameCode,
		Summary: "An unknown prompt is refused with -32603.",
		Apply:   Refusing("prompts/get", server.InternalError, calling(noName))},
	{ID: "prompts.inherited-name", Requirement: ids.PromptsErrorInvalidNameCode, Form: ByValue,
		Summary: "A prompt with the name of a member that every JavaScript object has is refused with -32603.",
		Apply:   Refusing("prompts/get", server.InternalError, calling("toString"))},
	{ID: "prompts.unknown-accepted", Requirement: ids.PromptsErrorInvalidNameCode,
		Summary: "An unknown prompt has messages.",
		Apply:   Answering("prompts/get", object{"messages": list{}}, calling(noName))},
	{ID: "prompts.missing-argument-code", Requirement: ids.PromptsErrorMissingArgumentCode,
		Summary: "A missing argument is refused with -32603.",
		Apply: Refusing("prompts/get", server.InternalError, func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "travel" && given["country"] == nil
		})},
	{ID: "prompts.missing-argument-accepted", Requirement: ids.PromptsArgumentsValidated,
		Summary:    "A required argument may be missing.",
		Collateral: []string{ids.PromptsErrorMissingArgumentCode},
		Apply: Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "travel" && given["country"] == nil
		})},
	{ID: "prompts.omitted-arguments-accepted", Requirement: ids.PromptsArgumentsValidated, Form: ByValue,
		Summary:    "A prompt with required arguments may be asked for without any arguments.",
		Collateral: []string{ids.PromptsErrorMissingArgumentCode},
		Apply: Answering("prompts/get", hello(), func(r *server.Request) bool {
			return r.Params["name"] == "travel" && r.Params["arguments"] == nil
		})},
	{ID: "prompts.second-argument-unchecked", Requirement: ids.PromptsArgumentsValidated,
		Summary:    "Only the first required argument has to be there.",
		Collateral: []string{ids.PromptsErrorMissingArgumentCode},
		Apply: Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, ok := r.Params["arguments"].(object)
			return ok && r.Params["name"] == "test_prompt_with_arguments" && given["arg1"] != nil &&
				given["arg2"] == nil
		})},
	{ID: "prompts.argument-types-unchecked", Requirement: ids.PromptsArgumentsValidated,
		Summary: "Arguments that are not strings are accepted.",
		Apply: Answering("prompts/get", hello(), func(r *server.Request) bool {
			given, _ := r.Params["arguments"].(object)
			for _, v := range given {
				if _, ok := v.(string); !ok {
					return true
				}
			}
			return false
		})},
	{ID: "prompts.messages-missing", Requirement: ids.SchemaGetPromptResult,
		Summary: "A prompt has prompt in place of messages.",
		Apply: Wrapping("prompts/get", server.Named("test_simple_prompt",
			server.Edit(func(_ *server.Request, result map[string]any) {
				result["prompt"] = "This is a simple prompt."
				delete(result, "messages")
			})))},
	{ID: "prompts.content-string", Requirement: ids.SchemaGetPromptResult,
		Summary: "The content of a prompt message is a string.",
		Apply:   spoken("test_simple_prompt", Having("content", "This is a simple prompt."))},
	{ID: "prompts.late-content-string", Requirement: ids.SchemaGetPromptResult,
		Summary: "The content of a message is a string, in a prompt that has come into the list.",
		Apply:   spoken("extra", Having("content", "extra"))},
	{ID: "prompts.content-array", Requirement: ids.SchemaGetPromptResult,
		Summary: "The content of a prompt message is an array.",
		Apply: spoken("test_simple_prompt", func(message object) {
			message["content"] = list{message["content"]}
		})},
	{ID: "prompts.arguments-schema", Requirement: ids.SchemaListPromptsResult,
		Summary: "The arguments of a prompt are a JSON Schema, not an array.",
		Apply: prompt("travel", Having("arguments",
			object{"type": "object", "properties": object{"country": object{"type": "string"}}}))},
	{ID: "prompts.required-string", Requirement: ids.SchemaListPromptsResult,
		Summary: "required of a prompt argument is a string.",
		Apply:   prompt("travel", func(entry object) { entry["arguments"].(list)[1].(object)["required"] = "no" })},
	{ID: "prompts.name-missing", Requirement: ids.SchemaListPromptsResult, Summary: "A prompt has no name.",
		Apply: prompt("prompt_with_audio", Lacking("name"))},
}
