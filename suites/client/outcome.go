package client

import (
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// judge judges a launch, when the scenarios have ended with which it is compared.
func (x *execution) judge(t *T) {
	if t.Scenario.Name == Baseline {
		if t.Baseline == nil {
			t.Baseline = t // before others may read it
			if x.launches.stopped() == "" {
				x.launches.open()
			}
		}
		x.publish(t)
	}
	if t.Baseline == nil {
		t.Baseline = x.awaited[Baseline].await()
	}
	if first := x.first(t.Scenario); first != nil && t.Preceding == nil {
		t.Preceding = first.await()
	}
	t.judge()
}

// judge judges the scenario run. A panic is a fault of the harness: only the requirements of this scenario become
// errors.
func (t *T) judge() {
	if t.Scenario.Judge == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			for _, id := range t.Scenario.Requirements {
				t.Recorder().Error(id, wire.Client, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}
	}()
	t.Scenario.Judge(t)
}

// JudgeAgain forgets what was recorded, and judges once more.
func (t *T) JudgeAgain() {
	t.rec = nil
	t.judge()
}

// Accused reports whether the scenario has findings.
func (t *T) Accused() bool { return len(t.Recorder().Record.Findings()) > 0 }

// logs returns the connections of the scenario, without those of an earlier run.
func (t *T) logs(trace *wire.Trace) []*wire.Log {
	return slices.DeleteFunc(trace.Logs()[t.after:], func(l *wire.Log) bool { return l.Label != t.Scenario.Name })
}

// gather reads the conversations of the scenario.
func (t *T) gather(trace *wire.Trace) {
	logs := t.logs(trace)
	for _, l := range logs {
		t.spoke = t.spoke || slices.ContainsFunc(l.Events(), func(e *wire.Event) bool {
			return e.From == wire.Client && e.Kind != wire.KindSignal && e.Kind != wire.KindClose
		})
		if l.Len() > 0 && l.Transport != transport.NameOAuth {
			t.Conversations = append(t.Conversations, judge.NewConversation(t.Revision, l))
		}
	}
	if t.Flow != nil {
		t.Flow.documentsFrom(logs)
	}
}

// noteDifference notes the findings of an earlier run of the scenario that this run does not have.
func (t *T) noteDifference(before *T) {
	found := before.Recorder().Record
	for _, k := range found.Keys() {
		if all := found[k].Findings; len(all) > 0 {
			t.Recorder().Note(k.Requirement, k.Party,
				"it failed while other clients ran, but passed when it ran alone: "+all[0].Message)
		}
	}
}

// final reports whether the outcome is final, because another run could not change it: nothing was found, a person
// attended the client, or the client neither broke off the scenario nor missed a time limit.
func (t *T) final() bool {
	ok, decided, _ := t.Continued()
	brokenOff := decided && !ok && (t.Ending.Exit != nil || t.Ending.Silent)
	return !brokenOff && !t.leftUnanswered() || t.Ending.Attended || !t.Accused()
}

// unbegun reports whether the client ended without having sent initialize.
func (t *T) unbegun() bool {
	return t.Ending.Exit != nil &&
		!slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool { return c.Init != nil })
}

// stuck reports whether the client hung, and has findings.
func (t *T) stuck() bool { return t.Ending.Late && !t.Ending.Busy && t.Accused() }

// leftUnused reports whether the client failed before it used its server.
func (t *T) leftUnused() bool {
	return t.spoke && len(t.Requests()) == 0 && t.Ending.Exit != nil && *t.Ending.Exit != wire.Exit{}
}

// judgedWhole reports whether the scenario leaves none of its requirements open: the passive rules alone judge it, or
// all were exercised.
func (t *T) judgedWhole() bool {
	return t.Scenario.Judge == nil || !slices.ContainsFunc(t.Scenario.Requirements, func(id string) bool {
		return t.Recorder().Record.At(id, wire.Client).Exercised == 0
	})
}

// cleared reports whether the scenario was judged, and nothing was found.
func (t *T) cleared() bool {
	return !t.Accused() && !slices.ContainsFunc(t.Scenario.Requirements, func(id string) bool {
		return t.Recorder().Record.At(id, wire.Client).Error != ""
	})
}

// leftUnanswered reports whether the client missed a time limit.
func (t *T) leftUnanswered() bool {
	return slices.ContainsFunc(t.Conversations, func(c *judge.Conversation) bool {
		return slices.ContainsFunc(c.Events, func(e *wire.Event) bool { return e.Kind == wire.KindTimeout })
	})
}
