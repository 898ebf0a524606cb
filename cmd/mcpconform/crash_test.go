//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/suites/result"
)

// The program may end at a bad moment. It then reports what it has seen, leaves no process behind and no half-written
// file.

// crashed is a run of the command that can be met in the middle.
type crashed struct {
	*exec.Cmd
	dir string // of the reports
	// temporary is the folder for temporary files.
	temporary string
	stderr    *bufio.Scanner
	mark      string // in the environment of whatever it starts
	t         *testing.T
}

var crashes atomic.Int64

// deaf is a target as a shell script. It ignores signals, has a child outside its group, announces itself and stays,
// even if nobody speaks to it.
const deaf = `trap '' INT TERM HUP; setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo here > "$HERE"; while :; do sleep 1000 </dev/null; done`

// meet runs the command in its own folder until its target is there.
func meet(t *testing.T, args ...string) *crashed {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &crashed{dir: t.TempDir(), temporary: t.TempDir(), mark: fmt.Sprintf("MCPCONFORM_TEST_CRASH=%d-%d", os.Getpid(), crashes.Add(1)), t: t}
	here := filepath.Join(t.TempDir(), "here")
	if err := syscall.Mkfifo(here, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Cmd = exec.Command(program, args...)
	c.Dir, c.Env = c.dir, append(os.Environ(), asCommand+"=1", "HERE="+here, c.mark, "GITHUB_ACTIONS=", "TMPDIR="+c.temporary)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stderr = bufio.NewScanner(stderr)
	t.Cleanup(func() { leftover.Await(t, c.mark) })
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	if _, err := os.ReadFile(here); err != nil { // until the target has said so
		t.Fatal(err)
	}
	return c
}

// says waits until a line of stderr contains a text.
func (c *crashed) says(text string) {
	c.t.Helper()
	for c.stderr.Scan() {
		if strings.Contains(c.stderr.Text(), text) {
			return
		}
	}
	c.t.Fatalf("it does not say %q", text)
}

// ends waits for the end and returns the exit code.
func (c *crashed) ends() int {
	c.t.Helper()
	for c.stderr.Scan() {
	}
	_ = c.Wait()
	return c.ProcessState.ExitCode()
}

// whole checks that there are only whole files in the folder of the reports.
func (c *crashed) whole(want ...string) {
	c.t.Helper()
	files, err := os.ReadDir(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
		if strings.HasPrefix(file.Name(), ".") {
			c.t.Errorf("half a file is left: %s", file.Name())
		}
		if file.Name() == "results.json" {
			if run, err := readResults(filepath.Join(c.dir, file.Name())); err != nil || run.Verdict == result.Conformant {
				c.t.Errorf("results.json: %v", err)
			}
		}
	}
	if got, want := strings.Join(names, " "), strings.Join(want, " "); got != want {
		c.t.Errorf("there are the reports %q; want %q", got, want)
	}
}

// starting are the commands that start something.
var starting = map[string][]string{
	"server": {"server", "--timeout=100s", "--json=results.json", "--html=report.html", "--trace=trace.jsonl", "--", "sh", "-c", deaf},
	"start":  {"server", "--timeout=100s", "--json=results.json", "--html=report.html", "--trace=trace.jsonl", "--url=http://127.0.0.1:{port}/mcp", "--start", deaf},
	"client": {"client", "--timeout=100s", "--json=results.json", "--html=report.html", "--trace=trace.jsonl", "--", "sh", "-c", deaf},
}

func TestSignals(t *testing.T) {
	for name, args := range starting {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if testing.Short() && (name == "client") != (signal == syscall.SIGTERM) {
				continue
			}
			t.Run(name+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				c := meet(t, args...)
				if err := c.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				c.says("interrupted")
				if code := c.ends(); code != exitIncomplete && code != exitNotConformant {
					t.Errorf("exit code %d", code)
				}
				c.whole("report.html", "results.json", "trace.jsonl")
			})
		}
		t.Run(name+" twice", func(t *testing.T) {
			t.Parallel()
			c := meet(t, args...)
			if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			c.says("interrupted")
			// A signal that follows at once is taken for the same.
			time.Sleep(sameInterrupt)
			_ = c.Process.Signal(syscall.SIGTERM) // unless it has ended already
			if code := c.ends(); code != exitIncomplete && code != exitNotConformant {
				t.Errorf("exit code %d", code)
			}
			if left, err := os.ReadDir(c.temporary); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v %v", left, err)
			}
		})
	}
}

// A killed command can end nothing. Its targets end all the same, also those outside its group, and also if its whole
// group is killed.
func TestKilled(t *testing.T) {
	for name, args := range starting {
		for who, group := range map[string]bool{"alone": false, "with its group": true} {
			t.Run(name+" "+who, func(t *testing.T) {
				t.Parallel()
				c := meet(t, args...)
				pid := c.Process.Pid
				if group {
					pid = -pid
				}
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				c.ends()
				leftover.Await(c.t, c.mark)
				c.whole()
			})
		}
	}
}

// A report that cannot be written is an error of its own; the others are written.
func TestFullDisk(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	old := filepath.Join(dir, "report.html")
	if err := os.WriteFile(old, []byte("of an earlier run"), 0o600); err != nil {
		t.Fatal(err)
	}
	// No file can grow beyond 16 blocks of 512 bytes, which is what is left on the disk.
	cmd := exec.Command("sh", "-c", `ulimit -f 16; exec "$0" "$@"`, program, "server", few, "--html=report.html", "--json=results.json", "--badge=badge.svg", "--trace=trace.jsonl")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), asCommand+"=1", "GITHUB_ACTIONS="), &stderr
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitIncomplete || !strings.Contains(stderr.String(), "report.html") || !strings.Contains(stderr.String(), "file too large") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "of an earlier run" {
		t.Errorf("the earlier report is %d bytes: %v", len(text), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "badge.svg")); err != nil || !bytes.HasSuffix(bytes.TrimSpace(text), []byte("</svg>")) {
		t.Errorf("the badge was not written: %v", err)
	}
	files, err := os.ReadDir(dir)
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") {
			t.Errorf("half a file is left: %s", file.Name())
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// Nobody reads what it prints: the reports are written all the same.
func TestClosedStdout(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, json := range map[string]string{"console": "results.json", "report": "-"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			cmd := exec.Command(program, "server", few, "--json", json, "--html=report.html")
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), asCommand+"=1", "GITHUB_ACTIONS="), w, io.Discard
			_ = cmd.Run()
			_ = w.Close()
			if code := cmd.ProcessState.ExitCode(); code != exitIncomplete {
				t.Errorf("it ended with %v, want exit code %d", cmd.ProcessState, exitIncomplete)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !bytes.HasSuffix(bytes.TrimSpace(text), []byte("</html>")) {
				t.Errorf("the report was not written: %v", err)
			}
			if json != "-" {
				if _, err := readResults(filepath.Join(dir, json)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
