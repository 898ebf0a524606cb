package authserver

import (
	"net/http"

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
	if sameOrigin {
		p.Elsewhere = s
	}
}
