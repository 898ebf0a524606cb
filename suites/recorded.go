package suites

import (
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Recorded judges one party of a recorded trace. Only the passive rules can
// say anything of it: what they did not see is inconclusive.
func Recorded(trace *wire.Trace, party wire.Party, o Options) (*result.Run, error) {
	trace.Redact = o.Redactor.Event
	catalogue, err := schema.Catalogue()
	if err != nil {
		return nil, err
	}
	v := &evidence{role: party, passive: true, report: judge.Judge(trace.Logs()), redactor: o.Redactor}
	var last float64
	for _, l := range trace.Logs() {
		if l.Transport == transport.NameOAuth {
			continue
		}
		v.transport = l.Transport
		c := judge.NewConversation(l)
		if c.Handshaken() && v.declared == nil {
			v.declared = func(p wire.Party, path []string) bool { return c.Declared(p, path...) }
		}
		if n := len(c.Events); n > 0 {
			last = max(last, c.Events[n-1].At.Seconds())
		}
	}
	run := &result.Run{
		Format: result.Format, Tool: o.Tool, Revision: schema.Version, Role: string(party), Transport: v.transport,
		Target: o.Target, Started: trace.Start.UTC(), Seconds: last, Strict: o.Strict,
		Requirements: v.assemble(catalogue, o.Selection),
	}
	for _, l := range trace.Logs() {
		if l.Stopped() {
			run.Notes = append(run.Notes, "what followed on the connection "+l.ID+" was more than is kept: it was not judged")
		}
	}
	expected.Apply(run, o.Expected, time.Now())
	run.Verdict, run.Reason = verdict(run, nil)
	redactRun(o.Redactor, run)
	return run, nil
}
