package judge_test

import (
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestPrompts(t *testing.T) {
	list := exchange(1, "prompts/list", `{}`, `{"prompts":[{"name":"p","arguments":[{"name":"a","required":true},{"name":"b"}]}]}`)
	get := func(arguments string) string {
		return exchange(2, "prompts/get", `{"name":"p","arguments":`+arguments+`}`, `{"messages":[]}`)
	}
	role := func(r string) string {
		return exchange(1, "prompts/get", `{"name":"p"}`, `{"messages":[{"role":"`+r+`","content":{"type":"text","text":""}}]}`)
	}
	runFeatureCases(t, []featureCase{
		{
			id: "prompts.name.unique", party: wire.Server, good: list,
			bad: exchange(1, "prompts/list", `{}`, `{"prompts":[{"name":"p"},{"name":"p"}]}`),
		},
		{id: "prompts.message.role-speaker", party: wire.Server, good: role("assistant"), bad: role("system")},
		{id: "prompts.argument.required-given", party: wire.Client, good: list + get(`{"a":""}`), bad: list + get(`{"b":""}`)},
		{
			id: "prompts.message.content-kinds", party: wire.Client, silent: true,
			good: promptOf(`{"type":"image","data":"","mimeType":"a/b"}`) + ping, bad: promptOf(`{"type":"text","text":""}`) + ping,
		},
		{
			id: "prompts.list-changed.unsolicited", party: wire.Client, silent: true,
			good: notice("notifications/prompts/list_changed", `{}`) + ping, bad: notice("notifications/prompts/list_changed", `{}`),
		},
	})
}
