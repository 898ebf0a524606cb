package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Duty names the party whose duty a failed authorization shows to be broken.
type Duty string

// The parties. OfNobody is said when the user has to configure something, and Undecided when no sentence of the
// specification tells from what came which of two parties is at fault.
const (
	OfServer              Duty = "the server"
	OfAuthorizationServer Duty = "the authorization server"
	OfNobody              Duty = "nobody"
	Undecided             Duty = "undecided"
)

// DutyError says why an [Authorizer] has no token, and whose duty was broken.
type DutyError struct {
	Duty        Duty
	Requirement string    // "" unless a party's duty was broken
	Candidates  [2]string // if undecided: who may be at fault
	Advice      string    // for the user, or ""
	Err         error
}

func (e *DutyError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e *DutyError) Unwrap() error { return e.Err }

// broken returns an error that names whose duty was broken. A request without any answer breaks nobody's duty.
func broken(duty Duty, requirement string, err error) error {
	var unanswered *unansweredError
	var already *DutyError
	switch {
	case errors.As(err, &unanswered):
		return &DutyError{Duty: OfNobody, Err: err, Advice: "make sure that this address can be reached from here"}
	case errors.As(err, &already):
		return err
	}
	return &DutyError{Duty: duty, Requirement: requirement, Err: err}
}

// undecided returns an error of which no sentence says whose duty was broken.
func undecided(first, second, advice string, err error) error {
	return broken(Undecided, "", &DutyError{
		Duty: Undecided, Candidates: [2]string{first, second}, Advice: advice, Err: err,
	})
}

// unpublished returns the error of a document of metadata, which the party has to serve with status 200
// (RFC 8414, section 3.2; RFC 9728, section 3.2). A redirect is not forbidden, and a status of 5xx may pass.
func unpublished(duty Duty, requirement, what string, err error) error {
	var refused *statusError
	if err = described(what, err); errors.As(err, &refused) && (refused.status/100 == 3 || refused.status/100 == 5) {
		return undecided(string(duty), "what stands in front of it, such as a proxy",
			"request the document yourself, and look at the log of the server that answers", err)
	}
	return broken(duty, requirement, err)
}

// ungranted returns the error of an authorization or a token that was refused. The authorization server may be
// right: OAuth 2.1 lets it refuse a request, and has an error code for each reason.
func ungranted(err error) error {
	return undecided(string(OfAuthorizationServer), "the client as it is registered or configured",
		"look for the reason in the log of the authorization server, and compare the client's redirect URI, grants "+
			"and scopes with what it allows", err)
}

// unansweredError says that a request had no answer.
type unansweredError struct{ error }

// statusError says that an answer has another status than 2xx.
type statusError struct {
	status int
	code   string // the error code of OAuth, or ""
}

func (e *statusError) Error() string {
	if e.code != "" {
		return fmt.Sprintf("HTTP status %d, error %s", e.status, wire.Quote(e.code, 60))
	}
	return fmt.Sprintf("HTTP status %d", e.status)
}

// FlowStep is a request of the flow and its answer, without secrets.
type FlowStep struct{ Asked, Came string }

// Steps returns what the flow has asked and what came, since the last call of Token began.
func (a *Authorizer) Steps() []FlowStep { return a.steps }

// asked records a request and its answer. It leaves the query out, which may hold secrets.
func (a *Authorizer) asked(method string, u *url.URL, resp *http.Response, err error) {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	step := FlowStep{Asked: method + " " + wire.Quote(bare.String(), 200), Came: "no answer"}
	if err == nil {
		step.Came = fmt.Sprintf("HTTP status %d", resp.StatusCode)
		if kind := resp.Header.Get("Content-Type"); kind != "" {
			step.Came += " with " + wire.Quote(kind, 60)
		}
	}
	a.steps = append(a.steps, step)
}

// learn passes on secrets that the flow has made or got.
func (a *Authorizer) learn(secrets ...string) {
	if a.Learn != nil {
		a.Learn(secrets...)
	}
}

// described says what an error is about.
func described(what string, err error) error {
	var already *DutyError
	if errors.As(err, &already) {
		return err
	}
	var unanswered *unansweredError
	if errors.As(err, &unanswered) {
		return &unansweredError{fmt.Errorf("%s: %w", what, unanswered.error)}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unredirected returns the error of an authorization request that has not led back to the client at once.
func unredirected(status int) error {
	err := fmt.Errorf(
		"the authorization request was answered with HTTP status %d and without a redirect to the client", status)
	if status/100 == 4 || status/100 == 5 {
		return ungranted(err)
	}
	return &DutyError{
		Duty: OfNobody, Err: fmt.Errorf("%w: it waits for a user", err),
		Advice: "run mcpconform in a terminal, or with --browser, and consent yourself; or let the " +
			"authorization server " +
			"grant a test client at once; or give an access token (--bearer-env VAR)",
	}
}

// plain returns the error of an address that is not reached over TLS.
func plain(named Duty, u *url.URL) error {
	err := fmt.Errorf("%s is not reached over TLS", wire.Quote(u.Host, 80))
	switch named {
	case OfServer:
		return broken(OfServer, ids.AuthSecureCommunication, err)
	case OfAuthorizationServer:
		return broken(OfAuthorizationServer, ids.AuthAsHTTPS, err)
	}
	return undecided(string(OfServer)+", which names the address", string(OfAuthorizationServer),
		"find out whether the authorization server can be reached over https, and let the resource metadata name it so",
		err)
}

// unregistered returns the error of a registration. An authorization server should register clients, but need not
// (basic/authorization#dynamic-client-registration).
func unregistered(err error) error {
	return broken(OfNobody, "", &DutyError{
		Duty: OfNobody, Err: described("registration", err),
		Advice: "register a client by hand and give its id (--client-id)",
	})
}

// unredeemed returns the error of a token request. A client that the user has named may be named wrongly.
func (a *Authorizer) unredeemed(err error) error {
	var refused *statusError
	if a.ID != "" && a.grant.client == a.ID && errors.As(err, &refused) && refused.code == "invalid_client" {
		return &DutyError{
			Duty: OfNobody, Err: fmt.Errorf("token request: %w", err),
			Advice: "the client's id or secret is wrong (--client-id, --client-secret-env)",
		}
	}
	err = described("token request", err)
	if errors.As(err, &refused) {
		return ungranted(err)
	}
	return broken(OfAuthorizationServer, ids.AuthAsOauth21, err)
}
