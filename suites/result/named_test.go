package result

import (
	"strings"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
)

func TestNamed(t *testing.T) {
	const listing = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x/y":1},{"name":"b","inputSchema":{"type":"array"}},{"title":"c"}]}}`
	const refusal = `{"jsonrpc":"2.0","id":4,"error":{"message":"expected \"string\"","code":-32603}}`
	for _, test := range []struct{ name, text, message, want string }{
		{"pointer from the root", listing, "wrong (at /result/tools/1/name)", `"name":"b"`},
		{"pointer from the result", listing, `/tools/2: member "name" is missing`, `{"title":"c"}`},
		{"escaped pointer", listing, "at /tools/0/x~1y: wrong", `"x/y":1`},
		{"pointer to nothing", listing, `/tools/7: member "inputSchema" is missing`, `"inputSchema"`},
		{"behind a head", "200 OK\nContent-Type: application/json\n" + listing, "at /result/tools/2/title: wrong", `"title":"c"`},
		{"error code before quotes", refusal, `answered with error -32603: "expected", not with error -32602`, `"code":-32603`},
		{"quoted", listing, `the tool "b" is there twice`, `"b"`},
		{"names near each other", refusal, `"error" has the "message" that it should not`, `"error":{"message"`},
		{"nothing", listing, "wrong", ""},
		{"nothing of it", listing, `the "cursor" is wrong`, ""},
		{"a path", listing, "the file /etc/passwd was read", ""},
		{"a text that was cut", listing[:60], "at /result/tools/0/name", `"name":"a"`},
	} {
		from, to, ok := Named(test.text, test.message)
		if got := test.text[from:to]; got != test.want || ok != (test.want != "") {
			t.Errorf("%s: got %q (%t), want %q", test.name, got, ok, test.want)
		}
	}
}

func FuzzNamed(f *testing.F) {
	f.Add(`{"a":[1,{"b":"x"}]}`, "/a/1/b `x` error -32603")
	f.Add(`{"a":`, "/a/")
	f.Fuzz(func(t *testing.T, text, message string) {
		if from, to, ok := Named(text, message); ok && (from < 0 || from >= to || to > len(text)) {
			t.Errorf("%d to %d of %d bytes", from, to, len(text))
		}
	})
}

// The deciding part stays in a long event, in every position.
func TestNewEventKeepsWhatDecides(t *testing.T) {
	filler := strings.Repeat("é", 3000)
	for name, raw := range map[string]string{
		"in front":      `{"error":{"code":-32603,"message":"` + filler + filler + `"},"id":1}`,
		"in the middle": `{"a":"` + filler + `","error":{"code":-32603,"message":"` + filler + `"},"id":1}`,
		"at the end":    `{"a":"` + filler + filler + `","error":{"code":-32603}}`,
	} {
		e := NewEvent(&wire.Event{Kind: wire.KindMessage, Raw: []byte(raw)}, "answered with error -32603, not with error -32602")
		if !strings.Contains(e.Text, `"code":-32603`) || !strings.HasPrefix(e.Text, raw[:4]) || !strings.HasSuffix(e.Text, raw[len(raw)-4:]) {
			t.Errorf("%s: %s", name, e.Text)
		}
		if !e.Truncated || len(e.Text) > maxText*5/4 {
			t.Errorf("%s: truncated: %t, %d bytes", name, e.Truncated, len(e.Text))
		}
	}
}
