//go:build linux

package transport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// A relay changes the addresses at the server's origin in a challenge and in the resource of metadata, and no others.
func TestRelayOfProtectedServer(t *testing.T) {
	noLeaks(t)
	for name, c := range map[string]struct{ challenge, path, metadata string }{
		"well-known": {`Bearer resource_metadata="SERVER/.well-known/oauth-protected-resource/mcp"`,
			WellKnownResource + "/mcp", ` {"a":1, "resource": "SERVER/mcp", "authorization_servers":["HIDDEN"]} `},
		"named": {`Basic realm="HIDDEN, x", Bearer Resource_Metadata=SERVER/m?q=1`, "/m",
			`{"resource":"SERVER"}`},
		"no challenge": {"", WellKnownResource, `{"resource" :"SERVER/?a=b"}`},
		"not named":    {"", "/other", `{"resource":"HIDDEN/mcp"}`},
		"another server": {`Bearer resource_metadata="https://x.example/m"`, WellKnownResource,
			`{"resource":"https://x.example"}`},
		"within the object": {"", WellKnownResource, `{"x":{"resource":"HIDDEN"},"resource":5}`},
		"no object":         {"", WellKnownResource, `["resource","HIDDEN"`},
		"torn":              {"", WellKnownResource, `{"resource":"SERVER","resource": [`},
	} {
		t.Run(name, func(t *testing.T) {
			var origin string
			at := func(front string, text string) string {
				return strings.NewReplacer("SERVER", front, "HIDDEN", origin).Replace(text)
			}
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == c.path {
					fmt.Fprint(w, at(origin, c.metadata))
					return
				}
				if c.challenge != "" {
					w.Header().Set("WWW-Authenticate", at(origin, c.challenge))
				}
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer upstream.Close()
			origin = upstream.URL
			relay, err := NewHTTPRelay(Endpoint{URL: origin + "/mcp"}, NameHTTP, lossy(wire.DefaultLimits))
			if err != nil {
				t.Fatal(err)
			}
			defer relay.Close()
			front := httptest.NewServer(relay)
			defer front.Close()
			resp, err := http.Post(front.URL+"/mcp", typeJSON, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got, want := resp.Header.Get("WWW-Authenticate"), at(front.URL, c.challenge); got != want {
				t.Errorf("the challenge is %s, want %s", got, want)
			}
			if got, want := get(t, front.URL+c.path), at(front.URL, c.metadata); got != want {
				t.Errorf("the metadata are %s, want %s", got, want)
			}
		})
	}
}
