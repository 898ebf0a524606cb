package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// withToken adds a progress token to the params of a request.
func withToken(params map[string]any, token any) map[string]any {
	with := map[string]any{"_meta": map[string]any{"progressToken": token}}
	for name, v := range params {
		with[name] = v
	}
	return with
}

// basic/utilities/progress
var progressChecks = []*check.Check{
	{
		Name:         "progress/plain-requests",
		Requirements: []string{ids.ProgressRequest, ids.ProgressTokenAnyMeans},
		Needs:        check.Needs{Session: check.Own},
		Families:     []string{"tokens"},
		Body: func(t *check.T) {
			// A token asks for progress and changes nothing else, even if there is no progress to report.
			methods := append([]string{t.NoOp()}, t.Served()...)
			tokens := []any{"mcpconform-any", 8}
			for i, method := range methods {
				for n := range t.Count(1, 1, len(tokens)) {
					token := tokens[(i+n)%len(tokens)]
					t.Expect(t.Call(method, withToken(nil, token))).To(HaveResult(), "with the progress token %s",
						quote(token))
				}
			}
			if t.Session.Capability("tools") {
				// A request that is refused has no progress to report either.
				t.Call("tools/call", withToken(map[string]any{"name": "mcpconform-no-such-tool",
					"arguments": map[string]any{}}, "mcpconform-refused"))
			}
			t.Vary(t.DrawFew("tokens"), func(m family.Member) {
				t.Check(ids.ProgressTokenAnyMeans, t.Call(methods[len(methods)-1], withToken(nil, m.Value()))).
					To(HaveResult(), "with the progress token %s", m)
			})
			t.Fenced()
		},
	},
	{
		Name:         "progress/reported",
		Requirements: []string{ids.ProgressRequest, ids.ProgressTokenAnyMeans},
		Shows:        []string{ids.SchemaProgressNotification},
		Needs:        calling("progress"),
		Families:     []string{"tokens"},
		Body: func(t *check.T) {
			// A tool that reports progress, with tokens that are easily mistaken for one another. The rules judge
			// what comes back.
			call := toolFor(t, "progress")
			control := t.Call("tools/call", call.Params())
			tokens := t.Draw("tokens")
			calls := make(map[string]*client.Pending) // by what is special about the token
			mark := t.Mark()
			for _, m := range tokens {
				calls[m.Is] = t.Start("tools/call", withToken(call.Params(), m.Value()))
			}
			t.VaryInTurn(tokens, func(m family.Member) {
				x, err := calls[m.Is].Await(t.Context)
				t.Show(x.Response)
				if timedOut(err) {
					for _, p := range calls { // nor are they all awaited
						cancel(t, p.ID, late)
					}
				} else {
					t.Must(err)
				}
				if x.Result() != nil || control.Result() == nil {
					return
				}
				// Not all servers take calls beside others; whether they answer them is another check's affair.
				t.Clear()
				t.Check(ids.ProgressTokenAnyMeans, t.Call("tools/call", withToken(call.Params(), m.Value()))).
					To(HaveResult(), "with the progress token %s", m)
			})
			t.Fence() // no progress may follow the answers
			if control.Result() == nil {
				t.Note("without a progress token, the tool %q gives %s", call.Tool, Describe(control))
			}
			if !slices.ContainsFunc(t.Since(mark),
				func(e *wire.Event) bool { return e.Msg.Method == "notifications/progress" }) {
				t.Note("the tool %q reported no progress", call.Tool)
			}
		},
	},
	{
		Name: "progress/of-ours",
		Requirements: []string{
			ids.ProgressNone, ids.ProgressNotify, ids.ProgressValueFloat, ids.ProgressTotalFloat, ids.ProgressOmitTotal,
			ids.ProgressFrequency,
		},
		Needs: waiting(byHand(answering...)),
		Body: func(t *check.T) {
			// The server may ask for progress too. The same code copes with it in all its requests.
			asked := false
			for _, role := range answering {
				if call, ok := knownTool(t, role); ok && (!asked || t.Thorough()) {
					asked = progressOfOurs(t, role, call) || asked
				}
			}
			if asked {
				return
			}
			t.Inconclusive("no request of the server asks for progress; name tools for the roles sampling and " +
				"elicitation in the configuration if one does")
		},
	},
	{
		Name:         "progress/tokens-of-theirs",
		Requirements: []string{ids.ProgressTokenUnique},
		Needs:        byHand(answering...),
		Body: func(t *check.T) {
			// Two requests of the server that are open at a time. The rule finds out whether their tokens differ.
			for _, role := range answering {
				call, ok := knownTool(t, role)
				if !ok {
					continue
				}
				method, reply := askedFor(role)
				tokens := 0
				for _, e := range twice(t, call, method, reply) {
					if at(e.Msg.Params, "_meta", "progressToken") != nil {
						tokens++
					}
				}
				if tokens == 2 {
					return
				}
			}
			t.Inconclusive("the server never had two requests that ask for progress open at the same time")
		},
	},
}

// askedFor returns the method by which a tool of a role asks the client, and the reply of the client.
func askedFor(role string) (method string, reply func(*wire.Event) map[string]any) {
	if role == "elicitation" {
		return elicit, accept
	}
	return createMessage, always(generation(nil))
}

// progressOfOurs reports none, some and a lot of progress of what a tool of a role asks for, which the server has to
// cope with. It reports whether the server has asked for progress.
func progressOfOurs(t *check.T, role string, call check.Call) (asked bool) {
	method, reply := askedFor(role)
	with := func(reports []map[string]any) *client.Exchange {
		x, _ := converse(t, call, method, func(request *wire.Event) map[string]any {
			if token := at(request.Msg.Params, "_meta", "progressToken"); token != nil {
				asked = true
				for _, report := range reports {
					report := maps.Clone(report)
					report["progressToken"] = token
					t.Notify("notifications/progress", report)
				}
			}
			return reply(request)
		})
		if !t.RunsAgain() {
			t.Fence()
		}
		return x
	}
	control := with(nil)
	if !asked {
		return false
	}
	if !worked(control) {
		t.Show(control.Events()...)
		t.Expect(with(ourProgress[0].reports)).ToNot(Succeed(),
			"only when the client reports progress of %s to the tool %q", method, call.Tool)
		t.Inconclusive("the tool %q fails whether or not the client reports progress", call.Tool)
	}
	if t.RunsAgain() && worked(with(ourProgressInOne[:t.Most(len(ourProgressInOne), 10)])) {
		return true
	}
	for _, v := range ourProgress {
		if x := with(v.reports[:t.Most(len(v.reports), 5)]); !worked(x) && worked(with(nil)) {
			t.Clear()
			t.Show(control.Events()...)
			t.Check(v.id, x).To(Succeed(), "when the client reports %s progress of %s to the tool %q", v.what,
				method, call.Tool)
		}
	}
	t.Fenced()
	return true
}

// twice makes a call two times at once and leaves what the server asks in both
// open until it has asked twice. It returns these requests, and fewer when the
// server makes one call wait for the other.
func twice(t *check.T, call check.Call, method string, reply func(*wire.Event) map[string]any) []*wire.Event {
	mark := t.Mark()
	calls := []*client.Pending{t.Start("tools/call", call.Params()), t.Start("tools/call", call.Params())}
	over := func(e *wire.Event) bool { return calls[0].Answers(e) || calls[1].Answers(e) }
	var open []*wire.Event
	limit, cancel := context.WithTimeout(t.Context, t.Soon(check.AtOnce))
	defer cancel()
	from := mark
	for len(open) < len(calls) {
		e, err := t.Session.Log().Await(limit, from, func(e *wire.Event) bool { return asks(e, method) || over(e) })
		if err != nil || over(e) {
			break
		}
		if method == createMessage && !check.Sampleable(e.Msg.Params) {
			t.Inconclusive("the tool %q asks for sampling with messages that no model can sample", call.Tool)
		}
		open, from = append(open, e), e.Seq+1
	}
	for _, e := range open {
		respond(t, e, reply(e))
	}
	seeThrough(t, calls, mark, method, reply, open)
	return open
}

// seeThrough answers what the server asks after a mark, but for what was answered, until the
// calls have ended.
func seeThrough(t *check.T, calls []*client.Pending, mark int, method string, reply func(*wire.Event) map[string]any,
	answered []*wire.Event) {
	over := func(e *wire.Event) bool {
		return slices.ContainsFunc(calls, func(p *client.Pending) bool { return p.Answers(e) })
	}
	ended := 0
	for from, more := mark, 0; ended < len(calls) && more < maxAsked; {
		e, err := t.Session.AwaitEvent(t.Context, from, "answer to tools/call", func(e *wire.Event) bool {
			return over(e) || asks(e, method) && !slices.Contains(answered, e)
		})
		if err != nil {
			break // other checks judge whether the tool answers
		}
		if from = e.Seq + 1; over(e) {
			ended++
		} else {
			more++
			respond(t, e, reply(e))
		}
	}
}

// ourProgress is progress as a client may report it of a request of the server.
var ourProgress = []struct {
	id, what string
	reports  []map[string]any
}{
	{ids.ProgressNotify, "some", []map[string]any{{"progress": 1, "total": 2},
		{"progress": 2, "total": 2, "message": "done"}}},
	{ids.ProgressValueFloat, "fractional", []map[string]any{{"progress": 0.25, "total": 1},
		{"progress": 0.5, "total": 1}}},
	{ids.ProgressTotalFloat, "fractions of", []map[string]any{{"progress": 1, "total": 1.5}}},
	{ids.ProgressOmitTotal, "without a total,", []map[string]any{{"progress": 1}, {"progress": 2}}},
	{ids.ProgressFrequency, "a lot of", often(1, 20)},
}

// ourProgressInOne is progress of each kind in one request.
var ourProgressInOne = append([]map[string]any{
	{"progress": 0.25, "total": 1.5}, {"progress": 0.5, "total": 1.5}, {"progress": 1}, {"progress": 2},
	{"progress": 3, "total": 3, "message": "done"},
}, often(4, 24)...)

func often(first, last int) []map[string]any {
	var reports []map[string]any
	for n := first; n <= last; n++ {
		reports = append(reports, map[string]any{"progress": n, "total": last})
	}
	return reports
}

func jsonValue(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	value, _, _ := wire.Decode(raw)
	return value
}
