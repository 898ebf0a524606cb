package wire

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	KindMessage      EventKind = "message"       // one message, or what was sent instead
	KindHTTPRequest  EventKind = "http-request"  // head of a request
	KindHTTPResponse EventKind = "http-response" // head of a response
	KindBody         EventKind = "http-body"     // a body that is not read as messages
	KindSSE          EventKind = "sse"           // an SSE event or comment that carries no message
	KindStreamEnd    EventKind = "stream-end"    // a body or stream ended; Note says how if not cleanly
	KindStart        EventKind = "process-start"
	KindExit         EventKind = "process-exit"
	KindStderr       EventKind = "stderr"
	KindClose        EventKind = "close"   // one side closed Stream
	KindSignal       EventKind = "signal"  // a signal was sent to the process; Note names it
	KindTimeout      EventKind = "timeout" // From did not answer in time; Note says what was awaited
	KindNote         EventKind = "note"    // the harness remarks something
)

// Event is one thing that happened on a connection. It is not changed once it
// is in a log.
type Event struct {
	Conn string        // id of the connection
	Seq  int           // position in the connection's log, from 0
	At   time.Duration // since the trace began
	Kind EventKind
	From Party // who caused it; empty for the harness's own remarks
	// Stream is where it travelled: stdin, stdout, stderr, or over HTTP the
	// exchange: post:3, get:1, delete:1.
	Stream string
	Raw    []byte   // exact bytes of a message, body or stderr line
	Msg    *Message // of a KindMessage
	// Dropped counts bytes that were not kept because of a limit.
	Dropped int64
	HTTP    *Head
	SSE     *SSE
	Exit    *Exit
	Note    string
	// Deliberate lists requirements that mcpconform breaks on purpose with this event.
	Deliberate []string
	// Member says that the message was a member of the batch that is the event
	// before, or a further member; Raw is then not its exact spelling.
	Member bool
}

// Head of an HTTP request or response.
type Head struct {
	Method string      // of a request
	URL    string      // of a request: as sent, secrets redacted
	Status int         // of a response
	Header http.Header // secrets redacted
}

// SSE holds the fields of a server-sent event, as far as they were present.
type SSE struct {
	Event   string
	ID      string
	HasID   bool
	Retry   string
	Comment string
}

// Exit of a process.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // name of the signal, or ""
	// Limit names, in a clause, the limit that the process exceeded before it was ended, or is "".
	Limit string
}

func (e Exit) String() string {
	if e.Limit != "" {
		return "was ended because " + e.Limit
	}
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return "exited with status " + strconv.Itoa(e.Code)
}

// Limits of what is read from a peer and kept.
type Limits struct {
	Message int   // bytes of one message or body
	Total   int64 // bytes of all events of a connection, as they weigh in memory
	Events  int   // events of a connection
	// Run is the bytes of all connections of a trace, a third of it for what nobody asked for. Zero leaves only
	// their own bounds.
	Run int64
}

// DefaultLimits suit any honest target.
var DefaultLimits = Limits{Message: 16 << 20, Total: 128 << 20, Events: 200_000, Run: 192 << 20}

// ErrFlood reports that the peer sent more than the limits allow.
var ErrFlood = errors.New("the peer sent more than the limits allow")

// ErrEnded reports that a connection's log is complete and holds no further event.
var ErrEnded = errors.New("the connection has ended")

// Trace holds the logs of all connections of a run. It is safe for concurrent use.
type Trace struct {
	Start  time.Time
	Limits Limits
	// Redact takes secrets out of an event before WriteTo writes it: it returns a
	// copy, or the event itself if it holds none. Nil redacts nothing.
	Redact func(*Event) *Event
	// Lossy says that a connection that passes the limits goes on, and is not
	// recorded any further: see [Log.Stop].
	Lossy bool

	mu      sync.Mutex
	logs    []*Log
	rest    *Log         // see Connect
	bytes   atomic.Int64 // what all connections weigh
	unasked atomic.Int64 // what that answers no request weighs
	said    said         // what messages say
	heads   heads
	large   chan struct{} // see ReadLarge
}

// NewTrace returns an empty trace that begins now.
func NewTrace(limits Limits) *Trace {
	return &Trace{Start: time.Now(), Limits: limits, large: make(chan struct{}, 2)}
}

// Connect opens the log of a new connection. The label says in a few words what the connection is for. A lossy trace
// that has reached its limits has one log for all further connections, and that log keeps nothing.
func (t *Trace) Connect(transport, label string) *Log {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rest != nil {
		return t.rest
	}
	l := &Log{
		ID: "c" + strconv.Itoa(len(t.logs)+1), Transport: transport, Label: label,
		trace: t, limits: t.Limits,
	}
	t.logs = append(t.logs, l)
	if run := t.bytes.Add(connectionWeight); t.Lossy && t.Limits.Run > 0 && run > t.Limits.Run {
		l.stop("the trace holds as much as its limits allow; this connection and all later ones are left out")
		t.rest = l
	}
	return l
}

// Logs returns the logs of all connections so far, oldest first.
func (t *Trace) Logs() []*Log {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.logs)
}

// Log is the ordered record of one connection. It is safe for concurrent use.
type Log struct {
	ID        string
	Transport string // stdio, http or sse
	Label     string

	trace  *Trace
	limits Limits

	mu      sync.Mutex
	events  []*Event
	bytes   int64
	flooded bool
	stopped bool
	cut     bool // see Cut
	ended   bool
	due     map[Party]int // answers, by who owes them
	changed chan struct{} // closed at the next change; nil if nobody awaits it

	reading      sync.Mutex                 // taken before mu
	conversation *Conversation              // as far as it was read
	given        bool                       // to somebody who reads it without a lock: it stays as it is
	latest       weak.Pointer[Conversation] // of the log while it goes on; see Conversation
}

// Limits returns the limits of the connection.
func (l *Log) Limits() Limits { return l.limits }

// Note adds a note of mcpconform's own.
func (l *Log) Note(text string) { _, _ = l.Append(Event{Kind: KindNote, Note: text}) }

// Append stamps the event, parses it if it is a message, and adds it. Once the
// limits are passed it returns ErrFlood, and keeps only ends and notes.
func (l *Log) Append(e Event) (*Event, error) {
	if e.Kind == KindMessage && e.Msg == nil {
		if l.refuses() {
			return nil, ErrFlood // unread
		}
		e.Msg = l.Parse(e.Raw)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return &e, nil
	}
	size := e.size()
	if e.HTTP != nil && !l.flooded {
		var known bool
		if e.HTTP.Header, known = l.trace.heads.shared(e.HTTP.Header); !known {
			size += int64(len(e.HTTP.Header)) * fieldWeight
		}
	}
	vital := e.Kind == KindExit || e.Kind == KindNote || e.Kind == KindClose || e.Kind == KindSignal ||
		e.Kind == KindTimeout || e.Kind == KindStreamEnd
	if !vital && !l.flooded {
		run, unasked := l.weigh(size), l.weighUnasked(&e, size)
		l.flooded = l.bytes > l.limits.Total || len(l.events) >= l.limits.Events ||
			l.limits.Run > 0 && (run > l.limits.Run || unasked > l.limits.Run/3)
	}
	if l.flooded && !vital {
		if l.trace.Lossy {
			l.stop("more than the limits allow to keep")
			return &e, nil
		}
		if !l.cut {
			l.cut = true
			l.add(&Event{Kind: KindNote, Note: cutNote + ": " + ErrFlood.Error()})
			l.wake()
		}
		return nil, ErrFlood
	}
	if l.flooded && e.Kind == KindStreamEnd && e.Note == "" {
		e.Note = unrecorded
	}
	l.cut = l.cut || e.Dropped > 0 && e.Kind != KindStderr || e.Kind == KindNote && strings.HasPrefix(e.Note, cutNote)
	l.add(&e)
	if e.Msg != nil {
		// A batch is a fault, but what it holds can still be understood.
		for _, m := range e.Msg.Batch {
			member := &Event{Kind: e.Kind, From: e.From, Stream: e.Stream, Raw: m.Raw, Msg: m, Member: true,
				Deliberate: e.Deliberate}
			l.weigh(member.size())
			l.add(member)
		}
	}
	l.wake()
	return &e, nil
}

// said holds the objects of a trace, decoded, by their spelling: much is said again, to many. It is safe for
// concurrent use.
type said struct {
	mu     sync.Mutex
	values map[string]any
}

// find returns what has this spelling, or nil.
func (s *said) find(text string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[text]
}

// share returns the known object that has this spelling. If there is none, it returns nil and makes this one known.
func (s *said) share(text string, object any) (known any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known = s.values[text]; known == nil {
		if s.values == nil {
			s.values = make(map[string]any)
		}
		s.values[text] = object
	}
	return known
}

// Parse reads a message that is to be appended, as [Parse] does. It shares equal objects with messages of the trace.
// Once the log is full, it shares nothing: a shared object holds the whole message.
func (l *Log) Parse(raw []byte) *Message {
	if l.full() {
		return parse(raw, nil)
	}
	return parse(raw, &l.trace.said)
}

func (l *Log) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flooded || l.stopped || l.limits.Run > 0 && l.trace.bytes.Load() > l.limits.Run
}

// heads holds the headers of a trace by their hash: HTTP says the same of many messages. It is safe for
// concurrent use.
type heads struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[uint64]http.Header
}

// shared returns the header of an earlier head that is equal, or the header itself if none is known.
func (s *heads) shared(h http.Header) (_ http.Header, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seed, s.seen = maphash.MakeSeed(), make(map[uint64]http.Header)
	}
	var sum uint64 // in any order
	for name, values := range h {
		field := maphash.String(s.seed, name)
		for _, v := range values {
			field = bits.RotateLeft64(field, 1) ^ maphash.String(s.seed, v)
		}
		sum += field
	}
	if known, ok := s.seen[sum]; ok && maps.EqualFunc(h, known, slices.Equal) {
		return known, true
	}
	s.seen[sum] = h
	return h, false
}

// LargeMessage is how many bytes of a message may be read at any time.
const LargeMessage = 1 << 20

// ReadLarge waits for the turn of a message beyond [LargeMessage] bytes. A few messages have their turn at the same
// time: all together could take several times what the trace keeps of them. A turn ends when done is called.
func (l *Log) ReadLarge(ctx context.Context) (done func(), err error) {
	select {
	case l.trace.large <- struct{}{}:
		return func() { <-l.trace.large }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// refuses reports whether no message is kept any more, and that is noted.
func (l *Log) refuses() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flooded && l.cut && !l.stopped && !l.trace.Lossy
}

// Stop ends the record before the connection ends: from now on only a note with
// the reason is kept.
func (l *Log) Stop(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop(why)
}

func (l *Log) stop(why string) {
	if !l.stopped {
		l.stopped, l.cut = true, true
		l.add(&Event{Kind: KindNote, Note: cutNote + ", the connection goes on: " + why})
		l.wake()
	}
}

// cutNote begins the note on where a record ends because of a limit.
const cutNote = "the record ends here"

// Cut reports whether the limits kept something that crossed out of the record,
// other than stderr. It holds for a trace that was written and read again as well.
func (l *Log) Cut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut
}

// Stopped reports whether the record ended before the connection.
func (l *Log) Stopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}

// weigh adds to what the connection holds, and returns what all of them do.
func (l *Log) weigh(n int64) int64 {
	l.bytes += n
	return l.trace.bytes.Add(n)
}

// weighUnasked counts an event if it answers no request of the connection, and returns the weight of all such events.
func (l *Log) weighUnasked(e *Event, size int64) int64 {
	switch {
	case e.Kind == KindMessage && e.Msg.Kind == Request:
		if l.due == nil {
			l.due = make(map[Party]int)
		}
		l.due[e.From.Peer()]++
	case e.Kind == KindMessage && e.Msg.IsResponse() && l.due[e.From] > 0:
		l.due[e.From]--
		return 0
	case e.Kind != KindMessage && e.Kind != KindSSE && e.Kind != KindStderr:
		return 0
	}
	return l.trace.unasked.Add(size)
}

// The least memory that things take in addition to the peer's bytes.
const (
	eventWeight      = 256  // an event
	messageWeight    = 256  // a message, without what it holds
	fieldWeight      = 96   // a field of a head, without its text
	exchangeWeight   = 256  // what the conversation holds of a request
	connectionWeight = 4096 // a connection, with what its transport holds of it
)

// size returns what the event weighs in memory.
func (e *Event) size() int64 {
	n := eventWeight + len(e.Raw)
	if e.Msg != nil {
		n += messageWeight + e.Msg.weight
		if e.Msg.Kind == Request {
			n += exchangeWeight
		}
	}
	if e.SSE != nil {
		n += len(e.SSE.Event) + len(e.SSE.ID) + len(e.SSE.Retry) + len(e.SSE.Comment)
	}
	if e.HTTP != nil {
		for name, values := range e.HTTP.Header {
			for _, v := range values {
				n += len(name) + len(v)
			}
		}
	}
	return int64(n)
}

func (l *Log) add(e *Event) {
	e.Conn, e.Seq, e.At = l.ID, len(l.events), time.Since(l.trace.Start)
	l.events = append(l.events, e)
}

// End marks the log complete: nothing will be appended to it any more.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.wake()
	}
}

func (l *Log) wake() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Len returns the number of events so far.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}

// Events returns the events so far.
func (l *Log) Events() []*Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[:len(l.events):len(l.events)]
}

// Await returns the first event at or after position from that match accepts.
// It waits for one until the context ends or the log does: then it returns the
// context's error or ErrEnded.
func (l *Log) Await(ctx context.Context, from int, match func(*Event) bool) (*Event, error) {
	for {
		events, ended, changed := l.since(from)
		for _, e := range events {
			if match(e) {
				return e, nil
			}
		}
		from += len(events)
		switch {
		case ended:
			return nil, ErrEnded
		case len(events) > 0 && ctx.Err() == nil:
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// since returns the events from a position on and whether the log has ended. If there is nothing new, it returns as
// well what is closed when there is.
func (l *Log) since(from int) (events []*Event, ended bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < len(l.events) {
		return l.events[from:len(l.events):len(l.events)], false, nil
	}
	if l.changed == nil && !l.ended {
		l.changed = make(chan struct{})
	}
	return nil, l.ended, l.changed
}
