package judge

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var exchangeRules = []Rule{
	{
		Name:         "request ids",
		Requirements: []string{ids.BaseRequestIDUnique},
		Judge:        judgeRequestIDs,
	},
	{
		Name: "responses",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseOnlyToRequests,
			ids.BaseResponseIDEcho, ids.BaseResponseIDTypeEcho, ids.BaseNotificationNoResponse,
			ids.BaseErrorUndetectableID},
		Judge: judgeResponses,
	},
}

// An id is used for one request in a session, whatever became of the request
// (basic/index#requests).
func judgeRequestIDs(c *Conversation, rec *Recorder) {
	seen := map[wire.Party]map[string]*wire.Event{wire.Client: {}, wire.Server: {}}
	for _, x := range c.Exchanges {
		id := x.Request.Msg.ID
		if !id.Usable() {
			continue
		}
		if first, again := seen[x.From()][id.Key()]; again {
			if c.SentAgain(first, x.Request) || c.unnamed(x.Request) {
				seen[x.From()][id.Key()] = x.Request
				continue
			}
			rec.Fail(ids.BaseRequestIDUnique, x.From(), "the id "+id.String()+" was used before in this session",
				first, x.Request)
			continue
		}
		seen[x.From()][id.Key()] = x.Request
		rec.Pass(ids.BaseRequestIDUnique, x.From())
	}
}

// unnamed reports whether a message of a client may belong to another session than that of its
// conversation: where the server has assigned no session id, nothing tells two clients at one URL apart
// (basic/transports#session-management).
func (c *Conversation) unnamed(e *wire.Event) bool {
	return e.From == wire.Client && c.Transport == transport.NameHTTP && c.Handshaken() && c.sessionID() == "" &&
		e.Seq > c.Init.Request.Seq
}

func judgeResponses(c *Conversation, rec *Recorder) {
	for _, x := range c.Exchanges {
		responder := x.From().Peer()
		switch {
		case len(x.Further) > 0 && len(x.Further) > c.othersWith(x):
			rec.Fail(ids.BaseResponseOnce, responder, fmt.Sprintf("the request got %d responses", 1+len(x.Further)),
				x.Events()...)
		case x.Response != nil:
			rec.Pass(ids.BaseResponseOnce, responder)
			rec.Pass(ids.BaseResponsePresent, responder)
			rec.Pass(ids.BaseResponseOnlyToRequests, responder)
			judgeEcho(x, responder, rec)
		}
	}
	told := make(map[*Exchange]bool)
	for _, e := range c.Events {
		if e.Kind != wire.KindTimeout {
			continue
		}
		// A tool may take longer than the time limit, and a server may handle one
		// request after the other. Other rules judge how soon it answers pings.
		x := c.unanswered(e, told)
		if x != nil && c.Transport == transport.NameHTTP && rec.trace.oneAtATime(x, e) {
			rec.Note(ids.BaseResponsePresent, e.From, "the server answers no initialize while another session is open")
			continue
		}
		if x != nil && x.Method() != "tools/call" && !c.behindTool(x, e) && !c.leftUnread(x, e) &&
			!c.refusedUnnamed(x, e) {
			rec.Fail(ids.BaseResponsePresent, e.From, "no response to "+x.Method()+" came in time", x.Request, e)
		}
	}
	judgeStray(c, rec)
	for _, e := range c.Messages {
		if e.Msg.Kind == wire.Notification && e.Msg.Method != "" && len(e.Msg.Issues) == 0 {
			rec.Pass(ids.BaseNotificationNoResponse, e.From.Peer())
		}
	}
}

func judgeEcho(x *Exchange, responder wire.Party, rec *Recorder) {
	asked, given := x.Request.Msg.ID, x.Response.Msg.ID
	if !given.Usable() {
		return // judgeEnvelope has looked at the missing id
	}
	if x.Resembling {
		rec.Fail(ids.BaseResponseIDTypeEcho, responder,
			fmt.Sprintf("the id of the response is %s, that of the request %s", given, asked), x.Events()...)
		return
	}
	rec.Pass(ids.BaseResponseIDTypeEcho, responder)
	rec.Pass(ids.BaseResponseIDEcho, responder)
	if asked.String() != given.String() {
		rec.Note(ids.BaseResponseIDEcho, responder, fmt.Sprintf("the id %s came back spelled %s", asked, given))
	}
}

// unanswered returns the request that a timeout tells of, if it stayed without any response. That is the first one of
// its method that no timeout has told of yet. A request that may have been lost with its stream comes last.
func (c *Conversation) unanswered(timeout *wire.Event, told map[*Exchange]bool) (found *Exchange) {
	method, ok := strings.CutPrefix(timeout.Note, "answer to ")
	if !ok {
		return nil
	}
	for _, x := range c.Exchanges {
		if x.Method() == method && x.From() != timeout.From && x.Response == nil && !told[x] &&
			(x.Cancelled == nil || x.Cancelled.Seq > timeout.Seq) && x.Request.Seq < timeout.Seq &&
			x.Request.Msg.ID.Usable() {
			found = x
			if !Unread(c.Conversation, x.Request, timeout.Seq) {
				break
			}
		}
	}
	if found != nil {
		told[found] = true
	}
	return found
}

// leftUnread reports whether the client closed the stream of a request and may not have read the request. It may have
// stopped reading at an earlier text on the stream that is not a message. Or it gave up its own request, after it had
// answered other requests on the stream. Disconnection may come at any time
// (basic/transports#sending-messages-to-the-server).
func (c *Conversation) leftUnread(x *Exchange, until *wire.Event) bool {
	stream := c.Carrier(x.Request)
	if c.Transport != transport.NameHTTP || x.From() != wire.Server || stream == nil {
		return false
	}
	left := stream.End != nil && stream.End.From == wire.Client && x.Request.Seq < stream.End.Seq &&
		stream.End.Seq < until.Seq
	return left && (c.givenUp(stream, x) || slices.ContainsFunc(slices.Concat(stream.Sent, stream.Messages),
		func(e *wire.Event) bool {
			return e.Seq < x.Request.Seq && e.Kind == wire.KindMessage &&
				(e.Msg.Kind == wire.Invalid || len(e.Msg.Issues) > 0)
		}))
}

// givenUp reports whether the client cancelled the request to which a stream belongs soon after x came
// on the stream, and had answered another request of the server there before. Soon is less than
// a quarter of the time for which the client had waited.
func (c *Conversation) givenUp(stream *wire.HTTPExchange, x *Exchange) bool {
	soon, answering := false, false
	for _, y := range c.Exchanges {
		if c.Carrier(y.Request) != stream {
			continue
		}
		if y.From() == wire.Client && y.Cancelled != nil && y.Cancelled.Seq > x.Request.Seq {
			soon = y.Cancelled.At-x.Request.At < (y.Cancelled.At-y.Request.At)/4
		}
		answering = answering || y.From() == wire.Server && y.Response != nil && y.Response.Seq < x.Request.Seq
	}
	return soon && answering
}

// refusedUnnamed reports whether an error without an id may have answered a
// request by the time of an event. Other rules judge that the id is missing.
func (c *Conversation) refusedUnnamed(x *Exchange, at *wire.Event) bool {
	return slices.ContainsFunc(c.Events[x.Request.Seq:at.Seq], func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From != x.From() && e.Msg.Kind == wire.ErrorResponse &&
			!e.Msg.ID.Usable() &&
			!c.answersUnreadable(e)
	})
}

// behindTool reports whether a tool that was called before a request was still
// running at an event, and was answered later.
func (c *Conversation) behindTool(x *Exchange, at *wire.Event) bool {
	for _, y := range c.Exchanges {
		if y.Request.Seq >= x.Request.Seq {
			return false
		}
		if y.From() == x.From() && y.Method() == "tools/call" && y.Response != nil && y.Response.Seq > at.Seq {
			return true
		}
	}
	return false
}

// judgeStray attributes responses that belong to no request of the peer.
func judgeStray(c *Conversation, rec *Recorder) {
	for _, stray := range c.Stray {
		e, cause := stray.Event, stray.Cause
		switch {
		case c.answersUnfinished(e):
			// Whether what it answers was a message is judged where it was sent.
		case c.answersInvalid(e):
			// It answers a message that is not a request, but whose id could be read.
		case !e.Msg.ID.Usable():
			// judgeEnvelope has looked at the missing id. The earlier messages show to what it is an answer.
			switch answered := c.strayBefore(e); {
			case cause == nil || c.answersUnreadable(e) || refusedStatus(c, e):
			case stray.Awaited && c.faults[e.From.Peer()].open < e.Seq:
				// It may answer a request that got no other answer.
			case answered != nil:
				rec.Fail(ids.BaseResponseOnlyToRequests, e.From, "a response was answered, as if it were a request",
					answered, e)
			case cause.Msg.Kind == wire.Notification && !stray.Awaited:
				rec.Fail(ids.BaseNotificationNoResponse, e.From, "a notification was answered", cause, e)
			}
			if c.answersUnreadable(e) {
				rec.Pass(ids.BaseErrorUndetectableID, e.From)
			}
		case c.strayWith(e) != nil:
			rec.Fail(ids.BaseResponseOnlyToRequests, e.From, "a response was answered, as if it were a request",
				c.strayWith(e), e)
		case c.answersUnreadable(e) && !c.inAnswerToRequest(e):
			rec.Fail(ids.BaseErrorUndetectableID, e.From,
				"an error for a message without a readable id carries the id "+e.Msg.ID.String(), before(cause, e)...)
		default:
			rec.Fail(ids.BaseResponseOnlyToRequests, e.From,
				"there was no request with the id "+e.Msg.ID.String(), before(cause, e)...)
		}
	}
}

// answersUnfinished reports whether a response has an id from an incomplete event.
func (c *Conversation) answersUnfinished(e *wire.Event) bool {
	cut := once(c, "cut", func() (all []*wire.Event) {
		for _, sent := range c.Events {
			if sent.Kind == wire.KindSSE && bytes.Contains(sent.Raw, []byte(`"id":`)) {
				all = append(all, sent)
			}
		}
		return all
	})
	return e.Msg.ID.Usable() && slices.ContainsFunc(cut, func(sent *wire.Event) bool {
		return sent.Seq < e.Seq && sent.From != e.From && bytes.Contains(sent.Raw, []byte(`"id":`+e.Msg.ID.String()))
	})
}

// strayBefore returns the newest response of the peer that belonged to no request, if
// an event may answer it, rather than a notification that came after it: a request between
// the two has been answered.
func (c *Conversation) strayBefore(e *wire.Event) *wire.Event {
	sent := c.faults[e.From.Peer()].responses
	i := sort.Search(len(sent), func(i int) bool { return sent[i].Seq > e.Seq })
	if i == 0 {
		return nil
	}
	stray := sent[i-1]
	read := within(c.askedBy(stray.From), stray.Seq)
	if slices.ContainsFunc(c.Events[min(read, e.Seq):e.Seq], func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == stray.From && e.Msg.Kind == wire.Notification
	}) {
		return nil
	}
	return stray
}

func before(cause, e *wire.Event) []*wire.Event {
	if cause == nil {
		return []*wire.Event{e}
	}
	return []*wire.Event{cause, e}
}

// answersUnreadable reports whether an error can be the answer to a message that
// was not a readable request. A receiver may be unable to tell what a message
// with any fault is: then its answer, if there is one, cannot carry an id.
func (c *Conversation) answersUnreadable(e *wire.Event) bool {
	first := c.faults[e.From.Peer()].unreadable
	return first >= 0 && first < e.Seq && e.Msg.Kind == wire.ErrorResponse
}

// inAnswerToRequest reports whether an event comes in the HTTP response to a POST with a request
// (basic/transports#sending-messages-to-the-server).
func (c *Conversation) inAnswerToRequest(e *wire.Event) bool {
	x := c.Carrier(e)
	return x != nil && x.Message() != nil && x.Message().Msg.Kind == wire.Request
}

// strayWith returns the response of the peer that belonged to no request and whose id a response
// carries.
func (c *Conversation) strayWith(e *wire.Event) *wire.Event {
	first, ok := c.faults[e.From.Peer()].strays[e.Msg.ID.Key()]
	if !ok || first > e.Seq || !e.Msg.ID.Usable() {
		return nil
	}
	return c.Events[first]
}

// othersWith counts the messages that are no requests, and that carried the id of a request between
// it and its last response: one more response may be for each.
func (c *Conversation) othersWith(x *Exchange) (n int) {
	for _, e := range c.Events[x.Request.Seq:x.Further[len(x.Further)-1].Seq] {
		if e.Kind == wire.KindMessage && e.From == x.From() && e.Msg.Kind == wire.Invalid &&
			e.Msg.ID.Key() == x.Request.Msg.ID.Key() {
			n++
		}
	}
	return n
}

// answersInvalid reports whether a response carries the id of a message of the
// peer that was not a valid request.
func (c *Conversation) answersInvalid(e *wire.Event) bool {
	if !e.Msg.ID.Usable() {
		return false
	}
	first, ok := c.faults[e.From.Peer()].invalid[e.Msg.ID.Key()]
	return ok && first < e.Seq
}
