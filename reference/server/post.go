package server

import (
	"errors"
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// post serves one message of the client (basic/transports#sending-messages-to-the-server).
func (x *httpCall) post(m *wire.Message) {
	// The version of a session is settled by the params of its initialize; the
	// header is for what follows (basic/transports#protocol-version-header).
	if !x.starting && x.badVersion() {
		return
	}
	if mediaType(x.r.Header.Get("Content-Type")) != typeJSON &&
		x.refuse(UnsupportedMediaType, http.StatusUnsupportedMediaType, "the Content-Type is not "+typeJSON) {
		return
	}
	if !x.accepts(typeJSON) && !x.accepts(typeSSE) &&
		x.refuse(NotAcceptable, http.StatusNotAcceptable, "the Accept header does not name "+typeJSON+" or "+typeSSE) {
		return
	}
	if x.bodyErr != nil {
		x.refuseBody()
		return
	}
	if m == nil { // dropped by the behaviour
		x.reply(Accepted, http.StatusAccepted, make(http.Header), nil)
		return
	}
	if f := x.http.server.behaviour.refuse(m); f != nil {
		if x.refuseWith(BadMessage, http.StatusBadRequest, &f.rpcErr, nil) {
			return
		}
	}
	if !x.starting && x.noSession() {
		return
	}
	if m.Kind == wire.Notification || m.IsResponse() {
		x.session.receive(m, nil)
		x.reply(Accepted, http.StatusAccepted, make(http.Header), nil)
		return
	}
	if x.starting {
		x.start()
	}
	st := x.link.open(x.name, false)
	switch {
	case !x.accepts(typeSSE):
		st.prefer(AnswerJSON)
	case !x.accepts(typeJSON), x.http.server.options.HTTP.AlwaysSSE:
		st.prefer(AnswerSSE)
	}
	reader := st.attach()
	st.hold()
	x.session.receive(m, st)
	st.release()
	x.answer(st, reader)
}

func (x *httpCall) refuseBody() {
	status, situation := http.StatusBadRequest, BadMessage
	if errors.As(x.bodyErr, new(*http.MaxBytesError)) {
		status, situation = http.StatusRequestEntityTooLarge, TooLarge
	}
	if !x.refuse(situation, status, "the body could not be read") {
		x.reply(Accepted, http.StatusAccepted, make(http.Header), nil)
	}
}

// answer waits until the form of the answer is clear, and sends it.
func (x *httpCall) answer(st *stream, reader int) {
	for {
		s := st.from(0, reader)
		_, form := st.answers()
		answer := firstResponse(s.events)
		switch {
		case form == AnswerSSE && (!x.starting || len(s.events) > 0 || s.finished),
			form == AnswerAuto && len(s.events) > 0 && !isResponse(s.events[0]),
			s.lost, s.displaced,
			s.finished && answer == nil, // cancelled, or left open by the behaviour
			s.finished && form == AnswerAuto && len(s.events) > 1:
			x.answerSSE(st, reader, s.events)
			return
		case s.finished:
			x.answerJSON(answer)
			x.link.forget(st)
			return
		}
		select {
		case <-s.changed:
		case <-x.r.Context().Done():
			x.record(wire.Event{Kind: wire.KindStreamEnd, From: wire.Client, Note: "the client closed the connection"})
			x.gone(st)
			return
		case <-x.session.ctx.Done():
			if requests, _ := st.answers(); !slices.ContainsFunc(requests, (*Request).open) {
				x.id = wire.ID{} // a cancelled request does not get a response
			}
			x.refuse(UnknownSession, http.StatusNotFound, "the session has ended")
			return
		case <-x.http.stop:
			x.refuse(Stopping, http.StatusServiceUnavailable, "the server is stopping")
			return
		}
	}
}

func isResponse(e *Event) bool {
	return e.Out != nil && (e.Out.Kind == wire.Result || e.Out.Kind == wire.ErrorResponse)
}

// firstResponse returns the first response among events, or nil.
func firstResponse(events []*Event) *Event {
	for _, e := range events {
		if isResponse(e) {
			return e
		}
	}
	return nil
}

// settle registers the session that an initialize has opened, or ends it when
// the initialize was refused: no id is given then.
func (x *httpCall) settle(first *Event) {
	if !x.starting {
		return
	}
	x.starting = false
	if first != nil && first.Out != nil && first.Out.Kind == wire.ErrorResponse {
		x.http.end(x.session)
		return
	}
	x.isNew = true
	x.http.register(x.link)
}

func (x *httpCall) answerJSON(e *Event) {
	x.settle(e)
	body := e.Data
	if hook := x.http.server.behaviour.Frame; hook != nil {
		body = hook(e.Out, body)
	}
	reply := x.proposed(AnsweredJSON, http.StatusOK, http.Header{"Content-Type": {typeJSON}}, body)
	x.breaks = e.Out.Deliberate
	x.write(reply)
}

func (x *httpCall) answerSSE(st *stream, reader int, events []*Event) {
	var first *Event
	if len(events) > 0 {
		first = events[0]
	}
	x.settle(first)
	if !x.openStream(AnsweredSSE) {
		return
	}
	x.follow(st, reader, 0)
	if x.r.Context().Err() != nil {
		x.gone(st)
	}
}

// gone handles the end of a POST's connection by the client. It is not a
// cancellation (basic/transports#sending-messages-to-the-server).
func (x *httpCall) gone(st *stream) {
	if x.http.server.behaviour.HTTP.CancelOnDisconnect {
		st.cancelAll(x.r.Context())
	}
	if x.starting { // the client does not know the session's id
		x.http.end(x.session)
	}
}

// forget drops a stream that cannot be resumed.
func (l *httpLink) forget(st *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(other *stream) bool { return other == st })
}
