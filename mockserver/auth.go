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

// claims returns the claims of a JWT, or nil.
func claims(token string) object { return part(token, 1) }

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
	{ID: "auth.missing-token-403", Requirement: ids.AuthServerMissingToken401, Transports: OverHTTP,
		Summary: "Requests without a token are refused with HTTP status 403.",
		Apply: ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status = http.StatusForbidden
			}
		}))},
	{ID: "auth.missing-token-error", Requirement: ids.AuthServerMissingToken401, Transports: OverHTTP,
		Summary: "Requests without a token get a JSON-RPC error with HTTP status 200.",
		Collateral: []string{
			ids.HTTPServerNotification202, ids.HTTPServerResponse202, ids.HTTPServerAcceptedNoBody,
			ids.HTTPServerGetStreamOr405,
			ids.AuthServerValidatesFirst, ids.HTTPServerUnacceptableErrorStatus, ids.BaseResponseIDEcho,
			ids.BaseResponseOnlyToRequests, ids.BaseNotificationNoResponse,
		},
		Apply: ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status = http.StatusOK
				r.Header.Del("Www-Authenticate")
			}
		}))},
	{ID: "auth.token-in-query", Requirement: ids.AuthServerQueryTokenIgnored, Transports: OverHTTP,
		Summary: "A token in the query is as good as one in the header.",
		Apply: ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if token := r.URL.Query().Get("access_token"); token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			next.ServeHTTP(w, r)
		}))},
	{ID: "auth.token-in-query-in-session", Requirement: ids.AuthServerQueryTokenIgnored, Transports: OverHTTP,
		Summary: "Within a session, a token in the query is as good as one in the header.",
		Apply: ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if token := r.URL.Query().Get("access_token"); token != "" && r.Header.Get(SessionHeader) != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			next.ServeHTTP(w, r)
		}))},
	{ID: "auth.any-scheme", Requirement: ids.AuthServerMissingToken401, Transports: OverHTTP, WarnOnly: true,
		Summary:    "The token is the last word of the Authorization header, whatever the scheme.",
		Collateral: []string{ids.AuthServerMalformed400},
		Apply: ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if words := strings.Fields(r.Header.Get("Authorization")); len(words) > 0 {
				r.Header.Set("Authorization", "Bearer "+words[len(words)-1])
			}
			next.ServeHTTP(w, r)
		}))},
	{ID: "auth.no-challenge", Requirement: ids.AuthServerWWWAuthenticate, Transports: OverHTTP,
		Summary:    "Answers with HTTP status 401 have no WWW-Authenticate header.",
		Collateral: []string{ids.AuthServerRefusalChallenge, challengeURL, challengeCode},
		Apply:      Challenging(func(string, string) []string { return nil })},
	{ID: "auth.get-without-challenge", Requirement: ids.AuthServerWWWAuthenticate, Transports: OverHTTP,
		Summary: "The 401 answer to a GET has no WWW-Authenticate header.", Collateral: []string{challengeURL},
		Apply: ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if r.Request.Method == http.MethodGet {
				r.Header.Del("Www-Authenticate")
			}
		}))},
	{ID: "auth.challenge-without-metadata", Requirement: challengeURL, Transports: OverHTTP,
		Summary: "The challenge names a realm, but no resource_metadata.",
		Apply: Challenging(func(_, code string) []string {
			challenge := `Bearer realm="mcp"`
			if code != "" {
				challenge += `, error="` + code + `"`
			}
			return []string{challenge}
		})},
	{ID: "auth.metadata-url-relative", Requirement: challengeURL, Transports: OverHTTP,
		Summary: "The resource_metadata of the challenge is a path.", Collateral: []string{challengeCode},
		Apply: Challenging(func(_, code string) []string {
			return []string{`Bearer resource_metadata="/.well-known/oauth-protected-resource", error="` + code + `"`}
		})},
	{ID: "auth.metadata-url-dead", Requirement: challengeURL, Transports: OverHTTP,
		Summary: "There is nothing at the resource_metadata of the challenge.",
		Apply: Challenging(func(metadata, code string) []string {
			challenge := `Bearer resource_metadata="` + metadata + `/none"`
			if code != "" {
				challenge += `, error="` + code + `"`
			}
			return []string{challenge}
		})},
	{ID: "auth.basic-scheme", Requirement: ids.AuthHTTPConform, Transports: OverHTTP,
		Summary:    "The challenge is of the scheme Basic, and there are no resource metadata.",
		Collateral: []string{challengeURL, challengeCode, ids.AuthServerResourceMetadata},
		Apply: All(Challenging(func(string, string) []string { return []string{`Basic realm="mcp"`} }),
			Replying(server.ResourceMetadata, func(r *server.Reply) {
				r.Status, r.Body = http.StatusNotFound, []byte("not found")
			}))},
	{ID: "auth.no-metadata", Requirement: ids.AuthServerResourceMetadata, Transports: OverHTTP,
		Summary: "There are no resource metadata.", Collateral: []string{challengeURL},
		Apply: ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			r.Status, r.Body = http.StatusNotFound, []byte("not found")
		}))},
	{ID: "auth.metadata-html", Requirement: ids.AuthServerResourceMetadata, Transports: OverHTTP,
		Summary: "The resource metadata are text/html.", Collateral: []string{challengeURL},
		Apply: ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			r.Header.Set("Content-Type", "text/html")
		}))},
	{ID: "auth.metadata-array", Requirement: ids.AuthServerResourceMetadata, Transports: OverHTTP,
		Summary: "The resource metadata are an array.", Collateral: []string{challengeURL},
		Apply: ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			r.Body = slices.Concat([]byte("["), r.Body, []byte("]"))
		}))},
	{ID: "auth.metadata-guarded", Requirement: ids.AuthServerResourceMetadata, Transports: OverHTTP,
		Summary: "The resource metadata can only be read with a token.", Collateral: []string{challengeURL},
		Apply: ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			if !Bearing(r.Request) {
				r.Status, r.Body = http.StatusUnauthorized, []byte("{}")
			}
		}))},
	{ID: "auth.no-servers", Requirement: ids.AuthServerMetadataAuthorizationServers, Transports: OverHTTP,
		Summary: "The resource metadata have no authorization_servers.",
		Apply:   Naming(Lacking("authorization_servers"))},
	{ID: "auth.empty-servers", Requirement: ids.AuthServerMetadataAuthorizationServers, Transports: OverHTTP,
		Summary: "The authorization_servers are an empty array.",
		Apply:   Naming(Having("authorization_servers", list{}))},
	{ID: "auth.servers-string", Requirement: ids.AuthServerMetadataAuthorizationServers, Transports: OverHTTP,
		Summary: "The authorization_servers are one string.",
		Apply: Naming(func(document object) {
			document["authorization_servers"] = document["authorization_servers"].(list)[0]
		})},
	{ID: "auth.no-resource", Requirement: ids.AuthServerMetadataResource, Transports: OverHTTP,
		Summary: "The resource metadata have no resource.", Apply: Naming(Lacking("resource"))},
	{ID: "auth.resource-elsewhere", Requirement: ids.AuthServerMetadataResource, Transports: OverHTTP,
		Summary: "The resource metadata are for another port.",
		Apply:   resourceURI(func(string) string { return "http://127.0.0.1:1/mcp" })},
	{ID: "auth.resource-other-path", Requirement: ids.AuthServerMetadataResource, Transports: OverHTTP,
		Summary: "The resource in the metadata has the path of the metadata.",
		Apply: resourceURI(func(uri string) string {
			return strings.TrimSuffix(uri, "/mcp") + transport.WellKnownResource
		})},
	{ID: "auth.resource-root", Requirement: ids.AuthServerMetadataResource, Transports: OverHTTP, WarnOnly: true,
		Summary: "The resource in the metadata is the origin of the server, without its path.",
		Apply:   resourceURI(func(uri string) string { return strings.TrimSuffix(uri, "/mcp") })},
	{ID: "auth.resource-without-scheme", Requirement: ids.AuthResourceHasScheme, Transports: OverHTTP,
		Summary: "The resource in the metadata begins with the host.",
		Apply:   resourceURI(func(uri string) string { return strings.TrimPrefix(uri, "http://") })},
	{ID: "auth.resource-fragment", Requirement: ids.AuthResourceNoFragment, Transports: OverHTTP,
		Summary: "The resource in the metadata has a fragment.",
		Apply:   resourceURI(func(uri string) string { return uri + "#mcp" })},
	{ID: "auth.resource-capitals", Requirement: ids.AuthResourceLowercase, Transports: OverHTTP,
		Summary: "The scheme of the resource in the metadata is in capitals.",
		Apply:   resourceURI(func(uri string) string { return strings.Replace(uri, "http", "HTTP", 1) })},
	{ID: "auth.resource-slash", Requirement: ids.AuthResourceNoTrailingSlash, Transports: OverHTTP,
		Summary: "The resource in the metadata has a final slash.",
		Apply:   resourceURI(func(uri string) string { return uri + "/" })},
	{ID: "auth.issuer-plain-http", Requirement: ids.AuthSecureCommunication, Transports: OverHTTP,
		Summary: "The resource metadata name an authorization server without TLS on another host.",
		Apply:   Naming(Having("authorization_servers", list{"http://issuer.mcpconform.invalid"}))},
	{ID: "auth.issuer-no-metadata", Requirement: ids.AuthAsMetadata, Transports: OverHTTP,
		Summary: "The authorization server publishes no metadata.",
		Apply: ProtectedWith(RefusingHTTP(http.StatusNotFound,
			func(r *http.Request) bool { return r.URL.Path == IssuerMetadata }))},
	{ID: "auth.issuer-other", Requirement: ids.AuthAsMetadata, Transports: OverHTTP,
		Summary: "The metadata of the authorization server name another issuer.",
		Apply:   Issuing(Having("issuer", "https://issuer.mcpconform.invalid"))},
	{ID: "auth.issuer-slash", Requirement: ids.AuthAsMetadata, Transports: OverHTTP, WarnOnly: true,
		Summary: "The issuer in the metadata of the authorization server has a slash more.",
		Apply:   Issuing(func(document object) { document["issuer"] = document["issuer"].(string) + "/" })},
	{ID: "auth.no-registration", Requirement: ids.AuthAsDynamicRegistration, Transports: OverHTTP,
		Summary: "The authorization server offers no dynamic registration.",
		Apply:   Issuing(Lacking("registration_endpoint"))},
	{ID: "auth.token-endpoint-plain-http", Requirement: ids.AuthAsHTTPS, Transports: OverHTTP,
		Summary: "The token endpoint is on another host without TLS.",
		Apply:   Issuing(Having("token_endpoint", "http://issuer.mcpconform.invalid/token"))},
	{ID: "auth.token-forgotten", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary: "A ping is refused with 401 although its token is the one with which the session began.",
		Apply: judging(func(token string, r *http.Request, d *server.Denial) *server.Denial {
			if Posted(r).Method == "ping" && Posted(r).ID.Usable() && token == GoodToken {
				return server.InvalidToken
			}
			return d
		})},
	{ID: "auth.scheme-case", Requirement: ids.AuthServerSchemeAnyCase, Transports: OverHTTP,
		Summary: "The scheme has to be spelled Bearer.", Apply: refusingSpelling("bearer ")},
	{ID: "auth.scheme-spaces", Requirement: ids.AuthServerSchemeAnyCase, Transports: OverHTTP, WarnOnly: true,
		Summary: "One space has to stand between the scheme and the token.",
		Apply:   refusingSpelling("Bearer  ")},
	{ID: "auth.any-token", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP,
		Summary: "Any text in the form of a token is accepted.",
		Collateral: []string{
			ids.AuthServerOtherTokensRefused, ids.AuthServerAudienceValidated, ids.AuthServerExpiredToken401,
			ids.AuthServerInvalidToken401, ids.AuthServerValidatesFirst, ids.SecuritySessionBoundToUser,
		},
		Apply: trusting(func(token string, _ *http.Request) bool { return token != NarrowToken })},
	{ID: "auth.token-length", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP,
		Summary: "A token is compared with the good one by its beginning only.",
		Apply: trusting(func(token string, _ *http.Request) bool {
			return strings.HasPrefix(token,
				GoodToken[:12])
		})},
	{ID: "auth.token-and-more", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP,
		Summary: "Any text that begins with the good token is accepted.",
		Apply:   trusting(func(token string, _ *http.Request) bool { return strings.HasPrefix(token, GoodToken) })},
	{ID: "auth.token-beginning", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP,
		Summary: "A beginning of the good token is taken for it.",
		Apply:   trusting(func(token string, _ *http.Request) bool { return strings.HasPrefix(GoodToken, token) })},
	{ID: "auth.token-other-case", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP, WarnOnly: true,
		Summary: "Tokens are compared without regard to case.",
		Apply:   trusting(func(token string, _ *http.Request) bool { return strings.EqualFold(token, GoodToken) })},
	{ID: "auth.unsigned-jwt", Requirement: ids.AuthServerTokenValidated, Transports: OverHTTP,
		Summary:    "A JWT of the algorithm none is taken for good.",
		Collateral: []string{ids.AuthServerInvalidToken401},
		Apply:      trusting(func(token string, _ *http.Request) bool { return jwt(token)["alg"] == "none" })},
	{ID: "auth.unverified-jwt", Requirement: ids.AuthServerOtherTokensRefused, Transports: OverHTTP,
		Summary:    "The signature of a JWT is not verified.",
		Collateral: []string{ids.AuthServerInvalidToken401},
		Apply: trusting(func(token string, _ *http.Request) bool {
			alg, ok := jwt(token)["alg"].(string)
			return ok && alg != "none"
		})},
	{ID: "auth.issuer-trusted", Requirement: ids.AuthServerOtherTokensRefused, Transports: OverHTTP,
		Summary: "A JWT that names the issuer of the metadata and the server itself is taken for good, whoever " +
			"signed it.",
		Collateral: []string{ids.AuthServerInvalidToken401},
		Apply: trusting(func(token string, r *http.Request) bool {
			c := claims(token)
			return c["iss"] == "http://"+r.Host && c["aud"] == "http://"+r.Host+server.PathMCP &&
				jwt(token)["alg"] != "none"
		})},
	{ID: "auth.other-audience", Requirement: ids.AuthServerAudienceValidated, Transports: OverHTTP,
		Summary: "A token for another resource is taken for good.",
		Apply:   trusting(func(token string, _ *http.Request) bool { return token == AudienceToken })},
	{ID: "auth.expired-served", Requirement: ids.AuthServerExpiredToken401, Transports: OverHTTP,
		Summary: "An expired token is taken for good.", Collateral: []string{ids.AuthServerValidatesFirst},
		Apply: trusting(func(token string, _ *http.Request) bool { return token == ExpiredToken })},
	{ID: "auth.expired-403", Requirement: ids.AuthServerExpiredToken401, Transports: OverHTTP,
		Summary: "An expired token is refused with HTTP status 403.", Collateral: []string{codeStatus},
		Apply: judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if token == ExpiredToken {
				return &server.Denial{Status: http.StatusForbidden, Code: "invalid_token",
					Text: "the token has expired"}
			}
			return d
		})},
	{ID: "auth.invalid-token-403", Requirement: ids.AuthServerInvalidToken401, Transports: OverHTTP,
		Summary: "Tokens that are not known are refused with HTTP status 403.", Collateral: []string{codeStatus},
		Apply: judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InvalidToken && token != ExpiredToken {
				return &server.Denial{Status: http.StatusForbidden, Code: "invalid_token", Text: "who are you?"}
			}
			return d
		})},
	{ID: "auth.invalid-token-500", Requirement: ids.AuthServerInvalidToken401, Transports: OverHTTP,
		Summary: "A JWT that cannot be verified ends in HTTP status 500.", Collateral: []string{codeStatus},
		Apply: judging(func(token string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InvalidToken && jwt(token) != nil {
				return &server.Denial{Status: http.StatusInternalServerError, Code: "invalid_token",
					Text: "cannot decode"}
			}
			return d
		})},
	{ID: "auth.error-code", Requirement: challengeCode, Transports: OverHTTP,
		Summary:    "The challenge for an invalid token has the error code insufficient_scope.",
		Collateral: []string{codeStatus},
		Apply: Challenging(func(metadata, code string) []string {
			challenge := `Bearer resource_metadata="` + metadata + `"`
			if code != "" {
				challenge += `, error="insufficient_scope"`
			}
			return []string{challenge}
		})},
	{ID: "auth.error-missing", Requirement: challengeCode, Transports: OverHTTP, WarnOnly: true,
		Summary: "The challenge for an invalid token has no error code.",
		Apply: Challenging(func(metadata, _ string) []string {
			return []string{`Bearer resource_metadata="` + metadata + `"`}
		})},
	{ID: "auth.forbidden-without-challenge", Requirement: ids.AuthServerRefusalChallenge, Transports: OverHTTP,
		Summary: "403 comes without a challenge.",
		Apply:   ProtectedWith(Replying(server.Forbidden, func(r *server.Reply) { r.Header.Del("Www-Authenticate") }))},
	{ID: "auth.malformed-without-challenge", Requirement: ids.AuthServerRefusalChallenge, Transports: OverHTTP,
		WarnOnly: true, Summary: "400 for a malformed token comes without a challenge.",
		Apply: ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Header.Del("Www-Authenticate") }))},
	{ID: "auth.challenge-bare", Requirement: ids.AuthServerChallengeParameters, Transports: OverHTTP,
		Summary: "The challenge of an answer with status 403 is the word Bearer.",
		Apply: ProtectedWith(Replying(server.Forbidden,
			func(r *server.Reply) { r.Header.Set("Www-Authenticate", "Bearer") }))},
	{ID: "auth.challenge-repeats", Requirement: ids.AuthServerChallengeParametersOnce, Transports: OverHTTP,
		Summary: "A challenge describes the error in two languages, by two parameters of the same name.",
		Apply: Challenging(
			explaining(`, error_description="No such token", error_description="Kein solches Token"`))},
	{ID: "auth.challenge-quotes", Requirement: ids.AuthServerChallengeCharacters, Transports: OverHTTP,
		Summary: "The error_description of a challenge has quotation marks in it.",
		Apply:   Challenging(explaining(`, error_description="The token is not \"valid\""`))},
	{ID: "auth.challenge-error-uri", Requirement: ids.AuthServerChallengeCharacters, Transports: OverHTTP,
		Summary: "The error_uri of a challenge has a space in it.",
		Apply:   Challenging(explaining(`, error_uri="https://example.com/invalid token"`))},
	{ID: "auth.malformed-401", Requirement: ids.AuthServerErrorCodeStatus, Transports: OverHTTP,
		Summary: "The error code invalid_request comes with HTTP status 401.",
		Apply: ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Status = http.StatusUnauthorized }))},
	{ID: "auth.error-without-token", Requirement: ids.AuthServerNoErrorWithoutToken, Transports: OverHTTP,
		Summary: "The challenge has the error code invalid_token where there was no token.",
		Apply: Challenging(func(metadata, code string) []string {
			if code == "" {
				code = "invalid_token"
			}
			return []string{`Bearer resource_metadata="` + metadata + `", error="` + code + `"`}
		})},
	{ID: "auth.other-scheme", Requirement: challengeCode, Transports: OverHTTP,
		Summary: "The challenge is of the scheme OAuth.",
		Apply: Challenging(func(metadata, code string) []string {
			return []string{`OAuth resource_metadata="` + metadata + `", error="` + code + `"`}
		})},
	{ID: "auth.narrow-served", Requirement: ids.AuthServerInsufficientScope403, Transports: OverHTTP,
		Summary: "The scope of a token does not matter.",
		Apply:   trusting(func(token string, _ *http.Request) bool { return token == NarrowToken })},
	{ID: "auth.narrow-401", Requirement: ids.AuthServerInsufficientScope403, Transports: OverHTTP,
		Summary:    "A request beyond the scope of its token is refused with HTTP status 401.",
		Collateral: []string{codeStatus},
		Apply: judging(func(_ string, _ *http.Request, d *server.Denial) *server.Denial {
			if d == server.InsufficientScope {
				return &server.Denial{Status: http.StatusUnauthorized, Code: d.Code, Text: d.Text}
			}
			return d
		})},
	{ID: "auth.malformed-500", Requirement: ids.AuthServerMalformed400, Transports: OverHTTP,
		Summary:    "An Authorization header without a token ends in HTTP status 500.",
		Collateral: []string{codeStatus},
		Apply: ProtectedWith(Replying(server.MalformedToken,
			func(r *server.Reply) { r.Status = http.StatusInternalServerError }))},
	{ID: "auth.malformed-served", Requirement: ids.AuthServerMalformed400, Transports: OverHTTP,
		Summary: "A request with an Authorization header without a token is served.",
		Apply:   ProtectedWith(Passing(server.MalformedToken, func(*server.Reply) bool { return true }))},
	{ID: "auth.session-of-anyone", Requirement: ids.SecuritySessionBoundToUser, Transports: OverHTTP,
		Summary: "A session can be used with the token of another user.",
		Apply:   Protecting(func(p *server.Protection) { p.Verify = Verify })},
	{ID: "auth.get-of-anyone", Requirement: ids.SecuritySessionBoundToUser, Transports: OverHTTP,
		Summary: "The listening stream of a session can be opened with the token of another user.",
		Apply: trusting(func(token string, r *http.Request) bool {
			return token == UserToken && r.Method == http.MethodGet
		})},
	{ID: "auth.delete-of-anyone", Requirement: ids.SecuritySessionBoundToUser, Transports: OverHTTP,
		Summary: "A session can be ended with the token of another user.",
		Apply: trusting(func(token string, r *http.Request) bool {
			return token == UserToken && r.Method == http.MethodDelete
		})},
	{ID: "auth.session-of-second", Requirement: ids.SecuritySessionBoundToUser, Transports: OverHTTP,
		Summary: "The session of the second user can be used with the token of the first.",
		Apply: judging(func(token string, r *http.Request, d *server.Denial) *server.Denial {
			if token == GoodToken && r.Header.Get(SessionHeader) != "" {
				return nil
			}
			return d
		})},
	{ID: "auth.session-is-enough", Requirement: ids.SecuritySessionNotAuthentication, Transports: OverHTTP,
		Summary: "Within a session, no token is needed.", Collateral: []string{ids.AuthServerValidatesFirst},
		Apply: openSession(func(*http.Request) bool { return true })},
	{ID: "auth.get-open", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary:    "The listening stream of a session can be opened without a token.",
		Collateral: []string{ids.SecuritySessionNotAuthentication},
		Apply:      openSession(func(r *http.Request) bool { return r.Method == http.MethodGet })},
	{ID: "auth.delete-open", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary:    "A session can be ended without a token.",
		Collateral: []string{ids.SecuritySessionNotAuthentication},
		Apply:      openSession(func(r *http.Request) bool { return r.Method == http.MethodDelete })},
	{ID: "auth.notification-open", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary:    "Within a session, notifications need no token.",
		Collateral: []string{ids.SecuritySessionNotAuthentication},
		Apply: openSession(func(r *http.Request) bool {
			return r.Method == http.MethodPost && Posted(r).Kind == wire.Notification
		})},
	{ID: "auth.response-open", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary:    "Within a session, responses need no token.",
		Collateral: []string{ids.SecuritySessionNotAuthentication},
		Apply: openSession(func(r *http.Request) bool {
			return r.Method == http.MethodPost && Posted(r).IsResponse()
		})},
	{ID: "auth.notification-at-door", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary: "A notification that names no session is accepted without a token.",
		Apply: ProtectedWith(Replying(server.Unauthorized, func(r *server.Reply) {
			if q := r.Request; q.Method == http.MethodPost && q.Header.Get(SessionHeader) == "" &&
				Posted(q).Kind == wire.Notification {
				r.Status, r.Body, r.Header = http.StatusAccepted, nil, make(http.Header)
			}
		}))},
	{ID: "auth.expired-in-session", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary: "Within a session, an expired token is taken for good.",
		Apply: trusting(func(token string, r *http.Request) bool {
			return token == ExpiredToken && r.Header.Get(SessionHeader) != ""
		})},
	{ID: "auth.refused-delete-ends", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary: "A DELETE without a valid token is refused, and ends the session.",
		Apply:   BeforeRefusal(func(r *http.Request, _ *wire.Message) bool { return r.Method == http.MethodDelete })},
	{ID: "auth.refused-call-done", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary: "A call without a valid token is refused, and the tool has run.",
		Apply:   BeforeRefusal(func(_ *http.Request, m *wire.Message) bool { return m.Method == "tools/call" })},
	{ID: "auth.refused-cancellation-done", Requirement: ids.AuthServerValidatesFirst, Transports: OverHTTP,
		Summary: "A notification about a cancelled request without a valid token is refused, and ends the request.",
		Apply: BeforeRefusal(func(_ *http.Request, m *wire.Message) bool {
			return m.Method == "notifications/cancelled"
		})},
	{ID: "auth.notification-refused", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary:    "A notification about a cancelled request is refused with 401, although its token is valid.",
		Collateral: []string{ids.MetaAttachNotification},
		Apply:      denying(func(r *http.Request) bool { return Posted(r).Method == "notifications/cancelled" })},
	{ID: "auth.delete-refused", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary:    "A DELETE is refused with 401, although its token is valid.",
		Collateral: []string{ids.HTTPServerDeleteSession},
		Apply:      denying(func(r *http.Request) bool { return r.Method == http.MethodDelete })},
	{ID: "auth.get-refused", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary: "A GET is refused with 401, although its token is valid.",
		Apply:   denying(func(r *http.Request) bool { return r.Method == http.MethodGet })},
	{ID: "auth.response-refused", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary:    "A response to no request is refused with 401, although its token is valid.",
		Collateral: []string{ids.HTTPServerSessionEnded404},
		Apply: denying(func(r *http.Request) bool {
			return Posted(r).IsResponse() && strings.HasPrefix(Posted(r).ID.String(), `"`)
		})},
	{ID: "auth.list-refused", Requirement: ids.AuthServerValidTokenAccepted, Transports: OverHTTP,
		Summary: "prompts/list is refused with 401, although its token is valid.",
		Apply:   denying(func(r *http.Request) bool { return Posted(r).Method == "prompts/list" })},
	{ID: "auth.refused-with-result", Requirement: ids.AuthServerNoDataUnauthorized, Transports: OverHTTP,
		Summary: "The 401 answer to an initialize holds the result.",
		Apply: ProtectedWith(Passing(server.Unauthorized,
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
			}))},
}
