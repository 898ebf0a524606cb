package server

import (
	"maps"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var anyMeta = map[string]any{"example.com/mcpconform": map[string]any{"any": []any{1, "two"}}, "plain": nil}

// initializesBeside initialises the session with additional members that the params of any request may have. If the
// server refuses that, each member is tried alone, in another session.
func initializesBeside(t *check.T) {
	params := t.Session.InitializeParams()
	all := withToken(params, "mcpconform-initialize")
	maps.Copy(all["_meta"].(map[string]any), anyMeta)
	all["mcpconform"] = true
	x := t.Call("initialize", all)
	if x.Result() != nil {
		return
	}
	initialize := func(params map[string]any) *client.Exchange {
		t.Clear()
		x, err := t.Connect(client.Options{}).Call(t.Context, "initialize", params)
		t.Show(x.Events()...)
		t.Must(err)
		return x
	}
	t.Assume(initialize(params)).To(HaveResult(), "for a plain initialize")
	for _, more := range anyMembers {
		t.About(more.id)
		t.Expect(initialize(more.add(params, "initialize"))).To(HaveResult(),
			"for initialize with the member %s in its params", more.name)
	}
	t.About(ids.MetaAttachNotification)
	t.Assume(x).To(HaveResult(), "for initialize with metadata")
}

// basic#meta
var metaChecks = []*check.Check{
	{
		Name: "meta/notification",
		Requirements: []string{ids.MetaAttachNotification, ids.MetaAttachRequest, ids.BaseParamsOpen,
			ids.ProgressRequest},
		Needs: check.Needs{Session: check.Raw, Options: offeringAllBut("roots")},
		Body: func(t *check.T) {
			// Notifications may carry metadata, the one that ends the handshake too.
			initializesBeside(t)
			mark := t.Mark()
			t.Notify("notifications/initialized", map[string]any{"_meta": anyMeta})
			gone := t.Start(t.NoOp(), nil)
			t.Notify("notifications/cancelled", map[string]any{"requestId": 0, "_meta": anyMeta}, late)
			t.Await(gone)
			t.Fence()
			t.Expect(t.Since(mark)).ToNot(Carry("an answer to a notification with _meta",
				func(e *wire.Event) bool { return answersNothing(t, e) }))
			for _, method := range t.Served() {
				t.Expect(t.Call(method, nil)).To(HaveResult()) // the session is open
			}
		},
	},
}
