package authserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// client is a registered client.
type client struct {
	id, secret, method, redirect string
	answer                       *answer // of its registration; nil if it was given
}

// Redirect URIs. Nothing listens there: a redirect is read and not followed.
const (
	loopback = "http://127.0.0.1:33418/callback"
	remote   = "https://client.example/callback"
)

// endpoint returns an endpoint of the metadata. It ends the body if there is none.
func (t *T) endpoint(name string) string {
	if t.document == nil {
		t.untried("%s", t.missing)
	}
	at := t.document.text(name)
	if at == "" {
		t.untried("the metadata do not name a %s", name)
	}
	return at
}

// methods returns the methods of client authentication that the metadata offer. Without a list, that is
// client_secret_basic (RFC 8414, section 2).
func (t *T) methods() []string {
	if t.document == nil {
		return nil
	}
	listed, ok := t.document.object["token_endpoint_auth_methods_supported"].([]any)
	if !ok {
		return []string{authserver.AuthBasic}
	}
	return wire.Strings(listed)
}

// metadataOf returns the metadata with which a client is registered.
func metadataOf(method string, redirects ...string) map[string]any {
	return map[string]any{
		"client_name": "mcpconform", "redirect_uris": redirects, "token_endpoint_auth_method": method,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		// OpenID Connect has a loopback redirect URI for native clients alone.
		"application_type": "native",
	}
}

// register asks for a registration.
func (t *T) register(asked string, metadata map[string]any) *answer {
	a, err := t.userAgent().send(
		request{asked: asked, method: http.MethodPost, url: t.endpoint("registration_endpoint"), object: metadata})
	t.must(err)
	if t.registered == nil {
		t.registered = make(map[string]*client)
	}
	if a.text("client_id") != "" { // to be deleted at the end
		t.registered[a.text("client_id")] = &client{id: a.text("client_id"), answer: a}
	}
	return a
}

// clientWith returns a client with a method of authentication and a redirect URI, which is registered once in a run.
// It ends the body if there is none.
func (t *T) clientWith(method, redirect string) *client { return t.another(method, redirect, "") }

// another is clientWith for one more client of the same kind, which a name tells from the first.
func (t *T) another(method, redirect, name string) *client {
	key := strings.Join([]string{method, redirect, name}, " ")
	if c := t.registered[key]; c != nil {
		return c
	}
	if t.given() {
		t.untried("it takes another client than the one that was given")
	}
	a := t.register("a registration", metadataOf(method, redirect))
	if a.status/100 != 2 || a.text("client_id") == "" {
		t.untried("no client can be registered: %s was answered with %s", a.asked, a)
	}
	c := &client{a.text("client_id"), a.text("client_secret"), cmp.Or(a.text("token_endpoint_auth_method"), method),
		redirect, a}
	delete(t.registered, c.id)
	t.registered[key] = c
	if a.object["token_endpoint_auth_method"] == nil && c.secret == "" {
		c.method = authserver.AuthNone
	}
	return c
}

// ordinary returns the client of an ordinary login: a public one if there can be one.
func (t *T) ordinary() *client {
	if !t.given() {
		return t.clientWith(t.ordinaryMethod(), loopback)
	}
	c := &client{id: t.ClientID, secret: t.ClientSecret, redirect: cmp.Or(t.RedirectURI, loopback)}
	methods := t.methods()
	switch {
	case c.secret == "":
		c.method = authserver.AuthNone
	case slices.Contains(methods, authserver.AuthPost) && !slices.Contains(methods, authserver.AuthBasic):
		c.method = authserver.AuthPost
	default:
		c.method = authserver.AuthBasic
	}
	return c
}

func (t *T) ordinaryMethod() string {
	offered := t.methods()
	for _, m := range authserver.Methods() {
		if slices.Contains(offered, m) || m == authserver.AuthNone && t.document != nil &&
			t.document.object["token_endpoint_auth_methods_supported"] == nil {
			return m
		}
	}
	return authserver.AuthNone
}

// public returns the ordinary client if it has no secret. It ends the body otherwise.
func (t *T) public() *client {
	c := t.ordinary()
	if c.method != authserver.AuthNone {
		t.without("the authorization server has no public clients, as far as the run knows")
	}
	return c
}

// confidential returns a client with a secret.
func (t *T) confidential() *client {
	if c := t.ordinary(); t.given() && c.secret != "" {
		return c
	}
	for _, m := range []string{authserver.AuthPost, authserver.AuthBasic} {
		if slices.Contains(t.methods(), m) {
			if c := t.clientWith(m, loopback); c.secret != "" {
				return c
			}
		}
	}
	t.without("the authorization server gives no client a secret")
	return nil
}

// flow is a login while it is under way: the parameters of its requests, which a check may change.
type flow struct {
	t        *T
	client   *client
	verifier string
	ask      url.Values // of the authorization request
	form     url.Values // of the token request
	header   http.Header
}

// secretText returns a fresh text of 43 characters that is kept out of reports.
func (t *T) secretText() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw)
	t.Endpoint.Redactor.Add(text)
	return text
}

// begin begins a login as an MCP client makes it.
func (t *T) begin(c *client) *flow {
	f := &flow{t: t, client: c, verifier: t.secretText(), header: make(http.Header)}
	f.ask = url.Values{
		"response_type": {"code"}, "client_id": {c.id}, "redirect_uri": {c.redirect}, "state": {rand.Text()},
		"code_challenge": {authserver.Challenge(f.verifier)}, "code_challenge_method": {"S256"},
	}
	f.form = url.Values{"grant_type": {"authorization_code"}, "redirect_uri": {c.redirect},
		"code_verifier": {f.verifier}}
	if t.Scope != "" {
		f.ask.Set("scope", t.Scope)
	}
	f.naming(cmp.Or(t.Resource, t.supposed))
	f.authenticate(c)
	return f
}

// naming has both requests of a login name a resource, unless it is "".
func (f *flow) naming(resource string) {
	if resource != "" {
		f.ask.Set("resource", resource)
		f.form.Set("resource", resource)
	}
}

// authenticate has a client identify itself in the token request. The client_id may stand beside an Authorization
// header. A server that insists on it breaks one duty and not all that take a token.
func (f *flow) authenticate(c *client) {
	f.header.Del("Authorization")
	f.form.Del("client_secret")
	f.form.Set("client_id", c.id)
	switch c.method {
	case authserver.AuthPost:
		f.form.Set("client_secret", c.secret)
	case authserver.AuthBasic:
		f.basic(c.id, c.secret)
	}
}

// basic puts credentials into the Authorization header, each form-encoded (OAuth 2.1, section 2.4.1).
func (f *flow) basic(id, secret string) {
	plain := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	text := base64.StdEncoding.EncodeToString([]byte(plain))
	f.t.Endpoint.Redactor.Add(text)
	f.header.Set("Authorization", "Basic "+text)
}

// maxPages bounds how many pages lead from an authorization request back to the client.
const maxPages = 12

// authorize sends the authorization request and goes on from page to page, as long as they redirect at once.
func (f *flow) authorize(asked string) *answer {
	t := f.t
	at, err := url.Parse(t.endpoint("authorization_endpoint"))
	t.must(err)
	query := at.Query()
	maps.Copy(query, f.ask)
	at.RawQuery = query.Encode()
	agent := t.userAgent()
	var events []*wire.Event
	for range maxPages {
		a, err := agent.send(request{asked: asked, method: http.MethodGet, url: at.String(), header: f.browser()})
		t.must(err)
		events = append(events, a.events...)
		a.events = events
		next, err := at.Parse(a.header.Get("Location"))
		if a.status/100 != 3 || a.header.Get("Location") == "" || err != nil {
			return a
		}
		if f.comesBack(at, next) {
			a.back = next
			return a
		}
		if next.Host != at.Host {
			return a // another party asks the user
		}
		at = next
	}
	t.untried("the authorization endpoint redirects more than %d times", maxPages)
	return nil
}

// browser returns the header of a request for a page, which the check may have changed.
func (f *flow) browser() http.Header {
	h := http.Header{"Accept": {"text/html"}}
	if origin := f.header.Get("Origin"); origin != "" {
		h.Set("Origin", origin)
	}
	return h
}

// comesBack reports whether a redirect from a page goes to a redirect URI that the request names or the client has.
func (f *flow) comesBack(from, to *url.URL) bool {
	return slices.ContainsFunc([]string{f.ask.Get("redirect_uri"), f.client.redirect}, func(uri string) bool {
		u, err := from.Parse(uri) // as a browser reads it
		return err == nil && uri != "" && strings.EqualFold(u.Scheme, to.Scheme) &&
			strings.EqualFold(u.Host, to.Host) && u.EscapedPath() == to.EscapedPath()
	})
}

// code asks for a code, which the token request then has. It ends the body if none comes.
func (f *flow) code() *answer {
	if f.t.Resource == "" {
		f.t.suppose(f.client)
		f.naming(f.t.supposed)
	}
	a := f.authorize("an ordinary authorization request")
	if a.page() {
		f.t.untried("the authorization endpoint shows a page on which a user has to act")
	}
	f.targeted(a)
	f.t.assume(a).To(leadToCode())
	f.form.Set("code", a.param("code"))
	return a
}

// redeem sends the token request.
func (f *flow) redeem(asked string) *answer {
	a := f.request(asked)
	f.targeted(a)
	return a
}

func (f *flow) request(asked string) *answer {
	a, err := f.t.userAgent().send(request{asked: asked, method: http.MethodPost, url: f.t.endpoint("token_endpoint"),
		form: f.form, header: f.header})
	f.t.must(err)
	return a
}

// invalidTarget is the error about a resource that is missing, or is not served (RFC 8707, section 2).
const invalidTarget = "invalid_target"

// targeted ends the body if a request was refused because no resource is known that it could name.
func (f *flow) targeted(a *answer) {
	if f.t.Resource == "" && a.code() == invalidTarget {
		f.t.untried("the server wants to know for which resource an access token is: give it with --resource")
	}
}

// suppose finds out, once in a run that knows no resource, whether a login has to name one. The issuer is then named if
// the authorization server takes it.
func (t *T) suppose(c *client) {
	if t.supposes {
		return
	}
	t.supposes = true
	if t.begin(c).refusal() != invalidTarget {
		return
	}
	t.supposed = t.issuer
	if t.begin(c).refusal() != "" {
		t.supposed = ""
	}
}

// refusal logs in and returns the error code with which that ends, or "".
func (f *flow) refusal() string {
	a := f.authorize("an authorization request that may have to name a resource")
	if code := a.param("code"); code != "" {
		f.form.Set("code", code)
		a = f.request("a token request that may have to name a resource")
	}
	return a.code()
}

// login logs in as an ordinary client does. It ends the body if that fails.
func (f *flow) login() *answer {
	f.code()
	a := f.redeem("an ordinary token request")
	f.t.assume(a).To(beIssued())
	return a
}

// twin logs in as a client without the change of a check, to show that the change makes the difference.
func (t *T) twin(c *client) *answer {
	a := t.begin(c).login()
	t.twins = a.events
	return a
}

// refreshing turns a login into a request that uses a refresh token.
func (f *flow) refreshing(token string) {
	for _, name := range []string{"code", "code_verifier", "redirect_uri"} {
		f.form.Del(name)
	}
	f.form.Set("grant_type", "refresh_token")
	f.form.Set("refresh_token", token)
}

// Leave deletes the clients that the run has registered, if the authorization server lets it (RFC 7592, section 2.3).
func (a *Target) Leave(ctx context.Context) {
	t := &T{Context: ctx, Target: a, check: &Check{Name: Farewell}, log: a.connect(Farewell)}
	defer t.log.End()
	for _, c := range a.registered {
		at, token := c.answer.text("registration_client_uri"), c.answer.text("registration_access_token")
		if at == "" || token == "" {
			continue
		}
		_, _ = t.userAgent().send(request{ // a client that stays does no harm
			asked: fmt.Sprintf("the deletion of the client %s", c.id), method: http.MethodDelete, url: at,
			header: http.Header{"Authorization": {"Bearer " + token}},
		})
	}
	a.Close()
}

// Farewell names the log of what is asked after the checks.
const Farewell = "farewell"
