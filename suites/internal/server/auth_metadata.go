package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
)

// The documents that a protected server and its authorization servers publish
// (basic/authorization#authorization-server-discovery).

// metadata returns the resource metadata: from where a refusal says, or else
// from the well-known addresses for the endpoint and for its host.
func metadata(t *check.T, r *transport.Response) (map[string]any, error) {
	e, _ := t.Endpoint()
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	root := url.URL{Scheme: u.Scheme, Host: u.Host, Path: transport.WellKnownResource}
	inserted := root
	inserted.Path += strings.TrimSuffix(u.Path, "/")
	var tried []error
	for _, at := range slices.Compact([]string{challengeOf(r)["resource_metadata"], inserted.String(), root.String()}) {
		if at == "" {
			continue
		}
		t.Clear()
		found, err := document(t, at)
		if err == nil {
			return found, nil
		}
		tried = append(tried, err)
	}
	return nil, &triedError{tried}
}

// triedError says why none of several addresses has led to a document.
type triedError struct{ each []error }

func (e *triedError) Error() string {
	var texts []string
	for _, err := range e.each {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (e *triedError) Unwrap() []error { return e.each }

// unreachedError reports a document whose host did not answer: that may be due
// to where mcpconform runs.
type unreachedError struct {
	at  string
	err error
}

func (e *unreachedError) Error() string {
	err := e.err
	var start *transport.StartError
	if errors.As(err, &start) {
		err = start.Err
	}
	return fmt.Sprintf("%s cannot be reached from here: %v", wire.Quote(e.at, 120), err)
}

// reached ends the body if an error may be due to where mcpconform runs.
func reached(t *check.T, err error) {
	var unreached *unreachedError
	if errors.As(err, &unreached) {
		t.Inconclusive("%v", unreached)
	}
}

// unavailable are the statuses of what stands before a server that is not there.
var unavailable = []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// document fetches a JSON object.
func document(t *check.T, at string) (map[string]any, error) {
	r, err := t.Fetch(at)
	switch {
	case err != nil:
		return nil, &unreachedError{at, err}
	case slices.Contains(unavailable, r.Status):
		return nil, &unreachedError{at, fmt.Errorf("HTTP status %d", r.Status)}
	case r.Status != http.StatusOK:
		return nil, fmt.Errorf("%s is answered with HTTP status %d", wire.Quote(at, 120), r.Status)
	}
	var object map[string]any
	if err := json.Unmarshal(r.Body, &object); err != nil || object == nil {
		return nil, fmt.Errorf("the document at %s is not a JSON object", wire.Quote(at, 120))
	}
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(strings.ToLower(kind), "application/json") {
		return nil, fmt.Errorf("the document at %s has the content type %s, not application/json", wire.Quote(at, 120),
			wire.Quote(kind, 60))
	}
	return object, nil
}

func issuersProblem(document map[string]any) string {
	listed, present := document["authorization_servers"]
	list, ok := listed.([]any)
	switch {
	case !present:
		return "the resource metadata have no authorization_servers"
	case !ok:
		return "authorization_servers is " + wire.Show(listed) + ", not an array"
	case len(list) == 0:
		return "authorization_servers is empty"
	}
	for _, item := range list {
		text, ok := item.(string)
		if u, err := url.Parse(text); !ok || err != nil || u.Host == "" {
			return "authorization_servers holds " + wire.Show(item) + ", which is not the URL of an issuer"
		}
	}
	return ""
}

func issuersOf(document map[string]any) []string {
	list, _ := document["authorization_servers"].([]any)
	var issuers []string
	for _, item := range list {
		if text, ok := item.(string); ok && text != "" {
			issuers = append(issuers, text)
		}
	}
	return issuers
}

// judgeResource judges the canonical URI of the server (RFC 9728, section 3.3,
// basic/authorization#canonical-server-uri).
func judgeResource(t *check.T, value any) {
	const id = ids.AuthServerMetadataResource
	resource, ok := value.(string)
	if !ok || resource == "" {
		t.Violation(id, "the member resource is "+wire.Show(value)+", not a URI")
		return
	}
	u, err := url.Parse(resource)
	if err != nil || u.Scheme == "" || u.Host == "" {
		t.Violation(ids.AuthResourceHasScheme, "resource is "+wire.Quote(resource, 120)+
			", which has no scheme and host")
		return
	}
	if strings.Contains(resource, "#") {
		t.Violation(ids.AuthResourceNoFragment, "resource is "+wire.Quote(resource, 120)+", which has a fragment")
	}
	scheme, rest, _ := strings.Cut(resource, "://")
	host, _, _ := strings.Cut(rest, "/")
	if scheme != strings.ToLower(scheme) || host != strings.ToLower(host) {
		t.Violation(ids.AuthResourceLowercase, "resource is "+wire.Quote(resource, 120)+
			", with capitals in scheme or host")
	}
	a := t.Target.Settings.Authorization
	e, _ := t.Endpoint()
	inUse, err := url.Parse(cmp.Or(a.Resource, e.URL))
	if err != nil || inUse.Scheme == "unix" {
		return
	}
	if strings.HasSuffix(resource, "/") && !a.TrailingSlash && (u.Path == "/" || !strings.HasSuffix(inUse.Path, "/")) {
		t.Violation(ids.AuthResourceNoTrailingSlash, "resource is "+wire.Quote(resource, 120)+", with a final slash")
	}
	compareResource(t, id, u, inUse, a.Resource != "")
}

func compareResource(t *check.T, id string, named, inUse *url.URL, stated bool) {
	mine, theirs := strings.TrimSuffix(inUse.Path, "/"), strings.TrimSuffix(named.Path, "/")
	switch {
	case !stated && transport.Loopback(inUse.Hostname()) && !transport.Loopback(named.Hostname()) &&
		named.Scheme == "https":
		// A server is often tried on another machine than it is meant for.
		t.Inconclusive("the metadata name %s, and the server was reached at %s: set authorization.resource in "+
			"the configuration if the first is its public URL",
			wire.Quote(named.String(), 120), wire.Quote(inUse.Scheme+"://"+inUse.Host, 120))
	case !sameOrigin(named, inUse):
		t.Violation(id, "resource is "+wire.Quote(named.String(), 120)+", which is not the origin of the server")
	case mine == theirs:
	case theirs == "" || strings.HasPrefix(mine, theirs+"/"):
		t.Warning(id, "resource is "+wire.Quote(named.String(), 120)+", which is only a part of the URL of the server")
	default:
		t.Violation(id, "resource is "+wire.Quote(named.String(), 120)+", whose path is not that of the server")
	}
}

// sameOrigin compares scheme, host and port; all names of the loopback
// interface are the same.
func sameOrigin(a, b *url.URL) bool {
	host := func(u *url.URL) string {
		if transport.Loopback(u.Hostname()) {
			return "localhost"
		}
		return strings.ToLower(u.Hostname())
	}
	port := func(u *url.URL) string {
		return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)])
	}
	return strings.EqualFold(a.Scheme, b.Scheme) && host(a) == host(b) && port(a) == port(b)
}

// judgeTransportSecurity wants TLS wherever tokens go (OAuth 2.1, section 1.5).
func judgeTransportSecurity(t *check.T, metadataURL string, issuers []string) {
	const id = ids.AuthSecureCommunication
	e, _ := t.Endpoint()
	for what, raw := range map[string]string{"the server is reached at": e.URL,
		"the resource metadata are at": metadataURL} {
		if u, err := url.Parse(raw); err == nil && raw != "" {
			plainHTTP(t, id, what, u)
		}
	}
	for _, issuer := range issuers {
		if u, err := url.Parse(issuer); err == nil {
			plainHTTP(t, id, "an authorization server is at", u)
		}
	}
}

// plainHTTP breaks a requirement if a URL beyond this machine is not https.
func plainHTTP(t *check.T, id, what string, u *url.URL) {
	if u.Scheme != "http" || transport.Loopback(u.Hostname()) {
		return
	}
	message := what + " " + wire.Quote(u.Scheme+"://"+u.Host, 120) + ", without TLS"
	if transport.Private(u.Hostname()) {
		t.Warning(id, message) // a public front may stand before it
		return
	}
	t.Violation(id, message)
}

// maxIssuers is how many authorization servers are looked at.
const maxIssuers = 3

// judgeIssuer judges the metadata of one authorization server. It returns why
// it could not be reached, or "".
func judgeIssuer(t *check.T, issuer string) (unreached string) {
	const id = ids.AuthAsMetadata
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return "the authorization server is named " + wire.Quote(issuer, 120) + ", which is not a URL"
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host,
		Path: "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")}
	found, err := document(t, at.String())
	var silent *unreachedError
	if errors.As(err, &silent) {
		return "the authorization server " + silent.Error()
	}
	if err != nil {
		t.Exercised(id)
		if found = openIDConfiguration(t, u); found == nil {
			t.Violation(id, "there are no metadata of an authorization server: "+err.Error())
			return ""
		}
		t.Warning(id,
			"the authorization server publishes its metadata where OpenID Connect expects them, not where RFC "+
				"8414 does by default")
	}
	switch named, ok := found["issuer"].(string); {
	case !ok:
		t.Violation(id, "the issuer in the metadata of the authorization server is "+wire.Show(found["issuer"])+
			", not a string")
	case named == issuer:
	case strings.TrimSuffix(named, "/") == strings.TrimSuffix(issuer, "/"):
		t.Warning(id,
			fmt.Sprintf("the metadata name the issuer %s, and the resource metadata name it %s: the two differ "+
				"by a slash",
				wire.Quote(named, 120), wire.Quote(issuer, 120)))
	default:
		t.Violation(id, fmt.Sprintf("the metadata of the authorization server %s name another issuer, %s",
			wire.Quote(issuer, 120), wire.Quote(named, 120)))
	}
	t.Exercised(id)
	const registration = ids.AuthAsDynamicRegistration
	if endpoint, _ := found["registration_endpoint"].(string); endpoint == "" {
		t.Violation(registration, "the metadata of the authorization server "+wire.Quote(issuer, 120)+
			" do not name a registration_endpoint")
	}
	t.Exercised(registration, ids.AuthAsHTTPS)
	plainHTTP(t, ids.AuthAsHTTPS, "an authorization server is at", u)
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint"} {
		text, _ := found[name].(string)
		if endpoint, err := url.Parse(text); err == nil && text != "" {
			plainHTTP(t, ids.AuthAsHTTPS, "the "+name+" of the authorization server is at", endpoint)
		}
	}
	methods, _ := found["code_challenge_methods_supported"].([]any)
	if !slices.Contains(methods, any("S256")) {
		t.Note("the metadata of the authorization server %s do not say that it knows PKCE with S256",
			wire.Quote(issuer, 120))
	}
	return ""
}

// openIDConfiguration returns the metadata that OpenID Connect Discovery has
// for an issuer, or nil.
func openIDConfiguration(t *check.T, u *url.URL) map[string]any {
	const name = "/.well-known/openid-configuration"
	path := strings.TrimSuffix(u.Path, "/")
	for _, p := range slices.Compact([]string{path + name, name + path}) {
		at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: p}
		if found, err := document(t, at.String()); err == nil {
			return found
		}
	}
	return nil
}
