package client

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// framed is the scenario of the frames of a message on its way to the client: events, lines and the heads of
// responses.
const framed = "exchange/frames"

// everyMember returns all members of a family. The id of a ping names the member to write, and the run may send any
// of them.
func everyMember(name string) []family.Member {
	return family.Choice{Budget: result.Thorough}.Draw(name, framed)
}

var (
	eventForms   = sync.OnceValue(func() []family.Member { return everyMember("events") })
	typesOfEmpty = sync.OnceValue(func() []family.Member { return everyMember("types-of-nothing") })
)

// The ids of the pings begin with these.
const (
	framedID   = "frame: "
	eventID    = "event: "
	acceptedID = "accepted: "
	afterwards = ", and then "
)

func askFramed(a *client.Asker) {
	a.Vary(framedID, a.Choice.Draw("frames", framed), func(id string, m family.Member) {
		a.Try(id, "ping", map[string]any{"_meta": map[string]any{"com.example/text": m.Value()}})
	})
	over := a.Request.Session.Log().Transport
	if over == transport.NameStdio {
		return
	}
	a.Vary(eventID, a.Choice.Draw("events", framed), func(id string, _ family.Member) { a.Try(id, "ping", nil) })
	if !a.Overdue() { // an event may have the empty string for its data
		a.Try(emptyID, "ping", nil)
	}
	if over == transport.NameHTTP {
		// The effect of the head of a response shows afterwards.
		a.Vary(acceptedID, a.Choice.Draw("types-of-nothing", framed), func(id string, _ family.Member) {
			a.Ask(id, "ping", nil)
			for i := range 3 {
				a.Fence(id + afterwards + strconv.Itoa(i))
			}
		})
	}
}

const emptyID = "behind an event whose data is empty"

// writeEvent writes the event of a ping in the form that the id of the ping names.
func writeEvent(e *server.Event) []*server.Event {
	if e.Out == nil || e.Out.Kind != wire.Request {
		return []*server.Event{e}
	}
	id, _ := wire.At(wire.Parse(e.Data).Value(), "id").(string)
	form, ok := strings.CutPrefix(id, eventID)
	text := "id: primed\nevent: message\ndata:\n\nevent: message\ndata: {data}\n\n"
	for _, m := range eventForms() {
		if ok && m.Is == form {
			text = m.Raw()
		}
	}
	if !ok && id != emptyID {
		return []*server.Event{e}
	}
	data := string(e.Data)
	first, rest, _ := strings.Cut(inLines(e.Data), "\n")
	e.Raw = []byte(strings.NewReplacer("{data}", data, "{first}", first, "{rest}", rest, "{id}", "ping").Replace(text))
	e.ID = lastID(e.Raw)
	return []*server.Event{e}
}

// lastID returns the last event id in part of an event stream, with which a reader may resume the stream. It is empty
// if no event has one.
func lastID(text []byte) (id string) {
	for r := wire.NewSSEReader(bytes.NewReader(text), len(text)); ; {
		item, err := r.Next()
		if err != nil {
			return id
		}
		if item.SSE.HasID {
			id = item.SSE.ID
		}
	}
}

// acceptance is the key of the Content-Type with which a message is accepted.
type acceptance struct{}

// typeAcceptances gives the response to the answer of a ping the Content-Type that the id of
// the ping names.
func typeAcceptances(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := client.PeekBody(w, r)
			if err != nil {
				return
			}
			if m := wire.Parse(body); m.IsResponse() {
				for _, member := range typesOfEmpty() {
					if m.ID.Key() == wire.StringID(acceptedID+member.Is).Key() {
						r = r.WithContext(context.WithValue(r.Context(), acceptance{}, member.Str()))
					}
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func typeAcceptance(r *server.Reply) {
	if given, _ := r.Request.Context().Value(acceptance{}).(string); given != "" && r.Situation == server.Accepted {
		r.Header.Set("Content-Type", given)
	}
}

func judgeFramed(t *client.T) {
	form := map[string]string{
		transport.NameStdio: ids.StdioMessageOnlyNewlineDelimits, transport.NameHTTP: ids.HTTPClientSSESyntax,
		transport.NameSSE: ids.SSEClientMessageEvents,
	}[t.Transport]
	large := ids.HTTPMessageLarge
	if t.Transport == transport.NameStdio {
		large = ids.StdioMessageLarge
	}
	judgeVariedBy(t, framedID, t.Choice.Draw("frames", framed), "with the text", func(m family.Member) string {
		if len(m.Raw()) > 1<<16 {
			return large
		}
		return form
	})
	if t.Transport == transport.NameStdio {
		return
	}
	judgeVaried(t, eventID, t.Choice.Draw("events", framed), "as the event", form)
	judgeEmptyEvent(t, form)
	if t.Transport == transport.NameHTTP {
		judgeAcceptances(t)
	}
}

// judgeEmptyEvent warns of a client that does not cope with an event with empty data. The SSE standard dispatches
// such an event, and the text does not say what an event has to hold.
func judgeEmptyEvent(t *client.T, id string) {
	x, ok := t.Answered(emptyID)
	const what = " when an event without text in its data came before it"
	switch {
	case ok && x.Result() != nil:
		t.Tolerated(x.Response, "answered the ping behind an event without text in its data", id)
	case t.SilentTo(x):
		t.Warning(id, "a ping was not answered"+what, x.Request)
	case t.Lost(x) != "":
		t.Warning(id, t.Lost(x)+what, x.Request)
	}
}

// judgeAcceptances judges whether the client continues if its answers are accepted with different Content-Types.
func judgeAcceptances(t *client.T) {
	const id = ids.HTTPClientAccepted
	types := t.Choice.Draw("types-of-nothing", framed)
	plain, ok := t.Answered(acceptedID + types[0].Is + afterwards + "2")
	if !ok || plain.Result() == nil {
		return
	}
	for _, m := range types {
		last, ok := t.Answered(acceptedID + m.Is)
		if !ok {
			return
		}
		for i := range 3 { // the head may come later than the first of them
			x, ok := t.Answered(acceptedID + m.Is + afterwards + strconv.Itoa(i))
			if !ok && lostAfter(t, x, "a 202 without a body that has the Content-Type "+m.String(), id) {
				return
			} else if ok {
				last = x
			}
		}
		t.Tolerated(last.Response, "answered a ping behind a 202 without a body that has the Content-Type "+m.String(),
			id)
	}
}

// typedHeads gives responses in turn the Content-Types of a family.
func typedHeads(situation server.Situation, members []family.Member) func(*server.Reply) {
	return func(r *server.Reply) {
		if r.Situation != situation || r.Session == nil {
			return
		}
		n := counter(r.Session, "heads").next()
		r.Header.Set("Content-Type", members[n%len(members)].Str())
	}
}

// unread returns a list request that the client did not continue, although the answer had a cursor. The answer had
// another type than the plain one, and the client continued no list with an answer of that type. The client has to
// follow the cursors of the list in the baseline, and to ask for something else here, since it may begin a list again
// at any time.
func unread(t *client.T, members []family.Member) (m family.Member, lost *judge.Exchange) {
	for _, m := range members[1:] {
		var lost *judge.Exchange
		read := false
		for _, c := range t.Conversations {
			all := client.RequestsOf(c)
			for i, x := range all {
				cursor, more := wire.At(x.Result(), "nextCursor").(string)
				carrier := c.Carrier(x.Request)
				if !more || carrier == nil || carrier.Head == nil ||
					carrier.Head.HTTP.Header.Get("Content-Type") != m.Str() || !follows(t.Baseline, x.Method()) {
					continue
				}
				followed := slices.ContainsFunc(all, func(y *judge.Exchange) bool {
					return y.Method() == x.Method() && wire.At(y.Request.Msg.Params, "cursor") == any(cursor)
				})
				switch next := slices.IndexFunc(all[i+1:],
					func(y *judge.Exchange) bool {
						return y.Request.Seq > x.Response.Seq &&
							client.IsOperation(y.Method())
					}); {
				case followed:
					read = true
				case next >= 0 && all[i+1+next].Method() != x.Method():
					lost = x
				}
			}
		}
		if lost != nil && !read {
			return m, lost
		}
	}
	return m, nil
}

// follows reports whether the client uses the cursors of a list.
func follows(t *client.T, method string) bool {
	return t != nil && slices.ContainsFunc(t.Requests(), func(x *judge.Exchange) bool {
		return x.Method() == method && wire.At(x.Request.Msg.Params, "cursor") != nil
	})
}

// judgeHeads judges whether the client continues as with an ordinary server, and otherwise names the Content-Type of
// the last answer. Any other Content-Type than the plain one puts the first requirement in question.
func judgeHeads(t *client.T, after string, members []family.Member, ids ...string) {
	last := members[0]
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if x.Head == nil || x.Method() != http.MethodPost || !x.OK() {
				continue
			}
			for _, m := range members {
				if x.Head.HTTP.Header.Get("Content-Type") == m.Str() {
					last = m
				}
			}
		}
	}
	if m, x := unread(t, members); x != nil {
		t.Violation(ids[0], "the client goes on, but does not use the cursor in an answer of the type "+m.String()+
			", as it does with an ordinary server", append(x.Events(), t.ConversationOf(x).Carrier(x.Request).Head)...)
		t.Inconclusive("the client reads no answer of the type "+m.String(), ids[1:]...)
		return
	}
	if !last.Plain() {
		after += ", the last one of the type " + last.String()
		if ok, decided, _ := t.Continued(); decided && !ok {
			t.JudgeContinued(after, ids[0])
			t.Inconclusive("the client did not go on after an answer of the type "+last.String(), ids[1:]...)
			return
		}
	}
	t.JudgeContinued(after, ids...)
}
