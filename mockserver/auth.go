package mockserver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// The tokens that a protected mock server knows. They are published, so that a
// run can be told of them.
const (
	ExpiredToken  = "mcpconform-expired-token-7c1e"
	AudienceToken = "mcpconform-token-for-another-7c1e"
)

// trusting accepts other tokens than the good one.
func trusting(fits func(token string, r *http.Request) bool) apply {
	return judging(func(token string, r *http.Request, d *server.Denial) *server.Denial {
		if d != nil && token != GoodToken && fits(token, r) {
			return nil
		}
		return d
	})
}

// judging changes the judgement of tokens.
func judging(change func(token string, r *http.Request, d *server.Denial) *server.Denial) apply {
	return Protecting(func(p *server.Protection) {
		before := p.Verify
		p.Verify = func(token, resource string, r *http.Request) *server.Denial {
			return change(token, r, before(token, resource, r))
		}
	})
}

// denying refuses requests that fit with 401, whatever their token.
func denying(fits func(r *http.Request) bool) apply {
	return judging(func(_ string, r *http.Request, d *server.Denial) *server.Denial {
		if fits(r) {
			return server.InvalidToken
		}
		return d
	})
}

// resourceURI changes the member resource of the metadata.
func resourceURI(change func(uri string) string) apply {
	return Naming(func(document object) {
		if uri, ok := document["resource"].(string); ok {
			document["resource"] = change(uri)
		}
	})
}

// explaining adds parameters to the challenge of a token that was refused.
func explaining(parameters string) func(metadata, code string) []string {
	return func(metadata, code string) []string {
		challenge := `Bearer resource_metadata="` + metadata + `"`
		if code != "" {
			challenge += `, error="` + code + `"` + parameters
		}
		return []string{challenge}
	}
}

// refusingSpelling takes no token from an Authorization header that begins in a certain way.
func refusingSpelling(beginning string) apply {
	return ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasPrefix(r.Header.Get("Authorization"), beginning) {
			r.Header.Set("Authorization", "Bearer none")
		}
		next.ServeHTTP(w, r)
	}))
}

// jwt returns the header of a JWT, or nil.
func jwt(token string) object { return part(token, 0) }

// part returns a part of a JWT, or nil: the header, then the claims.
func part(token string, n int) object {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[n])
	if err != nil {
		return nil
	}
	var found object
	if json.Unmarshal(raw, &found) != nil {
		return nil
	}
	return found
}

// openSession lets those requests of a session pass that fit, whatever their token.
func openSession(fits func(r *http.Request) bool) apply {
	open := func(r *server.Reply) bool { return r.Request.Header.Get(SessionHeader) != "" && fits(r.Request) }
	return ProtectedWith(Passing(server.Unauthorized, open))
}

// The requirements that a server with a wrong challenge cannot meet.
const (
	challengeURL  = ids.AuthServerWWWAuthenticateMetadataURL
	challengeCode = ids.AuthServerValidationFailureChallenge
	codeStatus    = ids.AuthServerErrorCodeStatus
)

// Authorization.
var authFaults = []Fault{
	fault("auth.missing-token-403", ids.AuthServerMissingToken401,
		"Requests without a token are refused with HTTP status 403.",
		ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status = http.StatusForbidden
			}
		}))),
	fault("auth.missing-token-error", ids.AuthServerMissingToken401,
		"Requests without a token get a JSON-RPC error with HTTP status 200.",
		ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status = http.StatusOK
				r.Header.Del("Www-Authenticate")
			}
		}))).
		Also(ids.HTTPServerNotification202, ids.HTTPServerResponse202, ids.HTTPServerAcceptedNoBody,
			ids.HTTPServerGetStreamOr405, ids.AuthServerValidatesFirst, ids.HTTPServerUnacceptableErrorStatus,
			ids.BaseResponseIDEcho, ids.BaseResponseOnlyToRequests, ids.BaseNotificationNoResponse),
	fault("auth.token-in-query", ids.AuthServerQueryTokenIgnored,
		"A token in the query is as good as one in the header.",
		ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if token := r.URL.Query().Get("access_token"); token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			next.ServeHTTP(w, r)
		}))),
	fault("auth.token-in-query-in-session", ids.AuthServerQueryTokenIgnored,
		"Within a session, a token in the query is as good as one in the header.",
		ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if token := r.URL.Query().Get("access_token"); token != "" && r.Header.Get(SessionHeader) != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			next.ServeHTTP(w, r)
		}))),
	fault("auth.any-scheme", ids.AuthServerMissingToken401,
		"The token is the last word of the Authorization header, whatever the scheme.",
		ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if words := strings.Fields(r.Header.Get("Authorization")); len(words) > 0 {
				r.Header.Set("Authorization", "Bearer "+words[len(words)-1])
			}
			next.ServeHTTP(w, r)
		}))).Warns().Also(ids.AuthServerMalformed400),
	fault("auth.no-challenge", ids.AuthServerWWWAuthenticate,
		"Answers with HTTP status 401 have no WWW-Authenticate header.",
		Challenging(func(string, string) []string { return nil })).
		Also(ids.AuthServerRefusalChallenge, challengeURL, challengeCode),
	fault("auth.get-without-challenge", ids.AuthServerWWWAuthenticate,
		"The 401 answer to a GET has no WWW-Authenticate header.",
		ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if r.Request.Method == http.MethodGet {
				r.Header.Del("Www-Authenticate")
			}
		}))).Also(challengeURL),
	fault("auth.challenge-without-metadata", challengeURL, "The challenge names a realm, but no resource_metadata.",
		Challenging(func(_, code string) []string {
			challenge := `Bearer realm="mcp"`
			if code != "" {
				challenge += `, error="` + code + `"`
			}
			return []string{challenge}
		})),
	fault("auth.metadata-url-relative", challengeURL, "The resource_metadata of the challenge is a path.",
		Challenging(func(_, code string) []string {
			return []string{`Bearer resource_metadata="/.well-known/oauth-protected-resource", error="` + code + `"`}
		})).Also(challengeCode),
	fault("auth.metadata-url-dead", challengeURL, "There is nothing at the resource_metadata of the challenge.",
		Challenging(func(metadata, code string) []string {
			challenge := `Bearer resource_metadata="` + metadata + `/none"`
			if code != "" {
				challenge += `, error="` + code + `"`
			}
			return []string{challenge}
		})),
	fault("auth.basic-scheme", ids.AuthHTTPConform,
		"The challenge is of the scheme Basic, and there are no resource metadata.",
		All(Challenging(func(string, string) []string { return []string{`Basic realm="mcp"`} }),
			Replying(server.ResourceMetadata, func(r *server.Reply) {
				r.Status, r.Body = http.StatusNotFound, []byte("not found")
			}))).Also(challengeURL, challengeCode, ids.AuthServerResourceMetadata),
	fault("auth.no-metadata", ids.AuthServerResourceMetadata, "There are no resource metadata.",
		ProtectedWith(Replying(server.ResourceMetadata,
			func(r *server.Reply) { r.Status, r.Body = http.StatusNotFound, []byte("not found") }))).Also(challengeURL),
	fault("auth.metadata-html", ids.AuthServerResourceMetadata, "The resource metadata are text/html.",
		ProtectedWith(Replying(server.ResourceMetadata,
			func(r *server.Reply) { r.Header.Set("Content-Type", "text/html") }))).Also(challengeURL),
	fault("auth.metadata-array", ids.AuthServerResourceMetadata, "The resource metadata are an array.",
		ProtectedWith(Replying(server.ResourceMetadata,
			func(r *server.Reply) { r.Body = slices.Concat([]byte("["), r.Body, []byte("]")) }))).Also(challengeURL),
	fault("auth.metadata-guarded", ids.AuthServerResourceMetadata,
		"The resource metadata can only be read with a token.",
		ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status, r.Body = http.StatusUnauthorized, []byte("{}")
			}
		}))).Also(challengeURL),
	fault("auth.no-servers", ids.AuthServerMetadataAuthorizationServers,
		"The resource metadata have no authorization_servers.", Naming(Lacking("authorization_servers"))),
	fault("auth.empty-servers", ids.AuthServerMetadataAuthorizationServers,
		"The authorization_servers are an empty array.", Naming(Having("authorization_servers", list{}))),
	fault("auth.servers-string", ids.AuthServerMetadataAuthorizationServers,
		"The authorization_servers are one string.", Naming(
			func(document object) { document["authorization_servers"] = document["authorization_servers"].(list)[0] })),
	fault("auth.no-resource", ids.AuthServerMetadataResource, "The resource metadata have no resource.",
		Naming(Lacking("resource"))),
	fault("auth.resource-elsewhere", ids.AuthServerMetadataResource, "The resource metadata are for another port.",
		resourceURI(func(string) string { return "http://127.0.0.1:1/mcp" })),
	fault("auth.resource-other-path", ids.AuthServerMetadataResource,
		"The resource in the metadata has the path of the metadata.",
		resourceURI(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") + transport.WellKnownResource })),
	fault("auth.resource-root", ids.AuthServerMetadataResource,
		"The resource in the metadata is the origin of the server, without its path.",
		resourceURI(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") })).Warns(),
	fault("auth.resource-without-scheme", ids.AuthResourceHasScheme,
		"The resource in the metadata begins with the host.",
		resourceURI(func(uri string) string { return strings.TrimPrefix(uri, "http://") })),
	fault("auth.resource-fragment", ids.AuthResourceNoFragment, "The resource in the metadata has a fragment.",
		resourceURI(func(uri string) string { return uri + "#mcp" })),
	fault("auth.resource-capitals", ids.AuthResourceLowercase,
		"The scheme of the resource in the metadata is in capitals.",
		resourceURI(func(uri string) string { return strings.Replace(uri, "http", "HTTP", 1) })),
	fault("auth.resource-slash", ids.AuthResourceNoTrailingSlash, "The resource in the metadata has a final slash.",
		resourceURI(func(uri string) string { return uri + "/" })),
	fault("auth.issuer-plain-http", ids.AuthSecureCommunication,
		"The resource metadata name an authorization server without TLS on another host.",
		Naming(Having("authorization_servers", list{"http://issuer.mcpconform.invalid"}))),
	fault("auth.issuer-no-metadata", ids.AuthAsMetadata, "The authorization server publishes no metadata.",
		ProtectedWith(RefusingHTTP(http.StatusNotFound,
			func(r *http.Request) bool { return r.URL.Path == IssuerMetadata }))),
	fault("auth.issuer-other", ids.AuthAsMetadata, "The metadata of the authorization server name another issuer.",
		Issuing(Having("issuer", "https://issuer.mcpconform.invalid"))),
	fault("auth.issuer-slash", ids.AuthAsMetadata,
		"The issuer in the metadata of the authorization server has a slash more.",
		Issuing(func(document object) { document["issuer"] = document["issuer"].(string) + "/" })).Warns(),
	fault("auth.no-registration", ids.AuthAsDynamicRegistration,
		"The authorization server offers no dynamic registration.", Issuing(Lacking("registration_endpoint"))),
	fault("auth.token-endpoint-plain-http", ids.AuthAsHTTPS, "The token endpoint is on another host without TLS.",
		Issuing(Having("token_endpoint", "http://issuer.mcpconform.invalid/token"))),
	fault("auth.token-forgotten", ids.AuthServerValidTokenAccepted,
		"A ping is refused with 401 although its token is the one with which the session began.",
		judging(func(token string, r *http.Request, d *server.Denial) *server.Denial {
			if Posted(r).Method == "ping" && Posted(r).ID.Usable() && token == GoodToken {
				return server.InvalidToken
			}
			return d
		})),
	fault("auth.scheme-case", ids.AuthServerSchemeAnyCase, "The scheme has to be spelled Bearer.",
		refusingSpelling("bearer ")),
	fault("auth.scheme-spaces", ids.AuthServerSchemeAnyCase, "One space has to stand between the scheme and the token.",
		refusingSpelling("Bearer  ")).Warns(),
	fault("auth.any-token", ids.AuthServerTokenValidated, "Any text in the form of a token is accepted.",
		trusting(func(token string, _ *http.Request) bool { return token != NarrowToken })).
		Also(ids.AuthServerOtherTokensRefused, ids.AuthServerAudienceValidated, ids.AuthServerExpiredToken401,
			ids.AuthServerInvalidToken401, ids.AuthServerValidatesFirst, ids.SecuritySessionBoundToUser),
	fault("auth.token-length", ids.AuthServerTokenValidated,
		"A token is compared with the good one by its beginning only.",
		trusting(func(token string, _ *http.Request) bool { return strings.HasPrefix(token, GoodToken[:12]) })),
	fault("auth.token-and-more", ids.AuthServerTokenValidated, "Any text that begins with the good token is accepted.",
		trusting(func(token string, _ *http.Request) bool { return strings.HasPrefix(token, GoodToken) })),
	fault("auth.token-beginning", ids.AuthServerTokenValidated, "A beginning of the good token is taken for it.",
		trusting(func(token string, _ *http.Request) bool { return strings.HasPrefix(GoodToken, token) })),
	fault("auth.token-other-case", ids.AuthServerTokenValidated, "Tokens are compared without regard to case.",
		trusting(func(token string, _ *http.Request) bool { return strings.EqualFold(token, GoodToken) })).Warns(),
	fault("auth.unsigned-jwt", ids.AuthServerTokenValidated, "A JWT of the algorithm none is taken for good.",
		trusting(func(token string, _ *http.Request) bool { return jwt(token)["alg"] == "none" })).
		Also(ids.AuthServerInvalidToken401),
	fault("auth.unverified-jwt", ids.AuthServerOtherTokensRefused, "The signature of a JWT is not verified.",
		trusting(func(token string, _ *http.Request) bool {
			alg, ok := jwt(token)["alg"].(string)
			return ok && alg != "none"
		})).Also(ids.AuthServerInvalidToken401),
	fault("auth.issuer-trusted", ids.AuthServerOtherTokensRefused,
		"A JWT that names the issuer of the metadata and the server itself is taken for good, whoever signed it.",
		trusting(func(token string, r *http.Request) bool {
			c := part(token, 1)
			return c["iss"] == "http://"+r.Host && c["aud"] == "http://"+r.Host+server.PathMCP &&
				jwt(token)["alg"] != "none"
		})).Also(ids.AuthServerInvalidToken401),
	fault("auth.other-audience", ids.AuthServerAudienceValidated, "A token for another resource is taken for good.",
		trusting(func(token string, _ *http.Request) bool { return token == AudienceToken })),
	fault("auth.expired-served", ids.AuthServerExpiredToken401, "An expired token is taken for good.",
		trusting(func(token string, _ *http.Request) bool { return token == ExpiredToken })).
		Also(ids.AuthServerValidatesFirst),
	fault("auth.expired-403", ids.AuthServerExpiredToken401, "An expired token is refused with HTTP status 403.",
		judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if token == ExpiredToken {
				return &server.Denial{Status: http.StatusForbidden, Code: "invalid_token",
					Text: "the token has expired"}
			}
			return d
		})).Also(codeStatus),
	fault("auth.invalid-token-403", ids.AuthServerInvalidToken401,
		"Tokens that are not known are refused with HTTP status 403.",
		judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InvalidToken && token != ExpiredToken {
				return &server.Denial{Status: http.StatusForbidden, Code: "invalid_token", Text: "who are you?"}
			}
			return d
		})).Also(codeStatus),
	fault("auth.invalid-token-500", ids.AuthServerInvalidToken401,
		"A JWT that cannot be verified ends in HTTP status 500.",
		judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InvalidToken && jwt(token) != nil {
				return &server.Denial{Status: http.StatusInternalServerError, Code: "invalid_token",
					Text: "cannot decode"}
			}
			return d
		})).Also(codeStatus),
	fault("auth.error-code", challengeCode, "The challenge for an invalid token has the error code insufficient_scope.",
		Challenging(func(metadata, code string) []string {
			challenge := `Bearer resource_metadata="` + metadata + `"`
			if code != "" {
				challenge += `, error="insufficient_scope"`
			}
			return []string{challenge}
		})).Also(codeStatus),
	fault("auth.error-missing", challengeCode, "The challenge for an invalid token has no error code.", Challenging(
		func(metadata, _ string) []string { return []string{`Bearer resource_metadata="` + metadata + `"`} })).Warns(),
	fault("auth.forbidden-without-challenge", ids.AuthServerRefusalChallenge, "403 comes without a challenge.",
		ProtectedWith(Replying(server.Forbidden, func(r *server.Reply) { r.Header.Del("Www-Authenticate") }))),
	fault("auth.malformed-without-challenge", ids.AuthServerRefusalChallenge,
		"400 for a malformed token comes without a challenge.", ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Header.Del("Www-Authenticate") }))).Warns(),
	fault("auth.challenge-bare", ids.AuthServerChallengeParameters,
		"The challenge of an answer with status 403 is the word Bearer.", ProtectedWith(Replying(server.Forbidden,
			func(r *server.Reply) { r.Header.Set("Www-Authenticate", "Bearer") }))),
	fault("auth.challenge-repeats", ids.AuthServerChallengeParametersOnce,
		"A challenge describes the error in two languages, by two parameters of the same name.", Challenging(
			explaining(`, error_description="No such token", error_description="Kein solches Token"`))),
	fault("auth.challenge-quotes", ids.AuthServerChallengeCharacters,
		"The error_description of a challenge has quotation marks in it.",
		Challenging(explaining(`, error_description="The token is not \"valid\""`))),
	fault("auth.challenge-error-uri", ids.AuthServerChallengeCharacters,
		"The error_uri of a challenge has a space in it.",
		Challenging(explaining(`, error_uri="https://example.com/invalid token"`))),
	fault("auth.malformed-401", ids.AuthServerErrorCodeStatus,
		"The error code invalid_request comes with HTTP status 401.", ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Status = http.StatusUnauthorized }))),
	fault("auth.error-without-token", ids.AuthServerNoErrorWithoutToken,
		"The challenge has the error code invalid_token where there was no token.",
		Challenging(func(metadata, code string) []string {
			if code == "" {
				code = "invalid_token"
			}
			return []string{`Bearer resource_metadata="` + metadata + `", error="` + code + `"`}
		})),
	fault("auth.other-scheme", challengeCode, "The challenge is of the scheme OAuth.",
		Challenging(func(metadata, code string) []string {
			return []string{`OAuth resource_metadata="` + metadata + `", error="` + code + `"`}
		})),
	fault("auth.narrow-served", ids.AuthServerInsufficientScope403, "The scope of a token does not matter.",
		trusting(func(token string, _ *http.Request) bool { return token == NarrowToken })),
	fault("auth.narrow-401", ids.AuthServerInsufficientScope403,
		"A request beyond the scope of its token is refused with HTTP status 401.",
		judging(func(_ string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InsufficientScope {
				return &server.Denial{Status: http.StatusUnauthorized, Code: d.Code, Text: d.Text}
			}
			return d
		})).Also(codeStatus),
	fault("auth.malformed-500", ids.AuthServerMalformed400,
		"An Authorization header without a token ends in HTTP status 500.",
		ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Status = http.StatusInternalServerError }))).Also(codeStatus),
	fault("auth.malformed-served", ids.AuthServerMalformed400,
		"A request with an Authorization header without a token is served.",
		ProtectedWith(Passing(server.MalformedToken, func(*server.Reply) bool { return true }))),
	fault("auth.session-of-anyone", ids.SecuritySessionBoundToUser,
		"A session can be used with the token of another user.",
		Protecting(func(p *server.Protection) { p.Verify = Verify })),
	fault("auth.get-of-anyone", ids.SecuritySessionBoundToUser,
		"The listening stream of a session can be opened with the token of another user.",
		trusting(func(token string, r *http.Request) bool { return token == UserToken && r.Method == http.MethodGet })),
	fault("auth.delete-of-anyone", ids.SecuritySessionBoundToUser,
		"A session can be ended with the token of another user.", trusting(
			func(token string, r *http.Request) bool { return token == UserToken && r.Method == http.MethodDelete })),
	fault("auth.session-of-second", ids.SecuritySessionBoundToUser,
		"The session of the second user can be used with the token of the first.",
		judging(func(token string, r *http.Request, d *server.Denial) *server.Denial {
			if token == GoodToken && r.Header.Get(SessionHeader) != "" {
				return nil
			}
			return d
		})),
	fault("auth.session-is-enough", ids.SecuritySessionNotAuthentication, "Within a session, no token is needed.",
		openSession(func(*http.Request) bool { return true })).Also(ids.AuthServerValidatesFirst),
	fault("auth.get-open", ids.AuthServerValidatesFirst,
		"The listening stream of a session can be opened without a token.",
		openSession(func(r *http.Request) bool { return r.Method == http.MethodGet })).
		Also(ids.SecuritySessionNotAuthentication),
	fault("auth.delete-open", ids.AuthServerValidatesFirst, "A session can be ended without a token.",
		openSession(func(r *http.Request) bool { return r.Method == http.MethodDelete })).
		Also(ids.SecuritySessionNotAuthentication),
	fault("auth.notification-open", ids.AuthServerValidatesFirst, "Within a session, notifications need no token.",
		openSession(func(r *http.Request) bool {
			return r.Method == http.MethodPost && Posted(r).Kind == wire.Notification
		})).Also(ids.SecuritySessionNotAuthentication),
	fault("auth.response-open", ids.AuthServerValidatesFirst, "Within a session, responses need no token.",
		openSession(func(r *http.Request) bool { return r.Method == http.MethodPost && Posted(r).IsResponse() })).
		Also(ids.SecuritySessionNotAuthentication),
	fault("auth.notification-at-door", ids.AuthServerValidatesFirst,
		"A notification that names no session is accepted without a token.",
		ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if q := r.Request; q.Method == http.MethodPost && q.Header.Get(SessionHeader) == "" &&
				Posted(q).Kind == wire.Notification {
				r.Status, r.Body, r.Header = http.StatusAccepted, nil, make(http.Header)
			}
		}))),
	fault("auth.expired-in-session", ids.AuthServerValidatesFirst,
		"Within a session, an expired token is taken for good.", trusting(func(token string, r *http.Request) bool {
			return token == ExpiredToken && r.Header.Get(SessionHeader) != ""
		})),
	fault("auth.refused-delete-ends", ids.AuthServerValidatesFirst,
		"A DELETE without a valid token is refused, and ends the session.",
		BeforeRefusal(func(r *http.Request, _ *wire.Message) bool { return r.Method == http.MethodDelete })),
	fault("auth.refused-call-done", ids.AuthServerValidatesFirst,
		"A call without a valid token is refused, and the tool has run.",
		BeforeRefusal(func(_ *http.Request, m *wire.Message) bool { return m.Method == "tools/call" })),
	fault("auth.refused-cancellation-done", ids.AuthServerValidatesFirst,
		"A notification about a cancelled request without a valid token is refused, and ends the request.",
		BeforeRefusal(func(_ *http.Request, m *wire.Message) bool { return m.Method == "notifications/cancelled" })),
	fault("auth.notification-refused", ids.AuthServerValidTokenAccepted,
		"A notification about a cancelled request is refused with 401, although its token is valid.",
		denying(func(r *http.Request) bool { return Posted(r).Method == "notifications/cancelled" })).
		Also(ids.MetaAttachNotification),
	fault("auth.delete-refused", ids.AuthServerValidTokenAccepted,
		"A DELETE is refused with 401, although its token is valid.",
		denying(func(r *http.Request) bool { return r.Method == http.MethodDelete })).Also(ids.HTTPServerDeleteSession),
	fault("auth.get-refused", ids.AuthServerValidTokenAccepted,
		"A GET is refused with 401, although its token is valid.",
		denying(func(r *http.Request) bool { return r.Method == http.MethodGet })),
	fault("auth.response-refused", ids.AuthServerValidTokenAccepted,
		"A response to no request is refused with 401, although its token is valid.",
		denying(func(r *http.Request) bool {
			return Posted(r).IsResponse() && strings.HasPrefix(Posted(r).ID.String(), `"`)
		})).Also(ids.HTTPServerSessionEnded404),
	fault("auth.list-refused", ids.AuthServerValidTokenAccepted,
		"prompts/list is refused with 401, although its token is valid.",
		denying(func(r *http.Request) bool { return Posted(r).Method == "prompts/list" })),
	fault("auth.refused-with-result", ids.AuthServerNoDataUnauthorized,
		"The 401 answer to an initialize holds the result.", ProtectedWith(Passing(server.Unauthorized,
			func(r *server.Reply) bool { return Posted(r.Request).Method == "initialize" }),
			Replying(server.AnsweredJSON, func(r *server.Reply) {
				scheme, token, _ := strings.Cut(r.Request.Header.Get("Authorization"), " ")
				if Posted(r.Request).Method == "initialize" &&
					!(strings.EqualFold(scheme, "Bearer") && strings.TrimLeft(token, " ") == GoodToken) {
					r.Status = http.StatusUnauthorized
					challenge := `Bearer resource_metadata="http://` + r.Request.Host + transport.WellKnownResource +
						`/mcp"`
					if Bearing(r.Request) {
						challenge += `, error="invalid_token"`
					}
					r.Header.Set("Www-Authenticate", challenge)
				}
			}))),
}
