package mockauth

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var metadataFaults = []Fault{
	{
		ID: "metadata.missing", Requirement: ids.AuthAsMetadata, Summary: "There are no metadata.",
		Apply: func(s *Setup) { s.Wrap = without(authserver.WellKnown) },
	},
	{
		ID: "metadata.openid-only", Requirement: ids.AuthAsMetadata, WarnOnly: true,
		Summary: "The metadata are only where OpenID Connect has them.",
		Apply: requesting(func(r *http.Request) {
			switch r.URL.Path {
			case authserver.WellKnown:
				r.URL.Path = "/nothing"
			case "/.well-known/openid-configuration":
				r.URL.Path = authserver.WellKnown
			}
		}),
	},
	{
		ID: "metadata.other-issuer", Requirement: ids.AuthAsMetadata, Summary: "The metadata name another issuer.",
		Apply: with(map[string]any{"issuer": "https://other.example"}),
	},
	{
		ID: "metadata.issuer-slash", Requirement: ids.AuthAsMetadata, WarnOnly: true,
		Summary: "The issuer in the metadata has a final slash, the given one has none.",
		Apply:   document(func(d map[string]any) { d["issuer"] = d["issuer"].(string) + "/" }),
	},
	{
		ID: "metadata.text", Requirement: ids.AuthAsMetadata, Summary: "The metadata are of the type text/plain.",
		Apply: answering(authserver.Metadata, func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
			h.Set("Content-Type", "text/plain")
			return status
		}),
	},
	{
		ID: "metadata.no-response-types", Requirement: ids.AuthAsMetadataMembers,
		Summary: "The metadata have no response_types_supported.",
		Apply:   with(map[string]any{"response_types_supported": nil}),
	},
	{
		ID: "metadata.no-token-endpoint", Requirement: ids.AuthAsMetadataMembers,
		Summary: "The metadata have no token_endpoint.", Apply: with(map[string]any{"token_endpoint": nil}),
	},
	{
		ID: "metadata.list-as-text", Requirement: ids.AuthAsMetadataMembers,
		Summary: "scopes_supported is one text.", Apply: with(map[string]any{"scopes_supported": "read write"}),
	},
	{
		ID: "metadata.empty-list", Requirement: ids.AuthAsMetadataMembers,
		Summary: "scopes_supported is an empty array.", Apply: with(map[string]any{"scopes_supported": []any{}}),
	},
	{
		ID: "metadata.relative-endpoint", Requirement: ids.AuthAsMetadataMembers,
		Summary: "revocation_endpoint is a path.", Apply: with(map[string]any{"revocation_endpoint": "/revoke"}),
	},
	{
		ID: "metadata.fragment", Requirement: ids.AuthAsMetadataMembers,
		Summary: "authorization_endpoint has a fragment.",
		Apply: document(func(d map[string]any) {
			d["authorization_endpoint"] = d["authorization_endpoint"].(string) + "#start"
		}),
	},
	{
		ID: "metadata.http", Requirement: ids.AuthAsHTTPS, Summary: "revocation_endpoint is http at a public host.",
		Apply: with(map[string]any{"revocation_endpoint": "http://issuer.example.com/revoke"}),
	},
	{
		ID: "metadata.plain-only", Requirement: ids.AuthAsPKCES256,
		Summary: "The metadata list only the method plain of PKCE.",
		Apply:   with(map[string]any{"code_challenge_methods_supported": []any{"plain"}}),
	},
}

var registrationFaults = []Fault{
	{
		ID: "registration.none", Requirement: ids.AuthAsDynamicRegistration,
		Summary: "The server registers no clients.", Apply: func(s *Setup) { s.NoRegistration = true },
	},
	{
		ID: "registration.broken", Requirement: ids.AuthAsDynamicRegistration,
		Summary: "Every registration is refused.",
		Apply: denying(authserver.Registration, "invalid_client_metadata",
			func(authserver.Call) bool { return true }),
	},
	{
		ID: "registration.no-client-id", Requirement: ids.AuthAsRegistrationAnswer,
		Summary: "The answer to a registration has no client_id.",
		// Without an id, nothing else can be tried, and the registration itself is of no use.
		Apply: succeeding(authserver.Registration, map[string]any{"client_id": nil}),
	},
	{
		ID: "registration.no-redirects", Requirement: ids.AuthAsRegistrationAnswer,
		Summary: "The answer to a registration has no redirect_uris.",
		Apply:   succeeding(authserver.Registration, map[string]any{"redirect_uris": nil}),
	},
	{
		ID: "registration.no-expiry", Requirement: ids.AuthAsRegistrationAnswer,
		Summary: "A secret comes without client_secret_expires_at.",
		Apply:   succeeding(authserver.Registration, map[string]any{"client_secret_expires_at": nil}),
	},
	{
		ID: "registration.status-200", Requirement: ids.AuthAsRegistrationAnswer, WarnOnly: true,
		Summary: "A registration is answered with status 200.",
		Apply:   inPlaceOf(http.StatusCreated, http.StatusOK, authserver.Registration),
	},
	{
		ID: "registration.text", Requirement: ids.AuthAsRegistrationAnswer,
		Summary: "The answer to a registration is of the type text/plain.",
		Apply: answering(authserver.Registration,
			func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				if status == http.StatusCreated {
					h.Set("Content-Type", "text/plain")
				}
				return status
			}),
	},
	{
		ID: "registration.no-error-code", Requirement: ids.AuthAsRegistrationError,
		Summary: "The refusal of a registration has a message and no error.",
		Apply:   failing(authserver.Registration, 0, map[string]any{"error": nil, "message": "no"}),
	},
	{
		ID: "registration.error-status", Requirement: ids.AuthAsRegistrationError, WarnOnly: true,
		Summary: "A registration is refused with status 422.", Apply: failing(authserver.Registration, 422, nil),
	},
	{
		ID: "registration.strict", Requirement: ids.AuthAsRegistrationUnknownMembers,
		Summary: "A registration with an unknown member is refused.",
		Apply: denying(authserver.Registration, "invalid_client_metadata", func(c authserver.Call) bool {
			for name := range c.Body {
				if !slices.Contains(knownMembers, name) {
					return true
				}
			}
			return false
		}),
	},
	{
		ID: "registration.http-redirect", Requirement: ids.AuthAsRegisteredRedirects,
		Summary: "A redirect URI with http at another host is registered.", Apply: ignoring(authserver.SafeRedirects),
	},
	{
		ID: "registration.without-redirect", Requirement: ids.AuthAsRegisteredRedirects,
		Summary: "A client without redirect URIs is registered.", Apply: ignoring(authserver.SomeRedirect),
	},
}

var authorizationFaults = []Fault{
	{
		ID: "redirect.prefix", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI may go on after the registered one.",
		Apply: matching(func(registered, used string) bool {
			return strings.HasPrefix(used, registered+"/") || strings.HasPrefix(used, registered+"more")
		}),
	},
	{
		ID: "redirect.query", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI may have another query.",
		Apply: matching(func(registered, used string) bool {
			before, _, _ := strings.Cut(used, "?")
			return before == registered
		}),
	},
	{
		ID: "redirect.slash", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI may have a final slash.",
		Apply:   matching(func(registered, used string) bool { return strings.TrimSuffix(used, "/") == registered }),
	},
	{
		ID: "redirect.case", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "Redirect URIs are compared without regard to case.", Apply: matching(strings.EqualFold),
	},
	{
		ID: "redirect.port", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI may have any port, also beyond loopback.",
		Apply: matching(func(registered, used string) bool {
			return strings.Replace(used, ":8443", "", 1) == registered
		}),
	},
	{
		ID: "redirect.subdomain", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI may be at a subdomain.",
		Apply: matching(func(registered, used string) bool {
			return strings.Replace(used, "sub.", "", 1) == registered
		}),
	},
	{
		ID: "redirect.dots", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A redirect URI is compared up to the length of the registered path, and dots lead out of it.",
		Apply: matching(func(registered, used string) bool {
			return strings.HasPrefix(used, registered) && strings.Contains(used, "/../")
		}),
	},
	{
		ID: "redirect.loopback-path", Requirement: ids.AuthAsExactRedirectURI,
		Summary: "A loopback redirect URI may have any path.",
		Apply: matching(func(registered, used string) bool {
			a, errA := url.Parse(registered)
			b, errB := url.Parse(used)
			return errA == nil && errB == nil && a.Hostname() == "127.0.0.1" && b.Hostname() == "127.0.0.1"
		}),
	},
	{
		ID: "redirect.loopback-port", Requirement: ids.AuthAsLoopbackPort,
		Summary: "A loopback redirect URI must have the registered port.",
		Apply: func(s *Setup) {
			s.Faults.SameRedirect = func(registered, used string) bool { return registered == used }
		},
	},
	{
		ID: "redirect.query-replaced", Requirement: ids.AuthAsRedirectQuery,
		Summary: "The answer replaces the query of the redirect URI.",
		Apply: location(func(_ authserver.Call, to *url.URL) {
			q := to.Query()
			q.Del("tenant")
			to.RawQuery = q.Encode()
		}),
	},
	{
		ID: "redirect.unknown-client", Requirement: ids.AuthAsNoUntrustedRedirect,
		Summary: "The error about an unknown client goes to the redirect URI of the request.",
		Apply:   ignoring(authserver.KnownClient),
	},
	{
		ID: "redirect.error-anywhere", Requirement: ids.AuthAsNoUntrustedRedirect,
		Summary: "The error about a redirect URI goes to that redirect URI.", Apply: ignoring(authserver.KnownRedirect),
	},
	{
		ID: "authorization.any-response-type", Requirement: ids.AuthAsResponseType,
		Summary: "Every response type leads to a code.", Apply: ignoring(authserver.KnownResponseType),
	},
	{
		ID: "authorization.error-page", Requirement: ids.AuthAsAuthorizationError,
		Summary: "Errors are shown on a page.",
		Apply: answering(authserver.Authorization,
			func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				if !strings.Contains(h.Get("Location"), "error=") {
					return status
				}
				h.Del("Location")
				return http.StatusBadRequest
			}),
	},
	{
		ID: "authorization.error-characters", Requirement: ids.AuthAsAuthorizationError,
		Summary: "The error code has quotation marks.",
		Apply:   onError(func(v url.Values) { v.Set("error", `"`+v.Get("error")+`"`) }),
	},
	{
		ID: "state.dropped", Requirement: ids.AuthAsState, Summary: "The redirect has no state.",
		Apply: redirecting(func(v url.Values) { v.Del("state") }),
	},
	{
		ID: "state.error", Requirement: ids.AuthAsState, Summary: "The redirect with an error has no state.",
		Apply: onError(func(v url.Values) { v.Del("state") }),
	},
	{
		ID: "state.encoded-twice", Requirement: ids.AuthAsState, Summary: "The state is encoded twice.",
		Apply: redirecting(func(v url.Values) { v.Set("state", url.QueryEscape(v.Get("state"))) }),
	},
	{
		ID: "state.cut", Requirement: ids.AuthAsState, Summary: "A state is cut after 255 characters.",
		Apply: redirecting(func(v url.Values) { v.Set("state", v.Get("state")[:min(255, len(v.Get("state")))]) }),
	},
	{
		ID: "iss.missing", Requirement: ids.AuthAsISS, Summary: "iss is promised and does not come.",
		Apply: redirecting(func(v url.Values) { v.Del("iss") }),
	},
	{
		ID: "iss.other", Requirement: ids.AuthAsISS, Summary: "iss is another issuer.",
		Apply: redirecting(func(v url.Values) { v.Set("iss", "https://other.example") }),
	},
	{
		ID: "iss.error", Requirement: ids.AuthAsISS, Summary: "iss does not come with an error.",
		Apply: onError(func(v url.Values) { v.Del("iss") }),
	},
	{
		ID: "cors.any", Requirement: ids.AuthAsNoCors,
		Summary: "The authorization endpoint allows scripts of every site.",
		Apply: answering(authserver.Authorization,
			func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				h.Set("Access-Control-Allow-Origin", "*")
				return status
			}),
	},
	{
		ID: "pkce.optional", Requirement: ids.AuthAsPKCERequired,
		Summary: "A public client gets tokens without PKCE.", Apply: ignoring(authserver.ChallengeRequired),
	},
	{
		ID: "pkce.any-method", Requirement: ids.AuthAsChallengeMethod,
		Summary: "Every code_challenge_method is accepted.", Apply: ignoring(authserver.ChallengeMethod),
	},
	{
		ID: "pkce.plain", Requirement: ids.AuthAsChallengeMethod, WarnOnly: true,
		Summary: "The method plain is accepted, and not listed.",
		Apply: requesting(func(r *http.Request) {
			q := r.URL.Query()
			if q.Get("code_challenge_method") != "plain" {
				return
			}
			q.Set("code_challenge_method", "S256")
			q.Set("code_challenge", authserver.Challenge(q.Get("code_challenge")))
			r.URL.RawQuery = q.Encode()
		}),
	},
	{
		ID: "pkce.verifier-optional", Requirement: ids.AuthAsPKCEVerified,
		Summary: "A code is redeemed without a verifier.", Apply: ignoring(authserver.VerifierRequired),
	},
	{
		ID: "pkce.unverified", Requirement: ids.AuthAsPKCEVerified,
		Summary: "A code is redeemed with any verifier.", Apply: ignoring(authserver.VerifierMatches),
	},
	{
		ID: "pkce.refused", Requirement: ids.AuthAsPKCES256,
		Summary: "The right verifier is refused.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, body map[string]any) int {
			if status != http.StatusOK || !c.Values.Has("code_verifier") {
				return status
			}
			clear(body)
			body["error"] = "invalid_grant"
			return http.StatusBadRequest
		}),
		// Nobody can log in there.
		Collateral: []string{ids.AuthAsOfferedMethods, ids.AuthAsSecretInBody},
	},
	{
		ID: "parameters.strict-authorization", Requirement: ids.AuthAsUnknownParameters,
		Summary: "An unknown parameter of an authorization request is refused.",
		Apply:   denying(authserver.Authorization, "invalid_request", unknown),
	},
	{
		ID: "parameters.strict-token", Requirement: ids.AuthAsUnknownParameters,
		Summary: "An unknown parameter of a token request is refused.",
		Apply:   denying(authserver.Token, "invalid_request", unknown),
	},
	{
		ID: "parameters.resource", Requirement: ids.AuthAsUnknownParameters,
		Summary: "The parameter resource of an authorization request is refused.",
		Apply: both(ignoring(authserver.ResourceRequired), denying(authserver.Authorization, "invalid_request",
			func(c authserver.Call) bool { return c.Values.Has("resource") })),
	},
	{
		ID: "parameters.empty-scope", Requirement: ids.AuthAsEmptyParameters,
		Summary: "An empty scope of an authorization request is refused.",
		Apply:   denying(authserver.Authorization, "invalid_scope", empty("scope")),
	},
	{
		ID: "parameters.empty-secret", Requirement: ids.AuthAsEmptyParameters,
		Summary: "An empty client_secret of a public client is refused.",
		Apply:   denying(authserver.Token, "invalid_client", empty("client_secret")),
	},
}

var tokenFaults = []Fault{
	{
		ID: "code.again", Requirement: ids.AuthAsCodeOnce, Summary: "A code is redeemed again and again.",
		Apply: ignoring(authserver.CodeOnce),
	},
	{
		ID: "code.other-client", Requirement: ids.AuthAsCodeOfClient,
		Summary: "A code is redeemed for another client.", Apply: ignoring(authserver.CodeOfClient),
	},
	{
		ID: "token.status", Requirement: ids.AuthAsTokenAnswer, Summary: "A token comes with status 201.",
		Apply: inPlaceOf(http.StatusOK, http.StatusCreated, authserver.Token),
	},
	{
		ID: "token.no-type", Requirement: ids.AuthAsTokenAnswer, Summary: "A token comes without token_type.",
		Apply: succeeding(authserver.Token, map[string]any{"token_type": nil}),
	},
	{
		ID: "token.no-token", Requirement: ids.AuthAsTokenAnswer,
		Summary: "The token is called token, not access_token.",
		Apply:   succeeding(authserver.Token, map[string]any{"access_token": nil, "token": "a-token-of-some-length"}),
	},
	{
		ID: "token.text", Requirement: ids.AuthAsTokenAnswer,
		Summary: "The answer with a token is of the type text/html.",
		Apply: answering(authserver.Token, func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
			if status == http.StatusOK {
				h.Set("Content-Type", "text/html")
			}
			return status
		}),
	},
	{
		ID: "token.life-as-text", Requirement: ids.AuthAsTokenAnswer, Summary: "expires_in is a text.",
		Apply: succeeding(authserver.Token, map[string]any{"expires_in": "3600"}),
	},
	{
		ID: "token.stored", Requirement: ids.AuthAsNoStore, Summary: "Answers with tokens may be stored.",
		Apply: answering(authserver.Token, func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
			h.Del("Cache-Control")
			return status
		}),
	},
	{
		ID: "token.refreshed-stored", Requirement: ids.AuthAsNoStore,
		Summary: "Answers to the use of a refresh token may be stored.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, h http.Header, _ map[string]any) int {
			if c.Values.Get("grant_type") == "refresh_token" {
				h.Set("Cache-Control", "no-cache")
			}
			return status
		}),
	},
	{
		ID: "token.error-200", Requirement: ids.AuthAsTokenError, Summary: "Errors have status 200.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, _ map[string]any) int {
			if status == http.StatusBadRequest {
				return http.StatusOK
			}
			return status
		}),
	},
	{
		ID: "token.error-500", Requirement: ids.AuthAsTokenError, Summary: "A made-up grant type ends in status 500.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, _ map[string]any) int {
			if c.Values.Get("grant_type") == "mcpconform" {
				return http.StatusInternalServerError
			}
			return status
		}),
	},
	{
		ID: "token.error-message", Requirement: ids.AuthAsTokenError, Summary: "Errors have a message and no code.",
		Apply: failing(authserver.Token, 0, map[string]any{"error": nil, "message": "no"}),
	},
	{
		ID: "token.error-object", Requirement: ids.AuthAsTokenError, Summary: "The error is an object.",
		Apply: failing(authserver.Token, 0, map[string]any{"error": map[string]any{"code": "invalid_grant"}}),
	},
	{
		ID: "token.error-characters", Requirement: ids.AuthAsTokenError, Summary: "The error has a line break.",
		Apply: failing(authserver.Token, 0, map[string]any{"error": "invalid\ngrant"}),
	},
	{
		ID: "token.error-code", Requirement: ids.AuthAsTokenError, WarnOnly: true,
		Summary: "Every error is called invalid_request.",
		Apply:   failing(authserver.Token, 0, map[string]any{"error": "invalid_request"}),
	},
	{
		ID: "client.status", Requirement: ids.AuthAsClientChallenge,
		Summary: "Wrong credentials in the header are answered with status 400.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, _ map[string]any) int {
			if status == http.StatusUnauthorized {
				return http.StatusBadRequest
			}
			return status
		}),
	},
	{
		ID: "client.no-challenge", Requirement: ids.AuthAsClientChallenge,
		Summary: "Status 401 comes without WWW-Authenticate.",
		Apply: answering(authserver.Token, func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
			h.Del("WWW-Authenticate")
			return status
		}),
	},
	{
		ID: "client.secret-optional", Requirement: ids.AuthAsClientAuthenticated,
		Summary: "A client that has a secret needs not send it.", Apply: ignoring(authserver.SecretRequired),
	},
	{
		ID: "client.any-secret", Requirement: ids.AuthAsClientAuthenticated,
		Summary:    "Every secret is right.",
		Apply:      ignoring(authserver.SecretMatches),
		Collateral: []string{ids.AuthAsClientChallenge}, // nothing is wrong with a wrong secret
	},
	{
		ID: "client.no-post", Requirement: ids.AuthAsSecretInBody,
		Summary: "The metadata offer client_secret_basic and none, not client_secret_post.",
		Apply:   with(map[string]any{"token_endpoint_auth_methods_supported": []any{"none", "client_secret_basic"}}),
	},
	{
		ID: "client.post-refused", Requirement: ids.AuthAsSecretInBody,
		Summary:    "The right secret in the body is refused.",
		Apply:      refusing(by(authserver.AuthPost)),
		Collateral: []string{ids.AuthAsOfferedMethods}, // which has it in the metadata
	},
	{
		ID: "client.basic-refused", Requirement: ids.AuthAsOfferedMethods,
		Summary: "The right secret in the header is refused, and offered.", Apply: refusing(by(authserver.AuthBasic)),
	},
	{
		ID: "client.basic-and-id", Requirement: ids.AuthAsOfferedMethods,
		Summary: "The right secret in the header is refused unless the body has the client_id too.",
		Apply: both(
			with(map[string]any{"token_endpoint_auth_methods_supported": []any{authserver.AuthBasic,
				authserver.AuthPost}}),
			refusing(func(c authserver.Call) bool {
				return by(authserver.AuthBasic)(c) &&
					!c.Values.Has("client_id")
			})),
	},
	{
		ID: "token.other-audience", Requirement: ids.AuthAsAudience,
		Summary: "The audience of each access token is the issuer.", Apply: ignoring(authserver.TokenOfResource),
	},
	{
		ID: "token.short", Requirement: ids.AuthAsUnguessable, Summary: "Access tokens have eight characters.",
		Apply: answering(authserver.Token, func(_ authserver.Call, status int, _ http.Header, body map[string]any) int {
			if text, ok := body["access_token"].(string); ok {
				body["access_token"] = text[len(text)-8:]
			}
			return status
		}),
	},
	{
		ID: "token.same", Requirement: ids.AuthAsUnguessable, Summary: "Everybody gets the same access token.",
		Apply: succeeding(authserver.Token,
			map[string]any{"access_token": "one-access-token-for-everybody-in-the-world"}),
	},
}

var refreshFaults = []Fault{
	{
		ID: "refresh.same", Requirement: ids.AuthAsRotateRefreshTokens,
		Summary: "The use of a refresh token gives the same one again.", Apply: ignoring(authserver.RefreshRotated),
	},
	{
		ID: "refresh.none", Requirement: ids.AuthAsRotateRefreshTokens,
		Summary: "The use of a refresh token gives none.",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, body map[string]any) int {
			if c.Values.Get("grant_type") == "refresh_token" {
				delete(body, "refresh_token")
			}
			return status
		}),
	},
	{
		ID: "refresh.again", Requirement: ids.AuthAsRefreshOnce,
		Summary: "A used refresh token goes on working.", Apply: ignoring(authserver.RefreshOnce),
	},
	{
		ID: "refresh.other-client", Requirement: ids.AuthAsRefreshOfClient,
		Summary: "A refresh token works for another client.", Apply: ignoring(authserver.RefreshOfClient),
	},
}

var (
	knownMembers = []string{"client_name", "redirect_uris", "token_endpoint_auth_method", "grant_types",
		"response_types", "application_type"}
	knownParameters = []string{"response_type", "client_id", "client_secret", "redirect_uri", "state", "scope",
		"resource", "code_challenge", "code_challenge_method", "code_verifier", "grant_type", "code", "refresh_token"}
)

func unknown(c authserver.Call) bool {
	for name := range c.Values {
		if !slices.Contains(knownParameters, name) {
			return true
		}
	}
	return false
}

func empty(name string) func(authserver.Call) bool {
	return func(c authserver.Call) bool { return c.Values.Has(name) && c.Values.Get(name) == "" }
}

// onError changes the parameters of redirects with an error.
func onError(change func(url.Values)) apply {
	return redirecting(func(v url.Values) {
		if v.Has("error") {
			change(v)
		}
	})
}

// by tells the token requests whose client authenticates by a method.
func by(method string) func(authserver.Call) bool {
	return func(c authserver.Call) bool { return slices.Contains(c.Auth, method) }
}

// refusing refuses token requests that are in order.
func refusing(fits func(authserver.Call) bool) apply {
	return answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, body map[string]any) int {
		if status != http.StatusOK || !fits(c) {
			return status
		}
		clear(body)
		body["error"] = "unauthorized_client"
		return http.StatusBadRequest
	})
}

// without has nothing below a path.
func without(prefix string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(path.Clean(r.URL.Path), prefix) {
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
