package check

import (
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// refusesAll returns how the server refuses ping and every declared list alike:
// whatever a check is about, such a server serves nothing. It returns nil if there
// is a difference, or if what is wrong is the client or the moment.
func (t *Target) refusesAll(ping *client.Exchange) *answered {
	all, ok := howRefused(ping)
	if !ok || len(t.Lists) == 0 || ping.Head != nil && passing(ping.Head.HTTP.Status) {
		return nil
	}
	for _, l := range t.Lists {
		if len(l.Pages) == 0 {
			return nil
		}
		if this, ok := howRefused(l.Pages[0]); !ok || this != all {
			return nil
		}
	}
	return &all
}

// passing reports whether an HTTP status speaks of the client or of the moment.
func passing(status int) bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable}, status)
}

// howRefused prefers what the answer says to the status that it came with.
func howRefused(x *client.Exchange) (answered, bool) {
	if x.Response != nil {
		return refusing(x.Response)
	}
	return refusing(x.Head)
}

// refusedLikeAll reports whether the findings show the refusal which the server
// has for everything, or a request that met it, and the check is not about that.
func (t *T) refusedLikeAll() bool {
	all := t.Target.refusal
	if all == nil || t.check.Needs.Served {
		return false
	}
	is := func(e *wire.Event) bool {
		answer, ok := refusing(e)
		return ok && answer == *all
	}
	return slices.ContainsFunc(t.outcome.Findings, func(f Finding) bool { return slices.ContainsFunc(f.Evidence, is) }) ||
		slices.ContainsFunc(t.refusals(), func(r refusal) bool { return r.answer == *all })
}
