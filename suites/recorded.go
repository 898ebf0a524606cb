package suites

import (
	"context"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/tree"
)

// Recording is what happened earlier: the trace of the options, in which one party
// is judged. Only the passive rules judge it: what they do not see is inconclusive.
type Recording struct {
	Party wire.Party
}

func (s Recording) begin(r *run) stimulus { return &recordedRun{Recording: s, run: r} }

// Secrets adds nothing: a recording does not say what is secret in it.
func (Recording) Secrets(*transport.Redactor) {}

// recordedRun is the recording while it is judged.
type recordedRun struct {
	Recording
	*run
}

func (s *recordedRun) party() wire.Party                   { return s.Party }
func (s *recordedRun) specs() ([]*tree.Spec, error)        { return nil, nil }
func (s *recordedRun) start(context.Context, []*tree.Spec) {}
func (s *recordedRun) limit(int) time.Duration             { return 0 }

// transport returns that of the last connection.
func (s *recordedRun) transport() string {
	name := ""
	for _, l := range s.Trace.Logs() {
		if l.Transport != transport.NameOAuth {
			name = l.Transport
		}
	}
	return name
}

// finish learns from the trace what another run knows of its target.
func (s *recordedRun) finish(context.Context) {
	s.ledger.Passive = true
	for _, l := range s.Trace.Logs() {
		if l.Transport == transport.NameOAuth {
			continue
		}
		c := judge.NewConversation(s.Revision, l)
		if revision := &s.ledger.Evidence.Revision; c.Handshaken() &&
			(*revision == "" || c.Version == s.Revision.Version) {
			*revision = c.Version // other sessions may be there to try other revisions
		}
		if c.Handshaken() && s.ledger.Declared == nil {
			s.ledger.Declared = c.Declared
		}
		if n := len(c.Events); n > 0 {
			s.lasted = max(s.lasted, c.Events[n-1].At)
		}
		if l.Stopped() {
			s.notes = append(s.notes, "more crossed the connection "+l.ID+" than is kept: the rest was not judged")
		}
	}
}
