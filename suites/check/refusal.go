package check

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// refusal is how a request was refused.
type refusal struct {
	status  int // of HTTP; 0 for a JSON-RPC error
	code    int64
	message string // without digits, which may count or name the request
}

func (r refusal) String() string {
	switch {
	case r.status != 0:
		return fmt.Sprintf("HTTP status %d", r.status)
	case r.code == 0:
		return "isError: " + wire.Quote(r.message, 120)
	}
	return fmt.Sprintf("error %d: %s", r.code, wire.Quote(r.message, 120))
}

// refusing returns how an event refuses a request, if it does.
func refusing(e *wire.Event) (refusal, bool) {
	switch {
	case e == nil:
	case e.Kind == wire.KindHTTPResponse && e.HTTP.Status >= 400:
		return refusal{status: e.HTTP.Status}, true
	case e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.ErrorResponse && e.Msg.Error != nil:
		return refusal{code: e.Msg.Error.Code, message: withoutDigits(e.Msg.Error.Message)}, true
	case e.Kind == wire.KindMessage && e.From == wire.Server && wire.At(e.Msg.Result, "isError") == true:
		// The example of a failure that the result reports is a limit (server/tools#error-handling).
		var text string
		if content, _ := wire.At(e.Msg.Result, "content").([]any); len(content) > 0 {
			text, _ = wire.At(content[0], "text").(string)
		}
		if how := (refusal{message: withoutDigits(text)}); how.temporary() {
			return how, true
		}
	}
	return refusal{}, false
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// temporary reports whether a refusal speaks of too many requests, in the usual words of servers. That alone excuses
// nothing; it decides for how long the refusal is looked into.
func (r refusal) temporary() bool { return tooMany.MatchString(r.message) }

var tooMany = regexp.MustCompile(
	`(?i)\brate|quota|throttl|\btoo (many|fast|frequent)|limit(ed)?\b|\bbusy\b` +
		`|\b(try|retry|come) (again|later|after)|slow down`)

// refused is a request of a check and how it was refused.
type refused struct {
	request *wire.Event
	how     refusal
	// concurrent says that another request of the check was under way at the time.
	concurrent bool
	// undeclared is the capability that the request needs, if the server declares it, but not in the session of the
	// request.
	undeclared string
}

// refusals returns the refused requests among the evidence of the findings.
func (r *reading) refusals() []refused {
	shown := make(map[*wire.Event]bool)
	for _, f := range r.outcome.Record.Findings() {
		for _, e := range f.Evidence {
			shown[e] = true
		}
	}
	var all []refused
	for _, v := range r.sessions {
		for _, e := range v.log.Events() {
			how, ok := refusing(e)
			if !ok {
				continue
			}
			request := posted(v.log, e)
			if e.Kind == wire.KindMessage {
				request = v.log.RequestOf(e)
			}
			if request != nil && (shown[request] || shown[e]) {
				all = append(all, refused{request, how, r.busy(request, e),
					r.target.undeclared(v.log, v.init, request.Msg.Method)})
			}
		}
	}
	return all
}

// undeclared returns the capability that a request needs, if the server declares it elsewhere, but not in this
// session. Its offers may depend on the capabilities of the client and on the version
// (basic/lifecycle#capability-negotiation).
func (t *Target) undeclared(l *wire.Log, init *client.Exchange, method string) string {
	capability := wire.Capability(method)
	if capability == "" || !t.Declares(capability) {
		return ""
	}
	if init == nil {
		init = l.Conversation().Init // that of the check itself
	}
	if init == nil || init.Result() == nil {
		return ""
	}
	if wire.Declares(init.Capabilities(), capability) {
		return ""
	}
	return capability
}

// declaredElsewhere says of a capability that it was declared in other sessions alone.
func declaredElsewhere(feature string) string {
	return fmt.Sprintf("the server declares %s to other clients, but not in the session of this check", feature)
}

// posted returns the request that travelled in the HTTP exchange of an event, or nil.
func posted(l *wire.Log, e *wire.Event) *wire.Event {
	x := l.Carrier(e)
	if x == nil || x.Message() == nil || x.Message().Msg.Kind != wire.Request {
		return nil
	}
	return x.Message()
}

// busy reports whether another request of the check was under way at some time
// between a request and its answer. Within a log their order shows that, across
// two logs their times.
func (r *reading) busy(request, answer *wire.Event) bool {
	before := func(e, mark *wire.Event) bool {
		if e.Conn == mark.Conn {
			return e.Seq < mark.Seq
		}
		return e.At < mark.At
	}
	return slices.ContainsFunc(r.sessions, func(v visit) bool {
		c := v.log.Conversation()
		return slices.ContainsFunc(c.Exchanges, func(x *wire.Exchange) bool {
			end := ended(c, x)
			return x.From() == wire.Client && x.Request != request && !before(answer, x.Request) &&
				(end == nil || !before(end, request))
		})
	})
}

// ended returns what ended a request: its response or, where there is none, the end of
// the HTTP exchange that could have held it. A stream may be resumed, and has no such end.
func ended(c *wire.Conversation, x *wire.Exchange) *wire.Event {
	if x.Response != nil {
		return x.Response
	}
	carrier := c.Carrier(x.Request)
	if carrier == nil || carrier.End == nil || carrier.End.From != wire.Server ||
		carrier.OK() && carrier.MediaType() == "text/event-stream" {
		return nil
	}
	return carrier.End
}

// refusesAll returns how the server refuses ping and every declared list alike:
// such a server passes no check. It returns nil if the refusals differ, or if they
// are due to the client or to the moment.
func (t *Target) refusesAll(ping *client.Exchange) *refusal {
	all, ok := howRefused(ping)
	passing := []int{http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable}
	if !ok || len(t.Lists) == 0 || ping.Head != nil && slices.Contains(passing, ping.Head.HTTP.Status) {
		return nil
	}
	for _, l := range t.Lists {
		if len(l.Pages) == 0 {
			return nil
		}
		if this, ok := howRefused(l.Pages[0]); !ok || this != all {
			return nil
		}
	}
	return &all
}

// howRefused returns the refusal in an answer. The text of the answer precedes its HTTP status.
func howRefused(x *client.Exchange) (refusal, bool) {
	if x.Response != nil {
		return refusing(x.Response)
	}
	return refusing(x.Head)
}

// refusedLikeAll reports whether the findings only show the refusal with which the server answers everything. It does
// not apply to a check about that refusal.
func (r *reading) refusedLikeAll(refusals []refused) bool {
	all := r.target.refusal
	if all == nil || r.outcome.Check.Needs.Served {
		return false
	}
	is := func(e *wire.Event) bool {
		how, ok := refusing(e)
		return ok && how == *all
	}
	for _, f := range r.outcome.Record.Findings() {
		if slices.ContainsFunc(f.Evidence, is) {
			return true
		}
	}
	return slices.ContainsFunc(refusals, func(one refused) bool { return one.how == *all })
}
