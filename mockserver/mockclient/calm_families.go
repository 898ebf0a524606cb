package mockclient

import (
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// familyOddities are odd where values, sessions and moments vary.
var familyOddities = []Oddity{
	{
		ID: "answers.backwards", Summary: "The later one of two requests at once is answered first.",
		Why: "A response belongs to its request by the id; the text wants no order.", Source: ofResponses, Scenarios: []string{requests, rootsSeen},
		Apply: pausing(numbered, 30*time.Millisecond),
	},
	{
		ID: "answers.slow", Summary: "Each answer takes a twentieth of a second.",
		Why: "The word promptly does not stand for a number of milliseconds.", Source: ofPing, Scenarios: []string{framed, notifications},
		Apply: pausing(answers, 50*time.Millisecond),
	},
	{
		ID: "streams.resumed-once", Summary: "A stream that is cut a second time is not resumed any more.",
		Why: "A client resumes if it wishes to.", Source: at("basic/transports", "resumability-and-redelivery"), Transports: overHTTP, Scenarios: []string{cutStream}, Untried: []string{"http.disconnect.survived"},
		Apply: changing(func(o *client.Options) {
			resume, resumed := o.Resuming, false
			o.Resuming = func(last string) (string, bool) {
				if resumed {
					return "", false
				}
				resumed = true
				return resume(last)
			}
		}),
	},
	{
		ID: "tools.plain-only", Summary: "Tools whose schemas the client does not understand are not called.",
		Why: "A client calls the tools that it likes.", Source: at("server/tools", "calling-tools"), Scenarios: []string{"lists/schemas"},
		Apply: instead(func(m *wire.Message) bool {
			name, _ := wire.At(m.Params, "name").(string)
			return m.Method == "tools/call" && strings.HasPrefix(name, "schema_")
		}),
	},
	{
		ID: "elicitation.announced", Summary: "A notification of the client's own says that a form is shown, before it is answered.",
		Why: "A receiver ignores notifications that it does not know, and the request gets its response.", Source: ofNotifications, Scenarios: []string{elicitation},
		Apply: before(replies("elicitation-string"), `{"jsonrpc":"2.0","method":"com.example/shown","params":{"requestId":"elicitation-string","action":"shown"}}`),
	},
	{
		ID: "roots.lower-escapes", Summary: "The escapes in the URIs of roots have lower-case digits.",
		Why: "The hexadecimal digits of escapes are the same in either case.", Source: ofRoot, Scenarios: []string{"acts/root-folder"},
		Apply: replacing(results, "%C3%A9", "%c3%a9"),
	},
}
