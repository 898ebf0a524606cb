package suites_test

import (
	"context"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/interop"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

var updateFindings = flag.Bool("update-findings", false, "write the findings on the interop targets, without reasons for new ones")

const findingsFile = "../fixtures/targets/findings.yaml"

// TestInterop runs the suites against real servers, installed by
//
//	go run ./.ci/targets install
//
// and compares what they find with what was confirmed by reading. Unless everything is to be tried, a protected server
// is judged by what authorization demands: its SDK shows the rest on an open one.
func TestInterop(t *testing.T) {
	targets := interop.Open(t, "..")
	known := interop.Load(t, findingsFile, *updateFindings)
	targets.Each(t, "server", serversAtATime, []string{transport.NameStdio, transport.NameHTTP, transport.NameSSE}, func(t *testing.T, name, over string) {
		var selected []string
		if strings.HasSuffix(name, "-protected") && !brief.Whole() && !*updateFindings {
			selected = []string{"auth.*"}
		}
		known.Check(t, name+" "+over, selected != nil, runTarget(t, targets, name, over, selected))
	})
	known.Save(t)
}

// serversAtATime is how many targets are tried at a time.
const serversAtATime = 2

func runTarget(t *testing.T, targets *interop.Targets, name, over string, selected []string) *result.Run {
	t.Helper()
	target := targets.Show(t, name, over, []string{"-port", freePort(t)}, nil)
	checks, trace := suites.ServerChecks{
		Settings: check.Settings{CallTools: check.CallSafe}, Login: &check.Login{ClientID: target.Client},
	}, wire.NewTrace(wire.DefaultLimits)
	command := transport.Command{Args: target.Command, Env: target.Environ()}
	if over == transport.NameStdio {
		checks.Dialer = &transport.Stdio{Launcher: command}
	} else {
		server, err := transport.Start{
			Command: command, Endpoint: transport.Endpoint{URL: target.URL}, Log: trace.Connect(over, "server process"),
		}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { server.Stop(t.Context()) }()
		// A server that one check brings down is there for the others again.
		checks.Restart = func(ctx context.Context) error {
			again, err := server.Restart(ctx, trace.Connect(over, "server process"))
			if err == nil {
				server = again
			}
			return err
		}
		if over == transport.NameHTTP {
			checks.Dialer = &transport.HTTP{Endpoint: server.Endpoint}
		} else {
			checks.Dialer = &transport.SSE{Endpoint: server.Endpoint}
		}
	}
	run, _, err := suites.Run(t.Context(), checks, suites.Options{
		Trace: trace, Selection: suites.Selection{Select: selected},
	})
	if err != nil {
		t.Fatal(err)
	}
	if over == transport.NameStdio {
		if left := processesOf(target.Command); left != "" {
			t.Errorf("left behind: %s", left)
		}
	}
	t.Log(interop.Summary(run))
	return run
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := transport.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// processesOf returns the command lines of processes that still run a command.
func processesOf(command []string) string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "" // no such folder on this system
	}
	want := strings.Join(command, "\x00") + "\x00"
	for _, e := range entries {
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && string(line) == want {
			return e.Name() + " " + strings.Join(command, " ")
		}
	}
	return ""
}

// TestInteropAuthorization runs the checks of authorization servers against real ones.
func TestInteropAuthorization(t *testing.T) {
	targets := interop.Open(t, "..")
	known := interop.Load(t, "../fixtures/targets/authorization-findings.yaml", *updateFindings)
	over := []string{transport.NameHTTP}
	targets.Each(t, "authorization-server", serversAtATime, over, func(t *testing.T, name, over string) {
		target := targets.Show(t, name, over, []string{"-port", freePort(t)}, nil)
		trace := wire.NewTrace(wire.DefaultLimits)
		server, err := transport.Start{
			Command:  transport.Command{Args: target.Command, Env: target.Environ()},
			Endpoint: transport.Endpoint{URL: target.URL}, Log: trace.Connect(over, "server process"),
		}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { server.Stop(t.Context()) }()
		checks := suites.AuthorizationChecks{
			Endpoint: server.Endpoint, Resource: "https://mcp.example/mcp", ClientID: target.Client,
		}
		run, _, err := suites.Run(t.Context(), checks, suites.Options{Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(interop.Summary(run))
		known.Check(t, name+" "+over, false, run)
	})
	known.Save(t)
}
