package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func (s *Session) promptList() []*Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prompts
}

func (s *Session) prompt(name string) *Prompt {
	prompts := s.promptList()
	i := slices.IndexFunc(prompts, func(p *Prompt) bool { return p.Name() == name })
	if i < 0 {
		return nil
	}
	return prompts[i]
}

func listPrompts(_ context.Context, r *Request) (any, *wire.Error) {
	return page(r, "prompts", r.Session.promptList(), (*Prompt).Name, func(p *Prompt) o { return p.Definition })
}

// arguments returns the names of the prompt's arguments, and of those that are
// required.
func (p *Prompt) arguments() (all, required []string) {
	list, _ := p.Definition["arguments"].([]any)
	for _, item := range list {
		o, _ := item.(map[string]any)
		name := member(o, "name")
		all = append(all, name)
		if o["required"] == true {
			required = append(required, name)
		}
	}
	return all, required
}

func getPrompt(ctx context.Context, r *Request) (any, *wire.Error) {
	var p reading
	name, given := p.text(r.Params, "name"), p.optional(r.Params, "arguments")
	if p.fault != nil {
		return nil, p.fault
	}
	prompt := r.Session.prompt(name)
	if prompt == nil {
		// server/prompts#error-handling
		return nil, &wire.Error{Code: InvalidParams, Message: "Unknown prompt: " + oneLine(name)}
	}
	arguments := p.texts(given)
	if p.fault != nil {
		return nil, p.fault
	}
	_, required := prompt.arguments()
	for _, name := range required {
		if _, ok := arguments[name]; !ok {
			return nil, invalid("the required argument %s is missing", name)
		}
	}
	messages, rpcErr := prompt.Get(ctx, r, arguments)
	if rpcErr != nil {
		return nil, rpcErr
	}
	result := map[string]any{"messages": messages}
	if description, ok := prompt.Definition["description"]; ok {
		result["description"] = description
	}
	return result, nil
}
