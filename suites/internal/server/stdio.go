package server

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic/transports#stdio
var stdioChecks = []*check.Check{
	{
		Name:         "stdio/invalid-json",
		Requirements: []string{ids.StdioServerSurvivesInvalidJSON, ids.BaseErrorParseError},
		Shows:        []string{ids.BaseResponseOnce},
		Needs:        derailing,
		Families:     []string{"bodies-broken", "bodies-lenient"},
		Body: func(t *check.T) {
			// Each line is a message: one that is not JSON is answered with -32700 or not at all, and the next is
			// served.
			for _, raw := range []string{``, ` `} {
				survives(t, raw, -32700, ids.BaseErrorParseError)
			}
			survivesAll(t, func(line string) bool { return utf8.ValidString(line) && line[0] != '{' })
		},
	},
	{
		Name:         "stdio/broken-message",
		Requirements: []string{ids.BaseErrorParseSurvive, ids.BaseErrorParseError},
		Shows:        []string{ids.BaseResponseOnce},
		Needs:        derailing,
		Families:     []string{"bodies-broken", "bodies-lenient"},
		Body: func(t *check.T) {
			// The same for a message that is cut off or mistyped.
			survivesAll(t, func(line string) bool { return utf8.ValidString(line) && line[0] == '{' })
		},
	},
	{
		Name:         "stdio/non-message",
		Requirements: []string{ids.StdioServerSurvivesNonMessage},
		Needs:        alone,
		Families:     []string{"bodies-not-messages"},
		Body: func(t *check.T) {
			// JSON that is not a message, without an id for an answer.
			survives(t, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, -32600, "")
			t.VaryInTurn(t.Draw("bodies-not-messages"), func(m family.Member) { survives(t, m.Raw(), -32600, "") })
		},
	},
	{
		Name:         "stdio/invalid-utf8",
		Requirements: []string{ids.StdioServerSurvivesInvalidUTF8},
		Needs:        alone,
		Families:     []string{"bodies-broken", "bodies-lenient"},
		Body: func(t *check.T) {
			survivesAll(t, func(line string) bool { return !utf8.ValidString(line) })
		},
	},
	{
		Name:         "stdio/crlf",
		Requirements: []string{ids.StdioMessageCrlfAccepted},
		Needs:        alone,
		Body: func(t *check.T) {
			framed(t, t.Session.NextID(), func(raw []byte) [][]byte { return [][]byte{append(raw, '\r', '\n')} })
		},
	},
	{
		Name:         "stdio/split-writes",
		Requirements: []string{ids.StdioMessageSplitWrites},
		Needs:        alone,
		Body: func(t *check.T) {
			// A pipe has no message boundaries: the pieces of a line may arrive one by one, those of a character as
			// well.
			const text = "naïve — 次 🎉"
			framed(t, t.Session.NextID(), bytewise)
			if whole, err := t.Session.StartID(t.Context, wire.StringID(text), t.NoOp(), nil); err == nil {
				if x, err := whole.Await(t.Context); err == nil && x.Result() != nil {
					framed(t, wire.StringID(text+" again"), bytewise)
				}
			}
		},
	},
	{
		Name:         "stdio/several-per-write",
		Requirements: []string{ids.StdioMessageSeveralPerWrite},
		Needs:        alone,
		Body: func(t *check.T) {
			// Three requests in one write are three requests.
			conn := stdioConn(t)
			var open []wire.ID
			var text []byte
			mark := t.Mark()
			for range 3 {
				id := t.Session.NextID()
				open = append(open, id)
				raw := plainRaw(t, id)
				text = append(append(text, raw...), '\n')
			}
			for i, line := range strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n") {
				m := transport.Outgoing{Raw: []byte(strings.TrimSuffix(line, "\n"))}
				var chunk [][]byte
				if i == len(open)-1 {
					chunk = [][]byte{text}
				}
				sent, err := conn.Write(t.Context, m, chunk...)
				t.Show(sent)
				t.Must(err)
			}
			for _, id := range open {
				answered(t, mark, id)
			}
		},
	},
	{
		Name:         "stdio/line-separators",
		Requirements: []string{ids.StdioMessageOnlyNewlineDelimits},
		Needs:        alone,
		Body: func(t *check.T) {
			// U+2028, U+2029 and U+0085 are line ends elsewhere, but not here. The first two are not escaped only in
			// raw JSON.
			servesMeta(t)
			text := json.RawMessage("\"a\u2028b\u2029c\u0085d\"")
			t.Expect(t.Call(t.NoOp(), meta("example.com/text", text))).To(HaveResult())
		},
	},
	{
		Name:         "stdio/large-message",
		Requirements: []string{ids.StdioMessageLarge},
		Needs:        alone,
		Body: func(t *check.T) {
			// There is no limit on a message. A clean error is tolerated, as servers have to protect themselves.
			id := t.Session.NextID()
			p, err := t.Session.StartRaw(t.Context, id, t.NoOp(), largeRequest(id, t.NoOp()))
			t.Must(err)
			x := t.Await(p)
			if unread(x.Error()) {
				t.Fail("a message of 1 MiB was not read to its end: %s says that it is not JSON", Describe(x))
			}
			if x.Error() != nil {
				t.Note("a message of 1 MiB was refused with error %d", x.Error().Code)
			}
			t.Fence()
		},
	},
}

// alone is a session that no other check uses at the time.
var alone = check.Needs{Session: check.Own, Transports: []string{transport.NameStdio}, Brief: true}

// derailing is for input that many servers do not survive. In a session of other checks it would have to be tried
// twice, and each try waits for a time limit.
var derailing = check.Needs{Session: check.Own, Transports: []string{transport.NameStdio},
	Lane: "input that is not JSON", Brief: true}

// survives sends a line that is not a valid message and expects an answer to a request
// after it. An answer to the line itself is an error with the given code (0 for any),
// whose id is null or absent; no answer is fine too.
func survives(t *check.T, raw string, code int64, id string) {
	t.Fence() // what answers something before is not mistaken for an answer to this
	mark := t.Mark()
	t.Send(raw, client.Deliberately("*"))
	t.Fence()
	for _, e := range t.Since(mark) {
		if code != 0 && id != "" && refusesUnnamed(e) && e.Msg.Error.HasCode {
			t.Check(id, e).To(HaveErrorCode(code), "for a line that is not JSON")
		}
	}
}

// survivesAll sends those lines that are not JSON and fit. A lenient reader may take such a line for JSON and answer
// with any error.
func survivesAll(t *check.T, fits func(line string) bool) {
	for _, of := range []struct {
		family string
		code   int64
	}{{"bodies-broken", -32700}, {"bodies-lenient", 0}} {
		lines := slices.DeleteFunc(t.Draw(of.family), func(m family.Member) bool { return !fits(m.Raw()) })
		t.VaryInTurn(lines, func(m family.Member) { survives(t, m.Raw(), of.code, ids.BaseErrorParseError) })
	}
}

func stdioConn(t *check.T) *transport.StdioConn {
	conn, ok := t.Session.Conn.(*transport.StdioConn)
	if !ok {
		t.Skip("another transport")
	}
	return conn
}

// plainRaw returns a request that is served.
func plainRaw(t *check.T, id wire.ID) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id.String() + `,"method":"` + t.NoOp() + `"}`)
}

// framed sends a plain request in the given writes and expects an answer.
func framed(t *check.T, id wire.ID, frame func(raw []byte) [][]byte) {
	raw := plainRaw(t, id)
	mark := t.Mark()
	sent, err := stdioConn(t).Write(t.Context, transport.Outgoing{Raw: raw}, frame(raw[:len(raw):len(raw)])...)
	t.Show(sent)
	t.Must(err)
	answered(t, mark, id)
}

// bytewise returns each byte of a line alone.
func bytewise(raw []byte) [][]byte {
	var pieces [][]byte
	for _, b := range append(raw, '\n') {
		pieces = append(pieces, []byte{b})
	}
	return pieces
}

// answered waits for the response with an id, which has to be a result. The error for
// a line that is not a message has no id.
func answered(t *check.T, mark int, id wire.ID) {
	e, err := t.Session.AwaitEvent(t.Context, mark, "result of "+t.NoOp(), func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && e.Msg.ID.Resembles(id)
	})
	t.Must(err)
	t.Expect(e).ToNot(HaveError())
}
