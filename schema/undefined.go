package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An UndefinedMember is a member that a definition neither has nor forbids.
type UndefinedMember struct {
	// In names the definition of the object that has it, or what the object is a member of.
	In   string
	Name string
	// Meant is the defined member that the name resembles and the object lacks, or "".
	Meant string
}

// maxUndefined bounds what is told of one value.
const maxUndefined = 20

// maxUndefinedDepth bounds how deep a value is looked into: the messages of the protocol
// are not deeper, and JSON of others may be.
const maxUndefinedDepth = 12

// Undefined returns members of a decoded JSON value that its definition does not have, at
// most 20, one of each name in one kind of object. It leaves out what stands where
// anything may stand, and documents of JSON Schema.
func (defs *Definitions) Undefined(def string, value any) []UndefinedMember {
	compiled, err := defs.compile(def)
	if err != nil {
		return nil
	}
	w := undefinedWalk{}
	w.value(value, []*jsonschema.Schema{compiled}, def, 0)
	return w.found
}

type undefinedWalk struct{ found []UndefinedMember }

// documents are the members that hold JSON Schema, which defines its own members.
var documents = []string{"inputSchema", "outputSchema", "requestedSchema"}

// meta is free for both sides to use (basic#meta), also where the definition of a request lists
// its params without it.
const meta = "_meta"

// envelope are the members of requests and notifications that their definitions leave to JSON-RPC.
var envelope = []string{"jsonrpc", "id"}

func (w *undefinedWalk) value(value any, applied []*jsonschema.Schema, in string, depth int) {
	if depth > maxUndefinedDepth || len(w.found) == maxUndefined {
		return
	}
	alternatives, in := alternatives(applied, in)
	switch value := value.(type) {
	case []any:
		var items []*jsonschema.Schema
		for _, s := range alternatives {
			items = append(items, itemsOf(s)...)
		}
		if len(items) == 0 {
			return
		}
		for _, item := range value {
			w.value(item, items, in, depth+1)
		}
	case map[string]any:
		w.object(value, alternatives, in, depth)
	}
}

func (w *undefinedWalk) object(value map[string]any, alternatives []*jsonschema.Schema, in string, depth int) {
	if fitting := slices.DeleteFunc(slices.Clone(alternatives),
		func(s *jsonschema.Schema) bool { return !mayBe(s, value) }); len(fitting) > 0 {
		alternatives = fitting
	}
	if len(alternatives) > 1 {
		in = strings.Join(names(alternatives, in), " or ")
	} else if len(alternatives) == 1 {
		in = nameOf(alternatives[0], in)
	}
	defined := make(map[string][]*jsonschema.Schema)
	for _, s := range alternatives {
		if s.AdditionalProperties != nil || len(s.Properties) == 0 || boundedBy(s).members != nil {
			return // anything may stand here
		}
		for name, member := range s.Properties {
			defined[name] = append(defined[name], member)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		below, known := defined[name]
		switch {
		case known && !slices.Contains(documents, name):
			w.value(value[name], below, in+"."+name, depth+1)
		case known, name == meta, depth == 0 && slices.Contains(envelope, name) && defined["method"] != nil:
		default:
			w.add(UndefinedMember{In: in, Name: name, Meant: meant(name, defined, value)})
		}
	}
}

func (w *undefinedWalk) add(m UndefinedMember) {
	if len(w.found) < maxUndefined && !slices.Contains(w.found, m) {
		w.found = append(w.found, m)
	}
}

// meant returns the defined member of an object that a name may be a slip for, and that
// the object lacks, or "".
func meant(name string, defined map[string][]*jsonschema.Schema, value map[string]any) string {
	var lacking []string
	for other := range defined {
		if _, has := value[other]; !has {
			lacking = append(lacking, other)
		}
	}
	slices.Sort(lacking)
	folded := fold(name)
	for _, other := range lacking {
		if fold(other) == folded {
			return other
		}
	}
	near := NearestOf(lacking, name, 1)
	// Two letters of a short name are most of it.
	if len(near) == 0 || !Resembles(name, near[0]) || editDistance(cut(name, 200), near[0]) > (len(name)+1)/3 {
		return ""
	}
	return near[0]
}

// fold makes names alike that differ in the way in which words are joined.
func fold(name string) string {
	return strings.ToLower(joints.Replace(cut(name, 200)))
}

var joints = strings.NewReplacer("_", "", "-", "")

// alternatives returns the schemas that stand behind references and unions, and the name
// of the last definition on the way to a single one.
func alternatives(applied []*jsonschema.Schema, in string) (all []*jsonschema.Schema, name string) {
	seen := make(map[*jsonschema.Schema]bool)
	queue := slices.Clone(applied)
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		if next := slices.Concat([]*jsonschema.Schema{s.Ref}, s.AnyOf, s.OneOf); s.Ref != nil || len(next) > 1 {
			queue = append(queue, next...)
			continue
		}
		all = append(all, s)
	}
	if len(all) == 1 {
		in = nameOf(all[0], in)
	}
	return all, in
}

// nameOf returns the name of a definition, or another name for a schema within one.
func nameOf(s *jsonschema.Schema, other string) string {
	i := strings.LastIndex(s.Location, "/")
	if i > 0 && (strings.HasSuffix(s.Location[:i], "/definitions") || strings.HasSuffix(s.Location[:i], "/$defs")) {
		return s.Location[i+1:]
	}
	return other
}

func names(all []*jsonschema.Schema, other string) []string {
	var named []string
	for _, s := range all {
		if n := nameOf(s, other); !slices.Contains(named, n) {
			named = append(named, n)
		}
	}
	return named
}

// mayBe reports whether an object has the constants that a schema demands, such as the
// type of a content block.
func mayBe(s *jsonschema.Schema, value map[string]any) bool {
	for name, member := range s.Properties {
		given, has := value[name]
		if has && member.Const != nil && *member.Const != given {
			return false
		}
		if !has && member.Const != nil && slices.Contains(s.Required, name) {
			return false
		}
	}
	return true
}

func itemsOf(s *jsonschema.Schema) []*jsonschema.Schema {
	if items := boundedBy(s).items; items != nil {
		return []*jsonschema.Schema{items}
	}
	return nil
}

// boundedBy returns what boundLists has taken out of a schema.
func boundedBy(s *jsonschema.Schema) *bounded {
	for _, e := range s.Extensions {
		if b, ok := e.(*bounded); ok {
			return b
		}
	}
	return &bounded{}
}
