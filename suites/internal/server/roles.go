package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// roles says of tool roles what the names of such tools have in common, and what
// they do. Only a tool that may be called is taken for its name, and only if none
// was seen to do what the role needs.
var roles = map[string]struct {
	name *regexp.Regexp
	does string
}{
	"sampling":    {regexp.MustCompile(`(?i)sampl`), "ask for sampling"},
	"elicitation": {regexp.MustCompile(`(?i)elicit`), "elicit"},
	"roots":       {regexp.MustCompile(`(?i)roots`), "ask for the roots"},
	"ping":        {regexp.MustCompile(`(?i)\bping|_ping`), "ping the client"},
	"progress":    {regexp.MustCompile(`(?i)progress|long.?running`), "report progress"},
	"slow":        {regexp.MustCompile(`(?i)slow|sleep|long.?running`), "take its time"},
}

// toolFor returns the call for the first tool role that has one: the configured tool, a tool that was seen to play
// the role, or a tool with a telling name. It ends the body if no role has one.
func toolFor(t *check.T, roles ...string) check.Call {
	for _, role := range roles {
		if call, ok := knownTool(t, role); ok {
			return call
		}
	}
	t.Inconclusive("%s", unknown(roles[len(roles)-1]))
	return check.Call{}
}

func unknown(role string) string {
	return fmt.Sprintf("no tool that may be called is known to %s: name one for the tool role %q in the configuration",
		roles[role].does, role)
}

// calling is a session for calls in any of the tool roles. Without such a tool the
// check cannot be tried.
func calling(anyOf ...string) check.Needs {
	return check.Needs{Session: check.Own, ToolRoles: anyOf, Lacking: func(target *check.Target) string {
		for _, role := range anyOf {
			if _, ok := callFor(target, role); ok {
				return ""
			}
		}
		return unknown(anyOf[0])
	}}
}

func knownTool(t *check.T, role string) (check.Call, bool) { return callFor(t.Target, role) }

func callFor(target *check.Target, role string) (check.Call, bool) {
	if call, ok := target.ToolFor(role); ok {
		return call, true
	}
	return target.Fitting(role, func(tools []map[string]any) check.Call {
		tools = slices.DeleteFunc(named(tools), func(tool map[string]any) bool {
			return !roles[role].name.MatchString(tool["name"].(string))
		})
		// The tool with the plainest name most likely does just that.
		slices.SortStableFunc(tools, func(a, b map[string]any) int {
			return cmp.Compare(plainness(a["name"].(string)), plainness(b["name"].(string)))
		})
		for _, tool := range tools {
			if arguments, ok := check.ShortArguments(tool["inputSchema"]); ok {
				return check.Call{Tool: tool["name"].(string), Arguments: arguments}
			}
		}
		return check.Call{}
	})
}

// perform makes a call that a check needs only to be made. It ends the body if the
// tool refuses, as it may.
func perform(t *check.T, call check.Call) *client.Exchange {
	x := t.Call("tools/call", call.Params())
	t.Assume(x).To(HaveResult(), "for the tool %q", call.Tool)
	return x
}

func plainness(name string) int {
	n := len(name)
	if strings.Contains(strings.ToLower(name), "url") {
		n += 100 // the other mode of elicitation, of a later revision
	}
	return n
}

// open leaves the requests of the server that belong to the tool roles to the body
// of the check. A tool may ask for something else besides, and gets it.
func open(anyOf []string) client.Options {
	answers := check.StandardAnswers()
	for role, method := range map[string]string{"sampling": createMessage, "elicitation": "elicitation/create"} {
		if slices.Contains(anyOf, role) {
			answers[method] = nothing
		}
	}
	return client.Options{Capabilities: check.AllCapabilities(), Answers: answers}
}

// nothing leaves a request open.
func nothing(context.Context, any) (any, *wire.Error) { return nil, nil }

// byHand returns the needs of a check that itself answers the requests of the server, during a call in one of the
// tool roles.
func byHand(anyOf ...string) check.Needs {
	needs := calling(anyOf...)
	needs.Options = open(anyOf)
	return needs
}

// aboutLiveness returns the needs of a check of whether the server still answers.
func aboutLiveness(n check.Needs) check.Needs {
	n.Liveness = true
	return n
}

// repeated returns needs of a check that is run once more beside a call.
func repeated(n check.Needs) check.Needs {
	n.Beside = true
	return n
}

// waiting returns needs of a check that waits for what may never come, or many times.
func waiting(n check.Needs) check.Needs {
	n.Lane = check.Waiting
	return n
}

// maxAsked bounds how often a tool may ask in one call.
const maxAsked = 50

// converse makes a call and answers each request of a method that comes before
// its end with what reply returns. It returns the call and these requests.
func converse(t *check.T, call check.Call, method string, reply func(request *wire.Event) map[string]any,
	opts ...client.Option) (*client.Exchange, []*wire.Event) {
	p := t.Start("tools/call", call.Params())
	var asked []*wire.Event
	for from := p.Request.Seq + 1; ; {
		e, err := t.Session.AwaitEvent(t.Context, from, "answer to tools/call", func(e *wire.Event) bool {
			return over(e, p) || asks(e, method) && t.Claim(e)
		})
		if len(asked) == 0 {
			mayYetAsk(t, call, method, err)
		}
		t.Must(err)
		if e.Kind == wire.KindStreamEnd {
			t.Await(p) // says how it ended without an answer
			return &client.Exchange{Request: p.Request}, asked
		}
		t.Show(e)
		if p.Answers(e) {
			return &client.Exchange{Request: p.Request, Response: e}, asked
		}
		from = e.Seq + 1
		if asked = append(asked, e); len(asked) > maxAsked {
			t.Inconclusive("the tool %q asks again and again without end", call.Tool)
		}
		if method == createMessage && !check.Sampleable(e.Msg.Params) {
			t.Inconclusive("the tool %q asks for sampling with messages that no model can sample", call.Tool)
		}
		respond(t, e, reply(e), opts...)
	}
}

// mayYetAsk ends the check if a wait for what a tool asks was too short: the text does not say how soon a tool
// asks, nor how long it may take.
func mayYetAsk(t *check.T, call check.Call, method string, err error) {
	if timedOut(err) {
		t.Inconclusive("the tool %q did not send %s in time; %s", call.Tool, method, ending.Raise(ending.Timeout))
	}
}

// respond answers a request of the server with a result or, as the member
// error, with an error.
func respond(t *check.T, request *wire.Event, outcome map[string]any, opts ...client.Option) {
	t.Send(string(response(request, outcome)), opts...)
}

// response returns the message that answers a request of the server.
func response(request *wire.Event, outcome map[string]any) []byte {
	message := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(request.Msg.ID.String())}
	if rpcError, ok := outcome["error"]; ok {
		message["error"] = rpcError
	} else {
		message["result"] = outcome
	}
	return client.Marshal(message)
}

// over reports whether an event is the response to a request or the end of the
// HTTP exchange that should have brought it.
func over(e *wire.Event, p *client.Pending) bool {
	return p.Answers(e) || e.Kind == wire.KindStreamEnd && e.Stream == p.Request.Stream
}

// tells reports whether an event is a notification of the server.
func tells(e *wire.Event, method string) bool {
	return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Method == method
}

// asks reports whether an event is a request of the server.
func asks(e *wire.Event, method string) bool {
	return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.Request &&
		e.Msg.Method == method && e.Msg.ID.Usable()
}

// refusedWith reports whether a request got an error with one of the codes.
func refusedWith(x *client.Exchange, codes ...int64) bool {
	return x.Error() != nil && slices.Contains(codes, x.Error().Code)
}

// timedOut reports whether a wait has timed out.
func timedOut(err error) bool {
	var timeout *client.TimeoutError
	return errors.As(err, &timeout)
}

// worked reports whether a call of a tool succeeded.
func worked(x *client.Exchange) bool { return x.Result() != nil && x.Result()["isError"] != true }

// working makes a call whose requests are answered in the ordinary way and
// ends the body if the tool does not ask or fails nonetheless.
func working(t *check.T, call check.Call, method string, reply func(*wire.Event) map[string]any) *client.Exchange {
	x, asked := converse(t, call, method, reply)
	if len(asked) == 0 {
		t.Inconclusive("the tool %q did not send %s", call.Tool, method)
	}
	t.Assume(x).To(Succeed(), "even when the tool %q gets an ordinary answer", call.Tool)
	return x
}

// always is a reply that is the same each time.
func always(outcome map[string]any) func(*wire.Event) map[string]any {
	return func(*wire.Event) map[string]any { return outcome }
}

// texts returns the text of a tool's result.
func texts(x *client.Exchange) string {
	var b strings.Builder
	blocks, _ := x.Result()["content"].([]any)
	for _, block := range blocks {
		if text, ok := at(block, "text").(string); ok {
			b.WriteString(text)
			b.WriteByte('\n')
		}
	}
	if structured := x.Result()["structuredContent"]; structured != nil {
		b.Write(client.Marshal(structured))
	}
	return b.String()
}

var complains = regexp.MustCompile(`(?i)invalid|not valid|error|fail|must|expected|wrong|unsupported|unknown`)

// used reports whether the result of a tool shows that it worked with a text.
func used(x *client.Exchange, marker string) bool {
	return worked(x) && strings.Contains(texts(x), marker) && !complains.MatchString(texts(x))
}
