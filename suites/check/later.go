package check

import (
	"context"
	"net/http"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// withoutHandshake is the first revision that has no initialize.
const withoutHandshake = "2026-07-28"

// Later returns the versions that a server supports which has refused initialize. Later revisions have no handshake; a
// server of one of them names its versions in answer to server/discover. The result is nil if the server does not, or
// if it names the revision of the run.
//
// 2026-07-28/server/discover, 2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions
func (e *Engine) Later(ctx context.Context, refused *client.RefusedError) []string {
	if head := refused.Exchange.Head; refused.Exchange.Error() == nil &&
		(head == nil || head.HTTP.Status != http.StatusBadRequest) {
		return nil
	}
	s, err := e.connect(ctx, "server/discover", client.Options{})
	if err != nil {
		return nil
	}
	defer e.close(ctx, s)
	const prefix = "io.modelcontextprotocol/"
	x, _ := s.Call(ctx, "server/discover", map[string]any{"_meta": map[string]any{
		prefix + "protocolVersion":    withoutHandshake,
		prefix + "clientInfo":         map[string]any{"name": "mcpconform", "version": "1.0.0"},
		prefix + "clientCapabilities": map[string]any{},
	}}, client.Deliberately("*"), func(m *transport.Outgoing) {
		m.Header = http.Header{"Mcp-Protocol-Version": {withoutHandshake}, "Mcp-Method": {"server/discover"}}
	})
	versions := wire.Strings(x.Result(), "supportedVersions")
	if refusal := x.Error(); refusal != nil {
		versions = wire.Strings(refusal.Data, "supported")
	}
	if slices.Contains(versions, e.Revision.Version) {
		return nil
	}
	return versions
}
