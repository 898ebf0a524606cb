package client

import (
	"time"

	"github.com/mcpconform/mcpconform/suites/internal/family"
)

// Vary sends members of a family, one after the other. ask sends one and waits for an answer under the id. A client
// that is silent to one member and answers a ping gets the others as well. A slow client gets as many as fit into its
// patience, since its own request waits meanwhile.
func (a *Asker) Vary(prefix string, members []family.Member, ask func(id string, m family.Member)) {
	for _, m := range members {
		if a.Silent || a.Overdue() {
			return
		}
		id := prefix + m.Is
		if ask(id, m); a.Silent && !m.Plain() && a.lost < maxLost {
			a.lost++
			a.Silent = false
			a.Fence("after " + id)
		}
	}
}

// Deadline returns the time from which on the scripts have kept the client's request waiting for long.
func (a *Asker) Deadline() time.Time { return a.began.Add(a.Patience) }

// Overdue reports whether the deadline has passed.
func (a *Asker) Overdue() bool { return time.Now().After(a.Deadline()) }

// maxLost is the number of unanswered requests after which a script gives up. Each of them takes its time.
const maxLost = 2
