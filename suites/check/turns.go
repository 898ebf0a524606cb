package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mcpconform/mcpconform/reference/client"
	"github.com/mcpconform/mcpconform/reference/wire"
)

// turns is what the engine knows of a server that refuses requests while it
// serves others, in the session or at all: nothing obliges it to serve several
// at a time (docs/positions.md, requests-beside-others). A check that met such a
// refusal is run again, alone.
type turns struct {
	mu      sync.Mutex // held during an experiment
	meant   []answered // the refusals that come only beside others
	genuine []answered // those that come in any case
}

// Bounds of the experiment that tells why a request was refused.
const (
	maxGenuine = 10 // refusals that are tried without success
	crowd      = 8  // requests at once
	crowdTries = 3
	aloneTries = 2 * crowd // a server that refuses one request in so many does not take turns
)

// refusal is a request of a check that was answered with an error, which may
// have been the check's own fault, or that of others.
type refusal struct {
	request *wire.Event
	answer  answered
}

// answered is how a request was refused.
type answered struct {
	status  int // of HTTP; 0 for a JSON-RPC error
	code    int64
	message string // without digits, which may count or name the request
}

func (a answered) String() string {
	if a.status != 0 {
		return fmt.Sprintf("HTTP status %d", a.status)
	}
	return fmt.Sprintf("error %d: %s", a.code, wire.Quote(a.message, 120))
}

// refusals returns what was refused among the requests that the check's findings
// show.
func (t *T) refusals() []refusal {
	shown := make(map[*wire.Event]bool)
	for _, f := range t.outcome.Findings {
		for _, e := range f.Evidence {
			shown[e] = true
		}
	}
	var all []refusal
	for _, s := range t.sessions() {
		requests := make(map[string]*wire.Event) // by id and, over HTTP, by stream
		for _, e := range s.Log().Events() {
			if e.Kind == wire.KindMessage && e.From == wire.Client && e.Msg.Kind == wire.Request {
				requests[e.Stream], requests["id "+e.Msg.ID.Loose()] = e, e
				continue
			}
			answer, ok := refusing(e)
			if !ok {
				continue
			}
			key := e.Stream
			if e.Kind == wire.KindMessage && e.Msg.ID.Usable() {
				key = "id " + e.Msg.ID.Loose()
			}
			if request := requests[key]; request != nil && (shown[request] || shown[e]) {
				all = append(all, refusal{request, answer})
			}
		}
	}
	return all
}

// refusing returns how an event refuses a request, if it does.
func refusing(e *wire.Event) (answered, bool) {
	switch {
	case e == nil:
	case e.Kind == wire.KindHTTPResponse && e.HTTP.Status >= 400:
		return answered{status: e.HTTP.Status}, true
	case e.Kind == wire.KindMessage && e.From == wire.Server && e.Msg.Kind == wire.ErrorResponse && e.Msg.Error != nil:
		message := strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, e.Msg.Error.Message)
		return answered{code: e.Msg.Error.Code, message: message}, true
	}
	return answered{}, false
}

// crowded reports whether one of the requests was refused only because of others.
// That is tried out, with the last one first, on which a check mostly ends.
func (e *Engine) crowded(ctx context.Context, refusals []refusal) bool {
	e.turns.mu.Lock()
	defer e.turns.mu.Unlock()
	for _, r := range refusals {
		if slices.Contains(e.turns.meant, r.answer) {
			return true
		}
	}
	for _, r := range slices.Backward(refusals) {
		switch {
		case slices.Contains(e.turns.genuine, r.answer), len(e.turns.genuine) == maxGenuine:
		case e.tryCrowd(ctx, r):
			e.turns.meant = append(e.turns.meant, r.answer)
			return true
		default:
			e.turns.genuine = append(e.turns.genuine, r.answer)
		}
	}
	return false
}

// tryCrowd sends a request alone, one time after the other, and then many times
// at once, while a slow tool is at work where there is one. It reports whether it
// was refused as before, but only then.
func (e *Engine) tryCrowd(ctx context.Context, r refusal) bool {
	s, err := e.connect(ctx, "whether requests are refused beside others", Capable())
	if err != nil {
		return false
	}
	defer e.close(ctx, s)
	if _, err := s.Initialize(ctx); err != nil {
		return false
	}
	limit, cancel := context.WithTimeout(ctx, s.Options.Timeout)
	defer cancel()
	params := r.request.Msg.Params
	if wire.At(params, "_meta", "progressToken") != nil {
		// A token is of one request alone (basic/utilities/progress#progress-flow).
		rest := maps.Clone(params.(map[string]any))
		delete(rest, "_meta")
		params = rest
	}
	refused := func() bool {
		x, err := s.Call(limit, r.request.Msg.Method, params, client.Deliberately(r.request.Deliberate...))
		if err != nil {
			return false
		}
		for _, e := range x.Events() {
			if answer, ok := refusing(e); ok && answer == r.answer {
				return true
			}
		}
		return false
	}
	for range aloneTries {
		if refused() {
			return false
		}
	}
	slow, hasSlow := e.target.Purpose("slow")
	for range crowdTries {
		if hasSlow {
			if _, err := s.Start(limit, "tools/call", slow.Params()); err != nil {
				return false
			}
		}
		answers := make(chan bool, crowd)
		for range crowd {
			go func() { answers <- refused() }()
		}
		together := 0
		for range crowd {
			if <-answers {
				together++
			}
		}
		if together > 1 {
			return true
		}
	}
	return false
}
