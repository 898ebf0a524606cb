package client

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// watch waits until the client ends or has to be stopped. It makes room for other
// clients as soon as this one does nothing.
func (e *Engine) watch(ctx context.Context, p transport.Process, t *T, s *slot) (end Ending) {
	limit := time.NewTimer(e.limit(t))
	defer limit.Stop()
	quiet := e.quiet()
	look := time.NewTicker(quiet / 2)
	defer look.Stop()
	began := time.Now()
	heard := &activity{logs: func() []*wire.Log { return t.logs(e.Trace) }, first: began, any: began, client: began,
		message: began}
	late := func() Ending { return Ending{Late: true, Busy: time.Since(heard.any) < e.busy()} }
	for {
		select {
		case <-p.Done():
			if t.Scenario.Name == Baseline {
				heard.look()
				heard.pause = max(heard.pause, time.Since(heard.any))
				e.launches.baselineTook(time.Since(began), heard)
			}
			return Ending{}
		case <-ctx.Done():
			return Ending{Skipped: cutShort(ctx), NotRun: true}
		case <-e.launches.over:
			return Ending{Skipped: e.launches.ended()}
		case <-limit.C:
			if t.Scenario.Name == Baseline {
				e.launches.baselineHangs(heard.events > 0)
			}
			if more := e.launches.minimum() - time.Since(began); more > 0 {
				limit.Reset(more)
				continue
			}
			return late()
		case <-look.C:
		}
		if heard.look(); heard.sent > 0 {
			e.launches.open()
		}
		// A client that has not spoken yet may be starting on a busy machine. After it has spoken, a client that is
		// kept waiting does nothing.
		if heard.events > 0 && (time.Since(heard.any) >= quiet || time.Since(began) >= e.Timeout/4 ||
			t.Scenario.Patient && heard.sent > 0) {
			s.idle()
		}
		// Only the baseline tells how long the client takes.
		if silent, idle := e.silent(t, heard); silent && heard.events > 0 && t.Scenario.Name != Baseline {
			end := late()
			end.Silent, t.idle = true, idle
			return end
		}
		if t.combined && e.launches.hopeless(time.Since(heard.first), e.Timeout/2, heard.sent) {
			return late()
		}
		if t.Scenario.Patient || !e.launches.baselineHung() {
			continue
		}
		// The client hangs with an ordinary server as well, so its hanging here is not news. It only needs enough
		// time to react to the server's messages.
		lasted := time.Since(e.launches.since(began))
		if heard.events > 0 && time.Since(heard.any) > t.Patience+quiet || lasted > 2*t.Patience {
			return late()
		}
	}
}

// expected returns how long a scenario may keep the client waiting before the client waits longer than it should.
func (e *Engine) expected(t *T) time.Duration {
	known := e.GivesUpAfter
	if known == 0 {
		known = Renewals * t.TookToGiveUp()
	}
	// A time that was only observed, and not stated by the user, does not extend the limit of the scenario.
	if !t.Scenario.Patient || known == 0 || e.GivesUpAfter == 0 && known+2*GiveUpDelay > e.Timeout {
		return 0
	}
	return known + 2*GiveUpDelay
}

// limit returns how long the client may take in a scenario.
func (e *Engine) limit(t *T) time.Duration { return e.Timeout + e.expected(t) }

// silent reports whether a client that has spoken has sent nothing for so long that no more may come. idle means: it
// had all its answers. A client that still looks for news has twice the time. In the run that confirms its silence, it
// has the whole time limit, and at least the time after which the user says that it gives up a request.
func (e *Engine) silent(t *T, heard *activity) (silent, idle bool) {
	idleTime, waiting := e.silence(t)
	looking := time.Since(heard.any) < e.busy()
	if looking {
		idleTime, waiting = 2*idleTime, 2*waiting
	}
	if t.whole {
		whole := max(e.Timeout, e.GivesUpAfter+2*GiveUpDelay)
		idleTime, waiting = max(idleTime, whole), max(waiting, whole)
	}
	// A client that asks for authorization may wait for a browser.
	if t.Scenario.Authorization == nil && !looking && !heard.waits() && time.Since(heard.message) > idleTime {
		return true, true
	}
	return time.Since(heard.client) > max(min(waiting, e.Timeout), e.expected(t)), false
}

// busy returns the time before its end in which a client must have done something to count as not hanging.
func (e *Engine) busy() time.Duration { return min(busyTime, e.Timeout/4) }

// quiet returns the time without any event after which a client counts as waiting.
func (e *Engine) quiet() time.Duration { return min(quietTime, e.Timeout/20) }

// silence returns how long a client that has spoken may send nothing: idle while nothing is on its way to it, and
// waiting while it waits for an answer. Both are a multiple of its time with an ordinary server, and at least a part
// of the time limit. idle is longer than a client counts as busy, and waiting is at least the time of two answers to
// the server.
func (e *Engine) silence(t *T) (idle, waiting time.Duration) {
	pause, took := e.launches.pace()
	return max(slowness*pause, e.Timeout/6, e.busy()+2*e.quiet()), max(slowness*took, e.Timeout/3, 2*t.Patience)
}

// activity records when the connections of a scenario last brought something.
type activity struct {
	logs    func() []*wire.Log
	events  int
	sent    int           // of them by the client
	pause   time.Duration // the longest one between two of them
	first   time.Time     // when something first came; before, when the client was launched
	any     time.Time
	client  time.Time     // when the client did something other than to look for news
	message time.Time     // when the last message came, of either side
	spoke   time.Duration // when the client first did something, in the time of the trace
	last    time.Duration // when something last came, likewise
	read    map[*wire.Log]*heard
}

// heard holds the state of a connection as far as it was read.
type heard struct {
	events int
	looked bool            // the client has opened a stream with GET
	closed bool            // the client has closed its side, and may wait for the server to end
	open   map[string]bool // requests of the client that are not answered: their ids, and the streams of those over HTTP
}

// look takes in the events since the last look.
func (a *activity) look() {
	if a.read == nil {
		a.read = make(map[*wire.Log]*heard)
	}
	for _, l := range a.logs() {
		h := a.read[l]
		if h == nil {
			h = &heard{open: make(map[string]bool)}
			a.read[l] = h
		}
		for _, e := range l.Events()[h.events:] {
			h.events++
			a.note(e, h.news(e, l.Transport))
		}
	}
}

// note takes in an event. news says that it is more than another look for something new.
func (a *activity) note(e *wire.Event, news bool) {
	now := time.Now()
	a.events++
	a.any = now
	if a.events == 1 {
		a.first = now
	} else {
		a.pause = max(a.pause, e.At-a.last)
	}
	a.last = max(a.last, e.At)
	if e.Kind == wire.KindMessage || e.Kind == wire.KindTimeout || e.From == wire.Client && news {
		a.message = now
	}
	if e.From != wire.Client {
		return
	}
	if a.sent++; a.sent == 1 {
		a.spoke = e.At
	}
	if news {
		a.client = now
	}
}

// news reports whether an event is more than another look for something new. A client may open listening streams one
// after the other for ever.
func (h *heard) news(e *wire.Event, over string) bool {
	switch {
	case e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodGet && over != transport.NameOAuth:
		defer func() { h.looked = true }()
		return !h.looked
	case e.Kind == wire.KindHTTPRequest:
		h.open[e.Stream] = true
	case e.Kind == wire.KindHTTPResponse, e.Kind == wire.KindStreamEnd:
		delete(h.open, e.Stream)
	case e.Kind == wire.KindClose && e.From == wire.Client:
		h.closed = true
	case e.Kind != wire.KindMessage:
	case e.From == wire.Client && e.Msg.Kind == wire.Request:
		h.open[e.Msg.ID.Key()] = true
	case e.From == wire.Server && e.Msg.IsResponse():
		delete(h.open, e.Msg.ID.Key())
	}
	return true
}

// waits reports whether the client waits for an answer.
func (a *activity) waits() bool {
	for _, h := range a.read {
		if h.closed || len(h.open) > 0 {
			return true
		}
	}
	return false
}
