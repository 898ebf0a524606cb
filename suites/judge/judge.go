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
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// Rule observes requirements on a conversation.
type Rule struct {
	Name string
	// Requirements that the rule may report on.
	Requirements []string
	Judge        func(c *Conversation, o *Observer)
}

// Report holds what the rules recorded, by requirement and party.
type Report = ledger.Record

// Key names a requirement as it binds one party.
type Key = ledger.Key

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

// Observer records what one rule sees.
type Observer struct {
	*ledger.Recorder
	known Known
}

// Exercised records that a party met a requirement once.
func (o *Observer) Exercised(id string, p wire.Party) { o.Pass(id, p) }

// Violation records that a party broke a requirement.
func (o *Observer) Violation(id string, p wire.Party, message string, events ...*wire.Event) {
	o.Fail(id, p, message, events...)
}

// Warning records a violation that only warns, whatever the level.
func (o *Observer) Warning(id string, p wire.Party, message string, events ...*wire.Event) {
	o.Warn(id, p, message, events...)
}

// Anything declares an event as free to break any requirement.
const Anything = ledger.Anything

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
			rules[i].judge(c, rules[i].observer(report, known))
		}
	}
	return report
}

// observer returns what the rule records with.
func (r *Rule) observer(report Report, known Known) *Observer {
	return &Observer{Recorder: &ledger.Recorder{Record: report, Source: "rule: " + r.Name}, known: known}
}

// judge applies the rule. A panic is a fault of the harness, which costs what
// the rule would have told and no more.
func (r *Rule) judge(c *Conversation, o *Observer) {
	defer func() {
		if p := recover(); p != nil {
			for _, id := range r.Requirements {
				for _, party := range []wire.Party{wire.Client, wire.Server} {
					o.Error(id, party, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
				}
			}
		}
	}()
	r.Judge(c, o)
}
