package judge_test

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestCompletion(t *testing.T) {
	lists := exchange(1, "prompts/list", `{}`, `{"prompts":[{"name":"p","arguments":[{"name":"a"},{"name":"b"}]}]}`) +
		exchange(2, "resources/templates/list", `{}`, `{"resourceTemplates":[{"name":"t","uriTemplate":"x:{a}{/b*,c:3}"}]}`)
	result := func(completion string) string {
		return exchange(3, "completion/complete", `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
			`{"completion":{`+completion+`}}`)
	}
	ask := func(ref, argument, rest string) string {
		return lists + exchange(3, "completion/complete", `{"ref":`+ref+`,"argument":{"name":"`+argument+`","value":""}`+rest+`}`,
			`{"completion":{"values":[]}}`)
	}
	prompt, template := `{"type":"ref/prompt","name":"p"}`, `{"type":"ref/resource","uri":"x:{a}{/b*,c:3}"}`
	context := func(name string) string { return `,"context":{"arguments":{"` + name + `":"v"}}` }
	values := func(n int) string { return `"values":[` + strings.TrimSuffix(strings.Repeat(`"v",`, n), ",") + `]` }
	runFeatureCases(t, []featureCase{
		{id: "completion.ref.kinds", party: wire.Client, good: ask(prompt, "a", ""), bad: ask(`{"type":"ref/tool","name":"p"}`, "a", "")},
		{id: "completion.ref.kinds", party: wire.Client, good: ask(template, "c", ""), bad: ask(`{"type":"ref/resource","name":"p"}`, "a", "")},
		{id: "completion.argument.current-value", party: wire.Client, good: ask(prompt, "b", ""), bad: ask(prompt, "c", "")},
		{id: "completion.argument.current-value", party: wire.Client, good: ask(template, "c", ""), bad: ask(template, "d", "")},
		{id: "completion.context.resolved-values", party: wire.Client, good: ask(prompt, "b", context("a")), bad: ask(prompt, "b", context("c"))},
		{id: "completion.context.client-sends", party: wire.Client, silent: true, good: ask(prompt, "b", context("a")), bad: ask(prompt, "b", "")},
		{id: "completion.result.max-100", party: wire.Server, good: result(values(100)), bad: result(values(101))},
		{id: "completion.result.total-meaning", party: wire.Server, good: result(values(2) + `,"total":2`), bad: result(values(2) + `,"total":1`)},
		{
			id: "completion.result.has-more-meaning", party: wire.Server,
			good: result(values(2) + `,"total":3,"hasMore":true`), bad: result(values(2) + `,"total":3,"hasMore":false`),
		},
		{
			id: "completion.result.has-more-meaning", party: wire.Server,
			good: result(values(2) + `,"total":2,"hasMore":false`), bad: result(values(2) + `,"total":2,"hasMore":true`),
		},
		{
			id: "completion.result.total-exceeds-values", party: wire.Client, silent: true,
			good: result(values(3)+`,"total":10`) + ping, bad: result(values(3)+`,"total":3`) + ping,
		},
		{
			id: "completion.client.partial-results", party: wire.Client, silent: true,
			good: result(values(3)) + ping, bad: result(values(3)+`,"total":3,"hasMore":false`) + ping,
		},
	})
}
