package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// refusal is an error of the token endpoint (OAuth 2.1, section 3.2.4); its code is "" if there is none.
type refusal struct{ code, text string }

// token redeems a code or a refresh token.
func (x *httpCall) token() {
	s, form := x.server, x.seen.Values
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		x.refuse(http.StatusMethodNotAllowed, "invalid_request", "a token request is a POST")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[x.seen.Client]
	if !known || !s.authenticated(c, x.secret) {
		if slices.Contains(x.seen.Auth, AuthBasic) {
			x.w.Header().Set("WWW-Authenticate", `Basic realm="clients"`)
		}
		x.refuse(http.StatusUnauthorized, "invalid_client", "the client is not known, or its secret is wrong")
		return
	}
	if !s.options.Lenient && (repeated(form) || len(x.seen.Auth) > 1 || x.seen.InQuery) {
		x.refuse(http.StatusBadRequest, "invalid_request",
			"a parameter occurs twice or in the query, or the client authenticates itself in two ways")
		return
	}
	var g grant
	var no refusal
	switch kind := form.Get("grant_type"); kind {
	case "authorization_code":
		g, no = s.redeem(c, form)
	case "refresh_token":
		g, no = s.renew(c, form)
	case "":
		no = refusal{"invalid_request", "there is no grant_type"}
	default:
		no = refusal{"unsupported_grant_type", "the grant type is not supported"}
	}
	resource := form.Get("resource")
	switch {
	case no.code != "":
	case resource == "" && !s.options.Lenient && s.keeps(ResourceRequired),
		resource != "" && g.resource != "" && !Same(resource, g.resource):
		no = refusal{"invalid_target", "the resource is missing, or not the one that the authorization is for"}
	}
	if no.code != "" {
		x.refuse(http.StatusBadRequest, no.code, no.text)
		return
	}
	if g.resource == "" {
		g.resource = resource
	}
	x.issue(c, g, form)
}

// authenticated reports whether a client has shown its secret. The lock is held.
func (s *Server) authenticated(c Client, secret string) bool {
	switch {
	case c.Secret == "" || c.Secret == secret:
		return true
	case secret == "":
		return !s.keeps(SecretRequired)
	}
	return !s.keeps(SecretMatches)
}

// redeem returns what a code stands for. A code is good for one use, and its second use ends all that came from the
// first (OAuth 2.1, section 4.1.3).
func (s *Server) redeem(c Client, form url.Values) (grant, refusal) {
	code := form.Get("code")
	g, ok := s.codes[code]
	verifier := form.Get("code_verifier")
	switch {
	case code == "":
		return g, refusal{"invalid_request", "there is no code"}
	case !ok || time.Now().After(g.expires):
		return g, refusal{"invalid_grant", "the code is not known, was used already, or has expired"}
	case g.client != c.ID && s.keeps(CodeOfClient):
		return g, refusal{"invalid_grant", "the code is another client's"}
	case g.redirect != "" && form.Get("redirect_uri") != "" && g.redirect != form.Get("redirect_uri"):
		return g, refusal{"invalid_grant", "the redirect_uri is not that of the authorization request"}
	case s.options.Lenient, g.challenge == "":
	case verifier == "" && s.keeps(VerifierRequired),
		verifier != "" && g.challenge != Challenge(verifier) && s.keeps(VerifierMatches):
		return g, refusal{"invalid_grant", "the code_verifier does not match the code_challenge"}
	}
	if g.used && s.keeps(CodeOnce) {
		s.revoke(g.family)
		return g, refusal{"invalid_grant", "the code was used already"}
	}
	used := g
	used.used = true
	s.codes[code] = used
	g.client = c.ID
	return g, refusal{}
}

// renew returns what a refresh token stands for. A refresh token is good for one use, and its second use ends all
// that came from the same code (basic/authorization#token-theft).
func (s *Server) renew(c Client, form url.Values) (grant, refusal) {
	token := form.Get("refresh_token")
	g, ok := s.refresh[token]
	switch {
	case !ok || g.revoked:
		return g, refusal{"invalid_grant", "the refresh token is not known"}
	case g.client != c.ID && s.keeps(RefreshOfClient):
		return g, refusal{"invalid_grant", "the refresh token is another client's"}
	case g.used && s.keeps(RefreshOnce):
		s.revoke(g.family)
		return g, refusal{"invalid_grant", "the refresh token was used already"}
	}
	g.used = s.keeps(RefreshRotated)
	s.refresh[token] = g
	g.used = false
	return g, refusal{}
}

// revoke ends the life of all tokens that came from one code. The lock is held.
func (s *Server) revoke(family string) {
	for _, tokens := range []map[string]grant{s.tokens, s.refresh} {
		for token, g := range tokens {
			if g.family == family {
				g.revoked = true
				tokens[token] = g
			}
		}
	}
}

// Challenge returns the S256 challenge of a PKCE verifier.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// issue answers with an access token. The lock is held.
func (x *httpCall) issue(c Client, g grant, form url.Values) {
	s := x.server
	g.expires = time.Now().Add(s.options.Life)
	token := rand.Text()
	if s.signer != nil {
		token = s.sign(c, g)
	}
	bound(s.tokens)
	s.tokens[token] = g
	answer := map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(s.options.Life / time.Second),
	}
	if len(s.options.Scopes) > 0 {
		answer["scope"] = g.scope
	}
	switch {
	case s.options.NoRefresh:
	case !s.keeps(RefreshRotated) && form.Get("refresh_token") != "":
		answer["refresh_token"] = form.Get("refresh_token")
	default:
		next := rand.Text()
		bound(s.refresh)
		s.refresh[next] = g
		answer["refresh_token"] = next
	}
	x.answer(http.StatusOK, answer)
}

// sign returns a signed access token (RFC 9068).
func (s *Server) sign(c Client, g grant) string {
	audience := g.resource
	if !s.keeps(TokenOfResource) {
		audience = s.options.Issuer
	}
	token, err := jwt.Signed(s.signer).Claims(map[string]any{
		"iss": s.options.Issuer, "sub": c.ID, "aud": audience, "client_id": c.ID, "jti": rand.Text(),
		"iat": time.Now().Unix(), "exp": g.expires.Unix(), "scope": g.scope,
	}).Serialize()
	if err != nil {
		return rand.Text() // never with this key
	}
	return token
}

// keyID names the only key.
const keyID = "1"

// signingKey makes the key of signed tokens, and what signs with it.
func signingKey() (jose.JSONWebKey, jose.Signer, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return jose.JSONWebKey{}, nil, err
	}
	key := jose.JSONWebKey{Key: private, KeyID: keyID, Algorithm: string(jose.ES256), Use: "sig"}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key},
		new(jose.SignerOptions).WithType("at+jwt"))
	return key.Public(), signer, err
}

// keys serves the keys that verify signed tokens (RFC 7517).
func (x *httpCall) keys() {
	x.answer(http.StatusOK, map[string]any{"keys": []any{x.server.key}})
}
