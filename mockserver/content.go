package mockserver

import . "github.com/mcpconform/mcpconform/internal/proof/hooks"
import "github.com/mcpconform/mcpconform/schema/ids"

// media changes the image or audio blocks of a tool's results.
func media(tool string, change func(block object)) apply {
	return Blocks(tool, func(block object) {
		if block["type"] == "image" || block["type"] == "audio" {
			change(block)
		}
	})
}

// embedded changes the resource in the blocks of a tool's results.
func embedded(tool string, change func(resource object)) apply {
	return Blocks(tool, At("resource", change))
}

// annotated changes the annotations of a tool's blocks.
func annotated(change func(annotations object)) apply {
	return Blocks("annotated_content", At("annotations", change))
}

// The content of tool results, prompts and resources.
var contentFaults = []Fault{
	fault("content.image-data-url", ids.ContentImageBase64, "The data of an image is a data URL.",
		media("test_image_content", Having("data", "data:image/png;base64,iVBORw0KGgo="))),
	fault("content.image-base64url", ids.ContentImageBase64, "The data of an image is in the alphabet for URLs.",
		media("test_image_content", Having("data", "_-8="))),
	fault("content.image-unpadded", ids.ContentImageBase64, "The data of an image lacks the padding of base64.",
		media("test_image_content", Having("data", "aGVsbG8"))),
	fault("content.audio-line-breaks", ids.ContentAudioBase64, "The data of audio is base64 with line breaks.",
		media("test_audio_content", Having("data", "UklG\nRg=="))),
	fault("content.image-mime-type-missing", ids.ContentImageMimeType, "An image has no mimeType.",
		media("test_image_content", Lacking("mimeType"))).Also(ids.SchemaCallToolResult),
	fault("content.image-mime-type-short", ids.ContentImageMimeType, `The mimeType of an image is "png".`,
		media("test_image_content", Having("mimeType", "png"))),
	fault("content.image-of-text", ids.ContentImageMimeType, "The mimeType of an image is that of plain text.",
		media("test_image_content", Having("mimeType", "text/plain"))).Warns(),
	fault("content.image-without-data", ids.SchemaCallToolResult, "An image has no data.",
		media("test_image_content", Lacking("data"))),
	fault("content.audio-mime-type-short", ids.ContentAudioMimeType, `The mimeType of audio is "wav".`,
		media("test_audio_content", Having("mimeType", "wav"))),
	fault("content.embedded-uri-path", ids.ContentEmbeddedURIValid, "The uri of an embedded resource is a path.",
		embedded("test_embedded_resource", Having("uri", "/etc/hosts"))).Also(ids.ResourcesURIRfc3986),
	fault("content.prompt-resource-untyped", ids.ContentEmbeddedMimeTypePresent,
		"A resource embedded in a prompt has no mimeType.",
		spoken("test_prompt_with_embedded_resource", func(message object) {
			if inner, ok := message["content"].(object)["resource"].(object); ok {
				delete(inner, "mimeType")
			}
		})),
	fault("content.unknown-type", ids.ContentBlockKnownType, "A block has the type video.",
		Blocks("test_simple_text", Having("type", "video"))),
	fault("content.json-type", ids.ContentBlockKnownType, "A block has the type json.",
		Blocks("test_simple_text", func(block object) {
			block["type"], block["json"] = "json", object{}
			delete(block, "text")
		})),
	fault("content.audience-system", ids.ContentAnnotationsAudienceRoles, "An audience names the role system.",
		annotated(Having("audience", list{"system"}))),
	fault("content.audience-string", ids.ContentAnnotationsAudienceRoles, "An audience is a string.",
		annotated(Having("audience", "user"))),
	fault("content.priority-over-one", ids.ContentAnnotationsPriorityRange, "A priority is 10.",
		annotated(Having("priority", 10))),
	fault("content.embedded-audience-system", ids.ContentAnnotationsAudienceRoles,
		"The audience of an embedded resource's contents names the role system.",
		embedded("test_embedded_resource", Having("annotations", object{"audience": list{"system"}}))),
	fault("content.embedded-priority-over-one", ids.ContentAnnotationsPriorityRange,
		"The priority of an embedded resource's contents is 10.",
		embedded("test_embedded_resource", Having("annotations", object{"priority": 10}))),
	fault("content.last-modified-unix", ids.ContentAnnotationsLastModifiedFormat,
		"lastModified is a date as HTTP writes it.",
		annotated(Having("lastModified", "Wed, 18 Jun 2025 09:00:00 GMT"))),
}
