package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// logins are the tokens that the run obtained.
type logins struct {
	tokens       *tokens // nil without a login
	second       *tokens // of the login as another user
	secondFailed error
}

// Login says how to obtain an access token when a server demands one and the user gave none.
type Login struct {
	// ClientID and ClientSecret are of a client that is registered already. With an id, no client is registered.
	ClientID, ClientSecret string
	// Scope is what to ask for; "" leaves that to the authorization server.
	Scope string
	// Consent, unless nil, asks a user who has to agree.
	Consent *client.Consent
	// SecondUser logs in a second time, as another user.
	SecondUser bool
}

// LoginLabel is the label of the log of a login.
const LoginLabel = "login"

// LoginError reports that a server demands an access token and accepts none that the login has brought.
type LoginError struct {
	Refused *UnauthorizedError
	Steps   []client.FlowStep
	Cause   *client.DutyError
	// Again says that there was a token, which has lapsed.
	Again bool
}

// Error returns the paragraph for the user: each step, the cause, and whose duty was broken.
func (e *LoginError) Error() string {
	var b strings.Builder
	b.WriteString("mcpconform cannot log in.")
	if e.Again {
		b.Reset()
		b.WriteString("The access token has lapsed, and mcpconform cannot get another one.")
	}
	for i, step := range e.Steps {
		fmt.Fprintf(&b, " (%d) %s: %s.", i+1, step.Asked, step.Came)
	}
	fmt.Fprintf(&b, " The login ended here: %s.", e.Cause)
	switch e.Cause.Duty {
	case client.OfNobody:
		b.WriteString(" No party is shown to be at fault.")
	case client.Undecided:
		fmt.Fprintf(&b, " It cannot be told from this whose duty was broken: that of %s, or of %s.",
			e.Cause.Candidates[0], e.Cause.Candidates[1])
	default:
		fmt.Fprintf(&b, " This was the duty of %s: %s (basic/authorization).", e.Cause.Duty, e.Cause.Requirement)
	}
	if e.Cause.Advice != "" {
		fmt.Fprintf(&b, " What to do: %s.", e.Cause.Advice)
	}
	return b.String()
}

// Result returns what the results of the run say of it.
func (e *LoginError) Result() *result.Login {
	r := &result.Login{
		Text: e.Error(), Duty: string(e.Cause.Duty), Requirement: e.Cause.Requirement, Steps: []result.LoginStep{},
	}
	for _, step := range e.Steps {
		r.Steps = append(r.Steps, result.LoginStep{Asked: step.Asked, Came: step.Came})
	}
	return r
}

// Unwrap returns the refusal and the cause.
func (e *LoginError) Unwrap() []error { return []error{e.Refused, e.Cause} }

// login obtains an access token after the first session was refused, for the user or for somebody else.
func (e *Engine) login(ctx context.Context, refused *UnauthorizedError, user string) (*tokens, error) {
	endpoint := transport.EndpointOf(e.Dialer)
	if endpoint.Redactor == nil {
		endpoint.Redactor = transport.NewRedactor(endpoint.Header, endpoint.URL)
	}
	endpoint.Redactor.Add(e.Login.ClientSecret)
	s := &tokens{url: endpoint.URL, refused: refused, turn: make(chan struct{}, 1), issued: make(map[string]bool)}
	for _, event := range e.refusals(0) { // the last one counts
		s.challenges = event.HTTP.Header.Values("Www-Authenticate")
	}
	s.ctx = ctx //nolint:fatcontext // a renewal belongs to the run, not to the request that needs it
	s.authorizer = client.Authorizer{
		ID: e.Login.ClientID, Secret: e.Login.ClientSecret, Registered: e.Login.ClientID != "", Scope: e.Login.Scope,
		User: user, Consent: e.Login.Consent, From: *endpoint, Learn: endpoint.Redactor.Add,
		Log: func() *wire.Log { return e.Trace.Connect(transport.NameOAuth, LoginLabel) },
	}
	if err := s.obtain(); err != nil {
		return nil, err
	}
	return s, nil
}

// SecondUser returns an access token of another user, from the settings or by a login. The error says why there is
// none.
func (t *T) SecondUser() (string, error) {
	switch configured := t.Target.Settings.Authorization.OtherUser; {
	case configured != "":
		return configured, nil
	case t.engine.secondFailed != nil:
		return "", fmt.Errorf("the login of the second user failed: %w", t.engine.secondFailed)
	case t.engine.second == nil:
		return "",
			errors.New("no token of another user was given: log in as one (--second-user), or set " +
				"authorization.otherUser in the configuration")
	}
	return t.engine.second.Token(t.Context), nil
}

// Grant returns a further token of the login. A resource or a scope that is not "" is asked for in place of that of the
// login. Reports do not show the token.
func (t *T) Grant(resource, scope string) (access client.Access, err error) {
	s := t.engine.tokens
	if s == nil {
		return access, errors.New("mcpconform has not logged in")
	}
	t.yield(func() {
		select {
		case s.turn <- struct{}{}:
			access, err = s.authorizer.Again(t.Context, resource, scope)
			<-s.turn
		case <-t.Context.Done():
			err = context.Cause(t.Context)
		}
	})
	return access, err
}

// Scopes returns the scopes of the login's token, and those that the servers know.
func (t *T) Scopes() (granted string, known []string) {
	s := t.engine.tokens
	if s == nil {
		return "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.access.Scope, s.authorizer.Scopes()
}

// Lapse waits until a token has lapsed. It reports false at once if that takes longer than an answer may.
func (t *T) Lapse(access client.Access) bool {
	wait := time.Until(access.Expires)
	if access.Expires.IsZero() || wait > t.engine.Timeout {
		return false
	}
	t.Pause(wait + lapseGrace)
	return true
}

// lapseGrace is how much later than the authorization server says a token has lapsed for sure: it counts whole seconds.
const lapseGrace = time.Second

// tokens is the source of the access tokens of a login. It renews the token once for all requests that need that.
type tokens struct {
	ctx        context.Context
	authorizer client.Authorizer
	url        string
	challenges []string
	refused    *UnauthorizedError
	turn       chan struct{} // holds an entry while a token is obtained

	mu     sync.Mutex
	access client.Access
	since  time.Time       // of access
	issued map[string]bool // all tokens of the login
	works  bool            // the server has accepted one
	early  int             // how often the server has refused a token before its end
	failed *LoginError     // why there is no newer token
}

// mostEarly bounds how often a token is renewed that the server refuses although it should be good.
const mostEarly = 20

// obtain logs in, or refreshes the token. The caller has the turn, or is alone.
func (s *tokens) obtain() error {
	asked := time.Now()
	access, err := s.authorizer.Token(s.ctx, s.url, s.challenges)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.access, s.since, s.issued[access.Token] = access, asked, true
		return nil
	}
	return s.fail(err)
}

// fail returns the error that says why there is no token. The lock is held.
func (s *tokens) fail(err error) *LoginError {
	var cause *client.DutyError
	if !errors.As(err, &cause) {
		cause = &client.DutyError{Duty: client.OfNobody, Err: err}
	}
	failed := &LoginError{Refused: s.refused, Steps: s.authorizer.Steps(), Cause: cause, Again: s.works}
	if s.works && s.ctx.Err() == nil {
		s.failed = failed
	}
	return failed
}

// Token returns the token, or a new one if its end is near.
func (s *tokens) Token(ctx context.Context) string {
	s.mu.Lock()
	access, since, works := s.access, s.since, s.works
	s.mu.Unlock()
	if !works || access.Expires.IsZero() {
		return access.Token
	}
	life := access.Expires.Sub(since)
	if time.Until(access.Expires) > min(life/10, nearEnd) {
		return access.Token
	}
	return s.after(ctx, access.Token)
}

// nearEnd is how long before its end a token is renewed, if it lives long enough.
const nearEnd = 10 * time.Second

// Refused returns another token after the server has refused one, unless it refuses one good token after the other.
func (s *tokens) Refused(ctx context.Context, token string) string {
	s.mu.Lock()
	renewable := s.works && s.issued[token]
	if renewable && token == s.access.Token && (s.access.Expires.IsZero() || time.Now().Before(s.access.Expires)) {
		s.early++
		renewable = s.early <= mostEarly
	}
	s.mu.Unlock()
	if !renewable {
		return ""
	}
	if next := s.after(ctx, token); next != token {
		return next
	}
	return ""
}

// after returns the token that follows one, which may be there already. It returns the same one if there is no other.
func (s *tokens) after(ctx context.Context, token string) string {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return token
	}
	if current, failed := s.current(); current != token || failed != nil {
		return current
	}
	s.authorizer.Consent = nil // nobody is asked twice
	if s.obtain() != nil {
		return token
	}
	current, _ := s.current()
	return current
}

// current returns the last token, and why there is no newer one.
func (s *tokens) current() (string, *LoginError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.access.Token, s.failed
}

// accepted notes that the server has accepted a token.
func (s *tokens) accepted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.works = true
}

// refusedAgain returns the error of a server that refuses the tokens of its own authorization server.
func refusedAgain(err error) error {
	return &client.DutyError{
		Duty:       client.Undecided,
		Candidates: [2]string{string(client.OfServer), string(client.OfAuthorizationServer)},
		Advice:     "compare the issuer, the audience and the scopes of the token with what the server expects",
		Err:        err,
	}
}

// Lapsed returns why the access token of the login has lapsed without another one; nil if it has not.
func (e *Engine) Lapsed() error {
	if e.tokens == nil {
		return nil
	}
	if _, failed := e.tokens.current(); failed != nil {
		return failed
	}
	return nil
}

// Tokens returns the access tokens of the login.
func (e *Engine) Tokens() []string {
	if e.tokens == nil {
		return nil
	}
	e.tokens.mu.Lock()
	defer e.tokens.mu.Unlock()
	return slices.Sorted(maps.Keys(e.tokens.issued))
}
