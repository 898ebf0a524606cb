package server

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// Request is one request of the client.
type Request struct {
	Session *Session
	Message *wire.Message
	ID      wire.ID
	Method  string
	Params  map[string]any // empty when there are none

	stream   *stream // of the POST that brought it; nil on other transports
	ctx      context.Context
	cancel   context.CancelCauseFunc
	released chan struct{}
	detach   sync.Once

	// Guarded by the session's mutex.
	cancelled, finished bool
}

func (s *Session) newRequest(m *wire.Message, st *stream) *Request {
	r := &Request{Session: s, Message: m, ID: m.ID, Method: m.Method, stream: st, released: make(chan struct{})}
	r.Params, _ = m.Params.(map[string]any)
	if r.Params == nil {
		r.Params = make(map[string]any)
	}
	r.ctx, r.cancel = context.WithCancelCause(s.ctx)
	if st != nil {
		st.request(r)
	}
	return r
}

func (r *Request) streamOrNil() *stream {
	if r == nil {
		return nil
	}
	return r.stream
}

// Detach lets the messages after this request be handled before it ends. A handler
// that waits for a time or for the client calls it first.
func (r *Request) Detach() { r.detach.Do(func() { close(r.released) }) }

// Withhold has the head of the HTTP response sent while the answer is still to come, as a stream if the client takes
// one, and does what [Request.Detach] does. Many clients send nothing else, not even a cancellation, before they have
// the head.
func (r *Request) Withhold() {
	r.Detach()
	r.stream.begin()
}

// Sleep waits, unless the request is cancelled first: it then returns the cause.
func (r *Request) Sleep(ctx context.Context, d time.Duration) error {
	r.Detach()
	return sleep(ctx, d)
}

// sleep waits, unless the context ends first: it then returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open reports whether the request is still to be answered.
func (r *Request) open() bool {
	r.Session.mu.Lock()
	defer r.Session.mu.Unlock()
	return !r.finished && (!r.cancelled || r.Session.Server.behaviour.AnswerCancelled)
}

// Notification returns a notification that travels with the request, for hooks
// that send it themselves. Params may be nil.
func (r *Request) Notification(method string, params map[string]any) *Outgoing {
	return notification(r.Session, r, method, params)
}

// Notify sends a notification that is related to the request. Params may be nil.
func (r *Request) Notify(method string, params map[string]any) {
	r.Session.emit(r.Notification(method, params))
}

// Call sends a request to the client in the course of this one and waits for
// the result, as [Session.Call] does.
func (r *Request) Call(ctx context.Context, method string, params map[string]any) (any, error) {
	r.Detach()
	return r.Session.call(ctx, r, method, params)
}

// Token returns the progress token of the request as it was spelled.
func (r *Request) Token() (token any, ok bool) {
	switch token := wire.At(r.Params, "_meta", "progressToken").(type) {
	case string, json.Number:
		return token, true
	}
	return nil, false
}

// Progress tells how far the request has come, if the client asked for it and
// the request is still open (basic/utilities/progress). A total of 0 is left
// out, and so is an empty message.
func (r *Request) Progress(progress, total float64, message string) {
	token, ok := r.Token()
	if !ok || !r.open() {
		return
	}
	params := map[string]any{"progressToken": token, "progress": progress}
	if total > 0 {
		params["total"] = total
	}
	if message != "" {
		params["message"] = message
	}
	r.Notify("notifications/progress", params)
}

// checkMeta checks what all requests have in common (schema#request).
func (r *Request) checkMeta() *wire.Error {
	value, ok := r.Params["_meta"]
	if !ok {
		return nil
	}
	meta, ok := value.(map[string]any)
	if !ok {
		return invalid("_meta is %s, not an object", wire.TypeName(value))
	}
	switch token := meta["progressToken"].(type) {
	case nil:
		if _, ok := meta["progressToken"]; !ok {
			return nil
		}
	case string:
		return nil
	case json.Number:
		if !strings.ContainsAny(string(token), ".eE") {
			return nil
		}
	}
	return invalid("progressToken is %s, not a string or an integer", wire.Show(meta["progressToken"]))
}

// reading reads params. It keeps the first fault, after which nothing that is read counts.
type reading struct{ fault *wire.Error }

// text returns a required member of an object, which must be a string.
func (p *reading) text(o map[string]any, name string) string {
	return read[string](p, o, name, "a string")
}

// object returns a required member of an object, which must be an object.
func (p *reading) object(o map[string]any, name string) map[string]any {
	return read[map[string]any](p, o, name, "an object")
}

// optional returns a member that must be an object if it is there; otherwise it is empty.
func (p *reading) optional(o map[string]any, name string) map[string]any {
	if _, ok := o[name]; !ok {
		return map[string]any{}
	}
	return p.object(o, name)
}

// texts returns the members of an object, all of which must be strings.
func (p *reading) texts(o map[string]any) map[string]string {
	all := make(map[string]string)
	for name := range o {
		all[name] = p.text(o, name)
	}
	return all
}

func read[T any](p *reading, o map[string]any, name, kind string) T {
	value, given := o[name]
	v, ok := value.(T)
	switch {
	case ok, p.fault != nil:
	case !given:
		p.fault = invalid("%s is missing", name)
	default:
		p.fault = invalid("%s is %s, not %s", name, wire.TypeName(value), kind)
	}
	return v
}

// text returns a required member of an object, which must be a string.
func text(o map[string]any, name string) (string, *wire.Error) {
	var p reading
	return p.text(o, name), p.fault
}
