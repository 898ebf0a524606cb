package suites_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// consenting is a protected server whose authorization server shows a page that asks for consent.
type consenting struct {
	*httptest.Server
	refused bool // the user does not agree
	detour  bool // the authorization endpoint leads to the page by redirects, which need a cookie
}

const agreed = "agreed" // the parameter with which the page is answered

func (c *consenting) start(t *testing.T) {
	var s http.Handler
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Cookie("login")
		switch {
		case !strings.HasSuffix(r.URL.Path, "/ask"), r.URL.Query().Has(agreed):
			s.ServeHTTP(w, r)
		case c.detour && err != nil:
			http.SetCookie(w, &http.Cookie{Name: "login", Value: "begun", Path: "/"})
			http.Redirect(w, r, r.URL.String(), http.StatusSeeOther)
		default:
			answering(http.StatusOK, "text/html", "<html>Do you consent?")(w, r)
		}
	}))
	t.Cleanup(c.Close)
	as, err := authserver.New(authserver.Options{Issuer: c.URL, Redirect: func(result url.Values) {
		if c.refused {
			result.Del("code")
			result.Set("error", "access_denied")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	o, p := serverOptions(), new(server.Protection)
	as.Protect(p, true)
	o.HTTP.Protection = p
	handler := server.New(o).HTTP()
	t.Cleanup(handler.Close)
	s = handler
}

// conduct runs a few requirements with a login that a user is asked about.
func (c *consenting) conduct(t *testing.T, consent *client.Consent) *result.Run {
	t.Helper()
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{
		Dialer: &transport.HTTP{Endpoint: transport.Endpoint{URL: c.URL + server.PathMCP}},
		Login:  &check.Login{Consent: consent},
	}, suites.Options{Selection: suites.Selection{Select: []string{"ping.*"}}})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// browser plays the user's browser. It first comes back with what mcpconform does not wait for.
type browser struct {
	t       *testing.T
	opening sync.WaitGroup
	pages   []string
	back    []int // the statuses of what came back
}

func (b *browser) show(page, _ string) error {
	b.pages = append(b.pages, page)
	b.opening.Go(func() {
		u, err := url.Parse(page)
		if err != nil {
			b.t.Error(err)
			return
		}
		q := u.Query()
		b.get(q.Get("redirect_uri") + "?code=forged&state=another")
		q.Set(agreed, "yes")
		u.RawQuery = q.Encode()
		b.get(u.String())
	})
	return nil
}

// get gets a page, and follows redirects.
func (b *browser) get(page string) {
	resp, err := http.Get(page)
	if err != nil {
		b.t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	b.back = append(b.back, resp.StatusCode)
}

// TestLoginConsent has a user agree, directly and behind redirects.
func TestLoginConsent(t *testing.T) {
	for _, detour := range []bool{false, true} {
		c := &consenting{detour: detour}
		c.start(t)
		b := &browser{t: t}
		run := c.conduct(t, &client.Consent{Show: b.show, Wait: time.Minute})
		b.opening.Wait()
		if run.Login != nil || run.Verdict != result.Conformant {
			t.Errorf("the verdict is %s with the login %+v", run.Verdict, run.Login)
		}
		if len(b.pages) != 1 || len(b.back) != 2 || b.back[0] != http.StatusBadRequest || b.back[1] != http.StatusOK {
			t.Errorf("the browser showed %d pages and came back with %v", len(b.pages), b.back)
		}
	}
}

// TestLoginWithoutConsent compares what a run says without the user's consent with the page about it.
func TestLoginWithoutConsent(t *testing.T) {
	page, err := os.ReadFile("../docs/authorization.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		c       consenting
		consent client.Consent
	}{
		{"The user does not agree", consenting{refused: true}, client.Consent{Wait: time.Minute}},
		{"Nobody answers", consenting{}, client.Consent{Wait: 10 * time.Millisecond,
			Show: func(string, string) error { return nil }}},
		{"There is no browser", consenting{}, client.Consent{Wait: time.Minute,
			Show: func(string, string) error { return os.ErrNotExist }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.start(t)
			b := &browser{t: t}
			if tt.consent.Show == nil {
				tt.consent.Show = b.show
			}
			run := tt.c.conduct(t, &tt.consent)
			b.opening.Wait()
			if run.Login == nil {
				t.Fatalf("the results have no login: %s", run.Reason)
			}
			want := "## " + tt.name + "\n\n> " +
				strings.ReplaceAll(run.Login.Text, tt.c.URL, "https://mcp.example") + "\n"
			if !strings.Contains(string(page), want) {
				t.Errorf("docs/authorization.md lacks:\n%s", want)
			}
		})
	}
}
