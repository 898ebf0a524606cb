package oddserver

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks"
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// servingTemplate adds a template, which leads to the same text whatever its variables are.
func servingTemplate(uriTemplate string) apply {
	before, _, _ := strings.Cut(uriTemplate, "{")
	complete := make(map[string]server.Completer)
	for _, expression := range expressions.FindAllStringSubmatch(uriTemplate, -1) {
		for variable := range strings.SplitSeq(expression[1], ",") {
			name, _, _ := strings.Cut(strings.TrimSuffix(variable, "*"), ":")
			complete[name] = func(string, map[string]string) []string { return nil }
		}
	}
	return Offering(func(c *server.Catalogue) {
		c.Templates = append(slices.Clip(c.Templates), &server.Template{
			Definition: object{"uriTemplate": uriTemplate, "name": uriTemplate},
			Match: func(uri string) (map[string]string, bool) {
				return map[string]string{"uri": uri}, strings.HasPrefix(uri, before)
			},
			Read: func(_ context.Context, _ *server.Request, variables map[string]string) ([]any, *wire.Error) {
				return list{object{"uri": variables["uri"], "text": "found"}}, nil
			},
			Complete: complete,
		})
	})
}

// expressions of a URI template, with their variables.
var expressions = regexp.MustCompile(`\{[+#./;?&]?([^}]*)\}`)

// coalescing holds an update of a resource back for a while, and sends one for all changes in that time, unless the
// subscription has ended.
func coalescing(by time.Duration) apply {
	const method = "notifications/resources/updated"
	type updatesKey struct{}
	updates := func(s *server.Session) *sync.Map {
		return Kept[sync.Map](s, updatesKey{})
	}
	return All(
		OnRequest("resources/unsubscribe", func(r *server.Request) { updates(r.Session).Delete(r.Params["uri"]) }),
		Withholding(method, func(out *server.Outgoing) bool {
			s, uri := out.Session, wire.At(out.Message, "params", "uri")
			if updates(s).CompareAndDelete(uri, "due") {
				return false
			}
			if _, waits := updates(s).LoadOrStore(uri, "waits"); !waits {
				time.AfterFunc(by, func() {
					if updates(s).CompareAndSwap(uri, "waits", "due") {
						s.Notify(method, object{"uri": uri})
					}
				})
			}
			return true
		}),
	)
}

// server/resources
var resourceOddities = []Oddity{
	odd("resources.updates-coalesced",
		"Updates of a resource are held back for 300 ms, and one is sent for all changes in that time.",
		"No sentence has each change announced alone, or at once.",
		"server/resources#subscriptions", coalescing(300*time.Millisecond)),
	odd("resources.subscriptions-undeclared",
		"Subscriptions are accepted, but not declared, and nothing is told of changes.",
		"A server that accepts more than it must offers nothing, and no sentence has it refuse the request.",
		"server/resources#capabilities",
		All(Capability("resources", Lacking("subscribe")), pardoned("resources/subscribe", object{}),
			pardoned("resources/unsubscribe", object{}), Dropping("notifications/resources/updated"))).
		Open("resources.subscribe.*", "resources.unsubscribe.*", "resources.updated.*", "schema.*").
		Replaces("capabilities"),
	odd("resources.any-spelling",
		"A URI that differs from that of a resource in two characters at most leads to that resource.",
		"The server decides which URIs lead to a resource.", "server/resources#resource", All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": DottedURI, "name": "notes", "mimeType": "text/plain"},
					Read:       ReadingText(DottedURI),
				})
			}),
			OnRequest("resources/read", func(r *server.Request) {
				if uri := Param(r, "uri"); len(uri) == len(DottedURI) {
					differing := 0
					for i := range uri {
						if uri[i] != DottedURI[i] {
							differing++
						}
					}
					if differing <= 2 {
						r.Params["uri"] = DottedURI
					}
				}
			}),
		)),
	odd("resources.beside-dots",
		"A resource that is not listed has the URI of another one, but for a dot, and the same text; so has one of "+
			"a template.", "There may be more resources than the list shows.", "server/resources#resource", All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": "test://minutes.v1/readme.txt", "name": "minutes",
						"mimeType": "text/plain"}, Read: ReadingText("test://minutes.v1/readme.txt"),
				})
				c.Templates = append(c.Templates,
					TemplateOf("test://{host}/readme.txt", regexp.MustCompile(`^test://([^/]+)/readme\.txt$`), "host"))
			}),
		)),
	odd("resources.template-query", "A template has a query that may be left out.",
		"A variable may be undefined (RFC 6570, section 2.3).", "server/resources#resource-templates",
		Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://reports/{id}{?format}",
				regexp.MustCompile(`^test://reports/([^/?]+)(?:\?format=(?:json|xml))?$`), "id"))
		})),
	odd("resources.minimal", "Resources have just uri and name, templates just uriTemplate and name.",
		"The other members are optional.", "schema#resource", All(keeping("resources/list", "resources", "uri", "name"),
			keeping("resources/templates/list", "resourceTemplates", "uriTemplate", "name"))).
		Open(ids.ResourcesSizeRawBytes, ids.ResourcesTemplateMimeTypeUniform).Replaces("resources"),
	odd("resources.no-mime-types", "Neither lists nor contents of resources name a MIME type.",
		"It is named if it is known.", "schema#textresourcecontents", All(
			Items("resources/list", "resources", Lacking("mimeType")),
			Items("resources/templates/list", "resourceTemplates", Lacking("mimeType")),
			Items("resources/read", "contents", Lacking("mimeType")))).Open(ids.ResourcesTemplateMimeTypeUniform),
	odd("resources.uris-odd",
		"URIs are of the schemes urn, data, mailto, tag, git and of one's own, with queries, fragments, IPv6, "+
			"escapes and without a path.", "Implementations are free to use any scheme, in accordance with RFC 3986.",
		"server/resources#common-uri-schemes",
		urisOf("urn:isbn:0451450523", "data:,Hello%2C%20World!", "mailto:john@example.com?subject=x",
			"tag:example.com,2025:a", "git://example.com/r.git?ref=main#README.md",
			"x-my+scheme-1.0://h", "memo:", "memo://[2001:db8::1]:8080/a;b=c/../d?q=%C3%A9&r=/?#frag",
			"memo://user@host//double//slash/", "memo:a:b@c!$&'()*+,;=")),
	odd("resources.uris-alike", "URIs differ in the case of their path, a final slash, or an escape alone.",
		"They are different URIs.", "server/resources#resource",
		urisOf("memo://host/a", "memo://host/A", "memo://host/a/", "memo://host/%61")),
	odd("resources.uris-of-files", "URIs of files have a drive, a host, escaped spaces, or name a folder.",
		"Resources of this scheme behave like a file system.", "server/resources#file://", All(
			urisOf("file:///C:/Users/a%20b/c.txt", "file://server/share/d", "file:///e/%C3%A9.md", "file:/f"),
			servingResource(object{"uri": "file:///g/", "name": "g", "mimeType": "inode/directory"},
				object{"uri": "file:///g/h", "mimeType": "text/plain", "text": "h"}),
		)),
	odd("resources.uri-long", "A URI has 5000 characters.", "The length of a URI has no limit.",
		"server/resources#resource", urisOf("memo://host/"+strings.Repeat("segment/", 625))),
	odd("resources.scheme-upper-case", "The scheme of a URI is written in capitals.", "RFC 3986 allows that.",
		"server/resources#custom-uri-schemes", urisOf("MEMO://Host/Path")),
	odd("resources.names-alike", "All resources have the same name, which is empty.", "Only the URI is unique.",
		"server/resources#resource", Items("resources/list", "resources", Having("name", ""))),
	odd("resources.mime-types-odd", "MIME types have parameters, trees, suffixes and capitals.",
		"The MIME type is any.", "schema#resource", All(
			typed("memo://1", `text/plain; charset="utf-8"; format=flowed`), typed("memo://2",
				"application/vnd.oasis.opendocument.text+xml"),
			typed("memo://3", "x-world/x-3dmf"), typed("memo://4", "Text/HTML;CHARSET=UTF-8"), typed("memo://5",
				"application/x.a-b_c!#$&^"),
		)),
	odd("resources.contents-empty", "Reading a resource gives no contents.",
		"The list of contents may be empty, as an empty folder is.", "schema#readresourceresult",
		servingResource(object{"uri": "memo://nothing", "name": "nothing"})),
	odd("resources.contents-many", "Reading a resource gives 100 contents, text and binary by turns.",
		"Contents are a list of either kind.", "schema#readresourceresult", func(o *server.Options) {
			servingResource(object{"uri": "memo://many/", "name": "many"}, manyContents()...)(o)
		}),
	odd("resources.contents-of-others",
		"Reading a resource gives the contents of resources below it, of other types than its own.",
		"Contents may be those of sub-resources.", "schema#readresourceresult",
		servingResource(object{"uri": "memo://above", "name": "above", "mimeType": "multipart/mixed"},
			object{"uri": "memo://above/1", "mimeType": "text/plain", "text": "1"},
			object{"uri": "memo://above/2", "mimeType": "image/png", "blob": binary(1)})),
	odd("resources.text-odd",
		"The text of a resource has U+0000, a byte order mark, line ends of all kinds and what is not a character.",
		"The text is any string.", "server/resources#text-content",
		servingResource(object{"uri": "memo://odd", "name": "odd"},
			object{"uri": "memo://odd", "text": "\uFEFF\x00\r\n\r\n\u2029\uFFFF\u202E"})),
	odd("resources.size-zero", "The size of a resource is 0, that of another a number beyond 2^40.",
		"The size is any number of bytes.", "schema#resource", All(
			servingResource(object{"uri": "memo://empty", "name": "empty", "size": 0},
				object{"uri": "memo://empty", "blob": ""}),
			refusedResource(object{"uri": "memo://disk", "name": "disk", "size": int64(1) << 41}),
		)),
	odd("resources.read-fails", "Reading a resource that is listed fails with -32603.", "The text names this error.",
		"server/resources#error-handling", refusedResource(object{"uri": "memo://locked", "name": "locked"})),
	odd("resources.read-slow", "Reading takes 300 ms.", "The text sets no time for an answer.",
		"basic/lifecycle#timeouts",
		delayed(300*time.Millisecond, func(r *server.Request) bool { return r.Method == "resources/read" })).
		Replaces("time"),
	odd("resources.clock", "The first resource differs at each reading, without a notification.",
		"Updates are for those who subscribe; what is read is as it is at the time.", "server/resources#subscriptions",
		Clock).Open(ids.ResourcesUpdatedSent, ids.ResourcesUpdatedEndsWithUnsubscribe).Replaces("resources"),
	odd("resources.ticking",
		"The first resource differs at each reading, and updates of it come every 300 ms while the client is "+
			"subscribed to it.", "Clients receive notifications when resources change, whatever changes them.",
		"server/resources#subscriptions", Ticking).Open(ids.ResourcesUpdatedEndsWithUnsubscribe).Replaces("resources"),
	odd("resources.subscribe-one", "Only one of the resources can be subscribed to; for the others it is refused.",
		"Clients can subscribe to specific resources.", "server/resources#subscriptions",
		Refusing("resources/subscribe", server.InvalidParams, func(r *server.Request) bool {
			uri, ok := r.Params["uri"].(string)
			return ok && uri != WatchedURI && strings.HasPrefix(uri, "test://")
		})).Open(ids.ResourcesUnsubscribeAccepted).Replaces("resources"),
	odd("resources.updates-idle",
		"Updates of resources under subscription come although nothing has changed, each twice.",
		"The notification says that the resource may need to be read again.", "schema#resourceupdatednotification", All(
			afterSubscribing(func(s *server.Session, uri string) { s.Updated(uri) }),
			Sending(server.OnMessage("notifications/resources/updated",
				func(out *server.Outgoing) []*server.Outgoing { return []*server.Outgoing{out, out.Clone()} })),
		)),
	odd("resources.updates-of-parts", "A subscription brings updates of resources below the one subscribed to.",
		"This might be a sub-resource of the one that the client actually subscribed to.",
		"schema#resourceupdatednotification", afterSubscribing(func(s *server.Session, uri string) {
			s.Notify("notifications/resources/updated", object{"uri": strings.TrimSuffix(uri, "/") + "/part"})
		})).Replaces("resources"),
	odd("resources.updates-late", "Updates come 300 ms after the change.", "The text sets no time for a notification.",
		"server/resources#subscriptions", Messages("notifications/resources/updated",
			func(out *server.Outgoing) { out.Delay = 300 * time.Millisecond })).Replaces("resources"),
	odd("resources.updates-soon",
		"Updates come 15 ms after the change, which may be after the end of the subscription.",
		"The text sets no time for a notification.", "server/resources#subscriptions",
		Messages("notifications/resources/updated",
			func(out *server.Outgoing) { out.Delay = 15 * time.Millisecond })).Replaces("resources"),
	odd("resources.updates-with-title", "Updates carry a title and more beside the URI.",
		"The params of notifications are open.", "basic/index#notifications",
		Params("notifications/resources/updated", Having("title", "Watched"))),
	odd("resources.not-found-bare", "The error for a resource that does not exist has no data and another message.",
		"The text names the code alone.", "server/resources#error-handling",
		Problems("resources/read", func(_ *server.Outgoing, problem object) {
			if IsCode(problem, server.ResourceNotFound) {
				delete(problem, "data")
				problem["message"] = "nope"
			}
		})),
	odd("resources.none", "There are neither resources nor templates, although the capability is declared.",
		"The lists may be empty.", "schema#listresourcesresult",
		All(unlinked, Offering(func(c *server.Catalogue) { c.Resources, c.Templates = nil, nil }))).
		Open(ids.LifecycleCapabilityServerEmitsResourceUpdates, ids.ToolsResourceLinkResolvable, "resources.*",
			ids.SchemaSubscribeResult, ids.SchemaUnsubscribeResult, ids.SchemaResourceUpdatedNotification),
	odd("resources.templates-alone", "There are templates and resources that can be read, but no resource is listed.",
		"The list may be empty.", "schema#listresourcesresult", Results("resources/list", func(result object) {
			result["resources"] = list{}
			delete(result, "nextCursor")
		})).
		Open(ids.LifecycleCapabilityServerEmitsResourceUpdates, "resources.*", ids.SchemaSubscribeResult,
			ids.SchemaUnsubscribeResult, ids.SchemaResourceUpdatedNotification),
	odd("resources.no-templates", "There are resources, but no templates.", "The list may be empty.",
		"schema#listresourcetemplatesresult", All(unlinked, Offering(func(c *server.Catalogue) { c.Templates = nil }))).
		Open(ids.ToolsResourceLinkResolvable, ids.ResourcesTemplateRfc6570, ids.ResourcesTemplateConstructsURIs,
			ids.ResourcesTemplateMimeTypeUniform).Replaces("templates and prompts"),
	odd("resources.templates-odd", "Templates use all operators and modifiers of RFC 6570, and one has no expression.",
		"A template is a URI template of RFC 6570.", "server/resources#resource-templates", All(
			servingTemplate("memo-1://{+path}"), servingTemplate("memo-2://h{/seg*}"),
			servingTemplate("memo-3://h/{name}{.ext}"), servingTemplate("memo-4://h/p{?q,lang}"),
			servingTemplate("memo-5://h/p{?x}{&more*}"), servingTemplate("memo-6://h/p{;a,b}"),
			servingTemplate("memo-7://h/p{#frag}"), servingTemplate("memo-8://h/{name:3}"),
			servingTemplate("memo-9://h/fixed"), servingTemplate("memo-10://{user%20name}/{a.b_c}"),
			servingTemplate("memo-11:{opaque}"))).Replaces("templates and prompts"),
	odd("resources.list-changes",
		"A resource comes and goes from one reading of the list to the next, each time with an announcement.",
		"The list may change at any time, with a notification.", "server/resources#list-changed-notification", All(
			whim("resources/list", "resources", object{"uri": "memo://now-and-then", "name": "now-and-then"}),
			Wrapping("resources/read", server.Named("memo://now-and-then",
				server.Always(object{"contents": list{object{"uri": "memo://now-and-then", "text": "here"}}}))),
		)).Replaces("pages"),
	odd("resources.changes-announced-idly",
		"Every ten seconds a change of the list of resources is announced, although there is none.",
		"The notification may be issued without any previous subscription.",
		"schema#resourcelistchangednotification", announcingIdly("resources")),
	odd("resources.order-changes", "Each reading of resources/list has the resources in another order.",
		"The order of a list means nothing.", "server/resources#listing-resources",
		All(paged(1000), Wrapping("resources/list", server.Edit(func(r *server.Request, result map[string]any) {
			items := result["resources"].(list)
			n := Count(r.Session, "order of resources") % len(items)
			result["resources"] = slices.Concat(items[n:], items[:n])
		})))).Open(ids.PaginationServerStableCursors, ids.PaginationCursorResultsAfter).Replaces("pages"),
}

// unlinked leaves out the tool that returns links to resources.
var unlinked = Offering(func(c *server.Catalogue) {
	c.Tools = slices.DeleteFunc(slices.Clone(c.Tools),
		func(t *server.Tool) bool { return t.Name() == "resource_links" })
})

// keeping leaves of the items of a list some members.
func keeping(method, member string, names ...string) apply {
	return Items(method, member, func(item object) {
		for name := range item {
			if !slices.Contains(names, name) {
				delete(item, name)
			}
		}
	})
}

func urisOf(uris ...string) apply {
	var changes []apply
	for _, uri := range uris {
		changes = append(changes, servingText(uri, "a resource"))
	}
	return All(changes...)
}

// typed adds a resource with a MIME type.
func typed(uri, mimeType string) apply {
	return servingResource(object{"uri": uri, "name": mimeType, "mimeType": mimeType},
		object{"uri": uri, "mimeType": mimeType, "text": mimeType})
}

// refusedResource adds a resource that cannot be read.
func refusedResource(definition object) apply {
	return All(servingResource(definition), Refusing("resources/read", server.InternalError,
		func(r *server.Request) bool { return r.Params["uri"] == definition["uri"] }))
}

func manyContents() []any {
	var contents []any
	for i := range 100 {
		content := object{"uri": fmt.Sprint("memo://many/", i), "text": fmt.Sprint(i)}
		if i%2 == 0 {
			delete(content, "text")
			content["blob"] = binary(i)
		}
		contents = append(contents, content)
	}
	return contents
}

// afterSubscribing does something for each subscription once it was answered.
func afterSubscribing(do func(s *server.Session, uri string)) apply {
	return Responses("resources/subscribe", func(out *server.Outgoing) {
		if uri, ok := out.Answers.Params["uri"].(string); ok && out.Kind == wire.Result {
			s := out.Session
			time.AfterFunc(time.Millisecond, func() {
				if s.Context().Err() == nil && slices.Contains(s.Subscriptions(), uri) {
					do(s, uri)
				}
			})
		}
	})
}

// server/prompts
var promptOddities = []Oddity{
	odd("prompts.minimal", "Prompts have just a name, their arguments too.",
		"The other members are optional; an argument that is not said to be required is optional.", "schema#prompt",
		Items("prompts/list", "prompts", func(prompt object) {
			for name := range prompt {
				if name != "name" && name != "arguments" {
					delete(prompt, name)
				}
			}
			for _, argument := range wire.Items(prompt, "arguments") {
				delete(argument.(object), "title")
				delete(argument.(object), "description")
				if argument.(object)["required"] == false {
					delete(argument.(object), "required")
				}
			}
		})).Replaces("prompts"),
	odd("prompts.arguments-empty", "Prompts without arguments have an empty list of them.", "The list may be empty.",
		"schema#prompt", Items("prompts/list", "prompts", Defaulting("arguments", list{}))),
	odd("prompts.names-odd", "Names of prompts and arguments have spaces, slashes, emojis, or 300 characters.",
		"Names are any strings.", "server/prompts#prompt", All(
			servingPrompt(object{"name": "/code review 🔎",
				"arguments": list{object{"name": "the code"}, object{"name": "语言", "required": false}}},
				saying("user", textBlock("Review."))),
			servingPrompt(object{"name": strings.Repeat("p", 300)}, saying("user", textBlock("Long."))),
			servingPrompt(object{"name": "TRAVEL"}, saying("user", textBlock("In capitals."))),
		)),
	odd("prompts.arguments-many", "A prompt has 60 arguments, half of them required.",
		"The number of arguments has no limit.", "schema#prompt",
		servingPrompt(object{"name": "many", "arguments": manyArguments()}, saying("user", textBlock("Many.")))),
	odd("prompts.messages-empty", "A prompt has no messages.", "The list may be empty.", "schema#getpromptresult",
		servingPrompt(object{"name": "silence"})),
	odd("prompts.roles", "A prompt begins with the assistant, another has 50 messages of the assistant alone.",
		"The role is either of the two, in any order.", "server/prompts#promptmessage", All(
			servingPrompt(object{"name": "assistant-first"}, saying("assistant", textBlock("Hi")),
				saying("user", textBlock("Hi")), saying("assistant", textBlock(""))),
			servingPrompt(object{"name": "assistant-alone"},
				slices.Repeat(list{saying("assistant", textBlock("…"))}, 50)...),
		)),
	odd("prompts.embedded-blob", "Prompts embed binary resources and link to others.",
		"Content is of any type, and resources hold text or blob.", "server/prompts#embedded-resources",
		servingPrompt(object{"name": "embedding"},
			saying("user", embeddedBlock(object{"uri": "resource://example", "mimeType": "application/pdf",
				"blob": binary(5)})),
			saying("user", linked("resource://other", "other")))),
	odd("prompts.description-differs", "prompts/get gives another description than the list, or none.",
		"The description is optional in both places.", "schema#getpromptresult",
		Wrapping("prompts/get", server.Edit(func(r *server.Request, result map[string]any) {
			delete(result, "description")
			if r.Params["name"] == "travel" {
				result["description"] = "A journey"
			}
		}))),
	odd("prompts.none", "There are no prompts, although the capability is declared.", "The list may be empty.",
		"schema#listpromptsresult", Offering(func(c *server.Catalogue) { c.Prompts = nil })).
		Open(ids.PromptsGetAnswered, ids.ContentEmbeddedMimeTypePresent, ids.PromptsErrorMissingArgumentCode,
			ids.PromptsArgumentsValidated, ids.PromptsGetArgumentsOmitted).Replaces("templates and prompts"),
	odd("prompts.none-served", "There are no prompts, and prompts/get does not exist.",
		"The list may be empty, and there is nothing to get.", "schema#listpromptsresult", All(
			Offering(func(c *server.Catalogue) { c.Prompts = nil }),
			Refusing("prompts/get", server.MethodNotFound, func(*server.Request) bool { return true }),
		)).Open("prompts.*", ids.ContentEmbeddedMimeTypePresent, ids.SchemaGetPromptResult).
		Replaces("templates and prompts"),
	odd("prompts.without-arguments", "No prompt has arguments.", "Arguments are optional.", "server/prompts#prompt",
		Offering(func(c *server.Catalogue) {
			c.Prompts = slices.DeleteFunc(slices.Clone(c.Prompts),
				func(p *server.Prompt) bool { return p.Definition["arguments"] != nil })
		})).
		Open(ids.ContentEmbeddedMimeTypePresent, ids.PromptsErrorMissingArgumentCode, ids.PromptsArgumentsValidated).
		Replaces("templates and prompts"),
	odd("prompts.unknown-arguments-refused",
		"prompts/get with arguments that the prompt does not have is refused with -32602.",
		"Servers SHOULD validate prompt arguments.",
		"server/prompts#implementation-considerations", Wrapping("prompts/get", refusingUnknownArguments)),
	odd("prompts.list-changes",
		"A prompt comes and goes from one reading of the list to the next, each time with an announcement.",
		"The list may change at any time, with a notification.", "server/prompts#list-changed-notification", All(
			whim("prompts/list", "prompts", object{"name": "now-and-then"}),
			Wrapping("prompts/get", server.Named("now-and-then",
				server.Always(object{"messages": list{saying("user", textBlock("here"))}}))),
		)).Replaces("pages"),
	odd("prompts.changes-announced-idly",
		"Every ten seconds a change of the prompts is announced, although there is none.",
		"The notification says that the list may be read again.",
		"server/prompts#list-changed-notification", announcingIdly("prompts")),
	odd("prompts.ask-roots", "prompts/get asks the client for its roots, if there are any.",
		"Servers can ask for roots when they need them.", "client/roots#listing-roots",
		Wrapping("prompts/get", server.Named("test_simple_prompt",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if r.Session.ClientHas("roots") {
					_, _ = r.Call(ctx, "roots/list", nil)
				}
				return next(ctx, r)
			}))),
}

func manyArguments() list {
	var arguments list
	for i := range 60 {
		arguments = append(arguments, object{"name": fmt.Sprintf("argument-%02d", i), "required": i%2 == 0})
	}
	return arguments
}

// refusingUnknownArguments refuses arguments that a prompt does not have.
func refusingUnknownArguments(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
	result, problem := next(ctx, r)
	given, _ := r.Params["arguments"].(object)
	for _, prompt := range server.DefaultCatalogue().Prompts {
		if prompt.Name() != r.Params["name"] {
			continue
		}
		known, _ := prompt.Definition["arguments"].(list)
		for name := range given {
			if !slices.ContainsFunc(known, func(a any) bool { return a.(object)["name"] == name }) {
				return nil, &wire.Error{Code: server.InvalidParams, Message: "Invalid params: unknown argument"}
			}
		}
	}
	return result, problem
}

// sampled changes the params of sampling requests.
func sampled(change func(params object)) apply { return Params("sampling/createMessage", change) }

// sampleable is a request of the server that any client can answer that samples.
func sampleable() object {
	return object{"messages": list{saying("user", textBlock("Say hello."))}, "maxTokens": 10}
}

// afterHandshake sends a request after the handshake, if the client has the capability.
func afterHandshake(capability, method string, params object) apply {
	return Ready(func(s *server.Session) {
		if s.ClientHas(capability) {
			_, _ = s.Call(s.Context(), method, Copied(params))
		}
	})
}

// eliciting asks for properties after the handshake, if the client can elicit.
func eliciting(message string, properties object, required ...any) apply {
	schema := object{"type": "object", "properties": properties}
	if required != nil {
		schema["required"] = required
	}
	return afterHandshake("elicitation", "elicitation/create", object{"message": message, "requestedSchema": schema})
}

// These oddities are requests of servers to clients.
var askingOddities = []Oddity{
	odd("roots.after-handshake", "The server asks for the roots right after the handshake.",
		"Servers ask for roots when they need them.", "client/roots#listing-roots",
		afterHandshake("roots", "roots/list", nil)),
	odd("roots.thrice-at-once", "The server asks for the roots three times at once.",
		"Requests need not wait for each other.", "basic/index#requests", Ready(func(s *server.Session) {
			if s.ClientHas("roots") {
				parallel(3, func() { _, _ = s.Call(s.Context(), "roots/list", nil) })
			}
		})),
	odd("roots.with-token", "roots/list has a progress token, which is an integer.",
		"The params of any request may have _meta.", "schema#listrootsrequest",
		afterHandshake("roots", "roots/list", object{"_meta": object{"progressToken": -7}})),
	odd("roots.refetched-late", "The roots are fetched again only when a tool needs them.",
		"The text does not say when a server has to look at the new list.", "client/roots#root-list-changes",
		Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != "notifications/roots/list_changed" {
				next()
			}
		})).Replaces("roots"),
	odd("sampling.minimal", "Sampling requests have just messages and maxTokens.", "The other members are optional.",
		"schema#createmessagerequest", sampled(func(p object) {
			for name := range p {
				if name != "messages" && name != "maxTokens" {
					delete(p, name)
				}
			}
		})).Open(ids.SamplingPreferencesPriorityRange).Replaces("sampling"),
	odd("sampling.preferences-odd",
		"Model preferences are empty, have hints without a name, many hints, and priorities of 0 and 1.",
		"All of their members are optional.", "schema#modelpreferences",
		Messages("sampling/createMessage", func(out *server.Outgoing) {
			out.Params()["modelPreferences"] = []any{
				object{}, object{"hints": list{}},
				object{"hints": list{object{}, object{"name": ""}, object{"name": "claude-3"},
					object{"x-family": "y"}}},
				object{"costPriority": 0, "speedPriority": 1, "intelligencePriority": 0.0},
			}[Count(out.Session, "preferences")%4]
		})).Replaces("sampling"),
	odd("sampling.values-odd",
		"Temperatures are 0 and 2, stop sequences empty, maxTokens a million, the system prompt empty, metadata of "+
			"any kind.", "The text sets no bounds.", "schema#createmessagerequest", sampled(func(p object) {
			p["temperature"], p["stopSequences"], p["maxTokens"], p["systemPrompt"], p["metadata"] = 2, list{"",
				"\n"}, 1_000_000, "", object{"a": list{nil}}
		})).Replaces("sampling"),
	odd("sampling.conversation", "A sampling request has twenty messages, of both roles, and ends with the assistant.",
		"The messages are a list of either role.", "schema#samplingmessage",
		afterHandshake("sampling", "sampling/createMessage", object{
			"messages":  slices.Repeat(list{saying("user", textBlock("a")), saying("assistant", textBlock("b"))}, 10),
			"maxTokens": 1, "includeContext": "allServers",
		})),
	odd("sampling.media", "A sampling request has an image and a sound, with annotations and metadata.",
		"Content is text, image or audio.", "client/sampling#data-types",
		afterHandshake("sampling", "sampling/createMessage", object{
			"messages": list{
				saying("user", object{"type": "image", "data": binary(2), "mimeType": "image/png",
					"annotations": object{"priority": 1}}),
				saying("user", object{"type": "audio", "data": binary(2), "mimeType": "audio/wav",
					"_meta": object{"com.example/k": 1}}),
			},
			"maxTokens": 100, "includeContext": "thisServer",
		})),
	odd("sampling.unasked", "The server samples right after the handshake.",
		"Servers can request sampling at any time in the operation phase.", "basic/lifecycle#operation",
		afterHandshake("sampling", "sampling/createMessage", sampleable())),
	odd("elicitation.no-properties", "An elicitation asks for nothing: its properties are empty.",
		"The properties are any number of primitive ones.", "schema#elicitrequest", eliciting("Proceed?", object{})),
	odd("elicitation.optional-properties", "All requested properties are optional, without titles and descriptions.",
		"These members are optional.", "client/elicitation#supported-schema-types",
		eliciting("Anything?", object{"a": object{"type": "string"}, "b": object{"type": "integer"},
			"c": object{"type": "number"}, "d": object{"type": "boolean"}})),
	odd("elicitation.many-properties", "An elicitation asks for 30 properties.",
		"The number of properties has no limit.", "client/elicitation#request-schema",
		eliciting("A long form", manyProperties(), "p00", "p29")),
	odd("elicitation.formats", "The requested properties have all formats and bounds that are supported.",
		"The text names them.", "client/elicitation#supported-schema-types", eliciting("Formats", object{
			"at": object{"type": "string", "format": "date-time"}, "on": object{"type": "string", "format": "date"},
			"uri":   object{"type": "string", "format": "uri"},
			"mail":  object{"type": "string", "format": "email"},
			"short": object{"type": "string", "minLength": 0, "maxLength": 1},
			"n":     object{"type": "integer", "minimum": -5, "maximum": -5},
			"x":     object{"type": "number", "minimum": 0.5},
		}, "at", "mail", "n")),
	odd("elicitation.enums", "Enums have one value, an empty one, and names that repeat or are missing.",
		"The names are for display, and optional.", "schema#enumschema", eliciting("Choose", object{
			"one":   object{"type": "string", "enum": list{"only"}},
			"empty": object{"type": "string", "enum": list{"", "a"}, "enumNames": list{"None", "None"}},
		}, "one")),
	odd("elicitation.defaults", "Booleans have defaults of either value.", "The default is optional.",
		"schema#booleanschema", eliciting("Defaults", object{"yes": object{"type": "boolean", "default": true},
			"no": object{"type": "boolean", "default": false}})),
	odd("elicitation.words",
		"An elicitation asks for passwordLength, tokenCount, whether to play Secret Santa, and for a secret that "+
			"its title explains.", "None of these is sensitive information.",
		"client/elicitation#security-considerations",
		eliciting("How shall the new password be generated? We never ask for it.", object{
			"passwordLength": object{"type": "integer", "title": "Length of the password", "minimum": 8},
			"tokenCount":     object{"type": "integer"},
			"secretSanta":    object{"type": "boolean", "title": "Take part in Secret Santa"},
			"secret":         object{"type": "string", "title": "Whom Santa has drawn"},
			"passwords":      object{"type": "number", "title": "Passwords"},
		})),
	odd("elicitation.names-odd", "Names of requested properties have spaces, emojis, dots, or are empty.",
		"Any string names a property.", "client/elicitation#request-schema",
		eliciting("Names", object{"first name": object{"type": "string"}, "名前 😀": object{"type": "string"},
			"a.b/c": object{"type": "boolean"}, "": object{"type": "integer"}}, "first name")),
	odd("elicitation.message-odd", "The message of an elicitation has several lines, markup and 5000 characters.",
		"The message is any string.", "schema#elicitrequest",
		eliciting("# Hello\n\n<b>Who</b> are you?\r\n"+strings.Repeat("…", 5000),
			object{"name": object{"type": "string"}})),
	odd("elicitation.gives-up-when-declined",
		"A tool whose elicitation is declined or cancelled reports an error in its result.",
		"Servers handle each action appropriately; failing is one way.", "client/elicitation#response-actions",
		FailingOn("test_elicitation", func(result object) bool {
			return result["action"] == "decline" || result["action"] == "cancel"
		})).Replaces("elicitation"),
	odd("elicitation.refused-when-declined",
		"A call whose elicitation is declined or cancelled is refused with an error of the server's own.",
		"Servers handle each action appropriately; an error is one way.", "client/elicitation#response-actions",
		All(Overhearing(), WrappingTool("test_elicitation",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := Failing(func(result object) bool {
					return result["action"] == "decline" || result["action"] == "cancel"
				})(ctx, r, next)
				if o, ok := result.(object); ok && o["isError"] == true {
					return nil, &wire.Error{Code: -32001, Message: "The user has declined"}
				}
				return result, problem
			}))).Replaces("elicitation"),
}

func manyProperties() object {
	properties := object{}
	for i := range 30 {
		properties[fmt.Sprintf("p%02d", i)] = object{"type": "string", "title": fmt.Sprint("Property ", i)}
	}
	return properties
}

// pardoned answers refused requests of a method with a result.
func pardoned(method string, result object) apply { return Wrapping(method, Pardoning(result)) }
