package schema

import (
	"regexp"
	"slices"
)

// Published are the names of the revisions of the protocol, oldest first.
var Published = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// revisionName is the form of the names of revisions
// (basic/lifecycle#version-negotiation).
var revisionName = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`)

// IsPublished reports whether a revision of the protocol may have this name. It
// accepts a date after the last of [Published], because that revision may be
// younger than this program.
func IsPublished(name string) bool {
	last := Published[len(Published)-1]
	return slices.Contains(Published, name) || revisionName.MatchString(name) && name > last
}
