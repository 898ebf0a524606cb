package judge

import (
	"net/http"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// TestKeptForTheListener tests messages that a server kept for a client that did not listen. They may be older than
// later requests of the client. Later messages on that stream are not.
func TestKeptForTheListener(t *testing.T) {
	const (
		told        = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1}}`
		changed     = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}`
		setLevel    = `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"error"}}`
		subscribe   = `{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"a:b"}}`
		unsubscribe = `{"jsonrpc":"2.0","id":8,"method":"resources/unsubscribe","params":{"uri":"a:b"}}`
		seven       = `{"jsonrpc":"2.0","id":7,"result":{}}`
		eight       = `{"jsonrpc":"2.0","id":8,"result":{}}`
	)
	for _, tt := range []struct {
		name, id, message string
		asked             [][2]string
	}{
		{"log messages", "logging.filter.none-below", told, [][2]string{{setLevel, seven}, {pingFive, pongFive}}},
		{"updates", "resources.updated.ends-with-unsubscribe", changed, [][2]string{{subscribe, seven}, {unsubscribe, eight}, {pingFive, pongFive}}},
	} {
		for _, late := range []bool{false, true} {
			s := newHTTPScript(t, "http").handshake()
			for _, x := range tt.asked {
				s.post(x[0], later(), 200, "application/json", x[1])
			}
			listening := s.ask(http.MethodGet, mcp, "", later("Accept", "text/event-stream"))
			s.head(listening, 200, headers("Content-Type", "text/event-stream"))
			if late {
				s.wait(2 * Crossing)
			}
			s.event(listening, "", tt.message)
			seen := Judge(schema.Default(), []*wire.Log{s.log}, Options{})[Key{Requirement: tt.id, Party: wire.Server}]
			if found := seen != nil && len(seen.Findings) > 0; found != late {
				t.Errorf("%s, late: %t, found: %t", tt.name, late, found)
			}
		}
	}
}
