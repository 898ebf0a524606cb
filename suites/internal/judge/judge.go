// Package judge holds the passive rules: pure functions over the trace of a
// connection. For each requirement and each side they record how often it was
// exercised, and every violation with the events that prove it. The same rules
// judge a server under test, a client under test, two peers through a proxy and
// a recorded trace, and the messages of mcpconform itself.
package judge

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// Rule observes requirements on a conversation.
type Rule struct {
	Name string
	// Requirements that the rule may report on.
	Requirements []schema.ID
	Judge        func(c *Conversation, rec *Recorder)
}

// over applies a rule to conversations over some transports.
func over(judge func(c *Conversation, rec *Recorder), transports ...string) func(c *Conversation, rec *Recorder) {
	return func(c *Conversation, rec *Recorder) {
		if slices.Contains(transports, c.Transport) {
			judge(c, rec)
		}
	}
}

// Report holds what the rules recorded, by requirement and party.
type Report = ledger.Record

// Key names a requirement as it binds one party.
type Key = ledger.Key

// Options say what the messages alone do not tell about a target.
type Options struct {
	// Secrets and Personal are texts that are credentials, or that identify
	// persons. Empty ones are ignored.
	Secrets, Personal []string
}

// Recorder records what one rule sees. It holds what is known of the target
// beyond the connection that is judged.
type Recorder struct {
	*ledger.Recorder
	options Options
	trace   traceFacts
}

// traceFacts is what all connections of a trace show together.
type traceFacts struct {
	listening    []listening
	slowestStart time.Duration
	levels       LogLevelsSet
	lives        []sessionLife
	validated    validated
}

// Anything declares an event as free to break any requirement.
const Anything = ledger.Anything

// Rules returns all rules on a revision.
func Rules(revision *schema.Revision) []Rule {
	return slices.Concat(envelopeRules, exchangeRules, schemaRules(revision), metaRules, lifecycleRules, stdioRules,
		utilityRules, rateRules, samplingRules, rootRules, elicitationRules, listRules, toolRules, contentRules,
		resourceRules,
		promptRules, completionRules, loggingRules, toleratedRules, httpRules, httpStreamRules, sseRules, authRules)
}

// Judge applies all rules of a revision to the connections of a trace.
func Judge(revision *schema.Revision, logs []*wire.Log, options Options) Report {
	report := make(Report)
	rules := Rules(revision)
	trace := traceFacts{listeningTimes(logs), slowestStart(logs), LevelsSet(logs), sessionLives(logs), make(validated)}
	for _, l := range logs {
		if l.Transport == transport.NameOAuth {
			continue // it holds no messages of the protocol
		}
		c, found := NewConversation(revision, l), make(Report)
		for i := range rules {
			rec := rules[i].recorder(revision, found)
			rec.options, rec.trace = options, trace
			rules[i].judge(c, rec)
		}
		if c.later() {
			// A message that is wrong in this revision may be right in theirs.
			maps.DeleteFunc(found, func(k Key, _ *ledger.Entry) bool {
				return !strings.HasPrefix(k.Requirement, "lifecycle.version.")
			})
		}
		report.Add(found)
	}
	return report
}

// recorder returns what the rule records with.
func (r *Rule) recorder(revision *schema.Revision, report Report) *Recorder {
	source := ledger.RulePrefix + r.Name
	return &Recorder{Recorder: &ledger.Recorder{Revision: revision, Record: report, Source: source}}
}

// judge applies the rule. A panic is a fault of the harness: it costs what this
// rule would have recorded, and nothing else.
func (r *Rule) judge(c *Conversation, rec *Recorder) {
	defer func() {
		if p := recover(); p != nil {
			for _, id := range r.Requirements {
				for _, party := range []wire.Party{wire.Client, wire.Server} {
					rec.Error(id, party, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
				}
			}
		}
	}()
	r.Judge(c, rec)
}
