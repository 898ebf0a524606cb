package authserver_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/authserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

const (
	issuer   = "http://127.0.0.1:1/tenant"
	resource = "http://127.0.0.1:2/mcp"
	callback = "http://localhost:3000/callback"
	verifier = "a-verifier-that-is-long-enough-for-pkce-0123456789"
)

type flow struct {
	t      *testing.T
	server *authserver.Server
	log    *wire.Log
}

func begin(t *testing.T, o authserver.Options) *flow {
	t.Helper()
	o.Issuer, o.Log = issuer, wire.NewTrace(wire.DefaultLimits).Connect(transport.NameOAuth, "test")
	s, err := authserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &flow{t, s, o.Log}
}

func (f *flow) send(method, target, kind, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	return w
}

func (f *flow) object(w *httptest.ResponseRecorder) map[string]any {
	f.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		f.t.Fatalf("%s: %v", w.Body, err)
	}
	return v
}

// client registers and returns the metadata and the client's id.
func (f *flow) client() (metadata map[string]any, id string) {
	f.t.Helper()
	metadata = f.object(f.send(http.MethodGet, "http://127.0.0.1:1"+f.server.MetadataPath(), "", ""))
	answer := f.object(f.send(http.MethodPost, metadata["registration_endpoint"].(string), "application/json",
		`{"redirect_uris": ["`+callback+`"], "token_endpoint_auth_method": "none"}`))
	id, _ = answer["client_id"].(string)
	return metadata, id
}

// authorize returns the parameters with which the user agent comes back.
func (f *flow) authorize(endpoint any, ask url.Values) url.Values {
	f.t.Helper()
	w := f.send(http.MethodGet, endpoint.(string)+"?"+ask.Encode(), "", "")
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusFound {
		f.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return to.Query()
}

func ask(id string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {callback}, "state": {"s"}, "resource": {resource},
		"code_challenge": {authserver.Challenge(verifier)}, "code_challenge_method": {"S256"},
	}
}

func (f *flow) redeem(endpoint any, form url.Values) (int, map[string]any) {
	f.t.Helper()
	w := f.send(http.MethodPost, endpoint.(string), "application/x-www-form-urlencoded", form.Encode())
	return w.Code, f.object(w)
}

func TestFlow(t *testing.T) {
	f := begin(t, authserver.Options{})
	metadata, id := f.client()
	if metadata["issuer"] != issuer || id == "" {
		t.Fatalf("client %q, metadata %v", id, metadata)
	}
	back := f.authorize(metadata["authorization_endpoint"], ask(id))
	if back.Get("state") != "s" {
		t.Errorf("it came back with %v", back)
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "code_verifier": {verifier}, "client_id": {id},
		"redirect_uri": {callback}, "resource": {resource},
	}
	status, answer := f.redeem(metadata["token_endpoint"], form)
	token, _ := answer["access_token"].(string)
	if status != http.StatusOK || !f.server.Valid(token, resource) || !f.server.Issued(token) {
		t.Fatalf("status %d: %v", status, answer)
	}
	if f.server.Valid(token, "http://127.0.0.1:2/other") {
		t.Error("the token is good for another resource")
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {answer["refresh_token"].(string)}, "client_id": {id}, "resource": {resource}}
	status, again := f.redeem(metadata["token_endpoint"], refresh)
	if status != http.StatusOK || again["refresh_token"] == answer["refresh_token"] {
		t.Errorf("status %d: %v", status, again)
	}
	if status, _ := f.redeem(metadata["token_endpoint"], refresh); status != http.StatusBadRequest {
		t.Errorf("a used refresh token is answered with status %d", status)
	}
	if f.server.Valid(token, resource) {
		t.Error("a used refresh token leaves the tokens of its family good")
	}
	if status, _ := f.redeem(metadata["token_endpoint"], form); status != http.StatusBadRequest {
		t.Errorf("a used code is answered with status %d", status)
	}
	f.server.Revoke()
	if f.server.Valid(token, resource) {
		t.Error("a revoked token is good")
	}
	var record bytes.Buffer
	for _, e := range f.log.Events() {
		record.Write(e.Raw)
		if e.HTTP != nil {
			record.WriteString(e.HTTP.URL)
			_ = e.HTTP.Header.Write(&record)
		}
	}
	for _, secret := range []string{token, back.Get("code"), verifier, answer["refresh_token"].(string)} {
		if strings.Contains(record.String(), secret) {
			t.Errorf("the record holds the secret %s", secret)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := begin(t, authserver.Options{Life: time.Hour})
	metadata, id := f.client()
	for _, tt := range []struct {
		name, parameter, value, want string
	}{
		{"no PKCE", "code_challenge", "", "invalid_request"},
		{"plain PKCE", "code_challenge_method", "plain", "invalid_request"},
		{"no resource", "resource", "", "invalid_target"},
		{"implicit", "response_type", "token", "unsupported_response_type"},
	} {
		values := ask(id)
		values.Set(tt.parameter, tt.value)
		if back := f.authorize(metadata["authorization_endpoint"], values); back.Get("error") != tt.want || back.Get("code") != "" {
			t.Errorf("%s: it came back with %v", tt.name, back)
		}
	}
	for name, value := range map[string]string{"client_id": "nobody", "redirect_uri": "https://evil.example/callback"} {
		values := ask(id)
		values.Set(name, value)
		w := f.send(http.MethodGet, metadata["authorization_endpoint"].(string)+"?"+values.Encode(), "", "")
		if w.Code != http.StatusBadRequest || w.Header().Get("Location") != "" {
			t.Errorf("%s: status %d, location %q", name, w.Code, w.Header().Get("Location"))
		}
	}
	for name, value := range map[string]string{
		"code_verifier": "another", "resource": "http://127.0.0.1:2/other", "redirect_uri": "http://localhost:3000/other",
		"code": "invented", "grant_type": "password", "client_id": "nobody",
	} {
		back := f.authorize(metadata["authorization_endpoint"], ask(id))
		form := url.Values{
			"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "code_verifier": {verifier}, "client_id": {id},
			"redirect_uri": {callback}, "resource": {resource},
		}
		form.Set(name, value)
		if status, answer := f.redeem(metadata["token_endpoint"], form); status/100 != 4 || answer["access_token"] != nil {
			t.Errorf("%s: status %d: %v", name, status, answer)
		}
	}
}

func TestSameRedirect(t *testing.T) {
	for _, tt := range []struct {
		registered, used string
		want             bool
	}{
		{callback, callback, true},
		{callback, "http://localhost:5000/callback", true},
		{callback, "http://localhost:3000/other", false},
		{"https://a.example/cb", "https://a.example:8443/cb", false},
		{"https://a.example/cb", "https://a.example/cb?x=1", false},
		{"http://127.0.0.1/cb", "http://localhost/cb", false},
	} {
		if got := authserver.SameRedirect(tt.registered, tt.used); got != tt.want {
			t.Errorf("%s for %s: %t", tt.used, tt.registered, got)
		}
	}
}

// A verifier takes the signed tokens of an issuer for a resource, and no others.
func TestVerifier(t *testing.T) {
	var as *authserver.Server
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { as.ServeHTTP(w, r) }))
	defer site.Close()
	other := begin(t, authserver.Options{SignedTokens: true})
	var err error
	if as, err = authserver.New(authserver.Options{Issuer: site.URL, SignedTokens: true, Life: time.Minute,
		Scopes: []string{"read", "call"}}); err != nil {
		t.Fatal(err)
	}
	token := func(s *authserver.Server) string {
		f := &flow{t, s, nil}
		metadata, id := f.client()
		back := f.authorize(metadata["authorization_endpoint"], ask(id))
		_, answer := f.redeem(metadata["token_endpoint"], url.Values{
			"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "code_verifier": {verifier}, "client_id": {id},
			"resource": {resource},
		})
		return answer["access_token"].(string)
	}
	var p server.Protection
	(&authserver.Verifier{Issuer: site.URL, Scopes: []string{"read", "call"}}).Protect(&p)
	good := token(as)
	if !p.Allows(good, "tools/call") || p.Allows("opaque", "tools/call") || !p.Allows("opaque", "ping") {
		t.Error("the last scope does not decide on tool calls")
	}
	if p.User(good) == "" || p.User(good) == p.User(token(as)) {
		t.Error("two clients have the same user, or none")
	}
	r := httptest.NewRequest(http.MethodPost, resource, nil)
	for _, tt := range []struct {
		name, token, resource string
		want                  *server.Denial
	}{
		{"good", good, resource, nil},
		{"for another resource", good, "http://127.0.0.1:2/other", server.InvalidToken},
		{"of another issuer", token(other.server), resource, server.InvalidToken},
		{"changed", good[:len(good)-4] + "AAAA", resource, server.InvalidToken},
		{"no JWT", "opaque", resource, server.InvalidToken},
	} {
		if got := p.Verify(tt.token, tt.resource, r); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
