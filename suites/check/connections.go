package check

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/inflight"
)

// connections are the sessions of the run.
type connections struct {
	first      *client.Session
	shared     *client.Session // the first one, or a second one
	sharedHung atomic.Bool     // the shared session answers no request any more
	left       atomic.Bool     // the shared session was closed before the end
	exclusive  atomic.Bool     // the target opens no session while another one is open
	opened     sync.Map        // the sessions that were connected and not closed
	claimed    sync.Map        // by event, the T of the check that answers it
	pool       pool
	launches   chan struct{}  // holds an entry for each process that is starting
	closing    inflight.Count // ends of sessions
	closers    sync.WaitGroup // all that Finish waits for
}

func (e *Engine) connect(ctx context.Context, label string, o client.Options) (*client.Session, error) {
	if o.Timeout == 0 {
		o.Timeout = e.Timeout
	}
	if e.target != nil {
		o.NoOp = e.target.noOp
	}
	o.StartTimeout, o.Limited, o.Pace = cmp.Or(o.StartTimeout, e.StartTimeout), e.limits.wait, &e.pace
	if !e.processPerSession() {
		o.Beside = e.Trace.Logs
	}
	started, err := e.launch(ctx)
	if err != nil {
		return nil, err
	}
	log := e.Trace.Connect(e.Dialer.Transport(), label)
	conn, err := e.Dialer.Dial(ctx, log)
	e.closers.Go(func() { started(log) })
	if err != nil {
		return nil, err
	}
	s := client.New(conn, o)
	e.opened.Store(s, true)
	return s, nil
}

// launch waits until there is a processor for one more process to start. The returned function waits until the
// process has written something or has ended.
func (e *Engine) launch(ctx context.Context) (started func(*wire.Log), err error) {
	if !e.processPerSession() {
		return func(*wire.Log) {}, nil
	}
	select {
	case e.launches <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return func(log *wire.Log) {
		defer func() {
			<-e.launches
			e.schedule.change(func() {}) // a check may wait for its process to be started
		}()
		limit, stop := context.WithTimeout(context.Background(), max(slowStart, 3*e.pace.Start()))
		defer stop()
		_, _ = log.Await(limit, 0, func(e *wire.Event) bool {
			return e.From == wire.Server && (e.Kind == wire.KindMessage || e.Kind == wire.KindClose ||
				e.Kind == wire.KindExit)
		})
	}, nil
}

// slowStart is how long a process that writes nothing counts as starting, unless others
// took nearly as long.
const slowStart = 2 * time.Second

// close shuts a session down in the background; Finish waits for it.
func (e *Engine) close(ctx context.Context, s *client.Session) {
	e.closing.Begin()
	e.opened.Delete(s)
	e.closers.Go(func() {
		defer e.closing.End()
		if e.GivenUp() != nil && !e.processPerSession() {
			limit, stop := context.WithTimeout(ctx, AtOnce) // nothing will answer the end of the session
			defer stop()
			ctx = limit
		}
		_ = s.Close(ctx)
	})
}

// closeShared closes the first session and the shared one.
func (e *Engine) closeShared(ctx context.Context) {
	e.left.Store(true)
	e.close(ctx, e.first)
	if e.shared != e.first {
		e.close(ctx, e.shared)
	}
}

// processPerSession reports whether each connection is a separate process. No check can then harm the process of
// another.
func (e *Engine) processPerSession() bool { return e.Dialer.Transport() == transport.NameStdio }

// maxExcluded is how many processes may end at once before no more are started beside the first one.
const maxExcluded = 3

// excludes returns why a check has to wait until no other session is open, or nil. Processes of the server seem to
// exclude each other, as where they lock a file, if all but the first one have ended without having answered
// anything.
func (e *Engine) excludes(c *Check) error {
	switch {
	case !e.processPerSession() && e.exclusive.Load():
		return errWaits
	case !e.processPerSession(), c.Needs.Session == None:
		return nil
	}
	ended := 0
	for _, l := range e.Trace.Logs()[1:] {
		for _, event := range l.Events() {
			switch {
			case event.Kind == wire.KindMessage && event.From == wire.Server:
				return nil
			case event.Kind == wire.KindExit:
				ended++
			}
		}
	}
	if ended < maxExcluded {
		return nil
	}
	return errExcluded
}

// bounded reports whether what one session takes may be missing for another one: the connections share a
// server, or its processes exclude each other.
func (e *Engine) bounded() bool { return !e.processPerSession() || e.exclusive.Load() }

// opened returns how many sessions the target has opened, as logs show.
func opened(logs []*wire.Log) (n int) {
	for _, l := range logs {
		for _, x := range l.Requests(wire.Client, "initialize") {
			if x.Result() != nil {
				n++
			}
		}
	}
	return n
}

// opensAnother reports whether a process has opened a session beside the first one: then it was not for want of room
// that a further one did not. A shared resource of the processes, such as a locked file, has room for one.
func (e *Engine) opensAnother() bool {
	logs := e.Trace.Logs()
	return e.processPerSession() && len(logs) > 1 && opened(logs[1:]) > 0
}
