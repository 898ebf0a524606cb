package server

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Bounds of what is kept of a stream for a client that is slow or reconnects, and
// of the streams kept in a session.
const (
	maxStreamEvents = 4096
	maxStreamBytes  = 8 << 20
	maxKeptStreams  = 32
	maxListening    = 16
)

// Event is one event on an SSE stream. A hook may change all of its fields.
type Event struct {
	Session *Session
	// Out is the message in the event; nil for the endpoint event.
	Out *Outgoing
	// Stream is the exchange that opened the stream, as in the log: post:3,
	// get:1.
	Stream string
	// Name is the event field, ID the id field, Retry the retry field and
	// Comment a comment before the event; those that are empty are left out.
	Name, ID, Retry, Comment string
	Data                     []byte
	// Raw, unless nil, is written instead of the text of the fields.
	Raw []byte
	// Pieces are the positions at which the text is cut: what is between them is written by
	// itself, a moment apart.
	Pieces []int
	// Cut ends the connection after the event, while the stream goes on and can
	// be resumed. Abrupt has it break off, without the end of the body.
	Cut, Abrupt bool
}

// text returns the event as it is written to the stream.
func (e *Event) text() []byte {
	if e.Raw != nil {
		return e.Raw
	}
	var b bytes.Buffer
	field := func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	field("", e.Comment)
	field("event", e.Name)
	field("id", e.ID)
	field("retry", e.Retry)
	if e.Data != nil {
		for line := range strings.SplitSeq(string(e.Data), "\n") {
			b.WriteString("data: " + line + "\n")
		}
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// stream is a sequence of events for one exchange. An HTTP response carries it
// from some position on; if that connection is lost, another may continue. All
// methods may be called on nil, which is the stream of other transports.
type stream struct {
	name      string // as Event.Stream
	number    int    // within the session, for event ids
	listening bool

	mu       sync.Mutex
	events   []*Event // what is kept
	first    int      // position of the first one that is kept
	size     int      // bytes of Data in events
	numbered int      // events that were given a number
	holds    int      // how many users may still add events
	finished bool
	form     AnswerForm
	requests []*Request
	reader   int           // number of the connection that carries the stream
	changed  chan struct{} // closed and replaced at each change
}

func newStream(name string, number int, listening bool) *stream {
	return &stream{name: name, number: number, listening: listening, changed: make(chan struct{})}
}

func (st *stream) wake() {
	close(st.changed)
	st.changed = make(chan struct{})
}

// hold keeps the stream from finishing until release.
func (st *stream) hold() {
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.holds++
}

// release undoes a hold. The last one finishes the stream.
func (st *stream) release() {
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.holds--; st.holds == 0 {
		st.finished = true
		st.wake()
	}
}

// request notes that the stream is to carry the answer to a request.
func (st *stream) request(r *Request) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.requests = append(st.requests, r)
	if choose := r.Session.Server.behaviour.HTTP.Answer; choose != nil {
		st.form = choose(r)
	}
}

// answers returns the requests of the stream and the form of the answer.
func (st *stream) answers() ([]*Request, AnswerForm) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.requests, st.form
}

// prefer sets the form of the answer.
func (st *stream) prefer(form AnswerForm) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.form = form
}

// begin makes a stream of an answer whose form is still open.
func (st *stream) begin() {
	if st == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.form == AnswerAuto {
		st.form = AnswerSSE
		st.wake()
	}
}

// putAs puts an event on the stream, or what the behaviour has in its place.
func (st *stream) putAs(b *Behaviour, e *Event) {
	events := []*Event{e}
	if b.HTTP.Event != nil {
		events = b.HTTP.Event(e)
	}
	for _, e := range events {
		st.put(e)
	}
}

// put appends an event, and forgets the oldest beyond the bounds.
func (st *stream) put(e *Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.events = append(st.events, e)
	st.size += len(e.Data)
	for len(st.events) > 1 && (len(st.events) > maxStreamEvents || st.size > maxStreamBytes) {
		st.size -= len(st.events[0].Data)
		st.events = st.events[1:] // a reader may still hold the first
		st.first++
	}
	st.wake()
}

// numberNext returns a number for an event that no other of the stream has.
func (st *stream) numberNext() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.numbered++
	return st.numbered
}

// attach makes a new connection the carrier of the stream.
func (st *stream) attach() (reader int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.reader++
	st.wake()
	return st.reader
}

// state of a stream as a reader at some position sees it.
type state struct {
	events    []*Event // from the position on
	finished  bool
	lost      bool // events from the position on were forgotten
	displaced bool // another connection carries the stream now
	changed   <-chan struct{}
}

func (st *stream) from(position, reader int) state {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := state{finished: st.finished, changed: st.changed, displaced: reader != st.reader}
	if position < st.first {
		s.lost = true
	} else {
		s.events = st.events[min(position-st.first, len(st.events)):len(st.events):len(st.events)]
	}
	return s
}

// cutAfter takes back the events from a position on, which were not sent.
func (st *stream) cutAfter(position int) []*Event {
	st.mu.Lock()
	defer st.mu.Unlock()
	if position < st.first || position-st.first >= len(st.events) {
		return nil
	}
	unseen := st.events[position-st.first:]
	st.events = st.events[: position-st.first : position-st.first]
	for _, e := range unseen {
		st.size -= len(e.Data)
	}
	return unseen
}

// find returns the position of the event with an id.
func (st *stream) find(id string) (position int, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, e := range st.events {
		if e.ID == id {
			return st.first + i, true
		}
	}
	return 0, false
}

// httpLink carries a session over Streamable HTTP.
type httpLink struct {
	http     *HTTPServer
	session  *Session
	recorder *recorder

	mu        sync.Mutex
	streams   int       // how many were opened
	kept      []*stream // that can be resumed, oldest first
	listening []*stream // that a connection carries now, oldest first
	backlog   []*Event  // unrelated messages for the next listening stream
	backBytes int
}

// open returns a new stream that is kept for resumption.
func (l *httpLink) open(name string, listening bool) *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams++
	st := newStream(name, l.streams, listening)
	l.kept = append(l.kept, st)
	if len(l.kept) > maxKeptStreams {
		// The oldest stream that is not needed any more goes first.
		if i := slices.IndexFunc(l.kept, (*stream).dispensable); i >= 0 {
			l.kept = slices.Delete(l.kept, i, i+1)
		}
	}
	return st
}

// dispensable reports whether no answer is to come on the stream.
func (st *stream) dispensable() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.finished || st.listening
}

func (l *httpLink) deliver(out *Outgoing) {
	text, err := out.text()
	if err != nil {
		return // it cannot be written as JSON; only a behaviour makes such a message
	}
	st := out.To.streamOrNil()
	if st != nil && out.Method != "" {
		if _, form := st.answers(); form == AnswerJSON {
			if out.Kind != wire.Request {
				return // the answer is one JSON object, which cannot hold it
			}
			st = nil
		}
	}
	e := &Event{Session: l.session, Out: out, Name: "message", Data: text}
	if st == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.listening) == 0 {
			l.later(e)
			return
		}
		st = l.listening[len(l.listening)-1]
	}
	l.put(st, e)
}

// later keeps an event for the next listening stream. The caller holds the mutex.
func (l *httpLink) later(e *Event) {
	l.backlog = append(l.backlog, e)
	l.backBytes += len(e.Data)
	for len(l.backlog) > 1 && (len(l.backlog) > maxStreamEvents || l.backBytes > maxStreamBytes) {
		l.backBytes -= len(l.backlog[0].Data)
		l.backlog = l.backlog[1:]
	}
}

// put gives an event its id and puts it on a stream. The id also names the stream,
// so that it is unique within the session (basic/transports#resumability-and-redelivery).
func (l *httpLink) put(st *stream, e *Event) {
	e.Stream = st.name
	if !l.http.server.options.HTTP.NoEventID {
		e.ID = strconv.Itoa(st.number) + "-" + strconv.Itoa(st.numberNext())
	}
	st.putAs(l.http.server.behaviour, e)
}

// listen makes a stream the one that takes unrelated messages.
func (l *httpLink) listen(st *stream) (reader int) {
	reader = st.attach()
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.listening, st) {
		return reader // its former connection is displaced
	}
	if len(l.listening) >= maxListening {
		l.listening[0].attach() // displaces its reader
		l.listening = l.listening[1:]
	}
	l.listening = append(l.listening, st)
	for _, e := range l.backlog {
		l.put(st, e)
	}
	l.backlog, l.backBytes = nil, 0
	return reader
}

// unlisten undoes listen. Messages that were not written go to the next stream.
func (l *httpLink) unlisten(st *stream, reader, position int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st.mu.Lock()
	displaced := st.reader != reader
	st.mu.Unlock()
	if displaced {
		return
	}
	l.listening = slices.DeleteFunc(l.listening, func(other *stream) bool { return other == st })
	for _, e := range st.cutAfter(position) {
		if len(l.listening) > 0 {
			l.put(l.listening[len(l.listening)-1], e)
		} else {
			l.later(e)
		}
	}
}

// resume returns the stream that holds an event id, and the position after it.
func (l *httpLink) resume(id string) (st *stream, position int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, st := range l.kept {
		if i, ok := st.find(id); ok {
			return st, i + 1
		}
	}
	return nil, 0
}

// all returns the events of all streams as far as they are kept.
func (l *httpLink) all() []*Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []*Event
	for _, st := range l.kept {
		st.mu.Lock()
		events = append(events, st.events...)
		st.mu.Unlock()
	}
	return events
}

// cancelAll treats the requests of a stream as cancelled.
func (st *stream) cancelAll(ctx context.Context) {
	requests, _ := st.answers()
	for _, r := range requests {
		r.Session.mu.Lock()
		r.cancelled = !r.finished
		r.Session.mu.Unlock()
		r.cancel(context.Cause(ctx))
	}
}
