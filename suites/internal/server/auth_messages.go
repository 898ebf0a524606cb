package server

import (
	"net/http"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// Each message of a client needs a token: "authorization MUST be included in every HTTP request from client to server"
// (basic/authorization#token-requirements).

// message is a kind of HTTP request of a client.
type message struct {
	what    string
	request func() transport.Request
}

// sent returns a message that is posted. It is about nothing that the server knows of.
func sent(what, body string) message {
	return message{what, func() transport.Request {
		return transport.Request{Body: []byte(body), Deliberate: []string{"*"}}
	}}
}

// strays returns the messages that need an answer to nothing.
func strays() []message {
	return []message{
		sent("a notification",
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpconform-none"}}`),
		sent("a response", `{"jsonrpc":"2.0","id":"mcpconform-none","result":{}}`),
		{"a GET", func() transport.Request {
			return transport.Request{Method: http.MethodGet, Deliberate: []string{"*"}}
		}},
		{"a DELETE", func() transport.Request {
			return transport.Request{Method: http.MethodDelete, Deliberate: []string{"*"}}
		}},
	}
}

// inbound returns the messages that the server accepts in the session of the check with the valid token. The first is a
// request. The last is a DELETE, which is not tried before. If the user names the methods that need a token, there is
// only a request of the first of them.
func inbound(t *check.T) []message {
	if len(t.Target.Settings.Authorization.Methods) > 0 {
		request := message{"a request", func() transport.Request {
			return transport.Request{Body: rpc(t.Session.NextID(), needsToken(t))}
		}}
		t.Clear()
		t.Assume(t.Do(request.request())).To(HaveResult(), "even with the valid token")
		return []message{request}
	}
	all := []message{{"a request", func() transport.Request { return plainRequest(t) }}}
	t.Clear()
	t.Assume(t.Do(plainRequest(t))).To(HaveResult(), "even with the valid token")
	for _, m := range strays() {
		switch r := m.request(); r.Method {
		case http.MethodGet:
			if listens(t) {
				all = append(all, m)
			}
		case http.MethodDelete:
			if t.HTTP().SessionID() != "" {
				all = append(all, m)
			}
		default:
			t.Clear()
			if t.Do(r).Status/100 == 2 {
				all = append(all, m)
			}
		}
	}
	return all
}

// authorization is what a request has in place of a valid token.
type authorization struct{ value, what string }

// header returns the header that takes the place of the ordinary one.
func (a authorization) header() http.Header {
	if a.value == "" {
		return http.Header{"Authorization": nil}
	}
	return http.Header{"Authorization": {a.value}}
}

// useless returns what authorizes nothing.
func useless(t *check.T) []authorization {
	all := []authorization{{"", "without a token"}, {"Bearer " + madeUp, "with a made-up token"}}
	if expired := t.Target.Settings.Authorization.Expired; expired != "" {
		all = append(all, authorization{"Bearer " + expired, "with an expired token"})
	}
	return all
}

// intruded sends each kind of message in a session with the authorization of another user. The DELETE is the last.
func intruded(t *check.T, conn *transport.HTTPConn, authorization, where string) {
	ping := sent("a request", string(rpc(wire.StringID("mcpconform-intruder"), check.RPC{Method: t.NoOp()})))
	for _, m := range append([]message{ping}, strays()...) {
		t.Clear()
		r := m.request()
		r.Header = http.Header{"Authorization": {authorization}}
		t.Expect(t.DoOn(conn, r)).ToNot(BeAccepted(), "for %s within %s", m.what, where)
	}
}

// queriedInSession sends a request, in a session that the valid token has begun, with this token in the query alone.
func queriedInSession(t *check.T, url string) {
	conn := t.Bearing(t.Authorization())
	if !authorized(t, begin(t, conn, "")) {
		return
	}
	request := needsToken(t)
	if request.Method == "" || request.Method == "initialize" {
		request = check.RPC{Method: "ping"}
	}
	try := func(path string, id int64) bool {
		return authorized(t, t.DoOn(conn, transport.Request{Path: path, Body: rpc(wire.IntID(id), request),
			Header: authorization{}.header(), Deliberate: []string{"*"}}))
	}
	if t.Clear(); !try("", 3) && try(url, 4) {
		t.Fail("within a session, a request without an Authorization header was served because its " +
			"query holds the token")
	}
}

// admitsAll fails the check if the server refuses the valid token for any kind of message in a session that the token
// has begun. It does not judge refusals for other reasons.
func admitsAll(t *check.T) {
	conn := t.Bearing(t.Authorization())
	if !authorized(t, begin(t, conn, "")) {
		return
	}
	again := sent("a second request", string(rpc(wire.IntID(3), check.RPC{Method: "ping"})))
	for _, m := range append([]message{again}, strays()...) {
		t.Clear()
		if r := t.DoOn(conn, m.request()); r.Status == http.StatusUnauthorized {
			t.Fail("the server accepted the token at the beginning of the session, but refuses it with HTTP "+
				"status 401 for %s",
				m.what)
		}
	}
}
