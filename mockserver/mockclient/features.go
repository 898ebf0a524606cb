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
)

var featureFaults = []Fault{
	{ID: "sampling.undeclared", Requirement: "sampling.capability.declared", Scenario: Sampling,
		Summary:    "sampling/createMessage is served although sampling is not declared.",
		Collateral: []string{"lifecycle.capability.client-refuses-sampling"},
		Apply:      Changing(func(o *client.Options) { delete(o.Capabilities, "sampling") })},
	{
		ID: "sampling.undeclared-code", Requirement: "lifecycle.capability.client-refuses-sampling", Scenario: Sampling,
		WarnOnly:   true,
		Summary:    "sampling/createMessage, which is not declared, is refused with -32603.",
		Collateral: []string{"base.error.invalid-params"}, // of elicitation
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "sampling")
			delete(o.Answers, "sampling/createMessage")
		}), editingError(Having("code", -32603))),
	},
	{ID: "sampling.unknown", Requirement: "sampling.capability.honoured", Scenario: Sampling,
		Summary:    "sampling is declared, but sampling/createMessage is unknown.",
		Collateral: []string{"base.error.invalid-params"},
		Apply:      Changing(func(o *client.Options) { delete(o.Answers, "sampling/createMessage") })},
	{ID: "sampling.role-user", Requirement: "sampling.result.role-assistant", Scenario: Sampling,
		Summary: "The role of a generated message is user.",
		Apply:   Amending("sampling/createMessage", Having("role", "user"))},
	{ID: "sampling.no-model", Requirement: "sampling.result.model-named", Scenario: Sampling,
		Summary: "A generated message names no model.",
		Apply:   Amending("sampling/createMessage", Having("model", ""))},
	{ID: "sampling.resource", Requirement: "sampling.message.content-kinds", Scenario: Sampling,
		Summary:    "A generated message is an embedded resource.",
		Collateral: []string{"content.block.known-type"},
		Apply:      Amending("sampling/createMessage", Having("content", object{"type": "resource", "resource": object{"uri": "file:///a", "text": "a"}})),
	},
	{ID: "sampling.stop-reason-number", Requirement: "schema.create-message-result", Scenario: Sampling,
		Summary: "stopReason is a number.", Apply: Amending("sampling/createMessage", Having("stopReason", 1))},
	{ID: "sampling.content-unknown", Requirement: "content.block.known-type", Scenario: Sampling,
		Summary:    "A generated message has content of an unknown type.",
		Collateral: []string{"sampling.message.content-kinds"},
		Apply:      Amending("sampling/createMessage", Having("content", object{"type": "video", "data": "AAAA"}))},
	{ID: "sampling.limit-ignored", Requirement: "sampling.max-tokens.limit", Scenario: Sampling,
		Summary: "A generated message is many times longer than maxTokens.",
		Apply:   Amending("sampling/createMessage", Having("content", object{"type": "text", "text": strings.Repeat("one word after another ", 400)})),
	},
	{ID: "sampling.broken-served", Requirement: "sampling.error.returned", Scenario: Sampling,
		Summary:    "A sampling request without messages is answered with a message.",
		Collateral: []string{"base.error.invalid-params"},
		Apply:      generating(func(params any) bool { _, ok := wire.At(params, "messages").(list); return !ok })},
	{ID: "sampling.broken-death", Requirement: "sampling.error.returned", Scenario: Sampling,
		Summary:    "A sampling request whose messages are not an array ends the client.",
		Collateral: []string{"base.response.present"}, Apply: DyingOf("none at all")},
	{ID: "sampling.content-unchecked", Requirement: "sampling.security.validate-content", Scenario: Sampling,
		Summary: "An image that is not Base64 is answered with a message.",
		Apply: generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "image"
		})},
	{ID: "sampling.text-unchecked", Requirement: "sampling.security.validate-content", Scenario: Sampling,
		Summary: "A text block without a text is answered with a message.",
		Apply: generating(func(params any) bool {
			messages, _ := wire.At(params, "messages").(list)
			return len(messages) > 0 && wire.At(messages[0], "content", "type") == "text"
		})},
	{ID: "sampling.few-tokens-ignored", Requirement: "sampling.max-tokens.limit", Scenario: Sampling,
		Summary: "A generated message has forty words although maxTokens is 2.",
		Apply: Editing(Replies("sampling-short"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"type": "text", "text": strings.Repeat("one word after another ", 10)}
			}
		})},
	// github.com/helidon-io/helidon-mcp/issues/181
	{ID: "sampling.ids-mixed", Requirement: "base.response.once", Form: mockserver.AtOnce, Scenario: Sampling,
		Summary:    "Both of two sampling requests at once are answered with the id of the second.",
		Collateral: []string{"base.response.present"},
		Apply:      Replacing(Replies("sampling-both-first"), "sampling-both-first", "sampling-both-second")},
	{ID: "elicitation.one-at-a-time", Requirement: "base.response.present", Form: mockserver.AtOnce,
		Scenario: "features/elicitation",
		Summary:  "A form that comes while another one is open is never answered.",
		Apply:    Dropping(Replies("elicitation-both-second"))},
	{ID: "sampling.image-death", Requirement: "base.response.present", Form: mockserver.ByValue, Scenario: Sampling,
		Summary: "A sampling request with an image ends the client.", Apply: DyingOf(`"sampling-image"`)},
	{ID: "sampling.media-last-death", Requirement: "base.response.present", Form: mockserver.ByValue,
		Scenario: Sampling, Summary: "A sampling request whose last message is not text ends the client.",
		Apply: Dying(func(e *wire.Event) bool {
			if e.Kind != wire.KindMessage {
				return false
			}
			messages, _ := wire.At(e.Msg.Params, "messages").(list)
			return len(messages) > 1 && wire.At(messages[len(messages)-1], "content", "data") != nil
		})},
	{ID: "sampling.all-cancelled", Requirement: "base.response.present", Form: mockserver.AtOnce, Scenario: Sampling,
		Summary: "The cancellation of one sampling request silences another one that is open.",
		Apply:   Dropping(Replies("sampling-beside-second"))},
	{ID: "sampling.options-refused", Requirement: "sampling.request.optional-members", Scenario: Sampling,
		Summary: "A sampling request with all members is refused.", Apply: Rejecting(Replies("sampling-full"))},
	{ID: "sampling.context-refused", Requirement: "sampling.include-context.optional", Scenario: Sampling,
		Summary: "A sampling request that asks for context is refused.",
		Apply:   Rejecting(Replies("sampling-thisServer"))},
	{ID: "sampling.metadata-refused", Requirement: "sampling.metadata.free-form", Scenario: Sampling,
		Summary: "A sampling request with metadata is refused.",
		Apply:   Rejecting(Replies("sampling-metadata", "sampling-foreign-metadata"))},
	{
		ID: "sampling.rejection-code", Requirement: "sampling.error.user-rejected", Scenario: "acts/sampling",
		Summary:    "A sampling request that the user rejects gets the code -32603.",
		Collateral: []string{"base.error.method-not-found"}, // of a scenario that is run together with this one
		Apply:      editingError(Having("code", -32603)),
	},
	{ID: "elicitation.undeclared", Requirement: "elicitation.capability.declared", Scenario: Elicitation,
		Summary:    "elicitation/create is served although elicitation is not declared.",
		Collateral: []string{"lifecycle.capability.client-refuses-elicitation"},
		Apply:      Changing(func(o *client.Options) { delete(o.Capabilities, "elicitation") })},
	{
		ID: "elicitation.undeclared-code", Requirement: "lifecycle.capability.client-refuses-elicitation",
		Scenario: Elicitation, WarnOnly: true,
		Summary:    "elicitation/create, which is not declared, is refused with -32603.",
		Collateral: []string{"base.error.invalid-params"}, // of sampling
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "elicitation")
			delete(o.Answers, "elicitation/create")
		}), editingError(Having("code", -32603))),
	},
	{ID: "elicitation.unknown", Requirement: "elicitation.capability.honoured", Scenario: Elicitation,
		Summary: "elicitation is declared, but elicitation/create is unknown.",
		Apply:   Changing(func(o *client.Options) { delete(o.Answers, "elicitation/create") })},
	{ID: "elicitation.waits-for-own-call", Requirement: "elicitation.request.nested", Scenario: Elicitation,
		WarnOnly: true, Summary: "Forms are answered only when the client's own request has been.",
		Apply: HeldBack(Replies("elicitation-string"))},
	{ID: "elicitation.action-ok", Requirement: "elicitation.action.values", Scenario: Elicitation,
		Summary: "The action is ok.", Apply: Amending("elicitation/create", Having("action", "ok"))},
	{ID: "elicitation.content-text", Requirement: "schema.elicit-result", Scenario: Elicitation,
		Summary: "The content of a form is a text.",
		Apply:   Amending("elicitation/create", Having("content", "some text"))},
	{ID: "elicitation.no-content", Requirement: "elicitation.content.with-accept", Scenario: Elicitation,
		Summary: "A form is accepted without content.",
		Apply:   Amending("elicitation/create", Lacking("content"))},
	{ID: "elicitation.content-nested", Requirement: "elicitation.content.primitive-values", Scenario: Elicitation,
		Summary:    "A value of the content is an object.",
		Collateral: []string{"elicitation.content.matches-schema", "elicitation.security.validate-content"},
		Apply:      Amending("elicitation/create", Having("content", object{"string": object{}}))},
	{ID: "elicitation.content-unfitting", Requirement: "elicitation.content.matches-schema", Scenario: Elicitation,
		Summary:    "The content of a form lacks a required value.",
		Collateral: []string{"elicitation.security.validate-content"},
		Apply:      Amending("elicitation/create", Having("content", object{}))},
	{ID: "elicitation.falsy-dropped", Requirement: "elicitation.content.matches-schema", Scenario: Elicitation,
		Summary:    "Values that are 0 or false are left out of the content of a form.",
		Collateral: []string{"elicitation.security.validate-content"},
		Apply: Amending("elicitation/create", func(r object) {
			content, _ := r["content"].(object)
			for name, v := range content {
				if v == false || v == json.Number("0") {
					delete(content, name)
				}
			}
		})},
	{ID: "elicitation.content-unchecked", Requirement: "elicitation.security.validate-content", Scenario: Elicitation,
		Summary:    "A number beyond the bounds of the form is sent on.",
		Collateral: []string{"elicitation.content.matches-schema", "elicitation.schema.number-bounds"},
		Apply: Amending("elicitation/create", func(r object) {
			if content, ok := r["content"].(object); ok && content["number"] != nil {
				content["number"] = 7
			}
		})},
	{ID: "elicitation.enum-refused", Requirement: "elicitation.schema.client-supports", Scenario: Elicitation,
		Summary: "A form with an enum is refused.", Apply: Refusing(Replies("elicitation-enum"))},
	{ID: "elicitation.enum-death", Requirement: "elicitation.schema.client-supports", Scenario: Elicitation,
		Summary: "A form with an enum ends the client.", Collateral: []string{"base.response.present"},
		Apply: DyingOf("Please fill in: enum")},
	{ID: "elicitation.boolean-silence", Requirement: "elicitation.schema.client-supports", Scenario: Elicitation,
		Summary:    "After a form with a boolean the client answers nothing any more, not even pings.",
		Collateral: []string{"base.response.present"},
		Apply: Withholding(func(conn transport.Conn, m *wire.Message) bool {
			return m.IsResponse() && heard(conn, "Please fill in: boolean")
		})},
	{ID: "elicitation.invalid-params-code", Requirement: "base.error.invalid-params", Scenario: Elicitation,
		Summary: "A form whose schema is not an object is refused with -32603.",
		Apply:   editingError(Having("code", -32603))},
	{ID: "elicitation.malformed-unanswered", Requirement: "base.response.present", Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form whose schema is not an object gets no answer.",
		Apply: Dropping(Replies("elicitation-broken"))},
	{ID: "elicitation.malformed-last", Requirement: "base.response.present", Form: mockserver.InSequence,
		Scenario: Elicitation,
		Summary:  "After a form whose schema is not an object, no form is answered any more.",
		Apply: Withholding(func(conn transport.Conn, m *wire.Message) bool {
			x := conn.Log().Conversation().Newest(wire.Server, m.ID)
			broken := func(m *wire.Message) bool {
				return m.Kind == wire.Request && m.ID.Key() == wire.StringID("elicitation-broken").Key()
			}
			return m.IsResponse() && x != nil && x.Method() == "elicitation/create" && Told(conn, broken)
		})},
	{ID: "sampling.malformed-unanswered", Requirement: "base.response.present", Form: mockserver.ByValue,
		Scenario: Sampling, Summary: "A sampling request whose messages are not an array gets no answer.",
		Collateral: []string{"sampling.error.returned"}, Apply: Dropping(Replies("sampling-broken"))},
	{ID: "elicitation.invalid-params-as-unknown", Requirement: "base.error.invalid-params", Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form whose schema is not an object is refused with -32601.",
		Apply: editingError(Having("code", -32601))},
	{ID: "sampling.invalid-params-as-unknown", Requirement: "base.error.invalid-params", Form: mockserver.ByValue,
		Scenario: Sampling,
		Summary:  "A sampling request whose messages are not an array is refused with -32601.",
		Apply:    editingError(Having("code", -32601))},
	{
		ID: "elicitation.lengths-refused", Requirement: "elicitation.schema.client-supports", Scenario: Elicitation,
		Form:    mockserver.ByValue,
		Summary: "A form that limits the length of a text is refused.",
		Apply: Handling("elicitation/create",
			func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error) {
				if strings.Contains(fmt.Sprint(wire.At(params, "requestedSchema")), "minLength") {
					return nil, &wire.Error{Code: -32602, Message: "Invalid params: unsupported schema"}
				}
				return serve(ctx, params)
			}),
		Collateral: []string{"elicitation.schema.number-bounds"}, // the form with all kinds of property has both
	},
	{ID: "elicitation.negative-refused", Requirement: "elicitation.schema.client-supports", Form: mockserver.ByValue,
		Scenario: Elicitation, Summary: "A form with an integer that has to be negative is refused.",
		Apply: Refusing(Replies("elicitation-negative"))},
	{ID: "elicitation.fractions-refused", Requirement: "elicitation.schema.number-bounds", Scenario: Elicitation,
		Summary:    "A form with a number whose bounds have fractions is refused.",
		Collateral: []string{"elicitation.schema.client-supports"},
		Apply:      Refusing(Replies("elicitation-number"))},
	sampledContent("image-not-base64", "content.image.base64", "The data of a generated image are not Base64.",
		object{"type": "image", "data": "not Base64!", "mimeType": "image/png"}),
	sampledContent("image-without-type", "content.image.mime-type", "A generated image has no mimeType.",
		object{"type": "image", "data": "AAAA"}, "schema.create-message-result"),
	sampledContent("audio-not-base64", "content.audio.base64", "The data of generated audio are not Base64.",
		object{"type": "audio", "data": "not Base64!", "mimeType": "audio/wav"}),
	sampledContent("audio-without-type", "content.audio.mime-type", "Generated audio has no mimeType.",
		object{"type": "audio", "data": "AAAA"}, "schema.create-message-result"),
	sampledContent("audience-model", "content.annotations.audience-roles",
		"The audience of a generated text is the model.",
		object{"type": "text", "text": "Hello.", "annotations": object{"audience": list{"model"}}},
		"schema.create-message-result"),
	sampledContent("priority-high", "content.annotations.priority-range", "The priority of a generated text is 7.",
		object{"type": "text", "text": "Hello.", "annotations": object{"priority": 7}}, "schema.create-message-result"),
	sampledContent("modified-yesterday", "content.annotations.last-modified-format",
		"A generated text was last modified yesterday.",
		object{"type": "text", "text": "Hello.", "annotations": object{"lastModified": "yesterday"}}),
	wrongAction("elicitation.accept-declines", "accept", "decline",
		"A form that the user sends off comes back as declined."),
	wrongAction("elicitation.decline-cancels", "decline", "cancel",
		"A form that the user refuses comes back as cancelled."),
	wrongAction("elicitation.cancel-declines", "cancel", "decline",
		"A form that the user closes comes back as declined."),
	{ID: "elicitation.decline-error", Requirement: "elicitation.action.decline", Scenario: "acts/elicitation",
		Summary: "A form that the user refuses comes back as an error.",
		Apply:   Refusing(Replies("elicitation-decline"))},
	{ID: "elicitation.content-declined", Requirement: "elicitation.content.only-with-accept",
		Scenario: "acts/elicitation", Summary: "A form that the user refuses comes back with content.",
		Apply: Editing(Replies("elicitation-decline"), func(m object) {
			if r, ok := m["result"].(object); ok {
				r["content"] = object{"string": "some text", "boolean": true}
			}
		})},
	{ID: "roots.undeclared", Requirement: "roots.capability.declared", Scenario: RootsSeen,
		Summary: "roots/list is served although roots is not declared.",
		Apply:   Changing(func(o *client.Options) { delete(o.Capabilities, "roots") })},
	{ID: "roots.refused-code", Requirement: "roots.error.unsupported", Scenario: RootsSeen,
		Summary: "roots/list, which is not declared, is refused with -32603.",
		Apply: All(Changing(func(o *client.Options) {
			delete(o.Capabilities, "roots")
			delete(o.Answers, "roots/list")
		}), Editing(Replies("undeclared-roots"),
			Having("error", object{"code": -32603, "message": "Internal error"})))},
	{ID: "roots.no-list", Requirement: "roots.list.answered", Scenario: RootsSeen,
		Summary: "The result of roots/list has no roots.", Collateral: []string{"schema.list-roots-result"},
		Apply: Serving("roots/list", func(any) any { return object{} })},
	{ID: "roots.params-required", Requirement: "base.params.omitted", Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots without params is refused.", Apply: Rejecting(Replies("roots-plain"))},
	{ID: "roots.params-empty-refused", Requirement: "base.params.omitted", Form: mockserver.ByValue,
		Scenario: RootsSeen, Summary: "A request for the roots whose params are an empty object is refused.",
		Apply: Rejecting(Replies("roots-empty"))},
	{ID: "roots.meta-refused", Requirement: "meta.attach.request", Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with _meta is refused.", Apply: Rejecting(Replies("roots-meta"))},
	{ID: "roots.params-strict", Requirement: "base.params.open", Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with an additional member in its params is refused.",
		Apply:   Rejecting(Replies("roots-open"))},
	{ID: "roots.token-refused", Requirement: "progress.request", Form: mockserver.ByValue, Scenario: RootsSeen,
		Summary: "A request for the roots with a progress token is refused.",
		Apply:   Rejecting(Replies("roots-token"))},
	{ID: "roots.name-number", Requirement: "schema.list-roots-result", Scenario: RootsSeen,
		Summary: "The name of a root is a number.",
		Apply: Serving("roots/list", func(any) any {
			return object{"roots": list{object{"uri": "file:///tmp", "name": 7}}}
		})},
	{ID: "roots.http", Requirement: "roots.root.file-uri", Scenario: RootsSeen, Summary: "A root is an http URI.",
		Apply: Serving("roots/list", rooted("http://example.com/"))},
	{ID: "roots.twice", Requirement: "roots.root.uri-unique", Scenario: RootsSeen, Summary: "A root is listed twice.",
		Apply: Serving("roots/list", rooted("file:///tmp", "file:///tmp"))},
	{ID: "roots.climbing", Requirement: "roots.security.validate-uris", Scenario: RootsSeen,
		Summary: "The URI of a root climbs out of a folder.",
		Apply:   Serving("roots/list", rooted("file:///tmp/../etc"))},
	{ID: "roots.change-unannounced", Requirement: "roots.list-changed.notify", Scenario: "acts/roots",
		Summary: "The roots change without a notification.",
		Apply:   Dropping(Calls("notifications/roots/list_changed"))},
	{ID: "roots.removal-unannounced", Requirement: "roots.list-changed.every-change", Scenario: "acts/roots",
		Summary: "The client does not announce that a root was removed, although it announces additions.",
		Apply:   firstOnly(2)},
	{ID: "roots.stale-list", Requirement: "roots.list.current", Scenario: "acts/roots",
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
	{ID: "roots.missing-folder", Requirement: "roots.client.validate-accessible", Scenario: "acts/root-folder",
		Summary: "The client lists a root whose folder does not exist any more.", Apply: remembering()},
	{ID: "roots.fixed-list", Requirement: "roots.client.validate-accessible", Scenario: "acts/root-folder",
		Summary: "The client declares roots without listChanged, and lists a root whose folder does not exist any more.",
		Apply: All(remembering(), Dropping(Calls("notifications/roots/list_changed")),
			Changing(func(o *client.Options) { o.Capabilities["roots"] = object{} }))},
	{ID: "roots.unwatched", Requirement: "roots.client.monitor-changes", Scenario: "acts/root-folder",
		Summary:    "The client never shows that the folder of a root is gone.",
		Collateral: []string{"roots.client.validate-accessible"},
		Apply:      All(remembering(), Dropping(Calls("notifications/roots/list_changed")))},
	{ID: "progress.token-as-text", Requirement: "progress.token.echo", Scenario: Sampling,
		Summary: "The progress token 0 comes back as a string.",
		Apply: Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"0","progress":1}}`)},
	{ID: "progress.flood", Requirement: "progress.rate-limit", Scenario: Sampling, Transports: OverStdio,
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
	{ID: "progress.message-empty", Requirement: "progress.message-readable", Scenario: Sampling,
		Summary: "The message of progress is a space.",
		Apply: Before(Replies("sampling-none"),
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":-1,"progress":1,"message":" "}}`),
	},
	{ID: "sampling.waits-for-own-call", Requirement: "sampling.request.nested", Scenario: Sampling, WarnOnly: true,
		Summary: "Sampling requests are answered only when the client's own request has been.",
		Apply:   HeldBack(Replies("sampling-none"))},
	{ID: "progress.after-cancellation", Requirement: "cancellation.stop-processing", Scenario: Sampling,
		Transports: OverStdio,
		Summary:    "Progress of a sampling request is reported well after its cancellation.",
		Apply: All(Dropping(Replies("sampling-withdrawn")),
			Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
				<-time.After(crossing)
				progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"sampling-withdrawn","progress":1}}`
				return []outgoing{{Raw: []byte(progress)}, out}
			}))},
	{ID: "progress.after-the-end", Requirement: "progress.in-progress", Scenario: Sampling, Transports: OverStdio,
		Summary:    "Progress of a request that was answered comes behind the answer to a later one.",
		Collateral: []string{"progress.stop"}, Apply: Behind(Replies("after-sampling"), progressOf("0", "1"))},
	{ID: "progress.after-cancellation-posted", Requirement: "cancellation.stop-processing",
		Form: mockserver.InSequence, Scenario: Sampling, Transports: OverHTTP,
		Summary: "Progress of a sampling request is posted well after its cancellation.",
		Apply: All(Dropping(Replies("sampling-withdrawn")),
			muchLater(Replies("after-sampling"), progressOf(`"sampling-withdrawn"`, "1")))},
	{ID: "progress.after-the-end-posted", Requirement: "progress.in-progress", Form: mockserver.InSequence,
		Scenario: Sampling, Transports: OverHTTP,
		Summary:    "Progress of a request that was answered is posted well after that, before the answer to a later one.",
		Collateral: []string{"progress.stop"},
		Apply:      muchLater(Replies("after-sampling"), progressOf("0", "1"))},
	{ID: "progress.not-growing-here", Requirement: "progress.value-increases", Scenario: Sampling,
		Summary: "Two notifications of progress have the same value.",
		Apply: Sending(Replies("sampling-none"), func(_ *wire.Message, out outgoing) []outgoing {
			return []outgoing{{Raw: []byte(progressOf("0", "1"))}, {Raw: []byte(progressOf("0", "1"))}, out}
		})},
	{ID: "progress.token-invented", Requirement: "progress.token.active-request", Scenario: Sampling,
		Summary: "Progress is reported with a token that no request has carried.",
		Apply:   Before(Replies("sampling-none"), progressOf(`"invented"`, "1"))},
	{ID: "progress.behind-the-answer", Requirement: "progress.stop", Scenario: Sampling, Transports: OverStdio,
		Summary: "Progress is reported after the answer.", Collateral: []string{"progress.in-progress"},
		Apply: Behind(Replies("sampling-none"), progressOf("0", "1"))},
	{ID: "progress.value-text", Requirement: "schema.progress-notification", Scenario: Sampling,
		Summary: "The progress value is a string.",
		Apply:   Before(Replies("sampling-none"), progressOf("0", `"half"`))},
	{ID: "cancellation.answered-late", Requirement: "cancellation.no-response", Scenario: Sampling,
		Transports: OverStdio, Summary: "A sampling request is answered well after its cancellation.",
		Collateral: []string{"cancellation.stop-processing"},
		Apply: All(Sending(Replies("after-sampling"), func(_ *wire.Message, out outgoing) []outgoing {
			<-time.After(crossing)
			late := `{"jsonrpc":"2.0","id":"sampling-withdrawn","result":{"role":"assistant","model":"m","content":{"type":"text","text":"Hello."}}}`
			return []outgoing{{Raw: []byte(late)}, out}
		}), Dropping(Replies("sampling-withdrawn")))},
	{ID: "completion.total-death", Requirement: "completion.result.total-exceeds-values",
		Scenario: "features/completions", Summary: "A total that exceeds the number of values ends the client.",
		Collateral: []string{"completion.client.partial-results"}, Apply: DyingOf(`"hasMore":true`)},
	{ID: "completion.total-required", Requirement: "completion.client.partial-results",
		Scenario: "features/completions", Summary: "A completion without a total ends the client.",
		Collateral: []string{"completion.result.total-exceeds-values"},
		Apply: Dying(func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.Msg.IsResponse() && wire.At(e.Msg.Result, "completion") != nil &&
				wire.At(e.Msg.Result, "completion", "total") == nil
		})},
	{ID: "completion.context-dropped", Requirement: "completion.context.client-sends",
		Scenario: "features/completions",
		Summary:  "A second argument is completed without the first, which is settled.",
		Apply:    Params("completion/complete", Lacking("context"))},
	{ID: "completion.context-renamed", Requirement: "completion.context.resolved-values",
		Scenario:   "features/completions",
		Summary:    "The context of a completion names an argument that the prompt does not have.",
		Collateral: []string{"completion.context.client-sends"},
		Apply: Params("completion/complete", func(p object) {
			if p["context"] != nil {
				p["context"] = object{"arguments": object{"no-such-argument": "x"}}
			}
		})},
	{ID: "progress.notifications-death", Requirement: "progress.notify", Scenario: "features/progress",
		Summary: "A notification of progress ends the client.",
		Collateral: []string{"progress.frequency", "progress.omit-total", "progress.total-float",
			"progress.value-float"},
		Apply: DyingOf("still at it")},
	{ID: "progress.fraction-death", Requirement: "progress.value-float", Scenario: "features/progress",
		Summary:    "Progress with a fraction ends the client.",
		Collateral: []string{"progress.frequency", "progress.notify", "progress.omit-total", "progress.total-float"},
		Apply:      DyingOf("notifications/progress", `"progress":0.25`)},
	{ID: "progress.total-fraction-death", Requirement: "progress.total-float", Scenario: "features/progress",
		Summary:    "A total with a fraction ends the client.",
		Collateral: []string{"progress.frequency", "progress.notify", "progress.omit-total", "progress.value-float"},
		Apply:      DyingOf("notifications/progress", `"total":25.5`)},
	{ID: "progress.many-death", Requirement: "progress.frequency", Scenario: "features/progress",
		Summary:    "Much progress ends the client.",
		Collateral: []string{"progress.notify", "progress.omit-total", "progress.total-float", "progress.value-float"},
		Apply:      DyingOf("notifications/progress", `"progress":24.5`)},
	{ID: "progress.total-required", Requirement: "progress.omit-total", Scenario: "features/progress",
		Summary:    "Progress without a total ends the client.",
		Collateral: []string{"progress.frequency", "progress.notify", "progress.total-float", "progress.value-float"},
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
