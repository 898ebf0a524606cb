// Package authserver is a small OAuth 2.1 authorization server for clients and
// protected servers under test: it publishes its metadata, registers clients,
// grants every authorization without asking a user, and issues access tokens that
// are bound to a resource (basic/authorization#overview).
package authserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	// KeepRefresh issues no new refresh token for an old one, which stays good.
	KeepRefresh bool
	// TokenAuth is the only method of client authentication that the token endpoint
	// offers, one of those of [Methods]; "" offers all of them.
	TokenAuth string
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
	// Log, unless nil, records every call, without secrets.
	Log *wire.Log
	// Seen, unless nil, is told of every call as it ends.
	Seen func(Call)
}

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
}

// grant is what a code or a token stands for.
type grant struct {
	client    string
	redirect  string
	challenge string
	resource  string
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
	return s, nil
}

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
	s.tokens[token] = grant{resource: resource, expires: time.Now().Add(life)}
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
	}
	if err := x.read(); err != nil {
		x.record()
		x.refuse(http.StatusBadRequest, "invalid_request", err.Error())
	} else {
		x.record()
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
	}
	if !s.options.NoRegistration {
		document["registration_endpoint"] = s.endpoint(pathRegister)
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
	redirects, ok := texts(x.seen.Body["redirect_uris"])
	if !ok || len(redirects) == 0 {
		x.refuse(http.StatusBadRequest, "invalid_redirect_uri", "redirect_uris is not an array of URIs")
		return
	}
	c := Client{ID: "client-" + rand.Text(), Redirects: redirects}
	s := x.server
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
	answer["client_id"], answer["client_id_issued_at"], answer["token_endpoint_auth_method"] = c.ID, time.Now().Unix(), method
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
	case !known:
		x.refuse(http.StatusBadRequest, "invalid_client", "the client is not known")
		return
	case err != nil || !target.IsAbs() || !c.redirectsTo(target):
		x.refuse(http.StatusBadRequest, "invalid_request", "the redirect_uri is not one of the client's")
		return
	}
	result := make(url.Values)
	if state := ask.Get("state"); state != "" {
		result.Set("state", state)
	}
	errorCode := ""
	switch {
	case ask.Get("response_type") != "code":
		errorCode = "unsupported_response_type"
	case s.options.Lenient:
	case ask.Get("code_challenge") == "" || ask.Get("code_challenge_method") != "S256":
		errorCode = "invalid_request"
	case ask.Get("resource") == "":
		errorCode = "invalid_target"
	}
	if errorCode != "" {
		result.Set("error", errorCode)
	} else {
		code := rand.Text()
		s.mu.Lock()
		bound(s.codes)
		s.codes[code] = grant{
			client: c.ID, redirect: ask.Get("redirect_uri"), challenge: ask.Get("code_challenge"),
			resource: ask.Get("resource"),
			expires:  time.Now().Add(time.Minute),
		}
		s.mu.Unlock()
		result.Set("code", code)
	}
	if s.options.Redirect != nil {
		s.options.Redirect(result)
	}
	query := target.Query()
	x.seen.Answer = make(map[string]any)
	for name := range result {
		query.Set(name, result.Get(name))
		x.seen.Answer[name] = result.Get(name)
	}
	target.RawQuery = query.Encode()
	x.w.Header().Set("Location", target.String())
	x.head(http.StatusFound)
	x.end()
}

// redirectsTo reports whether a URI is registered. Only the port of a loopback
// address may differ (OAuth 2.1, section 8.4.2).
func (c Client) redirectsTo(u *url.URL) bool {
	return len(c.Redirects) == 0 || slices.ContainsFunc(c.Redirects, func(registered string) bool {
		return SameRedirect(registered, u.String())
	})
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

// token redeems a code or a refresh token.
func (x *httpCall) token() {
	s, form := x.server, x.seen.Values
	if x.r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		x.refuse(http.StatusMethodNotAllowed, "invalid_request", "a token request is a POST")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[x.seen.Client]
	if !known || c.Secret != "" && c.Secret != x.secret {
		x.refuse(http.StatusUnauthorized, "invalid_client", "the client is not known, or its secret is wrong")
		return
	}
	var g grant
	errorCode, description := "", ""
	switch form.Get("grant_type") {
	case "authorization_code":
		g, errorCode, description = s.redeem(form)
	case "refresh_token":
		old := form.Get("refresh_token")
		var ok bool
		if g, ok = s.refresh[old]; !ok {
			errorCode, description = "invalid_grant", "the refresh token is not known"
		}
		if !s.options.KeepRefresh {
			delete(s.refresh, old) // a public client gets a new one at each use (basic/authorization#token-theft)
		}
	default:
		errorCode, description = "unsupported_grant_type", "the grant type is not supported"
	}
	resource := form.Get("resource")
	switch {
	case errorCode != "":
	case g.client != c.ID:
		errorCode, description = "invalid_grant", "the grant is another client's"
	case resource == "" && !s.options.Lenient, resource != "" && g.resource != "" && !Same(resource, g.resource):
		errorCode, description = "invalid_target", "the resource is missing, or not the one that the authorization is for"
	}
	if errorCode != "" {
		x.refuse(http.StatusBadRequest, errorCode, description)
		return
	}
	if g.resource == "" {
		g.resource = resource
	}
	x.issue(g)
}

// redeem returns what a code stands for. A code is good for one use.
func (s *Server) redeem(form url.Values) (g grant, errorCode, description string) {
	code := form.Get("code")
	g, ok := s.codes[code]
	delete(s.codes, code)
	verifier := form.Get("code_verifier")
	switch {
	case !ok || time.Now().After(g.expires):
		return g, "invalid_grant", "the code is not known, was used already, or has expired"
	case g.redirect != "" && form.Get("redirect_uri") != "" && g.redirect != form.Get("redirect_uri"):
		return g, "invalid_grant", "the redirect_uri is not that of the authorization request"
	case s.options.Lenient:
	case g.challenge != Challenge(verifier):
		return g, "invalid_grant", "the code_verifier does not match the code_challenge"
	}
	return g, "", ""
}

// Challenge returns the S256 challenge of a PKCE verifier.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// issue answers with an access token. The lock is held.
func (x *httpCall) issue(g grant) {
	s := x.server
	token := rand.Text()
	g.expires = time.Now().Add(s.options.Life)
	bound(s.tokens)
	s.tokens[token] = g
	answer := map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(s.options.Life / time.Second),
	}
	if !s.options.NoRefresh && (!s.options.KeepRefresh || x.seen.Values.Get("refresh_token") == "") {
		next := rand.Text()
		bound(s.refresh)
		s.refresh[next] = g
		answer["refresh_token"] = next
	}
	x.w.Header().Set("Cache-Control", "no-store")
	x.answer(http.StatusOK, answer)
}

func (x *httpCall) notFound() {
	x.refuse(http.StatusNotFound, "not_found", "there is nothing at this address")
}

// refuse answers with an error (OAuth 2.1, section 3.2.4).
func (x *httpCall) refuse(status int, code, text string) {
	x.answer(status, map[string]any{"error": code, "error_description": text})
}

func (x *httpCall) answer(status int, body map[string]any) {
	x.seen.Answer = body
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":"server_error"}`)
	}
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
	x.head(status)
	_, _ = x.w.Write(raw) // the client may be gone
	x.recordBody(wire.Server, body)
	x.end()
}
