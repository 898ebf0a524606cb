package authserver

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
)

// authorize grants what is asked for and sends the user agent back at once.
func (x *httpCall) authorize() {
	s, ask := x.server, x.seen.Values
	x.seen.Client = ask.Get("client_id")
	s.mu.Lock()
	c, known := s.clients[x.seen.Client]
	s.mu.Unlock()
	redirect := ask.Get("redirect_uri")
	if redirect == "" && len(c.Redirects) == 1 {
		redirect = c.Redirects[0]
	}
	// A redirect never goes to an address that is not the client's
	// (basic/authorization#open-redirection).
	target, err := url.Parse(redirect)
	switch {
	case !known && (s.keeps(KnownClient) || err != nil || !target.IsAbs()):
		x.refuse(http.StatusBadRequest, "invalid_client", "the client is not known")
		return
	case err != nil || !target.IsAbs() || !s.redirectsTo(c, redirect) && s.keeps(KnownRedirect):
		x.refuse(http.StatusBadRequest, "invalid_request", "the redirect_uri is not one of the client's")
		return
	}
	result := make(url.Values)
	if state := ask.Get("state"); state != "" {
		result.Set("state", state)
	}
	result.Set("iss", s.options.Issuer) // RFC 9207, section 2
	switch errorCode := x.unauthorized(); {
	case !known:
		result.Set("error", "unauthorized_client")
	case !s.redirectsTo(c, redirect):
		result.Set("error", "invalid_request")
	case errorCode != "":
		result.Set("error", errorCode)
	default:
		result.Set("code", s.code(c, ask))
	}
	if s.options.Redirect != nil {
		s.options.Redirect(result)
	}
	x.redirect(target, result)
}

// unauthorized returns the error code with which an authorization request of a known client is refused, or ""
// (OAuth 2.1, section 4.1.2.1).
func (x *httpCall) unauthorized() string {
	s, ask := x.server, x.seen.Values
	switch {
	case ask.Get("response_type") != "code" && s.keeps(KnownResponseType):
		return "unsupported_response_type"
	case s.options.Lenient:
	case repeated(ask), ask.Get("code_challenge") == "" && s.keeps(ChallengeRequired):
		return "invalid_request"
	case ask.Get("code_challenge") != "" && ask.Get("code_challenge_method") != "S256" && s.keeps(ChallengeMethod):
		return "invalid_request"
	case ask.Get("resource") == "" && s.keeps(ResourceRequired):
		return "invalid_target"
	case len(s.options.Scopes) > 0 && slices.ContainsFunc(strings.Fields(ask.Get("scope")), s.unknownScope):
		return "invalid_scope"
	}
	return ""
}

func (s *Server) unknownScope(scope string) bool { return !slices.Contains(s.options.Scopes, scope) }

// repeated reports whether a parameter occurs more than once. There may be several resources (RFC 8707, section 2).
func repeated(values url.Values) bool {
	for name, list := range values {
		if name != "resource" && len(list) > 1 {
			return true
		}
	}
	return false
}

// code makes a code for a client.
func (s *Server) code(c Client, ask url.Values) string {
	code := rand.Text()
	challenge := ask.Get("code_challenge")
	if challenge != "" && ask.Get("code_challenge_method") != "S256" {
		challenge = Challenge(challenge) // as that of a verifier that is the challenge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	bound(s.codes)
	s.codes[code] = grant{
		client: c.ID, redirect: ask.Get("redirect_uri"), challenge: challenge, resource: ask.Get("resource"),
		scope: cmp.Or(ask.Get("scope"), strings.Join(s.options.Scopes, " ")), family: code,
		expires: time.Now().Add(time.Minute),
	}
	return code
}

// redirect sends the user agent back to the client.
func (x *httpCall) redirect(target *url.URL, result url.Values) {
	query := target.Query()
	x.seen.Answer = make(map[string]any)
	for name := range result {
		query.Set(name, result.Get(name))
		x.seen.Answer[name] = result.Get(name)
	}
	target.RawQuery = query.Encode()
	x.w.Header().Set("Location", target.String())
	x.head(x.changed(http.StatusFound, nil))
	x.end()
}

// redirectsTo reports whether a URI is registered. Only the port of a loopback
// address may differ (OAuth 2.1, section 8.4.2).
func (s *Server) redirectsTo(c Client, used string) bool {
	same := s.options.Faults.SameRedirect
	if same == nil {
		same = SameRedirect
	}
	return len(c.Redirects) == 0 ||
		slices.ContainsFunc(c.Redirects, func(registered string) bool { return same(registered, used) })
}

// SameRedirect compares a redirect URI with a registered one: exactly, but for
// the port of a loopback address.
func SameRedirect(registered, used string) bool {
	if registered == used {
		return true
	}
	a, errA := url.Parse(registered)
	b, errB := url.Parse(used)
	if errA != nil || errB != nil || a.Hostname() != b.Hostname() || !transport.Loopback(a.Hostname()) {
		return false
	}
	a.Host, b.Host = a.Hostname(), b.Hostname()
	return a.String() == b.String()
}
