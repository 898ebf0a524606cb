package model

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Generate returns a sequence. The same source makes the same one. It contains all duties (see duties), even if it
// gets longer by that. It prefers actions that have not yet followed the last request, or were not yet done while a
// request was running. It begins with the tests of facts.
func Generate(r *rand.Rand, o Options) []Action {
	g := newGenerator(r, &o)
	g.begin()
	g.end()
	for len(g.all)+len(g.unsatisfied) < o.Length {
		g.step()
	}
	for g.finishes < g.Finishes && len(g.running) < maxRunning && g.enabled(Action{Kind: Work}) {
		g.do(Action{Kind: Work})
	}
	g.finish()
	g.fulfilAll(func(duty) bool { return true })
	return append(g.all, g.rest()...)
}

// generator makes a sequence.
type generator struct {
	*state
	random *rand.Rand
	all    []Action
	// last is the last action that is no wait, and lastRequest the last that is a request.
	last, lastRequest symbol
	followed          map[[2]symbol]int
	beside            map[symbol]int     // how often something was done while a request was running
	together          map[[2]symbol]bool // what was open at the same time
	unsatisfied       []duty
}

func newGenerator(r *rand.Rand, o *Options) *generator {
	s := newState(o)
	return &generator{
		state: s, random: r, last: symbol{kind: Await}, lastRequest: symbol{kind: Await},
		followed: make(map[[2]symbol]int), beside: make(map[symbol]int), together: make(map[[2]symbol]bool),
		unsatisfied: s.duties(),
	}
}

// duty is something that has to be in a sequence: an action right after another one, with nothing but
// notifications in between, or beside a request that is running, or a request that is made while another one is
// open. The cancellation of a request that was answered need not come right after it.
type duty struct {
	first, then    symbol
	beside, atOnce bool
}

// duties returns what has to be in a sequence:
//
//   - requests of one topic follow each other, and are open at the same time;
//   - each action follows a refused request, and a cancellation of an unknown and of an answered request;
//   - requests of the topic of slow calls follow the cancellation of a slow call;
//   - each action is done beside a slow call. If the code of another word answers a word, that is all;
//   - a request of each word is cancelled after it was answered.
func (s *state) duties() []duty {
	var all []duty
	for i, w := range s.Words {
		word := symbol{Ask, i}
		if s.Works > 0 {
			all = append(all, duty{then: word, beside: true})
		}
		for j, other := range s.Words[:i] {
			if w.meets(other) {
				all = append(all, duty{first: symbol{Ask, j}, then: word, atOnce: true})
			}
		}
		if w.Alike {
			continue
		}
		for j, then := range s.Words {
			if then.Alike || i == j {
				continue
			}
			if w.Refused || share(w.Topics, then.Topics) {
				all = append(all, duty{first: word, then: symbol{Ask, j}})
			}
		}
		all = append(all,
			duty{first: word, then: symbol{kind: CancelEnded}},
			duty{first: symbol{kind: CancelEnded}, then: word},
			duty{first: symbol{kind: CancelUnknown}, then: word},
		)
		for j, notice := range s.Notices {
			if share(notice.Topics, w.Topics) {
				all = append(all, duty{first: symbol{Notify, j}, then: word})
			}
		}
		if s.Works > 0 && slices.Contains(w.Topics, s.WorkTopic) {
			all = append(all, duty{first: symbol{kind: Cancel}, then: word})
		}
	}
	for j := range max(1, len(s.Notices)) {
		// Any request but the first word, which does nothing, and the second, which may be refused.
		if n := len(s.Words); n > 1 {
			all = append(all, duty{first: symbol{Notify, j}, then: symbol{Ask, 1 + (1+j)%(n-1)}})
		}
	}
	if s.Works > 0 {
		all = append(all, s.besides()...)
		all = append(all, duty{first: symbol{kind: Work}, then: symbol{kind: CancelEnded}})
	}
	return all
}

// besides returns what has to be done beside a request that takes its time, other than the words.
func (s *state) besides() (all []duty) {
	for j := range max(1, len(s.Notices)) {
		all = append(all, duty{then: symbol{Notify, j}, beside: true})
	}
	kinds := []Kind{CancelEnded, CancelUnknown, Malformed}
	if s.Works > 1 {
		kinds = append(kinds, Work)
	}
	if s.Streams {
		kinds = append(kinds, Listen, Unlisten)
	}
	if s.Early {
		kinds = append(kinds, CancelNext)
	}
	for _, kind := range kinds {
		all = append(all, duty{then: symbol{kind: kind}, beside: true})
	}
	return all
}

// meets reports whether two words have to be open at the same time.
func (w *Word) meets(other *Word) bool {
	return w.Sets+w.Unsets+other.Sets+other.Unsets == "" &&
		(w.Code != "" && w.Code == other.Code || share(w.Topics, other.Topics) && !w.Alike && !other.Alike)
}

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

// do adds an action.
func (g *generator) do(a Action) {
	a.Number = g.numbers
	if a.Kind != Await && a.Kind != Finish {
		at := a.symbol()
		g.followed[[2]symbol{g.last, at}]++
		if g.lastRequest != g.last {
			g.followed[[2]symbol{g.lastRequest, at}]++
		}
		if len(g.running) > 0 {
			g.beside[at]++
		}
		g.last = at
		for _, other := range g.open {
			g.together[[2]symbol{g.request(other), at}] = true
			g.together[[2]symbol{at, g.request(other)}] = true
		}
		if a.Kind == Ask || a.Kind == Work || a.Kind == Drop {
			g.lastRequest = at
		}
	}
	g.state.do(a)
	g.all = append(g.all, a)
	g.unsatisfied = slices.DeleteFunc(g.unsatisfied, g.satisfied)
}

func (g *generator) satisfied(d duty) bool {
	switch {
	case d.beside:
		return g.beside[d.then] > 0
	case d.atOnce:
		return g.together[[2]symbol{d.first, d.then}]
	case d.then.kind == CancelEnded:
		return g.cancelled[d.first] > 0
	}
	return g.followed[[2]symbol{d.first, d.then}] > 0
}

// step adds what comes next.
func (g *generator) step() {
	if len(g.open) == maxOpen {
		g.do(Action{Kind: Await})
	}
	choices := g.choices()
	due := slices.DeleteFunc(slices.Clone(choices), func(a Action) bool { return !g.isDue(a) })
	wait := 4
	if len(due) > 0 {
		wait *= 2 // what is due belongs right after what was asked last
	}
	if len(g.open) > 0 && (len(choices) == 0 || g.random.IntN(wait) == 0) {
		g.do(Action{Kind: Await})
		return
	}
	switch {
	case g.beside[symbol{kind: Work}] == 0 && len(g.running) < min(2, g.Works) && len(g.all) > 2 &&
		g.enabled(Action{Kind: Work}):
		// Two that take their time come soon, and go on until all was done beside them.
		choices = []Action{{Kind: Work}}
	case len(due) > 0 && g.random.IntN(4) > 0:
		choices = due
	default:
		requests := g.random.IntN(4) > 0
		some := slices.DeleteFunc(slices.Clone(choices), func(a Action) bool { return (a.Kind == Ask) != requests })
		if len(some) > 0 {
			choices = some
		}
	}
	next := g.preferred(choices)
	g.do(next)
	if next.Kind == Cancel {
		g.finish()
	}
}

// finish waits for the requests that take their time, if the answer to some is awaited.
func (g *generator) finish() {
	if len(g.running) == 0 || g.finishes >= g.Finishes {
		return
	}
	for _, d := range slices.Clone(g.unsatisfied) {
		if d.beside {
			g.fulfil(d)
		}
	}
	if len(g.running) > 1 {
		g.do(Action{Kind: Cancel, Of: g.running[g.random.IntN(len(g.running))]})
	}
	if len(g.open) > 0 {
		g.do(Action{Kind: Await})
	}
	g.do(Action{Kind: Finish})
}

// choices returns what may be done now, but for waiting.
func (g *generator) choices() []Action {
	var all []Action
	add := func(a Action) {
		if g.enabled(a) && (g.spare(a) || g.isDue(a)) {
			all = append(all, a)
		}
	}
	for i := range g.Words {
		add(Action{Kind: Ask, Word: i})
	}
	for j := range max(1, len(g.Notices)) {
		add(Action{Kind: Notify, Word: j})
	}
	for _, kind := range []Kind{Work, CancelUnknown, CancelNext, Malformed, Listen, Unlisten, Drop} {
		add(Action{Kind: kind})
	}
	besideDue := slices.ContainsFunc(g.unsatisfied, func(d duty) bool { return d.beside })
	if n := len(g.running); n > 0 && (!besideDue || g.finishes >= g.Finishes) {
		add(Action{Kind: Cancel, Of: g.running[g.random.IntN(n)]})
	}
	if len(g.ended) > 0 {
		add(Action{Kind: CancelEnded, Of: g.answered()})
	}
	return all
}

// spare reports whether an action of limited number leaves enough of its kind for the open duties.
func (g *generator) spare(a Action) bool {
	needed := 0
	for _, d := range g.unsatisfied {
		switch a.Kind {
		case Ask:
			if d.first == a.symbol() && !d.beside || d.then == a.symbol() {
				needed++
			}
		case Work, Drop:
			if d.first.kind == Cancel {
				needed++
			}
		}
	}
	switch a.Kind {
	case Ask:
		most := g.Words[a.Word].Most
		return most == 0 || g.times[a.Word]+needed < most
	case Work, Drop:
		if g.finishes == 0 && g.Finishes > 0 && len(g.running) == 0 {
			needed++ // one is not cancelled
		}
		if (a.Kind == Drop || len(g.running) > 0) &&
			slices.ContainsFunc(g.unsatisfied, func(d duty) bool { return d.beside }) {
			needed++ // one more to do the rest beside
		}
		return g.works+needed < g.Works
	}
	return true
}

// isDue reports whether it has to be done, and can be now.
func (g *generator) isDue(a Action) bool {
	return slices.ContainsFunc(g.unsatisfied, func(d duty) bool {
		switch {
		case d.atOnce:
			return g.completes(d, a.symbol())
		case a.symbol() != d.then:
			return false
		case d.beside:
			return len(g.running) > 0
		case a.Kind == CancelEnded:
			return g.request(a.Of) == d.first
		}
		return d.first == g.last || d.first == g.lastRequest
	})
}

// completes reports whether a request is one of two that have to be open at the same time, and the other one is.
func (g *generator) completes(d duty, at symbol) bool {
	return d.first == at && g.isOpen(d.then) || d.then == at && g.isOpen(d.first)
}

// preferred returns one of the actions that were done least: right after the last one, and beside a running request.
// Among these it prefers an action that others have to follow.
func (g *generator) preferred(choices []Action) Action {
	best := -1
	var preferred []Action
	for _, a := range choices {
		at := a.symbol()
		again := g.followed[[2]symbol{g.last, at}]
		if g.lastRequest != g.last {
			again += g.followed[[2]symbol{g.lastRequest, at}]
		}
		if len(g.running) > 0 {
			again += 2 * g.beside[at]
		}
		if best < 0 || again < best {
			best, preferred = again, nil
		}
		if again == best {
			preferred = append(preferred, a)
		}
	}
	leading := slices.DeleteFunc(slices.Clone(preferred), func(a Action) bool {
		return !slices.ContainsFunc(g.unsatisfied, func(d duty) bool { return d.first == a.symbol() && !d.beside })
	})
	if len(leading) > 0 {
		preferred = leading
	}
	return preferred[g.random.IntN(len(preferred))]
}

// fulfilAll fulfils the duties that fit. The duty that is begun comes first, then a duty that begins with a refused
// request. It takes the one that leaves most to do.
func (g *generator) fulfilAll(fits func(d duty) bool) {
	due := slices.DeleteFunc(slices.Clone(g.unsatisfied), func(d duty) bool { return !fits(d) })
	leads := func(at symbol) (n int) {
		for _, d := range due {
			if d.first == at && !d.beside {
				n++
			}
		}
		return n
	}
	rank := func(d duty) int {
		switch {
		case g.begun(d):
			return 2
		case d.first.kind == Ask && g.Words[d.first.word].Refused:
			return 1
		}
		return 0
	}
	for len(due) > 0 {
		next := slices.MaxFunc(due, func(a, b duty) int {
			if c := cmp.Compare(rank(a), rank(b)); c != 0 {
				return c
			}
			return cmp.Compare(leads(a.then), leads(b.then))
		})
		g.fulfil(next)
		due = slices.DeleteFunc(due, func(d duty) bool { return d == next || g.satisfied(d) })
	}
}

// fulfil does what has to be done, if it was not by the way, and as far as that is possible.
func (g *generator) fulfil(d duty) {
	if g.satisfied(d) {
		return
	}
	if d.then.kind == CancelEnded && !d.beside {
		g.cancelEnded(d.first)
		return
	}
	if d.atOnce && g.isOpen(d.then) {
		d.first, d.then = d.then, d.first
	}
	if begun := g.begun(d); len(g.open)+1 > maxOpen || len(g.open)+2 > maxOpen && !begun {
		g.do(Action{Kind: Await})
	}
	g.prepare(d.then)
	switch {
	case d.beside && len(g.running) == 0:
		g.make(symbol{kind: Work})
	case !d.beside && !g.begun(d):
		g.make(d.first)
	}
	if d.first.kind == Ask {
		g.interpose(d.then)
	}
	g.make(d.then)
}

// interpose does something that is no request and that a request has to follow, if there is any.
func (g *generator) interpose(then symbol) {
	for _, d := range g.unsatisfied {
		if d.then == then && slices.Contains([]Kind{CancelEnded, CancelUnknown, Notify}, d.first.kind) {
			g.make(d.first)
			return
		}
	}
}

// cancelEnded cancels a request that was answered.
func (g *generator) cancelEnded(request symbol) {
	made := func(n int) bool { return g.request(n) == request }
	if !slices.ContainsFunc(g.ended, made) {
		g.make(request)
		g.settle()
	}
	if i := slices.IndexFunc(g.ended, made); i >= 0 {
		g.do(Action{Kind: CancelEnded, Of: g.ended[i]})
	}
}

// answered returns the last request that was answered, of those whose kind was cancelled least.
func (g *generator) answered() int {
	least := len(g.ended) - 1
	for i, n := range slices.Backward(g.ended) {
		if g.cancelled[g.request(n)] < g.cancelled[g.request(g.ended[least])] {
			least = i
		}
	}
	return g.ended[least]
}

// begun reports whether the first half of a duty was the last thing that was done.
func (g *generator) begun(d duty) bool {
	switch {
	case d.beside:
		return false
	case d.atOnce:
		return g.isOpen(d.first) || g.isOpen(d.then)
	}
	return d.first == g.last || d.first == g.lastRequest
}

// isOpen reports whether a request that is over soon is not answered yet, as far as the sequence knows.
func (g *generator) isOpen(request symbol) bool {
	return slices.ContainsFunc(g.open, func(n int) bool { return g.request(n) == request })
}

// make does something, and what it takes before.
func (g *generator) make(at symbol) {
	g.prepare(at)
	a := Action{Kind: at.kind, Word: at.word}
	switch {
	case at.kind == Cancel && len(g.running) > 0:
		a.Of = g.running[len(g.running)-1] // all is done beside the others
	case at.kind == CancelEnded && len(g.ended) > 0:
		a.Of = g.answered()
	}
	if g.enabled(a) {
		g.do(a)
	}
}

// prepare brings about what it takes for something to be done.
func (g *generator) prepare(at symbol) {
	switch {
	case at.kind == CancelEnded && len(g.ended) == 0:
		g.make(symbol{kind: Ask})
		g.settle()
	case at.kind == Cancel && len(g.running) == 0:
		g.make(symbol{kind: Work})
	case at.kind == Listen && g.listening:
		g.make(symbol{kind: Unlisten})
	case at.kind == Unlisten && !g.listening:
		g.make(symbol{kind: Listen})
	case at.kind == Ask:
		if len(g.open) == maxOpen {
			g.do(Action{Kind: Await})
		}
		w := g.Words[at.word]
		name := w.Sets + w.Unsets
		if name == "" {
			return
		}
		if g.changing[name] {
			g.do(Action{Kind: Await})
		}
		if undo := g.opposite(at.word); g.set[name] == (w.Sets != "") && undo >= 0 {
			g.make(symbol{Ask, undo})
			g.do(Action{Kind: Await})
		}
	}
}

// opposite returns the word that undoes another one, or that is undone by it.
func (s *state) opposite(of int) int {
	return slices.IndexFunc(s.Words, func(w *Word) bool {
		return w.Sets != "" && w.Sets == s.Words[of].Unsets || w.Unsets != "" && w.Unsets == s.Words[of].Sets
	})
}
