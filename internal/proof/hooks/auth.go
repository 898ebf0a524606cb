package hooks

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// The tokens that a protected server knows.
const (
	GoodToken   = "mcpconform-good-token-7c1e"
	NarrowToken = "mcpconform-narrow-token-7c1e" // does not allow tools/call
	UserToken   = "mcpconform-token-of-another-user-7c1e"
)

// Protected makes a server demand access tokens.
func Protected(o *server.Options) {
	if o.HTTP.Protection == nil {
		Peeking()(o)
		o.HTTP.Protection = &server.Protection{Verify: bound()}
	}
}

// Verify judges a token.
func Verify(token, _ string, r *http.Request) *server.Denial {
	switch {
	case token == NarrowToken && Calls(r):
		return server.InsufficientScope
	case token == GoodToken || token == NarrowToken || token == UserToken:
		return nil
	}
	return server.InvalidToken
}

// bound binds each session to the token of the first request that names it. That request comes from the owner of the
// session.
func bound() func(token, resource string, r *http.Request) *server.Denial {
	var owners sync.Map
	return func(token, resource string, r *http.Request) *server.Denial {
		if denial := Verify(token, resource, r); denial != nil {
			return denial
		}
		if session := r.Header.Get(SessionHeader); session != "" {
			if owner, _ := owners.LoadOrStore(session, token); owner != token {
				return server.InsufficientScope
			}
		}
		return nil
	}
}

// Calls reports whether a request calls a tool.
func Calls(r *http.Request) bool { return Posted(r).Method == "tools/call" }

// Protecting changes how a protected server protects itself.
func Protecting(change func(p *server.Protection)) apply {
	return All(Protected, func(o *server.Options) { change(o.HTTP.Protection) })
}

// ProtectedWith is a protected server with further faults.
func ProtectedWith(changes ...apply) apply { return All(append([]apply{Protected}, changes...)...) }

// BeforeRefusal has a protected server carry out requests of sessions without the good token, before it refuses them.
// It carries out those that fit; fits may change them.
func BeforeRefusal(fits func(done *http.Request, m *wire.Message) bool) apply {
	return ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		const good = "Bearer " + GoodToken
		done := r.Clone(r.Context())
		done.Body = io.NopCloser(bytes.NewReader(body))
		done.Header.Set("Authorization", good)
		if r.Header.Get(SessionHeader) != "" && r.Header.Get("Authorization") != good && fits(done, wire.Parse(body)) {
			next.ServeHTTP(unread{make(http.Header)}, done)
		}
		next.ServeHTTP(w, r)
	}))
}

// unread takes an answer that nobody reads.
type unread struct{ header http.Header }

func (u unread) Header() http.Header              { return u.header }
func (unread) Write(text []byte) (n int, _ error) { return len(text), nil }
func (unread) WriteHeader(int)                    {}
func (unread) Flush()                             {}

// Naming changes the resource metadata.
func Naming(change func(document object)) apply {
	return Protecting(func(p *server.Protection) {
		before := p.Metadata
		p.Metadata = func(document object) {
			if before != nil {
				before(document)
			}
			change(document)
		}
	})
}

// Challenging changes the WWW-Authenticate header.
func Challenging(challenge func(metadata, code string) []string) apply {
	return Protecting(func(p *server.Protection) { p.Challenge = challenge })
}

// IssuerMetadata is the path of the metadata of the authorization server.
const IssuerMetadata = "/.well-known/oauth-authorization-server"

// Issuing serves other metadata of the authorization server.
func Issuing(change func(document object)) apply {
	return ProtectedWith(Between(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != IssuerMetadata {
			next.ServeHTTP(w, r)
			return
		}
		issuer := "http://" + r.Host
		document := object{
			"issuer": issuer, "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
			"registration_endpoint": issuer + "/register", "response_types_supported": list{"code"},
			"code_challenge_methods_supported": list{"S256"},
		}
		change(document)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}))
}

// Bearing reports whether a request shows a token, valid or not.
func Bearing(r *http.Request) bool { return r.Header.Get("Authorization") != "" }
