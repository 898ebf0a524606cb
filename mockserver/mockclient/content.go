package mockclient

import (
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const plainContent = "content/plain"

// contentFaults are those of clients that end when an ordinary server sends something
// that not every server sends.
func contentFaults() []Fault {
	return append(contentDeaths(),
		fault("tools.unlisted-link-hangs", ids.ToolsResourceLinkUnlisted,
			"A link to a resource that is not in the list, which came before, makes the client hang.",
			All(Instead(func(m *wire.Message) bool {
				return wire.At(m.Params, "name") == "resource_links" &&
					wire.At(m.Params, "_meta") != nil // the call before that
			}), Calling("tools/call", object{"name": "resource_links", "arguments": object{}}),
				hanging(func(conn transport.Conn) bool {
					last := lastResult(conn)
					return last != nil && ContainsText(last, `"resource_link"`)
				}))).In(plainContent).Also(ids.ToolsResultResourceLinks),
		fault("resources.subscriptions-required", ids.ResourcesCapabilityFeaturesIndependent,
			"A server that declares resources alone ends the client.", DyingOf(`"resources":{}`)).
			In("capabilities/bare-resources"),
		fault("resources.known-schemes-only", ids.ResourcesURISchemeCustomAllowed,
			"Resources whose URIs have a scheme of the server's own are not read.", Instead(func(m *wire.Message) bool {
				uri, _ := wire.At(m.Params, "uri").(string)
				return m.Method == "resources/read" && !strings.HasPrefix(uri, "file:")
			})).In("lists/virtual-files"),
		fault("progress.required", ids.ProgressNone,
			"A tool result of which no progress was reported ends the client.",
			DyingOn(func(conn transport.Conn, e *wire.Event) bool {
				return e.Kind == wire.KindMessage && wire.At(e.Msg.Result, "content") != nil &&
					!heard(conn, "notifications/progress")
			})).In("features/progress"))
}

// contentDeaths are the clients that one kind of content ends.
func contentDeaths() (faults []Fault) {
	add := func(id, requirement, what string, apply apply, collateral ...string) {
		faults = append(faults, fault(id, requirement, what+" ends the client.", apply).In(plainContent).
			Also(collateral...))
	}
	add("content.annotations-death", ids.ContentAnnotationsOptional, "Content with annotations", DyingOf(`"audience"`),
		ids.ContentAnnotationsAudienceSeveral)
	add("content.audience-death", ids.ContentAnnotationsAudienceSeveral, "Content for two audiences",
		DyingOf(`["user","assistant"]`), ids.ContentAnnotationsOptional)
	add("prompts.resource-death", ids.PromptsMessageContentKinds, "A prompt with an embedded resource",
		DyingOf(`"messages"`, `"resource"`))
	add("resources.two-contents-death", ids.ResourcesReadSeveralContents, "A resource with two contents",
		Dying(func(e *wire.Event) bool { return len(wire.Items(message(e).Result, "contents")) > 1 }))
	add("tools.structured-death", ids.ToolsResultStructuredOrUnstructured, "A tool result with structured content",
		DyingOf(`"structuredContent"`))
	add("tools.mixed-death", ids.ToolsResultMixedContent, "A tool result with a text and an image",
		DyingOf(`"Multiple content types test:"`))
	add("tools.image-death", ids.ToolsResultImage, "A tool result with an image", DyingOf(`"type":"image"`))
	// https://github.com/frontman-ai/frontman/issues/1545
	add("tools.audio-death", ids.ToolsResultAudio, "A tool result with audio", DyingOf(`"type":"audio"`),
		ids.BaseResponsePresent) // a sampling request with audio ends it as well
	add("tools.embedded-death", ids.ToolsResultEmbeddedResources, "A tool result with an embedded resource",
		DyingOf("test://embedded-resource"))
	add("tools.link-death", ids.ToolsResultResourceLinks, "A tool result with a link to a resource",
		DyingOf(`"resource_link"`))
	add("tools.output-schema-death", ids.ToolsOutputSchemaOptional, "A tool with an output schema",
		DyingOf(`"outputSchema"`))
	add("logging.unasked-death", ids.LoggingDefaultServerDecides, "A log message without any level set",
		All(Instead(Calls("logging/setLevel")), DyingOf("notifications/message")), ids.LoggingMessageLoggerOptional)
	add("logging.logger-death", ids.LoggingMessageLoggerOptional, "A log message with a logger",
		DyingOf("notifications/message", `"logger"`))
	return faults
}

// lastResult returns the last result that the server has sent.
func lastResult(conn transport.Conn) *wire.Event {
	var last *wire.Event
	for _, e := range conn.Log().Events() {
		if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Result {
			last = e
		}
	}
	return last
}
