package mockclient

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// The scenarios in which faults of authorization show.
const (
	flow          = "auth/flow"
	lapsed        = "auth/lapsed"
	oddURL        = "auth/odd-url"
	withoutSecret = "The token request lacks the secret that the client got at its registration"
)

var authFaults = slices.Concat(soughtFaults, discoveryFaults, strayFaults, resourceFaults, codeFaults,
	tokenEndpointFaults, tokenUseFaults)

// soughtFaults are about whether the client seeks authorization at all.
var soughtFaults = []Fault{
	{ID: "auth.unsought", Requirement: ids.AuthHTTPConform, Scenario: flow, Transports: OverHTTP,
		Summary:    "A client that is meant to seek authorization ends when it is refused with 401.",
		Collateral: []string{ids.AuthClientHandles401}, Apply: WithoutAuthorization},
	{ID: "auth.repeats-refused", Requirement: ids.AuthClientHandles401, Scenario: flow, Transports: OverHTTP,
		Summary: "initialize, refused with 401, is repeated 30 times in place of seeking authorization.",
		Apply:   repeatingRefused},
	{ID: "auth.repeats-with-refused-token", Requirement: ids.AuthClientHandles401, Scenario: "auth/refused-tokens",
		Transports: OverHTTP,
		Summary:    "initialize, refused with 401 although it shows a token, is repeated 30 times with that token.",
		Apply:      Closing(repeatingToken)},
	{ID: "auth.ends-before-registration", Requirement: ids.AuthClientHandles401, Scenario: flow,
		Transports: OverHTTP, Summary: "A client that is meant to log in reads the metadata, and ends.",
		Apply: EndingAt(Registration)},
	{ID: "auth.ends-before-authorization", Requirement: ids.AuthClientHandles401, Scenario: flow,
		Transports: OverHTTP, Summary: "A client that is meant to log in registers, and ends.",
		Apply: EndingAt(Authorization)},
	{ID: "auth.ends-with-code", Requirement: ids.AuthClientHandles401, Scenario: flow, Transports: OverHTTP,
		Summary: "A client that is meant to log in gets a code, and ends.", Apply: EndingAt(TokenRequest)},
	{ID: "auth.lapsed-ignored", Requirement: ids.AuthClientHandles401, Form: mockserver.InSequence, Scenario: lapsed,
		Transports: OverHTTP, WarnOnly: true,
		Summary: "No new token is sought when the server answers 401 in the middle of a session.",
		Apply:   seekingTokens(1)},
	{ID: "auth.lapsed-again-ignored", Requirement: ids.AuthClientHandles401, Form: mockserver.InSequence,
		Scenario: lapsed, Transports: OverHTTP, WarnOnly: true,
		Summary: "No new token is sought when the server answers 401 a second time in a session.",
		Apply:   seekingTokens(2)},
}

// seekingTokens ends the client when it needs more tokens than a number.
func seekingTokens(most int) apply {
	return RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		redeemed := 0
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			if redeemed == most {
				return nil, ErrDead
			}
			if StepOf(r) == TokenRequest {
				redeemed++
			}
			return next.RoundTrip(r)
		})
	})
}

// discoveryFaults are about the way to the authorization server and the registration there.
var discoveryFaults = []Fault{
	{ID: "auth.guessed-server", Requirement: ids.AuthClientResourceMetadata, Scenario: flow, Transports: OverHTTP,
		Summary: "The client takes the protected server for its own authorization server, and asks " +
			"for no resource metadata.",
		Apply: detouring("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server")},
	{ID: "auth.guessed-endpoint", Requirement: ids.AuthClientAsMetadata, Scenario: flow, Transports: OverHTTP,
		Summary: "The client registers at /register, whatever the metadata name.",
		Apply:   documents(func(_ *http.Request, document object) { registersAtRoot(document) })},
	{ID: "auth.well-known-url-only", Requirement: ids.AuthClientParseWWWAuthenticate, Scenario: "auth/metadata-url",
		Transports: OverHTTP, Summary: "The client looks for the resource metadata at the well-known URL alone.",
		Apply: detouring("/documents/", "/.well-known/oauth-protected-resource")},
	{ID: "auth.well-known-url-among-challenges", Requirement: ids.AuthClientParseWWWAuthenticate,
		Scenario: "auth/challenges", Transports: OverHTTP,
		Summary: "The client reads no resource_metadata where a second field offers another scheme.",
		Apply:   detouring("/documents/", "/.well-known/oauth-protected-resource/mcp")},
	{ID: "auth.well-known-url-among-listed", Requirement: ids.AuthClientParseWWWAuthenticate,
		Scenario: "auth/challenge-list", Transports: OverHTTP,
		Summary: "The client reads no resource_metadata where the field lists another scheme before.",
		Apply:   detouring("/documents/", "/.well-known/oauth-protected-resource/mcp")},
	{ID: "auth.issuer-path-first", Requirement: ids.AuthClientAsMetadataLocation, Scenario: "auth/issuer-path",
		Transports: OverHTTP, Summary: "The well-known part stands behind the path of the issuer.",
		Apply: detouring("/.well-known/oauth-authorization-server/tenant",
			"/tenant/one/.well-known/oauth-authorization-server")},
	{ID: "auth.issuer-not-compared", Requirement: ids.AuthClientAsMetadataIssuer, Scenario: "auth/other-issuer",
		Transports: OverHTTP, Summary: "Metadata that name another issuer are used.",
		Apply: documents(func(r *http.Request, document object) {
			if document["issuer"] != nil {
				document["issuer"] = "http://" + r.URL.Host +
					strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
			}
		})},
	{ID: "auth.resource-not-compared", Requirement: ids.AuthClientResourceMetadataCheck,
		Scenario: "auth/other-resource", Transports: OverHTTP, Summary: "Metadata of another resource are used.",
		Apply: documents(func(r *http.Request, document object) {
			if document["resource"] != nil {
				document["resource"] = "http://" + r.URL.Host + "/mcp"
			}
		})},
	{ID: "auth.sibling-resource-used", Requirement: ids.AuthClientResourceMetadataCheck,
		Scenario: "auth/sibling-resource", Transports: OverHTTP,
		Summary: "Metadata are used if the path of the server begins with that of their resource, whatever follows.",
		Apply: documents(func(r *http.Request, document object) {
			at, _ := document["resource"].(string)
			if own := "http://" + r.URL.Host + "/mcp"; at != "" && strings.HasPrefix(own, at) {
				document["resource"] = own
			}
		})},
	{ID: "auth.one-server-only", Requirement: ids.AuthClientSelectsAs, Scenario: "auth/two-servers",
		Transports: OverHTTP,
		Summary:    "The client gives up if there are two authorization servers to choose from.",
		Apply: documents(func(_ *http.Request, document object) {
			if servers, _ := document["authorization_servers"].(list); len(servers) > 1 {
				document["authorization_servers"] = list{}
			}
		})},
	{ID: "auth.other-origin-only", Requirement: ids.AuthClientAsLocationFree, Scenario: "auth/same-origin",
		Transports: OverHTTP,
		Summary:    "The client gives up if the authorization server is on the origin of the protected server.",
		Apply: documents(func(r *http.Request, document object) {
			servers, _ := document["authorization_servers"].(list)
			if slices.ContainsFunc(servers, func(v any) bool {
				issuer, err := url.Parse(fmt.Sprint(v))
				return err == nil && issuer.Host == r.URL.Host
			}) {
				document["authorization_servers"] = list{}
			}
		})},
	{ID: "auth.registration-without-redirects", Requirement: ids.AuthClientDynamicRegistration, Scenario: flow,
		Transports: OverHTTP, Summary: "The registration has no redirect_uris.",
		Collateral: []string{ids.AuthClientHandles401}, Apply: Registering(Lacking("redirect_uris"))},
	{ID: "auth.guessed-registration", Requirement: ids.AuthClientOtherClientID, Scenario: "auth/no-registration",
		Transports: OverHTTP,
		Summary:    "If the metadata name no registration_endpoint, the client registers at /register.",
		Apply: documents(func(_ *http.Request, document object) {
			if document["registration_endpoint"] == nil {
				registersAtRoot(document)
			}
		})},
	{ID: "auth.other-redirect-scheme", Requirement: ids.AuthClientRedirectURIScheme, Scenario: flow,
		Transports: OverHTTP, Summary: "The redirect URI is http on another host.",
		Apply: All(
			Registering(Having("redirect_uris", list{"http://client.example.com/callback"})),
			Requested(set("redirect_uri", "http://client.example.com/callback")),
		)},
	{ID: "auth.unregistered-redirect", Requirement: ids.AuthClientRedirectURIRegistered, Scenario: flow,
		Transports: OverHTTP,
		Summary:    "The redirect URI of the authorization request is not one of those that were registered.",
		Apply:      Requested(set("redirect_uri", "http://127.0.0.1:33418/other"))},
}

// strayFaults are of clients that look for metadata where they are not, and give up if something else is there.
var strayFaults = []Fault{
	stray("auth.stopped-by-401", "auth/well-known-401", "401", "/documents/",
		"/.well-known/oauth-protected-resource/mcp",
		ids.AuthClientParseWWWAuthenticate, http.StatusUnauthorized),
	stray("auth.stopped-by-page", "auth/well-known-page", "a page", "/documents/",
		"/.well-known/oauth-protected-resource/mcp", ids.AuthClientParseWWWAuthenticate, http.StatusOK),
	stray("auth.stopped-by-redirect", "auth/well-known-redirect", "a redirect", "/documents/",
		"/.well-known/oauth-protected-resource/mcp", ids.AuthClientParseWWWAuthenticate, http.StatusFound),
	stray("auth.stopped-by-401-of-issuer", "auth/well-known-401", "401",
		"/.well-known/oauth-authorization-server/tenant", "/.well-known/oauth-authorization-server",
		ids.AuthClientAsMetadataLocation, http.StatusUnauthorized),
	stray("auth.stopped-by-page-of-issuer", "auth/well-known-page", "a page",
		"/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant/one",
		ids.AuthClientAsMetadataLocation, http.StatusOK),
	stray("auth.stopped-by-redirect-of-issuer", "auth/well-known-redirect", "a redirect",
		"/.well-known/oauth-authorization-server/tenant", "/tenant/one/.well-known/openid-configuration",
		ids.AuthClientAsMetadataLocation, http.StatusFound),
}

// stray is the fault of a client that asks for a document at another place of the host first.
func stray(id, scenario, answer, prefix, first, requirement string, status int) Fault {
	return Fault{
		ID: id, Requirement: requirement, Transports: OverHTTP, Scenario: scenario,
		Summary: "The client looks for metadata at " + first + " first, and gives up if the answer is " + answer + ".",
		Apply: RoundTripping(func(next http.RoundTripper) http.RoundTripper {
			return RoundTrip(func(r *http.Request) (*http.Response, error) {
				if !strings.HasPrefix(r.URL.Path, prefix) {
					return next.RoundTrip(r)
				}
				if Probe(next, r, first) == status {
					return nil, ErrDead
				}
				return next.RoundTrip(r)
			})
		}),
	}
}

// resourceFaults are about the parameter resource.
var resourceFaults = []Fault{
	{ID: "auth.authorization-without-resource", Requirement: ids.AuthClientResourceAuthorizationRequest,
		Scenario: flow, Transports: OverHTTP, Summary: "The authorization request has no resource.",
		Collateral: []string{ids.AuthClientResourceAlwaysSent}, Apply: Requested(without("resource"))},
	{ID: "auth.token-without-resource", Requirement: ids.AuthClientResourceTokenRequest, Scenario: flow,
		Transports: OverHTTP, Summary: "The token request has no resource.",
		Collateral: []string{ids.AuthClientResourceAlwaysSent}, Apply: redeemed(without("resource"))},
	{ID: "auth.refresh-without-resource", Requirement: ids.AuthClientResourceTokenRequest,
		Form: mockserver.InSequence, Scenario: "auth/refresh", Transports: OverHTTP,
		Summary:    "The token request with a refresh token has no resource.",
		Collateral: []string{ids.AuthClientResourceAlwaysSent},
		Apply: redeemed(func(form url.Values) {
			if form.Get("grant_type") == "refresh_token" {
				form.Del("resource")
			}
		})},
	{ID: "auth.second-refresh-without-resource", Requirement: ids.AuthClientResourceTokenRequest,
		Form: mockserver.InSequence, Scenario: "auth/refresh", Transports: OverHTTP,
		Summary:    "The second token request with a refresh token has no resource.",
		Collateral: []string{ids.AuthClientResourceAlwaysSent},
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
		}},
	{ID: "auth.resource-if-supported", Requirement: ids.AuthClientResourceAlwaysSent, Scenario: flow,
		Transports: OverHTTP,
		Summary:    "The requests have no resource, since the metadata do not tell that it is supported.",
		Collateral: []string{ids.AuthClientResourceAuthorizationRequest, ids.AuthClientResourceTokenRequest},
		Apply:      All(Requested(without("resource")), redeemed(without("resource")))},
	{ID: "auth.resource-elsewhere", Requirement: ids.AuthClientResourceIdentifiesServer, Scenario: flow,
		Transports: OverHTTP, Summary: "The resource is another server.",
		Apply: resource(func(string) string { return "https://mcp.example.com/mcp" })},
	{ID: "auth.resource-with-query", Requirement: ids.AuthClientResourceCanonical, Scenario: flow,
		Transports: OverHTTP, Summary: "The resource has a query.",
		Apply: resource(func(uri string) string { return uri + "?session=1" })},
	{ID: "auth.resource-without-path", Requirement: ids.AuthClientResourceMostSpecific, Scenario: flow,
		Transports: OverHTTP, Summary: "The resource lacks the path of the server.",
		Apply: resource(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") })},
	{ID: "auth.resource-without-scheme", Requirement: ids.AuthResourceHasScheme, Scenario: flow,
		Transports: OverHTTP, Summary: "The resource has no scheme.",
		Apply: resource(func(uri string) string { return strings.TrimPrefix(uri, "http://") })},
	{ID: "auth.resource-with-fragment", Requirement: ids.AuthResourceNoFragment, Scenario: oddURL,
		Transports: OverHTTP, Summary: "The resource has the fragment of the URL that the client was given.",
		Apply: resource(func(uri string) string { return uri + "#start" })},
	{ID: "auth.resource-in-capitals", Requirement: ids.AuthResourceLowercase, Scenario: oddURL, Transports: OverHTTP,
		Summary: "The host of the resource is written with capitals.",
		Apply:   resource(func(uri string) string { return strings.Replace(uri, "localhost", "LocalHost", 1) })},
	{ID: "auth.resource-with-slash", Requirement: ids.AuthResourceNoTrailingSlash, Scenario: "auth/root",
		Transports: OverHTTP,
		Summary:    "The resource ends in a slash, which the URL that the client was given does not.",
		Apply:      resource(func(uri string) string { return uri + "/" })},
}

// codeFaults are about PKCE and state.
var codeFaults = []Fault{
	{ID: "auth.no-challenge", Requirement: ids.AuthClientPKCEChallenge, Scenario: flow, Transports: OverHTTP,
		Summary: "The authorization request has no code_challenge.",
		Apply:   Requested(without("code_challenge"))},
	{ID: "auth.short-challenge", Requirement: ids.AuthClientPKCEChallenge, Scenario: flow, Transports: OverHTTP,
		Summary: "The code_challenge has five characters.", Collateral: []string{ids.AuthClientPKCEVerifier},
		Apply: Requested(set("code_challenge", "short"))},
	{ID: "auth.plain-challenge", Requirement: ids.AuthClientPKCES256, Scenario: flow, Transports: OverHTTP,
		Summary: "The code_challenge_method is plain, although S256 is offered.",
		Apply:   plainChallenge(set("code_challenge_method", "plain"))},
	{ID: "auth.challenge-without-method", Requirement: ids.AuthClientPKCES256, Scenario: flow, Transports: OverHTTP,
		Summary: "The authorization request has no code_challenge_method, which stands for plain.",
		Apply:   plainChallenge(without("code_challenge_method"))},
	{ID: "auth.no-verifier", Requirement: ids.AuthClientPKCEVerifier, Scenario: flow, Transports: OverHTTP,
		Summary: "The token request has no code_verifier.", Apply: redeemed(without("code_verifier"))},
	{ID: "auth.other-verifier", Requirement: ids.AuthClientPKCEVerifier, Scenario: flow, Transports: OverHTTP,
		Summary: "The code_verifier does not match the code_challenge.",
		Apply:   redeemed(set("code_verifier", strings.Repeat("v", 43)))},
	{ID: "auth.same-challenge", Requirement: ids.AuthClientPKCEFresh, Form: mockserver.InSequence, Scenario: lapsed,
		Transports: OverHTTP, Summary: "A second authorization request carries the code_challenge of the first.",
		Apply: sameChallenge},
	{ID: "auth.no-state", Requirement: ids.AuthClientStateUsed, Scenario: flow, Transports: OverHTTP,
		Summary: "The authorization request has no state.", Apply: stateAs(func(string) string { return "" })},
	{ID: "auth.same-state", Requirement: ids.AuthClientStateUsed, Form: mockserver.InSequence, Scenario: lapsed,
		Transports: OverHTTP, Summary: "A second authorization request carries the state of the first.",
		Apply: stateAs(func(string) string { return "constant" })},
	{ID: "auth.state-not-missed", Requirement: ids.AuthClientStateMissingDiscarded, Scenario: "auth/state-missing",
		Transports: OverHTTP, Summary: "A code is redeemed that came back without the state.",
		Apply: stateAs(func(state string) string { return state })},
	{ID: "auth.iss-not-compared", Requirement: ids.AuthClientISSCompared, Scenario: "auth/iss-mismatch",
		Transports: OverHTTP,
		Summary:    "A code is redeemed that came back with the iss of another authorization server.",
		Apply:      Returned(func(result url.Values) { result.Del("iss") })},
	{ID: "auth.state-not-compared", Requirement: ids.AuthClientStateMismatchDiscarded,
		Scenario: "auth/state-mismatch", Transports: OverHTTP,
		Summary: "A code is redeemed that came back with another state.",
		Apply:   stateAs(func(state string) string { return state })},
}

// tokenEndpointFaults are about the token request.
var tokenEndpointFaults = []Fault{
	{ID: "auth.token-get", Requirement: ids.AuthClientTokenRequestForm, Scenario: flow, Transports: OverHTTP,
		Summary: "The token request is a GET.",
		Apply: Seeking(TokenRequest, func(r *http.Request) {
			toQuery(r)
			r.Method = http.MethodGet
		})},
	{ID: "auth.token-parameters-in-query", Requirement: ids.AuthClientTokenRequestForm, Scenario: flow,
		Transports: OverHTTP, Summary: "The parameters of the token request are in the query.",
		Apply: Seeking(TokenRequest, toQuery)},
	{ID: "auth.code-twice", Requirement: ids.AuthClientCodeOnce, Scenario: lapsed, Transports: OverHTTP,
		Summary: "Each code is redeemed a second time.",
		Apply: AfterTokenRequest(func(next http.RoundTripper, again *http.Request,
			resp *http.Response) (*http.Response, error) {
			_ = Reread(resp)
			if second, err := next.RoundTrip(again); err == nil {
				_ = Reread(second)
			}
			return resp, nil
		})},
	{ID: "auth.code-to-other-server", Requirement: ids.AuthClientTokenRequestIssuer, Scenario: "auth/two-servers",
		Transports: OverHTTP, Summary: "The code is sent to the other authorization server first.",
		Apply: sendingToOther},
	{ID: "auth.token-request-follows-redirect", Requirement: ids.AuthClientTokenRequestIssuer,
		Scenario: "auth/token-redirect", Transports: OverHTTP, WarnOnly: true,
		Summary: "The token request follows a redirect to another origin.",
		Apply: AfterTokenRequest(func(next http.RoundTripper, again *http.Request,
			resp *http.Response) (_ *http.Response, err error) {
			if resp.StatusCode != http.StatusTemporaryRedirect {
				return resp, nil
			}
			_ = Reread(resp)
			if again.URL, err = resp.Location(); err != nil {
				return nil, err
			}
			again.Host = ""
			return next.RoundTrip(again)
		})},
	{ID: "auth.old-refresh-token", Requirement: ids.AuthClientRefreshReplaced, Form: mockserver.InSequence,
		Scenario: "auth/refresh", Transports: OverHTTP,
		Summary: "The second refresh uses the refresh token of the first.",
		Apply: func(c *client.Standalone) {
			first := ""
			redeemed(func(form url.Values) {
				if form.Has("refresh_token") {
					first = cmp.Or(first, form.Get("refresh_token"))
					form.Set("refresh_token", first)
				}
			})(c)
		}},
	{ID: "auth.no-secret-in-form", Requirement: ids.AuthClientTokenEndpointAuth, Scenario: "auth/token-post",
		Transports: OverHTTP, Summary: withoutSecret + ", where client_secret_post is offered.",
		Apply: redeemed(without("client_secret"))},
	{ID: "auth.no-secret-in-header", Requirement: ids.AuthClientTokenEndpointAuth, Scenario: "auth/token-basic",
		Transports: OverHTTP, Summary: withoutSecret + ", where client_secret_basic is offered.",
		Apply: Formed(func(_ url.Values, h http.Header) { h.Del("Authorization") })},
	{ID: "auth.secret-twice", Requirement: ids.AuthClientTokenEndpointAuth, Scenario: "auth/token-basic",
		Transports: OverHTTP, Summary: "The token request has the secret in its header and in its form.",
		Apply: Formed(func(form url.Values, h http.Header) {
			if _, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				form.Set("client_secret", secret)
			}
		})},
	{ID: "auth.secret-otherwise", Requirement: ids.AuthClientTokenEndpointAuth, Scenario: "auth/token-basic",
		Transports: OverHTTP, WarnOnly: true,
		Summary: "The token request has the secret in its form, where client_secret_basic alone is offered.",
		Apply: Formed(func(form url.Values, h http.Header) {
			if id, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				h.Del("Authorization")
				form.Set("client_id", id)
				form.Set("client_secret", secret)
			}
		})},
}

// tokenUseFaults are about how the client shows its token.
var tokenUseFaults = []Fault{
	{ID: "auth.no-token-in-notifications", Requirement: ids.AuthClientEveryRequest, Scenario: flow,
		Transports: OverHTTP, Summary: "notifications/initialized comes without the access token.",
		Apply: Headers(Calls("notifications/initialized"), "Authorization")},
	{ID: "auth.no-token-in-responses", Requirement: ids.AuthClientEveryRequest, Scenario: flow, Transports: OverHTTP,
		Summary: "Responses to requests of the server come without the access token.",
		Apply:   Headers(Answers, "Authorization")},
	{ID: "auth.no-token-in-get", Requirement: ids.AuthClientEveryRequest, Scenario: flow, Transports: OverHTTP,
		Summary: "The GET for the listening stream comes without the access token.",
		Apply:   Fields(http.MethodGet, "Authorization")},
	{ID: "auth.token-in-own-header", Requirement: ids.AuthClientBearerHeader, Scenario: flow, Transports: OverHTTP,
		Summary: "The access token is in X-Access-Token in place of Authorization.",
		Apply:   TokenAs(func(h *Head, token string) { h.Set("Authorization", "X-Access-Token: "+token) })},
	{ID: "auth.token-by-other-scheme", Requirement: ids.AuthClientBearerHeader, Scenario: flow, Transports: OverHTTP,
		Summary: "The access token follows the scheme Token in Authorization.",
		Apply:   TokenAs(func(h *Head, token string) { h.Set("Authorization", "Authorization: Token "+token) })},
	{ID: "auth.token-in-query", Requirement: ids.AuthClientNoTokenInQuery, Scenario: flow, Transports: OverHTTP,
		Summary:    "The access token is in the query as well.",
		Collateral: []string{ids.AuthClientOneTokenMethod},
		Apply:      TokenAs(func(h *Head, token string) { h.Query("access_token=" + token) })},
	{ID: "auth.token-in-two-places", Requirement: ids.AuthClientOneTokenMethod, Scenario: flow,
		Transports: OverHTTP, Summary: "The access token is in X-Access-Token as well.",
		Apply: TokenAs(func(h *Head, token string) { h.Set("X-Access-Token", "X-Access-Token: "+token) })},
	{ID: "auth.foreign-token", Requirement: ids.AuthClientNoForeignTokens, Scenario: flow, Transports: OverHTTP,
		Summary:    "In place of the access token comes one from elsewhere.",
		Collateral: []string{ids.AuthClientRequestWithToken},
		Apply: TokenAs(func(h *Head, _ string) {
			h.Set("Authorization", "Authorization: Bearer a-token-from-somewhere-else")
		})},
	{ID: "auth.token-follows-redirect", Requirement: ids.AuthClientNoForeignTokens, Scenario: "auth/redirect",
		Transports: OverHTTP, WarnOnly: true,
		Summary: "The client follows a redirect to another origin and shows its access token there.",
		Apply:   func(c *client.Standalone) { Following(c, true) }},
	{ID: "auth.token-never-shown", Requirement: ids.AuthClientRequestWithToken, Scenario: flow,
		Transports: OverHTTP, Summary: "The client obtains an access token and shows it in no request.",
		Collateral: []string{ids.AuthClientHandles401},
		Apply:      TokenAs(func(h *Head, _ string) { h.Set("Authorization") })},
}

// repeatingRefused sends the first request again and again where a client would look for
// the metadata.
func repeatingRefused(c *client.Standalone) {
	at := c.URL
	RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			for i := range most {
				again, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
					at, bytes.NewReader(initialize(i)))
				if err != nil {
					return nil, err
				}
				again.Header.Set("Content-Type", "application/json")
				again.Header.Set("Accept", "application/json, text/event-stream")
				resp, err := next.RoundTrip(again)
				if err != nil {
					return nil, err
				}
				_ = Reread(resp)
			}
			return nil, ErrDead
		})
	})(c)
}

// most is how often a refused request is repeated.
const most = 30

// initialize returns an initialize with an id of its own.
func initialize(i int) []byte {
	return client.Marshal(object{
		"jsonrpc": "2.0", "id": fmt.Sprint("again-", i), "method": "initialize", "params": object{
			"protocolVersion": client.Version, "capabilities": object{},
			"clientInfo": object{"name": "repeating", "version": "1"},
		},
	})
}

// repeatingToken sends the first request again and again if the server refuses it with a token.
func repeatingToken(ctx context.Context, conn transport.Conn) error {
	shown, refused := false, false
	for _, e := range conn.Log().Events() {
		switch e.Kind {
		case wire.KindHTTPRequest:
			shown = e.HTTP.Header.Get("Authorization") != ""
		case wire.KindHTTPResponse:
			refused = e.HTTP.Status == http.StatusUnauthorized
		}
	}
	for i := 0; shown && refused && i < most; i++ {
		if _, err := conn.Send(ctx, transport.Outgoing{Raw: initialize(i)}); err != nil {
			break
		}
	}
	return conn.Close(ctx)
}

// sendingToOther sends each token request to the second authorization server first.
func sendingToOther(c *client.Standalone) {
	var issuers []*url.URL
	documents(func(_ *http.Request, document object) {
		named, ok := document["authorization_servers"].(list)
		if ok {
			issuers = nil
		}
		for _, v := range named {
			if issuer, err := url.Parse(fmt.Sprint(v)); err == nil {
				issuers = append(issuers, issuer)
			}
		}
	})(c)
	RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			if StepOf(r) == TokenRequest && len(issuers) > 1 {
				first := Repeatable(r)
				first.URL.Host, first.Host = issuers[1].Host, ""
				first.URL.Path = issuers[1].Path + strings.TrimPrefix(r.URL.Path, issuers[0].Path)
				if resp, err := next.RoundTrip(first); err == nil {
					_ = Reread(resp)
				}
			}
			return next.RoundTrip(r)
		})
	})(c)
}

// documents changes metadata documents, wherever they are, before the client reads them.
func documents(change func(r *http.Request, document object)) apply {
	return RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if at := StepOf(r); err == nil && (at == WellKnown || at == OtherStep) {
				Rewritten(resp, func(document object) { change(r, document) })
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
	return RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, prefix) {
				r = r.Clone(r.Context())
				r.URL.Path = path
			}
			return next.RoundTrip(r)
		})
	})
}

// redeemed changes the parameters of token requests.
func redeemed(change func(parameters url.Values)) apply {
	return Formed(func(form url.Values, _ http.Header) { change(form) })
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
	return All(Requested(changed), redeemed(changed))
}

// plainChallenge makes the challenge the verifier itself, and changes what else the
// authorization request says.
func plainChallenge(change func(parameters url.Values)) apply {
	verifier := strings.Repeat("plain", 10)
	return All(
		Requested(func(parameters url.Values) {
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
	Requested(func(parameters url.Values) {
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
	own := ""
	return All(
		// The outermost change comes last.
		Requested(func(parameters url.Values) {
			if sent := change(parameters.Get("state")); sent == "" {
				parameters.Del("state")
			} else {
				parameters.Set("state", sent)
			}
		}),
		Requested(func(parameters url.Values) { own = parameters.Get("state") }),
		Returned(func(result url.Values) { result.Set("state", own) }),
	)
}

// toQuery moves the form of a request into its query.
func toQuery(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.URL.RawQuery = string(body)
	SetBody(r, nil)
}
