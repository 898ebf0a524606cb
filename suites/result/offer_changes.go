package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// OfferChange is one difference between what a server offered in two runs.
type OfferChange struct {
	Kind string // tool, prompt, resource, template, capability or instructions
	Name string // of the item; "" for instructions
	What string // what changed, in a clause
	// Breaking says that a client that got along with the earlier offer may not get along
	// with this one.
	Breaking bool
}

// maxItemChanges bounds what is said of one item.
const maxItemChanges = 20

// Changes returns how what a server offers changed from one run to a later one: for each
// kind, what is breaking stands first. Runs without an offer cannot be compared, and what
// an incomplete list lacks is not taken for removed, nor what it lacked for new.
func Changes(before, after *Run) []OfferChange {
	if before.Offer == nil || after.Offer == nil {
		return nil
	}
	c := &offerComparer{before: before.Offer, after: after.Offer}
	c.capabilities(nil, object(before.Target.Capabilities), object(after.Target.Capabilities))
	items(c, OfferTools, "tool", before.Offer.Tools, after.Offer.Tools, func(t OfferedTool) string { return t.Name },
		c.tool)
	items(c, OfferPrompts, "prompt", before.Offer.Prompts, after.Offer.Prompts,
		func(p OfferedPrompt) string { return p.Name }, c.prompt)
	items(c, OfferResources, "resource", before.Offer.Resources, after.Offer.Resources,
		func(r OfferedResource) string { return r.URI }, c.resource)
	items(c, OfferTemplates, "template", before.Offer.Templates, after.Offer.Templates,
		func(t OfferedTemplate) string { return t.URITemplate }, c.template)
	if what := textChange(before.Offer.Instructions, after.Offer.Instructions); what != "" {
		c.say("instructions", "", what, false)
	}
	slices.SortStableFunc(c.changes, func(a, b OfferChange) int {
		switch {
		case a.Breaking == b.Breaking:
			return 0
		case a.Breaking:
			return -1
		}
		return 1
	})
	return c.changes
}

// offerComparer collects the changes.
type offerComparer struct {
	before, after *Offer
	changes       []OfferChange
}

func (c *offerComparer) say(kind, name, what string, breaking bool) {
	c.changes = append(c.changes, OfferChange{Kind: kind, Name: name, What: what, Breaking: breaking})
}

// items compares the items of one list by their names. The first of several items with one name counts.
func items[T any](c *offerComparer, member, kind string, before, after []T, name func(T) string, compare func(a, b T)) {
	byName := func(list []T) map[string]T {
		by := make(map[string]T)
		for _, item := range slices.Backward(list) {
			by[name(item)] = item
		}
		return by
	}
	then, now := byName(before), byName(after)
	for _, n := range slices.Sorted(maps.Keys(then)) {
		item, ok := now[n]
		switch {
		case ok:
			compare(then[n], item)
		case !slices.Contains(c.after.Incomplete, member):
			c.say(kind, n, "was removed", true)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(now)) {
		if _, ok := then[n]; !ok && !slices.Contains(c.before.Incomplete, member) {
			c.say(kind, n, "is new", false)
		}
	}
}

// maxCapabilityDepth bounds the names of capabilities, such as resources.subscribe.
const maxCapabilityDepth = 4

// capabilities compares what was declared, member by member.
func (c *offerComparer) capabilities(path []string, before, after map[string]any) {
	for _, name := range union(before, after) {
		at := append(slices.Clone(path), name)
		b, a := declares(before[name]), declares(after[name])
		switch {
		case b && !a:
			c.say("capability", strings.Join(at, "."), "was withdrawn", true)
		case !b && a:
			c.say("capability", strings.Join(at, "."), "is new", false)
		case b && a && len(at) < maxCapabilityDepth:
			then, _ := before[name].(map[string]any)
			now, _ := after[name].(map[string]any)
			c.capabilities(at, then, now)
		}
	}
}

func declares(v any) bool { return v != nil && v != false }

func (c *offerComparer) tool(before, after OfferedTool) {
	said := 0
	say := func(what string, breaking bool) {
		if said++; said <= maxItemChanges {
			c.say("tool", after.Name, what, breaking)
		}
	}
	in, out := compareSchemas("input", before.InputSchema, after.InputSchema), []schemaChange(nil)
	switch was, is := object(before.OutputSchema) != nil, object(after.OutputSchema) != nil; {
	case was && !is:
		out = []schemaChange{{"the output schema was removed", widens}}
	case !was && is:
		out = []schemaChange{{"an output schema is new", 0}}
	default:
		out = compareSchemas("output", before.OutputSchema, after.OutputSchema)
	}
	for _, breaking := range []bool{true, false} {
		for _, x := range in {
			if x.effect&narrows != 0 == breaking {
				say(x.what, breaking)
			}
		}
		for _, x := range out {
			if x.effect&widens != 0 == breaking {
				say(x.what, breaking)
			}
		}
	}
	for _, hint := range []struct {
		name  string
		unset bool // what it means not to give it
	}{{"readOnlyHint", false}, {"destructiveHint", true}, {"idempotentHint", false}, {"openWorldHint", true}} {
		value := func(t OfferedTool) bool {
			if v, ok := object(t.Annotations)[hint.name].(bool); ok {
				return v
			}
			return hint.unset
		}
		if was, is := value(before), value(after); was != is {
			say(fmt.Sprintf("its %s was %t and is %t", hint.name, was, is), false)
		}
	}
	title := func(t OfferedTool) string {
		s, _ := object(t.Annotations)["title"].(string)
		return t.Title + "\n" + s
	}
	if title(before) != title(after) {
		say("its title changed", false)
	}
	if before.Description != after.Description {
		say("its description changed", false)
	}
	if more := said - maxItemChanges; more > 0 {
		c.say("tool", after.Name, fmt.Sprintf("changed in %d more ways", more), false)
	}
}

func (c *offerComparer) prompt(before, after OfferedPrompt) {
	find := func(p OfferedPrompt, name string) *OfferedArgument {
		if i := slices.IndexFunc(p.Arguments, func(a OfferedArgument) bool { return a.Name == name }); i >= 0 {
			return &p.Arguments[i]
		}
		return nil
	}
	say := func(name, what string, breaking bool) {
		c.say("prompt", after.Name, "the argument "+inQuotes(name)+" "+what, breaking)
	}
	for _, b := range before.Arguments {
		switch a := find(after, b.Name); {
		case a == nil && b.Required:
			say(b.Name, "was removed", true)
		case a == nil:
			say(b.Name, "was removed, which may break clients that give it", false)
		case a.Required && !b.Required:
			say(b.Name, "is now required", true)
		case !a.Required && b.Required:
			say(b.Name, "is now optional", false)
		}
	}
	for _, a := range after.Arguments {
		switch {
		case find(before, a.Name) != nil:
		case a.Required:
			say(a.Name, "is new and required", true)
		default:
			say(a.Name, "is new and optional", false)
		}
	}
}

func (c *offerComparer) resource(before, after OfferedResource) {
	if before.Name != after.Name {
		c.say("resource", after.URI, "its name was "+inQuotes(before.Name)+" and is "+inQuotes(after.Name), false)
	}
	if before.MIMEType != after.MIMEType {
		c.say("resource", after.URI, "its MIME type was "+inQuotes(before.MIMEType)+" and is "+inQuotes(after.MIMEType)+
			", which may break clients", false)
	}
}

func (c *offerComparer) template(before, after OfferedTemplate) {
	if before.Name != after.Name {
		c.say("template", after.URITemplate, "its name was "+inQuotes(before.Name)+" and is "+inQuotes(after.Name),
			false)
	}
}

// textChange says how a text that need not be there changed, or "".
func textChange(before, after string) string {
	switch {
	case before == after:
		return ""
	case before == "":
		return "are new"
	case after == "":
		return "were removed"
	}
	return "changed"
}

// maxQuoted is how many characters a change quotes of a name or value.
const maxQuoted = 60

func inQuotes(s string) string { return wire.Quote(s, maxQuoted) }

// shown is JSON as a change quotes it.
func shown(text string) string {
	if r := []rune(text); len(r) > maxQuoted {
		return string(r[:maxQuoted]) + "…"
	}
	return text
}

// object returns the members of a JSON object, or nil if it is none.
func object(text json.RawMessage) map[string]any {
	var o map[string]any
	if json.Unmarshal(text, &o) != nil {
		return nil
	}
	return o
}

// union returns the members of both, sorted.
func union[T any](a, b map[string]T) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
