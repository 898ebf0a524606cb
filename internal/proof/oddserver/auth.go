package oddserver

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// challengedWith spells the challenge of a protected server. The parameter error is empty
// where there was no token.
func challengedWith(spell func(metadata, code string) []string) apply { return Challenging(spell) }

// coded returns a parameter for an error code, or "".
func coded(form, code string) string {
	if code == "" {
		return ""
	}
	return strings.ReplaceAll(form, "CODE", code)
}

// unauthorizedWith changes the body of refusals for lack of a token.
func unauthorizedWith(kind, body string) apply {
	return ProtectedWith(refusedWith(0, kind, body, server.Unauthorized, server.MalformedToken, server.Forbidden))
}

const (
	challenges = "basic/authorization#authorization-server-location"
	headerForm = "It is the same challenge (RFC 9110, section 11.6.1)."
)

// basic/authorization
var authOddities = []Oddity{
	odd("auth.protected", "The server serves nobody without a token.", "Authorization is optional.",
		"basic/authorization#protocol-requirements", Protected),
	odd("auth.scheme-lower-case", "The scheme of the challenge is written bearer, its parameters in capitals.",
		"Schemes and names of parameters have no case (RFC 9110, section 11).", challenges,
		challengedWith(func(metadata, code string) []string {
			return []string{`bearer RESOURCE_METADATA="` + metadata + `"` + coded(`, ERROR="CODE"`, code)}
		})).Replaces("challenge"),
	odd("auth.scheme-capitals", "The scheme of the challenge is written BEARER.",
		"Schemes have no case (RFC 9110, section 11.1).", challenges,
		challengedWith(func(metadata, code string) []string {
			return []string{`BEARER resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code)}
		})).Replaces("challenge"),
	odd("auth.parameters-more",
		"The challenge has realm, scope, error_uri and a parameter of its own, before and after.",
		"A challenge may have other parameters.", challenges, challengedWith(func(metadata, code string) []string {
			return []string{`Bearer realm="My, \"own\" realm=1", scope="read write", x-more=1, resource_metadata="` +
				metadata + `"` + coded(`, error="CODE", error_uri="https://example.com/?a=b,c"`, code)}
		})).Replaces("challenge"),
	odd("auth.error-unquoted", "The error code of the challenge is not quoted.", headerForm, challenges,
		challengedWith(func(metadata, code string) []string {
			return []string{`Bearer ` + coded(`error=CODE, `, code) + `resource_metadata="` + metadata + `"`}
		})).Replaces("challenge"),
	odd("auth.spaces", "The challenge has spaces and tabs around commas and equals signs, and an empty element.",
		headerForm, challenges, challengedWith(func(metadata, code string) []string {
			return []string{"Bearer  " + coded("error = \"CODE\" \t, ,\t", code) + "resource_metadata = \"" + metadata +
				"\""}
		})).Replaces("challenge"),
	odd("auth.escaped", "The URL in the challenge has a quoted pair.", headerForm, challenges,
		challengedWith(func(metadata, code string) []string {
			return []string{`Bearer resource_metadata="` + strings.Replace(metadata, "/", `\/`, 1) + `"` +
				coded(`, error="CODE"`, code)}
		})).Replaces("challenge"),
	odd("auth.several-challenges",
		"One header has challenges of the schemes Basic and Digest before the one of Bearer.",
		"A header may have several challenges.", challenges, challengedWith(func(metadata, code string) []string {
			return []string{`Basic realm="a, b", Digest nonce="x==", qop="auth", Bearer resource_metadata="` +
				metadata + `"` + coded(`, error="CODE"`, code)}
		})).Replaces("challenge"),
	odd("auth.several-headers", "Challenges of other schemes come in headers of their own, before and after.",
		"A header may come several times.", challenges, challengedWith(func(metadata, code string) []string {
			return []string{`Negotiate`, `Bearer resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code),
				`Basic realm="x"`}
		})).Replaces("challenge"),
	odd("auth.refusals-bare", "Refusals for lack of a token have no body.", "The text asks for status and header.",
		"basic/authorization#error-handling", unauthorizedWith("", "")).Replaces("refusals"),
	odd("auth.refusals-oauth", "Refusals for lack of a token have the JSON of an OAuth error.",
		"The text asks for status and header.", "basic/authorization#error-handling",
		unauthorizedWith("application/json", `{"error":"invalid_token","error_description":"no"}`)).
		Replaces("refusals"),
	odd("auth.refusals-page", "Refusals for lack of a token have a page in HTML.",
		"The text asks for status and header.", "basic/authorization#error-handling",
		unauthorizedWith("text/html", "<!doctype html><title>401</title>")).Replaces("refusals"),
	odd("auth.metadata-rich", "The resource metadata have all members of RFC 9728, and more.",
		"The other members are optional, and unknown ones allowed.", challenges, Naming(func(d object) {
			d["scopes_supported"], d["resource_name"], d["resource_name#de"] = list{"read", "write"}, "Server", "Diener"
			d["resource_documentation"], d["resource_policy_uri"], d["resource_tos_uri"] = "https://example.com/doc",
				"https://example.com/policy", "https://example.com/tos"
			d["tls_client_certificate_bound_access_tokens"], d["dpop_bound_access_tokens_required"] = false, false
			d["authorization_details_types_supported"], d["resource_signing_alg_values_supported"],
				d["x-more"] = list{}, list{"ES256"}, object{}
		})).Replaces("metadata"),
	odd("auth.metadata-minimal", "The resource metadata have just resource and authorization_servers.",
		"The other members are optional.", challenges, Naming(Lacking("bearer_methods_supported"))).
		Replaces("metadata"),
	odd("auth.several-issuers", "The resource metadata name two authorization servers.",
		"Metadata documents can define multiple authorization servers.", challenges, Naming(func(d object) {
			d["authorization_servers"] = append(d["authorization_servers"].(list), "https://issuer.example.com")
		})).Replaces("metadata"),
	odd("auth.metadata-charset", "The metadata come with charset=utf-8, indented, with headers of caches.",
		"Headers are HTTP's own affair.", challenges,
		ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			var document object
			if json.Unmarshal(r.Body, &document) == nil {
				r.Body, _ = json.MarshalIndent(document, "", "\t")
			}
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Header.Set("Cache-Control", "public, max-age=3600")
			r.Header.Set("Access-Control-Allow-Origin", "*")
		}))).Replaces("metadata"),
	odd("auth.metadata-elsewhere",
		"The resource metadata are at an address of the server's own, which the challenge names.",
		"The challenge tells where they are.", challenges,
		Protecting(func(p *server.Protection) { p.MetadataPath = "/meta/resource.json" })).Replaces("challenge"),
	odd("auth.metadata-at-root", "The resource metadata are at the well-known address without a path.",
		"The challenge tells where they are.", challenges,
		Protecting(func(p *server.Protection) { p.MetadataPath = transport.WellKnownResource })).Replaces("challenge"),
	odd("auth.issuer-rich", "The metadata of the authorization server have many members more.",
		"RFC 8414 allows other members.", "basic/authorization#server-metadata-discovery", Issuing(func(d object) {
			d["scopes_supported"], d["grant_types_supported"] = list{"openid"}, list{"authorization_code",
				"refresh_token", "urn:ietf:params:oauth:grant-type:device_code"}
			d["token_endpoint_auth_methods_supported"], d["jwks_uri"] = list{"none", "client_secret_post",
				"private_key_jwt"}, d["issuer"].(string)+"/jwks"
			d["response_modes_supported"], d["service_documentation"],
				d["code_challenge_methods_supported"] = list{"query",
				"form_post"}, "https://example.com", list{"plain", "S256"}
			d["x-more"] = nil
		})),
	odd("auth.description", "The challenge has scope and error_description with all characters that they may have.",
		"OAuth 2.1, section 5.3.1, names them: printable ASCII without quotation mark and backslash.",
		"basic/authorization#token-handling", challengedWith(func(metadata, code string) []string {
			return []string{`Bearer resource_metadata="` + metadata +
				`", scope="a:b/c?d=e&f [g] {h} ~!#$%'()*+,-.;<>@^_` + "`" + `|"` +
				coded(`, error="CODE", error_description="It's over, sorry: (50%) [a] {b} <c> ~ `+"`d`"+
					`; e/f?g=h&i @^_|!#$*+"`, code)}
		})).Replaces("challenge"),
	odd("auth.two-bearer-challenges", "The header has two challenges of the scheme Bearer, each with its realm.",
		"There may be several challenges; each has its own parameters (RFC 9110, section 11.6.1).", challenges,
		challengedWith(func(metadata, code string) []string {
			return []string{`Bearer realm="a", resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code) +
				`, Bearer realm="b"`}
		})).Replaces("challenge"),
	odd("auth.streams", "A protected server answers with streams.",
		"Authorization and the form of answers have nothing to do with each other.",
		"basic/transports#sending-messages-to-the-server", ProtectedWith(AlwaysStreams)).
		Open(ids.HTTPServerJSONOneObject),
	odd("auth.ends-session", "A request without a valid token ends the session that it names.",
		"The server may terminate the session at any time.", "basic/transports#session-management",
		BeforeRefusal(func(done *http.Request, _ *wire.Message) bool {
			done.Method = http.MethodDelete
			return true
		})).Open(ids.AuthServerValidatesFirst, ids.SecuritySessionBoundToUser),
	odd("auth.other-paths", "A protected server answers addresses that it does not know with 401, too.",
		"The text is about the resource and its metadata alone.", "basic/authorization#access-token-usage",
		ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			known := r.URL.Path == server.PathMCP || strings.HasPrefix(r.URL.Path, transport.WellKnownResource) ||
				r.URL.Path == IssuerMetadata
			if !known && !Bearing(r) {
				w.Header().Set("WWW-Authenticate",
					`Bearer resource_metadata="http://`+r.Host+transport.WellKnownResource+server.PathMCP+`"`)
				http.Error(w, "a token is needed", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		}))),
}
