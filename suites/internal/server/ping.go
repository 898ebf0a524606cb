package server

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic/utilities/ping
var pingChecks = []*check.Check{
	{
		Name:         "ping/answered",
		Requirements: []string{ids.PingResponsePrompt, ids.PingEitherSide},
		Needs:        check.Needs{Served: true},
		Body: func(t *check.T) {
			x := t.Call("ping", nil)
			t.Check(ids.PingEitherSide, x).ToNot(HaveErrorCode(-32601))
			t.Expect(x).To(HaveResult())
		},
	},
	{
		Name:         "ping/of-theirs",
		Requirements: []string{ids.PingNoParams},
		Shows:        []string{ids.HTTPServerResponse202},
		Needs:        calling("ping"),
		Body: func(t *check.T) {
			// The rules judge the form of the server's ping.
			call := toolFor(t, "ping")
			mark := t.Mark()
			t.Attempt(call.Params())
			t.Assume(t.Since(mark)).To(Carry("a ping", func(e *wire.Event) bool { return asks(e, "ping") }),
				"when the tool %q was called", call.Tool)
		},
	},
	{
		Name: "ping/before-initialized",
		Requirements: []string{ids.PingResponsePrompt, ids.LifecycleInitServerWaits,
			ids.LifecycleInitClientEarlyPing},
		Needs: check.Needs{Session: check.Raw, Options: capable, Lane: check.Waiting},
		Body: func(t *check.T) {
			initializesBesidePings(t)
			holdBack(t)
			// Once initialize is answered, a ping is served, although notifications/initialized is still to come:
			// even before that, pings need not wait (basic/lifecycle#initialization).
			t.Clear()
			t.Expect(t.Call("ping", nil)).To(HaveResult())
			t.Notify("notifications/initialized", nil)
			t.Fence()
		},
	},
	{
		Name:         "ping/while-busy",
		Requirements: []string{ids.PingResponsePrompt},
		Needs:        aboutLiveness(calling("slow")),
		Body: func(t *check.T) {
			// A slow call is not a reason to leave a ping waiting.
			call := toolFor(t, "slow")
			var waited time.Duration
			for i := range 3 { // what a busy machine brings about does not come every time
				token := fmt.Sprintf("mcpconform-busy-%d", i)
				slow := t.Start("tools/call", withToken(call.Params(), token))
				underWay(t, t.Session, slow)
				ping := t.Call("ping", nil)
				t.Assume(ping).To(BeAnswered(), "while a call is running")
				if !endsBy(t, slow, token) {
					cancel(t, slow.ID)
					t.Fence()
					return
				}
				waited = (ping.Response.At - slow.Request.At).Round(time.Millisecond)
				alone := t.Call("ping", nil)
				t.Assume(alone).To(BeAnswered())
				if own := took(ping); waited < busy || own < waited/2 || own < 4*took(alone) {
					t.Inconclusive("the tool %q is not slow enough", call.Tool)
				}
			}
			t.Fail("the ping was answered only when the slow call had ended, %v after the call was made", waited)
		},
	},
}

// initializesBesidePings initialises a connection while pings are under way, which are allowed before initialize is
// answered (basic/lifecycle#initialization).
func initializesBesidePings(t *check.T) {
	const early = ids.LifecycleInitClientEarlyPing
	// Over Streamable HTTP there is no session before that one could belong to.
	var first *client.Pending
	if t.Target.Transport != transport.NameHTTP && t.NoOp() == "ping" {
		first = t.Start("ping", nil)
	}
	init := t.Start("initialize", t.Session.InitializeParams())
	ping := t.Start("ping", nil)
	t.About(early)
	t.Expect(t.Await(init)).To(HaveResult())
	if first != nil {
		t.Check(early, t.Await(first)).To(HaveResult(), "before initialize")
	}
	t.Await(ping)
	t.About(ids.PingResponsePrompt)
}

// endsBy reports whether a call has been answered by now. Two answers that were given at the same time may
// arrive in either order, so it is seen to go on: by its progress, of which a first notification may have crossed
// what came before it, or by no answer for a while.
func endsBy(t *check.T, p *client.Pending, token string) bool {
	mark := t.Mark()
	if finished(t, p) {
		return true
	}
	limit, stop := context.WithTimeout(t.Context, judge.Crossing)
	defer stop()
	reports := 0
	e, err := t.Session.Log().Await(limit, mark, func(e *wire.Event) bool {
		if e.Kind == wire.KindMessage && e.From == wire.Server && at(e.Msg.Params, "progressToken") == token {
			reports++
		}
		return p.Answers(e) || reports == 2
	})
	return err == nil && p.Answers(e)
}

// took is how long the answer to a request took.
func took(x *client.Exchange) time.Duration { return x.Response.At - x.Request.At }

// busy is how long a ping may wait behind a slow call before that is the reason.
const busy = time.Second

// holdBack gives a server that has answered initialize the time to ask for something before
// the initialized notification, and over HTTP a stream to do it on. The rule of the handshake
// judges what it asks for.
func holdBack(t *check.T) {
	if conn, ok := t.Session.Conn.(*transport.HTTPConn); ok {
		conn.StartListening(t.Context)
	}
	limit, stop := context.WithTimeout(t.Context, t.Soon(check.Later))
	defer stop()
	_, _ = t.Session.Log().Await(limit, t.Mark(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Request &&
			e.Msg.Method != "ping"
	})
	t.Exercised(ids.LifecycleInitServerWaits)
}
