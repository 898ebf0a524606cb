package transport

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestRedactorHeader(t *testing.T) {
	r := NewRedactor(http.Header{"X-Tenant": {"acme"}, "Accept": {"application/json"}, "Authorization": {"Bearer t0ken-1"}}, "")
	got := r.Header(http.Header{
		"Authorization": {"Bearer other"}, "Proxy-Authorization": {"Basic abc"}, "Cookie": {"a=b"}, "Set-Cookie": {"a=b", "c=d"},
		"X-Api-Key": {"k"}, "X-Auth-Token": {"t"}, "Client-Secret": {"s"}, "X-Password": {"p"}, "x-tenant": {"acme"},
		"Accept": {"application/json"}, "Content-Type": {"text/plain"}, "Mcp-Session-Id": {"s1"}, "Mcp-Protocol-Version": {"2025-06-18"},
		"Www-Authenticate": {`Bearer resource_metadata="https://x/"`}, "X-Echo": {"got t0ken-1 from you"}, "X-T0ken-1-Too": {"a"},
		"Location": {"https://u:p@x/y?code=1&state=2#f"},
	})
	want := http.Header{
		"Authorization": {"Bearer REDACTED"}, "Proxy-Authorization": {"Basic REDACTED"}, "Cookie": {"REDACTED"}, "Set-Cookie": {"REDACTED", "REDACTED"},
		"X-Api-Key": {"REDACTED"}, "X-Auth-Token": {"REDACTED"}, "Client-Secret": {"REDACTED"}, "X-Password": {"REDACTED"}, "X-Tenant": {"REDACTED"},
		"Accept": {"application/json"}, "Content-Type": {"text/plain"}, "Mcp-Session-Id": {"s1"}, "Mcp-Protocol-Version": {"2025-06-18"},
		"Www-Authenticate": {`Bearer resource_metadata="https://x/"`}, "X-Echo": {"got REDACTED from you"}, "REDACTED": {"a"},
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

// A secret is found in each way to write it, and in a mixture of them.
func TestRedactorEscapes(t *testing.T) {
	r := NewRedactor(nil, "https://me:pass%2Fw0rd@x/")
	r.Add(`a/b"é😀\\n`, "hunter22", "nsecret", "two words", "back22\\", "100%41zz", `"quoted"`)
	for in, want := range map[string]string{
		`\u0068\u0075\u006e\u0074\u0065\u0072\u0032\u0032`:        "REDACTED",
		`x\u0068\u0075\u006E\u0074er22x`:                          "xREDACTEDx",
		`\\u0068\\u0075nter22`:                                    "REDACTED",
		`{\"a\":\"hunter22\"}`:                                    `{\"a\":\"REDACTED\"}`,
		`%68%75%6e%74%65%72%32%32 %6E`:                            "REDACTED %6E",
		`%2568unter22`:                                            "REDACTED",
		`&#104;&#x75;&#X6E;ter22`:                                 "REDACTED",
		`\u00268h; &amp;#104;unter22`:                             `\u00268h; REDACTED`,
		`a\/b\"\u00e9\ud83d\ude00\\n`:                             "REDACTED",
		`a/b&quot;%C3%a9\uD83D\uDE00\\n`:                          "REDACTED",
		`a/b\"é😀\\n`:                                              "REDACTED",
		`a\\/b\\\"\xc3\xa9😀%5c%5Cn`:                               "REDACTED",
		`two+words two%20words two\u0020words`:                    "REDACTED REDACTED REDACTED",
		`"\nsecret" "\\nsecret" "C:\nsecret"`:                     `"REDACTED" "\\REDACTED" "C:REDACTED"`,
		`"back22\\" "back22\"`:                                    `"REDACTED" "REDACTED`,
		`100%41zz 100%2541zz`:                                     "REDACTED REDACTED",
		`\"quoted\" "quoted"`:                                     "REDACTED REDACTED",
		`pass/w0rd pass%2Fw0rd bWU6cGFzcy93MHJk`:                  "REDACTED REDACTED REDACTED",
		`"hunter2"… "hunt"… \"hunte\"… hunter… hun… hunters…`:     `"REDACTED"… "REDACTED"… \"REDACTED\"… REDACTED… hun… hunters…`,
		`hunter%3… hunter%… "hunter\\u00"… hunter&#5… hunter2\"…`: `REDACTED… REDACTED… "REDACTED"… REDACTED… REDACTED\"…`,
		`\u0068unt \u00 \u \ % %4 %zz & &; &#; &#x; &#99999999;`:  `\u0068unt \u00 \u \ % %4 %zz & &; &#; &#x; &#99999999;`,
		`\ud83d \ud83dx \ud83d\u0041 &longer-than-any;`:           `\ud83d \ud83dx \ud83d\u0041 &longer-than-any;`,
	} {
		if got := r.String(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if got := string(r.Bytes([]byte(in))); got != want {
			t.Errorf("bytes %s: %s, want %s", in, got, want)
		}
	}
}

// TestRedactorOfTornText tests that a body which breaks off within a secret does not show its beginning, in any
// spelling. A whole text keeps its end.
func TestRedactorOfTornText(t *testing.T) {
	r := NewRedactor(nil, "")
	r.Add("hunter22longer")
	beginning := newNeedles([]string{"hunter"})
	for _, spelled := range []string{
		`{"a":"hunter22longer"}`, `\u0068\u0075\u006e\u0074\u0065\u0072\u0032\u0032longer`, `\\u0068\\u0075nter22longer`, `%68%75%6e%74%65%72%32%32longer`, `%2568unter%2532%2532longer`,
		`&#104;&#x75;&#X6E;ter&#50;&#50;longer`, `&amp;#104;unter&amp;#50;&amp;#50;longer`, `hunter\u0026#50;\u0026#50;longer`,
	} {
		for n := range len(spelled) + 1 {
			for _, e := range []wire.Event{{Kind: wire.KindBody}, {Kind: wire.KindSSE}, {Kind: wire.KindStderr, Dropped: 1}, {Kind: wire.KindMessage, Msg: wire.Parse([]byte(spelled[:n]))}} {
				if e.Raw = []byte(spelled[:n]); e.Msg != nil && e.Msg.Kind != wire.Invalid {
					continue
				}
				if got := r.Event(&e).Raw; n > 0 {
					if _, found := replaceAll(beginning, got, ""); found {
						t.Errorf("%s became %s", e.Raw, got)
					}
				}
			}
		}
	}
	for _, whole := range []wire.Event{
		{Kind: wire.KindStderr, Raw: []byte("shoot the hunter")},
		{Kind: wire.KindMessage, Raw: []byte(`{"jsonrpc":"2.0","method":"hunter"}`), Msg: wire.Parse([]byte(`{"jsonrpc":"2.0","method":"hunter"}`))},
		{Kind: wire.KindBody, Raw: []byte("the hunte")},
	} {
		if got := r.Event(&whole); got != &whole {
			t.Errorf("%s became %s", whole.Raw, got.Raw)
		}
	}
}

// TestRedactorKeepsJSON tests that redacted JSON is still JSON.
func TestRedactorKeepsJSON(t *testing.T) {
	r := NewRedactor(nil, "")
	r.Add("nsecret", "back22\\", `"quote`, "u0041bc", "slash/", "tab\there")
	for _, in := range []string{
		"\nsecret", "back22\\", `back\" and more`, `a "quote`, "u0041bc", "\\u0041bc", "Abc", "slash/", "tab\there", "\\\\nsecret", "\\tab\there\\",
	} {
		text, err := json.Marshal(map[string]string{in: in})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Bytes(text); !json.Valid(got) {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestRedactorKnows(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("USER", "somebody")
	for _, tt := range []struct {
		name   string
		tell   func(r *Redactor)
		hidden []string
		shown  []string
	}{
		{
			"environment", func(r *Redactor) {
				r.AddEnv("RUN=3f2b8c1e-5a7d-4e90-b1c2-d3e4f5a6b7c8", "OTHER=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AUTHORIZATION=authorized", "PASSWORD=$ecret{pass}", "DB_PASS=db-pass", "MY_PWD=my-pwd-1", "SIGNING_KEY=first-line-of-key\nsecond-line-of-key", "GITHUB_TOKEN=Bearer gh-token",
					`CREDENTIALS={"client_secret":"in-json","name":"plain-name","list":[{"apiKey":"in-list"}]}`, "PIPE=https://u:pipe-pass@h/x?sig=pipe-query")
			},
			[]string{
				"3f2b8c1e-5a7d-4e90-b1c2-d3e4f5a6b7c8", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "authorized", "$ecret{pass}", "db-pass", "my-pwd-1", "first-line-of-key", "second-line-of-key", "gh-token", "in-json", "in-list", "pipe-pass", "pipe-query",
			},
			[]string{"plain-name"},
		},
		{
			"what is no secret", func(r *Redactor) {
				r.AddEnv("AUTH_TYPE=certificate", "TOKEN_FILE=./not-there", "MAX_TOKENS=123456", "AUTH_REQUIRED=required", "API_KEY=short", "GIT_AUTHOR_NAME=Some Body", "AUTHOR=Another Body", "AUTHORITY_HINT=example",
					"KEYBOARD=german", "KEY_OWNER=somebody", "TOKEN=${OTHER}", "OTHER_TOKEN=$THAT_TOKEN", "SECRET_DATE=2025-06-18", "AUTH_ON=enabled", "KEY_HOME=/home/somebody", "KEY_TRUE=true", "KEY_KIND=string")
				r.AddArgs("--max-tokens", "100000", "--auth", "required", "--key-file", "not-there.pem", ":8080", "-y", "@scope/package-name", "{url}", "--token", "{token}", "--secret-mode=strictly",
					"mcp-server-everything-2025-06-18", "claude-3-5-sonnet-20241022")
			},
			nil,
			[]string{
				"certificate", "./not-there", "123456", "required", "short", "Some Body", "Another Body", "example", "german", "somebody", "${OTHER}", "$THAT_TOKEN", "2025-06-18", "enabled",
				"/home/somebody", "true", "string", "100000", "not-there.pem", "@scope/package-name", "{url}", "{token}", "strictly",
				"mcp-server-everything-2025-06-18", "claude-3-5-sonnet-20241022",
			},
		},
		{
			"arguments", func(r *Redactor) {
				r.AddArgs("env", "API_KEY=as-variable", "docker", "-e", "TOKEN=docker-env", "--env=OTHER_TOKEN=joined-env", "--header=X-Auth: joined-header",
					"-H", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("me:basic-pass")), "-u", "me:user-pass", "--user", "1000:1000000",
					`{"token":"json-token"}`, `--config={"password":"json-password"}`, "--url=https://h/?key=joined-query",
					"sh", "-c", `exec TOKEN=in-shell server --api-key 'quoted-key' --header "X-Token: shell-header" "https://h/?a=shell-first&key=shell-query"|tee`)
			},
			[]string{
				"as-variable", "docker-env", "joined-env", "joined-header", "basic-pass", "bWU6YmFzaWMtcGFzcw", "user-pass", "json-token", "json-password",
				"joined-query", "in-shell", "quoted-key", "shell-header", "shell-first", "shell-query", "bWU6dXNlci1wYXNz",
			},
			[]string{"docker", "server", "1000000", "https://h/", "exec"},
		},
		{
			"head", func(r *Redactor) {
				u, _ := url.Parse("http://h/4f9c1b7a8d2e6f3a5b0c/mcp?token=query-token&mode=streaming")
				r.AddHead(http.Header{"Authorization": {"Bearer head-token"}, "X-Api-Key": {"head-key"}, "Cookie": {"REDACTED"}, "User-Agent": {"some-agent"}}, u)
				r.AddHead(http.Header{"Authorization": {"Bearer REDACTED"}}, nil)
			},
			[]string{"head-token", "head-key", "4f9c1b7a8d2e6f3a5b0c", "query-token"},
			[]string{"some-agent", "streaming", "Bearer"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRedactor(nil, "")
			tt.tell(r)
			for _, secret := range tt.hidden {
				if got := r.String("<" + secret + ">"); got != "<"+Redacted+">" {
					t.Errorf("%s is shown as %s", secret, got)
				}
			}
			for _, text := range tt.shown {
				if got := r.String("<" + text + ">"); got != "<"+text+">" {
					t.Errorf("%s is shown as %s", text, got)
				}
			}
		})
	}
}

// A peer that makes up credentials does not fill the memory.
func TestRedactorLearnsSoMuch(t *testing.T) {
	r := NewRedactor(nil, "")
	for i := range 2 * maxLearned {
		r.AddHead(http.Header{"Authorization": {fmt.Sprintf("Bearer %08d-token", i)}}, nil)
	}
	if n := len(r.secrets); n < maxLearned || n > maxLearned+10 {
		t.Errorf("%d secrets are known", n)
	}
	if r.Add("later-one"); r.String("later-one") != Redacted {
		t.Error("what the user gives is not added any more")
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
		text := before + secret + after + string(escaped) + url.QueryEscape(secret) + after + other + mixed(secret)
		e := &wire.Event{
			Kind: wire.KindMessage, From: wire.Server, Raw: []byte(text), Msg: wire.Parse([]byte(text)), Note: text,
			SSE: &wire.SSE{Event: text, ID: text, Comment: text}, HTTP: &wire.Head{URL: text, Header: http.Header{"X": {text}}},
		}
		clean := r.Event(e)
		for _, s := range []string{secret, other} {
			// The replacement of a secret may hold another secret, or form one with the text beside it.
			if len(s) < shortestSecret || strings.Contains(s, "R") {
				continue
			}
			for where, got := range map[string]string{
				"text": r.String(text), "raw": string(clean.Raw), "note": clean.Note, "id": clean.SSE.ID, "event": clean.SSE.Event,
				"comment": clean.SSE.Comment, "URL": clean.HTTP.URL, "header": clean.HTTP.Header.Get("X"),
			} {
				if strings.Contains(got, s) || utf8.ValidString(s) && strings.Contains(got, mixed(s)) {
					t.Errorf("%s still has %q: %q", where, s, got)
				}
			}
		}
		if string(e.Raw) != text {
			t.Error("the event itself was changed")
		}
	})
}

// mixed writes each character of a text in another way.
func mixed(s string) string {
	var b strings.Builder
	n := 0
	for _, c := range s {
		switch n++; {
		case c >= 0x10000:
			b.WriteRune(c)
		case n%4 == 0:
			fmt.Fprintf(&b, `\u%04x`, c)
		case n%4 == 1:
			fmt.Fprintf(&b, `\\u%04X`, c)
		case n%4 == 2:
			fmt.Fprintf(&b, "&#%d;", c)
		default:
			for _, byte := range []byte(string(c)) {
				fmt.Fprintf(&b, "%%%02x", byte)
			}
		}
	}
	return b.String()
}

// BenchmarkRedactor looks for few secrets, which are not there, in a message.
func BenchmarkRedactor(b *testing.B) {
	r := NewRedactor(http.Header{"Authorization": {"Bearer eyJhbGciOiJIUzI1NiJ9"}}, "https://x/mcp?key=k3y-in-the-query")
	r.AddEnv("API_KEY=sk-abcdefghijklmnopqrstuvwx", "DB_PASSWORD=correct-horse", "GITHUB_TOKEN=ghp_0123456789")
	plain := strings.Repeat(`{"name":"a tool","description":"It does what its name says, and a little more.","inputSchema":{"type":"object"}},`, 1000)
	quoted, _ := json.Marshal(plain)
	escaped := strings.Repeat(`\u005cu0065\u00e9%65&amp;`, 5000)
	for name, text := range map[string][]byte{"plain": []byte(plain), "JSON in JSON": quoted, "escapes only": []byte(escaped)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if got := r.Bytes(text); len(got) != len(text) {
					b.Fatal("something was found")
				}
			}
		})
	}
}
