package mockclient

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var featureFaults = []Fault{
	{ID: "sampling.undeclared", Requirement: ids.SamplingCapabilityDeclared, Scenario: Sampling,
		Summary:    "sampling/createMessage is served although sampling is not declared.",
		Collateral: []string{ids.LifecycleCapabilityClientRefusesSampling},
		Apply:      Changing(func(o *client.Options) { delete(o.Capabilities, "sampling") })},
	{
		ID: "sampling.undeclared-code", Requirement: ids.LifecycleCapabilityClientRefusesSampling, Scenario: Sampling,
		WarnOnly:   true,
		Summary:    "sampling/createMessage, which is not declared, is refused with -32603.",
		Collateral: []string{ids.BaseErrorInvalidParams}, // of elicitation
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "sampling")
			delete(o.Answers, "sampling/createMessage")
		}), editingError(Having("code", -32603))),
	},
	{ID: "sampling.unknown", Requirement: ids.SamplingCapabilityHonoured, Scenario: Sampling,
		Summary:    "sampling is declared, but sampling/createMessage is unknown.",
		Collateral: []string{ids.BaseErrorInvalidParams},
		Apply:      Changing(func(o *client.Options) { delete(o.Answers, "sampling/createMessage") })},
	{ID: "sampling.role-user", Requirement: ids.SamplingResultRoleAssistant, Scenario: Sampling,
		Summary: "The role of a generated message is user.",
		Apply:   Amending("sampling/createMessage", Having("role", "user"))},
	{ID: "sampling.no-model", Requirement: ids.SamplingResultModelNamed, Scenario: Sampling,
		Summary: "A generated message names no model.",
		Apply:   Amending("sampling/createMessage", Having("model", ""))},
	{ID: "sampling.resource", Requirement: ids.SamplingMessageContentKinds, Scenario: Sampling,
		Summary:    "A generated message is an embedded resource.",
		Collateral: []string{ids.ContentBlockKnownType},
		Apply: Amending("sampling/createMessage",
			Having("content", object{"type": "resource", "resource": object{"uri": "file:///a", "text": "a"}})),
	},
	{ID: "sampling.stop-reason-number", Requirement: ids.SchemaCreateMessageResult, Scenario: Sampling,
		Summary: "stopReason is a number.", Apply: Amending("sampling/createMessage", Having("stopReason", 1))},
	{ID: "sampling.content-unknown", Requirement: ids.ContentBlockKnownType, Scenario: Sampling,
		Summary:    "A generated message has content of an unknown type.",
		Collateral: []string{ids.SamplingMessageContentKinds},
		Apply:      Amending("sampling/createMessage", Having("content", object{"type": "video", "data": "AAAA"}))},
	{ID: "sampling.limit-ignored", Requirement: ids.SamplingMaxTokensLimit, Scenario: Sampling,
		Summary: "A generated message is many times longer than maxTokens.",
		Apply: Amending("sampling/createMessage",
			Having("content", object{"type": "text", "text": strings.Repeat("one word after another ", 400)})),
	},
	{ID: "sampling.broken-served", Requirement: ids.SamplingErrorReturned, Scenario: Sampling,
		Summary:    "A sampling request without messages is answered with a message.",
		Collateral: []string{ids.BaseErrorInvalidParams},
		Apply:      generating(func(params any) bool { _, ok := wire.At(params, "messages").(list); return !ok })},
	{ID: "sampling.broken-death", Requirement: ids.SamplingErrorReturned, Scenario: Sampling,
		Summary:    "A sampling request whose messages are not an array ends the client.",
		Collateral: []string{ids.BaseResponsePresent}, Apply: DyingOf("none at all")},
	{ID: "sampling.content-unchecked", Requirement: ids.SamplingSecurityValidateContent, Scenario: Sampling,
		Summary: "An image that is not Base64 is answered with a message.",
		Apply: generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "image"
		})},
	{ID: "sampling.text-unchecked", Requirement: ids.SamplingSecurityValidateContent, Scenario: Sampling,
		Summary: "A text block without a text is answered with a message.",
		Apply: generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "text"
		})},
	{ID: "sampling.few-tokens-ignored", Requirement: ids.SamplingMaxTokensLimit, Scenario: Sampling,
		Summary: "A generated message has forty words although maxTokens is 2.",
		Apply: Editing(Replies("sampling-short"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"type": "text", "text": strings.Repeat("one word after another ", 10)}
			}
		})},
	// github.com/helidon-io/helidon-mcp/issues/181
	{ID: "sampling.ids-mixed", Requirement: ids.BaseResponseOnce, Form: mockserver.AtOnce, Scenario: Sampling,
		Summary:    "Both of two sampling requests at once are answered with the id of the second.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply:      Replacing(Replies("sampling-both-first"), "sampling-both-first", "sampling-both-second")},
	{ID: "elicitation.one-at-a-time", Requirement: ids.BaseResponsePresent, Form: mockserver.AtOnce,
		Scenario: "features/elicitation",
		Summary:  "A form that comes while another one is open is never answered.",
		Apply:    Dropping(Replies("elicitation-both-second"))},
	{ID: "sampling.image-death", Requirement: ids.BaseResponsePresent, Form: mockserver.ByValue, Scenario: Sampling,
		Summary: "A sampling request with an image ends the client.", Apply: DyingOf(`"sampling-image"`)},
	{ID: "sampling.media-last-death", Requirement: ids.BaseResponsePresent, Form: mockserver.ByValue,
		Scenario: Sampling, Summary: "A sampling request whose last message is not text ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage {
				return false
			}
			messages, _ := wire.At(e.Msg.Params, "messages").(list)
			return len(messages) > 1 && wire.At(messages[len(messages)-1], "content", "data") != nil
		})},
	{ID: "sampling.all-cancelled", Requirement: ids.BaseResponsePresent, Form: mockserver.AtOnce, Scenario: Sampling,
		Summary: "The cancellation of one sampling request silences another one that is open.",
		Apply:   Dropping(Replies("sampling-beside-second"))},
	{ID: "sampling.options-refused", Requirement: ids.SamplingRequestOptionalMembers, Scenario: Sampling,
		Summary: "A sampling request with all members is refused.", Apply: Rejecting(Replies("sampling-full"))},
	{ID: "sampling.context-refused", Requirement: ids.SamplingIncludeContextOptional, Scenario: Sampling,
		Summary: "A sampling request that asks for context is refused.",
		Apply:   Rejecting(Replies("sampling-thisServer"))},
	{ID: "sampling.metadata-refused", Requirement: ids.SamplingMetadataFreeForm, Scenario: Sampling,
		Summary: "A sampling request with metadata is refused.",
		Apply:   Rejecting(Replies("sampling-metadata", "sampling-foreign-metadata"))},
	{
		ID: "sampling.rejection-code", Requirement: ids.SamplingErrorUserRejected, Scenario: "acts/sampling",
		Summary:    "A sampling request that the user rejects gets the code -32603.",
		Collateral: []string{ids.BaseErrorMethodNotFound}, // of a scenario that is run together with this one
		Apply:      editingError(Having("code", -32603)),
	},
	{ID: "elicitation.undeclared", Requirement: ids.ElicitationCapabilityDeclared, Scenario: Elicitation,
		Summary:    "elicitation/create is served although elicitation is not declared.",
		Collateral: []string{ids.LifecycleCapabilityClientRefusesElicitation},
		Apply:      Changing(func(o *client.Options) { delete(o.Capabilities, "elicitation") })},
	{
		ID: "elicitation.undeclared-code", Requirement: ids.LifecycleCapabilityClientRefusesElicitation,
		Scenario: Elicitation, WarnOnly: true,
		Summary:    "elicitation/create, which is not declared, is refused with -32603.",
		Collateral: []string{ids.BaseErrorInvalidParams}, // of sampling
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "elicitation")
			delete(o.Answers, "elicitation/create")
		}), editingError(Having("code", -32603))),
	},
	{ID: "elicitation.unknown", Requirement: ids.ElicitationCapabilityHonoured, Scenario: Elicitation,
		Summary: "elicitation is declared, but elicitation/create is unknown.",
		Apply:   Changing(func(o *client.Options) { delete(o.Answers, "elicitation/create") })},
	{ID: "elicitation.waits-for-own-call", Requirement: ids.ElicitationRequestNested, Scenario: Elicitation,
		WarnOnly: true, Summary: "Forms are answered only when the client's own request has been.",
		Apply: HeldBack(Replies("elicitation-string"))},
	{ID: "elicitation.action-ok", Requirement: ids.ElicitationActionValues, Scenario: Elicitation,
		Summary: "The action is ok.", Apply: Amending("elicitation/create", Having("action", "ok"))},
	{ID: "elicitation.content-text", Requirement: ids.SchemaElicitResult, Scenario: Elicitation,
		Summary: "The content of a form is a text.",
		Apply:   Amending("elicitation/create", Having("content", "some text"))},
	{ID: "elicitation.no-content", Requirement: ids.ElicitationContentWithAccept, Scenario: Elicitation,
		Summary: "A form is accepted without content.",
		Apply:   Amending("elicitation/create", Lacking("content"))},
	{ID: "elicitation.content-nested", Requirement: ids.ElicitationContentPrimitiveValues, Scenario: Elicitation,
		Summary:    "A value of the content is an object.",
		Collateral: []string{ids.ElicitationContentMatchesSchema, ids.ElicitationSecurityValidateContent},
		Apply:      Amending("elicitation/create", Having("content", object{"string": object{}}))},
	{ID: "elicitation.content-unfitting", Requirement: ids.ElicitationContentMatchesSchema, Scenario: Elicitation,
		Summary:    "The content of a form lacks a required value.",
		Collateral: []string{ids.ElicitationSecurityValidateContent},
		Apply:      Amending("elicitation/create", Having("content", object{}))},
	{ID: "elicitation.falsy-dropped", Requirement: ids.ElicitationContentMatchesSchema, Scenario: Elicitation,
		Summary:    "Values that are 0 or false are left out of the content of a form.",
		Collateral: []string{ids.ElicitationSecurityValidateContent},
		Apply: Amending("elicitation/create", func(r object) {
			content, _ := r["content"].(object)
			for name, v := range content {
				if v == false || v == json.Number("0") {
					delete(content, name)
				}
			}
		})},
	{ID: "elicitation.content-unchecked", Requirement: ids.ElicitationSecurityValidateContent, Scenario: Elicitation,
		Summary:    "A number beyond the bounds of the form is sent on.",
		Collateral: []string{ids.ElicitationContentMatchesSchema, ids.ElicitationSchemaNumberBounds},
		Apply: Amending("elicitation/create", func(r object) {
			if content, ok := r["content"].(object); ok && content["number"] != nil {
				content["number"] = 7
			}
		})},
	{ID: "elicitation.enum-refused", Requirement: ids.ElicitationSchemaClientSupports, Scenario: Elicitation,
		Summary: "A form with an enum is refused.", Apply: Refusing(Replies("elicitation-enum"))},
	{ID: "elicitation.enum-death", Requirement: ids.ElicitationSchemaClientSupports, Scenario: Elicitation,
		Summary: "A form with an enum ends the client.", Collateral: []string{ids.BaseResponsePresent},
		Apply: DyingOf("Please fill in: enum")},
	{ID: "elicitation.boolean-silence", Requirement: ids.ElicitationSchemaClientSupports, Scenario: Elicitation,
		Summary:    "After a form with a boolean the client answers nothing any more, not even pings.",
		Collateral: []string{ids.BaseResponsePresent},
		Apply: Withholding(func(conn transport.Conn, m *wire.Message) bool {
			return m.IsResponse() && heard(conn, "Please fill in: boolean")
		})},
	{ID: "elicitation.invalid-params-code", Requirement: ids.BaseErrorInvalidParams, Scenario: Elicitation,
		Summary: "A form whose schema is not an object is refused with -32603.",
		Apply:   editingError(Having("code", -32603))},
	{ID: "elicitation.malformed-unanswered", Requirement: ids.BaseResponsePresent, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form whose schema is not an object gets no answer.",
		Apply: Dropping(Replies("elicitation-broken"))},
	{ID: "elicitation.malformed-last", Requirement: ids.BaseResponsePresent, Form: mockserver.InSequence,
		Scenario: Elicitation,
		Summary:  "After a form whose schema is not an object, no form is answered any more.",
		Apply: Withholding(func(conn transport.Conn, m *wire.Message) bool {
			x := conn.Log().Conversation().Newest(wire.Server, m.ID)
			broken := func(m *wire.Message) bool {
				return m.Kind == wire.Request && m.ID.Key() == wire.StringID("elicitation-broken").Key()
			}
			return m.IsResponse() && x != nil && x.Method() == "elicitation/create" && Told(conn, broken)
		})},
	{ID: "sampling.malformed-unanswered", Requirement: ids.BaseResponsePresent, Form: mockserver.ByValue,
		Scenario: Sampling, Summary: "A sampling request whose messages are not an array gets no answer.",
		Collateral: []string{ids.SamplingErrorReturned}, Apply: Dropping(Replies("sampling-broken"))},
	{ID: "elicitation.invalid-params-as-unknown", Requirement: ids.BaseErrorInvalidParams, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form whose schema is not an object is refused with -32601.",
		Apply: editingError(Having("code", -32601))},
	{ID: "sampling.invalid-params-as-unknown", Requirement: ids.BaseErrorInvalidParams, Form: mockserver.ByValue,
		Scenario: Sampling,
		Summary:  "A sampling request whose messages are not an array is refused with -32601.",
		Apply:    editingError(Having("code", -32601))},
	{
		ID: "elicitation.lengths-refused", Requirement: ids.ElicitationSchemaClientSupports, Scenario: Elicitation,
		Form:    mockserver.ByValue,
		Summary: "A form that limits the length of a text is refused.",
		Apply: Handling("elicitation/create",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				if strings.Contains(fmt.Sprint(wire.At(params, "requestedSchema")), "minLength") {
					return nil, &wire.Error{Code: -32602, Message: "Invalid params: unsupported schema"}
				}
				return serve(ctx, params)
			}),
		Collateral: []string{ids.ElicitationSchemaNumberBounds}, // the form with all kinds of property has both
	},
	{ID: "elicitation.negative-refused", Requirement: ids.ElicitationSchemaClientSupports, Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form with an integer that has to be negative is refused.",
		Apply: Refusing(Replies("elicitation-negative"))},
	{ID: "elicitation.fractions-refused", Requirement: ids.ElicitationSchemaNumberBounds, Scenario: Elicitation,
		Summary:    "A form with a number whose bounds have fractions is refused.",
		Collateral: []string{ids.ElicitationSchemaClientSupports},
		Apply:      Refusing(Replies("elicitation-number"))},
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
	{ID: "elicitation.decline-error", Requirement: ids.ElicitationActionDecline, Scenario: "acts/elicitation",
		Summary: "A form that the user refuses comes back as an error.",
		Apply:   Refusing(Replies("elicitation-decline"))},
	{ID: "elicitation.content-declined", Requirement: ids.ElicitationContentOnlyWithAccept,
		Scenario: "acts/elicitation", Summary: "A form that the user refuses comes back with content.",
		Apply: Editing(Replies("elicitation-decline"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"string": "some text", "boolean": true}
			}
		})},
	{ID: "roots.undeclared", Requirement: ids.RootsCapabilityDeclared, Scenario: RootsSeen,
		Summary: "roots/list is served although roots is not declared.",
		Apply:   Changing(func(o *client.Options) { delete(o.Capabilities, "roots") })},
	{ID: "roots.refused-code", Requirement: ids.RootsErrorUnsupported, Scenario: RootsSeen,
		Summary: "roots/list, which is not declared, is refused with -32603.",
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "roots")
			delete(o.Answers, "roots/list")
		}), Editing(Replies("undeclared-roots"),
			Having("error", object{"code": -32603, "message": "Internal error"})))},
	{ID: "roots.no-list", Requirement: ids.RootsListAnswered, Scenario: RootsSeen,
		Summary: "The result of roots/list has no roots.", Collateral: []string{ids.SchemaListRootsResult},
		Apply: Serving("roots/list", func(any) any { return object{} })},
	{ID: "roots.params-required", Requirement: ids.BaseParamsOmitted, Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots without params is refused.", Apply: Rejecting(Replies("roots-plain"))},
	{ID: "roots.params-empty-refused", Requirement: ids.BaseParamsOmitted, Form: mockserver.ByValue,
		Scenario: RootsSeen, Summary: "A request for the roots whose params are an empty object is refused.",
		Apply: Rejecting(Replies("roots-empty"))},
	{ID: "roots.meta-refused", Requirement: ids.MetaAttachRequest, Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with _meta is refused.", Apply: Rejecting(Replies("roots-meta"))},
	{ID: "roots.params-strict", Requirement: ids.BaseParamsOpen, Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with an additional member in its params is refused.",
		Apply:   Rejecting(Replies("roots-open"))},
	{ID: "roots.token-refused", Requirement: ids.ProgressRequest, Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with a progress token is refused.",
		Apply:   Rejecting(Replies("roots-token"))},
	{ID: "roots.name-number", Requirement: ids.SchemaListRootsResult, Scenario: RootsSeen,
		Summary: "The name of a root is a number.",
		Apply: Serving("roots/list", func(any) any {
			return object{"roots": list{object{"uri": "file:///tmp", "name": 7}}}
		})},
	{ID: "roots.http", Requirement: ids.RootsRootFileURI, Scenario: RootsSeen, Summary: "A root is an http URI.",
		Apply: Serving("roots/list", rooted("http://example.com/"))},
	{ID: "roots.twice", Requirement: ids.RootsRootURIUnique, Scenario: RootsSeen, Summary: "A root is listed twice.",
		Apply: Serving("roots/list", rooted("file:///tmp", "file:///tmp"))},
	{ID: "roots.climbing", Requirement: ids.RootsSecurityValidateURIs, Scenario: RootsSeen,
		Summary: "The URI of a root climbs out of a folder.",
		Apply:   Serving("roots/list", rooted("file:///tmp/../etc"))},
	{ID: "roots.change-unannounced", Requirement: ids.RootsListChangedNotify, Scenario: "acts/roots",
		Summary: "The roots change without a notification.",
		Apply:   Dropping(Calls("notifications/roots/list_changed"))},
	{ID: "roots.removal-unannounced", Requirement: ids.RootsListChangedEveryChange, Scenario: "acts/roots",
		Summary: "The client does not announce that a root was removed, although it announces additions.",
		Apply:   firstOnly(2)},
	{ID: "roots.stale-list", Requirement: ids.RootsListCurrent, Scenario: "acts/roots",
		Summary: "The list of roots stays the same although changes are announced.",
		Apply: func(c *client.Standalone) {
			before := c.Change
			c.Change = func(o *client.Options) {
				if before != nil {
					before(o)
				}
				o.Answers["roots/list"] = func(context.Context, any) (any, *wire.Error) {
					return rooted("file:///tmp")(nil), nil
				}
			}
		}},
	{ID: "roots.missing-folder", Requirement: ids.RootsClientValidateAccessible, Scenario: "acts/root-folder",
		Summary: "The client lists a root whose folder does not exist any more.", Apply: remembering()},
	{ID: "roots.fixed-list", Requirement: ids.RootsClientValidateAccessible, Scenario: "acts/root-folder",
		Summary: "The client declares roots without listChanged, and lists a root whose folder does " +
			"not exist any more.",
		Apply: All(remembering(), Dropping(Calls("notifications/roots/list_changed")),
			Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }))},
	{ID: "roots.unwatched", Requirement: ids.RootsClientMonitorChanges, Scenario: "acts/root-folder",
		Summary:    "The client never shows that the folder of a root is gone.",
		Collateral: []string{ids.RootsClientValidateAccessible},
		Apply:      All(remembering(), Dropping(Calls("notifications/roots/list_changed")))},
	{ID: "progress.token-as-text", Requirement: ids.ProgressTokenEcho, Scenario: Sampling,
		Summary: "The progress token 0 comes back as a string.",
		Apply: Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"0","progress":1}}`)},
	{ID: "progress.flood", Requirement: ids.ProgressRateLimit, Scenario: Sampling, Transports: OverStdio,
		Summary: "Before a response, progress is reported more than a thousand times.",
		Apply: Sending(Replies("sampling-none"), func(_ *wire.Message, out outgoing) []outgoing {
			var all []outgoing
			for i := range Flood {
				all = append(all, outgoing{Raw: fmt.Appendf(nil,
					`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":-1,"progress":%d}}`,
					1000+i)})
			}
			return append(all, out)
		})},
	{ID: "progress.message-empty", Requirement: ids.ProgressMessageReadable, Scenario: Sampling,
		Summary: "The message of progress is a space.",
		Apply: Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress",`+
				`"params":{"progressToken":-1,"progress":1,"message":" "}}`),
	},
	{ID: "sampling.waits-for-own-call", Requirement: ids.SamplingRequestNested, Scenario: Sampling, WarnOnly: true,
		Summary: "Sampling requests are answered only when the client's own request has been.",
		Apply:   HeldBack(Replies("sampling-none"))},
	{ID: "progress.after-cancellation", Requirement: ids.CancellationStopProcessing, Scenario: Sampling,
		Transports: OverStdio,
		Summary:    "Progress of a sampling request is reported well after its cancellation.",
		Apply: All(Dropping(Replies("sampling-withdrawn")),
			Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
				<-time.After(crossing)
				return []outgoing{{Raw: []byte(progressOf(`"sampling-withdrawn"`, "1"))}, out}
			}))},
	{ID: "progress.after-the-end", Requirement: ids.ProgressInProgress, Scenario: Sampling, Transports: OverStdio,
		Summary:    "Progress of a request that was answered comes behind the answer to a later one.",
		Collateral: []string{ids.ProgressStop}, Apply: Behind(Replies("after-sampling"), progressOf("0", "1"))},
	{ID: "progress.after-cancellation-posted", Requirement: ids.CancellationStopProcessing,
		Form: mockserver.InSequence, Scenario: Sampling, Transports: OverHTTP,
		Summary: "Progress of a sampling request is posted well after its cancellation.",
		Apply: All(Dropping(Replies("sampling-withdrawn")),
			muchLater(Replies("after-sampling"), progressOf(`"sampling-withdrawn"`, "1")))},
	{ID: "progress.after-the-end-posted", Requirement: ids.ProgressInProgress, Form: mockserver.InSequence,
		Scenario: Sampling, Transports: OverHTTP,
		Summary: "Progress of a request that was answered is posted well after that, before the answer to " +
			"a later one.",
		Collateral: []string{ids.ProgressStop},
		Apply:      muchLater(Replies("after-sampling"), progressOf("0", "1"))},
	{ID: "progress.not-growing-here", Requirement: ids.ProgressValueIncreases, Scenario: Sampling,
		Summary: "Two notifications of progress have the same value.",
		Apply: Sending(Replies("sampling-none"), func(_ *wire.Message, out outgoing) []outgoing {
			return []outgoing{{Raw: []byte(progressOf("0", "1"))}, {Raw: []byte(progressOf("0", "1"))}, out}
		})},
	{ID: "progress.token-invented", Requirement: ids.ProgressTokenActiveRequest, Scenario: Sampling,
		Summary: "Progress is reported with a token that no request has carried.",
		Apply:   Before(Replies("sampling-none"), progressOf(`"invented"`, "1"))},
	{ID: "progress.behind-the-answer", Requirement: ids.ProgressStop, Scenario: Sampling, Transports: OverStdio,
		Summary: "Progress is reported after the answer.", Collateral: []string{ids.ProgressInProgress},
		Apply: Behind(Replies("sampling-none"), progressOf("0", "1"))},
	{ID: "progress.value-text", Requirement: ids.SchemaProgressNotification, Scenario: Sampling,
		Summary: "The progress value is a string.",
		Apply:   Before(Replies("sampling-none"), progressOf("0", `"half"`))},
	{ID: "cancellation.answered-late", Requirement: ids.CancellationNoResponse, Scenario: Sampling,
		Transports: OverStdio, Summary: "A sampling request is answered well after its cancellation.",
		Collateral: []string{ids.CancellationStopProcessing},
		Apply: All(Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
			<-time.After(crossing)
			late := `{"jsonrpc":"2.0","id":"sampling-withdrawn","result":{"role":"assistant","model":"m",` +
				`"content":{"type":"text","text":"Hello."}}}`
			return []outgoing{{Raw: []byte(late)}, out}
		}), Dropping(Replies("sampling-withdrawn")))},
	{ID: "completion.total-death", Requirement: ids.CompletionResultTotalExceedsValues,
		Scenario: "features/completions", Summary: "A total that exceeds the number of values ends the client.",
		Collateral: []string{ids.CompletionClientPartialResults}, Apply: DyingOf(`"hasMore":true`)},
	{ID: "completion.total-required", Requirement: ids.CompletionClientPartialResults,
		Scenario: "features/completions", Summary: "A completion without a total ends the client.",
		Collateral: []string{ids.CompletionResultTotalExceedsValues},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.IsResponse() && wire.At(e.Msg.Result, "completion") != nil &&
				wire.At(e.Msg.Result, "completion", "total") == nil
		})},
	{ID: "completion.context-dropped", Requirement: ids.CompletionContextClientSends,
		Scenario: "features/completions",
		Summary:  "A second argument is completed without the first, which is settled.",
		Apply:    Params("completion/complete", Lacking("context"))},
	{ID: "completion.context-renamed", Requirement: ids.CompletionContextResolvedValues,
		Scenario:   "features/completions",
		Summary:    "The context of a completion names an argument that the prompt does not have.",
		Collateral: []string{ids.CompletionContextClientSends},
		Apply: Params("completion/complete", func(p object) {
			if p["context"] != nil {
				p["context"] = object{"arguments": object{"no-such-argument": "x"}}
			}
		})},
	{ID: "progress.notifications-death", Requirement: ids.ProgressNotify, Scenario: "features/progress",
		Summary: "A notification of progress ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressOmitTotal, ids.ProgressTotalFloat,
			ids.ProgressValueFloat},
		Apply: DyingOf("still at it")},
	{ID: "progress.fraction-death", Requirement: ids.ProgressValueFloat, Scenario: "features/progress",
		Summary:    "Progress with a fraction ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat},
		Apply:      DyingOf("notifications/progress", `"progress":0.25`)},
	{ID: "progress.total-fraction-death", Requirement: ids.ProgressTotalFloat, Scenario: "features/progress",
		Summary:    "A total with a fraction ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressValueFloat},
		Apply:      DyingOf("notifications/progress", `"total":25.5`)},
	{ID: "progress.many-death", Requirement: ids.ProgressFrequency, Scenario: "features/progress",
		Summary:    "Much progress ends the client.",
		Collateral: []string{ids.ProgressNotify, ids.ProgressOmitTotal, ids.ProgressTotalFloat, ids.ProgressValueFloat},
		Apply:      DyingOf("notifications/progress", `"progress":24.5`)},
	{ID: "progress.total-required", Requirement: ids.ProgressOmitTotal, Scenario: "features/progress",
		Summary:    "Progress without a total ends the client.",
		Collateral: []string{ids.ProgressFrequency, ids.ProgressNotify, ids.ProgressTotalFloat, ids.ProgressValueFloat},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && ContainsText(e, "notifications/progress") &&
				!ContainsText(e, `"total"`)
		})},
}

// generating answers sampling requests with a message if their params are so, and
// others as before.
func generating(which func(params any) bool) apply {
	return Changing(func(o *client.Options) {
		const method = "sampling/createMessage"
		serve := o.Answers[method]
		o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
			if which(params) {
				return object{"role": "assistant", "model": "m", "content": object{"type": "text", "text": "Hello."}},
					nil
			}
			return serve(ctx, params)
		}
	})
}

// sampledContent is a fault of the content of generated messages.
func sampledContent(id, requirement, summary string, content object, collateral ...string) Fault {
	return Fault{
		ID: "content." + id, Requirement: requirement, Scenario: Sampling, Summary: summary, Collateral: collateral,
		Apply: Amending("sampling/createMessage", func(r object) { r["content"] = content }),
	}
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
	return Fault{
		ID: id, Requirement: "elicitation.action." + action, Scenario: "acts/elicitation", Summary: summary,
		Apply: Editing(Replies("elicitation-"+action), func(m object) { m["result"] = object{"action": as} }),
	}
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
