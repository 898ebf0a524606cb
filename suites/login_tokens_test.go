package suites_test

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The requirements that need other tokens than the valid one.
const (
	audience = "auth.server.audience-validated"
	expired  = "auth.server.expired-token-401"
	scope    = "auth.server.insufficient-scope-403"
	ofUser   = "security.session.bound-to-user"
)

// jwts makes the access tokens of an authorization server unsigned JWTs: the server sees the original again. The tokens
// are for the resource that was asked for, and of the scope.
type jwts struct {
	mu       sync.Mutex
	resource string
	scope    string
	scopes   map[string]string // by token
}

func (j *jwts) front(next http.Handler) http.Handler {
	grants := granting(func(answer map[string]any) {
		token := answer["access_token"].(string)
		j.scopes[token], answer["scope"] = j.scope, j.scope
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"` + j.resource + `"}`))
		answer["access_token"] = "e30." + claims + "." + token
	})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		j.mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/ask") {
			j.resource, j.scope = r.URL.Query().Get("resource"), r.URL.Query().Get("scope")
		}
		j.mu.Unlock()
		value := r.Header.Get("Authorization")
		if strings.Count(value, ".") == 2 && strings.HasPrefix(value, "Bearer e30.") {
			r.Header.Set("Authorization", "Bearer "+value[strings.LastIndex(value, ".")+1:])
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err == nil && bytes.Contains(body, []byte(`"tools/list"`)) {
			r.Header.Set("X-Lists", "tools")
		}
		if strings.HasSuffix(r.URL.Path, "/redeem") {
			j.mu.Lock()
			defer j.mu.Unlock()
		}
		grants.ServeHTTP(w, r)
	})
}

// limit refuses tools/list with a token of the scope read alone, if the server heeds scopes.
func (j *jwts) limit(p *server.Protection, refusal *server.Denial) {
	before := p.Verify
	p.Verify = func(token, resource string, r *http.Request) *server.Denial {
		if d := before(token, resource, r); d != nil {
			return d
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.scopes[token] == "read" && r.Header.Get("X-Lists") != "" {
			return refusal
		}
		return nil
	}
	p.Metadata = func(document map[string]any) { document["scopes_supported"] = []string{"read", "write"} }
}

// TestLoginTokens: a login brings the other tokens that checks need, and their findings.
func TestLoginTokens(t *testing.T) {
	lax := func(fits func(p *server.Protection, token string) bool) func(p *server.Protection) {
		return func(p *server.Protection) {
			before := p.Verify
			p.Verify = func(token, resource string, r *http.Request) *server.Denial {
				if d := before(token, resource, r); d != nil && !fits(p, token) {
					return d
				}
				return nil
			}
		}
	}
	issued := func(p *server.Protection, token string) bool { return p.User(token) != "" }
	second := check.Login{SecondUser: true}
	short := authserver.Options{Life: 5 * time.Second}
	strict := authserver.Options{
		Metadata: func(document map[string]any) {
			document["token_endpoint_auth_methods_supported"] = []string{authserver.AuthBasic, authserver.AuthPost}
		},
		Faults: authserver.Faults{Deny: func(c authserver.Call) string {
			basic := slices.Equal(c.Auth, []string{authserver.AuthBasic}) && c.Values.Has("client_id")
			if c.Step == authserver.Token && !basic {
				return "invalid_client"
			}
			return ""
		}},
	}
	for _, tt := range []struct {
		name    string
		g       *guarded
		jwt     bool
		refusal *server.Denial // of what the scope does not allow
		want    map[string]result.Verdict
	}{
		{name: "right", g: &guarded{login: second, options: short}, jwt: true, refusal: server.InsufficientScope,
			want: map[string]result.Verdict{audience: result.Pass, expired: result.Pass, scope: result.Pass,
				ofUser: result.Pass}},
		{name: "opaque", g: &guarded{login: second, options: short},
			want: map[string]result.Verdict{audience: result.Pass, expired: result.Pass, scope: result.Inconclusive,
				ofUser: result.Pass}},
		{name: "a client that is registered for client_secret_basic, and names itself in the body", g: &guarded{options: strict},
			want: map[string]result.Verdict{audience: result.Pass}},
		{name: "any issued token", g: &guarded{protect: lax(issued), options: short}, jwt: true,
			want: map[string]result.Verdict{audience: result.Fail, expired: result.Inconclusive,
				ofUser: result.Inconclusive}},
		{name: "any issued token, opaque", g: &guarded{protect: lax(issued)},
			want: map[string]result.Verdict{audience: result.Inconclusive, expired: result.Inconclusive}},
		{name: "sessions of anybody", g: &guarded{login: second, protect: func(p *server.Protection) { p.User = nil }},
			want: map[string]result.Verdict{ofUser: result.Warn}},
		{name: "401 for the scope", jwt: true, refusal: server.InvalidToken,
			want: map[string]result.Verdict{scope: result.Fail}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := cmp.Or(tt.g, new(guarded))
			j := &jwts{scopes: make(map[string]string)}
			if tt.jwt {
				g.front = j.front
			}
			if before := g.protect; tt.refusal != nil {
				g.protect = func(p *server.Protection) {
					if before != nil {
						before(p)
					}
					j.limit(p, tt.refusal)
				}
			}
			run := g.conduct(t, audience, expired, scope, ofUser)
			for id, want := range tt.want {
				if q := verdictOn(t, run, id); q.Verdict != want {
					t.Errorf("%s is %q, expected %q: %v", id, q.Verdict, want, q)
				}
			}
		})
	}
}

// TestProtectedReference: a run that is told the URL alone leaves nothing inconclusive on the protected reference server
// that the login can reach.
func TestProtectedReference(t *testing.T) {
	brief.WholeRuns(t)
	options := authserver.Options{Life: 5 * time.Second, Scopes: []string{"read", "call"}, SignedTokens: true}
	exercised := func(run *result.Run) (n int) {
		for _, q := range run.Requirements {
			if q.Verdict == result.Pass || q.Verdict == result.Fail || q.Verdict == result.Warn {
				n++
			}
		}
		return n
	}
	none := (&guarded{options: options, barred: true}).conduct(t)
	given := (&guarded{options: options, barred: true, given: true}).conduct(t)
	run := (&guarded{options: options, login: check.Login{SecondUser: true}}).conduct(t)
	found(t, run)
	for _, q := range run.Requirements {
		if q.Verdict == result.Inconclusive {
			t.Errorf("%s is inconclusive: %s", q.ID, q.Reason)
		}
	}
	n, one, all := exercised(none), exercised(given), exercised(run)
	t.Logf("requirements exercised: without a token %d, with one %d, with the login %d", n, one, all)
	if n >= one || one >= all {
		t.Error("the login was not needed")
	}
}
