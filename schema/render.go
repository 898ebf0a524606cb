package schema

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain puts what the library says of a value into words. The value is
// the one to show: numbers in it may have been replaced for the library. The work is the
// number of faults that were looked at.
func (s *schemas) explain(err error, value any) (list []Violation, work int) {
	var failure *jsonschema.ValidationError
	if !errors.As(err, &failure) {
		return nil, 0
	}
	r := &renderer{known: s, value: value}
	for _, l := range firstFew(r.leaves(failure)) {
		list = append(list, l.Violation)
	}
	return list, r.work
}

// A renderer turns the library's tree of errors into leaves.
type renderer struct {
	known *schemas
	value any
	work  int
}

// leaves come in the order of their places: the tree follows the random order of
// Go maps in places.
func (r *renderer) leaves(e *jsonschema.ValidationError) []leaf {
	leaves := r.flatten(e)
	slices.SortStableFunc(leaves, func(a, b leaf) int {
		return cmp.Or(slices.CompareFunc(a.path, b.path, segment.compare), strings.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(leaves, func(a, b leaf) bool {
		return a.Violation == b.Violation && slices.Equal(a.path, b.path)
	})
}

func (r *renderer) flatten(e *jsonschema.ValidationError) []leaf {
	// Most errors only group others; only the ends need their place in the value.
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var leaves []leaf
		for _, cause := range e.Causes {
			leaves = append(leaves, r.flatten(cause)...)
		}
		return leaves
	case *kind.AnyOf:
		return r.alternatives(e, func(s *jsonschema.Schema) []*jsonschema.Schema { return s.AnyOf })
	case *kind.OneOf:
		if k.Subschemas == nil {
			return r.alternatives(e, func(s *jsonschema.Schema) []*jsonschema.Schema { return s.OneOf })
		}
	case *kind.Type:
		// A member with a few constant values seldom has another type by intention.
		if s := r.known.find(e.SchemaURL); s != nil && s.Const != nil {
			return r.end(e, &kind.Const{Want: *s.Const})
		} else if s != nil && s.Enum != nil {
			return r.end(e, &kind.Enum{Want: s.Enum.Values})
		}
	}
	return r.end(e, e.ErrorKind)
}

func (r *renderer) end(e *jsonschema.ValidationError, errorKind jsonschema.ErrorKind) []leaf {
	path, value := locate(r.value, e.InstanceLocation)
	r.work++
	return ends(errorKind, path, value)
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

// alternatives tells why a value follows no branch of a union: e has one cause for each. If a member of constants
// tells the branches apart, its value selects the branches to consider.
func (r *renderer) alternatives(e *jsonschema.ValidationError,
	of func(*jsonschema.Schema) []*jsonschema.Schema) []leaf {
	path, value := locate(r.value, e.InstanceLocation)
	causes := e.Causes
	if s := r.known.find(e.SchemaURL); s != nil && len(of(s)) == len(causes) {
		object, isObject := value.(map[string]any)
		tag, branches := discriminator(of(s))
		switch given, present := object[tag]; {
		case tag == "" || !isObject:
		case !present:
			l := missing(path, tag)
			if len(branches.values) > 1 {
				l.Message += "; it is " + oneOf("enum", quoteAll(branches.values))
			}
			return []leaf{l}
		default:
			text, isText := given.(string)
			if !isText || branches.by[text] == nil {
				keyword := "enum"
				if len(branches.values) == 1 {
					keyword = "const"
				}
				return []leaf{notAllowed(append(path, segment{name: tag}), keyword, given, quoteAll(branches.values))}
			}
			causes = nil
			for _, i := range branches.by[text] {
				causes = append(causes, e.Causes[i])
			}
		}
	}
	failed := make([][]leaf, 0, len(causes))
	for _, cause := range causes {
		failed = append(failed, r.leaves(cause))
	}
	return reduce(failed, len(path))
}

// tagged are the branches of a union by the value of the member that tells them apart.
type tagged struct {
	by     map[string][]int // indices of branches
	values []string         // in the order of the branches
}

// discriminator returns the member whose constant tells the branches for objects
// apart best, or "" if there is none that all of them require.
func discriminator(union []*jsonschema.Schema) (name string, best tagged) {
	union = slices.Clone(union)
	var objects []int
	for i, b := range union {
		b = target(b)
		union[i] = b
		if b.Types == nil || b.Types.IsEmpty() || slices.Contains(b.Types.ToStrings(), "object") {
			objects = append(objects, i)
		}
	}
	if len(objects) == 0 {
		return "", tagged{}
	}
	for _, candidate := range slices.Sorted(maps.Keys(union[objects[0]].Properties)) {
		t := tagged{by: map[string][]int{}}
		for _, i := range objects {
			values := constants(union[i].Properties[candidate])
			if len(values) == 0 || !slices.Contains(union[i].Required, candidate) {
				t = tagged{}
				break
			}
			for _, value := range values {
				if t.by[value] == nil {
					t.values = append(t.values, value)
				}
				t.by[value] = append(t.by[value], i)
			}
		}
		if len(t.by) > len(best.by) {
			name, best = candidate, t
		}
	}
	return name, best
}

// target follows references to the schema that says something.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	for range 16 {
		if s.Ref == nil {
			break
		}
		s = s.Ref
	}
	return s
}

// constants returns the texts that a schema allows if it allows nothing else.
func constants(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	var values []any
	if s = target(s); s.Const != nil {
		values = []any{*s.Const}
	} else if s.Enum != nil {
		values = s.Enum.Values
	}
	var texts []string
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

func quoteAll(texts []string) []string {
	list := make([]string, len(texts))
	for i, t := range texts {
		list[i] = quote(t)
	}
	return list
}

// ends puts one error of the library into words.
func ends(errorKind jsonschema.ErrorKind, path []segment, value any) []leaf {
	keyword := ""
	if k := errorKind.KeywordPath(); len(k) > 0 {
		keyword = k[0]
	}
	name := subject(path)
	switch k := errorKind.(type) {
	case *kind.InvalidJsonValue:
		return []leaf{newLeaf(path, "type", name+" is "+show(value))}
	case *kind.Type:
		var want []string
		for _, t := range typeTexts {
			if slices.Contains(k.Want, t.name) {
				want = append(want, t.text)
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
	case *kind.FalseSchema:
		return []leaf{newLeaf(path, "false", name+" is not allowed")}
	case *kind.Not:
		return []leaf{newLeaf(path, "not", name+" is "+show(value)+", which is excluded")}
	case *kind.RefCycle:
		return []leaf{newLeaf(path, circle, "the references of the schema go in a circle")}
	}
	return []leaf{newLeaf(path, keyword, sentence(errorKind, name, value, keyword))}
}

// sentence says what an error is about in a sentence of its own.
func sentence(errorKind jsonschema.ErrorKind, name string, value any, keyword string) string {
	if got, what, relation, want, ok := sizeOf(errorKind); ok {
		return fmt.Sprintf("%s has %d %s, %s %d", name, got, what, relation, want)
	}
	if relation, want := boundOf(errorKind); want != nil {
		f, _ := want.Float64()
		return fmt.Sprintf("%s is %s, %s %s", name, show(value), relation, show(f))
	}
	switch k := errorKind.(type) {
	case *kind.PropertyNames:
		return fmt.Sprintf("the name of member %s is not allowed", quote(k.Property))
	case *kind.Pattern:
		return fmt.Sprintf("%s is %s, which does not match the pattern %s", name, show(value), quote(k.Want))
	case *kind.Format:
		if reason := malformed(""); errors.As(k.Err, &reason) {
			return fmt.Sprintf("%s is %s, %s", name, show(value), reason)
		}
		return fmt.Sprintf("%s is %s, not of the format %s", name, show(value), quote(k.Want))
	case *kind.AdditionalItems:
		return fmt.Sprintf("%s has %d items too many", name, k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d of %s are equal", k.Duplicates[0], k.Duplicates[1], name)
	case *kind.Contains:
		return name + " has no item of the kind that it must contain"
	case *kind.OneOf:
		return name + " fits two alternatives of which exactly one may fit"
	}
	return fmt.Sprintf("%s does not follow the keyword %s", name, quote(keyword))
}

// sizeOf tells how many of what there are, and how that relates to the limit. It says false of other errors.
func sizeOf(errorKind jsonschema.ErrorKind) (got int, what, relation string, want int, ok bool) {
	const fewer, more = "fewer than", "more than"
	switch k := errorKind.(type) {
	case *kind.MinLength:
		return k.Got, "characters", fewer, k.Want, true
	case *kind.MaxLength:
		return k.Got, "characters", more, k.Want, true
	case *kind.MinItems:
		return k.Got, "items", fewer, k.Want, true
	case *kind.MaxItems:
		return k.Got, "items", more, k.Want, true
	case *kind.MinProperties:
		return k.Got, "members", fewer, k.Want, true
	case *kind.MaxProperties:
		return k.Got, "members", more, k.Want, true
	case *kind.MinContains:
		return len(k.Got), "items of the kind that it must contain", fewer, k.Want, true
	case *kind.MaxContains:
		return len(k.Got), "items of a kind that is limited", more, k.Want, true
	}
	return 0, "", "", 0, false
}

// boundOf tells how a number relates to what the schema wants, which is nil for other errors.
func boundOf(errorKind jsonschema.ErrorKind) (relation string, want *big.Rat) {
	switch k := errorKind.(type) {
	case *kind.Minimum:
		return "smaller than", k.Want
	case *kind.Maximum:
		return "larger than", k.Want
	case *kind.ExclusiveMinimum:
		return "not larger than", k.Want
	case *kind.ExclusiveMaximum:
		return "not smaller than", k.Want
	case *kind.MultipleOf:
		return "not a multiple of", k.Want
	}
	return "", nil
}

var typeTexts = []struct{ name, text string }{
	{"string", "a string"},
	{"number", "a number"},
	{"integer", "an integer"},
	{"boolean", "a boolean"},
	{"array", "an array"},
	{"object", "an object"},
	{"null", "null"},
}

func dependents(path []segment, keyword, because string, names []string) []leaf {
	var leaves []leaf
	for _, m := range firstFew(names) {
		leaves = append(leaves, newLeaf(path, keyword,
			"member "+quote(m)+" is missing, which "+quote(because)+" requires"))
	}
	return leaves
}

func firstFew[T any](list []T) []T { return list[:min(len(list), maxViolations)] }

// A leaf is a violation before the alternatives of a union are reduced. Its
// parts are kept apart so that the leaves of several branches can be merged.
type leaf struct {
	Violation
	path   []segment
	prefix string   // subject and value, as in `"type" is "x"`
	want   []string // what was allowed: types, constants or the missing member
}

func newLeaf(path []segment, keyword, message string) leaf {
	return leaf{Violation: Violation{Pointer: pointer(path), Message: message, Keyword: keyword},
		path: slices.Clone(path)}
}

func missing(path []segment, name string) leaf {
	l := newLeaf(path, "required", "member "+quote(name)+" is missing")
	l.want = []string{quote(name)}
	l.Property = name
	return l
}

func notAllowed(path []segment, keyword string, value any, want []string) leaf {
	l := newLeaf(path, keyword, "")
	l.prefix = subject(path) + " is " + show(value)
	l.want = want
	l.Message = l.prefix + ", not " + oneOf(keyword, want)
	return l
}

func oneOf(keyword string, want []string) string {
	if len(want) > 1 && keyword != "type" {
		return "one of " + list(want, "or")
	}
	return list(want, "or")
}

// reduce picks, from the leaves of the failed branches of a union judged at the given depth, those that tell what is
// wrong. A branch whose type does not fit or whose constant differs in a direct member was not meant. Among the
// others, the one that misses the fewest members and then has the fewest leaves is closest; The leaves on which
// several equally close branches agree are kept. If they differ in one point each, that point becomes one leaf with
// all alternatives.
func reduce(branches [][]leaf, depth int) []leaf {
	branches = slices.DeleteFunc(branches, func(b []leaf) bool { return len(b) == 0 })
	if len(branches) == 0 {
		return nil
	}
	excluded := func(b []leaf) int {
		return slices.IndexFunc(b, func(l leaf) bool {
			switch l.Keyword {
			case "type", "enum":
				return len(l.path) == depth
			case "const":
				return len(l.path) == depth || len(l.path) == depth+1
			}
			return false
		})
	}
	meant := slices.DeleteFunc(slices.Clone(branches), func(b []leaf) bool { return excluded(b) >= 0 })
	if len(meant) > 0 {
		branches = meant
	} else {
		// No branch was meant, so other errors of a branch say nothing. A branch with another type is further away
		// than a branch with another constant.
		deepest := depth
		for i, b := range branches {
			j := excluded(b)
			branches[i] = b[j : j+1]
			deepest = max(deepest, len(b[j].path))
		}
		branches = slices.DeleteFunc(branches, func(b []leaf) bool { return len(b[0].path) < deepest })
	}
	type rank struct{ missing, leaves int }
	rankOf := func(b []leaf) (r rank) {
		for _, l := range b {
			if l.Keyword == "required" {
				r.missing++
			}
		}
		r.leaves = len(b)
		return r
	}
	less := func(a, b rank) bool {
		return a.missing < b.missing || a.missing == b.missing && a.leaves < b.leaves
	}
	best := rankOf(branches[0])
	for _, b := range branches[1:] {
		if r := rankOf(b); less(r, best) {
			best = r
		}
	}
	branches = slices.DeleteFunc(branches, func(b []leaf) bool { return rankOf(b) != best })
	return merge(branches)
}

func merge(branches [][]leaf) []leaf {
	first := branches[0]
	if len(branches) == 1 {
		return first
	}
	// How many branches have a leaf: of a union may be as many as a peer likes.
	shared := map[Violation]int{}
	for _, b := range branches {
		for _, l := range b {
			shared[l.Violation]++
		}
	}
	inAll := func(l leaf) bool { return shared[l.Violation] == len(branches) }
	var common []leaf
	for _, l := range first {
		if inAll(l) {
			common = append(common, l)
		}
	}
	var merged leaf
	for i, b := range branches {
		rest := slices.DeleteFunc(slices.Clone(b), inAll)
		if len(rest) != 1 || len(rest[0].want) == 0 {
			return first
		}
		l := rest[0]
		if i == 0 {
			merged = l
			merged.want = slices.Clone(l.want)
			continue
		}
		sameKind := l.Keyword == merged.Keyword || isValue(l.Keyword) && isValue(merged.Keyword)
		if !sameKind || l.Pointer != merged.Pointer || l.prefix != merged.prefix {
			return first
		}
		for _, w := range l.want {
			if len(merged.want) <= maxListed && !slices.Contains(merged.want, w) {
				merged.want = append(merged.want, w)
			}
		}
	}
	if len(merged.want) > 1 {
		merged.Property = ""
	}
	switch {
	case merged.Keyword == "required" && len(merged.want) == 2:
		merged.Message = "neither " + merged.want[0] + " nor " + merged.want[1] + " is present; one of them is needed"
	case merged.Keyword == "required":
		merged.Message = "one of " + list(merged.want, "or") + " is needed; none is present"
	default:
		if isValue(merged.Keyword) && len(merged.want) > 1 {
			merged.Keyword = "enum"
		}
		merged.Message = merged.prefix + ", not " + oneOf(merged.Keyword, merged.want)
	}
	return append(common, merged)
}

func isValue(keyword string) bool { return keyword == "const" || keyword == "enum" }
