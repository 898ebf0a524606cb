package check

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// UnauthorizedError reports a server that serves nobody without an access token
// (basic/authorization#error-handling), or not with the one that was given.
type UnauthorizedError struct {
	Given bool   // a token was given
	Asked string // what was refused: a method, or ""
}

func (e *UnauthorizedError) Error() string {
	what := "the server demands authorization"
	if e.Asked != "" {
		what += " for " + e.Asked
	}
	if e.Given {
		return what + " and refuses the given access token with HTTP status 401: give a valid one (--bearer-env VAR)"
	}
	return what + " (HTTP status 401): give an access token (--bearer-env VAR, or target.headers in the configuration)"
}

// unauthorized returns an *UnauthorizedError if the server has refused the first session because it lacks
// authorization, else the error. Logs before a position are those of an earlier try.
func (e *Engine) unauthorized(from int, err error) error {
	for l, event := range e.refusals(from) {
		asked := ""
		if request := posted(l, event); request != nil {
			asked = request.Msg.Method
		}
		if err != nil || asked != "" {
			e.target.Unauthorized = asked
			return &UnauthorizedError{Given: e.token() != "", Asked: asked}
		}
	}
	return err
}

// refusals yields the responses with status 401 in the first session, in the logs from a position on.
func (e *Engine) refusals(from int) iter.Seq2[*wire.Log, *wire.Event] {
	return func(yield func(*wire.Log, *wire.Event) bool) {
		for _, l := range e.Trace.Logs()[from:] {
			if l.Label != FirstLabel {
				continue
			}
			for _, event := range l.Events() {
				refused := event.Kind == wire.KindHTTPResponse && event.HTTP.Status == http.StatusUnauthorized
				if refused && !yield(l, event) {
					return
				}
			}
		}
	}
}

// NoAuthorization is why checks about authorization do not apply to a server.
const NoAuthorization = "the server does not demand authorization: it has not answered 401, and " +
	"authorization.protected is not configured"

// servesAnyone reports whether the server is known not to demand authorization: it has
// begun the first session without any, and refused nothing in it for want of it.
func (e *Engine) servesAnyone() bool {
	endpoint := transport.EndpointOf(e.Dialer)
	if endpoint == nil {
		return false
	}
	u, err := url.Parse(endpoint.URL)
	if a := e.Settings.Authorization; err != nil || u.User != nil || a.Protected || len(a.Methods) > 0 {
		return false
	}
	return e.token() == "" && e.target.Unauthorized == "" && e.target.Init != nil && e.target.Init.Result() != nil
}

// token returns the value of the Authorization header that the user or a login gave, or "".
func (e *Engine) token() string {
	if endpoint := transport.EndpointOf(e.Dialer); endpoint != nil {
		return endpoint.Authorization(context.Background())
	}
	return ""
}

// admitted ends the body if the server refused a request because it lacks authorization: the check cannot try
// anything then.
func (t *T) admitted(x *client.Exchange) {
	if x.Head == nil || x.Response != nil && x.Response.Msg.Kind == wire.Result {
		return
	}
	t.Admitted(x.Head, x.Request.Msg.Method)
}

// Admitted ends the body when the head of a response says that the request was
// refused because it lacks authorization.
func (t *T) Admitted(head *wire.Event, asked string) {
	switch {
	case head.HTTP.Status == http.StatusUnauthorized && t.engine.Lapsed() != nil:
		t.Inconclusive("%s", t.engine.Lapsed())
	case head.HTTP.Status == http.StatusUnauthorized:
		t.Inconclusive("%s", &UnauthorizedError{Given: t.engine.token() != "", Asked: asked})
	case head.HTTP.Status == http.StatusForbidden && head.HTTP.Header.Get("Www-Authenticate") != "":
		t.Inconclusive("the access token does not allow %s (HTTP status 403): give one with more scope", asked)
	}
}

// Authorization returns the value of the Authorization header that the user or a login
// gave, or "".
func (t *T) Authorization() string { return t.engine.token() }

// Bearing returns a further connection to the target that sends an Authorization
// header of its own in place of the user's, or none if it is empty. It is closed
// with the check.
func (t *T) Bearing(authorization string) *transport.HTTPConn {
	e, ok := t.Endpoint()
	if !ok {
		t.Skip("another transport")
	}
	e = t.withoutCredentials(e)
	if authorization != "" {
		if e.Header == nil {
			e.Header = make(http.Header)
		}
		e.Header.Set("Authorization", authorization)
	}
	return t.dial(e, t.Target.Transport)
}

// withoutCredentials returns the endpoint without credentials.
func (t *T) withoutCredentials(e transport.Endpoint) transport.Endpoint {
	e.Redactor, e.Token = t.redactor(e), nil
	e.Header = e.Header.Clone()
	e.Header.Del("Authorization")
	if u, err := url.Parse(e.URL); err == nil && u.User != nil {
		u.User = nil
		e.URL = u.String()
	}
	return e
}

// Elsewhere returns a connection for a document outside the protocol, if that may be
// fetched: see [transport.Endpoint.Document]. An Authorization header goes nowhere. It
// is closed with the check.
func (t *T) Elsewhere(rawURL string) (*transport.HTTPConn, error) {
	e, ok := t.Endpoint()
	if !ok {
		t.Skip("another transport")
	}
	e, err := t.withoutCredentials(e).Document(rawURL)
	if err != nil {
		return nil, err
	}
	return t.dial(e, transport.NameOAuth), nil
}

func (t *T) dial(e transport.Endpoint, name string) *transport.HTTPConn {
	d := &transport.HTTP{Endpoint: e, NoListen: true}
	conn, err := d.Dial(t.Context, t.engine.Trace.Connect(name, t.check.Name))
	t.Must(err)
	t.extra = append(t.extra, client.New(conn, client.Options{Timeout: t.engine.Timeout}))
	return conn.(*transport.HTTPConn)
}

// maxRedirects bounds how many redirects lead to a document.
const maxRedirects = 3

// Fetch gets a document outside the protocol. The error says that no answer came.
func (t *T) Fetch(rawURL string) (*transport.Response, error) {
	for hop := 0; ; hop++ {
		r, err := t.get(rawURL)
		if err != nil || r.Status/100 != 3 || hop == maxRedirects {
			return r, err
		}
		next, ok := redirect(rawURL, r.Header.Get("Location"))
		if !ok {
			return r, nil
		}
		rawURL = next
	}
}

// redirect returns where a Location header leads.
func redirect(from, location string) (to string, ok bool) {
	base, errBase := url.Parse(from)
	next, errNext := url.Parse(location)
	if errBase != nil || errNext != nil || location == "" {
		return "", false
	}
	return base.ResolveReference(next).String(), true
}

func (t *T) get(rawURL string) (*transport.Response, error) {
	conn, err := t.Elsewhere(rawURL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context, t.engine.Timeout)
	defer cancel()
	r, err := conn.Do(ctx, transport.Request{
		Method: http.MethodGet, Header: http.Header{"Accept": {"application/json"}, "User-Agent": {"mcpconform"}},
	})
	t.Show(conn.Log().Events()...)
	return r, err
}

// Secret keeps a text out of reports and traces.
func (t *T) Secret(text string) {
	if e, ok := t.Endpoint(); ok && e.Redactor != nil {
		e.Redactor.Add(text)
	}
}
