package server

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/family"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
)

// server/utilities/logging
var loggingChecks = []*check.Check{
	{
		Name:         "logging/all-levels",
		Requirements: []string{ids.LoggingSetLevelAllLevels},
		Shows: []string{ids.SchemaSetLevelResult, ids.BaseResponseResultObject,
			ids.BaseResponseResultOrError},
		Needs: check.Needs{Session: check.Own, Server: "logging"},
		Body: func(t *check.T) {
			// The eight levels of RFC 5424, from the least severe to the most severe.
			var set []*client.Exchange
			for _, level := range judge.LogLevels {
				set = append(set, t.Call("logging/setLevel", map[string]any{"level": level}))
			}
			if !slices.ContainsFunc(set, func(x *client.Exchange) bool { return !refusedWith(x, -32603) }) {
				// server/utilities/logging#error-handling
				t.Inconclusive("the server refuses every level with -32603, which stands for a configuration error")
			}
			for i, level := range judge.LogLevels {
				t.Expect(set[i]).To(HaveResult(), "for the level %s", level)
			}
		},
	},
	{
		Name:         "logging/invalid-level",
		Requirements: []string{ids.LoggingErrorInvalidLevelCode},
		Needs:        repeated(check.Needs{Session: check.Own, Server: "logging"}),
		Families:     []string{"levels-unknown"},
		Body: func(t *check.T) {
			t.Vary(t.Draw("levels-unknown"), func(m family.Member) {
				t.Check(ids.LoggingErrorInvalidLevelCode,
					t.Call("logging/setLevel", map[string]any{"level": m.Str()}, client.Deliberately("*"))).
					To(HaveErrorCode(-32602), "for the level %s", m)
			})
		},
	},
	{
		Name:         "logging/level-in-force",
		Requirements: []string{ids.LoggingSetLevelReplaces, ids.LoggingFilterAllAbove, ids.LoggingFilterNoneBelow},
		Needs: check.Needs{Session: check.Own, Server: "logging", ToolRoles: []string{"log-levels", "log"},
			Lane: check.Waiting},
		Body: func(t *check.T) {
			// The same call with the level low, high and low again. A rule of package judge finds messages below the
			// level.
			call := logs(t)
			began := time.Now()
			first := logged(t, call, []string{"debug"}, nil)
			took := time.Since(began)
			if len(first) == 0 {
				t.Pause(busy) // as in emitted
				first = logged(t, call, []string{"debug"}, nil)
			}
			if len(first) == 0 {
				heldBack(t, call)
			}
			// The most severe level that was seen is let through by a setting of its own.
			high := first[len(first)-1]
			if staysAway(t, call, high, []string{high}) != "" {
				t.Violation(ids.LoggingFilterAllAbove, "a message of level "+high+
					" came after the level was set to debug, but not after it was set to "+high)
			}
			// Any message that the high level held back shows that debug replaced it. A limit of the rate may drop
			// others.
			lower := first[:max(1, len(first)-1)]
			came := logged(t, call, []string{"debug"}, lower[:1])
			if !slices.ContainsFunc(came, func(level string) bool { return slices.Contains(lower, level) }) {
				if len(came) == 0 && held(t, call, high, []string{high}) != "" {
					t.Inconclusive("%s", rateLimited)
				}
				if !steady(t, call, lower[0]) {
					t.Inconclusive("the tool %q does not log the same at each call", call.Tool)
				}
				t.Violation(ids.LoggingSetLevelReplaces,
					"a message of level "+lower[0]+
						" came after the level was set to debug, but not after debug was set a second time")
				return
			}
			if took < busy && t.Further() {
				if took < noticeable || !eachAtOnce(t, call, first) {
					eachLevel(t, call, first, judge.LogLevels[1:])
				}
				refusedLevel(t, call, first)
				return
			}
			// For a slow tool, and in a quick run, the check tries only one more level. It divides the messages, or is
			// above all of them if they have one level.
			middle := first[len(first)/2]
			if len(first) == 1 {
				middle = "emergency"
			}
			eachLevel(t, call, first, []string{middle})
		},
	},
}

// noticeable is how long a call takes that is not made once for each level in turn.
const noticeable = 50 * time.Millisecond

// eachAtOnce sets levels in sessions of their own and makes the call in all of them at the same time: debug, emergency,
// each level that was seen, and the next one above it. It reports whether every session got the messages that its level
// lets through. The session at debug shows that no session has the level of another.
func eachAtOnce(t *check.T, call check.Call, seen []string) bool {
	if t.Target.Transport == transport.NameStdio {
		return false // each would be a process
	}
	var levels []string
	for i, level := range judge.LogLevels {
		if i == 0 || i == len(judge.LogLevels)-1 || slices.Contains(seen, level) ||
			slices.Contains(seen, judge.LogLevels[i-1]) {
			levels = append(levels, level)
		}
	}
	sessions, errs := t.OpenEach(make([]client.Options, len(levels))...)
	calls := make([]*client.Pending, len(sessions))
	for i, s := range sessions {
		if errs[i] != nil {
			return false
		}
		if x, err := s.Call(t.Context, "logging/setLevel", map[string]any{"level": levels[i]}); err != nil ||
			x.Result() == nil {
			return false
		}
	}
	for i, s := range sessions {
		p, err := s.Start(t.Context, "tools/call", call.Params())
		if err != nil {
			return false
		}
		calls[i] = p
	}
	for i, s := range sessions {
		if x, err := calls[i].Await(t.Context); err != nil || x.Result() == nil {
			return false
		}
		if s.Fence(t.Context) != nil {
			return false
		}
		came := make(map[string]bool)
		for _, e := range s.Log().Events() {
			if level := levelOf(e); level != "" {
				came[level] = true
			}
		}
		least := slices.Index(judge.LogLevels, levels[i])
		for n, level := range judge.LogLevels {
			if came[level] != (n >= least && slices.Contains(seen, level)) {
				return false
			}
		}
	}
	return true
}

// levelOf returns the level of a log message, or "".
func levelOf(e *wire.Event) string {
	if e.Kind != wire.KindMessage || e.From != wire.Server || e.Msg.Method != "notifications/message" {
		return ""
	}
	level, _ := at(e.Msg.Params, "level").(string)
	return level
}

// eachLevel sets one level after the other (server/utilities/logging#log-levels). The
// levels that were seen came each time with the level at debug.
func eachLevel(t *check.T, call check.Call, seen, levels []string) {
	for _, level := range levels {
		set := t.Call("logging/setLevel", map[string]any{"level": level})
		if set.Result() == nil {
			continue
		}
		i := slices.Index(judge.LogLevels, level)
		enough := slices.DeleteFunc(slices.Clone(seen),
			func(s string) bool { return slices.Index(judge.LogLevels, s) < i })
		came, alone := loggedSince(t, call, set, enough)
		if !alone {
			came = logged(t, call, []string{level}, enough)
		}
		if len(came) > 0 && slices.Index(judge.LogLevels, came[0]) < i && persists(t, call, []string{level}, came[0]) {
			t.Violation(ids.LoggingFilterNoneBelow,
				"a message of level "+came[0]+" comes each time although the level is set to "+level)
			return
		}
		if missing := absent(enough, came); missing != "" {
			// A limit of the rate drops now this message, now that one.
			if held(t, call, "debug", []string{missing}) == "" && staysAway(t, call, level, []string{missing}) != "" {
				t.Violation(ids.LoggingFilterAllAbove, "a message of level "+missing+
					" came after the level was set to debug, but not after it was set to "+level)
			}
			return
		}
	}
}

// refusedLevel sets the highest of the levels that came with the level at debug,
// and then one that does not exist. If that is refused, the other one stays
// (docs/positions.md, refused-log-level).
func refusedLevel(t *check.T, call check.Call, seen []string) {
	const unknown = "mcpconform-no-level"
	high := seen[len(seen)-1]
	if len(seen) == 1 {
		return // nothing is held back
	}
	if before := logged(t, call, []string{high}, nil); len(before) > 0 && before[0] != high {
		return
	}
	levels := []string{high, unknown}
	if came := logged(t, call, levels, nil); len(came) > 0 && came[0] != high && persists(t, call, levels, came[0]) {
		t.Warning(ids.LoggingFilterNoneBelow, "after a level that does not exist was refused, a message of level "+
			came[0]+" comes although the level is set to "+high)
	}
}

// persists reports whether a message of a level comes again, and once more, when levels are set as in [logged]. A
// message that was already on its way, perhaps on another stream, does not come again.
func persists(t *check.T, call check.Call, levels []string, level string) bool {
	for range 2 {
		if !slices.Contains(logged(t, call, levels, nil), level) {
			return false
		}
	}
	return true
}

// heldBack ends the body for a tool that does not log anything with the level at debug,
// which lets all messages through. An inverted filter lets messages through when the
// level is high.
func heldBack(t *check.T, call check.Call) {
	if seen := logged(t, call, []string{"emergency"}, nil); len(seen) > 0 {
		if missing := held(t, call, "debug", seen); missing != "" &&
			held(t, call, "emergency", []string{missing}) == "" {
			t.About(ids.LoggingFilterAllAbove)
			t.Fail("a message of level %s came after the level was set to emergency, but not after it was set to debug",
				missing)
		}
	}
	lowered(t, call)
	t.Inconclusive("the tool %q logged nothing after the level was set to debug", call.Tool)
}

// lowered ends the body if the tool logs in a new session with the level at debug: in this
// session, in which the level was higher before, debug did not replace that. A message that each of these levels lets
// through was held back by something else, such as a limit on the rate.
func lowered(t *check.T, call check.Call) {
	highest := 0
	for _, x := range t.Session.Log().Requests(wire.Client, "logging/setLevel") {
		if level, _ := at(x.Request.Msg.Params, "level").(string); x.Result() != nil {
			highest = max(highest, slices.Index(judge.LogLevels, level))
		}
	}
	if highest == 0 {
		return
	}
	s := t.Open(check.Capable())
	t.CallOn(s, "logging/setLevel", map[string]any{"level": "debug"})
	if x, err := s.Call(t.Context, "tools/call", call.Params()); err != nil || x.Result() == nil {
		return
	}
	t.FenceOn(s)
	came := levelsSince(s.Log().Events())
	if n := len(came); n > 0 && slices.Index(judge.LogLevels, came[n-1]) >= highest {
		return
	}
	for _, e := range s.Log().Events() {
		if level := levelOf(e); level != "" && steady(t, call, level) &&
			held(t, call, "debug", []string{level}) != "" {
			t.Show(e)
			t.About(ids.LoggingSetLevelReplaces)
			t.Fail("a message of level %s comes in a new session with the level debug, but not in a session "+
				"where debug replaced a higher level",
				level)
		}
	}
}

// logs returns the call of a tool that logs.
func logs(t *check.T) check.Call {
	call, ok := logging(t)
	if !ok {
		t.Inconclusive("no known tool logs: name one for the tool role log-levels in the configuration")
	}
	return call
}

// logging returns the call of a tool that logs, if one is known.
func logging(t *check.T) (check.Call, bool) {
	if call, ok := t.Target.ToolFor("log-levels"); ok {
		return call, true
	}
	return t.Target.ToolFor("log")
}

// logged sets levels, makes the call and returns the levels of what was logged, least severe first. The first level
// has to be accepted, and any other to be refused. The wanted levels are waited for, as [emitted] does. One level may
// hold for all sessions (docs/positions.md, shared-log-level). If another session sets a level meanwhile and wanted
// levels are missing, logged tries again.
func logged(t *check.T, call check.Call, levels, wanted []string) []string {
	const attempts = 10
	for range attempts {
		seen, alone := loggedOnce(t, call, levels, wanted)
		if alone || len(wanted) > 0 && absent(wanted, seen) == "" {
			return seen
		}
	}
	t.Disturbed("while the tool %q was called, other sessions set the log level each time", call.Tool)
	return nil
}

// loggedOnce reports besides whether no other session set a level.
func loggedOnce(t *check.T, call check.Call, levels, wanted []string) (ordered []string, alone bool) {
	x := t.Call("logging/setLevel", map[string]any{"level": levels[0]})
	t.Assume(x).To(HaveResult(), "for the level %s", levels[0])
	for _, other := range levels[1:] {
		if t.Call("logging/setLevel", map[string]any{"level": other}, client.Deliberately("*")).Error() == nil {
			return nil, true // another check sees to that
		}
	}
	return loggedSince(t, call, x, wanted)
}

// loggedSince makes the call and returns the levels of what was logged, and whether no other session set a level since
// a level was set.
func loggedSince(t *check.T, call check.Call, set *client.Exchange, wanted []string) (ordered []string, alone bool) {
	seen, failed := emitted(t, call, wanted)
	if failed != nil && (len(seen) == 0 || absent(wanted, seen) != "") {
		t.Disturbed("the tool %q failed, so it may have logged less than it can: %s", call.Tool, Describe(failed))
	}
	for _, level := range judge.LogLevels {
		if slices.Contains(seen, level) {
			ordered = append(ordered, level)
		}
	}
	any := func(int) bool { return true }
	return ordered, !judge.LevelsSet(t.Logs()).Elsewhere(set.Request.Conn, set.Request.At, math.MaxInt64, any)
}

// rateLimited is why log messages that stay away may show nothing.
const rateLimited = "the server no longer logs anything; it may limit the rate of its log messages"

// emitted makes the call and returns the levels of what is logged meanwhile, and the answer if the tool failed. The
// wanted levels are awaited. Servers SHOULD limit the rate of log messages
// (server/utilities/logging#implementation-considerations): if some have not come after a second, there is room again,
// and the call is made once more before they count as missing.
func emitted(t *check.T, call check.Call, wanted []string) (seen []string, failed *client.Exchange) {
	complete := func(e *wire.Event) bool {
		if level := levelOf(e); level != "" && !slices.Contains(seen, level) {
			t.Show(e)
			seen = append(seen, level)
		}
		return absent(wanted, seen) == ""
	}
	for _, limit := range []time.Duration{busy, t.Session.Options.Timeout} {
		mark := t.Mark()
		answer := perform(t, call)
		if !worked(answer) {
			failed = answer
		}
		if !loggedOn(answer.Response.Stream, t.Since(mark)) {
			t.Fence()
		}
		for _, e := range t.Since(mark) {
			complete(e)
		}
		if absent(wanted, seen) == "" {
			break
		}
		soon, stop := context.WithTimeout(t.Context, limit)
		_, err := t.Session.AwaitEvent(soon, mark, "log messages of level "+strings.Join(wanted, ", "), complete)
		late := soon.Err() != nil && t.Context.Err() == nil
		stop()
		if err == nil || failed != nil {
			break
		}
		if !late && !timedOut(err) {
			t.Must(err)
		}
	}
	return seen, failed
}

// loggedOn reports whether a log message came on the stream of an answer, where it comes before the answer.
func loggedOn(stream string, events []*wire.Event) bool {
	return slices.ContainsFunc(events, func(e *wire.Event) bool { return levelOf(e) != "" && e.Stream == stream })
}

// staysAway returns the first of the wanted levels that stays away with the level set to one, and comes with the level
// at debug.
func staysAway(t *check.T, call check.Call, level string, wanted []string) string {
	missing := absent(wanted, logged(t, call, []string{level}, nil))
	if missing == "" || !steady(t, call, missing) {
		return ""
	}
	only := []string{missing}
	seen, failed := emitted(t, call, only)
	if failed != nil || absent(only, seen) == "" || held(t, call, "debug", only) != "" {
		return ""
	}
	return missing
}

// steady reports whether the call logs a message of a level each time, in a new session with the level at debug. A tool
// may log what happens to happen.
func steady(t *check.T, call check.Call, level string) bool {
	s := t.Open(check.Capable())
	t.CallOn(s, "logging/setLevel", map[string]any{"level": "debug"})
	for range 2 {
		mark := s.Log().Len()
		if x, err := s.Call(t.Context, "tools/call", call.Params()); err != nil || x.Result() == nil {
			return false
		}
		soon, stop := context.WithTimeout(t.Context, busy)
		_, err := s.Log().Await(soon, mark, func(e *wire.Event) bool { return levelOf(e) == level })
		if stop(); err != nil {
			return false
		}
	}
	return true
}

// held returns the first of the wanted levels that is not logged at a level.
func held(t *check.T, call check.Call, level string, wanted []string) string {
	return absent(wanted, logged(t, call, []string{level}, wanted))
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
