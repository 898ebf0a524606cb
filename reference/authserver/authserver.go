// Package authserver is a small OAuth 2.1 authorization server for clients and
// protected servers under test: it publishes its metadata, registers clients,
// grants every authorization without asking a user, and issues access tokens that
// are bound to a resource (basic/authorization#overview).
package authserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Options of an authorization server.
type Options struct {
	// Issuer is its identifier: a URL, which may have a path.
	Issuer string
	// Clients are registered beforehand.
	Clients []Client
	// NoRegistration offers no dynamic registration.
	NoRegistration bool
	// NoRefresh issues no refresh tokens.
	NoRefresh bool
	// TokenAuth is the only method of client authentication that the token endpoint
	// offers, one of those of [Methods]; "" offers all of them.
	TokenAuth string
	// Scopes are those that the server knows, and that a token has unless fewer are asked for. None: there are no
	// scopes.
	Scopes []string
	// Life of an access token; zero is an hour.
	Life time.Duration
	// Lenient accepts requests that lack a parameter, so that the rest of the flow can be judged as well. The
	// parameters that are given must still fit.
	Lenient bool
	// Metadata changes the metadata document before it is sent; it may be nil.
	Metadata func(document map[string]any)
	// Redirect changes the parameters with which an authorization comes back;
	// it may be nil.
	Redirect func(result url.Values)
	// NotFound, unless nil, answers requests for addresses that the server does not have, in place of an error in JSON.
	NotFound func(path string) Page
	// SignedTokens are access tokens that name their audience: JWTs (RFC 9068). Others mean nothing to a client.
	SignedTokens bool
	// Faults change what the server does for others to find.
	Faults Faults
	// Log, unless nil, records every call, without secrets.
	Log *wire.Log
	// Seen, unless nil, is told of every call as it ends.
	Seen func(Call)
}

// Page is an answer that is none of OAuth.
type Page struct {
	Status int
	Header http.Header
	Body   string
}

// Faults are ways in which a server breaks its duties. The zero value breaks none.
type Faults struct {
	// Ignored are the rules that the server does not keep.
	Ignored []Rule
	// SameRedirect compares a redirect URI with a registered one; nil is [SameRedirect].
	SameRedirect func(registered, used string) bool
	// Deny, unless nil, returns the error code with which a call is refused, or "".
	Deny func(Call) string
	// Answer, unless nil, changes an answer before it is sent, and returns its status. The body of a redirect is nil.
	Answer func(c Call, status int, header http.Header, body map[string]any) int
}

// Rule is a rule that a server keeps.
type Rule string

// The rules.
const (
	KnownClient       Rule = "no redirect for an unknown client"
	KnownRedirect     Rule = "no redirect to a URI that is not registered"
	SomeRedirect      Rule = "a client registers a redirect URI"
	SafeRedirects     Rule = "registered redirect URIs are https or loopback"
	KnownResponseType Rule = "the response type is code"
	ChallengeRequired Rule = "a code challenge is required"
	ChallengeMethod   Rule = "the challenge method is S256"
	VerifierRequired  Rule = "a code verifier is required"
	VerifierMatches   Rule = "the code verifier matches the challenge"
	CodeOnce          Rule = "a code is good for one use"
	CodeOfClient      Rule = "a code is good for its client"
	SecretRequired    Rule = "a client that has a secret sends it"
	SecretMatches     Rule = "the secret of a client is the right one"
	RefreshRotated    Rule = "a refresh token is replaced at each use"
	RefreshOnce       Rule = "a refresh token is good for one use"
	RefreshOfClient   Rule = "a refresh token is good for its client"
	ResourceRequired  Rule = "a resource is named"
	TokenOfResource   Rule = "an access token is for the resource that was asked for"
)

// Client is a registered client.
type Client struct {
	ID     string
	Secret string // "" for a public client
	// Redirects are the redirect URIs; none leaves them open.
	Redirects []string
}

// The methods of client authentication at the token endpoint (RFC 7591, section 2).
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
)

// Methods are those that an ordinary server offers.
func Methods() []string { return []string{AuthNone, AuthBasic, AuthPost} }

// Step of the flow that a request belongs to.
type Step string

// The steps. Other is a request to an address that the server does not have.
const (
	Metadata      Step = "metadata"
	Registration  Step = "registration"
	Authorization Step = "authorization"
	Token         Step = "token"
	Other         Step = "other"
)

// Call is what a client asked of the server and what it got. It holds secrets.
type Call struct {
	Step   Step
	Method string
	Path   string
	// Values are the parameters of the query or of the form.
	Values url.Values
	// Body is the JSON body of a registration.
	Body map[string]any
	// Client is the id that the client identified itself with, or "".
	Client string
	// Auth lists the ways in which a token request authenticates the client:
	// [AuthBasic], [AuthPost] or "client_assertion".
	Auth []string
	// InQuery says that the query of a token request holds its parameters.
	InQuery bool
	Status  int
	// Answer is the JSON body of the response, or the parameters of a redirect.
	Answer map[string]any
	// Event is the head of the request in the log; nil without one.
	Event *wire.Event
	At    time.Time
}

// Paths of the endpoints, below that of the issuer. They are not the defaults of a
// framework: a client finds them only in the metadata.
const (
	pathRegister  = "/clients/enrol"
	pathAuthorize = "/consent/ask"
	pathToken     = "/consent/redeem" //nolint:gosec // a path
	pathKeys      = "/consent/keys"
)

// WellKnown stands before the path of an issuer in the address of its metadata
// (RFC 8414, section 3.1).
const WellKnown = "/.well-known/oauth-authorization-server"

// Bounds of what a hostile client can make the server keep.
const (
	maxClients = 1000
	maxGrants  = 10_000
	maxBody    = 64 << 10
)

const defaultLife = time.Hour

// Server is an authorization server. It is safe for concurrent use.
type Server struct {
	options Options
	issuer  *url.URL

	mu      sync.Mutex
	clients map[string]Client
	codes   map[string]grant
	tokens  map[string]grant // by access token
	refresh map[string]grant
	counts  map[Step]int
	key     jose.JSONWebKey // that verifies signed tokens
	signer  jose.Signer     // nil without signed tokens
}

// grant is what a code or a token stands for.
type grant struct {
	client    string
	redirect  string
	challenge string
	resource  string
	scope     string
	family    string // of all that comes from one code
	used      bool   // a code, or a refresh token
	expires   time.Time
	revoked   bool
}

// New returns an authorization server. The issuer has to be a URL.
func New(o Options) (*Server, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the issuer %q is not a URL with a host", o.Issuer)
	}
	if o.Life <= 0 {
		o.Life = defaultLife
	}
	s := &Server{
		options: o, issuer: u, clients: make(map[string]Client), codes: make(map[string]grant),
		tokens:  make(map[string]grant),
		refresh: make(map[string]grant), counts: make(map[Step]int),
	}
	for _, c := range o.Clients {
		s.clients[c.ID] = c
	}
	if o.SignedTokens {
		if s.key, s.signer, err = signingKey(); err != nil {
			return nil, fmt.Errorf("make the key of signed tokens: %w", err)
		}
	}
	return s, nil
}

// keeps reports whether the server keeps a rule.
func (s *Server) keeps(r Rule) bool { return !slices.Contains(s.options.Faults.Ignored, r) }

// Issuer returns the identifier of the server.
func (s *Server) Issuer() string { return s.options.Issuer }

// MetadataPath is the path of the metadata on the issuer's host.
func (s *Server) MetadataPath() string { return WellKnown + strings.TrimSuffix(s.issuer.Path, "/") }

func (s *Server) endpoint(path string) string {
	return strings.TrimSuffix(s.options.Issuer, "/") + path
}

// Issue returns an access token for a resource without any flow.
func (s *Server) Issue(resource string, life time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := rand.Text()
	s.tokens[token] = grant{resource: resource, scope: strings.Join(s.options.Scopes, " "),
		expires: time.Now().Add(life)}
	return token
}

// Revoke ends the life of all access tokens that were issued so far.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, g := range s.tokens {
		g.revoked = true
		s.tokens[token] = g
	}
}

// Issued reports whether a text is an access token of this server, good or not.
func (s *Server) Issued(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.tokens[token]
	return ok
}

// Good reports whether a token is one of this server that has not expired, for
// whatever resource it is.
func (s *Server) Good(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[token].good()
}

// User returns the user whom a token stands for: each registered client has one of its own, as nobody logs in here.
func (s *Server) User(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[token].client
}

// scope returns what a token allows.
func (s *Server) scope(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens[token].scope
}

func (g grant) good() bool { return !g.revoked && time.Now().Before(g.expires) }

// Valid reports whether a token is one of this server, for a resource, and has
// not expired. A token that was asked for without naming a resource is good for
// all of them.
func (s *Server) Valid(token, resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.tokens[token]
	return ok && g.good() && (g.resource == "" || Same(g.resource, resource))
}

// Same compares resource identifiers without regard to the case of scheme and
// host and to a final slash (basic/authorization#canonical-server-uri).
func Same(a, b string) bool { return normal(a) == normal(b) }

func normal(resource string) string {
	u, err := url.Parse(resource)
	if err != nil {
		return resource
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.Fragment = ""
	return u.String()
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &httpCall{server: s, w: w, r: r, seen: Call{Method: r.Method, Path: r.URL.Path, Values: r.URL.Query(),
		At: time.Now()}}
	base := strings.TrimSuffix(s.issuer.Path, "/")
	serve := x.notFound
	x.seen.Step = Other
	switch {
	case r.URL.Path == s.MetadataPath() && r.Method == http.MethodGet:
		x.seen.Step, serve = Metadata, x.metadata
	case r.URL.Path == base+pathRegister && r.Method == http.MethodPost && !s.options.NoRegistration:
		x.seen.Step, serve = Registration, x.register
	case r.URL.Path == base+pathAuthorize && r.Method == http.MethodGet:
		x.seen.Step, serve = Authorization, x.authorize
	case r.URL.Path == base+pathToken:
		x.seen.Step, serve = Token, x.token
	case r.URL.Path == base+pathKeys && s.signer != nil && r.Method == http.MethodGet:
		serve = x.keys
	}
	err := x.read()
	x.record()
	switch code := x.denied(); {
	case err != nil && x.seen.Step == Registration:
		x.refuse(http.StatusBadRequest, "invalid_client_metadata", err.Error())
	case err != nil:
		x.refuse(http.StatusBadRequest, "invalid_request", err.Error())
	case code != "":
		x.refuse(http.StatusBadRequest, code, "the request is not accepted")
	default:
		serve()
	}
	if s.options.Seen != nil {
		s.options.Seen(x.seen)
	}
}

// httpCall is one call while it is served.
type httpCall struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	seen   Call
	secret string // that the client gave
	stream string
}

// denied returns the error code with which a faulty server refuses the call, or "".
func (x *httpCall) denied() string {
	if x.server.options.Faults.Deny == nil {
		return ""
	}
	return x.server.options.Faults.Deny(x.seen)
}

// metadata serves the metadata (RFC 8414, section 3.2).
func (x *httpCall) metadata() {
	s := x.server
	document := map[string]any{
		"issuer":                                s.options.Issuer,
		"authorization_endpoint":                s.endpoint(pathAuthorize),
		"token_endpoint":                        s.endpoint(pathToken),
		"response_types_supported":              []any{"code"},
		"grant_types_supported":                 []any{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":      []any{"S256"},
		"token_endpoint_auth_methods_supported": s.methods(),
		// RFC 9207, section 3.
		"authorization_response_iss_parameter_supported": true,
	}
	if s.signer != nil {
		document["jwks_uri"] = s.endpoint(pathKeys)
	}
	if !s.options.NoRegistration {
		document["registration_endpoint"] = s.endpoint(pathRegister)
	}
	if len(s.options.Scopes) > 0 {
		document["scopes_supported"] = s.options.Scopes
	}
	if s.options.Metadata != nil {
		s.options.Metadata(document)
	}
	x.answer(http.StatusOK, document)
}

func (s *Server) methods() []string {
	if s.options.TokenAuth != "" {
		return []string{s.options.TokenAuth}
	}
	return Methods()
}

// register registers a client (RFC 7591, section 3.1). If the method that it asks for
// is not offered, it gets the first that is.
func (x *httpCall) register() {
	s := x.server
	redirects, ok := texts(x.seen.Body["redirect_uris"])
	switch {
	case !ok, len(redirects) == 0 && s.keeps(SomeRedirect):
		x.refuse(http.StatusBadRequest, "invalid_redirect_uri", "redirect_uris is not an array of URIs")
		return
	case !s.options.Lenient && s.keeps(SafeRedirects) && slices.ContainsFunc(redirects, unsafeRedirect):
		x.refuse(http.StatusBadRequest, "invalid_redirect_uri",
			"a redirect URI has to be one of https, of loopback, or of a scheme with a period, and has no fragment")
		return
	}
	c := Client{ID: "client-" + rand.Text(), Redirects: redirects}
	method, _ := x.seen.Body["token_endpoint_auth_method"].(string)
	if offered := s.methods(); !slices.Contains(offered, method) {
		method = offered[0]
	}
	if method != AuthNone {
		c.Secret = rand.Text()
	}
	s.mu.Lock()
	full := len(s.clients) >= maxClients
	if !full {
		s.clients[c.ID] = c
	}
	s.mu.Unlock()
	if full {
		x.refuse(http.StatusServiceUnavailable, "temporarily_unavailable", "too many clients")
		return
	}
	answer := make(map[string]any)
	for name, v := range x.seen.Body {
		answer[name] = v
	}
	answer["client_id"], answer["client_id_issued_at"] = c.ID, time.Now().Unix()
	answer["token_endpoint_auth_method"] = method
	if c.Secret != "" {
		answer["client_secret"], answer["client_secret_expires_at"] = c.Secret, 0
	}
	x.seen.Client = c.ID
	x.answer(http.StatusCreated, answer)
}

func texts(v any) ([]string, bool) {
	list, ok := v.([]any)
	var all []string
	for _, item := range list {
		text, is := item.(string)
		ok = ok && is
		all = append(all, text)
	}
	return all, ok
}

// unsafeRedirect reports whether a redirect URI is none that a client may register (RFC 7591, section 5, OAuth 2.1,
// section 2.3).
func unsafeRedirect(raw string) bool {
	u, err := url.Parse(raw)
	switch {
	case err != nil, !u.IsAbs(), strings.Contains(raw, "#"):
		return true
	case u.Scheme == "https":
		return u.Host == ""
	case u.Scheme == "http":
		return !transport.Loopback(u.Hostname())
	}
	return !strings.Contains(u.Scheme, ".") // private-use
}

// bound forgets a grant when there are too many.
func bound(grants map[string]grant) {
	if len(grants) < maxGrants {
		return
	}
	for key := range grants {
		delete(grants, key)
		return
	}
}

func (x *httpCall) notFound() {
	if x.server.options.NotFound != nil {
		x.show(x.server.options.NotFound(x.r.URL.Path))
		return
	}
	x.refuse(http.StatusNotFound, "not_found", "there is nothing at this address")
}

// refuse answers with an error (OAuth 2.1, section 3.2.4).
func (x *httpCall) refuse(status int, code, text string) {
	x.answer(status, map[string]any{"error": code, "error_description": text})
}

func (x *httpCall) answer(status int, body map[string]any) {
	if x.seen.Step == Token || x.seen.Step == Registration {
		x.w.Header().Set("Cache-Control", "no-store")
	}
	x.w.Header().Set("Content-Type", "application/json")
	status = x.changed(status, body)
	x.seen.Answer = body
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	x.head(status)
	_, _ = x.w.Write(raw) // the client may be gone
	x.recordBody(wire.Server, body)
	x.end()
}

// show answers with a page.
func (x *httpCall) show(p Page) {
	maps.Copy(x.w.Header(), p.Header)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(p.Body)))
	x.head(p.Status)
	_, _ = io.WriteString(x.w, p.Body) // the client may be gone
	x.append(wire.Event{Kind: wire.KindBody, From: wire.Server, Raw: []byte(p.Body)})
	x.end()
}

// changed lets a faulty server change an answer.
func (x *httpCall) changed(status int, body map[string]any) int {
	if x.server.options.Faults.Answer == nil {
		return status
	}
	return x.server.options.Faults.Answer(x.seen, status, x.w.Header(), body)
}
