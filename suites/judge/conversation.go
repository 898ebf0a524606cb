package judge

import (
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Conversation is one connection as the rules see it: its events, with the
// requests paired to their responses and the handshake picked out.
type Conversation struct {
	Log       *wire.Log
	Transport string
	Events    []*wire.Event
	Messages  []*wire.Event // the events that hold messages, in order, without replays
	Exchanges []*Exchange   // requests in order
	// Stray holds responses that belong to no request.
	Stray []Stray

	// Init is the first initialize exchange; nil when there was none.
	Init *Exchange
	// Initialized is the first initialized notification, or nil.
	Initialized *wire.Event
	// Version is the protocol version of the initialize result, or "".
	Version string
	// Capabilities are those declared in the handshake, by party.
	Capabilities map[wire.Party]map[string]any

	open      map[wire.Party]map[string]*Exchange // newest request by sender and id
	loose     map[wire.Party]map[string]*Exchange // the same without regard to the id's type
	all       map[*wire.Event]*Exchange           // by request and by response
	http      []*httpExchange                     // see httpExchanges
	hasLegacy *bool                               // see legacy
	deleted   *int                                // position of the first DELETE; see dying
	use       *sessionUse                         // see gone
	leaves    map[*httpExchange]bool              // see left
	heads     map[string]*wire.Event              // first HTTP response by stream
	aside     aside                               // see setAside

	listed    []*tool     // what tools returns, once it was asked
	signalled *wire.Event // first signal to the process, or nil

	// What a party has sent so far, and when the log is read to the end.
	last       map[wire.Party]*wire.Event
	waiting    map[wire.Party]int            // requests without a response
	unreadable map[wire.Party]int            // position of the first message with a fault
	nullID     map[wire.Party]int            // position of the first request whose id is null
	invalid    map[wire.Party]map[string]int // the same by the id of the message
	strays     map[wire.Party]map[string]int // the first response to no request, by its id
}

// Stray is a response that belongs to no request.
type Stray struct {
	Event *wire.Event
	// Cause is the newest message of the peer before it, or nil.
	Cause *wire.Event
	// Awaited says that a request of the peer was open then.
	Awaited bool
}

// Exchange is a request with everything that refers to it.
type Exchange struct {
	Request   *wire.Event
	Responses []*wire.Event
	// Cancelled is the cancellation that the requester sent, or nil.
	Cancelled *wire.Event
	// Progress holds the progress notifications for the request's token.
	Progress []*wire.Event
	// Token is the request's progress token; nil when it has none.
	Token any
	// earlier is an unanswered request with the same id, or nil.
	earlier *Exchange
	// Resembling is set when the only response carries an id of another type.
	Resembling bool
}

// From returns who made the request.
func (x *Exchange) From() wire.Party { return x.Request.From }

// Method returns the method of the request.
func (x *Exchange) Method() string { return x.Request.Msg.Method }

// Response returns the first response, or nil.
func (x *Exchange) Response() *wire.Event {
	if len(x.Responses) == 0 {
		return nil
	}
	return x.Responses[0]
}

// Result returns the result object of the first response, or nil.
func (x *Exchange) Result() map[string]any {
	if r := x.Response(); r != nil && r.Msg.Kind == wire.Result {
		o, _ := r.Msg.Result.(map[string]any)
		return o
	}
	return nil
}

// Events returns the request and its responses.
func (x *Exchange) Events() []*wire.Event { return append([]*wire.Event{x.Request}, x.Responses...) }

// brokenOnPurpose reports whether something in the request itself was broken on
// purpose, rather than the time or the stream on which it was sent.
func (x *Exchange) brokenOnPurpose() bool {
	return slices.ContainsFunc(x.Request.Deliberate, func(id string) bool {
		q, known := schema.Lookup(id)
		return !known || q.Page != "basic/transports" && q.Page != "basic/lifecycle"
	})
}

// NewConversation reads a connection's log.
func NewConversation(l *wire.Log) *Conversation {
	c := &Conversation{
		Log: l, Transport: l.Transport, Events: l.Events(),
		Capabilities: make(map[wire.Party]map[string]any),
		open:         map[wire.Party]map[string]*Exchange{wire.Client: {}, wire.Server: {}},
		loose:        map[wire.Party]map[string]*Exchange{wire.Client: {}, wire.Server: {}},
		all:          make(map[*wire.Event]*Exchange),
		heads:        make(map[string]*wire.Event),
		last:         make(map[wire.Party]*wire.Event),
		waiting:      make(map[wire.Party]int),
		unreadable:   make(map[wire.Party]int),
		nullID:       make(map[wire.Party]int),
		invalid:      map[wire.Party]map[string]int{wire.Client: {}, wire.Server: {}},
		strays:       map[wire.Party]map[string]int{wire.Client: {}, wire.Server: {}},
	}
	c.aside = setAside(c.Events, c.Transport)
	tokens := map[wire.Party]map[string]*Exchange{wire.Client: {}, wire.Server: {}}
	replayed := replays{resuming: make(map[string]bool), seen: make(map[string]*wire.Event)}
	for _, e := range c.Events {
		if e.Kind == wire.KindSignal && c.signalled == nil {
			c.signalled = e
		}
		if e.Kind == wire.KindHTTPResponse && c.heads[e.Stream] == nil {
			c.heads[e.Stream] = e
		}
		if replayed.is(e) || e.Kind != wire.KindMessage || c.aside[e.Stream] {
			continue
		}
		c.Messages = append(c.Messages, e)
		c.fault(e)
		switch m := e.Msg; {
		case m.Kind == wire.Request:
			c.request(e, tokens[e.From])
		case m.IsResponse():
			c.response(e)
		case m.Kind == wire.Notification:
			c.notification(e, tokens)
		}
		c.last[e.From] = e
	}
	return c
}

// replays tells the messages that a resumed stream brings once more, which
// count once (basic/transports#resumability-and-redelivery).
type replays struct {
	resuming map[string]bool // streams that were opened with Last-Event-ID
	seen     map[string]*wire.Event
}

func (r *replays) is(e *wire.Event) bool {
	if e.Kind == wire.KindHTTPRequest && e.HTTP != nil && e.HTTP.Header.Get(headerLast) != "" {
		r.resuming[e.Stream] = true
	}
	if e.Kind != wire.KindMessage || e.SSE == nil || !e.SSE.HasID || e.SSE.ID == "" {
		return false
	}
	before, again := r.seen[e.SSE.ID]
	if !again {
		r.seen[e.SSE.ID] = e
		return false
	}
	return r.resuming[e.Stream] && string(before.Raw) == string(e.Raw)
}

// fault remembers the first message of a party that the peer may fail to read.
func (c *Conversation) fault(e *wire.Event) {
	if len(e.Msg.Issues) == 0 && e.Msg.Kind != wire.Invalid {
		return
	}
	if _, known := c.unreadable[e.From]; !known {
		c.unreadable[e.From] = e.Seq
	}
	if _, known := c.nullID[e.From]; !known && e.Msg.Kind == wire.Request && e.Msg.Has(wire.IDNull) {
		c.nullID[e.From] = e.Seq
	}
	id := e.Msg.ID
	if !id.Usable() {
		id = misspelledID(e.Msg.Value)
	}
	if key := id.Key(); id.Usable() {
		if _, known := c.invalid[e.From][key]; !known {
			c.invalid[e.From][key] = e.Seq
		}
	}
}

// misspelledID returns what a reader without regard to case would take for the
// id of a message: that it does so is base.jsonrpc.member-case, and no more.
func misspelledID(message any) wire.ID {
	members, _ := message.(map[string]any)
	for _, name := range []string{"ID", "Id", "iD"} {
		if v, ok := members[name]; ok {
			return wire.ReadID(v)
		}
	}
	return wire.ID{}
}

func (c *Conversation) request(e *wire.Event, tokens map[string]*Exchange) {
	x := &Exchange{Request: e}
	c.Exchanges = append(c.Exchanges, x)
	c.all[e] = x
	c.waiting[e.From]++
	if e.Msg.ID.Usable() {
		if other := c.open[e.From][e.Msg.ID.Key()]; other != nil && len(other.Responses) == 0 {
			x.earlier = other
		}
		c.open[e.From][e.Msg.ID.Key()] = x
		c.loose[e.From][e.Msg.ID.Loose()] = x
	}
	if x.Token = wire.At(e.Msg.Params, "_meta", "progressToken"); x.Token != nil {
		tokens[tokenKey(x.Token)] = x
	}
	if e.Msg.Method == "initialize" && (c.Init == nil || c.tooMany(c.Init)) {
		c.Init = x
		c.Capabilities[e.From], _ = wire.At(e.Msg.Params, "capabilities").(map[string]any)
	}
}

// tooMany reports whether the server refused a request because there were too
// many: it is as if it had not been made.
func (c *Conversation) tooMany(x *Exchange) bool {
	return tooMany(c.heads[x.Request.Stream])
}

// sentAgain reports whether again repeats a message that was turned away before
// anybody read it: as one too many, or for want of a token
// (basic/authorization#authorization-flow-steps).
func (c *Conversation) sentAgain(e, again *wire.Event) bool {
	head := c.heads[e.Stream]
	if head == nil || string(e.Raw) != string(again.Raw) {
		return false
	}
	switch head.HTTP.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}

func tooMany(head *wire.Event) bool {
	return head != nil && head.HTTP.Status == http.StatusTooManyRequests
}

func (c *Conversation) response(e *wire.Event) {
	asked := c.open[e.From.Peer()]
	x, ok := asked[e.Msg.ID.Key()]
	if !ok {
		x, ok = c.resembling(e)
	}
	if !ok {
		peer := e.From.Peer()
		if key := e.Msg.ID.Key(); e.Msg.ID.Usable() {
			if _, known := c.strays[e.From][key]; !known {
				c.strays[e.From][key] = e.Seq
			}
		}
		c.Stray = append(c.Stray, Stray{Event: e, Cause: c.last[peer], Awaited: c.waiting[peer] > 0})
		return
	}
	// Of requests with the same id, the oldest is answered first.
	for x.earlier != nil && len(x.earlier.Responses) == 0 {
		x = x.earlier
	}
	if n := len(x.Responses); n > 0 && (c.sentAgain(x.Responses[n-1], e) || tooMany(c.heads[x.Responses[n-1].Stream])) {
		x.Responses = x.Responses[:n-1] // that one has not arrived
	} else if n == 0 {
		c.waiting[x.From()]--
	}
	x.Responses = append(x.Responses, e)
	c.all[e] = x
	if x == c.Init && len(x.Responses) == 1 {
		c.Version, _ = x.Result()["protocolVersion"].(string)
		c.Capabilities[e.From], _ = x.Result()["capabilities"].(map[string]any)
	}
}

// resembling finds the unanswered request whose id differs from the response's
// only in its type.
func (c *Conversation) resembling(e *wire.Event) (*Exchange, bool) {
	if !e.Msg.ID.Usable() {
		return nil, false
	}
	x := c.loose[e.From.Peer()][e.Msg.ID.Loose()]
	if x == nil || len(x.Responses) > 0 {
		return nil, false
	}
	x.Resembling = true
	return x, true
}

func (c *Conversation) notification(e *wire.Event, tokens map[wire.Party]map[string]*Exchange) {
	switch e.Msg.Method {
	case "notifications/initialized":
		if c.Initialized == nil {
			c.Initialized = e
		}
	case "notifications/cancelled":
		if x := c.Cancels(e); x != nil && x.Cancelled == nil {
			x.Cancelled = e
		}
	case "notifications/progress":
		token := wire.At(e.Msg.Params, "progressToken")
		if x, ok := tokens[e.From.Peer()][tokenKey(token)]; ok {
			x.Progress = append(x.Progress, e)
			c.all[e] = x
		}
	}
}

// tokenKey returns a text that is equal for equal progress tokens.
func tokenKey(token any) string {
	if id := wire.ReadID(token); id.Usable() {
		return id.Key()
	}
	return wire.Show(token)
}

// Cancels returns the request that a cancellation refers to: one that its
// sender made before. Nil when there is none.
func (c *Conversation) Cancels(e *wire.Event) *Exchange {
	id := wire.ReadID(wire.At(e.Msg.Params, "requestId"))
	x := c.open[e.From][id.Key()]
	if x != nil && x.Request.Seq < e.Seq {
		return x
	}
	return nil
}

// Of returns the exchange that a request, response or progress notification
// belongs to, or nil.
func (c *Conversation) Of(e *wire.Event) *Exchange { return c.all[e] }

// Ready reports whether the handshake was complete when the event happened.
func (c *Conversation) Ready(e *wire.Event) bool {
	return c.Initialized != nil && c.Initialized.Seq < e.Seq
}

// Declared reports whether a party declared a capability in the handshake,
// given as a path of member names. A flag counts when it is true.
func (c *Conversation) Declared(p wire.Party, path ...string) bool {
	var v any = c.Capabilities[p]
	v = wire.At(v, path...)
	if flag, ok := v.(bool); ok {
		return flag
	}
	return v != nil
}

// Handshaken reports whether initialize was answered with a result.
func (c *Conversation) Handshaken() bool { return c.Init != nil && c.Init.Result() != nil }
