package suites

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
	"github.com/mcpconform/mcpconform/suites/result"
)

// A Discrepancy is a statement of results that the trace of their run contradicts.
type Discrepancy = ledger.Discrepancy

// Rechecked says what came of holding results against their trace.
type Rechecked = ledger.Recheck

// Recheck holds the results of a whole run against its trace, as it was written and read again: it applies the rules
// once more and compares. Findings of checks and scenarios are not judged again; only the presence of their events in
// the trace is.
func Recheck(run *result.Run, trace *wire.Trace) (Rechecked, error) {
	revision, err := schema.For(run.Revision)
	if err != nil {
		return Rechecked{}, err
	}
	party := wire.Party(run.Role)
	l := &ledger.Ledger{Revision: revision, Party: party, Transport: run.Transport}
	l.Evidence.Logs = trace.Logs()
	for _, log := range trace.Logs() {
		if log.Transport == transport.NameOAuth {
			continue
		}
		if c := judge.NewConversation(revision, log); c.Handshaken() && l.Declared == nil {
			l.Declared = c.Declared
		}
	}
	if v := run.Target.ProtocolVersion; party == wire.Server {
		l.Evidence.Revision = v
	}
	l.Add(judge.Judge(revision, trace.Logs(), judge.Options{}))
	found := l.Recheck(run, revision.Catalogue())
	recheckOffer(&found, run, offer(check.Recorded(trace.Logs())))
	return found, nil
}

// recheckOffer compares what results say of the server's offer with what the trace shows.
func recheckOffer(found *Rechecked, run *result.Run, want *result.Offer) {
	if want != nil {
		want.Shorten() // as results have it
	}
	if wire.Party(run.Role) != wire.Server {
		want = nil
	}
	var texts [2]string
	for i, o := range []*result.Offer{run.Offer, want} {
		text, err := json.Marshal(o)
		if err != nil {
			text = []byte(err.Error())
		}
		texts[i] = string(text)
	}
	got, shown := texts[0], texts[1]
	switch {
	case got == shown:
	case strings.Contains(shown, transport.Redacted):
		// Without a secret, items may sort in another order.
		found.Unknown = append(found.Unknown, "offer")
	default:
		n := 0
		for n < min(len(got), len(shown)) && got[n] == shown[n] {
			n++
		}
		from := max(0, n-20)
		found.Discrepancies = append(found.Discrepancies, Discrepancy{Message: fmt.Sprintf(
			"the offer of the server is said to be other than what it listed in the first session of the trace: "+
				"%s, where the trace has %s",
			wire.Quote(got[min(from, len(got)):], 80), wire.Quote(shown[min(from, len(shown)):], 80))})
	}
}
