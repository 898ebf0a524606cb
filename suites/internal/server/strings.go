package server

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// basic/transports: strings of every kind, sent where the server gives them back.
var stringChecks = []*check.Check{
	{
		Name:         "tools/strings",
		Requirements: []string{ids.BaseMessageUTF8Accepted},
		Needs:        check.Needs{Server: "tools"},
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			// A tool that gives back its input. It may do anything with the text, as long as that is the text which
			// was sent.
			call := echoing(t)
			if call == nil {
				t.Inconclusive("no tool that may be called gives back a string that it is given")
			}
			givenBack(t, t.Draw("strings"), func(text string) *client.Exchange { return t.Attempt(call(text)) })
			longAnswered(t, "tools/call", call(longText))
		},
	},
	{
		Name:         "prompts/strings",
		Requirements: []string{ids.BaseMessageUTF8Accepted},
		Needs:        check.Needs{Server: "prompts"},
		Families:     []string{"strings"},
		Body: func(t *check.T) {
			params := echoingPrompt(t)
			if params == nil {
				t.Inconclusive("the server lists no prompt whose messages hold one of its arguments")
			}
			givenBack(t, t.DrawFew("strings"),
				func(text string) *client.Exchange { return t.Call("prompts/get", params(text)) })
			longAnswered(t, "prompts/get", params(longText))
		},
	},
}

// stringsAnswered answers the request of a tool with each text of the family. The server still has to answer the
// call, and may treat the text as it likes. reply returns nil for a text that does not fit the request.
func stringsAnswered(t *check.T, call check.Call, method string,
	reply func(text string) func(request *wire.Event) map[string]any) {
	asks := true
	t.VaryInTurn(t.DrawFew("strings"), func(m family.Member) {
		answer := reply(m.Str())
		if answer == nil || !asks {
			return
		}
		x, asked := converse(t, call, method, answer)
		if asks = len(asked) > 0; !asks {
			return
		}
		if damage := misread(textsIn(x.Result()), m.Str()); damage != "" {
			t.Violation(ids.BaseMessageUTF8Accepted,
				"the tool "+quote(call.Tool)+" was answered with "+m.String()+" and tells "+wire.Quote(damage, 60)+
					", as if its bytes were not UTF-8", x.Events()...)
		}
	})
	if !asks {
		t.Inconclusive("the tool %q sends %s in some calls only", call.Tool, method)
	}
	t.Settle()
}

// marker is a text that comes back by no accident.
const marker = "mcpconform echo 7f3a"

// givenBack sends the family of strings to a tool or prompt that gives back the plain one. A text may be refused, or
// come back changed by intent; but one whose bytes were read in another encoding was not read. The same holds if the
// server answers each text outside ASCII with an internal error, and calls none of them invalid.
func givenBack(t *check.T, members []family.Member, send func(text string) *client.Exchange) {
	served, unread := 0, []*client.Exchange(nil)
	lost := 0 // texts beyond ASCII for which nothing came back
	answersAll := true
	t.Vary(members, func(m family.Member) {
		wide := beyondASCII.MatchString(m.Str()) && utf8.ValidString(m.Str())
		x := send(m.Str())
		if x == nil {
			if answersAll = answersAll && wide; wide {
				lost++
			}
			return
		}
		switch failed := x.Error() != nil && !refusedWith(x, -32602); {
		case wide && failed:
			unread = append(unread, x)
		case wide, failed:
			served++ // or the errors are not about what lies outside ASCII
		}
		if x.Result() == nil {
			return
		}
		if damage := misread(textsIn(x.Result()), m.Str()); damage != "" {
			t.Violation(ids.BaseMessageUTF8Accepted, "the text "+m.String()+" came back with "+wire.Quote(damage, 60)+
				" in it, as if its bytes were not UTF-8", x.Events()...)
		}
	})
	// A tool may take long over any text, but hardly over those alone that some encodings lack.
	const few = 3
	if answersAll && lost >= few-1 {
		t.Violation(ids.BaseResponsePresent,
			fmt.Sprintf("no response came for %d texts with characters outside ASCII, and one for each other text",
				lost))
	}
	if served == 0 && len(unread) >= few {
		t.Violation(ids.BaseMessageUTF8Accepted,
			"each text with characters outside ASCII is answered with an error, and no other is: "+
				Describe(unread[0]), unread[0].Events()...)
	}
}

// longText is longer than the blocks and lines that programs read and write at once.
var longText = strings.Repeat("0123456789abcde ", 600<<10/16)

// longAnswered sends a long text to what gives back a plain one. It may be refused, but an
// answer has to come where the server reads as long a request that it answers in short.
func longAnswered(t *check.T, method string, params map[string]any) {
	if t.Plainly() {
		return
	}
	t.Clear()
	if x, err := t.Session.Call(t.Context, t.NoOp(), meta("example.com/text", longText)); err != nil ||
		x.Result() == nil {
		return // other checks judge that
	}
	x, err := t.Session.Call(t.Context, method, params)
	if err != nil && x.Head != nil && x.Head.HTTP.Status/100 == 4 {
		return
	}
	t.About(ids.BaseResponsePresent)
	t.Show(x.Events()...)
	t.Must(err)
}

// gives reports whether a result holds a text.
func gives(x *client.Exchange, text string) bool {
	return x != nil && x.Result() != nil && strings.Contains(textsIn(x.Result()), text)
}

// textsIn returns all strings in a result.
func textsIn(v any) string {
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte('\n')
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		}
	}
	walk(v)
	return b.String()
}

// misread compares the first run of characters outside ASCII with its counterpart in the text that came back. It
// returns the counterpart if that shows the bytes of the run in another encoding; else "".
func misread(back, sent string) string {
	run := beyondASCII.FindString(sent)
	if run == "" || !utf8.ValidString(sent) || strings.Contains(back, run) {
		return ""
	}
	latin := make([]rune, 0, len(run))
	for _, b := range []byte(run) {
		latin = append(latin, rune(b))
	}
	for _, wrong := range []string{
		string(latin),                                         // ISO 8859-1
		windows.Replace(string(latin)),                        // Windows-1252
		strings.Repeat("\ufffd", len(run)),                    // each byte alone
		strings.Repeat("\ufffd", utf8.RuneCountInString(run)), // each character
		strings.Repeat("\ufffd", 2*utf8.RuneCountInString(run)),
		strings.Repeat("?", len(run)), // as an encoding shows what it lacks
		strings.Repeat("?", utf8.RuneCountInString(run)),
	} {
		if strings.Contains(back, wrong) && (wrong[0] != '?' || len(wrong) > byAccident) {
			return wrong
		}
	}
	return ""
}

// byAccident is how many question marks a text may have in a row without any reason.
const byAccident = 3

var beyondASCII = regexp.MustCompile(`[^\x00-\x7f]+`)

// windows are the characters that Windows-1252 has in the place of the control characters
// of ISO 8859-1.
var windows = strings.NewReplacer("\u0080", "€", "\u0082", "‚", "\u0083", "ƒ", "\u0084", "„", "\u0085", "…", "\u0086",
	"†",
	"\u0087", "‡", "\u0088", "ˆ", "\u0089", "‰", "\u008a", "Š", "\u008b", "‹", "\u008c", "Œ", "\u008e", "Ž", "\u0091",
	"‘",
	"\u0092", "’", "\u0093", "“", "\u0094", "”", "\u0095", "•", "\u0096", "–", "\u0097", "—", "\u0098", "˜", "\u0099",
	"™",
	"\u009a", "š", "\u009b", "›", "\u009c", "œ", "\u009e", "ž", "\u009f", "Ÿ")

// harmless are the names of tools that do nothing with a text but give it back.
var harmless = regexp.MustCompile(`(?i)echo|repeat|say|greet|hello`)

// echoing returns the params of a call that gives back a text: of a tool that takes a
// string and, as it says, changes nothing, whatever the string is. It returns nil if
// there is none among the first.
func echoing(t *check.T) func(text string) map[string]any {
	const most = 8
	tried := 0
	for _, tool := range slowLast(t, callable(t)) {
		arguments, ok := t.Target.Arguments(tool)
		properties, _ := at(tool, "inputSchema", "properties").(map[string]any)
		name, _ := tool["name"].(string)
		safe := at(tool, "annotations", "readOnlyHint") == true || harmless.MatchString(name)
		if !ok || !safe || tried == most || t.Target.Known(tool) {
			continue
		}
		for _, argument := range slices.Sorted(maps.Keys(properties)) {
			if _, given := arguments[argument].(string); !given || at(properties[argument], "type") != "string" {
				continue
			}
			call := func(text string) map[string]any {
				with := maps.Clone(arguments)
				with[argument] = text
				return map[string]any{"name": name, "arguments": with}
			}
			input, err := schema.CompileTool(tool["inputSchema"])
			if err != nil || len(input.Validate(call(marker)["arguments"])) > 0 {
				continue
			}
			tried++
			if gives(t.Attempt(call(marker)), marker) {
				return call
			}
			break
		}
	}
	return nil
}

// echoingPrompt returns the params with which a prompt gives back a text, or nil.
func echoingPrompt(t *check.T) func(text string) map[string]any {
	for _, p := range prompts(t) {
		names := argumentNames(p)
		if len(names) == 0 {
			continue
		}
		others := promptParams(t, p)["arguments"].(map[string]any)
		params := func(text string) map[string]any {
			arguments := maps.Clone(others)
			arguments[names[0]] = text
			return map[string]any{"name": p["name"], "arguments": arguments}
		}
		if gives(t.Call("prompts/get", params(marker)), marker) {
			return params
		}
	}
	return nil
}
