package mockclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var featureFaults = []Fault{
	fault("sampling.undeclared", ids.SamplingCapabilityDeclared,
		"sampling/createMessage is served although sampling is not declared.",
		Changing(func(o *client.Options) { delete(o.Capabilities, "sampling") })).In(Sampling).
		Also(ids.LifecycleCapabilityClientRefusesSampling),
	fault("sampling.undeclared-code", ids.LifecycleCapabilityClientRefusesSampling,
		"sampling/createMessage, which is not declared, is refused with -32603.",
		All(featureless("sampling", "sampling/createMessage"), editingError(Having("code", -32603)))).
		In(Sampling).Warns().Also(ids.BaseErrorInvalidParams), // of elicitation
	fault("sampling.unknown", ids.SamplingCapabilityHonoured,
		"sampling is declared, but sampling/createMessage is unknown.",
		Changing(func(o *client.Options) { delete(o.Answers, "sampling/createMessage") })).In(Sampling).
		Also(ids.BaseErrorInvalidParams),
	fault("sampling.role-user", ids.SamplingResultRoleAssistant, "The role of a generated message is user.",
		Amending("sampling/createMessage", Having("role", "user"))).In(Sampling),
	fault("sampling.no-model", ids.SamplingResultModelNamed, "A generated message names no model.",
		Amending("sampling/createMessage", Having("model", ""))).In(Sampling),
	fault("sampling.resource", ids.SamplingMessageContentKinds, "A generated message is an embedded resource.",
		Amending("sampling/createMessage",
			Having("content", object{"type": "resource", "resource": object{"uri": "file:///a", "text": "a"}}))).
		In(Sampling).Also(ids.ContentBlockKnownType),
	fault("sampling.stop-reason-number", ids.SchemaCreateMessageResult, "stopReason is a number.",
		Amending("sampling/createMessage", Having("stopReason", 1))).In(Sampling),
	fault("sampling.content-unknown", ids.ContentBlockKnownType, "A generated message has content of an unknown type.",
		Amending("sampling/createMessage", Having("content", object{"type": "video", "data": "AAAA"}))).In(Sampling).
		Also(ids.SamplingMessageContentKinds),
	fault("sampling.limit-ignored", ids.SamplingMaxTokensLimit,
		"A generated message is many times longer than maxTokens.", Amending("sampling/createMessage",
			Having("content", object{"type": "text", "text": strings.Repeat("one word after another ", 400)}))).
		In(Sampling),
	fault("sampling.broken-served", ids.SamplingErrorReturned,
		"A sampling request without messages is answered with a message.",
		generating(func(params any) bool { _, ok := wire.At(params, "messages").(list); return !ok })).In(Sampling).
		Also(ids.BaseErrorInvalidParams),
	fault("sampling.broken-death", ids.SamplingErrorReturned,
		"A sampling request whose messages are not an array ends the client.", DyingOf("none at all")).In(Sampling).
		Also(ids.BaseResponsePresent),
	fault("sampling.content-unchecked", ids.SamplingSecurityValidateContent,
		"An image that is not Base64 is answered with a message.", generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "image"
		})).In(Sampling),
	fault("sampling.text-unchecked", ids.SamplingSecurityValidateContent,
		"A text block without a text is answered with a message.", generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "text"
		})).In(Sampling),
	fault("sampling.few-tokens-ignored", ids.SamplingMaxTokensLimit,
		"A generated message has forty words although maxTokens is 2.",
		Editing(Replies("sampling-short"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"type": "text", "text": strings.Repeat("one word after another ", 10)}
			}
		})).In(Sampling),
	// github.com/helidon-io/helidon-mcp/issues/181
	fault("sampling.ids-mixed", ids.BaseResponseOnce,
		"Both of two sampling requests at once are answered with the id of the second.",
		Replacing(Replies("sampling-both-first"), "sampling-both-first", "sampling-both-second")).
		Seen(atOnce).In(Sampling).Also(ids.BaseResponsePresent),
	fault("elicitation.one-at-a-time", ids.BaseResponsePresent,
		"A form that comes while another one is open is never answered.", Dropping(Replies("elicitation-both-second"))).
		Seen(atOnce).In("features/elicitation"),
	fault("sampling.image-death", ids.BaseResponsePresent, "A sampling request with an image ends the client.",
		DyingOf(`"sampling-image"`)).Seen(byValue).In(Sampling),
	fault("sampling.media-last-death", ids.BaseResponsePresent,
		"A sampling request whose last message is not text ends the client.", Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage {
				return false
			}
			messages, _ := wire.At(e.Msg.Params, "messages").(list)
			return len(messages) > 1 && wire.At(messages[len(messages)-1], "content", "data") != nil
		})).Seen(byValue).In(Sampling),
	fault("sampling.all-cancelled", ids.BaseResponsePresent,
		"The cancellation of one sampling request silences another one that is open.",
		Dropping(Replies("sampling-beside-second"))).Seen(atOnce).In(Sampling),
	fault("sampling.options-refused", ids.SamplingRequestOptionalMembers,
		"A sampling request with all members is refused.", Rejecting(Replies("sampling-full"))).In(Sampling),
	fault("sampling.context-refused", ids.SamplingIncludeContextOptional,
		"A sampling request that asks for context is refused.", Rejecting(Replies("sampling-thisServer"))).In(Sampling),
	fault("sampling.metadata-refused", ids.SamplingMetadataFreeForm, "A sampling request with metadata is refused.",
		Rejecting(Replies("sampling-metadata", "sampling-foreign-metadata"))).In(Sampling),
	fault("sampling.rejection-code", ids.SamplingErrorUserRejected,
		"A sampling request that the user rejects gets the code -32603.", editingError(Having("code", -32603))).
		In("acts/sampling").Also(ids.BaseErrorMethodNotFound), // of a scenario that is run together with this one
	fault("elicitation.undeclared", ids.ElicitationCapabilityDeclared,
		"elicitation/create is served although elicitation is not declared.",
		Changing(func(o *client.Options) { delete(o.Capabilities, "elicitation") })).In(Elicitation).
		Also(ids.LifecycleCapabilityClientRefusesElicitation),
	fault("elicitation.undeclared-code", ids.LifecycleCapabilityClientRefusesElicitation,
		"elicitation/create, which is not declared, is refused with -32603.",
		All(featureless("elicitation", "elicitation/create"), editingError(Having("code", -32603)))).
		In(Elicitation).Warns().Also(ids.BaseErrorInvalidParams), // of sampling
	fault("elicitation.unknown", ids.ElicitationCapabilityHonoured,
		"elicitation is declared, but elicitation/create is unknown.",
		Changing(func(o *client.Options) { delete(o.Answers, "elicitation/create") })).In(Elicitation),
	fault("elicitation.waits-for-own-call", ids.ElicitationRequestNested,
		"Forms are answered only when the client's own request has been.", HeldBack(Replies("elicitation-string"))).
		In(Elicitation).Warns(),
	fault("elicitation.action-ok", ids.ElicitationActionValues, "The action is ok.",
		Amending("elicitation/create", Having("action", "ok"))).In(Elicitation),
	fault("elicitation.content-text", ids.SchemaElicitResult, "The content of a form is a text.",
		Amending("elicitation/create", Having("content", "some text"))).In(Elicitation),
	fault("elicitation.no-content", ids.ElicitationContentWithAccept, "A form is accepted without content.",
		Amending("elicitation/create", Lacking("content"))).In(Elicitation),
	fault("elicitation.content-nested", ids.ElicitationContentPrimitiveValues, "A value of the content is an object.",
		Amending("elicitation/create", Having("content", object{"string": object{}}))).In(Elicitation).
		Also(ids.ElicitationContentMatchesSchema, ids.ElicitationSecurityValidateContent),
	fault("elicitation.content-unfitting", ids.ElicitationContentMatchesSchema,
		"The content of a form lacks a required value.", Amending("elicitation/create", Having("content", object{}))).
		In(Elicitation).Also(ids.ElicitationSecurityValidateContent),
	fault("elicitation.falsy-dropped", ids.ElicitationContentMatchesSchema,
		"Values that are 0 or false are left out of the content of a form.",
		Amending("elicitation/create", func(r object) {
			content, _ := r["content"].(object)
			for name, v := range content {
				if v == false || v == json.Number("0") {
					delete(content, name)
				}
			}
		})).In(Elicitation).Also(ids.ElicitationSecurityValidateContent),
	fault("elicitation.content-unchecked", ids.ElicitationSecurityValidateContent,
		"A number beyond the bounds of the form is sent on.", Amending("elicitation/create", func(r object) {
			if content, ok := r["content"].(object); ok && content["number"] != nil {
				content["number"] = 7
			}
		})).In(Elicitation).Also(ids.ElicitationContentMatchesSchema, ids.ElicitationSchemaNumberBounds),
	fault("elicitation.enum-refused", ids.ElicitationSchemaClientSupports, "A form with an enum is refused.",
		Refusing(Replies("elicitation-enum"))).In(Elicitation),
	fault("elicitation.enum-death", ids.ElicitationSchemaClientSupports, "A form with an enum ends the client.",
		DyingOf("Please fill in: enum")).In(Elicitation).Also(ids.BaseResponsePresent),
	fault("elicitation.boolean-silence", ids.ElicitationSchemaClientSupports,
		"After a form with a boolean the client answers nothing any more, not even pings.",
		Withholding(func(conn transport.Conn, m *wire.Message) bool {
			return m.IsResponse() && heard(conn, "Please fill in: boolean")
		})).In(Elicitation).Also(ids.BaseResponsePresent),
	fault("elicitation.invalid-params-code", ids.BaseErrorInvalidParams,
		"A form whose schema is not an object is refused with -32603.", editingError(Having("code", -32603))).
		In(Elicitation),
	fault("elicitation.malformed-unanswered", ids.BaseResponsePresent,
		"A form whose schema is not an object gets no answer.", Dropping(Replies("elicitation-broken"))).
		Seen(byValue).In(Elicitation),
	fault("elicitation.malformed-last", ids.BaseResponsePresent,
		"After a form whose schema is not an object, no form is answered any more.",
		Withholding(func(conn transport.Conn, m *wire.Message) bool {
			x := conn.Log().Conversation().Newest(wire.Server, m.ID)
			broken := func(m *wire.Message) bool {
				return m.Kind == wire.Request && m.ID.Key() == wire.StringID("elicitation-broken").Key()
			}
			return m.IsResponse() && x != nil && x.Method() == "elicitation/create" && Told(conn, broken)
		})).Seen(inSequence).In(Elicitation),
	fault("sampling.malformed-unanswered", ids.BaseResponsePresent,
		"A sampling request whose messages are not an array gets no answer.", Dropping(Replies("sampling-broken"))).
		Seen(byValue).In(Sampling).Also(ids.SamplingErrorReturned),
	fault("elicitation.invalid-params-as-unknown", ids.BaseErrorInvalidParams,
		"A form whose schema is not an object is refused with -32601.", editingError(Having("code", -32601))).
		Seen(byValue).In(Elicitation),
	fault("sampling.invalid-params-as-unknown", ids.BaseErrorInvalidParams,
		"A sampling request whose messages are not an array is refused with -32601.",
		editingError(Having("code", -32601))).Seen(byValue).In(Sampling),
	// The form with all kinds of property has both.
	fault("elicitation.lengths-refused", ids.ElicitationSchemaClientSupports,
		"A form that limits the length of a text is refused.", Handling("elicitation/create",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				if strings.Contains(fmt.Sprint(wire.At(params, "requestedSchema")), "minLength") {
					return nil, &wire.Error{Code: -32602, Message: "Invalid params: unsupported schema"}
				}
				return serve(ctx, params)
			})).In(Elicitation).Seen(byValue).Also(ids.ElicitationSchemaNumberBounds),
	fault("elicitation.negative-refused", ids.ElicitationSchemaClientSupports,
		"A form with an integer that has to be negative is refused.", Refusing(Replies("elicitation-negative"))).
		Seen(byValue).In(Elicitation),
	fault("elicitation.fractions-refused", ids.ElicitationSchemaNumberBounds,
		"A form with a number whose bounds have fractions is refused.", Refusing(Replies("elicitation-number"))).
		In(Elicitation).Also(ids.ElicitationSchemaClientSupports),
	sampledContent("image-not-base64", ids.ContentImageBase64, "The data of a generated image are not Base64.",
		object{"type": "image", "data": "not Base64!", "mimeType": "image/png"}),
	sampledContent("image-without-type", ids.ContentImageMimeType, "A generated image has no mimeType.",
		object{"type": "image", "data": "AAAA"}, ids.SchemaCreateMessageResult),
	sampledContent("audio-not-base64", ids.ContentAudioBase64, "The data of generated audio are not Base64.",
		object{"type": "audio", "data": "not Base64!", "mimeType": "audio/wav"}),
	sampledContent("audio-without-type", ids.ContentAudioMimeType, "Generated audio has no mimeType.",
		object{"type": "audio", "data": "AAAA"}, ids.SchemaCreateMessageResult),
	sampledContent("audience-model", ids.ContentAnnotationsAudienceRoles,
		"The audience of a generated text is the model.",
		object{"type": "text", "text": "Hello.", "annotations": object{"audience": list{"model"}}},
		ids.SchemaCreateMessageResult),
	sampledContent("priority-high", ids.ContentAnnotationsPriorityRange, "The priority of a generated text is 7.",
		object{"type": "text", "text": "Hello.", "annotations": object{"priority": 7}}, ids.SchemaCreateMessageResult),
	sampledContent("modified-yesterday", ids.ContentAnnotationsLastModifiedFormat,
		"A generated text was last modified yesterday.",
		object{"type": "text", "text": "Hello.", "annotations": object{"lastModified": "yesterday"}}),
	wrongAction("elicitation.accept-declines", "accept", "decline",
		"A form that the user sends off comes back as declined."),
	wrongAction("elicitation.decline-cancels", "decline", "cancel",
		"A form that the user refuses comes back as cancelled."),
	wrongAction("elicitation.cancel-declines", "cancel", "decline",
		"A form that the user closes comes back as declined."),
	fault("elicitation.decline-error", ids.ElicitationActionDecline,
		"A form that the user refuses comes back as an error.", Refusing(Replies("elicitation-decline"))).
		In("acts/elicitation"),
	fault("elicitation.content-declined", ids.ElicitationContentOnlyWithAccept,
		"A form that the user refuses comes back with content.",
		Editing(Replies("elicitation-decline"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"string": "some text", "boolean": true}
			}
		})).In("acts/elicitation"),
	fault("roots.undeclared", ids.RootsCapabilityDeclared, "roots/list is served although roots is not declared.",
		Changing(func(o *client.Options) { delete(o.Capabilities, "roots") })).In(RootsSeen),
	fault("roots.refused-code", ids.RootsErrorUnsupported, "roots/list, which is not declared, is refused with -32603.",
		All(featureless("roots", "roots/list"), Editing(Replies("undeclared-roots"),
			Having("error", object{"code": -32603, "message": "Internal error"})))).In(RootsSeen),
	fault("roots.no-list", ids.RootsListAnswered, "The result of roots/list has no roots.",
		Serving("roots/list", func(any) any { return object{} })).In(RootsSeen).Also(ids.SchemaListRootsResult),
	fault("roots.params-required", ids.BaseParamsOmitted, "A request for the roots without params is refused.",
		Rejecting(Replies("roots-plain"))).Seen(byValue).In(RootsSeen),
	fault("roots.params-empty-refused", ids.BaseParamsOmitted,
		"A request for the roots whose params are an empty object is refused.", Rejecting(Replies("roots-empty"))).
		Seen(byValue).In(RootsSeen),
	fault("roots.meta-refused", ids.MetaAttachRequest, "A request for the roots with _meta is refused.",
		Rejecting(Replies("roots-meta"))).Seen(byValue).In(RootsSeen),
	fault("roots.params-strict", ids.BaseParamsOpen,
		"A request for the roots with an additional member in its params is refused.",
		Rejecting(Replies("roots-open"))).Seen(byValue).In(RootsSeen),
	fault("roots.token-refused", ids.ProgressRequest, "A request for the roots with a progress token is refused.",
		Rejecting(Replies("roots-token"))).Seen(byValue).In(RootsSeen),
	fault("roots.name-number", ids.SchemaListRootsResult, "The name of a root is a number.",
		Serving("roots/list", func(any) any {
			return object{"roots": list{object{"uri": "file:///tmp", "name": 7}}}
		})).In(RootsSeen),
	fault("roots.http", ids.RootsRootFileURI, "A root is an http URI.",
		Serving("roots/list", rooted("http://example.com/"))).In(RootsSeen),
	fault("roots.twice", ids.RootsRootURIUnique, "A root is listed twice.",
		Serving("roots/list", rooted("file:///tmp", "file:///tmp"))).In(RootsSeen),
	fault("roots.climbing", ids.RootsSecurityValidateURIs, "The URI of a root climbs out of a folder.",
		Serving("roots/list", rooted("file:///tmp/../etc"))).In(RootsSeen),
	fault("roots.change-unannounced", ids.RootsListChangedNotify, "The roots change without a notification.",
		Dropping(Calls("notifications/roots/list_changed"))).In("acts/roots"),
	fault("roots.removal-unannounced", ids.RootsListChangedEveryChange,
		"The client does not announce that a root was removed, although it announces additions.", firstOnly(2)).
		In("acts/roots"),
	fault("roots.stale-list", ids.RootsListCurrent, "The list of roots stays the same although changes are announced.",
		func(c *client.Standalone) {
			before := c.Change
			c.Change = func(o *client.Options) {
				if before != nil {
					before(o)
				}
				o.Answers["roots/list"] = func(context.Context, any) (any, *wire.Error) {
					return rooted("file:///tmp")(nil), nil
				}
			}
		}).In("acts/roots"),
	fault("roots.missing-folder", ids.RootsClientValidateAccessible,
		"The client lists a root whose folder does not exist any more.", remembering()).In("acts/root-folder"),
	fault("roots.fixed-list", ids.RootsClientValidateAccessible,
		"The client declares roots without listChanged, and lists a root whose folder does not exist any more.",
		All(remembering(), Dropping(Calls("notifications/roots/list_changed")),
			Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }))).In("acts/root-folder"),
	fault("roots.unwatched", ids.RootsClientMonitorChanges, "The client never shows that the folder of a root is gone.",
		All(remembering(), Dropping(Calls("notifications/roots/list_changed")))).In("acts/root-folder").
		Also(ids.RootsClientValidateAccessible),
	fault("progress.token-as-text", ids.ProgressTokenEcho, "The progress token 0 comes back as a string.",
		Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"0","progress":1}}`)).
		In(Sampling),
	fault("progress.flood", ids.ProgressRateLimit,
		"Before a response, progress is reported more than a thousand times.",
		Sending(Replies("sampling-none"), func(_ *wire.Message, out outgoing) []outgoing {
			var all []outgoing
			for i := range Flood {
				all = append(all, outgoing{Raw: fmt.Appendf(nil,
					`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":-1,"progress":%d}}`,
					1000+i)})
			}
			return append(all, out)
		})).In(Sampling).Only(OverStdio),
	fault("progress.message-empty", ids.ProgressMessageReadable, "The message of progress is a space.",
		Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress",`+
				`"params":{"progressToken":-1,"progress":1,"message":" "}}`)).In(Sampling),
	fault("sampling.waits-for-own-call", ids.SamplingRequestNested,
		"Sampling requests are answered only when the client's own request has been.",
		HeldBack(Replies("sampling-none"))).In(Sampling).Warns(),
	fault("progress.after-cancellation", ids.CancellationStopProcessing,
		"Progress of a sampling request is reported well after its cancellation.",
		All(Dropping(Replies("sampling-withdrawn")),
			Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
				<-time.After(crossing)
				return []outgoing{{Raw: []byte(progressOf(`"sampling-withdrawn"`, "1"))}, out}
			}))).In(Sampling).Only(OverStdio),
	fault("progress.after-the-end", ids.ProgressInProgress,
		"Progress of a request that was answered comes behind the answer to a later one.",
		Behind(Replies("after-sampling"), progressOf("0", "1"))).In(Sampling).Only(OverStdio).Also(ids.ProgressStop),
	fault("progress.after-cancellation-posted", ids.CancellationStopProcessing,
		"Progress of a sampling request is posted well after its cancellation.",
		All(Dropping(Replies("sampling-withdrawn")),
			muchLater(Replies("after-sampling"), progressOf(`"sampling-withdrawn"`, "1")))).Seen(inSequence).
		In(Sampling).Only(OverHTTP),
	fault("progress.after-the-end-posted", ids.ProgressInProgress,
		"Progress of a request that was answered is posted well after that, before the answer to a later one.",
		muchLater(Replies("after-sampling"), progressOf("0", "1"))).Seen(inSequence).In(Sampling).
		Only(OverHTTP).Also(ids.ProgressStop),
	fault("progress.not-growing-here", ids.ProgressValueIncreases, "Two notifications of progress have the same value.",
		Sending(Replies("sampling-none"), func(_ *wire.Message, out outgoing) []outgoing {
			return []outgoing{{Raw: []byte(progressOf("0", "1"))}, {Raw: []byte(progressOf("0", "1"))}, out}
		})).In(Sampling),
	fault("progress.token-invented", ids.ProgressTokenActiveRequest,
		"Progress is reported with a token that no request has carried.",
		Before(Replies("sampling-none"), progressOf(`"invented"`, "1"))).In(Sampling),
	fault("progress.behind-the-answer", ids.ProgressStop, "Progress is reported after the answer.",
		Behind(Replies("sampling-none"), progressOf("0", "1"))).In(Sampling).Only(OverStdio).
		Also(ids.ProgressInProgress),
	fault("progress.value-text", ids.SchemaProgressNotification, "The progress value is a string.",
		Before(Replies("sampling-none"), progressOf("0", `"half"`))).In(Sampling),
	fault("cancellation.answered-late", ids.CancellationNoResponse,
		"A sampling request is answered well after its cancellation.",
		All(Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
			<-time.After(crossing)
			late := `{"jsonrpc":"2.0","id":"sampling-withdrawn","result":{"role":"assistant","model":"m",` +
				`"content":{"type":"text","text":"Hello."}}}`
			return []outgoing{{Raw: []byte(late)}, out}
		}), Dropping(Replies("sampling-withdrawn")))).In(Sampling).Only(OverStdio).Also(ids.CancellationStopProcessing),
	fault("completion.total-death", ids.CompletionResultTotalExceedsValues,
		"A total that exceeds the number of values ends the client.", DyingOf(`"hasMore":true`)).
		In("features/completions").Also(ids.CompletionClientPartialResults),
	fault("completion.total-required", ids.CompletionClientPartialResults,
		"A completion without a total ends the client.", Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.IsResponse() && wire.At(e.Msg.Result, "completion") != nil &&
				wire.At(e.Msg.Result, "completion", "total") == nil
		})).In("features/completions").Also(ids.CompletionResultTotalExceedsValues),
	fault("completion.context-dropped", ids.CompletionContextClientSends,
		"A second argument is completed without the first, which is settled.",
		Params("completion/complete", Lacking("context"))).In("features/completions"),
	fault("completion.context-renamed", ids.CompletionContextResolvedValues,
		"The context of a completion names an argument that the prompt does not have.",
		Params("completion/complete", func(p object) {
			if p["context"] != nil {
				p["context"] = object{"arguments": object{"no-such-argument": "x"}}
			}
		})).In("features/completions").Also(ids.CompletionContextClientSends),
	fault("progress.notifications-death", ids.ProgressNotify, "A notification of progress ends the client.",
		DyingOf("still at it")).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressOmitTotal, ids.ProgressTotalFloat, ids.ProgressValueFloat),
	fault("progress.fraction-death", ids.ProgressValueFloat, "Progress with a fraction ends the client.",
		DyingOf("notifications/progress", `"progress":0.25`)).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat),
	fault("progress.total-fraction-death", ids.ProgressTotalFloat, "A total with a fraction ends the client.",
		DyingOf("notifications/progress", `"total":25.5`)).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressValueFloat),
	fault("progress.many-death", ids.ProgressFrequency, "Much progress ends the client.",
		DyingOf("notifications/progress", `"progress":24.5`)).In("features/progress").
		Also(ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat, ids.ProgressValueFloat),
	fault("progress.total-required", ids.ProgressOmitTotal, "Progress without a total ends the client.",
		Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && ContainsText(e, "notifications/progress") &&
				!ContainsText(e, `"total"`)
		})).In("features/progress").
		Also(ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressTotalFloat, ids.ProgressValueFloat),
}

// featureless neither declares a feature nor knows its method.
func featureless(capability, method string) apply {
	return Changing(func(o *client.Options) {
		delete(o.Capabilities, capability)
		delete(o.Answers, method)
	})
}

// generating answers sampling requests with a message if their params are so, and
// others as before.
func generating(which func(params any) bool) apply {
	return Handling("sampling/createMessage",
		func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
			if !which(params) {
				return serve(ctx, params)
			}
			return object{"role": "assistant", "model": "m", "content": object{"type": "text", "text": "Hello."}}, nil
		})
}

// sampledContent is a fault of the content of generated messages.
func sampledContent(id, requirement, summary string, content object, collateral ...string) Fault {
	return fault("content."+id, requirement, summary, Amending("sampling/createMessage", Having("content", content))).
		In(Sampling).Also(collateral...)
}

// muchLater sends a text before a message, both so late that no other message can have overtaken them.
func muchLater(which match, text string) apply {
	return Sending(which, func(_ *wire.Message, out outgoing) []outgoing {
		<-time.After(4 * crossing)
		return []outgoing{{Raw: []byte(text)}, out}
	})
}

// progressOf returns a notification of progress; token and value are JSON.
func progressOf(token, value string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` +
		value + `}}`
}

// crossing is longer than a message may be under way.
const crossing = 300 * time.Millisecond

// rooted returns a list of roots.
func rooted(uris ...string) func(any) any {
	roots := list{}
	for _, uri := range uris {
		roots = append(roots, object{"uri": uri})
	}
	return func(any) any { return object{"roots": roots} }
}

// wrongAction makes one action of the user arrive as another.
func wrongAction(id, action, as, summary string) Fault {
	return fault(id, "elicitation.action."+action, summary,
		Editing(Replies("elicitation-"+action), Having("result", object{"action": as}))).In("acts/elicitation")
}

// firstOnly drops all announcements of changed roots after the first n.
func firstOnly(n int) apply {
	return func(c *client.Standalone) {
		left := n
		Sending(Calls("notifications/roots/list_changed"), func(_ *wire.Message, out outgoing) []outgoing {
			if left--; left < 0 {
				return nil
			}
			return []outgoing{out}
		})(c)
	}
}

// remembering always lists the roots of the first roots/list.
func remembering() apply {
	return func(c *client.Standalone) {
		var first any
		Amending("roots/list", func(r object) {
			if first == nil {
				first = r["roots"]
			}
			r["roots"] = first
		})(c)
	}
}
