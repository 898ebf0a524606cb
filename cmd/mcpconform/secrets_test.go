package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/cmd/mcpconform/internal/config"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// asEcho as first argument makes this test's binary a peer that repeats, in
// whatever it says, all secrets that it was told: a server over stdio, with
// "refuse" next one that refuses initialize, or with "client" next a client of
// what the last arguments name.
const asEcho = "echo-all"

// Secrets from every source that a target over stdio has.
const (
	secretEnv       = "env/s3cret\"é"
	secretInherited = "inherited-s3cret"
	secretArgument  = "argument/s3cret"
	secretJoined    = "joined-s3cret"
	secretHeader    = "header-s3cret"
	secretQuery     = "query-s3cret"
	secretUser      = "user-s3cret"
	secretPath      = "9f86d081884c7d659a2feaa0c55ad015"
	secretNamed     = "named-s3cret"
)

func secrets() []string {
	return []string{
		secretEnv, secretInherited, secretArgument, secretJoined, secretHeader, secretQuery, secretUser, secretPath, secretNamed,
		base64.StdEncoding.EncodeToString([]byte("me:" + secretUser)),
	}
}

var secretEnvironment = []string{"OUR_TOKEN=" + secretInherited, "NAMED_KEY=" + secretNamed}

// secretFlags hand secrets over as flags.
var secretFlags = []string{"--env", "SERVICE_API_KEY=" + secretEnv, "--env", "NAMED_KEY"}

// secretArguments hand secrets over on the command line of a target.
var secretArguments = []string{
	"--token", secretArgument, "--api-key=" + secretJoined, "-H", "X-Api-Key: " + secretHeader,
	"http://me:" + secretUser + "@upstream.invalid/" + secretPath + "/?key=" + secretQuery,
}

// everything repeats all secrets in ways that are common, and some that are not.
func everything() string {
	plain := strings.Join(secrets(), " ")
	var percent, upper, decimal strings.Builder
	for _, b := range []byte(plain) {
		fmt.Fprintf(&percent, "%%%02x", b)
		fmt.Fprintf(&upper, "%%%02X", b)
	}
	for _, c := range plain {
		fmt.Fprintf(&decimal, "&#%d;", c)
	}
	quoted, _ := json.Marshal(plain)
	return strings.Join([]string{plain, percent.String(), upper.String(), decimal.String(), html.EscapeString(plain), string(quoted)}, " ")
}

// How a literal of JSON writes its characters.
const (
	asUsual = iota
	asLower
	asUpper
)

// literal writes a text as JSON.
func literal(text string, how int) string {
	if how == asUsual {
		quoted, _ := json.Marshal(text)
		return strings.ReplaceAll(string(quoted), "/", `\/`)
	}
	format := map[int]string{asLower: `\u%04x`, asUpper: `\u%04X`}[how]
	var b strings.Builder
	for _, c := range text {
		fmt.Fprintf(&b, format, c)
	}
	return `"` + b.String() + `"`
}

// implementation is a clientInfo or serverInfo with capabilities.
func implementation(member string) string {
	return fmt.Sprintf(`"protocolVersion":"2025-06-18","capabilities":{"tools":{},"experimental":{%s:{}}},%q:{"name":%s,"title":%s,"version":%s}`,
		literal(everything(), asLower), member, literal(everything(), asLower), literal(everything(), asUsual), literal(everything(), asUpper))
}

// response of the server that repeats secrets to a message, or "".
func response(message []byte) string {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID == nil || m.Method == "" {
		return ""
	}
	switch m.Method {
	case "initialize":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, implementation("serverInfo"))
	case "ping":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	case "tools/list": // a tool that must not be called, which reports name
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{%s:{"type":"string","default":%s}}},"annotations":{"title":%s}}]}}`,
			m.ID, literal(everything(), asUpper), literal(everything(), asUsual), literal(everything(), asLower), literal(everything(), asUpper), literal(everything(), asUsual))
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":%s,"data":{%s:%s}}}`,
		m.ID, literal(everything(), asLower), literal(everything(), asUpper), literal(everything(), asUsual))
}

// said are the messages of a client that repeats secrets. The last request has
// no usable id, so that there is a finding with evidence.
func said() []string {
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%s,"params":{%s:%s}}`,
		literal(everything(), asLower), literal(everything(), asUpper), literal(everything(), asUsual))
	return []string{
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%s}}`, implementation("clientInfo")),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call, strings.Replace(call, `"id":2`, `"id":null`, 1),
	}
}

func echo(args []string) error {
	fmt.Fprintf(os.Stderr, "%s; environment %s %s %s; arguments %q\n",
		everything(), os.Getenv("SERVICE_API_KEY"), os.Getenv("OUR_TOKEN"), os.Getenv("NAMED_KEY"), args)
	if len(args) > 0 && args[0] == "client" {
		return echoClient(args[1+len(secretArguments):])
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Bytes()
		if len(args) > 0 && args[0] == "refuse" {
			line = bytes.Replace(line, []byte(`"initialize"`), []byte(`"refused"`), 1)
		}
		if reply := response(line); reply != "" {
			fmt.Println(reply)
		}
	}
	return lines.Err()
}

func echoClient(server []string) error {
	if !strings.HasPrefix(server[0], "http") {
		cmd := exec.Command(server[0], server[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		replies := bufio.NewReader(out)
		for i, m := range said() {
			if _, err := io.WriteString(in, m+"\n"); err != nil {
				return err
			}
			if i != 1 { // a notification
				_, _ = replies.ReadString('\n')
			}
		}
		_ = in.Close()
		return cmd.Wait()
	}
	session := ""
	for _, m := range said() {
		r, err := http.NewRequest(http.MethodPost, server[0], strings.NewReader(m))
		if err != nil {
			return err
		}
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + secretHeader},
			"Mcp-Protocol-Version": {"2025-06-18"}, "X-Echo": {strings.Join(secrets(), " ")}, "User-Agent": {secretInherited},
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		_ = reply.Body.Close()
		if id := reply.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	return nil
}

// echoing is the server over HTTP that repeats secrets, in an event stream where
// it can.
func echoing(t *testing.T) (url string, flags []string) {
	t.Helper()
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		line := strings.Join(secrets(), " ")
		w.Header().Set("X-Echo", line)
		w.Header().Set("Set-Cookie", "a="+secretHeader)
		reply := response(body)
		switch {
		case r.Method != http.MethodPost:
			http.Error(w, everything(), http.StatusMethodNotAllowed)
		case reply == "":
			w.WriteHeader(http.StatusAccepted)
		case bytes.Contains(body, []byte("initialize")):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, reply)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, ": %s\nid: %s\nretry: %s\ndata: %s\n\n", line, line, line, reply)
		}
	}))
	url = strings.Replace(s.URL, "http://", "http://me:"+secretUser+"@", 1) + "/" + secretPath + "/mcp?key=" + secretQuery
	return url, []string{
		"--header", "X-One: " + secretHeader, "--header", "X-Two: " + secretArgument, "--header", "Cookie: a=" + secretJoined,
	}
}

var jsonEscape = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)

// decoded undoes escapes, wherever they are.
func decoded(text string) string {
	for range 3 {
		text = jsonEscape.ReplaceAllStringFunc(text, func(e string) string {
			n, _ := strconv.ParseUint(e[2:], 16, 32)
			return string(rune(n))
		})
		text = html.UnescapeString(strings.NewReplacer(`\/`, "/", `\"`, `"`, `\\`, `\`).Replace(text))
		text = regexp.MustCompile(`%[0-9a-fA-F]{2}`).ReplaceAllStringFunc(text, func(e string) string {
			n, _ := strconv.ParseUint(e[1:], 16, 8)
			return string([]byte{byte(n)})
		})
	}
	return text
}

// wantHidden looks for all secrets in whatever was written, however it is
// escaped, and for the word that stands in their place in some.
func (o outcome) wantHidden(t *testing.T, redactedIn ...string) {
	t.Helper()
	plain := make(map[string]string, len(o.files))
	for name, text := range o.files {
		plain[name] = decoded(text)
		o.files[name+" as it is"] = text
	}
	hidden := secrets()
	for _, secret := range secrets() {
		hidden = append(hidden, secret[:10]) // as of a text that was cut
	}
	outcome{files: plain}.wantWithout(t, hidden...)
	o.wantWithout(t, hidden...)
	for _, name := range redactedIn {
		// A recording does not name its target.
		unnamed := (name == "statement.json" || name == "results.sarif") && strings.Contains(o.files["statement.json"], `"target": {}`)
		if !strings.Contains(o.files[name], transport.Redacted) && !unnamed {
			t.Errorf("%s does not show that something was taken out:\n%.2000s", name, o.files[name])
		}
	}
}

// everyReport are the files in which a target that repeats secrets shows.
var everyReport = []string{"results.json", "junit.xml", "checklist.md", "report.html", "trace.jsonl", "statement.json", "results.sarif"}

// TestNoSecretIsShown has a peer that repeats all secrets in all that it says, and
// looks for them in whatever the command writes.
func TestNoSecretIsShown(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := append([]string{"--", program, asEcho}, secretArguments...)
	client := append([]string{"--", program, asEcho, "client"}, secretArguments...)
	url, flags := echoing(t)
	flags = append(flags, "--header", "X-Three: "+secretEnv)
	recorded := filepath.Join(t.TempDir(), "trace.jsonl")
	foreign := fmt.Sprintf(`{"conn":"c1","seq":0,"t":0,"kind":"http-request","from":"client","stream":"post:1","transport":"http","method":"POST","url":%q,"header":{"Authorization":[%s],"X-Api-Key":[%s],"Cookie":[%s]}}
{"conn":"c1","seq":1,"t":0.1,"kind":"message","from":"server","stream":"post:1","raw":%s}
{"conn":"c1","seq":2,"t":0.1,"kind":"message","from":"server","stream":"post:1","raw":%s}
`, url, literal("Bearer "+secretArgument, asUsual), literal(secretHeader, asUsual), literal("a="+secretJoined+"; b="+secretEnv, asUsual), literal(response([]byte(said()[0])), asUsual), literal(response([]byte(said()[2])), asUpper))
	if err := os.WriteFile(recorded, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, command, stdin string
		args                 []string
		silent               bool // nothing of what is repeated is in results
	}{
		{name: "server over stdio", command: "server", args: append(append([]string{"--config", os.DevNull, "--select", "base.error.*"}, secretFlags...), target...)},
		{name: "server over HTTP", command: "server", args: append([]string{"--config", os.DevNull, "--url", url, "--select", "base.error.*"}, flags...)},
		{name: "server that does not start", command: "server", silent: true, args: append(append([]string{"--config", os.DevNull, "--select", "ping.*"}, secretFlags...), append([]string{"--", filepath.Join(t.TempDir(), "none")}, secretArguments...)...)},
		{name: "client over HTTP", command: "client", args: append(append([]string{"--scenario", "baseline"}, secretFlags...), client...)},
		{name: "client over stdio", command: "client", args: append(append([]string{"--scenario", "baseline", "--transport", "stdio"}, secretFlags...), client...)},
		{name: "client over SSE", command: "client", silent: true, args: append(append([]string{"--scenario", "baseline", "--transport", "sse"}, secretFlags...), client...)},
		{name: "proxy over stdio", command: "proxy", stdin: strings.Join(said(), "\n") + "\n", args: append(append([]string{"--role", "client"}, secretFlags...), target...)},
		{name: "recording", command: "judge", args: []string{recorded}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			summary := filepath.Join(t.TempDir(), "summary.md")
			env := append(slices.Clone(secretEnvironment), "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="+summary)
			o := conductAs(t, tt.command, env, tt.stdin, tt.args...)
			if o.code == exitUsage {
				t.Fatalf("%s", o.files["stderr"])
			}
			if tt.command == "proxy" {
				// The client is told what the server says, as it is.
				_, o.files["stderr"], _ = strings.Cut(o.files["stderr"], "mcpconform")
				delete(o.files, "stdout")
			}
			text, err := os.ReadFile(summary)
			if err != nil || !strings.Contains(o.files["stdout"]+o.files["stderr"], "::notice title=") {
				t.Errorf("nothing is written for GitHub Actions: %v", err)
			}
			o.files["summary.md"] = string(text)
			in := everyReport
			if tt.silent {
				in = []string{"results.json"}
			}
			o.wantHidden(t, in...)
		})
	}
}

// TestProxyShowsNoSecret has the proxy over HTTP between a client and a server
// that both repeat what is secret to either of them.
func TestProxyShowsNoSecret(t *testing.T) {
	t.Setenv("NAMED_KEY", secretNamed)
	t.Setenv("OUR_TOKEN", secretInherited)
	url, flags := echoing(t)
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, stderr := io.Pipe()
	cmd := newRoot()
	cmd.SetErr(stderr)
	args := []string{"proxy", "--role", "client", "--url", url, "--transport", "http"}
	o := outcome{files: make(map[string]string)}
	for i, flag := range []string{"--json", "--junit", "--markdown", "--html", "--trace", "--attestation", "--sarif"} {
		args = append(args, flag, filepath.Join(dir, everyReport[i]))
	}
	cmd.SetArgs(append(args, flags...))
	visited := make(chan error, 1)
	var printed bytes.Buffer
	go func() {
		lines := bufio.NewReader(said)
		line, _ := lines.ReadString('\n')
		printed.WriteString(line)
		_, rest, _ := strings.Cut(line, "find the server at ")
		at, _, _ := strings.Cut(rest, "/"+transport.Redacted)
		// One secret is the client's alone.
		err := echoClient([]string{at + "/" + secretPath + "/mcp?key=" + secretQuery + "&token=" + secretEnv})
		interrupt()
		_, _ = io.Copy(&printed, lines)
		visited <- err
	}()
	err := cmd.ExecuteContext(ctx)
	_ = stderr.Close()
	if err := <-visited; err != nil {
		t.Fatal(err)
	}
	if code := exitError(exitNotConformant); err != code {
		t.Errorf("it ends with %v", err)
	}
	for _, name := range everyReport {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		o.files[name] = string(raw)
	}
	o.files["stderr"] = printed.String()
	o.wantHidden(t, append(everyReport, "stderr")...)
}

// TestServeShowsNoSecret has a client that a person connects: it repeats what is
// secret in our environment, and the announcement is read as well.
func TestServeShowsNoSecret(t *testing.T) {
	t.Setenv("OUR_TOKEN", secretInherited)
	t.Setenv("NAMED_KEY", secretNamed)
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	heard, stderr := io.Pipe()
	cmd := newRoot()
	cmd.SetErr(stderr)
	args := []string{"client", "--serve", "--quiet", "--scenario", "exchange/requests", "--servers", filepath.Join(dir, "servers.json")}
	for i, flag := range []string{"--json", "--junit", "--markdown", "--html", "--trace", "--attestation", "--sarif"} {
		args = append(args, flag, filepath.Join(dir, everyReport[i]))
	}
	cmd.SetArgs(args)
	visited := make(chan error, 1)
	var printed bytes.Buffer
	go func() {
		var err error
		for lines := bufio.NewScanner(heard); lines.Scan(); {
			printed.WriteString(lines.Text() + "\n")
			if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "baseline" {
				err = echoClient([]string{fields[1]})
			}
			if strings.Contains(lines.Text(), "exchange/requests") {
				interrupt()
			}
		}
		visited <- err
	}()
	err := cmd.ExecuteContext(ctx)
	_ = stderr.Close()
	if err := <-visited; err != nil {
		t.Fatal(err)
	}
	if code := exitError(exitNotConformant); err != code {
		t.Errorf("it ends with %v", err)
	}
	o := outcome{files: map[string]string{"stderr": printed.String()}}
	for _, name := range append(everyReport, "servers.json") {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		o.files[name] = string(raw)
	}
	// Nothing else was handed over.
	for name, text := range o.files {
		for _, secret := range []string{secretInherited, secretNamed} {
			if strings.Contains(decoded(text), secret) || strings.Contains(text, secret) {
				t.Errorf("%s holds the secret %s", name, secret)
			}
		}
	}
	if !strings.Contains(o.files["results.json"], transport.Redacted) {
		t.Error("results.json does not show that something was taken out")
	}
}

// TestInitWritesNoSecret reads what init writes, fills in what it leaves open, and
// gets the same target.
func TestInitWritesNoSecret(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url, flags := echoing(t)
	flags = append(flags, "--header", "X-Three: "+secretEnv)
	for _, tt := range []struct {
		name string
		args []string
		want config.Target
		vars []string // what has to be filled in, in this order
	}{
		{
			"stdio", append(append([]string(nil), secretFlags...), append([]string{"--", program, asEcho}, secretArguments...)...),
			config.Target{Command: append([]string{program, asEcho}, secretArguments...)},
			[]string{secretArgument, secretJoined, secretHeader, secretUser, secretPath, secretQuery},
		},
		{"HTTP", append([]string{"--url", url}, flags...), config.Target{URL: url}, []string{"me:" + secretUser, secretPath, secretQuery}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mcpconform.yaml")
			cmd := exec.CommandContext(t.Context(), program, append([]string{"init", "--config", file}, tt.args...)...)
			cmd.Env = append(append(os.Environ(), asCommand+"=1"), secretEnvironment...)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				t.Fatal(err, said.String())
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			outcome{files: map[string]string{"mcpconform.yaml": string(raw), "output": said.String()}}.wantHidden(t)
			given := map[string]string{"SERVICE_API_KEY": secretEnv, "NAMED_KEY": secretNamed}
			for i, v := range tt.vars {
				given[fmt.Sprintf("MCP_SECRET_%d", i+1)] = v
			}
			c, err := config.Load(file, func(name string) (string, bool) { v, ok := given[name]; return v, ok })
			if err != nil {
				t.Fatalf("%v\n%s", err, raw)
			}
			if strings.Join(c.Target.Command, "\n") != strings.Join(tt.want.Command, "\n") || c.Target.URL != tt.want.URL {
				t.Errorf("the target is %q %q, want %q %q\n%s", c.Target.Command, c.Target.URL, tt.want.Command, tt.want.URL, raw)
			}
		})
	}
}

// TestReferenceClientShowsNoSecret has it meet a server that repeats secrets.
func TestReferenceClientShowsNoSecret(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{"reference", "client", "--", program, asEcho}, secretArguments...)...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1", "SERVICE_API_KEY="+secretEnv), secretEnvironment...)
	said, _ := cmd.CombinedOutput() // the server refuses everything
	outcome{files: map[string]string{"output": string(said)}}.wantHidden(t, "output")
}

// TestMockShowsNoSecret has it tell of a client that does something else than the
// script, with a secret that both inherit.
func TestMockShowsNoSecret(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.md")
	text := "# A call\n\n```json expect\n{\"method\": \"tools/call\", \"params\": {\"name\": \"another\"}}\n```\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "mock", "--script", file)
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), secretEnvironment...)
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":` + literal(secretInherited, asUpper) + `}}`
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call, ""}, "\n"))
	var told bytes.Buffer
	cmd.Stderr = &told
	_ = cmd.Run() // the script does not run to its end
	outcome{files: map[string]string{"stderr": told.String()}}.wantHidden(t, "stderr")
}

// TestErrorsShowNoSecret gives secrets together with what cannot be done.
func TestErrorsShowNoSecret(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	malformed := filepath.Join(t.TempDir(), "malformed.yaml")
	text := "target: {env: {A: b}, API_KEY=" + secretArgument + ": " + secretHeader + "}\nmcpServers: *" + secretJoined + "\n"
	if err := os.WriteFile(malformed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"server", "--config", os.DevNull, "--url", "ftp://me:" + secretUser + "@x/?key=" + secretQuery},
		{"server", "--config", os.DevNull, "--url", "http://me:" + secretUser + "@x:no-port/?key=" + secretQuery},
		{"server", "--config", os.DevNull, "--url", "http://x/" + secretPath + "/?key=" + secretQuery, "--", "x", "--token", secretArgument},
		{"server", "--config", os.DevNull, "--url", "http://me:" + secretUser + "/" + secretPath + "@x/?key=" + secretQuery},
		{"server", "--config", os.DevNull, "--bearer-env", secretArgument},
		{"server", "--config", os.DevNull, "--url", "http://x", "--header", "X-One " + secretHeader},
		{"server", "--config", os.DevNull, "--url", "http://x", "--header", "X One: " + secretHeader},
		{"server", "--config", os.DevNull, "--env", "ONE:" + secretJoined, "--", "x"},
		{"client", "--env", secretJoined, "--", "x"},
		{"server", "--config", malformed},
		{"server", "--config", os.DevNull, "--from", malformed},
		{"proxy", "--url", "http://me:" + secretUser + "@\x7f/?key=" + secretQuery},
		{"reference", "client", "http://me:" + secretUser + "@127.0.0.1:1/" + secretPath + "/?key=" + secretQuery},
		{"reference", "client", "--", filepath.Join(t.TempDir(), "none"), "--token", secretArgument},
		{"client", "--serve", "--", "x", "--token=" + secretArgument},
		{"--token=" + secretArgument}, {"server", "--token=" + secretArgument}, {"explain", "TOKEN=" + secretArgument},
		slices.Concat([]string{"init", "--config", filepath.Join(t.TempDir(), "new")}, secretFlags, []string{"--", program, asEcho, "refuse"}, secretArguments),
	} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(append(os.Environ(), asCommand+"=1"), secretEnvironment...)
		said, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%q is not an error", args)
		}
		outcome{files: map[string]string{args[0]: string(said)}}.wantHidden(t)
	}
}
