package server

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Protection makes a server a protected resource in the sense of OAuth 2.1
// (basic/authorization#roles): over HTTP it serves only requests with an access
// token, and says where to get one.
type Protection struct {
	// Resource is the canonical URI of the server; "" is the address at which
	// a request has reached it.
	Resource string
	// Issuers are the authorization servers; none is the server's own origin.
	Issuers []string
	// Verify says why a token is not valid for a request to a resource, or returns
	// nil.
	Verify func(token, resource string, r *http.Request) *Denial
	// User returns the user whom a valid token stands for. A session serves the user alone who has begun it
	// (basic/security_best_practices#session-hijacking). Nil: users are not told apart.
	User func(token string) string
	// Allows reports whether the scope of a valid token allows a request over Streamable HTTP; it may be nil.
	Allows func(token, method string) bool
	// MetadataPath is where the resource metadata are; "" is the well-known
	// address that belongs to the resource (RFC 9728, section 3.1).
	MetadataPath string
	// Challenge changes the WWW-Authenticate header of a refusal, one value
	// for each line; it may be nil.
	Challenge func(metadata, code string) []string
	// Metadata changes the resource metadata; it may be nil.
	Metadata func(document map[string]any)
	// Elsewhere serves requests to other paths; it may be nil.
	Elsewhere http.Handler
}

// Denial says why a request is not served.
type Denial struct {
	Status int
	Code   string // invalid_token, insufficient_scope … (OAuth 2.1, section 5.3.2)
	Text   string
}

// InvalidToken is the denial of a token that is not valid.
var InvalidToken = &Denial{http.StatusUnauthorized, "invalid_token",
	"the access token is not known, has expired, or is for another resource"}

// InsufficientScope is the denial of a token whose scope does not suffice.
var InsufficientScope = &Denial{http.StatusForbidden, "insufficient_scope", "the access token does not allow this"}

// bearerToken is the form of an access token in a header (OAuth 2.1, section 5.1.1).
var bearerToken = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

func (x *httpCall) origin() string {
	if x.r.TLS != nil {
		return "https://" + x.r.Host
	}
	return "http://" + x.r.Host
}

// resource returns the canonical URI of the server
// (basic/authorization#canonical-server-uri).
func (x *httpCall) resource(p *Protection) string {
	if p.Resource != "" {
		return p.Resource
	}
	path := PathMCP
	if x.legacyPath() {
		path = PathSSE
	}
	return strings.ToLower(x.origin()) + path
}

func (x *httpCall) legacyPath() bool {
	return slices.Contains([]string{PathSSE, PathMessages, transport.WellKnownResource + PathSSE}, x.r.URL.Path)
}

// serveElsewhere serves the resource metadata and other addresses that are not
// endpoints of the protocol. They are recorded in a log of their own.
func (x *httpCall) serveElsewhere() bool {
	p := x.http.server.options.HTTP.Protection
	wellKnown := strings.HasPrefix(x.r.URL.Path, "/.well-known/")
	switch {
	case p == nil && !wellKnown, slices.Contains([]string{PathMCP, PathSSE, PathMessages}, x.r.URL.Path):
		return false
	case p != nil && x.r.Method == http.MethodGet && slices.Contains(p.metadataPaths(), x.r.URL.Path):
		x.serveResourceMetadata(p)
	case p != nil && p.Elsewhere != nil:
		p.Elsewhere.ServeHTTP(x.w, x.r)
	default:
		x.apart()
		x.begin()
		x.reply(NotFound, http.StatusNotFound, http.Header{"Content-Type": {"text/plain"}}, []byte("no such path"))
	}
	return true
}

func (p *Protection) metadataPaths() []string {
	if p.MetadataPath != "" {
		return []string{p.MetadataPath}
	}
	return []string{transport.WellKnownResource, transport.WellKnownResource + PathMCP,
		transport.WellKnownResource + PathSSE}
}

// apart records the exchange in the log of the authorization flow.
func (x *httpCall) apart() {
	h := x.http
	h.mu.Lock()
	x.recorder = h.oauth
	h.mu.Unlock()
	if x.recorder != nil {
		return
	}
	x.recorder = h.newRecorder(transport.NameOAuth, false)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.oauth == nil {
		h.oauth = x.recorder
	}
}

// serveResourceMetadata serves the metadata (RFC 9728, section 3.2).
func (x *httpCall) serveResourceMetadata(p *Protection) {
	x.apart()
	x.begin()
	if x.refuseForeign() {
		return
	}
	issuers := make([]any, 0, len(p.Issuers))
	for _, issuer := range p.Issuers {
		issuers = append(issuers, issuer)
	}
	if len(issuers) == 0 {
		issuers = []any{strings.ToLower(x.origin())}
	}
	document := map[string]any{
		"resource": x.resource(p), "authorization_servers": issuers, "bearer_methods_supported": []any{"header"},
	}
	if p.Metadata != nil {
		p.Metadata(document)
	}
	x.reply(ResourceMetadata, http.StatusOK, http.Header{"Content-Type": {typeJSON}}, jsonOf(document))
}

// unauthorized refuses a request without a valid access token (basic/authorization#token-handling), or with one whose
// scope does not allow the message that it carries.
func (x *httpCall) unauthorized(m *wire.Message) (done bool) {
	p := x.http.server.options.HTTP.Protection
	if p == nil {
		return false
	}
	header := x.r.Header.Values("Authorization")
	scheme, token, _ := strings.Cut(strings.Join(header, ", "), " ")
	token = strings.TrimLeft(token, " ") // 1*SP: OAuth 2.1, section 5.1.1
	switch {
	case len(header) == 0 || !strings.EqualFold(scheme, "Bearer"):
		// A request without authentication only learns where the metadata is
		// (OAuth 2.1, section 5.3.2).
		return x.deny(p, Unauthorized, &Denial{http.StatusUnauthorized, "", "an access token is needed"})
	case len(header) > 1 || !bearerToken.MatchString(token):
		return x.deny(p, MalformedToken, &Denial{http.StatusBadRequest, "invalid_request",
			"the Authorization header does not hold an access token"})
	}
	d := p.Verify(token, x.resource(p), x.r)
	if d == nil && p.Allows != nil && m != nil && !p.Allows(token, m.Method) {
		d = InsufficientScope
	}
	switch {
	case d == nil:
		if p.User != nil {
			x.user = p.User(token)
		}
		return false
	case d.Status == http.StatusForbidden:
		return x.deny(p, Forbidden, d)
	}
	return x.deny(p, Unauthorized, d)
}

func (x *httpCall) deny(p *Protection, situation Situation, d *Denial) bool {
	path := p.MetadataPath
	if path == "" {
		path = transport.WellKnownResource + PathMCP
		if x.legacyPath() {
			path = transport.WellKnownResource + PathSSE
		}
	}
	metadata := x.origin() + path
	parameters := `resource_metadata="` + metadata + `"`
	if d.Code != "" {
		parameters = `error="` + d.Code + `", error_description="` + d.Text + `", ` + parameters
	}
	challenge := []string{"Bearer " + parameters}
	if p.Challenge != nil {
		challenge = p.Challenge(metadata, d.Code)
	}
	return x.refuseWith(situation, d.Status, &wire.Error{Code: InvalidRequest, Message: d.Text},
		http.Header{"Www-Authenticate": challenge})
}
