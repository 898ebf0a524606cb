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

// reading is what there is to read of an attempt, once its body has ended: nothing is sent while it is read.
type reading struct {
	outcome  Outcome
	sessions []visit // its own first, if it has one
	logs     []*wire.Log
	target   *Target
	beside   bool // it was beside others, and runs again
	noAnswer bool // it ended because an answer did not come
}

// visit is a session of a check, as it was when the body had ended.
type visit struct {
	log    *wire.Log
	init   *client.Exchange
	seen   []*wire.Event // by the check
	shared bool
	left   bool // a DELETE was sent
	lost   bool // the server has said that it does not know the session, if only when it was asked afterwards
	gone   bool // it said so when it was asked afterwards
}

// visited returns a session that a check has used since a mark.
func visited(s *client.Session, mark int) visit {
	v := visit{log: s.Log(), init: s.Init, seen: s.Log().Events()[mark:]}
	if conn, ok := s.Conn.(*transport.HTTPConn); ok {
		v.left, v.lost = conn.Left(), conn.Lost()
	}
	return v
}

// read returns what the attempt has left, which began at a mark of its session's log. It asks once in each session of
// which the trace leaves open whether it has ended.
func (t *T) read(ctx context.Context, mark int) reading {
	r := reading{outcome: t.outcome, logs: t.Logs(), target: t.Target, beside: t.concurrent, noAnswer: t.noAnswer}
	sessions := t.sessions()
	for _, s := range sessions {
		from := 0
		if s == t.Session {
			from = mark
		}
		v := visited(s, from)
		v.shared = s == t.engine.shared
		r.sessions = append(r.sessions, v)
	}
	r.ask(func(i int) (gone bool) { return goneFrom(ctx, sessions[i]) })
	return r
}

// goneFrom reports whether the server does not know a session, as a request that does nothing shows.
func goneFrom(ctx context.Context, s *client.Session) bool {
	_ = s.Fence(ctx)
	return s.Lost()
}

// ask finds the sessions that the server no longer knows, if the trace leaves that open.
func (r *reading) ask(gone func(i int) bool) {
	if r.clean() || r.limited() != nil {
		return
	}
	ended := r.allEnd404()
	for i := range r.sessions {
		if v := &r.sessions[i]; v.doubtful(r.noAnswer) || ended && r.shows404(*v) {
			v.gone = gone(i)
			v.lost = v.lost || v.gone
		}
	}
}

// attempt returns what is to be known of the attempt.
func (r *reading) attempt() attempt {
	a := attempt{outcome: r.outcome, disturbed: r.legalCallFailed(), unanswered: r.noAnswer || r.serverGone(),
		interference: r.interference(), several: len(r.sessions) > 1}
	switch {
	case r.metCutAnswer():
		a.tellsNothing(cutAnswer)
		a.unanswered = false
	case a.outcome.Verdict == Failed:
		// A check without a session of its own counts with the first one that it opens.
		a.unopened = r.target.Init != nil && r.target.Init.Result() != nil && len(r.sessions) > 0 &&
			!r.sessions[0].shared && unopened(r.sessions[0].log)
		a.broken = slices.ContainsFunc(r.sessions, func(v visit) bool { return slices.ContainsFunc(v.seen, broken) })
		refusals := r.refusals()
		if r.refusedLikeAll(refusals) {
			a.tellsNothing("after the handshake the server refuses every request with " + r.target.refusal.String())
			break
		}
		a.refusals, a.endedBeneath = refusals, r.endedBeneath()
	}
	return a
}

// clean reports whether nothing can have disturbed the check.
func (r *reading) clean() bool {
	return r.outcome.Verdict == Skipped || r.outcome.Verdict == Passed && !r.outcome.accuses()
}

// interference returns what disturbed the check.
func (r *reading) interference() (i interference) {
	i.limit = r.limited()
	if i.limit != nil || r.clean() {
		return i
	}
	noRoom := func(x *wire.Exchange) bool {
		return x.Head != nil && x.Head.HTTP.Status == http.StatusServiceUnavailable
	}
	i.lost = slices.ContainsFunc(r.sessions, func(v visit) bool {
		return v.ended() || slices.ContainsFunc(v.log.Requests(wire.Client, "initialize"), noRoom)
	})
	if i.lost {
		for _, v := range r.sessions {
			i.posts, i.age = max(i.posts, count(v.log, wire.KindHTTPRequest, everything)), max(i.age, age(v.log))
		}
	}
	return i
}

// age returns the time from the first event of a session to its last one.
func age(l *wire.Log) time.Duration {
	events := l.Events()
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
func (r *reading) limited() *wire.Event {
	for _, v := range r.sessions {
		for _, e := range v.seen {
			if wire.TooMany(e) && (r.outcome.Verdict != Passed || deliberate(v.log.Carrier(e))) {
				return e
			}
		}
	}
	return nil
}

// legalCallFailed reports whether a check beside others was inconclusive while a legal call was refused or failed.
// Others may have made too many calls (server/tools#security-considerations).
func (r *reading) legalCallFailed() bool {
	if !r.beside || r.outcome.Verdict != Inconclusive {
		return false
	}
	return slices.ContainsFunc(r.sessions, func(v visit) bool {
		return slices.ContainsFunc(v.log.Requests(wire.Client, "tools/call"), func(x *wire.Exchange) bool {
			if x.Response == nil || !slices.Contains(v.seen, x.Request) || len(x.Request.Deliberate) > 0 {
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
func (r *reading) endedBeneath() bool {
	return r.allEnd404() && !slices.ContainsFunc(r.outcome.Record.Findings(), func(f ledger.Finding) bool {
		return !slices.ContainsFunc(r.sessions, func(v visit) bool { return v.gone && v.ends404(f.Evidence) })
	})
}

// allEnd404 reports whether all findings of a failed check end with a 404 after a faulty message, in a session that
// the client has not ended.
func (r *reading) allEnd404() bool {
	findings := r.outcome.Record.Findings()
	if r.outcome.Verdict != Failed || len(findings) == 0 || slices.ContainsFunc(r.sessions, visit.deleted) {
		return false
	}
	return !slices.ContainsFunc(findings, func(f ledger.Finding) bool {
		return !slices.ContainsFunc(r.sessions, func(v visit) bool { return v.ends404(f.Evidence) })
	})
}

// shows404 reports whether a finding ends with a 404 in a session that was opened.
func (r *reading) shows404(v visit) bool {
	return v.log.Conversation().Initialized != nil && slices.ContainsFunc(r.outcome.Record.Findings(),
		func(f ledger.Finding) bool { return v.ends404(f.Evidence) })
}

// ends404 reports whether the last response of a session that evidence shows has the status 404, and comes after a
// faulty message.
func (v visit) ends404(evidence []*wire.Event) bool {
	var last *wire.Event
	for _, e := range evidence {
		if e.Conn != v.log.ID {
			continue
		}
		if x := v.log.Carrier(e); x != nil && x.Head != nil && (last == nil || x.Head.Seq > last.Seq) {
			last = x.Head
		}
	}
	return last != nil && last.HTTP.Status == http.StatusNotFound &&
		slices.ContainsFunc(v.log.Events()[:last.Seq], func(e *wire.Event) bool { return len(e.Deliberate) > 0 })
}

// deleted reports whether the client has ended a session: another one must not end with it.
func (v visit) deleted() bool {
	return slices.ContainsFunc(v.log.Conversation().HTTP, func(x *wire.HTTPExchange) bool {
		return x.Request.HTTP.Method == http.MethodDelete && x.Head != nil && x.Head.HTTP.Status/100 == 2
	})
}

// notFound reports whether a response had the status 404 before the client ended the session, or tells of that end.
func (v visit) notFound() bool {
	leaving := "" // stream
	return slices.ContainsFunc(v.log.Events(), func(e *wire.Event) bool {
		if e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodDelete && leaving == "" {
			leaving = e.Stream
		}
		return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound &&
			(leaving == "" || e.Stream == leaving)
	})
}

// ended reports whether the server no longer knows a session that the client has not ended.
func (v visit) ended() bool { return v.lost || v.left && v.notFound() }

// doubtful reports whether the trace leaves open whether the server still knows a session. A missing answer leaves a
// doubt, and so does a 404 to a request that was wrong on purpose.
func (v visit) doubtful(noAnswer bool) bool {
	if v.log.Transport != transport.NameHTTP || v.lost || v.left {
		return false
	}
	// Silence would cost a time limit more.
	return v.notFound() || noAnswer && count(v.log, wire.KindTimeout, everything) == 0
}

// lost reports whether the server no longer knows a session. In doubt, a request that does nothing decides.
func lost(ctx context.Context, s *client.Session, noAnswer bool) bool {
	v := visited(s, 0)
	return v.ended() || v.doubtful(noAnswer) && goneFrom(ctx, s)
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
func (r *reading) metCutAnswer() bool {
	if r.outcome.Verdict != Failed || slices.Contains(r.outcome.Check.Requirements, sseRequirement) {
		return false
	}
	return slices.ContainsFunc(r.outcome.Record.Findings(), func(f ledger.Finding) bool {
		return slices.ContainsFunc(f.Evidence, func(e *wire.Event) bool { return cut(r.logs, e) })
	})
}

// cut reports whether an event belongs to a request with its answer in such an event, in any session.
func cut(logs []*wire.Log, e *wire.Event) bool {
	return slices.ContainsFunc(logs, func(l *wire.Log) bool {
		if l.ID != e.Conn {
			return false
		}
		x := l.Carrier(e)
		return x != nil && x.CutEvent() != nil
	})
}

// unopened reports whether the handshake was begun and got no result.
func unopened(l *wire.Log) bool {
	begun := false
	for _, e := range l.Events() {
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
func (r *reading) serverGone() bool {
	return r.outcome.Verdict == Failed && slices.ContainsFunc(r.sessions,
		func(v visit) bool { return slices.ContainsFunc(v.log.Events(), transport.Gone) })
}
