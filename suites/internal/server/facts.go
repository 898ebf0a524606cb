package server

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/model"
)

// fact is something that a session keeps until a word or a notice changes it, whatever else is asked meanwhile.
// The call of a tool shows whether it holds.
type fact struct {
	name string
	// id is the requirement that is broken if it does not hold; "" if no sentence says that it has to.
	id   string
	call check.Call
	// expects returns what the call brings while the fact has a value, nil if it need not bring anything.
	expects func(set bool) []expectation
	// settles says that the call may still show the old value for a while after the fact was changed.
	settles bool
	// shared says that other sessions may change the fact (docs/positions.md, shared-log-level).
	shared bool
}

// expectation is a message, or the text of a result, that shows that a fact holds.
type expectation struct {
	what string
	fits func(*wire.Event) bool
}

const (
	levelFact = "level"
	rootsFact = "roots"
)

// findFacts finds the facts that a session of the server keeps, as far as calls of tools show them. It adds the
// actions that change them to the vocabulary and to the notices.
func (p *sequenceRun) findFacts() {
	for _, find := range []func() *fact{p.levelKept, p.subscriptionKept, p.rootsKept, p.progressKept} {
		if f := find(); f != nil {
			p.facts = append(p.facts, f)
		}
	}
	for _, role := range []string{"sampling", "elicitation"} {
		method, _ := askedFor(role)
		p.addUnlessMute(&fact{name: role, expects: func(bool) []expectation {
			return []expectation{{method, func(e *wire.Event) bool { return asks(e, method) }}}
		}}, role)
	}
	for _, f := range p.facts {
		p.Facts = append(p.Facts, f.name)
	}
}

// addUnlessMute adds a fact that a tool of a role shows, if it does so now.
func (p *sequenceRun) addUnlessMute(f *fact, role string) {
	call, ok := p.Target.ToolFor(role)
	if !ok {
		return
	}
	f.call = call
	if mark, ok := p.tryCall(call); ok && p.missing(p.Session, mark, f.expects(true), p.Soon(check.AtOnce)) == nil {
		p.facts = append(p.facts, f)
	}
}

// tryCall makes a call and returns the position in the log before it. It returns false if the call fails or is slow.
func (p *sequenceRun) tryCall(call check.Call) (mark int, ok bool) {
	mark = p.Mark()
	return mark, works(p.T, "tools/call", call.Params())
}

// missing waits until all expectations are fulfilled after a position in the log. It returns the first unfulfilled
// one, or nil.
func (p *sequenceRun) missing(s *client.Session, mark int, expected []expectation, most time.Duration) *expectation {
	limit, stop := context.WithTimeout(p.Context, most)
	defer stop()
	for i, one := range expected {
		if _, err := s.Log().Await(limit, mark, one.fits); err != nil {
			return &expected[i]
		}
	}
	return nil
}

// cutOff reports whether a limit explains what is missing: the first of several expected messages came and then none,
// or nothing was logged at all. A limit on the rate cuts messages off like that
// (server/utilities/logging#implementation-considerations). A level that was lost holds back the lower ones, which
// tools mostly send first, and lets the highest through.
func (f *fact) cutOff(events []*wire.Event, expected []expectation) bool {
	if f.name == levelFact && len(levelsSince(events)) == 0 {
		return true
	}
	came := func(one expectation) bool { return slices.ContainsFunc(events, one.fits) }
	first := slices.IndexFunc(expected, func(one expectation) bool { return !came(one) })
	return first > 0 && !slices.ContainsFunc(expected[first:], came)
}

// levelKept is the log level as a fact. It expects the messages that a tool logs with the level at debug, with each
// level that lets them through.
func (p *sequenceRun) levelKept() *fact {
	if !p.Session.Capability("logging") {
		return nil
	}
	call, ok := p.Target.ToolFor("log-levels")
	if !ok {
		call, ok = p.Target.ToolFor("log")
	}
	const lowest = "debug"
	if !works(p.T, "logging/setLevel", map[string]any{"level": lowest}) {
		return nil
	}
	var came []string
	if ok {
		var mark int
		if mark, ok = p.tryCall(call); ok {
			p.Fence()
			came = levelsSince(p.Since(mark))
		}
	}
	highest := "emergency"
	if len(came) > 1 {
		highest = came[len(came)-1]
	}
	if !works(p.T, "logging/setLevel", map[string]any{"level": highest}) {
		return nil
	}
	p.add("logging/setLevel", map[string]any{"level": highest}).Sets = levelFact
	w := p.add("logging/setLevel", map[string]any{"level": lowest})
	w.Unsets, w.Alike = levelFact, !p.Thorough()
	if len(came) == 0 {
		return nil
	}
	f := &fact{name: levelFact, id: ids.LoggingFilterAllAbove, call: call, shared: true}
	f.expects = func(set bool) (all []expectation) {
		for _, level := range came {
			if !set || slices.Index(judge.LogLevels, level) >= slices.Index(judge.LogLevels, highest) {
				logs := func(e *wire.Event) bool { return levelOf(e) == level }
				all = append(all, expectation{"a log message of level " + level, logs})
			}
		}
		return all
	}
	return f
}

// levelsSince returns the levels of the log messages among events, the least severe first.
func levelsSince(events []*wire.Event) (came []string) {
	for _, level := range judge.LogLevels {
		if slices.ContainsFunc(events, func(e *wire.Event) bool { return levelOf(e) == level }) {
			came = append(came, level)
		}
	}
	return came
}

// subscriptionKept is the subscription to a resource that a tool changes. That to another one comes and goes
// meanwhile.
func (p *sequenceRun) subscriptionKept() *fact {
	uris := resourceURIs(p.T, maxRead)
	if len(uris) == 0 || !p.Session.Capability("resources.subscribe") {
		return nil
	}
	call, changed := p.changedResource(uris)
	subscriptions := uris[:1]
	if changed != "" {
		subscriptions = []string{changed}
		if i := slices.IndexFunc(uris, func(uri string) bool {
			return uri != changed && !within(changed, uri)
		}); i >= 0 {
			subscriptions = append(subscriptions, uris[i])
		}
	}
	for i, uri := range subscriptions {
		params := map[string]any{"uri": uri}
		begin := p.add("resources/subscribe", params)
		end := p.add("resources/unsubscribe", params)
		begin.Sets, begin.fickle, end.Unsets, end.fickle = uri, true, uri, true
		if i > 0 {
			begin.Alike, end.Alike = !p.Thorough(), !p.Thorough()
		}
	}
	if changed == "" {
		return nil
	}
	f := &fact{name: changed, id: ids.ResourcesUpdatedSent, call: call, settles: true}
	f.expects = func(set bool) []expectation {
		if !set {
			return nil // the rule of subscriptions judges what comes
		}
		update := func(e *wire.Event) bool { return updates(e, changed) }
		return []expectation{{"notifications/resources/updated for " + wire.Quote(changed, 60), update}}
	}
	return f
}

// changedResource returns the call that changes a resource, and which one. It is "" if none is known.
func (p *sequenceRun) changedResource(uris []string) (call check.Call, changed string) {
	call, ok := p.Target.ToolFor("resource-update")
	if !ok {
		return call, ""
	}
	var subscribed []string
	for _, uri := range uris {
		if works(p.T, "resources/subscribe", map[string]any{"uri": uri}) {
			subscribed = append(subscribed, uri)
		}
	}
	mark, ok := p.tryCall(call)
	limit, stop := context.WithTimeout(p.Context, p.Soon(check.Later))
	defer stop()
	update := func(e *wire.Event) bool { return tells(e, "notifications/resources/updated") }
	if e, err := p.Session.Log().Await(limit, mark, update); ok && err == nil {
		changed, _ = at(e.Msg.Params, "uri").(string)
	}
	for _, uri := range subscribed {
		_, _ = p.Session.Call(p.Context, "resources/unsubscribe", map[string]any{"uri": uri})
	}
	if !slices.Contains(subscribed, changed) || changesItself(p.T, changed) {
		return call, ""
	}
	return call, changed
}

// rootsKept is the roots as a fact: a tool shows them after they have changed.
func (p *sequenceRun) rootsKept() *fact {
	call, ok := p.Target.ToolFor("roots")
	if !ok {
		return nil
	}
	mark, ok := p.tryCall(call)
	const standard = "file:///tmp" // see check.StandardAnswers
	shown := expectation{fits: func(e *wire.Event) bool { return namesRoot(e, standard) }}
	if !ok || p.missing(p.Session, mark, []expectation{shown}, p.Soon(check.AtOnce)) != nil {
		return nil
	}
	p.Notices = []model.Notice{{}, {Turns: rootsFact}}
	return &fact{name: rootsFact, id: ids.RootsListChangedRefetch, call: call, expects: func(set bool) []expectation {
		return []expectation{{"the root " + rootWhile(set),
			func(e *wire.Event) bool { return namesRoot(e, rootWhile(set)) }}}
	}}
}

// rootWhile is the root of a client while it has told of a change, and once it has told of another one.
func rootWhile(set bool) string {
	if set {
		return "file:///mcpconform-first"
	}
	return "file:///mcpconform-second"
}

// namesRoot reports whether a text in the result of a call names a URI.
func namesRoot(e *wire.Event, uri string) bool {
	if e.Kind != wire.KindMessage || e.From != wire.Server || e.Msg.Kind != wire.Result {
		return false
	}
	blocks, _ := at(e.Msg.Result, "content").([]any)
	return slices.ContainsFunc(blocks, func(block any) bool {
		text, _ := at(block, "text").(string)
		return strings.Contains(text, uri)
	})
}

// turnRoots changes the roots of a session and tells the server.
func (c *course) turnRoots(ctx context.Context) error {
	set := !c.holds[rootsFact]
	if c.root == nil {
		c.root = new(atomic.Pointer[string])
		answers := check.StandardAnswers()
		answers[listRoots] = func(context.Context, any) (any, *wire.Error) {
			return map[string]any{"roots": []any{root(*c.root.Load(), nil)}}, nil
		}
		c.session.Answer(answers)
	}
	uri := rootWhile(set)
	c.root.Store(&uri)
	c.holds[rootsFact] = set
	return c.session.Notify(ctx, rootsChanged, nil)
}

// restoreRoots gives the session the roots that other checks expect.
func (c *course) restoreRoots(ctx context.Context) {
	if c.root != nil {
		c.session.Answer(check.StandardAnswers())
		_ = c.session.Notify(ctx, rootsChanged, nil) // a session that has ended is not used again
	}
}

// progressKept is the progress of a call with the same token each time: the rules judge which token comes back.
func (p *sequenceRun) progressKept() *fact {
	call, ok := p.Target.ToolFor("progress")
	if !ok || call.Tool == p.slowTool() {
		return nil
	}
	if _, ok := p.tryCall(call); !ok {
		return nil
	}
	return &fact{name: "progress", call: call, expects: func(bool) []expectation { return nil }}
}

func (p *sequenceRun) slowTool() string {
	if p.slow == nil {
		return ""
	}
	return p.slow.Tool
}

// probe tests by a call whether a fact holds. A server may take a moment to learn what has changed, and a rate limit
// may hold back an expected message. So probe makes the call again soon, and once more after the whole time.
func (c *course) probe(a model.Action) *model.Misstep {
	f := c.facts[a.Word]
	set := c.holds[f.name]
	var expected []expectation
	if _, known := c.holds[f.name]; known || f.id == "" {
		expected = f.expects(set)
	}
	if f.settles && !set {
		c.Pause(time.Until(c.turned[f.name].Add(judge.Crossing)))
	}
	soon := c.Soon(check.Later)
	times := []time.Duration{soon, c.patience - soon, c.patience}
	if c.hasty {
		times = []time.Duration{c.Soon(check.AtOnce)}
	}
	var missing *expectation
	for _, most := range times {
		mark := c.session.Log().Len()
		pending, err := c.session.Start(c.Context, "tools/call", withToken(f.call.Params(), "mcpconform-probe-"+f.name))
		if err != nil {
			return c.ended(model.NoRequest, err)
		}
		if w := c.judge(&requested{Pending: pending, action: a}); w != nil {
			return w
		}
		if x, _ := pending.Await(c.Context); !worked(x) || !listensIn(c.session) {
			return nil // a tool may fail
		}
		missing = c.missing(c.session, mark, expected, most)
		if missing == nil || f.cutOff(c.session.Log().Events()[mark:], expected) {
			return nil
		}
	}
	if f.shared && c.changedElsewhere(f) {
		c.Disturbed("while the tool %q was called, other sessions set the log level", f.call.Tool)
	}
	return &model.Misstep{Kind: model.Lost, Word: a.Subject(), Set: set,
		Message: "does not bring " + missing.what + " any more"}
}

// changedElsewhere reports whether another session may have set a log level since this one has.
func (c *course) changedElsewhere(f *fact) bool {
	last := c.session.Log().Requests(wire.Client, "logging/setLevel")
	if len(last) == 0 {
		return false
	}
	any := func(int) bool { return true }
	from := last[len(last)-1].Request
	return judge.LevelsSet(c.Logs()).Elsewhere(from.Conn, from.At, math.MaxInt64, any)
}

// kept returns the actions that give a fact the lost value, and then test it.
func (p *sequenceRun) kept(w *model.Misstep) []model.Action {
	i := model.FactWord - w.Word
	var all []model.Action
	turn := func(set bool) {
		for _, a := range p.Turning(i, set) {
			a.Number = len(all)
			all = append(all, a, model.Action{Kind: model.Await})
		}
	}
	turn(true)
	if !w.Set {
		turn(false)
	}
	return model.Valid(append(all, model.Action{Kind: model.Probe, Word: i}), p.Options)
}

// keeps records the change that an answer makes. It also compares a list with its last answer, unless the server has
// announced a change.
func (c *course) keeps(a model.Action, x *client.Exchange) *model.Misstep {
	w := c.words[a.Word]
	if name := w.Sets + w.Unsets; name != "" && x.Result() != nil {
		c.holds[name], c.turned[name] = w.Sets != "", time.Now()
		return nil
	}
	feature, _, _ := strings.Cut(w.method, "/")
	before := c.pages[a.Word]
	c.pages[a.Word] = x
	declared := c.Session.Capability(feature+".listChanged") && listensIn(c.session)
	if before == nil || !w.paged && !declared || c.sameItems(w, before, x) {
		return nil
	}
	change := "notifications/" + feature + "/list_changed"
	told := []expectation{{fits: func(e *wire.Event) bool { return tells(e, change) }}}
	if c.missing(c.session, before.Request.Seq, told, c.Soon(check.Later)) == nil {
		return nil
	}
	return &model.Misstep{Kind: model.Differs, Word: a.Word, Message: "brings other items than before"}
}

// sameItems reports whether two answers have the same items of a list, if they are lists. The later page may be
// longer or shorter.
func (p *sequenceRun) sameItems(w *word, before, x *client.Exchange) bool {
	i := slices.IndexFunc(lists, func(l listOperation) bool { return l.method == w.method })
	return i < 0 || beginAlike(x, before, lists[i].member, lists[i].key)
}

// confirmedFact reports that a fact did not hold, or a list has changed, after unrelated actions. It returns false if
// that is legal, or if no sentence is broken.
func (p *sequenceRun) confirmedFact(w *model.Misstep) bool {
	message := p.subject(w) + " " + w.Message + "; here the client does this: " + p.describe(w.Sequence)
	if slices.ContainsFunc(w.Sequence, func(a model.Action) bool { return p.mayChange(a, w.Kind) }) {
		p.Note("%s; the tool may have changed that", message)
		return false
	}
	if w.Kind == model.Differs {
		feature, _, _ := strings.Cut(p.words[w.Word].method, "/")
		id := feature + ".list-changed.sent"
		if p.words[w.Word].paged {
			id = p.words[w.Word].id
		}
		p.Violation(id, message+"; no notification announced a change of the list", w.Events...)
		return true
	}
	// Shorter waits than before showed which part of the sequence it takes.
	p.hasty = false
	if p.Again(w, w.Sequence) == nil {
		p.Note("%s; with more time the server behaves as expected", message)
		return false
	}
	id := p.facts[model.FactWord-w.Word].id
	if id == "" {
		p.Note("%s", message)
		return false
	}
	p.Violation(id, message, w.Events...)
	return true
}

// mayChange reports whether an action calls a tool that may have changed the offers to the client. Any call may change
// a list. Another fact is changed only by a call of a word, and only if the tool lacks the hint readOnlyHint.
func (p *sequenceRun) mayChange(a model.Action, kind model.Fault) bool {
	if kind == model.Differs || a.Kind != model.Ask || !p.calls(a) {
		return kind == model.Differs && p.calls(a)
	}
	return !slices.ContainsFunc(p.Target.Callable(), func(t map[string]any) bool {
		return t["name"] == p.words[a.Word].params["name"] && at(t, "annotations", "readOnlyHint") == true
	})
}
