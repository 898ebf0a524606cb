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
	"github.com/mcpconform/mcpconform/schema/ids"
	"github.com/mcpconform/mcpconform/suites/check"
	. "github.com/mcpconform/mcpconform/suites/internal/match"
	"github.com/mcpconform/mcpconform/suites/internal/model"
)

// basic#requests, in every order: what is answered alone is answered whatever came before it and
// runs beside it, and what the session keeps holds whatever else is asked (facts.go).
var sequenceChecks = []*check.Check{
	{
		Name:         "sequences/session",
		Requirements: []string{ids.BaseResponsePresent, ids.BaseResponseOnce, ids.BaseResponseIDEcho},
		Shows: slices.Concat(
			[]string{
				ids.PaginationServerStableCursors, "logging.filter.*", ids.ResourcesUpdatedSent,
				ids.ResourcesUpdatedEndsWithUnsubscribe,
				ids.RootsListChangedRefetch, "*.list-changed.sent", ids.ProgressTokenEcho,
			},
			slices.Sorted(maps.Values(answeredBy)), slices.Sorted(maps.Values(model.Tolerated)),
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
		return []client.Option{client.Deliberately(ids.LifecycleCapabilityExperimentalGated)}
	}
	return nil
}

// answeredBy names the requirements by which requests are answered.
var answeredBy = map[string]string{
	"ping":                     ids.PingEitherSide,
	"tools/list":               ids.ToolsListAnswered,
	"tools/call":               ids.ToolsListCallable,
	"resources/list":           ids.ResourcesListAnswered,
	"resources/templates/list": ids.ResourcesTemplatesAnswered,
	"resources/read":           ids.ResourcesReadAnswered,
	"resources/subscribe":      ids.ResourcesSubscribeAccepted,
	"resources/unsubscribe":    ids.ResourcesUnsubscribeAccepted,
	"prompts/list":             ids.PromptsListAnswered,
	"prompts/get":              ids.PromptsGetAnswered,
	"completion/complete":      ids.CompletionAnswered,
	"logging/setLevel":         ids.LoggingSetLevelAllLevels,
}

// unknownMethod is refused wherever it comes.
const unknownMethod = "mcpconform/no-such-method"

// add adds a word to the vocabulary.
func (p *sequenceRun) add(method string, params map[string]any) *word {
	w := &word{method: method, params: params, id: answeredBy[method]}
	w.Topics = []string{topic(method, params)}
	p.words, p.Words = append(p.words, w), append(p.Words, &w.Word)
	return w
}

// vocabulary finds out what can be asked of the server, all of it with an answer that is known.
func (p *sequenceRun) vocabulary() {
	p.add(p.NoOp(), nil)
	w := p.add(unknownMethod, nil)
	w.id, w.Refused = ids.BaseErrorMethodNotFound, true
	for _, method := range p.Served() {
		if method == p.NoOp() {
			continue
		}
		w := p.add(method, nil)
		w.Code = "list" // servers make all lists with the same code
		_, more := nextCursor(p.Target.List(method).Pages[0])
		if w.Kept = !more; more { // the first page is asked for to have its cursor
			w := p.add(method, nil)
			w.id, w.paged, w.fickle = ids.PaginationServerStableCursors, true, true
			w.Code, w.Alike = "page", !p.Thorough()
		}
	}
	for _, rpc := range workingCalls(p.T) {
		w := p.add(rpc.Method, rpc.Params)
		if w.fickle = rpc.Method != "tools/call"; w.fickle {
			continue
		}
		w.Topics = append(w.Topics, p.WorkTopic)
		if !p.Thorough() {
			w.Most = mostCalls
		}
	}
}

// topic returns what a request is about: its feature, or that of the reference for completions.
func topic(method string, params map[string]any) string {
	if ref, _ := wire.At(params, "ref", "type").(string); ref != "" {
		return strings.TrimPrefix(ref, "ref/") + "s"
	}
	return method[:max(0, strings.LastIndexByte(method, '/'))]
}

// How long sequences are, and how much of a run is spent on them.
const (
	sequenceLength = 120
	thoroughLength = 3000
	mostWorks      = 10
	mostCalls      = 15 // of a tool that is quick
	sequenceTime   = 3 * time.Second
	mostReplays    = 100
)

// sequences plays a sequence. If something goes wrong, it plays the sequence again in other sessions, from the
// beginning, and makes it smaller and smaller.
func sequences(t *check.T) {
	p := &sequenceRun{T: t, patience: t.Session.Options.Timeout, answered: make(map[int]bool)}
	p.Player = model.Player{Party: p, Replays: mostReplays, Options: model.Options{
		Finishes: 2, WorkTopic: "call", Length: sequenceLength,
		Streams: t.Target.Transport == transport.NameHTTP, Early: t.Target.Transport == transport.NameStdio,
	}}
	most := sequenceTime
	if t.Thorough() {
		p.Length, p.Finishes, most = thoroughLength, 3, 2*p.patience
	}
	if call, ok := knownTool(t, "slow"); ok {
		p.slow, p.Works = &call, mostWorks
	}
	p.vocabulary()
	p.findFacts()
	seq := model.Generate(rand.New(t.Random()), p.Options)
	p.Until = time.Now().Add(most)
	for len(seq) > 0 {
		// Other checks may have made the server forget the state of an older session.
		run := p.Begin()
		if run == nil {
			run = p.course(t.Session)
		}
		w := p.Play(run, seq)
		if p.Cut > 0 {
			t.Note("the server is slow: mcpconform took only %d of %d steps", p.Cut, len(seq))
		}
		if p.served == 0 && w == nil {
			t.Inconclusive("no request was served")
		}
		if w == nil || p.confirmed(w) || w.Waited || w.Gone {
			return
		}
		// The rest of the sequence leaves out the request that could not be confirmed.
		rest := slices.DeleteFunc(slices.Clone(w.Rest), func(a model.Action) bool {
			return (a.Kind == model.Ask || a.Kind == model.Probe) && a.Subject() == w.Word
		})
		if !slices.ContainsFunc(rest, func(a model.Action) bool { return a.Kind == model.Ask }) {
			return
		}
		seq = model.Valid(rest, p.Options)
	}
}

// sequenceRun plays sequences with a server.
type sequenceRun struct {
	*check.T
	model.Player
	words    []*word
	facts    []*fact
	slow     *check.Call
	patience time.Duration // for an answer
	hasty    bool          // whether an answer is missing at all was tried before
	took     time.Duration // for the slow call
	served   int
	answered map[int]bool // by word: whether it is answered alone
}

// Same reports whether a replay shows the same misstep. Chance may decide which of several requests is not answered,
// so the replay may show another request, if that is answered when it is made alone.
func (p *sequenceRun) Same(w, again *model.Misstep) bool {
	switch {
	case w.Same(again):
		return true
	case again == nil || w.Kind != model.NoAnswer || again.Kind != model.NoAnswer:
		return false
	}
	answered, known := p.answered[again.Word]
	if !known {
		hasty := p.hasty
		p.hasty = false
		answered = p.alone(again) == ""
		p.hasty = hasty
		p.answered[again.Word] = answered
	}
	return answered
}

// requested is a request that was made.
type requested struct {
	*client.Pending
	action model.Action
	early  bool // its id was in a cancellation before
}

// course is a run of a sequence in a session.
type course struct {
	*sequenceRun
	session   *client.Session
	own       bool               // the session ends with the run
	cursors   map[string]any     // by method
	made      map[int]*requested // by number
	early     *wire.ID           // of the next request
	listening *transport.Stream
	from      int             // where the run begins in the log
	read      int             // how far the log was read for answers that come again
	holds     map[string]bool // the values of facts, as far as they are known
	turned    map[string]time.Time
	root      *atomic.Pointer[string]  // the URI of the client's root, once that has changed
	pages     map[int]*client.Exchange // by word
}

// course begins a run in a session. It asks for the first page of what has more, in the session in which its cursor is
// good.
func (p *sequenceRun) course(s *client.Session) *course {
	c := &course{
		sequenceRun: p, session: s, cursors: make(map[string]any), made: make(map[int]*requested), from: s.Log().Len(),
		holds: make(map[string]bool), turned: make(map[string]time.Time), pages: make(map[int]*client.Exchange),
	}
	for i, w := range p.words {
		if !w.paged {
			continue
		}
		x, err := s.Call(p.Context, w.method, nil)
		if cursor, more := nextCursor(x); err == nil && more {
			c.cursors[w.method], c.pages[i-1] = cursor, x // the list stands before its second page
		}
	}
	c.read = s.Log().Len()
	return c
}

// Begin begins a run in a session of its own.
func (p *sequenceRun) Begin() model.Run {
	s := p.fresh()
	if s == nil {
		return nil
	}
	c := p.course(s)
	c.own = true
	return c
}

// End leaves the session as it was. It puts the last messages before the events of a misstep.
func (c *course) End(w *model.Misstep) {
	if w != nil {
		w.Events = append(messagesSince(c.session, c.from), w.Events...)
	}
	if c.listening != nil {
		c.listening.Close()
	}
	c.restoreRoots(c.Context)
	if c.own {
		_ = c.session.Conn.Close(c.Context)
	}
}

// Do does an action. It returns the misstep in it, or in the answers that came again since the log was last read.
func (c *course) Do(a model.Action) *model.Misstep {
	if a.Kind == model.Probe {
		if w := c.probe(a); w != nil {
			return w
		}
	}
	err := c.act(a)
	if w := c.answeredTwice(); w != nil || err == nil {
		return w
	}
	return c.ended(model.NoRequest, err)
}

// act sends the message of an action, or does what else it is.
func (c *course) act(a model.Action) (err error) {
	switch a.Kind {
	case model.Ask:
		w := c.words[a.Word]
		if params, ok := w.ask(c.cursors); ok {
			return c.start(a, w.method, params, w.options()...)
		}
	case model.Work:
		token := fmt.Sprintf("mcpconform-sequence-%s", c.session.NextID())
		if err = c.start(a, "tools/call", withToken(c.slow.Params(), token)); err == nil {
			underWay(c.T, c.session, c.made[a.Number].Pending)
		}
	case model.Cancel, model.CancelEnded:
		if r := c.made[a.Of]; r != nil {
			return c.cancel(r.ID)
		}
	case model.CancelUnknown:
		return c.cancel(wire.StringID("mcpconform-" + c.session.NextID().String()))
	case model.CancelNext:
		id := c.session.NextID()
		c.early = &id
		if err = c.cancel(id); err == nil {
			_, err = c.session.Call(c.Context, c.session.NoOp(), nil) // the server has read it then
		}
	case model.Notify:
		if a.Word > 0 {
			return c.turnRoots(c.Context)
		}
		return c.session.Notify(c.Context, "notifications/mcpconform/no-such", nil, client.Deliberately("*"))
	case model.Malformed:
		return c.session.Notify(c.Context, "notifications/progress", map[string]any{}, client.Deliberately("*"))
	case model.Listen:
		c.listen()
	case model.Unlisten:
		if c.listening != nil {
			c.listening.Close()
			c.listening = nil
		}
	case model.Drop:
		c.drop()
	}
	return err
}

// start makes a request.
func (c *course) start(a model.Action, method string, params map[string]any, opts ...client.Option) error {
	id, early := c.session.NextID(), false
	if c.early != nil && a.Kind == model.Ask {
		id, early, c.early = *c.early, true, nil
	}
	pending, err := c.session.StartID(c.Context, id, method, params, opts...)
	if err == nil {
		c.made[a.Number] = &requested{pending, a, early}
	}
	return err
}

// messagesSince returns the last messages of a session after a position in its log.
func messagesSince(s *client.Session, from int) []*wire.Event {
	const most = 10
	all := slices.DeleteFunc(slices.Clone(s.Log().Events()[from:]),
		func(e *wire.Event) bool { return e.Kind != wire.KindMessage })
	return all[max(0, len(all)-most):]
}

func (c *course) cancel(id wire.ID) error {
	_, err := c.session.Send(c.Context, []byte(cancellation(id)), late)
	return err
}

// head is how long the head of a stream is awaited before it is taken for one that comes with
// the first event.
const head = 250 * time.Millisecond

// listen opens a further listening stream, if the server grants it.
func (c *course) listen() {
	limit, stop := context.WithTimeout(c.Context, head)
	defer stop()
	r := transport.Request{Method: http.MethodGet, Defaults: true}
	stream, err := c.session.Conn.(*transport.HTTPConn).Open(limit, r)
	switch {
	case err != nil:
	case stream.Head.HTTP.Status != http.StatusOK || !check.Streams(stream.Head.HTTP.Header):
		stream.Close()
	default:
		c.listening = stream
	}
}

// drop makes a slow call and hangs up on it. Nobody needs its result.
func (c *course) drop() {
	limit, stop := context.WithTimeout(c.Context, head)
	defer stop()
	id := c.session.NextID()
	if stream, err := c.session.Conn.(*transport.HTTPConn).Open(limit,
		callRequestOf(id, *c.slow, "mcpconform-hung-up-"+id.String())); err == nil {
		stream.Close()
	}
	_ = c.cancel(id)
}

// Judge waits for the answer to a request and returns the misstep in it.
func (c *course) Judge(request model.Action) *model.Misstep {
	r := c.made[request.Number]
	if r == nil {
		return nil // there was no page to ask for
	}
	return c.judge(r)
}

func (c *course) judge(r *requested) *model.Misstep {
	wrong := model.Misstep{Word: r.action.Subject(), Early: r.early}
	x, err := c.answer(c.session, r)
	switch {
	case errors.Is(err, errMissing) && slices.ContainsFunc(c.session.Log().Events()[r.Request.Seq:], unnamed):
		return nil // it may be the answer, and the rules judge that
	case errors.Is(err, errMissing):
		wrong.Waited, wrong.Message = true, "gets no answer"
		return &wrong
	case err != nil:
		return c.ended(wrong.Word, err)
	case x.Result() == nil && wire.TooMany(x.Head):
		c.Inconclusive("the server refuses requests because there are too many")
	case c.session.Lost():
		c.Inconclusive("the server has ended the session")
	case r.action.Kind != model.Ask:
		if x.Response != nil && r.action.Kind == model.Work {
			c.took = max(c.took, took(x))
		}
		return nil // a tool may fail
	}
	switch w, refused := c.words[r.action.Word], x.Result() == nil; {
	case refused != w.Refused:
		wrong.Kind, wrong.Broken, wrong.Message = model.Unserved, x.Response == nil, "gives "+Describe(x)
		return &wrong
	case !refused && ofOther(w.method, x.Result()):
		wrong.Kind, wrong.Message = model.OfAnother, "gives the result of another request"
		return &wrong
	}
	c.served++
	return c.keeps(r.action, x)
}

// answeredTwice returns the misstep in answers that came again since the log was last read.
func (c *course) answeredTwice() *model.Misstep {
	events := c.session.Log().Events()
	for _, e := range events[c.read:] {
		if e.Kind != wire.KindMessage || e.From != wire.Server || !e.Msg.IsResponse() {
			continue
		}
		x := c.session.Log().Exchange(e)
		if x == nil || len(x.Further) == 0 {
			continue
		}
		for _, r := range c.made {
			if r.Request == x.Request {
				return &model.Misstep{Kind: model.AnsweredTwice, Word: r.action.Subject(),
					Message: fmt.Sprintf("gets %d answers", 1+len(x.Further))}
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

var errMissing = errors.New("no answer")

// answer waits for the answer to a request. If a replay can confirm later that none comes, it waits only until a
// later request is answered, and a moment more.
func (p *sequenceRun) answer(s *client.Session, r *requested) (*client.Exchange, error) {
	misses := func(most time.Duration) bool {
		limit, stop := context.WithTimeout(p.Context, most)
		defer stop()
		_, err := s.Log().Await(limit, r.Request.Seq+1, func(e *wire.Event) bool {
			return over(e, r.Pending) || e.Kind == wire.KindExit || e.Kind == wire.KindClose
		})
		return err != nil && limit.Err() != nil
	}
	most := p.patience
	switch {
	case p.hasty && r.action.Kind == model.Work:
		most = min(most, p.took+p.took/2+p.Soon(check.Later))
	case p.hasty:
		if most = p.Soon(check.AtOnce); misses(most) {
			_, _ = s.Call(p.Context, s.NoOp(), nil)
		}
	}
	if !misses(most) {
		return r.Await(p.Context)
	}
	if p.Context.Err() != nil {
		p.Must(context.Cause(p.Context))
	}
	return nil, errMissing
}

// ended is what the end of a connection shows.
func (p *sequenceRun) ended(word int, err error) *model.Misstep {
	var closed *client.ClosedError
	if !errors.As(err, &closed) && !errors.Is(err, transport.ErrClosed) {
		p.Must(err)
	}
	w := &model.Misstep{Word: word, Message: "fails: " + err.Error(), Gone: true}
	if word == model.NoRequest {
		w.Message = "stops answering: " + err.Error()
	}
	if closed != nil && closed.Cause != nil {
		w.Events = []*wire.Event{closed.Cause}
		if closed.Cause.Kind == wire.KindStreamEnd {
			w.Message, w.Gone = "gets no answer before its stream ends", false
		}
	}
	return w
}

// resultOf names the member that tells the result of a method from those of others.
var resultOf = map[string]string{
	"tools/list": "tools", "tools/call": "content", "prompts/list": "prompts", "prompts/get": "messages",
	"resources/list": "resources", "resources/templates/list": "resourceTemplates", "resources/read": "contents",
	"completion/complete": "completion",
}

// ofOther reports whether the result of a request is that of another one.
func ofOther(method string, result map[string]any) bool {
	own := resultOf[method]
	return own != "" && result[own] == nil && slices.ContainsFunc(slices.Collect(maps.Values(resultOf)),
		func(member string) bool { return result[member] != nil })
}

// confirmed plays a wrong sequence again, makes it small and reports it. It returns false if the error cannot be
// confirmed, or is legal.
func (p *sequenceRun) confirmed(w *model.Misstep) bool {
	defer func() { p.hasty = false }()
	p.Until = time.Now().Add(4 * p.patience)
	if why := p.alone(w); why != "" {
		p.Note("%s %s in a sequence of requests; when it is sent alone, it %s", p.subject(w), w.Message, why)
		return false
	}
	// Whether it is missing at all is found out once; from then on it is not waited for as long.
	p.hasty = true
	found := p.Confirm(w)
	if found == nil {
		found = p.later(w)
	}
	if found == nil {
		p.Note("%s %s once in a sequence of requests, but is answered when the sequence is repeated", p.subject(w),
			w.Message)
		return false
	}
	if found = p.patiently(w, found); found == nil {
		p.Note("%s %s in a sequence of requests unless the server gets more time", p.subject(w), w.Message)
		return false
	}
	switch found = p.Smallest(w, found); found.Kind {
	case model.Lost, model.Differs:
		return p.confirmedFact(found)
	case model.Unserved:
		if found = p.inTurn(found); found == nil {
			return false
		}
	}
	p.report(p.plainly(found))
	return true
}

// later plays the whole wrong sequence again, and continues until the slow calls are over. It returns nil if the
// misstep does not show again. The error may have struck one request by chance, and strike a slow call each time. The
// answer to a slow call is awaited last.
func (p *sequenceRun) later(w *model.Misstep) *model.Misstep {
	end := 1 + slices.IndexFunc(w.Rest, func(a model.Action) bool { return a.Kind == model.Finish })
	return p.Again(w, slices.Concat(w.Sequence, w.Rest[:end]))
}

// patiently gives the server more time for an answer that is missing. It returns nil if the misstep does not show then.
func (p *sequenceRun) patiently(w, found *model.Misstep) *model.Misstep {
	if w.Kind != model.NoAnswer {
		return found
	}
	p.hasty = false
	defer func() { p.hasty = true }()
	if p.Again(w, found.Sequence) == nil {
		return p.later(w)
	}
	return found
}

// inTurn awaits each answer before the next request. It returns nil if the request is not refused then, or may be: a
// refusal only beside other requests is another question (docs/positions.md, requests-beside-others).
func (p *sequenceRun) inTurn(w *model.Misstep) *model.Misstep {
	again := p.Again(w, model.Serial(w.Sequence))
	switch {
	case again == nil:
		p.Note("%s %s only while other requests are open", p.subject(w), w.Message)
	case p.words[w.Word].fickle && slices.ContainsFunc(again.Sequence, p.calls):
		p.Note("%s %s after a call of a tool that may have changed something: %s", p.subject(w), w.Message,
			p.describe(again.Sequence))
		return nil
	}
	return again
}

// plainly returns the misstep that a sequence shows with a cancellation of no request at all, without a cursor, or with
// neither, if there is one: it need not be the id, or the cursor.
func (p *sequenceRun) plainly(w *model.Misstep) *model.Misstep {
	if w.Early {
		w = p.instead(w, w.Word, func(a *model.Action) {
			if a.Kind == model.CancelNext {
				a.Kind = model.CancelUnknown
			}
		})
	}
	if w.Word < 0 || !p.words[w.Word].paged {
		return w
	}
	plain := slices.IndexFunc(p.words, func(other *word) bool { return other.method == p.words[w.Word].method })
	return p.instead(w, plain, func(a *model.Action) {
		if a.Kind == model.Ask && a.Word == w.Word {
			a.Word = plain
		}
	})
}

// instead returns the misstep of a word that a sequence shows with other actions, made small, or the one before.
func (p *sequenceRun) instead(w *model.Misstep, word int, change func(a *model.Action)) *model.Misstep {
	sequence := slices.Clone(w.Sequence)
	for i := range sequence {
		change(&sequence[i])
	}
	same := &model.Misstep{Kind: w.Kind, Word: word}
	if again, _ := p.Replay(sequence); same.Same(again) {
		return p.Smallest(again, again)
	}
	return w
}

// report records the requirement that a misstep breaks. If the server ends, or refuses a request that it understood
// before, the requirement is the one on the last action before it.
func (p *sequenceRun) report(w *model.Misstep) {
	id, report := ids.BaseResponsePresent, p.Violation
	switch {
	case w.Kind == model.AnsweredTwice:
		id = ids.BaseResponseOnce
	case w.Kind == model.OfAnother:
		id = ids.BaseResponseIDEcho
	case w.Early:
		id = ids.CancellationIgnoreUnknown
	case w.Kind == model.Unserved:
		id = p.words[w.Word].id
		if p.words[w.Word].method == "tools/call" && !w.Broken {
			report = p.Warning // a tool may fail, and how is not said
		}
	}
	for _, a := range slices.Backward(w.Sequence) {
		if by, ok := model.Tolerated[a.Kind]; ok && (w.Gone || w.Broken) && !w.Early {
			id = by
			break
		}
	}
	if id == model.Tolerated[model.Malformed] {
		report = p.Warning // no response is all that the text wants (basic/index#notifications)
	}
	report(id, fmt.Sprintf("%s %s, although it is answered when it is sent alone; here the client does this: %s",
		p.subject(w), w.Message, p.describe(w.Sequence)), w.Events...)
}

// calls reports whether an action calls a tool.
func (p *sequenceRun) calls(a model.Action) bool {
	return a.Kind == model.Work || a.Kind == model.Drop || a.Kind == model.Probe ||
		a.Kind == model.Ask && p.words[a.Word].method == "tools/call"
}

// subject names the subject of a message.
func (p *sequenceRun) subject(w *model.Misstep) string {
	switch {
	case w.Word == model.NoRequest:
		return "the server"
	case w.Word == model.Slow:
		return "a slow call"
	case w.Word <= model.FactWord:
		return "a call of " + quote(p.facts[model.FactWord-w.Word].call.Tool)
	default:
		return p.words[w.Word].String()
	}
}

// alone makes the request alone, in a session of its own. It describes the outcome, or returns "" for the expected one.
func (p *sequenceRun) alone(w *model.Misstep) string {
	s := p.fresh()
	if s == nil {
		return "cannot be tried because the server opens no other session"
	}
	defer func() { _ = s.Conn.Close(p.Context) }()
	switch {
	case w.Word <= model.FactWord:
		if again := p.Play(p.course(s), p.kept(w)); again != nil {
			return again.Message
		}
	case w.Word == model.NoRequest:
		if _, err := s.Call(p.Context, s.NoOp(), nil); err != nil {
			return "does not answer either: " + err.Error()
		}
	case w.Word == model.Slow:
		var x *client.Exchange
		pending, err := s.Start(p.Context, "tools/call", p.slow.Params())
		if err == nil {
			x, err = p.answer(s, &requested{Pending: pending, action: model.Action{Kind: model.Work}})
		}
		if err != nil || x.Response == nil {
			return "is not answered in time either"
		}
		p.took = max(p.took, took(x))
	default:
		return p.course(s).repeated(w)
	}
	return ""
}

// repeated makes a request of the vocabulary as often as the sequence does, with its counterpart.
func (c *course) repeated(w *model.Misstep) string {
	times := 2
	for _, a := range w.Sequence {
		if a.Kind == model.Ask && a.Word == w.Word {
			times++
		}
	}
	firsts := make(map[int]*client.Exchange)
	for range min(times, 10) {
		for _, i := range c.around(w.Word) {
			word := c.words[i]
			params, ok := word.ask(c.cursors)
			if !ok {
				return "has no further page"
			}
			x, err := c.session.Call(c.Context, word.method, params, word.options()...)
			switch first := firsts[i]; {
			case err != nil:
				return "is not answered either"
			case (x.Result() == nil) != word.Refused && i == w.Word && (word.Sets == "" || w.Kind == model.Unserved):
				return "gives " + Describe(x)
			case first == nil:
				firsts[i] = x
			case w.Kind == model.Differs && !c.sameItems(word, first, x):
				return "differs as well"
			}
			if word.Sets != "" && w.Kind == model.Unserved {
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

// describe puts a sequence in words.
func (p *sequenceRun) describe(sequence []model.Action) string {
	return model.Describe(sequence, func(a model.Action) string {
		switch a.Kind {
		case model.Ask:
			return "sends " + p.words[a.Word].String()
		case model.Work:
			return "calls " + quote(p.slow.Tool) + ", which is slow"
		case model.Notify:
			if a.Word > 0 {
				return "sends " + rootsChanged
			}
		case model.Drop:
			return "calls " + quote(p.slow.Tool) + " and hangs up"
		case model.Probe:
			return "calls " + quote(p.facts[a.Word].call.Tool)
		}
		return ""
	})
}
