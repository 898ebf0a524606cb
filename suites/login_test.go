package suites_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// setUp is a protected server that refuses every token, and its authorization server, with one thing broken.
type setUp struct {
	name    string
	options authserver.Options
	pages   map[string]http.HandlerFunc // served in place of the right page, by the end of its path
	issuers any                         // in place of the list of authorization servers
	other   bool                        // the resource metadata are for another server
	named   string                      // where the server says that the resource metadata are, unless it is ""
}

func answering(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const resourceMetadata = transport.WellKnownResource + server.PathMCP

func setUps() []setUp {
	page := func(path string, status int, kind, body string) map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{path: answering(status, kind, body)}
	}
	typed := func(kind string) authserver.Options {
		return authserver.Options{Faults: authserver.Faults{
			Answer: func(c authserver.Call, status int, _ http.Header, body map[string]any) int {
				delete(body, "token_type")
				if c.Step == authserver.Token && kind != "" {
					body["token_type"] = kind
				}
				return status
			},
		}}
	}
	const html, object = "text/html", "application/json"
	return []setUp{
		{name: "No resource metadata", pages: page(resourceMetadata, 404, html, "none")},
		{name: "Resource metadata behind a token", pages: page(resourceMetadata, 401, html, "who are you?")},
		{name: "Resource metadata as HTML", pages: page(resourceMetadata, 200, html, "<html>")},
		{name: "Resource metadata that fail", pages: page(resourceMetadata, 503, html, "later")},
		{name: "No authorization server named", issuers: []string{}},
		{name: "Resource metadata of another server", other: true},
		{name: "No metadata of the authorization server", pages: page(authserver.WellKnown, 404, html, "none")},
		{name: "No registration and no client id", options: authserver.Options{NoRegistration: true}},
		{name: "Registration fails", pages: page("/enrol", 500, html, "oops")},
		{name: "S256 is not listed", options: authserver.Options{
			Metadata: func(document map[string]any) { delete(document, "code_challenge_methods_supported") },
		}},
		{name: "PKCE refused", options: authserver.Options{Redirect: func(result url.Values) {
			result.Del("code")
			result.Set("error", "invalid_request")
		}}},
		{name: "The token endpoint fails", pages: page("/redeem", 400, object, `{"error": "invalid_grant"}`)},
		{name: "A token of another type", options: typed("mac")},
		{name: "A token without a type", options: typed("")},
		{name: "Resource metadata without TLS", named: "http://mcp.example" + resourceMetadata},
		{name: "An authorization server without TLS", issuers: []string{"http://issuer.example"}},
		{name: "An endpoint without TLS", options: authserver.Options{
			Metadata: func(document map[string]any) { document["token_endpoint"] = "http://issuer.example/token" },
		}},
		{name: "The token is refused", options: authserver.Options{}},
		{name: "A page that asks for consent", pages: page("/ask", 200, html, "<html>Do you consent?")},
	}
}

// serve serves both servers on one origin.
func (s setUp) serve(t *testing.T) transport.Endpoint {
	var origin string
	var as *authserver.Server
	at := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for path, page := range s.pages {
			if strings.HasSuffix(r.URL.Path, path) {
				page(w, r)
				return
			}
		}
		switch r.URL.Path {
		case server.PathMCP:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+
				cmp.Or(s.named, origin+resourceMetadata)+`"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case resourceMetadata:
			document := map[string]any{"resource": origin + server.PathMCP, "authorization_servers": []string{origin}}
			if s.other {
				document["resource"] = "https://other.example/mcp"
			}
			if s.issuers != nil {
				document["authorization_servers"] = s.issuers
			}
			answering(http.StatusOK, "application/json", string(client.Marshal(document)))(w, r)
		default:
			as.ServeHTTP(w, r)
		}
	}))
	origin = at.URL
	s.options.Issuer = origin
	var err error
	if as, err = authserver.New(s.options); err != nil {
		t.Fatal(err)
	}
	return below(at, server.PathMCP)
}

// TestLoginFails compares what a run says that cannot log in with the page about it.
func TestLoginFails(t *testing.T) {
	page, err := os.ReadFile("../docs/authorization.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range setUps() {
		t.Run(s.name, func(t *testing.T) {
			at := s.serve(t)
			run, _, err := suites.Run(t.Context(), suites.ServerChecks{
				Dialer: &transport.HTTP{Endpoint: at}, Login: new(check.Login),
			}, suites.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if run.Verdict == result.Conformant {
				t.Errorf("the verdict is %s", run.Verdict)
			}
			if run.Login == nil {
				t.Fatalf("the results have no login: %s", run.Reason)
			}
			origin := strings.TrimSuffix(at.URL, server.PathMCP)
			want := "## " + s.name + "\n\n> " + strings.ReplaceAll(run.Login.Text, origin, "https://mcp.example") + "\n"
			if !strings.Contains(string(page), want) {
				t.Errorf("docs/authorization.md lacks:\n%s", want)
			}
		})
	}
}

// TestLoginAsClient logs in as a client that the user has named: none is registered, although that is offered.
func TestLoginAsClient(t *testing.T) {
	s := setUp{pages: map[string]http.HandlerFunc{"/enrol": func(http.ResponseWriter, *http.Request) {
		t.Error("a client was registered")
	}}}
	at := s.serve(t)
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{
		Dialer: &transport.HTTP{Endpoint: at}, Login: &check.Login{ClientID: "unknown"},
	}, suites.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if run.Login == nil || len(run.Login.Steps) != 3 {
		t.Errorf("the login is %+v, expected one that ends at the authorization", run.Login)
	}
}
