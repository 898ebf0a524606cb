package schema

import (
	_ "embed"
	"slices"
)

//go:embed 2025-06-18/positions.json
var positionsJSON []byte

// A Position is the way in which the project reads the specification at a place
// where its text leaves room. docs/positions.md lists them all.
type Position struct {
	// ID is stable and in kebab case.
	ID    string `yaml:"id" json:"id"`
	Title string `yaml:"title" json:"title"`
	// Requirements are the ids of those that are judged by it, at least one.
	Requirements []string `yaml:"requirements" json:"requirements"`
	// Ambiguity says what the text leaves open or where it contradicts itself.
	Ambiguity string `yaml:"ambiguity" json:"ambiguity"`
	// Position says how it is judged.
	Position string `yaml:"position" json:"position"`
	// Reason says why.
	Reason string `yaml:"reason" json:"reason"`
}

var readPositions = embedded[Position]("positions", positionsJSON)

// Positions returns all positions in the order of positions.yaml. They are read
// at the first call. The caller may change the slice, but not what the entries
// refer to.
func Positions() ([]Position, error) {
	list, err := readPositions()
	if err != nil {
		return nil, err
	}
	return slices.Clone(list), nil
}

// PositionsFor returns the positions by which the requirement with this id is
// judged, in the order of [Positions]. There may be none.
func PositionsFor(id string) []Position {
	list, err := readPositions()
	if err != nil {
		return nil
	}
	var found []Position
	for _, p := range list {
		if slices.Contains(p.Requirements, id) {
			found = append(found, p)
		}
	}
	return found
}
