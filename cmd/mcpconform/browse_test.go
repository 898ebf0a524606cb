package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBrowse(t *testing.T) {
	var back string
	waiting := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { back = r.URL.RequestURI() }))
	defer waiting.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := waiting.URL + "/callback?code=1"
		if r.URL.Path == "/away" {
			to = "https://example.invalid/callback"
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	defer server.Close()
	if err := visit(t.Context(), server.URL+"/authorize"); err != nil || back != "/callback?code=1" {
		t.Errorf("it came back to %q: %v", back, err)
	}
	for _, page := range []string{server.URL + "/away", "https://example.invalid/"} {
		if err := visit(t.Context(), page); err == nil || !strings.Contains(err.Error(), "not on this machine") {
			t.Errorf("%s: %v", page, err)
		}
	}
}
