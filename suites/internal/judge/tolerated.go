package judge

import (
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// A server is free to send some messages, and the client has to cope. A client that continues the session copes with
// the messages before.
var toleratedRules = []Rule{{
	Name: "tolerated",
	Requirements: []string{ids.ContentAnnotationsOptional, ids.ContentAnnotationsAudienceSeveral,
		ids.PromptsMessageContentKinds, ids.ResourcesURISchemeFileXdgMime, ids.ResourcesReadSeveralContents,
		ids.ToolsResultStructuredOrUnstructured, ids.ToolsResultMixedContent, ids.ToolsResultResourceLinks,
		ids.ToolsResourceLinkUnlisted, ids.ToolsResultEmbeddedResources, ids.ToolsResultImage, ids.ToolsResultAudio,
		ids.ToolsOutputSchemaOptional, ids.LoggingDefaultServerDecides, ids.LoggingMessageAnyData,
		ids.LoggingMessageLoggerOptional, ids.ProgressNone, ids.ToolsListChangedUnsolicited,
		ids.PromptsListChangedUnsolicited, ids.ResourcesListChangedUnsolicited},
	Judge: func(c *Conversation, rec *Recorder) {
		last := c.lastOf(wire.Client)
		for _, t := range c.Tolerances() {
			if t.Message.Seq < last {
				rec.Pass(t.Requirement, wire.Client)
			}
		}
	},
}}

// A Tolerance is a message with which a client has to cope, as a requirement says.
type Tolerance struct {
	Requirement schema.ID
	Message     *wire.Event
}

// Survived reports whether the client sent something after a message.
func (c *Conversation) Survived(e *wire.Event) bool { return e.Seq < c.lastOf(wire.Client) }

// Tolerances returns what the server has sent that a client has to cope with.
func (c *Conversation) Tolerances() []Tolerance {
	var all []Tolerance
	add := func(e *wire.Event, requirements ...string) {
		for _, id := range requirements {
			all = append(all, Tolerance{id, e})
		}
	}
	c.tolerableContent(add)
	c.tolerableTools(add)
	c.tolerableResources(add)
	c.tolerableMessages(add)
	for _, x := range c.Exchanges {
		if x.From() == wire.Client && x.Token != nil && x.Response != nil && len(x.Progress) == 0 {
			add(x.Response, ids.ProgressNone)
		}
	}
	return all
}

// tolerable takes a message and the requirements that say that a client copes with it.
type tolerable = func(e *wire.Event, ids ...string)

func (c *Conversation) tolerableContent(add tolerable) {
	c.content(func(p *piece) {
		if p.event.From != wire.Server {
			return
		}
		if annotations, ok := p.value["annotations"].(map[string]any); ok {
			add(p.event, ids.ContentAnnotationsOptional)
			if audience, _ := annotations["audience"].([]any); len(audience) > 1 {
				add(p.event, ids.ContentAnnotationsAudienceSeveral)
			}
		}
		if p.shape == blockShape && p.exchange.Method() == "prompts/get" && p.value["type"] != "text" {
			add(p.event, ids.PromptsMessageContentKinds)
		}
	})
}

func (c *Conversation) tolerableTools(add tolerable) {
	answered := c.inOrder()
	listed, read := make(map[string]bool), false
	for _, x := range answered {
		if x.Method() == "resources/list" && x.Result() != nil {
			read = true
			listedURIs(x, listed)
		}
	}
	for _, x := range answered {
		switch x.Method() {
		case "tools/list":
			items, _ := x.Result()["tools"].([]any)
			if slices.ContainsFunc(items, func(item any) bool { return wire.At(item, "outputSchema") != nil }) {
				add(x.Response, ids.ToolsOutputSchemaOptional)
			}
		case "tools/call":
			if x.Result()["structuredContent"] != nil {
				add(x.Response, ids.ToolsResultStructuredOrUnstructured)
			}
			blocks, _ := x.Result()["content"].([]any)
			kinds := make(map[any]bool)
			for _, block := range blocks {
				kind := wire.At(block, "type")
				kinds[kind] = true
				switch uri, _ := wire.At(block, "uri").(string); {
				case kind == "image":
					add(x.Response, ids.ToolsResultImage)
				case kind == "audio":
					add(x.Response, ids.ToolsResultAudio)
				case kind == "resource":
					add(x.Response, ids.ToolsResultEmbeddedResources)
				case kind == "resource_link" && read && !listed[uri]:
					add(x.Response, ids.ToolsResultResourceLinks, ids.ToolsResourceLinkUnlisted)
				case kind == "resource_link":
					add(x.Response, ids.ToolsResultResourceLinks)
				}
			}
			if len(kinds) > 1 {
				add(x.Response, ids.ToolsResultMixedContent)
			}
		}
	}
}

// listedURIs adds the URIs of the resources on a page.
func listedURIs(page *Exchange, uris map[string]bool) {
	for _, item := range wire.Items(page.Result(), "resources") {
		if uri, ok := wire.At(item, "uri").(string); ok {
			uris[uri] = true
		}
	}
}

func (c *Conversation) tolerableResources(add tolerable) {
	for _, x := range c.Exchanges {
		if x.From() != wire.Client || x.Result() == nil {
			continue
		}
		switch x.Method() {
		case "resources/list":
			if slices.ContainsFunc(wire.Items(x.Result(), "resources"), isDirectory) {
				add(x.Response, ids.ResourcesURISchemeFileXdgMime)
			}
		case "resources/read":
			if contents, _ := x.Result()["contents"].([]any); len(contents) > 1 {
				add(x.Response, ids.ResourcesReadSeveralContents)
			}
		}
	}
}

func (c *Conversation) tolerableMessages(add tolerable) {
	asked := false
	for _, e := range c.Messages {
		switch {
		case e.From == wire.Client:
			asked = asked || e.Msg.Method == "logging/setLevel"
		case e.Msg.Kind != wire.Notification:
		case e.Msg.Method == "notifications/message":
			if !asked {
				add(e, ids.LoggingDefaultServerDecides)
			}
			params, _ := e.Msg.Params.(map[string]any)
			if data, ok := params["data"]; ok {
				if _, text := data.(string); !text {
					add(e, ids.LoggingMessageAnyData)
				}
			}
			if _, ok := params["logger"]; ok {
				add(e, ids.LoggingMessageLoggerOptional)
			}
		default:
			for _, feature := range []string{"tools", "prompts", "resources"} {
				if e.Msg.Method == listChanged(feature) {
					add(e, feature+".list-changed.unsolicited")
				}
			}
		}
	}
}
