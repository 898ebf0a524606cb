package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// everythingBeside keeps a call under way and meanwhile asks for all that a client asks for when
// nothing else runs: each is answered, and the rules judge with what. A server may as well answer
// when the call is over (docs/positions.md, requests-beside-others).
func everythingBeside(t *check.T) {
	const (
		most   = 5 // times that the call is made
		behind = 2 // requests that are answered after its end show that the server takes one at a time
	)
	call := toolFor(t, "slow", "progress")
	var running *client.Pending
	beside, after, made := 0, 0, 0
	ended := func() bool {
		return slices.ContainsFunc(t.Session.Log().Events()[running.Request.Seq+1:], func(e *wire.Event) bool { return over(e, running) })
	}
	for _, ask := range plainRequests(t) {
		if running == nil || ended() {
			if made++; made > most || after == behind {
				break
			}
			running = t.Start("tools/call", withToken(call.Params(), "mcpconform-beside-"+t.Session.NextID().String()))
			underWay(t, t.Session, running)
		}
		if ask(); ended() {
			after++
		} else {
			beside++
		}
	}
	if beside == 0 {
		t.Inconclusive("no request was answered while a call of %q was in progress", call.Tool)
	}
	if !ended() {
		cancel(t, running.ID)
	}
}

// plainRequests returns what asks for each page of the lists and for each item, one after the other.
func plainRequests(t *check.T) (all []func()) {
	const (
		most     = 40 // items of a list
		mostLate = 3  // calls that are not over soon
	)
	add := func(method string, params any) {
		all = append(all, func() { t.Call(method, params) })
	}
	for _, method := range t.Target.Served() {
		all = append(all, func() { t.Must(check.ReadList(t.Context, t.Session, method).Err) })
	}
	for _, uri := range resourceURIs(t, most) {
		add("resources/read", map[string]any{"uri": uri})
	}
	for _, p := range prompts(t) {
		add("prompts/get", promptParams(t, p))
	}
	if t.Session.Capability("completions") {
		for _, c := range listCompletables(t) {
			add("completion/complete", c.params(""))
		}
	}
	slow, _ := knownTool(t, "slow")
	tools, late := callable(t), 0
	for _, tool := range tools[:min(len(tools), most)] {
		if arguments, ok := t.Target.Arguments(tool); ok && tool["name"] != slow.Tool {
			c := check.Call{Tool: tool["name"].(string), Arguments: arguments}
			all = append(all, func() {
				if late < mostLate && !briefly(t, c) {
					late++
				}
			})
		}
	}
	return all
}

// briefly makes a call and reports whether it ends soon. Otherwise it is cancelled.
func briefly(t *check.T, call check.Call) bool {
	p := t.Start("tools/call", call.Params())
	limit, stop := context.WithTimeout(t.Context, prompt)
	defer stop()
	if _, err := t.Session.Log().Await(limit, p.Request.Seq+1, func(e *wire.Event) bool { return over(e, p) }); err != nil {
		cancel(t, p.ID)
		return false
	}
	return true
}
