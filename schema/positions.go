package schema

import "slices"

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

// Positions returns all positions in the order of positions.yaml. The caller may change the slice,
// but not what the entries refer to.
func (r *Revision) Positions() []Position { return slices.Clone(r.positions) }

// PositionsFor returns the positions by which the requirement with this id is
// judged, in the order of [Revision.Positions]. There may be none.
func (r *Revision) PositionsFor(id string) []Position {
	var found []Position
	for _, p := range r.positions {
		if slices.Contains(p.Requirements, id) {
			found = append(found, p)
		}
	}
	return found
}
