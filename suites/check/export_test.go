package check

// Excuses returns the names of the rows of the table of excuses.
func Excuses() []string { return excuses.Names() }

// Without takes a row out of the table until the returned function is called.
func Without(name string) (restore func()) {
	all := excuses
	excuses = all.Without(name)
	return func() { excuses = all }
}
