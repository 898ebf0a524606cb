package client

import (
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// judgeVaried judges the answers to pings that carry the members of a family. how says how a ping was sent.
func judgeVaried(t *client.T, prefix string, members []family.Member, how, id string) {
	judgeVariedBy(t, prefix, members, how, func(family.Member) string { return id })
}

// judgeVariedBy is judgeVaried for a requirement that depends on the member.
func judgeVariedBy(t *client.T, prefix string, members []family.Member, how string,
	of func(m family.Member) (id string)) {
	plain, ok := t.Answered(prefix + members[0].Is)
	if !ok || plain.Result() == nil {
		for _, m := range members[1:] {
			t.Inconclusive("the client answers no ping of this scenario with a result", of(m))
		}
		return
	}
	found := &family.Findings{Tried: members[:1]}
	for _, m := range members[1:] {
		sent := "sent " + how + " " + m.String()
		switch x, ok := t.Answered(prefix + m.Is); {
		case ok && x.Result() != nil:
			t.Tolerated(x.Response, "answered a ping that was "+sent, of(m))
		case ok:
			found.Add(m, of(m), "a ping was refused when it was "+sent, false, x.Events())
		case t.SilentTo(x), passedOver(t, x):
			found.Add(m, of(m), "a ping was not answered when it was "+sent, false, []*wire.Event{x.Request})
		case t.Lost(x) != "":
			found.Add(m, of(m), t.Lost(x)+" when a ping was "+sent, false, []*wire.Event{x.Request})
		}
	}
	recordVaried(t, found)
}

// recordVaried records the findings on the members of a family.
func recordVaried(t *client.T, found *family.Findings) {
	for _, f := range found.All {
		if f.WarnOnly {
			t.Warning(f.Requirement, found.Text(f), f.Proof...)
		} else {
			t.Violation(f.Requirement, found.Text(f), f.Proof...)
		}
	}
}

// passedOver reports whether the client answered a later request of the server, and this one not, although it must
// have read it.
func passedOver(t *client.T, x *judge.Exchange) bool {
	if x == nil || x.Response != nil {
		return false
	}
	c := t.ConversationOf(x)
	return !judge.Unread(c.Conversation, x.Request, len(c.Events)) && slices.ContainsFunc(c.Exchanges,
		func(y *judge.Exchange) bool {
			return y.From() == wire.Server && y.Request.Conn == x.Request.Conn && y.Request.Seq > x.Request.Seq &&
				y.Response != nil
		})
}

// narrowed returns the search for the member of a family that stops the client. The server sends all members at once.
// The scenario runs without them, with one half of them, and with half of those, until one is left. The run with the
// fewest members that still stops the client counts.
func narrowed(name string) func(t *client.T, again client.Again) *client.T {
	stopped := func(t *client.T) bool {
		ok, decided, _ := t.Continued()
		return decided && !ok && t.Accused()
	}
	return func(t *client.T, again client.Again) *client.T {
		if !stopped(t) || t.Ending.Attended {
			return t
		}
		with := func(members []family.Member) *client.T { // nil if nothing is shown
			only := []string{}
			for _, m := range members {
				only = append(only, m.Is)
			}
			t := again(func(t *client.T) { t.Choice.Only = map[string][]string{name: only} })
			if t == nil || !stopped(t) {
				return nil
			}
			return t
		}
		if plain := with(nil); plain != nil {
			return plain
		}
		least, members := t, t.Choice.Draw(name, t.Scenario.Name)[1:]
		for len(members) > 0 {
			half, rest := members[:(len(members)+1)/2], members[(len(members)+1)/2:]
			switch t := with(half); {
			case t == nil:
				members = rest
			case len(half) == 1:
				return t
			default:
				least, members = t, half
			}
		}
		return least
	}
}
