// Package match holds what checks and scenarios state their expectations with: the
// expectation itself, and Gomega matchers over exchanges, HTTP responses, messages and
// JSON. It is meant to be imported with a dot, so that an expectation reads as a sentence.
//
// The failure message of a matcher is a finding that users read. It is one sentence with the observation and then the
// expectation; a circumstance may come first.
//
// An error of a matcher means that it got a value that it cannot match. That is a mistake of the tester, and not of
// the target.
package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// answer is what matchers read of whatever answered a request.
type answer struct {
	request  string // its method, or what else to call it
	status   int    // of HTTP, 0 without
	response *wire.Event
	overHTTP bool // the answer is that to a raw HTTP request
	events   []*wire.Event
}

// answerOf reads an exchange, a raw HTTP response, or the event that brought its head
// or a response.
func answerOf(actual any) (*answer, error) {
	switch x := actual.(type) {
	case *named:
		a, err := answerOf(x.actual)
		if err == nil {
			a.request = x.request
		}
		return a, err
	case *client.Exchange:
		a := &answer{request: x.Request.Msg.Method, response: x.Response, events: x.Events()}
		if x.Head != nil {
			a.status = x.Head.HTTP.Status
		}
		return a, nil
	case *transport.Response:
		a := &answer{request: "the request", status: x.Status, overHTTP: true}
		if x.Head != nil {
			a.events = append(a.events, x.Head)
		}
		a.events = append(a.events, x.Messages...)
		if a.response = ResultIn(x); a.response == nil {
			a.response = ErrorIn(x)
		}
		return a, nil
	case *wire.Event:
		switch {
		case x == nil:
		case x.Kind == wire.KindHTTPResponse:
			return &answer{request: "the request", status: x.HTTP.Status, overHTTP: true, events: []*wire.Event{x}}, nil
		case x.Kind == wire.KindMessage:
			return &answer{request: "the request", response: x, events: []*wire.Event{x}}, nil
		}
	}
	return nil, fmt.Errorf("a %T is not what answers a request", actual)
}

// named is the answer to a request with a name other than its method.
type named struct {
	request string
	actual  any
}

// Named returns what answered a request, for a finding that calls the request something else
// than its method: "text that is not JSON".
func Named(request string, actual any) any { return &named{request, actual} }

// ResultIn returns the result with which a response of HTTP answers a request, or nil.
func ResultIn(r *transport.Response) *wire.Event {
	for _, e := range r.Messages {
		if e.Msg.Kind == wire.Result && r.Status/100 == 2 {
			return e
		}
	}
	return nil
}

// ErrorIn returns the JSON-RPC error that a response of HTTP holds, or nil.
func ErrorIn(r *transport.Response) *wire.Event {
	for _, e := range r.Messages {
		if e.Msg.Kind == wire.ErrorResponse {
			return e
		}
	}
	return nil
}

// Describe says in a clause what answered a request: that of an exchange, or one
// that was sent as raw HTTP.
func Describe(actual any) string {
	a, err := answerOf(actual)
	if err != nil {
		return err.Error()
	}
	return a.String()
}

func (a *answer) String() string {
	if a.overHTTP {
		text := fmt.Sprintf("HTTP status %d", a.status)
		switch {
		case a.result() != nil:
			text += " and a result"
		case a.error() != nil:
			text += " and error " + a.code()
		}
		return text
	}
	switch {
	case a.response == nil && a.status != 0:
		return fmt.Sprintf("HTTP status %d and no JSON-RPC response on any stream", a.status)
	case a.response == nil:
		return "no answer"
	case a.error() != nil:
		return "error " + a.code() + ": " + wire.Quote(strings.Join(strings.Fields(a.error().Message), " "),
			120) // on one line
	case a.response.Msg.Kind != wire.Result:
		return "a message that is not a response"
	}
	switch result := a.result(); {
	case result == nil:
		return "a result that is not an object: " + wire.Show(a.response.Msg.Result)
	case result["isError"] == true:
		return "a result with isError"
	}
	return "a result"
}

// malformed reports whether there is a result that is not an object. Such a result is of no kind.
func (a *answer) malformed() bool {
	return a.response != nil && a.response.Msg.Kind == wire.Result && a.result() == nil
}

// result returns the result object, or nil.
func (a *answer) result() map[string]any {
	if a.response == nil {
		return nil
	}
	object, _ := a.response.Msg.Result.(map[string]any)
	return object
}

// error returns the JSON-RPC error, or nil.
func (a *answer) error() *wire.Error {
	if a.response == nil || a.response.Msg.Kind != wire.ErrorResponse {
		return nil
	}
	return a.response.Msg.Error
}

// code returns the code of the error as it was sent.
func (a *answer) code() string { return wire.Show(wire.At(a.response.Msg.Value(), "error", "code")) }

// Evidence returns the events that show a value: those of what answered a request,
// or an event itself.
func Evidence(actual any) []*wire.Event {
	if e, ok := actual.(*wire.Event); ok && e != nil {
		return []*wire.Event{e}
	}
	if a, err := answerOf(actual); err == nil {
		return a.events
	}
	return nil
}

// answered matches what answered a request.
type answered struct {
	fits  func(*answer) bool
	want  string // what it was to be answered with
	other string // what it was to be answered with where it must not fit
}

// Match implements types.GomegaMatcher.
func (m *answered) Match(actual any) (bool, error) {
	a, err := answerOf(actual)
	if err != nil {
		return false, err
	}
	return m.fits(a), nil
}

// FailureMessage implements types.GomegaMatcher.
func (m *answered) FailureMessage(actual any) string {
	a, err := answerOf(actual)
	switch {
	case err != nil:
		return err.Error()
	case a.response == nil && a.status == 0:
		return fmt.Sprintf("%s was not answered; it was to be answered with %s", a.request, m.want)
	case a.malformed():
		return fmt.Sprintf("%s was answered with %s; an object was expected", a.request, a)
	}
	return fmt.Sprintf("%s was answered with %s, not with %s", a.request, a, m.want)
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *answered) NegatedFailureMessage(actual any) string {
	a, err := answerOf(actual)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s was answered with %s; %s was expected", a.request, a, m.other)
}

// BeAnswered matches a request that got a JSON-RPC response, whatever it holds.
func BeAnswered() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.response != nil }, "a JSON-RPC response", "no JSON-RPC response"}
}

// HaveResult matches a request that got a result. Whether a tool failed, as its
// result tells, is another matter.
func HaveResult() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.result() != nil }, "a result", "an error"}
}

// Succeed matches the call of a tool, or another request, that got a result
// without isError.
func Succeed() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.result() != nil && a.result()["isError"] != true },
		"a plain result", "an error or a result with isError"}
}

// HaveError matches a request that got a JSON-RPC error.
func HaveError() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.error() != nil }, "a JSON-RPC error", "a result"}
}

// HaveErrorCode matches a request that got a JSON-RPC error with one of the codes.
func HaveErrorCode(codes ...int64) types.GomegaMatcher {
	return &answered{func(a *answer) bool {
		e := a.error()
		return e != nil && e.HasCode && slices.Contains(codes, e.Code)
	}, "error " + alternatives(codes), "a result or another error"}
}

// HaveHTTPStatus matches what HTTP answered with one of the statuses.
func HaveHTTPStatus(statuses ...int) types.GomegaMatcher {
	return &answered{func(a *answer) bool { return slices.Contains(statuses, a.status) }, alternatives(statuses),
		"another status"}
}

// BeAccepted matches what HTTP answered with a status of success.
func BeAccepted() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.status/100 == 2 }, "success", "an error status"}
}

// BeTurnedDown matches what HTTP answered with the status of an error.
func BeTurnedDown() types.GomegaMatcher {
	return &answered{func(a *answer) bool { return a.status >= 400 }, "an error status", "a status below 400"}
}

// alternatives joins what may stand in a place: 1, 2 or 3.
func alternatives[E any](all []E) string {
	var b strings.Builder
	for i, v := range all {
		switch {
		case i > 0 && i == len(all)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}
