package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// link carries the messages of a session to its client.
type link interface {
	// deliver sends one message on the stream that out.To chooses. It may wait
	// for a slow client, but not longer than the session lives.
	deliver(out *Outgoing)
}

// phase of a session (basic/lifecycle).
type phase int

const (
	fresh       phase = iota // initialize is awaited
	negotiated               // initialize was answered
	operational              // the client has sent initialized
)

// Session is one client. It is safe for concurrent use.
type Session struct {
	Server    *Server
	Transport string
	// ID of the session over HTTP; empty on stdio.
	ID string

	link   link
	user   string // who has begun the session, if that is known
	log    *wire.Log
	secret []byte // signs cursors
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu            sync.Mutex
	closed        bool
	phase         phase
	version       string
	client        map[string]any // capabilities of the client
	running       map[string]*Request
	pending       map[string]chan *wire.Message
	nextID        int64
	taken         map[string]bool // ids of requests that were sent by hand
	tokens        int64           // given out
	level         int
	subscriptions map[string]bool
	rootsFetched  bool
	rootsStale    bool
	rootsBusy     bool
	tools         []*Tool
	resources     []*Resource
	templates     []*Template
	prompts       []*Prompt
	values        map[any]any
}

var (
	errCancelled = errors.New("the client cancelled the request")
	errEnded     = errors.New("the session has ended")
)

func (s *Server) newSession(transport string, log *wire.Log, l link) *Session {
	session := &Session{
		Server: s, Transport: transport, link: l, log: log, secret: []byte(rand.Text()),
		running: make(map[string]*Request), pending: make(map[string]chan *wire.Message),
		subscriptions: make(map[string]bool), values: make(map[any]any), level: defaultLevel,
		tools: slices.Clone(s.options.Catalogue.Tools), resources: slices.Clone(s.options.Catalogue.Resources),
		templates: slices.Clone(s.options.Catalogue.Templates), prompts: slices.Clone(s.options.Catalogue.Prompts),
	}
	session.ctx, session.cancel = context.WithCancelCause(context.Background())
	s.add(session)
	return session
}

// begin runs the hook of a new session.
func (s *Session) begin() {
	if hook := s.Server.behaviour.Connected; hook != nil {
		s.spawn(func() { hook(s.ctx, s) })
	}
}

// end ends the session and waits for all that runs in it.
func (s *Session) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errEnded)
	s.work.Wait()
	s.Server.remove(s)
}

// spawn runs f in a goroutine that end waits for. It reports false when the
// session has ended.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

// Log of the session's connection; nil when nothing is recorded.
func (s *Session) Log() *wire.Log { return s.log }

// Context ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Initialized reports whether the client has sent notifications/initialized.
func (s *Session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == operational
}

// Version returns the negotiated version; empty before initialize.
func (s *Session) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// ClientHas reports whether the client declared a capability that the negotiated version knows.
func (s *Session) ClientHas(capability string) bool {
	s.mu.Lock()
	client, version := s.client, s.version
	s.mu.Unlock()
	if capability == "elicitation" && version < elicitationSince {
		return false
	}
	return wire.Declares(client, capability)
}

// elicitationSince is the version that introduced elicitation.
const elicitationSince = "2025-06-18"

// Running returns the requests of the client that are in progress.
func (s *Session) Running() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.running))
}

// Value returns what is stored in the session under a key, made by init when
// there is nothing yet. Hooks keep their memory here.
func (s *Session) Value(key any, init func() any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	if !ok {
		v = init()
		s.values[key] = v
	}
	return v
}

// receive handles one message that was not refused. A request is handled in
// goroutine of its own. st is the stream of the POST that brought the message;
// nil on the other transports.
func (s *Session) receive(m *wire.Message, st *stream) {
	next := func() { s.dispatch(m, st) }
	if hook := s.Server.behaviour.Receive; hook != nil {
		hook(s, m, next)
	} else {
		next()
	}
}

func (s *Session) dispatch(m *wire.Message, st *stream) {
	switch m.Kind {
	case wire.Request:
		s.request(m, st)
	case wire.Notification:
		s.notified(m)
	case wire.Result, wire.ErrorResponse:
		s.answered(m)
	case wire.Batch:
		for _, member := range m.Batch {
			if s.Server.behaviour.refuse(member) == nil {
				s.receive(member, st)
			}
		}
	}
}

// patience is how long the next message waits for a request that is not detached:
// long enough for a handler that does not wait, so that simple requests are answered
// in order.
const patience = 100 * time.Millisecond

func (s *Session) request(m *wire.Message, st *stream) {
	r := s.newRequest(m, st)
	if rpcErr := s.register(r); rpcErr != nil {
		r.cancel(nil)
		s.emit(response(r, nil, rpcErr))
		return
	}
	st.hold()
	if !s.spawn(func() { defer st.release(); s.run(r) }) {
		st.release()
		return
	}
	if st != nil {
		return // each POST has a goroutine of its own
	}
	select {
	case <-r.released:
	case <-time.After(patience):
	case <-s.ctx.Done():
	}
}

func (s *Session) register(r *Request) *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.ID.Key()
	if _, taken := s.running[key]; taken {
		return &wire.Error{Code: InvalidRequest,
			Message: "Invalid request: a request with this id is still in progress"}
	}
	if len(s.running) >= maxRunning {
		return &wire.Error{Code: InternalError, Message: "Too many requests are in progress"}
	}
	s.running[key] = r
	return nil
}

// run serves a request and answers it.
func (s *Session) run(r *Request) {
	result, rpcErr := s.serve(r.ctx, r)
	s.mu.Lock()
	cancelled := r.cancelled
	r.finished = true
	delete(s.running, r.ID.Key())
	s.mu.Unlock()
	// No response follows a cancellation that was read (basic/utilities/cancellation#behavior-requirements).
	if result != NoAnswer && (!cancelled || s.Server.behaviour.AnswerCancelled) && s.ctx.Err() == nil {
		s.emit(response(r, result, rpcErr))
	}
	r.Detach()
	r.cancel(nil)
}

// serve finds the handler of a request and wraps it as the behaviour says.
func (s *Session) serve(ctx context.Context, r *Request) (any, *wire.Error) {
	handle := Handler(route)
	for _, name := range []string{r.Method, "*"} {
		if wrap := s.Server.behaviour.Methods[name]; wrap != nil {
			inner := handle
			handle = func(ctx context.Context, r *Request) (any, *wire.Error) { return wrap(ctx, r, inner) }
		}
	}
	return handle(ctx, r)
}

// methods that the server knows.
var methods map[string]Handler

func init() {
	methods = map[string]Handler{
		"initialize":               initialize,
		"ping":                     ping,
		"tools/list":               listTools,
		"tools/call":               callTool,
		"resources/list":           listResources,
		"resources/templates/list": listTemplates,
		"resources/read":           readResource,
		"resources/subscribe":      subscribe,
		"resources/unsubscribe":    unsubscribe,
		"prompts/list":             listPrompts,
		"prompts/get":              getPrompt,
		"completion/complete":      complete,
		"logging/setLevel":         setLevel,
	}
}

func route(ctx context.Context, r *Request) (any, *wire.Error) {
	if rpcErr := r.Session.admit(r.Method); rpcErr != nil {
		return nil, rpcErr
	}
	handle, ok := methods[r.Method]
	if capability := wire.Capability(r.Method); !ok || capability != "" && !r.Session.Server.offers(capability) {
		return nil, &wire.Error{Code: MethodNotFound, Message: "Method not found: " + oneLine(r.Method)}
	}
	if rpcErr := r.checkMeta(); rpcErr != nil {
		return nil, rpcErr
	}
	return handle(ctx, r)
}

// admit checks the method against the state of the session.
func (s *Session) admit(method string) *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lifecycle := s.Server.behaviour.Lifecycle
	switch {
	case method == "initialize" && s.phase != fresh && !lifecycle.Again:
		return &wire.Error{Code: InvalidRequest, Message: "Invalid request: the session is initialized already"}
	case method != "initialize" && method != "ping" && s.phase == fresh && !lifecycle.Early:
		return &wire.Error{Code: InvalidRequest, Message: "Invalid request: the session is not initialized"}
	}
	return nil
}

// emit sends a message through the behaviour's hook.
func (s *Session) emit(out *Outgoing) {
	hook := s.Server.behaviour.Send
	if hook == nil {
		s.Send(out)
		return
	}
	for _, o := range hook(out) {
		s.Send(o)
	}
}

// Send sends a message as it is, past the hook [Behaviour.Send].
func (s *Session) Send(out *Outgoing) {
	if out.Session == nil {
		out.Session = s
	}
	if out.Delay <= 0 && out.Until == nil {
		s.link.deliver(out)
		return
	}
	st := out.To.streamOrNil()
	st.hold()
	if !s.spawn(func() {
		defer st.release()
		if out.wait(s.ctx) {
			s.link.deliver(out)
		}
	}) {
		st.release()
	}
}

// wait waits for the Delay and Until of a message. It reports false if the session
// ends first.
func (o *Outgoing) wait(ctx context.Context) bool {
	if o.Until != nil {
		select {
		case <-o.Until:
		case <-ctx.Done():
			return false
		}
	}
	return o.Delay <= 0 || sleep(ctx, o.Delay) == nil
}

// Notification returns a notification that is not related to a request, for
// hooks that send it themselves. Params may be nil.
func (s *Session) Notification(method string, params map[string]any) *Outgoing {
	return notification(s, nil, method, params)
}

// Notify sends a notification that is not related to a request. Params may be nil.
func (s *Session) Notify(method string, params map[string]any) {
	s.emit(s.Notification(method, params))
}

// CallError is an error with which the client answered a request.
type CallError struct {
	Method   string
	RPCError wire.Error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("the client answered %s with error %d: %s", e.Method, e.RPCError.Code,
		oneLine(e.RPCError.Message))
}

// Call sends the client a request that is not related to one of its own requests,
// and waits for the result. Params may be nil. An error of the client is a
// *CallError. When the wait ends first, the request is cancelled.
func (s *Session) Call(ctx context.Context, method string, params map[string]any) (any, error) {
	return s.call(ctx, nil, method, params)
}

func (s *Session) call(ctx context.Context, to *Request, method string, params map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Server.options.CallTimeout)
	defer cancel()
	s.mu.Lock()
	if len(s.pending) >= maxRunning {
		s.mu.Unlock()
		return nil, errors.New("too many requests to the client are open")
	}
	s.nextID++
	for s.taken[strconv.FormatInt(s.nextID, 10)] {
		s.nextID++
	}
	id := wire.IntID(s.nextID)
	answer := make(chan *wire.Message, 1)
	s.pending[id.Key()] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pending, id.Key())
		s.mu.Unlock()
	}()

	out := notification(s, to, method, params)
	out.Kind = wire.Request
	out.Message["id"] = rawID(id)
	s.emit(out)
	select {
	case m := <-answer:
		if m.Kind == wire.ErrorResponse {
			return nil, &CallError{Method: method, RPCError: *m.Error}
		}
		return m.Result, nil
	case <-s.ctx.Done():
		return nil, errEnded
	case <-ctx.Done():
		if s.ctx.Err() != nil {
			return nil, errEnded // the request itself may not have left
		}
		s.emit(notification(s, to, "notifications/cancelled", map[string]any{
			"requestId": rawID(id), "reason": "the answer is no longer awaited",
		}))
		return nil, fmt.Errorf("no answer to %s: %w", method, context.Cause(ctx))
	}
}

// Take reserves an id that a message sent by hand has used, so that later requests
// do not use it.
func (s *Session) Take(id wire.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = make(map[string]bool)
	}
	s.taken[id.Key()] = true
}

// newToken returns a progress token that no other request of the session has.
func (s *Session) newToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens++
	return fmt.Sprintf("ask-%d", s.tokens)
}

// answered takes a response of the client. It ignores a response that is not
// awaited.
func (s *Session) answered(m *wire.Message) {
	if !m.ID.Usable() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.pending[m.ID.Key()]; ok {
		delete(s.pending, m.ID.Key())
		answer <- m // has room for one, and is sent one
	}
}

// spoiled takes a message that cannot be understood, and that nothing answers. A message that looks like a response
// ends the wait for one.
func (s *Session) spoiled(m *wire.Message) {
	if m.IsResponse() {
		s.answered(&wire.Message{Kind: wire.ErrorResponse, ID: m.ID,
			Error: &wire.Error{Code: InvalidRequest, Message: "the response is malformed"}})
	}
}

// notified takes a notification of the client. Unknown and malformed ones are
// ignored: they are never answered (basic/index#notifications).
func (s *Session) notified(m *wire.Message) {
	switch m.Method {
	case "notifications/initialized":
		s.mu.Lock()
		first := s.phase == negotiated
		if first {
			s.phase = operational
		}
		s.mu.Unlock()
		if hook := s.Server.behaviour.Initialized; hook != nil && first {
			s.spawn(func() { hook(s.ctx, s) })
		}
	case "notifications/cancelled":
		s.cancelled(m)
	case "notifications/roots/list_changed":
		s.rootsChanged()
	}
}

func (s *Session) cancelled(m *wire.Message) {
	id := wire.Parse([]byte(`{"id":` + string(jsonOf(wire.At(m.Params, "requestId"))) + `}`)).ID
	if !id.Usable() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The initialize request cannot be cancelled (basic/utilities/cancellation#behavior-requirements).
	if r, ok := s.running[id.Key()]; ok && r.Method != "initialize" {
		r.cancelled = true
		r.cancel(errCancelled)
	}
}

// jsonOf returns a decoded value as JSON text.
func jsonOf(v any) []byte {
	text, err := wire.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return text
}
