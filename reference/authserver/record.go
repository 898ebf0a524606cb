package authserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// read reads the body and the identity of the client.
func (x *httpCall) read() error {
	x.seen.InQuery = x.seen.Step == Token && x.r.URL.Query().Has("grant_type")
	if x.r.Method != http.MethodPost {
		return nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the body cannot be read: %w", err)
	}
	switch kind, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); {
	case x.seen.Step == Registration:
		if err := json.Unmarshal(raw, &x.seen.Body); err != nil || x.seen.Body == nil {
			return errors.New("the body is not a JSON object")
		}
		return nil
	case kind != "application/x-www-form-urlencoded":
		return errors.New("the body is not a form")
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return errors.New("the body is not a form")
	}
	for name, values := range form {
		x.seen.Values[name] = append(x.seen.Values[name], values...)
	}
	x.seen.Client, x.secret = form.Get("client_id"), form.Get("client_secret")
	if form.Get("client_assertion") != "" {
		x.seen.Auth = append(x.seen.Auth, "client_assertion")
	}
	if x.secret != "" {
		x.seen.Auth = append(x.seen.Auth, AuthPost)
	}
	if id, secret, ok := basicAuth(x.r); ok {
		x.seen.Client, x.secret = id, secret
		x.seen.Auth = append(x.seen.Auth, AuthBasic)
	}
	return nil
}

// basicAuth reads the credentials of a client, each of which is form-encoded
// before they are put together (OAuth 2.1, section 2.4.1).
func basicAuth(r *http.Request) (id, secret string, ok bool) {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", "", false
	}
	plain, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return "", "", false
	}
	id, secret, ok = strings.Cut(string(plain), ":")
	for _, part := range []*string{&id, &secret} {
		if text, err := url.QueryUnescape(*part); err == nil {
			*part = text
		}
	}
	return id, secret, ok
}

// The parameters and members whose values are secret.
var secrets = map[string]bool{
	"code": true, "code_verifier": true, "access_token": true, "refresh_token": true, "id_token": true,
	"client_secret":    true,
	"client_assertion": true, "assertion": true, "password": true, "token": true, "registration_access_token": true,
}

// record appends the request to the log, without secrets.
func (x *httpCall) record() {
	log := x.server.options.Log
	if log == nil {
		return
	}
	x.server.mu.Lock()
	x.server.counts[x.seen.Step]++
	x.stream = string(x.seen.Step) + ":" + strconv.Itoa(x.server.counts[x.seen.Step])
	x.server.mu.Unlock()
	head := transport.ReceivedHead(x.r)
	u := url.URL{Scheme: x.server.issuer.Scheme, Host: x.r.Host, Path: x.r.URL.Path}
	u.RawQuery = Form(x.r.URL.Query())
	head.URL = u.String()
	x.seen.Event = x.append(wire.Event{Kind: wire.KindHTTPRequest, From: wire.Client, HTTP: head})
	switch {
	case x.seen.Body != nil:
		x.recordBody(wire.Client, x.seen.Body)
	case x.r.Method == http.MethodPost:
		x.append(wire.Event{Kind: wire.KindBody, From: wire.Client, Raw: []byte(Form(x.seen.Values))})
	}
}

// Secret reports whether the value of a parameter or of a member is secret.
func Secret(name string) bool { return secrets[name] }

// named matches the name of a secret and its value: in JSON that may be nested, cut off or quoted again, in a form,
// or in an input of a page.
var named = regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(secrets)), "|") + `)\b\\*["']?` +
	`(?:\s*[:=]\s*|\s[^<>]*?\bvalue\s*=\s*)(?:\[\s*)?\\*["']?([A-Za-z0-9._~+/=%-]{16,})`)

// SecretsIn returns the secrets in a text that stand beside their names. It leaves out short ones and plain words, such
// as an error code.
func SecretsIn(text string) []string {
	var all []string
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if strings.Trim(m[2], "abcdefghijklmnopqrstuvwxyz_-.") == "" {
			continue
		}
		all = append(all, m[2])
		if plain, err := url.QueryUnescape(m[2]); err == nil && plain != m[2] {
			all = append(all, plain)
		}
	}
	return all
}

// Form returns parameters as text, without secrets.
func Form(values url.Values) string {
	clean := make(url.Values)
	for name, list := range values {
		for _, v := range list {
			if secrets[name] && v != "" {
				v = transport.Redacted
			}
			clean.Add(name, v)
		}
	}
	return clean.Encode()
}

func (x *httpCall) append(e wire.Event) *wire.Event {
	if x.server.options.Log == nil {
		return nil
	}
	e.Stream = x.stream
	stored, err := x.server.options.Log.Append(e)
	if err != nil {
		return nil // a flood is not recorded any further
	}
	return stored
}

// head sends the head of the response.
func (x *httpCall) head(status int) {
	x.seen.Status = status
	x.append(wire.Event{Kind: wire.KindHTTPResponse, From: wire.Server, HTTP: transport.SentHead(status, x.w.Header())})
	x.w.WriteHeader(status)
}

// Object returns a copy of an object without secrets.
func Object(body map[string]any) map[string]any {
	clean := maps.Clone(body)
	for name := range clean {
		if secrets[name] {
			clean[name] = transport.Redacted
		}
	}
	return clean
}

// recordBody records a JSON body without secrets.
func (x *httpCall) recordBody(from wire.Party, body map[string]any) {
	raw, err := json.Marshal(Object(body))
	if err != nil {
		return
	}
	x.append(wire.Event{Kind: wire.KindBody, From: from, Raw: raw})
}

func (x *httpCall) end() { x.append(wire.Event{Kind: wire.KindStreamEnd, From: wire.Server}) }
