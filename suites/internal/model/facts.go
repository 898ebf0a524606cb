package model

import "slices"

// begin changes all facts, does all unrelated actions beside long requests, and tests the facts. Each value
// is tested twice, to find a fact that is lost by the test itself.
func (g *generator) begin() {
	for i, w := range g.Words {
		if w.Kept {
			g.make(symbol{Ask, i})
		}
	}
	g.settle()
	g.make(symbol{kind: Work})
	for _, set := range []bool{true, false, true} {
		g.turn(set, false)
	}
	g.make(symbol{kind: Work})
	g.unrelated(len(g.all))
	g.probe(func(int) bool { return true })
	g.probe(g.turned)
	if finish := (Action{Kind: Finish}); g.enabled(finish) {
		g.do(finish)
	}
}

// end does all that is left to do but for streams, most of it while each fact has its other value, and tests the facts.
// Then it sets them anew, with nothing in between, and tests them again.
func (g *generator) end() {
	g.fulfilAll(func(d duty) bool { return g.turns(d.first) || g.turns(d.then) })
	g.turn(false, false)
	from := len(g.all)
	g.fulfilAll(func(d duty) bool { return d.then.kind != Listen && d.then.kind != Unlisten })
	g.unrelated(from)
	g.probe(g.turned)
	g.probe(g.turned)
	g.turn(true, true)
	g.probe(g.turned)
}

// turned reports whether a fact has two values.
func (g *generator) turned(fact int) bool { return len(g.Turning(fact, true)) > 0 }

// probe tests the facts that fit.
func (g *generator) probe(fits func(fact int) bool) {
	g.settle()
	for i := range g.Facts {
		if fits(i) {
			g.make(symbol{Probe, i})
		}
	}
}

// turn sets all facts, or unsets them. A fact that is set after another one is set before it if that is done backwards.
func (g *generator) turn(set, backwards bool) {
	for i := range g.Facts {
		if backwards {
			i = len(g.Facts) - 1 - i
		}
		for _, a := range g.Turning(i, set) {
			if a.Kind == Notify || g.set[g.Facts[i]] != set {
				g.make(a.symbol())
			}
		}
	}
	g.settle()
}

// turns reports whether an action changes a fact.
func (g *generator) turns(at symbol) bool {
	switch at.kind {
	case Ask:
		w := g.Words[at.word]
		return slices.Contains(g.Facts, w.Sets) || slices.Contains(g.Facts, w.Unsets)
	case Notify:
		return len(g.Notices) > 0 && g.Notices[at.word].Turns != ""
	}
	return false
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

// unrelated does every action that leaves the facts as they are, if it was not done since the sequence had a length, in
// any order. It leaves streams as they are: facts do not depend on the stream of a message.
func (g *generator) unrelated(since int) {
	var all []symbol
	add := func(at symbol) {
		done := slices.ContainsFunc(g.all[since:], func(a Action) bool { return a.symbol() == at })
		if !done && !g.turns(at) {
			all = append(all, at)
		}
	}
	for i := range g.Words {
		add(symbol{Ask, i})
	}
	for i := range max(1, len(g.Notices)) {
		add(symbol{Notify, i})
	}
	for _, kind := range []Kind{Cancel, CancelEnded, CancelUnknown, CancelNext, Malformed} {
		if kind != Cancel || g.Works > 0 {
			add(symbol{kind: kind})
		}
	}
	g.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, at := range all {
		if g.random.IntN(2) == 0 || len(g.open) == maxOpen {
			g.settle()
		}
		g.make(at)
	}
	g.settle()
}
