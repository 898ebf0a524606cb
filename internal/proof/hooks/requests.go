package hooks

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// HoldsWide reports whether a text holds characters beyond ASCII.
func HoldsWide(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII })
}

// Param returns a string among the params of a request.
func Param(r *server.Request, path ...string) string { return TextAt(r.Params, path...) }

// TextAt returns a string inside a value; "" if there is none.
func TextAt(v any, path ...string) string {
	s, _ := wire.At(v, path...).(string)
	return s
}

// Fitting fits requests one of whose params is a string that fits.
func Fitting(fits func(s string) bool, path ...string) func(r *server.Request) bool {
	return func(r *server.Request) bool {
		s, ok := wire.At(r.Params, path...).(string)
		return ok && fits(s)
	}
}

// Equal fits some texts.
func Equal(want ...string) func(string) bool {
	return func(s string) bool { return slices.Contains(want, s) }
}

// Holding fits texts that hold a part.
func Holding(part string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, part) }
}

// Capitalized reports whether a text reads like a name of the catalogue with capitals for small letters.
func Capitalized(s string) bool { return strings.HasPrefix(s, "TEST_") }

// LogLevels are the levels, the lowest first.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Member returns a member that is a string, or "".
func Member(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// Busy reports whether a tool is at work.
func Busy(s *server.Session) bool {
	return slices.ContainsFunc(s.Running(), func(r *server.Request) bool { return r.Method == "tools/call" })
}
