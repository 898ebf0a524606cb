package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

var levels = []string{string(Must), string(MustNot), string(Should), string(ShouldNot), string(May)}

// Matches reports whether a pattern names the requirement: by its id, a glob of
// ids or their first segments, by its page or one above it, or by its level. A
// level without NOT stands for both of its kind.
func (r Requirement) Matches(pattern string) bool {
	if r.ID == pattern {
		return true
	}
	if IsLevel(pattern) {
		level, _ := strings.CutSuffix(string(r.Level), " NOT")
		return strings.EqualFold(string(r.Level), pattern) || strings.EqualFold(level, pattern)
	}
	if page := strings.Trim(pattern, "/"); r.Page == page || below(r.Page, page, '/') {
		return true
	}
	if strings.ContainsAny(pattern, `*?[\`) {
		ok, err := path.Match(pattern, r.ID)
		return err == nil && ok
	}
	return below(r.ID, pattern, '.')
}

// below reports whether a name goes on after its first segments.
func below(name, segments string, separator byte) bool {
	return len(name) > len(segments) && name[len(segments)] == separator && strings.HasPrefix(name, segments)
}

// IsLevel reports whether a pattern is a level.
func IsLevel(pattern string) bool {
	return slices.ContainsFunc(levels, func(level string) bool {
		return len(level) == len(pattern) && strings.EqualFold(level, pattern)
	})
}

// CheckPattern returns an error unless the pattern names some requirement of
// the revision.
func (r *Revision) CheckPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	if slices.ContainsFunc(r.requirements, func(q Requirement) bool { return q.Matches(pattern) }) {
		return nil
	}
	if strings.ContainsAny(pattern, "*?[") {
		return fmt.Errorf("%q matches no requirement id", pattern)
	}
	return fmt.Errorf("%q is not a requirement id, page or level; the nearest ids are %s", pattern,
		strings.Join(r.Nearest(pattern, 3), ", "))
}
