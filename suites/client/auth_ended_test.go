package client_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestWhereALoginEnded stops clients that are meant to log in at each step. The finding has to say which one it was.
func TestWhereALoginEnded(t *testing.T) {
	const id, waits = "auth.client.handles-401", "a client that waits for a browser"
	for _, test := range []struct {
		name, next string
		change     func(*reference.Standalone)
		asked      int // requests that are told
	}{
		{"nothing", "requested the resource metadata", WithoutAuthorization, 1},
		{"resource metadata", "requested /.well-known/oauth-authorization-server of the authorization server", stoppingAt(
			"/.well-known/oauth-authorization-server"), 2},
		{"metadata of the authorization server", "registered at the registration_endpoint", EndingAt(Registration), 3},
		{"a registration that is refused", `says: "redirect_uris is not an array of URIs"`,
			Registering(func(d map[string]any) { delete(d, "redirect_uris") }), 4},
		{"registration", "opened the authorization_endpoint in a browser", EndingAt(Authorization), 4},
		{"an authorization that is refused", `says: "unsupported_response_type"`,
			Requested(func(q url.Values) { q.Set("response_type", "token") }), 5},
		{"a code", "taken the code from the redirect", EndingAt(TokenRequest), 5},
		{"a code that is not known", "sent a token request that is accepted",
			Formed(func(form url.Values, _ http.Header) { form.Set("code", "another") }), 6},
		{"a token", "repeated its request with the token", TokenAs(func(h *Head, _ string) { h.Set("Authorization") }), 7},
		{waits, "opened the authorization_endpoint in a browser", EndingAt(Authorization), 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run := conducted(t, suites.ClientScenarios{
				Scenarios: []string{clients.AuthorizationBaseline}, Authorizes: true,
				Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
					c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}
					test.change(&c)
					err := c.Run(ctx)
					if test.name == waits {
						<-ctx.Done()
					}
					return err
				}),
			}, suites.Options{Timeout: 20 * time.Second})
			q := requirement(t, run, id)
			if q.Verdict != result.Fail {
				t.Fatalf("%s is %s: %s", id, q.Verdict, q.Reason)
			}
			message := q.Findings[0].Message
			if !strings.Contains(message, test.next) ||
				strings.Contains(message, "It was stopped at the time limit.") != (test.name == waits) ||
				strings.Count(message, "HTTP status")+strings.Count(message, "no answer") != test.asked {
				t.Errorf("the finding does not name the step: %s", message)
			}
			if test.name != "a registration that is refused" {
				return
			}
			page, err := os.ReadFile("../../docs/clients.md")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), "\n> "+message+"\n") {
				t.Errorf("docs/clients.md does not show this finding: %s", message)
			}
		})
	}
}

// stoppingAt ends the client before it asks for a document.
func stoppingAt(path string) func(*reference.Standalone) {
	return RoundTripping(func(next http.RoundTripper) http.RoundTripper {
		return RoundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, path) {
				return nil, ErrDead
			}
			return next.RoundTrip(r)
		})
	})
}

// TestLoginIsOptional: a client that is not said to log in may end at any step.
func TestLoginIsOptional(t *testing.T) {
	run := conducted(t, suites.ClientScenarios{
		Scenarios: []string{clients.AuthorizationBaseline},
		Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
			c := reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}
			EndingAt(Authorization)(&c)
			return c.Run(ctx)
		}),
	}, suites.Options{Timeout: 20 * time.Second})
	if found := verdicts(run); len(found) > 0 {
		t.Errorf("found: %v", found)
	}
}

// TestLeftOpen: a client may end where the specification leaves open what it does. The run only notes how far it came.
func TestLeftOpen(t *testing.T) {
	const id = "auth.client.as-metadata"
	run := conducted(t, suites.ClientScenarios{
		Scenarios: []string{clients.AuthorizationBaseline, "auth/redirects"}, Authorizes: true,
		Launch: inProcess(func(ctx context.Context, p client.Endpoint) error { // which follows no redirects
			return reference.Standalone{URL: p.URL, Dial: p.Dial, Timeout: answerTime}.Run(ctx)
		}),
	}, suites.Options{Timeout: 20 * time.Second})
	clean(t, run)
	notes := strings.Join(requirement(t, run, id).Notes, "\n")
	if !strings.Contains(notes, "does not say that it has to") || !strings.Contains(notes, "HTTP status 302") {
		t.Errorf("the notes on %s are %q", id, notes)
	}
}
