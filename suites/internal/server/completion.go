package server

import (
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// These constants bound the completions on one server.
const (
	maxCompleted = 20 // arguments
	maxNarrowed  = 4  // arguments of which a part of a suggestion is completed
	maxFollowed  = 4  // suggestions, each of which completes the one before
)

// server/utilities/completion
var completionChecks = []*check.Check{
	{
		Name:         "completion/answered",
		Requirements: []string{ids.CompletionAnswered},
		Needs:        check.Needs{Server: "completions"},
		Body: func(t *check.T) {
			answered := 0
			var refused, failed []*client.Exchange
			for _, c := range completables(t) {
				if answered >= t.Most(maxCompleted, 2) {
					break
				}
				x := t.Call("completion/complete", c.params(""))
				if refusedWith(x, -32602) || withheld(x) {
					// It may need the values of the others first (server/utilities/completion#error-handling), have
					// nothing to suggest for this one, or not be able to, or not for everybody.
					t.Note("the argument %s is not completed: %s", wire.Quote(c.name, 60), Describe(x))
					switch {
					case withheld(x):
						failed = append(failed, x)
					case len(c.others) == 0:
						refused = append(refused, x)
					}
					continue
				}
				t.Expect(x).To(HaveResult())
				answered++
				// One letter of a suggestion narrows the list, and a whole one still more; the judge counts the values.
				values := valuesOf(x)
				if answered > t.Count(maxNarrowed, maxNarrowed, maxCompleted) {
					continue
				}
				if len(values) > 0 && values[0] != "" {
					if x := t.Call("completion/complete", c.params(string([]rune(values[0])[:1]))); !withheld(x) {
						t.Expect(x).To(HaveResult())
					}
				}
				for value, n := "", 0; n < t.Most(maxFollowed, 1) && len(values) > 0; n++ {
					last := values[len(values)-1]
					if len(last) <= len(value) {
						break
					}
					value = last
					further := t.Call("completion/complete", c.params(value))
					if withheld(further) {
						break
					}
					t.Expect(further).To(HaveResult())
					values = valuesOf(further)
				}
			}
			t.Clear()
			if i := slices.IndexFunc(failed, func(x *client.Exchange) bool { return refusedWith(x, -32603) }); i >= 0 &&
				answered > 0 {
				t.Expect(failed[i]).To(HaveResult(), "for one of several arguments")
			}
			switch {
			case answered > 0:
			case len(failed) > 0:
				t.Inconclusive("the server completes no argument: %s", Describe(failed[0]))
			case len(refused) > 0:
				t.Expect(refused[0]).To(HaveResult(), "as for every other argument that stands alone")
			default:
				t.Inconclusive("the server completes no argument before the other arguments have values")
			}
		},
	},
	{
		Name:         "completion/values",
		Requirements: []string{ids.CompletionAnswered},
		Needs:        check.Needs{Server: "completions"},
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			// A user may type anything; the server suggests fitting values, or nothing.
			all := completables(t)
			i := slices.IndexFunc(all, func(c completable) bool {
				return t.Call("completion/complete", c.params("")).Result() != nil
			})
			if i < 0 {
				t.Inconclusive("the server completes no argument before the other arguments have values")
			}
			t.Vary(t.DrawFew("strings"), func(m family.Member) {
				x := t.Call("completion/complete", all[i].params(m.Str()))
				if refusedWith(x, -32602) {
					// A reader may limit the strings that it takes (RFC 8259, section 9), and a server the values.
					t.Note("the value %s is refused: %s", m, Describe(x))
					return
				}
				t.Check(ids.CompletionAnswered, x).To(HaveResult(), "for the value %s of the argument %s", m,
					quote(all[i].name))
			})
		},
	},
	{
		Name:         "completion/context",
		Requirements: []string{ids.CompletionContextAccepted},
		Needs:        check.Needs{Server: "completions"},
		Body: func(t *check.T) {
			all := completables(t)
			tried := 0
			for _, c := range all {
				if len(c.others) == 0 || tried >= t.Most(maxCompleted, 1) {
					continue
				}
				tried++
				without := t.Call("completion/complete", c.params(""))
				params := c.params("")
				value, suggested := "1", false
				if values := suggestions(t, c.ref, c.others[0]); len(values) > 0 {
					value, suggested = values[0], true
				}
				params["context"] = map[string]any{"arguments": map[string]any{c.others[0]: value}}
				with := t.Call("completion/complete", params)
				if !suggested && refusedWith(with, -32602) {
					t.Note("a value that was made up for %s was refused as context: %s", wire.Quote(c.others[0], 60),
						Describe(with))
					continue
				}
				if without.Result() != nil {
					t.Expect(with).To(HaveResult(), "with context, and not without it")
				}
			}
			// A context need not name any argument, nor have the member for them (schema#completerequest).
			t.Clear()
			params := all[0].params("")
			if without := t.Call("completion/complete", params); without.Result() == nil {
				if tried == 0 {
					t.Inconclusive("the server completes no argument: %s", Describe(without))
				}
				return
			}
			for _, given := range []map[string]any{{"arguments": map[string]any{}}, {}} {
				params["context"] = given
				t.Expect(t.Call("completion/complete", params)).To(HaveResult(),
					"with the context %s, and not without it", client.Marshal(given))
			}
		},
	},
	{
		Name:         "completion/undeclared",
		Requirements: []string{ids.CompletionErrorUnsupportedCode, ids.CompletionCapabilityDeclared},
		Body: func(t *check.T) {
			if t.Session.Capability("completions") {
				t.Exercised(ids.CompletionCapabilityDeclared)
				t.Skip("the server declares completions")
			}
			t.Premise(declaration(t))
			all := listCompletables(t)
			if len(all) == 0 {
				all = []completable{{ref: map[string]any{"type": "ref/prompt", "name": noPrompt}, name: "argument"}}
			}
			t.Clear()
			empty := false
			for _, c := range all {
				x := t.Call("completion/complete", c.params(""), client.Deliberately("*"))
				switch {
				case offered(x):
					t.Check(ids.CompletionCapabilityDeclared, x).ToNot(HaveResult(),
						"although the server does not declare completions")
					return
				case x.Result() != nil:
					empty = true
				default:
					t.Expect(x).To(HaveErrorCode(-32601), "although the server does not declare completions")
				}
			}
			if empty {
				t.Note("completion/complete is answered without values, although completions is not declared")
			}
		},
	},
	{
		Name:         "completion/unknown-prompt",
		Requirements: []string{ids.CompletionErrorInvalidPromptCode},
		Needs:        check.Needs{Server: "completions"},
		Families:     []string{"names-unknown"},
		Body: func(t *check.T) {
			t.Vary(unlisted(t.Target.List("prompts/list").Items, t.DrawFew("names-unknown"), prompts(t)),
				func(m family.Member) {
					c := completable{ref: map[string]any{"type": "ref/prompt", "name": m.Str()}, name: "argument"}
					if x := t.Call("completion/complete", c.params("")); !sameName(m, x) {
						t.Check(ids.CompletionErrorInvalidPromptCode, x).To(HaveErrorCode(-32602),
							"for a prompt that does not exist, %s", m)
					}
				})
		},
	},
	{
		Name:         "completion/missing-argument",
		Requirements: []string{ids.CompletionErrorMissingArgumentCode},
		Needs:        check.Needs{Server: "completions"},
		Body: func(t *check.T) {
			c := completables(t)[0]
			t.Expect(t.Call("completion/complete", map[string]any{"ref": c.ref},
				client.Deliberately("*"))).To(HaveErrorCode(-32602))
			t.Expect(t.Call("completion/complete",
				map[string]any{"ref": c.ref, "argument": map[string]any{"value": ""}},
				client.Deliberately("*"))).To(HaveErrorCode(-32602))
		},
	},
	{
		Name:         "completion/malformed",
		Requirements: []string{ids.CompletionSecurityValidateInputs},
		Needs:        check.Needs{Server: "completions"},
		Body: func(t *check.T) {
			c := completables(t)[0]
			t.ExcuseSilence()
			argument := map[string]any{"name": c.name, "value": ""}
			all := []struct {
				how    string
				params map[string]any
			}{
				{"with a ref of an unknown type",
					map[string]any{"ref": map[string]any{"type": "ref/mcpconform", "name": "x", "uri": "x:y"},
						"argument": argument}},
				{"with a ref that is a string", map[string]any{"ref": noPrompt, "argument": argument}},
				{"with an argument that is a string", map[string]any{"ref": c.ref, "argument": c.name}},
				{"with a ref without a name", map[string]any{"ref": map[string]any{"type": "ref/prompt"},
					"argument": argument}},
				{"with an array as the value", map[string]any{"ref": c.ref,
					"argument": map[string]any{"name": c.name, "value": []any{1}}}},
				{"with a number as the value", map[string]any{"ref": c.ref,
					"argument": map[string]any{"name": c.name, "value": 1}}},
			}
			for _, bad := range all[:t.Items(len(all))] {
				t.Clear()
				t.Check(ids.CompletionSecurityValidateInputs,
					t.Call("completion/complete", bad.params, client.Deliberately("*"))).
					ToNot(HaveResult(), "%s", bad.how)
			}
			t.Call("completion/complete", c.params(""))
		},
	},
}

// completable is one argument of a prompt, or variable of a template.
type completable struct {
	ref    map[string]any
	name   string
	others []string // further arguments of the same
}

func (c completable) params(value string) map[string]any {
	return map[string]any{"ref": c.ref, "argument": map[string]any{"name": c.name, "value": value}}
}

// withheld reports whether a server refuses a completion for a reason of its own: it cannot make one, the suggestions
// are not for everybody, or there were too many requests (server/utilities/completion#error-handling and #security).
// The text does not say which code the latter two have.
func withheld(x *client.Exchange) bool {
	return x.Error() != nil && !refusedWith(x, -32700, -32600, -32601, -32602)
}

// completables returns what can be completed. It ends the check if there is nothing.
func completables(t *check.T) []completable {
	all := listCompletables(t)
	if len(all) == 0 {
		t.Inconclusive("the server lists neither a prompt with arguments nor a template with variables")
	}
	return all
}

func listCompletables(t *check.T) []completable {
	var all []completable
	add := func(ref map[string]any, names []string) {
		for i, name := range names {
			if len(all) == maxCompleted {
				return
			}
			var others []string
			for j, other := range names {
				if i != j {
					others = append(others, other)
				}
			}
			all = append(all, completable{ref, name, others})
		}
	}
	for _, p := range prompts(t) {
		add(map[string]any{"type": "ref/prompt", "name": p["name"]}, argumentNames(p))
	}
	for _, template := range templates(t) {
		add(map[string]any{"type": "ref/resource", "uri": template}, templateVariables(template))
	}
	return all
}

// suggestions returns the suggestions of the server for an argument, for which a run asks once. It returns nothing if
// the server offers no completion.
func suggestions(t *check.T, ref map[string]any, name string) []string {
	if !t.Session.Capability("completions") {
		return nil
	}
	params := completable{ref: ref, name: name}.params("")
	text := string(client.Marshal(params))
	if known, ok := t.Target.Suggested.Load(text); ok {
		return known.([]string)
	}
	values := slices.Clip(valuesOf(t.Call("completion/complete", params))) // shared: callers append
	t.Target.Suggested.Store(text, values)
	return values
}

func valuesOf(x *client.Exchange) []string {
	var all []string
	values, _ := wire.At(x.Result(), "completion", "values").([]any)
	for _, v := range values {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
