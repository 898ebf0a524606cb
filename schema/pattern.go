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
	if level := strings.ToUpper(pattern); slices.Contains(levels, level) {
		return string(r.Level) == level || string(r.Level) == level+" NOT"
	}
	if page := strings.Trim(pattern, "/"); r.Page == page || strings.HasPrefix(r.Page, page+"/") {
		return true
	}
	ok, err := path.Match(pattern, r.ID)
	return err == nil && ok || strings.HasPrefix(r.ID, pattern+".")
}

// IsLevel reports whether a pattern is a level.
func IsLevel(pattern string) bool { return slices.Contains(levels, strings.ToUpper(pattern)) }

// CheckPattern returns an error unless the pattern names some requirement of
// the revision.
func CheckPattern(pattern string) error {
	c, err := readCatalogue()
	if err != nil {
		return err
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("%q is not a pattern: %w", pattern, err)
	}
	if slices.ContainsFunc(c.entries, func(r Requirement) bool { return r.Matches(pattern) }) {
		return nil
	}
	if strings.ContainsAny(pattern, "*?[") {
		return fmt.Errorf("%q matches no requirement id", pattern)
	}
	return fmt.Errorf("%q is not a requirement id, page or level; the nearest ids are %s", pattern, strings.Join(Nearest(pattern, 3), ", "))
}
