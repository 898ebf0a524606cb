package judge_test

import (
	"fmt"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func reads(id int, uri string) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`+"\n", id, uri)
}

// What a server calls a URI may be given back to it. _meta is an object in the
// params of every method, though the schema says so for few.
func TestEchoedURI(t *testing.T) {
	listed := `> {"jsonrpc":"2.0","id":1,"method":"resources/list"}` + "\n" +
		`< {"jsonrpc":"2.0","id":1,"result":{"resources":[{"name":"notes","uri":"notes.txt"}]}}` + "\n"
	meta := func(v string) string {
		return `> {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":` + v + "}}\n"
	}
	runAsk(t, []askCase{
		{
			id: "schema.read-resource-request", party: wire.Client,
			good: listed + reads(2, "notes.txt") + reads(3, "test://a"), bad: listed + reads(2, "other.txt"),
		},
		{
			name: "template", id: "schema.read-resource-request", party: wire.Client,
			good: listed + reads(3, "test://a"),
			bad: `> {"jsonrpc":"2.0","id":1,"method":"resources/templates/list"}` + "\n" +
				`< {"jsonrpc":"2.0","id":1,"result":{"resourceTemplates":[{"name":"n","uriTemplate":"test://{id}"}]}}` + "\n" + reads(2, "test://{id}"),
		},
		{id: "meta.object", party: wire.Client, good: meta(`{"a":1}`), bad: meta(`[]`)},
	})
}
