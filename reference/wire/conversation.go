package wire

import (
	"encoding/json"
	"net/http"
	"reflect"
	"time"
	"weak"
)

// Conversation is a connection as its two sides see it: its events, with requests
// paired with their responses, and the handshake. It does not change once
// [Log.Conversation] or [Converse] has returned it.
type Conversation struct {
	Events    []*Event
	Messages  []*Event    // the events that hold messages, in order, without replays
	Exchanges []*Exchange // requests in order
	// HTTP holds the exchanges in the order in which they began, without those that a browser
	// begins of its own accord; none over stdio.
	HTTP []*HTTPExchange
	// Stray holds responses that belong to no request.
	Stray []Stray

	// Init is the first initialize exchange or, if that was refused, the first one that succeeded; nil when there was
	// none.
	Init *Exchange
	// Initialized is the first initialized notification, or nil.
	Initialized *Event
	// Version is the protocol version of the initialize result, or "".
	Version string
	// Capabilities are those declared in the handshake, by party.
	Capabilities map[Party]map[string]any

	overHTTP bool
	foreign  map[string]bool // see Converse
	hops     map[string]bool
	of       []*Exchange // by position in the log: the exchange of a request, response or progress notification
	streams  map[string]*HTTPExchange
	begun    []*HTTPExchange // all of them; the head of the request may still be missing
	sides    map[Party]*side
	replays  replays
	meant    map[*Event]*Exchange // see Meant
}

// side is what one party has sent so far.
type side struct {
	requests map[string]sameID    // by id, without regard to its type
	tokens   map[string]*Exchange // newest request by progress token
	last     *Event               // message
	waiting  int                  // requests without a response

	// How many requests a response without an id may mean, and the sum of their
	// positions in the log: if there is one request, its position.
	open, openSum int
	// notified is the position of a notification that no round trip has followed; -1 for none.
	notified int
	// greeted counts the initialize messages without an id.
	greeted int
}

// sameID holds the newest requests whose ids differ at most in their type.
type sameID struct{ number, text, newest *Exchange }

const headerLast = "Last-Event-Id" // as net/http spells it

// Converse reads the events of a connection. Messages on foreign streams are not part of the conversation; the HTTP
// exchanges that hold them are. Hops, the requests that were redirected and made again elsewhere, are left out, and
// so are their messages.
func Converse(transport string, events []*Event, foreign, hops map[string]bool) *Conversation {
	c := newConversation(transport, foreign)
	c.hops = hops
	c.read(events)
	return c.finish()
}

// finish completes the conversation before it is returned.
func (c *Conversation) finish() *Conversation {
	for _, x := range c.begun {
		if c.counts(x) {
			c.HTTP = append(c.HTTP, x)
		}
	}
	return c
}

// counts reports whether an HTTP exchange is one that the client meant to make.
func (c *Conversation) counts(x *HTTPExchange) bool {
	return x.Request != nil && !x.preflight() && !c.hops[x.Stream]
}

func newConversation(transport string, foreign map[string]bool) *Conversation {
	c := &Conversation{
		Capabilities: make(map[Party]map[string]any),
		overHTTP:     transport != "stdio",
		foreign:      foreign,
		streams:      make(map[string]*HTTPExchange),
		sides:        make(map[Party]*side),
		replays:      replays{resuming: make(map[string]bool), seen: make(map[string]*Event)},
	}
	for _, p := range []Party{Client, Server} {
		c.sides[p] = &side{requests: make(map[string]sameID), tokens: make(map[string]*Exchange), notified: -1}
	}
	return c
}

// read goes on to the end of the events, of which those so far are a part.
func (c *Conversation) read(events []*Event) {
	fresh := events[len(c.Events):]
	c.Events = events
	for _, e := range fresh {
		c.of = append(c.of, nil)
		c.add(e)
	}
}

func (c *Conversation) add(e *Event) {
	if c.overHTTP && e.Stream != "" {
		c.travel(e)
	}
	if c.replays.is(e) || e.Kind != KindMessage || c.foreign[e.Stream] || c.hops[e.Stream] || c.sides[e.From] == nil {
		return
	}
	c.Messages = append(c.Messages, e)
	switch m := e.Msg; {
	case m.Kind == Request:
		c.request(e)
	case m.IsResponse():
		c.response(e)
	case m.Kind == Notification:
		c.notification(e)
	}
	c.sides[e.From].last = e
}

func (c *Conversation) travel(e *Event) {
	x := c.streams[e.Stream]
	if x == nil {
		x = &HTTPExchange{Stream: e.Stream, Retry: -1}
		c.streams[e.Stream] = x
		c.begun = append(c.begun, x)
	}
	x.add(e)
}

// replays finds the messages that a resumed stream brings once more. They count
// once (basic/transports#resumability-and-redelivery).
type replays struct {
	resuming map[string]bool // streams that were opened with Last-Event-ID
	seen     map[string]*Event
}

func (r *replays) is(e *Event) bool {
	if e.Kind == KindHTTPRequest && e.HTTP != nil && e.HTTP.Header.Get(headerLast) != "" {
		r.resuming[e.Stream] = true
	}
	if e.Kind != KindMessage || e.SSE == nil || !e.SSE.HasID || e.SSE.ID == "" {
		return false
	}
	before, again := r.seen[e.SSE.ID]
	if !again {
		r.seen[e.SSE.ID] = e
		return false
	}
	// A replayed event can be read before the original is read from its first stream.
	resumed := r.resuming[e.Stream] || before.Stream != e.Stream && r.resuming[before.Stream]
	return resumed && Same(e, before)
}

// Same reports whether two events say the same, however it is spelled.
func Same(a, b *Event) bool {
	if string(a.Raw) == string(b.Raw) {
		return true
	}
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && reflect.DeepEqual(x, y)
}

func (c *Conversation) request(e *Event) {
	s := c.sides[e.From]
	x := &Exchange{Request: e, settled: true}
	c.Exchanges = append(c.Exchanges, x)
	c.of[e.Seq] = x
	s.waiting++
	if carrier := c.streams[e.Stream]; carrier != nil {
		carrier.carried = append(carrier.carried, x)
		x.Head = carrier.Head
	}
	if e.Msg.ID.Usable() {
		s.use(x)
	}
	if x.Token = At(e.Msg.Params, "_meta", "progressToken"); x.Token != nil {
		s.tokens[TokenKey(x.Token)] = x
	}
	if e.Msg.Method == "initialize" && (c.Init == nil || c.Init.Deferred()) {
		c.begin(x)
	}
}

// begin takes an initialize exchange for the one by which the session begins.
func (c *Conversation) begin(x *Exchange) {
	c.Init = x
	c.Capabilities[x.From()], _ = At(x.Request.Msg.Params, "capabilities").(map[string]any)
}

// use remembers a request by its id.
func (s *side) use(x *Exchange) {
	id := x.Request.Msg.ID
	same := s.requests[id.Loose()]
	before := &same.text
	if id.number {
		before = &same.number
	}
	x.oldest = x
	if other := *before; other != nil {
		other.later = x
		if other.oldest != nil {
			x.oldest, x.Shared = other.oldest, true
			other.Shared = true // as those before it are, if there are any
		}
		s.settle(other)
	}
	*before, same.newest = x, x
	s.requests[id.Loose()] = same
	x.settled = false
	s.open, s.openSum = s.open+1, s.openSum+x.Request.Seq
}

// settle notes that no response without an id can mean the request any more.
func (s *side) settle(x *Exchange) {
	if !x.settled {
		x.settled = true
		s.open, s.openSum = s.open-1, s.openSum-x.Request.Seq
	}
}

func (c *Conversation) response(e *Event) {
	peer := c.sides[e.From.Peer()]
	c.guess(peer, e)
	x := c.Newest(e.From.Peer(), e.Msg.ID)
	resembling := x == nil
	if resembling {
		// An id of another type can mean the request only while it is unanswered.
		x = c.Resembling(e.From.Peer(), e.Msg.ID)
	}
	if meant := c.meant[e]; x == nil && meant != nil && meant == c.Init && e.Msg.Kind == Result {
		// Both sides go on from the only answer that there can be.
		x, resembling = meant, false
	}
	if x == nil || resembling && x.Response != nil {
		c.Stray = append(c.Stray, Stray{Event: e, Cause: peer.last, Awaited: peer.waiting > 0})
		return
	}
	x = c.first(x, e)
	x.Resembling = x.Resembling || resembling
	c.answer(x, e)
	c.of[e.Seq] = x
	if x.Method() == "initialize" && x.Result() != nil && c.Init.Error() != nil && c.Init.From() == x.From() {
		c.begin(x)
	}
	if x == c.Init && len(x.Further) == 0 {
		c.Version, _ = x.Result()["protocolVersion"].(string)
		c.Capabilities[e.From] = x.Capabilities()
	}
}

// first returns the request that a response answers of those that have the id of the newest: the
// one of its HTTP exchange, else the oldest that is not answered.
func (c *Conversation) first(newest *Exchange, e *Event) *Exchange {
	if !newest.Shared {
		newest.oldest = nil
		return newest
	}
	if carrier := c.streams[e.Stream]; carrier != nil {
		for _, x := range carrier.carried {
			if x.From() != e.From && x.Response == nil && x.Request.Msg.ID.Key() == newest.Request.Msg.ID.Key() {
				return x
			}
		}
	}
	x := newest
	for newest.oldest != nil {
		x, newest.oldest = newest.oldest, newest.oldest.later
		if x.Response == nil {
			break
		}
	}
	return x
}

// answer adds a response to an exchange, in place of one that has not arrived.
func (c *Conversation) answer(x *Exchange, e *Event) {
	last := x.Response
	if n := len(x.Further); n > 0 {
		last = x.Further[n-1]
	}
	lost := last != nil && (c.SentAgain(last, e) || Momentary(c.Head(last)))
	if last != nil && x == c.Init && c.meant[last] == x && e.Msg.ID.Usable() && c.sides[x.From()].greeted > 0 {
		// It answered an initialize without an id.
		delete(c.meant, last)
		c.of[last.Seq] = nil
		c.Stray = append(c.Stray, Stray{Event: last, Cause: x.Request, Awaited: true})
		lost = true
	}
	switch {
	case last == nil:
		c.sides[x.From()].waiting--
		x.Response = e
	case lost && last == x.Response:
		x.Response = e
	case lost:
		// A copy of the exchange that somebody holds must not change.
		x.Further = append(x.Further[:len(x.Further)-1:len(x.Further)-1], e)
	default:
		x.Further = append(x.Further, e)
	}
}

// guess finds the one request that a response without an id can mean: the request
// of its HTTP exchange, or the only one that was open. The response may also
// answer a notification, until a round trip has followed that.
func (c *Conversation) guess(asked *side, e *Event) {
	if id := e.Msg.ID; id.Usable() {
		for _, x := range []*Exchange{c.Newest(e.From.Peer(), id), c.Resembling(e.From.Peer(), id)} {
			if x != nil && !x.settled {
				asked.settle(x)
				if x.Request.Seq > asked.notified {
					asked.notified = -1
				}
			}
		}
		return
	}
	var x *Exchange
	switch carrier := c.streams[e.Stream]; {
	case carrier != nil && len(carrier.carried) > 0 && carrier.carried[0].From() != e.From:
		x = carrier.carried[0]
	case c.Init != nil && !c.Init.settled && c.Init.From() != e.From && At(e.Msg.Result, "protocolVersion") != nil:
		x = c.Init
		asked.settle(x)
	case !c.overHTTP && asked.open == 1 && asked.notified < 0:
		x = c.of[asked.openSum]
		asked.settle(x)
	default:
		return
	}
	if c.meant == nil {
		c.meant = make(map[*Event]*Exchange)
	}
	c.meant[e] = x
}

func (c *Conversation) notification(e *Event) {
	s := c.sides[e.From]
	s.notified = e.Seq
	switch e.Msg.Method {
	case "initialize":
		s.greeted++
	case "notifications/initialized":
		if c.Initialized == nil {
			c.Initialized = e
		}
	case "notifications/cancelled":
		if x := c.Cancels(e); x != nil {
			s.settle(x)
			if x.Cancelled == nil {
				x.Cancelled = e
			}
		}
	case "notifications/progress":
		if x := c.progressOf(e); x != nil {
			x.Progress = append(x.Progress, e)
			c.of[e.Seq] = x
		}
	}
}

// progressOf returns the request whose progress a notification reports: one that was sent on its
// stream if several have the token, else the last that had it. It returns nil if none had it.
func (c *Conversation) progressOf(e *Event) *Exchange {
	key := TokenKey(At(e.Msg.Params, "progressToken"))
	x := c.sides[e.From.Peer()].tokens[key]
	if x == nil || x.Request.Stream == e.Stream {
		return x
	}
	if carrier := c.streams[e.Stream]; carrier != nil {
		for _, sent := range carrier.carried {
			if sent.From() != e.From && sent.Token != nil && TokenKey(sent.Token) == key {
				return sent
			}
		}
	}
	return x
}

// TokenKey returns a text that is equal for equal progress tokens.
func TokenKey(token any) string {
	if id := ReadID(token); id.Usable() {
		return id.Key()
	}
	return Show(token)
}

// Head returns the head of the HTTP response on the stream of an event, or nil.
func (c *Conversation) Head(e *Event) *Event {
	if x := c.streams[e.Stream]; x != nil {
		return x.Head
	}
	return nil
}

// SentAgain reports whether again repeats a message that was refused unread: because
// there were too many requests, because it lacked a token
// (basic/authorization#authorization-flow-steps), or with a status that lets the client
// repeat what it sent (RFC 9110, sections 15.5.9 and 15.5.20, and RFC 8470, section 5.2).
func (c *Conversation) SentAgain(e, again *Event) bool {
	head := c.Head(e)
	if head == nil || string(e.Raw) != string(again.Raw) {
		return false
	}
	switch head.HTTP.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable,
		http.StatusRequestTimeout, http.StatusMisdirectedRequest, http.StatusTooEarly:
		return true
	}
	return false
}

// Of returns the exchange of a request, response or progress notification, or nil.
func (c *Conversation) Of(e *Event) *Exchange {
	if e == nil || e.Seq >= len(c.of) || c.Events[e.Seq] != e {
		return nil
	}
	return c.of[e.Seq]
}

// Answers reports whether a response is the first one to a request.
func (c *Conversation) Answers(e *Event) bool {
	x := c.Of(e)
	return x != nil && x.Response == e
}

// Meant returns the exchange to which a response belongs: by its id or, without
// one, because it cannot mean another. It is nil if that cannot be told.
func (c *Conversation) Meant(e *Event) *Exchange {
	if x := c.meant[e]; x != nil {
		return x
	}
	return c.Of(e)
}

// Carrier returns the HTTP exchange in which an event travelled; It is nil over stdio, in a damaged trace that lacks
// the request, and for events outside of HTTP.
func (c *Conversation) Carrier(e *Event) *HTTPExchange {
	if x := c.streams[e.Stream]; x != nil && c.counts(x) {
		return x
	}
	return nil
}

// Newest returns the last request of a party that has the id, or nil.
func (c *Conversation) Newest(p Party, id ID) *Exchange {
	switch same := c.sides[p].requests[id.Loose()]; {
	case id.number:
		return same.number
	case id.str:
		return same.text
	}
	return nil
}

// Resembling returns the last request of a party whose id differs from this at
// most in its JSON type, or nil.
func (c *Conversation) Resembling(p Party, id ID) *Exchange {
	if !id.Usable() {
		return nil
	}
	return c.sides[p].requests[id.Loose()].newest
}

// Last returns the last message of a party, or nil.
func (c *Conversation) Last(p Party) *Event { return c.sides[p].last }

// Cancels returns the request that a cancellation refers to, which its sender made
// before, or nil.
func (c *Conversation) Cancels(e *Event) *Exchange {
	x := c.Newest(e.From, ReadID(At(e.Msg.Params, "requestId")))
	if x != nil && x.Request.Seq < e.Seq {
		return x
	}
	return nil
}

// Ready reports whether the handshake was complete when the event happened.
func (c *Conversation) Ready(e *Event) bool {
	return c.Initialized != nil && c.Initialized.Seq < e.Seq
}

// Handshaken reports whether initialize was answered with a result.
func (c *Conversation) Handshaken() bool { return c.Init != nil && c.Init.Result() != nil }

// Declared reports whether a party declared a capability in the handshake, as [Declares] does.
func (c *Conversation) Declared(p Party, capability string) bool {
	return Declares(c.Capabilities[p], capability)
}

// Conversation returns the conversation so far. If the log has ended it is read
// once, for all callers. If not it is read again when there is more of it, so that it does
// not change under a reader.
func (l *Log) Conversation() *Conversation {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.mu.Lock()
	events, ended := l.events[:len(l.events):len(l.events)], l.ended
	l.mu.Unlock()
	if !ended {
		if c := l.latest.Value(); c != nil && len(c.Events) == len(events) {
			return c
		}
		c := Converse(l.Transport, events, nil, nil)
		l.latest = weak.Make(c)
		return c
	}
	l.readOn(events)
	if !l.given {
		l.given = true
		l.conversation.finish()
	}
	if len(l.conversation.Events) < len(events) {
		return Converse(l.Transport, events, nil, nil)
	}
	return l.conversation
}

// Exchange returns, as it is now, the exchange to which a request, a response or
// a progress notification of the log belongs, or nil. A response without an id
// belongs to the one request that it can mean.
func (l *Log) Exchange(e *Event) *Exchange {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	if x := l.conversation.Meant(e); x != nil {
		now := *x
		return &now
	}
	return nil
}

// RequestOf returns the request of the exchange that [Log.Exchange] returns, or nil.
func (l *Log) RequestOf(e *Event) *Event {
	if x := l.Exchange(e); x != nil {
		return x.Request
	}
	return nil
}

// Requests returns, as they are now, the exchanges that a party began with requests
// of a method.
func (l *Log) Requests(p Party, method string) []*Exchange {
	return l.exchanges(func(x *Exchange) bool { return x.From() == p && x.Method() == method })
}

// exchanges returns, as they are now, the exchanges that fit.
func (l *Log) exchanges(fits func(x *Exchange) bool) (all []*Exchange) {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	for _, x := range l.conversation.Exchanges {
		if fits(x) {
			now := *x
			all = append(all, &now)
		}
	}
	return all
}

// LastAnswer returns the last response to what the client has asked up to a time, or nil.
func (l *Log) LastAnswer(until time.Duration) (last *Event) {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	for _, x := range l.conversation.Exchanges {
		if x.From() == Client && x.Request.At <= until && x.Response != nil &&
			(last == nil || x.Response.Seq > last.Seq) {
			last = x.Response
		}
	}
	return last
}

// Unanswered returns, as they are now, the requests that have no response.
func (l *Log) Unanswered() []*Exchange {
	return l.exchanges(func(x *Exchange) bool { return x.Response == nil })
}

// Asked reports whether a party has made a request whose id differs from this at
// most in its JSON type.
func (l *Log) Asked(p Party, id ID) bool {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	return l.conversation.Resembling(p, id) != nil
}

// Answers is [Conversation.Answers] as the log is now.
func (l *Log) Answers(e *Event) bool {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	return l.conversation.Answers(e)
}

// Carrier returns, as it is now, the HTTP exchange in which an event of the log
// travelled; nil over stdio.
func (l *Log) Carrier(e *Event) *HTTPExchange {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.readOn(l.Events())
	if x := l.conversation.Carrier(e); x != nil {
		now := *x
		return &now
	}
	return nil
}

// readOn reads what was appended since the last call, unless the conversation was
// returned to a caller.
func (l *Log) readOn(events []*Event) {
	if l.conversation == nil {
		l.conversation = newConversation(l.Transport, nil)
	}
	if !l.given {
		l.conversation.read(events)
	}
}
