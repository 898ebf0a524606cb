package judge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/internal/proof/brief"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// TestFloodsAreJudged tests floods by which a peer could keep the judge busy. Each line of a flood may cost no more
// than a fixed amount of work: a rule that looks at all other lines for each line would take hours for a hundred
// thousand of them. The test finds a judge that never ends. BenchmarkFlood measures the cost of a line.
func TestFloodsAreJudged(t *testing.T) {
	for name, line := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounded(t, flood(t, line))
		})
	}
}

func BenchmarkFlood(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(floods)) {
		b.Run(name, func(b *testing.B) { judging(b, flood(b, floods[name]), floodLines()) })
	}
}

// floodLines is how many lines a flood has: enough for work that grows with
// their square to be noticed, and fewer where the tests are to be brief.
func floodLines() int {
	if !brief.Each() {
		return 10_000
	}
	return 100_000
}

func flood(t testing.TB, line func(i int) string) *wire.Log {
	return reopened(t, conversation(t, ping), floodLines(), line)
}

// bounded judges a log and looks at what is kept of it.
func bounded(t *testing.T, l *wire.Log) {
	t.Helper()
	kept := 0
	for _, seen := range judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{}) {
		kept += len(seen.Findings)
	}
	if kept > 200 {
		t.Errorf("%d violations are kept", kept)
	}
}

// judging measures what the judge takes for a log, and for each of its parts.
func judging(b *testing.B, l *wire.Log, parts int) {
	for b.Loop() {
		judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(parts), "ns/part")
}

var floods = map[string]func(i int) string{
	"garbage":              func(int) string { return "}garbage" },
	"blank":                func(int) string { return "" },
	"open braces":          func(int) string { return `{"a":[` },
	"pieces":               func(int) string { return `{"a": "` + strings.Repeat("x", 500) + `", ` },
	"strays":               func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i+1000) },
	"string strays":        func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","result":{}}`, i) },
	"errors without id":    func(int) string { return `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}` },
	"results without id":   func(int) string { return `{"jsonrpc":"2.0","result":{}}` },
	"answers to one":       func(int) string { return `{"jsonrpc":"2.0","id":"i","result":{}}` },
	"requests":             func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i) },
	"requests with one id": func(int) string { return `{"jsonrpc":"2.0","id":1,"method":"ping"}` },
	"requests with a token": func(int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1}}}`
	},
	"requests with tokens": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"progressToken":%d}}}`, i, i)
	},
	"progress of nothing": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, i)
	},
	"cancelled": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i)
	},
	"requests and cancelled": func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i/2*2)
	},
	"requests and strays": func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i)
		}
		return `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`
	},
	"log messages": func(int) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	},
	"updates": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:%d"}}`, i)
	},
	"list changes": func(int) string { return `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` },
	"roots":        func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i) },
	"elicitations": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`, i)
	},
	"samplings": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}}`, i)
	},
	"unknown calls": func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%d"}`, i) },
	"meta": func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"_meta":{"/%d":1}}}`, i, i)
	},
}

// reopened returns a new log with the same messages and then a flood, to every
// tenth line of which the client has an answer if it is a request.
func reopened(t testing.TB, l *wire.Log, lines int, line func(int) string) *wire.Log {
	t.Helper()
	out := wire.NewTrace(wire.Limits{Message: 1 << 20, Total: 1 << 40, Events: 1 << 30}).Connect("stdio", l.Label)
	for _, e := range l.Events() {
		_, _ = out.Append(wire.Event{Kind: e.Kind, From: e.From, Stream: e.Stream, Raw: e.Raw})
	}
	for i := range lines {
		e, err := out.Append(wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(line(i))})
		if err != nil {
			t.Fatal(err)
		}
		if e.Msg.Kind == wire.Request && i%10 == 0 {
			_, _ = out.Append(wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: "stdin",
				Raw: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, e.Msg.ID)})
		}
	}
	out.End()
	return out
}

// One message can be as bad as many.
func TestLargeMessagesAreJudged(t *testing.T) {
	for name, lines := range largeMessages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounded(t, conversation(t, lines))
		})
	}
}

func BenchmarkLargeMessage(b *testing.B) {
	messages := largeMessages()
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		b.Run(name, func(b *testing.B) { judging(b, conversation(b, messages[name]), len(messages[name])) })
	}
}

func largeMessages() map[string]string {
	many := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	var distinct, large, keys []string
	for i := range floodLines() / 5 {
		distinct = append(distinct, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}`, i))
	}
	for i := range 20 {
		var properties []string
		for j := range floodLines() / 16 {
			properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string","title":"%d"}`, j, i))
		}
		large = append(large, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object","properties":{%s}}}`, i, strings.Join(properties, ",")))
	}
	for i := range floodLines() {
		keys = append(keys, fmt.Sprintf(`"a/b/%d":1`, i))
	}
	return map[string]string{
		"tools":          exchange(1, "tools/list", `{}`, `{"tools":[`+strings.Join(distinct, ",")+`]}`),
		"large schemas":  exchange(1, "tools/list", `{}`, `{"tools":[`+strings.Join(large, ",")+`]}`),
		"equal tools":    exchange(1, "tools/list", `{}`, `{"tools":[`+many(`{"name":"t","inputSchema":{"type":"object"}}`, floodLines()/2)+`]}`),
		"copies":         exchange(1, "tools/call", `{"name":"t"}`, `{"content":[`+many(`{"type":"text","text":"1"}`, floodLines()/2)+`],"structuredContent":{"a":[`+many(`"x"`, floodLines())+`]}}`),
		"embedded":       exchange(1, "tools/call", `{"name":"t"}`, `{"content":[`+many(`{"type":"resource","resource":{"uri":"x:y","text":""}}`, floodLines()/2)+`]}`),
		"broken content": exchange(1, "tools/call", `{"name":"t"}`, `{"content":[`+many(`{"type":"x"}`, floodLines())+`]}`),
		"batch":          "< [" + many(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, floodLines()/2) + "]\n",
		"meta":           "< " + `{"jsonrpc":"2.0","id":"p","result":{"_meta":{` + strings.Join(keys, ",") + "}}}\n",
		"duplicates":     "< " + `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{` + many(`"x":1`, floodLines()) + "}}}\n",
	}
}

// result1kB is an answer to tools/list of about 1 kB, the one that schema
// measures its validation with.
const result1kB = `{"tools":[{"name":"forecast","title":"Weather forecast","description":"Forecast for one place over some days","inputSchema":{"type":"object","properties":{"place":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["place"]},"outputSchema":{"type":"object","properties":{"celsius":{"type":"number"},"rain":{"type":"boolean"}},"required":["celsius"]},"annotations":{"readOnlyHint":true,"openWorldHint":true}},{"name":"search","description":"Full text search in the documents of the workspace","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}},{"name":"delete","description":"Deletes one document for good","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},"annotations":{"destructiveHint":true,"idempotentHint":true}}],"nextCursor":"b2Zmc2V0PTIw","_meta":{"example.org/page":1}}`

// BenchmarkJudge1kB decodes and judges exchanges with an answer of 1 kB;
// BenchmarkValidate1kB only decodes the answers with the standard library and
// validates them. The figures are for one exchange.
func BenchmarkJudge1kB(b *testing.B) {
	const exchanges = 100
	b.ReportAllocs()
	for b.Loop() {
		l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", "")
		add := func(p wire.Party, raw string) {
			if _, err := l.Append(wire.Event{Kind: wire.KindMessage, From: p, Stream: "stdin", Raw: []byte(raw)}); err != nil {
				b.Fatal(err)
			}
		}
		for line := range strings.Lines(allDeclared) {
			add(map[byte]wire.Party{'>': wire.Client, '<': wire.Server}[line[0]], line[2:])
		}
		for i := range exchanges {
			add(wire.Client, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{}}`, i))
			add(wire.Server, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i, result1kB))
		}
		if r := judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{}); len(found(r, false)) > 0 {
			b.Fatal(found(r, false))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*exchanges), "µs/exchange")
}

func BenchmarkValidate1kB(b *testing.B) {
	r := schema.Default()
	raw := []byte(`{"jsonrpc":"2.0","id":1,"result":` + result1kB + `}`)
	b.ReportAllocs()
	for b.Loop() {
		var m map[string]any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&m); err != nil {
			b.Fatal(err)
		}
		if got := r.Validate("ListToolsResult", m["result"]); got != nil {
			b.Fatal(got)
		}
	}
}
