package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

const elicit = "elicitation/create"

// form returns content that fits what an elicitation asks for.
func form(request *wire.Event) map[string]any {
	return check.Form(at(request.Msg.Params, "requestedSchema"))
}

func accept(request *wire.Event) map[string]any {
	return map[string]any{"action": "accept", "content": form(request)}
}

// client/elicitation
var elicitationChecks = []*check.Check{
	{
		Name:         "elicitation/accept",
		Requirements: []string{ids.ElicitationServerHandleAccept},
		Needs:        byHand("elicitation"),
		Body: func(t *check.T) {
			// Data that fits the requested schema is what the server asked for: the call goes on.
			call := toolFor(t, "elicitation")
			x, asked := converse(t, call, elicit, accept)
			if len(asked) == 0 {
				t.Inconclusive("the tool %q did not send %s", call.Tool, elicit)
			}
			if _, ok := at(asked[0].Msg.Params, "requestedSchema").(map[string]any); !ok {
				t.Inconclusive("the tool %q does not say what it asks for", call.Tool)
			}
			if x.Error() != nil {
				// The server may refuse the call whatever the answer is.
				declined, _ := converse(t, call, elicit, always(map[string]any{"action": "decline"}))
				if declined.Result() != nil {
					t.Expect(x).To(HaveResult(), "when the tool %q gets fitting data, and not when it is declined",
						call.Tool)
				}
			}
			if !worked(x) {
				// Data that we made up may fit and be of no use, such as a name that nobody has.
				t.Inconclusive("the tool %q fails with data that fits what it asks for: %s", call.Tool, Describe(x))
			}
			// Other data fits as well. The tool may have no use for it, but it is no internal error of the server.
			for _, v := range []struct {
				what string
				fill func(request *wire.Event) map[string]any
			}{{"nothing but what the form requires", sparse}, {"false and the smallest numbers", falsy}} {
				if reflect.DeepEqual(v.fill(asked[0]), form(asked[0])) {
					continue
				}
				t.Clear()
				other, _ := converse(t, call, elicit, func(request *wire.Event) map[string]any {
					return map[string]any{"action": "accept", "content": v.fill(request)}
				})
				t.Show(x.Events()...)
				t.Check(ids.ElicitationServerHandleAccept, other).ToNot(HaveErrorCode(-32603),
					"when the content has %s, for the tool %q, which works with full content", v.what, call.Tool)
			}
			t.Settle()
		},
	},
	{
		Name: "elicitation/refuse",
		Requirements: []string{
			ids.ElicitationServerHandleDecline, ids.ElicitationServerHandleCancel,
			ids.ElicitationServerContentAbsent,
		},
		Needs: byHand("elicitation"),
		Body: func(t *check.T) {
			// The user may decline, or dismiss the form: an action alone is a complete answer. The call ends, and the
			// server is still there. The tool may fail, but the user's choice is not an internal error of the server.
			call := toolFor(t, "elicitation")
			for _, action := range []string{"decline", "cancel"} {
				t.About("elicitation.server.handle-" + action)
				x, asked := converse(t, call, elicit, always(map[string]any{"action": action}))
				if len(asked) == 0 {
					t.Inconclusive("the tool %q did not send %s", call.Tool, elicit)
				}
				if worked(x) {
					continue
				}
				// A tool may fail because of the user's choice. If the same choice with content is fine, it is the
				// content that the server misses.
				full, _ := converse(t, call, elicit, func(request *wire.Event) map[string]any {
					return map[string]any{"action": action, "content": form(request)}
				}, client.Deliberately(ids.ElicitationContentOnlyWithAccept))
				if worked(full) {
					t.Check(ids.ElicitationServerContentAbsent, x).To(Succeed(),
						"when the answer holds nothing but the action %s, and not when it has content as well", action)
				}
				if refusedWith(x, -32603) && !ofUser.MatchString(x.Error().Message) {
					if control, _ := converse(t, call, elicit, accept); worked(control) {
						t.Check("elicitation.server.handle-"+action, x).ToNot(HaveErrorCode(-32603),
							"when the user's action is %s", action)
					}
				}
			}
			t.Settle()
		},
	},
	{
		Name:         "elicitation/strings",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseMessageUTF8Accepted},
		Needs:        waiting(byHand("elicitation")),
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			// Users may enter any text that fits the form: whatever the server makes of it, it answers the call.
			call := toolFor(t, "elicitation")
			control, asked := converse(t, call, elicit, accept)
			if len(asked) == 0 || !worked(control) {
				t.Inconclusive("the tool %q did not elicit, or it fails with fitting data too", call.Tool)
			}
			name, fits := freeText(asked[0])
			if name == "" {
				t.Inconclusive("the form of the tool %q has no property for a text of the user's choice", call.Tool)
			}
			stringsAnswered(t, call, elicit, func(text string) func(*wire.Event) map[string]any {
				if !fits(text) {
					return nil
				}
				return func(request *wire.Event) map[string]any {
					content := form(request)
					if _, still := content[name]; still {
						content[name] = text
					}
					return map[string]any{"action": "accept", "content": content}
				}
			})
		},
	},
	{
		Name:         "elicitation/refused-by-error",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseErrorDataFree},
		Needs:        byHand("elicitation"),
		Body:         func(t *check.T) { refuse(t, "elicitation", elicit) },
	},
	{
		Name:         "elicitation/unfitting",
		Requirements: []string{ids.ElicitationSecurityValidateContent},
		Needs:        byHand("elicitation"),
		Body: func(t *check.T) {
			// Data that does not fit: a server that goes on working with it has not validated it. The fitting twin is
			// the control.
			call := toolFor(t, "elicitation")
			control, asked := converse(t, call, elicit, accept)
			if len(asked) == 0 || !worked(control) {
				t.Inconclusive("the tool %q did not elicit, or it fails with fitting data too", call.Tool)
			}
			noticed := false
			for _, v := range []struct {
				rule string
				fill func(request *wire.Event) (content map[string]any, property, marker string)
			}{{"type", wrongType}, {"enum", outsideEnum}, {"required", withoutRequired}} {
				if content, _, _ := v.fill(asked[0]); content == nil {
					continue // the form has no such rule
				}
				t.Clear()
				property, marker, rule := "", "", ""
				x, _ := converse(t, call, elicit, func(request *wire.Event) (answer map[string]any) {
					answer = map[string]any{"action": "accept"}
					answer["content"], property, marker = v.fill(request)
					rule = quote(at(request.Msg.Params, "requestedSchema", "properties", property, v.rule))
					return answer
				}, client.Deliberately("*"))
				if marker != "" && used(x, marker) {
					t.Violation(ids.ElicitationSecurityValidateContent, fmt.Sprintf(
						"the client filled in the property %q, whose %s is %s, with %s, and the tool %q used "+
							"that in its result; an error or a result with isError was expected",
						property, v.rule, rule, marker, call.Tool))
				}
				noticed = noticed || !worked(x)
			}
			t.Settle()
			if !noticed {
				t.Inconclusive("the results of the tool %q do not show whether it validates the data", call.Tool)
			}
		},
	},
}

// sparse fills in only the required properties of a form.
func sparse(request *wire.Event) map[string]any {
	content, full := make(map[string]any), form(request)
	required, _ := at(request.Msg.Params, "requestedSchema", "required").([]any)
	for _, r := range required {
		if name, ok := r.(string); ok && full[name] != nil {
			content[name] = full[name]
		}
	}
	return content
}

// falsy fills in a form with false and the smallest numbers, or zero, where that fits.
func falsy(request *wire.Event) map[string]any {
	content := form(request)
	for name := range content {
		p, _ := at(request.Msg.Params, "requestedSchema", "properties", name).(map[string]any)
		switch kind := p["type"]; {
		case kind == "boolean":
			content[name] = false
		case (kind == "number" || kind == "integer") && p["minimum"] != nil:
			content[name] = p["minimum"]
		case (kind == "number" || kind == "integer") && p["maximum"] == nil:
			content[name] = 0
		}
	}
	return content
}

// freeText returns the first property of a form that takes any text, and whether a text has the wanted length. The
// name is "" if there is no such property.
func freeText(request *wire.Event) (name string, fits func(text string) bool) {
	properties, _ := at(request.Msg.Params, "requestedSchema", "properties").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, _ := properties[name].(map[string]any)
		if _, filled := form(request)[name]; !filled || p["type"] != "string" || p["enum"] != nil ||
			p["format"] != nil || p["pattern"] != nil {
			continue
		}
		limit := func(member string, otherwise int64) int64 {
			if n, ok := p[member].(json.Number); ok {
				if limit, err := n.Int64(); err == nil {
					return limit
				}
			}
			return otherwise
		}
		return name, func(text string) bool {
			length := int64(utf8.RuneCountInString(text))
			return length >= limit("minLength", 0) && length <= limit("maxLength", math.MaxInt64)
		}
	}
	return "", nil
}

// ofUser matches messages of errors that tell what the user chose, as opposed to a
// failure of the server.
var ofUser = regexp.MustCompile(`(?i)\buser\b|declin|cancel|reject|refus|dismiss|denied|abort`)

// wrongType fills in a form with one value of the wrong type, which the marker
// shows again.
func wrongType(request *wire.Event) (content map[string]any, property, marker string) {
	content = form(request)
	properties, _ := at(request.Msg.Params, "requestedSchema", "properties").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch at(properties[name], "type") {
		case "string":
			const number = 471147114711
			content[name] = number
			return content, name, fmt.Sprint(number)
		case "number", "integer", "boolean":
			const text = "mcpconform-unfitting"
			content[name] = text
			return content, name, text
		}
	}
	return content, "", ""
}

// outsideEnum fills in a form with one value that is not among those that are listed, or
// returns nil.
func outsideEnum(request *wire.Event) (content map[string]any, property, marker string) {
	const text = "mcpconform-outside-enum"
	properties, _ := at(request.Msg.Params, "requestedSchema", "properties").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, listed := at(properties[name], "enum").([]any); listed {
			content = form(request)
			content[name] = text
			return content, name, text
		}
	}
	return nil, "", ""
}

// withoutRequired leaves out the required properties of the form. No marker can show that.
func withoutRequired(request *wire.Event) (content map[string]any, property, marker string) {
	content = form(request)
	required, _ := at(request.Msg.Params, "requestedSchema", "required").([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			delete(content, name)
		}
	}
	return content, "", ""
}
