package hooks

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Pick chooses among the other sessions, oldest first.
type Pick func(others []*server.Session) []*server.Session

// Trigger calls do with each session that acts in a certain way.
type Trigger func(do func(s *server.Session)) apply

// OnBegin is the trigger of sessions that finish the handshake.
func OnBegin(do func(s *server.Session)) apply { return Ready(do) }

// ToOthers does something to other sessions when one acts.
func ToOthers(on Trigger, which Pick, do func(s *server.Session)) apply {
	return on(func(s *server.Session) {
		for _, other := range which(Others(s)) {
			do(other)
		}
	})
}

// EndsOthers ends other sessions.
func EndsOthers(on Trigger, which Pick) apply {
	var ended sync.Map
	alive := func(others []*server.Session) []*server.Session {
		return which(slices.DeleteFunc(others, func(s *server.Session) bool { return Knows(&ended, s.ID) }))
	}
	return All(
		RefusingHTTP(http.StatusNotFound, func(r *http.Request) bool {
			return IDOf(r) != "" && Knows(&ended, IDOf(r))
		}),
		ToOthers(on, alive, func(s *server.Session) { ended.Store(s.ID, true) }),
	)
}

// Others returns the sessions beside one that have finished the handshake.
func Others(s *server.Session) []*server.Session {
	return slices.DeleteFunc(s.Server.Sessions(),
		func(other *server.Session) bool { return other == s || !other.Initialized() })
}

// SharedResource makes the watched resource one that all sessions share: a change that one
// client causes is announced to each that has subscribed.
func SharedResource(o *server.Options) {
	var version atomic.Int64
	Offering(func(c *server.Catalogue) {
		for _, r := range c.Resources {
			if r.URI() == WatchedURI {
				r.Read = func(context.Context, *server.Request) ([]any, *wire.Error) {
					text := "Version " + strconv.FormatInt(version.Load(), 10) + " of the watched resource."
					return list{object{"uri": WatchedURI, "mimeType": "text/plain", "text": text}}, nil
				}
			}
		}
	})(o)
	OnCall("update_resource", func(r *server.Request) {
		version.Add(1)
		for _, s := range Others(r.Session) {
			s.Updated(WatchedURI)
		}
	})(o)
}

// SharedTools makes the list of tools one that all sessions share: when one client changes
// it, each that fits is told.
func SharedTools(fits func(s *server.Session) bool) apply {
	return func(o *server.Options) {
		const changed = "notifications/tools/list_changed"
		extra := &server.Tool{
			Definition: object{"name": "extra_for_all", "description": "Comes and goes.",
				"inputSchema": object{"type": "object"}},
			Call: func(context.Context, *server.Request, map[string]any) (any, *wire.Error) {
				return object{"content": TextOf("extra")}, nil
			},
		}
		var there atomic.Bool
		Offering(func(c *server.Catalogue) {
			for _, t := range c.Tools {
				if t.Name() == "toggle_tool" {
					t.Call = func(_ context.Context, r *server.Request, _ map[string]any) (any, *wire.Error) {
						for now := there.Load(); !there.CompareAndSwap(now, !now); now = there.Load() {
						}
						r.Session.Notify(changed, nil)
						for _, s := range Others(r.Session) {
							if fits(s) {
								s.Notify(changed, nil)
							}
						}
						return object{"content": TextOf("changed")}, nil
					}
				}
			}
		})(o)
		Wrapping("tools/list", server.Edit(func(_ *server.Request, result map[string]any) {
			if tools, _ := result["tools"].(list); result["nextCursor"] == nil && there.Load() {
				result["tools"] = append(slices.Clip(tools), extra.Definition)
			}
		}))(o)
		WrappingTool("extra_for_all", func(ctx context.Context, r *server.Request, _ server.Handler) (any,
			*wire.Error) {
			return extra.Call(ctx, r, nil)
		})(o)
	}
}

// Beside counts the calls of tools that a session has under way, and tells one more from
// the first.
func Beside(serve func(ctx context.Context, r *server.Request, n int64, next server.Handler) (any, *wire.Error)) apply {
	return Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		running := Kept[atomic.Int64](r.Session, "beside")
		defer running.Add(-1)
		return serve(ctx, r, running.Add(1), next)
	})
}

// IDOf returns the session id of an HTTP request.
func IDOf(r *http.Request) string { return r.Header.Get(SessionHeader) }
