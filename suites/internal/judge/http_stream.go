package judge

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var httpStreamRules = []Rule{
	{
		Name: "event streams",
		Requirements: []string{ids.HTTPServerSSEEventData, ids.HTTPServerSSEResponseSent,
			ids.HTTPServerSSENoEarlyClose, ids.HTTPServerSSECloseAfterResponse, ids.HTTPServerSSEOwnResponse,
			ids.HTTPServerSSERelatedMessages, ids.HTTPServerGetNoResponse, ids.HTTPServerGetUnrelated,
			ids.HTTPServerNoBroadcast, ids.HTTPClientMessagesBeforeResponse, ids.HTTPClientGetStreamMessages},
		Judge: over(judgeStreams, transport.NameHTTP),
	},
	{
		Name: "event ids",
		Requirements: []string{ids.HTTPServerEventIDUnique, ids.HTTPServerReplaySameStream,
			ids.HTTPServerEventIDCursor, ids.HTTPClientLastEventID},
		Judge: over(judgeEventIDs, transport.NameHTTP),
	},
}

// basic/transports#sending-messages-to-the-server, #listening-for-messages-from-the-server, #multiple-connections
func judgeStreams(c *Conversation, rec *Recorder) {
	answers := c.firstAnswers()
	for _, x := range c.HTTP {
		if x.MediaType() != typeEvents || !x.OK() {
			continue
		}
		judgeEventData(x, rec)
		if m := x.Message(); m != nil && m.Msg.Kind == wire.Request && len(m.Msg.Issues) == 0 &&
			x.Method() == http.MethodPost {
			c.judgeRequestStream(x, m, rec)
		}
		if x.Method() == http.MethodGet && !x.Resumes() {
			c.judgeListening(x, answers, rec)
		}
	}
	c.judgeServerMessages(rec)
}

func judgeEventData(x *wire.HTTPExchange, rec *Recorder) {
	const id = ids.HTTPServerSSEEventData
	for _, e := range x.Messages {
		switch {
		case e.Msg.Has(wire.TooDeep), e.Msg.Has(wire.TooLarge), e.Dropped > 0:
		case e.Msg.Kind == wire.Invalid:
			rec.Fail(id, wire.Server, "the data of an event is not a JSON-RPC message: "+faults(e.Msg), x.Events(e)...)
		case e.Msg.Kind == wire.Batch:
			rec.Fail(id, wire.Server, "the data of an event is an array of messages", x.Events(e)...)
		default:
			rec.Pass(id, wire.Server)
		}
	}
	for _, e := range x.Others {
		if e.Kind != wire.KindSSE || e.SSE == nil {
			continue
		}
		if e.Note != "" {
			rec.Note(id, wire.Server, "remark on the event streams: "+e.Note)
		}
		if len(e.Raw) > 0 && e.SSE.Event != "" {
			rec.Note(id, wire.Server, "an event of type "+wire.Quote(e.SSE.Event, 40)+" does not carry a message")
		}
	}
}

// judgeRequestStream judges the stream that answers a request.
func (c *Conversation) judgeRequestStream(x *wire.HTTPExchange, m *wire.Event, rec *Recorder) {
	request := c.Of(m)
	var answer *wire.Event
	for _, e := range x.Messages {
		if !e.Msg.IsResponse() {
			continue
		}
		if r := c.Of(e); r != nil && r != request {
			rec.Fail(ids.HTTPServerSSEOwnResponse, wire.Server,
				"the stream of a request carries the response to another request", x.Events(e)...)
			continue
		}
		if c.Of(e) == request && answer == nil {
			answer = e
			rec.Pass(ids.HTTPServerSSEOwnResponse, wire.Server)
		}
	}
	if answer != nil {
		rec.Pass(ids.HTTPServerSSEResponseSent, wire.Server)
		rec.Pass(ids.HTTPServerSSENoEarlyClose, wire.Server)
		if x.Complete() {
			rec.Pass(ids.HTTPServerSSECloseAfterResponse, wire.Server)
		}
		return
	}
	// A cancelled request needs no response, nothing is sent in a session that
	// has ended, and connections may break.
	if request == nil || request.Cancelled != nil || !x.Complete() || c.ending(x.End) || c.ended(x.End) {
		return
	}
	how, proof := "", []*wire.Event{x.End}
	if cut := x.CutEvent(); cut != nil {
		how, proof = ": it ended inside an event, and an event counts only with an empty "+
			"line after it", []*wire.Event{cut,
			x.End}
	} else if !c.resumedOpen(x) {
		rec.Fail(ids.HTTPServerSSENoEarlyClose, wire.Server, "the server ended the stream before the response",
			x.Events(proof...)...)
	}
	if request.Response == nil && !c.notResumed(x) {
		rec.Fail(ids.HTTPServerSSEResponseSent, wire.Server, "the stream ended without the response"+how,
			x.Events(proof...)...)
	}
}

// resumedOpen reports whether the client had resumed a stream before it ended. The messages go to one stream only
// (basic/transports#multiple-connections), so that a server may go on in the new one.
func (c *Conversation) resumedOpen(x *wire.HTTPExchange) bool {
	return slices.ContainsFunc(c.HTTP, func(later *wire.HTTPExchange) bool {
		last := later.Request.HTTP.Header.Get(headerLast)
		return last != "" && later.Request.Seq < x.End.Seq && slices.ContainsFunc(
			slices.Concat(x.Messages, x.Others), func(e *wire.Event) bool { return e.SSE != nil && e.SSE.ID == last })
	})
}

// notResumed reports whether the client could have resumed an ended stream, or the last stream that resumed it, and
// did not or left early. The response may still wait for it then (basic/transports#resumability-and-redelivery).
func (c *Conversation) notResumed(x *wire.HTTPExchange) bool {
	return once(c, "not resumed", func() map[*wire.HTTPExchange]bool {
		unresumed := make(map[*wire.HTTPExchange]bool)
		resumes := make(map[string]*wire.HTTPExchange) // by Last-Event-ID
		for _, x := range slices.Backward(c.HTTP) {
			var next *wire.HTTPExchange
			resumable := false
			for _, e := range slices.Concat(x.Messages, x.Others) {
				if e.SSE != nil && e.SSE.HasID && e.SSE.ID != "" {
					resumable = true
					next = cmp.Or(resumes[e.SSE.ID], next)
				}
			}
			left := x.End != nil && x.End.From == wire.Client
			unresumed[x] = (left || resumable && x.Complete()) && (next == nil || unresumed[next])
			if after := x.Request.HTTP.Header.Get(headerLast); after != "" {
				resumes[after] = x
			}
		}
		return unresumed
	})[x]
}

// ending reports whether the client had begun to end the session when the event
// happened.
func (c *Conversation) ending(e *wire.Event) bool {
	return once(c, "first DELETE", func() int {
		for _, x := range c.HTTP {
			if x.Method() == http.MethodDelete {
				return x.Request.Seq
			}
		}
		return len(c.Events)
	}) < e.Seq
}

// ended reports whether the server may have ended the session by the time of an
// event: it has served no request of the session since, and has answered one with
// 404 (basic/transports#session-management).
func (c *Conversation) ended(e *wire.Event) bool {
	use := once(c, "use of the session", c.sessionUse)
	return use.served <= e.Seq && use.denied >= e.Seq
}

// sessionUse holds the positions in the log of the last request that was served
// in the session and of the last response that denied it; -1 for none.
type sessionUse struct{ served, denied int }

func (c *Conversation) sessionUse() *sessionUse {
	use, session := &sessionUse{-1, -1}, c.sessionID()
	if session == "" {
		return use
	}
	for _, x := range c.HTTP {
		if x.Head == nil || x.Request.HTTP.Header.Get(headerSession) != session {
			continue
		}
		if x.OK() {
			use.served = max(use.served, x.Request.Seq)
		}
		if x.Status() == http.StatusNotFound && !deliberate(x) {
			use.denied = max(use.denied, x.Head.Seq)
		}
	}
	return use
}

// firstAnswers returns, for each position in the list of exchanges, the position
// in the log of the earliest answer to a request of the client's from there on.
func (c *Conversation) firstAnswers() []int {
	earliest := make([]int, len(c.Exchanges)+1)
	earliest[len(c.Exchanges)] = len(c.Events)
	for i, r := range slices.Backward(c.Exchanges) {
		earliest[i] = earliest[i+1]
		if answer := r.Response; answer != nil && r.From() == wire.Client {
			earliest[i] = min(earliest[i], answer.Seq)
		}
	}
	return earliest
}

// judgeListening judges a GET stream that does not resume another: responses
// belong on the streams of their requests.
func (c *Conversation) judgeListening(x *wire.HTTPExchange, answers []int, rec *Recorder) {
	const id = ids.HTTPServerGetNoResponse
	if i := slices.IndexFunc(x.Messages, isResponse); i >= 0 {
		rec.Fail(id, wire.Server, "a response came on a listening stream", x.Events(x.Messages[i])...)
		return
	}
	// Something was asked and answered elsewhere while the stream was open.
	i, _ := slices.BinarySearchFunc(c.Exchanges, x.Head.Seq,
		func(r *Exchange, seq int) int { return r.Request.Seq - seq })
	end := len(c.Events)
	if x.End != nil {
		end = x.End.Seq
	}
	if answers[i] < end {
		rec.Pass(id, wire.Server)
	}
}

func isResponse(e *wire.Event) bool { return e.Msg.IsResponse() }

// judgeServerMessages judges on which streams the server's own messages travel.
func (c *Conversation) judgeServerMessages(rec *Recorder) {
	type sighting struct {
		event *wire.Event
		x     *wire.HTTPExchange
	}
	requests := make(map[string]sighting) // of the server, by id
	progress := make(map[string]sighting)
	open := c.openStreams()
	for _, e := range c.Messages {
		x := c.Carrier(e)
		if e.From != wire.Server || e.Member || x == nil || x.Head == nil || e.Msg.IsResponse() ||
			x.MediaType() != typeEvents {
			continue
		}
		key, seen := "", map[string]sighting(nil)
		switch {
		case e.Msg.Kind == wire.Request && e.Msg.ID.Usable():
			key, seen = e.Msg.ID.Key(), requests
			c.judgeServerRequest(x, e, rec)
		case e.Msg.Kind == wire.Notification && e.Msg.Method == "notifications/progress":
			if c.Of(e) != nil { // else two that read the same may be of two requests
				key, seen = string(e.Raw), progress
			}
			c.judgeProgressStream(x, e, open[e], rec)
		case e.Msg.Kind == wire.Notification && e.Msg.Method == "notifications/cancelled":
			if r := c.Cancels(e); r != nil && x.Method() == http.MethodPost {
				asked := c.Carrier(r.Request)
				rec.Check(asked == x || asked == nil || asked.Method() == http.MethodGet,
					ids.HTTPServerSSERelatedMessages, wire.Server,
					"the stream of a request carries the cancellation of a request that was sent on another stream",
					r.Request, e)
			}
		}
		if seen != nil && !x.Resumes() {
			before, again := seen[key]
			// A token may serve a later request, whose progress then reads the same.
			reused := e.Msg.Kind == wire.Notification && c.Of(before.event) != c.Of(e)
			if again && !reused && before.x != x && before.event.Raw != nil &&
				string(before.event.Raw) == string(e.Raw) && !before.x.Resumes() {
				rec.Fail(ids.HTTPServerNoBroadcast, wire.Server, "the same message came on two streams", before.event,
					e)
				continue
			}
			seen[key] = sighting{e, x}
		}
		if open[e] > 1 {
			rec.Pass(ids.HTTPServerNoBroadcast, wire.Server)
		}
	}
}

// openStreams returns how many event streams were open when each message of
// the server came.
func (c *Conversation) openStreams() map[*wire.Event]int {
	streaming := make(map[*wire.HTTPExchange]bool)
	for _, x := range c.HTTP {
		streaming[x] = x.OK() && x.MediaType() == typeEvents
	}
	open := make(map[*wire.Event]int)
	n := 0
	for _, e := range c.Events {
		switch {
		case !streaming[c.Carrier(e)]:
		case e.Kind == wire.KindHTTPResponse:
			n++
		case e.Kind == wire.KindStreamEnd:
			n--
		case e.Kind == wire.KindMessage && e.From == wire.Server:
			open[e] = n
		}
	}
	return open
}

// judgeServerRequest counts a request of the server that the client answered.
func (c *Conversation) judgeServerRequest(x *wire.HTTPExchange, e *wire.Event, rec *Recorder) {
	r := c.Of(e)
	if r == nil || r.Response == nil {
		return
	}
	if x.Method() == http.MethodGet {
		rec.Pass(ids.HTTPClientGetStreamMessages, wire.Client)
	} else {
		rec.Pass(ids.HTTPClientMessagesBeforeResponse, wire.Client)
	}
}

// judgeProgressStream judges on which stream the progress of a request travels:
// its token shows which request that is (docs/positions.md, related-messages).
func (c *Conversation) judgeProgressStream(x *wire.HTTPExchange, e *wire.Event, open int, rec *Recorder) {
	const own, listening = ids.HTTPServerSSERelatedMessages, ids.HTTPServerGetUnrelated
	r := c.Of(e)
	if r == nil || r.From() != wire.Client || x.Resumes() {
		return
	}
	switch {
	case e.Stream == r.Request.Stream:
		rec.Pass(own, wire.Server)
		if open > 1 {
			rec.Pass(listening, wire.Server)
		}
	case x.Method() == http.MethodPost:
		rec.Fail(own, wire.Server, "the stream "+x.Stream+carrying(x)+" carries progress of the request with the id "+
			r.Request.Msg.ID.String()+", which was sent on the stream "+r.Request.Stream,
			chronological(append(slices.Clone(x.Sent), r.Request, e)...)...)
	case r.Response == nil || r.Response.Seq > e.Seq:
		rec.Fail(listening, wire.Server, "the listening stream carries progress of a request that is still running",
			r.Request, x.Request, e)
	}
}

// carrying names the request that was sent on a stream, for a finding.
func carrying(x *wire.HTTPExchange) string {
	if e := x.Message(); e != nil && e.Msg.Kind == wire.Request {
		return " of the request with the id " + e.Msg.ID.String()
	}
	return ""
}

// idEvent is an event with an id, where it was first seen.
type idEvent struct {
	event    *wire.Event
	stream   *wire.HTTPExchange
	position int
}

// eventStream is a stream with the streams that resume it.
type eventStream struct {
	history []*wire.Event // with ids that no other stream had before
	last    string        // id
	// ended is set once the server ended the stream, so that the client had all of
	// it. If the client ends it, events may still be on their way.
	ended bool
}

// leftBehind reports whether a client that resumes a stream may have closed it behind an event, before it read the next
// one.
func (c *Conversation) leftBehind(s *eventStream, last string, get *wire.Event) bool {
	i := slices.IndexFunc(s.history, func(e *wire.Event) bool { return e.SSE.ID == last })
	return i >= 0 && i+1 < len(s.history) && Unread(c.Conversation, s.history[i+1], get.Seq)
}

// eventIDs follows the ids of events over the streams of a conversation.
type eventIDs struct {
	*Conversation
	rec      *Recorder
	seen     map[string]idEvent
	first    map[string]idEvent                        // on a stream that resumes none
	bound    map[*wire.HTTPExchange]*wire.HTTPExchange // the stream that each resumes, at the end of the chain
	carried  map[*wire.HTTPExchange]*eventStream       // by the exchange that it began with
	carriers map[string][]*eventStream                 // by event id
}

// basic/transports#resumability-and-redelivery
func judgeEventIDs(c *Conversation, rec *Recorder) {
	s := &eventIDs{Conversation: c, rec: rec, seen: make(map[string]idEvent),
		first: make(map[string]idEvent), bound: make(map[*wire.HTTPExchange]*wire.HTTPExchange),
		carried: make(map[*wire.HTTPExchange]*eventStream), carriers: make(map[string][]*eventStream)}
	for _, x := range c.HTTP {
		s.carried[x] = new(eventStream)
	}
	for _, e := range c.Events {
		if x := c.Carrier(e); x != nil && !x.Resumes() && givesID(e) && s.first[e.SSE.ID].event == nil {
			s.first[e.SSE.ID] = idEvent{event: e, stream: x}
		}
	}
	for _, e := range c.Events {
		x := c.Carrier(e)
		if x == nil {
			continue
		}
		if e == x.Request && x.Resumes() {
			s.resume(x)
		}
		owner := cmp.Or(s.bound[x], x)
		if e.Kind == wire.KindStreamEnd {
			s.carried[owner].ended = e.From == wire.Server
		}
		if givesID(e) {
			s.event(e, x, owner)
		}
	}
	for _, x := range c.HTTP {
		if b := s.bound[x]; b != nil && x.OK() {
			s.judgeReplay(x, b)
		}
	}
}

// givesID reports whether an event of a stream has an id.
func givesID(e *wire.Event) bool {
	return e.SSE != nil && e.SSE.HasID && e.SSE.ID != "" && e.From == wire.Server
}

// resume judges a request that resumes a stream, and binds it to that. Any stream that broke off with the id may be
// meant.
func (s *eventIDs) resume(x *wire.HTTPExchange) {
	last := x.Request.HTTP.Header.Get(headerLast)
	ok := slices.ContainsFunc(s.carriers[last], func(stream *eventStream) bool {
		return stream.last == last || !stream.ended || s.leftBehind(stream, last, x.Request)
	})
	if known, found := s.seen[last]; found && x.Method() == http.MethodGet {
		s.bound[x] = known.stream
		s.carried[known.stream].ended = false
	}
	s.rec.Check(ok, ids.HTTPClientLastEventID, wire.Client,
		"Last-Event-ID does not name the last event of any stream", x.Events()...)
}

// event judges an event that has an id. It came with x, on the stream that began with owner.
func (s *eventIDs) event(e *wire.Event, x, owner *wire.HTTPExchange) {
	stream := s.carried[owner]
	before, again := s.seen[e.SSE.ID]
	first := s.first[e.SSE.ID]
	sent := before.event != nil && before.stream == owner
	stream.last = e.SSE.ID
	if at := s.carriers[e.SSE.ID]; !slices.Contains(at[max(0, len(at)-1):], stream) {
		s.carriers[e.SSE.ID] = append(at, stream)
	}
	switch {
	case x.Resumes() && first.event != nil && first.stream != owner && wire.Same(e, first.event):
		// judgeReplay judges what belongs to another stream, whichever of the two is read first.
	case !again:
		s.seen[e.SSE.ID] = idEvent{e, owner, len(stream.history)}
		stream.history = append(stream.history, e)
		if len(s.seen) > 1 {
			s.rec.Pass(ids.HTTPServerEventIDUnique, wire.Server)
		}
	case (x.Resumes() || sent && s.Carrier(before.event) != x) && wire.Same(e, before.event):
		// judgeReplay judges it. A replayed event can be read before the original is read from its first stream.
	case sent && e.Raw == nil:
		// Without data nothing is dispatched: it only says where the stream is, as the field id of the SSE standard
		// does.
	case sent && before.event.Raw == nil:
		s.seen[e.SSE.ID] = idEvent{e, owner, before.position} // what was announced so
		stream.history[before.position] = e
	default:
		s.rec.Fail(ids.HTTPServerEventIDUnique, wire.Server, "two events carry the id "+wire.Quote(e.SSE.ID, 80),
			before.event, e)
	}
}

// judgeReplay judges what a resumed stream brings: events of the stream that
// it resumes, from the named one on.
func (s *eventIDs) judgeReplay(x, original *wire.HTTPExchange) {
	const same, cursor = ids.HTTPServerReplaySameStream, ids.HTTPServerEventIDCursor
	history := s.carried[original].history
	from := s.seen[x.Request.HTTP.Header.Get(headerLast)]
	expected := from.position + 1
	replayed := false
	for _, e := range slices.Concat(x.Messages, x.Others) {
		if s.belongsElsewhere(e, original) {
			r := s.Of(e).Request
			s.rec.Fail(same, wire.Server, "the GET resumes the stream "+original.Stream+carrying(original)+
				", and brings a message about the request with the id "+r.Msg.ID.String()+
				", which was sent on the stream "+r.Stream,
				chronological(append(slices.Clone(original.Sent), from.event, r, x.Request, e)...)...)
			return
		}
		if !givesID(e) || e.Kind != wire.KindMessage {
			continue
		}
		known := s.seen[e.SSE.ID]
		switch {
		case known.stream != original && s.wouldHaveCome(known, original, s.bound):
			continue
		case known.stream != original:
			s.rec.Fail(same, wire.Server, "the GET resumes the stream "+original.Stream+carrying(original)+
				", and brings the event with the id "+wire.Quote(e.SSE.ID, 80)+" of the stream "+known.stream.Stream+
				carrying(known.stream),
				chronological(slices.Concat(original.Sent, known.stream.Sent,
					[]*wire.Event{from.event, known.event, x.Request, e})...)...)
			return
		case known.position <= from.position:
			s.rec.Fail(cursor, wire.Server,
				"the resumed stream repeats an event that Last-Event-ID reports as received", x.Request, from.event, e)
			return
		case known.position <= expected || expected >= len(history) || history[expected].Kind != wire.KindMessage:
		case known.event == e && !replayed:
			continue // it came for the first time, and a server need not replay what came before it
		default:
			s.rec.Fail(cursor, wire.Server, "the resumed stream leaves out an event after the one that "+
				"Last-Event-ID names", x.Request, from.event, history[expected], e)
			return
		}
		expected = known.position + 1
		replayed = true
	}
	if replayed {
		s.rec.Pass(same, wire.Server)
		s.rec.Pass(cursor, wire.Server)
	}
}

// wouldHaveCome reports whether an event may belong to a listening stream that was broken off: it came on another
// stream while no connection carried the first. A server may have one sequence of events for all its own messages. It
// cannot tell a returning client without Last-Event-ID from a second stream (docs/positions.md, listening-again).
func (c *Conversation) wouldHaveCome(known idEvent, original *wire.HTTPExchange,
	bound map[*wire.HTTPExchange]*wire.HTTPExchange) bool {
	if known.stream.Method() != http.MethodGet || original.Method() != http.MethodGet || known.event.Msg == nil ||
		known.event.Msg.IsResponse() {
		return false
	}
	return !slices.ContainsFunc(c.HTTP, func(x *wire.HTTPExchange) bool {
		if x != original && bound[x] != original || x.Head == nil || x.Head.Seq > known.event.Seq {
			return false
		}
		// The end of one connection and an event on another one may overtake each other.
		return x.End == nil || x.End.At-known.event.At >= Crossing
	})
}

// belongsElsewhere reports whether a message provably belongs to the stream of another
// request.
func (c *Conversation) belongsElsewhere(e *wire.Event, original *wire.HTTPExchange) bool {
	if e.Kind != wire.KindMessage {
		return false
	}
	r := c.Of(e)
	if r == nil || r.From() != wire.Client {
		return false
	}
	if original.Method() == http.MethodGet &&
		(e.Msg.Kind == wire.Notification || slices.ContainsFunc(original.Messages, isResponse)) {
		return false // the server sends responses on the listening stream, which is a finding of its own
	}
	return r.Request.Stream != original.Stream
}
