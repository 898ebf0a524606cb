package suites_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// guarded is a reference server that is protected by its own authorization server.
type guarded struct {
	options authserver.Options
	// front stands before both; it may be nil.
	front func(next http.Handler) http.Handler
	open  bool // the server demands no token
	login check.Login
	// barred keeps the run from logging in. It may be given a token.
	barred, given bool
	// protect changes how the server protects itself; it may be nil.
	protect func(p *server.Protection)

	mu    sync.Mutex
	asked map[authserver.Step]int
}

// conduct runs the suite, or a selection, on the server in virtual time.
func (g *guarded) conduct(t *testing.T, ids ...string) (run *result.Run) {
	t.Helper()
	g.asked = make(map[authserver.Step]int)
	virtual.Test(t, func(t *testing.T) {
		front := func(h http.Handler) http.Handler { return h }
		if g.front != nil {
			front = g.front
		}
		var s http.Handler
		at := listen(t, front(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(w, r) })))
		g.options.Issuer = at.URL
		g.options.Seen = func(c authserver.Call) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.asked[c.Step]++
		}
		as, err := authserver.New(g.options)
		if err != nil {
			t.Fatal(err)
		}
		o, p := serverOptions(), new(server.Protection)
		as.Protect(p, true)
		if g.protect != nil {
			g.protect(p)
		}
		if !g.open {
			o.HTTP.Protection = p
		}
		handler := server.New(o).HTTP()
		t.Cleanup(handler.Close)
		s = handler
		if g.open {
			s = elsewhere(handler, as)
		}
		endpoint, login := below(at, server.PathMCP), &g.login
		if g.barred {
			login = nil
		}
		if g.given {
			endpoint.Header = http.Header{"Authorization": {"Bearer " + as.Issue(endpoint.URL, time.Hour)}}
		}
		run, _, err = suites.Run(t.Context(), suites.ServerChecks{
			Dialer: &transport.HTTP{Endpoint: endpoint}, Login: login,
			Settings: check.Settings{CallTools: check.CallAll, ToolRoles: roles, GivesUpAfter: time.Minute},
		}, suites.Options{Selection: suites.Selection{Select: ids}})
		if err != nil {
			t.Fatal(err)
		}
	})
	return run
}

// elsewhere passes what is not for the server to an authorization server.
func elsewhere(s http.Handler, as http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == server.PathMCP {
			s.ServeHTTP(w, r)
			return
		}
		as.ServeHTTP(w, r)
	})
}

// granting changes the answers with an access token.
func granting(change func(answer map[string]any)) func(next http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/redeem") {
				next.ServeHTTP(w, r)
				return
			}
			held := httptest.NewRecorder()
			next.ServeHTTP(held, r)
			var answer map[string]any
			if json.Unmarshal(held.Body.Bytes(), &answer) == nil && held.Code == http.StatusOK {
				change(answer)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(held.Code)
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
}

const shortLife = 2 * time.Second

// TestLoginOfShortLife: a server whose tokens lapse in the run gets the verdicts of one whose tokens do not.
func TestLoginOfShortLife(t *testing.T) {
	brief.WholeRuns(t)
	verdicts := func(run *result.Run) map[string]string {
		all := make(map[string]string)
		for _, q := range run.Requirements {
			all[q.ID] = string(q.Verdict)
		}
		return all
	}
	want := verdicts((&guarded{}).conduct(t))
	for name, g := range map[string]*guarded{
		"refreshed":       {options: authserver.Options{Life: shortLife}},
		"logged in again": {options: authserver.Options{Life: shortLife, NoRefresh: true}},
		"after a 401": {options: authserver.Options{Life: shortLife,
			Faults: authserver.Faults{Ignored: []authserver.Rule{authserver.RefreshRotated}}},
			front: granting(func(answer map[string]any) { answer["expires_in"] = "3600" })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := g.conduct(t)
			if run.Login != nil {
				t.Error(run.Login.Text)
			}
			got := verdicts(run)
			for id := range want {
				// Only where a token lapses there is an expired one.
				if got[id] != want[id] && id != "auth.server.expired-token-401" {
					t.Errorf("%s is %q, expected %q", id, got[id], want[id])
				}
			}
			if g.asked[authserver.Token] < 2 {
				t.Error("no token has lapsed")
			}
		})
	}
}

// TestLoginLapses: the run says why it has no token any more.
func TestLoginLapses(t *testing.T) {
	page, err := os.ReadFile("../docs/authorization.md")
	if err != nil {
		t.Fatal(err)
	}
	var redeemed int
	once := func(next http.Handler) http.Handler { // a second token is refused, and so is a second login
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/redeem") {
				if redeemed++; redeemed > 1 {
					answering(http.StatusBadRequest, "application/json", `{"error":"invalid_grant"}`)(w, r)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
	g := &guarded{options: authserver.Options{Life: shortLife}, front: once}
	run := g.conduct(t)
	if run.Verdict != result.Incomplete || run.Login == nil {
		t.Fatalf("the verdict is %s with the login %+v", run.Verdict, run.Login)
	}
	want := "\n> " + strings.ReplaceAll(run.Login.Text, g.options.Issuer, "https://mcp.example") + "\n"
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/authorization.md lacks:\n%s", want)
	}
}

// TestLoginOfUnprotected: nobody is asked for a token that the server does not demand.
func TestLoginOfUnprotected(t *testing.T) {
	g := &guarded{open: true}
	g.conduct(t, "base.*", "tools.*", "auth.*")
	if len(g.asked) > 0 {
		t.Errorf("the authorization server was asked: %v", g.asked)
	}
}
