package oddclient

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	. "github.com/mcpconform/mcpconform/internal/proof/hooks/clienthooks"
	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// resumingAtMost resumes the streams of a session so often.
func resumingAtMost(times int) apply {
	return Changing(func(o *client.Options) {
		resume, resumed := o.Resuming, 0
		o.Resuming = func(last string) (string, bool) {
			if resumed == times {
				return "", false
			}
			resumed++
			return resume(last)
		}
	})
}

// familyOddities are odd where values, sessions and moments vary.
var familyOddities = []Oddity{
	{ID: "answers.backwards", Summary: "The later one of two requests at once is answered first.",
		Why: "A response belongs to its request by the id; the text wants no order.", Source: ofResponses,
		Scenarios: []string{Requests, RootsSeen},
		Apply:     All(Pausing(Numbered, 30*time.Millisecond), Pausing(ofSpellings, 30*time.Millisecond))},
	{ID: "answers.slow", Summary: "Each answer takes a twentieth of a second.",
		Why: "The word promptly does not stand for a number of milliseconds.", Source: ofPing,
		Scenarios: []string{Framed, Notifications}, Apply: Pausing(Answers, 50*time.Millisecond)},
	{ID: "streams.resumed-once", Transports: OverHTTP,
		Summary: "A stream that is cut a second time is not resumed any more.",
		Why:     "A client resumes if it wishes to.", Source: at("basic/transports#resumability-and-redelivery"),
		Scenarios: []string{CutStream}, Untried: []string{ids.HTTPDisconnectSurvived}, Apply: resumingAtMost(1)},
	{ID: "streams.resumed-twice", Transports: OverHTTP,
		Summary: "A stream that is cut a third time is not resumed any more.",
		Why:     "A client resumes if it wishes to.", Source: at("basic/transports#resumability-and-redelivery"),
		Scenarios: []string{CutStream}, Untried: []string{ids.HTTPDisconnectSurvived}, Apply: resumingAtMost(2)},
	{ID: "tools.plain-only", Summary: "Tools whose schemas the client does not understand are not called.",
		Why: "A client calls the tools that it likes.", Source: at("server/tools#calling-tools"),
		Scenarios: []string{"lists/schemas"},
		Apply: Instead(func(m *wire.Message) bool {
			name, _ := wire.At(m.Params, "name").(string)
			return m.Method == "tools/call" && strings.HasPrefix(name, "schema_")
		})},
	{ID: "elicitation.announced",
		Summary: "A notification of the client's own says that a form is shown, before it is answered.",
		Why:     "A receiver ignores notifications that it does not know, and the request gets its response.",
		Source:  ofNotifications, Scenarios: []string{Elicitation},
		Apply: Before(Replies("elicitation-string"),
			`{"jsonrpc":"2.0","method":"com.example/shown",`+
				`"params":{"requestId":"elicitation-string","action":"shown"}}`),
	},
	{ID: "roots.lower-escapes", Summary: "The escapes in the URIs of roots have lower-case digits.",
		Why: "The hexadecimal digits of escapes are the same in either case.", Source: ofRoot,
		Scenarios: []string{"acts/root-folder"}, Apply: Replacing(Results, "%C3%A9", "%c3%a9")},
	{ID: "forms.slow",
		Summary: "A form and a sampling request take three seconds, and a ping meanwhile is answered at once.",
		Why:     "A user and a model take their time; the ping is not about them.", Source: ofPing,
		Scenarios: []string{Elicitation, Sampling},
		Apply: All(Slowly("elicitation/create", "take your time"),
			Slowly("sampling/createMessage", "Take your time"))},
	{ID: "forms.before-pings", Summary: "A ping is answered after a form that was open and is filled in at once.",
		Why: "Promptly leaves room for the answer that is on its way.", Source: ofPing,
		Scenarios: []string{Elicitation, Sampling},
		Apply:     All(BehindAnswer("elicitation-open"), BehindAnswer("sampling-open"))},
	{ID: "streams.left-cut", Transports: OverHTTP,
		Summary: "No stream is resumed, neither one of an answer nor a listening one.",
		Why:     "A client resumes if it wishes to.", Source: at("basic/transports#resumability-and-redelivery"),
		Scenarios: []string{CutStream, ListeningStream, "http/broken-end"},
		Untried:   []string{"http.client.*", ids.HTTPDisconnectSurvived},
		Apply:     All(resumingNothing, ResumingAs("listened+/=%20"), ResumingAs("resumed,once"))},
	{ID: "streams.listened-anew", Transports: OverHTTP,
		Summary: "A listening stream that ends is opened anew, without Last-Event-ID.",
		Why:     "The client may issue a GET; one that does not resume names no event.", Source: ofListening,
		Scenarios: []string{ListeningStream}, Untried: []string{ids.HTTPClientLastEventID},
		Apply: ResumingAs("listened+/=%20")},
	{ID: "streams.resumed-after-answers", Transports: OverHTTP,
		Summary: "A stream that breaks off behind its answer is resumed all the same.",
		Why:     "A server may send more; a client that resumes names the last event that it received.",
		Source:  at("basic/transports#resumability-and-redelivery"), Scenarios: []string{"http/broken-end"},
		Apply: onHTTP(func(ctx context.Context, conn *transport.HTTPConn) {
			for _, e := range slices.Backward(conn.Log().Events()) {
				if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && e.SSE != nil &&
					e.SSE.HasID {
					if s, err := conn.Resume(ctx, e.SSE.ID); err == nil {
						s.Close()
					}
					return
				}
			}
		})},
	{ID: "names.from-elsewhere", Summary: "A tool, a prompt and a resource are used that no list shows.",
		Why:       "Names and URIs may come from links, templates and users.",
		Source:    at("server/tools#calling-tools"),
		Scenarios: []string{"lists/tool-names", "lists/prompt-names", "lists/uris"},
		Apply: All(
			Further("tools", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "tools/call", object{"name": "MCPCONFORM_ELSEWHERE"})
			}),
			Further("prompts", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "prompts/get", object{"name": "Mcpconform elsewhere"})
			}),
			Further("resources", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "resources/read", object{"uri": "test://template/7/data"})
			}),
		)},
	// github.com/WordPress/mcp-adapter/issues/235
	{ID: "resources.uri-normalised",
		Summary: "A resource is read by its URI with scheme and host in small letters, and without " +
			"default port and dots.",
		Why:    "RFC 3986, by which resources are identified, calls such URIs equivalent.",
		Source: at("server/resources#common-uri-schemes"), Scenarios: []string{"lists/uris"},
		Apply: Renaming("resources/read", "uri", func(uri string) string {
			u, err := url.Parse(uri)
			if err != nil || u.Opaque != "" {
				return uri
			}
			u.Host = strings.ToLower(u.Host)
			if u.Scheme == "http" {
				u.Host = strings.TrimSuffix(u.Host, ":80")
			}
			if strings.Contains(u.Path, "/../") {
				u.Path = path.Clean(u.Path)
			}
			return u.String()
		})},
	{ID: "names.plain-only",
		Summary: "Tools and prompts whose names are unusual are not used, nor are resources whose URIs are.",
		Why:     "A client uses what it likes.", Source: at("server/tools#calling-tools"),
		Scenarios: []string{"lists/tool-names", "lists/prompt-names", "lists/uris"},
		Apply: Instead(func(m *wire.Message) bool {
			name, _ := wire.At(m.Params, "name").(string)
			uri, _ := wire.At(m.Params, "uri").(string)
			return strings.Contains(strings.ToLower(name+uri), "mcpconform") && !strings.HasSuffix(name+uri, "plain") &&
				!strings.HasPrefix(uri, "file:") && operational(m)
		})},
}

func operational(m *wire.Message) bool {
	return m.Kind == wire.Request && (m.Method == "tools/call" || m.Method == "prompts/get" ||
		m.Method == "resources/read")
}

// resumingNothing leaves streams that were cut.
var resumingNothing = Changing(func(o *client.Options) {
	o.Resuming = func(string) (string, bool) { return "", false }
})

// ofSpellings matches the answers to pings that are written in one spelling or another.
func ofSpellings(m *wire.Message) bool {
	return Named(m) && strings.Contains(m.ID.Key(), "spelling: ")
}
