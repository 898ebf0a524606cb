package authserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// OAuth 2.1, section 3.2, and 4.1 from the code on.
var tokenChecks = []Check{
	{
		Name: "token/answer", Requirements: []string{ids.AuthAsTokenAnswer, ids.AuthAsNoStore},
		Body: func(t *T) {
			const id = ids.AuthAsTokenAnswer
			f := t.begin(t.ordinary())
			f.code()
			a := f.redeem("an ordinary token request")
			if a.text("error") != "" {
				t.untried("no token was issued: %s was answered with %s", a.asked, a)
			}
			t.expect(id, a).To(haveStatus(http.StatusOK))
			t.expect(id, a).To(haveMember("access_token"))
			t.expect(id, a).To(haveMember("token_type"))
			if life, ok := a.object["expires_in"]; ok {
				_, number := life.(float64)
				t.fact(id, number, "expires_in is "+wire.Show(life)+"; a number is required", a)
			}
			t.expect(ids.AuthAsNoStore, a).To(haveHeader("Cache-Control", "no-store"))
		},
	},
	{
		Name: "token/errors", Requirements: []string{ids.AuthAsTokenError},
		Body: func(t *T) {
			const id = ids.AuthAsTokenError
			for _, try := range []struct {
				what, name, value string
				codes             []string
			}{
				{"a made-up code", "code", "mcpconform-no-code", []string{"invalid_grant"}},
				{"a made-up grant_type", "grant_type", "mcpconform", []string{"unsupported_grant_type"}},
				{"no grant_type", "grant_type", "", []string{"invalid_request", "unsupported_grant_type"}},
				{"no code", "code", "", []string{"invalid_request"}},
			} {
				f := t.begin(t.ordinary())
				f.form.Set("code", "mcpconform-no-code")
				if f.form.Set(try.name, try.value); try.value == "" {
					f.form.Del(try.name)
				}
				a := f.redeem("a token request with " + try.what)
				refused := t.expect(id, a).To(haveStatus(http.StatusBadRequest, http.StatusUnauthorized,
					http.StatusForbidden)) &&
					t.expect(id, a).To(haveMember("error"))
				if refused {
					t.fact(id, errorCode(a.text("error")), "the error is "+wire.Quote(a.text("error"), 80)+
						", which has other characters than an error code may have", a)
					t.prefer(id, a).To(haveError(try.codes...))
				}
			}
		},
	},
	{
		Name: "code/once", Requirements: []string{ids.AuthAsCodeOnce}, Harmful: true,
		Body: func(t *T) {
			f := t.begin(t.ordinary())
			t.twins = f.login().events
			t.expect(ids.AuthAsCodeOnce, f.redeem("the same token request, sent again")).ToNot(beIssued())
		},
	},
	{
		Name: "code/of-client", Requirements: []string{ids.AuthAsCodeOfClient},
		Body: func(t *T) {
			c := t.public()
			other := t.another(c.method, c.redirect, "another")
			t.twin(other)
			f := t.begin(c)
			f.code()
			f.authenticate(other)
			t.expect(ids.AuthAsCodeOfClient, f.redeem("a token request of another client than the code is for")).
				ToNot(beIssued())
		},
	},
	{
		Name: "code/redirect-uri", Requirements: []string{ids.AuthAsTokenAnswer},
		Body: func(t *T) {
			t.twin(t.ordinary())
			f := t.begin(t.ordinary())
			f.code()
			f.form.Set("redirect_uri", "https://other.example/callback")
			if f.redeem("a token request with another redirect_uri").issued() {
				t.note("a token request with another redirect_uri than the authorization request is served: " +
					"OAuth 2.1 leaves that out, and OAuth 2.0 compares it")
			}
		},
	},
	{
		Name: "client/challenge", Requirements: []string{ids.AuthAsClientChallenge}, Harmful: true,
		Body: func(t *T) {
			const id = ids.AuthAsClientChallenge
			c := t.confidential()
			if !slices.Contains(t.methods(), authserver.AuthBasic) {
				t.without("the metadata do not offer client_secret_basic")
			}
			f := t.begin(c)
			f.form.Set("code", "mcpconform-no-code")
			f.form.Del("client_id")
			f.form.Del("client_secret")
			f.basic(c.id, t.secretText())
			a := f.redeem("a token request with a wrong secret in the Authorization header")
			t.expect(id, a).To(haveStatus(http.StatusUnauthorized))
			t.expect(id, a).To(haveHeader("WWW-Authenticate", "basic"))
		},
	},
	{
		Name: "client/authenticated", Requirements: []string{ids.AuthAsClientAuthenticated}, Harmful: true,
		Body: func(t *T) {
			c := t.confidential()
			t.twin(c)
			each(map[string]client{
				"without the secret of the client": {id: c.id, method: authserver.AuthNone},
				"with a wrong secret":              {id: c.id, method: c.method, secret: t.secretText()},
			}, func(what string, wrong client) {
				f := t.begin(c)
				f.code()
				f.authenticate(&wrong)
				t.expect(ids.AuthAsClientAuthenticated, f.redeem("a token request "+what)).ToNot(beIssued())
			})
		},
	},
	{
		Name: "client/secret-in-body", Requirements: []string{ids.AuthAsSecretInBody},
		Body: func(t *T) {
			const id = ids.AuthAsSecretInBody
			offered := t.methods()
			if !slices.Contains(offered, authserver.AuthPost) {
				if t.document == nil || !slices.Contains(offered, authserver.AuthBasic) {
					t.without("the metadata offer no client a secret")
				}
				t.fact(id, t.document.object["token_endpoint_auth_methods_supported"] == nil,
					fmt.Sprintf("the metadata offer %q; client_secret_post has to be there for clients that have a "+
						"secret", offered),
					t.document)
				return
			}
			c := t.clientWith(authserver.AuthPost, loopback)
			if c.secret == "" {
				t.without("the authorization server gives no client a secret")
			}
			c.method = authserver.AuthPost
			t.twin(t.ordinary())
			f := t.begin(c)
			f.code()
			t.expect(id, f.redeem("a token request with the secret in the body")).ToNot(beRefused())
		},
	},
	{
		Name: "client/offered-methods", Requirements: []string{ids.AuthAsOfferedMethods},
		Body: func(t *T) {
			tried := false
			for _, m := range authserver.Methods() {
				if !slices.Contains(t.methods(), m) {
					continue
				}
				c := t.clientWith(m, loopback)
				if c.method != m {
					continue // the authorization server has chosen another one (RFC 7591, section 3.2.1)
				}
				tried = true
				f := t.begin(c)
				f.code()
				if m == authserver.AuthBasic {
					// A client that authenticates need not name itself (OAuth 2.1, section 4.1.3).
					f.form.Del("client_id")
				}
				t.expect(ids.AuthAsOfferedMethods, f.redeem("a token request of a client that is registered for "+m)).
					ToNot(beRefused())
			}
			if !tried {
				t.untried("the authorization server registers no client for a method that it offers and that " +
					"the run knows")
			}
		},
	},
	{
		Name: "token/audience", Requirements: []string{ids.AuthAsAudience},
		Body: func(t *T) {
			if t.Resource == "" {
				t.untried("it is not known which resource tokens are asked for")
			}
			a := t.begin(t.ordinary()).login()
			audience := audienceOf(a.text("access_token"))
			if audience == nil {
				t.without("the access tokens do not tell a client their audience")
			}
			general := slices.ContainsFunc(audience, func(one string) bool {
				return authserver.Same(one, t.Resource) ||
					strings.HasPrefix(t.Resource, strings.TrimSuffix(one, "/")+"/")
			})
			own := !slices.ContainsFunc(audience, func(one string) bool {
				return !same(one, t.issuer) && one != t.ordinary().id
			})
			if !general && !own {
				// The server may map the resource to an audience of another name.
				t.untried("the access token has the audience %q; whether that stands for the resource cannot be told",
					audience)
			}
			t.fact(ids.AuthAsAudience, general, fmt.Sprintf("the access token for the resource %s has the audience %q",
				wire.Quote(t.Resource, 120), audience), a)
		},
	},
	{
		Name: "token/unguessable", Requirements: []string{ids.AuthAsUnguessable},
		Body: func(t *T) {
			const id, enough = ids.AuthAsUnguessable, 20 // 19 printable characters hold less than 128 bits
			issued := make(map[string]bool)
			for range 2 {
				f := t.begin(t.ordinary())
				back := f.code()
				a := f.redeem("an ordinary token request")
				t.assume(a).To(beIssued())
				each(map[string]string{"code": back.param("code"), "access_token": a.text("access_token"),
					"refresh_token": a.text("refresh_token")}, func(name, text string) {
					t.fact(id, text == "" || len(text) >= enough,
						fmt.Sprintf("a %s has %d characters, which cannot hold 128 bits", name, len(text)), back, a)
					t.fact(id, text == "" || !issued[text], "the same "+name+" was issued twice", back, a)
					issued[text] = true
				})
			}
			if c := t.ordinary(); c.secret != "" && !t.given() {
				t.fact(id, len(c.secret) >= enough,
					fmt.Sprintf("a client_secret has %d characters, which cannot hold 128 bits",
						len(c.secret)), c.answer)
			}
		},
	},
}
