package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// An askCase is a requirement with a conversation that meets it and one that
// does not. Lines begin with > for the client and < for the server.
type askCase struct {
	name      string
	id        string
	party     wire.Party
	caps      string // of the client; empty for all
	version   string // agreed on; empty for 2025-06-18
	good, bad string
	warnOnly  bool // the bad one only warns
}

const allOfClient = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`

func talk(t *testing.T, version, caps, lines string) judge.Report {
	t.Helper()
	handshake := fmt.Sprintf(`> {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":%[1]q,"capabilities":%[2]s,"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":%[1]q,"capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
`, version, caps)
	return judge.Judge(schema.Default(), []*wire.Log{record(t, handshake+lines)}, judge.Options{})
}

// record makes the log of a connection over stdio. A line of its own tells that
// the server has ended.
func record(t *testing.T, lines string) *wire.Log {
	t.Helper()
	l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", t.Name())
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		var e wire.Event
		switch {
		case line == "":
			continue
		case line == "exit":
			e = wire.Event{Kind: wire.KindExit, From: wire.Server, Exit: &wire.Exit{}}
		case line[0] == '>':
			e = wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: "stdin", Raw: []byte(line[2:])}
		default:
			e = wire.Event{Kind: wire.KindMessage, From: wire.Server, Stream: "stdout", Raw: []byte(line[2:])}
		}
		if _, err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	l.End()
	for i, e := range l.Events() {
		e.At = time.Duration(i) * 100 * time.Millisecond
	}
	return l
}

func (c askCase) run(t *testing.T) {
	caps, version := c.caps, c.version
	if caps == "" {
		caps = allOfClient
	}
	if version == "" {
		version = "2025-06-18"
	}
	key := judge.Key{Requirement: c.id, Party: c.party}
	if seen := talk(t, version, caps, c.good)[key]; seen == nil || seen.Exercised == 0 || len(seen.Findings) > 0 {
		t.Errorf("the good conversation gives %+v", seen)
	}
	seen := talk(t, version, caps, c.bad)[key]
	if q, _ := schema.Default().Lookup(c.id); q.Illustrative() {
		if seen == nil || len(seen.Findings) > 0 || len(seen.Notes) == 0 {
			t.Errorf("what differs from an example gives %+v", seen)
		}
		return
	}
	if seen == nil || len(seen.Findings) == 0 {
		t.Fatalf("the bad conversation gives %+v", seen)
	}
	if seen.Findings[0].WarnOnly != c.warnOnly || len(seen.Findings[0].Evidence) == 0 {
		t.Errorf("the violation is %+v", seen.Findings[0])
	}
}

func runAsk(t *testing.T, cases []askCase) {
	for _, c := range cases {
		t.Run(strings.TrimSpace(c.id+" "+c.name), c.run)
	}
}

// ask is a request of the server with its answer: a result, or an error if the
// text begins with its code.
func ask(method, params, answer string) string {
	return "< " + `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + "}\n" + reply(answer)
}

func reply(answer string) string {
	if answer[0] == '-' {
		return `> {"jsonrpc":"2.0","id":1,"error":{"code":` + answer + `,"message":"no"}}` + "\n"
	}
	return `> {"jsonrpc":"2.0","id":1,"result":` + answer + "}\n"
}

// within puts lines between a call of a tool and its result.
func within(lines string) string {
	return `> {"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"x"}}` + "\n" + lines +
		`< {"jsonrpc":"2.0","id":50,"result":{"content":[]}}` + "\n"
}

const (
	hello     = `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":2}`
	generated = `{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`
)

func TestSampling(t *testing.T) {
	sample := func(params, answer string) string { return ask("sampling/createMessage", params, answer) }
	prefer := func(p string) string {
		return sample(`{"messages":[],"maxTokens":2,"modelPreferences":{"costPriority":`+p+`}}`, generated)
	}
	image := func(data string) string {
		return `{"messages":[{"role":"user","content":{"type":"image","mimeType":"image/png","data":"` + data + `"}}],"maxTokens":2}`
	}
	result := func(content string) string { return `{"role":"assistant","model":"m","content":` + content + `}` }
	list := `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"maxTokens":2}`
	nested := sample(hello, generated)
	runAsk(t, []askCase{
		{id: "sampling.capability.honoured", party: wire.Client, good: nested, bad: sample(hello, "-32601")},
		{id: "lifecycle.capability.client-refuses-sampling", party: wire.Client, caps: `{}`, warnOnly: true, good: sample(hello, "-32601"), bad: sample(hello, "-32602")},
		{id: "sampling.message.content-kinds", party: wire.Server, good: nested, bad: sample(list, "-32602")},
		{id: "sampling.message.content-kinds", party: wire.Client, good: nested, bad: sample(hello, result(`{"type":"resource"}`))},
		{id: "sampling.preferences.priority-range", party: wire.Server, good: prefer("1.0"), bad: prefer("1.01")},
		{name: "negative", id: "sampling.preferences.priority-range", party: wire.Server, good: prefer("0"), bad: prefer("-0.5")},
		{
			id: "sampling.result.role-assistant", party: wire.Client, good: nested,
			bad: sample(hello, `{"role":"user","model":"m","content":{"type":"text","text":"hi"}}`),
		},
		{
			id: "sampling.result.model-named", party: wire.Client, good: nested,
			bad: sample(hello, `{"role":"assistant","model":"","content":{"type":"text","text":"hi"}}`),
		},
		{
			id: "sampling.max-tokens.limit", party: wire.Client, good: sample(hello, result(`{"type":"text","text":"one two three four"}`)),
			bad: sample(hello, result(`{"type":"text","text":"`+strings.Repeat("word ", 60)+`"}`)),
		},
		{
			id: "sampling.security.validate-content", party: wire.Client,
			good: sample(image("%%%"), "-32602"), bad: sample(image("%%%"), generated),
		},
	})
	honoured := judge.Key{Requirement: "sampling.capability.honoured", Party: wire.Client}
	shared := `< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":` + hello + `}` + "\n" + `< {"jsonrpc":"2.0","id":1,"method":"unknown"}` + "\n" +
		`> {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown"}}` + "\n" + `> {"jsonrpc":"2.0","id":1,"result":` + generated + "}\n"
	if seen := talk(t, "2025-06-18", allOfClient, shared)[honoured]; seen != nil && len(seen.Findings) > 0 {
		t.Errorf("a client is accused of what another request with the same id may have got: %+v", seen.Findings)
	}
	declared := judge.Key{Requirement: "sampling.capability.declared", Party: wire.Client}
	if seen := talk(t, "2025-06-18", `{}`, nested)[declared]; seen == nil || len(seen.Findings) == 0 {
		t.Error("a generation without the capability is no violation")
	}
	if seen := talk(t, "2025-06-18", allOfClient, nested)[declared]; seen == nil || len(seen.Findings) > 0 {
		t.Error("a generation with the capability is a violation")
	}
	key := judge.Key{Requirement: "sampling.request.nested", Party: wire.Client}
	if seen := talk(t, "2025-06-18", allOfClient, within(nested))[key]; seen == nil || seen.Exercised != 1 {
		t.Error("a nested request was not seen")
	}
	call, done, _ := strings.Cut(within(""), "\n")
	request, answer, _ := strings.Cut(nested, "\n")
	asked, while := call+"\n"+request+"\n", strings.Repeat(fence(70), 6)
	const cancelled = `< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n"
	for _, tt := range []struct {
		name, lines string
		held        bool
	}{
		{"answered when the call ends", asked + while + done + answer, true},
		{"answered long after it", asked + while + done + while + answer, false},
		{"cancelled, and answered when the call ends", asked + cancelled + while + done + answer, false},
	} {
		seen := talk(t, "2025-06-18", allOfClient, tt.lines)[key]
		if held := seen != nil && len(seen.Findings) == 1 && seen.Findings[0].WarnOnly; held != tt.held {
			t.Errorf("%s: a nested request waits for the end of the call: %t", tt.name, held)
		}
	}
	if seen := talk(t, "2025-06-18", allOfClient, within("")+nested)[key]; seen != nil {
		t.Error("a request by itself counts as nested")
	}
}

func TestRoots(t *testing.T) {
	list := func(roots string) string { return ask("roots/list", `{}`, `{"roots":[`+roots+`]}`) }
	one := list(`{"uri":"file:///a"}`)
	two := strings.ReplaceAll(list(`{"uri":"file:///b"}`), `"id":1`, `"id":2`)
	const changed = `> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` + "\n"
	// The second request is answered before the first.
	askOne, answerOne, _ := strings.Cut(one, "\n")
	later := strings.Repeat(fence(99), 6)
	three := func(order string) string { return strings.ReplaceAll(list(order), `"id":1`, `"id":3`) }
	overtaken := two + answerOne
	runAsk(t, []askCase{
		{id: "roots.list.answered", party: wire.Client, good: one, bad: ask("roots/list", `{}`, "-32601")},
		{name: "without list", id: "roots.list.answered", party: wire.Client, good: list(""), bad: ask("roots/list", `{}`, `{}`)},
		{id: "roots.root.file-uri", party: wire.Client, good: one, bad: list(`{"uri":"https://example.com/"}`)},
		{id: "roots.root.uri-unique", party: wire.Client, good: one, bad: list(`{"uri":"file:///a"},{"uri":"file:///a","name":"A"}`)},
		{id: "roots.security.validate-uris", party: wire.Client, good: list(`{"uri":"file:///a..b/..c"}`), bad: list(`{"uri":"file:///a/%2E%2e/b"}`)},
		{name: "backslash", id: "roots.security.validate-uris", party: wire.Client, good: list(`{"uri":"file:///home/a%5C..%5Cb"}`), bad: list(`{"uri":"file:///C:/a%5C..%5Cb"}`)},
		{id: "roots.list-changed.notify", party: wire.Client, good: one + changed + two + later, bad: one + two + later},
		{name: "late", id: "roots.list-changed.notify", party: wire.Client, good: one + two + later + changed, bad: changed + one + two + later},
		{
			name: "order", id: "roots.list-changed.notify", party: wire.Client,
			good: list(`{"uri":"file:///a"},{"uri":"file:///b","name":"B"}`) + three(`{"name":"B","uri":"file:///b"},{"uri":"file:///a"}`) + later + changed + two,
			bad:  list(`{"uri":"file:///a"},{"uri":"file:///b"}`) + three(`{"uri":"file:///b"}`) + later,
		},
		{
			name: "overtaken", id: "roots.list-changed.notify", party: wire.Client,
			good: askOne + "\n" + changed + overtaken + later, bad: changed + askOne + "\n" + overtaken + later,
		},
		{id: "roots.error.unsupported", party: wire.Client, caps: `{}`, good: ask("roots/list", `{}`, "-32601"), bad: ask("roots/list", `{}`, "-32603")},
	})
	key := judge.Key{Requirement: "roots.capability.declared", Party: wire.Client}
	if seen := talk(t, "2025-06-18", `{}`, one)[key]; seen == nil || len(seen.Findings) == 0 {
		t.Error("roots without the capability are no violation")
	}
	if seen := talk(t, "2025-06-18", allOfClient, one)[key]; seen == nil || len(seen.Findings) > 0 {
		t.Error("roots with the capability are a violation")
	}
}

func TestElicitation(t *testing.T) {
	schema := func(properties, required, answer string) string {
		return ask("elicitation/create", `{"message":"Who?","requestedSchema":{"type":"object","properties":{`+properties+`},"required":[`+required+`]}}`, answer)
	}
	property := func(p string) string { return schema(`"p":`+p, "", `{"action":"decline"}`) }
	fill := func(p, v string) string {
		return schema(`"p":`+p, `"p"`, `{"action":"accept","content":{"p":`+v+`}}`)
	}
	text := property(`{"type":"string","title":"T","minLength":1}`)
	matches := func(name, p, good, bad string) askCase {
		return askCase{name: name, id: "elicitation.content.matches-schema", party: wire.Client, good: fill(p, good), bad: fill(p, bad)}
	}
	runAsk(t, []askCase{
		{id: "elicitation.capability.honoured", party: wire.Client, good: text, bad: schema("", "", "-32601")},
		{id: "lifecycle.capability.client-refuses-elicitation", party: wire.Client, caps: `{}`, warnOnly: true, good: schema("", "", "-32601"), bad: schema("", "", "-32602")},
		{id: "elicitation.request.no-sensitive", party: wire.Server, warnOnly: true, good: schema(`"userName":{"type":"string"},"maxTokens":{"type":"integer"}`, "", `{"action":"cancel"}`), bad: schema(`"apiKey":{"type":"string"}`, "", `{"action":"cancel"}`)},
		{name: "title", id: "elicitation.request.no-sensitive", party: wire.Server, good: text, bad: property(`{"type":"string","title":"Your Password"}`)},
		{name: "description", id: "elicitation.request.no-sensitive", party: wire.Server, good: text, warnOnly: true, bad: property(`{"type":"string","description":"a credit card number"}`)},
		{id: "elicitation.schema.flat", party: wire.Server, good: text, bad: property(`{"type":"object","properties":{}}`)},
		{name: "array", id: "elicitation.schema.flat", party: wire.Server, good: text, bad: property(`{"type":"array","items":{"type":"string"}}`)},
		{id: "elicitation.schema.primitive-types", party: wire.Server, good: text, bad: property(`{"type":"null"}`)},
		{name: "missing", id: "elicitation.schema.primitive-types", party: wire.Server, good: text, bad: property(`{"title":"x"}`)},
		{id: "elicitation.schema.formats", party: wire.Server, good: property(`{"type":"string","format":"email"}`), bad: property(`{"type":"string","format":"ipv4"}`)},
		{id: "elicitation.schema.no-advanced", party: wire.Server, good: text, bad: property(`{"type":"string","pattern":"a+"}`)},
		{name: "harmless", id: "elicitation.schema.no-advanced", party: wire.Server, warnOnly: true, good: property(`{"type":"boolean","default":true}`), bad: property(`{"type":"string","examples":["a"]}`)},
		{id: "elicitation.schema.enum-names", party: wire.Server, good: property(`{"type":"string","enum":["a"],"enumNames":["A"]}`), bad: property(`{"type":"string","enum":["a","b"],"enumNames":["A"]}`)},
		{id: "elicitation.action.values", party: wire.Client, good: text, bad: schema("", "", `{"action":"reject"}`)},
		{id: "elicitation.content.with-accept", party: wire.Client, good: schema("", "", `{"action":"accept"}`), bad: schema(`"p":{"type":"string"}`, `"p"`, `{"action":"accept"}`)},
		{id: "elicitation.content.only-with-accept", party: wire.Client, good: text, bad: schema("", "", `{"action":"decline","content":{}}`)},
		{id: "elicitation.content.primitive-values", party: wire.Client, good: fill(`{"type":"number"}`, "1.5"), bad: fill(`{"type":"string"}`, "[]")},
		{id: "elicitation.schema.number-bounds", party: wire.Client, good: fill(`{"type":"number","minimum":0.5}`, "0.5"), bad: fill(`{"type":"number","minimum":0.5}`, "0.25")},
		{name: "refused", id: "elicitation.schema.number-bounds", party: wire.Client, good: fill(`{"type":"number","maximum":1.5}`, "1"), bad: schema(`"p":{"type":"number","maximum":1.5}`, "", "-32602")},
		{id: "elicitation.security.validate-content", party: wire.Client, good: fill(`{"type":"string"}`, `"x"`), bad: fill(`{"type":"string"}`, `7`)},
		matches("type", `{"type":"boolean"}`, "true", `"true"`),
		matches("integer", `{"type":"integer"}`, "2.0", "2.5"),
		matches("maximum", `{"type":"integer","maximum":3}`, "3", "4"),
		matches("length", `{"type":"string","minLength":2,"maxLength":3}`, `"äöü"`, `"ä"`),
		matches("enum", `{"type":"string","enum":["a","b"]}`, `"b"`, `"c"`),
		matches("email", `{"type":"string","format":"email"}`, `"a@example.com"`, `"A <a@example.com>"`),
		matches("quoted email", `{"type":"string","format":"email"}`, `"\"a b\"@example.com"`, `"a b@example.com"`),
		matches("uri", `{"type":"string","format":"uri"}`, `"https://example.com"`, `"example"`),
		matches("date", `{"type":"string","format":"date"}`, `"2024-02-29"`, `"2025-02-29"`),
		matches("date-time", `{"type":"string","format":"date-time"}`, `"2016-12-31t23:59:60z"`, `"2016-12-31 23:59"`),
		{
			name: "required", id: "elicitation.content.matches-schema", party: wire.Client, good: fill(`{"type":"string"}`, `"x"`),
			bad: schema(`"p":{"type":"string"}`, `"p"`, `{"action":"accept","content":{"q":"x"}}`),
		},
	})
	// A client that declines what it does not declare shows no form to anybody.
	accepts, declines := schema("", "", `{"action":"accept","content":{}}`), schema("", "", `{"action":"decline"}`)
	for _, test := range []struct {
		caps, answer      string
		declared, refused int
	}{
		{`{}`, accepts, 1, 0}, {allOfClient, accepts, 0, 0}, {`{}`, declines, 0, 0}, {allOfClient, declines, 0, 0},
	} {
		seen := talk(t, "2025-06-18", test.caps, test.answer)
		for id, want := range map[string]int{"elicitation.capability.declared": test.declared, "lifecycle.capability.client-refuses-elicitation": test.refused} {
			found := 0
			if e := seen[judge.Key{Requirement: id, Party: wire.Client}]; e != nil {
				found = len(e.Findings)
			}
			if found != want {
				t.Errorf("%s with %s, answered %s: %d findings, want %d", id, test.caps, test.answer, found, want)
			}
		}
	}
	if seen := talk(t, "2025-06-18", allOfClient, within(text))[judge.Key{Requirement: "elicitation.request.nested", Party: wire.Client}]; seen == nil {
		t.Error("a nested request was not seen")
	}
}

func TestNegotiatedFeatures(t *testing.T) {
	const pong = `> {"jsonrpc":"2.0","id":9,"method":"ping"}` + "\n" + `< {"jsonrpc":"2.0","id":9,"result":{}}` + "\n"
	elicits := ask("elicitation/create", `{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}`, `{"action":"cancel"}`)
	unknown := `< {"jsonrpc":"2.0","id":1,"method":"x/invented"}` + "\n" + reply("-32601")
	runAsk(t, []askCase{
		{id: "lifecycle.operation.version", party: wire.Server, version: "2025-03-26", caps: `{}`, good: pong, bad: elicits},
		{name: "declared", id: "lifecycle.operation.version", party: wire.Server, version: "2025-03-26", warnOnly: true, good: pong, bad: elicits},
		{id: "lifecycle.operation.version", party: wire.Client, good: pong, bad: `> {"jsonrpc":"2.0","id":9,"method":"tasks/list"}` + "\n"},
		{
			name: "member", id: "lifecycle.operation.version", party: wire.Client, warnOnly: true,
			good: `> {"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"x","hint":{}}}` + "\n",
			bad:  `> {"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"x","task":{}}}` + "\n",
		},
		{
			name: "decoration", id: "lifecycle.operation.version", party: wire.Server, warnOnly: true,
			good: `> {"jsonrpc":"2.0","id":9,"method":"tools/list"}` + "\n" + `< {"jsonrpc":"2.0","id":9,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"},"icons":[],"execution":{}}]}}` + "\n",
			bad:  ask("sampling/createMessage", strings.Replace(hello, `{`, `{"tools":[],`, 1), generated),
		},
		{id: "lifecycle.capability.experimental-gated", party: wire.Server, good: pong, bad: unknown},
		{id: "lifecycle.capability.experimental-gated", party: wire.Client, good: pong, bad: `> {"jsonrpc":"2.0","id":9,"method":"x/invented"}` + "\n"},
		{id: "lifecycle.shutdown.by-transport", party: wire.Server, good: pong + "exit", bad: `< {"jsonrpc":"2.0","method":"notifications/exit"}` + "\nexit"},
		{id: "schema.create-message-request", party: wire.Server, warnOnly: true, good: ask("sampling/createMessage", hello, generated), bad: ask("sampling/createMessage", strings.Replace(hello, `s":2`, `s":2.5`, 1), generated)},
		{id: "schema.subscribe-result", party: wire.Server, warnOnly: true, good: subscribed(`{}`), bad: subscribed(`{"ok":true}`)},
	})
}

func subscribed(result string) string {
	return `> {"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":"x:y"}}` + "\n" + `< {"jsonrpc":"2.0","id":9,"result":` + result + "}\n"
}

func TestHandshakeVersion(t *testing.T) {
	key := judge.Key{Requirement: "lifecycle.init.result-version", Party: wire.Server}
	const ask = `> {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	if seen := judge.Judge(schema.Default(), []*wire.Log{record(t, ask+`< {"jsonrpc":"2.0","id":"i","result":{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)}, judge.Options{})[key]; seen == nil || len(seen.Findings) != 1 {
		t.Errorf("a result without version gives %+v", seen)
	}
	if seen := talk(t, "2025-06-18", `{}`, "")[key]; seen == nil || seen.Exercised != 1 || len(seen.Findings) > 0 {
		t.Errorf("a result with version gives %+v", seen)
	}
}

// call is a call with a progress token, notify a notification of its progress,
// and fence a ping with its answer.
func call(id int, token string) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":%s}}}`+"\n", id, token)
}

func progressed(token, value string) string {
	return `< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":` + value + "}}\n"
}

func fence(id int) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%[1]d,"method":"ping"}`+"\n"+`< {"jsonrpc":"2.0","id":%[1]d,"result":{}}`+"\n", id)
}

func cancels(id int) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id)
}

func ended(id int) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`+"\n", id)
}

func failed(id int, message string) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","id":%d,"error":{"code":0,"message":%q}}`+"\n", id, message)
}

func TestProgress(t *testing.T) {
	long := `"` + strings.Repeat("x", 200)
	runAsk(t, []askCase{
		{id: "progress.token.echo", party: wire.Server, good: call(1, "7") + progressed("7", "1") + ended(1), bad: call(1, "7") + progressed(`"7"`, "1") + ended(1)},
		{id: "progress.token.active-request", party: wire.Server, good: call(1, `"a"`) + progressed(`"a"`, "1"), bad: call(1, `"a"`) + progressed(`"b"`, "1")},
		{name: "long", id: "progress.token.active-request", party: wire.Server, good: call(1, long+`a"`) + progressed(long+`a"`, "1"), bad: call(1, long+`a"`) + progressed(long+`b"`, "1")},
		{id: "progress.value-increases", party: wire.Server, good: call(1, "7") + progressed("7", "0.1") + progressed("7", "0.2"), bad: call(1, "7") + progressed("7", "1") + progressed("7", "1.0")},
		{id: "progress.stop", party: wire.Server, good: call(1, "7") + progressed("7", "1") + ended(1), bad: call(1, "7") + ended(1) + progressed("7", "1")},
		{id: "progress.token.unique", party: wire.Client, good: call(1, "7") + ended(1) + call(2, "7") + call(3, `"7"`), bad: call(1, "7") + call(2, "7") + ended(1)},
		{
			name: "cancelled", id: "progress.token.unique", party: wire.Client, good: call(1, "7") + cancels(1) + call(2, "7") + ended(1),
			bad: call(1, "7") + call(2, "7") + cancels(1) + ended(1),
		},
		{
			name: "refused without an id", id: "progress.token.unique", party: wire.Client,
			good: call(1, "7") + `< {"jsonrpc":"2.0","error":{"code":-32603,"message":"no"}}` + "\n" + call(2, "7"),
			bad:  call(1, "7") + `< {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"no"}}` + "\n" + call(2, "7"),
		},
		{
			name: "covered", id: "progress.token.unique", party: wire.Client, good: call(1, long+`a"`) + call(2, long+`b"`),
			bad: call(1, "7") + call(2, "7") + ended(2) + call(3, "7"),
		},
		{
			id: "progress.in-progress", party: wire.Server,
			good: call(1, "7") + progressed("7", "1") + cancels(1) + fence(3) + fence(4) + progressed("7", "3"),
			bad:  call(1, "7") + progressed("7", "1") + ended(1) + progressed("7", "3"),
		},
	})
}

func TestCancellation(t *testing.T) {
	runAsk(t, []askCase{
		{
			id: "cancellation.stop-processing", party: wire.Server,
			good: call(8, "8") + fence(9) + fence(10) + ended(8) + call(1, "7") + progressed("7", "1") + cancels(1) + progressed("7", "2") + fence(3) + fence(4),
			bad:  call(1, "7") + progressed("7", "1") + cancels(1) + fence(3) + fence(4) + progressed("7", "3"),
		},
		{
			id: "cancellation.no-response", party: wire.Server,
			good: call(1, "7") + cancels(1) + fence(3) + fence(4), bad: call(1, "7") + cancels(1) + fence(3) + fence(4) + ended(1),
		},
		{
			name: "told", id: "cancellation.no-response", party: wire.Server,
			good: call(1, "7") + cancels(1) + fence(3) + fence(4), bad: call(1, "7") + cancels(1) + failed(1, "Request cancelled"),
		},
		{id: "cancellation.same-direction", party: wire.Client, good: call(1, "7") + cancels(1), bad: call(1, "7") + cancels(2)},
	})
	meanwhile := ""
	for id := 30; id < 50; id++ {
		meanwhile += fence(id)
	}
	crossing := map[string]string{
		"done when cancelled":     call(1, "7") + meanwhile + cancels(1) + fence(3) + fence(4) + ended(1),
		"tool that was aborted":   call(1, "7") + cancels(1) + strings.Replace(ended(1), `"content":[`, `"isError":true,"content":[{"type":"text","text":"the transaction was aborted"}`, 1) + fence(3) + fence(4),
		"answer on its way":       call(1, "7") + cancels(1) + ended(1) + fence(3) + fence(4),
		"answer behind one fence": call(1, "7") + cancels(1) + fence(3) + ended(1) + fence(4),
		"failure of its own":      call(1, "7") + cancels(1) + failed(1, "disk full") + fence(3) + fence(4),
		"cancelled too late":      call(1, "7") + ended(1) + cancels(1) + fence(3) + fence(4),
		"ping of a busy machine":  "> " + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + cancels(1) + fence(3) + fence(4) + "< " + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n",
	}
	for name, lines := range crossing {
		seen := talk(t, "2025-06-18", allOfClient, lines)[judge.Key{Requirement: "cancellation.no-response", Party: wire.Server}]
		if seen != nil {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}
