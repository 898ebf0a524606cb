package clienthooks

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Busily applies a change only to what the client sends while another request of the server is open.
func Busily(change apply) apply { return gateOf(true, change) }

// FromSecond applies a change only to what the client sends from the second message of a kind on.
func FromSecond(change apply) apply { return gateOf(false, change) }

func gateOf(beside bool, change apply) apply {
	return func(c *client.Standalone) {
		g := &gate{beside: beside}
		before := *c
		change(c)
		c.Wrap = g.wrap(before.Wrap, c.Wrap)
		c.Change = g.change(before.Change, c.Change)
	}
}

// gate decides at which times a client misbehaves.
type gate struct {
	beside   bool // while another request is open, not from the second message of a kind on
	mu       sync.Mutex
	read     int               // events of the log
	log      *wire.Log         // of the connection
	asks     map[string]string // methods of the server's requests by id
	open     map[string]bool   // ids of those that are not answered
	received map[string]bool   // ids of those during which another one was open
	sent     map[string]int    // messages by kind
}

// besideAfter is how long an answer is held back that depends on other requests, so that it is not
// sent before the client has read what came with the request.
const besideAfter = 10 * time.Millisecond

// wrap returns what wraps a connection now in one way, now in the other.
func (g *gate) wrap(plain, faulty func(transport.Conn) transport.Conn) func(transport.Conn) transport.Conn {
	return func(conn transport.Conn) transport.Conn {
		right := conn
		if plain != nil {
			right = plain(conn)
		}
		wrong := right
		if faulty != nil {
			wrong = faulty(conn)
		}
		g.begin(conn.Log())
		return able(&gated{Conn: right, wrong: wrong, gate: g}, conn)
	}
}

// gated is a connection that sends in one of two ways.
type gated struct {
	transport.Conn
	wrong transport.Conn
	gate  *gate
}

func (c *gated) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if c.gate.sends(ctx, wire.Parse(out.Raw)) {
		return c.wrong.Send(ctx, out)
	}
	return c.Conn.Send(ctx, out)
}

// begin begins to count on a connection.
func (g *gate) begin(log *wire.Log) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log, g.read = log, 0
	g.asks, g.sent = make(map[string]string), make(map[string]int)
	g.open, g.received = make(map[string]bool), make(map[string]bool)
}

// sends counts a message that the client sends, and reports whether it goes wrong.
func (g *gate) sends(ctx context.Context, m *wire.Message) bool {
	if m.IsResponse() {
		g.wait(ctx)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readOn()
	if !m.IsResponse() {
		return g.wrong(m.Method, len(g.open) > 0)
	}
	id := m.ID.Key()
	delete(g.open, id)
	return g.wrong("answer to "+g.asks[id], g.received[id])
}

// serves counts a request of the server that the client serves, and reports whether it goes wrong.
func (g *gate) serves(ctx context.Context, method string) bool {
	g.wait(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readOn()
	beside := false
	for id := range g.open {
		beside = beside || g.asks[id] == method && g.received[id]
	}
	return g.wrong("request "+method, beside)
}

// wrong reports whether the client misbehaves in a message of a kind, beside which another
// request is open or not.
func (g *gate) wrong(kind string, beside bool) bool {
	g.sent[kind]++
	if g.beside {
		return beside
	}
	return g.sent[kind] > 1
}

// wait lets requests arrive that are sent together with one that is served.
func (g *gate) wait(ctx context.Context) {
	if !g.beside {
		return
	}
	select {
	case <-time.After(besideAfter):
	case <-ctx.Done():
	}
}

// readOn reads which requests the server has made.
func (g *gate) readOn() {
	events := g.log.Events()
	for _, e := range events[g.read:] {
		if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Request {
			id := e.Msg.ID.Key()
			for other := range g.open {
				g.received[other], g.received[id] = true, true
			}
			g.asks[id], g.open[id] = e.Msg.Method, true
		}
	}
	g.read = len(events)
}

// change returns a change of the options by which requests are served now in one way, now
// in the other.
func (g *gate) change(plain, faulty func(*client.Options)) func(*client.Options) {
	return func(o *client.Options) {
		wrong := *o
		wrong.Answers = maps.Clone(o.Answers)
		if plain != nil {
			plain(o)
		}
		if faulty == nil {
			return
		}
		faulty(&wrong)
		for method, answer := range o.Answers {
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				switch then := wrong.Answers[method]; {
				case !g.serves(ctx, method):
					return answer(ctx, params)
				case then != nil:
					return then(ctx, params)
				}
				return nil, &wire.Error{Code: -32601, Message: "Method not found: " + method}
			}
		}
	}
}
