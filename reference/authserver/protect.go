package authserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Protect makes a server accept the tokens of the authorization server. If both
// have the same origin, the server also serves the authorization server.
func (s *Server) Protect(p *server.Protection, sameOrigin bool) {
	p.Issuers = append(p.Issuers, s.options.Issuer)
	before := p.Verify
	p.Verify = func(token, resource string, r *http.Request) *server.Denial {
		if s.Issued(token) || before == nil {
			if !s.Valid(token, resource) {
				return server.InvalidToken
			}
			return nil
		}
		return before(token, resource, r)
	}
	p.User = s.User
	limit(p, s.options.Scopes, s.scope)
	if sameOrigin {
		p.Elsewhere = s
	}
}

// limit has a server name scopes in its metadata, and demand the last one of them for tool calls.
func limit(p *server.Protection, scopes []string, of func(token string) string) {
	if len(scopes) == 0 {
		return
	}
	before := p.Metadata
	p.Metadata = func(document map[string]any) {
		document["scopes_supported"] = scopes
		if before != nil {
			before(document)
		}
	}
	p.Allows = func(token, method string) bool {
		return method != "tools/call" || slices.Contains(strings.Fields(of(token)), scopes[len(scopes)-1])
	}
}
