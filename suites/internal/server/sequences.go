package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/transport"
	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
	"github.com/mcpconform/mcpconform/suites/internal/model"
)

// basic#requests, in every order: what is answered alone is answered whatever came before it and
// runs beside it, and what the session keeps holds whatever else is asked (facts.go).
var sequenceChecks = []*check.Check{
	{
		Name:         "sequences/session",
		Requirements: []string{"base.response.present", "base.response.once", "base.response.id-echo"},
		Shows: slices.Concat(
			[]string{
				"pagination.server.stable-cursors", "logging.filter.*", "resources.updated.sent",
				"resources.updated.ends-with-unsubscribe",
				"roots.list-changed.refetch", "*.list-changed.sent", "progress.token.echo",
			},
			slices.Sorted(maps.Values(answeredBy)), slices.Sorted(maps.Values(tolerated)),
		),
		Needs: check.Needs{Session: check.Own, Options: capable, Liveness: true, ToolRoles: []string{
			"slow", "log-levels", "log", "resource-update", "roots", "progress", "sampling", "elicitation",
		}},
		Body: sequences,
	},
}

// word is a request that is over soon, and how it is answered alone.
type word struct {
	model.Word
	method string
	params map[string]any
	// id is the requirement that is broken if it is not answered as it is alone.
	id string
	// fickle says that what it asks for may be gone once a tool was called.
	fickle bool
	// paged says that the cursor of the first page is added, which each session gives itself.
	paged bool
}

func (w *word) String() string {
	switch {
	case w.paged:
		return w.method + " with a cursor"
	case w.Unsets+w.Sets == "":
		return w.method
	case w.params["level"] != nil:
		return w.method + " to " + w.params["level"].(string)
	}
	return w.method + " for " + wire.Quote(w.Unsets+w.Sets, 60)
}

// ask returns the params of the request in a session with these cursors. It says false if there is
// no further page to ask for.
func (w *word) ask(cursors map[string]any) (params map[string]any, ok bool) {
	if !w.paged {
		return w.params, true
	}
	cursor, ok := cursors[w.method]
	return map[string]any{"cursor": cursor}, ok
}

// options are those of a call of the request.
func (w *word) options() []client.Option {
	if w.Refused {
		return []client.Option{client.Deliberately("lifecycle.capability.experimental-gated")}
	}
	return nil
}

// answeredBy names the requirements by which requests are answered.
var answeredBy = map[string]string{
	"ping":                     "ping.either-side",
	"tools/list":               "tools.list.answered",
	"tools/call":               "tools.list.callable",
	"resources/list":           "resources.list.answered",
	"resources/templates/list": "resources.templates.answered",
	"resources/read":           "resources.read.answered",
	"resources/subscribe":      "resources.subscribe.accepted",
	"resources/unsubscribe":    "resources.unsubscribe.accepted",
	"prompts/list":             "prompts.list.answered",
	"prompts/get":              "prompts.get.answered",
	"completion/complete":      "completion.answered",
	"logging/setLevel":         "logging.set-level.all-levels",
}

// unknownMethod is refused wherever it comes.
const unknownMethod = "mcpconform/no-such-method"

// add adds a word to the vocabulary.
func (p *sequenceRun) add(method string, params map[string]any) *word {
	w := &word{Word: model.Word{Topics: topics(method, params)}, method: method, params: params, id: answeredBy[method]}
	p.words = append(p.words, w)
	return w
}

// vocabulary finds out what can be asked of the server, all of it with an answer that is known.
func (p *sequenceRun) vocabulary() {
	p.add(p.NoOp(), nil)
	w := p.add(unknownMethod, nil)
	w.id, w.Refused = "base.error.method-not-found", true
	for _, method := range p.Served() {
		if method == p.NoOp() {
			continue
		}
		p.add(method, nil).Kept = true
		if _, more := nextCursor(p.Target.List(method).Pages[0]); more {
			w := p.add(method, nil)
			w.id, w.paged, w.fickle, w.Alike = "pagination.server.stable-cursors", true, true, !p.Thorough()
		}
	}
	for _, rpc := range workingCalls(p.T) {
		w := p.add(rpc.Method, rpc.Params)
		if w.fickle = rpc.Method != "tools/call"; !w.fickle && !p.Thorough() {
			w.Most = mostCalls
		}
	}
}

// topics returns the topics of a request: its feature, or that of the reference for completions, and "list" for a
// list, since servers make all lists with the same code.
func topics(method string, params map[string]any) []string {
	topic, what, _ := strings.Cut(method, "/")
	switch ref, _ := wire.At(params, "ref", "type").(string); {
	case ref != "":
		topic = strings.TrimPrefix(ref, "ref/") + "s"
	case strings.HasSuffix(what, "list"):
		return []string{topic, "list"}
	}
	return []string{topic}
}

// How long sequences are, and how much of a run is spent on them.
const (
	sequenceLength = 150
	thoroughLength = 3000
	mostWorks      = 10
	mostCalls      = 15 // of a tool that is quick
	sequenceTime   = 3 * time.Second
	mostReplays    = 100
)

// sequences runs a sequence. If something goes wrong, it runs the sequence again in other sessions, from the
// beginning, and makes it smaller and smaller.
func sequences(t *check.T) {
	p := &sequenceRun{T: t, patience: t.Session.Options.Timeout, answered: make(map[int]bool)}
	o := &p.options
	*o = model.Options{
		Finishes: 1, WorkTopic: "tools", Length: sequenceLength,
		Streams: t.Target.Transport == transport.NameHTTP, Early: t.Target.Transport == transport.NameStdio,
	}
	if t.Thorough() {
		o.Length, o.Finishes = thoroughLength, 3
	}
	if call, ok := knownTool(t, "slow"); ok {
		p.slow, o.Works = &call, mostWorks
	}
	p.vocabulary()
	p.findFacts()
	for _, w := range p.words {
		o.Words = append(o.Words, w.Word)
	}
	seq := model.Generate(rand.New(t.Random()), *o)
	p.until = time.Now().Add(sequenceTime)
	if t.Thorough() {
		p.until = time.Now().Add(2 * p.patience)
	}
	// Other checks may have made the server forget the state of an older session.
	session := p.fresh()
	if session == nil {
		session = t.Session
	} else {
		defer func() { _ = session.Conn.Close(t.Context) }()
	}
	for len(seq) > 0 {
		w := p.run(session, seq)
		if p.served == 0 && w == nil {
			t.Inconclusive("no request was served")
		}
		if w == nil || p.confirmed(w) || w.waited || w.gone {
			return
		}
		// The rest of the sequence leaves out the request that could not be confirmed.
		seq = model.Valid(slices.DeleteFunc(slices.Clone(w.rest), func(a model.Action) bool {
			return (a.Kind == model.Ask || a.Kind == model.Probe) && wordOf(a) == w.word
		}), *o)
		if !slices.ContainsFunc(seq, func(a model.Action) bool { return a.Kind == model.Ask }) {
			return
		}
	}
}

// sequenceRun runs sequences.
type sequenceRun struct {
	*check.T
	words    []*word
	facts    []*fact
	slow     *check.Call
	options  model.Options
	patience time.Duration // for an answer
	hasty    bool          // whether an answer is missing at all was tried before
	took     time.Duration // for the slow call
	until    time.Time     // when no more is asked, unless it is zero
	deadline time.Time     // of replays
	served   int
	replays  int
	answered map[int]bool // by word: whether it is answered alone
}

// misstep is what went wrong in a sequence.
type misstep struct {
	kind     fault
	word     int  // see wordOf
	set      bool // the value of the fact that was lost
	early    bool // the id of the request was in a cancellation before
	waited   bool // for the answer, in vain
	message  string
	events   []*wire.Event  // the last ones
	sequence []model.Action // up to there
	rest     []model.Action
	gone     bool // the session cannot be used any more
	broken   bool // the refusal is not one of JSON-RPC
}

// fault is a way in which an answer is wrong.
type fault uint8

const (
	noAnswer fault = iota
	unserved       // or served, where it has to be refused
	answeredTwice
	ofAnother
	lost    // a fact
	differs // a page of a list, although no change of the list was announced
)

// same reports whether two runs show the same.
func (w *misstep) same(other *misstep) bool {
	return other != nil && w.kind == other.kind && w.word == other.word
}

// same reports whether a replay shows the same misstep. Chance may decide which of several requests is not answered,
// so the replay may show another request, if that is answered when it is made alone.
func (p *sequenceRun) same(w, again *misstep) bool {
	switch {
	case w.same(again):
		return true
	case again == nil || w.kind != noAnswer || again.kind != noAnswer:
		return false
	}
	answered, known := p.answered[again.word]
	if !known {
		hasty := p.hasty
		p.hasty = false
		answered = p.alone(again) == ""
		p.hasty = hasty
		p.answered[again.word] = answered
	}
	return answered
}

// requested is a request that was made.
type requested struct {
	*client.Pending
	action model.Action
	early  bool // its id was in a cancellation before
}

// course is a sequence while it is run.
type course struct {
	session *client.Session
	made    map[int]*requested // by number
	read    int                // how far the log was read for answers that come again
	holds   map[string]bool    // the values of facts, as far as they are known
	turned  map[string]time.Time
	root    *atomic.Pointer[string]  // the URI of the client's root, once that has changed
	pages   map[int]*client.Exchange // by word
}

func newCourse(s *client.Session) *course {
	return &course{
		session: s, made: make(map[int]*requested), read: s.Log().Len(),
		holds: make(map[string]bool), turned: make(map[string]time.Time), pages: make(map[int]*client.Exchange),
	}
}

// run runs a sequence in a session and returns the first thing that is wrong, or nil.
func (p *sequenceRun) run(s *client.Session, sequence []model.Action) *misstep {
	cursors := p.cursors(s)
	c := newCourse(s)
	from := c.read
	defer c.restoreRoots(p.Context)
	var open, running []*requested
	var early *wire.ID
	var listening *transport.Stream
	defer func() {
		if listening != nil {
			listening.Close()
		}
	}()
	start := func(a model.Action, method string, params map[string]any, opts ...client.Option) (*client.Pending, error) {
		id, named := s.NextID(), false
		if early != nil && a.Kind == model.Ask {
			id, named, early = *early, true, nil
		}
		pending, err := s.StartID(p.Context, id, method, params, opts...)
		if err == nil {
			c.made[a.Number] = &requested{pending, a, named}
		}
		return pending, err
	}
	for i := 0; i < len(sequence); i++ {
		a := sequence[i]
		var err error
		var awaited []*requested
		var w *misstep
		switch a.Kind {
		case model.Ask:
			w := p.words[a.Word]
			params, ok := w.ask(cursors)
			if !ok {
				continue
			}
			if _, err = start(a, w.method, params, w.options()...); err == nil {
				open = append(open, c.made[a.Number])
			}
		case model.Work:
			var pending *client.Pending
			token := fmt.Sprintf("mcpconform-sequence-%s", s.NextID())
			if pending, err = start(a, "tools/call", withToken(p.slow.Params(), token)); err == nil {
				running = append(running, c.made[a.Number])
				underWay(p.T, s, pending)
			}
		case model.Await:
			awaited, open = open, nil
		case model.Finish:
			awaited, running = running, nil
		case model.Cancel, model.CancelEnded:
			if r := c.made[a.Of]; r != nil {
				err = p.cancel(s, r.ID)
				running = slices.DeleteFunc(running, func(other *requested) bool { return other == r })
			}
		case model.CancelUnknown:
			err = p.cancel(s, wire.StringID("mcpconform-"+s.NextID().String()))
		case model.CancelNext:
			id := s.NextID()
			early = &id
			if err = p.cancel(s, id); err == nil {
				_, err = s.Call(p.Context, s.NoOp(), nil) // the server has read it then
			}
		case model.Notify:
			if a.Word > 0 {
				err = c.turnRoots(p.Context)
			} else {
				err = s.Notify(p.Context, "notifications/mcpconform/no-such", nil, client.Deliberately("*"))
			}
		case model.Malformed:
			err = s.Notify(p.Context, "notifications/progress", map[string]any{}, client.Deliberately("*"))
		case model.Listen:
			listening = p.listen(s)
		case model.Unlisten:
			if listening != nil {
				listening.Close()
				listening = nil
			}
		case model.Drop:
			p.drop(s)
		case model.Probe:
			w = p.probe(c, a)
		}
		if w == nil {
			w = p.judge(c, awaited)
		}
		if w == nil && err != nil {
			w = p.ended(noRequest, err)
		}
		if w != nil {
			w.sequence, w.rest = sequence[:i+1], sequence[i+1:]
			w.events = append(messagesSince(s, from), w.events...)
			return w
		}
		if (a.Kind == model.Await || a.Kind == model.Probe) && !p.until.IsZero() && time.Now().After(p.until) {
			p.Note("the server is slow: mcpconform took only %d of %d steps", i+1, len(sequence))
			p.until = time.Time{}
			sequence = model.Valid(sequence[:i+1], p.options)
		}
	}
	return nil
}

// messagesSince returns the last messages of a session after a position in its log.
func messagesSince(s *client.Session, from int) []*wire.Event {
	const most = 10
	all := slices.DeleteFunc(slices.Clone(s.Log().Events()[from:]),
		func(e *wire.Event) bool { return e.Kind != wire.KindMessage })
	return all[max(0, len(all)-most):]
}

// cursors asks for the first page of what has more, in the session in which its cursor is good.
func (p *sequenceRun) cursors(s *client.Session) map[string]any {
	all := make(map[string]any)
	for _, w := range p.words {
		if !w.paged {
			continue
		}
		x, err := s.Call(p.Context, w.method, nil)
		if cursor, more := nextCursor(x); err == nil && more {
			all[w.method] = cursor
		}
	}
	return all
}

func (p *sequenceRun) cancel(s *client.Session, id wire.ID) error {
	_, err := s.Send(p.Context, []byte(cancellation(id)), late)
	return err
}

// head is how long the head of a stream is awaited before it is taken for one that comes with
// the first event.
const head = 250 * time.Millisecond

// listen opens a further listening stream, or returns nil if the server does not grant it.
func (p *sequenceRun) listen(s *client.Session) *transport.Stream {
	limit, stop := context.WithTimeout(p.Context, head)
	defer stop()
	stream, err := s.Conn.(*transport.HTTPConn).Open(limit, transport.Request{Method: http.MethodGet, Defaults: true})
	if err != nil {
		return nil
	}
	if stream.Head.HTTP.Status != http.StatusOK || !check.Streams(stream.Head.HTTP.Header) {
		stream.Close()
		return nil
	}
	return stream
}

// drop makes a slow call and hangs up on it. Nobody needs its result.
func (p *sequenceRun) drop(s *client.Session) {
	limit, stop := context.WithTimeout(p.Context, head)
	defer stop()
	id := s.NextID()
	if stream, err := s.Conn.(*transport.HTTPConn).Open(limit,
		callRequestOf(id, *p.slow, "mcpconform-hung-up-"+id.String())); err == nil {
		stream.Close()
	}
	_ = p.cancel(s, id)
}

// judge waits for the answers to requests and returns the first thing that is wrong with them, or
// with what else has come since, or nil.
func (p *sequenceRun) judge(c *course, awaited []*requested) *misstep {
	for _, r := range awaited {
		x, err := p.answer(c.session, r)
		switch {
		case errors.Is(err, errMissing) && slices.ContainsFunc(c.session.Log().Events()[r.Request.Seq:], unnamed):
			continue // it may be the answer, and the rules judge that
		case errors.Is(err, errMissing):
			return &misstep{kind: noAnswer, word: wordOf(r.action), early: r.early, waited: true,
				message: "gets no answer"}
		case err != nil:
			return p.ended(wordOf(r.action), err)
		case x.Result() == nil && wire.TooMany(x.Head):
			p.Inconclusive("the server refuses requests because there are too many")
		case c.session.Lost():
			p.Inconclusive("the server has ended the session")
		case r.action.Kind != model.Ask:
			if x.Response != nil && r.action.Kind == model.Work {
				p.took = max(p.took, took(x))
			}
			continue // a tool may fail
		}
		w := p.words[r.action.Word]
		switch problem := x.Result() == nil; {
		case problem != w.Refused:
			return &misstep{kind: unserved, word: wordOf(r.action), early: r.early, broken: x.Response == nil,
				message: "gives " + Describe(x)}
		case !problem && ofOther(w.method, x.Result()):
			return &misstep{kind: ofAnother, word: wordOf(r.action), message: "gives the result of another request"}
		}
		p.served++
		if w := p.keeps(c, r.action, x); w != nil {
			return w
		}
	}
	events := c.session.Log().Events()
	for _, e := range events[c.read:] {
		if e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse() {
			continue
		}
		if x := c.session.Log().Exchange(e); x != nil && len(x.Further) > 0 {
			for _, r := range c.made {
				if r.Request == x.Request {
					return &misstep{kind: answeredTwice, word: wordOf(r.action),
						message: fmt.Sprintf("gets %d answers", 1+len(x.Further))}
				}
			}
		}
	}
	c.read = len(events)
	return nil
}

// unnamed reports whether an event is a response without a usable id.
func unnamed(e *wire.Event) bool {
	return e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.IsResponse() && !e.Msg.ID.Usable()
}

// These constants stand in place of a position in the vocabulary.
const (
	slowCall  = -1 // the request that takes its time
	noRequest = -2 // what went wrong is no answer
	factWord  = -3 // the call that shows the first fact; those of the others stand below it
)

// wordOf is the position of what an action asks for in the vocabulary.
func wordOf(a model.Action) int {
	switch a.Kind {
	case model.Ask:
		return a.Word
	case model.Probe:
		return factWord - a.Word
	}
	return slowCall
}

var errMissing = errors.New("no answer")

// answer waits for the answer to a request. If a replay can confirm later that none comes, it waits only until a
// later request is answered, and a moment more.
func (p *sequenceRun) answer(s *client.Session, r *requested) (*client.Exchange, error) {
	limit, stop := context.WithTimeout(p.Context, p.patience)
	defer stop()
	ends := func(e *wire.Event) bool {
		return over(e, r.Pending) || e.Kind == wire.KindExit || e.Kind == wire.KindClose
	}
	soon := limit
	switch {
	case p.hasty && r.action.Kind == model.Work:
		waiting, stop := context.WithTimeout(limit, p.took+p.took/2+p.Soon(check.Later))
		defer stop()
		soon = waiting
	case p.hasty:
		waiting, stop := context.WithTimeout(limit, p.Soon(check.AtOnce))
		defer stop()
		if _, err := s.Log().Await(waiting, r.Request.Seq+1, ends); err != nil && limit.Err() == nil {
			_, _ = s.Call(limit, s.NoOp(), nil)
		}
		waiting, stop = context.WithTimeout(limit, p.Soon(check.AtOnce))
		defer stop()
		soon = waiting
	}
	if _, err := s.Log().Await(soon, r.Request.Seq+1, ends); err != nil && soon.Err() != nil {
		if p.Context.Err() != nil {
			p.Must(context.Cause(p.Context))
		}
		return nil, errMissing
	}
	return r.Await(p.Context)
}

// ended is what the end of a connection shows.
func (p *sequenceRun) ended(word int, err error) *misstep {
	var closed *client.ClosedError
	if !errors.As(err, &closed) && !errors.Is(err, transport.ErrClosed) {
		p.Must(err)
	}
	w := &misstep{kind: noAnswer, word: word, message: "fails: " + err.Error(), gone: true}
	if word == noRequest {
		w.message = "stops answering: " + err.Error()
	}
	if closed != nil && closed.Cause != nil {
		w.events = []*wire.Event{closed.Cause}
		if closed.Cause.Kind == wire.KindStreamEnd {
			w.message, w.gone = "gets no answer before its stream ends", false
		}
	}
	return w
}

// resultOf names the member that tells the result of a method from those of others.
var resultOf = map[string]string{
	"tools/call": "content", "resources/read": "contents", "prompts/get": "messages",
	"completion/complete": "completion",
}

// ofOther reports whether the result of a request is that of another one.
func ofOther(method string, result map[string]any) bool {
	own, other := resultOf[method], false
	for m, member := range resultOf {
		other = other || m != method && result[member] != nil
	}
	for _, l := range lists {
		if l.method == method {
			own = l.member
		} else {
			other = other || result[l.member] != nil
		}
	}
	return own != "" && other && result[own] == nil
}

// confirmed runs a wrong sequence again, makes it small and reports it. It returns false if the error cannot be
// confirmed, or is legal.
func (p *sequenceRun) confirmed(w *misstep) bool {
	p.until = time.Time{}
	defer func() { p.hasty = false }()
	p.deadline = time.Now().Add(4 * p.patience)
	name := p.subject(w)
	if why := p.alone(w); why != "" {
		p.Note("%s %s in a sequence of requests; when it is sent alone, it %s", name, w.message, why)
		return false
	}
	// Whether it is missing at all is found out once; from then on it is not waited for as long.
	p.hasty = true
	var found *misstep
	for size := 8; found == nil; size *= 4 {
		part := w.sequence[max(0, len(w.sequence)-size):]
		if again, _ := p.replay(model.Valid(part, p.options)); p.same(w, again) {
			found = again
		}
		if len(part) == len(w.sequence) {
			break
		}
	}
	if found == nil {
		found = p.later(w)
	}
	if found == nil {
		p.Note("%s %s once in a sequence of requests, but is answered when the sequence is repeated", name, w.message)
		return false
	}
	if w.kind == noAnswer || w.kind == lost {
		p.hasty = false
		if again, _ := p.replay(found.sequence); !p.same(w, again) {
			if found = p.later(w); found == nil {
				p.Note("%s %s in a sequence of requests unless the server gets more time", name, w.message)
				return false
			}
		}
		p.hasty = true
	}
	model.Shrink(found.sequence, p.options, func(part []model.Action) (failed, ok bool) {
		again, ok := p.replay(part)
		if failed = ok && p.same(w, again); failed {
			found = again
		}
		return failed, ok
	})
	w, name = found, p.subject(found)
	if w.kind == lost || w.kind == differs {
		return p.confirmedFact(w)
	}
	if w.kind == unserved {
		// A refusal only beside other requests is another question (docs/positions.md, requests-beside-others).
		again, _ := p.replay(model.Serial(found.sequence))
		if !p.same(w, again) {
			p.Note("%s %s only while other requests are open", name, w.message)
			return false
		}
		found = again
		if p.words[w.word].fickle && slices.ContainsFunc(found.sequence, p.calls) {
			p.Note("%s %s after a call of a tool that may have changed something: %s", name, w.message,
				p.describe(found.sequence))
			return false
		}
	}
	if w.word >= 0 && p.words[w.word].paged {
		// It need not be the cursor.
		plain := slices.IndexFunc(p.words, func(other *word) bool { return other.method == p.words[w.word].method })
		sequence := slices.Clone(found.sequence)
		for i, a := range sequence {
			if a.Kind == model.Ask && a.Word == w.word {
				sequence[i].Word = plain
			}
		}
		same := &misstep{kind: w.kind, word: plain}
		if again, _ := p.replay(sequence); same.same(again) {
			w, found, name = same, again, p.subject(same)
		}
	}
	message := fmt.Sprintf("%s %s, although it is answered when it is sent alone; here the client does this: %s", name,
		found.message, p.describe(found.sequence))
	switch {
	case w.kind == answeredTwice:
		p.Violation("base.response.once", message, found.events...)
	case w.kind == ofAnother:
		p.Violation("base.response.id-echo", message, found.events...)
	case found.early && (w.kind == noAnswer || w.kind == unserved):
		p.Violation("cancellation.ignore-unknown", message, found.events...)
	case found.gone:
		p.blame(blamed(found.sequence, "base.response.present"), message, found.events)
	case found.broken:
		p.blame(blamed(found.sequence, p.words[w.word].id), message, found.events)
	case w.kind == noAnswer:
		p.Violation("base.response.present", message, found.events...)
	case p.words[w.word].method == "tools/call":
		p.Warning(p.words[w.word].id, message, found.events...) // a tool may fail, and how is not said
	default:
		p.Violation(p.words[w.word].id, message, found.events...)
	}
	return true
}

// later runs the whole wrong sequence again, and continues until the slow calls are over. It returns nil if the misstep
// does not show again. The error may have struck one request by chance, and strike a slow call each time. The answer to
// a slow call is awaited last.
func (p *sequenceRun) later(w *misstep) *misstep {
	end := 1 + slices.IndexFunc(w.rest, func(a model.Action) bool { return a.Kind == model.Finish })
	again, _ := p.replay(model.Valid(slices.Concat(w.sequence, w.rest[:end]), p.options))
	if !p.same(w, again) {
		return nil
	}
	return again
}

// calls reports whether an action calls a tool.
func (p *sequenceRun) calls(a model.Action) bool {
	return a.Kind == model.Work || a.Kind == model.Drop || a.Kind == model.Probe ||
		a.Kind == model.Ask && p.words[a.Word].method == "tools/call"
}

// tolerated names the requirements by which a server lives with an action.
var tolerated = map[model.Kind]string{
	model.Cancel: "cancellation.either-side", model.CancelEnded: "cancellation.ignore-completed",
	model.CancelUnknown: "cancellation.ignore-unknown", model.CancelNext: "cancellation.ignore-unknown",
	model.Notify: "base.notification.unknown-no-response", model.Malformed: "base.notification.malformed-no-response",
	model.Listen: "http.server.get-close-tolerated", model.Unlisten: "http.server.get-close-tolerated",
	model.Drop: "http.disconnect.survived",
}

// blamed returns the requirement that a server breaks if it ends during a sequence, or refuses a request that it
// understood before. It is the requirement of the last action that is not a request, or else otherwise.
func blamed(sequence []model.Action, otherwise string) string {
	for _, a := range slices.Backward(sequence) {
		if id, ok := tolerated[a.Kind]; ok {
			return id
		}
	}
	return otherwise
}

// blame records that a server has broken a requirement by which it lives with an action. No response is all
// that the text wants after a malformed notification (basic/index#notifications): the rest is a warning.
func (p *sequenceRun) blame(id, message string, events []*wire.Event) {
	if id == tolerated[model.Malformed] {
		p.Warning(id, message, events...)
		return
	}
	p.Violation(id, message, events...)
}

// subject names the subject of a message.
func (p *sequenceRun) subject(w *misstep) string {
	switch {
	case w.word == noRequest:
		return "the server"
	case w.word == slowCall:
		return "a slow call"
	case w.word <= factWord:
		return "a call of " + quote(p.facts[factWord-w.word].call.Tool)
	default:
		return p.words[w.word].String()
	}
}

// alone makes the request alone, in a session of its own, as often as the sequence does. It describes the outcome, or
// returns "" for the expected one.
func (p *sequenceRun) alone(w *misstep) string {
	s := p.fresh()
	if s == nil {
		return "cannot be tried because the server opens no other session"
	}
	defer func() { _ = s.Conn.Close(p.Context) }()
	if w.word <= factWord {
		if again := p.run(s, p.kept(w)); again != nil {
			return again.message
		}
		return ""
	}
	switch w.word {
	case noRequest:
		if _, err := s.Call(p.Context, s.NoOp(), nil); err != nil {
			return "does not answer either: " + err.Error()
		}
		return ""
	case slowCall:
		var x *client.Exchange
		pending, err := s.Start(p.Context, "tools/call", p.slow.Params())
		if err == nil {
			x, err = p.answer(s, &requested{Pending: pending, action: model.Action{Kind: model.Work}})
		}
		if err != nil || x.Response == nil {
			return "is not answered in time either"
		}
		p.took = max(p.took, took(x))
		return ""
	}
	cursors := p.cursors(s)
	steps := p.around(w.word)
	times := 2
	firsts := make(map[int]*client.Exchange)
	for _, a := range w.sequence {
		if a.Kind == model.Ask && a.Word == w.word {
			times++
		}
	}
	for range min(times, 10) {
		for _, i := range steps {
			word := p.words[i]
			params, ok := word.ask(cursors)
			if !ok {
				return "has no further page"
			}
			x, err := s.Call(p.Context, word.method, params, word.options()...)
			if err != nil {
				return "is not answered either"
			}
			if (x.Result() == nil) != word.Refused {
				if i == w.word && (word.Sets == "" || w.kind == unserved) {
					return "gives " + Describe(x)
				}
			}
			if first := firsts[i]; w.kind == differs && first != nil && !p.sameItems(word, first, x) {
				return "differs as well"
			} else if first == nil {
				firsts[i] = x
			}
			if word.Sets != "" && w.kind == unserved {
				return "" // once is what it can be done
			}
		}
	}
	return ""
}

// around returns a request with its counterpart, if it has one. A request that undoes another comes second. A request
// that another undoes comes first, so that it is undone before it comes again.
func (p *sequenceRun) around(of int) []int {
	word := p.words[of]
	for i, other := range p.words {
		switch {
		case word.Unsets != "" && other.Sets == word.Unsets:
			return []int{i, of}
		case word.Sets != "" && other.Unsets == word.Sets && i != of:
			return []int{of, i}
		}
	}
	return []int{of}
}

// fresh opens a session, or returns nil if the server opens none.
func (p *sequenceRun) fresh() *client.Session {
	s := p.Connect(capable)
	if _, err := s.Initialize(p.Context); err != nil {
		_ = s.Conn.Close(p.Context)
		if p.Context.Err() != nil {
			p.Must(context.Cause(p.Context)) // the end of the check says nothing about the server
		}
		return nil
	}
	return s
}

// replay runs a sequence in a new session. It says false if it is too late for that.
func (p *sequenceRun) replay(sequence []model.Action) (w *misstep, ok bool) {
	if p.replays++; p.replays > mostReplays || time.Now().After(p.deadline) {
		return nil, false
	}
	s := p.fresh()
	if s == nil {
		return nil, false
	}
	defer func() { _ = s.Conn.Close(p.Context) }()
	return p.run(s, sequence), true
}

// describe says a sequence in words. Requests without a semicolon between them are sent without waiting.
func (p *sequenceRun) describe(sequence []model.Action) string {
	var b strings.Builder
	gap := ""
	say := func(text string) {
		b.WriteString(gap + text)
		gap = ", "
	}
	for _, a := range sequence {
		switch a.Kind {
		case model.Ask:
			say("sends " + p.words[a.Word].String())
		case model.Work:
			say("calls " + quote(p.slow.Tool) + ", which is slow")
		case model.Await:
			if gap != "" {
				gap = "; "
			}
		case model.Finish:
			say("waits for the end of the call")
		case model.Cancel:
			say("cancels the call")
		case model.CancelEnded:
			say("cancels a request that was answered")
		case model.CancelUnknown:
			say("cancels a request that was never made")
		case model.CancelNext:
			say("cancels a request that it sends later")
		case model.Notify:
			if a.Word > 0 {
				say("sends " + rootsChanged)
			} else {
				say("sends an unknown notification")
			}
		case model.Malformed:
			say("sends notifications/progress without params")
		case model.Listen:
			say("opens another listening stream")
		case model.Unlisten:
			say("closes it")
		case model.Drop:
			say("calls " + quote(p.slow.Tool) + " and hangs up")
		case model.Probe:
			say("calls " + quote(p.facts[a.Word].call.Tool))
		}
	}
	return b.String()
}
