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

// A featureCase is a requirement with a conversation that meets it and one
// that does not. Lines begin with > for the client and < for the server.
type featureCase struct {
	id        string
	party     wire.Party
	good, bad string
	// silent says that the bad conversation breaks nothing but shows nothing either.
	silent bool
}

const allDeclared = `> {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}},"serverInfo":{"name":"s","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
`

// passes is a line at which time passes, which tests in virtual time use.
const passes = "~\n"

// conversation makes the log of a connection after a handshake.
func conversation(t testing.TB, lines string) *wire.Log {
	t.Helper()
	l := wire.NewTrace(wire.DefaultLimits).Connect("stdio", t.Name())
	for line := range strings.Lines(allDeclared + lines) {
		if line == passes {
			time.Sleep(judge.Crossing)
		}
		raw, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
		e := wire.Event{Kind: wire.KindMessage, From: wire.Client, Stream: "stdin", Raw: []byte(raw)}
		if !ok {
			if raw, ok = strings.CutPrefix(raw, "< "); !ok {
				continue
			}
			e.From, e.Stream, e.Raw = wire.Server, "stdout", []byte(raw)
		}
		if _, err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	l.End()
	return l
}

// The lines of one exchange, and of notifications.
func exchange(id int, method, params, result string) string {
	return request(id, method, params) + answer(id, result)
}

func request(id int, method, params string) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
}

func answer(id int, result string) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", id, result)
}

func notice(method, params string) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","method":%q,"params":%s}`+"\n", method, params)
}

const ping = `> {"jsonrpc":"2.0","id":"p","method":"ping"}
< {"jsonrpc":"2.0","id":"p","result":{}}
`

func runFeatureCases(t *testing.T, cases []featureCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			k := judge.Key{Requirement: c.id, Party: c.party}
			good := judge.Judge(schema.Default(), []*wire.Log{conversation(t, c.good)}, judge.Options{})[k]
			if good == nil || good.Exercised == 0 {
				t.Error("the good conversation does not exercise it")
			} else if len(good.Findings) > 0 {
				t.Errorf("the good conversation breaks it: %s", good.Findings[0].Message)
			}
			bad := judge.Judge(schema.Default(), []*wire.Log{conversation(t, c.bad)}, judge.Options{})[k]
			switch {
			case c.silent && bad != nil && (bad.Exercised > 0 || len(bad.Findings) > 0):
				t.Errorf("the other conversation shows something: %+v", bad)
			case !c.silent && (bad == nil || len(bad.Findings) == 0):
				t.Error("the bad conversation does not break it")
			}
		})
	}
}

// callResult is an exchange of tools/call with these blocks.
func callResult(blocks string) string {
	return exchange(1, "tools/call", `{"name":"t"}`, `{"content":[`+blocks+`]}`)
}

// promptOf is an exchange of prompts/get with one message.
func promptOf(block string) string {
	return exchange(1, "prompts/get", `{"name":"p"}`, `{"messages":[{"role":"user","content":`+block+`}]}`)
}

func embedded(members string) string { return `{"type":"resource","resource":{` + members + `}}` }

func annotated(annotations string) string {
	return callResult(`{"type":"text","text":"x","annotations":{` + annotations + `}}`)
}

func TestContent(t *testing.T) {
	var cases []featureCase
	for _, kind := range []string{"image", "audio"} {
		block := func(data, mimeType string) string {
			return callResult(fmt.Sprintf(`{"type":%q,"data":%q,"mimeType":%q}`, kind, data, mimeType))
		}
		cases = append(cases,
			featureCase{id: "content." + kind + ".base64", party: wire.Server, good: block("AAE=", "a/b"), bad: block("AA-E", "a/b")},
			featureCase{id: "content." + kind + ".mime-type", party: wire.Server, good: block("", `x-y/z+w; a="b c"`), bad: block("", "png")},
		)
	}
	sampled := func(block string) string {
		return `< {"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"?"}}]}}` + "\n" +
			`> {"jsonrpc":"2.0","id":9,"result":{"role":"assistant","model":"m","content":` + block + `}}` + "\n"
	}
	runFeatureCases(t, append(cases,
		featureCase{
			id: "content.image.base64", party: wire.Client,
			good: sampled(`{"type":"image","data":"AAAA","mimeType":"image/png"}`), bad: sampled(`{"type":"image","data":"%","mimeType":"image/png"}`),
		},
		featureCase{
			id: "content.block.known-type", party: wire.Server,
			good: callResult(`{"type":"text","text":""}`), bad: callResult(`{"type":"video","data":""}`),
		},
		featureCase{
			id: "content.embedded.uri-valid", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","text":""`)), bad: callResult(embedded(`"uri":"/a","text":""`)),
		},
		featureCase{
			id: "content.embedded.mime-type-present", party: wire.Server,
			good: promptOf(embedded(`"uri":"a:b","text":"","mimeType":"text/plain"`)), bad: promptOf(embedded(`"uri":"a:b","text":""`)),
		},
		featureCase{
			id: "resources.contents.text-or-blob", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","text":""`)), bad: callResult(embedded(`"uri":"a:b","text":"","blob":""`)),
		},
		featureCase{
			id: "resources.security.binary-encoded", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","blob":"AAE="`)), bad: callResult(embedded(`"uri":"a:b","blob":"AAE"`)),
		},
		featureCase{
			id: "resources.security.binary-encoded", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","blob":"AAE="`)) + callResult(embedded(`"uri":"a:b","mimeType":"image/svg+xml","text":"\ufffd"`)),
			bad:  callResult(embedded(`"uri":"a:b","mimeType":"Image/PNG","text":"\ufffdPNG"`)),
		},
		featureCase{
			id: "content.annotations.audience-roles", party: wire.Server,
			good: annotated(`"audience":["user"]`), bad: annotated(`"audience":["system"]`),
		},
		featureCase{
			id: "content.annotations.audience-roles", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","text":"","annotations":{"audience":["user"]}`)), bad: callResult(embedded(`"uri":"a:b","text":"","annotations":{"audience":["system"]}`)),
		},
		featureCase{
			id: "content.annotations.priority-range", party: wire.Server,
			good: callResult(embedded(`"uri":"a:b","text":"","annotations":{"priority":1}`)), bad: callResult(embedded(`"uri":"a:b","text":"","annotations":{"priority":2}`)),
		},
		featureCase{
			id: "content.image.mime-type", party: wire.Server,
			good: callResult(`{"type":"image","data":"AAAA","mimeType":"application/octet-stream"}`), bad: callResult(`{"type":"image","data":"AAAA","mimeType":"text/plain"}`),
		},
		featureCase{
			id: "schema.call-tool-result", party: wire.Server,
			good: callResult(`{"type":"image","data":"","mimeType":"image/png"}`), bad: callResult(`{"type":"image","mimeType":"image/png"}`),
		},
		featureCase{
			id: "content.annotations.priority-range", party: wire.Server,
			good: annotated(`"priority":0.5`), bad: annotated(`"priority":1.5`),
		},
		featureCase{
			id: "content.annotations.last-modified-format", party: wire.Server,
			good: annotated(`"lastModified":"2025-01-12T15:00:58Z"`), bad: annotated(`"lastModified":"yesterday"`),
		},
		featureCase{
			id: "content.annotations.optional", party: wire.Client, silent: true,
			good: annotated(`"priority":0.5`) + ping, bad: annotated(`"priority":0.5`),
		},
		featureCase{
			id: "content.annotations.audience-several", party: wire.Client, silent: true,
			good: annotated(`"audience":["user","assistant"]`) + ping, bad: annotated(`"audience":["user"]`) + ping,
		},
	))
}

// TestContentMadeByClient tests content that is not the server's fault: a URI that the client chose as an argument,
// and the results of requests that were broken on purpose.
func TestContentMadeByClient(t *testing.T) {
	block := `{"messages":[{"role":"user","content":` + embedded(`"uri":"mine","text":"","mimeType":"a/b"`) + `}]}`
	l := conversation(t, exchange(1, "prompts/get", `{"name":"p","arguments":{"uri":"mine"}}`, block))
	if seen := judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{})[judge.Key{Requirement: "content.embedded.uri-valid", Party: wire.Server}]; seen != nil {
		t.Errorf("the client's own URI was judged: %+v", seen)
	}
}

func TestISO8601(t *testing.T) {
	const id = "content.annotations.last-modified-format"
	for text, ok := range map[string]bool{
		"2025": true, "2025-01": true, "2025-01-12": true, "20250112": true, "2025-W03-1": true, "2025-012": true,
		"20250112T150058Z": true, "2025-01-12T15:00": true, "2025-01-12T15:00:58.123+02:00": true, "2025-01-12T24:00:00Z": true,
		"": false, "2025-13-01": false, "2025-01-32": false, "2025-01-12 15:00:58": false, "2025-01-12T25:00": false,
		"12.1.2025": false, "Sun, 12 Jan 2025 15:00:58 GMT": false, "1736694058": false,
	} {
		l := conversation(t, annotated(fmt.Sprintf(`"lastModified":%q`, text)))
		seen := judge.Judge(schema.Default(), []*wire.Log{l}, judge.Options{})[judge.Key{Requirement: id, Party: wire.Server}]
		if seen == nil || (len(seen.Findings) == 0) != ok {
			t.Errorf("%q: accepted is %v, want %v", text, !ok, ok)
		}
	}
}

func TestToolsTolerated(t *testing.T) {
	call := func(content, rest string) string {
		return exchange(1, "tools/call", `{"name":"t"}`, `{"content":[`+content+`]`+rest+`}`)
	}
	text := `{"type":"text","text":"x"}`
	link := `{"type":"resource_link","uri":"a:b","name":"b"}`
	list := func(uri string) string {
		return exchange(2, "resources/list", `{}`, `{"resources":[{"uri":"`+uri+`","name":"n"}]}`)
	}
	changed := `< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
	tools := func(rest string) string {
		return exchange(3, "tools/list", `{}`, `{"tools":[{"name":"t","inputSchema":{"type":"object"}`+rest+`}]}`)
	}
	var cases []featureCase
	for _, c := range []struct{ id, good, bad string }{
		{"tools.result.structured-or-unstructured", call("", `,"structuredContent":{}`) + ping, call("", `,"structuredContent":{}`)},
		{"tools.result.mixed-content", call(text+","+link, "") + ping, call(text+","+text, "") + ping},
		{"tools.result.resource-links", call(link, "") + ping, call(text, "") + ping},
		{"tools.result.image", call(`{"type":"image","data":"","mimeType":"image/png"}`, "") + ping, call(link, "") + ping},
		{"tools.result.audio", call(`{"type":"audio","data":"","mimeType":"audio/wav"}`, "") + ping, call(link, "") + ping},
		{"tools.result.embedded-resources", call(embedded(`"uri":"a:b","text":""`), "") + ping, call(link, "") + ping},
		{"tools.resource-link.unlisted", call(link, "") + list("a:c"), call(link, "") + list("a:b") + ping},
		{"tools.output-schema.optional", tools(`,"outputSchema":{"type":"object"}`) + ping, tools("") + ping},
		{"tools.list-changed.unsolicited", changed + ping, ping + changed},
	} {
		if c.id == "tools.resource-link.unlisted" {
			c.good += ping
		}
		cases = append(cases, featureCase{id: c.id, party: wire.Client, good: c.good, bad: c.bad, silent: true})
	}
	runFeatureCases(t, cases)
}
