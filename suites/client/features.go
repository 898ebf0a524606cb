package client

import (
	"context"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/judge"
)

var featureScenarios = []*Scenario{
	{
		Name: "features/sampling",
		Requirements: []string{
			"sampling.request.optional-members", "sampling.include-context.optional", "sampling.metadata.free-form",
			"sampling.error.returned", "lifecycle.capability.client-refuses-sampling", "base.error.invalid-params",
		},
		Needs:   "the client sent no request after the handshake, so the server could not ask it anything while it waits",
		Options: Scripted(askSampling),
		Judge: func(t *T) {
			if !t.declares("sampling") {
				t.judgeRefusal("undeclared-sampling", "lifecycle.capability.client-refuses-sampling")
				return
			}
			t.Inconclusive("the client declares sampling, so it has nothing to refuse", "lifecycle.capability.client-refuses-sampling")
			plain, ok := t.Answered("sampling-plain")
			if !ok || plain.Response.Msg.Kind != wire.Result {
				t.Inconclusive("the client answers no sampling request with a generated message",
					"sampling.request.optional-members", "sampling.include-context.optional", "sampling.metadata.free-form")
			} else {
				t.judgeLikePlain("sampling-full", "sampling.request.optional-members")
				for _, context := range []string{"none", "thisServer", "allServers"} {
					t.judgeLikePlain("sampling-"+context, "sampling.include-context.optional")
				}
				t.judgeLikePlain("sampling-metadata", "sampling.metadata.free-form")
			}
			if x, ok := t.Answered("sampling-broken"); ok {
				t.Check(x.Response.Msg.Kind == wire.ErrorResponse, "sampling.error.returned",
					"a sampling request without a usable message was answered with a generated message", x.Events()...)
				if e := x.Response.Msg.Error; e != nil {
					t.Check(e.Code == -32602, "base.error.invalid-params", "a sampling request whose messages are not an array was not refused with -32602", x.Events()...)
				}
			}
		},
	},
	{
		Name: "features/elicitation",
		Requirements: []string{
			"elicitation.schema.client-supports", "elicitation.schema.number-bounds", "lifecycle.capability.client-refuses-elicitation",
		},
		Needs:   "the client sent no request after the handshake, so the server could not ask it anything while it waits",
		Options: Scripted(askElicitation),
		Judge: func(t *T) {
			if !t.declares("elicitation") {
				t.judgeRefusal("undeclared-elicitation", "lifecycle.capability.client-refuses-elicitation")
				return
			}
			t.Inconclusive("the client declares elicitation, so it has nothing to refuse", "lifecycle.capability.client-refuses-elicitation")
			if c := t.Handshake(); c != nil && c.Version < server.Version {
				t.Inconclusive("the negotiated version has no elicitation", "elicitation.schema.client-supports",
					"elicitation.schema.number-bounds", "lifecycle.capability.client-refuses-elicitation")
				return
			}
			plain, ok := t.Answered("elicitation-string")
			if !ok || plain.Response.Msg.Kind != wire.Result {
				t.Inconclusive("the client answers no elicitation request with a result", "elicitation.schema.client-supports", "elicitation.schema.number-bounds")
				return
			}
			for _, f := range forms {
				t.judgeLikePlain("elicitation-"+f.name, "elicitation.schema.client-supports")
			}
			t.judgeLikePlain("elicitation-number", "elicitation.schema.number-bounds")
		},
	},
	{
		Name:         "features/roots",
		Requirements: []string{"roots.list.current", "cancellation.either-side", "cancellation.race"},
		Needs:        "the client sent no request after the handshake, so the server could not ask it anything while it waits",
		Options:      Scripted(askRoots),
		Judge: func(t *T) {
			if x, ok := t.Answered("after-cancelling"); ok && x.Response.Msg.Kind == wire.Result {
				t.Exercised("cancellation.either-side", "cancellation.race")
			} else if _, before := t.Answered("before-cancelling"); before && x != nil && t.silentTo(x) {
				t.Violation("cancellation.race", "the client does not answer pings any more after requests to it were cancelled", x.Request)
			}
			const id = "roots.list.current"
			if !t.declares("roots") {
				t.Inconclusive("the client does not declare roots", id)
				return
			}
			t.Inconclusive("the client's roots did not change", id)
		},
	},
	{
		Name: "features/progress",
		Requirements: []string{
			"progress.notify", "progress.value-float", "progress.total-float", "progress.frequency", "progress.omit-total",
		},
		Needs: "the client did not ask for the progress of a request",
		Options: func(*ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{Methods: map[string]server.Middleware{"*": progressing}}}
		},
		Judge: func(t *T) {
			for _, x := range t.Requests() {
				if x.Token != nil && len(x.Progress) > 0 {
					t.JudgeContinued("progress was reported", "progress.notify", "progress.value-float", "progress.total-float",
						"progress.frequency", "progress.omit-total")
					return
				}
			}
		},
	},
	{
		Name:         "features/errors",
		Requirements: []string{"base.error.data-free"},
		Needs:        "the client sent nothing after an error",
		Options: func(*ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{
				Breaks:  []string{"base.error.invalid-params", "base.error.reserved-codes"},
				Methods: map[string]server.Middleware{"*": failing},
			}}
		},
		Judge: func(t *T) {
			for _, c := range t.Conversations {
				for _, x := range requests(c) {
					if r := x.Response; r != nil && r.Msg.Kind == wire.ErrorResponse && t.goesOn(c, r) {
						t.Exercised("base.error.data-free")
					}
				}
			}
		},
	},
}

// goesOn reports whether the client has sent a request after an event.
func (t *T) goesOn(c *judge.Conversation, after *wire.Event) bool {
	for _, x := range requests(c) {
		if x.Request.Seq > after.Seq {
			return true
		}
	}
	return false
}

func (t *T) declares(capability string) bool {
	c := t.Handshake()
	return c != nil && c.Declared(wire.Client, capability)
}

// judgeRefusal judges the answer to a request for a feature that the client does not
// declare. A wrong error code only warns. If there is no answer, the passive rules
// say so.
func (t *T) judgeRefusal(id, requirement string) {
	x, ok := t.Answered(id)
	if !ok {
		return
	}
	switch m := x.Response.Msg; {
	case m.Kind == wire.Result:
		t.Violation(requirement, x.Method()+" was answered although the client does not declare it", x.Events()...)
	case m.Error == nil || m.Error.Code != -32601:
		t.Warning(requirement, x.Method()+" was refused, but not with -32601, the code for a method that does not exist", x.Events()...)
	default:
		t.Exercised(requirement)
	}
}

// judgeLikePlain judges a form of a request whose plain form got a result.
func (t *T) judgeLikePlain(id, requirement string) {
	x, ok := t.Answered(id)
	switch {
	case ok:
		t.Check(x.Response.Msg.Kind == wire.Result, requirement, "this form of the request was refused, although a plain one got a result", x.Events()...)
	case x != nil && t.silentTo(x):
		t.Violation(requirement, "this form of the request was not answered, although a plain one got a result", x.Request)
	}
}

// tracked asks for the progress of a request; tokens may be integers
// (basic/utilities/progress#progress-flow).
func tracked(params map[string]any, token any) map[string]any {
	params["_meta"] = map[string]any{"progressToken": token}
	return params
}

func sampleText(text string) map[string]any {
	return map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": text}}
}

func askSampling(a *Asker) {
	const method = "sampling/createMessage"
	plain := map[string]any{"messages": []any{sampleText("Say hello.")}, "maxTokens": 50}
	if !a.Has("sampling") {
		a.Ask("undeclared-sampling", method, plain, "sampling.capability.declared", "lifecycle.capability.server-uses-sampling")
		a.Fence("after-sampling")
		return
	}
	with := func(more map[string]any) map[string]any {
		params := map[string]any{}
		for name, v := range plain {
			params[name] = v
		}
		for name, v := range more {
			params[name] = v
		}
		return params
	}
	a.AskUser("sampling-plain", method, plain)
	a.AskUser("sampling-full", method, with(map[string]any{
		"messages": []any{
			sampleText("What is in the picture?"),
			map[string]any{"role": "assistant", "content": map[string]any{"type": "text", "text": "Which picture?"}},
			map[string]any{"role": "user", "content": map[string]any{"type": "image", "data": picture, "mimeType": "image/png"}},
		},
		"systemPrompt": "Be brief.", "temperature": 0.5, "stopSequences": []any{"END"}, "includeContext": "none",
		"metadata": map[string]any{},
		"modelPreferences": map[string]any{
			"hints":        []any{map[string]any{"name": "no-such-model"}, map[string]any{}},
			"costPriority": 0.1, "speedPriority": 1, "intelligencePriority": 0,
		},
	}))
	for i, context := range []string{"none", "thisServer", "allServers"} {
		a.AskUser("sampling-"+context, method, tracked(with(map[string]any{"includeContext": context}), i))
	}
	a.AskUser("sampling-metadata", method, with(map[string]any{
		"metadata": map[string]any{"com.example/nested": map[string]any{"list": []any{1, nil, "x"}}, "plain": true},
	}))
	a.AskUser("sampling-broken", method, map[string]any{"messages": "none at all", "maxTokens": 10}, "*")
	a.Withdraw("sampling-withdrawn", method, tracked(with(nil), "sampling-withdrawn"))
	a.Fence("after-sampling")
}

// picture is an image of one pixel.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var forms = []struct {
	name     string
	property map[string]any
}{
	{"string", map[string]any{"type": "string", "title": "Name", "description": "Any name", "minLength": 2, "maxLength": 40}},
	{"email", map[string]any{"type": "string", "format": "email"}},
	{"uri", map[string]any{"type": "string", "format": "uri"}},
	{"date", map[string]any{"type": "string", "format": "date"}},
	{"date-time", map[string]any{"type": "string", "format": "date-time"}},
	{"number", map[string]any{"type": "number", "minimum": 0.25, "maximum": 0.75}},
	{"integer", map[string]any{"type": "integer", "minimum": 3, "maximum": 9}},
	{"boolean", map[string]any{"type": "boolean", "default": true}},
	{"unset", map[string]any{"type": "boolean", "default": false}},
	{"zero", map[string]any{"type": "integer", "minimum": 0, "maximum": 0}},
	{"enum", map[string]any{"type": "string", "enum": []any{"red", "green"}, "enumNames": []any{"Red", "Green"}}},
}

func form(names ...string) map[string]any {
	properties := make(map[string]any)
	required := []any{}
	for _, f := range forms {
		for _, name := range names {
			if f.name == name {
				properties[strings.ReplaceAll(name, "-", "_")] = f.property
				required = append(required, strings.ReplaceAll(name, "-", "_"))
			}
		}
	}
	return map[string]any{
		"message":         "Please fill in: " + strings.Join(names, ", "),
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	}
}

func askElicitation(a *Asker) {
	const method = "elicitation/create"
	if a.Request.Session.Version() < server.Version {
		return // older revisions have no elicitation
	}
	if !a.Has("elicitation") {
		a.Ask("undeclared-elicitation", method, form("string"),
			"elicitation.capability.declared", "lifecycle.capability.server-uses-elicitation")
		a.Fence("after-elicitation")
		return
	}
	var all []string
	for i, f := range forms {
		params := form(f.name)
		if i > 0 { // the others are compared with the plain one
			params = tracked(params, i-1)
		}
		a.AskUser("elicitation-"+f.name, method, params)
		all = append(all, f.name)
	}
	a.AskUser("elicitation-all", method, form(all...))
	a.Withdraw("elicitation-withdrawn", method, tracked(form("string"), "elicitation-withdrawn"))
	a.Fence("after-elicitation")
}

func askRoots(a *Asker) {
	const method = "roots/list"
	a.Fence("before-cancelling")
	if a.Has("roots") {
		a.AskUser("roots-first", method, nil)
		a.AskUser("roots-second", method, map[string]any{"_meta": map[string]any{"com.example/x": 1}})
		a.Send(map[string]any{"id": "roots-cancelled", "method": method})
		a.Notify("notifications/cancelled", map[string]any{"requestId": "roots-cancelled", "reason": "no longer needed"})
	} else {
		a.Ask("undeclared-roots", method, nil, "roots.capability.declared", "lifecycle.capability.server-uses-roots")
	}
	for _, id := range []string{"ping-cancelled-1", "ping-cancelled-2"} {
		a.Send(map[string]any{"id": id, "method": "ping"})
		a.Notify("notifications/cancelled", map[string]any{"requestId": id})
	}
	a.Fence("after-cancelling")
}

// progressing reports progress of every request that asks for it, in quick
// succession, with fractions, and sometimes with a total.
func progressing(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	token, ok := r.Token()
	if !ok {
		return next(ctx, r)
	}
	for i := range 100 {
		params := map[string]any{"progressToken": token, "progress": 0.25 * float64(i)}
		if i%2 == 0 {
			params["total"], params["message"] = 25.5, "still at it"
		}
		r.Notify("notifications/progress", params)
	}
	delete(r.Params, "_meta") // so that nothing else reports progress
	return next(ctx, r)
}

var failures = []*wire.Error{
	{Code: -32603, Message: "Internal error", Data: map[string]any{"cause": "a test"}},
	{Code: -32602, Message: "Invalid params", Data: "text"},
	{Code: -32002, Message: "Resource not found", Data: []any{1, 2}},
	{Code: -32000, Message: "Server error", Data: 7},
	{Code: 1, Message: "An error of the application's own"},
	{Code: -32601, Message: "Method not found"},
	{Code: -32600, Message: ""},
	{Code: -32700, Message: "Parse error"},
}

// failing answers all requests with errors, except those for lists.
func failing(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	if !operation(r.Method) || listed[r.Method] != "" {
		return next(ctx, r)
	}
	n := r.Session.Value("failures", func() any { return new(counter) }).(*counter).next()
	return nil, failures[n%len(failures)]
}
