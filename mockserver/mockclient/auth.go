package mockclient

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The scenarios in which faults of authorization show.
const (
	flow          = "auth/flow"
	lapsed        = "auth/lapsed"
	oddURL        = "auth/odd-url"
	withoutSecret = "The token request lacks the secret that the client got at its registration"
)

var authFaults = slices.Concat(soughtFaults, discoveryFaults, resourceFaults, codeFaults, tokenEndpointFaults,
	tokenUseFaults)

// soughtFaults are about whether the client seeks authorization at all.
var soughtFaults = []Fault{
	{
		ID: "auth.unsought", Requirement: "auth.http-conform", Transports: overHTTP, Scenario: flow,
		Summary: "A client that is meant to seek authorization ends when it is refused with 401.",
		Apply:   withoutAuthorization, Collateral: []string{"auth.client.handles-401"},
	},
	{
		ID: "auth.repeats-refused", Requirement: "auth.client.handles-401", Transports: overHTTP, Scenario: flow,
		Summary: "initialize, refused with 401, is repeated 30 times in place of seeking authorization.",
		Apply:   repeatingRefused,
	},
	{
		ID: "auth.lapsed-ignored", Requirement: "auth.client.handles-401", Transports: overHTTP, Scenario: lapsed,
		WarnOnly: true, Form: mockserver.InSequence,
		Summary: "No new token is sought when the server answers 401 in the middle of a session.",
		Apply:   seekingTokens(1),
	},
	{
		ID: "auth.lapsed-again-ignored", Requirement: "auth.client.handles-401", Transports: overHTTP, Scenario: lapsed,
		WarnOnly: true, Form: mockserver.InSequence,
		Summary: "No new token is sought when the server answers 401 a second time in a session.",
		Apply:   seekingTokens(2),
	},
}

// seekingTokens ends the client when it needs more tokens than a number.
func seekingTokens(most int) apply {
	return roundTripping(func(next http.RoundTripper) http.RoundTripper {
		redeemed := 0
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if redeemed == most {
				return nil, errDead
			}
			if stepOf(r) == tokenRequest {
				redeemed++
			}
			return next.RoundTrip(r)
		})
	})
}

// discoveryFaults are about the way to the authorization server and the registration there.
var discoveryFaults = []Fault{
	{
		ID: "auth.guessed-server", Requirement: "auth.client.resource-metadata", Transports: overHTTP, Scenario: flow,
		Summary: "The client takes the protected server for its own authorization server, and asks for no resource metadata.",
		Apply:   detouring("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"),
	},
	{
		ID: "auth.guessed-endpoint", Requirement: "auth.client.as-metadata", Transports: overHTTP, Scenario: flow,
		Summary: "The client registers at /register, whatever the metadata name.",
		Apply:   documents(func(_ *http.Request, document object) { registersAtRoot(document) }),
	},
	{
		ID: "auth.well-known-url-only", Requirement: "auth.client.parse-www-authenticate", Transports: overHTTP,
		Scenario: "auth/metadata-url",
		Summary:  "The client looks for the resource metadata at the well-known URL alone.",
		Apply:    detouring("/documents/", "/.well-known/oauth-protected-resource"),
	},
	{
		ID: "auth.well-known-url-among-challenges", Requirement: "auth.client.parse-www-authenticate",
		Transports: overHTTP, Scenario: "auth/challenges",
		Summary: "The client reads no resource_metadata where a second field offers another scheme.",
		Apply:   detouring("/documents/", "/.well-known/oauth-protected-resource/mcp"),
	},
	{
		ID: "auth.well-known-url-among-listed", Requirement: "auth.client.parse-www-authenticate", Transports: overHTTP,
		Scenario: "auth/challenge-list",
		Summary:  "The client reads no resource_metadata where the field lists another scheme before.",
		Apply:    detouring("/documents/", "/.well-known/oauth-protected-resource/mcp"),
	},
	{
		ID: "auth.issuer-path-first", Requirement: "auth.client.as-metadata-location", Transports: overHTTP,
		Scenario: "auth/issuer-path",
		Summary:  "The well-known part stands behind the path of the issuer.",
		Apply: detouring("/.well-known/oauth-authorization-server/tenant",
			"/tenant/one/.well-known/oauth-authorization-server"),
	},
	{
		ID: "auth.issuer-not-compared", Requirement: "auth.client.as-metadata-issuer", Transports: overHTTP,
		Scenario: "auth/other-issuer",
		Summary:  "Metadata that name another issuer are used.",
		Apply: documents(func(r *http.Request, document object) {
			if document["issuer"] != nil {
				document["issuer"] = "http://" + r.URL.Host +
					strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
			}
		}),
	},
	{
		ID: "auth.resource-not-compared", Requirement: "auth.client.resource-metadata-check", Transports: overHTTP,
		Scenario: "auth/other-resource",
		Summary:  "Metadata of another resource are used.",
		Apply: documents(func(r *http.Request, document object) {
			if document["resource"] != nil {
				document["resource"] = "http://" + r.URL.Host + "/mcp"
			}
		}),
	},
	{
		ID: "auth.one-server-only", Requirement: "auth.client.selects-as", Transports: overHTTP,
		Scenario: "auth/two-servers",
		Summary:  "The client gives up if there are two authorization servers to choose from.",
		Apply: documents(func(_ *http.Request, document object) {
			if servers, _ := document["authorization_servers"].(list); len(servers) > 1 {
				document["authorization_servers"] = list{}
			}
		}),
	},
	{
		ID: "auth.other-origin-only", Requirement: "auth.client.as-location-free", Transports: overHTTP,
		Scenario: "auth/same-origin",
		Summary:  "The client gives up if the authorization server is on the origin of the protected server.",
		Apply: documents(func(r *http.Request, document object) {
			if servers, _ := document["authorization_servers"].(list); slices.Contains(servers,
				any("http://"+r.URL.Host)) {
				document["authorization_servers"] = list{}
			}
		}),
	},
	{
		ID: "auth.registration-without-redirects", Requirement: "auth.client.dynamic-registration",
		Transports: overHTTP, Scenario: flow,
		Summary: "The registration has no redirect_uris.",
		Apply:   registering(func(document object) { delete(document, "redirect_uris") }),
	},
	{
		ID: "auth.guessed-registration", Requirement: "auth.client.other-client-id", Transports: overHTTP,
		Scenario: "auth/no-registration",
		Summary:  "If the metadata name no registration_endpoint, the client registers at /register.",
		Apply: documents(func(_ *http.Request, document object) {
			if document["registration_endpoint"] == nil {
				registersAtRoot(document)
			}
		}),
	},
	{
		ID: "auth.other-redirect-scheme", Requirement: "auth.client.redirect-uri-scheme", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The redirect URI is http on another host.",
		Apply: all(
			registering(func(document object) {
				document["redirect_uris"] = list{"http://client.example.com/callback"}
			}),
			requested(set("redirect_uri", "http://client.example.com/callback")),
		),
	},
	{
		ID: "auth.unregistered-redirect", Requirement: "auth.client.redirect-uri-registered", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The redirect URI of the authorization request is not one of those that were registered.",
		Apply:    requested(set("redirect_uri", "http://127.0.0.1:33418/other")),
	},
}

// resourceFaults are about the parameter resource.
var resourceFaults = []Fault{
	{
		ID: "auth.authorization-without-resource", Requirement: "auth.client.resource-authorization-request",
		Transports: overHTTP, Scenario: flow,
		Summary: "The authorization request has no resource.",
		Apply:   requested(without("resource")), Collateral: []string{"auth.client.resource-always-sent"},
	},
	{
		ID: "auth.token-without-resource", Requirement: "auth.client.resource-token-request", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The token request has no resource.",
		Apply:    redeemed(without("resource")), Collateral: []string{"auth.client.resource-always-sent"},
	},
	{
		ID: "auth.refresh-without-resource", Requirement: "auth.client.resource-token-request", Transports: overHTTP,
		Scenario: "auth/refresh", Form: mockserver.InSequence,
		Summary: "The token request with a refresh token has no resource.",
		Apply: redeemed(func(form url.Values) {
			if form.Get("grant_type") == "refresh_token" {
				form.Del("resource")
			}
		}),
		Collateral: []string{"auth.client.resource-always-sent"},
	},
	{
		ID: "auth.second-refresh-without-resource", Requirement: "auth.client.resource-token-request",
		Transports: overHTTP,
		Scenario:   "auth/refresh", Form: mockserver.InSequence,
		Summary: "The second token request with a refresh token has no resource.",
		Apply: func(c *client.Standalone) {
			refreshed := false
			redeemed(func(form url.Values) {
				if form.Get("grant_type") == "refresh_token" {
					if refreshed {
						form.Del("resource")
					}
					refreshed = true
				}
			})(c)
		},
		Collateral: []string{"auth.client.resource-always-sent"},
	},
	{
		ID: "auth.resource-if-supported", Requirement: "auth.client.resource-always-sent", Transports: overHTTP,
		Scenario:   flow,
		Summary:    "The requests have no resource, since the metadata do not tell that it is supported.",
		Apply:      all(requested(without("resource")), redeemed(without("resource"))),
		Collateral: []string{"auth.client.resource-authorization-request", "auth.client.resource-token-request"},
	},
	{
		ID: "auth.resource-elsewhere", Requirement: "auth.client.resource-identifies-server", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The resource is another server.",
		Apply:    resource(func(string) string { return "https://mcp.example.com/mcp" }),
	},
	{
		ID: "auth.resource-with-query", Requirement: "auth.client.resource-canonical", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The resource has a query.",
		Apply:    resource(func(uri string) string { return uri + "?session=1" }),
	},
	{
		ID: "auth.resource-without-path", Requirement: "auth.client.resource-most-specific", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The resource lacks the path of the server.",
		Apply:    resource(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") }),
	},
	{
		ID: "auth.resource-without-scheme", Requirement: "auth.resource.has-scheme", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The resource has no scheme.",
		Apply:    resource(func(uri string) string { return strings.TrimPrefix(uri, "http://") }),
	},
	{
		ID: "auth.resource-with-fragment", Requirement: "auth.resource.no-fragment", Transports: overHTTP,
		Scenario: oddURL,
		Summary:  "The resource has the fragment of the URL that the client was given.",
		Apply:    resource(func(uri string) string { return uri + "#start" }),
	},
	{
		ID: "auth.resource-in-capitals", Requirement: "auth.resource.lowercase", Transports: overHTTP, Scenario: oddURL,
		Summary: "The host of the resource is written with capitals.",
		Apply:   resource(func(uri string) string { return strings.Replace(uri, "localhost", "LocalHost", 1) }),
	},
	{
		ID: "auth.resource-with-slash", Requirement: "auth.resource.no-trailing-slash", Transports: overHTTP,
		Scenario: "auth/root",
		Summary:  "The resource ends in a slash, which the URL that the client was given does not.",
		Apply:    resource(func(uri string) string { return uri + "/" }),
	},
}

// codeFaults are about PKCE and state.
var codeFaults = []Fault{
	{
		ID: "auth.no-challenge", Requirement: "auth.client.pkce-challenge", Transports: overHTTP, Scenario: flow,
		Summary: "The authorization request has no code_challenge.",
		Apply:   requested(without("code_challenge")),
	},
	{
		ID: "auth.short-challenge", Requirement: "auth.client.pkce-challenge", Transports: overHTTP, Scenario: flow,
		Summary: "The code_challenge has five characters.",
		Apply:   requested(set("code_challenge", "short")), Collateral: []string{"auth.client.pkce-verifier"},
	},
	{
		ID: "auth.plain-challenge", Requirement: "auth.client.pkce-s256", Transports: overHTTP, Scenario: flow,
		Summary: "The code_challenge_method is plain, although S256 is offered.",
		Apply:   plainChallenge(set("code_challenge_method", "plain")),
	},
	{
		ID: "auth.challenge-without-method", Requirement: "auth.client.pkce-s256", Transports: overHTTP, Scenario: flow,
		Summary: "The authorization request has no code_challenge_method, which stands for plain.",
		Apply:   plainChallenge(without("code_challenge_method")),
	},
	{
		ID: "auth.no-verifier", Requirement: "auth.client.pkce-verifier", Transports: overHTTP, Scenario: flow,
		Summary: "The token request has no code_verifier.",
		Apply:   redeemed(without("code_verifier")),
	},
	{
		ID: "auth.other-verifier", Requirement: "auth.client.pkce-verifier", Transports: overHTTP, Scenario: flow,
		Summary: "The code_verifier does not match the code_challenge.",
		Apply:   redeemed(set("code_verifier", strings.Repeat("v", 43))),
	},
	{
		ID: "auth.same-challenge", Requirement: "auth.client.pkce-fresh", Transports: overHTTP, Scenario: lapsed,
		Form:    mockserver.InSequence,
		Summary: "A second authorization request carries the code_challenge of the first.",
		Apply:   sameChallenge,
	},
	{
		ID: "auth.no-state", Requirement: "auth.client.state-used", Transports: overHTTP, Scenario: flow,
		Summary: "The authorization request has no state.",
		Apply:   stateAs(func(string) string { return "" }),
	},
	{
		ID: "auth.same-state", Requirement: "auth.client.state-used", Transports: overHTTP, Scenario: lapsed,
		Form:    mockserver.InSequence,
		Summary: "A second authorization request carries the state of the first.",
		Apply:   stateAs(func(string) string { return "constant" }),
	},
	{
		ID: "auth.state-not-missed", Requirement: "auth.client.state-missing-discarded", Transports: overHTTP,
		Scenario: "auth/state-missing",
		Summary:  "A code is redeemed that came back without the state.",
		Apply:    stateAs(func(state string) string { return state }),
	},
	{
		ID: "auth.state-not-compared", Requirement: "auth.client.state-mismatch-discarded", Transports: overHTTP,
		Scenario: "auth/state-mismatch",
		Summary:  "A code is redeemed that came back with another state.",
		Apply:    stateAs(func(state string) string { return state }),
	},
}

// tokenEndpointFaults are about the token request.
var tokenEndpointFaults = []Fault{
	{
		ID: "auth.token-get", Requirement: "auth.client.token-request-form", Transports: overHTTP, Scenario: flow,
		Summary: "The token request is a GET.",
		Apply: seeking(tokenRequest, func(r *http.Request) {
			toQuery(r)
			r.Method = http.MethodGet
		}),
	},
	{
		ID: "auth.token-parameters-in-query", Requirement: "auth.client.token-request-form", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The parameters of the token request are in the query.",
		Apply:    seeking(tokenRequest, toQuery),
	},
	{
		ID: "auth.code-twice", Requirement: "auth.client.code-once", Transports: overHTTP, Scenario: lapsed,
		Summary: "Each code is redeemed a second time.",
		Apply: roundTripping(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if stepOf(r) != tokenRequest {
					return next.RoundTrip(r)
				}
				body, _ := io.ReadAll(r.Body)
				setBody(r, body)
				resp, err := next.RoundTrip(r)
				if err != nil {
					return resp, err
				}
				_ = reread(resp)
				again := r.Clone(r.Context())
				setBody(again, body)
				if second, err := next.RoundTrip(again); err == nil {
					_ = reread(second)
				}
				return resp, nil
			})
		}),
	},
	{
		ID: "auth.no-secret-in-form", Requirement: "auth.client.token-endpoint-auth", Transports: overHTTP,
		Scenario: "auth/token-post",
		Summary:  withoutSecret + ", where client_secret_post is offered.",
		Apply:    redeemed(without("client_secret")),
	},
	{
		ID: "auth.no-secret-in-header", Requirement: "auth.client.token-endpoint-auth", Transports: overHTTP,
		Scenario: "auth/token-basic",
		Summary:  withoutSecret + ", where client_secret_basic is offered.",
		Apply:    formed(func(_ url.Values, h http.Header) { h.Del("Authorization") }),
	},
	{
		ID: "auth.secret-twice", Requirement: "auth.client.token-endpoint-auth", Transports: overHTTP,
		Scenario: "auth/token-basic",
		Summary:  "The token request has the secret in its header and in its form.",
		Apply: formed(func(form url.Values, h http.Header) {
			if _, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				form.Set("client_secret", secret)
			}
		}),
	},
	{
		ID: "auth.secret-otherwise", Requirement: "auth.client.token-endpoint-auth", Transports: overHTTP,
		Scenario: "auth/token-basic", WarnOnly: true,
		Summary: "The token request has the secret in its form, where client_secret_basic alone is offered.",
		Apply: formed(func(form url.Values, h http.Header) {
			if id, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				h.Del("Authorization")
				form.Set("client_id", id)
				form.Set("client_secret", secret)
			}
		}),
	},
}

// tokenUseFaults are about how the client shows its token.
var tokenUseFaults = []Fault{
	{
		ID: "auth.no-token-in-notifications", Requirement: "auth.client.every-request", Transports: overHTTP,
		Scenario: flow,
		Summary:  "notifications/initialized comes without the access token.",
		Apply:    headers(calls("notifications/initialized"), "Authorization"),
	},
	{
		ID: "auth.no-token-in-responses", Requirement: "auth.client.every-request", Transports: overHTTP,
		Scenario: flow,
		Summary:  "Responses to requests of the server come without the access token.",
		Apply:    headers(answers, "Authorization"),
	},
	{
		ID: "auth.no-token-in-get", Requirement: "auth.client.every-request", Transports: overHTTP, Scenario: flow,
		Summary: "The GET for the listening stream comes without the access token.",
		Apply:   fields(http.MethodGet, "Authorization"),
	},
	{
		ID: "auth.token-in-own-header", Requirement: "auth.client.bearer-header", Transports: overHTTP, Scenario: flow,
		Summary: "The access token is in X-Access-Token in place of Authorization.",
		Apply:   tokenAs(func(h *head, token string) { h.set("Authorization", "X-Access-Token: "+token) }),
	},
	{
		ID: "auth.token-by-other-scheme", Requirement: "auth.client.bearer-header", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The access token follows the scheme Token in Authorization.",
		Apply:    tokenAs(func(h *head, token string) { h.set("Authorization", "Authorization: Token "+token) }),
	},
	{
		ID: "auth.token-in-query", Requirement: "auth.client.no-token-in-query", Transports: overHTTP, Scenario: flow,
		Summary: "The access token is in the query as well.",
		Apply: tokenAs(func(h *head, token string) {
			h.query("access_token=" + token)
		}), Collateral: []string{"auth.client.one-token-method"},
	},
	{
		ID: "auth.token-in-two-places", Requirement: "auth.client.one-token-method", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The access token is in X-Access-Token as well.",
		Apply:    tokenAs(func(h *head, token string) { h.set("X-Access-Token", "X-Access-Token: "+token) }),
	},
	{
		ID: "auth.foreign-token", Requirement: "auth.client.no-foreign-tokens", Transports: overHTTP, Scenario: flow,
		Summary: "In place of the access token comes one from elsewhere.",
		Apply: tokenAs(func(h *head, _ string) {
			h.set("Authorization", "Authorization: Bearer a-token-from-somewhere-else")
		}),
		Collateral: []string{"auth.client.request-with-token"},
	},
	{
		ID: "auth.token-follows-redirect", Requirement: "auth.client.no-foreign-tokens", Transports: overHTTP,
		Scenario: "auth/redirect", WarnOnly: true,
		Summary: "The client follows a redirect to another origin and shows its access token there.",
		Apply:   func(c *client.Standalone) { following(c, true) },
	},
	{
		ID: "auth.token-never-shown", Requirement: "auth.client.request-with-token", Transports: overHTTP,
		Scenario: flow,
		Summary:  "The client obtains an access token and shows it in no request.",
		Apply:    tokenAs(func(h *head, _ string) { h.set("Authorization") }),
	},
}

// withoutAuthorization is a client that makes no request to obtain a token.
var withoutAuthorization = roundTripping(func(http.RoundTripper) http.RoundTripper {
	return roundTrip(func(*http.Request) (*http.Response, error) { return nil, errDead })
})

// repeatingRefused sends the first request again and again where a client would look for
// the metadata.
func repeatingRefused(c *client.Standalone) {
	at := c.URL
	roundTripping(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			for i := range 30 {
				again, err := http.NewRequestWithContext(r.Context(), http.MethodPost, at,
					strings.NewReader(string(client.Marshal(object{
						"jsonrpc": "2.0", "id": fmt.Sprint("again-", i), "method": "initialize", "params": object{
							"protocolVersion": client.Version, "capabilities": object{},
							"clientInfo": object{"name": "repeating", "version": "1"},
						},
					}))))
				if err != nil {
					return nil, err
				}
				again.Header.Set("Content-Type", "application/json")
				again.Header.Set("Accept", "application/json, text/event-stream")
				resp, err := next.RoundTrip(again)
				if err != nil {
					return nil, err
				}
				_ = reread(resp)
			}
			return nil, errDead
		})
	})(c)
}

// documents changes metadata documents, wherever they are, before the client reads them.
func documents(change func(r *http.Request, document object)) apply {
	return roundTripping(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if at := stepOf(r); err == nil && (at == wellKnown || at == otherStep) {
				rewritten(resp, func(document object) { change(r, document) })
			}
			return resp, err
		})
	})
}

// registersAtRoot makes the metadata of an authorization server name an endpoint for
// registration that it does not have.
func registersAtRoot(document object) {
	if issuer, ok := document["issuer"].(string); ok {
		document["registration_endpoint"] = issuer + "/register"
	}
}

// detouring sends requests for a path that begins with a prefix to another path of the
// same server.
func detouring(prefix, path string) apply {
	return roundTripping(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, prefix) {
				r = r.Clone(r.Context())
				r.URL.Path = path
			}
			return next.RoundTrip(r)
		})
	})
}

// requested changes the parameters of authorization requests.
func requested(change func(parameters url.Values)) apply {
	return seeking(authorization, func(r *http.Request) {
		parameters := r.URL.Query()
		change(parameters)
		r.URL.RawQuery = parameters.Encode()
	})
}

// redeemed changes the parameters of token requests.
func redeemed(change func(parameters url.Values)) apply {
	return formed(func(form url.Values, _ http.Header) { change(form) })
}

func without(name string) func(url.Values) {
	return func(parameters url.Values) { parameters.Del(name) }
}

func set(name, value string) func(url.Values) {
	return func(parameters url.Values) { parameters.Set(name, value) }
}

// resource changes the parameter resource wherever it is.
func resource(change func(uri string) string) apply {
	changed := func(parameters url.Values) {
		if parameters.Has("resource") {
			parameters.Set("resource", change(parameters.Get("resource")))
		}
	}
	return all(requested(changed), redeemed(changed))
}

// plainChallenge makes the challenge the verifier itself, and changes what else the
// authorization request says.
func plainChallenge(change func(parameters url.Values)) apply {
	verifier := strings.Repeat("plain", 10)
	return all(
		requested(func(parameters url.Values) {
			parameters.Set("code_challenge", verifier)
			change(parameters)
		}),
		redeemed(func(parameters url.Values) {
			if parameters.Has("code_verifier") {
				parameters.Set("code_verifier", verifier)
			}
		}),
	)
}

// sameChallenge makes one PKCE secret do for all authorization requests.
func sameChallenge(c *client.Standalone) {
	var challenge, verifier string
	requested(func(parameters url.Values) {
		challenge = cmp.Or(challenge, parameters.Get("code_challenge"))
		parameters.Set("code_challenge", challenge)
	})(c)
	redeemed(func(parameters url.Values) {
		if parameters.Has("code_verifier") {
			verifier = cmp.Or(verifier, parameters.Get("code_verifier"))
			parameters.Set("code_verifier", verifier)
		}
	})(c)
}

// stateAs changes the state of authorization requests, and makes the client take what comes
// back for the answer to its request, whatever state it has.
func stateAs(change func(state string) string) apply {
	return roundTripping(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if stepOf(r) != authorization {
				return next.RoundTrip(r)
			}
			parameters := r.URL.Query()
			own := parameters.Get("state")
			if sent := change(own); sent == "" {
				parameters.Del("state")
			} else {
				parameters.Set("state", sent)
			}
			r = r.Clone(r.Context())
			r.URL.RawQuery = parameters.Encode()
			resp, err := next.RoundTrip(r)
			if err != nil {
				return resp, err
			}
			if back, err := url.Parse(resp.Header.Get("Location")); err == nil && resp.StatusCode/100 == 3 {
				result := back.Query()
				result.Set("state", own)
				back.RawQuery = result.Encode()
				resp.Header.Set("Location", back.String())
			}
			return resp, nil
		})
	})
}

// toQuery moves the form of a request into its query.
func toQuery(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.URL.RawQuery = string(body)
	setBody(r, nil)
}

// tokenAs changes the heads of the requests that show an access token.
func tokenAs(change func(h *head, token string)) apply {
	return heads(func(h *head) {
		if token, ok := strings.CutPrefix(h.get("Authorization"), "Bearer "); ok {
			change(h, token)
		}
	})
}

// query adds a query to the target of the request.
func (h *head) query(parameters string) {
	if parts := strings.Split(h.line, " "); len(parts) == 3 {
		parts[1] += "?" + parameters
		h.line = strings.Join(parts, " ")
	}
}

// following follows redirects, with the token or without it, before the next message is
// sent.
func following(c *client.Standalone, shows bool) {
	var mu sync.Mutex
	token, followed := "", make(map[string]bool)
	sender := &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}
	tokenAs(func(_ *head, shown string) {
		mu.Lock()
		defer mu.Unlock()
		token = shown
	})(c)
	follow := func(ctx context.Context, at string) {
		mu.Lock()
		defer mu.Unlock()
		if followed[at] || token == "" {
			return
		}
		followed[at] = true
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, http.NoBody)
		if err != nil {
			return
		}
		if shows {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if resp, err := sender.RoundTrip(r); err == nil {
			_ = reread(resp)
		}
	}
	sendingOn(func(ctx context.Context, conn transport.Conn) {
		for _, e := range conn.Log().Events() {
			if e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusTemporaryRedirect {
				follow(ctx, e.HTTP.Header.Get("Location"))
			}
		}
	})(c)
}
