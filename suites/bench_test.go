package suites_test

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// serveVariable makes the test binary the reference server: on stdio or, if it
// is an address, over HTTP.
const serveVariable = "MCPCONFORM_TEST_SERVE"

// asClient is the value that makes it the reference client instead, at the URL
// that is its last argument.
const asClient = "client"

func init() {
	s, where := server.New(serverOptions()), os.Getenv(serveVariable)
	var err error
	switch {
	case where == "":
		return
	case where == asClient:
		err = (&reference.Standalone{URL: os.Args[len(os.Args)-1]}).Run(context.Background())
	case strings.Contains(where, ":"):
		var l net.Listener
		if l, err = server.Listen(where); err == nil {
			err = s.HTTP().Serve(context.Background(), l)
		}
	default:
		err = s.RunStdio(context.Background(), os.Stdin, os.Stdout, os.Stderr)
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func benchmarkRun(b *testing.B, dialer transport.Dialer) {
	b.ReportAllocs()
	exchanged, events := int64(0), 0
	before := processorTime()
	for b.Loop() {
		run, trace, err := suites.Run(b.Context(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{})
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
	b.ReportMetric(float64((processorTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(exchanged)/float64(b.N), "wire-B/op")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkRunInProcess is a whole run against the reference server in this
// process; BenchmarkRunProcess starts a process for each connection.
func BenchmarkRunInProcess(b *testing.B) {
	benchmarkRun(b, &transport.Stdio{Launcher: transport.Func{Name: "reference server", Run: server.New(serverOptions()).RunStdio}})
}

func BenchmarkRunProcess(b *testing.B) {
	benchmarkRun(b, &transport.Stdio{Launcher: transport.Command{Args: []string{os.Args[0]}, Env: append(os.Environ(), serveVariable+"=1")}})
}

// BenchmarkRunHTTP is a whole run over Streamable HTTP against the reference
// server in this process; BenchmarkRunHTTPProcess, against one in a process of
// its own, whose processor time does not count.
func BenchmarkRunHTTP(b *testing.B) {
	handler := server.New(serverOptions()).HTTP()
	s := httptest.NewServer(handler)
	b.Cleanup(s.Close)
	b.Cleanup(handler.Close)
	benchmarkRun(b, &transport.HTTP{Endpoint: transport.Endpoint{URL: s.URL + server.PathMCP}})
}

func BenchmarkRunHTTPProcess(b *testing.B) {
	const at = "127.0.0.1:" + transport.PortPlaceholder
	s, err := transport.Start{
		Command:  transport.Command{Args: []string{"sh", "-c", serveVariable + `="$1" exec "$0"`, os.Args[0], at}},
		Endpoint: transport.Endpoint{URL: "http://" + at + server.PathMCP},
	}.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Stop(context.Background()) })
	benchmarkRun(b, &transport.HTTP{Endpoint: s.Endpoint})
}
