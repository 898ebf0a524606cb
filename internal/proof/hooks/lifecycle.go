package hooks

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// Periodically does something in each session from the handshake on.
func Periodically(every time.Duration, times int, do func(s *server.Session)) apply {
	return Ready(func(s *server.Session) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for range times {
			select {
			case <-tick.C:
				do(s)
			case <-s.Context().Done():
				return
			}
		}
	})
}

// Capability changes one declared capability.
func Capability(name string, change func(capability object)) apply {
	return Results("initialize", func(result object) {
		if declared, ok := result["capabilities"].(object)[name].(object); ok {
			change(declared)
		}
	})
}

// TimedOut runs when a tool call is about to end because the client did not answer
// what it asked.
func TimedOut(do func(ctx context.Context, r *server.Request)) apply {
	return Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
		result, problem := next(ctx, r)
		if o, ok := result.(object); ok && ctx.Err() == nil &&
			strings.Contains(Text(o), context.DeadlineExceeded.Error()) {
			do(ctx, r)
		}
		return result, problem
	})
}

// waitingCalls are the calls of tools that wait, with when they give up.
type waitingCalls struct {
	mu     sync.Mutex
	timers map[*time.Timer]bool
}

// Renewed gives up what a call waits for after a time without progress of it, or after a
// time in all, whichever comes first.
func Renewed(idle, maximum time.Duration) apply {
	waiting := func(s *server.Session) *waitingCalls {
		return s.Value("waiting", func() any {
			return &waitingCalls{timers: make(map[*time.Timer]bool)}
		}).(*waitingCalls)
	}
	return All(
		func(o *server.Options) { o.CallTimeout = maximum },
		Wrapping("tools/call", func(ctx context.Context, r *server.Request, next server.Handler) (any, *wire.Error) {
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			timer, calls := time.AfterFunc(idle, func() { stop(context.DeadlineExceeded) }), waiting(r.Session)
			calls.mu.Lock()
			calls.timers[timer] = true
			calls.mu.Unlock()
			defer func() {
				calls.mu.Lock()
				defer calls.mu.Unlock()
				delete(calls.timers, timer)
				timer.Stop()
			}()
			return next(ctx, r)
		}),
		Receiving(func(s *server.Session, m *wire.Message, next func()) {
			if calls := waiting(s); m.Method == "notifications/progress" {
				calls.mu.Lock()
				for timer := range calls.timers {
					timer.Reset(idle)
				}
				calls.mu.Unlock()
			}
			next()
		}),
	)
}
