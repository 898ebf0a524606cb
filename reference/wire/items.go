package wire

// Items returns the items of the array under a path of member names, or none.
func Items(v any, path ...string) []any {
	items, _ := At(v, path...).([]any)
	return items
}
