package suites_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/calmmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/internal/proof/memory"
	"github.com/mcpconform/mcpconform/internal/proof/mockauth"
	"github.com/mcpconform/mcpconform/internal/proof/outputs"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// authorized runs the checks against an authorization server in this process.
func authorized(ctx context.Context, setup *mockauth.Setup, o suites.Options) (*result.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	network := new(memory.Network)
	l, err := network.Listen()
	if err != nil {
		return nil, err
	}
	origin := "http://" + l.Addr().String()
	h, target, err := setup.Serve(origin)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	defer served.Wait()
	defer s.Close()
	checks := suites.AuthorizationChecks{Endpoint: transport.Endpoint{URL: target, Dial: network.Dial}}
	if !setup.Protects && !setup.Untold {
		checks.Resource = mockauth.Resource
	}
	if c := setup.Given; c != nil {
		checks.ClientID, checks.ClientSecret, checks.RedirectURI = c.ID, c.Secret, c.Redirects[0]
	}
	o.Limits = wire.DefaultLimits
	if o.Trace == nil {
		o.Trace = wire.NewTrace(o.Limits)
	}
	run, _, err := suites.Run(ctx, checks, o)
	return run, err
}

// secretsOf are the names of what is secret in a login.
var secretsOf = []string{"code", "code_verifier", "client_secret", "access_token", "refresh_token"}

// echoes are authorization servers that show secrets where none is expected.
var echoes = []mockauth.Fault{
	{ID: "the request in the headers", Apply: echoing(func(h http.Header, raw []byte, asked url.Values) []byte {
		h.Set("X-Echo", asked.Encode())
		h.Set("X-Authorization", asked.Get("authorization"))
		return raw
	})},
	{ID: "the request in the error", Apply: echoing(func(_ http.Header, raw []byte, asked url.Values) []byte {
		o := objectIn(raw)
		if o == nil {
			return raw
		}
		o["error_description"], o["echo"] = asked.Encode(), asked
		raw, _ = json.Marshal(o)
		return raw
	})},
	{ID: "the request on a page", Apply: echoing(func(h http.Header, raw []byte, asked url.Values) []byte {
		if asked.Get("grant_type") == "" {
			return raw
		}
		h.Set("Content-Type", "text/html")
		return []byte("<p>" + asked.Encode() + "</p><p>" + asked.Get("authorization") + "</p>")
	})},
	{ID: "tokens in a form", Apply: echoing(func(h http.Header, raw []byte, _ url.Values) []byte {
		o := objectIn(raw)
		if o["access_token"] == nil {
			return raw
		}
		h.Set("Content-Type", "application/x-www-form-urlencoded")
		form := make(url.Values)
		for name, v := range o {
			form.Set(name, fmt.Sprint(v))
		}
		return []byte(form.Encode())
	})},
	{ID: "an answer that breaks off", Apply: echoing(func(_ http.Header, raw []byte, _ url.Values) []byte {
		if holdsSecret(raw) {
			raw = bytes.TrimSuffix(bytes.TrimSpace(raw), []byte("}"))
		}
		return raw
	})},
	{ID: "an answer in an object", Apply: echoing(func(_ http.Header, raw []byte, _ url.Values) []byte {
		if holdsSecret(raw) {
			raw, _ = json.Marshal(map[string]any{"data": []any{objectIn(raw)}})
		}
		return raw
	})},
	{ID: "an answer in an array", Apply: echoing(func(_ http.Header, raw []byte, _ url.Values) []byte {
		if holdsSecret(raw) {
			raw, _ = json.Marshal([]any{objectIn(raw)})
		}
		return raw
	})},
	{ID: "the code in a fragment", Apply: echoing(func(h http.Header, raw []byte, _ url.Values) []byte {
		if at := h.Get("Location"); at != "" {
			h.Set("Location", strings.Replace(at, "?", "#", 1))
		}
		return raw
	})},
	{ID: "the code on a page that posts it", Apply: echoing(func(h http.Header, raw []byte, _ url.Values) []byte {
		at, err := url.Parse(h.Get("Location"))
		if err != nil || at.Host == "" {
			return raw
		}
		h.Del("Location")
		h.Set("Content-Type", "text/html")
		return []byte(`<form method="post"><input type="hidden" name="code" value="` + at.Query().Get("code") + `"></form>`)
	})},
}

// echoing changes what an authorization server answers, by what it was asked.
func echoing(change func(h http.Header, body []byte, asked url.Values) []byte) func(*mockauth.Setup) {
	return func(s *mockauth.Setup) {
		s.Wrap = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, _ := url.ParseQuery(peek(r))
				asked.Set("authorization", r.Header.Get("Authorization"))
				answer := httptest.NewRecorder()
				next.ServeHTTP(answer, r)
				raw := change(answer.Header(), answer.Body.Bytes(), asked)
				maps.Copy(w.Header(), answer.Header())
				w.Header().Del("Content-Length")
				if answer.Header().Get("Location") == "" && answer.Code == http.StatusFound {
					answer.Code = http.StatusOK
				}
				w.WriteHeader(answer.Code)
				_, _ = w.Write(raw)
			})
		}
	}
}

func objectIn(raw []byte) map[string]any {
	var o map[string]any
	_ = json.Unmarshal(raw, &o) // what is none stays as it is
	return o
}

func holdsSecret(raw []byte) bool {
	o := objectIn(raw)
	return o["access_token"] != nil || o["client_secret"] != nil
}

// TestAuthorizationSecrets looks for what is secret in everything that a run leaves behind, whatever the authorization
// server does: it answers rightly, refuses, or echoes.
func TestAuthorizationSecrets(t *testing.T) {
	ordinary := mockauth.Fault{ID: "none", Apply: func(*mockauth.Setup) {}}
	for _, f := range append(brief.Part(t, slices.Concat(echoes, mockauth.Faults()), 3), ordinary) {
		setup := mockauth.New()
		f.Apply(setup)
		var mu sync.Mutex
		secrets, public := make(map[string]bool), make(map[string]bool)
		setup.Seen = func(c authserver.Call) {
			mu.Lock()
			defer mu.Unlock()
			for _, challenge := range c.Values["code_challenge"] {
				public[challenge] = public[challenge] || c.Values.Get("code_challenge_method") == "S256"
			}
			for _, name := range secretsOf {
				text, _ := c.Answer[name].(string)
				for _, secret := range append(c.Values[name], text) {
					secrets[secret] = len(secret) > 19 // shorter ones are made up
				}
			}
		}
		o := suites.Options{Trace: wire.NewTrace(wire.DefaultLimits)}
		run, err := authorized(t.Context(), setup, o)
		if err != nil {
			t.Fatal(err)
		}
		all, err := outputs.All(run, o.Trace)
		if err != nil {
			t.Fatal(err)
		}
		for secret, is := range secrets {
			for name, text := range all {
				if i := strings.Index(text, secret); is && !public[secret] && i >= 0 {
					t.Errorf("%s: the %s holds %q: …%s", f.ID, name, secret, text[max(0, i-80):i])
				}
			}
		}
	}
}

// TestAuthorizationKillMatrix proves the checks of authorization servers.
func TestAuthorizationKillMatrix(t *testing.T) {
	m := killmatrix.Matrix{
		File: "../docs/kill-matrix-authorization.md",
		Head: "# Kill matrix of authorization servers\n\n" +
			"Each fault of the mock authorization server, the requirement that it breaks, and the checks that catch it.\n" +
			"A fault that nothing catches fails the build, and so does a finding that a fault did not announce.\n" +
			"Written by `go test ./suites -run TestAuthorizationKillMatrix -update`.\n",
	}
	for _, f := range mockauth.Faults() {
		try := func(ctx context.Context, selected ...string) (*result.Run, error) {
			setup := mockauth.New()
			f.Apply(setup)
			return authorized(ctx, setup, suites.Options{Selection: suites.Selection{Select: selected}})
		}
		m.Faults = append(m.Faults, killmatrix.Fault{
			ID: f.ID, Requirement: f.Requirement, Summary: f.Summary, Collateral: f.Collateral, WarnOnly: f.WarnOnly,
			Run:      func(ctx context.Context) (*result.Run, error) { return try(ctx) },
			Selected: func(ctx context.Context) (*result.Run, error) { return try(ctx, f.Requirement) },
		})
	}
	m.Test(t)
}

// TestAuthorizationCalmMatrix is its counterpart: authorization servers that are odd and legal are accused of nothing.
func TestAuthorizationCalmMatrix(t *testing.T) {
	oddities := mockauth.Oddities()
	m := calmmatrix.Matrix{
		File: "../docs/calm-matrix-authorization.md",
		Head: "# Calm matrix of authorization servers\n\n" +
			"Each legal oddity of the mock authorization server, and what makes it legal. The checks find nothing on a\n" +
			"server with it, and whatever passes on the reference passes there, but for what cannot be tried.\n" +
			"Written by `go test ./suites -run TestAuthorizationCalmMatrix -update`.\n",
		Run: func(ctx context.Context, seed uint64, _ string, chosen ...int) (*result.Run, error) {
			setup := mockauth.New()
			for _, i := range chosen {
				oddities[i].Apply(setup)
			}
			return authorized(ctx, setup, suites.Options{Seed: seed})
		},
	}
	for _, o := range oddities {
		m.Oddities = append(m.Oddities, calmmatrix.Oddity{
			ID: o.ID, Summary: o.Summary, Why: o.Why, Source: o.Source(), Transports: []string{transport.NameHTTP},
			Untried: o.Untried, Changes: "the server",
		})
	}
	m.Test(t)
}

// TestEveryAuthorizationRequirementIsProved wants the reference to meet each requirement that can be observed, and a
// fault that breaks it.
func TestEveryAuthorizationRequirementIsProved(t *testing.T) {
	brief.WholeRuns(t)
	run, err := authorized(t.Context(), mockauth.New(), suites.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exonerated(t, run)
	for _, q := range run.Requirements {
		proved := slices.ContainsFunc(mockauth.Faults(), func(f mockauth.Fault) bool { return f.Requirement == q.ID })
		if q.Observable && (q.Verdict != result.Pass || !proved) {
			t.Errorf("%s is %s, %s; a fault breaks it: %t", q.ID, q.Verdict, q.Reason, proved)
		}
	}
	if run.Verdict != result.Conformant {
		t.Errorf("the verdict is %s: %s", run.Verdict, run.Reason)
	}
}

// TestAuthorizationResourceUntold judges a server that wants a resource, of a run that knows none: the run names the
// issuer, and says so. Where that is refused, it says what to give.
func TestAuthorizationResourceUntold(t *testing.T) {
	brief.WholeRuns(t)
	for name, test := range map[string]struct {
		served  string // the only resource, unless it is ""
		verdict result.Verdict
		note    string
		advice  int // how many requirements wait for --resource
	}{
		"the issuer is taken":   {"", result.Pass, "the run names", 0},
		"the issuer is refused": {mockauth.Resource, result.Inconclusive, "", 20},
	} {
		t.Run(name, func(t *testing.T) {
			setup := mockauth.New()
			setup.Untold = true
			setup.Faults.Deny = func(c authserver.Call) string {
				if test.served != "" && c.Step == authserver.Token && c.Values.Get("resource") != test.served {
					return "invalid_target"
				}
				return ""
			}
			run, err := authorized(t.Context(), setup, suites.Options{})
			if err != nil {
				t.Fatal(err)
			}
			exonerated(t, run)
			advised := 0
			for _, q := range run.Requirements {
				if strings.Contains(q.Reason, "give it with --resource") {
					advised++
				}
				if q.ID == "auth.as.code-once" && q.Verdict != test.verdict {
					t.Errorf("%s is %s: %s", q.ID, q.Verdict, q.Reason)
				}
				if q.ID == "auth.as.audience" && !strings.Contains(q.Reason, "give with --resource") {
					t.Errorf("%s is %s, and --resource is not hinted at: %s", q.ID, q.Verdict, q.Reason)
				}
			}
			if advised < test.advice || test.advice == 0 && advised > 0 {
				t.Errorf("%d requirements wait for --resource", advised)
			}
			notes := strings.Join(run.Notes, "\n")
			if test.note != "" && !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("the notes are %q", notes)
			}
		})
	}
}
