package check

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// interference is what a server may do to a check at any time, whatever the
// check is about: refuse a request because there are too many
// (server/tools#security-considerations), open no further session, or end one
// (basic/transports#session-management).
type interference struct {
	limit *wire.Event // with which a request was refused because there were too many, or nil
	lost  bool        // a session was ended, or not opened for want of room
	// How many HTTP requests the busiest session of the check took, and how long the longest one lasted, if one was
	// lost.
	posts int
	age   time.Duration
}

// interference returns what disturbed the check, which began at a mark of its
// session's log.
func (t *T) interference(ctx context.Context, mark int) (i interference) {
	if i.limit = t.limited(mark); i.limit != nil || t.outcome.Verdict == Skipped ||
		t.outcome.Verdict == Passed && len(t.rec.Record.Findings()) == 0 {
		return i
	}
	i.lost = slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return full(s) || lost(ctx, s, t.noAnswer)
	})
	if i.lost {
		for _, s := range t.sessions() {
			i.posts, i.age = max(i.posts, posts(s)), max(i.age, age(s))
		}
	}
	return i
}

// posts returns how many HTTP requests a session has sent.
func posts(s *client.Session) (n int) {
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindHTTPRequest {
			n++
		}
	}
	return n
}

// age returns the time from the first event of a session to its last one.
func age(s *client.Session) time.Duration {
	events := s.Log().Events()
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].At - events[0].At
}

// sessions returns the check's own session, if any, and those that it opened.
func (t *T) sessions() []*client.Session {
	return slices.DeleteFunc(append([]*client.Session{t.Session}, t.extra...),
		func(s *client.Session) bool { return s == nil })
}

// limited returns the response with which a request of the check was refused
// because there were too many, or nil. If all went well, a request that was repeated
// does not count, unless it had to be refused.
func (t *T) limited(mark int) *wire.Event {
	for _, s := range t.sessions() {
		from := 0
		if s == t.Session {
			from = mark
		}
		for _, e := range s.Log().Events()[from:] {
			if wire.TooMany(e) && (t.outcome.Verdict != Passed || deliberate(s.Log().Carrier(e))) {
				return e
			}
		}
	}
	return nil
}

// legalCallFailed reports whether a check beside others was inconclusive while a legal call was refused or failed.
// Others may have made too many calls (server/tools#security-considerations).
func (t *T) legalCallFailed(mark int) bool {
	if !t.concurrent || t.outcome.Verdict != Inconclusive {
		return false
	}
	return slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return slices.ContainsFunc(s.Log().Requests(wire.Client, "tools/call"), func(x *wire.Exchange) bool {
			if x.Response == nil || s == t.Session && x.Request.Seq < mark || len(x.Request.Deliberate) > 0 {
				return false
			}
			return x.Response.Msg.Kind == wire.ErrorResponse || wire.At(x.Response.Msg.Result, "isError") == true
		})
	})
}

// deliberate reports whether an HTTP exchange holds what breaks a requirement on purpose.
func deliberate(x *wire.HTTPExchange) bool {
	return x != nil && slices.ContainsFunc(x.Events(), func(e *wire.Event) bool { return len(e.Deliberate) > 0 })
}

// endedBeneath reports whether the server has ended the session of its own accord, and all findings end with its
// answer that it does not know the session. It may end a session at any time, also after a faulty message
// (basic/transports#session-management). After others, it does not serve them.
func (t *T) endedBeneath(ctx context.Context) bool {
	findings := t.rec.Record.Findings()
	if len(findings) == 0 || slices.ContainsFunc(t.sessions(), deletes) {
		return false
	}
	return !slices.ContainsFunc(findings, func(f ledger.Finding) bool {
		return !slices.ContainsFunc(t.sessions(),
			func(s *client.Session) bool { return ends404(s, f.Evidence) && forgotten(ctx, s) })
	})
}

// ends404 reports whether the last response of a session that evidence shows has the status 404, and comes after a
// faulty message.
func ends404(s *client.Session, evidence []*wire.Event) bool {
	var last *wire.Event
	for _, e := range evidence {
		if e.Conn != s.Log().ID {
			continue
		}
		if x := s.Log().Carrier(e); x != nil && x.Head != nil && (last == nil || x.Head.Seq > last.Seq) {
			last = x.Head
		}
	}
	return last != nil && last.HTTP.Status == http.StatusNotFound &&
		slices.ContainsFunc(s.Log().Events()[:last.Seq], func(e *wire.Event) bool { return len(e.Deliberate) > 0 })
}

// deletes reports whether the client has ended a session: another one must not end with it.
func deletes(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Conversation().HTTP, func(x *wire.HTTPExchange) bool {
		return x.Request.HTTP.Method == http.MethodDelete && x.Head != nil && x.Head.HTTP.Status/100 == 2
	})
}

// forgotten reports whether a session is not known any more, as a request that does nothing shows.
func forgotten(ctx context.Context, s *client.Session) bool {
	conn, ok := s.Conn.(*transport.HTTPConn)
	if !ok || conn.SessionID() == "" || s.Log().Conversation().Initialized == nil {
		return false
	}
	_ = s.Fence(ctx)
	return conn.Lost()
}

// full reports whether the server said that it has no room for a session.
func full(s *client.Session) bool {
	return slices.ContainsFunc(s.Log().Requests(wire.Client, "initialize"), func(x *wire.Exchange) bool {
		return x.Head != nil && x.Head.HTTP.Status == http.StatusServiceUnavailable
	})
}

// lost reports whether the server no longer knows a session that the client has not ended. A missing answer leaves a
// doubt, and so does a 404 to a request that was wrong on purpose. A request that does nothing then decides, unless
// the client has ended the session since.
func lost(ctx context.Context, s *client.Session, doubt bool) bool {
	conn, ok := s.Conn.(*transport.HTTPConn)
	if !ok || conn.Lost() {
		return ok
	}
	notFound := false
	leaving := "" // stream
	for _, e := range s.Log().Events() {
		doubt = doubt && e.Kind != wire.KindTimeout // who is silent would cost a time limit more
		switch {
		case e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodDelete && leaving == "":
			leaving = e.Stream
		case e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound &&
			(leaving == "" || e.Stream == leaving):
			notFound = true
		}
	}
	if conn.Left() {
		return notFound
	}
	if doubt || notFound {
		_ = s.Fence(ctx)
	}
	return conn.Lost()
}

// A server breaks sseRequirement if its answers come in SSE events without an end. cutAnswer is the reason that
// checks give then.
const (
	sseRequirement = ids.HTTPServerSSEResponseSent
	cutAnswer      = "an answer came in an SSE event without the empty line that ends it, and does not count: see " +
		sseRequirement
)

// metCutAnswer reports whether the findings show a request with its answer in an unfinished SSE event: no empty line
// ended the event. A rule finds this one fault. It is not a fault of the request.
func (t *T) metCutAnswer() bool {
	if slices.Contains(t.check.Requirements, sseRequirement) {
		return false
	}
	return slices.ContainsFunc(t.rec.Record.Findings(),
		func(f ledger.Finding) bool { return slices.ContainsFunc(f.Evidence, t.cut) })
}

// cut reports whether an event belongs to a request with its answer in such an event, in any session.
func (t *T) cut(e *wire.Event) bool {
	return slices.ContainsFunc(t.Logs(), func(l *wire.Log) bool {
		if l.ID != e.Conn {
			return false
		}
		x := l.Carrier(e)
		return x != nil && x.CutEvent() != nil
	})
}

// unopened reports whether the handshake was begun and got no result.
func unopened(s *client.Session) bool {
	begun := false
	for _, e := range s.Log().Events() {
		switch {
		case e.Kind != wire.KindMessage:
		case e.From == wire.Client && e.Msg.Method == "initialize":
			begun = true
		case e.From == wire.Server && e.Msg.Kind == wire.Result:
			return false
		}
	}
	return begun
}

// serverGone reports whether the server was gone when a check found something: then
// another check may have brought it down.
func (t *T) serverGone() bool {
	if t.outcome.Verdict != Failed {
		return false
	}
	return slices.ContainsFunc(t.sessions(), func(s *client.Session) bool {
		return slices.ContainsFunc(s.Log().Events(), transport.Gone)
	})
}

// unopenedFor reports whether a server that has opened another session did not open the session of the check. A check
// without a session of its own counts with the first one that it opens.
func (t *T) unopenedFor() bool {
	if t.Target.Init == nil || t.Target.Init.Result() == nil {
		return false
	}
	s := t.Session
	if t.check.Needs.Session == None && len(t.extra) > 0 {
		s = t.extra[0]
	}
	return s != nil && s != t.engine.shared && unopened(s)
}
