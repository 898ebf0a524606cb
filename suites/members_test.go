package suites_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/internal/proof/members"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// A sample is a message of a recorded connection, with the definition of what it holds.
type sample struct {
	log        *wire.Log
	at         int  // among the events
	spoilt     bool // something before it is broken on purpose
	member     string
	definition string
}

// TestEachMemberIsJudged breaks each member of each kind of message that the definitions describe, and wants the
// rules to accuse who sent it. What breaks is derived from the definitions; the messages are those of runs against the
// reference server, in which the requests are those of a client.
func TestEachMemberIsJudged(t *testing.T) {
	if testing.Short() || brief.Race {
		t.Skip("left out: it judges hundreds of conversations, one after the other")
	}
	logs, err := recorded()
	if err != nil {
		t.Fatal(err)
	}
	revision := schema.Default()
	tried, samples := 0, samplesOf(revision, logs)
	for _, name := range kinds() {
		if s, ok := samples[name]; ok {
			tried += s.tryMembers(t, name, revision)
		} else {
			t.Errorf("no run has a valid message of the kind: %s", name)
		}
	}
	t.Logf("%d messages were derived", tried)
}

// kinds lists all kinds of messages that the definitions describe, as samplesOf names them.
func kinds() (names []string) {
	for _, p := range []schema.Party{schema.Client, schema.Server} {
		other := map[schema.Party]string{schema.Client: "server", schema.Server: "client"}[p]
		for _, method := range schema.Default().Methods(p) {
			names = append(names, string(p)+" asks "+method, other+" answers "+method)
		}
		for _, method := range schema.Default().NotificationMethods(p) {
			names = append(names, string(p)+" tells "+method)
		}
	}
	return names
}

// tryMembers breaks each member of a sample, and returns how many messages that made.
func (s sample) tryMembers(t *testing.T, name string, revision *schema.Revision) (tried int) {
	e := s.log.Events()[s.at]
	value, before := e.Msg.Value().(map[string]any), s.found(t, e.Raw)
	holder := value
	if s.member != "" {
		holder = value[s.member].(map[string]any)
	}
	for _, b := range members.Broken(revision, s.definition, holder) {
		tried++
		broken := b.Message
		if s.member != "" {
			broken = members.Copied(value)
			broken[s.member] = b.Message
		}
		raw, err := json.Marshal(broken)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.found(t, raw), func(id string) bool { return !slices.Contains(before, id) }) {
			t.Errorf("%s: the member %s is %s, and the %s is accused of nothing: %.300s", name, b.Member, b.How, e.From,
				raw)
		}
	}
	return tried
}

// samplesOf returns for each kind of message the one with the fewest events before it, and with none that is broken on
// purpose if there is one: what that breaks would not be found anew.
func samplesOf(r *schema.Revision, logs []*wire.Log) map[string]sample {
	samples := make(map[string]sample)
	for _, l := range logs {
		spoilt := false
		for i, e := range l.Events() {
			spoilt = spoilt || len(e.Deliberate) > 0
			if e.Kind != wire.KindMessage || e.Member || len(e.Msg.Issues) > 0 {
				continue
			}
			s, name := sample{log: l, at: i, spoilt: spoilt}, ""
			switch e.Msg.Kind {
			case wire.Request:
				name = string(e.From) + " asks " + e.Msg.Method
				s.definition, _ = r.Request(schema.Party(e.From), e.Msg.Method)
			case wire.Notification:
				name = string(e.From) + " tells " + e.Msg.Method
				s.definition, _ = r.Notification(schema.Party(e.From), e.Msg.Method)
			case wire.Result:
				if asked := l.RequestOf(e); asked != nil {
					name, s.member = string(e.From)+" answers "+asked.Msg.Method, "result"
					s.definition, _ = r.Result(asked.Msg.Method)
				}
			}
			before, known := samples[name]
			better := !known || before.spoilt && !s.spoilt || before.spoilt == s.spoilt && s.at < before.at
			if better && s.definition != "" && s.valid(r) {
				samples[name] = s
			}
		}
	}
	return samples
}

// valid reports whether a sample follows its definition.
func (s sample) valid(r *schema.Revision) bool {
	value := s.log.Events()[s.at].Msg.Value()
	if s.member != "" {
		value = wire.At(value, s.member)
	}
	return len(r.Validate(s.definition, value)) == 0
}

// found returns what the rules find on the party that sent a sample, if it has sent these bytes.
func (s sample) found(t *testing.T, raw []byte) (ids []string) {
	t.Helper()
	log := wire.NewTrace(wire.DefaultLimits).Connect(s.log.Transport, s.log.Label)
	events := s.log.Events()
	for i, e := range events[:s.at+1] {
		if e.Member {
			continue
		}
		changed := *e
		changed.Msg = nil
		if i == s.at {
			changed.Raw = raw
		}
		if _, err := log.Append(changed); err != nil {
			t.Fatal(err)
		}
	}
	log.End()
	for key, entry := range judge.Judge(schema.Default(), []*wire.Log{log}, judge.Options{}) {
		if key.Party == events[s.at].From && len(entry.Findings) > 0 {
			ids = append(ids, key.Requirement)
		}
	}
	return ids
}
