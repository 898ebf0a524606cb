package server

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
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

// forgery makes tokens that differ from accepted ones only by their signature, as far as that can be known.
type forgery struct {
	header, claims map[string]any
}

// forger returns a forgery of tokens for a server that has refused a request. It takes the claims of the valid token
// if that is a JWT, and else the issuer, the audience and the scopes in the resource metadata.
func forger(t *check.T, refused *transport.Response) forgery {
	e, _ := t.Endpoint()
	f := forgery{
		header: map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "mcpconform"},
		claims: map[string]any{
			"iss": "https://issuer.invalid", "sub": "mcpconform", "client_id": "mcpconform", "scope": "",
			"aud": cmp.Or(t.Target.Settings.Authorization.Resource, e.URL),
		},
	}
	_, token, _ := strings.Cut(t.Authorization(), " ")
	if parts := strings.Split(strings.TrimSpace(token), "."); len(parts) == 3 && decode(parts[0]) != nil &&
		decode(parts[1]) != nil {
		f.header, f.claims = decode(parts[0]), decode(parts[1])
	} else if document, err := metadata(t, refused); err == nil {
		if issuers := issuersOf(document); len(issuers) > 0 {
			f.claims["iss"] = issuers[0]
		}
		if resource, ok := document["resource"].(string); ok {
			f.claims["aud"] = resource
		}
		var scopes []string
		listed, _ := document["scopes_supported"].([]any)
		for _, scope := range listed {
			if scope, ok := scope.(string); ok {
				scopes = append(scopes, scope)
			}
		}
		f.claims["scope"] = strings.Join(scopes, " ")
	}
	f.claims["iat"], f.claims["exp"] = time.Now().Unix(), time.Now().Add(time.Hour).Unix()
	f.claims["jti"] = rand.Text()
	return f
}

// unsigned returns a JWT that claims to need no signature.
func (f forgery) unsigned() string {
	return segment(map[string]any{"alg": "none", "typ": cmp.Or[any](f.header["typ"], "at+jwt")}) + "." +
		segment(f.claims) + "."
}

// signed returns a JWT that was signed with a new key, or "" if none can be made. It
// names the algorithm and the key of the valid token if that is a JWT.
func (f forgery) signed() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return ""
	}
	text := segment(f.header) + "." + segment(f.claims)
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

// decode returns the object in a segment of a JWT, or nil.
func decode(segment string) map[string]any {
	raw, err := base64.RawURLEncoding.DecodeString(segment)
	if err != nil {
		return nil
	}
	value, _, err := wire.Decode(raw)
	if err != nil {
		return nil
	}
	object, _ := value.(map[string]any)
	return object
}
