//go:build linux

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/reference/transport"
)

// needSandbox skips a test where this machine has no sandbox.
func needSandbox(t *testing.T) {
	t.Helper()
	if err := (transport.Isolation{Sandbox: true}).Check(); err != nil {
		t.Skip("this machine has no sandbox: ", err)
	}
}

// TestIsolationFlags wants flags of the sandbox and of limits refused if they do not fit the target or have wrong
// values.
func TestIsolationFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"embedded server":     {[]string{"server", "--sandbox"}, "are for what mcpconform starts"},
		"server that runs":    {[]string{"server", "--target-memory=1G", "--url=http://127.0.0.1:1/mcp"}, "are for what mcpconform starts"},
		"embedded client":     {[]string{"client", "--target-processes=9"}, "are for clients that mcpconform starts"},
		"proxy to a URL":      {[]string{"proxy", "--sandbox", "--url=http://127.0.0.1:1/mcp"}, "are for what mcpconform starts"},
		"no size":             {[]string{"server", "--target-memory=lots", "--", "true"}, `"lots" is not a size`},
		"no number":           {[]string{"server", "--target-processes=-1", "--", "true"}, "must be greater than 0"},
		"nothing to write to": {[]string{"server", "--sandbox-write=.", "--", "true"}, "--sandbox-write needs --sandbox"},
		"no such folder":      {[]string{"server", "--sandbox", "--sandbox-write=no-such-folder", "--", "true"}, "no-such-folder"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "nothing to write to" && name != "no size" {
				needSandbox(t)
			}
			conductAs(t, tt.args[0], nil, "", tt.args[1:]...).wantCode(t, exitUsage, tt.says)
		})
	}
}

// Targets are tested in a sandbox as without one: a server over stdio and over HTTP, and a
// client over either.
func TestSandboxedTargets(t *testing.T) {
	needSandbox(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := []string{"--sandbox", "--target-memory=2G", "--target-processes=100", "--timeout=20s", "--env=" + asReference + "=1", "--env=" + asCommand + "="}
	for name, args := range map[string][]string{
		"stdio":           {"server", few, "--", program},
		"start":           {"server", few, "--url=http://127.0.0.1:{port}/mcp", "--start", asCommand + "=1 " + asReference + "= " + program + " reference server --http 127.0.0.1:{port}"},
		"client":          {"client", "--select=ping", "--scenario=baseline", "--env=" + asCommand + "=1", "--env=" + asReference + "=", "--", program, "reference", "client", "--quiet", "{url}"},
		"client of stdio": {"client", "--select=ping", "--scenario=baseline", "--env=" + asCommand + "=1", "--env=" + asReference + "=", "--", program, "reference", "client", "--quiet", "--", "{command}"},
	} {
		t.Run(name, func(t *testing.T) {
			conductAs(t, args[0], nil, "", append(inside[:len(inside):len(inside)], args[1:]...)...).wantCode(t, exitConformant, "CONFORMANT")
		})
	}
}

// A target that was ended because of its memory is named so, and the run reports.
func TestTargetThatExceedsItsMemory(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("this system has no sh")
	}
	o := conduct(t, nil, "--target-memory=64M", "--timeout=20s", few, "--", "sh", "-c", `x=xxxxxxxx; while :; do x=$x$x; done`)
	o.wantCode(t, exitIncomplete, "the server was ended because its processes held")
	o.wantCode(t, exitIncomplete, "its limit is 64.0 MiB")
}

// The sandbox goes with a command that is killed.
func TestKilledWithSandbox(t *testing.T) {
	needSandbox(t)
	// The pipe at which the target says that it is there has to be shown to it.
	c := meet(t, "server", "--config="+os.DevNull, "--timeout=100s", "--sandbox", "--sandbox-write="+os.TempDir(), "--", "sh", "-c", deaf)
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.ends()
	leftover.Await(t, c.mark)
}
