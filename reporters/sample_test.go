package reporters

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/suites/result"
)

// hostile is what a target may emit to get out of its place in a report: ANSI
// and C1 sequences, markup, cell and fence borders, bidirectional overrides,
// bytes that are not UTF-8, and characters that XML 1.0 forbids.
const hostile = "\x1b[2J\x1b]0;owned\x07\u009b31m\r\n# heading\n```\n| a | b |\n]]> --> </script><script>alert(1)</script>" +
	"<img src=x onerror=alert(1)> [x](javascript:alert(1)) &amp; \u202Egnp.exe\u2066\u2028\uFFFE\x00\x08 \xff\xfe\xc3( \xed\xa0\x80 " +
	"www.example.com https://evil.example `tick` ''\"\" \U000E0041 e\u0301\u0301\u0301\u0301\u0301\u0301\u0301 \uFEFF"

// sampleRun is a run with every verdict, and with hostile text wherever a
// target's bytes can get.
func sampleRun() *result.Run {
	req := func(id, level, page, anchor, summary string, verdict result.Verdict, exercised int) result.Requirement {
		return result.Requirement{ID: id, Level: level, Basis: "keyword", Party: "server", Page: page, Anchor: anchor,
			Summary: summary, Observable: true, Verdict: verdict, Exercised: exercised}
	}
	sent := func(seq int, text string) result.Event {
		return result.Event{Connection: "c1", Seq: seq, Seconds: float64(seq) / 100, Kind: "message", From: "client", Stream: "stdin", Text: text}
	}
	got := func(seq int, text string) result.Event {
		return result.Event{Connection: "c1", Seq: seq, Seconds: float64(seq) / 100, Kind: "message", From: "server", Stream: "stdout", Text: text}
	}
	var list []result.Requirement
	add := func(q result.Requirement) { list = append(list, q) }

	q := req("lifecycle.version.echo-supported", "MUST", "basic/lifecycle", "version-negotiation",
		"A server that supports the requested protocol version answers initialize with that same version.", result.Fail, 3)
	q.Text = "If the server supports … same version"
	q.Checks = []string{"lifecycle/version"}
	q.Findings = []result.Finding{{
		Check:   "lifecycle/version",
		Message: `the result names "protocolVersion" 2024-11-05 although 2025-06-18 was requested and is supported`,
		Evidence: []result.Event{
			sent(1, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"mcpconform","version":"0.3.0"}}}`),
			got(2, `{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"serverInfo":{"name":"weather","version":"1.4.2"},"protocolVersion":"2024-11-05","instructions":"Ask about the weather anywhere on the planet, in any unit that you like."}}`),
		},
	}}
	add(q)
	add(req("lifecycle.initialize.first", "MUST", "basic/lifecycle", "initialization", "The client's first message is the initialize request.", result.Pass, 14))
	add(req("lifecycle.server.no-early-requests", "SHOULD NOT", "basic/lifecycle", "initialization", "The server sends no request but ping and logging before it was told that the client is ready.", result.Pass, 14))

	q = req("stdio.stdout.only-messages", "MUST NOT", "basic/transports", "stdio", "The server writes nothing to its standard output that is no valid message.", result.Fail, 41)
	q.Findings = []result.Finding{
		{Check: "stdio/stdout", Message: "a line on stdout is not JSON: " + hostile, Evidence: []result.Event{
			sent(10, `{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 30)+`","method":"tools/call","params":{"name":"forecast"}}`),
			got(11, hostile+strings.Repeat(" much more of it", 40)),
			{Connection: "c1", Seq: 12, Kind: "stderr", From: "server", Stream: "stderr", Text: "Traceback (most recent call last): " + hostile},
			{Connection: "c1", Seq: 13, Kind: "process-exit", From: "server", Text: "exit status 1", Truncated: true},
		}},
		{Message: "a line on stdout is empty", Evidence: []result.Event{got(20, "")}},
		{Message: "a line on stdout is a batch"},
	}
	q.Omitted = 4
	add(q)
	q = req("stdio.shutdown.exits", "SHOULD", "basic/transports", "stdio", "The server exits soon after its input was closed.", result.Error, 0)
	q.Basis = "" // as of a script
	q.Findings = []result.Finding{{Message: "the process could not be watched: permission denied"}}
	add(q)
	q = req("http.origin.validated", "MUST", "basic/transports", "security-warning", "The server validates the Origin header of every connection.", result.Skip, 0)
	q.Reason = "the transport is stdio"
	add(q)

	q = req("tools.list.unique-names", "SHOULD", "server/tools", "listing-tools", "The names of the listed tools differ.", result.Warn, 2)
	q.Findings = []result.Finding{{Check: "tools/names", Message: "two tools are called `fore|cast`", Evidence: []result.Event{
		sent(30, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`),
		got(31, `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"fore|cast","inputSchema":{"type":"object"}},{"name":"alerts","inputSchema":{"type":"object"}},{"name":"fore|cast","inputSchema":{"type":"object"}}]}}`),
	}}}
	q.Notes = []string{"names were compared byte by byte"}
	add(q)
	q = req("tools.call.unknown-tool", "MUST", "server/tools", "error-handling", "A call of a tool that does not exist is answered with error -32602.", result.Fail, 1)
	q.Basis, q.Standard = "standard", "JSON-RPC 2.0, section 5.1"
	q.Findings = []result.Finding{{Message: "the error has code -32603", Evidence: []result.Event{
		sent(40, `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"no_such_tool"}}`),
		got(41, `{"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"boom"}}`),
	}}}
	q.Expected = "fixed in 1.5 <soon>"
	add(q)
	q = req("tools.error.unknown-tool-protocol-error", "MUST", "server/tools", "error-handling", "A call of a tool that does not exist is answered with an error.", result.Fail, 1)
	q.Findings = []result.Finding{{Message: "the answer is a result with isError", Disputed: "unknown-tool-as-result", Evidence: []result.Event{
		got(44, `{"jsonrpc":"2.0","id":9,"result":{"content":[],"isError":true}}`),
	}}}
	q.Disputed = &result.Dispute{ID: "unknown-tool-as-result", Title: "An unknown tool that is answered with isError",
		Threads:  []result.Thread{{URL: "https://github.com/modelcontextprotocol/modelcontextprotocol/pull/2145", Says: "A proposal to report it so."}},
		Position: "The page lists it among the protocol errors."}
	add(q)
	q = req("pagination.error.invalid-cursor-code", "SHOULD", "server/utilities/pagination", "error-handling", "An invalid cursor yields the error -32602.", result.Warn, 2)
	q.Findings = []result.Finding{
		{Message: `tools/list was answered with error -32603: "[ { \"code\": \"invalid_type\" } ]", not with error -32602`, Evidence: []result.Event{
			sent(46, `{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{"cursor":"x"}}`),
			got(47, `{"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"[\n  {\n    \"code\": \"invalid_type\"\n  }\n]"}}`),
		}},
		{Message: "prompts/list was answered with a result, not with error -32602"},
	}
	q.SDK = &result.SDKFault{ID: "typescript-pagination", Versions: "1.x", Mended: "2.0.0", Says: "No list is paged.", Advice: "Move to version 2.",
		Thread: "https://github.com/modelcontextprotocol/typescript-sdk/issues/2352"}
	add(q)
	for _, name := range []string{"progress.token.echoed", "progress.value.increases", "progress.stops", "progress.total.number"} {
		q = req(name, "MUST", "basic/utilities/progress", "progress-flow", "Progress of "+name+" is right.", result.Inconclusive, 0)
		q.Reason, q.Unexercised = "no tool reported progress: name one in the configuration, tools.progress", result.NotProvoked
		if name == "progress.total.number" {
			q.Reason, q.Unexercised, q.NotUsed = "the server never reported progress; its tools were called, 2 of 2", result.NeverDone, "progress"
		}
		add(q)
	}
	q = req("tools.list-changed.sent", "SHOULD", "server/tools", "list-changed-notification", "A server that declared listChanged notifies of a changed list.", result.Inconclusive, 0)
	q.Reason = "the list of tools did not change: " + hostile
	add(q)
	for _, name := range []string{"tools.list.answered", "tools.list.cursor-accepted", "tools.call.content", "schema.list-tools-result"} {
		add(req(name, "MUST", "server/tools", "listing-tools", "What "+name+" asks for is done.", result.Pass, 5))
	}
	q = req("tools.call.human-in-the-loop", "SHOULD", "server/tools", "user-interaction-model", "A person can deny the call of a tool.", result.Skip, 0)
	q.Observable, q.Party, q.Reason = false, "host", "only a user of the host sees it"
	add(q)

	return &result.Run{
		Format: result.Format, Tool: result.Tool{Name: "mcpconform", Version: "0.3.0"},
		Revision: "2025-06-18", Role: "server", Transport: "stdio",
		Target: result.Target{Command: []string{"node", "dist/server.js", "--mode", "it's"}, Name: "weather", Title: "Weather " + hostile[:30],
			Version: "1.4.2", ProtocolVersion: "2024-11-05", Capabilities: json.RawMessage(`{"tools":{"listChanged":true}}`),
			SDK: &result.SDK{Name: "the TypeScript SDK", Version: "1.32.2", Evidence: "it writes 'MCP error -32' into its errors"}},
		Started: time.Date(2025, 11, 21, 9, 30, 0, 0, time.UTC), Seconds: 12.3456, Verdict: result.NotConformant,
		Requirements: list,
		Harness: []result.Finding{{Message: "a request repeated an id", Evidence: []result.Event{
			sent(50, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)}}},
		Notes:    []string{"the server answered 401 once: " + hostile},
		Uncalled: []result.Uncalled{{Tool: "delete_" + hostile, Reason: "not annotated readOnlyHint: true"}},
		ExpectedFailures: []result.ExpectedFailure{
			{ID: "tools.call.unknown-tool", Reason: "fixed in 1.5 <soon>", Expires: "2026-01-01", Status: "failed"},
			{ID: "tools.call.content", Reason: "was broken in 1.2", Status: "passed"},
			{ID: "tools.gone", Status: "unmatched"},
		},
	}
}
