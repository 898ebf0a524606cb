package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
)

// TestLoginSecrets logs in, as one user and as two, and looks for what the flow has made and got: it is in no report,
// output or trace, whether the login succeeds or the answer to the token request cannot be read.
func TestLoginSecrets(t *testing.T) {
	form := func(body []byte) []byte {
		var object map[string]any
		_ = json.Unmarshal(body, &object)
		values := make(url.Values)
		for name, v := range object {
			values.Set(name, fmt.Sprint(v))
		}
		return []byte(values.Encode())
	}
	for name, test := range map[string]struct {
		flags  []string
		answer func([]byte) []byte // of the token endpoint, unless nil
		least  int                 // of secrets
	}{
		"one user":           {nil, nil, 5},
		"two users":          {[]string{"--second-user"}, nil, 9},
		"tokens in a form":   {nil, form, 5},
		"tokens in an array": {nil, func(body []byte) []byte { return slices.Concat([]byte("["), body, []byte("]")) }, 5},
		"tokens cut off":     {nil, func(body []byte) []byte { return bytes.TrimRight(body, "}\n") }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			secrets := new(loginSecrets)
			as, err := authserver.New(authserver.Options{
				Issuer: "http://" + l.Addr().String(), TokenAuth: authserver.AuthPost, Seen: secrets.note,
			})
			if err != nil {
				t.Fatal(err)
			}
			p := &server.Protection{}
			as.Protect(p, true)
			if test.answer != nil {
				p.Elsewhere = answering(as, test.answer)
			}
			o := server.Options{}
			o.HTTP.Protection = p
			done := make(chan error, 1)
			go func() { done <- server.New(o).HTTP().Serve(t.Context(), l) }()
			t.Cleanup(func() { <-done })

			ran := conduct(t, nil, append(test.flags, "--url", "http://"+l.Addr().String()+server.PathMCP, "--verbose",
				"--select=auth.*")...)
			if failed := test.answer != nil; failed != (ran.code != 0) {
				t.Errorf("exit code %d: %s", ran.code, ran.files["stderr"])
			}
			secrets.absent(t, ran.files, test.least)
		})
	}
}

// answering changes the answers of a server that hold an access token.
func answering(next http.Handler, change func([]byte) []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		body := answer.Body.Bytes()
		if bytes.Contains(body, []byte(`"access_token"`)) {
			body = change(body)
		}
		_, _ = w.Write(body)
	})
}

// loginSecrets are what logins have made and got.
type loginSecrets struct {
	mu    sync.Mutex
	names map[string]string // by value
}

func (s *loginSecrets) note(c authserver.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]string)
	}
	for _, name := range []string{"code", "code_verifier", "access_token", "refresh_token", "client_secret"} {
		answered, _ := c.Answer[name].(string)
		for _, value := range []string{c.Values.Get(name), answered} {
			if value != "" {
				s.names[value] = name
			}
		}
	}
}

// absent fails the test if a file holds one of them, or if there are too few.
func (s *loginSecrets) absent(t *testing.T, files map[string]string, least int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.names) < least {
		t.Errorf("the flow had %d secrets, expected %d", len(s.names), least)
	}
	for secret, name := range s.names {
		for file, text := range files {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the %s", file, name)
			}
		}
	}
}
