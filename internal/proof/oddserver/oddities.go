// Package oddserver has the servers that prove the harness and that the command does not serve.
//
// An oddity is a legal server that a check could accuse. The calm matrix (docs/calm-matrix.md) proves that nothing is
// found. Untried names the requirements that cannot be tried with it.
//
// A hostile server (hostile.go) is a row as well. Every run on one has to end in time, in order and with a report.
//
// The forms (forms.go) are derived from the faults of package mockserver. Package oddclient is the twin for clients.
package oddserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/internal/proof/oddity"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

type (
	apply  = func(o *server.Options)
	object = map[string]any
	list   = []any
)

// Oddity is one way to differ from the reference server that the specification allows.
// A server with it must not be accused of anything (docs/calm-matrix.md).
type Oddity = oddity.Of[server.Options]

// Oddities returns all oddities, grouped by topic. The caller owns the slice.
func Oddities() []Oddity {
	return slices.Concat(spellingOddities, metaOddities, messageOddities, lifecycleOddities, stdioOddities,
		pingOddities, progressOddities, cancellationOddities, toolOddities, schemaOddities, contentOddities,
		resourceOddities, promptOddities, completionOddities, loggingOddities, paginationOddities, askingOddities,
		httpOddities, streamOddities, legacyOddities, authOddities, familyOddities, pairOddities, momentOddities)
}

var odd = oddity.New[server.Options]

// spelling changes the JSON text of all messages.
func spelling(respell func(m any) []byte) apply {
	return Altering(func(out *server.Outgoing) {
		raw := out.Raw
		if raw == nil {
			raw = []byte(Text(out.Message))
		}
		if value, _, err := wire.Decode(raw); err == nil {
			out.Raw = respell(value)
		}
	})
}

// renumbered gives the server's requests other ids. The n-th request of a session gets
// the id whose JSON text id returns.
func renumbered(id func(n int64) string) apply {
	return All(
		Altering(func(out *server.Outgoing) {
			own := Kept[given](out.Session, "renumbered")
			switch {
			case out.Kind == wire.Request:
				if raw, ok := out.Message["id"].(json.RawMessage); ok {
					out.Message["id"] = json.RawMessage(own.give(string(raw), id))
				}
			case out.Method == Cancelled:
				if raw, ok := out.Params()["requestId"].(json.RawMessage); ok {
					out.Params()["requestId"] = json.RawMessage(own.other(string(raw)))
				}
			}
		}),
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			own := Kept[given](s, "renumbered")
			if m.IsResponse() && m.ID.Usable() {
				m.ID = own.original(m.ID)
			}
			next()
		}),
	)
}

// serving adds a tool without arguments.
func serving(name string, serve func(ctx context.Context, r *server.Request) (any, *wire.Error)) apply {
	return ServingTool(object{"name": name, "inputSchema": object{"type": "object"}}, serve)
}

// returning is a tool that always returns the same result.
func returning(result object) func(context.Context, *server.Request) (any, *wire.Error) {
	return func(context.Context, *server.Request) (any, *wire.Error) { return Copied(result), nil }
}

// servingResource adds a resource with contents of its own.
func servingResource(definition object, contents ...any) apply {
	return Offering(func(c *server.Catalogue) {
		c.Resources = append(slices.Clip(c.Resources), &server.Resource{
			Definition: Copied(definition),
			Read: func(context.Context, *server.Request) ([]any, *wire.Error) {
				return Copied(object{"contents": append(list{}, contents...)})["contents"].(list), nil
			},
		})
	})
}

// servingText adds a resource with a text.
func servingText(uri, name string) apply {
	return servingResource(object{"uri": uri, "name": name}, object{"uri": uri, "text": "The text of " + name + "."})
}

// servingPrompt adds a prompt with messages of its own.
func servingPrompt(definition object, messages ...any) apply {
	return Offering(func(c *server.Catalogue) {
		c.Prompts = append(slices.Clip(c.Prompts), &server.Prompt{
			Definition: Copied(definition),
			Get: func(context.Context, *server.Request, map[string]string) ([]any, *wire.Error) {
				return Copied(object{"messages": append(list{}, messages...)})["messages"].(list), nil
			},
		})
	})
}

// saying is a message of a prompt, or of sampling.
func saying(role string, content object) object { return object{"role": role, "content": content} }

// textBlock is a content block of text.
func textBlock(text string) object { return object{"type": "text", "text": text} }

// delayed holds back responses to requests that fit for a time.
func delayed(by time.Duration, fits func(r *server.Request) bool) apply {
	return Altering(func(out *server.Outgoing) {
		if out.Answers != nil && fits(out.Answers) {
			out.Delay = by
		}
	})
}

// limiting drops the notifications of a method beyond some of a session in each window of time.
func limiting(method string, most int, window time.Duration) apply {
	return Withholding(method, func(out *server.Outgoing) bool {
		return Count(out.Session, fmt.Sprint(method, " in ", time.Now().UnixNano()/int64(window))) > most
	})
}

// given holds the ids that a session has given in place of its own, by their JSON text.
type given struct {
	mu     sync.Mutex
	n      int64
	others map[string]string  // by the session's own
	owns   map[string]wire.ID // by the key of the other
}

func (g *given) give(own string, id func(n int64) string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.others == nil {
		g.others, g.owns = make(map[string]string), make(map[string]wire.ID)
	}
	g.n++
	other := id(g.n)
	g.others[own] = other
	g.owns[parsedID(other).Key()] = parsedID(own)
	return other
}

func (g *given) other(own string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cmp.Or(g.others[own], own)
}

func (g *given) original(id wire.ID) wire.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	if own, ok := g.owns[id.Key()]; ok {
		return own
	}
	return id
}

func parsedID(raw string) wire.ID { return wire.Parse([]byte(`{"id":` + raw + `}`)).ID }

// lists are the methods that list, with the member that holds the items.
var lists = map[string]string{
	"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	"prompts/list": "prompts",
}

// onLists applies a change to each of the lists.
func onLists(change func(method, member string) apply) apply {
	return func(o *server.Options) {
		for _, method := range slices.Sorted(maps.Keys(lists)) {
			change(method, lists[method])(o)
		}
	}
}

// everyItem changes the items of all lists.
func everyItem(change func(item object)) apply {
	return onLists(func(method, member string) apply { return Items(method, member, change) })
}

// everyContent changes the content blocks of all calls and prompts, and the contents of
// all resources.
func everyContent(change func(block object)) apply {
	return All(
		Items("tools/call", "content", change),
		Items("prompts/get", "messages", func(message object) {
			if block, ok := message["content"].(object); ok {
				change(block)
			}
		}),
		Items("resources/read", "contents", change),
	)
}

// parallel runs f n times at once and waits for all.
func parallel(n int, f func()) {
	var running sync.WaitGroup
	for range n {
		running.Go(f)
	}
	running.Wait()
}

// needs are the tools of the reference server that ask the client, with the capability.
var needs = map[string]string{"test_sampling": "sampling", "test_elicitation": "elicitation", "test_roots": "roots"}

// refusingUnable answers calls of tools that need what the client has not declared with an error.
func refusingUnable(refusal func(n int) *wire.Error) apply {
	return Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		name, _ := r.Params["name"].(string)
		if capability, ok := needs[name]; ok && !r.Session.ClientHas(capability) {
			return nil, refusal(Count(r.Session, "unable"))
		}
		return next(ctx, r)
	})
}

// inForm sets the form of the answers over HTTP.
func inForm(form server.AnswerForm) apply {
	return func(o *server.Options) {
		o.Behaviour.HTTP.Answer = func(*server.Request) server.AnswerForm { return form }
	}
}
