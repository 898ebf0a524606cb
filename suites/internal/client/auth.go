package client

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// officialFlow is the scenario of the official tool in which a client obtains a token.
const officialFlow = "auth/metadata-default"

// flowRequirements are those that every run through the flow can judge.
var flowRequirements = []string{ids.AuthClientResourceAuthorizationRequest, ids.AuthClientResourceTokenRequest,
	ids.AuthClientResourceAlwaysSent, ids.AuthClientResourceIdentifiesServer, ids.AuthClientResourceCanonical,
	ids.AuthClientResourceMostSpecific, ids.AuthResourceHasScheme, ids.AuthResourceNoFragment,
	ids.AuthResourceLowercase, ids.AuthClientRedirectURIScheme, ids.AuthClientRedirectURIRegistered,
	ids.AuthClientStateUsed, ids.AuthClientPKCEChallenge, ids.AuthClientPKCEVerifier, ids.AuthClientPKCES256,
	ids.AuthClientTokenRequestForm, ids.AuthClientTokenRequestIssuer, ids.AuthClientRequestWithToken,
	ids.AuthClientBearerHeader, ids.AuthClientOneTokenMethod, ids.AuthClientEveryRequest,
	ids.AuthClientNoTokenInQuery, ids.AuthClientNoForeignTokens}

const unreached = "the client did not get that far in the flow; it may need a user who opens the authorization " +
	"URL in a browser"

// authScenarios are the scenarios of basic/authorization.
var authScenarios = []*client.Scenario{
	authScenario(AuthorizationBaseline, append([]string{
		ids.AuthHTTPConform, ids.AuthClientHandles401, ids.AuthClientResourceMetadata, ids.AuthClientAsMetadata,
		ids.AuthClientDynamicRegistration,
	}, flowRequirements...), func() *client.AuthorizationSetup { return &client.AuthorizationSetup{} },
		judgeAuthorizationBaseline),
	tokenAuthScenario("auth/token-basic", "auth/token-endpoint-auth-basic", authserver.AuthBasic),
	tokenAuthScenario("auth/token-post", "auth/token-endpoint-auth-post", authserver.AuthPost),
	tokenAuthScenario("auth/token-none", "auth/token-endpoint-auth-none", authserver.AuthNone),
	authScenario("auth/redirect", []string{ids.AuthClientNoForeignTokens},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Redirects: client.RedirectedMessage}
		}, func(t *client.T) {
			const id = ids.AuthClientNoForeignTokens
			switch f := t.Flow; {
			case f.Followed() != nil:
				// The text speaks of tokens that were issued elsewhere; for the target this is one.
				t.Warning(id, "the client follows a redirect to another origin and sends its access token there",
					f.Followed())
			case f.Redirected():
				t.Exercised(id)
			default:
				t.Inconclusive("the client sent no message after the handshake that could be answered with a redirect",
					id)
			}
		}),
	authScenario("auth/same-origin", []string{ids.AuthClientAsLocationFree},
		func() *client.AuthorizationSetup { return &client.AuthorizationSetup{Together: true} }, func(t *client.T) {
			judgeCompleted(t, ids.AuthClientAsLocationFree,
				"if the authorization server is on the origin of the protected server")
		}),
	authScenario("auth/metadata-url", []string{ids.AuthClientParseWWWAuthenticate}, func() *client.AuthorizationSetup {
		// Only the header says where the metadata are, among parameters whose values hold commas and quotes.
		return &client.AuthorizationSetup{Protection: server.Protection{
			MetadataPath: metadataElsewhere,
			Challenge: func(metadata, code string) []string {
				return []string{coded(`Bearer realm="mcpconform, \"protected\"", hint="a=b, c", resource_metadata="`+
					metadata+`"`, code)}
			},
		}}
	}, func(t *client.T) { judgeMetadataFound(t, metadataElsewhere) }),
	authScenario("auth/challenges", []string{ids.AuthClientParseWWWAuthenticate}, func() *client.AuthorizationSetup {
		// A response may offer several schemes, in as many lines (RFC 9110, section 11.6.1).
		return &client.AuthorizationSetup{Protection: server.Protection{
			MetadataPath: metadataElsewhere,
			Challenge: func(metadata, code string) []string {
				return []string{coded(`Bearer realm="mcpconform", resource_metadata="`+metadata+`"`, code),
					`Basic realm="staff"`}
			},
		}}
	}, func(t *client.T) { judgeMetadataFound(t, metadataElsewhere) }),
	authScenario("auth/challenge-list", []string{ids.AuthClientParseWWWAuthenticate},
		func() *client.AuthorizationSetup {
			// The same in one line, and the case of a scheme means nothing (RFC 9110, section 11.1).
			return &client.AuthorizationSetup{Protection: server.Protection{
				MetadataPath: metadataElsewhere,
				Challenge: func(metadata, code string) []string {
					return []string{coded(
						`Basic realm="staff, all of them", bearer realm="mcpconform", resource_metadata="`+metadata+`"`,
						code)}
				},
			}}
		}, func(t *client.T) { judgeMetadataFound(t, metadataElsewhere) }),
	authScenario("auth/issuer-path", []string{ids.AuthClientAsMetadataLocation}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Servers: []authserver.Options{{Issuer: "/tenant/one"}}}
	}, judgeIssuerPath),
	authScenario("auth/two-servers", []string{ids.AuthClientSelectsAs, ids.AuthClientTokenRequestIssuer},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Servers: make([]authserver.Options, 2)}
		}, func(t *client.T) {
			judgeCompleted(t, ids.AuthClientSelectsAs, "if there are two authorization servers to choose from")
		}),
	authScenario("auth/other-issuer", []string{ids.AuthClientAsMetadataIssuer}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Servers: []authserver.Options{{Metadata: func(document map[string]any) {
			document["issuer"] = otherIssuer
		}}}}
	}, func(t *client.T) {
		judgeRefused(t, ids.AuthClientAsMetadataIssuer, "the metadata of the authorization server name the issuer "+
			""+otherIssuer+", not the issuer that the client had asked for", authserver.Metadata)
	}),
	authScenario("auth/other-resource", []string{ids.AuthClientResourceMetadataCheck},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Protection: server.Protection{Metadata: func(document map[string]any) {
				document["resource"] = "https://resource.mcpconform.invalid/mcp"
			}}}
		}, func(t *client.T) {
			judgeRefused(t, ids.AuthClientResourceMetadataCheck, "the resource metadata are about another resource", "")
		}),
	authScenario("auth/state-missing", []string{ids.AuthClientStateMissingDiscarded},
		func() *client.AuthorizationSetup {
			return redirecting(func(result url.Values) { result.Del("state") })
		}, func(t *client.T) {
			judgeDiscarded(t, ids.AuthClientStateMissingDiscarded,
				"the redirect came back without the state that the client had sent")
		}),
	authScenario("auth/state-mismatch", []string{ids.AuthClientStateMismatchDiscarded},
		func() *client.AuthorizationSetup {
			return redirecting(func(result url.Values) { result.Set("state", "mcpconform-another-state") })
		}, func(t *client.T) {
			judgeDiscarded(t, ids.AuthClientStateMismatchDiscarded,
				"the redirect came back with another state than the client had sent")
		}),
	authScenario("auth/no-registration", []string{ids.AuthClientOtherClientID}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Servers: []authserver.Options{{NoRegistration: true}},
			Client: &authserver.Client{ID: registeredClient, Secret: "mcpconform-client-secret"}}
	}, judgeNoRegistration),
	authScenario("auth/lapsed", []string{ids.AuthClientHandles401, ids.AuthClientPKCEFresh, ids.AuthClientCodeOnce},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{Lapse: true, Servers: []authserver.Options{{NoRefresh: true}}}
		}, judgeLapsed),
	authScenario("auth/refresh", []string{ids.AuthClientResourceTokenRequest, ids.AuthClientRefreshReplaced},
		func() *client.AuthorizationSetup { return &client.AuthorizationSetup{Lapse: true} }, judgeRefreshed),
	authScenario("auth/odd-url", []string{ids.AuthResourceLowercase, ids.AuthResourceNoFragment,
		ids.AuthClientResourceCanonical}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{URL: func(u *url.URL) {
			u.Host, u.Fragment = "LocalHost:"+u.Port(), "start"
		}}
	}, nil),
	authScenario("auth/root", []string{ids.AuthResourceNoTrailingSlash, ids.AuthClientEveryRequest},
		func() *client.AuthorizationSetup {
			return &client.AuthorizationSetup{
				URL: func(u *url.URL) { u.Path = "" },
				Protection: server.Protection{MetadataPath: transport.WellKnownResource,
					Metadata: func(document map[string]any) {
						resource, _ := document["resource"].(string)
						document["resource"] = strings.TrimSuffix(resource, server.PathMCP)
					}},
			}
		}, judgeAuthorizedAgain),
}

// registeredClient is the id of the client that is registered beforehand.
const registeredClient = "mcpconform-registered-client"

// AuthorizationBaseline is the name of the scenario that shows whether a client seeks authorization, an optional
// feature. The other scenarios of authorization run only if it does.
const AuthorizationBaseline = "auth/flow"

// metadataElsewhere is a path of resource metadata that only the header names.
const metadataElsewhere = "/documents/about-this-resource"

// soughtAuthorization reports whether the client has asked for metadata or for anything
// at an authorization server.
func soughtAuthorization(t *client.T) bool {
	return t.Flow != nil && (len(t.Flow.Steps()) > 0 || len(t.Flow.Documents("/.well-known/")) > 0 ||
		len(t.Flow.Documents(metadataElsewhere)) > 0)
}

// unauthorized says why nothing is known of the authorization of a client that
// did not seek it, or "".
func unauthorized(t *client.T) string {
	switch {
	case soughtAuthorization(t):
		return ""
	case t.Ending.Skipped != "":
		return t.Ending.Skipped
	case len(t.Conversations) == 0:
		return "the client did not connect"
	}
	return "the client does not seek authorization when a server answers 401, which is optional"
}

func redirecting(change func(url.Values)) *client.AuthorizationSetup {
	return &client.AuthorizationSetup{Servers: []authserver.Options{{Redirect: change}}}
}

func authScenario(name string, requirements []string, setup func() *client.AuthorizationSetup,
	judge func(*client.T)) *client.Scenario {
	s := &client.Scenario{
		Name: name, Requirements: requirements, Transports: []string{transport.NameHTTP, transport.NameSSE},
		Needs: unreached, Authorization: setup, Official: officialFlow,
		After: []string{AuthorizationBaseline}, Excused: unauthorized,
		// Judge says what a client does at a server that refuses it.
		Options: func(*client.ScenarioRun) server.Options {
			return server.Options{Behaviour: server.Behaviour{HTTP: server.HTTP{Middleware: atRoot}}}
		},
		Judge: func(t *client.T) {
			if t.Flow == nil || t.Ending.Skipped != "" {
				return
			}
			if soughtAuthorization(t) {
				judgeFlow(t)
			}
			if judge != nil {
				judge(t)
			}
		},
	}
	switch name {
	case AuthorizationBaseline:
		s.After, s.Excused = nil, nil
		// Answers and notifications are messages that need a token, too.
		s.Options = func(run *client.ScenarioRun) server.Options {
			o := client.Scripted(func(a *client.Asker) { a.AskUser("authorized-ping", "ping", nil) })(run)
			o.Behaviour.HTTP.Middleware = atRoot
			return o
		}
	case "auth/lapsed":
		s.Shows = []string{ids.AuthClientStateUsed}
	case "auth/no-registration":
		s.Official = "auth/pre-registration"
	case "auth/root":
		s.Transports = overHTTP() // HTTP+SSE has a path for each of its two endpoints
		// The token outlives the session, which is lost once the client has come so far.
		s.Options = func(run *client.ScenarioRun) server.Options {
			o := losing(run)
			lose := o.Behaviour.HTTP.Middleware
			o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler { return atRoot(lose(next)) }
			return o
		}
	}
	return s
}

// tokenAuthScenario is a server whose authorization server offers one method of client
// authentication alone.
func tokenAuthScenario(name, official, method string) *client.Scenario {
	const id = ids.AuthClientTokenEndpointAuth
	s := authScenario(name, []string{id}, func() *client.AuthorizationSetup {
		return &client.AuthorizationSetup{Servers: []authserver.Options{{TokenAuth: method}}}
	}, func(t *client.T) {
		switch {
		case t.ObtainedToken():
			t.Exercised(id)
		case len(t.Flow.Steps(authserver.Token)) == 0 && controlPasses(t, id):
			t.Inconclusive("the client requests no token if the only method of client authentication is "+method, id)
		}
	})
	s.Official = official
	return s
}

// atRoot serves the protocol at the root of the server as well.
func atRoot(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "" {
			r.URL.Path = server.PathMCP
		}
		next.ServeHTTP(w, r)
	})
}

// controlPasses reports whether the client completes the flow at the ordinary
// protected server. If it does not, the requirement is inconclusive.
func controlPasses(t *client.T, id string) bool {
	switch {
	case t.Preceding == nil:
		t.Inconclusive("the scenario "+AuthorizationBaseline+" was not run, so there is nothing to compare with", id)
	case !t.Preceding.ObtainedToken():
		t.Inconclusive("the client obtains no token in the scenario "+AuthorizationBaseline+
			", so there is nothing to compare with", id)
	default:
		return true
	}
	return false
}

// judgeCompleted judges a requirement that a client meets by completing the flow.
func judgeCompleted(t *client.T, id, when string) {
	switch {
	case t.ObtainedToken():
		t.Exercised(id)
	case controlPasses(t, id) && !t.Ending.Attended:
		t.Violation(id, "the client obtains no token "+when, lastStep(t)...)
	}
}

// lastStep returns the last request of the flow.
func lastStep(t *client.T) []*wire.Event {
	all := t.Flow.Steps()
	if len(all) > 0 {
		return []*wire.Event{all[len(all)-1].Event}
	}
	if all := t.Flow.Documents(""); len(all) > 0 {
		return all[len(all)-1:]
	}
	return client.LastEvents(t.Last(), 4)
}

const otherIssuer = "https://issuer.mcpconform.invalid"

// judgeRefused judges a requirement that a client meets by going no further. first,
// if not "", is a step that it has to have taken before.
func judgeRefused(t *client.T, id, because string, first authserver.Step) {
	after := t.Flow.Steps(authserver.Registration, authserver.Authorization, authserver.Token)
	switch {
	case len(after) > 0:
		var proof []*wire.Event
		for _, s := range t.Flow.Steps(authserver.Metadata) {
			proof = append(proof, s.Event)
		}
		t.Violation(id, "the client goes on although "+because,
			append(append(proof, t.Flow.Documents("")...), after[0].Event)...)
	case first != "" && len(t.Flow.Steps(first)) == 0, len(t.Flow.Documents("")) == 0:
	case controlPasses(t, id):
		t.Exercised(id)
	}
}

// judgeDiscarded judges whether the client redeems a code that it has to discard.
func judgeDiscarded(t *client.T, id, because string) {
	var asked *client.Step
	for _, s := range t.Flow.Steps(authserver.Authorization) {
		if s.Answer["code"] != nil && s.Values.Get("state") != "" {
			asked = &s
		}
	}
	switch redeemed := t.Flow.Steps(authserver.Token); {
	case asked == nil && len(t.Flow.Steps(authserver.Authorization)) > 0:
		t.Inconclusive("the client sends no state, so it cannot check the one in the redirect", id)
	case asked == nil:
	case len(redeemed) > 0:
		t.Violation(id, "the client redeems a code although "+because, asked.Event, redeemed[0].Event)
	case controlPasses(t, id):
		t.Exercised(id)
	}
}

// coded adds the error code to a challenge, if there is one.
func coded(challenge, code string) string {
	if code == "" {
		return challenge
	}
	return challenge + `, error="` + code + `"`
}

// judgeMetadataFound judges whether the client asks for the metadata at the path that
// only the WWW-Authenticate header names.
func judgeMetadataFound(t *client.T, path string) {
	const id = ids.AuthClientParseWWWAuthenticate
	switch {
	case len(t.Flow.Documents(path)) > 0:
		t.Exercised(id)
	case soughtAuthorization(t), !t.Ending.Attended && controlPasses(t, id):
		t.Violation(id, "the client never asks for the resource metadata at the URL that the WWW-Authenticate "+
			"header names", append(client.LastEvents(t.Last(), 2), lastStep(t)...)...)
	}
}

func judgeIssuerPath(t *client.T) {
	const id = ids.AuthClientAsMetadataLocation
	further := func(s client.Step) bool { return s.Server != 0 } // the others have no path
	others := slices.DeleteFunc(t.Flow.Steps(authserver.Other), further)
	switch {
	case len(slices.DeleteFunc(t.Flow.Steps(authserver.Metadata), further)) > 0:
		t.Exercised(id)
	case len(others) > 0:
		t.Violation(id, "the client never asks for the metadata at "+t.Flow.MetadataPath(), others[0].Event)
	}
}

func judgeNoRegistration(t *client.T) {
	const id = ids.AuthClientOtherClientID
	for _, s := range t.Flow.Steps(authserver.Authorization) {
		if s.Client == registeredClient {
			t.Exercised(id)
			return
		}
	}
	for _, s := range t.Flow.Steps(authserver.Other) {
		if s.Method == http.MethodPost && strings.HasSuffix(s.Path, "/register") {
			t.Violation(id, "the client registers at a guessed endpoint, which the metadata do not name, instead "+
				"of using the client id that it was given", s.Event)
			return
		}
	}
	// A client may get its id from anywhere.
	t.Inconclusive("the client did not use the client id that MCPCONFORM_CLIENT_ID holds; "+
		"if it reads its client id from elsewhere, set it there to "+registeredClient, id)
}

// judgeLapsed judges what the client does when its token expires in the middle of a
// session.
func judgeLapsed(t *client.T) {
	for lapse := range t.Flow.Lapses() {
		if !judgeLapse(t, lapse) {
			return
		}
	}
}

// judgeLapse judges what the client does after one lapse, and reports whether it asked for authorization again.
func judgeLapse(t *client.T, lapse int) bool {
	const again, fresh = ids.AuthClientHandles401, ids.AuthClientPKCEFresh
	first, second := sought(t.Flow, 0), sought(t.Flow, lapse+1)
	if first == nil || second == nil {
		when := "in the middle of a session"
		if lapse > 0 {
			when = "a second time in a session"
		}
		if t.Ending.Exit != nil && controlPasses(t, again) {
			t.Warning(again, "the client asks for no new token when the server answers 401 "+when,
				client.LastEvents(t.Last(), 4)...)
		}
		t.Inconclusive("the client did not ask for authorization again", fresh)
		return false
	}
	t.Exercised(again)
	if !t.HasFindings(ids.AuthClientCodeOnce) {
		t.Exercised(ids.AuthClientCodeOnce)
	}
	// The requests before are those after each earlier lapse as well.
	for before := range lapse + 1 {
		first = sought(t.Flow, before)
		if challenge := first.Values.Get("code_challenge"); challenge != "" {
			t.Check(fresh, challenge == second.Values.Get("code_challenge"), first.Event, second.Event).
				To(BeFalseBecause("two authorization requests carry the same code challenge"))
		}
		// A state that can be guessed does not protect (basic/authorization#open-redirection).
		if state := first.Values.Get("state"); state != "" && state == second.Values.Get("state") {
			t.Warning(ids.AuthClientStateUsed, "two authorization requests carry the same state", first.Event,
				second.Event)
		}
	}
	return true
}

// judgeAuthorizedAgain judges whether a client that begins a new session in place of a lost one shows its token
// there, too (basic/authorization#token-requirements). A client that has asked for a new token since may have started
// afresh, without its old state.
func judgeAuthorizedAgain(t *client.T) {
	const id = ids.AuthClientEveryRequest
	all := losses(t)
	if len(all) == 0 || !slices.ContainsFunc(t.Flow.Presented(), func(s client.Shown) bool { return s.Good }) {
		return
	}
	session, lost := all[0].session, all[0].head
	var bare []*wire.Event
	for _, x := range begunSince(t, session, lost) {
		carrier := t.ConversationOf(x).Carrier(x.Request)
		switch {
		case carrier == nil:
		case len(carrier.Request.HTTP.Header.Values("Authorization")) == 0:
			bare = append(bare, carrier.Request, x.Request)
		case soughtSince(t, lost):
			t.Inconclusive("the client sought authorization anew when its session was lost", id)
			return
		default:
			t.Exercised(id)
			return
		}
	}
	if len(bare) > 0 && !soughtSince(t, lost) {
		t.Violation(id, "after a lost session, the client began a new one without the access token that it has",
			append([]*wire.Event{lost}, bare[:2]...)...)
	}
}

// soughtSince reports whether the client has sent a request to an authorization server after an
// event.
func soughtSince(t *client.T, e *wire.Event) bool {
	return slices.ContainsFunc(t.Flow.Steps(authserver.Authorization, authserver.Token),
		func(s client.Step) bool { return s.Event.At >= e.At })
}

// maxRefusals is how many refused requests a client may send without seeking
// authorization.
const maxRefusals = 20

// judgeAuthorizationBaseline judges the way from the first refusal to the session.
func judgeAuthorizationBaseline(t *client.T) {
	const handles, metadata = ids.AuthClientHandles401, ids.AuthClientResourceMetadata
	refused := 0
	var head *wire.Event
	for _, c := range t.Conversations {
		for _, x := range c.HTTP {
			if x.Status() == http.StatusUnauthorized {
				refused++
				head = x.Head
			}
		}
	}
	switch {
	case refused == 0:
		return // it has sent no request
	case !soughtAuthorization(t) && refused > maxRefusals:
		t.Violation(handles,
			fmt.Sprintf("the client has sent %d requests that were refused with 401, and does not seek authorization",
				refused), head)
		return
	case !soughtAuthorization(t) && t.Authorizes && !t.Ending.Attended:
		for _, id := range []string{handles, ids.AuthHTTPConform} {
			t.Violation(id, "the client is meant to log in, and does not seek authorization when the server "+
				"answers 401. "+
				endedAt(t), head)
		}
		return
	case !soughtAuthorization(t):
		t.Inconclusive(unauthorized(t), t.Scenario.Requirements...)
		return
	}
	t.Exercised(handles, ids.AuthHTTPConform)
	about := t.Flow.Documents(transport.WellKnownResource)
	switch {
	case len(about) > 0 && len(t.Flow.Steps()) > 0:
		t.Exercised(metadata)
	case len(about) == 0:
		t.Violation(metadata, "the client looks for an authorization server without asking for the resource metadata",
			lastStep(t)...)
	}
	judgeServerMetadata(t)
	judgeRegistration(t)
	judgeTokenless(t)
}

// guessable are names that many servers give their endpoints. Ours have others.
var guessable = []string{"authorize", "token", "register"}

func judgeServerMetadata(t *client.T) {
	const id = ids.AuthClientAsMetadata
	known := len(t.Flow.Steps(authserver.Metadata)) > 0
	used := t.Flow.Steps(authserver.Registration, authserver.Authorization, authserver.Token)
	for _, s := range t.Flow.Steps(authserver.Other) {
		if slices.Contains(guessable, s.Path[strings.LastIndexByte(s.Path, '/')+1:]) {
			t.Violation(id, "the client uses "+s.Method+" "+wire.Quote(s.Path, 80)+", which the metadata do not name",
				s.Event)
		}
	}
	if known && len(used) > 0 {
		t.Exercised(id)
	}
}

func judgeRegistration(t *client.T) {
	const id = ids.AuthClientDynamicRegistration
	registrations := t.Flow.Steps(authserver.Registration)
	for _, s := range registrations {
		t.Check(id, s.Status/100 == 2, s.Event).
			To(BeTrueBecause("the registration request was refused with HTTP status %d: %s", s.Status,
				wire.Show(s.Answer["error_description"])))
	}
	if len(registrations) == 0 && len(t.Flow.Steps(authserver.Authorization)) > 0 {
		t.Inconclusive("the client has a client id of its own and does not register", id)
	}
}

// judgeFlow judges the single requests of the flow, and the use of the tokens.
func judgeFlow(t *client.T) {
	for _, s := range t.Flow.Steps(authserver.Registration) {
		for _, r := range wire.Items(s.Body, "redirect_uris") {
			judgeRedirect(t, r, s.Event)
		}
	}
	for _, s := range t.Flow.Steps(authserver.Authorization) {
		judgeAuthorization(t, s)
	}
	for _, s := range t.Flow.Steps(authserver.Token) {
		judgeTokenRequest(t, s)
	}
	judgeUse(t)
}

func judgeRedirect(t *client.T, v any, e *wire.Event) {
	text, _ := v.(string)
	u, err := url.Parse(text)
	ok := err == nil && (u.Scheme == "https" || u.Scheme == "http" && transport.Loopback(u.Hostname()))
	t.Check(ids.AuthClientRedirectURIScheme, ok, e).
		To(BeTrueBecause("the redirect URI %s neither points at localhost nor uses HTTPS", wire.Quote(text, 100)))
}

// isVerifier reports whether a code verifier has the form that PKCE prescribes
// (RFC 7636, section 4.1).
func isVerifier(s string) bool {
	return len(s) >= 43 && len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool {
		return !isBase64URL(r) && r != '.' && r != '~'
	}) < 0
}

// isS256Challenge reports whether a code challenge has the form of a SHA-256
// (RFC 7636, section 4.2).
func isS256Challenge(s string) bool {
	return len(s) == 43 && strings.IndexFunc(s, func(r rune) bool { return !isBase64URL(r) }) < 0
}

func isBase64URL(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

func judgeAuthorization(t *client.T, s client.Step) {
	judgeResourceParameter(t, s, ids.AuthClientResourceAuthorizationRequest)
	const challenged = ids.AuthClientPKCEChallenge
	if t.Check(challenged, s).To(haveParameter("code_challenge")) {
		formed := isVerifier // a plain challenge is the verifier itself
		if t.Check(ids.AuthClientPKCES256, s).To(haveParameter("code_challenge_method", "S256"),
			"although S256 is offered") {
			formed = isS256Challenge
		}
		t.Check(challenged, formed(s.Values.Get("code_challenge")), s.Event).
			To(BeTrueBecause("the code_challenge does not have the form that PKCE prescribes"))
	}
	t.Check(ids.AuthClientStateUsed, s).To(haveParameter("state"))
	redirect := s.Values.Get("redirect_uri")
	if redirect != "" {
		judgeRedirect(t, redirect, s.Event)
	}
	for _, r := range t.Flow.Steps(authserver.Registration) {
		if r.Client == "" || r.Client != s.Client || r.Server != s.Server || redirect == "" {
			continue
		}
		ok := slices.ContainsFunc(wire.Items(r.Body, "redirect_uris"), func(v any) bool {
			text, _ := v.(string)
			return authserver.SameRedirect(text, redirect)
		})
		t.Check(ids.AuthClientRedirectURIRegistered, ok, r.Event, s.Event).
			To(BeTrueBecause("the redirect URI %s is not registered", wire.Quote(redirect, 100)))
	}
}

func judgeTokenRequest(t *client.T, s client.Step) {
	judgeResourceParameter(t, s, ids.AuthClientResourceTokenRequest)
	const form = ids.AuthClientTokenRequestForm
	t.Check(form, s.Method == http.MethodPost, s.Event).To(BeTrueBecause("the token request is a %s, not a POST",
		s.Method))
	t.Check(form, s.InQuery,
		s.Event).To(BeFalseBecause("the parameters of the token request are in the query of the URI, not in the body"))
	judgeTokenIssuer(t, s)
	judgeCredentials(t, s)
	judgeCodeOnce(t, s)
	if s.Values.Get("grant_type") != "authorization_code" {
		return
	}
	const id = ids.AuthClientPKCEVerifier
	verifier := s.Values.Get("code_verifier")
	for _, a := range t.Flow.Steps(authserver.Authorization) {
		challenge := a.Values.Get("code_challenge")
		if a.Server != s.Server || a.Answer["code"] != s.Values.Get("code") || challenge == "" {
			continue
		}
		ok := authserver.Challenge(verifier) == challenge ||
			a.Values.Get("code_challenge_method") != "S256" && verifier == challenge
		if t.Check(id, s, a.Event).To(haveParameter("code_verifier")) &&
			t.Check(id, ok, a.Event, s.Event).To(BeTrueBecause("the code_verifier does not match the code_challenge")) {
			t.Check(id, isVerifier(verifier),
				s.Event).To(BeTrueBecause("the code_verifier does not have the form that PKCE prescribes"))
		}
	}
}

// judgeCredentials judges how a client that got a secret at its registration
// authenticates itself (OAuth 2.1, sections 2.4 and 3.2.1).
func judgeCredentials(t *client.T, s client.Step) {
	const id = ids.AuthClientTokenEndpointAuth
	if len(s.Auth) > 1 {
		t.Violation(id, "the token request authenticates the client in more than one way: "+strings.Join(s.Auth, ", "),
			s.Event)
		return
	}
	for _, r := range t.Flow.Steps(authserver.Registration) {
		granted, _ := r.Answer["token_endpoint_auth_method"].(string)
		if r.Client == "" || r.Client != s.Client && s.Client != "" || r.Server != s.Server ||
			r.Answer["client_secret"] == nil {
			continue
		}
		asked, _ := r.Body["token_endpoint_auth_method"].(string)
		if asked == "" {
			asked = authserver.AuthBasic // (RFC 7591, section 2)
		}
		switch {
		case len(s.Auth) == 0 && asked == granted:
			t.Violation(id, "the token request does not authenticate the client, which got a secret at its "+
				"registration", r.Event, s.Event)
		case len(s.Auth) == 0:
			t.Warning(id,
				"the token request does not authenticate the client, although the authorization server has given "+
					"it a secret and the method "+granted,
				r.Event, s.Event)
		case s.Auth[0] != granted:
			t.Warning(id, "the client authenticates itself by "+s.Auth[0]+"; the authorization server offers "+granted,
				r.Event, s.Event)
		default:
			t.Exercised(id)
		}
		return
	}
}

// judgeCodeOnce judges whether a code is redeemed that was redeemed before. A request
// that was refused may be repeated with another method of client authentication.
func judgeCodeOnce(t *client.T, s client.Step) {
	code := s.Values.Get("code")
	for _, earlier := range t.Flow.Steps(authserver.Token) {
		if code != "" && earlier.At.Before(s.At) && earlier.Server == s.Server && earlier.Values.Get("code") == code &&
			earlier.Status/100 == 2 {
			t.Violation(ids.AuthClientCodeOnce, "the client redeems a code a second time, after it got a token for it",
				earlier.Event, s.Event)
			return
		}
	}
}

// judgeResourceParameter judges the parameter resource (RFC 8707, section 2).
func judgeResourceParameter(t *client.T, s client.Step, id string) {
	t.Check(ids.AuthClientResourceAlwaysSent, s).To(haveParameter("resource"),
		"although it is required even if the metadata do not mention it")
	if !t.Check(id, s).To(haveParameter("resource")) {
		return
	}
	for _, v := range s.Values["resource"] {
		judgeResourceURI(t, v, s.Event)
	}
}

// judgeResourceURI judges what the client takes for the canonical URI of the server
// (basic/authorization#canonical-server-uri).
func judgeResourceURI(t *client.T, text string, e *wire.Event) {
	shown := "the resource " + wire.Quote(text, 120)
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		t.Violation(ids.AuthResourceHasScheme, shown+" has no scheme and host", e)
		return
	}
	t.Exercised(ids.AuthResourceHasScheme)
	t.Check(ids.AuthResourceNoFragment, strings.Contains(text, "#"), e).To(BeFalseBecause("%s has a fragment", shown))
	scheme, rest, _ := strings.Cut(text, "://")
	host, _, _ := strings.Cut(rest, "/")
	t.Check(ids.AuthResourceLowercase, scheme == strings.ToLower(scheme) && host == strings.ToLower(host), e).
		To(BeTrueBecause("%s has capitals in scheme or host", shown))
	own := t.Flow.Endpoint()
	path, mine := strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(own.Path, "/")
	identifies := strings.EqualFold(u.Scheme, own.Scheme) && u.Port() == own.Port() &&
		transport.Loopback(u.Hostname()) &&
		(path == mine || strings.HasPrefix(mine, path+"/"))
	if !t.Check(ids.AuthClientResourceIdentifiesServer, identifies, e).
		To(BeTrueBecause("%s is not the server to which the client sends the token, %s", shown,
			wire.Quote(own.String(), 120))) {
		return
	}
	t.Check(ids.AuthClientResourceCanonical, u.RawQuery == "" && u.User == nil && u.Path == u.EscapedPath(), e).
		To(BeTrueBecause("%s is not the canonical URI of the server", shown))
	t.Check(ids.AuthClientResourceMostSpecific, path == mine,
		e).To(BeTrueBecause("%s leaves out the path of the server", shown))
	if !strings.HasSuffix(own.Path, "/") {
		t.Check(ids.AuthResourceNoTrailingSlash, strings.HasSuffix(text, "/"),
			e).To(BeFalseBecause("%s ends in a slash", shown))
	}
}

// judgeUse judges how the client uses the tokens.
func judgeUse(t *client.T) {
	shown := t.Flow.Presented()
	issued := len(t.Flow.Tokens()) > 0
	evidence := client.LastEvents(t.Last(), 2)
	used := slices.ContainsFunc(shown, func(s client.Shown) bool { return s.Ours })
	elsewhereShown := slices.ContainsFunc(shown,
		func(s client.Shown) bool { return len(s.Places) > 0 && !s.Ours && s.Token == "" })
	if issued && (used || elsewhereShown) {
		t.Exercised(ids.AuthClientRequestWithToken)
	} else if issued && t.Ending.Exit != nil {
		t.Violation(ids.AuthClientRequestWithToken, "a token was issued, but no request carries it", evidence...)
	}
	for _, s := range shown {
		if s.Token != "" && !s.Ours && !configured(t) {
			t.Violation(ids.AuthClientNoForeignTokens,
				"the client sends a token that was not issued by the authorization server of this server", evidence...)
		}
		if !issued {
			continue
		}
		for _, place := range s.Places {
			if !s.Ours && place != client.InAuthorization {
				t.Violation(ids.AuthClientBearerHeader, "the client sends its token in "+place, evidence...)
			}
			if place == "the query" {
				t.Violation(ids.AuthClientNoTokenInQuery, "the client sends its token in the query of a URI",
					evidence...)
			}
		}
		if s.Ours {
			t.Exercised(ids.AuthClientBearerHeader, ids.AuthClientNoForeignTokens, ids.AuthClientNoTokenInQuery)
			t.Check(ids.AuthClientOneTokenMethod, len(s.Places) == 1, evidence...).
				To(BeTrueBecause("the client sends its token in %s", strings.Join(s.Places, " and in ")))
		}
	}
}

// configured reports whether the client sends an Authorization header to open
// servers as well, because it is configured to do so.
func configured(t *client.T) bool {
	if t.Baseline == nil {
		return false
	}
	for _, c := range t.Baseline.Conversations {
		for _, e := range c.Events {
			if e.Kind == wire.KindHTTPRequest && e.HTTP.Header.Get("Authorization") != "" {
				return true
			}
		}
	}
	return false
}

// sought returns the first request for authorization after a number of lapses and before the next one, or nil. A user
// agent may load the same address several times.
func sought(f *client.Flow, lapses int) *client.Step {
	for _, s := range f.Steps(authserver.Authorization) {
		if s.Lapses == lapses {
			return &s
		}
	}
	return nil
}
