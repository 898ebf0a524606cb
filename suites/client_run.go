package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	reference "github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// ClientOptions of a run against a client.
type ClientOptions struct {
	// Transport is one of the names in package transport; empty is Streamable HTTP.
	Transport string
	// Launch starts the client under test for one scenario. Its error means
	// that the client cannot be started at all.
	Launch func(p client.Place) (transport.Process, error)
	// Announce makes the run one of clients that a person connects: it is told
	// where the server of each scenario is, in place of Launch, and the run goes
	// on until its context ends.
	Announce func([]client.Place)
	// Bridge is the command that calls [client.Bridge] with two more arguments;
	// it serves clients over stdio.
	Bridge    []string
	Selection Selection
	// Scenarios leaves out all whose names match none of the given ones, which
	// may be patterns as in [path.Match]; the baseline is always played. The
	// scenarios of single faults are played only when they are named.
	Scenarios []string
	// Scripts of the user, which are played beside the built-in scenarios.
	Scripts []*script.Script
	// Authorizes says that the client is meant to seek authorization where a
	// server wants it: that it does not is then held against it.
	Authorizes bool
	// Timeout of one scenario, and how many clients run at a time; zero for
	// the defaults.
	Timeout  time.Duration
	Parallel int
	Strict   bool
	Expected []expected.Entry
	Limits   wire.Limits
	// Redactor takes secrets out of the report, of the progress and of the
	// trace as it is written; nil for none.
	Redactor *transport.Redactor
	Tool     result.Tool
	Target   result.Target
	Progress Progress
}

// Client launches a client, or awaits one, at the server of each scenario, judges all
// that crossed the wire, and what only the scenario can know. The run is
// complete in every case: what the client never tried is inconclusive and says
// so. A client that cannot be started makes the run incomplete.
func Client(ctx context.Context, o ClientOptions) (*result.Run, *wire.Trace, error) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		return nil, nil, err
	}
	if o.Limits == (wire.Limits{}) {
		o.Limits = wire.DefaultLimits
	}
	if o.Transport == "" {
		o.Transport = transport.NameHTTP
	}
	trace := wire.NewTrace(o.Limits)
	trace.Redact = o.Redactor.Event
	catalogue = slices.Concat(catalogue, OwnRequirements(o.Scripts, wire.Client))
	scenarios, err := o.selected(catalogue)
	if err != nil {
		return nil, nil, err
	}
	engine := &client.Engine{
		Transport: o.Transport, Launch: o.Launch, Bridge: o.Bridge, Trace: trace, Timeout: o.Timeout, Parallel: o.Parallel,
		Authorizes: o.Authorizes,
	}
	if p := o.Progress; p != nil {
		p.Start(len(scenarios))
		defer p.Stop()
		engine.Done = func(t *client.T) {
			verdict, message := summariseScenario(t, catalogue, o.Selection)
			p.Done(t.Scenario.Name, verdict, o.Redactor.String(message))
		}
	}
	var played []*client.T
	if o.Announce != nil {
		played, err = engine.Serve(ctx, scenarios, o.Announce)
		ctx = context.WithoutCancel(ctx) // its end is no interruption
	} else {
		played, err = engine.Run(ctx, scenarios)
	}
	v := &evidence{role: wire.Client, transport: o.Transport, report: judge.Judge(trace.Logs()), redactor: o.Redactor}
	for _, t := range played {
		v.outcomes = append(v.outcomes, t.Outcomes()...)
	}
	target := o.Target
	v.cause = clientCause(ctx, err, played, o.Announce != nil)
	if c := introduced(played); c != nil {
		describeClient(&target, c)
		v.declared = func(p wire.Party, path []string) bool { return c.Declared(p, path...) }
	}
	run := &result.Run{
		Format: result.Format, Tool: o.Tool, Revision: schema.Version, Role: string(wire.Client), Transport: o.Transport,
		Target: target, Started: trace.Start.UTC(), Seconds: time.Since(trace.Start).Seconds(), Strict: o.Strict,
		Requirements: v.assemble(catalogue, o.Selection), Harness: ownFindings(v.report, wire.Server, o.Redactor),
	}
	expected.Apply(run, o.Expected, trace.Start)
	run.Verdict, run.Reason = verdict(run, v.cause)
	run.Notes = endings(played)
	redactRun(o.Redactor, run)
	return run, trace, nil
}

// selected returns the scenarios that serve the selection. The
// baseline is among them in every case.
func (o ClientOptions) selected(catalogue []schema.Requirement) ([]*client.Scenario, error) {
	serves := o.Selection.serves(catalogue, wire.Client)
	scripted, err := ScriptScenarios(o.Scripts)
	if err != nil {
		return nil, err
	}
	var scenarios []*client.Scenario
	all := slices.Concat(client.Scenarios(), scripted)
	if len(o.Scenarios) > 0 {
		all = append(all, client.Faulty()...)
	}
	for _, s := range all {
		named := len(o.Scenarios) == 0 || slices.ContainsFunc(o.Scenarios, s.Named)
		if s.Applies(o.Transport) && (s.Name == client.Baseline || named && serves(s.Requirements)) {
			scenarios = append(scenarios, s)
		}
	}
	return scenarios, nil
}

// summariseScenario gives the verdict of one scenario in one line.
func summariseScenario(t *client.T, catalogue []schema.Requirement, selection Selection) (result.Verdict, string) {
	verdict, message := result.Inconclusive, ""
	for _, o := range t.Outcomes() {
		v, text := summarise(o, catalogue, selection)
		switch {
		case v == result.Fail, v == result.Warn && verdict != result.Fail:
			verdict, message = v, text
		case v == result.Pass && verdict == result.Inconclusive:
			verdict, message = v, ""
		case message == "" && v == result.Inconclusive && verdict == result.Inconclusive:
			message = text
		}
	}
	return verdict, message
}

// clientCause says why a run tells nothing, or nil.
func clientCause(ctx context.Context, err error, played []*client.T, announced bool) error {
	switch {
	case err != nil && announced:
		return fmt.Errorf("the servers cannot be started: %w", err)
	case err != nil:
		return fmt.Errorf("the client cannot be started: %w", err)
	case ctx.Err() != nil:
		return errInterrupted
	}
	reason := "the client never sent initialize"
	for _, t := range played {
		for _, c := range t.Conversations {
			switch {
			case c.Handshaken():
				return nil
			case c.Init != nil:
				reason = "no initialize of the client got a result"
			}
		}
	}
	if len(played) > 0 {
		if said := lastLine(played[0].Ending.Output); said != "" {
			reason += "; its last words: " + wire.Quote(said, 200)
		}
	}
	return errors.New(reason)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// introduced returns the first conversation in which the client has said who
// it is, or nil.
func introduced(played []*client.T) *judge.Conversation {
	for _, t := range played {
		if c := t.Handshake(); c != nil {
			return c
		}
	}
	return nil
}

func describeClient(t *result.Target, c *judge.Conversation) {
	asked := c.Init.Request.Msg.Params
	t.Name, _ = wire.At(asked, "clientInfo", "name").(string)
	t.Title, _ = wire.At(asked, "clientInfo", "title").(string)
	t.Version, _ = wire.At(asked, "clientInfo", "version").(string)
	t.ProtocolVersion, _ = wire.At(asked, "protocolVersion").(string)
	if caps := wire.At(asked, "capabilities"); caps != nil {
		if raw, err := json.Marshal(caps); err == nil {
			t.Capabilities = raw
		}
	}
}

// ownFindings returns violations in messages of mcpconform itself, which plays
// the given party. Where the other party gave an id or a token twice it does not
// show what belongs together, nor then who is at fault.
func ownFindings(report judge.Report, own wire.Party, redactor *transport.Redactor) []result.Finding {
	var findings []result.Finding
	for _, id := range []string{"base.request.id-unique", "progress.token.unique"} {
		if seen := report[judge.Key{Requirement: id, Party: own.Peer()}]; seen != nil && len(seen.Violations) > 0 {
			return nil
		}
	}
	for k, seen := range report {
		if k.Party != own {
			continue
		}
		for _, v := range seen.Violations {
			findings = append(findings, result.Finding{
				Check: "rule: " + v.Rule, Message: k.Requirement + ": " + v.Message, Evidence: shown(redactor, v.Evidence),
			})
		}
	}
	slices.SortFunc(findings, func(a, b result.Finding) int { return strings.Compare(a.Message, b.Message) })
	return findings
}

// endings remarks on scenarios that the client did not live through like the
// baseline.
func endings(played []*client.T) []string {
	var late []string
	for _, t := range played {
		if t.Ending.Late && !t.Scenario.Patient {
			late = append(late, t.Scenario.Name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return []string{"the client had to be stopped at the time limit in " + strings.Join(late, ", ")}
}

// ReferenceClient launches the reference client at a place, within this program.
func ReferenceClient(p client.Place, timeout time.Duration) transport.Func {
	return transport.Func{Name: "the embedded reference client", Run: func(ctx context.Context, _ io.Reader, stdout, _ io.Writer) error {
		c := reference.Standalone{URL: p.URL, Legacy: p.Transport == transport.NameSSE, Timeout: timeout, Act: p.Act, Output: stdout,
			Authorizer: &reference.Authorizer{ID: p.ClientID, Secret: p.ClientSecret}}
		if p.Transport == transport.NameStdio {
			c.Launcher = transport.Func{Name: p.Scenario, Run: p.Serve}
		}
		return c.Run(ctx)
	}}
}
