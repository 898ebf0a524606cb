package judge

import (
	"net/http"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// laterRevision reports whether a protocol version is that of a revision after ours.
func laterRevision(version string) bool {
	return revisionName.MatchString(version) && version > schema.Version
}

// Older reports whether a revision before ours was negotiated, which does not
// forbid all that ours does (docs/positions.md, batches-by-version).
func (c *Conversation) Older() bool {
	return revisionName.MatchString(c.Version) && c.Version < schema.Version
}

// metaVersion is where messages of later revisions name theirs.
const metaVersion = "io.modelcontextprotocol/protocolVersion"

// foreignStreams are the streams with which a client asks for a later revision,
// outside of any session. Their messages do not belong to this revision
// (docs/positions.md, later-revision-first). Over stdio either all are foreign or none.
type foreignStreams map[string]bool

func findForeign(events []*wire.Event, over string) foreignStreams {
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
		streams[transport.Stdin], streams[transport.Stdout] = laterRevision(v), laterRevision(v)
		return streams
	}
	for _, e := range events {
		if e.Kind != wire.KindHTTPRequest || e.HTTP == nil || e.HTTP.Method != http.MethodPost || opens[e.Stream] {
			continue
		}
		version := e.HTTP.Header.Get(headerVersion)
		if laterRevision(version) && !agreed[version] && len(e.HTTP.Header.Values(headerSession)) == 0 {
			streams[e.Stream] = true
		}
	}
	return streams
}
