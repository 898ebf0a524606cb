package server

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Behaviour says how a server departs from what it should do. The zero value does
// not depart. All sessions of a server share it, so that a hook keeps its state in
// [Session.Value]. Hooks are called from many goroutines at once.
//
// The hooks stand in the order in which a message meets them.
type Behaviour struct {
	// Breaks lists the requirements that the behaviour breaks on purpose. It is
	// noted on every recorded event of the server.
	Breaks []string

	Stdio Stdio
	HTTP  HTTP

	// Inbound sees each incoming line or POST body before it is parsed and
	// returns what to read instead; nil drops it. On stdio, newlines in
	// what it returns separate messages.
	Inbound func(raw []byte) []byte

	// Valid may declare a message valid that is not: it is then served as far
	// as it is understood. Without it, faults of the envelope are refused.
	Valid func(m *wire.Message) bool

	// Batches serves the members of a batch, each with a response of its own.
	Batches bool

	// Receive takes every incoming message that is not refused; next handles
	// it in the regular way. Not calling next ignores the message; on HTTP the
	// POST of an ignored request ends without a response.
	Receive func(s *Session, m *wire.Message, next func())

	// Connected runs in a goroutine of its own when a session begins, and
	// Initialized when the client has sent notifications/initialized. The
	// context ends with the session.
	Connected, Initialized func(ctx context.Context, s *Session)

	Lifecycle Lifecycle

	// Methods wraps the handling of requests by method. The entry "*" stands
	// around all, also those of unknown methods and those refused by the state
	// of the session.
	Methods map[string]Middleware

	// IgnoreCapabilities makes tools ask the client for what it did not declare.
	IgnoreCapabilities bool

	// AnswerCancelled answers requests although they were cancelled.
	AnswerCancelled bool

	// Send sees every outgoing message and returns those to send instead,
	// in order: none, changed, delayed, several. See [Outgoing].
	Send func(out *Outgoing) []*Outgoing

	// Frame returns the bytes to write for a message: on stdio the line with
	// its newline, over HTTP the whole JSON body or the text of the SSE event.
	Frame func(out *Outgoing, frame []byte) []byte
}

// Handler serves a request. Its result should be an object, that is a
// map[string]any, which belongs to the caller. The error goes out as a
// JSON-RPC error. The result [NoAnswer] leaves the request open.
type Handler func(ctx context.Context, r *Request) (result any, rpcErr *wire.Error)

// Middleware stands around a Handler.
type Middleware func(ctx context.Context, r *Request, next Handler) (result any, rpcErr *wire.Error)

// Wrap puts a middleware around what Methods has for a method. It does not change
// the map that was there.
func (b *Behaviour) Wrap(method string, m Middleware) {
	methods := maps.Clone(b.Methods)
	if methods == nil {
		methods = make(map[string]Middleware)
	}
	if before := methods[method]; before != nil {
		outer := m
		m = func(ctx context.Context, r *Request, next Handler) (any, *wire.Error) {
			return outer(ctx, r, func(ctx context.Context, r *Request) (any, *wire.Error) {
				return before(ctx, r, next)
			})
		}
	}
	methods[method] = m
	b.Methods = methods
}

// Lifecycle holds departures from the lifecycle of a session.
type Lifecycle struct {
	// Early serves requests before initialize.
	Early bool
	// Again serves initialize more than once in a session.
	Again bool
	// Version chooses the version to answer with; nil negotiates.
	Version func(asked string) string
}

// Stdio holds departures from the stdio transport.
type Stdio struct {
	// Stdin wraps the input before lines are told apart, Stdout the output
	// after everything else.
	Stdin  func(io.Reader) io.Reader
	Stdout func(io.Writer) io.Writer
	// Start runs before anything is read, for banners and noise.
	Start func(stdout, stderr io.Writer)
	// Quit is asked after the n-th line (from 1) was read and before it is
	// handled; it ends the process when it returns true.
	Quit func(n int, line []byte) bool
	// Linger is asked when stdin was closed; it keeps the process alive when it
	// returns true.
	Linger func(s *Session) bool
	// ExitCode is the status with which the process ends.
	ExitCode int
}

// HTTP holds departures from both HTTP transports.
type HTTP struct {
	// Middleware wraps the whole handler.
	Middleware func(http.Handler) http.Handler
	// Connection wraps each connection, before HTTP is read from it.
	Connection func(net.Conn) net.Conn
	// Reply sees each response before its head is written, with the situation
	// that caused it, and may change it. See [Reply].
	Reply func(r *Reply)
	// SessionID makes the ids of sessions.
	SessionID func() string
	// Answer chooses the form of the answer to a request.
	Answer func(r *Request) AnswerForm
	// Event sees every event before it is put on its stream and returns those
	// to put there instead. See [Event].
	Event func(e *Event) []*Event
	// Replay chooses what is sent again for a Last-Event-ID. The proposal is
	// what followed on that stream; all are the events of the session's
	// streams as far as they are kept.
	Replay func(s *Session, last string, proposal, all []*Event) []*Event
	// KeepOpen leaves the stream of a request open after the answer.
	KeepOpen func(r *Request) bool
	// KeepSession lets sessions live on after DELETE.
	KeepSession bool
	// CancelOnDisconnect treats the end of a POST's connection as a cancellation.
	CancelOnDisconnect bool
	// Endpoint returns the data of the endpoint event of the legacy transport.
	Endpoint func(uri string) string
}

// AnswerForm is the form of the answer to a POST that carries a request.
type AnswerForm int

// The forms. AnswerAuto is JSON unless other messages precede the response or
// none comes. With AnswerJSON, notifications of the request are dropped, and its
// requests to the client travel on the listening stream.
const (
	AnswerAuto AnswerForm = iota
	AnswerJSON
	AnswerSSE
)

// Edit returns a Middleware that changes the result object of a request.
func Edit(change func(r *Request, result map[string]any)) Middleware {
	return func(ctx context.Context, r *Request, next Handler) (any, *wire.Error) {
		result, rpcErr := next(ctx, r)
		if object, ok := result.(map[string]any); ok && rpcErr == nil {
			change(r, object)
		}
		return result, rpcErr
	}
}

// EditItems returns a Middleware that changes each object of an array in the
// result, such as "tools" of tools/list or "content" of tools/call.
func EditItems(member string, change func(item map[string]any)) Middleware {
	return Edit(func(_ *Request, result map[string]any) {
		items, _ := result[member].([]any)
		for _, item := range items {
			if object, ok := item.(map[string]any); ok {
				change(object)
			}
		}
	})
}

// Named restricts a Middleware to requests whose params.name, or params.uri,
// is the given one.
func Named(name string, m Middleware) Middleware {
	return func(ctx context.Context, r *Request, next Handler) (any, *wire.Error) {
		if r.Params["name"] == name || r.Params["uri"] == name {
			return m(ctx, r, next)
		}
		return next(ctx, r)
	}
}

// Always returns a Middleware that answers with a fixed result.
func Always(result any) Middleware {
	return func(context.Context, *Request, Handler) (any, *wire.Error) { return clone(result), nil }
}

// Fail returns a Middleware that answers with a fixed error.
func Fail(code int64, message string) Middleware {
	return func(context.Context, *Request, Handler) (any, *wire.Error) {
		return nil, &wire.Error{Code: code, Message: message}
	}
}

// Recode returns a Middleware that changes the code of errors.
func Recode(from, to int64) Middleware {
	return func(ctx context.Context, r *Request, next Handler) (any, *wire.Error) {
		result, rpcErr := next(ctx, r)
		if rpcErr != nil && rpcErr.Code == from {
			changed := *rpcErr
			changed.Code = to
			return nil, &changed
		}
		return result, rpcErr
	}
}

// OnResponse returns a hook for [Behaviour.Send] that sees the responses to
// requests of a method, or to all requests with "*".
func OnResponse(method string, change func(out *Outgoing) []*Outgoing) func(*Outgoing) []*Outgoing {
	return func(out *Outgoing) []*Outgoing {
		if out.Answers != nil && (method == "*" || out.Answers.Method == method) {
			return change(out)
		}
		return []*Outgoing{out}
	}
}

// OnMessage returns a hook for [Behaviour.Send] that sees the requests and
// notifications of a method.
func OnMessage(method string, change func(out *Outgoing) []*Outgoing) func(*Outgoing) []*Outgoing {
	return func(out *Outgoing) []*Outgoing {
		if out.Method == method {
			return change(out)
		}
		return []*Outgoing{out}
	}
}
