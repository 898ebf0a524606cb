package suites_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/mcpconform/mcpconform/mockserver"
	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Some requirements of a server within this program, over pipes.
func ExampleRun() {
	serve := server.New(server.Options{}).RunStdio
	run, _, err := suites.Run(context.Background(), suites.ServerChecks{
		Dialer: &transport.Stdio{Launcher: transport.Func{Name: "a server", Run: serve}},
	}, suites.Options{Selection: suites.Selection{Select: []string{"ping"}, Skip: []string{"MAY", "SHOULD"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range run.Requirements {
		fmt.Println(q.Verdict, q.ID)
	}
	fmt.Println(run.Verdict)
	// Output:
	// pass ping.response-empty
	// pass ping.response-prompt
	// conformant
}

// This example shows the findings on a server with a fault.
func ExampleRun_finding() {
	var o server.Options
	fault, _ := mockserver.Find("base.unknown-method-code")
	fault.Apply(&o)
	run, _, err := suites.Run(context.Background(), suites.ServerChecks{
		Dialer: &transport.Stdio{Launcher: transport.Func{Name: "a server", Run: server.New(o).RunStdio}},
	}, suites.Options{Selection: suites.Selection{Select: []string{"base.error.method-not-found"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	finding := run.Requirements[0].Findings[0]
	fmt.Println(run.Requirements[0].Verdict, run.Requirements[0].URL(run.Revision))
	fmt.Println(finding.Message)
	// Output:
	// fail https://modelcontextprotocol.io/specification/2025-06-18/basic#messages:~:text=All%20messages%20between,JSON%2DRPC%202.0%20specification
	// mcpconform/no-such-method was answered with error -32600: "Method not found: mcpconform/no-such-method", not with error -32601
}

// A client within this program, which the servers of two scenarios await.
func ExampleRun_client() {
	run, _, err := suites.Run(context.Background(), suites.ClientScenarios{
		Launch: func(p client.Endpoint) (transport.Process, error) {
			return suites.ReferenceClient(p, 0).Launch()
		},
		Scenarios: []string{"exchange/requests"},
	}, suites.Options{Selection: suites.Selection{Select: []string{"ping"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Target.Name, run.Verdict)
	// Output: mcpconform conformant
}

// A recording, of which both parties can be judged.
func ExampleRecording() {
	trace := wire.NewTrace(wire.DefaultLimits)
	log := trace.Connect(transport.NameStdio, "a session")
	for _, said := range []struct {
		from wire.Party
		text string
	}{
		{wire.Client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`},
		{wire.Server, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`},
		{wire.Client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{wire.Client, `{"jsonrpc":"2.0","id":2,"method":"ping"}`},
		{wire.Server, `{"jsonrpc":"2.0","id":"2","result":{}}`},
	} {
		if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: said.from, Raw: []byte(said.text)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	run, _, err := suites.Run(context.Background(), suites.Recording{Party: wire.Server}, suites.Options{Trace: trace})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail {
			fmt.Println(q.ID+":", q.Findings[0].Message)
		}
	}
	// Output: base.response.id-type-echo: the id of the response is "2", that of the request 2
}

// A server of one's own in its own tests.
func ExampleServerSuite() {
	TestConformance := func(t *testing.T) {
		serve := func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			return server.New(server.Options{}).RunStdio(ctx, in, out, io.Discard) // or a server of any SDK
		}
		suites.ServerSuite(t, suites.InProcess(serve), suites.Skip("MAY"),
			suites.ExpectFailure("tools.error.unknown-tool-code", "https://example.com/issues/1"))
	}
	_ = TestConformance
}

// A client of one's own in its own tests.
func ExampleClientSuite() {
	TestConformance := func(t *testing.T) {
		connect := func(ctx context.Context, url string) error {
			c := reference.Standalone{URL: url} // or a client of any SDK, which uses all that it finds
			return c.Run(ctx)
		}
		suites.ClientSuite(t, suites.ClientOverHTTP(connect))
	}
	_ = TestConformance
}
