package generate

import (
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A shape is what a view says about an object's members.
type shape struct {
	required []string // with what they depend on, sorted
	optional []string // declared, sorted
	min, max int
}

const unlimited = int(^uint(0) >> 1)

func (g *generator) shapeOf(v *view) shape {
	sh := shape{max: unlimited}
	declared := map[string]bool{}
	required := map[string]bool{}
	for _, s := range v.all {
		f := g.facts[s]
		g.step(1 + (len(f.names)+len(s.Required))/16)
		for _, name := range s.Required {
			required[name] = true
		}
		for _, name := range f.names {
			declared[name] = true
		}
		if s.MinProperties != nil {
			sh.min = max(sh.min, *s.MinProperties)
		}
		if s.MaxProperties != nil {
			sh.max = min(sh.max, *s.MaxProperties)
		}
	}
	g.close(v, required)
	sh.required = slices.Sorted(maps.Keys(required))
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if !required[name] {
			sh.optional = append(sh.optional, name)
		}
	}
	return sh
}

// close adds the members that those in the set depend on.
func (g *generator) close(v *view, names map[string]bool) {
	for grown := true; grown; {
		grown = false
		for _, s := range v.all {
			for _, t := range g.facts[s].triggers {
				g.step(1)
				if !names[t.name] {
					continue
				}
				for _, name := range t.names {
					grown = grown || !names[name]
					names[name] = true
				}
			}
		}
	}
}

// triggered returns the schemas that the presence of members brings with it and
// that the view does not have yet.
func (g *generator) triggered(v *view, names []string) []*jsonschema.Schema {
	present := make(map[string]bool, len(names))
	for _, name := range names {
		present[name] = true
	}
	var list []*jsonschema.Schema
	for _, s := range v.all {
		for _, t := range g.facts[s].triggers {
			g.step(1)
			if t.schema != nil && !v.seen[t.schema] && present[t.name] {
				list = append(list, t.schema)
			}
		}
	}
	return list
}

// member returns the schemas for a member, or false if it may not be there.
func (g *generator) member(v *view, name string) (conj []*jsonschema.Schema, allowed bool) {
	covered := false
	for _, s := range v.all {
		g.step(1)
		hit := false
		if c := s.Properties[name]; c != nil {
			conj, hit = append(conj, c), true
		}
		for _, p := range g.facts[s].patterns {
			g.charge(1 + matching(name, patternSize(p.pattern)))
			if p.pattern.MatchString(name) {
				conj, hit = append(conj, p.schema), true
			}
		}
		if !hit && s.AdditionalProperties != nil {
			hit = true
			switch additional := s.AdditionalProperties.(type) {
			case bool:
				if !additional {
					return nil, false
				}
			case *jsonschema.Schema:
				conj = append(conj, additional)
			}
		}
		covered = covered || hit
	}
	if !covered {
		for _, s := range v.all {
			if s.UnevaluatedProperties != nil {
				conj = append(conj, s.UnevaluatedProperties)
			}
		}
	}
	for _, s := range conj {
		if s.Bool != nil && !*s.Bool {
			return nil, false
		}
	}
	return conj, true
}

func (g *generator) object(v *view, at place, r request) (any, error) {
	sh := g.shapeOf(v)
	if len(sh.required) > sh.max || sh.min > sh.max {
		return nil, at.problem("no object can have all its required members and at most %d", sh.max)
	}
	if sh.min > maxSteps/8 {
		return nil, at.problem("an object of %d members would be too large", sh.min)
	}
	names, has, err := g.fill(v, sh, at)
	if err != nil {
		return nil, err
	}
	if !r.full {
		value, err := g.objectOf(v, names, nil, at, r)
		if err != nil || g.accept(v, value, r) {
			return value, err
		}
		if value, ok := g.another(v, value.(map[string]any), at, r); ok {
			return value, nil
		}
		r.full = true
	}
	optional := slices.DeleteFunc(slices.Clone(sh.optional), func(name string) bool { return has[name] })
	value, err := g.objectOf(v, names, optional[:min(len(optional), sh.max-len(names))], at, r)
	if err != nil || g.accept(v, value, r) {
		return value, err
	}
	if value, ok := g.grown(v, names, optional, at, r); ok {
		return value, nil
	}
	return nil, at.problem("no object was found that follows all its rules")
}

// fill returns the required members and as many others as the least number asks for.
func (g *generator) fill(v *view, sh shape, at place) (names []string, has map[string]bool, err error) {
	names, has = slices.Clone(sh.required), map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	add := func(name string) {
		if _, allowed := g.member(v, name); allowed && !has[name] {
			names, has[name] = append(names, name), true
		}
	}
	for _, name := range sh.optional {
		if len(names) >= sh.min {
			break
		}
		add(name)
	}
	leave := g.enter(v)
	defer leave()
	for i := 0; len(names) < sh.min; i++ {
		if i > sh.min+16 {
			return nil, nil, at.problem("no further members were found for an object of at least %d", sh.min)
		}
		for _, s := range v.all {
			for _, p := range g.facts[s].patterns {
				if name, ok := g.match(p.pattern.String(), 0, i, 0); ok && len(names) < sh.min {
					add(name)
				}
			}
		}
		if len(names) >= sh.min {
			break
		}
		var conj []*jsonschema.Schema
		for _, s := range v.all {
			if s.PropertyNames != nil {
				conj = append(conj, s.PropertyNames)
			}
		}
		name := "member" + strconv.Itoa(i+1)
		if slices.ContainsFunc(conj, g.isActive) {
			return nil, nil, at.problem("the names of its members lead back to the object itself")
		}
		if len(conj) > 0 {
			keys := make(map[string]bool, len(names))
			for _, name := range names {
				g.step(1)
				keys[g.key(name)] = true
			}
			made, err := g.generate(conj, at.member(name), request{vary: i, avoid: keys})
			text, ok := made.(string)
			if err != nil || !ok {
				continue
			}
			name = text
		}
		add(name)
	}
	return names, has, nil
}

// objectOf makes an object with the given members and those of the optional
// ones that can be made.
func (g *generator) objectOf(v *view, names, optional []string, at place, r request) (any, error) {
	all := slices.Concat(names, optional)
	if more := g.triggered(v, all); len(more) > 0 {
		m, decided := v.mark(), len(v.choices)
		defer v.undo(m)
		for _, s := range more {
			g.expand(v, s)
		}
		return g.solve(v, decided, at, r)
	}
	leave := g.enter(v)
	defer leave()
	object := map[string]any{}
	for i, name := range all {
		g.spend(len(name))
		conj, allowed := g.member(v, name)
		isOptional := i >= len(names)
		if isOptional && (!allowed || slices.ContainsFunc(conj, g.isActive)) {
			continue
		}
		if !allowed {
			return nil, at.problem("member %s is required, but not allowed", quote(name))
		}
		value, err := g.generate(conj, at.member(name), r.below())
		if err == nil {
			object[name] = value
		} else if !isOptional {
			return nil, err
		}
	}
	return object, nil
}

// another changes one member of an object that is valid, but not wanted.
func (g *generator) another(v *view, object map[string]any, at place, r request) (any, bool) {
	if len(r.avoid) == 0 {
		return nil, false
	}
	leave := g.enter(v)
	defer leave()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		conj, _ := g.member(v, name)
		child := r.below()
		child.vary, child.avoid = r.vary, map[string]bool{g.key(object[name]): true}
		value, err := g.generate(conj, at.member(name), child)
		if err != nil {
			continue
		}
		changed := maps.Clone(object)
		changed[name] = value
		if g.accept(v, changed, r) {
			return changed, true
		}
	}
	return nil, false
}

// grown starts from the required members and adds the optional ones that the
// object bears, one after the other.
func (g *generator) grown(v *view, names, optional []string, at place, r request) (any, bool) {
	value, err := g.objectOf(v, names, nil, at, r)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, false
	}
	leave := g.enter(v)
	defer leave()
	accepted := g.accept(v, object, r)
	for _, name := range optional {
		if object[name] != nil {
			continue
		}
		conj, allowed := g.member(v, name)
		if !allowed || slices.ContainsFunc(conj, g.isActive) {
			continue
		}
		member, err := g.generate(conj, at.member(name), r.below())
		if err != nil {
			continue
		}
		larger := maps.Clone(object)
		larger[name] = member
		if g.accept(v, larger, r) {
			object, accepted = larger, true
		}
	}
	return object, accepted
}

// item returns the schemas for the item at an index, or false if none may be there.
func (g *generator) item(v *view, i int) (conj []*jsonschema.Schema, allowed bool) {
	covered := false
	for _, s := range v.all {
		g.step(1)
		switch {
		case i < len(s.PrefixItems):
			conj, covered = append(conj, s.PrefixItems[i]), true
		case s.Items2020 != nil:
			conj, covered = append(conj, s.Items2020), true
		}
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			conj, covered = append(conj, items), true
		case []*jsonschema.Schema:
			if i < len(items) {
				conj, covered = append(conj, items[i]), true
				break
			}
			switch additional := s.AdditionalItems.(type) {
			case bool:
				if !additional {
					return nil, false
				}
			case *jsonschema.Schema:
				conj, covered = append(conj, additional), true
			}
		}
	}
	if !covered {
		for _, s := range v.all {
			if s.UnevaluatedItems != nil {
				conj = append(conj, s.UnevaluatedItems)
			}
		}
	}
	for _, s := range conj {
		if s.Bool != nil && !*s.Bool {
			return nil, false
		}
	}
	return conj, true
}

// prefix is the number of items that have a schema of their own.
func prefix(v *view) int {
	n := 0
	for _, s := range v.all {
		n = max(n, len(s.PrefixItems))
		if items, ok := s.Items.([]*jsonschema.Schema); ok {
			n = max(n, len(items))
		}
	}
	return n
}

// An inclusion is a schema that a number of items has to follow.
type inclusion struct {
	schema *jsonschema.Schema
	count  int
}

func (g *generator) array(v *view, at place, r request) (any, error) {
	least, most, unique, typed := 0, unlimited, false, false
	var contains []inclusion
	for _, s := range v.all {
		if s.MinItems != nil {
			least = max(least, *s.MinItems)
		}
		if s.MaxItems != nil {
			most = min(most, *s.MaxItems)
		}
		if s.Contains != nil {
			in := inclusion{s.Contains, 1}
			if s.MinContains != nil {
				in.count = *s.MinContains
			}
			if in.count > 0 {
				contains = append(contains, in)
			}
		}
		unique = unique || s.UniqueItems
		typed = typed || s.Items != nil || s.Items2020 != nil
	}
	if least > most {
		return nil, at.problem("no array has at least %d and at most %d items", least, most)
	}
	first := prefix(v)
	wanted := least
	if r.full {
		wanted = max(wanted, first)
		if typed {
			wanted = max(wanted, 1)
		}
		wanted = min(wanted, most)
	}
	var problem error
	// Where the items that must be contained go: together at the start or after
	// the items with schemas of their own, or there one after the other.
	for _, layout := range []struct {
		start  int
		shared bool
	}{{0, true}, {first, true}, {first, false}} {
		need := 0
		for _, in := range contains {
			if in.count > maxSteps {
				return nil, at.problem("an array that contains %d items of a kind would be too large", in.count)
			}
			if layout.shared {
				need = max(need, in.count)
			} else {
				need += in.count
			}
		}
		least, wanted := least, wanted
		if need > 0 {
			least, wanted = max(least, layout.start+need), max(wanted, layout.start+need)
		}
		if least > most {
			problem = at.problem("an array of at most %d items cannot contain what it must", most)
			continue
		}
		if least > maxSteps/8 {
			return nil, at.problem("an array of %d items would be too large", least)
		}
		// A little longer, if only its size tells it from an unwanted one.
		for extra := range tries {
			n := wanted + extra
			if extra > 0 && (len(r.avoid) == 0 || n > most) {
				break
			}
			list, err := g.arrayOf(v, layout.start, layout.shared, contains, least, n, unique, at, r)
			if err != nil {
				problem = err
				break
			}
			if g.accept(v, list, r) {
				return list, nil
			}
		}
		if len(contains) == 0 {
			break
		}
	}
	if problem == nil && !r.full {
		r.full = true
		return g.array(v, at, r)
	}
	if problem == nil {
		problem = at.problem("no array was found that follows all its rules")
	}
	return nil, problem
}

// arrayOf makes an array of at least and, if that is possible, wanted items.
func (g *generator) arrayOf(v *view, start int, shared bool, contains []inclusion, least, wanted int, unique bool, at place, r request) (any, error) {
	leave := g.enter(v)
	defer leave()
	list := []any{}
	seen := map[string]bool{}
	for i := range wanted {
		optional := i >= least
		conj, allowed := g.item(v, i)
		if optional && (!allowed || slices.ContainsFunc(conj, g.isActive)) {
			break
		}
		if !allowed {
			return nil, at.problem("item %d is needed, but not allowed", i)
		}
		next := start
		for _, in := range contains {
			if i >= next && i < next+in.count {
				conj = append(slices.Clip(conj), in.schema)
			}
			if !shared {
				next += in.count
			}
		}
		child := r.below()
		if unique {
			child.vary, child.avoid = i, seen
		}
		value, err := g.generate(conj, at.item(i), child)
		if err != nil {
			if optional {
				break
			}
			return nil, err
		}
		list = append(list, value)
		if unique {
			seen[g.key(value)] = true
		}
	}
	return list, nil
}
