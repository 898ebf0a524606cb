package oddclient

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var (
	ofOverview     = "basic/authorization#overview"
	ofFlow         = "basic/authorization#authorization-flow-steps"
	ofRegistration = "basic/authorization#dynamic-client-registration"
	ofDiscovery    = "basic/authorization#authorization-server-location"
	ofTokenUse     = "basic/authorization#token-requirements"
)

// asking adds parameters to the authorization request.
func asking(parameters map[string]string) apply {
	return Requested(func(query url.Values) {
		for name, v := range parameters {
			query.Set(name, v)
		}
	})
}

// secretly registers the client with a secret, and shows that by Basic authentication
// or in the form, where the authorization server offers the method.
func secretly(method string) apply {
	return func(c *client.Standalone) {
		offered := true
		reading(func(d object) {
			if methods, ok := d["token_endpoint_auth_methods_supported"].(list); ok {
				offered = slices.Contains(methods, any(method))
			}
		})(c)
		Registering(func(document object) {
			if offered {
				document["token_endpoint_auth_method"] = method
			}
		})(c)
		Formed(func(form url.Values, h http.Header) {
			if secret := form.Get("client_secret"); secret != "" && offered && method == "client_secret_basic" {
				r := http.Request{Header: h}
				r.SetBasicAuth(url.QueryEscape(form.Get("client_id")), url.QueryEscape(secret))
				form.Del("client_id")
				form.Del("client_secret")
			}
		})(c)
	}
}

// reading looks at each metadata document that comes.
func reading(look func(document object)) apply {
	return Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && StepOf(r) == WellKnown {
			var document object
			if json.Unmarshal(Reread(resp), &document) == nil {
				look(document)
			}
		}
		return resp, err
	})
}

var longState = strings.Repeat("&=+%/ ?#", 75)

const furtherParameters = "An authorization server ignores parameters that it does not know (OAuth 2.1, section 3.1)."

var authOddities = []Oddity{
	odd("auth.never", "The client seeks no authorization.", "Authorization is optional.",
		"basic/authorization#protocol-requirements", WithoutAuthorization).Only(overEitherHTTP).In("auth/*").
		Open("auth.*"),
	odd("auth.scope", "The client asks for scopes.", "scope is an optional parameter of OAuth 2.1.", ofFlow,
		asking(map[string]string{"scope": "tools:read tools:call offline_access"})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.further-parameters",
		"The authorization request has prompt, login_hint, nonce and a parameter of the client's own.",
		furtherParameters, ofFlow, asking(map[string]string{"prompt": "consent", "login_hint": "someone@example.com",
			"nonce": "n-0S6_WzA2Mj", "com.example.theme": "dark"})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.token-parameters", "The token request has scope and a parameter of the client's own.", furtherParameters,
		ofFlow, Formed(func(form url.Values, _ http.Header) {
			form.Set("scope", "tools:read")
			form.Set("com.example.device", "17")
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.secret-basic", "The client registers for client_secret_basic and authenticates with it.",
		"Authorization servers serve confidential and public clients; this one offers the method.", ofOverview,
		secretly("client_secret_basic")).Only(overEitherHTTP).In("auth/*"),
	odd("auth.secret-post", "The client registers for client_secret_post and authenticates with it.",
		"Authorization servers serve confidential and public clients; this one offers the method.", ofOverview,
		secretly("client_secret_post")).Only(overEitherHTTP).In("auth/*"),
	odd("auth.rich-registration",
		"The registration names a URI, a logo, contacts, scopes and a version of the software.",
		"RFC 7591 defines these members and leaves the document open.", ofRegistration, Registering(func(d object) {
			d["client_uri"], d["logo_uri"], d["contacts"] = "https://client.example.com",
				"https://client.example.com/logo.png", list{"ops@example.com"}
			d["scope"], d["software_id"], d["software_version"], d["client_name#de"] = "tools:read",
				"4NRB1-0XZABZI9E6-5SM3R", "2.1", "Beispiel"
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.short-registration", "The registration has redirect_uris alone.",
		"All other members have defaults in RFC 7591; for the method that is client_secret_basic, which the answer "+
			"may replace.", ofRegistration, Registering(func(d object) {
			for name := range d {
				if name != "redirect_uris" {
					delete(d, name)
				}
			}
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.several-redirects", "The client registers three redirect URIs, of which it uses one.",
		"redirect_uris is a list; the authorization request names one of them.", "basic/authorization#open-redirection",
		Registering(func(d object) {
			uris, _ := d["redirect_uris"].(list)
			d["redirect_uris"] = append(list{"http://localhost:1/other", "https://client.example.com/callback"},
				uris...)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.registers-twice",
		"The client registers for client_secret_basic, and then once more as it is used to; it uses the second "+
			"registration.", "Nothing says how often a client registers.", ofRegistration,
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if StepOf(r) != Registration {
				return next.RoundTrip(r)
			}
			var document object
			raw, _ := io.ReadAll(r.Body)
			SetBody(r, raw)
			if json.Unmarshal(raw, &document) == nil {
				document["token_endpoint_auth_method"] = "client_secret_basic"
				first := r.Clone(r.Context())
				SetBody(first, client.Marshal(document))
				if resp, err := next.RoundTrip(first); err == nil {
					_ = Reread(resp)
				}
			}
			return next.RoundTrip(r)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.reloads", "The user agent loads each authorization URL twice, and the second result counts.",
		"A user may load a page again.", ofFlow,
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if StepOf(r) == Authorization {
				if resp, err := next.RoundTrip(r.Clone(r.Context())); err == nil {
					_ = Reread(resp)
				}
			}
			return next.RoundTrip(r)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.metadata-again", "Each metadata document is fetched twice.",
		"Nothing says how often a document is fetched.", ofDiscovery,
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if StepOf(r) == WellKnown {
				if first, err := next.RoundTrip(r.Clone(r.Context())); err == nil {
					_, _ = io.Copy(io.Discard, first.Body)
					_ = first.Body.Close()
				}
			}
			return next.RoundTrip(r)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.openid-first",
		"Before each metadata document of an authorization server, the client asks for that of OpenID Connect.",
		"RFC 8414 has to be used; that the client also knows another discovery is not excluded.",
		"basic/authorization#server-metadata-discovery",
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			const known = "/.well-known/oauth-authorization-server"
			if strings.HasPrefix(r.URL.Path, known) {
				probe := r.Clone(r.Context())
				probe.URL.Path = "/.well-known/openid-configuration" + strings.TrimPrefix(r.URL.Path, known)
				if first, err := next.RoundTrip(probe); err == nil {
					_, _ = io.Copy(io.Discard, first.Body)
					_ = first.Body.Close()
				}
			}
			return next.RoundTrip(r)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.metadata-cached", "Metadata documents are fetched once and then remembered, also for a second token.",
		"Nothing says how often a document is fetched.", ofDiscovery, RoundTripping(remembering(WellKnown))).
		Only(overEitherHTTP).In("auth/*"),
	odd("auth.plain-requests", "Requests for metadata have no Accept, and a User-Agent of the client's own.",
		"HTTP requires neither.", ofDiscovery, Seeking(WellKnown, func(r *http.Request) {
			r.Header.Del("Accept")
			r.Header.Set("User-Agent", "example-client/2.1 (+https://client.example.com)")
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.with-version", "Requests for metadata have MCP-Protocol-Version.", moreFields, ofDiscovery,
		Seeking(WellKnown, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", client.Version) })).
		Only(overEitherHTTP).In("auth/*"),
	odd("auth.refreshes-never", "A refresh token is not used; the client seeks authorization anew.",
		"Refresh tokens are optional to use (OAuth 2.1, section 1.3.2).", "basic/authorization#token-theft",
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && StepOf(r) == TokenRequest && resp.StatusCode == http.StatusOK {
				Rewritten(resp, Lacking("refresh_token"))
			}
			return resp, err
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.scheme-case", "The scheme in Authorization is written bearer.",
		"Names of authentication schemes are case-insensitive in HTTP (RFC 9110, section 11.1).", ofTokenUse,
		Heads(func(h *Head) {
			if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && scheme == "Bearer" {
				h.Set("Authorization", "Authorization: bearer "+token)
			}
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.reads-first", "The client asks for the resource metadata before it sends any message.",
		"The metadata are public, and nothing says that a refusal has to come first.", ofDiscovery, looksFirst).
		Only(overEitherHTTP).In("auth/*"),
	odd("auth.well-known-first",
		"The client asks for the resource metadata at the well-known addresses before it asks at the URL of the "+
			"challenge.", "Nothing forbids a request for another document; what the challenge names counts.",
		ofDiscovery, Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/documents/") {
				const known = transport.WellKnownResource
				for _, path := range []string{known + "/mcp", known, "/.well-known/oauth-authorization-server"} {
					Probe(next, r, path)
				}
			}
			return next.RoundTrip(r)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.redirect-for-each-server",
		"The client has a redirect URI for each authorization server, and does not look at iss.",
		"OAuth 2.1 (draft 13), section 7.14.2, has distinct redirect URIs as a defence in place of iss.",
		"basic/authorization#security-considerations", All(
			Returned(func(result url.Values) { result.Del("iss") }),
			backTo(true, func(uri *url.URL, r *http.Request) { uri.Path += "/" + r.URL.Port() }),
		)).Only(overEitherHTTP).In("auth/*").Open(ids.AuthClientISSCompared),
	odd("auth.other-port",
		"The client waits for the redirect at another loopback port than the one that it has registered.",
		"An authorization server lets a loopback redirect URI have any port (OAuth 2.1, section "+
			"8.4.2).", "basic/authorization#open-redirection",
		backTo(false, func(uri *url.URL, _ *http.Request) { uri.Host = "127.0.0.1:33499" })).Only(overEitherHTTP).
		In("auth/*"),
	odd("auth.long-state", "The state has 600 characters, of which some have to be escaped.",
		"Nothing limits the length of a state, which may be any printable text (OAuth 2.1, appendix A.5).",
		"basic/authorization#open-redirection", All(
			Requested(func(query url.Values) { query.Set("state", query.Get("state")+longState) }),
			Returned(func(result url.Values) {
				if state, ok := strings.CutSuffix(result.Get("state"), longState); ok {
					result.Set("state", state)
				}
			}),
		)).Only(overEitherHTTP).In("auth/*"),
	odd("auth.follows-redirects",
		"The client follows redirects of metadata documents and of its authorization request.",
		"Nothing says whether a client follows a redirect to another address of the same host.", ofDiscovery,
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			for range 3 {
				if err != nil || r.Method != http.MethodGet || resp.StatusCode/100 != 3 {
					break
				}
				to, bad := resp.Request.URL.Parse(resp.Header.Get("Location"))
				if bad != nil || to.Host != r.URL.Host {
					break
				}
				_ = Reread(resp)
				r = r.Clone(r.Context())
				r.URL = to
				resp, err = next.RoundTrip(r)
			}
			return resp, err
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.refreshes-early", "Each token that comes with a refresh token is refreshed before it is used.",
		"Nothing says when a client refreshes its token.", "basic/authorization#token-theft",
		AfterTokenRequest(func(next http.RoundTripper, again *http.Request,
			resp *http.Response) (*http.Response, error) {
			var answer object
			if resp.StatusCode != http.StatusOK || json.Unmarshal(Reread(resp), &answer) != nil ||
				answer["refresh_token"] == nil {
				return resp, nil
			}
			raw, _ := io.ReadAll(again.Body)
			form, _ := url.ParseQuery(string(raw))
			for _, name := range []string{"code", "code_verifier", "redirect_uri"} {
				form.Del(name)
			}
			form.Set("grant_type", "refresh_token")
			form.Set("refresh_token", answer["refresh_token"].(string))
			SetBody(again, []byte(form.Encode()))
			return next.RoundTrip(again)
		})).Only(overEitherHTTP).In("auth/*"),
	odd("auth.registers-once", "The client keeps its registration when it seeks authorization anew.",
		"Nothing says how often a client registers.", ofRegistration, RoundTripping(remembering(Registration))).
		Only(overEitherHTTP).In("auth/*"),
	odd("auth.redirect-without-token", "The client follows a redirect to another origin, without its access token.",
		"The token is for the server that was asked; nothing says that a redirect is not followed.",
		"basic/authorization#token-handling", func(c *client.Standalone) { Following(c, false) }).In("auth/*"),
}

// remembering makes each request of a step once, and takes the answer again after that.
func remembering(which Step) func(next http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		answers := make(map[string][]byte)
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			key := r.URL.String()
			if StepOf(r) != which {
				return next.RoundTrip(r)
			}
			if text := answers[key]; text != nil {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{},
					Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
			}
			resp, err := next.RoundTrip(r)
			if err != nil || resp.StatusCode/100 != 2 {
				return resp, err
			}
			answers[key] = Reread(resp)
			return resp, nil
		})
	}
}

// backTo has the browser come back to another redirect URI than that of the reference client. It is registered or not.
// The reference client takes what comes for the answer to its own.
func backTo(registered bool, change func(uri *url.URL, r *http.Request)) apply {
	changed := func(own string, r *http.Request) string {
		uri, err := url.Parse(own)
		if err != nil {
			return own
		}
		change(uri, r)
		return uri.String()
	}
	own := ""
	return All(
		Seeking(Registration, func(r *http.Request) {
			if !registered {
				return
			}
			var document object
			raw, _ := io.ReadAll(r.Body)
			if json.Unmarshal(raw, &document) == nil {
				uris, _ := document["redirect_uris"].(list)
				for i, v := range uris {
					text, _ := v.(string)
					uris[i] = changed(text, r)
				}
				raw = client.Marshal(document)
			}
			SetBody(r, raw)
		}),
		Seeking(TokenRequest, func(r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			form, _ := url.ParseQuery(string(raw))
			if form.Has("redirect_uri") {
				form.Set("redirect_uri", changed(form.Get("redirect_uri"), r))
			}
			SetBody(r, []byte(form.Encode()))
		}),
		Exchanging(func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
			if StepOf(r) != Authorization {
				return next.RoundTrip(r)
			}
			parameters := r.URL.Query()
			own = parameters.Get("redirect_uri")
			parameters.Set("redirect_uri", changed(own, r))
			r = r.Clone(r.Context())
			r.URL.RawQuery = parameters.Encode()
			resp, err := next.RoundTrip(r)
			if err == nil {
				resp.Header.Set("Location", strings.Replace(resp.Header.Get("Location"), changed(own, r), own, 1))
			}
			return resp, err
		}),
	)
}

// looksFirst asks for the resource metadata before the first message.
func looksFirst(c *client.Standalone) {
	if c.URL == "" {
		return
	}
	RoundTripping(func(next http.RoundTripper) http.RoundTripper { return next })(c)
	sender, at := c.Authorizer.Transport, c.URL
	looked := false
	Wrapping(func(conn transport.Conn) transport.Conn {
		if looked {
			return conn
		}
		looked = true
		u, err := url.Parse(at)
		if err != nil {
			return conn
		}
		u.Path, u.Fragment = transport.WellKnownResource+strings.TrimSuffix(u.Path, "/"), ""
		if r, err := http.NewRequest(http.MethodGet, u.String(), nil); err == nil {
			if resp, err := sender.RoundTrip(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		return conn
	})(c)
}
