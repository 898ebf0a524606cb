package suites_test

import (
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpconform/mcpconform/internal/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites/internal/brief"
	"github.com/mcpconform/mcpconform/suites/result"
)

var form = flag.String("form", "", "try all faults in this form and say which survive: session, concurrent or sequence")

// readOnce are the faults of lists that are read to their ends, and of methods that are
// found missing, once in a run: in the first session. Later another requirement shows
// them, or nothing.
var readOnce = []string{
	"base.unknown-method-ignored", "tools.list-refused", "tools.second-page-refused", "resources.list-refused", "prompts.list-refused", "pagination.cursor-never-ends",
}

// inAnyAnswer are the beginnings of the ids of faults that rules find in what a server gives:
// also while a call is in progress.
var inAnyAnswer = []string{
	"content.", "tools.content-", "tools.input-schema-", "tools.output-schema-", "prompts.content-", "resources.contents-", "pagination.next-cursor-",
}

// forms returns the forms in which a fault has to be caught.
func forms(f mockserver.Fault) []mockserver.Form {
	if slices.ContainsFunc(inAnyAnswer, func(prefix string) bool { return strings.HasPrefix(f.ID, prefix) }) {
		return []mockserver.Form{mockserver.BySession, mockserver.AtOnce}
	}
	return []mockserver.Form{mockserver.BySession}
}

// TestForms tries faults of moments in another form, of which some are tried unless -form is
// given: in all sessions but the first they have to be caught, and those of what a server gives
// beside a call in progress as well. -form only tells what the checks do not try.
func TestForms(t *testing.T) {
	brief.WholeRuns(t)
	var faults []mockserver.Fault
	for _, f := range mockserver.Catalogue() {
		chosen := forms(f)
		if *form != "" {
			chosen = []mockserver.Form{mockserver.Form(*form)}
		}
		for _, form := range chosen {
			if f, ok := f.In(form); ok && f.Shows(transport.NameHTTP) {
				faults = append(faults, f)
			}
		}
	}
	if *form == "" {
		faults = brief.Part(t, faults, max(30, 4*brief.OneOf()))
	}
	queue := make(chan mockserver.Fault)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for f := range queue {
				t.Run(f.ID, func(t *testing.T) {
					virtual.Test(t, func(t *testing.T) { survives(t, f) })
				})
			}
		})
	}
	for _, f := range faults {
		queue <- f
	}
	close(queue)
	workers.Wait()
}

// survives wants a fault to be caught by the requirement that it breaks.
func survives(t *testing.T, f mockserver.Fault) {
	o := serverOptions()
	f.Apply(&o)
	run, err := conduct(t.Context(), 0, transport.NameHTTP, o)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, q := range run.Requirements {
		if q.Verdict == result.Fail || q.Verdict == result.Warn {
			found = append(found, q.ID)
		}
	}
	switch {
	case slices.Contains(found, f.Requirement):
	case f.Form == mockserver.BySession && slices.Contains(readOnce, strings.TrimSuffix(f.ID, "/"+string(f.Form))):
	default:
		t.Errorf("%s is not found, but %v: %s", f.Requirement, found, f.Summary)
	}
}

// A fault in another form leaves the first session as it is, and shows in the next one.
func TestFormsOfMoments(t *testing.T) {
	if _, ok := (mockserver.Fault{Apply: func(o *server.Options) { o.Without = []string{"tools"} }}).In(mockserver.BySession); ok {
		t.Error("what a server offers is the same at every time")
	}
}
