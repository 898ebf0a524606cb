package client

import (
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// Vary sends members of a family, one after the other. ask sends one and waits for an
// answer under the id. A client that is silent to one member and answers a ping gets the
// others as well. One that takes long over each gets as many as fit into its patience: its own
// request waits meanwhile.
func (a *Asker) Vary(prefix string, members []family.Member, ask func(id string, m family.Member)) {
	for _, m := range members {
		if a.Silent || a.overdue() {
			return
		}
		id := prefix + m.Is
		if ask(id, m); a.Silent && !m.Plain() && a.lost < maxLost {
			a.lost++
			a.Silent = false
			a.Fence("after " + id)
		}
	}
}

// overdue reports whether the scripts have kept the client's request waiting for long.
func (a *Asker) overdue() bool { return time.Since(a.began) > a.Patience }

// maxLost is how many requests of a script may go without an answer, each of which takes
// its time, before the script gives up.
const maxLost = 2

// judgeVaried judges the answers to pings that differ in what is a member of a family. how
// says how a ping was sent.
func (t *T) judgeVaried(prefix string, members []family.Member, how, id string) {
	plain, ok := t.Answered(prefix + members[0].Is)
	if !ok || plain.Result() == nil {
		t.Inconclusive("the client answers no ping of the scenario with a result", id)
		return
	}
	for _, m := range members[1:] {
		sent := "sent " + how + " " + m.String() + "; the plain form is served"
		switch x, ok := t.Answered(prefix + m.Is); {
		case ok:
			t.Check(x.Result() != nil, id, "a ping was refused when it was "+sent, x.Events()...)
		case t.silentTo(x), t.passedOver(x):
			t.Violation(id, "a ping was not answered when it was "+sent, x.Request)
		case t.lost(x) != "":
			t.Violation(id, t.lost(x)+" when a ping was "+sent, x.Request)
		}
	}
}

// passedOver reports whether the client answered a later request of the server, and this
// one not.
func (t *T) passedOver(x *judge.Exchange) bool {
	return x != nil && x.Response == nil && slices.ContainsFunc(t.conversationOf(x).Exchanges, func(y *judge.Exchange) bool {
		return y.From() == wire.Server && y.Request.Conn == x.Request.Conn && y.Request.Seq > x.Request.Seq && y.Response != nil
	})
}
