package mockserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// requested changes the requested schema of elicitations.
func requested(change func(schema object)) apply {
	return Params("elicitation/create", func(params object) {
		if schema, ok := params["requestedSchema"].(object); ok {
			change(schema)
		}
	})
}

// property changes one property of the requested schema.
func property(name string, change func(property object)) apply {
	return requested(func(schema object) {
		if properties, ok := schema["properties"].(object); ok {
			if p, ok := properties[name].(object); ok {
				change(p)
			}
		}
	})
}

// asking adds a property to the requested schema.
func asking(name string, schema object) apply {
	return requested(func(requested object) {
		if properties, ok := requested["properties"].(object); ok {
			properties[name] = Copied(schema)
		}
	})
}

// hangingOn leaves everything unanswered once a result of the client fits.
func hangingOn(fits func(result object) bool) apply {
	return unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
		result, ok := m.Result.(object)
		return ok && m.Kind == wire.Result && fits(result)
	})
}

// action fits elicitation results.
func action(name string) func(result object) bool {
	return func(result object) bool { return result["action"] == name }
}

// rooted fits results of roots/list.
func rooted(fits func(roots list) bool) func(result object) bool {
	return func(result object) bool {
		roots, ok := result["roots"].(list)
		return ok && fits(roots)
	}
}

// silentOn leaves a call of a tool without a response if what the client answers it fits.
func silentOn(tool string, fits func(answer object) bool) apply {
	return All(Overhearing(), WrappingTool(tool, func(ctx context.Context, r *server.Request, next server.Handler) (any,
		*wire.Error) {
		silent := false
		result, problem := Failing(func(answer object) bool {
			silent = silent || fits(answer)
			return false
		})(ctx, r, next)
		if silent {
			return server.NoAnswer, nil
		}
		return result, problem
	}))
}

// Requests of a server to its client: sampling, roots and elicitation.
var clientFaults = []Fault{
	{ID: "sampling.resource-content", Requirement: ids.SamplingMessageContentKinds,
		Summary:    "A sampling message holds a resource.",
		Collateral: []string{ids.ContentBlockKnownType, ids.SchemaCreateMessageRequest},
		Apply: Params("sampling/createMessage", func(params object) {
			params["messages"].(list)[0].(object)["content"] = object{
				"type": "resource", "resource": object{"uri": "test://static-text", "mimeType": "text/plain",
					"text": "x"},
			}
		})},
	{ID: "sampling.no-max-tokens", Requirement: ids.SchemaCreateMessageRequest,
		Summary: "sampling/createMessage has no maxTokens.",
		Apply:   Params("sampling/createMessage", Lacking("maxTokens"))},
	{ID: "sampling.messages-string", Requirement: ids.SchemaCreateMessageRequest,
		Summary: "sampling/createMessage has a prompt in place of messages.",
		Apply: Params("sampling/createMessage", func(params object) {
			params["prompt"] = "Say hello."
			delete(params, "messages")
		})},
	{ID: "sampling.priority-percent", Requirement: ids.SamplingPreferencesPriorityRange,
		Summary:    "A priority among the model preferences is 50.",
		Collateral: []string{ids.SchemaCreateMessageRequest},
		Apply:      Params("sampling/createMessage", Having("modelPreferences", object{"costPriority": 50}))},
	{ID: "sampling.content-unchecked", Requirement: ids.SamplingSecurityValidateContent,
		Summary: "The content of a sampling result is used without looking at it.",
		Apply: WrappingTool("test_sampling", func(ctx context.Context, r *server.Request, next server.Handler) (any,
			*wire.Error) {
			if _, ok := wire.At(r.Params, "arguments", "prompt").(string); !ok || !r.Session.ClientHas("sampling") {
				return next(ctx, r)
			}
			result, err := r.Call(ctx, "sampling/createMessage", object{
				"messages":  list{object{"role": "user", "content": object{"type": "text", "text": "Say hello."}}},
				"maxTokens": 100,
			})
			if err != nil {
				return object{"content": TextOf(err.Error()), "isError": true}, nil
			}
			raw, _ := json.Marshal(wire.At(result, "content"))
			return object{"content": TextOf("LLM response: " + string(raw))}, nil
		})},
	{ID: "sampling.stop-reason-required", Requirement: ids.SamplingResultStopReasonOptional,
		Summary: "A sampling result without stopReason makes the tool fail.",
		Apply: FailingOn("test_sampling", func(result object) bool {
			return result["model"] != nil && result["stopReason"] == nil
		})},
	{ID: "sampling.stop-reason-closed", Requirement: ids.SamplingResultStopReasonOpen,
		Summary: "An unknown stopReason makes the tool fail.",
		Apply: FailingOn("test_sampling", func(result object) bool {
			reason, ok := result["stopReason"].(string)
			return ok && reason != "endTurn"
		})},
	{ID: "sampling.short-answer-refused", Requirement: ids.SamplingMaxTokensFewer,
		Summary: "A very short generation makes the tool fail.",
		Apply: FailingOn("test_sampling", func(result object) bool {
			text, ok := wire.At(result, "content", "text").(string)
			return ok && len(text) < 5
		})},
	{ID: "sampling.model-refused", Requirement: ids.SamplingPreferencesAdvisory,
		Summary: "A model that was not hinted at makes the tool fail.",
		Apply: FailingOn("test_sampling", func(result object) bool {
			model, ok := result["model"].(string)
			return ok && model != "mcpconform"
		})},
	{ID: "sampling.result-closed", Requirement: ids.BaseResponseResultOpen,
		Summary: "A sampling result with a member that is not defined makes the tool fail.",
		Apply:   FailingOn("test_sampling", func(result object) bool { return result["mcpconform"] != nil })},
	{ID: "sampling.error-data-text", Requirement: ids.BaseErrorDataFree,
		Summary:    "After an error of the client whose data is a text nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			data, _ := wire.At(m.Value(), "error", "data").(string)
			return m.Kind == wire.ErrorResponse && data != ""
		})},
	{ID: "sampling.null-character-hangs", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "A call gets no response if the text that was sampled for it has a null character.",
		Collateral: []string{ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose},
		Apply: silentOn("test_sampling", func(answer object) bool {
			return strings.Contains(TextAt(answer, "content", "text"), "\x00")
		})},
	{ID: "sampling.text-as-latin-1", Requirement: ids.BaseMessageUTF8Accepted, Form: ByValue,
		Summary: "The sampled text is read as if its bytes were ISO 8859-1.",
		Apply:   Texts("test_sampling", latin)},
	{ID: "elicitation.beyond-basic-plane-hangs", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "A call gets no response if a user enters a character that UTF-16 writes as a surrogate pair.",
		Collateral: []string{ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose},
		Apply: silentOn("test_elicitation", func(answer object) bool {
			return strings.ContainsFunc(TextAt(answer, "content", "username"), func(c rune) bool { return c > 0xffff })
		})},
	{ID: "roots.name-quotes-deafen", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "After a root whose name has quotes nothing is answered any more.",
		Collateral: []string{ids.RootsServerUnavailable},
		Apply: hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && strings.Contains(TextAt(roots[0], "name"), `"`)
		}))},
	{ID: "roots.path-null-deafens", Requirement: ids.BaseResponsePresent, Form: ByValue,
		Summary:    "After a root whose path has an encoded null character nothing is answered any more.",
		Collateral: []string{ids.RootsServerUnavailable},
		Apply: hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && strings.Contains(TextAt(roots[0], "uri"), "%00")
		}))},
	{ID: "http.roots-of-the-last-refetched", Requirement: ids.RootsListChangedRefetch, Form: BySession,
		Transports: OverHTTP,
		Summary:    "Only the client that was asked for its roots last is asked for them again.",
		Apply: func(o *server.Options) {
			var last atomic.Pointer[server.Session]
			Receiving(func(s *server.Session, m *wire.Message, next func()) {
				if m.Method != "notifications/roots/list_changed" || last.Load() == s {
					next()
				}
			})(o)
			WrappingTool("test_roots", func(ctx context.Context, r *server.Request, next server.Handler) (any,
				*wire.Error) {
				fetched := Kept[atomic.Bool](r.Session, "roots")
				last.Store(r.Session)
				if fetched.Swap(true) {
					return object{"content": TextOf("the same roots")}, nil
				}
				return next(ctx, r)
			})(o)
		}},
	{ID: "http.roots-of-all", Requirement: ids.HTTPServerSessionIsolation, Form: BySession, Transports: OverHTTP,
		Summary: "A tool that tells the roots of a client tells those of the others as well.",
		Apply: func(o *server.Options) {
			var told sync.Map // by session
			WrappingTool("test_roots", func(ctx context.Context, r *server.Request, next server.Handler) (any,
				*wire.Error) {
				result, problem := next(ctx, r)
				content, _ := wire.At(result, "content").(list)
				if problem != nil || len(content) == 0 {
					return result, problem
				}
				told.Store(r.Session, content[0])
				for _, other := range Others(r.Session) {
					if block, ok := told.Load(other); ok {
						content = append(slices.Clip(content), block)
					}
				}
				return object{"content": content}, nil
			})(o)
		}},
	{ID: "roots.params-array", Requirement: ids.BaseJSONRPCParamsObject,
		Summary: "The params of roots/list are an empty array.",
		Apply:   Messages("roots/list", func(out *server.Outgoing) { out.Message["params"] = list{} })},
	{ID: "roots.meta", Requirement: ids.MetaObject, Summary: "The _meta of roots/list is an array.",
		Apply: Params("roots/list", Having("_meta", list{}))},
	{ID: "roots.of-the-first-client", Requirement: ids.HTTPServerSessionIsolation, Form: BySession,
		Transports: OverHTTP,
		Summary:    "The roots of the first client are kept, and hold for all others, which are not asked for theirs.",
		Apply: func(o *server.Options) {
			type kept struct {
				session *server.Session
				result  any
			}
			var first atomic.Pointer[kept]
			WrappingTool("test_roots", func(ctx context.Context, r *server.Request, next server.Handler) (any,
				*wire.Error) {
				if k := first.Load(); k != nil && k.session != r.Session {
					return Copied(k.result.(object)), nil
				}
				result, problem := next(ctx, r)
				if o, ok := result.(object); ok && problem == nil && o["isError"] != true {
					first.CompareAndSwap(nil, &kept{r.Session, Copied(o)})
				}
				return result, problem
			})(o)
		}},
	{ID: "roots.not-refetched", Requirement: ids.RootsListChangedRefetch,
		Summary: "The roots are fetched once, and never again.",
		Apply: All(
			Receiving(func(_ *server.Session, m *wire.Message, next func()) {
				if m.Method != "notifications/roots/list_changed" {
					next()
				}
			}),
			WrappingTool("test_roots", func(ctx context.Context, r *server.Request, next server.Handler) (any,
				*wire.Error) {
				fetched := Kept[atomic.Bool](r.Session, "roots")
				if fetched.Swap(true) {
					return object{"content": TextOf("the same roots")}, nil
				}
				return next(ctx, r)
			}),
		)},
	{ID: "roots.name-required", Requirement: ids.RootsRootNameOptional,
		Summary:    "After a root without a name nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent, ids.RootsListChangedRefetch},
		Apply: hangingOn(rooted(func(roots list) bool {
			return len(roots) == 1 && wire.At(roots[0], "name") == nil && wire.At(roots[0], "uri") == "file:///tmp" &&
				wire.At(roots[0], "_meta") == nil
		}))},
	{ID: "roots.only-one", Requirement: ids.RootsListMultiple,
		Summary:    "After several roots nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent, ids.RootsListChangedGraceful, ids.RootsListChangedRefetch},
		Apply:      hangingOn(rooted(func(roots list) bool { return len(roots) > 1 }))},
	{ID: "roots.file-unexpected", Requirement: ids.RootsRootFileOrDirectory,
		Summary:    "After a root that is a file nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && wire.At(roots[0], "uri") == "file:///etc/hosts"
		}))},
	{ID: "roots.missing-folder", Requirement: ids.RootsServerUnavailable,
		Summary:    "After a root that does not exist nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && wire.At(roots[0], "name") == "Gone"
		}))},
	{ID: "roots.error-unexpected", Requirement: ids.RootsServerUnavailable,
		Summary:    "After an error for an answer to roots/list nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			return m.Error != nil && m.Error.Message == "The roots are not available."
		})},
	{ID: "roots.none-left", Requirement: ids.RootsListChangedGraceful,
		Summary:    "After a list of no roots nothing is answered any more.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      hangingOn(rooted(func(roots list) bool { return len(roots) == 0 }))},
	{ID: "elicitation.password", Requirement: ids.ElicitationRequestNoSensitive,
		Summary: "An elicitation asks for a password.",
		Apply: asking("password", object{"type": "string", "title": "Password",
			"description": "Enter your password."})},
	{ID: "elicitation.password-in-words", Requirement: ids.ElicitationRequestNoSensitive,
		Summary: "The message of an elicitation asks for the user's password.",
		Apply:   Params("elicitation/create", Having("message", "To go on, please enter your password."))},
	{ID: "elicitation.token-named", Requirement: ids.ElicitationRequestNoSensitive, WarnOnly: true,
		Summary: "A requested property is called githubToken.",
		Apply:   asking("githubToken", object{"type": "string"})},
	{ID: "sampling.tools-of-later-revision", Requirement: ids.LifecycleOperationVersion, WarnOnly: true,
		Summary: "A sampling request offers tools, which only a later revision knows.",
		Apply:   Params("sampling/createMessage", Having("tools", list{}))},
	{ID: "elicitation.nested-object", Requirement: ids.ElicitationSchemaFlat,
		Summary:    "A requested property is an object.",
		Collateral: []string{ids.ElicitationSchemaPrimitiveTypes},
		Apply: asking("address", object{"type": "object",
			"properties": object{"city": object{"type": "string"}}})},
	{ID: "elicitation.array", Requirement: ids.ElicitationSchemaFlat, Summary: "A requested property is an array.",
		Collateral: []string{ids.ElicitationSchemaPrimitiveTypes},
		Apply:      asking("tags", object{"type": "array", "items": object{"type": "string"}})},
	{ID: "elicitation.type-null", Requirement: ids.ElicitationSchemaPrimitiveTypes,
		Summary: "A requested property has a list of types.",
		Apply:   asking("age", object{"type": list{"integer", "null"}})},
	{ID: "elicitation.no-type", Requirement: ids.ElicitationSchemaPrimitiveTypes,
		Summary: "A requested property has no type.",
		Apply:   asking("age", object{"description": "How old you are"})},
	{ID: "elicitation.pattern", Requirement: ids.ElicitationSchemaNoAdvanced,
		Summary: "A requested property has a pattern.",
		Apply:   property("username", Having("pattern", "^[a-z]+$"))},
	{ID: "elicitation.one-of", Requirement: ids.ElicitationSchemaNoAdvanced,
		Summary: "The requested schema has anyOf.",
		Apply:   requested(Having("anyOf", list{object{"required": list{"username"}}}))},
	{ID: "elicitation.format-uuid", Requirement: ids.ElicitationSchemaFormats,
		Summary: "A requested property has the format uuid.",
		Apply:   asking("key", object{"type": "string", "format": "uuid"})},
	{ID: "elicitation.enum-names-short", Requirement: ids.ElicitationSchemaEnumNames,
		Summary: "An enum has fewer names than values.",
		Apply:   asking("colour", object{"type": "string", "enum": list{"red", "green"}, "enumNames": list{"Red"}})},
	{ID: "elicitation.enum-of-numbers", Requirement: ids.ElicitationSchemaNoAdvanced, Form: ByValue, WarnOnly: true,
		Summary: "The last value of an enum is a number.",
		Apply:   asking("size", object{"type": "string", "enum": list{"small", 2}})},
	{ID: "elicitation.no-message", Requirement: ids.SchemaElicitRequest, Summary: "An elicitation has no message.",
		Apply: Params("elicitation/create", Lacking("message"))},
	{ID: "elicitation.schema-misnamed", Requirement: ids.SchemaElicitRequest,
		Summary: "An elicitation has schema in place of requestedSchema.",
		Apply: Params("elicitation/create", func(params object) {
			params["schema"] = params["requestedSchema"]
			delete(params, "requestedSchema")
		})},
	{ID: "elicitation.accept-fails", Requirement: ids.ElicitationServerHandleAccept,
		Summary: "A call whose elicitation is accepted ends in an internal error.",
		Apply:   erringOn("test_elicitation", server.InternalError, "Internal error", action("accept"))},
	{ID: "elicitation.optional-missed", Requirement: ids.ElicitationServerHandleAccept, Form: ByValue,
		Summary: "A call whose elicitation is accepted without what the form does not require ends " +
			"in an internal error.",
		Apply: erringOn("test_elicitation", server.InternalError, "Internal error", func(answer object) bool {
			return answer["action"] == "accept" && TextAt(answer, "content", "username") != "" &&
				wire.At(answer, "content", "news") == nil
		})},
	{ID: "elicitation.zero-missed", Requirement: ids.ElicitationServerHandleAccept, Form: ByValue,
		Summary: "A call whose elicitation is accepted with a zero ends in an internal error.",
		Apply: erringOn("test_elicitation", server.InternalError, "Internal error", func(answer object) bool {
			return wire.At(answer, "content", "rating") == json.Number("0")
		})},
	{ID: "elicitation.decline-hangs", Requirement: ids.ElicitationServerHandleDecline,
		Summary: "A call hangs when the elicitation is declined.", Collateral: []string{ids.BaseResponsePresent},
		Apply: hangingOn(action("decline"))},
	{ID: "elicitation.decline-internal-error", Requirement: ids.ElicitationServerHandleDecline,
		Summary: "A call whose elicitation is declined ends in an internal error.",
		Apply:   erringOn("test_elicitation", server.InternalError, "Internal error", action("decline"))},
	{ID: "elicitation.cancel-hangs", Requirement: ids.ElicitationServerHandleCancel,
		Summary:    "A call hangs when the elicitation is cancelled.",
		Collateral: []string{ids.BaseResponsePresent, ids.CancellationLateResponse},
		Apply:      hangingOn(action("cancel"))},
	{ID: "elicitation.content-required", Requirement: ids.ElicitationServerContentAbsent,
		Summary: "A declined elicitation without content is an invalid answer for the server.",
		Apply: erringOn("test_elicitation", server.InvalidParams, "Invalid params: content is missing",
			func(result object) bool {
				return result["action"] == "decline" && result["content"] == nil
			})},
	{ID: "elicitation.content-missed", Requirement: ids.ElicitationServerContentAbsent,
		Summary: "A call whose elicitation is cancelled without content fails.",
		Apply: FailingOn("test_elicitation", func(result object) bool {
			return result["action"] == "cancel" && result["content"] == nil
		})},
	{ID: "elicitation.enum-unchecked", Requirement: ids.ElicitationSecurityValidateContent,
		Summary: "Elicited values are taken although they are not among those that were listed.",
		Apply: All(Overhearing(), WrappingTool("test_elicitation",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				var colour any
				result, problem := Failing(func(answer object) bool {
					colour = wire.At(answer, "content", "colour")
					return false
				})(ctx, r, next)
				if colour, ok := colour.(string); ok {
					return object{"content": TextOf("User response: accept, " + colour)}, nil
				}
				return result, problem
			}))},
	{ID: "elicitation.content-unchecked", Requirement: ids.ElicitationSecurityValidateContent,
		Summary: "Elicited content is used without looking at it.",
		Apply: All(Overhearing(), WrappingTool("test_elicitation",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				var content any
				result, problem := Failing(func(answer object) bool {
					content = answer["content"]
					return false
				})(ctx, r, next)
				if content != nil {
					raw, _ := json.Marshal(content)
					return object{"content": TextOf("User response: accept, " + string(raw))}, nil
				}
				return result, problem
			}))},
}
