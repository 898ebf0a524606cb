package authserver

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// OAuth 2.1, section 4.3, and basic/authorization#token-theft.
var refreshChecks = []Check{
	{
		Name: "refresh/rotated", Requirements: []string{ids.AuthAsRotateRefreshTokens, ids.AuthAsNoStore},
		Body: func(t *T) {
			const id = ids.AuthAsRotateRefreshTokens
			f, token := t.refreshable(t.public())
			a := f.refresh("a request that uses a refresh token", token)
			t.expect(ids.AuthAsNoStore, a).To(haveHeader("Cache-Control", "no-store"))
			next := a.text("refresh_token")
			t.fact(id, next != "" && next != token, "the answer to "+a.asked+
				" has no new refresh token; a public client has to get one at each use", a)
		},
	},
	{
		Name: "refresh/once", Requirements: []string{ids.AuthAsRefreshOnce}, Harmful: true,
		Body: func(t *T) {
			f, token := t.refreshable(t.public())
			next := f.refresh("a request that uses a refresh token", token).text("refresh_token")
			if next == "" || next == token {
				t.untried("refresh tokens are not replaced")
			}
			t.twins = f.refresh("a request that uses the new refresh token", next).events
			f.refreshing(token)
			t.expect(ids.AuthAsRefreshOnce, f.redeem("a request that uses the old refresh token")).ToNot(beIssued())
		},
	},
	{
		Name: "refresh/of-client", Requirements: []string{ids.AuthAsRefreshOfClient},
		Body: func(t *T) {
			c := t.public()
			other := t.another(c.method, c.redirect, "another")
			_, twin := t.refreshable(other)
			t.twins = t.begin(other).refresh("a request that uses a refresh token", twin).events
			f, token := t.refreshable(c)
			f.authenticate(other)
			f.refreshing(token)
			t.expect(ids.AuthAsRefreshOfClient,
				f.redeem("a request of another client than the refresh token is for")).
				ToNot(beIssued())
		},
	},
}

// refreshable logs in and returns the refresh token. It ends the body if there is none.
func (t *T) refreshable(c *client) (*flow, string) {
	f := t.begin(c)
	token := f.login().text("refresh_token")
	if token == "" {
		t.without("the authorization server issues no refresh tokens to this client")
	}
	return f, token
}

// refresh uses a refresh token. It ends the body if that fails.
func (f *flow) refresh(asked, token string) *answer {
	f.refreshing(token)
	a := f.redeem(asked)
	f.t.assume(a).To(beIssued())
	return a
}

// audienceOf returns the audience that an access token names, or nil if it tells none (RFC 9068, section 2.2).
func audienceOf(token string) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Audience any `json:"aud"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return nil
	}
	switch audience := claims.Audience.(type) {
	case string:
		return []string{audience}
	case []any:
		return wire.Strings(audience)
	}
	return nil
}
