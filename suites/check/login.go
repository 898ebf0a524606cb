package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Login says how to obtain an access token when a server demands one and the user gave none.
type Login struct {
	// ClientID and ClientSecret are of a client that is registered already. With an id, no client is registered.
	ClientID, ClientSecret string
}

// LoginLabel is the label of the log of a login.
const LoginLabel = "login"

// LoginError reports that a server demands an access token, and that the login has not led to one that it accepts.
type LoginError struct {
	Refused *UnauthorizedError
	Steps   []client.FlowStep
	Cause   *client.DutyError
}

// Error returns the paragraph for the user: each step, the cause, and whose duty was broken.
func (e *LoginError) Error() string {
	var b strings.Builder
	b.WriteString("mcpconform cannot log in.")
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

// login obtains an access token after the first session was refused, and puts it into the endpoint. It returns the
// steps that led to the token, or the refusal with the reason why there is none.
func (e *Engine) login(ctx context.Context, refused *UnauthorizedError) ([]client.FlowStep, error) {
	endpoint := transport.EndpointOf(e.Dialer)
	redactor := endpoint.Redactor
	if redactor == nil {
		redactor = transport.NewRedactor(endpoint.Header, endpoint.URL)
		endpoint.Redactor = redactor
	}
	log := e.Trace.Connect(transport.NameOAuth, LoginLabel)
	defer log.End()
	redactor.Add(e.Login.ClientSecret)
	a := client.Authorizer{
		ID: e.Login.ClientID, Secret: e.Login.ClientSecret, Registered: e.Login.ClientID != "",
		From: *endpoint, Learn: redactor.Add,
	}
	sent := recorder{log: log, redactor: redactor}
	a.Wrap = func(next http.RoundTripper) http.RoundTripper {
		sent.next = next
		return &sent
	}
	token, err := a.Token(ctx, endpoint.URL, e.challenges())
	if err != nil {
		var cause *client.DutyError
		if !errors.As(err, &cause) {
			cause = &client.DutyError{Duty: client.OfNobody, Err: err}
		}
		return nil, &LoginError{refused, a.Steps(), cause}
	}
	endpoint.Header = endpoint.Header.Clone()
	if endpoint.Header == nil {
		endpoint.Header = make(http.Header)
	}
	endpoint.Header.Set("Authorization", "Bearer "+token)
	redactor.AddTarget(endpoint.Header, "")
	e.Settings.Secrets = append(slices.Clip(e.Settings.Secrets), token)
	return a.Steps(), nil
}

// challenges returns those of the last refusal in the first session.
func (e *Engine) challenges() (values []string) {
	for _, event := range e.refusals(0) {
		values = event.HTTP.Header.Values("Www-Authenticate")
	}
	return values
}

// recorder records the heads of the requests of a login, and of their answers. It leaves the bodies out: they hold
// what must be in no trace.
type recorder struct {
	next     http.RoundTripper
	log      *wire.Log
	redactor *transport.Redactor
	count    int
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.count++
	stream := LoginLabel + ":" + strconv.Itoa(r.count)
	head := &wire.Head{Method: request.Method, URL: r.redactor.URL(request.URL),
		Header: r.redactor.Header(request.Header)}
	r.append(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: stream, HTTP: head})
	resp, err := r.next.RoundTrip(request)
	if err == nil {
		head := &wire.Head{Status: resp.StatusCode, Header: r.redactor.Header(resp.Header)}
		r.append(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: stream, HTTP: head})
	}
	r.append(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server, Stream: stream})
	return resp, err
}

func (r *recorder) append(e wire.Event) {
	_, _ = r.log.Append(e) // a flood is not recorded any further
}
