package judge

import (
	"net/http"
	"testing"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
)

// FuzzHeaders gives the rules any heads of requests and responses. Every rule has to cope with them.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][3]string{
		{"Content-Type", "text/event-stream; charset=", "POST"}, {headerSession, "\x00\xff", "GET"}, {headerVersion, "2025-06-18, 2025-03-26", "DELETE"},
		{"Accept", "application/json;q=, */*;q=9e999", "POST"}, {"Origin", "http://[::1%25en0]:99999", "OPTIONS"}, {"Location", "//\\evil", "POST"},
		{"WWW-Authenticate", `Bearer resource_metadata="http://[`, "POST"}, {"Retry-After", "99999999999999999999", "GET"}, {"Authorization", "Bearer ", "POST"},
	} {
		f.Add(seed[0], seed[1], "", seed[2], "http://localhost/mcp", 200)
		f.Add(seed[0], "", seed[1], seed[2], "/%zz?access_token=x", 401)
	}
	f.Fuzz(func(t *testing.T, name, asked, answered, method, url string, status int) {
		for _, over := range []string{"http", "sse"} {
			s := newHTTPScript(t, over).handshake()
			x := s.ask(method, url, pingFive, http.Header{name: {asked}, "Accept": {both}})
			s.head(x, status, http.Header{name: {answered, asked}, "Content-Type": {answered}})
			s.body(x, pongFive)
			s.end(x)
			s.log.End()
			Judge(schema.Default(), []*wire.Log{s.log}, Options{})
		}
	})
}
