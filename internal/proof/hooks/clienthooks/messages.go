package clienthooks

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Numbered matches the answers to requests whose ids are numbers.
func Numbered(m *wire.Message) bool { return m.IsResponse() && !Named(m) }

// Named matches the answers to requests whose ids are strings.
func Named(m *wire.Message) bool { return m.IsResponse() && strings.HasPrefix(m.ID.Key(), `"`) }

// Served makes a response one of success.
func Served(m object) {
	delete(m, "error")
	m["result"] = object{}
}

// Told reports whether a message of a kind has come from the server.
func Told(conn transport.Conn, of match) bool {
	return slices.ContainsFunc(conn.Log().Events(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && of(e.Msg)
	})
}

// Renaming changes the member by which a method names what it uses.
func Renaming(method, member string, change func(name string) string) apply {
	return Params(method, func(p object) {
		if name, ok := p[member].(string); ok {
			p[member] = change(name)
		}
	})
}

// BehindAnswer holds the answer to a ping back that was sent with a request, until that is answered.
func BehindAnswer(id string) apply {
	return SendingOver(func(conn transport.Conn, m *wire.Message, out outgoing) []outgoing {
		if Replies(id + "-pinged")(m) {
			// The connection ends the waits. Over HTTP two messages may cross unless the first was taken.
			answer, err := conn.Log().Await(context.Background(), 0, func(e *wire.Event) bool {
				return e.Kind == wire.KindMessage && e.From == wire.Client && Replies(id)(e.Msg)
			})
			if err == nil && conn.Log().Transport != transport.NameStdio {
				_, _ = conn.Log().Await(context.Background(), answer.Seq, func(e *wire.Event) bool {
					return e.Kind == wire.KindHTTPResponse && e.Stream == answer.Stream
				})
			}
		}
		return []outgoing{out}
	})
}

// Instead sends a ping in place of a request.
func Instead(which match) apply {
	return Editing(which, func(m object) {
		m["method"] = "ping"
		delete(m, "params")
	})
}
