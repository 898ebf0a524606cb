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
	return Params("elicitation/create", At("requestedSchema", change))
}

// property changes one property of the requested schema.
func property(name string, change func(property object)) apply {
	return requested(At("properties", At(name, change)))
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
	fault("sampling.resource-content", ids.SamplingMessageContentKinds, "A sampling message holds a resource.",
		Params("sampling/createMessage", func(params object) {
			params["messages"].(list)[0].(object)["content"] = object{
				"type": "resource", "resource": object{"uri": "test://static-text", "mimeType": "text/plain",
					"text": "x"},
			}
		})).Also(ids.ContentBlockKnownType, ids.SchemaCreateMessageRequest),
	fault("sampling.no-max-tokens", ids.SchemaCreateMessageRequest, "sampling/createMessage has no maxTokens.",
		Params("sampling/createMessage", Lacking("maxTokens"))),
	fault("sampling.messages-string", ids.SchemaCreateMessageRequest,
		"sampling/createMessage has a prompt in place of messages.",
		Params("sampling/createMessage", func(params object) {
			params["prompt"] = "Say hello."
			delete(params, "messages")
		})),
	fault("sampling.priority-percent", ids.SamplingPreferencesPriorityRange,
		"A priority among the model preferences is 50.",
		Params("sampling/createMessage", Having("modelPreferences", object{"costPriority": 50}))).
		Also(ids.SchemaCreateMessageRequest),
	fault("sampling.content-unchecked", ids.SamplingSecurityValidateContent,
		"The content of a sampling result is used without looking at it.",
		WrappingTool("test_sampling", func(ctx context.Context, r *server.Request, next server.Handler) (any,
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
		})),
	fault("sampling.stop-reason-required", ids.SamplingResultStopReasonOptional,
		"A sampling result without stopReason makes the tool fail.", FailingOn("test_sampling",
			func(result object) bool { return result["model"] != nil && result["stopReason"] == nil })),
	fault("sampling.stop-reason-closed", ids.SamplingResultStopReasonOpen, "An unknown stopReason makes the tool fail.",
		FailingOn("test_sampling", func(result object) bool {
			reason, ok := result["stopReason"].(string)
			return ok && reason != "endTurn"
		})),
	fault("sampling.short-answer-refused", ids.SamplingMaxTokensFewer, "A very short generation makes the tool fail.",
		FailingOn("test_sampling", func(result object) bool {
			text, ok := wire.At(result, "content", "text").(string)
			return ok && len(text) < 5
		})),
	fault("sampling.model-refused", ids.SamplingPreferencesAdvisory,
		"A model that was not hinted at makes the tool fail.", FailingOn("test_sampling", func(result object) bool {
			model, ok := result["model"].(string)
			return ok && model != "mcpconform"
		})),
	fault("sampling.result-closed", ids.BaseResponseResultOpen,
		"A sampling result with a member that is not defined makes the tool fail.",
		FailingOn("test_sampling", func(result object) bool { return result["mcpconform"] != nil })),
	fault("sampling.error-data-text", ids.BaseErrorDataFree,
		"After an error of the client whose data is a text nothing is answered any more.",
		unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			data, _ := wire.At(m.Value(), "error", "data").(string)
			return m.Kind == wire.ErrorResponse && data != ""
		})).Also(ids.BaseResponsePresent),
	fault("sampling.null-character-hangs", ids.BaseResponsePresent,
		"A call gets no response if the text that was sampled for it has a null character.",
		silentOn("test_sampling", func(answer object) bool {
			return strings.Contains(TextAt(answer, "content", "text"), "\x00")
		})).Seen(ByValue).Also(ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("sampling.text-as-latin-1", ids.BaseMessageUTF8Accepted,
		"The sampled text is read as if its bytes were ISO 8859-1.", Texts("test_sampling", latin)).Seen(ByValue),
	fault("elicitation.beyond-basic-plane-hangs", ids.BaseResponsePresent,
		"A call gets no response if a user enters a character that UTF-16 writes as a surrogate pair.",
		silentOn("test_elicitation", func(answer object) bool {
			return strings.ContainsFunc(TextAt(answer, "content", "username"), func(c rune) bool { return c > 0xffff })
		})).Seen(ByValue).Also(ids.HTTPServerSSEResponseSent, ids.HTTPServerSSENoEarlyClose),
	fault("roots.name-quotes-deafen", ids.BaseResponsePresent,
		"After a root whose name has quotes nothing is answered any more.", hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && strings.Contains(TextAt(roots[0], "name"), `"`)
		}))).Seen(ByValue).Also(ids.RootsServerUnavailable),
	fault("roots.path-null-deafens", ids.BaseResponsePresent,
		"After a root whose path has an encoded null character nothing is answered any more.",
		hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && strings.Contains(TextAt(roots[0], "uri"), "%00")
		}))).Seen(ByValue).Also(ids.RootsServerUnavailable),
	fault("http.roots-of-the-last-refetched", ids.RootsListChangedRefetch,
		"Only the client that was asked for its roots last is asked for them again.", func(o *server.Options) {
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
		}).Seen(BySession),
	fault("http.roots-of-all", ids.HTTPServerSessionIsolation,
		"A tool that tells the roots of a client tells those of the others as well.", func(o *server.Options) {
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
		}).Seen(BySession),
	fault("roots.params-array", ids.BaseJSONRPCParamsObject, "The params of roots/list are an empty array.",
		Messages("roots/list", func(out *server.Outgoing) { out.Message["params"] = list{} })),
	fault("roots.meta", ids.MetaObject, "The _meta of roots/list is an array.",
		Params("roots/list", Having("_meta", list{}))),
	fault("roots.of-the-first-client", ids.HTTPServerSessionIsolation,
		"The roots of the first client are kept, and hold for all others, which are not asked for theirs.",
		func(o *server.Options) {
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
		}).Seen(BySession).Only(OverHTTP),
	fault("roots.not-refetched", ids.RootsListChangedRefetch, "The roots are fetched once, and never again.", All(
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
	)),
	fault("roots.name-required", ids.RootsRootNameOptional, "After a root without a name nothing is answered any more.",
		hangingOn(rooted(func(roots list) bool {
			return len(roots) == 1 && wire.At(roots[0], "name") == nil && wire.At(roots[0], "uri") == "file:///tmp" &&
				wire.At(roots[0], "_meta") == nil
		}))).Also(ids.BaseResponsePresent, ids.RootsListChangedRefetch),
	fault("roots.only-one", ids.RootsListMultiple, "After several roots nothing is answered any more.",
		hangingOn(rooted(func(roots list) bool { return len(roots) > 1 }))).
		Also(ids.BaseResponsePresent, ids.RootsListChangedGraceful, ids.RootsListChangedRefetch),
	fault("roots.file-unexpected", ids.RootsRootFileOrDirectory,
		"After a root that is a file nothing is answered any more.", hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && wire.At(roots[0], "uri") == "file:///etc/hosts"
		}))).Also(ids.BaseResponsePresent),
	fault("roots.missing-folder", ids.RootsServerUnavailable,
		"After a root that does not exist nothing is answered any more.", hangingOn(rooted(func(roots list) bool {
			return len(roots) > 0 && wire.At(roots[0], "name") == "Gone"
		}))).Also(ids.BaseResponsePresent),
	fault("roots.error-unexpected", ids.RootsServerUnavailable,
		"After an error for an answer to roots/list nothing is answered any more.",
		unresponsiveAfter(func(_ *server.Session, m *wire.Message) bool {
			return m.Error != nil && m.Error.Message == "The roots are not available."
		})).Also(ids.BaseResponsePresent),
	fault("roots.none-left", ids.RootsListChangedGraceful, "After a list of no roots nothing is answered any more.",
		hangingOn(rooted(func(roots list) bool { return len(roots) == 0 }))).Also(ids.BaseResponsePresent),
	fault("elicitation.password", ids.ElicitationRequestNoSensitive, "An elicitation asks for a password.",
		asking("password", object{"type": "string", "title": "Password", "description": "Enter your password."})),
	fault("elicitation.password-in-words", ids.ElicitationRequestNoSensitive,
		"The message of an elicitation asks for the user's password.",
		Params("elicitation/create", Having("message", "To go on, please enter your password."))),
	fault("elicitation.token-named", ids.ElicitationRequestNoSensitive, "A requested property is called githubToken.",
		asking("githubToken", object{"type": "string"})).Warns(),
	fault("sampling.tools-of-later-revision", ids.LifecycleOperationVersion,
		"A sampling request offers tools, which only a later revision knows.",
		Params("sampling/createMessage", Having("tools", list{}))).Warns(),
	fault("elicitation.nested-object", ids.ElicitationSchemaFlat, "A requested property is an object.",
		asking("address", object{"type": "object",
			"properties": object{"city": object{"type": "string"}}})).Also(ids.ElicitationSchemaPrimitiveTypes),
	fault("elicitation.array", ids.ElicitationSchemaFlat, "A requested property is an array.",
		asking("tags", object{"type": "array", "items": object{"type": "string"}})).
		Also(ids.ElicitationSchemaPrimitiveTypes),
	fault("elicitation.type-null", ids.ElicitationSchemaPrimitiveTypes, "A requested property has a list of types.",
		asking("age", object{"type": list{"integer", "null"}})),
	fault("elicitation.no-type", ids.ElicitationSchemaPrimitiveTypes, "A requested property has no type.",
		asking("age", object{"description": "How old you are"})),
	fault("elicitation.pattern", ids.ElicitationSchemaNoAdvanced, "A requested property has a pattern.",
		property("username", Having("pattern", "^[a-z]+$"))),
	fault("elicitation.one-of", ids.ElicitationSchemaNoAdvanced, "The requested schema has anyOf.",
		requested(Having("anyOf", list{object{"required": list{"username"}}}))),
	fault("elicitation.format-uuid", ids.ElicitationSchemaFormats, "A requested property has the format uuid.",
		asking("key", object{"type": "string", "format": "uuid"})),
	fault("elicitation.enum-names-short", ids.ElicitationSchemaEnumNames, "An enum has fewer names than values.",
		asking("colour", object{"type": "string", "enum": list{"red", "green"}, "enumNames": list{"Red"}})),
	fault("elicitation.enum-of-numbers", ids.ElicitationSchemaNoAdvanced, "The last value of an enum is a number.",
		asking("size", object{"type": "string", "enum": list{"small", 2}})).Seen(ByValue).Warns(),
	fault("elicitation.no-message", ids.SchemaElicitRequest, "An elicitation has no message.",
		Params("elicitation/create", Lacking("message"))),
	fault("elicitation.schema-misnamed", ids.SchemaElicitRequest,
		"An elicitation has schema in place of requestedSchema.", Params("elicitation/create", func(params object) {
			params["schema"] = params["requestedSchema"]
			delete(params, "requestedSchema")
		})),
	fault("elicitation.accept-fails", ids.ElicitationServerHandleAccept,
		"A call whose elicitation is accepted ends in an internal error.",
		erringOn("test_elicitation", server.InternalError, "Internal error", action("accept"))),
	fault("elicitation.optional-missed", ids.ElicitationServerHandleAccept,
		"A call whose elicitation is accepted without what the form does not require ends in an internal error.",
		erringOn("test_elicitation", server.InternalError, "Internal error", func(answer object) bool {
			return answer["action"] == "accept" && TextAt(answer, "content", "username") != "" &&
				wire.At(answer, "content", "news") == nil
		})).Seen(ByValue),
	fault("elicitation.zero-missed", ids.ElicitationServerHandleAccept,
		"A call whose elicitation is accepted with a zero ends in an internal error.",
		erringOn("test_elicitation", server.InternalError, "Internal error", func(answer object) bool {
			return wire.At(answer, "content", "rating") == json.Number("0")
		})).Seen(ByValue),
	fault("elicitation.decline-hangs", ids.ElicitationServerHandleDecline,
		"A call hangs when the elicitation is declined.", hangingOn(action("decline"))).Also(ids.BaseResponsePresent),
	fault("elicitation.decline-internal-error", ids.ElicitationServerHandleDecline,
		"A call whose elicitation is declined ends in an internal error.",
		erringOn("test_elicitation", server.InternalError, "Internal error", action("decline"))),
	fault("elicitation.cancel-hangs", ids.ElicitationServerHandleCancel,
		"A call hangs when the elicitation is cancelled.", hangingOn(action("cancel"))).
		Also(ids.BaseResponsePresent, ids.CancellationLateResponse),
	fault("elicitation.content-required", ids.ElicitationServerContentAbsent,
		"A declined elicitation without content is an invalid answer for the server.",
		erringOn("test_elicitation", server.InvalidParams, "Invalid params: content is missing",
			func(result object) bool { return result["action"] == "decline" && result["content"] == nil })),
	fault("elicitation.content-missed", ids.ElicitationServerContentAbsent,
		"A call whose elicitation is cancelled without content fails.", FailingOn("test_elicitation",
			func(result object) bool { return result["action"] == "cancel" && result["content"] == nil })),
	fault("elicitation.enum-unchecked", ids.ElicitationSecurityValidateContent,
		"Elicited values are taken although they are not among those that were listed.",
		All(Overhearing(), WrappingTool("test_elicitation",
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
			}))),
	fault("elicitation.content-unchecked", ids.ElicitationSecurityValidateContent,
		"Elicited content is used without looking at it.", All(Overhearing(), WrappingTool("test_elicitation",
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
			}))),
}
