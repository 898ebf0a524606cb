package hooks

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// ServingTool adds a tool.
func ServingTool(definition object, serve func(ctx context.Context, r *server.Request) (any, *wire.Error)) apply {
	return Offering(func(c *server.Catalogue) {
		c.Tools = append(slices.Clip(c.Tools), &server.Tool{
			Definition: Copied(definition),
			Call: func(ctx context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
				return serve(ctx, r)
			},
		})
	})
}

// ClockURI is a resource that changes by itself.
const ClockURI = "memo://clock"

// Clock offers a resource that differs at each reading, before all others.
var Clock = Offering(func(c *server.Catalogue) {
	c.Resources = slices.Concat([]*server.Resource{{
		Definition: object{"uri": ClockURI, "name": "clock"},
		Read: func(_ context.Context, r *server.Request) ([]any, *wire.Error) {
			return list{object{"uri": ClockURI, "text": fmt.Sprint("reading ", Count(r.Session, "clock"))}}, nil
		},
	}}, c.Resources)
})

// Ticking offers a clock of which subscribers are told time and again.
var Ticking = All(Clock, Periodically(300*time.Millisecond, 400, func(s *server.Session) {
	if slices.Contains(s.Subscriptions(), ClockURI) {
		s.Notify("notifications/resources/updated", object{"uri": ClockURI})
	}
}))

const (
	WatchedURI = "test://watched-resource"
	DottedURI  = "test://notes.v1/readme.txt"
)

// ReadingText reads a text at a URI.
func ReadingText(uri string) func(context.Context, *server.Request) ([]any, *wire.Error) {
	return func(context.Context, *server.Request) ([]any, *wire.Error) {
		return list{object{"uri": uri, "mimeType": "text/plain", "text": "open"}}, nil
	}
}

// TemplateOf returns a template whose URIs are those that a pattern fits; its groups are the variables.
func TemplateOf(uriTemplate string, pattern *regexp.Regexp, variables ...string) *server.Template {
	return &server.Template{
		Definition: object{"uriTemplate": uriTemplate, "name": variables[0], "mimeType": "text/plain"},
		Match: func(uri string) (map[string]string, bool) {
			groups := pattern.FindStringSubmatch(uri)
			if groups == nil {
				return nil, false
			}
			values := map[string]string{"": uri}
			for i, name := range variables {
				values[name] = groups[i+1]
			}
			return values, true
		},
		Read: func(ctx context.Context, r *server.Request, values map[string]string) ([]any, *wire.Error) {
			return ReadingText(values[""])(ctx, r)
		},
		Complete: map[string]server.Completer{
			variables[0]: func(string, map[string]string) []string { return []string{"1", "2"} },
		},
	}
}

// UnknownTool fits calls of tools that do not exist.
func UnknownTool(r *server.Request) bool {
	name, _ := r.Params["name"].(string)
	return !slices.ContainsFunc(server.DefaultCatalogue().Tools, func(t *server.Tool) bool { return t.Name() == name })
}

// Failing fails a call if a result that the client gave in the course of it
// fits. It needs overhearing.
func Failing(fits func(result object) bool) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		seen := r.Session.Value("answers", func() any { return make(chan object, 64) }).(chan object)
		for len(seen) > 0 {
			<-seen
		}
		result, problem := next(ctx, r)
		for {
			select {
			case answer := <-seen:
				if fits(answer) {
					return object{"content": list{object{"type": "text", "text": "unusable answer"}}, "isError": true},
						nil
				}
			default:
				return result, problem
			}
		}
	}
}

// Overhearing keeps the client's results for failing.
func Overhearing() apply {
	return Receiving(func(s *server.Session, m *wire.Message, next func()) {
		if result, ok := m.Result.(object); ok && m.Kind == wire.Result {
			seen := s.Value("answers", func() any { return make(chan object, 64) }).(chan object)
			select {
			case seen <- result:
			default:
			}
		}
		next()
	})
}

// FailingOn makes a tool fail when the client answers it in a way that fits.
func FailingOn(name string, fits func(result object) bool) apply {
	return All(Overhearing(), WrappingTool(name, Failing(fits)))
}

// TextOf returns content that is one text.
func TextOf(s string) list { return list{object{"type": "text", "text": s}} }

// Pardoning answers refused calls with a result.
func Pardoning(result object) server.Middleware {
	return func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		given, problem := next(ctx, r)
		if problem != nil {
			return Copied(result), nil
		}
		return given, problem
	}
}
