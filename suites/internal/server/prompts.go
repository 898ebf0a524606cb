package server

import (
	"maps"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// noPrompt is a name that no server gives a prompt.
const noPrompt = "mcpconform-no-such-prompt"

// maxPrompts bounds how many prompts of one server are got.
const maxPrompts = 20

// server/prompts
var promptChecks = []*check.Check{
	{
		Name:         "prompts/list",
		Requirements: []string{ids.PromptsListAnswered},
		Needs:        check.Needs{Server: "prompts", Served: true},
		Body:         func(t *check.T) { listed(t, "prompts/list") },
	},
	{
		Name:         "prompts/get",
		Requirements: []string{ids.PromptsGetAnswered},
		Needs:        check.Needs{Server: "prompts"},
		Body: func(t *check.T) {
			// A listed prompt is known under its name. It may refuse the made-up values.
			unknown := t.Call("prompts/get", map[string]any{"name": noPrompt})
			got, listed := 0, prompts(t)
			for _, p := range listed[:t.Items(len(listed))] {
				name := p["name"].(string)
				strange := func(x *client.Exchange) bool {
					return refusedWith(x, -32601) || refusedAlike(x, unknown, noPrompt, name)
				}
				params := promptParams(t, p)
				x := t.Call("prompts/get", params)
				if strange(x) {
					if !stillListed(t, "prompts/list", "name", name) {
						t.Note("the prompt %s was no longer listed when prompts/get asked for it", wire.Quote(name, 60))
						continue
					}
					x = t.Call("prompts/get", params)
				}
				switch {
				case x.Result() != nil:
					got++
				case strange(x):
					t.Fail("the listed prompt %s is refused like one that does not exist: %s", wire.Quote(name, 60),
						Describe(x))
				default:
					t.Note("prompts/get failed for the listed prompt %s: %s", wire.Quote(name, 60), Describe(x))
				}
			}
			if got == 0 {
				t.Inconclusive("the server lists no prompt that accepts made-up arguments")
			}
		},
	},
	{
		Name:         "prompts/arguments-omitted",
		Requirements: []string{ids.PromptsGetArgumentsOmitted},
		Needs:        check.Needs{Server: "prompts"},
		Body: func(t *check.T) {
			tried := 0
			for _, p := range prompts(t) {
				if len(requiredArguments(p)) > 0 || tried == t.Most(maxPrompts, 1) {
					continue
				}
				empty := map[string]any{"name": p["name"], "arguments": map[string]any{}}
				if t.Call("prompts/get", empty).Result() == nil {
					continue
				}
				without := t.Call("prompts/get", map[string]any{"name": p["name"]})
				if without.Result() == nil && t.Call("prompts/get", empty).Result() == nil {
					continue // the prompt is gone, or what it needs is
				}
				tried++
				t.Expect(without).To(HaveResult(),
					"for the prompt %s, which accepts empty arguments, without the member arguments", quote(p["name"]))
			}
			if tried == 0 {
				t.Inconclusive("the server lists no prompt without required arguments")
			}
		},
	},
	{
		Name:         "prompts/unknown",
		Requirements: []string{ids.PromptsErrorInvalidNameCode},
		Needs:        check.Needs{Server: "prompts"},
		Families:     []string{"names-unknown"},
		Body: func(t *check.T) {
			t.Vary(unlisted(t.Target.List("prompts/list").Items, t.DrawFew("names-unknown"), prompts(t)),
				func(m family.Member) {
					x := t.Call("prompts/get", map[string]any{"name": m.Str()})
					if nothingToServe(t, x) {
						t.Skip("the server has no prompts, and does not serve prompts/get")
					}
					if !sameName(m, x) {
						t.Check(ids.PromptsErrorInvalidNameCode, x).To(HaveErrorCode(-32602),
							"for a prompt that does not exist, %s", m)
					}
				})
		},
	},
	{
		Name:         "prompts/missing-argument",
		Requirements: []string{ids.PromptsErrorMissingArgumentCode, ids.PromptsArgumentsValidated},
		Needs:        check.Needs{Server: "prompts"},
		Body: func(t *check.T) {
			// The complete twin is the control.
			tried := 0
			for _, p := range prompts(t) {
				required := requiredArguments(p)
				if len(required) == 0 || tried == t.Most(maxPrompts, 1) {
					continue
				}
				full := promptParams(t, p)
				control := t.Call("prompts/get", full)
				if control.Result() == nil {
					continue
				}
				tried++
				name, _ := p["name"].(string)
				for _, missing := range required[:min(len(required), maxMutations)] {
					t.Clear()
					t.Show(t.Listed("prompts/list", "prompts", name))
					t.Show(control.Events()...)
					less := maps.Clone(full["arguments"].(map[string]any))
					delete(less, missing)
					x := t.Call("prompts/get", map[string]any{"name": p["name"], "arguments": less},
						client.Deliberately("*"))
					t.Check(ids.PromptsArgumentsValidated, x).ToNot(HaveResult(),
						"for the prompt %q without its required argument %s", name, quote(missing))
					if !t.Check(ids.PromptsErrorMissingArgumentCode, x).To(HaveErrorCode(-32602),
						"for the prompt %q without its required argument %s", name, quote(missing)) {
						break
					}
				}
				// A request without arguments leaves out the required ones.
				t.Clear()
				t.Show(t.Listed("prompts/list", "prompts", name))
				x := t.Call("prompts/get", map[string]any{"name": p["name"]}, client.Deliberately("*"))
				t.Check(ids.PromptsArgumentsValidated, x).ToNot(HaveResult(),
					"for the prompt %q without arguments, of which it requires %s", name, quote(required[0]))
				t.Check(ids.PromptsErrorMissingArgumentCode, x).To(HaveErrorCode(-32602),
					"for the prompt %q without arguments, of which it requires %s", name, quote(required[0]))
			}
			if tried == 0 {
				t.Inconclusive("the server lists no prompt with a required argument that accepts made-up values")
			}
		},
	},
	{
		Name:         "prompts/argument-type",
		Requirements: []string{ids.PromptsArgumentsValidated},
		Needs:        check.Needs{Server: "prompts"},
		Body: func(t *check.T) {
			// The arguments of prompts are strings (schema#getpromptrequest).
			tried := 0
			for _, p := range prompts(t) {
				if tried == t.Items(maxPrompts) {
					break
				}
				full := promptParams(t, p)
				arguments, _ := full["arguments"].(map[string]any)
				if len(arguments) == 0 || t.Call("prompts/get", full).Result() == nil {
					continue
				}
				tried++
				wrong := make(map[string]any)
				for name := range arguments {
					wrong[name] = map[string]any{"not": []any{"a string"}}
				}
				t.Clear()
				x := t.Call("prompts/get", map[string]any{"name": p["name"], "arguments": wrong},
					client.Deliberately("*"))
				t.Expect(x).ToNot(HaveResult(), "with arguments that are not strings")
			}
			if tried == 0 {
				t.Inconclusive("the server lists no prompt with arguments that accepts made-up values")
			}
		},
	},
	{
		Name:         "prompts/list-changed",
		Requirements: []string{ids.PromptsListChangedSent},
		Shows:        []string{ids.SchemaGetPromptResult},
		Needs:        changing("prompts"),
		Body:         func(t *check.T) { listChanged(t, "prompts") },
	},
}

// prompts returns the listed prompts that have names, up to a bound.
func prompts(t *check.T) []map[string]any {
	var all []map[string]any
	for _, p := range t.Target.List("prompts/list").Items {
		if _, ok := p["name"].(string); ok && len(all) < maxPrompts {
			all = append(all, p)
		}
	}
	return all
}

// requiredArguments returns the names of the arguments that a prompt requires.
func requiredArguments(prompt map[string]any) []string {
	var names []string
	for _, name := range argumentNames(prompt) {
		for _, a := range prompt["arguments"].([]any) {
			if at(a, "name") == name && at(a, "required") == true {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// argumentNames returns the names of the arguments of a prompt.
func argumentNames(prompt map[string]any) []string {
	var names []string
	arguments, _ := prompt["arguments"].([]any)
	for _, a := range arguments {
		if name, ok := at(a, "name").(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// promptParams returns params of prompts/get with a value for each argument: a
// URI where the name asks for one, else a suggestion of the server, or else a
// text that is a number as well.
func promptParams(t *check.T, prompt map[string]any) map[string]any {
	arguments := make(map[string]any)
	for _, name := range argumentNames(prompt) {
		ref := map[string]any{"type": "ref/prompt", "name": prompt["name"]}
		lower := strings.ToLower(name)
		if strings.Contains(lower, "uri") || strings.Contains(lower, "url") {
			arguments[name] = append(resourceURIs(t, 1), "https://example.com/")[0]
		} else {
			arguments[name] = append(suggestions(t, ref, name), "1")[0]
		}
	}
	return map[string]any{"name": prompt["name"], "arguments": arguments}
}
