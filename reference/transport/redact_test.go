package transport

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestRedactorHeader(t *testing.T) {
	r := NewRedactor(http.Header{"X-Tenant": {"acme"}, "Accept": {"application/json"}, "Authorization": {"Bearer t0ken-1"}}, "")
	got := r.Header(http.Header{
		"Authorization": {"Bearer other"}, "Proxy-Authorization": {"Basic abc"}, "Cookie": {"a=b"}, "Set-Cookie": {"a=b", "c=d"},
		"X-Api-Key": {"k"}, "X-Auth-Token": {"t"}, "Client-Secret": {"s"}, "X-Password": {"p"}, "x-tenant": {"acme"},
		"Accept": {"application/json"}, "Content-Type": {"text/plain"}, "Mcp-Session-Id": {"s1"}, "Mcp-Protocol-Version": {"2025-06-18"},
		"Www-Authenticate": {`Bearer resource_metadata="https://x/"`}, "X-Echo": {"got t0ken-1 from you"},
		"Location": {"https://u:p@x/y?code=1&state=2#f"},
	})
	want := http.Header{
		"Authorization": {"Bearer REDACTED"}, "Proxy-Authorization": {"Basic REDACTED"}, "Cookie": {"REDACTED"}, "Set-Cookie": {"REDACTED", "REDACTED"},
		"X-Api-Key": {"REDACTED"}, "X-Auth-Token": {"REDACTED"}, "Client-Secret": {"REDACTED"}, "X-Password": {"REDACTED"}, "X-Tenant": {"REDACTED"},
		"Accept": {"application/json"}, "Content-Type": {"text/plain"}, "Mcp-Session-Id": {"s1"}, "Mcp-Protocol-Version": {"2025-06-18"},
		"Www-Authenticate": {`Bearer resource_metadata="https://x/"`}, "X-Echo": {"got REDACTED from you"},
		"Location": {"https://REDACTED@x/y?code=REDACTED&state=REDACTED"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
}

func TestRedactorURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://x/mcp":                        "http://x/mcp",
		"http://x/mcp?task_id=1":              "http://x/mcp?task_id=REDACTED",
		"http://x/mcp?a=1&&b=&c&d=x=y":        "http://x/mcp?a=REDACTED&&b=&REDACTED&d=REDACTED",
		"https://me:pw@x/mcp#frag":            "https://REDACTED@x/mcp",
		"unix:///run/s?path=/mcp&token=12345": "unix:///run/s?path=/mcp&token=REDACTED",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*Redactor{"none": nil, "own": NewRedactor(nil, in)} {
			if got := r.URL(u); got != want {
				t.Errorf("%s with %s: %s, want %s", in, name, got, want)
			}
		}
	}
}

func TestRedactorBytes(t *testing.T) {
	r := NewRedactor(http.Header{
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("me:basic-pass"))},
		"Cookie":        {"a=cookie-a; b=cookie-b"}, "X-Short": {"tiny"}, "X-Odd": {`quo"te d`},
	}, "https://me:url-pass@x/mcp?q=que%20ry1&v=2025-06-18")
	r.Add("cookie-a-longer", "short")
	for in, want := range map[string]string{
		"nothing here":                   "nothing here",
		"basic-pass":                     "REDACTED",
		"cookie-a, cookie-b":             "REDACTED, REDACTED",
		"cookie-a-longer":                "REDACTED",
		"url-pass":                       "REDACTED",
		"que%20ry1 que ry1 que+ry1":      "REDACTED REDACTED REDACTED",
		`{"x":"quo\"te d"}`:              `{"x":"REDACTED"}`,
		"tiny and short stay":            "tiny and short stay",
		`"protocolVersion":"2025-06-18"`: `"protocolVersion":"2025-06-18"`,
	} {
		if got := string(r.Bytes([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	var none *Redactor
	if got := string(none.Bytes([]byte("cookie-a"))); got != "cookie-a" {
		t.Errorf("without secrets: %s", got)
	}
}

func TestRedactorEvent(t *testing.T) {
	r := NewRedactor(nil, "")
	e := &wire.Event{
		Kind: wire.KindMessage, Raw: []byte(`{"jsonrpc":"2.0","method":"m","params":{"a":"hunter22"}}`), Note: "hunter22",
		SSE:  &wire.SSE{Event: "hunter22", ID: "hunter22", Comment: "hunter22"},
		HTTP: &wire.Head{URL: "http://x/hunter22", Header: http.Header{"X": {"hunter22"}}},
	}
	e.Msg = wire.Parse(e.Raw)
	if r.Event(e) != e {
		t.Error("an event is copied although nothing is secret")
	}
	r.Add("hunter22")
	clean := r.Event(e)
	for name, text := range map[string]string{
		"raw": string(clean.Raw), "note": clean.Note, "event": clean.SSE.Event, "id": clean.SSE.ID, "comment": clean.SSE.Comment,
		"url": clean.HTTP.URL, "header": clean.HTTP.Header.Get("X"), "message": wire.Show(clean.Msg.Params),
	} {
		if strings.Contains(text, "hunter22") || !strings.Contains(text, Redacted) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if !strings.Contains(string(e.Raw), "hunter22") || e.SSE.ID != "hunter22" || e.HTTP.Header.Get("X") != "hunter22" {
		t.Error("the event itself was changed")
	}
}

func TestRedactorTrace(t *testing.T) {
	r := NewRedactor(http.Header{"Authorization": {"Bearer hunter22"}}, "")
	trace := wire.NewTrace(wire.DefaultLimits)
	trace.Redact = r.Event
	log := trace.Connect(NameHTTP, "test")
	if _, err := log.Append(wire.Event{Kind: wire.KindBody, From: wire.Server, Raw: []byte("<p>hunter22</p>")}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := trace.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter22") || !strings.Contains(out.String(), "<p>REDACTED</p>") {
		t.Errorf("trace %s", out.String())
	}
	if got := string(log.Events()[0].Raw); got != "<p>hunter22</p>" {
		t.Errorf("the log itself was changed: %s", got)
	}
}

func TestRedactorEnvironmentAndArguments(t *testing.T) {
	file := t.TempDir()
	r := NewRedactor(nil, "https://x/mcp/9f86d081884c7d659a2feaa0/sse")
	r.AddEnv(
		"API_KEY=env-value", "GITHUB_TOKEN=ghp_other", "MODE=production", "MAX_TOKENS=100000", "KEY_FILE="+file,
		"PLAIN=4f9c1b7a8d2e6f3a5b0c", "DATABASE=postgres://me:db-password@host/db", "NOTHING",
	)
	r.AddArgs("server", "--api-key", "after-option", "--token=joined-value", "--verbose", "--port=123456", "-H", "X-Secret: of-header",
		"https://host/mcp?key=of-query", "--auth", "--other")
	for in, want := range map[string]string{
		"env-value ghp_other":  "REDACTED REDACTED",
		"production 100000":    "production 100000",
		file:                   file,
		"4f9c1b7a8d2e6f3a5b0c": "REDACTED",
		"db-password at host":  "REDACTED at host",
		"after-option joined-value of-header of-query": "REDACTED REDACTED REDACTED REDACTED",
		"server --verbose --other 123456":              "server --verbose --other 123456",
		"https://x/mcp/9f86d081884c7d659a2feaa0/sse":   "https://x/mcp/REDACTED/sse",
	} {
		if got := r.String(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzRedactor looks for a secret in what was redacted, wherever it stood.
func FuzzRedactor(f *testing.F) {
	f.Add("t0ken-1", "", "before ", " after")
	f.Add(`quo"te\\d`, "another", "", `","more":"`)
	f.Add("abcabc", "bcabca", "abc", "abc")
	f.Add("secret/ü+%20", "secret", "\xff", "secre")
	f.Fuzz(func(t *testing.T, secret, other, before, after string) {
		r := NewRedactor(nil, "")
		r.Add(secret, other)
		escaped, _ := json.Marshal(secret)
		text := before + secret + after + string(escaped) + url.QueryEscape(secret) + after + other
		e := &wire.Event{
			Kind: wire.KindMessage, From: wire.Server, Raw: []byte(text), Msg: wire.Parse([]byte(text)), Note: text,
			SSE: &wire.SSE{Event: text, ID: text, Comment: text}, HTTP: &wire.Head{URL: text, Header: http.Header{"X": {text}}},
		}
		clean := r.Event(e)
		for _, s := range []string{secret, other} {
			// What stands for a secret may hold another one, or make one up with what is beside it.
			if len(s) < shortestSecret || strings.Contains(s, "R") {
				continue
			}
			for where, got := range map[string]string{
				"text": r.String(text), "raw": string(clean.Raw), "note": clean.Note, "id": clean.SSE.ID, "event": clean.SSE.Event,
				"comment": clean.SSE.Comment, "URL": clean.HTTP.URL, "header": clean.HTTP.Header.Get("X"),
			} {
				if strings.Contains(got, s) {
					t.Errorf("%s still has %q: %q", where, s, got)
				}
			}
		}
		if string(e.Raw) != text {
			t.Error("the event itself was changed")
		}
	})
}
