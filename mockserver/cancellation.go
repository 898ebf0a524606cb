package mockserver

import (
	"encoding/json"
	"strings"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
)

const cancelled = "notifications/cancelled"

// cancelling sends notifications/cancelled after the handshake.
func cancelling(params object) apply {
	return ready(func(s *server.Session) { s.Notify(cancelled, copied(params)) })
}

// answeringCancelled answers cancellations that fit with an error.
func answeringCancelled(fits func(id any) bool) apply {
	return receiving(func(s *server.Session, m *wire.Message, next func()) {
		next()
		if m.Method == cancelled && fits(wire.At(m.Params, "requestId")) {
			s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "No such request")})
		}
	})
}

// basic/utilities/cancellation
var cancellationFaults = []Fault{
	{
		ID: "cancellation.answered", Requirement: "cancellation.no-response",
		Summary:    "A cancelled request is answered all the same, and goes on.",
		Collateral: []string{"cancellation.stop-processing"},
		Apply:      func(o *server.Options) { o.Behaviour.AnswerCancelled = true },
	},
	{
		ID: "cancellation.ignored", Requirement: "cancellation.no-response",
		Summary:    "Cancellations are not read.",
		Collateral: []string{"cancellation.stop-processing", "cancellation.late-response"},
		Apply: receiving(func(_ *server.Session, m *wire.Message, next func()) {
			if m.Method != cancelled {
				next()
			}
		}),
	},
	{
		ID: "cancellation.unknown-answered", Requirement: "cancellation.ignore-unknown",
		Summary:    "The cancellation of an unknown request is answered with an error.",
		Collateral: []string{"base.notification.no-response", "base.response.id-echo"},
		Apply:      answeringCancelled(func(id any) bool { return id == "mcpconform-never-used" }),
	},
	{
		ID: "cancellation.unknown-kills", Requirement: "cancellation.ignore-unknown",
		Summary: "The cancellation of an unknown request ends the process.",
		Apply:   dyingOf(`"requestId":987654321`),
	},
	{
		ID: "cancellation.completed-kills", Requirement: "cancellation.ignore-completed",
		Summary: "The second cancellation of a request that is over ends the process.",
		Apply:   dyingOf(`"params":{"requestId":2}}`),
	},
	{
		ID: "cancellation.malformed-answered", Requirement: "cancellation.ignore-malformed",
		Summary:    "A cancellation without an id is answered with an error.",
		Collateral: []string{"base.notification.no-response", "base.response.id-echo"},
		Apply: receiving(func(s *server.Session, m *wire.Message, next func()) {
			next()
			if m.Method == cancelled && wire.At(m.Params, "reason") == "no id" {
				s.Send(&server.Outgoing{Session: s, Message: refusal(nil, server.InvalidParams, "requestId is missing")})
			}
		}),
	},
	{
		ID: "cancellation.malformed-kills", Requirement: "cancellation.ignore-malformed",
		Summary: "A cancellation whose id is null ends the process.",
		Apply:   dyingOf(`"requestId":null`),
	},
	{
		ID: "cancellation.of-client-request", Requirement: "cancellation.same-direction",
		Summary: "The server cancels a request of the client.",
		Apply:   cancelling(object{"requestId": json.Number("1"), "reason": "overloaded"}),
	},
	{
		ID: "cancellation.without-id", Requirement: "schema.cancelled-notification",
		Summary: "notifications/cancelled has no requestId.",
		Apply:   cancelling(object{"reason": "overloaded"}),
	},
}

var _ = strings.Contains
