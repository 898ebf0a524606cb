package suites

import (
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/judge"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A Discrepancy is a statement of results that the trace of their run contradicts.
type Discrepancy = ledger.Discrepancy

// Rechecked says what came of holding results against their trace.
type Rechecked = ledger.Recheck

// Recheck holds the results of a whole run against its trace, as it was written and read
// again: it applies the rules once more and compares. What only a check or scenario can
// know is not judged again; that the events that it quotes are in the trace is.
func Recheck(run *result.Run, trace *wire.Trace) (Rechecked, error) {
	catalogue, err := schema.Catalogue()
	if err != nil {
		return Rechecked{}, err
	}
	party := wire.Party(run.Role)
	l := &ledger.Ledger{Party: party, Transport: run.Transport}
	l.Evidence.Logs = trace.Logs()
	for _, log := range trace.Logs() {
		if log.Transport == transport.NameOAuth {
			continue
		}
		if c := judge.NewConversation(log); c.Handshaken() && l.Declared == nil {
			l.Declared = func(p wire.Party, path []string) bool { return c.Declared(p, path...) }
		}
	}
	if v := run.Target.ProtocolVersion; party == wire.Server {
		l.Evidence.Revision = v
	}
	l.Add(judge.Judge(trace.Logs(), judge.Options{}))
	return l.Recheck(run, catalogue), nil
}
