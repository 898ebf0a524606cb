package mockclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The functions in this file make faults out of the hooks of the reference
// client. They keep the hooks that other faults have set.

type (
	apply  = func(c *client.Standalone)
	object = map[string]any
	list   = []any
	// match reports whether a fault is about a message.
	match = func(m *wire.Message) bool
)

// all applies several changes.
func all(changes ...apply) apply {
	return func(c *client.Standalone) {
		for _, change := range changes {
			change(c)
		}
	}
}

// wrapping wraps the connection.
func wrapping(wrap func(conn transport.Conn) transport.Conn) apply {
	return func(c *client.Standalone) {
		before := c.Wrap
		c.Wrap = func(conn transport.Conn) transport.Conn {
			if before != nil {
				conn = before(conn)
			}
			return able(wrap(conn), conn)
		}
	}
}

type resumer interface {
	Resume(ctx context.Context, lastEventID string, deliberate ...string) (*transport.Stream, error)
}

// able returns a wrapped connection that resumes streams as the one within does.
func able(wrapped, within transport.Conn) transport.Conn {
	r, ok := within.(resumer)
	if _, own := wrapped.(resumer); own || wrapped == within || !ok {
		return wrapped
	}
	return &struct {
		transport.Conn
		resumer
	}{wrapped, r}
}

// sender is a connection that sends other messages than it is given.
type sender struct {
	transport.Conn
	hook func(m *wire.Message, out transport.Outgoing) []transport.Outgoing
}

func (c *sender) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	sent := &wire.Event{Kind: wire.KindNote}
	for _, o := range c.hook(wire.Parse(out.Raw), out) {
		var err error
		if sent, err = c.Conn.Send(ctx, o); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// sending replaces a message by those that hook returns: none, a changed one, or several.
func sending(which match, hook func(m *wire.Message, out transport.Outgoing) []transport.Outgoing) apply {
	return wrapping(func(conn transport.Conn) transport.Conn {
		return &sender{Conn: conn, hook: func(m *wire.Message, out transport.Outgoing) []transport.Outgoing {
			if which(m) {
				return hook(m, out)
			}
			return []transport.Outgoing{out}
		}}
	})
}

// held is a connection that keeps messages until the client's own request is answered.
type held struct {
	transport.Conn
	which match
}

func (c *held) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if c.which(wire.Parse(out.Raw)) {
		from := len(c.Log().Events())
		if _, err := c.Log().Await(ctx, from, func(e *wire.Event) bool {
			asked := c.Log().RequestOf(e)
			return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && asked != nil &&
				asked.Seq < from
		}); err != nil {
			return nil, err
		}
	}
	return c.Conn.Send(ctx, out)
}

// heldBack holds messages back until a request that the client has made before is answered.
func heldBack(which match) apply {
	return wrapping(func(conn transport.Conn) transport.Conn { return &held{conn, which} })
}

// askingFirst is a connection on which a request is made, and answered, before messages.
type askingFirst struct {
	transport.Conn
	which   match
	request string
}

func (c *askingFirst) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if c.which(wire.Parse(out.Raw)) {
		id := wire.Parse([]byte(c.request)).ID
		sent, err := c.Conn.Send(ctx, transport.Outgoing{Raw: []byte(c.request)})
		if err != nil {
			return sent, err
		}
		if _, err := c.Log().Await(ctx, sent.Seq, func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() &&
				e.Msg.ID.Key() == id.Key()
		}); err != nil {
			return nil, err
		}
	}
	return c.Conn.Send(ctx, out)
}

// afterAnswer makes a request, and awaits its answer, before it sends messages.
func afterAnswer(which match, request string) apply {
	return wrapping(func(conn transport.Conn) transport.Conn { return &askingFirst{conn, which, request} })
}

// dropping drops messages.
func dropping(which match) apply {
	return sending(which, func(*wire.Message, transport.Outgoing) []transport.Outgoing { return nil })
}

// twice sends messages twice.
func twice(which match) apply {
	return sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{out, out}
	})
}

// behind sends a text after a message.
func behind(which match, text string) apply {
	return sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{out, {Raw: []byte(text)}}
	})
}

// before sends a text before a message.
func before(which match, text string) apply {
	return sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{{Raw: []byte(text)}, out}
	})
}

// rewriting changes the text of messages.
func rewriting(which match, change func(text string) string) apply {
	return sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		out.Raw = []byte(change(string(out.Raw)))
		return []transport.Outgoing{out}
	})
}

// replacing replaces a part of the text of messages.
func replacing(which match, old, now string) apply {
	return rewriting(which, func(text string) string { return strings.ReplaceAll(text, old, now) })
}

// editing changes the object of messages.
func editing(which match, change func(message object)) apply {
	return rewriting(which, func(text string) string {
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var message object
		if decoder.Decode(&message) != nil {
			return text
		}
		change(message)
		return string(client.Marshal(message))
	})
}

// params changes the params of requests or notifications of a method.
func params(method string, change func(params object)) apply {
	return editing(calls(method), func(message object) {
		p, ok := message["params"].(object)
		if !ok {
			p = object{}
		}
		change(p)
		message["params"] = p
	})
}

// headers changes the header of the POSTs that carry messages. A list without
// values takes a field out.
func headers(which match, name string, values ...string) apply {
	return sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		out.Header = http.Header{name: values}
		return []transport.Outgoing{out}
	})
}

// flood is more messages than a limiter lets pass within a second.
const flood = 1200

func anything(*wire.Message) bool { return true }

// calls matches requests and notifications of methods.
func calls(methods ...string) match {
	return func(m *wire.Message) bool {
		return (m.Kind == wire.Request || m.Kind == wire.Notification) && slices.Contains(methods, m.Method)
	}
}

// later matches all messages except initialize.
func later(m *wire.Message) bool { return m.Method != "initialize" }

// results matches results, refusals error responses, answers both.
func results(m *wire.Message) bool  { return m.Kind == wire.Result }
func refusals(m *wire.Message) bool { return m.Kind == wire.ErrorResponse }
func answers(m *wire.Message) bool  { return m.IsResponse() }

// replies matches the answers to requests with the ids of a scenario.
func replies(ids ...any) match {
	return func(m *wire.Message) bool {
		return m.IsResponse() && slices.ContainsFunc(ids, func(id any) bool {
			switch id := id.(type) {
			case string:
				return m.ID.Key() == wire.StringID(id).Key()
			case int:
				return m.ID.Key() == wire.IntID(int64(id)).Key()
			}
			return false
		})
	}
}

// refusing answers requests with an error in place of a result.
func refusing(which match) apply {
	return editing(which, func(message object) {
		delete(message, "result")
		message["error"] = object{"code": -32603, "message": "Internal error"}
	})
}

// rejecting answers requests with the error for invalid params in place of a result.
func rejecting(which match) apply {
	return editing(which, func(message object) {
		delete(message, "result")
		message["error"] = object{"code": -32602, "message": "Invalid params"}
	})
}

// serving answers requests of a method with a result.
func serving(method string, result func(params any) any) apply {
	return changing(func(o *client.Options) {
		o.Answers[method] = func(_ context.Context, params any) (any, *wire.Error) { return result(params), nil }
	})
}

// handling handles requests of a method that the client serves, with what has served them at hand.
func handling(method string,
	handle func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error)) apply {
	return changing(func(o *client.Options) {
		if serve := o.Answers[method]; serve != nil {
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				return handle(ctx, params, serve)
			}
		}
	})
}

// amending changes the results of requests of a method.
func amending(method string, change func(result object)) apply {
	return changing(func(o *client.Options) {
		serve := o.Answers[method]
		o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
			result, rpcErr := serve(ctx, params)
			if r, ok := result.(object); ok {
				change(r)
			}
			return result, rpcErr
		}
	})
}

// changing changes the options of the session.
func changing(change func(o *client.Options)) apply {
	return func(c *client.Standalone) {
		before := c.Change
		c.Change = func(o *client.Options) {
			if before != nil {
				before(o)
			}
			change(o)
		}
	}
}

// calling makes a further request before the client leaves.
func calling(method string, params any) apply {
	return doing(func(ctx context.Context, s *client.Session) { _, _ = s.Call(ctx, method, params) })
}

// saying sends a further text before the client leaves.
func saying(text string) apply {
	return doing(func(ctx context.Context, s *client.Session) { _, _ = s.Send(ctx, []byte(text)) })
}

// notifying sends a further notification before the client leaves.
func notifying(method string, params any) apply {
	return doing(func(ctx context.Context, s *client.Session) { _ = s.Notify(ctx, method, params) })
}

func doing(action func(ctx context.Context, s *client.Session)) apply {
	return func(c *client.Standalone) {
		before := c.Extra
		c.Extra = func(ctx context.Context, s *client.Session) {
			if before != nil {
				before(ctx, s)
			}
			action(ctx, s)
		}
	}
}

// errDead ends the client.
var errDead = errors.New("the client has died")

// dyingConn is a connection on which nothing more is sent once a certain event of
// the server has come.
type dyingConn struct {
	transport.Conn
	at func(e *wire.Event) bool
}

func (c *dyingConn) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if slices.ContainsFunc(c.Log().Events(), func(e *wire.Event) bool { return e.From == wire.Server && c.at(e) }) {
		return &wire.Event{Kind: wire.KindNote}, errDead
	}
	return c.Conn.Send(ctx, out)
}

// dying ends the client with an error when it has received a certain event.
func dying(of func(e *wire.Event) bool) apply {
	return wrapping(func(conn transport.Conn) transport.Conn { return &dyingConn{Conn: conn, at: of} })
}

// inOrder has a client that would die end in order in the same place: it takes its leave, and reports nothing.
func inOrder(c *client.Standalone) { c.Leaves = whereItDies }

// whereItDies returns what ends the client on a connection, or nil.
func whereItDies(conn transport.Conn) func(e *wire.Event) bool {
	for {
		if dying, ok := conn.(*dyingConn); ok {
			return dying.at
		}
		v := reflect.Indirect(reflect.ValueOf(conn))
		if v.Kind() != reflect.Struct || !v.FieldByName("Conn").IsValid() {
			return nil
		}
		within, ok := v.FieldByName("Conn").Interface().(transport.Conn)
		if !ok {
			return nil
		}
		conn = within
	}
}

// dyingOf ends the client when a message holds all the given parts.
func dyingOf(parts ...string) apply {
	return dying(func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && !slices.ContainsFunc(parts,
			func(part string) bool { return !bytes.Contains(e.Raw, []byte(part)) })
	})
}

// sendingOn does something before each message that is sent.
func sendingOn(before func(ctx context.Context, conn transport.Conn)) apply {
	return wrapping(func(conn transport.Conn) transport.Conn { return &beforehand{conn, before} })
}

type beforehand struct {
	transport.Conn
	before func(ctx context.Context, conn transport.Conn)
}

func (c *beforehand) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	c.before(ctx, c.Conn)
	return c.Conn.Send(ctx, out)
}

// closing changes how the connection is closed.
func closing(close func(ctx context.Context, conn transport.Conn) error) apply {
	return wrapping(func(conn transport.Conn) transport.Conn { return &closer{Conn: conn, close: close} })
}

type closer struct {
	transport.Conn
	close func(ctx context.Context, conn transport.Conn) error
}

func (c *closer) Close(ctx context.Context) error { return c.close(ctx, c.Conn) }

func containsText(e *wire.Event, text string) bool { return bytes.Contains(e.Raw, []byte(text)) }

// dyingOfStderr ends the client once the server has written to stderr.
func dyingOfStderr() apply {
	return dying(func(e *wire.Event) bool { return e.Kind == wire.KindStderr })
}
