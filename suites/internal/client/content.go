package client

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/client"
)

// odd lists the requirements about content that the ordinary server sends and the plain one does not.
var odd = []string{ids.ContentAnnotationsOptional, ids.ContentAnnotationsAudienceSeveral,
	ids.PromptsMessageContentKinds, ids.ResourcesReadSeveralContents, ids.ToolsResultStructuredOrUnstructured,
	ids.ToolsResultMixedContent, ids.ToolsResultResourceLinks, ids.ToolsResourceLinkUnlisted,
	ids.ToolsResultEmbeddedResources, ids.ToolsResultImage, ids.ToolsResultAudio, ids.ToolsOutputSchemaOptional,
	ids.LoggingDefaultServerDecides, ids.LoggingMessageLoggerOptional, ids.ToolsListChangedUnsolicited,
	ids.PromptsListChangedUnsolicited, ids.ResourcesListChangedUnsolicited}

var contentScenarios = []*client.Scenario{
	{
		Name: "content/plain", Requirements: odd,
		Needs:   "the client got nothing but plain text in the baseline",
		Options: plain,
		Judge:   func(t *client.T) { t.JudgeTolerated("plain text alone", odd...) },
	},
	{
		Name: "content/described", Requirements: []string{optionalMembers},
		Needs:   "the client goes no further than in the baseline",
		Options: described,
		Judge:   judgeDescribed,
	},
	{
		Name: "content/empty", Requirements: []string{optionalMembers},
		Needs: client.NeedsList,
		Options: func(*client.ScenarioRun) server.Options {
			empty := func(_, member string) server.Middleware {
				return server.Always(map[string]any{member: []any{}})
			}
			return server.Options{Behaviour: server.Behaviour{Methods: onLists(empty)}}
		},
		Judge: judgeEmpty,
	},
	{
		Name: "content/failed-tool", Requirements: []string{ids.ToolsResultStructuredOrUnstructured},
		Needs:   "the client called no tool",
		Options: handling("tools/call", server.Edit(failed)),
		Judge: func(t *client.T) {
			if x := t.Sent("tools/call"); x != nil && x.Result()["structuredContent"] != nil {
				t.JudgeContinued("the first tool failed, and its result had structured content",
					ids.ToolsResultStructuredOrUnstructured)
			}
		},
	},
	{
		// The combinations with subscribe and with listChanged belong to the ordinary server.
		Name: "capabilities/bare-resources", Requirements: []string{ids.ResourcesCapabilityFeaturesIndependent},
		Shows:   []string{ids.LifecycleCapabilityClientUsesResourceSubscriptions},
		Needs:   "the client did not request the list of resources",
		Options: without("resources.subscribe", "resources.listChanged"),
		Judge: func(t *client.T) {
			const id = ids.ResourcesCapabilityFeaturesIndependent
			if t.Baseline.Sent("resources/list") != nil {
				t.JudgeContinued("the server declared neither subscribe nor listChanged for its resources", id)
			}
		},
	},
}

const optionalMembers = ids.SchemaOptionalMembers

var none = map[string]any{} // annotations that say nothing

// optional are members that the items of a list may have (schema#tool, schema#resource, schema#resourcetemplate,
// schema#prompt), with values that say nothing new.
var optional = map[string]map[string]any{
	"tools/list": {"title": "A title", "description": "A description.", "annotations": none},
	"resources/list": {"title": "A title", "description": "A description.", "mimeType": "text/plain",
		"annotations": none},
	"resources/templates/list": {"title": "A title", "description": "A description.", "mimeType": "text/plain",
		"annotations": none},
	"prompts/list": {"title": "A title", "description": "A description.", "arguments": []any{}},
}

// described returns the options of a server whose lists leave out none of the optional members.
func described(*client.ScenarioRun) server.Options {
	methods := make(map[string]server.Middleware)
	for method, member := range client.Listed {
		methods[method] = server.EditItems(member, func(item map[string]any) {
			for name, value := range optional[method] {
				if _, ok := item[name]; !ok {
					item[name] = value
				}
			}
		})
	}
	return server.Options{Behaviour: server.Behaviour{Methods: methods}}
}

// judgeDescribed judges whether the client went on after a list of items without optional members.
func judgeDescribed(t *client.T) {
	for _, x := range t.Baseline.Requests() {
		items, _ := x.Result()[client.Listed[x.Method()]].([]any)
		var missing []string
		for _, name := range slices.Sorted(maps.Keys(optional[x.Method()])) {
			if slices.ContainsFunc(items, func(item any) bool { return wire.At(item, name) == nil }) {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 || t.Baseline.ConversationOf(x).Survived(x.Response) {
			continue
		}
		each := "the same list with " + strings.Join(missing, ", ") + " in each item"
		if message := t.Blame(each); message != "" {
			t.Violation(optionalMembers, message, x.Request, x.Response)
		}
	}
}

// judgeEmpty judges whether the client copes with lists that are empty. Without items it may have no work, and then end
// with any exit status or wait for items, but not crash.
func judgeEmpty(t *client.T) {
	for _, x := range slices.Backward(t.Requests()) {
		items, ok := x.Result()[client.Listed[x.Method()]].([]any)
		if !ok || len(items) > 0 {
			continue
		}
		after, proof := " after "+x.Method()+" was answered with an empty list", x.Events()
		twin := after
		if read := t.Baseline.Sent(x.Method()); read != nil {
			twin, proof = after+"; it goes on after a list with items", append(read.Events(), proof...)
		}
		continues, _, _ := t.Continued()
		switch exit, slip := t.Ending.Exit, slips.FindString(t.Ending.Output); {
		case t.Died() != "":
			t.Violation(optionalMembers, "the client "+t.Died()+twin, proof...)
		case continues, exit != nil && *exit == (wire.Exit{}):
			t.Exercised(optionalMembers)
		case exit == nil:
			t.Inconclusive("the client was stopped"+after+": it may wait for items, or may not have read the list",
				optionalMembers)
		case slip != "":
			t.Violation(optionalMembers, "the client "+exit.String()+" and wrote "+slip+twin, proof...)
		default:
			t.Inconclusive("the client "+exit.String()+after+": it may have no work, or may not have read the list",
				optionalMembers)
		}
		return
	}
}

// slips matches the names of errors with which a program ends that has not read a message, and hardly by intent.
var slips = regexp.MustCompile(
	`\b(Index|Key|Type|Attribute|Range|Validation|Zod)Error\b` +
		`|\b(IndexOutOfBounds|NoSuchElement|NullPointer|NullReference|ArgumentOutOfRange)Exception\b`)

// failed turns the first result in a session into that of a failed tool, with an account of the failure in structured
// content. It leaves a tool alone that has structured content otherwise.
func failed(r *server.Request, result map[string]any) {
	first := new(count)
	if r.Session.Value("failed", func() any { return first }) == any(first) && result["structuredContent"] == nil {
		result["content"] = []any{map[string]any{"type": "text", "text": `{"reason":"a test"}`}}
		result["structuredContent"], result["isError"] = map[string]any{"reason": "a test"}, true
	}
}

// plain returns the options of a server without annotations and log messages. Its tools and prompts return one text,
// and its resources have one content.
func plain(*client.ScenarioRun) server.Options {
	text := map[string]any{"type": "text", "text": "A plain text."}
	edit := func(change func(result map[string]any)) server.Middleware {
		return server.Edit(func(_ *server.Request, result map[string]any) { change(result) })
	}
	unannotated := func(item map[string]any) { delete(item, "annotations") }
	return server.Options{Behaviour: server.Behaviour{
		Methods: map[string]server.Middleware{
			"tools/list": server.EditItems("tools", func(tool map[string]any) { delete(tool, "outputSchema") }),
			"tools/call": edit(func(result map[string]any) {
				result["content"] = []any{text}
				delete(result, "structuredContent")
			}),
			"resources/list":           server.EditItems("resources", unannotated),
			"resources/templates/list": server.EditItems("resourceTemplates", unannotated),
			"resources/read": edit(func(result map[string]any) {
				contents, _ := result["contents"].([]any)
				result["contents"] = slices.Clone(contents[:min(1, len(contents))])
			}),
			"prompts/get": server.EditItems("messages", func(message map[string]any) { message["content"] = text }),
		},
		Send: func(out *server.Outgoing) []*server.Outgoing {
			if out.Kind == wire.Notification && (out.Method == "notifications/message" ||
				strings.HasSuffix(out.Method, "/list_changed")) {
				return nil
			}
			return []*server.Outgoing{out}
		},
	}}
}
