package suites_test

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// recorded returns the connections of runs against the reference server, over
// each transport.
var recorded = sync.OnceValues(func() ([]*wire.Log, error) {
	var logs []*wire.Log
	for _, over := range transports {
		dialer, stop, err := serve(context.Background(), over, serverOptions())
		if err != nil {
			return nil, err
		}
		_, trace, err := suites.Run(context.Background(), suites.ServerChecks{Dialer: dialer, Settings: check.Settings{CallTools: check.CallAll}}, suites.Options{Timeout: 10 * time.Second})
		stop()
		if err != nil {
			return nil, err
		}
		logs = append(logs, trace.Logs()...)
	}
	return logs, nil
})

// FuzzJudge gives the judge what no implementation has sent yet: a recorded
// connection in which something was changed, left out, repeated or moved. Any
// peer can send that, and whoever wrote a trace by hand; no rule may fail on it.
func FuzzJudge(f *testing.F) {
	if brief.Race {
		f.Skip("a judge is alone with its log, so that there is nothing to race for")
	}
	logs, err := recorded()
	if err != nil {
		f.Fatal(err)
	}
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		f.Add(seed, uint8(seed%8))
	}
	f.Fuzz(func(t *testing.T, seed uint64, changes uint8) {
		m := mutator{rand.New(rand.NewPCG(seed, 0))}
		original := logs[m.IntN(len(logs))]
		events := slices.Clone(original.Events())
		for range changes {
			events = m.change(events)
		}
		log := wire.NewTrace(wire.DefaultLimits).Connect(original.Transport, original.Label)
		for _, e := range events {
			if !e.Member {
				changed := *e
				changed.Msg = nil
				if _, err := log.Append(changed); err != nil {
					t.Fatal(err)
				}
			}
		}
		log.End()
		judge.Judge(schema.Default(), []*wire.Log{log}, judge.Options{})
	})
}

// mutator makes changes by chance.
type mutator struct{ *rand.Rand }

// change makes one change to the order of the events, or to one of them.
func (m mutator) change(events []*wire.Event) []*wire.Event {
	if len(events) == 0 {
		return events
	}
	i, j := m.IntN(len(events)), m.IntN(len(events))
	switch m.IntN(8) {
	case 0:
		return slices.Delete(events, i, i+1)
	case 1:
		return slices.Insert(events, j, events[i])
	case 2:
		events[i], events[j] = events[j], events[i]
	case 3:
		return events[:i]
	default:
		events[i] = m.event(*events[i])
	}
	return events
}

func (m mutator) event(e wire.Event) *wire.Event {
	switch choice := m.IntN(12); {
	case choice == 0:
		e.From = e.From.Peer()
	case choice == 1:
		e.Stream = []string{"", "post:1", "get:1", transport.Stdout}[m.IntN(4)]
	case choice == 2 && len(e.Raw) > 0:
		e.Raw = e.Raw[:m.IntN(len(e.Raw))]
	case choice == 3 && e.HTTP != nil:
		head := *e.HTTP
		head.Status = []int{0, 200, 202, 400, 401, 404, 500}[m.IntN(7)]
		e.HTTP = &head
	case choice == 4 && e.HTTP != nil:
		head := *e.HTTP
		head.Header = maps.Clone(head.Header)
		for name := range head.Header {
			head.Header[name] = [][]string{nil, {""}, {"a", "b"}, {"\xff"}}[m.IntN(4)]
		}
		e.HTTP = &head
	case choice == 5 && e.SSE != nil:
		fields := *e.SSE
		fields.ID, fields.HasID, fields.Event = "1", !fields.HasID, []string{"", "endpoint", "message"}[m.IntN(3)]
		e.SSE = &fields
	case e.Msg != nil && e.Msg.Value() != nil:
		e.Raw = client.Marshal(m.value(e.Msg.Value()))
	}
	return &e
}

// odd are values that are rarely where they belong.
var odd = []any{
	nil, true, "", "x", "\u2028\x00", json.Number("-0"), json.Number("1.5"), json.Number("1e999"), json.Number("-9223372036854775809"),
	[]any{}, []any{nil}, []any{[]any{}}, map[string]any{}, map[string]any{"": map[string]any{"_meta": 1}},
	map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#"}}}, "(", "data:,", "2025-06-18",
}

// value returns a copy of v with a change somewhere below it.
func (m mutator) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || m.IntN(6) == 0 {
			break
		}
		changed := maps.Clone(v)
		names := slices.Sorted(maps.Keys(v))
		name := names[m.IntN(len(names))]
		switch m.IntN(8) {
		case 0:
			delete(changed, name)
		case 1:
			changed[names[m.IntN(len(names))]] = v[name]
		default:
			changed[name] = m.value(v[name])
		}
		return changed
	case []any:
		if len(v) == 0 || m.IntN(6) == 0 {
			break
		}
		changed := slices.Clone(v)
		i := m.IntN(len(v))
		changed[i] = m.value(v[i])
		return changed
	}
	return odd[m.IntN(len(odd))]
}
