package members

import (
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/schema"
)

// A Break is a message that breaks its definition in one member.
type Break struct {
	Member  string // as in tools[].name
	How     string // what is wrong with it
	Message map[string]any
}

// Broken derives from a valid message all that break its definition in one member: without the member, and with a
// value of another type. It looks at the first item of each array.
func Broken(r *schema.Revision, definition string, message map[string]any) (breaks []Break) {
	try := func(member, how string, change func(holder map[string]any, name string), path ...any) {
		broken := Copied(message)
		holder := any(broken)
		for _, step := range path[:len(path)-1] {
			switch step := step.(type) {
			case string:
				holder = holder.(map[string]any)[step]
			case int:
				holder = holder.([]any)[step]
			}
		}
		change(holder.(map[string]any), path[len(path)-1].(string))
		if len(r.Validate(definition, broken)) > 0 {
			breaks = append(breaks, Break{member, how, broken})
		}
	}
	var walk func(value any, member string, path []any)
	walk = func(value any, member string, path []any) {
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				at, inner := append(slices.Clip(path), any(name)), member+"."+name
				try(inner, "left out", func(o map[string]any, name string) { delete(o, name) }, at...)
				try(inner, "changed in type", func(o map[string]any, name string) { o[name] = other(o[name]) }, at...)
				walk(v[name], inner, at)
			}
		case []any:
			if len(v) > 0 {
				walk(v[0], member+"[]", append(slices.Clip(path), 0))
			}
		}
	}
	walk(message, "", nil)
	return breaks
}

// other returns a value of another type.
func other(value any) any {
	switch value.(type) {
	case string:
		return true
	case map[string]any:
		return []any{}
	}
	return "mcpconform"
}
