package authserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Target is an authorization server under test. Its checks are tried one after the other.
type Target struct {
	Revision *schema.Revision
	// Endpoint is how the issuer, or a server that it protects, is reached.
	Endpoint transport.Endpoint
	Client
	// Resource is the URI of a server for which tokens are asked, and Scope what they are to allow; each may be "".
	Resource, Scope string
	// Thorough tries everything.
	Thorough bool
	Timeout  time.Duration
	Trace    *wire.Trace

	discovered
	supposition

	senders    map[string]http.RoundTripper // by origin
	registered map[string]*client           // by what was asked for
}

// Client is one that is registered already, with the RedirectURI. Without an id, clients are registered.
type Client struct{ ClientID, ClientSecret, RedirectURI string }

// discovered is what Prepare has found.
type discovered struct {
	issuer   string
	document *answer // the metadata
	// elsewhere says that the metadata are where OpenID Connect has them alone; missing is why there are none.
	elsewhere bool
	missing   string
}

// supposition is the resource that logins name where none is known and the authorization server wants one. Whether it
// does is known once supposes is true.
type supposition struct {
	supposed string
	supposes bool
}

// connect begins the log of a check.
func (a *Target) connect(label string) *wire.Log { return a.Trace.Connect(transport.NameOAuth, label) }

// given reports whether the client is one that was registered before the run.
func (a *Target) given() bool { return a.ClientID != "" }

// Issuer returns the issuer, once it was found.
func (a *Target) Issuer() string { return a.issuer }

// Supposed returns the resource that the run has named of its own accord, or "".
func (a *Target) Supposed() string { return a.supposed }

// userAgent is what goes from page to page of the authorization server: a browser of one user.
type userAgent struct {
	t   *T
	jar *cookiejar.Jar
}

func (t *T) userAgent() *userAgent {
	jar, _ := cookiejar.New(nil) // without options it cannot fail
	return &userAgent{t, jar}
}

// request is one HTTP request.
type request struct {
	asked  string // what it asks, in words
	method string
	url    string
	header http.Header
	form   url.Values     // the body, or
	object map[string]any // the body as JSON
	raw    []byte         // the body as it is
}

func (r *request) body() (kind string, body []byte) {
	switch {
	case r.form != nil:
		return "application/x-www-form-urlencoded", []byte(r.form.Encode())
	case r.object != nil:
		raw, _ := json.Marshal(r.object) // strings and lists of them
		return "application/json", raw
	case r.raw != nil:
		return "application/json", r.raw
	}
	return "", nil
}

// maxBody bounds what is read of an answer.
const maxBody = 1 << 20

// send makes a request and records it without secrets. It follows no redirect.
func (u *userAgent) send(r request) (*answer, error) {
	t := u.t
	at, err := t.Endpoint.Document(r.url)
	if err != nil {
		return nil, err
	}
	kind, body := r.body()
	ctx, cancel := context.WithTimeout(t.Context, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, at.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be sent: %w", r.asked, err)
	}
	req.Header.Set("User-Agent", "mcpconform")
	req.Header.Set("Accept", "application/json, text/html;q=0.5")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	maps.Copy(req.Header, at.Header)
	maps.Copy(req.Header, r.header)
	for _, c := range u.jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	a := &answer{asked: r.asked}
	stream := t.record(a, req, r)
	sender, err := t.sender(at, req.URL)
	if err != nil {
		return nil, err
	}
	resp, err := sender.RoundTrip(req)
	if err != nil {
		var start *transport.StartError
		if errors.As(err, &start) {
			err = start.Err
		}
		return nil, fmt.Errorf("%s was not answered: %w", r.asked, err)
	}
	defer resp.Body.Close()
	u.jar.SetCookies(req.URL, resp.Cookies())
	a.status, a.header = resp.StatusCode, resp.Header
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		return nil, fmt.Errorf("the answer to %s broke off: %w", r.asked, err)
	}
	a.read()
	t.learn(a)
	t.recordAnswer(a, stream)
	return a, nil
}

// sender returns what makes requests to an origin.
func (a *Target) sender(at transport.Endpoint, to *url.URL) (http.RoundTripper, error) {
	origin := to.Scheme + "://" + to.Host
	if s := a.senders[origin]; s != nil {
		return s, nil
	}
	s, err := at.RoundTripper(nil)
	if err != nil {
		return nil, err
	}
	if a.senders == nil {
		a.senders = make(map[string]http.RoundTripper)
	}
	a.senders[origin] = s
	return s, nil
}

// Close ends the connections that are kept.
func (a *Target) Close() {
	for _, s := range a.senders {
		if closer, ok := s.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}

// learn keeps the secrets in an answer out of all reports, wherever they stand in it.
func (t *T) learn(a *answer) {
	t.Endpoint.Redactor.Add(authserver.SecretsIn(string(a.body))...)
	for name, v := range a.object {
		if text, ok := v.(string); ok && authserver.Secret(name) {
			t.Endpoint.Redactor.Add(text)
		}
	}
	if to, err := url.Parse(a.header.Get("Location")); err == nil {
		for name, values := range to.Query() {
			if authserver.Secret(name) {
				t.Endpoint.Redactor.Add(values...)
			}
		}
	}
}

// record records a request and returns its stream.
func (t *T) record(a *answer, req *http.Request, r request) (stream string) {
	t.requests++
	stream = strings.ToLower(r.method) + ":" + strconv.Itoa(t.requests)
	at := *req.URL
	at.User = nil
	at.RawQuery = authserver.Form(at.Query())
	a.append(t.log, wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, Stream: stream,
		HTTP: &wire.Head{Method: req.Method, URL: at.String(), Header: t.Endpoint.Redactor.Header(req.Header)}})
	raw := r.raw
	switch {
	case r.form != nil:
		raw = []byte(authserver.Form(r.form))
	case r.object != nil:
		_, raw = r.body()
	}
	if raw != nil {
		a.append(t.log, wire.Event{Kind: wire.KindBody, From: wire.Client, Stream: stream, Raw: raw})
	}
	return stream
}

// recordAnswer records what was answered.
func (t *T) recordAnswer(a *answer, stream string) {
	header := t.Endpoint.Redactor.Header(a.header)
	if to, err := url.Parse(a.header.Get("Location")); err == nil && len(a.header["Location"]) == 1 {
		to.User = nil
		to.RawQuery = authserver.Form(to.Query())
		header.Set("Location", to.String())
	}
	a.append(t.log, wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, Stream: stream,
		HTTP: &wire.Head{Status: a.status, Header: header}})
	raw := a.body
	if a.object != nil {
		raw, _ = json.Marshal(authserver.Object(a.object)) // as it was read
	}
	if len(raw) > 0 {
		a.append(t.log, wire.Event{Kind: wire.KindBody, From: wire.Server, Stream: stream, Raw: raw})
	}
	_, _ = t.log.Append(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server, Stream: stream})
}

// append records an event of an exchange. A flood is not recorded any further.
func (a *answer) append(log *wire.Log, e wire.Event) {
	if stored, err := log.Append(e); err == nil {
		a.events = append(a.events, stored)
	}
}

// get fetches a document.
func (t *T) get(at string) (*answer, error) {
	return t.userAgent().send(request{asked: "GET " + wire.Quote(at, 120), method: http.MethodGet, url: at})
}

// Prepare finds the metadata of the authorization server: its URL may be that of the issuer or of a server that it
// protects. The error says that it was not reached.
func (a *Target) Prepare(ctx context.Context) error {
	c := &Check{Name: Discovery}
	t := &T{Context: ctx, Target: a, check: c, log: a.connect(Discovery)}
	defer t.log.End()
	given := a.Endpoint.URL
	found, err := t.metadata(given)
	if err != nil {
		return err
	}
	a.issuer, a.document = given, found
	if found == nil || !same(found.text("issuer"), given) {
		if issuer, resource := t.protecting(given); issuer != "" {
			a.issuer = issuer
			if a.Resource == "" {
				a.Resource = resource
			}
			if a.document, err = t.metadata(issuer); err != nil {
				return err
			}
		}
	}
	if a.document == nil {
		a.missing = "nothing is known of its endpoints, because it publishes no metadata"
	}
	return nil
}

// Discovery names the log of what is asked before the checks.
const Discovery = "discovery"

// metadata returns the metadata of an issuer, or nil if there are none.
func (t *T) metadata(issuer string) (*answer, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	t.elsewhere = false
	path := strings.TrimSuffix(u.Path, "/")
	const openID = "/.well-known/openid-configuration"
	for i, p := range slices.Compact([]string{authserver.WellKnown + path, path + openID, openID + path}) {
		at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: p}
		a, err := t.get(at.String())
		switch {
		case err != nil:
			return nil, err
		case a.status == http.StatusOK && a.object != nil:
			t.elsewhere = i > 0
			return a, nil
		}
	}
	return nil, nil
}

// protecting returns the issuer that protects a server, and the resource that the server is, or "".
func (t *T) protecting(server string) (issuer, resource string) {
	u, err := url.Parse(server)
	if err != nil {
		return "", ""
	}
	const wellKnown = transport.WellKnownResource
	for _, p := range slices.Compact([]string{wellKnown + strings.TrimSuffix(u.Path, "/"), wellKnown}) {
		at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: p}
		a, err := t.get(at.String())
		if err != nil || a.status != http.StatusOK {
			continue
		}
		if list, _ := a.object["authorization_servers"].([]any); len(list) > 0 {
			issuer, _ = list[0].(string)
			return issuer, a.text("resource")
		}
	}
	return "", ""
}

// same compares issuers without regard to a final slash.
func same(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }
