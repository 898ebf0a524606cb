package mockauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const (
	discovery    = "server-metadata-discovery"
	registration = "dynamic-client-registration"
	overview     = "overview"
)

// What takes a code.
var takesCode = []string{ids.AuthAsExactRedirectURI, ids.AuthAsLoopbackPort, ids.AuthAsRedirectQuery,
	ids.AuthAsNoUntrustedRedirect, ids.AuthAsResponseType, ids.AuthAsAuthorizationError, "auth.as.pkce-*",
	ids.AuthAsChallengeMethod, ids.AuthAsState, ids.AuthAsISS, ids.AuthAsUnknownParameters, ids.AuthAsEmptyParameters,
	"auth.as.code-*", ids.AuthAsTokenAnswer, ids.AuthAsNoStore, ids.AuthAsClientAuthenticated, ids.AuthAsSecretInBody,
	ids.AuthAsOfferedMethods, "auth.as.refresh-*", ids.AuthAsRotateRefreshTokens, ids.AuthAsUnguessable,
	ids.AuthAsAudience}

// What takes a client that the run registers.
var takesRegistration = []string{"auth.as.registration-*", ids.AuthAsRegisteredRedirects, ids.AuthAsRedirectQuery,
	ids.AuthAsSecretInBody, ids.AuthAsOfferedMethods, ids.AuthAsCodeOfClient, ids.AuthAsRefreshOfClient,
	"auth.as.client-*", ids.AuthAsCodeOnce, ids.AuthAsRefreshOnce}

var takesPublicClient = []string{ids.AuthAsPKCERequired, ids.AuthAsCodeOfClient, "auth.as.refresh-*",
	ids.AuthAsRotateRefreshTokens}

// Oddities returns all oddities.
func Oddities() []Oddity { return oddities }

var oddities = []Oddity{
	{
		ID: "issuer.path", Summary: "The issuer has a path.", Anchor: discovery,
		Why: "An issuer may have one (RFC 8414, section 3.1).", Apply: func(s *Setup) { s.Path = "/tenant/one" },
	},
	{
		ID: "issuer.of-server", Summary: "A protected server at the same host names it.",
		Anchor: "authorization-server-location",
		Why:    "It may be hosted with the server.", Apply: func(s *Setup) { s.Protects = true },
	},
	{
		ID: "metadata.more", Summary: "The metadata have members of OpenID Connect and of its own.",
		Anchor: discovery,
		Why:    "Additional members may be used (RFC 8414, section 2).",
		Apply: with(map[string]any{
			"subject_types_supported": []any{"public"}, "userinfo_endpoint": "https://issuer.example.com/me",
			"claims_parameter_supported": false, "x-more": map[string]any{"a": 1},
			"code_challenge_methods_supported": []any{"plain", "S256"},
			"token_endpoint_auth_methods_supported": []any{"private_key_jwt", "client_secret_basic",
				"client_secret_post", "none", "tls_client_auth"},
		}),
	},
	{
		ID: "metadata.fewest", Summary: "The metadata have only what is required, and a place to register.",
		Anchor: discovery,
		Why:    "All else is optional (RFC 8414, section 2).",
		Apply: document(func(d map[string]any) {
			for name := range d {
				switch name {
				case "issuer", "authorization_endpoint", "token_endpoint", "response_types_supported",
					"registration_endpoint":
				default:
					delete(d, name)
				}
			}
		}),
		// Whether client_secret_post is offered is not known then.
		Untried: []string{ids.AuthAsISS, ids.AuthAsOfferedMethods},
	},
	{
		ID: "metadata.charset", Summary: "The content types of JSON have a charset.", Anchor: discovery,
		Why: "It is the same media type (RFC 9110, section 8.3).",
		Apply: func(s *Setup) {
			s.Faults.Answer = func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				if h.Get("Content-Type") != "" {
					h.Set("Content-Type", "Application/JSON;charset=UTF-8")
				}
				return status
			}
		},
	},
	{
		ID: "registration.none", Summary: "It registers no clients, and the run is given one.", Anchor: registration,
		Why: "Other ways to obtain a client id are allowed, which only a warning may be about.",
		Apply: func(s *Setup) {
			s.NoRegistration = true
			s.Given = &authserver.Client{ID: "given", Redirects: []string{"http://127.0.0.1:7/cb"}}
			s.Metadata = func(d map[string]any) { d["registration_endpoint"] = "https://issuer.example.com/by-hand" }
		},
		Untried: append([]string{ids.AuthAsDynamicRegistration}, takesRegistration...),
	},
	{
		ID: "registration.admits", Summary: "It registers only clients that show a token.", Anchor: registration,
		Why: "Authorization servers can have a registration policy.",
		Apply: answering(authserver.Registration,
			func(_ authserver.Call, _ int, _ http.Header, body map[string]any) int {
				clear(body)
				body["error"] = "invalid_token"
				return http.StatusUnauthorized
			}),
		Untried: slices.Concat([]string{ids.AuthAsDynamicRegistration, ids.AuthAsTokenError, ids.AuthAsNoCors},
			takesCode, takesRegistration),
	},
	{
		ID: "registration.more", Summary: "It adds members to the registration, among them where to delete it.",
		Anchor: registration,
		Why:    "It may add what it wants (RFC 7591, section 3.2.1, RFC 7592).",
		Apply: succeeding(authserver.Registration, map[string]any{
			"scope": "all", "client_uri": "https://issuer.example.com/c",
			"registration_access_token": "a-token-for-the-registration",
			"registration_client_uri":   "http://127.0.0.1:1/gone",
		}),
	},
	{
		ID: "clients.confidential", Summary: "It has clients with a secret alone.", Anchor: overview,
		Why:     "Which types of clients it serves is its own choice (OAuth 2.1, section 2.1).",
		Apply:   func(s *Setup) { s.TokenAuth = authserver.AuthPost },
		Untried: append([]string{ids.AuthAsClientChallenge}, takesPublicClient...),
	},
	{
		ID: "clients.public", Summary: "It has clients without a secret alone.", Anchor: overview,
		Why:     "Which types of clients it serves is its own choice (OAuth 2.1, section 2.1).",
		Apply:   func(s *Setup) { s.TokenAuth = authserver.AuthNone },
		Untried: []string{"auth.as.client-*", ids.AuthAsSecretInBody},
	},
	{
		ID: "clients.any-method", Summary: "It registers every client for client_secret_basic, whatever it asks for.",
		Anchor: registration,
		Why:    "It may replace requested values (RFC 7591, section 3.2.1).",
		Apply: func(s *Setup) {
			s.Metadata = func(d map[string]any) {
				d["token_endpoint_auth_methods_supported"] = []any{"client_secret_basic", "client_secret_post"}
			}
		},
		Untried: takesPublicClient,
	},
	{
		ID: "redirect.303", Summary: "Redirects have status 303.", Anchor: "authorization-flow-steps",
		Why:   "Any redirection may be used; 303 is the one for forms (OAuth 2.1, section 7.5.3).",
		Apply: inPlaceOf(http.StatusFound, http.StatusSeeOther, authserver.Authorization),
	},
	{
		ID: "redirect.pages", Summary: "A page sets a cookie and redirects at once, before the user agent comes back.",
		Anchor: "authorization-flow-steps",
		Why:    "How a user is asked is left open.", Apply: func(s *Setup) { s.Wrap = pages },
	},
	{
		ID: "redirect.error-html", Summary: "An unknown client is told so on a page with status 200.",
		Anchor: "open-redirection",
		Why:    "The resource owner is to be informed (OAuth 2.1, section 4.1.2.1).",
		Apply: answering(authserver.Authorization,
			func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				if status >= 400 {
					h.Set("Content-Type", "text/html")
					return http.StatusOK
				}
				return status
			}),
	},
	{
		ID: "authorization.asks", Summary: "The authorization endpoint shows a page on which a user has to act.",
		Anchor: "roles",
		Why:    "It is responsible for interacting with the user.",
		Apply: answering(authserver.Authorization,
			func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
				h.Del("Location")
				h.Set("Content-Type", "text/html; charset=utf-8")
				return http.StatusOK
			}),
		Untried: takesCode,
	},
	{
		ID: "authorization.query", Summary: "The URL of the authorization endpoint has a query.", Anchor: discovery,
		Why: "It may have one, which is retained (OAuth 2.1, section 3.1).",
		Apply: document(func(d map[string]any) {
			d["authorization_endpoint"] = d["authorization_endpoint"].(string) + "?tenant=one"
		}),
	},
	{
		ID: "iss.not-promised", Summary: "Redirects have no iss, and the metadata do not promise it.",
		Anchor: overview,
		Why:    "It is optional (RFC 9207).",
		Apply: both(with(map[string]any{"authorization_response_iss_parameter_supported": nil}),
			redirecting(func(v url.Values) { v.Del("iss") })),
		Untried: []string{ids.AuthAsISS},
	},
	{
		ID:      "iss.unannounced",
		Summary: "Redirects have an iss and parameters of their own, and the metadata do not announce that.",
		Anchor:  overview,
		Why:     "Unknown response parameters are ignored (OAuth 2.1, section 4.1.2).",
		Apply: both(with(map[string]any{"authorization_response_iss_parameter_supported": false}),
			redirecting(func(v url.Values) { v.Set("session_state", "s"); v.Set("scope", "all") })),
		Untried: []string{ids.AuthAsISS},
	},
	{
		ID: "token.opaque", Summary: "Access tokens mean nothing to a client.", Anchor: "token-requirements",
		Why:     "They are opaque to clients (OAuth 2.1, section 1.4).",
		Apply:   func(s *Setup) { s.SignedTokens = false },
		Untried: []string{ids.AuthAsAudience},
	},
	{
		ID: "token.type-lower-case", Summary: "token_type is written bearer.", Anchor: "token-requirements",
		Why:   "It has no case (OAuth 2.1, section 3.2.3).",
		Apply: succeeding(authserver.Token, map[string]any{"token_type": "bearer"}),
	},
	{
		ID: "token.type-capitals", Summary: "token_type is written BEARER, and the life is missing.",
		Anchor: "token-requirements",
		Why:    "It has no case, and expires_in is only recommended (OAuth 2.1, section 3.2.3).",
		Apply:  succeeding(authserver.Token, map[string]any{"token_type": "BEARER", "expires_in": nil}),
	},
	{
		ID: "token.more", Summary: "The token answer has more members, among them an id_token.",
		Anchor: "token-requirements",
		Why:    "Unknown members are ignored (OAuth 2.1, section 3.2.3).",
		Apply: succeeding(authserver.Token, map[string]any{"id_token": "e30.e30.e30", "scope": "all",
			"created_at": json.Number("1"), "user": map[string]any{"name": "u"}}),
	},
	{
		ID: "token.cache-control", Summary: "Cache-Control has more directives, in capitals.", Anchor: overview,
		Why: "Directives have no case, and there may be several (RFC 9111, section 5.2).",
		Apply: answering(authserver.Token, func(_ authserver.Call, status int, h http.Header, _ map[string]any) int {
			h.Set("Cache-Control", "private, No-Store, max-age=0")
			return status
		}),
	},
	{
		ID: "token.invalid-client", Summary: "An unknown client is refused with status 400.",
		Anchor: "error-handling",
		Why:    "Status 401 is due only for credentials in the header (OAuth 2.1, section 3.2.4).",
		Apply: answering(authserver.Token, func(c authserver.Call, status int, _ http.Header, _ map[string]any) int {
			if status == http.StatusUnauthorized && len(c.Auth) == 0 {
				return http.StatusBadRequest
			}
			return status
		}),
	},
	{
		ID: "refresh.none", Summary: "It issues no refresh tokens.", Anchor: "token-theft",
		Why:     "They are optional (OAuth 2.1, section 3.2.3).",
		Apply:   func(s *Setup) { s.NoRefresh = true },
		Untried: []string{"auth.as.refresh-*", ids.AuthAsRotateRefreshTokens},
	},
	{
		ID: "resource.required-not", Summary: "It asks for no resource.", Anchor: "resource-parameter-implementation",
		Why: "Clients send the parameter whether it is known or not.", Apply: ignoring(authserver.ResourceRequired),
	},
	{
		ID: "resource.untold", Summary: "It wants a resource, whichever, and the run knows none.",
		Anchor: "resource-parameter-implementation",
		Why:    "A request without one may be refused with invalid_target (RFC 8707, section 2).",
		Apply:  func(s *Setup) { s.Untold = true },
		// The issuer, which the run names then, is also the audience of tokens that are for no resource.
		Untried: []string{ids.AuthAsAudience},
	},
	{
		ID: "resource.untold-token", Summary: "It wants a resource in token requests alone, and the run knows none.",
		Anchor: "resource-parameter-implementation",
		Why:    "A request without one may be refused with invalid_target (RFC 8707, section 2).",
		Apply: both(func(s *Setup) { s.Untold = true }, ignoring(authserver.ResourceRequired),
			denying(authserver.Token, "invalid_target", func(c authserver.Call) bool {
				return c.Values.Get("grant_type") != "" && c.Values.Get("resource") == ""
			})),
		Untried: []string{ids.AuthAsAudience},
	},
}

// pages has an authorization request go by a page that sets a cookie, and back.
func pages(next http.Handler) http.Handler {
	const page = "/login/page"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("session")
		switch {
		case r.URL.Path == page && err == nil && cookie.Value == "one":
			http.SetCookie(w, &http.Cookie{Name: "agreed", Value: "yes", Path: "/"})
			http.Redirect(w, r, r.URL.Query().Get("next"), http.StatusSeeOther)
		case strings.Contains(r.URL.Path, "/ask") && r.CookiesNamed("agreed") == nil:
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "one", Path: "/", HttpOnly: true})
			http.Redirect(w, r, page+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusFound)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
