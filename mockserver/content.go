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
	return Blocks(tool, func(block object) {
		if inner, ok := block["resource"].(object); ok {
			change(inner)
		}
	})
}

// annotated changes the annotations of a tool's blocks.
func annotated(change func(annotations object)) apply {
	return Blocks("annotated_content", func(block object) {
		if annotations, ok := block["annotations"].(object); ok {
			change(annotations)
		}
	})
}

// The content of tool results, prompts and resources.
var contentFaults = []Fault{
	{ID: "content.image-data-url", Requirement: ids.ContentImageBase64,
		Summary: "The data of an image is a data URL.",
		Apply:   media("test_image_content", Having("data", "data:image/png;base64,iVBORw0KGgo="))},
	{ID: "content.image-base64url", Requirement: ids.ContentImageBase64,
		Summary: "The data of an image is in the alphabet for URLs.",
		Apply:   media("test_image_content", Having("data", "_-8="))},
	{ID: "content.image-unpadded", Requirement: ids.ContentImageBase64,
		Summary: "The data of an image lacks the padding of base64.",
		Apply:   media("test_image_content", Having("data", "aGVsbG8"))},
	{ID: "content.audio-line-breaks", Requirement: ids.ContentAudioBase64,
		Summary: "The data of audio is base64 with line breaks.",
		Apply:   media("test_audio_content", Having("data", "UklG\nRg=="))},
	{ID: "content.image-mime-type-missing", Requirement: ids.ContentImageMimeType,
		Summary: "An image has no mimeType.", Collateral: []string{ids.SchemaCallToolResult},
		Apply: media("test_image_content", Lacking("mimeType"))},
	{ID: "content.image-mime-type-short", Requirement: ids.ContentImageMimeType,
		Summary: `The mimeType of an image is "png".`,
		Apply:   media("test_image_content", Having("mimeType", "png"))},
	{ID: "content.image-of-text", Requirement: ids.ContentImageMimeType, WarnOnly: true,
		Summary: "The mimeType of an image is that of plain text.",
		Apply:   media("test_image_content", Having("mimeType", "text/plain"))},
	{ID: "content.image-without-data", Requirement: ids.SchemaCallToolResult, Summary: "An image has no data.",
		Apply: media("test_image_content", Lacking("data"))},
	{ID: "content.audio-mime-type-short", Requirement: ids.ContentAudioMimeType,
		Summary: `The mimeType of audio is "wav".`,
		Apply:   media("test_audio_content", Having("mimeType", "wav"))},
	{ID: "content.embedded-uri-path", Requirement: ids.ContentEmbeddedURIValid,
		Summary: "The uri of an embedded resource is a path.", Collateral: []string{ids.ResourcesURIRfc3986},
		Apply: embedded("test_embedded_resource", Having("uri", "/etc/hosts"))},
	{ID: "content.prompt-resource-untyped", Requirement: ids.ContentEmbeddedMimeTypePresent,
		Summary: "A resource embedded in a prompt has no mimeType.",
		Apply: spoken("test_prompt_with_embedded_resource", func(message object) {
			if inner, ok := message["content"].(object)["resource"].(object); ok {
				delete(inner, "mimeType")
			}
		})},
	{ID: "content.unknown-type", Requirement: ids.ContentBlockKnownType, Summary: "A block has the type video.",
		Apply: Blocks("test_simple_text", Having("type", "video"))},
	{ID: "content.json-type", Requirement: ids.ContentBlockKnownType, Summary: "A block has the type json.",
		Apply: Blocks("test_simple_text", func(block object) {
			block["type"], block["json"] = "json", object{}
			delete(block, "text")
		})},
	{ID: "content.audience-system", Requirement: ids.ContentAnnotationsAudienceRoles,
		Summary: "An audience names the role system.", Apply: annotated(Having("audience", list{"system"}))},
	{ID: "content.audience-string", Requirement: ids.ContentAnnotationsAudienceRoles,
		Summary: "An audience is a string.", Apply: annotated(Having("audience", "user"))},
	{ID: "content.priority-over-one", Requirement: ids.ContentAnnotationsPriorityRange, Summary: "A priority is 10.",
		Apply: annotated(Having("priority", 10))},
	{ID: "content.embedded-audience-system", Requirement: ids.ContentAnnotationsAudienceRoles,
		Summary: "The audience of an embedded resource's contents names the role system.",
		Apply:   embedded("test_embedded_resource", Having("annotations", object{"audience": list{"system"}}))},
	{ID: "content.embedded-priority-over-one", Requirement: ids.ContentAnnotationsPriorityRange,
		Summary: "The priority of an embedded resource's contents is 10.",
		Apply:   embedded("test_embedded_resource", Having("annotations", object{"priority": 10}))},
	{ID: "content.last-modified-unix", Requirement: ids.ContentAnnotationsLastModifiedFormat,
		Summary: "lastModified is a date as HTTP writes it.",
		Apply:   annotated(Having("lastModified", "Wed, 18 Jun 2025 09:00:00 GMT"))},
}
