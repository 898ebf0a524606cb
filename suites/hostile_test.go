//go:build linux

package suites_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/leftover"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/result"
	"go.uber.org/goleak"
)

// shook is a script that answers initialize and goes on.
const shook = `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'; `

// Targets that are broken servers, or not servers at all, as shell scripts.
var targets = []struct {
	name    string
	args    []string // in place of a script
	script  string
	verdict result.Overall
	reason  string // part of the run's
	// answered is the verdict on the requirement that initialize is answered.
	answered result.Verdict
	finding  string // part of what is said about it
}{
	{name: "not found", args: []string{"mcpconform-no-such-command"}, verdict: result.Incomplete, reason: "executable file not found", answered: result.Inconclusive},
	{name: "not executable", args: []string{"/etc/hostname"}, verdict: result.Incomplete, reason: "cannot start /etc/hostname", answered: result.Inconclusive},
	{name: "exits at once", script: "echo broken >&2; exit 3", verdict: result.Incomplete, reason: "exited with status 3", answered: result.Inconclusive},
	{name: "is killed", script: "kill -9 $$", verdict: result.Incomplete, reason: "ended by signal killed", answered: result.Inconclusive},
	{name: "never answers", script: "cat >/dev/null", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize within "},
	{name: "ignores everything", script: "trap '' TERM; while :; do sleep 1000; done", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize within "},
	{name: "echoes", script: "cat", verdict: result.NotConformant, answered: result.Fail, finding: "initialize was answered with error -32601"},
	{name: "talks", script: "echo 'Welcome!'; cat >/dev/null", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "talks and exits", script: "echo 'usage: server DIR'; exit 2", verdict: result.NotConformant, answered: result.Fail, finding: "exited with status 2"},
	{name: "binary", script: "head -c 10000 /dev/urandom; cat >/dev/null", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "floods", script: "cat /dev/zero", verdict: result.NotConformant, answered: result.Fail, finding: "a line is longer than"},
	{name: "floods lines", script: "yes", verdict: result.NotConformant, answered: result.Fail, finding: "the peer sent more than the limits"},
	{name: "floods stderr", script: "yes >&2", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "closes stdout", script: "exec >&-; cat >/dev/null", verdict: result.Incomplete, reason: "the server closed its stdout", answered: result.Inconclusive},
	{name: "dies in the middle", script: `read -r line; printf '{"jsonrpc":"2.0","id":1,"res'; exit 1`, verdict: result.NotConformant, answered: result.Fail, finding: "exited with status 1"},
	{name: "answers with an error", script: `read -r line; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}'; cat >/dev/null`,
		verdict: result.NotConformant, answered: result.Fail, finding: "initialize was answered with error -32603"},
	{name: "answers with a number", script: `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":7}'; cat >/dev/null`, verdict: result.NotConformant, answered: result.Fail, finding: "not a result"},
	{name: "speaks another revision", script: `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'; cat >/dev/null`,
		verdict: result.Incomplete, reason: "2024-11-05", answered: result.Pass},
	{name: "leaves a child behind", script: "sleep 1000 & exit 0", verdict: result.Incomplete, reason: "exited with status 0", answered: result.Inconclusive},
	{name: "leaves a daemon behind", script: "setsid sleep 1000 & exit 0", verdict: result.Incomplete, reason: "exited with status 0", answered: result.Inconclusive},
	{name: "forks and moves away", script: "i=0; while [ $i -lt 20 ]; do setsid sleep 1000 & i=$((i+1)); done; cat >/dev/null", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "changes its group", script: "exec setsid cat >/dev/null", verdict: result.Incomplete, reason: "exited with status 0", answered: result.Inconclusive},
	{name: "ignores every signal and its stdin", script: "trap '' HUP INT QUIT TERM USR1 USR2 PIPE; while :; do sleep 1000; done", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "fills both pipes", script: "yes >&2 & yes", verdict: result.NotConformant, answered: result.Fail, finding: "the peer sent more than the limits"},
	{name: "writes after its exit", script: "echo y; setsid yes & exit 0", verdict: result.NotConformant, answered: result.Fail, finding: "is not a message"},
	{name: "stops itself", script: "kill -STOP $$; cat", verdict: result.NotConformant, answered: result.Fail, finding: "no answer to initialize"},
	{name: "dies after the handshake", script: shook + "exit 4", verdict: result.NotConformant, answered: result.Pass},
	{name: "dies of an unknown notification", script: shook + `while read -r line; do case $line in *notifications/mcpconform*) exit 4;; *'"id"'*) id=${line#*'"id":'}; echo '{"jsonrpc":"2.0","id":'"${id%%[,\}]*}"',"result":{}}';; esac; done`, verdict: result.NotConformant, answered: result.Pass},
	{name: "falls silent after the handshake", script: shook + "cat >/dev/null", verdict: result.NotConformant, answered: result.Pass},
	{name: "floods after the handshake", script: shook + "yes", verdict: result.NotConformant, answered: result.Pass},
	{name: "answers everything alike", script: shook + `while read -r line; do echo '{"jsonrpc":"2.0","id":1,"result":{}}'; done`, verdict: result.NotConformant, answered: result.Pass},
}

func TestHostileTargets(t *testing.T) {
	for i, h := range brief.Part(t, targets, 2) {
		t.Run(h.name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			mark := fmt.Sprintf("MCPCONFORM_TEST_HOSTILE=%d-%d", os.Getpid(), i)
			t.Cleanup(func() { leftover.Await(t, mark) })
			args := h.args
			if args == nil {
				args = []string{"sh", "-c", h.script}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for a test that hangs
			defer cancel()
			start := time.Now()
			run, trace, err := suites.Run(ctx, suites.ServerChecks{Dialer: &transport.Stdio{
				Launcher: transport.Command{Args: args, Env: append(os.Environ(), mark)}, ExitWait: 100 * time.Millisecond,
			}}, suites.Options{Timeout: 300 * time.Millisecond, Parallel: 16, Limits: wire.Limits{Message: 1 << 18, Total: 1 << 20, Events: 2000}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v", time.Since(start))
			if ctx.Err() != nil {
				t.Fatal("the run does not end")
			}
			if run.Verdict != h.verdict || !strings.Contains(run.Reason, h.reason) || run.Verdict == result.Incomplete && run.Reason == "" {
				t.Errorf("the run is %s: %q; want %s: %q", run.Verdict, run.Reason, h.verdict, h.reason)
			}
			for _, f := range run.Harness {
				t.Errorf("mcpconform itself: %s", f.Message)
			}
			complete(t, run)
			for _, q := range run.Requirements {
				if q.ID == "lifecycle.init.answered" {
					if q.Verdict != h.answered || h.finding != "" && (len(q.Findings) == 0 || !strings.Contains(q.Findings[0].Message, h.finding)) {
						t.Errorf("%s is %s: %+v; want %s: %q", q.ID, q.Verdict, q.Findings, h.answered, h.finding)
					}
				}
				if h.verdict == result.Incomplete && h.answered == result.Inconclusive && q.Observable && applies(q.ID) && q.Verdict != result.Inconclusive {
					t.Errorf("%s is %s although nothing could be tried: %s", q.ID, q.Verdict, q.Reason)
				}
			}
			var file bytes.Buffer
			if _, err := trace.WriteTo(&file); err != nil {
				t.Error(err)
			}
			limits := wire.DefaultLimits
			limits.Run = 0 // as when it was recorded
			if _, err := wire.ReadTrace(&file, limits); err != nil {
				t.Error(err)
			}
		})
	}
}

func applies(id string) bool {
	q, _ := schema.Default().Lookup(id)
	return len(q.Transports) == 0 || strings.Contains(strings.Join(q.Transports, " "), "stdio")
}

// complete checks that each requirement on a server has a verdict, and a reason
// unless that is pass.
func complete(t *testing.T, run *result.Run) {
	t.Helper()
	catalogue := schema.Default().Catalogue()
	got := make(map[string]result.Requirement)
	for _, q := range run.Requirements {
		got[q.ID] = q
	}
	for _, want := range catalogue {
		if p := want.JudgedParty(); p != schema.Server && p != schema.Both {
			continue
		}
		q, ok := got[want.ID]
		switch {
		case !ok:
			t.Errorf("%s has no entry", want.ID)
		case q.Verdict == result.Pass && q.Exercised == 0:
			t.Errorf("%s passes without having been exercised", q.ID)
		case (q.Verdict == result.Skip || q.Verdict == result.Inconclusive) && q.Reason == "":
			t.Errorf("%s is %s without a reason", q.ID, q.Verdict)
		case (q.Verdict == result.Fail || q.Verdict == result.Warn) && (len(q.Findings) == 0 || len(q.Findings[0].Evidence) == 0):
			t.Errorf("%s is %s without evidence: %+v", q.ID, q.Verdict, q.Findings)
		case q.Verdict == result.Error || q.Verdict == "":
			t.Errorf("%s is %q: %s", q.ID, q.Verdict, q.Reason)
		}
	}
}
