package client_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// through returns the URL of a proxy that changes the requests to a server, which
// then sees a client with a fault.
func through(t *testing.T, target string, change func(r *http.Request)) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: u.Scheme, Host: u.Host})
			r.Out.Host = u.Host
			change(r.Out)
		},
		FlushInterval: -1,
	})
	t.Cleanup(p.Close)
	return p.URL + u.Path
}
