package check

import "slices"

// Excuses returns the names of the rows of the table of excuses.
func Excuses() (names []string) {
	for _, x := range excuses {
		names = append(names, x.name)
	}
	return names
}

// Without takes a row out of the table until the returned function is called.
func Without(name string) (restore func()) {
	all := excuses
	excuses = slices.DeleteFunc(slices.Clone(all), func(x excuse) bool { return x.name == name })
	return func() { excuses = all }
}
