package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
	"github.com/mcpconform/mcpconform/suites/internal/values"
)

// noTool is a name that no server gives a tool.
const noTool = "mcpconform-no-such-tool"

// These constants bound the calls on one server.
const (
	maxCalled    = 40 // tools
	maxMutations = 6  // invalid calls of one tool
	maxMutated   = 5  // tools with invalid calls
	maxOfRule    = 2  // tools in which any other rule is broken
	maxBranches  = 6  // calls of one tool with an output schema beside the ordinary one
)

// server/tools
var toolChecks = []*check.Check{
	{
		Name:         "tools/list",
		Requirements: []string{ids.ToolsListAnswered},
		Needs:        check.Needs{Server: "tools", Served: true},
		Body:         func(t *check.T) { listed(t, "tools/list") },
	},
	{
		Name:         "tools/unknown-tool",
		Requirements: []string{ids.ToolsErrorUnknownToolProtocolError},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// An unknown tool is a protocol error, not a result that tells of one.
			x := t.Call("tools/call", map[string]any{"name": noTool, "arguments": map[string]any{}})
			if refusesAllCalls(t, x) {
				t.Inconclusive("the server refuses all calls in the same way: %s", Describe(x))
			}
			t.Expect(x).To(HaveError(), "for a tool that does not exist")
		},
	},
	{
		Name:         "tools/unknown-tool-code",
		Requirements: []string{ids.ToolsErrorUnknownToolCode},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// A tool that is not listed is an invalid parameter of the call. Whether an error comes at all is a
			// requirement of its own.
			x := t.Call("tools/call", map[string]any{"name": noTool, "arguments": map[string]any{}})
			t.Assume(x).ToNot(HaveResult(), "for a tool that does not exist")
			if nothingToServe(t, x) {
				t.Skip("the server has no tools, and does not serve tools/call")
			}
			if refusesAllCalls(t, x) {
				t.Inconclusive("the server refuses all calls in the same way: %s", Describe(x))
			}
			t.Expect(x).To(HaveErrorCode(-32602), "for a tool that does not exist")
		},
	},
	{
		Name:         "tools/unknown-names",
		Requirements: []string{ids.ToolsErrorUnknownToolProtocolError, ids.ToolsErrorUnknownToolCode},
		Needs:        check.Needs{Server: "tools"},
		Families:     []string{"names-unknown"},
		Body: func(t *check.T) {
			// The name plays no part: every tool that is not listed is refused alike.
			t.Assume(t.Call("tools/call", map[string]any{"name": noTool, "arguments": map[string]any{}})).
				To(HaveErrorCode(-32602), "for an ordinary name that no tool has")
			t.Vary(unlisted(t.Target.Tools(), t.Draw("names-unknown"), callable(t)), func(m family.Member) {
				x := t.Call("tools/call", map[string]any{"name": m.Str(), "arguments": map[string]any{}})
				if sameName(m, x) {
					return
				}
				if t.Check(ids.ToolsErrorUnknownToolProtocolError, x).To(HaveError(),
					"for a tool that does not exist, %s", m) {
					t.Show(x.Events()...)
					t.Check(ids.ToolsErrorUnknownToolCode, x).To(HaveErrorCode(-32602),
						"for a tool that does not exist, %s", m)
				}
			})
		},
	},
	{
		Name:         "tools/callable",
		Requirements: []string{ids.ToolsListCallable},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// A listed tool is known under its name. It may fail.
			unknown := t.Call("tools/call", map[string]any{"name": noTool, "arguments": map[string]any{}})
			called, answered, empty := 0, 0, 0
			refused := make(map[string]*client.Exchange) // tools that require arguments, with nil for what took them
			tools := callable(t)
			// The rules judge a result by the output schema that is listed in the session before and after the call.
			describe := func() {
				described := func(tool map[string]any) bool { return tool["outputSchema"] != nil }
				if !t.Plainly() && slices.ContainsFunc(tools, described) {
					check.ReadList(t.Context, t.Session, "tools/list")
				}
			}
			if len(t.Session.Log().Requests(wire.Client, "tools/list")) == 0 {
				describe()
			}
			// If there are too many to call them all, those with a known role show most.
			slices.SortStableFunc(tools, func(a, b map[string]any) int {
				return cmp.Compare(unknownLast(t, a), unknownLast(t, b))
			})
			for _, tool := range tools {
				name := tool["name"].(string)
				arguments, ok := t.Target.Arguments(tool)
				if !ok {
					t.Note("no arguments could be made for the tool %q", name)
					continue
				}
				if called++; called > t.Items(maxCalled) {
					break
				}
				x := t.Attempt(map[string]any{"name": name, "arguments": arguments})
				if x == nil {
					t.Note("the tool %q did not answer in time", name)
					continue
				}
				answered++
				if requires(tool) > 0 {
					refused[name] = nil
					if !worked(x) {
						refused[name] = x
					}
				}
				if !worked(x) && len(arguments) == 0 && empty < maxMutated {
					empty++
					refusesEmpty(t, tool, x)
				}
				// Other arguments that fit lead to other results, which the rules judge.
				if (t.Further() || tool["outputSchema"] != nil) && x.Result() != nil && x.Response != nil &&
					x.Response.At-x.Request.At < prompt {
					for _, others := range append(branches(t, tool), least(t, tool, arguments)) {
						if others == nil {
							continue
						}
						// Whether it answers these does not matter here.
						_, _ = t.Session.Call(t.Context, "tools/call",
							map[string]any{"name": name, "arguments": others})
					}
				}
				strange := func(x *client.Exchange) bool {
					return refusedWith(x, -32601) && !ofClient.MatchString(x.Error().Message) ||
						refusedAlike(x, unknown, noTool, name)
				}
				if !strange(x) {
					continue
				}
				if !stillListed(t, "tools/list", "name", name) {
					t.Note("the tool %q was no longer listed when it was called", name)
					continue
				}
				if x = t.Attempt(map[string]any{"name": name, "arguments": arguments}); x != nil && strange(x) {
					t.Fail("the listed tool %q is refused like one that does not exist: %s", name, Describe(x))
				}
			}
			if called == 0 {
				t.Inconclusive(nothingCallable)
			}
			describe()
			t.Clear()
			argumentsLost(t, refused)
			if answered == 0 {
				t.Inconclusive("no tool call was answered in time; %s", ending.Raise(ending.Timeout))
			}
		},
	},
	{
		Name:         "tools/arguments-omitted",
		Requirements: []string{ids.ToolsCallArgumentsOmitted},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// The member arguments is optional: a tool that requires none can be called without it.
			for _, tool := range callable(t) {
				if required, _ := at(tool, "inputSchema", "required").([]any); len(required) > 0 {
					continue
				}
				empty := map[string]any{"name": tool["name"], "arguments": map[string]any{}}
				with := t.Attempt(empty)
				if with == nil {
					continue
				}
				without := t.Attempt(map[string]any{"name": tool["name"]})
				if without != nil && worked(with) {
					if !worked(without) {
						// A tool that works once, or so often in a time, fails now whatever it is given.
						if again := t.Attempt(empty); again == nil || !worked(again) {
							continue
						}
					}
					t.Expect(without).To(Succeed(),
						"for the tool %q, which accepts empty arguments, without the member arguments", tool["name"])
					return
				}
			}
			t.Inconclusive("no tool that may be called works without arguments; " + nothingCallable)
		},
	},
	{
		Name:         "tools/invalid-arguments",
		Requirements: []string{ids.ToolsSecurityValidateInputs, ids.ToolsErrorInvalidArgumentsForm},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// Arguments that break the tool's own schema, one rule at a time. The valid twin is the control: a tool
			// that refuses everything does not prove anything.
			tried, broken := 0, make(map[string]int)
			tools := callable(t)
			// Tools with required arguments have something to validate.
			slices.SortStableFunc(tools, func(a, b map[string]any) int { return requires(b) - requires(a) })
			for _, tool := range tools {
				if tried >= t.Most(maxMutated, 1) {
					break
				}
				all := values.Invalid(tool["inputSchema"])
				mutations := objects(all)
				if len(mutations) == 0 {
					continue
				}
				if last := all[len(all)-1]; tried == 0 && requires(tool) > 0 && last.Name == "not-an-object" {
					mutations = slices.Insert(mutations, 1, last) // it has none of the members that are required
				}
				control := accepted(t, tool)
				if control == nil {
					continue
				}
				tried++
				for _, m := range mutations[:t.Items(min(len(mutations), maxMutations))] {
					broken[rule(m)] = maxOfRule
					if !refuses(t, tool, m, control.Events()...) {
						break
					}
				}
			}
			if t.Further() && !t.Plainly() {
				otherRules(t, tools, broken)
			}
			if tried == 0 {
				t.Inconclusive("no tool that may be called takes arguments and succeeds with generated ones; " +
					nothingCallable)
			}
		},
	},
	{
		Name:         "tools/execution-error",
		Requirements: []string{ids.ToolsErrorExecutionAsResult},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// The model should see that a tool failed.
			call, ok := t.Target.ToolFor("error")
			if !ok {
				if !failed(t) {
					t.Inconclusive("no known tool fails: name one for the tool role error in the configuration")
				}
				return
			}
			for _, token := range []string{"mcpconform-failing", "mcpconform-failing-again"} {
				x := t.Call("tools/call", withToken(call.Params(), token))
				if x.Error() != nil && refusesAllCalls(t, x) {
					t.Inconclusive("the server refuses all calls in the same way: %s", Describe(x))
				}
				t.Expect(x).To(HaveMember("isError", true))
			}
			t.Fence() // no progress may follow
		},
	},
	{
		Name:         "tools/list-changed",
		Requirements: []string{ids.ToolsListChangedSent},
		Shows:        []string{ids.SchemaCallToolResult},
		Needs:        changing("tools"),
		Body:         func(t *check.T) { listChanged(t, "tools") },
	},
	{
		Name:         "tools/content-kinds",
		Requirements: []string{ids.ToolsListCallable},
		Needs:        check.Needs{Server: "tools"},
		Body: func(t *check.T) {
			// The calls that the configuration names show the judge results of each kind.
			named, called := 0, 0
			for _, role := range []string{"structured", "image", "audio", "resource-link", "embedded-resource",
				"mixed-content"} {
				if call, ok := t.Target.ToolFor(role); ok && named < t.Items(maxCalled) {
					named++
					x := t.Call("tools/call", call.Params())
					if x.Result() == nil {
						t.Note("the tool %q, which is named for the role %s, gives no result: %s", call.Tool, role,
							Describe(x))
						continue
					}
					called++
				}
			}
			if named > 0 && called == 0 {
				t.Inconclusive("none of the tools that are named for a kind of content gives a result")
			}
			if called == 0 {
				t.Inconclusive("no tool is named for a kind of content: name tools for the roles structured, " +
					"image, audio, " +
					"resource-link, embedded-resource and mixed-content in the configuration")
			}
		},
	},
	{
		Name:         "tools/resource-links",
		Requirements: []string{ids.ToolsResourceLinkResolvable},
		Needs:        check.Needs{Server: "tools", ToolRoles: []string{"resource-link"}},
		Body: func(t *check.T) {
			tried := 0
			for _, uri := range linked(t) {
				if followable(uri) || tried == maxRead {
					continue
				}
				tried++
				read := t.Call("resources/read", map[string]any{"uri": uri}, client.Deliberately("*"))
				if read.Result() != nil {
					continue
				}
				if !refusedWith(read, -32601, -32602, -32002) {
					t.Note("the link to %s cannot be read for now: %s", wire.Quote(uri, 60), Describe(read))
					continue
				}
				subscribed := t.Call("resources/subscribe", map[string]any{"uri": uri}, client.Deliberately("*"))
				t.Expect(subscribed).To(HaveResult(), "for the link to %s, which cannot be read (%s)",
					wire.Quote(uri, 60), Describe(read))
				t.Call("resources/unsubscribe", map[string]any{"uri": uri}, client.Deliberately("*"))
			}
			if tried == 0 {
				t.Inconclusive("no tool returned a link that only the server can follow: name one for the tool " +
					"role resource-link in the configuration")
			}
		},
	},
}

// argumentsLost warns if the server calls the arguments of every tool missing, in the same words as without any
// arguments. The arguments do not reach the tools.
func argumentsLost(t *check.T, refused map[string]*client.Exchange) {
	words := make(map[string]bool)
	var proof []*wire.Event
	for _, tool := range callable(t) {
		name := tool["name"].(string)
		x, called := refused[name]
		if !called {
			continue
		}
		if x == nil {
			return // it takes them
		}
		said := refusal(x)
		required, _ := at(tool, "inputSchema", "required").([]any)
		named := slices.ContainsFunc(required, func(v any) bool {
			member, ok := v.(string)
			return ok && regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(member)+`($|\W)`).MatchString(said)
		})
		if !named || words[said] || !saysAbsent.MatchString(said) {
			return // another reason, or one that all have
		}
		without := t.Attempt(map[string]any{"name": name, "arguments": map[string]any{}}, client.Deliberately("*"))
		if without == nil || worked(without) || refusal(without) != said {
			return
		}
		words[said] = true
		proof = append(proof, x.Events()...)
	}
	if len(words) > 1 {
		t.Warning(ids.ToolsListCallable, "each of the "+strconv.Itoa(len(words))+
			" tools that require arguments refuses arguments that fit its inputSchema, as if they were missing",
			proof...)
	}
}

// refusesEmpty warns of a tool without parameters that refused an empty object of arguments, serves the
// same call without arguments, or with any that its schema allows, and refuses the first one again.
func refusesEmpty(t *check.T, tool map[string]any, refused *client.Exchange) {
	input, err := schema.CompileTool(tool["inputSchema"])
	properties, _ := at(tool, "inputSchema", "properties").(map[string]any)
	if err != nil || len(properties) > 0 || t.Target.Known(tool) && at(tool, "annotations", "readOnlyHint") != true {
		return
	}
	name, surplus := tool["name"].(string), map[string]any{"mcpconform": true}
	twins := []map[string]any{{"name": name}, {"name": name, "arguments": surplus}}
	if len(input.Validate(surplus)) > 0 {
		twins = twins[:1]
	}
	for _, twin := range twins {
		served := t.Attempt(twin)
		if served == nil || !worked(served) {
			continue
		}
		how := "without the member arguments"
		if twin["arguments"] != nil {
			how = "with the arguments " + quote(surplus) + ", which its inputSchema allows"
		}
		again := t.Attempt(map[string]any{"name": name, "arguments": map[string]any{}})
		if again != nil && !worked(again) {
			t.Warning(ids.ToolsListCallable, "the tool "+quote(name)+
				", whose inputSchema has no properties, refuses empty arguments but serves the call "+how,
				slices.Concat([]*wire.Event{t.Listed("tools/list", "tools", name)}, refused.Events(), served.Events(),
					again.Events())...)
		}
		return
	}
}

// saysAbsent matches what says of an argument that it is not there.
var saysAbsent = regexp.MustCompile(`(?i)\b(required|missing|undefined|lacks|not (given|provided|found|set))\b`)

// refusal returns the text of the error or failure of a call.
func refusal(x *client.Exchange) string {
	if x.Error() != nil {
		return x.Error().Message
	}
	return textsIn(x.Result()["content"])
}

// refuses calls a tool with arguments that break its schema, and reports whether
// it refused them. A result with isError is a refusal, and so is an error
// (docs/positions.md, invalid-arguments).
func refuses(t *check.T, tool map[string]any, m values.Mutation, control ...*wire.Event) bool {
	t.Clear()
	x := t.Attempt(map[string]any{"name": tool["name"], "arguments": m.Value}, client.Deliberately("*"))
	if x == nil {
		return false
	}
	if worked(x) {
		// That inputs are validated need not mean that a member which the tool does not know is refused.
		found := t.Violation
		if m.Name == "additional-property" {
			found = t.Warning
		}
		keyword := m.Keyword
		if keyword == "false" { // the schema of a member that must not be there
			keyword = "additionalProperties"
		}
		message := fmt.Sprintf("a call of the tool %s with arguments that break the keyword %s of its inputSchema "+
			"(%s) was served; an error or a result with isError was expected",
			quote(tool["name"]), keyword, m.Detail)
		name, _ := tool["name"].(string)
		found(ids.ToolsSecurityValidateInputs, message,
			slices.Concat([]*wire.Event{t.Listed("tools/list", "tools", name)}, control, x.Events())...)
		return false
	}
	// An error that valid arguments meet as well is not about the arguments, and what is not an object is refused
	// before it comes to the tool (base/invalid-params).
	if x.Error() != nil && m.Name != "not-an-object" &&
		(refusedWith(x, -32602) || len(control) > 0 || accepted(t, tool) != nil) {
		t.WarnUnless(ids.ToolsErrorInvalidArgumentsForm, x).To(HaveErrorCode(-32602),
			"with arguments of %s that break its inputSchema (%s)", quote(tool["name"]), m.Detail)
	}
	return true
}

// accepted calls a tool with arguments that fit its schema. It returns nil if there are
// none or they do not serve.
func accepted(t *check.T, tool map[string]any) *client.Exchange {
	arguments, ok := t.Target.Arguments(tool)
	if !ok {
		return nil
	}
	if x := t.Attempt(map[string]any{"name": tool["name"], "arguments": arguments}); x != nil && worked(x) {
		return x
	}
	return nil
}

// otherRules breaks the rules that were not broken often enough, each in the first
// tools that have it. A tool that succeeds needs no control.
func otherRules(t *check.T, tools []map[string]any, broken map[string]int) {
	for _, tool := range slowLast(t, tools[:min(len(tools), maxCalled)]) {
		for _, m := range objects(values.Invalid(tool["inputSchema"])) {
			if broken[rule(m)] >= maxOfRule {
				continue
			}
			broken[rule(m)]++
			if !refuses(t, tool, m) {
				break
			}
		}
	}
}

// slowLast puts the tool that is known to take its time behind the others.
func slowLast(t *check.T, tools []map[string]any) []map[string]any {
	call, known := t.Target.ToolFor("slow")
	i := slices.IndexFunc(tools, func(tool map[string]any) bool { return known && tool["name"] == call.Tool })
	if i < 0 {
		return tools
	}
	return append(slices.Delete(slices.Clone(tools), i, i+1), tools[i])
}

// rule names the rule that a mutation breaks, one for the items of arrays apart.
func rule(m values.Mutation) string {
	if inArray.MatchString(m.Pointer) {
		return m.Name + " in an array"
	}
	return m.Name
}

var inArray = regexp.MustCompile(`/\d+(/|$)`)

// refusesAllCalls reports whether a call was refused for no reason of its own: a listed tool is refused in the same
// words. Access is controlled, and the rate limited, before anything else may be looked at
// (server/tools#security-considerations).
func refusesAllCalls(t *check.T, x *client.Exchange) bool {
	how := refusalOf(x)
	if how == "" || refusedWith(x, -32602) {
		return false
	}
	tools := callable(t)
	for _, tool := range tools[:min(len(tools), maxMutated)] {
		if arguments, ok := t.Target.Arguments(tool); ok {
			control := t.Attempt(map[string]any{"name": tool["name"], "arguments": arguments})
			return control != nil && refusalOf(control) == how
		}
	}
	return false
}

// refusalOf returns the words in which a call is refused or fails; "" if it does neither.
func refusalOf(x *client.Exchange) string {
	if e := x.Error(); e != nil {
		return fmt.Sprint(e.Code, e.Message)
	}
	if worked(x) || x.Result() == nil {
		return ""
	}
	return string(client.Marshal(x.Result()["content"]))
}

// unlisted returns the members of a family of names that no item has. Those near a known
// name are made from that of the first of the known items, or left out.
func unlisted(items []map[string]any, members []family.Member, known []map[string]any) []family.Member {
	var names []family.Member
	for _, m := range members {
		if strings.Contains(m.Str(), "{known}") || m.Str() == "{"+inOtherCase+"}" {
			if len(known) == 0 {
				continue
			}
			name, _ := known[0]["name"].(string)
			m = m.With(map[string]string{"known": name, inOtherCase: otherCase(name)})
		}
		if !slices.ContainsFunc(items, func(item map[string]any) bool { return item["name"] == m.Str() }) {
			names = append(names, m)
		}
	}
	return names
}

// inOtherCase stands for a known name in other letter case, which the text does not say is another name.
const inOtherCase = "other case"

// sameName reports whether a server takes a known name in other letter case for that name.
func sameName(m family.Member, x *client.Exchange) bool {
	return m.Is == inOtherCase && x.Result() != nil
}

// failed reports whether the result of a tool, called with arguments that fit its schema, tells of a failure. A
// JSON-RPC error does not count: a server may report exceptional conditions with it (schema#calltoolresult).
func failed(t *check.T) bool {
	called := 0
	for _, tool := range callable(t) {
		arguments, ok := t.Target.Arguments(tool)
		if !ok {
			continue
		}
		for _, arguments := range []map[string]any{arguments, least(t, tool, arguments)} {
			if called++; called > maxCalled {
				return false
			}
			if arguments == nil {
				break
			}
			x, err := t.Session.Call(t.Context, "tools/call",
				map[string]any{"name": tool["name"], "arguments": arguments})
			if err != nil || x.Response == nil || x.Response.At-x.Request.At > prompt {
				break // other requirements judge that
			}
			if x.Result()["isError"] == true {
				t.Show(x.Events()...)
				return true
			}
		}
	}
	return false
}

// prompt bounds how long a tool takes that may be called again for secondary reasons.
const prompt = 500 * time.Millisecond

// least returns arguments that fit the schema of a tool, with all optional ones, each with its smallest fitting
// value. It returns nil if they equal the given ones. A tool with effects that the user or a profile allows is only
// called as they say.
func least(t *check.T, tool, given map[string]any) map[string]any {
	input, arguments := filled(t, tool)
	if arguments == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		before := arguments[name]
		for _, value := range leastOf(before, at(tool, "inputSchema", "properties", name, "minimum")) {
			arguments[name] = value
			if len(input.Validate(arguments)) == 0 {
				break
			}
			arguments[name] = before
		}
	}
	if reflect.DeepEqual(arguments, given) {
		return nil
	}
	return arguments
}

// filled returns the input schema of a tool, and arguments that fit it, with the optional ones; nil if there are
// none, or the tool is to be called as the user or a profile says alone.
func filled(t *check.T, tool map[string]any) (*schema.Tool, map[string]any) {
	input, err := schema.CompileTool(tool["inputSchema"])
	if err != nil || t.Target.Known(tool) && at(tool, "annotations", "readOnlyHint") != true {
		return nil, nil
	}
	full, _ := values.Full(tool["inputSchema"])
	arguments, _ := full.(map[string]any)
	return input, arguments
}

// branches returns other arguments for a tool with an output schema. The arguments may decide the members of the
// answer and their types. A few have another one of the values that the input schema lists or another truth value,
// and two have negative numbers and fractions.
func branches(t *check.T, tool map[string]any) (all []map[string]any) {
	input, arguments := filled(t, tool)
	if arguments == nil || tool["outputSchema"] == nil {
		return nil
	}
	add := func(changed map[string]any) {
		if len(all) < maxBranches && !reflect.DeepEqual(changed, arguments) && len(input.Validate(changed)) == 0 {
			all = append(all, changed)
		}
	}
	for _, number := range []json.Number{"-1", "0.5"} {
		changed := maps.Clone(arguments)
		for name, value := range arguments {
			if _, is := value.(json.Number); is {
				changed[name] = number
			}
		}
		add(changed)
	}
	listed := append(listedValues(tool["inputSchema"]), true, false)
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if free := with(arguments, name, noTool); len(input.Validate(free)) == 0 {
			continue // any text fits
		}
		for _, value := range listed {
			add(with(arguments, name, value))
		}
	}
	return all
}

// with returns arguments with another value for one of them.
func with(arguments map[string]any, name string, value any) map[string]any {
	changed := maps.Clone(arguments)
	changed[name] = value
	return changed
}

// listedValues returns the values that a schema lists anywhere.
func listedValues(v any) (all []any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if values, ok := v[name].([]any); ok && name == "enum" {
				all = append(all, values...)
			} else if name == "const" {
				all = append(all, v[name])
			} else {
				all = append(all, listedValues(v[name])...)
			}
		}
	case []any:
		for _, item := range v {
			all = append(all, listedValues(item)...)
		}
	}
	return all
}

// leastOf returns the least values of the type of a value, the least of all first.
func leastOf(v, minimum any) []any {
	switch v.(type) {
	case json.Number:
		return []any{json.Number("0"), minimum}
	case string:
		return []any{""}
	case bool:
		return []any{false}
	case []any:
		return []any{[]any{}}
	}
	return nil
}

const nothingCallable = "call tools only if they are annotated read-only; --call-tools=all or the configuration " +
	"allows more"

// unknownLast ranks the tools that do something known before others.
func unknownLast(t *check.T, tool map[string]any) int {
	if t.Target.Known(tool) {
		return 0
	}
	return 1
}

// callable returns the tools that may be called, with their names.
func callable(t *check.T) []map[string]any { return named(t.Target.Callable()) }

func named(all []map[string]any) []map[string]any {
	var tools []map[string]any
	for _, tool := range all {
		if _, ok := tool["name"].(string); ok {
			tools = append(tools, tool)
		}
	}
	return tools
}

// requires returns how many arguments a tool requires.
func requires(tool map[string]any) int {
	required, _ := at(tool, "inputSchema", "required").([]any)
	return len(required)
}

// objects returns the mutations that are still objects: the schema of the request
// already excludes any other arguments, which base/invalid-params sends.
func objects(all []values.Mutation) []values.Mutation {
	var kept []values.Mutation
	for _, m := range all {
		if _, ok := m.Value.(map[string]any); ok {
			kept = append(kept, m)
		}
	}
	return kept
}

// ofClient matches messages of errors with -32601 about a lack of the client, as opposed to an unknown tool.
var ofClient = regexp.MustCompile(`(?i)\bclient\b|elicit|sampling|\broots\b|capabilit`)

// linked returns the URIs of the links in the result of the call that the
// configuration names, or of tools that may be called and speak of links.
func linked(t *check.T) []string {
	var calls []map[string]any
	if call, ok := t.Target.ToolFor("resource-link"); ok {
		calls = append(calls, call.Params())
	} else {
		for _, tool := range callable(t) {
			name := tool["name"].(string)
			arguments, ok := t.Target.Arguments(tool)
			if ok && strings.Contains(strings.ToLower(name), "link") {
				calls = append(calls, map[string]any{"name": name, "arguments": arguments})
			}
		}
	}
	var uris []string
	for _, params := range calls[:min(len(calls), maxCalled)] {
		blocks, _ := t.Call("tools/call", params).Result()["content"].([]any)
		for _, block := range blocks {
			if uri, ok := at(block, "uri").(string); ok && at(block, "type") == "resource_link" {
				uris = append(uris, uri)
			}
		}
	}
	return uris
}

// changing is a session in which the list of a feature has not changed yet, except by the tool for another feature.
// The check needs a tool that changes the list.
func changing(feature string) check.Needs {
	role := feature + "-change"
	return check.Needs{Session: check.Own, Lane: lastInProcess, Options: lowIDsFree(capable),
		Server: feature + ".listChanged", ToolRoles: []string{role}, Lacking: func(target *check.Target) string {
			if _, ok := target.ToolFor(role); ok {
				return ""
			}
			return "no known tool changes the list: name one for the tool role " + role + " in the configuration"
		}}
}

// listChanged calls the tool that changes a list and wants the notification, provided that the list is another one
// afterwards. New items are used. The call is repeated as long as it changes the list: the next call may remove the
// new item, and that is a change as well.
func listChanged(t *check.T, feature string) {
	if listeningEnded(t) {
		t.Session = t.Open(lowIDsFree(capable)) // the notification could not come in the one that others have used
	}
	call, _ := t.Target.ToolFor(feature + "-change")
	method := "notifications/" + feature + "/list_changed"
	read := func() *check.List { return check.ReadList(t.Context, t.Session, feature+"/list") }
	before, mark := read(), t.Mark()
	told := func(e *wire.Event) bool { return tells(e, method) }
	var early *check.List
	performReading(t, call, told, func(*wire.Event) { early = read() })
	e, err := t.Session.AwaitNotification(t.Context, mark, method)
	t.Show(e)
	after := early
	if !changed(before, early) {
		after = read()
	}
	if timedOut(err) {
		t.Must(after.Err)
		if sameItems(before, after) {
			// It may undo what another one does.
			if after = changedByOther(t, call.Tool, feature, before); after == nil {
				t.Inconclusive("the tool %q did not change the list", call.Tool)
			}
		}
		unannounced(t, feature, after)
	}
	t.Must(err)
	if early != nil && whole(early) && changed(before, after) && sameItems(before, early) && !toldLater(t, e, told) &&
		sameItems(after, read()) { // it need not change by itself
		t.Show(e)
		t.Fail("the list had not changed yet when %s came; it changed later in the call without another notification",
			method)
	}
	useNew(t, feature, before, after)
	if !t.Further() {
		return
	}
	for range 2 {
		changedAgain(t, call, feature)
	}
	// Sessions and streams are the same for all features.
	all := []string{"tools", "resources", "prompts"}
	leads := slices.IndexFunc(all, func(f string) bool {
		_, ok := t.Target.ToolFor(f + "-change")
		return ok && t.Session.Capability(f+".listChanged")
	})
	if feature == all[leads] || t.Thorough() {
		changedElsewhere(t, call, feature)
		changedAfterListening(t, call, feature)
	}
}

// changedAgain changes the list once more, and judges whether the server tells that as well.
func changedAgain(t *check.T, call check.Call, feature string) {
	after, mark := silently(t, call, feature)
	if after == nil {
		return
	}
	_, err := t.Session.AwaitNotification(t.Context, mark, "notifications/"+feature+"/list_changed")
	if timedOut(err) {
		unannounced(t, feature, after)
	}
	t.Must(err)
}

// performReading is perform. At the first notification before the end of the call it reads the changed thing. A client
// may do so.
func performReading(t *check.T, call check.Call, told func(*wire.Event) bool, read func(notice *wire.Event)) {
	p := t.Start("tools/call", call.Params())
	if e, err := t.Session.AwaitEvent(t.Context, p.Request.Seq+1, "answer to tools/call",
		func(e *wire.Event) bool { return told(e) || over(e, p) }); err == nil && told(e) {
		read(e)
	}
	t.Assume(t.Await(p)).To(HaveResult(), "for the tool %q", call.Tool)
}

// toldLater reports whether a further notification comes after one.
func toldLater(t *check.T, notice *wire.Event, told func(*wire.Event) bool) bool {
	_, err := t.Session.AwaitEvent(t.Context, notice.Seq+1, "a further notification", told)
	if !timedOut(err) {
		t.Must(err)
	}
	return !timedOut(err)
}

// changedAfterListening makes a call that changes a list after a second listening stream was
// opened and closed, while the first one goes on, and after that was closed as well and another one opened in its
// place: the client may do so at any time (basic/transports#listening-for-messages-from-the-server).
func changedAfterListening(t *check.T, call check.Call, feature string) {
	if t.Target.Transport != transport.NameHTTP || !listensIn(t.Session) {
		return
	}
	if second, err := t.OpenStream(
		transport.Request{Method: http.MethodGet}); err == nil { // a refusal is not judged here
		for range 2 { // so that there is something to resume
			silently(t, call, feature)
		}
		second.Close()
		stillAnnounced(t, call, feature, second.Name, "a second listening stream had been opened and closed")
	}
	if closed := t.HTTP().ListenAnew(t.Context); closed != "" && listensIn(t.Session) {
		stillAnnounced(t, call, feature, closed,
			"the listening stream had been closed and another one opened in its place")
	}
}

// silently makes a call that changes a list. It returns the list if that has changed and nothing soon says so in the
// session, with where the call began in its log. The list is read only if nothing says so. Then the call is made again
// between two readings, and once more, since a call may undo an earlier one.
func silently(t *check.T, call check.Call, feature string) (after *check.List, mark int) {
	t.Clear()
	announced := func() (told bool) {
		told, mark = announces(t, call, "notifications/"+feature+"/list_changed")
		return told
	}
	if announced() {
		return nil, mark
	}
	var before *check.List
	for range 2 {
		if before == nil {
			before = check.ReadList(t.Context, t.Session, feature+"/list")
		}
		if announced() {
			before = nil // it is another one
			continue
		}
		if after = check.ReadList(t.Context, t.Session, feature+"/list"); changed(before, after) {
			return after, mark
		}
		before = after
	}
	return nil, mark
}

// announces makes a call that changes something. It reports whether a notification of it soon comes, or nothing has
// changed, and where the call began in the log.
func announces(t *check.T, call check.Call, method string) (told bool, mark int) {
	mark = t.Mark()
	if x := t.Attempt(call.Params()); x == nil || x.Result() == nil {
		return true, mark
	}
	soon, stop := context.WithTimeout(t.Context, t.Soon(check.Later))
	defer stop()
	_, err := t.Session.AwaitNotification(soon, mark, method)
	return err == nil, mark
}

// stillAnnounced judges whether a change of a list is announced after a listening stream was closed by us. The server
// may send that on the closed stream until it knows, so it is missing only if the stream, when it is resumed, brings
// what had come before the end and not this (basic/transports#resumability-and-redelivery). Without event ids, or
// without a replay, nobody can tell.
func stillAnnounced(t *check.T, call check.Call, feature, closed, after string) {
	from := t.Mark()
	list, mark := silently(t, call, feature)
	known := make(map[string]bool) // the events that had come
	first := ""
	for _, e := range t.Session.Log().Events()[:from] {
		if e.SSE == nil || e.SSE.ID == "" {
			continue
		}
		if e.Stream == closed && first == "" {
			first = e.SSE.ID
		}
		known[e.SSE.ID] = true
	}
	if list == nil || first == "" {
		return
	}
	resumed := goOn(t, first, "the GET that resumes a listening stream")
	defer resumed.Close()
	_, err := t.Session.AwaitEvent(t.Context, mark, "notification after a stream was closed", func(e *wire.Event) bool {
		return tells(e, "notifications/"+feature+"/list_changed") && !(e.SSE != nil && known[e.SSE.ID])
	})
	replays := slices.ContainsFunc(resumed.Response().Events, func(e *wire.Event) bool {
		return e.SSE != nil && known[e.SSE.ID]
	})
	if timedOut(err) && replays && listensIn(t.Session) {
		t.Note("mcpconform found this after %s", after)
		unannounced(t, feature, list)
	}
}

// changedElsewhere makes a call that changes a list while another client has a session. If
// the list changes for that one as well, it is told.
func changedElsewhere(t *check.T, call check.Call, feature string) {
	if t.Target.Transport == transport.NameStdio {
		return // another one would be a process
	}
	t.Clear()
	other := t.Connect(check.Capable())
	if _, err := other.Initialize(t.Context); err != nil {
		return
	}
	method := "notifications/" + feature + "/list_changed"
	var mark int
	made := func() bool {
		mark = other.Log().Len()
		x := t.Attempt(call.Params())
		return x != nil && x.Result() != nil
	}
	if !made() || other.Fence(t.Context) != nil ||
		slices.ContainsFunc(other.Log().Events()[mark:], func(e *wire.Event) bool { return tells(e, method) }) {
		return // the list is read only if nothing told of the change
	}
	before := check.ReadList(t.Context, other, feature+"/list")
	if !made() {
		return
	}
	after := check.ReadList(t.Context, other, feature+"/list")
	if !changed(before, after) {
		return
	}
	_, err := other.AwaitNotification(t.Context, mark, method)
	if !timedOut(err) || !listensIn(other) {
		return
	}
	if again := check.ReadList(t.Context, other, feature+"/list"); sameItems(after, again) {
		t.Show(after.Pages[len(after.Pages)-1].Events()...)
		t.Fail("the call of one client also changed the list of another client, which received no %s", method)
	}
}

// unannounced ends the body: a list has changed, and no notification said so.
func unannounced(t *check.T, feature string, after *check.List) {
	again := check.ReadList(t.Context, t.Session, feature+"/list")
	t.Must(again.Err)
	if !sameItems(after, again) {
		t.Inconclusive("the list differs at each reading")
	}
	for _, page := range after.Pages[max(0, len(after.Pages)-1):] {
		t.Show(page.Events()...)
	}
	needsListening(t)
	t.Fail("the list changed with the call, but notifications/%s/list_changed did not come", feature)
}

// whole reports whether a list was read to its end.
func whole(l *check.List) bool {
	return l.Err == nil && !l.Endless && !l.Long && l.Pages[len(l.Pages)-1].Result() != nil
}

// changed reports whether two whole readings of a list differ.
func changed(before, after *check.List) bool {
	return before != nil && after != nil && whole(before) && whole(after) && !sameItems(before, after)
}

// sameItems reports whether two readings of a list hold the same items; no order is
// promised.
func sameItems(a, b *check.List) bool {
	return slices.Equal(items(a), items(b))
}

// items returns the items of a list as text, sorted.
func items(l *check.List) []string {
	var texts []string
	for _, item := range l.Items {
		texts = append(texts, string(client.Marshal(item)))
	}
	slices.Sort(texts)
	return texts
}

// changedByOther calls, one after the other, the tools beside one that may be
// called, until a list changes without a notification. It returns the list, or
// nil.
func changedByOther(t *check.T, but, feature string, before *check.List) *check.List {
	tools := callable(t)
	for _, tool := range tools[:min(len(tools), maxCalled)] {
		arguments, ok := t.Target.Arguments(tool)
		if slow, _ := t.Target.ToolFor("slow"); !ok || tool["name"] == but || tool["name"] == slow.Tool {
			continue
		}
		mark := t.Mark()
		if t.Attempt(map[string]any{"name": tool["name"], "arguments": arguments}) == nil {
			return nil
		}
		after := check.ReadList(t.Context, t.Session, feature+"/list")
		t.Must(after.Err)
		if sameItems(before, after) {
			continue
		}
		before = after
		_, err := t.Session.AwaitNotification(t.Context, mark, "notifications/"+feature+"/list_changed")
		if timedOut(err) {
			return after
		}
		t.Must(err)
	}
	return nil
}

// useNew uses the new items of a list, for the rules to judge. Whether they are served
// does not matter here.
func useNew(t *check.T, feature string, before, after *check.List) {
	const most = 5
	used := 0
	for _, item := range after.Items {
		if used == most || slices.ContainsFunc(before.Items, func(old map[string]any) bool {
			return old["name"] == item["name"] && old["uri"] == item["uri"]
		}) {
			continue
		}
		used++
		_, named := item["name"].(string)
		uri, _ := item["uri"].(string)
		method, params := "", map[string]any(nil)
		switch {
		case feature == "tools" && named && t.Target.Settings.Allowed(item):
			if arguments, ok := t.Target.Arguments(item); ok {
				method, params = "tools/call", map[string]any{"name": item["name"], "arguments": arguments}
			}
		case feature == "resources" && schema.CheckFormat("uri", uri) == "":
			method, params = "resources/read", map[string]any{"uri": uri}
		case feature == "prompts" && named:
			method, params = "prompts/get", promptParams(t, item)
		}
		if method == "" || !t.Offers(method) {
			continue
		}
		if _, err := t.Session.Call(t.Context, method, params); err != nil {
			return
		}
	}
}
