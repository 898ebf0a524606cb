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
	fault("auth.unsought", ids.AuthHTTPConform,
		"A client that is meant to seek authorization ends when it is refused with 401.", WithoutAuthorization).
		In(flow).Also(ids.AuthClientHandles401),
	fault("auth.repeats-refused", ids.AuthClientHandles401,
		"initialize, refused with 401, is repeated 30 times in place of seeking authorization.", repeatingRefused).
		In(flow),
	fault("auth.repeats-with-refused-token", ids.AuthClientHandles401,
		"initialize, refused with 401 although it shows a token, is repeated 30 times with that token.",
		Closing(repeatingToken)).In("auth/refused-tokens"),
	fault("auth.ends-before-registration", ids.AuthClientHandles401,
		"A client that is meant to log in reads the metadata, and ends.", EndingAt(Registration)).In(flow),
	fault("auth.ends-before-authorization", ids.AuthClientHandles401,
		"A client that is meant to log in registers, and ends.", EndingAt(Authorization)).In(flow),
	fault("auth.ends-with-code", ids.AuthClientHandles401, "A client that is meant to log in gets a code, and ends.",
		EndingAt(TokenRequest)).In(flow),
	fault("auth.lapsed-ignored", ids.AuthClientHandles401,
		"No new token is sought when the server answers 401 in the middle of a session.", seekingTokens(1)).
		Seen(inSequence).In(lapsed).Warns(),
	fault("auth.lapsed-again-ignored", ids.AuthClientHandles401,
		"No new token is sought when the server answers 401 a second time in a session.", seekingTokens(2)).
		Seen(inSequence).In(lapsed).Warns(),
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
	fault("auth.guessed-server", ids.AuthClientResourceMetadata,
		"The client takes the protected server for its own authorization server, and asks for no resource metadata.",
		detouring("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server")).In(flow),
	fault("auth.guessed-endpoint", ids.AuthClientAsMetadata,
		"The client registers at /register, whatever the metadata name.",
		documents(func(_ *http.Request, document object) { registersAtRoot(document) })).In(flow),
	fault("auth.well-known-url-only", ids.AuthClientParseWWWAuthenticate,
		"The client looks for the resource metadata at the well-known URL alone.",
		detouring("/documents/", "/.well-known/oauth-protected-resource")).In("auth/metadata-url"),
	fault("auth.well-known-url-among-challenges", ids.AuthClientParseWWWAuthenticate,
		"The client reads no resource_metadata where a second field offers another scheme.",
		detouring("/documents/", "/.well-known/oauth-protected-resource/mcp")).In("auth/challenges"),
	fault("auth.well-known-url-among-listed", ids.AuthClientParseWWWAuthenticate,
		"The client reads no resource_metadata where the field lists another scheme before.",
		detouring("/documents/", "/.well-known/oauth-protected-resource/mcp")).In("auth/challenge-list"),
	fault("auth.issuer-path-first", ids.AuthClientAsMetadataLocation,
		"The well-known part stands behind the path of the issuer.",
		detouring("/.well-known/oauth-authorization-server/tenant",
			"/tenant/one/.well-known/oauth-authorization-server")).In("auth/issuer-path"),
	fault("auth.issuer-not-compared", ids.AuthClientAsMetadataIssuer, "Metadata that name another issuer are used.",
		documents(func(r *http.Request, document object) {
			if document["issuer"] != nil {
				document["issuer"] = "http://" + r.URL.Host +
					strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
			}
		})).In("auth/other-issuer"),
	fault("auth.resource-not-compared", ids.AuthClientResourceMetadataCheck, "Metadata of another resource are used.",
		documents(func(r *http.Request, document object) {
			if document["resource"] != nil {
				document["resource"] = "http://" + r.URL.Host + "/mcp"
			}
		})).In("auth/other-resource"),
	fault("auth.sibling-resource-used", ids.AuthClientResourceMetadataCheck,
		"Metadata are used if the path of the server begins with that of their resource, whatever follows.",
		documents(func(r *http.Request, document object) {
			at, _ := document["resource"].(string)
			if own := "http://" + r.URL.Host + "/mcp"; at != "" && strings.HasPrefix(own, at) {
				document["resource"] = own
			}
		})).In("auth/sibling-resource"),
	fault("auth.one-server-only", ids.AuthClientSelectsAs,
		"The client gives up if there are two authorization servers to choose from.",
		documents(func(_ *http.Request, document object) {
			if servers, _ := document["authorization_servers"].(list); len(servers) > 1 {
				document["authorization_servers"] = list{}
			}
		})).In("auth/two-servers"),
	fault("auth.other-origin-only", ids.AuthClientAsLocationFree,
		"The client gives up if the authorization server is on the origin of the protected server.",
		documents(func(r *http.Request, document object) {
			if slices.ContainsFunc(wire.Items(document, "authorization_servers"), func(v any) bool {
				issuer, err := url.Parse(fmt.Sprint(v))
				return err == nil && issuer.Host == r.URL.Host
			}) {
				document["authorization_servers"] = list{}
			}
		})).In("auth/same-origin"),
	fault("auth.registration-without-redirects", ids.AuthClientDynamicRegistration,
		"The registration has no redirect_uris.", Registering(Lacking("redirect_uris"))).In(flow).
		Also(ids.AuthClientHandles401),
	fault("auth.guessed-registration", ids.AuthClientOtherClientID,
		"If the metadata name no registration_endpoint, the client registers at /register.",
		documents(func(_ *http.Request, document object) {
			if document["registration_endpoint"] == nil {
				registersAtRoot(document)
			}
		})).In("auth/no-registration"),
	fault("auth.other-redirect-scheme", ids.AuthClientRedirectURIScheme, "The redirect URI is http on another host.",
		All(Registering(Having("redirect_uris", list{"http://client.example.com/callback"})),
			Requested(set("redirect_uri", "http://client.example.com/callback")))).In(flow),
	fault("auth.unregistered-redirect", ids.AuthClientRedirectURIRegistered,
		"The redirect URI of the authorization request is not one of those that were registered.",
		Requested(set("redirect_uri", "http://127.0.0.1:33418/other"))).In(flow),
}

// strayFaults are of clients that look for metadata where they are not, and give up if something else is there.
var strayFaults = []Fault{
	stray("auth.stopped-by-401", "auth/well-known-401", "401", "/documents/",
		"/.well-known/oauth-protected-resource/mcp", ids.AuthClientParseWWWAuthenticate, http.StatusUnauthorized),
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
	return fault(id, requirement,
		"The client looks for metadata at "+first+" first, and gives up if the answer is "+answer+".",
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, prefix) && Probe(next, r, first) == status {
				return nil, ErrDead
			}
			return next.RoundTrip(r)
		})).In(scenario)
}

// resourceFaults are about the parameter resource.
var resourceFaults = []Fault{
	fault("auth.authorization-without-resource", ids.AuthClientResourceAuthorizationRequest,
		"The authorization request has no resource.", Requested(without("resource"))).In(flow).
		Also(ids.AuthClientResourceAlwaysSent),
	fault("auth.token-without-resource", ids.AuthClientResourceTokenRequest, "The token request has no resource.",
		redeemed(without("resource"))).In(flow).Also(ids.AuthClientResourceAlwaysSent),
	fault("auth.refresh-without-resource", ids.AuthClientResourceTokenRequest,
		"The token request with a refresh token has no resource.", redeemed(func(form url.Values) {
			if form.Get("grant_type") == "refresh_token" {
				form.Del("resource")
			}
		})).Seen(inSequence).In("auth/refresh").Also(ids.AuthClientResourceAlwaysSent),
	fault("auth.second-refresh-without-resource", ids.AuthClientResourceTokenRequest,
		"The second token request with a refresh token has no resource.", func(c *client.Standalone) {
			refreshed := false
			redeemed(func(form url.Values) {
				if form.Get("grant_type") == "refresh_token" {
					if refreshed {
						form.Del("resource")
					}
					refreshed = true
				}
			})(c)
		}).Seen(inSequence).In("auth/refresh").Also(ids.AuthClientResourceAlwaysSent),
	fault("auth.resource-if-supported", ids.AuthClientResourceAlwaysSent,
		"The requests have no resource, since the metadata do not tell that it is supported.",
		All(Requested(without("resource")), redeemed(without("resource")))).In(flow).
		Also(ids.AuthClientResourceAuthorizationRequest, ids.AuthClientResourceTokenRequest),
	fault("auth.resource-elsewhere", ids.AuthClientResourceIdentifiesServer, "The resource is another server.",
		resource(func(string) string { return "https://mcp.example.com/mcp" })).In(flow),
	fault("auth.resource-with-query", ids.AuthClientResourceCanonical, "The resource has a query.",
		resource(func(uri string) string { return uri + "?session=1" })).In(flow),
	fault("auth.resource-without-path", ids.AuthClientResourceMostSpecific,
		"The resource lacks the path of the server.",
		resource(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") })).In(flow),
	fault("auth.resource-without-scheme", ids.AuthResourceHasScheme, "The resource has no scheme.",
		resource(func(uri string) string { return strings.TrimPrefix(uri, "http://") })).In(flow),
	fault("auth.resource-with-fragment", ids.AuthResourceNoFragment,
		"The resource has the fragment of the URL that the client was given.",
		resource(func(uri string) string { return uri + "#start" })).In(oddURL),
	fault("auth.resource-in-capitals", ids.AuthResourceLowercase, "The host of the resource is written with capitals.",
		resource(func(uri string) string { return strings.Replace(uri, "localhost", "LocalHost", 1) })).In(oddURL),
	fault("auth.resource-with-slash", ids.AuthResourceNoTrailingSlash,
		"The resource ends in a slash, which the URL that the client was given does not.",
		resource(func(uri string) string { return uri + "/" })).In("auth/root"),
}

// codeFaults are about PKCE and state.
var codeFaults = []Fault{
	fault("auth.no-challenge", ids.AuthClientPKCEChallenge, "The authorization request has no code_challenge.",
		Requested(without("code_challenge"))).In(flow),
	fault("auth.short-challenge", ids.AuthClientPKCEChallenge, "The code_challenge has five characters.",
		Requested(set("code_challenge", "short"))).In(flow).Also(ids.AuthClientPKCEVerifier),
	fault("auth.plain-challenge", ids.AuthClientPKCES256,
		"The code_challenge_method is plain, although S256 is offered.",
		plainChallenge(set("code_challenge_method", "plain"))).In(flow),
	fault("auth.challenge-without-method", ids.AuthClientPKCES256,
		"The authorization request has no code_challenge_method, which stands for plain.",
		plainChallenge(without("code_challenge_method"))).In(flow),
	fault("auth.no-verifier", ids.AuthClientPKCEVerifier, "The token request has no code_verifier.",
		redeemed(without("code_verifier"))).In(flow),
	fault("auth.other-verifier", ids.AuthClientPKCEVerifier, "The code_verifier does not match the code_challenge.",
		redeemed(set("code_verifier", strings.Repeat("v", 43)))).In(flow),
	fault("auth.same-challenge", ids.AuthClientPKCEFresh,
		"A second authorization request carries the code_challenge of the first.", sameChallenge).
		Seen(inSequence).In(lapsed),
	fault("auth.no-state", ids.AuthClientStateUsed, "The authorization request has no state.",
		stateAs(func(string) string { return "" })).In(flow),
	fault("auth.same-state", ids.AuthClientStateUsed, "A second authorization request carries the state of the first.",
		stateAs(func(string) string { return "constant" })).Seen(inSequence).In(lapsed),
	fault("auth.state-not-missed", ids.AuthClientStateMissingDiscarded,
		"A code is redeemed that came back without the state.", stateAs(func(state string) string { return state })).
		In("auth/state-missing"),
	fault("auth.iss-not-compared", ids.AuthClientISSCompared,
		"A code is redeemed that came back with the iss of another authorization server.",
		Returned(func(result url.Values) { result.Del("iss") })).In("auth/iss-mismatch"),
	fault("auth.state-not-compared", ids.AuthClientStateMismatchDiscarded,
		"A code is redeemed that came back with another state.", stateAs(func(state string) string { return state })).
		In("auth/state-mismatch"),
}

// tokenEndpointFaults are about the token request.
var tokenEndpointFaults = []Fault{
	fault("auth.token-get", ids.AuthClientTokenRequestForm, "The token request is a GET.",
		Seeking(TokenRequest, func(r *http.Request) {
			toQuery(r)
			r.Method = http.MethodGet
		})).In(flow),
	fault("auth.token-parameters-in-query", ids.AuthClientTokenRequestForm,
		"The parameters of the token request are in the query.", Seeking(TokenRequest, toQuery)).In(flow),
	fault("auth.code-twice", ids.AuthClientCodeOnce, "Each code is redeemed a second time.",
		AfterTokenRequest(func(next http.RoundTripper, again *http.Request,
			resp *http.Response) (*http.Response, error) {
			_ = Reread(resp)
			if second, err := next.RoundTrip(again); err == nil {
				_ = Reread(second)
			}
			return resp, nil
		})).In(lapsed),
	fault("auth.code-to-other-server", ids.AuthClientTokenRequestIssuer,
		"The code is sent to the other authorization server first.", sendingToOther).In("auth/two-servers"),
	fault("auth.token-request-follows-redirect", ids.AuthClientTokenRequestIssuer,
		"The token request follows a redirect to another origin.",
		AfterTokenRequest(func(next http.RoundTripper, again *http.Request,
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
		})).In("auth/token-redirect").Warns(),
	fault("auth.old-refresh-token", ids.AuthClientRefreshReplaced,
		"The second refresh uses the refresh token of the first.", func(c *client.Standalone) {
			first := ""
			redeemed(func(form url.Values) {
				if form.Has("refresh_token") {
					first = cmp.Or(first, form.Get("refresh_token"))
					form.Set("refresh_token", first)
				}
			})(c)
		}).Seen(inSequence).In("auth/refresh"),
	fault("auth.no-secret-in-form", ids.AuthClientTokenEndpointAuth,
		withoutSecret+", where client_secret_post is offered.", redeemed(without("client_secret"))).
		In("auth/token-post"),
	fault("auth.no-secret-in-header", ids.AuthClientTokenEndpointAuth,
		withoutSecret+", where client_secret_basic is offered.",
		Formed(func(_ url.Values, h http.Header) { h.Del("Authorization") })).In("auth/token-basic"),
	fault("auth.secret-twice", ids.AuthClientTokenEndpointAuth,
		"The token request has the secret in its header and in its form.", Formed(func(form url.Values, h http.Header) {
			if _, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				form.Set("client_secret", secret)
			}
		})).In("auth/token-basic"),
	fault("auth.secret-otherwise", ids.AuthClientTokenEndpointAuth,
		"The token request has the secret in its form, where client_secret_basic alone is offered.",
		Formed(func(form url.Values, h http.Header) {
			if id, secret, ok := (&http.Request{Header: h}).BasicAuth(); ok {
				h.Del("Authorization")
				form.Set("client_id", id)
				form.Set("client_secret", secret)
			}
		})).In("auth/token-basic").Warns(),
}

// tokenUseFaults are about how the client shows its token.
var tokenUseFaults = []Fault{
	fault("auth.no-token-in-notifications", ids.AuthClientEveryRequest,
		"notifications/initialized comes without the access token.",
		Headers(Calls("notifications/initialized"), "Authorization")).In(flow),
	fault("auth.no-token-in-responses", ids.AuthClientEveryRequest,
		"Responses to requests of the server come without the access token.", Headers(Answers, "Authorization")).
		In(flow),
	fault("auth.no-token-in-get", ids.AuthClientEveryRequest,
		"The GET for the listening stream comes without the access token.", Fields(http.MethodGet, "Authorization")).
		In(flow),
	fault("auth.token-in-own-header", ids.AuthClientBearerHeader,
		"The access token is in X-Access-Token in place of Authorization.",
		TokenAs(func(h *Head, token string) { h.Set("Authorization", "X-Access-Token: "+token) })).In(flow),
	fault("auth.token-by-other-scheme", ids.AuthClientBearerHeader,
		"The access token follows the scheme Token in Authorization.",
		TokenAs(func(h *Head, token string) { h.Set("Authorization", "Authorization: Token "+token) })).In(flow),
	fault("auth.token-in-query", ids.AuthClientNoTokenInQuery, "The access token is in the query as well.",
		TokenAs(func(h *Head, token string) { h.Query("access_token=" + token) })).In(flow).
		Also(ids.AuthClientOneTokenMethod),
	fault("auth.token-in-two-places", ids.AuthClientOneTokenMethod, "The access token is in X-Access-Token as well.",
		TokenAs(func(h *Head, token string) { h.Set("X-Access-Token", "X-Access-Token: "+token) })).In(flow),
	fault("auth.foreign-token", ids.AuthClientNoForeignTokens, "In place of the access token comes one from elsewhere.",
		TokenAs(func(h *Head, _ string) {
			h.Set("Authorization", "Authorization: Bearer a-token-from-somewhere-else")
		})).In(flow).Also(ids.AuthClientRequestWithToken),
	fault("auth.token-follows-redirect", ids.AuthClientNoForeignTokens,
		"The client follows a redirect to another origin and shows its access token there.",
		func(c *client.Standalone) { Following(c, true) }).In("auth/redirect").Warns(),
	fault("auth.token-never-shown", ids.AuthClientRequestWithToken,
		"The client obtains an access token and shows it in no request.",
		TokenAs(func(h *Head, _ string) { h.Set("Authorization") })).In(flow).Also(ids.AuthClientHandles401),
}

// repeatingRefused sends the first request again and again where a client would look for
// the metadata.
func repeatingRefused(c *client.Standalone) {
	at := c.URL
	Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
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
	Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if StepOf(r) == TokenRequest && len(issuers) > 1 {
			first := Repeatable(r)
			first.URL.Host, first.Host = issuers[1].Host, ""
			first.URL.Path = issuers[1].Path + strings.TrimPrefix(r.URL.Path, issuers[0].Path)
			if resp, err := next.RoundTrip(first); err == nil {
				_ = Reread(resp)
			}
		}
		return next.RoundTrip(r)
	})(c)
}

// documents changes metadata documents, wherever they are, before the client reads them.
func documents(change func(r *http.Request, document object)) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if at := StepOf(r); err == nil && (at == WellKnown || at == OtherStep) {
			Rewritten(resp, func(document object) { change(r, document) })
		}
		return resp, err
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
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if strings.HasPrefix(r.URL.Path, prefix) {
			r = r.Clone(r.Context())
			r.URL.Path = path
		}
		return next.RoundTrip(r)
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
