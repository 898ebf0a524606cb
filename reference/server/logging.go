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
	level := slices.Index(levels, name)
	if level < 0 {
		return nil, invalid("unknown level %s", wire.Quote(name, 60))
	}
	r.Session.mu.Lock()
	r.Session.level = level
	r.Session.mu.Unlock()
	return map[string]any{}, nil
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
