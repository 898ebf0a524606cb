package mockserver

import (
	"bytes"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// metaKey puts metadata with one key into list results.
func metaKey(key string) apply { return Results("tools/list", Having("_meta", object{key: true})) }

// metaOf returns the keys of a request's metadata.
func metaOf(r *server.Request) []string {
	var keys []string
	meta, _ := r.Params["_meta"].(object)
	for key := range meta {
		keys = append(keys, key)
	}
	return keys
}

func anyKey(fits func(key string) bool) func(r *server.Request) bool {
	return func(r *server.Request) bool {
		for _, key := range metaOf(r) {
			if fits(key) {
				return true
			}
		}
		return false
	}
}

// dyingOf ends the process when a line holds a text.
func dyingOf(text string) apply {
	return dying(func(line []byte) bool { return bytes.Contains(line, []byte(text)) })
}

// dying ends the process at a line.
func dying(fits func(line []byte) bool) apply {
	return func(o *server.Options) {
		before := o.Behaviour.Stdio.Quit
		o.Behaviour.Stdio.Quit = func(n int, line []byte) bool { return fits(line) || before != nil && before(n, line) }
	}
}

// basic/index#meta
var metaFaults = []Fault{
	{ID: "meta.not-an-object", Requirement: ids.MetaObject, Summary: "The _meta of results is a string.",
		Apply: Results("prompts/list", Having("_meta", "v1"))},
	{ID: "meta.null", Requirement: ids.MetaObject, Summary: "The _meta of tools is null.",
		Apply: Items("tools/list", "tools", Having("_meta", nil))},
	{ID: "meta.two-slashes", Requirement: ids.MetaKeySegments, Summary: "A _meta key has two slashes.",
		Apply: metaKey("example.com/trace/id")},
	{ID: "meta.empty-label", Requirement: ids.MetaKeyPrefixForm,
		Summary: "The prefix of a _meta key has two dots in a row.", Apply: metaKey("com..example/key")},
	{ID: "meta.label-starts-with-digit", Requirement: ids.MetaKeyLabelStart,
		Summary: "A label in the prefix of a _meta key begins with a digit.",
		Apply:   metaKey("com.1example/key")},
	{ID: "meta.label-ends-with-hyphen", Requirement: ids.MetaKeyLabelEnd,
		Summary: "A label in the prefix of a _meta key ends with a hyphen.", Apply: metaKey("com.example-/key")},
	{ID: "meta.label-with-underscore", Requirement: ids.MetaKeyLabelInterior,
		Summary: "A label in the prefix of a _meta key has an underscore.",
		Apply:   metaKey("com.my_example/key")},
	{ID: "meta.reserved-prefix", Requirement: ids.MetaKeyPrefixReserved,
		Summary: "A _meta key has the prefix mcp.dev/, which is kept for MCP.", Apply: metaKey("mcp.dev/key")},
	{ID: "meta.name-starts-with-underscore", Requirement: ids.MetaKeyNameStart,
		Summary: "The name of a _meta key begins with an underscore.", Apply: metaKey("_trace")},
	{ID: "meta.name-ends-with-dot", Requirement: ids.MetaKeyNameEnd,
		Summary: "The name of a _meta key ends with a dot.", Apply: metaKey("trace.")},
	{ID: "meta.name-with-colon", Requirement: ids.MetaKeyNameInterior,
		Summary: "The name of a _meta key has a colon.", Apply: metaKey("trace:id")},
	{ID: "meta.request-refused", Requirement: ids.MetaAttachRequest, Summary: "Requests with _meta are refused.",
		Apply: Refusing("*", server.InvalidParams, anyKey(func(key string) bool {
			return key == "example.com/mcpconform"
		}))},
	{ID: "meta.initialize-refused", Requirement: ids.MetaAttachRequest,
		Summary: "An initialize with _meta is refused.", Collateral: []string{ids.ProgressRequest},
		Apply: Refusing("initialize", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })},
	{ID: "meta.unsubscribe-refused", Requirement: ids.MetaAttachRequest,
		Summary: "A resources/unsubscribe with _meta is refused.", Collateral: []string{ids.ProgressRequest},
		Apply: Refusing("resources/unsubscribe", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })},
	{ID: "meta.cursor-forgotten", Requirement: ids.MetaAttachRequest,
		Summary:    "A list request with _meta gets the first page, whatever its cursor is.",
		Collateral: []string{ids.ProgressRequest},
		Apply: OnRequest("tools/list", func(r *server.Request) {
			if r.Params["_meta"] != nil {
				delete(r.Params, "cursor")
			}
		})},
	{ID: "meta.notification-answered", Requirement: ids.MetaAttachNotification,
		Summary: "A notification with _meta is answered with an error.",
		Collateral: []string{ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho,
			ids.LifecycleInitInitializedSent},
		Apply: Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification && wire.At(m.Params, "_meta") != nil {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "Unexpected _meta")})
			}
		})},
	{ID: "meta.result-refused", Requirement: ids.MetaAttachResult,
		Summary: "A result of the client that has _meta is taken for malformed.",
		Apply:   FailingOn("test_sampling", func(result object) bool { return result["_meta"] != nil })},
	{ID: "meta.root-kills", Requirement: ids.MetaAttachObjects, Summary: "A root with _meta ends the process.",
		Apply: dyingOf(`"roots":[{"_meta"`)},
	{ID: "meta.hyphen-refused", Requirement: ids.MetaKeyNameCharacters,
		Summary: "Requests whose _meta keys have other characters than letters are refused.",
		Apply: Refusing("ping", server.InvalidParams, anyKey(func(key string) bool {
			return strings.ContainsAny(key, "-_")
		}))},
	{ID: "meta.empty-name-refused", Requirement: ids.MetaKeyNameEmpty,
		Summary: "Requests with a _meta key without a name are refused.",
		Apply: Refusing("ping", server.InvalidParams,
			anyKey(func(key string) bool { return strings.HasSuffix(key, "/") }))},
	{ID: "meta.reserved-refused", Requirement: ids.MetaReservedNoAssumptions,
		Summary: "Requests with an unknown _meta key of MCP's own prefix are refused.",
		Apply: Refusing("ping", server.InvalidParams, anyKey(func(key string) bool {
			return strings.HasPrefix(key, "modelcontextprotocol.io/")
		}))},
}
