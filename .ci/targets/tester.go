package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// A tester runs mcpconform, built from this checkout, on targets.
type tester struct {
	in      *installer
	repo    string
	dir     string // for the program and what runs write
	program string
	keep    string // where results.json of each run stays, if anywhere
	runs    int
}

// newTester builds mcpconform into a directory of its own, which close removes.
func newTester(ctx context.Context, in *installer, repo string) (*tester, error) {
	dir, err := os.MkdirTemp("", "mcpconform-targets")
	if err != nil {
		return nil, err
	}
	t := &tester{in: in, repo: repo, dir: dir, program: filepath.Join(dir, "mcpconform")}
	build := exec.CommandContext(ctx, "go", "build", "-o", t.program, "./cmd/mcpconform")
	build.Dir = repo
	if out, err := build.CombinedOutput(); err != nil {
		t.close()
		return nil, fmt.Errorf("build mcpconform: %w\n%s", err, out)
	}
	return t, nil
}

// close removes the directory. Files that cannot be removed stay among the temporary files.
func (t *tester) close() { _ = os.RemoveAll(t.dir) }

// A subject is a target over one of its transports.
type subject struct {
	target    *Target
	transport string
}

func (s subject) String() string { return s.target.Name + " " + s.transport }

// subjects returns the targets with these names, or all of them but the tools, over each
// of their transports.
func (d *Data) subjects(names []string) ([]subject, error) {
	wanted := make(map[string]bool)
	for _, name := range names {
		if d.target(name) == nil {
			return nil, fmt.Errorf("no target %q", name)
		}
		wanted[name] = true
	}
	var all []subject
	for _, target := range d.Targets {
		if target.Kind == "tool" || len(names) > 0 && !wanted[target.Name] {
			continue
		}
		for _, over := range transports {
			if target.Transports[over] != nil {
				all = append(all, subject{target, over})
			}
		}
	}
	return all, nil
}

// usage of one process; the processor time is that of its children as well.
type usage struct {
	wall, cpu time.Duration
	memory    int64 // the largest resident set, in kB
}

// run tests the subject once, with further arguments of mcpconform.
func (t *tester) run(ctx context.Context, s subject, more ...string) (_ *result.Run, _ usage, err error) {
	dir, err := os.MkdirTemp(t.dir, "run")
	if err != nil {
		return nil, usage{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	values := Values{Tmp: dir}
	if s.target.Kind == "client" {
		values.URL, values.Server = "{url}", []string{"{command}"}
	}
	run, err := t.in.prepare(t.repo, s.target, s.transport, values)
	if err != nil {
		return nil, usage{}, err
	}
	file := filepath.Join(dir, "results.json")
	if s.target.Kind == authorizationServer { // whose command starts nothing
		stop, err := serve(ctx, dir, run)
		if err != nil {
			return nil, usage{}, err
		}
		defer stop()
	}
	args := append(append(s.arguments(run), more...), "-q", "--json", file)
	if s.target.Kind == "client" || s.transport == "stdio" {
		args = append(append(args, "--"), run.Command...)
	}
	cmd := exec.CommandContext(ctx, t.program, args...)
	cmd.Dir = dir // no mcpconform.yaml there
	cmd.Env = environ(run.Env)
	spent, out, err := timed(cmd)
	// The exit codes 1 and 3 are verdicts.
	if exit := new(exec.ExitError); errors.As(err, &exit) && (exit.ExitCode() == 1 || exit.ExitCode() == 3) {
		err = nil
	}
	if err != nil {
		return nil, usage{}, fmt.Errorf("mcpconform %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	t.runs++
	if t.keep != "" {
		kept := filepath.Join(t.keep, fmt.Sprintf("%s-%s-%d.json", s.target.Name, s.transport, t.runs))
		if err := os.Rename(file, kept); err != nil {
			return nil, usage{}, err
		}
		file = kept
	}
	found, err := readRun(file)
	return found, spent, err
}

// arguments returns those of mcpconform that say how the target is reached.
func (s subject) arguments(run *Run) []string {
	var args []string
	switch {
	case s.target.Kind == authorizationServer:
		args = []string{"authorization", "--url", run.URL, "--resource", "https://mcp.example/mcp"}
	case s.target.Kind == "client":
		args = []string{"client", "--transport", s.transport}
	case s.transport == "stdio":
		args = []string{"server"}
	default:
		args = []string{"server", "--transport", s.transport, "--url", run.URL, "--start", shellWords(run.Command)}
	}
	if run.Authorizes {
		args = append(args, "--authorizes")
	}
	if run.Client != "" {
		args = append(args, "--client-id", run.Client)
	}
	return args
}

// readRun reads a results.json.
func readRun(file string) (*result.Run, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	run := new(result.Run)
	if err := json.Unmarshal(raw, run); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}

// timed runs the command and returns what it spent and what it printed.
func timed(cmd *exec.Cmd) (usage, []byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, nil, err
	}
	// The system's own account of an ended process takes in its children.
	ended, memory := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var largest int64
		for {
			largest = max(largest, residentSet(cmd.Process.Pid))
			select {
			case <-tick.C:
			case <-ended:
				memory <- largest
				return
			}
		}
	}()
	err := cmd.Wait()
	spent := usage{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	close(ended)
	spent.memory = <-memory
	return spent, out.Bytes(), err
}

// residentSet returns the largest resident set that a running process has had, in kB, or
// 0 where the system does not tell.
func residentSet(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes
}

// shellWords quotes a command for a POSIX shell, which has to pass signals on.
func shellWords(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return "exec " + strings.Join(words, " ")
}
