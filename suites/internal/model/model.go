// Package model is a small model of a session: the legal actions of one side in each state, and their effects on the
// state. It generates sequences in which every action follows every other one, and tells which parts of a sequence
// are sequences again. Facts are the state that the other side has to keep: the model tests each fact after all
// actions that leave it as it is.
package model

import "slices"

// Kind of an action.
type Kind uint8

// The kinds.
const (
	Ask           Kind = iota // a request that is over soon
	Work                      // a request that takes its time
	Await                     // the answers to all requests that are over soon
	Finish                    // the answers to those that take their time
	Cancel                    // a request that is running
	CancelEnded               // one that was answered
	CancelUnknown             // one that nobody made
	CancelNext                // the one that is over soon and comes next
	Notify                    // of something
	Malformed                 // a notification without what it needs
	Listen                    // on a further stream
	Unlisten                  // close that
	Drop                      // make a request that takes its time, and hang up on it
	Probe                     // find out whether a fact holds
)

// Action is one step of that side.
type Action struct {
	Kind Kind
	// Word is the position of what is asked in the vocabulary, of a notification among the notices, or of a fact.
	Word int
	// Number tells requests from each other, and Of is that of the one that is cancelled.
	Number, Of int
}

// Word is a request that is over soon, as far as the model has to know it.
type Word struct {
	// Topics are what it is about: what shares one follows each other.
	Topics []string
	// Code names what answers it, if that answers others as well: those are open at the same time.
	Code string
	// Refused says that it is answered with an error: everything follows it.
	Refused bool
	// Sets and Unsets name something that the request brings about, or ends.
	Sets, Unsets string
	// Kept says that its answer is a fact by itself: it is asked before everything else, too.
	Kept bool
	// Alike says that another word is answered by the same code: what has to follow each word does not have to follow
	// this one.
	Alike bool
	// Most is how often it is asked; 0 for as often as may be.
	Most int
}

// Notice is a notification that can be sent at any time. The actions that share a topic with it follow it.
type Notice struct {
	Topics []string
	// Turns names the fact that the notification changes.
	Turns string
}

// Options of what can be done.
type Options struct {
	Words []*Word
	// Notices are the notifications, one about nothing if there are none.
	Notices []Notice
	// Facts are what the other side keeps: what words set and unset, or notices turn, or what always holds.
	Facts []string
	// Works is how many requests that take their time are made in all, and Finishes for how many of them
	// the answer is awaited.
	Works, Finishes int
	// WorkTopic is what these requests are about.
	WorkTopic string
	// Streams says that the transport has streams that can be opened and cut.
	Streams bool
	// Early says that a cancellation cannot arrive after a request that is sent after it.
	Early bool
	// Length is the number of actions.
	Length int
}

// Bounds on what is open at a time.
const (
	maxOpen    = 4
	maxRunning = 2
)

// state of a session.
type state struct {
	*Options
	open, running, ended []int
	set                  map[string]bool
	changing             map[string]bool // set or unset by what is open
	named, listening     bool
	asking, fenced       bool // whether the first word was asked last, and was answered since
	works, finishes      int
	numbers              int
	asked                map[int]int    // words by number
	times                map[int]int    // how often each word was asked
	cancelled            map[symbol]int // how often what was answered was cancelled, by what it was
}

func newState(o *Options) *state {
	return &state{Options: o, set: make(map[string]bool), changing: make(map[string]bool), asked: make(map[int]int),
		times: make(map[int]int), cancelled: make(map[symbol]int)}
}

// enabled reports whether that may be done now.
func (s *state) enabled(a Action) bool {
	switch a.Kind {
	case Ask:
		w := s.Words[a.Word]
		for _, name := range []string{w.Sets, w.Unsets} {
			if name != "" && (s.changing[name] || s.set[name] == (name == w.Sets)) {
				return false
			}
		}
		return len(s.open) < maxOpen && (w.Most == 0 || s.times[a.Word] < w.Most)
	case Work:
		return s.works < s.Works && len(s.running) < maxRunning
	case Await:
		return len(s.open) > 0
	case Finish:
		return len(s.running) > 0 && len(s.open) == 0 && s.finishes < s.Finishes
	case Cancel:
		return slices.Contains(s.running, a.Of)
	case CancelEnded:
		return slices.Contains(s.ended, a.Of)
	case CancelNext:
		return s.Early && !s.named
	case Listen:
		return s.Streams && !s.listening
	case Unlisten:
		return s.listening
	case Drop:
		return s.Streams && s.works < s.Works
	case Probe:
		return !s.changing[s.Facts[a.Word]]
	}
	return true
}

// do changes the state.
func (s *state) do(a Action) {
	s.fenced = a.Kind == Await && s.asking
	s.asking = a.Kind == Ask && a.Word == 0
	switch a.Kind {
	case Ask:
		s.open, s.named = append(s.open, a.Number), false
		s.asked[a.Number] = a.Word
		s.times[a.Word]++
		w := s.Words[a.Word]
		for _, name := range []string{w.Sets, w.Unsets} {
			if name != "" {
				s.set[name], s.changing[name] = name == w.Sets, true
			}
		}
	case Work:
		s.running = append(s.running, a.Number)
		s.works++
	case Await:
		s.ended, s.open = append(s.ended, s.open...), nil
		clear(s.changing)
	case Finish:
		s.ended, s.running = append(s.ended, s.running...), nil
		s.finishes++
	case Cancel:
		s.running = slices.DeleteFunc(slices.Clone(s.running), func(n int) bool { return n == a.Of })
	case CancelEnded:
		s.cancelled[s.request(a.Of)]++
	case CancelNext:
		s.named = true
	case Listen:
		s.listening = true
	case Unlisten:
		s.listening = false
	case Drop:
		s.works++
	}
	s.numbers = max(s.numbers, a.Number+1)
}

// symbol is an action without what tells it from others of its kind.
type symbol struct {
	kind Kind
	word int
}

func (a Action) symbol() symbol { return symbol{a.Kind, a.Word} }

// request is what was asked for by the request with a number.
func (s *state) request(number int) symbol {
	if word, ok := s.asked[number]; ok {
		return symbol{Ask, word}
	}
	return symbol{kind: Work}
}

// rest returns what ends a sequence: nothing is left open. The first word is asked after what was done last, and after
// what ends the sequence: the answer shows that the other side lives on.
func (s *state) rest() []Action {
	var all []Action
	do := func(a Action) {
		if s.enabled(a) {
			s.do(a)
			all = append(all, a)
		}
	}
	fence := func() {
		do(Action{Kind: Await})
		if len(s.Words) > 0 && !s.fenced {
			do(Action{Kind: Ask, Number: s.numbers})
			do(Action{Kind: Await})
		}
	}
	fence()
	for i, w := range s.Words {
		if w.Unsets != "" {
			do(Action{Kind: Ask, Word: i, Number: s.numbers})
		}
	}
	for len(s.running) > 0 {
		do(Action{Kind: Cancel, Of: s.running[0]})
	}
	do(Action{Kind: Unlisten})
	fence()
	return all
}

// Valid returns those actions of a part of a sequence that a client may do one after the other.
func Valid(part []Action, o Options) []Action {
	s := newState(&o)
	var all []Action
	for _, a := range part {
		if s.enabled(a) {
			s.do(a)
			all = append(all, a)
		}
	}
	return append(all, s.rest()...)
}

// Serial returns the sequence with each request awaited before the next action.
func Serial(sequence []Action) []Action {
	var all []Action
	for _, a := range sequence {
		if a.Kind == Await {
			continue
		}
		all = append(all, a)
		if a.Kind == Ask {
			all = append(all, Action{Kind: Await})
		}
	}
	return all
}

// Shrink returns a small part of a sequence that still fails: no part of it that leaves out one action
// fails, unless fails gave up before, which it says with ok.
func Shrink(sequence []Action, o Options, fails func(part []Action) (failed, ok bool)) []Action {
	sequence = Valid(sequence, o) // what ends it counts as well
	// without leaves out what fits, if the rest still fails.
	without := func(fits func(i int, a Action) bool) (smaller, ok bool) {
		var rest []Action
		for i, a := range sequence {
			if !fits(i, a) {
				rest = append(rest, a)
			}
		}
		rest = Valid(rest, o)
		if len(rest) >= len(sequence) {
			return false, true
		}
		smaller, ok = fails(rest)
		if smaller && ok {
			sequence = rest
		}
		return smaller, ok
	}
	// All actions of a kind are removed first, at once: mostly a failure needs few actions.
	for _, fits := range []func(_ int, a Action) bool{
		func(_ int, a Action) bool { return a.Kind == Ask },
		func(_ int, a Action) bool { return a.Kind != Ask && a.Kind != Probe },
	} {
		if _, ok := without(fits); !ok {
			return sequence
		}
	}
	var known []symbol
	for _, a := range slices.Clone(sequence) {
		if slices.Contains(known, a.symbol()) || a.Kind == Await {
			continue
		}
		known = append(known, a.symbol())
		if _, ok := without(func(_ int, other Action) bool { return other.symbol() == a.symbol() }); !ok {
			return sequence
		}
	}
	for size := max(1, len(sequence)/2); size > 0; {
		again := false
		for from := 0; from < len(sequence); {
			smaller, ok := without(func(i int, _ Action) bool { return i >= from && i < from+size })
			switch {
			case !ok:
				return sequence
			case smaller:
				again = true
			default:
				from += size
			}
		}
		if size > 1 {
			size /= 2
		} else if !again {
			return sequence
		}
	}
	return sequence
}
