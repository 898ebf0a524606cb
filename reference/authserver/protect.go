package authserver

import (
	"net/http"

	"github.com/mcpconform/mcpconform/reference/server"
)

// Protect makes the authorization server that of a protected server: its tokens
// are good there. When it has the same origin it is served there as well.
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
	if sameOrigin {
		p.Elsewhere = s
	}
}
