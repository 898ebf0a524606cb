package mockserver

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// resource changes the listed entry of a resource.
func resource(uri string, change func(entry object)) apply {
	return Item("resources/list", "resources", "uri", uri, change)
}

// contents changes what reading a resource returns.
func contents(uri string, change func(contents object)) apply {
	return Wrapping("resources/read", server.Named(uri, server.EditItems("contents", change)))
}

// reading fits reads of a URI.
func reading(uri string) func(r *server.Request) bool {
	return func(r *server.Request) bool { return r.Params["uri"] == uri }
}

// foreign fits requests with a URI of a scheme that is not the server's.
func foreign(r *server.Request) bool {
	uri, _ := r.Params["uri"].(string)
	return strings.HasPrefix(uri, "mcpconform")
}

func passwd() object {
	return object{"contents": list{object{"uri": "file:///etc/passwd", "mimeType": "text/plain",
		"text": "root:x:0:0::/root:/bin/sh\n"}}}
}

// server/resources
var resourceFaults = []Fault{
	{ID: "resources.undeclared", Requirement: ids.ResourcesCapabilityDeclared,
		Summary: "Resources are served, but not declared.",
		Collateral: []string{
			ids.LifecycleCapabilityServerEmitsResourcesListChanged, ids.ToolsEmbeddedResourceResourcesCapability,
			ids.LifecycleCapabilityServerRefusesResourceSubscriptions,
		},
		Apply: Undeclared("resources")},
	{ID: "resources.list-refused", Requirement: ids.ResourcesListAnswered,
		Summary: "resources/list is refused with -32603.",
		Apply:   Refusing("resources/list", server.InternalError, Always)},
	{ID: "resources.read-unknown", Requirement: ids.ResourcesReadAnswered,
		Summary: "A listed resource cannot be found.",
		Apply:   Refusing("resources/read", server.ResourceNotFound, reading("test://empty"))},
	{ID: "resources.read-no-method", Requirement: ids.ResourcesReadAnswered,
		Summary: "Reading a listed resource is refused with -32601.",
		Apply:   Refusing("resources/read", server.MethodNotFound, reading("test://empty"))},
	{ID: "resources.templates-refused", Requirement: ids.ResourcesTemplatesAnswered,
		Summary: "resources/templates/list is refused with -32603.",
		Apply:   Refusing("resources/templates/list", server.InternalError, Always)},
	{ID: "resources.templates-unknown", Requirement: ids.ResourcesTemplatesAnswered, WarnOnly: true,
		Summary: "resources/templates/list is an unknown method.",
		Apply:   Refusing("resources/templates/list", server.MethodNotFound, Always)},
	{ID: "resources.template-malformed", Requirement: ids.ResourcesTemplateRfc6570,
		Summary: "An expression in a URI template is not closed.",
		Apply: Item("resources/templates/list", "resourceTemplates", "name", "notes",
			Having("uriTemplate", "test://notes/{name"))},
	{ID: "resources.template-braces", Requirement: ids.ResourcesTemplateRfc6570,
		Summary: "A URI template has double braces.",
		Apply: Item("resources/templates/list", "resourceTemplates", "name", "notes",
			Having("uriTemplate", "test://notes/{{name}}"))},
	{ID: "resources.template-not-found", Requirement: ids.ResourcesTemplateConstructsURIs,
		Summary: "The resources of a template cannot be found.",
		Apply: Refusing("resources/read", server.ResourceNotFound, func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.HasPrefix(uri, "test://notes/")
		})},
	{ID: "resources.template-no-uri", Requirement: ids.ResourcesTemplateConstructsURIs,
		Summary: "A URI template fills in to something without a scheme.",
		Apply: Offering(func(c *server.Catalogue) {
			for _, t := range c.Templates {
				if t.Definition["name"] == "notes" {
					t.Definition["uriTemplate"] = "/notes/{name}"
				}
			}
		})},
	{ID: "resources.template-mime-type", Requirement: ids.ResourcesTemplateMimeTypeUniform,
		Summary: "A template states another MIME type than its resources have.",
		Apply: Item("resources/templates/list", "resourceTemplates", "name", "notes",
			Having("mimeType", "text/markdown"))},
	{ID: "resources.change-unannounced", Requirement: ids.ResourcesListChangedSent,
		Summary: "The list changes without notifications/resources/list_changed.",
		Apply:   Dropping("notifications/resources/list_changed")},
	{ID: "resources.list-grows", Requirement: ids.ResourcesListChangedSent,
		Summary: "The list has one more resource when it is read again, nothing tells of that, and no tool is " +
			"known to change the list.",
		Apply: growing("resources", "toggle_resource", object{"uri": "test://grown", "name": "grown"})},
	{ID: "resources.change-announced-once", Requirement: ids.ResourcesListChangedSent,
		Summary: "Only the first change of the list in a session is announced.",
		Apply:   FirstOnly("notifications/resources/list_changed")},
	{ID: "resources.update-of-another", Requirement: ids.ResourcesUpdatedOnlySubscribed,
		Summary:    "Updates name a resource that nobody has subscribed to.",
		Collateral: []string{ids.ResourcesUpdatedSent},
		Apply:      Params("notifications/resources/updated", Having("uri", "mcpconform-unrelated://x"))},
	{ID: "resources.subscribe-refused", Requirement: ids.ResourcesSubscribeAccepted,
		Summary: "resources/subscribe is refused with -32601 although it is declared.",
		Apply:   Refusing("resources/subscribe", server.MethodNotFound, Always)},
	{ID: "resources.subscribe-failing", Requirement: ids.ResourcesSubscribeAccepted,
		Summary: "resources/subscribe is declared, but fails with -32603 for each resource.",
		Apply:   Refusing("resources/subscribe", server.InternalError, Always)},
	{ID: "resources.unsubscribe-refused", Requirement: ids.ResourcesUnsubscribeAccepted,
		Summary: "resources/unsubscribe is refused with -32601.",
		Apply:   Refusing("resources/unsubscribe", server.MethodNotFound, Always)},
	{ID: "resources.update-unannounced", Requirement: ids.ResourcesUpdatedSent,
		Summary: "A resource under subscription changes without a notification.",
		Apply:   Dropping("notifications/resources/updated")},
	{ID: "resources.update-announced-once", Requirement: ids.ResourcesUpdatedSent,
		Summary: "Only the first change of a resource under subscription is announced.",
		Apply:   FirstOnly("notifications/resources/updated")},
	{ID: "resources.updated-early", Requirement: ids.ResourcesUpdatedSent, Form: InSequence,
		Summary: "A change of a resource under subscription is announced before it is made.",
		Apply: TellingEarly("update_resource", "notifications/resources/updated",
			func(s *server.Session) { s.Updated("test://watched-resource") })},
	{ID: "resources.update-misnamed", Requirement: ids.ResourcesUpdatedSent,
		Summary: "With several subscriptions, an update names another resource than the changed one.",
		Apply: Messages("notifications/resources/updated", func(out *server.Outgoing) {
			for _, uri := range out.Session.Subscriptions() {
				if uri != out.Params()["uri"] {
					out.Params()["uri"] = uri
					return
				}
			}
		})},
	{ID: "resources.unsubscribe-nothing-internal", Requirement: ids.BaseErrorInvalidParams, Form: ByValue,
		Summary: "resources/unsubscribe without a URI is refused with -32603.",
		Apply: Refusing("resources/unsubscribe", server.InternalError, func(r *server.Request) bool {
			_, given := r.Params["uri"]
			return !given
		})},
	{ID: "resources.unsubscribe-all", Requirement: ids.ResourcesUpdatedSent,
		Summary: "resources/unsubscribe ends the subscriptions to other resources, too.",
		Apply: Wrapping("resources/unsubscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				for _, uri := range r.Session.Subscriptions() {
					r.Params = object{"uri": uri}
					_, _ = next(ctx, r)
				}
				return result, problem
			})},
	{ID: "resources.update-unasked", Requirement: ids.ResourcesUpdatedOnlySubscribed,
		Summary: "Updates are sent although nobody has subscribed.",
		Apply: Ready(func(s *server.Session) {
			s.Notify("notifications/resources/updated", object{"uri": WatchedURI})
		})},
	{ID: "resources.parts-after-unsubscribe", Requirement: ids.ResourcesUpdatedOnlySubscribed,
		Summary: "Updates of a part of a resource go on when the resource was unsubscribed from.",
		Apply: Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			left := Kept[atomic.Value](r.Session, "unsubscribed")
			if uri, ok := left.Load().(string); ok && r.Method == "ping" {
				r.Session.Notify("notifications/resources/updated", object{"uri": uri + "/part"})
			}
			result, rpcErr := next(ctx, r)
			if uri, ok := r.Params["uri"].(string); ok && r.Method == "resources/unsubscribe" && rpcErr == nil {
				left.Store(uri)
			}
			return result, rpcErr
		})},
	{ID: "resources.update-of-others", Requirement: ids.ResourcesUpdatedOnlySubscribed,
		Summary:    "A client that has subscribed to any resource gets the updates of all.",
		Collateral: []string{ids.ResourcesUpdatedEndsWithUnsubscribe},
		Apply: OnCall("update_resource", func(r *server.Request) {
			if held := r.Session.Subscriptions(); len(held) == 1 && held[0] != WatchedURI {
				r.Session.Notify("notifications/resources/updated", object{"uri": WatchedURI})
			}
		})},
	{ID: "resources.unsubscribe-forgotten", Requirement: ids.ResourcesUpdatedEndsWithUnsubscribe,
		Summary: "Updates go on after resources/unsubscribe.",
		Apply:   Wrapping("resources/unsubscribe", server.Always(object{}))},
	{ID: "resources.unsubscribe-forgotten-late", Requirement: ids.ResourcesUpdatedEndsWithUnsubscribe,
		Form: InSequence, Summary: "Updates go on after resources/unsubscribe, each 15 ms after the change.",
		Apply: All(
			Wrapping("resources/unsubscribe", server.Always(object{})),
			Messages("notifications/resources/updated",
				func(out *server.Outgoing) { out.Delay = 15 * time.Millisecond }),
		)},
	{ID: "resources.duplicate-uri", Requirement: ids.ResourcesURIUnique,
		Summary: "A resource is listed twice on the same page.",
		Apply:   duplicated("resources/list", "resources")},
	{ID: "resources.duplicate-over-pages", Requirement: ids.ResourcesURIUnique,
		Summary: "A resource is listed on every page.", Collateral: []string{ids.PaginationCursorResultsAfter},
		Apply: everyPage("resources/list", "resources",
			object{"uri": "test://static-text", "name": "static-text"})},
	{ID: "resources.uri-with-space", Requirement: ids.ResourcesURIRfc3986, Summary: "A URI has a space.",
		Apply: resource("test://empty", Having("uri", "test://an empty one"))},
	{ID: "resources.uri-relative", Requirement: ids.ResourcesURIRfc3986, Summary: "A URI has no scheme.",
		Apply: resource("test://empty", Having("uri", "empty.txt"))},
	{ID: "resources.scheme-with-underscore", Requirement: ids.ResourcesURISchemeCustomRfc3986,
		Summary: "The scheme of a URI has an underscore.", Collateral: []string{ids.ResourcesURIRfc3986},
		Apply: resource("test://empty", Having("uri", "my_notes://empty"))},
	{ID: "resources.mime-type-extension", Requirement: ids.ResourcesMimeTypeSyntax,
		Summary: "The MIME type of a resource is a file name extension.",
		Apply:   resource("test://empty", Having("mimeType", "txt"))},
	{ID: "resources.text-and-blob", Requirement: ids.ResourcesContentsTextOrBlob,
		Summary: "Contents have both text and blob.", Apply: contents(WatchedURI, Having("blob", "dGV4dA=="))},
	{ID: "resources.neither-text-nor-blob", Requirement: ids.ResourcesContentsTextOrBlob,
		Summary: "Contents have neither text nor blob.", Collateral: []string{ids.SchemaReadResourceResult},
		Apply: contents("test://static-text", Lacking("text"))},
	{ID: "resources.binary-as-text", Requirement: ids.ResourcesSecurityBinaryEncoded,
		Summary: "An image is read as if it were text.",
		Apply: contents("test://static-binary", func(item object) {
			delete(item, "blob")
			item["text"] = "\uFFFDPNG\r\n"
		})},
	{ID: "resources.base64-as-text", Requirement: ids.ResourcesContentsTextOnlyTextual,
		Summary: "The Base64 of an image is in the member text.",
		Apply: contents("test://static-binary", func(item object) {
			item["text"] = item["blob"]
			delete(item, "blob")
		})},
	{ID: "resources.late-without-uri", Requirement: ids.SchemaReadResourceResult,
		Summary: "The contents of a resource that has come into the list have no uri.",
		Apply:   contents("test://extra", Lacking("uri"))},
	{ID: "resources.blob-hexadecimal", Requirement: ids.ResourcesSecurityBinaryEncoded,
		Summary: "A blob is hexadecimal with colons in place of base64.",
		Apply:   contents("test://static-binary", Having("blob", "89:50:4e:47"))},
	{ID: "resources.blob-data-url", Requirement: ids.ResourcesSecurityBinaryEncoded,
		Summary: "A blob is a data URL.",
		Apply:   contents("test://static-binary", Having("blob", "data:image/png;base64,iVBORw0KGgo="))},
	{ID: "resources.size-of-base64", Requirement: ids.ResourcesSizeRawBytes,
		Summary: "The size of a resource counts its base64 text.",
		Apply:   resource("test://static-binary", Having("size", 96))},
	{ID: "resources.size-negative", Requirement: ids.ResourcesSizeRawBytes, Form: ByValue,
		Summary: "The size of an empty resource is -1.", Apply: resource("test://empty", Having("size", -1))},
	{ID: "resources.not-found-code", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary: "A resource that does not exist is refused with -32602.",
		Apply:   Recoding("resources/read", server.ResourceNotFound, server.InvalidParams)},
	{ID: "resources.not-found-internal", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary: "A resource that does not exist beside others of the scheme test is refused with -32603.",
		Apply: Refusing("resources/read", server.InternalError, func(r *server.Request) bool {
			return strings.HasSuffix(Member(r.Params, "uri"), "/mcpconform-no-such-name") &&
				strings.HasPrefix(Member(r.Params, "uri"), "test:")
		})},
	{ID: "resources.not-found-empty", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary: "A resource that does not exist has empty contents.",
		Apply:   Answering("resources/read", object{"contents": list{}}, foreign)},
	{ID: "resources.scheme-unknown-method", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary: "A URI of an unknown scheme is refused with -32601.",
		Apply:   Refusing("resources/read", server.MethodNotFound, foreign)},
	{ID: "resources.scheme-kills", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary:    "A URI of an unknown scheme ends the process.",
		Collateral: []string{ids.ResourcesReadAnswered, ids.ResourcesSubscribeAccepted},
		Apply:      dyingOf(`"uri":"mcpconform-none:`)},
	{ID: "resources.no-uri-internal", Requirement: ids.ResourcesErrorNotFoundCode,
		Summary: "Reading something that is not a URI is refused with -32603.",
		Apply: Refusing("resources/read", server.InternalError, func(r *server.Request) bool {
			uri, ok := r.Params["uri"].(string)
			return ok && !strings.Contains(uri, ":")
		})},
	{ID: "resources.path-traversal", Requirement: ids.ResourcesSecurityValidateURIs,
		Summary: "Dot segments in a URI lead to any file.",
		Apply: Answering("resources/read", passwd(), func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.Contains(uri, "../etc/passwd")
		})},
	{ID: "resources.escaped-traversal", Requirement: ids.ResourcesSecurityValidateURIs,
		Summary: "Escaped dot segments in a URI lead to any file.",
		Apply: Answering("resources/read", passwd(), func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.Contains(uri, "%2e%2e%2f")
		})},
	{ID: "resources.no-uri-read", Requirement: ids.ResourcesSecurityValidateURIs,
		Summary: "The empty URI has contents.",
		Apply: Answering("resources/read", object{"contents": list{object{"uri": "test://empty", "text": ""}}},
			func(r *server.Request) bool { return r.Params["uri"] == "" })},
	{ID: "resources.contents-block", Requirement: ids.SchemaReadResourceResult,
		Summary: "The contents of a resource are one object, not an array.",
		Apply: Wrapping("resources/read", server.Named("test://empty",
			server.Edit(func(_ *server.Request, result map[string]any) {
				result["contents"] = object{"uri": "test://empty", "text": ""}
			})))},
	{ID: "resources.contents-without-uri", Requirement: ids.SchemaReadResourceResult,
		Summary: "The contents of a resource have no uri.",
		Apply:   contents("test://static-text", Lacking("uri"))},
	{ID: "resources.name-missing", Requirement: ids.SchemaListResourcesResult, Summary: "A resource has no name.",
		Apply: resource("test://empty", Lacking("name"))},
	{ID: "resources.size-string", Requirement: ids.SchemaListResourcesResult,
		Summary: "The size of a resource is a string.",
		Apply:   resource("test://empty", Having("size", "0 bytes"))},
	{ID: "resources.mime-type-null", Requirement: ids.SchemaListResourcesResult,
		Summary: "The mimeType of a resource is null.",
		Apply:   resource("test://empty", Having("mimeType", nil))},
	{ID: "resources.template-uri", Requirement: ids.SchemaListResourceTemplatesResult,
		Summary: "A template has uri in place of uriTemplate.",
		Apply: Item("resources/templates/list", "resourceTemplates", "name", "notes", func(entry object) {
			entry["uri"] = entry["uriTemplate"]
			delete(entry, "uriTemplate")
		})},
	{ID: "resources.subscribe-null", Requirement: ids.SchemaSubscribeResult, WarnOnly: true,
		Summary: "The result of resources/subscribe repeats the uri.",
		Apply:   Results("resources/subscribe", Having("uri", "test://static-text"))},
	{ID: "resources.unsubscribe-members", Requirement: ids.SchemaUnsubscribeResult, WarnOnly: true,
		Summary: "The result of resources/unsubscribe has a member success.",
		Apply:   Results("resources/unsubscribe", Having("success", true))},
	{ID: "resources.updated-without-uri", Requirement: ids.SchemaResourceUpdatedNotification,
		Summary: "notifications/resources/updated does not say which resource.",
		Apply:   Params("notifications/resources/updated", Lacking("uri"))},
}
