package reporters

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/suites/result"
)

// limitCauses bounds the requirements among which causes are looked for.
const limitCauses = 1000

// broken are the outcomes that a report says something about, the gravest first.
var broken = []outcome{outFail, outError, outWarn, outDisputed, outExpected}

// advice is what the author of the target can do about the findings of a requirement:
// "" if nothing was found.
func (v *view) advice(q *result.Requirement) string {
	if len(q.Findings) == 0 || !slices.Contains(broken, v.outcome(q)) || v.outcome(q) == outError {
		return ""
	}
	return v.Protocol().AdviceFor(q.ID)
}

// A cited remark has the address of the thread that it rests on.
type cited struct{ words, thread string }

// known describes each SDK with a known bug behind the findings on a requirement: the versions, the thread, and
// advice for its users. In brief it leaves out the quotes of the thread.
func (v *view) known(q *result.Requirement, brief bool) []cited {
	if v.advice(q) == "" {
		return nil
	}
	if f := q.SDK; f != nil {
		words := fmt.Sprintf("Known of %s (%s): ", v.sdkName(), mended(f))
		if !brief {
			words += f.Says + " "
		}
		return []cited{{words + f.Advice, f.Thread}}
	}
	var texts []string
	for i := range q.Findings {
		texts = append(texts, q.Findings[i].Message)
		for j := range q.Findings[i].Evidence {
			texts = append(texts, q.Findings[i].Evidence[j].Text)
		}
	}
	var list []cited
	for _, f := range v.Protocol().KnownFaultsFor(q.ID, strings.Join(v.Target.Command, " "), texts) {
		if v.otherSDK(f) {
			continue
		}
		words := "If you use "
		if f.Certain {
			words = "Known of "
		}
		words += f.SDK + " (" + f.Versions + "): "
		if !brief {
			words += f.Says + " "
		}
		list = append(list, cited{words + f.Advice, f.Thread})
	}
	return list
}

// reading arranges what was found: causes, and what each of them brought with it.
type reading struct {
	causes  map[outcome][]*result.Requirement // in the order of the run
	brought map[string][]*result.Requirement  // by the id of the cause
	cause   map[string]*result.Requirement    // by the id of what was brought
}

// read finds the requirements that were broken by one and the same thing. It looks at
// what decides each finding, which is the end of the target or the last event of the
// evidence. A requirement stands under another one if all that was found about it was
// found by the same check at the same events, or if the target ended there, or if the
// catalogue says that the other one brings it. A cause is never less grave than what it
// brings, and has no cause itself.
func (v *view) read() *reading {
	r := &reading{
		causes: make(map[outcome][]*result.Requirement), brought: make(map[string][]*result.Requirement),
		cause: make(map[string]*result.Requirement),
	}
	brings := v.Protocol().Consequences()
	type candidate struct {
		*result.Requirement
		outcome outcome
		events  map[string]bool
	}
	var list []candidate
	for _, o := range broken {
		for _, q := range v.having(o) {
			list = append(list, candidate{q, o, decisive(v.Role, q)})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(slices.Index(broken, a.outcome), slices.Index(broken, b.outcome)),
			cmp.Compare(len(brings[b.ID]), len(brings[a.ID])),
			cmp.Compare(len(b.events), len(a.events)),
		)
	})
	for i := range list[:min(len(list), limitCauses)] {
		q := &list[i]
		at := slices.IndexFunc(list[:i], func(c candidate) bool {
			if r.cause[c.ID] != nil {
				return false
			}
			if slices.Contains(brings[c.ID], q.ID) {
				return true
			}
			for event := range q.events {
				if !c.events[event] {
					return false
				}
			}
			return len(q.events) > 0
		})
		if at >= 0 {
			r.cause[q.ID] = list[at].Requirement
			r.brought[list[at].ID] = append(r.brought[list[at].ID], q.Requirement)
		}
	}
	for _, o := range broken {
		for _, q := range v.having(o) {
			if r.cause[q.ID] == nil {
				r.causes[o] = append(r.causes[o], q)
			}
		}
	}
	return r
}

// decisive names what decides each finding of a requirement. It is empty if one of the
// findings has no evidence: nothing is then known to be the cause.
func decisive(role string, q *result.Requirement) map[string]bool {
	keys := make(map[string]bool)
	for i := range q.Findings {
		key := decider(role, &q.Findings[i])
		if key == "" {
			return nil
		}
		keys[key] = true
	}
	return keys
}

func decider(role string, f *result.Finding) string {
	if len(f.Evidence) == 0 {
		return ""
	}
	last := f.Evidence[len(f.Evidence)-1]
	at := fmt.Sprintf("%s %d", last.Connection, last.Seq)
	if !strings.HasPrefix(last.Kind, "process-exit") {
		return f.Check + " " + at
	}
	// One handler serves a kind of notification. If the target ends over it in several sessions, that is one fault.
	for _, e := range slices.Backward(f.Evidence) {
		if e.Kind != "message" || e.From == role {
			continue
		}
		var message struct {
			Method string          `json:"method"`
			ID     json.RawMessage `json:"id"`
		}
		if json.Unmarshal([]byte(e.Text), &message) != nil || message.Method == "ping" {
			continue
		}
		if message.ID == nil && message.Method != "" {
			return "end after " + message.Method + " " + last.Text
		}
		break
	}
	return "end " + at
}

// alsoBreaks lists what a requirement brought with it, for a report.
func (v *view) alsoBreaks(q *result.Requirement) []string {
	var ids []string
	for _, b := range v.reading.brought[q.ID] {
		id := line(b.ID, limitName)
		if o := v.outcome(b); o != v.outcome(q) {
			id += " (" + told[o].label + ")"
		}
		ids = append(ids, id)
	}
	return ids
}

// uncalledTools are tools that were not called for the same reason.
type uncalledTools struct {
	reason string
	tools  []string
}

// uncalledHelp says how a user allows calls of tools.
const uncalledHelp = "The behaviour of these tools was not judged. --call-tools all calls every tool; " +
	"toolRoles in mcpconform.yaml allows single ones, with arguments."

func (v *view) uncalled() []uncalledTools {
	var groups []uncalledTools
	for _, u := range v.Uncalled {
		reason, tool := line(u.Reason, limitMessage), line(u.Tool, limitName)
		i := slices.IndexFunc(groups, func(g uncalledTools) bool { return g.reason == reason })
		if i < 0 {
			i = len(groups)
			groups = append(groups, uncalledTools{reason: reason})
		}
		groups[i].tools = append(groups[i].tools, tool)
	}
	return groups
}

// words names the tools, at most so many, and says why they were not called.
func (g *uncalledTools) words(most int) string {
	n := len(g.tools)
	names := strings.Join(g.tools[:min(n, most)], ", ")
	if n > most {
		names += fmt.Sprintf(" and %d more", n-most)
	}
	return fmt.Sprintf("%d %s (%s): %s", n, plural(n, "tool", "tools"), g.reason, names)
}
