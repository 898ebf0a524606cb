package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/internal/ledger"
)

// maxCulprits bounds how many messages are named when it cannot be told which one a
// target fell over.
const maxCulprits = 10

// Blame returns findings on the message that a target fell over, if all connections share the target and it cannot be
// restarted. Nothing can be tried again then, and the trace has to tell. If just one message can be the cause, what
// its check found stands. Otherwise the finding only warns, and names all that can be.
func (e *Engine) Blame(futures []*Future) ledger.Record {
	rec := ledger.NewRecorder(e.Revision, downSource)
	cause := e.Dead()
	if unresponsive := (*UnresponsiveError)(nil); cause == nil && errors.As(e.GivenUp(), &unresponsive) {
		cause = unresponsive
		if unresponsive.Worn != nil {
			rec.Fail(downRequirement, wire.Server, cause.Error(), unresponsive.Worn)
			return rec.Record
		}
	}
	if cause == nil || errors.Is(cause, wire.ErrFlood) ||
		e.processPerSession() { // what the limits end is not the server's doing
		return rec.Record
	}
	suspects := culprits(e.Trace.Logs())
	if len(suspects) == 0 {
		return rec.Record
	}
	last := suspects[len(suspects)-1]
	after := "; the server answered nothing any more after this: " + cause.Error()
	if len(suspects) == 1 {
		for _, f := range futures {
			if found, ok := f.found(last); ok {
				rec.Source = f.Check.Name
				rec.Fail(found.requirement, wire.Server, found.Message+after, found.Evidence...)
				return rec.Record
			}
		}
		if last.Msg.Kind == wire.Request {
			rec.Fail(downRequirement, wire.Server, "this request got no response"+after, last)
			return rec.Record
		}
	}
	shown := suspects[max(0, len(suspects)-maxCulprits):]
	message := "after this message"
	if len(suspects) > 1 {
		message = fmt.Sprintf("after one of %d messages that it had not answered yet, of which the last %d are shown,",
			len(suspects), len(shown))
	}
	rec.Warn(downRequirement, wire.Server, message+" the server answered nothing any more: "+cause.Error()+
		"; with --start mcpconform can start it again and find out which one it is", shown...)
	return rec.Record
}

// The broken requirement if no check is known to have sent the fatal message.
const (
	downRequirement = ids.BaseResponsePresent
	downSource      = "base/down"
)

// broughtDown records that a target went down while the check was run alone: it was
// probed before, and nobody else sent anything.
func (a *attempt) broughtDown(revision *schema.Revision, down error) {
	found := a.outcome.Record.Findings()
	if a.outcome.Verdict != Failed || len(found) == 0 {
		return
	}
	r := ledger.Recorder{Revision: revision, Record: a.outcome.Record, Source: a.outcome.Check.Name}
	r.Fail(downRequirement, wire.Server,
		"the server went down after this, although nothing else was sent at the time: "+down.Error(),
		found[0].Evidence...)
}

// breach is a finding with the requirement that it breaks.
type breach struct {
	requirement string
	ledger.Finding
}

// found returns the finding of an abandoned check that shows an event.
func (f *Future) found(e *wire.Event) (breach, bool) {
	<-f.done
	for _, k := range f.abandoned.Keys() {
		for _, found := range f.abandoned[k].Findings {
			if slices.Contains(found.Evidence, e) {
				return breach{k.Requirement, found}, true
			}
		}
	}
	return breach{}, false
}

// outgoing is a message that a trace shows on its way to the target.
type outgoing struct {
	event    *wire.Event
	answered bool
	broke    *wire.Event // the head of a response that tells of a broken server
	lost     bool        // nobody listened where it was sent
}

// broken reports whether an HTTP status says that the server is broken, or the server behind a gateway. A refusal to
// serve (503) may have other reasons.
func broken(head *wire.Event) bool {
	return head != nil && head.Kind == wire.KindHTTPResponse && head.HTTP.Status >= 500 &&
		head.HTTP.Status != http.StatusServiceUnavailable
}

// sentIn returns the messages of a conversation over HTTP.
func sentIn(c *wire.Conversation) (sent []outgoing) {
	for _, x := range c.HTTP {
		if x.Method() != http.MethodPost {
			continue
		}
		for _, e := range x.Sent {
			m := outgoing{event: e, answered: x.Head != nil, lost: x.End != nil && transport.Gone(x.End)}
			if asked := c.Of(e); asked != nil && asked.Request == e && x.OK() {
				m.answered = asked.Response != nil
			}
			if broken(x.Head) {
				m.broke = x.Head
			}
			sent = append(sent, m)
		}
	}
	return sent
}

// culprits returns the messages that may have brought down a server over HTTP by the end of a trace.
func culprits(logs []*wire.Log) []*wire.Event {
	var sent []outgoing
	var heard time.Duration // when the server last said anything
	var silences []*wire.Event
	for _, l := range logs {
		if l.Transport == transport.NameOAuth {
			continue
		}
		c := l.Conversation()
		sent = append(sent, sentIn(c)...)
		for _, e := range c.Events {
			switch {
			case e.From != wire.Server:
			case e.Kind == wire.KindTimeout, e.Kind == wire.KindStreamEnd && e.Note != "", broken(e):
				silences = append(silences, e)
			case e.Kind == wire.KindHTTPResponse, e.Kind == wire.KindMessage && !broken(c.Head(e)):
				heard = max(heard, e.At)
			}
		}
	}
	slices.SortStableFunc(sent, func(a, b outgoing) int { return int(a.event.At - b.event.At) })
	for i, m := range sent {
		if m.broke != nil {
			sent[i].answered = m.broke.At < heard // it went on after this
		}
	}
	silences = slices.DeleteFunc(silences, func(e *wire.Event) bool { return e.At < heard })
	if len(silences) == 0 {
		return nil
	}
	down := slices.MinFunc(silences, func(a, b *wire.Event) int { return int(a.At - b.At) })

	harmless := make(map[string]bool)
	for _, m := range sent {
		if m.answered {
			harmless[alike(m.event)] = true
		}
	}
	var suspects []*wire.Event
	for _, m := range sent {
		later := m.event.At > down.At || m.event.Conn == down.Conn && m.event.Seq > down.Seq
		if m.answered || m.lost || later || harmless[alike(m.event)] {
			continue
		}
		suspects = append(suspects, m.event)
		if (down.Kind == wire.KindTimeout || broken(down)) && m.event.At > heard {
			break // it was so from then on: what followed only found it so
		}
	}
	if len(suspects) > 0 {
		return suspects
	}
	// It answered the last message, and went down all the same.
	for _, m := range slices.Backward(sent) {
		if m.answered && m.event.At <= heard && len(m.event.Deliberate) > 0 {
			return []*wire.Event{m.event}
		}
	}
	return nil
}

// alike returns a text that is equal for messages which ask for the same.
func alike(e *wire.Event) string {
	if e.Msg == nil || e.Msg.Kind != wire.Request || len(e.Msg.Issues) > 0 {
		return string(e.Raw)
	}
	params, _ := e.Msg.Params.(map[string]any)
	params = maps.Clone(params)
	for _, free := range []string{"_meta", "capabilities", "clientInfo"} {
		delete(params, free)
	}
	if len(params) == 0 {
		return e.Msg.Method
	}
	text, err := json.Marshal(params)
	if err != nil {
		return string(e.Raw)
	}
	return e.Msg.Method + " " + string(text)
}
