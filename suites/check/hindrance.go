package check

import (
	"context"
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// hindrance is what a server may do to a check at any time, whatever the check
// is about: refuse a request because there are too many
// (server/tools#security-considerations) or as it serves others, open no further
// session, or end one (basic/transports#session-management). Such a check is run
// again, alone.
type hindrance struct {
	limit   *wire.Event // with which a request was refused because there were too many, or nil
	refused []refusal   // which may be due to other checks; with neither, a session was ended or not opened
	several bool        // sessions were open or asked for
	own     bool        // no other check used the session
}

// hindrance returns what hindered the check, which began at a mark of its
// session's log; nil if nothing did.
func (t *T) hindrance(ctx context.Context, mark int) *hindrance {
	if limit := t.limited(mark); limit != nil {
		return &hindrance{limit: limit}
	}
	if t.outcome.Verdict == Passed || t.outcome.Verdict == Skipped {
		return nil
	}
	for _, s := range t.sessions() {
		if full(s) || lost(ctx, s, t.noAnswer) {
			return &hindrance{several: len(t.sessions()) > 1}
		}
	}
	// A process of its own serves nobody else. Who got no answer is run again in any case.
	if !t.check.Needs.Beside && !t.noAnswer && !t.deserted() && (t.Session == t.engine.shared || t.Target.Transport != transport.NameStdio) {
		if r := t.refusals(); r != nil {
			return &hindrance{refused: r}
		}
	}
	return nil
}

// stands reports whether the outcome of a check holds although it was hindered:
// the server refused a request for what it is.
func (e *Engine) stands(ctx context.Context, f *Future) bool {
	return f.refused() && !e.crowded(ctx, f.hindered.refused)
}

func (f *Future) refused() bool { return f.hindered != nil && f.hindered.refused != nil }

// sessions returns the check's own session, if any, and those that it opened.
func (t *T) sessions() []*client.Session {
	return slices.DeleteFunc(append([]*client.Session{t.Session}, t.extra...), func(s *client.Session) bool { return s == nil })
}

// limited returns the response with which a request of the check was refused
// because there were too many; nil if none was. One that was asked again does
// not count if all went well, but one that was to be refused does.
func (t *T) limited(mark int) *wire.Event {
	for _, s := range t.sessions() {
		from := 0
		if s == t.Session {
			from = mark
		}
		events := s.Log().Events()[from:]
		for _, e := range events {
			if client.TooMany(e) && (t.outcome.Verdict != Passed || slices.ContainsFunc(events, func(sent *wire.Event) bool {
				return sent.Stream == e.Stream && sent.From == wire.Client && len(sent.Deliberate) > 0
			})) {
				return e
			}
		}
	}
	return nil
}

// full reports whether the server said that it has no room for a session.
func full(s *client.Session) bool {
	streams := make(map[string]bool) // of an initialize
	return slices.ContainsFunc(s.Log().Events(), func(e *wire.Event) bool {
		if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Method == "initialize" {
			streams[e.Stream] = true
		}
		return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusServiceUnavailable && streams[e.Stream]
	})
}

// lost reports whether the server no longer knows a session that nobody has
// left. Where that is in doubt, as there was no answer, or a 404 that may have been
// for a request that was wrong on purpose, a plain request tells; of a session that
// was left then, nothing can.
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
		case e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound && (leaving == "" || e.Stream == leaving):
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

// unhinder settles the outcome of a check that was run again alone, as long as
// that helps.
func (e *Engine) unhinder(ctx context.Context, f *Future) {
	for tries := 1; f.hindered != nil && f.hindered.limit != nil; tries++ {
		if tries == maxLimited || !e.limits.wait(ctx, client.RetryAfter(f.hindered.limit)) {
			f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "the server refuses requests because there are too many (HTTP status 429)"}
			return
		}
		e.runAlone(ctx, f)
	}
	if f.refused() && e.crowded(ctx, f.hindered.refused) {
		f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "the server refuses requests while it serves others"}
		return
	}
	if f.hindered != nil && f.hindered.several && f.outcome.Verdict == Failed && e.single(ctx) {
		f.outcome = Outcome{Check: f.Check, Verdict: Inconclusive, Reason: "the server ends a session when another is opened, and the check needs both"}
	}
}

// single reports whether the server ends a session when another is opened.
func (e *Engine) single(ctx context.Context) bool {
	var open []*client.Session
	for range 2 {
		s, err := e.connect(ctx, "whether the server keeps several sessions", client.Options{})
		if err != nil {
			return false
		}
		defer e.close(ctx, s)
		if _, err := s.Initialize(ctx); err != nil || s.Fence(ctx) != nil {
			return false
		}
		open = append(open, s)
	}
	_ = open[0].Fence(ctx)
	return lost(ctx, open[0], false) && !lost(ctx, open[1], false)
}
