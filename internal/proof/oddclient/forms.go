package oddclient

import (
	"reflect"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/mockserver/mockclient"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// In returns a fault in another form: the client misbehaves only in messages that it sends while another request of
// the server waits for its answer, or only from the second message of a kind on. It reports false for a fault in the
// offers, omissions or single acts of the client, which do not depend on the moment. It also reports false for the
// form of sessions, since most clients have one session. A client that crashes has a form of its own: it ends in
// order there.
func In(f mockclient.Fault, form mockserver.Form) (mockclient.Fault, bool) {
	if form == mockserver.InOrder {
		return endingInOrder(f)
	}
	if form == mockserver.BySession || f.Form != "" || f.Crashes || !momentary(f) {
		return mockclient.Fault{}, false
	}
	f.ID += "/" + string(form)
	f.Form = form
	if form == mockserver.InSequence {
		f.Apply = FromSecond(f.Apply)
		return f, true
	}
	if company, ok := inCompany[f.Scenario]; ok {
		f.Scenario = company
	}
	f.Apply = Busily(f.Apply)
	return f, true
}

// endingInOrder returns the fault of a client that ends in order where this one dies.
func endingInOrder(f mockclient.Fault) (mockclient.Fault, bool) {
	var c client.Standalone
	f.Apply(&c)
	if f.Form == mockserver.InOrder || f.Crashes || c.Wrap == nil || WhereItDies(c.Wrap(unconnected())) == nil {
		return mockclient.Fault{}, false
	}
	f.ID += "/" + string(mockserver.InOrder)
	f.Form = mockserver.InOrder
	f.Apply = All(f.Apply, InOrder)
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
var inCompany = map[string]string{Requests: "exchange/beside", Notifications: "exchange/beside"}

// momentary reports whether a client with a fault differs from the reference client by
// messages alone that it sends otherwise.
func momentary(f mockclient.Fault) bool {
	var c client.Standalone
	f.Apply(&c)
	within := transport.Conn(new(Sender))
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
		case *Sender:
			conn = c.Conn
		case *Held:
			conn = c.Conn
		case *Beforehand:
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
