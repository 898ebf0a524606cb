package model

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// several is a vocabulary like that of a server with everything.
func several() Options {
	o := Options{Works: 6, Finishes: 1, WorkTopic: "tools", Length: 700, Early: true}
	for _, topic := range []string{"ping", "mcpconform", "tools", "tools", "tools", "prompts", "prompts", "resources", "resources", "resources", "completion", "logging"} {
		o.Words = append(o.Words, Word{Topic: topic})
	}
	o.Words = append(o.Words, Word{Topic: "resources", Sets: "x"}, Word{Topic: "resources", Unsets: "x"})
	return o
}

// pairs returns what follows what.
func pairs(sequence []Action) map[[2]symbol]bool {
	all := make(map[[2]symbol]bool)
	sequence = slices.DeleteFunc(slices.Clone(sequence), func(a Action) bool { return a.Kind == Await || a.Kind == Finish })
	for i, a := range sequence[1:] {
		all[[2]symbol{sequence[i].symbol(), a.symbol()}] = true
	}
	return all
}

func TestGenerate(t *testing.T) {
	for seed := range uint64(20) {
		for _, streams := range []bool{false, true} {
			o := several()
			o.Streams, o.Early = streams, !streams
			generate := func() []Action { return Generate(rand.New(rand.NewPCG(seed, 1)), o) }
			sequence := generate()
			if !reflect.DeepEqual(sequence, generate()) {
				t.Fatalf("seed %d gives two sequences", seed)
			}
			if valid := Valid(sequence, o); !reflect.DeepEqual(valid, sequence) {
				t.Fatalf("seed %d: of %d actions %d are valid", seed, len(sequence), len(valid))
			}
			follows := pairs(sequence)
			missed := 0
			for i, w := range o.Words {
				for j, then := range o.Words {
					if w.Sets+w.Unsets+then.Sets+then.Unsets == "" && !follows[[2]symbol{{Ask, i}, {Ask, j}}] {
						missed++
					}
				}
			}
			if most := len(o.Words) * len(o.Words) / 20; missed > most {
				t.Errorf("seed %d: %d pairs of words do not follow each other", seed, missed)
			}
			if last := newState(&o); !slices.ContainsFunc(sequence, func(a Action) bool { return a.Kind == Finish }) || len(ends(last, sequence).open) > 0 || len(last.running) > 0 || last.set["x"] {
				t.Errorf("seed %d leaves %v, or waits for nothing that takes its time", seed, last)
			}
		}
	}
}

// ends returns the state after a sequence.
func ends(s *state, sequence []Action) *state {
	for _, a := range sequence {
		s.do(a)
	}
	return s
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
		want  int
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
		if !holds(part, tt.kinds...) || len(part) != tt.want {
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
