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
	{ID: "resources.updates-coalesced",
		Summary: "Updates of a resource are held back for 300 ms, and one is sent for all changes in that time.",
		Why:     "No sentence has each change announced alone, or at once.",
		Source:  at("server/resources#subscriptions"), Apply: coalescing(300 * time.Millisecond)},
	{ID: "resources.subscriptions-undeclared",
		Summary: "Subscriptions are accepted, but not declared, and nothing is told of changes.",
		Why:     "A server that accepts more than it must offers nothing, and no sentence has it refuse the request.",
		Source:  at("server/resources#capabilities"),
		Untried: []string{"resources.subscribe.*", "resources.unsubscribe.*", "resources.updated.*", "schema.*"},
		Changes: "capabilities",
		Apply: All(Capability("resources", Lacking("subscribe")), pardoned("resources/subscribe", object{}),
			pardoned("resources/unsubscribe", object{}),
			Dropping("notifications/resources/updated"))},
	{ID: "resources.any-spelling",
		Summary: "A URI that differs from that of a resource in two characters at most leads to that resource.",
		Why:     "The server decides which URIs lead to a resource.", Source: at("server/resources#resource"),
		Apply: All(
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
		)},
	{ID: "resources.beside-dots",
		Summary: "A resource that is not listed has the URI of another one, but for a dot, and the same text; " +
			"so has one of a template.",
		Why: "There may be more resources than the list shows.", Source: at("server/resources#resource"),
		Apply: All(
			Offering(func(c *server.Catalogue) {
				c.Resources = append(c.Resources, &server.Resource{
					Definition: object{"uri": "test://minutes.v1/readme.txt", "name": "minutes",
						"mimeType": "text/plain"}, Read: ReadingText("test://minutes.v1/readme.txt"),
				})
				c.Templates = append(c.Templates,
					TemplateOf("test://{host}/readme.txt", regexp.MustCompile(`^test://([^/]+)/readme\.txt$`), "host"))
			}),
		)},
	{ID: "resources.template-query", Summary: "A template has a query that may be left out.",
		Why:    "A variable may be undefined (RFC 6570, section 2.3).",
		Source: at("server/resources#resource-templates"),
		Apply: Offering(func(c *server.Catalogue) {
			c.Templates = append(c.Templates, TemplateOf("test://reports/{id}{?format}",
				regexp.MustCompile(`^test://reports/([^/?]+)(?:\?format=(?:json|xml))?$`), "id"))
		})},
	{ID: "resources.minimal", Summary: "Resources have just uri and name, templates just uriTemplate and name.",
		Why: "The other members are optional.", Source: at("schema#resource"),
		Untried: []string{ids.ResourcesSizeRawBytes, ids.ResourcesTemplateMimeTypeUniform},
		Changes: "resources",
		Apply: All(keeping("resources/list", "resources", "uri", "name"),
			keeping("resources/templates/list", "resourceTemplates", "uriTemplate", "name"))},
	{ID: "resources.no-mime-types", Summary: "Neither lists nor contents of resources name a MIME type.",
		Why: "It is named if it is known.", Source: at("schema#textresourcecontents"),
		Untried: []string{ids.ResourcesTemplateMimeTypeUniform},
		Apply: All(
			Items("resources/list", "resources", Lacking("mimeType")),
			Items("resources/templates/list", "resourceTemplates", Lacking("mimeType")),
			Items("resources/read", "contents", Lacking("mimeType")),
		)},
	{ID: "resources.uris-odd",
		Summary: "URIs are of the schemes urn, data, mailto, tag, git and of one's own, with queries, fragments, " +
			"IPv6, escapes and without a path.",
		Why:    "Implementations are free to use any scheme, in accordance with RFC 3986.",
		Source: at("server/resources#common-uri-schemes"),
		Apply: urisOf("urn:isbn:0451450523", "data:,Hello%2C%20World!", "mailto:john@example.com?subject=x",
			"tag:example.com,2025:a", "git://example.com/r.git?ref=main#README.md",
			"x-my+scheme-1.0://h", "memo:", "memo://[2001:db8::1]:8080/a;b=c/../d?q=%C3%A9&r=/?#frag",
			"memo://user@host//double//slash/", "memo:a:b@c!$&'()*+,;="),
	},
	{ID: "resources.uris-alike", Summary: "URIs differ in the case of their path, a final slash, or an escape alone.",
		Why: "They are different URIs.", Source: at("server/resources#resource"),
		Apply: urisOf("memo://host/a", "memo://host/A", "memo://host/a/", "memo://host/%61")},
	{ID: "resources.uris-of-files", Summary: "URIs of files have a drive, a host, escaped spaces, or name a folder.",
		Why: "Resources of this scheme behave like a file system.", Source: at("server/resources#file://"),
		Apply: All(
			urisOf("file:///C:/Users/a%20b/c.txt", "file://server/share/d", "file:///e/%C3%A9.md", "file:/f"),
			servingResource(object{"uri": "file:///g/", "name": "g", "mimeType": "inode/directory"},
				object{"uri": "file:///g/h", "mimeType": "text/plain", "text": "h"}),
		)},
	{ID: "resources.uri-long", Summary: "A URI has 5000 characters.", Why: "The length of a URI has no limit.",
		Source: at("server/resources#resource"),
		Apply:  urisOf("memo://host/" + strings.Repeat("segment/", 625))},
	{ID: "resources.scheme-upper-case", Summary: "The scheme of a URI is written in capitals.",
		Why: "RFC 3986 allows that.", Source: at("server/resources#custom-uri-schemes"),
		Apply: urisOf("MEMO://Host/Path")},
	{ID: "resources.names-alike", Summary: "All resources have the same name, which is empty.",
		Why: "Only the URI is unique.", Source: at("server/resources#resource"),
		Apply: Items("resources/list", "resources", Having("name", ""))},
	{ID: "resources.mime-types-odd", Summary: "MIME types have parameters, trees, suffixes and capitals.",
		Why: "The MIME type is any.", Source: at("schema#resource"),
		Apply: All(
			typed("memo://1", `text/plain; charset="utf-8"; format=flowed`), typed("memo://2",
				"application/vnd.oasis.opendocument.text+xml"),
			typed("memo://3", "x-world/x-3dmf"), typed("memo://4", "Text/HTML;CHARSET=UTF-8"), typed("memo://5",
				"application/x.a-b_c!#$&^"),
		)},
	{ID: "resources.contents-empty", Summary: "Reading a resource gives no contents.",
		Why:    "The list of contents may be empty, as an empty folder is.",
		Source: at("schema#readresourceresult"),
		Apply:  servingResource(object{"uri": "memo://nothing", "name": "nothing"})},
	{ID: "resources.contents-many", Summary: "Reading a resource gives 100 contents, text and binary by turns.",
		Why: "Contents are a list of either kind.", Source: at("schema#readresourceresult"),
		Apply: func(o *server.Options) {
			servingResource(object{"uri": "memo://many/", "name": "many"}, manyContents()...)(o)
		}},
	{ID: "resources.contents-of-others",
		Summary: "Reading a resource gives the contents of resources below it, of other types than its own.",
		Why:     "Contents may be those of sub-resources.", Source: at("schema#readresourceresult"),
		Apply: servingResource(object{"uri": "memo://above", "name": "above", "mimeType": "multipart/mixed"},
			object{"uri": "memo://above/1", "mimeType": "text/plain", "text": "1"},
			object{"uri": "memo://above/2", "mimeType": "image/png", "blob": binary(1)})},
	{ID: "resources.text-odd",
		Summary: "The text of a resource has U+0000, a byte order mark, line ends of all kinds and what is not " +
			"a character.",
		Why: "The text is any string.", Source: at("server/resources#text-content"),
		Apply: servingResource(object{"uri": "memo://odd", "name": "odd"},
			object{"uri": "memo://odd", "text": "\uFEFF\x00\r\n\r\n\u2029\uFFFF\u202E"})},
	{ID: "resources.size-zero", Summary: "The size of a resource is 0, that of another a number beyond 2^40.",
		Why: "The size is any number of bytes.", Source: at("schema#resource"),
		Apply: All(
			servingResource(object{"uri": "memo://empty", "name": "empty", "size": 0},
				object{"uri": "memo://empty", "blob": ""}),
			refusedResource(object{"uri": "memo://disk", "name": "disk", "size": int64(1) << 41}),
		)},
	{ID: "resources.read-fails", Summary: "Reading a resource that is listed fails with -32603.",
		Why: "The text names this error.", Source: at("server/resources#error-handling"),
		Apply: refusedResource(object{"uri": "memo://locked", "name": "locked"})},
	{ID: "resources.read-slow", Summary: "Reading takes 300 ms.", Why: "The text sets no time for an answer.",
		Source: at("basic/lifecycle#timeouts"), Changes: "time",
		Apply: delayed(300*time.Millisecond, func(r *server.Request) bool { return r.Method == "resources/read" })},
	{ID: "resources.clock", Summary: "The first resource differs at each reading, without a notification.",
		Why:     "Updates are for those who subscribe; what is read is as it is at the time.",
		Source:  at("server/resources#subscriptions"),
		Untried: []string{ids.ResourcesUpdatedSent, ids.ResourcesUpdatedEndsWithUnsubscribe},
		Changes: "resources", Apply: Clock},
	{ID: "resources.ticking",
		Summary: "The first resource differs at each reading, and updates of it come every 300 ms while the " +
			"client is subscribed to it.",
		Why:     "Clients receive notifications when resources change, whatever changes them.",
		Source:  at("server/resources#subscriptions"),
		Untried: []string{ids.ResourcesUpdatedEndsWithUnsubscribe}, Changes: "resources", Apply: Ticking},
	{ID: "resources.subscribe-one",
		Summary: "Only one of the resources can be subscribed to; for the others it is refused.",
		Why:     "Clients can subscribe to specific resources.", Source: at("server/resources#subscriptions"),
		Untried: []string{ids.ResourcesUnsubscribeAccepted}, Changes: "resources",
		Apply: Refusing("resources/subscribe", server.InvalidParams, func(r *server.Request) bool {
			uri, ok := r.Params["uri"].(string)
			return ok && uri != WatchedURI && strings.HasPrefix(uri, "test://")
		})},
	{ID: "resources.updates-idle",
		Summary: "Updates of resources under subscription come although nothing has changed, each twice.",
		Why:     "The notification says that the resource may need to be read again.",
		Source:  at("schema#resourceupdatednotification"),
		Apply: All(
			afterSubscribing(func(s *server.Session, uri string) { s.Updated(uri) }),
			Sending(server.OnMessage("notifications/resources/updated", func(out *server.Outgoing) []*server.Outgoing {
				return []*server.Outgoing{out, out.Clone()}
			})),
		)},
	{ID: "resources.updates-of-parts",
		Summary: "A subscription brings updates of resources below the one subscribed to.",
		Why:     "This might be a sub-resource of the one that the client actually subscribed to.",
		Source:  at("schema#resourceupdatednotification"), Changes: "resources",
		Apply: afterSubscribing(func(s *server.Session, uri string) {
			s.Notify("notifications/resources/updated", object{"uri": strings.TrimSuffix(uri, "/") + "/part"})
		})},
	{ID: "resources.updates-late", Summary: "Updates come 300 ms after the change.",
		Why: "The text sets no time for a notification.", Source: at("server/resources#subscriptions"),
		Changes: "resources",
		Apply: Messages("notifications/resources/updated",
			func(out *server.Outgoing) { out.Delay = 300 * time.Millisecond })},
	{ID: "resources.updates-soon",
		Summary: "Updates come 15 ms after the change, which may be after the end of the subscription.",
		Why:     "The text sets no time for a notification.", Source: at("server/resources#subscriptions"),
		Changes: "resources",
		Apply: Messages("notifications/resources/updated",
			func(out *server.Outgoing) { out.Delay = 15 * time.Millisecond })},
	{ID: "resources.updates-with-title", Summary: "Updates carry a title and more beside the URI.",
		Why: "The params of notifications are open.", Source: at("basic/index#notifications"),
		Apply: Params("notifications/resources/updated", Having("title", "Watched"))},
	{ID: "resources.not-found-bare",
		Summary: "The error for a resource that does not exist has no data and another message.",
		Why:     "The text names the code alone.", Source: at("server/resources#error-handling"),
		Apply: Problems("resources/read", func(_ *server.Outgoing, problem object) {
			if IsCode(problem, server.ResourceNotFound) {
				delete(problem, "data")
				problem["message"] = "nope"
			}
		})},
	{ID: "resources.none", Summary: "There are neither resources nor templates, although the capability is declared.",
		Why: "The lists may be empty.", Source: at("schema#listresourcesresult"),
		Untried: []string{ids.LifecycleCapabilityServerEmitsResourceUpdates, ids.ToolsResourceLinkResolvable,
			"resources.*", ids.SchemaSubscribeResult, ids.SchemaUnsubscribeResult,
			ids.SchemaResourceUpdatedNotification},
		Apply: All(unlinked, Offering(func(c *server.Catalogue) { c.Resources, c.Templates = nil, nil }))},
	{ID: "resources.templates-alone",
		Summary: "There are templates and resources that can be read, but no resource is listed.",
		Why:     "The list may be empty.", Source: at("schema#listresourcesresult"),
		Untried: []string{ids.LifecycleCapabilityServerEmitsResourceUpdates, "resources.*",
			ids.SchemaSubscribeResult, ids.SchemaUnsubscribeResult, ids.SchemaResourceUpdatedNotification},
		Apply: Results("resources/list", func(result object) {
			result["resources"] = list{}
			delete(result, "nextCursor")
		})},
	{ID: "resources.no-templates", Summary: "There are resources, but no templates.", Why: "The list may be empty.",
		Source: at("schema#listresourcetemplatesresult"),
		Untried: []string{ids.ToolsResourceLinkResolvable, ids.ResourcesTemplateRfc6570,
			ids.ResourcesTemplateConstructsURIs, ids.ResourcesTemplateMimeTypeUniform},
		Changes: "templates and prompts",
		Apply:   All(unlinked, Offering(func(c *server.Catalogue) { c.Templates = nil }))},
	{ID: "resources.templates-odd",
		Summary: "Templates use all operators and modifiers of RFC 6570, and one has no expression.",
		Why:     "A template is a URI template of RFC 6570.", Source: at("server/resources#resource-templates"),
		Changes: "templates and prompts",
		Apply: All(
			servingTemplate("memo-1://{+path}"), servingTemplate("memo-2://h{/seg*}"),
			servingTemplate("memo-3://h/{name}{.ext}"), servingTemplate("memo-4://h/p{?q,lang}"),
			servingTemplate("memo-5://h/p{?x}{&more*}"), servingTemplate("memo-6://h/p{;a,b}"),
			servingTemplate("memo-7://h/p{#frag}"), servingTemplate("memo-8://h/{name:3}"),
			servingTemplate("memo-9://h/fixed"), servingTemplate("memo-10://{user%20name}/{a.b_c}"),
			servingTemplate("memo-11:{opaque}"),
		)},
	{ID: "resources.list-changes",
		Summary: "A resource comes and goes from one reading of the list to the next, each time with an announcement.",
		Why:     "The list may change at any time, with a notification.",
		Source:  at("server/resources#list-changed-notification"), Changes: "pages",
		Apply: All(
			whim("resources/list", "resources", object{"uri": "memo://now-and-then", "name": "now-and-then"}),
			Wrapping("resources/read", server.Named("memo://now-and-then",
				server.Always(object{"contents": list{object{"uri": "memo://now-and-then", "text": "here"}}}))),
		)},
	{ID: "resources.changes-announced-idly",
		Summary: "Every ten seconds a change of the list of resources is announced, although there is none.",
		Why:     "The notification may be issued without any previous subscription.",
		Source:  at("schema#resourcelistchangednotification"), Apply: announcingIdly("resources")},
	{ID: "resources.order-changes", Summary: "Each reading of resources/list has the resources in another order.",
		Why: "The order of a list means nothing.", Source: at("server/resources#listing-resources"),
		Untried: []string{ids.PaginationServerStableCursors, ids.PaginationCursorResultsAfter},
		Changes: "pages",
		Apply: All(paged(1000), Wrapping("resources/list", server.Edit(func(r *server.Request, result map[string]any) {
			items := result["resources"].(list)
			n := Count(r.Session, "order of resources") % len(items)
			result["resources"] = slices.Concat(items[n:], items[:n])
		})))},
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
	{ID: "prompts.minimal", Summary: "Prompts have just a name, their arguments too.",
		Why:    "The other members are optional; an argument that is not said to be required is optional.",
		Source: at("schema#prompt"), Changes: "prompts",
		Apply: Items("prompts/list", "prompts", func(prompt object) {
			for name := range prompt {
				if name != "name" && name != "arguments" {
					delete(prompt, name)
				}
			}
			arguments, _ := prompt["arguments"].(list)
			for _, argument := range arguments {
				delete(argument.(object), "title")
				delete(argument.(object), "description")
				if argument.(object)["required"] == false {
					delete(argument.(object), "required")
				}
			}
		})},
	{ID: "prompts.arguments-empty", Summary: "Prompts without arguments have an empty list of them.",
		Why: "The list may be empty.", Source: at("schema#prompt"),
		Apply: Items("prompts/list", "prompts", func(prompt object) {
			if prompt["arguments"] == nil {
				prompt["arguments"] = list{}
			}
		})},
	{ID: "prompts.names-odd",
		Summary: "Names of prompts and arguments have spaces, slashes, emojis, or 300 characters.",
		Why:     "Names are any strings.", Source: at("server/prompts#prompt"),
		Apply: All(
			servingPrompt(object{"name": "/code review 🔎",
				"arguments": list{object{"name": "the code"}, object{"name": "语言", "required": false}}},
				saying("user", textBlock("Review."))),
			servingPrompt(object{"name": strings.Repeat("p", 300)}, saying("user", textBlock("Long."))),
			servingPrompt(object{"name": "TRAVEL"}, saying("user", textBlock("In capitals."))),
		)},
	{ID: "prompts.arguments-many", Summary: "A prompt has 60 arguments, half of them required.",
		Why: "The number of arguments has no limit.", Source: at("schema#prompt"),
		Apply: servingPrompt(object{"name": "many", "arguments": manyArguments()}, saying("user", textBlock("Many.")))},
	{ID: "prompts.messages-empty", Summary: "A prompt has no messages.", Why: "The list may be empty.",
		Source: at("schema#getpromptresult"), Apply: servingPrompt(object{"name": "silence"})},
	{ID: "prompts.roles",
		Summary: "A prompt begins with the assistant, another has 50 messages of the assistant alone.",
		Why:     "The role is either of the two, in any order.", Source: at("server/prompts#promptmessage"),
		Apply: All(
			servingPrompt(object{"name": "assistant-first"}, saying("assistant", textBlock("Hi")),
				saying("user", textBlock("Hi")), saying("assistant", textBlock(""))),
			servingPrompt(object{"name": "assistant-alone"},
				slices.Repeat(list{saying("assistant", textBlock("…"))}, 50)...),
		)},
	{ID: "prompts.embedded-blob", Summary: "Prompts embed binary resources and link to others.",
		Why:    "Content is of any type, and resources hold text or blob.",
		Source: at("server/prompts#embedded-resources"),
		Apply: servingPrompt(object{"name": "embedding"},
			saying("user", embeddedBlock(object{"uri": "resource://example", "mimeType": "application/pdf",
				"blob": binary(5)})),
			saying("user", linked("resource://other", "other")))},
	{ID: "prompts.description-differs", Summary: "prompts/get gives another description than the list, or none.",
		Why: "The description is optional in both places.", Source: at("schema#getpromptresult"),
		Apply: Wrapping("prompts/get", server.Edit(func(r *server.Request, result map[string]any) {
			delete(result, "description")
			if r.Params["name"] == "travel" {
				result["description"] = "A journey"
			}
		}))},
	{ID: "prompts.none", Summary: "There are no prompts, although the capability is declared.",
		Why: "The list may be empty.", Source: at("schema#listpromptsresult"),
		Untried: []string{ids.PromptsGetAnswered, ids.ContentEmbeddedMimeTypePresent,
			ids.PromptsErrorMissingArgumentCode, ids.PromptsArgumentsValidated, ids.PromptsGetArgumentsOmitted},
		Changes: "templates and prompts", Apply: Offering(func(c *server.Catalogue) { c.Prompts = nil })},
	{ID: "prompts.none-served", Summary: "There are no prompts, and prompts/get does not exist.",
		Why: "The list may be empty, and there is nothing to get.", Source: at("schema#listpromptsresult"),
		Untried: []string{"prompts.*", ids.ContentEmbeddedMimeTypePresent, ids.SchemaGetPromptResult},
		Changes: "templates and prompts",
		Apply: All(
			Offering(func(c *server.Catalogue) { c.Prompts = nil }),
			Refusing("prompts/get", server.MethodNotFound, func(*server.Request) bool { return true }),
		)},
	{ID: "prompts.without-arguments", Summary: "No prompt has arguments.", Why: "Arguments are optional.",
		Source: at("server/prompts#prompt"),
		Untried: []string{ids.ContentEmbeddedMimeTypePresent, ids.PromptsErrorMissingArgumentCode,
			ids.PromptsArgumentsValidated},
		Changes: "templates and prompts",
		Apply: Offering(func(c *server.Catalogue) {
			c.Prompts = slices.DeleteFunc(slices.Clone(c.Prompts),
				func(p *server.Prompt) bool { return p.Definition["arguments"] != nil })
		})},
	{ID: "prompts.unknown-arguments-refused",
		Summary: "prompts/get with arguments that the prompt does not have is refused with -32602.",
		Why:     "Servers SHOULD validate prompt arguments.",
		Source:  at("server/prompts#implementation-considerations"),
		Apply:   Wrapping("prompts/get", refusingUnknownArguments)},
	{ID: "prompts.list-changes",
		Summary: "A prompt comes and goes from one reading of the list to the next, each time with an announcement.",
		Why:     "The list may change at any time, with a notification.",
		Source:  at("server/prompts#list-changed-notification"), Changes: "pages",
		Apply: All(
			whim("prompts/list", "prompts", object{"name": "now-and-then"}),
			Wrapping("prompts/get", server.Named("now-and-then",
				server.Always(object{"messages": list{saying("user", textBlock("here"))}}))),
		)},
	{ID: "prompts.changes-announced-idly",
		Summary: "Every ten seconds a change of the prompts is announced, although there is none.",
		Why:     "The notification says that the list may be read again.",
		Source:  at("server/prompts#list-changed-notification"), Apply: announcingIdly("prompts")},
	{ID: "prompts.ask-roots", Summary: "prompts/get asks the client for its roots, if there are any.",
		Why: "Servers can ask for roots when they need them.", Source: at("client/roots#listing-roots"),
		Apply: Wrapping("prompts/get", server.Named("test_simple_prompt",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				if r.Session.ClientHas("roots") {
					_, _ = r.Call(ctx, "roots/list", nil)
				}
				return next(ctx, r)
			}))},
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
	{ID: "roots.after-handshake", Summary: "The server asks for the roots right after the handshake.",
		Why: "Servers ask for roots when they need them.", Source: at("client/roots#listing-roots"),
		Apply: afterHandshake("roots", "roots/list", nil)},
	{ID: "roots.thrice-at-once", Summary: "The server asks for the roots three times at once.",
		Why: "Requests need not wait for each other.", Source: at("basic/index#requests"),
		Apply: Ready(func(s *server.Session) {
			if s.ClientHas("roots") {
				parallel(3, func() { _, _ = s.Call(s.Context(), "roots/list", nil) })
			}
		})},
	{ID: "roots.with-token", Summary: "roots/list has a progress token, which is an integer.",
		Why: "The params of any request may have _meta.", Source: at("schema#listrootsrequest"),
		Apply: afterHandshake("roots", "roots/list", object{"_meta": object{"progressToken": -7}})},
	{ID: "roots.refetched-late", Summary: "The roots are fetched again only when a tool needs them.",
		Why:    "The text does not say when a server has to look at the new list.",
		Source: at("client/roots#root-list-changes"), Changes: "roots",
		Apply: Receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != "notifications/roots/list_changed" {
				next()
			}
		})},
	{ID: "sampling.minimal", Summary: "Sampling requests have just messages and maxTokens.",
		Why: "The other members are optional.", Source: at("schema#createmessagerequest"),
		Untried: []string{ids.SamplingPreferencesPriorityRange}, Changes: "sampling",
		Apply: sampled(func(p object) {
			for name := range p {
				if name != "messages" && name != "maxTokens" {
					delete(p, name)
				}
			}
		})},
	{ID: "sampling.preferences-odd",
		Summary: "Model preferences are empty, have hints without a name, many hints, and priorities of 0 and 1.",
		Why:     "All of their members are optional.", Source: at("schema#modelpreferences"), Changes: "sampling",
		Apply: Messages("sampling/createMessage", func(out *server.Outgoing) {
			out.Params()["modelPreferences"] = []any{
				object{}, object{"hints": list{}},
				object{"hints": list{object{}, object{"name": ""}, object{"name": "claude-3"},
					object{"x-family": "y"}}},
				object{"costPriority": 0, "speedPriority": 1, "intelligencePriority": 0.0},
			}[Count(out.Session, "preferences")%4]
		})},
	{ID: "sampling.values-odd",
		Summary: "Temperatures are 0 and 2, stop sequences empty, maxTokens a million, the system prompt empty, " +
			"metadata of any kind.",
		Why: "The text sets no bounds.", Source: at("schema#createmessagerequest"), Changes: "sampling",
		Apply: sampled(func(p object) {
			p["temperature"], p["stopSequences"], p["maxTokens"], p["systemPrompt"], p["metadata"] = 2, list{"",
				"\n"}, 1_000_000, "", object{"a": list{nil}}
		})},
	{ID: "sampling.conversation",
		Summary: "A sampling request has twenty messages, of both roles, and ends with the assistant.",
		Why:     "The messages are a list of either role.", Source: at("schema#samplingmessage"),
		Apply: afterHandshake("sampling", "sampling/createMessage", object{
			"messages":  slices.Repeat(list{saying("user", textBlock("a")), saying("assistant", textBlock("b"))}, 10),
			"maxTokens": 1, "includeContext": "allServers",
		})},
	{ID: "sampling.media", Summary: "A sampling request has an image and a sound, with annotations and metadata.",
		Why: "Content is text, image or audio.", Source: at("client/sampling#data-types"),
		Apply: afterHandshake("sampling", "sampling/createMessage", object{
			"messages": list{
				saying("user", object{"type": "image", "data": binary(2), "mimeType": "image/png",
					"annotations": object{"priority": 1}}),
				saying("user", object{"type": "audio", "data": binary(2), "mimeType": "audio/wav",
					"_meta": object{"com.example/k": 1}}),
			},
			"maxTokens": 100, "includeContext": "thisServer",
		})},
	{ID: "sampling.unasked", Summary: "The server samples right after the handshake.",
		Why:    "Servers can request sampling at any time in the operation phase.",
		Source: at("basic/lifecycle#operation"),
		Apply:  afterHandshake("sampling", "sampling/createMessage", sampleable())},
	{ID: "elicitation.no-properties", Summary: "An elicitation asks for nothing: its properties are empty.",
		Why: "The properties are any number of primitive ones.", Source: at("schema#elicitrequest"),
		Apply: eliciting("Proceed?", object{})},
	{ID: "elicitation.optional-properties",
		Summary: "All requested properties are optional, without titles and descriptions.",
		Why:     "These members are optional.", Source: at("client/elicitation#supported-schema-types"),
		Apply: eliciting("Anything?", object{"a": object{"type": "string"}, "b": object{"type": "integer"},
			"c": object{"type": "number"}, "d": object{"type": "boolean"}})},
	{ID: "elicitation.many-properties", Summary: "An elicitation asks for 30 properties.",
		Why: "The number of properties has no limit.", Source: at("client/elicitation#request-schema"),
		Apply: eliciting("A long form", manyProperties(), "p00", "p29")},
	{ID: "elicitation.formats", Summary: "The requested properties have all formats and bounds that are supported.",
		Why: "The text names them.", Source: at("client/elicitation#supported-schema-types"),
		Apply: eliciting("Formats", object{
			"at": object{"type": "string", "format": "date-time"}, "on": object{"type": "string", "format": "date"},
			"uri":   object{"type": "string", "format": "uri"},
			"mail":  object{"type": "string", "format": "email"},
			"short": object{"type": "string", "minLength": 0, "maxLength": 1},
			"n":     object{"type": "integer", "minimum": -5, "maximum": -5},
			"x":     object{"type": "number", "minimum": 0.5},
		}, "at", "mail", "n")},
	{ID: "elicitation.enums", Summary: "Enums have one value, an empty one, and names that repeat or are missing.",
		Why: "The names are for display, and optional.", Source: at("schema#enumschema"),
		Apply: eliciting("Choose", object{
			"one":   object{"type": "string", "enum": list{"only"}},
			"empty": object{"type": "string", "enum": list{"", "a"}, "enumNames": list{"None", "None"}},
		}, "one")},
	{ID: "elicitation.defaults", Summary: "Booleans have defaults of either value.", Why: "The default is optional.",
		Source: at("schema#booleanschema"),
		Apply: eliciting("Defaults", object{"yes": object{"type": "boolean", "default": true},
			"no": object{"type": "boolean", "default": false}})},
	{ID: "elicitation.words",
		Summary: "An elicitation asks for passwordLength, tokenCount, whether to play Secret Santa, and for " +
			"a secret that its title explains.",
		Why: "None of these is sensitive information.", Source: at("client/elicitation#security-considerations"),
		Apply: eliciting("How shall the new password be generated? We never ask for it.", object{
			"passwordLength": object{"type": "integer", "title": "Length of the password", "minimum": 8},
			"tokenCount":     object{"type": "integer"},
			"secretSanta":    object{"type": "boolean", "title": "Take part in Secret Santa"},
			"secret":         object{"type": "string", "title": "Whom Santa has drawn"},
			"passwords":      object{"type": "number", "title": "Passwords"},
		})},
	{ID: "elicitation.names-odd", Summary: "Names of requested properties have spaces, emojis, dots, or are empty.",
		Why: "Any string names a property.", Source: at("client/elicitation#request-schema"),
		Apply: eliciting("Names", object{"first name": object{"type": "string"}, "名前 😀": object{"type": "string"},
			"a.b/c": object{"type": "boolean"}, "": object{"type": "integer"}}, "first name")},
	{ID: "elicitation.message-odd",
		Summary: "The message of an elicitation has several lines, markup and 5000 characters.",
		Why:     "The message is any string.", Source: at("schema#elicitrequest"),
		Apply: eliciting("# Hello\n\n<b>Who</b> are you?\r\n"+strings.Repeat("…", 5000),
			object{"name": object{"type": "string"}})},
	{ID: "elicitation.gives-up-when-declined",
		Summary: "A tool whose elicitation is declined or cancelled reports an error in its result.",
		Why:     "Servers handle each action appropriately; failing is one way.",
		Source:  at("client/elicitation#response-actions"), Changes: "elicitation",
		Apply: FailingOn("test_elicitation", func(result object) bool {
			return result["action"] == "decline" || result["action"] == "cancel"
		})},
	{ID: "elicitation.refused-when-declined",
		Summary: "A call whose elicitation is declined or cancelled is refused with an error of the server's own.",
		Why:     "Servers handle each action appropriately; an error is one way.",
		Source:  at("client/elicitation#response-actions"), Changes: "elicitation",
		Apply: All(Overhearing(), WrappingTool("test_elicitation",
			func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
				result, problem := Failing(func(result object) bool {
					return result["action"] == "decline" || result["action"] == "cancel"
				})(ctx, r, next)
				if o, ok := result.(object); ok && o["isError"] == true {
					return nil, &wire.Error{Code: -32001, Message: "The user has declined"}
				}
				return result, problem
			}))},
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
