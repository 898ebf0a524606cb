package client

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/client"
	"github.com/mcpconform/mcpconform/suites/internal/judge"
	"github.com/mcpconform/mcpconform/suites/internal/model"
	"github.com/mcpconform/mcpconform/suites/result"
)

const sequenced = "sequences/session"

// sequenceScenarios send requests in every order (basic#requests). If a client answers a request alone, it also
// answers it after and beside any others. Its roots, its capabilities and the headers of its session are facts: it
// keeps them whatever else the server does. Rules compare the lists of roots and judge the headers.
var sequenceScenarios = []*client.Scenario{{
	Name:         sequenced,
	Requirements: []string{"base.response.present", "ping.either-side", "base.error.method-not-found"},
	Shows: []string{
		"base.response.*", "ping.*", "roots.list.answered", "sampling.capability.honoured",
		"elicitation.capability.honoured", "elicitation.content.*",
		"cancellation.*", "base.notification.*", "*.list-changed.unsolicited", "logging.message.*", "progress.*",
		"roots.list-changed.notify", "http.client.session-header", "http.client.version-header",
	},
	Needs: client.NeedsToAsk,
	Options: func(run *client.ScenarioRun) server.Options {
		return client.Scripted(func(a *client.Asker) {
			part, _ := run.Part.([]model.Action)
			run.Notes.Add(new(runSequence(a, part)))
		})(run)
	},
	Judge:   judgeSequences,
	Smaller: shortened,
}}

// asked is a request to the client, with its answer to the request alone.
type asked struct {
	model.Word
	what, method string
	params       map[string]any
	// requirement is broken if the client answers the request in another way than alone.
	requirement string
	// user says that the request may wait for a user, and that the user may refuse it.
	user bool
	// ids is the type of its ids.
	ids idType
}

// idType is a type of ids.
type idType uint8

const (
	inTurn idType = iota // one after the other
	ofText
	ofInteger
)

// news is a notification to the client.
type news struct {
	model.Notice
	what string
	// requirement has the client tolerate the notification.
	requirement string
	send        func()
}

// These constants limit the length of sequences, and the requests in them that may wait for a user.
const (
	sequenceLength  = 120
	thoroughLength  = 800
	mostWorks       = 6
	mostOfUser      = 15
	mostReplays     = 60
	quickShare      = 10 // of the patience: within that comes an answer for which nobody is asked
	sequencePrefix  = "sequence-"
	firstSequenceID = 7_500_000
)

// sequencer runs sequences with a client.
type sequencer struct {
	*client.Asker
	course
	words    []*asked
	works    []*asked // those that are begun and cancelled
	notices  []news
	requests int           // in all runs
	progress float64       // that was reported last
	patience time.Duration // for an answer, once it is known that it may be missing; 0 before
	slowest  time.Duration // answer so far
	replays  int
	until    time.Time // when nothing more is begun
}

// course is the outcome of a sequence.
type course struct {
	served  int
	stumble *stumble
	left    bool           // the client ended while the server waited for it
	sofar   []model.Action // what was done before
	last    []model.Action // of that, what was done since it had answered everything
	blamed  string         // the requirement by which it lives with that
	told    string         // what it is, in words
	// fatal is a sequence after which the client is gone, answers nothing any more, or has lost a capability.
	fatal []model.Action
	// unserved says that the client serves a request of a user no more, although it answers pings.
	unserved bool
	// asked are the requests of a user in the sequence alone.
	asked   []model.Action
	options model.Options
}

// stumble is an answer that differs from the answer to the request alone.
type stumble struct {
	word          int // in the vocabulary, or slow
	missing       bool
	problem, told string
	requirement   string
	warns         bool
	events        []*wire.Event
	sequence      []model.Action // up to there
}

// slow stands in place of a position in the vocabulary.
const slow = -1

func (s *stumble) same(other *stumble) bool {
	return other != nil && s.word == other.word && s.missing == other.missing
}

// sent is a request that the server has made.
type sent struct {
	*asked
	id    wire.ID
	word  int
	from  int
	began time.Time
}

// courses returns the outcomes of the sequences of a scenario run. Each session runs one sequence.
func courses(t *client.T) []*course {
	var all []*course
	for _, one := range t.Notes.All() {
		if c, ok := one.(*course); ok {
			all = append(all, c)
		}
	}
	return all
}

// fatalCourse returns the first course after which the client was gone or answered nothing any more, or nil.
func fatalCourse(t *client.T) *course {
	all := courses(t)
	if i := slices.IndexFunc(all, func(one *course) bool { return one.fatal != nil }); i >= 0 {
		return all[i]
	}
	return nil
}

// runSequence runs a sequence in a session: the one of this seed, or part if that is given. It repeats a faulty
// sequence and makes it smaller and smaller.
func runSequence(a *client.Asker, part []model.Action) course {
	p := &sequencer{Asker: a, until: a.Began.Add(a.Patience)}
	if p.vocabulary(); len(p.words) == 0 {
		return p.course
	}
	p.options = model.Options{Works: mostWorks, Finishes: 2, WorkTopic: p.works[0].Topics[0], Length: sequenceLength}
	if a.Choice.Budget == result.Thorough {
		p.options.Length = thoroughLength
	}
	for _, w := range p.words {
		p.options.Words = append(p.options.Words, w.Word)
	}
	p.notices = p.allNews()
	for _, n := range p.notices {
		p.options.Notices = append(p.options.Notices, n.Notice)
	}
	p.separate()
	if part == nil {
		part = model.Generate(rand.New(a.Choice.Source(sequenced)), p.options)
	} else if !p.knows(part) {
		return p.course
	}
	s := p.run(part)
	switch {
	case p.left:
		p.told, p.blamed, p.fatal = p.describe(p.last), p.blame(p.last), p.sofar
	case s != nil && p.confirmed(s):
		p.stumble, p.left = s, false
	}
	p.awaitNews()
	return p.course
}

// knows reports whether the vocabulary has all words of a sequence.
func (p *sequencer) knows(sequence []model.Action) bool {
	return !slices.ContainsFunc(sequence, func(a model.Action) bool {
		return a.Kind == model.Ask && a.Word >= len(p.words) || a.Kind == model.Notify && a.Word >= len(p.notices)
	})
}

// vocabulary collects the requests with a known answer: the client answers them twice alone, soon and as it should.
// It leaves out requests that a person has to answer.
func (p *sequencer) vocabulary() {
	p.patience = p.Patience / quickShare
	defer func() { p.patience = 0 }()
	add := func(w asked) {
		if w.Kept = w.user; w.user && p.Choice.Budget != result.Thorough {
			w.Most = mostOfUser
		}
		for n := range 2 {
			p.separate()
			r := p.send(&w, n, slow)
			e := p.answer(r)
			if e == nil {
				p.cancel(r.id)
			}
			if !p.asExpected(&w, e) {
				return
			}
		}
		p.words = append(p.words, &w)
	}
	add(asked{Word: about("ping"), what: "a ping whose id is a string", method: "ping", requirement: "ping.either-side",
		ids: ofText})
	add(asked{Word: about("ping"), what: "a ping whose id is an integer", method: "ping",
		requirement: "ping.either-side", ids: ofInteger})
	unknown := about("unknown")
	unknown.Refused = true
	add(asked{Word: unknown, what: "a request of an unknown method", method: "com.example/no-such-method",
		requirement: "base.error.method-not-found"})
	if len(p.words) < 3 {
		p.words = nil
		return // other scenarios judge that
	}
	if p.Has("roots") {
		add(asked{Word: about("user", "roots"), what: "roots/list", method: "roots/list",
			requirement: "roots.list.answered", user: true})
	}
	if p.Has("sampling") {
		add(asked{
			Word: about("user"), what: "a sampling request", method: "sampling/createMessage",
			requirement: "sampling.capability.honoured", user: true,
			params: map[string]any{"messages": []any{sampleText("Say hello.")}, "maxTokens": 50},
		})
	}
	if p.Has("elicitation") && p.Request.Session.Version() >= server.Version {
		for _, name := range []string{"string", "integer"} {
			add(asked{
				Word: about("user"), what: "a form for a value of type " + name, method: "elicitation/create",
				requirement: "elicitation.capability.honoured", user: true,
				params: form(name),
			})
		}
	}
	p.works = slices.DeleteFunc(slices.Clone(p.words), func(w *asked) bool { return !w.user })
	if len(p.works) == 0 {
		p.works = p.words[:1]
	}
}

func about(topics ...string) model.Word { return model.Word{Topics: topics} }

// allNews returns the notifications that the server may send, as far as it declares them.
func (p *sequencer) allNews() []news {
	c := p.Request.Session.Log().Conversation()
	all := []news{{
		model.Notice{Topics: []string{"unknown", "user"}}, "sends an unknown notification",
		"base.notification.unknown-no-response",
		func() { p.Notify("notifications/com.example/unknown", nil) },
	}}
	for _, list := range []string{"tools", "prompts", "resources"} {
		if c.Declared(wire.Server, list+".listChanged") {
			all = append(all, news{
				model.Notice{Topics: []string{"roots"}}, "sends that the " + list + " have changed",
				list + ".list-changed.unsolicited",
				func() { p.Notify("notifications/"+list+"/list_changed", nil) },
			})
		}
	}
	if c.Declared(wire.Server, "logging") {
		all = append(all, news{model.Notice{Topics: []string{"user"}}, "sends a log message",
			"logging.default.server-decides", func() {
				p.Notify("notifications/message", map[string]any{"level": "emergency", "data": "a sequence"})
			}})
	}
	report := func(token any, breaks ...string) {
		p.progress++
		p.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": p.progress}, breaks...)
	}
	if token, ok := p.Request.Token(); ok {
		delete(p.Request.Params, "_meta") // so that nothing else reports progress
		all = append(all, news{model.Notice{Topics: []string{"user"}}, "reports progress of the request that waits",
			"progress.notify", func() { report(token) }})
	}
	var ended any = "no-such-token"
	for _, x := range c.Exchanges {
		if x.From() == wire.Client && x.Token != nil && x.Response != nil {
			ended = wire.At(x.Request.Msg.Params, "_meta", "progressToken")
		}
	}
	return append(all, news{
		model.Notice{Topics: []string{"user"}}, "reports progress of a request that is over",
		"base.notification.malformed-no-response",
		func() { report(ended, "*") },
	})
}

// run runs a sequence and returns its first fault, or nil.
func (p *sequencer) run(sequence []model.Action) *stumble {
	made := make(map[int]*sent)
	var open, running []*sent
	fenced := 0 // position behind the last action before which all was answered
	for i := 0; i < len(sequence); i++ {
		a := sequence[i]
		var awaited []*sent
		switch a.Kind {
		case model.Ask:
			made[a.Number] = p.send(p.words[a.Word], a.Number, a.Word)
			open = append(open, made[a.Number])
		case model.Work:
			made[a.Number] = p.send(p.works[a.Number%len(p.works)], a.Number, slow)
			running = append(running, made[a.Number])
		case model.Await:
			awaited, open = open, nil
		case model.Finish:
			awaited, running = running, nil
		case model.Cancel:
			var breaks []string
			if e, _ := p.Await(p.Request.Session.Context(), 0, made[a.Of].from, made[a.Of].id); e != nil {
				breaks = []string{"cancellation.in-progress"} // the model knows of no answer before it awaits one
			}
			p.cancel(made[a.Of].id, breaks...)
			running = slices.DeleteFunc(running, func(r *sent) bool { return r == made[a.Of] })
		case model.CancelEnded:
			p.cancel(made[a.Of].id, "*")
		case model.CancelUnknown:
			p.cancel(wire.StringID(sequencePrefix+"never-made"), "*")
		case model.Notify:
			p.notices[a.Word].send()
		case model.Malformed:
			p.Notify("notifications/progress", nil, "*")
		}
		for _, r := range awaited {
			s := p.judge(r)
			if p.left || s != nil {
				p.last, p.sofar = sequence[fenced:i+1], sequence[:i+1]
				if s != nil {
					s.sequence = sequence[:i+1]
				}
				return s
			}
		}
		if a.Kind == model.Await {
			fenced = i + 1
			if time.Now().After(p.until) && i < len(sequence)-1 {
				sequence = model.Valid(sequence[:i+1], p.options)
			}
		}
	}
	return nil
}

// send makes a request. If the request leaves the type of its id open, number decides it.
func (p *sequencer) send(w *asked, number, word int) *sent {
	p.requests++
	id := wire.StringID(sequencePrefix + strconv.Itoa(p.requests))
	if w.ids == ofInteger || w.ids == inTurn && number%2 == 0 {
		id = wire.IntID(int64(firstSequenceID + p.requests))
	}
	r := &sent{asked: w, id: id, word: word, from: p.Request.Session.Log().Len(), began: time.Now()}
	message := map[string]any{"id": json.RawMessage(id.String()), "method": w.method}
	if w.params != nil {
		message["params"] = w.params
	}
	var breaks []string
	if w.Refused {
		breaks = []string{"lifecycle.capability.experimental-gated"}
	}
	p.Send(message, breaks...)
	return r
}

// cancel cancels a request. breaks names the requirements that this breaks, other than that the request has to be
// under way.
func (p *sequencer) cancel(id wire.ID, breaks ...string) {
	p.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id.String()),
		"reason": "no longer needed"}, breaks...)
}

// answer waits for the answer to a request, and returns nil if none comes.
func (p *sequencer) answer(r *sent) *wire.Event {
	patience := p.patience
	switch {
	case patience > 0:
	case r.user:
		patience = max(p.Patience, p.UserPatience)
	default:
		patience = p.Patience
	}
	e, _ := p.Await(p.Request.Session.Context(), patience, r.from, r.id)
	if e != nil {
		p.slowest = max(p.slowest, time.Since(r.began))
	}
	return e
}

// awaitNews gives a client whose roots have changed the time to announce that (client/roots#root-list-changes). A rule
// judges whether it does.
func (p *sequencer) awaitNews() {
	log := p.Request.Session.Log()
	var lists []any
	for _, x := range log.Conversation().Exchanges {
		if x.From() == wire.Server && x.Method() == "roots/list" && x.Result() != nil {
			lists = append(lists, x.Result())
		}
	}
	differs := func(list any) bool { return !reflect.DeepEqual(list, lists[0]) }
	if !p.Has("roots.listChanged") || !slices.ContainsFunc(lists, differs) {
		return
	}
	soon, cancel := context.WithTimeout(p.Request.Session.Context(), judge.Apart)
	defer cancel()
	_, _ = log.Await(soon, 0, func(e *wire.Event) bool {
		return e.Kind == wire.KindMessage && e.Msg.Method == client.RootsChanged || client.HangsUp(e)
	})
}

// alone makes a request and waits for the answer. A ping before it sets it apart from what came before.
func (p *sequencer) alone(w *asked, number int) *wire.Event {
	p.separate()
	return p.answer(p.send(w, number, slow))
}

// separate sends a ping, if the client answers pings, and waits for the answer.
func (p *sequencer) separate() {
	if len(p.words) > 0 {
		p.answer(p.send(p.words[0], 0, slow))
	}
}

// asExpected reports whether a request got the kind of answer that it gets alone.
func (p *sequencer) asExpected(w *asked, e *wire.Event) bool {
	return e != nil && (e.Msg.Kind == wire.ErrorResponse) == w.Refused
}

// judge waits for the answer to a request and returns its fault, or nil.
func (p *sequencer) judge(r *sent) *stumble {
	e := p.answer(r)
	if e == nil && (p.HasLeft(r.from) || p.Unread(r.id)) {
		p.left = true // or it does not read the stream any more
		return nil
	}
	proof := p.Request.Session.Log().Conversation().Newest(wire.Server, r.id).Events()
	switch {
	case e == nil:
		if p.patience == 0 && !r.user {
			p.Missed(r.id, r.from, r.began, client.AnswerTo(r.method))
		}
		return &stumble{word: r.word, missing: true, problem: r.what + " gets no answer",
			requirement: "base.response.present", events: proof}
	case r.word == slow, p.asExpected(r.asked, e), r.user && (e.Msg.Error == nil || !asInvalid(e.Msg.Error.Code)):
		p.served++
		return nil
	}
	return &stumble{
		word: r.word, problem: r.what + " gets " + outcome(e), requirement: r.requirement, events: proof,
		// A model provider may fail, and so may the source of the roots.
		warns: r.user && e.Msg.Error.Code == internalError,
	}
}

// confirmed repeats a faulty sequence and makes it small. It reports false if the fault cannot be confirmed, or is
// legal.
func (p *sequencer) confirmed(s *stumble) bool {
	p.patience = max(4*p.slowest, p.Patience/quickShare)
	p.until = time.Now().Add(p.Patience / 2)
	control := p.works[0]
	if s.word != slow {
		control = p.words[s.word]
	}
	if from := p.Request.Session.Log().Len(); p.left || !p.asExpected(control, p.alone(control, 0)) {
		s.told = p.describe(s.sequence[max(0, len(s.sequence)-mostTold):])
		return p.lasts(s, control, p.left || p.HasLeft(from))
	}
	var found *stumble
	for size := 8; found == nil; size *= 4 {
		part := s.sequence[max(0, len(s.sequence)-size):]
		if again, _ := p.replay(model.Valid(part, p.options)); s.same(again) {
			found = again
		}
		if len(part) == len(s.sequence) {
			break
		}
	}
	if found == nil {
		return false
	}
	model.Shrink(found.sequence, p.options, func(part []model.Action) (failed, ok bool) {
		again, ok := p.replay(part)
		if failed = ok && s.same(again); failed {
			found = again
		}
		return failed, ok
	})
	if !s.missing {
		// A refusal only beside other requests is another question (docs/positions.md, requests-beside-others).
		again, ok := p.replay(model.Serial(found.sequence))
		if !ok || !s.same(again) {
			return false
		}
		found = again
	}
	s.told, s.events = p.describe(found.sequence), found.events
	return p.asExpected(control, p.alone(control, 0))
}

// lasts takes up a fault after which the client serves nothing as before, and reports whether it counts. Requests that
// no user decides do not stop being served by themselves. A user may have had enough: for his requests, further
// launches have to show where the fault comes from.
func (p *sequencer) lasts(s *stumble, control *asked, gone bool) bool {
	switch {
	case s.missing && (!control.user || p.deaf()):
		p.fatal = s.sequence
	case control.user && !gone:
		p.fatal, p.unserved = s.sequence, true
		p.asked = model.Valid(slices.DeleteFunc(slices.Clone(s.sequence), func(a model.Action) bool {
			return a.Kind == model.Ask && !p.words[a.Word].user || a.Kind >= model.Cancel
		}), p.options)
	case control.user:
		return false
	}
	return true
}

// deaf reports whether the client does not answer pings any more, as it did before.
func (p *sequencer) deaf() bool {
	p.patience = p.Patience / 2
	ping := p.send(p.words[0], 0, 0)
	if p.left || p.answer(ping) != nil || p.HasLeft(ping.from) || p.Unread(ping.id) {
		return false
	}
	p.Missed(ping.id, ping.from, ping.began, client.AnswerTo(ping.method))
	return true
}

// mostTold is the number of actions that a finding tells if its sequence could not be made small.
const mostTold = 12

// replay runs a sequence again. It reports false if it is too late for that.
func (p *sequencer) replay(sequence []model.Action) (s *stumble, ok bool) {
	if p.replays++; p.left || p.replays > mostReplays || time.Now().After(p.until) {
		return nil, false
	}
	p.separate()
	return p.run(sequence), true
}

// toleratedBy names the requirements that have a client tolerate an action.
var toleratedBy = map[model.Kind]string{
	model.Cancel: "cancellation.either-side", model.CancelEnded: "cancellation.ignore-completed",
	model.CancelUnknown: "cancellation.ignore-unknown",
	model.Malformed:     "base.notification.malformed-no-response",
}

// blame returns the requirement that a client breaks if it ends after some actions. This is the requirement to
// tolerate an action if there was only one of the kind, or else the requirement to answer requests.
func (p *sequencer) blame(last []model.Action) string {
	var ids []string
	for _, a := range last {
		id := toleratedBy[a.Kind]
		if a.Kind == model.Notify {
			id = p.notices[a.Word].requirement
		}
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	// If a client is free to end the session after one of the actions, that may be its reason.
	if free := slices.IndexFunc(ids, freeToEnd); free >= 0 {
		return ids[free]
	}
	if len(ids) == 1 {
		return ids[0]
	}
	return "base.response.present"
}

// describe puts a sequence in words. The server does not wait between actions without a semicolon between them.
func (p *sequencer) describe(sequence []model.Action) string {
	said := map[model.Kind]string{
		model.Finish: "waits for the other one", model.Cancel: "cancels it",
		model.CancelEnded:   "cancels a request that was answered",
		model.CancelUnknown: "cancels a request that was never made",
		model.Malformed:     "sends notifications/progress without params",
	}
	var b strings.Builder
	gap := ""
	for _, a := range sequence {
		text := said[a.Kind]
		switch a.Kind {
		case model.Await:
			if gap != "" {
				gap = "; "
			}
			continue
		case model.Ask:
			text = "sends " + p.words[a.Word].what
		case model.Work:
			text = "sends " + p.works[a.Number%len(p.works)].what
		case model.Cancel:
			text = "cancels " + p.works[a.Of%len(p.works)].what
		case model.Notify:
			text = p.notices[a.Word].what
		}
		b.WriteString(gap + text)
		gap = ", "
	}
	return b.String()
}

// judgeSequences judges the outcomes of the sequences.
func judgeSequences(t *client.T) {
	for _, c := range courses(t) {
		switch gone := gone(t); {
		case c.stumble != nil && c.stumble.warns:
			t.Warning(c.stumble.requirement, c.stumble.message(), c.stumble.events...)
		case c.stumble != nil:
			t.Violation(c.stumble.requirement, c.stumble.message(), c.stumble.events...)
		case c.left && gone != "" && freeToEnd(c.blamed):
			t.Inconclusive(gone+" when the server did this: "+c.told,
				append(slices.Clone(t.Scenario.Requirements), c.blamed)...)
		case c.left && gone != "":
			t.Violation(c.blamed, gone+" when the server did this: "+c.told, client.LastEvents(t.Last(), 6)...)
		case c.served > 0 && !c.left:
			t.Exercised(t.Scenario.Requirements...)
		case !c.left:
			t.Inconclusive("the client does not answer pings and refuse unknown methods soon enough for a sequence of them",
				t.Scenario.Requirements...)
		}
	}
}

// message returns the message of the finding.
func (s *stumble) message() string {
	return s.problem + ", although it is answered when it is sent alone; here the server does this: " + s.told
}

// mostShortenings is how often a client is launched to find a small sequence after which it answers nothing more. No
// launch begins later than a time limit after the first, because a client that hangs costs a third of a limit each
// time.
const mostShortenings = 12

// shortened repeats a scenario with parts of a sequence after which the client was gone, answered nothing any more or
// had lost a capability. It returns the run with the smallest part that has the same effect. The loss of a capability
// counts only if it comes again, and does not come from the number of requests.
func shortened(t *client.T, again client.Again) *client.T {
	c := fatalCourse(t)
	if c == nil || !t.Accused() {
		return t
	}
	least := t
	if !t.Ending.Attended && (!c.unserved || servesAll(again, c.asked)) {
		least = smallest(t, again, c)
	}
	if c.unserved && least == t {
		for _, c := range courses(t) {
			if c.unserved {
				c.stumble = nil
			}
		}
		t.JudgeAgain()
	}
	return least
}

// servesAll reports whether the client serves the requests of a user in a sequence without what else the server did.
// A client may limit how often it asks its user (client/sampling#security-considerations).
func servesAll(again client.Again, asked []model.Action) bool {
	t := again(func(t *client.T) { t.Part = asked })
	return t != nil && fatalCourse(t) == nil &&
		slices.ContainsFunc(courses(t), func(c *course) bool { return c.served > 0 && !c.left })
}

// smallest repeats a scenario with smaller and smaller parts of a sequence.
func smallest(t *client.T, again client.Again, c *course) *client.T {
	least, launches, began := t, 0, time.Now()
	fatal := func(part []model.Action) (failed, ok bool) {
		if launches++; launches > mostShortenings || time.Since(began) > t.Timeout {
			return false, false
		}
		t := again(func(t *client.T) { t.Part = part })
		if t == nil {
			return false, false
		}
		if fatalCourse(t) == nil || !t.Accused() {
			return false, true
		}
		least = t
		return true, true
	}
	for size := 8; ; size *= 4 {
		part := model.Valid(c.fatal[max(0, len(c.fatal)-size):], c.options)
		failed, ok := fatal(part)
		if failed {
			model.Shrink(part, c.options, fatal)
		}
		if failed || !ok || size >= len(c.fatal) {
			return least
		}
	}
}

// gone says how the client ended too early, or "".
func gone(t *client.T) string {
	switch {
	case t.Died() != "":
		return "the client " + t.Died()
	case t.BrokeOff():
		return "the client ended the session"
	}
	return ""
}
