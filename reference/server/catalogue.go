package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Catalogue holds what a session offers at its beginning.
type Catalogue struct {
	Tools     []*Tool
	Resources []*Resource
	Templates []*Template
	Prompts   []*Prompt
}

// Resource is one resource of a list.
type Resource struct {
	// Definition is the entry of resources/list.
	Definition map[string]any
	// Read returns the contents.
	Read func(ctx context.Context, r *Request) (contents []any, rpcErr *wire.Error)
}

// URI of the resource.
func (r *Resource) URI() string { return member(r.Definition, "uri") }

// Template is one resource template.
type Template struct {
	// Definition is the entry of resources/templates/list.
	Definition map[string]any
	// Match returns the values of the variables in a URI of the template.
	Match func(uri string) (variables map[string]string, ok bool)
	// Read returns the contents of the resource with these variables.
	Read func(ctx context.Context, r *Request, variables map[string]string) (contents []any, rpcErr *wire.Error)
	// Complete holds the variables with what completes them.
	Complete map[string]Completer
}

// URI template of the template.
func (t *Template) URI() string { return member(t.Definition, "uriTemplate") }

// Prompt is one prompt.
type Prompt struct {
	// Definition is the entry of prompts/list.
	Definition map[string]any
	// Get returns the messages for arguments that hold all that is required.
	Get func(ctx context.Context, r *Request, arguments map[string]string) (messages []any, rpcErr *wire.Error)
	// Complete holds what completes arguments; those without an entry have no
	// suggestions.
	Complete map[string]Completer
}

// Name of the prompt.
func (p *Prompt) Name() string { return member(p.Definition, "name") }

// Completer returns all values that fit what was typed, best first. Resolved
// holds other arguments that are already known.
type Completer func(typed string, resolved map[string]string) []string

func member(o map[string]any, name string) string {
	s, _ := o[name].(string)
	return s
}

// ToggleTool removes a tool of that name from the session's list or else adds
// it, and sends the notification. It reports whether the tool was added.
func (s *Session) ToggleTool(t *Tool) bool { return toggle(s, "tools", &s.tools, t, (*Tool).Name) }

// ToggleResource does for resources what ToggleTool does for tools.
func (s *Session) ToggleResource(r *Resource) bool {
	return toggle(s, "resources", &s.resources, r, (*Resource).URI)
}

// TogglePrompt does for prompts what ToggleTool does for tools.
func (s *Session) TogglePrompt(p *Prompt) bool {
	return toggle(s, "prompts", &s.prompts, p, (*Prompt).Name)
}

// toggle removes the item with the key of the given one from a list, or appends it when there is none, and tells an
// initialized client. It reports whether it was added.
func toggle[T any](s *Session, list string, items *[]T, item T, key func(T) string) (added bool) {
	s.mu.Lock()
	before := len(*items)
	*items = slices.DeleteFunc(slices.Clone(*items), func(other T) bool { return key(other) == key(item) })
	if added = len(*items) == before; added {
		*items = append(*items, item)
	}
	s.mu.Unlock()
	if s.Server.offers(list+".listChanged") && s.Initialized() {
		s.Notify("notifications/"+list+"/list_changed", nil)
	}
	return added
}
