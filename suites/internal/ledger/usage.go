package ledger

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/suites/result"
)

// usage holds what the target did of its own accord and what the other side offered it, according to the record.
type usage struct {
	party    wire.Party
	seen     map[string]bool // uses, by name
	sessions []session
	tools    []string // that a server lists, sorted
	whole    bool     // no limit ended the record of a connection
	// refused says that a server answered 401. sought says that a client then asked for metadata or a token.
	refused, sought bool
}

// session is a connection with a completed handshake, as far as it gives the target an occasion.
type session struct {
	*wire.Conversation
	calls []call
	// tokens says that the other side asked for progress.
	tokens bool
}

// call is a call of a tool that was answered with a result.
type call struct {
	tool          string
	token, worked bool // it asked for progress; the result does not say isError
}

// used reads what the target made use of. It reads the logs once.
func (l *Ledger) used() *usage {
	if l.usage == nil {
		l.usage = newUsage(l.Revision.Uses(), l.Party, l.Evidence.Logs)
	}
	return l.usage
}

func newUsage(uses []schema.Use, p wire.Party, logs []*wire.Log) *usage {
	u := &usage{party: p, seen: make(map[string]bool), whole: true}
	for _, log := range logs {
		c := log.Conversation()
		if log.Transport == transport.NameOAuth {
			u.sought = u.sought || len(c.HTTP) > 0
			continue
		}
		u.whole = u.whole && !log.Cut() && !log.Stopped()
		u.see(c, uses)
		if c.Handshaken() && c.Initialized != nil {
			u.sessions = append(u.sessions, u.session(c))
		}
	}
	slices.Sort(u.tools)
	u.tools = slices.Compact(u.tools)
	return u
}

// see notes the uses in what the target sent.
func (u *usage) see(c *wire.Conversation, uses []schema.Use) {
	for _, e := range c.Messages {
		if e.From != u.party {
			continue
		}
		var held map[string]bool
		for _, use := range uses {
			if u.seen[use.Name] || !fits(use, e.Msg) {
				continue
			}
			if len(use.Members)+len(use.Types) > 0 && held == nil {
				held = make(map[string]bool)
				holds(held, e.Msg.Params)
				holds(held, e.Msg.Result)
				held[progressToken] = wire.At(e.Msg.Params, "_meta", progressToken) != nil
			}
			u.seen[use.Name] = len(use.Members)+len(use.Types) == 0 ||
				slices.ContainsFunc(use.Members, func(name string) bool { return held[name] }) ||
				slices.ContainsFunc(use.Types, func(kind string) bool { return held[typed+kind] })
		}
	}
	for _, x := range c.HTTP {
		u.refused = u.refused || x.Status() == http.StatusUnauthorized
		for _, use := range uses {
			if use.HTTP != "" && x.Request != nil && x.Request.HTTP.Method == use.HTTP {
				u.seen[use.Name] = true
			}
		}
	}
}

// fits reports whether a message is a use as far as its envelope tells.
func fits(use schema.Use, m *wire.Message) bool {
	return use.HTTP == "" && !use.Authorization &&
		(len(use.Kinds) == 0 || slices.Contains(use.Kinds, m.Kind.String())) &&
		(len(use.Methods) == 0 || slices.Contains(use.Methods, m.Method)) &&
		(!use.Anonymous || m.ID.Null() || !m.ID.Present())
}

// typed stands before a content type among the names of members.
const typed = "type:"

const progressToken = "progressToken"

// free are the members whose contents are the target's own: names in them mean nothing to the protocol.
var free = []string{"inputSchema", "outputSchema", "requestedSchema", "structuredContent", "arguments", "_meta"}

// holds notes the names of the members of a value, at any depth, and what those named type say.
func holds(held map[string]bool, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			held[name] = true
			if kind, ok := inner.(string); ok && name == "type" {
				held[typed+kind] = true
			}
			if !slices.Contains(free, name) {
				holds(held, inner)
			}
		}
	case []any:
		for _, inner := range v {
			holds(held, inner)
		}
	}
}

func (u *usage) session(c *wire.Conversation) session {
	s := session{Conversation: c}
	for _, x := range c.Exchanges {
		if x.From() == u.party {
			continue
		}
		s.tokens = s.tokens || x.Token != nil
		answer := x.Result()
		switch x.Method() {
		case "tools/list":
			items, _ := answer["tools"].([]any)
			for _, item := range items {
				if name, ok := wire.At(item, "name").(string); ok {
					u.tools = append(u.tools, name)
				}
			}
		case "tools/call":
			name, ok := wire.At(x.Request.Msg.Params, "name").(string)
			if failed, _ := answer["isError"].(bool); ok && answer != nil {
				s.calls = append(s.calls, call{name, x.Token != nil, !failed})
			}
		}
	}
	return s
}

// unused reports whether the target never made a use, although the run offered it and did everything that may bring
// it about. Otherwise why says what was left undone and what would help. It is "" if something else decides.
func (u *usage) unused(use schema.Use, forbidden []string) (why string, ok bool) {
	never := "the " + string(u.party) + " never " + use.Never
	switch {
	case use.Authorization && u.refused && !u.sought:
		return never, true
	case use.Authorization, u.seen[use.Name], !u.whole:
		return "", false
	}
	offering := slices.DeleteFunc(slices.Clone(u.sessions), func(s session) bool { return !s.offers(use, u.party) })
	if len(offering) == 0 {
		return "", false
	}
	if u.party == wire.Client || !use.Tools {
		return never, true
	}
	var called []string
	worked := len(u.tools) == 0
	for _, s := range offering {
		for _, c := range s.calls {
			if c.token || !use.Token {
				called, worked = append(called, c.tool), worked || c.worked
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(u.tools), func(name string) bool { return slices.Contains(called, name) })
	n := len(u.tools)
	switch {
	case slices.ContainsFunc(left, func(name string) bool { return slices.Contains(forbidden, name) }):
		return fmt.Sprintf("%s; %d of its %d tools were not called (%s--call-tools=all)", never, len(left), n,
			result.Helps), false
	case len(left) > 0:
		return "", false // the checks say which tool they lack
	case !worked:
		help := "in toolRoles, arguments with which a tool works"
		return fmt.Sprintf("%s; each call of its tools was answered with isError (%s%s)", never, result.Helps, help),
			false
	case n == 0:
		return never, true
	}
	return fmt.Sprintf("%s; its tools were called, %d of %d", never, n, n), true
}

// offers reports whether the target had an occasion for a use: what the other side has to declare for it was declared.
func (s session) offers(use schema.Use, p wire.Party) bool {
	methods := use.Methods
	if len(methods) == 0 && p == wire.Server {
		methods = []string{"sampling/createMessage", "elicitation/create",
			"roots/list"} // all that a server may ask for
	}
	for _, m := range methods {
		need := wire.Capability(m)
		if !strings.HasPrefix(m, "notifications/") && need != "" && !s.Declared(p.Peer(), need) {
			return false
		}
	}
	return !use.Token || s.tokens
}
