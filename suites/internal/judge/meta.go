package judge

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

var metaRules = []Rule{{
	Name: "_meta keys",
	Requirements: []string{ids.MetaObject, ids.MetaKeySegments, ids.MetaKeyPrefixForm, ids.MetaKeyLabelStart,
		ids.MetaKeyLabelEnd, ids.MetaKeyLabelInterior, ids.MetaKeyPrefixReserved, ids.MetaKeyNameStart,
		ids.MetaKeyNameEnd, ids.MetaKeyNameInterior},
	Judge: judgeMeta,
}}

// The format of _meta keys is in basic#meta.
func judgeMeta(c *Conversation, rec *Recorder) {
	sent := map[wire.Party]map[string]bool{wire.Client: {}, wire.Server: {}}
	for _, e := range c.Messages {
		// Most messages have none; \u may spell it.
		if !bytes.Contains(e.Msg.Raw, []byte("_meta")) && !bytes.Contains(e.Msg.Raw, []byte(`\u`)) {
			continue
		}
		if params, ok := e.Msg.Params.(map[string]any); ok && e.Msg.Kind != wire.Result && !ownMeta[e.Msg.Method] {
			if meta, has := params["_meta"]; has && wire.TypeName(meta) != "an object" {
				rec.Fail(ids.MetaObject, e.From, "_meta of the params is "+wire.Quote(wire.Show(meta), 60)+
					", not an object", e)
			}
		}
		walkMeta(payload(e.Msg), 0, func(meta any) {
			object, ok := meta.(map[string]any)
			if !ok {
				return // the schema judges it
			}
			rec.Pass(ids.MetaObject, e.From)
			for _, key := range slices.Sorted(maps.Keys(object)) {
				sent[e.From][key] = true
				judgeMetaKey(key, sent[e.From.Peer()][key], e, rec)
			}
		})
	}
}

// ownMeta are the methods for whose params the schema defines _meta. The
// definitions of all other params do not have it.
var ownMeta = map[string]bool{
	"ping": true, "roots/list": true, "notifications/initialized": true, "notifications/roots/list_changed": true,
	"notifications/tools/list_changed": true, "notifications/prompts/list_changed": true,
	"notifications/resources/list_changed": true,
}

func payload(m *wire.Message) any {
	if m.Kind == wire.Result {
		return m.Result
	}
	return m.Params
}

// free are members whose content is up to the peer: a _meta inside them is not
// metadata of MCP.
var free = map[string]bool{
	"arguments": true, "structuredContent": true, "inputSchema": true, "outputSchema": true, "data": true,
	"metadata": true, "requestedSchema": true, "experimental": true,
}

// walkMeta visits every _meta member in a decoded value.
func walkMeta(v any, depth int, visit func(any)) {
	if depth > 6 { // no definition has _meta deeper
		return
	}
	switch v := v.(type) {
	case map[string]any:
		var names []string // in a fixed order
		for name, member := range v {
			if !scalar(member) && !free[name] || name == "_meta" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if name == "_meta" {
				visit(v[name])
			} else {
				walkMeta(v[name], depth+1, visit)
			}
		}
	case []any:
		for _, item := range v {
			walkMeta(item, depth+1, visit)
		}
	}
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// judgeMetaKey judges a key; returned is one that the peer has sent before.
func judgeMetaKey(key string, returned bool, e *wire.Event, rec *Recorder) {
	check := func(ok bool, id, message string) {
		if !ok {
			message = "the _meta key " + wire.Quote(key, 80) + " " + message
		}
		rec.Check(ok, id, e.From, message, e)
	}
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	check(!strings.Contains(name, "/"), ids.MetaKeySegments, "has more than one slash")
	if strings.Contains(name, "/") {
		return
	}
	if prefixed {
		judgePrefix(prefix, returned || published[key], check)
	}
	if name == "" {
		return
	}
	check(alphanumeric(name[0]), ids.MetaKeyNameStart, "has a name that does not start with a letter or digit")
	check(alphanumeric(name[len(name)-1]), ids.MetaKeyNameEnd, "has a name that does not end with a letter or digit")
	check(each(name, func(b byte) bool { return alphanumeric(b) || b == '-' || b == '_' || b == '.' }),
		ids.MetaKeyNameInterior,
		"has a name with a character other than letters, digits, hyphens, underscores and dots")
}

// judgePrefix judges the prefix of a key. Allowed says whether it may be a
// reserved one.
func judgePrefix(prefix string, allowed bool, check func(ok bool, id, message string)) {
	labels := strings.Split(prefix, ".")
	formed := true
	for _, label := range labels {
		if label == "" {
			formed = false
			continue
		}
		check(letter(label[0]), ids.MetaKeyLabelStart, "has a prefix label that does not start with a letter")
		check(alphanumeric(label[len(label)-1]), ids.MetaKeyLabelEnd,
			"has a prefix label that does not end with a letter or digit")
		check(each(label, func(b byte) bool { return alphanumeric(b) || b == '-' }),
			ids.MetaKeyLabelInterior, "has a prefix label with a character other than letters, digits and hyphens")
	}
	check(formed, ids.MetaKeyPrefixForm, "has a prefix with an empty label")
	reserved := false
	for _, label := range labels[:len(labels)-1] {
		reserved = reserved || label == "mcp" || label == "modelcontextprotocol"
	}
	check(!reserved || allowed, ids.MetaKeyPrefixReserved, "has a prefix that is reserved for MCP")
}

// published are the keys with a reserved prefix that later revisions and their
// drafts have defined: an implementation of several revisions may send them
// (docs/positions.md, published-keys).
var published = map[string]bool{
	"modelcontextprotocol.io/task": true, "modelcontextprotocol.io/related-task": true,
	"modelcontextprotocol.io/model-immediate-response": true,
	"modelcontextprotocol.io/protocolVersion":          true, "modelcontextprotocol.io/mcpProtocolVersion": true,
	"modelcontextprotocol.io/clientInfo": true, "modelcontextprotocol.io/clientCapabilities": true,
	"modelcontextprotocol.io/serverInfo": true, "modelcontextprotocol.io/serverCapabilities": true,
	"modelcontextprotocol.io/capabilities": true,
	"modelcontextprotocol.io/sessionId":    true, "modelcontextprotocol.io/subscriptionId": true,
	"modelcontextprotocol.io/logLevel": true,
	"modelcontextprotocol.io/cache":    true,
}

func letter(b byte) bool       { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func alphanumeric(b byte) bool { return letter(b) || b >= '0' && b <= '9' }

func each(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
