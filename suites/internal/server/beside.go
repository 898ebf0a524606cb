package server

import (
	"context"
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// work is a call that is kept under way in a session. A server may as well serve other requests when it is over
// (docs/positions.md, requests-beside-others).
type work struct {
	t             *check.T
	session       *client.Session
	call          check.Call
	running       *client.Pending
	beside, after int // what was done before the end of a call, and behind it
	made          int // calls
}

// end returns what has ended the call, or nil.
func (w *work) end() *wire.Event {
	events := w.session.Log().Events()[w.running.Request.Seq+1:]
	if i := slices.IndexFunc(events, func(e *wire.Event) bool { return over(e, w.running) }); i >= 0 {
		return events[i]
	}
	return nil
}

// ended reports whether the call is over.
func (w *work) ended() bool { return w.running == nil || w.end() != nil }

// keepRunning sees to it that a call is under way. It reports false if that was tried often enough, or
// the server takes one request at a time.
func (w *work) keepRunning() bool {
	const (
		most   = 5 // times that the call is made
		behind = 2 // requests that are answered after its end show that the server takes one at a time
	)
	if !w.ended() {
		return true
	}
	if w.made++; w.made > most || w.after == behind {
		return false
	}
	var err error
	w.running, err = w.session.Start(w.t.Context, "tools/call",
		withToken(w.call.Params(), "mcpconform-beside-"+w.session.NextID().String()))
	w.t.Must(err)
	w.t.Show(w.running.Request)
	underWay(w.t, w.session, w.running)
	return true
}

// do does something beside the call, and reports whether it was done before its end.
func (w *work) do(something func()) bool {
	something()
	if w.ended() {
		w.after++
		return false
	}
	w.beside++
	return true
}

// repeat runs a check beside the call. It reports whether the check was over before the call, or broke it off, as a
// session does that the check ends: what follows then has another one.
func (w *work) repeat(c *check.Check) (record ledger.Record, ok bool) {
	ok = w.do(func() { record = w.t.Repeat(c, w.session) })
	if end := w.end(); end != nil && !w.running.Answers(end) {
		w.after--
		w.beside++
		w.session, w.running, ok = w.t.Open(capable), nil, true
	}
	return record, ok
}

// stop cancels the call.
func (w *work) stop() {
	if !w.ended() {
		_, err := w.session.Send(w.t.Context, []byte(cancellation(w.running.ID)))
		w.t.Must(err)
	}
}

// everythingBeside keeps a call under way and meanwhile asks for all that a client asks for when
// nothing else runs: each is answered, and the rules judge with what.
func everythingBeside(t *check.T) {
	w := &work{t: t, session: t.Session, call: toolFor(t, "slow", "progress")}
	for _, ask := range plainRequests(t) {
		if !w.keepRunning() {
			break
		}
		w.do(ask)
	}
	if w.beside == 0 {
		t.Inconclusive("no request was answered while a call of %q was in progress", w.call.Tool)
	}
	w.stop()
}

// sharing is a session, with other needs besides, in which checks that share one can be run: each of them once,
// as they choose ids.
func sharing(n check.Needs) check.Needs {
	n.Session, n.Options = check.Fresh, capable
	return n
}

// checksBeside runs the checks that share a session once more while a call is under way, as far as they are about
// something that those before were not. A finding that shows only beside the call counts if it shows a second time. A
// server may refuse requests beside others (docs/positions.md, requests-beside-others), so a refusal is not a finding.
func checksBeside(t *check.T) {
	w := &work{t: t, session: t.Session, call: toolFor(t, "slow", "progress")}
	suspects, asked := make(map[*check.Check][]string), slices.Collect(maps.Values(answeredBy))
	for _, c := range t.Sharing() {
		if !t.Thorough() && slices.Contains(asked, c.Requirements[0]) {
			continue // base/everything-beside-call asks for all that the server has
		}
		if !w.keepRunning() {
			break
		}
		record, ok := w.repeat(c)
		if !ok {
			continue
		}
		asked = append(asked, c.Requirements...)
		known := t.Found(c)
		if found := slices.DeleteFunc(accused(record),
			func(id string) bool { return slices.Contains(known, id) }); len(found) > 0 {
			suspects[c] = found
		}
	}
	if w.beside == 0 {
		t.Inconclusive("no check ran while a call of %q was in progress", w.call.Tool)
	}
	w.stop()
	unsuspect(w, suspects)
	if len(suspects) == 0 {
		return
	}
	again := &work{t: t, session: t.Open(capable), call: w.call}
	for _, c := range t.Sharing() {
		if len(suspects[c]) == 0 || !again.keepRunning() {
			continue
		}
		record, ok := again.repeat(c)
		if !ok {
			continue
		}
		for _, id := range suspects[c] {
			for _, f := range record.At(id, wire.Server).Findings {
				message := "while a call of " + quote(w.call.Tool) + " was in progress: " + f.Message
				switch {
				case declined(f.Evidence):
				case f.WarnOnly:
					t.Warning(id, message, f.Evidence...)
				default:
					t.Violation(id, message, f.Evidence...)
				}
			}
		}
	}
	again.stop()
}

// unsuspect removes the findings that a check also has when nothing else runs, in a session with an earlier call. A
// finding that shows from the second call on does not come from other checks.
func unsuspect(w *work, suspects map[*check.Check][]string) {
	if len(suspects) == 0 {
		return
	}
	var before *work
	for _, c := range w.t.Sharing() {
		if len(suspects[c]) == 0 {
			continue
		}
		if before == nil || before.session.Fence(w.t.Context) != nil { // the last check may have ended the session
			before = &work{t: w.t, session: w.t.Open(capable), call: w.call}
			if before.keepRunning() {
				before.stop()
				w.t.FenceOn(before.session)
			}
		}
		known := accused(w.t.Repeat(c, before.session))
		suspects[c] = slices.DeleteFunc(suspects[c], func(id string) bool { return slices.Contains(known, id) })
		if len(suspects[c]) == 0 {
			delete(suspects, c)
		}
	}
}

// accused returns the requirements that a server was found to break otherwise than by refusing something.
func accused(record ledger.Record) (ids []string) {
	for _, k := range record.Keys() {
		if k.Party == wire.Server && slices.ContainsFunc(record[k].Findings,
			func(f ledger.Finding) bool { return !declined(f.Evidence) }) {
			ids = append(ids, k.Requirement)
		}
	}
	return ids
}

// declined reports whether the evidence of a finding holds the refusal of a legal message, or no answer at all. An
// error without an id refuses no request.
func declined(evidence []*wire.Event) bool {
	return !slices.ContainsFunc(evidence, func(e *wire.Event) bool {
		return e.From == wire.Server && e.Kind == wire.KindMessage
	}) ||
		slices.ContainsFunc(evidence, func(e *wire.Event) bool {
			return e.Kind == wire.KindHTTPResponse && e.HTTP.Status >= 400 ||
				e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.ErrorResponse &&
					e.Msg.ID.Usable()
		})
}

// plainRequests returns what asks for each page of the lists and for each item, one after the other.
func plainRequests(t *check.T) (all []func()) {
	const (
		most     = 40 // items of a list
		mostLate = 3  // calls that are not over soon
	)
	add := func(method string, params any) {
		all = append(all, func() { t.Call(method, params) })
	}
	for _, method := range t.Served() {
		all = append(all, func() { t.Must(check.ReadList(t.Context, t.Session, method).Err) })
	}
	for _, uri := range resourceURIs(t, most) {
		add("resources/read", map[string]any{"uri": uri})
	}
	for _, p := range prompts(t) {
		add("prompts/get", promptParams(t, p))
	}
	if t.Session.Capability("completions") {
		for _, c := range listCompletables(t) {
			add("completion/complete", c.params(""))
		}
	}
	slow, _ := knownTool(t, "slow")
	tools, late := callable(t), 0
	for _, tool := range tools[:min(len(tools), most)] {
		if arguments, ok := t.Target.Arguments(tool); ok && tool["name"] != slow.Tool {
			c := check.Call{Tool: tool["name"].(string), Arguments: arguments}
			all = append(all, func() {
				if late < mostLate && !briefly(t, c) {
					late++
				}
			})
		}
	}
	return all
}

// briefly makes a call and reports whether it ends soon. Otherwise it is cancelled.
func briefly(t *check.T, call check.Call) bool {
	p := t.Start("tools/call", call.Params())
	limit, stop := context.WithTimeout(t.Context, prompt)
	defer stop()
	if _, err := t.Session.Log().Await(limit, p.Request.Seq+1,
		func(e *wire.Event) bool { return over(e, p) }); err != nil {
		cancel(t, p.ID)
		return false
	}
	return true
}
