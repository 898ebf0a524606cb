package judge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// Lists that change: in one page, or in two.
func TestListChanges(t *testing.T) {
	n := 0
	list := func(method, member, items, next string) string {
		n++
		if next != "" {
			next = `,"nextCursor":"` + next + `"`
		}
		return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%[1]d,"method":%[2]q,"params":{}}`+"\n"+`< {"jsonrpc":"2.0","id":%[1]d,"result":{%[3]q:[%[4]s]%[5]s}}`+"\n", n, method, member, items, next)
	}
	resources := func(uris ...string) string {
		for i, uri := range uris {
			uris[i] = `{"uri":"` + uri + `","name":"n"}`
		}
		return list("resources/list", "resources", strings.Join(uris, ","), "")
	}
	const changed = `< {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}` + "\n"
	later := strings.Repeat(fence(99), 6)
	handshake := func(capabilities string) string {
		return `> {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `,"serverInfo":{"name":"s","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
`
	}
	const declared = `{"resources":{"listChanged":true}}`
	for _, tt := range []struct {
		name, capabilities, lines string
		broken                    bool
	}{
		{"unannounced", declared, resources("a:b") + resources("a:c") + later, true},
		{"announced", declared, resources("a:b") + changed + resources("a:c") + later, false},
		{"announced late", declared, resources("a:b") + resources("a:c") + later + changed, false},
		{"announced before", declared, changed + resources("a:b") + resources("a:c") + later, true},
		{"at the end", declared, resources("a:b") + resources("a:c"), false},
		{"another order", declared, resources("a:b", "a:c") + resources("a:c", "a:b") + later, false},
		{"undeclared", `{"resources":{}}`, resources("a:b") + resources("a:c") + later, false},
		{"one page of two", declared, resources("a:b", "a:c") + list("resources/list", "resources", `{"uri":"a:b","name":"n"}`, "2") + later, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := judge.Judge(schema.Default(), []*wire.Log{record(t, handshake(tt.capabilities)+tt.lines)}, judge.Options{})
			seen := report[judge.Key{Requirement: "resources.list-changed.sent", Party: wire.Server}]
			if broken := seen != nil && len(seen.Findings) > 0; broken != tt.broken {
				t.Errorf("broken is %t, not %t", broken, tt.broken)
			}
		})
	}
}
