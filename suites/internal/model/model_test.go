package model

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// several is a vocabulary like that of a server with everything.
func several() Options {
	o := Options{Works: 10, Finishes: 1, WorkTopic: "tools", Length: 400, Early: true}
	for _, topics := range []string{
		"ping", "unknown", "tools list", "tools list", "tools", "prompts list", "prompts", "prompts", "resources list", "resources list", "resources list", "resources", "logging",
	} {
		o.Words = append(o.Words, &Word{Topics: strings.Fields(topics)})
	}
	o.Words[1].Refused = true
	o.Words[4].Most = 15
	o.Words = append(o.Words, &Word{Topics: []string{"resources"}, Sets: "x"}, &Word{Topics: []string{"resources"}, Unsets: "x"})
	return o
}

func TestGenerate(t *testing.T) {
	for seed := range uint64(50) {
		for _, streams := range []bool{false, true} {
			o := several()
			o.Streams, o.Early = streams, !streams
			if seed%2 == 1 {
				o.Notices = []Notice{{}, {Topics: []string{"list"}}, {Topics: []string{"ping", "prompts"}}, {Turns: "roots"}}
			}
			if seed%4 > 1 {
				o.Facts = []string{"x", "roots", "always"}
			}
			generate := func() []Action { return Generate(rand.New(rand.NewPCG(seed, 1)), o) }
			sequence := generate()
			if !reflect.DeepEqual(sequence, generate()) {
				t.Fatalf("seed %d gives two sequences", seed)
			}
			if valid := Valid(sequence, o); !reflect.DeepEqual(valid, sequence) {
				t.Fatalf("seed %d: of %d actions %d are valid", seed, len(sequence), len(valid))
			}
			if most := o.Length + o.Length/6 + len(o.Notices); len(sequence) > most {
				t.Errorf("seed %d: %d actions, more than %d", seed, len(sequence), most)
			}
			again := newGenerator(nil, &o)
			for _, a := range sequence {
				again.do(a)
			}
			if len(again.unsatisfied) > 0 {
				t.Errorf("seed %d: this does not come: %v", seed, again.unsatisfied)
			}
			if len(again.open) > 0 || len(again.running) > 0 || again.set["x"] || again.finishes == 0 {
				t.Errorf("seed %d leaves %v and %v, or waits for nothing that takes its time", seed, again.open, again.running)
			}
		}
	}
}

func TestMost(t *testing.T) {
	o := several()
	o.Words[2].Most = 3
	asked := 0
	for _, a := range Generate(rand.New(rand.NewPCG(1, 1)), o) {
		if a.Kind == Ask && a.Word == 2 {
			asked++
		}
	}
	if asked == 0 || asked > 3 {
		t.Errorf("asked %d times", asked)
	}
}

func TestShrink(t *testing.T) {
	o := several()
	sequence := Generate(rand.New(rand.NewPCG(2, 1)), o)
	// holds reports whether some actions are there, in this order.
	holds := func(part []Action, kinds ...Kind) bool {
		for _, a := range part {
			if len(kinds) > 0 && a.Kind == kinds[0] {
				kinds = kinds[1:]
			}
		}
		return len(kinds) == 0
	}
	for _, tt := range []struct {
		kinds []Kind
		want  int // before the first word that ends each sequence, and its answer
	}{
		{[]Kind{CancelUnknown, Finish}, 3}, // of a request that takes its time
		{[]Kind{Notify, Malformed, Notify}, 3},
		{[]Kind{Ask, CancelEnded}, 3}, // of a request that was awaited
	} {
		tries := 0
		part := Shrink(sequence, o, func(part []Action) (failed, ok bool) {
			tries++
			if !reflect.DeepEqual(Valid(part, o), part) {
				t.Fatal("a part is not valid")
			}
			return holds(part, tt.kinds...), true
		})
		if !holds(part, tt.kinds...) || len(part) != tt.want+2 {
			t.Errorf("%v: %d actions are left after %d tries: %v", tt.kinds, len(part), tries, part)
		}
	}
	short := Shrink(sequence, o, func([]Action) (failed, ok bool) { return true, false })
	if !reflect.DeepEqual(short, sequence) {
		t.Error("what could not be tried was left out")
	}
}

func TestSerial(t *testing.T) {
	o := several()
	serial := Serial(Generate(rand.New(rand.NewPCG(3, 1)), o))
	if valid := Valid(serial, o); !reflect.DeepEqual(valid, serial) {
		t.Errorf("of %d actions %d are valid", len(serial), len(valid))
	}
	s := newState(&o)
	for _, a := range serial {
		if s.do(a); len(s.open) > 1 {
			t.Fatal("two requests are open")
		}
	}
}

// A sequence that was cut off where it failed is made small like any other.
func TestShrinkWhatWasCutOff(t *testing.T) {
	o := several()
	sequence := []Action{{Kind: Ask, Number: 1}, {Kind: Work, Number: 2}, {Kind: Work, Number: 3}, {Kind: Ask, Word: 2, Number: 4}}
	part := Shrink(sequence, o, func(part []Action) (failed, ok bool) {
		return slices.ContainsFunc(part, func(a Action) bool { return a.Kind == Ask && a.Word == 2 }), true
	})
	if len(part) != 3 { // with the first word, which ends it
		t.Errorf("left is %v", part)
	}
}

// deaf is a party whose other side does not answer a request right after one of a refused word.
type deaf struct{ last Action }

func (d *deaf) Begin() Run                  { return &deaf{} }
func (d *deaf) Same(w, again *Misstep) bool { return w.Same(again) }
func (d *deaf) End(*Misstep)                {}

func (d *deaf) Do(a Action) *Misstep {
	last := d.last
	if a.Kind != Await {
		d.last = a
	}
	if a.Kind == Ask && last.Kind == Ask && last.Word == 1 {
		return &Misstep{Word: a.Subject()}
	}
	return nil
}

func (d *deaf) Judge(Action) *Misstep { return nil }

// TestPlayer wants the misstep of a sequence found again, and its sequence made as small as it can be.
func TestPlayer(t *testing.T) {
	o := several()
	p := &Player{Party: &deaf{}, Options: o, Until: time.Now().Add(time.Hour), Replays: 1000}
	w := p.Play(p.Begin(), Generate(rand.New(rand.NewPCG(1, 1)), o))
	if w == nil || w.Sequence[len(w.Sequence)-1].Subject() != w.Word {
		t.Fatalf("the misstep is %v", w)
	}
	found := p.Confirm(w)
	if found == nil {
		t.Fatal("the misstep is not confirmed")
	}
	var words []int
	for _, a := range p.Smallest(w, found).Sequence {
		if a.Kind != Await {
			words = append(words, a.Word)
		}
	}
	if !slices.Equal(words, []int{1, w.Word}) {
		t.Errorf("the smallest sequence asks for %v", words)
	}
	p.Until = time.Now()
	if again, ok := p.Replay(w.Sequence); again != nil || ok {
		t.Error("a sequence is replayed too late")
	}
	if again := p.Play(p.Begin(), w.Sequence); again != nil || p.Cut == 0 {
		t.Errorf("too late, %d steps are taken, with %v", p.Cut, again)
	}
}

// TestFacts tests that all unrelated actions come between the change of a fact and its test, for either value.
func TestFacts(t *testing.T) {
	o := several()
	o.Facts = []string{"x", "always"}
	for seed := range uint64(20) {
		between, all, probes := make(map[symbol]bool), [2]map[symbol]bool{}, 0
		s := newState(&o)
		for _, a := range Generate(rand.New(rand.NewPCG(seed, 1)), o) {
			s.do(a)
			switch w := o.Words[min(a.Word, len(o.Words)-1)]; {
			case a.Kind == Ask && w.Sets+w.Unsets != "":
				clear(between)
			case a.Kind != Probe:
				between[a.symbol()] = true
			case o.Facts[a.Word] == "x":
				probes++
				value := 0
				if s.set["x"] {
					value = 1
				}
				if all[value] == nil {
					all[value] = maps.Clone(between)
				}
			}
		}
		if probes != 5 { // set and unset, twice in a row, and set anew
			t.Errorf("seed %d: asked %d times", seed, probes)
		}
		for value, came := range all {
			for i, w := range o.Words {
				if w.Sets+w.Unsets == "" && !came[symbol{Ask, i}] {
					t.Errorf("seed %d: word %d does not come while the value is %d", seed, i, value)
				}
			}
			for _, kind := range []Kind{Work, Cancel, CancelEnded, CancelUnknown, CancelNext, Malformed} {
				if !came[symbol{kind: kind}] && !(kind == Work && value == 0) {
					t.Errorf("seed %d: kind %d does not come while the value is %d", seed, kind, value)
				}
			}
		}
	}
}
