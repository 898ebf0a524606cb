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
	{ID: "auth.protected", Transports: OverHTTP, Summary: "The server serves nobody without a token.",
		Why: "Authorization is optional.", Source: at("basic/authorization#protocol-requirements"),
		Apply: Protected},
	{ID: "auth.scheme-lower-case", Transports: OverHTTP,
		Summary: "The scheme of the challenge is written bearer, its parameters in capitals.",
		Why:     "Schemes and names of parameters have no case (RFC 9110, section 11).", Source: at(challenges),
		Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`bearer RESOURCE_METADATA="` + metadata + `"` + coded(`, ERROR="CODE"`, code)}
		})},
	{ID: "auth.scheme-capitals", Transports: OverHTTP, Summary: "The scheme of the challenge is written BEARER.",
		Why: "Schemes have no case (RFC 9110, section 11.1).", Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`BEARER resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code)}
		})},
	{ID: "auth.parameters-more", Transports: OverHTTP,
		Summary: "The challenge has realm, scope, error_uri and a parameter of its own, before and after.",
		Why:     "A challenge may have other parameters.", Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Bearer realm="My, \"own\" realm=1", scope="read write", x-more=1, resource_metadata="` +
				metadata + `"` + coded(`, error="CODE", error_uri="https://example.com/?a=b,c"`, code)}
		})},
	{ID: "auth.error-unquoted", Transports: OverHTTP, Summary: "The error code of the challenge is not quoted.",
		Why: headerForm, Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Bearer ` + coded(`error=CODE, `, code) + `resource_metadata="` + metadata + `"`}
		})},
	{ID: "auth.spaces", Transports: OverHTTP,
		Summary: "The challenge has spaces and tabs around commas and equals signs, and an empty element.",
		Why:     headerForm, Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{"Bearer  " + coded("error = \"CODE\" \t, ,\t", code) + "resource_metadata = \"" + metadata +
				"\""}
		})},
	{ID: "auth.escaped", Transports: OverHTTP, Summary: "The URL in the challenge has a quoted pair.",
		Why: headerForm, Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Bearer resource_metadata="` + strings.Replace(metadata, "/", `\/`, 1) + `"` +
				coded(`, error="CODE"`, code)}
		})},
	{ID: "auth.several-challenges", Transports: OverHTTP,
		Summary: "One header has challenges of the schemes Basic and Digest before the one of Bearer.",
		Why:     "A header may have several challenges.", Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Basic realm="a, b", Digest nonce="x==", qop="auth", Bearer resource_metadata="` +
				metadata + `"` + coded(`, error="CODE"`, code)}
		})},
	{ID: "auth.several-headers", Transports: OverHTTP,
		Summary: "Challenges of other schemes come in headers of their own, before and after.",
		Why:     "A header may come several times.", Source: at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Negotiate`, `Bearer resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code),
				`Basic realm="x"`}
		})},
	{ID: "auth.refusals-bare", Transports: OverHTTP, Summary: "Refusals for lack of a token have no body.",
		Why: "The text asks for status and header.", Source: at("basic/authorization#error-handling"),
		Changes: "refusals", Apply: unauthorizedWith("", "")},
	{ID: "auth.refusals-oauth", Transports: OverHTTP,
		Summary: "Refusals for lack of a token have the JSON of an OAuth error.",
		Why:     "The text asks for status and header.", Source: at("basic/authorization#error-handling"),
		Changes: "refusals",
		Apply:   unauthorizedWith("application/json", `{"error":"invalid_token","error_description":"no"}`)},
	{ID: "auth.refusals-page", Transports: OverHTTP, Summary: "Refusals for lack of a token have a page in HTML.",
		Why: "The text asks for status and header.", Source: at("basic/authorization#error-handling"),
		Changes: "refusals", Apply: unauthorizedWith("text/html", "<!doctype html><title>401</title>")},
	{ID: "auth.metadata-rich", Transports: OverHTTP,
		Summary: "The resource metadata have all members of RFC 9728, and more.",
		Why:     "The other members are optional, and unknown ones allowed.", Source: at(challenges),
		Changes: "metadata",
		Apply: Naming(func(d object) {
			d["scopes_supported"], d["resource_name"], d["resource_name#de"] = list{"read", "write"}, "Server", "Diener"
			d["resource_documentation"], d["resource_policy_uri"], d["resource_tos_uri"] = "https://example.com/doc",
				"https://example.com/policy", "https://example.com/tos"
			d["tls_client_certificate_bound_access_tokens"], d["dpop_bound_access_tokens_required"] = false, false
			d["authorization_details_types_supported"], d["resource_signing_alg_values_supported"],
				d["x-more"] = list{}, list{"ES256"}, object{}
		})},
	{ID: "auth.metadata-minimal", Transports: OverHTTP,
		Summary: "The resource metadata have just resource and authorization_servers.",
		Why:     "The other members are optional.", Source: at(challenges), Changes: "metadata",
		Apply: Naming(Lacking("bearer_methods_supported"))},
	{ID: "auth.several-issuers", Transports: OverHTTP,
		Summary: "The resource metadata name two authorization servers.",
		Why:     "Metadata documents can define multiple authorization servers.", Source: at(challenges),
		Changes: "metadata",
		Apply: Naming(func(d object) {
			d["authorization_servers"] = append(d["authorization_servers"].(list), "https://issuer.example.com")
		})},
	{ID: "auth.metadata-charset", Transports: OverHTTP,
		Summary: "The metadata come with charset=utf-8, indented, with headers of caches.",
		Why:     "Headers are HTTP's own affair.", Source: at(challenges), Changes: "metadata",
		Apply: ProtectedWith(Replying(server.ResourceMetadata, func(r *server.Reply) {
			var document object
			if json.Unmarshal(r.Body, &document) == nil {
				r.Body, _ = json.MarshalIndent(document, "", "\t")
			}
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Header.Set("Cache-Control", "public, max-age=3600")
			r.Header.Set("Access-Control-Allow-Origin", "*")
		}))},
	{ID: "auth.metadata-elsewhere", Transports: OverHTTP,
		Summary: "The resource metadata are at an address of the server's own, which the challenge names.",
		Why:     "The challenge tells where they are.", Source: at(challenges), Changes: "challenge",
		Apply: Protecting(func(p *server.Protection) { p.MetadataPath = "/meta/resource.json" })},
	{ID: "auth.metadata-at-root", Transports: OverHTTP,
		Summary: "The resource metadata are at the well-known address without a path.",
		Why:     "The challenge tells where they are.", Source: at(challenges), Changes: "challenge",
		Apply: Protecting(func(p *server.Protection) { p.MetadataPath = transport.WellKnownResource })},
	{ID: "auth.issuer-rich", Transports: OverHTTP,
		Summary: "The metadata of the authorization server have many members more.",
		Why:     "RFC 8414 allows other members.", Source: at("basic/authorization#server-metadata-discovery"),
		Apply: Issuing(func(d object) {
			d["scopes_supported"], d["grant_types_supported"] = list{"openid"}, list{"authorization_code",
				"refresh_token", "urn:ietf:params:oauth:grant-type:device_code"}
			d["token_endpoint_auth_methods_supported"], d["jwks_uri"] = list{"none", "client_secret_post",
				"private_key_jwt"}, d["issuer"].(string)+"/jwks"
			d["response_modes_supported"], d["service_documentation"],
				d["code_challenge_methods_supported"] = list{"query",
				"form_post"}, "https://example.com", list{"plain", "S256"}
			d["x-more"] = nil
		})},
	{ID: "auth.description", Transports: OverHTTP,
		Summary: "The challenge has scope and error_description with all characters that they may have.",
		Why:     "OAuth 2.1, section 5.3.1, names them: printable ASCII without quotation mark and backslash.",
		Source:  at("basic/authorization#token-handling"), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Bearer resource_metadata="` + metadata +
				`", scope="a:b/c?d=e&f [g] {h} ~!#$%'()*+,-.;<>@^_` + "`" + `|"` +
				coded(`, error="CODE", error_description="It's over, sorry: (50%) [a] {b} <c> ~ `+"`d`"+
					`; e/f?g=h&i @^_|!#$*+"`, code)}
		})},
	{ID: "auth.two-bearer-challenges", Transports: OverHTTP,
		Summary: "The header has two challenges of the scheme Bearer, each with its realm.",
		Why:     "There may be several challenges; each has its own parameters (RFC 9110, section 11.6.1).",
		Source:  at(challenges), Changes: "challenge",
		Apply: challengedWith(func(metadata, code string) []string {
			return []string{`Bearer realm="a", resource_metadata="` + metadata + `"` + coded(`, error="CODE"`, code) +
				`, Bearer realm="b"`}
		})},
	{ID: "auth.streams", Transports: OverHTTP, Summary: "A protected server answers with streams.",
		Why:     "Authorization and the form of answers have nothing to do with each other.",
		Source:  at("basic/transports#sending-messages-to-the-server"),
		Untried: []string{ids.HTTPServerJSONOneObject}, Apply: ProtectedWith(AlwaysStreams)},
	{ID: "auth.ends-session", Transports: OverHTTP,
		Summary: "A request without a valid token ends the session that it names.",
		Why:     "The server may terminate the session at any time.",
		Source:  at("basic/transports#session-management"),
		Untried: []string{ids.AuthServerValidatesFirst, ids.SecuritySessionBoundToUser},
		Apply: BeforeRefusal(func(done *http.Request, _ *wire.Message) bool {
			done.Method = http.MethodDelete
			return true
		})},
	{ID: "auth.other-paths", Transports: OverHTTP,
		Summary: "A protected server answers addresses that it does not know with 401, too.",
		Why:     "The text is about the resource and its metadata alone.",
		Source:  at("basic/authorization#access-token-usage"),
		Apply: ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			known := r.URL.Path == server.PathMCP || strings.HasPrefix(r.URL.Path, transport.WellKnownResource) ||
				r.URL.Path == IssuerMetadata
			if !known && !Bearing(r) {
				w.Header().Set("WWW-Authenticate",
					`Bearer resource_metadata="http://`+r.Host+transport.WellKnownResource+server.PathMCP+`"`)
				http.Error(w, "a token is needed", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		}))},
}
