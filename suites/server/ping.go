package server

import (
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/check/match"
)

// basic/utilities/ping
var pingChecks = []*check.Check{
	{
		Name:         "ping/answered",
		Requirements: []string{"ping.response-prompt", "ping.either-side"},
		Needs:        check.Needs{Served: true},
		Body: func(t *check.T) {
			x := t.Call("ping", nil)
			t.Check("ping.either-side", x).ToNot(HaveErrorCode(-32601))
			t.Expect(x).To(HaveResult())
		},
	},
	{
		Name:         "ping/of-theirs",
		Requirements: []string{"ping.no-params", "schema.ping-request"},
		Needs:        calling("ping"),
		Body: func(t *check.T) {
			// The rules judge the form of the server's ping.
			call := toolFor(t, "ping")
			mark := t.Mark()
			t.Attempt(call.Params())
			t.Assume(t.Since(mark)).To(Carry("a ping", func(e *wire.Event) bool { return asks(e, "ping") }), "when the tool %q was called", call.Tool)
		},
	},
	{
		Name:         "ping/before-initialized",
		Requirements: []string{"ping.response-prompt"},
		Needs:        check.Needs{Session: check.Raw, Options: capable},
		Body: func(t *check.T) {
			// Once initialize is answered, a ping is served, although notifications/initialized is still to come: even before
			// that, pings need not wait (basic/lifecycle#initialization).
			t.Expect(t.Call("initialize", t.Session.InitializeParams())).To(HaveResult())
			t.Clear()
			t.Expect(t.Call("ping", nil)).To(HaveResult())
			t.Notify("notifications/initialized", nil)
			t.Fence()
		},
	},
	{
		Name:         "ping/while-busy",
		Requirements: []string{"ping.response-prompt"},
		Needs:        aboutLiveness(calling("slow")),
		Body: func(t *check.T) {
			// A slow call is not a reason to leave a ping waiting.
			call := toolFor(t, "slow")
			var waited time.Duration
			for range 3 { // what a busy machine brings about does not come every time
				mark := t.Mark()
				slow := t.Start("tools/call", call.Params())
				t.Call("ping", nil) // so that the call has begun
				ping := t.Call("ping", nil)
				if !finished(t, slow) {
					cancel(t, slow.ID)
					t.Fence()
					return
				}
				waited = (ping.Response.At - slow.Request.At).Round(time.Millisecond)
				alone := t.Call("ping", nil)
				if first := t.Since(mark)[0]; waited < busy || waited < 4*(alone.Response.At-alone.Request.At) || !slow.Answers(first) {
					t.Inconclusive("the tool %q is not slow enough", call.Tool)
				}
			}
			t.Fail("the ping was answered only when the slow call had ended, %v after the call was made", waited)
		},
	},
}

// busy is how long a ping may wait behind a slow call before that is the reason.
const busy = time.Second
