package client

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// resumer is a connection whose streams can be resumed.
type resumer interface {
	Resume(ctx context.Context, lastEventID string, deliberate ...string) (*transport.Stream, error)
}

// Bounds on resuming a stream that the server ends again and again: some servers let
// their clients poll until the answer is there.
const (
	maxResumes  = 64
	resumePause = 20 * time.Millisecond // longer each time, if the server names none
)

// resume resumes the stream of a request that ended or broke before the answer, for as
// long as an answer may take. It returns the response, which may also come on another
// stream, or nil
// (basic/transports#resumability-and-redelivery).
func (p *Pending) resume(ctx context.Context, end *wire.Event) *wire.Event {
	s := p.session
	conn, ok := s.Conn.(resumer)
	if !ok || end.From == wire.Client {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.Options.Timeout)
	defer cancel()
	stream, last, retry := s.Log().Carrier(p.Request), "", time.Duration(-1)
	for n := range time.Duration(maxResumes) {
		if stream != nil && stream.Last != nil {
			last = stream.Last.SSE.ID
		}
		if stream != nil && stream.Retry >= 0 {
			retry = stream.Retry
		}
		if last == "" {
			return nil
		}
		from := last
		if s.Options.Resuming != nil {
			from, ok = s.Options.Resuming(last)
		}
		if !ok {
			return nil
		}
		pause := n * resumePause
		if retry >= 0 {
			pause = retry
		}
		if e, over := p.answered(ctx, pause, ""); e != nil || over {
			return e
		}
		resumed, err := conn.Resume(ctx, from)
		if err != nil || resumed.Head.HTTP.Status != http.StatusOK {
			return nil
		}
		e, _ := p.answered(ctx, s.Options.Timeout, resumed.Head.Stream)
		resumed.Close()
		if e != nil || ctx.Err() != nil {
			return e
		}
		stream = s.Log().Carrier(resumed.Head)
	}
	return nil
}

// answered waits for the response, which may come on any stream, for some time
// or until a stream ends. over reports whether resume has to give up.
func (p *Pending) answered(ctx context.Context, wait time.Duration, until string) (response *wire.Event, over bool) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	e, err := p.session.Log().Await(waiting, p.Request.Seq+1, func(e *wire.Event) bool {
		return p.Answers(e) || e.Kind == wire.KindStreamEnd && until != "" && e.Stream == until
	})
	if err == nil && e.Kind == wire.KindMessage {
		return e, false
	}
	return nil, err != nil && waiting.Err() == nil || ctx.Err() != nil
}
