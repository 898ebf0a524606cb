// Package clienthooks has what faults and oddities of clients are made of, as package hooks has it for servers.
// Its names are imported with a dot.
package clienthooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/internal/proof/members"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The functions in this file use the hooks of the reference client. They keep the hooks that were set before.

type (
	apply    = func(c *client.Standalone)
	object   = map[string]any
	outgoing = transport.Outgoing
	// match reports whether a fault is about a message.
	match = func(m *wire.Message) bool
)

// All applies several changes.
func All(changes ...apply) apply {
	return func(c *client.Standalone) {
		for _, change := range changes {
			change(c)
		}
	}
}

// Wrapping wraps the connection.
func Wrapping(wrap func(conn transport.Conn) transport.Conn) apply {
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

// Resumer is a connection that resumes streams.
type Resumer interface {
	Resume(ctx context.Context, lastEventID string, deliberate ...string) (*transport.Stream, error)
}

// able returns a wrapped connection that resumes streams as the one within does.
func able(wrapped, within transport.Conn) transport.Conn {
	r, ok := within.(Resumer)
	if _, own := wrapped.(Resumer); own || wrapped == within || !ok {
		return wrapped
	}
	return &struct {
		transport.Conn
		Resumer
	}{wrapped, r}
}

// Sender is a connection that sends other messages than it is given.
type Sender struct {
	transport.Conn
	Hook func(m *wire.Message, out transport.Outgoing) []transport.Outgoing
}

func (c *Sender) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	sent := &wire.Event{Kind: wire.KindNote}
	for _, o := range c.Hook(wire.Parse(out.Raw), out) {
		var err error
		if sent, err = c.Conn.Send(ctx, o); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// SendingOver replaces each message by those that hook returns, which knows the connection.
func SendingOver(hook func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		return &Sender{Conn: conn, Hook: func(m *wire.Message, out outgoing) []outgoing { return hook(conn, m, out) }}
	})
}

// Withholding holds back the messages that fit, as a connection has them.
func Withholding(fits func(conn transport.Conn, m *wire.Message) bool) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if fits(conn, m) {
			return nil
		}
		return []outgoing{out}
	})
}

// What changes an object: see package members.
var (
	Lacking    = members.Lacking
	Having     = members.Having
	Defaulting = members.Defaulting
	At         = members.At
)

// Sending replaces a message by those that hook returns: none, a changed one, or several.
func Sending(which match, hook func(m *wire.Message, out transport.Outgoing) []transport.Outgoing) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if which(m) {
			return hook(m, out)
		}
		return []transport.Outgoing{out}
	})
}

// Held is a connection that keeps messages until the client's own request is answered.
type Held struct {
	transport.Conn
	which match
}

func (c *Held) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
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

// HeldBack holds messages back until a request that the client has made before is answered.
func HeldBack(which match) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn { return &Held{conn, which} })
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

// AfterAnswer makes a request, and awaits its answer, before it sends messages.
func AfterAnswer(which match, request string) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn { return &askingFirst{conn, which, request} })
}

// Dropping drops messages.
func Dropping(which match) apply {
	return Sending(which, func(*wire.Message, transport.Outgoing) []transport.Outgoing { return nil })
}

// Twice sends messages twice.
func Twice(which match) apply {
	return Sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{out, out}
	})
}

// Behind sends a text after a message.
func Behind(which match, text string) apply {
	return Sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{out, {Raw: []byte(text)}}
	})
}

// Before sends a text before a message.
func Before(which match, text string) apply {
	return Sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		return []transport.Outgoing{{Raw: []byte(text)}, out}
	})
}

// Rewriting changes the text of messages.
func Rewriting(which match, change func(text string) string) apply {
	return Sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		out.Raw = []byte(change(string(out.Raw)))
		return []transport.Outgoing{out}
	})
}

// Replacing replaces a part of the text of messages.
func Replacing(which match, old, now string) apply {
	return Rewriting(which, func(text string) string { return strings.ReplaceAll(text, old, now) })
}

// Editing changes the object of messages.
func Editing(which match, change func(message object)) apply {
	return Rewriting(which, func(text string) string {
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

// Params changes the params of requests or notifications of a method.
func Params(method string, change func(params object)) apply {
	return Editing(Calls(method), func(message object) {
		p, ok := message["params"].(object)
		if !ok {
			p = object{}
		}
		change(p)
		message["params"] = p
	})
}

// Headers changes the header of the POSTs that carry messages. A list without
// values takes a field out.
func Headers(which match, name string, values ...string) apply {
	return Sending(which, func(_ *wire.Message, out transport.Outgoing) []transport.Outgoing {
		out.Header = http.Header{name: values}
		return []transport.Outgoing{out}
	})
}

// Flood is more messages than a limiter lets pass within a second.
const Flood = 1200

// Anything matches every message.
func Anything(*wire.Message) bool { return true }

// Calls matches requests and notifications of methods.
func Calls(methods ...string) match {
	return func(m *wire.Message) bool {
		return (m.Kind == wire.Request || m.Kind == wire.Notification) && slices.Contains(methods, m.Method)
	}
}

// Later matches all messages except initialize.
func Later(m *wire.Message) bool { return m.Method != "initialize" }

// Results matches results, Refusals error responses, Answers both.
func Results(m *wire.Message) bool  { return m.Kind == wire.Result }
func Refusals(m *wire.Message) bool { return m.Kind == wire.ErrorResponse }
func Answers(m *wire.Message) bool  { return m.IsResponse() }

// Replies matches the answers to requests with the ids of a scenario.
func Replies(ids ...any) match {
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

// Refusing answers requests with an error in place of a result.
func Refusing(which match) apply {
	return Editing(which, func(message object) {
		delete(message, "result")
		message["error"] = object{"code": -32603, "message": "Internal error"}
	})
}

// Rejecting answers requests with the error for invalid params in place of a result.
func Rejecting(which match) apply {
	return Editing(which, func(message object) {
		delete(message, "result")
		message["error"] = object{"code": -32602, "message": "Invalid params"}
	})
}

// Serving answers requests of a method with a result.
func Serving(method string, result func(params any) any) apply {
	return Changing(func(o *client.Options) {
		o.Answers[method] = func(_ context.Context, params any) (any, *wire.Error) { return result(params), nil }
	})
}

// Handling handles requests of a method that the client serves, with what has served them at hand.
func Handling(method string,
	handle func(ctx context.Context, params any, serve client.Answer) (any, *wire.Error)) apply {
	return Changing(func(o *client.Options) {
		if serve := o.Answers[method]; serve != nil {
			o.Answers[method] = func(ctx context.Context, params any) (any, *wire.Error) {
				return handle(ctx, params, serve)
			}
		}
	})
}

// Amending changes the results of requests of a method.
func Amending(method string, change func(result object)) apply {
	return Changing(func(o *client.Options) {
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

// Changing changes the options of the session.
func Changing(change func(o *client.Options)) apply {
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

// Calling makes a further request before the client leaves.
func Calling(method string, params any) apply {
	return Doing(func(ctx context.Context, s *client.Session) { _, _ = s.Call(ctx, method, params) })
}

// Saying sends a further text before the client leaves.
func Saying(text string) apply {
	return Doing(func(ctx context.Context, s *client.Session) { _, _ = s.Send(ctx, []byte(text)) })
}

// Notifying sends a further notification before the client leaves.
func Notifying(method string, params any) apply {
	return Doing(func(ctx context.Context, s *client.Session) { _ = s.Notify(ctx, method, params) })
}

// Doing does something before the client leaves.
func Doing(action func(ctx context.Context, s *client.Session)) apply {
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

// ErrDead ends the client.
var ErrDead = errors.New("the client has died")

// DyingConn is a connection on which nothing more is sent once a certain event of
// the server has come.
type DyingConn struct {
	transport.Conn
	At func(e *wire.Event) bool
}

func (c *DyingConn) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	if slices.ContainsFunc(c.Log().Events(), func(e *wire.Event) bool { return e.From == wire.Server && c.At(e) }) {
		return &wire.Event{Kind: wire.KindNote}, ErrDead
	}
	return c.Conn.Send(ctx, out)
}

// Dying ends the client with an error when it has received a certain event.
func Dying(of func(e *wire.Event) bool) apply {
	return DyingOn(func(_ transport.Conn, e *wire.Event) bool { return of(e) })
}

// DyingOn ends the client with an error when it has received a certain event, of which the connection tells more.
func DyingOn(at func(conn transport.Conn, e *wire.Event) bool) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn {
		return &DyingConn{Conn: conn, At: func(e *wire.Event) bool { return at(conn, e) }}
	})
}

// InOrder has a client that would die end in order in the same place: it takes its leave, and reports nothing.
func InOrder(c *client.Standalone) { c.Leaves = WhereItDies }

// WhereItDies returns what ends the client on a connection, or nil.
func WhereItDies(conn transport.Conn) func(e *wire.Event) bool {
	for {
		if dying, ok := conn.(*DyingConn); ok {
			return dying.At
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

// DyingOf ends the client when a message holds all the given parts.
func DyingOf(parts ...string) apply {
	return Dying(func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && !slices.ContainsFunc(parts,
			func(part string) bool { return !bytes.Contains(e.Raw, []byte(part)) })
	})
}

// SendingOn does something before each message that is sent.
func SendingOn(before func(ctx context.Context, conn transport.Conn)) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn { return &Beforehand{conn, before} })
}

// Beforehand is a connection on which something is done before each message.
type Beforehand struct {
	transport.Conn
	before func(ctx context.Context, conn transport.Conn)
}

func (c *Beforehand) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	c.before(ctx, c.Conn)
	return c.Conn.Send(ctx, out)
}

// Closing changes how the connection is closed.
func Closing(close func(ctx context.Context, conn transport.Conn) error) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn { return &Closer{Conn: conn, OnClose: close} })
}

// Closer is a connection that is closed in another way.
type Closer struct {
	transport.Conn
	OnClose func(ctx context.Context, conn transport.Conn) error
}

func (c *Closer) Close(ctx context.Context) error { return c.OnClose(ctx, c.Conn) }

// ContainsText reports whether the bytes of an event contain a text.
func ContainsText(e *wire.Event, text string) bool { return bytes.Contains(e.Raw, []byte(text)) }

// DyingOfStderr ends the client once the server has written to stderr.
func DyingOfStderr() apply {
	return Dying(func(e *wire.Event) bool { return e.Kind == wire.KindStderr })
}
