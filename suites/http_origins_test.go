package suites_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/killmatrix"
	"github.com/mcpconform/mcpconform/suites/result"
)

// What the user says of origins is the control of the checks of foreign ones.
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
		{"not the one", func(string) bool { return false }, []string{app}, result.Inconclusive, result.Inconclusive},
		{"null on purpose", func(o string) bool { return o == "null" }, []string{"null"}, result.Pass, result.Skip},
		{"null", func(o string) bool { return o == "null" }, nil, result.Pass, result.Fail},
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
				if over == transport.NameSSE && tt.name == "not the one" {
					want[null] = result.Pass // which has a control of its own
				}
				for _, q := range run.Requirements {
					if q.Verdict != want[q.ID] {
						t.Errorf("%s is %s, want %s: %s", q.ID, q.Verdict, want[q.ID], killmatrix.Why(q))
					}
				}
			})
		}
	}
}
