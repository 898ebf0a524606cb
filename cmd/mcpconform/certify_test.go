package main

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// invoke runs the command in a process of its own, and returns what it writes.
func invoke(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir() // without a configuration
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), env...)
	out, _ := cmd.CombinedOutput() // the exit code tells
	return string(out), cmd.ProcessState.ExitCode()
}

// From the flags to the verdict of verify, which is that on the class.
func TestCertify(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, statement := filepath.Join(t.TempDir(), "bundle.zip"), filepath.Join(t.TempDir(), "statement.json")
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"conformant", nil, exitConformant, "conformant to server/stdio/core, version 1: 160 passed"},
		{"recommendation broken", []string{"--class", "extended", "--", program, "mock", "--fault", "tools.unknown-code-method"}, exitNotConformant, "not-conformant to server/stdio/extended, version 1: 1 warned"},
		{"started for the run", []string{"--start", "'" + program + "' reference server --http 127.0.0.1:{port}", "--url", "http://127.0.0.1:{port}/mcp"}, exitConformant, "conformant to server/http/core, version 1"},
		{"not there", []string{"--", "./no-such-program"}, exitIncomplete, "incomplete to server/stdio/core, version 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, code := invoke(t, nil, append([]string{"certify", "server", "--out", file, "--attestation", statement}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.says) {
				t.Errorf("certify: exit code %d, want %d, and %q:\n%s", code, tt.code, tt.says, out)
			}
			if out, code := invoke(t, nil, "verify", file, "--attestation", statement); code != tt.code || !strings.Contains(out, "ACCEPTED") || !strings.Contains(out, "the statement is about this bundle; it is not signed") {
				t.Errorf("verify: exit code %d, want %d:\n%s", code, tt.code, out)
			}
		})
	}
	badge := filepath.Join(t.TempDir(), "badge.json")
	if out, code := invoke(t, nil, "certify", "server", "--out", file, "--class", "extended", "--badge", badge, "--quiet"); code != exitConformant {
		t.Errorf("exit code %d: %s", code, out)
	}
	if text, err := os.ReadFile(badge); err != nil || !strings.Contains(string(text), `"message": "conformant, extended"`) {
		t.Errorf("%v: the badge is %s", err, text)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(raw, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := invoke(t, nil, "verify", file, "--attestation", statement); code != exitNotConformant || !strings.Contains(out, "REFUSED") || !strings.Contains(out, "is not about this bundle") {
		t.Errorf("verify of a bundle with something behind it: exit code %d:\n%s", code, out)
	}
}

// A configuration that leaves something out is refused as the flags are.
func TestCertifyConfiguration(t *testing.T) {
	for setting, content := range map[string]string{
		"select": "select: [ping]\n", "skip": "skip: [ping]\n", "strict": "strict: true\n", "expectSDK": "expectSDK: true\n",
		"expectedFailures": "expectedFailures:\n  - id: ping.response-empty\n    reason: known\n",
	} {
		t.Run(setting, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mcpconform.yaml")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := invoke(t, nil, "certify", "server", "--config", file, "--out", filepath.Join(t.TempDir(), "b.zip"))
			if code != exitUsage || !strings.Contains(out, "the configuration has "+setting) {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// A bundle holds no secret, and can be verified although some were taken out.
func TestBundleShowsNoSecret(t *testing.T) {
	manyRuns(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url, flags := echoing(t)
	flags = append(flags, "--header", "X-Three: "+secretEnv)
	for name, args := range map[string][]string{
		"stdio": slices.Concat(secretFlags, []string{"--", program, asEcho}, secretArguments),
		"HTTP":  append([]string{"--url", url}, flags...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "bundle.zip")
			o := outcome{files: make(map[string]string)}
			statement := filepath.Join(t.TempDir(), "statement.json")
			o.files["certify"], _ = invoke(t, secretEnvironment, append([]string{"certify", "server", "--timeout", "2s", "--out", file, "--attestation", statement}, args...)...)
			text, err := os.ReadFile(statement)
			if err != nil {
				t.Fatalf("%v: %s", err, o.files["certify"])
			}
			o.files["statement.json"] = string(text)
			z, err := zip.OpenReader(file)
			if err != nil {
				t.Fatalf("%v: %s", err, o.files["certify"])
			}
			defer z.Close()
			for _, f := range z.File {
				in, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(in)
				if err != nil {
					t.Fatal(err)
				}
				o.files[f.Name] = string(text)
			}
			out, code := invoke(t, nil, "verify", file)
			if o.files["verify"] = out; code != exitNotConformant || !strings.Contains(out, "ACCEPTED") {
				t.Errorf("verify: exit code %d\n%s", code, out)
			}
			o.wantHidden(t, "results.json", "trace.jsonl", "checklist.md", "configuration.json", "reproduce.md", "statement.json")
		})
	}
}
