package mockclient

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const pages = "lists/pages"

var listFaults = []Fault{
	fault("pagination.cursor-cleaned", ids.PaginationClientCursorUnmodified,
		"Unusual characters of a cursor are replaced.", Replacing(Anything, "→ 次", "-> ?")).In(pages),
	fault("pagination.cursor-trimmed", ids.PaginationClientCursorUnmodified, "Blanks around a cursor are cut off.",
		cursors(func(cursor string) any { return strings.TrimSpace(cursor) })).In(pages),
	fault("pagination.first-page-only", ids.PaginationClientBothFlows,
		"The first page of a list is taken for the whole.", func(c *client.Standalone) { c.Omissions.PageFrom = 1 }).
		In("lists/whole"),
	fault("pagination.first-page-again", ids.PaginationClientBothFlows,
		"When a list is read again in the same session, its first page is taken for the whole.",
		func(c *client.Standalone) { c.Omissions.PageFrom = 2 }).Seen(inSequence).In("lists/changed"),
	fault("pagination.first-page-after-second-change", ids.PaginationClientBothFlows,
		"When a list has changed a second time in a session, its first page is taken for the whole.",
		func(c *client.Standalone) { c.Omissions.PageFrom = 3 }).Seen(inSequence).In("lists/changed"),
	fault("pagination.cursor-encoded", ids.PaginationClientCursorUnmodified, "A cursor is escaped as in a URL.",
		Replacing(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return strings.HasPrefix(cursor, "page=3")
		}, "&", "%26")).In(pages).Also(ids.PaginationClientNoFixedPageSize),
	fault("pagination.cursor-as-number", ids.PaginationClientCursorUnmodified,
		"A cursor of digits alone is sent as a number.", cursors(func(cursor string) any {
			if n, err := strconv.Atoi(cursor); err == nil {
				return n
			}
			return cursor
		})).In(pages).Also(append(slices.Clone(cursorTypes), ids.PaginationClientNoFormatAssumptions)...),
	fault("pagination.cursor-composed", ids.PaginationClientCursorUnmodified,
		"A letter and its accent in a cursor are made one character.",
		cursors(func(cursor string) any { return strings.ReplaceAll(cursor, "e\u0301", "é") })).In(pages).
		Also(ids.PaginationClientNoFormatAssumptions),
	fault("pagination.cursor-written-anew", ids.PaginationClientCursorUnmodified,
		"A cursor that is JSON is read and written again.", cursors(func(cursor string) any {
			var content any
			if json.Unmarshal([]byte(cursor), &content) != nil {
				return cursor
			}
			if _, ok := content.(map[string]any); !ok {
				return cursor
			}
			return string(client.Marshal(content))
		})).Seen(byValue).In(pages).Also(ids.PaginationClientNoFormatAssumptions),
	fault("pagination.cursor-unpadded", ids.PaginationClientCursorUnmodified, "A cursor loses the padding of Base64.",
		cursors(func(cursor string) any { return strings.TrimRight(cursor, "=") })).In(pages).
		Also(ids.PaginationClientNoFormatAssumptions, ids.PaginationClientNoFixedPageSize),
	fault("http.character-torn", ids.BaseMessageUTF8Accepted,
		"A character that comes in two pieces is read as several invalid ones.",
		Replacing(Anything, "次", "\uFFFD\uFFFD\uFFFD")).In("lists/cut-characters").
		Also(ids.PaginationClientCursorUnmodified).Everywhere(),
	fault("pagination.cursor-carried-over", ids.PaginationClientCursorNotPersisted,
		"A list is read on in a new session with a cursor of the lost one.",
		func(c *client.Standalone) { c.Omissions.Cursor = true }).In("lists/lost-session").Only(OverHTTP),
	fault("pagination.cursor-elsewhere", ids.PaginationCursorSameOperation, "A cursor of one list is used for another.",
		Calling("prompts/list", object{"cursor": "page=3&of=tools/list"})).In(pages),
	fault("pagination.cursor-kept", ids.PaginationCursorSameOperation,
		"A list is begun with the last cursor of another one.",
		Params("prompts/list", Defaulting("cursor", "last of tools/list"))).In(pages),
	fault("pagination.stops-at-empty", ids.PaginationClientNoFixedPageSize, "An empty page is taken for the end.",
		Instead(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return strings.HasPrefix(cursor, "page=3")
		})).In(pages),
	fault("pagination.long-cursor-dropped", ids.PaginationClientNoFormatAssumptions,
		"A cursor of several thousand characters is not used.", Instead(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return len(cursor) > 1000
		})).In(pages),
	fault("pagination.empty-cursor-dropped", ids.PaginationClientNoFormatAssumptions,
		"A cursor that is the empty string is taken for the end.", Instead(func(m *wire.Message) bool {
			cursor, ok := wire.At(m.Params, "cursor").(string)
			return ok && cursor == ""
		})).In(pages).Warns(),
	fault("pagination.goes-on", ids.PaginationClientMissingCursorEnds,
		"A list is read on after its last page, with the cursor of that page.",
		Calling("resources/templates/list", object{"cursor": "last of resources/templates/list"})).In(pages),
	fault("completion.ref-name", ids.CompletionRefKinds, "The reference of a completion has an unknown type.",
		Params("completion/complete", func(p object) {
			if ref, ok := p["ref"].(object); ok {
				ref["type"] = "ref/tool"
			}
		})).Also(ids.SchemaCompleteRequest),
	fault("completion.argument-unknown", ids.CompletionArgumentCurrentValue,
		"The client completes an argument that the prompt does not have.",
		Params("completion/complete", func(p object) {
			if argument, ok := p["argument"].(object); ok {
				argument["name"] = "no-such-argument"
			}
		})),
	fault("prompts.argument-missing", ids.PromptsArgumentRequiredGiven,
		"A prompt is asked for without its required arguments.", Params("prompts/get", Lacking("arguments"))),
	fault("resources.unsubscribe-first", ids.ResourcesUnsubscribeAfterSubscribe,
		"resources/unsubscribe names a resource that was not subscribed to.",
		Calling("resources/unsubscribe", object{"uri": "test://never-subscribed"})),
	fault("pagination.empty-page-is-all", ids.PaginationClientBothFlows,
		"An empty first page of a list is taken for the whole.",
		func(c *client.Standalone) { c.Omissions.PageFrom = 1 }).In("lists/empty-first-page"),
	fault("pagination.offset", ids.PaginationClientBothFlows,
		"Further pages are asked for by an offset in place of the cursor.", Editing(Anything, func(m object) {
			if p, ok := m["params"].(object); ok && p["cursor"] != nil {
				delete(p, "cursor")
				p["offset"] = 2
			}
		})).In(pages),
	fault("pagination.cursor-renamed", ids.PaginationClientBothFlows, "The cursor is sent in a member of another name.",
		Editing(Anything, func(m object) {
			if p, ok := m["params"].(object); ok && p["cursor"] != nil {
				p["nextCursor"] = p["cursor"]
				delete(p, "cursor")
			}
		})).In(pages),
	fault("resources.part-death", ids.ResourcesUpdatedSubResource,
		"An update of a resource below the one that was subscribed to ends the client.", DyingOf("mcpconform-part")).
		In("lists/sub-resource"),
	fault("resources.second-part-death", ids.ResourcesUpdatedSubResource,
		"The second update of a resource below the one that was subscribed to ends the client.",
		Wrapping(func(conn transport.Conn) transport.Conn {
			updates := func(e *wire.Event) bool { return ContainsText(e, "mcpconform-part") }
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool {
				return updates(e) && slices.ContainsFunc(conn.Log().Events()[:e.Seq], updates)
			}}
		})).Seen(inSequence).In("lists/sub-resource"),
	fault("resources.directory-death", ids.ResourcesURISchemeFileXdgMime,
		"A resource that is a directory ends the client.", DyingOf("inode/directory")).In("lists/directory"),
	fault("resources.file-required", ids.ResourcesURISchemeFileVirtual, "Resources whose URIs name files are not read.",
		Instead(func(m *wire.Message) bool {
			uri, _ := wire.At(m.Params, "uri").(string)
			return m.Method == "resources/read" && strings.HasPrefix(uri, "file:")
		})).In("lists/virtual-files"),
}

// cursorTypes are the requirements that a cursor of another type breaks.
var cursorTypes = []string{ids.SchemaListToolsRequest, ids.SchemaListResourcesRequest,
	ids.SchemaListResourceTemplatesRequest, ids.SchemaListPromptsRequest}

// cursors changes the cursors of lists.
func cursors(change func(cursor string) any) apply {
	return Editing(Anything, func(m object) {
		if p, ok := m["params"].(object); ok {
			if cursor, ok := p["cursor"].(string); ok {
				p["cursor"] = change(cursor)
			}
		}
	})
}

// toleranceFaults are those of clients that end when they receive something that
// they have to tolerate.
func toleranceFaults() []Fault {
	var faults []Fault
	metadata := []string{ids.MetaAttachResult, ids.MetaAttachObjects, ids.MetaReservedNoAssumptions,
		ids.MetaKeyNameCharacters, ids.MetaKeyNameEmpty}
	for _, f := range []struct{ id, requirement, scenario, what, text string }{
		{"base.result-closed", ids.BaseResponseResultOpen, "exchange/open-results", "An additional member of a result",
			"com.example.addition"},
		{"meta.result-death", ids.MetaAttachResult, "exchange/metadata", "Metadata in a result", `"_meta"`},
		{"meta.objects-death", ids.MetaAttachObjects, "exchange/metadata", "Metadata of a tool", `"_meta"`},
		{"meta.reserved-death", ids.MetaReservedNoAssumptions, "exchange/metadata", "Metadata with a reserved key",
			"modelcontextprotocol.io/x"},
		{"meta.characters-death", ids.MetaKeyNameCharacters, "exchange/metadata", "A key with unusual characters",
			"a-b_c.d"},
		{"meta.empty-name-death", ids.MetaKeyNameEmpty, "exchange/metadata", "A key with an empty name",
			`"com.example/"`},
	} {
		fault := fault(f.id, f.requirement, f.what+" ends the client.", DyingOf(f.text)).In(f.scenario)
		if slices.Contains(metadata, f.requirement) {
			fault.Collateral = metadata // they come together
		}
		faults = append(faults, fault)
	}
	without := func(id, scenario, what, member, name string) Fault {
		return fault("schema."+id, ids.SchemaOptionalMembers, what+" ends the client.", Dying(func(e *wire.Event) bool {
			return slices.ContainsFunc(wire.Items(message(e).Result, member),
				func(item any) bool { return wire.At(item, name) == nil })
		})).In(scenario)
	}
	return append(faults,
		without("description-required", "exchange/bare", "A tool without a description", "tools", "description"),
		// An ordinary server leaves these out.
		without("resource-description-required", described, "A resource without a description", "resources",
			"description"),
		without("prompt-arguments-required", described, "A prompt without arguments", "prompts", "arguments"),
		fault("schema.empty-list-death", ids.SchemaOptionalMembers, "An empty list of prompts crashes the client.",
			DyingOf(`{"prompts":[]}`)).In("content/empty").Crashing())
}

const described = "content/described"

// schemaFaults give params another form than their definitions prescribe.
func schemaFaults() []Fault {
	var faults []Fault
	add := func(id, requirement, summary, method string, change func(p object)) {
		// A client has to subscribe before it unsubscribes.
		faults = append(faults, fault("schema."+id, requirement, summary, Params(method, change)).
			Also(ids.ResourcesUnsubscribeAfterSubscribe))
	}
	for _, f := range []struct {
		id, requirement, method, member string
		value                           any
	}{
		{"client-capabilities", ids.SchemaClientCapabilities, "initialize", "capabilities",
			object{"roots": object{"listChanged": "yes"}}},
		{"implementation", ids.SchemaImplementation, "initialize", "clientInfo",
			object{"name": "mcpconform", "version": 1}},
		{"complete", ids.SchemaCompleteRequest, "completion/complete", "context", "none"},
		{"set-level", ids.SchemaSetLevelRequest, "logging/setLevel", "level", "verbose"},
		{"get-prompt", ids.SchemaGetPromptRequest, "prompts/get", "name", 7},
		{"list-prompts", ids.SchemaListPromptsRequest, "prompts/list", "cursor", 7},
		{"list-resources", ids.SchemaListResourcesRequest, "resources/list", "cursor", 7},
		{"list-templates", ids.SchemaListResourceTemplatesRequest, "resources/templates/list", "cursor", 7},
		{"list-tools", ids.SchemaListToolsRequest, "tools/list", "cursor", 7},
		{"read", ids.SchemaReadResourceRequest, "resources/read", "uri", list{}},
		{"subscribe", ids.SchemaSubscribeRequest, "resources/subscribe", "uri", 7},
		{"unsubscribe", ids.SchemaUnsubscribeRequest, "resources/unsubscribe", "uri", 7},
		{"call-tool", ids.SchemaCallToolRequest, "tools/call", "arguments", list{}},
	} {
		add(f.id, f.requirement, "The member "+f.member+" of the params of "+f.method+" has another type.", f.method,
			Having(f.member, f.value))
	}
	return append(faults, fault("schema.cancelled", ids.SchemaCancelledNotification,
		"The reason in notifications/cancelled is a number.", Doing(func(ctx context.Context, s *client.Session) {
			if p, err := s.Start(ctx, "tools/call", SlowCall(0.3, nil)); err == nil {
				_ = s.Notify(ctx, "notifications/cancelled", object{"requestId": p.ID, "reason": 7})
			}
		})))
}
