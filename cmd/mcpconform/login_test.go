package main

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
)

// TestLoginSecrets logs in and looks for what the flow has made and got: it is in no report, output or trace.
func TestLoginSecrets(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	secrets := make(map[string]string) // by value: the name
	as, err := authserver.New(authserver.Options{
		Issuer: "http://" + l.Addr().String(), TokenAuth: authserver.AuthPost,
		Seen: func(c authserver.Call) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range []string{"code", "code_verifier", "access_token", "refresh_token", "client_secret"} {
				if value := c.Values.Get(name); value != "" {
					secrets[value] = name
				}
				if value, ok := c.Answer[name].(string); ok && value != "" {
					secrets[value] = name
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &server.Protection{}
	as.Protect(p, true)
	o := server.Options{}
	o.HTTP.Protection = p
	done := make(chan error, 1)
	go func() { done <- server.New(o).HTTP().Serve(t.Context(), l) }()
	t.Cleanup(func() { <-done })

	ran := conduct(t, nil, "--url", "http://"+l.Addr().String()+server.PathMCP, "--verbose", "--select=auth.*")
	if ran.code != 0 {
		t.Errorf("exit code %d: %s", ran.code, ran.files["stderr"])
	}
	mu.Lock()
	defer mu.Unlock()
	if len(secrets) < 5 {
		t.Errorf("the flow had %d secrets, expected five", len(secrets))
	}
	for secret, name := range secrets {
		for file, text := range ran.files {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the %s", file, name)
			}
		}
	}
}
