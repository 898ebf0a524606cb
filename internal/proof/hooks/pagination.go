package hooks

import (
	"context"
	"strings"
	"sync"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// FromStart answers requests that fit as if they had no cursor.
func FromStart(method string, fits func(r *server.Request) bool) apply {
	return OnRequest(method, func(r *server.Request) {
		if fits(r) {
			delete(r.Params, "cursor")
		}
	})
}

// Issued are the cursors that a session was given, each with the method of its list.
func Issued(s *server.Session) *sync.Map { return Keys(s, "issued") }

// RememberingCursors keeps what Issued returns.
func RememberingCursors() apply {
	return Wrapping("*", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if cursor, more := wire.At(result, "nextCursor").(string); more {
			Issued(r.Session).Store(cursor, r.Method)
		}
		return result, problem
	})
}

// MadeFrom returns a cursor that the session was given and from which another one was made, as like
// says, or "".
func MadeFrom(r *server.Request, like func(cursor, given string) bool) (given string) {
	cursor, ok := r.Params["cursor"].(string)
	if _, known := Issued(r.Session).Load(cursor); !ok || known {
		return ""
	}
	Issued(r.Session).Range(func(key, _ any) bool {
		if like(cursor, key.(string)) {
			given = key.(string)
		}
		return given == ""
	})
	return given
}

// BegunWith fits what is cut off a cursor, if more than a few characters are left.
func BegunWith(cursor, given string) bool { return len(cursor) > 8 && strings.HasPrefix(given, cursor) }

// LongerThan fits a given cursor with something behind it.
func LongerThan(cursor, given string) bool { return strings.HasPrefix(cursor, given) }
