package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites/check"
)

// altered returns a token with one character changed: the first one of the signature
// if it is a JWT, as the last one may stand for bits that do not count, else the one
// in the middle. It returns "" if there is no such character.
func altered(token string) string {
	at := len(token) / 2
	if strings.Count(token, ".") == 2 {
		at = strings.LastIndexByte(token, '.') + 1
	}
	if at >= len(token) {
		return ""
	}
	// Another letter or digit, and not the same letter in the other case.
	other := byte('q')
	if token[at]|0x20 == 'q' {
		other = 'w'
	}
	return token[:at] + string(other) + token[at+1:]
}

// otherCase returns a token with small letters for capitals, and the reverse.
func otherCase(token string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r ^ 0x20
		}
		return r
	}, token)
}

// claims are those of a token that is for the server and has time left.
func claims(t *check.T) map[string]any {
	e, _ := t.Endpoint()
	audience := e.URL
	if r := t.Target.Settings.Authorization.Resource; r != "" {
		audience = r
	}
	return map[string]any{
		"iss": "https://issuer.invalid", "sub": "mcpconform", "aud": audience, "client_id": "mcpconform",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "jti": rand.Text(), "scope": "",
	}
}

// unsignedJWT returns a JWT that claims to need no signature.
func unsignedJWT(t *check.T) string {
	return segment(map[string]any{"alg": "none", "typ": "at+jwt"}) + "." + segment(claims(t)) + "."
}

// signedJWT returns a JWT with the right audience that was signed with a new key,
// or "" if none can be made.
func signedJWT(t *check.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return ""
	}
	text := segment(map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "mcpconform"}) + "." + segment(claims(t))
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		return ""
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func segment(v any) string { return base64.RawURLEncoding.EncodeToString(client.Marshal(v)) }
