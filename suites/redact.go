package suites

import (
	"encoding/json"
	"slices"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/result"
)

// shown converts evidence for a report. Secrets are taken out before a long
// event is shortened, which could cut one in two.
func shown(r *transport.Redactor, events []*wire.Event) []result.Event {
	clean := make([]*wire.Event, 0, len(events))
	seen := make(map[*wire.Event]bool)
	for _, e := range events {
		if e != nil && !seen[e] {
			seen[e] = true
			clean = append(clean, r.Event(e))
		}
	}
	return result.NewEvents(clean)
}

// redactRun takes secrets out of everything in a report that the target, or
// the network on the way to it, had a say in.
func redactRun(r *transport.Redactor, run *result.Run) {
	if r == nil {
		return
	}
	clean := func(texts ...*string) {
		for _, s := range texts {
			*s = r.String(*s)
		}
	}
	cleanAll := func(list []string) {
		for i := range list {
			clean(&list[i])
		}
	}
	findings := func(list []result.Finding) {
		for i := range list {
			clean(&list[i].Check, &list[i].Message)
			for j := range list[i].Evidence {
				clean(&list[i].Evidence[j].Text)
			}
		}
	}
	clean(&run.Reason, &run.Target.Name, &run.Target.Title, &run.Target.Version, &run.Target.ProtocolVersion, &run.Target.URL)
	run.Target.Command = slices.Clone(run.Target.Command)
	cleanAll(run.Target.Command)
	if c := r.Bytes(run.Target.Capabilities); json.Valid(c) {
		run.Target.Capabilities = c
	} else {
		run.Target.Capabilities = nil
	}
	cleanAll(run.Notes)
	findings(run.Harness)
	for i := range run.Requirements {
		q := &run.Requirements[i]
		clean(&q.Reason, &q.Expected)
		cleanAll(q.Notes)
		findings(q.Findings)
	}
	for i := range run.ExpectedFailures {
		clean(&run.ExpectedFailures[i].Reason)
	}
}
