package tree

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/mcpconform/mcpconform/suites/result"
)

var suiteDidRun atomic.Bool

// Ginkgo runs a suite as a Ginkgo suite: a tree that mirrors the pages of the
// specification. A preview tells what the filter leaves, and just that is started
// before the specs, which run one after the other, await their outcomes.
//
// Ginkgo keeps its suite in the process, which can run one only: a second one is
// run InOrder. Ginkgo takes interrupts, also those that come later: whoever runs
// it needs a handler of its own.
func Ginkgo(ctx context.Context, s *Suite) []Outcome {
	if !suiteDidRun.CompareAndSwap(false, true) {
		return InOrder(ctx, s)
	}
	formatter.ColorableStdOut = io.Discard
	formatter.ColorableStdErr = io.Discard
	config, reporter := ginkgo.GinkgoConfiguration()
	config.GracePeriod = time.Second
	config.LabelFilter = s.Filter
	reporter.Succinct, reporter.NoColor = true, true

	byPlace := s.build()
	left := s.preview(byPlace, config, reporter)

	// Nodes beside containers come after the preview, which would lose them.
	ginkgo.BeforeSuite(func() { s.Start(ctx, left) })
	ginkgo.ReportAfterEach(func(r ginkgo.SpecReport) {
		if spec := byPlace[r.LeafNodeLocation]; spec != nil && !r.State.Is(types.SpecStatePending) {
			if o, ok := outcomeOf(r); ok {
				s.done(spec, o)
			}
		}
	})
	var outcomes []Outcome
	ginkgo.ReportAfterSuite("results", func(r ginkgo.Report) {
		taken := make(map[*Spec]Outcome)
		for _, spec := range r.SpecReports {
			if o, ok := outcomeOf(spec); ok {
				taken[byPlace[spec.LeafNodeLocation]] = o
			}
		}
		for _, spec := range left {
			o, ok := taken[spec]
			if !ok {
				o = spec.take(ctx) // Ginkgo was interrupted before it
			}
			outcomes = append(outcomes, o)
		}
	})
	ginkgo.RunSpecs(quiet{}, description, config, reporter)
	return outcomes
}

const description = "mcpconform"

// entryName names the report entry that holds the outcome of a spec.
const entryName = "outcome"

// build makes the containers and specs and returns the specs by their places:
// the page and a number of their own, in the order in which they are to run.
func (s *Suite) build() map[types.CodeLocation]*Spec {
	byPlace := make(map[types.CodeLocation]*Spec, len(s.Specs))
	ginkgo.Describe("MCP", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for first := 0; first < len(s.Specs); {
			last := first
			for last < len(s.Specs) && s.Specs[last].Page == s.Specs[first].Page && s.Specs[last].Rule == s.Specs[first].Rule {
				last++
			}
			specs, from := s.Specs[first:last], first
			ginkgo.Describe(specs[0].Page, func() {
				for i, spec := range specs {
					place := types.CodeLocation{FileName: spec.Page, LineNumber: from + i + 1}
					byPlace[place] = spec
					ginkgo.It(spec.Name, ginkgo.Label(spec.Labels...), place, s.body(spec))
				}
			})
			first = last
		}
	})
	return byPlace
}

// preview returns the specs that the filter leaves, in their order: all without one.
func (s *Suite) preview(byPlace map[types.CodeLocation]*Spec, config types.SuiteConfig, reporter types.ReporterConfig) []*Spec {
	if s.Filter == "" {
		return s.Specs
	}
	var left []*Spec
	for _, r := range ginkgo.PreviewSpecs(description, config, reporter).SpecReports {
		if spec := byPlace[r.LeafNodeLocation]; spec != nil && !r.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
			left = append(left, spec)
		}
	}
	return left
}

// body awaits the outcome of a spec. Our verdicts are Ginkgo's as docs/results.md says.
func (s *Suite) body(spec *Spec) func(ginkgo.SpecContext) {
	return func(ctx ginkgo.SpecContext) {
		defer context.AfterFunc(ctx, s.Interrupt)()
		o := spec.take(ctx)
		ginkgo.AddReportEntry(entryName, o, ginkgo.ReportEntryVisibilityNever)
		switch o.Verdict {
		case result.Fail, result.Error:
			ginkgo.Fail(o.Message)
		case result.Skip, result.Inconclusive:
			ginkgo.Skip(string(o.Verdict) + ": " + o.Message)
		}
	}
}

func outcomeOf(r ginkgo.SpecReport) (Outcome, bool) {
	for _, e := range r.ReportEntries {
		if o, ok := e.GetRawValue().(Outcome); ok && e.Name == entryName {
			return o, true
		}
	}
	return Outcome{}, false
}

// quiet is Ginkgo's view of the test that it runs in. The verdicts are in the
// outcomes, so that nothing is to be done.
type quiet struct{}

func (quiet) Fail() {}
