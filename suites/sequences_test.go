package suites_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/oddserver"
	"github.com/mcpconform/mcpconform/internal/proof/virtual"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/result"
)

// ordered runs what plays sequences against a server, and returns the findings of that.
func ordered(t *testing.T, over string, seed uint64, o server.Options) (findings []string) {
	t.Helper()
	virtual.Test(t, func(t *testing.T) {
		dialer, stop, err := serve(t.Context(), over, o)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		run, _, err := suites.Run(context.WithoutCancel(t.Context()), suites.ServerChecks{
			Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll, ToolRoles: rolesOn(o)},
		}, suites.Options{Seed: seed, Selection: suites.Selection{Select: []string{
			"base.response.*", "base.error.method-not-found", "ping.*", "*.answered", "tools.list.callable", "resources.*subscribe.accepted",
			"logging.set-level.all-levels", "pagination.server.stable-cursors", "cancellation.ignore-*",
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range run.Requirements {
			for _, f := range q.Findings {
				findings = append(findings, fmt.Sprintf("%s, %s: %s", q.ID, f.Check, f.Message))
			}
			if q.ID == "base.response.present" && q.Verdict != result.Pass && len(q.Findings) == 0 {
				findings = append(findings, q.ID+" is "+string(q.Verdict)+": "+q.Reason)
			}
		}
	})
	return findings
}

// TestSequencesAccuseNobody plays the sequences of many seeds with servers that are odd and legal.
func TestSequencesAccuseNobody(t *testing.T) {
	brief.WholeRuns(t)
	oddities := slices.DeleteFunc(oddserver.Oddities(), func(o oddserver.Oddity) bool {
		topic, _, _ := strings.Cut(o.ID, ".")
		return !slices.Contains([]string{"moments", "message", "cancellation", "ping"}, topic)
	})
	seeds := make([]uint64, 20)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	for _, seed := range brief.Sample(t, seeds, 8) {
		for i, over := range transports {
			odd := oddities[(int(seed)*len(transports)+i)%len(oddities)]
			if odd.Transports != nil && !slices.Contains(odd.Transports, over) {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s/%s", seed, over, odd.ID), func(t *testing.T) {
				o := serverOptions()
				odd.Apply(&o)
				for _, f := range ordered(t, over, seed, o) {
					t.Error(f)
				}
			})
		}
	}
}

// TestSequencesRepeat wants runs with the same seed to find the same.
func TestSequencesRepeat(t *testing.T) {
	brief.WholeRuns(t)
	for _, id := range []string{"moments.cancel-takes-all", "moments.error-sticks", "moments.session-resurrected"} {
		f, _ := mockserver.Find(id)
		t.Run(id, func(t *testing.T) {
			find := func() []string {
				o := serverOptions()
				f.Apply(&o)
				over := transports[0]
				if !f.Shows(over) {
					over = f.Transports[0]
				}
				return ordered(t, over, 5, o)
			}
			if first, second := find(), find(); !slices.Equal(first, second) {
				t.Errorf("found\n%s\nand then\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
			}
		})
	}
}

// TestSequencesAtEverySeed wants the faults that show at one moment caught whatever the seed is.
func TestSequencesAtEverySeed(t *testing.T) {
	brief.WholeRuns(t)
	type try struct {
		fault mockserver.Fault
		seed  uint64
	}
	var tries []try
	for _, f := range mockserver.Catalogue() {
		for seed := range uint64(8) {
			if strings.HasPrefix(f.ID, "moments.") {
				tries = append(tries, try{f, seed + 1})
			}
		}
	}
	for _, one := range brief.Sample(t, tries, 16) {
		t.Run(fmt.Sprintf("%s/%d", one.fault.ID, one.seed), inVirtualTime(func(t *testing.T) {
			o := serverOptions()
			one.fault.Apply(&o)
			over := transports[0]
			if !one.fault.Shows(over) {
				over = one.fault.Transports[0]
			}
			run, err := conduct(t.Context(), one.seed, over, o, one.fault.Requirement)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == one.fault.Requirement && len(q.Findings) > 0 }) {
				t.Errorf("%s is not found broken", one.fault.Requirement)
			}
		}))
	}
}

// TestSequencesKeep wants found that a server forgets a fact after an action that has nothing to do with it,
// whichever they are.
func TestSequencesKeep(t *testing.T) {
	brief.WholeRuns(t)
	type try struct {
		fault mockserver.Fault
		over  string
	}
	var tries []try
	for _, f := range mockserver.Forgotten() {
		for _, over := range []string{transport.NameStdio, transport.NameHTTP} {
			tries = append(tries, try{f, over})
		}
	}
	for _, one := range brief.Sample(t, tries, 8) {
		t.Run(one.over+"/"+one.fault.ID, inVirtualTime(func(t *testing.T) {
			o := serverOptions()
			one.fault.Apply(&o)
			run, err := conduct(t.Context(), 1, one.over, o, one.fault.Requirement)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(run.Requirements, func(q result.Requirement) bool { return q.ID == one.fault.Requirement })
			for _, f := range run.Requirements[i].Findings {
				t.Log(f.Check, f.Message)
			}
			if len(run.Requirements[i].Findings) == 0 {
				t.Errorf("%s is not found broken: %s %v", one.fault.Requirement, run.Requirements[i].Reason, run.Requirements[i].Notes)
			}
		}))
	}
}
