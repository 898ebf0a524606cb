package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// unauthorized is for checks that need neither a session nor the user's token.
var unauthorized = check.Needs{
	Session: check.None, Transports: []string{transport.NameHTTP, transport.NameSSE}, Unauthorized: true,
	Authorization: true,
}

// authorizedSession is a session with the user's token, which a check may spoil.
var authorizedSession = check.Needs{Session: check.Fresh, Transports: []string{transport.NameHTTP}, Authorization: true}

// basic/authorization
var authChecks = []*check.Check{
	{
		Name:         "auth/missing-token",
		Requirements: []string{ids.AuthServerMissingToken401, ids.AuthServerNoDataUnauthorized},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			// A request without a token is answered with status 401 and nothing but the refusal.
			const missing, data = ids.AuthServerMissingToken401, ids.AuthServerNoDataUnauthorized
			r := protected(t)
			t.Expect(r).To(HaveHTTPStatus(http.StatusUnauthorized), "without the authorization that it needs")
			t.Exercised(missing)
			disclosed(t, data, r)
			if _, token, ok := strings.Cut(t.Authorization(), " "); ok {
				for _, header := range []string{token, "Basic " + token} {
					t.Clear()
					if r := tryAuthorization(t, header); authorized(t, r) {
						t.Warning(missing,
							"a request was served because its Authorization header holds the token, although "+
								"the scheme is not Bearer")
						break
					}
				}
			}
		},
	},
	{
		Name:         "auth/token-in-query",
		Requirements: []string{ids.AuthServerQueryTokenIgnored},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			if authorized(t, protected(t)) {
				t.Inconclusive("the server serves requests without a token, so mcpconform cannot see whether " +
					"a token in the query counts")
			}
			control(t)
			url, ok := queried(t)
			if !ok {
				t.Inconclusive("a token in a URL ends up in logs, so mcpconform sends one only to servers on " +
					"this machine")
			}
			t.Clear()
			if r := tryAuthorizationAt(t, url, ""); authorized(t, r) {
				t.Fail("a request without an Authorization header was served because its query holds the token")
			}
			if t.Target.Transport == transport.NameHTTP {
				queriedInSession(t, url)
			}
		},
	},
	{
		Name: "auth/challenge",
		Requirements: []string{ids.AuthHTTPConform, ids.AuthServerWWWAuthenticate,
			ids.AuthServerWWWAuthenticateMetadataURL},
		Needs: unauthorized,
		Body: func(t *check.T) {
			// Each refusal, of POST and of GET, says where the resource metadata are. The rule judges single answers.
			r := protected(t)
			if t.Target.Transport == transport.NameHTTP {
				t.DoOn(t.Bearing(""), transport.Request{Method: http.MethodGet, Deliberate: []string{"*"}})
			}
			tryAuthorization(t, "Bearer "+madeUp)
			t.Assume(r).To(HaveHTTPStatus(http.StatusUnauthorized), "without a token")
			at := challengeOf(r)["resource_metadata"]
			if _, err := metadata(t, r); at == "" && err != nil {
				reached(t, err)
				t.Violation(ids.AuthHTTPConform,
					"the 401 does not lead to the resource metadata: no challenge names them, and "+err.Error())
			}
			t.Exercised(ids.AuthHTTPConform)
			if at == "" {
				t.Inconclusive("no WWW-Authenticate header names the resource metadata")
			}
			t.Clear()
			const id = ids.AuthServerWWWAuthenticateMetadataURL
			if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Violation(id, "resource_metadata is "+wire.Quote(at, 100)+", which is not an absolute URL", r.Head)
				return
			}
			if _, err := document(t, at); err != nil {
				reached(t, err)
				t.Violation(id, "there are no metadata where the WWW-Authenticate header says: "+err.Error())
			}
		},
	},
	{
		Name: "auth/challenge-forms",
		Requirements: []string{
			ids.AuthServerChallengeParameters, ids.AuthServerChallengeParametersOnce,
			ids.AuthServerChallengeCharacters,
			ids.AuthServerErrorCodeStatus, ids.AuthServerNoErrorWithoutToken,
		},
		Needs: unauthorized,
		Body: func(t *check.T) {
			// The rule judges all challenges that this and other checks provoke.
			protected(t)
			tryAuthorization(t, "Bearer "+madeUp)
			t.Skip("the challenges of the server do not have the part that this requirement is about")
		},
	},
	{
		Name: "auth/resource-metadata",
		Requirements: []string{
			ids.AuthServerResourceMetadata, ids.AuthServerMetadataAuthorizationServers,
			ids.AuthServerMetadataResource,
			ids.AuthResourceHasScheme, ids.AuthResourceNoFragment, ids.AuthResourceLowercase,
			ids.AuthResourceNoTrailingSlash,
			ids.AuthSecureCommunication,
		},
		Needs: unauthorized,
		Body: func(t *check.T) {
			r := protected(t)
			document, err := metadata(t, r)
			if err != nil {
				reached(t, err)
				t.Fail("there are no resource metadata: %v", err)
			}
			if problem := issuersProblem(document); problem != "" {
				t.Violation(ids.AuthServerMetadataAuthorizationServers, problem)
			}
			judgeResource(t, document["resource"])
			judgeTransportSecurity(t, challengeOf(r)["resource_metadata"], issuersOf(document))
		},
	},
	{
		Name:         "auth/authorization-servers",
		Requirements: []string{ids.AuthAsMetadata, ids.AuthAsDynamicRegistration, ids.AuthAsHTTPS},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			document, err := metadata(t, protected(t))
			if err != nil {
				t.Inconclusive("there are no resource metadata that name an authorization server: %v", err)
			}
			issuers := issuersOf(document)
			if len(issuers) == 0 {
				t.Inconclusive("the resource metadata do not name an authorization server")
			}
			unreached := ""
			for _, issuer := range issuers[:min(len(issuers), maxIssuers)] {
				t.Clear()
				if problem := judgeIssuer(t, issuer); problem != "" {
					unreached = problem
				}
			}
			if unreached != "" {
				t.Inconclusive("%s", unreached)
			}
		},
	},
	{
		Name: "auth/invalid-token",
		Requirements: []string{ids.AuthServerInvalidToken401, ids.AuthServerValidationFailureChallenge,
			ids.AuthServerNoDataUnauthorized},
		Needs: unauthorized,
		Body: func(t *check.T) {
			const refused = ids.AuthServerInvalidToken401
			f := forger(t, protected(t))
			for _, token := range []string{madeUp, f.unsigned(), f.signed()} {
				t.Clear()
				t.Secret(token)
				r := tryAuthorization(t, "Bearer "+token)
				if t.Check(refused, r).To(HaveHTTPStatus(http.StatusUnauthorized), "with a made-up token") {
					t.Exercised(refused) // whatever is wrong with the challenge
					disclosed(t, ids.AuthServerNoDataUnauthorized, r)
					judgeFailureChallenge(t, r)
				}
			}
		},
	},
	{
		Name:         "auth/malformed-token",
		Requirements: []string{ids.AuthServerMalformed400},
		Shows:        []string{ids.AuthServerRefusalChallenge},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			protected(t)
			for _, header := range []string{"Bearer", "Bearer two words", `Bearer "quo,ted"`} {
				t.Clear()
				r := tryAuthorization(t, header)
				t.Check(ids.AuthServerMalformed400,
					r).To(HaveHTTPStatus(http.StatusBadRequest, http.StatusUnauthorized),
					"with the header \"Authorization: %s\"", header)
				const challenge = ids.AuthServerRefusalChallenge
				switch {
				case r.Status == http.StatusBadRequest && challenged(r):
					t.Exercised(challenge)
				case r.Status == http.StatusBadRequest:
					t.Warning(challenge,
						"the answer with HTTP status 400 to a malformed token has no WWW-Authenticate header")
				case r.Status == http.StatusUnauthorized:
					t.Note("an Authorization header without a well-formed token is answered with 401, as an " +
						"invalid token is")
				}
			}
		},
	},
	{
		Name:         "auth/valid-token",
		Requirements: []string{ids.AuthServerValidTokenAccepted, ids.AuthServerSchemeAnyCase},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			// The control of all refusals: with the token, a session begins and goes on.
			protected(t)
			if r := begin(t, t.Bearing(""), ""); t.Target.Transport == transport.NameHTTP && authorized(t, r) {
				t.Inconclusive("the server begins a session without a token, so mcpconform cannot see whether " +
					"the given token is valid")
			}
			s := t.Connect(client.Options{})
			x, err := s.Initialize(t.Context)
			t.Show(x.Events()...)
			if x.Head != nil && x.Head.HTTP.Status == http.StatusUnauthorized {
				control(t)
			}
			t.Must(err)
			for _, method := range append([]string{"ping", "ping"}, t.Target.Methods()...) {
				t.Clear()
				x, err := s.Call(t.Context, method, nil)
				t.Show(x.Events()...)
				admitted(t, x)
				t.Must(err)
			}
			if t.Target.Transport == transport.NameHTTP {
				admitsAll(t)
			}
			t.Clear()
			token := control(t)
			t.Exercised(ids.AuthServerValidTokenAccepted) // however its header may be spelled
			const spelling = ids.AuthServerSchemeAnyCase
			if r := tryAuthorization(t, "bearer "+token); !authorized(t, r) {
				t.Violation(spelling, "the server refuses the token if the scheme is spelled bearer: "+Describe(r))
			}
			if r := tryAuthorization(t, "Bearer  "+token); !authorized(t, r) {
				// The grammar has 1*SP, and no sentence mentions it.
				t.Warning(spelling, "the server refuses the token if two spaces separate it from the scheme: "+
					Describe(r))
			}
		},
	},
	{
		Name:         "auth/token-validated",
		Requirements: []string{ids.AuthServerTokenValidated, ids.AuthServerOtherTokensRefused},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			// Tokens that differ from the valid one in a character or in their length, one without a signature, one
			// that we have signed ourselves, and one of another issuer.
			f := forger(t, protected(t))
			token := control(t)
			for _, c := range []struct{ id, what, token string }{
				{ids.AuthServerTokenValidated, "a made-up token", madeUp},
				{ids.AuthServerTokenValidated, "the valid token with one character changed", altered(token)},
				{ids.AuthServerTokenValidated, "the valid token with characters added to it", token + "Qx7w"},
				{ids.AuthServerTokenValidated, "the first half of the valid token", token[:len(token)/2]},
				{ids.AuthServerTokenValidated, "a JWT without signature", f.unsigned()},
				{ids.AuthServerOtherTokensRefused, "a JWT that was signed with an unknown key", f.signed()},
				{ids.AuthServerOtherTokensRefused, "a token of another authorization server",
					t.Target.Settings.Authorization.OtherIssuer},
			} {
				t.Clear()
				if c.token == "" {
					continue
				}
				t.Secret(c.token)
				if r := tryAuthorization(t, "Bearer "+c.token); authorized(t, r) {
					t.Violation(c.id, "a request with "+c.what+" was served")
				}
			}
			t.Clear()
			// A server may read a hexadecimal token as a number, which has no case: that only warns.
			if other := otherCase(token); other != token {
				t.Secret(other)
				if r := tryAuthorization(t, "Bearer "+other); authorized(t, r) {
					t.Warning(ids.AuthServerTokenValidated,
						"the server served a request whose token had its capital and small letters swapped")
				}
			}
		},
	},
	{
		Name:         "auth/audience",
		Requirements: []string{ids.AuthServerAudienceValidated},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			protected(t)
			control(t)
			token, doubt := t.Target.Settings.Authorization.OtherAudience, ""
			if token == "" {
				token, doubt = otherAudience(t)
			}
			t.Clear()
			switch r := tryAuthorization(t, "Bearer "+token); {
			case !authorized(t, r):
			case doubt != "":
				t.Inconclusive("the server has served a request with a token that was asked for another resource, "+
					"but %s: set authorization.otherAudience in the configuration",
					doubt)
			default:
				t.Fail("a request with a token for another resource was served")
			}
		},
	},
	{
		Name:         "auth/expired-token",
		Requirements: []string{ids.AuthServerExpiredToken401},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			protected(t)
			if configured := t.Target.Settings.Authorization.Expired; configured != "" {
				r := tryAuthorization(t, "Bearer "+configured)
				t.Expect(r).To(HaveHTTPStatus(http.StatusUnauthorized), "with an expired token")
				judgeFailureChallenge(t, r)
				return
			}
			outlived(t)
		},
	},
	{
		Name:         "auth/narrow-token",
		Requirements: []string{ids.AuthServerInsufficientScope403, ids.AuthServerRefusalChallenge},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			protected(t)
			a := t.Target.Settings.Authorization
			if a.Narrow == "" {
				narrowed(t)
				return
			}
			if t.Target.Transport != transport.NameHTTP {
				t.Inconclusive("over HTTP+SSE the answer to a single request does not have its own HTTP status")
			}
			conn := t.Bearing("Bearer " + a.Narrow)
			begun := begin(t, conn, "")
			if a.NarrowRequest.Method != "initialize" {
				t.Assume(begun).To(HaveResult(), "for an initialize with the token whose scope is too small")
				t.Clear()
				begun = t.DoOn(conn, transport.Request{Deliberate: []string{"*"}, Body: client.Marshal(map[string]any{
					"jsonrpc": "2.0", "id": 2, "method": a.NarrowRequest.Method, "params": a.NarrowRequest.Params,
				})})
			}
			t.Expect(begun).To(HaveHTTPStatus(http.StatusForbidden), "for a request beyond the scope of its token")
			if !challenged(begun) {
				t.Violation(ids.AuthServerRefusalChallenge,
					"the answer with HTTP status 403 to a request beyond the scope of its token "+
						"has no WWW-Authenticate header")
			}
		},
	},
	{
		Name:         "auth/other-user",
		Requirements: []string{ids.SecuritySessionBoundToUser},
		Needs:        authorizedSession,
		Body: func(t *check.T) {
			protected(t)
			control(t)
			token, err := t.SecondUser()
			if err != nil {
				t.Inconclusive("%v", err)
			}
			if sub := claimOf(token, "sub"); sub != nil && sub == claimOf(t.Authorization(), "sub") {
				t.Inconclusive("both logins are of the same user, %s: log in as another one", wire.Show(sub))
			}
			other := "Bearer " + token
			if t.HTTP().SessionID() == "" {
				t.Skip("the server assigns no session ids")
			}
			if r := tryAuthorization(t, other); !authorized(t, r) {
				t.Inconclusive("the server refuses the token of the other user: it answers with %s", Describe(r))
			}
			t.Clear()
			t.Assume(t.Do(plainRequest(t))).To(BeAccepted(), "within the session with its own token")
			intruded(t, t.HTTP(), other, "the session of one user with the token of another")
			conn := t.Bearing(other)
			if authorized(t, begin(t, conn, "")) && conn.SessionID() != "" {
				intruded(t, conn, t.Authorization(), "the session of the other user with the token of the first")
			}
		},
	},
	{
		Name:         "auth/every-request",
		Requirements: []string{ids.AuthServerValidatesFirst, ids.SecuritySessionNotAuthentication},
		Needs:        authorizedSession,
		Body: func(t *check.T) {
			// Within a session that a valid token has begun, each message is judged by its own token. If the user names
			// the methods that need a token, the others need none.
			const id = ids.AuthServerValidatesFirst
			protected(t)
			control(t)
			session := t.HTTP().SessionID()
			messages := inbound(t)
			for _, authorization := range useless(t) {
				for _, m := range messages {
					t.Clear()
					r := m.request()
					r.Header, r.Deliberate = authorization.header(), []string{"*"}
					answer := t.Do(r)
					refused := t.Check(id, answer).ToNot(BeAccepted(), "for %s within the session %s", m.what,
						authorization.what)
					if !refused && ErrorIn(answer) == nil && session != "" && authorization.value == "" {
						t.Violation(ids.SecuritySessionNotAuthentication,
							"the session id alone, without a token, lets "+m.what+" pass")
					}
					if !refused && r.Method == http.MethodDelete {
						return // the session is gone
					}
				}
			}
			t.Clear()
			served(t, t.Do(messages[0].request()), id)
			if session == "" {
				t.Exercised(id)
				t.Skip("the server assigns no session ids")
			}
		},
	},
	{
		Name: "auth/refused-delete", Requirements: []string{validatesFirst}, Needs: authorizedSession,
		Body: refusedDelete,
	},
	{
		Name: "auth/refused-call", Requirements: []string{validatesFirst}, Needs: authorizedSession,
		Body: refusedCall,
	},
	{
		Name: "auth/refused-cancellation", Requirements: []string{validatesFirst}, Needs: authorizedSession,
		Body: refusedCancellation,
	},
	{
		Name:         "auth/at-the-door",
		Requirements: []string{ids.AuthServerValidatesFirst},
		Needs:        unauthorized,
		Body: func(t *check.T) {
			// Outside of a session, no message passes without a valid token either.
			protected(t)
			if t.Target.Transport != transport.NameHTTP || len(t.Target.Settings.Authorization.Methods) > 0 {
				t.Skip("not each message needs a token, or has an answer of its own")
			}
			for _, authorization := range useless(t) {
				conn := t.Bearing(authorization.value)
				for _, m := range strays() {
					t.Clear()
					t.Check(ids.AuthServerValidatesFirst, t.DoOn(conn, m.request())).ToNot(BeAccepted(),
						"for %s outside of a session %s", m.what, authorization.what)
				}
			}
		},
	},
}

// madeUp has the form of a token, and no server has issued it.
const madeUp = "mcpconform-made-up-4f1c2d7e9b3a"

// protected makes sure that the server demands authorization, and returns its answer
// to a request without any. Position 12: the page applies once the server has
// answered 401, or the user says that it is protected.
func protected(t *check.T) *transport.Response {
	a := t.Target.Settings.Authorization
	r := tryAuthorization(t, "")
	if r.Status == http.StatusUnauthorized || a.Protected || len(a.Methods) > 0 {
		return r
	}
	if t.Authorization() != "" && !authorized(t, r) && authorized(t, tryAuthorization(t, t.Authorization())) {
		return r // it serves requests with a token
	}
	t.Skip(check.NoAuthorization)
	return nil
}

// tryAuthorization makes the request that needs authorization, on a connection of its own,
// with an Authorization header unless it is empty.
func tryAuthorization(t *check.T, authorization string) *transport.Response {
	return tryAuthorizationAt(t, "", authorization)
}

func tryAuthorizationAt(t *check.T, path, authorization string) *transport.Response {
	conn := t.Bearing(authorization)
	if t.Target.Transport == transport.NameSSE {
		return t.DoOn(conn, transport.Request{Method: http.MethodGet, Path: path, Deliberate: []string{"*"}})
	}
	request := needsToken(t)
	r := begin(t, conn, path)
	if request.Method == "" || request.Method == "initialize" || ResultIn(r) == nil {
		return r
	}
	t.Clear()
	return t.DoOn(conn, transport.Request{Path: path, Deliberate: []string{"*"}, Body: rpc(wire.IntID(2), request)})
}

// needsToken returns the request, beyond initialize, that needs authorization: of the
// first method that the user names, or of the one that was refused. It has no method if
// the session itself needs authorization.
func needsToken(t *check.T) check.RPC {
	method := t.Target.Unauthorized
	if methods := t.Target.Settings.Authorization.Methods; len(methods) > 0 {
		method = methods[0]
	}
	return requestOf(t, method)
}

// requestOf returns a request whose params are such that it works, as far as the lists of the server tell.
func requestOf(t *check.T, method string) check.RPC {
	request := check.RPC{Method: method}
	switch method {
	case "tools/call":
		request.Params = map[string]any{"name": noTool, "arguments": map[string]any{}}
		for _, tool := range slowLast(t, callable(t)) {
			if arguments, ok := t.Target.Arguments(tool); ok {
				request.Params = map[string]any{"name": tool["name"], "arguments": arguments}
				break
			}
		}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		request.Params = map[string]any{"uri": append(resourceURIs(t, 1), noResource)[0]}
	case "prompts/get":
		request.Params = map[string]any{"name": noPrompt}
		if all := prompts(t); len(all) > 0 {
			arguments := make(map[string]any)
			for _, name := range argumentNames(all[0]) {
				arguments[name] = "1"
			}
			request.Params = map[string]any{"name": all[0]["name"], "arguments": arguments}
		}
	case "logging/setLevel":
		request.Params = map[string]any{"level": "info"}
	}
	return request
}

// rpc returns the text of a request.
func rpc(id wire.ID, r check.RPC) []byte {
	message := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id.String()), "method": r.Method}
	if r.Params != nil {
		message["params"] = r.Params
	}
	return client.Marshal(message)
}

// begin posts an initialize and, if that succeeds, completes the handshake. It
// returns the answer to the first.
func begin(t *check.T, conn *transport.HTTPConn, path string) *transport.Response {
	r := t.DoOn(conn, transport.Request{Path: path, Deliberate: []string{"*"}, Body: client.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
			"protocolVersion": client.Version, "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "mcpconform", "version": "1.0.0"},
		},
	})})
	if ResultIn(r) != nil {
		t.DoOn(conn, transport.Request{Path: path, Deliberate: []string{"*"},
			Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
	}
	return r
}

// authorized reports whether a request was served.
func authorized(t *check.T, r *transport.Response) bool {
	if t.Target.Transport == transport.NameSSE {
		return r.Status/100 == 2 && check.Streams(r.Header)
	}
	return ResultIn(r) != nil
}

// control returns the user's access token and makes sure that the server accepts it.
func control(t *check.T) string {
	scheme, token, _ := strings.Cut(t.Authorization(), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(scheme, "Bearer") {
		t.Inconclusive("no access token was given")
	}
	switch r := tryAuthorization(t, t.Authorization()); {
	case authorized(t, r):
	case r.Status/100 == 2 && ErrorIn(r) != nil:
		t.Inconclusive("with the given access token, %s is answered with %s: name a method that "+
			"works in authorization.methods",
			cmp.Or(needsToken(t).Method, "initialize"), Describe(r))
	default:
		t.Inconclusive("the server refuses the access token that was given: it answers with %s", Describe(r))
	}
	return token
}

// admitted fails the check of the valid token when the server no longer accepts it.
func admitted(t *check.T, x *client.Exchange) {
	if x.Head != nil && x.Head.HTTP.Status == http.StatusUnauthorized {
		t.Fail("the server accepted the token at the beginning of the session, but refuses it with HTTP status "+
			"401 for %s",
			x.Request.Msg.Method)
	}
}

// queried returns the server's path with the valid token in the query. A token
// in a URL ends up in logs: only servers on this machine are tried with it.
func queried(t *check.T) (string, bool) {
	e, _ := t.Endpoint()
	u, err := url.Parse(e.URL)
	scheme, token, _ := strings.Cut(t.Authorization(), " ")
	if err != nil || !strings.EqualFold(scheme, "Bearer") || !transport.Loopback(u.Hostname()) {
		return "", false
	}
	q := u.Query()
	q.Set("access_token", strings.TrimSpace(token))
	return (&url.URL{Path: u.Path, RawQuery: q.Encode()}).String(), true
}

// disclosed breaks a requirement if a refusal holds more than the refusal.
func disclosed(t *check.T, id string, r *transport.Response) {
	for _, e := range r.Messages {
		if e.Msg.Kind == wire.Result || e.Msg.Kind == wire.Notification || e.Msg.Kind == wire.Request {
			t.Violation(id, fmt.Sprintf("the refusal with HTTP status %d contains a message of the session", r.Status))
			return
		}
	}
	t.Exercised(id)
}

// challenged reports whether a response says how to get access.
func challenged(r *transport.Response) bool {
	return len(transport.Challenges(r.Header.Values("Www-Authenticate"))) > 0
}

// challengeOf returns the parameters of all challenges of a response by their
// lower-case name, the first of a name, and under "" the schemes.
func challengeOf(r *transport.Response) map[string]string {
	return transport.Challenges(r.Header.Values("Www-Authenticate")).Parameters()
}

// judgeFailureChallenge wants the Bearer scheme and an error that fits.
func judgeFailureChallenge(t *check.T, r *transport.Response) {
	const id = ids.AuthServerValidationFailureChallenge
	for _, c := range transport.Challenges(r.Header.Values("Www-Authenticate")) {
		if !strings.EqualFold(c.Scheme, "Bearer") {
			continue
		}
		switch code := c.Parameters["error"]; code {
		case "invalid_token":
			t.Exercised(id)
		case "":
			t.Warning(id, "the challenge for an invalid token has no error parameter")
		default:
			t.Violation(id, "the challenge for an invalid token has the error code "+wire.Quote(code, 60))
		}
		return
	}
	t.Violation(id, "the answer to an invalid token has no challenge of the scheme Bearer")
}
