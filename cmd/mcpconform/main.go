// Command mcpconform tests implementations of the Model Context Protocol for
// conformance to revision 2025-06-18.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Exit codes.
const (
	exitConformant    = 0
	exitNotConformant = 1
	exitUsage         = 2
	exitIncomplete    = 3
)

// worst returns the gravest of exit codes: a failure that was seen stays one, whatever else
// could not be told.
func worst(codes ...int) int {
	gravity := []int{exitConformant, exitIncomplete, exitUsage, exitNotConformant}
	return slices.MaxFunc(codes, func(a, b int) int {
		return cmp.Compare(slices.Index(gravity, a), slices.Index(gravity, b))
	})
}

// ended returns how a command ends with an exit code: nil with that of success.
func ended(code int) error {
	if code == exitConformant {
		return nil
	}
	return exitError(code)
}

// exitCodes says in the help of commands what their exit codes mean.
const exitCodes = `Exit codes: 0 conformant, 1 not conformant, 2 wrong usage or configuration, 3 incomplete.`

// exitError carries the exit code of a command that has printed its message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	boundMemory(wire.DefaultLimits.Run)
	// net/http writes to this log what servers send unasked; the records show it.
	log.SetOutput(io.Discard)
	// The reader of our output may be gone. That is an error of one report and must not end this program, which has
	// other reports to write and targets to end. The signal is caught, since started programs would inherit an
	// ignored one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := context.WithCancel(context.Background())
	go interrupt(stop)
	err := newRoot().ExecuteContext(ctx)
	transport.KillAll()
	var code exitError
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintln(guarded(os.Stderr), "mcpconform: "+newRedactor(nil, os.Args[1:]).String(err.Error()))
		os.Exit(exitUsage)
	}
}

// boundMemory bounds the garbage. By default it could take as much memory as the bounded record of a run. The
// environment wins.
func boundMemory(kept int64) {
	const (
		rest    = 64 << 20
		garbage = 50 // percent of what is kept: with 100, an ordinary run takes 10 MB more
	)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(kept + rest)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// interrupt ends the run in order at the first signal, so that reports are
// still written, and at once at a later one.
func interrupt(stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	<-signals
	fmt.Fprintln(os.Stderr, "mcpconform: interrupted; the run ends and reports; interrupt again to exit at once")
	stop()
	awaitAnother(signals)
	transport.KillAll()
	os.Exit(exitIncomplete)
}

// sameInterrupt is how long after a signal another one is taken for the same: npx, for
// one, passes on the interrupt that the terminal has sent to all processes already.
const sameInterrupt = time.Second

// awaitAnother waits for a signal that is not the same interrupt as the one just seen.
func awaitAnother(signals <-chan os.Signal) {
	seen := time.Now()
	for range signals {
		if time.Since(seen) >= sameInterrupt {
			return
		}
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpconform",
		Short:         "Test an MCP server or client for conformance to revision 2025-06-18",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root {
			return fmt.Errorf("%w; flags follow the command, as in mcpconform server --quiet", err)
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) {
			if c, ok := invalid.GetFlag().Value.(*choice); ok {
				return fmt.Errorf("--%s is %q; it takes %s", invalid.GetFlag().Name, invalid.GetValue(), c.listed())
			}
		}
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			var flags []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
			if near := schema.NearestOf(flags, unknown.GetSpecifiedName(),
				1); schema.Resembles(unknown.GetSpecifiedName(), near[0]) {
				return fmt.Errorf("%w; did you mean --%s? %s --help lists the flags", err, near[0], cmd.CommandPath())
			}
		}
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(serverCommand(), clientCommand(), authorizationCommand(), bridgeCommand(), browseCommand(),
		referenceCommand(),
		mockCommand(), initCommand(), proxyCommand(), judgeCommand(), checklistCommand(), explainCommand(),
		reportCommand(), certifyCommand(), verifyCommand(), matrixCommand(), versionCommand())
	complete(root)
	return root
}

// newRedactor returns a Redactor that knows the secrets of our environment, which
// each launched program inherits, and of the given variables (NAME=value) and
// arguments. Nothing that a command prints or writes may repeat them.
func newRedactor(env, args []string) *transport.Redactor {
	r := transport.NewRedactor(nil, "")
	r.AddEnv(os.Environ()...)
	r.AddEnv(env...)
	r.AddArgs(args...)
	return r
}

// discreet writes without secrets. Each call writes a whole text.
type discreet struct {
	to       io.Writer
	redactor *transport.Redactor
}

func (d discreet) Write(p []byte) (int, error) {
	if _, err := d.to.Write(d.redactor.Bytes(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
