package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Authorizer obtains access tokens for a protected server, as the page
// basic/authorization says. It requests the authorization URL itself, and follows redirects. A user is asked only if
// they do not lead back to the client.
type Authorizer struct {
	// ID and Secret of a client that is registered already; they are used if the
	// authorization server offers no registration, or if Registered is set.
	ID, Secret string
	Registered bool
	// Scope is what to ask for, separated by blanks. "" stands for what the challenge names, or else the resource
	// metadata (RFC 9728, section 2), or else the authorization server.
	Scope string
	// User is who has to log in, if not just anybody.
	User string
	// Consent, unless nil, asks a user who has to agree.
	Consent *Consent
	// Transport of the requests; nil is one that fetches only what a server may name: see
	// [transport.Endpoint.Document].
	Transport http.RoundTripper
	// From is how the protected server is reached; its URL is that of [Authorizer.Token].
	From transport.Endpoint
	// Log, unless nil, returns the log for the next request. It records none that have a Transport of their own.
	Log func() *wire.Log
	// Learn, unless nil, is told of each secret that the flow makes or gets, before it is used.
	Learn func(secrets ...string)

	server  string // URL of the protected server
	refresh string // the last refresh token
	grant   grant
	steps   []FlowStep
	// Findings of the last flow.
	found  authorizationServer
	scopes []string // that the resource metadata name
	needed string   // scope that the challenge names
}

// Access is an access token.
type Access struct {
	Token   string
	Expires time.Time // zero if the authorization server does not say
	Scope   string    // "" if the authorization server does not say
}

// grant is what refreshing the last token needs.
type grant struct {
	client, secret, endpoint, resource string
	basic                              bool // the secret goes into the header
}

// The methods of client authentication at the token endpoint that the client knows
// (RFC 7591, section 2).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

const maxDocument = 1 << 20

// authorizationServer is the metadata of one (RFC 8414, section 2).
type authorizationServer struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"code_challenge_methods_supported"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
}

// tokenAuth returns the method of client authentication to ask for. Without a list,
// the server offers client_secret_basic (RFC 8414, section 2); that a public client
// needs none goes without saying.
func (s authorizationServer) tokenAuth() string {
	for _, method := range []string{authNone, authBasic, authPost} {
		if len(s.TokenAuth) == 0 || slices.Contains(s.TokenAuth, method) {
			return method
		}
	}
	return authNone
}

// Token returns an access token for the server at a URL that has refused a request
// with the given challenges. It refreshes the last one if that is possible.
func (a *Authorizer) Token(ctx context.Context, endpoint string, challenges []string) (Access, error) {
	a.server, a.steps = endpoint, nil
	if a.refresh != "" {
		access, err := a.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.refresh}})
		if err == nil {
			return access, nil
		}
		a.refresh = ""
	}
	a.needed = transport.Challenges(challenges).Parameters()["scope"]
	resource, issuers, err := a.resource(ctx, endpoint, challenges)
	if err != nil {
		return Access{}, err
	}
	var errs error
	for _, issuer := range issuers {
		// The client may use any of them (RFC 9728, section 7.6).
		s, err := a.discover(ctx, issuer)
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		a.found, a.grant = s, grant{}
		return a.authorize(ctx, resource)
	}
	return Access{}, fmt.Errorf("no authorization server can be used: %w", errs)
}

// Again returns a further token of the authorization server that the last flow has found, for the same client. It asks
// no user. A resource that is not "" stands in place of the server, a scope in place of that of [Authorizer].
func (a *Authorizer) Again(ctx context.Context, resource, scope string) (Access, error) {
	if a.found.Token == "" {
		return Access{}, errors.New("there was no login")
	}
	b := *a
	b.Registered = true
	b.Consent, b.refresh, b.steps = nil, "", nil
	b.Scope = cmp.Or(scope, a.Scope)
	return b.authorize(ctx, cmp.Or(resource, a.grant.resource))
}

// scope returns what to ask for, or "".
func (a *Authorizer) scope() string { return cmp.Or(a.Scope, a.needed, strings.Join(a.scopes, " ")) }

// Scopes returns those that the resource metadata of the last flow name, or else the authorization server.
func (a *Authorizer) Scopes() []string {
	if len(a.scopes) > 0 {
		return a.scopes
	}
	return a.found.Scopes
}

// resource returns the identifier of the server and its authorization servers
// (RFC 9728, sections 3 and 5).
func (a *Authorizer) resource(ctx context.Context, endpoint string,
	challenges []string) (resource string, issuers []string, err error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", nil, err
	}
	root := u.Scheme + "://" + u.Host + transport.WellKnownResource
	locations := []string{root + strings.TrimSuffix(u.Path, "/"), root}
	if named := transport.Challenges(challenges).Parameters()["resource_metadata"]; named != "" {
		locations = []string{named}
	}
	var document struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	for _, at := range locations {
		if err = a.get(ctx, OfServer, at, &document); err == nil {
			break
		}
	}
	if err != nil {
		return "", nil, unpublished(OfServer, ids.AuthServerResourceMetadata, "resource metadata", err)
	}
	named, err := url.Parse(document.Resource)
	if err != nil || !covers(named, u) {
		return "", nil, broken(OfServer, ids.AuthServerMetadataResource,
			fmt.Errorf("the resource metadata are for %s", wire.Quote(document.Resource, 100)))
	}
	a.scopes = document.Scopes
	named.Scheme, named.Host = strings.ToLower(named.Scheme), strings.ToLower(named.Host)
	if len(document.Servers) == 0 {
		return "", nil, broken(OfServer, ids.AuthServerMetadataAuthorizationServers,
			errors.New("the resource metadata name no authorization server"))
	}
	return named.String(), document.Servers, nil
}

// covers reports whether a resource identifier identifies the server at a URL: it is
// the same except for the case of scheme and host, or has a shorter path.
func covers(resource, endpoint *url.URL) bool {
	path := strings.TrimSuffix(resource.Path, "/")
	return strings.EqualFold(resource.Scheme, endpoint.Scheme) && strings.EqualFold(resource.Host, endpoint.Host) &&
		(strings.TrimSuffix(endpoint.Path, "/") == path || strings.HasPrefix(endpoint.Path, path+"/"))
}

// discover returns the metadata of an authorization server (RFC 8414, section 3).
func (a *Authorizer) discover(ctx context.Context, issuer string) (authorizationServer, error) {
	var s authorizationServer
	u, err := url.Parse(issuer)
	if err != nil {
		return s, err
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host,
		Path: "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")}
	if err := a.get(ctx, Undecided, at.String(), &s); err != nil {
		return s, unpublished(OfAuthorizationServer, ids.AuthAsMetadata, "metadata of the authorization server", err)
	}
	switch {
	case s.Issuer != issuer:
		return s, broken(OfAuthorizationServer, ids.AuthAsMetadata, fmt.Errorf(
			"the metadata of the authorization server %s belong to %s", wire.Quote(issuer, 100),
			wire.Quote(s.Issuer, 100)))
	case !slices.Contains(s.Methods, "S256"):
		// OAuth 2.1, section 7.5.2, recommends this list, and allows another way to tell of PKCE.
		return s, undecided(string(OfAuthorizationServer), "mcpconform, which insists on this list",
			"look whether it supports PKCE with S256, and list that in code_challenge_methods_supported", fmt.Errorf(
				"the metadata of the authorization server %s do not list S256 for PKCE", wire.Quote(issuer, 100)))
	}
	return s, nil
}

// authorize goes through the authorization code flow.
func (a *Authorizer) authorize(ctx context.Context, resource string) (Access, error) {
	s := a.found
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	back, err := a.Consent.listen(state)
	if err != nil {
		return Access{}, err
	}
	defer back.close()
	if a.grant.client == "" { // the client is not that of a login before
		a.grant = grant{client: a.ID, secret: a.Secret, basic: !slices.Contains(s.TokenAuth, authPost)}
	}
	a.grant.endpoint, a.grant.resource = s.Token, resource
	if s.Registration != "" && !a.Registered {
		if err := a.register(ctx, back.uri); err != nil {
			return Access{}, err
		}
	}
	if a.grant.client == "" {
		return Access{}, &DutyError{
			Duty: OfNobody, Advice: "register a client by hand and give its id (--client-id)",
			Err: errors.New("the authorization server offers no registration, and no client id is configured"),
		}
	}
	a.learn(verifier, state, a.grant.secret)
	digest := sha256.Sum256([]byte(verifier))
	ask := url.Values{
		"response_type": {"code"}, "client_id": {a.grant.client}, "redirect_uri": {back.uri}, "state": {state},
		"resource":       {resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(digest[:])}, "code_challenge_method": {"S256"},
	}
	if scope := a.scope(); scope != "" {
		ask.Set("scope", scope)
	}
	separator := "?"
	if strings.Contains(s.Authorization, "?") {
		separator = "&"
	}
	result, err := a.granted(ctx, s.Authorization+separator+ask.Encode(), back, state)
	if err != nil {
		return Access{}, err
	}
	return a.redeem(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {result.Get("code")}, "redirect_uri": {back.uri},
		"code_verifier": {verifier},
	})
}

// register registers the client (RFC 7591, section 3). The server may decide on another
// method of client authentication than the one that is asked for.
func (a *Authorizer) register(ctx context.Context, redirect string) error {
	var answer struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	method := a.found.tokenAuth()
	request := map[string]any{
		"client_name": "mcpconform reference client", "redirect_uris": []string{redirect},
		"token_endpoint_auth_method": method,
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
	}
	if scope := a.scope(); scope != "" {
		request["scope"] = scope
	}
	err := a.object(ctx, query{named: OfAuthorizationServer, method: http.MethodPost, at: a.found.Registration,
		header: typed("application/json"), body: Marshal(request)}, &answer)
	if err != nil {
		return unregistered(err)
	}
	a.learn(answer.Secret)
	a.grant.client, a.grant.secret, a.grant.basic = answer.ID, answer.Secret, cmp.Or(answer.Method, method) == authBasic
	return nil
}

// redeem makes a token request.
func (a *Authorizer) redeem(ctx context.Context, form url.Values) (Access, error) {
	form.Set("resource", a.grant.resource)
	// It may stand beside an Authorization header, and there are servers that insist on it.
	form.Set("client_id", a.grant.client)
	header := typed("application/x-www-form-urlencoded")
	switch {
	case a.grant.secret != "" && a.grant.basic:
		plain := url.QueryEscape(a.grant.client) + ":" + url.QueryEscape(a.grant.secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(plain)))
	case a.grant.secret != "":
		form.Set("client_secret", a.grant.secret)
	}
	var answer struct {
		Token   string  `json:"access_token"`
		Type    string  `json:"token_type"`
		Life    seconds `json:"expires_in"`
		Scope   string  `json:"scope"`
		Refresh string  `json:"refresh_token"`
	}
	asked := time.Now()
	err := a.object(ctx, query{named: OfAuthorizationServer, method: http.MethodPost, at: a.grant.endpoint,
		header: header, body: []byte(form.Encode())}, &answer)
	if err != nil {
		return Access{}, a.unredeemed(err)
	}
	a.learn(answer.Token, answer.Refresh)
	switch {
	case answer.Token == "" || answer.Type == "":
		return Access{}, broken(OfAuthorizationServer, ids.AuthAsOauth21,
			errors.New("the answer to the token request lacks access_token or token_type"))
	case !strings.EqualFold(answer.Type, "Bearer"):
		return Access{}, undecided(string(OfAuthorizationServer), "mcpconform, which sends bearer tokens alone",
			"make the authorization server issue bearer tokens to this client",
			fmt.Errorf("the token request was answered with a token of the type %s", wire.Quote(answer.Type, 40)))
	}
	// Without a new refresh token, the old one stays good (OAuth 2.1, section 4.3.2).
	a.refresh = cmp.Or(answer.Refresh, a.refresh)
	access := Access{Token: answer.Token, Scope: cmp.Or(answer.Scope, a.scope())}
	if answer.Life > 0 {
		access.Expires = asked.Add(time.Duration(answer.Life) * time.Second)
	}
	return access, nil
}

// seconds is a number of seconds. Some servers write it as a text, or with a fraction.
type seconds float64

// UnmarshalJSON reads what is a number, and takes anything else for none.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err == nil && n > 0 && n < 1e9 {
		*s = seconds(n)
	}
	return nil
}

func (a *Authorizer) get(ctx context.Context, named Duty, at string, document any) error {
	return a.object(ctx, query{named: named, method: http.MethodGet, at: at}, document)
}

// query is a request of the flow.
type query struct {
	// named is the party that has named the address. Undecided: the server has named the host, and the specification
	// the rest.
	named      Duty
	method, at string
	header     http.Header
	body       []byte
	jar        http.CookieJar // or nil
}

// typed returns a header with the type of a body.
func typed(kind string) http.Header { return http.Header{"Content-Type": {kind}} }

// object makes a request and reads the JSON object of the answer.
func (a *Authorizer) object(ctx context.Context, q query, document any) error {
	resp, err := a.do(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		var refusal struct {
			Code string `json:"error"`
		}
		_ = json.Unmarshal(raw, &refusal) // a body of another kind has no code
		return &statusError{resp.StatusCode, refusal.Code}
	}
	if err := json.Unmarshal(raw, document); err != nil {
		return fmt.Errorf("the body is not the expected JSON object: %w", err)
	}
	return nil
}

// do makes a request. It refuses to do so without TLS, except on this machine
// (basic/authorization#communication-security), and follows no redirects.
func (a *Authorizer) do(ctx context.Context, q query) (*http.Response, error) {
	u, err := url.Parse(q.at)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && !transport.Loopback(u.Hostname()) {
		return nil, plain(q.named, u)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, q.at, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "mcpconform")
	maps.Copy(r.Header, q.header)
	sender, err := a.sender(q.at)
	if err != nil {
		return nil, err
	}
	c := http.Client{
		Transport: sender, Timeout: documentTime, Jar: q.jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(r)
	a.asked(q.method, u, resp, err)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL, which may hold secrets
		}
		return nil, &unansweredError{err}
	}
	return resp, nil
}

// sender returns what makes a request to an address.
func (a *Authorizer) sender(at string) (http.RoundTripper, error) {
	from := a.From
	from.URL = a.server
	document, err := from.Document(at)
	if err != nil {
		return nil, err
	}
	if a.Transport != nil {
		return a.Transport, nil
	}
	var log *wire.Log
	if a.Log != nil {
		log = a.Log()
	}
	return document.RoundTripper(log)
}

const documentTime = 10 * time.Second

// refusal returns the head of the last response with status 401 in a log, or nil.
func refusal(l *wire.Log) *wire.Event {
	events := l.Events()
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.Kind == wire.KindHTTPResponse && e.HTTP.Status == http.StatusUnauthorized {
			return e
		}
	}
	return nil
}

// maxTokens bounds how often the client seeks authorization.
const maxTokens = 3

// authorize obtains an access token after a refusal.
func (c *standaloneSession) authorize(ctx context.Context, head *wire.Event) error {
	if c.authorizations++; c.authorizations > maxTokens {
		return errors.New("authorization: the server refuses every access token")
	}
	c.say("the server requires authorization")
	access, err := c.Authorizer.Token(ctx, c.URL, head.HTTP.Header.Values("Www-Authenticate"))
	if err != nil {
		c.say("no authorization: %v", err)
		return fmt.Errorf("authorization: %w", err)
	}
	c.token.Set(access.Token)
	return nil
}

// reauthorize repeats, with a new token, a request that was refused in the middle
// of a session.
func (c *standaloneSession) reauthorize(ctx context.Context, x *Exchange, method string,
	params map[string]any) (*Exchange, error) {
	if err := c.authorize(ctx, x.Head); err != nil {
		return x, err
	}
	return c.call(ctx, method, params)
}
