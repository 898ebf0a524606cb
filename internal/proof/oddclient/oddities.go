// Package oddclient has the clients that prove the harness and that the command does not run: oddities, hostile
// clients, and the forms of the faults of package mockclient. It is to clients what package oddserver is to servers.
package oddclient

import (
	"context"
	"slices"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/internal/proof/oddity"
	"github.com/mcpconform/mcpconform/internal/proof/spell"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

type (
	apply    = func(c *client.Standalone)
	object   = map[string]any
	list     = []any
	match    = func(m *wire.Message) bool
	outgoing = transport.Outgoing
)

// Oddity is one way in which a client may differ from most others and yet keep to the specification.
type Oddity = oddity.Of[client.Standalone]

// Oddities returns all oddities, grouped by topic. The caller owns the slice.
func Oddities() []Oddity {
	return slices.Concat(idOddities, messageOddities, metaOddities, answerOddities, handshakeOddities,
		capabilityOddities, sessionOddities, httpOddities, stdioOddities, utilityOddities, useOddities,
		samplingOddities, elicitationOddities, rootOddities, authOddities, familyOddities)
}

var overEitherHTTP = []string{transport.NameHTTP, transport.NameSSE}

// Start runs the client with the oddities.
func Start(ctx context.Context, c client.Standalone, oddities ...Oddity) error {
	run := func(ctx context.Context, c client.Standalone) error { return c.Run(ctx) }
	for _, o := range oddities {
		if o.Apply != nil {
			o.Apply(&c)
		}
		if o.Run != nil {
			run = o.Run
		}
	}
	return run(ctx, c)
}

var odd = oddity.New[client.Standalone]

// followed sends further texts as soon as a message is under way.
func followed(which match, texts ...string) apply {
	return Wrapping(func(conn transport.Conn) transport.Conn { return &companion{Conn: conn, of: which, texts: texts} })
}

type companion struct {
	transport.Conn
	of    match
	texts []string
}

func (c *companion) Send(ctx context.Context, out transport.Outgoing) (*wire.Event, error) {
	sent, err := c.Conn.Send(ctx, out)
	if err == nil && c.of(wire.Parse(out.Raw)) {
		for _, text := range c.texts {
			_, _ = c.Conn.Send(ctx, outgoing{Raw: []byte(text)})
		}
	}
	return sent, err
}

// answering answers requests of methods in another way.
func answering(answer func(params any) (any, *wire.Error), methods ...string) apply {
	return Changing(func(o *client.Options) {
		for _, method := range methods {
			o.Answers[method] = func(_ context.Context, params any) (any, *wire.Error) { return answer(params) }
		}
	})
}

// using replaces what the client does between handshake and shutdown.
func using(use func(ctx context.Context, s *client.Session, call client.Call) error) apply {
	return func(c *client.Standalone) { c.Use = use }
}

// spelled writes messages in another spelling of the same JSON.
func spelled(which match, s spell.Speller) apply {
	return Rewriting(which, func(text string) string {
		value, _, err := wire.Decode([]byte(text))
		if err != nil {
			return text
		}
		return string(s.Spell(value))
	})
}
