// Package action tests the shell script of the GitHub Action.
package action

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestAction(t *testing.T) {
	if testing.Short() || runtime.GOOS == "windows" {
		t.Skip("left out with -short and on Windows: the action, which needs a shell")
	}
	for _, tool := range []string{"bash", "curl", "tar", "xargs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("left out: the action, which needs %s", tool)
		}
	}
	dir := t.TempDir()
	releases := filepath.Join(dir, "releases")
	bin, release, latest := filepath.Join(dir, "bin"), filepath.Join(releases, "download", "v0.1.0"), filepath.Join(releases, "latest", "download")
	for _, d := range []string{bin, release, latest} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(bin, "mcpconform")
	must(t, exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/mcpconform"))
	archive := "mcpconform_0.1.0_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	must(t, exec.CommandContext(t.Context(), "tar", "-czf", filepath.Join(release, archive), "-C", bin, "mcpconform"))
	data, err := os.ReadFile(filepath.Join(release, archive))
	if err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), archive)
	wrong := strings.Repeat("0", 64) + "  " + archive + "\n"

	server, faulty := "'"+program+"' reference server", "'"+program+"' mock --fault ping.refused"
	for _, tt := range []struct {
		name, inputs, sums string
		onPath             bool
		code               int
		verdict, said      string
	}{
		{name: "conformant", inputs: "COMMAND=" + server, onPath: true, verdict: "conformant"},
		{name: "not conformant", inputs: "COMMAND=" + faulty, onPath: true, code: 1, verdict: "not-conformant"},
		{name: "never fails", inputs: "COMMAND=" + faulty + "\nFAIL_ON=never", onPath: true, verdict: "not-conformant"},
		{name: "incomplete", inputs: "COMMAND=/no/such/program", onPath: true, code: 3, verdict: "incomplete"},
		{name: "wrong usage is never hidden", inputs: "COMMAND=" + server + "\nFAIL_ON=never\nARGS=--no-such-flag", onPath: true, code: 2},
		{name: "downloaded", inputs: "COMMAND=" + server + "\nVERSION=v0.1.0", sums: good, verdict: "conformant"},
		{name: "latest", inputs: "COMMAND=" + server + "\nVERSION=latest", sums: "00  other.tgz\n" + good, verdict: "conformant"},
		{name: "latest, wrong checksum", inputs: "COMMAND=" + server + "\nVERSION=latest", sums: wrong, code: 2, said: "the checksum of " + archive},
		{name: "latest has no such file", inputs: "COMMAND=" + server + "\nVERSION=latest", sums: "x\n", code: 2, said: "has to be like"},
		{name: "no such release", inputs: "COMMAND=" + server + "\nVERSION=v0.2.0", code: 2, said: "cannot be downloaded"},
		{name: "wrong checksum", inputs: "COMMAND=" + server + "\nVERSION=v0.1.0", sums: wrong, code: 2, said: "the checksum of " + archive},
		{name: "not in the checksums", inputs: "COMMAND=" + server + "\nVERSION=v0.1.0", sums: "x\n", code: 2, said: "does not list"},
		{name: "no program", inputs: "COMMAND=" + server, code: 2, said: "set version"},
		{name: "version", inputs: "VERSION=v1/../..", code: 2, said: "has to be like"},
		{name: "nothing to test", onPath: true, code: 2, said: "give a command"},
		{name: "revision", inputs: "REVISION=2020-01-01", onPath: true, code: 2, said: "revision"},
		{name: "role", inputs: "ROLE=host", onPath: true, code: 2, said: "role has to be"},
		{name: "not run by the shell", inputs: "COMMAND=/no/such$(touch " + dir + "/touched)`touch " + dir + "/touched`;touch " + dir + "/touched", onPath: true, code: 3, verdict: "incomplete"},
		{name: "quotes", inputs: "COMMAND='open", onPath: true, code: 2, said: "not in pairs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, folder := range []string{release, latest} {
				if err := os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(tt.sums), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			temp := t.TempDir()
			output, summary := filepath.Join(temp, "output"), filepath.Join(temp, "summary")
			cmd := exec.CommandContext(t.Context(), "bash", "run.sh")
			cmd.Env = []string{
				"PATH=/usr/bin:/bin", "HOME=" + temp, "RUNNER_TEMP=" + temp, "GITHUB_ACTIONS=true", "GITHUB_OUTPUT=" + output, "GITHUB_STEP_SUMMARY=" + summary,
				"MCPCONFORM_RELEASES=file://" + releases,
				"INPUT_ROLE=server", "INPUT_REVISION=2025-06-18", "INPUT_FAIL_ON=failure", "INPUT_ARGS=--select ping",
			}
			if tt.onPath {
				cmd.Env = append(cmd.Env, "PATH="+bin+":/usr/bin:/bin")
			}
			for input := range strings.Lines(tt.inputs) {
				cmd.Env = append(cmd.Env, "INPUT_"+strings.TrimSuffix(input, "\n"))
			}
			said, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(string(said), tt.said) {
				t.Fatalf("%v, want exit code %d and %q\n%s", err, tt.code, tt.said, said)
			}
			outputs := make(map[string]string)
			written, _ := os.ReadFile(output)
			for line := range strings.Lines(string(written)) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				outputs[name] = value
			}
			if outputs["verdict"] != tt.verdict {
				t.Errorf("the outputs are %q, want the verdict %q", outputs, tt.verdict)
			}
			if tt.verdict == "" {
				return
			}
			for _, path := range []string{outputs["json"], outputs["junit"], outputs["html"], outputs["sarif"], summary} {
				if info, err := os.Stat(path); err != nil || info.Size() == 0 {
					t.Errorf("the report %q: %v", path, err)
				}
			}
			if tt.verdict == "conformant" && !strings.HasPrefix(outputs["counts"], `{"pass":5`) {
				t.Errorf("the counts are %s", outputs["counts"])
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "touched")); err == nil {
		t.Error("a command was read by the shell")
	}
}

func must(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
}
