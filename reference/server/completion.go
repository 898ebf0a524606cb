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
	ref, problem := object(r.Params, "ref")
	if problem != nil {
		return nil, problem
	}
	if _, ok := r.Params["argument"]; !ok {
		return nil, invalid("argument is missing")
	}
	argument, problem := object(r.Params, "argument")
	if problem != nil {
		return nil, problem
	}
	name, problem := text(argument, "name")
	if problem != nil {
		return nil, problem
	}
	value, problem := text(argument, "value")
	if problem != nil {
		return nil, problem
	}
	resolved, problem := resolvedArguments(r.Params)
	if problem != nil {
		return nil, problem
	}
	completer, problem := r.Session.completer(ref, name)
	if problem != nil {
		return nil, problem
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
	about, problem := object(params, "context")
	if problem != nil {
		return nil, problem
	}
	given, problem := object(about, "arguments")
	if problem != nil {
		return nil, problem
	}
	resolved := make(map[string]string)
	for name := range given {
		if resolved[name], problem = text(given, name); problem != nil {
			return nil, problem
		}
	}
	return resolved, nil
}

// completer returns what completes the argument of a reference; nil when
// nothing is known about the argument.
func (s *Session) completer(ref map[string]any, argument string) (Completer, *wire.Error) {
	kind, problem := text(ref, "type")
	if problem != nil {
		return nil, problem
	}
	switch kind {
	case "ref/prompt":
		name, problem := text(ref, "name")
		if problem != nil {
			return nil, problem
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
		uri, problem := text(ref, "uri")
		if problem != nil {
			return nil, problem
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
