package model

import "slices"

// How often facts are changed, and asked for after each change.
const (
	turns    = 3
	twice    = 2
	eventful = 2 // of the turns, after which all else is done
)

// rounds changes all facts, does all unrelated actions beside long requests, and tests the facts: once set, once
// unset and, with nothing in between, once set anew. It tests each fact twice, to find a fact that is lost by the
// test itself.
func (g *generator) rounds() {
	kept := slices.ContainsFunc(g.Words, func(w *Word) bool { return w.Kept })
	for turn := range turns {
		if len(g.Facts) == 0 && (turn > 0 || !kept) {
			return
		}
		g.ask(turn)
		for i := range g.Facts {
			if turn >= eventful {
				i = len(g.Facts) - 1 - i // so that each fact is set after each other one
			}
			for _, a := range g.Turning(i, turn%2 == 0) {
				g.make(a.symbol())
			}
		}
		g.settle()
		if turn < eventful {
			g.unrelated()
		}
		g.ask(turn)
		for range twice {
			for i := range g.Facts {
				g.make(symbol{Probe, i})
			}
		}
	}
	// These requests have run for so long that they may be over, and nobody saw whether they were answered. All that
	// has to be done beside a request is done again, beside one whose answer is awaited.
	for _, n := range slices.Clone(g.running) {
		g.do(Action{Kind: Cancel, Of: n})
	}
	clear(g.beside)
	g.unsatisfied = slices.DeleteFunc(g.duties(), g.satisfied)
}

// ask asks for what is a fact by itself.
func (g *generator) ask(turn int) {
	for i, w := range g.Words {
		if w.Kept && turn == 0 {
			g.make(symbol{Ask, i})
		}
	}
	g.settle()
}

// settle waits for the answers to all requests that are over soon.
func (g *generator) settle() {
	if len(g.open) > 0 {
		g.do(Action{Kind: Await})
	}
}

// Turning returns the actions that set a fact, or unset it.
func (o *Options) Turning(fact int, set bool) (all []Action) {
	name := o.Facts[fact]
	for i, w := range o.Words {
		if set && w.Sets == name || !set && w.Unsets == name {
			all = append(all, Action{Kind: Ask, Word: i})
		}
	}
	for i, n := range o.Notices {
		if n.Turns == name {
			all = append(all, Action{Kind: Notify, Word: i})
		}
	}
	return all
}

// unrelated does every action that leaves the facts as they are once, in any order and beside long requests. It
// leaves streams as they are: facts do not depend on the stream of a message.
func (g *generator) unrelated() {
	if len(g.running) == 0 {
		g.make(symbol{kind: Work})
	}
	if g.works < maxRunning {
		g.make(symbol{kind: Work})
	}
	var all []symbol
	for i, w := range g.Words {
		if !slices.Contains(g.Facts, w.Sets) && !slices.Contains(g.Facts, w.Unsets) {
			all = append(all, symbol{Ask, i})
		}
	}
	for i := range max(1, len(g.Notices)) {
		if len(g.Notices) == 0 || g.Notices[i].Turns == "" {
			all = append(all, symbol{Notify, i})
		}
	}
	for _, kind := range []Kind{CancelUnknown, CancelNext, Malformed} {
		all = append(all, symbol{kind: kind})
	}
	if len(g.running) > 0 {
		all = append(all, symbol{kind: Cancel})
	}
	g.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, at := range all {
		if g.random.IntN(2) == 0 || len(g.open) == maxOpen {
			g.settle()
		}
		g.make(at)
	}
	g.settle()
	for _, n := range slices.Clone(g.ended[max(0, len(g.ended)-maxOpen):]) {
		g.do(Action{Kind: CancelEnded, Of: n})
	}
}
