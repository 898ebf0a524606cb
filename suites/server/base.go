package server

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
)

// basic/index#messages
var baseChecks = []*check.Check{
	{
		Name:         "base/string-id",
		Requirements: []string{"base.request.string-id-served", "base.response.id-echo"},
		Body: func(t *check.T) {
			// An id may be any string: the answer carries it unchanged.
			for _, id := range []string{"mcpconform-1", "", "ü/\"\\\u2028", "20250618"} {
				p, err := t.Session.StartID(t.Context, wire.StringID(id), "ping", nil)
				t.Must(err)
				t.Result(t.Await(p))
			}
		},
	},
	{
		Name:         "base/large-id",
		Requirements: []string{"base.response.id-echo"},
		Needs:        check.Needs{Session: check.Fresh, Long: true},
		Body: func(t *check.T) {
			// A long id makes the server send a long message, whatever it offers. Its form is for the judge to see; an error
			// is tolerated, as servers have to guard themselves.
			id := wire.StringID(strings.Repeat("mcpconform", 15_000))
			x, err := t.Session.StartID(t.Context, id, "ping", nil)
			if err != nil {
				t.Inconclusive("a request with an id of 150000 characters cannot be sent: %v", err)
			}
			limit, stop := context.WithTimeout(t.Context, t.Session.Options.Timeout)
			defer stop()
			if _, err := t.Session.Log().Await(limit, x.Request.Seq+1, func(e *wire.Event) bool {
				return answers(e, x) || e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind != wire.Notification &&
					!e.Msg.ID.Usable()
			}); err != nil {
				t.Inconclusive("a request with an id of 150000 characters is not answered")
			}
		},
	},
	{
		Name:         "base/invalid-params",
		Requirements: []string{"base.error.invalid-params"},
		Body: func(t *check.T) {
			// A known method with params of the wrong type. Which methods are known follows from what was declared.
			for _, bad := range t.Target.InvalidCalls() {
				x := t.Call(bad.Method, bad.Params, client.Deliberately("*"))
				t.ErrorCode(x, -32602)
			}
			if len(t.Target.InvalidCalls()) == 0 {
				t.Skip("the server declares no feature whose requests have required params")
			}
		},
	},
	{
		Name:         "base/invalid-request",
		Requirements: []string{"base.error.invalid-request", "stdio.server.survives-non-message"},
		Needs:        check.Needs{Session: check.Own, Transports: []string{"stdio"}},
		Body: func(t *check.T) {
			// JSON that is no request, but with an id that an answer can carry. Silence is tolerated, a result is not.
			for i, raw := range []string{
				`{"jsonrpc":"2.0","id":"invalid-%d","method":1}`,
				`{"jsonrpc":"1.0","id":"invalid-%d","method":"ping"}`,
				`{"id":"invalid-%d","method":"ping"}`,
			} {
				id := wire.StringID(fmt.Sprintf("invalid-%d", i))
				mark := t.Mark()
				t.Send(fmt.Sprintf(raw, i), client.Deliberately("*"))
				t.Fence()
				for _, e := range t.Since(mark) {
					t.Show(e)
					answered := e.Msg.IsResponse() && e.Msg.ID.Key() == id.Key()
					if answered && e.Msg.Kind == wire.Result && i == 0 {
						t.Fail("a message that is no request got a result")
					}
					if answered && e.Msg.Kind == wire.ErrorResponse && e.Msg.Error.Code != -32600 {
						t.Fail("the error's code is %d, not -32600", e.Msg.Error.Code)
					}
				}
			}
		},
	},
	{
		Name:         "base/unknown-notification",
		Requirements: []string{"base.notification.unknown-no-response", "base.notification.no-response"},
		Body: func(t *check.T) {
			silent(t, `{"jsonrpc":"2.0","method":"notifications/mcpconform/no-such"}`)
		},
		Needs: check.Needs{Session: check.Own},
	},
	{
		Name:         "base/malformed-notification",
		Requirements: []string{"base.notification.malformed-no-response"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			silent(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"not":"an id"}}}`)
			silent(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
		},
	},
	{
		Name:         "base/member-case",
		Requirements: []string{"base.jsonrpc.member-case"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// ID and METHOD are not the members of a request. The same message spelled well is the control.
			if control := t.Call("ping", nil); control.Result() == nil {
				t.Inconclusive("a ping that is spelled well is not served either: %s", check.Describe(control))
			}
			mark := t.Mark()
			t.Send(`{"jsonrpc":"2.0","ID":"wrong-case","METHOD":"ping"}`, client.Deliberately("*"))
			t.Send(`{"jsonrpc":"2.0","id":"wrong-case-too","Method":"ping"}`, client.Deliberately("*"))
			// An answer without an id may be taken for that of the first ping.
			_, err := t.Session.Call(t.Context, "ping", nil)
			if err == nil {
				_, err = t.Session.Call(t.Context, "ping", nil)
			}
			for _, e := range t.Since(mark) {
				if e.Msg.Kind == wire.Result && (e.Msg.ID.Key() == `"wrong-case"` || e.Msg.ID.Key() == `"wrong-case-too"`) {
					t.Show(e)
					t.Fail("a message with members spelled ID, METHOD or Method was served as a ping")
				}
			}
			if err != nil {
				// That it does not survive them is another requirement's affair.
				t.Inconclusive("after messages with members spelled ID, METHOD or Method: %s", err)
			}
		},
	},
	{
		Name:         "base/batch",
		Requirements: []string{"base.batch.not-served"},
		Needs:        check.Needs{Session: check.Own},
		Body: func(t *check.T) {
			// The revision removed batches: whatever comes back, it is no answer to the members.
			mark := t.Mark()
			t.Send(`[{"jsonrpc":"2.0","id":"batch-1","method":"ping"},{"jsonrpc":"2.0","id":"batch-2","method":"ping"}]`,
				client.Deliberately("*"))
			t.Fence()
			for _, e := range t.Since(mark) {
				if e.Msg.Kind == wire.Result && (e.Msg.ID.Key() == `"batch-1"` || e.Msg.ID.Key() == `"batch-2"`) {
					t.Show(e)
					t.Fail("a member of a batch was answered with a result")
				}
			}
		},
	},
	{
		Name:         "base/extra-members",
		Requirements: []string{"base.params.open", "base.params.omitted", "meta.attach.request"},
		Body: func(t *check.T) {
			// Params are open: what the revision does not define is no reason to refuse a request.
			methods := []string{"ping"}
			for _, l := range t.Target.Lists {
				if len(l.Pages) > 0 && l.Pages[0].Result() != nil {
					methods = append(methods, l.Method)
				}
			}
			for _, method := range methods {
				t.About("base.params.omitted")
				t.Result(t.Call(method, nil))
				t.Result(t.Call(method, map[string]any{}))
				t.About("meta.attach.request")
				t.Result(t.Call(method, map[string]any{"_meta": map[string]any{"example.com/mcpconform": "any"}}))
				if method != "ping" {
					t.About("base.params.open")
					t.Result(t.Call(method, map[string]any{"mcpconform": true}))
				}
			}
		},
	},
	{
		Name:         "base/meta-keys",
		Requirements: []string{"meta.key.name-characters", "meta.key.name-empty", "meta.reserved.no-assumptions"},
		Body: func(t *check.T) {
			for _, v := range []struct {
				id   string
				meta map[string]any
			}{
				{"meta.key.name-characters", map[string]any{"plain": 1, "with-hyphen_and.dot": true, "com.example/name": nil}},
				{"meta.key.name-empty", map[string]any{"com.example/": "empty name"}},
				{"meta.reserved.no-assumptions", map[string]any{"modelcontextprotocol.io/unknown": map[string]any{"any": []any{}}}},
			} {
				t.About(v.id)
				t.Result(t.Call("ping", map[string]any{"_meta": v.meta}, client.Deliberately("meta.key.prefix-reserved")))
			}
		},
	},
	{
		Name:         "base/utf8",
		Requirements: []string{"base.message.utf8-accepted"},
		Body: func(t *check.T) {
			// Text outside ASCII, as raw UTF-8, comes back the same where it comes back: in the id.
			const text = "Grüße 你好 🙂 \u0000"
			p, err := t.Session.StartID(t.Context, wire.StringID(text), "ping", nil)
			t.Must(err)
			x := t.Await(p)
			t.Require(x.Response.Msg.ID.Key() == p.ID.Key(), "the id %s came back as %s", p.ID, x.Response.Msg.ID)
		},
	},
	{
		Name:         "base/same-id-both-ways",
		Requirements: []string{"base.request.id-space-per-side"},
		Body: func(t *check.T) {
			// The server's own ids do not hinder ours: low numbers are what it would use itself.
			for id := range int64(3) {
				p, err := t.Session.StartID(t.Context, wire.IntID(id+1_000_000), "ping", nil)
				t.Must(err)
				t.Result(t.Await(p))
			}
		},
	},
}

// silent sends a notification and fails if anything answers it before a ping
// that follows it is answered.
func silent(t *check.T, raw string) {
	t.Fence() // what answers something before is not mistaken for an answer to this
	mark := t.Mark()
	sent := t.Send(raw, client.Deliberately("*"))
	t.Fence()
	for _, e := range t.Since(mark) {
		if e.Msg.IsResponse() && (!e.Msg.ID.Usable() || t.Stray(e)) && !t.Refused(sent, e) {
			t.Show(e)
			t.Fail("a notification was answered")
		}
	}
}
