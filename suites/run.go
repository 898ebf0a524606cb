// Package suites runs the checks, scenarios and rules against a target and gives
// each requirement of the revision its verdict.
package suites

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/lastwords"
	"github.com/mcpconform/mcpconform/reference/script"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/expected"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/internal/sdk"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
	"github.com/mcpconform/mcpconform/suites/result"
)

// Options of a run, whatever provokes the target.
type Options struct {
	// Revision by which the target is judged; nil for the default.
	Revision  *schema.Revision
	Selection Selection
	// Timeout of one answer or, for a client, of one scenario; zero for the default.
	Timeout time.Duration
	// RunTimeout is when a run is ended: what was not tried by then is inconclusive.
	// Zero: long enough for all of it, even if nothing is answered.
	RunTimeout time.Duration
	// Parallel is how many connections of single checks are open at a time, or
	// how many clients are launched; zero for the default.
	Parallel int
	// Seed chooses which members of large families of stimuli are tried; the same seed
	// chooses the same.
	Seed uint64
	// Budget is how much is tried.
	Budget result.Budget
	Strict bool
	// Expected are the failures that do not count, for the time being.
	Expected []expected.Entry
	// ExpectSDK has findings that the target's SDK is known to cause not count either.
	ExpectSDK bool
	// Scripts of the user, which run beside the built-in checks or scenarios.
	Scripts []*script.Script
	Limits  wire.Limits // zero for the defaults
	// Trace to record to, which may hold what went before; nil makes one.
	Trace *wire.Trace
	// Redactor takes secrets out of the report and of the trace as it is written. A run
	// adds those that it finds in the environment, in the command of the target and in
	// what else it is given. Nil: only these.
	Redactor *transport.Redactor
	Tool     result.Tool
	Target   result.Target // command or URL, for the report
	// Progress is told of each check or scenario that ends; nil for none.
	Progress Progress
	// Shard is which of so many Shards of the run this is, from 1; both are zero for all of it.
	Shard, Shards int
	// Ginkgo runs the specs as a Ginkgo suite, of which a process can run one.
	Ginkgo bool
}

// Progress is told how a run goes on. Its methods may be called by several
// goroutines.
type Progress interface {
	Start(total int)
	// Done tells the verdict of a check or scenario and what decided it; disputed says that maintainers contest its
	// findings, which then do not count.
	Done(name string, verdict result.Verdict, disputed bool, message string)
	Stop()
}

// Stimulus provokes a target: [ServerChecks], [ClientScenarios] or a [Recording]
// of what happened earlier.
type Stimulus interface {
	begin(r *run) stimulus
	// Secrets makes known what is secret in what the stimulus was given, as a run does.
	Secrets(*transport.Redactor)
}

// stimulus is a Stimulus in a run.
type stimulus interface {
	// party and transport are those of the target.
	party() wire.Party
	transport() string
	// specs returns what provokes the target, before anything runs.
	specs() ([]*tree.Spec, error)
	// limit is the time of a run with n specs unless the options have another one; zero
	// for none.
	limit(n int) time.Duration
	// start starts those that are left.
	start(ctx context.Context, left []*tree.Spec)
	// finish ends what start began, once all specs have their outcomes.
	finish(ctx context.Context)
}

// run is one run while it goes on.
type run struct {
	Options
	stimulus stimulus
	index
	ledger    *ledger.Ledger
	judging   judge.Options // what is known of the target
	provoking []*tree.Spec  // specs that the filter leaves, without rules
	source    string        // stands before the name of such a spec where that is a source
	remarks
	course
}

// index finds requirements in the catalogue of the run.
type index struct {
	catalogue []schema.Requirement
	byID      map[string]int // positions in the catalogue
	byPattern map[string][]int
}

// remarks are what the results say beside the verdicts.
type remarks struct {
	part     *result.Shard // nil for all
	notes    []string
	uncalled []result.Uncalled
	offer    *result.Offer // of a server
	login    *result.Login // nil unless it failed
	lasted   time.Duration // of a recording
}

// course is what ends a run, and what its end waits for.
type course struct {
	end     context.CancelCauseFunc
	unlimit func()         // stops the clock of the time limit
	warming sync.WaitGroup // of the schema, while the target starts
	judged  sync.Once
}

// Run provokes a target, or takes a recording, judges all that crossed the wire, and
// gives each selected requirement its verdict. The run is complete in every case:
// a requirement that could not be tried is inconclusive and says why. An error
// means that the options are wrong.
func Run(ctx context.Context, s Stimulus, o Options) (*result.Run, *wire.Trace, error) {
	if o.Revision == nil {
		o.Revision = schema.Default()
	}
	if o.Limits == (wire.Limits{}) {
		o.Limits = wire.DefaultLimits
	}
	if o.Trace == nil {
		o.Trace = wire.NewTrace(o.Limits)
	}
	if o.Redactor == nil {
		o.Redactor = transport.NewRedactor(nil, "")
	}
	s.Secrets(o.Redactor)
	o.Redactor.AddEnv(os.Environ()...) // which a process inherits
	o.Redactor.AddArgs(o.Target.Command...)
	o.Trace.Redact = o.Redactor.Event
	r := &run{Options: o, course: course{unlimit: func() {}}}
	r.stimulus = s.begin(r)
	r.catalogue = slices.Concat(o.Revision.Catalogue(), OwnRequirements(o.Scripts, r.stimulus.party()))
	r.ledger = &ledger.Ledger{Revision: o.Revision, Party: r.stimulus.party(), Redactor: o.Redactor,
		ExpectSDK: o.ExpectSDK}
	if err := r.Selection.compile(); err != nil {
		return nil, nil, err
	}
	specs, err := r.stimulus.specs()
	if err != nil {
		return nil, nil, err
	}
	filter := r.filter(specs)
	if specs, err = r.shard(specs, filter); err != nil {
		return nil, nil, err
	}
	ctx, r.end = context.WithCancelCause(ctx)
	defer func() {
		r.end(nil)
		r.unlimit()
	}()
	suite := &tree.Suite{
		Specs: r.inPages(specs), Filter: filter, Interrupt: func() { r.end(nil) },
		Start: r.start, Done: func(s *tree.Spec, o tree.Outcome) {
			if r.Progress != nil && !s.Judges {
				r.Progress.Done(s.Name, o.Verdict, o.Disputed, o.Message)
			}
		},
	}
	suite.Specs = append(suite.Specs, r.requirements(ctx)...)
	run := tree.InOrder
	if o.Ginkgo {
		run = tree.Ginkgo
	}
	outcomes := run(ctx, suite)
	if o.Progress != nil {
		o.Progress.Stop()
	}
	return r.conclude(ctx, outcomes), o.Trace, nil
}

// inPages returns specs in the order of the catalogue's pages.
func (r *run) inPages(specs []*tree.Spec) []*tree.Spec {
	first := make(map[string]int)
	for i, q := range slices.Backward(r.catalogue) {
		first[q.Page] = i
	}
	slices.SortStableFunc(specs, func(a, b *tree.Spec) int { return cmp.Compare(first[a.Page], first[b.Page]) })
	return specs
}

// spec returns the spec of a check or scenario that is about some requirements.
func (r *run) spec(name string, requirements []string, more ...string) *tree.Spec {
	s := &tree.Spec{Name: name, Labels: more, Requirements: requirements, Unit: name}
	for i, id := range requirements {
		q := r.find(id)
		if i == 0 {
			s.Page = q.Page
		}
		for _, label := range tree.Labels(q, string(r.stimulus.party())) {
			if !slices.Contains(s.Labels, label) {
				s.Labels = append(s.Labels, label)
			}
		}
	}
	return s
}

// shows notes what else a spec may show broken, so that a selection of it leaves the spec.
func (r *run) shows(s *tree.Spec, patterns []string) {
	if len(patterns) == 0 {
		return
	}
	matching := make([]bool, len(r.catalogue))
	for _, pattern := range patterns {
		for _, i := range r.named(pattern) {
			matching[i] = true
		}
	}
	for i := range r.catalogue {
		q := &r.catalogue[i]
		if matching[i] && ledger.Binds(*q, r.stimulus.party()) {
			s.Shows = append(s.Shows, q.ID)
			s.Labels = append(s.Labels, tree.Label(tree.KeyID, q.ID))
		}
	}
}

// named returns the positions of the requirements that a pattern names.
func (r *index) named(pattern string) []int {
	if r.byPattern == nil {
		r.byPattern = make(map[string][]int)
	}
	positions, ok := r.byPattern[pattern]
	if !ok {
		for i, q := range r.catalogue {
			if q.Matches(pattern) {
				positions = append(positions, i)
			}
		}
		r.byPattern[pattern] = positions
	}
	return positions
}

// find returns a requirement, or one without an id.
func (r *index) find(id string) schema.Requirement {
	if r.byID == nil {
		r.byID = make(map[string]int, len(r.catalogue))
		for i, q := range r.catalogue {
			r.byID[q.ID] = i
		}
	}
	if i, ok := r.byID[id]; ok {
		return r.catalogue[i]
	}
	return schema.Requirement{}
}

// quote returns lines that a target wrote as one, without secrets.
func (r *run) quote(lines []string) string {
	var redacted []string
	for _, line := range lines {
		redacted = append(redacted, r.Redactor.String(line))
	}
	return lastwords.Quote(redacted)
}

// requirements returns a spec for each requirement on the target. The first of them
// to be awaited ends the exchange and lets the judge work.
func (r *run) requirements(ctx context.Context) []*tree.Spec {
	served := ruleNames(r.Revision)
	party := r.stimulus.party()
	var specs []*tree.Spec
	for _, q := range r.catalogue {
		if !ledger.Binds(q, party) {
			continue
		}
		for _, name := range served[q.ID] {
			r.ledger.Serve(name, party, q.ID)
		}
		s := r.spec(q.ID, []string{q.ID})
		s.Judges = true
		s.Await = func(context.Context) tree.Outcome {
			r.judge(ctx)
			judged := r.ledger.Requirement(q)
			why := judged.Reason
			if len(judged.Findings) > 0 {
				why = judged.Findings[0].Message
			}
			return tree.Outcome{Verdict: judged.Verdict, Message: r.Redactor.String(why), Requirement: &judged}
		}
		specs = append(specs, s)
	}
	return specs
}

// filter returns the label filter that leaves what serves the selection, of the
// specs of checks or scenarios and of those of rules.
func (r *run) filter(specs []*tree.Spec) string {
	var filters []string
	if len(r.Selection.Select)+len(r.Selection.Skip) > 0 {
		filters = append(filters, "("+r.selected(specs)+")")
	}
	if r.Selection.LabelFilter != "" {
		filters = append(filters, "("+r.Selection.LabelFilter+")")
	}
	return strings.Join(filters, " && ")
}

// selected is the filter for what is selected by its names.
func (r *run) selected(specs []*tree.Spec) string {
	tried := make(map[string]bool) // by page
	for _, s := range specs {
		tried[s.Page] = true
	}
	served := ruleNames(r.Revision)
	var chosen, excluded, pages []string
	all := r.Selection.broad() // whatever is exchanged may show what rules judge
	for _, q := range r.catalogue {
		if !ledger.Binds(q, r.stimulus.party()) {
			continue
		}
		if r.Selection.Excludes(q) {
			excluded = append(excluded, q.ID)
		}
		if !r.Selection.named(q) {
			continue
		}
		chosen = append(chosen, q.ID)
		if len(served[q.ID]) > 0 && !slices.Contains(pages, q.Page) {
			// Rules see what they judge above all in what else is tried of its page, and may see it
			// in whatever costs no session.
			pages = append(pages, q.Page)
			all = all || !tried[q.Page]
		}
	}
	filter := tree.AnyOf(tree.KeyID, chosen...)
	if len(pages) == 0 {
		return filter
	}
	support := "!(" + tree.KeySession + ": isEmpty)" // any check or scenario
	if !all {
		support += " && (" + tree.AnyOf(tree.KeyPage, pages...) + " || " +
			tree.AnyOf(tree.KeySession, check.Shared.String()) + ")"
	}
	if len(excluded) > 0 {
		support += " && !(" + tree.KeyID + ": isSubsetOf {" + strings.Join(excluded, ", ") + "})"
	}
	return filter + " || " + support
}

// dispensable is why a spec was not run that a filter leaves.
const dispensable = "the rules have seen what is selected without it"

// needed returns the specs that are worth their cost. The messages exchanged so far may have shown the rules enough
// of a selection. The specs that would only show the rules more are then left out, unless they cost little.
func (r *run) needed(left []*tree.Spec) []*tree.Spec {
	if !r.narrow() {
		return left
	}
	party := r.stimulus.party()
	tried := make(map[string]bool) // by page
	for _, s := range left {
		tried[s.Page] = true
	}
	served, seen := ruleNames(r.Revision), judge.Judge(r.Revision, r.Trace.Logs(), r.judging)
	all := false
	unseen := make(map[string]bool) // by page
	for _, q := range r.catalogue {
		if len(served[q.ID]) == 0 || !ledger.Binds(q, party) || !r.Selection.named(q) {
			continue
		}
		if e := seen[ledger.Key{Requirement: q.ID, Party: party}]; e == nil ||
			e.Exercised == 0 && len(e.Findings) == 0 {
			unseen[q.Page] = true
			all = all || !tried[q.Page]
		}
	}
	return slices.DeleteFunc(slices.Clone(left), func(s *tree.Spec) bool {
		return !r.serves(s) && !all && !unseen[s.Page] && !s.Cheap
	})
}

// narrow reports whether few requirements are selected, by their names or pages.
func (r *run) narrow() bool { return r.Selection.LabelFilter == "" && !r.Selection.broad() }

// serves reports whether a spec serves a selected requirement, or shows it broken where others do not.
func (r *run) serves(s *tree.Spec) bool {
	selected := func(id string) bool { return r.Selection.named(r.find(id)) }
	return slices.ContainsFunc(s.Requirements, selected) || slices.ContainsFunc(s.Shows, selected)
}

// runTime is how long a run of n checks or scenarios may take: more than it takes a
// target that answers nothing, even on a busy machine.
func runTime(n int, answer time.Duration) time.Duration {
	const (
		beginning = 20 // in time limits of one answer: handshakes, lists, the probe of tools, the end
		each      = 2  // how many of them share the time limit of one answer
	)
	return beginning*answer + time.Duration(n)*answer/each
}

// start starts the stimulus for the specs that are left.
func (r *run) start(ctx context.Context, left []*tree.Spec) {
	for _, s := range left {
		if !s.Judges {
			r.provoking = append(r.provoking, s)
		}
	}
	if r.Progress != nil {
		r.Progress.Start(len(r.provoking))
	}
	if limit := cmp.Or(r.RunTimeout, r.stimulus.limit(len(r.provoking))); limit > 0 {
		r.unlimit = ending.After(limit-time.Since(r.Trace.Start), limit, r.end)
	}
	r.warming.Go(func() {
		_ = r.Revision.Warm(ctx, r.Revision.Messages()...) // what is wrong with the schema shows when it is used
	})
	r.stimulus.start(ctx, r.provoking)
}

// awaited is a check or scenario that ends while the run goes on.
type awaited struct {
	done   chan struct{}        // closed when it has ended; then record is known
	record func() ledger.Record // nil if it was not run
}

// await returns the outcome of a check or scenario, unless all have ended without it: it may have been the last one.
func (r *run) await(a *awaited, ended <-chan struct{}, what string) tree.Outcome {
	select {
	case <-a.done:
	case <-ended:
	}
	if a.record == nil {
		return tree.Outcome{Verdict: result.Inconclusive, Message: "the " + what + " was not run"}
	}
	return r.outcome(a.record())
}

// outcome gives what a check or scenario recorded the worst verdict of the selected
// requirements in it.
func (r *run) outcome(record ledger.Record) tree.Outcome {
	o := tree.Outcome{Record: record}
	o.Verdict, o.Disputed, o.Message = r.ledger.Worst(record, r.Strict, func(k ledger.Key) (schema.Requirement, bool) {
		q := r.find(k.Requirement)
		return q, k.Party == r.stimulus.party() && r.Selection.Includes(q, k.Party)
	})
	return o
}

// judge ends the exchange, applies the rules to all of it, and puts what was recorded
// into the ledger, once.
func (r *run) judge(ctx context.Context) {
	r.judged.Do(func() {
		for _, s := range r.provoking {
			s.Take(ctx)
		}
		r.stimulus.finish(ctx)
		r.warming.Wait()
		for _, s := range r.provoking {
			record := s.Take(ctx).Record
			r.ledger.Add(record)
			for k, e := range record {
				if e.Exercised > 0 {
					r.ledger.Serve(r.source+s.Name, k.Party, k.Requirement) // which it need not have said before
				}
			}
		}
		r.ledger.Add(judge.Judge(r.Revision, r.Trace.Logs(), r.judging))
		r.ledger.Transport = r.stimulus.transport()
		r.ledger.Evidence.Logs = r.Trace.Logs()
	})
}

// conclude makes the result of the run, of which the outcomes hold the requirements.
func (r *run) conclude(ctx context.Context, outcomes []tree.Outcome) *result.Run {
	r.judge(ctx) // if no requirement is left
	r.notes = append(r.notes, judge.UndefinedMembers(r.Revision, r.Trace.Logs(), r.stimulus.party())...)
	_, recorded := r.stimulus.(*recordedRun)
	run := &result.Run{
		Tool: r.Tool, Revision: r.Revision.Version, Target: r.Target, Started: r.Trace.Start.UTC(),
		Seconds: cmp.Or(r.lasted, time.Since(r.Trace.Start)).Seconds(), Strict: r.Strict, Notes: r.notes,
		Uncalled: r.uncalled, Offer: r.offer,
		Login: r.login,
		Seed:  r.Seed, Quick: r.Budget == result.Quick, Thorough: r.Budget == result.Thorough, Recorded: recorded,
		Partial: len(r.Selection.Select)+len(r.Selection.Skip) > 0 || r.Selection.LabelFilter != "" ||
			r.ledger.Evidence.Partial,
	}
	for _, o := range outcomes {
		if o.Requirement != nil {
			run.Requirements = append(run.Requirements, *o.Requirement)
		}
	}
	run.Target.SDK = sdk.Recognise(r.Revision, r.Trace.Logs(), r.stimulus.party(), r.Target.Command)
	if r.part != nil {
		run.Shard, r.part.Partial, run.Partial = r.part, run.Partial, true
	}
	r.ledger.Conclude(run, r.catalogue, r.Expected, time.Now())
	if run.Login != nil && run.Verdict != result.Incomplete { // whose reason it is otherwise
		run.Notes = append(run.Notes, run.Login.Text)
	}
	return run
}

// describe adds what a target says about itself in its part of the handshake, under the name of info.
func describe(t *result.Target, said any, info string) {
	t.Name, _ = wire.At(said, info, "name").(string)
	t.Title, _ = wire.At(said, info, "title").(string)
	t.Version, _ = wire.At(said, info, "version").(string)
	t.ProtocolVersion, _ = wire.At(said, "protocolVersion").(string)
	if caps := wire.At(said, "capabilities"); caps != nil {
		if raw, err := json.Marshal(caps); err == nil {
			t.Capabilities = raw
		}
	}
}

// ruleNames returns the names of the passive rules by requirement.
func ruleNames(revision *schema.Revision) map[string][]string {
	names := make(map[string][]string)
	for _, r := range judge.Rules(revision) {
		for _, id := range r.Requirements {
			names[id] = append(names[id], ledger.RulePrefix+r.Name)
		}
	}
	return names
}

// RecogniseSDK returns the SDK on which a party is built, judging by what it has sent and by the
// packages beside its command, or nil.
func RecogniseSDK(revision *schema.Revision, t *wire.Trace, p wire.Party, command []string) *result.SDK {
	return sdk.Recognise(revision, t.Logs(), p, command)
}
