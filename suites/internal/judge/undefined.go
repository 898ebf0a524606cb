package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// UndefinedMembers returns notes on members in a party's messages that the revision does
// not define, which is no fault: the schema lets others be added. Members that only a
// later revision defines are left to the rule about the negotiated version.
func UndefinedMembers(revision *schema.Revision, logs []*wire.Log, party wire.Party) []string {
	u := undefined{revision: revision, party: party, seen: make(map[said]bool), told: make(map[string]bool)}
	for _, l := range logs {
		if l.Transport == transport.NameOAuth || otherVersion(revision, l) {
			continue
		}
		for _, e := range l.Events() {
			if e.Kind == wire.KindMessage && e.From == party && e.Dropped == 0 &&
				!slices.Contains(e.Deliberate, Anything) {
				u.look(l, e)
			}
		}
	}
	return u.notes()
}

type undefined struct {
	revision *schema.Revision
	party    wire.Party
	seen     map[said]bool
	told     map[string]bool // members, by kind of object
	slips    []string        // members that resemble a defined one
	others   []string
}

func (u *undefined) look(l *wire.Log, e *wire.Event) {
	def, method, value := "", e.Msg.Method, e.Msg.Value
	known := false
	switch e.Msg.Kind {
	case wire.Request:
		def, known = u.revision.Request(schema.Party(u.party), method)
	case wire.Notification:
		def, known = u.revision.Notification(schema.Party(u.party), method)
	case wire.Result:
		x := l.Exchange(e)
		if x == nil || x.Response != e || brokenOnPurpose(u.revision, x) {
			return
		}
		method, value = x.Method(), func() any { return e.Msg.Result }
		def, known = u.revision.Result(method)
	}
	if !known || def == "EmptyResult" || u.again(def, e) {
		return
	}
	for _, m := range u.revision.Undefined(def, value()) {
		u.tell(method, m)
	}
}

// again reports whether a message was seen before, in these words.
func (u *undefined) again(def string, e *wire.Event) bool {
	key, short := saying(def, e)
	if !short {
		return false
	}
	again := u.seen[key]
	if len(u.seen) < maxValidated {
		u.seen[key] = true
	}
	return again
}

func (u *undefined) tell(method string, m schema.UndefinedMember) {
	key := m.In + " " + m.Name
	if u.told[key] || len(u.told) == maxValidated ||
		slices.ContainsFunc(laterMembers, func(l laterMember) bool {
			return l.method == method && l.since > u.revision.Version && l.path[len(l.path)-1] == m.Name
		}) {
		return
	}
	u.told[key] = true
	name := wire.Quote(m.Name, 60)
	switch {
	case m.Meant != "":
		u.slips = append(u.slips, fmt.Sprintf("%s of %s (%s)", name, m.In, m.Meant))
	case !strings.HasSuffix(m.In, "Capabilities"): // their set is open (basic/lifecycle#capability-negotiation)
		u.others = append(u.others, name+" of "+m.In)
	}
}

func (u *undefined) notes() []string {
	var notes []string
	if len(u.slips) > 0 {
		notes = append(notes, "revision "+u.revision.Version+" does not define these members; they may be misspelled: "+
			listed(u.slips))
	}
	if len(u.others) > 0 {
		notes = append(notes, "revision "+u.revision.Version+" does not define these members, which may be added: "+
			listed(u.others))
	}
	return notes
}

// listed joins members, of which it leaves out those that are too many.
func listed(members []string) string {
	const most = 4
	if len(members) <= most {
		return strings.Join(members, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(members[:most], ", "), len(members)-most)
}

// otherVersion reports whether a session has negotiated another revision.
func otherVersion(revision *schema.Revision, l *wire.Log) bool {
	for _, x := range l.Requests(wire.Client, "initialize") {
		if version, ok := wire.At(x.Result(), "protocolVersion").(string); ok && version != revision.Version {
			return true
		}
	}
	return false
}
