package hooks

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

var OverBothHTTP = []string{"http", "sse"}

// Serving sets options of the transport.
func Serving(change func(o *server.HTTPOptions)) apply {
	return func(o *server.Options) { change(&o.HTTP) }
}

// FirstOfStream has an event without a message, of this id and data, come before the first message of each stream.
func FirstOfStream(id string, data []byte) apply {
	begun := new(sync.Map) // by session and stream
	return Streaming(func(e *server.Event) []*server.Event {
		if _, known := begun.LoadOrStore([2]any{e.Session, e.Stream}, true); known {
			return []*server.Event{e}
		}
		return []*server.Event{{Session: e.Session, Stream: e.Stream, ID: id, Data: data}, e}
	})
}

var (
	AlwaysStreams = Serving(func(o *server.HTTPOptions) { o.AlwaysSSE = true })
	OverHTTP      = []string{"http"}
	OverSSE       = []string{"sse"}
)

const (
	SessionHeader   = "Mcp-Session-Id"
	LastEventHeader = "Last-Event-Id"
)

// Replying changes the responses in a situation.
func Replying(situation server.Situation, change func(r *server.Reply)) apply {
	return func(o *server.Options) {
		before := o.Behaviour.HTTP.Reply
		o.Behaviour.HTTP.Reply = func(r *server.Reply) {
			if before != nil {
				before(r)
			}
			if r.Situation == situation {
				change(r)
			}
		}
	}
}

// Passing serves requests that are to be refused.
func Passing(situation server.Situation, fits func(r *server.Reply) bool) apply {
	return Replying(situation, func(r *server.Reply) { r.Pass = r.Pass || fits(r) })
}

// Between stands around the handler of all requests.
func Between(serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) apply {
	return func(o *server.Options) {
		before := o.Behaviour.HTTP.Middleware
		o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
			if before != nil {
				next = before(next)
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, next) })
		}
	}
}

type postedKey struct{}

// Peeking lets Posted tell what a request carries.
func Peeking() apply {
	return Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
		if err == nil && len(body) > 0 {
			r = r.WithContext(context.WithValue(r.Context(), postedKey{}, wire.Parse(body)))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// Posted returns the message in the body of a request; never nil.
func Posted(r *http.Request) *wire.Message {
	if m, ok := r.Context().Value(postedKey{}).(*wire.Message); ok {
		return m
	}
	return &wire.Message{}
}

// NotAccepting refuses POSTs with 406 because of their Accept header, whose lines are joined.
func NotAccepting(refused func(accept string) bool) apply {
	return RefusingHTTP(http.StatusNotAcceptable, func(r *http.Request) bool {
		return r.Method == http.MethodPost && refused(strings.Join(r.Header.Values("Accept"), ","))
	})
}

// RefusingHTTP answers requests that fit with an HTTP status.
func RefusingHTTP(status int, fits func(r *http.Request) bool) apply {
	return Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if fits(r) {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Streaming hooks into the events of all streams.
func Streaming(hook func(e *server.Event) []*server.Event) apply {
	return func(o *server.Options) {
		before := o.Behaviour.HTTP.Event
		o.Behaviour.HTTP.Event = func(e *server.Event) []*server.Event {
			if before == nil {
				return hook(e)
			}
			var events []*server.Event
			for _, e := range before(e) {
				events = append(events, hook(e)...)
			}
			return events
		}
	}
}

// EachEvent changes the events of all streams.
func EachEvent(change func(e *server.Event)) apply {
	return Streaming(func(e *server.Event) []*server.Event {
		change(e)
		return []*server.Event{e}
	})
}

// Replaying decides which events a stream brings that is resumed after one: those that are proposed, or others of all.
func Replaying(replay func(last string, proposal, all []*server.Event) []*server.Event) apply {
	return func(o *server.Options) {
		o.Behaviour.HTTP.Replay = func(_ *server.Session, last string, proposal, all []*server.Event) []*server.Event {
			return replay(last, proposal, all)
		}
	}
}

var OverStdio = []string{"stdio"}
