package judge

import (
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Exchange is a request with everything that refers to it.
type Exchange = wire.Exchange

// Conversation is one connection as the rules see it: the conversation in its log, without the parts of another
// revision, and values that several rules share.
type Conversation struct {
	*wire.Conversation
	Revision  *schema.Revision
	Log       *wire.Log
	Transport string

	foreign foreignStreams
	faults  map[wire.Party]*messageFaults
	found   map[string]any // see once
}

// once returns what a function finds. It calls the function only the first time, and keeps what it found under a name.
func once[T any](c *Conversation, name string, find func() T) T {
	if known, ok := c.found[name].(T); ok {
		return known
	}
	v := find()
	c.found[name] = v
	return v
}

// findHops returns the streams of requests that the server redirected and the client made again
// where the redirect leads: what they carry was sent once (docs/positions.md, hops).
func findHops(all []*wire.HTTPExchange) map[string]bool {
	target := func(x *wire.HTTPExchange) string {
		if x.Status()/100 != 3 {
			return ""
		}
		from, err := url.Parse(x.Request.HTTP.URL)
		if err != nil {
			return ""
		}
		to, err := from.Parse(x.Head.HTTP.Header.Get("Location"))
		if err != nil || to.String() == from.String() {
			return ""
		}
		return to.String()
	}
	if !slices.ContainsFunc(all, func(x *wire.HTTPExchange) bool { return target(x) != "" }) {
		return nil
	}
	request := func(x *wire.HTTPExchange, at string) string {
		key := x.Method() + " " + location(at)
		for _, e := range x.Sent {
			key += "\n" + string(e.Raw)
		}
		return key
	}
	hops, again := make(map[string]bool), make(map[string]bool) // again: the requests that were made later
	for _, x := range slices.Backward(all) {
		if to := target(x); to != "" && again[request(x, to)] {
			hops[x.Stream] = true
		}
		again[request(x, x.Request.HTTP.URL)] = true
	}
	return hops
}

// messageFaults holds the positions of a party's messages that the peer may be
// unable to read; -1 for none.
type messageFaults struct {
	unreadable int            // the first message with a fault
	garbled    []int          // what is no message, and responses that do not say to what, in order
	nullID     int            // the first request whose id is null
	otherIDs   map[string]int // the first request whose id is neither a string nor an integer, by that
	invalid    map[string]int // the first message with a fault, by its id
	strays     map[string]int // the first response that belongs to no request, by its id
	responses  []*wire.Event  // with an id, all that belong to no request, in order
	open       int            // the first request that was never answered
}

// NewConversation reads a connection's log, to be judged by a revision.
func NewConversation(revision *schema.Revision, l *wire.Log) *Conversation {
	c := &Conversation{Conversation: l.Conversation(), Revision: revision, Log: l, Transport: l.Transport,
		faults: make(map[wire.Party]*messageFaults), found: make(map[string]any)}
	c.foreign = findForeign(revision, c.Events, c.Transport)
	if hops := findHops(c.HTTP); len(c.foreign) > 0 || len(hops) > 0 {
		c.Conversation = wire.Converse(c.Transport, c.Events, c.foreign, hops)
	}
	for _, p := range []wire.Party{wire.Client, wire.Server} {
		c.faults[p] = &messageFaults{unreadable: -1, nullID: -1, open: math.MaxInt, otherIDs: make(map[string]int),
			invalid: make(map[string]int), strays: make(map[string]int)}
	}
	for _, e := range c.Messages {
		c.faults[e.From].add(e)
	}
	for _, stray := range c.Stray {
		if e := stray.Event; e.Msg.ID.Usable() {
			remember(c.faults[e.From].strays, e.Msg.ID, e)
			c.faults[e.From].responses = append(c.faults[e.From].responses, e)
		}
	}
	for _, x := range c.Exchanges {
		if f := c.faults[x.From()]; x.Response == nil {
			f.open = min(f.open, x.Request.Seq)
		}
	}
	return c
}

func remember(first map[string]int, id wire.ID, e *wire.Event) {
	if _, known := first[id.Key()]; !known {
		first[id.Key()] = e.Seq
	}
}

func (f *messageFaults) add(e *wire.Event) {
	if len(e.Msg.Issues) == 0 && e.Msg.Kind != wire.Invalid {
		return
	}
	if f.unreadable < 0 {
		f.unreadable = e.Seq
	}
	if e.Msg.Kind == wire.Invalid || e.Msg.IsResponse() && !e.Msg.ID.Usable() {
		f.garbled = append(f.garbled, e.Seq)
	}
	if f.nullID < 0 && e.Msg.Kind == wire.Request && e.Msg.Has(wire.IDNull) {
		f.nullID = e.Seq
	}
	id := e.Msg.ID
	if e.Msg.Kind == wire.Request && (fraction(id) || e.Msg.Has(wire.IDType)) {
		remember(f.otherIDs, id, e)
	}
	if !id.Usable() {
		id = misspelledID(e.Msg.Value())
	}
	if id.Usable() {
		remember(f.invalid, id, e)
	}
}

// fraction reports whether an id is a number that is not an integer.
func fraction(id wire.ID) bool {
	return !id.Usable() && id.String() != "" && strings.Trim(id.String(), "-+.eE0123456789") == ""
}

// misspelledID returns what a reader without regard to case would take for the
// id of a message: such a reader breaks base.jsonrpc.member-case alone.
func misspelledID(message any) wire.ID {
	members, _ := message.(map[string]any)
	for _, name := range []string{"ID", "Id", "iD"} {
		if v, ok := members[name]; ok {
			return wire.ReadID(v)
		}
	}
	return wire.ID{}
}

// brokenOnPurpose reports whether something in the request itself was broken on purpose. It ignores a wrong time or
// stream, and requirements of the features of the sender: its own requests do not show those.
func brokenOnPurpose(revision *schema.Revision, x *Exchange) bool {
	return slices.ContainsFunc(x.Request.Deliberate, func(id string) bool {
		q, known := revision.Lookup(id)
		return !known || q.Page != "basic/transports" && q.Page != "basic/lifecycle" &&
			!strings.HasPrefix(q.Page, string(x.From())+"/")
	})
}

// chronological sorts events of one conversation as they came.
func chronological(events ...*wire.Event) []*wire.Event {
	slices.SortStableFunc(events, func(a, b *wire.Event) int { return a.Seq - b.Seq })
	return slices.Compact(events)
}

// declaring returns events after the message of the handshake in which a party declared its
// capabilities: the premise of what is wrong because of them.
func declaring(c *Conversation, p wire.Party, events ...*wire.Event) []*wire.Event {
	declaration := c.Init.Request
	if p == wire.Server {
		declaration = c.Init.Response
	}
	return chronological(append(events, declaration)...)
}
