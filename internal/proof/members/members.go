// Package members changes members of messages. Faults and oddities of servers and of clients are made of it alike.
package members

// Lacking removes a member.
func Lacking(name string) func(map[string]any) {
	return func(o map[string]any) { delete(o, name) }
}

// Having sets a member. Each object gets a value of its own.
func Having(name string, value any) func(map[string]any) {
	return func(o map[string]any) { o[name] = copied(value) }
}

// Defaulting sets a member where there is none, or where it is null.
func Defaulting(name string, value any) func(map[string]any) {
	return func(o map[string]any) {
		if o[name] == nil {
			o[name] = copied(value)
		}
	}
}

// Renamed gives a member another name.
func Renamed(from, to string) func(map[string]any) {
	return func(o map[string]any) {
		o[to] = o[from]
		delete(o, from)
	}
}

// At changes the object that a member holds, if it holds one.
func At(name string, change func(map[string]any)) func(map[string]any) {
	return func(o map[string]any) {
		if inner, ok := o[name].(map[string]any); ok {
			change(inner)
		}
	}
}

// Copied returns a deep copy of an object of JSON.
func Copied(o map[string]any) map[string]any { return copied(o).(map[string]any) }

func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		o := make(map[string]any, len(v))
		for name, member := range v {
			o[name] = copied(member)
		}
		return o
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = copied(item)
		}
		return l
	}
	return value
}
