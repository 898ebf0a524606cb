package wire

// Items returns the items of the array under a path of member names, or none.
func Items(v any, path ...string) []any {
	items, _ := At(v, path...).([]any)
	return items
}

// Strings returns the strings of the array under a path of member names, or none.
func Strings(v any, path ...string) []string {
	var all []string
	for _, item := range Items(v, path...) {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
