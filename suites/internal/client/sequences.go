package client

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/mcpconform/mcpconform/reference/server"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
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
	Requirements: []string{ids.BaseResponsePresent, ids.PingEitherSide, ids.BaseErrorMethodNotFound},
	Shows: []string{"base.response.*", "ping.*", ids.RootsListAnswered, ids.SamplingCapabilityHonoured,
		ids.ElicitationCapabilityHonoured, "elicitation.content.*", "cancellation.*", "base.notification.*",
		"*.list-changed.unsolicited", "logging.message.*", "progress.*", ids.RootsListChangedNotify,
		ids.HTTPClientSessionHeader, ids.HTTPClientVersionHeader},
	Needs: needsToAsk,
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
	// text and integer are the type of its ids, if they do not change in turn.
	text, integer bool
}

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

// sequencer plays sequences with a client.
type sequencer struct {
	*client.Asker
	model.Player
	course
	words    []*asked
	works    []*asked // those that are begun and cancelled
	notices  []news
	requests int           // in all runs
	made     map[int]*sent // in this run, by number
	progress float64       // that was reported last
	patience time.Duration // for an answer, once it is known that it may be missing; 0 before
	slowest  time.Duration // answer so far
}

// course is the outcome of a sequence.
type course struct {
	served  int
	misstep *model.Misstep
	left    *model.Misstep // the client ended while the server waited for it
	blamed  string         // the requirement that is broken
	told    string         // what the server did, in words
	// fatal is a sequence after which the client is gone, answers nothing any more, or has lost a capability.
	fatal []model.Action
	// unserved says that the client serves a request of a user no more, although it answers pings.
	unserved bool
	// asked are the requests of a user in the sequence alone.
	asked   []model.Action
	options model.Options
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

// runSequence plays a sequence in a session: the one of this seed, or part if that is given. It repeats a faulty
// sequence and makes it smaller and smaller.
func runSequence(a *client.Asker, part []model.Action) course {
	p := &sequencer{Asker: a}
	p.Player = model.Player{Party: p, Until: a.Deadline(), Replays: mostReplays}
	if p.vocabulary(); len(p.words) == 0 {
		return p.course
	}
	p.Works, p.Finishes, p.WorkTopic, p.Length = mostWorks, 2, p.works[0].Topics[0], sequenceLength
	if a.Choice.Budget == result.Thorough {
		p.Length = thoroughLength
	}
	p.notices = p.allNews()
	for _, n := range p.notices {
		p.Notices = append(p.Notices, n.Notice)
	}
	p.options = p.Options
	run := p.Begin()
	if part == nil {
		part = model.Generate(rand.New(a.Choice.Source(sequenced)), p.Options)
	} else if !p.knows(part) {
		return p.course
	}
	if w := p.Play(run, part); w != nil && !w.Gone && p.confirmed(w) {
		p.misstep, p.left = w, nil
	} else if p.left != nil {
		last := sinceAwait(p.left.Sequence)
		p.told, p.blamed, p.fatal = p.describe(last), p.blame(last), p.left.Sequence
	}
	p.awaitNews()
	return p.course
}

// sinceAwait returns the last actions of a sequence, those since the client had answered all requests.
func sinceAwait(sequence []model.Action) []model.Action {
	for i := len(sequence) - 2; i >= 0; i-- {
		if sequence[i].Kind == model.Await {
			return sequence[i+1:]
		}
	}
	return sequence
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
			r := p.send(&w, n, model.Slow)
			e := p.answer(r)
			if e == nil {
				p.cancel(r.id)
			}
			if !p.asExpected(&w, e) {
				return
			}
		}
		p.words, p.Words = append(p.words, &w), append(p.Words, &w.Word)
	}
	add(asked{Word: about("ping"), what: "a ping whose id is a string", method: "ping", requirement: ids.PingEitherSide,
		text: true})
	add(asked{Word: about("ping"), what: "a ping whose id is an integer", method: "ping",
		requirement: ids.PingEitherSide, integer: true})
	unknown := about("unknown")
	unknown.Refused = true
	add(asked{Word: unknown, what: "a request of an unknown method", method: "com.example/no-such-method",
		requirement: ids.BaseErrorMethodNotFound})
	if len(p.words) < 3 {
		p.words = nil
		return // other scenarios judge that
	}
	if p.Has("roots") {
		add(asked{Word: about("user", "roots"), what: "roots/list", method: "roots/list",
			requirement: ids.RootsListAnswered, user: true})
	}
	if p.Has("sampling") {
		add(asked{
			Word: about("user"), what: "a sampling request", method: "sampling/createMessage",
			requirement: ids.SamplingCapabilityHonoured, user: true,
			params: sampling(nil),
		})
	}
	if p.Has("elicitation") && p.Request.Session.Version() >= server.Version {
		for _, name := range []string{"string", "integer"} {
			add(asked{
				Word: about("user"), what: "a form for a value of type " + name, method: "elicitation/create",
				requirement: ids.ElicitationCapabilityHonoured, user: true,
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
	var all []news
	add := func(what, requirement string, send func(), topics ...string) {
		all = append(all, news{model.Notice{Topics: topics}, what, requirement, send})
	}
	add("sends an unknown notification", ids.BaseNotificationUnknownNoResponse,
		func() { p.Notify("notifications/com.example/unknown", nil) }, "unknown", "user")
	for _, list := range []string{"tools", "prompts", "resources"} {
		if c.Declared(wire.Server, list+".listChanged") {
			add("sends that the "+list+" have changed", list+".list-changed.unsolicited",
				func() { p.Notify("notifications/"+list+"/list_changed", nil) }, "roots")
		}
	}
	if c.Declared(wire.Server, "logging") {
		add("sends a log message", ids.LoggingDefaultServerDecides, func() {
			p.Notify("notifications/message", map[string]any{"level": "emergency", "data": "a sequence"})
		}, "user")
	}
	report := func(token any, breaks ...string) {
		p.progress++
		p.Notify("notifications/progress", map[string]any{"progressToken": token, "progress": p.progress}, breaks...)
	}
	if token, ok := p.Request.Token(); ok {
		delete(p.Request.Params, "_meta") // so that nothing else reports progress
		add("reports progress of the request that waits", ids.ProgressNotify, func() { report(token) }, "user")
	}
	var ended any = "no-such-token"
	for _, x := range c.Exchanges {
		if x.From() == wire.Client && x.Token != nil && x.Response != nil {
			ended = wire.At(x.Request.Msg.Params, "_meta", "progressToken")
		}
	}
	add("reports progress of a request that is over", ids.BaseNotificationMalformedNoResponse,
		func() { report(ended, "*") }, "user")
	return all
}

// Begin begins a run in the same session. A ping sets it apart from what came before.
func (p *sequencer) Begin() model.Run {
	if p.left != nil {
		return nil
	}
	p.separate()
	p.made = make(map[int]*sent)
	return p
}

// Same reports whether a replay shows the same misstep. A client that left need not have answered.
func (p *sequencer) Same(w, again *model.Misstep) bool { return w.Same(again) && !again.Gone }

// Do does an action.
func (p *sequencer) Do(a model.Action) *model.Misstep {
	switch a.Kind {
	case model.Ask:
		p.made[a.Number] = p.send(p.words[a.Word], a.Number, a.Word)
	case model.Work:
		p.made[a.Number] = p.send(p.workOf(a.Number), a.Number, model.Slow)
	case model.Cancel:
		of := p.made[a.Of]
		var breaks []string
		if e, _ := p.Await(p.Request.Session.Context(), 0, of.from, of.id); e != nil {
			breaks = []string{ids.CancellationInProgress} // the model knows of no answer before it awaits one
		}
		p.cancel(of.id, breaks...)
	case model.CancelEnded:
		p.cancel(p.made[a.Of].id, "*")
	case model.CancelUnknown:
		p.cancel(wire.StringID(sequencePrefix+"never-made"), "*")
	case model.Notify:
		p.notices[a.Word].send()
	case model.Malformed:
		p.Notify("notifications/progress", nil, "*")
	}
	return nil
}

// workOf returns the request that takes its time and has a number.
func (p *sequencer) workOf(number int) *asked { return p.works[number%len(p.works)] }

// End leaves the session to the next run.
func (p *sequencer) End(*model.Misstep) {}

// send makes a request. If the request leaves the type of its id open, number decides it.
func (p *sequencer) send(w *asked, number, word int) *sent {
	p.requests++
	id := wire.StringID(sequencePrefix + strconv.Itoa(p.requests))
	if w.integer || !w.text && number%2 == 0 {
		id = wire.IntID(int64(firstSequenceID + p.requests))
	}
	r := &sent{asked: w, id: id, word: word, from: p.Request.Session.Log().Len(), began: time.Now()}
	message := map[string]any{"id": json.RawMessage(id.String()), "method": w.method}
	if w.params != nil {
		message["params"] = w.params
	}
	var breaks []string
	if w.Refused {
		breaks = []string{ids.LifecycleCapabilityExperimentalGated}
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
		return e.Kind == wire.KindMessage && e.Msg.Method == "notifications/roots/list_changed" || client.HangsUp(e)
	})
}

// alone makes a request and waits for the answer. A ping before it sets it apart from what came before.
func (p *sequencer) alone(w *asked, number int) *wire.Event {
	p.separate()
	return p.answer(p.send(w, number, model.Slow))
}

// separate sends a ping, if the client answers pings, and waits for the answer.
func (p *sequencer) separate() {
	if len(p.words) > 0 {
		p.answer(p.send(p.words[0], 0, model.Slow))
	}
}

// asExpected reports whether a request got the kind of answer that it gets alone.
func (p *sequencer) asExpected(w *asked, e *wire.Event) bool {
	return e != nil && (e.Msg.Kind == wire.ErrorResponse) == w.Refused
}

// Judge waits for the answer to a request and returns its misstep, or nil.
func (p *sequencer) Judge(request model.Action) *model.Misstep {
	r := p.made[request.Number]
	e := p.answer(r)
	if e == nil && (p.HasLeft(r.from) || p.Unread(r.id)) {
		p.left = &model.Misstep{Word: r.word, Gone: true} // or it does not read the stream any more
		return p.left
	}
	proof := p.Request.Session.Log().Conversation().Newest(wire.Server, r.id).Events()
	switch {
	case e == nil:
		if p.patience == 0 && !r.user {
			p.Missed(r.id, r.from, r.began, client.AnswerTo(r.method))
		}
		return &model.Misstep{Word: r.word, Message: r.what + " gets no answer", Events: proof}
	case r.word == model.Slow, p.asExpected(r.asked, e), r.user && (e.Msg.Error == nil || !asInvalid(e.Msg.Error.Code)):
		p.served++
		return nil
	}
	return &model.Misstep{
		Kind: model.Unserved, Word: r.word, Message: r.what + " gets " + outcome(e), Events: proof,
		// A model provider may fail, and so may the source of the roots.
		Mild: r.user && e.Msg.Error.Code == internalError,
	}
}

// confirmed replays a faulty sequence and makes it small. It reports false if the fault cannot be confirmed, or is
// legal.
func (p *sequencer) confirmed(w *model.Misstep) bool {
	p.patience = max(4*p.slowest, p.Patience/quickShare)
	p.Until = time.Now().Add(p.Patience / 2)
	control := p.works[0]
	if w.Word != model.Slow {
		control = p.words[w.Word]
	}
	p.blamed = ids.BaseResponsePresent
	if w.Kind == model.Unserved {
		p.blamed = control.requirement
	}
	if from := p.Request.Session.Log().Len(); !p.asExpected(control, p.alone(control, 0)) {
		p.told = p.describe(w.Sequence[max(0, len(w.Sequence)-mostTold):])
		return p.lasts(w, control, p.HasLeft(from))
	}
	found := p.Confirm(w)
	if found == nil {
		return false
	}
	found = p.Smallest(w, found)
	if w.Kind == model.Unserved {
		// A refusal only beside other requests is another question (docs/positions.md, requests-beside-others).
		if found = p.Again(w, model.Serial(found.Sequence)); found == nil {
			return false
		}
	}
	p.told, w.Events = p.describe(found.Sequence), found.Events
	return p.asExpected(control, p.alone(control, 0))
}

// lasts takes up a fault after which the client serves nothing as before, and reports whether it counts. Requests that
// no user decides do not stop being served by themselves. A user may have had enough: for his requests, further
// launches have to show where the fault comes from.
func (p *sequencer) lasts(w *model.Misstep, control *asked, gone bool) bool {
	switch {
	case w.Kind == model.NoAnswer && (!control.user || p.deaf()):
		p.fatal = w.Sequence
	case control.user && !gone:
		p.fatal, p.unserved = w.Sequence, true
		p.asked = model.Valid(slices.DeleteFunc(slices.Clone(w.Sequence), func(a model.Action) bool {
			return a.Kind == model.Ask && !p.words[a.Word].user || a.Kind >= model.Cancel
		}), p.Options)
	case control.user:
		return false
	}
	return true
}

// deaf reports whether the client does not answer pings any more, as it did before.
func (p *sequencer) deaf() bool {
	p.patience = p.Patience / 2
	ping := p.send(p.words[0], 0, 0)
	if p.answer(ping) != nil || p.HasLeft(ping.from) || p.Unread(ping.id) {
		return false
	}
	p.Missed(ping.id, ping.from, ping.began, client.AnswerTo(ping.method))
	return true
}

// mostTold is the number of actions that a finding tells if its sequence could not be made small.
const mostTold = 12

// blame returns the requirement that a client breaks if it ends after some actions. This is the requirement to
// tolerate an action if there was only one of the kind, or else the requirement to answer requests.
func (p *sequencer) blame(last []model.Action) string {
	var requirements []string
	for _, a := range last {
		id := model.Tolerated[a.Kind]
		if a.Kind == model.Notify {
			id = p.notices[a.Word].requirement
		}
		if id != "" && !slices.Contains(requirements, id) {
			requirements = append(requirements, id)
		}
	}
	// If a client is free to end the session after one of the actions, that may be its reason.
	if free := slices.IndexFunc(requirements, freeToEnd); free >= 0 {
		return requirements[free]
	}
	if len(requirements) == 1 {
		return requirements[0]
	}
	return ids.BaseResponsePresent
}

// describe puts a sequence in words.
func (p *sequencer) describe(sequence []model.Action) string {
	return model.Describe(sequence, func(a model.Action) string {
		switch a.Kind {
		case model.Ask:
			return "sends " + p.words[a.Word].what
		case model.Work:
			return "sends " + p.workOf(a.Number).what
		case model.Cancel:
			return "cancels " + p.workOf(a.Of).what
		case model.Finish:
			return "waits for the other one"
		case model.Notify:
			return p.notices[a.Word].what
		}
		return ""
	})
}

// judgeSequences judges the outcomes of the sequences.
func judgeSequences(t *client.T) {
	for _, c := range courses(t) {
		switch gone := gone(t); {
		case c.misstep != nil:
			report := t.Violation
			if c.misstep.Mild {
				report = t.Warning
			}
			const where = ", although it is answered when it is sent alone; here the server does this: "
			report(c.blamed, c.misstep.Message+where+c.told, c.misstep.Events...)
		case c.left != nil && gone != "" && freeToEnd(c.blamed):
			t.Inconclusive(gone+" when the server did this: "+c.told,
				append(slices.Clone(t.Scenario.Requirements), c.blamed)...)
		case c.left != nil && gone != "":
			t.Violation(c.blamed, gone+" when the server did this: "+c.told, client.LastEvents(t.Last(), 6)...)
		case c.served > 0 && c.left == nil:
			t.Exercised(t.Scenario.Requirements...)
		case c.left == nil:
			t.Inconclusive("the client does not answer pings and refuse unknown methods soon enough for a sequence "+
				"of them", t.Scenario.Requirements...)
		}
	}
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
				c.misstep = nil
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
		slices.ContainsFunc(courses(t), func(c *course) bool { return c.served > 0 && c.left == nil })
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
	if part := model.Ending(c.fatal, c.options, fatal); part != nil {
		model.Shrink(part, c.options, fatal)
	}
	return least
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
