package authserver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// RFC 8414.
var metadataChecks = []Check{
	{
		Name: "metadata/document", Requirements: []string{ids.AuthAsMetadata},
		Body: func(t *T) {
			const id = ids.AuthAsMetadata
			a, err := t.get(wellKnown(t.issuer))
			t.must(err)
			if t.elsewhere {
				t.Warn(id, party, "the metadata are only where OpenID Connect expects them, not where RFC 8414 has "+
					"them by default", a.events...)
				a = t.document
			}
			a.asked = "the request for the metadata"
			if !t.expect(id, a).To(haveStatus(200)) || !t.expect(id, a).To(haveMember("issuer")) {
				return
			}
			issuer := a.text("issuer")
			if issuer != t.issuer && same(issuer, t.issuer) {
				t.Warn(id, party, fmt.Sprintf("the metadata name the issuer %s, which differs from %s by a final slash",
					wire.Quote(issuer, 120), wire.Quote(t.issuer, 120)), a.events...)
				return
			}
			t.fact(id, issuer == t.issuer, fmt.Sprintf("the metadata of %s name another issuer, %s",
				wire.Quote(t.issuer, 120), wire.Quote(issuer, 120)), a)
		},
	},
	{
		Name: "metadata/members", Requirements: []string{ids.AuthAsMetadataMembers},
		Body: func(t *T) {
			const id = ids.AuthAsMetadataMembers
			t.published()
			t.fact(id, true, "")
			for _, problem := range memberProblems(t.document.object) {
				t.fact(id, false, problem, t.document)
			}
		},
	},
	{
		Name: "metadata/https", Requirements: []string{ids.AuthAsHTTPS},
		Body: func(t *T) {
			t.published()
			t.fact(ids.AuthAsHTTPS, true, "")
			for name, v := range t.document.object {
				text, _ := v.(string)
				u, err := url.Parse(text)
				if err == nil && (name == "issuer" || strings.HasSuffix(name, "_endpoint")) {
					t.plainHTTP(name, u)
				}
			}
		},
	},
	{
		Name: "metadata/pkce", Requirements: []string{ids.AuthAsPKCES256},
		Body: func(t *T) {
			t.published()
			listed, present := t.document.object["code_challenge_methods_supported"]
			if !present {
				t.note("the metadata do not say that the authorization server knows " +
					"PKCE (code_challenge_methods_supported)")
				return
			}
			t.fact(ids.AuthAsPKCES256, slices.Contains(wire.Items(listed), any("S256")),
				"code_challenge_methods_supported is "+wire.Show(listed)+"; S256 has to be one of them", t.document)
		},
	},
}

// published ends the body if there are no metadata.
func (t *T) published() {
	if t.document == nil {
		t.untried("%s", t.missing)
	}
}

// wellKnown returns where the metadata of an issuer are (RFC 8414, section 3.1).
func wellKnown(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return issuer
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host,
		Path: "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")}
	return at.String()
}

// The members of RFC 8414 by their types.
var (
	endpointMembers = []string{"authorization_endpoint", "token_endpoint", "registration_endpoint",
		"revocation_endpoint", "introspection_endpoint", "jwks_uri"}
	listMembers = []string{"response_types_supported", "scopes_supported", "response_modes_supported",
		"grant_types_supported", "token_endpoint_auth_methods_supported", "code_challenge_methods_supported"}
	requiredMembers = []string{"issuer", "authorization_endpoint", "token_endpoint", "response_types_supported"}
)

// memberProblems says what is wrong with the members of the metadata.
func memberProblems(document map[string]any) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for _, name := range requiredMembers {
		if _, ok := document[name]; !ok {
			add("the metadata have no %s", name)
		}
	}
	for _, name := range append([]string{"issuer"}, endpointMembers...) {
		v, ok := document[name]
		text, _ := v.(string)
		u, err := url.Parse(text)
		switch {
		case !ok:
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			add("%s is %s, not a URL", name, wire.Show(v))
		case strings.Contains(text, "#"):
			add("%s is %s, which has a fragment", name, wire.Quote(text, 120))
		case name == "issuer" && u.RawQuery != "":
			add("the issuer is %s, which has a query", wire.Quote(text, 120))
		}
	}
	for _, name := range listMembers {
		v, ok := document[name]
		list, is := v.([]any)
		switch {
		case !ok:
		case !is || slices.ContainsFunc(list, func(item any) bool { _, text := item.(string); return !text }):
			add("%s is %s, not an array of strings", name, wire.Show(v))
		case len(list) == 0:
			add("%s is empty; RFC 8414 has such members left out", name)
		}
	}
	return problems
}

// plainHTTP breaks the requirement of TLS if a URL beyond this machine is not https.
func (t *T) plainHTTP(name string, u *url.URL) {
	if u.Scheme != "http" || transport.Loopback(u.Hostname()) {
		return
	}
	message := "the " + name + " is at " + wire.Quote(u.Scheme+"://"+u.Host, 120) + ", without TLS"
	if transport.Private(u.Hostname()) {
		t.Warn(ids.AuthAsHTTPS, party, message, t.document.events...) // a public front may stand before it
		return
	}
	t.Fail(ids.AuthAsHTTPS, party, message, t.document.events...)
}
