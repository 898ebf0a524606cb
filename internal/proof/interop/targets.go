// Package interop runs the real servers and clients of fixtures/targets. Tests compare the findings on them with
// findings that were confirmed by reading.
package interop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Targets knows the real servers and clients.
type Targets struct {
	program string // .ci/targets, built
	repo    string
}

// Target is one of them, ready to be run.
type Target struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"` // in addition to ours
	URL     string            `json:"url"`
	Client  string            `json:"client"` // the id of the client to log in as, if one is registered
	// Authorizes says that the client obtains an access token where a server demands one.
	Authorizes bool `json:"authorizes"`
}

// Open finds the targets of the repository at a path, or skips the test when
// they are not asked for.
func Open(t *testing.T, repo string) *Targets {
	t.Helper()
	if os.Getenv("MCPCONFORM_INTEROP") == "" {
		t.Skip("left out: real servers and clients; install them with `go run ./.ci/targets install` and set " +
			"MCPCONFORM_INTEROP=1")
	}
	if testing.Short() {
		t.Skip("left out with -short: real servers and clients")
	}
	s := &Targets{program: filepath.Join(t.TempDir(), "targets"), repo: repo}
	Build(t, s.program, filepath.Join(repo, ".ci", "targets"))
	return s
}

// Build builds the command in a folder of the repository.
func Build(t *testing.T, path, folder string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, out)
	}
}

// List returns the names of the targets of a kind over a transport.
func (s *Targets) List(t *testing.T, kind, over string) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(string(s.ask(t, "list", "-kind", kind, "-transport", over))) {
		if fields := strings.Fields(line); len(fields) > 0 {
			names = append(names, fields[0])
		}
	}
	if len(names) == 0 {
		t.Fatalf("there is no target of kind %s over %s", kind, over)
	}
	return names
}

// Each runs a test for each target of a kind over transports, a few at a time: a peer spends most
// of its time starting and waiting, so that there are more of them than processors.
func (s *Targets) Each(t *testing.T, kind string, atATime int, transports []string,
	test func(t *testing.T, name, over string)) {
	t.Helper()
	var running sync.WaitGroup
	slots := make(chan struct{}, atATime)
	for _, over := range transports {
		for _, name := range s.List(t, kind, over) {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				t.Run(name+" "+over, func(t *testing.T) { test(t, name, over) })
			})
		}
	}
	running.Wait()
}

// Show returns a target over a transport. The flags and arguments are those of
// "targets show".
func (s *Targets) Show(t *testing.T, name, over string, flags, args []string) Target {
	t.Helper()
	command := append([]string{"show", "-tmp", t.TempDir()}, flags...)
	var target Target
	if err := json.Unmarshal(s.ask(t, append(append(command, name, over), args...)...), &target); err != nil {
		t.Fatal(err)
	}
	return target
}

// Environ returns our environment with that of the target.
func (t Target) Environ() []string {
	env := os.Environ()
	for name, value := range t.Env {
		env = append(env, name+"="+value)
	}
	return env
}

func (s *Targets) ask(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Dir = s.repo
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("targets %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}
