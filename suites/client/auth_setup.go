package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// AuthorizationSetup says how the server of a scenario is protected, and which
// authorization servers it trusts.
type AuthorizationSetup struct {
	// Servers are the authorization servers, each at an origin of its own; their
	// Issuer is only the path. An empty list stands for one ordinary server.
	Servers []authserver.Options
	// Together puts the only authorization server on the origin of the protected
	// server.
	Together bool
	// Protection of the server; issuers and verification are filled in.
	Protection server.Protection
	// URL changes the URL that the client is given.
	URL func(u *url.URL)
	// Client is registered beforehand, and the client under test is told its id and
	// secret.
	Client *authserver.Client
	// Lapse revokes all tokens twice, in the middle of a session.
	Lapse bool
	// Redirects names what is answered with a redirect to another origin: one message in the middle of a session, or
	// token requests. Nothing is if it is "".
	Redirects Redirected
}

// Redirected is what is answered with a redirect to another origin.
type Redirected string

const (
	RedirectedMessage Redirected = "message"
	RedirectedToken   Redirected = "token request"
)

// Flow is how a client obtained a token, and how it used it. It is complete
// once the scenario has been run.
type Flow struct {
	setup     *AuthorizationSetup
	endpoint  *url.URL // that the client was given
	servers   []*authserver.Server
	logs      []*wire.Log         // of the authorization servers
	stops     []func()            // stop the servers that were started
	documents []*wire.Event       // requests to the protected server that are not MCP
	statuses  map[*wire.Event]int // of the answers to these requests
	target    string              // of the redirect, or ""

	mu         sync.Mutex
	exchanges  []Step
	shown      []Shown
	posts      int         // messages with a valid token since the tokens lapsed last
	lapses     int         // how often the tokens have lapsed
	redirected bool        // a message was answered with the redirect
	followed   *wire.Event // the first request at the target that shows a token or a code
}

// Step is one request to an authorization server.
type Step struct {
	authserver.Call
	Server int // position among the servers
	Lapses int // of the tokens before it
}

// Shown is one request that showed an access token to the protected server.
type Shown struct {
	Token  string   // in the Authorization header; "" if it was only elsewhere
	Ours   bool     // one of the authorization servers has issued it
	Good   bool     // and it was valid
	Places []string // where issued tokens stood: header, other header, query, body
}

const maxSteps = 1000

// handshakePosts is how many POSTs the handshake takes. As many are served between two lapses.
const handshakePosts = 2

const mostLapses = 2

// protect makes a server's options those of a protected one, and starts its
// authorization servers. The function that it returns stops them.
func (e *Engine) protect(ctx context.Context, setup *AuthorizationSetup, endpoint *Endpoint, o *server.Options,
	label string) (*Flow, func(), error) {
	f := &Flow{setup: setup}
	protection := setup.Protection
	mine, err := url.Parse(endpoint.URL)
	if err == nil && setup.Redirects != "" {
		err = e.serveTarget(ctx, f, label)
	}
	if err == nil {
		err = e.serveIssuers(ctx, f, &protection, mine.Host, label)
	}
	if err != nil {
		return nil, f.stop, err
	}
	given := *mine
	if setup.URL != nil {
		setup.URL(&given)
	}
	if protection.MetadataPath != "" && e.Transport == transport.NameSSE {
		// The path of the metadata does not tell of which endpoint they are
		// (basic/authorization#canonical-server-uri).
		resource := given
		resource.Host, resource.Fragment = strings.ToLower(given.Host), ""
		protection.Resource = resource.String()
	}
	if setup.Client != nil {
		endpoint.ClientID, endpoint.ClientSecret = setup.Client.ID, setup.Client.Secret
	}
	protection.Verify = f.verify
	o.HTTP.Protection = &protection
	before := o.Behaviour.HTTP.Middleware
	o.Behaviour.HTTP.Middleware = func(next http.Handler) http.Handler {
		if before != nil {
			next = before(next)
		}
		return f.watch(next)
	}
	endpoint.URL = given.String()
	f.endpoint = &given
	return f, f.stop, nil
}

// stop stops what was started for the flow.
func (f *Flow) stop() {
	for _, s := range f.stops {
		s()
	}
	for _, l := range f.logs {
		l.End()
	}
}

// serveTarget starts the other origin to which a request is redirected.
func (e *Engine) serveTarget(ctx context.Context, f *Flow, label string) error {
	listener, err := e.listen()
	if err != nil {
		return fmt.Errorf("listen as the target of a redirect: %w", err)
	}
	f.target = "http://" + listener.Addr().String()
	log := e.Trace.Connect(transport.NameOAuth, label)
	f.logs = append(f.logs, log)
	f.stops = append(f.stops, serveHandler(ctx, listener, f.elsewhere(log)))
	return nil
}

// serveIssuers starts the authorization servers, which the protected server trusts from then on. host is that of the
// protected server.
func (e *Engine) serveIssuers(ctx context.Context, f *Flow, protection *server.Protection, host, label string) error {
	options := f.setup.Servers
	if len(options) == 0 {
		options = []authserver.Options{{}}
	}
	for i, so := range options {
		listener := net.Listener(nil)
		if !f.setup.Together {
			var err error
			if listener, err = e.listen(); err != nil {
				return fmt.Errorf("listen as authorization server: %w", err)
			}
			host = listener.Addr().String()
		}
		so.Issuer = "http://" + host + so.Issuer
		so.Lenient = true
		so.Log = e.Trace.Connect(transport.NameOAuth, label)
		f.logs = append(f.logs, so.Log)
		so.Seen = func(x authserver.Call) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.exchanges) < maxSteps {
				f.exchanges = append(f.exchanges, Step{Call: x, Server: i, Lapses: f.lapses})
			}
		}
		if f.setup.Redirects == RedirectedToken {
			so.Faults.Answer = f.redirectsToken
		}
		if f.setup.Client != nil {
			so.Clients = append(so.Clients, *f.setup.Client)
		}
		as, err := authserver.New(so)
		if err != nil {
			return err
		}
		f.servers = append(f.servers, as)
		protection.Issuers = append(protection.Issuers, as.Issuer())
		if f.setup.Together {
			protection.Elsewhere = as
		} else {
			f.stops = append(f.stops, serveHandler(ctx, listener, as))
		}
	}
	return nil
}

// serveHandler serves a handler until the function that it returns is called.
func serveHandler(ctx context.Context, l net.Listener, h http.Handler) (stop func()) {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	return func() {
		_ = s.Close()
		<-served
	}
}

// issued reports whether one of the authorization servers has issued a token.
func (f *Flow) issued(token string) bool {
	return slices.ContainsFunc(f.servers, func(s *authserver.Server) bool { return s.Issued(token) })
}

// verify accepts the tokens of the scenario's authorization servers, also those for
// another resource, so that the rest of the flow can be judged.
func (f *Flow) verify(token, _ string, r *http.Request) *server.Denial {
	good := func() bool {
		return slices.ContainsFunc(f.servers, func(s *authserver.Server) bool { return s.Good(token) })
	}
	f.mu.Lock()
	if f.setup.Lapse && f.lapses < mostLapses && r.Method == http.MethodPost && good() {
		if f.posts++; f.posts == handshakePosts+1 {
			f.posts, f.lapses = 0, f.lapses+1
			for _, s := range f.servers {
				s.Revoke()
			}
		}
	}
	lapsed := f.lapses > 0
	f.mu.Unlock()
	if lapsed && r.Method == http.MethodGet && f.issued(token) {
		return nil // a client whose listening stream is refused beside its request may authorize twice at the same time
	}
	if good() {
		return nil
	}
	return server.InvalidToken
}

// watch records where each request carries tokens.
func (f *Flow) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := PeekBody(w, r) // the server sees the error, too
		f.note(r, string(body))
		if f.redirects(r, body) {
			http.Redirect(w, r, f.target+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// redirects reports whether a request is the one that is answered with a redirect:
// the first one with a token that belongs neither to the handshake nor to liveness.
func (f *Flow) redirects(r *http.Request, body []byte) bool {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if f.setup.Redirects != RedirectedMessage || r.Method != http.MethodPost || !f.issued(token) {
		return false
	}
	if m := wire.Parse(body); m.Kind != wire.Request || !IsOperation(m.Method) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.redirected {
		return false
	}
	f.redirected = true
	return true
}

// Redirected reports whether a message was answered with a redirect.
func (f *Flow) Redirected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.redirected
}

// Followed returns the first request at the target of a redirect that shows a token or a code, or nil.
func (f *Flow) Followed() *wire.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followed
}

// Lapses returns how often the tokens have lapsed.
func (f *Flow) Lapses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lapses
}

// Endpoint returns the URL that the client was given.
func (f *Flow) Endpoint() *url.URL { return f.endpoint }

// MetadataPath returns where the metadata of the first authorization server are.
func (f *Flow) MetadataPath() string { return f.servers[0].MetadataPath() }

// redirectsToken redirects a token request to the other origin, where it would be the same request (RFC 9110,
// section 15.4.8). No token comes with the redirect.
func (f *Flow) redirectsToken(c authserver.Call, status int, header http.Header, body map[string]any) int {
	if c.Step != authserver.Token {
		return status
	}
	clear(body)
	header.Set("Location", f.target+c.Path)
	return http.StatusTemporaryRedirect
}

// elsewhere serves the target of the redirect, which has nothing to offer. It records requests without their headers
// and bodies, which may hold a token or a code.
func (f *Flow) elsewhere(log *wire.Log) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := PeekBody(w, r)
		sent := []string{r.URL.RawQuery, string(body)}
		for _, values := range r.Header {
			sent = append(sent, values...)
		}
		all := strings.Join(sent, "\n")
		shows := slices.ContainsFunc(append(f.Tokens(), f.answers(authserver.Authorization, "code")...),
			func(secret string) bool { return strings.Contains(all, secret) })
		e, _ := log.Append(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: "redirected",
			HTTP: &wire.Head{
				Method: r.Method, URL: "http://" + r.Host + r.URL.Path, Header: http.Header{},
			}})
		f.mu.Lock()
		if shows && f.followed == nil {
			f.followed = e
		}
		f.mu.Unlock()
		http.NotFound(w, r)
	})
}

func (f *Flow) note(r *http.Request, body string) {
	s := Shown{}
	header := r.Header.Get("Authorization")
	if scheme, token, ok := strings.Cut(header, " "); ok && strings.EqualFold(scheme, "Bearer") {
		s.Token = strings.TrimSpace(token)
		s.Ours = f.issued(s.Token)
		s.Good = slices.ContainsFunc(f.servers, func(as *authserver.Server) bool { return as.Good(s.Token) })
		s.Places = append(s.Places, InAuthorization)
	}
	for _, token := range f.Tokens() {
		for name, values := range r.Header {
			others := strings.Join(values, "\n")
			if name == "Authorization" {
				if strings.Contains(others, token) && s.Token != token {
					s.Places = append(s.Places, "the Authorization header, but not as Bearer")
				}
			} else if strings.Contains(others, token) {
				s.Places = append(s.Places, "the header "+name)
			}
		}
		if strings.Contains(r.URL.RawQuery, token) {
			s.Places = append(s.Places, "the query")
		}
		if strings.Contains(body, token) {
			s.Places = append(s.Places, "the body")
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(s.Places) > 0 && len(f.shown) < maxSteps {
		f.shown = append(f.shown, s)
	}
}

// InAuthorization is the place of a token where it belongs.
const InAuthorization = "the Authorization header"

// Tokens returns the access tokens that were issued.
func (f *Flow) Tokens() []string { return f.answers(authserver.Token, "access_token") }

// answers returns a member of the answers to a step.
func (f *Flow) answers(step authserver.Step, member string) []string {
	var all []string
	for _, s := range f.Steps(step) {
		if text, ok := s.Answer[member].(string); ok && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// Steps returns the requests of some kinds to the authorization servers, or all.
func (f *Flow) Steps(kinds ...authserver.Step) []Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Step
	for _, s := range f.exchanges {
		if len(kinds) == 0 || slices.Contains(kinds, s.Step) {
			all = append(all, s)
		}
	}
	return all
}

// Presented returns the requests that showed a token.
func (f *Flow) Presented() []Shown {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.shown)
}

// documentsFrom collects the requests to the protected server that are not MCP.
func (f *Flow) documentsFrom(logs []*wire.Log) {
	f.statuses = make(map[*wire.Event]int)
	for _, l := range logs {
		if l.Transport != transport.NameOAuth || slices.Contains(f.logs, l) {
			continue
		}
		open := make(map[string]*wire.Event) // requests, by stream
		for _, e := range l.Events() {
			switch e.Kind {
			case wire.KindHTTPRequest:
				f.documents = append(f.documents, e)
				open[e.Stream] = e
			case wire.KindHTTPResponse:
				f.statuses[open[e.Stream]] = e.HTTP.Status
			}
		}
	}
}

// Documents returns the requests for documents of the protected server whose paths begin with a prefix.
func (f *Flow) Documents(prefix string) []*wire.Event {
	var all []*wire.Event
	for _, e := range f.documents {
		if u, err := url.Parse(e.HTTP.URL); err == nil && strings.HasPrefix(u.Path, prefix) {
			all = append(all, e)
		}
	}
	return all
}

// Status returns the status of the answer to a request for a document.
func (f *Flow) Status(document *wire.Event) int { return f.statuses[document] }

// ObtainedToken reports whether the client got a token and used it.
func (t *T) ObtainedToken() bool {
	return t.Flow != nil && slices.ContainsFunc(t.Flow.Presented(), func(s Shown) bool { return s.Ours })
}

// maxPeek bounds a body that is read ahead.
const maxPeek = 16 << 20

// PeekBody reads the body of a request and lets it be read once more, with the same error. A client that dies has not
// sent the rest.
func PeekBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPeek))
	again := io.Reader(bytes.NewReader(body))
	if err != nil {
		again = io.MultiReader(again, broken{err})
	}
	r.Body = io.NopCloser(again)
	return body, err
}

// broken is a body that cannot be read further.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
