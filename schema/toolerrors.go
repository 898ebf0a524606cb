package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// toolLeaves turns the library's tree of errors into leaves. The tree follows
// the random order of Go maps in places, so the leaves are sorted.
func toolLeaves(e *jsonschema.ValidationError, root any) []leaf {
	leaves := flatten(e, root)
	slices.SortStableFunc(leaves, func(a, b leaf) int {
		if c := strings.Compare(a.Pointer, b.Pointer); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.CompactFunc(leaves, func(a, b leaf) bool { return a.Violation == b.Violation })
}

// locate follows a location of the library into the value.
func locate(root any, location []string) ([]segment, any) {
	var path []segment
	value := root
	for _, token := range location {
		switch v := value.(type) {
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return path, value
			}
			path, value = append(path, segment{index: i, item: true}), v[i]
		case map[string]any:
			path, value = append(path, segment{name: token}), v[token]
		}
	}
	return path, value
}

func flatten(e *jsonschema.ValidationError, root any) []leaf {
	// Most errors only group others; only the ends need their place in the value.
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var leaves []leaf
		for _, cause := range e.Causes {
			leaves = append(leaves, toolLeaves(cause, root)...)
		}
		return leaves
	case *kind.AnyOf:
		return alternatives(e, root)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return alternatives(e, root)
		}
	}
	path, value := locate(root, e.InstanceLocation)
	return ends(e.ErrorKind, path, value)
}

func alternatives(e *jsonschema.ValidationError, root any) []leaf {
	branches := make([][]leaf, 0, len(e.Causes))
	for _, cause := range e.Causes {
		branches = append(branches, toolLeaves(cause, root))
	}
	return reduce(branches, len(e.InstanceLocation))
}

// ends puts one error of the library into words.
func ends(errorKind jsonschema.ErrorKind, path []segment, value any) []leaf {
	keyword := ""
	if k := errorKind.KeywordPath(); len(k) > 0 {
		keyword = k[0]
	}
	name := subject(path)
	one := func(format string, args ...any) []leaf {
		return []leaf{newLeaf(path, keyword, fmt.Sprintf(format, args...))}
	}
	size := func(got int, what string, relation string, want int) []leaf {
		return one("%s has %d %s, %s %d", name, got, what, relation, want)
	}
	number := func(relation string, want *big.Rat) []leaf {
		f, _ := want.Float64()
		return one("%s is %s, %s %s", name, show(value), relation, show(f))
	}
	switch k := errorKind.(type) {
	case *kind.Type:
		var want []string
		for _, n := range typeNames {
			if slices.Contains(k.Want, n.name) {
				want = append(want, n.text)
			}
		}
		return []leaf{notAllowed(path, keyword, value, want)}
	case *kind.Const:
		return []leaf{notAllowed(path, keyword, value, []string{show(k.Want)})}
	case *kind.Enum:
		var want []string
		for _, w := range k.Want {
			want = append(want, show(w))
		}
		return []leaf{notAllowed(path, keyword, value, want)}
	case *kind.Required:
		var leaves []leaf
		for _, m := range firstFew(k.Missing) {
			leaves = append(leaves, missing(path, m))
		}
		return leaves
	case *kind.Dependency:
		return dependents(path, keyword, k.Prop, k.Missing)
	case *kind.DependentRequired:
		return dependents(path, keyword, k.Prop, k.Missing)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		var leaves []leaf
		for _, m := range firstFew(k.Properties) {
			leaves = append(leaves, newLeaf(path, keyword, "member "+quote(m)+" is not allowed"))
		}
		return leaves
	case *kind.PropertyNames:
		return one("the name of member %s is not allowed", quote(k.Property))
	case *kind.FalseSchema:
		return []leaf{newLeaf(path, "false", name+" is not allowed")}
	case *kind.Pattern:
		return one("%s is %s, which does not match the pattern %s", name, show(value), quote(k.Want))
	case *kind.Format:
		return one("%s is %s, not of the format %s", name, show(value), quote(k.Want))
	case *kind.MinLength:
		return size(k.Got, "characters", "fewer than", k.Want)
	case *kind.MaxLength:
		return size(k.Got, "characters", "more than", k.Want)
	case *kind.MinItems:
		return size(k.Got, "items", "fewer than", k.Want)
	case *kind.MaxItems:
		return size(k.Got, "items", "more than", k.Want)
	case *kind.MinProperties:
		return size(k.Got, "members", "fewer than", k.Want)
	case *kind.MaxProperties:
		return size(k.Got, "members", "more than", k.Want)
	case *kind.AdditionalItems:
		return one("%s has %d items too many", name, k.Count)
	case *kind.UniqueItems:
		return one("items %d and %d of %s are equal", k.Duplicates[0], k.Duplicates[1], name)
	case *kind.Contains:
		return one("%s has no item of the kind that it must contain", name)
	case *kind.MinContains:
		return size(len(k.Got), "items of the kind that it must contain", "fewer than", k.Want)
	case *kind.MaxContains:
		return size(len(k.Got), "items of a kind that is limited", "more than", k.Want)
	case *kind.Minimum:
		return number("smaller than", k.Want)
	case *kind.Maximum:
		return number("larger than", k.Want)
	case *kind.ExclusiveMinimum:
		return number("not larger than", k.Want)
	case *kind.ExclusiveMaximum:
		return number("not smaller than", k.Want)
	case *kind.MultipleOf:
		return number("not a multiple of", k.Want)
	case *kind.Not:
		return []leaf{newLeaf(path, "not", name+" is "+show(value)+", which is excluded")}
	case *kind.OneOf:
		return one("%s fits two alternatives of which exactly one may fit", name)
	case *kind.RefCycle:
		return []leaf{newLeaf(path, circle, "the references of the schema go in a circle")}
	}
	return one("%s does not follow the keyword %s", name, quote(keyword))
}

func dependents(path []segment, keyword, because string, names []string) []leaf {
	var leaves []leaf
	for _, m := range firstFew(names) {
		leaves = append(leaves, newLeaf(path, keyword, "member "+quote(m)+" is missing, which "+quote(because)+" requires"))
	}
	return leaves
}

func firstFew(names []string) []string { return names[:min(len(names), maxViolations)] }
