package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
)

// asBridge makes this test's binary a bridge over TCP, or a client that uses it: connect or
// listen, and the address.
const asBridge = "MCPCONFORM_TEST_BRIDGE"

// playBridge passes lines on between stdin and stdout and a TCP connection.
func playBridge(how string) int {
	role, addr, _ := strings.Cut(how, " ")
	var conn net.Conn
	var err error
	if role == "listen" {
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			fmt.Fprintln(os.Stderr, "listening")
			conn, err = l.Accept()
			_ = l.Close()
		}
	} else {
		for range 100 { // until the bridge for the next client listens
			if conn, err = net.Dial("tcp", addr); err == nil {
				break
			}
			<-time.After(50 * time.Millisecond)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// lineServer serves lines over TCP.
func lineServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); _ = l.Close() })
	s := server.New(server.Options{})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = s.RunCustom(ctx, conn, conn)
			}()
		}
	}()
	return l.Addr().String()
}

const fewAnywhere = "--select=base.batch.not-served,base.error.method-not-found,stdio.server.stdout-clean"

// A server over TCP is tested through a command, which sees {url} and whose secrets no report shows.
func TestTransportCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const secret = "Zq8sKd02hfLw93ndkf7TqP"
	o := conduct(t, nil, fewAnywhere, "--transport-command", "API_TOKEN="+secret+" "+asBridge+"='connect '{url} "+self, "--url", lineServer(t))
	o.wantCode(t, exitConformant, "server over a custom transport")
	o.wantWithout(t, secret)
	if o.run.Transport != "custom" {
		t.Errorf("the transport is %q", o.run.Transport)
	}
	for _, q := range o.run.Requirements {
		if want := map[bool]result.Verdict{true: result.Skip, false: result.Pass}[strings.HasPrefix(q.ID, "stdio.")]; q.Verdict != want {
			t.Errorf("%s is %s, not %s: %s", q.ID, q.Verdict, want, q.Reason)
		}
	}
	o = conduct(t, nil, fewAnywhere, "--transport-command", "echo no such host >&2; exit 7")
	o.wantCode(t, exitIncomplete, "its last words: \"no such host\"")
	if says := "the bridge to the server exited with status 7"; !strings.Contains(o.run.Reason, says) {
		t.Errorf("the reason is %s, not %s", o.run.Reason, says)
	}
}

// A client over TCP is served through a command; it may connect more than once.
func TestTransportCommandOfClients(t *testing.T) {
	manyRuns(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := conductAs(t, "client", nil, "", "--scenario=exchange/requests", "--timeout=20s", "--transport-command", asBridge+"='listen 127.0.0.1:{port}' "+self,
		"--", "sh", "-c", "for i in 1 2; do "+asCommand+"=1 "+self+" reference client -q -- env "+asBridge+"='connect 127.0.0.1:{port}' "+self+" || exit 1; done")
	if pass := o.run.Counts()[result.Pass]; pass < 40 || o.code == exitNotConformant || o.run.Transport != "custom" {
		t.Errorf("exit code %d over %s with %d passed: %s\n%s%s", o.code, o.run.Transport, pass, o.run.Reason, o.files["stdout"], o.files["stderr"])
	}
}

// A transport command that serves nobody is the reason of the run, not the client.
func TestTransportCommandThatFails(t *testing.T) {
	f := clientFlags{bridge: "echo port is taken >&2; exit 7", runFlags: runFlags{limits: limitFlags{timeout: 20 * time.Second}}}
	o, err := f.options([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := suites.Run(t.Context(), o.ClientScenarios, o.Options)
	if err != nil {
		t.Fatal(err)
	}
	if says := `exited with status 7 before a client had come; the end of its output: "port is taken"`; run.Verdict != result.Incomplete || !strings.Contains(run.Reason, says) {
		t.Errorf("the run is %s: %s, not %s", run.Verdict, run.Reason, says)
	}
}

// The command refuses flags that cannot be combined with a custom transport.
func TestTransportCommandFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"server", "--transport-command", "b", "--", "c"}, "give either COMMAND"},
		{[]string{"server", "--transport-command", "b", "--header", "A: b"}, "makes the connection itself"},
		{[]string{"server", "--transport-command", "b", "--url", "tcp://x"}, "does not use --url"},
		{[]string{"server", "--transport-command", "b {url}"}, "--url is missing"},
		{[]string{"server", "--url", "ws://localhost/", "--transport", "sse"}, "that of a WebSocket"},
		{[]string{"server", "--transport-command", "b", "--from", "f.json"}, "--from names the server"},
		{[]string{"client", "--transport-command", "b"}, "needs COMMAND"},
		{[]string{"client", "--transport-command", "b", "--", "c", "{port}"}, "agree on it"},
		{[]string{"client", "--transport-command", "b", "--transport", "ws", "--", "c"}, "--transport cannot be given"},
		{[]string{"client", "--transport-command", "b", "--serve"}, "--serve cannot be given"},
	} {
		cmd := newRoot()
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(tt.args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v: %v, not %q", tt.args, err, tt.says)
		}
	}
}
