package server

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/mcpconform/mcpconform/reference/client"
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
				heldBack(t, call)
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
}

// heldBack ends the body for a tool that logs nothing with the level at debug,
// which lets everything through. A filter that is upside down lets messages
// through when the level is high.
func heldBack(t *check.T, call check.Call) {
	if seen := logged(t, call, "emergency", nil); len(seen) > 0 {
		if missing := held(t, call, "debug", seen); missing != "" {
			t.About("logging.filter.all-above")
			t.Fail("a message of level %s came with the level at emergency and stays away with the level at debug", missing)
		}
	}
	t.Inconclusive("the tool %q logged nothing with the level at debug", call.Tool)
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
// logged, least severe first. The wanted levels are waited for. Where another
// session set a level in the meantime, and one level may hold for all
// (docs/positions.md, shared-log-level), that tells nothing: it is done again.
func logged(t *check.T, call check.Call, level string, wanted []string) []string {
	const attempts = 10
	for range attempts {
		if seen, alone := loggedOnce(t, call, level, wanted); alone {
			return seen
		}
	}
	t.Inconclusive("while the tool %q was called, other sessions set the log level each time", call.Tool)
	return nil
}

// loggedOnce reports besides whether no other session set a level.
func loggedOnce(t *check.T, call check.Call, level string, wanted []string) (ordered []string, alone bool) {
	x := t.Call("logging/setLevel", map[string]any{"level": level})
	if x.Result() == nil {
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
	for _, level := range judge.LogLevels {
		if slices.Contains(seen, level) {
			ordered = append(ordered, level)
		}
	}
	any := func(int) bool { return true }
	return ordered, !judge.LevelsSet(t.Logs()).Elsewhere(x.Request.Conn, x.Request.At, math.MaxInt64, any)
}

// held returns the first of the wanted levels that is not logged at a level.
func held(t *check.T, call check.Call, level string, wanted []string) string {
	return absent(wanted, logged(t, call, level, wanted))
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
