package server

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func (s *Session) resourceList() ([]*Resource, []*Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resources, s.templates
}

func listResources(_ context.Context, r *Request) (any, *wire.Error) {
	resources, _ := r.Session.resourceList()
	return page(r, "resources", resources, (*Resource).URI, func(r *Resource) o { return r.Definition })
}

func listTemplates(_ context.Context, r *Request) (any, *wire.Error) {
	_, templates := r.Session.resourceList()
	return page(r, "resourceTemplates", templates, (*Template).URI, func(t *Template) o { return t.Definition })
}

// find returns what reads the resource, or error -32002 (server/resources#error-handling).
func (s *Session) find(uri string) (func(context.Context, *Request) ([]any, *wire.Error), *wire.Error) {
	resources, templates := s.resourceList()
	for _, resource := range resources {
		if resource.URI() == uri {
			return resource.Read, nil
		}
	}
	for _, template := range templates {
		if variables, ok := template.Match(uri); ok {
			return func(ctx context.Context, r *Request) ([]any, *wire.Error) {
				return template.Read(ctx, r, variables)
			}, nil
		}
	}
	return nil, &wire.Error{Code: ResourceNotFound, Message: "Resource not found", Data: map[string]any{"uri": uri}}
}

func readResource(ctx context.Context, r *Request) (any, *wire.Error) {
	uri, rpcErr := text(r.Params, "uri")
	if rpcErr != nil {
		return nil, rpcErr
	}
	read, rpcErr := r.Session.find(uri)
	if rpcErr != nil {
		return nil, rpcErr
	}
	contents, rpcErr := read(ctx, r)
	if rpcErr != nil {
		return nil, rpcErr
	}
	return map[string]any{"contents": contents}, nil
}

func subscribe(_ context.Context, r *Request) (any, *wire.Error) {
	uri, rpcErr := text(r.Params, "uri")
	if rpcErr != nil {
		return nil, rpcErr
	}
	if _, rpcErr := r.Session.find(uri); rpcErr != nil {
		return nil, rpcErr
	}
	r.Session.mu.Lock()
	defer r.Session.mu.Unlock()
	if len(r.Session.subscriptions) >= maxSubscriptions {
		return nil, &wire.Error{Code: InternalError, Message: "Too many subscriptions"}
	}
	r.Session.subscriptions[uri] = true
	return map[string]any{}, nil
}

func unsubscribe(_ context.Context, r *Request) (any, *wire.Error) {
	uri, rpcErr := text(r.Params, "uri")
	if rpcErr != nil {
		return nil, rpcErr
	}
	r.Session.mu.Lock()
	defer r.Session.mu.Unlock()
	delete(r.Session.subscriptions, uri)
	return map[string]any{}, nil
}

// Updated tells the client that a resource has changed, if it is subscribed.
func (s *Session) Updated(uri string) {
	s.mu.Lock()
	subscribed := s.subscriptions[uri]
	s.mu.Unlock()
	if subscribed {
		s.Notify("notifications/resources/updated", map[string]any{"uri": uri})
	}
}

// Subscriptions returns the URIs to which the client is subscribed, sorted.
func (s *Session) Subscriptions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscriptions))
}

// isURI reports whether a text is an absolute URI (RFC 3986).
func isURI(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c)
	})
}
