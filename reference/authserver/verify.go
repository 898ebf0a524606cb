package authserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Verifier verifies the signed access tokens of any authorization server (RFC 9068): it knows the keys from the
// metadata of the issuer. It is safe for concurrent use.
type Verifier struct {
	Issuer string
	// Scopes are those that a server demands: the last one for tool calls. None: it demands none.
	Scopes []string
	// Client makes the requests; nil is that of net/http with a time limit.
	Client *http.Client

	mu      sync.Mutex
	keys    jose.JSONWebKeySet
	fetched time.Time
}

// signatures are the algorithms that are accepted: none with a shared key.
var signatures = []jose.SignatureAlgorithm{
	jose.ES256, jose.ES384, jose.ES512, jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.EdDSA,
}

// Protect makes a server accept the tokens of the authorization server.
func (v *Verifier) Protect(p *server.Protection) {
	p.Issuers = append(p.Issuers, v.Issuer)
	p.Verify = func(token, resource string, r *http.Request) *server.Denial {
		if v.verify(r.Context(), token, resource) != nil {
			return server.InvalidToken
		}
		return nil
	}
	p.User = func(token string) string { return claimsOf(token).Subject }
	limit(p, v.Scopes, func(token string) string { return claimsOf(token).Scope })
}

// scoped are the claims of an access token (RFC 9068, section 2.2).
type scoped struct {
	jwt.Claims
	Scope string `json:"scope"`
}

// claimsOf returns the claims of a token that was verified before.
func claimsOf(token string) (c scoped) {
	if signed, err := jwt.ParseSigned(token, signatures); err == nil {
		_ = signed.UnsafeClaimsWithoutVerification(&c)
	}
	return c
}

// verify says why a token is not one of the issuer for a resource that is valid now.
func (v *Verifier) verify(ctx context.Context, token, resource string) error {
	signed, err := jwt.ParseSigned(token, signatures)
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	keys, err := v.keysFor(ctx, signed.Headers[0].KeyID)
	if err != nil {
		return err
	}
	var claims jwt.Claims
	if err := signed.Claims(keys, &claims); err != nil {
		return fmt.Errorf("verify the token: %w", err)
	}
	if err := claims.Validate(jwt.Expected{Issuer: v.Issuer}); err != nil {
		return fmt.Errorf("validate the token: %w", err)
	}
	if !slices.ContainsFunc(claims.Audience, func(one string) bool { return Same(one, resource) }) {
		return fmt.Errorf("the token is for %q", []string(claims.Audience))
	}
	return nil
}

// pause is the shortest time between two requests for the keys.
const pause = 5 * time.Second

// keysFor returns the keys of the issuer. It fetches them again if it does not know the key of an id.
func (v *Verifier) keysFor(ctx context.Context, id string) (*jose.JSONWebKeySet, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.keys.Key(id)) == 0 && time.Since(v.fetched) > pause {
		v.fetched = time.Now()
		issuer, err := url.Parse(v.Issuer)
		if err != nil {
			return nil, fmt.Errorf("the issuer: %w", err)
		}
		issuer.Path = WellKnown + strings.TrimSuffix(issuer.Path, "/")
		var metadata struct {
			Keys string `json:"jwks_uri"`
		}
		if err := v.fetch(ctx, issuer.String(), &metadata); err != nil {
			return nil, err
		}
		if err := v.fetch(ctx, metadata.Keys, &v.keys); err != nil {
			return nil, err
		}
	}
	return &v.keys, nil
}

func (v *Verifier) fetch(ctx context.Context, at string, into any) error {
	client := v.Client
	if client == nil {
		client = &http.Client{Timeout: 10 * time.Second}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return fmt.Errorf("fetch the keys of %s: %w", v.Issuer, err)
	}
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("fetch the keys of %s: %w", v.Issuer, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered with HTTP status %d", at, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", at, err)
	}
	return nil
}
