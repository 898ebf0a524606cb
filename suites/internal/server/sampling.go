package server

import (
	"maps"
	"slices"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

const createMessage = "sampling/createMessage"

// generation returns an ordinary sampling result, with other members in place.
func generation(changes map[string]any) map[string]any {
	result := map[string]any{
		"role": "assistant", "model": "mcpconform", "stopReason": "endTurn",
		"content": map[string]any{"type": "text", "text": "A sampled answer."},
	}
	for name, v := range changes {
		if v == nil {
			delete(result, name)
		} else {
			result[name] = v
		}
	}
	return result
}

// client/sampling
var samplingChecks = []*check.Check{
	{
		Name: "sampling/answers",
		Requirements: []string{
			ids.SamplingResultStopReasonOptional, ids.SamplingResultStopReasonOpen, ids.SamplingMaxTokensFewer,
			ids.SamplingPreferencesAdvisory, ids.MetaAttachResult, ids.BaseResponseResultOpen,
		},
		Needs: byHand("sampling"),
		Body: func(t *check.T) {
			// The server can use every answer that the client may choose.
			call := toolFor(t, "sampling")
			ordinary := always(generation(nil))
			control := working(t, call, createMessage, ordinary)
			all := []struct {
				id, when string
				changes  map[string]any
			}{
				{ids.SamplingResultStopReasonOptional, "stopReason is left out", map[string]any{"stopReason": nil}},
				{ids.SamplingResultStopReasonOpen, "stopReason is not one of the listed values",
					map[string]any{"stopReason": "mcpconform/other"}},
				{ids.SamplingMaxTokensFewer, "the generation is very short",
					map[string]any{"content": map[string]any{"type": "text", "text": "A"}}},
				{ids.SamplingPreferencesAdvisory, "the model fits no hint",
					map[string]any{"model": "no-model-that-was-hinted-at"}},
				{ids.BaseResponseResultOpen, "the result has a member that is not defined",
					map[string]any{"mcpconform": true}},
				{ids.MetaAttachResult, "the result has _meta",
					map[string]any{"_meta": map[string]any{"example.com/mcpconform": []any{}}}},
			}
			if t.RunsAgain() {
				// The most that fit together; the server is tried with each if it does not take them.
				together := make(map[string]any)
				for _, v := range slices.Backward(all) {
					maps.Copy(together, v.changes)
				}
				x, _ := converse(t, call, createMessage, always(generation(together)))
				if worked(x) {
					all = all[1:2] // the other stopReason, which the first one hid
				}
			}
			for _, v := range all {
				x, _ := converse(t, call, createMessage, always(generation(v.changes)))
				if !worked(x) && worked(working(t, call, createMessage, ordinary)) {
					t.Clear()
					t.Show(control.Events()...)
					t.Check(v.id, x).To(Succeed(), "when %s, for the tool %q, which works with an ordinary answer",
						v.when, call.Tool)
				}
			}
			t.Settle()
		},
	},
	{
		Name:         "sampling/invalid-content",
		Requirements: []string{ids.SamplingSecurityValidateContent},
		Needs:        byHand("sampling"),
		Body: func(t *check.T) {
			// Content of an unknown type, and data that is not base64: a server that passes it on has not validated it.
			call := toolFor(t, "sampling")
			working(t, call, createMessage, always(generation(nil)))
			const marker = "~mcpconform~unchecked~"
			noticed := false
			for _, v := range []struct {
				wrong   string
				content map[string]any
			}{
				{"has a type that does not exist", map[string]any{"type": "mcpconform-unknown", "text": marker}},
				{"is an image whose data is not base64",
					map[string]any{"type": "image", "mimeType": "image/png", "data": marker}},
				{"is audio whose data is not base64",
					map[string]any{"type": "audio", "mimeType": "audio/wav", "data": marker}},
				{"is a text that is an object", map[string]any{"type": "text",
					"text": map[string]any{"not a text": marker}}},
			} {
				t.Clear()
				x, _ := converse(t, call, createMessage, always(generation(map[string]any{"content": v.content})),
					client.Deliberately("*"))
				if used(x, marker) {
					t.Violation(ids.SamplingSecurityValidateContent,
						"the content of the sampled message "+v.wrong+", and the tool "+quote(call.Tool)+
							" used it in its result; an error or a result with isError was expected")
				}
				noticed = noticed || !worked(x)
			}
			t.Settle()
			if !noticed {
				t.Inconclusive("the results of the tool %q do not show whether it validates the content", call.Tool)
			}
		},
	},
	{
		Name:         "sampling/strings",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseMessageUTF8Accepted},
		Needs:        waiting(byHand("sampling")),
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			// A model may generate any text: whatever the server makes of it, it answers the call.
			call := toolFor(t, "sampling")
			working(t, call, createMessage, always(generation(nil)))
			stringsAnswered(t, call, createMessage, func(text string) func(*wire.Event) map[string]any {
				return always(generation(map[string]any{"content": map[string]any{"type": "text", "text": text}}))
			})
		},
	},
	{
		Name:         "sampling/refused",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseErrorDataFree},
		Needs:        byHand("sampling"),
		Body:         func(t *check.T) { refuse(t, "sampling", createMessage) },
	},
}

// refuse answers what a server asks with errors of each kind: users may refuse, and a
// client may be unable to ask them. The call that asked still has to be answered.
func refuse(t *check.T, role, method string) {
	call := toolFor(t, role)
	problems := []map[string]any{
		{"code": -1, "message": "User rejected the request"},
		{"code": -32603, "message": "Nobody is there", "data": "a text"},
		{"code": -32603, "message": "Nobody is there", "data": 7},
		{"code": -32603, "message": "Nobody is there", "data": map[string]any{"why": []any{}}},
	}
	for _, problem := range problems[:t.Most(len(problems), 2)] {
		t.About(ids.BaseResponsePresent)
		if problem["data"] != nil {
			t.About(ids.BaseErrorDataFree)
		}
		if _, asked := converse(t, call, method, always(map[string]any{"error": problem})); len(asked) == 0 {
			t.Inconclusive("the tool %q did not send %s", call.Tool, method)
		}
		if !t.RunsAgain() {
			t.Fence()
		}
	}
	t.Fenced()
}
