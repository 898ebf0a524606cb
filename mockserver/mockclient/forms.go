package mockclient

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// In returns a fault in another form: the client misbehaves only in messages that it sends while another request of
// the server waits for its answer, or only from the second message of a kind on. It reports false for a fault in the
// offers, omissions or single acts of the client, which do not depend on the moment. It also reports false for the
// form of sessions, since most clients have one session. A client that crashes has a form of its own: it ends in
// order there.
func In(f Fault, form mockserver.Form) (Fault, bool) {
	if form == mockserver.InOrder {
		return endingInOrder(f)
	}
	if form == mockserver.BySession || f.Form != "" || f.Crashes || !momentary(f) {
		return Fault{}, false
	}
	f.ID += "/" + string(form)
	f.Form = form
	if company, ok := inCompany[f.Scenario]; ok && form == mockserver.AtOnce {
		f.Scenario = company
	}
	f.Apply = inForm(form, f.Apply)
	return f, true
}

// inForm applies a change only to what the client sends at the times of a form.
func inForm(form mockserver.Form, change apply) apply {
	return func(c *client.Standalone) {
		g := &gate{form: form}
		before := *c
		change(c)
		c.Wrap = g.wrap(before.Wrap, c.Wrap)
		c.Change = g.change(before.Change, c.Change)
	}
}

// endingInOrder returns the fault of a client that ends in order where this one dies.
func endingInOrder(f Fault) (Fault, bool) {
	var c client.Standalone
	f.Apply(&c)
	if f.Form == mockserver.InOrder || f.Crashes || c.Wrap == nil || whereItDies(c.Wrap(unconnected())) == nil {
		return Fault{}, false
	}
	f.ID += "/" + string(mockserver.InOrder)
	f.Form = mockserver.InOrder
	f.Apply = all(f.Apply, inOrder)
	return f, true
}

// unconnected returns a connection that has a log, and can do nothing.
func unconnected() transport.Conn {
	return &recorded{log: wire.NewTrace(wire.DefaultLimits).Connect(transport.NameStdio, "nothing")}
}

type recorded struct {
	transport.Conn
	log *wire.Log
}

func (c *recorded) Log() *wire.Log { return c.log }

// inCompany are the scenarios that send requests beside others which another scenario sends one after the other.
var inCompany = map[string]string{requests: "exchange/beside", notifications: "exchange/beside"}

// momentary reports whether a client with a fault differs from the reference client by
// messages alone that it sends otherwise.
func momentary(f Fault) bool {
	var c client.Standalone
	f.Apply(&c)
	within := transport.Conn(new(sender))
	if c.Wrap != nil && !sends(c.Wrap(within), within) {
		return false
	}
	if c.Change != nil && !answersAlone(c.Change) {
		return false
	}
	c.Wrap, c.Change = nil, nil
	return reflect.DeepEqual(c, client.Standalone{})
}

// sends reports whether every wrapper around a connection changes only the messages that are sent, and not the end of
// the connection.
func sends(conn, within transport.Conn) bool {
	for conn != within {
		switch c := conn.(type) {
		case *sender:
			conn = c.Conn
		case *held:
			conn = c.Conn
		case *beforehand:
			conn = c.Conn
		default:
			return false
		}
	}
	return true
}

// answersAlone reports whether a change of the options is one of what serves requests.
func answersAlone(change func(*client.Options)) bool {
	o := client.Options{Answers: make(map[string]client.Answer), Capabilities: make(map[string]any)}
	change(&o)
	o.Answers = nil
	return reflect.DeepEqual(o, client.Options{Capabilities: make(map[string]any)})
}

// gate decides at which times a client misbehaves.
type gate struct {
	form     mockserver.Form
	mu       sync.Mutex
	read     int               // events of the log
	log      *wire.Log         // of the connection
	asks     map[string]string // methods of the server's requests by id
	open     map[string]bool   // ids of those that are not answered
	received map[string]bool   // ids of those during which another one was open
	sent     map[string]int    // messages by kind
}

// beside is how long an answer is held back in the form of requests at once, so that it is not
// sent before the client has read what came with the request.
const beside = 10 * time.Millisecond

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
	g.asks, g.open, g.received, g.sent = make(map[string]string), make(map[string]bool), make(map[string]bool), make(map[string]int)
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
	if g.form == mockserver.AtOnce {
		return beside
	}
	return g.sent[kind] > 1
}

// wait lets requests arrive that are sent together with one that is served.
func (g *gate) wait(ctx context.Context) {
	if g.form != mockserver.AtOnce {
		return
	}
	select {
	case <-time.After(beside):
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
