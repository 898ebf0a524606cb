package server

import (
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/check/match"
)

var anyMeta = map[string]any{"example.com/mcpconform": map[string]any{"any": []any{1, "two"}}, "plain": nil}

// basic#meta
var metaChecks = []*check.Check{
	{
		Name:         "meta/notification",
		Requirements: []string{"meta.attach.notification"},
		Needs:        check.Needs{Session: check.Raw, Options: offering("elicitation")},
		Body: func(t *check.T) {
			// Notifications may carry metadata, the one that ends the handshake too.
			t.Expect(t.Call("initialize", t.Session.InitializeParams())).To(HaveResult())
			mark := t.Mark()
			t.Notify("notifications/initialized", map[string]any{"_meta": anyMeta})
			gone := t.Start(t.NoOp(), nil)
			t.Notify("notifications/cancelled", map[string]any{"requestId": 0, "_meta": anyMeta}, late)
			t.Await(gone)
			t.Fence()
			t.Expect(t.Since(mark)).ToNot(Carry("an answer to a notification with _meta", func(e *wire.Event) bool { return answersNothing(t, e) }))
			for _, method := range t.Target.Served() {
				t.Expect(t.Call(method, nil)).To(HaveResult()) // the session is open
			}
		},
	},
}
