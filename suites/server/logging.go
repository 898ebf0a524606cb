package server

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/judge"
)

// server/utilities/logging
var loggingChecks = []*check.Check{
	{
		Name:         "logging/level-in-force",
		Requirements: []string{"logging.set-level.replaces", "logging.filter.all-above", "logging.filter.none-below"},
		Needs:        check.Needs{Session: check.Fresh, Server: "logging", Purposes: []string{"log-levels", "log"}},
		Body: func(t *check.T) {
			// The same call with the level low, high and low again. What is less severe than the level is seen by the judge.
			call := logs(t)
			first := logged(t, call, "debug", nil)
			if len(first) == 0 {
				t.Inconclusive("the tool %q logged nothing with the level at debug", call.Tool)
			}
			// The most severe level that was seen is let through by a setting of its own.
			high := first[len(first)-1]
			if missing := held(t, call, high, []string{high}); missing != "" {
				t.Violation("logging.filter.all-above", "a message of level "+missing+" came with the level at debug and stays away with the level at "+high)
			}
			if missing := held(t, call, "debug", first); missing != "" {
				t.Violation("logging.set-level.replaces", "a message of level "+missing+" came with the level at debug and stays away when that level is set again")
			}
			if high == "debug" {
				// Nothing could have been held back: only a setting above all of it tells something.
				logged(t, call, "emergency", nil)
			}
		},
	},
	{
		Name:         "logging/level-of-its-own",
		Requirements: []string{"logging.filter.none-below"},
		Needs: check.Needs{
			Session: check.Fresh, Server: "logging", Transports: []string{transport.NameHTTP, transport.NameSSE}, Purposes: []string{"log-levels", "log"},
		},
		Body: func(t *check.T) {
			// Each client sets a level for itself: what another one sets does not bring it messages that it has turned off.
			if t.Target.Transport == transport.NameHTTP {
				sessionID(t) // without sessions nothing tells clients apart
			}
			call := logs(t)
			other := t.Open(client.Options{})
			t.Result(t.Call("logging/setLevel", map[string]any{"level": "emergency"}))
			t.Result(t.CallOn(other, "logging/setLevel", map[string]any{"level": "debug"}))
			perform(t, call)
			t.Fence()
			// The control: it would have logged something.
			if len(logged(t, call, "debug", nil)) == 0 {
				t.Inconclusive("the tool %q logged nothing with the level at debug", call.Tool)
			}
		},
	},
}

// logs returns the call of a tool that logs.
func logs(t *check.T) check.Call {
	call, ok := t.Target.Purpose("log-levels")
	if !ok {
		call, ok = t.Target.Purpose("log")
	}
	if !ok {
		t.Inconclusive("no tool is known to log: name one for the purpose log-levels in the configuration")
	}
	return call
}

// logged sets a level, makes the call and returns the levels of what was
// logged, least severe first. The wanted levels are waited for.
func logged(t *check.T, call check.Call, level string, wanted []string) []string {
	if x := t.Call("logging/setLevel", map[string]any{"level": level}); x.Result() == nil {
		t.Inconclusive("the level %s is refused: %s", level, check.Describe(x))
	}
	mark := t.Mark()
	perform(t, call)
	t.Fence()
	var seen []string
	note := func(e *wire.Event) {
		if e.Kind != wire.KindMessage || e.From != wire.Server || e.Msg.Method != "notifications/message" {
			return
		}
		if level, ok := at(e.Msg.Params, "level").(string); ok && !slices.Contains(seen, level) {
			t.Show(e)
			seen = append(seen, level)
		}
	}
	complete := func(e *wire.Event) bool {
		note(e)
		return absent(wanted, seen) == ""
	}
	if len(wanted) == 0 {
		for _, e := range t.Since(mark) {
			note(e)
		}
	} else if _, err := t.Session.AwaitEvent(t.Context, mark, "log messages of level "+strings.Join(wanted, ", "), complete); err != nil {
		if timeout := (*client.TimeoutError)(nil); !errors.As(err, &timeout) {
			t.Must(err)
		}
	}
	var ordered []string
	for _, level := range judge.LogLevels {
		if slices.Contains(seen, level) {
			ordered = append(ordered, level)
		}
	}
	return ordered
}

// held returns the first of the wanted levels that is not logged at a level. Of
// a process that all clients share only what shows twice counts: another client
// may have set another level in between, and that one level is in force for all
// is not the matter here.
func held(t *check.T, call check.Call, level string, wanted []string) string {
	missing := absent(wanted, logged(t, call, level, wanted))
	if missing != "" && t.Target.Transport != transport.NameStdio {
		missing = absent(wanted, logged(t, call, level, wanted))
	}
	return missing
}

// absent returns the first of the wanted levels that was not seen, or "".
func absent(wanted, seen []string) string {
	for _, level := range wanted {
		if !slices.Contains(seen, level) {
			return level
		}
	}
	return ""
}
