// Package mockauth holds the faults of authorization servers and their legal oddities. Faults prove that checks catch
// them; oddities prove that checks accuse nobody wrongly. Both change the reference authorization server.
package mockauth

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/schema"
)

// Setup is an authorization server, and what a run is told of it.
type Setup struct {
	authserver.Options
	// Path is that of the issuer.
	Path string
	// Wrap, unless nil, stands before the server.
	Wrap func(http.Handler) http.Handler
	// Protects has the run told the URL of a server whose metadata name the issuer.
	Protects bool
	// Untold has the run not told for which resource tokens are asked.
	Untold bool
	// Given is the client that the run is told of, or nil.
	Given *authserver.Client
}

// Resource is the server for which tokens are asked. Path is its path where the issuer is at the same origin.
const (
	Resource = "https://mcp.example/mcp"
	Path     = "/mcp"
)

// New returns the setup of the reference authorization server.
func New() *Setup { return &Setup{Options: authserver.Options{SignedTokens: true}} }

// Serve returns the server of a setup at an origin, its issuer, and the URL that a run is told.
func (s *Setup) Serve(origin string) (h http.Handler, target string, err error) {
	o := s.Options
	o.Issuer = origin + s.Path
	if s.Given != nil {
		o.Clients = append(slices.Clone(o.Clients), *s.Given)
	}
	as, err := authserver.New(o)
	if err != nil {
		return nil, "", err
	}
	h, target = as, o.Issuer
	if s.Protects {
		h, target = protecting(h, origin, o.Issuer), origin+Path
	}
	if s.Wrap != nil {
		h = s.Wrap(h)
	}
	return h, target, nil
}

// protecting serves the metadata of a protected server as well.
func protecting(next http.Handler, origin, issuer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != transport.WellKnownResource+Path {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"resource": "` + origin + Path + `", "authorization_servers": ["` + issuer + `"]}`))
	})
}

// Fault is one way in which an authorization server breaks a requirement.
type Fault = mockserver.FaultOf[Setup]

// Oddity is one way in which an authorization server may differ from the reference.
type Oddity struct {
	ID, Summary string
	Why         string // what makes it legal
	Anchor      string // of the page basic/authorization
	Untried     []string
	Apply       func(*Setup)
}

// Source returns the place that makes the oddity legal.
func (o Oddity) Source() schema.Source {
	return schema.Source{Page: "basic/authorization", Anchor: o.Anchor}
}

// Faults returns all faults.
func Faults() []Fault {
	return slices.Concat(metadataFaults, registrationFaults, authorizationFaults, tokenFaults, refreshFaults)
}

type apply = func(*Setup)

// ignoring has the server not keep a rule.
func ignoring(rules ...authserver.Rule) apply {
	return func(s *Setup) { s.Faults.Ignored = append(s.Faults.Ignored, rules...) }
}

// document changes the metadata.
func document(change func(map[string]any)) apply {
	return func(s *Setup) { s.Metadata = change }
}

// with sets members of the metadata; nil removes one.
func with(members map[string]any) apply {
	return document(func(d map[string]any) { set(d, members) })
}

func set(object, members map[string]any) {
	for name, v := range members {
		if object[name] = v; v == nil {
			delete(object, name)
		}
	}
}

// redirecting changes the parameters of redirects.
func redirecting(change func(url.Values)) apply {
	return func(s *Setup) { s.Redirect = change }
}

// matching compares redirect URIs otherwise.
func matching(same func(registered, used string) bool) apply {
	return func(s *Setup) {
		s.Faults.SameRedirect = func(registered, used string) bool {
			return authserver.SameRedirect(registered, used) || same(registered, used)
		}
	}
}

// denying refuses the calls of a step that fit, with an error code.
func denying(step authserver.Step, code string, fits func(authserver.Call) bool) apply {
	return func(s *Setup) {
		s.Faults.Deny = func(c authserver.Call) string {
			if c.Step == step && fits(c) {
				return code
			}
			return ""
		}
	}
}

// answer changes an answer before it is sent, and returns its status.
type answer = func(c authserver.Call, status int, h http.Header, body map[string]any) int

// answering changes the answers of a step: it returns their status.
func answering(step authserver.Step, change answer) apply {
	return func(s *Setup) {
		s.Faults.Answer = func(c authserver.Call, status int, h http.Header, body map[string]any) int {
			if c.Step != step {
				return status
			}
			return change(c, status, h, body)
		}
	}
}

// inPlaceOf gives answers of a step another status.
func inPlaceOf(own, other int, step authserver.Step) apply {
	return answering(step, func(_ authserver.Call, status int, _ http.Header, _ map[string]any) int {
		if status == own {
			return other
		}
		return status
	})
}

// succeeding sets members of the answers of a step that are no errors; nil removes one.
func succeeding(step authserver.Step, members map[string]any) apply {
	return answering(step, func(_ authserver.Call, status int, _ http.Header, body map[string]any) int {
		if status/100 == 2 {
			set(body, members)
		}
		return status
	})
}

// failing sets members of the errors of a step, and their status unless that is 0; nil removes a member.
func failing(step authserver.Step, status int, members map[string]any) apply {
	return answering(step, func(_ authserver.Call, was int, _ http.Header, body map[string]any) int {
		if was < 400 {
			return was
		}
		set(body, members)
		if status == 0 {
			return was
		}
		return status
	})
}

// location changes where redirects go.
func location(change func(c authserver.Call, to *url.URL)) apply {
	return answering(authserver.Authorization,
		func(c authserver.Call, status int, h http.Header, _ map[string]any) int {
			if to, err := url.Parse(h.Get("Location")); err == nil && h.Get("Location") != "" {
				change(c, to)
				h.Set("Location", to.String())
			}
			return status
		})
}

// requesting changes requests before the server sees them.
func requesting(change func(*http.Request)) apply {
	return func(s *Setup) {
		s.Wrap = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				change(r)
				next.ServeHTTP(w, r)
			})
		}
	}
}

func both(all ...apply) apply {
	return func(s *Setup) {
		for _, a := range all {
			a(s)
		}
	}
}
