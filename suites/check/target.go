package check

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Target is what discovery learned of the server under test.
type Target struct {
	Transport string
	Settings  Settings
	Init      *client.Exchange
	// Lists holds the paginated lists by method, for declared capabilities.
	Lists map[string]*List
	// Profile is the name of the built-in profile that the server was recognised
	// by, or "".
	Profile string
	// Unauthorized is the method that the server refused because it lacks
	// authorization; "" if it refused none, or the connection itself.
	Unauthorized string
	// Observed names, by role, calls that were seen to do what the role needs.
	Observed map[string]Call

	// Suggested holds the suggestions of the server by the text of the request for them.
	Suggested sync.Map

	probed  chan struct{}   // closed once Observed is complete
	noOp    string          // see [client.Options]
	refusal *refusal        // to whatever it is asked, or nil
	given   map[string]Call // by role, what the user named
	told    map[string]bool // tools of which the profile says what they do
}

// List is one paginated list, read to its end or to a bound.
type List struct {
	Method string
	Pages  []*client.Exchange
	Items  []map[string]any
	// Endless says that no end is in sight: a cursor came again, or the list was
	// given up at a page that had nothing new.
	Endless bool
	// Long says that the list was given up although each page had something new.
	Long bool
	// Err is what kept the list from being read.
	Err error
	// Lost says that the server ended the session meanwhile.
	Lost bool

	deciding sync.Once
	callable []map[string]any // see [Target.Callable]
	roles    sync.Map         // see [Target.Fitting]
}

// Served reports whether the first page came.
func (l *List) Served() bool { return len(l.Pages) > 0 && l.Pages[0].Result() != nil }

// The list operations and where their items stand.
var listMembers = []struct{ method, member string }{
	{"tools/list", "tools"},
	{"resources/list", "resources"},
	{"resources/templates/list", "resourceTemplates"},
	{"prompts/list", "prompts"},
}

// Bounds of discovery.
const (
	maxPages = 250
	maxItems = 50_000
)

// discover reads the lists of the declared capabilities. The error is a
// *UnresponsiveError: the target answers none of them, nor a ping; or no more of them, nor in
// another session, which ask finds out.
func (t *Target) discover(ctx context.Context, s *client.Session, ask func(context.Context) error) error {
	t.Lists = make(map[string]*List)
	var methods []string
	for _, l := range listMembers {
		if s.Capability(wire.Capability(l.method)) {
			methods = append(methods, l.method)
		}
	}
	for i, method := range methods {
		list := ReadList(ctx, s, method)
		t.Lists[method] = list
		if list.Lost || !late(list.Err) {
			continue
		}
		// The rest of the lists would cost a time limit each.
		if len(t.answered()) == 0 {
			_, err := anyAnswer(ctx, s, "after the handshake", append([]string{"ping"}, methods[i+1:]...)...)
			if unresponsive := (*UnresponsiveError)(nil); errors.As(err, &unresponsive) {
				unresponsive.Unanswered = append([]string{method}, unresponsive.Unanswered...)
				return unresponsive
			}
			continue
		}
		rest := make([]*List, len(methods[i+1:]))
		var unresponsive *UnresponsiveError
		var pinged error
		concurrently(len(rest)+2, func(j int) {
			switch j {
			case len(rest):
				errors.As(ask(ctx), &unresponsive)
			case len(rest) + 1:
				_, pinged = s.Call(ctx, "ping", nil)
			default:
				rest[j] = ReadList(ctx, s, methods[i+1+j])
			}
		})
		for _, list := range rest {
			t.Lists[list.Method] = list
		}
		// A server may leave other sessions waiting as long as this one is open.
		if unresponsive != nil && late(pinged) &&
			!slices.ContainsFunc(rest, func(l *List) bool { return len(l.Pages) > 0 }) {
			return unresponsive
		}
		break
	}
	return nil
}

// list reads the lists once more, in another session. Much behaviour in a session can be judged only by the lists of
// that session.
func (t *Target) list(ctx context.Context, s *client.Session) {
	var reading sync.WaitGroup
	for method, l := range t.Lists {
		if l.Served() && l.Err == nil && !l.Endless && !l.Long {
			reading.Go(func() { ReadList(ctx, s, method) })
		}
	}
	reading.Wait()
}

// chooseNoOp finds a request that does nothing and is served, so that checks of
// something else do not depend on ping.
func (t *Target) chooseNoOp(ctx context.Context, s *client.Session) {
	x, err := s.Call(ctx, "ping", nil)
	if err == nil && (x.Result() != nil || x.Head != nil && x.Head.HTTP.Status == http.StatusUnauthorized) {
		return
	}
	for _, l := range listMembers {
		if t.List(l.method).Served() {
			t.noOp, s.Options.NoOp = l.method, l.method
			return
		}
	}
	if err == nil {
		t.refusal = t.refusesAll(x)
	}
}

// ReadList reads a paginated list to its end. A cursor that comes again ends
// it as endless.
func ReadList(ctx context.Context, s *client.Session, method string) *List {
	list := readList(method, func(params any) (*client.Exchange, error) { return s.Call(ctx, method, params) })
	list.Lost = s.Lost()
	return list
}

// readList reads a list by a call that asks for one page of it.
func readList(method string, call func(params any) (*client.Exchange, error)) *List {
	list := &List{Method: method}
	member := ""
	for _, l := range listMembers {
		if l.method == method {
			member = l.member
		}
	}
	seen, known := make(map[string]bool), make(map[string]bool)
	var params any
	for {
		x, err := call(params)
		if err != nil {
			list.Err = err
			return list
		}
		list.Pages = append(list.Pages, x)
		before := len(list.Items)
		items, _ := x.Result()[member].([]any)
		for _, item := range items {
			if o, ok := item.(map[string]any); ok {
				list.Items = append(list.Items, o)
			}
		}
		cursor, more := x.Result()["nextCursor"].(string)
		if !more {
			return list
		}
		fresh := false
		for _, o := range list.Items[before:] {
			key := string(client.Marshal(o))
			fresh = fresh || !known[key]
			known[key] = true
		}
		if over := len(list.Pages) >= maxPages || len(list.Items) >= maxItems; over || seen[cursor] {
			list.Endless = seen[cursor] || !fresh
			list.Long = !list.Endless
			return list
		}
		seen[cursor] = true
		params = map[string]any{"cursor": cursor}
	}
}

// Recorded returns what discovery learned in the first session of a run, from the record
// of that: Init and Lists alone. Both are empty if no session was established.
func Recorded(logs []*wire.Log) *Target {
	t := &Target{Lists: make(map[string]*List)}
	for _, log := range slices.Backward(logs) { // the last one counts: those before were refused
		if log.Label != FirstLabel {
			continue
		}
		t.Transport = log.Transport
		if c := log.Conversation(); c.Handshaken() {
			t.Init = c.Init
		}
		for _, l := range listMembers {
			if t.Declares(wire.Capability(l.method)) {
				t.Lists[l.method] = readList(l.method, replay(log.Requests(wire.Client, l.method)))
			}
		}
		break
	}
	return t
}

// errNotRecorded says that the answer to a request is not in the record, or that it was not
// awaited any more when it came.
var errNotRecorded = errors.New("the record has no answer")

// replay returns a call that finds the pages of a list among the requests that were sent
// for it, in their order.
func replay(sent []*client.Exchange) func(params any) (*client.Exchange, error) {
	return func(params any) (*client.Exchange, error) {
		for len(sent) > 0 {
			x := sent[0]
			if cursor := wire.At(params, "cursor"); wire.At(x.Request.Msg.Params, "cursor") != cursor {
				break
			}
			sent = sent[1:]
			refused := x.Head != nil && x.Head.HTTP.Status >= http.StatusMultipleChoices
			switch {
			case x.Result() == nil && x.Deferred() && len(sent) > 0:
				// It was sent again, after a while.
			case x.Response == nil && !refused, x.Cancelled != nil &&
				(x.Response == nil || x.Cancelled.Seq < x.Response.Seq):
				return nil, errNotRecorded
			default:
				return x, nil
			}
		}
		return nil, errNotRecorded
	}
}

// List returns a list, or an empty one when it was not read.
func (t *Target) List(method string) *List {
	if l, ok := t.Lists[method]; ok {
		return l
	}
	return &List{Method: method}
}

// Methods returns the methods of the lists that were read, in a fixed order.
func (t *Target) Methods() []string { return slices.Sorted(maps.Keys(t.Lists)) }

// Tools returns the tools of the server.
func (t *Target) Tools() []map[string]any { return t.List("tools/list").Items }

// Declares reports whether the server declared a capability, as [wire.Declares] does.
func (t *Target) Declares(capability string) bool {
	return t.Init != nil && wire.Declares(t.Init.Capabilities(), capability)
}

// Capable returns the options of a client that has all capabilities and answers every request.
func Capable() client.Options {
	return client.Options{Capabilities: AllCapabilities(), Answers: StandardAnswers()}
}

// AllCapabilities returns every capability that a client can declare.
func AllCapabilities() map[string]any {
	return map[string]any{
		"roots":       map[string]any{"listChanged": true},
		"sampling":    map[string]any{},
		"elicitation": map[string]any{},
	}
}

// StandardAnswers returns well-formed answers to the requests of a server.
func StandardAnswers() map[string]client.Answer {
	return map[string]client.Answer{
		"roots/list": func(context.Context, any) (any, *wire.Error) {
			return map[string]any{"roots": []any{map[string]any{"uri": "file:///tmp", "name": "tmp"}}}, nil
		},
		"sampling/createMessage": func(_ context.Context, params any) (any, *wire.Error) {
			if !Sampleable(params) {
				return nil, &wire.Error{Code: -32602,
					Message: "Invalid params: a message is neither text, image nor audio"}
			}
			return map[string]any{
				"role": "assistant", "model": "mcpconform", "stopReason": "endTurn",
				"content": map[string]any{"type": "text", "text": "A sampled answer."},
			}, nil
		},
		"elicitation/create": func(_ context.Context, params any) (any, *wire.Error) {
			return map[string]any{"action": "accept", "content": Form(wire.At(params, "requestedSchema"))}, nil
		},
	}
}

// Sampleable reports whether the messages of a sampling request have content of
// a kind that sampling knows (client/sampling#message-content).
func Sampleable(params any) bool {
	messages, _ := wire.At(params, "messages").([]any)
	for _, m := range messages {
		if kind := wire.At(m, "content", "type"); kind != "text" && kind != "image" && kind != "audio" {
			return false
		}
	}
	return true
}

// RPC is a method with its params.
type RPC struct {
	Method string
	Params map[string]any
}
