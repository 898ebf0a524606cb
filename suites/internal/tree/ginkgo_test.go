package tree

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/mcpconform/mcpconform/suites/result"
)

// After a suite an interrupt still reaches the program's own handler: servers
// that it has started may be left, and reports to be written.
func TestInterruptAfterGinkgo(t *testing.T) {
	const inner = "MCPCONFORM_TEST_INTERRUPT"
	if os.Getenv(inner) == "" {
		// A process can run one suite only, and would be ended by the signal.
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inner+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	ran := false
	outcomes := Ginkgo(t.Context(), &Suite{
		Specs: []*Spec{{Page: "page", Name: "spec", Await: func(context.Context) Outcome {
			ran = true
			return Outcome{Verdict: result.Pass}
		}}},
		Start: func(context.Context, []*Spec) {}, Interrupt: func() {},
	})
	if !ran || len(outcomes) != 1 || outcomes[0].Verdict != result.Pass {
		t.Fatalf("the spec was not run: %v", outcomes)
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Skip("this system sends no interrupts: ", err)
	}
	<-signals
}
