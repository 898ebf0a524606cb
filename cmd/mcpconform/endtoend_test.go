package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/wellformed"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/result"
)

// asCommand makes this test's binary the command itself.
const asCommand = "MCPCONFORM_TEST_COMMAND"

// outcome of a command that was run in a process of its own.
type outcome struct {
	code   int
	run    result.Run
	files  map[string]string // whatever was written, by what it is
	memory int64             // bytes at the most; 0 where that is not known
}

// conduct runs `mcpconform server` with all reports.
func conduct(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--config=") }) {
		args = append([]string{"--config", os.DevNull}, args...)
	}
	return conductAs(t, "server", env, "", args...)
}

// conductAs runs a command that tests something, with all reports.
func conductAs(t *testing.T, command string, env []string, stdin string, args ...string) outcome {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	reports := []string{"results.json", "junit.xml", "checklist.md", "report.html", "trace.jsonl", "statement.json", "badge.svg", "results.sarif"}
	all := []string{command}
	for i, flag := range []string{"--json", "--junit", "--markdown", "--html", "--trace", "--attestation", "--badge", "--sarif"} {
		all = append(all, flag, filepath.Join(dir, reports[i]))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // for a run that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(all, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), env...)
	_ = cmd.Run() // the exit code tells
	if ctx.Err() != nil {
		t.Fatal("the run does not end")
	}
	o := outcome{
		code: cmd.ProcessState.ExitCode(), memory: peak(cmd.ProcessState),
		files: map[string]string{"stdout": stdout.String(), "stderr": stderr.String()},
	}
	if o.code == exitUsage {
		return o
	}
	for _, name := range reports {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(raw) == 0 {
			t.Errorf("%s was not written: %v\n%s", name, err, stderr.String())
		}
		o.files[name] = string(raw)
		if err := wellformed.Report(name, o.files[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := json.Unmarshal([]byte(o.files["results.json"]), &o.run); err != nil || len(o.run.Requirements) == 0 {
		t.Errorf("results.json is incomplete: %v", err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(o.files["results.json"]))); strings.Count(o.files["statement.json"], sum) != 1 {
		t.Errorf("the attestation is not about results.json, whose digest is %s:\n%s", sum, o.files["statement.json"])
	}
	return o
}

// served puts a handler in front of the reference server.
func served(t *testing.T, before func(w http.ResponseWriter, r *http.Request) (done bool)) http.Handler {
	t.Helper()
	handler := server.New(server.Options{Info: map[string]any{"name": "reference", "version": "1"}}).HTTP()
	t.Cleanup(handler.Close)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			handler.ServeHTTP(w, r)
		}
	})
}

func start(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// wantCode complains with what the command said.
func (o outcome) wantCode(t *testing.T, code int, says string) {
	t.Helper()
	// A line may be broken anywhere.
	if text := strings.Join(strings.Fields(o.files["stdout"]+o.files["stderr"]), " "); o.code != code || !strings.Contains(text, says) {
		t.Errorf("exit code %d, want %d and %q:\n%s%s", o.code, code, says, o.files["stdout"], o.files["stderr"])
	}
}

// few is a selection that is quick to run.
const few = "--select=base.batch.not-served,base.error.method-not-found,http.server.version-header-missing"

func TestTLSFlags(t *testing.T) {
	manyRuns(t)
	s := httptest.NewUnstartedServer(served(t, nil))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	strict := httptest.NewUnstartedServer(served(t, nil))
	strict.Config.ErrorLog = s.Config.ErrorLog
	strict.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	t.Cleanup(strict.Close)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificates(t, s.Certificate(), ca, cert, key)
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"untrusted", []string{"--url", s.URL + "/mcp"}, exitIncomplete, "certificate"},
		{"insecure", []string{"--url", s.URL + "/mcp", "--insecure"}, exitConformant, "CONFORMANT:"},
		{"authority", []string{"--url", s.URL + "/mcp", "--cacert", ca}, exitConformant, "CONFORMANT:"},
		{"no client certificate", []string{"--url", strict.URL + "/mcp", "--cacert", ca}, exitIncomplete, "certificate"},
		{"client certificate", []string{"--url", strict.URL + "/mcp", "--cacert", ca, "--cert", cert, "--key", key}, exitConformant, "CONFORMANT:"},
		{"no such file", []string{"--url", s.URL + "/mcp", "--cacert", filepath.Join(dir, "none.pem")}, exitUsage, "none.pem"},
		{"no certificate in the file", []string{"--url", s.URL + "/mcp", "--cacert", key}, exitUsage, "does not hold a PEM certificate"},
		{"no TLS", []string{"--url", "https" + strings.TrimPrefix(start(t, served(t, nil)).URL, "http") + "/mcp"}, exitIncomplete, "HTTP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conduct(t, nil, append(tt.args, few)...).wantCode(t, tt.code, tt.says)
		})
	}
}

// writeCertificates writes an authority and a pair for a client.
func writeCertificates(t *testing.T, authority *x509.Certificate, ca, cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour)}
	own, err := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		ca: {Type: "CERTIFICATE", Bytes: authority.Raw}, cert: {Type: "CERTIFICATE", Bytes: own}, key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUnixSocketFlags(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcpconform") // a socket's path may not be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: served(t, nil)}}
	s.Start()
	t.Cleanup(s.Close)
	conduct(t, nil, "--url", "http://localhost/mcp", "--unix-socket", path, few).wantCode(t, exitConformant, "CONFORMANT:")
	conduct(t, nil, "--url", "unix://"+path+"?path=/mcp", few).wantCode(t, exitConformant, "CONFORMANT:")
	conduct(t, nil, "--url", "unix://"+path+"-none?path=/mcp", few).wantCode(t, exitIncomplete, "no such file")
}

func TestProxyFromEnvironment(t *testing.T) {
	proxied := make(chan string, 10_000)
	proxy := start(t, served(t, func(w http.ResponseWriter, r *http.Request) bool {
		proxied <- r.Header.Get("Proxy-Authorization") + " " + r.URL.String()
		// The requests that a proxy passes on name a path alone.
		r.URL.Scheme, r.URL.Host, r.Host = "", "", "localhost"
		return false
	}))
	u := strings.Replace(proxy.URL, "http://", "http://me:pr0xy-secret@", 1)
	o := conduct(t, []string{"HTTP_PROXY=" + u, "http_proxy=" + u, "NO_PROXY=", "no_proxy="}, "--url", "http://mcp.invalid/mcp", "--transport=http", few)
	o.wantCode(t, exitConformant, "CONFORMANT:")
	if got := <-proxied; got != "Basic bWU6cHIweHktc2VjcmV0 http://mcp.invalid/mcp" {
		t.Errorf("the proxy was asked for %q", got)
	}
	o.wantWithout(t, "pr0xy-secret", "bWU6cHIweHktc2VjcmV0")
	gone := nobody(t)
	o = conduct(t, []string{"HTTP_PROXY=" + gone, "http_proxy=" + gone, "NO_PROXY=", "no_proxy="}, "--url", "http://mcp.invalid/mcp", few)
	o.wantCode(t, exitIncomplete, "the proxy cannot be reached")
}

// wantWithout looks for secrets in whatever was written.
func (o outcome) wantWithout(t *testing.T, secrets ...string) {
	t.Helper()
	for name, text := range o.files {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s holds the secret %s: …%s…", name, secret, text[max(0, i-200):min(len(text), i+60)])
			}
		}
	}
}

// Every way to hand over a secret, to a server that repeats all of them
// wherever it can.
func TestSecretsOfTheCommand(t *testing.T) {
	manyRuns(t)
	const (
		header, bearer, query    = "header-s3cret", "bearer-s3cret", "query-s3cret"
		password, path           = "user-s3cret", "9f86d081884c7d659a2feaa0c55ad015"
		everything               = header + " " + bearer + " " + query + " " + password + " " + path
		methodNotFound, noMethod = "base.error.method-not-found", "mcpconform/no-such-method"
	)
	s := start(t, served(t, func(w http.ResponseWriter, r *http.Request) bool {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/"+path)
		raw, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(raw))
		user, pass, basic := r.BasicAuth()
		if r.Header.Get("X-Own") != header || r.URL.Query().Get("key") != query || !basic && r.Header.Get("Authorization") != "Bearer "+bearer ||
			basic && (user != "me" || pass != password) {
			http.Error(w, "these are not the secrets", http.StatusForbidden)
			return true
		}
		if !bytes.Contains(raw, []byte(noMethod)) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", everything)
		reply := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": -1, "message": "no: " + everything}}
		var request struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(raw, &request)
		reply["id"] = request.ID
		_ = json.NewEncoder(w).Encode(reply)
		return true
	}))
	at := s.URL + "/" + path + "/mcp?key=" + query
	withUser := strings.Replace(at, "http://", "http://me:"+password+"@", 1)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	configured := write("mcpconform.yaml", "target: {url: '"+at+"', headers: {X-Own: '${OWN}', Authorization: 'Bearer ${TOKEN}'}}\n")
	client := write("client.json", `{"mcpServers": {"one": {"type": "http", "url": "`+at+`", "headers": {"X-Own": "${OWN}", "Authorization": "Bearer ${TOKEN}"}}}}`)
	for name, args := range map[string][]string{
		"flags":     {"--url", at, "--header", "X-Own: " + header, "--bearer-env", "TOKEN"},
		"user":      {"--url", withUser, "--header", "X-Own: " + header},
		"config":    {"--config=" + configured},
		"client":    {"--from", client},
		"HTTP only": {"--url", at, "--header", "X-Own: " + header, "--header", "Authorization: Bearer " + bearer, "--transport", "http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := conduct(t, []string{"OWN=" + header, "TOKEN=" + bearer}, append(args, "--select="+methodNotFound)...)
			o.wantCode(t, exitNotConformant, methodNotFound)
			secrets := []string{header, query, path}
			if name == "user" {
				secrets = append(secrets, password)
			} else {
				secrets = append(secrets, bearer)
			}
			o.wantWithout(t, secrets...)
			if !strings.Contains(o.files["trace.jsonl"], transport.Redacted) {
				t.Error("the trace does not show that something was taken out")
			}
		})
	}
	t.Run("wrong ones", func(t *testing.T) {
		conduct(t, nil, "--url", at, "--header", "X-Own: other-s3cret", few).wantWithout(t, query, path, "other-s3cret")
	})
}

// The environment and the arguments of a target hold secrets as well, which it
// may log.
func TestSecretsOfTheTarget(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const env, inherited, argument, configured = "env-s3cret", "inherited-s3cret", "argument-s3cret", "configured-s3cret"
	file := filepath.Join(t.TempDir(), "client.json")
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"one": map[string]any{
		"command": program, "args": []string{"--token", argument},
		"env": map[string]string{asReference: "1", "SERVICE_API_KEY": "${CONFIGURED}", asCommand: ""},
	}}})
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	ours := []string{"OUR_TOKEN=" + inherited, "CONFIGURED=" + configured}
	for name, args := range map[string][]string{
		"command": {"--env", asReference + "=1", "--env", asCommand + "=", "--env", "SERVICE_API_KEY=" + env, "--", program, "--token", argument},
		"client":  {"--from", file},
		"start": {
			"--env", asReference + "=1", "--env", asCommand + "=", "--env", "SERVICE_API_KEY=" + env,
			"--start", program + " --listen 127.0.0.1:{port} --token " + argument, "--url", "http://127.0.0.1:{port}/mcp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := conduct(t, ours, append([]string{"--select=ping.*"}, args...)...)
			o.wantCode(t, exitConformant, "CONFORMANT:")
			o.wantWithout(t, env, inherited, argument, configured)
			if !strings.Contains(o.files["trace.jsonl"], "key "+transport.Redacted) {
				t.Errorf("the target has not logged its key:\n%.500s", o.files["trace.jsonl"])
			}
		})
	}
}
