package mockserver

import (
	"encoding/json"

	"github.com/mcpconform/mcpconform/reference/server"
)

const progressed = "notifications/progress"

// basic/utilities/progress
var progressFaults = []Fault{
	{
		ID: "progress.token-as-string", Requirement: "progress.token.echo",
		Summary:    "The progress token comes back as a string.",
		Collateral: []string{"progress.value-increases", "progress.stop"},
		Apply: params(progressed, func(params object) {
			if token, ok := params["progressToken"].(json.Number); ok {
				params["progressToken"] = string(token)
			}
		}),
	},
	{
		ID: "progress.not-growing", Requirement: "progress.value-increases",
		Summary: "The progress value stays the same.",
		Apply:   params(progressed, having("progress", 1)),
	},
	{
		ID: "progress.counts-down", Requirement: "progress.value-increases",
		Summary: "The progress value falls.",
		Apply: params(progressed, func(params object) {
			if v, ok := params["progress"].(float64); ok {
				params["progress"] = 100 - v
			}
		}),
	},
	{
		ID: "progress.unasked", Requirement: "progress.token.active-request",
		Summary: "Progress is reported with a token of the server's own.",
		Apply: sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			early := out.Answers.Notification(progressed, object{"progressToken": "own", "progress": 1})
			return []*server.Outgoing{early, out}
		})),
	},
	{
		ID: "progress.after-response", Requirement: "progress.stop",
		Summary: "Progress goes on after the response.",
		Apply: sending(server.OnResponse("tools/call", func(out *server.Outgoing) []*server.Outgoing {
			token, ok := out.Answers.Token()
			if !ok {
				return []*server.Outgoing{out}
			}
			late := out.Answers.Notification(progressed, object{"progressToken": token, "progress": 999})
			return []*server.Outgoing{out, late}
		})),
		Collateral: []string{"progress.in-progress", "progress.token.active-request"},
	},
	{
		ID: "progress.token-refused", Requirement: "progress.request",
		Summary:    "Requests with a progress token are refused.",
		Collateral: []string{"progress.token.any-means"},
		Apply: refusing("ping", server.InvalidParams, func(r *server.Request) bool {
			_, ok := r.Token()
			return ok
		}),
	},
	{
		ID: "progress.empty-token-refused", Requirement: "progress.token.any-means",
		Summary: "A progress token that is the empty string is refused.",
		Apply: refusing("*", server.InvalidParams, func(r *server.Request) bool {
			token, ok := r.Token()
			return ok && token == ""
		}),
	},
	{
		ID: "progress.value-string", Requirement: "schema.progress-notification",
		Summary: `The progress value is a text such as "50%".`,
		Apply:   params(progressed, having("progress", "50%")),
	},
	{
		ID: "progress.token-missing", Requirement: "schema.progress-notification",
		Summary:    "Progress notifications have no token.",
		Collateral: []string{"progress.token.active-request", "progress.token.type"},
		Apply:      params(progressed, lacking("progressToken")),
	},
	{
		ID: "progress.token-object", Requirement: "progress.token.type",
		Summary:    "The progress token is an object.",
		Collateral: []string{"progress.token.active-request"},
		Apply:      params(progressed, func(params object) { params["progressToken"] = object{"token": params["progressToken"]} }),
	},
}
