package client

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// watch follows one launch until the client ends or has to be stopped.
type watch struct {
	*execution
	t     *T
	slot  *slot
	began time.Time
	heard *activity
}

// watch waits until the client ends or has to be stopped. It makes room for other
// clients as soon as this one does nothing.
func (x *execution) watch(ctx context.Context, p transport.Process, t *T, s *slot) Ending {
	now := time.Now()
	w := &watch{x, t, s, now, &activity{logs: func() []*wire.Log { return t.logs(x.Trace) }, first: now, any: now,
		client: now, message: now}}
	limit := time.NewTimer(x.Timeout + w.expected())
	defer limit.Stop()
	look := time.NewTicker(w.quiet() / 2)
	defer look.Stop()
	for {
		select {
		case <-p.Done():
			if w.baseline() {
				w.heard.look()
				w.heard.pause = max(w.heard.pause, time.Since(w.heard.any))
				w.launches.learn(time.Since(w.began), w.heard)
			}
			return Ending{}
		case <-ctx.Done():
			return Ending{Skipped: cutShort(ctx), NotRun: true}
		case <-x.launches.over:
			return Ending{Skipped: x.launches.stopped()}
		case <-limit.C:
			more := w.more()
			if more <= 0 {
				return w.late()
			}
			limit.Reset(more)
		case <-look.C:
			if end, stop := w.look(); stop {
				return end
			}
		}
	}
}

// baseline reports whether the client is at the ordinary server, which tells how long it takes.
func (w *watch) baseline() bool { return w.t.Scenario.Name == Baseline }

// more takes in that the time limit is reached, and returns the time that the client still has.
func (w *watch) more() time.Duration {
	if w.baseline() {
		if w.heard.events == 0 {
			w.launches.stop(notLaunched + "it said nothing until its time limit")
		}
		w.launches.hangs()
	}
	return slowness*w.launches.shown().took - time.Since(w.began)
}

// late tells that the client was still there when it was stopped.
func (w *watch) late() Ending { return Ending{Late: true, Busy: time.Since(w.heard.any) < w.busy()} }

// look takes in what the client has done, and reports whether it has to be stopped.
func (w *watch) look() (end Ending, stop bool) {
	heard := w.heard
	if heard.look(); heard.begun {
		w.launches.open()
	}
	// A client that has not spoken yet may be starting on a busy machine. After it has spoken, a client that is
	// kept waiting does nothing.
	if heard.events > 0 && (time.Since(heard.any) >= w.quiet() || time.Since(w.began) >= w.Timeout/4 ||
		w.t.Scenario.Lane == Waiting && heard.sent > 0) {
		w.slot.idle()
	}
	if silent, idle := w.silent(); silent && heard.events > 0 && !w.baseline() {
		end, w.t.idle = w.late(), idle
		end.Silent = true
		return end, true
	}
	// A client that will hardly come through a combined launch has better use of its time in the scenarios one by one.
	known := w.launches.shown()
	hopeless := w.t.combined && known.took > 0 && (heard.sent > endlessly*known.sent ||
		time.Since(heard.first) > max(slowness*known.active, w.Timeout/2))
	if hopeless || w.hangsAgain() {
		return w.late(), true
	}
	return Ending{}, false
}

// hangsAgain reports whether the client has had enough time although it hangs with an ordinary server as well. That it
// hangs here is not news then. It only needs the time to react to the server's messages.
func (w *watch) hangsAgain() bool {
	if w.t.Scenario.Lane == Waiting || !w.launches.hung() {
		return false
	}
	lasted := min(time.Since(w.began), time.Since(w.launches.shown().at))
	return w.heard.events > 0 && time.Since(w.heard.any) > w.t.Patience+w.quiet() || lasted > 2*w.t.Patience
}

// expected returns how long a scenario may keep the client waiting before the client waits longer than it should.
func (w *watch) expected() time.Duration {
	known := w.GivesUpAfter
	if known == 0 {
		known = Renewals * w.t.TookToGiveUp()
	}
	// A time that was only observed, and not stated by the user, does not extend the limit of the scenario.
	if w.t.Scenario.Lane != Waiting || known == 0 || w.GivesUpAfter == 0 && known+2*GiveUpDelay > w.Timeout {
		return 0
	}
	return known + 2*GiveUpDelay
}

// silent reports whether a client has spoken and then sent nothing for so long that no more may come. idle means: it
// had all its answers. A client that still looks for news has twice the time. The run that confirms its silence gives
// it the whole time limit, and no less than --gives-up-after.
func (w *watch) silent() (silent, idle bool) {
	idleTime, waiting := w.silence()
	looking := time.Since(w.heard.any) < w.busy()
	if looking {
		idleTime, waiting = 2*idleTime, 2*waiting
	}
	if w.t.whole {
		whole := max(w.Timeout, w.GivesUpAfter+2*GiveUpDelay)
		idleTime, waiting = max(idleTime, whole), max(waiting, whole)
	}
	// A client that asks for authorization may wait for a browser.
	if w.t.Scenario.Authorization == nil && !looking && !w.heard.waits() && time.Since(w.heard.message) > idleTime {
		return true, true
	}
	return time.Since(w.heard.client) > max(min(waiting, w.Timeout), w.expected()), false
}

// busy returns the time before its end in which a client must have done something to count as not hanging.
func (w *watch) busy() time.Duration { return min(busyTime, w.Timeout/4) }

// quiet returns the time without any event after which a client counts as waiting.
func (w *watch) quiet() time.Duration { return min(quietTime, w.Timeout/20) }

// silence returns how long a client that has spoken may send nothing: idle while nothing is on its way to it, and
// waiting while it waits for an answer. Both are a multiple of its time with an ordinary server, and at least a part
// of the time limit. idle is longer than a client counts as busy, and waiting is at least the time of two answers to
// the server.
func (w *watch) silence() (idle, waiting time.Duration) {
	known := w.launches.shown()
	return max(slowness*known.pause, w.Timeout/6, w.busy()+2*w.quiet()),
		max(slowness*known.active, w.Timeout/3, 2*w.t.Patience)
}

// activity records when the connections of a scenario last brought something.
type activity struct {
	logs    func() []*wire.Log
	events  int
	sent    int           // of them by the client
	begun   bool          // the client has sent initialize
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
	looked bool // the client has opened a stream with GET
	closed bool // the client has closed its side, and may wait for the server to end
	// open are requests of the client that are not answered: their ids, and the streams of those over HTTP.
	open map[string]bool
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
	a.begun = a.begun || e.Kind == wire.KindMessage && e.Msg.Method == "initialize"
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
