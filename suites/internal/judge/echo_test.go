package judge_test

import (
	"fmt"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

func reads(id int, uri string) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":%q}}`+"\n", id, uri)
}

// TestEchoedURI tests URIs of a server, which a client may give back to it as they are. It also tests _meta: it is an
// object in the params of every method, though the schema says so for few.
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

// A finding names what was sent, and shows it rather than what came between.
func TestEvidenceOfResponses(t *testing.T) {
	for _, c := range []struct{ id, trace, message, first string }{
		{
			"base.response.only-to-requests",
			`> {"jsonrpc":"2.0","id":"stray","result":{}}` + "\n" + `> {"jsonrpc":"2.0","id":8,"method":"ping"}` + "\n" +
				`< {"jsonrpc":"2.0","id":"stray","error":{"code":-32600,"message":"Invalid request"}}` + "\n",
			"a response was answered, as if it were a request", `{"jsonrpc":"2.0","id":"stray","result":{}}`,
		},
		{
			"base.response.once",
			`> {"jsonrpc":"2.0","id":8,"method":"ping"}` + "\n" + `< {"jsonrpc":"2.0","id":8,"result":{}}` + "\n" + `< {"jsonrpc":"2.0","id":8,"result":{}}` + "\n",
			"the request got 2 responses", `{"jsonrpc":"2.0","id":8,"method":"ping"}`,
		},
	} {
		seen := talk(t, "2025-06-18", allOfClient, c.trace)[judge.Key{Requirement: c.id, Party: wire.Server}]
		if seen == nil || len(seen.Findings) != 1 {
			t.Fatalf("%s: %+v", c.id, seen)
		}
		if f := seen.Findings[0]; f.Message != c.message || string(f.Evidence[0].Raw) != c.first {
			t.Errorf("%s: %q, at first %s", c.id, f.Message, f.Evidence[0].Raw)
		}
	}
}
