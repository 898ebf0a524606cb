package suites

import (
	"encoding/json"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// offeredLists are the members of an offer by the lists that they come from.
var offeredLists = []struct{ member, method string }{
	{result.OfferTools, "tools/list"},
	{result.OfferPrompts, "prompts/list"},
	{result.OfferResources, "resources/list"},
	{result.OfferTemplates, "resources/templates/list"},
}

// offer returns what a server listed, or nil if there was no handshake.
func offer(t *check.Target) *result.Offer {
	if t.Init == nil || t.Init.Result() == nil {
		return nil
	}
	o := &result.Offer{Instructions: text(t.Init.Result(), "instructions")}
	for _, l := range offeredLists {
		list := t.List(l.method)
		if read := list.Served() && list.Err == nil && !list.Endless && !list.Long; !read &&
			t.Declares(wire.Capability(l.method)) {
			o.Incomplete = append(o.Incomplete, l.member)
		}
	}
	for _, item := range t.Tools() {
		o.Tools = append(o.Tools, result.OfferedTool{
			Name: text(item, "name"), Title: text(item, "title"), Description: text(item, "description"),
			InputSchema: raw(item, "inputSchema"), OutputSchema: raw(item, "outputSchema"),
			Annotations: raw(item, "annotations"),
		})
	}
	for _, item := range t.List("prompts/list").Items {
		p := result.OfferedPrompt{Name: text(item, "name")}
		arguments, _ := item["arguments"].([]any)
		for _, a := range arguments {
			if a, ok := a.(map[string]any); ok {
				required, _ := a["required"].(bool)
				p.Arguments = append(p.Arguments, result.OfferedArgument{Name: text(a, "name"), Required: required})
			}
		}
		o.Prompts = append(o.Prompts, p)
	}
	for _, item := range t.List("resources/list").Items {
		o.Resources = append(o.Resources, result.OfferedResource{URI: text(item, "uri"), Name: text(item, "name"),
			MIMEType: text(item, "mimeType")})
	}
	for _, item := range t.List("resources/templates/list").Items {
		o.Templates = append(o.Templates, result.OfferedTemplate{URITemplate: text(item, "uriTemplate"),
			Name: text(item, "name")})
	}
	o.Sort()
	return o
}

func text(object map[string]any, member string) string {
	s, _ := object[member].(string)
	return strings.ToValidUTF8(s, "\uFFFD")
}

// raw returns a member as JSON, or nil if it is not there.
func raw(object map[string]any, member string) json.RawMessage {
	v, ok := object[member]
	if !ok {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
