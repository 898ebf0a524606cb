package server

import (
	"regexp"
	"slices"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

var versionName = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// published reports whether a text has the form of a protocol version.
func published(version string) bool {
	return versionName.MatchString(version)
}

// at and quote are short for their namesakes of package wire.
func at(v any, path ...string) any { return wire.At(v, path...) }

func quote(v any) string { return wire.Show(v) }

// meta returns params that hold nothing but one value in their _meta.
func meta(key string, value any) map[string]any {
	return map[string]any{"_meta": map[string]any{key: value}}
}

// servesMeta is the control of a check about what _meta may hold: other checks find a
// server that refuses every _meta.
func servesMeta(t *check.T) {
	t.Assume(t.Call(t.NoOp(), meta("example.com/text", "text"))).To(HaveResult(), "with a plain _meta")
}

// servesStringIDs ends the body as inconclusive unless the server answers a request with a string as its id, which
// base/string-id judges.
func servesStringIDs(t *check.T) {
	p := t.StartID(wire.StringID("mcpconform-text-"+t.Session.NextID().String()), t.NoOp(), nil)
	x, err := p.Await(t.Context)
	if timedOut(err) {
		t.Inconclusive("%s with a string as its id is not answered", t.NoOp())
	}
	t.Must(err)
	t.Assume(x).To(HaveResult(), "with a string as its id")
}

// resultFor matches messages if one of them is a result with one of the ids.
func resultFor(ids ...string) types.GomegaMatcher {
	return Carry("a result", func(e *wire.Event) bool {
		return e.Msg.Kind == wire.Result && slices.ContainsFunc(ids,
			func(id string) bool { return e.Msg.ID.Key() == wire.StringID(id).Key() })
	})
}
