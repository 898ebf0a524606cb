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
	odd("answers.backwards", "The later one of two requests at once is answered first.",
		"A response belongs to its request by the id; the text wants no order.", ofResponses,
		All(Pausing(Numbered, 30*time.Millisecond), Pausing(ofSpellings, 30*time.Millisecond))).In(Requests, RootsSeen),
	odd("answers.slow", "Each answer takes a twentieth of a second.",
		"The word promptly does not stand for a number of milliseconds.", ofPing,
		Pausing(Answers, 50*time.Millisecond)).In(Framed, Notifications),
	odd("streams.resumed-once", "A stream that is cut a second time is not resumed any more.",
		"A client resumes if it wishes to.", "basic/transports#resumability-and-redelivery", resumingAtMost(1)).
		Only(OverHTTP).In(CutStream).Open(ids.HTTPDisconnectSurvived),
	odd("streams.resumed-twice", "A stream that is cut a third time is not resumed any more.",
		"A client resumes if it wishes to.", "basic/transports#resumability-and-redelivery", resumingAtMost(2)).
		Only(OverHTTP).In(CutStream).Open(ids.HTTPDisconnectSurvived),
	odd("tools.plain-only", "Tools whose schemas the client does not understand are not called.",
		"A client calls the tools that it likes.", "server/tools#calling-tools", Instead(func(m *wire.Message) bool {
			name, _ := wire.At(m.Params, "name").(string)
			return m.Method == "tools/call" && strings.HasPrefix(name, "schema_")
		})).In("lists/schemas"),
	odd("elicitation.announced", "A notification of the client's own says that a form is shown, before it is answered.",
		"A receiver ignores notifications that it does not know, and the request gets its response.", ofNotifications,
		Before(Replies("elicitation-string"),
			`{"jsonrpc":"2.0","method":"com.example/shown",`+
				`"params":{"requestId":"elicitation-string","action":"shown"}}`)).In(Elicitation),
	odd("roots.lower-escapes", "The escapes in the URIs of roots have lower-case digits.",
		"The hexadecimal digits of escapes are the same in either case.", ofRoot,
		Replacing(Results, "%C3%A9", "%c3%a9")).In("acts/root-folder"),
	odd("forms.slow", "A form and a sampling request take three seconds, and a ping meanwhile is answered at once.",
		"A user and a model take their time; the ping is not about them.", ofPing,
		All(Slowly("elicitation/create", "take your time"),
			Slowly("sampling/createMessage", "Take your time"))).In(Elicitation, Sampling),
	odd("forms.before-pings", "A ping is answered after a form that was open and is filled in at once.",
		"Promptly leaves room for the answer that is on its way.", ofPing,
		All(BehindAnswer("elicitation-open"), BehindAnswer("sampling-open"))).In(Elicitation, Sampling),
	odd("streams.left-cut", "No stream is resumed, neither one of an answer nor a listening one.",
		"A client resumes if it wishes to.", "basic/transports#resumability-and-redelivery",
		All(resumingNothing, ResumingAs("listened+/=%20"), ResumingAs("resumed,once"))).Only(OverHTTP).
		In(CutStream, ListeningStream, "http/broken-end").Open("http.client.*", ids.HTTPDisconnectSurvived),
	odd("streams.listened-anew", "A listening stream that ends is opened anew, without Last-Event-ID.",
		"The client may issue a GET; one that does not resume names no event.", ofListening,
		ResumingAs("listened+/=%20")).Only(OverHTTP).In(ListeningStream).Open(ids.HTTPClientLastEventID),
	odd("streams.resumed-after-answers", "A stream that breaks off behind its answer is resumed all the same.",
		"A server may send more; a client that resumes names the last event that it received.",
		"basic/transports#resumability-and-redelivery", onHTTP(func(ctx context.Context, conn *transport.HTTPConn) {
			for _, e := range slices.Backward(conn.Log().Events()) {
				if e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && e.SSE != nil &&
					e.SSE.HasID {
					if s, err := conn.Resume(ctx, e.SSE.ID); err == nil {
						s.Close()
					}
					return
				}
			}
		})).Only(OverHTTP).In("http/broken-end"),
	odd("names.from-elsewhere", "A tool, a prompt and a resource are used that no list shows.",
		"Names and URIs may come from links, templates and users.", "server/tools#calling-tools", All(
			Further("tools", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "tools/call", object{"name": "MCPCONFORM_ELSEWHERE"})
			}),
			Further("prompts", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "prompts/get", object{"name": "Mcpconform elsewhere"})
			}),
			Further("resources", func(ctx context.Context, s *client.Session) {
				_, _ = s.Call(ctx, "resources/read", object{"uri": "test://template/7/data"})
			}),
		)).In("lists/tool-names", "lists/prompt-names", "lists/uris"),
	// github.com/WordPress/mcp-adapter/issues/235
	odd("resources.uri-normalised",
		"A resource is read by its URI with scheme and host in small letters, and without default port and dots.",
		"RFC 3986, by which resources are identified, calls such URIs equivalent.",
		"server/resources#common-uri-schemes", Renaming("resources/read", "uri", func(uri string) string {
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
		})).In("lists/uris"),
	odd("names.plain-only", "Tools and prompts whose names are unusual are not used, nor are resources whose URIs are.",
		"A client uses what it likes.", "server/tools#calling-tools", Instead(func(m *wire.Message) bool {
			name, _ := wire.At(m.Params, "name").(string)
			uri, _ := wire.At(m.Params, "uri").(string)
			return strings.Contains(strings.ToLower(name+uri), "mcpconform") && !strings.HasSuffix(name+uri, "plain") &&
				!strings.HasPrefix(uri, "file:") && operational(m)
		})).In("lists/tool-names", "lists/prompt-names", "lists/uris"),
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
