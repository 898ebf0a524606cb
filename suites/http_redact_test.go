package suites_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/outputs"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// TestSecretsStayOut repeats the user's secrets in everything that a server
// can say, and wants none of them in any report or in the trace.
func TestSecretsStayOut(t *testing.T) {
	brief.WholeRuns(t)
	const token, key = "s3cr3t-tok\u00e9n-value", "k3y-in-the-query"
	o := serverOptions()
	o.Info = map[string]any{"name": "server " + key, "title": token, "version": "1 " + token}
	handler := server.New(o).HTTP()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Own") == "" || r.URL.Query().Get("key") != key {
			http.Error(w, "the secrets are missing", http.StatusForbidden)
			return
		}
		body := peek(r)
		if strings.Contains(body, "no-such-method") {
			// A finding with the secret in its evidence and in its message.
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Echo", key)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+idIn(body)+`,"error":{"code":-1,"message":"not with `+token+` and `+key+`"}}`)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(handler.Close)
	header := http.Header{"X-Own": {token}}
	e := transport.Endpoint{URL: s.URL + server.PathMCP + "?key=" + key, Header: header}
	e.Redactor = transport.NewRedactor(header, e.URL)
	run, trace, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: &transport.HTTP{Endpoint: e}, Settings: check.Settings{CallTools: check.CallSafe}}, suites.Options{Redactor: e.Redactor, Target: result.Target{URL: e.String()}})
	if err != nil {
		t.Fatal(err)
	}
	failed := false
	for _, q := range run.Requirements {
		failed = failed || q.ID == "base.error.method-not-found" && q.Verdict == result.Fail
	}
	if !failed {
		t.Error("the run has not come to the finding whose evidence holds the secrets")
	}
	all, err := outputs.All(run, trace)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range all {
		for _, secret := range []string{token, key, `s3cr3t-tok\u00e9n`} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s holds a secret: …%s…", name, text[max(0, i-200):min(len(text), i+60)])
			}
		}
		if shows := !slices.Contains([]string{"attestation", "badge", "summary"}, name); shows &&
			!strings.Contains(text, transport.Redacted) {
			t.Errorf("%s does not show that something was taken out", name)
		}
	}
}

// idIn returns the id of a request.
func idIn(body string) string {
	_, rest, _ := strings.Cut(body, `"id":`)
	id, _, _ := strings.Cut(rest, ",")
	return strings.TrimRight(id, "}")
}

// peek reads the body of a request and puts it back.
func peek(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

// onOff is a switch; it is safe for concurrent use.
type onOff struct {
	mu  sync.Mutex
	off bool
}

func newSwitch() *onOff { return &onOff{} }

func (s *onOff) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = !on
}

func (s *onOff) isOff() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off
}
