package judge

import (
	"math"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// How long a message may be on its way.
const (
	// Crossing is how long one may take to or from a busy receiver.
	Crossing = 200 * time.Millisecond
	// overtaking is how much later one may arrive than others that were sent after it. It counts only if no answer of
	// the peer shows that it was past the message: a POST of its own is not ordered
	// (basic/transports#sending-messages-to-the-server), and a notification may follow its cause late.
	overtaking = time.Second
	// Apart is how long a response is held back to see whether what is missing was sent only after it.
	Apart = overtaking + Crossing
)

// knew reports whether the sender of a message had certainly read an earlier one of its peer: it had by then answered
// what came after that on the same stream or, over HTTP, it asks one thing at a time and had gone on. Time proves
// nothing, and neither does what else it sent, which may have been written before, however much of it there is. Nor
// has it read what it refused by an HTTP status, as busy servers do.
func (c *Conversation) knew(later, earlier *wire.Event) bool {
	if x := c.Carrier(earlier); x != nil && earlier.From == wire.Client && x.Head != nil &&
		x.Status() >= http.StatusBadRequest {
		return false
	}
	gap := later.At - earlier.At
	return gap >= Crossing && within(c.answeredOn(earlier.Stream), earlier.Seq) < later.Seq ||
		gap >= overtaking && earlier.From == wire.Server && c.Transport == transport.NameHTTP &&
			later.Seq < c.asksAtOnce()
}

// Unread reports whether a message of a server may have been lost with its stream, which ended soon after it. The
// receiver may have closed the stream before it read the message, and each side may do so at any time
// (basic/transports#sending-messages-to-the-server). It has read the message if, before a position in the log, it
// answered that or a later request on the stream, or resumed the stream behind the message.
func Unread(c *wire.Conversation, e *wire.Event, until int) bool {
	stream := c.Carrier(e)
	if e.From != wire.Server || stream == nil || stream.End == nil || stream.End.Seq < e.Seq ||
		stream.End.At-e.At > Crossing {
		return false
	}
	named := make(map[string]bool)
	for _, x := range c.HTTP {
		if last := x.Request.HTTP.Header.Get(headerLast); last != "" && e.Seq < x.Request.Seq && x.Request.Seq < until {
			named[last] = true
		}
	}
	return !slices.ContainsFunc(c.Exchanges, func(x *Exchange) bool {
		return x.Request.Stream == e.Stream && x.Request.Seq >= e.Seq && x.Response != nil && x.Response.Seq < until
	}) && !slices.ContainsFunc(c.Events[e.Seq:stream.End.Seq], func(later *wire.Event) bool {
		return later.Stream == e.Stream && later.SSE != nil && later.SSE.HasID && named[later.SSE.ID]
	})
}

// asksAtOnce returns the position of the first POST with a request that a client made while another was open.
func (c *Conversation) asksAtOnce() int {
	return once(c, "asks at once", func() int {
		open := 0 // up to where the last was open
		for _, x := range c.HTTP {
			m := x.Message()
			if x.Method() != http.MethodPost || m == nil || m.Msg.Kind != wire.Request {
				continue
			}
			if x.Request.Seq < open {
				return x.Request.Seq
			}
			switch r := c.Of(m); {
			case r != nil && r.Response != nil:
				open = r.Response.Seq
			case x.Head != nil:
				open = x.Head.Seq
			default:
				open = math.MaxInt
			}
		}
		return math.MaxInt
	})
}

// queued reports whether a message of a server may be older than its stream, and than an event before that stream.
// Servers keep messages for which they have no stream, and send them as soon as the client listens.
func (c *Conversation) queued(e, before *wire.Event) bool {
	x := c.Carrier(e)
	return x != nil && x.Method() == http.MethodGet && x.Head != nil && x.Head.Seq > before.Seq &&
		e.At-x.Head.At < Crossing
}

// sentAfter reports whether a message was certainly sent after an earlier one of
// the same party, although it came on another stream: its sender has in between
// answered what was asked after the earlier one had come. Threads may write both at the same time, so both did not come
// within Crossing.
func (c *Conversation) sentAfter(later, earlier *wire.Event) bool {
	return later.At-earlier.At >= Crossing && within(c.askedBy(later.From.Peer()), earlier.Seq) < later.Seq
}

// A span is the time between a request and its response.
type span struct{ begin, end int }

// spansBy returns the spans of the answered requests by what they have in common,
// in the order of their beginnings. Each end is the earliest of its own and all later spans.
func spansBy[K comparable](c *Conversation, key func(x *Exchange) K) map[K][]span {
	all := make(map[K][]span)
	for _, x := range c.Exchanges {
		if x.Response != nil {
			all[key(x)] = append(all[key(x)], span{x.Request.Seq, x.Response.Seq})
		}
	}
	for _, spans := range all {
		for i := len(spans) - 2; i >= 0; i-- {
			spans[i].end = min(spans[i].end, spans[i+1].end)
		}
	}
	return all
}

// answeredOn returns the spans of the requests that came on a stream.
func (c *Conversation) answeredOn(stream string) []span {
	return once(c, "spans of streams", func() map[string][]span {
		return spansBy(c, func(x *Exchange) string { return x.Request.Stream })
	})[stream]
}

// askedBy returns the spans of a party's requests.
func (c *Conversation) askedBy(p wire.Party) []span {
	return once(c, "spans of parties", func() map[wire.Party][]span { return spansBy(c, (*Exchange).From) })[p]
}

// within returns the position at which the first request that was made after
// a position was answered.
func within(spans []span, after int) int {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].begin > after })
	if i == len(spans) {
		return math.MaxInt
	}
	return spans[i].end
}

// wentOn reports whether the trace continues long enough after a message. Further messages of its sender would have
// come by then.
func (c *Conversation) wentOn(after *wire.Event) bool {
	return c.Events[len(c.Events)-1].At-after.At >= overtaking
}
