// Package judge holds the passive rules: pure functions over the trace of a
// connection that report, for each requirement and each side, how often it was
// exercised and every violation with the events that prove it. The same rules
// judge a server under test, a client under test, two peers through a proxy and
// a recorded trace, and the messages of mcpconform itself.
package judge

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Rule observes requirements on a conversation.
type Rule struct {
	Name string
	// Requirements that the rule may report on.
	Requirements []string
	Judge        func(c *Conversation, o *Observer)
}

// Violation is one broken requirement.
type Violation struct {
	Rule     string
	Message  string
	Mild     bool // warns, whatever the level
	Evidence []*wire.Event
}

// Observed is what the rules saw of one requirement on one side.
type Observed struct {
	Exercised  int
	Violations []Violation
	Omitted    int // violations beyond the bound
	Notes      []string
	// Broken says how a rule about the requirement failed to judge; "" if none did.
	Broken string
}

// Key names a requirement as it binds one side.
type Key struct {
	Requirement string
	Party       wire.Party
}

// Report holds what the rules observed.
type Report map[Key]*Observed

// Bounds of what is kept for one requirement.
const (
	maxViolations = 5
	maxNotes      = 5
	maxEvidence   = 10 // events of one violation: a peer can make them many
)

// Known is what messages alone do not tell of a target.
type Known struct {
	// Secrets and Personal are texts that are credentials, or that identify
	// persons. Empty ones are no texts.
	Secrets, Personal []string

	// Of all connections:
	listening    []listening
	slowestStart time.Duration
	levels       LogLevelsSet
}

// Observer collects what one rule reports.
type Observer struct {
	report Report
	rule   string
	known  Known
}

func (o *Observer) at(id string, p wire.Party) *Observed {
	k := Key{id, p}
	seen := o.report[k]
	if seen == nil {
		seen = &Observed{}
		o.report[k] = seen
	}
	return seen
}

// Exercised counts that a party met a requirement once.
func (o *Observer) Exercised(id string, p wire.Party) { o.at(id, p).Exercised++ }

// Violation records that a party broke a requirement, and counts it as
// exercised. The events are the proof, oldest first. What mcpconform declared
// as deliberate is no violation.
func (o *Observer) Violation(id string, p wire.Party, message string, events ...*wire.Event) {
	o.violation(id, p, Violation{Message: message, Evidence: events})
}

// Warning records a violation that only warns, whatever the level.
func (o *Observer) Warning(id string, p wire.Party, message string, events ...*wire.Event) {
	o.violation(id, p, Violation{Message: message, Mild: true, Evidence: events})
}

func (o *Observer) violation(id string, p wire.Party, v Violation) {
	for _, e := range v.Evidence {
		if e.From == p && (slices.Contains(e.Deliberate, id) || slices.Contains(e.Deliberate, Anything)) {
			return
		}
	}
	seen := o.at(id, p)
	seen.Exercised++
	if len(seen.Violations) >= maxViolations {
		seen.Omitted++
		i := seen.givesWay(v)
		if i < 0 {
			return
		}
		seen.Violations = slices.Delete(seen.Violations, i, i+1)
	}
	v.Rule, v.Evidence = o.rule, v.Evidence[:min(len(v.Evidence), maxEvidence)]
	seen.Violations = append(seen.Violations, v)
}

// givesWay returns which of the violations that are kept gives way to another one:
// what only warns to what decides the verdict, and what says the same as another
// to what says something new; -1 if none does.
func (seen *Observed) givesWay(v Violation) int {
	said := func(kept []Violation, message string) bool {
		return slices.ContainsFunc(kept, func(k Violation) bool { return k.Message == message })
	}
	news := !said(seen.Violations, v.Message)
	for i, k := range slices.Backward(seen.Violations) {
		if k.Mild && !v.Mild || k.Mild == v.Mild && news && said(seen.Violations[:i], k.Message) {
			return i
		}
	}
	return -1
}

// Anything declares an event as free to break any requirement.
const Anything = "*"

// Check is Exercised or Violation, as the condition says.
func (o *Observer) Check(ok bool, id string, p wire.Party, message string, events ...*wire.Event) {
	if ok {
		o.Exercised(id, p)
	} else {
		o.Violation(id, p, message, events...)
	}
}

// Note remarks something that no verdict depends on.
func (o *Observer) Note(id string, p wire.Party, text string) {
	seen := o.at(id, p)
	if len(seen.Notes) < maxNotes && !slices.Contains(seen.Notes, text) {
		seen.Notes = append(seen.Notes, text)
	}
}

// Rules returns all rules.
func Rules() []Rule {
	return slices.Concat(envelopeRules, exchangeRules, schemaRules, metaRules, lifecycleRules, stdioRules,
		utilityRules, samplingRules, rootRules, elicitationRules, toolRules, contentRules, resourceRules,
		promptRules, completionRules, loggingRules, httpRules, httpStreamRules, sseRules, authRules)
}

// Judge applies all rules to the connections of a trace.
func Judge(logs []*wire.Log) Report { return JudgeKnowing(logs, Known{}) }

// JudgeKnowing is Judge with what is known of the target besides.
func JudgeKnowing(logs []*wire.Log, known Known) Report {
	report := make(Report)
	rules := Rules()
	known.listening, known.slowestStart, known.levels = listeningTimes(logs), slowestStart(logs), LevelsSet(logs)
	for _, l := range logs {
		if l.Transport == transport.NameOAuth {
			continue // holds no messages of the protocol
		}
		c := NewConversation(l)
		for i := range rules {
			rules[i].judge(c, &Observer{report: report, rule: rules[i].Name, known: known})
		}
	}
	return report
}

// judge applies the rule. A panic is a fault of the harness, which costs what
// the rule would have told and no more.
func (r *Rule) judge(c *Conversation, o *Observer) {
	defer func() {
		if p := recover(); p != nil {
			for _, id := range r.Requirements {
				for _, party := range []wire.Party{wire.Client, wire.Server} {
					o.at(id, party).Broken = fmt.Sprintf("rule: %s: panic: %v\n%s", r.Name, p, debug.Stack())
				}
			}
		}
	}()
	r.Judge(c, o)
}
