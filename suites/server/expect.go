package server

import (
	"regexp"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
)

var versionName = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// published reports whether a text has the form of a protocol version.
func published(version string) bool {
	return versionName.MatchString(version)
}

// haveMember matches an object by one of its members.
func haveMember(name string, value any) types.GomegaMatcher {
	return gomega.HaveKeyWithValue(name, value)
}

// at and quote are short for their namesakes of package wire.
func at(v any, path ...string) any { return wire.At(v, path...) }

func quote(v any) string { return wire.Show(v) }
