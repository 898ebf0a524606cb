package schema

// ReadCatalogue does what the first call of Catalogue does.
func ReadCatalogue(data []byte) ([]Requirement, error) {
	c, err := parseCatalogue(data)
	if err != nil {
		return nil, err
	}
	return c.entries, nil
}
