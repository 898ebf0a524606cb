package schema

// Read does what the first call of [For] does.
func Read(version string) (*Revision, error) { return read(version) }
