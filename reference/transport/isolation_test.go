//go:build linux

package transport

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// needSandbox skips a test where this machine has no sandbox.
func needSandbox(t *testing.T) {
	t.Helper()
	if err := (Isolation{Sandbox: true}).Check(); err != nil {
		t.Skip("this machine has no sandbox: ", err)
	}
}

// outputOf runs a shell script until it ends, and returns what it wrote to stdout.
func outputOf(t *testing.T, c Command, script string) (string, Process) {
	t.Helper()
	needShell(t)
	c.Args = []string{"sh", "-c", script}
	p, err := c.Launch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	var said []byte
	var read sync.WaitGroup
	read.Go(func() { said, _ = io.ReadAll(p.Stdout()) })
	read.Go(func() { _, _ = io.Copy(io.Discard, p.Stderr()) })
	read.Wait()
	<-p.Done()
	return string(said), p
}

func TestSandbox(t *testing.T) {
	needSandbox(t)
	work, open, secret := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		isolation Isolation
		script    string
		want      string
	}{
		"read-only root": {script: `for d in / /etc /usr .; do (echo x > $d/mcpconform-written) 2>/dev/null && echo $d; done; echo done`, want: "done\n"},
		"temporary":      {script: `echo x > /tmp/a && cat /tmp/a; test -e "$SECRET" || echo hidden`, want: "x\nhidden\n"},
		"writable": {
			isolation: Isolation{Writable: []string{open}}, script: `echo x > ` + open + `/a && echo written`, want: "written\n",
		},
		"shown":        {isolation: Isolation{Shown: []string{filepath.Dir(secret)}}, script: `cat "$SECRET"`, want: "x"},
		"network":      {script: `grep -c : /proc/net/dev`, want: "1\n"},
		"processes":    {script: `test $(ls -d /proc/[0-9]* | wc -l) -lt 8 && echo few`, want: "few\n"},
		"exit status":  {script: `exit 7`, want: ""},
		"directory":    {script: `pwd`, want: work + "\n"},
		"capabilities": {script: `grep CapEff /proc/self/status`, want: "CapEff:\t0000000000000000\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.isolation.Sandbox = true
			got, p := outputOf(t, Command{Dir: work, Env: append(os.Environ(), "SECRET="+secret), Isolation: tt.isolation}, tt.script)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if want := map[bool]int{true: 7}[name == "exit status"]; p.Exit().Code != want {
				t.Errorf("it %s", p.Exit())
			}
		})
	}
}

// A sandbox takes with it what has left the group, cleared its environment and would find
// another parent elsewhere.
func TestSandboxLeavesNothing(t *testing.T) {
	needSandbox(t)
	pid, err := os.CreateTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(pid.Name()) })
	c := Command{Isolation: Isolation{Sandbox: true, Writable: []string{pid.Name()}}}
	// The lock stays while the process is there, in any namespace.
	_, _ = outputOf(t, c, `flock -h >/dev/null 2>&1 || exit 9; env -i setsid flock `+pid.Name()+` sleep 1000 >/dev/null 2>&1 & while flock -n `+pid.Name()+` true; do :; done`)
	if err := syscall.Flock(int(pid.Fd()), syscall.LOCK_EX); err != nil { // hangs if it is left
		t.Fatal(err)
	}
}

// SIGTERM reaches the program and not bubblewrap, so that it can end in its own way.
func TestSandboxTerminate(t *testing.T) {
	needSandbox(t)
	c := Command{Args: []string{"sh", "-c", `trap 'echo bye; exit 3' TERM; echo here; while :; do read -r line || sleep 0.1; done`}, Isolation: Isolation{Sandbox: true}}
	p, err := c.Launch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	said := make([]byte, 100)
	if n, err := p.Stdout().Read(said); err != nil || string(said[:n]) != "here\n" {
		t.Fatalf("it says %q: %v", said[:n], err)
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	rest, _ := io.ReadAll(p.Stdout())
	<-p.Done()
	if string(rest) != "bye\n" || p.Exit().Code != 3 {
		t.Errorf("it says %q and %s", rest, p.Exit())
	}
}

func TestSandboxNotHad(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Isolation{Sandbox: true}.Check()
	if err == nil || !strings.Contains(err.Error(), "install the package bubblewrap") {
		t.Errorf("without bubblewrap: %v", err)
	}
	refusing := filepath.Join(os.Getenv("PATH"), "bwrap")
	if err := os.WriteFile(refusing, []byte("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	err = Isolation{Sandbox: true}.Check()
	if err == nil || !strings.Contains(err.Error(), "setting up uid map: Permission denied") || !strings.Contains(err.Error(), "user namespaces") {
		t.Errorf("without user namespaces: %v", err)
	}
}

func TestSandboxStartFailures(t *testing.T) {
	needSandbox(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for program, says := range map[string]string{"mcpconform-no-such-command": "executable file not found", "./no-such-file": "no such file", plain: "permission denied"} {
		_, err := Command{Args: []string{program}, Isolation: Isolation{Sandbox: true}}.Launch()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestTargetLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		isolation Isolation
		script    string
		says      string // of the exit
	}{
		"memory":             {Isolation{Memory: 64 << 20}, `x=xxxxxxxx; while :; do x=$x$x; done`, "its limit is 64.0 MiB"},
		"memory of children": {Isolation{Memory: 64 << 20}, `(x=xxxxxxxx; while :; do x=$x$x; done) & wait`, "its limit is 64.0 MiB"},
		"processes":          {Isolation{Processes: 5}, `for i in 1 2 3 4 5 6 7; do sleep 1000 & done; wait`, "and its limit is 5"},
		"enough of both":     {Isolation{Memory: 1 << 30, Processes: 50}, `sleep 0.1 & wait; exit 4`, "exited with status 4"},
	} {
		for _, sandbox := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " in a sandbox"}[sandbox], func(t *testing.T) {
				if sandbox {
					needSandbox(t)
				}
				tt.isolation.Sandbox = sandbox
				_, p := outputOf(t, Command{Isolation: tt.isolation}, tt.script)
				if !strings.Contains(p.Exit().String(), tt.says) {
					t.Errorf("it %s; want %q", p.Exit(), tt.says)
				}
			})
		}
	}
}
