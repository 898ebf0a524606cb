package server

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// maxCompletions is the most that one result may hold (server/utilities/completion#completion-results).
const maxCompletions = 100

func complete(_ context.Context, r *Request) (any, *wire.Error) {
	var p reading
	ref, argument := p.object(r.Params, "ref"), p.object(r.Params, "argument")
	name, value := p.text(argument, "name"), p.text(argument, "value")
	resolved := p.texts(p.optional(p.optional(r.Params, "context"), "arguments"))
	if p.fault != nil {
		return nil, p.fault
	}
	completer, rpcErr := r.Session.completer(ref, name)
	if rpcErr != nil {
		return nil, rpcErr
	}
	values := []any{}
	total := 0
	if completer != nil {
		for _, v := range completer(value, resolved) {
			if total++; total <= maxCompletions {
				values = append(values, v)
			}
		}
	}
	return map[string]any{"completion": map[string]any{
		"values": values, "total": total, "hasMore": total > len(values),
	}}, nil
}

// completer returns what completes the argument of a reference; nil when
// nothing is known about the argument.
func (s *Session) completer(ref map[string]any, argument string) (Completer, *wire.Error) {
	kind, rpcErr := text(ref, "type")
	if rpcErr != nil {
		return nil, rpcErr
	}
	switch kind {
	case "ref/prompt":
		name, rpcErr := text(ref, "name")
		if rpcErr != nil {
			return nil, rpcErr
		}
		prompt := s.prompt(name)
		if prompt == nil {
			return nil, invalid("unknown prompt %s", wire.Quote(name, 60))
		}
		if all, _ := prompt.arguments(); !slices.Contains(all, argument) {
			return nil, invalid("the prompt has no argument %s", wire.Quote(argument, 60))
		}
		return prompt.Complete[argument], nil
	case "ref/resource":
		uri, rpcErr := text(ref, "uri")
		if rpcErr != nil {
			return nil, rpcErr
		}
		resources, templates := s.resourceList()
		for _, template := range templates {
			if template.URI() != uri {
				continue
			}
			completer, ok := template.Complete[argument]
			if !ok {
				return nil, invalid("the template has no variable %s", wire.Quote(argument, 60))
			}
			return completer, nil
		}
		// A reference may name a resource, too; it has nothing to complete.
		if slices.ContainsFunc(resources, func(r *Resource) bool { return r.URI() == uri }) {
			return nil, nil
		}
		return nil, invalid("unknown resource %s", wire.Quote(uri, 100))
	}
	return nil, invalid("unknown reference type %s", wire.Quote(kind, 60))
}

// startingWith completes from a list by prefix.
func startingWith(values ...string) Completer {
	return func(typed string, _ map[string]string) []string {
		var fit []string
		for _, v := range values {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(typed)) {
				fit = append(fit, v)
			}
		}
		return fit
	}
}
