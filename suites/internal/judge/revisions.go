package judge

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Older reports whether a revision before ours was negotiated. It does not forbid all that ours forbids
// (docs/positions.md, batches-by-version).
func (c *Conversation) Older() bool {
	return c.Revision.Earlier(c.Version)
}

// later reports whether the two sides have settled on a published revision after ours.
func (c *Conversation) later() bool {
	return c.Initialized != nil && slices.Contains(schema.Published, c.Version) && c.Version > c.Revision.Version
}

// metaVersion is where messages of later revisions name theirs.
const metaVersion = "io.modelcontextprotocol/protocolVersion"

// foreignStreams are the streams with which a client asks for a later revision,
// outside of any session. Their messages do not belong to this revision
// (docs/positions.md, later-revision-first). Over stdio either all are foreign or none.
type foreignStreams map[string]bool

func findForeign(revision *schema.Revision, events []*wire.Event, over string) foreignStreams {
	streams := make(foreignStreams)
	opens := make(map[string]bool) // streams with an initialize
	agreed := make(map[string]bool)
	var first *wire.Event // message of the client
	for _, e := range events {
		switch {
		case e.Kind == wire.KindSSE && e.SSE != nil && e.SSE.Event == "endpoint":
			return nil // the session of the older transport has begun
		case e.Kind != wire.KindMessage:
			continue
		case e.From == wire.Server:
			if v, ok := wire.At(e.Msg.Result, "protocolVersion").(string); ok {
				agreed[v] = true
			}
			continue
		case first == nil:
			first = e
		}
		if e.Msg.Method == "initialize" {
			opens[e.Stream] = true
		}
	}
	switch {
	case over != transport.NameStdio:
	case first == nil || len(opens) > 0:
		return nil
	default:
		v, _ := wire.At(first.Msg.Params, "_meta", metaVersion).(string)
		streams[transport.Stdin], streams[transport.Stdout] = revision.Later(v), revision.Later(v)
		return streams
	}
	for _, e := range events {
		if e.Kind != wire.KindHTTPRequest || e.HTTP == nil || e.HTTP.Method != http.MethodPost || opens[e.Stream] {
			continue
		}
		version := e.HTTP.Header.Get(headerVersion)
		if revision.Later(version) && !agreed[version] && len(e.HTTP.Header.Values(headerSession)) == 0 {
			streams[e.Stream] = true
		}
	}
	return streams
}

// laterMember is a member that a revision added to the params of a method or, with
// result, to its result.
type laterMember struct {
	method string
	result bool
	path   []string // "*" stands for each item of a list
	since  string
	// asks says that the member wants something of its receiver, who cannot know it. Receivers
	// pass over all others without harm.
	asks bool
}

var laterMembers = []laterMember{
	{"tools/call", false, []string{"task"}, "2025-11-25", true},
	{"tools/call", true, []string{"task"}, "2025-11-25", true},
	{"sampling/createMessage", false, []string{"task"}, "2025-11-25", true},
	{"sampling/createMessage", false, []string{"tools"}, "2025-11-25", true},
	{"sampling/createMessage", false, []string{"toolChoice"}, "2025-11-25", true},
	{"elicitation/create", false, []string{"task"}, "2025-11-25", true},
	{"elicitation/create", false, []string{"url"}, "2025-11-25", true},
	{"elicitation/create", false, []string{"mode"}, "2025-11-25", false},
	{"tools/list", true, []string{"tools", "*", "execution"}, "2025-11-25", false},
	{"tools/list", true, []string{"tools", "*", "icons"}, "2025-11-25", false},
	{"tools/list", true, []string{"tools", "*", "title"}, "2025-06-18", false},
	{"tools/list", true, []string{"tools", "*", "outputSchema"}, "2025-06-18", false},
	{"tools/list", true, []string{"tools", "*", "annotations"}, "2025-03-26", false},
	{"tools/call", true, []string{"structuredContent"}, "2025-06-18", false},
	{"prompts/list", true, []string{"prompts", "*", "icons"}, "2025-11-25", false},
	{"prompts/list", true, []string{"prompts", "*", "title"}, "2025-06-18", false},
	{"resources/list", true, []string{"resources", "*", "icons"}, "2025-11-25", false},
	{"resources/list", true, []string{"resources", "*", "title"}, "2025-06-18", false},
	{"resources/templates/list", true, []string{"resourceTemplates", "*", "icons"}, "2025-11-25", false},
	{"resources/templates/list", true, []string{"resourceTemplates", "*", "title"}, "2025-06-18", false},
	{"completion/complete", false, []string{"context"}, "2025-06-18", false},
}

// judgeLaterMembers looks for what only a later revision than the negotiated one has. Members
// that are not defined are not forbidden; but those that ask something of a peer who does not
// know them do not respect the version (basic/lifecycle#operation).
func (c *Conversation) judgeLaterMembers(rec *Recorder) {
	const id = ids.LifecycleOperationVersion
	if !revisionName.MatchString(c.Version) {
		return
	}
	for _, x := range c.Exchanges {
		for _, m := range laterMembers {
			if m.method != x.Method() || m.since <= c.Version {
				continue
			}
			e, payload := x.Request, x.Request.Msg.Params
			if m.result {
				if x.Result() == nil {
					continue
				}
				e, payload = x.Response, x.Response.Msg.Result
			}
			if !hasMember(payload, m.path) {
				continue
			}
			message := "the member " + strings.Join(m.path, ".") + " of " + m.method + " was introduced by revision " +
				m.since +
				", but " + c.Version + " was negotiated"
			if m.asks {
				rec.Warn(id, e.From, message, x.Events()...)
			} else {
				rec.Note(id, e.From, message)
			}
		}
	}
}

// hasMember reports whether a decoded value has a member at a path.
func hasMember(v any, path []string) bool {
	if path[0] == "*" {
		return slices.ContainsFunc(wire.Items(v), func(item any) bool { return hasMember(item, path[1:]) })
	}
	object, _ := v.(map[string]any)
	member, has := object[path[0]]
	return has && (len(path) == 1 || hasMember(member, path[1:]))
}
