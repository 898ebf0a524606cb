package authserver

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// OAuth 2.1, section 4.1, up to the code.
var authorizationChecks = []Check{
	{
		Name: "redirect/exact", Requirements: []string{ids.AuthAsExactRedirectURI},
		Body: func(t *T) {
			c := t.ordinary()
			if !t.given() {
				c = t.clientWith(t.ordinaryMethod(), remote)
			}
			t.twins = t.begin(c).code().events
			each(otherRedirects(c.redirect), func(what, uri string) {
				f := t.begin(c)
				f.ask.Set("redirect_uri", uri)
				a := f.authorize("an authorization request whose redirect_uri has " + what)
				t.expect(ids.AuthAsExactRedirectURI, a).ToNot(leadToCode())
			})
		},
	},
	{
		Name: "redirect/exact-loopback", Requirements: []string{ids.AuthAsExactRedirectURI},
		Body: func(t *T) {
			c := t.ordinary()
			t.twins = t.begin(c).code().events
			f := t.begin(c)
			f.ask.Set("redirect_uri", c.redirect+"/more")
			a := f.authorize("an authorization request whose redirect_uri has a longer path")
			t.expect(ids.AuthAsExactRedirectURI, a).ToNot(leadToCode())
		},
	},
	{
		Name: "redirect/loopback-port", Requirements: []string{ids.AuthAsLoopbackPort},
		Body: func(t *T) {
			c := t.ordinary()
			u, err := url.Parse(c.redirect)
			if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" {
				t.without("the redirect URI of the client is not http at a loopback address")
			}
			t.twins = t.begin(c).code().events
			f := t.begin(c)
			u.Host = strings.TrimSuffix(u.Host, ":"+u.Port()) + ":51004"
			f.ask.Set("redirect_uri", u.String())
			a := f.authorize("an authorization request whose loopback redirect_uri has another port")
			t.expect(ids.AuthAsLoopbackPort, a).To(leadToCode())
		},
	},
	{
		Name: "redirect/query", Requirements: []string{ids.AuthAsRedirectQuery},
		Body: func(t *T) {
			a := t.begin(t.clientWith(t.ordinaryMethod(), loopback+"?tenant=a%20b%26c")).code()
			t.expect(ids.AuthAsRedirectQuery, a).To(haveParam("tenant", "a b&c"))
		},
	},
	{
		Name: "redirect/untrusted", Requirements: []string{ids.AuthAsNoUntrustedRedirect},
		Body: func(t *T) {
			const id, evil = ids.AuthAsNoUntrustedRedirect, "https://other.example/callback"
			c := t.ordinary()
			t.twins = t.begin(c).code().events
			each(map[string]func(url.Values){
				"an unknown client_id": func(v url.Values) { v.Set("client_id", "mcpconform-unknown") },
				"an unknown client_id and another redirect_uri": func(v url.Values) {
					v.Set("client_id", "mcpconform-unknown")
					v.Set("redirect_uri", evil)
				},
				"a redirect_uri of another host": func(v url.Values) { v.Set("redirect_uri", evil) },
				"a redirect_uri of another host, and an error": func(v url.Values) {
					v.Set("redirect_uri", evil)
					v.Set("response_type", "mcpconform")
				},
				"no client_id":                    func(v url.Values) { v.Del("client_id") },
				"a redirect_uri that is a script": func(v url.Values) { v.Set("redirect_uri", "javascript:alert(1)") },
			}, func(what string, change func(url.Values)) {
				f := t.begin(c)
				change(f.ask)
				t.expect(id, f.authorize("an authorization request with "+what)).ToNot(comeBack())
			})
		},
	},
	{
		Name: "authorization/response-type", Requirements: []string{ids.AuthAsResponseType},
		Body: func(t *T) {
			t.twins = t.begin(t.ordinary()).code().events
			f := t.begin(t.ordinary())
			f.ask.Set("response_type", "mcpconform")
			t.expect(ids.AuthAsResponseType, f.authorize("an authorization request with a made-up response_type")).
				ToNot(leadToCode())
			f.ask.Del("response_type")
			t.expect(ids.AuthAsResponseType, f.authorize("an authorization request without response_type")).
				ToNot(leadToCode())
		},
	},
	{
		Name: "authorization/errors", Requirements: []string{ids.AuthAsAuthorizationError, ids.AuthAsState,
			ids.AuthAsISS},
		Body: func(t *T) {
			t.twins = t.begin(t.ordinary()).code().events
			f := t.begin(t.ordinary())
			f.ask.Set("response_type", "mcpconform")
			a := f.authorize("an authorization request with a made-up response_type")
			if a.param("code") != "" {
				t.untried("the authorization server refuses no authorization request that the run has tried")
			}
			if !t.expect(ids.AuthAsAuthorizationError, a).To(beErrorResponse()) {
				t.untried("no error came by redirect")
			}
			t.expect(ids.AuthAsState, a).To(haveParam("state", f.ask.Get("state")))
			t.identified(a)
		},
	},
	{
		Name: "authorization/state", Requirements: []string{ids.AuthAsState},
		Body: func(t *T) {
			for _, state := range []string{rand.Text(), "a b+c%2Fd&e=f;g\"<>'\\|é", strings.Repeat("s", 512)} {
				f := t.begin(t.ordinary())
				f.ask.Set("state", state)
				t.expect(ids.AuthAsState, f.code()).To(haveParam("state", state))
			}
		},
	},
	{
		Name: "authorization/iss", Requirements: []string{ids.AuthAsISS},
		Body: func(t *T) { t.identified(t.begin(t.ordinary()).code()) },
	},
	{
		Name: "authorization/cors", Requirements: []string{ids.AuthAsNoCors},
		Body: func(t *T) {
			const origin = "https://other.example"
			f := t.begin(t.ordinary())
			f.header.Set("Origin", origin)
			a := f.authorize("an authorization request with the Origin of another site")
			allowed := a.header.Get("Access-Control-Allow-Origin")
			t.fact(ids.AuthAsNoCors, allowed != "*" && allowed != origin, a.asked+
				" was answered with Access-Control-Allow-Origin: "+wire.Quote(allowed, 80)+
				"; the header was to be absent", a)
		},
	},
	{
		Name: "pkce/required", Requirements: []string{ids.AuthAsPKCERequired},
		Body: func(t *T) {
			c := t.public()
			t.twin(c)
			f := t.begin(c)
			f.ask.Del("code_challenge")
			f.ask.Del("code_challenge_method")
			f.form.Del("code_verifier")
			a := f.authorize("an authorization request without code_challenge")
			if a.param("code") == "" {
				t.expect(ids.AuthAsPKCERequired, a).ToNot(leadToCode())
				return
			}
			f.form.Set("code", a.param("code"))
			t.expect(ids.AuthAsPKCERequired,
				f.redeem("a token request for a code that was asked for without code_challenge")).
				ToNot(beIssued())
		},
	},
	{
		Name: "pkce/methods", Requirements: []string{ids.AuthAsChallengeMethod},
		Body: func(t *T) {
			const id = ids.AuthAsChallengeMethod
			t.twins = t.begin(t.ordinary()).code().events
			f := t.begin(t.ordinary())
			f.ask.Set("code_challenge_method", "S999")
			t.expect(id,
				f.authorize("an authorization request with a made-up code_challenge_method")).ToNot(leadToCode())
			listed, known := t.document.object["code_challenge_methods_supported"].([]any)
			if !known || slices.Contains(listed, any("plain")) {
				return
			}
			f = t.begin(t.ordinary())
			f.ask.Set("code_challenge_method", "plain")
			f.ask.Set("code_challenge", f.verifier)
			t.prefer(id, f.authorize("an authorization request with the method plain, which the metadata do not list")).
				ToNot(leadToCode())
		},
	},
	{
		Name: "pkce/s256", Requirements: []string{ids.AuthAsPKCES256},
		Body: func(t *T) {
			f := t.begin(t.ordinary())
			f.code()
			a := f.redeem("a token request with the verifier of an S256 challenge")
			// An error about a verifier has one of these codes (RFC 7636, section 4.6; OAuth 2.1, section 3.2.4).
			if code := a.code(); a.status >= 400 && code != "invalid_grant" && code != "invalid_request" {
				t.untried("the token request failed for another reason than the verifier: HTTP status %d, error %q",
					a.status, code)
			}
			t.expect(ids.AuthAsPKCES256, a).ToNot(beRefused())
		},
	},
	{
		Name: "pkce/verified", Requirements: []string{ids.AuthAsPKCEVerified},
		Body: func(t *T) {
			c := t.ordinary()
			t.twin(c)
			each(map[string]func(*flow){
				"another code_verifier": func(f *flow) { f.form.Set("code_verifier", t.secretText()) },
				"the challenge as the code_verifier": func(f *flow) {
					f.form.Set("code_verifier", f.ask.Get("code_challenge"))
				},
				"no code_verifier": func(f *flow) { f.form.Del("code_verifier") },
			}, func(what string, change func(*flow)) {
				f := t.begin(c)
				f.code()
				change(f)
				t.expect(ids.AuthAsPKCEVerified, f.redeem("a token request with "+what)).ToNot(beIssued())
			})
		},
	},
	{
		// "MCP clients MUST send this parameter regardless of whether authorization servers support it."
		Name: "parameters/resource", Requirements: []string{ids.AuthAsUnknownParameters},
		Body: func(t *T) {
			if t.Resource == "" {
				t.untried("it is not known which resource tokens are asked for")
			}
			f := t.begin(t.ordinary())
			f.ask.Del("resource")
			t.twins = f.code().events
			a := t.begin(t.ordinary()).authorize("an authorization request with the parameter resource")
			if a.param("error") != invalidTarget { // which the server knows, and does not serve
				t.expect(ids.AuthAsUnknownParameters, a).To(leadToCode())
			}
		},
	},
	{
		Name: "parameters/unknown", Requirements: []string{ids.AuthAsUnknownParameters},
		Body: func(t *T) {
			const id = ids.AuthAsUnknownParameters
			t.twin(t.ordinary())
			f := t.begin(t.ordinary())
			f.ask.Set("mcpconform_unknown", "1")
			a := f.authorize("an authorization request with a parameter of a made-up name")
			if !t.expect(id, a).To(leadToCode()) {
				return
			}
			f.form.Set("code", a.param("code"))
			f.form.Set("mcpconform_unknown", "1")
			t.expect(id, f.redeem("a token request with a parameter of a made-up name")).ToNot(beRefused())
		},
	},
	{
		Name: "parameters/empty", Requirements: []string{ids.AuthAsEmptyParameters},
		Body: func(t *T) {
			const id = ids.AuthAsEmptyParameters
			name := "scope"
			if t.Scope != "" {
				name = "state" // as the authorization server may require the scope
			}
			c := t.ordinary()
			t.twin(c)
			f := t.begin(c)
			f.ask.Set(name, "")
			a := f.authorize("an authorization request with an empty " + name)
			if !t.expect(id, a).To(leadToCode()) {
				return
			}
			f.form.Set("code", a.param("code"))
			if c.method == authserver.AuthNone {
				f.form.Set("client_secret", "")
			}
			t.expect(id, f.redeem("a token request of a public client with an empty client_secret")).ToNot(beRefused())
		},
	},
}

// identified judges whether a redirect names the issuer, if the metadata promise that (RFC 9207).
func (t *T) identified(a *answer) {
	if t.document.object["authorization_response_iss_parameter_supported"] != true {
		t.without("the metadata do not promise iss (authorization_response_iss_parameter_supported)")
	}
	issuer := t.document.text("issuer")
	if a.param("iss") == t.issuer {
		issuer = t.issuer // another one in the metadata is a matter of these
	}
	t.expect(ids.AuthAsISS, a).To(haveParam("iss", issuer))
}

// otherRedirects returns redirect URIs that differ from a registered one, by what they have.
func otherRedirects(registered string) map[string]string {
	other := func(change func(*url.URL)) string {
		u, err := url.Parse(registered)
		if err != nil {
			return "https://other.example/"
		}
		change(u)
		return u.String()
	}
	return map[string]string{
		"a longer path":          other(func(u *url.URL) { u.Path += "/more" }),
		"a longer last segment":  other(func(u *url.URL) { u.Path += "more" }),
		"a final slash":          other(func(u *url.URL) { u.Path = strings.TrimSuffix(u.Path, "/") + "/" }),
		"a path with dots":       other(func(u *url.URL) { u.Path += "/../other" }),
		"capitals in the path":   other(func(u *url.URL) { u.Path = strings.ToUpper(u.Path) }),
		"a query":                other(func(u *url.URL) { u.RawQuery = strings.Trim(u.RawQuery+"&more=1", "&") }),
		"another host":           other(func(u *url.URL) { u.Host = "other.example" }),
		"a longer host":          other(func(u *url.URL) { u.Host = u.Hostname() + ".other.example" }),
		"a subdomain":            other(func(u *url.URL) { u.Host = "sub." + u.Host }),
		"https at another port":  other(func(u *url.URL) { u.Scheme, u.Host = "https", u.Hostname()+":8443" }),
		"a user before the host": disguised(registered),
	}
}

// disguised returns a URI of another host that looks like a registered one.
func disguised(registered string) string {
	u, err := url.Parse(registered)
	if err != nil {
		return "https://other.example/"
	}
	u.User, u.Host = url.User(u.Hostname()), "other.example"
	return u.String()
}
