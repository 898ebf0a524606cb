package bundle_test

import (
	"bytes"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/reporters/bundle"
	"github.com/mcpconform/mcpconform/suites"
)

// A bundle comes from somebody who wants it to be accepted: whatever stands in one of its
// files, with digests that fit, verifying it ends with an answer.
func FuzzBundle(f *testing.F) {
	var genuine []byte
	f.Add(uint8(0), []byte(`{"format":1,"files":[{}]}`))
	f.Add(uint8(1), []byte(`{"format":1,"requirements":[{"id":"ping.answered","verdict":"pass"}]}`))
	f.Add(uint8(2), []byte(`{"arguments":["\u0000"],"timeout":-1}`))
	f.Add(uint8(3), []byte("{}\n"))
	f.Add(uint8(255), []byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		if genuine == nil {
			genuine = pack(t, suites.Recording{Party: wire.Server}, "server", "stdio", "core", suites.Options{Trace: recorded(t)})
		}
		raw := content
		if int(which) < len(unpack(t, genuine).order) {
			b := unpack(t, genuine)
			name := b.order[which]
			b.files[name] = content
			if name != bundle.ManifestFile {
				b.sign()
			}
			raw = b.pack()
		}
		if v := verify(raw); v.Accepted() && !bytes.Equal(raw, genuine) && v.Run == nil {
			t.Error("a bundle without results is accepted")
		}
	})
}

// recorded is a session of two requests.
func recorded(t *testing.T) *wire.Trace {
	trace := wire.NewTrace(wire.DefaultLimits)
	log := trace.Connect("stdio", "recorded")
	defer log.End()
	for i, raw := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"result":{}}`,
	} {
		if _, err := log.Append(wire.Event{Kind: wire.KindMessage, From: []wire.Party{wire.Client, wire.Server}[i%2], Raw: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	return trace
}
