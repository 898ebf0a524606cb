package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Offer is what a server listed in a run, sorted by name. Target.Capabilities has its declarations.
type Offer struct {
	Tools     []OfferedTool     `json:"tools,omitempty"`
	Prompts   []OfferedPrompt   `json:"prompts,omitempty"`
	Resources []OfferedResource `json:"resources,omitempty"`
	Templates []OfferedTemplate `json:"resourceTemplates,omitempty"`
	// Instructions are shortened like descriptions.
	Instructions string `json:"instructions,omitempty"`
	// Incomplete names the members that do not hold all that the server offers, as a list
	// was not read to its end or is too large.
	Incomplete []string `json:"incomplete,omitempty" redact:"-"`
	// Omitted counts the items that were left out because they are too large or too many.
	Omitted int `json:"omitted,omitempty"`
}

// The members of an Offer that are lists.
const (
	OfferTools     = "tools"
	OfferPrompts   = "prompts"
	OfferResources = "resources"
	OfferTemplates = "resourceTemplates"
)

// OfferedTool is a tool as the server listed it.
type OfferedTool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"` // shortened
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// OfferedPrompt is a prompt as the server listed it.
type OfferedPrompt struct {
	Name      string            `json:"name"`
	Arguments []OfferedArgument `json:"arguments,omitempty"`
}

// OfferedArgument is an argument of a prompt.
type OfferedArgument struct {
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
}

// OfferedResource is a resource as the server listed it.
type OfferedResource struct {
	URI      string `json:"uri"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
}

// OfferedTemplate is a resource template as the server listed it.
type OfferedTemplate struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name,omitempty"`
}

// Bounds on an offer, in bytes but for the items of one list.
const (
	maxOffer       = 256 << 10
	maxOffered     = 5000
	maxDescription = 500
	maxInstruction = 2000
)

// Sort sorts the items by their names, and leaves out what is too much by its number alone.
func (o *Offer) Sort() {
	o.Tools = inOrder(o, OfferTools, o.Tools, func(t OfferedTool) string { return t.Name })
	o.Prompts = inOrder(o, OfferPrompts, o.Prompts, func(p OfferedPrompt) string { return p.Name })
	o.Resources = inOrder(o, OfferResources, o.Resources, func(r OfferedResource) string { return r.URI })
	o.Templates = inOrder(o, OfferTemplates, o.Templates, func(t OfferedTemplate) string { return t.URITemplate })
}

func inOrder[T any](o *Offer, member string, list []T, name func(T) string) []T {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	if more := len(list) - maxOffered; more > 0 {
		o.leaveOut(member, more)
		list = list[:maxOffered]
	}
	return list
}

func (o *Offer) leaveOut(member string, n int) {
	o.Omitted += n
	if !slices.Contains(o.Incomplete, member) {
		o.Incomplete = append(o.Incomplete, member)
	}
}

// Shorten bounds the offer. Secrets have to be taken out before, which this could cut in two.
func (o *Offer) Shorten() {
	o.Instructions = brief(o.Instructions, maxInstruction)
	left := maxOffer - len(o.Instructions)
	for i := range o.Tools {
		o.Tools[i].Description = brief(o.Tools[i].Description, maxDescription)
	}
	o.Tools = fitting(o, OfferTools, o.Tools, &left)
	o.Prompts = fitting(o, OfferPrompts, o.Prompts, &left)
	o.Templates = fitting(o, OfferTemplates, o.Templates, &left)
	o.Resources = fitting(o, OfferResources, o.Resources, &left)
}

// fitting leaves out the items that do not fit into what is left.
func fitting[T any](o *Offer, member string, list []T, left *int) []T {
	return slices.DeleteFunc(list, func(item T) bool {
		text, err := json.Marshal(item)
		if err != nil || len(text) > *left {
			o.leaveOut(member, 1)
			return true
		}
		*left -= len(text)
		return false
	})
}

// brief shortens a text to some n bytes. A digest stands for the missing part, so that two shortened texts can be
// compared.
func brief(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("… [%d bytes left out, sha256 %x]", len(s)-n,
		sha256.Sum256([]byte(s)))
}
