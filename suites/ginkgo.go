package suites

import (
	"io"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/formatter"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/mcpconform/mcpconform/suites/result"
)

// Ginkgo runs the specs as a Ginkgo suite: a tree that mirrors the pages of the
// specification, one spec a check. The checks run concurrently in the engine; a
// spec awaits its own. A process can run one suite only, and needs a handler of
// its own for interrupts: Ginkgo takes them, also those that come later.
func Ginkgo(specs []Spec) {
	formatter.ColorableStdOut = io.Discard
	formatter.ColorableStdErr = io.Discard
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.GracePeriod = time.Second
	reporter.Succinct = true
	reporter.NoColor = true
	ginkgo.Describe("MCP", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for first := 0; first < len(specs); {
			last := first
			for last < len(specs) && specs[last].Page == specs[first].Page {
				last++
			}
			page(specs[first:last])
			first = last
		}
	})
	ginkgo.RunSpecs(failure{}, "mcpconform", suite, reporter)
}

// failure is Ginkgo's view of the test that it runs in. The verdicts come from
// the engine, so that nothing is to be done.
type failure struct{}

func (failure) Fail() {}

func page(specs []Spec) {
	ginkgo.Describe(specs[0].Page, ginkgo.Label(label(specs[0].Page)), func() {
		for i, s := range specs {
			where := types.CodeLocation{FileName: s.Page, LineNumber: i + 1}
			ginkgo.It(s.Name, ginkgo.Label(labels(s)...), where, func() {
				switch v, message := s.Run(); v {
				case result.Fail, result.Error:
					ginkgo.Fail(message)
				case result.Skip, result.Inconclusive:
					ginkgo.Skip(message)
				}
			})
		}
	})
}

// label returns a text without the characters that Ginkgo's filter language
// reserves.
func label(text string) string { return reserved.Replace(text) }

var reserved = strings.NewReplacer("&", "", "|", "", "!", "", ",", "", "(", "", ")", "", "/", "-")

func labels(s Spec) []string {
	var out []string
	for _, l := range s.Labels {
		out = append(out, label(l))
	}
	return out
}
