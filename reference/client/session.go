// Package client is the reference client: it opens sessions on a connection,
// sends requests, notifications and raw bytes, answers the server's requests,
// and waits for answers. It works on the raw messages, never through types that
// would hide a fault.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Version is the protocol revision that the client asks for by default.
const Version = "2025-06-18"

// Options of a session. The zero value asks for Version, declares nothing and
// waits ten seconds for an answer.
type Options struct {
	Version      string
	Capabilities map[string]any
	Info         map[string]any
	// Timeout is how long an answer may take. It only bounds the wait and decides
	// nothing else.
	Timeout time.Duration
	// StartTimeout is how long the answer to initialize may take from a process that
	// has just been started, unless another took longer by Pace; zero is StartTimes
	// the Timeout.
	StartTimeout time.Duration
	// Pace learns from the session; nil for none. See Session.Hurry.
	Pace *Pace
	// NoOp is the method of a request without params that the server is known
	// to serve; "" stands for ping.
	NoOp string
	// ID chooses the id of the nth request, counted from 1; nil stands for n itself.
	ID func(n int64) wire.ID
	// Answers serve requests of the server by method. Those without an entry
	// get error -32601, except ping.
	Answers map[string]Answer
	// Answered is told the method of each request of the server that was
	// answered; it may be nil.
	Answered func(ctx context.Context, method string)
	// Beside returns the records of all connections that the peer may serve by turns, this one among
	// them; nil if there are no others.
	Beside func() []*wire.Log
	// Limited is called when the server refused a request because there were too
	// many (see [wire.TooMany]), with the time that it asks to wait, or when a gateway
	// could not reach it (see [wire.Unreached]). It waits, and reports whether to send
	// the request again. Nil: the refusal is the answer.
	Limited func(ctx context.Context, wait time.Duration) bool
	// Resuming gets the id of the last event of a stream that ended before the
	// answer, and returns the id to resume it from ("" names none) and whether to
	// resume it at all. Nil resumes it from the last event.
	Resuming func(last string) (from string, ok bool)
}

// Answer serves one request of the server: it returns a result, or an error
// object with code and message. If it returns neither, the request gets no answer.
type Answer func(ctx context.Context, params any) (result any, rpcErr *wire.Error)

// DefaultTimeout is how long an answer may take unless the options say otherwise.
const DefaultTimeout = 10 * time.Second

// Session is one client on one connection. It is safe for concurrent use.
type Session struct {
	Conn    transport.Conn
	Options Options
	// Init is the exchange of initialize; nil before it.
	Init *Exchange

	serving sync.Mutex
	answers []serving // what serves requests of the server, and from where in the log
	nextID  atomic.Int64
	hurry   atomic.Int64 // see Hurry
	open    atomic.Int64 // so many events of the log are known to be before its end
	usedIDs sync.Map     // by key: the ids of the requests that were sent
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// TimeoutError reports that no answer came in time.
type TimeoutError struct {
	Awaited string
	After   time.Duration
	// Slowest is how long the slowest answer of this kind took, if the limit was
	// learned from it rather than given by Options.Timeout.
	Slowest time.Duration
	// Doubtful says that the limit was learned and not tried twice as long yet.
	Doubtful bool
	// Start says that the limit is Options.StartTimeout.
	Start bool
}

// Learned reports whether the limit follows from what the peer took before.
func (e *TimeoutError) Learned() bool { return e.Slowest > 0 }

func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("no %s within %v", e.Awaited, e.After.Round(time.Millisecond))
	if e.Learned() {
		text += fmt.Sprintf(", although the slowest one before took %v", e.Slowest.Round(10*time.Microsecond))
	}
	return text
}

// ClosedError reports that the connection ended before an answer came.
type ClosedError struct {
	Awaited string
	// Cause is the event that ended the connection; it may be nil.
	Cause *wire.Event
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("no %s: %s", e.Awaited, DescribeEnd(e.Cause))
}

// Unwrap returns wire.ErrFlood if this side stopped reading.
func (e *ClosedError) Unwrap() error {
	if stopped(e.Cause) {
		return wire.ErrFlood
	}
	return nil
}

// stopped reports whether the event says that reading was stopped because the
// peer had sent more than the limits allow.
func stopped(e *wire.Event) bool {
	return e != nil && (e.Kind == wire.KindNote || e.Kind == wire.KindStreamEnd) &&
		strings.HasPrefix(e.Note, wire.Stopped)
}

// DescribeEnd says in a clause how a connection ended.
func DescribeEnd(e *wire.Event) string {
	switch {
	case e == nil:
		return "the connection ended"
	case e.Kind == wire.KindExit:
		return transport.Ended(e)
	case e.Kind == wire.KindClose && e.Note == "":
		return "the server closed its " + e.Stream
	case e.Note != "":
		return e.Note
	case unknown(e):
		return "the server answered 404, so it no longer knows the session"
	}
	return "the connection ended"
}

// unknown reports whether an event is an answer to a message of a session that the server does not know.
func unknown(e *wire.Event) bool {
	return e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusNotFound
}

// Lost reports whether the latest answer of the server is that it does not know the session. It may end a session at
// any time (basic/transports#session-management).
func (s *Session) Lost() bool {
	conn, ok := s.Conn.(interface{ Lost() bool })
	return ok && conn.Lost()
}

// New starts a session on a connection: from now on requests of the server are
// answered. Nothing is sent yet.
func New(conn transport.Conn, o Options) *Session {
	if o.Version == "" {
		o.Version = Version
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Info == nil {
		o.Info = map[string]any{"name": "mcpconform", "title": "mcpconform reference client", "version": "1.0.0"}
	}
	if o.Capabilities == nil {
		o.Capabilities = map[string]any{}
	}
	s := &Session{Conn: conn, Options: o}
	s.answers = []serving{{0, o.Answers}}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.stopped.Go(func() { s.serve(ctx) })
	return s
}

// serving is what serves requests of the server from an event of the log on.
type serving struct {
	from    int
	answers map[string]Answer
}

// Answer changes what serves the requests of the server that come from now on, from
// Options.Answers to others.
func (s *Session) Answer(answers map[string]Answer) {
	s.serving.Lock()
	defer s.serving.Unlock()
	s.answers = append(s.answers, serving{s.Log().Len(), answers})
}

// serves returns what serves a request of the server.
func (s *Session) serves(request *wire.Event) (Answer, bool) {
	s.serving.Lock()
	defer s.serving.Unlock()
	for _, in := range slices.Backward(s.answers) {
		if in.from <= request.Seq {
			serve, ok := in.answers[request.Msg.Method]
			return serve, ok
		}
	}
	return nil, false
}

// Close ends the session and its connection.
func (s *Session) Close(ctx context.Context) error {
	err := s.Conn.Close(ctx)
	s.stop()
	s.stopped.Wait()
	return err
}

// Log of the session's connection.
func (s *Session) Log() *wire.Log { return s.Conn.Log() }

// serve answers requests of the server, each in its own goroutine, until the
// connection or the session ends.
func (s *Session) serve(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	slots := make(chan struct{}, 64) // bounds the goroutines that a flood of requests starts
	for from := 0; ; {
		e, err := s.Log().Await(ctx, from, func(e *wire.Event) bool {
			// The members of a batch are not served (changelog#major-changes).
			return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Request &&
				e.Msg.ID.Usable() && !e.Member
		})
		if err != nil {
			return
		}
		from = e.Seq + 1
		if s.Log().RequestOf(e) != e {
			continue // a resumed stream brings it once more, and it has its answer
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		open.Go(func() {
			defer func() { <-slots }()
			s.answer(ctx, e)
		})
	}
}

func (s *Session) answer(ctx context.Context, e *wire.Event) {
	request := e.Msg
	var result any
	var rpcErr *wire.Error
	if request.Has(wire.JSONRPCMissing, wire.JSONRPCWrong, wire.ParamsType) {
		rpcErr = &wire.Error{Code: -32600, Message: "Invalid request: " + request.Issues[0].Detail}
	} else if serve, ok := s.serves(e); ok {
		result, rpcErr = serve(ctx, request.Params)
	} else if request.Method == "ping" {
		result = map[string]any{}
	} else {
		rpcErr = &wire.Error{Code: -32601, Message: "Method not found: " + request.Method}
	}
	reply := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(request.ID.String())}
	switch {
	case rpcErr != nil:
		body := map[string]any{"code": rpcErr.Code, "message": rpcErr.Message}
		if rpcErr.Data != nil {
			body["data"] = rpcErr.Data
		}
		reply["error"] = body
	case result != nil:
		reply["result"] = result
	default:
		return
	}
	// A connection that is gone needs no answer.
	_ = s.deliver(ctx, func() (*wire.Event, error) { return s.Conn.Send(ctx, transport.Outgoing{Raw: Marshal(reply)}) })
	if s.Options.Answered != nil {
		s.Options.Answered(ctx, request.Method)
	}
}

// Marshal returns v as compact JSON without needless escapes. It panics if v cannot
// be marshalled, which is a mistake of the caller.
func Marshal(v any) []byte {
	text, err := wire.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return wire.RawSeparators(text)
}

// NextID returns an id that the session has not used.
func (s *Session) NextID() wire.ID {
	for {
		n := s.nextID.Add(1)
		id := wire.IntID(n)
		if s.Options.ID != nil {
			id = s.Options.ID(n)
		}
		if _, used := s.usedIDs.Load(id.Key()); !used {
			return id
		}
	}
}

// Exchange is a request and its answer, as far as that has come.
type Exchange = wire.Exchange

// Pending is a request whose answer is awaited.
type Pending struct {
	ID      wire.ID
	Method  string
	Request *wire.Event

	session *Session
	sent    time.Time
}

// Option changes how one message is sent.
type Option func(*transport.Outgoing)

// Deliberately declares that the message breaks requirements on purpose.
func Deliberately(ids ...string) Option {
	return func(m *transport.Outgoing) { m.Deliberate = append(m.Deliberate, ids...) }
}

// Start sends a request and does not wait. Params may be nil.
func (s *Session) Start(ctx context.Context, method string, params any, opts ...Option) (*Pending, error) {
	return s.StartID(ctx, s.NextID(), method, params, opts...)
}

// StartID is Start with an id of the caller's choice.
func (s *Session) StartID(ctx context.Context, id wire.ID, method string, params any,
	opts ...Option) (*Pending, error) {
	body := call(method, params)
	body.ID = json.RawMessage(id.String())
	return s.StartRaw(ctx, id, method, Marshal(body), opts...)
}

// StartRaw sends bytes that hold, or stand for, a request with the given id.
func (s *Session) StartRaw(ctx context.Context, id wire.ID, method string, raw []byte,
	opts ...Option) (*Pending, error) {
	s.usedIDs.Store(id.Key(), true)
	sent, err := s.Send(ctx, raw, opts...)
	var closed *ClosedError
	if errors.As(err, &closed) {
		closed.Awaited = "answer to " +
			method // whether the connection ended just before or after it was sent is chance
	}
	if err != nil {
		return nil, err
	}
	return &Pending{ID: id, Method: method, Request: sent, session: s, sent: time.Now()}, nil
}

// Send sends bytes as one message, whatever they hold.
func (s *Session) Send(ctx context.Context, raw []byte, opts ...Option) (*wire.Event, error) {
	m := transport.Outgoing{Raw: raw}
	for _, o := range opts {
		o(&m)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Options.Timeout)
	defer cancel()
	sent, err := s.Conn.Send(ctx, m)
	if errors.Is(err, transport.ErrClosed) {
		if cause := s.cause(ctx, nil); cause != nil || sent == nil {
			err = &ClosedError{Awaited: "way to send a message", Cause: cause}
		}
	}
	return sent, err
}

// Await waits for the answer: a response with the request's id or, over HTTP,
// the end of the request's own stream. It always returns the exchange; without an
// answer, the error is a *TimeoutError or a *ClosedError.
func (p *Pending) Await(ctx context.Context) (*Exchange, error) {
	awaited := "answer to " + p.Method
	end, err := p.session.await(ctx, p.limit, p.Request.Seq+1, awaited, func(e *wire.Event) bool {
		return p.Answers(e) || e.Kind == wire.KindStreamEnd && e.Stream == p.Request.Stream
	})
	x := p.exchange()
	if err == nil && end.Kind == wire.KindMessage {
		x.Response = end
		if pace := p.session.Options.Pace; pace != nil && p.plain() {
			pace.saw(p.Method, end.At-p.Request.At)
		} else if pace != nil && p.starts() {
			pace.started(end.At - p.session.Log().Events()[0].At)
		}
	}
	if err == nil && x.Response == nil && x.Head == nil && end.At-p.Request.At >= p.session.Options.Timeout {
		// The transport stops waiting for a head at the same time as we do.
		err = p.session.timeout(&TimeoutError{Awaited: awaited, After: p.session.Options.Timeout})
	}
	var late *TimeoutError
	if errors.As(err, &late) {
		late.Start = p.starts()
		p.giveUp(ctx)
	}
	if err != nil {
		return x, err
	}
	if x.Response == nil && (x.Head == nil || x.Head.HTTP.Status < 300) {
		if x.Response = p.resume(ctx, end); x.Response == nil {
			x.Response = p.elsewhere(ctx) // it must not come there, which the rules judge
		}
		if x.Response == nil {
			return x, &ClosedError{Awaited: awaited, Cause: end}
		}
	}
	if x.Response == nil && p.session.Log().Transport == transport.NameSSE && p.fence(ctx) {
		// The response is due on the event stream, whatever the status of the POST
		// (2024-11-05/basic/transports#http-with-sse).
		x = p.exchange()
	}
	return x, nil
}

// elsewhere returns the response that comes on the listening stream, or nil. It is awaited for as long as any other
// once the server has sent a response there.
func (p *Pending) elsewhere(ctx context.Context) *wire.Event {
	log := p.session.Log()
	if p.Method == p.session.NoOp() {
		return Elsewhere(ctx, log, p.Request)
	}
	if !listens(log) || !p.fence(ctx) {
		return nil
	}
	response := p.exchange().Response
	if response == nil && slices.ContainsFunc(log.Conversation().HTTP, func(x *wire.HTTPExchange) bool {
		return x.Method() == http.MethodGet && !x.Resumes() &&
			slices.ContainsFunc(x.Messages, func(e *wire.Event) bool { return e.Msg.IsResponse() })
	}) {
		response, _ = p.session.await(ctx, p.limit, p.Request.Seq+1, "answer to "+p.Method, p.Answers)
	}
	return response
}

// Elsewhere returns the response to a request that comes on the listening stream a moment after the own stream of the
// request has ended, or nil.
func Elsewhere(ctx context.Context, log *wire.Log, request *wire.Event) *wire.Event {
	if !listens(log) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, endGrace)
	defer cancel()
	e, _ := log.Await(ctx, request.Seq+1, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && log.RequestOf(e) == request
	})
	return e
}

// fence gives the response the time to come on another stream than that of the request.
func (p *Pending) fence(ctx context.Context) bool {
	return p.Method != "initialize" && p.Method != p.session.NoOp() && p.session.Fence(ctx) == nil
}

// HasListeningStream reports whether a listening stream is open: a GET opened it, and it carries the messages of the
// server that belong to no request.
func (s *Session) HasListeningStream() bool { return listens(s.Log()) }

func listens(log *wire.Log) bool {
	return slices.ContainsFunc(log.Conversation().HTTP, func(x *wire.HTTPExchange) bool {
		return x.Method() == http.MethodGet && x.Status() == http.StatusOK && x.MediaType() == "text/event-stream" &&
			x.End == nil
	})
}

// StartTimes is the factor by which the answer to initialize may take longer than
// others from a process that has not answered anything yet: it may still be loading,
// on a machine that starts several processes at once.
const StartTimes = 3

// limit is how long the answer may take.
func (p *Pending) limit() (limit, slowest time.Duration) {
	limit = p.session.Options.Timeout
	if !p.starts() {
		limit, slowest = p.session.hurried(limit, p)
		if time.Since(p.sent) < limit {
			return limit, slowest // which is asked for again once it has passed
		}
		return limit + p.behind(), slowest
	}
	limit = cmp.Or(p.session.Options.StartTimeout, StartTimes*limit)
	if p.session.Options.Pace != nil {
		limit = max(limit, StartTimes*p.session.Options.Pace.Start())
	}
	return limit, 0
}

// behind returns how long the peer has gone on to answer what it was asked before the request: it may
// serve one request after the other, and how many wait is not its choice.
func (p *Pending) behind() (busy time.Duration) {
	logs := []*wire.Log{p.session.Log()}
	if p.session.Options.Beside != nil {
		logs = p.session.Options.Beside()
	}
	for _, log := range logs {
		if last := log.LastAnswer(p.Request.At); last != nil {
			busy = max(busy, last.At-p.Request.At)
		}
	}
	return busy
}

// starts reports whether the request is an initialize to a process that has not answered
// anything yet, whatever it has written.
func (p *Pending) starts() bool {
	return p.Method == "initialize" && launched(p.session.Log()) &&
		!slices.ContainsFunc(p.session.Log().Events()[:p.Request.Seq], func(e *wire.Event) bool {
			return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse()
		})
}

// plain reports whether the request has no params.
func (p *Pending) plain() bool { return p.Request.Msg != nil && p.Request.Msg.Params == nil }

// Hurry makes the session wait for answers to requests without params only as long as Options.Pace says, times a
// factor; 0 ends that. It is for what gives a peer no work to do: only then do earlier answers say how long one may
// take. With a factor of 1 a missing answer may only be late, and the log does not call it a timeout.
func (s *Session) Hurry(times int) { s.hurry.Store(int64(times)) }

// hurried returns how long an answer may take, and the slowest one if the limit was
// learned from it.
func (s *Session) hurried(limit time.Duration, p *Pending) (learned, slowest time.Duration) {
	times := time.Duration(s.hurry.Load())
	if times == 0 || s.Options.Pace == nil || !p.plain() {
		return limit, 0
	}
	learned, slowest, known := s.Options.Pace.limit(p.Method)
	if learned *= times; !known || learned >= limit {
		return limit, 0
	}
	return learned, slowest
}

// giveUp cancels a request that was not answered in time
// (basic/lifecycle#timeouts); initialize is never cancelled.
func (p *Pending) giveUp(ctx context.Context) {
	if p.Method == "initialize" || !p.ID.Usable() {
		return
	}
	// The peer does not answer anyway, so an error changes nothing.
	_ = p.session.Notify(ctx, "notifications/cancelled", map[string]any{
		"requestId": json.RawMessage(p.ID.String()), "reason": "no answer in time",
	}, func(m *transport.Outgoing) { m.Unawaited = true })
}

// exchange returns what the log has of the request by now. The log may not take the
// bytes that were sent for a request.
func (p *Pending) exchange() *Exchange {
	log := p.session.Log()
	if x := log.Exchange(p.Request); x != nil && x.Request == p.Request {
		return x
	}
	x := &Exchange{Request: p.Request}
	if carrier := log.Carrier(p.Request); carrier != nil {
		x.Head, x.Body = carrier.Head, carrier.Body()
	}
	return x
}

// Answers reports whether an event of the session is a response to the request: it
// has its id, or no other request fits.
func (p *Pending) Answers(e *wire.Event) bool {
	if e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse() {
		return false
	}
	if e.Stream == p.Request.Stream && !e.Msg.ID.Usable() {
		return true
	}
	switch request := p.session.Log().RequestOf(e); {
	case request == p.Request:
		return true
	case request == nil, request.Msg.ID.Key() == p.ID.Key():
		// The log may not take the bytes that were sent for a request; and if two
		// requests have the same id, the response may belong to either.
		return e.Msg.ID.Resembles(p.ID)
	}
	return false
}

// await waits for an event. If none comes, the error says why. The log records a
// timeout, so that a judge can tell a missing answer from an unfinished wait. The limit
// may grow while it passes.
func (s *Session) await(ctx context.Context, limit func() (limit, slowest time.Duration), from int, awaited string,
	match func(*wire.Event) bool) (*wire.Event, error) {
	most, slowest := limit()
	if err := s.over(ctx, most, from, awaited); err != nil {
		return nil, err
	}
	var end, gone *wire.Event // of the connection, and of a session that the server no longer knows
	machine := contention{conn: s.Conn}
	for began := time.Now(); ; {
		due := began.Add(most + machine.granted)
		waiting, cancel := context.WithDeadline(ctx, due)
		e, err := s.Log().Await(waiting, from, func(e *wire.Event) bool {
			switch {
			case ends(e):
				end = e
			case match(e):
			case gone == nil && unknown(e) && s.Lost():
				gone = e
			default:
				return false
			}
			return true
		})
		passed := err != nil && end == nil && waiting.Err() != nil && ctx.Err() == nil
		switch {
		case err == nil && e == gone:
			// Nothing further is sent in a session that has ended, but other streams may still bring what is under way.
			most, slowest, began = endGrace, 0, time.Now()
			cancel()
			continue
		case passed && gone != nil && s.Lost():
			cancel()
			return nil, &ClosedError{Awaited: awaited, Cause: gone}
		case passed:
			if slowest > 0 {
				s.Options.Pace.overslept(time.Since(due))
			}
			most, slowest = limit()
			if began.Add(most+machine.granted).After(time.Now()) || machine.grants(ctx, most) {
				cancel()
				continue
			}
		}
		defer cancel()
		switch {
		case err == nil && e != end:
			return e, nil
		case err == nil, errors.Is(err, wire.ErrEnded):
			return nil, &ClosedError{Awaited: awaited, Cause: s.cause(waiting, end)}
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, s.timeout(&TimeoutError{Awaited: awaited, After: most + machine.granted, Slowest: slowest,
			Doubtful: slowest > 0 && s.hurry.Load() == 1})
	}
}

// ends reports whether an event ends the connection.
func ends(e *wire.Event) bool {
	return e.Kind == wire.KindExit || e.Kind == wire.KindClose && e.From == wire.Server ||
		e.Kind == wire.KindNote && stopped(e)
}

// over returns a *ClosedError if the connection ended before a position of the log. No further event comes then,
// although the process may still run.
func (s *Session) over(ctx context.Context, most time.Duration, from int, awaited string) error {
	before := s.Log().Events()
	before = before[:min(from, len(before))]
	open := min(int(s.open.Load()), len(before)) // which an earlier wait has seen
	i := slices.IndexFunc(before[open:], ends)
	if i < 0 {
		s.open.Store(int64(max(open, len(before))))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return &ClosedError{Awaited: awaited, Cause: s.cause(ctx, before[open+i])}
}

func (s *Session) timeout(late *TimeoutError) error {
	e := wire.Event{Kind: wire.KindTimeout, From: wire.Server, Note: late.Awaited}
	if late.Doubtful {
		e = wire.Event{Kind: wire.KindNote, Note: late.Error() + "; whether it never comes is tried again"}
	}
	_, _ = s.Log().Append(e)
	return late
}

// always is a limit that does not change.
func (s *Session) always() (limit, slowest time.Duration) { return s.Options.Timeout, 0 }

// endGrace is how long after the beginning of an end the rest of it may take. A server that has closed its output may
// exit, and what is under way in a session that the server has ended may arrive.
const endGrace = 250 * time.Millisecond

// launched reports whether a process was started for the connection.
func launched(log *wire.Log) bool {
	events := log.Events()
	return len(events) > 0 && events[0].Kind == wire.KindStart
}

// cause returns the event that best explains the end of the connection.
func (s *Session) cause(ctx context.Context, end *wire.Event) *wire.Event {
	if launched(s.Log()) && (end == nil || end.Kind == wire.KindClose) {
		// A process that dies closes its pipes first.
		ctx, cancel := context.WithTimeout(ctx, endGrace)
		defer cancel()
		_, _ = s.Log().Await(ctx, 0, func(e *wire.Event) bool { return e.Kind == wire.KindExit })
	}
	for _, e := range s.Log().Events() {
		if e.Kind == wire.KindNote && stopped(e) {
			return e
		}
		if e.Kind == wire.KindExit {
			end = e
		}
	}
	return end
}

// AwaitEvent waits for an event after a position in the log.
func (s *Session) AwaitEvent(ctx context.Context, from int, awaited string, match func(*wire.Event) bool) (*wire.Event,
	error) {
	return s.await(ctx, s.always, from, awaited, match)
}

// AwaitNotification waits for a notification after a position in the log.
func (s *Session) AwaitNotification(ctx context.Context, from int, method string) (*wire.Event, error) {
	return s.await(ctx, s.always, from, method, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Method == method
	})
}

// Call sends a request and waits for its answer. If it is refused for a reason of the
// moment, Call sends it again, under another id, as Options.Limited says.
func (s *Session) Call(ctx context.Context, method string, params any, opts ...Option) (*Exchange, error) {
	for tries := 1; ; tries++ {
		p, err := s.Start(ctx, method, params, opts...)
		if err != nil {
			return &Exchange{}, err
		}
		x, err := p.Await(ctx)
		if err != nil || x.Result() != nil || !s.Options.Passes(ctx, x.Head, x.Response != nil, tries) {
			return x, err
		}
	}
}

const (
	// maxTries bounds how often a message is sent that is refused because of a limit,
	// maxUnreached how often one that a gateway could not deliver.
	maxTries, maxUnreached = 5, 3
	// gatewayWait is how long a gateway may take, at first, to reach the server again.
	gatewayWait = 100 * time.Millisecond
)

// Passes reports whether to send a message again after it was refused for a transient reason. It waits until that
// reason may have passed, and takes the number of times that the message was sent so far. An answered message did
// reach the server.
func (o Options) Passes(ctx context.Context, head *wire.Event, answered bool, tries int) bool {
	switch {
	case o.Limited == nil:
		return false
	case wire.TooMany(head):
		return tries < maxTries && o.Limited(ctx, RetryAfter(head))
	case wire.Unreached(head) && !answered:
		return tries < maxUnreached && o.Limited(ctx, gatewayWait<<(2*(tries-1)))
	}
	return false
}

// RetryAfter returns the time that the head of a response asks to wait: one second if
// it does not say, or says a date.
func RetryAfter(head *wire.Event) time.Duration {
	seconds, err := strconv.ParseUint(head.HTTP.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return time.Second
	}
	return time.Duration(seconds) * time.Second
}

// Notify sends a notification. Params may be nil. If it is refused for a reason of the
// moment, Notify sends it again, as Options.Limited says.
func (s *Session) Notify(ctx context.Context, method string, params any, opts ...Option) error {
	return s.deliver(ctx, func() (*wire.Event, error) { return s.Send(ctx, Marshal(call(method, params)), opts...) })
}

// deliver sends a message that the session needs to go on. If it is refused for a reason
// of the moment, deliver sends it again.
func (s *Session) deliver(ctx context.Context, send func() (*wire.Event, error)) error {
	for tries := 1; ; tries++ {
		sent, err := send()
		if err != nil || sent == nil {
			return err
		}
		if carrier := s.Log().Carrier(sent); carrier == nil || !s.Options.Passes(ctx, carrier.Head, false, tries) {
			return nil
		}
	}
}

// envelope is a request, or without an id a notification.
type envelope struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Version string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}

// call returns a request without its id, or a notification. It leaves out params
// that are nil, also a nil map: null is not a valid value.
func call(method string, params any) envelope {
	body := envelope{Version: "2.0", Method: method}
	if object, ok := params.(map[string]any); !ok || object != nil {
		body.Params = params
	}
	return body
}

// NoOp returns the method of a request that does nothing, takes no params and is served.
func (s *Session) NoOp() string { return cmp.Or(s.Options.NoOp, "ping") }

// Fence sends a no-op request and waits for its answer: the server's immediate
// reactions to earlier messages have then arrived.
func (s *Session) Fence(ctx context.Context) error {
	_, err := s.Call(ctx, s.NoOp(), nil)
	return err
}

// InitializeParams returns the parameters of the session's initialize request.
func (s *Session) InitializeParams() map[string]any {
	return map[string]any{
		"protocolVersion": s.Options.Version,
		"capabilities":    s.Options.Capabilities,
		"clientInfo":      s.Options.Info,
	}
}

// Initialize performs the handshake: initialize and, when it succeeded, the
// initialized notification.
func (s *Session) Initialize(ctx context.Context) (*Exchange, error) {
	var opts []Option
	if s.Options.Version != Version {
		opts = append(opts,
			Deliberately(ids.LifecycleVersionClientLatest)) // whatever it asks for, it supports this one
	}
	x, err := s.Call(ctx, "initialize", s.InitializeParams(), opts...)
	s.Init = x
	if err != nil {
		return x, err
	}
	if x.Result() == nil {
		return x, &RefusedError{Exchange: x}
	}
	err = s.Notify(ctx, "notifications/initialized", nil)
	var closed *ClosedError
	if errors.As(err, &closed) {
		// The handshake succeeded. The next request finds out that the server has
		// gone since.
		return x, nil
	}
	return x, err
}

// RefusedError reports an initialize that was answered, but not with a result.
type RefusedError struct{ Exchange *Exchange }

func (e *RefusedError) Error() string {
	switch x := e.Exchange; {
	case x.Error() != nil:
		return fmt.Sprintf("initialize was answered with error %d: %s", x.Error().Code,
			wire.Quote(x.Error().Message, 120))
	case x.Response == nil && x.Head != nil && x.Head.HTTP.Header.Get("Location") != "":
		return fmt.Sprintf("initialize was answered with HTTP status %d, which leads to %s: redirects are not "+
			"followed, name the endpoint itself",
			x.Head.HTTP.Status, wire.Quote(x.Head.HTTP.Header.Get("Location"), 120))
	case x.Response == nil && x.Head != nil && x.Body != nil:
		return fmt.Sprintf("initialize was answered with HTTP status %d: %s", x.Head.HTTP.Status,
			wire.Quote(strings.TrimSpace(string(x.Body.Raw)), 120))
	case x.Response == nil && x.Head != nil:
		return fmt.Sprintf("initialize was answered with HTTP status %d", x.Head.HTTP.Status)
	}
	return "initialize was answered with something that is not a result"
}

// Supported returns the versions that the server says it supports, in the data of the
// error as basic/lifecycle#error-handling shows or else in its message. It returns nil
// if it says none, or names the one that it was asked for.
func (e *RefusedError) Supported() []string {
	refusal := e.Exchange.Error()
	if refusal == nil {
		return nil
	}
	var named []string
	if _, listed := wire.At(refusal.Data, "supported").([]any); listed {
		named = wire.Strings(refusal.Data, "supported")
	} else if i := strings.LastIndex(strings.ToLower(refusal.Message), "support"); i >= 0 {
		named = versionName.FindAllString(refusal.Message[i:], -1)
	}
	if asked, _ := wire.At(e.Exchange.Request.Msg.Params, "protocolVersion").(string); slices.Contains(named, asked) {
		return nil
	}
	return named
}

var versionName = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b`)

// TurnedAway reports whether the status speaks of who asks, by which name or through what, or of the server's load, and
// not of the message (RFC 9110, sections 15.5 and 15.6, RFC 6585, section 4, and RFC 7725, section 3).
func (e *RefusedError) TurnedAway() bool {
	head := e.Exchange.Head
	if head == nil {
		return false
	}
	switch head.HTTP.Status {
	case http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusMisdirectedRequest,
		http.StatusUnavailableForLegalReasons:
		return true
	}
	return wire.Momentary(head)
}

// Capability reports whether the server declared a capability, as [wire.Declares] does.
func (s *Session) Capability(capability string) bool {
	return s.Init != nil && wire.Declares(s.Init.Capabilities(), capability)
}
