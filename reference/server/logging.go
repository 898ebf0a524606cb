package server

import (
	"context"
	"slices"

	"github.com/mcpconform/mcpconform/reference/wire"
)

// levels of log messages, least severe first (server/utilities/logging#log-levels).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// defaultLevel applies until the client sets one.
const defaultLevel = 1

func setLevel(_ context.Context, r *Request) (any, *wire.Error) {
	name, rpcErr := text(r.Params, "level")
	if rpcErr != nil {
		return nil, rpcErr
	}
	if !r.Session.SetLevel(name) {
		return nil, invalid("unknown level %s", wire.Quote(name, 60))
	}
	return map[string]any{}, nil
}

// SetLevel sets the level from which on log messages are sent. It reports false for a
// level that does not exist.
func (s *Session) SetLevel(name string) bool {
	level := slices.Index(levels, name)
	if level < 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
	return true
}

// Log sends a log message in the course of the request, unless its level lies
// below the one that the client has set.
func (r *Request) Log(level, logger string, data any) {
	s := r.Session
	s.mu.Lock()
	enough := slices.Index(levels, level) >= s.level
	s.mu.Unlock()
	if !enough || !s.Server.offers("logging") || !r.open() {
		return
	}
	r.Notify("notifications/message", map[string]any{"level": level, "logger": logger, "data": data})
}
