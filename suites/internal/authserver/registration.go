package authserver

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// RFC 7591.
var registrationChecks = []Check{
	{
		Name: "registration/offered", Requirements: []string{ids.AuthAsDynamicRegistration},
		Body: func(t *T) {
			const id = ids.AuthAsDynamicRegistration
			t.published()
			if t.document.text("registration_endpoint") == "" {
				t.fact(id, false, "the metadata do not name a registration_endpoint", t.document)
				return
			}
			a := t.register("an ordinary registration", metadataOf(t.ordinaryMethod(), loopback))
			if slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests},
				a.status) {
				// Authorization servers may set a policy of their own
				// (basic/authorization#dynamic-client-registration).
				t.untried("the authorization server admits no client by itself: a registration was answered with %s", a)
			}
			t.expect(id, a).To(haveStatus(200, 201))
		},
	},
	{
		Name: "registration/answer", Requirements: []string{ids.AuthAsRegistrationAnswer},
		Body: func(t *T) {
			const id = ids.AuthAsRegistrationAnswer
			if t.given() {
				t.untried("no client is registered, as one was given")
			}
			a := t.register("an ordinary registration", metadataOf(t.ordinaryMethod(), loopback))
			if a.status/100 != 2 {
				t.untried("%s was answered with %s", a.asked, a)
			}
			t.prefer(id, a).To(haveStatus(http.StatusCreated))
			if !t.expect(id, a).To(haveMember("client_id")) {
				return
			}
			list, _ := a.object["redirect_uris"].([]any)
			t.fact(id, slices.Contains(list, any(loopback)), "the answer to a registration has the redirect_uris "+
				wire.Show(a.object["redirect_uris"])+"; all that was registered is to be returned", a)
		},
	},
	{
		Name: "registration/secret", Requirements: []string{ids.AuthAsRegistrationAnswer},
		Body: func(t *T) {
			a := t.confidential().answer
			if a == nil {
				t.untried("it takes another client than the one that was given")
			}
			_, number := a.object["client_secret_expires_at"].(float64)
			t.fact(ids.AuthAsRegistrationAnswer, number, "client_secret_expires_at is "+
				wire.Show(a.object["client_secret_expires_at"])+" beside a client_secret; a number is required", a)
		},
	},
	{
		Name: "registration/unknown-members", Requirements: []string{ids.AuthAsRegistrationUnknownMembers},
		Body: func(t *T) {
			t.twins = t.admitted().events
			metadata := metadataOf(t.ordinaryMethod(), loopback)
			metadata["mcpconform_unknown"] = "text"
			a := t.register("a registration with a member of a made-up name", metadata)
			t.expect(ids.AuthAsRegistrationUnknownMembers, a).To(haveStatus(200, 201))
		},
	},
	{
		Name: "registration/errors", Requirements: []string{ids.AuthAsRegistrationError},
		Body: func(t *T) {
			const id = ids.AuthAsRegistrationError
			t.twins = t.admitted().events
			refused := false
			each(map[string]any{"is a number": 1, "holds a number": []any{1},
				"holds a URI without a scheme": []any{"/callback"}}, func(what string, redirects any) {
				metadata := metadataOf(t.ordinaryMethod())
				metadata["redirect_uris"] = redirects
				a := t.register("a registration whose redirect_uris "+what, metadata)
				if a.status < 400 {
					return // what has to be refused is another matter
				}
				refused = true
				t.expect(id, a).To(haveMember("error"))
				t.prefer(id, a).To(haveStatus(http.StatusBadRequest))
			})
			if !refused {
				t.untried("the authorization server refuses no registration that the run has tried")
			}
		},
	},
	{
		Name: "registration/redirects", Requirements: []string{ids.AuthAsRegisteredRedirects},
		Body: func(t *T) {
			const id, insecure = ids.AuthAsRegisteredRedirects, "http://client.example/callback"
			t.twins = t.admitted().events
			for _, redirects := range [][]string{{insecure}, {}} {
				a := t.register(fmt.Sprintf("a registration with the redirect_uris %q", redirects),
					metadataOf(t.ordinaryMethod(), redirects...))
				list, _ := a.object["redirect_uris"].([]any)
				// A value that the server replaces is not registered (RFC 7591, section 3.2.1).
				accepted := a.status/100 == 2 && (len(redirects) == 0 && len(list) == 0 ||
					slices.Contains(list, any(insecure)))
				t.fact(id, !accepted, a.asked+
					" was accepted; a redirect URI has to be https, at loopback, or private to the client", a)
			}
		},
	},
}

// admitted returns the answer to an ordinary registration. It ends the body if there is none.
func (t *T) admitted() *answer {
	c := t.ordinary()
	if c.answer == nil {
		t.untried("no client was registered, as one was given")
	}
	return c.answer
}
