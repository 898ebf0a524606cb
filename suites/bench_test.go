package suites_test

import (
	"context"
	"os"
	"testing"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// serveVariable makes the test binary the reference server on stdio.
const serveVariable = "MCPCONFORM_TEST_SERVE"

func init() {
	if os.Getenv(serveVariable) == "" {
		return
	}
	if err := server.New(serverOptions()).RunStdio(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func benchmarkRun(b *testing.B, launcher transport.Launcher) {
	b.ReportAllocs()
	exchanged, events := int64(0), 0
	for b.Loop() {
		run, trace, err := suites.Server(b.Context(), suites.Options{
			Dialer:   &transport.Stdio{Launcher: launcher},
			Settings: check.Settings{CallTools: check.CallAll, Purposes: purposes},
		})
		if err != nil || run.Verdict != result.Conformant {
			b.Fatalf("the run: %v, %s %s", err, run.Verdict, run.Reason)
		}
		for _, l := range trace.Logs() {
			for _, e := range l.Events() {
				exchanged += int64(len(e.Raw))
				events++
			}
		}
	}
	b.ReportMetric(float64(exchanged)/float64(b.N), "wire-B/op")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkRunInProcess is a whole run against the reference server in this
// process; BenchmarkRunProcess starts a process for each connection.
func BenchmarkRunInProcess(b *testing.B) {
	benchmarkRun(b, transport.Func{Name: "reference server", Run: server.New(serverOptions()).RunStdio})
}

func BenchmarkRunProcess(b *testing.B) {
	benchmarkRun(b, transport.Command{Args: []string{os.Args[0]}, Env: append(os.Environ(), serveVariable+"=1")})
}
