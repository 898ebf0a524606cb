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
	if _, ok := r.Params["ref"]; !ok {
		return nil, invalid("ref is missing")
	}
	ref, rpcErr := object(r.Params, "ref")
	if rpcErr != nil {
		return nil, rpcErr
	}
	if _, ok := r.Params["argument"]; !ok {
		return nil, invalid("argument is missing")
	}
	argument, rpcErr := object(r.Params, "argument")
	if rpcErr != nil {
		return nil, rpcErr
	}
	name, rpcErr := text(argument, "name")
	if rpcErr != nil {
		return nil, rpcErr
	}
	value, rpcErr := text(argument, "value")
	if rpcErr != nil {
		return nil, rpcErr
	}
	resolved, rpcErr := resolvedArguments(r.Params)
	if rpcErr != nil {
		return nil, rpcErr
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

func resolvedArguments(params map[string]any) (map[string]string, *wire.Error) {
	about, rpcErr := object(params, "context")
	if rpcErr != nil {
		return nil, rpcErr
	}
	given, rpcErr := object(about, "arguments")
	if rpcErr != nil {
		return nil, rpcErr
	}
	resolved := make(map[string]string)
	for name := range given {
		if resolved[name], rpcErr = text(given, name); rpcErr != nil {
			return nil, rpcErr
		}
	}
	return resolved, nil
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
