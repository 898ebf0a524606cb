package suites_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/killmatrix"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The user's trusted origins are the control for the checks of foreign ones.
func TestTrustedOrigins(t *testing.T) {
	const app = "https://app.example"
	exactly := func(origin string) bool { return origin == app }
	for _, tt := range []struct {
		name          string
		trusts        func(origin string) bool // what the server trusts beside the loopback
		config        []string
		foreign, null result.Verdict
	}{
		{"none", func(string) bool { return false }, nil, result.Pass, result.Pass},
		{"one", exactly, []string{app}, result.Pass, result.Pass},
		{"look-alikes as well", func(o string) bool { return strings.HasPrefix(o, app) }, []string{app}, result.Fail, result.Pass},
		{"not the one", func(string) bool { return false }, []string{app}, result.Inconclusive, result.Pass},
		{"null on purpose", func(o string) bool { return o == "null" }, []string{"null"}, result.Pass, result.Skip},
		{"null", func(o string) bool { return o == "null" }, nil, result.Pass, result.Warn},
		{"all on purpose", func(string) bool { return true }, []string{"*"}, result.Skip, result.Skip},
	} {
		for over, path := range map[string]string{transport.NameHTTP: server.PathMCP, transport.NameSSE: server.PathSSE} {
			t.Run(tt.name+" over "+over, func(t *testing.T) {
				handler := server.New(serverOptions()).HTTP()
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.trusts(r.Header.Get("Origin")) {
						r.Header.Del("Origin")
					}
					handler.ServeHTTP(w, r)
				}))
				t.Cleanup(s.Close)
				t.Cleanup(handler.Close)
				at := transport.Endpoint{URL: s.URL + path}
				var d transport.Dialer = &transport.HTTP{Endpoint: at}
				if over == transport.NameSSE {
					d = &transport.SSE{Endpoint: at}
				}
				foreign, null, local := over+".server.origin-foreign", over+".server.origin-null", over+".server.bind-localhost"
				run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: d, Settings: check.Settings{CallTools: check.CallNone, TrustedOrigins: tt.config, Public: true}}, suites.Options{Selection: suites.Selection{Select: []string{foreign, null, local}}})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]result.Verdict{foreign: tt.foreign, null: tt.null, local: result.Skip}
				for _, q := range run.Requirements {
					if q.Verdict != want[q.ID] {
						t.Errorf("%s is %s, want %s: %s", q.ID, q.Verdict, want[q.ID], killmatrix.Why(q))
					}
				}
			})
		}
	}
}

// A finding on a server that can be reached from outside shows what answered there.
func TestBoundToAllInterfaces(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Skip(err)
	}
	handler := server.New(serverOptions()).HTTP()
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(handler.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const id = "http.server.bind-localhost"
	d := &transport.HTTP{Endpoint: transport.Endpoint{URL: "http://127.0.0.1:" + port + server.PathMCP}}
	run, _, err := suites.Run(t.Context(), suites.ServerChecks{Dialer: d, Settings: check.Settings{CallTools: check.CallNone}}, suites.Options{Selection: suites.Selection{Select: []string{id}}})
	if err != nil {
		t.Fatal(err)
	}
	q := run.Requirements[0]
	if q.Verdict == result.Inconclusive {
		t.Skip(q.Reason)
	}
	if q.Verdict != result.Warn || len(q.Findings) != 1 {
		t.Fatalf("%s is %s: %s", id, q.Verdict, killmatrix.Why(q))
	}
	kinds := make(map[string]bool)
	for _, e := range q.Findings[0].Evidence {
		kinds[e.From+" "+e.Kind] = true
		if e.Kind == "http-request" && strings.Contains(e.Text, "POST http://127.0.0.1") {
			t.Errorf("the evidence shows a request to the loopback address: %s", e.Text)
		}
	}
	if !kinds["client http-request"] || !kinds["server http-response"] || !kinds["server message"] {
		t.Errorf("the evidence does not show what answers outside: %v", q.Findings[0].Evidence)
	}
}
