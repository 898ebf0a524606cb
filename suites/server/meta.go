package server

import (
	"github.com/mcpconform/mcpconform/suites/check"
)

var anyMeta = map[string]any{"example.com/mcpconform": map[string]any{"any": []any{1, "two"}}, "plain": nil}

// basic/index#meta
var metaChecks = []*check.Check{
	{
		Name:         "meta/notification",
		Requirements: []string{"meta.attach.notification"},
		Needs:        check.Needs{Session: check.Raw, Options: capable},
		Body: func(t *check.T) {
			// Notifications may carry metadata, the one that ends the handshake too.
			t.Result(t.Call("initialize", t.Session.InitializeParams()))
			mark := t.Mark()
			t.Notify("notifications/initialized", map[string]any{"_meta": anyMeta})
			gone := t.Start(t.Plain(), nil)
			t.Notify("notifications/cancelled", map[string]any{"requestId": 0, "_meta": anyMeta}, late)
			t.Await(gone)
			t.Fence()
			for _, e := range t.Since(mark) {
				if e.Msg.IsResponse() && (!e.Msg.ID.Usable() || t.Stray(e)) {
					t.Show(e)
					t.Fail("a notification with _meta was answered")
				}
			}
			for _, method := range t.Target.Served() {
				t.Result(t.Call(method, nil)) // the session is open
			}
		},
	},
}
