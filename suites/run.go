// Package suites runs the checks and the rules against a target and gives each
// requirement of the revision its verdict.
package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
	"github.com/mcpconform/mcpconform/suites/server"
)

// Options of a run.
type Options struct {
	Dialer    transport.Dialer
	Selection Selection
	Settings  check.Settings
	// Timeout of one answer; zero for the default.
	Timeout time.Duration
	// Parallel is how many connections of single checks are open at a time;
	// zero for the default.
	Parallel int
	Strict   bool
	// Expected are the failures that do not count, for the time being.
	Expected []expected.Entry
	// Scripts of the user, which are played beside the built-in checks.
	Scripts []*script.Script
	Limits  wire.Limits // zero for the defaults
	// Trace to record to, which may hold what went before; nil makes one.
	Trace *wire.Trace
	// Redactor takes secrets out of the report and of the trace as it is
	// written; nil for none.
	Redactor *transport.Redactor
	Tool     result.Tool
	Target   result.Target // command or URL, for the report
	// Restart brings back a target over HTTP that has stopped to answer; nil
	// when that is not possible.
	Restart func(context.Context) error
	// Progress is told of each check that ends; nil for nobody.
	Progress Progress
	// Framework runs the specs; nil runs them one after the other. Ginkgo is one.
	Framework Framework
}

// Progress is told how a run goes on. Its methods may be called by several
// goroutines.
type Progress interface {
	Start(total int)
	Done(name string, verdict result.Verdict, message string)
	Stop()
}

// Spec is one entry of the suite: a check, or a requirement that only the
// judge sees to.
type Spec struct {
	Page   string // path of the specification's page
	Name   string
	Labels []string // requirement ids, levels
	// Run waits for the outcome and returns it in one line.
	Run func() (result.Verdict, string)
}

// Framework runs specs in the order given.
type Framework func(specs []Spec)

// Server runs the server suites against a target. The run is complete in every
// case: what could not be tried is inconclusive and says why.
func Server(ctx context.Context, o Options) (*result.Run, *wire.Trace, error) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		return nil, nil, err
	}
	if o.Limits == (wire.Limits{}) {
		o.Limits = wire.DefaultLimits
	}
	if o.Framework == nil {
		o.Framework = oneByOne
	}
	trace := o.Trace
	if trace == nil {
		trace = wire.NewTrace(o.Limits)
	}
	trace.Redact = o.Redactor.Event
	r := &serverRun{options: o, catalogue: slices.Concat(catalogue, OwnRequirements(o.Scripts, wire.Server)), trace: trace}
	r.engine = &check.Engine{Dialer: o.Dialer, Trace: trace, Timeout: o.Timeout, Parallel: o.Parallel, Settings: o.Settings, Restart: o.Restart}
	return r.run(ctx), trace, nil
}

func oneByOne(specs []Spec) {
	for _, s := range specs {
		s.Run()
	}
}

type serverRun struct {
	options   Options
	catalogue []schema.Requirement
	trace     *wire.Trace
	engine    *check.Engine
	target    *check.Target
	futures   []*check.Future
	cause     error
	result    *result.Run
}

func (r *serverRun) run(ctx context.Context) *result.Run {
	r.target, r.cause = r.engine.Prepare(ctx)
	if r.cause != nil && ctx.Err() != nil {
		r.cause = errInterrupted
	}
	if r.cause == nil {
		r.cause = otherRevision(r.target)
	}
	if refused := (*client.RefusedError)(nil); errors.As(r.cause, &refused) && r.served() && !misread(refused) {
		r.cause = fmt.Errorf("the server opened one session, and no other after it: %w; with --transport %s none is spent on finding out the transport",
			r.cause, r.options.Dialer.Transport())
	}
	checks := r.selected()
	r.futures = r.engine.Start(ctx, checks, r.cause)
	if p := r.options.Progress; p != nil {
		p.Start(len(checks))
		defer p.Stop()
	}
	specs := make([]Spec, 0, len(r.futures))
	for _, f := range r.futures {
		specs = append(specs, r.checkSpec(f))
	}
	specs = append(specs, r.judgeSpecs(ctx)...)
	r.options.Framework(specs)
	// With nothing selected but checks, or a framework that was interrupted.
	r.conclude(ctx)
	return r.result
}

var errInterrupted = errors.New("the run was interrupted")

var revisionName = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// otherRevision returns an error if the target settled on another revision,
// by whose rules it would have to be judged.
func otherRevision(t *check.Target) error {
	v, ok := t.Init.Result()["protocolVersion"].(string)
	if !ok || v == schema.Version || !revisionName.MatchString(v) {
		return nil
	}
	return fmt.Errorf("the server answered with revision %s, and only %s is tested", wire.Quote(v, 40), schema.Version)
}

// selected returns the checks that serve the selection.
func (r *serverRun) selected() []*check.Check {
	serves := r.options.Selection.serves(r.catalogue, wire.Server)
	all := slices.Concat(server.Checks(), scriptChecks(r.options.Scripts))
	return slices.DeleteFunc(all, func(c *check.Check) bool { return !serves(c.Requirements) })
}

// find returns a requirement of a catalogue, or one without an id.
func find(catalogue []schema.Requirement, id string) schema.Requirement {
	i := slices.IndexFunc(catalogue, func(q schema.Requirement) bool { return q.ID == id })
	if i < 0 {
		return schema.Requirement{}
	}
	return catalogue[i]
}

func (r *serverRun) checkSpec(f *check.Future) Spec {
	main := find(r.catalogue, f.Check.Requirements[0])
	return Spec{
		Page: main.Page, Name: f.Check.Name, Labels: append([]string{string(main.Level)}, f.Check.Requirements...),
		Run: func() (result.Verdict, string) {
			o := f.Await()
			v, message := summarise(o, r.catalogue, r.options.Selection)
			message = r.options.Redactor.String(message)
			if r.options.Progress != nil {
				r.options.Progress.Done(o.Check.Name, v, message)
			}
			return v, message
		},
	}
}

// summarise gives the verdict of one check in one line, as to what is selected.
func summarise(o check.Outcome, catalogue []schema.Requirement, selection Selection) (result.Verdict, string) {
	switch o.Verdict {
	case check.Failed:
		verdict, message := result.Skip, "it found nothing of what is selected"
		for _, f := range o.Findings {
			q := find(catalogue, f.Requirement)
			if !selection.Includes(q) {
				continue
			}
			if verdict == result.Skip {
				verdict, message = result.Warn, f.Requirement+": "+f.Message
			}
			if !f.Mild && (q.Level == schema.Must || q.Level == schema.MustNot) {
				return result.Fail, message
			}
		}
		return verdict, message
	case check.Skipped:
		return result.Skip, o.Reason
	case check.Inconclusive:
		return result.Inconclusive, o.Reason
	case check.Broken:
		return result.Error, o.Reason
	}
	return result.Pass, find(catalogue, o.Check.Requirements[0]).Summary
}

// judgeSpecs returns a spec for each selected requirement that rules serve.
// The first of them waits for the end of the exchange and lets the judge work.
func (r *serverRun) judgeSpecs(ctx context.Context) []Spec {
	rules := ruleNames()
	var specs []Spec
	for _, q := range r.catalogue {
		if len(rules[q.ID]) == 0 || !binds(q, wire.Server) || !r.options.Selection.Includes(q) {
			continue
		}
		specs = append(specs, Spec{
			Page: q.Page, Name: q.ID, Labels: []string{string(q.Level), q.ID},
			Run: func() (result.Verdict, string) {
				r.conclude(ctx)
				for _, done := range r.result.Requirements {
					if done.ID == q.ID {
						return done.Verdict, done.Reason
					}
				}
				return result.Error, "the requirement got no verdict"
			},
		})
	}
	return specs
}

// conclude waits for all checks, ends the sessions, judges the trace and
// assembles the result. It does so once.
func (r *serverRun) conclude(ctx context.Context) {
	if r.result != nil {
		return
	}
	v := &evidence{
		role: wire.Server, transport: r.options.Dialer.Transport(), cause: r.cause, redactor: r.options.Redactor,
	}
	for _, f := range r.futures {
		v.outcomes = append(v.outcomes, f.Await())
	}
	if r.cause == nil && ctx.Err() == nil {
		// The target was alive until the end; if not, the judge sees why.
		_ = r.engine.Alive(ctx)
	}
	r.engine.Finish(ctx)
	if ctx.Err() != nil && r.cause == nil {
		r.cause = errInterrupted
		v.cause = r.cause
	}
	v.report = judge.JudgeKnowing(r.trace.Logs(), judge.Known{Secrets: r.target.Settings.Secrets, Personal: r.target.Settings.Personal})
	if r.target.Init != nil && r.target.Init.Result() != nil {
		v.declared = func(p wire.Party, path []string) bool { return declared(r.target, path) }
	}
	r.answerless(v)
	run := &result.Run{
		Format: result.Format, Tool: r.options.Tool, Revision: schema.Version, Role: string(wire.Server),
		Transport: v.transport, Target: r.describeTarget(), Started: r.trace.Start.UTC(),
		Seconds: time.Since(r.trace.Start).Seconds(), Strict: r.options.Strict,
		Requirements: v.assemble(r.catalogue, r.options.Selection), Harness: r.harnessFindings(v.report),
	}
	if r.target.Profile != "" {
		run.Notes = append(run.Notes, "the server was recognised as "+r.target.Profile+", whose tools are known to be safe to call")
	}
	expected.Apply(run, r.options.Expected, r.trace.Start)
	cause := r.cause
	if cause == nil {
		cause = r.engine.Dead()
	}
	if n := r.engine.Restarts(); n > 0 {
		run.Notes = append(run.Notes, fmt.Sprintf("the server stopped to answer and was started again, %d times in this run", n))
	}
	if cause != nil {
		if words := r.lastStderr(); words != "" {
			run.Notes = append(run.Notes, "the server's last words on its stderr: "+words)
		}
	}
	run.Verdict, run.Reason = verdict(run, cause)
	redactRun(r.options.Redactor, run)
	r.result = run
}

func declared(t *check.Target, path []string) bool {
	v := wire.At(t.Capabilities(), path...)
	if flag, ok := v.(bool); ok {
		return flag
	}
	return v != nil
}

// answerless records what it means when the handshake itself failed.
func (r *serverRun) answerless(v *evidence) {
	var start *transport.StartError
	var barred *check.UnauthorizedError // which is an answer
	var stream *transport.StreamError
	if errors.As(r.cause, &stream) && !r.saidSomething() {
		// Of a stream that was opened in another way than it should, the judge tells.
		v.outcomes = append(v.outcomes, r.unmet("sse.server.sse-endpoint"))
	}
	if r.cause == nil || r.target.Init == nil || errors.As(r.cause, &start) || errors.As(r.cause, &barred) {
		return
	}
	var timeout *client.TimeoutError
	var refused *client.RefusedError
	overHTTP := r.options.Dialer.Transport() != transport.NameStdio // there it was reached, else it is a StartError
	if !errors.As(r.cause, &timeout) && !errors.As(r.cause, &refused) && !overHTTP && !r.saidSomething() {
		return // it ended before it was there
	}
	if r.target.Init.Result() != nil || r.served() && !misread(refused) {
		return // it was answered; something else is wrong
	}
	if refused != nil && refused.Forbidden() {
		return // who may come in is for the server to say
	}
	v.outcomes = append(v.outcomes, r.unmet("lifecycle.init.answered"))
}

// misread reports whether it was the params of initialize that were refused,
// and not one session more. Nil refused nothing.
func misread(refused *client.RefusedError) bool {
	if refused == nil {
		return false
	}
	e := refused.Exchange.Error()
	return e != nil && e.Code == -32602
}

// unmet blames the cause of the run's end on a requirement.
func (r *serverRun) unmet(id string) check.Outcome {
	evidence := r.lastWords()
	if refused := (*client.RefusedError)(nil); errors.As(r.cause, &refused) {
		evidence = refused.Exchange.Events()
	}
	return check.Outcome{
		Check:    &check.Check{Name: "lifecycle/handshake", Requirements: []string{id}},
		Verdict:  check.Failed,
		Findings: []check.Finding{{Requirement: id, Message: r.cause.Error(), Evidence: evidence}},
	}
}

// served reports whether the handshake took place in some session.
func (r *serverRun) served() bool {
	for _, l := range r.trace.Logs() {
		for _, e := range l.Events() {
			if e.Kind == wire.KindMessage && e.From == wire.Server && wire.At(e.Msg.Result, "protocolVersion") != nil {
				return true
			}
		}
	}
	return false
}

// saidSomething reports whether the target sent anything at all.
func (r *serverRun) saidSomething() bool {
	for _, l := range r.trace.Logs() {
		for _, e := range l.Events() {
			if e.From == wire.Server && (e.Kind == wire.KindMessage || e.Kind == wire.KindHTTPResponse) {
				return true
			}
		}
	}
	return false
}

// lastWords returns the beginning and the end of the shared session.
func (r *serverRun) lastWords() []*wire.Event {
	const most = 10
	var events []*wire.Event
	for _, l := range r.trace.Logs() {
		if l.Label == check.SharedLabel {
			events = l.Events()
		}
	}
	if len(events) <= most {
		return events
	}
	return slices.Concat(events[:most/2], events[len(events)-most/2:])
}

// lastStderr returns what the target wrote last on its stderr, which often
// says why it ended.
func (r *serverRun) lastStderr() string {
	const most = 5
	var lines []string
	for _, l := range r.trace.Logs() {
		for _, e := range l.Events() {
			if e.Kind == wire.KindStderr && len(bytes.TrimSpace(e.Raw)) > 0 {
				lines = append(lines, wire.Quote(string(bytes.TrimSpace(e.Raw)), 200))
			}
		}
		if len(lines) > 0 {
			break // the other connections tell the same
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], ", ")
}

// harnessFindings returns violations in messages of mcpconform itself.
func (r *serverRun) harnessFindings(report judge.Report) []result.Finding {
	var findings []result.Finding
	for k, seen := range report {
		if k.Party != wire.Client {
			continue
		}
		for _, v := range seen.Violations {
			findings = append(findings, result.Finding{
				Check: "rule: " + v.Rule, Message: k.Requirement + ": " + v.Message, Evidence: shown(r.options.Redactor, v.Evidence),
			})
		}
	}
	slices.SortFunc(findings, func(a, b result.Finding) int { return strings.Compare(a.Message, b.Message) })
	return findings
}

func (r *serverRun) describeTarget() result.Target {
	t := r.options.Target
	if r.target.Init == nil {
		return t
	}
	answer := r.target.Init.Result()
	t.Name, _ = wire.At(answer, "serverInfo", "name").(string)
	t.Title, _ = wire.At(answer, "serverInfo", "title").(string)
	t.Version, _ = wire.At(answer, "serverInfo", "version").(string)
	t.ProtocolVersion, _ = answer["protocolVersion"].(string)
	if caps := answer["capabilities"]; caps != nil {
		if raw, err := json.Marshal(caps); err == nil {
			t.Capabilities = raw
		}
	}
	return t
}
