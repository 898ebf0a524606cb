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
	fault("resources.undeclared", ids.ResourcesCapabilityDeclared, "Resources are served, but not declared.",
		Undeclared("resources")).
		Also(ids.LifecycleCapabilityServerEmitsResourcesListChanged, ids.ToolsEmbeddedResourceResourcesCapability,
			ids.LifecycleCapabilityServerRefusesResourceSubscriptions),
	fault("resources.list-refused", ids.ResourcesListAnswered, "resources/list is refused with -32603.",
		Refusing("resources/list", server.InternalError, Always)),
	fault("resources.read-unknown", ids.ResourcesReadAnswered, "A listed resource cannot be found.",
		Refusing("resources/read", server.ResourceNotFound, reading("test://empty"))),
	fault("resources.read-no-method", ids.ResourcesReadAnswered, "Reading a listed resource is refused with -32601.",
		Refusing("resources/read", server.MethodNotFound, reading("test://empty"))),
	fault("resources.templates-refused", ids.ResourcesTemplatesAnswered,
		"resources/templates/list is refused with -32603.",
		Refusing("resources/templates/list", server.InternalError, Always)),
	fault("resources.templates-unknown", ids.ResourcesTemplatesAnswered,
		"resources/templates/list is an unknown method.",
		Refusing("resources/templates/list", server.MethodNotFound, Always)).Warns(),
	fault("resources.template-malformed", ids.ResourcesTemplateRfc6570,
		"An expression in a URI template is not closed.",
		Item("resources/templates/list", "resourceTemplates", "name", "notes",
			Having("uriTemplate", "test://notes/{name"))),
	fault("resources.template-braces", ids.ResourcesTemplateRfc6570, "A URI template has double braces.",
		Item("resources/templates/list", "resourceTemplates", "name", "notes",
			Having("uriTemplate", "test://notes/{{name}}"))),
	fault("resources.template-not-found", ids.ResourcesTemplateConstructsURIs,
		"The resources of a template cannot be found.",
		Refusing("resources/read", server.ResourceNotFound, func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.HasPrefix(uri, "test://notes/")
		})),
	fault("resources.template-no-uri", ids.ResourcesTemplateConstructsURIs,
		"A URI template fills in to something without a scheme.", Offering(func(c *server.Catalogue) {
			for _, t := range c.Templates {
				if t.Definition["name"] == "notes" {
					t.Definition["uriTemplate"] = "/notes/{name}"
				}
			}
		})),
	fault("resources.template-mime-type", ids.ResourcesTemplateMimeTypeUniform,
		"A template states another MIME type than its resources have.",
		Item("resources/templates/list", "resourceTemplates", "name", "notes", Having("mimeType", "text/markdown"))),
	fault("resources.change-unannounced", ids.ResourcesListChangedSent,
		"The list changes without notifications/resources/list_changed.",
		Dropping("notifications/resources/list_changed")),
	fault("resources.list-grows", ids.ResourcesListChangedSent,
		"The list has one more resource when it is read again, nothing tells of that, and no tool is known to "+
			"change the list.",
		growing("resources", "toggle_resource", object{"uri": "test://grown", "name": "grown"})),
	fault("resources.change-announced-once", ids.ResourcesListChangedSent,
		"Only the first change of the list in a session is announced.",
		FirstOnly("notifications/resources/list_changed")),
	fault("resources.update-of-another", ids.ResourcesUpdatedOnlySubscribed,
		"Updates name a resource that nobody has subscribed to.",
		Params("notifications/resources/updated", Having("uri", "mcpconform-unrelated://x"))).
		Also(ids.ResourcesUpdatedSent),
	fault("resources.subscribe-refused", ids.ResourcesSubscribeAccepted,
		"resources/subscribe is refused with -32601 although it is declared.",
		Refusing("resources/subscribe", server.MethodNotFound, Always)),
	fault("resources.subscribe-failing", ids.ResourcesSubscribeAccepted,
		"resources/subscribe is declared, but fails with -32603 for each resource.",
		Refusing("resources/subscribe", server.InternalError, Always)),
	fault("resources.unsubscribe-refused", ids.ResourcesUnsubscribeAccepted,
		"resources/unsubscribe is refused with -32601.",
		Refusing("resources/unsubscribe", server.MethodNotFound, Always)),
	fault("resources.update-unannounced", ids.ResourcesUpdatedSent,
		"A resource under subscription changes without a notification.", Dropping("notifications/resources/updated")),
	fault("resources.update-announced-once", ids.ResourcesUpdatedSent,
		"Only the first change of a resource under subscription is announced.",
		FirstOnly("notifications/resources/updated")),
	fault("resources.updated-early", ids.ResourcesUpdatedSent,
		"A change of a resource under subscription is announced before it is made.",
		TellingEarly("update_resource", "notifications/resources/updated",
			func(s *server.Session) { s.Updated("test://watched-resource") })).Seen(InSequence),
	fault("resources.update-misnamed", ids.ResourcesUpdatedSent,
		"With several subscriptions, an update names another resource than the changed one.",
		Messages("notifications/resources/updated", func(out *server.Outgoing) {
			for _, uri := range out.Session.Subscriptions() {
				if uri != out.Params()["uri"] {
					out.Params()["uri"] = uri
					return
				}
			}
		})),
	fault("resources.unsubscribe-nothing-internal", ids.BaseErrorInvalidParams,
		"resources/unsubscribe without a URI is refused with -32603.",
		Refusing("resources/unsubscribe", server.InternalError, func(r *server.Request) bool {
			_, given := r.Params["uri"]
			return !given
		})).Seen(ByValue),
	fault("resources.unsubscribe-all", ids.ResourcesUpdatedSent,
		"resources/unsubscribe ends the subscriptions to other resources, too.", Wrapping("resources/unsubscribe",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := next(ctx, r)
				for _, uri := range r.Session.Subscriptions() {
					r.Params = object{"uri": uri}
					_, _ = next(ctx, r)
				}
				return result, problem
			})),
	fault("resources.update-unasked", ids.ResourcesUpdatedOnlySubscribed,
		"Updates are sent although nobody has subscribed.",
		Ready(func(s *server.Session) { s.Notify("notifications/resources/updated", object{"uri": WatchedURI}) })),
	fault("resources.parts-after-unsubscribe", ids.ResourcesUpdatedOnlySubscribed,
		"Updates of a part of a resource go on when the resource was unsubscribed from.",
		Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			left := Kept[atomic.Value](r.Session, "unsubscribed")
			if uri, ok := left.Load().(string); ok && r.Method == "ping" {
				r.Session.Notify("notifications/resources/updated", object{"uri": uri + "/part"})
			}
			result, rpcErr := next(ctx, r)
			if uri, ok := r.Params["uri"].(string); ok && r.Method == "resources/unsubscribe" && rpcErr == nil {
				left.Store(uri)
			}
			return result, rpcErr
		})),
	fault("resources.update-of-others", ids.ResourcesUpdatedOnlySubscribed,
		"A client that has subscribed to any resource gets the updates of all.",
		OnCall("update_resource", func(r *server.Request) {
			if held := r.Session.Subscriptions(); len(held) == 1 && held[0] != WatchedURI {
				r.Session.Notify("notifications/resources/updated", object{"uri": WatchedURI})
			}
		})).Also(ids.ResourcesUpdatedEndsWithUnsubscribe),
	fault("resources.unsubscribe-forgotten", ids.ResourcesUpdatedEndsWithUnsubscribe,
		"Updates go on after resources/unsubscribe.", Wrapping("resources/unsubscribe", server.Always(object{}))),
	fault("resources.unsubscribe-forgotten-late", ids.ResourcesUpdatedEndsWithUnsubscribe,
		"Updates go on after resources/unsubscribe, each 15 ms after the change.", All(
			Wrapping("resources/unsubscribe", server.Always(object{})),
			Messages("notifications/resources/updated",
				func(out *server.Outgoing) { out.Delay = 15 * time.Millisecond }),
		)).Seen(InSequence),
	fault("resources.duplicate-uri", ids.ResourcesURIUnique, "A resource is listed twice on the same page.",
		duplicated("resources/list", "resources")),
	fault("resources.duplicate-over-pages", ids.ResourcesURIUnique, "A resource is listed on every page.",
		everyPage("resources/list", "resources",
			object{"uri": "test://static-text", "name": "static-text"})).Also(ids.PaginationCursorResultsAfter),
	fault("resources.uri-with-space", ids.ResourcesURIRfc3986, "A URI has a space.",
		resource("test://empty", Having("uri", "test://an empty one"))),
	fault("resources.uri-relative", ids.ResourcesURIRfc3986, "A URI has no scheme.",
		resource("test://empty", Having("uri", "empty.txt"))),
	fault("resources.scheme-with-underscore", ids.ResourcesURISchemeCustomRfc3986,
		"The scheme of a URI has an underscore.", resource("test://empty", Having("uri", "my_notes://empty"))).
		Also(ids.ResourcesURIRfc3986),
	fault("resources.mime-type-extension", ids.ResourcesMimeTypeSyntax,
		"The MIME type of a resource is a file name extension.", resource("test://empty", Having("mimeType", "txt"))),
	fault("resources.text-and-blob", ids.ResourcesContentsTextOrBlob, "Contents have both text and blob.",
		contents(WatchedURI, Having("blob", "dGV4dA=="))),
	fault("resources.neither-text-nor-blob", ids.ResourcesContentsTextOrBlob, "Contents have neither text nor blob.",
		contents("test://static-text", Lacking("text"))).Also(ids.SchemaReadResourceResult),
	fault("resources.binary-as-text", ids.ResourcesSecurityBinaryEncoded, "An image is read as if it were text.",
		contents("test://static-binary", func(item object) {
			delete(item, "blob")
			item["text"] = "\uFFFDPNG\r\n"
		})),
	fault("resources.base64-as-text", ids.ResourcesContentsTextOnlyTextual,
		"The Base64 of an image is in the member text.", contents("test://static-binary", Renamed("blob", "text"))),
	fault("resources.late-without-uri", ids.SchemaReadResourceResult,
		"The contents of a resource that has come into the list have no uri.",
		contents("test://extra", Lacking("uri"))),
	fault("resources.blob-hexadecimal", ids.ResourcesSecurityBinaryEncoded,
		"A blob is hexadecimal with colons in place of base64.",
		contents("test://static-binary", Having("blob", "89:50:4e:47"))),
	fault("resources.blob-data-url", ids.ResourcesSecurityBinaryEncoded, "A blob is a data URL.",
		contents("test://static-binary", Having("blob", "data:image/png;base64,iVBORw0KGgo="))),
	fault("resources.size-of-base64", ids.ResourcesSizeRawBytes, "The size of a resource counts its base64 text.",
		resource("test://static-binary", Having("size", 96))),
	fault("resources.size-negative", ids.ResourcesSizeRawBytes, "The size of an empty resource is -1.",
		resource("test://empty", Having("size", -1))).Seen(ByValue),
	fault("resources.not-found-code", ids.ResourcesErrorNotFoundCode,
		"A resource that does not exist is refused with -32602.",
		Recoding("resources/read", server.ResourceNotFound, server.InvalidParams)),
	fault("resources.not-found-internal", ids.ResourcesErrorNotFoundCode,
		"A resource that does not exist beside others of the scheme test is refused with -32603.",
		Refusing("resources/read", server.InternalError, func(r *server.Request) bool {
			return strings.HasSuffix(Member(r.Params, "uri"), "/mcpconform-no-such-name") &&
				strings.HasPrefix(Member(r.Params, "uri"), "test:")
		})),
	fault("resources.not-found-empty", ids.ResourcesErrorNotFoundCode,
		"A resource that does not exist has empty contents.",
		Answering("resources/read", object{"contents": list{}}, foreign)),
	fault("resources.scheme-unknown-method", ids.ResourcesErrorNotFoundCode,
		"A URI of an unknown scheme is refused with -32601.",
		Refusing("resources/read", server.MethodNotFound, foreign)),
	fault("resources.scheme-kills", ids.ResourcesErrorNotFoundCode, "A URI of an unknown scheme ends the process.",
		dyingOf(`"uri":"mcpconform-none:`)).Also(ids.ResourcesReadAnswered, ids.ResourcesSubscribeAccepted),
	fault("resources.no-uri-internal", ids.ResourcesErrorNotFoundCode,
		"Reading something that is not a URI is refused with -32603.",
		Refusing("resources/read", server.InternalError, func(r *server.Request) bool {
			uri, ok := r.Params["uri"].(string)
			return ok && !strings.Contains(uri, ":")
		})),
	fault("resources.path-traversal", ids.ResourcesSecurityValidateURIs, "Dot segments in a URI lead to any file.",
		Answering("resources/read", passwd(), func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.Contains(uri, "../etc/passwd")
		})),
	fault("resources.escaped-traversal", ids.ResourcesSecurityValidateURIs,
		"Escaped dot segments in a URI lead to any file.",
		Answering("resources/read", passwd(), func(r *server.Request) bool {
			uri, _ := r.Params["uri"].(string)
			return strings.Contains(uri, "%2e%2e%2f")
		})),
	fault("resources.no-uri-read", ids.ResourcesSecurityValidateURIs, "The empty URI has contents.",
		Answering("resources/read", object{"contents": list{object{"uri": "test://empty", "text": ""}}},
			func(r *server.Request) bool { return r.Params["uri"] == "" })),
	fault("resources.contents-block", ids.SchemaReadResourceResult,
		"The contents of a resource are one object, not an array.",
		Wrapping("resources/read", server.Named("test://empty",
			server.Edit(func(_ *server.Request, result map[string]any) {
				result["contents"] = object{"uri": "test://empty", "text": ""}
			})))),
	fault("resources.contents-without-uri", ids.SchemaReadResourceResult, "The contents of a resource have no uri.",
		contents("test://static-text", Lacking("uri"))),
	fault("resources.name-missing", ids.SchemaListResourcesResult, "A resource has no name.",
		resource("test://empty", Lacking("name"))),
	fault("resources.size-string", ids.SchemaListResourcesResult, "The size of a resource is a string.",
		resource("test://empty", Having("size", "0 bytes"))),
	fault("resources.mime-type-null", ids.SchemaListResourcesResult, "The mimeType of a resource is null.",
		resource("test://empty", Having("mimeType", nil))),
	fault("resources.template-uri", ids.SchemaListResourceTemplatesResult,
		"A template has uri in place of uriTemplate.",
		Item("resources/templates/list", "resourceTemplates", "name", "notes", Renamed("uriTemplate", "uri"))),
	fault("resources.subscribe-null", ids.SchemaSubscribeResult, "The result of resources/subscribe repeats the uri.",
		Results("resources/subscribe", Having("uri", "test://static-text"))).Warns(),
	fault("resources.unsubscribe-members", ids.SchemaUnsubscribeResult,
		"The result of resources/unsubscribe has a member success.",
		Results("resources/unsubscribe", Having("success", true))).Warns(),
	fault("resources.updated-without-uri", ids.SchemaResourceUpdatedNotification,
		"notifications/resources/updated does not say which resource.",
		Params("notifications/resources/updated", Lacking("uri"))),
}
