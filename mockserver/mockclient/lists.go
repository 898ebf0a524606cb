package mockclient

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/mockserver"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

const pages = "lists/pages"

var listFaults = []Fault{
	{ID: "pagination.cursor-cleaned", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary: "Unusual characters of a cursor are replaced.", Apply: Replacing(Anything, "→ 次", "-> ?")},
	{ID: "pagination.cursor-trimmed", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary: "Blanks around a cursor are cut off.",
		Apply:   cursors(func(cursor string) any { return strings.TrimSpace(cursor) })},
	{ID: "pagination.first-page-only", Requirement: ids.PaginationClientBothFlows, Scenario: "lists/whole",
		Summary: "The first page of a list is taken for the whole.",
		Apply:   func(c *client.Standalone) { c.Omissions.PageFrom = 1 }},
	{ID: "pagination.first-page-again", Requirement: ids.PaginationClientBothFlows, Form: mockserver.InSequence,
		Scenario: "lists/changed",
		Summary:  "When a list is read again in the same session, its first page is taken for the whole.",
		Apply:    func(c *client.Standalone) { c.Omissions.PageFrom = 2 }},
	{ID: "pagination.first-page-after-second-change", Requirement: ids.PaginationClientBothFlows,
		Form: mockserver.InSequence, Scenario: "lists/changed",
		Summary: "When a list has changed a second time in a session, its first page is taken for the whole.",
		Apply:   func(c *client.Standalone) { c.Omissions.PageFrom = 3 }},
	{ID: "pagination.cursor-encoded", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary:    "A cursor is escaped as in a URL.",
		Collateral: []string{ids.PaginationClientNoFixedPageSize},
		Apply: Replacing(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return strings.HasPrefix(cursor, "page=3")
		}, "&", "%26")},
	{ID: "pagination.cursor-as-number", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary:    "A cursor of digits alone is sent as a number.",
		Collateral: append(slices.Clone(cursorTypes), ids.PaginationClientNoFormatAssumptions),
		Apply: cursors(func(cursor string) any {
			if n, err := strconv.Atoi(cursor); err == nil {
				return n
			}
			return cursor
		})},
	{ID: "pagination.cursor-composed", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary:    "A letter and its accent in a cursor are made one character.",
		Collateral: []string{ids.PaginationClientNoFormatAssumptions},
		Apply:      cursors(func(cursor string) any { return strings.ReplaceAll(cursor, "e\u0301", "é") })},
	{ID: "pagination.cursor-written-anew", Requirement: ids.PaginationClientCursorUnmodified,
		Form: mockserver.ByValue, Scenario: pages, Summary: "A cursor that is JSON is read and written again.",
		Collateral: []string{ids.PaginationClientNoFormatAssumptions},
		Apply: cursors(func(cursor string) any {
			var content any
			if json.Unmarshal([]byte(cursor), &content) != nil {
				return cursor
			}
			if _, ok := content.(map[string]any); !ok {
				return cursor
			}
			return string(client.Marshal(content))
		})},
	{ID: "pagination.cursor-unpadded", Requirement: ids.PaginationClientCursorUnmodified, Scenario: pages,
		Summary:    "A cursor loses the padding of Base64.",
		Collateral: []string{ids.PaginationClientNoFormatAssumptions, ids.PaginationClientNoFixedPageSize},
		Apply:      cursors(func(cursor string) any { return strings.TrimRight(cursor, "=") })},
	{ID: "http.character-torn", Requirement: ids.BaseMessageUTF8Accepted, Scenario: "lists/cut-characters",
		Summary:    "A character that comes in two pieces is read as several invalid ones.",
		Collateral: []string{ids.PaginationClientCursorUnmodified},
		Apply:      Replacing(Anything, "次", "\uFFFD\uFFFD\uFFFD")},
	{ID: "pagination.cursor-carried-over", Requirement: ids.PaginationClientCursorNotPersisted,
		Scenario: "lists/lost-session", Transports: []string{"http"},
		Summary: "A list is read on in a new session with a cursor of the lost one.",
		Apply:   func(c *client.Standalone) { c.Omissions.Cursor = true }},
	{ID: "pagination.cursor-elsewhere", Requirement: ids.PaginationCursorSameOperation, Scenario: pages,
		Summary: "A cursor of one list is used for another.",
		Apply:   Calling("prompts/list", object{"cursor": "page=3&of=tools/list"})},
	{ID: "pagination.cursor-kept", Requirement: ids.PaginationCursorSameOperation, Scenario: pages,
		Summary: "A list is begun with the last cursor of another one.",
		Apply: Params("prompts/list", func(p object) {
			if p["cursor"] == nil {
				p["cursor"] = "last of tools/list"
			}
		})},
	{ID: "pagination.stops-at-empty", Requirement: ids.PaginationClientNoFixedPageSize, Scenario: pages,
		Summary: "An empty page is taken for the end.",
		Apply: Instead(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return strings.HasPrefix(cursor, "page=3")
		})},
	{ID: "pagination.long-cursor-dropped", Requirement: ids.PaginationClientNoFormatAssumptions, Scenario: pages,
		Summary: "A cursor of several thousand characters is not used.",
		Apply: Instead(func(m *wire.Message) bool {
			cursor, _ := wire.At(m.Params, "cursor").(string)
			return len(cursor) > 1000
		})},
	{ID: "pagination.empty-cursor-dropped", Requirement: ids.PaginationClientNoFormatAssumptions, Scenario: pages,
		WarnOnly: true, Summary: "A cursor that is the empty string is taken for the end.",
		Apply: Instead(func(m *wire.Message) bool {
			cursor, ok := wire.At(m.Params, "cursor").(string)
			return ok && cursor == ""
		})},
	{ID: "pagination.goes-on", Requirement: ids.PaginationClientMissingCursorEnds, Scenario: pages,
		Summary: "A list is read on after its last page, with the cursor of that page.",
		Apply:   Calling("resources/templates/list", object{"cursor": "last of resources/templates/list"})},
	{ID: "completion.ref-name", Requirement: ids.CompletionRefKinds,
		Summary:    "The reference of a completion has an unknown type.",
		Collateral: []string{ids.SchemaCompleteRequest},
		Apply: Params("completion/complete", func(p object) {
			if ref, ok := p["ref"].(object); ok {
				ref["type"] = "ref/tool"
			}
		})},
	{ID: "completion.argument-unknown", Requirement: ids.CompletionArgumentCurrentValue,
		Summary: "The client completes an argument that the prompt does not have.",
		Apply: Params("completion/complete", func(p object) {
			if argument, ok := p["argument"].(object); ok {
				argument["name"] = "no-such-argument"
			}
		})},
	{ID: "prompts.argument-missing", Requirement: ids.PromptsArgumentRequiredGiven,
		Summary: "A prompt is asked for without its required arguments.",
		Apply:   Params("prompts/get", Lacking("arguments"))},
	{ID: "resources.unsubscribe-first", Requirement: ids.ResourcesUnsubscribeAfterSubscribe,
		Summary: "resources/unsubscribe names a resource that was not subscribed to.",
		Apply:   Calling("resources/unsubscribe", object{"uri": "test://never-subscribed"})},
	{ID: "pagination.empty-page-is-all", Requirement: ids.PaginationClientBothFlows,
		Scenario: "lists/empty-first-page", Summary: "An empty first page of a list is taken for the whole.",
		Apply: func(c *client.Standalone) { c.Omissions.PageFrom = 1 }},
	{ID: "pagination.offset", Requirement: ids.PaginationClientBothFlows, Scenario: pages,
		Summary: "Further pages are asked for by an offset in place of the cursor.",
		Apply: Editing(Anything, func(m object) {
			if p, ok := m["params"].(object); ok && p["cursor"] != nil {
				delete(p, "cursor")
				p["offset"] = 2
			}
		})},
	{ID: "pagination.cursor-renamed", Requirement: ids.PaginationClientBothFlows, Scenario: pages,
		Summary: "The cursor is sent in a member of another name.",
		Apply: Editing(Anything, func(m object) {
			if p, ok := m["params"].(object); ok && p["cursor"] != nil {
				p["nextCursor"] = p["cursor"]
				delete(p, "cursor")
			}
		})},
	{ID: "resources.part-death", Requirement: ids.ResourcesUpdatedSubResource, Scenario: "lists/sub-resource",
		Summary: "An update of a resource below the one that was subscribed to ends the client.",
		Apply:   DyingOf("mcpconform-part")},
	{ID: "resources.second-part-death", Requirement: ids.ResourcesUpdatedSubResource, Form: mockserver.InSequence,
		Scenario: "lists/sub-resource",
		Summary:  "The second update of a resource below the one that was subscribed to ends the client.",
		Apply: Wrapping(func(conn transport.Conn) transport.Conn {
			updates := func(e *wire.Event) bool { return ContainsText(e, "mcpconform-part") }
			return &DyingConn{Conn: conn, At: func(e *wire.Event) bool {
				return updates(e) && slices.ContainsFunc(conn.Log().Events()[:e.Seq], updates)
			}}
		})},
	{ID: "resources.directory-death", Requirement: ids.ResourcesURISchemeFileXdgMime, Scenario: "lists/directory",
		Summary: "A resource that is a directory ends the client.", Apply: DyingOf("inode/directory")},
	{ID: "resources.file-required", Requirement: ids.ResourcesURISchemeFileVirtual, Scenario: "lists/virtual-files",
		Summary: "Resources whose URIs name files are not read.",
		Apply: Instead(func(m *wire.Message) bool {
			uri, _ := wire.At(m.Params, "uri").(string)
			return m.Method == "resources/read" && strings.HasPrefix(uri, "file:")
		})},
}

// cursorTypes are the requirements that a cursor of another type breaks.
var cursorTypes = []string{
	ids.SchemaListToolsRequest, ids.SchemaListResourcesRequest, ids.SchemaListResourceTemplatesRequest,
	ids.SchemaListPromptsRequest,
}

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
	metadata := []string{
		ids.MetaAttachResult, ids.MetaAttachObjects, ids.MetaReservedNoAssumptions, ids.MetaKeyNameCharacters,
		ids.MetaKeyNameEmpty,
	}
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
		fault := Fault{ID: f.id, Requirement: f.requirement, Scenario: f.scenario,
			Summary: f.what + " ends the client.", Apply: DyingOf(f.text)}
		if slices.Contains(metadata, f.requirement) {
			fault.Collateral = metadata // they come together
		}
		faults = append(faults, fault)
	}
	without := func(id, scenario, what, member, name string) Fault {
		return Fault{
			ID: "schema." + id, Requirement: ids.SchemaOptionalMembers, Scenario: scenario,
			Summary: what + " ends the client.",
			Apply: Dying(func(e *wire.Event) bool {
				if e.Kind != wire.KindMessage {
					return false
				}
				items, _ := wire.At(e.Msg.Result, member).(list)
				return slices.ContainsFunc(items, func(item any) bool { return wire.At(item, name) == nil })
			}),
		}
	}
	return append(faults,
		without("description-required", "exchange/bare", "A tool without a description", "tools", "description"),
		// An ordinary server leaves these out.
		without("resource-description-required", described, "A resource without a description", "resources",
			"description"),
		without("prompt-arguments-required", described, "A prompt without arguments", "prompts", "arguments"),
		Fault{
			ID: "schema.empty-list-death", Requirement: ids.SchemaOptionalMembers, Scenario: "content/empty",
			Crashes: true,
			Summary: "An empty list of prompts crashes the client.", Apply: DyingOf(`{"prompts":[]}`),
		},
	)
}

const described = "content/described"

// schemaFaults give params another form than their definitions prescribe.
func schemaFaults() []Fault {
	var faults []Fault
	add := func(id, requirement, summary, method string, change func(p object)) {
		faults = append(faults, Fault{
			ID: "schema." + id, Requirement: requirement, Summary: summary, Apply: Params(method, change),
			// A client has to subscribe before it unsubscribes.
			Collateral: []string{ids.ResourcesUnsubscribeAfterSubscribe},
		})
	}
	set := func(name string, value any) func(p object) { return func(p object) { p[name] = value } }
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
			set(f.member, f.value))
	}
	faults = append(faults,
		Fault{
			ID: "schema.cancelled", Requirement: ids.SchemaCancelledNotification,
			Summary: "The reason in notifications/cancelled is a number.",
			Apply: Doing(func(ctx context.Context, s *client.Session) {
				call := object{"name": "slow", "arguments": object{"seconds": 0.3}}
				if p, err := s.Start(ctx, "tools/call", call); err == nil {
					_ = s.Notify(ctx, "notifications/cancelled", object{"requestId": p.ID, "reason": 7})
				}
			}),
		},
	)
	return faults
}
