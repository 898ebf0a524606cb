package client

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/internal/ending"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
)

// A client continues if it does the same work as at the ordinary server, in any order, and ends no worse. Many
// scenarios judge by that alone, because a client shows in no other way that it copes with something legal.

// continuation compares a run with another one.
type continuation struct {
	ok      bool
	decided bool   // the two can be compared
	how     string // where the client stopped or, if that is not decided, what else may be the cause
	worked  bool   // all of the work was done
	undone  []deed // what is missing of it
}

// Continued reports whether the client continues and, if it does not, where it stopped. If nobody can tell, decided
// is false, and how has the reason or is empty.
func (t *T) Continued() (ok, decided bool, how string) {
	c := t.continuation()
	return c.ok, c.decided, c.how
}

func (t *T) continuation() continuation {
	if t.continued == nil {
		c := t.comparedWith(t.Baseline)
		t.continued = &c
	}
	return *t.continued
}

// outstays reports whether the client had to be stopped here, and not in another run.
func (t *T) outstays(base *T) bool { return base != nil && t.Ending.Late && !base.Ending.Late }

var outstayed = TimedOut("the client was still waiting when mcpconform stopped it; with an ordinary server it ends " +
	"by itself")

// comparedWith compares the run with another one. The server has to offer similar things in both.
func (t *T) comparedWith(base *T) continuation {
	if base == nil || base.Handshake() == nil || base.Ending.Skipped != "" || t.Ending.Skipped != "" {
		return continuation{}
	}
	stopped := func(how string) continuation { return continuation{decided: true, how: how} }
	switch mine := t.Ending; {
	case len(t.Conversations) == 0:
		return continuation{} // the server cannot have kept it from connecting
	case t.outstays(base) && mine.Busy:
		return continuation{} // the machine or the client is slow
	case mine.Attended && len(t.Requests()) == 0:
		return continuation{}
	case t.Handshake() == nil:
		return stopped("the client broke off the handshake")
	case len(base.Requests()) > 0 && len(t.Requests()) == 0:
		return stopped(NeedsRequest + "; with an ordinary server it does")
	case t.outstays(base):
		return stopped(outstayed)
	}
	missing, changed := t.missing(base)
	undone := slices.Concat(missing, changed)
	c := continuation{decided: true, undone: undone, worked: len(undone) == 0}
	switch mine, theirs := t.Ending, base.Ending; {
	case mine.Exit != nil && theirs.Exit != nil && worseExit(*mine.Exit, *theirs.Exit):
		c.how = "the client " + mine.Exit.String() + ", while it " + theirs.Exit.String() + " with an ordinary server"
	case mine.Exit == nil || c.worked:
		c.ok = true
	default:
		why := "; but here the server lists other things"
		if len(missing) > 0 {
			if c.undone, why = missing, t.otherCause(base); why == "" {
				c.undone, why = t.steady(missing)
			}
			// If this scenario was run before, the client must have left out the same deeds then.
			if why == "" && t.before != nil && !slices.Equal(t.before.continuation().undone, c.undone) {
				why = varies
			}
		}
		c.decided = why == ""
		c.how = "the client ended without " + some(c.undone) + ", which it sends at an ordinary server" + why
	}
	return c
}

// LeftOut names a few of the requests that the client sends at the ordinary server and did not send here. It returns ""
// if there are none.
func (t *T) LeftOut() string { return some(t.continuation().undone) }

// deed is a request by which a client does its work, or a notification: its method and what it is about.
type deed struct {
	method   string
	list     string // in which the item stands, or ""
	item     string
	argument string // that is completed
}

func (d deed) String() string {
	if d.item == "" {
		return d.method
	}
	return d.method + " of " + wire.Quote(d.item, 60)
}

// some names a few of the deeds.
func some(deeds []deed) string {
	const most = 3
	var named []string
	for _, d := range deeds[:min(most, len(deeds))] {
		named = append(named, d.String())
	}
	if more := len(deeds) - most; more > 0 {
		return fmt.Sprintf("%s and %d more requests", strings.Join(named, ", "), more)
	}
	return strings.Join(named, ", ")
}

// deedOf returns what a message of the client does.
func deedOf(m *wire.Message) deed {
	text := func(path ...string) string {
		v, _ := wire.At(m.Params, path...).(string)
		return v
	}
	switch m.Method {
	case "tools/call":
		return deed{method: m.Method, list: "tools/list", item: text("name")}
	case "prompts/get":
		return deed{method: m.Method, list: "prompts/list", item: text("name")}
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		return deed{method: m.Method, list: "resources/list", item: text("uri")}
	case "completion/complete":
		if uri := text("ref", "uri"); uri != "" {
			return deed{m.Method, "resources/templates/list", uri, text("argument", "name")}
		}
		return deed{m.Method, "prompts/list", text("ref", "name"), text("argument", "name")}
	}
	return deed{method: m.Method}
}

// deeds returns the client's work, each deed once: how often it looks for news or tries again depends on time.
func (t *T) deeds() []deed {
	var all []deed
	for _, c := range t.Conversations {
		if !c.Handshaken() {
			continue
		}
		for _, e := range c.Messages {
			own := e.From == wire.Client && e.Seq > c.Init.Response.Seq
			asks := e.Msg.Kind == wire.Request && IsOperation(e.Msg.Method)
			tells := e.Msg.Kind == wire.Notification && e.Msg.Method == rootsChanged
			if d := deedOf(e.Msg); own && (asks || tells) && !slices.Contains(all, d) {
				all = append(all, d)
			}
		}
	}
	return all
}

// rootsChanged is the method with which a client tells that its roots have changed.
const rootsChanged = "notifications/roots/list_changed"

// listedBy returns the items of a list that the client has received, by their URI template, URI or name.
func (t *T) listedBy(method string) map[string]any {
	all := make(map[string]any)
	for _, x := range t.Requests() {
		if x.Method() != method {
			continue
		}
		items, _ := x.Result()[Listed[method]].([]any)
		for _, item := range items {
			for _, key := range []string{"uriTemplate", "uri", "name"} {
				if id, ok := wire.At(item, key).(string); ok {
					all[id] = item
					break
				}
			}
		}
	}
	return all
}

const varies = "; but it does not do the same at each launch"

// missing returns the deeds of another run that are missing in this one. changed holds the missing deeds whose items
// are listed in another way here. A client that does as much of a kind as there, or with each item, has only chosen
// other items.
func (t *T) missing(base *T) (missing, changed []deed) {
	c, mine, theirs := t.Handshake(), t.deeds(), base.deeds()
	number := func(deeds []deed, method string) (n int) {
		for _, d := range deeds {
			if d.method == method {
				n++
			}
		}
		return n
	}
	for _, d := range theirs {
		here, there := t.listedBy(d.list), base.listedBy(d.list)
		most := number(theirs, d.method)
		if len(there) > 0 {
			most = min(most, len(here))
		}
		needed := wire.Capability(d.method)
		served := d.method == rootsChanged || needed == "" || c.Declared(wire.Server, needed)
		switch done := number(mine, d.method); {
		case slices.Contains(mine, d), !served:
		case d.list == "", done < most && reflect.DeepEqual(here[d.item], there[d.item]):
			missing = append(missing, d)
		case done < most && d.argument == "":
			changed = append(changed, d)
		}
	}
	return missing, changed
}

// steady returns the missing deeds that a second run with the ordinary server confirms. The client has done them at
// each launch there. If this is itself the run with the ordinary server, the client has done them at neither launch.
func (t *T) steady(missing []deed) (confirmed []deed, why string) {
	var again *T
	if t.second != nil {
		again = t.second()
	}
	if again == nil {
		return missing,
			"; mcpconform launched it with this only once, so the client may do something else at each launch"
	}
	done := again.deeds()
	confirmed = slices.DeleteFunc(slices.Clone(missing), func(d deed) bool {
		return slices.Contains(done, d) == (t.Scenario.Name == Baseline)
	})
	if len(confirmed) == 0 {
		return missing, varies
	}
	return confirmed, ""
}

// otherCause returns a clause with another possible reason why the client has done less than in another run, or "".
func (t *T) otherCause(base *T) string {
	note, more := t.note(base), len(t.Requests())-len(base.Requests())
	switch x := t.stoppedAt(); {
	case t.Scenario.Official != base.Scenario.Official, t.Scenario.UserActions != base.Scenario.UserActions:
		return "; but in this scenario it was told to do something else"
	case more == 0, more > 0 && t.Scenario.Name != Baseline: // the ordinary server has shorter pages
		return "; but it has sent as many requests as there, and it may stop after that many"
	case note != "":
		return "; but it says: " + wire.Quote(note, 200)
	case x != nil && !slices.ContainsFunc(base.Requests(), func(y *judge.Exchange) bool {
		return deedOf(x.Request.Msg) == deedOf(y.Request.Msg) && unserved(base, y)
	}):
		return "; but its " + deedOf(x.Request.Msg).String() + " failed before, and it may stop after a failure"
	case t.paused() > quietTime:
		return "; but it had waited for an answer that did not come, and it may have a time limit of its own"
	}
	return ""
}

// note returns the last line of the client's output if the output of another run has no similar line. It may say why
// the client has ended.
func (t *T) note(base *T) string {
	lines := func(end Ending) []string {
		all := strings.FieldsFunc(end.Output, func(r rune) bool { return r == '\n' || r == '\r' })
		return slices.DeleteFunc(all, func(line string) bool { return strings.TrimSpace(line) == "" })
	}
	mine := lines(t.Ending)
	if len(mine) == 0 {
		return ""
	}
	last := mine[len(mine)-1]
	like := func(line string) bool {
		return digits.ReplaceAllString(line, "0") == digits.ReplaceAllString(last, "0")
	}
	if slices.ContainsFunc(lines(base.Ending), like) {
		return ""
	}
	return last
}

var digits = regexp.MustCompile("[0-9]+")

// unserved reports whether a request of the client failed or was given up.
func unserved(t *T, x *judge.Exchange) bool {
	carrier := t.ConversationOf(x).Carrier(x.Request)
	refused := carrier != nil && carrier.Head != nil && carrier.Head.HTTP.Status >= http.StatusBadRequest
	return x.Error() != nil || x.Cancelled != nil || x.Result()["isError"] == true || refused
}

// stoppedAt returns the last failed request of the client. It returns nil if the client has sent further requests
// after any failed one.
func (t *T) stoppedAt() *judge.Exchange {
	var last *judge.Exchange
	for _, x := range t.Requests() {
		if !unserved(t, x) {
			continue
		}
		end := cmp.Or(x.Cancelled, x.Response, x.Request)
		if t.RequestsAfter(t.ConversationOf(x), end) {
			return nil
		}
		last = x
	}
	return last
}

// paused returns the time between the last message of the server and the end of the session by the client.
func (t *T) paused() time.Duration {
	c := t.Last()
	left := slices.IndexFunc(c.Events, func(e *wire.Event) bool {
		return HangsUp(e) || e.Kind == wire.KindHTTPRequest && e.HTTP.Method == http.MethodDelete
	})
	if left < 0 {
		return 0
	}
	for _, e := range slices.Backward(c.Events[:left]) {
		if e.From == wire.Server {
			return c.Events[left].At - e.At
		}
	}
	return 0
}

// TimedOut adds advice to a finding on a client that was ended at the time limit: how to give it longer.
func TimedOut(what string) string { return what + "; " + ending.Raise(ending.Timeout) }

// worseExit reports whether only the first exit is a failure, or only the first was caused by a signal. All exit
// codes of failures are equally bad.
func worseExit(mine, theirs wire.Exit) bool {
	return mine != wire.Exit{} && theirs == wire.Exit{} || mine.Signal != "" && theirs.Signal == ""
}

// Died says how the client crashed: it ended as no program ends by intent. It returns "" if the client did not crash,
// or crashes with an ordinary server as well.
func (t *T) Died() string {
	if t.Baseline == nil || t.Baseline.Ending.Exit == nil || t.Baseline.Ending.Crash() != "" {
		return ""
	}
	return t.Ending.Crash()
}

// Lost says how the client ended or hung if it did not answer a request of the script. It is "" if the client
// answered, or if nothing follows from the silence.
func (t *T) Lost(x *judge.Exchange) string {
	switch {
	case x == nil || x.Response != nil:
		return ""
	case t.SilentTo(x):
		return "the client does not answer"
	case t.Died() != "":
		return "the client " + t.Died()
	case t.BrokeOff(): // although it does not end there with an ordinary server
		return "the client ended the session"
	}
	return ""
}

// JudgeContinued judges requirements that a client satisfies by continuing as with an ordinary server.
func (t *T) JudgeContinued(after string, ids ...string) {
	ok, decided, how := t.Continued()
	switch {
	case !decided && how != "":
		t.Inconclusive(after+": "+how, ids...)
	case !decided:
	case ok:
		t.Exercised(ids...)
	default:
		for _, id := range ids {
			t.Violation(id, after+": "+how, LastEvents(t.Last(), 4)...)
		}
	}
}

// Blame says that the client ended, or hangs, after a message of the ordinary server, while it goes on with this one,
// which sends something else instead; "" if it does not come further here.
func (t *T) Blame(instead string) string {
	base := t.Baseline
	if base == nil {
		return ""
	}
	if c := base.comparedWith(t); c.ok || !c.decided {
		return ""
	}
	after := " after this message of an ordinary server, but not if the server sends " + instead
	if exit := base.Ending.Exit; exit != nil {
		return "the client " + exit.String() + after
	}
	return TimedOut("the client hangs" + after)
}

// JudgeTolerated judges what a client must tolerate. The ordinary server sends it, and this scenario's server does
// not. If the client gets further here than there, it did not tolerate the last such message there. It is not blamed
// if it had coped before with another message of the same requirement.
func (t *T) JudgeTolerated(instead string, ids ...string) {
	message := t.Blame(instead)
	if message == "" {
		return
	}
	for _, c := range t.Baseline.Conversations {
		tolerances := c.Tolerances()
		for _, fatal := range tolerances {
			coped := func(other judge.Tolerance) bool {
				return other.Requirement == fatal.Requirement && c.Survived(other.Message)
			}
			if slices.Contains(ids, fatal.Requirement) && !c.Survived(fatal.Message) &&
				!slices.ContainsFunc(tolerances, coped) {
				t.Violation(fatal.Requirement, message, fatal.Message)
			}
		}
	}
}

// BrokeOff reports whether the client ended earlier than with an ordinary server.
func (t *T) BrokeOff() bool {
	ok, decided, _ := t.Continued()
	return decided && !ok && t.Ending.Exit != nil
}

// Interrupted reports whether the client was stopped although it did not just wait. Its omissions are then not
// judged.
func (t *T) Interrupted() bool { return t.Ending.Attended || t.Ending.Late && t.Ending.Busy }

// Tolerated passes requirements that a client satisfies by continuing after something legal. The proof is a message
// behind that, of the client or for it, and did says what the client had done by then. If the client then stopped
// short of its work, the legal thing may be the reason, and the scenario passes the requirements for nothing else
// either. A request that is itself to be accepted needs no more than its result.
func (t *T) Tolerated(proof *wire.Event, did string, ids ...string) {
	if ok, _, how := t.Continued(); ok || how == "" || t.HeardSince(proof) {
		t.Exercised(ids...)
		return
	}
	for _, id := range ids {
		t.Recorder().Record.At(id, wire.Client).Exercised = 0
	}
	t.Inconclusive("the client did not go on when it had "+did, ids...)
}

// Listed names the member of the result of each list operation.
var Listed = map[string]string{
	"tools/list": "tools", "resources/list": "resources",
	"resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
}
