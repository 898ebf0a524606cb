package client

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/result"
)

// request is one request of a client that seeks a token, as a person reads it.
type request struct {
	at        time.Duration
	what      string
	status    int
	errorCode string // of OAuth, or ""
}

func (a request) String() string {
	switch {
	case a.status == 0:
		return a.what + ": no answer"
	case a.errorCode != "":
		return fmt.Sprintf("%s: HTTP status %d, error %s", a.what, a.status, wire.Quote(a.errorCode, 60))
	}
	return fmt.Sprintf("%s: HTTP status %d", a.what, a.status)
}

// mostAsked bounds the requests that are told: the first ones and the last ones.
const mostAsked = 12

// endedAt tells the last request of the client on its way to a token, its answer, and the step that should have come
// next. It holds no ports and no secrets, so it is the same in each run.
func endedAt(t *client.T) string {
	var told []string
	for i, step := range askedOnTheWay(t) {
		told = append(told, fmt.Sprintf("(%d) %s.", i+1, step))
	}
	if over := len(told) - mostAsked; over > 0 {
		told = slices.Replace(told, mostAsked/2, mostAsked/2+over, fmt.Sprintf("… %d more …", over))
	}
	how := "It was stopped at the time limit."
	if t.Ending.Exit != nil {
		how = fmt.Sprintf("Then it %s.", t.Ending.Exit)
	}
	return fmt.Sprintf("It asked: %s %s Next, it should have %s.", strings.Join(told, " "), how, next(t))
}

// askedOnTheWay returns the requests to the protected server and to the authorization servers, oldest first. Repeated
// ones are told once.
func askedOnTheWay(t *client.T) []request {
	var all []request
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			token := " without a token"
			if x.Request.HTTP.Header.Get("Authorization") != "" {
				token = " with a token"
			}
			all = append(all, request{at: x.Request.At, what: x.Request.HTTP.Method + " " + pathOf(x.Request) +
				" of the server" + token, status: x.Status()})
		}
	}
	for _, d := range t.Flow.Documents("") {
		all = append(all, request{at: d.At, what: d.HTTP.Method + " " + pathOf(d) + " of the server",
			status: t.Flow.Status(d)})
	}
	for _, s := range t.Flow.Steps() {
		if s.Event == nil {
			continue // a flood is not recorded any further
		}
		code, _ := s.Answer["error"].(string)
		all = append(all, request{at: s.Event.At, what: s.Method + " " + wire.Quote(s.Path, 100) +
			" of the authorization server", status: s.Status, errorCode: code})
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(all, func(a, b request) bool { return a.String() == b.String() })
}

// pathOf returns the path of a request, quoted.
func pathOf(e *wire.Event) string {
	u, err := url.Parse(e.HTTP.URL)
	if err != nil {
		return wire.Quote(e.HTTP.URL, 100)
	}
	return wire.Quote(u.Path, 100)
}

// next says what a client does next after the last step that it has come through, with the requirement.
func next(t *client.T) string {
	steps := slices.DeleteFunc(t.Flow.Steps(), func(s client.Step) bool { return s.Step == authserver.Other })
	if len(steps) == 0 {
		read := slices.ContainsFunc(t.Flow.Documents(""),
			func(e *wire.Event) bool { return t.Flow.Status(e) == http.StatusOK })
		if !read {
			return "requested the resource metadata at the URL that WWW-Authenticate names " +
				"(auth.client.parse-www-authenticate)"
		}
		return "requested " + t.Flow.MetadataPath() + " of the authorization server that the resource " +
			"metadata name (auth.client.as-metadata-location)"
	}
	last := steps[len(steps)-1]
	refused := last.Status/100 > 3 || last.Answer["error"] != nil
	switch {
	case last.Step == authserver.Token && refused:
		return "sent a token request that is accepted; the answer says: " + wire.Quote(said(last), 200)
	case last.Step == authserver.Token:
		return "repeated its request with the token in the Authorization header (auth.client.bearer-header)"
	case last.Step == authserver.Authorization && refused:
		return "sent an authorization request that is accepted; the answer says: " + wire.Quote(said(last), 200)
	case last.Step == authserver.Authorization:
		return "taken the code from the redirect to its redirect URI, and redeemed it at the token_endpoint " +
			"(auth.client.pkce-verifier, auth.client.resource-token-request)"
	case last.Step == authserver.Registration && refused:
		return "sent a registration that is accepted (auth.client.dynamic-registration); the answer says: " +
			wire.Quote(said(last), 200)
	case last.Step == authserver.Registration:
		return "opened the authorization_endpoint in a browser, for which the command in the variable " +
			"BROWSER will do " +
			"(auth.client.resource-authorization-request, auth.client.pkce-challenge)"
	}
	return "registered at the registration_endpoint (auth.client.dynamic-registration), or asked for authorization " +
		"with a client id of its own"
}

// said returns how an authorization server explains a refusal.
func said(s client.Step) string {
	text, _ := s.Answer["error_description"].(string)
	code, _ := s.Answer["error"].(string)
	return cmp.Or(text, code)
}

// judgeTokenless judges a client that is meant to log in, and has come to its end without a token. A failed requirement
// has its own finding.
func judgeTokenless(t *client.T) {
	const id = ids.AuthClientHandles401
	if !t.Authorizes || t.Ending.Attended || t.ObtainedToken() || fails(t) {
		return
	}
	t.Violation(id, "the client is meant to log in, and has no access token in the end. "+endedAt(t), lastStep(t)...)
}

// fails reports whether the scenario has a finding that makes a requirement fail.
func fails(t *client.T) bool {
	record := t.Recorder().Record
	return slices.ContainsFunc(record.Keys(), func(k ledger.Key) bool {
		q, _ := t.Revision.Lookup(k.Requirement)
		verdict, _ := ledger.Decide(q, record[k])
		return verdict == result.Fail
	})
}
