package model

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpconform/mcpconform/reference/wire"
	"github.com/mcpconform/mcpconform/schema/ids"
)

// Fault is a way in which an answer is wrong.
type Fault uint8

// The faults.
const (
	NoAnswer      Fault = iota
	Unserved            // or served, where the other side has to refuse it
	AnsweredTwice       // or more often
	OfAnother           // request
	Lost                // a fact
	Differs             // from the last answer, although no change was announced
)

// These constants stand in place of a position in the vocabulary.
const (
	Slow      = -1 // the request that takes its time
	NoRequest = -2 // the other side ends, whatever was asked
	FactWord  = -3 // the test of the first fact; those of the others stand below it
)

// Subject returns the position of the subject of an action in the vocabulary.
func (a Action) Subject() int {
	switch a.Kind {
	case Ask:
		return a.Word
	case Probe:
		return FactWord - a.Word
	}
	return Slow
}

// Misstep is an answer that differs from the answer to the request alone.
type Misstep struct {
	Kind           Fault
	Word           int // see Action.Subject
	Message        string
	Events         []*wire.Event
	Sequence, Rest []Action // what was done up to there, and what was not
	Early          bool     // the id of the request was in a cancellation before
	Waited         bool     // for the answer, in vain
	Gone           bool     // the session cannot be used any more
	Broken         bool     // the refusal is not one of JSON-RPC
	Set            bool     // the value of the fact that was lost
	Mild           bool     // the other side may have a reason that is not seen
}

// Same reports whether two runs show the same.
func (w *Misstep) Same(other *Misstep) bool {
	return other != nil && w.Kind == other.Kind && w.Word == other.Word && w.Early == other.Early
}

// Party is the side that does the actions.
type Party interface {
	// Begin begins a run apart from what was done before. It returns nil if that is not possible.
	Begin() Run
	// Same reports whether a replay shows a misstep again.
	Same(w, again *Misstep) bool
}

// Run is one run of a sequence.
type Run interface {
	// Judge waits for the answer to a request and returns its misstep, or nil.
	Judge(request Action) *Misstep
	// Do does an action, once the answers that it waits for are judged. It returns the misstep in what else came, or
	// nil.
	Do(a Action) *Misstep
	// End ends the run. It adds to a misstep the events before it.
	End(w *Misstep)
}

// Player plays sequences and finds the smallest one that shows a misstep.
type Player struct {
	Party
	Options
	// Until is when nothing more is begun, and Replays is how often a sequence may still be replayed.
	Until   time.Time
	Replays int
	// Cut is the number of steps after which the time of the last run was over, or 0.
	Cut int
}

// Play plays a sequence and returns the first misstep, or nil.
func (p *Player) Play(r Run, sequence []Action) (w *Misstep) {
	defer func() { r.End(w) }()
	p.Cut = 0
	var open, running []Action
	for i := 0; i < len(sequence); i++ {
		a := sequence[i]
		var awaited []Action
		switch a.Kind {
		case Await:
			awaited, open = open, nil
		case Finish:
			awaited, running = running, nil
		case Ask:
			open = append(open, a)
		case Work:
			running = append(running, a)
		case Cancel:
			running = slices.DeleteFunc(running, func(other Action) bool { return other.Number == a.Of })
		}
		for n := 0; n < len(awaited) && w == nil; n++ {
			w = r.Judge(awaited[n])
		}
		if w == nil {
			w = r.Do(a)
		}
		if w != nil {
			w.Sequence, w.Rest = sequence[:i+1], sequence[i+1:]
			return w
		}
		pause := a.Kind == Await || a.Kind == Probe
		if pause && i < len(sequence)-1 && p.Cut == 0 && time.Now().After(p.Until) {
			p.Cut, sequence = i+1, Valid(sequence[:i+1], p.Options)
		}
	}
	return nil
}

// Replay plays a sequence, and what ends it, apart from what was done before. It reports false if it is too late for
// that.
func (p *Player) Replay(sequence []Action) (w *Misstep, ok bool) {
	if p.Replays--; p.Replays < 0 || time.Now().After(p.Until) {
		return nil, false
	}
	r := p.Begin()
	if r == nil {
		return nil, false
	}
	return p.Play(r, Valid(sequence, p.Options)), true
}

// Again replays a sequence and returns its misstep if that is the same one, or nil.
func (p *Player) Again(w *Misstep, sequence []Action) *Misstep {
	if again, _ := p.Replay(sequence); p.Same(w, again) {
		return again
	}
	return nil
}

// Confirm looks for an end of a sequence that shows its misstep again, and returns that misstep, or nil.
func (p *Player) Confirm(w *Misstep) (found *Misstep) {
	Ending(w.Sequence, p.Options, p.shows(w, &found))
	return found
}

// Smallest makes the sequence of a confirmed misstep small, and returns the misstep of the smallest one.
func (p *Player) Smallest(w, found *Misstep) *Misstep {
	Shrink(found.Sequence, p.Options, p.shows(w, &found))
	return found
}

// shows returns a function that plays a part of a sequence and reports whether it shows a misstep again. It keeps the
// last such misstep.
func (p *Player) shows(w *Misstep, found **Misstep) func(part []Action) (failed, ok bool) {
	return func(part []Action) (failed, ok bool) {
		again, ok := p.Replay(part)
		if failed = ok && p.Same(w, again); failed {
			*found = again
		}
		return failed, ok
	}
}

// Ending returns an end of a sequence that still fails: of a few actions, or of more and more. It returns nil if none
// fails, or if fails gave up, which it says with ok.
func Ending(sequence []Action, o Options, fails func(part []Action) (failed, ok bool)) []Action {
	for size := 8; ; size *= 4 {
		part := Valid(sequence[max(0, len(sequence)-size):], o)
		switch failed, ok := fails(part); {
		case failed:
			return part
		case !ok || size >= len(sequence):
			return nil
		}
	}
}

// Tolerated names the requirements by which the other side lives with an action.
var Tolerated = map[Kind]string{
	Cancel: ids.CancellationEitherSide, CancelEnded: ids.CancellationIgnoreCompleted,
	CancelUnknown: ids.CancellationIgnoreUnknown, CancelNext: ids.CancellationIgnoreUnknown,
	Notify: ids.BaseNotificationUnknownNoResponse, Malformed: ids.BaseNotificationMalformedNoResponse,
	Listen: ids.HTTPServerGetCloseTolerated, Unlisten: ids.HTTPServerGetCloseTolerated,
	Drop: ids.HTTPDisconnectSurvived,
}

// usual are the words for actions that both parties do in the same way.
var usual = map[Kind]string{
	Cancel: "cancels the call", CancelEnded: "cancels a request that was answered",
	CancelUnknown: "cancels a request that was never made", CancelNext: "cancels a request that it sends later",
	Notify: "sends an unknown notification", Malformed: "sends notifications/progress without params",
	Listen: "opens another listening stream", Unlisten: "closes it", Finish: "waits for the end of the call",
}

// Describe puts a sequence in words. The party does not wait between actions without a semicolon between them. say
// returns its own words for an action, or "" for the usual ones.
func Describe(sequence []Action, say func(a Action) string) string {
	var b strings.Builder
	gap := ""
	for _, a := range sequence {
		if a.Kind == Await {
			if gap != "" {
				gap = "; "
			}
			continue
		}
		text := say(a)
		if text == "" {
			text = usual[a.Kind]
		}
		b.WriteString(gap + text)
		gap = ", "
	}
	return b.String()
}
