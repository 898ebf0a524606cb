package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/outputs"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	clients "github.com/mcpconform/mcpconform/suites/internal/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestForeignClientID leaves a client open that does not use the id that it was told: where
// it takes its id from is its own affair.
func TestForeignClientID(t *testing.T) {
	run := conduct(t, suites.ClientScenarios{
		Scenarios: []string{clients.AuthorizationBaseline, "auth/no-registration"}, Authorizes: true,
		Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
			return reference.Standalone{URL: p.URL, Timeout: answerTime}.Run(ctx)
		}),
	}, suites.Options{Timeout: 20 * time.Second})
	if q := requirement(t, run, "auth.client.other-client-id"); q.Verdict != result.Inconclusive {
		t.Errorf("a client id of its own is %s", q.Verdict)
	}
}

// spy keeps what is secret in the requests of the flow and in their answers.
type spy struct {
	mu      sync.Mutex
	secrets []string
}

func (s *spy) keep(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = append(s.secrets, texts...)
}

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	form, _ := url.ParseQuery(string(sent))
	for _, name := range []string{"code", "code_verifier", "refresh_token", "client_secret"} {
		s.keep(form.Get(name))
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	came, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(came))
	var document map[string]any
	if err == nil && json.Unmarshal(came, &document) == nil {
		for _, name := range []string{"access_token", "refresh_token"} {
			text, _ := document[name].(string)
			s.keep(text)
		}
	}
	return resp, err
}

// TestNoTokenIsShown looks for what is secret in the flow in everything that a
// run leaves behind.
func TestNoTokenIsShown(t *testing.T) {
	var flow spy
	run, trace, err := suites.Run(t.Context(), suites.ClientScenarios{Scenarios: []string{clients.AuthorizationBaseline, "auth/refresh", "auth/no-registration", "auth/root"}, Launch: inProcess(func(ctx context.Context, p client.Endpoint) error {
		return reference.Standalone{URL: p.URL, Timeout: answerTime, Authorizer: &reference.Authorizer{
			ID: p.ClientID, Secret: p.ClientSecret, Transport: &flow,
		}}.Run(ctx)
	})}, suites.Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clean(t, run)
	all, err := outputs.All(run, trace)
	if err != nil {
		t.Fatal(err)
	}
	secrets := slices.DeleteFunc(flow.secrets, func(s string) bool { return s == "" })
	if len(secrets) < 10 {
		t.Fatalf("there were only %d secrets", len(secrets))
	}
	for _, s := range secrets {
		for name, text := range all {
			if strings.Contains(text, s) {
				t.Errorf("%s is shown: %s", s, name)
			}
		}
	}
}
