package hooks

import (
	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Logged changes the text of log messages; no check awaits one.
func Logged(change func(raw string) string) apply {
	return Messages("notifications/message", func(out *server.Outgoing) { out.Raw = []byte(change(Text(out.Message))) })
}

// Understanding serves messages although they have one of these faults.
func Understanding(faults ...wire.IssueCode) apply {
	return func(o *server.Options) { o.Behaviour.Valid = func(m *wire.Message) bool { return m.Has(faults...) } }
}

// IsCode reports whether an error has a code.
func IsCode(problem object, code int64) bool { return problem["code"] == code }

const (
	Cancelled  = "notifications/cancelled"
	Progressed = "notifications/progress"
)
