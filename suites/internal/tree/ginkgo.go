package tree

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/mcpconform/mcpconform/suites/result"
)

var suiteDidRun atomic.Bool

// Ginkgo runs a suite as a Ginkgo suite: a tree that mirrors the pages of the
// specification. A preview tells what the filter leaves, and only that is started.
// The specs then run one after the other, and await their outcomes.
//
// Ginkgo keeps its suite in global variables, so that a process can run only one: a
// second suite is run InOrder. Ginkgo handles interrupts, even after its end, so
// that the caller needs a handler of its own.
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

	byLocation := s.build()
	left := s.preview(byLocation, config, reporter)

	// Nodes outside containers come after the preview, which would lose them.
	start := sync.OnceFunc(func() { s.Start(ctx, left) })
	ginkgo.BeforeSuite(start)
	ginkgo.ReportAfterEach(func(r ginkgo.SpecReport) {
		if spec := byLocation[r.LeafNodeLocation]; spec != nil && !r.State.Is(types.SpecStatePending) {
			for _, e := range r.ReportEntries {
				if o, ok := e.GetRawValue().(Outcome); ok {
					s.done(spec, o)
				}
			}
		}
	})
	ginkgo.RunSpecs(quiet{}, description, config, reporter)
	// An interrupted suite leaves specs out, and abandons the node in which it is.
	start()
	outcomes := make([]Outcome, len(left))
	for i, spec := range left {
		outcomes[i] = spec.Take(ctx)
	}
	return outcomes
}

const description = "mcpconform"

// entryName names the report entry that holds the outcome of a spec.
const entryName = "outcome"

// build makes the containers and specs and returns the specs by their locations:
// the page and a number of their own, in the order in which they are to run.
func (s *Suite) build() map[types.CodeLocation]*Spec {
	byLocation := make(map[types.CodeLocation]*Spec, len(s.Specs))
	ginkgo.Describe("MCP", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for first := 0; first < len(s.Specs); {
			last := first
			for last < len(s.Specs) && s.Specs[last].Page == s.Specs[first].Page &&
				s.Specs[last].Judges == s.Specs[first].Judges {
				last++
			}
			specs, from := s.Specs[first:last], first
			ginkgo.Describe(specs[0].Page, func() {
				for i, spec := range specs {
					location := types.CodeLocation{FileName: spec.Page, LineNumber: from + i + 1}
					byLocation[location] = spec
					ginkgo.It(spec.Name, ginkgo.Label(spec.Labels...), location, s.body(spec))
				}
			})
			first = last
		}
	})
	return byLocation
}

// preview returns the specs that the filter leaves, in their order: all without one.
func (s *Suite) preview(byLocation map[types.CodeLocation]*Spec, config types.SuiteConfig,
	reporter types.ReporterConfig) []*Spec {
	if s.Filter == "" {
		return s.Specs
	}
	var left []*Spec
	for _, r := range ginkgo.PreviewSpecs(description, config, reporter).SpecReports {
		if spec := byLocation[r.LeafNodeLocation]; spec != nil &&
			!r.State.Is(types.SpecStateSkipped|types.SpecStatePending) {
			left = append(left, spec)
		}
	}
	return left
}

// body awaits the outcome of a spec. docs/design.md says which verdict is which in Ginkgo.
func (s *Suite) body(spec *Spec) func(ginkgo.SpecContext) {
	return func(ctx ginkgo.SpecContext) {
		defer context.AfterFunc(ctx, s.Interrupt)()
		o := spec.Take(ctx)
		ginkgo.AddReportEntry(entryName, o, ginkgo.ReportEntryVisibilityNever)
		switch o.Verdict {
		case result.Fail, result.Error:
			ginkgo.Fail(o.Message)
		case result.Skip, result.Inconclusive:
			ginkgo.Skip(string(o.Verdict) + ": " + o.Message)
		}
	}
}

// quiet is the test in which Ginkgo believes to run. It ignores failures, because
// the outcomes hold the verdicts.
type quiet struct{}

func (quiet) Fail() {}
