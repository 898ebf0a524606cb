package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// Evidence is what a run knows beside its findings. It decides whether a target in
// which nothing wrong was found counts as conformant: nothing is green because
// nothing happened.
type Evidence struct {
	// Logs hold all that crossed.
	Logs []*wire.Log
	// Revision is the one on which the target settled with an ordinary peer, or ""
	// if there was no handshake.
	Revision string
	// Partial says that the user left out a part of what provokes the target: then
	// a capability need not have been used.
	Partial bool
	// Elsewhere holds the requirements that other shards of the run try.
	Elsewhere map[string]bool
	// Longer holds the requirements that are tried, or shown broken, by what a quick run leaves out.
	Longer map[string]bool
	// Forbidden names the tools of a server that the user does not allow to be called.
	Forbidden []string
	// Missing holds, in clauses, what only the stimulus can miss.
	Missing []string
}

// methodNotFound is the error of JSON-RPC that shows that a capability is missing.
const methodNotFound = -32601

// OtherRevision is the reason why nothing is said of a target that speaks another
// revision, or nil. A name that was never published is a finding and no such reason.
func (l *Ledger) OtherRevision() error {
	if v := l.Evidence.Revision; v != "" && v != l.Revision.Version && schema.IsPublished(v) {
		return fmt.Errorf("the %s speaks another revision, %s: only %s is tested", l.Party, wire.Quote(v, 40),
			l.Revision.Version)
	}
	return nil
}

// shortfall says in clauses what is missing before the target counts as conformant: a handshake that both sides
// completed, an answered request after it, and an exchange for each declared capability that a selected requirement
// depends on. It returns the capabilities without an exchange as unused. The record has to be whole.
func (l *Ledger) shortfall(selected []schema.Requirement) (missing, unused []string) {
	for _, log := range l.Evidence.Logs {
		if log.Cut() {
			missing = append(missing, "a limit of mcpconform ended the record of the connection "+log.ID+
				", so the rest was not judged")
			break
		}
		if slices.ContainsFunc(log.Events(), func(e *wire.Event) bool {
			return e.From == l.Party && e.Msg != nil && e.Msg.Has(wire.TooDeep, wire.TooLarge)
		}) {
			missing = append(missing, "a message on the connection "+log.ID+
				" goes beyond the limits of mcpconform and was not read")
			break
		}
	}
	if l.Party == wire.AuthorizationServer {
		return append(missing, l.Evidence.Missing...), nil // it takes part in no handshake
	}
	a := accomplished{revision: l.Revision.Version, declared: make(map[string]bool), used: make(map[string]bool)}
	for _, log := range l.Evidence.Logs {
		if log.Transport != transport.NameOAuth {
			a.add(log.Conversation(), l.Party)
		}
	}
	switch {
	case !a.offered && a.asked != "":
		return append(missing, fmt.Sprintf("no handshake led to revision %s; the client asked for %s", a.revision,
			wire.Quote(a.asked, 40))), nil
	case !a.offered:
		return append(missing, "no handshake led to revision "+a.revision), nil
	case !a.completed:
		return append(missing, "the handshake was not completed: notifications/initialized was never sent"), nil
	case !a.answered:
		missing = append(missing, "no request after the handshake was answered with a result")
	}
	unused = slices.DeleteFunc(l.capabilities(selected), func(name string) bool {
		return l.Evidence.Partial || !a.declared[name] || a.used[name]
	})
	return append(missing, l.Evidence.Missing...), unused
}

// accomplished is what the conversations of a run came to.
type accomplished struct {
	revision  string          // of the run
	offered   bool            // a handshake led to the revision
	completed bool            // and was completed
	answered  bool            // a request after it was answered with a result
	asked     string          // the last other revision that a client asked for
	declared  map[string]bool // capabilities of the party
	used      map[string]bool // capabilities that its peer has used
}

// add takes in a conversation.
func (a *accomplished) add(c *wire.Conversation, party wire.Party) {
	if c.Init != nil && party == wire.Client {
		if v, _ := wire.At(c.Init.Request.Msg.Params, "protocolVersion").(string); v != a.revision {
			a.asked = v
		}
	}
	if !c.Handshaken() || c.Version != a.revision {
		return
	}
	a.offered = true
	if c.Initialized == nil {
		return
	}
	a.completed = true
	for name := range c.Capabilities[party] {
		a.declared[name] = a.declared[name] || c.Declared(party, name)
	}
	for _, x := range c.Exchanges {
		if x == c.Init || x.Response == nil || x.Request.Seq < c.Init.Response.Seq {
			continue
		}
		a.answered = a.answered || x.Result() != nil && (party == wire.Client || x.From() == wire.Client)
		if failed := x.Error(); x.From() == party.Peer() && (failed == nil || failed.Code != methodNotFound) {
			a.used[wire.Capability(x.Method())] = true
		}
	}
}

// unusedBy says which capabilities of a party nothing used.
func unusedBy(party string, capabilities []string) string {
	return fmt.Sprintf("the %s declares what nothing in the run used: %s", party, strings.Join(capabilities, ", "))
}

// capabilities returns those of the target on which requirements depend.
func (l *Ledger) capabilities(requirements []schema.Requirement) []string {
	var names []string
	for _, q := range requirements {
		party, path, _ := strings.Cut(q.Capability, ".")
		name, _, _ := strings.Cut(path, ".")
		if wire.Party(party) == l.Party && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
