package server

import (
	"encoding/json"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// withToken adds a progress token to the params of a request.
func withToken(params map[string]any, token any) map[string]any {
	with := map[string]any{"_meta": map[string]any{"progressToken": token}}
	for name, v := range params {
		with[name] = v
	}
	return with
}

// oddTokens are tokens that a sender may choose. They differ from one another
// and from those of other checks that are under way in the session.
var oddTokens = []any{"", "mcpconform ü \u2028 \"quoted\"", strings.Repeat("long", 300), 0, -1, int64(1<<53 - 1)}

// basic/utilities/progress
var progressChecks = []*check.Check{
	{
		Name:         "progress/plain-requests",
		Requirements: []string{"progress.request", "progress.token.any-means"},
		Needs:        check.Needs{Session: check.Fresh},
		Body: func(t *check.T) {
			// A token asks for progress and changes nothing else: not even where there is no progress to tell of.
			methods := []string{"ping"}
			for _, l := range t.Target.Lists {
				if len(l.Pages) > 0 && l.Pages[0].Result() != nil {
					methods = append(methods, l.Method)
				}
			}
			for _, method := range methods {
				without := t.Call(method, nil)
				t.Result(without)
				for _, token := range []any{"mcpconform-token", 7} {
					x := t.Call(method, withToken(nil, token))
					t.Require(x.Result() != nil, "%s with the progress token %s got %s", method, quote(token), check.Describe(x))
				}
			}
			for _, token := range oddTokens {
				x := t.Call(methods[len(methods)-1], withToken(nil, token))
				if x.Result() == nil {
					t.Violation("progress.token.any-means", x.Request.Msg.Method+" with the progress token "+quote(jsonValue(token))+" got "+check.Describe(x), x.Events()...)
				}
			}
			t.Fence()
		},
	},
	{
		Name:         "progress/reported",
		Requirements: []string{"progress.request", "progress.token.any-means"},
		Needs:        check.Needs{Session: check.Fresh, Lacking: lacking("progress")},
		Body: func(t *check.T) {
			// A tool that reports progress, with tokens that are easily mistaken for one another. What comes back is for the judge to see.
			call := purposed(t, "progress")
			control := t.Call("tools/call", call.Params())
			tokens := append([]any{"7", 7}, oddTokens...)
			var calls []*client.Pending
			mark := t.Mark()
			for _, token := range tokens {
				calls = append(calls, t.Start("tools/call", withToken(call.Params(), token)))
			}
			for i, p := range calls {
				x := t.Await(p)
				if x.Result() == nil && control.Result() != nil {
					t.Violation("progress.token.any-means", "tools/call with the progress token "+quote(jsonValue(tokens[i]))+" got "+check.Describe(x), x.Events()...)
				}
			}
			t.Fence() // no progress may follow the answers
			if control.Result() == nil {
				t.Note("without a progress token, the tool %q gives %s", call.Tool, check.Describe(control))
			}
			for _, e := range t.Since(mark) {
				if e.Msg.Method == "notifications/progress" {
					return
				}
			}
			t.Note("the tool %q reported no progress", call.Tool)
		},
	},
	{
		Name: "progress/of-ours",
		Requirements: []string{
			"progress.notify", "progress.value-float", "progress.total-float", "progress.omit-total", "progress.frequency",
			"progress.none",
		},
		Needs: byHand("sampling", "elicitation"),
		Body: func(t *check.T) {
			// The server may ask for progress too: it then copes with none, some and a lot.
			var seen bool
			for _, purpose := range []string{"sampling", "elicitation"} {
				call, ok := purposeCall(t, purpose)
				if !ok {
					continue
				}
				method, reply := createMessage, always(generation(nil))
				if purpose == "elicitation" {
					method, reply = elicit, accept
				}
				for _, tell := range []func(t *check.T, token any){tellNothing, tellFractions, tellOften} {
					x, _ := converse(t, call, method, func(request *wire.Event) map[string]any {
						if token := at(request.Msg.Params, "_meta", "progressToken"); token != nil {
							seen = true
							tell(t, token)
						}
						return reply(request)
					})
					if seen {
						t.Require(worked(x), "the tool %q fails when the client reports progress of %s: %s", call.Tool, method, describeResult(x))
					}
				}
				t.Fence()
				if seen {
					return
				}
			}
			t.Inconclusive("no request of the server asks for progress; name tools that sample or elicit in the configuration if one does")
		},
	},
}

func jsonValue(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	value, _, _ := wire.Decode(raw)
	return value
}

func tellNothing(*check.T, any) {}

func tellFractions(t *check.T, token any) {
	t.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": 0.25})
	t.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": 0.5, "total": 1.5})
	t.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": 1.5, "total": 1.5, "message": "done"})
}

func tellOften(t *check.T, token any) {
	for i := range 100 {
		t.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": i})
	}
}
