package mockserver

import (
	"bytes"
	"slices"
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
		return slices.ContainsFunc(metaOf(r), fits)
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
	fault("meta.not-an-object", ids.MetaObject, "The _meta of results is a string.",
		Results("prompts/list", Having("_meta", "v1"))),
	fault("meta.null", ids.MetaObject, "The _meta of tools is null.",
		Items("tools/list", "tools", Having("_meta", nil))),
	fault("meta.two-slashes", ids.MetaKeySegments, "A _meta key has two slashes.", metaKey("example.com/trace/id")),
	fault("meta.empty-label", ids.MetaKeyPrefixForm, "The prefix of a _meta key has two dots in a row.",
		metaKey("com..example/key")),
	fault("meta.label-starts-with-digit", ids.MetaKeyLabelStart,
		"A label in the prefix of a _meta key begins with a digit.", metaKey("com.1example/key")),
	fault("meta.label-ends-with-hyphen", ids.MetaKeyLabelEnd,
		"A label in the prefix of a _meta key ends with a hyphen.", metaKey("com.example-/key")),
	fault("meta.label-with-underscore", ids.MetaKeyLabelInterior,
		"A label in the prefix of a _meta key has an underscore.", metaKey("com.my_example/key")),
	fault("meta.reserved-prefix", ids.MetaKeyPrefixReserved,
		"A _meta key has the prefix mcp.dev/, which is kept for MCP.", metaKey("mcp.dev/key")),
	fault("meta.name-starts-with-underscore", ids.MetaKeyNameStart,
		"The name of a _meta key begins with an underscore.", metaKey("_trace")),
	fault("meta.name-ends-with-dot", ids.MetaKeyNameEnd, "The name of a _meta key ends with a dot.", metaKey("trace.")),
	fault("meta.name-with-colon", ids.MetaKeyNameInterior, "The name of a _meta key has a colon.", metaKey("trace:id")),
	fault("meta.request-refused", ids.MetaAttachRequest, "Requests with _meta are refused.",
		Refusing("*", server.InvalidParams, anyKey(func(key string) bool { return key == "example.com/mcpconform" }))),
	fault("meta.initialize-refused", ids.MetaAttachRequest, "An initialize with _meta is refused.",
		Refusing("initialize", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })).Also(ids.ProgressRequest),
	fault("meta.unsubscribe-refused", ids.MetaAttachRequest, "A resources/unsubscribe with _meta is refused.",
		Refusing("resources/unsubscribe", server.InvalidParams,
			func(r *server.Request) bool { return r.Params["_meta"] != nil })).Also(ids.ProgressRequest),
	fault("meta.cursor-forgotten", ids.MetaAttachRequest,
		"A list request with _meta gets the first page, whatever its cursor is.",
		OnRequest("tools/list", func(r *server.Request) {
			if r.Params["_meta"] != nil {
				delete(r.Params, "cursor")
			}
		})).Also(ids.ProgressRequest),
	fault("meta.notification-answered", ids.MetaAttachNotification,
		"A notification with _meta is answered with an error.",
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Kind == wire.Notification && wire.At(m.Params, "_meta") != nil {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "Unexpected _meta")})
			}
		})).Also(ids.BaseNotificationNoResponse, ids.BaseResponseIDEcho, ids.LifecycleInitInitializedSent),
	fault("meta.result-refused", ids.MetaAttachResult, "A result of the client that has _meta is taken for malformed.",
		FailingOn("test_sampling", func(result object) bool { return result["_meta"] != nil })),
	fault("meta.root-kills", ids.MetaAttachObjects, "A root with _meta ends the process.",
		dyingOf(`"roots":[{"_meta"`)),
	fault("meta.hyphen-refused", ids.MetaKeyNameCharacters,
		"Requests whose _meta keys have other characters than letters are refused.",
		Refusing("ping", server.InvalidParams, anyKey(
			func(key string) bool { return strings.ContainsAny(key, "-_") }))),
	fault("meta.empty-name-refused", ids.MetaKeyNameEmpty, "Requests with a _meta key without a name are refused.",
		Refusing("ping", server.InvalidParams, anyKey(func(key string) bool { return strings.HasSuffix(key, "/") }))),
	fault("meta.reserved-refused", ids.MetaReservedNoAssumptions,
		"Requests with an unknown _meta key of MCP's own prefix are refused.",
		Refusing("ping", server.InvalidParams, anyKey(
			func(key string) bool { return strings.HasPrefix(key, "modelcontextprotocol.io/") }))),
}
