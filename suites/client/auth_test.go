package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// meddling changes the requests of the flow, and what answers them.
type meddling struct {
	request  func(r *http.Request, form url.Values)
	response func(r *http.Request, resp *http.Response)
}

// RoundTrip sends a request. The form is that of the query or of the body.
func (t meddling) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.request != nil {
		form := r.URL.Query()
		posted := r.Header.Get("Content-Type") == "application/x-www-form-urlencoded"
		if posted {
			raw, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if form, err = url.ParseQuery(string(raw)); err != nil {
				return nil, err
			}
		}
		t.request(r, form)
		if posted {
			body := form.Encode()
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		} else if r.URL.RawQuery != "" {
			r.URL.RawQuery = form.Encode()
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && t.response != nil {
		t.response(r, resp)
	}
	return resp, err
}

// asking changes the authorization request.
func asking(change func(form url.Values)) meddling {
	return meddling{request: func(_ *http.Request, form url.Values) {
		if form.Get("response_type") != "" {
			change(form)
		}
	}}
}

// redeeming changes the token request.
func redeeming(change func(form url.Values)) meddling {
	return meddling{request: func(_ *http.Request, form url.Values) {
		if form.Get("grant_type") != "" {
			change(form)
		}
	}}
}

// each changes the resource parameter wherever it is.
func each(change func(resource string) string) meddling {
	return meddling{request: func(_ *http.Request, form url.Values) {
		if form.Has("resource") {
			form.Set("resource", change(form.Get("resource")))
		}
	}}
}

// reading changes JSON documents that the client reads.
func reading(change func(r *http.Request, document map[string]any)) meddling {
	return meddling{response: func(r *http.Request, resp *http.Response) {
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var document map[string]any
		if err == nil && json.Unmarshal(raw, &document) == nil {
			change(r, document)
			raw, _ = json.Marshal(document)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	}}
}

// elsewhere sends requests that fit to another place.
func elsewhere(fits func(r *http.Request) bool, change func(u *url.URL)) meddling {
	return meddling{request: func(r *http.Request, _ url.Values) {
		if fits(r) {
			change(r.URL)
			r.Host = r.URL.Host
		}
	}}
}

// believing is a client that takes every state for its own.
func believing() meddling {
	var mu sync.Mutex
	state := ""
	return meddling{
		request: func(_ *http.Request, form url.Values) {
			if form.Get("response_type") != "" {
				mu.Lock()
				defer mu.Unlock()
				state = form.Get("state")
			}
		},
		response: func(_ *http.Request, resp *http.Response) {
			back, err := url.Parse(resp.Header.Get("Location"))
			if err != nil || back.String() == "" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			q := back.Query()
			q.Set("state", state)
			back.RawQuery = q.Encode()
			resp.Header.Set("Location", back.String())
		},
	}
}

// constant is a client that sends the same state each time.
func constant() meddling {
	m := believing()
	remember := m.request
	m.request = func(r *http.Request, form url.Values) {
		remember(r, form)
		if form.Get("response_type") != "" {
			form.Set("state", "constant")
		}
	}
	return m
}

// tripping sends another request in place of each token request. It gets the body as
// text.
type tripping func(r *http.Request, body string) *http.Request

func (f tripping) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r = f(r, string(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// repeating sends each token request twice.
type repeating struct{}

func (repeating) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	r.Body, again.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		var second *http.Response
		if second, err = http.DefaultTransport.RoundTrip(again); err == nil {
			err = second.Body.Close()
		}
	}
	return resp, err
}

func about(part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.Contains(r.URL.Path, part) }
}

// authorizationFault is a client that departs in the flow.
type authorizationFault struct {
	name, requirement string
	want              result.Verdict
	scenario          string
	fault             http.RoundTripper
}

func authorizationFaults() []authorizationFault {
	const flow = client.AuthorizationBaseline
	remove := func(name string) func(url.Values) { return func(form url.Values) { form.Del(name) } }
	set := func(name, value string) func(url.Values) { return func(form url.Values) { form.Set(name, value) } }
	return []authorizationFault{
		{"no resource in the authorization request", "auth.client.resource-authorization-request", result.Fail, flow, asking(remove("resource"))},
		{"no resource in the token request", "auth.client.resource-token-request", result.Fail, flow, redeeming(remove("resource"))},
		{"no resource in the refresh request", "auth.client.resource-token-request", result.Fail, "auth/refresh", redeeming(func(form url.Values) {
			if form.Get("grant_type") == "refresh_token" {
				form.Del("resource")
			}
		})},
		{"resource only when it is supported", "auth.client.resource-always-sent", result.Fail, flow, asking(remove("resource"))},
		{"resource elsewhere", "auth.client.resource-identifies-server", result.Fail, flow, each(func(string) string { return "https://mcp.example.com/mcp" })},
		{"resource with a query", "auth.client.resource-canonical", result.Fail, flow, each(func(s string) string { return s + "?session=1" })},
		{"resource without path", "auth.client.resource-most-specific", result.Warn, flow, each(func(s string) string { return strings.TrimSuffix(s, "/mcp") })},
		{"resource without scheme", "auth.resource.has-scheme", result.Fail, flow, each(func(s string) string { return strings.TrimPrefix(s, "http://") })},
		{"resource with a fragment", "auth.resource.no-fragment", result.Fail, "auth/odd-url", each(func(s string) string { return s + "#start" })},
		{"resource in capitals", "auth.resource.lowercase", result.Warn, "auth/odd-url", each(func(s string) string { return strings.Replace(s, "localhost", "LocalHost", 1) })},
		{"resource with a slash", "auth.resource.no-trailing-slash", result.Warn, "auth/root", each(func(s string) string { return s + "/" })},
		{"no PKCE", "auth.client.pkce-challenge", result.Fail, flow, asking(remove("code_challenge"))},
		{"short challenge", "auth.client.pkce-challenge", result.Fail, flow, asking(set("code_challenge", "short"))},
		{"plain PKCE", "auth.client.pkce-s256", result.Fail, flow, asking(set("code_challenge_method", "plain"))},
		{"PKCE without a method", "auth.client.pkce-s256", result.Fail, flow, asking(remove("code_challenge_method"))},
		{"no verifier", "auth.client.pkce-verifier", result.Fail, flow, redeeming(remove("code_verifier"))},
		{"another verifier", "auth.client.pkce-verifier", result.Fail, flow, redeeming(set("code_verifier", strings.Repeat("v", 43)))},
		{"same challenge twice", "auth.client.pkce-fresh", result.Fail, "auth/lapsed", asking(set("code_challenge", strings.Repeat("c", 43)))},
		{"same state twice", "auth.client.state-used", result.Warn, "auth/lapsed", constant()},
		{"no state", "auth.client.state-used", result.Warn, flow, asking(remove("state"))},
		{"state not missed", "auth.client.state-missing-discarded", result.Warn, "auth/state-missing", believing()},
		{"state not compared", "auth.client.state-mismatch-discarded", result.Warn, "auth/state-mismatch", believing()},
		{"redirect URI of another kind", "auth.client.redirect-uri-scheme", result.Fail, flow, asking(set("redirect_uri", "http://client.example.com/callback"))},
		{"redirect URI not registered", "auth.client.redirect-uri-registered", result.Fail, flow, asking(set("redirect_uri", "http://127.0.0.1:33418/other"))},
		{"registration without redirect URIs", "auth.client.dynamic-registration", result.Warn, flow, meddling{request: func(r *http.Request, _ url.Values) {
			if strings.Contains(r.URL.Path, "enrol") {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"client_name":"x"}`)), 19
			}
		}}},
		{"guessed endpoints", "auth.client.as-metadata", result.Fail, flow, reading(func(_ *http.Request, document map[string]any) {
			if issuer, ok := document["issuer"].(string); ok {
				document["registration_endpoint"] = issuer + "/register"
			}
		})},
		{"guessed server", "auth.client.resource-metadata", result.Fail, flow, elsewhere(about("oauth-protected-resource"), func(u *url.URL) {
			u.Path = "/.well-known/oauth-authorization-server"
		})},
		{"metadata only from the well-known URL", "auth.client.parse-www-authenticate", result.Fail, "auth/metadata-url", elsewhere(about("/documents/"), func(u *url.URL) {
			u.Path = "/.well-known/oauth-protected-resource"
		})},
		{"metadata only from the well-known URL, with several challenges", "auth.client.parse-www-authenticate", result.Fail, "auth/challenges", elsewhere(about("/documents/"), func(u *url.URL) {
			u.Path = "/.well-known/oauth-protected-resource/mcp"
		})},
		{"metadata only from the well-known URL, with challenges in a list", "auth.client.parse-www-authenticate", result.Fail, "auth/challenge-list", elsewhere(about("/documents/"), func(u *url.URL) {
			u.Path = "/.well-known/oauth-protected-resource/mcp"
		})},
		{"path of the issuer appended", "auth.client.as-metadata-location", result.Fail, "auth/issuer-path", elsewhere(about("oauth-authorization-server/tenant"), func(u *url.URL) {
			u.Path = "/tenant/one/.well-known/oauth-authorization-server"
		})},
		{"issuer not compared", "auth.client.as-metadata-issuer", result.Fail, "auth/other-issuer", reading(func(r *http.Request, document map[string]any) {
			if _, ok := document["issuer"]; ok {
				document["issuer"] = "http://" + r.URL.Host
			}
		})},
		{"resource not compared", "auth.client.resource-metadata-check", result.Fail, "auth/other-resource", reading(func(r *http.Request, document map[string]any) {
			if _, ok := document["resource"]; ok {
				document["resource"] = "http://" + r.URL.Host + "/mcp"
			}
		})},
		{"one authorization server only", "auth.client.selects-as", result.Warn, "auth/two-servers", reading(func(_ *http.Request, document map[string]any) {
			if list, ok := document["authorization_servers"].([]any); ok && len(list) > 1 {
				document["authorization_servers"] = []any{}
			}
		})},
		{"authorization server elsewhere only", "auth.client.as-location-free", result.Warn, "auth/same-origin", reading(func(r *http.Request, document map[string]any) {
			list, _ := document["authorization_servers"].([]any)
			if slices.Contains(list, any("http://"+r.URL.Host)) {
				document["authorization_servers"] = []any{}
			}
		})},
		{"token request with GET", "auth.client.token-request-form", result.Fail, flow, tripping(func(r *http.Request, body string) *http.Request {
			get := r.Clone(r.Context())
			get.Method, get.URL.RawQuery, get.Body, get.ContentLength = http.MethodGet, body, http.NoBody, 0
			return get
		})},
		{"token request in the query", "auth.client.token-request-form", result.Fail, flow, tripping(func(r *http.Request, body string) *http.Request {
			post := r.Clone(r.Context())
			post.URL.RawQuery, post.Body, post.ContentLength = body, http.NoBody, 0
			return post
		})},
		{"code redeemed twice", "auth.client.code-once", result.Warn, flow, repeating{}},
		{"secret not sent in the form", "auth.client.token-endpoint-auth", result.Fail, "auth/token-post", redeeming(remove("client_secret"))},
		{"secret not sent in the header", "auth.client.token-endpoint-auth", result.Fail, "auth/token-basic", meddling{request: func(r *http.Request, _ url.Values) {
			r.Header.Del("Authorization")
		}}},
		{"secret sent in two ways", "auth.client.token-endpoint-auth", result.Fail, "auth/token-basic", redeeming(set("client_secret", "again"))},
		{"secret sent in another way", "auth.client.token-endpoint-auth", result.Warn, "auth/token-basic", meddling{request: func(r *http.Request, form url.Values) {
			if id, secret, ok := r.BasicAuth(); ok {
				r.Header.Del("Authorization")
				form.Set("client_id", id)
				form.Set("client_secret", secret)
			}
		}}},
	}
}

// TestAuthorizationFaultsAreCaught proves the scenarios about authorization.
func TestAuthorizationFaultsAreCaught(t *testing.T) {
	for _, test := range authorizationFaults() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := authorized(t, test.scenario, func(c *reference.Standalone) { c.Authorizer.Transport = test.fault })
			if got := verdicts(run)[test.requirement]; got != test.want {
				t.Errorf("%s is %q, want %q; found: %v; %s", test.requirement, got, test.want, verdicts(run), run.Reason)
			}
		})
	}
}

// authorized launches the reference client with a fault at a protected server.
func authorized(t *testing.T, scenario string, fault func(*reference.Standalone)) *result.Run {
	t.Helper()
	return conduct(t, suites.ClientScenarios{Scenarios: []string{client.AuthorizationBaseline, scenario}, Authorizes: true, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		c := reference.Standalone{URL: p.URL, Timeout: answerTime, Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret}}
		if p.Scenario == scenario || scenario == client.AuthorizationBaseline {
			fault(&c)
		}
		return c.Run(ctx)
	})}, suites.Options{Timeout: 20 * time.Second})
}

// tokenFault is a client that shows its token in another way.
type tokenFault struct {
	name, requirement string
	change            func(r *http.Request)
}

func tokenFaults() []tokenFault {
	token := func(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }
	// without takes the token from messages that hold a text.
	without := func(text string) func(r *http.Request) {
		return func(r *http.Request) {
			if r.Body == nil {
				return
			}
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if err == nil && bytes.Contains(body, []byte(text)) {
				r.Header.Del("Authorization")
			}
		}
	}
	return []tokenFault{
		{"without a token in notifications", "auth.client.every-request", without("notifications/initialized")},
		{"without a token in answers", "auth.client.every-request", without(`"id":"authorized-ping"`)},
		{"without a token at times", "auth.client.every-request", func(r *http.Request) {
			if r.Method == http.MethodGet {
				r.Header.Del("Authorization")
			}
		}},
		{"in a header of its own", "auth.client.bearer-header", func(r *http.Request) {
			if given := token(r.Header); given != "" {
				r.Header.Set("X-Access-Token", given)
				r.Header.Del("Authorization")
			}
		}},
		{"by another scheme", "auth.client.bearer-header", func(r *http.Request) {
			if given := token(r.Header); given != "" {
				r.Header.Set("Authorization", "Token "+given)
			}
		}},
		{"in the query as well", "auth.client.no-token-in-query", func(r *http.Request) { r.URL.RawQuery = "access_token=" + token(r.Header) }},
		{"in two places", "auth.client.one-token-method", func(r *http.Request) { r.URL.RawQuery = "token=" + token(r.Header) }},
		{"of somebody else", "auth.client.no-foreign-tokens", func(r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				r.Header.Set("Authorization", "Bearer a-token-from-somewhere-else")
			}
		}},
		{"never", "auth.client.request-with-token", func(r *http.Request) { r.Header.Del("Authorization") }},
	}
}

// TestTokenFaultsAreCaught changes how the client shows its token.
func TestTokenFaultsAreCaught(t *testing.T) {
	for _, test := range tokenFaults() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := authorized(t, client.AuthorizationBaseline, func(c *reference.Standalone) {
				c.URL = through(t, c.URL, test.change)
				c.Authorizer.Transport = reading(func(_ *http.Request, document map[string]any) {
					if document["resource"] != nil {
						document["resource"] = c.URL
					}
				})
			})
			if got := verdicts(run)[test.requirement]; got != broken(test.requirement) {
				t.Errorf("%s is %q; found: %v; %s", test.requirement, got, verdicts(run), run.Reason)
			}
		})
	}
}

// broken is the verdict on a requirement that is not met.
func broken(id string) result.Verdict {
	if q, _ := schema.Lookup(id); q.Level.AsStrongAs(schema.Must) {
		return result.Fail
	}
	return result.Warn
}

// TestRedirectWithToken runs a client whose transport follows redirects, with its
// token or without it.
func TestRedirectWithToken(t *testing.T) {
	for name, test := range map[string]struct {
		shows bool
		want  result.Verdict
	}{"with the token": {true, result.Warn}, "without the token": {false, result.Pass}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := authorized(t, "auth/redirect", func(c *reference.Standalone) {
				u, err := url.Parse(c.URL)
				if err != nil {
					t.Error(err)
					return
				}
				proxy := httptest.NewServer(&httputil.ReverseProxy{
					Rewrite: func(r *httputil.ProxyRequest) {
						r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
						r.Out.Host = u.Host
					},
					FlushInterval: -1,
					ModifyResponse: func(resp *http.Response) error {
						if resp.StatusCode != http.StatusTemporaryRedirect {
							return nil
						}
						r, err := http.NewRequestWithContext(resp.Request.Context(), http.MethodPost, resp.Header.Get("Location"), nil)
						if err != nil {
							return err
						}
						if test.shows {
							r.Header.Set("Authorization", resp.Request.Header.Get("Authorization"))
						}
						followed, err := http.DefaultTransport.RoundTrip(r)
						if err == nil {
							err = followed.Body.Close()
						}
						return err
					},
				})
				t.Cleanup(proxy.Close)
				c.URL = proxy.URL + u.Path
				c.Authorizer.Transport = reading(func(_ *http.Request, document map[string]any) {
					if document["resource"] != nil {
						document["resource"] = c.URL
					}
				})
			})
			if q := requirement(t, run, "auth.client.no-foreign-tokens"); q.Verdict != test.want {
				t.Errorf("the verdict is %s: %s %v", q.Verdict, q.Reason, q.Findings)
			}
		})
	}
}

// TestUnauthorizedClients are clients that do not seek authorization, or only
// as far as they like.
func TestUnauthorizedClients(t *testing.T) {
	run := func(t *testing.T, authorizes bool, visit func(ctx context.Context, p client.Endpoint) error) map[string]result.Verdict {
		t.Helper()
		r := conduct(t, suites.ClientScenarios{Scenarios: []string{client.AuthorizationBaseline, "auth/lapsed", "auth/root"}, Authorizes: authorizes, Launch: inProcess(visit)}, suites.Options{Timeout: 20 * time.Second})
		return verdicts(r)
	}
	knock := func(ctx context.Context, p client.Endpoint) error { return simple(ctx, p) }
	// It is optional: whoever leaves it alone is not blamed, unless it is told to be able to.
	for id, v := range run(t, false, knock) {
		if strings.HasPrefix(id, "auth.") {
			t.Errorf("%s is %s", id, v)
		}
	}
	unsought := run(t, true, knock)
	if unsought["auth.client.handles-401"] != result.Fail || unsought["auth.http-conform"] != result.Warn {
		t.Errorf("that no authorization is sought is %v", unsought)
	}
	stubborn := func(ctx context.Context, p client.Endpoint) error {
		conn, err := (&transport.HTTP{Endpoint: transport.Endpoint{URL: p.URL}}).Dial(ctx, wire.NewTrace(wire.DefaultLimits).Connect(transport.NameHTTP, "stubborn"))
		if err != nil {
			return err
		}
		s := reference.New(conn, reference.Options{Timeout: answerTime})
		defer s.Close(ctx)
		for range 30 {
			_, _ = s.Call(ctx, "initialize", s.InitializeParams())
		}
		return nil
	}
	if got := run(t, false, stubborn)["auth.client.handles-401"]; got != result.Fail {
		t.Errorf("endless repetition is %q", got)
	}
	// Where a client takes its id from is its own affair.
	foreign := authorized(t, "auth/no-registration", func(c *reference.Standalone) { c.Authorizer.ID = "" })
	if q := requirement(t, foreign, "auth.client.other-client-id"); q.Verdict != result.Inconclusive {
		t.Errorf("a client id of its own is %s", q.Verdict)
	}
	// It does not guess where clients are registered.
	guessing := authorized(t, "auth/no-registration", func(c *reference.Standalone) {
		c.Authorizer.ID = ""
		c.Authorizer.Transport = meddling{response: func(_ *http.Request, resp *http.Response) {
			raw, _ := io.ReadAll(resp.Body)
			var document map[string]any
			if issuer, ok := "", json.Unmarshal(raw, &document) == nil; ok && document["token_endpoint"] != nil {
				issuer, _ = document["issuer"].(string)
				document["registration_endpoint"] = issuer + "/register"
				raw, _ = json.Marshal(document)
			}
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		}}
	})
	if got := verdicts(guessing)["auth.client.other-client-id"]; got != result.Warn {
		t.Errorf("a guessed endpoint is %q", got)
	}
	// A new token is not asked for in the middle of a session.
	lapsed := authorized(t, "auth/lapsed", func(c *reference.Standalone) {
		c.Wrap = func(conn transport.Conn) transport.Conn { return struct{ transport.Conn }{conn} }
	})
	if got := verdicts(lapsed)["auth.client.handles-401"]; got != result.Warn {
		t.Errorf("ignoring 401 in a session is %q", got)
	}
}

// TestNoTokenIsShown looks for what is secret in the flow in everything that a
// run leaves behind.
func TestNoTokenIsShown(t *testing.T) {
	var mu sync.Mutex
	var secrets []string
	keep := func(texts ...string) {
		mu.Lock()
		defer mu.Unlock()
		secrets = append(secrets, texts...)
	}
	spy := meddling{
		request: func(_ *http.Request, form url.Values) {
			for _, name := range []string{"code", "code_verifier", "refresh_token", "client_secret"} {
				keep(form.Get(name))
			}
		},
		response: func(r *http.Request, resp *http.Response) {
			reading(func(_ *http.Request, document map[string]any) {
				for _, name := range []string{"access_token", "refresh_token"} {
					text, _ := document[name].(string)
					keep(text)
				}
			}).response(r, resp)
		},
	}
	run, trace, err := suites.Run(t.Context(), suites.ClientScenarios{Scenarios: []string{client.AuthorizationBaseline, "auth/refresh", "auth/no-registration", "auth/root"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		return reference.Standalone{URL: p.URL, Timeout: answerTime, Authorizer: &reference.Authorizer{
			ID: p.ClientID, Secret: p.ClientSecret, Transport: spy,
		}}.Run(ctx)
	})}, suites.Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clean(t, run)
	var left bytes.Buffer
	if _, err := trace.WriteTo(&left); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&left).Encode(run); err != nil {
		t.Fatal(err)
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
	if len(secrets) < 10 {
		t.Fatalf("there were only %d secrets", len(secrets))
	}
	for _, s := range secrets {
		if strings.Contains(left.String(), s) {
			t.Errorf("%s is shown", s)
		}
	}
}

// provedByFlow returns the requirements that the faults of this file prove: what
// breaks them is no message, so that package mockclient has none of them.
func provedByFlow() map[string]bool {
	proved := map[string]bool{ // TestUnauthorizedClients
		"auth.client.handles-401": true, "auth.http-conform": true, "auth.client.other-client-id": true,
	}
	for _, f := range authorizationFaults() {
		proved[f.requirement] = true
	}
	for _, f := range tokenFaults() {
		proved[f.requirement] = true
	}
	return proved
}
